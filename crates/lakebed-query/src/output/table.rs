//! A text table for people, aligned by the width that characters take on a screen.
//!
//! All rows are held, since widths must be known before the first line. NULL is `NULL`; line breaks
//! and other control characters are escaped, so that a row is a line.

use std::io::Write;

use arrow::datatypes::DataType;
use lakebed::Result;
use unicode_width::UnicodeWidthStr;

use super::value::{flush, plain_text};
use crate::result::QueryResult;

const NULL: &str = "NULL";

fn on_one_line(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

fn push_line(buffer: &mut Vec<u8>, cells: &[String], widths: &[usize], right: &[bool]) {
    let mut line = String::new();
    for (i, ((cell, width), right)) in cells.iter().zip(widths).zip(right).enumerate() {
        if i > 0 {
            line.push_str(" | ");
        }
        let gap = " ".repeat(width.saturating_sub(cell.width()));
        if *right {
            line.push_str(&gap);
        }
        line.push_str(cell);
        if !*right {
            line.push_str(&gap);
        }
    }
    buffer.extend_from_slice(line.trim_end().as_bytes());
    buffer.push(b'\n');
}

/// Writes a header and all rows; returns how many rows.
pub async fn write_table(mut result: QueryResult, out: &mut (dyn Write + Send)) -> Result<u64> {
    let fields = result.schema().fields().clone();
    let header: Vec<String> = fields.iter().map(|f| on_one_line(f.name())).collect();
    let right: Vec<bool> = fields
        .iter()
        .map(|f| f.data_type().is_numeric() && !matches!(f.data_type(), DataType::Null))
        .collect();
    let mut widths: Vec<usize> = header.iter().map(|h| h.width()).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    while let Some(batch) = result.next_batch().await? {
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(widths.len());
            for (column, width) in batch.columns().iter().zip(&mut widths) {
                let text = plain_text(&**column, row)?;
                let cell = text.map_or_else(|| NULL.to_owned(), |t| on_one_line(&t));
                *width = cell.width().max(*width);
                cells.push(cell);
            }
            rows.push(cells);
        }
    }
    let mut buffer = Vec::new();
    push_line(&mut buffer, &header, &widths, &vec![false; widths.len()]);
    let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    buffer.extend_from_slice(rules.join("-+-").as_bytes());
    buffer.push(b'\n');
    for cells in &rows {
        push_line(&mut buffer, cells, &widths, &right);
        if buffer.len() > 1 << 16 {
            flush(out, &mut buffer)?;
        }
    }
    flush(out, &mut buffer)?;
    out.flush().map_err(super::write_error)?;
    Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
}
