//! Where the bytes of a part or pack are read from: by ranges, so that a file and an object store are
//! the same to all that reads.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result};

/// Bytes that can be read at any place.
pub trait ReadAt: Send + Sync + fmt::Debug {
    /// How many there are.
    fn size(&self) -> u64;

    /// Exactly `length` bytes from `offset`: one ranged read.
    ///
    /// # Errors
    /// `CorruptData` where the range passes the end, which is looked at before anything is allocated.
    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes>;

    /// What people call it: a path or URL.
    fn name(&self) -> String;
}

/// The error of a range beyond the end.
fn beyond(name: &str, offset: u64, length: usize) -> Error {
    Error::corrupt(format!("read {length} bytes: the file ends before that"))
        .with("file", name)
        .with("offset", offset)
}

fn is_within(size: u64, offset: u64, length: usize) -> bool {
    offset
        .checked_add(length as u64)
        .is_some_and(|end| end <= size)
}

/// A file of this machine.
#[derive(Debug)]
pub struct FileSource {
    file: Mutex<Arc<File>>,
    size: u64,
    path: PathBuf,
}

impl FileSource {
    /// Opens the file; its size is what it is now.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open the file", path.display(), e))?;
        Self::of(Arc::new(file), path)
    }

    /// Reads from a file that is open already.
    pub(super) fn of(file: Arc<File>, path: &Path) -> Result<Self> {
        let size = file
            .metadata()
            .map_err(|e| Error::io("look at the file", path.display(), e))?
            .len();
        Ok(Self {
            file: Mutex::new(file),
            size,
            path: path.to_owned(),
        })
    }
}

impl ReadAt for FileSource {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        if !is_within(self.size, offset, length) {
            return Err(beyond(&self.name(), offset, length));
        }
        let mut bytes = vec![0; length];
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut handle: &File = &file;
        handle
            .seek(SeekFrom::Start(offset))
            .and_then(|_| handle.read_exact(&mut bytes))
            .map_err(|e| Error::io("read the file", self.path.display(), e))?;
        Ok(bytes.into())
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Bytes in memory.
#[derive(Debug, Clone)]
pub struct MemorySource {
    bytes: Bytes,
}

impl MemorySource {
    /// Reads from these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
        }
    }
}

impl ReadAt for MemorySource {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        if !is_within(self.size(), offset, length) {
            return Err(beyond(&self.name(), offset, length));
        }
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(begin..begin + length))
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}
