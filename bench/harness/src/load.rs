//! Folding logs: the part of audit, rebuild and ingest that grows with a log.

use std::path::Path;
use std::time::Instant;

use lakebed::Result;
use lakebed::log::DatasetState;
use lakebed::name::DatasetRef;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Folds each dataset's log with its checkpoints, then from the records alone; answers seconds of all.
pub fn measure(runtime: &Runtime, project: &Path, datasets: &[&str]) -> Result<Value> {
    let lake = crate::open_lake(runtime, project)?;
    let (mut with, mut without, mut records) = (0.0, 0.0, 0);
    for name in datasets {
        let dataset: DatasetRef = name.parse()?;
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
