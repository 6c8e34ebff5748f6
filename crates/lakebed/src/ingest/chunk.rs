//! A piece of an input that one worker decodes alone: whole records, in order.

use std::sync::Arc;

use arrow_array::RecordBatch;

/// The header of a CSV input, shared by its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvHeader {
    /// Column names in order, exactly as written; unique.
    pub names: Vec<String>,
    /// Delimiter, one ASCII byte.
    pub delimiter: u8,
    /// Quote, one ASCII byte.
    pub quote: u8,
    /// Whether a row equal to the header is a reject (false where the header was declared).
    pub from_file: bool,
}

/// What a chunk's records look like.
#[derive(Debug, Clone)]
pub enum ChunkBody {
    /// JSON lines: each physical line is one unit of one or more whole values.
    Lines(Vec<u8>),
    /// JSON values of an array, a document or a concatenation: whole values with white space between
    /// them, or nothing where they followed each other directly (`{}{}`). Brackets and commas around
    /// array elements are blanks by now, so that offsets and lines stay those of the file.
    /// A value that is not well formed is a failed file.
    Values(Vec<u8>),
    /// CSV records without the header line.
    Csv {
        /// Whole records, the last line break included where there was one.
        bytes: Vec<u8>,
        /// The header.
        header: Arc<CsvHeader>,
    },
    /// Rows of a typed input.
    Batch(RecordBatch),
}

/// Whole records of one input.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Index of the input in the call.
    pub input: usize,
    /// Physical line (from 1) on which the body begins; for typed inputs the first row number (from 1).
    pub first_line: u64,
    /// Offset of the body's first byte in the unpacked, decoded input.
    pub offset: u64,
    /// The records. Text bodies are decoded to UTF-8 already where the input was in another encoding;
    /// UTF-8 inputs are not checked yet: the worker does that and reports the offset.
    pub body: ChunkBody,
}
