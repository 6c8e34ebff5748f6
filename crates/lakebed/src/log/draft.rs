//! A commit before it is put: what it does, and what must hold for that.

use crate::error::Result;
use crate::name::{AttemptId, CommitId};
use crate::spec::{Action, By, Operation, Requirement};
use crate::store::Lake;
use crate::time::unique_id;

/// A commit that was not put yet.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its unique id.
    pub commit: CommitId,
    /// What it does.
    pub operation: Operation,
    /// Who does it.
    pub by: By,
    /// The attempt whose staged files it commits.
    pub attempt: Option<AttemptId>,
    /// What must hold.
    pub requires: Vec<Requirement>,
    /// What changes.
    pub actions: Vec<Action>,
}

impl Draft {
    /// A draft with a fresh commit id and nothing in it.
    pub fn new(lake: &Lake, operation: Operation, by: By) -> Result<Self> {
        Ok(Self {
            commit: unique_id(lake.clock()).parse()?,
            operation,
            by,
            attempt: None,
            requires: Vec::new(),
            actions: Vec::new(),
        })
    }
}
