//! One value from one type to another.

use std::borrow::Cow;

use crate::registry::cast::number::{
    decimal_of_float, decimal_of_text, decimal_text, float_of_decimal, float_of_int, float_of_text,
    int_of_float, int_of_text, rescaled,
};
use crate::registry::cast::pairs::{CastClass, cast_class};
use crate::spec::{FieldSpec, FieldType, Lossy};
use crate::time::BusinessDate;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A value that is cast.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// A text, a value of an enum, a JSON text.
    Text(Cow<'a, str>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// true or false.
    Bool(bool),
    /// Units of a decimal's last digit.
    Decimal(i128),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01, UTC.
    Timestamp(i64),
}

/// A cast of all values of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The type they have.
    pub from: FieldType,
    /// The type they get.
    pub to: FieldType,
    /// The values of an enum `to`.
    pub values: Vec<String>,
}

impl Cast {
    /// A cast to the type of `field`.
    #[must_use]
    pub fn to_field(from: &FieldType, field: &FieldSpec) -> Self {
        Self {
            from: from.clone(),
            to: field.field_type.clone(),
            values: field.values.clone(),
        }
    }

    /// Which values it takes; `None` = there is no such cast.
    #[must_use]
    pub fn class(&self) -> Option<CastClass> {
        cast_class(&self.from, &self.to)
    }

    /// `value` in the other type; `None` where that would lose something, `lossy` aside.
    ///
    /// A text has its plain notation alone: no leading zeros (they may be part of a code), no plus,
    /// blanks or exponent; an instant is `YYYY-MM-DDThh:mm:ss[.ffffff]Z`; a day is a midnight in UTC.
    #[must_use]
    pub fn apply<'a>(&self, value: Scalar<'a>, lossy: Option<Lossy>) -> Option<Scalar<'a>> {
        self.class()?;
        match &self.to {
            FieldType::String | FieldType::Json => self.text(value).map(Scalar::Text),
            FieldType::Enum => {
                let text = self.text(value)?;
                let known = self.values.iter().any(|v| *v == text);
                known.then_some(Scalar::Text(text))
            }
            FieldType::Int => self.int(&value, lossy).map(Scalar::Int),
            FieldType::Float => self.float(&value, lossy).map(Scalar::Float),
            FieldType::Bool => bool_of(&value).map(Scalar::Bool),
            FieldType::Decimal { precision, scale } => {
                let units = self.decimal(&value, (*precision, *scale), lossy)?;
                Some(Scalar::Decimal(units))
            }
            FieldType::Date => date_of(&value, lossy).map(Scalar::Date),
            FieldType::Timestamp => timestamp_of(&value).map(Scalar::Timestamp),
            FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) | FieldType::Struct => None,
        }
    }

    fn scale(&self) -> u8 {
        match self.from {
            FieldType::Decimal { scale, .. } => scale,
            _ => 0,
        }
    }

    fn text<'a>(&self, value: Scalar<'a>) -> Option<Cow<'a, str>> {
        Some(match value {
            Scalar::Text(text) => text,
            Scalar::Int(n) => n.to_string().into(),
            Scalar::Bool(b) => (if b { "true" } else { "false" }).into(),
            Scalar::Decimal(units) => decimal_text(units, self.scale()).into(),
            Scalar::Date(day) => BusinessDate::from_days(day)?.to_string().into(),
            Scalar::Float(_) | Scalar::Timestamp(_) => return None,
        })
    }

    fn int(&self, value: &Scalar<'_>, lossy: Option<Lossy>) -> Option<i64> {
        match value {
            Scalar::Text(text) => int_of_text(text),
            Scalar::Float(x) => int_of_float(*x, lossy),
            Scalar::Bool(b) => Some(i64::from(*b)),
            Scalar::Decimal(units) => {
                i64::try_from(rescaled(*units, self.scale(), (38, 0), lossy)?).ok()
            }
            Scalar::Int(n) => Some(*n),
            Scalar::Date(_) | Scalar::Timestamp(_) => None,
        }
    }

    fn float(&self, value: &Scalar<'_>, lossy: Option<Lossy>) -> Option<f64> {
        match value {
            Scalar::Text(text) => float_of_text(text),
            Scalar::Int(n) => float_of_int(*n, lossy),
            Scalar::Decimal(units) => float_of_decimal(*units, self.scale(), lossy),
            Scalar::Float(x) => Some(*x),
            Scalar::Bool(_) | Scalar::Date(_) | Scalar::Timestamp(_) => None,
        }
    }

    fn decimal(&self, value: &Scalar<'_>, to: (u8, u8), lossy: Option<Lossy>) -> Option<i128> {
        match value {
            Scalar::Text(text) => decimal_of_text(text, to.0, to.1),
            Scalar::Int(n) => rescaled(i128::from(*n), 0, to, None),
            Scalar::Float(x) => decimal_of_float(*x, to.0, to.1),
            Scalar::Decimal(units) => rescaled(*units, self.scale(), to, lossy),
            Scalar::Bool(_) | Scalar::Date(_) | Scalar::Timestamp(_) => None,
        }
    }
}

fn bool_of(value: &Scalar<'_>) -> Option<bool> {
    match value {
        Scalar::Text(text) => text.parse().ok(),
        Scalar::Int(0) => Some(false),
        Scalar::Int(1) => Some(true),
        Scalar::Bool(b) => Some(*b),
        Scalar::Int(_)
        | Scalar::Float(_)
        | Scalar::Decimal(_)
        | Scalar::Date(_)
        | Scalar::Timestamp(_) => None,
    }
}

/// A day written `YYYY-MM-DD`, years 0001 to 9999.
fn day_of_text(text: &str) -> Option<i32> {
    let day: BusinessDate = text.parse().ok()?;
    (day.to_string() == text).then(|| day.days())
}

fn date_of(value: &Scalar<'_>, lossy: Option<Lossy>) -> Option<i32> {
    match value {
        Scalar::Text(text) => day_of_text(text),
        Scalar::Timestamp(micros) => {
            let whole = micros.rem_euclid(MICROS_PER_DAY) == 0;
            let day = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?;
            (whole || lossy == Some(Lossy::Truncate)).then_some(day)
        }
        Scalar::Date(day) => Some(*day),
        Scalar::Int(_) | Scalar::Float(_) | Scalar::Bool(_) | Scalar::Decimal(_) => None,
    }
}

fn timestamp_of(value: &Scalar<'_>) -> Option<i64> {
    match value {
        Scalar::Text(text) => instant_of_text(text),
        Scalar::Date(day) => i64::from(*day).checked_mul(MICROS_PER_DAY),
        Scalar::Timestamp(micros) => Some(*micros),
        Scalar::Int(_) | Scalar::Float(_) | Scalar::Bool(_) | Scalar::Decimal(_) => None,
    }
}

/// `YYYY-MM-DDThh:mm:ss[.ffffff]Z`.
fn instant_of_text(text: &str) -> Option<i64> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let day = i64::from(day_of_text(day)?);
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (time, None),
    };
    let mut left = clock.split(':');
    let mut part = |end: i64| {
        let digits = left.next().filter(|p| p.len() == 2)?;
        let number: i64 = all_digits(digits)?.parse().ok()?;
        (number < end).then_some(number)
    };
    let (hours, minutes, seconds) = (part(24)?, part(60)?, part(60)?);
    if left.next().is_some() {
        return None;
    }
    let micros = match fraction {
        None => 0,
        Some(digits) if (1..=6).contains(&digits.len()) => {
            format!("{:0<6}", all_digits(digits)?).parse().ok()?
        }
        Some(_) => return None,
    };
    let seconds = (hours * 60 + minutes) * 60 + seconds;
    Some(day * MICROS_PER_DAY + seconds * 1_000_000 + micros)
}

fn all_digits(text: &str) -> Option<&str> {
    text.bytes().all(|b| b.is_ascii_digit()).then_some(text)
}
