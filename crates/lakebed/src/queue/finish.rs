//! Finishes: a worker says how its claims ended, in batches (QUE-1, QUE-2).
//!
//! A finish counts only while the row is in flight, of this worker, and of this attempt; the others are
//! answered `Lost` and change nothing. Follow-up requests enter in the same transaction as the success
//! that led to them (QUE-4).

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::queue::cell::{key_bytes, signed};
use crate::queue::db::{Dialect, Fault, Tx, Value, in_tx, pieces, values};
use crate::queue::enqueue::{Origin, Placed, tx_enqueue};
use crate::queue::event::put_event;
use crate::queue::links::put_links;
use crate::queue::run_row::get_run;
use crate::queue::tally::{Progress, add_progress, free_places, wake_lane};
use crate::queue::{DoneSpec, EnqueueStats, Finish, FinishKind, FinishOutcome, Queue, Worker};
use crate::spec::BodyMark;

/// How a row looks after its finish.
struct NewState {
    id: i64,
    attempt: i64,
    lane: i64,
    state: i64,
    /// From now, microseconds; absent where the row keeps its own.
    pause: Option<i64>,
    failed: bool,
    class: Option<String>,
    capture: Option<Vec<u8>>,
    status: Option<i64>,
    mark: i64,
    children: EnqueueStats,
}

/// A row as the finish found it.
struct FoundRow {
    lane: i64,
    failures: u32,
    slot: bool,
}

impl Queue {
    /// Records how claims of a run ended; the answers stand in the order of `finishes`.
    ///
    /// # Errors
    /// `InvalidInput` where a success names more follow-ups than it announced, or one request twice.
    pub async fn finish(
        &self,
        worker: &Worker,
        run_id: i64,
        finishes: &[Finish],
    ) -> Result<Vec<FinishOutcome>> {
        for (i, finish) in finishes.iter().enumerate() {
            check(finish, &finishes[..i])?;
        }
        if let Some(accepted) = self.finish_plain(worker, run_id, finishes).await? {
            return Ok(outcomes(finishes, |id| accepted.contains(&id)));
        }
        let mut children: BTreeMap<i64, Vec<Placed<'_>>> = BTreeMap::new();
        for finish in finishes {
            if let FinishKind::Done(done) = &finish.end
                && !done.children.is_empty()
            {
                children.insert(
                    finish.id,
                    self.place_requests(run_id, &done.children).await?,
                );
            }
        }
        let answers = in_tx!(&self.db, "finish requests", |tx| {
            let found = find_rows(&mut tx, worker, run_id, finishes).await?;
            let lost = finishes.len() - found.len();
            if lost > 0 {
                let sql = "UPDATE queue_run SET late_finishes = late_finishes + ? WHERE id = ? AND state = 3";
                tx.execute(sql, values![signed(lost as u64), run_id])
                    .await?;
            }
            let finishing = Finishing {
                queue: self,
                worker,
                run_id,
            };
            let mut new = Vec::with_capacity(found.len());
            for finish in finishes {
                let Some(row) = found.get(&finish.id) else {
                    continue;
                };
                let placed = children.get(&finish.id).map_or(&[][..], Vec::as_slice);
                new.push(finishing.new_state(&mut tx, finish, row, placed).await?);
            }
            write_states(&mut tx, worker, run_id, &new).await?;
            count_lanes(&mut tx, worker, &new, &found).await?;
            let accepted = finishes.iter().filter(|f| found.contains_key(&f.id));
            put_links(&mut tx, (run_id, worker.id), accepted).await?;
            Ok(outcomes(finishes, |id| found.contains_key(&id)))
        })?;
        if finishes
            .iter()
            .any(|f| matches!(f.end, FinishKind::Blocked { .. } | FinishKind::GivenBack))
        {
            self.memory.forget_watermarks();
        }
        Ok(answers)
    }
}

fn outcomes(finishes: &[Finish], accepted: impl Fn(i64) -> bool) -> Vec<FinishOutcome> {
    let outcome = |finish: &Finish| {
        if accepted(finish.id) {
            FinishOutcome::Accepted
        } else {
            FinishOutcome::Lost
        }
    };
    finishes.iter().map(outcome).collect()
}

/// One call of finish.
struct Finishing<'a> {
    queue: &'a Queue,
    worker: &'a Worker,
    run_id: i64,
}

impl Finishing<'_> {
    /// What the finish makes of the row; its follow-ups, expectations and blocks are written here.
    async fn new_state(
        &self,
        tx: &mut Tx,
        finish: &Finish,
        row: &FoundRow,
        placed: &[Placed<'_>],
    ) -> Result<NewState, Fault> {
        let mut new = NewState {
            id: finish.id,
            attempt: i64::from(finish.attempt),
            lane: row.lane,
            state: 0,
            pause: None,
            failed: false,
            class: None,
            capture: None,
            status: None,
            mark: 0,
            children: EnqueueStats::default(),
        };
        match &finish.end {
            FinishKind::GivenBack => {}
            FinishKind::Blocked { wait_us } => block_host(tx, row.lane, *wait_us).await?,
            FinishKind::Failed {
                class,
                retry,
                status,
            } => {
                let failures = row.failures.saturating_add(1);
                let dies = !retry || failures >= self.queue.options.max_failures;
                new.state = if dies { 4 } else { 3 };
                new.pause = Some(if dies {
                    0
                } else {
                    self.queue.options.pause_us(failures, finish.id)
                });
                new.failed = true;
                new.class = Some(class.to_string());
                new.status = status.map(i64::from);
            }
            FinishKind::Done(done) => {
                new.state = 2;
                new.capture = capture_bytes(done);
                new.status = done.status.map(i64::from);
                new.mark = mark_of(done);
                new.children = self.add_children(tx, finish.id, done, placed).await?;
                for expectation in &done.expects {
                    put_expectation(
                        tx,
                        self.run_id,
                        finish.id,
                        &expectation.group,
                        signed(expectation.expected),
                    )
                    .await?;
                }
            }
        }
        Ok(new)
    }

    /// Enters the follow-ups of a success and counts them.
    async fn add_children(
        &self,
        tx: &mut Tx,
        parent: i64,
        done: &DoneSpec,
        placed: &[Placed<'_>],
    ) -> Result<EnqueueStats, Fault> {
        let offered = done.children.len() as u64;
        let mut stats = EnqueueStats {
            announced: done.announced,
            inserted: 0,
            duplicate: 0,
            out_of_scope: done.announced - offered,
        };
        if offered > 0 {
            let run = get_run(tx, self.run_id).await?;
            let origin = Origin::Child {
                parent,
                worker: self.worker.id,
            };
            stats.inserted = tx_enqueue(tx, &run, origin, placed).await?;
            stats.duplicate = offered - stats.inserted;
        }
        Ok(stats)
    }
}

fn check(finish: &Finish, before: &[Finish]) -> Result<()> {
    if before.iter().any(|f| f.id == finish.id) {
        return Err(Error::invalid(format!(
            "request number `{}` is finished twice in one call",
            finish.id
        )));
    }
    let FinishKind::Done(done) = &finish.end else {
        return Ok(());
    };
    if done.announced < done.children.len() as u64 {
        return Err(Error::invalid(format!(
            "request number `{}` announced {} follow-ups and brought {}",
            finish.id,
            done.announced,
            done.children.len()
        ))
        .hint("announce every link of the page; those that are out of scope are announced and not brought"));
    }
    if let Some(long) = done
        .expects
        .iter()
        .find(|e| e.group.is_empty() || e.group.len() > 255)
    {
        return Err(Error::invalid(format!(
            "`{}` is no name of a group",
            long.group
        )));
    }
    Ok(())
}

async fn put_expectation(
    tx: &mut Tx,
    run_id: i64,
    id: i64,
    group: &str,
    expected: i64,
) -> Result<(), Fault> {
    let sql = match tx.dialect() {
        Dialect::Mysql => {
            "INSERT INTO queue_expectation (run_id, name, request_id, expected) VALUES (?, ?, ?, ?) \
             ON DUPLICATE KEY UPDATE expected = VALUES(expected)"
        }
        Dialect::Sqlite | Dialect::Postgres => {
            "INSERT INTO queue_expectation (run_id, name, request_id, expected) VALUES (?, ?, ?, ?) \
             ON CONFLICT (run_id, name, request_id) DO UPDATE SET expected = excluded.expected"
        }
    };
    tx.execute(sql, values![run_id, group, id, expected])
        .await?;
    Ok(())
}

/// The rows that are still this worker's, locked.
async fn find_rows(
    tx: &mut Tx,
    worker: &Worker,
    run_id: i64,
    finishes: &[Finish],
) -> Result<BTreeMap<i64, FoundRow>, Fault> {
    let mut sorted: Vec<&Finish> = finishes.iter().collect();
    // One order for everybody: no two finishes wait for each other in a ring.
    sorted.sort_by_key(|f| f.id);
    let mut found = BTreeMap::new();
    for piece in pieces(&sorted) {
        let marks = vec!["?"; piece.len()].join(", ");
        let sql = format!(
            "SELECT id, attempt, lane_id, failures, slot FROM queue_request_state \
             WHERE run_id = ? AND id IN ({marks}) AND state = 1 AND worker_id = ? ORDER BY id {{lock}}"
        );
        let mut args = vec![Value::from(run_id)];
        args.extend(piece.iter().map(|f| Value::from(f.id)));
        args.push(worker.id.into());
        for row in tx.rows(&sql, &args).await? {
            let (id, attempt) = (row.int(0)?, row.int(1)?);
            if piece
                .iter()
                .any(|f| f.id == id && i64::from(f.attempt) == attempt)
            {
                let failures = u32::try_from(row.int(3)?).unwrap_or(u32::MAX);
                let slot = row.int(4)? == 1;
                found.insert(
                    id,
                    FoundRow {
                        lane: row.int(2)?,
                        failures,
                        slot,
                    },
                );
            }
        }
    }
    Ok(found)
}

const SET: &str = "state = d.state, not_before = CASE WHEN d.pause IS NULL THEN s.not_before ELSE {now} + d.pause END, \
    failures = s.failures + d.failed, slot = 0, class = d.class, capture = d.capture, status = d.status, \
    announced = d.announced, inserted = d.inserted, duplicate = d.duplicate, out_of_scope = d.out_of_scope, \
    ended_at = CASE WHEN d.state IN (2, 4) THEN {now} END, body_mark = d.body_mark";

/// Writes the new states and counts the changed rows.
async fn write_states(
    tx: &mut Tx,
    worker: &Worker,
    run_id: i64,
    new: &[NewState],
) -> Result<(), Fault> {
    let mut changed = 0;
    match tx.dialect() {
        Dialect::Sqlite => {
            for one in new {
                let sql = "UPDATE queue_request_state SET state = ?1, \
                    not_before = CASE WHEN ?2 IS NULL THEN not_before ELSE {now} + ?2 END, failures = failures + ?3, \
                    slot = 0, class = ?4, capture = ?5, status = ?6, announced = ?7, inserted = ?8, duplicate = ?9, \
                    out_of_scope = ?10, body_mark = ?11, ended_at = CASE WHEN ?1 IN (2, 4) THEN {now} END \
                    WHERE run_id = ?12 AND id = ?13 AND state = 1 AND worker_id = ?14 AND attempt = ?15";
                let mut args = one.columns();
                args.extend([
                    run_id.into(),
                    one.id.into(),
                    worker.id.into(),
                    one.attempt.into(),
                ]);
                changed += tx.execute(sql, &args).await?;
            }
        }
        Dialect::Postgres => changed += write_columns(tx, worker, run_id, new).await?,
        Dialect::Mysql => {
            for piece in pieces(new) {
                let first = "SELECT ? AS state, ? AS pause, ? AS failed, ? AS class, ? AS capture, ? AS status, \
                    ? AS announced, ? AS inserted, ? AS duplicate, ? AS out_of_scope, ? AS body_mark, ? AS id, ? AS attempt";
                let more = " UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
                    .repeat(piece.len() - 1);
                let sql = format!(
                    "UPDATE queue_request_state s JOIN ({first}{more}) d ON s.id = d.id AND s.attempt = d.attempt \
                     SET s.{} WHERE s.run_id = ? AND s.state = 1 AND s.worker_id = ?",
                    // Left to right: the state is set last, since the others ask for it.
                    MYSQL_SET
                );
                let mut args: Vec<Value> = Vec::with_capacity(piece.len() * 13 + 2);
                for one in piece {
                    args.extend(one.columns());
                    args.extend([one.id.into(), one.attempt.into()]);
                }
                args.extend([run_id.into(), worker.id.into()]);
                changed += tx.execute(&sql, &args).await?;
            }
        }
    }
    expect_changed(changed, new.len())
}

/// Every row that was locked must have changed.
pub(super) fn expect_changed(changed: u64, locked: usize) -> Result<(), Fault> {
    if changed == locked as u64 {
        return Ok(());
    }
    let message = format!("{changed} of {locked} rows that were locked changed");
    Err(Error::internal(message).into())
}

/// The 16 bytes of a success's capture: its id has the form of a key, 32 hex digits.
pub(super) fn capture_bytes(done: &DoneSpec) -> Option<Vec<u8>> {
    let capture = done.capture.as_ref()?;
    Some(
        capture
            .as_str()
            .parse()
            .map(|k| key_bytes(&k))
            .unwrap_or_default(),
    )
}

/// What the body of a success is known by; 0 = unknown.
pub(super) fn mark_of(done: &DoneSpec) -> i64 {
    done.body.map_or(0, BodyMark::to_int)
}

const MYSQL_SET: &str = "not_before = CASE WHEN d.pause IS NULL THEN s.not_before ELSE {now} + d.pause END, \
    s.failures = s.failures + d.failed, s.slot = 0, s.class = d.class, s.kept_capture = coalesce(d.capture, ''), \
    s.kept_status = coalesce(d.status, 0), s.announced = d.announced, s.inserted = d.inserted, s.duplicate = d.duplicate, s.out_of_scope = d.out_of_scope, \
    s.kept_ended_at = CASE WHEN d.state IN (2, 4) THEN {now} ELSE 0 END, s.body_mark = d.body_mark, s.state = d.state";

/// All rows in one statement, as columns.
async fn write_columns(
    tx: &mut Tx,
    worker: &Worker,
    run_id: i64,
    new: &[NewState],
) -> Result<u64, Fault> {
    let ints = |get: &dyn Fn(&NewState) -> Option<i64>| Value::Ints(new.iter().map(get).collect());
    let args = [
        ints(&|n| Some(n.state)),
        ints(&|n| n.pause),
        ints(&|n| Some(i64::from(n.failed))),
        Value::Texts(new.iter().map(|n| n.class.clone()).collect()),
        Value::Blobs(new.iter().map(|n| n.capture.clone()).collect()),
        ints(&|n| n.status),
        ints(&|n| Some(signed(n.children.announced))),
        ints(&|n| Some(signed(n.children.inserted))),
        ints(&|n| Some(signed(n.children.duplicate))),
        ints(&|n| Some(signed(n.children.out_of_scope))),
        ints(&|n| Some(n.mark)),
        ints(&|n| Some(n.id)),
        ints(&|n| Some(n.attempt)),
        run_id.into(),
        worker.id.into(),
    ];
    let sql = format!(
        "UPDATE queue_request_state s SET {SET} FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::text[], \
         ?::bytea[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]) \
         AS d (state, pause, failed, class, capture, status, announced, inserted, duplicate, out_of_scope, body_mark, id, attempt) \
         WHERE s.run_id = ? AND s.id = d.id AND s.attempt = d.attempt AND s.state = 1 AND s.worker_id = ?"
    );
    Ok(tx.execute(&sql, &args).await?)
}

impl NewState {
    /// The ten columns that a finish writes.
    fn columns(&self) -> Vec<Value> {
        vec![
            self.state.into(),
            self.pause.into(),
            i64::from(self.failed).into(),
            self.class.clone().into(),
            self.capture.clone().into(),
            self.status.into(),
            signed(self.children.announced).into(),
            signed(self.children.inserted).into(),
            signed(self.children.duplicate).into(),
            signed(self.children.out_of_scope).into(),
            self.mark.into(),
        ]
    }
}

/// Adds the ends to the counts of their lanes, frees the places of the hosts and wakes the lanes.
async fn count_lanes(
    tx: &mut Tx,
    worker: &Worker,
    new: &[NewState],
    found: &BTreeMap<i64, FoundRow>,
) -> Result<(), Fault> {
    let mut lanes: BTreeMap<i64, (Progress, i64, bool)> = BTreeMap::new();
    for one in new {
        let (progress, places, wake) = lanes.entry(one.lane).or_default();
        progress.done += i64::from(one.state == 2);
        progress.dead += i64::from(one.state == 4);
        progress.failed += i64::from(one.failed);
        *places += i64::from(found.get(&one.id).is_some_and(|r| r.slot));
        *wake |= matches!(one.state, 0 | 3);
    }
    for (lane, (progress, places, wake)) in lanes {
        if progress != Progress::default() {
            add_progress(tx, lane, worker.id, progress).await?;
        }
        if wake {
            wake_lane(tx, lane).await?;
        }
        if places > 0 {
            free_places(tx, lane, places).await?;
        }
    }
    Ok(())
}

/// The host asked to wait: nobody claims of it until then.
async fn block_host(tx: &mut Tx, lane: i64, wait_us: i64) -> Result<(), Fault> {
    let sql = "SELECT h.id, h.name, h.blocked_until, {now} FROM queue_host h JOIN queue_lane l ON l.host_id = h.id WHERE l.id = ?";
    let row = tx.row(sql, values![lane]).await?;
    let Some(row) = row else { return Ok(()) };
    let until = row.int(3)?.saturating_add(wait_us.max(0));
    if until <= row.int(2)? {
        return Ok(());
    }
    let sql = "UPDATE queue_host SET blocked_until = ? WHERE id = ? AND blocked_until < ?";
    tx.execute(sql, values![until, row.int(0)?, until]).await?;
    let detail =
        serde_json::json!({ "host": row.text(1)?, "until": until, "why": "it asked to wait" });
    put_event(tx, None, "host_blocked", &detail).await?;
    Ok(())
}
