//! Bringing the catalog up to the logs.
//!
//! `sync` reads the records after the catalog's position and applies them in order; several programs
//! may do so at once, each record is applied by exactly one of them (CAT-2). A catalog that is ahead
//! of its log or that knows another past is refused (CAT-3).
//!
//! Statistics are read from the footers of those files alone that readers still see after the last
//! known record (CAT-5): what a later record removes or retires may be gone from the disk.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tokio::task::JoinSet;

use crate::catalog::foreign::foreign_catalog;
use crate::catalog::key::is_visible;
use crate::catalog::schemas::sync_schemas;
use crate::catalog::stats::read_footer_stats;
use crate::catalog::{ApplyOutcome, Catalog, FileStats, PartitionFilter};
use crate::error::{Error, Result};
use crate::log::{LogWalk, LoggedRecord, check_position, list_datasets};
use crate::name::{AttemptId, DatasetRef};
use crate::spec::{Action, DataFileSpec, LogPosition, PartitionKey};
use crate::store::{Lake, data_file_path};

/// Footers read at once.
const FOOTERS_AT_ONCE: usize = 16;
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
        return apply_all(lake, catalog, (records, &ahead.future), report).await;
    }
    let walk = walk_from(lake, &report.dataset, &ahead.from).await?;
    let mut walk = walk.until(ahead.last);
    loop {
        let batch = walk.next_batch().await?;
        if batch.is_empty() {
            return Ok(Pass::Done);
        }
        match apply_all(lake, catalog, (&batch, &ahead.future), report).await? {
            Pass::Done => {}
            other @ (Pass::Overtaken | Pass::Missing(_)) => return Ok(other),
        }
    }
}

async fn apply_all(
    lake: &Lake,
    catalog: &dyn Catalog,
    (records, future): (&[LoggedRecord], &Future),
    report: &mut SyncReport,
) -> Result<Pass> {
    for logged in records {
        let wanted = wanted_files(catalog, logged, future).await?;
        let stats = match read_all(lake, &logged.record.dataset, wanted).await? {
            Found::All(stats) => stats,
            Found::Missing(e) => {
                return Ok(Pass::Missing(e.with("record", logged.record.number)));
            }
        };
        match catalog.apply(&logged.record, &logged.hash, &stats).await? {
            ApplyOutcome::Applied => {
                report.applied += 1;
                report.to = logged.record.number;
            }
            ApplyOutcome::NotNext(at) if at.number >= logged.record.number => {
                return Ok(Pass::Overtaken);
            }
            // The catalog went back: somebody cleared it. The next look tells.
            ApplyOutcome::NotNext(at) if at.number + 1 < logged.record.number => {
                return Ok(Pass::Overtaken);
            }
            ApplyOutcome::NotNext(at) => {
                return Err(Error::corrupt(format!(
                    "the catalog stands at record {} of `{}`, but not at the one of this log",
                    at.number, logged.record.dataset
                ))
                .with("catalog", catalog.location())
                .with("invariant", "CAT-3")
                .hint("the lake and the catalog have different pasts: check which lake this is, then `lakebed catalog rebuild`"));
            }
        }
    }
    Ok(Pass::Done)
}

/// A place among the known records: (record number, place of the action in it).
type Place = (u64, usize);

/// What the known records say of files and partitions in the end.
#[derive(Default)]
struct Future {
    /// The last action that removes the file.
    removed: BTreeMap<(PartitionKey, String), Place>,
    /// The last action that changes the partition's state, and whether readers see it then.
    visible: BTreeMap<PartitionKey, (Place, bool)>,
}

impl Future {
    fn note(&mut self, logged: &LoggedRecord) {
        for (index, action) in logged.record.actions.iter().enumerate() {
            let place = (logged.record.number, index);
            match action {
                Action::RemoveFile { partition, name } => {
                    self.removed.insert((*partition, name.clone()), place);
                }
                Action::AddPartition { partition, state }
                | Action::SetState {
                    partition,
                    to: state,
                    ..
                } => {
                    self.visible.insert(*partition, (place, is_visible(*state)));
                }
                Action::AddFile { .. }
                | Action::AddInput { .. }
                | Action::AddRejects { .. }
                | Action::RetryRejects { .. }
                | Action::Complete { .. }
                | Action::Open { .. }
                | Action::Abandon { .. }
                | Action::EraseInput { .. } => {}
            }
        }
    }

    /// Whether readers see the file in the end, as far as the actions from `from` on say.
    fn keeps(&self, from: Place, partition: &PartitionKey, name: &str) -> bool {
        let removed = self
            .removed
            .get(&(*partition, name.to_owned()))
            .is_some_and(|at| *at >= from);
        let hidden = self
            .visible
            .get(partition)
            .is_some_and(|(at, visible)| *at >= from && !visible);
        !removed && !hidden
    }
}

/// A file whose footer is wanted.
struct Wanted {
    partition: PartitionKey,
    file: DataFileSpec,
    attempt: Option<AttemptId>,
}

/// Files whose statistics go in with a record: those it adds, and those of partitions that it brings
/// back into sight.
async fn wanted_files(
    catalog: &dyn Catalog,
    logged: &LoggedRecord,
    future: &Future,
) -> Result<Vec<Wanted>> {
    let record = &logged.record;
    let mut wanted = Vec::new();
    for (index, action) in record.actions.iter().enumerate() {
        match action {
            Action::AddFile { partition, file } => {
                if future.keeps((record.number, index), partition, &file.name) {
                    wanted.push(Wanted {
                        partition: *partition,
                        file: file.clone(),
                        attempt: record.attempt_of(index).cloned(),
                    });
                }
            }
            Action::SetState {
                partition,
                from,
                to,
            } if is_visible(*to) && !is_visible(*from) => {
                for known in known_files(catalog, &record.dataset, partition).await? {
                    // From the record's first action on: the catalog stands before it.
                    if future.keeps((record.number, 0), partition, &known.file.name) {
                        wanted.push(known);
                    }
                }
            }
            Action::AddPartition { .. }
            | Action::RemoveFile { .. }
            | Action::AddInput { .. }
            | Action::AddRejects { .. }
            | Action::RetryRejects { .. }
            | Action::SetState { .. }
            | Action::Complete { .. }
            | Action::Open { .. }
            | Action::Abandon { .. }
            | Action::EraseInput { .. } => {}
        }
    }
    Ok(wanted)
}

/// The files that the catalog has in a partition that readers do not see yet.
async fn known_files(
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
    partition: &PartitionKey,
) -> Result<Vec<Wanted>> {
    let filter = PartitionFilter {
        dataset: Some(dataset.clone()),
        dt_from: Some(partition.dt),
        dt_to: Some(partition.dt),
        schema_versions: vec![partition.schema_version],
        all_states: true,
    };
    let mut known = Vec::new();
    for row in catalog.list_files(&filter).await? {
        if row.key != *partition {
            continue;
        }
        known.push(Wanted {
            partition: row.key,
            attempt: row.attempt.map(|a| a.parse()).transpose()?,
            file: DataFileSpec {
                name: row.name,
                format: row.format,
                rows: row.row_count,
                bytes: row.byte_size,
                blake3: row.blake3,
                provenance: row.provenance,
                bounds: BTreeMap::new(),
                parents: Vec::new(),
            },
        });
    }
    Ok(known)
}

enum Found {
    All(Vec<FileStats>),
    Missing(Error),
}

/// Reads the footers, several at once; the answer is in the order of the files.
async fn read_all(lake: &Lake, dataset: &DatasetRef, wanted: Vec<Wanted>) -> Result<Found> {
    let mut found: BTreeMap<usize, FileStats> = BTreeMap::new();
    let mut reads = JoinSet::new();
    let mut files = wanted.into_iter().enumerate();
    loop {
        while reads.len() < FOOTERS_AT_ONCE
            && let Some((at, want)) = files.next()
        {
            let (lake, dataset) = (lake.clone(), dataset.clone());
            reads.spawn(async move {
                let stats = read_footer_stats(
                    &lake,
                    &dataset,
                    &want.partition,
                    &want.file,
                    want.attempt.as_ref(),
                )
                .await;
                (at, want, stats)
            });
        }
        let Some(read) = reads.join_next().await else {
            return Ok(Found::All(found.into_values().collect()));
        };
        let (at, want, stats) =
            read.map_err(|e| Error::internal("read the footer of a data file").caused_by(e))?;
        match stats? {
            Some(stats) => {
                found.insert(at, stats);
            }
            None => return Ok(Found::Missing(missing(dataset, &want))),
        }
    }
}

fn missing(dataset: &DatasetRef, want: &Wanted) -> Error {
    Error::corrupt("a data file that the log names is not in the lake")
        .with("file", data_file_path(dataset, &want.partition, &want.file.name))
        .with("attempt", want.attempt.as_ref().map_or("none", |a| a.as_str()))
        .hint("restore the file from a backup, or run `lakebed audit`; records after this one were not applied")
}

#[cfg(test)]
mod tests;
