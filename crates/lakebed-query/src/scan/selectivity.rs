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
