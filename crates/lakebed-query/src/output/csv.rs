//! RFC 4180: a header, CRLF line ends, quotes where they are needed.
//!
//! NULL is an empty cell without quotes, the empty text is `""`, so that the two stay apart.

use std::io::Write;

use lakebed::Result;

use super::value::{flush, plain_text};
use crate::result::QueryResult;

fn push_cell(buffer: &mut Vec<u8>, text: &str) {
    let needs_quotes = text.is_empty()
        || text
            .bytes()
            .any(|b| matches!(b, b'"' | b',' | b'\n' | b'\r'))
        || text.starts_with([' ', '\t'])
        || text.ends_with([' ', '\t']);
    if !needs_quotes {
        buffer.extend_from_slice(text.as_bytes());
        return;
    }
    buffer.push(b'"');
    buffer.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    buffer.push(b'"');
}

/// Writes a header and all rows; returns how many rows.
pub async fn write_csv(mut result: QueryResult, out: &mut (dyn Write + Send)) -> Result<u64> {
    let mut buffer = Vec::new();
    for (i, field) in result.schema().fields().iter().enumerate() {
        if i > 0 {
            buffer.push(b',');
        }
        push_cell(&mut buffer, field.name());
    }
    buffer.extend_from_slice(b"\r\n");
    let mut rows: u64 = 0;
    while let Some(batch) = result.next_batch().await? {
        for row in 0..batch.num_rows() {
            rows += 1;
            for (i, column) in batch.columns().iter().enumerate() {
                if i > 0 {
                    buffer.push(b',');
                }
                if let Some(text) = plain_text(&**column, row)? {
                    push_cell(&mut buffer, &text);
                }
            }
            buffer.extend_from_slice(b"\r\n");
        }
        flush(out, &mut buffer)?;
    }
    flush(out, &mut buffer)?;
    out.flush().map_err(super::write_error)?;
    Ok(rows)
}
