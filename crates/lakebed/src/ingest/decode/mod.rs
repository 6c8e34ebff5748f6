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

mod outcome;

pub use outcome::{DecodeStats, Decoded, Mismatch};

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::chunk::Chunk;
use crate::ingest::convert::Plan;
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
}

impl Decoder {
    /// A decoder for the rows of `source`.
    #[must_use]
    pub fn new(plan: Arc<Plan>, source: &SourceName, options: DecodeOptions) -> Self {
        Self {
            plan,
            source: source.as_str().to_owned(),
            options,
        }
    }

    /// Decodes one chunk of the input named `input_name`.
    ///
    /// # Errors
    /// `CorruptData` where the whole file must fail: bytes that are not UTF-8 (context: `file`,
    /// `offset`), a value of an array or document that is not JSON (context: `file`, `line`).
    pub fn decode(&mut self, chunk: &Chunk, input_name: &str) -> Result<Decoded> {
        let _unused = (chunk, input_name, &self.plan, &self.source, self.options);
        Err(Error::internal("decode a chunk"))
    }
}
