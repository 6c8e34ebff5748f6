//! Literals with a fraction are exact decimals, except where they meet floats.
//!
//! `price = 0.1` on a decimal column must compare exactly, so the parser makes `0.1` a decimal. But
//! DataFusion would then bring a float column to a decimal too, which overflows from 1e15 and loses
//! small values. So a literal beside a float becomes a float before types are coerced, as does one
//! handed to a function that gets no decimal column.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::analyze::map_expressions;

/// The rule that turns decimal literals beside floats into floats.
#[derive(Debug)]
pub(crate) struct FloatLiterals;

impl AnalyzerRule for FloatLiterals {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_expressions(plan, meet_floats)
    }

    fn name(&self) -> &'static str {
        "float_literals"
    }
}

fn decimal_literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_decimal() => Some(value),
        _ => None,
    }
}

/// The node with its decimal literals as floats, where it mixes them with floats.
fn meet_floats(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_function = match &expr {
        Expr::ScalarFunction(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_) => true,
        Expr::BinaryExpr(_) | Expr::Between(_) | Expr::InList(_) | Expr::Case(_) => false,
        _ => return Ok(Transformed::no(expr)),
    };
    let (mut literals, mut floats, mut decimals) = (false, false, false);
    expr.apply_children(|child| {
        if decimal_literal(child).is_some() {
            literals = true;
        } else if let Ok(kind) = child.get_type(schema) {
            floats |= kind.is_floating();
            decimals |= kind.is_decimal();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !literals || !(floats || (is_function && !decimals)) {
        return Ok(Transformed::no(expr));
    }
    expr.map_children(|child| match decimal_literal(&child) {
        Some(value) => as_float(value).map(Transformed::yes),
        None => Ok(Transformed::no(child)),
    })
}

fn as_float(value: &ScalarValue) -> Result<Expr> {
    // By its digits: dividing the unscaled value by a power of ten could be off by one bit.
    let text = value.cast_to(&DataType::Utf8)?;
    let float = match &text {
        ScalarValue::Utf8(Some(digits)) => digits.parse::<f64>().ok(),
        _ => None,
    };
    Ok(Expr::Literal(ScalarValue::Float64(float), None))
}
