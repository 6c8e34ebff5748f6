//! Folding records: each one changes the state, or contradicts it and stops the fold.
//!
//! LOG-4: a record whose actions contradict the fold before it (a file added twice, an illegal move
//! of a partition's state) stops the fold: such a log was not written by commits. LOG-8: readers never
//! see two revisions of one date. REJ-2: the rejects of a commit are tried again by one record at most.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::log::read::LoggedRecord;
use crate::log::state::{
    DatasetState, FileState, InputState, Partition, RejectsState, RevisionState,
};
use crate::name::CommitId;
use crate::spec::{Action, PartitionKey, PartitionState};
use crate::time::BusinessDate;

impl DatasetState {
    /// Folds one record.
    pub fn apply(&mut self, logged: &LoggedRecord) -> Result<()> {
        let record = &logged.record;
        if record.number != self.position.number + 1 {
            return Err(Error::internal(format!(
                "record {} was folded after record {}",
                record.number, self.position.number
            )));
        }
        let carried: usize = record.joined.iter().map(|j| j.actions).sum();
        if carried > record.actions.len() {
            let reason = format!(
                "{carried} of its {} actions joined it",
                record.actions.len()
            );
            return Err(self.contradiction(record.number, "LOG-4", &reason));
        }
        for (index, action) in record.actions.iter().enumerate() {
            self.apply_action(logged, index, action)
                .map_err(|reason| self.contradiction(record.number, "LOG-4", &reason))?;
        }
        let touched: BTreeSet<BusinessDate> =
            record.actions.iter().filter_map(Action::date).collect();
        for dt in touched {
            self.settle_date(dt, record.number)
                .map_err(|reason| self.contradiction(record.number, "LOG-8", &reason))?;
        }
        if let Some(attempt) = &record.attempt {
            self.attempts.insert(attempt.clone(), record.number);
        }
        for joined in &record.joined {
            self.joined.insert(joined.attempt.clone(), record.number);
        }
        self.commits.insert(record.commit.clone(), record.number);
        self.position = logged.position();
        self.last_at = Some(record.at);
        Ok(())
    }

    fn apply_action(
        &mut self,
        logged: &LoggedRecord,
        index: usize,
        action: &Action,
    ) -> Result<(), String> {
        let record = &logged.record;
        match action {
            Action::AddFile { partition, file } => {
                let files = &mut self.partition_entry(*partition, record.number).files;
                let state = FileState {
                    spec: file.clone(),
                    attempt: record.attempt_of(index).cloned(),
                    number: record.number,
                };
                if files.insert(file.name.clone(), state).is_some() {
                    return Err(format!(
                        "file `{}` is added twice to {partition}",
                        file.name
                    ));
                }
            }
            Action::AddPartition { partition, state } => {
                self.begin_revision(partition, *state, record.number)?;
            }
            Action::RemoveFile { partition, name } => self.remove_file(partition, name)?,
            Action::AddInput { partition, input } => {
                let state = InputState {
                    spec: input.clone(),
                    number: record.number,
                    commit: record.commit.clone(),
                };
                let inputs = &mut self.partition_entry(*partition, record.number).inputs;
                let at = inputs.len();
                inputs.push(state);
                self.inputs.insert(*partition, at, input);
            }
            Action::AddRejects { dt, file } => {
                let state = RejectsState {
                    spec: file.clone(),
                    attempt: record.attempt_of(index).cloned(),
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
            } => self.set_state(partition, (*from, *to), record.number)?,
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

    fn remove_file(&mut self, key: &PartitionKey, name: &str) -> Result<(), String> {
        let partition = self.partitions.get_mut(key);
        match partition.and_then(|p| p.files.remove(name)) {
            Some(_) => Ok(()),
            None => Err(format!(
                "file `{name}` is removed from {key}, which does not hold it"
            )),
        }
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

    /// A partition of the date's present revision begins with what is added to it first.
    fn partition_entry(&mut self, key: PartitionKey, number: u64) -> &mut Partition {
        self.dates.entry(key.dt).or_default();
        self.partitions
            .entry(key)
            .or_insert_with(|| Partition::begin(PartitionState::Active, number))
    }

    fn begin_revision(
        &mut self,
        key: &PartitionKey,
        state: PartitionState,
        number: u64,
    ) -> Result<(), String> {
        if !matches!(
            state,
            PartitionState::Switching | PartitionState::Superseded
        ) {
            return Err(format!("{key} begins as {state}"));
        }
        if self.partitions.contains_key(key) {
            return Err(format!("{key} begins twice"));
        }
        let date = self.dates.entry(key.dt).or_default();
        let base = date.active;
        let known = date
            .revisions
            .entry(key.revision)
            .or_insert(RevisionState { number, base });
        if key.revision == 0 || known.number != number {
            return Err(format!("{key} begins, but its revision began before"));
        }
        self.partitions
            .insert(*key, Partition::begin(state, number));
        Ok(())
    }

    fn set_state(
        &mut self,
        key: &PartitionKey,
        (from, to): (PartitionState, PartitionState),
        number: u64,
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
        if from == PartitionState::Superseded {
            partition.superseded_by.push(partition.since);
        }
        partition.state = to;
        partition.since = number;
        Ok(())
    }

    /// After every record, readers see partitions of one revision of a date alone (LOG-8).
    fn settle_date(&mut self, dt: BusinessDate, number: u64) -> Result<(), String> {
        let seen: BTreeSet<u32> = self.visible_of(dt).map(|(k, _)| k.revision).collect();
        let date = self.dates.entry(dt).or_default();
        date.changed = number;
        if let Some(revision) = seen.first() {
            date.active = *revision;
        }
        if seen.len() > 1 {
            return Err(format!(
                "readers would see {} revisions of {dt}",
                seen.len()
            ));
        }
        Ok(())
    }

    fn contradiction(&self, number: u64, invariant: &'static str, reason: &str) -> Error {
        let dataset = &self.dataset;
        Error::corrupt(format!(
            "record {number} of `{dataset}` contradicts its log: {reason}"
        ))
        .with("invariant", invariant)
        .hint("the record was not written by a commit; restore the log from a backup")
    }
}

impl Partition {
    fn begin(state: PartitionState, number: u64) -> Self {
        Self {
            state,
            since: number,
            superseded_by: Vec::new(),
            files: BTreeMap::new(),
            inputs: Vec::new(),
        }
    }
}
