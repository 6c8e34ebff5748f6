//! Flows as they run: of each source one date after the other, several sources at once.
//!
//! ```text
//! turn of the date -> for each stage in order: judge -> [see inputs -> process -> see outputs -> stamp] -> end of turn
//! ```
//! FLW-6: a stage is stamped only after its process ended well and what it wrote is durable, with the inputs that were
//! there before it began: what came in meanwhile makes it outdated.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::config::StageKind;
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::flow::graph::{Graph, Program, Stage};
use crate::flow::judge::{Judge, Standing, files_of};
use crate::flow::place::{
    StageFailure, StageTry, log_path, progress_path, read_progress, stamp_path,
};
use crate::flow::process::{Call, End, kill, last_lines, start, wait, warnings};
use crate::flow::report::{DateReport, FLOW_REPORT_FORMAT, FlowReport, StageOutcome, StageReport};
use crate::flow::turn::{self, Turn};
use crate::name::FlowStageName;
use crate::queue::Queue;
use crate::spec::{STAMP_FORMAT, StampFile, StampScope, StampSpec};
use crate::store::Lake;

/// How often it is looked how far a stage is.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);

/// What flows work with.
#[derive(Debug, Clone)]
pub struct FlowContext {
    /// The lake.
    pub lake: Lake,
    /// The queue, for the leases.
    pub queue: Queue,
    /// The project folder, absolute.
    pub project: PathBuf,
    /// This program and the options before each command of it.
    pub program: Vec<String>,
    /// Set when the flow is told to end.
    pub stop: watch::Receiver<bool>,
}

/// How flows run.
#[derive(Debug, Clone, Default)]
pub struct FlowOptions {
    /// This stage and all behind it run again, whatever their stamps say.
    pub from_stage: Option<String>,
    /// Nothing runs but this stage and all before it.
    pub to_stage: Option<String>,
    /// Nothing runs at all.
    pub dry_run: bool,
    /// Sources at once; 0 = one.
    pub jobs: usize,
}

/// Who is told what happens.
pub trait FlowWatch: Send + Sync {
    /// A stage begins.
    fn begins(&self, graph: &Graph, stage: &Stage);
    /// A stage is under way, and said this of how far it is, if anything; called about twice a second.
    fn progress(&self, graph: &Graph, stage: &Stage, said: Option<&str>);
    /// A stage ended, or was passed over.
    fn ended(&self, graph: &Graph, report: &StageReport);
    /// Another call runs the date.
    fn busy(&self, graph: &Graph, who: &str);
}

/// Runs the graphs of several sources; those of one source follow each other.
///
/// A source of which no turn could be taken or given back does not take the reports of the others with it: its error
/// stands beside the report.
///
/// # Errors
/// `InvalidInput` for a stage that no graph has, or for two that nothing lies between, before anything runs.
pub async fn run_flows(
    context: &FlowContext,
    sources: Vec<Vec<Graph>>,
    options: &FlowOptions,
    watch: &Arc<dyn FlowWatch>,
) -> Result<(FlowReport, Option<Error>)> {
    for graph in sources.iter().flatten() {
        check_asked(graph, options)?;
    }
    let places = Arc::new(Semaphore::new(options.jobs.max(1)));
    let mut running = Vec::new();
    for graphs in sources {
        let (context, options, watch) = (context.clone(), options.clone(), Arc::clone(watch));
        let places = Arc::clone(&places);
        running.push(tokio::spawn(async move {
            let _place = places.acquire_owned().await;
            run_source(&context, &graphs, &options, &*watch).await
        }));
    }
    let mut dates = Vec::new();
    let mut failed = None;
    for source in running {
        match source.await {
            Ok((reports, error)) => {
                dates.extend(reports);
                failed = failed.or(error);
            }
            Err(e) => failed = failed.or(Some(Error::internal("run a flow").caused_by(e))),
        }
    }
    let report = FlowReport {
        format: FLOW_REPORT_FORMAT,
        dry_run: options.dry_run,
        trouble: dates.iter().filter_map(DateReport::trouble).min(),
        dates,
    };
    Ok((report, failed))
}

/// What `--from-stage` and `--to-stage` name must be there, and something must lie between them.
fn check_asked(graph: &Graph, options: &FlowOptions) -> Result<()> {
    for name in options.from_stage.iter().chain(&options.to_stage) {
        graph.stage(name)?;
    }
    let (Some(from), Some(to)) = (&options.from_stage, &options.to_stage) else {
        return Ok(());
    };
    let forced = graph.from(&graph.stage(from)?.name);
    if forced.contains(&graph.stage(to)?.name) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "of the flow of `{}` nothing lies between `--from-stage {from}` and `--to-stage {to}`: `{to}` does not come after `{from}`",
        graph.source
    ))
    .hint(format!("`lakebed flow {} --date {}` shows what comes after what", graph.source, graph.date)))
}

/// The dates of a source one after the other, and what ended them early.
async fn run_source(
    context: &FlowContext,
    graphs: &[Graph],
    options: &FlowOptions,
    watch: &dyn FlowWatch,
) -> (Vec<DateReport>, Option<Error>) {
    let mut judge = Judge::new(&context.lake, &context.project);
    let mut reports: Vec<DateReport> = Vec::new();
    for graph in graphs {
        let mut run = DateRun {
            context,
            graph,
            options,
            watch,
            judge: &mut judge,
            outcomes: BTreeMap::new(),
            reports: Vec::new(),
            warnings: Vec::new(),
        };
        let before = reports.last().filter(|r| r.trouble().is_some());
        let (busy, error) = match before {
            // What a day holds follows from the day before it.
            Some(before) => {
                run.block_all(&format!("{} did not end well", before.date));
                (None, None)
            }
            None => match run.run().await {
                Ok(busy) => (busy, None),
                Err(e) => (None, Some(e)),
            },
        };
        let stages = run.reports;
        reports.push(DateReport {
            source: graph.source.clone(),
            date: graph.date,
            run: graph.run.clone(),
            busy,
            stages,
        });
        if error.is_some() {
            return (reports, error);
        }
    }
    (reports, None)
}

/// One date on its way.
struct DateRun<'a> {
    context: &'a FlowContext,
    graph: &'a Graph,
    options: &'a FlowOptions,
    watch: &'a dyn FlowWatch,
    judge: &'a mut Judge,
    outcomes: BTreeMap<FlowStageName, StageOutcome>,
    reports: Vec<StageReport>,
    /// What the stage at hand warned of.
    warnings: Vec<String>,
}

/// What was there before a stage began.
struct Before {
    inputs: Vec<StampScope>,
    input_files: Vec<StampFile>,
}

impl DateRun<'_> {
    /// Runs what is to be run; who has the turn instead, where somebody has.
    async fn run(&mut self) -> Result<Option<String>> {
        let selected = match &self.options.to_stage {
            Some(name) => self.graph.up_to(&self.graph.stage(name)?.name),
            None => self.graph.stages.iter().map(|s| s.name.clone()).collect(),
        };
        let forced = self.forced()?;
        if self.options.dry_run {
            for stage in self
                .graph
                .stages
                .iter()
                .filter(|s| selected.contains(&s.name))
            {
                self.plan(stage, forced.contains(&stage.name)).await?;
            }
            return Ok(None);
        }
        let of = (&self.graph.source, self.graph.date);
        let turn = match turn::take(&self.context.queue, &self.context.project, of).await? {
            Ok(turn) => turn,
            Err(busy) => {
                self.watch.busy(self.graph, &busy.who);
                return Ok(Some(busy.who));
            }
        };
        kill_point("flow.turn_taken");
        for stage in self
            .graph
            .stages
            .iter()
            .filter(|s| selected.contains(&s.name))
        {
            if let Err(error) = self.step(stage, forced.contains(&stage.name), &turn).await {
                self.fail(stage, &error);
            }
        }
        let is_lost = turn.is_lost();
        turn.end().await?;
        Ok(is_lost.then(|| "another call, to which the lease went".to_owned()))
    }

    /// The stages that `--from-stage` does again, whether they are done or not: what was planned and fetched stays, unless
    /// it is named itself.
    fn forced(&self) -> Result<BTreeSet<FlowStageName>> {
        let Some(name) = &self.options.from_stage else {
            return Ok(BTreeSet::new());
        };
        let named = self.graph.stage(name)?;
        let mut forced = self.graph.from(&named.name);
        let facts = self.graph.stages.iter().filter(|s| s.kind.is_fact());
        for stage in facts.filter(|s| s.name != named.name) {
            forced.remove(&stage.name);
        }
        Ok(forced)
    }

    fn tell(&mut self, stage: &Stage, outcome: StageOutcome, report: StageReport) {
        self.outcomes.insert(stage.name.clone(), outcome);
        self.watch.ended(self.graph, &report);
        self.reports.push(report);
    }

    fn pass(&mut self, stage: &Stage, outcome: StageOutcome, found: (Option<Standing>, String)) {
        let (standing, why) = found;
        let report = StageReport {
            stage: stage.name.clone(),
            kind: stage.kind,
            outcome,
            standing,
            why,
            took_ms: None,
            warnings: Vec::new(),
            failure: None,
        };
        self.tell(stage, outcome, report);
    }

    /// The stage could not be judged, run or stamped: it is red, and what does not come after it goes on.
    fn fail(&mut self, stage: &Stage, error: &Error) {
        let (project, source) = (&self.context.project, &self.graph.source);
        let failure = StageFailure {
            reason: told(error),
            exit_code: None,
            last_lines: Vec::new(),
            log: log_path(project, source, stage).display().to_string(),
        };
        let mut kept = StageTry::begun(0, self.context.lake.clock().now());
        kept.failed = Some(failure.clone());
        // Where not even that can be written, the report of this call says it.
        drop(kept.keep(project, source, stage));
        let report = StageReport {
            stage: stage.name.clone(),
            kind: stage.kind,
            outcome: StageOutcome::Failed,
            standing: None,
            why: String::new(),
            took_ms: None,
            warnings: Vec::new(),
            failure: Some(failure),
        };
        self.tell(stage, StageOutcome::Failed, report);
    }

    fn block_all(&mut self, why: &str) {
        let graph = self.graph;
        for stage in &graph.stages {
            self.pass(stage, StageOutcome::Blocked, (None, why.to_owned()));
        }
    }

    /// The stage right before this one that did not end well.
    fn blocked_by<'s>(&self, stage: &'s Stage) -> Option<&'s FlowStageName> {
        let is_bad = |name: &&FlowStageName| {
            self.outcomes
                .get(*name)
                .is_some_and(|outcome| !outcome.is_good())
        };
        stage.after.iter().find(is_bad)
    }

    /// One stage of a dry run.
    async fn plan(&mut self, stage: &Stage, is_forced: bool) -> Result<()> {
        let judged = self.judge.judge(&self.graph.source, stage).await?;
        let runs_before = stage.after.iter().any(|name| {
            let outcome = self.outcomes.get(name);
            matches!(outcome, Some(StageOutcome::WouldRun | StageOutcome::MayRun))
        });
        let outcome = match judged.standing {
            Standing::NotDue => StageOutcome::NotDue,
            _ if self.blocked_by(stage).is_some() => StageOutcome::Blocked,
            _ if is_forced => StageOutcome::WouldRun,
            Standing::Stale => StageOutcome::Stale,
            Standing::Done if runs_before => StageOutcome::MayRun,
            Standing::Done => StageOutcome::AlreadyDone,
            Standing::Missing | Standing::Outdated | Standing::Red | Standing::Running => {
                StageOutcome::WouldRun
            }
        };
        self.pass(stage, outcome, (Some(judged.standing), judged.why));
        Ok(())
    }

    /// One stage: passed over, or run.
    async fn step(&mut self, stage: &Stage, is_forced: bool, turn: &Turn) -> Result<()> {
        if *self.context.stop.borrow() || turn.is_lost() {
            let why = "the flow was told to end".to_owned();
            self.pass(stage, StageOutcome::Told, (None, why));
            return Ok(());
        }
        let judged = self.judge.judge(&self.graph.source, stage).await?;
        let standing = judged.standing;
        let found = (Some(standing), judged.why.clone());
        match standing {
            Standing::NotDue => {
                self.pass(stage, StageOutcome::NotDue, found);
                return Ok(());
            }
            Standing::Done if !is_forced => {
                // A stamp of another machine ends a try that failed here.
                StageTry::forget(&self.context.project, &self.graph.source, stage)?;
                self.pass(stage, StageOutcome::AlreadyDone, found);
                return Ok(());
            }
            Standing::Stale if !is_forced => {
                self.pass(stage, StageOutcome::Stale, found);
                return Ok(());
            }
            _ => {}
        }
        if let Some(name) = self.blocked_by(stage) {
            let why = format!("`{name}` comes before it and is not done");
            self.pass(stage, StageOutcome::Blocked, (Some(standing), why));
            return Ok(());
        }
        let began = Instant::now();
        self.watch.begins(self.graph, stage);
        let ended = self.attempt(stage, is_forced, turn).await?;
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (outcome, failure) = match ended {
            Ok(()) => (StageOutcome::Done, None),
            Err((outcome, failure)) => (outcome, failure),
        };
        let report = StageReport {
            stage: stage.name.clone(),
            kind: stage.kind,
            outcome,
            standing: Some(standing),
            why: match is_forced {
                true => "it was asked for".to_owned(),
                false => judged.why,
            },
            took_ms: Some(took),
            warnings: std::mem::take(&mut self.warnings),
            failure,
        };
        self.tell(stage, outcome, report);
        Ok(())
    }

    /// Runs the stage; `Ok(Err(_))` tells how it failed.
    async fn attempt(
        &mut self,
        stage: &Stage,
        is_forced: bool,
        turn: &Turn,
    ) -> Result<Result<(), (StageOutcome, Option<StageFailure>)>> {
        let (project, source) = (&self.context.project, &self.graph.source);
        let mut inputs = self.judge.see_all(&stage.reads).await?;
        // A seal changes nothing that is read, and a stage may seal what it reads.
        inputs.iter_mut().for_each(|input| input.sealed = false);
        let before = Before {
            inputs,
            input_files: self.judge.see_files(&stage.input_files)?,
        };
        let (end, begin) = match self.lacking(stage, &before) {
            Some(reason) => (End::Bad { reason, code: None }, None),
            None => self.run_process(stage, is_forced, turn).await?,
        };
        kill_point("flow.stage_ended");
        let log = log_path(project, source, stage);
        self.warnings = begin.map_or_else(Vec::new, |begin| warnings(&log, begin));
        let end = match end {
            End::Good => match self.stamp(stage, before).await? {
                None => {
                    StageTry::forget(project, source, stage)?;
                    return Ok(Ok(()));
                }
                Some(reason) => End::Bad { reason, code: None },
            },
            bad => bad,
        };
        let (outcome, reason, exit_code) = match end {
            End::Told | End::Good => return Ok(Err((StageOutcome::Told, None))),
            End::TimedOut => {
                let minutes = stage.timeout.map_or(0, |t| t.as_secs() / 60);
                let reason = format!("it took longer than {minutes} min and was ended");
                (StageOutcome::TimedOut, reason, None)
            }
            End::Bad { reason, code } => (StageOutcome::Failed, reason, code),
        };
        let failure = StageFailure {
            reason,
            exit_code,
            last_lines: begin.map_or_else(Vec::new, |begin| last_lines(&log, begin)),
            log: log.display().to_string(),
        };
        let mut kept = StageTry::begun(0, self.context.lake.clock().now());
        kept.failed = Some(failure.clone());
        // Where it cannot be kept, the report of this call still says how the stage failed.
        drop(kept.keep(project, source, stage));
        Ok(Err((outcome, Some(failure))))
    }

    /// What a program of the user's should read and is not there, in words.
    fn lacking(&self, stage: &Stage, before: &Before) -> Option<String> {
        if stage.kind != StageKind::Shell {
            return None;
        }
        let project = &self.context.project;
        let is_lacking = |glob: &&String| files_of(project, glob).is_ok_and(|f| f.is_empty());
        let file = stage.input_files.iter().find(is_lacking);
        if let Some(glob) = file {
            return Some(format!("there is no file `{glob}` that it should read"));
        }
        let scope = before.inputs.iter().find(|input| input.content.is_none())?;
        Some(format!(
            "there is nothing of {} in `{}` that it should read",
            scope.dt, scope.dataset
        ))
    }

    /// Its end, and where in its log begins what it said; no place where it never began.
    async fn run_process(
        &self,
        stage: &Stage,
        is_forced: bool,
        turn: &Turn,
    ) -> Result<(End, Option<u64>)> {
        let (project, source) = (&self.context.project, &self.graph.source);
        let argv = argv_of(&self.context.program, stage, is_forced);
        let log = log_path(project, source, stage);
        let now = self.context.lake.clock().now();
        let far = progress_path(project, source, stage);
        // What a try left that died says nothing of this one.
        drop(fs::remove_file(&far));
        let variables = [
            ("LAKEBED_PROJECT", project.display().to_string()),
            ("LAKEBED_SOURCE", source.to_string()),
            ("LAKEBED_DATE", stage.date.to_string()),
            ("LAKEBED_RUN", self.graph.run.to_string()),
            ("LAKEBED_PROGRESS", far.display().to_string()),
        ];
        let started = start(
            Call {
                argv: &argv,
                folder: project,
                variables: &variables,
                lock: turn.lock()?,
                log: &log,
            },
            &format!("{now} {}", crate::flow::make::shell_line(&argv)),
        );
        let bad = |error: &Error| End::Bad {
            reason: told(error),
            code: None,
        };
        let (child, begin) = match started {
            Ok(started) => started,
            Err(e) => return Ok((bad(&e), None)),
        };
        if let Err(e) = StageTry::begun(child.id(), now).keep(project, source, stage) {
            // Nobody who comes later could know that it runs.
            let killed = tokio::task::spawn_blocking(move || kill(child)).await;
            drop(killed);
            return Ok((bad(&e), Some(begin)));
        }
        kill_point("flow.stage_begun");
        let (stop, lost, timeout) = (self.context.stop.clone(), turn.lost(), stage.timeout);
        let is_told = move || *stop.borrow() || lost.load(std::sync::atomic::Ordering::SeqCst);
        let mut waiting = tokio::task::spawn_blocking(move || wait(child, timeout, is_told));
        let waited = loop {
            tokio::select! {
                ended = &mut waiting => break ended,
                () = tokio::time::sleep(PROGRESS_PAUSE) => {
                    let said = read_progress(&far);
                    self.watch.progress(self.graph, stage, said.as_deref());
                }
            }
        };
        drop(fs::remove_file(&far));
        let waited = waited.map_err(|e| Error::internal("wait for a stage").caused_by(e))?;
        Ok((waited?, Some(begin)))
    }

    /// Stamps the stage; what it should have written and did not, in words.
    async fn stamp(&mut self, stage: &Stage, before: Before) -> Result<Option<String>> {
        let project = &self.context.project;
        for glob in &stage.output_files {
            let files = files_of(project, glob)?;
            if files.is_empty() {
                let what =
                    format!("it ended well, but `{glob}`, which it should write, is not there");
                return Ok(Some(what));
            }
            files.iter().try_for_each(|file| make_durable(file))?;
        }
        let outputs = self.judge.see_all(&stage.writes).await?;
        let lacking = outputs.iter().find(|o| o.content.is_none());
        if let (StageKind::Shell, Some(lacking)) = (stage.kind, lacking) {
            return Ok(Some(format!(
                "it ended well, but {} has nothing of {}, which it should write",
                lacking.dataset, lacking.dt
            )));
        }
        let stamp = StampSpec {
            format: STAMP_FORMAT,
            source: self.graph.source.clone(),
            date: stage.stamp_date,
            run: stage.stamp_run.clone(),
            stage: stage.name.clone(),
            kind: stage.kind.as_str().to_owned(),
            rules: stage.rules.clone(),
            inputs: before.inputs,
            input_files: before.input_files,
            outputs,
            output_files: self.judge.see_files(&stage.output_files)?,
        };
        kill_point("flow.before_stamp");
        let path = stamp_path(&self.graph.source, stage);
        let store = self.context.lake.store();
        store.replace(&path, &stamp.to_bytes()?).await?;
        kill_point("flow.stamped");
        Ok(None)
    }
}

/// An error in one line, with where it is and what to do.
fn told(error: &Error) -> String {
    let mut text = error.to_string();
    for (key, value) in error.context() {
        text.push_str(&format!(" ({key}: {value})"));
    }
    for hint in error.hints() {
        text.push_str(&format!("; {hint}"));
    }
    text
}

/// The command line of a stage; of one that was asked for, what other inputs or rules made may be replaced: a query's
/// rows, and a day's fold, which is then worked out anew from the rows and the snapshot before it that are there now.
fn argv_of(program: &[String], stage: &Stage, is_forced: bool) -> Vec<String> {
    match &stage.program {
        Program::Shell(argv) => argv.clone(),
        Program::Lakebed(args) => {
            let anew = match stage.kind {
                StageKind::Derive if is_forced => vec!["--replace".to_owned()],
                StageKind::Fold if is_forced => vec!["--from".to_owned(), stage.date.to_string()],
                _ => Vec::new(),
            };
            program.iter().chain(args).cloned().chain(anew).collect()
        }
    }
}

/// Makes a file that a program of the user's wrote survive a power failure, with its name.
fn make_durable(file: &Path) -> Result<()> {
    let sync = |path: &Path| {
        File::open(path)
            .and_then(|f| f.sync_all())
            .map_err(|e| Error::io("make the file durable", path.display(), e))
    };
    sync(file)?;
    file.parent().map_or(Ok(()), sync)
}
