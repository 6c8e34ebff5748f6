//! The source of a table scan: says what was planned, and keeps filters on nested columns.
//!
//! DataFusion decides from the table's schema that a filter on a struct member can be evaluated
//! inside the Parquet reader, but drops it where the file's struct has another shape. So a filter
//! that names a nested column stays above the scan, and so do those that are not worth evaluating in the
//! reader (`selectivity`). One that names floats may be evaluated in the reader, but prunes nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::ColumnStatistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use object_store::ObjectStore;

use super::row_filter::without_float_pruning;
use super::selectivity::few_pass;

/// What a scan was planned over.
#[derive(Debug, Clone)]
pub(crate) struct PlannedFiles {
    /// The table as written in SQL.
    pub(crate) table: String,
    /// Files the catalog was asked about.
    pub(crate) considered: u64,
    /// Files in the plan.
    pub(crate) read: u64,
    /// Bytes of the files in the plan.
    pub(crate) bytes: u64,
    /// What the catalog knows of the table's columns in these files.
    pub(crate) statistics: Vec<ColumnStatistics>,
}

impl fmt::Display for PlannedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "files_considered={} files_read={} bytes={}",
            self.considered, self.read, self.bytes
        )
    }
}

/// A source of files with what it was planned over.
#[derive(Clone)]
pub(crate) struct LakeSource {
    inner: Arc<dyn FileSource>,
    planned: Arc<PlannedFiles>,
    /// Whether the reader evaluates filters; nobody knows before the first filter comes.
    evaluates: Option<bool>,
}

impl LakeSource {
    /// Wraps the source that reads, which evaluates no filters unless it is told to.
    pub(crate) fn new(inner: Arc<dyn FileSource>, planned: PlannedFiles) -> Self {
        Self {
            inner,
            planned: Arc::new(planned),
            evaluates: None,
        }
    }

    /// What it was planned over.
    pub(crate) fn planned(&self) -> &PlannedFiles {
        &self.planned
    }

    fn wrap(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        self.wrap_deciding(inner, self.evaluates)
    }

    fn wrap_deciding(
        &self,
        inner: Arc<dyn FileSource>,
        evaluates: Option<bool>,
    ) -> Arc<dyn FileSource> {
        Arc::new(Self {
            inner,
            planned: Arc::clone(&self.planned),
            evaluates,
        })
    }

    /// Whether the reader should evaluate these, the first filters of the scan. A filter that the plan
    /// makes while it runs is there to be evaluated early.
    fn should_evaluate(&self, filters: &[Arc<dyn PhysicalExpr>]) -> bool {
        let is_dynamic =
            |f: &Arc<dyn PhysicalExpr>| f.downcast_ref::<DynamicFilterPhysicalExpr>().is_some();
        if filters.iter().any(is_dynamic) {
            return true;
        }
        let named: HashSet<Column> = filters.iter().flat_map(collect_columns).collect();
        let reads_more = self.inner.projection().is_none_or(|projection| {
            let read = projection.column_indices().into_iter();
            read.into_iter()
                .any(|i| named.iter().all(|c| c.index() != i))
        });
        let schema = self.inner.table_schema().table_schema();
        reads_more && few_pass(filters, schema, &self.planned.statistics)
    }

    fn names_nested_column(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let schema = self.inner.table_schema().table_schema();
        collect_columns(filter).iter().any(|column| {
            schema
                .field_with_name(column.name())
                .map_or(true, |f| f.data_type().is_nested())
        })
    }
}

impl FileSource for LakeSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.inner
            .create_file_opener(object_store, base_config, partition)
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn datafusion_datasource::morsel::Morselizer>> {
        self.inner
            .create_morselizer(object_store, base_config, partition)
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.wrap(self.inner.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, ", {}", self.planned)?;
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "files_considered={}", self.planned.considered)?;
                writeln!(f, "files_read={}", self.planned.read)?;
            }
        }
        self.inner.fmt_extra(t, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let kept: Vec<bool> = filters
            .iter()
            .map(|f| self.names_nested_column(f))
            .collect();
        let schema = self.inner.table_schema().table_schema();
        let offered: Vec<_> = filters
            .into_iter()
            .zip(&kept)
            .filter(|(_, kept)| !**kept)
            .map(|(f, _)| f)
            .collect();
        let evaluates = match offered.is_empty() {
            true => self.evaluates,
            // What was once promised is kept.
            false => Some((self.evaluates).unwrap_or_else(|| self.should_evaluate(&offered))),
        };
        let offered = offered
            .into_iter()
            .map(|f| without_float_pruning(f, schema))
            .collect();
        let mut config = Cow::Borrowed(config);
        let wanted = evaluates == Some(true);
        if config.execution.parquet.pushdown_filters != wanted {
            config.to_mut().execution.parquet.pushdown_filters = wanted;
        }
        let inner = self.inner.try_pushdown_filters(offered, &config)?;
        let mut answers = inner.filters.into_iter();
        let filters = kept
            .iter()
            .map(|kept| match kept {
                true => PushedDown::No,
                false => answers.next().unwrap_or(PushedDown::No),
            })
            .collect();
        Ok(FilterPushdownPropagation {
            filters,
            updated_node: (inner.updated_node).map(|n| self.wrap_deciding(n, evaluates)),
        })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        eq_properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(match self.inner.try_pushdown_sort(order, eq_properties)? {
            SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact {
                inner: self.wrap(inner),
            },
            SortOrderPushdownResult::Inexact { inner } => SortOrderPushdownResult::Inexact {
                inner: self.wrap(inner),
            },
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let pushed = self.inner.try_pushdown_projection(projection)?;
        Ok(pushed.map(|inner| self.wrap(inner)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }
}

/// Files in as many groups as there are workers, in order.
pub(crate) fn group_files(files: Vec<PartitionedFile>, workers: usize) -> Vec<FileGroup> {
    FileGroup::new(files).split_files(workers.max(1))
}
