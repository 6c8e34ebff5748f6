//! One JSON array of objects, each row on a line of its own.
//!
//! Integers and decimals are JSON numbers by their exact digits: a reader that turns numbers into
//! doubles must be told to keep them. NaN and infinities are texts. Columns that share a name in
//! the result get `_2`, `_3` and so on, since an object's keys must differ.

use std::collections::BTreeSet;
use std::io::Write;

use arrow::datatypes::Schema;
use lakebed::{Error, Result};

use super::value::{flush, push_json};
use crate::result::QueryResult;

/// Every column's key, already as JSON.
fn keys(schema: &Schema) -> Result<Vec<Vec<u8>>> {
    let mut taken = BTreeSet::new();
    schema
        .fields()
        .iter()
        .map(|field| {
            let mut key = field.name().clone();
            let mut n = 1;
            while !taken.insert(key.clone()) {
                n += 1;
                key = format!("{}_{n}", field.name());
            }
            serde_json::to_vec(&key)
                .map_err(|e| Error::internal("write a column name as JSON").caused_by(e))
        })
        .collect()
}

/// Writes all rows; returns how many.
pub async fn write_json(mut result: QueryResult, out: &mut (dyn Write + Send)) -> Result<u64> {
    let keys = keys(result.schema())?;
    let mut buffer = b"[".to_vec();
    let mut rows: u64 = 0;
    while let Some(batch) = result.next_batch().await? {
        for row in 0..batch.num_rows() {
            buffer.extend_from_slice(if rows == 0 { b"\n" } else { b",\n" });
            rows += 1;
            buffer.push(b'{');
            for (i, (key, column)) in keys.iter().zip(batch.columns()).enumerate() {
                if i > 0 {
                    buffer.push(b',');
                }
                buffer.extend_from_slice(key);
                buffer.push(b':');
                push_json(&mut buffer, &**column, row)?;
            }
            buffer.push(b'}');
        }
        flush(out, &mut buffer)?;
    }
    buffer.extend_from_slice(if rows == 0 { b"]\n" } else { b"\n]\n" });
    flush(out, &mut buffer)?;
    out.flush().map_err(super::write_error)?;
    Ok(rows)
}
