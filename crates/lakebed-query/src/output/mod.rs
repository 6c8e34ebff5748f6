//! Rows as a text table, JSON, CSV or Parquet.
//!
//! One form of each value everywhere: dates `YYYY-MM-DD`, instants `YYYY-MM-DDTHH:MM:SS.ffffffZ`,
//! decimals by their exact digits, floats by the shortest text that reads back as the same float,
//! bytes in base64; lists, structs and maps as JSON.

mod csv;
mod json;
mod parquet;
mod table;
mod value;

pub use csv::write_csv;
pub use json::write_json;
pub use parquet::write_parquet;
pub use table::write_table;
pub(crate) use value::plain_text;

use lakebed::Error;

/// A failed write to where the caller wants the rows; the `io::Error` is the source.
fn write_error(e: std::io::Error) -> Error {
    Error::io("write the rows to", "the output", e)
}
