//! The head of a checkpoint: which fold of which log it holds. It lies in the footer of the file.

use serde::{Deserialize, Serialize};

use crate::name::{DatasetRef, LakeId};
use crate::spec::LogPosition;
use crate::time::Instant;

/// Format number of checkpoints this program reads and writes.
pub const CHECKPOINT_FORMAT: u32 = 1;
/// Key of the head in the footer.
pub const CHECKPOINT_KEY: &str = "lakebed.checkpoint";

/// What a checkpoint says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointHead {
    /// Format; a reader knows its own alone.
    pub format: u32,
    /// Format of records that the writer could fold: a reader that knows fewer does not use it.
    pub record_format: u32,
    /// The lake.
    pub lake: LakeId,
    /// The dataset.
    pub dataset: DatasetRef,
    /// The last record that is folded in, with its hash.
    pub position: LogPosition,
    /// Time of that record.
    pub last_at: Option<Instant>,
}
