//! Faults of records: stable codes, the reasons of a reject, and JSON paths in words.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::ingest::chunk::CsvHeader;
use crate::spec::{RejectReason, RejectRecord};

/// Why a record, or a field of it, did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultCode {
    /// No value in a required field.
    Missing,
    /// A value of another type.
    Type,
    /// Outside the range of the type.
    Range,
    /// More digits than the type keeps.
    Precision,
    /// A text that is not written as declared.
    Format,
    /// Not one of the declared values.
    Enum,
    /// A member or column that the schema does not know.
    UnknownField,
    /// A key twice in one object.
    DuplicateKey,
    /// Not JSON, or not CSV.
    Syntax,
    /// Fewer or more cells than the header has.
    Cells,
    /// A row that repeats the header.
    HeaderRow,
    /// A scalar, null or array among records.
    NotARecord,
    /// NaN or an infinity where none is accepted.
    Nan,
}

impl FaultCode {
    /// The stable code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Type => "type",
            Self::Range => "range",
            Self::Precision => "precision",
            Self::Format => "format",
            Self::Enum => "enum",
            Self::UnknownField => "unknown_field",
            Self::DuplicateKey => "duplicate_key",
            Self::Syntax => "syntax",
            Self::Cells => "cells",
            Self::HeaderRow => "header_row",
            Self::NotARecord => "not_a_record",
            Self::Nan => "nan",
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FaultCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A rejected record, complete but for the index of its input in the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectDraft {
    /// Name of the input as the caller gave it.
    pub file: String,
    /// Physical line, from 1, on which the record begins; the row number for typed inputs.
    pub line: u64,
    /// All faults, the first one first; never empty.
    pub reasons: Vec<RejectReason>,
    /// `json`, `csv` or `parquet`.
    pub form: &'static str,
    /// The record's text as it stood in the decoded input.
    pub raw: String,
    /// For CSV: the header of the file, shared by its rejects.
    pub header: Option<Arc<CsvHeader>>,
}

impl RejectDraft {
    /// The line of the rejects file; `input` = index among the commit's inputs.
    #[must_use]
    pub fn into_record(self, input: u32) -> RejectRecord {
        let (field, path, reason) = match self.reasons.first() {
            Some(r) => (r.field.clone(), r.path.clone(), r.reason.clone()),
            None => (String::new(), "$".to_owned(), String::new()),
        };
        RejectRecord {
            file: self.file,
            input,
            line: self.line,
            field,
            path,
            reason,
            reasons: self.reasons,
            form: self.form.to_owned(),
            raw: self.raw,
            delimiter: self.header.as_ref().map(|h| char::from(h.delimiter)),
            quote: self.header.as_ref().map(|h| char::from(h.quote)),
            header: self.header.map_or_else(Vec::new, |h| h.names.clone()),
            url: None,
        }
    }
}

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<'p> {
    /// A member that the schema names.
    Member(&'p str),
    /// A key of a map.
    Key(String),
    /// An element of a list.
    Index(usize),
}

/// Appends a member to a JSON path: `.name`, or `["odd name"]`.
pub(crate) fn push_member(path: &mut String, name: &str) {
    let plain = name
        .chars()
        .enumerate()
        .all(|(i, c)| c == '_' || c.is_alphabetic() || (i > 0 && c.is_numeric()));
    if plain && !name.is_empty() {
        path.push('.');
        path.push_str(name);
    } else {
        path.push('[');
        push_json_string(path, name);
        path.push(']');
    }
}

/// Appends `text` as a JSON string with its quotes.
pub(crate) fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                // Writing to a String cannot fail.
                let _ignored = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends one reference token of a JSON pointer, its `/` included.
pub(crate) fn push_pointer(pointer: &mut String, name: &str) {
    pointer.push('/');
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Appends the exact JSON path of `steps` to `out`, from `$` on.
pub(crate) fn write_path(out: &mut String, steps: &[Step<'_>]) {
    out.push('$');
    for step in steps {
        match step {
            Step::Member(name) => push_member(out, name),
            Step::Key(name) => push_member(out, name),
            Step::Index(i) => {
                let _ignored = write!(out, "[{i}]");
            }
        }
    }
}

/// Appends the path of the kind of place: list indexes and map keys become `[*]`.
pub(crate) fn write_general_path(out: &mut String, steps: &[Step<'_>]) {
    out.push('$');
    for step in steps {
        match step {
            Step::Member(name) => push_member(out, name),
            Step::Key(_) | Step::Index(_) => out.push_str("[*]"),
        }
    }
}

/// Appends the JSON pointer of `steps`.
pub(crate) fn write_pointer(out: &mut String, steps: &[Step<'_>]) {
    for step in steps {
        match step {
            Step::Member(name) => push_pointer(out, name),
            Step::Key(name) => push_pointer(out, name),
            Step::Index(i) => {
                let _ignored = write!(out, "/{i}");
            }
        }
    }
}

/// Longest excerpt of a value in a reason or sample, in characters.
const EXCERPT_CHARS: usize = 80;

/// The value's text, cut where it is long.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
