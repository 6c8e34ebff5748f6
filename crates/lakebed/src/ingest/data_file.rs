//! Data files of both formats: what a worker makes of decoded batches, and what the appender writes.
//!
//! | format | a worker makes | the appender writes |
//! | --- | --- | --- |
//! | Parquet | an encoded row group | row groups and a footer (`write`) |
//! | JSON lines | the lines of its batches | one zstd frame over all lines: readers that stop after a first frame see every row |
//!
//! ING-4 holds for both: lines are compressed in their order by one thread, so no byte depends on the
//! number of workers.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};

use crate::error::{Error, Result};
use crate::ingest::convert::Plan;
use crate::ingest::write::{
    DataFileWriter, EncodedGroup, GroupEncoder, LinesFileWriter, OpenGroup, StagedFile,
};
use crate::spec::FileFormat;
use crate::store::{Store, StorePath};

/// Turns batches into pieces of a data file; shared by all workers.
pub(super) enum Encoder {
    Parquet(Box<GroupEncoder>),
    Lines,
}

/// A piece of a data file that rows are still added to.
pub(super) enum OpenPiece {
    Parquet(OpenGroup),
    Lines { bytes: Vec<u8>, rows: u64 },
}

/// A piece of a data file, ready to be appended.
pub(super) enum Group {
    Parquet(EncodedGroup),
    Lines { bytes: Vec<u8>, rows: u64 },
}

/// A data file being written.
pub(super) enum Writer {
    Parquet(DataFileWriter),
    Lines(LinesFileWriter),
}

impl Encoder {
    /// The encoder of a format; `sample` = the first rows in order.
    pub(super) fn new(format: FileFormat, plan: &Plan, sample: &[RecordBatch]) -> Result<Self> {
        Ok(match format {
            FileFormat::Parquet => Self::Parquet(Box::new(GroupEncoder::new(
                plan.arrow_schema(),
                &plan.specs,
                sample,
            )?)),
            FileFormat::Jsonl => Self::Lines,
            FileFormat::Rawpack | FileFormat::RawpackIndex => {
                return Err(Error::internal("a pack as a format of ingest"));
            }
        })
    }

    /// Begins a piece.
    pub(super) fn open(&self) -> Result<OpenPiece> {
        Ok(match self {
            Self::Parquet(encoder) => OpenPiece::Parquet(encoder.open()?),
            Self::Lines => OpenPiece::Lines {
                bytes: Vec::new(),
                rows: 0,
            },
        })
    }

    /// Begins a file at `path`, which must lie in the stage.
    pub(super) fn begin(&self, store: &dyn Store, path: StorePath) -> Result<Writer> {
        match self {
            Self::Parquet(encoder) => {
                DataFileWriter::create(store, path, encoder).map(Writer::Parquet)
            }
            Self::Lines => LinesFileWriter::create_checked(store, path).map(Writer::Lines),
        }
    }
}

impl OpenPiece {
    /// Adds rows at its end; of a piece of lines the first column, one value a line.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Parquet(group) => group.write(batch),
            Self::Lines { bytes, rows } => {
                let texts = batch.column(0).as_string::<i32>();
                bytes.reserve(texts.value_data().len() + texts.len());
                for text in texts.iter().flatten() {
                    bytes.extend_from_slice(text.as_bytes());
                    bytes.push(b'\n');
                    *rows += 1;
                }
                Ok(())
            }
        }
    }

    /// Ends it.
    pub(super) fn close(self) -> Result<Group> {
        Ok(match self {
            Self::Parquet(group) => Group::Parquet(group.close()?),
            Self::Lines { bytes, rows } => Group::Lines { bytes, rows },
        })
    }
}

impl Writer {
    /// Bytes written so far.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Parquet(writer) => writer.bytes(),
            Self::Lines(writer) => writer.bytes(),
        }
    }

    /// Appends a piece; an empty one is left out.
    pub(super) fn append(&mut self, group: Group) -> Result<()> {
        match (self, group) {
            (Self::Parquet(writer), Group::Parquet(group)) => writer.append(group),
            (Self::Lines(writer), Group::Lines { bytes, rows }) => {
                writer.append_lines(&bytes, rows)
            }
            (Self::Parquet(_) | Self::Lines(_), _) => {
                Err(Error::internal("a piece of another format than its file's"))
            }
        }
    }

    /// Ends the file and makes it durable.
    pub(super) fn finish(self) -> Result<StagedFile> {
        match self {
            Self::Parquet(writer) => writer.finish(),
            Self::Lines(writer) => writer.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
