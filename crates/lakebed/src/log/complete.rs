//! Completeness of a date: seal, reopen, and the `_SUCCESS` files that show it to folder readers.
//!
//! CMP-1: `_SUCCESS` is never there while its date is open: it is removed before the record that
//! opens the date, and written after the record that seals it. CMP-2: it names the seal in force and
//! exactly the partition's files.

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::commit::{CommitOutcome, Draft, commit, refusal};
use crate::log::moves::finish_moves;
use crate::log::state::DatasetState;
use crate::name::AttemptId;
use crate::spec::{Action, By, Operation, PartitionKey, Requirement, SuccessFile, SuccessSpec};
use crate::store::{Lake, success_path};
use crate::time::BusinessDate;

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
    state.catch_up(lake).await?;
    finish_moves(lake, state).await?;
    if let Some((number, _)) = state.dates().get(&dt).and_then(|d| d.sealed) {
        write_success(lake, state, dt).await?;
        return Ok(SealOutcome::AlreadySo { number });
    }
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
    kill_point("seal.before_commit");
    let outcome = match commit(lake, state, &draft).await? {
        CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
            SealOutcome::Done {
                number: logged.record.number,
            }
        }
        CommitOutcome::Conflict(unmet) => match state.dates().get(&dt).and_then(|d| d.sealed) {
            Some((number, _)) => SealOutcome::AlreadySo { number },
            None => return Err(refusal(&unmet)),
        },
    };
    kill_point("seal.committed");
    finish_moves(lake, state).await?;
    write_success(lake, state, dt).await?;
    Ok(outcome)
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
    withdraw_success(lake, state, dt).await?;
    if !state.is_sealed(dt) {
        return Ok(SealOutcome::AlreadySo { number: 0 });
    }
    let mut draft = Draft::new(lake, Operation::Reopen, by)?;
    draft.requires = vec![Requirement::DateSealed { dt }];
    draft.actions = vec![Action::Open { dt }];
    match commit(lake, state, &draft).await? {
        CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
            Ok(SealOutcome::Done {
                number: logged.record.number,
            })
        }
        CommitOutcome::Conflict(_) => Ok(SealOutcome::AlreadySo {
            number: state.position().number,
        }),
    }
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

/// What `_SUCCESS` of a partition must say; `None` while the date is open.
#[must_use]
pub fn expected_success(
    lake: &Lake,
    state: &DatasetState,
    key: &PartitionKey,
) -> Option<SuccessSpec> {
    let (log_position, sealed_at) = state.dates().get(&key.dt)?.sealed?;
    let partition = state.partitions().get(key).filter(|p| p.is_visible())?;
    let files: Vec<SuccessFile> = partition
        .files
        .values()
        .map(|f| SuccessFile {
            name: f.spec.name.clone(),
            rows: f.spec.rows,
            bytes: f.spec.bytes,
            blake3: f.spec.blake3.clone(),
        })
        .collect();
    Some(SuccessSpec {
        format: 1,
        lake: lake.id().clone(),
        dataset: state.dataset().clone(),
        partition: *key,
        log_position,
        sealed_at,
        file_count: files.len() as u64,
        row_count: files.iter().map(|f| f.rows).sum(),
        byte_size: files.iter().map(|f| f.bytes).sum(),
        files,
    })
}

/// Writes the `_SUCCESS` files of a sealed date where they are not as they must be.
pub async fn write_success(lake: &Lake, state: &DatasetState, dt: BusinessDate) -> Result<usize> {
    let mut written = 0;
    for (key, _) in state.visible_of(dt) {
        let Some(spec) = expected_success(lake, state, key) else {
            continue;
        };
        let mut bytes = serde_json::to_vec_pretty(&spec)
            .map_err(|e| Error::internal("write _SUCCESS as JSON").caused_by(e))?;
        bytes.push(b'\n');
        let path = success_path(state.dataset(), key);
        if lake.store().find(&path).await?.as_deref() == Some(bytes.as_slice()) {
            continue;
        }
        lake.store().replace(&path, &bytes).await?;
        written += 1;
        kill_point("success.one_written");
    }
    Ok(written)
}

/// Removes the `_SUCCESS` files of a date, before the record that opens it.
pub async fn withdraw_success(lake: &Lake, state: &DatasetState, dt: BusinessDate) -> Result<()> {
    for (key, _) in state.visible_of(dt) {
        lake.store()
            .delete(&success_path(state.dataset(), key))
            .await?;
    }
    kill_point("late.success_removed");
    Ok(())
}
