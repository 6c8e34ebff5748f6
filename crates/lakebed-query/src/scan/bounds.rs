//! What the catalog knows of the values of a column in a file, and in all files of a scan.
//!
//! Bounds of floats are not used: NaN is never a bound, yet SQL orders it above all numbers. Bounds
//! of decimals are brought to the table's scale. Bounds of a field that was retyped since say nothing. A field that a file's schema version does not
//! declare is NULL in all its rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ColumnStatistics;
use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use lakebed::catalog::{ColumnStats, FileRow, StatValue};
use lakebed::registry::ColumnSource;
use lakebed::spec::{EXTRA_FIELD_ID, FieldType};

use super::columns::{FieldColumn, TableColumns, field_id};

/// A bound and whether it is a value of the column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// The value, in the table's type.
    pub(crate) value: ScalarValue,
    /// Whether it occurs.
    pub(crate) exact: bool,
}

/// What is known of a column in one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FileBounds {
    /// Rows that are NULL; `None` = unknown.
    pub(crate) null_count: Option<u64>,
    /// At most every value; `None` = unknown, or no value.
    pub(crate) min: Option<Bound>,
    /// At least every value.
    pub(crate) max: Option<Bound>,
}

/// The statistics of the files of a scan: file id -> field id -> statistics.
pub(crate) type StatsByFile = BTreeMap<String, BTreeMap<u32, ColumnStats>>;

fn decimal(value: i128, from_scale: u8, precision: u8, scale: i8) -> Option<ScalarValue> {
    let steps = u32::try_from(i16::from(scale) - i16::from(from_scale)).ok()?;
    let value = value.checked_mul(10_i128.checked_pow(steps)?)?;
    let limit = 10_u128.checked_pow(u32::from(precision))?;
    (value.unsigned_abs() < limit).then_some(ScalarValue::Decimal128(Some(value), precision, scale))
}

/// The stored bound as a value of the table's type; `None` where it cannot be used.
fn scalar(value: &StatValue, stored_as: &FieldType, to: &DataType) -> Option<ScalarValue> {
    match (value, to) {
        (StatValue::Int(v), DataType::Int64) => Some(ScalarValue::Int64(Some(*v))),
        (StatValue::Int(v), DataType::Boolean) => Some(ScalarValue::Boolean(Some(*v != 0))),
        (StatValue::Int(v), DataType::Date32) => {
            Some(ScalarValue::Date32(Some(i32::try_from(*v).ok()?)))
        }
        (StatValue::Int(v), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            Some(ScalarValue::TimestampMicrosecond(Some(*v), zone.clone()))
        }
        (StatValue::Decimal(v), DataType::Decimal128(precision, scale)) => {
            let FieldType::Decimal {
                scale: from_scale, ..
            } = stored_as
            else {
                return None;
            };
            decimal(*v, *from_scale, *precision, *scale)
        }
        (StatValue::Text(v), DataType::Utf8) => Some(ScalarValue::Utf8(Some(v.clone()))),
        (StatValue::Text(v), DataType::Utf8View) => Some(ScalarValue::Utf8View(Some(v.clone()))),
        (
            StatValue::Int(_) | StatValue::Float(_) | StatValue::Decimal(_) | StatValue::Text(_),
            _,
        ) => None,
    }
}

/// Whether the column's values in a file are not those that the catalog knows: old values of a
/// retyped field are cast (and compare otherwise), or are partly left out (QRY-3).
fn has_other_bounds(column: &FieldColumn, declares: impl Fn(u32) -> bool) -> bool {
    match &column.source {
        ColumnSource::Own => false,
        ColumnSource::Rest(_) => declares(column.id),
        ColumnSource::Retyped(olds) => olds
            .iter()
            .any(|old| field_id(&old.field).is_some_and(&declares)),
    }
}

/// What is known of `column` in `file`.
pub(crate) fn file_bounds(
    columns: &TableColumns,
    column: &FieldColumn,
    file: &FileRow,
    stats: &StatsByFile,
) -> FileBounds {
    let Some(spec) = columns.versions.get(&file.key.schema_version) else {
        return FileBounds::default();
    };
    let declares = |id: u32| spec.fields.iter().find(|f| f.id == id);
    if has_other_bounds(column, |id| declares(id).is_some()) {
        return FileBounds::default();
    }
    let stored_as = match declares(column.id) {
        Some(field) => &field.field_type,
        None if column.id == EXTRA_FIELD_ID => &FieldType::Json,
        None => {
            return FileBounds {
                null_count: Some(file.row_count),
                ..FileBounds::default()
            };
        }
    };
    let Some(known) = stats.get(&file.id).and_then(|s| s.get(&column.id)) else {
        return FileBounds::default();
    };
    let to = column.field.data_type();
    let bound = |value: &Option<StatValue>, exact| {
        let value = scalar(value.as_ref()?, stored_as, to)?;
        Some(Bound { value, exact })
    };
    FileBounds {
        null_count: known.null_count,
        min: bound(&known.min, known.min_exact),
        max: bound(&known.max, known.max_exact),
    }
}

fn precision(bound: Option<&Bound>) -> Precision<ScalarValue> {
    match bound {
        None => Precision::Absent,
        Some(b) if b.exact => Precision::Exact(b.value.clone()),
        Some(b) => Precision::Inexact(b.value.clone()),
    }
}

fn count(n: Option<u64>) -> Precision<usize> {
    n.and_then(|n| usize::try_from(n).ok())
        .map_or(Precision::Absent, Precision::Exact)
}

fn column_statistics(bounds: &FileBounds) -> ColumnStatistics {
    let mut stats = ColumnStatistics::new_unknown();
    stats.null_count = count(bounds.null_count);
    stats.min_value = precision(bounds.min.as_ref());
    stats.max_value = precision(bounds.max.as_ref());
    stats
}

/// Which of two bounds of two files bounds both; `keep` is what the better one compares as.
fn better(a: Bound, b: Bound, keep: Ordering) -> Option<Bound> {
    match a.value.partial_cmp(&b.value)? {
        Ordering::Equal => Some(Bound {
            exact: a.exact || b.exact,
            ..a
        }),
        order if order == keep => Some(a),
        _ => Some(b),
    }
}

/// One side of a column over all files: `None` = unknown, or no value anywhere.
fn overall<'a>(
    files: impl Iterator<Item = (u64, &'a FileBounds, Option<&'a Bound>)>,
    keep: Ordering,
) -> Option<Bound> {
    let mut best: Option<Bound> = None;
    for (rows, bounds, bound) in files {
        if bounds.null_count == Some(rows) {
            continue;
        }
        let bound = bound?.clone();
        best = Some(match best {
            None => bound,
            Some(best) => better(best, bound, keep)?,
        });
    }
    best
}

/// What is known of a column over all files of a scan.
pub(crate) fn overall_statistics(
    files: &[FileRow],
    bounds: &[Vec<Option<FileBounds>>],
    column: usize,
) -> ColumnStatistics {
    let known: Option<Vec<(u64, &FileBounds)>> = files
        .iter()
        .zip(bounds)
        .filter(|(file, _)| file.row_count > 0)
        .map(|(file, of_file)| Some((file.row_count, of_file.get(column)?.as_ref()?)))
        .collect();
    let Some(known) = known else {
        return ColumnStatistics::new_unknown();
    };
    let nulls: Option<u64> = known.iter().map(|(_, b)| b.null_count).sum();
    let min = overall(
        known.iter().map(|&(n, b)| (n, b, b.min.as_ref())),
        Ordering::Less,
    );
    let max = overall(
        known.iter().map(|&(n, b)| (n, b, b.max.as_ref())),
        Ordering::Greater,
    );
    column_statistics(&FileBounds {
        null_count: nulls,
        min,
        max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_widened_or_not_used() {
        let to = DataType::Decimal128(6, 4);
        let stored = FieldType::Decimal {
            precision: 5,
            scale: 2,
        };
        assert_eq!(
            scalar(&StatValue::Decimal(1250), &stored, &to),
            Some(ScalarValue::Decimal128(Some(125_000), 6, 4))
        );
        assert_eq!(scalar(&StatValue::Decimal(12_500), &stored, &to), None);
        assert_eq!(
            scalar(
                &StatValue::Float(1.0),
                &FieldType::Float,
                &DataType::Float64
            ),
            None
        );
    }

    #[test]
    fn an_unknown_file_makes_the_whole_unknown_and_an_all_null_file_does_not() {
        let some = |v: i64, exact| {
            Some(Bound {
                value: ScalarValue::Int64(Some(v)),
                exact,
            })
        };
        let known = FileBounds {
            null_count: Some(0),
            min: some(3, true),
            max: some(9, false),
        };
        let nulls = FileBounds {
            null_count: Some(5),
            ..FileBounds::default()
        };
        let unknown = FileBounds::default();
        let min = |all: &[(u64, &FileBounds)]| {
            overall(
                all.iter().map(|&(n, b)| (n, b, b.min.as_ref())),
                Ordering::Less,
            )
        };
        assert_eq!(min(&[(5, &known), (5, &nulls)]), some(3, true));
        assert_eq!(min(&[(5, &known), (6, &nulls)]), None);
        assert_eq!(min(&[(5, &known), (5, &unknown)]), None);
        let lower = FileBounds {
            min: some(1, false),
            ..known.clone()
        };
        assert_eq!(min(&[(5, &known), (5, &lower)]), some(1, false));
    }
}
