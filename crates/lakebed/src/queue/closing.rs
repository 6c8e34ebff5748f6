//! The closing: the rule that the books of a run balance (QUE-5). [`ClosingRules::judge`] is a pure function over them.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::queue::books::count_books;
use crate::queue::db::{in_tx, values};
use crate::queue::event::put_event;
use crate::queue::run_row::{expect_one, get_run, require_state};
use crate::queue::verdict::{closing_of, is_stop_of_refused};
use crate::queue::{
    Breach, BreachKind, ClosingRecord, LinkBooks, Queue, RequestState, RunBooks, RunRecord,
    RunState,
};

/// That pages of one stage lead to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageLink {
    /// The name of the rule, as the finishes of its pages tell it.
    pub rule: String,
    /// The stage of the pages; `None` for any.
    pub from: Option<String>,
    /// The stage of what they lead to.
    pub to: String,
}

impl StageLink {
    /// Whether it leads to further pages of its own stage.
    fn is_pager(&self) -> bool {
        self.from.as_ref() == Some(&self.to)
    }
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
    /// That the pack was refused; absent where it was not, or where nothing was packed.
    pub refused: Option<Breach>,
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
            refused: None,
        }
    }
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
        breaches.extend(self.refused.clone());
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

    /// CRL-2: rules that nothing comes of any more: a redesign ends here, not in a green day of one page. Links count, not
    /// rows: what a page leads to may be known from elsewhere.
    fn judge_links(&self, books: &RunBooks, breaches: &mut Vec<Breach>) {
        let mut told = BTreeSet::new();
        for link in &self.links {
            let message = match books.links.get(&link.rule) {
                Some(seen) if seen.hits > 0 || seen.pages == 0 => None,
                Some(seen) if link.is_pager() => {
                    let stage = books.stages.get(&link.to).copied().unwrap_or_default();
                    // Every page says how many there are in all, and so many came: there is no further page.
                    let is_whole = stage.announcing >= seen.pages && books.short_groups.is_empty();
                    (!is_whole).then(|| lost_pager(link, seen)).flatten()
                }
                Some(seen) => Some(leads_nowhere(link, seen.pages, books)),
                None if books.links.is_empty() => self.unreached(link, books),
                None => None,
            };
            let message = message.filter(|message| told.insert(message.clone()));
            breaches.extend(message.map(|message| Breach::new(BreachKind::NoLinks, message)));
        }
    }

    /// Of pages that were ended by who told no rules (older programs): whether there is a row of the stage.
    fn unreached(&self, link: &StageLink, books: &RunBooks) -> Option<String> {
        if books.stages.get(&link.to).is_some_and(|s| s.of_date > 0) {
            return None;
        }
        let leads = |from: &str| {
            let mut links = self.links.iter().filter(|other| other.to == link.to);
            links.any(|link| link.from.as_deref().is_none_or(|own| own == from))
        };
        let read = books.stages.iter().filter(|(from, _)| leads(from));
        let pages: u64 = read.map(|(_, s)| s.done).sum();
        (pages > 0).then(|| leads_nowhere(link, pages, books))
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
            has_pack: false,
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

fn leads_nowhere(link: &StageLink, pages: u64, books: &RunBooks) -> String {
    let to = &link.to;
    match books.children.out_of_scope {
        0 => format!(
            "{pages} pages were read and none has a link to the stage `{to}`: has the markup changed? Where that may be, the rule of `follow` says `may_be_empty = true`"
        ),
        out => format!(
            "{pages} pages were read and none led to the stage `{to}`; {out} links lead to hosts that `hosts` does not name"
        ),
    }
}

/// A list of one page is as good as any; one that had more pages the last time is looked at by a person.
fn lost_pager(link: &StageLink, seen: &LinkBooks) -> Option<String> {
    let before = seen.before.as_ref().filter(|before| before.hits > 0)?;
    Some(format!(
        "{} pages of the stage `{}` were read and none has a link to a further one, as {} pages of the run `{}` had: has the markup changed? Where that may be, the rule of `follow` says `may_be_empty = true`",
        seen.pages, link.to, before.hits, before.run
    ))
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

impl Queue {
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

    /// Judges a closed run again that is red for a refused pack: it ends as it would have ended, had the pack been tried
    /// now. Any other closing, and one that was accepted, stands.
    ///
    /// # Errors
    /// `PreconditionFailed` where the run is not closed.
    pub async fn close_run_again(
        &self,
        run_id: i64,
        rules: &ClosingRules,
    ) -> Result<(RunRecord, ClosingRecord)> {
        let closed = in_tx!(&self.db, "close the run again", |tx| {
            let run = require_state(&mut tx, run_id, &[RunState::Closed]).await?;
            let before = closing_of(&run)?;
            if !before.may_be_sealed_again(true) {
                return Ok((run, before));
            }
            if run.stopped.as_deref().is_some_and(is_stop_of_refused) {
                let sql = "UPDATE queue_run SET stopped = NULL WHERE id = ?";
                tx.execute(sql, values![run_id]).await?;
            }
            let breaches = rules.judge(&count_books(&mut tx, run_id).await?);
            let record = ClosingRecord {
                pass: breaches.is_empty(),
                breaches,
                accepted: None,
            };
            if record != before {
                let text = serde_json::to_string(&record).unwrap_or_default();
                let sql = "UPDATE queue_run SET closing = ? WHERE id = ? AND state = 3";
                let changed = tx.execute(sql, values![text, run_id]).await?;
                expect_one(changed, &run)?;
                let detail = serde_json::json!({ "run": run.key.to_string(), "pass": record.pass });
                put_event(&mut tx, Some(run_id), "run_closed", &detail).await?;
            }
            Ok((get_run(&mut tx, run_id).await?, record))
        })?;
        self.db.make_durable().await?;
        Ok(closed)
    }
}
