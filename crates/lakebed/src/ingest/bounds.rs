//! Bounds of declared columns, written into the log with each file.
//!
//! They come from the footer of the staged file, so they are those that a query prunes by. Bounds may
//! be wider than the values (long texts are cut), never narrower. A column has none where its footer
//! has none: floats (NaN is outside of any bounds), nested fields, and personal fields (ING-7).

use std::collections::BTreeMap;

use arrow_array::types::{Decimal128Type, DecimalType};

use crate::catalog::{FileStats, StatValue};
use crate::error::Result;
use crate::spec::{FieldSpec, FieldType};
use crate::time::{BusinessDate, Instant};

/// Smallest and largest value as text, by column name.
pub(super) type Bounds = BTreeMap<String, [String; 2]>;

/// The bounds of the named columns, as far as the file has them.
pub(super) fn bounds_of(
    fields: &[FieldSpec],
    names: &[String],
    stats: &FileStats,
) -> Result<Bounds> {
    let mut bounds = Bounds::new();
    let columns = stats.columns.unpack()?;
    for field in fields.iter().filter(|f| names.contains(&f.name)) {
        if field.is_personal() {
            continue;
        }
        let column = columns.iter().find(|c| c.field_id == field.id);
        let Some((Some(min), Some(max))) = column.map(|c| (&c.min, &c.max)) else {
            continue;
        };
        if let (Some(min), Some(max)) = (text(&field.field_type, min), text(&field.field_type, max))
        {
            bounds.insert(field.name.clone(), [min, max]);
        }
    }
    Ok(bounds)
}

/// A bound as its type is written in SQL and JSON; `None` for types that have no bounds in the log.
fn text(of: &FieldType, value: &StatValue) -> Option<String> {
    match (of, value) {
        (FieldType::Int, StatValue::Int(n)) => Some(n.to_string()),
        (FieldType::Bool, StatValue::Int(n)) => Some((*n != 0).to_string()),
        (FieldType::Date, StatValue::Int(days)) => {
            let days = i32::try_from(*days).ok()?;
            Some(BusinessDate::from_days(days)?.to_string())
        }
        (FieldType::Timestamp, StatValue::Int(micros)) => {
            Some(Instant::from_micros(*micros).to_string())
        }
        (FieldType::Decimal { precision, scale }, StatValue::Decimal(n)) => {
            let scale = i8::try_from(*scale).ok()?;
            Some(Decimal128Type::format_decimal(*n, *precision, scale))
        }
        (FieldType::String | FieldType::Enum, StatValue::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_as_their_values_do() {
        let decimal = FieldType::Decimal {
            precision: 12,
            scale: 2,
        };
        for (of, value, expected) in [
            (FieldType::Int, StatValue::Int(-7), Some("-7")),
            (FieldType::Bool, StatValue::Int(1), Some("true")),
            (FieldType::Date, StatValue::Int(0), Some("1970-01-01")),
            (FieldType::Date, StatValue::Int(-1), Some("1969-12-31")),
            (FieldType::Date, StatValue::Int(i64::MAX), None),
            (
                FieldType::Timestamp,
                StatValue::Int(1_500_000),
                Some("1970-01-01T00:00:01.500000Z"),
            ),
            (decimal.clone(), StatValue::Decimal(-5), Some("-0.05")),
            (decimal, StatValue::Decimal(123_456), Some("1234.56")),
            (
                FieldType::String,
                StatValue::Text("臺北".into()),
                Some("臺北"),
            ),
            (FieldType::Float, StatValue::Float(1.0), None),
            (FieldType::Json, StatValue::Text("{}".into()), None),
        ] {
            assert_eq!(text(&of, &value).as_deref(), expected, "{of:?} {value:?}");
        }
    }
}
