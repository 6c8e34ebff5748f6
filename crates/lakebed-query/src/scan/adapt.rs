//! Expressions over the table's columns become expressions over a file's columns, by field id.
//!
//! A column the file lacks becomes a typed NULL; one of another type is cast (scalars) or aligned
//! (nested types); one of a field that was retyped since goes through the cast of `retype`. A file whose columns carry no ids at all is refused: reading it by name could
//! silently mix up renamed columns.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};
use lakebed::registry::{Cast, ColumnSource};

use super::align::{align, can_align};
use super::columns::{FieldColumn, TableColumns, field_id, plain_type};
use super::member::{StructColumn, member_path, read_member};
use super::retype::{RetypeExpr, Wanted};
use super::views::with_views;

/// Makes the adapter of each file.
#[derive(Debug)]
pub(crate) struct ByFieldId {
    columns: Arc<TableColumns>,
}

impl ByFieldId {
    /// Adapts to the columns of a table.
    pub(crate) fn new(columns: Arc<TableColumns>) -> Self {
        Self { columns }
    }
}

impl PhysicalExprAdapterFactory for ByFieldId {
    fn create(
        &self,
        _logical: SchemaRef,
        physical: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let by_id: BTreeMap<u32, usize> = physical
            .fields()
            .iter()
            .enumerate()
            .filter_map(|(i, f)| Some((field_id(f)?, i)))
            .collect();
        if by_id.is_empty() {
            return Err(DataFusionError::External(Box::new(
                lakebed::Error::corrupt("the file's columns carry no field ids")
                    .hint("it was not written by this lake; ingest it as input instead"),
            )));
        }
        let mut columns = BTreeMap::new();
        for column in &self.columns.fields {
            let read = match find_value(&physical, &by_id, column)? {
                None => missing(column.field.data_type())?,
                Some(value) => value,
            };
            columns.insert(column.scan_name.clone(), read);
        }
        // What the reader makes itself is there beside the file's columns, under our name for it.
        for field in self.columns.virtual_fields() {
            if let Ok(index) = physical.index_of(field.name()) {
                let made: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
                columns.insert(field.name().clone(), made);
            }
        }
        Ok(Arc::new(FileAdapter { columns, physical }))
    }
}

/// How the file yields the column; `None` where it has nothing of it.
fn find_value(
    physical: &Schema,
    by_id: &BTreeMap<u32, usize>,
    column: &FieldColumn,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let read = |id: u32, target: &FieldRef| {
        let index = by_id.get(&id);
        index.map(|&i| read_column(physical, i, target)).transpose()
    };
    let through = |input, cast: &Cast, wanted| -> Arc<dyn PhysicalExpr> {
        Arc::new(RetypeExpr {
            input,
            cast: cast.clone(),
            wanted,
            target: Arc::clone(&column.field),
        })
    };
    let own = read(column.id, &column.with_ids)?;
    match &column.source {
        ColumnSource::Rest(cast) => Ok(own.map(|own| through(own, cast, Wanted::Rest))),
        ColumnSource::Retyped(olds) if own.is_none() => {
            for old in olds {
                let id = field_id(&old.field).unwrap_or_default();
                if let Some(value) = read(id, &with_views(&old.field))? {
                    return Ok(Some(through(value, &old.cast, Wanted::Cast)));
                }
            }
            Ok(None)
        }
        ColumnSource::Own | ColumnSource::Retyped(_) => Ok(own),
    }
}

fn missing(data_type: &DataType) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(Literal::new(ScalarValue::try_new_null(
        data_type,
    )?)))
}

fn read_column(
    physical: &Schema,
    index: usize,
    target: &FieldRef,
) -> Result<Arc<dyn PhysicalExpr>> {
    let field = physical.field(index);
    let (from, to) = (field.data_type(), plain_type(target.data_type()));
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
    if *from == to {
        return Ok(column);
    }
    if !can_align(from, target.data_type()) {
        return exec_err!(
            "the file's column `{}` is {from}, which cannot be read as {to}",
            field.name()
        );
    }
    if to.is_nested() {
        return Ok(Arc::new(AlignExpr {
            input: column,
            target: Arc::clone(target),
        }));
    }
    Ok(Arc::new(CastExpr::new(column, to, None)))
}

/// Rewrites expressions for one file: column name of the table -> how the file yields it.
#[derive(Debug)]
struct FileAdapter {
    columns: BTreeMap<String, Arc<dyn PhysicalExpr>>,
    physical: SchemaRef,
}

impl FileAdapter {
    /// A member of a struct, where the file's column need not be read whole for it.
    fn find_member(&self, expr: &dyn PhysicalExpr) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some((name, path)) = member_path(expr) else {
            return Ok(None);
        };
        let Some(aligned) = self
            .columns
            .get(name)
            .and_then(|read| read.downcast_ref::<AlignExpr>())
        else {
            return Ok(None);
        };
        match aligned.struct_column() {
            Some(of) => read_member(expr, &of, &path, &self.physical),
            None => Ok(None),
        }
    }
}

impl PhysicalExprAdapter for FileAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        // What was put in a place is not looked at again, so a file column that bears the name
        // of another table column is not rewritten twice.
        let replaced = |read| Transformed::new(read, true, TreeNodeRecursion::Jump);
        expr.transform_down(|expr| {
            if let Some(member) = self.find_member(expr.as_ref())? {
                return Ok(replaced(member));
            }
            let Some(column) = expr.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expr));
            };
            match self.columns.get(column.name()) {
                Some(read) => Ok(replaced(Arc::clone(read))),
                None => exec_err!("`{}` is not a column of the table", column.name()),
            }
        })
        .data()
    }
}

/// A nested column of a file in the form of the table's column.
#[derive(Debug, Clone)]
struct AlignExpr {
    input: Arc<dyn PhysicalExpr>,
    /// Name and type of the table's column, with field ids.
    target: FieldRef,
}

impl AlignExpr {
    /// The file's column that it is made of, where it is a struct.
    fn struct_column(&self) -> Option<StructColumn> {
        let column = self.input.downcast_ref::<Column>()?;
        Some(StructColumn {
            column: Arc::new(column.clone()),
            target: Arc::clone(&self.target),
        })
    }
}

impl PartialEq for AlignExpr {
    fn eq(&self, other: &Self) -> bool {
        self.input.eq(&other.input) && self.target == other.target
    }
}

impl Eq for AlignExpr {}

impl Hash for AlignExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.target.hash(state);
    }
}

impl fmt::Display for AlignExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by_field_id({})", self.input)
    }
}

impl PhysicalExpr for AlignExpr {
    fn data_type(&self, _input_schema: &Schema) -> Result<DataType> {
        Ok(plain_type(self.target.data_type()))
    }

    fn nullable(&self, _input_schema: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.input.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(align(
            &array,
            self.target.data_type(),
        )?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return exec_err!("by_field_id takes one argument");
        };
        Ok(Arc::new(Self {
            input,
            target: Arc::clone(&self.target),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.input.fmt_sql(f)
    }
}
