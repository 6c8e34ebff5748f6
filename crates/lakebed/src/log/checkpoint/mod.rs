//! Checkpoints: the fold after a record, kept so that nobody needs to read the records before it.
//!
//! ```text
//! _lake/checkpoint/<layer>/<dataset>/<record>-<16 hex>.parquet    twenty digits; beginning of the file's BLAKE3
//! ```
//!
//! A checkpoint is only a cache: it can be deleted at any moment, and whoever cannot use one reads
//! the log instead. LOG-10: it holds what the records up to its number say. It is used only where its
//! bytes have the hash in its name, and lake, dataset, format and the hash of the record it ends at
//! are right; anything else is passed over, never mended and never believed.
//!
//! They lie beside the logs, not in them: the newest is found without listing a log, and no program
//! that looks for records meets them.

mod assembly;
mod row;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::fault::{checkpoint_every, kill_point};
use crate::log::checkpoint::assembly::Assembly;
use crate::log::checkpoint::row::each_row;
use crate::log::checkpoint::table::{TableReader, TableWriter};
use crate::log::state::DatasetState;
use crate::log::walk::check_position;
use crate::name::{ContentHash, DatasetRef, LakeId};
use crate::spec::{CHECKPOINT_FORMAT, CheckpointHead, PartitionState, RECORD_FORMAT};
use crate::store::{Lake, PutOutcome, StorePath, checkpoint_dir, checkpoint_name, checkpoint_path};

/// Records between two looks at whether a checkpoint is due; each look lists one small folder.
const TURN: u64 = 64;
/// A checkpoint is due when more records follow the last one than this part of those it covers.
const SHARE: u64 = 8;
/// How many of the newest checkpoints are kept whatever their distance.
const NEWEST_KEPT: usize = 2;

/// A checkpoint that lies in the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The file.
    pub path: StorePath,
    /// The record it ends at, by its name.
    pub number: u64,
    /// Beginning of the hash of its bytes, by its name.
    short_hash: String,
}

/// A checkpoint that could not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The file.
    pub path: StorePath,
    /// Why, in words.
    pub reason: String,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "checkpoint `{}` was passed over: {}",
            self.path, self.reason
        )
    }
}

/// What became of reading a checkpoint.
#[derive(Debug)]
pub enum CheckpointContent {
    /// The fold it holds.
    Fold(Box<DatasetState>),
    /// It is of a newer program: not wrong, but of no use here.
    Newer {
        /// Its format.
        format: u64,
    },
    /// It was deleted meanwhile, as old ones are.
    Gone,
}

/// Every checkpoint of the dataset, the newest first.
pub async fn list_checkpoints(lake: &Lake, dataset: &DatasetRef) -> Result<Vec<Checkpoint>> {
    let dir = checkpoint_dir(dataset);
    let mut found: Vec<Checkpoint> = lake
        .store()
        .list_names(&dir)
        .await?
        .into_iter()
        .filter_map(|name| {
            let (number, short_hash) = checkpoint_name(&name)?;
            Some(Checkpoint {
                path: dir.child(&name),
                number,
                short_hash: short_hash.to_owned(),
            })
        })
        .collect();
    found.sort_by(|a, b| (b.number, &b.path).cmp(&(a.number, &a.path)));
    Ok(found)
}

/// Reads a checkpoint and compares it with the record it ends at.
///
/// # Errors
/// `CorruptData` where its bytes, its head or its rows are wrong, or where that record is another
/// one or missing.
pub async fn read_checkpoint(
    lake: &Lake,
    dataset: &DatasetRef,
    checkpoint: &Checkpoint,
) -> Result<CheckpointContent> {
    let Some(bytes) = lake.store().find(&checkpoint.path).await? else {
        return Ok(CheckpointContent::Gone);
    };
    if ContentHash::of(&bytes).short() != checkpoint.short_hash {
        return Err(Error::corrupt("its bytes are not those that were written"));
    }
    let reader = TableReader::open(bytes)?;
    let head = match read_head(&reader.head()?)? {
        Head::Known(head) => head,
        Head::Newer(format) => return Ok(CheckpointContent::Newer { format }),
    };
    check_head(lake, dataset, checkpoint, &head)?;
    check_position(lake, dataset, &head.position).await?;
    decode(reader, head).map(|state| CheckpointContent::Fold(Box::new(state)))
}

enum Head {
    Known(CheckpointHead),
    Newer(u64),
}

fn read_head(value: &serde_json::Value) -> Result<Head> {
    let number = |key| value.get(key).and_then(serde_json::Value::as_u64);
    for (key, known) in [
        ("format", CHECKPOINT_FORMAT),
        ("record_format", RECORD_FORMAT),
    ] {
        if let Some(newer) = number(key).filter(|n| *n > u64::from(known)) {
            return Ok(Head::Newer(newer));
        }
    }
    serde_json::from_value(value.clone())
        .map(Head::Known)
        .map_err(|e| Error::corrupt(format!("its head cannot be read: {e}")))
}

fn check_head(
    lake: &Lake,
    dataset: &DatasetRef,
    checkpoint: &Checkpoint,
    head: &CheckpointHead,
) -> Result<()> {
    if head.format != CHECKPOINT_FORMAT {
        let reason = format!("it has format {}, which nobody wrote", head.format);
        return Err(Error::corrupt(reason));
    }
    if head.lake != *lake.id() {
        return Err(Error::corrupt("it is of another lake"));
    }
    if head.dataset != *dataset {
        let reason = format!("it is of another dataset, `{}`", head.dataset);
        return Err(Error::corrupt(reason));
    }
    if head.position.number != checkpoint.number {
        let reason = format!("it ends at record {}", head.position.number);
        return Err(Error::corrupt(reason));
    }
    Ok(())
}

fn decode(reader: TableReader, head: CheckpointHead) -> Result<DatasetState> {
    let mut state = DatasetState::empty(head.dataset);
    state.position = head.position;
    state.last_at = head.last_at;
    let mut assembly = Assembly::new(state);
    reader.each_row(&mut |row| assembly.add(row))?;
    Ok(assembly.finish())
}

/// The bytes of the checkpoint of a fold.
fn encode(lake: &LakeId, state: &DatasetState) -> Result<Vec<u8>> {
    let head = CheckpointHead {
        format: CHECKPOINT_FORMAT,
        record_format: RECORD_FORMAT,
        lake: lake.clone(),
        dataset: state.dataset().clone(),
        position: state.position().clone(),
        last_at: state.last_at(),
    };
    encode_under(&head, state)
}

fn encode_under(head: &CheckpointHead, state: &DatasetState) -> Result<Vec<u8>> {
    let mut table = TableWriter::new(head)?;
    each_row(state, &mut |row| table.put(&row))?;
    table.finish()
}

/// Writes the checkpoint of a fold, durably; answers where it lies.
pub async fn write_checkpoint(lake: &Lake, state: &DatasetState) -> Result<StorePath> {
    let bytes = Bytes::from(encode(lake.id(), state)?);
    let hash = ContentHash::of(&bytes);
    let path = checkpoint_path(state.dataset(), state.position().number, hash.short());
    kill_point("checkpoint.before_put");
    match lake.store().put_once(&path, &bytes).await? {
        PutOutcome::Created => kill_point("checkpoint.put"),
        // Equal folds have equal bytes: somebody wrote the same.
        PutOutcome::Exists => {}
    }
    Ok(path)
}

/// A checkpoint that says it ends elsewhere than it does, its hash being right.
#[cfg(test)]
pub(crate) async fn write_forged(
    lake: &Lake,
    mut state: DatasetState,
    position: crate::spec::LogPosition,
) -> Result<StorePath> {
    state.position = position;
    write_checkpoint(lake, &state).await
}

/// Writes a checkpoint where the log has outgrown the last one; for whoever has just committed.
pub(super) async fn keep_up(lake: &Lake, state: &DatasetState) -> Result<()> {
    let number = state.position().number;
    let every = checkpoint_every();
    if !number.is_multiple_of(every.unwrap_or(TURN)) || is_moving(state) {
        return Ok(());
    }
    let known = list_checkpoints(lake, state.dataset()).await?;
    let newest = known.iter().map(|c| c.number).find(|n| *n <= number);
    if every.is_none() && !is_due(number, newest.unwrap_or(0)) {
        return Ok(());
    }
    let written = write_checkpoint(lake, state).await?;
    for path in outlived(known, &written, number) {
        lake.store().delete(&path).await?;
    }
    Ok(())
}

/// While files of a date move, folder readers wait for them: nothing else comes between.
fn is_moving(state: &DatasetState) -> bool {
    let mut partitions = state.partitions().values();
    partitions.any(|p| p.state == PartitionState::Switching)
}

/// The cost of all checkpoints of a growing log is that of the last one times `SHARE` and one, and no
/// tail is longer than a `SHARE`th of the log and a turn.
fn is_due(number: u64, newest: u64) -> bool {
    number - newest >= TURN.max(newest / SHARE)
}

/// Checkpoints that nobody will miss: the newest stay, and the first one of each doubling of the log, for
/// readers of an earlier position.
fn outlived(known: Vec<Checkpoint>, written: &StorePath, number: u64) -> Vec<StorePath> {
    // One beyond the log is for `audit` to look at.
    let older: Vec<Checkpoint> = known
        .into_iter()
        .filter(|c| c.number <= number && c.path != *written)
        .collect();
    let doubling = |c: &Checkpoint| c.number.checked_ilog2();
    let before: Vec<Option<u32>> = older.iter().skip(1).map(doubling).collect();
    let mut gone = Vec::new();
    // The newest first: the first of a doubling is the last of its kind here.
    for (at, checkpoint) in older.into_iter().enumerate() {
        let is_first = before.get(at) != Some(&doubling(&checkpoint));
        if at + 1 >= NEWEST_KEPT && !is_first {
            gone.push(checkpoint.path);
        }
    }
    gone
}
