//! Fold as a stage: the final snapshot of a date from that of the day before and the sealed rows of the date.
//!
//! ```text
//! load      logs of the inputs, the snapshot and the events
//! plan      which days: the date, a gap up to it, or a chain that is worked out anew (`--from`)
//! day       sort, merge, evaluate: files in the stage                     (fold)
//! commit    events, then the snapshot, which seals the date              <- the snapshot's record ends a day
//! ```
//!
//! FLD-4: a final snapshot of D names what it was made from: that of D-1, and for each input the files that readers
//! saw, by the records that added them. FLD-5: the same inputs and rules are folded once: a call that finds the
//! snapshot there does nothing, and one that finds other inputs or rules says so and changes nothing. FLD-6: the
//! events of a date are stored before its snapshot, so a snapshot that is there has its events. FLD-7: rows that came
//! after their day was folded are read by the next fold, once, or by a chain that begins on their day.

mod again;
mod day;
mod inputs;
mod label;
mod refusal;
mod report;
mod schemas;
mod stage;
mod store;

pub(super) use inputs::{InputFiles, load_settled};
pub use refusal::{FoldRefusal, FoldRefusalKind};
pub use report::{FoldAnswer, FoldOutcome, FoldReport, FoldedDay, InputRows};
pub use schemas::{FoldSource, WrittenSchema, check_fold, write_schemas};
pub use stage::{FoldOptions, fold_date};

pub(super) use again::MadeOf;
pub(super) use day::{RowBudget, clear_folder, read_input, read_previous};
pub(super) use refusal::{Stop, Tried};
pub(super) use stage::{has_data_before, is_final};

#[cfg(test)]
mod tests;
