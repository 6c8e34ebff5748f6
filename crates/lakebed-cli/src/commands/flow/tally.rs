//! What a date has after its flow: requests of its crawls, pages and rows of its datasets; what was there before the call
//! is told apart from what it brought.

use std::collections::BTreeMap;

use lakebed::Result;
use lakebed::config::StageKind;
use lakebed::flow::{DateReport, Graph, Scope, Sights, Stage, StageOutcome, WHOLE_DAY};
use lakebed::log::DatasetState;
use lakebed::name::{DatasetRef, Layer, RunName};
use lakebed::queue::{Queue, RunRecord};
use lakebed::spec::PackGave;
use lakebed::time::BusinessDate;
use serde::Serialize;

use crate::commands::flow::closed::family_in;
use crate::commands::flow::shown::crawl_of;
use crate::commands::queue::progress_of;
use crate::printer::Printer;
use crate::table::{count, grouped};

/// What a date has.
#[derive(Debug, Serialize)]
pub(super) struct DateCounts {
    /// The source.
    pub(super) source: String,
    /// The business date.
    pub(super) date: BusinessDate,
    run: RunName,
    requests: Vec<RequestCounts>,
    datasets: Vec<RowCounts>,
}

/// The requests of a crawl, with those that tried again what died in it.
#[derive(Debug, Serialize)]
struct RequestCounts {
    run: RunName,
    done: u64,
    dead: u64,
    /// Neither done nor dead yet.
    left: u64,
    /// Whether all of it was there before the call.
    there_already: bool,
}

/// The rows of a dataset.
#[derive(Debug, Serialize)]
struct RowCounts {
    dataset: DatasetRef,
    date: BusinessDate,
    /// Pages of its kind that were parsed; absent where its rows come of no pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
    rows: u64,
    rejects: u64,
    sealed: bool,
    there_already: bool,
}

impl DateCounts {
    /// Counts what the stages of the flow crawl and write, of which anything is there.
    pub(super) async fn count(
        (graph, report): (&Graph, &DateReport),
        sights: &mut Sights,
        queue: &Queue,
    ) -> Result<Self> {
        let mut counts = Self {
            source: graph.source.to_string(),
            date: graph.date,
            run: graph.run.clone(),
            requests: Vec::new(),
            datasets: Vec::new(),
        };
        let crawled = queue.list_runs_of(&graph.source, graph.date).await?;
        let outcomes: BTreeMap<&str, StageOutcome> = report
            .stages
            .iter()
            .map(|stage| (stage.stage.as_str(), stage.outcome))
            .collect();
        for stage in &graph.stages {
            let Some(outcome) = outcomes.get(stage.name.as_str()) else {
                continue;
            };
            counts
                .add_requests((stage, *outcome), &crawled, queue)
                .await?;
            if outcome.is_good() {
                counts.add_rows((stage, *outcome), sights).await?;
            }
        }
        Ok(counts)
    }

    async fn add_requests(
        &mut self,
        (stage, outcome): (&Stage, StageOutcome),
        crawled: &[RunRecord],
        queue: &Queue,
    ) -> Result<()> {
        let is_tried = !matches!(outcome, StageOutcome::Blocked | StageOutcome::NotDue);
        let run = crawl_of(&stage.program).filter(|_| is_tried);
        let is_known = |name: &str| self.requests.iter().any(|r| r.run.as_str() == name);
        let found = run.filter(|name| !is_known(name));
        let family = found.map_or_else(Vec::new, |name| family_in(crawled, name));
        let (Some(first), Some(newest)) = (family.first(), family.last()) else {
            return Ok(());
        };
        let whole = progress_of(queue, newest).await?;
        let left = whole.left.unsigned_abs();
        let (mut done, mut dead) = (whole.done.unsigned_abs(), whole.dead.unsigned_abs());
        if newest.id != first.id
            && let Some(books) = queue.read_books(newest.id).await?.family
        {
            done = books.done;
            dead = books.dead().saturating_sub(left);
        }
        self.requests.push(RequestCounts {
            run: first.key.run.clone(),
            done,
            dead,
            left,
            there_already: outcome == StageOutcome::AlreadyDone,
        });
        Ok(())
    }

    async fn add_rows(
        &mut self,
        (stage, outcome): (&Stage, StageOutcome),
        sights: &mut Sights,
    ) -> Result<()> {
        for scope in &stage.writes {
            if scope.dataset.layer == Layer::Raw {
                continue;
            }
            let state = sights.state(&scope.dataset).await?;
            let Some(mut rows) = rows_of(state, scope) else {
                continue;
            };
            // A seal brings no row.
            let is_new = outcome == StageOutcome::Done && stage.kind != StageKind::Seal;
            let is_same = |r: &&mut RowCounts| r.dataset == rows.dataset && r.date == rows.date;
            match self.datasets.iter_mut().find(is_same) {
                Some(known) => known.there_already &= !is_new,
                None => {
                    rows.there_already = !is_new;
                    self.datasets.push(rows);
                }
            }
        }
        Ok(())
    }

    /// The first dataset of the date that has rows.
    pub(super) fn first_rows(&self) -> Option<(&DatasetRef, BusinessDate)> {
        let found = self.datasets.iter().find(|dataset| dataset.rows > 0);
        found.map(|found| (&found.dataset, found.date))
    }

    /// Requests that were done by this call's crawls, all of them together; 0 where they were there before.
    pub(super) fn new_requests(&self) -> u64 {
        let new = self.requests.iter().filter(|r| !r.there_already);
        new.map(|r| r.done).sum()
    }

    /// Whether it is the run of the whole day.
    pub(super) fn is_whole_day(&self) -> bool {
        self.run.as_str() == WHOLE_DAY
    }

    /// Tells it in a few lines; nothing where there is nothing.
    pub(super) fn tell(&self, printer: &Printer) -> Result<()> {
        if self.requests.is_empty() && self.datasets.is_empty() {
            return Ok(());
        }
        let mut head = format!("{} {}", self.source, self.date);
        if !self.is_whole_day() {
            head.push_str(&format!(" {}", self.run));
        }
        printer.line(format!("{head} has:"))?;
        for requests in &self.requests {
            printer.line(format!("  {}", requests.told(&self.run)))?;
            if requests.dead > 0 && !requests.there_already {
                printer.hint(format!(
                    "`lakebed queue list {} --date {} --run {} --state dead` names what died, and of what",
                    self.source, self.date, requests.run
                ));
            }
        }
        for dataset in &self.datasets {
            printer.line(format!("  {}", dataset.told(self.date)))?;
        }
        Ok(())
    }
}

fn already(is: bool) -> &'static str {
    if is { " (there already)" } else { "" }
}

impl RequestCounts {
    fn told(&self, of: &RunName) -> String {
        let left = match self.left {
            0 => String::new(),
            left => format!(", {} left", grouped(left)),
        };
        let run = match self.run == *of {
            true => String::new(),
            false => format!(" of the run {}", self.run),
        };
        format!(
            "{} done, {} dead{left}{run}{}",
            count(self.done, "request"),
            grouped(self.dead),
            already(self.there_already)
        )
    }
}

impl RowCounts {
    fn told(&self, date: BusinessDate) -> String {
        let pages = self.pages.map(|n| format!(" of {}", count(n, "page")));
        let day = match self.date == date {
            true => String::new(),
            false => format!(" of {}", self.date),
        };
        format!(
            "{}{day}: {}{}, {}{}",
            self.dataset,
            count(self.rows, "row"),
            pages.unwrap_or_default(),
            count(self.rejects, "reject"),
            already(self.there_already)
        )
    }
}

/// What readers see of the last date of the scope; `None` where nothing was ever stored of it.
fn rows_of(state: &DatasetState, scope: &Scope) -> Option<RowCounts> {
    let date = scope.to;
    let mut rows = None;
    let mut pages = None;
    let mut commits = Vec::new();
    for (_, input) in state.visible_inputs(date) {
        *rows.get_or_insert(0) += input.spec.rows;
        // What came of a pack says so by its name.
        if let Ok(gave) = input.spec.name.parse::<PackGave>() {
            *pages.get_or_insert(0) += gave.dataset.pages;
        }
        if !commits.contains(&&input.commit) {
            commits.push(&input.commit);
        }
    }
    let rejects = commits.iter().filter_map(|c| state.find_rejects(date, c));
    let waiting = rejects.filter(|rejects| rejects.retried_by.is_none());
    let rejects = waiting.map(|rejects| rejects.spec.records).sum();
    Some(RowCounts {
        dataset: scope.dataset.clone(),
        date,
        pages,
        rows: rows?,
        rejects,
        sealed: state.is_sealed(date),
        there_already: false,
    })
}
