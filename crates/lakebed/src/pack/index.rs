//! The index of a pack as Parquet: written from the rows of a scan, asked for one capture or all of them.
//!
//! Sorted by URL and time, 8,192 rows a group, with a Bloom filter on the ids that are asked for: a look-up
//! reads one column of the groups that may hold it, and then one row.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, FixedSizeBinaryBuilder, Int32Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
    RowFilter,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::{Error, Result};
use crate::name::{BodyHash, CaptureId, ContentHash, RequestKey};
use crate::spec::{IndexRow, Truncated, pack_index_schema};
use crate::time::Instant;

const GROUP_ROWS: usize = 8192;
/// Key of the footer that says which pack the index is of.
const CONTENT_KEY: &str = "rawpack.content";
/// Columns whose values hardly repeat, with a Bloom filter.
const ASKED: [&str; 2] = ["capture_id", "request_key"];

/// The bytes of the index of these rows, which are in their order.
pub fn write_index(rows: &[IndexRow], content: &ContentHash) -> Result<Vec<u8>> {
    let failed = |e: parquet::errors::ParquetError| {
        Error::internal("write the index of a pack").caused_by(e)
    };
    let level = ZstdLevel::try_new(9).map_err(failed)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by("lakebed rawpack/1".to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            CONTENT_KEY.to_owned(),
            content.as_str().to_owned(),
        )]));
    for column in ASKED {
        let path = ColumnPath::from(column);
        properties = properties
            .set_column_bloom_filter_enabled(path.clone(), true)
            .set_column_dictionary_enabled(path, false);
    }
    let schema = pack_index_schema();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), schema, Some(properties.build())).map_err(failed)?;
    for piece in rows.chunks(GROUP_ROWS) {
        writer.write(&to_batch(piece)?).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// An index that is asked.
#[derive(Debug)]
pub struct PackIndex {
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    name: String,
}

impl PackIndex {
    /// Opens the index in a file.
    ///
    /// # Errors
    /// `CorruptData` where it is none.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes =
            std::fs::read(path).map_err(|e| Error::io("read the index", path.display(), e))?;
        Self::from_bytes(bytes, path.display().to_string())
    }

    /// Opens an index in memory; `name` is what errors call it.
    ///
    /// # Errors
    /// `CorruptData` where it is none.
    pub fn from_bytes(bytes: impl Into<Bytes>, name: String) -> Result<Self> {
        let bytes = bytes.into();
        let options = ArrowReaderOptions::new();
        let metadata =
            ArrowReaderMetadata::load(&bytes, options).map_err(|e| unreadable(&name, e))?;
        if metadata.schema().fields() != pack_index_schema().fields() {
            return Err(Error::corrupt("the file is not the index of a pack")
                .with("file", &name)
                .hint(
                    "the index can be made again from its pack: `lakebed pack verify --reindex`",
                ));
        }
        Ok(Self {
            bytes,
            metadata,
            name,
        })
    }

    /// The identity of the pack it is of; `None` where it does not say.
    #[must_use]
    pub fn content(&self) -> Option<ContentHash> {
        let pairs = self
            .metadata
            .metadata()
            .file_metadata()
            .key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key == CONTENT_KEY)?;
        pair.value.as_ref()?.parse().ok()
    }

    /// How many rows it has.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    fn builder(&self) -> ParquetRecordBatchReaderBuilder<Bytes> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.bytes.clone(),
            self.metadata.clone(),
        )
    }

    /// Its rows in order, read piece by piece.
    ///
    /// # Errors
    /// `CorruptData` where it cannot be read; the items likewise.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<IndexRow>>> {
        let reader = self
            .builder()
            .build()
            .map_err(|e| unreadable(&self.name, e))?;
        let name = self.name.clone();
        Ok(reader.flat_map(move |batch| {
            let rows = batch
                .map_err(|e| unreadable(&name, e))
                .and_then(|batch| from_batch(&batch));
            match rows {
                Ok(rows) => rows.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        }))
    }

    /// The row of a capture; `None` where it is not there.
    pub fn find_capture(&self, id: &CaptureId) -> Result<Option<IndexRow>> {
        Ok(self
            .find_equal("capture_id", &from_hex(id.as_str()))?
            .into_iter()
            .next())
    }

    /// The rows of all captures of a request, in order of URL and time.
    pub fn find_request(&self, key: &RequestKey) -> Result<Vec<IndexRow>> {
        self.find_equal("request_key", &from_hex(key.as_str()))
    }

    fn find_equal(&self, column: &str, value: &[u8]) -> Result<Vec<IndexRow>> {
        let failed = |e| unreadable(&self.name, e);
        let builder = self.builder();
        let schema = builder.parquet_schema();
        let place = pack_index_schema().index_of(column);
        let place = place.map_err(|e| Error::internal("a column of the index").caused_by(e))?;
        let mask = ProjectionMask::leaves(schema, [place]);
        let mut groups = Vec::new();
        for group in 0..builder.metadata().num_row_groups() {
            let filter = builder.get_row_group_column_bloom_filter(group, place);
            // Without its filter a group may hold anything.
            if filter.map_err(failed)?.is_none_or(|f| f.check(value)) {
                groups.push(group);
            }
        }
        let wanted = value.to_vec();
        let predicate = ArrowPredicateFn::new(mask, move |batch: RecordBatch| {
            let ids = batch.column(0).as_fixed_size_binary();
            Ok(BooleanArray::from_iter(
                ids.iter().map(|id| Some(id == Some(&wanted[..]))),
            ))
        });
        let reader = builder
            .with_row_groups(groups)
            .with_row_filter(RowFilter::new(vec![Box::new(predicate)]))
            .build()
            .map_err(failed)?;
        let mut rows = Vec::new();
        for batch in reader {
            let batch = batch.map_err(|e| Error::corrupt("read the index").caused_by(e))?;
            rows.extend(from_batch(&batch)?);
        }
        Ok(rows)
    }
}

fn unreadable(
    name: &str,
    e: impl Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Display,
) -> Error {
    Error::corrupt(format!("read the index of a pack: {e}"))
        .with("file", name)
        .caused_by(e)
        .hint("the index can be made again from its pack: `lakebed pack verify --reindex`")
}

/// The bytes of an id or hash of hex digits.
fn from_hex(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => b - b'0',
        _ => (b | 0x20).wrapping_sub(b'a').wrapping_add(10),
    };
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| (digit(pair[0]) << 4) | digit(pair[1]))
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn truncated_name(truncated: Truncated) -> &'static str {
    match truncated {
        Truncated::None => "none",
        Truncated::Length => "length",
        Truncated::Time => "time",
        Truncated::Disconnect => "disconnect",
    }
}

fn parse_truncated(name: &str) -> Option<Truncated> {
    use Truncated::{Disconnect, Length, None, Time};
    [None, Length, Time, Disconnect]
        .into_iter()
        .find(|t| truncated_name(*t) == name)
}

fn to_batch(rows: &[IndexRow]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        hashes(rows, 16, |r| Some(r.capture_id.as_str()))?,
        hashes(rows, 16, |r| Some(r.request_key.as_str()))?,
        ints(rows, |r| Some(r.attempt))?,
        ints(rows, |r| Some(r.hop))?,
        texts(rows, |r| Some(r.kind.as_str())),
        texts(rows, |r| Some(&r.surt)),
        texts(rows, |r| Some(&r.url)),
        instants(rows),
        ints(rows, |r| r.status.map(u32::from))?,
        texts(rows, |r| r.content_type.as_deref()),
        texts(rows, |r| Some(truncated_name(r.truncated))),
        hashes(rows, 32, |r| r.body_sha256.as_ref().map(BodyHash::as_str))?,
        longs(rows, |r| Some(r.body_len))?,
        flags(rows, |r| r.is_duplicate),
        flags(rows, |r| r.is_named),
        flags(rows, |r| r.is_erased),
        ints(rows, |r| Some(r.frame))?,
        longs(rows, |r| Some(r.frame_offset))?,
        longs(rows, |r| Some(r.frame_len))?,
        ints(rows, |r| Some(r.frame_count))?,
        hashes(rows, 32, |r| Some(r.frame_blake3.as_str()))?,
        longs(rows, |r| Some(r.line_offset))?,
        longs(rows, |r| Some(r.line_len))?,
        longs(rows, |r| r.body_offset)?,
    ];
    RecordBatch::try_new(pack_index_schema(), columns)
        .map_err(|e| Error::internal("make the rows of an index").caused_by(e))
}

fn hashes(
    rows: &[IndexRow],
    width: i32,
    get: impl Fn(&IndexRow) -> Option<&str>,
) -> Result<ArrayRef> {
    let mut builder = FixedSizeBinaryBuilder::new(width);
    for row in rows {
        match get(row) {
            None => builder.append_null(),
            Some(text) => builder
                .append_value(from_hex(text))
                .map_err(|e| Error::internal("an id of another length").caused_by(e))?,
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn texts(rows: &[IndexRow], get: impl Fn(&IndexRow) -> Option<&str>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    for row in rows {
        builder.append_option(get(row));
    }
    Arc::new(builder.finish())
}

fn ints(rows: &[IndexRow], get: impl Fn(&IndexRow) -> Option<u32>) -> Result<ArrayRef> {
    let mut builder = Int32Builder::new();
    for row in rows {
        let value = get(row).map(i32::try_from).transpose();
        builder.append_option(value.map_err(|e| too_large().caused_by(e))?);
    }
    Ok(Arc::new(builder.finish()))
}

fn longs(rows: &[IndexRow], get: impl Fn(&IndexRow) -> Option<u64>) -> Result<ArrayRef> {
    let mut builder = Int64Builder::new();
    for row in rows {
        let value = get(row).map(i64::try_from).transpose();
        builder.append_option(value.map_err(|e| too_large().caused_by(e))?);
    }
    Ok(Arc::new(builder.finish()))
}

fn too_large() -> Error {
    Error::limit("a number that no index holds")
}

fn instants(rows: &[IndexRow]) -> ArrayRef {
    let mut builder = TimestampMicrosecondBuilder::new().with_timezone("UTC");
    for row in rows {
        builder.append_value(row.fetched_at.micros());
    }
    Arc::new(builder.finish())
}

fn flags(rows: &[IndexRow], get: impl Fn(&IndexRow) -> bool) -> ArrayRef {
    let mut builder = BooleanBuilder::new();
    for row in rows {
        builder.append_value(get(row));
    }
    Arc::new(builder.finish())
}

fn from_batch(batch: &RecordBatch) -> Result<Vec<IndexRow>> {
    (0..batch.num_rows())
        .map(|row| read_row(batch, row))
        .collect()
}

fn read_row(batch: &RecordBatch, row: usize) -> Result<IndexRow> {
    let bad = || Error::corrupt("read the index of a pack: a value is none that it has");
    let present = |column: usize| !batch.column(column).is_null(row);
    let hash = |column: usize| to_hex(batch.column(column).as_fixed_size_binary().value(row));
    let text = |column: usize| {
        batch
            .column(column)
            .as_string::<i32>()
            .value(row)
            .to_owned()
    };
    let flag = |column: usize| batch.column(column).as_boolean().value(row);
    let int = |column: usize| {
        let value = batch.column(column).as_primitive::<Int32Type>().value(row);
        u32::try_from(value).map_err(|e| bad().caused_by(e))
    };
    let long = |column: usize| {
        let value = batch.column(column).as_primitive::<Int64Type>().value(row);
        u64::try_from(value).map_err(|e| bad().caused_by(e))
    };
    let instant = batch
        .column(7)
        .as_primitive::<TimestampMicrosecondType>()
        .value(row);
    let status = match present(8) {
        true => Some(u16::try_from(int(8)?).map_err(|e| bad().caused_by(e))?),
        false => None,
    };
    Ok(IndexRow {
        capture_id: hash(0).parse()?,
        request_key: hash(1).parse()?,
        attempt: int(2)?,
        hop: int(3)?,
        kind: text(4).parse()?,
        surt: text(5),
        url: text(6),
        fetched_at: Instant::from_micros(instant),
        status,
        content_type: present(9).then(|| text(9)),
        truncated: parse_truncated(&text(10)).ok_or_else(bad)?,
        body_sha256: present(11).then(|| hash(11).parse()).transpose()?,
        body_len: long(12)?,
        is_duplicate: flag(13),
        is_named: flag(14),
        is_erased: flag(15),
        frame: int(16)?,
        frame_offset: long(17)?,
        frame_len: long(18)?,
        frame_count: int(19)?,
        frame_blake3: hash(20).parse()?,
        line_offset: long(21)?,
        line_len: long(22)?,
        body_offset: present(23).then(|| long(23)).transpose()?,
    })
}
