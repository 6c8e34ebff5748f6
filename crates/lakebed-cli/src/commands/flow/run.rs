//! `run`: everything that is to be done for a date.

use std::sync::Arc;

use lakebed::Result;
use lakebed::flow::{
    FlowContext, FlowOptions, FlowReport, FlowWatch, Graph, Stage, StageOutcome, StageReport,
    run_flows,
};
use lakebed::name::RunName;
use lakebed::queue::{Queue, QueueOptions};

use crate::args::{RunFlowArgs, TextFormat};
use crate::commands::crawl::stop_signal;
use crate::commands::flow::graphs::{dates_of, declared_of, graphs_of, program, root_of};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::printer::Printer;

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
        printer: globals.printer.twin(),
    });
    let ended = run_flows(&flow, graphs, &options, &watch).await;
    queue.close().await;
    let (report, failed) = ended?;
    if globals.printer.format() == TextFormat::Json {
        globals.printer.json(&report)?;
    }
    tell_stale(&report, globals.printer);
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(report.trouble.map_or(Exit::Done, Exit::Flow))
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
}

impl Told {
    fn head(graph: &Graph) -> String {
        match graph.run.as_str() {
            "day" => format!("{} {}", graph.source, graph.date),
            run => format!("{} {} {run}", graph.source, graph.date),
        }
    }
}

impl FlowWatch for Told {
    fn begins(&self, graph: &Graph, stage: &Stage) {
        self.printer
            .info(format!("{} {}: begins", Self::head(graph), stage.name));
    }

    fn ended(&self, graph: &Graph, report: &StageReport) {
        let head = format!("{} {}", Self::head(graph), report.stage);
        if self.printer.format() == TextFormat::Text {
            let took = report.took_ms.map_or(String::new(), |ms| {
                format!(" ({}.{:03} s)", ms / 1000, ms % 1000)
            });
            let why = match report.outcome {
                StageOutcome::AlreadyDone => String::new(),
                _ if report.why.is_empty() => String::new(),
                _ => format!(": {}", report.why),
            };
            // A reader who went away is no reason to stop a flow.
            drop(
                self.printer
                    .line(format!("{head}: {}{took}{why}", report.outcome.as_str())),
            );
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
