//! Where a file lies: its place follows from the state of its partition.
//!
//! ```text
//! active, switching   <layer>/<dataset>/dt=.../schema_version=.../<name>     folder readers see it
//! superseded          _lake/superseded/<layer>/<dataset>/<record>/dt=.../schema_version=.../<name>
//! ```
//!
//! Until a move is finished, a file still lies where it was before: in the stage of its attempt, in
//! the data folder, or where an earlier record had put it. Whoever misses it looks there.

use crate::error::Result;
use crate::log::state::{DatasetState, FileState, Partition};
use crate::spec::{PartitionKey, PartitionState};
use crate::store::{Lake, MoveOutcome, StorePath, partition_dir, staged_path, superseded_dir};

/// What became of a file that was to be at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brought {
    Moved,
    Already,
    /// It is nowhere.
    Missing,
}

impl DatasetState {
    /// The folder in which a partition's files belong; `None` where its state gives them none.
    #[must_use]
    pub fn folder_of(&self, key: &PartitionKey) -> Option<StorePath> {
        let partition = self.partitions().get(key)?;
        match partition.state {
            PartitionState::Active | PartitionState::Switching => {
                Some(partition_dir(self.dataset(), key))
            }
            PartitionState::Superseded => {
                Some(superseded_dir(self.dataset(), partition.since, key))
            }
            PartitionState::Retired | PartitionState::Purged => None,
        }
    }

    /// The place of a file; `None` where its partition's state gives it none.
    #[must_use]
    pub fn place_of(&self, key: &PartitionKey, name: &str) -> Option<StorePath> {
        Some(self.folder_of(key)?.child(name))
    }

    /// Every place at which a file may lie while its move is not finished, the likely ones first.
    fn earlier_places(
        &self,
        key: &PartitionKey,
        partition: &Partition,
        file: &FileState,
    ) -> Vec<StorePath> {
        let name = &file.spec.name;
        let data = partition_dir(self.dataset(), key).child(name);
        let mut places = Vec::new();
        if let Some(attempt) = &file.attempt {
            places.push(staged_path(attempt, &data));
        }
        for number in partition.superseded_by.iter().rev() {
            places.push(superseded_dir(self.dataset(), *number, key).child(name));
        }
        places.push(data);
        places
    }
}

/// Moves a file to its place from wherever it lies.
pub(super) async fn bring(
    lake: &Lake,
    state: &DatasetState,
    key: &PartitionKey,
    file: &FileState,
) -> Result<Brought> {
    let (Some(target), Some(partition)) = (
        state.place_of(key, &file.spec.name),
        state.partitions().get(key),
    ) else {
        return Ok(Brought::Missing);
    };
    let places = state.earlier_places(key, partition, file);
    // Twice: another mover may carry it from a place not looked at yet to one already looked at.
    for _ in 0..2 {
        if lake.store().find_size(&target).await?.is_some() {
            return Ok(Brought::Already);
        }
        for place in places.iter().filter(|p| **p != target) {
            match lake.store().move_file(place, &target).await? {
                MoveOutcome::Moved => return Ok(Brought::Moved),
                MoveOutcome::AlreadyMoved => return Ok(Brought::Already),
                MoveOutcome::Missing => {}
            }
        }
    }
    Ok(Brought::Missing)
}

/// Where a file of the dataset lies now, by its name, whatever became of its partition since;
/// `None` = nowhere. For readers whose plan is older than a move.
pub async fn find_file(
    lake: &Lake,
    state: &DatasetState,
    key: &PartitionKey,
    name: &str,
) -> Result<Option<StorePath>> {
    let Some(partition) = state.partitions().get(key) else {
        return Ok(None);
    };
    let Some(file) = partition.files.get(name) else {
        return Ok(None);
    };
    let mut places: Vec<StorePath> = state.place_of(key, name).into_iter().collect();
    places.extend(state.earlier_places(key, partition, file));
    for _ in 0..2 {
        for place in &places {
            if lake.store().find_size(place).await?.is_some() {
                return Ok(Some(place.clone()));
            }
        }
    }
    Ok(None)
}
