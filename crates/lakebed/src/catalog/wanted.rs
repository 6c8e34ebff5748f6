//! Which statistics go in with a record, and reading them from the footers of their files.
//!
//! Statistics are read of those files alone that readers still see after the last known record
//! (CAT-5): what a later record removes or retires may be gone from the disk.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use crate::catalog::key::is_visible;
use crate::catalog::stats::{LastSchema, read_footer_stats};
use crate::catalog::{Catalog, FileStats, PartitionFilter};
use crate::error::{Error, Result};
use crate::fault;
use crate::log::LoggedRecord;
use crate::name::{AttemptId, DatasetRef};
use crate::spec::{Action, DataFileSpec, PartitionKey, Record};
use crate::store::{Lake, data_file_path};

/// Records of one transaction at most.
const BATCH_RECORDS: usize = 512;
/// Files that they add, and bytes of what is known of their columns: no further record is taken where there
/// are more.
const BATCH_FILES: usize = 4096;
const BATCH_BYTES: usize = 4 << 20;
/// Files that are read before the bytes are counted.
const ROUND_FILES: usize = 512;
/// Tasks that read footers at once.
const TASKS_AT_ONCE: usize = 16;
/// Files that one task reads one after the other.
const PIECE: usize = 64;

/// A place among the known records: (record number, place of the action in it).
type Place = (u64, usize);

/// What the known records say of files and partitions in the end.
#[derive(Default)]
pub(super) struct Future {
    /// The last action that removes the file.
    removed: BTreeMap<(PartitionKey, String), Place>,
    /// The last action that changes the partition's state, and whether readers see it then.
    visible: BTreeMap<PartitionKey, (Place, bool)>,
}

impl Future {
    pub(super) fn note(&mut self, logged: &LoggedRecord) {
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
    catalog: Option<&dyn Catalog>,
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
                let Some(catalog) = catalog else {
                    return Err(Error::internal(
                        "read ahead of a record that brings files back",
                    ));
                };
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

/// Whether the record brings partitions back into sight: which files they have the catalog must be asked,
/// and it must stand right before the record.
pub(super) fn brings_back(record: &Record) -> bool {
    record.actions.iter().any(|action| {
        matches!(action, Action::SetState { from, to, .. } if is_visible(*to) && !is_visible(*from))
    })
}

/// Files that the record adds.
fn count_files(record: &Record) -> usize {
    let adds = |action: &&Action| matches!(action, Action::AddFile { .. });
    record.actions.iter().filter(adds).count()
}

/// Why the records of a batch end early.
pub(super) enum Stop {
    /// A file that readers should see is nowhere.
    Missing(Error),
    /// A file could not be read.
    Failed(Error),
}

/// Records that are applied in one transaction, and the statistics that go in with each.
pub(super) struct Prepared {
    /// The statistics of each record, up to the first whose files could not all be read.
    pub(super) stats: Vec<Vec<FileStats>>,
    /// Why there are not more of them.
    pub(super) stop: Option<Stop>,
}

impl Prepared {
    /// Takes as many of the records as one transaction may have, and reads what goes in with them. The
    /// catalog must stand before the first if that one brings partitions back; no other one does. Where
    /// there is no catalog, none does at all.
    pub(super) async fn read(
        lake: &Lake,
        catalog: Option<&dyn Catalog>,
        records: &[LoggedRecord],
        future: &Future,
    ) -> Result<Self> {
        let most = fault::sync_batch().unwrap_or(BATCH_RECORDS);
        let (mut stats, mut stop) = (Vec::new(), None);
        let (mut files, mut bytes) = (0, 0);
        while stop.is_none() && files < BATCH_FILES && bytes < BATCH_BYTES {
            let (_, rest) = records.split_at(stats.len());
            let may_bring_back = stats.is_empty() && catalog.is_some();
            let round = next_round(rest, most - stats.len(), may_bring_back);
            if round.is_empty() {
                break;
            }
            let found;
            (found, stop) = read_round(lake, catalog, round, future).await?;
            files += found.iter().map(Vec::len).sum::<usize>();
            let of_files = found.iter().flatten();
            bytes += of_files
                .map(|file| file.columns.values().len())
                .sum::<usize>();
            stats.extend(found);
        }
        Ok(Self { stats, stop })
    }
}

/// The next records whose footers are read together: `most` at most, and few files.
fn next_round(rest: &[LoggedRecord], most: usize, may_bring_back: bool) -> &[LoggedRecord] {
    let (mut count, mut files) = (0, 0);
    for logged in rest.iter().take(most) {
        files += count_files(&logged.record);
        let is_full = count > 0 && files > ROUND_FILES;
        if is_full || (brings_back(&logged.record) && !(may_bring_back && count == 0)) {
            break;
        }
        count += 1;
    }
    rest.split_at(count).0
}

/// The statistics of each record up to the first that lacks some, and why it does.
async fn read_round(
    lake: &Lake,
    catalog: Option<&dyn Catalog>,
    records: &[LoggedRecord],
    future: &Future,
) -> Result<(Vec<Vec<FileStats>>, Option<Stop>)> {
    let Some(first) = records.first() else {
        return Ok((Vec::new(), None));
    };
    let mut wanted = Vec::new();
    for (at, logged) in records.iter().enumerate() {
        let files = wanted_files(catalog, logged, future).await?;
        wanted.extend(files.into_iter().map(|want| (at, want)));
    }
    let mut stats: Vec<Vec<FileStats>> = records.iter().map(|_| Vec::new()).collect();
    for (at, found) in read_all(lake, &first.record.dataset, wanted).await? {
        match (found, stats.get_mut(at)) {
            (Ok(found), Some(of_record)) => of_record.push(found),
            (Ok(_), None) => {}
            (Err(why), _) => {
                stats.truncate(at);
                return Ok((stats, Some(why)));
            }
        }
    }
    Ok((stats, None))
}

type Read = (usize, std::result::Result<FileStats, Stop>);

/// Reads the footers, several at once; the answer is in the order of the files.
async fn read_all(
    lake: &Lake,
    dataset: &DatasetRef,
    wanted: Vec<(usize, Wanted)>,
) -> Result<Vec<Read>> {
    let piece = wanted.len().div_ceil(TASKS_AT_ONCE).clamp(1, PIECE);
    let mut found: BTreeMap<usize, Vec<Read>> = BTreeMap::new();
    let mut reads = JoinSet::new();
    let mut files = wanted.into_iter();
    let mut pieces = 0_usize;
    loop {
        while reads.len() < TASKS_AT_ONCE {
            let piece: Vec<_> = files.by_ref().take(piece).collect();
            if piece.is_empty() {
                break;
            }
            let (lake, dataset, n) = (lake.clone(), dataset.clone(), pieces);
            reads.spawn(async move { (n, read_piece(&lake, &dataset, piece).await) });
            pieces += 1;
        }
        let Some(read) = reads.join_next().await else {
            return Ok(found.into_values().flatten().collect());
        };
        let (n, read) =
            read.map_err(|e| Error::internal("read the footer of a data file").caused_by(e))?;
        found.insert(n, read);
    }
}

/// Reads one footer after the other, up to the first that cannot be read.
async fn read_piece(lake: &Lake, dataset: &DatasetRef, piece: Vec<(usize, Wanted)>) -> Vec<Read> {
    let mut found = Vec::with_capacity(piece.len());
    let mut last_schema = LastSchema::default();
    for (at, want) in piece {
        let attempt = want.attempt.as_ref();
        let (key, file) = (&want.partition, &want.file);
        let stats = read_footer_stats(lake, dataset, key, file, attempt, &mut last_schema);
        let read = match stats.await {
            Ok(Some(stats)) => Ok(stats),
            Ok(None) => Err(Stop::Missing(missing(dataset, &want))),
            Err(e) => Err(Stop::Failed(e)),
        };
        let is_end = read.is_err();
        found.push((at, read));
        if is_end {
            break;
        }
    }
    found
}

fn missing(dataset: &DatasetRef, want: &Wanted) -> Error {
    Error::corrupt("a data file that the log names is not in the lake")
        .with("file", data_file_path(dataset, &want.partition, &want.file.name))
        .with("attempt", want.attempt.as_ref().map_or("none", |a| a.as_str()))
        .hint("restore the file from a backup, or run `lakebed audit`; records after this one were not applied")
}
