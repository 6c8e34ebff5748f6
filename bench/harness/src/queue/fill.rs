//! Filling the queue's own tables with many requests at once, as no crawl could within a measurement.

use lakebed::queue::{NewRequest, Queue, RunOptions};
use lakebed::spec::RunKey;
use lakebed::{Error, Result};

use super::place::{Place, Pool, parts};

/// First number of the requests that are filled in.
const FIRST: i64 = 10_000_000;

/// An open run with so many pending requests behind so many that are done; its number.
pub async fn fill_queue(place: &Place, queue: &Queue, rows: i64, done: i64) -> Result<i64> {
    let key = RunKey {
        source: "bench".parse()?,
        date: "2026-11-30".parse()?,
        run: "day".parse()?,
    };
    let run = queue.create_run(&key, &RunOptions::default()).await?;
    if !queue.begin_seeding(run.id).await? {
        return Err(Error::internal("another process seeds"));
    }
    let seed = NewRequest::get("list".parse()?, "http://a.test/".to_owned());
    let seeded = queue.add_seeds(run.id, &[seed], 0).await?;
    queue.open_run(run.id, seeded.announced, "plan").await?;
    let pool = place.connect(1).await?;
    for (first, count) in parts(FIRST, done) {
        pool.run(&fill_sql(&pool, run.id, first, count, 2)).await?;
    }
    for (first, count) in parts(FIRST + done, rows) {
        pool.run(&fill_sql(&pool, run.id, first, count, 0)).await?;
    }
    pool.settle().await?;
    Ok(run.id)
}

fn fill_sql(pool: &Pool, run_id: i64, first: i64, count: i64, state: i64) -> Vec<String> {
    let numbers = pool.numbers(count);
    let (key, url, overriding) = match pool {
        Pool::Sqlite(_) => (
            format!("CAST(printf('%016d', {first} + i) AS BLOB)"),
            format!(
                "'http://a.test/rentals/{}/' || ({first} + i)",
                "x".repeat(90)
            ),
            "",
        ),
        Pool::Postgres(_) => (
            format!("convert_to(lpad(({first} + i)::text, 16, '0'), 'UTF8')"),
            format!(
                "'http://a.test/rentals/{}/' || ({first} + i)",
                "x".repeat(90)
            ),
            "OVERRIDING SYSTEM VALUE",
        ),
        Pool::Mysql(_) => (
            format!("lpad({first} + i, 16, '0')"),
            format!(
                "concat('http://a.test/rentals/{}/', {first} + i)",
                "x".repeat(90)
            ),
            "",
        ),
    };
    let carry = "y".repeat(100);
    let lane = format!("(SELECT min(id) FROM queue_lane WHERE run_id = {run_id})");
    vec![
        format!(
            "INSERT INTO queue_request (id, run_id, scope, request_key, lane_id, origin, method, url, carry, enqueued_at) \
             {overriding} SELECT {first} + i, {run_id}, {run_id}, {key}, {lane}, 0, 'GET', {url}, '{carry}', 0 FROM {numbers}"
        ),
        format!(
            "INSERT INTO queue_request_state (run_id, id, lane_id, state, priority, not_before, attempt, failures, \
             worker_id, slot, held_until) SELECT {run_id}, {first} + i, {lane}, {state}, 0, 0, 0, 0, 0, 0, 0 FROM {numbers}"
        ),
        format!(
            "UPDATE queue_progress SET enqueued = enqueued + {count}, done = done + {} WHERE lane_id = {lane}",
            if state == 2 { count } else { 0 }
        ),
    ]
}
