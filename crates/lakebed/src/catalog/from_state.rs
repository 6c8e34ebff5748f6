//! Files of a fold in the shape of catalog rows: for states of the past, which no catalog holds.

use std::collections::BTreeMap;

use crate::catalog::{FileRow, file_id, partition_id};
use crate::log::DatasetState;
use crate::name::CommitId;
use crate::store::data_file_path;

/// The files that readers of the state see, in the order of `Catalog::list_files`.
///
/// A path is the place that the file had for them. It may have moved since: `log::find_file` knows.
#[must_use]
pub fn visible_files(state: &DatasetState) -> Vec<FileRow> {
    let commits: BTreeMap<u64, &CommitId> = state.commits().map(|(c, n)| (n, c)).collect();
    let mut rows = Vec::new();
    for (key, partition) in state.partitions().iter().filter(|(_, p)| p.is_visible()) {
        let partition_id = partition_id(state.dataset(), key);
        for file in partition.files.values() {
            let Some(commit) = commits.get(&file.number) else {
                continue;
            };
            rows.push(FileRow {
                id: file_id(&partition_id, &file.spec.name),
                dataset: state.dataset().clone(),
                key: *key,
                path: data_file_path(state.dataset(), key, &file.spec.name).to_string(),
                name: file.spec.name.clone(),
                format: file.spec.format,
                row_count: file.spec.rows,
                byte_size: file.spec.bytes,
                blake3: file.spec.blake3.clone(),
                provenance: file.spec.provenance,
                attempt: file.attempt.as_ref().map(ToString::to_string),
                commit: (*commit).clone(),
                log_position: file.number,
            });
        }
    }
    rows.sort_by(|a, b| (a.key, a.log_position, &a.name).cmp(&(b.key, b.log_position, &b.name)));
    rows
}
