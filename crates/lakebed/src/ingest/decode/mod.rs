//! Decoding: a [`Chunk`](crate::ingest::chunk::Chunk) in, finished Arrow columns, rejects, drift and
//! presence out.
//!
//! ```text
//! Chunk -> UTF-8 check -> records (JSON lines | JSON values | CSV rows | typed rows)
//!       -> convert::Row (values into truncatable columns, faults, unknown fields)
//!       -> good: the row stays | bad: the columns are cut back, the record becomes a reject
//! ```
//!
//! ING-1: a rejected record leaves no trace in the columns.
//! ING-2: presence counts of every field sum to the records that were read as records.
//! ING-3: the result depends on the chunk, the plan and the options alone.
//!
//! What does not belong here: reading and splitting files (`read`), threads, Parquet, commits.

mod csv;
mod lines;
mod outcome;
mod position;
mod rows;
mod sink;

pub use outcome::{DecodeStats, Decoded, Mismatch};

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::chunk::{Chunk, ChunkBody};
use crate::ingest::convert::{Memory, Plan, Row};
use crate::ingest::decode::sink::{InputOf, Sink};
use crate::name::SourceName;

/// Per-call choices of a [`Decoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// What to do with records that do not fit.
    pub mismatch: Mismatch,
    /// Most rejects of a chunk whose text is kept under [`Mismatch::Fail`].
    pub kept_rejects: usize,
}

impl DecodeOptions {
    /// The options of that policy.
    #[must_use]
    pub fn new(mismatch: Mismatch) -> Self {
        Self {
            mismatch,
            kept_rejects: 1000,
        }
    }
}

/// Turns chunks into columns; one per worker, reused over its chunks.
#[derive(Debug)]
pub struct Decoder {
    plan: Arc<Plan>,
    source: String,
    options: DecodeOptions,
    /// Absent before the first chunk and after a failed one.
    memory: Option<Memory>,
}

impl Decoder {
    /// A decoder for the rows of `source`.
    #[must_use]
    pub fn new(plan: Arc<Plan>, source: &SourceName, options: DecodeOptions) -> Self {
        Self {
            plan,
            source: source.as_str().to_owned(),
            options,
            memory: None,
        }
    }

    /// Decodes one chunk of the input named `input_name`.
    ///
    /// # Errors
    /// `CorruptData` where the whole file must fail: bytes that are not UTF-8 (context: `file`,
    /// `offset`), a value of an array or document that is not JSON (context: `file`, `line`).
    pub fn decode(&mut self, chunk: &Chunk, input_name: &str) -> Result<Decoded> {
        let plan = Arc::clone(&self.plan);
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => Memory::new(&plan)?,
        };
        let (form, is_typed, header) = match &chunk.body {
            ChunkBody::Lines(_) | ChunkBody::Values(_) => ("json", false, None),
            ChunkBody::Csv { header, .. } => ("csv", false, Some(header)),
            ChunkBody::Batch(_) => ("parquet", true, None),
        };
        let input = InputOf {
            file: input_name,
            form,
            header,
        };
        let keep_unknown = self.options.mismatch == Mismatch::Extra;
        let row = Row::new(&plan, memory, keep_unknown, is_typed);
        let mut sink = Sink::new(row, input, self.options, &self.source);
        match &chunk.body {
            ChunkBody::Lines(bytes) => {
                let text = utf8(bytes, chunk.offset, input_name)?;
                lines::decode_lines(&mut sink, text, chunk.first_line)?;
            }
            ChunkBody::Values(bytes) => {
                let text = utf8(bytes, chunk.offset, input_name)?;
                lines::decode_values(&mut sink, text, chunk.first_line, input_name)?;
            }
            ChunkBody::Csv { bytes, header } => {
                let text = utf8(bytes, chunk.offset, input_name)?;
                csv::decode_csv(&mut sink, text, header, chunk.first_line, input_name)?;
            }
            ChunkBody::Batch(batch) => rows::decode_batch(&mut sink, batch, chunk.first_line)?,
        }
        let (decoded, memory) = sink.finish()?;
        self.memory = Some(memory);
        Ok(decoded)
    }
}

/// The bytes as text, or a failed file with the offset of the first byte that is none.
fn utf8<'a>(bytes: &'a [u8], offset: u64, file: &str) -> Result<&'a str> {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Ok(text);
    }
    std::str::from_utf8(bytes).map_err(|e| {
        let within = u64::try_from(e.valid_up_to()).unwrap_or(0);
        Error::corrupt("the file is not UTF-8")
            .with("file", file)
            .with("offset", offset + within)
            .hint("declare the encoding, for example `--encoding gb18030` or `encoding = \"gbk\"` under [input]; nothing is guessed")
    })
}

#[cfg(test)]
mod tests;
