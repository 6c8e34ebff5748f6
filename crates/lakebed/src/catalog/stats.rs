//! Column statistics of a data file, from its Parquet footer: the last 64 KiB of the file are read,
//! and the rest of the footer only where it is larger.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type;
use parquet::file::metadata::{FooterTail, ParquetMetaDataReader};
use parquet::schema::types::SchemaDescriptor;

use crate::catalog::FileStats;
use crate::catalog::bound::{Class, Merged};
use crate::catalog::footer::{Footer, schema_end};
use crate::catalog::packed::{PackedStats, ShapeWriter, ValuesWriter};
use crate::catalog::thrift::Damage;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{DatasetState, find_file};
use crate::name::{AttemptId, DatasetRef};
use crate::spec::{DataFileSpec, FileFormat, PartitionKey};
use crate::store::{Lake, StorePath, data_file_path, staged_path};

/// What is read of a file's end at first.
const TAIL_BYTES: usize = 64 * 1024;
/// The length of the footer and the magic at the very end.
const FOOTER_TAIL_BYTES: usize = 8;

/// The schema of the footer that was read last, with the bytes that say it. Files of a dataset share it, and
/// to decode it is a good part of what a footer costs.
#[derive(Debug, Default)]
pub struct LastSchema(Option<Known>);

/// A schema, as far as statistics go.
#[derive(Debug)]
struct Known {
    /// A footer up to the end of its schema.
    begin: Vec<u8>,
    /// Of each column of the schema, whether it has statistics.
    wanted: Vec<bool>,
    /// Those that have, by field id.
    columns: Vec<Column>,
    shape: Arc<str>,
    /// Bytes that the values of a file may take.
    values_bytes: usize,
}

/// A column that has statistics.
#[derive(Debug)]
struct Column {
    /// Its place in the schema.
    leaf: usize,
    /// Its place among the wanted ones.
    at: usize,
    field_id: u32,
    physical: Type,
    class: Class,
}

impl LastSchema {
    fn of(&mut self, footer: &[u8]) -> std::result::Result<&mut Known, Unreadable> {
        let known = self.0.take().filter(|k| footer.starts_with(&k.begin));
        let known = match known {
            Some(known) => known,
            None => Known::read(footer)?,
        };
        Ok(self.0.insert(known))
    }
}

/// Why a footer cannot be read.
#[derive(Debug)]
enum Unreadable {
    Damaged(Damage),
    Schema(parquet::errors::ParquetError),
}

impl From<Damage> for Unreadable {
    fn from(why: Damage) -> Self {
        Self::Damaged(why)
    }
}

impl Known {
    fn read(footer: &[u8]) -> std::result::Result<Self, Unreadable> {
        let end = schema_end(footer)?;
        let schema = ParquetMetaDataReader::decode_schema(footer).map_err(Unreadable::Schema)?;
        let mut columns = wanted_columns(&schema);
        let mut wanted = vec![false; schema.num_columns()];
        for (at, column) in columns.iter_mut().enumerate() {
            column.at = at;
            if let Some(is_wanted) = wanted.get_mut(column.leaf) {
                *is_wanted = true;
            }
        }
        columns.sort_by_key(|column| column.field_id);
        let mut shape = ShapeWriter::default();
        for column in &columns {
            let name = schema.column(column.leaf);
            shape.add(column.field_id, name.name(), column.class.kind());
        }
        Ok(Self {
            begin: footer.get(..end).unwrap_or(footer).to_vec(),
            wanted,
            columns,
            shape: shape.finish(),
            values_bytes: 0,
        })
    }

    /// The rows of the file, and the statistics of its columns.
    fn stats(&mut self, footer: &[u8]) -> std::result::Result<(i64, PackedStats), Unreadable> {
        let after_schema = footer.get(self.begin.len()..).unwrap_or_default();
        let footer = Footer::read(after_schema, &self.wanted)?;
        let mut values = ValuesWriter::with_capacity(self.values_bytes);
        let width = self.columns.len();
        for column in &self.columns {
            let order = footer.orders.as_ref().and_then(|o| o.get(column.leaf));
            let chunks = footer.chunks.iter().skip(column.at).step_by(width);
            let of = (column.class, column.physical);
            let mut merged = Merged::default();
            for (rows, chunk) in footer.groups.iter().zip(chunks) {
                merged.add(*rows, chunk, of, order.copied())?;
            }
            let ((min, min_exact), (max, max_exact)) = (merged.min.finish(), merged.max.finish());
            values.add(merged.null_count, (min, max), (min_exact, max_exact));
        }
        let stats = values.finish(&self.shape);
        // The next file has about as many.
        self.values_bytes = stats.values().len() + 64;
        Ok((footer.rows, stats))
    }
}

/// The top-level leaf columns that carry a field id.
fn wanted_columns(schema: &SchemaDescriptor) -> Vec<Column> {
    let columns = schema.columns().iter().enumerate();
    let wanted = columns.filter_map(|(leaf, descriptor)| {
        let info = descriptor.self_type().get_basic_info();
        let is_plain = descriptor.path().parts().len() == 1 && descriptor.max_rep_level() == 0;
        Some(Column {
            leaf,
            at: 0,
            field_id: u32::try_from((is_plain && info.has_id()).then(|| info.id())?).ok()?,
            physical: descriptor.physical_type(),
            class: Class::of(descriptor),
        })
    });
    wanted.collect()
}

/// The statistics of a data file; `None` when it lies nowhere that its log knows of: not at its place,
/// not in the stage of its attempt, not where an earlier switch had put it. A file that is no Parquet has none, so its columns are empty.
pub async fn read_footer_stats(
    lake: &Lake,
    dataset: &DatasetRef,
    partition: &PartitionKey,
    file: &DataFileSpec,
    attempt: Option<&AttemptId>,
    last_schema: &mut LastSchema,
) -> Result<Option<FileStats>> {
    let stats = |columns| FileStats {
        partition: *partition,
        name: file.name.clone(),
        columns,
    };
    match file.format {
        FileFormat::Parquet => {}
        FileFormat::Jsonl | FileFormat::Rawpack | FileFormat::RawpackIndex => {
            return Ok(Some(stats(PackedStats::default())));
        }
    }
    let last = data_file_path(dataset, partition, &file.name);
    if let Some(columns) = find_stats(lake, &last, file, last_schema).await? {
        return Ok(Some(stats(columns)));
    }
    // The final place once more at the end: the file may move between the first two looks.
    let staged = attempt.map(|a| staged_path(a, &last));
    for path in staged.iter().chain([&last]) {
        if let Some(columns) = find_stats(lake, path, file, last_schema).await? {
            return Ok(Some(stats(columns)));
        }
    }
    // Its date switches to another revision: the log tells where it waits.
    let state = DatasetState::load(lake, dataset).await?;
    let Some(path) = find_file(lake, &state, partition, &file.name).await? else {
        return Ok(None);
    };
    let columns = find_stats(lake, &path, file, last_schema).await?;
    Ok(columns.map(stats))
}

/// The statistics in the footer of the file at `path`; `None` when there is no file.
async fn find_stats(
    lake: &Lake,
    path: &StorePath,
    file: &DataFileSpec,
    last_schema: &mut LastSchema,
) -> Result<Option<PackedStats>> {
    let Some((size, tail)) = lake.store().find_end(path, TAIL_BYTES).await? else {
        return Ok(None);
    };
    if size != file.bytes {
        return Err(corrupt(path, "its size is not the one in the log")
            .with("bytes", size)
            .with("bytes in the log", file.bytes));
    }
    let needed = footer_bytes(&tail, size).map_err(|what| corrupt(path, &what))?;
    let tail = if needed > tail.len() {
        match read_end(lake, path, size, needed).await? {
            Some(tail) => tail,
            None => return Ok(None),
        }
    } else {
        tail
    };
    let thrift = tail
        .len()
        .checked_sub(needed)
        .and_then(|from| tail.get(from..tail.len() - FOOTER_TAIL_BYTES))
        .ok_or_else(|| corrupt(path, "it ends within its footer"))?;
    let read = last_schema.of(thrift).and_then(|known| known.stats(thrift));
    let (rows, stats) = read.map_err(|why| unreadable(path, why))?;
    if u64::try_from(rows) != Ok(file.rows) {
        return Err(corrupt(path, "its row count is not the one in the log")
            .with("rows", rows)
            .with("rows in the log", file.rows));
    }
    Ok(Some(stats))
}

fn unreadable(path: &StorePath, why: Unreadable) -> Error {
    let what = "its footer cannot be read";
    match why {
        Unreadable::Damaged(why) => corrupt(path, what).caused_by(why.text()),
        Unreadable::Schema(e) => corrupt(path, what).caused_by(e),
    }
}

/// The last `length` bytes of the file; `None` when it was moved away meanwhile.
async fn read_end(
    lake: &Lake,
    path: &StorePath,
    size: u64,
    length: usize,
) -> Result<Option<Bytes>> {
    let offset = size.saturating_sub(length as u64);
    match lake.store().read_range(path, offset, length).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Bytes of the whole footer, its tail included.
fn footer_bytes(tail: &[u8], size: u64) -> std::result::Result<usize, String> {
    let Some(last) = tail.last_chunk::<FOOTER_TAIL_BYTES>() else {
        return Err("it is shorter than a footer".to_owned());
    };
    let footer = FooterTail::try_new(last)
        .map_err(|_| "it does not end as a Parquet file does".to_owned())?;
    if footer.is_encrypted_footer() {
        return Err("its footer is encrypted".to_owned());
    }
    let needed = footer.metadata_length().saturating_add(FOOTER_TAIL_BYTES);
    if needed as u64 > size {
        return Err(format!(
            "its footer claims `{needed}` bytes, the file has `{size}`"
        ));
    }
    Ok(needed)
}

fn corrupt(path: &StorePath, what: &str) -> Error {
    Error::corrupt(format!("read the data file: {what}"))
        .with("file", path)
        .hint("run `lakebed audit --deep`; the file was changed after its commit, restore it from a backup")
}

#[cfg(test)]
mod tests;
