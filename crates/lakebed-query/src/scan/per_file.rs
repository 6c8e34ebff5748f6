//! A dataset as a table of one row a file: its constant columns and how many rows it has.
//!
//! It has no name in SQL: the optimizer puts it in the place of the dataset where an aggregate
//! comes out the same over it. Files without rows are not among its rows.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::columns::CONSTANT_COLUMNS;
use super::constants::{ConstantRows, constant_columns};
use super::table::LakeTable;

/// The column of row counts.
pub(crate) const ROWS_COLUMN: &str = "rows of the file";

/// One row a file.
#[derive(Debug)]
pub(crate) struct PerFileTable {
    table: LakeTable,
    schema: SchemaRef,
}

impl PerFileTable {
    /// The files of a dataset.
    pub(crate) fn new(table: LakeTable) -> Self {
        let mut fields = known_columns(&table);
        fields.push(Arc::new(Field::new(ROWS_COLUMN, DataType::Int64, false)));
        Self {
            table,
            schema: Arc::new(Schema::new(fields)),
        }
    }

    /// Where the columns at `positions` of the dataset's schema are here; `None` where one of them
    /// is not constant in a file.
    pub(crate) fn find_columns(&self, positions: &[usize]) -> Option<Vec<usize>> {
        let columns = &self.table.columns;
        let here = positions.iter().map(|&i| {
            let name = columns.schema.field(i).name();
            columns
                .is_constant(i)
                .then(|| self.schema.index_of(name).ok())?
        });
        here.collect()
    }

    /// Whether the name is one of a constant column.
    pub(crate) fn has(&self, name: &str) -> bool {
        let constants = &self.schema.fields()[..self.rows_column()];
        constants.iter().any(|field| field.name() == name)
    }

    /// Where [`ROWS_COLUMN`] is.
    pub(crate) fn rows_column(&self) -> usize {
        self.schema.fields().len() - 1
    }
}

/// The constant columns whose values the catalog's rows hold.
fn known_columns(table: &LakeTable) -> Vec<FieldRef> {
    let mut fields = table.columns.constant_fields();
    fields.retain(|f| CONSTANT_COLUMNS.contains(&f.name().as_str()));
    fields
}

#[async_trait]
impl TableProvider for PerFileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let none = Vec::new();
        let found = self.table.plan_files(session, Some(&none), filters).await?;
        let mut files = found.files;
        files.retain(|f| f.row_count > 0);
        let constants = known_columns(&self.table);
        let mut columns = constant_columns(&constants, &self.table.dataset, &files);
        let rows = files
            .iter()
            .map(|f| i64::try_from(f.row_count).unwrap_or(i64::MAX));
        columns.push(Arc::new(Int64Array::from_iter_values(rows)));
        let all = RecordBatch::try_new(self.schema(), columns)?;
        let batch = match projection {
            Some(selected) => all.project(selected)?,
            None => all,
        };
        let mut statistics = Statistics::new_unknown(&batch.schema());
        statistics.num_rows = Precision::Exact(files.len());
        Ok(DataSourceExec::from_data_source(ConstantRows {
            table: self.table.sql_name(),
            considered: found.considered,
            files: batch,
            rows: files.iter().map(|_| 1).collect(),
            statistics,
            fetch: limit,
        }))
    }
}
