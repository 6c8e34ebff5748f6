//! What became of flows: the shapes of the JSON of `lakebed run`.

use serde::Serialize;

use crate::config::StageKind;
use crate::flow::judge::Standing;
use crate::flow::place::StageFailure;
use crate::name::{FlowStageName, RunName, SourceName};
use crate::time::BusinessDate;

/// Version of the report.
pub(super) const FLOW_REPORT_FORMAT: u32 = 1;

/// What became of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StageOutcome {
    /// Its stamp holds: nothing was to be done.
    AlreadyDone,
    /// It ran and was stamped.
    Done,
    /// It ran and failed.
    Failed,
    /// It took longer than it may, and was ended.
    TimedOut,
    /// Its rules have changed: a person must say so with `--from-stage`.
    Stale,
    /// One before it did not end well.
    Blocked,
    /// The flow was told to end while it ran, or before.
    Told,
    /// It is not done on this date.
    NotDue,
    /// Of a dry run: it would run.
    WouldRun,
    /// Of a dry run: it runs if one before it gives it other inputs.
    MayRun,
}

impl StageOutcome {
    /// Whether what comes after it may go on.
    #[must_use]
    pub const fn is_good(self) -> bool {
        match self {
            Self::AlreadyDone | Self::Done | Self::NotDue | Self::WouldRun | Self::MayRun => true,
            Self::Failed | Self::TimedOut | Self::Stale | Self::Blocked | Self::Told => false,
        }
    }

    /// The word that people see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyDone => "there already",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Stale => "STALE",
            Self::Blocked => "blocked",
            Self::Told => "interrupted",
            Self::NotDue => "not due",
            Self::WouldRun => "would run",
            Self::MayRun => "may run",
        }
    }
}

/// A stage of a run, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageReport {
    /// Its name.
    pub stage: FlowStageName,
    /// Its kind.
    pub kind: StageKind,
    /// What became of it.
    pub outcome: StageOutcome,
    /// How it stood before.
    pub standing: Option<Standing>,
    /// Why it ran, was refused or did not run.
    pub why: String,
    /// How long it took, from its start to its stamp; absent where it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// What it warned of, although it may have ended well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<StageFailure>,
}

/// A source and date, and what became of its flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DateReport {
    /// The source.
    pub source: SourceName,
    /// The business date.
    pub date: BusinessDate,
    /// The run.
    pub run: RunName,
    /// Who runs it instead; then nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// Its stages in their order.
    pub stages: Vec<StageReport>,
}

/// Why flows did not all end well: the first of these that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowTrouble {
    /// A stage failed.
    Failed,
    /// A stage took longer than it may.
    TimedOut,
    /// A stage is STALE.
    Stale,
    /// Another call runs the date.
    Busy,
    /// The flow was told to end.
    Told,
}

impl DateReport {
    /// Why it did not end well; `None` = it did.
    #[must_use]
    pub fn trouble(&self) -> Option<FlowTrouble> {
        let of = |outcome: StageOutcome| match outcome {
            StageOutcome::Failed => Some(FlowTrouble::Failed),
            StageOutcome::TimedOut => Some(FlowTrouble::TimedOut),
            StageOutcome::Stale => Some(FlowTrouble::Stale),
            StageOutcome::Told => Some(FlowTrouble::Told),
            StageOutcome::AlreadyDone
            | StageOutcome::Done
            | StageOutcome::Blocked
            | StageOutcome::NotDue
            | StageOutcome::WouldRun
            | StageOutcome::MayRun => None,
        };
        let busy = self.busy.as_ref().map(|_| FlowTrouble::Busy);
        let stages = self.stages.iter().filter_map(|s| of(s.outcome));
        stages.chain(busy).min()
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct FlowReport {
    /// Version of this shape.
    pub format: u32,
    /// Whether nothing was done but planned.
    pub dry_run: bool,
    /// Why not all ended well; absent = all did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<FlowTrouble>,
    /// Every source and date, by source and then by date.
    pub dates: Vec<DateReport>,
}
