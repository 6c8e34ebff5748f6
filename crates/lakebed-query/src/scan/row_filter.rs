//! A filter that is evaluated row by row, and by which no row group or page is skipped.
//!
//! Parquet's bounds of floats leave NaN out, yet SQL orders NaN above all numbers (and one with its
//! sign set below them): a row group whose values are at most 3 may hold a row with `x > 5`. The
//! same holds of the filters that DataFusion makes itself for `ORDER BY x LIMIT n`. What DataFusion
//! does not know it does not prune by, so such a filter is handed to the reader in a wrapping.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;

/// The filter, wrapped where it names a column of floats; `schema` is the table's.
pub(super) fn without_float_pruning(
    filter: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Arc<dyn PhysicalExpr> {
    let names_float = collect_columns(&filter).iter().any(|column| {
        schema
            .field_with_name(column.name())
            .is_ok_and(|field| field.data_type().is_floating())
    });
    match names_float {
        true => Arc::new(RowFilter { filter }),
        false => filter,
    }
}

/// A filter that says nothing but what it is for a row.
#[derive(Debug, Clone)]
struct RowFilter {
    filter: Arc<dyn PhysicalExpr>,
}

impl PartialEq for RowFilter {
    fn eq(&self, other: &Self) -> bool {
        self.filter.eq(&other.filter)
    }
}

impl Eq for RowFilter {}

impl Hash for RowFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

impl fmt::Display for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl PhysicalExpr for RowFilter {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.filter.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.filter.nullable(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.filter.evaluate(batch)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.filter.return_field(input_schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([filter]) = <[_; 1]>::try_from(children) else {
            return exec_err!("a row filter takes one argument");
        };
        Ok(Arc::new(Self { filter }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_sql(f)
    }
}
