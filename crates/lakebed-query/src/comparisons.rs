//! Comparisons that would be answered wrongly without a word are made exact, or refused.
//!
//! | beside | what would happen | what happens |
//! | --- | --- | --- |
//! | decimal, text | `price = '12.50001'` is rounded to the column's scale and finds 12.5000 | the text is a decimal of its own scale |
//! | date, number | `dt >= 20241101` is a day far in the future | refused |
//! | date, text with a time | `dt = '2024-03-01T10:00'` loses its time | both are timestamps |
//! | date, timestamp | both become nanoseconds, which end in the year 2262 | both become microseconds |

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, Operator, cast,
};
use datafusion::optimizer::AnalyzerRule;
use lakebed::Error;

use crate::analyze::map_expressions;

/// Digits that a decimal can hold.
const MOST_DIGITS: usize = 38;

/// The rule; it comes before types are coerced.
#[derive(Debug)]
pub(crate) struct Comparisons;

impl AnalyzerRule for Comparisons {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_expressions(plan, compare)
    }

    fn name(&self) -> &'static str {
        "comparisons"
    }
}

/// Functions whose arguments become of one type, as those of a comparison do.
const ALIKE: [&str; 7] = [
    "nullif", "coalesce", "greatest", "least", "nvl", "ifnull", "nvl2",
];

fn is_comparison(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(
            op,
            Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
        ),
        Expr::Between(_) | Expr::InList(_) => true,
        Expr::ScalarFunction(call) => ALIKE.contains(&call.name()),
        _ => false,
    }
}

/// What meets in a comparison.
#[derive(Debug, Default)]
struct Beside {
    dates: bool,
    integers: bool,
    decimals: bool,
    /// The zone of the first timestamp.
    timestamps: Option<Option<Arc<str>>>,
    times_in_texts: bool,
}

impl Beside {
    fn of(expr: &Expr, schema: &DFSchema) -> Result<Self> {
        let mut beside = Self::default();
        expr.apply_children(|child| {
            // A type that cannot be told is reported where it is needed.
            match child.get_type(schema) {
                Ok(DataType::Date32 | DataType::Date64) => beside.dates = true,
                Ok(DataType::Timestamp(_, zone)) => {
                    beside.timestamps.get_or_insert(zone);
                }
                Ok(kind) => {
                    beside.integers |= kind.is_integer();
                    beside.decimals |= kind.is_decimal();
                    beside.times_in_texts |= has_time(child);
                }
                Err(_) => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(beside)
    }
}

fn compare(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::Case(case) = expr {
        return compare_case(case, schema);
    }
    if !is_comparison(&expr) {
        return Ok(Transformed::no(expr));
    }
    let beside = Beside::of(&expr, schema)?;
    if beside.dates && beside.integers {
        return Err(DataFusionError::External(Box::new(
            Error::invalid(format!("`{expr}` compares a date with a number"))
                .hint("a date is written as a text, `'2024-03-01'`"),
        )));
    }
    if beside.decimals {
        return expr.map_children(|child| Ok(as_decimal(child)));
    }
    if beside.dates && (beside.timestamps.is_some() || beside.times_in_texts) {
        let zone = beside.timestamps.flatten();
        let to = DataType::Timestamp(TimeUnit::Microsecond, zone);
        return expr.map_children(|child| as_timestamp(child, schema, &to));
    }
    Ok(Transformed::no(expr))
}

/// `CASE price WHEN '12.50001' ...` compares, what follows `THEN` does not.
fn compare_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let kind = case.expr.as_ref().map(|e| e.get_type(schema));
    if !matches!(kind, Some(Ok(kind)) if kind.is_decimal()) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    let mut changed = false;
    for (when, _) in &mut case.when_then_expr {
        if let Some(value) = decimal_of(when) {
            **when = Expr::Literal(value, None);
            changed = true;
        }
    }
    Ok(match changed {
        true => Transformed::yes(Expr::Case(case)),
        false => Transformed::no(Expr::Case(case)),
    })
}

fn as_decimal(expr: Expr) -> Transformed<Expr> {
    match decimal_of(&expr) {
        Some(value) => Transformed::yes(Expr::Literal(value, None)),
        None => Transformed::no(expr),
    }
}

fn as_timestamp(expr: Expr, schema: &DFSchema, to: &DataType) -> Result<Transformed<Expr>> {
    let is_cast = match expr.get_type(schema) {
        Ok(kind @ (DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))) => kind != *to,
        Ok(kind) => kind.is_string() && matches!(expr, Expr::Literal(..)),
        Err(_) => false,
    };
    Ok(match is_cast {
        true => Transformed::yes(cast(expr, to.clone())),
        false => Transformed::no(expr),
    })
}

/// Whether the expression is a text that writes a day and a time.
fn has_time(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else {
        return false;
    };
    let text = value.try_as_str().flatten().unwrap_or_default().trim();
    text.len() > "2024-03-01".len() && text.contains('-') && text.contains(':')
}

/// The number that a literal text writes without an exponent.
fn decimal_of(expr: &Expr) -> Option<ScalarValue> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    let text = value.try_as_str()??.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.trim_start_matches(['+', '-']);
    let numeric = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let count = digits.len() + fraction.len();
    let plain = whole.len() - digits.len() <= 1 && numeric(digits) && numeric(fraction);
    if !plain || count == 0 || count > MOST_DIGITS {
        return None;
    }
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let precision = u8::try_from(count).ok()?;
    let scale = i8::try_from(fraction.len()).ok()?;
    Some(ScalarValue::Decimal128(Some(unscaled), precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::lit;

    #[test]
    fn texts_are_numbers_of_their_own_scale() {
        let number = |text: &str| decimal_of(&lit(text));
        let decimal = |v, p, s| Some(ScalarValue::Decimal128(Some(v), p, s));
        assert_eq!(number("12.50001"), decimal(1_250_001, 7, 5));
        assert_eq!(number("-0.5"), decimal(-5, 2, 1));
        assert_eq!(number(" +7 "), decimal(7, 1, 0));
        assert_eq!(number(".25"), decimal(25, 2, 2));
        for text in ["", ".", "-", "--1", "1e3", "1.2.3", "abc", "1 000", "NaN"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(number(&"9".repeat(39)), None);
        assert!(number(&"9".repeat(38)).is_some());
    }
}
