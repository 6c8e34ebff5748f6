//! The reading rules of one call, checked once, and the hash by which equal rules are recognised.
//!
//! Absent keys get their defaults here, so that declaring a default changes nothing.

use encoding_rs::{Encoding, UTF_8};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::ingest::read::form::Form;
use crate::ingest::read::pointer::Pointer;
use crate::name::ContentHash;
use crate::spec::{InputFormat, ReadSpec};

/// Bytes of text that a chunk aims at.
pub const DEFAULT_CHUNK_BYTES: usize = 4 << 20;

/// How inputs are read: the checked form of a [`ReadSpec`].
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Declared form.
    pub(super) format: Option<InputFormat>,
    /// Declared encoding; a byte order mark beats it.
    pub(super) encoding: &'static Encoding,
    /// Declared delimiter.
    pub(super) delimiter: Option<u8>,
    /// Declared quote.
    pub(super) quote: Option<u8>,
    /// Declared column names.
    pub(super) header: Option<Vec<String>>,
    /// Where a document's records are.
    pub(super) records: Option<Pointer>,
    /// Whether an input without any record is fine.
    pub(super) allow_empty: bool,
    /// Bytes of text that a chunk aims at.
    pub(super) chunk_bytes: usize,
}

impl ReadOptions {
    /// Checks a specification.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown encoding, a delimiter or quote that is not one ASCII byte, a
    /// pointer that is none, or keys that contradict each other.
    pub fn new(spec: &ReadSpec) -> Result<Self> {
        let delimiter = spec.delimiter.as_deref().map(delimiter_byte).transpose()?;
        let quote = match spec.quote.as_deref() {
            Some(text) => Some(one_byte("quote", text)?),
            None => None,
        };
        let options = Self {
            format: spec.format,
            encoding: encoding(spec)?,
            delimiter,
            quote,
            header: spec.header.clone(),
            records: spec.records.as_deref().map(Pointer::parse).transpose()?,
            allow_empty: false,
            chunk_bytes: DEFAULT_CHUNK_BYTES,
        };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let quote = self.quote_byte();
        for tab in [false, true] {
            if self.delimiter_byte(tab) == quote {
                return Err(Error::invalid("delimiter and quote are the same character"));
            }
        }
        if let Some(header) = &self.header {
            if header.is_empty() {
                return Err(Error::invalid("`header` of [input] names no column"));
            }
            for (i, name) in header.iter().enumerate() {
                if header[..i].contains(name) {
                    return Err(Error::invalid(format!(
                        "`header` of [input] names the column `{name}` twice"
                    )));
                }
            }
        }
        match (&self.records, self.format) {
            (
                Some(_),
                Some(
                    format @ (InputFormat::Jsonl
                    | InputFormat::Csv
                    | InputFormat::Tsv
                    | InputFormat::Parquet),
                ),
            ) => Err(Error::invalid(format!(
                "`records` points into a JSON document, but the format is declared as `{}`",
                format_name(format)
            ))
            .hint("drop one of the two, or declare format = \"json\"")),
            (Some(_), Some(InputFormat::Json) | None) | (None, _) => Ok(()),
        }
    }

    /// The same rules, with an input without records accepted (as 0 rows) or refused.
    #[must_use]
    pub fn with_allow_empty(mut self, allow: bool) -> Self {
        self.allow_empty = allow;
        self
    }

    /// The same rules with another chunk size; at least one byte.
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes.max(1);
        self
    }

    /// The delimiter of a CSV (`tab` false) or TSV input.
    pub(super) fn delimiter_byte(&self, tab: bool) -> u8 {
        self.delimiter.unwrap_or(if tab { b'\t' } else { b',' })
    }

    pub(super) fn quote_byte(&self) -> u8 {
        self.quote.unwrap_or(b'"')
    }

    /// Whether something is declared that only CSV has.
    pub(super) fn declares_csv(&self) -> bool {
        self.delimiter.is_some() || self.quote.is_some() || self.header.is_some()
    }
}

fn format_name(format: InputFormat) -> &'static str {
    match format {
        InputFormat::Json => "json",
        InputFormat::Jsonl => "jsonl",
        InputFormat::Csv => "csv",
        InputFormat::Tsv => "tsv",
        InputFormat::Parquet => "parquet",
    }
}

fn encoding(spec: &ReadSpec) -> Result<&'static Encoding> {
    match &spec.encoding {
        None => Ok(UTF_8),
        Some(label) => Encoding::for_label_no_replacement(label.as_bytes()).ok_or_else(|| {
            Error::invalid(format!("`{label}` is not an encoding")).hint(
                "encodings are WHATWG labels: utf-8, utf-16le, gbk, gb18030, big5, shift_jis, euc-kr, windows-1252, ...",
            )
        }),
    }
}

/// `\t` written as two characters is what a shell hands on for a tab.
fn delimiter_byte(text: &str) -> Result<u8> {
    if text == "\\t" {
        return Ok(b'\t');
    }
    one_byte("delimiter", text)
}

fn one_byte(what: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [b'\n' | b'\r'] => Err(Error::invalid(format!("{what} cannot be a line break"))),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Error::invalid(format!(
            "{what} `{text}` is not one ASCII character"
        ))),
    }
}

/// The hash of the effective reading rules of an input of that form: 16 hex digits.
///
/// Only rules that the form knows take part, with their defaults filled in: equal rules, equal hash.
///
/// # Errors
/// As [`ReadOptions::new`].
pub fn rules_hash(spec: &ReadSpec, form: Form) -> Result<String> {
    let options = ReadOptions::new(spec)?;
    let mut rules = Map::new();
    rules.insert("form".into(), json!(form.as_str()));
    rules.insert("allow_nan".into(), json!(spec.allow_nan.unwrap_or(false)));
    let nan_default = form == Form::Parquet;
    rules.insert(
        "nan_as_null".into(),
        json!(spec.nan_as_null.unwrap_or(nan_default)),
    );
    match form {
        Form::Parquet => {}
        Form::JsonLines | Form::JsonValues => {
            rules.insert("encoding".into(), json!(options.encoding.name()));
        }
        Form::JsonDocument => {
            rules.insert("encoding".into(), json!(options.encoding.name()));
            rules.insert("records".into(), json!(spec.records));
        }
        Form::Csv | Form::Tsv => {
            let delimiter = options.delimiter_byte(form == Form::Tsv);
            rules.insert("form".into(), json!(Form::Csv.as_str()));
            rules.insert("encoding".into(), json!(options.encoding.name()));
            rules.insert("delimiter".into(), json!(delimiter));
            rules.insert("quote".into(), json!(options.quote_byte()));
            rules.insert("header".into(), json!(options.header));
        }
    }
    rules.sort_keys();
    let text = Value::Object(rules).to_string();
    Ok(ContentHash::of(text.as_bytes()).short().to_owned())
}
