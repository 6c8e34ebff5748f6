//! Claims: a worker takes a batch of ready requests under its lease (QUE-2).
//!
//! Requests stand in lanes (stage and host of a run). A claim looks at the lanes first, then takes the
//! ready rows of each by the index over unfinished rows alone, in the order (priority, not before,
//! number). With host limits (QUE-6) it takes the host's row first: the next free moments of the host are
//! given out to whoever comes, so that all workers together keep its rate and its places.
//!
//! Each process remembers behind which row it claimed last in a lane and begins there: rows that ended
//! are not walked over again, even where a long-running reader keeps the database from cleaning them
//! up. "Nothing there" is concluded only from a look without that mark.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::name::{RequestKey, StageName};
use crate::queue::cell::{hex, len};
use crate::queue::db::{DbRow, Dialect, Fault, Tx, Value, in_tx, pieces, values};
use crate::queue::mark::{KnownLane, Watermark};
use crate::queue::run_row::no_run;
use crate::queue::tally::rest_lane;
use crate::queue::{Claim, Queue, RunState, Worker};

/// Lanes that one claim looks at.
const MAX_LANES: i64 = 200;
/// Moments of a host are given out at most so far ahead, microseconds.
const HORIZON_US: i64 = 5_000_000;
/// The longest wait a claim that found nothing advises, microseconds.
const MAX_WAIT_US: i64 = 5_000_000;
/// The shortest.
const MIN_WAIT_US: i64 = 50_000;

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct ClaimOptions {
    /// The run.
    pub run_id: i64,
    /// Of these stages alone; empty for all.
    pub stages: Vec<StageName>,
    /// At most so many.
    pub limit: u32,
    /// Limits of the hosts; without them, hosts that asked to wait are still left alone.
    pub hosts: Option<HostLimits>,
}

impl ClaimOptions {
    /// The condition on the lanes `l`, with a place for each stage; empty for all.
    fn of_stages(&self) -> String {
        match self.stages.len() {
            0 => String::new(),
            n => format!(" AND l.stage IN ({})", vec!["?"; n].join(", ")),
        }
    }
}

/// How often hosts may be asked, and by how many at a time, over all workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostLimits {
    /// Of hosts without limits of their own.
    pub usual: HostLimit,
    /// By name of the host.
    pub named: BTreeMap<String, HostLimit>,
}

/// The limit of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimit {
    /// Between the beginnings of two requests, microseconds.
    pub pause_us: i64,
    /// Requests that are under way at once.
    pub max_in_flight: u32,
}

impl Default for HostLimit {
    /// One request a second, one at a time.
    fn default() -> Self {
        Self {
            pause_us: 1_000_000,
            max_in_flight: 1,
        }
    }
}

/// What a claim found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum ClaimOutcome {
    /// These, in the order to work on them.
    Claimed(Vec<Claim>),
    /// Nothing is ready now, but the run has unfinished requests: ask again after so long, microseconds.
    Wait(i64),
    /// Every request of the run has ended.
    Drained,
    /// The run was stopped, with this reason.
    Stopped(String),
}

/// A lane with its host, as a claim sees them.
struct LaneRow {
    id: i64,
    stage: StageName,
    host_id: i64,
    host: String,
    in_flight: i64,
    blocked_until: i64,
}

/// A row that was taken, before its request is read.
struct Taken {
    id: i64,
    attempt: i64,
    failures: i64,
    order: (i64, i64, i64),
    lane: usize,
    wait_us: i64,
    slot: bool,
}

impl Queue {
    /// Takes up to `limit` ready requests for the worker.
    ///
    /// # Errors
    /// `Conflict` where the worker has lost its lease: it must drop what it holds and join again;
    /// `PreconditionFailed` while the run is seeding.
    pub async fn claim(&self, worker: &Worker, options: &ClaimOptions) -> Result<ClaimOutcome> {
        if let Some(claims) = self.claim_known(worker, options).await? {
            return Ok(ClaimOutcome::Claimed(claims));
        }
        in_tx!(&self.db, "claim requests", |tx| {
            let head = read_head(&mut tx, worker, options.run_id).await?;
            if let Some(reason) = head.stopped {
                return Ok(ClaimOutcome::Stopped(reason));
            }
            if head.state == RunState::Closed {
                return Ok(ClaimOutcome::Drained);
            }
            let lanes = read_lanes(&mut tx, options).await?;
            let mut taking = Taking {
                queue: self,
                worker,
                options,
                taken: Vec::new(),
            };
            for (index, lane) in lanes.iter().enumerate() {
                let left = taking.left();
                if left <= 0 {
                    break;
                }
                if lane.blocked_until > head.now {
                    continue;
                }
                match &options.hosts {
                    None => taking.take(&mut tx, lane, index, left).await?,
                    Some(limits) => taking.take_politely(&mut tx, limits, lane, index).await?,
                }
            }
            let taken = taking.taken;
            if taken.is_empty() {
                return why_nothing(&mut tx, options, head.now).await;
            }
            self.keep_known_lane(options, &lanes, &taken);
            Ok(ClaimOutcome::Claimed(
                read_claims(&mut tx, options.run_id, &lanes, taken).await?,
            ))
        })
    }
}

impl Queue {
    /// Where one lane gave all that was asked for, the next claim asks it alone.
    fn keep_known_lane(&self, options: &ClaimOptions, lanes: &[LaneRow], taken: &[Taken]) {
        let whole = len(taken) == i64::from(options.limit);
        if let Some(first) = taken.first()
            && options.hosts.is_none()
            && whole
            && taken.iter().all(|t| t.lane == first.lane)
        {
            let lane = &lanes[first.lane];
            let known = KnownLane {
                id: lane.id,
                stage: lane.stage.clone(),
                host: lane.host.clone(),
            };
            self.memory.keep_known_lane(options.run_id, known);
        }
    }
}

/// What every claim looks at first.
struct Head {
    state: RunState,
    stopped: Option<String>,
    now: i64,
}

async fn read_head(tx: &mut Tx, worker: &Worker, run_id: i64) -> Result<Head, Fault> {
    let sql = "SELECT r.state, r.stopped, w.state, {now} FROM queue_run r LEFT JOIN queue_worker w ON w.id = ? WHERE r.id = ? AND r.state < 4";
    let row = tx.row(sql, values![worker.id, run_id]).await?;
    let row = row.ok_or_else(|| no_run(run_id))?;
    if row.maybe_int(2)? != Some(0) {
        return Err(worker.lost().into());
    }
    let state = RunState::of_code(row.int(0)?)?;
    if state == RunState::Seeding {
        return Err(Error::precondition("the run is still seeding")
            .hint("workers may claim once the seeding has ended; start it again if it died")
            .into());
    }
    Ok(Head {
        state,
        stopped: row.maybe_text(1)?,
        now: row.int(3)?,
    })
}

async fn read_lanes(tx: &mut Tx, options: &ClaimOptions) -> Result<Vec<LaneRow>, Fault> {
    let sql = format!(
        "SELECT l.id, l.stage, h.id, h.name, h.in_flight, h.blocked_until \
         FROM queue_lane l JOIN queue_host h ON h.id = l.host_id WHERE l.run_id = ? AND l.ready = 1 \
         ORDER BY h.next_at, l.id LIMIT {MAX_LANES}"
    );
    let rows = tx.rows(&sql, values![options.run_id]).await?;
    let mut lanes = Vec::with_capacity(rows.len());
    for row in &rows {
        let stage: StageName = row.text(1)?.parse()?;
        if options.stages.is_empty() || options.stages.contains(&stage) {
            lanes.push(LaneRow {
                id: row.int(0)?,
                stage,
                host_id: row.int(2)?,
                host: row.text(3)?,
                in_flight: row.int(4)?,
                blocked_until: row.int(5)?,
            });
        }
    }
    Ok(lanes)
}

/// One claim, lane after lane.
struct Taking<'a> {
    queue: &'a Queue,
    worker: &'a Worker,
    options: &'a ClaimOptions,
    taken: Vec<Taken>,
}

impl Taking<'_> {
    /// How many are still wanted.
    fn left(&self) -> i64 {
        i64::from(self.options.limit) - len(&self.taken)
    }

    /// Takes up to `left` rows of a lane: behind the mark first, then from the beginning.
    async fn take(
        &mut self,
        tx: &mut Tx,
        lane: &LaneRow,
        index: usize,
        left: i64,
    ) -> Result<(), Fault> {
        let before = self.taken.len();
        let spec = TakeSpec {
            run_id: self.options.run_id,
            lane: lane.id,
            worker: self.worker.id,
            hold: self.queue.options.max_hold_us,
            slot: self.options.hosts.is_some(),
        };
        let mark = self.queue.memory.watermark(lane.id);
        let mut rows = take_rows(tx, &spec, &mark, left).await?;
        let short = len(&rows) < left;
        if short && mark.is_set() {
            let rest = left - len(&rows);
            rows.extend(take_rows(tx, &spec, &Watermark::default(), rest).await?);
        }
        for row in &rows {
            self.taken.push(Taken {
                id: row.int(0)?,
                attempt: row.int(1)?,
                failures: row.int(2)?,
                order: (row.int(3)?, row.int(4)?, row.int(0)?),
                lane: index,
                wait_us: 0,
                slot: spec.slot,
            });
        }
        self.taken[before..].sort_by_key(|t| t.order);
        let last = self.taken[before..].last().map(|t| t.order);
        let next = mark.next(if short { None } else { last });
        self.queue.memory.keep_watermark(lane.id, next);
        if rows.is_empty() {
            rest_lane(tx, lane.id).await?;
        }
        Ok(())
    }

    /// As `take`, within what the host still has to give: the row of the host is held meanwhile, and
    /// who finds it held goes on to another host.
    async fn take_politely(
        &mut self,
        tx: &mut Tx,
        limits: &HostLimits,
        lane: &LaneRow,
        index: usize,
    ) -> Result<(), Fault> {
        let limit = limits
            .named
            .get(&lane.host)
            .copied()
            .unwrap_or(limits.usual);
        let places = i64::from(limit.max_in_flight.max(1));
        if lane.in_flight >= places {
            return Ok(());
        }
        let sql =
            "SELECT next_at, in_flight, blocked_until, {now} FROM queue_host WHERE id = ? {skip}";
        let Some(row) = tx.row(sql, values![lane.host_id]).await? else {
            return Ok(());
        };
        let (next_at, in_flight, blocked_until, now) =
            (row.int(0)?, row.int(1)?, row.int(2)?, row.int(3)?);
        if blocked_until > now {
            return Ok(());
        }
        let first = next_at.max(now);
        let moments = match limit.pause_us {
            pause if pause > 0 => (now + HORIZON_US - first).div_euclid(pause) + 1,
            _ => i64::MAX,
        };
        let free = self.left().min(places - in_flight).min(moments);
        if free <= 0 {
            return Ok(());
        }
        let before = self.taken.len();
        self.take(tx, lane, index, free).await?;
        let mut at = first;
        for one in &mut self.taken[before..] {
            one.wait_us = at - now;
            at += limit.pause_us.max(0);
        }
        let count = len(&self.taken[before..]);
        if count > 0 {
            let sql = "UPDATE queue_host SET next_at = ?, in_flight = in_flight + ? WHERE id = ?";
            tx.execute(sql, values![at, count, lane.host_id]).await?;
        }
        Ok(())
    }
}

/// One taking of rows.
struct TakeSpec {
    run_id: i64,
    lane: i64,
    worker: i64,
    hold: i64,
    slot: bool,
}

/// The claim of PostgreSQL. Materialized: the limit holds however the planner joins. The numbers go through an array:
/// however many the planner expects, it reads them by their key.
const TAKE_POSTGRES: &str = "WITH c AS MATERIALIZED (\
    SELECT id FROM queue_request_state \
    WHERE lane_id = $1 AND state IN (0, 3) AND not_before <= {now} AND (priority, not_before, id) > ($2, $3, $4) \
    ORDER BY priority, not_before, id LIMIT $5 FOR UPDATE SKIP LOCKED) \
    UPDATE queue_request_state SET state = 1, attempt = attempt + 1, worker_id = $6, slot = $7, held_until = {now} + $8 \
    WHERE run_id = $9 AND id = ANY (ARRAY(SELECT id FROM c)) \
    RETURNING id, attempt, failures, priority, not_before";

/// The claim of SQLite. The index is named: SQLite says so where its predicate does not fit. A limit that is a
/// parameter by itself would have the statement planned anew at each call.
const TAKE_SQLITE: &str = "UPDATE queue_request_state SET state = 1, attempt = attempt + 1, worker_id = ?6, slot = ?7, held_until = {now} + ?8 \
    WHERE (run_id, id) IN (SELECT run_id, id FROM queue_request_state INDEXED BY queue_request_ready \
    WHERE lane_id = ?1 AND state IN (0, 3) AND not_before <= {now} AND (priority, not_before, id) > (?2, ?3, ?4) \
    ORDER BY priority, not_before, id LIMIT CAST(?5 AS INTEGER)) \
    RETURNING id, attempt, failures, priority, not_before";

/// The look of MySQL: equality on the one generated column, or the sort would lock every ready row.
const LOOK_MYSQL: &str = "SELECT id, attempt + 1, failures, priority, not_before \
    FROM queue_request_state FORCE INDEX (queue_request_ready) WHERE ready = ? AND not_before <= {now} \
    ORDER BY priority, not_before, id LIMIT ? FOR UPDATE SKIP LOCKED";

async fn take_rows(
    tx: &mut Tx,
    spec: &TakeSpec,
    mark: &Watermark,
    left: i64,
) -> Result<Vec<DbRow>, Fault> {
    let slot = i64::from(spec.slot);
    if tx.dialect() != Dialect::Mysql {
        let args = values![
            spec.lane,
            mark.priority,
            mark.not_before,
            mark.id,
            left,
            spec.worker,
            slot,
            spec.hold,
            spec.run_id
        ];
        // SQLite takes the run from the rows.
        let args = if tx.dialect() == Dialect::Sqlite {
            &args[..8]
        } else {
            args
        };
        let sql = if tx.dialect() == Dialect::Postgres {
            TAKE_POSTGRES
        } else {
            TAKE_SQLITE
        };
        return Ok(tx.rows(sql, args).await?);
    }
    if mark.is_set() {
        // InnoDB cleans its index up by itself; the mark would not narrow the range there.
        return Box::pin(take_rows(tx, spec, &Watermark::default(), left)).await;
    }
    let rows = tx.rows(LOOK_MYSQL, values![spec.lane, left]).await?;
    for piece in pieces(&rows) {
        let marks = vec!["?"; piece.len()].join(", ");
        let sql = format!(
            "UPDATE queue_request_state SET state = 1, attempt = attempt + 1, worker_id = ?, slot = ?, \
             held_until = {{now}} + ? WHERE run_id = ? AND id IN ({marks})"
        );
        let mut args = vec![
            spec.worker.into(),
            slot.into(),
            spec.hold.into(),
            spec.run_id.into(),
        ];
        for row in piece {
            args.push(Value::from(row.int(0)?));
        }
        tx.execute(&sql, &args).await?;
    }
    Ok(rows)
}

/// Why a claim found nothing: looked up without marks and without the lanes' rest.
async fn why_nothing(tx: &mut Tx, options: &ClaimOptions, now: i64) -> Result<ClaimOutcome, Fault> {
    let ready = if tx.dialect() == Dialect::Mysql {
        "s.ready = l.id"
    } else {
        "s.lane_id = l.id AND s.state IN (0, 3)"
    };
    let wake = format!(
        "UPDATE queue_lane SET ready = 1 WHERE run_id = ? AND ready = 0 AND EXISTS \
         (SELECT 1 FROM queue_request_state s WHERE {})",
        ready.replace("l.id", "queue_lane.id")
    );
    let woken = tx.execute(&wake, values![options.run_id]).await?;
    // Of some stages: what others wait for is not theirs to wait for.
    let (of_stages, mut args) = (options.of_stages(), vec![Value::from(options.run_id)]);
    args.extend(options.stages.iter().map(|stage| stage.as_str().into()));
    let soonest = format!(
        "SELECT min(CASE WHEN h.blocked_until > s.not_before THEN h.blocked_until ELSE s.not_before END), \
         min(h.next_at) FROM queue_lane l JOIN queue_host h ON h.id = l.host_id \
         JOIN queue_request_state s ON {ready} WHERE l.run_id = ?{of_stages}"
    );
    let row = tx.row(&soonest, &args).await?;
    if let Some(row) = row
        && let Some(at) = row.maybe_int(0)?
    {
        let at = at.max(row.maybe_int(1)?.unwrap_or(0) - HORIZON_US);
        let wait = if woken > 0 {
            MIN_WAIT_US
        } else {
            (at - now).clamp(MIN_WAIT_US, MAX_WAIT_US)
        };
        return Ok(ClaimOutcome::Wait(wait));
    }
    // Whether any is in flight: by the counts, not by a walk over what has ended.
    let open = format!(
        "SELECT CAST(coalesce(sum(p.enqueued - p.done - p.dead), 0) AS {{int}}) \
         FROM queue_lane l JOIN queue_progress p ON p.lane_id = l.id WHERE l.run_id = ?{of_stages}"
    );
    if tx.int(&open, &args).await? > 0 {
        return Ok(ClaimOutcome::Wait(MIN_WAIT_US * 4));
    }
    Ok(ClaimOutcome::Drained)
}

/// The requests of the rows that were taken.
async fn read_claims(
    tx: &mut Tx,
    run_id: i64,
    lanes: &[LaneRow],
    taken: Vec<Taken>,
) -> Result<Vec<Claim>, Fault> {
    let ids: Vec<i64> = taken.iter().map(|t| t.id).collect();
    let mut facts: BTreeMap<i64, DbRow> = BTreeMap::new();
    for (sql, args) in facts_sql(tx.dialect(), &ids) {
        for row in tx.rows(&sql, &args).await? {
            facts.insert(row.int(0)?, row);
        }
    }
    let mut claims = Vec::with_capacity(taken.len());
    for one in taken {
        let row = facts.get(&one.id).ok_or_else(|| no_facts(one.id))?;
        let lane = &lanes[one.lane];
        let place = ClaimPlace {
            run_id,
            lane_id: lane.id,
            stage: &lane.stage,
            host: &lane.host,
        };
        claims.push(Claim {
            attempt: u32::try_from(one.attempt).unwrap_or(u32::MAX),
            failures: u32::try_from(one.failures).unwrap_or(u32::MAX),
            wait_us: one.wait_us,
            holds_slot: one.slot,
            ..claim_of(&place, one.id, Facts::of_row(row, 1)?)?
        });
    }
    Ok(claims)
}

/// What a claim carries of its request.
const FACTS: &str = "request_key, method, url, headers, body, carry";

/// The statements that read the facts of these requests, with their values.
fn facts_sql(dialect: Dialect, ids: &[i64]) -> Vec<(String, Vec<Value>)> {
    let all = |of: &str, value| {
        let sql = format!("SELECT id, {FACTS} FROM queue_request WHERE id {of}");
        vec![(sql, vec![value])]
    };
    match dialect {
        Dialect::Postgres => all(
            "= ANY (?)",
            Value::Ints(ids.iter().copied().map(Some).collect()),
        ),
        Dialect::Sqlite => all("IN (SELECT value FROM json_each(?))", json_of(ids)),
        Dialect::Mysql => pieces(ids)
            .map(|piece| {
                let marks = vec!["?"; piece.len()].join(", ");
                let sql = format!("SELECT id, {FACTS} FROM queue_request WHERE id IN ({marks})");
                (sql, piece.iter().map(|id| (*id).into()).collect())
            })
            .collect(),
    }
}

/// Numbers as one JSON array.
fn json_of(ids: &[i64]) -> Value {
    serde_json::json!(ids).to_string().into()
}

/// Where a claimed request belongs.
pub(super) struct ClaimPlace<'a> {
    pub(super) run_id: i64,
    pub(super) lane_id: i64,
    pub(super) stage: &'a StageName,
    pub(super) host: &'a str,
}

pub(super) fn no_facts(id: i64) -> Error {
    Error::corrupt(format!("request number `{id}` has a state and no facts"))
}

/// What a claim carries of its request, as the database gives it.
pub(super) struct Facts {
    pub(super) request_key: RequestKey,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Option<String>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) carry: Option<String>,
}

impl Facts {
    /// From the columns `first` and behind it.
    pub(super) fn of_row(row: &DbRow, first: usize) -> Result<Self, Fault> {
        Ok(Self {
            request_key: hex(&row.bytes(first)?).parse()?,
            method: row.text(first + 1)?,
            url: row.text(first + 2)?,
            headers: row.maybe_text(first + 3)?,
            body: row.maybe_bytes(first + 4)?,
            carry: row.maybe_text(first + 5)?,
        })
    }
}

/// The claim of a request; first attempt, no wait.
pub(super) fn claim_of(place: &ClaimPlace<'_>, id: i64, facts: Facts) -> Result<Claim, Fault> {
    let headers = facts.headers.map(|t| serde_json::from_str(&t)).transpose();
    Ok(Claim {
        run_id: place.run_id,
        id,
        lane_id: place.lane_id,
        attempt: 1,
        failures: 0,
        request_key: facts.request_key,
        stage: place.stage.clone(),
        host: place.host.to_owned(),
        method: facts.method,
        url: facts.url,
        headers: headers
            .map_err(|e| {
                Error::corrupt(format!("the headers of request number `{id}`")).caused_by(e)
            })?
            .unwrap_or_default(),
        body: facts.body,
        carry: facts.carry,
        wait_us: 0,
        holds_slot: false,
    })
}

/// How the database looks for ready rows of a lane, and in which column of the answer the plan stands.
#[cfg(test)]
pub(super) fn explain_sql(dialect: Dialect) -> (&'static str, usize) {
    match dialect {
        Dialect::Sqlite => (
            "EXPLAIN QUERY PLAN SELECT run_id, id FROM queue_request_state INDEXED BY queue_request_ready \
             WHERE lane_id = ? AND state IN (0, 3) AND not_before <= {now} AND (priority, not_before, id) > (0, 0, 5) \
             ORDER BY priority, not_before, id LIMIT 20",
            3,
        ),
        Dialect::Postgres => (
            "EXPLAIN SELECT run_id, id FROM queue_request_state WHERE lane_id = ? AND state IN (0, 3) \
             AND not_before <= {now} AND (priority, not_before, id) > (0, 0, 5) \
             ORDER BY priority, not_before, id LIMIT 20 FOR UPDATE SKIP LOCKED",
            0,
        ),
        Dialect::Mysql => (
            "EXPLAIN FORMAT=JSON SELECT id, attempt + 1, failures, priority, not_before FROM queue_request_state \
             FORCE INDEX (queue_request_ready) WHERE ready = ? AND not_before <= {now} \
             ORDER BY priority, not_before, id LIMIT 20 FOR UPDATE SKIP LOCKED",
            0,
        ),
    }
}
