//! The deadline of a run: what is left then dies, so that the run can close and say so.

use crate::error::Result;
use crate::queue::Queue;
use crate::queue::cell::len;
use crate::queue::db::{Fault, Tx, in_tx, values};
use crate::queue::event::put_event;
use crate::queue::tally::{Progress, add_progress};

/// Rows that one transaction ends at most.
const BATCH: i64 = 2_000;

impl Queue {
    /// Ends what waits in a run whose deadline has passed: `rate_limited` where the host had asked to
    /// wait, `deadline` else. What is in flight is left to its worker. How many died; 0 before the deadline.
    pub async fn expire_run(&self, run_id: i64) -> Result<u64> {
        let mut died = 0;
        loop {
            let found = in_tx!(&self.db, "end what is past the deadline", |tx| {
                expire_some(&mut tx, run_id).await
            })?;
            died += found.unsigned_abs();
            if found < BATCH {
                break;
            }
        }
        if died > 0 {
            in_tx!(&self.db, "note the deadline", |tx| {
                put_event(
                    &mut tx,
                    Some(run_id),
                    "deadline_passed",
                    &serde_json::json!({ "dead": died }),
                )
                .await
            })?;
        }
        Ok(died)
    }
}

async fn expire_some(tx: &mut Tx, run_id: i64) -> Result<i64, Fault> {
    let sql = "SELECT s.id, s.lane_id, CASE WHEN h.blocked_until > {now} THEN 'rate_limited' ELSE 'deadline' END \
        FROM queue_run r JOIN queue_request_state s ON s.run_id = r.id \
        JOIN queue_lane l ON l.id = s.lane_id JOIN queue_host h ON h.id = l.host_id \
        WHERE r.id = ? AND r.state IN (1, 2) AND r.deadline_at <= {now} AND s.state IN (0, 3) ORDER BY s.id LIMIT ?";
    let rows = tx.rows(sql, values![run_id, BATCH]).await?;
    for row in &rows {
        let sql = "UPDATE queue_request_state SET state = 4, class = ?, ended_at = {now} \
            WHERE run_id = ? AND id = ? AND state IN (0, 3)";
        if tx
            .execute(sql, values![row.text(2)?, run_id, row.int(0)?])
            .await?
            == 1
        {
            let add = Progress {
                dead: 1,
                ..Progress::default()
            };
            add_progress(tx, row.int(1)?, 0, add).await?;
        }
    }
    Ok(len(&rows))
}
