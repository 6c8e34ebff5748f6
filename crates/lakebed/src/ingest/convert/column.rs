//! Columns that grow value by value and can be cut back to an earlier row.
//!
//! A row that turns out bad may have left values, or half of a nested value, in any column; cutting a
//! column to `n` rows removes all of it, because every length follows from the offsets of row `n`.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float64Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StructArray,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType};

use crate::error::{Error, Result};
use crate::ingest::convert::texts::Texts;
use crate::registry::Scalar;

/// A column, or a part of it, would pass 2 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Room for the next chunk of an input where the last one had `n` of something: chunks differ a little.
pub(super) fn with_slack(n: usize) -> usize {
    n + n / 16
}

/// Fixed-width values.
#[derive(Debug)]
pub(crate) struct Values<T> {
    values: Vec<T>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowNativeType> Values<T> {
    fn new() -> Self {
        Self {
            values: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value);
        self.nulls.append_non_null();
    }

    #[inline]
    fn push_null(&mut self) {
        self.values.push(T::default());
        self.nulls.append_null();
    }

    fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.nulls.truncate(rows);
    }

    fn finish<A: ArrowPrimitiveType<Native = T>>(&mut self) -> PrimitiveArray<A> {
        let next = Vec::with_capacity(with_slack(self.values.len()));
        let values = std::mem::replace(&mut self.values, next);
        PrimitiveArray::new(values.into(), self.nulls.finish())
    }
}

/// true and false.
#[derive(Debug)]
pub(crate) struct Bools {
    values: BooleanBufferBuilder,
    nulls: NullBufferBuilder,
}

impl Bools {
    #[inline]
    pub(crate) fn push(&mut self, value: bool) {
        self.values.append(value);
        self.nulls.append_non_null();
    }
}

/// Bytes.
#[derive(Debug)]
pub(crate) struct Blobs {
    /// Ends of the values, a zero first.
    offsets: Vec<i32>,
    /// Bytes of all values; a value may be appended here and then ended.
    pub(crate) data: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl Blobs {
    fn new() -> Self {
        Self {
            offsets: vec![0],
            data: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.data.extend_from_slice(bytes);
        self.end()
    }

    /// Ends the value that was appended to `data`.
    #[inline]
    pub(crate) fn end(&mut self) -> Result<(), TooLarge> {
        let Ok(offset) = i32::try_from(self.data.len()) else {
            self.undo();
            return Err(TooLarge);
        };
        self.offsets.push(offset);
        self.nulls.append_non_null();
        Ok(())
    }

    /// Forgets the value that was being appended.
    pub(crate) fn undo(&mut self) {
        self.data
            .truncate(rows_below(&self.offsets, self.offsets.len() - 1));
    }

    fn push_null(&mut self) {
        let end = self.offsets.last().copied().unwrap_or(0);
        self.offsets.push(end);
        self.nulls.append_null();
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.undo();
        self.nulls.truncate(rows);
    }

    fn finish(&mut self) -> Result<BinaryArray, ArrowError> {
        let mut next = Vec::with_capacity(with_slack(self.offsets.len()));
        next.push(0);
        let offsets = std::mem::replace(&mut self.offsets, next);
        let data = std::mem::take(&mut self.data);
        self.data.reserve(with_slack(data.len()));
        BinaryArray::try_new(
            OffsetBuffer::new(offsets.into()),
            Buffer::from_vec(data),
            self.nulls.finish(),
        )
    }
}

/// Lists.
#[derive(Debug)]
pub(crate) struct Lists {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    pub(crate) elements: Column,
}

impl Lists {
    /// Ends the list whose elements were pushed.
    pub(crate) fn end(&mut self) -> Result<(), TooLarge> {
        let end = i32::try_from(self.elements.len()).map_err(|_| TooLarge)?;
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }
}

impl Lists {
    fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::List(element) = data_type else {
            return Err(foreign(data_type));
        };
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        Ok(Arc::new(ListArray::try_new(
            element.clone(),
            OffsetBuffer::new(offsets.into()),
            self.elements.finish_array(element.data_type())?,
            self.nulls.finish(),
        )?))
    }
}

/// Maps from text.
#[derive(Debug)]
pub(crate) struct Maps {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    pub(crate) keys: Texts,
    pub(crate) values: Column,
}

impl Maps {
    /// Ends the map whose keys and values were pushed.
    pub(crate) fn end(&mut self) -> Result<(), TooLarge> {
        let end = i32::try_from(self.values.len()).map_err(|_| TooLarge)?;
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }
}

impl Maps {
    fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::Map(entries, sorted) = data_type else {
            return Err(foreign(data_type));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(foreign(data_type));
        };
        let value = fields.get(1).ok_or_else(|| foreign(data_type))?;
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let keys: ArrayRef = Arc::new(self.keys.finish());
        let values = self.values.finish_array(value.data_type())?;
        Ok(Arc::new(MapArray::try_new(
            entries.clone(),
            OffsetBuffer::new(offsets.into()),
            StructArray::try_new(fields.clone(), vec![keys, values], None)?,
            self.nulls.finish(),
            *sorted,
        )?))
    }
}

/// Structs; every child has as many rows as the struct.
#[derive(Debug)]
pub(crate) struct Structs {
    nulls: NullBufferBuilder,
    pub(crate) children: Vec<Column>,
}

impl Structs {
    /// Ends the struct whose children were pushed.
    pub(crate) fn end(&mut self) {
        self.nulls.append_non_null();
    }
}

impl Structs {
    fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(fields) = data_type else {
            return Err(foreign(data_type));
        };
        let rows = self.nulls.len();
        let mut children = Vec::with_capacity(fields.len());
        for (child, field) in self.children.iter_mut().zip(fields) {
            children.push(child.finish_array(field.data_type())?);
        }
        let nulls = self.nulls.finish();
        let array = StructArray::try_new_with_length(fields.clone(), children, nulls, rows)?;
        Ok(Arc::new(array))
    }
}

/// A column of one of the physical types of `spec::arrow_type`.
#[derive(Debug)]
pub(crate) enum Column {
    Int(Values<i64>),
    Float(Values<f64>),
    Bool(Bools),
    Decimal(Values<i128>),
    Date(Values<i32>),
    Timestamp(Values<i64>),
    Text(Texts),
    Bytes(Blobs),
    List(Box<Lists>),
    Map(Box<Maps>),
    Struct(Box<Structs>),
}

/// The row that `offsets` says row `rows` begins at, one level down.
fn rows_below(offsets: &[i32], rows: usize) -> usize {
    offsets
        .get(rows)
        .and_then(|o| usize::try_from(*o).ok())
        .unwrap_or(0)
}

impl Column {
    /// An empty column of that type.
    pub(crate) fn new(data_type: &DataType) -> Result<Self> {
        Ok(match data_type {
            DataType::Int64 => Self::Int(Values::new()),
            DataType::Float64 => Self::Float(Values::new()),
            DataType::Boolean => Self::Bool(Bools {
                values: BooleanBufferBuilder::new(0),
                nulls: NullBufferBuilder::new(0),
            }),
            DataType::Decimal128(_, _) => Self::Decimal(Values::new()),
            DataType::Date32 => Self::Date(Values::new()),
            DataType::Timestamp(_, _) => Self::Timestamp(Values::new()),
            DataType::Utf8 => Self::Text(Texts::new()),
            DataType::Binary => Self::Bytes(Blobs::new()),
            DataType::List(element) => Self::List(Box::new(Lists {
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
                elements: Self::new(element.data_type())?,
            })),
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(unexpected(data_type));
                };
                let value = fields.get(1).ok_or_else(|| unexpected(data_type))?;
                Self::Map(Box::new(Maps {
                    offsets: vec![0],
                    nulls: NullBufferBuilder::new(0),
                    keys: Texts::new(),
                    values: Self::new(value.data_type())?,
                }))
            }
            DataType::Struct(fields) => {
                let children: Result<_> = fields.iter().map(|f| Self::new(f.data_type())).collect();
                Self::Struct(Box::new(Structs {
                    nulls: NullBufferBuilder::new(0),
                    children: children?,
                }))
            }
            other => return Err(unexpected(other)),
        })
    }

    /// Rows so far; a value that was begun and not ended does not count.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(c) | Self::Timestamp(c) => c.values.len(),
            Self::Float(c) => c.values.len(),
            Self::Bool(c) => c.values.len(),
            Self::Decimal(c) => c.values.len(),
            Self::Date(c) => c.values.len(),
            Self::Text(c) => c.len(),
            Self::Bytes(c) => c.offsets.len() - 1,
            Self::List(c) => c.offsets.len() - 1,
            Self::Map(c) => c.offsets.len() - 1,
            Self::Struct(c) => c.nulls.len(),
        }
    }

    /// Bytes of the largest text or bytes column in it.
    pub(crate) fn largest_text(&self) -> usize {
        match self {
            Self::Int(_)
            | Self::Float(_)
            | Self::Bool(_)
            | Self::Decimal(_)
            | Self::Date(_)
            | Self::Timestamp(_) => 0,
            Self::Text(c) => c.bytes(),
            Self::Bytes(c) => c.data.len(),
            Self::List(c) => c.elements.largest_text().max(c.elements.len()),
            Self::Map(c) => c.values.largest_text().max(c.keys.bytes()),
            Self::Struct(c) => c.children.iter().map(Self::largest_text).max().unwrap_or(0),
        }
    }

    /// Appends NULL.
    #[inline]
    pub(crate) fn push_null(&mut self) {
        match self {
            Self::Int(c) | Self::Timestamp(c) => c.push_null(),
            Self::Float(c) => c.push_null(),
            Self::Bool(c) => {
                c.values.append(false);
                c.nulls.append_null();
            }
            Self::Decimal(c) => c.push_null(),
            Self::Date(c) => c.push_null(),
            Self::Text(c) => c.push_null(),
            Self::Bytes(c) => c.push_null(),
            Self::List(c) => {
                c.offsets.push(c.offsets.last().copied().unwrap_or(0));
                c.nulls.append_null();
            }
            Self::Map(c) => {
                c.offsets.push(c.offsets.last().copied().unwrap_or(0));
                c.nulls.append_null();
            }
            Self::Struct(c) => {
                c.children.iter_mut().for_each(Self::push_null);
                c.nulls.append_null();
            }
        }
    }

    /// The last value, where it is a scalar.
    pub(crate) fn last_scalar(&self) -> Option<Scalar<'_>> {
        Some(match self {
            Self::Int(c) => Scalar::Int(*c.values.last()?),
            Self::Float(c) => Scalar::Float(*c.values.last()?),
            Self::Bool(c) => Scalar::Bool(c.values.get_bit(c.values.len().checked_sub(1)?)),
            Self::Decimal(c) => Scalar::Decimal(*c.values.last()?),
            Self::Date(c) => Scalar::Date(*c.values.last()?),
            Self::Timestamp(c) => Scalar::Timestamp(*c.values.last()?),
            Self::Text(c) => Scalar::Text(Cow::Borrowed(c.last()?)),
            Self::Bytes(_) | Self::List(_) | Self::Map(_) | Self::Struct(_) => return None,
        })
    }

    /// Appends a value; `false` where the column is of another type.
    pub(crate) fn push_scalar(&mut self, value: Scalar<'_>) -> Result<bool, TooLarge> {
        match (self, value) {
            (Self::Int(c), Scalar::Int(v)) | (Self::Timestamp(c), Scalar::Timestamp(v)) => {
                c.push(v);
            }
            (Self::Float(c), Scalar::Float(v)) => c.push(v),
            (Self::Bool(c), Scalar::Bool(v)) => c.push(v),
            (Self::Decimal(c), Scalar::Decimal(v)) => c.push(v),
            (Self::Date(c), Scalar::Date(v)) => c.push(v),
            (Self::Text(c), Scalar::Text(v)) => c.push(&v)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Cuts the column back to `rows` rows, whatever was begun after them.
    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Int(c) | Self::Timestamp(c) => c.truncate(rows),
            Self::Float(c) => c.truncate(rows),
            Self::Bool(c) => {
                c.values.truncate(rows);
                c.nulls.truncate(rows);
            }
            Self::Decimal(c) => c.truncate(rows),
            Self::Date(c) => c.truncate(rows),
            Self::Text(c) => c.truncate(rows),
            Self::Bytes(c) => c.truncate(rows),
            Self::List(c) => {
                c.offsets.truncate(rows + 1);
                c.elements.truncate(rows_below(&c.offsets, rows));
                c.nulls.truncate(rows);
            }
            Self::Map(c) => {
                c.offsets.truncate(rows + 1);
                let below = rows_below(&c.offsets, rows);
                c.keys.truncate(below);
                c.values.truncate(below);
                c.nulls.truncate(rows);
            }
            Self::Struct(c) => {
                c.children.iter_mut().for_each(|child| child.truncate(rows));
                c.nulls.truncate(rows);
            }
        }
    }

    /// Hands the rows out as an Arrow array of `data_type` and leaves the column empty.
    pub(crate) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef> {
        self.finish_array(data_type)
            .map_err(|e| Error::internal(format!("finish a column of `{data_type}`")).caused_by(e))
    }

    fn finish_array(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Int(c) => Arc::new(c.finish::<Int64Type>()),
            Self::Float(c) => Arc::new(c.finish::<Float64Type>()),
            Self::Date(c) => Arc::new(c.finish::<Date32Type>()),
            Self::Bool(c) => Arc::new(BooleanArray::new(c.values.finish(), c.nulls.finish())),
            Self::Decimal(c) => {
                let array = c.finish::<Decimal128Type>();
                match data_type {
                    DataType::Decimal128(p, s) => Arc::new(array.with_precision_and_scale(*p, *s)?),
                    _ => return Err(foreign(data_type)),
                }
            }
            Self::Timestamp(c) => {
                let array = c.finish::<TimestampMicrosecondType>();
                match data_type {
                    DataType::Timestamp(_, zone) => Arc::new(array.with_timezone_opt(zone.clone())),
                    _ => return Err(foreign(data_type)),
                }
            }
            Self::Text(c) => Arc::new(c.finish()),
            Self::Bytes(c) => Arc::new(c.finish()?),
            Self::List(c) => c.finish(data_type)?,
            Self::Map(c) => c.finish(data_type)?,
            Self::Struct(c) => c.finish(data_type)?,
        })
    }
}

fn unexpected(data_type: &DataType) -> Error {
    Error::internal(format!("build a column of `{data_type}`"))
}

fn foreign(data_type: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("a column is not of type {data_type}"))
}
