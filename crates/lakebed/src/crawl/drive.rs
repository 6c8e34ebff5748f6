//! A crawl from its seeds to its closing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::config::{CoverageConfig, CrawlConfig, CrawlLocal};
use crate::crawl::follow::Follower;
use crate::crawl::gate::Hosts;
use crate::crawl::links::{rule_of_kind, rule_of_stage};
use crate::crawl::seeds::SeedPlan;
use crate::crawl::task::TaskContext;
use crate::crawl::worker::{CrawlWatch, CrawlWorker, WorkerEnd, WorkerOptions, WorkerStats};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{AddressPolicy, CookieJar, FetchLimits, FetchOptions, Fetcher, ProxySpec};
use crate::name::StageName;
use crate::pack::{SharedPart, SharedPartOptions};
use crate::parse::Rules;
use crate::queue::{
    ClosingRules, Coverage, HostLimit, HostLimits, Queue, QueueOptions, RunOptions, RunRecord,
    RunState, StageLink,
};
use crate::spec::RunKey;
use crate::time::Clock;

/// Seeds that enter in one transaction.
const SEED_BATCH: usize = 500;
/// How often a process that waits for another's seeding looks.
const SEED_PAUSE: Duration = Duration::from_millis(200);
/// Fetches of one process at once where the configuration says nothing.
const DEFAULT_HANDS: u32 = 8;

/// A source's crawl with everything that is configured for it.
#[derive(Debug, Clone)]
pub struct CrawlPlan {
    /// Source, date and run.
    pub run: RunKey,
    /// What the team says.
    pub config: CrawlConfig,
    /// What this machine says.
    pub local: CrawlLocal,
    /// What its pages give; absent where they are not parsed here.
    pub rules: Option<Arc<Rules>>,
    /// The source's folder.
    pub folder: PathBuf,
    /// Folder of the run's parts.
    pub parts: PathBuf,
    /// Requests that this process makes done at most, of every stage in turn; `None` for as many as there are.
    pub limit: Option<u64>,
}

/// Folder of a run's parts below the project's folder of crawl state.
#[must_use]
pub fn parts_folder(state: &Path, run: &RunKey) -> PathBuf {
    state
        .join(run.source.as_str())
        .join(format!("{}.{}", run.date, run.run))
}

impl CrawlPlan {
    /// The limits of the queue.
    #[must_use]
    pub fn queue_options(&self) -> QueueOptions {
        let limits = self.local.limits(self.run.source.as_str());
        let usual = QueueOptions::default();
        let lease_us = limits
            .lease_s
            .map_or(usual.lease_us, |s| i64::from(s.max(1)) * 1_000_000);
        QueueOptions {
            lease_us,
            heartbeat_us: lease_us / 4,
            max_hold_us: usual.max_hold_us.max(lease_us),
            max_failures: self.config.max_failures.max(1),
            backoff_us: limits
                .backoff_ms
                .map_or(usual.backoff_us, |ms| i64::from(ms) * 1000),
            ..usual
        }
    }

    /// What the closing of the run demands. Of a run that was seeded from a plan, or that tries again what died in one that
    /// is gone: what was announced, beside what an earlier run of the date has; nothing, where a plan announced nothing.
    /// A run that tries again is judged with the first one, by the rules of that one.
    #[must_use]
    pub fn closing_rules(&self, run: &RunRecord) -> ClosingRules {
        let planned = run.seeds.announced.saturating_sub(run.seeds.duplicate);
        let is_given = run.is_planned() || run.successor_of.is_some();
        let (min_requests, min_done) = match is_given {
            true => (planned, self.config.min_done.min(planned)),
            false => (self.config.min_requests, self.config.min_done),
        };
        ClosingRules {
            min_requests,
            min_done,
            may_be_empty: run.is_planned() && planned == 0,
            max_dead_share: self.config.max_dead_share,
            need_captures: true,
            links: self.links(),
            refused: None,
        }
    }

    /// Which stage leads to which, by the parse rules and by the stages themselves.
    fn links(&self) -> Vec<StageLink> {
        let by_rules = self.rules.iter().flat_map(|rules| rules.links());
        let by_rules = by_rules.map(|(kind, from, to)| (rule_of_kind(kind, &to), from, to));
        let by_stages = self.config.stage.iter().flat_map(|(from, stage)| {
            let needed = stage.follow.iter().filter(|f| !f.may_be_empty);
            needed.map(|f| {
                let rule = rule_of_stage(from, &f.stage);
                (rule, Some(from.clone()), f.stage.clone())
            })
        });
        let link = |(rule, from, to): (String, Option<StageName>, StageName)| StageLink {
            rule,
            from: from.map(|s| s.to_string()),
            to: to.to_string(),
        };
        by_rules.chain(by_stages).map(link).collect()
    }

    /// What the run is made with.
    #[must_use]
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            coverage: match self.config.coverage {
                CoverageConfig::Full => Coverage::Full,
                CoverageConfig::Partial => Coverage::Partial,
            },
            deadline_us: self
                .config
                .deadline_minutes
                .map(|m| i64::from(m) * 60_000_000),
            successor_of: None,
        }
    }

    pub(super) fn host_limits(&self) -> HostLimits {
        let limits = self.local.limits(self.run.source.as_str());
        let limit = |pause_ms: Option<u32>, places: Option<u32>, usual: HostLimit| HostLimit {
            pause_us: pause_ms.map_or(usual.pause_us, |ms| i64::from(ms) * 1000),
            max_in_flight: places.unwrap_or(usual.max_in_flight),
        };
        let usual = limit(limits.pause_ms, limits.places, HostLimit::default());
        let named = self
            .local
            .host
            .iter()
            .map(|(name, own)| (name.clone(), limit(own.pause_ms, own.places, usual)));
        HostLimits {
            usual,
            named: named.collect(),
        }
    }

    pub(super) fn fetch_options(&self) -> Result<FetchOptions> {
        let limits = self.local.limits(self.run.source.as_str());
        let mut options = FetchOptions::new(&self.config.user_agent)?;
        let usual = FetchLimits::default();
        options.limits = FetchLimits {
            max_body_bytes: u64::from(self.config.max_body_mib) << 20,
            max_wire_bytes: usual
                .max_wire_bytes
                .min(u64::from(self.config.max_body_mib) << 20),
            total: limits
                .timeout_s
                .map_or(usual.total, |s| Duration::from_secs(u64::from(s))),
            idle_per_host: usual
                .idle_per_host
                .max(usize::try_from(self.hands()).unwrap_or(1)),
            ..usual
        };
        options.accepted_statuses = self.config.accept_statuses.iter().copied().collect();
        let mut addresses = AddressPolicy::default();
        for text in &self.config.allow_private {
            match text.parse() {
                Ok(network) => addresses.allowed_networks.push(network),
                Err(_) => addresses.allowed_hosts.push(text.to_ascii_lowercase()),
            }
        }
        options.addresses = addresses;
        options.proxy = limits.proxy.as_deref().map(ProxySpec::parse).transpose()?;
        options.cookies = self.config.cookies.then(CookieJar::default);
        if let Some(seconds) = limits.robots_retry_s {
            options.robots_retry = Duration::from_secs(u64::from(seconds));
        }
        options.record_set_cookie = self.config.record_set_cookie;
        Ok(options)
    }

    pub(super) fn follower(&self) -> Result<Follower> {
        let by = (self.rules.as_ref(), self.folder.as_path());
        let follower = Follower::new(&self.run, &self.config, by)?;
        Ok(match self.limit {
            Some(_) => follower.spread(),
            None => follower,
        })
    }

    /// Fetches of one process at once.
    #[must_use]
    pub fn hands(&self) -> u32 {
        self.local
            .limits(self.run.source.as_str())
            .workers
            .unwrap_or(DEFAULT_HANDS)
    }
}

/// Makes the run and seeds it, unless it is open already: a seeding that died begins again. Where another
/// process seeds, its end is waited for.
///
/// `read_plan` is asked only where seeds are needed. What it fails with ends the call, and the run stays
/// `seeding`: it can be neither claimed from nor closed.
pub async fn seed_run(
    queue: &Queue,
    plan: &CrawlPlan,
    read_plan: impl AsyncFnOnce() -> Result<SeedPlan>,
) -> Result<RunRecord> {
    let run = loop {
        let run = queue.create_run(&plan.run, &plan.run_options()).await?;
        if run.state != RunState::Seeding {
            return Ok(run);
        }
        match queue.begin_seeding(run.id).await {
            Ok(true) => break run,
            Ok(false) => tokio::time::sleep(SEED_PAUSE).await,
            // It was opened in between.
            Err(e) if e.kind() == ErrorKind::PreconditionFailed => {}
            Err(e) => return Err(e),
        }
    };
    match read_while_renewing(queue, run.id, read_plan).await {
        Ok(seeds) => add_all(queue, run.id, &seeds).await,
        Err(e) => {
            queue.leave_seeding(run.id).await?;
            Err(e)
        }
    }
}

/// Reads the plan; a long one keeps its place.
async fn read_while_renewing(
    queue: &Queue,
    run_id: i64,
    read_plan: impl AsyncFnOnce() -> Result<SeedPlan>,
) -> Result<SeedPlan> {
    let heartbeat = Duration::from_micros(queue.options().heartbeat_us.unsigned_abs());
    let read = read_plan();
    tokio::pin!(read);
    loop {
        tokio::select! {
            seeds = &mut read => return seeds,
            () = tokio::time::sleep(heartbeat) => queue.renew_seeding(run_id).await?,
        }
    }
}

async fn add_all(queue: &Queue, run_id: i64, seeds: &SeedPlan) -> Result<RunRecord> {
    let _refused = queue.add_seeds(run_id, &[], seeds.out_of_scope).await?;
    for part in seeds.seeds.chunks(SEED_BATCH) {
        let _stats = queue.add_seeds(run_id, part, 0).await?;
    }
    queue
        .open_run(run_id, seeds.announced(), &seeds.queue_hash())
        .await
}

/// Crawls an open run with the hands of this process until it is drained, stopped, or told to go.
pub async fn crawl_run(
    queue: &Queue,
    plan: &CrawlPlan,
    run: &RunRecord,
    stages: Vec<StageName>,
    stop: watch::Receiver<bool>,
    watch: &dyn CrawlWatch,
) -> Result<(WorkerEnd, WorkerStats)> {
    if run.state == RunState::Closed {
        return Err(
            Error::precondition(format!("the run `{}` is closed", run.key))
                .hint("`lakebed queue retry` tries its dead requests again in a run of its own"),
        );
    }
    std::fs::create_dir_all(&plan.parts)
        .map_err(|e| Error::io("make the folder", plan.parts.display(), e))?;
    let clock = Arc::new(Clock::System);
    let fetcher = Fetcher::new(plan.fetch_options()?, Arc::clone(&clock))?;
    let limits = plan.local.limits(plan.run.source.as_str());
    let context = TaskContext {
        run: plan.run.clone(),
        part: SharedPart::open(&plan.parts, &plan.run, SharedPartOptions::default(), &clock)?,
        hosts: Hosts::new(queue.clone(), fetcher.clone(), plan.host_limits()),
        follower: plan.follower()?,
        fetcher,
    };
    // Of a few pages, each shows what the next one is: one after the other, and some of every stage.
    let (hands, in_turn) = match plan.limit {
        Some(_) if stages.is_empty() => (1, stages_in_turn(&plan.config)),
        _ => (plan.hands(), Vec::new()),
    };
    let options = WorkerOptions {
        run_id: run.id,
        stages,
        hands,
        breaker_window: usize::try_from(limits.breaker_window.unwrap_or(100)).unwrap_or(100),
        breaker_percent: usize::try_from(limits.breaker_percent.unwrap_or(50)).unwrap_or(50),
        limit: plan.limit,
        in_turn,
    };
    let worker = CrawlWorker::join(queue, Arc::new(context), &options, watch).await?;
    worker.run(stop).await
}

/// The stages of a sample: that of the seeds, then the others.
fn stages_in_turn(config: &CrawlConfig) -> Vec<StageName> {
    let first = config.default_stage().ok();
    let mut stages: Vec<StageName> = config.stage.keys().cloned().collect();
    stages.sort_by_key(|stage| Some(stage) != first);
    stages
}
