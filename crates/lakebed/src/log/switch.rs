//! Switching a date to another of its revisions: forward, or back again (a rollback).
//!
//! ```text
//!                 one record                        files move              one record
//! revision a   active -> superseded                 out
//! revision b   superseded -> switching                    then in           switching -> active
//! ```
//!
//! Readers of the log and the catalog see exactly one revision at every record (LOG-8).

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::commit::CommitOutcome;
use crate::log::draft::Draft;
use crate::log::moves::finish_moves;
use crate::log::state::DatasetState;
use crate::log::success::{commit_withdrawn, withdraw_success, write_success};
use crate::spec::{Action, By, Operation, PartitionKey, PartitionState, Requirement};
use crate::store::Lake;
use crate::time::BusinessDate;

/// How often a switch looks again when the date changes under it.
const MAX_ROUNDS: usize = 20;

/// Which revision a date is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchTarget {
    /// The revision that the active one replaced.
    Previous,
    /// This revision.
    Revision(u32),
}

/// One switch of a date.
#[derive(Debug, Clone)]
pub struct SwitchRequest {
    /// The date.
    pub dt: BusinessDate,
    /// Where to.
    pub target: SwitchTarget,
    /// Hide inputs that were appended since as well.
    pub drop_late: bool,
    /// Who asks.
    pub by: By,
}

/// Answer of [`switch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SwitchOutcome {
    /// Done by this call.
    Done {
        /// The record that switched.
        number: u64,
        /// The revision that was active.
        from: u32,
        /// The revision that is active.
        to: u32,
        /// Whether every file is at its place.
        moved: bool,
    },
    /// It was active before.
    AlreadySo {
        /// The revision.
        revision: u32,
    },
}

/// Makes another revision of a date the one that readers see.
///
/// # Errors
/// `NotFound` for a date or revision that does not exist, `PreconditionFailed` where inputs that were
/// appended since would be hidden, or where the revision was retired.
pub async fn switch(
    lake: &Lake,
    state: &mut DatasetState,
    request: &SwitchRequest,
) -> Result<SwitchOutcome> {
    let dt = request.dt;
    for _ in 0..MAX_ROUNDS {
        state.catch_up(lake).await?;
        finish_moves(lake, state).await?;
        let from = state.active_revision(dt);
        let to = resolve(state, request)?;
        if from == to {
            return Ok(SwitchOutcome::AlreadySo { revision: to });
        }
        let draft = draft(lake, state, request, to)?;
        let sealed = state.is_sealed(dt);
        if sealed {
            withdraw_success(lake, state, dt).await?;
        }
        kill_point("switch.before_commit");
        match commit_withdrawn(lake, state, dt, &draft).await? {
            CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
                kill_point("switch.committed");
                // What fails here leaves the switch standing: any opener finishes it.
                let moved = finish_moves(lake, state).await.is_ok()
                    && (!sealed || write_success(lake, state, dt).await.is_ok());
                return Ok(SwitchOutcome::Done {
                    number: logged.record.number,
                    from,
                    to,
                    moved,
                });
            }
            CommitOutcome::Conflict(_) => {
                write_success(lake, state, dt).await?;
            }
        }
    }
    Err(state.restless(dt, MAX_ROUNDS))
}

fn resolve(state: &DatasetState, request: &SwitchRequest) -> Result<u32> {
    let dt = request.dt;
    let Some(date) = state.dates().get(&dt) else {
        return Err(Error::not_found(format!(
            "there is nothing of {dt} in `{}`",
            state.dataset()
        )));
    };
    match request.target {
        SwitchTarget::Revision(revision) => Ok(revision),
        SwitchTarget::Previous => match date.revisions.get(&date.active) {
            Some(active) => Ok(active.base),
            None => Err(Error::precondition(format!(
                "{dt} of `{}` shows revision {}, which replaced nothing",
                state.dataset(),
                date.active
            ))
            .hint(format!(
                "`lakebed partitions {} --all` shows every revision",
                state.dataset()
            ))),
        },
    }
}

fn draft(lake: &Lake, state: &DatasetState, request: &SwitchRequest, to: u32) -> Result<Draft> {
    let dt = request.dt;
    let target: Vec<(PartitionKey, PartitionState)> = state
        .partitions_of(dt)
        .filter(|(k, _)| k.revision == to)
        .map(|(k, p)| (*k, p.state))
        .collect();
    if target.is_empty() {
        return Err(Error::not_found(format!(
            "{dt} of `{}` has no revision {to}",
            state.dataset()
        ))
        .hint(format!(
            "`lakebed partitions {} --all` shows every revision",
            state.dataset()
        )));
    }
    if let Some((key, gone)) = target
        .iter()
        .find(|(_, s)| *s != PartitionState::Superseded)
    {
        return Err(
            Error::precondition(format!("{key} is {gone}, it cannot be shown again"))
                .hint("only superseded revisions are kept whole"),
        );
    }
    let late = late_inputs(state, dt, to);
    if !late.is_empty() && !request.drop_late {
        return Err(Error::precondition(format!(
            "the switch would hide what was added to {dt} since: {}",
            late.join(", ")
        ))
        .hint(
            "add those inputs to the other revision afterwards, or hide them with `--drop-late`",
        ));
    }
    let mut draft = Draft::new(lake, Operation::Switch, request.by.clone())?;
    let number = state.changed(dt);
    draft.requires = vec![Requirement::DateUnchanged { dt, number }];
    draft.actions = superseding(state, dt);
    let shown = if lake.store().capabilities().rename {
        PartitionState::Switching
    } else {
        PartitionState::Active
    };
    draft.actions.extend(
        target
            .into_iter()
            .map(|(partition, from)| Action::SetState {
                partition,
                from,
                to: shown,
            }),
    );
    if state.is_sealed(dt) {
        draft.actions.push(Action::Complete { dt });
    }
    Ok(draft)
}

/// What takes the active revision of a date out of the sight of readers.
#[must_use]
pub fn superseding(state: &DatasetState, dt: BusinessDate) -> Vec<Action> {
    state
        .visible_of(dt)
        .map(|(key, partition)| Action::SetState {
            partition: *key,
            from: partition.state,
            to: PartitionState::Superseded,
        })
        .collect()
}

/// Inputs that were appended to the active revision after it, and the other one, began: `name
/// (record n)`. Revision 0 began with its inputs, so nothing was appended to it by that measure
/// alone.
fn late_inputs(state: &DatasetState, dt: BusinessDate, to: u32) -> Vec<String> {
    let Some(date) = state.dates().get(&dt) else {
        return Vec::new();
    };
    let began = |revision| date.revisions.get(&revision).map_or(0, |r| r.number);
    let since = began(date.active).max(began(to));
    state
        .visible_inputs(dt)
        .filter(|(_, i)| i.number > since)
        .map(|(_, i)| format!("`{}` (record {})", i.spec.name, i.number))
        .collect()
}
