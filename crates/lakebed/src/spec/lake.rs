//! `lake.json`: the first file of a lake, put once by `init`.

use serde::{Deserialize, Serialize};

use crate::name::LakeId;
use crate::time::Instant;

/// The newest lake format this program writes and reads.
pub const LAKE_FORMAT: u32 = 1;

/// What `lake.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LakeSpec {
    /// Format of the whole lake; a newer one is refused.
    pub format: u32,
    /// Unique id; every log record repeats it.
    pub lake: LakeId,
    /// IANA time zone of business dates.
    pub time_zone: String,
    /// When the lake was made.
    pub created_at: Instant,
}
