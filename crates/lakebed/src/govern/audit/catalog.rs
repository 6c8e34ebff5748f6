//! The catalog against the log: where it stands, and whether it says the same.
//!
//! CAT-6: the catalog says of partitions and files what the log says.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, PartitionRow};
use crate::error::Result;
use crate::govern::audit::collect::DatasetView;
use crate::govern::audit::{Finding, Repair, Severity};
use crate::log::{DatasetState, FileState, Partition, read_record};
use crate::name::DatasetRef;
use crate::spec::{LogPosition, PartitionKey};
use crate::store::Lake;

/// How often log and catalog are looked at again when the catalog goes on meanwhile.
const MAX_ROUNDS: usize = 20;
const REBUILD: &str = "the log wins: run `lakebed catalog rebuild`";

/// Whether the catalog belongs to this lake; where it does not, nothing else is to be said of it.
pub(super) async fn check_lake(
    lake: &Lake,
    catalog: &dyn Catalog,
    findings: &mut Vec<Finding>,
) -> Result<bool> {
    let Some(other) = catalog.find_lake().await?.filter(|id| id != lake.id()) else {
        return Ok(true);
    };
    findings.push(Finding {
        invariant: "CAT-3",
        severity: Severity::Error,
        dataset: None,
        subject: catalog.location(),
        message: format!(
            "the catalog belongs to lake `{other}`, this lake is `{}`",
            lake.id()
        ),
        repair: Repair::Manual {
            advice: "check `lake` and `catalog` in lakebed.toml".into(),
        },
    });
    Ok(false)
}

/// Compares what the catalog says of a dataset.
pub(super) async fn check(
    lake: &Lake,
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
    data: &DatasetView,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    check_schemas(catalog, dataset, data, findings).await?;
    match &data.state {
        Some(state) => check_dataset(lake, catalog, state, findings).await,
        None => Ok(()),
    }
}

/// Datasets that the catalog knows and the lake does not.
pub(super) async fn check_unknown(
    lake: &Lake,
    catalog: &dyn Catalog,
    datasets: &BTreeSet<DatasetRef>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let positions = catalog.list_positions().await?.into_iter();
    for (dataset, position) in positions.filter(|(d, p)| p.number > 0 && !datasets.contains(d)) {
        if read_record(lake, &dataset, 1).await?.is_some() {
            // Its first record came since the look at the lake.
            continue;
        }
        findings.push(Finding {
            invariant: "CAT-3",
            severity: Severity::Error,
            dataset: Some(dataset),
            subject: catalog.location(),
            message: format!(
                "stands at record {} of a dataset whose log is not there",
                position.number
            ),
            repair: Repair::Manual {
                advice: REBUILD.into(),
            },
        });
    }
    Ok(())
}

/// Where programs write meanwhile, log and catalog both go on: they are compared at a moment at which
/// the catalog stood still.
async fn check_dataset(
    lake: &Lake,
    catalog: &dyn Catalog,
    state: &DatasetState,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    // Most often the log has not gone on, and the fold need not be copied.
    let mut state = Cow::Borrowed(state);
    for _ in 0..MAX_ROUNDS {
        let position = catalog.position(state.dataset()).await?;
        if position.number > state.position().number {
            // Records that came since the look at the log, unless the log has lost its end.
            state.to_mut().catch_up(lake).await?;
        }
        // Where the catalog is behind, its last record must still be the log's.
        let there = read_record(lake, state.dataset(), position.number)
            .await?
            .map(|r| r.position());
        let known = position.number == 0 || there.as_ref() == Some(&position);
        let mut found = Vec::new();
        match standing(&position, state.position(), known) {
            None => compare(catalog, &state, &mut found).await?,
            Some((severity, message, repair)) => found.push(Finding {
                invariant: "CAT-3",
                severity,
                dataset: Some(state.dataset().clone()),
                subject: catalog.location(),
                message,
                repair,
            }),
        }
        if found.is_empty() || catalog.position(state.dataset()).await? == position {
            findings.extend(found);
            return Ok(());
        }
    }
    Ok(())
}

/// Versions that were published while nobody told the catalog: the next sync does.
async fn check_schemas(
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
    data: &DatasetView,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    // Rows that cannot be read are found by the deep comparison of all rows.
    let Ok(rows) = catalog.list_schemas(Some(dataset)).await else {
        return Ok(());
    };
    let known: BTreeSet<u32> = rows.iter().map(|row| row.version).collect();
    for version in data.schemas.difference(&known) {
        findings.push(Finding {
            invariant: "CAT-3",
            severity: Severity::Warning,
            dataset: Some(dataset.clone()),
            subject: catalog.location(),
            message: format!("does not know schema version {version} yet"),
            repair: Repair::SyncCatalog,
        });
    }
    Ok(())
}

/// What is wrong with where the catalog stands; `None` = it stands where the log stands.
fn standing(
    catalog: &LogPosition,
    log: &LogPosition,
    known: bool,
) -> Option<(Severity, String, Repair)> {
    if catalog == log {
        return None;
    }
    if catalog.number < log.number && known {
        let message = format!(
            "stands at record {}, the log at {}",
            catalog.number, log.number
        );
        return Some((Severity::Warning, message, Repair::SyncCatalog));
    }
    let message = format!(
        "stands at record {}, which is not record {} of the log: one of the two comes from a backup",
        catalog.number, log.number
    );
    Some((
        Severity::Error,
        message,
        Repair::Manual {
            advice: REBUILD.into(),
        },
    ))
}

/// A catalog whose rows cannot be read is a finding, not the end of the audit.
async fn compare(
    catalog: &dyn Catalog,
    state: &DatasetState,
    found: &mut Vec<Finding>,
) -> Result<()> {
    if let Err(error) = compare_rows(catalog, state, found).await {
        found.push(Finding {
            invariant: "CAT-6",
            severity: Severity::Error,
            dataset: Some(state.dataset().clone()),
            subject: catalog.location(),
            message: format!("a row cannot be read: {error}"),
            repair: Repair::Manual {
                advice: REBUILD.into(),
            },
        });
    }
    Ok(())
}

async fn compare_rows(
    catalog: &dyn Catalog,
    state: &DatasetState,
    found: &mut Vec<Finding>,
) -> Result<()> {
    let mut rows: BTreeMap<PartitionKey, (PartitionRow, String)> = catalog
        .list_contents(state.dataset())
        .await?
        .into_iter()
        .map(|(row, files)| (row.key, (row, files)))
        .collect();
    let mut differ = |key: &PartitionKey, message: String| {
        found.push(Finding {
            invariant: "CAT-6",
            severity: Severity::Error,
            dataset: Some(state.dataset().clone()),
            subject: key.to_string(),
            message,
            repair: Repair::Manual {
                advice: REBUILD.into(),
            },
        });
    };
    for (key, partition) in state.partitions() {
        match rows.remove(key) {
            None => differ(key, "is in the log, but not in the catalog".into()),
            Some((row, files)) => {
                if let Some(message) = difference(state, key, partition, &row, &files) {
                    differ(key, message);
                }
            }
        }
    }
    for key in rows.keys() {
        differ(key, "is in the catalog, but not in the log".into());
    }
    Ok(())
}

fn difference(
    state: &DatasetState,
    key: &PartitionKey,
    partition: &Partition,
    row: &PartitionRow,
    files: &str,
) -> Option<String> {
    let sum = |of: fn(&crate::spec::DataFileSpec) -> u64| {
        partition.files.values().map(|f| of(&f.spec)).sum::<u64>()
    };
    let expected = (
        partition.files.len() as u64,
        sum(|f| f.rows),
        sum(|f| f.bytes),
        partition.state,
        state.is_sealed(key.dt),
    );
    let found = (
        row.file_count,
        row.row_count,
        row.byte_size,
        row.state,
        row.is_complete,
    );
    if expected != found {
        return Some(format!(
            "the catalog says (files, rows, bytes, state, complete) = {found:?}, the log says {expected:?}"
        ));
    }
    let mut lines: Vec<&str> = files.lines().collect();
    lines.sort_unstable_by_key(|line| line.rsplitn(3, ' ').nth(2));
    let is_same = |(line, file): (&&str, &FileState)| {
        // From the right: a name may hold spaces.
        let mut parts = line.rsplitn(3, ' ');
        let rows = parts.next().and_then(|rows| rows.parse().ok());
        rows == Some(file.spec.rows)
            && parts.next() == Some(file.spec.blake3.as_str())
            && parts.next() == Some(file.spec.name.as_str())
    };
    let are_same = lines.len() == partition.files.len()
        && lines.iter().zip(partition.files.values()).all(is_same);
    (!are_same).then(|| "the catalog lists other files than the log".into())
}
