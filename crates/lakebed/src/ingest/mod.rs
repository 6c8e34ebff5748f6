//! Ingest: files in, one commit out.
//!
//! ```text
//! inputs -> read (unpack, hash, decode, split) -> Chunk -> decode/convert (workers) -> columns
//!        -> row groups (workers) -> stage file (one thread, in order) -> commit -> catalog
//! ```
//!
//! `infer` looks at files before there is a schema: evidence per field, and proposed fields with reasons.

mod assemble;
mod bounds;
mod call;
pub mod chunk;
pub mod convert;
mod correct;
mod data_file;
pub mod decode;
mod encodings;
pub mod infer;
mod inputs;
pub mod json;
pub mod native;
mod pipeline;
mod progress;
pub mod raw;
pub mod read;
mod rejects;
mod report;
mod request;
mod run;
mod table;
mod write;

#[cfg(test)]
mod tests;

pub use progress::{Progress, Silent};
pub use rejects::{KeptReject, Retry, for_each_reject, retry_inputs};
pub use request::{
    IngestOutcome, IngestReport, IngestRequest, REPORT_FORMAT, ReplacedRevision, RevisionTarget,
    SkippedInput, StoredInput, WrittenFile,
};
pub use run::ingest;
pub use table::{
    CommittedTable, LooseTable, StagedTable, TableEncoder, TableGroup, TableRequest, TableStage,
    commit_table, discard_table,
};
