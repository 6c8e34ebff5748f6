//! Folders against the log: data files, strangers, `_SUCCESS`, rejects.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::error::{ErrorKind, Result};
use crate::govern::audit::collect::DatasetView;
use crate::govern::audit::superseded;
use crate::govern::audit::{AuditOptions, Finding, Repair, Severity};
use crate::log::{DatasetState, FileState, Partition, expected_success, find_file};
use crate::name::{ContentHash, DatasetRef, Layer};
use crate::spec::{
    FileFormat, PartitionKey, PartitionState, SCHEMALESS_VERSION, SEEK_FOOTER_BYTES, SuccessSpec,
    decode_seek_table, decode_trailer, seek_table_bytes,
};
use crate::store::{
    Lake, SUCCESS_NAME, StorePath, data_file_path, partition_dir, rejects_dir, stage_root,
    staged_path, success_path,
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

/// Files that were compared.
pub(super) async fn check(
    lake: &Lake,
    state: &DatasetState,
    data: &DatasetView,
    options: AuditOptions,
    findings: &mut Vec<Finding>,
) -> Result<u64> {
    let mut notes = Notes {
        dataset: state.dataset(),
        findings,
    };
    let compared = check_files(lake, state, data, options, &mut notes).await?;
    superseded::check(lake, state, data, &mut notes).await?;
    check_success(lake, state, data, &mut notes).await?;
    check_rejects(lake, state, data, options, &mut notes).await?;
    check_schemas(state, data, &mut notes);
    advise(state, &mut notes);
    Ok(compared)
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
    data: &DatasetView,
    options: AuditOptions,
    notes: &mut Notes<'_>,
) -> Result<()> {
    for (dt, date) in state.dates() {
        for rejects in &date.rejects {
            let path = rejects_dir(state.dataset(), *dt).child(&rejects.spec.name);
            if data.rejects.get(&path) == Some(&rejects.spec.bytes) {
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
