//! What a shadow run found for a date: `shadow/<source>/<stage>/<pair>/<date>.json` of the project, and its differing items
//! beside it, a JSON line each, in `<date>.diff.jsonl` (docs/shadow.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::name::{ContentHash, SourceName};
use crate::time::BusinessDate;

/// Version of the record of a date.
pub const SHADOW_FORMAT: u32 = 1;

/// Whether two implementations gave the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ShadowVerdict {
    /// Every item, apart from what was to be ignored.
    Agree,
    /// Not every item.
    Diff,
}

/// Items of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowCounts {
    /// Equal in both.
    pub agree: u64,
    /// In both, and not equal.
    pub changed: u64,
    /// Of the present implementation alone.
    pub only_old: u64,
    /// Of the new one alone.
    pub only_new: u64,
}

impl ShadowCounts {
    /// Items that are not equal in both.
    #[must_use]
    pub fn differ(&self) -> u64 {
        self.changed + self.only_old + self.only_new
    }
}

/// What was found for a date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShadowDay {
    /// [`SHADOW_FORMAT`].
    pub format: u32,
    /// The source.
    pub source: SourceName,
    /// The stage: `parse`, `fold.<name>`, `derive.<name>`, `shell.<name>`.
    pub stage: String,
    /// The business date.
    pub date: BusinessDate,
    /// The implementation as it is.
    pub old: ContentHash,
    /// The one that is tried.
    pub new: ContentHash,
    /// Names the inputs: equal ones have equal names.
    pub inputs: ContentHash,
    /// Whether all items agree.
    pub verdict: ShadowVerdict,
    /// Pages that both were given; absent where the stage reads no pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Items by kind: `page`, `record <dataset>`, `link <stage>`, `total`; `row <dataset>`,
    /// `event <dataset>`; `file`.
    pub items: BTreeMap<String, ShadowCounts>,
    /// In how many items a field differs, by dataset and path.
    pub fields: BTreeMap<String, u64>,
    /// Fields that were not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}
