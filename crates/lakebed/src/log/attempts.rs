//! Attempts as a person meets them: what is known of one, and giving it up with what it staged.

use crate::error::Result;
use crate::fault::kill_point;
use crate::log::complete::{SealOutcome, abandon};
use crate::log::moves::staged_attempts;
use crate::log::state::DatasetState;
use crate::name::{AttemptId, DatasetRef};
use crate::spec::By;
use crate::store::{Lake, StorePath, final_path, partition_of, stage_dir, stage_root};

/// What a lake knows of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptTrace {
    /// The dataset's log has its commit.
    Committed {
        /// Number of the record.
        number: u64,
    },
    /// The dataset's log says that it can never commit.
    Abandoned {
        /// Number of the record.
        number: u64,
        /// Files that still lie in the stage.
        files: usize,
    },
    /// It has files in the stage and no record.
    Staged {
        /// The dataset that the files are for; `None` = of none.
        dataset: Option<DatasetRef>,
        /// How many.
        files: usize,
    },
    /// Neither the dataset's log nor the stage knows it.
    Unseen,
}

/// What is known of the attempt; changes nothing.
pub async fn trace_attempt(
    lake: &Lake,
    state: &DatasetState,
    attempt: &AttemptId,
) -> Result<AttemptTrace> {
    if let Some(number) = state.committed_attempt(attempt) {
        return Ok(AttemptTrace::Committed { number });
    }
    let staged = staged_attempts(lake).await?.remove(attempt);
    if let Some(number) = state.abandoned_by(attempt) {
        return Ok(AttemptTrace::Abandoned {
            number,
            files: staged.map_or(0, |f| f.len()),
        });
    }
    Ok(match staged {
        None => AttemptTrace::Unseen,
        Some(files) => AttemptTrace::Staged {
            dataset: files.iter().find_map(|f| staged_dataset(&f.path)),
            files: files.len(),
        },
    })
}

/// Gives an attempt up for good, then deletes what it staged. The record goes first: a sleeper that
/// wakes then fails its requirement.
pub async fn give_up(
    lake: &Lake,
    state: &mut DatasetState,
    attempt: &AttemptId,
    by: By,
) -> Result<SealOutcome> {
    let outcome = abandon(lake, state, attempt, by).await?;
    kill_point("repair.abandoned");
    lake.store().delete_folder(&stage_dir(attempt)).await?;
    Ok(outcome)
}

/// The dataset that a staged file is for: its final path follows the attempt.
#[must_use]
pub fn staged_dataset(path: &StorePath) -> Option<DatasetRef> {
    let attempt = path.as_str().split('/').nth(2)?;
    let rest = final_path(&stage_root().child(attempt), path)?;
    if let Some(below) = rest.as_str().strip_prefix("_lake/rejects/") {
        let mut parts = below.split('/');
        return format!("{}/{}", parts.next()?, parts.next()?).parse().ok();
    }
    partition_of(&rest).map(|(dataset, _, _)| dataset)
}
