//! `status`: source x date x stage, and why a stage is not done.

use std::collections::BTreeSet;

use lakebed::flow::{Declared, FLOW_LEASES, Graph, Judge, Judged, Standing, is_running};
use lakebed::name::{RunName, SourceName};
use lakebed::queue::{LeaseRecord, Queue, QueueOptions};
use lakebed::store::{Lake, StorePath};
use lakebed::time::{BusinessDate, time_zone};
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{FlowStatusArgs, TextFormat};
use crate::commands::flow::graphs::{dates_of, declared_of, root_of};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON answer.
const ANSWER_FORMAT: u32 = 1;
/// Days that are shown where none are asked for.
const USUAL_DAYS: i64 = 7;

#[derive(Serialize)]
struct StageStatus {
    stage: String,
    kind: &'static str,
    #[serde(flatten)]
    judged: Judged,
}

#[derive(Serialize)]
struct DateStatus {
    source: SourceName,
    date: BusinessDate,
    run: RunName,
    /// Who runs it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<String>,
    stages: Vec<StageStatus>,
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
    let dates = match dates_of(&args.dates)? {
        Some(dates) => dates,
        None => last_days(lake)?,
    };
    let declared = declared_of(context.project(), &args.sources)?;
    let queue = Queue::open(&context.settings().queue.value, QueueOptions::default()).await?;
    let leases = queue.list_leases(FLOW_LEASES).await?;
    queue.close().await;
    let root = root_of(context.project())?;
    let mut judge = Judge::new(lake, &root);
    let mut answer = StatusAnswer {
        format: ANSWER_FORMAT,
        pass: true,
        dates: Vec::new(),
    };
    for declared in &declared {
        for date in &dates {
            for run in runs_of(lake, &declared.source, *date, args.run.as_deref()).await? {
                let running = running_of(&root, &leases, &declared.source, *date);
                let found = status_of(declared, (*date, &run), &mut judge, running).await?;
                answer.dates.push(found);
            }
        }
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

fn last_days(lake: &Lake) -> Result<Vec<BusinessDate>> {
    let zone = time_zone(&lake.spec().time_zone)?;
    let today = BusinessDate::of(lake.clock().now(), &zone);
    Ok((1 - USUAL_DAYS..=0).map(|n| today.plus_days(n)).collect())
}

/// The run that was asked for, and those of which stamps lie in the lake.
async fn runs_of(
    lake: &Lake,
    source: &SourceName,
    date: BusinessDate,
    asked: Option<&str>,
) -> Result<BTreeSet<RunName>> {
    if let Some(run) = asked {
        return Ok(BTreeSet::from([run.parse()?]));
    }
    let folder = StorePath::new(format!("flow/{source}/{date}"))?;
    let names = lake.store().list_names(&folder).await?;
    let runs = names.iter().filter(|name| !name.starts_with('_'));
    let mut runs: BTreeSet<RunName> = runs.filter_map(|name| name.parse().ok()).collect();
    if runs.is_empty() {
        runs.insert(lakebed::flow::WHOLE_DAY.parse()?);
    }
    Ok(runs)
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
    running: Option<String>,
) -> Result<DateStatus> {
    let graph = Graph::of(declared, date, run)?;
    let mut stages = Vec::new();
    for stage in &graph.stages {
        let judged = judge
            .judge_with_try(&graph.source, stage, running.is_some())
            .await
            .map_err(|e: Error| e.with("stage", &stage.name))?;
        stages.push(StageStatus {
            stage: stage.name.to_string(),
            kind: stage.kind.as_str(),
            judged,
        });
    }
    Ok(DateStatus {
        source: graph.source,
        date,
        run: graph.run,
        running,
        stages,
    })
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
                Standing::Done | Standing::NotDue => false,
                Standing::Missing => stage.judged.why != "never done",
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
    Ok(())
}
