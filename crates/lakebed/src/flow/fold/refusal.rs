//! Why a fold or a plan is not made: each reason has an exit code of its own.

use crate::error::Error;

/// The reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldRefusalKind {
    /// Fold: an input of the date is not sealed, or not there.
    NotReady,
    /// Fold: there is no final snapshot in reach to begin from.
    NoSnapshot,
    /// Fold: inputs or rules are not those that the date was folded with.
    Changed,
    /// Fold: too much of what was there would vanish at once.
    MassVanished,
    /// Fold: the schema versions that follow from the rules are not published.
    NoSchema,
    /// Seed: yesterday's snapshot is missing or not final.
    NoYesterday,
    /// Seed: today's list is not complete.
    ListNotComplete,
    /// Seed: another plan of the run is there.
    OtherPlan,
}

impl FoldRefusalKind {
    /// Every reason, in the order of the codes.
    pub const ALL: [Self; 8] = [
        Self::NotReady,
        Self::NoSnapshot,
        Self::Changed,
        Self::MassVanished,
        Self::NoSchema,
        Self::NoYesterday,
        Self::ListNotComplete,
        Self::OtherPlan,
    ];
}

/// A refusal: nothing was changed, beside the days that were folded before it.
#[derive(Debug)]
pub struct FoldRefusal {
    /// Why.
    pub kind: FoldRefusalKind,
    /// In words, with advice.
    pub error: Error,
}

/// What ends a fold early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It failed.
    Failed(Error),
    /// It is refused.
    Refused(FoldRefusal),
}

/// What a step of a fold answers.
pub(crate) type Tried<T> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    /// A refusal.
    pub(crate) fn refuse(kind: FoldRefusalKind, error: Error) -> Self {
        Self::Refused(FoldRefusal { kind, error })
    }
}
