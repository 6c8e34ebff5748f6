//! `status`: source x date x stage, and why a stage is not done.

use lakebed::flow::{Declared, FLOW_LEASES, Graph, Judge, Judged, Standing, WHOLE_DAY, is_running};
use lakebed::name::{RunName, SourceName};
use lakebed::queue::{LeaseRecord, Queue, QueueOptions, RunRecord};
use lakebed::time::{BusinessDate, time_zone};
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{FlowStatusArgs, TextFormat};
use crate::commands::closing::{closing_of, next_steps};
use crate::commands::flow::advice;
use crate::commands::flow::closed::{family_in, judged_with_closings};
use crate::commands::flow::graphs::{dates_of, declared_of, root_of};
use crate::commands::flow::shown::{Places, crawl_of};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON answer.
const ANSWER_FORMAT: u32 = 1;
/// Days that are shown where none are asked for.
const USUAL_DAYS: i64 = 7;
/// Days to come that are shown where none are asked for.
const MOST_COMING: usize = 7;
/// Why a stage is missing that nobody has begun.
pub(super) const NEVER_DONE: &str = "never done";

#[derive(Serialize)]
pub(super) struct StageStatus {
    pub(super) stage: String,
    kind: &'static str,
    #[serde(flatten)]
    pub(super) judged: Judged,
    /// Of a crawl that closed red: what goes on from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) next: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct DateStatus {
    pub(super) source: SourceName,
    pub(super) date: BusinessDate,
    pub(super) run: RunName,
    /// Who runs it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) running: Option<String>,
    pub(super) stages: Vec<StageStatus>,
}

#[derive(Serialize)]
struct StatusAnswer {
    format: u32,
    /// Whether no stage is red or STALE.
    pass: bool,
    dates: Vec<DateStatus>,
}

/// `lakebed status`
pub(crate) async fn status(args: &FlowStatusArgs, globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let lake = context.lake();
    let asked = args.run.as_deref().map(str::parse::<RunName>).transpose()?;
    let given = dates_of(&args.dates)?;
    let declared = declared_of(context.project(), &args.sources)?;
    // To look makes no queue.
    let place = &context.settings().queue.value;
    let queue = Queue::find(place, QueueOptions::default()).await?;
    let leases = match &queue {
        Some(queue) => queue.list_leases(FLOW_LEASES).await?,
        None => Vec::new(),
    };
    let root = root_of(context.project())?;
    let places = Places {
        lake,
        root: &root,
        queue: queue.as_ref(),
    };
    let mut judge = Judge::new(lake, &root);
    let mut answer = StatusAnswer {
        format: ANSWER_FORMAT,
        pass: true,
        dates: Vec::new(),
    };
    for declared in &declared {
        let dates = match &given {
            Some(dates) => dates.clone(),
            None => last_days(&places, declared, &mut judge, globals).await?,
        };
        for date in dates {
            let crawled = places.crawled(&declared.source, date).await?;
            let of = (declared, date);
            for run in places.runs_of(of, asked.as_ref(), &crawled).await? {
                let running = running_of(&root, &leases, &declared.source, date);
                let seen = Seen {
                    queue: queue.as_ref(),
                    crawled: &crawled,
                    running,
                };
                let found = status_of(declared, (date, &run), &mut judge, seen).await?;
                answer.dates.push(found);
            }
        }
    }
    if let Some(queue) = queue {
        queue.close().await;
    }
    let stages = answer.dates.iter().flat_map(|d| &d.stages);
    let is_bad = |s: &StageStatus| matches!(s.judged.standing, Standing::Red | Standing::Stale);
    answer.pass = !stages.into_iter().any(is_bad);
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer)?,
        TextFormat::Text => tell(&answer, globals)?,
    }
    Ok(if answer.pass { Exit::Done } else { Exit::No })
}

/// The last days, from the first one of which the source left anything; today in any case, and days to come that have
/// something.
async fn last_days(
    places: &Places<'_>,
    declared: &Declared,
    judge: &mut Judge,
    globals: &Globals<'_>,
) -> Result<Vec<BusinessDate>> {
    let lake = places.lake;
    let zone = time_zone(&lake.spec().time_zone)?;
    let today = BusinessDate::of(lake.clock().now(), &zone);
    let known = places.known_dates(declared, today, judge).await?;
    let first = known.first().map_or(today, |first| (*first).min(today));
    let days = (1 - USUAL_DAYS..=0).map(|n| today.plus_days(n));
    let mut shown: Vec<BusinessDate> = days.filter(|day| *day >= first).collect();
    let coming: Vec<BusinessDate> = known.into_iter().filter(|day| *day > today).collect();
    shown.extend(coming.iter().take(MOST_COMING));
    if let [.., last] = coming.get(MOST_COMING..).unwrap_or_default() {
        globals.printer.hint(format!(
            "of {} more days to come, until {last}, there is something, too: `lakebed status {} --date D` shows one",
            coming.len() - MOST_COMING,
            declared.source
        ));
    }
    Ok(shown)
}

/// What is known of a date beside its stamps.
struct Seen<'a> {
    queue: Option<&'a Queue>,
    crawled: &'a [RunRecord],
    running: Option<String>,
}

fn running_of(
    root: &std::path::Path,
    leases: &[LeaseRecord],
    source: &SourceName,
    date: BusinessDate,
) -> Option<String> {
    let name = format!("{FLOW_LEASES}{source} {date}");
    let lease = leases.iter().find(|lease| lease.name == name);
    match (lease, is_running(root, source, date)) {
        (Some(lease), _) => Some(lease.holder.clone()),
        (None, true) => Some("a stage that outlived its flow".to_owned()),
        (None, false) => None,
    }
}

async fn status_of(
    declared: &Declared,
    (date, run): (BusinessDate, &RunName),
    judge: &mut Judge,
    seen: Seen<'_>,
) -> Result<DateStatus> {
    let graph = Graph::of(declared, date, run)?;
    let mut stages = Vec::new();
    for stage in &graph.stages {
        let judged = judge
            .judge_with_try(&graph.source, stage, seen.running.is_some())
            .await
            .map_err(|e: Error| e.with("stage", &stage.name))?;
        let family = match crawl_of(&stage.program) {
            Some(run) => family_in(seen.crawled, run),
            None => Vec::new(),
        };
        let judged = judged_with_closings(judged, &family);
        let next = match (family.last(), seen.queue, judged.standing) {
            (Some(crawl), Some(queue), Standing::Red) => {
                let again = match run.as_str() {
                    WHOLE_DAY => format!("`lakebed run {} --date {date}`", graph.source),
                    run => format!("`lakebed run {} --date {date} --run {run}`", graph.source),
                };
                steps_of(crawl, queue, &again).await?
            }
            _ => Vec::new(),
        };
        stages.push(StageStatus {
            stage: stage.name.to_string(),
            kind: stage.kind.as_str(),
            judged,
            next,
        });
    }
    Ok(DateStatus {
        source: graph.source,
        date,
        run: graph.run,
        running: seen.running,
        stages,
    })
}

/// What goes on from a crawl that closed red.
async fn steps_of(run: &RunRecord, queue: &Queue, again: &str) -> Result<Vec<String>> {
    let Some(closing) = closing_of(run) else {
        return Ok(Vec::new());
    };
    let books = queue.read_books(run.id).await?;
    let runs = queue.list_runs_of(&run.key.source, run.key.date).await?;
    Ok(next_steps(&run.key, (&closing, &books), again, &runs))
}

/// A table for each source and kind of run, and behind them the reasons.
fn tell(answer: &StatusAnswer, globals: &Globals<'_>) -> Result<()> {
    let mut tables: Vec<(Vec<&str>, Table)> = Vec::new();
    for date in &answer.dates {
        let columns: Vec<&str> = std::iter::once(date.source.as_str())
            .chain(date.stages.iter().map(|s| s.stage.as_str()))
            .collect();
        let at = match tables.iter().position(|(known, _)| *known == columns) {
            Some(at) => at,
            None => {
                let names = ["source", "date", "run"].into_iter();
                let table = Table::new(names.chain(columns[1..].iter().copied()));
                tables.push((columns, table));
                tables.len() - 1
            }
        };
        let head = [
            date.source.to_string(),
            date.date.to_string(),
            date.run.to_string(),
        ];
        let cells = date
            .stages
            .iter()
            .map(|s| s.judged.standing.as_str().to_owned());
        tables[at].1.row(head.into_iter().chain(cells));
    }
    for (n, (_, table)) in tables.iter().enumerate() {
        if n > 0 {
            globals.printer.bytes(b"\n")?;
        }
        globals.printer.table(table)?;
    }
    let mut why = Table::new(["source", "date", "run", "stage", "is", "why"]);
    for date in &answer.dates {
        for stage in &date.stages {
            let is_told = match stage.judged.standing {
                // A red crawl that a person accepted.
                Standing::Done => !stage.judged.why.is_empty(),
                Standing::NotDue => false,
                Standing::Missing => stage.judged.why != NEVER_DONE,
                Standing::Outdated | Standing::Stale | Standing::Red | Standing::Running => true,
            };
            if is_told {
                why.row([
                    date.source.as_str(),
                    &date.date.to_string(),
                    date.run.as_str(),
                    &stage.stage,
                    stage.judged.standing.as_str(),
                    &stage.judged.why,
                ]);
            }
        }
        if let Some(who) = &date.running {
            globals
                .printer
                .info(format!("{} {}: {who} runs it now", date.source, date.date));
        }
    }
    if !why.is_empty() {
        globals.printer.bytes(b"\n")?;
        globals.printer.table(&why)?;
    }
    for line in advice::lines(&answer.dates) {
        globals.printer.hint(line);
    }
    Ok(())
}
