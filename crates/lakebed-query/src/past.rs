//! `as_of('clean.weibo', 7)`: a dataset as it was after a record of its log, or at an instant.
//!
//! The function is rewritten before anything is planned: it becomes a table of its own, whose name
//! carries the point in time, under the dataset's name as its alias. Its files come from the fold of
//! the log up to there; where a correction has moved one away since, the log tells where it lies.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor,
    Value, ValueWithSpan, VisitMut, VisitorMut,
};
use lakebed::log::AsOf;
use lakebed::name::DatasetRef;
use lakebed::{Error, Result};

/// The table function.
const FUNCTION: &str = "as_of";
/// Between a dataset's name and the point in time; no dataset's name holds it.
const MARK: char = '@';

/// Rewrites every `as_of(...)` of the statement.
pub(crate) fn rewrite(statement: &mut Statement) -> Result<()> {
    let broken = match statement {
        Statement::Statement(inner) => inner.visit(&mut Rewriter),
        Statement::Explain(explain) => return rewrite(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => {
            return Ok(());
        }
    };
    match broken {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The point in time that a table's name carries, and the name before it.
pub(crate) fn split_name(table: &str) -> Option<(&str, AsOf)> {
    let (name, point) = table.split_once(MARK)?;
    Some((name, point.parse().ok()?))
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table {
            name, args, alias, ..
        } = table
        else {
            return ControlFlow::Continue(());
        };
        let is_function = matches!(name.0.as_slice(), [ObjectNamePart::Identifier(i)]
            if i.value.eq_ignore_ascii_case(FUNCTION));
        let (true, Some(given)) = (is_function, args.as_ref()) else {
            return ControlFlow::Continue(());
        };
        let (dataset, point) = match read_args(&given.args) {
            Ok(read) => read,
            Err(error) => return ControlFlow::Break(error),
        };
        let marked = format!("{}{MARK}{point}", dataset.dataset);
        *name = ObjectName(vec![
            ObjectNamePart::Identifier(Ident::with_quote('"', dataset.layer.as_str())),
            ObjectNamePart::Identifier(Ident::with_quote('"', marked)),
        ]);
        *args = None;
        alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('"', dataset.dataset.as_str()),
            columns: Vec::new(),
            at: None,
        });
        ControlFlow::Continue(())
    }
}

fn usage() -> Error {
    Error::invalid("`as_of` takes a dataset and a point in time").hint(
        "write as_of('clean.weibo', 7) with a record's number, or as_of('clean.weibo', '2026-11-30T08:00:00+08:00')",
    )
}

fn read_args(args: &[FunctionArg]) -> Result<(DatasetRef, String)> {
    let [first, second] = args else {
        return Err(usage());
    };
    let (Some(Value::SingleQuotedString(name)), Some(point)) = (literal(first), literal(second))
    else {
        return Err(usage());
    };
    let dataset: DatasetRef = name.replacen('.', "/", 1).parse().map_err(|e: Error| {
        e.hint("a dataset is written 'layer.name' here, for example 'clean.weibo'")
    })?;
    let point = match point {
        Value::Number(digits, _) => digits,
        Value::SingleQuotedString(text) => text,
        _ => return Err(usage()),
    };
    // Refused here, while the words of the person are at hand.
    point.parse::<AsOf>()?;
    Ok((dataset, point))
}

fn literal(arg: &FunctionArg) -> Option<Value> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan {
            value, ..
        }))) => Some(value.clone()),
        _ => None,
    }
}
