//! `lakebed history`: the rows of one object over all days, the oldest first.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Schema};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use lakebed::name::DatasetRef;
use lakebed::registry::{DT_COLUMN, VERSION_COLUMN};
use lakebed::spec::{EXTRA_COLUMN, SOURCE_COLUMN};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::error::convert;
use crate::latest::{column, key_columns, place};
use crate::scan::{FieldColumn, LakeTable};

/// Whose history is wanted.
#[derive(Debug, Clone)]
pub struct ObjectKey {
    /// The dataset; it declares a key.
    pub dataset: DatasetRef,
    /// One value a column of the key, as text, in the order in which the key names them.
    pub key: Vec<String>,
    /// First business date; absent = from the beginning.
    pub dt_from: Option<BusinessDate>,
    /// Last business date, included; absent = to the end.
    pub dt_to: Option<BusinessDate>,
    /// Whether rows are left out that say what the row before them said.
    pub changes_only: bool,
}

/// The rows of an object, with `_commit`, `_file` and `_row`.
pub(crate) fn history_plan(
    table: Arc<LakeTable>,
    key: &[String],
    object: &ObjectKey,
) -> Result<LogicalPlan> {
    let columns = key_columns(&table, key)?;
    if columns.len() != object.key.len() {
        return Err(Error::invalid(format!(
            "the key of `{}` has {}, {} given",
            object.dataset,
            counted(columns.len(), "column"),
            counted(object.key.len(), "value")
        ))
        .with("key", key.join(", "))
        .hint("give one value a column, in this order"));
    }
    let mut wanted = Vec::new();
    for (found, text) in columns.iter().zip(&object.key) {
        wanted.push(column(found.field.name()).eq(lit(key_value(found, text)?)));
    }
    let day = |dt: BusinessDate| lit(ScalarValue::Date32(Some(dt.days())));
    wanted.extend(object.dt_from.map(|dt| column(DT_COLUMN).gt_eq(day(dt))));
    wanted.extend(object.dt_to.map(|dt| column(DT_COLUMN).lt_eq(day(dt))));
    build(table, wanted).map_err(|e| convert(&e))
}

fn counted(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

fn build(table: Arc<LakeTable>, wanted: Vec<Expr>) -> Result<LogicalPlan, DataFusionError> {
    let shown = table.shown_columns(true).into_iter().map(column);
    let shown: Vec<Expr> = shown.collect();
    let source = provider_as_source(table as Arc<dyn TableProvider>);
    let mut rows = LogicalPlanBuilder::scan("rows", source, None)?;
    for filter in wanted {
        rows = rows.filter(filter)?;
    }
    rows.sort([place().sort(true, false)])?
        .project(shown)?
        .build()
}

/// The value of a key column that a text stands for, exactly.
fn key_value(column: &FieldColumn, text: &str) -> Result<ScalarValue> {
    let (name, data_type) = (column.field.name(), column.field.data_type());
    let refuse = || {
        Error::invalid(format!("`{text}` is no value of the key column `{name}`"))
            .with("type", data_type)
            .hint("write it as SQL would: 42, 12.50, 2026-11-30, 2026-11-30T08:00:00Z, true")
    };
    if let DataType::Decimal128(_, scale) = data_type {
        // A cast would round.
        let digits = text.split_once('.').map_or("", |(_, d)| d);
        let digits = digits.trim_end_matches('0');
        if !digits.bytes().all(|b| b.is_ascii_digit())
            || digits.len() > usize::try_from(*scale).unwrap_or(0)
        {
            return Err(refuse());
        }
    }
    let cast = ScalarValue::from(text).cast_to(data_type);
    match cast {
        Ok(value) if !value.is_null() => Ok(value),
        _ => Err(refuse()),
    }
}

/// Leaves out rows that say what the row before them said.
#[derive(Debug)]
pub(crate) struct Changes {
    columns: Vec<usize>,
    converter: RowConverter,
    last: Option<OwnedRow>,
}

impl Changes {
    /// Compares the columns that records have.
    pub(crate) fn new(schema: &Schema) -> Result<Self, DataFusionError> {
        let is_data = |name: &str| {
            name == EXTRA_COLUMN
                || !(name.starts_with('_')
                    || [SOURCE_COLUMN, DT_COLUMN, VERSION_COLUMN].contains(&name))
        };
        let fields = schema.fields().iter().enumerate();
        let compared: Vec<_> = fields.filter(|(_, f)| is_data(f.name())).collect();
        let types = compared.iter().map(|(_, f)| f.data_type().clone());
        Ok(Self {
            converter: RowConverter::new(types.map(SortField::new).collect())?,
            columns: compared.iter().map(|(i, _)| *i).collect(),
            last: None,
        })
    }

    /// The rows of the batch that differ from those before them.
    pub(crate) fn filter(&mut self, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let columns = self.columns.iter().map(|&i| Arc::clone(batch.column(i)));
        let columns: Vec<_> = columns.collect();
        let rows = self.converter.convert_columns(&columns)?;
        let mut kept = Vec::with_capacity(batch.num_rows());
        for row in &rows {
            let is_same = self.last.as_ref().is_some_and(|last| last.row() == row);
            if !is_same {
                self.last = Some(row.owned());
            }
            kept.push(!is_same);
        }
        Ok(filter_record_batch(batch, &BooleanArray::from(kept))?)
    }
}
