//! What a closing found: the reasons for which a run is red, and who took it as it is.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::queue::RunRecord;
use crate::time::Instant;

/// What the reason of a stop begins with where the pack of the run was refused.
const PACK_REFUSED: &str = "its pack was refused";
/// What a reason begins with that is another run's.
pub(super) const OF_RUN: &str = "of the run `";

/// The reason of a stop because the pack was refused.
#[must_use]
pub fn refused_pack(why: &str) -> String {
    format!("{PACK_REFUSED}: {why}")
}

/// The reasons for which a run is not green, each with an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreachKind {
    /// The run was stopped.
    Stopped,
    /// Requests have not ended: the run stays as it is.
    Unfinished,
    /// Announced is not inserted, duplicate and out of scope together, or rows are missing.
    Unbalanced,
    /// No request at all.
    ZeroSeeds,
    /// Everything is dead.
    AllDead,
    /// Fewer requests than the source must have.
    TooFew,
    /// More dead than is allowed.
    TooManyDead,
    /// A success without bytes.
    MissingCapture,
    /// Fewer requests in a group than a page announced.
    ShortGroup,
    /// No page led on where the rules say that pages do.
    NoLinks,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Which.
    pub kind: BreachKind,
    /// In words, with the numbers.
    pub message: String,
    /// Examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
}

impl Breach {
    /// Whether the run was stopped because its pack was refused.
    #[must_use]
    pub fn is_refused_pack(&self) -> bool {
        self.kind == BreachKind::Stopped && self.message.contains(PACK_REFUSED)
    }

    /// Whether it is the run's own and stays so whatever is tried again: rows that were lost, responses that no pack has.
    pub(super) fn stays(&self) -> bool {
        let is_lost = matches!(
            self.kind,
            BreachKind::Unbalanced | BreachKind::MissingCapture
        );
        (is_lost || self.is_refused_pack()) && !self.message.starts_with(OF_RUN)
    }
}

/// That a person took a red run as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Who; absent where no name is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When, by the database's clock.
    pub at: Instant,
    /// Why, in that person's words.
    pub note: String,
}

/// The result of a closing, kept with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosingRecord {
    /// Whether the run is green.
    pub pass: bool,
    /// Why it is not.
    pub breaches: Vec<Breach>,
    /// That a person took it as it is; absent where nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
}

impl ClosingRecord {
    /// Whether others may build on the run: it is green, or a person took it as it is.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.pass || self.accepted.is_some()
    }
}

pub(super) fn closing_of(run: &RunRecord) -> Result<ClosingRecord> {
    let text = run.closing.as_deref().unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|e| Error::corrupt(format!("the closing of the run `{}`", run.key)).caused_by(e))
}
