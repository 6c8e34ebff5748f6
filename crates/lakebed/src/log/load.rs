//! Getting the fold of a dataset: from the newest checkpoint that can be believed and the records
//! after it, or from the records alone.

use crate::error::Result;
use crate::log::checkpoint::{CheckpointContent, PassedOver, list_checkpoints, read_checkpoint};
use crate::log::state::DatasetState;
use crate::log::walk::LogWalk;
use crate::name::DatasetRef;
use crate::store::Lake;

/// A fold, and what was in the way of getting it faster.
#[derive(Debug)]
pub struct Loaded {
    /// The fold.
    pub state: DatasetState,
    /// Checkpoints that could not be used; the fold is right without them.
    pub passed_over: Vec<PassedOver>,
}

impl DatasetState {
    /// The fold of the whole log. Checkpoints that cannot be used are passed over.
    pub async fn load(lake: &Lake, dataset: &DatasetRef) -> Result<Self> {
        Ok(load(lake, dataset).await?.state)
    }

    /// The fold of the first `number` records, or of all where there are fewer.
    pub async fn load_at(lake: &Lake, dataset: &DatasetRef, number: u64) -> Result<Self> {
        Ok(load_until(lake, dataset, number).await?.state)
    }

    /// The fold of the whole log from its records alone.
    pub async fn fold_records(lake: &Lake, dataset: &DatasetRef) -> Result<Self> {
        let mut state = Self::empty(dataset.clone());
        fold_on(lake, &mut state, u64::MAX).await?;
        Ok(state)
    }

    /// Folds what was committed since; answers how many records that were.
    pub async fn catch_up(&mut self, lake: &Lake) -> Result<usize> {
        let mut walk = if self.position().number == 0 {
            LogWalk::whole(lake, self.dataset(), self.position().clone()).await?
        } else {
            LogWalk::after(lake, self.dataset(), self.position().clone()).await?
        };
        let mut folded = 0;
        loop {
            let batch = walk.next_batch().await?;
            if batch.is_empty() {
                return Ok(folded);
            }
            for logged in &batch {
                self.apply(logged)?;
            }
            folded += batch.len();
        }
    }
}

/// The fold of the whole log, with the checkpoints that were passed over.
pub async fn load(lake: &Lake, dataset: &DatasetRef) -> Result<Loaded> {
    load_until(lake, dataset, u64::MAX).await
}

async fn load_until(lake: &Lake, dataset: &DatasetRef, number: u64) -> Result<Loaded> {
    let mut passed_over = Vec::new();
    for checkpoint in list_checkpoints(lake, dataset).await? {
        if checkpoint.number > number {
            continue;
        }
        let reason = match read_checkpoint(lake, dataset, &checkpoint).await {
            Ok(CheckpointContent::Fold(state)) => {
                let mut state = *state;
                match fold_on(lake, &mut state, number).await {
                    Ok(()) => return Ok(Loaded { state, passed_over }),
                    // Whose fault it is, the records alone tell.
                    Err(e) => e.to_string(),
                }
            }
            Ok(CheckpointContent::Newer { format }) => {
                format!("a newer program wrote it (format {format})")
            }
            Ok(CheckpointContent::Gone) => continue,
            Err(e) => e.to_string(),
        };
        passed_over.push(PassedOver {
            path: checkpoint.path,
            reason,
        });
    }
    let mut state = DatasetState::empty(dataset.clone());
    fold_on(lake, &mut state, number).await?;
    Ok(Loaded { state, passed_over })
}

/// Folds the records after the state up to `number`, or to the end of the log.
async fn fold_on(lake: &Lake, state: &mut DatasetState, number: u64) -> Result<()> {
    let from = state.position().clone();
    let mut walk = LogWalk::whole(lake, state.dataset(), from)
        .await?
        .until(number);
    loop {
        let batch = walk.next_batch().await?;
        if batch.is_empty() {
            return Ok(());
        }
        for logged in &batch {
            state.apply(logged)?;
        }
    }
}
