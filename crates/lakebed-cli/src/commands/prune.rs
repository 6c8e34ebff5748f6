//! `queue prune`: rows and parts of closed runs go once the lake holds what was fetched; the others stay, and it says why.

use std::path::Path;

use lakebed::config::Settings;
use lakebed::crawl::{is_sample, parts_folder};
use lakebed::name::SourceName;
use lakebed::pack::{PartsOutcome, ReleaseOptions, release_parts};
use lakebed::queue::{LaneProgress, Queue, QueueOptions, RunRecord, RunState, closing_of};
use lakebed::spec::RunKey;
use lakebed::time::BusinessDate;
use lakebed::{ErrorKind, Result};
use serde::Serialize;

use crate::args::{QueuePruneArgs, TextFormat};
use crate::commands::queue::{STATE_FOLDER, open_queue};
use crate::context::{Globals, open_lake};
use crate::exit::Exit;
use crate::table::{count, size};

/// Version of the JSON object of this file.
const ANSWER_FORMAT: u32 = 1;

#[derive(Serialize)]
struct PruneAnswer {
    format: u32,
    dry_run: bool,
    runs: Vec<RunKey>,
    requests: u64,
    parts: u64,
    part_bytes: u64,
    kept: Vec<KeptRun>,
}

/// A run that stays, and why.
#[derive(Serialize)]
struct KeptRun {
    #[serde(flatten)]
    run: RunKey,
    reason: String,
}

/// `lakebed queue prune`
pub(crate) async fn prune(args: &QueuePruneArgs, globals: &Globals<'_>) -> Result<Exit> {
    let before: BusinessDate = args.before.parse()?;
    let source: Option<SourceName> = args.source.as_deref().map(str::parse).transpose()?;
    let (project, settings, queue) = open_queue(globals, QueueOptions::default()).await?;
    let state_folder = project.root().join(STATE_FOLDER);
    let mut answer = PruneAnswer {
        format: ANSWER_FORMAT,
        dry_run: args.dry_run,
        runs: Vec::new(),
        requests: 0,
        parts: 0,
        part_bytes: 0,
        kept: Vec::new(),
    };
    for run in queue.list_runs(source.as_ref(), u32::MAX / 2).await? {
        if run.key.date >= before {
            continue;
        }
        let pruned = async {
            match find_need(&queue, &run).await? {
                Some(reason) => Ok(Some(reason)),
                None => prune_run(&queue, &run, (&state_folder, &settings), &mut answer).await,
            }
        };
        let reason = match pruned.await {
            // Another call that prunes was faster.
            Err(e)
                if e.kind() == ErrorKind::NotFound && queue.find_run(&run.key).await?.is_none() =>
            {
                continue;
            }
            reason => reason?,
        };
        if let Some(reason) = reason {
            globals
                .printer
                .warn(format!("the run `{}` stays: {reason}", run.key));
            let run = run.key;
            answer.kept.push(KeptRun { run, reason });
        }
    }
    tell_pruned(&answer, globals)?;
    Ok(Exit::Done)
}

/// Why the run is still needed; `None` where it is over.
async fn find_need(queue: &Queue, run: &RunRecord) -> Result<Option<String>> {
    let (
        state,
        RunKey {
            source,
            date,
            run: name,
        },
    ) = (run.state.as_str(), &run.key);
    let close = format!("`lakebed crawl close {source} --date {date} --run {name}");
    match run.state {
        RunState::Closed => {}
        RunState::Seeding => {
            return Ok(Some(format!(
                "it is {state}: `lakebed crawl {source} --date {date} --run {name}` seeds it, {close} --give-up` ends it"
            )));
        }
        RunState::Open | RunState::Sealed => {
            return Ok(Some(format!("it is {state}: close it first, {close}`")));
        }
    }
    let open = queue.find_open_of_family(run.id).await?;
    Ok(open.map(|open| {
        format!(
            "`{}`, which tries again what died in it, is {}",
            open.key.run,
            open.state.as_str()
        )
    }))
}

/// Deletes the parts and rows of a run that is over, or says why they stay.
async fn prune_run(
    queue: &Queue,
    run: &RunRecord,
    (state_folder, settings): (&Path, &Settings),
    answer: &mut PruneAnswer,
) -> Result<Option<String>> {
    let parts = parts_folder(state_folder, &run.key);
    let lanes = queue.list_progress(run.id).await?;
    let count_of = |lane: &LaneProgress| lane.enqueued.unsigned_abs();
    let enqueued = lanes.iter().map(count_of).sum::<u64>();
    // The pack of a sample is no part of a day, and lies outside the lake.
    let needs_pack = enqueued > 0 && !is_sample(run);
    let options = ReleaseOptions {
        dry_run: answer.dry_run,
        needs_pack,
    };
    // Parts go before the rows: without its rows nobody would ask for them again.
    if needs_pack || parts.is_dir() {
        let lake = open_lake(settings).await?;
        match release_parts(&lake, &parts, &run.key, options).await? {
            PartsOutcome::None => {}
            PartsOutcome::Released { parts, bytes } => {
                answer.parts += parts;
                answer.part_bytes += bytes;
            }
            PartsOutcome::Kept(reason) => return Ok(Some(with_way(run, reason)?)),
        }
    }
    answer.requests += match answer.dry_run {
        true => enqueued,
        false => queue.prune_run(run.id).await?,
    };
    answer.runs.push(run.key.clone());
    Ok(None)
}

/// What ends a run whose responses lie outside the lake.
fn with_way(run: &RunRecord, reason: String) -> Result<String> {
    if closing_of(run)?.lacks_pack().is_none() {
        return Ok(reason);
    }
    let RunKey { source, date, run } = &run.key;
    Ok(format!(
        "{reason}; `lakebed crawl close {source} --date {date} --run {run}` seals them once they are there, with `--lost` what is left of them"
    ))
}

fn tell_pruned(answer: &PruneAnswer, globals: &Globals<'_>) -> Result<()> {
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(answer),
        TextFormat::Text => {
            let verb = if answer.dry_run {
                "would delete"
            } else {
                "deleted"
            };
            let (runs, requests, parts) = (
                count(answer.runs.len() as u64, "run"),
                count(answer.requests, "request"),
                count(answer.parts, "part"),
            );
            globals.printer.line(format!(
                "{verb} {runs} with {requests}, {parts} of {}",
                size(answer.part_bytes)
            ))
        }
    }
}
