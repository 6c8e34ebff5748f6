//! Parts go when the lake holds what they hold: the pack of their run is committed, and it was read whole.
//!
//! PAK-9: a part is deleted only after its run's pack was found by the log at its place, read from its first to its
//! last byte, and seen to hold every capture of every part of the run. Whatever is in doubt stays, as a whole. Where no
//! part is on this machine, the pack must be in the lake all the same: they may be elsewhere, and wait to be sealed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::{DatasetState, find_file, load};
use crate::name::{BatchLabel, CaptureId, ContentHash, RequestKey};
use crate::pack::commit::raw_dataset;
use crate::pack::durable::sync_folder;
use crate::pack::parts::{OpenParts, PartCapture, TORN_SUFFIX, open_parts};
use crate::pack::scan::{PackScan, scan_pack};
use crate::pack::source::FileSource;
use crate::spec::{
    CaptureRecord, IndexRow, PackFileName, PartitionKey, RunKey, TerminalState, twin_id,
};
use crate::store::Lake;

/// What became of the parts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum PartsOutcome {
    /// There are none on this machine, and the pack is in the lake, or was, or none is needed.
    None,
    /// The lake holds all of it: they are gone, or would go.
    Released {
        /// Parts.
        parts: u64,
        /// Their bytes, torn tails included.
        bytes: u64,
    },
    /// They stay; why, in words.
    Kept(String),
}

/// How parts are released.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReleaseOptions {
    /// Say only what would go.
    pub dry_run: bool,
    /// The run has requests, so that it has a pack or waits for one.
    pub needs_pack: bool,
}

/// Deletes the parts of a run that is over, if its pack holds them.
///
/// # Errors
/// What reading the log or the parts fails with; nothing was deleted then.
pub async fn release_parts(
    lake: &Lake,
    folder: &Path,
    run: &RunKey,
    options: ReleaseOptions,
) -> Result<PartsOutcome> {
    // Their locks are held to the end of the call: nobody opens one meanwhile.
    let parts = open_parts(folder, run)?;
    if let Some(live) = parts.live.first() {
        return Ok(PartsOutcome::Kept(format!(
            "its part `{live}` is still being written or read"
        )));
    }
    if parts.parts.is_empty() {
        return without_parts(lake, folder, run, options.needs_pack).await;
    }
    if let Some(doubt) = find_doubt(lake, &parts, run).await? {
        return Ok(PartsOutcome::Kept(doubt));
    }
    kill_point("pack.parts_checked");
    let torn = torn_tails(folder)?;
    let tail_bytes = torn
        .iter()
        .map(|path| fs::metadata(path).map_or(0, |m| m.len()));
    let released = PartsOutcome::Released {
        parts: parts.parts.len() as u64,
        bytes: parts.parts.iter().map(|p| p.bytes).sum::<u64>() + tail_bytes.sum::<u64>(),
    };
    if options.dry_run {
        return Ok(released);
    }
    // Tails first: one that is left alone would look like that of a part that is still to come.
    for path in torn
        .iter()
        .map(PathBuf::as_path)
        .chain(parts.parts.iter().map(|p| p.path()))
    {
        fs::remove_file(path).map_err(|e| Error::io("delete the part", path.display(), e))?;
        kill_point("pack.part_deleted");
    }
    sync_folder(folder)?;
    Ok(released)
}

/// Of a run without a part on this machine: whether its pack is where it must be. One that was retired was there.
async fn without_parts(
    lake: &Lake,
    folder: &Path,
    run: &RunKey,
    needs_pack: bool,
) -> Result<PartsOutcome> {
    if !needs_pack {
        return Ok(PartsOutcome::None);
    }
    let state = load(lake, &raw_dataset(run)?).await?.state;
    if state.is_label_past(run.date, &run.run.as_str().parse()?) {
        return Ok(PartsOutcome::None);
    }
    Ok(match read_committed(lake, &state, run).await? {
        Ok(_) => PartsOutcome::None,
        Err(doubt) => PartsOutcome::Kept(format!(
            "{doubt}, and none of its parts is in `{}`: they may be in the `crawl/` of another project folder or machine",
            folder.display()
        )),
    })
}

/// The run's pack, found by the log and read whole, or why it is not known to be in the lake.
async fn read_committed(
    lake: &Lake,
    state: &DatasetState,
    run: &RunKey,
) -> Result<Result<PackScan, String>> {
    let Some((key, content)) = committed(state, run)? else {
        return Ok(Err("its pack is not in the lake".to_owned()));
    };
    let name = PackFileName::new(run, &content).pack();
    let Some(place) = find_file(lake, state, &key, &name).await? else {
        return Ok(Err(format!("its pack `{name}` is not at its place")));
    };
    let Some(local) = lake.store().local_path(&place) else {
        return Ok(Err(
            "its pack is on a store that keeps no local files".to_owned()
        ));
    };
    let scan = scan_pack(&FileSource::open(&local)?)?;
    Ok(match scan.is_whole() && scan.trailer.content == content {
        true => Ok(scan),
        false => Err(format!("its pack `{name}` is damaged")),
    })
}

/// Why the parts are not known to be in the lake; `None` where they are.
async fn find_doubt(lake: &Lake, parts: &OpenParts, run: &RunKey) -> Result<Option<String>> {
    let state = load(lake, &raw_dataset(run)?).await?.state;
    let scan = match read_committed(lake, &state, run).await? {
        Ok(scan) => scan,
        Err(doubt) => return Ok(Some(doubt)),
    };
    let rows: HashMap<&CaptureId, &IndexRow> =
        scan.rows.iter().map(|r| (&r.capture_id, r)).collect();
    let mut missing = BTreeSet::new();
    for found in parts.captures() {
        let PartCapture { capture, line, .. } = found?;
        let line = *blake3::hash(&line).as_bytes();
        // Where several came under one id, all but one are held under ids of their own.
        let ids = [
            capture.capture_id.clone(),
            twin_id(&capture.capture_id, &line),
        ];
        let mut held = ids.iter().filter_map(|id| rows.get(id));
        if !held.any(|row| is_held(row, &capture)) {
            missing.insert((capture.capture_id, line));
        }
    }
    let missing = missing.len();
    Ok((missing > 0).then(|| format!("its parts hold {missing} responses that its pack does not")))
}

/// Whether the row is that of this response, and not of another one of the attempt. What was erased is not wanted back.
fn is_held(row: &IndexRow, capture: &CaptureRecord) -> bool {
    let held = (row.fetched_at, row.status, &row.body_sha256);
    row.is_erased || held == (capture.fetched_at, capture.status, &capture.body_sha256)
}

/// The requests that the run's pack in the lake holds as done; `None` where readers see no pack of it.
///
/// # Errors
/// `CorruptData` where the pack cannot be read whole; `PreconditionFailed` where it is not on this machine.
pub async fn done_in_lake(lake: &Lake, run: &RunKey) -> Result<Option<HashSet<RequestKey>>> {
    let state = load(lake, &raw_dataset(run)?).await?.state;
    if committed(&state, run)?.is_none() {
        return Ok(None);
    }
    let scan = read_committed(lake, &state, run).await?;
    let scan = scan.map_err(|doubt| {
        Error::precondition(format!(
            "what the lake has of `{run}` is not known: {doubt}"
        ))
    })?;
    let done = scan.terminals.unwrap_or_default().into_iter();
    let done = done.filter(|terminal| terminal.state == TerminalState::Done);
    Ok(Some(done.map(|terminal| terminal.request_key).collect()))
}

/// The partition of the run's pack and the identity of what it holds.
fn committed(state: &DatasetState, run: &RunKey) -> Result<Option<(PartitionKey, ContentHash)>> {
    let label: BatchLabel = run.run.as_str().parse()?;
    let mut found = state.visible_labelled(run.date, &label);
    Ok(found
        .next()
        .map(|(key, input)| (*key, input.spec.content.clone())))
}

fn torn_tails(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Error::io("list the folder", folder.display(), e);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_torn = |name: &str| name.ends_with(TORN_SUFFIX);
        if path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(is_torn)
        {
            found.insert(path);
        }
    }
    Ok(found.into_iter().collect())
}
