//! The rows of a checkpoint as a Parquet file in memory, and back.
//!
//! One flat table, every column but `kind` optional. The head stands in the footer. Equal folds give
//! equal bytes from one build of the program.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, Date32Builder, FixedSizeBinaryBuilder, Int64Builder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{Array, FixedSizeBinaryArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::{Error, Result};
use crate::log::checkpoint::row::Row;
use crate::spec::{CHECKPOINT_KEY, CheckpointHead};
use crate::time::{BusinessDate, Instant};

/// Rows built or read at once.
const BATCH_ROWS: usize = 8192;
/// Rows of a row group.
const GROUP_ROWS: usize = 131_072;
/// Bytes of a hash.
const HASH_BYTES: i32 = 32;

/// Text columns and their names; hashes, dates and numbers are the others.
const TEXTS: [&str; 11] = [
    "kind",
    "name",
    "state",
    "format",
    "provenance",
    "load",
    "rules",
    "batch",
    "commit",
    "attempt",
    "more",
];
/// Columns whose values hardly repeat: a dictionary would only cost.
const UNIQUE: [&str; 4] = ["name", "hash", "commit", "attempt"];
const NUMBERS: [&str; 9] = [
    "schema_version",
    "revision",
    "number",
    "base",
    "sealed",
    "at",
    "rows",
    "rejected",
    "bytes",
];

fn schema() -> SchemaRef {
    let mut fields: Vec<Field> = TEXTS
        .iter()
        .map(|name| Field::new(*name, DataType::Utf8, *name != "kind"))
        .collect();
    fields.push(Field::new("dt", DataType::Date32, true));
    fields.extend(
        NUMBERS
            .iter()
            .map(|name| Field::new(*name, DataType::Int64, true)),
    );
    fields.push(Field::new(
        "hash",
        DataType::FixedSizeBinary(HASH_BYTES),
        true,
    ));
    Arc::new(Schema::new(fields))
}

fn texts<'a>(row: &Row<'a>) -> [Option<&'a str>; 11] {
    [
        Some(row.kind),
        row.name,
        row.state,
        row.format,
        row.provenance,
        row.load,
        row.rules,
        row.batch,
        row.commit,
        row.attempt,
        row.more,
    ]
}

fn numbers(row: &Row<'_>) -> Result<[Option<i64>; 9]> {
    let signed = |n: Option<u64>| {
        n.map(i64::try_from)
            .transpose()
            .map_err(|e| Error::invalid("a number that no checkpoint holds").caused_by(e))
    };
    Ok([
        signed(row.schema_version)?,
        signed(row.revision)?,
        signed(row.number)?,
        signed(row.base)?,
        signed(row.sealed)?,
        row.at.map(Instant::micros),
        signed(row.rows)?,
        signed(row.rejected)?,
        signed(row.bytes)?,
    ])
}

/// Writes rows into a file in memory.
pub(super) struct TableWriter {
    schema: SchemaRef,
    writer: ArrowWriter<Vec<u8>>,
    texts: Vec<StringBuilder>,
    dates: Date32Builder,
    numbers: Vec<Int64Builder>,
    hashes: FixedSizeBinaryBuilder,
}

impl TableWriter {
    pub(super) fn new(head: &CheckpointHead) -> Result<Self> {
        let text = serde_json::to_string(head)
            .map_err(|e| Error::internal("write the head of a checkpoint").caused_by(e))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(table)?))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(vec![KeyValue::new(CHECKPOINT_KEY.to_owned(), text)]));
        for name in UNIQUE {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), false);
        }
        let schema = schema();
        let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties.build()))
            .map_err(table)?;
        Ok(Self {
            schema,
            writer,
            texts: TEXTS.iter().map(|_| StringBuilder::new()).collect(),
            dates: Date32Builder::new(),
            numbers: NUMBERS.iter().map(|_| Int64Builder::new()).collect(),
            hashes: FixedSizeBinaryBuilder::new(HASH_BYTES),
        })
    }

    pub(super) fn put(&mut self, row: &Row<'_>) -> Result<()> {
        for (column, value) in self.texts.iter_mut().zip(texts(row)) {
            column.append_option(value);
        }
        self.dates.append_option(row.dt.map(BusinessDate::days));
        for (column, value) in self.numbers.iter_mut().zip(numbers(row)?) {
            column.append_option(value);
        }
        match row.hash {
            Some(hash) => self.hashes.append_value(hash).map_err(table)?,
            None => self.hashes.append_null(),
        }
        if self.hashes.len() == BATCH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut columns: Vec<Arc<dyn Array>> = Vec::new();
        for column in &mut self.texts {
            columns.push(Arc::new(column.finish()));
        }
        columns.push(Arc::new(self.dates.finish()));
        for column in &mut self.numbers {
            columns.push(Arc::new(column.finish()));
        }
        columns.push(Arc::new(self.hashes.finish()));
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(table)?;
        self.writer.write(&batch).map_err(table)
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        if self.hashes.len() > 0 {
            self.flush()?;
        }
        self.writer.into_inner().map_err(table)
    }
}

fn table(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::internal("write a checkpoint").caused_by(error)
}

fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::corrupt("it is no Parquet file that can be read").caused_by(error)
}

/// A file whose head was read.
pub(super) struct TableReader {
    builder: ParquetRecordBatchReaderBuilder<Bytes>,
}

impl TableReader {
    pub(super) fn open(bytes: Bytes) -> Result<Self> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(unreadable)?;
        Ok(Self { builder })
    }

    /// The head as JSON, whatever its format.
    pub(super) fn head(&self) -> Result<serde_json::Value> {
        let pairs = self.builder.metadata().file_metadata().key_value_metadata();
        let text = pairs
            .and_then(|pairs| pairs.iter().find(|p| p.key == CHECKPOINT_KEY))
            .and_then(|pair| pair.value.as_deref())
            .ok_or_else(|| Error::corrupt("it has no head"))?;
        serde_json::from_str(text).map_err(|e| Error::corrupt("its head is not JSON").caused_by(e))
    }

    /// Hands every row to `take`.
    pub(super) fn each_row(self, take: &mut dyn FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        if self.builder.schema().fields() != schema().fields() {
            return Err(Error::corrupt("its columns are not those of its format"));
        }
        let batches = self
            .builder
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(unreadable)?;
        for batch in batches {
            let batch = batch.map_err(unreadable)?;
            let columns = Columns::of(&batch)?;
            for at in 0..batch.num_rows() {
                take(&columns.row(at)?)?;
            }
        }
        Ok(())
    }
}

/// The columns of a batch.
struct Columns<'a> {
    texts: Vec<&'a StringArray>,
    dates: &'a PrimitiveArray<Date32Type>,
    numbers: Vec<&'a PrimitiveArray<Int64Type>>,
    hashes: &'a FixedSizeBinaryArray,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        let other = || Error::corrupt("a column has another type than its format says");
        let column = |at: usize| batch.columns().get(at).ok_or_else(other);
        let (first_number, after) = (TEXTS.len() + 1, TEXTS.len() + 1 + NUMBERS.len());
        let texts = (0..TEXTS.len()).map(|at| column(at)?.as_string_opt().ok_or_else(other));
        let numbers =
            (first_number..after).map(|at| column(at)?.as_primitive_opt().ok_or_else(other));
        Ok(Self {
            texts: texts.collect::<Result<_>>()?,
            dates: column(TEXTS.len())?.as_primitive_opt().ok_or_else(other)?,
            numbers: numbers.collect::<Result<_>>()?,
            hashes: column(after)?
                .as_fixed_size_binary_opt()
                .ok_or_else(other)?,
        })
    }

    fn text(&self, column: usize, at: usize) -> Option<&'a str> {
        let column = self.texts.get(column)?;
        (!column.is_null(at)).then(|| column.value(at))
    }

    fn signed(&self, column: usize, at: usize) -> Option<i64> {
        let column = self.numbers.get(column)?;
        (!column.is_null(at)).then(|| column.value(at))
    }

    fn number(&self, column: usize, at: usize) -> Result<Option<u64>> {
        let found = self.signed(column, at).map(u64::try_from).transpose();
        found.map_err(|e| Error::corrupt("a row with a number below 0").caused_by(e))
    }

    fn date(&self, at: usize) -> Result<Option<BusinessDate>> {
        if self.dates.is_null(at) {
            return Ok(None);
        }
        let dt = BusinessDate::from_days(self.dates.value(at));
        dt.map(Some)
            .ok_or_else(|| Error::corrupt("a row with a date beyond the calendar"))
    }

    fn hash(&self, at: usize) -> Option<[u8; 32]> {
        if self.hashes.is_null(at) {
            return None;
        }
        self.hashes.value(at).try_into().ok()
    }

    fn row(&self, at: usize) -> Result<Row<'a>> {
        Ok(Row {
            kind: self.text(0, at).unwrap_or_default(),
            name: self.text(1, at),
            state: self.text(2, at),
            format: self.text(3, at),
            provenance: self.text(4, at),
            load: self.text(5, at),
            rules: self.text(6, at),
            batch: self.text(7, at),
            commit: self.text(8, at),
            attempt: self.text(9, at),
            more: self.text(10, at),
            dt: self.date(at)?,
            schema_version: self.number(0, at)?,
            revision: self.number(1, at)?,
            number: self.number(2, at)?,
            base: self.number(3, at)?,
            sealed: self.number(4, at)?,
            at: self.signed(5, at).map(Instant::from_micros),
            rows: self.number(6, at)?,
            rejected: self.number(7, at)?,
            bytes: self.number(8, at)?,
            hash: self.hash(at),
        })
    }
}
