//! Corrections: a call that writes the next revision of its date instead of adding to the active one.
//!
//! The whole date is replaced, whatever schema versions its rows had: a correction by new data alone
//! and one under a newer schema version are the same thing. ING-8: the record that begins the revision
//! takes the active one out of sight, so readers of the log see the one or the other, never both.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::ingest::call::{Attempt, Call, Known, Planned};
use crate::ingest::read::ChunkReader;
use crate::ingest::request::{ReplacedRevision, RevisionTarget, SkippedInput};
use crate::log::{DatasetState, Draft, superseding};
use crate::name::{BatchLabel, ContentHash};
use crate::spec::{Action, LoadKind, Operation, PartitionState, Requirement};

/// All that tells one stored input from another.
type Identity = (ContentHash, Option<BatchLabel>, u32, String, bool);

impl Call<'_> {
    /// Only a date that shows something can be corrected.
    pub(super) fn check_correctable(&self, state: &DatasetState) -> Result<()> {
        let dt = self.request.dt;
        if state.visible_of(dt).next().is_some() {
            return Ok(());
        }
        let dataset = &self.request.dataset;
        Err(Error::precondition(format!(
            "there is nothing of {dt} in `{dataset}` to correct"
        ))
        .hint(format!(
            "store it with `lakebed ingest {dataset} FILES... --date {dt}`"
        )))
    }

    /// The draft of a correction, before its files and inputs.
    pub(super) fn correction(&self, state: &DatasetState, attempt: &Attempt) -> Result<Draft> {
        let dt = self.request.dt;
        let mut draft = Draft::new(self.lake, Operation::Correct, self.request.by.clone())?;
        draft.requires = vec![
            Requirement::AttemptOpen {
                attempt: attempt.id.clone(),
            },
            Requirement::DateUnchanged {
                dt,
                number: state.changed(dt),
            },
        ];
        draft.requires.extend(self.schema_requirement());
        let replaces = self.request.revision == RevisionTarget::Replace;
        if replaces {
            draft.actions = superseding(state, dt);
        }
        let begin = if replaces {
            PartitionState::Switching
        } else {
            PartitionState::Superseded
        };
        draft.actions.push(Action::AddPartition {
            partition: attempt.key,
            state: begin,
        });
        if replaces && !self.lake.store().capabilities().rename {
            // Its files lie at their final keys already: there is nothing to move.
            draft.actions.push(Action::SetState {
                partition: attempt.key,
                from: PartitionState::Switching,
                to: PartitionState::Active,
            });
        }
        if replaces && attempt.sealed && !self.request.complete {
            // It stays sealed, by this record.
            draft.actions.push(Action::Complete { dt });
        }
        Ok(draft)
    }

    /// Whether a revision holds exactly these inputs already, read in this way: then nothing is to be
    /// written. Answers the inputs as skipped.
    pub(super) fn already_corrected(
        &self,
        state: &DatasetState,
        planned: &[Planned],
        known: &Known,
    ) -> Result<Option<Vec<SkippedInput>>> {
        let dt = self.request.dt;
        let revision = match self.request.revision {
            RevisionTarget::Join | RevisionTarget::JoinUnchanged(_) | RevisionTarget::Replace => {
                state.active_revision(dt)
            }
            RevisionTarget::Keep => state.next_revision(dt) - 1,
        };
        let mut stored: BTreeSet<Identity> = BTreeSet::new();
        let mut number = 0;
        let partitions = state.partitions_of(dt);
        for (key, partition) in partitions.filter(|(k, _)| k.revision == revision) {
            for input in &partition.inputs {
                let spec = &input.spec;
                let full = spec.load == LoadKind::Full;
                let (content, batch) = (spec.content.clone(), spec.batch.clone());
                stored.insert((content, batch, key.schema_version, spec.rules.clone(), full));
                number = input.number;
            }
        }
        let mut skipped = Vec::new();
        for input in planned {
            let name = input.source.display_name().to_owned();
            let Some((content, form)) = known.get(&name) else {
                return Ok(None);
            };
            let form = match form {
                Some(form) => *form,
                None => {
                    let options = self.read_options(&input.source)?;
                    ChunkReader::open(&input.source, 0, &options)?.form()
                }
            };
            let identity = (
                content.clone(),
                self.batch_of(&input.source).cloned(),
                self.version,
                self.rules_of(&input.source, form)?,
                self.request.load == LoadKind::Full,
            );
            if !stored.remove(&identity) {
                return Ok(None);
            }
            skipped.push(SkippedInput {
                name,
                content: content.clone(),
                reason: format!("revision {revision} of {dt} holds exactly these inputs"),
                stored_by: Some(number),
            });
        }
        Ok(stored.is_empty().then_some(skipped))
    }

    /// What a correction takes out of sight.
    pub(super) fn replaced(&self, state: &DatasetState) -> Option<ReplacedRevision> {
        if self.request.revision != RevisionTarget::Replace {
            return None;
        }
        let dt = self.request.dt;
        let mut replaced = ReplacedRevision {
            revision: state.active_revision(dt),
            schema_versions: Vec::new(),
            files: 0,
            rows: 0,
            inputs: Vec::new(),
        };
        for (key, partition) in state.visible_of(dt) {
            replaced.schema_versions.push(key.schema_version);
            replaced.files += partition.files.len() as u64;
            replaced.rows += partition.files.values().map(|f| f.spec.rows).sum::<u64>();
            let names = partition.inputs.iter().map(|i| i.spec.name.clone());
            replaced.inputs.extend(names);
        }
        Some(replaced)
    }
}

#[cfg(test)]
mod tests;
