//! Values of Arrow arrays as [`Raw`], and as JSON text where they are kept as such.

use std::fmt::Write as _;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Fields, TimeUnit};
use base64::Engine as _;

use crate::ingest::convert::fault::push_json_string;
use crate::ingest::convert::moment::{date_text, wall_text};
use crate::ingest::native::NativeValue;
use crate::ingest::raw::{NonFinite, Raw};

/// A row of named arrays of one length: of a batch, or of the children of a struct.
#[derive(Clone, Copy)]
pub(crate) struct TypedRow<'a> {
    fields: &'a Fields,
    arrays: &'a [ArrayRef],
    pub(crate) row: usize,
}

impl<'a> TypedRow<'a> {
    /// Row `row` of a batch.
    pub(crate) fn of_batch(batch: &'a RecordBatch, row: usize) -> Self {
        Self {
            fields: batch.schema_ref().fields(),
            arrays: batch.columns(),
            row,
        }
    }

    /// Row `row` of the children, where the array is a struct.
    pub(crate) fn inside(array: &'a ArrayRef, row: usize) -> Option<Self> {
        let array = array.as_struct_opt()?;
        Some(Self {
            fields: array.fields(),
            arrays: array.columns(),
            row,
        })
    }

    /// Names and arrays in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a ArrayRef)> + use<'a> {
        self.fields
            .iter()
            .map(|f| f.name().as_str())
            .zip(self.arrays)
    }
}

fn span(start: usize, len: usize) -> Range<usize> {
    start..start + len
}

/// The elements of row `row`, where the array is a list.
pub(crate) fn elements(array: &ArrayRef, row: usize) -> Option<(&ArrayRef, Range<usize>)> {
    let bounds = |offsets: &[i32]| {
        let start = usize::try_from(*offsets.get(row)?).ok()?;
        let end = usize::try_from(*offsets.get(row + 1)?).ok()?;
        Some(start..end)
    };
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list_opt::<i32>()?;
            Some((list.values(), bounds(list.value_offsets())?))
        }
        DataType::LargeList(_) => {
            let list = array.as_list_opt::<i64>()?;
            let offsets = list.value_offsets();
            let start = usize::try_from(*offsets.get(row)?).ok()?;
            let end = usize::try_from(*offsets.get(row + 1)?).ok()?;
            Some((list.values(), start..end))
        }
        DataType::FixedSizeList(_, size) => {
            let list = array.as_fixed_size_list_opt()?;
            let size = usize::try_from(*size).ok()?;
            let start = usize::try_from(list.value_offset(row)).ok()?;
            Some((list.values(), span(start, size)))
        }
        DataType::ListView(_) => {
            let list = array.as_list_view_opt::<i32>()?;
            let start = usize::try_from(list.value_offset(row)).ok()?;
            let size = usize::try_from(list.value_size(row)).ok()?;
            Some((list.values(), span(start, size)))
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view_opt::<i64>()?;
            let start = usize::try_from(list.value_offset(row)).ok()?;
            let size = usize::try_from(list.value_size(row)).ok()?;
            Some((list.values(), span(start, size)))
        }
        _ => None,
    }
}

/// The keys and values of row `row`, where the array is a map.
pub(crate) fn entries(
    array: &ArrayRef,
    row: usize,
) -> Option<(&ArrayRef, &ArrayRef, Range<usize>)> {
    let map = array.as_map_opt()?;
    let offsets = map.value_offsets();
    let start = usize::try_from(*offsets.get(row)?).ok()?;
    let end = usize::try_from(*offsets.get(row + 1)?).ok()?;
    Some((map.keys(), map.values(), start..end))
}

/// The position of a dictionary-encoded value among the dictionary's values.
fn dictionary_key(keys: &dyn Array, row: usize) -> Option<usize> {
    match keys.data_type() {
        DataType::Int8 => usize::try_from(keys.as_primitive_opt::<Int8Type>()?.value(row)).ok(),
        DataType::Int16 => usize::try_from(keys.as_primitive_opt::<Int16Type>()?.value(row)).ok(),
        DataType::Int32 => usize::try_from(keys.as_primitive_opt::<Int32Type>()?.value(row)).ok(),
        DataType::Int64 => usize::try_from(keys.as_primitive_opt::<Int64Type>()?.value(row)).ok(),
        DataType::UInt8 => Some(usize::from(
            keys.as_primitive_opt::<UInt8Type>()?.value(row),
        )),
        DataType::UInt16 => Some(usize::from(
            keys.as_primitive_opt::<UInt16Type>()?.value(row),
        )),
        DataType::UInt32 => usize::try_from(keys.as_primitive_opt::<UInt32Type>()?.value(row)).ok(),
        DataType::UInt64 => usize::try_from(keys.as_primitive_opt::<UInt64Type>()?.value(row)).ok(),
        _ => None,
    }
}

fn float<'a>(value: f64) -> Raw<'a> {
    if value.is_nan() {
        Raw::NonFinite(NonFinite::NaN)
    } else if value == f64::INFINITY {
        Raw::NonFinite(NonFinite::Infinity)
    } else if value == f64::NEG_INFINITY {
        Raw::NonFinite(NonFinite::NegInfinity)
    } else {
        Raw::Native(NativeValue::Float(value))
    }
}

fn number(text: impl std::fmt::Display, buffer: &mut String) -> Raw<'_> {
    buffer.clear();
    // Writing to a String cannot fail.
    let _written = write!(buffer, "{text}");
    Raw::Number(buffer)
}

/// Row `row` of `array`; numbers are written to `buffer`.
pub(crate) fn raw<'a>(array: &'a ArrayRef, row: usize, buffer: &'a mut String) -> Raw<'a> {
    if array.is_null(row) {
        return Raw::Null;
    }
    find_raw(array, row, buffer).unwrap_or(Raw::Native(NativeValue::Other(array)))
}

fn find_raw<'a>(array: &'a ArrayRef, row: usize, buffer: &'a mut String) -> Option<Raw<'a>> {
    let native = |value: NativeValue<'a>| Some(Raw::Native(value));
    match array.data_type() {
        DataType::Null => Some(Raw::Null),
        DataType::Boolean => Some(Raw::Bool(array.as_boolean_opt()?.value(row))),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => find_number(array, row, buffer),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            native(NativeValue::Text(find_text(array, row)?))
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => native(NativeValue::Bytes(find_bytes(array, row)?)),
        DataType::Date32 => native(NativeValue::Date(
            array.as_primitive_opt::<Date32Type>()?.value(row),
        )),
        DataType::Date64 => {
            let millis = array.as_primitive_opt::<Date64Type>()?.value(row);
            native(NativeValue::WallTime(millis.checked_mul(1000)?))
        }
        DataType::Timestamp(unit, zone) => native(timestamp(array, row, *unit, zone.is_some())?),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let key = dictionary_key(dictionary.keys(), row)?;
            let values = dictionary.values();
            if values.is_null(key) {
                return Some(Raw::Null);
            }
            find_raw(values, key, buffer)
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(_, _)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(_, _) => native(NativeValue::Nested { array, row }),
        DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Union(_, _)
        | DataType::RunEndEncoded(_, _) => None,
    }
}

fn find_number<'a>(array: &ArrayRef, row: usize, buffer: &'a mut String) -> Option<Raw<'a>> {
    macro_rules! value {
        ($type:ty) => {
            array.as_primitive_opt::<$type>()?.value(row)
        };
    }
    macro_rules! decimal {
        ($type:ty) => {
            number(
                array.as_primitive_opt::<$type>()?.value_as_string(row),
                buffer,
            )
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => number(value!(Int8Type), buffer),
        DataType::Int16 => number(value!(Int16Type), buffer),
        DataType::Int32 => number(value!(Int32Type), buffer),
        DataType::Int64 => number(value!(Int64Type), buffer),
        DataType::UInt8 => number(value!(UInt8Type), buffer),
        DataType::UInt16 => number(value!(UInt16Type), buffer),
        DataType::UInt32 => number(value!(UInt32Type), buffer),
        DataType::UInt64 => number(value!(UInt64Type), buffer),
        DataType::Float16 => float(value!(Float16Type).to_f64()),
        DataType::Float32 => float(f64::from(value!(Float32Type))),
        DataType::Float64 => float(value!(Float64Type)),
        DataType::Decimal32(_, _) => decimal!(Decimal32Type),
        DataType::Decimal64(_, _) => decimal!(Decimal64Type),
        DataType::Decimal128(_, _) => decimal!(Decimal128Type),
        DataType::Decimal256(_, _) => decimal!(Decimal256Type),
        _ => return None,
    })
}

fn find_text(array: &ArrayRef, row: usize) -> Option<&str> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string_opt::<i32>()?.value(row),
        DataType::LargeUtf8 => array.as_string_opt::<i64>()?.value(row),
        DataType::Utf8View => array.as_string_view_opt()?.value(row),
        _ => return None,
    })
}

fn find_bytes(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary_opt::<i32>()?.value(row),
        DataType::LargeBinary => array.as_binary_opt::<i64>()?.value(row),
        DataType::BinaryView => array.as_binary_view_opt()?.value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary_opt()?.value(row),
        _ => return None,
    })
}

fn timestamp<'a>(
    array: &ArrayRef,
    row: usize,
    unit: TimeUnit,
    zoned: bool,
) -> Option<NativeValue<'a>> {
    let micros = match unit {
        TimeUnit::Second => array
            .as_primitive_opt::<TimestampSecondType>()?
            .value(row)
            .checked_mul(1_000_000)?,
        TimeUnit::Millisecond => array
            .as_primitive_opt::<TimestampMillisecondType>()?
            .value(row)
            .checked_mul(1000)?,
        TimeUnit::Microsecond => array
            .as_primitive_opt::<TimestampMicrosecondType>()?
            .value(row),
        TimeUnit::Nanosecond => {
            let nanos = array
                .as_primitive_opt::<TimestampNanosecondType>()?
                .value(row);
            if nanos % 1000 != 0 {
                return Some(NativeValue::Nanos(nanos));
            }
            nanos / 1000
        }
    };
    Some(if zoned {
        NativeValue::Instant(micros)
    } else {
        NativeValue::WallTime(micros)
    })
}

/// A float so that it reads back as itself.
pub(crate) fn float_text(value: f64) -> String {
    format!("{value:?}")
}

/// Appends row `row` as JSON text; a NaN or infinity is written as a string and returned.
pub(crate) fn write_json(out: &mut String, array: &ArrayRef, row: usize) -> Option<NonFinite> {
    let mut buffer = String::new();
    match raw(array, row, &mut buffer) {
        Raw::Bool(true) => out.push_str("true"),
        Raw::Bool(false) => out.push_str("false"),
        Raw::Number(text) => out.push_str(text),
        Raw::NonFinite(n) => {
            out.push_str(match n {
                NonFinite::NaN => "\"NaN\"",
                NonFinite::Infinity => "\"Infinity\"",
                NonFinite::NegInfinity => "\"-Infinity\"",
            });
            return Some(n);
        }
        Raw::Native(value) => return write_value(out, &value),
        Raw::Absent
        | Raw::Null
        | Raw::String { .. }
        | Raw::Object(_)
        | Raw::Array(_)
        | Raw::Cell { .. } => out.push_str("null"),
    }
    None
}

/// Appends a value as JSON text: dates and instants as texts, bytes in base64.
pub(crate) fn write_value(out: &mut String, value: &NativeValue<'_>) -> Option<NonFinite> {
    match value {
        NativeValue::Date(day) => push_json_string(out, &date_text(i64::from(*day))),
        NativeValue::Instant(micros) => {
            push_json_string(out, &format!("{}Z", wall_text(*micros)));
        }
        NativeValue::WallTime(micros) => push_json_string(out, &wall_text(*micros)),
        NativeValue::Nanos(nanos) => {
            let wall = wall_text(nanos.div_euclid(1000));
            push_json_string(out, &format!("{wall}{:03}", nanos.rem_euclid(1000)));
        }
        NativeValue::Float(x) => out.push_str(&float_text(*x)),
        NativeValue::Text(text) => push_json_string(out, text),
        NativeValue::Bytes(bytes) => {
            push_json_string(
                out,
                &base64::engine::general_purpose::STANDARD.encode(bytes),
            );
        }
        NativeValue::Other(array) => push_json_string(out, &array.data_type().to_string()),
        NativeValue::Nested { array, row } => return write_nested(out, array, *row),
    }
    None
}

fn write_nested(out: &mut String, array: &ArrayRef, row: usize) -> Option<NonFinite> {
    let mut met = None;
    if let Some((values, range)) = elements(array, row) {
        out.push('[');
        for (i, at) in range.enumerate() {
            if i > 0 {
                out.push(',');
            }
            met = write_json(out, values, at).or(met);
        }
        out.push(']');
    } else if let Some((keys, values, range)) = entries(array, row) {
        out.push('{');
        for (i, at) in range.enumerate() {
            if i > 0 {
                out.push(',');
            }
            push_json_string(out, &key_text(keys, at));
            out.push(':');
            met = write_json(out, values, at).or(met);
        }
        out.push('}');
    } else if let Some(members) = TypedRow::inside(array, row) {
        return write_members(out, &members);
    } else {
        out.push_str("null");
    }
    met
}

/// Appends row `row` of a batch or struct as a JSON object.
pub(crate) fn write_members(out: &mut String, members: &TypedRow<'_>) -> Option<NonFinite> {
    let mut met = None;
    out.push('{');
    for (i, (name, array)) in members.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_json_string(out, name);
        out.push(':');
        met = write_json(out, array, members.row).or(met);
    }
    out.push('}');
    met
}

/// A map's key as text, whatever its type.
pub(crate) fn key_text(keys: &ArrayRef, row: usize) -> String {
    let mut buffer = String::new();
    if let Raw::Native(NativeValue::Text(text)) = raw(keys, row, &mut buffer) {
        return text.to_owned();
    }
    let mut out = String::new();
    write_json(&mut out, keys, row);
    out
}
