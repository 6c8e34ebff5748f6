//! Ingest: files in, one commit out.
//!
//! ```text
//! inputs -> read (unpack, hash, decode, split) -> Chunk -> decode/convert (workers) -> columns
//!        -> row groups (workers) -> stage file (one thread, in order) -> commit -> catalog
//! ```

pub mod chunk;
pub mod convert;
pub mod decode;
pub mod json;
pub mod native;
pub mod raw;
