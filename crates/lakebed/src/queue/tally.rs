//! Small steps within a transaction that enqueue, claim, finish and reap share: counts of a lane, its
//! rest, and the places of its host (QUE-6).

use crate::queue::db::{Dialect, Fault, Tx, values};

/// Counts of a lane by one worker; the sums over all workers are what `queue status` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    pub(super) enqueued: i64,
    pub(super) done: i64,
    pub(super) dead: i64,
    pub(super) failed: i64,
}

/// Adds to the counts of a lane, in the row of this worker alone: no two workers wait for each other.
pub(super) async fn add_progress(
    tx: &mut Tx,
    lane: i64,
    worker: i64,
    add: Progress,
) -> Result<(), Fault> {
    let args = values![lane, worker, add.enqueued, add.done, add.dead, add.failed];
    let sql = match tx.dialect() {
        Dialect::Mysql => {
            "INSERT INTO queue_progress (lane_id, worker_id, enqueued, done, dead, failed) VALUES (?, ?, ?, ?, ?, ?) \
             ON DUPLICATE KEY UPDATE enqueued = enqueued + VALUES(enqueued), done = done + VALUES(done), \
             dead = dead + VALUES(dead), failed = failed + VALUES(failed)"
        }
        Dialect::Sqlite | Dialect::Postgres => {
            "INSERT INTO queue_progress AS p (lane_id, worker_id, enqueued, done, dead, failed) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (lane_id, worker_id) DO UPDATE SET enqueued = p.enqueued + excluded.enqueued, \
             done = p.done + excluded.done, dead = p.dead + excluded.dead, failed = p.failed + excluded.failed"
        }
    };
    tx.execute(sql, args).await?;
    Ok(())
}

/// Gives places of the lane's host back.
pub(super) async fn free_places(tx: &mut Tx, lane: i64, places: i64) -> Result<(), Fault> {
    let sql = "UPDATE queue_host SET in_flight = CASE WHEN in_flight > ? THEN in_flight - ? ELSE 0 END \
        WHERE id = (SELECT host_id FROM queue_lane WHERE id = ?)";
    tx.execute(sql, values![places, places, lane]).await?;
    Ok(())
}

/// Something unfinished is in the lane again.
pub(super) async fn wake_lane(tx: &mut Tx, lane: i64) -> Result<(), Fault> {
    tx.execute(
        "UPDATE queue_lane SET ready = 1 WHERE id = ? AND ready = 0",
        values![lane],
    )
    .await?;
    Ok(())
}

/// A lane in which nothing is unfinished rests until something enters it.
pub(super) async fn rest_lane(tx: &mut Tx, lane: i64) -> Result<(), Fault> {
    let sql = "UPDATE queue_lane SET ready = 0 WHERE id = ? AND ready = 1 AND NOT EXISTS \
        (SELECT 1 FROM queue_request_state WHERE lane_id = ? AND state IN (0, 3))";
    let mysql = "UPDATE queue_lane SET ready = 0 WHERE id = ? AND ready = 1 AND NOT EXISTS \
        (SELECT 1 FROM queue_request_state WHERE ready = ?)";
    let sql = if tx.dialect() == Dialect::Mysql {
        mysql
    } else {
        sql
    };
    tx.execute(sql, values![lane, lane]).await?;
    Ok(())
}
