//! Bringing the catalog up to the logs.
//!
//! `sync` reads the records after the catalog's position and applies them in order, in batches of one
//! transaction; several programs may do so at once, each record is applied by exactly one of them
//! (CAT-2). A catalog that is ahead of its log or that knows another past is refused (CAT-3). Whatever
//! ends a sync, the records before it are applied.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::catalog::schemas::sync_schemas;
use crate::catalog::wanted::{Future, Prepared, Stop, brings_back, count_files};
use crate::catalog::{ApplyOutcome, Catalog, NextRecord};
use crate::error::{Error, ErrorKind, Result};
use crate::fault;
use crate::log::{LogWalk, LoggedRecord, check_position, list_datasets};
use crate::name::DatasetRef;
use crate::spec::LogPosition;
use crate::store::Lake;

/// Records of one transaction at most.
const BATCH_RECORDS: usize = 512;
/// Files that they add at most, unless one record adds more: at first, and where columns are few.
const FIRST_FILES: usize = 512;
const MOST_FILES: usize = 4096;
/// Columns of these files at most: bounds what is in memory at once.
const BATCH_COLUMNS: usize = 1 << 16;
/// Records held in memory at most; of more, batches are read a second time.
const FEW_RECORDS: usize = 4096;

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
        return Err(Error::corrupt("the catalog belongs to another lake")
            .with("catalog", catalog.location())
            .with("catalog's lake", other)
            .with("this lake", lake.id())
            .with("invariant", "CAT-3")
            .hint("check `lake` and `catalog` in lakebed.toml: each lake has its own catalog"));
    }
    check_position(lake, dataset, &catalog.position(dataset).await?).await
}

/// Applies everything the dataset's log holds after the catalog's position.
pub async fn sync(lake: &Lake, catalog: &dyn Catalog, dataset: &DatasetRef) -> Result<SyncReport> {
    bind(lake, catalog).await?;
    let mut report: Option<SyncReport> = None;
    let mut missing_before = false;
    loop {
        let position = catalog.position(dataset).await?;
        let report = report.get_or_insert_with(|| SyncReport {
            dataset: dataset.clone(),
            from: position.number,
            to: position.number,
            applied: 0,
        });
        report.to = report.to.max(position.number);
        let ahead = Ahead::look(lake, dataset, position).await?;
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
    let mut datasets: BTreeSet<DatasetRef> = list_datasets(lake).await?.into_iter().collect();
    // A dataset that the catalog knows and the lake does not is refused by `sync`, not passed over.
    datasets.extend(catalog.list_positions().await?.into_iter().map(|(d, _)| d));
    let mut reports = Vec::new();
    for dataset in &datasets {
        sync_schemas(lake, catalog, dataset).await?;
        reports.push(sync(lake, catalog, dataset).await?);
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

/// The records after a position: what they say in the end, and the first of them.
struct Ahead {
    from: LogPosition,
    /// Number of the last one.
    last: u64,
    future: Future,
    /// All of them where they are few; a long log is read twice rather than held.
    few: Option<Vec<LoggedRecord>>,
}

impl Ahead {
    async fn look(lake: &Lake, dataset: &DatasetRef, from: LogPosition) -> Result<Self> {
        let mut ahead = Self {
            last: from.number,
            future: Future::default(),
            few: Some(Vec::new()),
            from,
        };
        let mut walk = walk_from(lake, dataset, &ahead.from).await?;
        loop {
            let batch = walk.next_batch().await?;
            let Some(last) = batch.last() else {
                return Ok(ahead);
            };
            ahead.last = last.record.number;
            batch.iter().for_each(|logged| ahead.future.note(logged));
            let held = ahead.few.take();
            ahead.few = held.filter(|few| few.len() < FEW_RECORDS);
            if let Some(few) = &mut ahead.few {
                few.extend(batch);
            }
        }
    }
}

async fn walk_from(lake: &Lake, dataset: &DatasetRef, from: &LogPosition) -> Result<LogWalk> {
    if from.number == 0 {
        LogWalk::whole(lake, dataset, from.clone()).await
    } else {
        LogWalk::after(lake, dataset, from.clone()).await
    }
}

async fn apply_ahead(
    lake: &Lake,
    catalog: &dyn Catalog,
    ahead: Ahead,
    report: &mut SyncReport,
) -> Result<Pass> {
    if let Some(records) = &ahead.few {
        return apply_batches(lake, catalog, (records, &ahead.future), report).await;
    }
    let walk = walk_from(lake, &report.dataset, &ahead.from).await?;
    let mut walk = walk.until(ahead.last);
    loop {
        let batch = walk.next_batch().await?;
        if batch.is_empty() {
            return Ok(Pass::Done);
        }
        match apply_batches(lake, catalog, (&batch, &ahead.future), report).await? {
            Pass::Done => {}
            other @ (Pass::Overtaken | Pass::Missing(_)) => return Ok(other),
        }
    }
}

/// Cuts records into batches, each of which is applied in one transaction.
struct Batches<'r> {
    rest: &'r [LoggedRecord],
    files: usize,
}

impl<'r> Batches<'r> {
    fn of(records: &'r [LoggedRecord]) -> Self {
        Self {
            rest: records,
            files: FIRST_FILES,
        }
    }

    /// The next batch; `None` at the end.
    fn take(&mut self) -> Option<&'r [LoggedRecord]> {
        let most = fault::sync_batch().unwrap_or(BATCH_RECORDS);
        let (mut count, mut files) = (0, 0);
        for logged in self.rest.iter().take(most) {
            files += count_files(&logged.record);
            let is_full = files > self.files || brings_back(&logged.record);
            if count > 0 && is_full {
                break;
            }
            count += 1;
        }
        let (batch, rest) = self.rest.split_at(count);
        self.rest = rest;
        (count > 0).then_some(batch)
    }

    /// Files of wide tables are taken by fewer.
    fn learn(&mut self, prepared: &Prepared<'_>) {
        if let Some(columns) = prepared.columns_of_a_file() {
            self.files = (BATCH_COLUMNS / columns).clamp(1, MOST_FILES);
        }
    }
}

/// While a batch is applied, the footers of the next one are read.
async fn apply_batches(
    lake: &Lake,
    catalog: &dyn Catalog,
    (records, future): (&[LoggedRecord], &Future),
    report: &mut SyncReport,
) -> Result<Pass> {
    let mut batches = Batches::of(records);
    let Some(first) = batches.take() else {
        return Ok(Pass::Done);
    };
    let mut prepared = Prepared::read(lake, catalog, first, future).await?;
    loop {
        batches.learn(&prepared);
        let next = batches.take();
        let is_early = |batch: &&[LoggedRecord]| !batch.iter().any(|l| brings_back(&l.record));
        let early = async {
            match next.filter(is_early) {
                Some(batch) => Some(Prepared::read(lake, catalog, batch, future).await),
                None => None,
            }
        };
        let (applied, early) = tokio::join!(apply_prepared(catalog, prepared, report), early);
        match applied? {
            Pass::Done => {}
            other @ (Pass::Overtaken | Pass::Missing(_)) => return Ok(other),
        }
        prepared = match (next, early) {
            (None, _) => return Ok(Pass::Done),
            (Some(_), Some(read)) => read?,
            (Some(batch), None) => Prepared::read(lake, catalog, batch, future).await?,
        };
    }
}

async fn apply_prepared(
    catalog: &dyn Catalog,
    prepared: Prepared<'_>,
    report: &mut SyncReport,
) -> Result<Pass> {
    let with_stats = prepared.records.iter().zip(&prepared.stats);
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
