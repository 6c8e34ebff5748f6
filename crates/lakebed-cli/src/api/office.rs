//! Runs that crawlers of somebody else work on through this process: a desk each, its planner, its workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lakebed::catalog::{self, SqliteCatalog};
use lakebed::config::{Project, Settings};
use lakebed::crawl::{self, CrawlPlan, Desk};
use lakebed::name::{ContentHash, SourceName};
use lakebed::pack::PackReport;
use lakebed::queue::{EnqueueStats, Queue, RunRecord, RunState, Worker};
use lakebed::spec::{By, RunKey, TerminalRecord};
use lakebed::{Error, Result};
use tokio::time::Instant;

use crate::api::fail::{Code, Fail};
use crate::api::shape::ClaimsAnswer;
use crate::commands::{check_new_run, plan_of};
use crate::context::{PROGRAM, open_lake};
use crate::printer::Printer;

/// Everything that the process shares.
pub(super) struct Office {
    project: Project,
    settings: Settings,
    pub(super) printer: Printer,
    queues: tokio::sync::Mutex<HashMap<SourceName, Queue>>,
    desks: tokio::sync::Mutex<BTreeMap<RunKey, Arc<RunDesk>>>,
}

/// A run with its desk.
pub(super) struct RunDesk {
    pub(super) desk: Desk,
    /// The planner that seeds, while one does; and the one that opened the run.
    pub(super) seeding: tokio::sync::Mutex<Option<Seeding>>,
    /// Held while the run is closed.
    pub(super) closing: tokio::sync::Mutex<()>,
    workers: Mutex<HashMap<String, Arc<KnownWorker>>>,
}

/// A planner's start.
pub(super) struct Seeding {
    /// Its name.
    pub(super) name: String,
    /// Batches that came: the hash of each and what became of it.
    pub(super) batches: Vec<(ContentHash, EnqueueStats)>,
    /// When it was heard of.
    pub(super) heard_at: Instant,
    /// It opened the run, with so many announced.
    pub(super) opened: Option<u64>,
}

/// A worker that was met.
pub(super) struct KnownWorker {
    pub(super) worker: Worker,
    /// The last call for claims that had a name, and its answer.
    pub(super) last_claims: tokio::sync::Mutex<Option<(String, ClaimsAnswer)>>,
    /// When its sign of life was passed on.
    beat_at: Mutex<Option<Instant>>,
}

impl Office {
    pub(super) fn new(project: Project, settings: Settings, printer: Printer) -> Self {
        Self {
            project,
            settings,
            printer,
            queues: Default::default(),
            desks: Default::default(),
        }
    }

    /// The configuration of the run's source, read anew.
    fn plan(&self, key: &RunKey) -> Result<CrawlPlan> {
        plan_of(&self.project, &self.settings, key, None)
    }

    async fn queue(&self, plan: &CrawlPlan) -> Result<Queue> {
        let source = &plan.run.source;
        if let Some(queue) = self.queues.lock().await.get(source) {
            return Ok(queue.clone());
        }
        // Not under the lock: where the database is away, nobody else waits for it.
        let queue = Queue::open(&self.settings.queue.value, plan.queue_options()).await?;
        let mut queues = self.queues.lock().await;
        Ok(queues.entry(source.clone()).or_insert(queue).clone())
    }

    /// The desk of the run, which must be there; `create` makes it.
    pub(super) async fn desk(&self, key: &RunKey, create: bool) -> Result<Arc<RunDesk>> {
        if let Some(desk) = self.desks.lock().await.get(key) {
            return Ok(Arc::clone(desk));
        }
        let plan = self.plan(key)?;
        let queue = self.queue(&plan).await?;
        let run = match (queue.find_run(key).await?, create) {
            (Some(run), _) => run,
            (None, true) => {
                let now = self.printer.now();
                let of = (&self.project, &self.settings, &queue);
                let said = check_new_run(of, key, now).await?;
                said.iter().for_each(|said| self.printer.warn(said));
                queue.create_run(key, &plan.run_options()).await?
            }
            (None, false) => {
                return Err(Error::not_found(format!("the queue has no run `{key}`"))
                    .hint("PUT on its path makes it"));
            }
        };
        let desk = Arc::new(RunDesk {
            desk: Desk::new(&queue, plan, &run)?,
            seeding: Default::default(),
            closing: Default::default(),
            workers: Default::default(),
        });
        let mut desks = self.desks.lock().await;
        if let Some(other) = desks.get(key) {
            return Ok(Arc::clone(other));
        }
        desks.insert(key.clone(), Arc::clone(&desk));
        tokio::spawn(tend(Arc::downgrade(&desk), self.printer.twin()));
        Ok(desk)
    }

    /// Forgets the desk of a run that is closed.
    pub(super) async fn forget(&self, key: &RunKey) {
        self.desks.lock().await.remove(key);
    }

    /// Ends every part, when the process ends.
    pub(super) async fn close(&self) {
        let desks = std::mem::take(&mut *self.desks.lock().await);
        for desk in desks.into_values() {
            drop(desk.desk.hold().await);
        }
    }

    /// Puts the pack of the run into the lake.
    pub(super) async fn pack(
        &self,
        plan: &CrawlPlan,
        terminals: Vec<TerminalRecord>,
    ) -> Result<PackReport> {
        let lake = open_lake(&self.settings).await?;
        let catalog = SqliteCatalog::open(&self.settings.catalog.value).await?;
        let by = By {
            program: PROGRAM.to_owned(),
            user: self.settings.user.value.clone(),
            run: Some(plan.run.run.clone()),
            note: None,
        };
        let report = crawl::pack_run(&lake, &catalog, by, plan, terminals).await?;
        for warning in &report.warnings {
            self.printer.warn(warning);
        }
        if let Err(error) = catalog::sync(&lake, &catalog, &report.dataset).await {
            self.printer
                .warn(format!("the catalog could not follow the log: {error}"));
        }
        Ok(report)
    }
}

/// Looks after what silent crawlers leave, as long as the desk is there.
async fn tend(desk: std::sync::Weak<RunDesk>, printer: Printer) {
    let mut is_well = true;
    loop {
        let Some(desk) = desk.upgrade() else { return };
        let heartbeat = desk.desk.queue().options().heartbeat_us.unsigned_abs();
        let tended = desk.desk.tend().await;
        if let (Err(error), true) = (&tended, is_well) {
            printer.warn(format!("{}: {error}", desk.desk.plan().run));
        }
        is_well = tended.is_ok();
        if desk.run().await.is_ok_and(|r| r.state == RunState::Closed) {
            return;
        }
        drop(desk);
        tokio::time::sleep(Duration::from_micros(heartbeat)).await;
    }
}

impl RunDesk {
    pub(super) async fn run(&self) -> Result<RunRecord> {
        self.desk.queue().get_run(self.desk.run_id()).await
    }

    /// How long a silent planner or worker is waited for.
    pub(super) fn lease(&self) -> Duration {
        Duration::from_micros(self.desk.queue().options().lease_us.unsigned_abs())
    }

    /// Remembers a worker that joined.
    pub(super) fn keep_worker(&self, worker: Worker) -> Arc<KnownWorker> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = workers.entry(worker.name.clone()).or_insert_with(|| {
            Arc::new(KnownWorker {
                worker,
                last_claims: Default::default(),
                beat_at: Default::default(),
            })
        });
        Arc::clone(known)
    }

    pub(super) fn forget_worker(&self, name: &str) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.remove(name);
    }

    /// The worker of this name: remembered, or of an earlier start of this program.
    pub(super) async fn worker(&self, name: &str) -> Result<Arc<KnownWorker>, Fail> {
        let known = {
            let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
            workers.get(name).cloned()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        match self.desk.queue().find_worker(name).await? {
            Some(worker) => Ok(self.keep_worker(worker)),
            None => Err(Fail::new(
                Code::NotFound,
                format!("there is no worker `{}`", name.escape_debug()),
            )
            .hint("POST on `workers` joins")),
        }
    }

    /// Passes a sign of life on, at most once a heartbeat's half.
    pub(super) async fn hear(&self, known: &KnownWorker) -> Result<(), Fail> {
        let options = self.desk.queue().options();
        let pause = Duration::from_micros(options.heartbeat_us.unsigned_abs() / 2);
        let now = Instant::now();
        let is_fresh = {
            let beat_at = known.beat_at.lock().unwrap_or_else(PoisonError::into_inner);
            beat_at.is_some_and(|at| now.duration_since(at) < pause)
        };
        match is_fresh {
            true => Ok(()),
            false => self.beat(known).await,
        }
    }

    /// Passes a sign of life on.
    pub(super) async fn beat(&self, known: &KnownWorker) -> Result<(), Fail> {
        use lakebed::queue::Heartbeat;
        match self.desk.queue().heartbeat(&known.worker).await? {
            Heartbeat::Alive => {
                let mut beat_at = known.beat_at.lock().unwrap_or_else(PoisonError::into_inner);
                *beat_at = Some(Instant::now());
                Ok(())
            }
            Heartbeat::Lost => Err(Fail::new(
                Code::WorkerLost,
                "the worker was silent for longer than its lease, or has left",
            )
            .hint("its claims went back to the queue: drop what it holds and join again")),
        }
    }
}
