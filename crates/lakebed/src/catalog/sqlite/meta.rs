//! The trait itself: short statements stand here, longer ones are in `apply`, `read` and `dump`.

use async_trait::async_trait;
use sqlx::Row;

use crate::catalog::foreign::foreign_catalog;
use crate::catalog::sqlite::SqliteCatalog;
use crate::catalog::sqlite::apply::{bound_lake, position_of};
use crate::catalog::sqlite::row::Columns;
use crate::catalog::{
    ApplyOutcome, Catalog, CommitRow, FileRow, NextRecord, PartitionFilter, PartitionRow,
    SchemaRow, SourceDayRow, SourceRow, Standing, StatsRow,
};
use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef, LakeId};
use crate::spec::{LakeSpec, LogPosition, PublishedSchema};
use crate::time::BusinessDate;

/// Every table that `clear` empties, children before parents.
const CLEARED: [&str; 10] = [
    "DELETE FROM file_stats",
    "DELETE FROM stats_shape",
    "DELETE FROM partition_file",
    "DELETE FROM partition_parent",
    "DELETE FROM partition_mark",
    "DELETE FROM dataset_partition_info",
    "DELETE FROM date_completeness",
    "DELETE FROM schema_version_info",
    "DELETE FROM commit_info",
    "DELETE FROM source_info",
];

#[async_trait]
impl Catalog for SqliteCatalog {
    fn location(&self) -> String {
        self.database.location().to_owned()
    }

    async fn find_lake(&self) -> Result<Option<LakeId>> {
        let mut connection = self.connection().await?;
        let bound = bound_lake(&mut connection, &self.database).await?;
        bound
            .map(|text| {
                text.parse().map_err(|e: Error| {
                    self.database
                        .corrupt(format!(
                            "the catalog holds the lake id `{text}`, which cannot be"
                        ))
                        .caused_by(e)
                })
            })
            .transpose()
    }

    async fn bind(&self, lake: &LakeSpec) -> Result<()> {
        const ACTION: &str = "bind the catalog to the lake";
        let mut tx = self.begin(ACTION).await?;
        match bound_lake(&mut tx, &self.database).await? {
            Some(bound) if bound == lake.lake.as_str() => return Ok(()),
            Some(bound) => {
                return Err(foreign_catalog(
                    self.database.location(),
                    &bound,
                    &lake.lake,
                ));
            }
            None => {}
        }
        sqlx::query(
            "INSERT INTO lake_info (one, lake, format, time_zone, created_at) VALUES (1, ?, ?, ?, ?)",
        )
        .bind(lake.lake.as_str())
        .bind(i64::from(lake.format))
        .bind(&lake.time_zone)
        .bind(lake.created_at.to_string())
        .execute(&mut *tx)
        .await
        .map_err(|e| self.database.error(ACTION, e))?;
        tx.commit()
            .await
            .map_err(|e| self.database.error(ACTION, e))
    }

    async fn position(&self, dataset: &DatasetRef) -> Result<LogPosition> {
        let mut connection = self.connection().await?;
        position_of(&mut connection, &self.database, dataset).await
    }

    async fn standing(&self, dataset: &DatasetRef) -> Result<Standing> {
        self.look(dataset).await
    }

    async fn list_positions(&self) -> Result<Vec<(DatasetRef, LogPosition)>> {
        let rows = sqlx::query(
            "SELECT layer, dataset, number, hash FROM dataset_position ORDER BY layer, dataset",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|e| self.database.error("list the catalog's positions", e))?;
        rows.iter()
            .map(|row| {
                let mut columns = Columns::new(row, &self.database);
                let dataset = columns.dataset()?;
                let position = LogPosition {
                    number: columns.number()?,
                    hash: Some(columns.parsed()?),
                };
                Ok((dataset, position))
            })
            .collect()
    }

    async fn apply_all(&self, records: &[NextRecord<'_>]) -> Result<ApplyOutcome> {
        self.apply_records(records).await
    }

    async fn put_schema(&self, published: &PublishedSchema, hash: &ContentHash) -> Result<()> {
        const ACTION: &str = "put a schema version into the catalog";
        let schema = &published.schema;
        let json = serde_json::to_string(published)
            .map_err(|e| Error::internal("write the schema as JSON").caused_by(e))?;
        let mut tx = self.begin(ACTION).await?;
        let bound = bound_lake(&mut tx, &self.database).await?;
        if bound.as_deref() != Some(published.lake.as_str()) {
            let bound = bound.as_deref().unwrap_or("none");
            return Err(foreign_catalog(
                self.database.location(),
                bound,
                &published.lake,
            ));
        }
        let done = sqlx::query(
            "INSERT INTO schema_version_info (layer, dataset, version, base, note, published_at, \
             hash, schema) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(schema.dataset.layer.as_str())
        .bind(schema.dataset.dataset.as_str())
        .bind(i64::from(schema.version))
        .bind(schema.base.map(i64::from))
        .bind(schema.note.as_deref())
        .bind(published.published_at.to_string())
        .bind(hash.as_str())
        .bind(json)
        .execute(&mut *tx)
        .await
        .map_err(|e| self.database.error(ACTION, e))?;
        if done.rows_affected() == 0 {
            let known: String = sqlx::query_scalar(
                "SELECT hash FROM schema_version_info WHERE layer = ? AND dataset = ? AND version = ?",
            )
            .bind(schema.dataset.layer.as_str())
            .bind(schema.dataset.dataset.as_str())
            .bind(i64::from(schema.version))
            .fetch_one(&mut *tx)
            .await
            .map_err(|e| self.database.error(ACTION, e))?;
            if known != hash.as_str() {
                return Err(Error::corrupt(format!(
                    "version {} of `{}` is another one in the catalog than in the lake",
                    schema.version, schema.dataset
                ))
                .with("catalog", self.database.location())
                .with("hash in the catalog", known)
                .with("hash in the lake", hash)
                .with("invariant", "CAT-3")
                .hint("a published version never changes: compare the file with a backup, then `lakebed catalog rebuild`"));
            }
        }
        tx.commit()
            .await
            .map_err(|e| self.database.error(ACTION, e))
    }

    async fn put_source(&self, source: &SourceRow) -> Result<()> {
        let old_names = serde_json::to_string(&source.old_names)
            .map_err(|e| Error::internal("write names as JSON").caused_by(e))?;
        sqlx::query(
            "INSERT INTO source_info (source, title, class, old_names) VALUES (?, ?, ?, ?) \
             ON CONFLICT (source) DO UPDATE SET title = excluded.title, class = excluded.class, \
             old_names = excluded.old_names",
        )
        .bind(source.source.as_str())
        .bind(source.title.as_deref())
        .bind(&source.class)
        .bind(old_names)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| self.database.error("put a source into the catalog", e))
    }

    async fn clear(&self) -> Result<()> {
        const ACTION: &str = "clear the catalog";
        let mut tx = self.begin(ACTION).await?;
        for statement in CLEARED {
            sqlx::query(statement)
                .execute(&mut *tx)
                .await
                .map_err(|e| self.database.error(ACTION, e))?;
        }
        sqlx::query("DELETE FROM dataset_position")
            .execute(&mut *tx)
            .await
            .map_err(|e| self.database.error(ACTION, e))?;
        tx.commit()
            .await
            .map_err(|e| self.database.error(ACTION, e))
    }

    async fn list_partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRow>> {
        self.partitions(filter).await
    }

    async fn list_contents(&self, dataset: &DatasetRef) -> Result<Vec<(PartitionRow, String)>> {
        self.contents(dataset).await
    }

    async fn list_files(&self, filter: &PartitionFilter) -> Result<Vec<FileRow>> {
        self.files(filter).await
    }

    async fn list_column_stats(
        &self,
        filter: &PartitionFilter,
        field_ids: &[u32],
    ) -> Result<Vec<StatsRow>> {
        self.column_stats(filter, field_ids).await
    }

    async fn list_commits(&self, dataset: Option<&DatasetRef>) -> Result<Vec<CommitRow>> {
        self.commits(dataset).await
    }

    async fn list_schemas(&self, dataset: Option<&DatasetRef>) -> Result<Vec<SchemaRow>> {
        self.schemas(dataset).await
    }

    async fn list_sources(&self) -> Result<Vec<SourceRow>> {
        self.sources().await
    }

    async fn list_source_days(&self, filter: &PartitionFilter) -> Result<Vec<SourceDayRow>> {
        self.source_days(filter).await
    }

    async fn record_access(&self, partition_ids: &[String], day: BusinessDate) -> Result<()> {
        if partition_ids.is_empty() {
            return Ok(());
        }
        let ids = serde_json::to_string(partition_ids)
            .map_err(|e| Error::internal("write ids as JSON").caused_by(e))?;
        // Grouped: an id may be handed in twice, as it may be read twice. `WHERE true` keeps the
        // parser from taking ON for a join.
        sqlx::query(
            "INSERT INTO partition_access (partition_id, day, reads) \
             SELECT value, ?, count(*) FROM json_each(?) WHERE true GROUP BY value \
             ON CONFLICT (partition_id, day) DO UPDATE SET reads = reads + excluded.reads",
        )
        .bind(day.to_string())
        .bind(ids)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| self.database.error("count a read of partitions", e))
    }

    async fn dump(&self) -> Result<String> {
        self.dump_rows().await
    }
}

impl SqliteCatalog {
    async fn connection(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>> {
        self.pool
            .acquire()
            .await
            .map_err(|e| self.database.error("read the catalog", e))
    }

    /// How often partitions were read, by (partition id, day).
    pub async fn list_access(&self) -> Result<Vec<(String, BusinessDate, u64)>> {
        let rows = sqlx::query(
            "SELECT partition_id, day, reads FROM partition_access ORDER BY partition_id, day",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|e| self.database.error("list the reads", e))?;
        rows.iter()
            .map(|row| {
                debug_assert_eq!(row.len(), 3);
                let mut columns = Columns::new(row, &self.database);
                Ok((columns.text()?, columns.parsed()?, columns.number()?))
            })
            .collect()
    }
}
