//! The one way a record is put: check, put if absent, else rebase and check again.
//!
//! LOG-5: a record is put only when every requirement holds over the fold of all records before it.
//! LOG-12: a dataset's files are all of one format; schema version 0 is that of JSON lines, in the raw layer
//! that of packs and their indexes.
//! LOG-6: a commit happens once, however often its call is repeated: its id is looked up first, and
//! a put that lost its answer is recognised by reading the record back. An append that another call's
//! record carries is known by its attempt.

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::check::Unmet;
use crate::log::checkpoint;
use crate::log::draft::Draft;
use crate::log::group::{Turn, Turns, Waiting};
use crate::log::read::{LoggedRecord, read_record};
use crate::log::state::DatasetState;
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{
    Action, FileFormat, LogPosition, RECORD_FORMAT, Record, Requirement, min_reader,
};
use crate::store::{Lake, PutOutcome, log_record_path, schema_path};

/// A record with its place, as the caller of a commit gets it back.
pub type AppendedRecord = LoggedRecord;

/// Answer of [`commit`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CommitOutcome {
    /// Put by this call.
    Committed(AppendedRecord),
    /// The log held this commit id before.
    AlreadyThere(AppendedRecord),
    /// A requirement does not hold; nothing was put.
    Conflict(Unmet),
}

/// Puts the draft as the next record; `state` is brought up to the log's end.
///
/// Calls over clones of one lake take turns, and an append may be carried by another call's record.
pub async fn commit(lake: &Lake, state: &mut DatasetState, draft: &Draft) -> Result<CommitOutcome> {
    let turns = Turns::of(lake, state.dataset());
    let _turn = match turns.wait(draft).await {
        Turn::Carried(logged) => {
            match logged.record.number == state.position().number + 1 {
                true => state.apply(&logged)?,
                false => {
                    state.catch_up(lake).await?;
                }
            }
            return Ok(CommitOutcome::Committed(*logged));
        }
        mine @ Turn::Mine(_) => mine,
    };
    let mut along = Vec::new();
    let outcome = put(lake, state, draft, (&turns, &mut along)).await;
    // Whoever was not carried has a turn of its own.
    turns.put_back(along);
    outcome
}

/// Puts the draft in a turn of its own, and with it those that wait, which are left in `along` where
/// they were not carried.
async fn put(
    lake: &Lake,
    state: &mut DatasetState,
    draft: &Draft,
    (turns, along): (&Turns, &mut Vec<Waiting>),
) -> Result<CommitOutcome> {
    loop {
        state.catch_up(lake).await?;
        if let Some(number) = find_draft(state, draft) {
            let logged = read_record(lake, state.dataset(), number)
                .await?
                .ok_or_else(|| Error::corrupt(format!("record {number} vanished from the log")))?;
            return Ok(CommitOutcome::AlreadyThere(logged));
        }
        if let Some(unmet) = first_unmet(lake, state, &draft.requires).await? {
            return Ok(CommitOutcome::Conflict(unmet));
        }
        check_format(state, draft)?;
        turns.put_back(std::mem::take(along));
        *along = turns.take(draft);
        let mut carried = Vec::new();
        for one in std::mem::take(along) {
            let own = one.draft.requires.iter();
            let own = own.filter(|r| !draft.requires.contains(r)).cloned();
            let own: Vec<Requirement> = own.collect();
            let waits = find_draft(state, &one.draft).is_some()
                || first_unmet(lake, state, &own).await?.is_some();
            match waits {
                true => turns.put_back(vec![one]),
                false => carried.push(one),
            }
        }
        *along = carried;
        let logged = build(lake, state, draft, along);
        let bytes = encode(&logged)?;
        let logged = LoggedRecord {
            hash: ContentHash::of(&bytes),
            record: logged,
        };
        let path = log_record_path(state.dataset(), logged.record.number);
        match lake.store().put_once(&path, &bytes).await? {
            PutOutcome::Created => {
                kill_point("log.committed");
                state.apply(&logged)?;
                along.drain(..).for_each(|one| one.answer(&logged));
                // The commit stands; whoever comes to the next turn tries again.
                drop(checkpoint::keep_up(lake, state).await);
                return Ok(CommitOutcome::Committed(logged));
            }
            // Somebody took the number, or an earlier try of ours did: the next round finds out.
            PutOutcome::Exists => {}
        }
    }
}

/// The record that holds the draft: its own, or one that carried it.
fn find_draft(state: &DatasetState, draft: &Draft) -> Option<u64> {
    let attempt = draft.attempt.as_ref();
    let carried = attempt.and_then(|attempt| state.committed_attempt(attempt));
    state.find_commit(&draft.commit).or(carried)
}

/// Whether it leaves the dataset with files of one format alone. It is no requirement, since it holds whatever a draft asks for.
fn check_format(state: &DatasetState, draft: &Draft) -> Result<()> {
    for action in &draft.actions {
        let Action::AddFile { partition, file } = action else {
            continue;
        };
        let wanted = FileFormat::of_version(state.dataset().layer, partition.schema_version);
        if !file.format.belongs_to(wanted) {
            let format = file.format.as_str();
            return Err(Error::internal(format!(
                "a `{format}` file for {partition}"
            )));
        }
        if let Some(held) = state.file_format()
            && held != wanted
        {
            return Err(other_format(state.dataset(), wanted, held));
        }
    }
    Ok(())
}

/// The error for a person who would mix two formats in one dataset.
#[must_use]
pub fn other_format(dataset: &DatasetRef, wanted: FileFormat, held: FileFormat) -> Error {
    let (wanted, held) = (wanted.as_str(), held.as_str());
    Error::precondition(format!(
        "`{dataset}` holds `{held}` files, so it takes no `{wanted}` files"
    ))
    .with("invariant", "LOG-12")
    .hint("a dataset is wholly tables, wholly JSON lines or wholly packs: take a dataset of another name")
}

async fn first_unmet(
    lake: &Lake,
    state: &DatasetState,
    requires: &[Requirement],
) -> Result<Option<Unmet>> {
    for requirement in requires {
        if let Err(unmet) = state.check(requirement) {
            return Ok(Some(unmet));
        }
        if let Requirement::SchemaPublished { version, hash } = requirement {
            let path = schema_path(state.dataset(), *version);
            let found = lake.store().find(&path).await?.map(|b| ContentHash::of(&b));
            if found.as_ref() != Some(hash) {
                let what = if found.is_some() {
                    "has changed"
                } else {
                    "is not published"
                };
                let reason = format!("schema version {version} of `{}` {what}", state.dataset());
                return Ok(Some(Unmet {
                    requirement: requirement.clone(),
                    reason,
                }));
            }
        }
    }
    Ok(None)
}

fn build(lake: &Lake, state: &DatasetState, draft: &Draft, along: &[Waiting]) -> Record {
    let LogPosition { number, hash } = state.position().clone();
    let (mut requires, mut actions) = (draft.requires.clone(), draft.actions.clone());
    let mut joined = Vec::new();
    for one in along {
        for requirement in &one.draft.requires {
            if !requires.contains(requirement) {
                requires.push(requirement.clone());
            }
        }
        actions.extend(one.draft.actions.iter().cloned());
        joined.push(one.joined());
    }
    Record {
        format: RECORD_FORMAT,
        min_reader: min_reader(&actions, &joined),
        lake: lake.id().clone(),
        dataset: state.dataset().clone(),
        number: number + 1,
        previous: hash,
        commit: draft.commit.clone(),
        at: lake.clock().now().after(state.last_at()),
        operation: draft.operation,
        by: draft.by.clone(),
        attempt: draft.attempt.clone(),
        requires,
        actions,
        joined,
    }
}

fn encode(record: &Record) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(record)
        .map_err(|e| Error::internal("write the log record as JSON").caused_by(e))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The error for a person whose commit met a conflict.
#[must_use]
pub fn refusal(unmet: &Unmet) -> Error {
    let error = Error::precondition(unmet.reason.clone());
    match &unmet.requirement {
        Requirement::DateOpen { dt } => error.hint(format!(
            "add late records with `ingest --late`, or open the date with `lakebed reopen DATASET --date {dt}`"
        )),
        Requirement::BatchAbsent { .. } => error.hint("a batch label stands for one set of inputs; choose another label"),
        Requirement::SchemaPublished { version, .. } => {
            error.hint(format!("publish it first: `lakebed schema publish DATASET {version}`"))
        }
        Requirement::DateUnchanged { .. } => error.hint("look at what changed, then call again: `lakebed log DATASET`"),
        Requirement::PartitionActive { .. } => error.hint("wait until the correction is finished, then call again"),
        Requirement::AttemptOpen { .. } => {
            error.hint("a repair gave this attempt up while it slept; call again, nothing was written")
        }
        Requirement::InputAbsent { .. } => error.hint("another call stored it meanwhile; call again to see"),
        Requirement::DateSealed { .. } => error.hint("another call opened the date meanwhile; call again"),
        Requirement::RejectsWaiting { .. } => {
            error.hint("`lakebed rejects DATASET --date D` lists what is still rejected, and the commits that keep it")
        }
    }
}
