//! A synthetic lake: many dates of many datasets, each file a copy of one real Parquet file.
//!
//! Records, `_SUCCESS` files, checkpoints and folders are those that ingest with `--complete` would have left,
//! made from the library's own types; they are written without being made durable, which is why a million files
//! take minutes and not hours. Every date is sealed by the one record that fills it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lakebed::log::{DatasetState, expected_success, write_checkpoint};
use lakebed::name::{ContentHash, DatasetRef};
use lakebed::spec::{
    Action, By, DataFileSpec, FileFormat, InputSpec, LoadKind, Operation, PartitionKey, Provenance,
    RECORD_FORMAT, Record, Requirement, min_reader,
};
use lakebed::store::{Lake, StorePath, data_file_path, log_record_path, success_path};
use lakebed::time::{BusinessDate, Instant as RecordTime};
use lakebed::{Error, Result};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Dates begin here.
const FIRST_DAY: &str = "2020-01-01";

/// How many dates a dataset has, and how many files a date.
#[derive(Clone, Copy)]
pub struct Shape {
    days: u64,
    files: u64,
}

impl Shape {
    /// Reads `DATASET... --days N --files N`.
    pub fn parse(args: &[&str]) -> Result<(Vec<DatasetRef>, Self)> {
        let [names @ .., "--days", days, "--files", files] = args else {
            return Err(Error::invalid(
                "read the shape: DATASET... --days N --files N",
            ));
        };
        let datasets: Result<Vec<DatasetRef>> = names.iter().map(|n| n.parse()).collect();
        let (days, files) = (crate::number(days)?, crate::number(files)?);
        Ok((datasets?, Self { days, files }))
    }
}

/// The file that stands for all.
pub struct Template {
    bytes: Vec<u8>,
    hash: ContentHash,
    rows: u64,
}

impl Template {
    /// Reads it; the caller knows its rows.
    pub fn read(path: &Path, rows: u64) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path.display(), e))?;
        let hash = ContentHash::of(&bytes);
        Ok(Self { bytes, hash, rows })
    }
}

/// Writes the lake, two datasets at a time.
pub fn write(
    runtime: &Runtime,
    project: &Path,
    template: &Template,
    datasets: &[DatasetRef],
    shape: Shape,
) -> Result<Value> {
    let lake = crate::open_lake(runtime, project)?;
    let begin = Instant::now();
    let half = datasets.len().div_ceil(2).max(1);
    let done: Result<Vec<()>> = std::thread::scope(|scope| {
        let shares = datasets.chunks(half).map(|share| {
            scope.spawn(|| {
                share
                    .iter()
                    .try_for_each(|d| one_dataset(runtime, &lake, template, d, shape))
            })
        });
        let threads: Vec<_> = shares.collect();
        let ended = threads.into_iter().map(|t| {
            t.join()
                .unwrap_or_else(|_| Err(Error::internal("a writer panicked")))
        });
        ended.collect()
    });
    done?;
    let partitions = shape.days * datasets.len() as u64;
    Ok(json!({
        "partitions": partitions,
        "files": partitions * shape.files,
        "wall_s": begin.elapsed().as_secs_f64(),
    }))
}

fn one_dataset(
    runtime: &Runtime,
    lake: &Lake,
    template: &Template,
    dataset: &DatasetRef,
    shape: Shape,
) -> Result<()> {
    let mut previous = None;
    for day in 0..shape.days {
        let partition = partition(day)?;
        for n in 0..shape.files {
            let spec = file(template, dataset, day, n);
            let path = local(lake, &data_file_path(dataset, &partition, &spec.name))?;
            put(&path, &template.bytes)?;
        }
        let record = record(lake, template, (dataset, day, previous.take()), shape)?;
        let mut bytes = serde_json::to_vec_pretty(&record)
            .map_err(|e| Error::internal("write a record as JSON").caused_by(e))?;
        bytes.push(b'\n');
        put(&local(lake, &log_record_path(dataset, day + 1))?, &bytes)?;
        previous = Some(ContentHash::of(&bytes));
    }
    let state = runtime.block_on(DatasetState::load(lake, dataset))?;
    for key in state.partitions().keys() {
        if let Some(success) = expected_success(lake, &state, key) {
            let bytes = serde_json::to_vec_pretty(&success)
                .map_err(|e| Error::internal("write `_SUCCESS` as JSON").caused_by(e))?;
            put(&local(lake, &success_path(dataset, key))?, &bytes)?;
        }
    }
    runtime.block_on(write_checkpoint(lake, &state))?;
    Ok(())
}

fn record(
    lake: &Lake,
    template: &Template,
    (dataset, day, previous): (&DatasetRef, u64, Option<ContentHash>),
    shape: Shape,
) -> Result<Record> {
    let partition = partition(day)?;
    let dt = partition.dt;
    let id = format!("{day:016x}{:.16}", hash("commit", dataset, day).as_str());
    let attempt = Some(id.parse()?);
    let mut requires = vec![
        Requirement::AttemptOpen {
            attempt: id.parse()?,
        },
        Requirement::PartitionActive { partition },
        Requirement::DateOpen { dt },
    ];
    let mut actions = Vec::new();
    for n in 0..shape.files {
        let input = input(template, dataset, day * shape.files + n);
        requires.push(Requirement::InputAbsent {
            dt,
            content: input.content.clone(),
            batch: None,
        });
        let file = file(template, dataset, day, n);
        actions.push(Action::AddFile { partition, file });
        actions.push(Action::AddInput { partition, input });
    }
    actions.push(Action::Complete { dt });
    let micros = 1_600_000_000_000_000 + i64::try_from(day).unwrap_or(0) * 86_400_000_000;
    Ok(Record {
        format: RECORD_FORMAT,
        min_reader: min_reader(&actions, &[]),
        lake: lake.id().clone(),
        dataset: dataset.clone(),
        number: day + 1,
        previous,
        commit: id.parse()?,
        at: RecordTime::from_micros(micros),
        operation: Operation::Append,
        by: By {
            program: "lakebed-bench".to_owned(),
            user: None,
            run: None,
            note: None,
        },
        attempt,
        requires,
        actions,
        joined: Vec::new(),
    })
}

fn partition(day: u64) -> Result<PartitionKey> {
    let first: BusinessDate = FIRST_DAY.parse()?;
    Ok(PartitionKey {
        dt: first.plus_days(i64::try_from(day).unwrap_or(0)),
        schema_version: 1,
        revision: 0,
    })
}

fn file(template: &Template, dataset: &DatasetRef, day: u64, n: u64) -> DataFileSpec {
    let name = hash(&format!("file {n}"), dataset, day);
    DataFileSpec {
        name: format!("part-00000-{}.parquet", name.short()),
        format: FileFormat::Parquet,
        rows: template.rows,
        bytes: template.bytes.len() as u64,
        blake3: template.hash.clone(),
        provenance: Provenance::Live,
        bounds: std::collections::BTreeMap::new(),
        parents: Vec::new(),
    }
}

fn input(template: &Template, dataset: &DatasetRef, n: u64) -> InputSpec {
    InputSpec {
        content: hash("input", dataset, n),
        name: format!("delivery-{n}.jsonl"),
        bytes: template.bytes.len() as u64,
        rows: template.rows,
        rejected: 0,
        rules: hash("rules", dataset, 0).short().to_owned(),
        batch: None,
        load: LoadKind::Incremental,
        parents: Vec::new(),
    }
}

fn hash(what: &str, dataset: &DatasetRef, n: u64) -> ContentHash {
    ContentHash::of(format!("{what} {dataset} {n}").as_bytes())
}

fn local(lake: &Lake, path: &StorePath) -> Result<PathBuf> {
    lake.store()
        .local_path(path)
        .ok_or_else(|| Error::invalid("use a lake in a local folder"))
}

/// Writes a file, making its folder where it is missing.
fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    match std::fs::write(path, bytes) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir).map_err(|e| Error::io("create", dir.display(), e))?;
            }
            std::fs::write(path, bytes).map_err(|e| Error::io("write", path.display(), e))
        }
        Err(e) => Err(Error::io("write", path.display(), e)),
    }
}
