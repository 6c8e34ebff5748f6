//! The parts of a run's folder after a crash or for sealing: scanned frame by frame, torn tails cut.
//!
//! A part that nobody writes any more is locked, scanned and, where its tail is torn, cut behind its last
//! good frame; the tail is kept beside it as `<part>.torn`. A part whose writer lives is named and left
//! alone. PAK-4: only a torn tail is cut. Frames were made durable one by one, so a bad frame with good ones
//! behind it is no torn tail: that is damage, and it is refused by name.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::pack::content::Content;
use crate::pack::durable::{lock, sync_folder};
use crate::pack::part::NEW_SUFFIX;
use crate::pack::source::{FileSource, ReadAt};
use crate::pack::walk::{Step, Unit, find_next, step_at};
use crate::spec::{CaptureRecord, PACK_SUFFIX, PackHead, PackKind, PackLine, RunKey};

/// The end of the name under which a torn tail is kept.
pub(super) const TORN_SUFFIX: &str = ".torn";

/// A part that nobody writes any more; its lock is held as long as this lives.
#[derive(Debug)]
pub struct Part {
    /// Its file name.
    pub name: String,
    /// What its first member says.
    pub head: PackHead,
    /// Captures in it, repeats included.
    pub captures: u64,
    /// Bytes of its good frames: all of the file.
    pub bytes: u64,
    pub(super) source: FileSource,
    path: PathBuf,
}

/// A tail that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The part's file name.
    pub part: String,
    /// Where it was cut.
    pub offset: u64,
    /// Bytes that were cut.
    pub bytes: u64,
    /// Where they are kept.
    pub kept_as: PathBuf,
}

/// The parts of a folder.
#[derive(Debug, Default)]
pub struct OpenParts {
    /// Parts that nobody writes any more, by name.
    pub parts: Vec<Part>,
    /// Tails that were cut by this call.
    pub torn: Vec<TornTail>,
    /// Parts whose writers live, or that another program reads, by name.
    pub live: Vec<String>,
}

/// A capture and where it lies.
#[derive(Debug, Clone)]
pub struct PartCapture {
    /// The capture.
    pub capture: CaptureRecord,
    /// Its line as it is written, end included.
    pub line: Bytes,
    /// Its body as it is kept; empty where there is none.
    pub body: Bytes,
    /// The part's place in [`OpenParts::parts`].
    pub part: usize,
    /// Where its frame begins in the part.
    pub frame_offset: u64,
}

/// Opens the parts of the folder, which may be absent: then there are none.
///
/// # Errors
/// `CorruptData` for a part that is damaged before its last frame, or that holds another run's captures;
/// `Unavailable` where a file cannot be read, cut or locked.
pub fn open_parts(folder: &Path, run: &RunKey) -> Result<OpenParts> {
    let mut open = OpenParts::default();
    let mut names = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(open),
        Err(e) => return Err(Error::io("list the folder", folder.display(), e)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("list the folder", folder.display(), e))?;
        if let Some(name) = entry.file_name().to_str() {
            names.insert(name.to_owned(), entry.path());
        }
    }
    for (name, path) in names {
        if name.ends_with(NEW_SUFFIX) {
            remove_new(&path)?;
        } else if name.ends_with(PACK_SUFFIX) {
            match open_part(folder, &path, &name, run)? {
                None => open.live.push(name),
                Some((part, torn)) => {
                    open.torn.extend(torn);
                    open.parts.push(part);
                }
            }
        }
    }
    Ok(open)
}

/// A part that died before it had a name holds nothing that was acknowledged.
fn remove_new(path: &Path) -> Result<()> {
    let Some(file) = open_locked(path)? else {
        return Ok(());
    };
    match fs::remove_file(path) {
        Ok(()) => {}
        // Its writer gave it its name meanwhile, before the lock was looked at.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(Error::io("remove the file", path.display(), e)),
    }
    drop(file);
    Ok(())
}

/// The file with its lock; `None` where another process has it or it is gone.
fn open_locked(path: &Path) -> Result<Option<File>> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open the part", path.display(), e)),
    };
    Ok(lock(&file, path)?.then_some(file))
}

fn open_part(
    folder: &Path,
    path: &Path,
    name: &str,
    run: &RunKey,
) -> Result<Option<(Part, Option<TornTail>)>> {
    let Some(file) = open_locked(path)? else {
        return Ok(None);
    };
    let file = Arc::new(file);
    let source = FileSource::of(Arc::clone(&file), path)?;
    let scan = scan(&source, run).map_err(|e| e.with("file", path.display()))?;
    let mut torn = None;
    if scan.good < source.size() {
        let tail = TornTail {
            part: name.to_owned(),
            offset: scan.good,
            bytes: source.size() - scan.good,
            kept_as: folder.join(format!("{name}{TORN_SUFFIX}")),
        };
        cut_tail(&file, path, &tail)?;
        torn = Some(tail);
    }
    let part = Part {
        name: name.to_owned(),
        head: scan.head,
        captures: scan.captures,
        bytes: scan.good,
        source: FileSource::of(file, path)?,
        path: path.to_owned(),
    };
    Ok(Some((part, torn)))
}

/// What a scan found.
struct Scan {
    head: PackHead,
    captures: u64,
    /// Where the last good frame ends.
    good: u64,
}

fn scan(source: &FileSource, run: &RunKey) -> Result<Scan> {
    let (mut at, mut captures, mut head) = (0, 0, None);
    while let Some(step) = step_at(source, at)? {
        let error = match step {
            Step::Unit(unit) => match Content::parse(&unit.raw, None) {
                Ok(Content::Head(found)) if at == 0 => {
                    check_head(&found, run)?;
                    head = Some(*found);
                    at = unit.end();
                    continue;
                }
                Ok(Content::Captures { lines, .. }) if at > 0 => {
                    captures += lines.len() as u64;
                    at = unit.end();
                    continue;
                }
                Ok(_) => Error::corrupt("a frame does not belong into a part"),
                Err(error) => error,
            },
            Step::Skippable { .. } => Error::corrupt("a frame does not belong into a part"),
            Step::Cut => break,
            Step::Bad { error, .. } => error,
        };
        // A torn tail has no good frame behind it; damage has.
        if let Some(next) = find_next(source, at + 1)? {
            return Err(Error::corrupt(format!("{error}: the part is damaged"))
                .with("invariant", "PAK-4")
                .with("offset", at)
                .with("next good frame", next)
                .caused_by(error)
                .hint("`lakebed pack repair` saves every other frame of it"));
        }
        break;
    }
    let head = head.ok_or_else(|| {
        Error::corrupt("the part does not begin with `PACK.json`")
            .hint("a writer makes that durable before it names the file: this is none of its parts")
    })?;
    Ok(Scan {
        head,
        captures,
        good: at,
    })
}

fn check_head(head: &PackHead, run: &RunKey) -> Result<()> {
    if head.kind != PackKind::Part {
        return Err(Error::corrupt("it is a sealed pack, not a part"));
    }
    if head.run == *run {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "it holds captures of `{}`, not of `{run}`",
        head.run
    )))
}

/// Keeps the tail beside the part, durably, and then cuts it off.
fn cut_tail(file: &File, path: &Path, tail: &TornTail) -> Result<()> {
    let failed = |e| Error::io("cut the torn tail of the part", path.display(), e);
    let copy = || -> std::io::Result<()> {
        let mut from = file;
        from.seek(SeekFrom::Start(tail.offset))?;
        let mut kept = File::create(&tail.kept_as)?;
        std::io::copy(&mut from.take(tail.bytes), &mut kept)?;
        kept.flush()?;
        kept.sync_all()
    };
    copy().map_err(failed)?;
    path.parent().map_or(Ok(()), sync_folder)?;
    kill_point("pack.torn_kept");
    file.set_len(tail.offset)
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    kill_point("pack.torn_cut");
    Ok(())
}

impl OpenParts {
    /// Every capture of every part, in the order in which they were written, with its body.
    ///
    /// A capture that was handed in twice is there twice.
    pub fn captures(&self) -> impl Iterator<Item = Result<PartCapture>> + '_ {
        let parts = self.parts.iter().enumerate();
        parts.flat_map(|(index, part)| {
            part.units().flat_map(move |unit| match unit {
                Ok(unit) => captures_of(&unit, index),
                Err(error) => vec![Err(error)],
            })
        })
    }
}

impl Part {
    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its units in order, the head among them.
    pub(super) fn units(&self) -> impl Iterator<Item = Result<Unit>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let step = match step_at(&self.source, at) {
                Ok(step) => step?,
                Err(error) => return Some(Err(error)),
            };
            // It was good when it was opened, and it is locked since.
            let unit = match step {
                Step::Unit(unit) => Ok(*unit),
                Step::Bad { error, .. } => Err(error),
                Step::Cut | Step::Skippable { .. } => {
                    Err(Error::corrupt("the part changed while it was read"))
                }
            };
            at = unit.as_ref().map_or(u64::MAX, Unit::end);
            Some(unit.map_err(|e| e.with("file", self.path.display())))
        })
    }
}

fn captures_of(unit: &Unit, part: usize) -> Vec<Result<PartCapture>> {
    let lines = match Content::parse(&unit.raw, None) {
        Ok(Content::Captures { lines, .. }) => lines,
        Ok(_) => return Vec::new(),
        Err(error) => return vec![Err(error)],
    };
    let capture = |placed: crate::pack::content::PlacedLine| {
        let PackLine::Capture(capture) = placed.line else {
            return None;
        };
        Some(Ok(PartCapture {
            capture: *capture,
            line: unit.raw.slice(placed.range),
            body: placed
                .body
                .map_or_else(Bytes::new, |range| unit.raw.slice(range)),
            part,
            frame_offset: unit.offset,
        }))
    };
    lines.into_iter().filter_map(capture).collect()
}

#[cfg(test)]
mod tests;
