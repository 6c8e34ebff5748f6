//! Flow: what wires the stages together over the packs and datasets of a lake.
//!
//! | part | what it does |
//! | --- | --- |
//! | `guard` | what a replay must not do |
//! | `packs` | the packs of a source, and one page out of them |
//! | `shadow` | two sets of rules over the same pages, item by item |
//! | `parse` | the packs of a date through the rules, into their datasets |

mod guard;
mod packs;
mod parse;
mod shadow;

pub use packs::{FoundPage, SourcePack, find_page, list_packs};
pub use parse::{ParseOptions, ParseReport, ParsedDataset, ParsedPack, StoredAs, parse_date};
pub use shadow::{ShadowOptions, ShadowSummary, shadow_date, summarize_shadow};
