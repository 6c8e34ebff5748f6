//! What an ingest is asked for and what it answers: the shapes of the command's JSON.

use serde::Serialize;

use crate::ingest::convert::{Drift, PresenceCounts};
use crate::ingest::decode::Mismatch;
use crate::ingest::read::InputSource;
use crate::name::{BatchLabel, CommitId, ContentHash, DatasetRef, RunName};
use crate::spec::{By, FileFormat, LoadKind, ParentSpec, Provenance, ReadSpec};
use crate::time::BusinessDate;

/// Version of the JSON result.
pub const REPORT_FORMAT: u32 = 1;

/// Which revision of its date a call writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RevisionTarget {
    /// It adds to the active one.
    #[default]
    Join,
    /// It adds to the active one, while no record after this one has touched the date; 0 = none has.
    JoinUnchanged(u64),
    /// It builds the next one, which takes the place of the active one.
    Replace,
    /// It builds the next one, which is kept apart until a switch shows it.
    Keep,
}

/// One call of ingest.
#[derive(Debug, Clone)]
pub struct IngestRequest {
    /// Into which dataset.
    pub dataset: DatasetRef,
    /// Of which business date.
    pub dt: BusinessDate,
    /// From which inputs.
    pub inputs: Vec<InputSource>,
    /// As which format; `None` = as the dataset's files are, Parquet where it has none yet.
    pub format: Option<FileFormat>,
    /// Under which published version; `None` = the newest.
    pub schema_version: Option<u32>,
    /// Reading rules of this call; they override the schema's `[input]`.
    pub read: ReadSpec,
    /// What happens to records that do not fit.
    pub mismatch: Mismatch,
    /// The caller's label.
    pub batch: Option<BatchLabel>,
    /// The run.
    pub run: Option<RunName>,
    /// Which revision of the date it writes.
    pub revision: RevisionTarget,
    /// Seal the date with this commit.
    pub complete: bool,
    /// Add to a sealed date.
    pub late: bool,
    /// Accept inputs without records.
    pub allow_empty: bool,
    /// Store again what was retired.
    pub restore: bool,
    /// The commit whose kept rejects the inputs are; `None` = they come from outside.
    pub rejects_of: Option<CommitId>,
    /// Full or incremental load.
    pub load: LoadKind,
    /// What the inputs were derived from; empty = they come from outside.
    pub parents: Vec<ParentSpec>,
    /// Top-level columns whose bounds go into the log with each file.
    pub bounds: Vec<String>,
    /// How the rows came to be; `None` = live, or backfill for a past date that was never opened.
    pub provenance: Option<Provenance>,
    /// Who asks.
    pub by: By,
    /// Worker threads; `None` = the machine's.
    pub threads: Option<usize>,
    /// Bytes of text in a row group; `None` = 16 MiB.
    pub group_bytes: Option<usize>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IngestOutcome {
    /// A record was put.
    Committed,
    /// Every input was stored before; nothing was written.
    AlreadyThere,
    /// Records do not fit and the policy is `fail`; nothing was written ([`IngestReport::refusal`]).
    Refused,
}

/// A data file that a call wrote.
#[derive(Debug, Clone, Serialize)]
pub struct WrittenFile {
    /// Path within the lake.
    pub path: String,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// BLAKE3.
    pub blake3: ContentHash,
}

/// An input that was stored.
#[derive(Debug, Clone, Serialize)]
pub struct StoredInput {
    /// Name as given.
    pub name: String,
    /// BLAKE3 of its unpacked bytes.
    pub content: ContentHash,
    /// Unpacked bytes.
    pub bytes: u64,
    /// Form it was read as.
    pub form: String,
    /// Rows stored.
    pub rows: u64,
    /// Records rejected.
    pub rejected: u64,
    /// Set when the same content was stored before under another batch label: that record's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_of: Option<u64>,
}

/// An input that was not stored.
#[derive(Debug, Clone, Serialize)]
pub struct SkippedInput {
    /// Name as given.
    pub name: String,
    /// BLAKE3 of its unpacked bytes.
    pub content: ContentHash,
    /// Why, in words.
    pub reason: String,
    /// The record that holds it; `None` = an equal input of the same call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_by: Option<u64>,
}

/// What a correction took out of the sight of readers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplacedRevision {
    /// Its number.
    pub revision: u32,
    /// Schema versions of its partitions.
    pub schema_versions: Vec<u32>,
    /// Data files.
    pub files: u64,
    /// Rows.
    pub rows: u64,
    /// Names of its inputs, in commit order.
    pub inputs: Vec<String>,
}

/// The JSON result of `lakebed ingest --format json`.
#[derive(Debug, Clone, Serialize)]
#[must_use]
pub struct IngestReport {
    /// Version of this shape.
    pub format: u32,
    /// The dataset.
    pub dataset: DatasetRef,
    /// The business date.
    pub date: BusinessDate,
    /// The schema version; 0 = records are kept whole.
    pub schema_version: u32,
    /// The revision of the date that the call wrote, or would have written.
    pub revision: u32,
    /// Of a correction: what it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedRevision>,
    /// What became of the call.
    pub outcome: IngestOutcome,
    /// The commit; `None` when nothing was written.
    pub commit: Option<CommitId>,
    /// Its record's number.
    pub log_position: Option<u64>,
    /// Records read as records.
    pub records: u64,
    /// Rows stored by this call; of a refused call: rows that fit.
    pub rows: u64,
    /// Records rejected by this call.
    pub rejected: u64,
    /// Of the rejected: what was no record at all (bad syntax, ragged rows, repeated headers).
    pub not_records: u64,
    /// Records with unknown fields kept in `_extra`.
    pub extra_rows: u64,
    /// Lone surrogates replaced by U+FFFD.
    pub lone_surrogates: u64,
    /// NUL characters kept.
    pub nul_characters: u64,
    /// Data files written.
    pub files: Vec<WrittenFile>,
    /// Rejects file within the lake.
    pub rejects_file: Option<String>,
    /// Inputs stored.
    pub inputs: Vec<StoredInput>,
    /// Inputs not stored.
    pub skipped: Vec<SkippedInput>,
    /// Provenance of the rows.
    pub provenance: Provenance,
    /// Whether the date is sealed now.
    pub complete: bool,
    /// What a reader of the report should know.
    pub warnings: Vec<String>,
    /// Of a refused call: advice on how its inputs are read, such as a wrong delimiter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// How records differ from the schema.
    pub drift: Drift,
    /// Per field: records by the nine kinds of presence.
    pub presence: PresenceCounts,
}
