//! What files say about their fields, and the fields one may propose from it.
//!
//! ```text
//! chunks -> gather (records) -> Evidence (kinds, digits, text classes, samples, files)
//!        -> propose (types with reasons) -> `schema infer`, the drift report
//! ```
//!
//! Nothing here decides how values are stored: a proposal becomes a schema only when people publish
//! it. The choice is never silent and never clever: every type comes with its reason, mixed kinds
//! become `json`, digits in texts stay texts, a name decides nothing, an object is a struct (maps and
//! decimals are for people to declare).

mod classify;
mod evidence;
mod gather;
mod propose;
mod typed;

#[cfg(test)]
mod tests;

pub use evidence::{Evidence, FieldEvidence, KindCounts, Members, NumberEvidence, TextEvidence};
pub use gather::gather;
pub use propose::{AddedEvidence, Choice, InferredFields, propose_fields};
