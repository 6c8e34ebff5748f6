//! Conversion: values of input records into typed columns, lossless or a fault.
//!
//! | file | what |
//! | --- | --- |
//! | `plan` | a schema version compiled for conversion: which input member feeds which field |
//! | `row` | the walk over one record: members, unknown fields, duplicate keys, missing fields |
//! | `value` | one value into one column by the rule of its type |
//! | `number`, `money`, `moment`, `pattern`, `zone`, `token` | the grammars of values |
//! | `column` | columns that can be cut back to an earlier row |
//! | `typed` | values of Arrow arrays |
//! | `presence`, `fault`, `drift` | what is counted and reported |
//!
//! What does not belong here: where records begin and end (`decode`), JSON syntax (`json`).

mod drift;
mod fault;
mod plan;
mod presence;

pub use drift::{Drift, DriftItem, Evidence, MAX_PLACES, MAX_SAMPLES};
pub use fault::{FaultCode, RejectDraft};
pub use plan::Plan;
pub use presence::{FieldPresence, Presence, PresenceCounts};
