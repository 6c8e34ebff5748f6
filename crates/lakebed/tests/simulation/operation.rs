//! What an actor does: one command, with what it was asked for and what it answered.

use std::collections::BTreeMap;

use lakebed::catalog::{SqliteCatalog, rebuild, sync_all};
use lakebed::ingest::{IngestOutcome, IngestRequest};
use lakebed::log::{
    DatasetState, SealOutcome, SwitchOutcome, SwitchRequest, SwitchTarget, abandon, finish_moves,
    reopen, seal, switch,
};
use lakebed::registry::PublishOutcome;
use lakebed::store::Lake;
use lakebed::{ErrorKind, Result};

use crate::model::{Ingest, Switch, Target};
use crate::random::Random;
use crate::world::{CONTENTS, audit_and_repair, by, dataset_ref, publish, run_ingest};

/// The dates of a history.
pub(crate) const DATES: [&str; 2] = ["2026-05-20", "2026-05-21"];

/// A command.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Ingest(Ingest),
    Switch(Switch),
    Seal(String),
    Reopen(String),
    Publish(u32, String),
    Abandon(String),
    /// Opens the dataset as a reader does, with whatever state the actor has.
    Open,
    Sync,
    Rebuild,
    Repair,
}

/// What a command answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, as this record where it is one.
    Done(Option<u64>),
    AlreadySo,
    /// The answer is no.
    Refused(ErrorKind, String),
    /// It failed.
    Failed(ErrorKind, String),
}

/// Draws a command; `known` are the dates that hold something, `attempts` lie in the stage.
pub(crate) fn draw(random: &mut Random, known: &[String], attempts: &[String]) -> Operation {
    let dt = DATES[usize::from(random.chance(25))].to_owned();
    if !known.contains(&dt) && random.chance(80) {
        return Operation::Ingest(draw_ingest(random, dt, Target::Join));
    }
    match random.below(100) {
        0..34 => Operation::Ingest(draw_ingest(random, dt, Target::Join)),
        34..46 => Operation::Ingest(draw_ingest(random, dt, Target::Replace)),
        46..51 => Operation::Ingest(draw_ingest(random, dt, Target::Keep)),
        51..66 => Operation::Switch(Switch {
            dt,
            revision: random.chance(60).then(|| random.small(4)),
            drop_late: random.chance(50),
        }),
        66..75 => Operation::Seal(dt),
        75..81 => Operation::Reopen(dt),
        81..84 => {
            let note = if random.chance(50) { "one" } else { "other" };
            Operation::Publish(2 + random.small(2), note.to_owned())
        }
        84..86 if !attempts.is_empty() => Operation::Abandon(random.pick(attempts).clone()),
        84..91 => Operation::Open,
        91..94 => Operation::Sync,
        94..96 => Operation::Rebuild,
        _ => Operation::Repair,
    }
}

fn draw_ingest(random: &mut Random, dt: String, target: Target) -> Ingest {
    let mut contents = vec![random.below(CONTENTS)];
    while random.chance(30) && contents.len() < 4 {
        contents.push(random.below(CONTENTS));
    }
    let labels = ["0800", "0900"];
    Ingest {
        dt,
        contents,
        batch: random
            .chance(30)
            .then(|| (*random.pick(&labels)).to_owned()),
        version: random.chance(40).then(|| 1 + random.small(2)),
        target,
        quarantine: random.chance(70),
        late: random.chance(40),
        complete: target != Target::Keep && random.chance(15),
    }
}

/// Who runs a command, and with what.
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) dataset: &'static str,
    pub(crate) lake: Lake,
    pub(crate) catalog: SqliteCatalog,
    /// The folds that the actor holds, as old as they may be.
    pub(crate) states: BTreeMap<&'static str, DatasetState>,
    /// Of an ingest.
    pub(crate) request: Option<IngestRequest>,
}

/// Runs the command; gives the caller back with its folds.
pub(crate) async fn run(mut caller: Caller, operation: Operation) -> (Caller, Answer) {
    let answer = match try_run(&mut caller, &operation).await {
        Ok(answer) => answer,
        Err(error) => {
            let text = format!("{error}; hints {:?}", error.hints());
            match error.kind() {
                kind @ (ErrorKind::PreconditionFailed | ErrorKind::NotFound) => {
                    Answer::Refused(kind, text)
                }
                kind => Answer::Failed(kind, text),
            }
        }
    };
    (caller, answer)
}

async fn try_run(caller: &mut Caller, operation: &Operation) -> Result<Answer> {
    let (lake, catalog, user) = (&caller.lake, &caller.catalog, caller.user.as_str());
    let dataset = dataset_ref(caller.dataset);
    let fresh = || DatasetState::empty(dataset.clone());
    let state = caller.states.entry(caller.dataset).or_insert_with(fresh);
    let sealing = |outcome| match outcome {
        SealOutcome::Done { number } => Answer::Done(Some(number)),
        SealOutcome::AlreadySo { .. } => Answer::AlreadySo,
    };
    match operation {
        Operation::Ingest(_) => {
            let request = caller.request.as_ref().unwrap();
            let report = run_ingest(lake, catalog, request).await?;
            let refusal = report.refusal().map(|e| e.to_string());
            Ok(match report.outcome {
                IngestOutcome::Committed => Answer::Done(report.log_position),
                IngestOutcome::AlreadyThere => match report.log_position {
                    Some(number) => Answer::Done(Some(number)),
                    None => Answer::AlreadySo,
                },
                IngestOutcome::Refused => {
                    Answer::Refused(ErrorKind::PreconditionFailed, refusal.unwrap())
                }
            })
        }
        Operation::Switch(call) => {
            let request = SwitchRequest {
                dt: call.dt.parse()?,
                target: call
                    .revision
                    .map_or(SwitchTarget::Previous, SwitchTarget::Revision),
                drop_late: call.drop_late,
                by: by(user),
            };
            Ok(match switch(lake, state, &request).await? {
                SwitchOutcome::Done { number, .. } => Answer::Done(Some(number)),
                SwitchOutcome::AlreadySo { .. } => Answer::AlreadySo,
            })
        }
        Operation::Seal(dt) => Ok(sealing(seal(lake, state, dt.parse()?, by(user)).await?)),
        Operation::Reopen(dt) => Ok(sealing(reopen(lake, state, dt.parse()?, by(user)).await?)),
        Operation::Abandon(attempt) => {
            let outcome = abandon(lake, state, &attempt.parse()?, by(user)).await?;
            Ok(sealing(outcome))
        }
        Operation::Publish(version, note) => {
            Ok(match publish(lake, caller.dataset, *version, note).await? {
                PublishOutcome::Published { .. } => Answer::Done(None),
                PublishOutcome::AlreadyPublished { .. } => Answer::AlreadySo,
                PublishOutcome::Taken { .. } => {
                    Answer::Refused(ErrorKind::AlreadyExists, "taken".into())
                }
            })
        }
        Operation::Open => {
            if state.position().number == 0 {
                state.catch_up(lake).await?;
            }
            finish_moves(lake, state).await?;
            Ok(Answer::Done(None))
        }
        Operation::Sync => {
            sync_all(lake, catalog).await?;
            Ok(Answer::Done(None))
        }
        Operation::Rebuild => {
            rebuild(lake, catalog, true).await?;
            Ok(Answer::Done(None))
        }
        Operation::Repair => {
            audit_and_repair(lake, catalog, user).await?;
            Ok(Answer::Done(None))
        }
    }
}
