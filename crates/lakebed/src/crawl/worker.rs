//! The worker of one process: claims, works on several at once, finishes in batches, says that it lives.
//!
//! ```text
//!  claim --> tasks (fetch, part durable) --> ends --> finish in batches
//!    ^                                                   |
//!    +------ free hands ---------------------------------+
//!  beside: heartbeat, reap, deadline
//! ```
//! It ends when the run is drained or stopped, when it is told to, or when a response could not be made
//! durable. What it still holds then goes back to the queue without a count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::crawl::task::{TaskContext, TaskEnd, work};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::CircuitBreaker;
use crate::name::StageName;
use crate::queue::{
    Claim, ClaimOptions, ClaimOutcome, Finish, FinishKind, FinishOutcome, Heartbeat, Queue, Worker,
};

/// Ends that are told together at most.
const MAX_FINISHES: usize = 100;
/// How long an end waits for others.
const FINISH_LINGER: Duration = Duration::from_millis(20);
/// After so long without work a worker says whom it waits for.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long running fetches are waited for when the worker is told to go.
const GRACE: Duration = Duration::from_secs(10);

/// What a worker is to do.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The run's number.
    pub run_id: i64,
    /// Of these stages alone; empty for all.
    pub stages: Vec<StageName>,
    /// Fetches at once.
    pub hands: u32,
    /// The last so many ends that the breaker looks at.
    pub breaker_window: usize,
    /// Percent of them in trouble that stop the run.
    pub breaker_percent: usize,
    /// Requests that it makes done at most; `None` for as many as there are.
    pub limit: Option<u64>,
    /// Take an equal share of the limit of each of these stages, one stage after the other, then of the one that had the fewest
    /// claims; empty = in the order of the queue.
    pub in_turn: Vec<StageName>,
}

/// What a worker did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct WorkerStats {
    /// Requests it finished as done.
    pub done: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Requests that a host put off.
    pub blocked: u64,
    /// Ends that came too late: the lease had ended.
    pub lost: u64,
    /// Bytes of bodies, encodings removed.
    pub bytes: u64,
}

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEnd {
    /// Every request of the run (of its stages) has ended.
    Drained,
    /// The run was stopped, with this reason.
    Stopped(String),
    /// It was told to go.
    Told,
    /// It made as many requests done as it was to.
    Full,
}

/// Told of progress, for people.
pub trait CrawlWatch: Send + Sync {
    /// After each batch of ends.
    fn progress(&self, stats: &WorkerStats);
    /// Something that a person should know.
    fn note(&self, text: &str);
}

pub(super) struct CrawlWorker<'a> {
    queue: &'a Queue,
    context: Arc<TaskContext>,
    options: &'a WorkerOptions,
    watch: &'a dyn CrawlWatch,
    worker: Worker,
    breaker: CircuitBreaker,
    tasks: JoinSet<(i64, Result<TaskEnd>)>,
    held: BTreeMap<i64, u32>,
    /// Claims of each stage, where stages are taken in turn.
    turns: BTreeMap<StageName, u64>,
    ends: Vec<TaskEnd>,
    stats: WorkerStats,
    /// Since when nothing is under way; absent while something is.
    idle_since: Option<tokio::time::Instant>,
    /// Whether it was said what this idleness waits for.
    is_wait_told: bool,
}

impl<'a> CrawlWorker<'a> {
    /// Joins the queue.
    pub(super) async fn join(
        queue: &'a Queue,
        context: Arc<TaskContext>,
        options: &'a WorkerOptions,
        watch: &'a dyn CrawlWatch,
    ) -> Result<Self> {
        let label = format!("{} process {}", hostname(), std::process::id());
        Ok(Self {
            worker: queue.join(&label).await?,
            breaker: CircuitBreaker::new(options.breaker_window, options.breaker_percent),
            queue,
            context,
            options,
            watch,
            tasks: JoinSet::new(),
            held: BTreeMap::new(),
            turns: BTreeMap::new(),
            ends: Vec::new(),
            stats: WorkerStats::default(),
            idle_since: None,
            is_wait_told: false,
        })
    }

    /// Works until there is nothing left, or until `stop` is set.
    pub(super) async fn run(
        mut self,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(WorkerEnd, WorkerStats)> {
        let worked = self.work(&mut stop).await;
        // Whatever ended it: what came is told, what did not come goes back.
        self.tasks.shutdown().await;
        let flushed = self.flush().await;
        let left = self.queue.leave(&self.worker).await;
        let end = worked?;
        flushed?;
        left?;
        Ok((end, self.stats))
    }

    async fn work(&mut self, stop: &mut watch::Receiver<bool>) -> Result<WorkerEnd> {
        let heartbeat = Duration::from_micros(self.queue.options().heartbeat_us.unsigned_abs());
        let mut beats = tokio::time::interval(heartbeat);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if *stop.borrow() {
                self.wait_for_tasks().await?;
                return Ok(WorkerEnd::Told);
            }
            for note in self.context.hosts.take_notes() {
                self.watch.note(&note);
            }
            let wait = match self.claim().await? {
                Claimed::Some => None,
                Claimed::Wait(wait) => {
                    self.tell_wait().await?;
                    Some(wait)
                }
                Claimed::End(end) if self.tasks.is_empty() && self.ends.is_empty() => {
                    return Ok(end);
                }
                Claimed::End(_) => Some(FINISH_LINGER),
            };
            let pause = match wait {
                _ if !self.ends.is_empty() => FINISH_LINGER,
                Some(wait) => wait,
                None if self.free_hands() == 0 => Duration::from_secs(1),
                None => Duration::ZERO,
            };
            tokio::select! {
                biased;
                _ = stop.changed() => {}
                _ = beats.tick() => self.beat().await?,
                Some(joined) = self.tasks.join_next(), if !self.tasks.is_empty() => self.take_end(joined).await?,
                () = tokio::time::sleep(pause) => self.flush().await?,
            }
        }
    }

    fn hands(&self) -> usize {
        usize::try_from(self.options.hands.max(1)).unwrap_or(1)
    }

    /// Hands that may claim: what is under way may become done, and counts against the limit.
    fn free_hands(&self) -> usize {
        let free = self.hands().saturating_sub(self.tasks.len());
        let Some(limit) = self.options.limit else {
            return free;
        };
        let left = usize::try_from(limit.saturating_sub(self.stats.done)).unwrap_or(usize::MAX);
        free.min(left.saturating_sub(self.tasks.len() + self.ends.len()))
    }

    /// Claims for the free hands.
    async fn claim(&mut self) -> Result<Claimed> {
        if self.options.limit.is_some_and(|l| self.stats.done >= l) {
            return Ok(Claimed::End(WorkerEnd::Full));
        }
        let free = self.free_hands();
        if free == 0 {
            return Ok(Claimed::Some);
        }
        let mut stages = self.options.in_turn.clone();
        let limit = self.options.limit.unwrap_or(u64::MAX);
        let share = (limit / stages.len().max(1) as u64).max(1);
        let turns = |stage: &StageName| self.turns.get(stage).copied().unwrap_or(0);
        // Stable: those that have not had their share keep their order.
        stages.sort_by_key(|stage| turns(stage).saturating_sub(share - 1));
        for stage in stages {
            if let Claimed::Some = self.claim_of(vec![stage], 1).await? {
                return Ok(Claimed::Some);
            }
        }
        self.claim_of(self.options.stages.clone(), free).await
    }

    /// Claims so many requests of these stages.
    async fn claim_of(&mut self, stages: Vec<StageName>, count: usize) -> Result<Claimed> {
        let options = ClaimOptions {
            run_id: self.options.run_id,
            stages,
            limit: u32::try_from(count).unwrap_or(1),
            hosts: Some(self.context.hosts.limits()),
        };
        match self.queue.claim(&self.worker, &options).await {
            Ok(ClaimOutcome::Claimed(claims)) => {
                claims.into_iter().for_each(|claim| self.start(claim));
                Ok(Claimed::Some)
            }
            Ok(ClaimOutcome::Wait(us)) => {
                Ok(Claimed::Wait(Duration::from_micros(us.unsigned_abs())))
            }
            Ok(ClaimOutcome::Drained) => Ok(Claimed::End(WorkerEnd::Drained)),
            Ok(ClaimOutcome::Stopped(reason)) => Ok(Claimed::End(WorkerEnd::Stopped(reason))),
            Err(e) if e.kind() == ErrorKind::Conflict => {
                self.rejoin().await?;
                Ok(Claimed::Wait(Duration::from_millis(100)))
            }
            Err(e) => Err(e),
        }
    }

    fn start(&mut self, claim: Claim) {
        let context = Arc::clone(&self.context);
        let id = claim.id;
        if !self.options.in_turn.is_empty() {
            *self.turns.entry(claim.stage.clone()).or_default() += 1;
        }
        self.held.insert(id, claim.attempt);
        (self.idle_since, self.is_wait_told) = (None, false);
        self.tasks
            .spawn(async move { (id, work(&context, claim).await) });
    }

    /// Says that it lives, and looks after what others left.
    async fn beat(&mut self) -> Result<()> {
        if self.queue.heartbeat(&self.worker).await? == Heartbeat::Lost {
            self.rejoin().await?;
        }
        let _reaped = self.queue.reap().await?;
        let _expired = self.queue.expire_run(self.options.run_id).await?;
        Ok(())
    }

    /// Says, once, who holds the places of the hosts that this worker waits for.
    async fn tell_wait(&mut self) -> Result<()> {
        if !self.tasks.is_empty() {
            self.idle_since = None;
            return Ok(());
        }
        let now = tokio::time::Instant::now();
        let since = *self.idle_since.get_or_insert(now);
        if self.is_wait_told || now - since < PATIENCE {
            return Ok(());
        }
        self.is_wait_told = true;
        for holder in self.queue.list_holders(self.options.run_id).await? {
            if holder.worker_id == self.worker.id {
                continue;
            }
            self.watch.note(&format!(
                "waits for `{}`: {} of the run `{}` there are held by `{}`, {}; if it is gone, its lease ends in {} s",
                holder.host,
                holder.requests,
                holder.run,
                holder.label,
                holder.heard(),
                seconds(holder.lease_left_us)
            ));
        }
        Ok(())
    }

    /// Its lease had ended: what it holds is not its own any more.
    async fn rejoin(&mut self) -> Result<()> {
        self.tasks.shutdown().await;
        self.stats.lost += (self.held.len()) as u64;
        self.held.clear();
        self.ends.clear();
        self.worker = self
            .queue
            .join(&format!("{} process {}", hostname(), std::process::id()))
            .await?;
        Ok(())
    }

    async fn take_end(
        &mut self,
        joined: std::result::Result<(i64, Result<TaskEnd>), tokio::task::JoinError>,
    ) -> Result<()> {
        let (_, end) = joined
            .map_err(|e| Error::internal("a fetch of the crawl ended by itself").caused_by(e))?;
        let end = end?;
        self.stats.bytes += end.bytes;
        if self.breaker.record(end.sample) && self.breaker.is_open() {
            let (trouble, looked) = self.breaker.counts();
            let reason = format!(
                "the circuit breaker opened: {trouble} of the last {looked} requests met trouble"
            );
            self.queue.stop_run(self.options.run_id, &reason).await?;
        }
        self.ends.push(end);
        if self.ends.len() >= MAX_FINISHES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Tells the queue how claims ended.
    async fn flush(&mut self) -> Result<()> {
        let ends = std::mem::take(&mut self.ends);
        for part in ends.chunks(MAX_FINISHES) {
            let finishes: Vec<Finish> = part.iter().map(|e| e.finish.clone()).collect();
            let outcomes = self
                .queue
                .finish(&self.worker, self.options.run_id, &finishes)
                .await?;
            for (finish, outcome) in finishes.iter().zip(outcomes) {
                self.held.remove(&finish.id);
                match (&finish.end, outcome) {
                    (_, FinishOutcome::Lost) => self.stats.lost += 1,
                    (FinishKind::Done(_), FinishOutcome::Accepted) => self.stats.done += 1,
                    (FinishKind::Failed { .. }, FinishOutcome::Accepted) => self.stats.failed += 1,
                    (FinishKind::Blocked { .. }, FinishOutcome::Accepted) => {
                        self.stats.blocked += 1
                    }
                    (FinishKind::GivenBack, FinishOutcome::Accepted) => {}
                }
            }
            self.watch.progress(&self.stats);
        }
        Ok(())
    }

    /// Waits for what is under way, within the grace.
    async fn wait_for_tasks(&mut self) -> Result<()> {
        let waited = tokio::time::timeout(GRACE, async {
            while let Some(joined) = self.tasks.join_next().await {
                self.take_end(joined).await?;
            }
            Ok(())
        });
        // Past the grace the rest is given back.
        waited.await.unwrap_or(Ok(()))
    }
}

enum Claimed {
    /// Work was found, or no hand is free.
    Some,
    Wait(Duration),
    End(WorkerEnd),
}

/// Whole seconds, the last one begun counted.
fn seconds(us: i64) -> u64 {
    us.max(0).unsigned_abs().div_ceil(1_000_000)
}

/// The machine's name, for people.
fn hostname() -> String {
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "a machine".to_owned()
    } else {
        name.to_owned()
    }
}
