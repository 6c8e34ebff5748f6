//! The terminal statistics of a run, `run.json` beside its parts: written once, when the run is closed, and once more where
//! a person accepts a red one.
//!
//! It follows from the queue's rows and the pack: but for an acceptance no clock, no name of a machine, no rate. The page docs/crawl.md
//! describes every key.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pack::PackReport;
use crate::queue::{
    Acceptance, Breach, ClosingRecord, Coverage, EnqueueStats, LaneProgress, RunBooks, RunRecord,
};
use crate::spec::RunKey;

/// The format of the file.
pub const RUN_STATISTICS_FORMAT: &str = "run/1";
/// Its name in the folder of the run's parts.
const FILE: &str = "run.json";

/// What is told of a closed run.
#[derive(Debug, Serialize)]
pub struct RunStatistics<'a> {
    format: &'static str,
    #[serde(flatten)]
    run: &'a RunKey,
    pass: bool,
    breaches: &'a [Breach],
    accepted: Option<&'a Acceptance>,
    coverage: Coverage,
    plan_hash: Option<&'a str>,
    stopped: Option<&'a str>,
    seeds: EnqueueStats,
    follow_ups: EnqueueStats,
    states: &'a BTreeMap<&'static str, u64>,
    dead_classes: &'a BTreeMap<String, u64>,
    done_statuses: &'a BTreeMap<i64, u64>,
    attempts: u64,
    failures: u64,
    without_capture: u64,
    short_groups: Vec<ShortGroup<'a>>,
    stages: &'a [LaneProgress],
    pack: Option<&'a PackStatistics>,
}

#[derive(Debug, Serialize)]
struct ShortGroup<'a> {
    group: &'a str,
    expected: u64,
    found: u64,
}

/// The pack of the run, as far as it follows from what was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackStatistics {
    /// `raw/<source>`.
    pub dataset: String,
    /// The pack within the lake.
    pub pack: String,
    /// Its index within the lake.
    pub index: String,
    /// The identity of what it holds.
    pub content: String,
    /// Responses in it.
    pub captures: u64,
    /// Responses that lay in the parts twice and are kept once.
    pub repeats: u64,
    /// Responses that made no request done.
    pub unnamed: u64,
    /// Requests whose end it tells.
    pub requests: u64,
    /// Bytes of all bodies before equal ones were joined.
    pub body_bytes: u64,
    /// The record of the lake's log that holds it.
    pub log_position: u64,
}

impl From<&PackReport> for PackStatistics {
    fn from(report: &PackReport) -> Self {
        Self {
            dataset: report.dataset.to_string(),
            pack: report.pack.clone(),
            index: report.index.clone(),
            content: report.content.to_string(),
            captures: report.stats.captures,
            repeats: report.stats.repeats,
            unnamed: report.stats.unnamed,
            requests: report.stats.requests,
            body_bytes: report.stats.body_bytes,
            log_position: report.log_position,
        }
    }
}

impl<'a> RunStatistics<'a> {
    pub(super) fn new(
        run: &'a RunRecord,
        closing: &'a ClosingRecord,
        books: &'a RunBooks,
        stages: &'a [LaneProgress],
        pack: Option<&'a PackStatistics>,
    ) -> Self {
        let short = books.short_groups.iter();
        Self {
            format: RUN_STATISTICS_FORMAT,
            run: &run.key,
            pass: closing.pass,
            breaches: &closing.breaches,
            accepted: closing.accepted.as_ref(),
            coverage: run.coverage,
            plan_hash: run.plan_hash.as_deref(),
            stopped: run.stopped.as_deref(),
            seeds: books.seeds,
            follow_ups: books.children,
            states: &books.states,
            dead_classes: &books.dead_classes,
            done_statuses: &books.done_statuses,
            attempts: books.attempts,
            failures: books.failures,
            without_capture: books.without_capture,
            short_groups: short
                .map(|(group, expected, found)| ShortGroup {
                    group,
                    expected: *expected,
                    found: *found,
                })
                .collect(),
            stages,
            pack,
        }
    }
}

/// Where the file of a run lies.
pub(super) fn path_in(parts: &Path) -> PathBuf {
    parts.join(FILE)
}

/// What the file says of the verdict and of the pack.
#[derive(Debug, Deserialize)]
pub(super) struct Kept {
    #[serde(flatten)]
    run: RunKey,
    pass: bool,
    breaches: Vec<Breach>,
    accepted: Option<Acceptance>,
    plan_hash: Option<String>,
    pub(super) pack: Option<PackStatistics>,
}

impl Kept {
    /// Whether it is the file of this run.
    pub(super) fn names(&self, run: &RunKey) -> bool {
        self.run == *run
    }

    /// Whether it tells of this closing: the name of a run that was pruned may be that of another crawl.
    pub(super) fn is_of(&self, run: &RunRecord, closing: &ClosingRecord) -> bool {
        let told = (
            self.names(&run.key),
            self.pass,
            &self.breaches,
            &self.accepted,
            &self.plan_hash,
        );
        let closing = (
            true,
            closing.pass,
            &closing.breaches,
            &closing.accepted,
            &run.plan_hash,
        );
        told == closing
    }
}

/// What the file says; `None` where there is no file.
pub(super) fn find(parts: &Path) -> Result<Option<Kept>> {
    let path = path_in(parts);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read the statistics", path.display(), e)),
    };
    let kept = serde_json::from_slice(&bytes).map_err(|e| {
        Error::corrupt(format!("read the statistics `{}`: {e}", path.display()))
            .caused_by(e)
            .hint("delete the file: closing the run again writes it anew")
    })?;
    Ok(Some(kept))
}

/// Writes the file, whole and durable, under its name or not at all.
pub(super) fn write(parts: &Path, statistics: &RunStatistics<'_>) -> Result<()> {
    let path = path_in(parts);
    let failed = |e| Error::io("write the statistics", path.display(), e);
    let mut bytes = serde_json::to_vec_pretty(statistics)
        .map_err(|e| Error::internal("write the statistics as JSON").caused_by(e))?;
    bytes.push(b'\n');
    fs::create_dir_all(parts).map_err(failed)?;
    let temporary = parts.join(format!(".{FILE}.{}", std::process::id()));
    let mut file = File::create(&temporary).map_err(failed)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    written.map_err(failed)?;
    fs::rename(&temporary, &path).map_err(failed)?;
    File::open(parts)
        .and_then(|folder| folder.sync_all())
        .map_err(failed)
}
