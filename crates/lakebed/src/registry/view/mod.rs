//! A statement that shows all schema versions of a dataset as one table to another engine.
//!
//! ```text
//! published versions --merge_columns--> the columns of the table
//!        |  for each version: shape      how its files yield each column, by field id
//!        v
//!   dialect (DuckDB, ClickHouse, Spark, Trino): shapes become SQL text
//!        v
//!   statement: one SELECT a version, UNION ALL, a view around it where one is named
//! ```
//!
//! | file | what it knows |
//! | --- | --- |
//! | `shape` | how a type of a version becomes the type of the table |
//! | `cast` | which values of a retyped field are kept whole, and what they become |
//! | `dialect` | what every engine must be able to say, and the expressions made of it |
//! | `duckdb` `clickhouse` `spark` `trino` | how that engine says it |
//! | `lines` | the statement for a dataset of JSON lines |
//! | `location` | where the lake lies for an engine, and what it would misread there |
//! | `statement` | the whole |
//!
//! What the statement shows is what `lakebed sql` shows: names, order and types come from the same
//! merge. Nothing is read here; docs/views.md tells users of it.

mod cast;
mod clickhouse;
mod dialect;
mod duckdb;
mod lines;
mod location;
mod shape;
mod spark;
mod statement;
mod trino;

#[cfg(test)]
mod tests;

pub use dialect::Engine;
pub use lines::write_lines_view;
pub use statement::{ViewColumn, ViewRequest, ViewStatement, write_view};
