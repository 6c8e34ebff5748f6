//! Closed runs go: a family in one move, then its rows in bounded transactions.
//!
//! From the first transaction on no run of the family is there for anybody, so that nothing is judged, tried again or shown
//! by a part of its rows (QUE-7). Who prunes next, or makes a run of the date, deletes what a call that died left.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, Tx, in_tx, values};
use crate::queue::event::put_event;
use crate::queue::family::{family_of, listed};
use crate::queue::run_row::{GOING, require_state};
use crate::queue::{Queue, RunState};

/// Rows that one transaction deletes at most.
const BATCH: i64 = 2_000;

impl Queue {
    /// Deletes a whole family of closed runs with all its rows; how many requests there were. What ended keeps its terminals in
    /// the pack; nothing here means "done" by not being there.
    ///
    /// # Errors
    /// `NotFound` where another call was faster; `PreconditionFailed` where a run is not closed; `Conflict` where the family is
    /// another one than these runs.
    pub async fn prune_family(&self, runs: &[i64]) -> Result<u64> {
        let requests = in_tx!(&self.db, "prune the runs", |tx| {
            let_go(&mut tx, runs).await
        })?;
        // Others may delete some of them, too.
        let _deleted = self.delete_rows(runs).await?;
        Ok(requests)
    }

    /// Deletes what calls that died left of runs that were pruned; how many requests there were.
    pub async fn end_prunes(&self) -> Result<u64> {
        let mut tx = self.reading("look for runs that were pruned").await?;
        let found = async {
            let sql = "SELECT id FROM queue_run WHERE state = ? ORDER BY id";
            let rows = tx.rows(sql, values![GOING]).await?;
            let runs = rows.iter().map(|row| row.int(0));
            Ok::<_, Fault>(runs.collect::<Result<Vec<i64>, _>>()?)
        };
        let found = found.await;
        let runs =
            found.map_err(|e| e.into_error("look for runs that were pruned", self.place()))?;
        drop(tx);
        self.delete_rows(&runs).await
    }

    /// The rows of runs that go, and the runs themselves. Where others delete, too, all of them come to the end.
    pub(super) async fn delete_rows(&self, runs: &[i64]) -> Result<u64> {
        let mut deleted = 0;
        for id in runs {
            loop {
                let found: u64 = in_tx!(&self.db, "prune the run", |tx| {
                    delete_some(&mut tx, *id).await
                })?;
                if found == 0 {
                    break;
                }
                deleted += found;
            }
        }
        Ok(deleted)
    }
}

/// The move: no run of the family is in any state from now on. How many requests there were.
async fn let_go(tx: &mut Tx, runs: &[i64]) -> Result<u64, Fault> {
    let wanted: BTreeSet<i64> = runs.iter().copied().collect();
    let mut locked = Vec::with_capacity(wanted.len());
    // In one order for all, so that no two wait for each other.
    for id in &wanted {
        locked.push(require_state(tx, *id, &[RunState::Closed]).await?);
    }
    let Some(one) = locked.first() else {
        return Ok(0);
    };
    // Nobody makes a retry of a row that is locked, and one that was made is seen.
    let family: BTreeSet<i64> = family_of(tx, one).await?.into_iter().collect();
    if family != wanted {
        return Err(Fault::from(
            Error::conflict(format!(
                "the family of the run `{}` changed meanwhile",
                one.key
            ))
            .hint("the same command looks at it again")
            .retryable(),
        ));
    }
    let sql = format!(
        "UPDATE queue_run SET state = ? WHERE id IN ({}) AND state = 3",
        listed(runs)
    );
    tx.execute(&sql, values![GOING]).await?;
    for run in &locked {
        put_event(tx, None, "run_pruned", &run.key).await?;
    }
    let sql = format!(
        "SELECT count(*) FROM queue_request_state WHERE run_id IN ({})",
        listed(runs)
    );
    Ok(unsigned(tx.int(&sql, &[]).await?))
}

/// Some requests of a run that goes, and at last itself: 0 then.
async fn delete_some(tx: &mut Tx, run_id: i64) -> Result<u64, Fault> {
    let sql = "SELECT id FROM queue_run WHERE id = ? AND state = ? {lock}";
    if tx.row(sql, values![run_id, GOING]).await?.is_none() {
        return Ok(0);
    }
    let sql = "SELECT id FROM queue_request_state WHERE run_id = ? ORDER BY id LIMIT ?";
    let rows = tx.rows(sql, values![run_id, BATCH]).await?;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        for sql in [
            "DELETE FROM queue_group WHERE run_id = ?",
            "DELETE FROM queue_expectation WHERE run_id = ?",
            "DELETE FROM queue_link WHERE run_id = ?",
            "DELETE FROM queue_progress WHERE lane_id IN (SELECT id FROM queue_lane WHERE run_id = ?)",
            "DELETE FROM queue_lane WHERE run_id = ?",
            "DELETE FROM queue_event WHERE run_id = ?",
            "DELETE FROM queue_run WHERE id = ?",
        ] {
            tx.execute(sql, values![run_id]).await?;
        }
        return Ok(0);
    };
    let range = values![run_id, first.int(0)?, last.int(0)?];
    let sql = "DELETE FROM queue_request WHERE run_id = ? AND id BETWEEN ? AND ?";
    tx.execute(sql, range).await?;
    let sql = "DELETE FROM queue_request_state WHERE run_id = ? AND id BETWEEN ? AND ?";
    tx.execute(sql, range).await?;
    Ok(rows.len() as u64)
}
