//! Filtered reads. Each is one statement that walks the unique index of the partitions (layer,
//! dataset, dt, schema_version, revision) and, inside it, the index of their files; nothing is
//! sorted afterwards and no table is read whole. Order of datasets is that of their text.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Sqlite};

use crate::catalog::packed::Shape;
use crate::catalog::sqlite::SqliteCatalog;
use crate::catalog::sqlite::row::Columns;
use crate::catalog::{
    CommitRow, FileRow, PartitionFilter, PartitionRow, SchemaRow, SourceDayRow, SourceRow,
    Standing, StatsRow,
};
use crate::error::Result;
use crate::name::DatasetRef;
use crate::spec::{LogPosition, PartitionKey};

pub(super) const PARTITIONS: &str = "SELECT p.layer, p.dataset, p.dt, p.schema_version, p.revision, p.id, \
    p.source, p.base_path, p.file_count, p.row_count, p.byte_size, p.file_format, p.created_at, \
    p.updated_at, p.is_active, p.state, p.is_complete, p.checksum, p.provenance, \
    p.parent_partition_id, p.log_position, p.seq FROM dataset_partition_info p WHERE 1";

const CONTENTS: &str = "SELECT p.layer, p.dataset, p.dt, p.schema_version, p.revision, p.id, \
    p.source, p.base_path, p.file_count, p.row_count, p.byte_size, p.file_format, p.created_at, \
    p.updated_at, p.is_active, p.state, p.is_complete, p.checksum, p.provenance, \
    p.parent_partition_id, p.log_position, \
    (SELECT group_concat(f.name || ' ' || f.blake3 || ' ' || f.row_count, char(10)) \
     FROM partition_file f WHERE f.partition_seq = p.seq) FROM dataset_partition_info p WHERE 1";

// CROSS JOIN keeps the order of the loops: partitions outside, files inside.
const FILES: &str = "SELECT p.layer, p.dataset, p.dt, p.schema_version, p.revision, f.id, \
    p.base_path || '/' || f.name, f.name, f.format, f.row_count, f.byte_size, f.blake3, \
    f.provenance, f.attempt, f.\"commit\", f.log_position FROM dataset_partition_info p \
    CROSS JOIN partition_file f ON f.partition_seq = p.seq WHERE 1";

const STATS: &str = "SELECT f.id, s.shape_seq, s.bounds, \
    (SELECT h.columns FROM stats_shape h WHERE h.seq = s.shape_seq) FROM dataset_partition_info p \
    CROSS JOIN partition_file f ON f.partition_seq = p.seq \
    CROSS JOIN file_stats s ON s.file_seq = f.seq WHERE 1";

const BY_PARTITION: &str = " ORDER BY p.layer, p.dataset, p.dt, p.schema_version, p.revision";
const BY_FILE: &str = ", f.log_position, f.name";

type Builder = QueryBuilder<Sqlite>;

/// Adds the conditions on dataset and date of the table `alias`.
fn push_place(query: &mut Builder, filter: &PartitionFilter, alias: &str) {
    if let Some(dataset) = &filter.dataset {
        push_dataset(query, dataset, alias);
    }
    if let Some(dt) = filter.dt_from {
        query.push(format_args!(" AND {alias}.dt >= "));
        query.push_bind(dt.to_string());
    }
    if let Some(dt) = filter.dt_to {
        query.push(format_args!(" AND {alias}.dt <= "));
        query.push_bind(dt.to_string());
    }
}

fn push_dataset(query: &mut Builder, dataset: &DatasetRef, alias: &str) {
    query.push(format_args!(" AND {alias}.layer = "));
    query.push_bind(dataset.layer.as_str());
    query.push(format_args!(" AND {alias}.dataset = "));
    query.push_bind(dataset.dataset.to_string());
}

/// Adds the conditions on schema version and state of `p`.
fn push_kind(query: &mut Builder, filter: &PartitionFilter) {
    if !filter.schema_versions.is_empty() {
        push_in(query, "p.schema_version", &filter.schema_versions);
    }
    if !filter.all_states {
        query.push(" AND p.is_active = 1");
    }
}

fn push_in(query: &mut Builder, column: &str, numbers: &[u32]) {
    // One bound list, however long: SQLite limits variables, not the length of a text.
    let list = format!(
        "[{}]",
        numbers
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(",")
    );
    query.push(format_args!(
        " AND {column} IN (SELECT value FROM json_each("
    ));
    query.push_bind(list);
    query.push("))");
}

/// The query for partitions, for their files (`FILES`) or for the statistics of these (`STATS`).
fn filtered(select: &str, filter: &PartitionFilter) -> Builder {
    let mut query = Builder::new(select);
    push_place(&mut query, filter, "p");
    push_kind(&mut query, filter);
    query
}

fn stats_query(filter: &PartitionFilter) -> Builder {
    let mut query = filtered(STATS, filter);
    query.push(BY_PARTITION).push(BY_FILE);
    query
}

/// Columns `layer`, `dataset`, `dt`, `schema_version`, `revision`.
fn place(c: &mut Columns<'_>) -> Result<(DatasetRef, PartitionKey)> {
    let dataset = c.dataset()?;
    let key = PartitionKey {
        dt: c.parsed()?,
        schema_version: c.number()?,
        revision: c.number()?,
    };
    Ok((dataset, key))
}

pub(super) fn partition_row(c: &mut Columns<'_>) -> Result<PartitionRow> {
    let (dataset, key) = place(c)?;
    Ok(PartitionRow {
        id: c.text()?,
        dataset,
        source: c.parsed()?,
        key,
        base_path: c.text()?,
        file_count: c.number()?,
        row_count: c.number()?,
        byte_size: c.number()?,
        file_format: c.format()?,
        created_at: c.parsed()?,
        updated_at: c.parsed()?,
        is_active: c.bool()?,
        state: c.state()?,
        is_complete: c.bool()?,
        checksum: c.text()?,
        provenance: c.text()?,
        parent_partition_id: c.text_opt()?,
        log_position: c.number()?,
    })
}

fn file_row(c: &mut Columns<'_>) -> Result<FileRow> {
    let (dataset, key) = place(c)?;
    Ok(FileRow {
        id: c.text()?,
        dataset,
        key,
        path: c.text()?,
        name: c.text()?,
        format: c.format()?,
        row_count: c.number()?,
        byte_size: c.number()?,
        blake3: c.parsed()?,
        provenance: c.provenance()?,
        attempt: c.text_opt()?,
        commit: c.parsed()?,
        log_position: c.number()?,
    })
}

fn commit_row(c: &mut Columns<'_>) -> Result<CommitRow> {
    Ok(CommitRow {
        dataset: c.dataset()?,
        number: c.number()?,
        hash: c.parsed()?,
        commit: c.parsed()?,
        operation: c.text()?,
        at: c.parsed()?,
        program: c.text()?,
        user: c.text_opt()?,
        run: c.text_opt()?,
        note: c.text_opt()?,
        files_added: c.number()?,
        rows_added: c.number()?,
        rejected: c.number()?,
        dt_min: c.parsed_opt()?,
        dt_max: c.parsed_opt()?,
    })
}

fn schema_row(c: &mut Columns<'_>) -> Result<SchemaRow> {
    Ok(SchemaRow {
        dataset: c.dataset()?,
        version: c.number()?,
        base: c.number_opt()?,
        note: c.text_opt()?,
        published_at: c.parsed()?,
        hash: c.parsed()?,
        schema: c.text()?,
    })
}

fn source_day_row(c: &mut Columns<'_>) -> Result<SourceDayRow> {
    Ok(SourceDayRow {
        source: c.parsed()?,
        dataset: c.dataset()?,
        dt: c.parsed()?,
        row_count: c.number()?,
        file_count: c.number()?,
        byte_size: c.number()?,
        is_complete: c.bool()?,
    })
}

impl SqliteCatalog {
    async fn rows<T>(
        &self,
        action: &str,
        mut query: Builder,
        read: impl Fn(&mut Columns<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows: Vec<SqliteRow> = query
            .build()
            .fetch_all(&self.pool)
            .await
            .map_err(|e| self.database.error(action, e))?;
        rows.iter()
            .map(|row| read(&mut Columns::new(row, &self.database)))
            .collect()
    }

    pub(super) async fn partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRow>> {
        let mut query = filtered(PARTITIONS, filter);
        query.push(BY_PARTITION);
        self.rows("list the partitions", query, partition_row).await
    }

    pub(super) async fn contents(
        &self,
        dataset: &DatasetRef,
    ) -> Result<Vec<(PartitionRow, String)>> {
        let mut query = Builder::new(CONTENTS);
        push_dataset(&mut query, dataset, "p");
        query.push(BY_PARTITION);
        self.rows("list the files of the partitions", query, |c| {
            Ok((partition_row(c)?, c.text_opt()?.unwrap_or_default()))
        })
        .await
    }

    pub(super) async fn files(&self, filter: &PartitionFilter) -> Result<Vec<FileRow>> {
        let mut query = filtered(FILES, filter);
        query.push(BY_PARTITION).push(BY_FILE);
        self.rows("list the files", query, file_row).await
    }

    pub(super) async fn column_stats(
        &self,
        filter: &PartitionFilter,
        field_ids: &[u32],
    ) -> Result<Vec<StatsRow>> {
        let mut query = stats_query(filter);
        let rows = query.build().fetch_all(&self.pool).await;
        let rows = rows.map_err(|e| self.database.error("list the column statistics", e))?;
        let damaged = |text: &str| {
            self.database.corrupt(format!(
                "the catalog holds the column statistics `{text}`, which cannot be"
            ))
        };
        let mut shapes: BTreeMap<i64, Shape> = BTreeMap::new();
        let mut found = Vec::new();
        for row in &rows {
            let mut columns = Columns::new(row, &self.database);
            let (file_id, shape) = (columns.str()?, columns.int()?);
            let (values, text) = (columns.str()?, columns.str()?);
            let shape = match shapes.entry(shape) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Shape::read(text).ok_or_else(|| damaged(text))?),
            };
            let columns = shape.unpack(values, field_ids).map_err(damaged)?;
            found.extend(columns.into_iter().map(|stats| StatsRow {
                file_id: file_id.to_owned(),
                stats,
            }));
        }
        Ok(found)
    }

    pub(super) async fn commits(&self, dataset: Option<&DatasetRef>) -> Result<Vec<CommitRow>> {
        let mut query = Builder::new(
            "SELECT c.layer, c.dataset, c.number, c.hash, c.\"commit\", c.operation, c.at, \
             c.program, c.user, c.run, c.note, c.files_added, c.rows_added, c.rejected, \
             c.dt_min, c.dt_max FROM commit_info c WHERE 1",
        );
        if let Some(dataset) = dataset {
            push_dataset(&mut query, dataset, "c");
        }
        query.push(" ORDER BY c.layer, c.dataset, c.number");
        self.rows("list the commits", query, commit_row).await
    }

    pub(super) async fn schemas(&self, dataset: Option<&DatasetRef>) -> Result<Vec<SchemaRow>> {
        let mut query = Builder::new(
            "SELECT s.layer, s.dataset, s.version, s.base, s.note, s.published_at, s.hash, \
             s.schema FROM schema_version_info s WHERE 1",
        );
        if let Some(dataset) = dataset {
            push_dataset(&mut query, dataset, "s");
        }
        query.push(" ORDER BY s.layer, s.dataset, s.version");
        self.rows("list the schemas", query, schema_row).await
    }

    /// A row for each version, or one without; lake and position stand in all of them.
    pub(super) async fn look(&self, dataset: &DatasetRef) -> Result<Standing> {
        let mut query = Builder::new(
            "SELECT l.lake, d.number, d.hash, s.version, s.layer, s.dataset, s.version, s.base, s.note, \
             s.published_at, s.hash, s.schema FROM (SELECT 1) \
             LEFT JOIN lake_info l ON l.one = 1 LEFT JOIN dataset_position d ON 1",
        );
        push_dataset(&mut query, dataset, "d");
        query.push(" LEFT JOIN schema_version_info s ON 1");
        push_dataset(&mut query, dataset, "s");
        query.push(" ORDER BY s.version");
        let mut standing = Standing {
            lake: None,
            position: LogPosition::START,
            schemas: Vec::new(),
        };
        let rows = query.build().fetch_all(&self.pool).await;
        for row in &rows.map_err(|e| self.database.error("read where the catalog stands", e))? {
            let mut columns = Columns::new(row, &self.database);
            standing.lake = columns.parsed_opt()?;
            let (number, hash) = (columns.number_opt()?, columns.parsed_opt()?);
            if let Some(number) = number {
                standing.position = LogPosition { number, hash };
            }
            if columns.number_opt::<u32>()?.is_some() {
                standing.schemas.push(schema_row(&mut columns)?);
            }
        }
        Ok(standing)
    }

    pub(super) async fn sources(&self) -> Result<Vec<SourceRow>> {
        let query =
            Builder::new("SELECT source, title, class, old_names FROM source_info ORDER BY source");
        self.rows("list the sources", query, |c| {
            Ok(SourceRow {
                source: c.parsed()?,
                title: c.text_opt()?,
                class: c.text()?,
                old_names: serde_json::from_str(c.str()?).map_err(|e| {
                    self.database
                        .corrupt("the catalog holds a list of names that is not JSON")
                        .caused_by(e)
                })?,
            })
        })
        .await
    }

    /// As the view `source_day`, with the filter inside the join.
    pub(super) async fn source_days(&self, filter: &PartitionFilter) -> Result<Vec<SourceDayRow>> {
        let mut query = Builder::new(
            "SELECT d.source, d.layer, d.dataset, d.dt, COALESCE(SUM(p.row_count), 0), \
             COALESCE(SUM(p.file_count), 0), COALESCE(SUM(p.byte_size), 0), d.is_complete \
             FROM date_completeness d LEFT JOIN dataset_partition_info p \
             ON p.layer = d.layer AND p.dataset = d.dataset AND p.dt = d.dt",
        );
        push_kind(&mut query, filter);
        query.push(" WHERE 1");
        push_place(&mut query, filter, "d");
        query.push(" GROUP BY d.layer, d.dataset, d.dt");
        if !filter.schema_versions.is_empty() {
            query.push(" HAVING count(p.id) > 0");
        }
        query.push(" ORDER BY d.layer, d.dataset, d.dt");
        self.rows("list the days", query, source_day_row).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn plan(catalog: &SqliteCatalog, query: &Builder) -> String {
        let sql = format!("EXPLAIN QUERY PLAN {}", query.sql().as_str());
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_all(&catalog.pool)
            .await
            .unwrap();
        rows.iter()
            .map(|r| sqlx::Row::get::<String, _>(r, 3) + "\n")
            .collect()
    }

    #[tokio::test]
    async fn reads_walk_indexes_and_sort_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(dir.path().join("c.db")).await.unwrap();
        let filter = PartitionFilter {
            dataset: Some("clean/weibo".parse().unwrap()),
            dt_from: Some("2024-05-20".parse().unwrap()),
            dt_to: Some("2024-05-21".parse().unwrap()),
            ..PartitionFilter::default()
        };
        let mut files = filtered(FILES, &filter);
        files.push(BY_PARTITION).push(BY_FILE);
        let mut partitions = filtered(PARTITIONS, &filter);
        partitions.push(BY_PARTITION);
        for query in [partitions, files, stats_query(&filter)] {
            let plan = plan(&catalog, &query).await;
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            assert!(
                plan.contains("(layer=? AND dataset=? AND dt>? AND dt<?)"),
                "{plan}"
            );
            for line in plan.lines().filter(|l| l.contains("SCAN")) {
                assert!(line.contains("json_each"), "{plan}");
            }
        }
    }
}
