//! Which days and runs of a source `status` shows: those of which anything is there.

use std::collections::BTreeSet;
use std::path::Path;

use lakebed::crawl::is_sample;
use lakebed::flow::{Declared, Graph, Judge, Program, WHOLE_DAY, flow_folder};
use lakebed::name::{RunName, SourceName};
use lakebed::queue::{Queue, RunRecord};
use lakebed::store::{Lake, StorePath};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

/// Runs of the queue that are looked through for dates to come.
const NEWEST_RUNS: u32 = 100;

/// Where a date of a source may have left something.
pub(super) struct Places<'a> {
    pub(super) lake: &'a Lake,
    /// The project folder, absolute.
    pub(super) root: &'a Path,
    /// The queue, where there is one.
    pub(super) queue: Option<&'a Queue>,
}

impl Places<'_> {
    /// The runs of the queue of this date, oldest first.
    pub(super) async fn crawled(
        &self,
        source: &SourceName,
        date: BusinessDate,
    ) -> Result<Vec<RunRecord>> {
        match self.queue {
            Some(queue) => queue.list_runs_of(source, date).await,
            None => Ok(Vec::new()),
        }
    }

    /// The run `day`, that which was asked for, and those that left a stamp, a log or a crawl.
    pub(super) async fn runs_of(
        &self,
        (declared, date): (&Declared, BusinessDate),
        asked: Option<&RunName>,
        crawled: &[RunRecord],
    ) -> Result<BTreeSet<RunName>> {
        let folder = format!("{}/{date}", declared.source);
        let stamped = self
            .lake
            .store()
            .list_names(&StorePath::new(format!("flow/{folder}"))?)
            .await?;
        let tried = folders_in(&flow_folder(self.root).join(&folder))?;
        let names = stamped.iter().chain(&tried);
        let names = names.filter(|name| !name.starts_with('_'));
        let mut runs: BTreeSet<RunName> = names.filter_map(|name| name.parse().ok()).collect();
        runs.insert(WHOLE_DAY.parse()?);
        runs.extend(asked.cloned());
        // What died in a run and was tried again belongs to that one.
        let is_of_day = |run: &&RunRecord| run.successor_of.is_none() && !is_sample(run);
        let first = crawled.iter().filter(is_of_day);
        let known = runs.clone();
        runs.extend(first.map(|run| run.key.run.clone()));
        // And a crawl that is a stage of a run is no run of its own.
        for run in runs.clone() {
            let graph = Graph::of(declared, date, &run)?;
            for part in graph.stages.iter().filter_map(|s| crawl_of(&s.program)) {
                if part != run.as_str() {
                    runs.retain(|r| r.as_str() != part || known.contains(r));
                }
            }
        }
        Ok(runs)
    }

    /// The first date of which the source left anything, and every one after `last`: stamps, logs, crawls, rows.
    pub(super) async fn known_dates(
        &self,
        declared: &Declared,
        last: BusinessDate,
        judge: &mut Judge,
    ) -> Result<BTreeSet<BusinessDate>> {
        let source = &declared.source;
        let stamped = self
            .lake
            .store()
            .list_names(&StorePath::new(format!("flow/{source}"))?)
            .await?;
        let tried = folders_in(&flow_folder(self.root).join(source.as_str()))?;
        let names = stamped.iter().chain(&tried);
        let mut found: BTreeSet<BusinessDate> =
            names.filter_map(|name| name.parse().ok()).collect();
        if let Some(queue) = self.queue {
            found.extend(queue.first_date(source).await?);
            let newest = queue.list_runs(Some(source), NEWEST_RUNS).await?;
            found.extend(newest.into_iter().map(|run| run.key.date));
        }
        let graph = Graph::of(declared, last, &WHOLE_DAY.parse()?)?;
        for scope in graph
            .stages
            .iter()
            .flat_map(|s| s.reads.iter().chain(&s.writes))
        {
            let state = judge.sights.state(&scope.dataset).await?;
            found.extend(state.dates().keys().next());
            found.extend(state.dates().range(last..).map(|(date, _)| *date));
        }
        let first = found.first().copied();
        found.retain(|date| Some(*date) == first || *date > last);
        Ok(found)
    }
}

/// The run that a stage crawls.
pub(super) fn crawl_of(program: &Program) -> Option<&str> {
    let Program::Lakebed(words) = program else {
        return None;
    };
    if words.first().map(String::as_str) != Some("crawl") {
        return None;
    }
    let at = words.iter().position(|word| word == "--run")?;
    words.get(at + 1).map(String::as_str)
}

/// Names of the folders in a folder; none where it is not there.
fn folders_in(folder: &Path) -> Result<Vec<String>> {
    let failed = |e| Error::io("list the folder", folder.display(), e);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}
