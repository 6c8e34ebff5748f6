//! The `_SUCCESS` files that show the completeness of a date to folder readers.
//!
//! CMP-1: `_SUCCESS` is never there while its date is open: it is removed before the record that
//! opens the date, and written after the record that seals it. A writer that was overtaken there takes
//! back what it did (`write_success` looks at the log again). CMP-2: it names the seal in force and
//! exactly the partition's files.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::commit::{CommitOutcome, commit};
use crate::log::draft::Draft;
use crate::log::state::DatasetState;
use crate::spec::{PartitionKey, SuccessFile, SuccessSpec};
use crate::store::{Lake, StorePath, success_path};
use crate::time::BusinessDate;

/// How often the log is looked at again.
const MAX_ROUNDS: usize = 20;

/// What `_SUCCESS` of a partition must say; `None` while the date is open or its
/// files move between revisions.
#[must_use]
pub fn expected_success(
    lake: &Lake,
    state: &DatasetState,
    key: &PartitionKey,
) -> Option<SuccessSpec> {
    let (log_position, sealed_at) = state.dates().get(&key.dt)?.sealed?;
    if state.is_switching(key.dt) {
        return None;
    }
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

/// Makes the `_SUCCESS` files of a date what the log says: written where it is sealed, gone where not.
///
/// Whoever slept meanwhile may have written an old one, or removed a new one: so the log is read again
/// afterwards, and what came meanwhile is done as well. `state` is at the log's end then.
pub async fn write_success(
    lake: &Lake,
    state: &mut DatasetState,
    dt: BusinessDate,
) -> Result<usize> {
    let mut written = 0;
    for _ in 0..MAX_ROUNDS {
        for (path, wanted) in wanted_success(lake, state, dt)? {
            let Some(bytes) = wanted else {
                lake.store().delete(&path).await?;
                continue;
            };
            if lake.store().find(&path).await?.as_deref() == Some(bytes.as_slice()) {
                continue;
            }
            lake.store().replace(&path, &bytes).await?;
            written += 1;
            kill_point("success.one_written");
        }
        let changed = state.changed(dt);
        state.catch_up(lake).await?;
        if state.changed(dt) == changed {
            return Ok(written);
        }
    }
    Err(state.restless(dt, MAX_ROUNDS))
}

/// What must lie in each partition folder that the date ever had; `None` = no `_SUCCESS`.
fn wanted_success(
    lake: &Lake,
    state: &DatasetState,
    dt: BusinessDate,
) -> Result<BTreeMap<StorePath, Option<Vec<u8>>>> {
    let mut wanted = BTreeMap::new();
    for (key, _) in state.partitions_of(dt) {
        // Revisions share a folder, and one of them at most is visible.
        let entry = wanted
            .entry(success_path(state.dataset(), key))
            .or_insert(None);
        if let Some(spec) = expected_success(lake, state, key) {
            let mut bytes = serde_json::to_vec_pretty(&spec)
                .map_err(|e| Error::internal("write _SUCCESS as JSON").caused_by(e))?;
            bytes.push(b'\n');
            *entry = Some(bytes);
        }
    }
    Ok(wanted)
}

/// Puts a record before which `_SUCCESS` was withdrawn; where that fails, the files come back, unless the
/// record was put after all.
pub(super) async fn commit_withdrawn(
    lake: &Lake,
    state: &mut DatasetState,
    dt: BusinessDate,
    draft: &Draft,
) -> Result<CommitOutcome> {
    let outcome = commit(lake, state, draft).await;
    if outcome.is_err() {
        drop(write_success(lake, state, dt).await);
    }
    outcome
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
