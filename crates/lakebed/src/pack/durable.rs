//! Making files and folders of this machine durable, and locking a part.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::io("make durable the folder", folder.display(), e))
}

/// Creates a folder and all above it, each made durable.
pub(super) fn create_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folder(parent)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Error::io("create the folder", folder.display(), e)),
    }
    folder.parent().map_or(Ok(()), sync_folder)
}

/// Takes the lock of a file, which ends with the process; `false` where another one holds it.
pub(super) fn lock(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(Error::io("lock the file", path.display(), e)
            .hint("parts lie on a disk of this machine, not on a share that knows no locks")),
    }
}
