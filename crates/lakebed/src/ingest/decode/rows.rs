//! Typed chunks: rows of Arrow batches.

use arrow_array::{Array, RecordBatch};

use crate::error::Result;
use crate::ingest::convert::{TypedRow, push_member, write_members};
use crate::ingest::decode::sink::Sink;

/// How often the size of the columns is looked at.
const ROWS_BETWEEN_CHECKS: usize = 1024;

/// The rows of one batch; `first_row` = the number of the first one, from 1.
pub(super) fn decode_batch(sink: &mut Sink<'_>, batch: &RecordBatch, first_row: u64) -> Result<()> {
    let plan = sink.row.plan;
    for (line, index) in (first_row..).zip(0..batch.num_rows()) {
        let members = TypedRow::of_batch(batch, index);
        let row = &mut sink.row;
        row.begin();
        let mut columns = std::mem::take(&mut row.memory.columns);
        row.typed_level(&members, &plan.root, &mut columns, true);
        row.memory.columns = columns;
        let raw = || {
            let mut out = String::new();
            write_members(&mut out, &members);
            out
        };
        sink.settle(|| line, raw);
        if index % ROWS_BETWEEN_CHECKS == ROWS_BETWEEN_CHECKS - 1 {
            sink.end_large_batch()?;
        }
    }
    for (name, array) in TypedRow::of_batch(batch, 0).iter() {
        if plan.root.input.find(name, usize::MAX).is_none() {
            let mut place = "$".to_owned();
            push_member(&mut place, name);
            let nulls = u64::try_from(array.logical_null_count()).unwrap_or(0);
            sink.note_unknown_column(name, &place, first_row, nulls);
        }
    }
    Ok(())
}
