//! What a record amounts to as a row of `commit_info`; the same on every backend.

use crate::catalog::CommitRow;
use crate::name::ContentHash;
use crate::spec::{Action, Record};

impl CommitRow {
    /// The row of a record; `hash` is that of its bytes.
    #[must_use]
    pub fn of(record: &Record, hash: &ContentHash) -> Self {
        let (mut files_added, mut rows_added, mut rejected) = (0_u64, 0_u64, 0_u64);
        for action in &record.actions {
            match action {
                Action::AddFile { file, .. } => {
                    files_added += 1;
                    rows_added = rows_added.saturating_add(file.rows);
                }
                Action::AddRejects { file, .. } => {
                    rejected = rejected.saturating_add(file.records);
                }
                Action::AddPartition { .. }
                | Action::RemoveFile { .. }
                | Action::AddInput { .. }
                | Action::RetryRejects { .. }
                | Action::SetState { .. }
                | Action::Complete { .. }
                | Action::Open { .. }
                | Action::Abandon { .. }
                | Action::EraseInput { .. } => {}
            }
        }
        let dates = || record.actions.iter().filter_map(Action::date);
        Self {
            dataset: record.dataset.clone(),
            number: record.number,
            hash: hash.clone(),
            commit: record.commit.clone(),
            operation: record.operation.as_str().to_owned(),
            at: record.at,
            program: record.by.program.clone(),
            user: record.by.user.clone(),
            run: record.by.run.as_ref().map(ToString::to_string),
            note: record.by.note.clone(),
            files_added,
            rows_added,
            rejected,
            dt_min: dates().min(),
            dt_max: dates().max(),
        }
    }
}
