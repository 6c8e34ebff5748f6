//! Flow: what wires the stages together over the packs and datasets of a lake.
//!
//! | part | what it does |
//! | --- | --- |
//! | `guard` | what a replay must not do |
//! | `packs` | the packs of a source, and one page out of them |
//! | `shadow` | two sets of rules over the same pages, item by item |
//! | `parse` | the packs of a date through the rules, into their datasets |
//! | `declared` | what a source declares that a flow is made of |
//! | `graph` | its stages, their order and their command lines |
//! | `scope` | dates of datasets, and what readers see of them |
//! | `judge`, `place` | whether a stage is done; where its stamp, its log and its tries lie |
//! | `turn` | one flow of a date at a time |
//! | `execute`, `process`, `report` | flows as they run, and what became of them |
//! | `make` | the same graph for make |

mod declared;
mod execute;
mod graph;
mod guard;
mod judge;
mod make;
mod packs;
mod parse;
mod place;
mod process;
mod report;
mod scope;
mod shadow;
mod turn;

pub use declared::{Declared, Derived, Folded, Seeded, WHOLE_DAY};
pub use execute::{FlowContext, FlowOptions, FlowWatch, run_flows};
pub use graph::{Graph, Program, Stage, parent_dates};
pub use guard::lock_folder;
pub use judge::{Judge, Judged, Standing};
pub use make::makefile;
pub use packs::{FoundPage, SourcePack, find_page, list_packs};
pub use parse::{ParseOptions, ParseReport, ParsedDataset, ParsedPack, StoredAs, parse_date};
pub use place::{StageFailure, StageTry, flow_folder, log_path};
pub use report::{DateReport, FlowReport, FlowTrouble, StageOutcome, StageReport};
pub use scope::{Scope, Sights};
pub use shadow::{ShadowOptions, ShadowSummary, shadow_date, summarize_shadow};
pub use turn::{FLOW_LEASES, is_running};
