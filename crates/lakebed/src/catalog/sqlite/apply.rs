//! Applying records: one immediate transaction for those that are handed in together, guarded by the
//! (position, hash) before the first (CAT-2).
//!
//! ```text
//! guard -> load (what the records name) -> fold (in memory) -> write (each row once) -> commit
//! ```
//!
//! `file_stats` holds the columns of exactly those files that readers see (CAT-5), as far as the
//! caller handed them in. A partition that leaves their sight loses them, one that comes back gets
//! them with the record that brings it back; so a rebuild, which finds only what is there now, gives
//! the same rows as having followed the log all along (CAT-1).

use std::sync::atomic::Ordering;

use sqlx::SqliteConnection;

use crate::catalog::sqlite::SqliteCatalog;
use crate::catalog::sqlite::load::Loader;
use crate::catalog::sqlite::row::{Columns, Database};
use crate::catalog::sqlite::write::Writer;
use crate::catalog::{ApplyOutcome, NextRecord};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::name::DatasetRef;
use crate::spec::{LogPosition, Record};

pub(super) const APPLY: &str = "apply log records to the catalog";
/// What a connection that applies many records has. Memory for its pages, 32 MiB: with less, the indexes of
/// a large catalog are read anew for each row. And it carries nothing of the write-ahead log into the file
/// before that has 65,536 pages: until then another connection does, and the disk is not waited for.
const MANY: &str = "PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 65536";

impl SqliteCatalog {
    pub(super) async fn apply_records(&self, records: &[NextRecord<'_>]) -> Result<ApplyOutcome> {
        let Some(first) = records.first().map(|next| next.record) else {
            return Ok(ApplyOutcome::Applied);
        };
        kill_point("sync.before_apply");
        let mut tx = self.begin(APPLY).await?;
        let bound = bound_lake(&mut tx, &self.database).await?;
        if bound.as_deref() != Some(first.lake.as_str()) {
            return Err(self.foreign_record(first, bound.as_deref()));
        }
        let at = position_of(&mut tx, &self.database, &first.dataset).await?;
        if at.number + 1 != first.number || at.hash != first.previous {
            return Ok(ApplyOutcome::NotNext(at));
        }
        check_follow(records)?;
        if records.len() > 1 {
            let done = sqlx::raw_sql(MANY).execute(&mut *tx).await;
            done.map_err(|e| self.database.error(APPLY, e))?;
        }
        let mut loader = Loader {
            connection: &mut tx,
            database: &self.database,
        };
        let mut batch = loader.load(&first.dataset, records).await?;
        for next in records {
            batch.fold(next).map_err(|e| {
                e.with("dataset", &first.dataset)
                    .with("record", next.record.number)
            })?;
        }
        let mut writer = Writer {
            connection: &mut tx,
            database: &self.database,
        };
        let written = writer.write(&batch).await;
        written.map_err(|e| {
            e.with("dataset", &first.dataset)
                .with("record", first.number)
        })?;
        kill_point("sync.in_transaction");
        tx.commit()
            .await
            .map_err(|e| self.database.error(APPLY, e))?;
        kill_point("sync.applied");
        if records.len() > 1 {
            self.carry();
        }
        Ok(ApplyOutcome::Applied)
    }

    /// Carries what is in the write-ahead log into the file while others write on. One call at a time does,
    /// and nobody waits for it: what it leaves, the next one finds.
    fn carry(&self) {
        if self.carrying.swap(true, Ordering::AcqRel) {
            return;
        }
        let catalog = self.clone();
        tokio::spawn(async move {
            let carry = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)");
            drop(carry.execute(&catalog.pool).await);
            catalog.carrying.store(false, Ordering::Release);
        });
    }

    fn foreign_record(&self, record: &Record, bound: Option<&str>) -> Error {
        Error::precondition("the record belongs to another lake than the catalog")
            .with("catalog", self.database.location())
            .with("record's lake", &record.lake)
            .with("catalog's lake", bound.unwrap_or("none"))
            .hint("check `lake` and `catalog` in lakebed.toml: each lake has its own catalog")
    }
}

/// Records that are applied together are one stretch of one log.
fn check_follow(records: &[NextRecord<'_>]) -> Result<()> {
    for (before, next) in records.iter().zip(records.iter().skip(1)) {
        let (a, b) = (before.record, next.record);
        let is_same_log = a.lake == b.lake && a.dataset == b.dataset;
        let is_next = a.number + 1 == b.number && b.previous.as_ref() == Some(before.hash);
        if !is_same_log || !is_next {
            return Err(Error::corrupt(format!(
                "record {} of `{}` does not follow record {} of `{}`",
                b.number, b.dataset, a.number, a.dataset
            ))
            .with("invariant", "CAT-2")
            .hint("run `lakebed audit`; the catalog was not changed"));
        }
    }
    Ok(())
}

/// The lake the catalog is bound to.
pub(super) async fn bound_lake(
    connection: &mut SqliteConnection,
    database: &Database,
) -> Result<Option<String>> {
    sqlx::query_scalar("SELECT lake FROM lake_info")
        .fetch_optional(connection)
        .await
        .map_err(|e| database.error("read the catalog's lake", e))
}

/// How far a dataset's log is applied.
pub(super) async fn position_of(
    connection: &mut SqliteConnection,
    database: &Database,
    dataset: &DatasetRef,
) -> Result<LogPosition> {
    let row =
        sqlx::query("SELECT number, hash FROM dataset_position WHERE layer = ? AND dataset = ?")
            .bind(dataset.layer.as_str())
            .bind(dataset.dataset.as_str())
            .fetch_optional(connection)
            .await
            .map_err(|e| database.error("read the catalog's position", e))?;
    let Some(row) = row else {
        return Ok(LogPosition::START);
    };
    let mut columns = Columns::new(&row, database);
    Ok(LogPosition {
        number: columns.number()?,
        hash: Some(columns.parsed()?),
    })
}
