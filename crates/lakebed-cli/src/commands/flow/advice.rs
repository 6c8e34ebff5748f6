//! What ends a stage that is not as it should be: a line for each kind of trouble, dates in a row together.

use lakebed::flow::Standing;
use lakebed::name::{RunName, SourceName};
use lakebed::time::BusinessDate;

use crate::commands::flow::status::{DateStatus, NEVER_DONE, StageStatus};

/// Lines that are told at most.
const MOST_LINES: usize = 8;

/// What a person does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// The first stage that is STALE, with all behind it.
    FromStage(String),
    /// What is left of the date.
    Again,
}

/// Dates in a row that one command is for.
#[derive(Debug)]
struct Row<'a> {
    source: &'a SourceName,
    run: &'a RunName,
    way: Way,
    first: BusinessDate,
    last: BusinessDate,
}

/// The lines for these dates.
pub(super) fn lines(dates: &[DateStatus]) -> Vec<String> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut steps: Vec<String> = Vec::new();
    for date in dates.iter().filter(|date| date.running.is_none()) {
        for way in ways(&date.stages) {
            let follows = |row: &&mut Row<'_>| {
                row.source == &date.source
                    && row.run == &date.run
                    && row.way == way
                    && row.last.plus_days(1) == date.date
            };
            match rows.iter_mut().find(follows) {
                Some(row) => row.last = date.date,
                None => rows.push(Row {
                    source: &date.source,
                    run: &date.run,
                    way,
                    first: date.date,
                    last: date.date,
                }),
            }
        }
        let next = date.stages.iter().flat_map(|stage| &stage.next);
        steps.extend(next.map(|step| format!("red crawl: {step}")));
    }
    let mut lines: Vec<String> = rows.iter().map(Row::told).collect();
    lines.extend(steps);
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("{more} more like these: ask for fewer dates"));
    }
    lines
}

/// What a date needs; nothing where it is done, or never was begun.
fn ways(stages: &[StageStatus]) -> Vec<Way> {
    let is = |stage: &&StageStatus, standing| stage.judged.standing == standing;
    let stale = stages.iter().find(|s| is(s, Standing::Stale));
    let is_left = |stage: &&StageStatus| match stage.judged.standing {
        Standing::Outdated => true,
        // A crawl that closed red has steps of its own.
        Standing::Red => stage.next.is_empty(),
        Standing::Missing => stage.judged.why != NEVER_DONE,
        Standing::Done | Standing::Stale | Standing::Running | Standing::NotDue => false,
    };
    let from = stale.map(|stage| Way::FromStage(stage.stage.clone()));
    let is_left = stages.iter().any(|stage| is_left(&stage));
    // What is made from a stage on includes what is left behind it.
    let again = (from.is_none() && is_left).then_some(Way::Again);
    from.into_iter().chain(again).collect()
}

impl Row<'_> {
    fn told(&self) -> String {
        let dates = match self.first == self.last {
            true => format!("--date {}", self.first),
            false => format!("--from {} --to {}", self.first, self.last),
        };
        let run = match self.run.as_str() {
            "day" => String::new(),
            run => format!(" --run {run}"),
        };
        let call = format!("lakebed run {} {dates}{run}", self.source);
        match &self.way {
            Way::FromStage(stage) => format!(
                "STALE: `{call} --from-stage {stage}` does it again by the rules of now, and what follows from it"
            ),
            Way::Again => format!("red, outdated or gone: `{call}` does what is left"),
        }
    }
}
