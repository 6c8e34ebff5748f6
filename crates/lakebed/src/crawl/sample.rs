//! A few pages of a source, for whoever writes its rules: fetched as politely as any other, through the same queue, and
//! never part of a day.
//!
//! SMP-1: a sample is a run of its own with partial coverage. Its keys are unique within it, so no run of the date takes
//! its requests for done; its pack stays outside the lake; and its rows leave the queue when it has ended.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::config::{CoverageConfig, CrawlConfig, ScopeConfig};
use crate::crawl::close::read_terminals;
use crate::crawl::drive::{CrawlPlan, crawl_run, parts_folder, seed_run};
use crate::crawl::seeds::SeedPlan;
use crate::crawl::worker::{CrawlWatch, WorkerEnd, WorkerStats};
use crate::error::{Error, Result};
use crate::pack::{open_parts, plan_pack, save_pack};
use crate::queue::{Coverage, Queue, RunRecord};
use crate::spec::{PackProfile, RunKey};

/// What the names of runs of samples begin with.
const RUN_PREFIX: &str = "sample-";
/// How many names are tried.
const MAX_RUNS: u32 = 10_000;

/// What came of a sample.
#[derive(Debug)]
#[must_use]
pub struct Sampled {
    /// Its run.
    pub run: RunKey,
    /// The pack with its pages; absent where nothing was fetched.
    pub pack: Option<PathBuf>,
    /// Why it ended.
    pub end: WorkerEnd,
    /// What was done.
    pub stats: WorkerStats,
    /// Requests that were known and not fetched.
    pub left: u64,
    /// Classes in which requests died, each once.
    pub dead_classes: BTreeSet<String>,
}

/// What a sample changes of a crawl: it never claims to see everything, and its keys are its own.
#[must_use]
pub fn sample_config(mut config: CrawlConfig) -> CrawlConfig {
    config.coverage = CoverageConfig::Partial;
    for stage in config.stage.values_mut() {
        stage.key_scope = ScopeConfig::Run;
    }
    config
}

/// Whether the run is a sample, which is no run of its day: one that was killed stays in the queue.
#[must_use]
pub fn is_sample(run: &RunRecord) -> bool {
    let name = run.key.run.as_str().strip_prefix(RUN_PREFIX);
    run.coverage == Coverage::Partial && name.is_some_and(|n| n.parse::<u32>().is_ok())
}

/// A run that neither the queue nor the folder of samples has.
pub async fn name_sample(queue: &Queue, like: &RunKey, folder: &Path) -> Result<RunKey> {
    for number in 1..=MAX_RUNS {
        let run = RunKey {
            run: format!("{RUN_PREFIX}{number}").parse()?,
            ..like.clone()
        };
        let is_free = !parts_folder(folder, &run).exists();
        if is_free && queue.find_run(&run).await?.is_none() {
            return Ok(run);
        }
    }
    Err(
        Error::precondition(format!("{MAX_RUNS} samples of one date are kept"))
            .with("folder", folder.display())
            .hint("delete those that nobody needs"),
    )
}

/// Fetches as many pages as the plan's limit says, beginning with as many of its seeds, and packs them beside the parts.
///
/// # Errors
/// What seeding, fetching or packing answers. The run then stays stopped in the queue.
pub async fn sample_run(
    queue: &Queue,
    plan: &CrawlPlan,
    read_plan: impl AsyncFnOnce() -> Result<SeedPlan>,
    stop: watch::Receiver<bool>,
    watch: &dyn CrawlWatch,
) -> Result<Sampled> {
    let limit = usize::try_from(plan.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let read = async || {
        let mut seeds = read_plan().await?;
        seeds.seeds.truncate(limit);
        Ok(seeds)
    };
    let run = seed_run(queue, plan, read).await?;
    let crawled = crawl_run(queue, plan, &run, Vec::new(), stop, watch).await;
    queue.stop_run(run.id, "a sample, not a day").await?;
    let (end, stats) = crawled?;
    let left = queue.give_up_run(run.id).await?;
    let (pack, dead_classes) = pack_sample(queue, plan, &run).await?;
    // It closes red, as what was stopped does; that nobody looks at: nothing of it stays.
    let _sealed = queue.seal_run(run.id).await?;
    let _closed = queue.close_run(run.id, &plan.closing_rules(&run)).await?;
    let _pruned = queue.prune_family(&[run.id]).await?;
    Ok(Sampled {
        run: plan.run.clone(),
        pack,
        end,
        stats,
        left,
        dead_classes,
    })
}

/// Parts and ends become a pack and its index in the same folder; the parts go.
async fn pack_sample(
    queue: &Queue,
    plan: &CrawlPlan,
    run: &RunRecord,
) -> Result<(Option<PathBuf>, BTreeSet<String>)> {
    let terminals = read_terminals(queue, run.id).await?;
    let classes = terminals.iter().filter_map(|t| t.class.as_ref());
    let classes = classes
        .map(ToString::to_string)
        .filter(|class| class != "given_up")
        .collect();
    let (folder, key) = (plan.parts.clone(), plan.run.clone());
    let packed = tokio::task::spawn_blocking(move || {
        let parts = open_parts(&folder, &key)?;
        let ends = terminals.into_iter().map(Ok);
        let pack = plan_pack(&key, &parts, ends, PackProfile::Std, &folder)?;
        if pack.stats().captures == 0 {
            return Ok(None);
        }
        let path = save_pack(pack, &folder)?;
        for part in &parts.parts {
            fs::remove_file(part.path())
                .map_err(|e| Error::io("delete the part", part.path().display(), e))?;
        }
        Ok(Some(path))
    });
    let packed = packed
        .await
        .map_err(|e| Error::internal("pack the sample").caused_by(e))?;
    Ok((packed?, classes))
}
