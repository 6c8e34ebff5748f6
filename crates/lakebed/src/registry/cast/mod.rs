//! Casts of values from one type to another: which are without loss, and what comes out.
//!
//! ```text
//! retype    old value of a file --cast--> value of the newest type | not without loss: stays as it was
//! cast_old  new form of a value --cast--> value of the old type    | not without loss: a mismatch,
//!                                                                    or cut as declared
//! ```
//!
//! A cast is without loss where the old value follows from the new one. One table (`pairs`) says for
//! which types that holds of every value, of some, or of none; `value` decides it for one value, and
//! `registry::view` says the same in the SQL of other engines. So the rules are those that every
//! engine can say alike: texts of numbers in plain notation, floats of at most 15 digits, days and
//! instants in UTC.

mod number;
mod pairs;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use pairs::widens;
pub use pairs::{CastClass, cast_class};
pub use value::{Cast, Scalar};
