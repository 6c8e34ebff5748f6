//! What an audit looks at: a listing of the lake, and dataset by dataset the fold of its log.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, ErrorKind, Result};
use crate::govern::audit::{Finding, Repair, Severity, checkpoint};
use crate::log::{DatasetState, list_datasets, staged_attempts, staged_dataset};
use crate::name::{AttemptId, DatasetRef, Layer};
use crate::registry::list_published;
use crate::store::{Lake, Layout, ListedFile, StorePath, partition_of};

/// What an audit looks at before the datasets: one listing of what belongs to none of them alone.
///
/// Only what is small is kept for the whole of it. A dataset's fold and listing are made when it is its turn and
/// go with it, so an audit holds as much as the largest datasets take, however many there are.
pub(super) struct Overview {
    pub(super) datasets: BTreeSet<DatasetRef>,
    /// Attempts in the stage, by the dataset that their files are for.
    pub(super) attempts: BTreeMap<Option<DatasetRef>, Vec<StagedAttempt>>,
    pub(super) temporary: Vec<ListedFile>,
    /// Files in layer folders that lie in the folder of no known dataset. What lies elsewhere is the
    /// business of `strangers`.
    pub(super) strangers: Vec<ListedFile>,
}

/// An attempt and its files in the stage.
pub(super) type StagedAttempt = (AttemptId, Vec<ListedFile>);

/// A dataset as an audit sees it.
pub(super) struct DatasetView {
    /// Its fold; `None` when the log is broken.
    pub(super) state: Option<DatasetState>,
    /// Why the log is broken.
    error: Option<Error>,
    /// Checkpoints that do not hold what the records say.
    checkpoints: Vec<Finding>,
    /// Files in its partition folders, by path.
    pub(super) listed: BTreeMap<StorePath, u64>,
    /// Files beside its partition folders.
    pub(super) strangers: Vec<ListedFile>,
    pub(super) rejects: BTreeMap<StorePath, u64>,
    /// Files of superseded partitions, and what else lies there.
    pub(super) superseded: BTreeMap<StorePath, u64>,
    /// Published schema versions.
    pub(super) schemas: BTreeSet<u32>,
    /// Why they cannot be read.
    pub(super) schema_error: Option<Error>,
}

/// An error that says something of the lake. A disk that fails, or a record of a newer format, says
/// nothing: whoever cannot read it must not call the lake damaged.
fn judged(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Unavailable => Err(error),
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Conflict
        | ErrorKind::PreconditionFailed
        | ErrorKind::CorruptData
        | ErrorKind::LimitExceeded
        | ErrorKind::Internal => Ok(error),
    }
}

impl Overview {
    pub(super) async fn collect(lake: &Lake) -> Result<Self> {
        let mut folders = Vec::new();
        for layer in Layer::ALL {
            let root = StorePath::new(layer.as_str())?;
            folders.extend(lake.store().list_entries(&root).await?);
        }
        let mut attempts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (attempt, files) in staged_attempts(lake).await? {
            let dataset = files.iter().find_map(|f| staged_dataset(&f.path));
            attempts.entry(dataset).or_default().push((attempt, files));
        }
        let temporary = lake.store().list(&StorePath::new(Layout::PUTS)?).await?;
        // After the folders: a dataset that comes meanwhile is no stranger.
        let datasets: BTreeSet<DatasetRef> = list_datasets(lake).await?.into_iter().collect();
        let mut strangers = Vec::new();
        for folder in folders {
            let dataset = folder.as_str().parse().ok();
            if !dataset.is_some_and(|d: DatasetRef| datasets.contains(&d)) {
                strangers.extend(list_all(lake, &folder).await?);
            }
        }
        Ok(Self {
            datasets,
            attempts,
            temporary,
            strangers,
        })
    }
}

/// Every file below the entry; the entry itself where it is a file.
pub(super) async fn list_all(lake: &Lake, entry: &StorePath) -> Result<Vec<ListedFile>> {
    let mut files = lake.store().list(entry).await?;
    if let Some(size_bytes) = lake.store().find_size(entry).await? {
        let path = entry.clone();
        files.push(ListedFile { path, size_bytes });
    }
    Ok(files)
}

impl DatasetView {
    /// Folders are listed before the log is read: what a running call moved in meanwhile is committed,
    /// so its record is among those that are read, and no file of it looks like a stranger.
    pub(super) async fn collect(lake: &Lake, dataset: &DatasetRef) -> Result<Self> {
        let (mut listed, mut strangers) = (BTreeMap::new(), Vec::new());
        let folder = StorePath::new(dataset.to_string())?;
        hand_out(
            lake.store().list(&folder).await?,
            &mut listed,
            &mut strangers,
        );
        let below = |root: &str| StorePath::new(format!("{root}/{dataset}"));
        let rejects = sizes(lake, &below(Layout::REJECTS)?).await?;
        let superseded = sizes(lake, &below(Layout::SUPERSEDED)?).await?;
        let mut checkpoints = Vec::new();
        let (state, error) = match checkpoint::fold(lake, dataset, &mut checkpoints).await {
            Ok(state) => (Some(state), None),
            Err(error) => (None, Some(judged(error)?)),
        };
        let (schemas, schema_error) = match list_published(lake, dataset).await {
            Ok(versions) => (
                versions.iter().map(|(v, _)| v.schema.version).collect(),
                None,
            ),
            Err(error) => (BTreeSet::new(), Some(judged(error)?)),
        };
        Ok(Self {
            state,
            error,
            checkpoints,
            listed,
            strangers,
            rejects,
            superseded,
            schemas,
            schema_error,
        })
    }

    /// A finding where the log does not fold, and those of checkpoints.
    pub(super) fn log_findings(&mut self, dataset: &DatasetRef) -> Vec<Finding> {
        let mut findings = std::mem::take(&mut self.checkpoints);
        findings.extend(self.error.as_ref().map(|error| broken_log(dataset, error)));
        findings
    }
}

/// Tells the files of partitions from what lies beside them.
fn hand_out(
    files: Vec<ListedFile>,
    listed: &mut BTreeMap<StorePath, u64>,
    strangers: &mut Vec<ListedFile>,
) {
    let mut files = files.into_iter().peekable();
    while let Some(first) = files.next() {
        if partition_of(&first.path).is_none() {
            strangers.push(first);
            continue;
        }
        // What follows in the same folder has the same home.
        let folder = first.path.parent();
        let is_partition = partition_of(&folder).is_some();
        let is_next = |file: &ListedFile| {
            let parts = file.path.as_str().rsplit_once('/');
            is_partition && parts.is_some_and(|(parent, _)| parent == folder.as_str())
        };
        listed.insert(first.path, first.size_bytes);
        while let Some(file) = files.next_if(is_next) {
            listed.insert(file.path, file.size_bytes);
        }
    }
}

fn broken_log(dataset: &DatasetRef, error: &Error) -> Finding {
    let invariant = ["LOG-1", "LOG-2", "LOG-3", "LOG-4"]
        .into_iter()
        .find(|id| error.context().iter().any(|(_, v)| v == id))
        .unwrap_or("LOG-3");
    Finding {
        invariant,
        severity: Severity::Error,
        dataset: Some(dataset.clone()),
        subject: format!("log of {dataset}"),
        message: error.to_string(),
        repair: Repair::Manual {
            advice: error
                .hints()
                .first()
                .cloned()
                .unwrap_or_else(|| "restore the log from a backup".into()),
        },
    }
}

/// The sizes of all files below a folder.
async fn sizes(lake: &Lake, folder: &StorePath) -> Result<BTreeMap<StorePath, u64>> {
    let files = lake.store().list(folder).await?;
    Ok(files.into_iter().map(|f| (f.path, f.size_bytes)).collect())
}
