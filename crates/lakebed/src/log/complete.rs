//! Completeness of a date: seal and reopen; and attempts that are given up.

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::commit::{CommitOutcome, commit};
use crate::log::draft::Draft;
use crate::log::moves::finish_moves;
use crate::log::state::DatasetState;
use crate::log::success::{commit_withdrawn, withdraw_success, write_success};
use crate::name::AttemptId;
use crate::spec::{Action, By, Operation, Requirement};
use crate::store::Lake;
use crate::time::BusinessDate;

/// How often a seal looks again when the date changes under it.
const MAX_ROUNDS: usize = 20;

/// Answer of [`seal`], [`reopen`] and [`abandon`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SealOutcome {
    /// Done by this call, as record `number`.
    Done {
        /// Record number.
        number: u64,
    },
    /// It was so before.
    AlreadySo {
        /// The record that made it so; 0 = it was never otherwise.
        number: u64,
    },
}

/// Declares the date complete and writes its `_SUCCESS` files.
pub async fn seal(
    lake: &Lake,
    state: &mut DatasetState,
    dt: BusinessDate,
    by: By,
) -> Result<SealOutcome> {
    for _ in 0..MAX_ROUNDS {
        state.catch_up(lake).await?;
        finish_moves(lake, state).await?;
        if let Some((number, _)) = state.dates().get(&dt).and_then(|d| d.sealed) {
            write_success(lake, state, dt).await?;
            return Ok(SealOutcome::AlreadySo { number });
        }
        let draft = seal_draft(lake, state, dt, by.clone())?;
        kill_point("seal.before_commit");
        match commit(lake, state, &draft).await? {
            CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
                kill_point("seal.committed");
                finish_moves(lake, state).await?;
                write_success(lake, state, dt).await?;
                return Ok(SealOutcome::Done {
                    number: logged.record.number,
                });
            }
            // Sealed by another, or another revision is shown now: the next round tells.
            CommitOutcome::Conflict(_) => {}
        }
    }
    Err(state.restless(dt, MAX_ROUNDS))
}

fn seal_draft(lake: &Lake, state: &DatasetState, dt: BusinessDate, by: By) -> Result<Draft> {
    if state.visible_of(dt).next().is_none() {
        return Err(Error::precondition(format!("there is nothing of {dt} in `{}` to seal", state.dataset()))
            .hint("ingest the date first; a day that found nothing is ingested as an empty array or a CSV header alone"));
    }
    let mut draft = Draft::new(lake, Operation::Seal, by)?;
    draft.requires = vec![Requirement::DateOpen { dt }];
    draft.requires.extend(
        state
            .visible_of(dt)
            .map(|(k, _)| Requirement::PartitionActive { partition: *k }),
    );
    draft.actions = vec![Action::Complete { dt }];
    Ok(draft)
}

/// Opens a sealed date again; its `_SUCCESS` files go first.
pub async fn reopen(
    lake: &Lake,
    state: &mut DatasetState,
    dt: BusinessDate,
    by: By,
) -> Result<SealOutcome> {
    state.catch_up(lake).await?;
    if !state.dates().contains_key(&dt) {
        return Err(Error::not_found(format!(
            "there is nothing of {dt} in `{}`",
            state.dataset()
        )));
    }
    if !state.is_sealed(dt) {
        write_success(lake, state, dt).await?;
        return Ok(SealOutcome::AlreadySo { number: 0 });
    }
    withdraw_success(lake, state, dt).await?;
    let mut draft = Draft::new(lake, Operation::Reopen, by)?;
    draft.requires = vec![Requirement::DateSealed { dt }];
    draft.actions = vec![Action::Open { dt }];
    let outcome = match commit_withdrawn(lake, state, dt, &draft).await? {
        CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
            SealOutcome::Done {
                number: logged.record.number,
            }
        }
        CommitOutcome::Conflict(_) => SealOutcome::AlreadySo {
            number: state.position().number,
        },
    };
    // Another call may have written them anew between their removal and the record.
    write_success(lake, state, dt).await?;
    Ok(outcome)
}

/// Gives an attempt up for good: it can never commit any more.
pub async fn abandon(
    lake: &Lake,
    state: &mut DatasetState,
    attempt: &AttemptId,
    by: By,
) -> Result<SealOutcome> {
    state.catch_up(lake).await?;
    if let Some(number) = state.abandoned_by(attempt) {
        return Ok(SealOutcome::AlreadySo { number });
    }
    let mut draft = Draft::new(lake, Operation::Abandon, by)?;
    draft.requires = vec![Requirement::AttemptOpen {
        attempt: attempt.clone(),
    }];
    draft.actions = vec![Action::Abandon {
        attempt: attempt.clone(),
    }];
    let committed = |state: &DatasetState| match state.committed_attempt(attempt) {
        None => Ok(()),
        Some(number) => Err(Error::precondition(format!(
            "attempt `{attempt}` has committed as record {number}"
        ))
        .hint("a committed attempt is data; it cannot be abandoned")),
    };
    committed(state)?;
    let outcome = match commit(lake, state, &draft).await? {
        CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
            SealOutcome::Done {
                number: logged.record.number,
            }
        }
        CommitOutcome::Conflict(_) => SealOutcome::AlreadySo {
            number: state.abandoned_by(attempt).unwrap_or(0),
        },
    };
    // The attempt may have committed between the look and the put; the earlier record stands.
    committed(state)?;
    Ok(outcome)
}
