//! Conversion: values of input records into typed columns, lossless or a fault.
//!
//! | file | what |
//! | --- | --- |
//! | `plan` | a schema version compiled for conversion: which input member feeds which field |
//! | `names` | short names of members, found by their word |
//! | `row` | the walk over one record and its members |
//! | `dual` | one value into the fields of a `dual` group |
//! | `cast` | a value of another form into the old type (`cast_old`) |
//! | `value`, `container`, `native` | one value into one column by the rule of its type |
//! | `direct` | JSON values of the usual types without a step between |
//! | `refusal`, `trouble` | faults of the record with their places; unknown fields; reasons in words |
//! | `number`, `money`, `moment`, `pattern`, `zone`, `token` | the grammars of values |
//! | `column`, `texts` | columns that can be cut back to an earlier row |
//! | `memory` | what a worker keeps from chunk to chunk |
//! | `typed` | values of Arrow arrays |
//! | `presence`, `fault`, `drift`, `evidence` | what is counted and reported |
//!
//! What does not belong here: where records begin and end (`decode`), JSON syntax (`json`).

mod cast;
mod column;
mod container;
mod direct;
mod drift;
mod dual;
mod evidence;
mod fault;
mod memory;
mod moment;
mod money;
mod names;
mod native;
mod number;
mod pattern;
mod plan;
mod presence;
mod refusal;
mod row;
mod texts;
mod token;
mod trouble;
mod typed;
mod value;
mod zone;

pub use drift::{Drift, DriftItem, Evidence, MAX_PLACES, MAX_SAMPLES};
pub use fault::{FaultCode, RejectDraft};
pub use plan::Plan;
pub use presence::{FieldPresence, Presence, PresenceCounts};

pub(crate) use column::Column;
pub(crate) use fault::{excerpt, push_member};
pub(crate) use memory::Memory;
pub(crate) use plan::Slot;
pub(crate) use row::{Place, Row};
pub(crate) use typed::{TypedRow, write_members};
