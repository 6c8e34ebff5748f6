//! What is left of a run dies, so that the run can close and say so: after its deadline, or where somebody gave it up.

use crate::error::{Error, Result};
use crate::queue::cell::len;
use crate::queue::db::{Fault, Tx, in_tx, values};
use crate::queue::event::put_event;
use crate::queue::tally::{Progress, add_progress};
use crate::queue::{Queue, RunRecord, RunState};

/// What stands for the plan of a run that was never seeded.
const GIVEN_UP_PLAN: &str = "given_up";
/// Rows that one transaction ends at most.
const BATCH: i64 = 2_000;
/// The class in which what waits in a run past its deadline ends, and where it stands.
const PAST_DEADLINE: &str = "CASE WHEN h.blocked_until > {now} THEN 'rate_limited' ELSE 'deadline' END \
    FROM queue_run r JOIN queue_request_state s ON s.run_id = r.id \
    JOIN queue_lane l ON l.id = s.lane_id JOIN queue_host h ON h.id = l.host_id \
    WHERE r.id = ? AND r.deadline_at <= {now}";
/// The same for a run that was stopped.
const STOPPED: &str = "'given_up' FROM queue_run r JOIN queue_request_state s ON s.run_id = r.id \
    WHERE r.id = ? AND r.stopped IS NOT NULL";

impl Queue {
    /// Ends what waits in a run whose deadline has passed: `rate_limited` where the host had asked to
    /// wait, `deadline` else. What is in flight is left to its worker. How many died; 0 before the deadline.
    pub async fn expire_run(&self, run_id: i64) -> Result<u64> {
        let died = self.end_waiting(run_id, PAST_DEADLINE).await?;
        self.note_ends(run_id, "deadline_passed", died).await
    }

    /// Ends what waits in a run that was stopped, as `given_up`: nobody will go on with it. What is in flight is left
    /// to its worker. How many died. A run that is seeding ends without a request: what was inserted is taken out.
    ///
    /// # Errors
    /// `PreconditionFailed` where the run was not stopped: others may be at it; `Conflict` while another process seeds it.
    pub async fn give_up_run(&self, run_id: i64) -> Result<u64> {
        let run = self.get_run(run_id).await?;
        if run.state == RunState::Seeding {
            self.give_up_seeding(&run).await?;
            return Ok(0);
        }
        if run.stopped.is_none() {
            return Err(Error::precondition(format!(
                "the run `{}` was not stopped: its workers go on",
                run.key
            ))
            .hint(format!(
                "`lakebed crawl stop {} --date {} --run {} --reason TEXT` stops it",
                run.key.source, run.key.date, run.key.run
            )));
        }
        let died = self.end_waiting(run_id, STOPPED).await?;
        self.note_ends(run_id, "run_given_up", died).await
    }

    /// Opens a run that cannot be seeded, empty: it can be closed then.
    async fn give_up_seeding(&self, run: &RunRecord) -> Result<()> {
        if !self.begin_seeding(run.id).await? {
            let lease_s = self.options.lease_us.max(0) / 1_000_000;
            return Err(
                Error::conflict(format!("another process seeds the run `{}`", run.key))
                    .hint(format!(
                        "end that process first; one that died is forgotten {lease_s} s after it was last heard of, and the same command then goes on"
                    ))
                    .retryable(),
            );
        }
        let _opened = self.open_run(run.id, 0, GIVEN_UP_PLAN).await?;
        in_tx!(&self.db, "note what was given up", |tx| {
            put_event(&mut tx, Some(run.id), "run_given_up", &run.key).await
        })
    }

    async fn end_waiting(&self, run_id: i64, which: &str) -> Result<u64> {
        let mut died = 0;
        loop {
            let found = in_tx!(&self.db, "end what waits in the run", |tx| {
                end_some(&mut tx, run_id, which).await
            })?;
            died += found.unsigned_abs();
            if found < BATCH {
                return Ok(died);
            }
        }
    }

    async fn note_ends(&self, run_id: i64, event: &str, died: u64) -> Result<u64> {
        if died > 0 {
            in_tx!(&self.db, "note what was ended", |tx| {
                let told = serde_json::json!({ "dead": died });
                put_event(&mut tx, Some(run_id), event, &told).await
            })?;
        }
        Ok(died)
    }
}

async fn end_some(tx: &mut Tx, run_id: i64, which: &str) -> Result<i64, Fault> {
    let sql = format!(
        "SELECT s.id, s.lane_id, {which} AND r.state IN (1, 2) AND s.state IN (0, 3) ORDER BY s.id LIMIT ?"
    );
    let rows = tx.rows(&sql, values![run_id, BATCH]).await?;
    for row in &rows {
        let sql = "UPDATE queue_request_state SET state = 4, class = ?, {ended_at} = {now} \
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
