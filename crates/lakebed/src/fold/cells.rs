//! Values of columns: made to fit a type, tested against literals, told as JSON, hashed.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, DecimalType, Float64Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, MapArray, StructArray, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use base64::Engine as _;

use crate::config::ScalarConfig;
use crate::error::{Error, Result};
use crate::registry::field_id;
use crate::time::{BusinessDate, Instant};

/// An error of Arrow, with what was done.
pub(super) fn arrow_failed(action: &str, e: ArrowError) -> Error {
    Error::internal(action.to_owned()).caused_by(e)
}

/// The column as the wanted one: members of structs are matched by field id, or by place where they are of another
/// dataset; a member that is not there is null; decimals are widened.
///
/// # Errors
/// `PreconditionFailed` where the types do not go together.
pub fn conform(array: &ArrayRef, wanted: &DataType, by_id: bool) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let fail = |e| arrow_failed("make a column fit", e);
    match (array.data_type(), wanted) {
        (DataType::List(_), DataType::List(element)) => {
            let list = array.as_list::<i32>();
            let values = conform(list.values(), element.data_type(), by_id)?;
            let made = ListArray::try_new(
                Arc::clone(element),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            );
            Ok(Arc::new(made.map_err(fail)?))
        }
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
            let map = array.as_map();
            let held: ArrayRef = Arc::new(map.entries().clone());
            let held = conform(&held, entries.data_type(), by_id)?;
            let made = MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                held.as_struct().clone(),
                map.nulls().cloned(),
                *sorted,
            );
            Ok(Arc::new(made.map_err(fail)?))
        }
        (DataType::Struct(held), DataType::Struct(members)) => {
            conform_struct(array.as_struct(), (held, members), by_id)
        }
        (DataType::Decimal128(_, _), DataType::Decimal128(_, _)) => {
            arrow_cast::cast(array, wanted).map_err(fail)
        }
        (held, wanted) => Err(Error::precondition(format!(
            "a column holds {held}, and {wanted} is wanted"
        ))
        .hint("store those dates anew under the newest schema version: `lakebed correct`")),
    }
}

fn conform_struct(
    array: &StructArray,
    (held, members): (&Fields, &Fields),
    by_id: bool,
) -> Result<ArrayRef> {
    let mut columns = Vec::new();
    for (place, member) in members.iter().enumerate() {
        let same = |f: &FieldRef| field_id(f).is_some() && field_id(f) == field_id(member);
        let at = match by_id {
            true => held.iter().position(same),
            false => (place < held.len()).then_some(place),
        };
        columns.push(match at {
            Some(at) => conform(array.column(at), member.data_type(), by_id)?,
            None => new_null_array(member.data_type(), array.len()),
        });
    }
    let made = StructArray::try_new_with_length(
        members.clone(),
        columns,
        array.nulls().cloned(),
        array.len(),
    );
    Ok(Arc::new(
        made.map_err(|e| arrow_failed("make a struct fit", e))?,
    ))
}

/// Which rows hold one of the values.
#[must_use]
pub fn holds_any(array: &dyn Array, values: &[ScalarConfig]) -> BooleanArray {
    let rows = 0..array.len();
    match array.data_type() {
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            let is = |text: &str| {
                values
                    .iter()
                    .any(|v| matches!(v, ScalarConfig::Text(t) if t == text))
            };
            rows.map(|i| Some(texts.is_valid(i) && is(texts.value(i))))
                .collect()
        }
        DataType::Int64 => {
            let numbers = array.as_primitive::<Int64Type>();
            let is = |n: i64| {
                values
                    .iter()
                    .any(|v| matches!(v, ScalarConfig::Int(m) if *m == n))
            };
            rows.map(|i| Some(numbers.is_valid(i) && is(numbers.value(i))))
                .collect()
        }
        DataType::Boolean => {
            let bits = array.as_boolean();
            let is = |b: bool| {
                values
                    .iter()
                    .any(|v| matches!(v, ScalarConfig::Bool(c) if *c == b))
            };
            rows.map(|i| Some(bits.is_valid(i) && is(bits.value(i))))
                .collect()
        }
        _ => rows.map(|_| Some(false)).collect(),
    }
}

/// A day of a column of days; `None` for null.
pub(super) fn day_at(array: &ArrayRef, row: usize) -> Option<i32> {
    let days = array.as_primitive::<Date32Type>();
    days.is_valid(row).then(|| days.value(row))
}

/// A number of a column of integers; `None` for null.
pub(super) fn int_at(array: &ArrayRef, row: usize) -> Option<i64> {
    let numbers = array.as_primitive::<Int64Type>();
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// An instant in microseconds; `None` for null.
pub(super) fn instant_at(array: &ArrayRef, row: usize) -> Option<i64> {
    let instants = array.as_primitive::<TimestampMicrosecondType>();
    instants.is_valid(row).then(|| instants.value(row))
}

fn push_quoted(text: &str, into: &mut String) {
    into.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// The value as JSON, numbers with all their digits; `is_json` = a text that is JSON already.
#[must_use]
pub fn json_of(array: &dyn Array, row: usize, is_json: bool) -> String {
    let mut text = String::new();
    push_json(array, row, is_json, &mut text);
    text
}

/// Appends the value as JSON; numbers keep all their digits, `is_json` = a text that is JSON already.
pub(super) fn push_json(array: &dyn Array, row: usize, is_json: bool, into: &mut String) {
    if array.is_null(row) {
        return into.push_str("null");
    }
    match array.data_type() {
        DataType::Utf8 if is_json => into.push_str(array.as_string::<i32>().value(row)),
        DataType::Utf8 => push_quoted(array.as_string::<i32>().value(row), into),
        DataType::Int64 => into.push_str(&array.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            match serde_json::Number::from_f64(value) {
                Some(number) => into.push_str(&number.to_string()),
                None => push_quoted(&value.to_string(), into),
            }
        }
        DataType::Boolean => into.push_str(match array.as_boolean().value(row) {
            true => "true",
            false => "false",
        }),
        DataType::Decimal128(precision, scale) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            into.push_str(&Decimal128Type::format_decimal(value, *precision, *scale));
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            let date = BusinessDate::from_days(days).map(|d| d.to_string());
            push_quoted(&date.unwrap_or_else(|| days.to_string()), into);
        }
        DataType::Timestamp(_, _) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            push_quoted(&Instant::from_micros(micros).to_string(), into);
        }
        DataType::Binary => {
            let bytes = array.as_binary::<i32>().value(row);
            push_quoted(
                &base64::engine::general_purpose::STANDARD.encode(bytes),
                into,
            );
        }
        DataType::List(_) => push_list(&array.as_list::<i32>().value(row), into),
        DataType::Map(_, _) => push_map(&array.as_map().value(row), into),
        DataType::Struct(fields) => push_struct(array.as_struct(), fields, row, into),
        _ => into.push_str("null"),
    }
}

fn push_list(values: &ArrayRef, into: &mut String) {
    into.push('[');
    for i in 0..values.len() {
        if i > 0 {
            into.push(',');
        }
        push_json(values, i, false, into);
    }
    into.push(']');
}

fn push_map(entries: &StructArray, into: &mut String) {
    into.push('{');
    for i in 0..entries.len() {
        if i > 0 {
            into.push(',');
        }
        push_quoted(entries.column(0).as_string::<i32>().value(i), into);
        into.push(':');
        push_json(entries.column(1), i, false, into);
    }
    into.push('}');
}

fn push_struct(array: &StructArray, fields: &[Arc<Field>], row: usize, into: &mut String) {
    into.push('{');
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            into.push(',');
        }
        push_quoted(field.name(), into);
        into.push(':');
        push_json(array.column(i), row, false, into);
    }
    into.push('}');
}

/// Hashes a value with its type, so that no two values of a column, and no two rows of values, are alike by
/// accident: a tag, then fixed bytes, or a length and the bytes (docs/fold.md).
pub(super) fn hash_value(array: &dyn Array, row: usize, into: &mut Vec<u8>) {
    let sized = |tag: u8, bytes: &[u8], into: &mut Vec<u8>| {
        into.push(tag);
        into.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        into.extend_from_slice(bytes);
    };
    if array.is_null(row) {
        return into.push(b'n');
    }
    match array.data_type() {
        DataType::Utf8 => sized(b's', array.as_string::<i32>().value(row).as_bytes(), into),
        DataType::Binary => sized(b'y', array.as_binary::<i32>().value(row), into),
        DataType::Int64 => {
            into.push(b'i');
            into.extend_from_slice(&array.as_primitive::<Int64Type>().value(row).to_le_bytes());
        }
        DataType::Boolean => {
            into.extend_from_slice(&[b'b', u8::from(array.as_boolean().value(row))])
        }
        DataType::Date32 => {
            into.push(b'd');
            into.extend_from_slice(&array.as_primitive::<Date32Type>().value(row).to_le_bytes());
        }
        DataType::Timestamp(_, _) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            into.push(b't');
            into.extend_from_slice(&micros.to_le_bytes());
        }
        // The digits, without zeros at the end: a widened column hashes as before.
        DataType::Decimal128(precision, scale) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            let text = Decimal128Type::format_decimal(value, *precision, *scale);
            let text = match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.'),
                false => text.as_str(),
            };
            sized(b'x', text.as_bytes(), into);
        }
        _ => {
            let mut text = String::new();
            push_json(array, row, false, &mut text);
            sized(b'j', text.as_bytes(), into);
        }
    }
}

/// The beginning of the hash of what was collected: 16 hex digits.
pub(super) fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Float64Array, Int64Array, StringArray};

    use super::*;

    fn json(array: &dyn Array, row: usize) -> String {
        let mut text = String::new();
        push_json(array, row, false, &mut text);
        text
    }

    #[test]
    fn values_are_told_whole() {
        let money = Decimal128Array::from(vec![1250, -5])
            .with_precision_and_scale(12, 2)
            .unwrap();
        assert_eq!(
            (json(&money, 0), json(&money, 1)),
            ("12.50".to_owned(), "-0.05".to_owned())
        );
        assert_eq!(json(&StringArray::from(vec!["台\"北"]), 0), r#""台\"北""#);
        assert_eq!(json(&Float64Array::from(vec![0.1]), 0), "0.1");
        assert_eq!(json(&Int64Array::from(vec![None::<i64>]), 0), "null");
    }

    #[test]
    fn hashes_tell_null_from_empty_and_keep_over_a_widening() {
        let hash = |array: &dyn Array, row| {
            let mut bytes = Vec::new();
            hash_value(array, row, &mut bytes);
            fingerprint(&bytes)
        };
        let texts = StringArray::from(vec![Some(""), None]);
        assert_ne!(hash(&texts, 0), hash(&texts, 1));
        let narrow = Decimal128Array::from(vec![1250])
            .with_precision_and_scale(12, 2)
            .unwrap();
        let wide = Decimal128Array::from(vec![12_500_000])
            .with_precision_and_scale(20, 6)
            .unwrap();
        assert_eq!(hash(&narrow, 0), hash(&wide, 0));
        let whole = Decimal128Array::from(vec![100])
            .with_precision_and_scale(12, 0)
            .unwrap();
        let ten = Decimal128Array::from(vec![10])
            .with_precision_and_scale(12, 0)
            .unwrap();
        assert_ne!(hash(&whole, 0), hash(&ten, 0));
    }
}
