//! Listing a local folder with all below it: sizes come from the open folder, so that no path is walked
//! again for each file, and several threads share the folders.
//!
//! The order is that of the paths, whatever the number of threads. What goes away meanwhile is left out.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::store::{ListedFile, StorePath};

/// Threads at most: beyond these a disk is what is waited for.
const MOST_THREADS: usize = 8;
/// Folders below which threads are not worth their start.
const FEW_FOLDERS: usize = 16;

/// The text of a path below a folder.
fn below(folder: &str, name: &OsStr) -> String {
    let name = name.to_string_lossy();
    match folder {
        "" => name.into_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// The path of that text. A name that is none (a backslash, say, or no Unicode) is still listed,
/// escaped: what is not listed is never found to be a stranger.
fn listed(text: String) -> StorePath {
    StorePath::new(text.as_str())
        .unwrap_or_else(|_| StorePath::from_checked(String::new()).child(&text))
}

/// The path of an entry of a folder.
pub(super) fn listed_child(folder: &StorePath, name: &OsStr) -> StorePath {
    listed(below(folder.as_str(), name))
}

/// A folder on the way: where it lies, and its path as text.
type Folder = (PathBuf, String);

/// Every file below the folder `path`, which lies at `local`, sorted; an absent folder is empty.
pub(super) fn list_below(local: &Path, path: &StorePath) -> Result<Vec<ListedFile>> {
    let mut files = Vec::new();
    let mut level: Vec<Folder> = vec![(local.to_path_buf(), path.as_str().to_owned())];
    // Level by level, until there is enough to share out.
    while !level.is_empty() && level.len() < FEW_FOLDERS {
        let mut next = Vec::new();
        for (local, path) in &level {
            for entry in entries(local, path)? {
                match entry {
                    Entry::Folder(local, path) => next.push((local, path)),
                    Entry::File(file) => files.push(file),
                }
            }
        }
        level = next;
    }
    for below in walk_all(&level)? {
        files.extend(below);
    }
    // Whole runs are in order already.
    files.sort();
    Ok(files)
}

/// The files below each of the folders.
fn walk_all(folders: &[Folder]) -> Result<Vec<Vec<ListedFile>>> {
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MOST_THREADS).min(folders.len());
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let mut found = Vec::new();
        while let Some((local, path)) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut files = Vec::new();
            let walked = walk(local, path, &mut files).map(|()| files);
            let failed = walked.is_err();
            found.push(walked);
            if failed {
                break;
            }
        }
        let mut done = done
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        done.extend(found);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.into_iter().collect()
}

enum Entry {
    Folder(PathBuf, String),
    File(ListedFile),
}

fn walk(local: &Path, path: &str, into: &mut Vec<ListedFile>) -> Result<()> {
    for entry in entries(local, path)? {
        match entry {
            Entry::Folder(local, path) => walk(&local, &path, into)?,
            Entry::File(file) => into.push(file),
        }
    }
    Ok(())
}

/// What lies in the folder itself, in the order of the paths of all below it.
fn entries(local: &Path, path: &str) -> Result<Vec<Entry>> {
    let opened = match fs::read_dir(local) {
        Ok(opened) => opened,
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(e) => return Err(Error::io("list the folder", local.display(), e)),
    };
    let mut found = Vec::new();
    for entry in opened {
        let entry = entry.map_err(|e| Error::io("list the folder", local.display(), e))?;
        let meta = match look_at(&entry) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("look at the file", entry.path().display(), e)),
        };
        let text = below(path, &entry.file_name());
        found.push(if meta.is_dir() {
            Entry::Folder(entry.path(), text)
        } else {
            Entry::File(ListedFile {
                path: listed(text),
                size_bytes: meta.len(),
            })
        });
    }
    // A folder comes where the first file below it does.
    found.sort_by(|a, b| sort_key(a).cmp(sort_key(b)));
    Ok(found)
}

fn sort_key(entry: &Entry) -> impl Iterator<Item = u8> + '_ {
    let (path, end) = match entry {
        Entry::Folder(_, path) => (path.as_str(), Some(b'/')),
        Entry::File(file) => (file.path.as_str(), None),
    };
    path.bytes().chain(end)
}

/// The metadata of an entry, or of what a link leads to.
fn look_at(entry: &DirEntry) -> io::Result<Metadata> {
    let meta = entry.metadata()?;
    if meta.is_symlink() {
        return fs::metadata(entry.path());
    }
    Ok(meta)
}
