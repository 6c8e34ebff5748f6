//! Step 3 of a write: staged files of a committed record move to their final places.
//!
//! LOG-7: only files that a committed record names are ever moved out of the stage; so a folder
//! reader sees committed rows only. Any opener may finish a move; each rename is idempotent.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::fault::kill_point;
use crate::log::state::DatasetState;
use crate::name::AttemptId;
use crate::store::{
    Lake, ListedFile, MoveOutcome, StorePath, data_file_path, rejects_dir, stage_dir, stage_root,
};

/// Files under the stage, by attempt. Temporary files of puts are not among them.
pub async fn staged_attempts(lake: &Lake) -> Result<BTreeMap<AttemptId, Vec<ListedFile>>> {
    let root = stage_root();
    let mut attempts: BTreeMap<AttemptId, Vec<ListedFile>> = BTreeMap::new();
    for file in lake.store().list(&root).await? {
        let attempt = file
            .path
            .below(&root)
            .and_then(|rest| rest.split('/').next())
            .map(str::parse);
        if let Some(Ok(attempt)) = attempt {
            attempts.entry(attempt).or_default().push(file);
        }
    }
    Ok(attempts)
}

/// Finishes the moves of every committed attempt of the dataset; answers how many files moved.
pub async fn finish_moves(lake: &Lake, state: &DatasetState) -> Result<usize> {
    if !lake.store().capabilities().rename {
        return Ok(0);
    }
    let mut moved = 0;
    for (attempt, files) in staged_attempts(lake).await? {
        let Some(number) = state.committed_attempt(&attempt) else {
            continue;
        };
        kill_point("move.before");
        let wanted = final_paths(state, &attempt, number);
        let stage = stage_dir(&attempt);
        let mut left = 0;
        for file in &files {
            let target = file.path.below(&stage).map(StorePath::new).transpose()?;
            match target.filter(|t| wanted.contains(t)) {
                Some(target) => match lake.store().move_file(&file.path, &target).await? {
                    MoveOutcome::Moved => {
                        moved += 1;
                        kill_point("move.one_moved");
                    }
                    MoveOutcome::AlreadyMoved | MoveOutcome::Missing => {}
                },
                // Not named by the record: a stranger, which `audit` lists.
                None => left += 1,
            }
        }
        if left == 0 {
            lake.store().delete_folder(&stage).await?;
        }
        kill_point("move.done");
    }
    Ok(moved)
}

/// Where the files of an attempt belong, by its record.
#[must_use]
pub fn final_paths(state: &DatasetState, attempt: &AttemptId, number: u64) -> BTreeSet<StorePath> {
    let mut paths = BTreeSet::new();
    for (key, partition) in state.partitions().iter().filter(|(_, p)| p.is_visible()) {
        for file in partition
            .files
            .values()
            .filter(|f| f.number == number && f.attempt.as_ref() == Some(attempt))
        {
            paths.insert(data_file_path(state.dataset(), key, &file.spec.name));
        }
    }
    for (dt, date) in state.dates() {
        for rejects in date.rejects.iter().filter(|r| r.number == number) {
            paths.insert(rejects_dir(state.dataset(), *dt).child(&rejects.spec.name));
        }
    }
    paths
}
