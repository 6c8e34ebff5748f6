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
//! `walk` reads records, `state` is their fold, `load` gets it (from a `checkpoint` on, where there is
//! one), `commit` is the one way a record is put, `group` lets calls of one process share one, `replay` what happens to an input that was seen before,
//! `attempts` what is known of a try and how it is given up.

mod as_of;
mod attempts;
mod check;
mod checkpoint;
mod commit;
mod complete;
mod diff;
mod draft;
mod fold;
mod group;
mod index;
mod load;
mod lookup;
mod moves;
mod place;
mod read;
mod replay;
mod state;
mod success;
mod switch;
mod walk;

#[cfg(test)]
mod tests;

pub use as_of::AsOf;
pub use attempts::{AttemptTrace, give_up, staged_dataset, trace_attempt};
pub use check::Unmet;
#[cfg(test)]
pub(crate) use checkpoint::write_forged;
pub use checkpoint::{
    Checkpoint, CheckpointContent, PassedOver, list_checkpoints, read_checkpoint, write_checkpoint,
};
pub use commit::{AppendedRecord, CommitOutcome, commit, other_format, refusal};
pub use complete::{SealOutcome, abandon, reopen, seal};
pub use diff::{DateDiff, DateSight, diff_states};
pub use draft::Draft;
pub use load::{Loaded, load};
pub use moves::{finish_moves, restore_places, staged_attempts, staged_paths};
pub use place::find_file;
pub use read::{LoggedRecord, list_datasets, list_numbers, read_record};
pub use replay::{InputAnswer, InputQuery, Refusal, answer};
pub use state::{
    DatasetState, DateState, FileState, InputState, Partition, RejectsState, RevisionState,
};
pub use success::{expected_success, withdraw_success, write_success};
pub use switch::{SwitchOutcome, SwitchRequest, SwitchTarget, superseding, switch};
pub use walk::{LogWalk, check_position, read_after};
