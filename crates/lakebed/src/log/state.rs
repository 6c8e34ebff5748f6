//! The fold of a log: what a dataset holds after its records, and whether a requirement is met.
//!
//! LOG-4: a record whose actions contradict the fold before it (a file added twice, an illegal move
//! of a partition's state) stops the fold: such a log was not written by commits.
//! REJ-2: the rejects of a commit are tried again by one record at most.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::error::{Error, Result};
use crate::log::read::{LoggedRecord, read_after};
use crate::name::{AttemptId, BatchLabel, CommitId, ContentHash, DatasetRef};
use crate::spec::{
    Action, DataFileSpec, InputSpec, LogPosition, PartitionKey, PartitionState, RejectsFileSpec,
    Requirement,
};
use crate::store::Lake;
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

/// What belongs to a business date over all its schema versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DateState {
    /// Number and time of the seal in force; `None` = open.
    pub sealed: Option<(u64, Instant)>,
    /// Rejects files in commit order.
    pub rejects: Vec<RejectsState>,
}

/// A requirement that does not hold, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The requirement.
    pub requirement: Requirement,
    /// In words.
    pub reason: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// A dataset after the records up to `position`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetState {
    dataset: DatasetRef,
    position: LogPosition,
    last_at: Option<Instant>,
    partitions: BTreeMap<PartitionKey, Partition>,
    dates: BTreeMap<BusinessDate, DateState>,
    commits: BTreeMap<CommitId, u64>,
    attempts: BTreeMap<AttemptId, u64>,
    abandoned: BTreeMap<AttemptId, u64>,
    erased: BTreeSet<ContentHash>,
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
            dates: BTreeMap::new(),
            commits: BTreeMap::new(),
            attempts: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            erased: BTreeSet::new(),
        }
    }

    /// Reads and folds the whole log.
    pub async fn load(lake: &Lake, dataset: &DatasetRef) -> Result<Self> {
        let mut state = Self::empty(dataset.clone());
        state.catch_up(lake).await?;
        Ok(state)
    }

    /// Folds what was committed since; answers how many records that were.
    pub async fn catch_up(&mut self, lake: &Lake) -> Result<usize> {
        let records = read_after(lake, &self.dataset, &self.position).await?;
        for logged in &records {
            self.apply(logged)?;
        }
        Ok(records.len())
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

    /// The partitions of a date that readers see.
    pub fn visible_of(
        &self,
        dt: BusinessDate,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        self.partitions
            .iter()
            .filter(move |(k, p)| k.dt == dt && p.is_visible())
    }

    /// Whether the date is sealed.
    #[must_use]
    pub fn is_sealed(&self, dt: BusinessDate) -> bool {
        self.dates.get(&dt).is_some_and(|d| d.sealed.is_some())
    }

    /// The record that committed the attempt; `None` = it did not commit.
    #[must_use]
    pub fn committed_attempt(&self, attempt: &AttemptId) -> Option<u64> {
        self.attempts.get(attempt).copied()
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

    /// Folds one record.
    pub fn apply(&mut self, logged: &LoggedRecord) -> Result<()> {
        let record = &logged.record;
        if record.number != self.position.number + 1 {
            return Err(Error::internal(format!(
                "record {} was folded after record {}",
                record.number, self.position.number
            )));
        }
        for action in &record.actions {
            self.apply_action(logged, action).map_err(|reason| {
                Error::corrupt(format!(
                    "record {} of `{}` contradicts its log: {reason}",
                    record.number, self.dataset
                ))
                .with("invariant", "LOG-4")
                .hint("the record was not written by a commit; restore the log from a backup")
            })?;
        }
        if let Some(attempt) = &record.attempt {
            self.attempts.insert(attempt.clone(), record.number);
        }
        self.commits.insert(record.commit.clone(), record.number);
        self.position = logged.position();
        self.last_at = Some(record.at);
        Ok(())
    }

    fn apply_action(&mut self, logged: &LoggedRecord, action: &Action) -> Result<(), String> {
        let record = &logged.record;
        match action {
            Action::AddFile { partition, file } => {
                let files = &mut self.partition_entry(*partition).files;
                let state = FileState {
                    spec: file.clone(),
                    attempt: record.attempt.clone(),
                    number: record.number,
                };
                if files.insert(file.name.clone(), state).is_some() {
                    return Err(format!(
                        "file `{}` is added twice to {partition}",
                        file.name
                    ));
                }
            }
            Action::RemoveFile { partition, name } => {
                let removed = self
                    .partitions
                    .get_mut(partition)
                    .and_then(|p| p.files.remove(name));
                if removed.is_none() {
                    return Err(format!(
                        "file `{name}` is removed from {partition}, which does not hold it"
                    ));
                }
            }
            Action::AddInput { partition, input } => {
                let state = InputState {
                    spec: input.clone(),
                    number: record.number,
                    commit: record.commit.clone(),
                };
                self.partition_entry(*partition).inputs.push(state);
            }
            Action::AddRejects { dt, file } => {
                let state = RejectsState {
                    spec: file.clone(),
                    attempt: record.attempt.clone(),
                    number: record.number,
                    commit: record.commit.clone(),
                    retried_by: None,
                };
                self.dates.entry(*dt).or_default().rejects.push(state);
            }
            Action::RetryRejects { dt, commit } => {
                self.retry_rejects(*dt, commit, record.number)?;
            }
            Action::SetState {
                partition,
                from,
                to,
            } => self.set_state(partition, *from, *to)?,
            Action::Complete { dt } => {
                self.dates.entry(*dt).or_default().sealed = Some((record.number, record.at));
            }
            Action::Open { dt } => self.dates.entry(*dt).or_default().sealed = None,
            Action::Abandon { attempt } => {
                self.abandoned
                    .entry(attempt.clone())
                    .or_insert(record.number);
            }
            Action::EraseInput { content } => {
                self.erased.insert(content.clone());
            }
        }
        Ok(())
    }

    fn retry_rejects(
        &mut self,
        dt: BusinessDate,
        commit: &CommitId,
        number: u64,
    ) -> Result<(), String> {
        let kept = self.dates.get_mut(&dt).map(|d| &mut d.rejects);
        let kept = kept.and_then(|all| all.iter_mut().find(|r| r.commit == *commit));
        let Some(rejects) = kept else {
            return Err(format!(
                "rejects of commit `{commit}` are tried again, which kept none of {dt}"
            ));
        };
        if let Some(earlier) = rejects.retried_by {
            return Err(format!(
                "rejects of commit `{commit}` are tried again, which record {earlier} did"
            ));
        }
        rejects.retried_by = Some(number);
        Ok(())
    }

    fn partition_entry(&mut self, key: PartitionKey) -> &mut Partition {
        self.dates.entry(key.dt).or_default();
        self.partitions.entry(key).or_insert_with(|| Partition {
            state: PartitionState::Active,
            files: BTreeMap::new(),
            inputs: Vec::new(),
        })
    }

    fn set_state(
        &mut self,
        key: &PartitionKey,
        from: PartitionState,
        to: PartitionState,
    ) -> Result<(), String> {
        let Some(partition) = self.partitions.get_mut(key) else {
            return Err(format!("{key} becomes {to}, but does not exist"));
        };
        if partition.state != from || !from.may_become(to) {
            return Err(format!(
                "{key} is {}, the record moves it from {from} to {to}",
                partition.state
            ));
        }
        partition.state = to;
        Ok(())
    }

    /// Whether the requirement holds now. `SchemaPublished` concerns the store: `commit` checks it.
    pub fn check(&self, requirement: &Requirement) -> Result<(), Unmet> {
        let reason = match requirement {
            Requirement::AttemptOpen { attempt } => self
                .abandoned
                .contains_key(attempt)
                .then(|| format!("attempt `{attempt}` was abandoned")),
            Requirement::InputAbsent { dt, content, batch } => {
                self.find_input(*dt, content, batch.as_ref())
            }
            Requirement::BatchAbsent { dt, batch } => self
                .visible_inputs(*dt)
                .find(|(_, i)| i.spec.batch.as_ref() == Some(batch))
                .map(|(_, i)| {
                    format!(
                        "batch `{batch}` of {dt} was committed by record {}",
                        i.number
                    )
                }),
            Requirement::PartitionActive { partition } => self
                .partitions
                .get(partition)
                .filter(|p| p.state != PartitionState::Active)
                .map(|p| format!("{partition} is {}", p.state)),
            Requirement::DateOpen { dt } => self
                .is_sealed(*dt)
                .then(|| format!("{dt} of `{}` is sealed", self.dataset)),
            Requirement::DateSealed { dt } => {
                (!self.is_sealed(*dt)).then(|| format!("{dt} of `{}` is not sealed", self.dataset))
            }
            Requirement::RejectsWaiting { dt, commit } => match self.find_rejects(*dt, commit) {
                None => Some(format!("commit `{commit}` kept no rejects of {dt}")),
                Some(kept) => kept.retried_by.map(|n| {
                    format!("rejects of commit `{commit}` were tried again by record {n}")
                }),
            },
            Requirement::SchemaPublished { .. } => None,
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(Unmet {
                requirement: requirement.clone(),
                reason,
            }),
        }
    }

    fn find_input(
        &self,
        dt: BusinessDate,
        content: &ContentHash,
        batch: Option<&BatchLabel>,
    ) -> Option<String> {
        self.visible_inputs(dt)
            .find(|(_, i)| {
                i.spec.content == *content && (batch.is_none() || i.spec.batch.as_ref() == batch)
            })
            .map(|(_, i)| {
                format!(
                    "input `{}` of {dt} was committed by record {}",
                    i.spec.name, i.number
                )
            })
    }
}
