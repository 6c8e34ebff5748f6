//! The fold that an audit believes: from the records alone, and every checkpoint compared with it.

use crate::error::{ErrorKind, Result};
use crate::govern::audit::files::manual;
use crate::govern::audit::{Finding, Repair, Severity};
use crate::log::{
    Checkpoint, CheckpointContent, DatasetState, LogWalk, list_checkpoints, read_checkpoint,
};
use crate::name::DatasetRef;
use crate::spec::LogPosition;
use crate::store::Lake;

/// Folds the records of the dataset; checkpoints that do not hold the same become findings (LOG-10).
pub(super) async fn fold(
    lake: &Lake,
    dataset: &DatasetRef,
    findings: &mut Vec<Finding>,
) -> Result<DatasetState> {
    // Listed before the log is: whatever they end at is in the log by then. The oldest is last.
    let mut waiting = list_checkpoints(lake, dataset).await?;
    let mut found = Vec::new();
    let mut state = DatasetState::empty(dataset.clone());
    let mut walk = LogWalk::whole(lake, dataset, LogPosition::START).await?;
    loop {
        let batch = walk.next_batch().await?;
        if batch.is_empty() {
            break;
        }
        for logged in &batch {
            state.apply(logged)?;
            while let Some(next) = waiting.pop_if(|c| c.number <= state.position().number) {
                found.extend(compare(lake, &next, &state).await);
            }
        }
    }
    found.extend(waiting.iter().map(|beyond| {
        let message = format!(
            "ends at record {}, but the log ends at record {}: records were lost",
            beyond.number,
            state.position().number
        );
        let advice =
            "restore the records from a backup; if the log is right, delete the checkpoint";
        finding(&state, beyond, (Severity::Error, message), manual(advice))
    }));
    // Of a log that does not fold nothing is said here: then nobody knows what is right.
    findings.append(&mut found);
    Ok(state)
}

async fn compare(lake: &Lake, checkpoint: &Checkpoint, state: &DatasetState) -> Option<Finding> {
    let delete = Repair::DeleteCheckpoint {
        path: checkpoint.path.clone(),
    };
    let (said, repair) = match read_checkpoint(lake, state.dataset(), checkpoint).await {
        Ok(CheckpointContent::Fold(fold)) if *fold == *state => return None,
        Ok(CheckpointContent::Fold(_)) => {
            let message = "does not hold what the records up to its number say".to_owned();
            ((Severity::Error, message), delete)
        }
        Ok(CheckpointContent::Newer { .. } | CheckpointContent::Gone) => return None,
        Err(e) if e.kind() == ErrorKind::CorruptData => {
            let message = format!("cannot be used: {}", e.message());
            ((Severity::Warning, message), delete)
        }
        Err(e) => {
            let advice = manual("look at the file; it can be deleted");
            let message = format!("cannot be read: {e}");
            ((Severity::Warning, message), advice)
        }
    };
    Some(finding(state, checkpoint, said, repair))
}

fn finding(
    state: &DatasetState,
    checkpoint: &Checkpoint,
    (severity, message): (Severity, String),
    repair: Repair,
) -> Finding {
    Finding {
        invariant: "LOG-10",
        severity,
        dataset: Some(state.dataset().clone()),
        subject: checkpoint.path.to_string(),
        message,
        repair,
    }
}

#[cfg(test)]
mod tests;
