//! The closing: the books of a run, and the rule that they balance (QUE-5).
//!
//! [`RunBooks`] is what is counted in the database, each number from its own place: what was announced
//! (by the plan and by each page), what is there, how each request ended, and the progress that the
//! workers counted on their way. [`ClosingRules::judge`] is a pure function over them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, Tx, in_tx, values};
use crate::queue::event::put_event;
use crate::queue::family::{count_family, family_of, listed, requests_of};
use crate::queue::run_row::{expect_one, get_run, require_state};
use crate::queue::{EnqueueStats, FamilyBooks, Queue, RequestState, RunRecord, RunState};
use crate::time::Instant;

/// Examples that a breach names.
const SAMPLES: i64 = 5;
/// What the reason of a stop begins with where the pack of the run was refused.
pub const PACK_REFUSED: &str = "its pack was refused";

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
    /// Of a run that tries again what died in another: what was wrong there, was accepted by nobody, and no retry mends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<Breach>,
    /// Why the run was stopped.
    pub stopped: Option<String>,
    /// Examples by state or class: `method url`.
    pub samples: BTreeMap<String, Vec<String>>,
}

impl RunBooks {
    fn state(&self, state: RequestState) -> u64 {
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
}

/// That pages of one stage lead to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageLink {
    /// The stage of the pages; `None` for any.
    pub from: Option<String>,
    /// The stage of what they lead to.
    pub to: String,
}

/// What a closing demands beside balance.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosingRules {
    /// At least so many requests, seeds and follow-ups.
    pub min_requests: u64,
    /// At least so many done.
    pub min_done: u64,
    /// At most this share of the ended requests dead; 0 to 1.
    pub max_dead_share: f64,
    /// Every done request has its durable response.
    pub need_captures: bool,
    /// No request at all is as it should be: a plan said so.
    pub may_be_empty: bool,
    /// Where pages were read, some of them must have led on.
    pub links: Vec<StageLink>,
}

impl Default for ClosingRules {
    fn default() -> Self {
        Self {
            min_requests: 1,
            min_done: 1,
            max_dead_share: 0.05,
            need_captures: true,
            may_be_empty: false,
            links: Vec::new(),
        }
    }
}

/// The reasons for which a run is not green, each with an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreachKind {
    /// The run was stopped.
    Stopped,
    /// Requests have not ended: the run stays as it is.
    Unfinished,
    /// Announced is not inserted, duplicate and out of scope together, or rows are missing.
    Unbalanced,
    /// No request at all.
    ZeroSeeds,
    /// Everything is dead.
    AllDead,
    /// Fewer requests than the source must have.
    TooFew,
    /// More dead than is allowed.
    TooManyDead,
    /// A success without bytes.
    MissingCapture,
    /// Fewer requests in a group than a page announced.
    ShortGroup,
    /// No page led on where the rules say that pages do.
    NoLinks,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Which.
    pub kind: BreachKind,
    /// In words, with the numbers.
    pub message: String,
    /// Examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
}

impl ClosingRules {
    /// Everything that is wrong with the books, in the order of [`BreachKind`]; empty for a green run.
    #[must_use]
    pub fn judge(&self, books: &RunBooks) -> Vec<Breach> {
        let mut breaches = Vec::new();
        if let Some(reason) = &books.stopped {
            breaches.push(Breach::new(
                BreachKind::Stopped,
                format!("the run was stopped: {reason}"),
            ));
        }
        if books.unfinished() > 0 {
            breaches.push(unfinished(books));
            // While workers go on, numbers that are read one after the other need not fit.
            return breaches;
        }
        let rows: u64 = books.states.values().sum();
        for message in imbalances(books, rows) {
            breaches.push(Breach::new(BreachKind::Unbalanced, message));
        }
        self.judge_ends(books, rows, &mut breaches);
        if self.need_captures && books.without_capture > 0 {
            let message = format!(
                "{} requests are done without a durable response",
                books.without_capture
            );
            let breach = Breach::new(BreachKind::MissingCapture, message);
            breaches.push(breach.with_samples(books, "without_capture"));
        }
        for (group, expected, found) in &books.short_groups {
            // Named after a page, it counts that page alone.
            let hint = match group.contains("://") {
                true => "; pages that announce one common number need one `group` (docs/parse.md)",
                false => "",
            };
            let message = format!(
                "a page announced {expected} requests in the group `{group}`, {found} are there{hint}"
            );
            breaches.push(Breach::new(BreachKind::ShortGroup, message));
        }
        self.judge_links(books, &mut breaches);
        breaches.extend(books.inherited.iter().cloned());
        breaches.sort_by_key(|breach| breach.kind);
        breaches
    }

    /// CRL-2: stages that nothing leads to any more: a redesign ends here, not in a green day of one page.
    fn judge_links(&self, books: &RunBooks, breaches: &mut Vec<Breach>) {
        let is_reached = |stage: &str| books.stages.get(stage).is_some_and(|s| s.of_date > 0);
        let unreached: BTreeSet<&str> = self.links.iter().map(|link| link.to.as_str()).collect();
        for stage in unreached.into_iter().filter(|stage| !is_reached(stage)) {
            let leads = |from: &str| {
                let mut links = self.links.iter().filter(|link| link.to == stage);
                links.any(|link| link.from.as_deref().is_none_or(|own| own == from))
            };
            let read = books.stages.iter().filter(|(from, _)| leads(from));
            let pages: u64 = read.map(|(_, s)| s.done).sum();
            if pages == 0 {
                continue;
            }
            let message = match books.children.out_of_scope {
                0 => format!(
                    "{pages} pages were read and none has a link to the stage `{stage}`: has the markup changed? Where that may be, the rule of `follow` says `may_be_empty = true`"
                ),
                out => format!(
                    "{pages} pages were read and none led to the stage `{stage}`; {out} links lead to hosts that `hosts` does not name"
                ),
            };
            breaches.push(Breach::new(BreachKind::NoLinks, message));
        }
    }

    /// Too few, too many dead.
    fn judge_ends(&self, books: &RunBooks, rows: u64, breaches: &mut Vec<Breach>) {
        // What is tried again is judged with what it was tried for.
        let (rows, done, dead, with) = match &books.family {
            Some(f) => (f.requests, f.done, f.dead(), ", with the runs before it"),
            None => (
                rows,
                books.state(RequestState::Done),
                books.state(RequestState::Dead),
                "",
            ),
        };
        if rows == 0 && self.may_be_empty {
            return;
        }
        if rows == 0 {
            let message = "the run has no request at all".to_owned();
            breaches.push(Breach::new(BreachKind::ZeroSeeds, message));
            return;
        }
        if dead > 0 && done == 0 {
            let message = format!("all {dead} requests are dead{with}: {}", classes(books));
            let breach = Breach::new(BreachKind::AllDead, message);
            breaches.push(breach.with_samples(books, "dead"));
        }
        if rows < self.min_requests || done < self.min_done {
            let message = format!(
                "{rows} requests and {done} done{with}; the source must have {} and {}",
                self.min_requests, self.min_done
            );
            breaches.push(Breach::new(BreachKind::TooFew, message));
        }
        if done > 0 && share(dead, done + dead) > self.max_dead_share {
            let message = format!(
                "{dead} of {} requests are dead{with}, {:.1} % of at most {:.1} %: {}",
                done + dead,
                share(dead, done + dead) * 100.0,
                self.max_dead_share * 100.0,
                classes(books)
            );
            let breach = Breach::new(BreachKind::TooManyDead, message);
            breaches.push(breach.with_samples(books, "dead"));
        }
    }
}

impl Breach {
    fn new(kind: BreachKind, message: String) -> Self {
        Self {
            kind,
            message,
            samples: Vec::new(),
        }
    }

    fn with_samples(mut self, books: &RunBooks, name: &str) -> Self {
        self.samples
            .extend(books.samples.get(name).cloned().unwrap_or_default());
        self
    }
}

fn unfinished(books: &RunBooks) -> Breach {
    let states = [
        RequestState::Pending,
        RequestState::InFlight,
        RequestState::Failed,
    ];
    let counts = states
        .map(|s| format!("{} {}", books.state(s), s.as_str()))
        .join(", ");
    let message = format!("{} requests have not ended: {counts}", books.unfinished());
    let breach = Breach::new(BreachKind::Unfinished, message);
    states
        .iter()
        .fold(breach, |breach, s| breach.with_samples(books, s.as_str()))
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a share of counts far below 2^52"
)]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn classes(books: &RunBooks) -> String {
    let dead = match &books.family {
        Some(family) => &family.dead_classes,
        None => &books.dead_classes,
    };
    let mut all: Vec<(&String, &u64)> = dead.iter().collect();
    all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let texts: Vec<String> = all
        .iter()
        .take(6)
        .map(|(class, n)| format!("{n} {class}"))
        .collect();
    texts.join(", ")
}

fn imbalances(books: &RunBooks, rows: u64) -> Vec<String> {
    let mut messages = Vec::new();
    for (name, stats, found) in [
        ("seeds", books.seeds, books.seed_rows),
        ("follow-ups", books.children, books.child_rows),
    ] {
        if !stats.balances() {
            messages.push(format!(
                "{} {name} were announced, but {} are accounted for: {} new, {} duplicate, {} out of scope",
                stats.announced,
                stats.inserted + stats.duplicate + stats.out_of_scope,
                stats.inserted,
                stats.duplicate,
                stats.out_of_scope
            ));
        }
        if stats.inserted != found {
            messages.push(format!(
                "{} {name} were inserted, but {found} are there",
                stats.inserted
            ));
        }
    }
    let counted = [
        ("enqueued", books.progress_enqueued, rows),
        ("done", books.progress_done, books.state(RequestState::Done)),
        ("dead", books.progress_dead, books.state(RequestState::Dead)),
    ];
    for (name, counted, there) in counted {
        if counted != there {
            messages.push(format!(
                "the workers counted {counted} {name}, but {there} are there"
            ));
        }
    }
    messages
}

/// That a person took a red run as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Who; absent where no name is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When, by the database's clock.
    pub at: Instant,
    /// Why, in that person's words.
    pub note: String,
}

/// The result of a closing, kept with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosingRecord {
    /// Whether the run is green.
    pub pass: bool,
    /// Why it is not.
    pub breaches: Vec<Breach>,
    /// That a person took it as it is; absent where nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
}

impl ClosingRecord {
    /// Whether others may build on the run: it is green, or a person took it as it is.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.pass || self.accepted.is_some()
    }
}

impl Queue {
    /// Counts the books of a run. Walks over all its rows.
    pub async fn read_books(&self, run_id: i64) -> Result<RunBooks> {
        let mut tx = self.reading("count the books of the run").await?;
        let counted = count_books(&mut tx, run_id).await;
        counted.map_err(|e| e.into_error("count the books of the run", self.place()))
    }

    /// Closes the run: counts its books, judges them and keeps the result. While requests have not ended
    /// the run stays as it is, and the answer says which; a closed run answers as it did before.
    ///
    /// # Errors
    /// `PreconditionFailed` while it is seeding.
    pub async fn close_run(
        &self,
        run_id: i64,
        rules: &ClosingRules,
    ) -> Result<(RunRecord, ClosingRecord)> {
        let closed = in_tx!(&self.db, "close the run", |tx| {
            let run = require_state(
                &mut tx,
                run_id,
                &[RunState::Open, RunState::Sealed, RunState::Closed],
            )
            .await?;
            if run.state == RunState::Closed {
                let record = closing_of(&run)?;
                return Ok((run, record));
            }
            let books = count_books(&mut tx, run_id).await?;
            let breaches = rules.judge(&books);
            let record = ClosingRecord {
                pass: breaches.is_empty(),
                breaches,
                accepted: None,
            };
            if books.unfinished() > 0 {
                return Ok((run, record));
            }
            let text = serde_json::to_string(&record).unwrap_or_default();
            let sql = "UPDATE queue_run SET state = 3, closing = ?, closed_at = {now}, \
                sealed_at = coalesce(sealed_at, {now}) WHERE id = ? AND state IN (1, 2)";
            let changed = tx.execute(sql, values![text, run_id]).await?;
            expect_one(changed, &run)?;
            let detail = serde_json::json!({ "run": run.key.to_string(), "pass": record.pass });
            put_event(&mut tx, Some(run_id), "run_closed", &detail).await?;
            Ok((get_run(&mut tx, run_id).await?, record))
        })?;
        // A closing is told to others: it must survive a power failure.
        self.db.make_durable().await?;
        Ok(closed)
    }
}

pub(super) fn closing_of(run: &RunRecord) -> Result<ClosingRecord> {
    let text = run.closing.as_deref().unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|e| Error::corrupt(format!("the closing of the run `{}`", run.key)).caused_by(e))
}

async fn count_books(tx: &mut Tx, run_id: i64) -> Result<RunBooks, Fault> {
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
async fn inherit(tx: &mut Tx, run: &RunRecord, family: &[i64]) -> Result<Vec<Breach>, Fault> {
    let mut inherited = Vec::new();
    for id in family.iter().filter(|id| **id != run.id) {
        let other = get_run(tx, *id).await?;
        if other.state != RunState::Closed {
            continue;
        }
        let record = closing_of(&other)?;
        if record.accepted.is_some() {
            continue;
        }
        for breach in record.breaches {
            let stays = match breach.kind {
                BreachKind::Unbalanced | BreachKind::MissingCapture => true,
                BreachKind::Stopped => breach.message.contains(PACK_REFUSED),
                _ => false,
            };
            let message = format!("of the run `{}`: {}", other.key.run, breach.message);
            if stays {
                inherited.push(Breach { message, ..breach });
            }
        }
    }
    Ok(inherited)
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
         WHERE r.source = ? AND r.dt = ? GROUP BY l.stage",
        listed(family)
    );
    let key = &run.key;
    let values = values![key.source.as_str(), key.date.to_string()];
    for row in tx.rows(&sql, values).await? {
        let stage = StageBooks {
            of_date: unsigned(row.int(1)?),
            done: unsigned(row.int(2)?),
        };
        books.stages.insert(row.text(0)?, stage);
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
