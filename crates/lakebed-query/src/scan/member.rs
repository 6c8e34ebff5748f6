//! A member of a struct as the file yields it, so that a scan decodes that member alone.
//!
//! The reader finds out which leaves of a struct an expression needs only where the member is taken
//! from the file's column itself, not from what [`super::align`] makes of it.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::align::position;
use super::columns::plain_type;

/// A column of the table that is a column of the file with members in another form.
#[derive(Debug, Clone)]
pub(super) struct StructColumn {
    /// The file's column.
    pub(super) column: Arc<Column>,
    /// Name and type of the table's column, with field ids.
    pub(super) target: FieldRef,
}

/// The table's name of a column and the path of names within it, where `expr` takes a member.
pub(super) fn member_path(expr: &dyn PhysicalExpr) -> Option<(&str, Vec<&str>)> {
    let call = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr)?;
    let (first, names) = call.args().split_first()?;
    let path = names.iter().map(|name| {
        let name = name.downcast_ref::<Literal>()?;
        name.value().try_as_str().flatten()
    });
    let path: Vec<&str> = path.collect::<Option<_>>()?;
    match first.downcast_ref::<Column>() {
        Some(column) => Some((column.name(), path)),
        None => {
            let (column, mut whole) = member_path(first.as_ref())?;
            whole.extend(path);
            Some((column, whole))
        }
    }
}

/// How the file yields the member at `path`; `None` where the whole column has to be read for it.
pub(super) fn read_member(
    expr: &dyn PhysicalExpr,
    of: &StructColumn,
    path: &[&str],
    physical: &Schema,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let Some(call) = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr) else {
        return Ok(None);
    };
    let mut target = &of.target;
    let mut from = physical.field(of.column.index()).data_type();
    let mut args: Vec<Arc<dyn PhysicalExpr>> = vec![Arc::clone(&of.column) as _];
    for name in path {
        let (DataType::Struct(wanted), DataType::Struct(there)) = (target.data_type(), from) else {
            return Ok(None);
        };
        let Some((_, member)) = wanted.find(name) else {
            return Ok(None);
        };
        let Some(index) = position(there, member) else {
            let null = ScalarValue::try_new_null(call.return_type())?;
            return Ok(Some(Arc::new(Literal::new(null))));
        };
        args.push(Arc::new(Literal::new(ScalarValue::from(
            there[index].name().as_str(),
        ))));
        (target, from) = (member, there[index].data_type());
    }
    if from.is_nested() {
        return Ok(None);
    }
    let fun = Arc::new(call.fun().clone());
    let config = Arc::new(call.config_options().clone());
    let member: Arc<dyn PhysicalExpr> =
        Arc::new(ScalarFunctionExpr::try_new(fun, args, physical, config)?);
    let to = plain_type(target.data_type());
    Ok(Some(match *from == to {
        true => member,
        false => Arc::new(CastExpr::new(member, to, None)),
    }))
}
