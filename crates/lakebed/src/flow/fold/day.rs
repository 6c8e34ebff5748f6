//! A day through the engine: its rows sorted, merged with yesterday's, worked out and encoded by several threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Date32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::flow::fold::inputs::InputFiles;
use crate::flow::fold::report::InputRows;
use crate::flow::fold::schemas::FoldSource;
use crate::flow::lanes::in_order;
use crate::flow::rows::{FileRows, StoredFile, WantedColumn, count_groups};
use crate::fold::{
    DayRows, DaySorter, Evaluator, FoldDay, FoldedWindow, InputRules, Window, WindowCounts,
    Windows, holds_any,
};
use crate::ingest::{Progress, TableEncoder, TableGroup};

/// Rows of a row group of events.
const EVENT_ROWS: usize = 65_536;

/// How much of a day is held in memory, and where the rest goes.
#[derive(Debug, Clone)]
pub(crate) struct RowBudget {
    pub(crate) bytes: usize,
    pub(crate) folder: PathBuf,
    pub(crate) threads: usize,
}

/// A day to be folded.
pub(super) struct DayJob<'a> {
    pub(super) fold: &'a FoldSource,
    pub(super) day: FoldDay,
    /// Files of yesterday's snapshot, in order.
    pub(super) previous: Vec<StoredFile>,
    /// For each input what is read of it.
    pub(super) inputs: Vec<Vec<InputFiles>>,
    pub(super) budget: RowBudget,
    pub(super) progress: &'a dyn Progress,
}

/// Where row groups go, in order.
pub(super) trait DaySink {
    /// Called once, before all others.
    fn begin(&mut self, snapshot: TableEncoder, events: TableEncoder) -> Result<()>;
    /// Rows of the snapshot.
    fn snapshot(&mut self, group: TableGroup) -> Result<()>;
    /// Events.
    fn events(&mut self, group: TableGroup) -> Result<()>;
}

/// Batches of a type whose columns nobody names.
pub(crate) fn schema_of(types: &[DataType]) -> SchemaRef {
    let fields = types
        .iter()
        .zip(0..)
        .map(|(of, n)| Field::new(format!("c{n}"), of.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The rows of an input, sorted; `types` = those of the batches of the rules.
pub(crate) fn read_input(
    (rules, types): (&InputRules, &[DataType]),
    inputs: &[InputFiles],
    date: crate::time::BusinessDate,
    budget: &RowBudget,
) -> Result<(SchemaRef, DayRows, InputRows)> {
    let schema = schema_of(types);
    let key_len = rules.key.len();
    let folder = budget.folder.join(&rules.name);
    std::fs::create_dir_all(&folder)
        .map_err(|e| Error::io("create the folder", folder.display(), e))?;
    let mut sorter = DaySorter::new(Arc::clone(&schema), key_len, budget.bytes, folder)?;
    let wanted = wanted_columns(rules, types);
    let (mut late, mut tasks) = (0, Vec::new());
    for input in inputs {
        for file in &input.files {
            for group in 0..count_groups(file)? {
                tasks.push((file, input.range.dt, group));
            }
        }
        if input.range.dt < date {
            late += input.rows();
        }
    }
    let read = |(file, dt, group): (&StoredFile, crate::time::BusinessDate, usize)| {
        let rows = FileRows::open(file, &wanted, Some(vec![group]))?;
        rows.map(|batch| arrange(rules, &schema, dt.days(), batch?))
            .collect::<Result<Vec<_>>>()
    };
    in_order(budget.threads, tasks.into_iter().map(Ok), read, |batches| {
        batches.into_iter().try_for_each(|batch| sorter.push(batch))
    })?;
    let (rows, without_key) = sorter.counts();
    let told = InputRows {
        input: rules.name.clone(),
        rows,
        late,
        without_key,
    };
    Ok((schema, sorter.finish()?, told))
}

fn wanted_columns(rules: &InputRules, types: &[DataType]) -> Vec<WantedColumn> {
    let key_len = rules.key.len();
    let keys = rules.key.iter().map(Some).zip(&types[..key_len]);
    let instant = std::iter::once((rules.instant.as_ref(), &types[key_len]));
    let columns = rules.columns.iter().map(Some).zip(&types[key_len + 3..]);
    keys.chain(instant)
        .chain(columns)
        .map(|(column, wanted)| WantedColumn {
            stored: column.map(|c| Arc::clone(&c.stored)),
            wanted: wanted.clone(),
        })
        .collect()
}

/// The columns as a batch of the rules: with the day, and whether the row says that its object is gone.
fn arrange(
    rules: &InputRules,
    schema: &SchemaRef,
    day: i32,
    (rows, columns): (usize, Vec<ArrayRef>),
) -> Result<RecordBatch> {
    let (head, rest) = columns.split_at(rules.key.len() + 1);
    let gone = match &rules.gone {
        Some((column, values)) => holds_any(&*rest[*column], values),
        None => BooleanArray::from(vec![false; rows]),
    };
    let days: ArrayRef = Arc::new(Date32Array::from_value(day, rows));
    let all = head
        .iter()
        .cloned()
        .chain([days, Arc::new(gone) as ArrayRef]);
    RecordBatch::try_new(
        Arc::clone(schema),
        all.chain(rest.iter().cloned()).collect(),
    )
    .map_err(|e| Error::internal("put the columns of an input together").caused_by(e))
}

/// Yesterday's rows, in order.
pub(crate) fn read_previous(
    fold: &FoldSource,
    files: Vec<StoredFile>,
) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
    let schema = fold.bound.previous_schema();
    let wanted: Vec<WantedColumn> = schema
        .fields()
        .iter()
        .map(|field| WantedColumn {
            stored: Some(Arc::clone(field)),
            wanted: field.data_type().clone(),
        })
        .collect();
    Box::new(files.into_iter().flat_map(move |file| {
        let schema = Arc::clone(&schema);
        let batch = move |columns: Result<(usize, Vec<ArrayRef>)>| {
            RecordBatch::try_new(Arc::clone(&schema), columns?.1)
                .map_err(|e| Error::internal("put the columns of a snapshot together").caused_by(e))
        };
        let rows: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> =
            match FileRows::open(&file, &wanted, None) {
                Ok(rows) => Box::new(rows.map(batch)),
                Err(error) => Box::new(std::iter::once(Err(error))),
            };
        rows
    }))
}

/// What came of a day.
pub(super) struct DayDone {
    pub(super) counts: WindowCounts,
    pub(super) inputs: Vec<InputRows>,
}

/// A window that was worked out and encoded.
struct EncodedWindow {
    snapshot: TableGroup,
    events: RecordBatch,
    counts: WindowCounts,
}

/// Folds a day into the sink.
pub(super) fn run_day(job: &DayJob<'_>, sink: &mut dyn DaySink) -> Result<DayDone> {
    let fold = job.fold;
    let (mut told, mut sorted) = (Vec::new(), Vec::new());
    for (n, inputs) in job.inputs.iter().enumerate() {
        let types = fold.bound.input_types(n);
        let rules = &fold.bound.rules.inputs[n];
        let (schema, rows, counts) =
            read_input((rules, &types), inputs, job.day.date, &job.budget)?;
        told.push(counts);
        sorted.push((schema, rows));
    }
    let key_len = fold.bound.rules.key().len();
    let previous = (
        fold.bound.previous_schema(),
        read_previous(fold, job.previous.clone()),
    );
    let mut windows = Windows::new(key_len, previous, sorted)?;
    let evaluator = Evaluator::new(fold.bound.clone(), job.day);
    let first = windows.next().transpose()?;
    let first = first
        .map(|window| evaluator.evaluate(&window))
        .transpose()?;
    let sample = |batch: fn(&FoldedWindow) -> &RecordBatch| {
        first.iter().map(batch).cloned().collect::<Vec<_>>()
    };
    let snapshot = TableEncoder::new(&fold.bound.snapshot, &sample(|f| &f.snapshot))?;
    let events = TableEncoder::new(&fold.bound.events, &sample(|f| &f.events))?;
    sink.begin(snapshot.clone(), events.clone())?;
    let mut collector = Collector {
        sink,
        encoder: events,
        held: Vec::new(),
        rows: 0,
        counts: WindowCounts::default(),
        progress: job.progress,
    };
    let encode = |folded: FoldedWindow| {
        Ok(EncodedWindow {
            snapshot: snapshot.encode(&[folded.snapshot])?,
            events: folded.events,
            counts: folded.counts,
        })
    };
    if let Some(first) = first {
        collector.take(encode(first)?)?;
    }
    let work = |window: Window| encode(evaluator.evaluate(&window)?);
    in_order(job.budget.threads, windows, work, |window| {
        collector.take(window)
    })?;
    let counts = collector.finish()?;
    Ok(DayDone {
        counts,
        inputs: told,
    })
}

/// Row groups in their order.
struct Collector<'a> {
    sink: &'a mut dyn DaySink,
    encoder: TableEncoder,
    held: Vec<RecordBatch>,
    rows: usize,
    counts: WindowCounts,
    progress: &'a dyn Progress,
}

impl Collector<'_> {
    fn take(&mut self, window: EncodedWindow) -> Result<()> {
        self.counts = self.counts.plus(window.counts);
        self.progress.advance(0, window.counts.keys, 0);
        self.sink.snapshot(window.snapshot)?;
        if window.events.num_rows() > 0 {
            self.rows += window.events.num_rows();
            self.held.push(window.events);
        }
        match self.rows >= EVENT_ROWS {
            true => self.put_events(),
            false => Ok(()),
        }
    }

    fn put_events(&mut self) -> Result<()> {
        if self.rows > 0 {
            self.sink.events(self.encoder.encode(&self.held)?)?;
            self.held.clear();
            self.rows = 0;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<WindowCounts> {
        self.put_events()?;
        Ok(self.counts)
    }
}

/// Takes the sorted rows of earlier calls away.
pub(crate) fn clear_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("delete the folder", folder.display(), e)),
    }
}
