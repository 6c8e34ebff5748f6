//! The commit log of a dataset: reading it, folding it, committing to it.
//!
//! The log is the truth; everything else is a fold of it. The order of a write:
//!
//! ```text
//! 1 stage files, durable      _lake/stage/<attempt>/<final path>
//! 2 put the log record        <- the commit, atomic over all partitions of the dataset
//! 3 move the files            idempotent: any opener finishes it (`moves`)
//! 4 apply to the catalog      (`catalog::sync`)
//! 5 `_SUCCESS`                when the date is sealed (`complete`)
//! ```
//!
//! `state` is the fold, `commit` the one way a record is put, `replay` what happens to an input that
//! was seen before, `attempts` what is known of a try and how it is given up.

mod attempts;
mod commit;
mod complete;
mod moves;
mod read;
mod replay;
mod state;

#[cfg(test)]
mod tests;

pub use attempts::{AttemptTrace, give_up, staged_dataset, trace_attempt};
pub use commit::{AppendedRecord, CommitOutcome, Draft, commit, refusal};
pub use complete::{
    SealOutcome, abandon, expected_success, reopen, seal, withdraw_success, write_success,
};
pub use moves::{final_paths, finish_moves, staged_attempts};
pub use read::{LoggedRecord, list_datasets, read_after, read_record};
pub use replay::{InputAnswer, InputQuery, Refusal, answer};
pub use state::{DatasetState, DateState, FileState, InputState, Partition, RejectsState, Unmet};
