//! The canonical dump: every row of every table that a rebuild brings back, as sorted JSON lines.
//!
//! Each line is `{"table": ..., columns in the order below}`. What is local to one database (`seq`,
//! migrations, `partition_access`) is left out, so two catalogs of one lake have equal dumps.

use serde_json::{Map, Value};
use sqlx::{Row, TypeInfo, ValueRef};

use crate::catalog::sqlite::SqliteCatalog;
use crate::error::{Error, Result};

/// Table and the query of its rows.
pub(super) const TABLES: [(&str, &str); 11] = [
    (
        "lake_info",
        "SELECT lake, format, time_zone, created_at FROM lake_info",
    ),
    ("dataset_position", "SELECT * FROM dataset_position"),
    ("source_info", "SELECT * FROM source_info"),
    ("date_completeness", "SELECT * FROM date_completeness"),
    (
        "dataset_partition_info",
        "SELECT id, layer, source, dataset, dt, schema_version, revision, base_path, file_count, \
         row_count, byte_size, file_format, created_at, updated_at, is_active, state, is_complete, \
         checksum, provenance, parent_partition_id, log_position FROM dataset_partition_info",
    ),
    ("data_file", "SELECT * FROM data_file"),
    ("column_stats", "SELECT * FROM column_stats"),
    ("partition_parent", "SELECT * FROM partition_parent"),
    ("schema_version_info", "SELECT * FROM schema_version_info"),
    ("commit_info", "SELECT * FROM commit_info"),
    ("partition_mark", "SELECT * FROM partition_mark"),
];

impl SqliteCatalog {
    pub(super) async fn dump_rows(&self) -> Result<String> {
        let fail = |e| self.database.error("dump the catalog", e);
        // One transaction: all tables as of one moment.
        let mut tx = self.pool.begin().await.map_err(fail)?;
        let mut lines = Vec::new();
        for (table, query) in TABLES {
            for row in sqlx::query(query).fetch_all(&mut *tx).await.map_err(fail)? {
                let mut line = Map::new();
                line.insert("table".to_owned(), Value::from(table));
                for column in row.columns() {
                    let at = sqlx::Column::ordinal(column);
                    let raw = row.try_get_raw(at).map_err(fail)?;
                    let value = if raw.is_null() {
                        Value::Null
                    } else if raw.type_info().name() == "INTEGER" {
                        Value::from(row.try_get::<i64, _>(at).map_err(fail)?)
                    } else {
                        Value::from(row.try_get::<String, _>(at).map_err(fail)?)
                    };
                    line.insert(sqlx::Column::name(column).to_owned(), value);
                }
                let line = serde_json::to_string(&line)
                    .map_err(|e| Error::internal("write a row as JSON").caused_by(e))?;
                lines.push(line + "\n");
            }
        }
        lines.sort_unstable();
        Ok(lines.concat())
    }
}
