//! Claims and finishes a second: the queue beside bare SQL on the same server.
//!
//! Contestants take turns, round after round. Each gets a database of its own with `rows` pending requests, new for every
//! round; one that is `full` has one for all rounds, with so many pending requests for each of them behind `done` ended
//! ones. So many workers claim a batch and finish it as done until the time is over. Both sides speak through the
//! same driver.
//!
//! | side | a claim | a finish |
//! | --- | --- | --- |
//! | `lakebed` | `Queue::claim` without limits of hosts | `Queue::finish`, every request done with a capture |
//! | `raw` | the one statement that takes rows under a lease (`raw.rs`) | the one statement that ends them, fenced |

mod fill;
mod place;
mod raw;

use std::collections::BTreeMap;
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
    contestants: Vec<Contestant>,
    batch: u32,
    workers: u32,
    seconds: f64,
    rows: i64,
    done: i64,
    rounds: u32,
}

/// Who is measured, and on what.
#[derive(Clone)]
struct Contestant {
    name: String,
    raw: bool,
    full: bool,
    snapshot: bool,
}

/// A contestant's database, filled.
struct Stand {
    place: Place,
    side: Side,
}

enum Side {
    Lakebed(Arc<Queue>, i64),
    Raw(place::Pool),
}

impl Job {
    /// Of contestants (`lakebed` or `raw`, then `:full` or `:snapshot`) and `--name value` pairs.
    pub fn parse(rest: &[&str]) -> Result<Self> {
        let names = rest.iter().take_while(|word| !word.starts_with("--"));
        let mut job = Self {
            contestants: names
                .map(|name| Contestant::parse(name))
                .collect::<Result<_>>()?,
            batch: 100,
            workers: 1,
            seconds: 2.0,
            rows: 100_000,
            done: 0,
            rounds: 1,
        };
        for pair in rest[job.contestants.len()..].chunks(2) {
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
                "--rounds" => job.rounds = u32::try_from(number).unwrap_or(1),
                _ => return Err(Error::invalid(format!("know the option `{name}`"))),
            }
        }
        Ok(job)
    }
}

impl Contestant {
    fn parse(name: &str) -> Result<Self> {
        let (side, kind) = name.split_once(':').unwrap_or((name, ""));
        if !matches!(side, "lakebed" | "raw") || !matches!(kind, "" | "full" | "snapshot") {
            return Err(Error::invalid(format!("know the contestant `{name}`")));
        }
        Ok(Self {
            name: name.to_owned(),
            raw: side == "raw",
            full: kind == "full",
            snapshot: kind == "snapshot",
        })
    }
}

impl Stand {
    async fn make(server: &str, job: &Job, who: &Contestant) -> Result<Self> {
        let place = Place::make(server).await?;
        let (rows, done) = if who.full {
            (job.rows * i64::from(job.rounds), job.done)
        } else {
            (job.rows, 0)
        };
        let side = if who.raw {
            Side::Raw(raw::fill(&place, job.workers, rows, done).await?)
        } else {
            let queue = Queue::open(&place.url, QueueOptions::default()).await?;
            let run_id = fill::fill_queue(&place, &queue, rows, done).await?;
            Side::Lakebed(Arc::new(queue), run_id)
        };
        Ok(Self { place, side })
    }

    async fn measure(&self, job: &Job, who: &Contestant) -> Result<Value> {
        let held = self.place.hold_snapshot(who.snapshot).await?;
        let started = Instant::now();
        let end = started + Duration::from_secs_f64(job.seconds);
        let tasks = match &self.side {
            Side::Raw(pool) => raw::start(pool, job, end),
            Side::Lakebed(queue, run_id) => {
                let (run_id, limit) = (*run_id, job.batch);
                let one = |_| {
                    let queue = Arc::clone(queue);
                    tokio::spawn(async move { work(&queue, run_id, limit, end).await })
                };
                (0..job.workers).map(one).collect()
            }
        };
        let counts = join(tasks).await?;
        let answered = answer(job, &counts, started)?;
        drop(held);
        Ok(answered)
    }

    async fn end(self) -> Result<()> {
        match self.side {
            Side::Lakebed(queue, _) => queue.close().await,
            Side::Raw(pool) => pool.close().await,
        }
        self.place.drop().await
    }
}

/// Measures every contestant once a round; every round begins with another one.
pub async fn measure(server: &str, job: &Job) -> Result<Value> {
    let mut full: BTreeMap<&str, Stand> = BTreeMap::new();
    for who in job.contestants.iter().filter(|who| who.full) {
        full.insert(&who.name, Stand::make(server, job, who).await?);
    }
    let mut answers: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut order: Vec<&Contestant> = job.contestants.iter().collect();
    for _ in 0..job.rounds {
        for who in &order {
            let answered = match full.get(who.name.as_str()) {
                Some(stand) => stand.measure(job, who).await?,
                None => {
                    let stand = Stand::make(server, job, who).await?;
                    let answered = stand.measure(job, who).await?;
                    stand.end().await?;
                    answered
                }
            };
            answers.entry(&who.name).or_default().push(answered);
        }
        order.rotate_left(1);
    }
    for stand in full.into_values() {
        stand.end().await?;
    }
    Ok(json!(answers))
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
