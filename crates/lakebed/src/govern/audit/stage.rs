//! The stage: attempts that can never commit, and files that their record does not name.

use crate::error::Result;
use crate::govern::audit::collect::StagedAttempt;
use crate::govern::audit::files::manual;
use crate::govern::audit::strangers::stranger;
use crate::govern::audit::{Finding, Repair, Severity};
use crate::log::{DatasetState, staged_paths};
use crate::name::{AttemptId, DatasetRef};
use crate::store::{Lake, ListedFile, final_path, stage_dir};

/// Looks at the attempts whose files are for `dataset` (`None` = for none), which has this fold (`None` = it
/// has none that can be read).
pub(super) async fn check(
    lake: &Lake,
    dataset: Option<&DatasetRef>,
    state: Option<&DatasetState>,
    attempts: &[StagedAttempt],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    for (attempt, listed) in attempts {
        let files = still_there(lake, listed).await?;
        if files.is_empty() {
            continue;
        }
        let committed = state.and_then(|s| Some((s, s.committed_attempt(attempt)?)));
        let abandoned = state.is_some_and(|s| s.is_abandoned(attempt));
        let (message, repair) = match (committed, abandoned, dataset) {
            (Some((state, number)), _, _) => {
                let left = strangers_of_attempt(state, attempt, number, &files);
                let waiting = files.len() - left.len();
                findings.extend(left);
                if waiting == 0 {
                    continue;
                }
                (
                    format!("{waiting} staged files of record {number} wait for their move"),
                    Repair::FinishMoves,
                )
            }
            (None, true, _) => (
                format!(
                    "{} staged files of an abandoned attempt are left",
                    files.len()
                ),
                Repair::DeleteStage {
                    attempt: attempt.clone(),
                },
            ),
            (None, false, Some(_)) => (
                format!(
                    "{} staged files of an attempt that has not committed: a running call, or a dead one",
                    files.len()
                ),
                Repair::Abandon {
                    attempt: attempt.clone(),
                },
            ),
            (None, false, None) => (
                format!("{} staged files that belong to no dataset", files.len()),
                manual("look at the folder and delete it"),
            ),
        };
        findings.push(Finding {
            invariant: "STG-1",
            severity: Severity::Warning,
            dataset: dataset.cloned(),
            subject: format!("attempt {attempt}"),
            message,
            repair,
        });
    }
    Ok(())
}

/// Of files that were listed before the logs were read, those that have not moved on since: a running
/// call names and moves its own.
async fn still_there(lake: &Lake, listed: &[ListedFile]) -> Result<Vec<ListedFile>> {
    let mut files = Vec::new();
    for file in listed {
        if lake.store().find_size(&file.path).await?.is_some() {
            files.push(file.clone());
        }
    }
    Ok(files)
}

/// Files in the stage of a committed attempt that its record does not name: no move waits for them.
fn strangers_of_attempt(
    state: &DatasetState,
    attempt: &AttemptId,
    number: u64,
    files: &[ListedFile],
) -> Vec<Finding> {
    let stage = stage_dir(attempt);
    let wanted = staged_paths(state, attempt, number);
    let is_wanted = |file: &ListedFile| {
        final_path(&stage, &file.path).is_some_and(|last| wanted.contains(&last))
    };
    files
        .iter()
        .filter(|f| !is_wanted(f))
        .map(|f| {
            let message = format!("lies in the stage of record {number}, which does not name it");
            stranger(&f.path, &message)
        })
        .collect()
}
