//! What a crawl is to do: its configuration and its seeds, for the commands that crawl.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakebed::config::{Project, Settings};
use lakebed::crawl::{self, CrawlPlan, SeedPlan, read_seeds};
use lakebed::flow::PlanHead;
use lakebed::parse::Rules;
use lakebed::queue::{Queue, RunRecord};
use lakebed::spec::RunKey;
use lakebed::{Error, Result};

use crate::args::RunArgs;
use crate::commands::queue::{STATE_FOLDER, open_queue, run_key};
use crate::context::Globals;

/// What is configured for the crawl of a run.
pub(crate) fn plan_of(
    project: &Project,
    settings: &Settings,
    run: &RunKey,
    workers: Option<u32>,
) -> Result<CrawlPlan> {
    let source = project.load_source(&run.source)?;
    let file = project.source_file(&run.source);
    // What cannot be parsed afterwards need not be fetched.
    let has_rules = source.parse.as_ref().is_some_and(|p| !p.page.is_empty());
    let rules = has_rules
        .then(|| Rules::read(&source, &file.display().to_string()))
        .transpose()?;
    let config = source.crawl.ok_or_else(|| {
        Error::invalid(format!(
            "the source `{}` says nothing of how it is crawled",
            run.source
        ))
        .with("file", file.display())
        .hint("add a table [crawl] with user_agent, hosts, seeds and stages (docs/crawl.md)")
    })?;
    let mut local = settings.crawl.clone();
    if workers.is_some() {
        local
            .source
            .entry(run.source.to_string())
            .or_default()
            .workers = workers;
    }
    Ok(CrawlPlan {
        parts: crawl::parts_folder(&project.root().join(STATE_FOLDER), run),
        run: run.clone(),
        config,
        local,
        limit: None,
        rules: rules.map(Arc::new),
        folder: file.with_file_name(""),
    })
}

/// The run that is named, its plan, and the queue as the plan wants it.
pub(super) async fn open(
    args: &RunArgs,
    workers: Option<u32>,
    globals: &Globals<'_>,
) -> Result<(Project, CrawlPlan, Queue)> {
    let key = run_key(args)?;
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?;
    let plan = plan_of(&project, &settings, &key, workers)?;
    let (project, _, queue) = open_queue(globals, plan.queue_options()).await?;
    Ok((project, plan, queue))
}

/// The seeds: of the call, else as the source says.
pub(super) async fn read_plan(
    plan: &CrawlPlan,
    given: Option<&Path>,
    folder: &Path,
) -> Result<SeedPlan> {
    let (text, name) = match given {
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|e| Error::io("read standard input", "-", e))?;
            (text, "-".to_owned())
        }
        Some(path) => read_file(path.to_owned())?,
        None if !plan.config.seed_command.is_empty() => run_seed_command(plan, folder).await?,
        None => {
            match &plan.config.seeds {
                Some(file) => read_file(folder.join(file))?,
                None => {
                    return Err(Error::invalid(format!("the source `{}` says nothing of its seeds", plan.run.source))
                    .hint("set `seeds` or `seed_command` in its table [crawl], or give `--seeds FILE`"));
                }
            }
        }
    };
    read_seeds(&plan.config, &text, &name)
}

/// A plan that `lakebed seed` made, whole and of this run's date.
pub(super) fn read_planned(plan: &CrawlPlan, path: &Path) -> Result<SeedPlan> {
    let (text, name) = read_file(path.to_owned())?;
    let head = PlanHead::get_beside(path, text.as_bytes())?;
    let mut seeds = read_seeds(&plan.config, &text, &name)?;
    if head.source != plan.run.source || head.date != plan.run.date {
        return Err(Error::invalid(format!(
            "the plan is of `{}` and {}, the run of `{}` and {}",
            head.source, head.date, plan.run.source, plan.run.date
        ))
        .with("file", name));
    }
    if head.requests != seeds.announced() {
        return Err(Error::corrupt(format!(
            "the plan announces {} requests and has {}",
            head.requests,
            seeds.announced()
        ))
        .with("file", name));
    }
    seeds.planned = true;
    Ok(seeds)
}

/// A run keeps the plan that it was seeded from.
pub(super) fn check_planned(run: &RunRecord, planned: &SeedPlan) -> Result<()> {
    if run.plan_hash.as_deref() == Some(planned.queue_hash().as_str()) {
        return Ok(());
    }
    Err(Error::precondition(format!(
        "the run `{}` was seeded from another plan",
        run.key
    ))
    .hint("without `--plan` it goes on with the seeds that it has; another plan needs another run"))
}

fn read_file(path: PathBuf) -> Result<(String, String)> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io("read the seeds", &name, e))?;
    Ok((text, name))
}

/// What the command prints; one that fails seeds nothing.
async fn run_seed_command(plan: &CrawlPlan, folder: &Path) -> Result<(String, String)> {
    let words = &plan.config.seed_command;
    let name = words.join(" ");
    let mut command = std::process::Command::new(&words[0]);
    command
        .args(&words[1..])
        .current_dir(folder)
        .env("LAKEBED_DATE", plan.run.date.to_string())
        .env("LAKEBED_RUN", plan.run.run.as_str())
        .env("LAKEBED_SOURCE", plan.run.source.as_str())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.map_err(|e| Error::internal("wait for the seed command").caused_by(e))?;
    let output = output.map_err(|e| Error::io("run the seed command", &name, e))?;
    if !output.status.success() {
        return Err(Error::precondition(format!(
            "the seed command `{name}` failed: {}",
            output.status
        ))
        .hint("nothing was seeded; mend it and call again"));
    }
    let text = String::from_utf8(output.stdout).map_err(|e| {
        Error::corrupt(format!("the seed command `{name}` printed no UTF-8")).caused_by(e)
    })?;
    Ok((text, format!("output of {name}")))
}
