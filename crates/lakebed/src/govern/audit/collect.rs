//! What an audit looks at: the fold of every log and one listing of the lake.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, ErrorKind, Result};
use crate::govern::audit::each::in_order;
use crate::govern::audit::{Finding, Repair, Severity, checkpoint};
use crate::log::{DatasetState, list_datasets, staged_attempts};
use crate::name::{AttemptId, DatasetRef, Layer};
use crate::registry::list_published;
use crate::store::{
    Lake, Layout, ListedFile, StorePath, log_record_path, partition_of, superseded_root,
};

/// A dataset as an audit sees it.
pub(super) struct DatasetView {
    /// Its fold; `None` when the log is broken.
    pub(super) state: Option<DatasetState>,
    /// Why the log is broken.
    pub(super) error: Option<Error>,
    /// Files in its data folder, by path.
    pub(super) listed: BTreeMap<StorePath, u64>,
    /// Published schema versions.
    pub(super) schemas: BTreeSet<u32>,
    /// Why they cannot be read.
    pub(super) schema_error: Option<Error>,
}

/// Everything an audit compares.
pub(super) struct View {
    pub(super) datasets: BTreeMap<DatasetRef, DatasetView>,
    /// Checkpoints that do not hold what the records say.
    checkpoints: Vec<Finding>,
    pub(super) attempts: BTreeMap<AttemptId, Vec<ListedFile>>,
    pub(super) temporary: Vec<ListedFile>,
    pub(super) rejects: BTreeMap<StorePath, u64>,
    /// Files of superseded partitions, and what else lies there.
    pub(super) superseded: BTreeMap<StorePath, u64>,
    /// Files in layer folders that lie in no partition folder of a known dataset. What lies elsewhere
    /// is the business of `strangers`.
    pub(super) strangers: Vec<ListedFile>,
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

impl DatasetView {
    async fn collect(lake: &Lake, dataset: &DatasetRef) -> Result<(Self, Vec<Finding>)> {
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
        let view = Self {
            state,
            error,
            listed: BTreeMap::new(),
            schemas,
            schema_error,
        };
        Ok((view, checkpoints))
    }
}

impl View {
    /// Folders are listed before logs are read: what a running call moved in meanwhile is committed,
    /// so its record is among those that are read, and no file of it looks like a stranger.
    pub(super) async fn collect(lake: &Lake) -> Result<Self> {
        let mut listed = Vec::new();
        for layer in Layer::ALL {
            listed.extend(lake.store().list(&StorePath::new(layer.as_str())?).await?);
        }
        let attempts = staged_attempts(lake).await?;
        let temporary = lake.store().list(&StorePath::new(Layout::PUTS)?).await?;
        let rejects = sizes(lake, &StorePath::new(Layout::REJECTS)?).await?;
        let superseded = sizes(lake, &superseded_root()).await?;
        let mut datasets = BTreeMap::new();
        let mut checkpoints = Vec::new();
        let folds = list_datasets(lake).await?.into_iter().map(|dataset| {
            let lake = lake.clone();
            async move {
                let collected = DatasetView::collect(&lake, &dataset).await?;
                Ok((dataset, collected))
            }
        });
        for (dataset, (view, found)) in in_order(folds.collect()).await? {
            checkpoints.extend(found);
            datasets.insert(dataset, view);
        }
        let strangers = hand_out(listed, &mut datasets);
        Ok(Self {
            datasets,
            checkpoints,
            attempts,
            temporary,
            rejects,
            superseded,
            strangers,
        })
    }

    /// Whether a log has gone on since.
    pub(super) async fn is_outdated(&self, lake: &Lake) -> Result<bool> {
        for (dataset, view) in &self.datasets {
            let Some(state) = &view.state else { continue };
            let next = log_record_path(dataset, state.position().number + 1);
            if lake.store().find_size(&next).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A finding for every log that does not fold, and those of checkpoints.
    pub(super) fn log_findings(&self) -> Vec<Finding> {
        let broken = self.datasets.iter().filter_map(broken_log);
        broken.chain(self.checkpoints.iter().cloned()).collect()
    }
}

/// Gives every listed file to its dataset; answers those that have none.
fn hand_out(
    listed: Vec<ListedFile>,
    datasets: &mut BTreeMap<DatasetRef, DatasetView>,
) -> Vec<ListedFile> {
    let mut strangers = Vec::new();
    let mut listed = listed.into_iter().peekable();
    while let Some(first) = listed.next() {
        let home = partition_of(&first.path).and_then(|(dataset, _, _)| datasets.get_mut(&dataset));
        let Some(view) = home else {
            strangers.push(first);
            continue;
        };
        // What follows in the same folder has the same home.
        let folder = first.path.parent();
        let is_partition = partition_of(&folder).is_some();
        let is_next = |file: &ListedFile| {
            let parts = file.path.as_str().rsplit_once('/');
            is_partition && parts.is_some_and(|(parent, _)| parent == folder.as_str())
        };
        view.listed.insert(first.path, first.size_bytes);
        while let Some(file) = listed.next_if(is_next) {
            view.listed.insert(file.path, file.size_bytes);
        }
    }
    strangers
}

fn broken_log((dataset, view): (&DatasetRef, &DatasetView)) -> Option<Finding> {
    let error = view.error.as_ref()?;
    let invariant = ["LOG-1", "LOG-2", "LOG-3", "LOG-4"]
        .into_iter()
        .find(|id| error.context().iter().any(|(_, v)| v == id))
        .unwrap_or("LOG-3");
    Some(Finding {
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
    })
}

/// The sizes of all files below a folder.
async fn sizes(lake: &Lake, folder: &StorePath) -> Result<BTreeMap<StorePath, u64>> {
    let files = lake.store().list(folder).await?;
    Ok(files.into_iter().map(|f| (f.path, f.size_bytes)).collect())
}
