//! Row groups and data files: encoded by workers, appended in order by one thread.
//!
//! ```text
//! worker: batches -> ArrowColumnWriters -> EncodedGroup      (CPU: encoding, zstd)
//! appender: EncodedGroup in order -> StageFile               (one file, hashed on the way)
//! ```
//!
//! ING-4: the bytes of a file depend on its rows, their grouping and this program alone, never on the
//! number of threads. What is sampled to choose encodings is the first group, in order.
//! ING-7: no footer or page index holds a value of a personal field, of what is inside it, or of
//! `_extra` beside it.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use crate::error::{Error, Result};
use crate::ingest::encodings::{LEVEL, LeafChoice, choose_leaves};
use crate::name::ContentHash;
use crate::spec::{FieldSpec, FieldType};
use crate::store::{StageFile, Store, StorePath};

/// What stands in `created_by` of every data file: name, version and a build word, as readers expect.
const CREATED_BY: &str = concat!(
    "lakebed version ",
    env!("CARGO_PKG_VERSION"),
    " (build release)"
);
/// Data pages are small, so that a point lookup reads little.
const PAGE_BYTES: usize = 128 * 1024;
const PAGE_ROWS: usize = 8192;
/// Rows that are encoded on trial, and bytes of each column of a batch of them.
const TRIAL_ROWS: usize = 4096;
const TRIAL_BYTES: usize = 1 << 20;
/// Fewer rows do not tell how well a column compresses.
const MIN_TRIAL_ROWS: usize = 1024;
/// Nor do fewer bytes: a column that is nearly empty may be full later on.
const MIN_TRIAL_BYTES: i64 = 512;
/// Hundredths of a column's bytes that zstd must save.
const WORTH_PERCENT: i64 = 5;

/// A row group ready to be appended.
pub(super) struct EncodedGroup {
    chunks: Vec<ArrowColumnChunk>,
    /// Rows.
    pub(super) rows: u64,
}

fn parquet_error(action: &str, e: ParquetError) -> Error {
    // A full disk arrives as an external error; its own words and kind must not be lost.
    if let ParquetError::External(source) = e {
        return match source.downcast::<io::Error>() {
            Ok(io) => Error::io(action, "the staged file", *io),
            Err(other) => Error::internal(format!("{action}: {other}")),
        };
    }
    Error::internal(format!("{action}: {e}"))
}

/// Encodes row groups; shared by all workers.
#[derive(Clone)]
pub(super) struct GroupEncoder {
    schema: SchemaRef,
    factory: Arc<ArrowRowGroupWriterFactory>,
    properties: WriterPropertiesPtr,
    descriptor: Arc<SchemaDescriptor>,
}

impl GroupEncoder {
    /// Chooses encodings by a sample (the first rows in order) and prepares the writers;
    /// `schema` = the columns of `fields`.
    pub(super) fn new(
        schema: SchemaRef,
        fields: &[FieldSpec],
        sample: &[RecordBatch],
    ) -> Result<Self> {
        let descriptor = ArrowSchemaConverter::new()
            .convert(&schema)
            .map_err(|e| parquet_error("turn the schema into a Parquet schema", e))?;
        let descriptor = Arc::new(descriptor);
        let chosen = choose_properties(&descriptor, &schema, fields, sample);
        let rows: usize = sample.iter().map(RecordBatch::num_rows).sum();
        if rows < MIN_TRIAL_ROWS {
            return Self::with_properties(schema, descriptor, chosen);
        }
        let trial =
            Self::with_properties(Arc::clone(&schema), Arc::clone(&descriptor), chosen.clone())?;
        let mut builder = chosen.into_builder();
        for (column, stays) in descriptor.columns().iter().zip(trial.stay_large(sample)?) {
            if stays {
                let path = ColumnPath::new(column.path().parts().to_vec());
                builder = builder.set_column_compression(path, Compression::UNCOMPRESSED);
            }
        }
        Self::with_properties(schema, descriptor, builder.build())
    }

    fn with_properties(
        schema: SchemaRef,
        descriptor: Arc<SchemaDescriptor>,
        properties: WriterProperties,
    ) -> Result<Self> {
        let properties = Arc::new(properties);
        let nowhere = SerializedFileWriter::new(
            io::sink(),
            descriptor.root_schema_ptr(),
            Arc::clone(&properties),
        )
        .map_err(|e| parquet_error("prepare the Parquet writer", e))?;
        let factory = Arc::new(ArrowRowGroupWriterFactory::new(
            &nowhere,
            Arc::clone(&schema),
        ));
        Ok(Self {
            schema,
            factory,
            properties,
            descriptor,
        })
    }

    /// Whether zstd saves hardly a byte of each leaf column: packed numbers, mostly. Whoever reads one has nothing
    /// to decompress.
    fn stay_large(&self, sample: &[RecordBatch]) -> Result<Vec<bool>> {
        let mut group = self.open()?;
        let mut wanted = TRIAL_ROWS;
        for batch in sample {
            if wanted == 0 {
                break;
            }
            let rows = wanted.min(batch.num_rows());
            group.write_part(&batch.slice(0, rows), first_bytes)?;
            wanted -= rows;
        }
        let chunks = group.close()?.chunks;
        let sizes = chunks.iter().map(|chunk| &chunk.close().metadata);
        Ok(sizes
            .map(|chunk| {
                let (plain, packed) = (chunk.uncompressed_size(), chunk.compressed_size());
                plain >= MIN_TRIAL_BYTES && packed * 100 > plain * (100 - WORTH_PERCENT)
            })
            .collect())
    }

    /// Begins a row group.
    pub(super) fn open(&self) -> Result<OpenGroup> {
        let writers = self.factory.create_column_writers(0);
        Ok(OpenGroup {
            schema: Arc::clone(&self.schema),
            writers: writers.map_err(cannot_encode)?,
            rows: 0,
        })
    }
}

/// A row group that rows are still added to: of what it was given it holds encoded pages alone.
pub(super) struct OpenGroup {
    schema: SchemaRef,
    writers: Vec<ArrowColumnWriter>,
    rows: u64,
}

fn cannot_encode(e: ParquetError) -> Error {
    parquet_error("encode the rows as Parquet", e)
}

impl OpenGroup {
    /// Adds rows at its end.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_part(batch, Arc::clone)
    }

    /// Adds a part of each column, such as all of it.
    fn write_part(
        &mut self,
        batch: &RecordBatch,
        part: impl Fn(&ArrayRef) -> ArrayRef,
    ) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut leaf = self.writers.iter_mut();
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            for leaves in compute_leaves(field, &part(column)).map_err(cannot_encode)? {
                let writer = leaf
                    .next()
                    .ok_or_else(|| Error::internal("there are more leaf columns than writers"))?;
                writer.write(&leaves).map_err(cannot_encode)?;
            }
        }
        Ok(())
    }

    /// Ends it.
    pub(super) fn close(self) -> Result<EncodedGroup> {
        let chunks = self.writers.into_iter();
        Ok(EncodedGroup {
            chunks: chunks
                .map(|writer| writer.close().map_err(cannot_encode))
                .collect::<Result<_>>()?,
            rows: self.rows,
        })
    }
}

/// The first rows of a column, as many as [`TRIAL_BYTES`] hold.
fn first_bytes(column: &ArrayRef) -> ArrayRef {
    let size = column.to_data().get_slice_memory_size();
    let size = size.unwrap_or_else(|_| column.get_array_memory_size());
    let rows = column.len().saturating_mul(TRIAL_BYTES) / size.max(1);
    column.slice(0, rows.clamp(1, column.len().max(1)).min(column.len()))
}

/// Bytes on their way into a stage file, counted and hashed.
struct HashingFile {
    inner: Box<dyn StageFile>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Write for HashingFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.hasher.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl HashingFile {
    fn create(store: &dyn Store, path: &StorePath) -> Result<Self> {
        Ok(Self {
            inner: store.create_stage_file(path)?,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        })
    }

    fn finish(self, path: StorePath, rows: u64) -> Result<StagedFile> {
        self.inner.finish()?;
        Ok(StagedFile {
            path,
            rows,
            bytes: self.bytes,
            blake3: ContentHash::finish(&self.hasher),
        })
    }
}

/// A durable file in the stage, not yet named by any record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StagedFile {
    /// Where it lies now.
    pub(super) path: StorePath,
    /// Rows, or rejected records.
    pub(super) rows: u64,
    /// Bytes.
    pub(super) bytes: u64,
    /// BLAKE3 of its bytes.
    pub(super) blake3: ContentHash,
}

/// A data file being written.
pub(super) struct DataFileWriter {
    writer: SerializedFileWriter<HashingFile>,
    path: StorePath,
    rows: u64,
}

impl DataFileWriter {
    /// Begins the file at `path`, which must lie in the stage.
    pub(super) fn create(
        store: &dyn Store,
        path: StorePath,
        encoder: &GroupEncoder,
    ) -> Result<Self> {
        Self::begin_at(HashingFile::create(store, &path)?, path, encoder)
    }

    /// Begins a file that is no file of the stage.
    pub(super) fn begin(file: Box<dyn StageFile>, encoder: &GroupEncoder) -> Result<Self> {
        let file = HashingFile {
            inner: file,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        };
        Self::begin_at(file, StorePath::new("loose")?, encoder)
    }

    fn begin_at(file: HashingFile, path: StorePath, encoder: &GroupEncoder) -> Result<Self> {
        let schema = encoder.descriptor.root_schema_ptr();
        let writer = SerializedFileWriter::new(file, schema, Arc::clone(&encoder.properties))
            .map_err(|e| parquet_error("begin the Parquet file", e))?;
        Ok(Self {
            writer,
            path,
            rows: 0,
        })
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> usize {
        self.writer.bytes_written()
    }

    /// Appends a row group; an empty one is left out.
    pub(super) fn append(&mut self, group: EncodedGroup) -> Result<()> {
        if group.rows == 0 {
            return Ok(());
        }
        let fail = |e| parquet_error("write the Parquet file", e);
        let mut out = self.writer.next_row_group().map_err(fail)?;
        for chunk in group.chunks {
            chunk.append_to_row_group(&mut out).map_err(fail)?;
        }
        out.close().map_err(fail)?;
        self.rows += group.rows;
        Ok(())
    }

    /// Writes the footer and makes the file durable.
    pub(super) fn finish(self) -> Result<StagedFile> {
        let file = self
            .writer
            .into_inner()
            .map_err(|e| parquet_error("finish the Parquet file", e))?;
        file.finish(self.path, self.rows)
    }
}

/// A file of JSON lines in zstd being written (rejects, and data that is no table).
pub(super) struct LinesFileWriter {
    encoder: zstd::Encoder<'static, HashingFile>,
    path: StorePath,
    rows: u64,
}

impl LinesFileWriter {
    /// Begins the file at `path`, which must lie in the stage.
    pub(super) fn create(store: &dyn Store, path: StorePath) -> Result<Self> {
        let file = HashingFile::create(store, &path)?;
        let encoder =
            zstd::Encoder::new(file, 3).map_err(|e| Error::io("begin the file", &path, e))?;
        Ok(Self {
            encoder,
            path,
            rows: 0,
        })
    }

    /// As [`LinesFileWriter::create`], with zstd's own checksum at the end: a data file, which others
    /// read without the log at hand.
    pub(super) fn create_checked(store: &dyn Store, path: StorePath) -> Result<Self> {
        let mut writer = Self::create(store, path)?;
        writer
            .encoder
            .include_checksum(true)
            .map_err(|e| Error::io("begin the file", &writer.path, e))?;
        Ok(writer)
    }

    /// Bytes written so far; those that the encoder still holds are not counted.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.encoder.get_ref().bytes).unwrap_or(usize::MAX)
    }

    /// Appends whole lines.
    pub(super) fn append_lines(&mut self, lines: &[u8], rows: u64) -> Result<()> {
        self.encoder
            .write_all(lines)
            .map_err(|e| Error::io("write the file", &self.path, e))?;
        self.rows += rows;
        Ok(())
    }

    /// Appends one line.
    pub(super) fn append(&mut self, line: &impl serde::Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(line)
            .map_err(|e| Error::internal("write a line as JSON").caused_by(e))?;
        bytes.push(b'\n');
        self.encoder
            .write_all(&bytes)
            .map_err(|e| Error::io("write the file", &self.path, e))?;
        self.rows += 1;
        Ok(())
    }

    /// Ends the zstd frame and makes the file durable.
    pub(super) fn finish(self) -> Result<StagedFile> {
        let file = self
            .encoder
            .finish()
            .map_err(|e| Error::io("finish the file", &self.path, e))?;
        file.finish(self.path, self.rows)
    }
}

fn choose_properties(
    descriptor: &SchemaDescriptor,
    schema: &SchemaRef,
    fields: &[FieldSpec],
    sample: &[RecordBatch],
) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(zstd(LEVEL))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_truncate_length(Some(64))
        .set_max_row_group_row_count(Some(usize::MAX));
    let choices = choose_leaves(schema, sample);
    let personal = personal_leaves(fields);
    for ((column, choice), personal) in descriptor.columns().iter().zip(choices).zip(personal) {
        let path = ColumnPath::new(column.path().parts().to_vec());
        if personal {
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        if let LeafChoice::Encoded { encoding, level } = choice {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), encoding)
                .set_column_compression(path, zstd(level));
        }
    }
    builder.build()
}

fn zstd(level: i32) -> Compression {
    Compression::ZSTD(ZstdLevel::try_new(level).unwrap_or_default())
}

/// Whether each leaf column may hold personal values, in the order Parquet counts leaves.
fn personal_leaves(fields: &[FieldSpec]) -> Vec<bool> {
    let mut leaves = Vec::new();
    for field in fields {
        push_personal(field, &field.field_type, field.is_personal(), &mut leaves);
    }
    // Unknown members of a personal struct are kept in `_extra`.
    let any = leaves.contains(&true) || fields.iter().any(FieldSpec::is_personal);
    leaves.extend([false, any]);
    leaves
}

fn push_personal(field: &FieldSpec, of: &FieldType, personal: bool, into: &mut Vec<bool>) {
    match of {
        FieldType::List(element) => push_personal(field, element, personal, into),
        FieldType::Map(value) => {
            into.push(personal);
            push_personal(field, value, personal, into);
        }
        FieldType::Struct => {
            for member in &field.fields {
                let personal = personal || member.is_personal();
                push_personal(member, &member.field_type, personal, into);
            }
        }
        FieldType::String
        | FieldType::Int
        | FieldType::Float
        | FieldType::Bool
        | FieldType::Decimal { .. }
        | FieldType::Date
        | FieldType::Timestamp
        | FieldType::Enum
        | FieldType::Json
        | FieldType::Bytes => into.push(personal),
    }
}

#[cfg(test)]
mod tests;
