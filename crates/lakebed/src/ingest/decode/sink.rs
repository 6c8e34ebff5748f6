//! Where settled records go: rows into batches, rejects, counts, drift.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer};

use crate::error::{Error, Result};
use crate::ingest::chunk::CsvHeader;
use crate::ingest::convert::{
    Column, DriftItem, Evidence, FaultCode, Memory, PresenceCounts, RejectDraft, Row, excerpt,
};
use crate::ingest::decode::{DecodeOptions, DecodeStats, Decoded, Mismatch};
use crate::spec::RejectReason;

/// A batch is ended before the texts of a column could pass the 32-bit offsets of Arrow.
pub(super) const MAX_BATCH_TEXT: usize = 1 << 30;
/// A batch has at most so many rows, so that the constant columns stay small.
const MAX_BATCH_ROWS: usize = 1 << 20;

/// The input that is being decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputOf<'c> {
    pub(super) file: &'c str,
    /// `json`, `csv` or `parquet`.
    pub(super) form: &'static str,
    /// For CSV: the header.
    pub(super) header: Option<&'c Arc<CsvHeader>>,
}

/// A reject that is no record at all.
pub(super) struct Unread<'t> {
    pub(super) code: FaultCode,
    pub(super) reason: String,
    pub(super) line: u64,
    pub(super) raw: &'t str,
}

/// Collects what a chunk gives.
pub(super) struct Sink<'c> {
    pub(super) row: Row<'c>,
    input: InputOf<'c>,
    options: DecodeOptions,
    source: &'c str,
    rows: usize,
    pending_text: usize,
    batches: Vec<RecordBatch>,
    rejects: Vec<RejectDraft>,
    pub(super) stats: DecodeStats,
    any_personal: bool,
}

impl<'c> Sink<'c> {
    pub(super) fn new(
        row: Row<'c>,
        input: InputOf<'c>,
        options: DecodeOptions,
        source: &'c str,
    ) -> Self {
        let fields = &row.plan.root.fields;
        Self {
            stats: DecodeStats {
                presence: PresenceCounts::new(&row.plan.specs),
                ..DecodeStats::default()
            },
            any_personal: fields.iter().any(|f| f.personal),
            row,
            input,
            options,
            source,
            rows: 0,
            pending_text: 0,
            batches: Vec::new(),
            rejects: Vec::new(),
        }
    }

    /// Makes room for a record of `length` bytes.
    #[inline]
    pub(super) fn room_for(&mut self, length: usize) -> Result<()> {
        let full = self.pending_text + length > MAX_BATCH_TEXT || self.rows >= MAX_BATCH_ROWS;
        if full && self.rows > 0 {
            self.end_batch()?;
        }
        self.pending_text += length;
        Ok(())
    }

    /// Ends the batch if a column of it has grown large; for inputs whose records have no length.
    pub(super) fn end_large_batch(&mut self) -> Result<()> {
        let memory = &self.row.memory;
        let is_large = |c: &Column| c.largest_text() > MAX_BATCH_TEXT;
        if memory.extra.bytes() > MAX_BATCH_TEXT || memory.columns.iter().any(is_large) {
            self.end_batch()?;
        }
        Ok(())
    }

    /// Cuts the pending record off again: it was no record.
    pub(super) fn undo(&mut self) {
        for column in &mut self.row.memory.columns {
            column.truncate(self.rows);
        }
    }

    /// Counts the pending record as a row or as a reject.
    #[inline]
    pub(super) fn settle(&mut self, line: impl FnOnce() -> u64, raw: impl FnOnce() -> String) {
        self.stats.records += 1;
        self.stats.presence.add_record(&self.row.memory.kinds);
        if self.row.faults.is_empty() {
            self.rows += 1;
            self.stats.rows += 1;
            self.stats.lone_surrogates += self.row.met.lone_surrogates;
            self.stats.nul_characters += self.row.met.nuls;
            if self.row.extra.is_empty() {
                self.row.memory.extra.push_null();
            } else {
                self.settle_extra(line());
            }
            return;
        }
        self.settle_reject(line(), raw);
    }

    #[cold]
    fn settle_extra(&mut self, line: u64) {
        self.stats.extra_rows += 1;
        let members = self.row.extra.trim_end_matches(',');
        let text = format!("{{{members}}}");
        // A record is smaller than a batch may be, so this cannot be too large; were it, the row
        // would lose its column and the batch be refused.
        let _fits = self.row.memory.extra.push(&text);
        self.note_unknown(line);
    }

    #[cold]
    fn settle_reject(&mut self, line: u64, raw: impl FnOnce() -> String) {
        self.undo();
        self.stats.rejected += 1;
        self.note_unknown(line);
        let file = self.input.file;
        let mut reasons = Vec::with_capacity(self.row.faults.len());
        for fault in self.row.faults.drain(..) {
            if fault.code != FaultCode::UnknownField {
                let reason = &fault.reason;
                let make = || DriftItem {
                    field: reason.field.clone(),
                    path: fault.place.clone(),
                    code: fault.code,
                    count: 0,
                    file: file.to_owned(),
                    line,
                    reason: reason.reason.clone(),
                    samples: Vec::new(),
                    hint: fault.hint.map(str::to_owned),
                    page: None,
                    evidence: None,
                };
                if let Some(item) = self.stats.drift.item(&fault.place, fault.code, make) {
                    item.count += 1;
                    if let Some(sample) = &fault.sample {
                        item.add_sample(sample);
                    }
                }
            }
            reasons.push(fault.reason);
        }
        if self.keeps_reject() {
            self.rejects.push(RejectDraft {
                file: file.to_owned(),
                line,
                reasons,
                form: self.input.form,
                raw: raw(),
                header: self.input.header.cloned(),
            });
        }
    }

    fn keeps_reject(&self) -> bool {
        match self.options.mismatch {
            Mismatch::Fail => self.rejects.len() < self.options.kept_rejects,
            Mismatch::Quarantine | Mismatch::Extra => true,
        }
    }

    /// Adds the unknown fields of the pending record to the drift.
    fn note_unknown(&mut self, line: u64) {
        for note in self.row.notes.drain(..) {
            let make = || {
                new_unknown(
                    note.field.clone(),
                    note.place.clone(),
                    self.input.file,
                    line,
                )
            };
            let code = FaultCode::UnknownField;
            if let Some(item) = self.stats.drift.item(&note.place, code, make) {
                item.count += 1;
                if let Some(sample) = &note.sample {
                    item.add_sample(sample);
                }
                item.evidence.get_or_insert_default().merge(&note.evidence);
            }
        }
    }

    /// An unknown column whose cells were empty `empty` times.
    pub(super) fn note_unknown_column(&mut self, name: &str, place: &str, line: u64, empty: u64) {
        let make = || new_unknown(name.to_owned(), place.to_owned(), self.input.file, line);
        if let Some(item) = self.stats.drift.item(place, FaultCode::UnknownField, make) {
            item.evidence.get_or_insert_default().nulls += empty;
        }
    }

    /// Counts what is no record as a reject.
    #[cold]
    pub(super) fn reject_unread(&mut self, unread: Unread<'_>) {
        self.undo();
        self.stats.rejected += 1;
        self.stats.not_records += 1;
        let file = self.input.file;
        let make = || DriftItem {
            field: String::new(),
            path: "$".to_owned(),
            code: unread.code,
            count: 0,
            file: file.to_owned(),
            line: unread.line,
            reason: unread.reason.clone(),
            samples: Vec::new(),
            hint: None,
            page: None,
            evidence: None,
        };
        let any_personal = self.any_personal;
        if let Some(item) = self.stats.drift.item("$", unread.code, make) {
            item.count += 1;
            if !any_personal {
                item.add_sample(&excerpt(unread.raw));
            }
        }
        if self.keeps_reject() {
            self.rejects.push(RejectDraft {
                file: file.to_owned(),
                line: unread.line,
                reasons: vec![RejectReason {
                    field: String::new(),
                    path: "$".to_owned(),
                    code: unread.code.as_str().to_owned(),
                    reason: unread.reason,
                }],
                form: self.input.form,
                raw: unread.raw.to_owned(),
                header: self.input.header.cloned(),
            });
        }
    }

    fn end_batch(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.pending_text = 0;
        if rows == 0 {
            return Ok(());
        }
        let schema = self.row.plan.arrow_schema();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (column, field) in self.row.memory.columns.iter_mut().zip(schema.fields()) {
            arrays.push(column.finish(field.data_type())?);
        }
        let unfinished = |e| Error::internal("finish the columns of a chunk").caused_by(e);
        arrays.push(Arc::new(constant(self.source, rows)?));
        arrays.push(Arc::new(self.row.memory.extra.finish()));
        self.batches
            .push(RecordBatch::try_new(schema, arrays).map_err(unfinished)?);
        Ok(())
    }

    /// What the chunk gave, and the worker's memory for the next one.
    pub(super) fn finish(mut self) -> Result<(Decoded, Memory)> {
        self.end_batch()?;
        let decoded = Decoded {
            batches: self.batches,
            rejects: self.rejects,
            stats: self.stats,
        };
        Ok((decoded, self.row.memory))
    }
}

fn new_unknown(field: String, path: String, file: &str, line: u64) -> DriftItem {
    DriftItem {
        reason: format!("the schema has no field for `{field}`"),
        field,
        path,
        code: FaultCode::UnknownField,
        count: 0,
        file: file.to_owned(),
        line,
        samples: Vec::new(),
        hint: Some(
            "add the field in the next version, or store it in `_extra` with `--on-mismatch extra`"
                .to_owned(),
        ),
        page: None,
        evidence: Some(Evidence::default()),
    }
}

/// A column of `rows` times the same text.
fn constant(text: &str, rows: usize) -> Result<StringArray> {
    let offsets = OffsetBuffer::from_repeated_length(text.len(), rows);
    StringArray::try_new(
        offsets,
        Buffer::from_vec(text.repeat(rows).into_bytes()),
        None,
    )
    .map_err(|e| Error::internal("fill the column `source`").caused_by(e))
}
