//! Applying what findings say repair would do, in an order that is safe to interrupt.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::catalog::{Catalog, sync, sync_schemas};
use crate::error::Result;
use crate::govern::audit::{AuditReport, Finding, Repair, Severity};
use crate::log::{DatasetState, give_up, restore_places, write_success};
use crate::name::DatasetRef;
use crate::spec::By;
use crate::store::{Lake, partition_of, stage_dir};
use crate::time::BusinessDate;

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
    for finding in findings {
        match &finding.repair {
            Repair::Abandon { attempt } => {
                out.done
                    .push(match give_up(lake, &mut state, attempt, by.clone()).await {
                        Ok(_) => format!("{dataset}: abandoned attempt {attempt}"),
                        Err(error) => format!("{dataset}: left attempt {attempt}: {error}"),
                    });
            }
            Repair::DeleteStage { attempt } => {
                lake.store().delete_folder(&stage_dir(attempt)).await?;
                out.done
                    .push(format!("{dataset}: deleted staged files of {attempt}"));
            }
            Repair::DeleteCheckpoint { path } => {
                lake.store().delete(path).await?;
                out.done.push(format!("deleted {path}"));
            }
            // Moves are finished above, the others follow below.
            Repair::FinishMoves
            | Repair::DeleteSuccess { .. }
            | Repair::WriteSuccess { .. }
            | Repair::SyncCatalog
            | Repair::Manual { .. }
            | Repair::DeleteTemporary { .. } => {}
        }
    }
    repair_success(lake, &mut state, findings, out).await?;
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

/// `_SUCCESS` files become what the log says now: a date may have been sealed, or opened, since the
/// audit looked.
async fn repair_success(
    lake: &Lake,
    state: &mut DatasetState,
    findings: &[&Finding],
    out: &mut RepairReport,
) -> Result<()> {
    let mut dates = BTreeSet::new();
    for finding in findings {
        match &finding.repair {
            Repair::WriteSuccess { dt } => {
                dates.insert(*dt);
            }
            Repair::DeleteSuccess { path } => {
                let known = partition_of(path).map(|(_, dt, version)| (dt, version));
                match known.filter(|(dt, v)| has_folder(state, *dt, *v)) {
                    Some((dt, _)) => {
                        dates.insert(dt);
                    }
                    None => lake.store().delete(path).await?,
                }
                out.done.push(format!("deleted {path}"));
            }
            Repair::Manual { .. }
            | Repair::FinishMoves
            | Repair::Abandon { .. }
            | Repair::DeleteStage { .. }
            | Repair::DeleteCheckpoint { .. }
            | Repair::DeleteTemporary { .. }
            | Repair::SyncCatalog => {}
        }
    }
    for dt in dates {
        let written = write_success(lake, state, dt).await?;
        if written > 0 {
            let dataset = state.dataset();
            let line = format!("{dataset}: wrote {written} _SUCCESS of {dt}");
            out.done.push(line);
        }
    }
    Ok(())
}

/// Whether the date has, or had, a partition under this schema version.
fn has_folder(state: &DatasetState, dt: BusinessDate, schema_version: u32) -> bool {
    let mut keys = state.partitions_of(dt).map(|(key, _)| key);
    keys.any(|key| key.schema_version == schema_version)
}
