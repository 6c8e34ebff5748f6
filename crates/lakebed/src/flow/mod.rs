//! Flow: what wires the stages together over the packs and datasets of a lake.
//!
//! | part | what it does |
//! | --- | --- |
//! | `guard` | what a replay must not do |
//! | `packs` | the packs of a source, and one page out of them |
//! | `parse` | the packs of a date through the rules, into their datasets |
//! | `declared` | what a source declares that a flow is made of |
//! | `graph` | its stages, their order and their command lines |
//! | `scope` | dates of datasets, and what readers see of them |

mod declared;
mod graph;
mod guard;
mod packs;
mod parse;
mod scope;

pub use declared::{Declared, Derived, Folded, Seeded, WHOLE_DAY};
pub use graph::{Graph, Program, Stage, parent_dates};
pub use packs::{SourcePack, find_page, list_packs};
pub use parse::{ParseOptions, ParseReport, ParsedDataset, StoredAs, parse_date};
pub use scope::{Scope, Sights};
