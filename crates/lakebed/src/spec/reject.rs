//! A line of a rejects file: one input record that did not pass, whole, with every reason.

use serde::{Deserialize, Serialize};

/// A rejected record. `_lake/rejects/<layer>/<dataset>/dt=.../rejects-<16 hex>.jsonl.zst` holds one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectRecord {
    /// Name of the input: its base name, with folders where two inputs of a call share it.
    pub file: String,
    /// Index of the input among those of its commit, from 0.
    pub input: u32,
    /// Physical line, from 1, on which the record begins; for Parquet inputs the row number, from 1.
    pub line: u64,
    /// First field at fault; empty when the record as a whole could not be read.
    pub field: String,
    /// JSON path of the first fault, such as `$.author.name` or `$.tags[2]`; `$` = the record itself.
    pub path: String,
    /// Why, in one line.
    pub reason: String,
    /// All faults of the record, the first one included.
    pub reasons: Vec<RejectReason>,
    /// How to read `raw` again: `json`, `csv` or `parquet` (the row as JSON); `page` = not at all: it is what the
    /// parse rules could read of a page, as JSON.
    pub form: String,
    /// The record's text as it stood in the (decoded) input; bytes that are no text are escaped.
    pub raw: String,
    /// For CSV: the header cells of its file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub header: Vec<String>,
    /// For CSV: the delimiter of its file; absent where an older program wrote it:
    /// as the schema says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delimiter: Option<char>,
    /// For CSV: the quote of its file; absent as `delimiter` is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quote: Option<char>,
    /// For `page`: where it was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub url: Option<String>,
}

/// `form` of what the parse rules rejected.
pub const PAGE_FORM: &str = "page";

/// Codes of what was no record at all, whatever the schema says.
const NOT_RECORDS: [&str; 4] = ["syntax", "not_a_record", "cells", "header_row"];

impl RejectRecord {
    /// Whether it was read as a record: another schema version may take it.
    #[must_use]
    pub fn was_read(&self) -> bool {
        let unread = |r: &RejectReason| NOT_RECORDS.contains(&r.code.as_str());
        self.form != PAGE_FORM && !self.reasons.iter().any(unread)
    }
}

/// One fault of a rejected record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectReason {
    /// Top-level field; empty when the record as a whole could not be read.
    pub field: String,
    /// JSON path.
    pub path: String,
    /// Stable code: `missing`, `type`, `range`, `precision`, `format`, `enum`, `unknown_field`,
    /// `duplicate_key`, `syntax`, `cells`, `header_row`, `not_a_record`, `nan`.
    pub code: String,
    /// In words, with the value.
    pub reason: String,
}
