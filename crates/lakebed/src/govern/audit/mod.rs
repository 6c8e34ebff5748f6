//! Audit: log, catalog, `_SUCCESS` and folders compared both ways. The log wins.
//!
//! ```text
//! collect (log folds, listing) -> check (findings, each with what repair would do) -> repair (apply)
//! ```
//!
//! The plan and its application share the findings: `--repair` does what the finding says and
//! nothing else. Repair never adopts a file that the log does not know and never deletes data.
//!
//! | id | statement |
//! | --- | --- |
//! | LOG-1..4, LOG-10, LOG-12 | the log is whole, chained, at its place, folds, and holds files of one format; every checkpoint holds such a fold |
//! | FIL-1 | every file that readers see lies at its place with its size |
//! | FIL-2 | nothing else lies in the data folders |
//! | FIL-4 | nothing that no rule explains lies elsewhere in the lake |
//! | FIL-3 | (deep) every file has the bytes and rows that the log says |
//! | FIL-5 | every superseded file waits at its place, and nothing else does |
//! | CMP-1, CMP-2 | `_SUCCESS` is there exactly when the date is sealed, and says what the log says |
//! | STG-1 | the stage holds no attempt that can never commit |
//! | STG-2 | no temporary file of a put is left |
//! | REJ-1 | every rejects file lies at its place with its size |
//! | SCH-1 | every schema version in use is published |
//! | CAT-3, CAT-6 | the catalog stands where the log stands and says the same |
//! | ADV-1, ADV-2 | advice: a day beyond 5 GB or 500 files; many small files |

mod catalog;
mod checkpoint;
mod collect;
mod each;
mod files;
mod rebuilt;
mod repair;
mod strangers;
mod superseded;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::name::{AttemptId, DatasetRef};
use crate::spec::By;
use crate::store::{Lake, StorePath};
use crate::time::BusinessDate;

pub use repair::RepairReport;

/// How often an audit looks again when the logs go on meanwhile.
const MAX_ROUNDS: usize = 5;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Readers get wrong or no answers.
    Error,
    /// Readers are right, something waits to be finished.
    Warning,
    /// Could be better.
    Advice,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Advice => "advice",
        })
    }
}

/// What `--repair` would do about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "repair", rename_all = "snake_case")]
pub enum Repair {
    /// Nothing: a person must decide.
    Manual {
        /// What the person can do.
        advice: String,
    },
    /// Move staged files of committed records to their places.
    FinishMoves,
    /// Write the `_SUCCESS` files of a sealed date.
    WriteSuccess {
        /// The date.
        dt: BusinessDate,
    },
    /// Delete a `_SUCCESS` of an open date.
    DeleteSuccess {
        /// The file.
        path: StorePath,
    },
    /// Put an `abandon` record, then delete the attempt's staged files.
    Abandon {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Delete staged files of an attempt that was abandoned or whose files all moved.
    DeleteStage {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Delete a temporary file.
    DeleteTemporary {
        /// The file.
        path: StorePath,
    },
    /// Delete a checkpoint; the log is read without it.
    DeleteCheckpoint {
        /// The file.
        path: StorePath,
    },
    /// Apply the log's new records to the catalog.
    SyncCatalog,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manual { advice } => write!(f, "by hand: {advice}"),
            Self::FinishMoves => f.write_str("--repair moves it to its place"),
            Self::WriteSuccess { .. } => f.write_str("--repair writes it"),
            Self::DeleteSuccess { .. }
            | Self::DeleteTemporary { .. }
            | Self::DeleteCheckpoint { .. }
            | Self::DeleteStage { .. } => f.write_str("--repair deletes it"),
            Self::Abandon { .. } => {
                f.write_str("--repair abandons the attempt, then deletes its staged files")
            }
            Self::SyncCatalog => f.write_str("--repair applies the log to the catalog"),
        }
    }
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the invariant (docs/invariants.md).
    pub invariant: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The dataset; `None` = the lake as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetRef>,
    /// What it is about: a path, a partition, an attempt.
    pub subject: String,
    /// In words.
    pub message: String,
    /// What repair would do.
    #[serde(flatten)]
    pub repair: Repair,
}

/// How an audit is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditOptions {
    /// Read every data file and compare its hash and rows.
    pub deep: bool,
}

/// What an audit found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AuditReport {
    /// Datasets looked at.
    pub datasets: usize,
    /// Log records folded.
    pub records: u64,
    /// Data files compared.
    pub files: u64,
    /// Findings: worst first, then by dataset and subject.
    pub findings: Vec<Finding>,
}

impl AuditReport {
    /// Whether anything is wrong; advice is not.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|f| f.severity == Severity::Advice)
    }
}

/// Compares everything with everything; changes nothing.
///
/// Programs may write meanwhile. What looks like a loss by the log that was read may be the work of a
/// record that came since: then everything is looked at again.
pub async fn audit(
    lake: &Lake,
    catalog: Arc<dyn Catalog>,
    options: AuditOptions,
) -> Result<AuditReport> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        let view = Arc::new(collect::View::collect(lake).await?);
        let report = look(lake, &catalog, &view, options).await?;
        let alarms = |f: &Finding| {
            f.severity != Severity::Advice && matches!(f.repair, Repair::Manual { .. })
        };
        let alarmed = report.findings.iter().any(alarms);
        if !alarmed || rounds == MAX_ROUNDS || !view.is_outdated(lake).await? {
            return Ok(report);
        }
    }
}

async fn look(
    lake: &Lake,
    catalog: &Arc<dyn Catalog>,
    view: &Arc<collect::View>,
    options: AuditOptions,
) -> Result<AuditReport> {
    let mut report = AuditReport {
        datasets: view.datasets.len(),
        records: view
            .datasets
            .values()
            .filter_map(|d| d.state.as_ref())
            .map(|s| s.position().number)
            .sum(),
        files: 0,
        findings: view.log_findings(),
    };
    files::check(lake, view, options, &mut report).await?;
    strangers::check(lake, view, &mut report).await?;
    catalog::check(lake, catalog, view, &mut report).await?;
    let catalog_is_level = report.findings.iter().all(|f| {
        let log_is_wrong = f.invariant.starts_with("LOG") && f.invariant != "LOG-10";
        !f.invariant.starts_with("CAT") && !log_is_wrong && f.invariant != "SCH-1"
    });
    if options.deep && catalog_is_level {
        rebuilt::check(lake, &**catalog, &mut report).await?;
    }
    report.findings.sort_by(|a, b| {
        (a.severity, &a.dataset, a.invariant, &a.subject).cmp(&(
            b.severity,
            &b.dataset,
            b.invariant,
            &b.subject,
        ))
    });
    Ok(report)
}

/// Applies what the findings say repair would do.
pub async fn repair(
    lake: &Lake,
    catalog: Arc<dyn Catalog>,
    report: &AuditReport,
    by: By,
) -> Result<RepairReport> {
    repair::apply(lake, &*catalog, report, by).await
}
