//! Audit, rebuild and the folding of logs within one process, for a profiler that wants names.
//!
//! The released binary is stripped; this one keeps its symbols and does the same work without the command around it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lakebed::Result;
use lakebed::catalog::{SqliteCatalog, rebuild};
use lakebed::govern::audit::{AuditOptions, audit};
use lakebed::log::{DatasetState, list_datasets};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Folds each dataset's log with its checkpoints, then from the records alone; answers seconds of all.
pub fn measure_load(runtime: &Runtime, project: &Path) -> Result<Value> {
    let lake = crate::open_lake(runtime, project)?;
    let (mut with, mut without, mut records) = (0.0, 0.0, 0);
    for dataset in runtime.block_on(list_datasets(&lake))? {
        let begin = Instant::now();
        let state = runtime.block_on(DatasetState::load(&lake, &dataset))?;
        with += begin.elapsed().as_secs_f64();
        records += state.position().number;
        let begin = Instant::now();
        runtime.block_on(DatasetState::fold_records(&lake, &dataset))?;
        without += begin.elapsed().as_secs_f64();
    }
    Ok(json!({ "records": records, "checkpoints_s": with, "records_s": without }))
}

/// As `lakebed audit`, without repair.
pub fn measure_audit(runtime: &Runtime, project: &Path) -> Result<Value> {
    let lake = crate::open_lake(runtime, project)?;
    let catalog = runtime.block_on(SqliteCatalog::open(project.join("catalog.db")))?;
    let begin = Instant::now();
    let report = runtime.block_on(audit(&lake, Arc::new(catalog), AuditOptions::default()))?;
    Ok(json!({
        "wall_s": begin.elapsed().as_secs_f64(),
        "files": report.files,
        "findings": report.findings.len(),
    }))
}

/// As `lakebed catalog rebuild`, of a catalog that is whole.
pub fn measure_rebuild(runtime: &Runtime, project: &Path) -> Result<Value> {
    let lake = crate::open_lake(runtime, project)?;
    let catalog = runtime.block_on(SqliteCatalog::open(project.join("catalog.db")))?;
    let begin = Instant::now();
    let reports = runtime.block_on(rebuild(&lake, &catalog, false))?;
    let records: u64 = reports.iter().map(|r| r.applied).sum();
    Ok(json!({ "wall_s": begin.elapsed().as_secs_f64(), "records": records }))
}
