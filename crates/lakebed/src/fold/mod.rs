//! Fold: `snapshot(today) = fold(snapshot(yesterday), rows of today)`, and what happened in between as events.
//!
//! ```text
//! rows of today --sort by key, instant--> one stream an input --+
//!                                                              merge by key -> windows -> evaluate -> snapshot
//! snapshot of yesterday (sorted by key) -----------------------+             (of 65536 keys)       \-> events
//! ```
//!
//! | part | what it does |
//! | --- | --- |
//! | `rules` | the declared rules over the types of the inputs |
//! | `bound` | the rules with the columns of what is published |
//! | `schema` | the schema versions of snapshot and events, which follow from them |
//! | `cells` | values of columns: made to fit, tested, told as JSON, hashed |
//! | `sort` | the rows of a day in the order of their keys, in bounded memory |
//! | `window` | keys with yesterday's row and today's rows of each |
//! | `scene` | a window while it is folded |
//! | `evaluate` | the fields of a window, column by column |
//! | `status` | the states of a window |
//! | `event` | what happened to the keys of a window |
//! | `plan` | which objects of a window are fetched in detail, and why |
//!
//! FLD-1: what comes out depends on the rows, the rules and the date alone: not on the clock, the machine, the
//! number of threads or the memory. FLD-2: nothing vanishes, and no day of absence is counted, but by a complete
//! list of the day. FLD-3: a row that says that its object is gone moves its state, and changes no other field.
//!
//! What is read and stored is `flow`'s business.

mod bound;
mod cells;
mod evaluate;
mod event;
mod plan;
mod rules;
mod scene;
mod schema;
mod sort;
mod status;
mod window;

#[cfg(test)]
mod tests;

pub use bound::BoundRules;
pub use cells::{conform, holds_any, json_of};
pub use evaluate::{Evaluator, FoldDay, FoldedWindow};
pub use plan::{PlanRules, PlannedKey, SeedReason, SkipReason, Verdict, percent_encoded};
pub use rules::{FoldRules, InputColumn, InputRules};
pub use scene::WindowCounts;
pub use schema::{FoldSchemas, next_schema};
pub use sort::{DayRows, DaySorter};
pub use window::{Window, Windows};
