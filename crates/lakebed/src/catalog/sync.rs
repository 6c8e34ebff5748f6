//! Bringing the catalog up to the logs.
//!
//! `sync` reads the records after the catalog's position and applies them in order, in batches of one
//! transaction; several programs may do so at once, each record is applied by exactly one of them
//! (CAT-2). A catalog that is ahead of its log or that knows another past is refused (CAT-3). Whatever
//! ends a sync, the records before it are applied.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use tokio::task::JoinSet;

use crate::catalog::ahead::{Ahead, ReadAhead, walk_from};
use crate::catalog::foreign::foreign_catalog;
use crate::catalog::schemas::{put_missing, sync_schemas};
use crate::catalog::wanted::{Future, Prepared, Stop};
use crate::catalog::{ApplyOutcome, Catalog, NextRecord, SchemaRow};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{LoggedRecord, check_position, list_datasets};
use crate::name::DatasetRef;
use crate::spec::LogPosition;
use crate::store::Lake;

/// Datasets whose records are read while one is applied.
const LOOKS_AHEAD: usize = 2;

/// What a sync did to one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Record number the catalog stood at before.
    pub from: u64,
    /// Record number it stands at now.
    pub to: u64,
    /// Records applied by this call; others may have applied some as well.
    pub applied: u64,
}

/// Refuses to go on where the catalog knows another past than the log (CAT-3): a log that lost its
/// tail, was replaced or was deleted must not be written to, or its records could never come back.
/// Whoever commits asks this first; nothing is changed.
pub async fn check_past(lake: &Lake, catalog: &dyn Catalog, dataset: &DatasetRef) -> Result<()> {
    if let Some(other) = catalog.find_lake().await?.filter(|id| id != lake.id()) {
        return Err(foreign_catalog(
            &catalog.location(),
            other.as_str(),
            lake.id(),
        ));
    }
    check_position(lake, dataset, &catalog.position(dataset).await?).await
}

/// Applies everything the dataset's log holds after the catalog's position.
pub async fn sync(lake: &Lake, catalog: &dyn Catalog, dataset: &DatasetRef) -> Result<SyncReport> {
    bind(lake, catalog).await?;
    sync_seen(lake, catalog, dataset, Seen::default()).await
}

/// Lets the catalog follow the dataset's log and its published versions, which are answered. Where nothing
/// is new, this is one look at the catalog.
pub async fn follow(
    lake: &Lake,
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
) -> Result<Vec<SchemaRow>> {
    let standing = catalog.standing(dataset).await?;
    if standing.lake.as_ref() != Some(lake.id()) {
        catalog.bind(lake.spec()).await?;
    }
    let seen = Seen {
        position: Some(standing.position),
        ahead: None,
    };
    sync_seen(lake, catalog, dataset, seen).await?;
    put_missing(lake, catalog, dataset, standing.schemas).await
}

/// What was read before a sync began.
#[derive(Default)]
struct Seen {
    /// Where the catalog stood a moment ago.
    position: Option<LogPosition>,
    /// The records after a position, which are those wanted where the catalog stands there still.
    ahead: Option<Ahead>,
}

/// As [`sync`], of a catalog that is bound.
async fn sync_seen(
    lake: &Lake,
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
    mut seen: Seen,
) -> Result<SyncReport> {
    let mut report: Option<SyncReport> = None;
    let mut missing_before = false;
    loop {
        let position = match seen.position.take() {
            Some(position) => position,
            None => catalog.position(dataset).await?,
        };
        let report = report.get_or_insert_with(|| SyncReport {
            dataset: dataset.clone(),
            from: position.number,
            to: position.number,
            applied: 0,
        });
        report.to = report.to.max(position.number);
        let ahead = match seen.ahead.take().filter(|ahead| ahead.from == position) {
            Some(ahead) => ahead,
            None => Ahead::look(lake, dataset, position).await?,
        };
        let last = ahead.last;
        match apply_ahead(lake, catalog, ahead, report).await? {
            Pass::Done => return Ok(report.clone()),
            Pass::Overtaken => {}
            // A record that came after our look may have removed the file: look once more.
            Pass::Missing(e) => {
                if missing_before && read_after_is_empty(lake, dataset, last).await? {
                    return Err(e);
                }
                missing_before = true;
            }
        }
    }
}

/// Syncs every dataset of the lake and every published schema.
pub async fn sync_all(lake: &Lake, catalog: &dyn Catalog) -> Result<Vec<SyncReport>> {
    bind(lake, catalog).await?;
    let known = catalog.list_positions().await?;
    let found = list_datasets(lake).await?.into_iter();
    // A dataset that the catalog knows and the lake does not is refused by `sync`, not passed over.
    let mut datasets: BTreeMap<DatasetRef, LogPosition> =
        found.map(|d| (d, LogPosition::START)).collect();
    datasets.extend(known);
    // While a dataset is applied, the records of the next ones are read, and what goes in with the first of
    // them. What is wrong with them is told in its turn.
    let look = |(dataset, from): (DatasetRef, LogPosition)| {
        let lake = lake.clone();
        let mut looks = JoinSet::new();
        let looked_at = dataset.clone();
        looks.spawn(async move { Ahead::look(&lake, &looked_at, from).await.ok() });
        (dataset, looks)
    };
    let mut waiting = datasets.into_iter();
    let mut looks: VecDeque<_> = waiting.by_ref().take(1 + LOOKS_AHEAD).map(look).collect();
    let mut reports = Vec::new();
    while let Some((dataset, mut looked)) = looks.pop_front() {
        looks.extend(waiting.next().map(look));
        sync_schemas(lake, catalog, &dataset).await?;
        let looked = looked.join_next().await.transpose();
        let looked = looked.map_err(|e| Error::internal("read the log").caused_by(e))?;
        let seen = Seen {
            position: None,
            ahead: looked.flatten(),
        };
        reports.push(sync_seen(lake, catalog, &dataset, seen).await?);
    }
    Ok(reports)
}

/// Binds an empty catalog to the lake; refuses one of another lake.
pub(super) async fn bind(lake: &Lake, catalog: &dyn Catalog) -> Result<()> {
    if catalog.find_lake().await?.as_ref() == Some(lake.id()) {
        return Ok(());
    }
    catalog.bind(lake.spec()).await
}

async fn read_after_is_empty(lake: &Lake, dataset: &DatasetRef, number: u64) -> Result<bool> {
    let next = crate::store::log_record_path(dataset, number + 1);
    Ok(lake.store().find_size(&next).await?.is_none())
}

/// How a pass over the known records ended.
enum Pass {
    Done,
    /// Another program applied a record first.
    Overtaken,
    /// A file that readers should see is nowhere.
    Missing(Error),
}

async fn apply_ahead(
    lake: &Lake,
    catalog: &dyn Catalog,
    ahead: Ahead,
    report: &mut SyncReport,
) -> Result<Pass> {
    let (from, last, future) = (ahead.from, ahead.last, ahead.future);
    if let Some((records, read)) = ahead.few {
        return apply_batches(lake, catalog, (records, future), read, report).await;
    }
    let walk = walk_from(lake, &report.dataset, &from).await?;
    let mut walk = walk.until(last);
    loop {
        let batch = Arc::new(walk.next_batch().await?);
        if batch.is_empty() {
            return Ok(Pass::Done);
        }
        let read = ReadAhead::begin(lake, &batch, &future, 0);
        match apply_batches(lake, catalog, (batch, Arc::clone(&future)), read, report).await? {
            Pass::Done => {}
            other @ (Pass::Overtaken | Pass::Missing(_)) => return Ok(other),
        }
    }
}

/// While a batch is applied, the footers of the next ones are read.
async fn apply_batches(
    lake: &Lake,
    catalog: &dyn Catalog,
    (records, future): (Arc<Vec<LoggedRecord>>, Arc<Future>),
    mut read: ReadAhead,
    report: &mut SyncReport,
) -> Result<Pass> {
    let mut at = 0;
    while let Some(rest) = records.get(at..).filter(|rest| !rest.is_empty()) {
        let prepared = match read.next().await {
            Some(prepared) => prepared,
            None => {
                let prepared = Prepared::read(lake, Some(catalog), rest, &future).await?;
                let next = at + prepared.stats.len();
                read = ReadAhead::begin(lake, &records, &future, next);
                prepared
            }
        };
        at += prepared.stats.len();
        let (now, _) = rest.split_at(prepared.stats.len());
        match apply_prepared(catalog, now, prepared, report).await? {
            Pass::Done => {}
            other @ (Pass::Overtaken | Pass::Missing(_)) => return Ok(other),
        }
    }
    Ok(Pass::Done)
}

async fn apply_prepared(
    catalog: &dyn Catalog,
    records: &[LoggedRecord],
    prepared: Prepared,
    report: &mut SyncReport,
) -> Result<Pass> {
    let with_stats = records.iter().zip(&prepared.stats);
    let batch: Vec<NextRecord<'_>> = with_stats
        .map(|(logged, stats)| NextRecord {
            record: &logged.record,
            hash: &logged.hash,
            stats,
        })
        .collect();
    let applied = match apply_batch(catalog, &batch, report).await {
        // One of them contradicts those before it: these are applied, and it is named.
        Err(e) if e.kind() == ErrorKind::CorruptData && batch.len() > 1 => {
            let mut applied = Pass::Done;
            for next in &batch {
                applied = apply_batch(catalog, std::slice::from_ref(next), report).await?;
                if !matches!(applied, Pass::Done) {
                    break;
                }
            }
            applied
        }
        applied => applied?,
    };
    match (applied, prepared.stop) {
        (Pass::Done, Some(Stop::Missing(e))) => {
            let number = report.to + 1;
            Ok(Pass::Missing(e.with("record", number)))
        }
        (Pass::Done, Some(Stop::Failed(e))) => Err(e),
        (applied, _) => Ok(applied),
    }
}

async fn apply_batch(
    catalog: &dyn Catalog,
    batch: &[NextRecord<'_>],
    report: &mut SyncReport,
) -> Result<Pass> {
    let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
        return Ok(Pass::Done);
    };
    let (first, last) = (first.record, last.record);
    match catalog.apply_all(batch).await? {
        ApplyOutcome::Applied => {
            report.applied += batch.len() as u64;
            report.to = last.number;
            Ok(Pass::Done)
        }
        ApplyOutcome::NotNext(at) if at.number >= first.number => Ok(Pass::Overtaken),
        // The catalog went back: somebody cleared it. The next look tells.
        ApplyOutcome::NotNext(at) if at.number + 1 < first.number => Ok(Pass::Overtaken),
        ApplyOutcome::NotNext(at) => Err(Error::corrupt(format!(
            "the catalog stands at record {} of `{}`, but not at the one of this log",
            at.number, first.dataset
        ))
        .with("catalog", catalog.location())
        .with("invariant", "CAT-3")
        .hint("the lake and the catalog have different pasts: check which lake this is, then `lakebed catalog rebuild`")),
    }
}

#[cfg(test)]
mod tests;
