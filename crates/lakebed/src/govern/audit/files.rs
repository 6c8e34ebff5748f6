//! Folders against the log: data files, strangers, `_SUCCESS`, rejects, the stage.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::error::{ErrorKind, Result};
use crate::govern::audit::collect::{DatasetView, View};
use crate::govern::audit::each::in_order;
use crate::govern::audit::strangers::stranger;
use crate::govern::audit::superseded;
use crate::govern::audit::{AuditOptions, AuditReport, Finding, Repair, Severity};
use crate::log::{
    DatasetState, FileState, Partition, expected_success, find_file, staged_dataset, staged_paths,
};
use crate::name::{AttemptId, ContentHash, DatasetRef, Layer};
use crate::spec::{
    FileFormat, PartitionKey, PartitionState, SCHEMALESS_VERSION, SEEK_FOOTER_BYTES, SuccessSpec,
    decode_seek_table, decode_trailer, seek_table_bytes,
};
use crate::store::{
    Lake, ListedFile, SUCCESS_NAME, StorePath, data_file_path, final_path, partition_dir,
    rejects_dir, stage_dir, stage_root, staged_path, success_path,
};
use crate::time::BusinessDate;

/// A day beyond this is better kept by the hour.
const DAY_BYTES: u64 = 5_000_000_000;
const DAY_FILES: u64 = 500;
/// A partition of more files than this, small on average, is better compacted.
const SMALL_FILES: u64 = 16;
const SMALL_BYTES: u64 = 16_000_000;

/// Findings of one dataset.
pub(super) struct Notes<'a> {
    dataset: &'a DatasetRef,
    findings: &'a mut Vec<Finding>,
}

impl Notes<'_> {
    pub(super) fn add(
        &mut self,
        invariant: &'static str,
        severity: Severity,
        subject: impl ToString,
        message: String,
        repair: Repair,
    ) {
        self.findings.push(Finding {
            invariant,
            severity,
            dataset: Some(self.dataset.clone()),
            subject: subject.to_string(),
            message,
            repair,
        });
    }
}

pub(super) fn manual(advice: &str) -> Repair {
    Repair::Manual {
        advice: advice.to_owned(),
    }
}

pub(super) async fn check(
    lake: &Lake,
    view: &Arc<View>,
    options: AuditOptions,
    report: &mut AuditReport,
) -> Result<()> {
    let looks = view.datasets.keys().cloned().map(|dataset| {
        let (lake, view) = (lake.clone(), Arc::clone(view));
        async move { check_dataset(&lake, &view, &dataset, options).await }
    });
    for (compared, findings) in in_order(looks.collect()).await? {
        report.files += compared;
        report.findings.extend(findings);
    }
    check_stage(lake, view, report).await?;
    for file in &view.strangers {
        report.findings.push(Finding {
            invariant: "FIL-2",
            severity: Severity::Error,
            dataset: None,
            subject: file.path.to_string(),
            message: "lies in a layer folder, but in no partition of a dataset of this lake".into(),
            repair: manual("move it out of the lake; data enters through `lakebed ingest`"),
        });
    }
    for file in &view.temporary {
        report.findings.push(Finding {
            invariant: "STG-2",
            severity: Severity::Warning,
            dataset: None,
            subject: file.path.to_string(),
            message: "a temporary file of an interrupted put is left".into(),
            repair: Repair::DeleteTemporary {
                path: file.path.clone(),
            },
        });
    }
    Ok(())
}

/// Files that were compared, and what was found.
async fn check_dataset(
    lake: &Lake,
    view: &View,
    dataset: &DatasetRef,
    options: AuditOptions,
) -> Result<(u64, Vec<Finding>)> {
    let mut findings = Vec::new();
    let Some(data) = view.datasets.get(dataset) else {
        return Ok((0, findings));
    };
    let Some(state) = &data.state else {
        return Ok((0, findings));
    };
    let mut notes = Notes {
        dataset,
        findings: &mut findings,
    };
    let compared = check_files(lake, state, data, options, &mut notes).await?;
    superseded::check(lake, state, view, &mut notes).await?;
    check_success(lake, state, data, &mut notes).await?;
    check_rejects(lake, state, view, options, &mut notes).await?;
    check_schemas(state, data, &mut notes);
    advise(state, &mut notes);
    Ok((compared, findings))
}

async fn check_files(
    lake: &Lake,
    state: &DatasetState,
    data: &DatasetView,
    options: AuditOptions,
    notes: &mut Notes<'_>,
) -> Result<u64> {
    let (mut compared, mut listed) = (0, 0);
    for (key, partition) in state.partitions().iter().filter(|(_, p)| p.is_visible()) {
        let folder = partition_dir(state.dataset(), key);
        for file in partition.files.values() {
            let path = folder.child(&file.spec.name);
            compared += 1;
            let found = data.listed.get(&path);
            listed += usize::from(found.is_some());
            match found {
                None => note_missing(lake, state, (key, file), &path, notes).await?,
                Some(size) if *size != file.spec.bytes => notes.add(
                    "FIL-1",
                    Severity::Error,
                    &path,
                    format!("has {size} bytes, the log says {}", file.spec.bytes),
                    manual("restore the file from a backup, or replace the date with `lakebed correct`"),
                ),
                Some(_) if options.deep => match deep_check(lake, file, &path, notes).await {
                    // It has left since the listing.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        note_missing(lake, state, (key, file), &path, notes).await?;
                    }
                    looked => looked?,
                },
                Some(_) => {}
            }
        }
        if partition.state == PartitionState::Switching {
            let message = "is shown, but its switch is not ended: what is added to the date waits";
            let repair = Repair::FinishMoves;
            notes.add("FIL-1", Severity::Warning, key, message.to_owned(), repair);
        }
    }
    let successes = data.listed.keys().filter(|path| is_success(path)).count();
    if listed + successes < data.listed.len() {
        check_strangers(lake, state, data, notes).await?;
    }
    Ok(compared)
}

/// Whether it is the `_SUCCESS` of a partition.
fn is_success(path: &StorePath) -> bool {
    path.as_str().rsplit('/').next() == Some(SUCCESS_NAME)
}

/// Files in the data folders that are not at a place of theirs.
async fn check_strangers(
    lake: &Lake,
    state: &DatasetState,
    data: &DatasetView,
    notes: &mut Notes<'_>,
) -> Result<()> {
    let known = places_of(state, Partition::is_visible);
    let superseded = places_of(state, |p| p.state == PartitionState::Superseded);
    for path in data.listed.keys() {
        if known.contains(path) || is_success(path) {
            continue;
        }
        // It may have left since the listing.
        if lake.store().find_size(path).await?.is_none() {
            continue;
        }
        if superseded.contains(path) {
            notes.add(
                "FIL-2",
                Severity::Error,
                path,
                "is superseded, but still lies in the data folder: folder readers see it".into(),
                Repair::FinishMoves,
            );
        } else {
            notes.add(
                "FIL-2",
                Severity::Error,
                path,
                "lies in a data folder, but no record of the log names it: folder readers see it".into(),
                manual("move it out of the lake; repair never adopts a file that the log does not know"),
            );
        }
    }
    Ok(())
}

async fn note_missing(
    lake: &Lake,
    state: &DatasetState,
    (key, file): (&PartitionKey, &FileState),
    path: &StorePath,
    notes: &mut Notes<'_>,
) -> Result<()> {
    let (mut elsewhere, mut size) = (None, None);
    // A mover may carry it away between the two looks.
    for _ in 0..3 {
        elsewhere = find_file(lake, state, key, &file.spec.name).await?;
        size = match &elsewhere {
            Some(place) => lake.store().find_size(place).await?,
            None => None,
        };
        if size.is_some() {
            break;
        }
    }
    let is_whole = size == Some(file.spec.bytes);
    if is_whole && elsewhere.as_ref() == Some(path) {
        // It came since the listing.
        return Ok(());
    }
    if let (Some(place), true) = (&elsewhere, is_whole) {
        let message = if place.below(&stage_root()).is_some() {
            "is committed, but still lies in the stage: a write was interrupted".to_owned()
        } else {
            format!("is not at its place, but at `{place}`: a switch was interrupted")
        };
        notes.add(
            "FIL-1",
            Severity::Warning,
            path,
            message,
            Repair::FinishMoves,
        );
    } else {
        notes.add(
            "FIL-1",
            Severity::Error,
            path,
            format!("is committed by record {}, but is not there", file.number),
            manual("restore the file from a backup, or replace the date with `lakebed correct`"),
        );
    }
    Ok(())
}

/// The places in the data folders of the files of such partitions.
fn places_of(state: &DatasetState, wanted: impl Fn(&Partition) -> bool) -> BTreeSet<StorePath> {
    state
        .partitions()
        .iter()
        .filter(|(_, p)| wanted(p))
        .flat_map(|(k, p)| {
            p.files
                .keys()
                .map(|n| data_file_path(state.dataset(), k, n))
        })
        .collect()
}

/// Whether the file has the bytes that were committed; reads all of it.
async fn has_bytes(
    lake: &Lake,
    path: &StorePath,
    bytes: u64,
    expected: &ContentHash,
) -> Result<bool> {
    const PIECE: usize = 8 << 20;
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    while offset < bytes {
        let piece = lake.store().read_range(path, offset, PIECE).await?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        hasher.update(&piece);
    }
    Ok(ContentHash::finish(&hasher) == *expected)
}

/// The rows of a data file; `None` where it cannot be read.
fn count_rows(file: std::fs::File, format: FileFormat) -> Option<u64> {
    match format {
        FileFormat::Parquet => {
            let reader = SerializedFileReader::new(file).ok()?;
            u64::try_from(reader.metadata().file_metadata().num_rows()).ok()
        }
        FileFormat::Rawpack => count_captures(file),
        // It has no rows of its own; that it can be read is what is asked.
        FileFormat::RawpackIndex => SerializedFileReader::new(file).ok().map(|_| 0),
        FileFormat::Jsonl => {
            let mut text = zstd::Decoder::new(file).ok()?;
            let mut piece = vec![0; 1 << 16];
            let (mut rows, mut last) = (0_u64, b'\n');
            loop {
                match text.read(&mut piece).ok()? {
                    // A line without its end is none.
                    0 => return (last == b'\n').then_some(rows),
                    n => {
                        rows += memchr::memchr_iter(b'\n', &piece[..n]).count() as u64;
                        last = piece[n - 1];
                    }
                }
            }
        }
    }
}

/// The captures of a pack, as its trailer says. The bytes were compared before, and what they say was
/// verified when they were committed.
fn count_captures(mut file: std::fs::File) -> Option<u64> {
    let mut end = |length: usize| -> Option<Vec<u8>> {
        let from_end = i64::try_from(length).ok()?;
        file.seek(SeekFrom::End(-from_end)).ok()?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    };
    let table_len = seek_table_bytes(&end(SEEK_FOOTER_BYTES)?).ok()?;
    let rows = decode_seek_table(&end(table_len)?).ok()?;
    let trailer_len = usize::try_from(rows.last()?.compressed).ok()?;
    let tail = end(trailer_len + table_len)?;
    let (trailer, _) = decode_trailer(&tail[..trailer_len]).ok()?;
    Some(trailer.captures)
}

async fn deep_check(
    lake: &Lake,
    file: &FileState,
    path: &StorePath,
    notes: &mut Notes<'_>,
) -> Result<()> {
    if !has_bytes(lake, path, file.spec.bytes, &file.spec.blake3).await? {
        let advice = manual(
            "a byte has changed on disk: restore the file from a backup, or replace the date",
        );
        notes.add(
            "FIL-3",
            Severity::Error,
            path,
            "does not have the bytes that were committed".into(),
            advice,
        );
        return Ok(());
    }
    let rows = match lake.store().local_path(path).map(std::fs::File::open) {
        Some(Ok(f)) => count_rows(f, file.spec.format),
        Some(Err(_)) | None => None,
    };
    if rows != Some(file.spec.rows) {
        let found = rows.map_or_else(|| "no readable".to_owned(), |n| n.to_string());
        let message = format!("holds {found} rows, the log says {}", file.spec.rows);
        notes.add(
            "FIL-3",
            Severity::Error,
            path,
            message,
            manual("restore the file from a backup"),
        );
    }
    Ok(())
}

async fn check_success(
    lake: &Lake,
    state: &DatasetState,
    data: &DatasetView,
    notes: &mut Notes<'_>,
) -> Result<()> {
    let mut expected = BTreeMap::new();
    for (key, _) in state.partitions().iter().filter(|(_, p)| p.is_visible()) {
        if let Some(spec) = expected_success(lake, state, key) {
            expected.insert(success_path(state.dataset(), key), (key.dt, spec));
        }
    }
    for (path, (dt, spec)) in &expected {
        let found = lake.store().find(path).await?;
        let parsed: Option<SuccessSpec> = found
            .as_deref()
            .and_then(|b| serde_json::from_slice(b).ok());
        if parsed.as_ref() != Some(spec) {
            let what = match (&found, &parsed) {
                (None, _) => "is missing, though its date is sealed",
                (Some(_), None) => "cannot be read",
                (Some(_), Some(_)) => "does not say what the log says",
            };
            notes.add(
                "CMP-2",
                Severity::Warning,
                path,
                what.to_owned(),
                Repair::WriteSuccess { dt: *dt },
            );
        }
    }
    for path in data
        .listed
        .keys()
        .filter(|p| is_success(p) && !expected.contains_key(*p))
    {
        let message =
            "is there, though its date is not sealed: whoever waits for it starts too early"
                .to_owned();
        notes.add(
            "CMP-1",
            Severity::Error,
            path,
            message,
            Repair::DeleteSuccess { path: path.clone() },
        );
    }
    Ok(())
}

async fn check_rejects(
    lake: &Lake,
    state: &DatasetState,
    view: &View,
    options: AuditOptions,
    notes: &mut Notes<'_>,
) -> Result<()> {
    for (dt, date) in state.dates() {
        for rejects in &date.rejects {
            let path = rejects_dir(state.dataset(), *dt).child(&rejects.spec.name);
            if view.rejects.get(&path) == Some(&rejects.spec.bytes) {
                if options.deep
                    && !has_bytes(lake, &path, rejects.spec.bytes, &rejects.spec.blake3).await?
                {
                    let advice = manual(
                        "restore the file from a backup; the rejected records are only there",
                    );
                    let message = "does not have the bytes that were committed".to_owned();
                    notes.add("REJ-1", Severity::Error, &path, message, advice);
                }
                continue;
            }
            let staged = match &rejects.attempt {
                Some(attempt) => lake.store().find_size(&staged_path(attempt, &path)).await?,
                None => None,
            };
            // It may have come since the listing, at last from the stage.
            if lake.store().find_size(&path).await? == Some(rejects.spec.bytes) {
                continue;
            }
            if staged == Some(rejects.spec.bytes) {
                let message = "is committed, but still lies in the stage".to_owned();
                notes.add(
                    "REJ-1",
                    Severity::Warning,
                    &path,
                    message,
                    Repair::FinishMoves,
                );
            } else {
                let advice =
                    manual("restore the file from a backup; the rejected records are only there");
                notes.add(
                    "REJ-1",
                    Severity::Error,
                    &path,
                    "is committed, but is not there whole".into(),
                    advice,
                );
            }
        }
    }
    Ok(())
}

fn check_schemas(state: &DatasetState, data: &DatasetView, notes: &mut Notes<'_>) {
    if let Some(error) = &data.schema_error {
        let advice = manual("restore the published schemas from a backup of the lake");
        notes.add(
            "SCH-1",
            Severity::Error,
            "published schemas",
            error.to_string(),
            advice,
        );
        return;
    }
    let mut used: BTreeSet<u32> = state
        .partitions()
        .keys()
        .map(|k| k.schema_version)
        .collect();
    if used.remove(&SCHEMALESS_VERSION) && !used.is_empty() {
        let advice = manual("which one is meant is for you to say: roll the other's dates back");
        let message = "holds tables and JSON lines: SQL reads the tables alone".to_owned();
        notes.add("LOG-12", Severity::Error, state.dataset(), message, advice);
    }
    for version in used.difference(&data.schemas) {
        let advice = manual("restore the published schema from a backup of the lake");
        let message = "is in use, but its published file is missing".to_owned();
        notes.add(
            "SCH-1",
            Severity::Error,
            format!("schema version {version}"),
            message,
            advice,
        );
    }
}

async fn check_stage(lake: &Lake, view: &View, report: &mut AuditReport) -> Result<()> {
    for (attempt, listed) in &view.attempts {
        let files = still_there(lake, listed).await?;
        if files.is_empty() {
            continue;
        }
        let dataset = files.iter().find_map(|f| staged_dataset(&f.path));
        let state = dataset
            .as_ref()
            .and_then(|d| view.datasets.get(d))
            .and_then(|d| d.state.as_ref());
        let committed = state.and_then(|s| Some((s, s.committed_attempt(attempt)?)));
        let abandoned = state.is_some_and(|s| s.is_abandoned(attempt));
        let (message, repair) = match (committed, abandoned, &dataset) {
            (Some((state, number)), _, _) => {
                let left = strangers_of_attempt(state, attempt, number, &files);
                let waiting = files.len() - left.len();
                report.findings.extend(left);
                if waiting == 0 {
                    continue;
                }
                (
                    format!("{waiting} staged files of record {number} wait for their move"),
                    Repair::FinishMoves,
                )
            }
            (None, true, _) => (
                format!(
                    "{} staged files of an abandoned attempt are left",
                    files.len()
                ),
                Repair::DeleteStage {
                    attempt: attempt.clone(),
                },
            ),
            (None, false, Some(_)) => (
                format!(
                    "{} staged files of an attempt that has not committed: a running call, or a dead one",
                    files.len()
                ),
                Repair::Abandon {
                    attempt: attempt.clone(),
                },
            ),
            (None, false, None) => (
                format!("{} staged files that belong to no dataset", files.len()),
                manual("look at the folder and delete it"),
            ),
        };
        report.findings.push(Finding {
            invariant: "STG-1",
            severity: Severity::Warning,
            dataset,
            subject: format!("attempt {attempt}"),
            message,
            repair,
        });
    }
    Ok(())
}

/// Of files that were listed before the logs were read, those that have not moved on since: a running
/// call names and moves its own.
async fn still_there(lake: &Lake, listed: &[ListedFile]) -> Result<Vec<ListedFile>> {
    let mut files = Vec::new();
    for file in listed {
        if lake.store().find_size(&file.path).await?.is_some() {
            files.push(file.clone());
        }
    }
    Ok(files)
}

/// Files in the stage of a committed attempt that its record does not name: no move waits for them.
fn strangers_of_attempt(
    state: &DatasetState,
    attempt: &AttemptId,
    number: u64,
    files: &[ListedFile],
) -> Vec<Finding> {
    let stage = stage_dir(attempt);
    let wanted = staged_paths(state, attempt, number);
    let is_wanted = |file: &ListedFile| {
        final_path(&stage, &file.path).is_some_and(|last| wanted.contains(&last))
    };
    files
        .iter()
        .filter(|f| !is_wanted(f))
        .map(|f| {
            let message = format!("lies in the stage of record {number}, which does not name it");
            stranger(&f.path, &message)
        })
        .collect()
}

fn advise(state: &DatasetState, notes: &mut Notes<'_>) {
    let mut days: BTreeMap<BusinessDate, (u64, u64)> = BTreeMap::new();
    for (key, partition) in state.partitions().iter().filter(|(_, p)| p.is_visible()) {
        let files = partition.files.len() as u64;
        let bytes: u64 = partition.files.values().map(|f| f.spec.bytes).sum();
        let day = days.entry(key.dt).or_default();
        day.0 += files;
        day.1 += bytes;
        // A run has one pack and one index, however small: they are not to be joined.
        let can_join = state.dataset().layer != Layer::Raw;
        if can_join && files > SMALL_FILES && bytes / files < SMALL_BYTES {
            note_small(key, files, bytes, notes);
        }
    }
    for (dt, (files, bytes)) in days {
        if files > DAY_FILES || bytes > DAY_BYTES {
            notes.add(
                "ADV-1",
                Severity::Advice,
                format!("dt={dt}"),
                format!("holds {files} files and {bytes} bytes; past {DAY_FILES} files or 5 GB a day is too coarse"),
                manual("split the source into several datasets, or deliver fewer, larger files"),
            );
        }
    }
}

fn note_small(key: &PartitionKey, files: u64, bytes: u64, notes: &mut Notes<'_>) {
    let message = format!(
        "has {files} files of {} bytes on average: readers open each of them",
        bytes / files
    );
    let advice = manual("hand more inputs to one `lakebed ingest` call: one call writes one file");
    notes.add("ADV-2", Severity::Advice, key, message, advice);
}
