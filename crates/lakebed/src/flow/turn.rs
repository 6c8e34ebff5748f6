//! Whose turn it is: one flow of a source and date at a time, over processes and machines.
//!
//! FLW-4: two things must be had, in this order. The lock of a file in the project: it goes with the last process that
//! has it open, and every stage has it as its standard input, so a flow that was killed is followed only when its last
//! stage has ended, too. Then the lease in the queue's database, for projects on other machines that share it: it is held
//! on while the flow runs and ends a minute after a machine fell silent. Whoever has the lock of the same file takes a
//! lease over at once: its holder cannot live.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::flow::place::lock_path;
use crate::name::SourceName;
use crate::queue::{LeaseHolder, LeaseOutcome, Queue};
use crate::time::{BusinessDate, Clock, unique_id};

/// What the names of leases of flows begin with; source and date follow.
pub const FLOW_LEASES: &str = "flow ";
/// How long a lease lasts after its holder fell silent, microseconds.
const LEASE_US: i64 = 60_000_000;
/// How often it is held on.
const HOLD_EVERY: Duration = Duration::from_secs(15);

/// The turn of a date; it ends when this goes.
#[derive(Debug)]
pub(super) struct Turn {
    lock: File,
    queue: Queue,
    name: String,
    token: String,
    is_lost: Arc<AtomicBool>,
    holding: tokio::task::JoinHandle<()>,
}

/// Who has the turn instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Busy {
    /// In words.
    pub(super) who: String,
}

/// The lease of a date.
pub(super) fn lease_name(source: &SourceName, date: BusinessDate) -> String {
    format!("{FLOW_LEASES}{source} {date}")
}

/// Takes the turn of the date.
pub(super) async fn take(
    queue: &Queue,
    project: &Path,
    (source, date): (&SourceName, BusinessDate),
) -> Result<Result<Turn, Busy>> {
    let path = lock_path(project, source, date);
    let Some(lock) = lock_file(&path)? else {
        let who = "another flow of this project, or a stage that outlived one".to_owned();
        return Ok(Err(Busy { who }));
    };
    let holder = LeaseHolder {
        token: unique_id(&Clock::System),
        place: place_of(&lock, &path)?,
        name: format!("process {} on {}", std::process::id(), machine()),
    };
    let name = lease_name(source, date);
    match queue.take_lease(&name, &holder, LEASE_US).await? {
        LeaseOutcome::Held(held) => {
            let left = (held.until_at - held.now).max(0) / 1_000_000;
            let who = format!(
                "{}, whose lease lasts {left} s more unless it is held on",
                held.holder
            );
            Ok(Err(Busy { who }))
        }
        LeaseOutcome::Taken => {
            let is_lost = Arc::new(AtomicBool::new(false));
            let holding = tokio::spawn(hold(
                queue.clone(),
                name.clone(),
                holder.token.clone(),
                Arc::clone(&is_lost),
            ));
            Ok(Ok(Turn {
                lock,
                queue: queue.clone(),
                name,
                token: holder.token,
                is_lost,
                holding,
            }))
        }
    }
}

/// Whether a flow of this project runs the date now.
#[must_use]
pub fn is_running(project: &Path, source: &SourceName, date: BusinessDate) -> bool {
    let Ok(file) = File::open(lock_path(project, source, date)) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn lock_file(path: &Path) -> Result<Option<File>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io("create the folder", folder.display(), e))?;
    }
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|e| Error::io("create the file", path.display(), e))?;
    // Who only looks holds it for a moment.
    for _ in 0..20 {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Error(e)) => {
                return Err(Error::io("lock the file", path.display(), e));
            }
        }
    }
    Ok(None)
}

/// Names the locked file among all files of all running machines.
fn place_of(lock: &File, path: &Path) -> Result<String> {
    let metadata = lock
        .metadata()
        .map_err(|e| Error::io("look at the file", path.display(), e))?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| machine());
    let text = format!("{boot}\n{}\n{}", metadata.dev(), metadata.ino());
    Ok(blake3::hash(text.as_bytes()).to_hex()[..32].to_owned())
}

/// The machine's name, for people.
fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "this machine".to_owned(),
        name => name.to_owned(),
    }
}

async fn hold(queue: Queue, name: String, token: String, is_lost: Arc<AtomicBool>) {
    let mut silent = Duration::ZERO;
    loop {
        tokio::time::sleep(HOLD_EVERY).await;
        match queue.hold_lease(&name, &token, LEASE_US).await {
            Ok(true) => silent = Duration::ZERO,
            Ok(false) => {
                is_lost.store(true, Ordering::SeqCst);
                return;
            }
            // The database is away: the lease lasts while it can.
            Err(_) => {
                silent += HOLD_EVERY;
                if silent >= 3 * HOLD_EVERY {
                    is_lost.store(true, Ordering::SeqCst);
                    return;
                }
            }
        }
    }
}

impl Turn {
    /// The lock, for a stage to hold on.
    pub(super) fn lock(&self) -> Result<File> {
        self.lock
            .try_clone()
            .map_err(|e| Error::io("share the lock of", &self.name, e))
    }

    /// Set when the lease went to somebody else.
    pub(super) fn lost(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_lost)
    }

    /// Whether the lease went to somebody else: whoever has this must end.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Ends the turn.
    pub(super) async fn end(self) -> Result<()> {
        self.holding.abort();
        self.queue.give_lease_back(&self.name, &self.token).await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.holding.abort();
    }
}
