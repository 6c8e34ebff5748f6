//! Commits of one process: every file of a folder is one small append, acknowledged when it is durable.
//!
//! The threads share one handle of the lake and one of the catalog, and take the files in turn. One large file
//! is what a profiler looks at: it is decoded by all cores.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use lakebed::catalog::SqliteCatalog;
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::InputSource;
use lakebed::ingest::{IngestOutcome, IngestRequest, RevisionTarget, Silent, ingest};
use lakebed::log::DatasetState;
use lakebed::name::DatasetRef;
use lakebed::spec::{By, LoadKind, Provenance, ReadSpec};
use lakebed::store::Lake;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// What is to be done.
pub struct Job {
    /// Into which dataset.
    pub dataset: DatasetRef,
    /// Of which date.
    pub date: BusinessDate,
    /// By how many threads.
    pub threads: u64,
}

/// What one thread did: milliseconds of each commit, and commits that were refused.
#[derive(Default)]
struct Share {
    latencies_ms: Vec<f64>,
    refused: Vec<String>,
}

/// Commits every file of the folder; answers times in milliseconds.
pub fn measure(runtime: &Runtime, project: &Path, inputs: &Path, job: &Job) -> Result<Value> {
    let files = list(inputs)?;
    let lake = crate::open_lake(runtime, project)?;
    let catalog = runtime.block_on(SqliteCatalog::open(project.join("catalog.db")))?;
    let next = AtomicUsize::new(0);
    let before = state(runtime, &lake, job)?;
    let begin = Instant::now();
    let shares: Vec<Share> = std::thread::scope(|scope| {
        let worker = || -> Share {
            let mut share = Share::default();
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let started = Instant::now();
                let request = request(job, file);
                match runtime.block_on(ingest(&lake, &catalog, &request, &Silent)) {
                    Ok(report) if report.outcome == IngestOutcome::Committed => share
                        .latencies_ms
                        .push(started.elapsed().as_secs_f64() * 1000.0),
                    Ok(report) => share.refused.push(format!("{:?}", report.outcome)),
                    Err(error) => share.refused.push(error.to_string()),
                }
            }
            share
        };
        let threads: Vec<_> = (0..job.threads).map(|_| scope.spawn(worker)).collect();
        let ended = threads.into_iter().filter_map(|t| t.join().ok());
        ended.collect()
    });
    let wall_s = begin.elapsed().as_secs_f64();
    let after = state(runtime, &lake, job)?;
    let mut latencies: Vec<f64> = shares.iter().flat_map(|s| s.latencies_ms.clone()).collect();
    latencies.sort_by(f64::total_cmp);
    let refused: Vec<&String> = shares.iter().flat_map(|s| &s.refused).collect();
    Ok(json!({
        "wall_s": wall_s,
        "acknowledged": latencies.len(),
        "recorded": after.position().number - before.position().number,
        "refused": refused,
        "latencies_ms": latencies,
    }))
}

fn state(runtime: &Runtime, lake: &Lake, job: &Job) -> Result<DatasetState> {
    runtime.block_on(DatasetState::load(lake, &job.dataset))
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Error::io("list", folder.display(), e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    Ok(files)
}

fn request(job: &Job, file: &Path) -> IngestRequest {
    IngestRequest {
        dataset: job.dataset.clone(),
        dt: job.date,
        inputs: vec![InputSource::file(file)],
        format: None,
        schema_version: None,
        read: ReadSpec::default(),
        mismatch: Mismatch::Fail,
        batch: None,
        run: None,
        revision: RevisionTarget::Join,
        complete: false,
        late: false,
        allow_empty: false,
        restore: false,
        rejects_of: None,
        load: LoadKind::Incremental,
        parents: Vec::new(),
        bounds: Vec::new(),
        provenance: Some(Provenance::Live),
        by: By {
            program: "lakebed-bench".to_owned(),
            user: None,
            run: None,
            note: None,
        },
        // A file of ten rows has nothing to share out.
        threads: is_small(file).then_some(1),
        group_bytes: None,
    }
}

fn is_small(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|m| m.len() < 1 << 20)
}
