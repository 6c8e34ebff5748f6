//! `queue prune`: rows and parts of closed runs go once the lake holds what was fetched; the others stay, and it says why.

use std::collections::BTreeSet;
use std::path::PathBuf;

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
    let mut pruning = Pruning {
        state_folder: project.root().join(STATE_FOLDER),
        queue,
        settings,
        red: args.red,
        answer: PruneAnswer {
            format: ANSWER_FORMAT,
            dry_run: args.dry_run,
            runs: Vec::new(),
            requests: 0,
            parts: 0,
            part_bytes: 0,
            kept: Vec::new(),
        },
    };
    if !args.dry_run {
        // Of a call that was killed.
        pruning.answer.requests += pruning.queue.end_prunes().await?;
    }
    let runs = pruning.queue.list_runs(source.as_ref(), u32::MAX / 2);
    let mut seen = BTreeSet::new();
    for run in runs.await? {
        if run.key.date >= before || seen.contains(&run.id) {
            continue;
        }
        let family = match pruning.queue.list_family(run.id).await {
            // Another call that prunes was faster.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            family => family?,
        };
        seen.extend(family.iter().map(|run| run.id));
        for kept in pruning.prune(&family).await? {
            globals
                .printer
                .warn(format!("the run `{}` stays: {}", kept.run, kept.reason));
            pruning.answer.kept.push(kept);
        }
    }
    tell_pruned(&pruning.answer, globals)?;
    Ok(Exit::Done)
}

/// A call, and what it did.
struct Pruning {
    queue: Queue,
    settings: Settings,
    state_folder: PathBuf,
    /// Runs that are red and that nobody accepted go, too.
    red: bool,
    answer: PruneAnswer,
}

impl Pruning {
    /// Deletes parts and rows of a family, all of it or nothing; the runs that stay.
    async fn prune(&mut self, family: &[RunRecord]) -> Result<Vec<KeptRun>> {
        let mut kept = Vec::new();
        for run in family {
            let reason = match find_need(run) {
                Some(reason) => Some(reason),
                None => self.find_doubt(run).await?,
            };
            kept.extend(reason.map(|reason| KeptRun {
                run: run.key.clone(),
                reason,
            }));
        }
        if kept.is_empty() && !self.red {
            kept.extend(self.find_red(family).await?);
        }
        if !kept.is_empty() {
            let because: Vec<RunKey> = kept.iter().map(|kept| kept.run.clone()).collect();
            let others = family.iter().filter(|run| !because.contains(&run.key));
            kept.extend(others.map(|run| KeptRun {
                run: run.key.clone(),
                reason: format!("it belongs to `{}`, which stays", because[0].run),
            }));
            return Ok(kept);
        }
        // Parts go before the rows: without its rows nobody would ask for them again.
        for run in family {
            kept.extend(self.release(run).await?);
        }
        if !kept.is_empty() {
            return Ok(kept);
        }
        self.delete(family).await?;
        Ok(Vec::new())
    }

    /// Why a closed run is not known to be in the lake.
    async fn find_doubt(&self, run: &RunRecord) -> Result<Option<String>> {
        Ok(match self.parts_of(run, true).await? {
            PartsOutcome::Kept(reason) => Some(with_way(run, reason)?),
            PartsOutcome::None | PartsOutcome::Released { .. } => None,
        })
    }

    /// That the family is red, has something to try again, and that nobody took it as it is.
    async fn find_red(&self, family: &[RunRecord]) -> Result<Option<KeptRun>> {
        let Some(last) = family.last().filter(|run| !is_sample(run)) else {
            return Ok(None);
        };
        if closing_of(last)?.is_good() || self.count_requests(last).await? == 0 {
            return Ok(None);
        }
        let RunKey { source, date, run } = &last.key;
        let of = format!("{source} --date {date} --run {run}");
        Ok(Some(KeptRun {
            run: last.key.clone(),
            reason: format!(
                "it is red, and nobody accepted it: `lakebed queue retry {of} --as NAME` tries again what died, `lakebed crawl close {of} --accept --note TEXT` takes it as it is, `--red` prunes it all the same"
            ),
        }))
    }

    async fn count_requests(&self, run: &RunRecord) -> Result<u64> {
        let lanes = self.queue.list_progress(run.id).await?;
        let count_of = |lane: &LaneProgress| lane.enqueued.unsigned_abs();
        Ok(lanes.iter().map(count_of).sum())
    }

    /// The parts of the run: what would become of them, or, without `dry_run`, what became.
    async fn parts_of(&self, run: &RunRecord, dry_run: bool) -> Result<PartsOutcome> {
        let parts = parts_folder(&self.state_folder, &run.key);
        // The pack of a sample is no part of a day, and lies outside the lake.
        let needs_pack = self.count_requests(run).await? > 0 && !is_sample(run);
        if !needs_pack && !parts.is_dir() {
            return Ok(PartsOutcome::None);
        }
        let options = ReleaseOptions {
            dry_run,
            needs_pack,
        };
        let lake = open_lake(&self.settings).await?;
        release_parts(&lake, &parts, &run.key, options).await
    }

    async fn release(&mut self, run: &RunRecord) -> Result<Option<KeptRun>> {
        match self.parts_of(run, self.answer.dry_run).await? {
            PartsOutcome::None => {}
            PartsOutcome::Released { parts, bytes } => {
                self.answer.parts += parts;
                self.answer.part_bytes += bytes;
            }
            // It came meanwhile.
            PartsOutcome::Kept(reason) => {
                let run = run.key.clone();
                return Ok(Some(KeptRun { run, reason }));
            }
        }
        Ok(None)
    }

    async fn delete(&mut self, family: &[RunRecord]) -> Result<()> {
        if self.answer.dry_run {
            for run in family {
                self.answer.requests += self.count_requests(run).await?;
            }
        } else {
            let ids: Vec<i64> = family.iter().map(|run| run.id).collect();
            match self.queue.prune_family(&ids).await {
                Ok(requests) => self.answer.requests += requests,
                // Another call that prunes was faster.
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        self.answer
            .runs
            .extend(family.iter().map(|run| run.key.clone()));
        Ok(())
    }
}

/// Why the run is still needed; `None` where it is over.
fn find_need(run: &RunRecord) -> Option<String> {
    let RunKey {
        source,
        date,
        run: name,
    } = &run.key;
    let state = run.state.as_str();
    let close = format!("`lakebed crawl close {source} --date {date} --run {name}");
    match run.state {
        RunState::Closed => None,
        RunState::Seeding => Some(format!(
            "it is {state}: `lakebed crawl {source} --date {date} --run {name}` seeds it, {close} --give-up` ends it"
        )),
        RunState::Open | RunState::Sealed => {
            Some(format!("it is {state}: close it first, {close}`"))
        }
    }
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
