//! The system tables: rows of the catalog as SQL tables, made when a query names one.
//!
//! | table | rows |
//! | --- | --- |
//! | `lake.partitions` | `dataset_partition_info`: partitions in every state |
//! | `lake.files` | data files that readers see |
//! | `lake.commits` | commits |
//! | `lake.schemas` | published schema versions |
//! | `lake.source_day` | what readers see per source, dataset and day, and whether it is complete |
//! | `lake.requests`, `lake.runs`, `lake.hosts` | the request queue: see [`crate::queue_tables`] |

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use lakebed::catalog::{
    Catalog, CommitRow, FileRow, PartitionFilter, PartitionRow, SchemaRow, SourceDayRow,
};
use lakebed::name::DatasetRef;
use lakebed::time::{BusinessDate, Instant};
use lakebed::{Error, Result};

use crate::error::convert;
use crate::queue_tables::{QueueTables, host_columns, request_columns, run_columns};

/// A table of the schema `lake`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SystemTable {
    Partitions,
    Files,
    Commits,
    Schemas,
    SourceDay,
    Requests,
    Runs,
    Hosts,
}

impl SystemTable {
    /// Every system table.
    pub(crate) const ALL: [Self; 8] = [
        Self::Partitions,
        Self::Files,
        Self::Commits,
        Self::Schemas,
        Self::SourceDay,
        Self::Requests,
        Self::Runs,
        Self::Hosts,
    ];

    /// Its name within the schema.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Partitions => "partitions",
            Self::Files => "files",
            Self::Commits => "commits",
            Self::Schemas => "schemas",
            Self::SourceDay => "source_day",
            Self::Requests => "requests",
            Self::Runs => "runs",
            Self::Hosts => "hosts",
        }
    }

    /// The names of its columns.
    pub(crate) fn column_names(self) -> Vec<String> {
        let columns = self.no_rows().into_iter();
        columns.map(|c| c.0.to_owned()).collect()
    }

    /// The table without its rows.
    pub(crate) fn empty(self) -> Result<Arc<dyn TableProvider>> {
        table_of(self.no_rows())
    }

    fn no_rows(self) -> Columns {
        match self {
            Self::Partitions => partitions(&[]),
            Self::Files => files(&[]),
            Self::Commits => commits(&[]),
            Self::Schemas => schemas(&[]),
            Self::SourceDay => source_days(&[]),
            Self::Requests => request_columns(&[]),
            Self::Runs => run_columns(&[]),
            Self::Hosts => host_columns(&[]),
        }
    }

    /// Whether its rows are the queue's, and not the catalog's.
    pub(crate) fn is_of_queue(self) -> bool {
        matches!(self, Self::Requests | Self::Runs | Self::Hosts)
    }

    /// Its rows, as the catalog or the queue has them now.
    pub(crate) async fn load(
        self,
        catalog: &dyn Catalog,
        queue: &QueueTables,
    ) -> Result<Arc<dyn TableProvider>> {
        let every = PartitionFilter::default();
        table_of(match self {
            Self::Partitions => {
                let filter = PartitionFilter {
                    all_states: true,
                    ..every
                };
                partitions(&catalog.list_partitions(&filter).await?)
            }
            Self::Files => files(&catalog.list_files(&every).await?),
            Self::Commits => commits(&catalog.list_commits(None).await?),
            Self::Schemas => schemas(&catalog.list_schemas(None).await?),
            Self::SourceDay => source_days(&catalog.list_source_days(&every).await?),
            Self::Requests => return queue.requests().await,
            Self::Runs => return queue.runs().await,
            Self::Hosts => return queue.hosts().await,
        })
    }
}

/// The columns as a batch.
pub(crate) fn batch_of(columns: Columns) -> Result<RecordBatch, DataFusionError> {
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// The columns as a table.
pub(crate) fn table_of(columns: Columns) -> Result<Arc<dyn TableProvider>> {
    let made = batch_of(columns).and_then(|b| MemTable::try_new(b.schema(), vec![vec![b]]));
    Ok(Arc::new(made.map_err(|e| convert(&e))?))
}

impl FromStr for SystemTable {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|t| t.as_str() == text)
            .ok_or_else(|| Error::not_found(format!("there is no system table `{text}`")))
    }
}

/// Name, values, and whether they may be NULL.
pub(crate) type Columns = Vec<(&'static str, ArrayRef, bool)>;

pub(crate) fn text<R, S: AsRef<str>>(
    name: &'static str,
    rows: &[R],
    of: impl Fn(&R) -> S,
) -> Columns {
    let array = StringArray::from_iter_values(rows.iter().map(of));
    vec![(name, Arc::new(array), false)]
}

pub(crate) fn maybe<'a, R>(
    name: &'static str,
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<&'a str>,
) -> Columns {
    let array: StringArray = rows.iter().map(of).collect();
    vec![(name, Arc::new(array), true)]
}

pub(crate) fn number<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> u64) -> Columns {
    let values = rows
        .iter()
        .map(|r| i64::try_from(of(r)).unwrap_or(i64::MAX));
    vec![(name, Arc::new(Int64Array::from_iter_values(values)), false)]
}

fn flag<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> bool) -> Columns {
    let array: BooleanArray = rows.iter().map(|r| Some(of(r))).collect();
    vec![(name, Arc::new(array), false)]
}

pub(crate) fn date<R>(
    name: &'static str,
    rows: &[R],
    of: impl Fn(&R) -> Option<BusinessDate>,
) -> Columns {
    let array: Date32Array = rows.iter().map(|r| of(r).map(BusinessDate::days)).collect();
    vec![(name, Arc::new(array), true)]
}

pub(crate) fn instant<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> Instant) -> Columns {
    let array = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| of(r).micros()));
    vec![(name, Arc::new(array.with_timezone("UTC")), false)]
}

fn dataset<R>(rows: &[R], of: impl Fn(&R) -> &DatasetRef) -> Columns {
    let mut columns = text("layer", rows, |r| of(r).layer.as_str());
    columns.extend(text("dataset", rows, |r| of(r).dataset.as_str().to_owned()));
    columns
}

fn partitions(rows: &[PartitionRow]) -> Columns {
    let mut names = dataset(rows, |r| &r.dataset).into_iter();
    [
        text("id", rows, |r| r.id.clone()),
        names.next().into_iter().collect(),
        text("source", rows, |r| r.source.as_str().to_owned()),
        names.collect(),
        date("dt", rows, |r| Some(r.key.dt)),
        number("schema_version", rows, |r| r.key.schema_version.into()),
        number("revision", rows, |r| r.key.revision.into()),
        text("base_path", rows, |r| r.base_path.clone()),
        number("file_count", rows, |r| r.file_count),
        number("row_count", rows, |r| r.row_count),
        number("byte_size", rows, |r| r.byte_size),
        text("file_format", rows, |r| r.file_format.as_str()),
        instant("created_at", rows, |r| r.created_at),
        instant("updated_at", rows, |r| r.updated_at),
        flag("is_active", rows, |r| r.is_active),
        text("state", rows, |r| r.state.as_str()),
        flag("is_complete", rows, |r| r.is_complete),
        text("checksum", rows, |r| r.checksum.clone()),
        text("provenance", rows, |r| r.provenance.clone()),
        maybe("parent_partition_id", rows, |r| {
            r.parent_partition_id.as_deref()
        }),
        number("log_position", rows, |r| r.log_position),
    ]
    .concat()
}

fn files(rows: &[FileRow]) -> Columns {
    [
        text("id", rows, |r| r.id.clone()),
        dataset(rows, |r| &r.dataset),
        date("dt", rows, |r| Some(r.key.dt)),
        number("schema_version", rows, |r| r.key.schema_version.into()),
        number("revision", rows, |r| r.key.revision.into()),
        text("path", rows, |r| r.path.clone()),
        text("name", rows, |r| r.name.clone()),
        text("format", rows, |r| r.format.as_str()),
        number("row_count", rows, |r| r.row_count),
        number("byte_size", rows, |r| r.byte_size),
        text("blake3", rows, |r| r.blake3.as_str().to_owned()),
        text("provenance", rows, |r| r.provenance.as_str()),
        maybe("attempt", rows, |r| r.attempt.as_deref()),
        text("commit", rows, |r| r.commit.as_str().to_owned()),
        number("log_position", rows, |r| r.log_position),
    ]
    .concat()
}

fn commits(rows: &[CommitRow]) -> Columns {
    [
        dataset(rows, |r| &r.dataset),
        number("number", rows, |r| r.number),
        text("hash", rows, |r| r.hash.as_str().to_owned()),
        text("commit", rows, |r| r.commit.as_str().to_owned()),
        text("operation", rows, |r| r.operation.clone()),
        instant("at", rows, |r| r.at),
        text("program", rows, |r| r.program.clone()),
        maybe("user", rows, |r| r.user.as_deref()),
        maybe("run", rows, |r| r.run.as_deref()),
        maybe("note", rows, |r| r.note.as_deref()),
        number("files_added", rows, |r| r.files_added),
        number("rows_added", rows, |r| r.rows_added),
        number("rejected", rows, |r| r.rejected),
        date("dt_min", rows, |r| r.dt_min),
        date("dt_max", rows, |r| r.dt_max),
    ]
    .concat()
}

fn schemas(rows: &[SchemaRow]) -> Columns {
    let base: Int64Array = rows.iter().map(|r| r.base.map(i64::from)).collect();
    [
        dataset(rows, |r| &r.dataset),
        number("version", rows, |r| r.version.into()),
        vec![("base", Arc::new(base) as ArrayRef, true)],
        maybe("note", rows, |r| r.note.as_deref()),
        instant("published_at", rows, |r| r.published_at),
        text("hash", rows, |r| r.hash.as_str().to_owned()),
        text("schema", rows, |r| r.schema.clone()),
    ]
    .concat()
}

fn source_days(rows: &[SourceDayRow]) -> Columns {
    [
        text("source", rows, |r| r.source.as_str().to_owned()),
        dataset(rows, |r| &r.dataset),
        date("dt", rows, |r| Some(r.dt)),
        number("row_count", rows, |r| r.row_count),
        number("file_count", rows, |r| r.file_count),
        number("byte_size", rows, |r| r.byte_size),
        flag("is_complete", rows, |r| r.is_complete),
    ]
    .concat()
}
