//! A record of a dataset's commit log: one file, put once, never changed.
//!
//! `_lake/log/<layer>/<dataset>/00000000000000000001.json`, numbers without gaps from 1. Each record
//! carries the BLAKE3 of its predecessor's bytes, so that a log can be checked from its files alone.
//! Everything else (catalog, `_SUCCESS`, mirrors) is a fold of these records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::name::{AttemptId, BatchLabel, CommitId, ContentHash, DatasetRef, LakeId, RunName};
use crate::spec::tagged::tagged_enum;
use crate::spec::{PartitionKey, PartitionState};
use crate::time::{BusinessDate, Instant};

/// Format number of records this program writes.
pub const RECORD_FORMAT: u32 = 5;
/// The oldest reader that understands a record which uses nothing newer ([`min_reader`]).
pub const RECORD_MIN_READER: u32 = 1;

/// The oldest reader that folds a record of these actions, with or without appends that joined it.
#[must_use]
pub fn min_reader(actions: &[Action], joined: &[JoinedAppend]) -> u32 {
    let joined = if joined.is_empty() {
        RECORD_MIN_READER
    } else {
        3
    };
    let of_action = |action: &Action| match action {
        Action::AddPartition { .. } | Action::RetryRejects { .. } => 2,
        Action::AddFile { file, .. } => match file.format {
            FileFormat::Parquet | FileFormat::Jsonl => RECORD_MIN_READER,
            FileFormat::Rawpack | FileFormat::RawpackIndex => 4,
        },
        Action::AddInput { input, .. } if !input.parents.is_empty() => 5,
        Action::RemoveFile { .. }
        | Action::AddInput { .. }
        | Action::AddRejects { .. }
        | Action::SetState { .. }
        | Action::Complete { .. }
        | Action::Open { .. }
        | Action::Abandon { .. }
        | Action::EraseInput { .. } => RECORD_MIN_READER,
    };
    let newest = actions.iter().map(of_action).max();
    newest.unwrap_or(RECORD_MIN_READER).max(joined)
}

/// Where a dataset's log ends, or how far a catalog has applied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Number of the last record; 0 = none.
    pub number: u64,
    /// BLAKE3 of that record's bytes; `None` at 0.
    pub hash: Option<ContentHash>,
}

impl LogPosition {
    /// Before the first record.
    pub const START: Self = Self {
        number: 0,
        hash: None,
    };
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Format the writer wrote.
    pub format: u32,
    /// The oldest format number whose readers may fold this record.
    pub min_reader: u32,
    /// The lake it belongs to.
    pub lake: LakeId,
    /// The dataset it belongs to.
    pub dataset: DatasetRef,
    /// Position in the log, from 1.
    pub number: u64,
    /// BLAKE3 of the bytes of the record before; absent in record 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub previous: Option<ContentHash>,
    /// Unique id of this commit: tells a writer whether a record it finds is its own.
    pub commit: CommitId,
    /// `max(now, previous + 1 us)`.
    pub at: Instant,
    /// What was done.
    pub operation: Operation,
    /// Who did it.
    pub by: By,
    /// The attempt whose staged files this record commits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempt: Option<AttemptId>,
    /// What was checked against the fold of all earlier records.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub requires: Vec<Requirement>,
    /// What changes: the commit's own actions, then those of each append that joined it.
    pub actions: Vec<Action>,
    /// Appends of other calls that this commit carries, in the order of their actions; empty = none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub joined: Vec<JoinedAppend>,
}

impl Record {
    /// The attempt that staged what the action at `index` adds; `None` = none is named.
    #[must_use]
    pub fn attempt_of(&self, index: usize) -> Option<&AttemptId> {
        let mut end = self.actions.len();
        for joined in self.joined.iter().rev() {
            let begin = end.saturating_sub(joined.actions);
            if (begin..end).contains(&index) {
                return Some(&joined.attempt);
            }
            end = begin;
        }
        self.attempt.as_ref()
    }
}

/// An append of another call of the same process that a commit carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinedAppend {
    /// Its attempt, by which the call knows its record again.
    pub attempt: AttemptId,
    /// How many of the record's actions are its own.
    pub actions: usize,
}

/// What a commit did, for people and for statistics; the actions alone decide the fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words of docs/glossary.md")]
pub enum Operation {
    Append,
    Seal,
    Reopen,
    Correct,
    Switch,
    Compact,
    Retire,
    Purge,
    Restore,
    Erase,
    Mark,
    Publish,
    Adopt,
    Abandon,
}

impl Operation {
    /// The name in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Seal => "seal",
            Self::Reopen => "reopen",
            Self::Correct => "correct",
            Self::Switch => "switch",
            Self::Compact => "compact",
            Self::Retire => "retire",
            Self::Purge => "purge",
            Self::Restore => "restore",
            Self::Erase => "erase",
            Self::Mark => "mark",
            Self::Publish => "publish",
            Self::Adopt => "adopt",
            Self::Abandon => "abandon",
        }
    }
}

/// Who made a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    /// Program and version.
    pub program: String,
    /// The user as given by `--user` or `LAKEBED_USER`; absent when not given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<String>,
    /// The run; absent for commands that belong to none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run: Option<RunName>,
    /// Why, in the person's words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

impl By {
    /// The program itself, where it finishes what somebody else began.
    #[must_use]
    pub fn this_program() -> Self {
        Self {
            program: concat!("lakebed ", env!("CARGO_PKG_VERSION")).to_owned(),
            user: None,
            run: None,
            note: None,
        }
    }
}

tagged_enum! {
/// A condition that must hold at the moment of the commit, over the fold of all earlier records.
pub enum Requirement, "Requirement" by "kind" {
    /// The attempt was not abandoned.
    AttemptOpen {
        /// The attempt.
        attempt: AttemptId,
    },
    /// No active partition of the date holds the input (under this batch label, where one is given).
    InputAbsent {
        /// Business date.
        dt: BusinessDate,
        /// BLAKE3 of the unpacked input.
        content: ContentHash,
        /// The label under which it counts as another observation.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        batch: Option<BatchLabel>,
    },
    /// No active input of the date carries the label.
    BatchAbsent {
        /// Business date.
        dt: BusinessDate,
        /// The label.
        batch: BatchLabel,
    },
    /// The partition is active, or does not exist yet and is of the date's active revision; no
    /// partition of the date is switching.
    PartitionActive {
        /// The partition.
        partition: PartitionKey,
    },
    /// The date is not sealed.
    DateOpen {
        /// Business date.
        dt: BusinessDate,
    },
    /// The date is sealed.
    DateSealed {
        /// Business date.
        dt: BusinessDate,
    },
    /// No record after `number` has touched the date.
    DateUnchanged {
        /// Business date.
        dt: BusinessDate,
        /// Number of the last record that touched it.
        number: u64,
    },
    /// The commit kept rejects of the date, and no record has tried them again.
    RejectsWaiting {
        /// Business date.
        dt: BusinessDate,
        /// The commit.
        commit: CommitId,
    },
    /// The schema version was published.
    SchemaPublished {
        /// Its number.
        version: u32,
        /// BLAKE3 of the published file.
        hash: ContentHash,
    },
}
}

tagged_enum! {
/// A change of the fold.
pub enum Action, "Action" by "action" {
    /// A data file joins a partition; the partition begins with its first file.
    AddFile {
        /// The partition.
        partition: PartitionKey,
        /// The file.
        file: DataFileSpec,
    },
    /// A partition of a new revision begins, in another state than active.
    AddPartition {
        /// The partition.
        partition: PartitionKey,
        /// `switching` where it replaces what is active, `superseded` where it is only kept.
        state: PartitionState,
    },
    /// A data file leaves a partition.
    RemoveFile {
        /// The partition.
        partition: PartitionKey,
        /// Its name.
        name: String,
    },
    /// An input was consumed into a partition.
    AddInput {
        /// The partition.
        partition: PartitionKey,
        /// The input.
        input: InputSpec,
    },
    /// Rejected records of this commit were kept.
    AddRejects {
        /// Business date.
        dt: BusinessDate,
        /// The file.
        file: RejectsFileSpec,
    },
    /// The rejects that an earlier commit kept were tried again by this one: those that were read as
    /// records are rejects no more, and what was refused once more is in this commit's own rejects.
    RetryRejects {
        /// Business date.
        dt: BusinessDate,
        /// The earlier commit.
        commit: CommitId,
    },
    /// A partition changes its state.
    SetState {
        /// The partition.
        partition: PartitionKey,
        /// The state it must be in.
        from: PartitionState,
        /// The state it gets.
        to: PartitionState,
    },
    /// The date is declared complete.
    Complete {
        /// Business date.
        dt: BusinessDate,
    },
    /// The date is open again.
    Open {
        /// Business date.
        dt: BusinessDate,
    },
    /// The attempt can never commit any more.
    Abandon {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An input was erased on legal demand and may never come back.
    EraseInput {
        /// BLAKE3 of the unpacked input.
        content: ContentHash,
    },
}
}

impl Action {
    /// The business date it touches; `None` where it touches none.
    #[must_use]
    pub fn date(&self) -> Option<BusinessDate> {
        match self {
            Self::AddFile { partition, .. }
            | Self::AddPartition { partition, .. }
            | Self::RemoveFile { partition, .. }
            | Self::AddInput { partition, .. }
            | Self::SetState { partition, .. } => Some(partition.dt),
            Self::AddRejects { dt, .. }
            | Self::RetryRejects { dt, .. }
            | Self::Complete { dt }
            | Self::Open { dt } => Some(*dt),
            Self::Abandon { .. } | Self::EraseInput { .. } => None,
        }
    }
}

/// Format of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// JSON lines in zstd.
    Jsonl,
    /// A raw day pack; its rows are its captures.
    Rawpack,
    /// The index of the pack of the same name; it has no rows of its own.
    RawpackIndex,
}

impl FileFormat {
    /// The name in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Jsonl => "jsonl",
            Self::Rawpack => "rawpack",
            Self::RawpackIndex => "rawpack_index",
        }
    }
}

/// How rows came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Crawled on its day.
    #[default]
    Live,
    /// Filled in later.
    Backfill,
    /// Parsed again from kept responses.
    Replay,
}

impl Provenance {
    /// The name in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Backfill => "backfill",
            Self::Replay => "replay",
        }
    }
}

/// What an input means for the versions of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum LoadKind {
    /// It replaces everything known before it.
    Full,
    /// It adds to what is known.
    #[default]
    Incremental,
}

impl LoadKind {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
        }
    }
}

/// An immutable data file of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFileSpec {
    /// `part-<n>-<16 hex>.parquet`, or that of a pack or its index, within the partition folder.
    pub name: String,
    /// Format.
    pub format: FileFormat,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub blake3: ContentHash,
    /// How its rows came to be.
    pub provenance: Provenance,
    /// Smallest and largest value, as text, of columns declared for pruning; empty = none declared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub bounds: BTreeMap<String, [String; 2]>,
    /// Partitions it was derived from, as `layer/dataset/dt=.../schema_version=n`; empty = from outside.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parents: Vec<String>,
}

/// An input that a commit consumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// BLAKE3 of the unpacked bytes: the input's identity.
    pub content: ContentHash,
    /// Name as given by the caller (file name without folders, `-` for standard input).
    pub name: String,
    /// Unpacked bytes.
    pub bytes: u64,
    /// Rows stored from it.
    pub rows: u64,
    /// Records rejected from it.
    pub rejected: u64,
    /// Hash of the reading rules (format, encoding, delimiter, records, ...).
    pub rules: String,
    /// The caller's label; absent = none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub batch: Option<BatchLabel>,
    /// Full or incremental load.
    #[serde(default)]
    pub load: LoadKind,
    /// What it was derived from; empty = it came from outside.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parents: Vec<ParentSpec>,
}

/// What a derived input was made from: a dataset as it stood after a record of its log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentSpec {
    /// The dataset.
    pub dataset: DatasetRef,
    /// The business date, or the last one where several were read.
    pub dt: BusinessDate,
    /// The first of several dates; absent = `dt` alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<BusinessDate>,
    /// The revision of `dt` that was read.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub revision: u32,
    /// Number of the last record that had added something that readers saw of these dates.
    pub position: u64,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A file of rejected records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectsFileSpec {
    /// `rejects-<16 hex>.jsonl.zst`, within the rejects folder of the date.
    pub name: String,
    /// Rejected records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub blake3: ContentHash,
}
