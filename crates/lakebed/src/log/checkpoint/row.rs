//! A fold as rows: one row per record, date, revision, partition, file, input, and so on.
//!
//! ```text
//! record      number commit attempt
//! joined      number attempt
//! date        dt number=changed revision=active sealed at
//! revision    dt revision number base
//! rejects     dt number name rows bytes hash more=retried_by (commit attempt)
//! partition   dt schema_version revision number=since state more=superseded_by
//! file        dt schema_version revision number name format provenance rows bytes hash more=bounds,parents (attempt)
//! input       dt schema_version revision number name rules batch load rows rejected bytes hash more=derived_from (commit)
//! abandoned   number attempt
//! erased      hash
//! ```
//!
//! Kinds come in this order, and within a kind in the order of the fold, so that equal folds have
//! equal bytes. `commit` and `attempt` in brackets stand there only where they are not those of the
//! record `number`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::log::state::{DatasetState, FileState, InputState};
use crate::name::{AttemptId, CommitId};
use crate::spec::{ParentSpec, PartitionKey};
use crate::time::{BusinessDate, Instant};

/// A row; every kind fills its own part. Borrowed from the fold, or from a read table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row<'a> {
    pub(super) kind: &'a str,
    pub(super) dt: Option<BusinessDate>,
    pub(super) schema_version: Option<u64>,
    pub(super) revision: Option<u64>,
    pub(super) number: Option<u64>,
    pub(super) base: Option<u64>,
    pub(super) sealed: Option<u64>,
    pub(super) at: Option<Instant>,
    pub(super) name: Option<&'a str>,
    pub(super) state: Option<&'a str>,
    pub(super) format: Option<&'a str>,
    pub(super) provenance: Option<&'a str>,
    pub(super) load: Option<&'a str>,
    pub(super) rows: Option<u64>,
    pub(super) rejected: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) hash: Option<[u8; 32]>,
    pub(super) rules: Option<&'a str>,
    pub(super) batch: Option<&'a str>,
    pub(super) commit: Option<&'a str>,
    pub(super) attempt: Option<&'a str>,
    pub(super) more: Option<&'a str>,
}

/// What few files and inputs have.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct More {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) bounds: BTreeMap<String, [String; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parents: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) superseded_by: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retried_by: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) derived_from: Vec<ParentSpec>,
}

impl More {
    /// As JSON; `None` = nothing to say.
    fn text(&self) -> Result<Option<String>> {
        if *self == Self::default() {
            return Ok(None);
        }
        serde_json::to_string(self)
            .map(Some)
            .map_err(|e| Error::internal("write a checkpoint row as JSON").caused_by(e))
    }
}

/// Hands every row of the fold to `put`.
pub(super) fn each_row(
    state: &DatasetState,
    put: &mut dyn FnMut(Row<'_>) -> Result<()>,
) -> Result<()> {
    record_rows(state, put)?;
    date_rows(state, put)?;
    partition_rows(state, put)?;
    for (attempt, number) in &state.abandoned {
        put(Row {
            kind: "abandoned",
            number: Some(*number),
            attempt: Some(attempt.as_str()),
            ..Row::default()
        })?;
    }
    for content in &state.erased {
        put(Row {
            kind: "erased",
            hash: Some(content.to_bytes()),
            ..Row::default()
        })?;
    }
    Ok(())
}

fn record_rows(state: &DatasetState, put: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()> {
    let mut records: BTreeMap<u64, (Option<&str>, Option<&str>)> = BTreeMap::new();
    for (commit, number) in &state.commits {
        records.entry(*number).or_default().0 = Some(commit.as_str());
    }
    for (attempt, number) in &state.attempts {
        records.entry(*number).or_default().1 = Some(attempt.as_str());
    }
    for (number, (commit, attempt)) in records {
        put(Row {
            kind: "record",
            number: Some(number),
            commit,
            attempt,
            ..Row::default()
        })?;
    }
    for (attempt, number) in &state.joined {
        put(Row {
            kind: "joined",
            number: Some(*number),
            attempt: Some(attempt.as_str()),
            ..Row::default()
        })?;
    }
    Ok(())
}

fn date_rows(state: &DatasetState, put: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()> {
    for (dt, date) in &state.dates {
        put(Row {
            kind: "date",
            dt: Some(*dt),
            number: Some(date.changed),
            revision: Some(u64::from(date.active)),
            sealed: date.sealed.map(|(number, _)| number),
            at: date.sealed.map(|(_, at)| at),
            ..Row::default()
        })?;
    }
    for (dt, date) in &state.dates {
        for (revision, began) in &date.revisions {
            put(Row {
                kind: "revision",
                dt: Some(*dt),
                revision: Some(u64::from(*revision)),
                number: Some(began.number),
                base: Some(u64::from(began.base)),
                ..Row::default()
            })?;
        }
    }
    for (dt, date) in &state.dates {
        for rejects in &date.rejects {
            let more = More {
                retried_by: rejects.retried_by,
                ..More::default()
            };
            put(Row {
                more: more.text()?.as_deref(),
                kind: "rejects",
                dt: Some(*dt),
                number: Some(rejects.number),
                name: Some(&rejects.spec.name),
                rows: Some(rejects.spec.records),
                bytes: Some(rejects.spec.bytes),
                hash: Some(rejects.spec.blake3.to_bytes()),
                commit: odd_commit(state, &rejects.commit, rejects.number),
                attempt: odd_attempt(state, rejects.attempt.as_ref(), rejects.number),
                ..Row::default()
            })?;
        }
    }
    Ok(())
}

fn partition_rows(state: &DatasetState, put: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()> {
    for (key, partition) in &state.partitions {
        let more = More {
            superseded_by: partition.superseded_by.clone(),
            ..More::default()
        };
        put(Row {
            number: Some(partition.since),
            state: Some(partition.state.as_str()),
            more: more.text()?.as_deref(),
            ..keyed("partition", key)
        })?;
    }
    for (key, partition) in &state.partitions {
        for file in partition.files.values() {
            put_file(state, key, file, put)?;
        }
    }
    for (key, partition) in &state.partitions {
        for input in &partition.inputs {
            put_input(state, key, input, put)?;
        }
    }
    Ok(())
}

fn put_file(
    state: &DatasetState,
    key: &PartitionKey,
    file: &FileState,
    put: &mut dyn FnMut(Row<'_>) -> Result<()>,
) -> Result<()> {
    let spec = &file.spec;
    let more = if spec.bounds.is_empty() && spec.parents.is_empty() {
        None
    } else {
        More {
            bounds: spec.bounds.clone(),
            parents: spec.parents.clone(),
            ..More::default()
        }
        .text()?
    };
    put(Row {
        number: Some(file.number),
        name: Some(&spec.name),
        format: Some(spec.format.as_str()),
        provenance: Some(spec.provenance.as_str()),
        rows: Some(spec.rows),
        bytes: Some(spec.bytes),
        hash: Some(spec.blake3.to_bytes()),
        attempt: odd_attempt(state, file.attempt.as_ref(), file.number),
        more: more.as_deref(),
        ..keyed("file", key)
    })
}

fn put_input(
    state: &DatasetState,
    key: &PartitionKey,
    input: &InputState,
    put: &mut dyn FnMut(Row<'_>) -> Result<()>,
) -> Result<()> {
    let spec = &input.spec;
    let more = match spec.parents.is_empty() {
        true => None,
        false => More {
            derived_from: spec.parents.clone(),
            ..More::default()
        }
        .text()?,
    };
    put(Row {
        more: more.as_deref(),
        number: Some(input.number),
        name: Some(&spec.name),
        rules: Some(&spec.rules),
        batch: spec.batch.as_ref().map(|b| b.as_str()),
        load: Some(spec.load.as_str()),
        rows: Some(spec.rows),
        rejected: Some(spec.rejected),
        bytes: Some(spec.bytes),
        hash: Some(spec.content.to_bytes()),
        commit: odd_commit(state, &input.commit, input.number),
        ..keyed("input", key)
    })
}

fn keyed<'a>(kind: &'a str, key: &PartitionKey) -> Row<'a> {
    Row {
        kind,
        dt: Some(key.dt),
        schema_version: Some(u64::from(key.schema_version)),
        revision: Some(u64::from(key.revision)),
        ..Row::default()
    }
}

/// The commit where it is not the one that the row of record `number` says.
fn odd_commit<'a>(state: &DatasetState, commit: &'a CommitId, number: u64) -> Option<&'a str> {
    (state.commits.get(commit) != Some(&number)).then(|| commit.as_str())
}

fn odd_attempt<'a>(
    state: &DatasetState,
    attempt: Option<&'a AttemptId>,
    number: u64,
) -> Option<&'a str> {
    let attempt = attempt?;
    (state.attempts.get(attempt) != Some(&number)).then(|| attempt.as_str())
}
