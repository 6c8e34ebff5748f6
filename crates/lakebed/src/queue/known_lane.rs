//! Claims from the lane that gave the whole batch to the claim before: one statement instead of a look at
//! run, worker, lanes and facts one after the other (QUE-2).
//!
//! The statement itself asks whether the run may be claimed from, the worker lives and the host wants to be
//! asked. Where it brings nothing, the long way says why. It is for claims without limits of hosts: a
//! host's places and moments are counted in its row, which takes a transaction.

use crate::error::{Error, Result};
use crate::queue::cell::{bytes_of_hex, len};
use crate::queue::claim::{ClaimPlace, Facts, claim_of, no_facts};
use crate::queue::db::{DbRow, Dialect, Fault, Tries, values};
use crate::queue::mark::{KnownLane, Watermark};
use crate::queue::{Claim, ClaimOptions, Queue, Worker};

/// Run, worker and host are as a claim wants them. Parameters: worker, lane, run.
macro_rules! may_claim {
    ($worker:literal, $lane:literal, $run:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM queue_run r JOIN queue_worker w ON w.id = ",
            $worker,
            " AND w.state = 0 JOIN queue_lane l ON l.id = ",
            $lane,
            " JOIN queue_host h ON h.id = l.host_id AND h.blocked_until <= {now} WHERE r.id = ",
            $run,
            " AND r.state IN (1, 2) AND r.stopped IS NULL)"
        )
    };
}

/// Numbers that are taken go through an array: however many the planner expects, it reads them by their key, so
/// that one plan serves all claims.
const CLAIM_POSTGRES: &str = concat!(
    "WITH c AS MATERIALIZED (SELECT id FROM queue_request_state \
     WHERE lane_id = $1 AND state IN (0, 3) AND not_before <= {now} AND (priority, not_before, id) > ($2, $3, $4) AND ",
    may_claim!("$6", "$1", "$7"),
    " ORDER BY priority, not_before, id LIMIT $5 FOR UPDATE SKIP LOCKED), \
     u AS (UPDATE queue_request_state SET state = 1, attempt = attempt + 1, worker_id = $6, slot = 0, held_until = {now} + $8 \
     WHERE run_id = $7 AND id = ANY (ARRAY(SELECT id FROM c)) RETURNING id, attempt, failures, priority, not_before) \
     SELECT u.id, u.attempt, u.failures, u.priority, u.not_before, q.request_key, q.method, q.url, q.headers, q.body, q.carry \
     FROM u CROSS JOIN LATERAL (SELECT * FROM queue_request f WHERE f.id = u.id LIMIT 1) q"
);

/// An update of SQLite answers with its own row alone; what is known of the request comes through one look at it, and
/// all of it as one JSON array, since the driver copies cell by cell. A limit that is a parameter by itself would have
/// SQLite plan the statement anew at each call.
const CLAIM_SQLITE: &str = concat!(
    "UPDATE queue_request_state SET state = 1, attempt = attempt + 1, worker_id = ?6, slot = 0, held_until = {now} + ?8 \
     WHERE (run_id, id) IN (SELECT run_id, id FROM queue_request_state INDEXED BY queue_request_ready \
     WHERE lane_id = ?1 AND state IN (0, 3) AND not_before <= {now} AND (priority, not_before, id) > (?2, ?3, ?4) AND ",
    may_claim!("?6", "?1", "?7"),
    " ORDER BY priority, not_before, id LIMIT CAST(?5 AS INTEGER)) RETURNING id, (SELECT json_array(attempt, failures, priority, \
     not_before, hex(q.request_key), q.method, q.url, q.headers, iif(q.body IS NULL, NULL, hex(q.body)), q.carry) \
     FROM queue_request q WHERE q.id = queue_request_state.id)"
);

/// The rows are locked in the inner look alone.
const LOOK_MYSQL: &str = concat!(
    "SELECT c.id, c.attempt, c.failures, c.priority, c.not_before, q.request_key, q.method, q.url, q.headers, q.body, q.carry \
     FROM (SELECT id, attempt + 1 AS attempt, failures, priority, not_before \
     FROM queue_request_state FORCE INDEX (queue_request_ready) WHERE ready = ? AND not_before <= {now} \
     ORDER BY priority, not_before, id LIMIT ? FOR UPDATE SKIP LOCKED) c JOIN queue_request q ON q.id = c.id WHERE ",
    may_claim!("?", "?", "?")
);

impl Queue {
    /// Takes up to `limit` rows of the lane that the run's last claim took its whole batch from. `None` where there is
    /// no such lane, or it has nothing that may be taken.
    pub(super) async fn claim_known(
        &self,
        worker: &Worker,
        options: &ClaimOptions,
    ) -> Result<Option<Vec<Claim>>> {
        let Some(lane) = self.memory.known_lane(options.run_id) else {
            return Ok(None);
        };
        let mark = self.memory.watermark(lane.id);
        let fits = options.stages.is_empty() || options.stages.contains(&lane.stage);
        if options.hosts.is_some() || !fits || !mark.is_set() {
            return Ok(None);
        }
        let rows = match self.db.dialect() {
            Dialect::Mysql => self.take_in_mysql(worker, options, &lane).await?,
            Dialect::Sqlite | Dialect::Postgres => {
                let sql = if self.db.dialect() == Dialect::Postgres {
                    CLAIM_POSTGRES
                } else {
                    CLAIM_SQLITE
                };
                let args = values![
                    lane.id,
                    mark.priority,
                    mark.not_before,
                    mark.id,
                    options.limit,
                    worker.id,
                    options.run_id,
                    self.options.max_hold_us
                ];
                self.db.rows_alone("claim requests", sql, args).await?
            }
        };
        let taken: Result<Vec<TakenRow>, Fault> = rows.iter().map(TakenRow::of).collect();
        let mut taken = taken.map_err(|fault| self.fault(fault))?;
        taken.sort_by_key(|row| row.order);
        self.note_taken(options, &lane, &mark, &taken);
        if taken.is_empty() {
            return Ok(None);
        }
        let claims = claims_of(options.run_id, &lane, taken);
        claims.map(Some).map_err(|fault| self.fault(fault))
    }

    /// Sets the mark behind what was taken. A batch that came short ends the short way: what lies before
    /// the mark, and the other lanes, are looked at next.
    fn note_taken(
        &self,
        options: &ClaimOptions,
        lane: &KnownLane,
        mark: &Watermark,
        taken: &[TakenRow],
    ) {
        let last = taken.last().map(|row| row.order);
        let short = len(taken) < i64::from(options.limit);
        let next = mark.next(if short { None } else { last });
        if !next.is_set() {
            self.memory.forget_known_lane(options.run_id);
        }
        self.memory.keep_watermark(lane.id, next);
    }

    fn fault(&self, fault: Fault) -> crate::Error {
        fault.into_error("claim requests", self.place())
    }

    async fn take_in_mysql(
        &self,
        worker: &Worker,
        options: &ClaimOptions,
        lane: &KnownLane,
    ) -> Result<Vec<DbRow>> {
        let mut tries = Tries::new(&self.db, "claim requests");
        loop {
            match self.try_in_mysql(worker, options, lane).await {
                Ok(rows) => return Ok(rows),
                Err(fault) => tries.again(fault).await?,
            }
        }
    }

    async fn try_in_mysql(
        &self,
        worker: &Worker,
        options: &ClaimOptions,
        lane: &KnownLane,
    ) -> Result<Vec<DbRow>, Fault> {
        let mut tx = self.db.begin().await?;
        let args = values![lane.id, options.limit, worker.id, lane.id, options.run_id];
        let rows = tx.rows(LOOK_MYSQL, args).await?;
        if rows.is_empty() {
            tx.rollback().await;
            return Ok(rows);
        }
        let ids = rows.iter().map(|row| Ok(row.int(0)?.to_string()));
        let ids: Result<Vec<String>, sqlx::Error> = ids.collect();
        let (ids, hold) = (ids?.join(", "), self.options.max_hold_us);
        // Numbers alone, so it needs no parameters and goes with its commit.
        let take = format!(
            "UPDATE queue_request_state SET state = 1, attempt = attempt + 1, worker_id = {}, slot = 0, \
             held_until = {{now}} + {hold} WHERE run_id = {} AND id IN ({ids})",
            worker.id, options.run_id
        );
        tx.commit_with(&take).await?;
        Ok(rows)
    }
}

/// A row that was taken.
struct TakenRow {
    /// Priority, not before, number.
    order: (i64, i64, i64),
    attempt: i64,
    failures: i64,
    facts: Facts,
}

/// What SQLite packs: attempt, failures, priority, not before, and the facts.
type PackedRow = (
    i64,
    i64,
    i64,
    i64,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
);

impl TakenRow {
    fn of(row: &DbRow) -> Result<Self, Fault> {
        let id = row.int(0)?;
        if let DbRow::Sqlite(_) = row {
            let packed = row.maybe_text(1)?.ok_or_else(|| no_facts(id))?;
            let (attempt, failures, priority, not_before, key, method, url, headers, body, carry): PackedRow =
                serde_json::from_str(&packed)
                    .map_err(|e| Error::internal(format!("unpack request number `{id}`")).caused_by(e))?;
            return Ok(Self {
                order: (priority, not_before, id),
                attempt,
                failures,
                facts: Facts {
                    request_key: key.to_ascii_lowercase().parse()?,
                    method,
                    url,
                    headers,
                    body: body.as_deref().map(bytes_of_hex).transpose()?,
                    carry,
                },
            });
        }
        Ok(Self {
            order: (row.int(3)?, row.int(4)?, id),
            attempt: row.int(1)?,
            failures: row.int(2)?,
            facts: Facts::of_row(row, 5)?,
        })
    }
}

fn claims_of(run_id: i64, lane: &KnownLane, taken: Vec<TakenRow>) -> Result<Vec<Claim>, Fault> {
    let place = ClaimPlace {
        run_id,
        lane_id: lane.id,
        stage: &lane.stage,
        host: &lane.host,
    };
    let claim = |row: TakenRow| {
        let (_, _, id) = row.order;
        Ok(Claim {
            attempt: u32::try_from(row.attempt).unwrap_or(u32::MAX),
            failures: u32::try_from(row.failures).unwrap_or(u32::MAX),
            ..claim_of(&place, id, row.facts)?
        })
    };
    taken.into_iter().map(claim).collect()
}

/// The short way as each database plans it, with the values it asks for.
#[cfg(test)]
pub(super) fn explain_sql(
    dialect: Dialect,
    lane: i64,
    run_id: i64,
    worker: i64,
) -> (String, Vec<crate::queue::db::Value>) {
    let all = values![
        lane,
        0_i64,
        0_i64,
        5_i64,
        20_i64,
        worker,
        run_id,
        1_000_000_i64
    ];
    match dialect {
        Dialect::Sqlite => (format!("EXPLAIN QUERY PLAN {CLAIM_SQLITE}"), all.to_vec()),
        Dialect::Postgres => (format!("EXPLAIN {CLAIM_POSTGRES}"), all.to_vec()),
        Dialect::Mysql => {
            let args = values![lane, 20_i64, worker, lane, run_id];
            (format!("EXPLAIN FORMAT=JSON {LOOK_MYSQL}"), args.to_vec())
        }
    }
}
