//! One input as chunks of whole records. Plain sync code, meant for a thread of its own.
//!
//! The one pass that reads the records also computes identity and size; both are known at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::ingest::chunk::{Chunk, ChunkBody};
use crate::ingest::read::body::{Splitter, TextBody};
use crate::ingest::read::columnar::ParquetRows;
use crate::ingest::read::form::{Form, declared_format, format_of_name};
use crate::ingest::read::head::open_text;
use crate::ingest::read::options::ReadOptions;
use crate::ingest::read::source::InputSource;
use crate::ingest::read::unpack::{Unpacked, open_unpacked};
use crate::name::ContentHash;
use crate::spec::InputFormat;

/// What is known of an input once it was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFacts {
    /// BLAKE3 of the unpacked bytes: the identity.
    pub content: ContentHash,
    /// Unpacked bytes.
    pub bytes: u64,
    /// What the user should know, though nothing failed.
    pub warnings: Vec<String>,
    /// Advice that belongs to whatever goes wrong with its records, such as a wrong delimiter.
    pub hints: Vec<String>,
    /// The form it was read in.
    pub form: Form,
    /// Records, where the file announces them (Parquet).
    pub records_hint: Option<u64>,
    /// No bytes, or blank lines only.
    pub is_empty: bool,
}

/// Reads one input.
pub struct ChunkReader {
    file: String,
    input: usize,
    form: Form,
    chunk_bytes: usize,
    warnings: Vec<String>,
    hints: Vec<String>,
    is_empty: bool,
    ended: bool,
    packed_read: Option<Arc<AtomicU64>>,
    body: Body,
}

enum Body {
    Text(Box<TextBody>),
    Parquet(Box<ParquetRows>),
}

impl ChunkReader {
    /// Opens an input and finds out its form.
    ///
    /// # Errors
    /// A failed file (`CorruptData`), with the file and, where there is one, the line; `LimitExceeded`
    /// for a document that is too large; `NotFound` or `Unavailable` for one that cannot be opened.
    pub fn open(source: &InputSource, input: usize, options: &ReadOptions) -> Result<Self> {
        Self::open_named(source, input, options).map_err(|e| e.with("file", source.display_name()))
    }

    fn open_named(source: &InputSource, input: usize, options: &ReadOptions) -> Result<Self> {
        let mut unpacked = open_unpacked(source)?;
        let format = declared_format(options, source.content_name());
        let mut warnings = std::mem::take(&mut unpacked.warnings);
        let mut packed_read = unpacked.packed_read.take();
        let mut reader = |form, body, hints, is_empty, more: Vec<String>| {
            warnings.extend(more);
            Self {
                file: source.display_name().to_owned(),
                input,
                form,
                chunk_bytes: options.chunk_bytes,
                warnings: std::mem::take(&mut warnings),
                hints,
                is_empty,
                ended: false,
                packed_read: packed_read.take(),
                body,
            }
        };
        if reads_as_parquet(&unpacked, options, format)? {
            let mut more = ignored_keys(options, Form::Parquet);
            let named = format_of_name(source.content_name());
            if named.is_some_and(|f| f != InputFormat::Parquet) {
                more.push(format!(
                    "`{}` is a Parquet file, whatever its name says: the content decided",
                    source.display_name()
                ));
            }
            let rows = ParquetRows::open(unpacked, options.chunk_bytes)?;
            let body = Body::Parquet(Box::new(rows));
            return Ok(reader(Form::Parquet, body, Vec::new(), false, more));
        }
        let opened = open_text(unpacked, format, options)?;
        let mut more = ignored_keys(options, opened.form);
        more.extend(opened.hints.iter().cloned());
        let body = Body::Text(Box::new(opened.body));
        Ok(reader(
            opened.form,
            body,
            opened.hints,
            opened.is_empty,
            more,
        ))
    }

    /// The form the input is read in.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Advice that belongs to whatever goes wrong with this input, such as a wrong delimiter.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Bytes of the file read so far, for a progress bar: packed ones where it is packed.
    #[must_use]
    pub fn bytes_done(&self) -> u64 {
        match (&self.packed_read, &self.body) {
            (Some(read), _) => read.load(Ordering::Relaxed),
            (None, Body::Text(text)) => text.stream.bytes(),
            (None, Body::Parquet(rows)) => rows.bytes_done(),
        }
    }

    /// Takes back the buffer of a chunk that was decoded, for one that is still to come.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if let Body::Text(text) = &mut self.body {
            text.window.recycle(buffer);
        }
    }

    /// The next whole records, in order; `None` at the end.
    ///
    /// # Errors
    /// A failed file, as for [`ChunkReader::open`].
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        if self.ended {
            return Ok(None);
        }
        let next = match &mut self.body {
            Body::Text(text) => text.next_chunk(self.input, self.chunk_bytes),
            Body::Parquet(rows) => rows.next_batch().map(|next| {
                next.map(|(batch, first_row)| Chunk {
                    input: self.input,
                    first_line: first_row,
                    offset: 0,
                    body: ChunkBody::Batch(batch),
                })
            }),
        };
        let next = next.map_err(|e| {
            let e = e.with("file", &self.file);
            self.hints.iter().fold(e, |e, hint| e.hint(hint.clone()))
        })?;
        self.ended = next.is_none();
        Ok(next)
    }

    /// What is known of the input, once [`ChunkReader::next_chunk`] gave `None`.
    ///
    /// # Errors
    /// `Internal` before the end: identity and checksums are known only there.
    pub fn finish(mut self) -> Result<InputFacts> {
        if !self.ended {
            return Err(Error::internal("input was not read to its end").with("file", &self.file));
        }
        let (content, bytes, records_hint) = match &self.body {
            Body::Text(text) => {
                let commas = match (&text.splitter, &text.held) {
                    (Splitter::Values(_), Some(held)) => held.trailing_commas,
                    (Splitter::Values(values), None) => values.trailing_commas(),
                    (Splitter::Lines(_) | Splitter::Csv(..), _) => 0,
                };
                self.warnings
                    .extend(trailing_comma_warning(&self.file, commas));
                (text.stream.content(), text.stream.bytes(), None)
            }
            Body::Parquet(rows) => (rows.content.clone(), rows.bytes, Some(rows.rows)),
        };
        Ok(InputFacts {
            content,
            bytes,
            warnings: self.warnings,
            hints: self.hints,
            form: self.form,
            records_hint,
            is_empty: self.is_empty,
        })
    }
}

fn trailing_comma_warning(file: &str, arrays: u64) -> Option<String> {
    (arrays > 0).then(|| {
        format!("`{file}` has a comma before the end of {arrays} array(s): accepted, though it is no JSON")
    })
}

/// Keys that are declared but mean nothing for this form.
fn ignored_keys(options: &ReadOptions, form: Form) -> Vec<String> {
    let mut ignored = Vec::new();
    if options.records.is_some() && !form.is_json() {
        ignored.push("records");
    }
    ignored
        .into_iter()
        .map(|key| {
            format!(
                "`{key}` is declared, but means nothing for a {} input",
                form.as_str()
            )
        })
        .collect()
}

/// Whether the input is read as Parquet: declared so, or by its magic bytes.
fn reads_as_parquet(
    unpacked: &Unpacked,
    options: &ReadOptions,
    format: Option<InputFormat>,
) -> Result<bool> {
    let declared = options.format;
    if unpacked.is_parquet {
        return match declared {
            None | Some(InputFormat::Parquet) => Ok(true),
            Some(InputFormat::Json | InputFormat::Jsonl | InputFormat::Csv | InputFormat::Tsv) => {
                Err(
                    Error::corrupt("input is a Parquet file, but another format is declared")
                        .hint("drop `format` of [input], or declare format = \"parquet\""),
                )
            }
        };
    }
    if format == Some(InputFormat::Parquet) {
        return Err(
            Error::corrupt("input is no Parquet file, though it is declared or named so")
                .hint("the file may be truncated or of another format: look at its first bytes"),
        );
    }
    Ok(false)
}
