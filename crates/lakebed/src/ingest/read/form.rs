//! Which form an input has: declared, else by its name, else by its first byte; and which of the
//! JSON forms, told by reading its beginning.
//!
//! JSON whose first byte is `[` is a stream of values. Otherwise the first line decides: whole values
//! on it mean JSON lines; a value that goes on over the line's end means a stream of values. A first
//! line that is neither is one bad line of JSON lines, so that it becomes one reject, not a failed
//! file, unless what follows shows that it began a document which is broken further down.

use crate::error::{Error, Result};
use crate::ingest::read::options::ReadOptions;
use crate::ingest::read::source::has_extension;
use crate::ingest::read::syntax::{Checker, Step};
use crate::spec::InputFormat;

/// The form of an input, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One or more whole values a line.
    JsonLines,
    /// The elements of arrays, and values that follow each other.
    JsonValues,
    /// A document whose records are at the declared pointer.
    JsonDocument,
    /// Cells between commas or a declared delimiter.
    Csv,
    /// Cells between tabs or a declared delimiter.
    Tsv,
    /// Apache Parquet.
    Parquet,
}

impl Form {
    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonLines => "json_lines",
            Self::JsonValues => "json_values",
            Self::JsonDocument => "json_document",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
        }
    }

    /// Whether it is one of the JSON forms.
    #[must_use]
    pub fn is_json(self) -> bool {
        match self {
            Self::JsonLines | Self::JsonValues | Self::JsonDocument => true,
            Self::Csv | Self::Tsv | Self::Parquet => false,
        }
    }
}

/// What the declaration or the name says.
pub(super) fn declared_format(options: &ReadOptions, name: &str) -> Option<InputFormat> {
    options.format.or_else(|| format_of_name(name))
}

/// The form that the name's extension tells, once that of the packing is taken off.
pub(super) fn format_of_name(name: &str) -> Option<InputFormat> {
    let packed = ["gz", "gzip", "zst", "zstd"]
        .iter()
        .any(|e| has_extension(name, e));
    let name = match name.rfind('.') {
        Some(dot) if packed => &name[..dot],
        Some(_) | None => name,
    };
    let is = |extensions: &[&str]| extensions.iter().any(|e| has_extension(name, e));
    if is(&["jsonl", "ndjson", "json", "jl"]) {
        Some(InputFormat::Json)
    } else if is(&["csv"]) {
        Some(InputFormat::Csv)
    } else if is(&["tsv", "tab"]) {
        Some(InputFormat::Tsv)
    } else if is(&["parquet"]) {
        Some(InputFormat::Parquet)
    } else {
        None
    }
}

/// The form that the first byte of the text tells, where neither declaration nor name did.
pub(super) fn format_of_first_byte(options: &ReadOptions, first: u8) -> Result<InputFormat> {
    if options.declares_csv() {
        return Ok(InputFormat::Csv);
    }
    if matches!(first, b'{' | b'[') || options.records.is_some() {
        return Ok(InputFormat::Json);
    }
    Err(Error::invalid("neither name nor first byte tells the form of the input").hint(
        "declare format = \"csv\" (or json, jsonl, tsv) in [input] of the schema, or name the file accordingly",
    ))
}

/// A look at the beginning of a JSON text, until its form is clear.
#[derive(Debug)]
pub(super) struct JsonProbe {
    checker: Checker,
    at: usize,
    /// Line of the byte at `at`, the first line being 0.
    line: u64,
    /// Nothing but blanks so far on this line.
    fresh_line: bool,
    /// Whole values so far.
    values: u64,
    /// The first line is an opening brace alone.
    lone_brace: bool,
}

/// Whether every line after the first is by itself a whole object: then the first one was cut short,
/// and this is no document that ends too early.
fn rest_is_lines(text: &[u8]) -> bool {
    let mut later = text
        .split(|b| *b == b'\n')
        .skip(1)
        .map(<[u8]>::trim_ascii)
        .filter(|l| !l.is_empty())
        .peekable();
    later.peek().is_some() && later.all(is_whole_object)
}

fn is_whole_object(line: &[u8]) -> bool {
    let mut checker = Checker::new();
    line.first() == Some(&b'{')
        && line
            .iter()
            .enumerate()
            .all(|(i, byte)| match checker.feed(*byte) {
                Step::More => i + 1 < line.len(),
                Step::Done => i + 1 == line.len(),
                Step::DoneBefore | Step::Bad => false,
            })
}

impl JsonProbe {
    /// A probe of a text whose leading blank lines are taken off.
    pub(super) fn new() -> Self {
        Self {
            checker: Checker::new(),
            at: 0,
            line: 0,
            fresh_line: true,
            values: 0,
            lone_brace: false,
        }
    }

    /// The form, if `text` shows it (at its end it always does). Call again with more of the text.
    pub(super) fn look(&mut self, text: &[u8], at_end: bool) -> Option<Form> {
        while let Some(&byte) = text.get(self.at) {
            if self.values == 0 && self.checker.is_fresh() && byte == b'[' {
                return Some(Form::JsonValues);
            }
            if byte == b'\n' && self.checker.is_fresh() {
                if self.values > 0 {
                    return Some(Form::JsonLines);
                }
            } else if let Some(form) = self.step(byte) {
                return Some(form);
            }
            if byte == b'\n' {
                self.lone_brace |= self.line == 0 && text[..self.at].trim_ascii() == b"{";
                self.line += 1;
                self.fresh_line = true;
            } else {
                self.fresh_line &= byte.is_ascii_whitespace();
            }
            self.at += 1;
        }
        if !at_end {
            return None;
        }
        let whole = self.checker.is_fresh() || self.checker.ends_with_input();
        Some(if whole || self.line == 0 || rest_is_lines(text) {
            Form::JsonLines
        } else {
            Form::JsonValues
        })
    }

    fn step(&mut self, byte: u8) -> Option<Form> {
        match self.checker.feed(byte) {
            Step::More => None,
            Step::Done => self.value_done(),
            Step::DoneBefore => {
                let form = self.value_done();
                match (form, byte) {
                    (None, b'\n') => Some(Form::JsonLines),
                    (None, _) => self.step(byte),
                    (Some(_), _) => form,
                }
            }
            Step::Bad => Some(self.form_of_bad(byte)),
        }
    }

    fn value_done(&mut self) -> Option<Form> {
        self.values += 1;
        self.checker = Checker::new();
        (self.line > 0).then_some(Form::JsonValues)
    }

    /// What a text is whose first value is broken at this byte.
    fn form_of_bad(&self, byte: u8) -> Form {
        let next_record = self.fresh_line && byte == b'{';
        if self.line > 0 && !next_record && (self.line > 1 || self.lone_brace) {
            Form::JsonValues
        } else {
            Form::JsonLines
        }
    }
}

#[cfg(test)]
mod line_tests {
    use super::*;

    fn form(text: &str) -> Form {
        JsonProbe::new().look(text.as_bytes(), true).unwrap()
    }

    #[test]
    fn a_first_line_that_was_cut_short_is_one_bad_line() {
        assert_eq!(form("{\"k\":1,\"l\":[1,\n{\"k\":2}\n"), Form::JsonLines);
        assert_eq!(form("{\"k\":1,\"t\":\n{\"k\":2}"), Form::JsonLines);
        // A document that was cut short stays a document, and fails.
        assert_eq!(form("{\n \"a\": [\n{\"x\":1}\n"), Form::JsonValues);
        assert_eq!(form("{\"a\": [\n 1,\n"), Form::JsonValues);
    }
}
