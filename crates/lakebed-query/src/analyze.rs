//! Walks the expressions of a plan before it is optimized.

use std::cell::Cell;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The plan with `change` done to each expression, from the leaves up; columns keep their names.
///
/// `change` gets the schema that the expression is evaluated over.
pub(crate) fn map_expressions(
    plan: LogicalPlan,
    change: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let changes = Cell::new(false);
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let changed = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|e| change(e, &schema))?;
            Ok(changed.update_data(|e| name.restore(e)))
        })?;
        changes.set(changes.get() || changed.transformed);
        // Inputs may have changed their types below, even where nothing changed here.
        match changes.get() {
            true => changed.map_data(LogicalPlan::recompute_schema),
            false => Ok(changed),
        }
    })
    .map(|t| t.data)
}
