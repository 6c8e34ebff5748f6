//! Partition key and state, and the `_SUCCESS` file of a sealed date.
//!
//! ```text
//!             switch            switch
//!   active ----------> switching ------> superseded
//!     ^  \                 |                 |
//!     |   \ retire         | (and back)      | retire
//!     |    v               v                 v
//!     +-- retired <------ active          retired --purge--> purged (end)
//!    restore
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{ContentHash, DatasetRef, LakeId};
use crate::time::{BusinessDate, Instant};

/// A partition within a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartitionKey {
    /// Business date.
    pub dt: BusinessDate,
    /// Schema version of its rows; 0 = schemaless bytes.
    pub schema_version: u32,
    /// 0, or n for the n-th correction of the date.
    pub revision: u32,
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dt={}/schema_version={}", self.dt, self.schema_version)?;
        if self.revision > 0 {
            write!(f, " revision {}", self.revision)?;
        }
        Ok(())
    }
}

/// What readers may see of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionState {
    /// Readers see it.
    Active,
    /// Its files are moving; readers of the catalog see it, writers are refused.
    Switching,
    /// Replaced by a correction, kept whole for rollback.
    Superseded,
    /// Metadata says gone, files wait in the trash.
    Retired,
    /// Files are gone.
    Purged,
}

impl PartitionState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Active,
        Self::Switching,
        Self::Superseded,
        Self::Retired,
        Self::Purged,
    ];

    /// The name in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Switching => "switching",
            Self::Superseded => "superseded",
            Self::Retired => "retired",
            Self::Purged => "purged",
        }
    }

    /// The legal moves; everything else is refused when a log is folded.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use PartitionState::{Active, Purged, Retired, Superseded, Switching};
        matches!(
            (self, next),
            (Active, Switching | Superseded | Retired)
                | (Switching, Active | Superseded)
                | (Superseded, Switching | Active | Retired)
                | (Retired, Active | Superseded | Purged)
        )
    }
}

impl fmt::Display for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `_SUCCESS`: written into every active partition of a sealed date, replaced whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessSpec {
    /// Format of this file, 1.
    pub format: u32,
    /// The lake.
    pub lake: LakeId,
    /// The dataset.
    pub dataset: DatasetRef,
    /// The partition.
    pub partition: PartitionKey,
    /// Log number of the seal it comes from.
    pub log_position: u64,
    /// Time of that record.
    pub sealed_at: Instant,
    /// Number of data files.
    pub file_count: u64,
    /// Rows of all files.
    pub row_count: u64,
    /// Bytes of all files.
    pub byte_size: u64,
    /// Every data file, by name.
    pub files: Vec<SuccessFile>,
}

/// A data file in `_SUCCESS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessFile {
    /// File name within the partition folder.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub blake3: ContentHash,
}

#[cfg(test)]
mod tests {
    use super::PartitionState::{self, Active, Purged, Retired, Superseded, Switching};

    #[test]
    fn moves_over_all_pairs() {
        let legal = [
            (Active, Switching),
            (Active, Superseded),
            (Active, Retired),
            (Switching, Active),
            (Switching, Superseded),
            (Superseded, Switching),
            (Superseded, Active),
            (Superseded, Retired),
            (Retired, Active),
            (Retired, Superseded),
            (Retired, Purged),
        ];
        for a in PartitionState::ALL {
            for b in PartitionState::ALL {
                assert_eq!(a.may_become(b), legal.contains(&(a, b)), "{a} -> {b}");
            }
        }
    }
}
