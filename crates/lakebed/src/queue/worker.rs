//! Workers: they join, say that they live, and leave. Who is silent for a lease has lost its claims (QUE-2).
//!
//! One row a worker and process start, so that a heartbeat costs one row however much is claimed. The
//! name is unique for ever: a process that starts again is another worker.

use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::queue::cell::len;
use crate::queue::db::{Fault, Tx, in_tx, values};
use crate::queue::event::put_event;
use crate::queue::tally::{Progress, add_progress, free_places, wake_lane};
use crate::time::{Clock, unique_id};

/// Claims that one transaction takes back at most.
const REAP_BATCH: i64 = 1_000;

/// A worker that has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Its number in the queue database.
    pub id: i64,
    /// Its name.
    pub name: String,
}

impl Worker {
    /// The error of one that was silent too long.
    pub(super) fn lost(&self) -> Error {
        Error::conflict(format!(
            "the worker `{}` was silent for longer than its lease",
            self.name
        ))
        .hint("its requests went back to the queue: drop what it still holds and join again")
    }
}

/// Whether a worker still has its claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Heartbeat {
    /// It has.
    Alive,
    /// Its lease had ended: it must drop what it holds and join again.
    Lost,
}

/// What a look for ended leases did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReapStats {
    /// Workers that were silent for longer than their lease.
    pub workers: u64,
    /// Requests that wait again.
    pub failed: u64,
    /// Requests that are dead: every attempt of them ended so.
    pub dead: u64,
}

impl Queue {
    /// Joins as a new worker. `label` says where it runs, for people.
    pub async fn join(&self, label: &str) -> Result<Worker> {
        let name = unique_id(&Clock::System);
        let label: String = label.chars().take(120).collect();
        in_tx!(&self.db, "join as a worker", |tx| {
            let sql = "INSERT INTO queue_worker (name, label, state, lease_us, started_at, heartbeat_at) VALUES (?, ?, 0, ?, {now}, {now})";
            let id = tx
                .insert_id(
                    sql,
                    values![name.as_str(), label.as_str(), self.options.lease_us],
                )
                .await?;
            put_event(
                &mut tx,
                None,
                "worker_joined",
                &serde_json::json!({ "worker": name, "label": label }),
            )
            .await?;
            Ok(Worker {
                id,
                name: name.clone(),
            })
        })
    }

    /// Says that the worker lives.
    pub async fn heartbeat(&self, worker: &Worker) -> Result<Heartbeat> {
        in_tx!(&self.db, "renew the lease", |tx| {
            let sql = "UPDATE queue_worker SET heartbeat_at = {now} WHERE id = ? AND state = 0";
            let changed = tx.execute(sql, values![worker.id]).await?;
            if changed == 1 {
                return Ok(Heartbeat::Alive);
            }
            // MySQL counts no row whose values stay the same.
            let alive = "SELECT count(*) FROM queue_worker WHERE id = ? AND state = 0";
            let alive = tx.int(alive, values![worker.id]).await? == 1;
            Ok(if alive {
                Heartbeat::Alive
            } else {
                Heartbeat::Lost
            })
        })
    }

    /// Leaves: what the worker still holds goes back, and no attempt is counted.
    pub async fn leave(&self, worker: &Worker) -> Result<u64> {
        let given = in_tx!(&self.db, "leave", |tx| {
            let sql = "SELECT s.run_id, s.id, s.lane_id, s.slot FROM queue_request_state s \
                JOIN queue_run r ON r.id = s.run_id AND r.state IN (1, 2) WHERE s.worker_id = ? AND s.state = 1";
            let rows = tx.rows(sql, values![worker.id]).await?;
            let mut given = 0;
            for row in &rows {
                let back = "UPDATE queue_request_state SET state = 0, slot = 0 \
                    WHERE run_id = ? AND id = ? AND worker_id = ? AND state = 1";
                given += tx
                    .execute(back, values![row.int(0)?, row.int(1)?, worker.id])
                    .await?;
                wake_lane(&mut tx, row.int(2)?).await?;
                if row.int(3)? == 1 {
                    free_places(&mut tx, row.int(2)?, 1).await?;
                }
            }
            let sql = "UPDATE queue_worker SET state = 2 WHERE id = ? AND state = 0";
            if tx.execute(sql, values![worker.id]).await? == 1 {
                put_event(
                    &mut tx,
                    None,
                    "worker_left",
                    &serde_json::json!({ "worker": worker.name }),
                )
                .await?;
            }
            Ok(given)
        })?;
        self.memory.forget_watermarks();
        Ok(given)
    }

    /// Takes back the claims of silent workers and those held too long. Any process may call it, at any
    /// time; workers do so in the interval of their heartbeats.
    pub async fn reap(&self) -> Result<ReapStats> {
        let workers = in_tx!(&self.db, "look for silent workers", |tx| {
            let sql = "SELECT id, name FROM queue_worker WHERE state = 0 AND heartbeat_at + lease_us < {now} ORDER BY id {skip}";
            let rows = tx.rows(sql, &[]).await?;
            for row in &rows {
                tx.execute(
                    "UPDATE queue_worker SET state = 1 WHERE id = ?",
                    values![row.int(0)?],
                )
                .await?;
                put_event(
                    &mut tx,
                    None,
                    "worker_lost",
                    &serde_json::json!({ "worker": row.text(1)? }),
                )
                .await?;
            }
            Ok(rows.len() as u64)
        })?;
        let mut stats = ReapStats {
            workers,
            ..ReapStats::default()
        };
        loop {
            let (found, failed, dead) = in_tx!(&self.db, "take claims back", |tx| {
                self.reap_some(&mut tx).await
            })?;
            stats.failed += failed;
            stats.dead += dead;
            if found < REAP_BATCH {
                break;
            }
        }
        if stats.failed + stats.dead > 0 {
            self.memory.forget_watermarks();
        }
        Ok(stats)
    }

    async fn reap_some(&self, tx: &mut Tx) -> Result<(i64, u64, u64), Fault> {
        // A claim whose worker is lost, has left, or was never there; or that is older than any claim may be.
        let sql = "SELECT s.run_id, s.id, s.lane_id, s.failures, s.slot, s.worker_id, s.attempt FROM queue_run r \
            JOIN queue_request_state s ON s.run_id = r.id \
            LEFT JOIN queue_worker w ON w.id = s.worker_id \
            WHERE r.state IN (1, 2) AND s.state = 1 AND (w.id IS NULL OR w.state <> 0 OR s.held_until < {now}) \
            ORDER BY s.run_id, s.id LIMIT ?";
        let rows = tx.rows(sql, values![REAP_BATCH]).await?;
        let (mut failed, mut dead) = (0, 0);
        for row in &rows {
            let (run_id, id, lane) = (row.int(0)?, row.int(1)?, row.int(2)?);
            let failures = u32::try_from(row.int(3)?)
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            let dies = failures >= self.options.max_failures;
            let pause = if dies {
                0
            } else {
                self.options.pause_us(failures, id)
            };
            let sql = "UPDATE queue_request_state SET state = ?, failures = failures + 1, slot = 0, class = 'lease_exhausted', \
                not_before = {now} + ?, {ended_at} = CASE WHEN ? = 4 THEN {now} ELSE {not_ended} END \
                WHERE run_id = ? AND id = ? AND state = 1 AND worker_id = ? AND attempt = ?";
            let state: i64 = if dies { 4 } else { 3 };
            let args = values![state, pause, state, run_id, id, row.int(5)?, row.int(6)?];
            if tx.execute(sql, args).await? == 0 {
                // Its worker finished it meanwhile.
                continue;
            }
            if dies {
                dead += 1;
            } else {
                failed += 1;
                wake_lane(tx, lane).await?;
            }
            let add = Progress {
                dead: i64::from(dies),
                failed: 1,
                ..Progress::default()
            };
            add_progress(tx, lane, row.int(5)?, add).await?;
            if row.int(4)? == 1 {
                free_places(tx, lane, 1).await?;
            }
        }
        Ok((len(&rows), failed, dead))
    }
}
