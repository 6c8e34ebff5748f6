//! The answer to a query: a schema, batches as they are made, what was planned and how long it took.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use lakebed::store::Lake;
use lakebed::{Error, Result};

use crate::error::{convert, is_unnamed_damage, quoted};
use crate::history::Changes;
use crate::scan::{LakeSource, ReadLog, ScanNote, ScanTrace, without_views};
use crate::statement::sql_name;

/// The files of one table in one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFiles {
    /// The table as written in SQL.
    pub table: String,
    /// Files the catalog listed for the wanted dates and versions; in EXPLAIN, all of the dataset.
    pub files_considered: u64,
    /// Files in the plan; 0 where the catalog alone answers.
    pub files_read: u64,
    /// Bytes of the files in the plan.
    pub bytes: u64,
}

impl fmt::Display for TableFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: files_considered={} files_read={} bytes={}",
            self.table, self.files_considered, self.files_read, self.bytes
        )
    }
}

/// What a query was planned over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// One entry a table, by name; system tables read no file and are not listed.
    pub tables: Vec<TableFiles>,
}

impl QueryStats {
    /// Files the catalog was asked about.
    #[must_use]
    pub fn files_considered(&self) -> u64 {
        self.tables.iter().map(|t| t.files_considered).sum()
    }

    /// Files in the plan.
    #[must_use]
    pub fn files_read(&self) -> u64 {
        self.tables.iter().map(|t| t.files_read).sum()
    }
}

/// What a query costs, and what went wrong beside it; it outlives the result whose rows are taken.
#[derive(Debug, Clone)]
pub struct QueryMeter {
    planning: Duration,
    planned_at: Instant,
    log: Arc<ReadLog>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl QueryMeter {
    /// A meter of a query that began at `began` and whose plan is ready now.
    pub(crate) fn planned(began: Instant, trace: &ScanTrace) -> Self {
        Self {
            planning: began.elapsed(),
            planned_at: Instant::now(),
            log: Arc::clone(&trace.log),
            warnings: Arc::default(),
        }
    }

    /// Keeps what went wrong without changing the answer.
    pub(crate) fn warn(&self, warning: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(warning);
    }

    /// What went wrong without changing the answer; whole when the last row was taken.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock();
        warnings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the parsed statement to the ready plan: the catalog is brought up to date and asked.
    #[must_use]
    pub fn planning(&self) -> Duration {
        self.planning
    }

    /// From the ready plan until now.
    #[must_use]
    pub fn execution(&self) -> Duration {
        self.planned_at.elapsed()
    }

    /// Bytes of data files that were read so far, footers included.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.log.bytes_read()
    }
}

/// Counts the files that are left in a physical plan; a file read by two workers counts once.
pub(crate) fn planned_files(plan: &Arc<dyn ExecutionPlan>, notes: &[ScanNote]) -> QueryStats {
    let mut considered: BTreeMap<String, u64> = BTreeMap::new();
    for note in notes {
        let of_table = considered.entry(sql_name(&note.dataset)).or_default();
        *of_table = note.considered.max(*of_table);
    }
    let mut read: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    collect_files(plan, &mut read);
    let tables = considered
        .into_iter()
        .map(|(table, files_considered)| {
            let files = read.remove(&table).unwrap_or_default();
            TableFiles {
                table,
                files_considered,
                files_read: u64::try_from(files.len()).unwrap_or(u64::MAX),
                bytes: files.values().sum(),
            }
        })
        .collect();
    QueryStats { tables }
}

fn collect_files(
    plan: &Arc<dyn ExecutionPlan>,
    into: &mut BTreeMap<String, BTreeMap<String, u64>>,
) {
    if let Some(config) = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>())
        && let Some(source) = config.file_source.downcast_ref::<LakeSource>()
    {
        let files = into.entry(source.planned().table.clone()).or_default();
        for file in config.file_groups.iter().flat_map(|g| g.iter()) {
            files.insert(file.object_meta.location.to_string(), file.object_meta.size);
        }
    }
    for child in plan.children() {
        collect_files(child, into);
    }
}

/// The schema without what the engine notes at its columns for itself; texts have the type they have
/// in data files, however the engine held them.
fn shown_schema(schema: &SchemaRef) -> SchemaRef {
    let shown = schema.fields().iter().map(|f| {
        let shown = without_views(f);
        Field::clone(&shown).with_metadata(HashMap::new())
    });
    Arc::new(Schema::new(shown.collect::<Vec<_>>()))
}

/// The answer to a query.
pub struct QueryResult {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    first: Option<RecordBatch>,
    changes: Option<Changes>,
    stats: QueryStats,
    meter: QueryMeter,
    lake: Lake,
}

impl fmt::Debug for QueryResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryResult")
            .field("schema", &self.schema)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl QueryResult {
    pub(crate) fn new(
        stream: SendableRecordBatchStream,
        stats: QueryStats,
        meter: QueryMeter,
        lake: Lake,
    ) -> Self {
        Self {
            schema: shown_schema(&stream.schema()),
            stream,
            first: None,
            changes: None,
            stats,
            meter,
            lake,
        }
    }

    /// Leaves out rows that say what the row before them said.
    pub(crate) fn with_changes_only(mut self) -> Result<Self> {
        self.changes = Some(Changes::new(&self.schema).map_err(|e| convert(&e))?);
        Ok(self)
    }

    /// Puts a row for each table before the plan: files considered and read.
    pub(crate) fn with_files_shown(mut self) -> Self {
        let texts = self
            .schema
            .fields()
            .iter()
            .all(|f| *f.data_type() == DataType::Utf8);
        if texts && self.schema.fields().len() == 2 && !self.stats.tables.is_empty() {
            let kinds = self.stats.tables.iter().map(|_| "files");
            let shown = self.stats.tables.iter().map(ToString::to_string);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(kinds)),
                Arc::new(StringArray::from_iter_values(shown)),
            ];
            self.first = RecordBatch::try_new(Arc::clone(&self.schema), columns).ok();
        }
        self
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What was planned.
    #[must_use]
    pub fn stats(&self) -> &QueryStats {
        &self.stats
    }

    /// What it costs, also when its rows have been taken.
    #[must_use]
    pub fn meter(&self) -> QueryMeter {
        self.meter.clone()
    }

    /// The next rows; `None` at the end.
    pub async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.stream.next().await {
            None => Ok(None),
            Some(Ok(batch)) => self.shown(&batch).map(Some).map_err(|e| convert(&e)),
            Some(Err(e)) => {
                let error = convert(&e);
                Err(if is_unnamed_damage(&e) {
                    name_damage(&self.meter.log, &self.lake, error).await
                } else {
                    error
                })
            }
        }
    }

    /// The batch as it is shown.
    fn shown(&mut self, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::clone(&self.schema);
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, to)| match column.data_type() == to.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, to.data_type()),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let plain = RecordBatch::try_new_with_options(schema, columns, &options)?;
        match &mut self.changes {
            Some(changes) => changes.filter(&plain),
            None => Ok(plain),
        }
    }

    /// Every row.
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch().await? {
            batches.push(batch);
        }
        Ok(batches)
    }
}

/// Looks which of the opened files are not what the catalog says, and names them.
async fn name_damage(log: &ReadLog, lake: &Lake, error: Error) -> Error {
    let damaged: BTreeSet<String> = log
        .find_damaged(lake)
        .await
        .iter()
        .map(ToString::to_string)
        .collect();
    let Some(first) = damaged.iter().next() else {
        return error;
    };
    let named = error.with("file", first);
    match damaged.len() {
        1 => named,
        _ => named.hint(format!("damaged files are {}", quoted(&damaged))),
    }
}
