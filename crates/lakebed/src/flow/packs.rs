//! The packs of a source in the lake, and one page out of them.

use std::path::{Path, PathBuf};

use crate::catalog::{FileRow, visible_files};
use crate::error::{Error, Result};
use crate::log::load;
use crate::name::{CaptureId, ContentHash, DatasetRef, Layer, RequestKey, SourceName};
use crate::pack::{Capture, PackReader};
use crate::spec::{
    CanonicalUrl, IndexRow, PACK_INDEX_SUFFIX, PACK_SUFFIX, PackFileName, QueryOrder, RunKey,
};
use crate::store::{Lake, StorePath};
use crate::time::BusinessDate;

/// A pack that readers see.
#[derive(Debug, Clone)]
pub struct SourcePack {
    /// Whose responses it holds.
    pub run: RunKey,
    /// The file.
    pub path: PathBuf,
    /// BLAKE3 of the file.
    pub blake3: ContentHash,
    /// Its index, with the BLAKE3 of that file.
    index: (PathBuf, ContentHash),
    /// The record that added it.
    pub log_position: u64,
}

impl SourcePack {
    /// Opens it, when its index is the one that was committed: an index decides which captures are parsed.
    pub fn open(&self) -> Result<PackReader> {
        let (path, hash) = &self.index;
        let bytes =
            std::fs::read(path).map_err(|e| Error::io("read the index", path.display(), e))?;
        if ContentHash::of(&bytes) != *hash {
            return Err(
                Error::corrupt("open a pack: its index is not the one that was committed")
                    .with("file", path.display())
                    .hint("`lakebed audit --deep` tells which files differ from the log; restore the index from a backup of the lake"),
            );
        }
        PackReader::open(&self.path).map_err(|e| match self.path.exists() {
            true => e,
            false => e.hint("the log holds this pack: restore the file from a backup of the lake"),
        })
    }
}

/// The packs of a source from one business date to another, both included; by date, then in the order in
/// which they came.
pub async fn list_packs(
    lake: &Lake,
    source: &SourceName,
    from: BusinessDate,
    to: BusinessDate,
) -> Result<Vec<SourcePack>> {
    let dataset = DatasetRef {
        layer: Layer::Raw,
        dataset: source.as_str().parse()?,
    };
    let state = load(lake, &dataset).await?.state;
    let local_path = |path: &str| {
        let place: StorePath = path.to_owned().try_into()?;
        lake.store().local_path(&place).ok_or_else(|| {
            Error::unavailable("packs are read from a lake on this machine's disk")
                .with("file", &place)
        })
    };
    let files = visible_files(&state);
    let mut packs = Vec::new();
    for file in &files {
        let is_meant = (from..=to).contains(&file.key.dt) && file.name.ends_with(PACK_SUFFIX);
        let Some(name) = PackFileName::parse(&file.name).filter(|_| is_meant) else {
            continue;
        };
        let beside = file.name.trim_end_matches(PACK_SUFFIX).to_owned() + PACK_INDEX_SUFFIX;
        let is_index = |f: &&FileRow| f.key == file.key && f.name == beside;
        let Some(index) = files.iter().find(is_index) else {
            return Err(
                Error::corrupt("find the index of a pack: the log names none")
                    .with("file", &file.path)
                    .hint("`lakebed audit` says more"),
            );
        };
        let path = local_path(&file.path)?;
        packs.push(SourcePack {
            run: RunKey {
                source: source.clone(),
                date: name.date,
                run: name.run,
            },
            path,
            blake3: file.blake3.clone(),
            index: (local_path(&index.path)?, index.blake3.clone()),
            log_position: file.log_position,
        });
    }
    packs.sort_by_key(|pack| (pack.run.date, pack.log_position));
    Ok(packs)
}

/// A response that was looked for.
#[derive(Debug)]
pub struct FoundPage {
    /// The run that fetched it.
    pub run: RunKey,
    /// The pack that holds it.
    pub path: PathBuf,
    /// The response.
    pub capture: Capture,
}

/// The newest response that `wanted` names: a URL, a capture id, a request key, or the `_raw` of a row. The newest
/// pack of the lake that has one and the newest sample are compared by when they fetched it; within a pack, one that
/// made its request done comes first.
///
/// # Errors
/// `NotFound` where no pack has it.
pub async fn find_page(
    (lake, samples): (&Lake, &Path),
    source: &SourceName,
    wanted: &str,
) -> Result<FoundPage> {
    let raw = raw_of(source, wanted);
    let is_known = raw.is_some() || wanted.contains("://") || wanted.parse::<CaptureId>().is_ok();
    if !is_known && wanted.contains(['.', '/']) {
        return Err(Error::not_found(format!("there is no file `{wanted}`"))
            .hint("a file, a URL, a capture id, a request key, or the `_raw` of a row"));
    }
    let (from, to) = match &raw {
        Some((run, _)) => (run.date, run.date),
        None => (BusinessDate::MIN, BusinessDate::MAX),
    };
    let mut packs = list_packs(lake, source, from, to).await?;
    let mut sampled = list_samples(samples, source)?;
    let wanted = match &raw {
        Some((run, capture)) => {
            packs.retain(|pack| pack.run == *run);
            sampled.retain(|(sample, _)| sample == run);
            capture
        }
        None => wanted,
    };
    if packs.is_empty() && sampled.is_empty() && raw.is_none() {
        return Err(Error::not_found(format!("`{source}` has no pack"))
            .hint(fetch_hint(source, wanted))
            .hint(format!(
                "`lakebed crawl {source} --date D` makes one of a day, `lakebed source sample {source}` fetches a few pages"
            )));
    }
    let mut found: Option<FoundPage> = None;
    for pack in packs.iter().rev() {
        if let Some(capture) = newest_in(&pack.open()?, wanted)? {
            let (run, path) = (pack.run.clone(), pack.path.clone());
            found = Some(FoundPage { run, path, capture });
            break;
        }
    }
    // Samples are few, and their names do not tell which came last.
    for (run, path) in sampled {
        if let Some(capture) = newest_in(&PackReader::open(&path)?, wanted)? {
            let is_newer =
                |known: &FoundPage| known.capture.capture.fetched_at <= capture.capture.fetched_at;
            if found.as_ref().is_none_or(is_newer) {
                found = Some(FoundPage { run, path, capture });
            }
        }
    }
    if let Some(found) = found {
        return Ok(found);
    }
    Err(
        Error::not_found(format!("no pack of `{source}` has `{wanted}`"))
            .hint(fetch_hint(source, wanted)),
    )
}

/// How a page gets into a pack.
fn fetch_hint(source: &SourceName, wanted: &str) -> String {
    match wanted.contains("://") {
        true => format!(
            "fetch it: `echo '{{\"url\": \"{wanted}\", \"stage\": \"STAGE\"}}' | lakebed source sample {source} --seeds -`"
        ),
        false => "`lakebed pack list PACK` shows what a pack holds".to_owned(),
    }
}

fn newest_in(reader: &PackReader, wanted: &str) -> Result<Option<Capture>> {
    let rows = rows_of(reader, wanted)?;
    let newest = rows.into_iter().filter(|row| !row.is_erased);
    let newest = newest.max_by_key(|row| (row.is_named, row.fetched_at));
    newest.map(|row| reader.read(&row)).transpose()
}

/// Packs of samples below their folder, by date and then by the number of the sample.
///
/// # Errors
/// Where a folder cannot be listed.
pub fn list_samples(folder: &Path, source: &SourceName) -> Result<Vec<(RunKey, PathBuf)>> {
    let mut packs = Vec::new();
    for run in list_folder(&folder.join(source.as_str()))? {
        for path in list_folder(&run)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_pack = name.ends_with(PACK_SUFFIX);
            if let Some(name) = PackFileName::parse(&name).filter(|_| is_pack) {
                let run = RunKey {
                    source: source.clone(),
                    date: name.date,
                    run: name.run,
                };
                packs.push((run, path));
            }
        }
    }
    packs.sort_by_key(|(run, _)| (run.date, run.run.as_str().len(), run.run.clone()));
    Ok(packs)
}

/// Everything in a folder; nothing where there is none, or where it is a file.
fn list_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |e| Error::io("list the folder", folder.display(), e);
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries
        .map(|entry| Ok(entry.map_err(failed)?.path()))
        .collect()
}

/// Run and capture of a `_raw`: `source/date/run/capture id`.
fn raw_of<'w>(source: &SourceName, wanted: &'w str) -> Option<(RunKey, &'w str)> {
    let mut parts = wanted.split('/');
    let (own, date, run) = (parts.next()?, parts.next()?, parts.next()?);
    let capture = parts.next().filter(|c| c.parse::<CaptureId>().is_ok())?;
    let run = RunKey {
        source: source.clone(),
        date: date.parse().ok()?,
        run: run.parse().ok()?,
    };
    (own == source.as_str() && parts.next().is_none()).then_some((run, capture))
}

fn rows_of(reader: &PackReader, wanted: &str) -> Result<Vec<IndexRow>> {
    let index = reader.index()?;
    if let (Ok(id), Ok(key)) = (wanted.parse::<CaptureId>(), wanted.parse::<RequestKey>()) {
        let found = index.find_capture(&id)?;
        return match found {
            Some(row) => Ok(vec![row]),
            None => index.find_request(&key),
        };
    }
    let url = CanonicalUrl::parse(wanted, QueryOrder::Kept).map_err(|e| {
        e.hint("a URL, a capture id, a request key, the `_raw` of a row, or a file that is there")
    })?;
    let rows = index.rows()?;
    rows.filter(|row| row.as_ref().map_or(true, |row| row.url == url.as_str()))
        .collect()
}
