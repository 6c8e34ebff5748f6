//! `run`: everything that is to be done for a date.

use std::sync::Arc;

use lakebed::Result;
use lakebed::config::Project;
use lakebed::flow::{
    DateReport, FlowContext, FlowOptions, FlowReport, FlowWatch, Graph, Sights, Stage,
    StageOutcome, StageReport, Standing, WHOLE_DAY, run_flows,
};
use lakebed::name::RunName;
use lakebed::queue::{Queue, QueueOptions};
use lakebed::spec::RunKey;
use serde::Serialize;

use crate::args::{RunFlowArgs, TextFormat};
use crate::commands::closing::after_run;
use crate::commands::crawl::stop_signal;
use crate::commands::flow::graphs::{dates_of, declared_of, graphs_of, program, root_of};
use crate::commands::flow::live::Live;
use crate::commands::flow::status::NEVER_DONE;
use crate::commands::flow::tally::DateCounts;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::printer::Printer;

/// Requests of a day from which on a least number of them is worth a word.
const NOTEWORTHY_REQUESTS: u64 = 10;

/// Why a stage ran that `--from-stage` names.
const ASKED_FOR: &str = "it was asked for";

/// What became of the call, and what the dates have now.
#[derive(Serialize)]
struct RunAnswer<'a> {
    #[serde(flatten)]
    report: &'a FlowReport,
    counts: &'a [DateCounts],
}

/// `lakebed run`
pub(crate) async fn run(args: RunFlowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let run: RunName = args.run.parse()?;
    let dates = dates_of(&args.dates)?.unwrap_or_default();
    let context = Context::open(globals).await?;
    let project = context.project();
    let declared = declared_of(project, &args.sources)?;
    let graphs = declared.iter().map(|d| graphs_of(d, &dates, &run));
    let graphs = graphs.collect::<Result<Vec<_>>>()?;
    let queue = Queue::open(&context.settings().queue.value, QueueOptions::default()).await?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let options = FlowOptions {
        from_stage: args.from_stage,
        to_stage: args.to_stage,
        dry_run: args.dry_run,
        jobs: args.jobs.unwrap_or(cores),
    };
    let flow = FlowContext {
        lake: context.lake().clone(),
        queue: queue.clone(),
        project: root_of(project)?,
        program: program(project, context.settings())?,
        stop: stop_signal()?,
    };
    let watch: Arc<dyn FlowWatch> = Arc::new(Told {
        live: Live::new(globals.printer),
        printer: globals.printer.twin(),
    });
    let ended = run_flows(&flow, graphs.clone(), &options, &watch).await;
    let told = match ended {
        Ok((report, failed)) => {
            let ended = Ended { report, failed };
            tell_end(ended, &graphs, (&context, &queue), globals).await
        }
        Err(e) => Err(e),
    };
    queue.close().await;
    told
}

/// How the flows ended.
struct Ended {
    report: FlowReport,
    failed: Option<lakebed::Error>,
}

/// Tells what the dates have now, and what comes next.
async fn tell_end(
    ended: Ended,
    graphs: &[Vec<Graph>],
    (context, queue): (&Context<'_>, &Queue),
    globals: &Globals<'_>,
) -> Result<Exit> {
    let Ended { report, failed } = ended;
    let printer = globals.printer;
    let counts = match report.dry_run {
        true => Vec::new(),
        false => count_all(&report, graphs, (context, queue)).await,
    };
    match printer.format() {
        TextFormat::Json => printer.json(&RunAnswer {
            report: &report,
            counts: &counts,
        })?,
        TextFormat::Text => counts.iter().try_for_each(|date| date.tell(printer))?,
    }
    tell_stale(&report, printer);
    if let Some(error) = failed {
        return Err(error);
    }
    if report.trouble.is_none() && !report.dry_run {
        tell_next(&report, &counts, printer);
        tell_least(&counts, context.project(), printer);
        for date in &report.dates {
            if let Err(e) = tell_after(date, queue, printer).await {
                // What was done is done.
                printer.warn(format!("what comes next is not known: {e}"));
            }
        }
    }
    Ok(report.trouble.map_or(Exit::Done, Exit::Flow))
}

/// What each date has; one that cannot be counted is left out, for the flow itself has ended.
async fn count_all(
    report: &FlowReport,
    graphs: &[Vec<Graph>],
    (context, queue): (&Context<'_>, &Queue),
) -> Vec<DateCounts> {
    let mut sights = Sights::new(context.lake().clone());
    let mut counts = Vec::new();
    for date in report.dates.iter().filter(|date| date.busy.is_none()) {
        let of = |graph: &&Graph| graph.source == date.source && graph.date == date.date;
        let Some(graph) = graphs.iter().flatten().find(of) else {
            continue;
        };
        match DateCounts::count((graph, date), &mut sights, queue).await {
            Ok(found) => counts.push(found),
            Err(e) => context.printer().warn(format!(
                "{} {} could not be counted: {e}",
                date.source, date.date
            )),
        }
    }
    counts
}

/// Where to look next.
fn tell_next(report: &FlowReport, counts: &[DateCounts], printer: &Printer) {
    let mut sources: Vec<&str> = report.dates.iter().map(|d| d.source.as_str()).collect();
    sources.dedup();
    let of = match sources[..] {
        [one] => format!(" {one}"),
        _ => String::new(),
    };
    let rows = counts.iter().rev().find_map(DateCounts::first_rows);
    let rows = rows.map(|(dataset, date)| {
        format!(
            ", `lakebed sql \"SELECT * FROM {} WHERE dt = '{date}' LIMIT 10\"` some rows",
            dataset.to_string().replace('/', ".")
        )
    });
    printer.hint(format!(
        "`lakebed status{of}` shows the stages of its days{}",
        rows.unwrap_or_default()
    ));
}

/// A list that shrank is seen where the source says how many requests a day has at least.
fn tell_least(counts: &[DateCounts], project: &Project, printer: &Printer) {
    for date in counts {
        let done = date.new_requests();
        if done < NOTEWORTHY_REQUESTS || !date.is_whole_day() {
            continue;
        }
        let source = date.source.parse().ok();
        let source = source.and_then(|name| project.load_source(&name).ok());
        let crawl = source.and_then(|source| source.crawl);
        if crawl.is_some_and(|crawl| crawl.min_requests <= 1) {
            printer.hint(format!(
                "{} had {done} requests on {}: `min_requests = {}` in [crawl] of its source.toml would notice a list that shrank",
                date.source,
                date.date,
                done / 2
            ));
            return;
        }
    }
}

/// What has to come after a sweep.
async fn tell_after(date: &DateReport, queue: &Queue, printer: &Printer) -> Result<()> {
    if date.run.as_str() == WHOLE_DAY {
        return Ok(());
    }
    let run = RunKey {
        source: date.source.clone(),
        date: date.date,
        run: date.run.clone(),
    };
    for line in after_run(queue, &run).await? {
        printer.hint(line);
    }
    Ok(())
}

fn tell_stale(report: &FlowReport, printer: &Printer) {
    for date in &report.dates {
        let stale = date
            .stages
            .iter()
            .find(|s| s.outcome == StageOutcome::Stale);
        if let Some(stage) = stale {
            printer.hint(format!(
                "if the new rules are meant for {} of {}: `lakebed run {} --date {} --run {} --from-stage {}` makes new revisions",
                date.date, date.source, date.source, date.date, date.run, stage.stage
            ));
            return;
        }
    }
}

/// Tells what happens: what ended on stdout, where it is text, and the rest on stderr.
struct Told {
    printer: Printer,
    live: Live,
}

impl Told {
    fn head(graph: &Graph) -> String {
        match graph.run.as_str() {
            "day" => format!("{} {}", graph.source, graph.date),
            run => format!("{} {} {run}", graph.source, graph.date),
        }
    }

    /// Graph and stage, as lines begin.
    fn stage_head(graph: &Graph, stage: &impl std::fmt::Display) -> String {
        format!("{} {stage}", Self::head(graph))
    }
}

/// Why a stage ran, or did not; what says no more than its outcome is left out.
fn why_of(report: &StageReport) -> String {
    let why = &report.why;
    let is_known = why.is_empty() || why == NEVER_DONE;
    match (report.outcome, report.standing) {
        (StageOutcome::AlreadyDone, _) => String::new(),
        (StageOutcome::WouldRun | StageOutcome::MayRun, _) if why == NEVER_DONE => {
            ": it was never done".to_owned()
        }
        _ if is_known => String::new(),
        (StageOutcome::Done, Some(Standing::Stale)) => format!(", as {why} (it was STALE)"),
        (StageOutcome::Done, Some(Standing::Outdated)) if why != ASKED_FOR => {
            format!(", since it was outdated: {why}")
        }
        (StageOutcome::Done, _) if why == ASKED_FOR => format!(", as {why}"),
        (StageOutcome::Done, _) => format!(", since {why}"),
        _ => format!(": {why}"),
    }
}

impl FlowWatch for Told {
    fn begins(&self, graph: &Graph, stage: &Stage) {
        let head = Self::stage_head(graph, &stage.name);
        self.printer.info(format!("{head}: begins"));
        self.live.begins(head);
    }

    fn progress(&self, graph: &Graph, stage: &Stage, said: Option<&str>) {
        let head = Self::stage_head(graph, &stage.name);
        self.live.goes_on(&head, said, &self.printer);
    }

    fn ended(&self, graph: &Graph, report: &StageReport) {
        let head = Self::stage_head(graph, &report.stage);
        self.live.ended(&head, &self.printer);
        if self.printer.format() == TextFormat::Text {
            let took = report.took_ms.map_or(String::new(), |ms| {
                format!(" ({}.{:03} s)", ms / 1000, ms % 1000)
            });
            let why = why_of(report);
            // A reader who went away is no reason to stop a flow.
            drop(
                self.printer
                    .line(format!("{head}: {}{took}{why}", report.outcome.as_str())),
            );
        }
        // What failed is told by its last lines.
        if report.failure.is_none() {
            for warning in &report.warnings {
                self.printer.warn(format!("{head}: {warning}"));
            }
        }
        if let Some(failure) = &report.failure {
            self.printer.warn(format!("{head}: {}", failure.reason));
            for line in &failure.last_lines {
                self.printer
                    .stderr(&format!("  | {}\n", crate::table::message_text(line)));
            }
            self.printer
                .hint(format!("all that it said is in {}", failure.log));
        }
    }

    fn busy(&self, graph: &Graph, who: &str) {
        self.printer
            .warn(format!("{}: busy: {who} is at it", Self::head(graph)));
    }
}
