//! What a fold tells of itself: the shapes of the command's JSON.

use serde::Serialize;

use crate::flow::fold::refusal::FoldRefusal;
use crate::name::{BatchLabel, FoldName, SourceName};
use crate::time::BusinessDate;

/// What became of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldOutcome {
    /// Its final snapshot was made.
    Folded,
    /// It was made anew, as a revision.
    Revised,
    /// It was there, made of the same.
    AlreadyThere,
    /// It was made outside of the lake.
    Provisional,
}

/// What was read of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputRows {
    /// The input.
    pub input: String,
    /// Rows with a key.
    pub rows: u64,
    /// Of them those of earlier days.
    pub late: u64,
    /// Rows that were left out since their key is null.
    pub without_key: u64,
}

/// A folded day.
#[derive(Debug, Clone, Serialize)]
pub struct FoldedDay {
    /// The business date.
    pub date: BusinessDate,
    /// What became of it.
    pub outcome: FoldOutcome,
    /// Names rules and inputs.
    pub label: BatchLabel,
    /// Whether the list of the day was complete; without, nothing vanishes.
    pub complete: bool,
    /// Whether it began from nothing although there is earlier data.
    pub cold_start: bool,
    /// What was read; empty where nothing was.
    pub inputs: Vec<InputRows>,
    /// Keys of the snapshot.
    pub keys: u64,
    /// Keys that were not known.
    pub appeared: u64,
    /// Changes of watched fields.
    pub changed: u64,
    /// Keys that the list has no more.
    pub vanished: u64,
    /// Keys that the list has again.
    pub returned: u64,
    /// Keys that left the snapshot.
    pub dropped: u64,
    /// Rows that came after the day was folded, and wait for the next fold.
    pub waiting_rows: u64,
    /// Record of the snapshot.
    pub snapshot_record: Option<u64>,
    /// Record of the events.
    pub events_record: Option<u64>,
    /// The file, where it lies outside of the lake.
    pub file: Option<String>,
}

/// What a call has done.
#[derive(Debug, Clone, Serialize)]
pub struct FoldReport {
    /// Version of this shape.
    pub format: u32,
    /// The source.
    pub source: SourceName,
    /// The fold.
    pub fold: FoldName,
    /// The days, in order.
    pub days: Vec<FoldedDay>,
    /// What a reader of the report should know.
    pub warnings: Vec<String>,
}

/// Answer of a fold.
#[derive(Debug)]
#[must_use]
pub struct FoldAnswer {
    /// What was done.
    pub report: FoldReport,
    /// Why no more was done.
    pub refusal: Option<FoldRefusal>,
}
