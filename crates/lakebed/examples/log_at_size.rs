//! Measures the commit log at size: what reading and folding costs, and how fast one writer commits.
//!
//! ```text
//! log_at_size fold FOLDER RECORDS [RECORDS_PER_DATE [FILES_PER_RECORD]]
//!     writes a synthetic log once, then loads it three times from its records, and three times from a checkpoint
//! log_at_size commits FOLDER COMMITS
//!     one writer, each commit durable
//! ```
//!
//! The log is kept in FOLDER, so that a second call measures without making it anew. The figures of
//! docs/benchmarks.md come from here.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lakebed::log::{
    CommitOutcome, DatasetState, Draft, commit, list_checkpoints, write_checkpoint,
};
use lakebed::name::{ContentHash, DatasetRef};
use lakebed::spec::{
    Action, By, DataFileSpec, FileFormat, InputSpec, LoadKind, Operation, PartitionKey, Provenance,
    RECORD_FORMAT, RECORD_MIN_READER, Record, Requirement,
};
use lakebed::store::{Lake, LocalStore, log_record_path};
use lakebed::time::{BusinessDate, Clock, Instant};
use lakebed::{Error, Result};

/// Dates of a synthetic log begin here.
const FIRST_DAY: &str = "2020-01-01";

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = tokio::runtime::Builder::new_multi_thread()
        .build()
        .map_err(|e| Error::io("start the runtime", "", e))
        .and_then(|runtime| runtime.block_on(run(&args)));
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("failed to {error}"));
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|e| Error::invalid(format!("read the number `{text}`")).caused_by(e))
    };
    match args.as_slice() {
        ["fold", folder, records] => fold(folder, number(records)?, Shape::default()).await,
        ["fold", folder, records, per_date] => {
            let shape = Shape {
                records_per_date: number(per_date)?.max(1),
                ..Shape::default()
            };
            fold(folder, number(records)?, shape).await
        }
        ["fold", folder, records, per_date, files] => {
            let shape = Shape {
                records_per_date: number(per_date)?.max(1),
                files_per_record: number(files)?,
            };
            fold(folder, number(records)?, shape).await
        }
        ["commits", folder, count] => commits(folder, number(count)?).await,
        _ => Err(Error::invalid("understand the call")
            .hint("log_at_size fold FOLDER RECORDS [RECORDS_PER_DATE [FILES_PER_RECORD]] | commits FOLDER COMMITS")),
    }
}

/// What a synthetic log looks like.
#[derive(Debug, Clone, Copy)]
struct Shape {
    records_per_date: u64,
    files_per_record: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            records_per_date: 10,
            files_per_record: 1,
        }
    }
}

async fn open(folder: &str) -> Result<(Lake, DatasetRef)> {
    let store = Arc::new(LocalStore::new(Path::new(folder)));
    let lake = Lake::open_or_create(store, Arc::new(Clock::System), "UTC").await?;
    Ok((lake, "clean/size".parse()?))
}

async fn fold(folder: &str, records: u64, shape: Shape) -> Result<()> {
    let (lake, dataset) = open(folder).await?;
    write_log(&lake, &dataset, records, shape)?;
    for checkpoint in list_checkpoints(&lake, &dataset).await? {
        lake.store().delete(&checkpoint.path).await?;
    }
    let state = load_thrice(&lake, &dataset, "from the records").await?;
    let start = std::time::Instant::now();
    let path = write_checkpoint(&lake, &state).await?;
    let took = start.elapsed().as_secs_f64();
    let bytes = lake.store().find_size(&path).await?.unwrap_or(0);
    say(&format!(
        "checkpoint: {bytes} bytes, written in {took:.3} s"
    ));
    load_thrice(&lake, &dataset, "from the checkpoint").await?;
    Ok(())
}

async fn load_thrice(lake: &Lake, dataset: &DatasetRef, how: &str) -> Result<DatasetState> {
    let mut state = DatasetState::empty(dataset.clone());
    for _ in 0..3 {
        let start = std::time::Instant::now();
        state = DatasetState::load(lake, dataset).await?;
        say(&format!(
            "load {how}: {} records, {} partitions, {:.3} s, {} MB resident at most",
            state.position().number,
            state.partitions().len(),
            start.elapsed().as_secs_f64(),
            peak_mb()
        ));
    }
    Ok(state)
}

/// The most that the process held so far, as Linux says; 0 elsewhere.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    let kib = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

async fn commits(folder: &str, count: u64) -> Result<()> {
    let (lake, dataset) = open(folder).await?;
    let mut state = DatasetState::load(&lake, &dataset).await?;
    let first = state.position().number;
    let start = std::time::Instant::now();
    let mut slowest = 0.0_f64;
    for n in first..first + count {
        let begin = std::time::Instant::now();
        let mut draft = Draft::new(&lake, Operation::Append, by())?;
        draft.attempt = Some(draft.commit.as_str().parse()?);
        (draft.requires, draft.actions) = change(n, Shape::default())?;
        match commit(&lake, &mut state, &draft).await? {
            CommitOutcome::Committed(_) | CommitOutcome::AlreadyThere(_) => {}
            CommitOutcome::Conflict(unmet) => return Err(Error::conflict(unmet.reason)),
        }
        slowest = slowest.max(begin.elapsed().as_secs_f64());
    }
    let took = start.elapsed().as_secs_f64();
    let fresh = DatasetState::load(&lake, &dataset).await?;
    let lost = first + count - fresh.position().number;
    for checkpoint in list_checkpoints(&lake, &dataset).await? {
        let bytes = lake.store().find_size(&checkpoint.path).await?.unwrap_or(0);
        say(&format!(
            "checkpoint at {}: {bytes} bytes",
            checkpoint.number
        ));
    }
    let per_second = f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took;
    say(&format!(
        "commits: {count} in {took:.2} s, {per_second:.0} per second, slowest {:.1} ms, {lost} lost",
        slowest * 1000.0
    ));
    Ok(())
}

/// Writes the records that are not there yet, without making them durable.
fn write_log(lake: &Lake, dataset: &DatasetRef, records: u64, shape: Shape) -> Result<()> {
    let place = |number| {
        lake.store()
            .local_path(&log_record_path(dataset, number))
            .ok_or_else(|| Error::invalid("use a local folder"))
    };
    if place(records)?.exists() {
        return Ok(());
    }
    if let Some(dir) = place(1)?.parent() {
        std::fs::create_dir_all(dir).map_err(|e| Error::io("create", dir.display(), e))?;
    }
    let mut previous = None;
    for number in 1..=records {
        let (requires, actions) = change(number, shape)?;
        let id = format!("{number:016x}{:.16}", hash("id", number).as_str());
        let record = Record {
            format: RECORD_FORMAT,
            min_reader: RECORD_MIN_READER,
            lake: lake.id().clone(),
            dataset: dataset.clone(),
            number,
            previous,
            commit: id.parse()?,
            at: Instant::from_micros(1_600_000_000_000_000 + i64::try_from(number).unwrap_or(0)),
            operation: Operation::Append,
            by: by(),
            attempt: Some(id.parse()?),
            requires,
            actions,
            joined: Vec::new(),
        };
        let mut bytes = serde_json::to_vec_pretty(&record)
            .map_err(|e| Error::internal("write a record as JSON").caused_by(e))?;
        bytes.push(b'\n');
        let path = place(number)?;
        std::fs::write(&path, &bytes).map_err(|e| Error::io("write", path.display(), e))?;
        previous = Some(ContentHash::of(&bytes));
    }
    Ok(())
}

/// Deliveries of one record, each a file and an input; dates in turn.
fn change(n: u64, shape: Shape) -> Result<(Vec<Requirement>, Vec<Action>)> {
    let day = i64::try_from(n / shape.records_per_date).unwrap_or(0);
    let first: BusinessDate = FIRST_DAY.parse()?;
    let partition = PartitionKey {
        dt: first.plus_days(day),
        schema_version: 1,
        revision: 0,
    };
    let mut requires = vec![
        Requirement::DateOpen { dt: partition.dt },
        Requirement::PartitionActive { partition },
    ];
    let mut actions = Vec::new();
    for delivery in 0..shape.files_per_record {
        let n = n * shape.files_per_record + delivery;
        let input = input(n);
        requires.push(Requirement::InputAbsent {
            dt: partition.dt,
            content: input.content.clone(),
            batch: None,
        });
        let file = file(n);
        actions.push(Action::AddFile { partition, file });
        actions.push(Action::AddInput { partition, input });
    }
    Ok((requires, actions))
}

fn file(n: u64) -> DataFileSpec {
    let blake3 = hash("file", n);
    DataFileSpec {
        name: format!("part-00000-{}.parquet", blake3.short()),
        format: FileFormat::Parquet,
        rows: 1000,
        bytes: 40_000,
        blake3,
        provenance: Provenance::Live,
        bounds: std::collections::BTreeMap::new(),
        parents: Vec::new(),
    }
}

fn input(n: u64) -> InputSpec {
    InputSpec {
        content: hash("input", n),
        name: format!("delivery-{n}.jsonl"),
        bytes: 100_000,
        rows: 1000,
        rejected: 0,
        rules: hash("rules", 1).short().to_owned(),
        batch: None,
        load: LoadKind::Incremental,
        parents: Vec::new(),
    }
}

fn hash(what: &str, n: u64) -> ContentHash {
    ContentHash::of(format!("{what} {n}").as_bytes())
}

fn by() -> By {
    By {
        program: "log_at_size".to_owned(),
        user: None,
        run: None,
        note: None,
    }
}

fn say(line: &str) {
    // Whoever closed the pipe does not want to know.
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(0);
    }
}
