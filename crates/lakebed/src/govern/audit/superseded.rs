//! Superseded partitions: their files wait whole for a rollback, and nothing else lies beside them.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::govern::audit::collect::DatasetView;
use crate::govern::audit::files::{Notes, manual};
use crate::govern::audit::{Repair, Severity};
use crate::log::{DatasetState, find_file};
use crate::spec::PartitionState;
use crate::store::{Lake, StorePath};

pub(super) async fn check(
    lake: &Lake,
    state: &DatasetState,
    data: &DatasetView,
    notes: &mut Notes<'_>,
) -> Result<()> {
    let mut known = BTreeSet::new();
    let partitions = state.partitions().iter();
    for (key, partition) in partitions.filter(|(_, p)| p.state == PartitionState::Superseded) {
        for file in partition.files.values() {
            let Some(path) = state.place_of(key, &file.spec.name) else {
                continue;
            };
            if data.superseded.get(&path) != Some(&file.spec.bytes) {
                let elsewhere = find_file(lake, state, key, &file.spec.name).await?;
                let size = lake.store().find_size(&path).await?;
                match elsewhere {
                    // It came since the listing.
                    Some(_) if size == Some(file.spec.bytes) => {}
                    Some(place) if place != path => notes.add(
                        "FIL-5",
                        Severity::Warning,
                        &path,
                        format!("is not at its place, but at `{place}`: a switch was interrupted"),
                        Repair::FinishMoves,
                    ),
                    Some(_) | None => notes.add(
                        "FIL-5",
                        Severity::Error,
                        &path,
                        format!("was superseded, but is not there whole: {key} cannot be shown again"),
                        manual("restore the file from a backup, where the old rows may still be needed"),
                    ),
                }
            }
            known.insert(path);
        }
    }
    for path in data.superseded.keys() {
        if !known.contains(path) && !is_explained(lake, state, path).await? {
            notes.add(
                "FIL-5",
                Severity::Warning,
                path,
                "lies among superseded files, but no record of the log names it there".into(),
                manual("look at the file; it is safe to move it out of the lake"),
            );
        }
    }
    Ok(())
}

/// Whether the file has left since the listing, or is on its way: what is said of it at its place is
/// enough then.
async fn is_explained(lake: &Lake, state: &DatasetState, path: &StorePath) -> Result<bool> {
    if lake.store().find_size(path).await?.is_none() {
        return Ok(true);
    }
    let name = path.file_name();
    for (key, partition) in state.partitions() {
        if partition.files.contains_key(&*name)
            && find_file(lake, state, key, &name).await?.as_ref() == Some(path)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
