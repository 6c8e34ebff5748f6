//! One value of an Arrow array as JSON or as plain text.

use std::io::Write;

use arrow::array::{Array, AsArray, MapArray, StructArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lakebed::{Error, Result};

/// Days of an era of 400 years.
const ERA_DAYS: i64 = 146_097;

/// Year, month, day of days since 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counting from 0000-03-01 puts the leap day at the end of a year.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A point in time of `per_second` units; with `Z` where it is an instant.
fn timestamp(value: i64, per_second: i64, digits: usize, instant: bool) -> String {
    let (seconds, part) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let zone = if instant { "Z" } else { "" };
    format!(
        "{}T{hour:02}:{minute:02}:{second:02}.{part:0digits$}{zone}",
        date(days)
    )
}

fn timestamp_at(array: &dyn Array, row: usize, unit: TimeUnit, instant: bool) -> String {
    match unit {
        TimeUnit::Second => {
            let v = array.as_primitive::<TimestampSecondType>().value(row);
            timestamp(v.saturating_mul(1_000_000), 1_000_000, 6, instant)
        }
        TimeUnit::Millisecond => {
            let v = array.as_primitive::<TimestampMillisecondType>().value(row);
            timestamp(v.saturating_mul(1000), 1_000_000, 6, instant)
        }
        TimeUnit::Microsecond => {
            let v = array.as_primitive::<TimestampMicrosecondType>().value(row);
            timestamp(v, 1_000_000, 6, instant)
        }
        TimeUnit::Nanosecond => {
            let v = array.as_primitive::<TimestampNanosecondType>().value(row);
            if v.rem_euclid(1000) == 0 {
                timestamp(v.div_euclid(1000), 1_000_000, 6, instant)
            } else {
                timestamp(v, 1_000_000_000, 9, instant)
            }
        }
    }
}

/// The shortest text that reads back as the same float.
fn float(value: f64) -> std::result::Result<String, &'static str> {
    if value.is_nan() {
        Err("NaN")
    } else if value.is_infinite() {
        Err(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        Ok(serde_json::Number::from_f64(value).map_or_else(String::new, |n| n.to_string()))
    }
}

fn float32(value: f32) -> std::result::Result<String, &'static str> {
    if value.is_finite() {
        // Through its own shortest text: 0.1_f32 is 0.1, not 0.10000000149011612.
        Ok(serde_json::to_string(&value).unwrap_or_default())
    } else {
        float(f64::from(value))
    }
}

/// A scalar: a number or word of JSON as it stands, or a text.
enum Scalar {
    Bare(String),
    Text(String),
}

impl Scalar {
    fn float(value: std::result::Result<String, &'static str>) -> Self {
        match value {
            Ok(number) => Self::Bare(number),
            Err(word) => Self::Text(word.to_owned()),
        }
    }

    fn bytes(value: &[u8]) -> Self {
        Self::Text(STANDARD.encode(value))
    }
}

macro_rules! number {
    ($array:expr, $row:expr, $kind:ty) => {
        Scalar::Bare($array.as_primitive::<$kind>().value($row).to_string())
    };
}

macro_rules! decimal {
    ($array:expr, $row:expr, $kind:ty) => {
        Scalar::Bare($array.as_primitive::<$kind>().value_as_string($row))
    };
}

/// The scalar at a row that is not NULL; `None` for a nested type.
fn scalar(array: &dyn Array, row: usize) -> Result<Option<Scalar>> {
    Ok(Some(match array.data_type() {
        DataType::Null => Scalar::Bare("null".to_owned()),
        DataType::Boolean => Scalar::Bare(array.as_boolean().value(row).to_string()),
        DataType::Int8 => number!(array, row, Int8Type),
        DataType::Int16 => number!(array, row, Int16Type),
        DataType::Int32 => number!(array, row, Int32Type),
        DataType::Int64 => number!(array, row, Int64Type),
        DataType::UInt8 => number!(array, row, UInt8Type),
        DataType::UInt16 => number!(array, row, UInt16Type),
        DataType::UInt32 => number!(array, row, UInt32Type),
        DataType::UInt64 => number!(array, row, UInt64Type),
        DataType::Float16 => Scalar::float(float32(
            array.as_primitive::<Float16Type>().value(row).to_f32(),
        )),
        DataType::Float32 => Scalar::float(float32(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Scalar::float(float(array.as_primitive::<Float64Type>().value(row))),
        DataType::Decimal32(..) => decimal!(array, row, Decimal32Type),
        DataType::Decimal64(..) => decimal!(array, row, Decimal64Type),
        DataType::Decimal128(..) => decimal!(array, row, Decimal128Type),
        DataType::Decimal256(..) => decimal!(array, row, Decimal256Type),
        DataType::Utf8 => Scalar::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Scalar::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Scalar::Text(array.as_string_view().value(row).to_owned()),
        DataType::Binary => Scalar::bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Scalar::bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => Scalar::bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => Scalar::bytes(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => Scalar::Text(date(i64::from(
            array.as_primitive::<Date32Type>().value(row),
        ))),
        DataType::Date64 => {
            let ms = array.as_primitive::<Date64Type>().value(row);
            Scalar::Text(date(ms.div_euclid(86_400_000)))
        }
        DataType::Timestamp(unit, zone) => {
            Scalar::Text(timestamp_at(array, row, *unit, zone.is_some()))
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(..) => return Ok(None),
        DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Union(..)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..) => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default())
                .map_err(|e| Error::internal("write a value as text").caused_by(e))?;
            Scalar::Text(formatter.value(row).to_string())
        }
    }))
}

fn push_text(out: &mut Vec<u8>, text: &str) -> Result<()> {
    serde_json::to_writer(out, text)
        .map_err(|e| Error::internal("write a text as JSON").caused_by(e))
}

/// Appends the value as JSON; NULL is `null`.
pub(super) fn push_json(out: &mut Vec<u8>, array: &dyn Array, row: usize) -> Result<()> {
    if array.is_null(row) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match scalar(array, row)? {
        Some(Scalar::Bare(text)) => {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        Some(Scalar::Text(text)) => return push_text(out, &text),
        None => {}
    }
    match array.data_type() {
        DataType::List(_) => push_items(out, &*array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => push_items(out, &*array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => push_items(out, &*array.as_fixed_size_list().value(row)),
        DataType::ListView(_) => push_items(out, &*array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => push_items(out, &*array.as_list_view::<i64>().value(row)),
        DataType::Struct(_) => push_members(out, array.as_struct(), row),
        DataType::Map(..) => push_entries(out, array.as_map(), row),
        other => Err(Error::internal(format!(
            "write a value of type {other} as JSON"
        ))),
    }
}

fn push_items(out: &mut Vec<u8>, items: &dyn Array) -> Result<()> {
    out.push(b'[');
    for i in 0..items.len() {
        if i > 0 {
            out.push(b',');
        }
        push_json(out, items, i)?;
    }
    out.push(b']');
    Ok(())
}

fn push_members(out: &mut Vec<u8>, members: &StructArray, row: usize) -> Result<()> {
    out.push(b'{');
    for (i, (field, column)) in members.fields().iter().zip(members.columns()).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_text(out, field.name())?;
        out.push(b':');
        push_json(out, &**column, row)?;
    }
    out.push(b'}');
    Ok(())
}

fn push_entries(out: &mut Vec<u8>, map: &MapArray, row: usize) -> Result<()> {
    let entries = map.value(row);
    let (keys, values) = (entries.column(0), entries.column(1));
    out.push(b'{');
    for i in 0..entries.len() {
        if i > 0 {
            out.push(b',');
        }
        // A key is a text in JSON, whatever its type.
        push_text(out, &plain_text(&**keys, i)?.unwrap_or_default())?;
        out.push(b':');
        push_json(out, &**values, i)?;
    }
    out.push(b'}');
    Ok(())
}

/// The value as plain text, nested ones as JSON; `None` = NULL.
pub(crate) fn plain_text(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(None);
    }
    Ok(Some(match scalar(array, row)? {
        Some(Scalar::Bare(text) | Scalar::Text(text)) => text,
        None => {
            let mut json = Vec::new();
            push_json(&mut json, array, row)?;
            String::from_utf8(json)
                .map_err(|e| Error::internal("write a value as text").caused_by(e))?
        }
    }))
}

/// Writes and empties the buffer.
pub(super) fn flush(out: &mut (dyn Write + Send), buffer: &mut Vec<u8>) -> Result<()> {
    out.write_all(buffer).map_err(super::write_error)?;
    buffer.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, Decimal128Array, Float32Array, Float64Array, ListArray, StringArray,
        TimestampMicrosecondArray,
    };
    use lakebed::time::BusinessDate;

    fn json(array: ArrayRef) -> Vec<String> {
        (0..array.len())
            .map(|i| {
                let mut out = Vec::new();
                push_json(&mut out, &*array, i).unwrap();
                String::from_utf8(out).unwrap()
            })
            .collect()
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for text in [
            "0001-01-01",
            "0004-02-29",
            "1582-10-15",
            "1900-03-01",
            "1969-12-31",
            "2000-02-29",
            "2026-11-30",
            "9999-12-31",
        ] {
            let day: BusinessDate = text.parse().unwrap();
            assert_eq!(date(i64::from(day.days())), text);
        }
    }

    #[test]
    fn instants_keep_microseconds_on_both_sides_of_the_epoch() {
        let array = TimestampMicrosecondArray::from(vec![-1, 0, -62_135_596_800_000_000])
            .with_timezone("UTC");
        assert_eq!(
            json(Arc::new(array)),
            [
                r#""1969-12-31T23:59:59.999999Z""#,
                r#""1970-01-01T00:00:00.000000Z""#,
                r#""0001-01-01T00:00:00.000000Z""#
            ]
        );
    }

    #[test]
    fn numbers_lose_nothing() {
        let floats =
            Float64Array::from(vec![0.1, 1e300, -0.0, f64::NAN, f64::NEG_INFINITY, 5e-324]);
        for (text, value) in json(Arc::new(floats.clone())).iter().zip(floats.values()) {
            match text.parse::<f64>() {
                Ok(back) => assert_eq!(back.to_bits(), value.to_bits()),
                Err(_) => assert!(!value.is_finite(), "{text}"),
            }
        }
        assert_eq!(
            json(Arc::new(Float64Array::from(vec![f64::NAN]))),
            [r#""NaN""#]
        );
        assert_eq!(json(Arc::new(Float32Array::from(vec![0.1]))), ["0.1"]);
        let decimals = Decimal128Array::from(vec![Some(-5), None, Some(i128::MAX / 10)])
            .with_precision_and_scale(38, 2)
            .unwrap();
        assert_eq!(
            json(Arc::new(decimals)),
            ["-0.05", "null", "170141183460469231731687303715884105.72"]
        );
    }

    #[test]
    fn texts_and_bytes_are_escaped() {
        let texts = StringArray::from(vec!["微博\n\"熱\"\u{1}", ""]);
        assert_eq!(
            json(Arc::new(texts)),
            ["\"微博\\n\\\"熱\\\"\\u0001\"", "\"\""]
        );
        assert_eq!(
            json(Arc::new(BinaryArray::from(vec![b"\xff\x00".as_slice()]))),
            ["\"/wA=\""]
        );
    }

    #[test]
    fn an_empty_list_is_not_null() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
            Some(vec![Some(1), None]),
            Some(vec![]),
            None,
        ]);
        assert_eq!(json(Arc::new(lists)), ["[1,null]", "[]", "null"]);
    }
}
