//! A batch of plain successes that is ended as a whole or not at all, by one call: every row is in flight, of this
//! worker and attempt, of the one lane that this process claimed from last, and holds no place of a host (QUE-1, QUE-2).
//!
//! How many rows changed is compared in the database, in the step that adds them to the counts of the lane: where one
//! is missing, that step puts a null where none may stand, and nothing has happened. `plain_finish` then looks at the
//! rows one by one. So the lane is a guess that costs nothing but time where it is wrong.

use std::fmt::Write as _;

use crate::error::Result;
use crate::queue::cell::{len, signed};
use crate::queue::db::{Dialect, values};
use crate::queue::finish::{capture_bytes, mark_of};
use crate::queue::plain_finish::{Plain, columns};
use crate::queue::{Queue, Worker};

/// Each row is a text of fields at fixed places, which SQLite cuts faster than JSON within JSON: capture (32 hex
/// digits), number (19 digits), attempt (10), status (5), announced follow-ups (19), mark of the body (19); blanks where
/// there is none.
/// `d.key` in the comparison of the run makes SQLite begin with the list.
const FINISH_SQLITE: &str = "BEGIN IMMEDIATE; \
    UPDATE queue_request_state AS s SET state = 2, class = NULL, capture = unhex(substr(d.value, 1, 32)), \
    status = CAST(nullif(substr(d.value, 62, 5), '     ') AS INTEGER), announced = CAST(substr(d.value, 67, 19) AS INTEGER), \
    inserted = 0, duplicate = 0, out_of_scope = CAST(substr(d.value, 67, 19) AS INTEGER), ended_at = {now}, \
    body_mark = CAST(substr(d.value, 86, 19) AS INTEGER) \
    FROM json_each(?1) d WHERE s.run_id = ?2 + 0 * d.key AND s.id = CAST(substr(d.value, 33, 19) AS INTEGER) \
    AND s.attempt = CAST(substr(d.value, 52, 10) AS INTEGER) \
    AND s.state = 1 AND s.worker_id = ?3 AND s.lane_id = ?4 AND s.slot = 0; \
    INSERT INTO queue_progress AS p (lane_id, worker_id, enqueued, done, dead, failed) \
    VALUES (?4, ?3, 0, CASE changes() WHEN ?5 THEN ?5 END, 0, 0) \
    ON CONFLICT (lane_id, worker_id) DO UPDATE SET done = p.done + excluded.done; \
    COMMIT";

const FINISH_POSTGRES: &str = "WITH u AS (UPDATE queue_request_state s SET state = 2, class = NULL, capture = d.capture, \
    status = d.status, announced = d.announced, inserted = 0, duplicate = 0, out_of_scope = d.announced, ended_at = {now}, body_mark = d.body_mark \
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[]) \
    AS d (id, attempt, capture, status, announced, body_mark) \
    WHERE s.run_id = $7 AND s.id = d.id AND s.attempt = d.attempt AND s.state = 1 AND s.worker_id = $8 \
    AND s.lane_id = $9 AND s.slot = 0 RETURNING 1) \
    INSERT INTO queue_progress AS p (lane_id, worker_id, enqueued, done, dead, failed) \
    SELECT $9, $8, 0, CASE count(*) WHEN $10 THEN $10 END, 0, 0 FROM u \
    ON CONFLICT (lane_id, worker_id) DO UPDATE SET done = p.done + excluded.done";

/// The same for one row, without a list: a statement of single values is begun and run sooner.
const FINISH_ONE_POSTGRES: &str = "WITH u AS (UPDATE queue_request_state SET state = 2, class = NULL, capture = $3, \
    status = $4, announced = $5, inserted = 0, duplicate = 0, out_of_scope = $5, ended_at = {now}, body_mark = $6 \
    WHERE run_id = $7 AND id = $1 AND attempt = $2 AND state = 1 AND worker_id = $8 \
    AND lane_id = $9 AND slot = 0 RETURNING 1) \
    INSERT INTO queue_progress AS p (lane_id, worker_id, enqueued, done, dead, failed) \
    SELECT $9, $8, 0, CASE count(*) WHEN 1 THEN 1 END, 0, 0 FROM u \
    ON CONFLICT (lane_id, worker_id) DO UPDATE SET done = p.done + excluded.done";

impl Queue {
    /// Records these ends where all are as expected; otherwise nothing, and `false`.
    pub(super) async fn finish_whole(
        &self,
        worker: &Worker,
        run_id: i64,
        plain: &[Plain<'_>],
    ) -> Result<bool> {
        let Some(lane) = self.memory.known_lane(run_id) else {
            return Ok(false);
        };
        if plain.is_empty() {
            return Ok(false);
        }
        let action = "finish requests";
        match self.db.dialect() {
            Dialect::Sqlite => {
                let given = sqlite_rows(plain);
                let args = values![given, run_id, worker.id, lane.id, len(plain)];
                self.db.all_or_nothing(action, FINISH_SQLITE, args).await
            }
            Dialect::Postgres => {
                if let [p] = plain {
                    let args = values![
                        p.id,
                        p.attempt,
                        capture_bytes(p.done),
                        p.done.status.map(i64::from),
                        signed(p.done.announced),
                        mark_of(p.done),
                        run_id,
                        worker.id,
                        lane.id
                    ];
                    return self
                        .db
                        .all_or_nothing(action, FINISH_ONE_POSTGRES, args)
                        .await;
                }
                let mut args = columns(plain).to_vec();
                args.extend_from_slice(values![run_id, worker.id, lane.id, len(plain)]);
                self.db.all_or_nothing(action, FINISH_POSTGRES, &args).await
            }
            Dialect::Mysql => {
                let script = mysql_script(worker.id, run_id, lane.id, plain);
                self.db.all_or_nothing(action, &script, &[]).await
            }
        }
    }
}

/// As a JSON list of one text for each row.
fn sqlite_rows(plain: &[Plain<'_>]) -> String {
    let mut out = String::with_capacity(plain.len() * 110);
    for p in plain {
        let capture = p.done.capture.as_ref().map_or("", |c| c.as_str());
        let status = p.done.status.map(|s| format!("{s:05}")).unwrap_or_default();
        // Writing into a String cannot fail.
        write!(
            out,
            ",\"{capture:32}{:019}{:010}{status:5}{:019}{:019}\"",
            p.id,
            p.attempt,
            signed(p.done.announced),
            mark_of(p.done)
        )
        .unwrap_or_default();
    }
    format!("[{}]", out.trim_start_matches(','))
}

/// One way to the server and back, so without parameters: what is written into it are numbers and hex digits alone. An
/// update of a join would go through a table of its own; this one goes through the key.
fn mysql_script(worker: i64, run_id: i64, lane: i64, plain: &[Plain<'_>]) -> String {
    let ids: Vec<String> = plain.iter().map(|p| p.id.to_string()).collect();
    let attempt = by_id(&ids, plain, |p| p.attempt.to_string());
    let capture = by_id(&ids, plain, |p| {
        let digits = p.done.capture.as_ref();
        digits.map_or_else(|| "''".to_owned(), |c| format!("x'{}'", c.as_str()))
    });
    let status = by_id(&ids, plain, |p| p.done.status.unwrap_or(0).to_string());
    let announced = by_id(&ids, plain, |p| signed(p.done.announced).to_string());
    let mark = by_id(&ids, plain, |p| mark_of(p.done).to_string());
    let (count, ids) = (plain.len(), ids.join(","));
    format!(
        "UPDATE queue_request_state SET class = NULL, kept_capture = {capture}, kept_status = {status}, announced = {announced}, \
         inserted = 0, duplicate = 0, out_of_scope = {announced}, kept_ended_at = {{now}}, body_mark = {mark}, state = 2 \
         WHERE run_id = {run_id} AND id IN ({ids}) AND attempt = {attempt} \
         AND state = 1 AND worker_id = {worker} AND lane_id = {lane} AND slot = 0; \
         INSERT INTO queue_progress (lane_id, worker_id, enqueued, done, dead, failed) \
         VALUES ({lane}, {worker}, 0, CASE row_count() WHEN {count} THEN {count} END, 0, 0) \
         ON DUPLICATE KEY UPDATE done = done + VALUES(done); \
         COMMIT"
    )
}

/// What a row gets: the one value of all, or that of its number.
fn by_id(ids: &[String], plain: &[Plain<'_>], value: impl Fn(&Plain<'_>) -> String) -> String {
    let values: Vec<String> = plain.iter().map(value).collect();
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return values.into_iter().next().unwrap_or_default();
    }
    let mut out = "CASE id".to_owned();
    for (id, value) in ids.iter().zip(values) {
        // Writing into a String cannot fail.
        write!(out, " WHEN {id} THEN {value}").unwrap_or_default();
    }
    out + " END"
}
