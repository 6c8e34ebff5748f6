//! The value of an input record before conversion: what the readers hand to `convert`.
//!
//! Values are borrowed from the chunk and keep their text: nothing passes through a float.

use crate::ingest::native::NativeValue;

/// A NaN or infinity, as a literal that JSON does not know or from a typed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonFinite {
    /// Not a number.
    NaN,
    /// Positive infinity.
    Infinity,
    /// Negative infinity.
    NegInfinity,
}

/// One value of an input record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Raw<'a> {
    /// The record has no such member.
    Absent,
    /// JSON null.
    Null,
    /// JSON true or false.
    Bool(bool),
    /// A JSON number by its own text, grammar already checked.
    Number(&'a str),
    /// One of the literals NaN, Infinity, -Infinity.
    NonFinite(NonFinite),
    /// A JSON string: the text between its quotes, escapes already checked but not resolved.
    String {
        /// Between the quotes.
        body: &'a str,
        /// Whether it holds a backslash.
        escaped: bool,
    },
    /// A JSON object's whole text, syntax already checked (duplicate keys are not).
    Object(&'a str),
    /// A JSON array's whole text, syntax already checked.
    Array(&'a str),
    /// A CSV cell, its quotes already resolved. Unquoted and empty = null.
    Cell {
        /// The text.
        text: &'a str,
        /// Whether it was quoted.
        quoted: bool,
    },
    /// A value of a typed input (Parquet).
    Native(NativeValue<'a>),
}
