//! Requirements: what must hold at the moment of a commit, asked of the fold.

use std::fmt;

use crate::log::state::DatasetState;
use crate::name::{BatchLabel, ContentHash};
use crate::spec::{PartitionKey, PartitionState, Requirement};
use crate::time::BusinessDate;

/// A requirement that does not hold, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The requirement.
    pub requirement: Requirement,
    /// In words.
    pub reason: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl DatasetState {
    /// Whether the requirement holds now. `SchemaPublished` concerns the store: `commit` checks it.
    pub fn check(&self, requirement: &Requirement) -> Result<(), Unmet> {
        let reason = match requirement {
            Requirement::AttemptOpen { attempt } => self
                .abandoned
                .contains_key(attempt)
                .then(|| format!("attempt `{attempt}` was abandoned")),
            Requirement::InputAbsent { dt, content, batch } => {
                self.find_input(*dt, content, batch.as_ref())
            }
            Requirement::BatchAbsent { dt, batch } => {
                self.visible_labelled(*dt, batch).next().map(|(_, i)| {
                    format!(
                        "batch `{batch}` of {dt} was committed by record {}",
                        i.number
                    )
                })
            }
            Requirement::PartitionActive { partition } => self.not_active(partition),
            Requirement::DateUnchanged { dt, number } => {
                let changed = self.changed(*dt);
                (changed != *number)
                    .then(|| format!("{dt} of `{}` was changed by record {changed}", self.dataset))
            }
            Requirement::DateOpen { dt } => self
                .is_sealed(*dt)
                .then(|| format!("{dt} of `{}` is sealed", self.dataset)),
            Requirement::DateSealed { dt } => {
                (!self.is_sealed(*dt)).then(|| format!("{dt} of `{}` is not sealed", self.dataset))
            }
            Requirement::RejectsWaiting { dt, commit } => match self.find_rejects(*dt, commit) {
                None => Some(format!("commit `{commit}` kept no rejects of {dt}")),
                Some(kept) => kept.retried_by.map(|n| {
                    format!("rejects of commit `{commit}` were tried again by record {n}")
                }),
            },
            Requirement::SchemaPublished { .. } => None,
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(Unmet {
                requirement: requirement.clone(),
                reason,
            }),
        }
    }

    fn not_active(&self, key: &PartitionKey) -> Option<String> {
        if self.is_switching(key.dt) {
            return Some(format!("{} is switching to another revision", key.dt));
        }
        match self.partitions.get(key) {
            Some(p) if p.state == PartitionState::Active => None,
            Some(p) => Some(format!("{key} is {}", p.state)),
            None => {
                let active = self.active_revision(key.dt);
                (active != key.revision)
                    .then(|| format!("revision {active} of {} is active", key.dt))
            }
        }
    }

    fn find_input(
        &self,
        dt: BusinessDate,
        content: &ContentHash,
        batch: Option<&BatchLabel>,
    ) -> Option<String> {
        self.visible_with(dt, content)
            .find(|(_, i)| batch.is_none() || i.spec.batch.as_ref() == batch)
            .map(|(_, i)| {
                format!(
                    "input `{}` of {dt} was committed by record {}",
                    i.spec.name, i.number
                )
            })
    }
}
