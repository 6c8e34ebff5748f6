//! Values of typed inputs (Parquet, later Arrow from Python).

use arrow_array::ArrayRef;

/// A typed value. Numbers and texts of typed inputs arrive as the other variants of `Raw`; these
/// are the types that JSON has no literal for.
#[derive(Debug, Clone, Copy)]
pub enum NativeValue<'a> {
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since the epoch, of a column with a zone.
    Instant(i64),
    /// Microseconds of a wall time without a zone.
    WallTime(i64),
    /// A finite float; its value, not its digits, is what the file holds.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// Nanoseconds that are no whole microseconds, so that nothing here can hold them.
    Nanos(i64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A value of a type that no field takes (times of day, durations, intervals).
    Other(&'a ArrayRef),
    /// A nested value: row `row` of `array` (list, map or struct).
    Nested {
        /// The column, or a child of it.
        array: &'a ArrayRef,
        /// The row.
        row: usize,
    },
}

impl PartialEq for NativeValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::Instant(a), Self::Instant(b))
            | (Self::WallTime(a), Self::WallTime(b))
            | (Self::Nanos(a), Self::Nanos(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => std::ptr::eq(*a, *b),
            (Self::Nested { array: a, row: i }, Self::Nested { array: b, row: j }) => {
                i == j && std::ptr::eq(*a, *b)
            }
            (
                Self::Date(_)
                | Self::Instant(_)
                | Self::WallTime(_)
                | Self::Float(_)
                | Self::Text(_)
                | Self::Nanos(_)
                | Self::Bytes(_)
                | Self::Other(_)
                | Self::Nested { .. },
                _,
            ) => false,
        }
    }
}
