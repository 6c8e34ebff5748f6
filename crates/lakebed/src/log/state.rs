//! What a dataset holds after the records of its log. `fold` applies records, `check` asks whether a
//! requirement holds, `load` gets it from the lake, `index` finds inputs in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::log::index::InputIndex;
use crate::name::{AttemptId, CommitId, ContentHash, DatasetRef};
use crate::spec::{
    DataFileSpec, FileFormat, InputSpec, LogPosition, PartitionKey, PartitionState, RejectsFileSpec,
};
use crate::time::{BusinessDate, Instant};

/// A data file and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The file.
    pub spec: DataFileSpec,
    /// The attempt whose stage folder held it.
    pub attempt: Option<AttemptId>,
    /// Number of the record that added it.
    pub number: u64,
}

/// An input and the record that consumed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputState {
    /// The input.
    pub spec: InputSpec,
    /// Number of the record.
    pub number: u64,
    /// That record's commit.
    pub commit: CommitId,
}

/// A rejects file and the record that kept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectsState {
    /// The file.
    pub spec: RejectsFileSpec,
    /// The attempt whose stage folder held it.
    pub attempt: Option<AttemptId>,
    /// Number of the record.
    pub number: u64,
    /// That record's commit.
    pub commit: CommitId,
    /// The record that tried them again; `None` = they wait. What was no record waits for ever.
    pub retried_by: Option<u64>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its state.
    pub state: PartitionState,
    /// Number of the record that gave it this state.
    pub since: u64,
    /// Numbers of earlier records that superseded it: where its files may still lie.
    pub superseded_by: Vec<u64>,
    /// Files by name.
    pub files: BTreeMap<String, FileState>,
    /// Inputs in commit order.
    pub inputs: Vec<InputState>,
}

impl Partition {
    /// Whether readers of the catalog see it.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        matches!(
            self.state,
            PartitionState::Active | PartitionState::Switching
        )
    }
}

/// A revision of a date: all its partitions of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevisionState {
    /// Number of the record that began it; 0 for revision 0, which began before any correction.
    pub number: u64,
    /// The revision that was active then: what a rollback goes back to.
    pub base: u32,
}

/// What belongs to a business date over all its schema versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DateState {
    /// Number and time of the seal in force; `None` = open.
    pub sealed: Option<(u64, Instant)>,
    /// Rejects files in commit order.
    pub rejects: Vec<RejectsState>,
    /// The revision that readers see; appends join it.
    pub active: u32,
    /// Every later revision than 0, active or not.
    pub revisions: BTreeMap<u32, RevisionState>,
    /// Number of the last record that touched the date.
    pub changed: u64,
}

/// A dataset after the records up to `position`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetState {
    pub(super) dataset: DatasetRef,
    pub(super) position: LogPosition,
    pub(super) last_at: Option<Instant>,
    pub(super) partitions: BTreeMap<PartitionKey, Partition>,
    pub(super) inputs: InputIndex,
    pub(super) dates: BTreeMap<BusinessDate, DateState>,
    pub(super) commits: BTreeMap<CommitId, u64>,
    pub(super) attempts: BTreeMap<AttemptId, u64>,
    /// Attempts whose appends joined the commit of another one.
    pub(super) joined: BTreeMap<AttemptId, u64>,
    pub(super) abandoned: BTreeMap<AttemptId, u64>,
    pub(super) erased: BTreeSet<ContentHash>,
}

impl DatasetState {
    /// A dataset without records.
    #[must_use]
    pub fn empty(dataset: DatasetRef) -> Self {
        Self {
            dataset,
            position: LogPosition::START,
            last_at: None,
            partitions: BTreeMap::new(),
            inputs: InputIndex::default(),
            dates: BTreeMap::new(),
            commits: BTreeMap::new(),
            attempts: BTreeMap::new(),
            joined: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            erased: BTreeSet::new(),
        }
    }

    /// The one format of its files (LOG-12); `None` = there was never a partition.
    #[must_use]
    pub fn file_format(&self) -> Option<FileFormat> {
        let key = self.partitions.keys().next()?;
        Some(FileFormat::of_version(
            self.dataset.layer,
            key.schema_version,
        ))
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &DatasetRef {
        &self.dataset
    }

    /// The position after the last folded record.
    #[must_use]
    pub fn position(&self) -> &LogPosition {
        &self.position
    }

    /// Time of the last folded record.
    #[must_use]
    pub fn last_at(&self) -> Option<Instant> {
        self.last_at
    }

    /// Every partition, whatever its state.
    #[must_use]
    pub fn partitions(&self) -> &BTreeMap<PartitionKey, Partition> {
        &self.partitions
    }

    /// Every date that was ever touched.
    #[must_use]
    pub fn dates(&self) -> &BTreeMap<BusinessDate, DateState> {
        &self.dates
    }

    /// Every partition of a date, whatever its state.
    pub fn partitions_of(
        &self,
        dt: BusinessDate,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        let key = |dt, schema_version, revision| PartitionKey {
            dt,
            schema_version,
            revision,
        };
        self.partitions
            .range(key(dt, 0, 0)..=key(dt, u32::MAX, u32::MAX))
    }

    /// The revision of the date that readers see; 0 where there is nothing yet.
    #[must_use]
    pub fn active_revision(&self, dt: BusinessDate) -> u32 {
        self.dates.get(&dt).map_or(0, |d| d.active)
    }

    /// The number that the next revision of the date gets.
    #[must_use]
    pub fn next_revision(&self, dt: BusinessDate) -> u32 {
        let newest = |d: &DateState| d.revisions.last_key_value().map_or(0, |(r, _)| *r);
        self.dates.get(&dt).map_or(0, newest) + 1
    }

    /// Number of the last record that touched the date; 0 = none.
    #[must_use]
    pub fn changed(&self, dt: BusinessDate) -> u64 {
        self.dates.get(&dt).map_or(0, |d| d.changed)
    }

    /// The error of whoever looked at the date `rounds` times and found it changed each time.
    pub(super) fn restless(&self, dt: BusinessDate, rounds: usize) -> Error {
        let dataset = &self.dataset;
        Error::conflict(format!(
            "{dt} of `{dataset}` changed under this call {rounds} times"
        ))
        .retryable()
    }

    /// Whether files of the date are moving between revisions.
    #[must_use]
    pub fn is_switching(&self, dt: BusinessDate) -> bool {
        self.partitions_of(dt)
            .any(|(_, p)| p.state == PartitionState::Switching)
    }

    /// The partitions of a date that readers see.
    pub fn visible_of(
        &self,
        dt: BusinessDate,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        self.partitions_of(dt).filter(|(_, p)| p.is_visible())
    }

    /// Whether the date is sealed.
    #[must_use]
    pub fn is_sealed(&self, dt: BusinessDate) -> bool {
        self.dates.get(&dt).is_some_and(|d| d.sealed.is_some())
    }

    /// The record that committed the attempt; `None` = it did not commit.
    #[must_use]
    pub fn committed_attempt(&self, attempt: &AttemptId) -> Option<u64> {
        let own = self.attempts.get(attempt);
        own.or_else(|| self.joined.get(attempt)).copied()
    }

    /// Whether the attempt was abandoned.
    #[must_use]
    pub fn is_abandoned(&self, attempt: &AttemptId) -> bool {
        self.abandoned.contains_key(attempt)
    }

    /// The record that abandoned the attempt; `None` = it was not.
    #[must_use]
    pub fn abandoned_by(&self, attempt: &AttemptId) -> Option<u64> {
        self.abandoned.get(attempt).copied()
    }

    /// Whether the input was erased for ever.
    #[must_use]
    pub fn is_erased(&self, content: &ContentHash) -> bool {
        self.erased.contains(content)
    }

    /// Every commit with the number of its record, by commit id.
    pub fn commits(&self) -> impl Iterator<Item = (&CommitId, u64)> {
        self.commits
            .iter()
            .map(|(commit, number)| (commit, *number))
    }

    /// The record with this commit id.
    #[must_use]
    pub fn find_commit(&self, commit: &CommitId) -> Option<u64> {
        self.commits.get(commit).copied()
    }

    /// The rejects of the date that the commit kept.
    #[must_use]
    pub fn find_rejects(&self, dt: BusinessDate, commit: &CommitId) -> Option<&RejectsState> {
        let date = self.dates.get(&dt)?;
        date.rejects.iter().find(|r| r.commit == *commit)
    }

    /// Inputs of a date's visible partitions.
    pub fn visible_inputs(
        &self,
        dt: BusinessDate,
    ) -> impl Iterator<Item = (&PartitionKey, &InputState)> {
        self.visible_of(dt)
            .flat_map(|(k, p)| p.inputs.iter().map(move |i| (k, i)))
    }
}
