//! Old values of a retyped field in the newest type, and those that cannot be it.
//!
//! What these expressions do is unknown to DataFusion, so it skips no row group or page by them
//! (QRY-4): bounds of a file are of the old type, in which values may stand in another order.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow::compute::nullif;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, FieldRef, Float64Type, Int64Type, Schema, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use lakebed::registry::{Cast, Scalar};

use super::columns::plain_type;

/// Which of the old values are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// Those that can be cast, in the new type.
    Cast,
    /// The others, as they are.
    Rest,
}

/// A column of an old type, read through a cast.
#[derive(Debug, Clone)]
pub(super) struct RetypeExpr {
    /// The old column, in the type that the cast takes.
    pub(super) input: Arc<dyn PhysicalExpr>,
    /// The cast.
    pub(super) cast: Cast,
    /// Which values come out.
    pub(super) wanted: Wanted,
    /// The table's column.
    pub(super) target: FieldRef,
}

impl PartialEq for RetypeExpr {
    fn eq(&self, other: &Self) -> bool {
        self.input.eq(&other.input)
            && (&self.cast, self.wanted, &self.target) == (&other.cast, other.wanted, &other.target)
    }
}

impl Eq for RetypeExpr {}

impl std::hash::Hash for RetypeExpr {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        (&self.cast, self.wanted, &self.target).hash(state);
    }
}

impl fmt::Display for RetypeExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.wanted {
            Wanted::Cast => "retyped",
            Wanted::Rest => "rest",
        };
        write!(f, "{word}({}, {})", self.input, self.cast.to)
    }
}

impl PhysicalExpr for RetypeExpr {
    fn data_type(&self, _input_schema: &Schema) -> Result<DataType> {
        Ok(plain_type(self.target.data_type()))
    }

    fn nullable(&self, _input_schema: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.input.evaluate(batch)?.into_array(batch.num_rows())?;
        let made = match self.wanted {
            Wanted::Cast => cast_array(&array, &self.cast, self.target.data_type())?,
            Wanted::Rest => rest_of(&array, &self.cast)?,
        };
        Ok(ColumnarValue::Array(made))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return exec_err!("a cast of a retyped field takes one argument");
        };
        Ok(Arc::new(Self {
            input,
            ..Self::clone(&self)
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.input.fmt_sql(f)
    }
}

fn unknown(data_type: &DataType) -> ArrowError {
    ArrowError::CastError(format!("values of {data_type} have no cast"))
}

/// The values of an array, row by row.
fn scalars(array: &ArrayRef) -> Result<Vec<Option<Scalar<'_>>>, ArrowError> {
    let text = |t| Scalar::Text(Cow::Borrowed(t));
    Ok(match array.data_type() {
        DataType::Utf8 => array
            .as_string::<i32>()
            .iter()
            .map(|v| v.map(text))
            .collect(),
        DataType::Utf8View => array.as_string_view().iter().map(|v| v.map(text)).collect(),
        DataType::Int64 => each(array.as_primitive::<Int64Type>().iter(), Scalar::Int),
        DataType::Float64 => each(array.as_primitive::<Float64Type>().iter(), Scalar::Float),
        DataType::Boolean => each(array.as_boolean().iter(), Scalar::Bool),
        DataType::Decimal128(..) => each(
            array.as_primitive::<Decimal128Type>().iter(),
            Scalar::Decimal,
        ),
        DataType::Date32 => each(array.as_primitive::<Date32Type>().iter(), Scalar::Date),
        DataType::Timestamp(TimeUnit::Microsecond, _) => each(
            array.as_primitive::<TimestampMicrosecondType>().iter(),
            Scalar::Timestamp,
        ),
        other => return Err(unknown(other)),
    })
}

fn each<'a, T>(
    values: impl Iterator<Item = Option<T>>,
    make: fn(T) -> Scalar<'a>,
) -> Vec<Option<Scalar<'a>>> {
    values.map(|v| v.map(make)).collect()
}

/// The array of the scalars that `pick` knows.
macro_rules! collect {
    ($array:ty, $values:expr, $kind:ident) => {
        $values
            .map(|v| match v {
                Some(Scalar::$kind(value)) => Some(value),
                _ => None,
            })
            .collect::<$array>()
    };
}

/// The values in the type `to`, NULL where the cast loses something.
fn cast_array(array: &ArrayRef, cast: &Cast, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let values = scalars(array)?.into_iter();
    let values = values.map(|v| cast.apply(v?, None));
    Ok(match to {
        DataType::Utf8 => Arc::new(collect!(StringArray, values, Text)),
        DataType::Utf8View => Arc::new(collect!(StringViewArray, values, Text)),
        DataType::Int64 => Arc::new(collect!(Int64Array, values, Int)),
        DataType::Float64 => Arc::new(collect!(Float64Array, values, Float)),
        DataType::Boolean => Arc::new(collect!(BooleanArray, values, Bool)),
        DataType::Date32 => Arc::new(collect!(Date32Array, values, Date)),
        DataType::Decimal128(precision, scale) => {
            let array = collect!(Decimal128Array, values, Decimal);
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let array = collect!(TimestampMicrosecondArray, values, Timestamp);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        other => return Err(unknown(other)),
    })
}

/// The values that the cast would not keep whole, NULL in the place of all others.
fn rest_of(array: &ArrayRef, cast: &Cast) -> Result<ArrayRef, ArrowError> {
    let values = scalars(array)?.into_iter();
    let kept: BooleanArray = values
        .map(|v| Some(v.is_none_or(|v| cast.apply(v, None).is_some())))
        .collect();
    nullif(array, &kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_one_of_the_two_columns() {
        let cast = Cast {
            from: "string".parse().unwrap(),
            to: "decimal(6,2)".parse().unwrap(),
            values: Vec::new(),
        };
        let array: ArrayRef = Arc::new(StringArray::from(vec![
            Some("1.5"),
            None,
            Some("1.2万"),
            Some("007"),
            Some("-0.05"),
        ]));
        let made = cast_array(&array, &cast, &DataType::Decimal128(6, 2)).unwrap();
        let units: Vec<_> = made.as_primitive::<Decimal128Type>().iter().collect();
        assert_eq!(units, [Some(150), None, None, None, Some(-5)]);
        let rest = rest_of(&array, &cast).unwrap();
        let texts: Vec<_> = rest.as_string::<i32>().iter().collect();
        assert_eq!(texts, [None, None, Some("1.2万"), Some("007"), None]);
    }
}
