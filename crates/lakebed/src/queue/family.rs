//! A run and the runs that tried again what died in it: one family, whose ends are counted request by request.
//!
//! A request of the family is done where it is done in any of its runs, else it is dead. So one page that is gone for good
//! is one of all requests, not all of the retry's.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Result;
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, Tx, values};
use crate::queue::run_row::get_run;
use crate::queue::{Queue, RunRecord};

/// How the requests of a family ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FamilyBooks {
    /// Different requests.
    pub requests: u64,
    /// Those that are done in one of the runs.
    pub done: u64,
    /// The others, by the class of their last end.
    pub dead_classes: BTreeMap<String, u64>,
}

impl FamilyBooks {
    /// Those that are done in none.
    #[must_use]
    pub fn dead(&self) -> u64 {
        self.requests.saturating_sub(self.done)
    }
}

impl Queue {
    /// The run that this one goes back to: itself, unless it tries again what died in an earlier one that is still there.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn first_of(&self, run_id: i64) -> Result<RunRecord> {
        let mut tx = self.reading("look for the first run").await?;
        let found = async {
            let run = get_run(&mut tx, run_id).await?;
            first_of(&mut tx, run).await
        };
        found
            .await
            .map_err(|e| e.into_error("look for the first run", self.place()))
    }

    /// The runs of this one's family, the first one first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn list_family(&self, run_id: i64) -> Result<Vec<RunRecord>> {
        let what = "list the runs of the family";
        let mut tx = self.reading(what).await?;
        let found = async {
            let run = get_run(&mut tx, run_id).await?;
            let mut family = Vec::new();
            for id in family_of(&mut tx, &run).await? {
                family.push(get_run(&mut tx, id).await?);
            }
            Ok::<_, Fault>(family)
        };
        found.await.map_err(|e| e.into_error(what, self.place()))
    }
}

pub(super) async fn first_of(tx: &mut Tx, mut run: RunRecord) -> Result<RunRecord, Fault> {
    while let Some(before) = run.successor_of {
        let sql = "SELECT count(*) FROM queue_run WHERE id = ? AND state < 4";
        let there = tx.row(sql, values![before]).await?;
        if there.map(|row| row.int(0)).transpose()? != Some(1) {
            break;
        }
        run = get_run(tx, before).await?;
    }
    Ok(run)
}

/// The numbers of all runs of the family, the first one first.
pub(super) async fn family_of(tx: &mut Tx, run: &RunRecord) -> Result<Vec<i64>, Fault> {
    let mut family = vec![first_of(tx, run.clone()).await?.id];
    let mut at = 0;
    while let Some(id) = family.get(at).copied() {
        let sql = "SELECT id FROM queue_run WHERE successor_of = ? ORDER BY id";
        for row in tx.rows(sql, values![id]).await? {
            family.push(row.int(0)?);
        }
        at += 1;
    }
    Ok(family)
}

/// The numbers as SQL writes a list.
pub(super) fn listed(family: &[i64]) -> String {
    let texts: Vec<String> = family.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The requests of a family as SQL reads them, a row each: the number of its last row, whether it is done, whether any row
/// of it is not dead (`is_alive`), and whether one is.
pub(super) fn requests_of(family: &[i64]) -> String {
    format!(
        "(SELECT max(q.id) AS last_id, max(CASE WHEN s.state = 2 THEN 1 ELSE 0 END) AS is_done, \
         max(CASE WHEN s.state <> 4 THEN 1 ELSE 0 END) AS is_alive, max(CASE WHEN s.state = 4 THEN 1 ELSE 0 END) AS has_died \
         FROM queue_request_state s JOIN queue_request q ON q.id = s.id WHERE s.run_id IN ({}) GROUP BY q.request_key)",
        listed(family)
    )
}

pub(super) async fn count_family(tx: &mut Tx, family: &[i64]) -> Result<FamilyBooks, Fault> {
    let requests = requests_of(family);
    let sql =
        format!("SELECT count(*), CAST(coalesce(sum(k.is_done), 0) AS {{int}}) FROM {requests} k");
    let mut books = FamilyBooks::default();
    if let Some(row) = tx.row(&sql, &[]).await? {
        books.requests = unsigned(row.int(0)?);
        books.done = unsigned(row.int(1)?);
    }
    let sql = format!(
        "SELECT s.class, count(*) FROM {requests} k JOIN queue_request_state s ON s.id = k.last_id \
         WHERE k.is_done = 0 GROUP BY s.class"
    );
    for row in tx.rows(&sql, &[]).await? {
        let class = row.maybe_text(0)?.unwrap_or_default();
        books.dead_classes.insert(class, unsigned(row.int(1)?));
    }
    Ok(books)
}
