//! `crawl SOURCE`, `crawl stop | resume`.

use lakebed::config::Settings;
use lakebed::crawl::{self, CrawlPlan, CrawlWatch, WorkerEnd, WorkerStats};
use lakebed::name::StageName;
use lakebed::queue::{BreachKind, ClosingRecord, Queue, RunRecord, RunState};
use lakebed::spec::RunKey;
use lakebed::{Error, Result};
use serde::Serialize;
use tokio::sync::watch;

use crate::args::{CrawlArgs, CrawlResumeArgs, CrawlStopArgs, RunArgs, TextFormat};
use crate::commands::crawl_close::{close_run, go_on_with_successor};
use crate::commands::crawl_date::check_new_run;
use crate::commands::crawl_plan::{check_planned, open, read_plan, read_planned};
use crate::commands::queue::get_run;
use crate::context::Globals;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::progress::CrawlProgress;
use crate::table::{count, size};

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

/// `lakebed crawl SOURCE`
pub(crate) async fn run(args: CrawlArgs, globals: &Globals<'_>) -> Result<Exit> {
    let stages = args
        .stage
        .iter()
        .map(|s| s.parse::<StageName>())
        .collect::<Result<Vec<_>>>()?;
    let which = RunArgs {
        source: args.source.clone().unwrap_or_default(),
        date: args.date.clone().unwrap_or_default(),
        run: args.run.clone().unwrap_or_else(|| "day".to_owned()),
    };
    let (project, plan, queue) = open(&which, args.workers, globals).await?;
    if let Some(stage) = stages.iter().find(|s| !plan.config.stage.contains_key(*s)) {
        return Err(Error::invalid(format!(
            "the source `{}` has no stage `{stage}`",
            plan.run.source
        )));
    }
    let folder = project.sources_dir().join(plan.run.source.as_str());
    let planned = args
        .plan
        .as_deref()
        .map(|path| read_planned(&plan, path))
        .transpose()?;
    let read = async || match &planned {
        Some(planned) => Ok(planned.clone()),
        None => read_plan(&plan, args.seeds.as_deref(), &folder).await,
    };
    let found = queue.find_run(&plan.run).await?;
    if found.is_none_or(|run| run.state == RunState::Seeding) {
        let settings = Settings::load(&project, &globals.layers())?;
        let of = (&project, &settings, &queue);
        let said = check_new_run(of, &plan.run, globals.printer.now()).await?;
        said.iter().for_each(|said| globals.printer.warn(said));
    }
    let run = crawl::seed_run(&queue, &plan, read).await?;
    if let Some(planned) = &planned {
        check_planned(&run, planned)?;
    }
    let (plan, run) = go_on_with_successor(&queue, plan, run, globals).await?;
    if run.state == RunState::Closed {
        // What it said is said again; nothing is fetched.
        tell_closed_before(&run, globals.printer);
        return close_run(&queue, &plan, &run, (false, globals)).await;
    }
    let end = work(&queue, (&plan, &run), &stages, globals).await?;
    match end {
        Some(red) => Ok(red),
        None if args.no_close || !stages.is_empty() => Ok(Exit::Done),
        None => close_run(&queue, &plan, &run, (false, globals)).await,
    }
}

/// Crawls until nothing is left; how it ended, where something is.
async fn work(
    queue: &Queue,
    (plan, run): (&CrawlPlan, &RunRecord),
    stages: &[StageName],
    globals: &Globals<'_>,
) -> Result<Option<Exit>> {
    let stop = stop_signal()?;
    let progress = CrawlProgress::new(globals.printer, &plan.run.to_string());
    let (end, stats) = crawl::crawl_run(queue, plan, run, stages.to_vec(), stop, &progress).await?;
    drop(progress);
    tell_worker(globals.printer, &end, &stats);
    Ok(match end {
        WorkerEnd::Told | WorkerEnd::Full => {
            globals
                .printer
                .hint("the same command goes on where this one stopped");
            Some(Exit::Red(BreachKind::Unfinished))
        }
        WorkerEnd::Stopped(reason) => {
            globals
                .printer
                .warn(format!("the run was stopped: {reason}"));
            let of = format!(
                "{} --date {} --run {}",
                run.key.source, run.key.date, run.key.run
            );
            globals.printer.hint(format!(
                "`lakebed crawl resume {of}` lets it go on; `lakebed crawl close {of} --give-up` ends it"
            ));
            Some(Exit::Red(BreachKind::Stopped))
        }
        WorkerEnd::Drained => None,
    })
}

fn tell_closed_before(run: &RunRecord, printer: &Printer) {
    let closing = run.closing.as_deref().unwrap_or_default();
    let closing: Option<ClosingRecord> = serde_json::from_str(closing).ok();
    let run = &run.key;
    match closing.is_some_and(|closing| closing.is_good()) {
        true => printer.info(format!("`{run}` was closed before; nothing was fetched")),
        false => printer.warn(format!("`{run}` closed red before; nothing was fetched")),
    }
}

/// `lakebed crawl stop`
pub(crate) async fn stop(args: &CrawlStopArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (_, plan, queue) = open(&args.run, None, globals).await?;
    let run = get_run(&queue, &plan.run).await?;
    queue.stop_run(run.id, &args.reason).await?;
    tell_state(&queue, &run, globals).await
}

/// `lakebed crawl resume`
pub(crate) async fn resume(args: &CrawlResumeArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (_, plan, queue) = open(&args.run, None, globals).await?;
    let run = get_run(&queue, &plan.run).await?;
    queue.resume_run(run.id).await?;
    tell_state(&queue, &run, globals).await
}

#[derive(Serialize)]
struct StateAnswer<'a> {
    format: u32,
    run: &'a RunKey,
    state: &'static str,
    stopped: Option<String>,
}

async fn tell_state(queue: &Queue, run: &RunRecord, globals: &Globals<'_>) -> Result<Exit> {
    let run = queue.get_run(run.id).await?;
    let answer = StateAnswer {
        format: ANSWER_FORMAT,
        run: &run.key,
        state: run.state.as_str(),
        stopped: run.stopped.clone(),
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer)?,
        TextFormat::Text => {
            let stopped = run
                .stopped
                .map(|r| format!(", stopped: {r}"))
                .unwrap_or_default();
            globals
                .printer
                .line(format!("{}: {}{stopped}", run.key, run.state.as_str()))?;
        }
    }
    Ok(Exit::Done)
}

pub(super) fn tell_worker(printer: &Printer, end: &WorkerEnd, stats: &WorkerStats) {
    let why = match end {
        WorkerEnd::Drained => "nothing is left",
        WorkerEnd::Stopped(_) => "stopped",
        WorkerEnd::Told => "told to go",
        WorkerEnd::Full => "enough",
    };
    printer.info(format!(
        "{why}: this process finished {}, {} of bodies; {} failed, {} put off by hosts, {} came too late",
        count(stats.done, "request"),
        size(stats.bytes),
        stats.failed,
        stats.blocked,
        stats.lost
    ));
}

/// Set when the process is told to go: Ctrl-C or SIGTERM.
pub(crate) fn stop_signal() -> Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen =
        |kind| signal(kind).map_err(|e| Error::internal("listen for signals").caused_by(e));
    let (mut interrupt, mut terminate) = (
        listen(SignalKind::interrupt())?,
        listen(SignalKind::terminate())?,
    );
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tell.send_replace(true);
        std::future::pending::<()>().await;
    });
    Ok(told)
}

impl CrawlWatch for CrawlProgress<'_> {
    fn progress(&self, stats: &WorkerStats) {
        self.update(stats.done, stats.failed, stats.bytes);
    }

    fn note(&self, text: &str) {
        self.warn(text);
    }
}
