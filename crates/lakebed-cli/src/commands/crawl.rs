//! `crawl SOURCE`, `crawl close | stop | resume`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakebed::config::{Project, Settings};
use lakebed::crawl::{
    self, Closed, CrawlPlan, CrawlWatch, PackStatistics, Packed, SeedPlan, WorkerEnd, WorkerStats,
    read_seeds,
};
use lakebed::flow::PlanHead;
use lakebed::name::StageName;
use lakebed::pack::PackReport;
use lakebed::parse::Rules;
use lakebed::queue::{
    Acceptance, Breach, BreachKind, ClosingRecord, Queue, RunBooks, RunRecord, RunState,
};
use lakebed::spec::{RunKey, TerminalRecord};
use lakebed::{Error, Result};
use serde::Serialize;
use tokio::sync::watch;

use crate::args::{CrawlArgs, CrawlCloseArgs, CrawlResumeArgs, CrawlStopArgs, RunArgs, TextFormat};
use crate::commands::closing::{SAME, after_run, holder_steps, next_steps};
use crate::commands::crawl_date::check_date;
use crate::commands::queue::{STATE_FOLDER, get_run, open_queue, run_key};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::failure::error_parts;
use crate::printer::Printer;
use crate::progress::CrawlProgress;
use crate::table::{count, message_text, size};

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

/// What is configured for the crawl of a run.
pub(crate) fn plan_of(
    project: &Project,
    settings: &Settings,
    run: &RunKey,
    workers: Option<u32>,
) -> Result<CrawlPlan> {
    let source = project.load_source(&run.source)?;
    let file = project.source_file(&run.source);
    // What cannot be parsed afterwards need not be fetched.
    let has_rules = source.parse.as_ref().is_some_and(|p| !p.page.is_empty());
    let rules = has_rules
        .then(|| Rules::read(&source, &file.display().to_string()))
        .transpose()?;
    let config = source.crawl.ok_or_else(|| {
        Error::invalid(format!(
            "the source `{}` says nothing of how it is crawled",
            run.source
        ))
        .with("file", file.display())
        .hint("add a table [crawl] with user_agent, hosts, seeds and stages (docs/crawl.md)")
    })?;
    let mut local = settings.crawl.clone();
    if workers.is_some() {
        local
            .source
            .entry(run.source.to_string())
            .or_default()
            .workers = workers;
    }
    Ok(CrawlPlan {
        parts: crawl::parts_folder(&project.root().join(STATE_FOLDER), run),
        run: run.clone(),
        config,
        local,
        limit: None,
        rules: rules.map(Arc::new),
        folder: file.with_file_name(""),
    })
}

async fn open(
    args: &RunArgs,
    workers: Option<u32>,
    globals: &Globals<'_>,
) -> Result<(Project, CrawlPlan, Queue)> {
    let key = run_key(args)?;
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?;
    let plan = plan_of(&project, &settings, &key, workers)?;
    let (project, _, queue) = open_queue(globals, plan.queue_options()).await?;
    Ok((project, plan, queue))
}

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
        let said = check_date(&project, &settings, &plan.run, globals.printer.now())?;
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

/// A closed run whose dead requests are tried again goes on in that run: what it says is the answer.
async fn go_on_with_successor(
    queue: &Queue,
    mut plan: CrawlPlan,
    mut run: RunRecord,
    globals: &Globals<'_>,
) -> Result<(CrawlPlan, RunRecord)> {
    while run.state == RunState::Closed
        && let Some(next) = queue.find_successor(run.id).await?
    {
        let what = format!(
            "`{}` is closed; what died is tried again in `{}`",
            run.key, next.key.run
        );
        globals.printer.info(what);
        // Beside the folder of the first run.
        let name = format!("{}.{}", next.key.date, next.key.run);
        plan = CrawlPlan {
            parts: plan.parts.with_file_name(name),
            run: next.key.clone(),
            ..plan
        };
        run = next;
    }
    Ok((plan, run))
}

/// `lakebed crawl close`
pub(crate) async fn close(args: &CrawlCloseArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (_, plan, queue) = open(&args.run, None, globals).await?;
    let run = get_run(&queue, &plan.run).await?;
    if let Some(note) = args.note.as_deref().filter(|_| args.accept) {
        return accept(&queue, (plan, run), note, globals).await;
    }
    let _expired = queue.expire_run(run.id).await?;
    if args.give_up {
        // What a worker held that was killed has not ended by itself.
        let _reaped = queue.reap().await?;
        let given_up = queue.give_up_run(run.id).await?;
        let what = count(given_up, "request");
        globals.printer.info(format!("{what} given up"));
    }
    close_run(&queue, &plan, &run, (args.give_up, globals)).await
}

/// `lakebed crawl close --accept`: of the run that goes on with what died, where there is one.
async fn accept(
    queue: &Queue,
    (plan, run): (CrawlPlan, RunRecord),
    note: &str,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let (plan, run) = go_on_with_successor(queue, plan, run, globals).await?;
    let settings = Settings::load(&globals.find_project()?, &globals.layers())?;
    let by = settings.user.value.as_deref();
    let pack = async |terminals| pack_run(&plan, terminals, globals).await;
    let closed = crawl::accept_run(queue, &plan, run.id, (by, note), pack).await?;
    tell_closed(&closed, globals)?;
    let of = format!("{} --date {}", plan.run.source, plan.run.date);
    globals.printer.hint(format!(
        "`lakebed run {of}` goes on; where a fold must not take for vanished what was not seen, `lakebed run {of} --to-stage parse` and then `lakebed fold {of} --partial` come before"
    ));
    Ok(exit_of(&closed))
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

#[derive(Serialize)]
struct CloseAnswer<'a> {
    format: u32,
    run: &'a RunKey,
    state: &'static str,
    pass: bool,
    breaches: &'a [Breach],
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a Acceptance>,
    books: &'a RunBooks,
    #[serde(skip_serializing_if = "Option::is_none")]
    pack: Option<&'a PackStatistics>,
    /// Why the pack was refused, as this call found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<serde_json::Value>,
}

async fn pack_run(
    plan: &CrawlPlan,
    terminals: Vec<TerminalRecord>,
    globals: &Globals<'_>,
) -> Result<PackReport> {
    let context = Context::open(globals).await?;
    let by = context.by(Some(plan.run.run.clone()), None);
    let (lake, catalog) = (context.lake(), context.catalog());
    let report = crawl::pack_run(lake, &*catalog, by, plan, terminals).await?;
    context.follow_log(&report.dataset).await;
    Ok(report)
}

async fn close_run(
    queue: &Queue,
    plan: &CrawlPlan,
    run: &RunRecord,
    (gives_up, globals): (bool, &Globals<'_>),
) -> Result<Exit> {
    let pack = async |terminals| pack_run(plan, terminals, globals).await;
    let closed = crawl::close_run(queue, plan, run.id, pack).await?;
    tell_closed(&closed, globals)?;
    match &closed.packed {
        // What it names stands in the closing.
        Packed::Refused(error) => {
            let run = &closed.run.key;
            globals
                .printer
                .warn(format!("the pack of `{run}` was refused: {error}"));
            error.hints().iter().for_each(|h| globals.printer.hint(h));
        }
        Packed::Done(report) => report.warnings.iter().for_each(|w| globals.printer.warn(w)),
        Packed::None => {}
    }
    let unread = ["robots_unreachable", "dns"];
    if unread
        .iter()
        .any(|c| closed.books.dead_classes.contains_key(*c))
    {
        for line in crawl::list_unread_robots(queue, closed.run.id).await? {
            globals.printer.warn(line);
        }
    }
    tell_steps(queue, &closed, (gives_up, globals)).await
}

/// What goes on from a closing, and how it ends the call.
async fn tell_steps(
    queue: &Queue,
    closed: &Closed,
    (gives_up, globals): (bool, &Globals<'_>),
) -> Result<Exit> {
    let has = |kind| closed.closing.breaches.iter().any(|b| b.kind == kind);
    if has(BreachKind::Unfinished) {
        let holders = queue.list_holders(closed.run.id).await?;
        let gives_up = has(BreachKind::Stopped).then_some(gives_up);
        for step in holder_steps(&closed.run.key, &holders, gives_up) {
            globals.printer.hint(step);
        }
    }
    let key = &closed.run.key;
    let runs = queue.list_runs_of(&key.source, key.date).await?;
    for step in next_steps(key, (&closed.closing, &closed.books), SAME, &runs) {
        globals.printer.hint(step);
    }
    let exit = exit_of(closed);
    if exit == Exit::Done {
        match after_run(queue, &closed.run.key).await {
            Ok(lines) => lines.iter().for_each(|line| globals.printer.hint(line)),
            // The run is closed all the same.
            Err(e) => globals
                .printer
                .warn(format!("what comes next is not known: {e}")),
        }
    }
    Ok(exit)
}

fn tell_closed(closed: &Closed, globals: &Globals<'_>) -> Result<()> {
    let answer = CloseAnswer {
        format: ANSWER_FORMAT,
        run: &closed.run.key,
        state: closed.run.state.as_str(),
        pass: closed.closing.pass,
        breaches: &closed.closing.breaches,
        accepted: closed.closing.accepted.as_ref(),
        books: &closed.books,
        pack: closed.pack.as_ref(),
        refused: match &closed.packed {
            Packed::Refused(error) => Some(error_parts(error)),
            Packed::Done(_) | Packed::None => None,
        },
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer),
        TextFormat::Text => tell_closing(globals.printer, &answer),
    }
}

/// The exit code of a closing: the first reason, or that the pack was refused; 0 where a person took it as it is.
pub(crate) fn exit_of(closed: &Closed) -> Exit {
    if closed.closing.accepted.is_some() {
        return Exit::Done;
    }
    let first = closed.closing.breaches.first();
    // Whatever else is wrong with the run, nothing of it can be read.
    match (&closed.packed, first) {
        (Packed::Refused(_), _) => Exit::Red(BreachKind::MissingCapture),
        (_, Some(breach)) if breach.is_refused_pack() => Exit::Red(BreachKind::MissingCapture),
        (Packed::Done(_) | Packed::None, Some(breach)) => Exit::Red(breach.kind),
        (Packed::Done(_) | Packed::None, None) => Exit::Done,
    }
}

fn tell_closing(printer: &Printer, answer: &CloseAnswer<'_>) -> Result<()> {
    let books = answer.books;
    let state = |name: &str| books.states.get(name).copied().unwrap_or(0);
    let verdict = match (answer.pass, answer.accepted) {
        (true, _) => "green",
        (false, Some(_)) => "red, accepted",
        (false, None) => "red",
    };
    printer.line(format!(
        "{}: {}, {verdict}: {} done, {} dead, {} in {}",
        answer.run,
        answer.state,
        state("done"),
        state("dead"),
        count(books.failures, "failed attempt"),
        count(books.attempts, "attempt")
    ))?;
    if let Some(pack) = answer.pack {
        printer.line(format!("  {}", pack.pack))?;
    }
    if answer.pass && answer.books.seeds.announced == 0 {
        printer.line("  the plan is empty: there was nothing to fetch")?;
    }
    if let Some(accepted) = answer.accepted {
        let by = accepted.by.as_deref().unwrap_or("somebody");
        let what = format!("  accepted by {by} at {}: {}", accepted.at, accepted.note);
        printer.line(message_text(&what))?;
    }
    for breach in answer.breaches {
        printer.line(format!("  {}", message_text(&breach.message)))?;
        for sample in &breach.samples {
            printer.line(format!("    {}", message_text(sample)))?;
        }
    }
    Ok(())
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

/// The seeds: of the call, else as the source says.
pub(super) async fn read_plan(
    plan: &CrawlPlan,
    given: Option<&Path>,
    folder: &Path,
) -> Result<SeedPlan> {
    let (text, name) = match given {
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|e| Error::io("read standard input", "-", e))?;
            (text, "-".to_owned())
        }
        Some(path) => read_file(path.to_owned())?,
        None if !plan.config.seed_command.is_empty() => run_seed_command(plan, folder).await?,
        None => {
            match &plan.config.seeds {
                Some(file) => read_file(folder.join(file))?,
                None => {
                    return Err(Error::invalid(format!("the source `{}` says nothing of its seeds", plan.run.source))
                    .hint("set `seeds` or `seed_command` in its table [crawl], or give `--seeds FILE`"));
                }
            }
        }
    };
    read_seeds(&plan.config, &text, &name)
}

/// A plan that `lakebed seed` made, whole and of this run's date.
fn read_planned(plan: &CrawlPlan, path: &Path) -> Result<SeedPlan> {
    let (text, name) = read_file(path.to_owned())?;
    let head = PlanHead::get_beside(path, text.as_bytes())?;
    let mut seeds = read_seeds(&plan.config, &text, &name)?;
    if head.source != plan.run.source || head.date != plan.run.date {
        return Err(Error::invalid(format!(
            "the plan is of `{}` and {}, the run of `{}` and {}",
            head.source, head.date, plan.run.source, plan.run.date
        ))
        .with("file", name));
    }
    if head.requests != seeds.announced() {
        return Err(Error::corrupt(format!(
            "the plan announces {} requests and has {}",
            head.requests,
            seeds.announced()
        ))
        .with("file", name));
    }
    seeds.planned = true;
    Ok(seeds)
}

/// A run keeps the plan that it was seeded from.
fn check_planned(run: &RunRecord, planned: &SeedPlan) -> Result<()> {
    if run.plan_hash.as_deref() == Some(planned.queue_hash().as_str()) {
        return Ok(());
    }
    Err(Error::precondition(format!(
        "the run `{}` was seeded from another plan",
        run.key
    ))
    .hint("without `--plan` it goes on with the seeds that it has; another plan needs another run"))
}

fn read_file(path: PathBuf) -> Result<(String, String)> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io("read the seeds", &name, e))?;
    Ok((text, name))
}

/// What the command prints; one that fails seeds nothing.
async fn run_seed_command(plan: &CrawlPlan, folder: &Path) -> Result<(String, String)> {
    let words = &plan.config.seed_command;
    let name = words.join(" ");
    let mut command = std::process::Command::new(&words[0]);
    command
        .args(&words[1..])
        .current_dir(folder)
        .env("LAKEBED_DATE", plan.run.date.to_string())
        .env("LAKEBED_RUN", plan.run.run.as_str())
        .env("LAKEBED_SOURCE", plan.run.source.as_str())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.map_err(|e| Error::internal("wait for the seed command").caused_by(e))?;
    let output = output.map_err(|e| Error::io("run the seed command", &name, e))?;
    if !output.status.success() {
        return Err(Error::precondition(format!(
            "the seed command `{name}` failed: {}",
            output.status
        ))
        .hint("nothing was seeded; mend it and call again"));
    }
    let text = String::from_utf8(output.stdout).map_err(|e| {
        Error::corrupt(format!("the seed command `{name}` printed no UTF-8")).caused_by(e)
    })?;
    Ok((text, format!("output of {name}")))
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
