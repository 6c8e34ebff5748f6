//! Applying what findings say repair would do, in an order that is safe to interrupt.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::catalog::{Catalog, sync, sync_schemas};
use crate::error::Result;
use crate::fault::kill_point;
use crate::govern::audit::{AuditReport, Finding, Repair, Severity};
use crate::log::{DatasetState, abandon, restore_places, write_success};
use crate::name::DatasetRef;
use crate::spec::By;
use crate::store::{Lake, stage_dir};

/// What a repair did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RepairReport {
    /// What was done, in order.
    pub done: Vec<String>,
    /// Findings that a person must decide.
    pub left: usize,
}

pub(super) async fn apply(
    lake: &Lake,
    catalog: &dyn Catalog,
    report: &AuditReport,
    by: By,
) -> Result<RepairReport> {
    let mut out = RepairReport::default();
    let mut by_dataset: BTreeMap<DatasetRef, Vec<&Finding>> = BTreeMap::new();
    for finding in &report.findings {
        match (&finding.repair, &finding.dataset) {
            (Repair::Manual { .. }, _) => out.left += 1,
            (Repair::DeleteTemporary { path }, _) => {
                lake.store().delete(path).await?;
                out.done.push(format!("deleted {path}"));
            }
            (_, Some(dataset)) => by_dataset.entry(dataset.clone()).or_default().push(finding),
            (_, None) => out.left += 1,
        }
    }
    for (dataset, findings) in by_dataset {
        // A catalog or a log of another past is for a person to look at: nothing is changed.
        let refused = report.findings.iter().any(|f| {
            f.invariant == "CAT-3"
                && f.severity == Severity::Error
                && f.dataset.as_ref().is_none_or(|d| *d == dataset)
        });
        if refused {
            out.left += findings.len();
            continue;
        }
        repair_dataset(lake, catalog, &dataset, &findings, &by, &mut out).await?;
    }
    Ok(out)
}

async fn repair_dataset(
    lake: &Lake,
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
    findings: &[&Finding],
    by: &By,
    out: &mut RepairReport,
) -> Result<()> {
    // From the records alone: a repair believes no checkpoint.
    let mut state = DatasetState::fold_records(lake, dataset).await?;
    let moved = restore_places(lake, &mut state).await?;
    if moved > 0 {
        out.done.push(format!(
            "{dataset}: moved {moved} committed files to their places"
        ));
    }
    let mut dates = BTreeSet::new();
    for finding in findings {
        match &finding.repair {
            Repair::Abandon { attempt } => {
                // The record goes first: a sleeper that wakes then fails its requirement.
                if let Err(error) = abandon(lake, &mut state, attempt, by.clone()).await {
                    out.done
                        .push(format!("{dataset}: left attempt {attempt}: {error}"));
                    continue;
                }
                kill_point("repair.abandoned");
                lake.store().delete_folder(&stage_dir(attempt)).await?;
                out.done
                    .push(format!("{dataset}: abandoned attempt {attempt}"));
            }
            Repair::DeleteStage { attempt } => {
                lake.store().delete_folder(&stage_dir(attempt)).await?;
                out.done
                    .push(format!("{dataset}: deleted staged files of {attempt}"));
            }
            Repair::DeleteSuccess { path } | Repair::DeleteCheckpoint { path } => {
                lake.store().delete(path).await?;
                out.done.push(format!("deleted {path}"));
            }
            Repair::WriteSuccess { dt } => {
                dates.insert(*dt);
            }
            // Moves are finished above, the catalog is brought up below.
            Repair::FinishMoves
            | Repair::SyncCatalog
            | Repair::Manual { .. }
            | Repair::DeleteTemporary { .. } => {}
        }
    }
    for dt in dates {
        let written = write_success(lake, &state, dt).await?;
        out.done
            .push(format!("{dataset}: wrote {written} _SUCCESS of {dt}"));
    }
    let before = catalog.position(dataset).await?;
    sync(lake, catalog, dataset).await?;
    sync_schemas(lake, catalog, dataset).await?;
    if before.number < state.position().number {
        out.done.push(format!(
            "{dataset}: applied records {} to {}",
            before.number + 1,
            state.position().number
        ));
    }
    Ok(())
}
