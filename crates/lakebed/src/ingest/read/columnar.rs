//! Parquet: row group by row group into record batches.
//!
//! The identity is that of the file's bytes, which are hashed in a pass of their own, because Parquet
//! is not read from front to back. A local file is read in place; packed or piped files are held in
//! memory. The Arrow schema that some writers embed is ignored, so that the types are those that
//! Parquet itself declares (no dictionaries, no views, no large offsets).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader as ParquetBytes;

use crate::error::{Error, Result};
use crate::ingest::read::text::hash_stream;
use crate::ingest::read::unpack::{Unpacked, read_failed};
use crate::ingest::read::window::length;
use crate::name::ContentHash;

/// Most rows in a batch.
const MAX_BATCH_ROWS: u64 = 8192;
/// Largest packed or piped Parquet file, which is held in memory.
const MAX_HELD_BYTES: u64 = 4 << 30;

/// A Parquet input.
pub(super) struct ParquetRows {
    batches: ParquetRecordBatchReader,
    pub(super) content: ContentHash,
    pub(super) bytes: u64,
    /// Rows that the footer announces.
    pub(super) rows: u64,
    read: u64,
}

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("Parquet file cannot be read: {why}"))
        .hint("the file is truncated, damaged or uses a feature that is not supported; nothing of it was stored")
}

fn parquet_failed(error: ParquetError) -> Error {
    damaged(&error).caused_by(error)
}

impl ParquetRows {
    pub(super) fn open(unpacked: Unpacked, chunk_bytes: usize) -> Result<Self> {
        let Some(path) = unpacked.plain_file else {
            return Self::open_held(unpacked, chunk_bytes);
        };
        let mut file = File::open(&path).map_err(read_failed)?;
        let (content, bytes) = hash_stream(&mut file)?;
        file.seek(SeekFrom::Start(0)).map_err(read_failed)?;
        Self::build(file, chunk_bytes, content, bytes)
    }

    fn open_held(unpacked: Unpacked, chunk_bytes: usize) -> Result<Self> {
        let mut held = Vec::new();
        unpacked
            .stream
            .take(MAX_HELD_BYTES + 1)
            .read_to_end(&mut held)
            .map_err(read_failed)?;
        let bytes = length(held.len());
        if bytes > MAX_HELD_BYTES {
            return Err(Error::limit(format!(
                "packed or piped Parquet file is larger than the limit of {MAX_HELD_BYTES} bytes"
            ))
            .hint("unpack it and name the file: Parquet has its own compression"));
        }
        let content = ContentHash::of(&held);
        Self::build(Bytes::from(held), chunk_bytes, content, bytes)
    }

    fn build(
        reader: impl ParquetBytes + 'static,
        chunk_bytes: usize,
        content: ContentHash,
        bytes: u64,
    ) -> Result<Self> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = guarded(|| {
            ParquetRecordBatchReaderBuilder::try_new_with_options(reader, options)
                .map_err(parquet_failed)
        })?;
        let mut rows = 0;
        let mut widest = 1;
        for group in builder.metadata().row_groups() {
            let count = u64::try_from(group.num_rows()).map_err(damaged)?;
            let size = u64::try_from(group.total_byte_size()).map_err(damaged)?;
            rows += count;
            widest = widest.max(size / count.max(1));
        }
        let names: Vec<&String> = builder.schema().fields().iter().map(|f| f.name()).collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(Error::corrupt(format!(
                    "Parquet file has two columns of the name `{name}`"
                )));
            }
        }
        let batch = (length(chunk_bytes) / widest).clamp(1, MAX_BATCH_ROWS);
        let batches = guarded(|| {
            builder
                .with_batch_size(usize::try_from(batch).unwrap_or(1))
                .build()
                .map_err(parquet_failed)
        })?;
        Ok(Self {
            batches,
            content,
            bytes,
            rows,
            read: 0,
        })
    }

    /// The part of the file that the rows so far stand for.
    pub(super) fn bytes_done(&self) -> u64 {
        let part = u128::from(self.bytes) * u128::from(self.read) / u128::from(self.rows.max(1));
        u64::try_from(part).unwrap_or(self.bytes)
    }

    /// The next rows, with the number (from 1) of the first.
    pub(super) fn next_batch(&mut self) -> Result<Option<(RecordBatch, u64)>> {
        let batches = &mut self.batches;
        let next = guarded(|| batches.next().transpose().map_err(damaged))
            .map_err(|e| e.with("row", self.read + 1))?;
        match next {
            Some(batch) => {
                let first = self.read + 1;
                self.read += length(batch.num_rows());
                Ok(Some((batch, first)))
            }
            None if self.read != self.rows => Err(damaged(format!(
                "it holds {} rows, but announces {}",
                self.read, self.rows
            ))),
            None => Ok(None),
        }
    }
}

/// The Parquet reader may panic on bytes made to harm; that is a failed file, not a crash.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(damaged("its pages contradict each other")))
}
