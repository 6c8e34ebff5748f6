//! The bounds of a column, from the statistics of its chunks.
//!
//! Bounds may always be wider than the values, never narrower; where that is not certain there is no
//! bound. So: every row group must have one (unless it holds NULLs alone); NaN is no bound; a zero
//! bound of a float stands for both zeros; unsigned numbers, times and raw bytes have none. A float
//! bound is never called exact, since footers do not say whether NaN is among the values.

use std::cmp::Ordering;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

use crate::catalog::footer::{Chunk, Order};
use crate::catalog::packed::Value;
use crate::catalog::thrift::{Damage, Read};

/// How the bounds of a column are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Signed numbers, bool, date, timestamp in microseconds.
    Int,
    Float,
    Decimal,
    Text,
    /// Bounds mean nothing here.
    Unordered,
}

impl Class {
    /// The kind of its bounds, as the catalog says it.
    pub(super) fn kind(self) -> Option<&'static str> {
        match self {
            Self::Int => Some("int"),
            Self::Float => Some("float"),
            Self::Decimal => Some("decimal"),
            Self::Text => Some("text"),
            Self::Unordered => None,
        }
    }

    pub(super) fn of(descriptor: &ColumnDescriptor) -> Self {
        let physical = descriptor.physical_type();
        match descriptor.logical_type_ref() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Self::Text,
            Some(LogicalType::Decimal(_)) => Self::Decimal,
            Some(LogicalType::Date) => Self::Int,
            Some(LogicalType::Integer(int)) if int.is_signed => Self::Int,
            Some(LogicalType::Timestamp(t)) if t.unit == TimeUnit::MICROS => Self::Int,
            Some(_) => Self::Unordered,
            None => match descriptor.converted_type() {
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Self::Text,
                ConvertedType::DECIMAL => Self::Decimal,
                ConvertedType::DATE
                | ConvertedType::TIMESTAMP_MICROS
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64 => Self::Int,
                ConvertedType::NONE => match physical {
                    Type::BOOLEAN | Type::INT32 | Type::INT64 => Self::Int,
                    Type::FLOAT | Type::DOUBLE => Self::Float,
                    Type::INT96 | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => Self::Unordered,
                },
                _ => Self::Unordered,
            },
        }
    }
}

/// A bound over the row groups seen so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Bound<'a> {
    /// No row group had values.
    #[default]
    Empty,
    Known {
        value: Value<'a>,
        exact: bool,
    },
    Unknown,
}

impl<'a> Bound<'a> {
    /// Takes in the bound of one more row group; `keep` is the order in which the old one stays.
    fn add(&mut self, next: Option<(Value<'a>, bool)>, keep: Ordering) {
        *self = match (*self, next) {
            (Self::Unknown, _) | (_, None) => Self::Unknown,
            (Self::Empty, Some((value, exact))) => Self::Known { value, exact },
            (
                Self::Known {
                    value: old,
                    exact: a,
                },
                Some((new, b)),
            ) => match compare(old, new) {
                None => Self::Unknown,
                Some(order) => Self::Known {
                    value: if order == keep { old } else { new },
                    exact: a && b,
                },
            },
        };
    }

    pub(super) fn finish(self) -> (Option<Value<'a>>, bool) {
        match self {
            Self::Known { value, exact } => (Some(value), exact),
            Self::Empty | Self::Unknown => (None, false),
        }
    }
}

fn compare(a: Value<'_>, b: Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b),
        (Value::Decimal(a), Value::Decimal(b)) => Some(a.cmp(&b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Int(_) | Value::Float(_) | Value::Decimal(_) | Value::Text(_), _) => None,
    }
}

/// A column over the row groups seen so far.
#[derive(Debug)]
pub(super) struct Merged<'a> {
    pub(super) null_count: Option<u64>,
    pub(super) min: Bound<'a>,
    pub(super) max: Bound<'a>,
}

impl Default for Merged<'_> {
    fn default() -> Self {
        Self {
            null_count: Some(0),
            min: Bound::Empty,
            max: Bound::Empty,
        }
    }
}

impl<'a> Merged<'a> {
    pub(super) fn add(
        &mut self,
        rows: u64,
        chunk: &Chunk<'a>,
        of: (Class, Type),
        order: Option<Order>,
    ) -> Read<()> {
        if rows == 0 {
            return Ok(());
        }
        self.null_count = match (self.null_count, chunk.null_count) {
            (Some(a), Some(b)) => a.checked_add(b),
            (None, _) | (_, None) => None,
        };
        if chunk.null_count == Some(rows) {
            return Ok(());
        }
        let (min, max) = bounds(chunk, of, order)?;
        self.min.add(min, Ordering::Less);
        self.max.add(max, Ordering::Greater);
        Ok(())
    }
}

type Ends<'a> = (Option<(Value<'a>, bool)>, Option<(Value<'a>, bool)>);

/// The bounds of one column chunk, with their exactness.
fn bounds<'a>(
    chunk: &Chunk<'a>,
    (class, physical): (Class, Type),
    order: Option<Order>,
) -> Read<Ends<'a>> {
    // Old writers compared bytes as signed numbers, and a new order may be anything.
    let typed = order == Some(Order::Typed) && !chunk.is_old;
    let by_bytes = matches!(physical, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
    if order == Some(Order::Unknown) || (by_bytes && !typed) {
        return Ok((None, None));
    }
    let value = |bytes: Option<&'a [u8]>| match bytes {
        None => Ok(None),
        Some(bytes) => value(class, physical, bytes),
    };
    let (min, max) = (value(chunk.min)?, value(chunk.max)?);
    let (min, max) = match (min, max) {
        // Neither bound counts when one is NaN; a zero stands for both zeros.
        (Some(Value::Float(x)), _) | (_, Some(Value::Float(x))) if x.is_nan() => (None, None),
        (min, max) => (min.map(|v| zero(v, -0.0)), max.map(|v| zero(v, 0.0))),
    };
    // Only what is of no fixed length may be cut.
    let exact = |is_exact: bool| class != Class::Float && (is_exact || !by_bytes);
    Ok((
        min.map(|v| (v, exact(chunk.min_exact))),
        max.map(|v| (v, exact(chunk.max_exact))),
    ))
}

fn zero(value: Value<'_>, zero: f64) -> Value<'_> {
    match value {
        Value::Float(0.0) => Value::Float(zero),
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) | Value::Text(_) => value,
    }
}

/// A bound as Parquet's plain encoding has it; `None` where it means nothing.
fn value(class: Class, physical: Type, bytes: &[u8]) -> Read<Option<Value<'_>>> {
    const TOO_SHORT: Damage = Damage::ShortBound;
    let four = || bytes.first_chunk::<4>().copied().ok_or(TOO_SHORT);
    let eight = || bytes.first_chunk::<8>().copied().ok_or(TOO_SHORT);
    let number = || -> Read<i64> {
        match physical {
            Type::BOOLEAN => bytes.first().map(|b| i64::from(*b != 0)).ok_or(TOO_SHORT),
            Type::INT32 => four().map(|b| i64::from(i32::from_le_bytes(b))),
            _ => eight().map(i64::from_le_bytes),
        }
    };
    Ok(match (class, physical) {
        (Class::Int, Type::BOOLEAN | Type::INT32 | Type::INT64) => Some(Value::Int(number()?)),
        (Class::Decimal, Type::INT32 | Type::INT64) => Some(Value::Decimal(i128::from(number()?))),
        (Class::Float, Type::FLOAT) => Some(Value::Float(f64::from(f32::from_le_bytes(four()?)))),
        (Class::Float, Type::DOUBLE) => Some(Value::Float(f64::from_le_bytes(eight()?))),
        (Class::Decimal, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY) => {
            decimal(bytes).map(Value::Decimal)
        }
        (Class::Text, Type::BYTE_ARRAY) => std::str::from_utf8(bytes).ok().map(Value::Text),
        (Class::Int | Class::Float | Class::Decimal | Class::Text | Class::Unordered, _) => None,
    })
}

/// A big-endian two's complement number of 1 to 16 bytes.
fn decimal(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [fill; 16];
    let from = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(from..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_of_1_to_16_bytes() {
        assert_eq!(decimal(&[]), None);
        assert_eq!(decimal(&[0; 17]), None);
        assert_eq!(decimal(&[0xff]), Some(-1));
        assert_eq!(decimal(&i128::MIN.to_be_bytes()), Some(i128::MIN));
    }

    fn float_bounds(min: f64, max: f64) -> Ends<'static> {
        let (min, max) = (min.to_le_bytes(), max.to_le_bytes());
        let chunk = Chunk {
            min: Some(&min),
            max: Some(&max),
            ..Chunk::default()
        };
        let (min, max) = bounds(&chunk, (Class::Float, Type::DOUBLE), None).unwrap();
        let owned = |bound: Option<(Value<'_>, bool)>| match bound {
            Some((Value::Float(x), exact)) => Some((Value::Float(x), exact)),
            _ => None,
        };
        (owned(min), owned(max))
    }

    /// Other writers leave NaN and zeros as they met them.
    #[test]
    fn neither_bound_counts_beside_nan_and_zeros_stand_for_both() {
        assert_eq!(float_bounds(f64::NAN, 1.0), (None, None));
        assert_eq!(float_bounds(1.0, f64::NAN), (None, None));
        let (Some((Value::Float(min), false)), Some((Value::Float(max), false))) =
            float_bounds(0.0, -0.0)
        else {
            panic!("no bounds");
        };
        assert!(min.is_sign_negative() && max.is_sign_positive());
    }

    #[test]
    fn bounds_of_bytes_count_where_their_order_is_known() {
        let chunk = Chunk {
            min: Some(b"a"),
            max: Some(b"b"),
            min_exact: true,
            ..Chunk::default()
        };
        let text = (Class::Text, Type::BYTE_ARRAY);
        assert_eq!(
            bounds(&chunk, text, Some(Order::Typed)),
            Ok((
                Some((Value::Text("a"), true)),
                Some((Value::Text("b"), false))
            ))
        );
        let old = Chunk {
            is_old: true,
            ..chunk
        };
        for (chunk, order) in [
            (chunk, None),
            (chunk, Some(Order::Unknown)),
            (old, Some(Order::Typed)),
        ] {
            assert_eq!(bounds(&chunk, text, order), Ok((None, None)));
        }
    }

    #[test]
    fn a_bound_that_is_too_short_is_an_error() {
        for (class, physical, length) in [
            (Class::Int, Type::INT64, 8),
            (Class::Int, Type::INT32, 4),
            (Class::Int, Type::BOOLEAN, 1),
            (Class::Decimal, Type::INT64, 8),
            (Class::Float, Type::DOUBLE, 8),
            (Class::Float, Type::FLOAT, 4),
        ] {
            let bytes = vec![0; length];
            assert!(value(class, physical, &bytes).unwrap().is_some());
            assert!(value(class, physical, &bytes[1..]).is_err());
        }
    }
}
