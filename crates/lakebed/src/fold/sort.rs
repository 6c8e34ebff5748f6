//! The rows of a day of one input, in the order of their keys, then their instants, then as they came.
//!
//! Up to a budget the rows stay where they are and their order alone is made: what is written later is gathered
//! from them once. Beyond it, sorted runs go to a folder and come back merged, in whatever little memory there is;
//! the order is the same (FLD-1).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;

use crate::error::{Error, Result};
use crate::fold::cells::{arrow_failed, instant_at};

/// Rows of a batch that comes back from the disk.
const RUN_ROWS: usize = 8192;

/// The comparable form of keys; every stream of a fold has the same.
pub(super) fn key_converter(schema: &SchemaRef, key_len: usize) -> Result<RowConverter> {
    let fields = schema.fields().iter().take(key_len);
    let fields = fields
        .map(|f| SortField::new(f.data_type().clone()))
        .collect();
    RowConverter::new(fields).map_err(|e| arrow_failed("compare keys", e))
}

/// The keys of a batch.
pub(super) fn keys_of(
    converter: &RowConverter,
    batch: &RecordBatch,
    key_len: usize,
) -> Result<Rows> {
    let columns = batch.columns().get(..key_len).unwrap_or_default();
    converter
        .convert_columns(columns)
        .map_err(|e| arrow_failed("compare keys", e))
}

/// The first bytes of a key, as a number that is ordered as they are.
fn beginning(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = key.len().min(bytes.len());
    bytes[..length].copy_from_slice(&key[..length]);
    u128::from_be_bytes(bytes)
}

/// Collects rows.
pub struct DaySorter {
    schema: SchemaRef,
    key_len: usize,
    converter: RowConverter,
    batches: Vec<RecordBatch>,
    keys: Vec<Rows>,
    bytes: usize,
    budget: usize,
    folder: PathBuf,
    runs: Vec<PathBuf>,
    rows: u64,
    without_key: u64,
}

/// Sorted rows.
pub enum DayRows {
    /// In memory: batches with their keys, and the order of the rows.
    Held {
        /// The rows as they came.
        batches: Vec<RecordBatch>,
        /// Their keys.
        keys: Vec<Rows>,
        /// (batch, row), in order.
        order: Vec<(u32, u32)>,
    },
    /// On disk, merged as they are read.
    Merged(Box<dyn Iterator<Item = Result<RecordBatch>> + Send>),
}

impl DaySorter {
    /// Nothing yet. Rows beyond `budget` bytes go to files `<name>-<n>.run` in the folder.
    pub fn new(schema: SchemaRef, key_len: usize, budget: usize, folder: PathBuf) -> Result<Self> {
        Ok(Self {
            converter: key_converter(&schema, key_len)?,
            schema,
            key_len,
            batches: Vec::new(),
            keys: Vec::new(),
            bytes: 0,
            budget,
            folder,
            runs: Vec::new(),
            rows: 0,
            without_key: 0,
        })
    }

    /// Rows taken, and rows left out since a column of their key is null.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.rows, self.without_key)
    }

    /// Takes rows; they are newer than all before where their instants are equal.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let batch = self.with_keys_alone(batch)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.rows += batch.num_rows() as u64;
        let keys = keys_of(&self.converter, &batch, self.key_len)?;
        self.bytes += batch.get_array_memory_size() + keys.size();
        self.batches.push(batch);
        self.keys.push(keys);
        if self.bytes > self.budget {
            self.spill()?;
        }
        Ok(())
    }

    fn with_keys_alone(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let columns = &batch.columns()[..self.key_len];
        if columns.iter().all(|c| c.null_count() == 0) {
            return Ok(batch);
        }
        let whole = (0..batch.num_rows()).map(|i| Some(columns.iter().all(|c| c.is_valid(i))));
        let kept = filter_record_batch(&batch, &whole.collect());
        let kept = kept.map_err(|e| arrow_failed("leave rows without a key out", e))?;
        self.without_key += (batch.num_rows() - kept.num_rows()) as u64;
        Ok(kept)
    }

    /// The order of what is held.
    fn order(&self) -> Vec<(u32, u32)> {
        let rows = self.batches.iter().map(RecordBatch::num_rows).sum();
        let mut order: Vec<(u128, u32, u32)> = Vec::with_capacity(rows);
        for ((b, batch), keys) in (0_u32..).zip(&self.batches).zip(&self.keys) {
            let places = (0_u32..).zip(0..batch.num_rows());
            order.extend(places.map(|(r, row)| (beginning(keys.row(row).data()), b, r)));
        }
        let key = |at: &(u128, u32, u32)| self.keys[at.1 as usize].row(at.2 as usize);
        let instant = |at: &(u128, u32, u32)| {
            let column = self.batches[at.1 as usize].column(self.key_len);
            instant_at(column, at.2 as usize)
        };
        // Most keys differ in their beginnings, which lie in one place.
        let by_key = |a: &(u128, u32, u32), b: &(u128, u32, u32)| {
            a.0.cmp(&b.0).then_with(|| key(a).cmp(&key(b)))
        };
        let in_order = order
            .windows(2)
            .all(|pair| by_key(&pair[0], &pair[1]).is_lt());
        if !in_order {
            // Places are the last of the comparison, so an unstable sort has one answer.
            order.sort_unstable_by(|a, b| {
                by_key(a, b)
                    .then_with(|| instant(a).cmp(&instant(b)))
                    .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
            });
        }
        order.into_iter().map(|(_, b, r)| (b, r)).collect()
    }

    fn spill(&mut self) -> Result<()> {
        let order = self.order();
        let path = self.folder.join(format!("{:05}.run", self.runs.len()));
        let fail = |e: ArrowError| failed_run("write", &path, e);
        let file =
            File::create(&path).map_err(|e| Error::io("create the file", path.display(), e))?;
        let mut writer = StreamWriter::try_new(BufWriter::new(file), &self.schema).map_err(fail)?;
        for part in order.chunks(RUN_ROWS) {
            let batch = gather(&self.schema, &self.batches, part)?;
            writer.write(&batch).map_err(fail)?;
        }
        writer.finish().map_err(fail)?;
        self.runs.push(path);
        self.batches.clear();
        self.keys.clear();
        self.bytes = 0;
        Ok(())
    }

    /// The rows in order.
    pub fn finish(mut self) -> Result<DayRows> {
        if self.runs.is_empty() {
            let order = self.order();
            return Ok(DayRows::Held {
                batches: self.batches,
                keys: self.keys,
                order,
            });
        }
        if !self.batches.is_empty() {
            self.spill()?;
        }
        let mut merge = Merge {
            schema: self.schema,
            key_len: self.key_len,
            runs: Vec::new(),
            heap: BinaryHeap::new(),
        };
        for path in &self.runs {
            merge.open(path)?;
        }
        Ok(DayRows::Merged(Box::new(merge)))
    }
}

fn failed_run(action: &str, path: &Path, e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(_, io) => {
            Error::io(&format!("{action} the sorted rows"), path.display(), io)
        }
        e => Error::internal(format!("{action} the sorted rows `{}`", path.display())).caused_by(e),
    }
}

/// The rows at these places, as one batch.
pub(super) fn gather(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    places: &[(u32, u32)],
) -> Result<RecordBatch> {
    let places: Vec<(usize, usize)> = places
        .iter()
        .map(|(b, r)| (*b as usize, *r as usize))
        .collect();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for at in 0..schema.fields().len() {
        let arrays: Vec<&dyn Array> = batches.iter().map(|b| &**b.column(at)).collect();
        columns.push(interleave(&arrays, &places).map_err(|e| arrow_failed("gather rows", e))?);
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|e| arrow_failed("gather rows", e))
}

/// A sorted run that is read.
struct Run {
    path: PathBuf,
    reader: StreamReader<BufReader<File>>,
    converter: RowConverter,
    batch: RecordBatch,
    keys: Rows,
    next: usize,
}

/// The next row of a run, by what it is ordered by.
#[derive(PartialEq, Eq)]
struct Head {
    key: Box<[u8]>,
    instant: Option<i64>,
    run: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = self.key.cmp(&other.key);
        by_key
            .then(self.instant.cmp(&other.instant))
            .then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Runs in one order.
struct Merge {
    schema: SchemaRef,
    key_len: usize,
    runs: Vec<Run>,
    heap: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    fn open(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(|e| Error::io("open the file", path.display(), e))?;
        let reader = StreamReader::try_new(BufReader::new(file), None)
            .map_err(|e| failed_run("read", path, e))?;
        let converter = key_converter(&self.schema, self.key_len)?;
        let batch = RecordBatch::new_empty(Arc::clone(&self.schema));
        let keys = keys_of(&converter, &batch, self.key_len)?;
        self.runs.push(Run {
            path: path.to_owned(),
            reader,
            converter,
            batch,
            keys,
            next: 0,
        });
        let run = self.runs.len() - 1;
        self.refill(run)?;
        Ok(())
    }

    /// The next batch of a run, and its first row as a head; nothing at its end.
    fn refill(&mut self, run: usize) -> Result<()> {
        let of = &mut self.runs[run];
        match of
            .reader
            .next()
            .transpose()
            .map_err(|e| failed_run("read", &of.path, e))?
        {
            Some(batch) => {
                of.keys = keys_of(&of.converter, &batch, self.key_len)?;
                (of.batch, of.next) = (batch, 0);
                self.push_head(run);
            }
            None => {
                of.batch = RecordBatch::new_empty(Arc::clone(&self.schema));
                std::fs::remove_file(&of.path)
                    .map_err(|e| Error::io("delete the file", of.path.display(), e))?;
            }
        }
        Ok(())
    }

    fn push_head(&mut self, run: usize) {
        let of = &self.runs[run];
        self.heap.push(Reverse(Head {
            key: of.keys.row(of.next).as_ref().into(),
            instant: instant_at(of.batch.column(self.key_len), of.next),
            run,
        }));
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        // A run's batch stays as it is until its rows are gathered.
        let mut batches: Vec<RecordBatch> = self.runs.iter().map(|r| r.batch.clone()).collect();
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(RUN_ROWS);
        let mut at: Vec<u32> = (0_u32..).take(self.runs.len()).collect();
        while places.len() < RUN_ROWS {
            let Some(Reverse(head)) = self.heap.pop() else {
                break;
            };
            let run = head.run;
            let row = self.runs[run].next;
            places.push((at[run], u32::try_from(row).unwrap_or(u32::MAX)));
            self.runs[run].next += 1;
            if self.runs[run].next < self.runs[run].batch.num_rows() {
                self.push_head(run);
            } else {
                self.refill(run)?;
                at[run] = u32::try_from(batches.len()).unwrap_or(u32::MAX);
                batches.push(self.runs[run].batch.clone());
            }
        }
        if places.is_empty() {
            return Ok(None);
        }
        gather(&self.schema, &batches, &places).map(Some)
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_rows().transpose()
    }
}
