//! Windows: so many keys in order, each with its row of yesterday and its rows of today.
//!
//! ```text
//! yesterday   (sorted)   a  b     d  e
//! list        (sorted)   a     c  d
//! detail      (sorted)      b b      e
//! keys                   a  b  c  d  e     a window ends after WINDOW_KEYS keys, wherever batches end
//! ```

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_row::{RowConverter, Rows};
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::fold::sort::{DayRows, key_converter, keys_of};

/// Keys of a window: rows of a row group of the snapshot.
pub(super) const WINDOW_KEYS: usize = 65_536;

/// The place of a row within the batches of its stream.
pub(super) type At = (u32, u32);

/// Some keys with all their rows.
pub struct Window {
    /// Batches of yesterday's snapshot that `previous` points into.
    pub(super) old: Vec<RecordBatch>,
    /// Yesterday's row of each key.
    pub(super) previous: Vec<Option<At>>,
    /// The inputs.
    pub(super) inputs: Vec<WindowInput>,
}

/// The rows of an input.
pub(super) struct WindowInput {
    pub(super) batches: Arc<Vec<RecordBatch>>,
    /// All rows in order.
    pub(super) rows: Vec<At>,
    /// For each key the end of its rows in `rows`; they begin where those before end.
    pub(super) ends: Vec<u32>,
}

impl WindowInput {
    /// The rows of a key.
    pub(super) fn of(&self, key: usize) -> &[At] {
        let begin = key.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[begin as usize..self.ends[key] as usize]
    }
}

impl Window {
    /// Keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.previous.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.previous.is_empty()
    }
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Rows in the order of their keys.
enum Stream {
    Held {
        batches: Arc<Vec<RecordBatch>>,
        keys: Vec<Rows>,
        order: Vec<At>,
        next: usize,
    },
    Read(Box<ReadStream>),
}

struct ReadStream {
    batches: Batches,
    converter: RowConverter,
    key_len: usize,
    /// The batches that the present window points into; the last one is read now.
    window: Vec<RecordBatch>,
    keys: Option<Rows>,
    next: usize,
    /// The last key, where keys may not repeat.
    unique: bool,
    last: Vec<u8>,
}

impl ReadStream {
    fn open(
        batches: Batches,
        converter: RowConverter,
        key_len: usize,
        unique: bool,
    ) -> Result<Self> {
        let mut stream = Self {
            batches,
            converter,
            key_len,
            window: Vec::new(),
            keys: None,
            next: 0,
            unique,
            last: Vec::new(),
        };
        stream.refill()?;
        Ok(stream)
    }

    fn refill(&mut self) -> Result<()> {
        self.keys = None;
        while let Some(batch) = self.batches.next().transpose()? {
            if batch.num_rows() > 0 {
                self.keys = Some(keys_of(&self.converter, &batch, self.key_len)?);
                self.next = 0;
                self.window.push(batch);
                return Ok(());
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Result<At> {
        let Some(keys) = &self.keys else {
            return Err(Error::internal("a stream of rows ended too early"));
        };
        let place = (
            u32::try_from(self.window.len() - 1).unwrap_or(u32::MAX),
            u32::try_from(self.next).unwrap_or(u32::MAX),
        );
        if self.unique {
            let key = keys.row(self.next);
            if !self.last.is_empty() && key.as_ref() <= self.last.as_slice() {
                return Err(
                    Error::corrupt("read the snapshot: its keys are not in order")
                        .hint("`lakebed audit --deep` tells which files differ from the log"),
                );
            }
            self.last.clear();
            self.last.extend_from_slice(key.as_ref());
        }
        self.next += 1;
        if self.next == keys.num_rows() {
            self.refill()?;
        }
        Ok(place)
    }

    /// The batches of the window; the one that is read goes on into the next.
    fn cut(&mut self) -> Vec<RecordBatch> {
        let window = std::mem::take(&mut self.window);
        if self.keys.is_some() {
            self.window.extend(window.last().cloned());
        }
        window
    }
}

impl Stream {
    fn peek(&self) -> Option<&[u8]> {
        match self {
            Self::Held {
                keys, order, next, ..
            } => {
                let (batch, row) = order.get(*next)?;
                Some(keys[*batch as usize].row(*row as usize).data())
            }
            Self::Read(stream) => Some(stream.keys.as_ref()?.row(stream.next).data()),
        }
    }

    fn take(&mut self) -> Result<At> {
        match self {
            Self::Held { order, next, .. } => {
                let at = order.get(*next).copied();
                *next += 1;
                at.ok_or_else(|| Error::internal("a stream of rows ended too early"))
            }
            Self::Read(stream) => stream.take(),
        }
    }

    fn cut(&mut self) -> Arc<Vec<RecordBatch>> {
        match self {
            Self::Held { batches, .. } => Arc::clone(batches),
            Self::Read(stream) => Arc::new(stream.cut()),
        }
    }
}

/// The merge of all streams.
pub struct Windows {
    previous: Stream,
    inputs: Vec<Stream>,
    keys: usize,
    key: Vec<u8>,
}

impl Windows {
    /// Merges yesterday's rows (the key first, each once, in order) with those of today.
    pub fn new(
        key_len: usize,
        (previous_schema, previous): (SchemaRef, Batches),
        inputs: Vec<(SchemaRef, DayRows)>,
    ) -> Result<Self> {
        let converter = key_converter(&previous_schema, key_len)?;
        let previous = ReadStream::open(previous, converter, key_len, true)?;
        let mut streams = Vec::new();
        for (schema, rows) in inputs {
            streams.push(match rows {
                DayRows::Held {
                    batches,
                    keys,
                    order,
                } => Stream::Held {
                    batches: Arc::new(batches),
                    keys,
                    order,
                    next: 0,
                },
                DayRows::Merged(batches) => {
                    let converter = key_converter(&schema, key_len)?;
                    let read = ReadStream::open(batches, converter, key_len, false)?;
                    Stream::Read(Box::new(read))
                }
            });
        }
        Ok(Self {
            previous: Stream::Read(Box::new(previous)),
            inputs: streams,
            keys: WINDOW_KEYS,
            key: Vec::new(),
        })
    }

    /// With windows of so many keys.
    #[cfg(test)]
    pub(super) fn of_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// The smallest key that is next anywhere; `false` at the end.
    fn next_key(&mut self) -> bool {
        let streams = std::iter::once(&self.previous).chain(&self.inputs);
        let smallest = streams.filter_map(Stream::peek).min();
        self.key.clear();
        match smallest {
            Some(key) => {
                self.key.extend_from_slice(key);
                true
            }
            None => false,
        }
    }

    fn next_window(&mut self) -> Result<Option<Window>> {
        let mut previous = Vec::new();
        let mut rows: Vec<Vec<At>> = vec![Vec::new(); self.inputs.len()];
        let mut ends: Vec<Vec<u32>> = vec![Vec::new(); self.inputs.len()];
        while previous.len() < self.keys && self.next_key() {
            let key = self.key.as_slice();
            previous.push(match self.previous.peek() == Some(key) {
                true => Some(self.previous.take()?),
                false => None,
            });
            for (stream, (rows, ends)) in self.inputs.iter_mut().zip(rows.iter_mut().zip(&mut ends))
            {
                while stream.peek() == Some(key) {
                    rows.push(stream.take()?);
                }
                ends.push(u32::try_from(rows.len()).map_err(|_| {
                    Error::limit("more rows for some keys of a day than can be folded at once")
                })?);
            }
        }
        if previous.is_empty() {
            return Ok(None);
        }
        let old = self.previous.cut();
        let cut = self.inputs.iter_mut().map(Stream::cut).collect::<Vec<_>>();
        let inputs = cut.into_iter().zip(rows.into_iter().zip(ends));
        Ok(Some(Window {
            old: old.as_ref().clone(),
            previous,
            inputs: inputs
                .map(|(batches, (rows, ends))| WindowInput {
                    batches,
                    rows,
                    ends,
                })
                .collect(),
        }))
    }
}

impl Iterator for Windows {
    type Item = Result<Window>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_window().transpose()
    }
}
