//! Reading: from what the user names to [`Chunk`](crate::ingest::chunk::Chunk)s of whole records.
//!
//! ```text
//! arguments -> source (files, globs, zip members, standard input)
//!           -> unpack (by magic bytes) -> text (hash, byte order mark, decoding)
//!           -> form (told apart by reading) -> split (lines, values, csv) -> Chunk
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `source` | arguments to inputs, in order |
//! | `first` | where kept rejects were first met |
//! | `archive` | zip members |
//! | `unpack` | gzip, zstd and zip to plain bytes |
//! | `text` | hash, byte order mark and decoding of the plain bytes |
//! | `options` | the reading rules of one call, and their hash |
//! | `form` | which form an input has |
//! | `syntax` | a strict JSON check without recursion |
//! | `pointer` | the records of a document |
//! | `lines`, `values`, `csv` | where records end |
//! | `head` | the beginning of a text, until its form is clear |
//! | `body` | its records as chunks |
//! | `window` | the bytes between two cuts, with line and offset |
//! | `columnar` | Parquet |
//! | `reader` | one input as chunks |
//!
//! Invariants: a record is never cut, dropped or changed; line numbers are physical lines of the
//! unpacked input; memory is bounded by the chunk size and the largest record (a document with a
//! `records` pointer is held whole). What a record *means* is decided by the decoder, not here.

mod archive;
mod body;
mod columnar;
mod csv;
mod first;
mod form;
mod head;
mod lines;
mod options;
mod pointer;
mod reader;
mod source;
mod syntax;
mod text;
mod unpack;
mod values;
mod window;

#[cfg(test)]
mod tests;

pub(in crate::ingest) use csv::{csv_records, split_cells};
pub use first::{FirstPlace, FirstPlaces};
pub use form::Form;
pub use options::{DEFAULT_CHUNK_BYTES, ReadOptions, rules_hash};
pub use reader::{ChunkReader, InputFacts};
pub use source::{InputSource, resolve_inputs, resolve_inputs_with};
pub use text::hash_input;
