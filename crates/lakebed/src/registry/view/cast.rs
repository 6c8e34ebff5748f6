//! Casts of retyped fields as SQL: which values are kept whole, and what they become.
//!
//! ```text
//! the retyped column   CASE WHEN <kept> THEN <cast> END
//! the rest             CASE WHEN <kept> THEN NULL ELSE <value> END
//! ```
//!
//! The rules are those of `registry::cast`, said in what all engines share: patterns of plain texts,
//! casts that give NULL in the place of an error, and casts back that must give the value again.

use arrow_schema::DataType;

use crate::registry::cast::{Cast, CastClass};
use crate::registry::view::dialect::Dialect;
use crate::spec::{FieldSpec, FieldType, arrow_type};

/// Numbers with a minus that are zero.
const MINUS_ZERO: &str = r"^-[0.]*\z";
const PLAIN_INT: &str = r"^(0|-?[1-9][0-9]{0,18})\z";
const PLAIN_NUMBER: &str = r"^-?(0|[1-9][0-9]*)([.][0-9]+)?\z";
const PLAIN_DAY: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z";
const PLAIN_INSTANT: &str =
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?Z\z";
/// Two to the power of 63 as a double.
const INT_END: &str = "9.223372036854775808E18";

/// A cast of the values of one expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CastText {
    /// When a value is kept whole; `None` = always.
    pub(super) kept: Option<String>,
    /// What it becomes then.
    pub(super) value: String,
}

impl CastText {
    fn always(value: String) -> Self {
        Self { kept: None, value }
    }

    fn when(kept: String, value: String) -> Self {
        let kept = Some(kept);
        Self { kept, value }
    }
}

/// The values of `value` in the new type, NULL where something would be lost.
pub(super) fn retyped(dialect: &dyn Dialect, value: &str, cast: &Cast) -> String {
    let to = column_type(&cast.to);
    let text = cast_text(dialect, value, cast);
    dialect.typed(
        &match text.kept {
            None => text.value,
            Some(kept) => format!("CASE WHEN {kept} THEN {} END", text.value),
        },
        &to,
    )
}

/// The values of `value` that the cast would not keep whole.
pub(super) fn rest(dialect: &dyn Dialect, value: &str, cast: &Cast) -> String {
    match cast_text(dialect, value, cast).kept {
        None => dialect.null(&column_type(&cast.from)),
        Some(kept) => format!("CASE WHEN {kept} THEN NULL ELSE {value} END"),
    }
}

/// The type of a column of scalars.
fn column_type(of: &FieldType) -> DataType {
    arrow_type(&FieldSpec::new(0, "", of.clone()), of)
}

fn cast_text(dialect: &dyn Dialect, value: &str, cast: &Cast) -> CastText {
    let always = cast.class() == Some(CastClass::Always);
    match (&cast.from, &cast.to) {
        (from, FieldType::String | FieldType::Json) => {
            CastText::always(text_of(dialect, value, from))
        }
        (from, FieldType::Enum) => {
            let text = text_of(dialect, value, from);
            let values: Vec<String> = cast.values.iter().map(|v| dialect.text(v)).collect();
            CastText::when(format!("{text} IN ({})", values.join(", ")), text)
        }
        (FieldType::String | FieldType::Enum, to) => from_text(dialect, value, to),
        (FieldType::Bool, _) => {
            let int = format!("CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END");
            CastText::always(dialect.cast(&int, &DataType::Int64))
        }
        (FieldType::Int, FieldType::Bool) => {
            CastText::when(format!("{value} IN (0, 1)"), format!("({value} = 1)"))
        }
        (FieldType::Int, FieldType::Float) => int_to_float(dialect, value),
        (FieldType::Float, FieldType::Int) => float_to_int(dialect, value),
        (FieldType::Float, FieldType::Decimal { precision, scale }) => {
            float_to_decimal(dialect, value, *precision, *scale)
        }
        (FieldType::Decimal { scale, .. }, FieldType::Float) => {
            let float = dialect.cast(value, &DataType::Float64);
            match always {
                true => CastText::always(float),
                false => {
                    let end = 10_u64.saturating_pow(15_u32.saturating_sub(u32::from(*scale)));
                    CastText::when(format!("abs({value}) < {end}"), float)
                }
            }
        }
        (FieldType::Date, _) => CastText::always(dialect.instant_of_day(value)),
        (FieldType::Timestamp, _) => {
            CastText::when(dialect.is_midnight(value), dialect.day_of_instant(value))
        }
        (from, to) => {
            let [kept, value] = dialect.exact_number(value, from, to);
            match always {
                true => CastText::always(value),
                false => CastText::when(kept, value),
            }
        }
    }
}

fn text_of(dialect: &dyn Dialect, value: &str, from: &FieldType) -> String {
    match from {
        FieldType::String | FieldType::Enum | FieldType::Json => value.to_owned(),
        FieldType::Decimal { scale, .. } => dialect.decimal_text(value, *scale),
        _ => dialect.cast(value, &DataType::Utf8),
    }
}

fn int_to_float(dialect: &dyn Dialect, value: &str) -> CastText {
    let float = dialect.cast(value, &DataType::Float64);
    let back = dialect.try_cast(&float, &DataType::Int64);
    CastText::when(format!("{float} < {INT_END} AND {back} = {value}"), float)
}

fn float_to_int(dialect: &dyn Dialect, value: &str) -> CastText {
    let int = dialect.try_cast(value, &DataType::Int64);
    let back = dialect.cast(&int, &DataType::Float64);
    let kept = format!("{value} >= -{INT_END} AND {value} < {INT_END} AND {back} = {value}");
    CastText::when(kept, int)
}

fn float_to_decimal(dialect: &dyn Dialect, value: &str, precision: u8, scale: u8) -> CastText {
    let steps = format!("1E{scale}");
    let units = format!("round({value} * {steps})");
    let digits = precision.min(15);
    let kept = format!("abs({units}) < 1E{digits} AND {units} / {steps} = {value}");
    CastText::when(kept, dialect.decimal_of_units(&units, precision, scale))
}

fn from_text(dialect: &dyn Dialect, value: &str, to: &FieldType) -> CastText {
    let matches = |pattern: &str| dialect.matches(value, pattern);
    let number = |pattern: &str| format!("{} AND NOT {}", matches(pattern), matches(MINUS_ZERO));
    match to {
        FieldType::Int => {
            let int = dialect.try_cast(value, &DataType::Int64);
            let back = dialect.cast(&int, &DataType::Utf8);
            CastText::when(format!("{} AND {back} = {value}", matches(PLAIN_INT)), int)
        }
        FieldType::Float => {
            let digits = format!("length(replace(replace({value}, '-', ''), '.', ''))");
            let kept = format!("{} AND {digits} <= 15", number(PLAIN_NUMBER));
            CastText::when(kept, dialect.float_of_text(value))
        }
        FieldType::Decimal { precision, scale } => CastText::when(
            number(&decimal_pattern(*precision, *scale)),
            dialect.try_cast(value, &column_type(to)),
        ),
        FieldType::Bool => CastText::when(
            format!("{value} IN ('true', 'false')"),
            format!("({value} = 'true')"),
        ),
        FieldType::Date => CastText::when(
            format!("{} AND {}", matches(PLAIN_DAY), is_day(dialect, value)),
            dialect.try_cast(value, &DataType::Date32),
        ),
        _ => {
            let day = is_day(dialect, &format!("substr({value}, 1, 10)"));
            CastText::when(
                format!("{} AND {day}", matches(PLAIN_INSTANT)),
                dialect.instant_of_text(value),
            )
        }
    }
}

/// Whether a text that looks like a day is one, from the year 1 on.
fn is_day(dialect: &dyn Dialect, text: &str) -> String {
    let day = dialect.try_cast(text, &DataType::Date32);
    let back = dialect.cast(&day, &DataType::Utf8);
    format!("{back} = {text} AND {text} > '0001'")
}

/// The plain texts of a decimal type; zeros at the end of a fraction do not count.
pub(super) fn decimal_pattern(precision: u8, scale: u8) -> String {
    let whole = match precision - scale {
        0 => "0".to_owned(),
        digits => format!("(0|[1-9][0-9]{{0,{}}})", digits - 1),
    };
    let fraction = match scale {
        0 => "([.]0+)?".to_owned(),
        scale => format!("([.][0-9]{{1,{scale}}}0*)?"),
    };
    format!(r"^-?{whole}{fraction}\z")
}
