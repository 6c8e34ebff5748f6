//! What a closing found: the reasons for which a run is red, and who took it as it is.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::queue::RunRecord;
use crate::time::Instant;

/// What the reason begins with where the pack of the run was refused; once it was the reason of a stop.
const PACK_REFUSED: &str = "its pack was refused";
/// What a reason begins with that is another run's.
pub(super) const OF_RUN: &str = "of the run `";

/// Whether a run was stopped by a program that took a refused pack for the reason of a stop.
pub(super) fn is_stop_of_refused(reason: &str) -> bool {
    reason.starts_with(PACK_REFUSED)
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
    /// Of a refused pack: the lake has, or had, a pack of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_pack: bool,
}

impl Breach {
    /// That the pack of the run was refused, with the requests or files that the error names.
    #[must_use]
    pub fn refused_pack(error: &Error) -> Self {
        Self {
            kind: BreachKind::MissingCapture,
            message: format!("{PACK_REFUSED}: {}", error.message()),
            samples: error.details().to_vec(),
            has_pack: error.is_about("PAK-8"),
        }
    }

    /// Whether the pack was refused: of the run, or of one that it goes back to.
    #[must_use]
    pub fn is_refused_pack(&self) -> bool {
        let kinds = [BreachKind::MissingCapture, BreachKind::Stopped];
        kinds.contains(&self.kind) && self.message.contains(PACK_REFUSED)
    }

    /// Whether the pack was refused and the lake has none of the run: responses may lie outside.
    #[must_use]
    pub fn lacks_pack(&self) -> bool {
        self.is_refused_pack() && !self.has_pack
    }

    /// The name of the run that it was inherited from; `None` where it is the run's own.
    #[must_use]
    pub fn of_run(&self) -> Option<&str> {
        self.message.strip_prefix(OF_RUN)?.split('`').next()
    }

    /// Whether it is the run's own and stays so whatever is tried again: rows that were lost, responses that no pack has.
    pub(super) fn stays(&self) -> bool {
        let is_lost = matches!(
            self.kind,
            BreachKind::Unbalanced | BreachKind::MissingCapture
        );
        (is_lost || self.is_refused_pack()) && self.of_run().is_none()
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

    /// Whether it is red for a refused pack, so that it may be judged again: the run's own pack, or, with `inherited`,
    /// that of a run that it goes back to.
    #[must_use]
    pub fn may_be_sealed_again(&self, inherited: bool) -> bool {
        let refused = |b: &Breach| b.is_refused_pack() && (inherited || b.of_run().is_none());
        self.accepted.is_none() && self.breaches.iter().any(refused)
    }

    /// The reason that says that responses lie outside the lake, of the run or of one that it goes back to: until that is
    /// mended nobody accepts the run.
    #[must_use]
    pub fn lacks_pack(&self) -> Option<&Breach> {
        self.breaches.iter().find(|breach| breach.lacks_pack())
    }
}

/// How a closed run was closed.
///
/// # Errors
/// `CorruptData` where that cannot be read.
pub fn closing_of(run: &RunRecord) -> Result<ClosingRecord> {
    let text = run.closing.as_deref().unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|e| Error::corrupt(format!("the closing of the run `{}`", run.key)).caused_by(e))
}
