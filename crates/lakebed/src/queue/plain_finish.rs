//! Successes that bring nothing along: no follow-up, no expectation, no rule that looked for links (QUE-1, QUE-2, QUE-6). Where all of a batch are of
//! the lane that was claimed from last and hold no place, they are ended by one call that ends them all or none
//! (`whole_finish`); a batch of which one is lost, or of another lane, or holds a place, comes here: one
//! call of PostgreSQL and of SQLite, and a short transaction of MySQL, with every guard of the long way.
//!
//! A row that is done keeps its `slot`: it says what the finish gave back, and counts only in flight.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::error::Result;
use crate::queue::cell::{len, signed};
use crate::queue::db::{DbRow, Dialect, Fault, Tx, Value, in_tx, values};
use crate::queue::finish::{capture_bytes, expect_changed, mark_of};
use crate::queue::tally::{Progress, add_progress, free_places};
use crate::queue::{DoneSpec, Finish, FinishKind, Queue, Worker};

/// The rows of the batch that are still this worker's, in SQLite.
macro_rules! ours {
    () => {
        ours!("")
    };
    ($join:literal) => {
        concat!(
            "FROM json_each(?1) d CROSS JOIN queue_request_state s ON s.run_id = ?2 AND s.id = d.value ->> 0 ",
            "AND s.attempt = d.value ->> 1 ",
            $join,
            " WHERE s.state = 1 AND s.worker_id = ?3"
        )
    };
}

/// Ends the rows, adds to the counts of their lanes, frees the places of their hosts and counts what came
/// after the closing.
const FINISH_POSTGRES: &str = "WITH u AS (UPDATE queue_request_state s SET state = 2, class = NULL, capture = d.capture, \
    status = d.status, announced = d.announced, inserted = 0, duplicate = 0, out_of_scope = d.announced, ended_at = {now}, \
    body_mark = d.body_mark FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[]) \
    AS d (id, attempt, capture, status, announced, body_mark) \
    WHERE s.run_id = $7 AND s.id = d.id AND s.attempt = d.attempt AND s.state = 1 AND s.worker_id = $8 \
    RETURNING s.id, s.lane_id, s.slot), \
    p AS (INSERT INTO queue_progress AS p (lane_id, worker_id, enqueued, done, dead, failed) \
    SELECT lane_id, $8, 0, count(*), 0, 0 FROM u GROUP BY lane_id \
    ON CONFLICT (lane_id, worker_id) DO UPDATE SET done = p.done + excluded.done), \
    h AS (UPDATE queue_host h SET in_flight = CASE WHEN h.in_flight > x.places THEN h.in_flight - x.places ELSE 0 END \
    FROM (SELECT l.host_id, CAST(sum(u.slot) AS BIGINT) AS places FROM u JOIN queue_lane l ON l.id = u.lane_id \
    WHERE u.slot = 1 GROUP BY l.host_id) x WHERE h.id = x.host_id), \
    r AS (UPDATE queue_run SET late_finishes = late_finishes + $9 - (SELECT count(*) FROM u) \
    WHERE id = $7 AND state = 3 AND (SELECT count(*) FROM u) < $9) \
    SELECT id FROM u";

/// One call: what will end is counted first, by the same conditions, and the update answers with what ended.
const FINISH_SQLITE: &str = concat!(
    "BEGIN IMMEDIATE; \
     INSERT INTO queue_progress AS p (lane_id, worker_id, enqueued, done, dead, failed) \
     SELECT s.lane_id, ?3, 0, count(*), 0, 0 ",
    ours!(),
    " GROUP BY s.lane_id \
     ON CONFLICT (lane_id, worker_id) DO UPDATE SET done = p.done + excluded.done; \
     UPDATE queue_host AS h SET in_flight = CASE WHEN h.in_flight > x.places THEN h.in_flight - x.places ELSE 0 END \
     FROM (SELECT l.host_id, count(*) AS places ",
    ours!("JOIN queue_lane l ON l.id = s.lane_id"),
    " AND s.slot = 1 GROUP BY l.host_id) x WHERE h.id = x.host_id; \
     UPDATE queue_run SET late_finishes = late_finishes + ?4 - (SELECT count(*) ",
    ours!(),
    ") WHERE id = ?2 AND state = 3; \
     UPDATE queue_request_state AS s SET state = 2, class = NULL, capture = unhex(d.value ->> 2), \
     status = d.value ->> 3, announced = d.value ->> 4, inserted = 0, duplicate = 0, out_of_scope = d.value ->> 4, \
     ended_at = {now}, body_mark = d.value ->> 6 FROM json_each(?1) d WHERE s.run_id = d.value ->> 5 AND s.id = d.value ->> 0 AND s.attempt = d.value ->> 1 \
     AND s.state = 1 AND s.worker_id = ?3 RETURNING id; \
     COMMIT"
);

const FOUND_MYSQL: &str = "SELECT s.id, s.lane_id, s.slot FROM JSON_TABLE(?, '$[*]' COLUMNS (\
    id BIGINT PATH '$[0]', attempt BIGINT PATH '$[1]')) d STRAIGHT_JOIN queue_request_state s \
    ON s.run_id = ? AND s.id = d.id AND s.attempt = d.attempt WHERE s.state = 1 AND s.worker_id = ? FOR UPDATE";

const FINISH_MYSQL: &str = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', attempt BIGINT PATH '$[1]', \
    capture CHAR(32) PATH '$[2]', status BIGINT PATH '$[3]', announced BIGINT PATH '$[4]', body_mark BIGINT PATH '$[6]')) d \
    STRAIGHT_JOIN queue_request_state s ON s.run_id = ? AND s.id = d.id AND s.attempt = d.attempt \
    SET s.class = NULL, s.kept_capture = coalesce(unhex(d.capture), ''), s.kept_status = coalesce(d.status, 0), s.announced = d.announced, s.inserted = 0, \
    s.duplicate = 0, s.out_of_scope = d.announced, s.kept_ended_at = {now}, s.body_mark = d.body_mark, s.state = 2 \
    WHERE s.state = 1 AND s.worker_id = ?";

/// A success that brings nothing along.
pub(super) struct Plain<'a> {
    pub(super) id: i64,
    pub(super) attempt: i64,
    pub(super) done: &'a DoneSpec,
}

impl<'a> Plain<'a> {
    pub(super) fn of(finish: &'a Finish) -> Option<Self> {
        match &finish.end {
            FinishKind::Done(done)
                if done.children.is_empty() && done.expects.is_empty() && done.links.is_empty() =>
            {
                Some(Self {
                    id: finish.id,
                    attempt: i64::from(finish.attempt),
                    done,
                })
            }
            FinishKind::Done(_)
            | FinishKind::Failed { .. }
            | FinishKind::Blocked { .. }
            | FinishKind::GivenBack => None,
        }
    }

    /// As a JSON array of number, attempt, capture, status, announced follow-ups, run and mark of the body. With the run in it, SQLite
    /// can look at a row only by the whole key, from here.
    fn json(&self, run_id: i64) -> serde_json::Value {
        let capture = self.done.capture.as_ref().map(|c| c.as_str());
        json!([
            self.id,
            self.attempt,
            capture,
            self.done.status,
            self.done.announced,
            run_id,
            mark_of(self.done)
        ])
    }
}

impl Queue {
    /// Records these ends where all are plain successes; the numbers of those that were accepted. `None` where one
    /// is not.
    pub(super) async fn finish_plain(
        &self,
        worker: &Worker,
        run_id: i64,
        finishes: &[Finish],
    ) -> Result<Option<BTreeSet<i64>>> {
        let plain: Option<Vec<Plain<'_>>> = finishes.iter().map(Plain::of).collect();
        let Some(mut plain) = plain else {
            return Ok(None);
        };
        // One order for everybody: no two finishes wait for each other in a ring.
        plain.sort_by_key(|p| p.id);
        if self.finish_whole(worker, run_id, &plain).await? {
            return Ok(Some(plain.iter().map(|p| p.id).collect()));
        }
        let rows = match self.db.dialect() {
            Dialect::Postgres => {
                let args = postgres_args(worker, run_id, &plain);
                self.db
                    .rows_alone("finish requests", FINISH_POSTGRES, &args)
                    .await?
            }
            Dialect::Sqlite => {
                let given = json_of(&plain, run_id);
                let args = values![given.as_str(), run_id, worker.id, len(&plain)];
                self.db
                    .rows_alone("finish requests", FINISH_SQLITE, args)
                    .await?
            }
            Dialect::Mysql => {
                let given = json_of(&plain, run_id);
                in_tx!(&self.db, "finish requests", |tx| {
                    let args = values![given.as_str(), run_id, worker.id];
                    let ended = end_in_mysql(&mut tx, args).await?;
                    count_ended(&mut tx, worker, &ended).await?;
                    let lost = len(&plain) - len(&ended);
                    if lost > 0 {
                        let sql = "UPDATE queue_run SET late_finishes = late_finishes + ? WHERE id = ? AND state = 3";
                        tx.execute(sql, values![lost, run_id]).await?;
                    }
                    Ok(ended)
                })?
            }
        };
        let ids: Result<BTreeSet<i64>, _> = rows.iter().map(|r| r.int(0)).collect();
        ids.map(Some)
            .map_err(|e| Fault::from(e).into_error("finish requests", self.place()))
    }
}

fn json_of(plain: &[Plain<'_>], run_id: i64) -> String {
    let given: Vec<serde_json::Value> = plain.iter().map(|p| p.json(run_id)).collect();
    json!(given).to_string()
}

fn postgres_args(worker: &Worker, run_id: i64, plain: &[Plain<'_>]) -> Vec<Value> {
    let mut args = columns(plain).to_vec();
    args.extend_from_slice(values![run_id, worker.id, len(plain)]);
    args
}

/// Numbers, attempts, captures, statuses, announced follow-ups and marks of bodies as columns.
pub(super) fn columns(plain: &[Plain<'_>]) -> [Value; 6] {
    let ints =
        |get: &dyn Fn(&Plain<'_>) -> Option<i64>| Value::Ints(plain.iter().map(get).collect());
    [
        ints(&|p| Some(p.id)),
        ints(&|p| Some(p.attempt)),
        Value::Blobs(plain.iter().map(|p| capture_bytes(p.done)).collect()),
        ints(&|p| p.done.status.map(i64::from)),
        ints(&|p| Some(signed(p.done.announced))),
        ints(&|p| Some(mark_of(p.done))),
    ]
}

/// Ends the rows that are still this worker's; each with its lane and place.
async fn end_in_mysql(tx: &mut Tx, args: &[Value]) -> Result<Vec<DbRow>, Fault> {
    let rows = tx.rows(FOUND_MYSQL, args).await?;
    if !rows.is_empty() {
        let changed = tx.execute(FINISH_MYSQL, args).await?;
        expect_changed(changed, rows.len())?;
    }
    Ok(rows)
}

/// Adds the ended rows to the counts of their lanes and frees the places of their hosts.
async fn count_ended(tx: &mut Tx, worker: &Worker, ended: &[DbRow]) -> Result<(), Fault> {
    let mut lanes = BTreeMap::<i64, (i64, i64)>::new();
    for row in ended {
        let (done, places) = lanes.entry(row.int(1)?).or_default();
        *done += 1;
        *places += row.int(2)?;
    }
    for (lane, (done, places)) in lanes {
        let add = Progress {
            done,
            ..Default::default()
        };
        add_progress(tx, lane, worker.id, add).await?;
        if places > 0 {
            free_places(tx, lane, places).await?;
        }
    }
    Ok(())
}
