//! Flow: what wires the stages together over the packs and datasets of a lake.
//!
//! | part | what it does |
//! | --- | --- |
//! | `fold` | a date's rows and yesterday's snapshot into the snapshot and the events of the date |
//! | `guard` | what a replay must not do |
//! | `lanes` | items through several threads, in order |
//! | `packs` | the packs of a source, and one page out of them |
//! | `shadow` | two implementations of a stage over the same inputs, item by item |
//! | `parse` | the packs of a date through the rules, into their datasets |
//! | `rows` | the rows of committed files, by field id |
//! | `seed` | which objects of a day's list are fetched in detail, as a file |
//! | `declared` | what a source declares that a flow is made of |
//! | `graph` | its stages, their order and their command lines |
//! | `scope` | dates of datasets, and what readers see of them |
//! | `late` | packs that came after the crawls of a flow |
//! | `judge`, `place` | whether a stage is done; where its stamp, its log and its tries lie |
//! | `turn` | one flow of a date at a time |
//! | `execute`, `process`, `report` | flows as they run, and what became of them |
//! | `make` | the same graph for make |

mod declared;
mod execute;
mod fold;
mod graph;
mod guard;
mod judge;
mod lanes;
mod late;
mod make;
mod packs;
mod parse;
mod place;
mod process;
mod report;
mod rows;
mod scope;
mod seed;
mod shadow;
mod turn;

pub use declared::{Declared, Derived, Folded, Seeded, WHOLE_DAY};
pub use execute::{FlowContext, FlowOptions, FlowWatch, run_flows};
pub use fold::{
    FoldAnswer, FoldOptions, FoldOutcome, FoldRefusal, FoldRefusalKind, FoldReport, FoldSource,
    FoldedDay, InputRows, WrittenSchema, check_fold, fold_date, write_schemas,
};
pub use graph::{Graph, Program, Stage, parent_dates};
pub use guard::lock_folder;
pub use judge::{Judge, Judged, Standing};
pub use make::makefile;
pub use packs::{FoundPage, SourcePack, find_page, list_packs, list_samples};
pub use parse::{
    ParseOptions, ParseReport, ParsedDataset, ParsedPack, RuleSchema, RuleSchemaOptions,
    SchemaFileState, StoredAs, parse_date, write_rule_schemas,
};
pub use place::{StageFailure, StageTry, flow_folder, log_path};
pub use report::{DateReport, FlowReport, FlowTrouble, StageOutcome, StageReport};
pub use scope::{FlowRuns, Scope, Sights};
pub use seed::{
    PLAN_HEAD, PLAN_LINES, PlanHead, SeedAnswer, SeedOptions, SeedReport, explain_seed, plan_seeds,
};
pub use shadow::{
    ShadowBegun, ShadowDate, ShadowFold, ShadowOptions, ShadowPair, ShadowRules, ShadowShell,
    ShadowSummary, ShadowTable, Shadowed, check_shadow_key, shadow_derived, shadow_key,
    summarize_shadow,
};
pub use turn::{FLOW_LEASES, is_running};
