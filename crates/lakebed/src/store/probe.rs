//! The probe of a store before a lake is made on it: what commits stand on is tried, not believed.
//!
//! Everything happens below the folder of temporary puts, so that what an interrupted probe leaves
//! is found and deleted like any other temporary file.

use crate::error::{Error, Result};
use crate::store::{Layout, MoveOutcome, PutOutcome, Store, StorePath};
use crate::time::{Clock, unique_id};

/// Tries put-if-absent, reading back, moving, replacing and deleting.
///
/// # Errors
/// `PreconditionFailed` where the store does something else than it must; the store's own error where
/// it refuses, with what a lake needs as a hint.
pub(super) async fn probe(store: &dyn Store, clock: &Clock) -> Result<()> {
    let folder = StorePath::new(format!("{}/probe-{}", Layout::PUTS, unique_id(clock)))?;
    let tried = try_all(store, &folder).await;
    let cleaned = store.delete_folder(&folder).await;
    tried.and(cleaned).map_err(|e| {
        e.with("lake", store.location()).hint(
            "a lake needs a file system with hard links and durable folders, as ext4, XFS, Btrfs, ZFS and NFS have; FAT, exFAT and some network shares do not",
        )
    })
}

async fn try_all(store: &dyn Store, folder: &StorePath) -> Result<()> {
    let (first, second) = (folder.child("first"), folder.child("second"));
    if store.capabilities().conditional_put {
        expect(
            store.put_once(&first, b"1").await? == PutOutcome::Created,
            "put a file that was not there",
        )?;
        expect(
            store.put_once(&first, b"2").await? == PutOutcome::Exists,
            "keep the first of two puts",
        )?;
        expect(
            store.find(&first).await?.as_deref() == Some(b"1".as_slice()),
            "give back what was put",
        )?;
    } else {
        store.replace(&first, b"1").await?;
    }
    if store.capabilities().rename {
        expect(
            store.move_file(&first, &second).await? == MoveOutcome::Moved,
            "move a file",
        )?;
        expect(store.find(&first).await?.is_none(), "move a file away")?;
        store.replace(&second, b"3").await?;
        expect(
            store.find(&second).await?.as_deref() == Some(b"3".as_slice()),
            "replace a file",
        )?;
    }
    Ok(())
}

fn expect(holds: bool, what: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::precondition(format!("the store does not {what}")))
}
