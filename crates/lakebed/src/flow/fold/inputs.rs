//! What a fold of a date reads, by the logs: files of the date, files that came late, and what earlier folds read.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::flow::fold::refusal::{FoldRefusalKind, Stop, Tried};
use crate::flow::rows::{StoredFile, list_files};
use crate::log::{DatasetState, finish_moves, load};
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{InputSpec, LoadKind, PartitionKey, ReadRange, parent_text};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Files of a date of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputFiles {
    pub(crate) range: ReadRange,
    pub(crate) files: Vec<StoredFile>,
}

/// The fold of a dataset's log, with every file at its place.
pub(crate) async fn load_settled(lake: &Lake, dataset: &DatasetRef) -> Result<DatasetState> {
    let mut state = load(lake, dataset).await?.state;
    finish_moves(lake, &mut state).await?;
    Ok(state)
}

impl InputFiles {
    /// What readers see of the date, by records after that one and up to the other.
    pub(crate) fn between(
        lake: &Lake,
        state: &DatasetState,
        dt: BusinessDate,
        (after, upto): (u64, u64),
    ) -> Result<Self> {
        let mut files = list_files(lake, state, dt)?;
        files.retain(|f| f.number > after && f.number <= upto);
        let last = files.iter().map(|f| f.number).max();
        Ok(Self {
            range: ReadRange {
                dataset: state.dataset().to_string(),
                dt,
                revision: state.active_revision(dt),
                after,
                upto: last.unwrap_or(after),
            },
            files,
        })
    }

    /// Names the bytes of the files, in their order.
    pub(crate) fn content(&self) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        for file in &self.files {
            hasher.update(file.blake3.as_str().as_bytes());
        }
        ContentHash::finish(&hasher)
    }

    pub(super) fn rows(&self) -> u64 {
        self.files.iter().map(|f| f.rows).sum()
    }

    /// How the log names it.
    pub(super) fn spec(&self, rules: &str) -> InputSpec {
        InputSpec {
            content: self.content(),
            name: self.range.to_string(),
            bytes: self.files.iter().map(|f| f.bytes).sum(),
            rows: self.rows(),
            rejected: 0,
            rules: rules.to_owned(),
            batch: None,
            load: LoadKind::Incremental,
            parents: self.range.parent().into_iter().collect(),
        }
    }

    /// The partitions of its files, as parents.
    pub(super) fn parents(&self) -> Result<Vec<String>> {
        let dataset: DatasetRef = self.range.dataset.parse()?;
        let mut keys: Vec<PartitionKey> = self.files.iter().map(|f| f.key).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys.iter().map(|key| parent_text(&dataset, key)).collect())
    }
}

/// What the fold of a date read, as its snapshot says; empty where there is none.
///
/// Refused where the snapshot has rows that no fold made.
pub(super) fn recorded(
    snapshot: &DatasetState,
    dt: BusinessDate,
) -> Tried<Vec<(ReadRange, InputSpec)>> {
    let inputs = snapshot.visible_inputs(dt);
    let mut read = Vec::new();
    for (_, input) in inputs {
        let range = input.spec.name.parse::<ReadRange>();
        let range = range.map_err(|_| foreign(snapshot.dataset(), dt, &input.spec.name))?;
        read.push((range, input.spec.clone()));
    }
    Ok(read)
}

/// Rows of another maker: what was known of the day before is not in them.
fn foreign(dataset: &DatasetRef, dt: BusinessDate, file: &str) -> Stop {
    let name = dataset.dataset.as_str();
    let (source, fold) = name.split_once('.').unwrap_or((name, name));
    let command = format!("lakebed fold {source} --name {fold}");
    let error = Error::precondition(format!(
        "`{dataset}` has rows of {dt} that no fold made: they come from `{file}`"
    ))
    .hint(format!(
        "work the chain out anew from that day on, as revisions: `{command} --date NEWEST --from {dt}`"
    ))
    .hint(format!(
        "or begin from nothing, and lose what was known: `{command} --date NEWEST --from {dt} --cold-start`"
    ))
    .hint("a dataset of snapshots is written by its fold alone");
    Stop::refuse(FoldRefusalKind::Changed, error)
}

/// How far folds have read each date of each dataset: its revision then, and the last record.
pub(super) struct ReadSoFar(BTreeMap<(String, BusinessDate), (u32, u64)>);

impl ReadSoFar {
    /// By the snapshots of these dates, both included.
    pub(super) fn of(snapshot: &DatasetState, from: BusinessDate, to: BusinessDate) -> Tried<Self> {
        let mut read: BTreeMap<(String, BusinessDate), (u32, u64)> = BTreeMap::new();
        let dates = snapshot.dates().range(from..).map(|(dt, _)| *dt);
        for dt in dates.take_while(|dt| *dt <= to) {
            for (range, _) in recorded(snapshot, dt)? {
                let known = read
                    .entry((range.dataset, range.dt))
                    .or_insert((range.revision, range.upto));
                *known = (range.revision, known.1.max(range.upto));
            }
        }
        Ok(Self(read))
    }

    /// Of a dataset: date, revision and last record, for the dates in the range.
    pub(super) fn dates_of<'a>(
        &'a self,
        dataset: &'a str,
        from: BusinessDate,
    ) -> impl Iterator<Item = (BusinessDate, u32, u64)> + 'a {
        let all = self.0.iter();
        all.filter(move |((of, dt), _)| of == dataset && *dt >= from)
            .map(|((_, dt), (revision, upto))| (*dt, *revision, *upto))
    }
}
