//! Applying a record: one immediate transaction, guarded by the (position, hash) before it (CAT-2).
//!
//! `column_stats` holds the columns of exactly those files that readers see (CAT-5), as far as the
//! caller handed them in. A partition that leaves their sight loses them, one that comes back gets
//! them with the record that brings it back; so a rebuild, which finds only what is there now, gives
//! the same rows as having followed the log all along (CAT-1).

use std::collections::{BTreeMap, BTreeSet};

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use crate::catalog::key::{file_id, is_visible, parent_id, partition_checksum, partition_id};
use crate::catalog::sqlite::SqliteCatalog;
use crate::catalog::sqlite::row::{Columns, Database, encode_bound, sql_int};
use crate::catalog::{ApplyOutcome, ColumnStats, CommitRow, FileStats};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{
    Action, DataFileSpec, FileFormat, LogPosition, PartitionKey, PartitionState, Provenance, Record,
};
use crate::store::{partition_dir, superseded_dir};
use crate::time::BusinessDate;

/// Rows of one insert into `column_stats`: 9 values each, below SQLite's 32,766 variables.
const STATS_ROWS: usize = 3_000;
const APPLY: &str = "apply a log record to the catalog";

impl SqliteCatalog {
    pub(super) async fn apply_record(
        &self,
        record: &Record,
        hash: &ContentHash,
        stats: &[FileStats],
    ) -> Result<ApplyOutcome> {
        kill_point("sync.before_apply");
        let mut tx = self.begin(APPLY).await?;
        let bound = bound_lake(&mut tx, &self.database).await?;
        if bound.as_deref() != Some(record.lake.as_str()) {
            return Err(
                Error::precondition("the record belongs to another lake than the catalog")
                    .with("catalog", self.database.location())
                    .with("record's lake", &record.lake)
                    .with("catalog's lake", bound.as_deref().unwrap_or("none"))
                    .hint(
                        "check `lake` and `catalog` in lakebed.toml: each lake has its own catalog",
                    ),
            );
        }
        let at = position_of(&mut tx, &self.database, &record.dataset).await?;
        if at.number + 1 != record.number || at.hash != record.previous {
            return Ok(ApplyOutcome::NotNext(at));
        }
        let mut step = Step {
            tx: &mut tx,
            database: &self.database,
            record,
            number: sql_int(record.number)?,
            at: record.at.to_string(),
            touched: BTreeMap::new(),
            dates: BTreeSet::new(),
        };
        step.run(hash, stats).await.map_err(|e| {
            e.with("dataset", &record.dataset)
                .with("record", record.number)
        })?;
        kill_point("sync.in_transaction");
        tx.commit()
            .await
            .map_err(|e| self.database.error(APPLY, e))?;
        kill_point("sync.applied");
        Ok(ApplyOutcome::Applied)
    }
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

/// What is known of a partition while its record is applied.
#[derive(Clone)]
struct Touched {
    id: String,
    state: PartitionState,
    folder: String,
}

/// One record on its way into the rows.
struct Step<'a> {
    tx: &'a mut SqliteConnection,
    database: &'a Database,
    record: &'a Record,
    number: i64,
    at: String,
    touched: BTreeMap<PartitionKey, Touched>,
    /// Dates that surely have their row.
    dates: BTreeSet<BusinessDate>,
}

impl Step<'_> {
    async fn run(&mut self, hash: &ContentHash, stats: &[FileStats]) -> Result<()> {
        let record = self.record;
        for (index, action) in record.actions.iter().enumerate() {
            self.apply_action(index, action).await?;
        }
        let keys: Vec<PartitionKey> = self.touched.keys().copied().collect();
        for key in keys {
            self.refresh_partition(&key).await?;
        }
        self.put_stats(stats).await?;
        self.put_commit(hash).await
    }

    async fn execute(
        &mut self,
        query: sqlx::query::Query<'_, Sqlite, <Sqlite as sqlx::Database>::Arguments>,
    ) -> Result<u64> {
        let done = query.execute(&mut *self.tx).await;
        done.map(|d| d.rows_affected())
            .map_err(|e| self.database.error(APPLY, e))
    }

    async fn fetch_all(
        &mut self,
        query: sqlx::query::Query<'_, Sqlite, <Sqlite as sqlx::Database>::Arguments>,
    ) -> Result<Vec<SqliteRow>> {
        let rows = query.fetch_all(&mut *self.tx).await;
        rows.map_err(|e| self.database.error(APPLY, e))
    }

    async fn apply_action(&mut self, index: usize, action: &Action) -> Result<()> {
        match action {
            Action::AddFile { partition, file } => self.add_file(index, partition, file).await,
            Action::AddPartition { partition, state } => {
                self.begin_partition(partition, *state).await
            }
            Action::RemoveFile { partition, name } => self.remove_file(partition, name).await,
            Action::AddInput { partition, .. } => self.name_date(partition.dt).await,
            Action::AddRejects { dt, .. } | Action::RetryRejects { dt, .. } => {
                self.name_date(*dt).await
            }
            Action::SetState {
                partition,
                from,
                to,
            } => self.set_state(partition, *from, *to).await,
            Action::Complete { dt } => self.set_complete(*dt, true).await,
            Action::Open { dt } => self.set_complete(*dt, false).await,
            // Abandoned attempts and erased inputs bar later commits; they are the fold's business.
            Action::Abandon { .. } | Action::EraseInput { .. } => Ok(()),
        }
    }

    /// The partition as it stands, marked as touched; `None` when it does not exist.
    async fn find_partition(&mut self, key: &PartitionKey) -> Result<Option<Touched>> {
        if let Some(known) = self.touched.get(key) {
            return Ok(Some(known.clone()));
        }
        let id = partition_id(&self.record.dataset, key);
        let row = sqlx::query("SELECT state, base_path FROM dataset_partition_info WHERE id = ?")
            .bind(&id)
            .fetch_optional(&mut *self.tx)
            .await
            .map_err(|e| self.database.error(APPLY, e))?;
        let Some(row) = row else {
            return Ok(None);
        };
        let mut columns = Columns::new(&row, self.database);
        let touched = Touched {
            id,
            state: columns.state()?,
            folder: columns.str()?.to_owned(),
        };
        self.touched.insert(*key, touched.clone());
        Ok(Some(touched))
    }

    async fn get_partition(&mut self, key: &PartitionKey) -> Result<Touched> {
        self.find_partition(key)
            .await?
            .ok_or_else(|| wrong_fold(format!("the record changes `{key}`, which does not exist")))
    }

    /// The folder of a partition that gets its state by this record.
    fn folder(&self, key: &PartitionKey, state: PartitionState) -> String {
        let dataset = &self.record.dataset;
        match state {
            PartitionState::Superseded => superseded_dir(dataset, self.record.number, key),
            PartitionState::Active
            | PartitionState::Switching
            | PartitionState::Retired
            | PartitionState::Purged => partition_dir(dataset, key),
        }
        .to_string()
    }

    /// A partition of a new revision; what it holds follows in the same record.
    async fn begin_partition(&mut self, key: &PartitionKey, state: PartitionState) -> Result<()> {
        self.name_date(key.dt).await?;
        if self.find_partition(key).await?.is_some() {
            return Err(wrong_fold(format!(
                "the record begins `{key}`, which exists"
            )));
        }
        let (format, provenance) = (FileFormat::of_version(key.schema_version), Provenance::Live);
        self.create_partition(key, state, (format, provenance))
            .await
            .map(drop)
    }

    async fn create_partition(
        &mut self,
        key: &PartitionKey,
        state: PartitionState,
        (format, provenance): (FileFormat, Provenance),
    ) -> Result<Touched> {
        let dataset = &self.record.dataset;
        let id = partition_id(dataset, key);
        let folder = self.folder(key, state);
        let query = sqlx::query(
            "INSERT INTO dataset_partition_info (id, layer, source, dataset, dt, schema_version, \
             revision, base_path, file_count, row_count, byte_size, file_format, created_at, \
             updated_at, is_active, state, is_complete, checksum, provenance, \
             parent_partition_id, log_position) \
             SELECT ?, layer, source, dataset, dt, ?, ?, ?, 0, 0, 0, ?, ?, ?, ?, ?, is_complete, \
             '', ?, NULL, ? FROM date_completeness WHERE layer = ? AND dataset = ? AND dt = ?",
        )
        .bind(id.clone())
        .bind(i64::from(key.schema_version))
        .bind(i64::from(key.revision))
        .bind(folder.clone())
        .bind(format.as_str())
        .bind(self.at.clone())
        .bind(self.at.clone())
        .bind(i64::from(is_visible(state)))
        .bind(state.as_str())
        .bind(provenance.as_str())
        .bind(self.number)
        .bind(dataset.layer.as_str())
        .bind(dataset.dataset.as_str())
        .bind(key.dt.to_string());
        self.execute(query).await?;
        let touched = Touched { id, state, folder };
        self.touched.insert(*key, touched.clone());
        Ok(touched)
    }

    async fn add_file(
        &mut self,
        index: usize,
        key: &PartitionKey,
        file: &DataFileSpec,
    ) -> Result<()> {
        self.name_date(key.dt).await?;
        let Touched { id, folder, .. } = match self.find_partition(key).await? {
            Some(known) => known,
            None => {
                let of = (file.format, file.provenance);
                self.create_partition(key, PartitionState::Active, of)
                    .await?
            }
        };
        let bounds = serde_json::to_string(&file.bounds)
            .map_err(|e| Error::internal("write bounds as JSON").caused_by(e))?;
        let query = sqlx::query(
            "INSERT INTO data_file (id, partition_id, name, path, format, row_count, byte_size, \
             blake3, provenance, bounds, attempt, \"commit\", log_position) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(file_id(&id, &file.name))
        .bind(id.clone())
        .bind(&file.name)
        .bind(format!("{folder}/{}", file.name))
        .bind(file.format.as_str())
        .bind(sql_int(file.rows)?)
        .bind(sql_int(file.bytes)?)
        .bind(file.blake3.as_str())
        .bind(file.provenance.as_str())
        .bind(bounds)
        .bind(self.record.attempt_of(index).map(|a| a.as_str()))
        .bind(self.record.commit.as_str())
        .bind(self.number);
        if self.execute(query).await? == 0 {
            return Err(wrong_fold(format!(
                "the record adds the file `{}`, which `{key}` holds already",
                file.name
            )));
        }
        for parent in &file.parents {
            self.add_parent(&id, parent).await?;
        }
        Ok(())
    }

    async fn add_parent(&mut self, id: &str, parent: &str) -> Result<()> {
        let parent_partition = parent_id(parent)?;
        let query = sqlx::query(
            "INSERT INTO partition_parent (partition_id, parent_partition_id, parent, log_position) \
             VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(id)
        .bind(&parent_partition)
        .bind(parent)
        .bind(self.number);
        if self.execute(query).await? == 0 {
            return Ok(());
        }
        let query = sqlx::query(
            "UPDATE dataset_partition_info SET parent_partition_id = ? \
             WHERE id = ? AND parent_partition_id IS NULL",
        )
        .bind(&parent_partition)
        .bind(id);
        self.execute(query).await.map(drop)
    }

    async fn remove_file(&mut self, key: &PartitionKey, name: &str) -> Result<()> {
        let id = self.get_partition(key).await?.id;
        let query = sqlx::query("DELETE FROM data_file WHERE partition_id = ? AND name = ?")
            .bind(&id)
            .bind(name);
        if self.execute(query).await? == 0 {
            return Err(wrong_fold(format!(
                "the record removes the file `{name}`, which `{key}` does not hold"
            )));
        }
        Ok(())
    }

    async fn set_state(
        &mut self,
        key: &PartitionKey,
        from: PartitionState,
        to: PartitionState,
    ) -> Result<()> {
        let Touched { id, state, .. } = self.get_partition(key).await?;
        if state != from || !from.may_become(to) {
            return Err(wrong_fold(format!(
                "the record moves `{key}` from `{from}` to `{to}`, but it is `{state}`"
            )));
        }
        let folder = self.folder(key, to);
        let query = sqlx::query(
            "UPDATE dataset_partition_info SET state = ?, is_active = ?, base_path = ? WHERE id = ?",
        )
        .bind(to.as_str())
        .bind(i64::from(is_visible(to)))
        .bind(folder.clone())
        .bind(&id);
        self.execute(query).await?;
        let query =
            sqlx::query("UPDATE data_file SET path = ? || '/' || name WHERE partition_id = ?")
                .bind(folder.clone())
                .bind(&id);
        self.execute(query).await?;
        if !is_visible(to) {
            let query = sqlx::query(
                "DELETE FROM column_stats WHERE file_seq IN \
                 (SELECT seq FROM data_file WHERE partition_id = ?)",
            )
            .bind(&id);
            self.execute(query).await?;
        }
        let touched = Touched {
            id,
            state: to,
            folder,
        };
        self.touched.insert(*key, touched);
        Ok(())
    }

    /// The date gets its row, open, where it has none.
    async fn name_date(&mut self, dt: BusinessDate) -> Result<()> {
        if !self.dates.insert(dt) {
            return Ok(());
        }
        let dataset = &self.record.dataset;
        let query = sqlx::query(
            "INSERT INTO date_completeness (layer, dataset, dt, source, is_complete, log_position) \
             VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING",
        )
        .bind(dataset.layer.as_str())
        .bind(dataset.dataset.as_str())
        .bind(dt.to_string())
        .bind(dataset.source().to_string())
        .bind(self.number);
        self.execute(query).await.map(drop)
    }

    /// Completeness belongs to the date: every partition of it follows.
    async fn set_complete(&mut self, dt: BusinessDate, complete: bool) -> Result<()> {
        self.name_date(dt).await?;
        let dataset = &self.record.dataset;
        let query = sqlx::query(
            "UPDATE date_completeness SET is_complete = ?, log_position = ? \
             WHERE layer = ? AND dataset = ? AND dt = ?",
        )
        .bind(i64::from(complete))
        .bind(self.number)
        .bind(dataset.layer.as_str())
        .bind(dataset.dataset.as_str())
        .bind(dt.to_string());
        self.execute(query).await?;
        let query = sqlx::query(
            "UPDATE dataset_partition_info SET is_complete = ?, updated_at = ?, log_position = ? \
             WHERE layer = ? AND dataset = ? AND dt = ? AND is_complete <> ?",
        )
        .bind(i64::from(complete))
        .bind(self.at.clone())
        .bind(self.number)
        .bind(dataset.layer.as_str())
        .bind(dataset.dataset.as_str())
        .bind(dt.to_string())
        .bind(i64::from(complete));
        self.execute(query).await.map(drop)
    }

    /// Counts and digests of a touched partition, from its files. A partition without files keeps
    /// the format and the provenance it had.
    async fn refresh_partition(&mut self, key: &PartitionKey) -> Result<()> {
        let Some(id) = self.touched.get(key).map(|t| t.id.clone()) else {
            return Ok(());
        };
        let query = sqlx::query(
            "SELECT row_count, byte_size, blake3, provenance, format FROM data_file \
             WHERE partition_id = ? ORDER BY name",
        )
        .bind(id.clone());
        let files = self.fetch_all(query).await?;
        let (mut rows, mut bytes) = (0_u64, 0_u64);
        let mut hashes = Vec::with_capacity(files.len());
        let (mut provenance, mut format) = (None, None);
        for file in &files {
            let mut columns = Columns::new(file, self.database);
            rows = rows.saturating_add(columns.number()?);
            bytes = bytes.saturating_add(columns.number()?);
            hashes.push(columns.str()?);
            let word = columns.provenance()?.as_str();
            provenance = match provenance {
                None => Some(word),
                Some(p) if p == word => Some(p),
                Some(_) => Some("merged"),
            };
            format = format.or(Some(columns.format()?.as_str()));
        }
        let checksum = partition_checksum(hashes);
        let query = sqlx::query(
            "UPDATE dataset_partition_info SET file_count = ?, row_count = ?, byte_size = ?, \
             checksum = ?, provenance = COALESCE(?, provenance), \
             file_format = COALESCE(?, file_format), updated_at = ?, log_position = ? WHERE id = ?",
        )
        .bind(sql_int(files.len() as u64)?)
        .bind(sql_int(rows)?)
        .bind(sql_int(bytes)?)
        .bind(checksum)
        .bind(provenance)
        .bind(format)
        .bind(self.at.clone())
        .bind(self.number)
        .bind(id);
        self.execute(query).await.map(drop)
    }

    async fn put_stats(&mut self, stats: &[FileStats]) -> Result<()> {
        let mut rows: Vec<(i64, &ColumnStats)> = Vec::new();
        for file in stats {
            let Some(Touched { id, state, .. }) = self.find_partition(&file.partition).await?
            else {
                continue;
            };
            if !is_visible(state) {
                continue;
            }
            let seq = sqlx::query("SELECT seq FROM data_file WHERE partition_id = ? AND name = ?")
                .bind(id)
                .bind(&file.name);
            let Some(row) = self.fetch_all(seq).await?.pop() else {
                continue;
            };
            let seq: i64 = row.try_get(0).map_err(|e| self.database.error(APPLY, e))?;
            rows.extend(file.columns.iter().map(|c| (seq, c)));
        }
        // By key, so that the tree grows at its end.
        rows.sort_by_key(|(seq, c)| (*seq, c.field_id));
        for chunk in rows.chunks(STATS_ROWS) {
            self.insert_stats(chunk).await?;
        }
        Ok(())
    }

    async fn insert_stats(&mut self, rows: &[(i64, &ColumnStats)]) -> Result<()> {
        let mut encoded = Vec::with_capacity(rows.len());
        for (seq, column) in rows {
            let min = column.min.as_ref().map(encode_bound);
            let max = column.max.as_ref().map(encode_bound);
            let kind = min.as_ref().or(max.as_ref()).map(|(kind, _)| *kind);
            if max.as_ref().is_some_and(|(k, _)| Some(*k) != kind) {
                return Err(Error::internal(format!(
                    "store the bounds of `{}`: they are of two kinds",
                    column.name
                )));
            }
            let null_count = column.null_count.map(sql_int).transpose()?;
            encoded.push((*seq, *column, kind, min, max, null_count));
        }
        let mut query = QueryBuilder::<Sqlite>::new(
            "INSERT OR REPLACE INTO column_stats (file_seq, field_id, name, null_count, \
             value_kind, min_value, max_value, min_exact, max_exact) ",
        );
        query.push_values(
            encoded,
            |mut row, (seq, column, kind, min, max, null_count)| {
                row.push_bind(seq)
                    .push_bind(i64::from(column.field_id))
                    .push_bind(column.name.clone())
                    .push_bind(null_count)
                    .push_bind(kind)
                    .push_bind(min.map(|(_, text)| text))
                    .push_bind(max.map(|(_, text)| text))
                    .push_bind(i64::from(column.min_exact))
                    .push_bind(i64::from(column.max_exact));
            },
        );
        self.execute(query.build()).await.map(drop)
    }

    async fn put_commit(&mut self, hash: &ContentHash) -> Result<()> {
        let row = CommitRow::of(self.record, hash);
        let (layer, dataset) = (row.dataset.layer.as_str(), row.dataset.dataset.as_str());
        let query = sqlx::query(
            "INSERT INTO commit_info (layer, dataset, number, hash, \"commit\", operation, at, \
             program, user, run, note, files_added, rows_added, rejected, dt_min, dt_max) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(layer)
        .bind(dataset)
        .bind(self.number)
        .bind(row.hash.as_str())
        .bind(row.commit.as_str())
        .bind(&row.operation)
        .bind(&self.at)
        .bind(&row.program)
        .bind(row.user.as_deref())
        .bind(row.run.as_deref())
        .bind(row.note.as_deref())
        .bind(sql_int(row.files_added)?)
        .bind(sql_int(row.rows_added)?)
        .bind(sql_int(row.rejected)?)
        .bind(row.dt_min.map(|d| d.to_string()))
        .bind(row.dt_max.map(|d| d.to_string()))
        .execute(&mut *self.tx)
        .await;
        query.map_err(|e| self.database.error(APPLY, e))?;
        let query = sqlx::query(
            "INSERT INTO dataset_position (layer, dataset, number, hash) VALUES (?, ?, ?, ?) \
             ON CONFLICT (layer, dataset) DO UPDATE SET number = excluded.number, hash = excluded.hash",
        )
        .bind(layer)
        .bind(dataset)
        .bind(self.number)
        .bind(row.hash.as_str());
        self.execute(query).await.map(drop)
    }
}

/// A record that contradicts the ones before it.
fn wrong_fold(what: String) -> Error {
    Error::corrupt(what)
        .with("invariant", "CAT-1")
        .hint("the log contradicts itself: run `lakebed audit`; the catalog was not changed")
}
