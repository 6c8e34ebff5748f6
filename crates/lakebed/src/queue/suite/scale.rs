//! The claim at a million rows that have ended: it reads the index over unfinished rows alone.

use super::backend::*;
use crate::queue::db::{Dialect, in_tx, values};
use crate::queue::{ClaimOutcome, Finish};

const ROWS: i64 = 1_000_000;

pub(super) async fn a_claim_reads_the_ready_index_at_a_million_done_rows(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..50)).await;
    let lane = number(&queue, "SELECT min(lane_id) FROM queue_request_state", &[]).await;
    let numbers = match queue.db.dialect() {
        Dialect::Sqlite => {
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT"
        }
        Dialect::Postgres => "SELECT",
        Dialect::Mysql => "SELECT",
    };
    let from = match queue.db.dialect() {
        Dialect::Sqlite => "FROM n".to_owned(),
        Dialect::Postgres => "FROM generate_series(1, ?) AS n (i)".to_owned(),
        Dialect::Mysql => {
            let digits = "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 \
                UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
            let joined: Vec<String> = (0..6).map(|k| format!("{digits} d{k}")).collect();
            let sum: Vec<String> = (0..6)
                .map(|k| format!("d{k}.d * {}", 10_i64.pow(k)))
                .collect();
            format!(
                "FROM (SELECT 1 + {} AS i FROM {}) n WHERE i <= ?",
                sum.join(" + "),
                joined.join(" JOIN ")
            )
        }
    };
    let columns = "run_id, id, lane_id, state, priority, not_before, attempt, failures, worker_id, slot, held_until";
    let head = format!("INSERT INTO queue_request_state ({columns})");
    let body = format!(
        "{numbers} {}, 10000 + i, {lane}, 2, 0, 0, 1, 0, 1, 0, 0 {from}",
        run.id
    );
    let filled = tamper(&queue, &format!("{head} {body}"), values![ROWS]).await;
    assert_eq!(filled, ROWS.unsigned_abs());
    if queue.db.dialect() == Dialect::Postgres {
        tamper(&queue, "ANALYZE queue_request_state", &[]).await;
    }
    let plan = explain(&queue, lane).await;
    assert!(plan.contains("queue_request_ready"), "{plan}");
    assert!(
        !plan.contains("Sort") && !plan.contains("TEMP B-TREE") && !plan.contains("filesort"),
        "{plan}"
    );
    let worker = queue.join("test").await.unwrap();
    let short = explain_short(&queue, lane, run.id, worker.id).await;
    assert!(short.contains("queue_request_ready"), "{short}");
    assert!(
        !short.contains("Seq Scan on queue_request") && !short.contains("SCAN queue_request"),
        "{short}"
    );
    let mut count = 0;
    loop {
        match queue.claim(&worker, &any(&run, 20)).await.unwrap() {
            ClaimOutcome::Claimed(claims) => {
                let ends: Vec<Finish> = claims.iter().map(done).collect();
                count += finish(&queue, &worker, &run, &ends).await;
            }
            ClaimOutcome::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count, 50);
}

/// The plan of the claim's look at the rows.
async fn explain(queue: &crate::queue::Queue, lane: i64) -> String {
    let (sql, column) = crate::queue::claim::explain_sql(queue.db.dialect());
    let rows = in_tx!(&queue.db, "explain", |tx| {
        Ok(tx.rows(sql, values![lane]).await?)
    })
    .unwrap();
    rows.iter()
        .map(|r| r.maybe_text(column).unwrap_or_default().unwrap_or_default() + "\n")
        .collect()
}

/// The plan of a claim that goes the short way.
async fn explain_short(queue: &crate::queue::Queue, lane: i64, run_id: i64, worker: i64) -> String {
    let dialect = queue.db.dialect();
    let (_, column) = crate::queue::claim::explain_sql(dialect);
    let (sql, args) = crate::queue::known_lane::explain_sql(dialect, lane, run_id, worker);
    let rows = in_tx!(&queue.db, "explain", |tx| {
        Ok(tx.rows(&sql, &args).await?)
    })
    .unwrap();
    rows.iter()
        .map(|r| r.maybe_text(column).unwrap_or_default().unwrap_or_default() + "\n")
        .collect()
}
