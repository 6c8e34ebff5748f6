//! What only MariaDB and MySQL do: rows that do not grow, and those of before.

use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection};

use super::backend::*;
use crate::queue::RequestFilter;

/// Migrations 1 and 2 with rows, as a program of that time left them.
const ROWS: &[&str] = &[
    "CREATE TABLE queue_migration (number BIGINT NOT NULL PRIMARY KEY, line BIGINT NOT NULL, name VARCHAR(64) NOT NULL)",
    "INSERT INTO queue_migration (number, line, name) VALUES (1, 1, 'init'), (2, 1, 'leases')",
    "INSERT INTO queue_run (id, source, dt, run, day_id, state, coverage, created_at) VALUES (1, 'rentals', '2026-11-30', 'day', 1, 1, 0, 1)",
    "INSERT INTO queue_host (id, name) VALUES (1, 'a.test')",
    "INSERT INTO queue_lane (id, run_id, stage, host_id, ready) VALUES (1, 1, 'list', 1, 1)",
    "INSERT INTO queue_request (id, run_id, scope, request_key, lane_id, origin, method, url, enqueued_at) VALUES \
     (1, 1, 1, x'00000000000000000000000000000001', 1, 0, 'GET', 'http://a.test/1', 1), \
     (2, 1, 1, x'00000000000000000000000000000002', 1, 0, 'GET', 'http://a.test/2', 1)",
    "INSERT INTO queue_request_state (run_id, id, lane_id, state, priority, not_before, attempt, failures, worker_id, slot, held_until, \
     capture, status, ended_at) VALUES (1, 1, 1, 2, 0, 0, 1, 0, 1, 0, 0, x'00112233445566778899aabbccddeeff', 200, 1234), \
     (1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_old_rows_say_stays() {
    let backend = Mysql::new().await;
    let mut connection = MySqlConnection::connect(&backend.place()).await.unwrap();
    let old = [
        include_str!("../schema/0001_mysql.sql"),
        include_str!("../schema/0002_mysql.sql"),
    ];
    let statements = old.iter().flat_map(|script| script.split(";\n"));
    for statement in statements.chain(ROWS.iter().copied()) {
        if !statement.trim().is_empty() {
            let run = connection.execute(AssertSqlSafe(statement.to_owned()));
            run.await.unwrap_or_else(|e| panic!("{statement}: {e}"));
        }
    }
    let queue = backend.open().await;
    let filter = RequestFilter {
        run_id: 1,
        limit: 10,
        ..RequestFilter::default()
    };
    let told = || async {
        let listed = queue.list_requests(&filter).await.unwrap();
        let told = listed.into_iter().map(|r| {
            let capture = r.capture.map(|c| c.as_str().to_owned());
            (r.id, capture, r.status, r.ended_at.is_some())
        });
        told.collect::<Vec<_>>()
    };
    let capture = Some("00112233445566778899aabbccddeeff".to_owned());
    let first = (1, capture.clone(), Some(200), true);
    assert_eq!(told().await, [first.clone(), (2, None, None, false)]);
    // What is done now is told alike.
    let run = queue.find_run(&run_key("day")).await.unwrap().unwrap();
    let worker = queue.join("test").await.unwrap();
    assert_eq!(drain(&queue, &worker, &run).await, 1);
    assert_eq!(told().await, [first, (2, capture, Some(200), true)]);
}
