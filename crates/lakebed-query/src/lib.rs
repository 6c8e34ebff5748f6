//! SQL over a Lakebed lake: the only crate that knows DataFusion.
//!
//! A query names tables `layer.dataset`. The catalog says which schema versions a dataset has and
//! which files can hold wanted rows; nothing is listed and no footer is read to plan. Files of all
//! versions are read as one table, column by column by field id.
//!
//! | module | what it does |
//! | --- | --- |
//! | `statement` | parses, refuses what writes, tells tables apart |
//! | `clauses` | refuses clauses that would be forgotten |
//! | `analyze` | walks a plan's expressions |
//! | `comparisons` | refuses or mends comparisons that would be wrong without a word |
//! | `literals` | keeps literals exact beside decimals, floats beside floats |
//! | `nested_text` | nested values cast to texts are JSON |
//! | `json_functions` | a look into texts of JSON |
//! | `text_equals`, `text_length` | texts that are views, compared and counted where they stand |
//! | `day_of` | the day of an instant, computed |
//! | `today` | the business date of now |
//! | `by_file` | aggregates over columns that the catalog knows are computed from it |
//! | `script` | cuts a text of several statements |
//! | `complete` | what may stand at a place of an unfinished text |
//! | `engine` | freshens the catalog, plans |
//! | `tables` | makes what a query names |
//! | `latest` | the newest row of each key |
//! | `history` | all rows of one key |
//! | `derive` | rows of derived datasets, in one order |
//! | `scan` | one dataset as a table |
//! | `system` | catalog rows as tables |
//! | `result`, `output` | batches out: text table, JSON, CSV, Parquet |
//! | `error`, `hints` | DataFusion's errors as ours |
//!
//! What does not belong here: bringing the catalog up to date (`engine::Freshen` is the hook), the
//! command line, writing to the lake.

mod analyze;
mod by_file;
mod checked;
mod clauses;
mod comparisons;
mod complete;
mod day_of;
mod derive;
mod engine;
mod error;
mod hints;
mod history;
mod json_functions;
mod latest;
mod literals;
mod nested_text;
mod output;
mod past;
mod queue_tables;
mod reads;
mod result;
mod scan;
mod script;
mod statement;
mod system;
mod tables;
mod text_equals;
mod text_length;
mod today;

pub use complete::Completion;
pub use derive::{DeriveQuery, DerivedParent};
pub use engine::{Freshen, QueryEngine, QueryOptions};
pub use history::ObjectKey;
pub use output::{write_csv, write_json, write_parquet, write_table};
pub use result::{QueryMeter, QueryResult, QueryStats, TableFiles};
pub use script::{Rest, Script, split_script};
