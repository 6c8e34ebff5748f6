//! What a replay must not do: run twice at once in one folder, find out at its end that a dataset has no schema, or
//! take rows out of sight that it did not make.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};
use crate::log::DatasetState;
use crate::name::DatasetRef;
use crate::registry;
use crate::store::Lake;
use crate::time::BusinessDate;

/// What the labels of replays begin with.
pub(super) const LABEL_PREFIX: &str = "parse:";
/// The file by which calls over one date take turns.
const LOCK: &str = "lock";

/// Makes the folder and holds it as long as the answer lives.
///
/// # Errors
/// `Unavailable`, and worth another try, where another call holds it.
pub fn lock_folder(folder: &Path, action: &str) -> Result<File> {
    fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder.display(), e))?;
    let path = folder.join(LOCK);
    let file = File::create(&path).map_err(|e| Error::io("create the file", path.display(), e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::unavailable(format!(
            "{action}: another call is at it"
        ))
        .retryable()
        .with("folder", folder.display())
        .hint("wait for it to end, then call again: what it stored is not stored twice")),
        Err(TryLockError::Error(e)) => Err(Error::io("lock the file", path.display(), e)),
    }
}

/// Refuses where a dataset has no published schema: before the first page, and for all datasets at once.
pub(super) async fn check_schemas(
    lake: &Lake,
    datasets: impl IntoIterator<Item = DatasetRef>,
) -> Result<()> {
    for dataset in datasets {
        if registry::latest(lake, &dataset).await?.is_none() {
            return Err(Error::precondition(format!(
                "dataset {dataset} has no published schema"
            ))
            .with("dataset", &dataset)
            .hint(format!(
                "`lakebed parse {} --schema` writes it from the rules: look at it, then `lakebed schema publish {dataset} 1`; nothing was stored",
                dataset.source()
            ))
            .hint(format!(
                "of rules in a file of their own (`--rules`), `lakebed schema infer {dataset} FILE` makes it from records"
            )));
        }
    }
    Ok(())
}

/// Refuses to put `records` in the place of rows that came from elsewhere, or of more than twice as many.
pub(super) fn check_replaced(
    state: &DatasetState,
    dataset: &DatasetRef,
    date: BusinessDate,
    records: u64,
) -> Result<()> {
    let visible = || state.visible_of(date).map(|(_, partition)| partition);
    let is_own = |batch: &str| batch.starts_with(LABEL_PREFIX);
    let stranger = visible().flat_map(|p| &p.inputs).find(|input| {
        let batch = input.spec.batch.as_ref();
        !batch.is_some_and(|batch| is_own(batch.as_str()))
    });
    if let Some(stranger) = stranger {
        return Err(Error::precondition(format!(
            "{dataset} has rows of {date} that no replay made: they would be out of sight"
        ))
        .with("dataset", dataset)
        .with("date", date)
        .with("input", &stranger.spec.name)
        .hint("with `--replace` the records take the place of all rows of the date; `lakebed rollback` brings those back"));
    }
    let rows: u64 = visible()
        .flat_map(|p| p.files.values())
        .map(|file| file.spec.rows)
        .sum();
    if records < rows.div_ceil(2) {
        return Err(Error::precondition(format!(
            "the pages of {date} gave {records} records for {dataset}, which has {rows} rows: less than half"
        ))
        .with("dataset", dataset)
        .with("date", date)
        .hint("look at the rejects: a changed page, a rule or a program may be broken; with `--replace` they are stored nevertheless"));
    }
    Ok(())
}
