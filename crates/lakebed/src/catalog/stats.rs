//! Column statistics of a data file, from its Parquet footer: the last 64 KiB of the file are read,
//! and the rest of the footer only where it is larger.
//!
//! Bounds may always be wider than the values, never narrower; where that is not certain there is no
//! bound. So: every row group must have one (unless it holds NULLs alone); NaN is no bound; a zero
//! bound of a float stands for both zeros; unsigned numbers, times and raw bytes have none. A float
//! bound is never called exact, since footers do not say whether NaN is among the values.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ColumnOrder, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::data_type::AsBytes;
use parquet::file::metadata::{
    FooterTail, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetStatisticsPolicy,
};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescriptor, SchemaDescPtr};

use crate::catalog::{ColumnStats, FileStats, StatValue};
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
pub struct LastSchema(Option<(Vec<u8>, SchemaDescPtr)>);

impl LastSchema {
    /// The schema of this footer; `None` where it has none that can be read.
    fn of(&mut self, footer: &[u8]) -> Option<SchemaDescPtr> {
        if let Some((begin, schema)) = &self.0
            && footer.starts_with(begin)
        {
            return Some(Arc::clone(schema));
        }
        let schema = ParquetMetaDataReader::decode_schema(footer).ok()?;
        // A footer is read from its front: the shortest part that gives a schema ends with it.
        let (mut short, mut long) = (0, footer.len());
        while short < long {
            let middle = usize::midpoint(short, long);
            let part = footer.get(..middle).unwrap_or(footer);
            match ParquetMetaDataReader::decode_schema(part) {
                Ok(_) => long = middle,
                Err(_) => short = middle + 1,
            }
        }
        let begin = footer.get(..long).unwrap_or(footer).to_vec();
        self.0 = Some((begin, Arc::clone(&schema)));
        Some(schema)
    }
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
            return Ok(Some(stats(Vec::new())));
        }
    }
    let last = data_file_path(dataset, partition, &file.name);
    let staged = attempt.map(|a| staged_path(a, &last));
    // The final place once more at the end: the file may move between the first two looks.
    for path in [Some(&last), staged.as_ref(), Some(&last)]
        .into_iter()
        .flatten()
    {
        if let Some(metadata) = find_footer(lake, path, file, last_schema).await? {
            return column_stats(&metadata)
                .map(|columns| Some(stats(columns)))
                .map_err(|e| e.with("file", path));
        }
    }
    // Its date switches to another revision: the log tells where it waits.
    let state = DatasetState::load(lake, dataset).await?;
    let Some(path) = find_file(lake, &state, partition, &file.name).await? else {
        return Ok(None);
    };
    match find_footer(lake, &path, file, last_schema).await? {
        Some(metadata) => column_stats(&metadata)
            .map(|columns| Some(stats(columns)))
            .map_err(|e| e.with("file", &path)),
        None => Ok(None),
    }
}

/// The footer of the file at `path`; `None` when there is no file.
async fn find_footer(
    lake: &Lake,
    path: &StorePath,
    file: &DataFileSpec,
    last_schema: &mut LastSchema,
) -> Result<Option<ParquetMetaData>> {
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
    let parts = match last_schema.of(thrift) {
        Some(schema) => wanted_parts().with_schema(schema),
        None => wanted_parts(),
    };
    let metadata = ParquetMetaDataReader::decode_metadata_with_options(thrift, Some(&parts))
        .map_err(|e| corrupt(path, "its footer cannot be read").caused_by(e))?;
    let rows = metadata.file_metadata().num_rows();
    if u64::try_from(rows) != Ok(file.rows) {
        return Err(corrupt(path, "its row count is not the one in the log")
            .with("rows", rows)
            .with("rows in the log", file.rows));
    }
    Ok(Some(metadata))
}

/// Of a footer's statistics, the bounds and null counts alone.
fn wanted_parts() -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
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

/// Statistics of the top-level leaf columns that carry a field id, by position.
fn column_stats(metadata: &ParquetMetaData) -> Result<Vec<ColumnStats>> {
    let schema = metadata.file_metadata().schema_descr();
    let mut columns = Vec::new();
    for (at, descriptor) in schema.columns().iter().enumerate() {
        let info = descriptor.self_type().get_basic_info();
        if descriptor.path().parts().len() != 1 || descriptor.max_rep_level() > 0 || !info.has_id()
        {
            continue;
        }
        let Ok(field_id) = u32::try_from(info.id()) else {
            continue;
        };
        let orders = metadata.file_metadata().column_orders();
        let order = orders.and_then(|o| o.get(at)).copied();
        let class = Class::of(descriptor);
        let mut merged = Merged::default();
        for group in metadata.row_groups() {
            let rows = u64::try_from(group.num_rows())
                .map_err(|_| Error::corrupt("read the data file: a row group has negative rows"))?;
            let chunk = group.columns().get(at).ok_or_else(|| {
                Error::corrupt("read the data file: a row group lacks a column")
                    .with("column", descriptor.name())
            })?;
            merged.add(rows, chunk.statistics(), class, order);
        }
        columns.push(merged.finish(field_id, descriptor.name()));
    }
    Ok(columns)
}

/// How the bounds of a column are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Signed numbers, bool, date, timestamp in microseconds.
    Int,
    Float,
    Decimal,
    Text,
    /// Bounds mean nothing here.
    Unordered,
}

impl Class {
    fn of(descriptor: &ColumnDescriptor) -> Self {
        let physical = descriptor.physical_type();
        match descriptor.logical_type_ref() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Self::Text,
            Some(LogicalType::Decimal(_)) => Self::Decimal,
            Some(LogicalType::Date) => Self::Int,
            Some(LogicalType::Integer(int)) if int.is_signed => Self::Int,
            Some(LogicalType::Timestamp(t)) if t.unit == TimeUnit::MICROS => Self::Int,
            Some(_) => Self::Unordered,
            None => match descriptor.converted_type() {
                ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Self::Text,
                ConvertedType::DECIMAL => Self::Decimal,
                ConvertedType::DATE
                | ConvertedType::TIMESTAMP_MICROS
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64 => Self::Int,
                ConvertedType::NONE => match physical {
                    Type::BOOLEAN | Type::INT32 | Type::INT64 => Self::Int,
                    Type::FLOAT | Type::DOUBLE => Self::Float,
                    Type::INT96 | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => Self::Unordered,
                },
                _ => Self::Unordered,
            },
        }
    }
}

/// A bound over the row groups seen so far.
#[derive(Debug, Clone, Default)]
enum Bound {
    /// No row group had values.
    #[default]
    Empty,
    Known {
        value: StatValue,
        exact: bool,
    },
    Unknown,
}

impl Bound {
    /// Takes in the bound of one more row group; `keep` is the order in which the old one stays.
    fn add(&mut self, next: Option<(StatValue, bool)>, keep: Ordering) {
        let merged = match (std::mem::take(self), next) {
            (Self::Unknown, _) | (_, None) => Self::Unknown,
            (Self::Empty, Some((value, exact))) => Self::Known { value, exact },
            (
                Self::Known {
                    value: old,
                    exact: a,
                },
                Some((new, b)),
            ) => match compare(&old, &new) {
                None => Self::Unknown,
                Some(order) => Self::Known {
                    value: if order == keep { old } else { new },
                    exact: a && b,
                },
            },
        };
        *self = merged;
    }

    fn finish(self) -> (Option<StatValue>, bool) {
        match self {
            Self::Known { value, exact } => (Some(value), exact),
            Self::Empty | Self::Unknown => (None, false),
        }
    }
}

fn compare(a: &StatValue, b: &StatValue) -> Option<Ordering> {
    match (a, b) {
        (StatValue::Int(a), StatValue::Int(b)) => Some(a.cmp(b)),
        (StatValue::Float(a), StatValue::Float(b)) => a.partial_cmp(b),
        (StatValue::Decimal(a), StatValue::Decimal(b)) => Some(a.cmp(b)),
        (StatValue::Text(a), StatValue::Text(b)) => Some(a.cmp(b)),
        (
            StatValue::Int(_) | StatValue::Float(_) | StatValue::Decimal(_) | StatValue::Text(_),
            _,
        ) => None,
    }
}

/// A column over the row groups seen so far.
#[derive(Debug)]
struct Merged {
    null_count: Option<u64>,
    min: Bound,
    max: Bound,
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            null_count: Some(0),
            min: Bound::Empty,
            max: Bound::Empty,
        }
    }
}

impl Merged {
    fn add(
        &mut self,
        rows: u64,
        statistics: Option<&Statistics>,
        class: Class,
        order: Option<ColumnOrder>,
    ) {
        if rows == 0 {
            return;
        }
        let nulls = statistics.and_then(Statistics::null_count_opt);
        self.null_count = match (self.null_count, nulls) {
            (Some(a), Some(b)) => a.checked_add(b),
            (None, _) | (_, None) => None,
        };
        if nulls == Some(rows) {
            return;
        }
        let (min, max) = statistics.map_or((None, None), |s| bounds(s, class, order));
        self.min.add(min, Ordering::Less);
        self.max.add(max, Ordering::Greater);
    }

    fn finish(self, field_id: u32, name: &str) -> ColumnStats {
        let (min, min_exact) = self.min.finish();
        let (max, max_exact) = self.max.finish();
        ColumnStats {
            field_id,
            name: name.to_owned(),
            null_count: self.null_count,
            min,
            max,
            min_exact,
            max_exact,
        }
    }
}

type Ends = (Option<(StatValue, bool)>, Option<(StatValue, bool)>);

/// The bounds of one column chunk, with their exactness.
fn bounds(statistics: &Statistics, class: Class, order: Option<ColumnOrder>) -> Ends {
    // Old writers compared bytes as signed numbers, and a new order may be anything.
    let typed = matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_)))
        && !statistics.is_min_max_deprecated();
    let by_bytes = matches!(
        statistics,
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_)
    );
    if order == Some(ColumnOrder::UNKNOWN) || (by_bytes && !typed) {
        return (None, None);
    }
    let exact = (statistics.min_is_exact(), statistics.max_is_exact());
    let (min, max) = match (class, statistics) {
        (Class::Int, Statistics::Boolean(s)) => (
            s.min_opt().map(|b| StatValue::Int(i64::from(*b))),
            s.max_opt().map(|b| StatValue::Int(i64::from(*b))),
        ),
        (Class::Int, Statistics::Int32(s)) => (
            s.min_opt().map(|n| StatValue::Int(i64::from(*n))),
            s.max_opt().map(|n| StatValue::Int(i64::from(*n))),
        ),
        (Class::Int, Statistics::Int64(s)) => (
            s.min_opt().map(|n| StatValue::Int(*n)),
            s.max_opt().map(|n| StatValue::Int(*n)),
        ),
        (Class::Float, Statistics::Float(s)) => float_bounds(
            s.min_opt().map(|x| f64::from(*x)),
            s.max_opt().map(|x| f64::from(*x)),
        ),
        (Class::Float, Statistics::Double(s)) => {
            float_bounds(s.min_opt().copied(), s.max_opt().copied())
        }
        (Class::Decimal, Statistics::Int32(s)) => (
            s.min_opt().map(|n| StatValue::Decimal(i128::from(*n))),
            s.max_opt().map(|n| StatValue::Decimal(i128::from(*n))),
        ),
        (Class::Decimal, Statistics::Int64(s)) => (
            s.min_opt().map(|n| StatValue::Decimal(i128::from(*n))),
            s.max_opt().map(|n| StatValue::Decimal(i128::from(*n))),
        ),
        (Class::Decimal, Statistics::ByteArray(s)) => (
            s.min_opt().and_then(|b| decimal(b.as_bytes())),
            s.max_opt().and_then(|b| decimal(b.as_bytes())),
        ),
        (Class::Decimal, Statistics::FixedLenByteArray(s)) => (
            s.min_opt().and_then(|b| decimal(b.as_bytes())),
            s.max_opt().and_then(|b| decimal(b.as_bytes())),
        ),
        (Class::Text, Statistics::ByteArray(s)) => (
            s.min_opt().and_then(|b| text(b.as_bytes())),
            s.max_opt().and_then(|b| text(b.as_bytes())),
        ),
        (Class::Int | Class::Float | Class::Decimal | Class::Text | Class::Unordered, _) => {
            (None, None)
        }
    };
    let sure = class != Class::Float;
    (
        min.map(|v| (v, sure && exact.0)),
        max.map(|v| (v, sure && exact.1)),
    )
}

/// Neither bound counts when one is NaN; a zero stands for both zeros.
fn float_bounds(min: Option<f64>, max: Option<f64>) -> (Option<StatValue>, Option<StatValue>) {
    if min.is_some_and(f64::is_nan) || max.is_some_and(f64::is_nan) {
        return (None, None);
    }
    let zero = |x: f64, zero: f64| if x == 0.0 { zero } else { x };
    (
        min.map(|x| StatValue::Float(zero(x, -0.0))),
        max.map(|x| StatValue::Float(zero(x, 0.0))),
    )
}

/// A big-endian two's complement number of 1 to 16 bytes.
fn decimal(bytes: &[u8]) -> Option<StatValue> {
    let first = *bytes.first()?;
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [fill; 16];
    let from = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(from..)?.copy_from_slice(bytes);
    Some(StatValue::Decimal(i128::from_be_bytes(wide)))
}

fn text(bytes: &[u8]) -> Option<StatValue> {
    std::str::from_utf8(bytes)
        .ok()
        .map(|t| StatValue::Text(t.to_owned()))
}

#[cfg(test)]
mod tests;
