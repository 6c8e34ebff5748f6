//! Step 3 of a write: files of committed records move to their places.
//!
//! LOG-7: only files that a committed record names are ever moved out of the stage; so a folder
//! reader sees committed rows only. LOG-9: while a date switches its revision, every old file leaves
//! the data folders before the first new one comes in; so a folder reader may miss rows for a moment,
//! but never counts one twice. Any opener may finish a move; each rename is idempotent.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::commit::{CommitOutcome, commit};
use crate::log::draft::Draft;
use crate::log::place::{Brought, bring};
use crate::log::state::{DatasetState, FileState, RejectsState};
use crate::log::success::write_success;
use crate::name::AttemptId;
use crate::spec::{Action, By, Operation, PartitionKey, PartitionState, Requirement};
use crate::store::{
    Lake, ListedFile, MoveOutcome, StorePath, data_file_path, final_path, rejects_dir, stage_dir,
    stage_root,
};
use crate::time::BusinessDate;

/// How often a mover starts over when the date changes under it.
const MAX_ROUNDS: usize = 20;

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

/// Finishes the moves of every committed attempt of the dataset and every switch that was begun;
/// answers how many files moved.
pub async fn finish_moves(lake: &Lake, state: &mut DatasetState) -> Result<usize> {
    if !lake.store().capabilities().rename {
        return Ok(0);
    }
    let mut moved = 0;
    for dt in switching_dates(state) {
        moved += finish_switch(lake, state, dt).await?;
    }
    for (attempt, files) in staged_attempts(lake).await? {
        if let Some(number) = state.committed_attempt(&attempt) {
            moved += empty_stage(lake, state, (&attempt, number), &files).await?;
        }
    }
    Ok(moved)
}

fn switching_dates(state: &DatasetState) -> Vec<BusinessDate> {
    let mut dates: Vec<BusinessDate> = state
        .partitions()
        .iter()
        .filter(|(_, p)| p.state == PartitionState::Switching)
        .map(|(k, _)| k.dt)
        .collect();
    dates.dedup();
    dates
}

/// Moves what the attempt's record names to its place; the stage folder goes when nothing is left.
async fn empty_stage(
    lake: &Lake,
    state: &DatasetState,
    (attempt, number): (&AttemptId, u64),
    files: &[ListedFile],
) -> Result<usize> {
    kill_point("move.before");
    let wanted = staged_places(state, attempt, number);
    let stage = stage_dir(attempt);
    let (mut moved, mut left) = (0, 0);
    for file in files {
        let staged = final_path(&stage, &file.path);
        let Some(target) = staged.and_then(|s| wanted.get(&s)) else {
            // Not named by the record: a stranger, which `audit` lists.
            left += 1;
            continue;
        };
        let Some(target) = target else {
            // Its date switches: it comes in when the old files are out.
            left += 1;
            continue;
        };
        match lake.store().move_file(&file.path, target).await? {
            MoveOutcome::Moved => {
                moved += 1;
                kill_point("move.one_moved");
            }
            MoveOutcome::AlreadyMoved | MoveOutcome::Missing => {}
        }
    }
    if left == 0 {
        lake.store().delete_folder(&stage).await?;
    }
    kill_point("move.done");
    Ok(moved)
}

/// The final paths of all that an attempt's record names.
#[must_use]
pub fn staged_paths(state: &DatasetState, attempt: &AttemptId, number: u64) -> BTreeSet<StorePath> {
    staged_places(state, attempt, number).into_keys().collect()
}

/// The places of an attempt's files by the paths that they were staged for; `None` = not now.
fn staged_places(
    state: &DatasetState,
    attempt: &AttemptId,
    number: u64,
) -> BTreeMap<StorePath, Option<StorePath>> {
    let mut places = BTreeMap::new();
    let touched = |dt| state.changed(dt) >= number;
    for (key, partition) in state.partitions().iter().filter(|(k, _)| touched(k.dt)) {
        let mine = |f: &&FileState| f.number == number && f.attempt.as_ref() == Some(attempt);
        for file in partition.files.values().filter(mine) {
            let staged = data_file_path(state.dataset(), key, &file.spec.name);
            let place = match partition.state {
                PartitionState::Switching => None,
                PartitionState::Active
                | PartitionState::Superseded
                | PartitionState::Retired
                | PartitionState::Purged => state.place_of(key, &file.spec.name),
            };
            places.insert(staged, place);
        }
    }
    for (dt, date) in state.dates().iter().filter(|(dt, _)| touched(**dt)) {
        let mine = |r: &&RejectsState| r.number == number && r.attempt.as_ref() == Some(attempt);
        for rejects in date.rejects.iter().filter(mine) {
            let path = rejects_dir(state.dataset(), *dt).child(&rejects.spec.name);
            places.insert(path.clone(), Some(path));
        }
    }
    places
}

/// Every file of a date in one of these states, with its partition.
fn files_in(
    state: &DatasetState,
    dt: BusinessDate,
    wanted: &[PartitionState],
) -> Vec<(PartitionKey, FileState)> {
    state
        .partitions_of(dt)
        .filter(|(_, p)| wanted.contains(&p.state))
        .flat_map(|(k, p)| p.files.values().map(|f| (*k, f.clone())))
        .collect()
}

/// Old files out, new files in, then the record that ends the switch.
///
/// A mover that slept may have moved by an old fold: files of a revision that is shown again went out.
/// Where the date changed meanwhile, it therefore starts over by what the log says now.
pub(super) async fn finish_switch(
    lake: &Lake,
    state: &mut DatasetState,
    dt: BusinessDate,
) -> Result<usize> {
    let mut moved = 0;
    for _ in 0..MAX_ROUNDS {
        let changed = state.changed(dt);
        let lost = carry(lake, state, dt, &mut moved).await?;
        match lost {
            None if state.is_switching(dt) => {
                kill_point("switch.all_in");
                if end_switch(lake, state, dt).await? {
                    kill_point("switch.ended");
                    write_success(lake, state, dt).await?;
                    return Ok(moved);
                }
            }
            None | Some(_) => {
                state.catch_up(lake).await?;
                if state.changed(dt) == changed {
                    return lost.map_or(Ok(moved), Err);
                }
            }
        }
    }
    Err(state.restless(dt, MAX_ROUNDS))
}

/// Moves the files of a date out and in; `Some` = one that readers are to see is nowhere.
async fn carry(
    lake: &Lake,
    state: &DatasetState,
    dt: BusinessDate,
    moved: &mut usize,
) -> Result<Option<Error>> {
    for (key, file) in files_in(state, dt, &[PartitionState::Superseded]) {
        // A lost old file is for `audit` to name; it must not keep the new ones out.
        if bring(lake, state, &key, &file).await? == Brought::Moved {
            *moved += 1;
            kill_point("switch.one_out");
        }
    }
    kill_point("switch.all_out");
    let mut first_lost = None;
    let shown = [PartitionState::Switching, PartitionState::Active];
    for (key, file) in files_in(state, dt, &shown) {
        match bring(lake, state, &key, &file).await? {
            Brought::Moved => {
                *moved += 1;
                kill_point("switch.one_in");
            }
            Brought::Already => {}
            Brought::Missing => {
                first_lost.get_or_insert_with(|| lost(state, &key, &file));
            }
        }
    }
    Ok(first_lost)
}

/// Puts the record that ends the switch; `false` = the date has changed, `state` knows how.
async fn end_switch(lake: &Lake, state: &mut DatasetState, dt: BusinessDate) -> Result<bool> {
    let mut draft = Draft::new(lake, Operation::Switch, By::this_program())?;
    let number = state.changed(dt);
    draft.requires = vec![Requirement::DateUnchanged { dt, number }];
    draft.actions = state
        .partitions_of(dt)
        .filter(|(_, p)| p.state == PartitionState::Switching)
        .map(|(key, _)| Action::SetState {
            partition: *key,
            from: PartitionState::Switching,
            to: PartitionState::Active,
        })
        .collect();
    match commit(lake, state, &draft).await? {
        CommitOutcome::Committed(_) | CommitOutcome::AlreadyThere(_) => Ok(true),
        CommitOutcome::Conflict(_) => Ok(false),
    }
}

fn lost(state: &DatasetState, key: &PartitionKey, file: &FileState) -> Error {
    Error::corrupt(format!(
        "a file of the revision that {key} switches to is nowhere"
    ))
    .with(
        "file",
        data_file_path(state.dataset(), key, &file.spec.name),
    )
    .with("record", file.number)
    .with(
        "attempt",
        file.attempt.as_ref().map_or("none", |a| a.as_str()),
    )
    .hint("restore the file from a backup; until then the date shows no files to folder readers")
}

/// Brings every file to its place, wherever it lies; for repair, which looks at each of them.
pub async fn restore_places(lake: &Lake, state: &mut DatasetState) -> Result<usize> {
    let mut moved = finish_moves(lake, state).await?;
    if !lake.store().capabilities().rename {
        return Ok(moved);
    }
    let dates: Vec<BusinessDate> = state.dates().keys().copied().collect();
    for dt in dates {
        moved += restore_date(lake, state, dt).await?;
    }
    Ok(moved)
}

/// As long as records come meanwhile, what was moved may be where it no longer belongs.
async fn restore_date(lake: &Lake, state: &mut DatasetState, dt: BusinessDate) -> Result<usize> {
    let mut moved = 0;
    for _ in 0..MAX_ROUNDS {
        let changed = state.changed(dt);
        if state.is_switching(dt) {
            moved += finish_switch(lake, state, dt).await?;
        } else {
            // A lost file is for `audit` to name, not to stop the others.
            drop(carry(lake, state, dt, &mut moved).await?);
            state.catch_up(lake).await?;
        }
        if state.changed(dt) == changed {
            return Ok(moved);
        }
    }
    Err(state.restless(dt, MAX_ROUNDS))
}
