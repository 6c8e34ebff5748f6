//! Exit codes: the one table from what happened to what the shell sees.
//!
//! EXIT-1: every error kind has exactly one code, and every code but 3 is reachable by an error kind
//! or by a verdict. The table stands in docs/cli.md, too; a test compares.

use lakebed::ErrorKind;
use lakebed::flow::{FlowTrouble, FoldRefusalKind};
use lakebed::queue::BreachKind;

/// What the process ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// 0: done; for `ingest`, also when records went into quarantine or everything was there already.
    Done,
    /// 1: the answer is no: data does not fit, a date is sealed, a number is taken, findings, differences.
    No,
    /// 2: the command line, the configuration or a name is wrong.
    Usage,
    /// 3: what was asked could not be evaluated for lack of material.
    NotEvaluated,
    /// 4: a disk, a file, stored bytes or this program failed, or is older than what it should read.
    Failed,
    /// 10 to 18: a crawl did not end green, and why; the first reason where there are several.
    Red(BreachKind),
    /// 20 to 27: a fold or a plan was not made, and why.
    Unfit(FoldRefusalKind),
    /// 30 to 34: a flow did not end well, and why; the first of these where there are several.
    Flow(FlowTrouble),
}

impl Exit {
    /// Every code, in order.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 28] = [
        Self::Done,
        Self::No,
        Self::Usage,
        Self::NotEvaluated,
        Self::Failed,
        Self::Red(BreachKind::Stopped),
        Self::Red(BreachKind::Unfinished),
        Self::Red(BreachKind::Unbalanced),
        Self::Red(BreachKind::ZeroSeeds),
        Self::Red(BreachKind::AllDead),
        Self::Red(BreachKind::TooFew),
        Self::Red(BreachKind::TooManyDead),
        Self::Red(BreachKind::MissingCapture),
        Self::Red(BreachKind::ShortGroup),
        Self::Red(BreachKind::NoLinks),
        Self::Unfit(FoldRefusalKind::NotReady),
        Self::Unfit(FoldRefusalKind::NoSnapshot),
        Self::Unfit(FoldRefusalKind::Changed),
        Self::Unfit(FoldRefusalKind::MassVanished),
        Self::Unfit(FoldRefusalKind::NoSchema),
        Self::Unfit(FoldRefusalKind::NoYesterday),
        Self::Unfit(FoldRefusalKind::ListNotComplete),
        Self::Unfit(FoldRefusalKind::OtherPlan),
        Self::Flow(FlowTrouble::Failed),
        Self::Flow(FlowTrouble::TimedOut),
        Self::Flow(FlowTrouble::Stale),
        Self::Flow(FlowTrouble::Busy),
        Self::Flow(FlowTrouble::Told),
    ];

    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::NotEvaluated => 3,
            Self::Failed => 4,
            Self::Red(kind) => match kind {
                BreachKind::Stopped => 10,
                BreachKind::Unfinished => 11,
                BreachKind::Unbalanced => 12,
                BreachKind::ZeroSeeds => 13,
                BreachKind::AllDead => 14,
                BreachKind::TooFew => 15,
                BreachKind::TooManyDead => 16,
                BreachKind::MissingCapture => 17,
                BreachKind::ShortGroup => 18,
                BreachKind::NoLinks => 19,
            },
            Self::Unfit(kind) => match kind {
                FoldRefusalKind::NotReady => 20,
                FoldRefusalKind::NoSnapshot => 21,
                FoldRefusalKind::Changed => 22,
                FoldRefusalKind::MassVanished => 23,
                FoldRefusalKind::NoSchema => 24,
                FoldRefusalKind::NoYesterday => 25,
                FoldRefusalKind::ListNotComplete => 26,
                FoldRefusalKind::OtherPlan => 27,
            },
            Self::Flow(trouble) => match trouble {
                FlowTrouble::Failed => 30,
                FlowTrouble::TimedOut => 31,
                FlowTrouble::Stale => 32,
                FlowTrouble::Busy => 33,
                FlowTrouble::Told => 34,
            },
        }
    }

    /// One line for the reference.
    #[cfg(test)]
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Done => {
                "done; records in quarantine and inputs that are there already are done, too"
            }
            Self::No => {
                "the answer is no: data that does not fit, a sealed date, a taken number, findings, differences"
            }
            Self::Usage => "the command line, the configuration, a schema file or a name is wrong",
            Self::NotEvaluated => "could not be evaluated for lack of material",
            Self::Failed => {
                "operational failure: disk, damaged input or stored bytes, a format newer than the program, a limit, a fault of the program"
            }
            Self::Red(kind) => match kind {
                BreachKind::Stopped => {
                    "crawl: the run was stopped, by its circuit breaker or by a person"
                }
                BreachKind::Unfinished => "crawl: requests have not ended; the run stays as it is",
                BreachKind::Unbalanced => {
                    "crawl: what was announced is not what came, or requests are lost"
                }
                BreachKind::ZeroSeeds => "crawl: the run has no request at all",
                BreachKind::AllDead => "crawl: every request is dead",
                BreachKind::TooFew => {
                    "crawl: fewer requests, or fewer done, than the source must have"
                }
                BreachKind::TooManyDead => "crawl: more requests are dead than is allowed",
                BreachKind::MissingCapture => {
                    "crawl: a request is done and its response is not there"
                }
                BreachKind::ShortGroup => "crawl: a list announced more than came",
                BreachKind::NoLinks => {
                    "crawl: no page has a link where the rules say that pages have"
                }
            },
            Self::Unfit(kind) => match kind {
                FoldRefusalKind::NotReady => {
                    "fold: an input of the date is not sealed, or not there"
                }
                FoldRefusalKind::NoSnapshot => {
                    "fold: there is no final snapshot in reach to begin from"
                }
                FoldRefusalKind::Changed => {
                    "fold: the date was folded of other rows or by other rules"
                }
                FoldRefusalKind::MassVanished => {
                    "fold: too much of what was there would vanish at once"
                }
                FoldRefusalKind::NoSchema => {
                    "fold, seed: the schema versions that follow from the rules are not published"
                }
                FoldRefusalKind::NoYesterday => {
                    "seed: the final snapshot of the day before is not there"
                }
                FoldRefusalKind::ListNotComplete => "seed: the list of the date is not complete",
                FoldRefusalKind::OtherPlan => "seed: another plan of the run is there",
            },
            Self::Flow(trouble) => match trouble {
                FlowTrouble::Failed => {
                    "flow: a stage failed; those that do not depend on it were done"
                }
                FlowTrouble::TimedOut => "flow: a stage took longer than it may and was ended",
                FlowTrouble::Stale => {
                    "flow: the rules of a stage have changed since it was done; `--from-stage` does it again"
                }
                FlowTrouble::Busy => "flow: another call runs the source and date",
                FlowTrouble::Told => "flow: it was told to end; the same command goes on",
            },
        }
    }

    /// The code of an error.
    pub(crate) const fn of_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidInput | ErrorKind::NotFound => Self::Usage,
            ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::PreconditionFailed => {
                Self::No
            }
            ErrorKind::Unavailable
            | ErrorKind::CorruptData
            | ErrorKind::LimitExceeded
            | ErrorKind::Internal => Self::Failed,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attacks EXIT-1.
    #[test]
    fn the_table_is_as_documented() {
        let expected = [
            (ErrorKind::InvalidInput, 2),
            (ErrorKind::NotFound, 2),
            (ErrorKind::AlreadyExists, 1),
            (ErrorKind::Conflict, 1),
            (ErrorKind::PreconditionFailed, 1),
            (ErrorKind::Unavailable, 4),
            (ErrorKind::CorruptData, 4),
            (ErrorKind::LimitExceeded, 4),
            (ErrorKind::Internal, 4),
        ];
        assert_eq!(expected.map(|(kind, _)| kind), ErrorKind::ALL);
        for (kind, code) in expected {
            assert_eq!(Exit::of_error(kind).code(), code, "{kind:?}");
            assert_ne!(Exit::of_error(kind), Exit::Done, "{kind:?}");
        }
    }

    #[test]
    fn codes_are_each_others_own() {
        let codes: Vec<u8> = Exit::ALL.into_iter().map(Exit::code).collect();
        assert_eq!(
            codes,
            [
                0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                27, 30, 31, 32, 33, 34
            ]
        );
    }
}
