//! What died is tried again: a successor run with the dead requests of a closed one, or of the whole family.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind, Result};
use crate::name::ErrorClass;
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, values};
use crate::queue::family::{family_of, listed, requests_of};
use crate::queue::run_row::{GOING, no_run};
use crate::queue::{
    Coverage, LeaseHolder, LeaseOutcome, NewRequest, Queue, RunOptions, RunRecord, RunState,
};
use crate::spec::RunKey;
use crate::time::{Clock, unique_id};

/// What the names of leases of retries begin with; source, date and the first run follow.
const RETRY_LEASES: &str = "retry ";
/// How long a retry that fell silent stands in the way of others of its family, microseconds.
const LEASE_US: i64 = 60_000_000;
/// Requests that are put into the new run at once.
const SEEDS_PAGE: usize = 500;

/// The one retry of a family that is being made.
struct Turn {
    name: String,
    token: String,
}

impl Turn {
    async fn take(queue: &Queue, first: &RunKey) -> Result<Self> {
        let token = unique_id(&Clock::System);
        let turn = Self {
            name: format!(
                "{RETRY_LEASES}{} {} {}",
                first.source, first.date, first.run
            ),
            token: token.clone(),
        };
        let holder = LeaseHolder {
            place: token.clone(),
            token,
            name: format!("process {}", std::process::id()),
        };
        match queue.take_lease(&turn.name, &holder, LEASE_US).await? {
            LeaseOutcome::Taken => Ok(turn),
            LeaseOutcome::Held(held) => Err(Error::conflict(format!(
                "another retry of `{first}` is being made by {}",
                held.holder
            ))
            .hint(
                "wait for it, or a minute where it was killed, and look at `lakebed queue status`",
            )
            .retryable()),
        }
    }

    async fn hold(&self, queue: &Queue) -> Result<()> {
        match queue.hold_lease(&self.name, &self.token, LEASE_US).await? {
            true => Ok(()),
            false => Err(Error::conflict(
                "this retry fell silent for too long, and another one took its place",
            )
            .retryable()),
        }
    }

    async fn end(self, queue: &Queue) -> Result<()> {
        queue.give_lease_back(&self.name, &self.token).await
    }
}

/// A request that is dead in all runs of its family: its last row.
struct Dead {
    id: i64,
    class: String,
}

/// Why there is nothing to try again, and what is dead instead.
fn nothing_dead(run: &RunKey, class: Option<&ErrorClass>, (all, revived): (&[Dead], u64)) -> Error {
    let mut dead: BTreeMap<&str, u64> = BTreeMap::new();
    for one in all {
        *dead.entry(&one.class).or_default() += 1;
    }
    let RunKey { source, date, run } = run;
    let of = format!("of `{source}` on {date}, run `{run}`");
    let Some(class) = class.filter(|_| !dead.is_empty()) else {
        let error = Error::precondition(format!(
            "no request {of} is dead: there is nothing to try again"
        ));
        let error = match revived {
            0 => error,
            n => error.hint(format!(
                "{n} that were dead are done, or tried again, in a run after it"
            )),
        };
        return error.hint("what a run lacks beside dead requests comes with another run of the date, or is accepted by a person: `lakebed crawl close --accept --note TEXT`");
    };
    let there: Vec<String> = dead.iter().map(|(c, n)| format!("{n} {c}")).collect();
    Error::precondition(format!("no request {of} is dead of class `{class}`"))
        .hint(format!("dead are: {}", there.join(", ")))
}

/// That what died is being tried again: two retries at once would be judged without each other.
fn still_open(run: &RunKey, retry: &str) -> Error {
    let RunKey { source, date, .. } = run;
    Error::precondition(format!(
        "`{retry}` of `{source}` on {date} tries again what died, and has not ended"
    ))
    .hint(format!(
        "`lakebed crawl {source} --date {date} --run {retry}` goes on with it; then what is dead still is tried again"
    ))
}

impl Queue {
    /// Tries again what is dead in a closed run and in its whole family, in a successor run that is opened with it: the
    /// first closing stands. `class` picks what died last of that class.
    ///
    /// # Errors
    /// `PreconditionFailed` where the run is not closed, where nothing is dead, or where the name is that of another run;
    /// `Conflict` while another retry of the family is being made.
    pub async fn retry_run(
        &self,
        run_id: i64,
        name: &RunKey,
        class: Option<&ErrorClass>,
    ) -> Result<RunRecord> {
        let old = self.get_run(run_id).await?;
        if old.state != RunState::Closed {
            return Err(Error::precondition(format!(
                "the run `{}` is {}, not closed",
                old.key,
                old.state.as_str()
            ))
            .hint("while it is open, workers try its requests again by themselves"));
        }
        let turn = Turn::take(self, &self.first_of(run_id).await?.key).await?;
        let made = self.make_retry(&turn, &old, name, class).await;
        turn.end(self).await?;
        made.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::conflict(format!(
                "the run `{}` was pruned while its dead requests were to be tried again",
                old.key
            ))
            .hint("`lakebed queue prune` keeps a run that is red and that nobody accepted, unless it is told `--red`"),
            _ => e,
        })
    }

    async fn make_retry(
        &self,
        turn: &Turn,
        old: &RunRecord,
        name: &RunKey,
        class: Option<&ErrorClass>,
    ) -> Result<RunRecord> {
        // Counted before anything is made: a run that nobody seeds would stand in the way of its date for ever.
        let family = self.list_ended(old, name).await?;
        let all = self.list_dead(&family).await?;
        let is_wanted = |dead: &&Dead| class.is_none_or(|class| class.as_str() == dead.class);
        let wanted: Vec<&Dead> = all.iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            // Rows that a prune has taken died not, nor were they tried again.
            let _still_there = self.get_run(old.id).await?;
            let ended = self.count_revived(&family).await?;
            return Err(nothing_dead(&old.key, class, (&all, ended)));
        }
        let options = RunOptions {
            coverage: Coverage::Partial,
            successor_of: Some(old.id),
            deadline_us: None,
        };
        let run = self.create_run(name, &options).await?;
        if run.successor_of != options.successor_of {
            return Err(Error::precondition(format!(
                "there is a run `{name}` already, which tries nothing of `{}` again",
                old.key
            ))
            .hint("give the retry another name with `--as`"));
        }
        if !self.begin_seeding(run.id).await? {
            return Err(
                Error::conflict(format!("another process seeds the run `{}`", run.key)).retryable(),
            );
        }
        for page in wanted.chunks(SEEDS_PAGE) {
            turn.hold(self).await?;
            let mut seeds = Vec::with_capacity(page.len());
            for dead in page {
                seeds.push(self.read_request(dead.id).await?);
            }
            let _stats = self.add_seeds(run.id, &seeds, 0).await?;
        }
        let announced = wanted.len() as u64;
        self.open_run(run.id, announced, &format!("retry of run {}", old.id))
            .await
    }

    /// The numbers of the runs of the family, but for that one where a retry that died left it unopened.
    ///
    /// # Errors
    /// `PreconditionFailed` where a retry died and left another one so, or where one has not ended.
    async fn list_ended(&self, run: &RunRecord, name: &RunKey) -> Result<Vec<i64>> {
        let mut tx = self.reading("look for the runs of the family").await?;
        let family = async {
            let mut family = family_of(&mut tx, run).await?;
            let sql = format!(
                "SELECT id, run, state FROM queue_run WHERE id IN ({}) AND state <> 3 ORDER BY id",
                listed(&family)
            );
            for row in tx.rows(&sql, &[]).await? {
                let (id, begun, state) = (row.int(0)?, row.text(1)?, row.int(2)?);
                if state == GOING {
                    return Err(Fault::from(no_run(id)));
                }
                if RunState::of_code(state)? != RunState::Seeding {
                    return Err(Fault::from(still_open(&run.key, &begun)));
                }
                if begun != name.run.as_str() {
                    return Err(Fault::from(
                        Error::precondition(format!(
                            "a retry of `{}` began `{begun}` and did not end",
                            run.key
                        ))
                        .hint(format!(
                            "the same command with `--as {begun}` goes on with it"
                        )),
                    ));
                }
                family.retain(|known| *known != id);
            }
            Ok::<_, Fault>(family)
        };
        family
            .await
            .map_err(|e| e.into_error("look for the runs of the family", self.place()))
    }

    /// What is dead in all runs of the family, in the order of its last rows.
    async fn list_dead(&self, family: &[i64]) -> Result<Vec<Dead>> {
        let mut tx = self.reading("list what is dead").await?;
        let listed = async {
            let sql = format!(
                "SELECT s.id, s.class FROM {} k JOIN queue_request_state s ON s.id = k.last_id \
                 WHERE k.is_alive = 0 ORDER BY s.id",
                requests_of(family)
            );
            let mut all = Vec::new();
            for row in tx.rows(&sql, &[]).await? {
                all.push(Dead {
                    id: row.int(0)?,
                    class: row.maybe_text(1)?.unwrap_or_default(),
                });
            }
            Ok::<_, Fault>(all)
        };
        listed
            .await
            .map_err(|e| e.into_error("list what is dead", self.place()))
    }

    /// How many requests died in one run of the family, and are done or under way in another.
    async fn count_revived(&self, family: &[i64]) -> Result<u64> {
        let mut tx = self.reading("count what was tried again").await?;
        let counted = async {
            let requests = requests_of(family);
            let sql = format!(
                "SELECT count(*) FROM {requests} k WHERE k.has_died = 1 AND k.is_alive = 1"
            );
            Ok::<_, Fault>(unsigned(tx.int(&sql, &[]).await?))
        };
        counted
            .await
            .map_err(|e| e.into_error("count what was tried again", self.place()))
    }

    /// The request as it was enqueued; unique within its run from now on.
    async fn read_request(&self, id: i64) -> Result<NewRequest> {
        let mut tx = self.reading("read the request").await?;
        let read = async {
            let sql = "SELECT l.stage, q.method, q.url, q.headers, q.body, q.carry FROM queue_request q \
                JOIN queue_lane l ON l.id = q.lane_id WHERE q.id = ?";
            let row = tx.row(sql, values![id]).await?;
            let row = row.ok_or_else(|| Error::not_found(format!("request number `{id}`")))?;
            let headers = row
                .maybe_text(3)?
                .and_then(|t| serde_json::from_str(&t).ok());
            Ok::<_, Fault>(NewRequest {
                method: row.text(1)?,
                headers: headers.unwrap_or_default(),
                body: row.maybe_bytes(4)?,
                carry: row.maybe_text(5)?,
                ..NewRequest::get(row.text(0)?.parse()?, row.text(2)?)
            })
        };
        read.await
            .map_err(|e| e.into_error("read the request", self.place()))
    }
}
