//! Which files of a dataset can hold a row that a query wants.
//!
//! Three sieves, each sound alone: the range of dates and the versions that the catalog is asked
//! for; predicates over the constant columns (`source`, `dt`, `schema_version`, and `_commit` and
//! `_file` where a query names them), evaluated per file, which is exact; and DataFusion's pruning
//! over the bounds that the catalog holds of other columns.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use lakebed::catalog::{FileRow, PartitionFilter};
use lakebed::name::DatasetRef;
use lakebed::time::BusinessDate;

use super::bounds::{Bound, FileBounds};
use super::columns::{CONSTANT_COLUMNS, DT_COLUMN, TableColumns, VERSION_COLUMN};
use super::constants::{constant_column, constant_columns};

/// Days since 1970-01-01 of 0001-01-01 and 9999-12-31.
const DAYS: (i32, i32) = (-719_162, 2_932_896);

/// Whether the filter can be decided from what is the same in all rows of a file.
///
/// A filter without columns can: `dt <> NULL` is simplified to NULL after it was left to the scan,
/// which must not forget it then.
pub(crate) fn is_partition_filter(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    let opaque = filter.exists(|e| {
        Ok(matches!(
            e,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
        ))
    });
    columns
        .iter()
        .all(|c| CONSTANT_COLUMNS.contains(&c.name.as_str()))
        && !opaque.unwrap_or(true)
        && !filter.is_volatile()
}

/// Days between which the filter may hold, both included.
fn days(filter: &Expr) -> (i32, i32) {
    let all = (i32::MIN, i32::MAX);
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => {
                let (a, b) = (days(left), days(right));
                (a.0.max(b.0), a.1.min(b.1))
            }
            Operator::Or => {
                let (a, b) = (days(left), days(right));
                (a.0.min(b.0), a.1.max(b.1))
            }
            op => match (column_day(left, right), column_day(right, left)) {
                (Some(day), _) => days_of(*op, day),
                (None, Some(day)) => op.swap().map_or(all, |op| days_of(op, day)),
                (None, None) => all,
            },
        },
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => (
            column_day(expr, low).unwrap_or(i32::MIN),
            column_day(expr, high).unwrap_or(i32::MAX),
        ),
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let listed: Option<Vec<i32>> = list.iter().map(|v| column_day(expr, v)).collect();
            let listed = listed.unwrap_or_default();
            match (listed.iter().min(), listed.iter().max()) {
                (Some(min), Some(max)) => (*min, *max),
                _ => all,
            }
        }
        _ => all,
    }
}

fn days_of(op: Operator, day: i32) -> (i32, i32) {
    match op {
        Operator::Eq | Operator::IsNotDistinctFrom => (day, day),
        Operator::Lt => (i32::MIN, day.saturating_sub(1)),
        Operator::LtEq => (i32::MIN, day),
        Operator::Gt => (day.saturating_add(1), i32::MAX),
        Operator::GtEq => (day, i32::MAX),
        _ => (i32::MIN, i32::MAX),
    }
}

/// The literal's day, where `column` is `dt`.
fn column_day(column: &Expr, literal: &Expr) -> Option<i32> {
    match (column, literal) {
        (Expr::Column(c), Expr::Literal(ScalarValue::Date32(Some(day)), _))
            if c.name == DT_COLUMN =>
        {
            Some(*day)
        }
        _ => None,
    }
}

/// Versions with which the filter may hold; `None` = any.
fn versions(filter: &Expr) -> Option<BTreeSet<i64>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => match (versions(left), versions(right)) {
                (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
                (a, b) => a.or(b),
            },
            Operator::Or => Some(versions(left)?.union(&versions(right)?).copied().collect()),
            Operator::Eq => column_version(left, right)
                .or_else(|| column_version(right, left))
                .map(|v| BTreeSet::from([v])),
            _ => None,
        },
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => list.iter().map(|v| column_version(expr, v)).collect(),
        _ => None,
    }
}

fn column_version(column: &Expr, literal: &Expr) -> Option<i64> {
    match (column, literal) {
        (Expr::Column(c), Expr::Literal(ScalarValue::Int64(Some(v)), _))
            if c.name == VERSION_COLUMN =>
        {
            Some(*v)
        }
        _ => None,
    }
}

/// What to ask the catalog for, given filters that must all hold; `None` where none can.
pub(crate) fn catalog_filter(dataset: &DatasetRef, filters: &[Expr]) -> Option<PartitionFilter> {
    let (mut from, mut to) = (i32::MIN, i32::MAX);
    let mut wanted: Option<BTreeSet<i64>> = None;
    for filter in filters {
        let (a, b) = days(filter);
        (from, to) = (from.max(a), to.min(b));
        wanted = match (wanted, versions(filter)) {
            (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
            (a, b) => a.or(b),
        };
    }
    let schema_versions: Vec<u32> = wanted
        .iter()
        .flatten()
        .filter_map(|v| u32::try_from(*v).ok())
        .collect();
    if from > to || from > DAYS.1 || to < DAYS.0 || (wanted.is_some() && schema_versions.is_empty())
    {
        return None;
    }
    let epoch: BusinessDate = "1970-01-01".parse().ok()?;
    let date = |day: i32| epoch.plus_days(i64::from(day));
    Some(PartitionFilter {
        dataset: Some(dataset.clone()),
        dt_from: (from > DAYS.0).then(|| date(from)),
        dt_to: (to < DAYS.1).then(|| date(to)),
        schema_versions,
        all_states: false,
    })
}

/// The files whose constant columns pass all filters, which name nothing else.
pub(crate) fn keep_partitions(
    session: &dyn Session,
    columns: &TableColumns,
    dataset: &DatasetRef,
    mut files: Vec<FileRow>,
    filters: &[&Expr],
) -> Result<Vec<FileRow>> {
    let mut fields = columns.constant_fields();
    fields.retain(|f| CONSTANT_COLUMNS.contains(&f.name().as_str()));
    let schema = Arc::new(Schema::new(fields.clone()));
    let df_schema = DFSchema::try_from(Arc::clone(&schema))?;
    for filter in filters {
        if files.is_empty() {
            break;
        }
        let expr = session.create_physical_expr((*filter).clone(), &df_schema)?;
        let arrays = constant_columns(&fields, dataset, &files);
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let passed = expr.evaluate(&batch)?.into_array(batch.num_rows())?;
        // What is not a truth value is a NULL without a type.
        let mut rows = passed.as_boolean_opt().into_iter().flatten();
        files.retain(|_| rows.next().flatten() == Some(true));
    }
    Ok(files)
}

/// What is known of the columns of all files: file -> file column -> bounds.
pub(crate) type Bounds = Vec<Vec<Option<FileBounds>>>;

struct FilesToPrune<'a> {
    columns: &'a TableColumns,
    dataset: &'a DatasetRef,
    files: &'a [FileRow],
    bounds: &'a [Vec<Option<FileBounds>>],
}

impl FilesToPrune<'_> {
    fn side(&self, column: &Column, side: fn(&FileBounds) -> &Option<Bound>) -> Option<ArrayRef> {
        if let Some(array) = constant_column(&column.name, self.dataset, self.files) {
            return Some(array);
        }
        let index = self.index(column)?;
        let null = ScalarValue::try_new_null(self.columns.fields[index].field.data_type()).ok()?;
        let values = self.bounds.iter().map(|of_file| {
            of_file[index]
                .as_ref()
                .and_then(|b| side(b).as_ref())
                .map_or_else(|| null.clone(), |b| b.value.clone())
        });
        ScalarValue::iter_to_array(values).ok()
    }

    fn index(&self, column: &Column) -> Option<usize> {
        self.columns
            .fields
            .iter()
            .position(|c| *c.field.name() == column.name)
            .filter(|&i| !self.columns.fields[i].field.data_type().is_nested())
    }
}

impl PruningStatistics for FilesToPrune<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.side(column, |b| &b.min)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.side(column, |b| &b.max)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        if CONSTANT_COLUMNS.contains(&column.name.as_str()) {
            return Some(Arc::new(UInt64Array::from(vec![0; self.files.len()])));
        }
        let index = self.index(column)?;
        Some(Arc::new(
            self.bounds
                .iter()
                .map(|of_file| of_file[index].as_ref().and_then(|b| b.null_count))
                .collect::<UInt64Array>(),
        ))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_iter_values(
            self.files.iter().map(|f| f.row_count),
        )))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// Removes files (and their bounds) in which no row can pass all filters.
pub(crate) fn prune_files(
    session: &dyn Session,
    columns: &TableColumns,
    dataset: &DatasetRef,
    found: &mut (Vec<FileRow>, Bounds),
    filters: &[&Expr],
) -> Result<()> {
    let df_schema = DFSchema::try_from(Arc::clone(&columns.schema))?;
    for filter in filters {
        let expr = session.create_physical_expr((*filter).clone(), &df_schema)?;
        // What the pruner does not understand prunes nothing.
        let built = PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(&columns.schema))
            .try_build(expr);
        let Ok(predicate) = built else {
            continue;
        };
        let kept = predicate.prune(&FilesToPrune {
            columns,
            dataset,
            files: &found.0,
            bounds: &found.1,
        })?;
        let mut keep = kept.iter();
        found.0.retain(|_| keep.next().copied().unwrap_or(true));
        let mut keep = kept.iter();
        found.1.retain(|_| keep.next().copied().unwrap_or(true));
    }
    Ok(())
}

/// The ids of the file columns that the expressions name, nested ones aside.
pub(crate) fn named_ids(columns: &TableColumns, filters: &[&Expr]) -> BTreeSet<u32> {
    let mut ids = BTreeSet::new();
    for filter in filters {
        let mut names: Vec<&str> = filter
            .column_refs()
            .iter()
            .map(|c| c.name.as_str())
            .collect();
        names.sort_unstable();
        for name in names {
            if let Some(column) = columns.field_named(name)
                && !column.field.data_type().is_nested()
            {
                ids.insert(column.id);
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    fn day(n: i32) -> Expr {
        lit(ScalarValue::Date32(Some(n)))
    }

    fn range(filters: &[Expr]) -> Option<(Option<String>, Option<String>, Vec<u32>)> {
        let f = catalog_filter(&"clean/w".parse().unwrap(), filters)?;
        Some((
            f.dt_from.map(|d| d.to_string()),
            f.dt_to.map(|d| d.to_string()),
            f.schema_versions,
        ))
    }

    #[test]
    fn ranges_are_never_too_narrow() {
        let some = |t: &str| Some(t.to_owned());
        let dt = || col(DT_COLUMN);
        assert_eq!(range(&[]), Some((None, None, vec![])));
        assert_eq!(
            range(&[dt().eq(day(0))]),
            Some((some("1970-01-01"), some("1970-01-01"), vec![]))
        );
        assert_eq!(
            range(&[day(0).lt(dt()), dt().lt_eq(day(3))]),
            Some((some("1970-01-02"), some("1970-01-04"), vec![]))
        );
        assert_eq!(
            range(&[dt().eq(day(5)).or(dt().lt(day(-1)))]),
            Some((None, some("1970-01-06"), vec![]))
        );
        assert_eq!(
            range(&[dt().eq(day(5)).or(col("x").eq(lit(1_i64)))]),
            Some((None, None, vec![]))
        );
        assert_eq!(range(&[dt().not_eq(day(5))]), Some((None, None, vec![])));
        assert_eq!(
            range(&[dt().in_list(vec![day(4), day(2)], true)]),
            Some((None, None, vec![]))
        );
        assert_eq!(range(&[dt().eq(day(1)), dt().eq(day(2))]), None);
        assert_eq!(
            range(&[dt().between(day(i32::MIN), day(1))]),
            Some((None, some("1970-01-02"), vec![]))
        );
    }

    #[test]
    fn no_version_left_means_no_file_and_not_every_file() {
        let v = || col(VERSION_COLUMN);
        assert_eq!(
            range(&[v().in_list(vec![lit(1_i64), lit(3_i64)], false)]).map(|r| r.2),
            Some(vec![1, 3])
        );
        assert_eq!(range(&[v().eq(lit(1_i64)), v().eq(lit(2_i64))]), None);
        assert_eq!(range(&[v().eq(lit(-1_i64))]), None);
        assert_eq!(
            range(&[v().eq(lit(1_i64)).or(col("x").is_null())]).map(|r| r.2),
            Some(vec![])
        );
    }

    #[test]
    fn only_constant_columns_make_a_partition_filter() {
        assert!(is_partition_filter(&col(DT_COLUMN).eq(day(1))));
        assert!(!is_partition_filter(&col("x").eq(day(1))));
        assert!(is_partition_filter(&lit(ScalarValue::Boolean(None))));
    }
}
