//! Flow: what wires the stages together over the packs and datasets of a lake.
//!
//! | part | what it does |
//! | --- | --- |
//! | `fold` | a date's rows and yesterday's snapshot into the snapshot and the events of the date |
//! | `guard` | what a replay must not do |
//! | `lanes` | items through several threads, in order |
//! | `packs` | the packs of a source, and one page out of them |
//! | `parse` | the packs of a date through the rules, into their datasets |
//! | `rows` | the rows of committed files, by field id |
//! | `seed` | which objects of a day's list are fetched in detail, as a file |

mod fold;
mod guard;
mod lanes;
mod packs;
mod parse;
mod rows;
mod seed;

pub use fold::{
    FoldAnswer, FoldOptions, FoldOutcome, FoldRefusal, FoldRefusalKind, FoldReport, FoldSource,
    FoldedDay, InputRows, WrittenSchema, fold_date, write_schemas,
};
pub use packs::{SourcePack, find_page, list_packs};
pub use parse::{ParseOptions, ParseReport, ParsedDataset, StoredAs, parse_date};
pub use seed::{
    PLAN_HEAD, PLAN_LINES, PlanHead, SeedAnswer, SeedOptions, SeedReport, explain_seed, plan_seeds,
};
