//! Aggregates over columns that are constant in a file are computed over one row a file.
//!
//! ```text
//! Aggregate: dt, count(*)              Projection: dt, 0 where there is no sum
//!   ... dt ...                  ->       Aggregate: dt, sum(rows of the file)
//!     TableScan: source, dt                ... dt, rows of the file ...
//!                                            TableScan of the files: dt, rows of the file
//! ```
//!
//! `DISTINCT` is an aggregate without functions. What comes out the same however often a row is
//! repeated (MIN, MAX, anything DISTINCT) is left as it is; COUNT becomes a sum. Between the
//! aggregate and the scan there may be projections, filters, aliases and unions; an expression that
//! may differ from row to row (`random()`) stops the rule. What comes out is what reading would give
//! (QRY-3).

use std::sync::Arc;

use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, Filter, LogicalPlan, Projection, SubqueryAlias, TableScan,
    TableScanBuilder, Union, lit, when,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::scan::{LakeTable, PerFileTable, ROWS_COLUMN};

/// The rule.
#[derive(Debug)]
pub(crate) struct AggregateByFile;

impl OptimizerRule for AggregateByFile {
    fn name(&self) -> &str {
        "aggregate_by_file"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let found = match &plan {
            LogicalPlan::Aggregate(aggregate) => aggregate_files(aggregate)?,
            _ => None,
        };
        Ok(match found {
            Some(by_file) => Transformed::yes(by_file),
            None => Transformed::no(plan),
        })
    }
}

/// What becomes of an aggregate function.
enum Kind {
    /// It does not matter how often a row is repeated.
    AsItIs,
    /// It counts the rows that this holds for, all where there is no condition.
    Count(Option<Expr>),
}

/// Whether the expression has one value for all rows that are equal in the columns it names.
fn is_plain(expr: &Expr) -> bool {
    let opaque = expr.exists(|e| {
        Ok(matches!(
            e,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::WindowFunction(_)
        ))
    });
    !expr.is_volatile() && !opaque.unwrap_or(true)
}

/// `None` where the function's value depends on more than which rows there are and how often.
fn kind_of(expr: &Expr) -> Option<Kind> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr.clone().unalias() else {
        return None;
    };
    if params.distinct {
        return Some(Kind::AsItIs);
    }
    match func.name() {
        "min" | "max" | "bool_and" | "bool_or" | "approx_distinct" => Some(Kind::AsItIs),
        "count" => {
            let wanted = params
                .args
                .into_iter()
                .filter(|arg| !matches!(arg, Expr::Literal(value, _) if !value.is_null()))
                .map(Expr::is_not_null);
            let filter = params.filter.map(|filter| *filter);
            Some(Kind::Count(wanted.chain(filter).reduce(Expr::and)))
        }
        _ => None,
    }
}

/// The same answer from one row a file; `None` where that is not possible.
fn aggregate_files(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let exprs = || aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
    if !exprs().all(is_plain) {
        return Ok(None);
    }
    let kinds: Option<Vec<Kind>> = aggregate.aggr_expr.iter().map(kind_of).collect();
    let Some(kinds) = kinds else {
        return Ok(None);
    };
    let counts = kinds.iter().any(|kind| matches!(kind, Kind::Count(_)));
    let Some(input) = files_of(&aggregate.input, counts)? else {
        return Ok(None);
    };
    if !counts {
        return Ok(Some(LogicalPlan::Aggregate(
            Aggregate::try_new_with_schema(
                Arc::new(input),
                aggregate.group_expr.clone(),
                aggregate.aggr_expr.clone(),
                Arc::clone(&aggregate.schema),
            )?,
        )));
    }
    sum_rows(aggregate, kinds, input).map(Some)
}

/// The aggregate with its counts as sums of the last column of `input`.
fn sum_rows(aggregate: &Aggregate, kinds: Vec<Kind>, input: LogicalPlan) -> Result<LogicalPlan> {
    let first = aggregate.schema.fields().len() - kinds.len();
    let mut outer: Vec<Expr> = aggregate
        .schema
        .columns()
        .into_iter()
        .map(Expr::from)
        .collect();
    let mut inner = aggregate.aggr_expr.clone();
    for (i, kind) in kinds.into_iter().enumerate() {
        let Kind::Count(condition) = kind else {
            continue;
        };
        let (qualifier, field) = aggregate.schema.qualified_field(first + i);
        let rows = sum(last_column(&input));
        let rows = match condition {
            Some(condition) => rows.filter(condition).build()?,
            None => rows,
        };
        inner[i] = rows.alias_qualified(qualifier.cloned(), field.name());
        let total = outer[first + i].clone();
        let or_none = when(total.clone().is_null(), lit(0_i64)).otherwise(total)?;
        outer[first + i] = or_none.alias_qualified(qualifier.cloned(), field.name());
    }
    let summed = Aggregate::try_new(Arc::new(input), aggregate.group_expr.clone(), inner)?;
    let summed = Arc::new(LogicalPlan::Aggregate(summed));
    Ok(LogicalPlan::Projection(Projection::try_new(outer, summed)?))
}

fn last_column(plan: &LogicalPlan) -> Expr {
    let schema = plan.schema();
    let (qualifier, field) = schema.qualified_field(schema.fields().len() - 1);
    Expr::Column(Column::new(qualifier.cloned(), field.name()))
}

/// The plan over one row a file; with the file's rows as the last column where `with_rows`.
fn files_of(plan: &LogicalPlan, with_rows: bool) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::TableScan(scan) => scan_files(scan, with_rows),
        LogicalPlan::SubqueryAlias(named) => {
            let Some(input) = files_of(&named.input, with_rows)? else {
                return Ok(None);
            };
            let named = SubqueryAlias::try_new(Arc::new(input), named.alias.clone())?;
            Ok(Some(LogicalPlan::SubqueryAlias(named)))
        }
        LogicalPlan::Filter(filter) if is_plain(&filter.predicate) => {
            let Some(input) = files_of(&filter.input, with_rows)? else {
                return Ok(None);
            };
            let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input))?;
            Ok(Some(LogicalPlan::Filter(filter)))
        }
        LogicalPlan::Projection(projection)
            if projection.expr.iter().all(is_plain) && !names_rows(projection) =>
        {
            let Some(input) = files_of(&projection.input, with_rows)? else {
                return Ok(None);
            };
            let mut exprs = projection.expr.clone();
            if with_rows {
                exprs.push(last_column(&input));
            }
            let projection = Projection::try_new(exprs, Arc::new(input))?;
            Ok(Some(LogicalPlan::Projection(projection)))
        }
        LogicalPlan::Union(union) => union_files(union, with_rows),
        _ => Ok(None),
    }
}

/// Whether the query itself calls a column what the rule would call the files' rows.
fn names_rows(projection: &Projection) -> bool {
    let mut fields = projection.schema.fields().iter();
    fields.any(|field| field.name() == ROWS_COLUMN)
}

fn union_files(union: &Union, with_rows: bool) -> Result<Option<LogicalPlan>> {
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        match files_of(input, with_rows)? {
            Some(input) => inputs.push(Arc::new(input)),
            None => return Ok(None),
        }
    }
    let union = LogicalPlan::Union(Union {
        inputs,
        schema: Arc::clone(&union.schema),
    });
    union.recompute_schema().map(Some)
}

fn scan_files(scan: &TableScan, with_rows: bool) -> Result<Option<LogicalPlan>> {
    let Ok(provider) = source_as_provider(&scan.source) else {
        return Ok(None);
    };
    let Some(table) = provider.downcast_ref::<LakeTable>() else {
        return Ok(None);
    };
    let files = PerFileTable::new(table.clone());
    let all = || (0..scan.source.schema().fields().len()).collect();
    let selected = scan.projection.clone().unwrap_or_else(all);
    let constant = |filter: &Expr| filter.column_refs().iter().all(|c| files.has(&c.name));
    let (Some(mut columns), None, true) = (
        files.find_columns(&selected),
        scan.fetch,
        scan.filters.iter().all(constant),
    ) else {
        return Ok(None);
    };
    if with_rows {
        columns.push(files.rows_column());
    }
    let scan = TableScanBuilder::new(scan.table_name.clone(), provider_as_source(Arc::new(files)))
        .with_projection(Some(columns))
        .with_filters(scan.filters.clone())
        .build()?;
    Ok(Some(LogicalPlan::TableScan(scan)))
}
