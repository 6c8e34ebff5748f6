//! The table of pairs: from which type a value can be cast to which, and whether every value can.
//!
//! docs/sql.md shows it to users; a test compares the two over all pairs.

use crate::spec::FieldType;

/// So many decimal digits go into a double and come back.
pub(super) const FLOAT_DIGITS: u8 = 15;
/// Every integer of so many digits is one of 64 bits.
const INT_DIGITS: u8 = 18;
/// Every integer of 64 bits has at most so many digits.
const INT_WIDTH: u8 = 19;

/// Which values of one type can be cast to another without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastClass {
    /// All of them.
    Always,
    /// Some: it is decided value by value.
    PerValue,
}

/// Which values of `from` can be cast to `to` without loss; `None` = the pair has no cast.
///
/// Equal types have none, since nothing is cast. Texts of floats and of instants differ between
/// engines, numbers have no unit of time, and JSON would need its quotes: no cast either.
#[must_use]
pub fn cast_class(from: &FieldType, to: &FieldType) -> Option<CastClass> {
    use CastClass::{Always, PerValue};
    use FieldType as T;
    let class = |always: bool| Some(if always { Always } else { PerValue });
    match (from, to) {
        (a, b) if a == b => None,
        (T::String, T::Enum) => Some(PerValue),
        (T::Enum, T::String) => Some(Always),
        (
            T::String | T::Enum,
            T::Int | T::Float | T::Bool | T::Decimal { .. } | T::Date | T::Timestamp,
        ) => float_scale(to).then_some(PerValue),
        (T::Int | T::Bool | T::Decimal { .. }, T::String | T::Json)
        | (T::Date | T::Json, T::String) => Some(Always),
        (T::Int | T::Bool | T::Decimal { .. } | T::Date, T::Enum) => Some(PerValue),
        (T::Int, T::Float | T::Bool) | (T::Float, T::Int) => Some(PerValue),
        (T::Bool, T::Int) => Some(Always),
        (T::Int, T::Decimal { precision, scale }) => class(precision - scale >= INT_WIDTH),
        (T::Decimal { precision, scale }, T::Int) => class(*scale == 0 && *precision <= INT_DIGITS),
        (T::Float, T::Decimal { .. }) => float_scale(to).then_some(PerValue),
        (T::Decimal { precision, .. }, T::Float) if float_scale(from) => {
            class(*precision <= FLOAT_DIGITS)
        }
        (T::Decimal { .. }, T::Decimal { .. }) => class(widens(from, to)),
        (T::Date, T::Timestamp) => Some(Always),
        (T::Timestamp, T::Date) => Some(PerValue),
        _ => None,
    }
}

/// Whether the power of ten of a decimal's scale is one that floats divide by exactly; true of all
/// other types.
fn float_scale(of: &FieldType) -> bool {
    !matches!(of, FieldType::Decimal { scale, .. } if *scale > FLOAT_DIGITS)
}

/// Whether a decimal type holds every value of another one.
pub(crate) fn widens(from: &FieldType, to: &FieldType) -> bool {
    let (
        FieldType::Decimal {
            precision: p,
            scale: s,
        },
        FieldType::Decimal {
            precision: q,
            scale: t,
        },
    ) = (from, to)
    else {
        return false;
    };
    t >= s && q - t >= p - s
}
