//! Responses that are gone: what is done by one of them is dead from then on, so that it can be tried again.

use crate::error::{Error, Result};
use crate::queue::db::{Dialect, Fault, Tx, Value, in_tx, pieces, values};
use crate::queue::event::put_event;
use crate::queue::run_row::require_state;
use crate::queue::tally::{Progress, add_progress};
use crate::queue::verdict::closing_of;
use crate::queue::{Queue, RunState};

/// The class of requests whose responses are gone.
pub const RESPONSE_LOST: &str = "response_lost";
/// Rows that one transaction ends at most.
const BATCH: usize = 2_000;

impl Queue {
    /// Ends these requests of a closed run (their numbers) as dead, in the class [`RESPONSE_LOST`], where they are done: their responses are
    /// gone, by a person's word. How many there were; whoever is dead already stays so. Without any it says whether it may be asked.
    ///
    /// # Errors
    /// `PreconditionFailed` where the run is not closed, or not for a refused pack.
    pub async fn lose_responses(&self, run_id: i64, lost: &[i64]) -> Result<u64> {
        let mut died = 0;
        let (first, rest) = lost.split_at(lost.len().min(BATCH));
        // The first one is asked for none, too.
        for batch in std::iter::once(first).chain(rest.chunks(BATCH)) {
            died += in_tx!(&self.db, "end what was lost", |tx| {
                lose_some(&mut tx, run_id, batch).await
            })?;
        }
        self.db.make_durable().await?;
        Ok(died)
    }
}

async fn lose_some(tx: &mut Tx, run_id: i64, lost: &[i64]) -> Result<u64, Fault> {
    let run = require_state(tx, run_id, &[RunState::Closed]).await?;
    if !closing_of(&run)?.may_be_sealed_again(false) {
        return Err(Fault::from(Error::precondition(format!(
            "the pack of the run `{}` was not refused: no response of it is lost",
            run.key
        ))));
    }
    let mut died = 0;
    for piece in pieces(lost) {
        let marks = vec!["?"; piece.len()].join(", ");
        let sql = format!(
            "SELECT id, lane_id, worker_id FROM queue_request_state WHERE run_id = ? AND id IN ({marks}) AND state = 2 ORDER BY id"
        );
        let mut args = vec![Value::from(run_id)];
        args.extend(piece.iter().map(|id| Value::from(*id)));
        for row in tx.rows(&sql, &args).await? {
            let (id, lane, worker) = (row.int(0)?, row.int(1)?, row.int(2)?);
            if !end_one(tx, run_id, id).await? {
                continue;
            }
            died += 1;
            // Where it was counted as done.
            let moved = Progress {
                done: -1,
                dead: 1,
                ..Progress::default()
            };
            add_progress(tx, lane, worker, moved).await?;
        }
    }
    if died > 0 {
        let told = serde_json::json!({ "run": run.key.to_string(), "dead": died });
        put_event(tx, Some(run_id), "responses_lost", &told).await?;
    }
    Ok(died)
}

/// Its links stay announced; its response is forgotten.
async fn end_one(tx: &mut Tx, run_id: i64, id: i64) -> Result<bool, Fault> {
    let capture = match tx.dialect() {
        Dialect::Mysql => "kept_capture = ''",
        Dialect::Sqlite | Dialect::Postgres => "capture = NULL",
    };
    let sql = format!(
        "UPDATE queue_request_state SET class = ?, {capture}, body_mark = 0, state = 4 WHERE run_id = ? AND id = ? AND state = 2"
    );
    let changed = tx.execute(&sql, values![RESPONSE_LOST, run_id, id]).await?;
    Ok(changed == 1)
}
