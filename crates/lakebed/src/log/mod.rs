//! The commit log of a dataset: reading it, folding it, committing to it.

mod read;

pub use read::{LoggedRecord, list_datasets, read_after, read_record};
