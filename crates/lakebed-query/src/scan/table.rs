//! A dataset as DataFusion's table.
//!
//! Planning asks the catalog alone: for the files of the wanted dates and versions, then for the
//! bounds of the columns that filters name. No store is touched and no footer is read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use lakebed::Error;
use lakebed::catalog::{Catalog, FileRow, PartitionFilter};
use lakebed::name::DatasetRef;
use lakebed::spec::{FileFormat, PartitionKey};
use lakebed::store::{Lake, StorePath};

use super::adapt::ByFieldId;
use super::bounds::{StatsByFile, file_bounds, overall_statistics};
use super::columns::{
    DT_COLUMN, FieldColumn, ORIGIN_COLUMNS, RANK_COLUMN, TableColumns, VERSION_COLUMN,
};
use super::constants::{ConstantRows, batch_of, constant_columns};
use super::footers::Footers;
use super::lines::LinesSource;
use super::prune::{
    Bounds, catalog_filter, is_partition_filter, keep_partitions, named_ids, prune_files,
};
use super::reader::{FileOrigin, LakeReaderFactory, ReadLog};
use super::source::{LakeSource, PlannedFiles, group_files};

/// Bytes of a file's end read at once: footer and page index of most files.
const FOOTER_HINT_BYTES: usize = 128 * 1024;

/// What one scan was planned over.
#[derive(Debug, Clone)]
pub(crate) struct ScanNote {
    /// The dataset.
    pub(crate) dataset: DatasetRef,
    /// Files the catalog was asked about.
    pub(crate) considered: u64,
    /// Partitions with a file in the plan.
    pub(crate) partitions: Vec<PartitionKey>,
}

/// What the scans of one query share with its engine.
#[derive(Debug, Default)]
pub(crate) struct ScanTrace {
    /// One note a scan.
    notes: Mutex<Vec<ScanNote>>,
    /// Whether to count the dataset's files of all dates, as EXPLAIN shows them.
    pub(crate) count_all: AtomicBool,
    /// Whether bounds of the selected columns may answer the query (`MIN`, `MAX`, `COUNT`).
    pub(crate) want_bounds: AtomicBool,
    /// Which files were opened.
    pub(crate) log: Arc<ReadLog>,
    footers: Arc<Footers>,
}

impl ScanTrace {
    /// The trace of one query of an engine that has read `footers`.
    pub(crate) fn new(footers: Arc<Footers>) -> Self {
        Self {
            footers,
            ..Self::default()
        }
    }

    fn add(&self, note: ScanNote) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(note);
    }

    /// The notes so far, which are forgotten.
    pub(crate) fn take(&self) -> Vec<ScanNote> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a table is made of.
pub(crate) struct TableInput {
    /// The lake.
    pub(crate) lake: Lake,
    /// The catalog.
    pub(crate) catalog: Arc<dyn Catalog>,
    /// The dataset.
    pub(crate) dataset: DatasetRef,
    /// Its columns.
    pub(crate) columns: Arc<TableColumns>,
    /// Its files where they are not those that the catalog has now; ranks count along them.
    pub(crate) files: Option<Arc<Vec<FileRow>>>,
    /// The query's notes.
    pub(crate) trace: Arc<ScanTrace>,
}

/// A dataset as a table.
#[derive(Debug, Clone)]
pub(crate) struct LakeTable {
    lake: Lake,
    catalog: Arc<dyn Catalog>,
    pub(super) dataset: DatasetRef,
    pub(super) columns: Arc<TableColumns>,
    files: Option<Arc<Vec<FileRow>>>,
    trace: Arc<ScanTrace>,
}

/// The files of one scan.
pub(super) struct FoundFiles {
    /// Files that may hold a wanted row.
    pub(super) files: Vec<FileRow>,
    /// Files the catalog was asked about.
    pub(super) considered: u64,
    bounds: Bounds,
    /// Whether rows within a file are filtered.
    is_filtered: bool,
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn exact_count(n: u64) -> Precision<usize> {
    usize::try_from(n).map_or(Precision::Absent, Precision::Exact)
}

impl LakeTable {
    /// The table of a dataset that has at least one published version.
    pub(crate) fn new(input: TableInput) -> Self {
        Self {
            lake: input.lake,
            catalog: input.catalog,
            dataset: input.dataset,
            columns: input.columns,
            files: input.files,
            trace: input.trace,
        }
    }

    /// The dataset.
    pub(crate) fn dataset(&self) -> &DatasetRef {
        &self.dataset
    }

    /// The columns that files hold.
    pub(crate) fn fields(&self) -> &[FieldColumn] {
        &self.columns.fields
    }

    /// The names of the columns that queries see, in order.
    pub(crate) fn shown_columns(&self, with_origin: bool) -> Vec<&str> {
        let fields = self.columns.schema.fields().iter();
        let names = fields.map(|f| f.name().as_str());
        names
            .filter(|n| *n != RANK_COLUMN && (with_origin || !ORIGIN_COLUMNS.contains(n)))
            .collect()
    }

    /// How it is written in SQL.
    pub(crate) fn sql_name(&self) -> String {
        format!("{}.{}", self.dataset.layer, self.dataset.dataset)
    }

    /// The files that may hold a wanted row; the scan is noted.
    pub(super) async fn plan_files(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> Result<FoundFiles> {
        let ((files, bounds), considered) = self.find_files(session, projection, filters).await?;
        files.iter().try_for_each(|f| self.check_format(f))?;
        let mut partitions: Vec<PartitionKey> = files.iter().map(|f| f.key).collect();
        partitions.sort_unstable();
        partitions.dedup();
        self.trace.add(ScanNote {
            dataset: self.dataset.clone(),
            considered,
            partitions,
        });
        Ok(FoundFiles {
            files,
            considered,
            bounds,
            is_filtered: !filters.iter().all(is_partition_filter),
        })
    }

    /// The files that may hold a wanted row, with what is known of them, and how many were looked at.
    async fn find_files(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> Result<((Vec<FileRow>, Bounds), u64)> {
        let Some(wanted) = catalog_filter(&self.dataset, filters) else {
            return Ok((Default::default(), self.count_files(0).await?));
        };
        let files = self.list_files(&wanted).await?;
        let listed = u64::try_from(files.len()).unwrap_or(u64::MAX);
        let considered = self.count_files(listed).await?;
        let (on_partition, on_columns): (Vec<&Expr>, Vec<&Expr>) =
            filters.iter().partition(|f| is_partition_filter(f));
        let files = keep_partitions(session, &self.columns, &self.dataset, files, &on_partition)?;
        let mut ids = named_ids(&self.columns, &on_columns);
        if on_columns.is_empty() && self.trace.want_bounds.load(Ordering::Relaxed) {
            let all = (0..self.columns.schema.fields().len()).collect();
            for &i in projection.unwrap_or(&all) {
                if let Some(column) = self.columns.field_at(i)
                    && !column.field.data_type().is_nested()
                {
                    ids.insert(column.id);
                }
            }
        }
        let ids: Vec<u32> = ids.into_iter().collect();
        let bounds = self.find_bounds(&wanted, &files, &ids).await?;
        let mut found = (files, bounds);
        prune_files(
            session,
            &self.columns,
            &self.dataset,
            &mut found,
            &on_columns,
        )?;
        Ok((found, considered))
    }

    /// The files of the wanted dates and versions: those of now, or those it was given.
    async fn list_files(&self, wanted: &PartitionFilter) -> Result<Vec<FileRow>> {
        let Some(given) = &self.files else {
            return self.catalog.list_files(wanted).await.map_err(external);
        };
        let is_wanted = |file: &&FileRow| {
            let (dt, version) = (file.key.dt, file.key.schema_version);
            wanted.dt_from.is_none_or(|from| dt >= from)
                && wanted.dt_to.is_none_or(|to| dt <= to)
                && (wanted.schema_versions.is_empty() || wanted.schema_versions.contains(&version))
        };
        Ok(given.iter().filter(is_wanted).cloned().collect())
    }

    async fn count_files(&self, listed: u64) -> Result<u64> {
        if let Some(given) = &self.files {
            return Ok(u64::try_from(given.len()).unwrap_or(u64::MAX));
        }
        if !self.trace.count_all.load(Ordering::Relaxed) {
            return Ok(listed);
        }
        let all = PartitionFilter {
            dataset: Some(self.dataset.clone()),
            ..PartitionFilter::default()
        };
        let days = self
            .catalog
            .list_source_days(&all)
            .await
            .map_err(external)?;
        Ok(days.iter().map(|d| d.file_count).sum())
    }

    async fn find_bounds(
        &self,
        wanted: &PartitionFilter,
        files: &[FileRow],
        ids: &[u32],
    ) -> Result<Bounds> {
        // The catalog has the bounds of files that readers see now, and of no others.
        if ids.is_empty() || files.is_empty() || self.files.is_some() {
            return Ok(vec![vec![None; self.columns.fields.len()]; files.len()]);
        }
        let rows = self
            .catalog
            .list_column_stats(wanted, ids)
            .await
            .map_err(external)?;
        let mut stats = StatsByFile::new();
        for row in rows {
            let of_file = stats.entry(row.file_id).or_default();
            of_file.insert(row.stats.field_id, row.stats);
        }
        Ok(files
            .iter()
            .map(|file| {
                self.columns
                    .fields
                    .iter()
                    .map(|column| {
                        ids.contains(&column.id)
                            .then(|| file_bounds(&self.columns, column, file, &stats))
                    })
                    .collect()
            })
            .collect())
    }

    fn check_format(&self, file: &FileRow) -> Result<()> {
        if file.format != self.columns.format() {
            return Err(external(
                Error::precondition(format!(
                    "`{}` holds tables and JSON lines, which are not one table",
                    self.dataset,
                ))
                .with("file", &file.path)
                .with("invariant", "LOG-12")
                .hint("`lakebed audit` says more"),
            ));
        }
        Ok(())
    }

    /// The rank of each file by its path, where the table has ranks.
    fn ranks(&self) -> Option<BTreeMap<&str, i64>> {
        let given = self
            .files
            .as_ref()
            .filter(|_| self.columns.on_demand().rank)?;
        Some(given.iter().map(|f| f.path.as_str()).zip(0..).collect())
    }

    fn planned_file(
        &self,
        file: &FileRow,
        ranks: Option<&BTreeMap<&str, i64>>,
    ) -> Result<PartitionedFile> {
        let path = StorePath::new(file.path.clone()).map_err(external)?;
        let mut planned = PartitionedFile::new(String::new(), file.byte_size);
        // Paths within a lake are percent-encoded already: they are taken as they are.
        planned.object_meta.location = object_store::path::Path::parse(path.as_str())
            .map_err(|e| DataFusionError::External(Box::new(e)))?;
        let mut values = vec![
            ScalarValue::Utf8(Some(self.dataset.source().as_str().to_owned())),
            ScalarValue::Date32(Some(file.key.dt.days())),
            ScalarValue::Int64(Some(i64::from(file.key.schema_version))),
        ];
        if self.columns.on_demand().origin {
            values.push(ScalarValue::Utf8(Some(file.commit.as_str().to_owned())));
            values.push(ScalarValue::Utf8(Some(file.path.clone())));
        }
        if self.columns.on_demand().rank {
            let rank = ranks.and_then(|r| r.get(file.path.as_str()));
            values.push(ScalarValue::Int64(rank.copied()));
        }
        Ok(planned
            .with_partition_values(values)
            .with_extension(FileOrigin {
                path,
                dataset: self.dataset.clone(),
                key: file.key,
                blake3: file.blake3.clone(),
            }))
    }

    /// What the catalog alone can say of the rows of these files.
    fn statistics_of(&self, files: &[FileRow], bounds: &Bounds) -> Statistics {
        let mut columns: Vec<ColumnStatistics> = (0..self.columns.fields.len())
            .map(|i| overall_statistics(files, bounds, i))
            .collect();
        for field in self.columns.constant_fields() {
            let mut stats = ColumnStatistics::new_unknown();
            stats.null_count = Precision::Exact(0);
            let filled = files.iter().filter(|f| f.row_count > 0);
            let values: Vec<ScalarValue> = match field.name().as_str() {
                DT_COLUMN => filled
                    .map(|f| ScalarValue::Date32(Some(f.key.dt.days())))
                    .collect(),
                VERSION_COLUMN => filled
                    .map(|f| ScalarValue::Int64(Some(i64::from(f.key.schema_version))))
                    .collect(),
                lakebed::spec::SOURCE_COLUMN => filled
                    .take(1)
                    .map(|_| ScalarValue::from(self.dataset.source().as_str()))
                    .collect(),
                _ => Vec::new(),
            };
            let by_value = |a: &&ScalarValue, b: &&ScalarValue| {
                a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal)
            };
            if let (Some(min), Some(max)) = (
                values.iter().min_by(by_value),
                values.iter().max_by(by_value),
            ) {
                stats.min_value = Precision::Exact(min.clone());
                stats.max_value = Precision::Exact(max.clone());
            }
            columns.push(stats);
        }
        for _ in self.columns.virtual_fields() {
            columns.push(ColumnStatistics::new_unknown());
        }
        Statistics {
            num_rows: exact_count(files.iter().map(|f| f.row_count).sum()),
            total_byte_size: Precision::Absent,
            column_statistics: columns,
        }
    }

    /// The selected columns of the scan under the names SQL knows.
    fn scan_projection(&self, selected: &[usize]) -> ProjectionExprs {
        ProjectionExprs::new(selected.iter().map(|&i| {
            let alias = self.columns.schema.field(i).name().clone();
            let column = self.columns.field_at(i);
            let name = column.map_or(&alias, |c| &c.scan_name);
            let expr = Arc::new(Column::new(name, self.columns.scan_index(i)));
            ProjectionExpr { expr, alias }
        }))
    }

    /// The rows of a scan that needs nothing but constant columns: no file is read.
    fn repeat_constants(
        &self,
        found: &FoundFiles,
        selected: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Arc::new(self.columns.schema.project(selected)?);
        let columns = constant_columns(schema.fields(), &self.dataset, &found.files);
        let mut statistics = self.statistics_of(&found.files, &found.bounds);
        let known = &statistics.column_statistics;
        statistics.column_statistics = selected
            .iter()
            .map(|&i| known[self.columns.scan_index(i)].clone())
            .collect();
        Ok(DataSourceExec::from_data_source(ConstantRows {
            table: self.sql_name(),
            considered: found.considered,
            files: batch_of(schema, columns, found.files.len())?,
            rows: found.files.iter().map(|f| f.row_count).collect(),
            statistics,
            fetch: limit,
        }))
    }

    fn read_files(
        &self,
        session: &dyn Session,
        found: &FoundFiles,
        selected: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let statistics = self.statistics_of(&found.files, &found.bounds);
        let planned = PlannedFiles {
            table: self.sql_name(),
            considered: found.considered,
            read: u64::try_from(found.files.len()).unwrap_or(u64::MAX),
            bytes: found.files.iter().map(|f| f.byte_size).sum(),
            statistics: statistics.column_statistics.clone(),
        };
        let ranks = self.ranks();
        let files = found
            .files
            .iter()
            .map(|f| self.planned_file(f, ranks.as_ref()))
            .collect::<Result<Vec<_>>>()?;
        let source: Arc<dyn FileSource> = match self.columns.format() {
            FileFormat::Parquet => Arc::new(self.parquet_source(session, found.is_filtered)),
            FileFormat::Rawpack | FileFormat::RawpackIndex => {
                return Err(DataFusionError::Internal("a pack as a table".to_owned()));
            }
            FileFormat::Jsonl => Arc::new(LinesSource::new(
                self.lake.clone(),
                Arc::clone(&self.trace.log),
                self.file_schema(),
            )),
        };
        let source = LakeSource::new(source, planned);
        let source = source
            .try_pushdown_projection(&self.scan_projection(selected))?
            .ok_or_else(|| external(Error::internal("a scan takes no projection")))?;
        let workers = session.config_options().execution.target_partitions;
        let config = FileScanConfigBuilder::new(files_url(), source)
            .with_file_groups(group_files(files, workers))
            .with_statistics(statistics)
            .with_limit(limit)
            .with_expr_adapter(Some(Arc::new(ByFieldId::new(Arc::clone(&self.columns)))))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file_schema(&self) -> TableSchema {
        TableSchema::builder(self.columns.scan_schema())
            .with_table_partition_cols(self.columns.constant_fields())
            .with_virtual_columns(self.columns.virtual_fields())
            .build()
    }

    fn parquet_source(&self, session: &dyn Session, is_filtered: bool) -> ParquetSource {
        let schema = self.file_schema();
        let mut options = TableParquetOptions {
            global: session.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        // `LakeSource` decides for each scan.
        options.global.pushdown_filters = false;
        ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_metadata_size_hint(FOOTER_HINT_BYTES)
            .with_parquet_file_reader_factory(Arc::new(LakeReaderFactory::new(
                self.lake.clone(),
                Arc::clone(&self.trace.log),
                Arc::clone(&self.trace.footers),
                is_filtered,
            )))
    }
}

#[async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|f| match is_partition_filter(f) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Inexact,
            })
            .collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let found = self.plan_files(session, projection, filters).await?;
        let all = (0..self.columns.schema.fields().len()).collect();
        let selected = projection.unwrap_or(&all);
        if found.files.is_empty() {
            let schema = self.columns.schema.project(selected)?;
            return Ok(Arc::new(EmptyExec::new(Arc::new(schema))));
        }
        match selected.iter().all(|&i| self.columns.is_constant(i)) {
            true => self.repeat_constants(&found, selected, limit),
            false => self.read_files(session, &found, selected, limit),
        }
    }
}

/// The name under which DataFusion knows the lake's files; reading goes through the lake's store.
pub(crate) fn files_url() -> ObjectStoreUrl {
    ObjectStoreUrl::local_filesystem()
}
