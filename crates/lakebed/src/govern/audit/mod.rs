//! Audit: log, catalog, `_SUCCESS` and folders compared both ways. The log wins.
//!
//! ```text
//! overview -> dataset by dataset: collect (log fold, listing) -> check (findings, each with what repair
//! would do) -> repair (apply)
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
mod stage;
mod strangers;
mod superseded;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::govern::audit::collect::{DatasetView, Overview};
use crate::govern::audit::each::in_order;
use crate::name::{AttemptId, DatasetRef};
use crate::spec::By;
use crate::store::{Lake, ListedFile, StorePath, log_record_path};
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
        let (report, positions) = look(lake, &catalog, options).await?;
        let alarms = |f: &Finding| {
            f.severity != Severity::Advice && matches!(f.repair, Repair::Manual { .. })
        };
        let alarmed = report.findings.iter().any(alarms);
        if !alarmed || rounds == MAX_ROUNDS || !is_outdated(lake, &positions).await? {
            return Ok(report);
        }
    }
}

/// Where the log of each dataset ended whose log could be read.
type Positions = Vec<(DatasetRef, u64)>;

/// Whether a log has gone on since.
async fn is_outdated(lake: &Lake, positions: &Positions) -> Result<bool> {
    for (dataset, number) in positions {
        let next = log_record_path(dataset, number + 1);
        if lake.store().find_size(&next).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn look(
    lake: &Lake,
    catalog: &Arc<dyn Catalog>,
    options: AuditOptions,
) -> Result<(AuditReport, Positions)> {
    let overview = Arc::new(Overview::collect(lake).await?);
    let mut report = AuditReport {
        datasets: overview.datasets.len(),
        ..AuditReport::default()
    };
    let is_ours = catalog::check_lake(lake, &**catalog, &mut report.findings).await?;
    let looks = overview.datasets.iter().cloned().map(|dataset| {
        let (lake, overview) = (lake.clone(), Arc::clone(&overview));
        let catalog = is_ours.then(|| Arc::clone(catalog));
        async move { look_at(&lake, catalog, &overview, dataset, options).await }
    });
    let mut positions = Positions::new();
    for looked in in_order(looks.collect()).await? {
        report.files += looked.files;
        report.findings.extend(looked.findings);
        positions.extend(looked.position);
    }
    report.records = positions.iter().map(|(_, number)| number).sum();
    look_around(lake, &overview, &mut report.findings).await?;
    if is_ours {
        let datasets = &overview.datasets;
        catalog::check_unknown(lake, &**catalog, datasets, &mut report.findings).await?;
    }
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
    Ok((report, positions))
}

/// What was found of one dataset.
struct Looked {
    files: u64,
    findings: Vec<Finding>,
    position: Option<(DatasetRef, u64)>,
}

/// Looks at all that concerns one dataset: its log, its folders, its attempts and its rows in the catalog, if
/// that is of this lake. What was read of it is given up at the end.
async fn look_at(
    lake: &Lake,
    catalog: Option<Arc<dyn Catalog>>,
    overview: &Overview,
    dataset: DatasetRef,
    options: AuditOptions,
) -> Result<Looked> {
    let mut data = DatasetView::collect(lake, &dataset).await?;
    let mut findings = data.log_findings(&dataset);
    let files = match &data.state {
        Some(state) => files::check(lake, state, &data, options, &mut findings).await?,
        None => 0,
    };
    findings.extend(data.strangers.iter().map(beside_partitions));
    strangers::check_rejects(lake, &data, &mut findings).await?;
    let home = Some(dataset);
    let attempts = overview.attempts.get(&home).map_or(&[][..], Vec::as_slice);
    let state = data.state.as_ref();
    stage::check(lake, home.as_ref(), state, attempts, &mut findings).await?;
    if let (Some(catalog), Some(dataset)) = (catalog, &home) {
        catalog::check(lake, &*catalog, dataset, &data, &mut findings).await?;
    }
    let number = data.state.map(|state| state.position().number);
    Ok(Looked {
        files,
        findings,
        position: home.zip(number),
    })
}

/// Looks at what belongs to no dataset.
async fn look_around(lake: &Lake, overview: &Overview, findings: &mut Vec<Finding>) -> Result<()> {
    let of_none = overview.attempts.iter().filter(|(dataset, _)| {
        dataset
            .as_ref()
            .is_none_or(|d| !overview.datasets.contains(d))
    });
    for (dataset, attempts) in of_none {
        stage::check(lake, dataset.as_ref(), None, attempts, findings).await?;
    }
    findings.extend(overview.strangers.iter().map(beside_partitions));
    findings.extend(overview.temporary.iter().map(|file| Finding {
        invariant: "STG-2",
        severity: Severity::Warning,
        dataset: None,
        subject: file.path.to_string(),
        message: "a temporary file of an interrupted put is left".into(),
        repair: Repair::DeleteTemporary {
            path: file.path.clone(),
        },
    }));
    strangers::check(lake, overview, findings).await
}

fn beside_partitions(file: &ListedFile) -> Finding {
    Finding {
        invariant: "FIL-2",
        severity: Severity::Error,
        dataset: None,
        subject: file.path.to_string(),
        message: "lies in a layer folder, but in no partition of a dataset of this lake".into(),
        repair: Repair::Manual {
            advice: "move it out of the lake; data enters through `lakebed ingest`".into(),
        },
    }
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
