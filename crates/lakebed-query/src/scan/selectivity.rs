//! Whether a filter is worth evaluating inside the reader.
//!
//! The reader evaluates a filter over its columns first and then reads of the other columns only
//! what passed: a gain where little passes, a loss where most does, since what passed lies scattered, and
//! nothing but a detour where no other column is read. How much passes is guessed from the catalog's
//! bounds, as if values were spread evenly between them (decision 0011).

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ColumnStatistics;
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{
    AnalysisContext, PhysicalExpr, analyze, conjunction_opt, split_conjunction,
};

/// The share of rows up to which the reader evaluates.
const FEW: f64 = 0.15;
/// What passes a filter of which the catalog tells nothing.
const UNKNOWN: f64 = 0.1;

/// Whether at most a few rows pass the filters, which name columns of `schema`.
pub(super) fn few_pass(
    filters: &[Arc<dyn PhysicalExpr>],
    schema: &SchemaRef,
    columns: &[ColumnStatistics],
) -> bool {
    let mut ranges = Vec::new();
    let mut share = 1.0;
    for filter in filters.iter().flat_map(split_conjunction) {
        match is_bounded(filter, schema, columns) {
            true => ranges.push(Arc::clone(filter)),
            false => share *= UNKNOWN,
        }
    }
    if let Some(range) = conjunction_opt(ranges) {
        share *= share_of(&range, schema, columns).unwrap_or(UNKNOWN);
    }
    share <= FEW
}

/// Whether the filter compares columns whose bounds are known.
fn is_bounded(
    filter: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    columns: &[ColumnStatistics],
) -> bool {
    let named = collect_columns(filter);
    !named.is_empty()
        && check_support(filter, schema)
        && named.iter().all(|c| {
            columns.get(c.index()).is_some_and(|known| {
                known.min_value.get_value().is_some() && known.max_value.get_value().is_some()
            })
        })
}

fn share_of(
    range: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    columns: &[ColumnStatistics],
) -> Option<f64> {
    let context = AnalysisContext::try_from_statistics(schema, columns).ok()?;
    analyze(range, context, schema).ok()?.selectivity
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    use datafusion::common::ScalarValue;
    use datafusion::common::stats::Precision;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;

    fn known(min: ScalarValue, max: ScalarValue) -> ColumnStatistics {
        ColumnStatistics {
            min_value: Precision::Exact(min),
            max_value: Precision::Inexact(max),
            ..ColumnStatistics::new_unknown()
        }
    }

    fn at(micros: i64) -> ScalarValue {
        ScalarValue::TimestampMicrosecond(Some(micros), None)
    }

    /// `n` from 0 to 999, `at` from 0 to a million, texts and a price of which nothing is known.
    fn table() -> (SchemaRef, Vec<ColumnStatistics>) {
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("city", DataType::Utf8View, true),
            Field::new("price", DataType::Int64, true),
        ]);
        let columns = vec![
            known(ScalarValue::from(0_i64), ScalarValue::from(999_i64)),
            known(at(0), at(1_000_000)),
            ColumnStatistics::new_unknown(),
            ColumnStatistics::new_unknown(),
        ];
        (Arc::new(schema), columns)
    }

    fn compare(name: &str, op: Operator, value: ScalarValue) -> Arc<dyn PhysicalExpr> {
        let (schema, _) = table();
        binary(col(name, &schema).unwrap(), op, lit(value), &schema).unwrap()
    }

    fn few(filters: &[Arc<dyn PhysicalExpr>]) -> bool {
        let (schema, columns) = table();
        few_pass(filters, &schema, &columns)
    }

    #[test]
    fn ranges_are_judged_by_the_bounds() {
        let below = |n: i64| compare("n", Operator::Lt, n.into());
        assert!(few(&[below(100)]));
        assert!(!few(&[below(500)]));
        assert!(few(&[compare("n", Operator::Eq, 7_i64.into())]));
        // Both ends of one range count together, in one filter or in two.
        let from = compare("at", Operator::GtEq, at(500_000));
        let to = compare("at", Operator::Lt, at(600_000));
        assert!(!few(std::slice::from_ref(&from)));
        assert!(few(&[Arc::clone(&from), Arc::clone(&to)]));
        let (schema, _) = table();
        assert!(few(&[binary(from, Operator::And, to, &schema).unwrap()]));
        // Beyond the bounds: nothing passes.
        assert!(few(&[compare("n", Operator::Gt, 5_000_i64.into())]));
    }

    #[test]
    fn what_nobody_knows_lets_few_pass() {
        let city = compare(
            "city",
            Operator::Eq,
            ScalarValue::Utf8View(Some("台北市".to_owned())),
        );
        assert!(few(std::slice::from_ref(&city)));
        assert!(few(&[compare("price", Operator::Gt, 1_i64.into())]));
        assert!(few(&[city, compare("n", Operator::Lt, 999_i64.into())]));
    }
}
