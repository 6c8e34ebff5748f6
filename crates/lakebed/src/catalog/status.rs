//! How the catalog stands to the logs, without changing either.
//!
//! Cheap on purpose: the numbers of a log come from one listing, and its chain is followed from the
//! catalog's position on, where a sync would read it, too. Records that are applied already are not
//! read again; that they still are what they were is what `audit` looks at.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::catalog::Catalog;
use crate::catalog::foreign::foreign_catalog;
use crate::error::Result;
use crate::log::{list_datasets, list_numbers, read_after, read_record};
use crate::name::DatasetRef;
use crate::spec::LogPosition;
use crate::store::{Lake, log_record_path};

/// How the catalog stands to one dataset's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SyncState {
    /// Everything is applied.
    InSync,
    /// Records wait: `catalog sync` applies them.
    Behind {
        /// How many.
        records: u64,
    },
    /// The log ends before the catalog's position: the lake is older than the catalog.
    Ahead,
    /// The record at the catalog's position is not the one that was applied.
    Diverged,
    /// The log itself cannot be read.
    Broken {
        /// What is wrong with it.
        reason: String,
    },
}

/// A line of `catalog status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatasetStatus {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Record number the catalog stands at.
    pub catalog_position: u64,
    /// Number of the last record of the log.
    pub log_position: u64,
    /// What that means.
    #[serde(flatten)]
    pub state: SyncState,
}

/// Every dataset of lake and catalog, by name. A catalog of another lake is refused.
pub async fn status(lake: &Lake, catalog: &dyn Catalog) -> Result<Vec<DatasetStatus>> {
    if let Some(bound) = catalog.find_lake().await?
        && bound != *lake.id()
    {
        return Err(foreign_catalog(
            &catalog.location(),
            bound.as_str(),
            lake.id(),
        ));
    }
    let mut positions: BTreeMap<DatasetRef, LogPosition> =
        catalog.list_positions().await?.into_iter().collect();
    for dataset in list_datasets(lake).await? {
        positions.entry(dataset).or_insert(LogPosition::START);
    }
    let mut lines = Vec::new();
    for (dataset, position) in positions {
        lines.push(dataset_status(lake, dataset, &position).await?);
    }
    Ok(lines)
}

/// Whether the log holds nothing after the catalog's position: one look at one name.
pub async fn is_fresh(lake: &Lake, catalog: &dyn Catalog, dataset: &DatasetRef) -> Result<bool> {
    let position = catalog.position(dataset).await?;
    let next = log_record_path(dataset, position.number + 1);
    Ok(lake.store().find_size(&next).await?.is_none())
}

async fn dataset_status(
    lake: &Lake,
    dataset: DatasetRef,
    position: &LogPosition,
) -> Result<DatasetStatus> {
    let numbers = list_numbers(lake, &dataset).await?;
    let last = numbers.iter().copied().max().unwrap_or(0);
    // Names are sorted and have twenty digits: the first that differs from its place is the hole.
    let hole = (1..).zip(&numbers).find(|(n, found)| n != *found);
    let state = if let Some((missing, _)) = hole {
        SyncState::Broken {
            reason: format!("record {missing} is missing"),
        }
    } else {
        compare(lake, &dataset, position, last).await
    };
    Ok(DatasetStatus {
        dataset,
        catalog_position: position.number,
        log_position: last,
        state,
    })
}

/// A record that cannot be read is a finding of this dataset, not the end of the listing.
async fn compare(
    lake: &Lake,
    dataset: &DatasetRef,
    position: &LogPosition,
    last: u64,
) -> SyncState {
    if position.number > last {
        return SyncState::Ahead;
    }
    if position.number > 0 {
        match read_record(lake, dataset, position.number).await {
            Ok(Some(logged)) if Some(&logged.hash) == position.hash.as_ref() => {}
            Ok(Some(_)) => return SyncState::Diverged,
            Ok(None) => return SyncState::Ahead,
            Err(e) => {
                return SyncState::Broken {
                    reason: e.to_string(),
                };
            }
        }
    }
    let records = last - position.number;
    if records == 0 {
        return SyncState::InSync;
    }
    match read_after(lake, dataset, position).await {
        Ok(_) => SyncState::Behind { records },
        Err(e) => SyncState::Broken {
            reason: e.to_string(),
        },
    }
}
