//! The SQL catalog: an index over the logs that can be deleted and rebuilt at any moment.
//!
//! CAT-1: applying records 1..n gives the same rows, whoever applies them, in one go or in many.
//! CAT-2: a record is applied in one transaction, alone or with those next to it, guarded by the
//! (position, hash) before the first.
//! CAT-3: a catalog that is ahead of its log, or whose hash is not the log's, is refused, not mended.
//! CAT-4: migrations are numbered, append-only and additive; a database of a newer line is refused.
//! CAT-5: column statistics are those of the files that readers see, and of no others.
//!
//! The trait is what SQLite, PostgreSQL and MySQL do alike; `suite` is its one set of tests.

mod ahead;
mod bound;
mod commit;
mod footer;
mod foreign;
mod from_state;
mod key;
mod packed;
mod rebuild;
mod schemas;
mod sqlite;
mod stats;
mod status;
#[cfg(test)]
mod suite;
mod sync;
#[cfg(test)]
mod testlog;
mod thrift;
mod wanted;

use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

use crate::error::Result;
use crate::name::{CommitId, ContentHash, DatasetRef, LakeId, SourceName};
use crate::spec::{
    FileFormat, LakeSpec, LogPosition, PartitionKey, PartitionState, Provenance, PublishedSchema,
    Record,
};
use crate::time::{BusinessDate, Instant};

pub use from_state::visible_files;
pub use key::{file_id, is_visible, partition_checksum, partition_id};
pub use packed::PackedStats;
pub use rebuild::rebuild;
pub use schemas::sync_schemas;
pub use sqlite::SqliteCatalog;
pub use stats::{LastSchema, read_footer_stats};
pub use status::{DatasetStatus, SyncState, is_fresh, status};
pub use sync::{SyncReport, check_past, follow, sync, sync_all};

/// A record on its way into the catalog.
#[derive(Debug, Clone, Copy)]
pub struct NextRecord<'a> {
    /// The record.
    pub record: &'a Record,
    /// BLAKE3 of its bytes.
    pub hash: &'a ContentHash,
    /// Statistics of the files that it adds or brings back into the sight of readers.
    pub stats: &'a [FileStats],
}

/// Answer of [`Catalog::apply`] and [`Catalog::apply_all`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum ApplyOutcome {
    /// Applied by this call, all that was handed in.
    Applied,
    /// The first record is not the catalog's next one: where it stands now. Nothing was applied.
    NotNext(LogPosition),
}

/// A bound of a column, by physical class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StatValue {
    /// int, bool (0 or 1), date (days since 1970-01-01), timestamp (microseconds since the epoch).
    Int(i64),
    /// float.
    Float(f64),
    /// decimal: the unscaled value.
    Decimal(i128),
    /// string, enum, json.
    Text(String),
}

/// Statistics of one column of one data file, from its Parquet footer.
///
/// Bounds cover every value except NaN: a float column may hold NaN whatever its bounds say, and
/// its bounds are never exact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnStats {
    /// Field id of a top-level column.
    pub field_id: u32,
    /// Column name in the file.
    pub name: String,
    /// Rows that are NULL; `None` = unknown.
    pub null_count: Option<u64>,
    /// Smallest value; `None` = unknown or all NULL. NaN is never a bound.
    pub min: Option<StatValue>,
    /// Largest value.
    pub max: Option<StatValue>,
    /// Whether `min` is a value of the column and not only below all of them.
    pub min_exact: bool,
    /// Whether `max` is a value of the column and not only above all of them.
    pub max_exact: bool,
}

/// All column statistics of one data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStats {
    /// The partition.
    pub partition: PartitionKey,
    /// The file's name.
    pub name: String,
    /// Those of each column that has any.
    pub columns: PackedStats,
}

/// Which partitions or files are wanted. Every part that is absent or empty lets all through.
#[derive(Debug, Clone, Default)]
pub struct PartitionFilter {
    /// One dataset.
    pub dataset: Option<DatasetRef>,
    /// First business date.
    pub dt_from: Option<BusinessDate>,
    /// Last business date, included.
    pub dt_to: Option<BusinessDate>,
    /// Schema versions.
    pub schema_versions: Vec<u32>,
    /// Whether partitions that readers do not see are wanted too.
    pub all_states: bool,
}

/// A row of `dataset_partition_info`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionRow {
    /// Stable hash of (layer, dataset, dt, schema_version, revision).
    pub id: String,
    /// The dataset.
    pub dataset: DatasetRef,
    /// The source.
    pub source: SourceName,
    /// The partition.
    #[serde(flatten)]
    pub key: PartitionKey,
    /// Folder within the lake.
    pub base_path: String,
    /// Data files.
    pub file_count: u64,
    /// Rows.
    pub row_count: u64,
    /// Bytes.
    pub byte_size: u64,
    /// Format of its files.
    pub file_format: FileFormat,
    /// Time of the record that made it.
    pub created_at: Instant,
    /// Time of the last record that changed it.
    pub updated_at: Instant,
    /// Whether readers see it.
    pub is_active: bool,
    /// Its state.
    pub state: PartitionState,
    /// Whether its date is sealed.
    pub is_complete: bool,
    /// BLAKE3 over its file hashes in name order.
    pub checksum: String,
    /// Provenance of its rows: `live`, `backfill`, `replay`, or `merged` where they differ.
    pub provenance: String,
    /// First parent partition; `None` = from outside.
    pub parent_partition_id: Option<String>,
    /// Number of the last record that changed it.
    pub log_position: u64,
}

/// A row of the view `data_file`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileRow {
    /// Stable hash of partition id and name.
    pub id: String,
    /// The dataset.
    pub dataset: DatasetRef,
    /// The partition.
    #[serde(flatten)]
    pub key: PartitionKey,
    /// Path within the lake, at its final place.
    pub path: String,
    /// File name.
    pub name: String,
    /// Format.
    pub format: FileFormat,
    /// Rows.
    pub row_count: u64,
    /// Bytes.
    pub byte_size: u64,
    /// BLAKE3 of the file.
    pub blake3: ContentHash,
    /// Provenance.
    pub provenance: Provenance,
    /// Attempt whose stage folder held it: where to look when it has not been moved yet.
    pub attempt: Option<String>,
    /// The commit that added it.
    pub commit: CommitId,
    /// Its record's number.
    pub log_position: u64,
}

/// A row of the view `column_stats`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsRow {
    /// `FileRow::id`.
    pub file_id: String,
    /// The statistics.
    #[serde(flatten)]
    pub stats: ColumnStats,
}

/// A row of `commit_info`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommitRow {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Record number.
    pub number: u64,
    /// BLAKE3 of the record.
    pub hash: ContentHash,
    /// Commit id.
    pub commit: CommitId,
    /// Operation.
    pub operation: String,
    /// Time.
    pub at: Instant,
    /// Program that wrote it.
    pub program: String,
    /// User, where given.
    pub user: Option<String>,
    /// Run, where given.
    pub run: Option<String>,
    /// Note, where given.
    pub note: Option<String>,
    /// Files added.
    pub files_added: u64,
    /// Rows added.
    pub rows_added: u64,
    /// Records rejected.
    pub rejected: u64,
    /// First business date it touches; `None` = none.
    pub dt_min: Option<BusinessDate>,
    /// Last business date it touches.
    pub dt_max: Option<BusinessDate>,
}

/// A row of `schema_version_info`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchemaRow {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Version number.
    pub version: u32,
    /// Its base.
    pub base: Option<u32>,
    /// Its note.
    pub note: Option<String>,
    /// When it was published.
    pub published_at: Instant,
    /// BLAKE3 of the published file.
    pub hash: ContentHash,
    /// The whole published file as JSON.
    pub schema: String,
}

/// Where the catalog stands with one dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The lake it belongs to; `None` while it is empty.
    pub lake: Option<LakeId>,
    /// How far the dataset's log is applied.
    pub position: LogPosition,
    /// The dataset's published versions, in order.
    pub schemas: Vec<SchemaRow>,
}

/// A row of `source_info`: what the project says of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceRow {
    /// Code name.
    pub source: SourceName,
    /// Title, in any script.
    pub title: Option<String>,
    /// `log`, `snapshot` or `reference`.
    pub class: String,
    /// Names it had before.
    pub old_names: Vec<String>,
}

/// A row of the view `source_day`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceDayRow {
    /// The source.
    pub source: SourceName,
    /// The dataset.
    pub dataset: DatasetRef,
    /// Business date.
    pub dt: BusinessDate,
    /// Rows readers see.
    pub row_count: u64,
    /// Files readers see.
    pub file_count: u64,
    /// Bytes readers see.
    pub byte_size: u64,
    /// Whether the date is sealed.
    pub is_complete: bool,
}

/// The SQL index over a lake.
#[async_trait]
pub trait Catalog: Send + Sync + fmt::Debug {
    /// Where it lies, without credentials, for people.
    fn location(&self) -> String;

    /// The lake it belongs to; `None` while it is empty.
    async fn find_lake(&self) -> Result<Option<LakeId>>;

    /// Binds an empty catalog to a lake; one that belongs to another lake is refused.
    async fn bind(&self, lake: &LakeSpec) -> Result<()>;

    /// How far the dataset's log is applied.
    async fn position(&self, dataset: &DatasetRef) -> Result<LogPosition>;

    /// All that must be known of a dataset before its log is followed, by one look.
    async fn standing(&self, dataset: &DatasetRef) -> Result<Standing>;

    /// Every dataset with its position, by name.
    async fn list_positions(&self) -> Result<Vec<(DatasetRef, LogPosition)>>;

    /// Applies the next records of one dataset, all of them or none: the rows are those that one after
    /// the other would have given. Statistics of files that readers do not see after their record are
    /// not kept.
    async fn apply_all(&self, records: &[NextRecord<'_>]) -> Result<ApplyOutcome>;

    /// Applies the next record alone; `hash` is that of its bytes, `stats` as in [`NextRecord`].
    async fn apply(
        &self,
        record: &Record,
        hash: &ContentHash,
        stats: &[FileStats],
    ) -> Result<ApplyOutcome> {
        let next = NextRecord {
            record,
            hash,
            stats,
        };
        self.apply_all(&[next]).await
    }

    /// Puts a published schema version; the same one again changes nothing.
    async fn put_schema(&self, published: &PublishedSchema, hash: &ContentHash) -> Result<()>;

    /// Replaces what is known of a source.
    async fn put_source(&self, source: &SourceRow) -> Result<()>;

    /// Removes everything, sources included, but the migrations, `partition_access` and the bound lake.
    async fn clear(&self) -> Result<()>;

    /// Partitions by (dataset, dt, schema_version, revision); datasets by their text.
    async fn list_partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRow>>;

    /// Every partition of the dataset, in the order of `list_partitions`, with its files as one text: a
    /// line `NAME BLAKE3 ROWS` each, in any order. For whoever compares them all.
    async fn list_contents(&self, dataset: &DatasetRef) -> Result<Vec<(PartitionRow, String)>>;

    /// Files by (dataset, dt, schema_version, revision, log position, name).
    async fn list_files(&self, filter: &PartitionFilter) -> Result<Vec<FileRow>>;

    /// Statistics of the files that pass the filter, for the given field ids (empty = all columns),
    /// in the order of `list_files`, then by field id. A file may have none.
    async fn list_column_stats(
        &self,
        filter: &PartitionFilter,
        field_ids: &[u32],
    ) -> Result<Vec<StatsRow>>;

    /// Commits by (dataset, number).
    async fn list_commits(&self, dataset: Option<&DatasetRef>) -> Result<Vec<CommitRow>>;

    /// Published versions by (dataset, version).
    async fn list_schemas(&self, dataset: Option<&DatasetRef>) -> Result<Vec<SchemaRow>>;

    /// Sources by name.
    async fn list_sources(&self) -> Result<Vec<SourceRow>>;

    /// Days by (dataset, dt).
    async fn list_source_days(&self, filter: &PartitionFilter) -> Result<Vec<SourceDayRow>>;

    /// Counts a read of partitions (by id) on a day: local knowledge, the one table a rebuild loses.
    async fn record_access(&self, partition_ids: &[String], day: BusinessDate) -> Result<()>;

    /// Every row of every rebuildable table as sorted JSON lines: equal dumps = equal catalogs.
    async fn dump(&self) -> Result<String>;
}
