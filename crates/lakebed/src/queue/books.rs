//! The books of a run: what is counted in the database, each number from its own place. What was announced (by the plan and
//! by each page), what is there, how each request ended, and the progress that the workers counted on their way.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Result;
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, Tx, values};
use crate::queue::family::{count_family, family_of, listed, requests_of};
use crate::queue::links::{LinkBooks, count_announcing, count_links};
use crate::queue::run_row::get_run;
use crate::queue::verdict::{OF_RUN, closing_of};
use crate::queue::{Breach, EnqueueStats, FamilyBooks, Queue, RequestState, RunRecord, RunState};

/// Examples that a breach names.
const SAMPLES: i64 = 5;

/// The counted books of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunBooks {
    /// Seeds and requests added while it was open, as their calls counted them.
    pub seeds: EnqueueStats,
    /// Follow-ups, as the pages and the finishes counted them.
    pub children: EnqueueStats,
    /// Rows that came from seeds and calls.
    pub seed_rows: u64,
    /// Rows that came from pages.
    pub child_rows: u64,
    /// Rows by state name; every state is there.
    pub states: BTreeMap<&'static str, u64>,
    /// Dead rows by class.
    pub dead_classes: BTreeMap<String, u64>,
    /// Done rows by HTTP status; 0 where there was none.
    pub done_statuses: BTreeMap<i64, u64>,
    /// Done rows without a capture.
    pub without_capture: u64,
    /// Claims that were made.
    pub attempts: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Enqueued, as the workers counted on their way.
    pub progress_enqueued: u64,
    /// Done, as the workers counted.
    pub progress_done: u64,
    /// Dead, as the workers counted.
    pub progress_dead: u64,
    /// Of a run that tries again what died in another: the ends over all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<FamilyBooks>,
    /// Groups with fewer different requests than a page said: (group, expected, found), over all runs of the family.
    pub short_groups: Vec<(String, u64, u64)>,
    /// By stage; a stage without a request is not there.
    pub stages: BTreeMap<String, StageBooks>,
    /// By rule, over all runs of the family; empty where nobody told which rules looked for links.
    pub links: BTreeMap<String, LinkBooks>,
    /// Of a run that tries again what died in another: what was wrong there, was accepted by nobody, and no retry mends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<Breach>,
    /// Why the run was stopped.
    pub stopped: Option<String>,
    /// Examples by state or class: `method url`.
    pub samples: BTreeMap<String, Vec<String>>,
}

impl RunBooks {
    pub(super) fn state(&self, state: RequestState) -> u64 {
        self.states.get(state.as_str()).copied().unwrap_or(0)
    }

    /// Rows that have not ended.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        [
            RequestState::Pending,
            RequestState::InFlight,
            RequestState::Failed,
        ]
        .map(|s| self.state(s))
        .iter()
        .sum()
    }
}

/// What is counted of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StageBooks {
    /// Requests of all runs of the date: a later sweep need not ask again.
    pub of_date: u64,
    /// Done in this run.
    pub done: u64,
    /// Pages of it that announced how many requests there are in a group.
    pub announcing: u64,
}

impl Queue {
    /// Counts the books of a run. Walks over all its rows.
    pub async fn read_books(&self, run_id: i64) -> Result<RunBooks> {
        let mut tx = self.reading("count the books of the run").await?;
        let counted = count_books(&mut tx, run_id).await;
        counted.map_err(|e| e.into_error("count the books of the run", self.place()))
    }
}

pub(super) async fn count_books(tx: &mut Tx, run_id: i64) -> Result<RunBooks, Fault> {
    let run = get_run(tx, run_id).await?;
    let mut books = RunBooks {
        seeds: run.seeds,
        stopped: run.stopped.clone(),
        ..RunBooks::default()
    };
    books
        .states
        .extend(RequestState::ALL.map(|s| (s.as_str(), 0)));
    let sql = "SELECT s.state, CAST(CASE WHEN q.origin = 1 THEN 1 ELSE 0 END AS {int}) AS child, count(*), \
        CAST(sum(s.announced) AS {int}), CAST(sum(s.inserted) AS {int}), CAST(sum(s.duplicate) AS {int}), \
        CAST(sum(s.out_of_scope) AS {int}), CAST(sum(s.attempt) AS {int}), CAST(sum(s.failures) AS {int}), \
        CAST(sum(CASE WHEN s.state = 2 AND s.capture IS NULL THEN 1 ELSE 0 END) AS {int}) \
        FROM queue_request_state s JOIN queue_request q ON q.id = s.id WHERE s.run_id = ? GROUP BY s.state, child";
    for row in tx.rows(sql, values![run_id]).await? {
        let state = RequestState::of_code(row.int(0)?)?;
        let count = unsigned(row.int(2)?);
        *books.states.entry(state.as_str()).or_default() += count;
        if row.int(1)? == 1 {
            books.child_rows += count
        } else {
            books.seed_rows += count
        }
        books.children = books.children.plus(EnqueueStats {
            announced: unsigned(row.int(3)?),
            inserted: unsigned(row.int(4)?),
            duplicate: unsigned(row.int(5)?),
            out_of_scope: unsigned(row.int(6)?),
        });
        books.attempts += unsigned(row.int(7)?);
        books.failures += unsigned(row.int(8)?);
        books.without_capture += unsigned(row.int(9)?);
    }
    let sql = "SELECT class, count(*) FROM queue_request_state WHERE run_id = ? AND state = 4 GROUP BY class";
    for row in tx.rows(sql, values![run_id]).await? {
        let class = row.maybe_text(0)?.unwrap_or_default();
        books.dead_classes.insert(class, unsigned(row.int(1)?));
    }
    let sql = "SELECT coalesce(status, 0) AS code, count(*) FROM queue_request_state WHERE run_id = ? AND state = 2 GROUP BY code";
    for row in tx.rows(sql, values![run_id]).await? {
        books
            .done_statuses
            .insert(row.int(0)?, unsigned(row.int(1)?));
    }
    count_progress(tx, run_id, &mut books).await?;
    let family = match run.successor_of {
        Some(_) => family_of(tx, &run).await?,
        None => vec![run_id],
    };
    if family.len() > 1 {
        books.family = Some(count_family(tx, &family).await?);
        books.inherited = inherit(tx, &run, &family).await?;
    }
    count_stages(tx, &run, &family, &mut books).await?;
    books.links = count_links(tx, &family).await?;
    count_groups(tx, &family, &mut books).await?;
    take_samples(tx, (&family, run_id), &mut books).await?;
    Ok(books)
}

async fn count_progress(tx: &mut Tx, run_id: i64, books: &mut RunBooks) -> Result<(), Fault> {
    let sql = "SELECT CAST(coalesce(sum(p.enqueued), 0) AS {int}), CAST(coalesce(sum(p.done), 0) AS {int}), \
        CAST(coalesce(sum(p.dead), 0) AS {int}) FROM queue_lane l JOIN queue_progress p ON p.lane_id = l.id WHERE l.run_id = ?";
    if let Some(row) = tx.row(sql, values![run_id]).await? {
        books.progress_enqueued = unsigned(row.int(0)?);
        books.progress_done = unsigned(row.int(1)?);
        books.progress_dead = unsigned(row.int(2)?);
    }
    Ok(())
}

/// What is wrong in the other runs of the family and stays so whatever is tried again: lost rows, responses that no pack has.
/// Who accepts a run accepts those before it, too.
async fn inherit(tx: &mut Tx, run: &RunRecord, family: &[i64]) -> Result<Vec<Breach>, Fault> {
    let mut closed = Vec::new();
    for id in family.iter().filter(|id| **id != run.id) {
        let other = get_run(tx, *id).await?;
        if other.state == RunState::Closed {
            let record = closing_of(&other)?;
            closed.push((other, record));
        }
    }
    let accepted = closed.iter().filter(|(_, r)| r.accepted.is_some());
    let accepted = accepted.map(|(run, _)| run.id).max();
    let left = closed
        .into_iter()
        .filter(|(run, _)| Some(run.id) > accepted);
    let inherited = left.flat_map(|(other, record)| {
        let own = record.breaches.into_iter().filter(Breach::stays);
        own.map(move |breach| Breach {
            message: format!("{OF_RUN}{}`: {}", other.key.run, breach.message),
            ..breach
        })
    });
    Ok(inherited.collect())
}

/// Requests of the date by stage, and the pages that the family has read.
async fn count_stages(
    tx: &mut Tx,
    run: &RunRecord,
    family: &[i64],
    books: &mut RunBooks,
) -> Result<(), Fault> {
    let sql = format!(
        "SELECT l.stage, CAST(sum(p.enqueued) AS {{int}}), CAST(sum(CASE WHEN l.run_id IN ({}) THEN p.done ELSE 0 END) AS {{int}}) \
         FROM queue_run r JOIN queue_lane l ON l.run_id = r.id JOIN queue_progress p ON p.lane_id = l.id \
         WHERE r.source = ? AND r.dt = ? AND r.state < 4 GROUP BY l.stage",
        listed(family)
    );
    let key = &run.key;
    let values = values![key.source.as_str(), key.date.to_string()];
    let mut announcing = count_announcing(tx, family).await?;
    for row in tx.rows(&sql, values).await? {
        let name = row.text(0)?;
        let stage = StageBooks {
            of_date: unsigned(row.int(1)?),
            done: unsigned(row.int(2)?),
            announcing: announcing.remove(&name).unwrap_or(0),
        };
        books.stages.insert(name, stage);
    }
    Ok(())
}

async fn count_groups(tx: &mut Tx, family: &[i64], books: &mut RunBooks) -> Result<(), Fault> {
    let runs = listed(family);
    let sql = format!(
        "SELECT e.name, max(e.expected), \
         (SELECT count(DISTINCT g.request_key) FROM queue_group g WHERE g.run_id IN ({runs}) AND g.name = e.name) \
         FROM queue_expectation e WHERE e.run_id IN ({runs}) GROUP BY e.name ORDER BY e.name"
    );
    for row in tx.rows(&sql, &[]).await? {
        let (expected, found) = (unsigned(row.int(1)?), unsigned(row.int(2)?));
        if found < expected {
            books.short_groups.push((row.text(0)?, expected, found));
        }
    }
    Ok(())
}

/// Examples of what did not end well: of dead requests those of the family, of others those of the run.
async fn take_samples(
    tx: &mut Tx,
    (family, run_id): (&[i64], i64),
    books: &mut RunBooks,
) -> Result<(), Fault> {
    let wanted = [
        ("pending", "s.state = 0"),
        ("in_flight", "s.state = 1"),
        ("failed", "s.state = 3"),
        ("dead", "s.state = 4"),
        ("without_capture", "s.state = 2 AND s.capture IS NULL"),
    ];
    for (name, condition) in wanted {
        let there = match (name, &books.family) {
            ("without_capture", _) => books.without_capture,
            ("dead", Some(family)) => family.dead(),
            _ => books.states.get(name).copied().unwrap_or(0),
        };
        if there == 0 {
            continue;
        }
        let of_family = name == "dead" && books.family.is_some();
        let rows = if of_family {
            let sql = format!(
                "SELECT q.method, q.url, s.class FROM {} k JOIN queue_request_state s ON s.id = k.last_id \
                 JOIN queue_request q ON q.id = s.id WHERE k.is_done = 0 ORDER BY s.id LIMIT ?",
                requests_of(family)
            );
            tx.rows(&sql, values![SAMPLES]).await?
        } else {
            let sql = format!(
                "SELECT q.method, q.url, s.class FROM queue_request_state s JOIN queue_request q ON q.id = s.id \
                 WHERE s.run_id = ? AND {condition} ORDER BY s.id LIMIT ?"
            );
            tx.rows(&sql, values![run_id, SAMPLES]).await?
        };
        let mut texts = Vec::new();
        for row in rows {
            let class = row
                .maybe_text(2)?
                .map(|c| format!(" ({c})"))
                .unwrap_or_default();
            texts.push(format!("{} {}{class}", row.text(0)?, row.text(1)?));
        }
        books.samples.insert(name.to_owned(), texts);
    }
    Ok(())
}
