//! What lies in the lake outside of its data folders and is explained by nothing (FIL-4): in the
//! root, in `_lake/`, among log records, schemas and rejects, in the stage.
//!
//! Strangers are listed and never deleted: nobody but a person knows what they are.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::govern::audit::collect::View;
use crate::govern::audit::{AuditReport, Finding, Repair, Severity};
use crate::log::DatasetState;
use crate::name::{AttemptId, DatasetRef, Layer};
use crate::store::{
    Lake, Layout, StorePath, checkpoint_name, flow_root, is_flow_stamp, is_log_record,
    is_published_schema, lake_json_path, rejects_dir, stage_root,
};

/// What a file system itself keeps in the root of a disk.
const OF_FILE_SYSTEM: &str = "lost+found";
const ADVICE: &str = "nothing reads it: move it out of the lake, or back to where it belongs; repair deletes no stranger";

pub(super) async fn check(lake: &Lake, view: &View, report: &mut AuditReport) -> Result<()> {
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
    for file in lake.store().list(&StorePath::new(Layout::LOGS)?).await? {
        if !is_log_record(&file.path) {
            found.push((file.path, "lies among log records and is none"));
        }
    }
    for file in lake.store().list(&StorePath::new(Layout::SCHEMAS)?).await? {
        if !is_published_schema(&file.path) {
            found.push((file.path, "lies among published schemas and is none"));
        }
    }
    for file in lake
        .store()
        .list(&StorePath::new(Layout::CHECKPOINTS)?)
        .await?
    {
        if checkpoint_name(&file.path.file_name()).is_none() {
            found.push((file.path, "lies among checkpoints and is none"));
        }
    }
    for file in lake.store().list(&flow_root()).await? {
        if !is_flow_stamp(&file.path) {
            found.push((file.path, "lies among the stamps of flows and is none"));
        }
    }
    for path in unknown_rejects(lake, view).await? {
        found.push((
            path,
            "lies among rejects, but no record of the log names it",
        ));
    }
    for path in unstaged(lake).await? {
        found.push((path, "lies in the stage, but belongs to no attempt"));
    }
    for (path, message) in found {
        // A running call moves its own files on while this looks at them.
        if is_there(lake, &path).await? {
            report.findings.push(stranger(&path, message));
        }
    }
    Ok(())
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

/// Files among the rejects that no log names. What a broken log would say nobody knows.
async fn unknown_rejects(lake: &Lake, view: &View) -> Result<Vec<StorePath>> {
    let mut unknown: BTreeSet<StorePath> = view.rejects.keys().cloned().collect();
    for (dataset, data) in &view.datasets {
        match &data.state {
            Some(state) => remove_named(&mut unknown, state),
            None => unknown.retain(|path| dataset_of(path).as_ref() != Some(dataset)),
        }
    }
    // A commit that came after the fold has its rejects in the listing: look once more.
    let touched: BTreeSet<DatasetRef> = unknown.iter().filter_map(dataset_of).collect();
    for dataset in touched.iter().filter(|d| view.datasets.contains_key(*d)) {
        let state = DatasetState::load(lake, dataset).await?;
        remove_named(&mut unknown, &state);
    }
    Ok(unknown.into_iter().collect())
}

fn remove_named(unknown: &mut BTreeSet<StorePath>, state: &DatasetState) {
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
