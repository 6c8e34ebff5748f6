//! What a batch finds before its first record: the rows of the dates and partitions that it names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{Sqlite, SqliteConnection};

use crate::catalog::NextRecord;
use crate::catalog::sqlite::apply::APPLY;
use crate::catalog::sqlite::batch::{Batch, Day, Held, HeldFile, Place, named};
use crate::catalog::sqlite::read::{PARTITIONS, partition_row};
use crate::catalog::sqlite::row::{Columns, Database};
use crate::error::{Error, Result};
use crate::name::DatasetRef;
use crate::spec::PartitionKey;

/// Reads the rows within the transaction that holds the write lock.
pub(super) struct Loader<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    pub(super) database: &'c Database,
}

type Query<'q> = sqlx::query::Query<'q, Sqlite, <Sqlite as sqlx::Database>::Arguments>;

impl Loader<'_> {
    /// The batch as it stands before its first record.
    pub(super) async fn load<'a>(
        &mut self,
        dataset: &'a DatasetRef,
        records: &[NextRecord<'a>],
    ) -> Result<Batch<'a>> {
        let mut batch = Batch::new(dataset);
        let (dates, partitions) = named(records);
        if dates.is_empty() {
            return Ok(batch);
        }
        let dates = list(dates.iter().map(ToString::to_string))?;
        self.load_dates(&dates, &mut batch).await?;
        self.load_partitions(&dates, &mut batch).await?;
        self.load_files(&partitions, &mut batch).await?;
        Ok(batch)
    }

    async fn rows(&mut self, query: Query<'_>) -> Result<Vec<SqliteRow>> {
        let rows = query.fetch_all(&mut *self.connection).await;
        rows.map_err(|e| self.database.error(APPLY, e))
    }

    async fn load_dates(&mut self, dates: &str, batch: &mut Batch<'_>) -> Result<()> {
        let query = sqlx::query(
            "SELECT dt, is_complete, log_position FROM date_completeness \
             WHERE layer = ? AND dataset = ? AND dt IN (SELECT value FROM json_each(?))",
        )
        .bind(batch.dataset.layer.as_str())
        .bind(batch.dataset.dataset.as_str())
        .bind(dates);
        for row in self.rows(query).await? {
            let mut columns = Columns::new(&row, self.database);
            let dt = columns.parsed()?;
            let day = Day {
                is_complete: columns.bool()?,
                number: columns.number()?,
                is_changed: false,
            };
            batch.dates.insert(dt, day);
        }
        Ok(())
    }

    /// All partitions of the dates: completeness belongs to the date.
    async fn load_partitions(&mut self, dates: &str, batch: &mut Batch<'_>) -> Result<()> {
        let text = format!(
            "{PARTITIONS} AND p.layer = ? AND p.dataset = ? \
             AND p.dt IN (SELECT value FROM json_each(?))"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text))
            .bind(batch.dataset.layer.as_str())
            .bind(batch.dataset.dataset.as_str())
            .bind(dates);
        for row in self.rows(query).await? {
            let mut columns = Columns::new(&row, self.database);
            let row = partition_row(&mut columns)?;
            let seq = Some(columns.int()?);
            batch.partitions.insert(row.key, Held::new(row, seq));
        }
        Ok(())
    }

    /// The files of those partitions that the records or their statistics look into.
    async fn load_files(
        &mut self,
        partitions: &BTreeSet<PartitionKey>,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let keys: BTreeMap<i64, PartitionKey> = partitions
            .iter()
            .filter_map(|key| Some((batch.partitions.get(key)?.seq?, *key)))
            .collect();
        if keys.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(
            "SELECT partition_seq, seq, name, row_count, byte_size, blake3, provenance, format \
             FROM partition_file WHERE partition_seq IN (SELECT value FROM json_each(?))",
        )
        .bind(list(keys.keys())?);
        for row in self.rows(query).await? {
            let mut columns = Columns::new(&row, self.database);
            let key = keys.get(&columns.int()?);
            let place = Place::Known(columns.int()?);
            let name = Cow::Owned(columns.text()?);
            let file = HeldFile {
                rows: columns.number()?,
                bytes: columns.number()?,
                blake3: Cow::Owned(columns.text()?),
                provenance: columns.provenance()?,
                format: columns.format()?,
                place,
                stats: None,
            };
            if let Some(held) = key.and_then(|key| batch.partitions.get_mut(key)) {
                held.put_file(name, file);
            }
        }
        Ok(())
    }
}

/// One bound list, however long: SQLite limits variables, not the length of a text.
fn list<T: Serialize>(values: impl Iterator<Item = T>) -> Result<String> {
    serde_json::to_string(&values.collect::<Vec<T>>())
        .map_err(|e| Error::internal("write a list as JSON").caused_by(e))
}
