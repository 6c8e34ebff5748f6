//! Claims and finishes a second: the queue beside bare SQL on the same server.
//!
//! Either side gets a database of its own with `rows` pending requests behind `done` ended ones, and so many
//! workers claim a batch and finish it as done until the time is over. Both speak through the same driver.
//!
//! | side | a claim | a finish |
//! | --- | --- | --- |
//! | `lakebed` | `Queue::claim` without limits of hosts | `Queue::finish`, every request done with a capture |
//! | `raw` | the one statement that takes rows under a lease (`raw.rs`) | the one statement that ends them, fenced |

mod fill;
mod place;
mod raw;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lakebed::queue::{
    Claim, ClaimOptions, ClaimOutcome, DoneSpec, Finish, FinishKind, FinishOutcome, Queue,
    QueueOptions,
};
use lakebed::{Error, Result};
use serde_json::{Value, json};

use self::place::Place;

/// What is to be done.
pub struct Job {
    raw: bool,
    batch: u32,
    workers: u32,
    seconds: f64,
    rows: i64,
    done: i64,
    snapshot: bool,
}

impl Job {
    /// Of `--name value` pairs.
    pub fn parse(side: &str, rest: &[&str]) -> Result<Self> {
        let mut job = Self {
            raw: match side {
                "raw" => true,
                "lakebed" => false,
                _ => return Err(Error::invalid(format!("know the side `{side}`"))),
            },
            batch: 100,
            workers: 1,
            seconds: 2.0,
            rows: 100_000,
            done: 0,
            snapshot: false,
        };
        for pair in rest.chunks(2) {
            let [name, value] = pair else {
                return Err(Error::invalid(format!("read `{}`", pair[0])));
            };
            let number = crate::number(value)?;
            match *name {
                "--batch" => job.batch = u32::try_from(number).unwrap_or(1),
                "--workers" => job.workers = u32::try_from(number).unwrap_or(1),
                "--seconds" => job.seconds = Duration::from_secs(number).as_secs_f64(),
                "--rows" => job.rows = i64::try_from(number).unwrap_or(0),
                "--done" => job.done = i64::try_from(number).unwrap_or(0),
                "--snapshot" => job.snapshot = number == 1,
                _ => return Err(Error::invalid(format!("know the option `{name}`"))),
            }
        }
        Ok(job)
    }
}

/// Measures one side in a new database, which goes at the end.
pub async fn measure(server: &str, job: &Job) -> Result<Value> {
    let place = Place::make(server).await?;
    let measured = if job.raw {
        raw::measure(&place, job).await
    } else {
        measure_queue(&place, job).await
    };
    place.drop().await?;
    measured
}

/// What the workers of a side did together.
fn answer(job: &Job, counts: &[u64], started: Instant) -> Result<Value> {
    let wall = started.elapsed().as_secs_f64();
    let count: u64 = counts.iter().sum();
    if i64::try_from(count).unwrap_or(i64::MAX) >= job.rows {
        return Err(Error::invalid(format!(
            "measure: all {} requests were done after {wall:.1} s",
            job.rows
        ))
        .hint("give it more --rows"));
    }
    Ok(json!({ "count": count, "wall_s": wall }))
}

async fn measure_queue(place: &Place, job: &Job) -> Result<Value> {
    let queue = Queue::open(&place.url, QueueOptions::default()).await?;
    let run_id = fill::fill_queue(place, &queue, job.rows, job.done).await?;
    let held = place.hold_snapshot(job.snapshot).await?;
    let started = Instant::now();
    let end = started + Duration::from_secs_f64(job.seconds);
    let queue = Arc::new(queue);
    let mut tasks = Vec::new();
    for _ in 0..job.workers {
        let queue = Arc::clone(&queue);
        let limit = job.batch;
        tasks.push(tokio::spawn(async move {
            work(&queue, run_id, limit, end).await
        }));
    }
    let counts = join(tasks).await?;
    let answered = answer(job, &counts, started)?;
    drop(held);
    queue.close().await;
    Ok(answered)
}

async fn join(tasks: Vec<tokio::task::JoinHandle<Result<u64>>>) -> Result<Vec<u64>> {
    let mut counts = Vec::with_capacity(tasks.len());
    for task in tasks {
        let ended = task.await;
        counts.push(ended.map_err(|e| Error::internal("a worker ended by itself").caused_by(e))??);
    }
    Ok(counts)
}

async fn work(queue: &Queue, run_id: i64, limit: u32, end: Instant) -> Result<u64> {
    let worker = queue.join("bench").await?;
    let options = ClaimOptions {
        run_id,
        stages: Vec::new(),
        limit,
        hosts: None,
    };
    let mut count = 0;
    while Instant::now() < end {
        let ClaimOutcome::Claimed(claims) = queue.claim(&worker, &options).await? else {
            continue;
        };
        let finishes: Vec<Finish> = claims.iter().map(done).collect();
        let outcomes = queue.finish(&worker, run_id, &finishes).await?;
        if outcomes.iter().any(|o| *o != FinishOutcome::Accepted) {
            return Err(Error::internal("a finish was refused"));
        }
        count += outcomes.len() as u64;
    }
    Ok(count)
}

fn done(claim: &Claim) -> Finish {
    Finish {
        id: claim.id,
        attempt: claim.attempt,
        end: FinishKind::Done(DoneSpec {
            capture: claim.request_key.as_str().parse().ok(),
            status: Some(200),
            ..DoneSpec::default()
        }),
    }
}
