//! A lake in a local folder.
//!
//! Put-if-absent writes a temporary file, makes it durable, and `link()`s it to its name: the link
//! is atomic, fails when the name is taken, and never shows an empty file after a crash, as creating
//! the name first would. STO-1: a name, once visible, holds whole bytes. STO-2: what a call
//! acknowledged survives a power failure (file and every new folder are fsynced).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::store::layout::{Layout, stage_root};
use crate::store::listing::{list_below, listed_child};
use crate::store::{
    Capabilities, ListedFile, MoveOutcome, PutOutcome, StageFile, Store, StorePath,
};
use crate::time::{Clock, unique_id};

/// How often a temporary file that somebody took away is written again.
const MAX_TRIES: usize = 20;
/// Memory that is asked for before a read, at most.
const MOST_AT_ONCE: usize = 64 << 20;

/// A lake in a folder of this machine.
#[derive(Debug)]
pub struct LocalStore {
    root: PathBuf,
    temp_prefix: String,
    temp_count: AtomicU64,
}

impl LocalStore {
    /// The store in `root`, which need not exist yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            temp_prefix: unique_id(&Clock::System),
            temp_count: AtomicU64::new(0),
        }
    }

    fn resolve(&self, path: &StorePath) -> PathBuf {
        if path.as_str().is_empty() {
            self.root.clone()
        } else {
            self.root.join(path.as_str())
        }
    }

    /// Creates the folder and makes every new level durable.
    fn create_folder(&self, folder: &Path) -> Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(parent) = folder.parent()
            && folder != self.root
        {
            self.create_folder(parent)?;
        }
        match fs::create_dir_all(folder) {
            Ok(()) => {}
            Err(e) => return Err(Error::io("create the folder", folder.display(), e)),
        }
        folder.parent().map_or(Ok(()), sync_folder)
    }

    fn write_temp(&self, bytes: &[u8]) -> Result<PathBuf> {
        let folder = self.root.join(Layout::PUTS);
        self.create_folder(&folder)?;
        let n = self.temp_count.fetch_add(1, Ordering::SeqCst);
        let temp = folder.join(format!("{}-{n}", self.temp_prefix));
        let written =
            File::create(&temp).and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all()));
        if let Err(e) = written {
            remove_quietly(&temp);
            return Err(Error::io("write the file", temp.display(), e));
        }
        Ok(temp)
    }

    fn put(&self, path: &StorePath, bytes: &[u8]) -> Result<PutOutcome> {
        let target = self.resolve(path);
        let folder = parent_of(&target);
        self.create_folder(&folder)?;
        let is_log = path.as_str().starts_with(Layout::LOGS);
        let linked = self.place_temp(bytes, |temp| {
            if is_log {
                kill_point("log.temp_written");
            }
            let linked = fs::hard_link(temp, &target);
            if is_log {
                kill_point("log.linked");
            }
            linked
        })?;
        match linked {
            Ok(()) => {
                sync_folder(&folder)?;
                Ok(PutOutcome::Created)
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(PutOutcome::Exists),
            Err(e) => Err(Error::io("link the file", target.display(), e)),
        }
    }

    /// Folders of the stage that a move has emptied go with it: listings show files alone, so nobody
    /// would ever find them.
    fn prune_stage(&self, moved_from: &Path) {
        let root = self.resolve(&stage_root());
        let mut folder = moved_from.parent();
        while let Some(empty) = folder.filter(|f| f.starts_with(&root) && *f != root) {
            if fs::remove_dir(empty).is_err() {
                return;
            }
            folder = empty.parent();
        }
    }

    /// Writes a temporary file and lets `place` give it its name. A repair may take the temporary file
    /// for a leftover before it has one: nothing was put then, so it is written again.
    fn place_temp(
        &self,
        bytes: &[u8],
        place: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<io::Result<()>> {
        let mut tries = 0;
        loop {
            let temp = self.write_temp(bytes)?;
            let placed = place(&temp);
            // After a rename it is gone, after a link it is not needed, after a failure neither.
            remove_quietly(&temp);
            tries += 1;
            match placed {
                Err(e) if e.kind() == io::ErrorKind::NotFound && tries < MAX_TRIES => {}
                placed => return Ok(placed),
            }
        }
    }
}

fn parent_of(path: &Path) -> PathBuf {
    path.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

fn sync_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::io("make durable the folder", folder.display(), e))
}

/// Removes a temporary file; what cannot be removed is found by `audit`.
fn remove_quietly(path: &Path) {
    drop(fs::remove_file(path));
}

/// `None` for an absent file.
fn absent<T>(action: &str, path: &Path, result: io::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(Error::io(action, path.display(), e)),
    }
}

/// Bytes of a staged file after which they are made durable while the rest is still to come.
const SYNC_BYTES: usize = 16 << 20;

/// A file that is made durable in the background as it grows, so that little is left for its end.
struct LocalStageFile {
    file: File,
    path: PathBuf,
    /// Bytes written since the last background call began.
    unsynced: usize,
    /// The background call: it and the last one share the file's description, so that an error is told
    /// to one of them alone and must not be lost.
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl LocalStageFile {
    /// Begins to make durable what was written, unless the last such call still runs.
    fn sync_ahead(&mut self) -> io::Result<()> {
        if self.syncing.as_ref().is_some_and(|s| !s.is_finished()) {
            return Ok(());
        }
        self.end_sync()?;
        self.unsynced = 0;
        let file = self.file.try_clone()?;
        let sync = std::thread::Builder::new().spawn(move || file.sync_data())?;
        self.syncing = Some(sync);
        Ok(())
    }

    fn end_sync(&mut self) -> io::Result<()> {
        let Some(syncing) = self.syncing.take() else {
            return Ok(());
        };
        let died = |_| Err(io::Error::other("the thread that makes it durable died"));
        syncing.join().unwrap_or_else(died)
    }
}

impl Write for LocalStageFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buf)?;
        self.unsynced += n;
        if self.unsynced >= SYNC_BYTES {
            self.sync_ahead()?;
        }
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl StageFile for LocalStageFile {
    fn finish(mut self: Box<Self>) -> Result<()> {
        // Its present name need not last: the move that gives it the name a record knows makes that
        // one durable.
        let synced = self.end_sync().and_then(|()| self.file.sync_all());
        synced.map_err(|e| Error::io("make durable the file", self.path.display(), e))
    }
}

#[async_trait]
impl Store for LocalStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rename: true,
            conditional_put: true,
        }
    }

    fn location(&self) -> String {
        self.root.display().to_string()
    }

    fn local_path(&self, path: &StorePath) -> Option<PathBuf> {
        Some(self.resolve(path))
    }

    async fn put_once(&self, path: &StorePath, bytes: &[u8]) -> Result<PutOutcome> {
        self.put(path, bytes)
    }

    async fn replace(&self, path: &StorePath, bytes: &[u8]) -> Result<()> {
        let target = self.resolve(path);
        let folder = parent_of(&target);
        self.create_folder(&folder)?;
        self.place_temp(bytes, |temp| {
            kill_point("success.temp_written");
            fs::rename(temp, &target)
        })?
        .map_err(|e| Error::io("replace the file", target.display(), e))?;
        sync_folder(&folder)
    }

    async fn find(&self, path: &StorePath) -> Result<Option<Bytes>> {
        let file = self.resolve(path);
        Ok(absent("read the file", &file, fs::read(&file))?.map(Bytes::from))
    }

    async fn find_size(&self, path: &StorePath) -> Result<Option<u64>> {
        let file = self.resolve(path);
        let found = absent("look at the file", &file, fs::metadata(&file))?;
        Ok(found.filter(fs::Metadata::is_file).map(|m| m.len()))
    }

    async fn read_range(&self, path: &StorePath, offset: u64, length: usize) -> Result<Bytes> {
        let file = self.resolve(path);
        let read = || -> io::Result<Vec<u8>> {
            let mut f = File::open(&file)?;
            f.seek(SeekFrom::Start(offset))?;
            // As much at once as is asked for; what is asked for may be more than there is.
            let mut bytes = Vec::with_capacity(length.min(MOST_AT_ONCE));
            f.take(length as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read()
            .map(Bytes::from)
            .map_err(|e| Error::io("read the file", file.display(), e))
    }

    async fn find_end(&self, path: &StorePath, length: usize) -> Result<Option<(u64, Bytes)>> {
        let file = self.resolve(path);
        let read = || -> io::Result<(u64, Bytes)> {
            let mut f = File::open(&file)?;
            let size = f.metadata()?.len();
            let wanted = usize::try_from(size).unwrap_or(length).min(length);
            if wanted as u64 != size {
                f.seek(SeekFrom::Start(size - wanted as u64))?;
            }
            let mut bytes = Vec::with_capacity(wanted);
            f.take(wanted as u64).read_to_end(&mut bytes)?;
            match bytes.len() == wanted {
                true => Ok((size, bytes.into())),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        absent("read the file", &file, read())
    }

    async fn list(&self, folder: &StorePath) -> Result<Vec<ListedFile>> {
        list_below(&self.resolve(folder), folder)
    }

    async fn list_entries(&self, folder: &StorePath) -> Result<Vec<StorePath>> {
        let local = self.resolve(folder);
        let failed = |e| Error::io("list the folder", local.display(), e);
        let entries = match fs::read_dir(&local) {
            Ok(entries) => entries,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(e) => return Err(failed(e)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(listed_child(folder, &entry.map_err(failed)?.file_name()));
        }
        paths.sort();
        Ok(paths)
    }

    async fn move_file(&self, from: &StorePath, to: &StorePath) -> Result<MoveOutcome> {
        let (source, target) = (self.resolve(from), self.resolve(to));
        let folder = parent_of(&target);
        if !source.exists() {
            return Ok(if target.exists() {
                MoveOutcome::AlreadyMoved
            } else {
                MoveOutcome::Missing
            });
        }
        self.create_folder(&folder)?;
        // A rename never replaces another file here: names carry the hash of their content.
        match fs::rename(&source, &target) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound && target.exists() => {
                return Ok(MoveOutcome::AlreadyMoved);
            }
            Err(e) => return Err(Error::io("move the file", target.display(), e)),
        }
        sync_folder(&folder)?;
        self.prune_stage(&source);
        Ok(MoveOutcome::Moved)
    }

    async fn delete(&self, path: &StorePath) -> Result<()> {
        let file = self.resolve(path);
        if absent("delete the file", &file, fs::remove_file(&file))?.is_some() {
            sync_folder(&parent_of(&file))?;
        }
        Ok(())
    }

    async fn delete_folder(&self, folder: &StorePath) -> Result<()> {
        let dir = self.resolve(folder);
        absent("delete the folder", &dir, fs::remove_dir_all(&dir)).map(|_| ())
    }

    fn create_stage_file(&self, path: &StorePath) -> Result<Box<dyn StageFile>> {
        let target = self.resolve(path);
        self.create_folder(&parent_of(&target))?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&target)
            .map_err(|e| Error::io("create the file", target.display(), e))?;
        Ok(Box::new(LocalStageFile {
            file,
            path: target,
            unsynced: 0,
            syncing: None,
        }))
    }
}
