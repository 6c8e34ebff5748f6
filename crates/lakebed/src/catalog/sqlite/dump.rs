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
        "SELECT * FROM dataset_partition_info",
    ),
    (
        "data_file",
        "SELECT id, partition_id, name, path, format, row_count, byte_size, blake3, provenance, \
         bounds, attempt, \"commit\", log_position FROM data_file",
    ),
    (
        "column_stats",
        "SELECT f.id AS file_id, s.field_id, s.name, s.null_count, s.value_kind, s.min_value, \
         s.max_value, s.min_exact, s.max_exact FROM column_stats s JOIN data_file f ON f.seq = s.file_seq",
    ),
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
