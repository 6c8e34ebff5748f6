//! What lies in the lake outside of its data folders and is explained by nothing (FIL-4): in the
//! root, in `_lake/`, among log records, schemas and rejects, in the stage.
//!
//! Strangers are listed and never deleted: nobody but a person knows what they are.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::govern::audit::collect::{DatasetView, Overview, list_all};
use crate::govern::audit::{Finding, Repair, Severity};
use crate::log::DatasetState;
use crate::name::{AttemptId, DatasetRef, Layer};
use crate::store::{
    Lake, Layout, StorePath, checkpoint_name, flow_root, is_flow_stamp, is_log_record,
    is_published_schema, lake_json_path, rejects_dir, stage_root,
};

/// What a file system itself keeps in the root of a disk.
const OF_FILE_SYSTEM: &str = "lost+found";
const UNKNOWN_REJECTS: &str = "lies among rejects, but no record of the log names it";
const ADVICE: &str = "nothing reads it: move it out of the lake, or back to where it belongs; repair deletes no stranger";

/// A folder of files of one kind: what is one, and what to say of any other.
type Kind = (&'static str, fn(&StorePath) -> bool, &'static str);

const OF_ONE_KIND: [Kind; 4] = [
    (
        Layout::FLOW,
        is_flow_stamp,
        "lies among the stamps of flows and is none",
    ),
    (
        Layout::LOGS,
        is_log_record,
        "lies among log records and is none",
    ),
    (
        Layout::SCHEMAS,
        is_published_schema,
        "lies among published schemas and is none",
    ),
    (
        Layout::CHECKPOINTS,
        is_checkpoint,
        "lies among checkpoints and is none",
    ),
];

fn is_checkpoint(path: &StorePath) -> bool {
    checkpoint_name(&path.file_name()).is_some()
}

pub(super) async fn check(
    lake: &Lake,
    overview: &Overview,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let root = StorePath::new("")?;
    let internal = StorePath::new(Layout::INTERNAL)?;
    let mut found = Vec::new();
    for entry in lake.store().list_entries(&root).await? {
        let name = entry.as_str();
        let is_layer = Layer::ALL.iter().any(|l| l.as_str() == name);
        let is_known =
            is_layer || entry == lake_json_path() || entry == internal || entry == flow_root();
        if !is_known && name != OF_FILE_SYSTEM {
            found.push((entry, "lies in the root of the lake"));
        }
    }
    let folders = [
        Layout::LOGS,
        Layout::SCHEMAS,
        Layout::REJECTS,
        Layout::STAGE,
        Layout::SUPERSEDED,
        Layout::CHECKPOINTS,
    ];
    for entry in lake.store().list_entries(&internal).await? {
        if !folders.contains(&entry.as_str()) {
            found.push((entry, "lies among the files that Lakebed keeps for itself"));
        }
    }
    for (root, is_one, message) in OF_ONE_KIND {
        for folder in folders_of_datasets(lake, root).await? {
            let files = list_all(lake, &folder).await?.into_iter().map(|f| f.path);
            found.extend(files.filter(|f| !is_one(f)).map(|f| (f, message)));
        }
    }
    for folder in folders_of_datasets(lake, Layout::REJECTS).await? {
        // What is below the folder of a dataset is looked at with its log.
        if dataset_of(&folder).is_none_or(|d| !overview.datasets.contains(&d)) {
            let files = list_all(lake, &folder).await?;
            found.extend(files.into_iter().map(|f| (f.path, UNKNOWN_REJECTS)));
        }
    }
    for path in unstaged(lake).await? {
        found.push((path, "lies in the stage, but belongs to no attempt"));
    }
    for (path, message) in found {
        note(lake, &path, message, findings).await?;
    }
    Ok(())
}

/// The rejects of a dataset that its log does not name. What a broken log would say nobody knows.
pub(super) async fn check_rejects(
    lake: &Lake,
    data: &DatasetView,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let Some(state) = &data.state else {
        return Ok(());
    };
    let mut unknown: BTreeSet<&StorePath> = data.rejects.keys().collect();
    remove_named(&mut unknown, state);
    if !unknown.is_empty() {
        // A commit that came after the fold has its rejects in the listing: look once more.
        let state = DatasetState::load(lake, state.dataset()).await?;
        remove_named(&mut unknown, &state);
    }
    for path in unknown {
        note(lake, path, UNKNOWN_REJECTS, findings).await?;
    }
    Ok(())
}

/// A running call moves its own files on while this looks at them.
async fn note(
    lake: &Lake,
    path: &StorePath,
    message: &str,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    if is_there(lake, path).await? {
        findings.push(stranger(path, message));
    }
    Ok(())
}

/// The folders of datasets below a folder of the lake's own, and whatever lies beside them.
async fn folders_of_datasets(lake: &Lake, root: &str) -> Result<Vec<StorePath>> {
    let mut found = Vec::new();
    for entry in lake.store().list_entries(&StorePath::new(root)?).await? {
        let below = lake.store().list_entries(&entry).await?;
        if below.is_empty() {
            found.push(entry);
        } else {
            found.extend(below);
        }
    }
    Ok(found)
}

async fn is_there(lake: &Lake, path: &StorePath) -> Result<bool> {
    if lake.store().find_size(path).await?.is_some() {
        return Ok(true);
    }
    let siblings = lake.store().list_entries(&path.parent()).await?;
    Ok(siblings.contains(path))
}

/// The finding for a file or folder that nothing explains.
pub(super) fn stranger(path: &StorePath, message: &str) -> Finding {
    Finding {
        invariant: "FIL-4",
        severity: Severity::Warning,
        dataset: None,
        subject: path.to_string(),
        message: format!("{message}: nothing explains it"),
        repair: Repair::Manual {
            advice: ADVICE.to_owned(),
        },
    }
}

fn remove_named(unknown: &mut BTreeSet<&StorePath>, state: &DatasetState) {
    for (dt, date) in state.dates() {
        let folder = rejects_dir(state.dataset(), *dt);
        for rejects in &date.rejects {
            unknown.remove(&folder.child(&rejects.spec.name));
        }
    }
}

fn dataset_of(path: &StorePath) -> Option<DatasetRef> {
    let root = StorePath::new(Layout::REJECTS).ok()?;
    let mut parts = path.below(&root)?.split('/');
    format!("{}/{}", parts.next()?, parts.next()?).parse().ok()
}

/// Files of the stage whose folder names no attempt. Temporary files of puts are STG-2's.
async fn unstaged(lake: &Lake) -> Result<Vec<StorePath>> {
    let root = stage_root();
    let puts = StorePath::new(Layout::PUTS)?;
    let is_stranger = |path: &StorePath| {
        let first = path.below(&root).and_then(|rest| rest.split('/').next());
        let is_attempt = first.is_some_and(|f| f.parse::<AttemptId>().is_ok());
        !is_attempt && path.below(&puts).is_none()
    };
    let files = lake.store().list(&root).await?;
    let paths = files.into_iter().map(|f| f.path);
    Ok(paths.filter(is_stranger).collect())
}
