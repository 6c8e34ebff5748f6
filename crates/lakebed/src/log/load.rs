//! Getting the fold of a dataset from its log.

use crate::error::Result;
use crate::log::state::DatasetState;
use crate::log::walk::LogWalk;
use crate::name::DatasetRef;
use crate::store::Lake;

impl DatasetState {
    /// Reads and folds the whole log.
    pub async fn load(lake: &Lake, dataset: &DatasetRef) -> Result<Self> {
        let mut state = Self::empty(dataset.clone());
        state.catch_up(lake).await?;
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
