//! The write-once object store that a lake lies on, and the layout of paths within it.
//!
//! `Store` is what every backend does; `layout` says where things lie; `LocalStore` is a folder.
//! An object store differs in two answers of [`Capabilities`]: it cannot rename, so files are put at
//! their final key before the commit; and some cannot put conditionally, so the catalog hands out
//! record numbers. Nothing above this module knows which backend it works on.

mod lake;
mod layout;
mod listing;
mod local;
mod path;
mod probe;
#[cfg(test)]
mod suite;

use std::fmt;
use std::io::Write;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{ErrorKind, Result};

pub use lake::Lake;
pub use layout::{
    Layout, SUCCESS_NAME, checkpoint_dir, checkpoint_name, checkpoint_path, data_file_path,
    final_path, flow_root, flow_stamp_path, is_flow_stamp, is_log_record, is_published_schema,
    lake_json_path, log_dir, log_number, log_record_path, partition_dir, partition_of, rejects_dir,
    schema_dir, schema_path, stage_dir, stage_root, staged_path, success_path, superseded_dir,
    superseded_root,
};
pub use local::LocalStore;
pub use path::StorePath;

/// What a backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Files can be moved in place, so data is staged and moved after the commit.
    pub rename: bool,
    /// Put-if-absent is atomic, so record numbers are taken by it.
    pub conditional_put: bool,
}

/// Answer of a put-if-absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum PutOutcome {
    /// The object is there now, by this call.
    Created,
    /// Somebody's object was there before; nothing changed.
    Exists,
}

/// Answer of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum MoveOutcome {
    /// Moved by this call.
    Moved,
    /// The source is gone and the target is there: moved before.
    AlreadyMoved,
    /// Neither is there.
    Missing,
}

/// A file below a listed folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedFile {
    /// Where it lies.
    pub path: StorePath,
    /// Its size.
    pub size_bytes: u64,
}

/// A file being written; it counts only after `finish` returned and it was moved.
pub trait StageFile: Write + Send {
    /// Makes the bytes durable; a move makes the name durable that it gives.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A write-once object store.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Where it lies, as a URL or absolute path for people and query engines.
    fn location(&self) -> String;

    /// The path on this machine's disk; `None` on a remote store.
    fn local_path(&self, path: &StorePath) -> Option<std::path::PathBuf>;

    /// Puts an object that must not exist yet, durably and whole.
    async fn put_once(&self, path: &StorePath, bytes: &[u8]) -> Result<PutOutcome>;

    /// Puts an object whether it exists or not, durably and whole. Only `_SUCCESS` and the stamps of flows
    /// are ever replaced.
    async fn replace(&self, path: &StorePath, bytes: &[u8]) -> Result<()>;

    /// The object's bytes; `None` when it is not there.
    async fn find(&self, path: &StorePath) -> Result<Option<Bytes>>;

    /// The object's size; `None` when it is not there.
    async fn find_size(&self, path: &StorePath) -> Result<Option<u64>>;

    /// `length` bytes from `offset`; fewer only at the end of the object.
    async fn read_range(&self, path: &StorePath, offset: u64, length: usize) -> Result<Bytes>;

    /// The object's size and its last `length` bytes, all of them where it is shorter; `None` when it is
    /// not there.
    async fn find_end(&self, path: &StorePath, length: usize) -> Result<Option<(u64, Bytes)>> {
        let Some(size) = self.find_size(path).await? else {
            return Ok(None);
        };
        let offset = size.saturating_sub(length as u64);
        match self.read_range(path, offset, length).await {
            Ok(bytes) => Ok(Some((size, bytes))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Every file below the folder, sorted by path; an absent folder is empty.
    async fn list(&self, folder: &StorePath) -> Result<Vec<ListedFile>>;

    /// Files and folders that lie in the folder itself, sorted by path; an absent folder is empty.
    async fn list_entries(&self, folder: &StorePath) -> Result<Vec<StorePath>>;

    /// Moves a file; idempotent. Never replaces another file.
    async fn move_file(&self, from: &StorePath, to: &StorePath) -> Result<MoveOutcome>;

    /// Deletes a file; one that is not there is no error.
    async fn delete(&self, path: &StorePath) -> Result<()>;

    /// Deletes a folder with all below it; one that is not there is no error.
    async fn delete_folder(&self, folder: &StorePath) -> Result<()>;

    /// Begins a new file, which must not exist yet.
    fn create_stage_file(&self, path: &StorePath) -> Result<Box<dyn StageFile>>;
}

impl dyn Store {
    /// The names of the files and folders directly in the folder, sorted; an absent folder is empty.
    pub async fn list_names(&self, folder: &StorePath) -> Result<Vec<String>> {
        let entries = self.list_entries(folder).await?;
        let mut names: Vec<String> = entries.iter().map(StorePath::file_name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The object's bytes; an absent object is a `NotFound` error.
    pub async fn get(&self, path: &StorePath) -> Result<Bytes> {
        self.find(path).await?.ok_or_else(|| {
            crate::error::Error::not_found(format!("`{path}` is not in the lake"))
                .with("lake", self.location())
        })
    }
}
