//! Rows of committed files: which files a date has, and the wanted columns of one, by field id.

use std::fs::File;
use std::path::PathBuf;

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::{DataType, FieldRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

use crate::error::{Error, Result};
use crate::fold::conform;
use crate::log::DatasetState;
use crate::name::ContentHash;
use crate::registry::field_id;
use crate::spec::PartitionKey;
use crate::store::{Lake, data_file_path};
use crate::time::BusinessDate;

/// Rows of a batch.
const BATCH_ROWS: usize = 16_384;

/// A file that readers see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredFile {
    pub(super) path: PathBuf,
    pub(super) key: PartitionKey,
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) blake3: ContentHash,
    /// The record that added it.
    pub(super) number: u64,
}

/// The files of a date that readers see, in the order in which they came.
pub(super) fn list_files(
    lake: &Lake,
    state: &DatasetState,
    dt: BusinessDate,
) -> Result<Vec<StoredFile>> {
    let mut files = Vec::new();
    for (key, partition) in state.visible_of(dt) {
        for file in partition.files.values() {
            let path = data_file_path(state.dataset(), key, &file.spec.name);
            let path = lake.store().local_path(&path).ok_or_else(|| {
                Error::unavailable("rows are folded from a lake on this machine's disk")
                    .with("file", &path)
            })?;
            files.push(StoredFile {
                path,
                key: *key,
                name: file.spec.name.clone(),
                rows: file.spec.rows,
                bytes: file.spec.bytes,
                blake3: file.spec.blake3.clone(),
                number: file.number,
            });
        }
    }
    files.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    Ok(files)
}

/// A column that is wanted: by the field id of the dataset, as a type.
#[derive(Debug, Clone)]
pub(super) struct WantedColumn {
    /// As the dataset's newest version has it; `None` = a column of nulls.
    pub(super) stored: Option<FieldRef>,
    /// The type that it gets.
    pub(super) wanted: DataType,
}

/// The rows of a file, batch by batch.
pub(super) struct FileRows {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    columns: Vec<(Option<usize>, WantedColumn)>,
}

fn damaged(
    path: &std::path::Path,
    e: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::corrupt("read the rows of a file")
        .with("file", path.display())
        .caused_by(e)
        .hint("`lakebed audit --deep` tells which files differ from the log")
}

impl FileRows {
    /// Opens a file; `groups` = these row groups alone.
    pub(super) fn open(
        file: &StoredFile,
        wanted: &[WantedColumn],
        groups: Option<Vec<usize>>,
    ) -> Result<Self> {
        let path = &file.path;
        let opened = File::open(path).map_err(|e| Error::io("open the file", path.display(), e))?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let mut builder = ParquetRecordBatchReaderBuilder::try_new_with_options(opened, options)
            .map_err(|e| damaged(path, e))?;
        let held = builder.schema().fields().clone();
        let find = |column: &WantedColumn| {
            let id = field_id(column.stored.as_ref()?)?;
            held.iter().position(|f| field_id(f) == Some(id))
        };
        let found: Vec<Option<usize>> = wanted.iter().map(find).collect();
        let mut roots: Vec<usize> = found.iter().flatten().copied().collect();
        roots.sort_unstable();
        roots.dedup();
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        if let Some(groups) = groups {
            builder = builder.with_row_groups(groups);
        }
        let reader = builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .build();
        let place =
            |root: Option<usize>| root.and_then(|root| roots.iter().position(|r| *r == root));
        let columns = found.into_iter().map(place).zip(wanted.iter().cloned());
        Ok(Self {
            reader: reader.map_err(|e| damaged(path, e))?,
            columns: columns.collect(),
            path: path.clone(),
        })
    }

    fn next_columns(&mut self) -> Result<Option<(usize, Vec<ArrayRef>)>> {
        let Some(batch) = self
            .reader
            .next()
            .transpose()
            .map_err(|e| damaged(&self.path, e))?
        else {
            return Ok(None);
        };
        let rows = batch.num_rows();
        let column = |(place, of): &(Option<usize>, WantedColumn)| match place {
            // Within a dataset members are told by their ids; those of another one by their places.
            Some(place) => {
                let stored = of.stored.as_ref().map_or(&of.wanted, |f| f.data_type());
                let own = conform(batch.column(*place), stored, true);
                own.and_then(|own| conform(&own, &of.wanted, false))
                    .map_err(|e| e.with("file", self.path.display()))
            }
            None => Ok(new_null_array(&of.wanted, rows)),
        };
        let columns = self.columns.iter().map(column).collect::<Result<_>>()?;
        Ok(Some((rows, columns)))
    }
}

impl Iterator for FileRows {
    type Item = Result<(usize, Vec<ArrayRef>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_columns().transpose()
    }
}

/// Numbers of the row groups of a file.
pub(super) fn count_groups(file: &StoredFile) -> Result<usize> {
    let path = &file.path;
    let opened = File::open(path).map_err(|e| Error::io("open the file", path.display(), e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(|e| damaged(path, e))?;
    Ok(builder.metadata().num_row_groups())
}
