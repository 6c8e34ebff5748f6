//! Appends of one process that meet: one of them puts a record that carries them all.
//!
//! ```text
//! call 1  draft -> waits ------> has the turn: takes all that wait, puts one record, answers them
//! call 2  draft -> waits ........................................ answered: the record is its commit
//! call 3  draft -> waits ........................................ answered
//! ```
//!
//! A put costs some fsyncs whatever it holds, and two puts of one number cost both of them a round.
//! So those who append to a dataset through clones of one lake take turns, and whoever has the turn
//! takes the others along. Processes know nothing of each other: they meet at the record's number.
//!
//! LOG-11: an append that joined is answered with the record that carries it, and only where its own
//! requirements held before that record and nothing in the record touches them. Each keeps its
//! attempt. What has to do with a date as a whole (a seal, a correction, rejects, late rows), and a
//! full load, whose order matters, goes alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::log::draft::Draft;
use crate::log::read::LoggedRecord;
use crate::name::{AttemptId, BatchLabel, ContentHash, DatasetRef};
use crate::spec::{Action, JoinedAppend, LoadKind, Operation, PartitionKey};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Appends that one record carries at most: it stays a small file.
const MAX_JOINED: usize = 64;

/// The appends to one dataset that wait for a record.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<Vec<Waiting>>,
}

/// A draft whose caller waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The draft.
    pub(super) draft: Draft,
    attempt: AttemptId,
    answer: oneshot::Sender<LoggedRecord>,
}

impl Waiting {
    /// How a record says that it carries the draft.
    pub(super) fn joined(&self) -> JoinedAppend {
        JoinedAppend {
            attempt: self.attempt.clone(),
            actions: self.draft.actions.len(),
        }
    }

    /// Tells the caller which record carries its draft.
    pub(super) fn answer(self, logged: &LoggedRecord) {
        // A caller that went away finds its attempt in the log.
        drop(self.answer.send(logged.clone()));
    }
}

impl Turns {
    /// The turns of a dataset.
    pub(super) fn of(lake: &Lake, dataset: &DatasetRef) -> Arc<Self> {
        lake.shared(&dataset.to_string())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; while it waits, whoever has one may take the draft along.
    pub(super) async fn wait(&self, draft: &Draft) -> Turn<'_> {
        let Some(attempt) = draft.attempt.clone().filter(|_| may_join(draft)) else {
            return Turn::Mine(self.turn.lock().await);
        };
        let (answer, mut answered) = oneshot::channel();
        self.waiting().push(Waiting {
            draft: draft.clone(),
            attempt: attempt.clone(),
            answer,
        });
        let turn = self.turn.lock().await;
        self.waiting().retain(|w| w.attempt != attempt);
        match answered.try_recv() {
            Ok(logged) => Turn::Carried(Box::new(logged)),
            Err(_) => Turn::Mine(turn),
        }
    }

    /// The drafts that can go along with this one, at most so many as a record carries.
    pub(super) fn take(&self, draft: &Draft) -> Vec<Waiting> {
        if !may_join(draft) {
            return Vec::new();
        }
        let mut touched = Touched::default();
        touched.add(draft);
        let mut waiting = self.waiting();
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        // Who went away is not carried: it may have thrown away what it staged.
        for one in waiting.drain(..).filter(|w| !w.answer.is_closed()) {
            let fits = taken.len() < MAX_JOINED && one.draft.by == draft.by;
            match fits && touched.add(&one.draft) {
                true => taken.push(one),
                false => left.push(one),
            }
        }
        *waiting = left;
        taken
    }

    /// Lets drafts wait again that did not come along.
    pub(super) fn put_back(&self, drafts: Vec<Waiting>) {
        self.waiting().extend(drafts);
    }
}

/// How the wait for a turn ended.
pub(super) enum Turn<'a> {
    /// Nobody else puts a record while this is held.
    Mine(#[allow(dead_code, reason = "held, not looked at")] tokio::sync::MutexGuard<'a, ()>),
    /// Another call's record carries the draft.
    Carried(Box<LoggedRecord>),
}

/// Whether the draft only adds rows, so that others can be added beside them.
fn may_join(draft: &Draft) -> bool {
    draft.operation == Operation::Append
        && draft.attempt.is_some()
        && draft.actions.iter().all(|action| match action {
            Action::AddFile { .. } => true,
            // Of two full loads the later one counts, so they need an order.
            Action::AddInput { input, .. } => input.load != LoadKind::Full,
            Action::AddPartition { .. }
            | Action::RemoveFile { .. }
            | Action::AddRejects { .. }
            | Action::RetryRejects { .. }
            | Action::SetState { .. }
            | Action::Complete { .. }
            | Action::Open { .. }
            | Action::Abandon { .. }
            | Action::EraseInput { .. } => false,
        })
}

/// What appends bring, by which two of them can be in each other's way.
#[derive(Default)]
struct Touched {
    files: BTreeSet<(PartitionKey, String)>,
    inputs: BTreeSet<(BusinessDate, ContentHash)>,
    batches: BTreeSet<(BusinessDate, BatchLabel)>,
    formats: BTreeSet<&'static str>,
}

impl Touched {
    /// Adds the draft, unless it meets what is there already.
    fn add(&mut self, draft: &Draft) -> bool {
        let mut new = Self::default();
        for action in &draft.actions {
            match action {
                Action::AddFile { partition, file } => {
                    new.files.insert((*partition, file.name.clone()));
                    new.formats.insert(file.format.as_str());
                }
                Action::AddInput { partition, input } => {
                    new.inputs.insert((partition.dt, input.content.clone()));
                    let batch = input.batch.clone();
                    new.batches.extend(batch.map(|b| (partition.dt, b)));
                }
                Action::AddPartition { .. }
                | Action::RemoveFile { .. }
                | Action::AddRejects { .. }
                | Action::RetryRejects { .. }
                | Action::SetState { .. }
                | Action::Complete { .. }
                | Action::Open { .. }
                | Action::Abandon { .. }
                | Action::EraseInput { .. } => return false,
            }
        }
        let free = self.files.is_disjoint(&new.files)
            && self.inputs.is_disjoint(&new.inputs)
            && self.batches.is_disjoint(&new.batches)
            && (self.formats.is_empty() || self.formats.is_superset(&new.formats));
        if free {
            self.files.append(&mut new.files);
            self.inputs.append(&mut new.inputs);
            self.batches.append(&mut new.batches);
            self.formats.append(&mut new.formats);
        }
        free
    }
}

#[cfg(test)]
mod tests;
