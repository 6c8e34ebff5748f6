//! JSON lines in zstd as a scan's source: one column of whole lines.
//!
//! ```text
//! pieces of the file (through the lake's store) -> zstd -> lines -> batches of `json`
//! ```
//!
//! Memory is bounded by a piece, a batch of [`BATCH_BYTES`] and the longest line. A file is one zstd
//! frame, so it is read from its beginning by one worker; several files go to several workers.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::StreamExt;
use futures::stream::try_unfold;
use lakebed::Error;
use lakebed::store::Lake;
use object_store::ObjectStore;
use zstd::stream::raw::{Decoder, Operation};

use super::reader::{FileOrigin, LakeBytes, ReadLog};

/// Bytes of a file read at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of text unpacked at once.
const UNPACK_BYTES: usize = 256 << 10;
/// A batch is ended when its texts are as long as this.
const BATCH_BYTES: usize = 8 << 20;

/// The source of a scan over files of JSON lines.
#[derive(Clone)]
pub(crate) struct LinesSource {
    lake: Lake,
    log: Arc<ReadLog>,
    schema: TableSchema,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
    projection: SplitProjection,
}

impl LinesSource {
    /// A source that reads from `lake` and writes down in `log` what is opened.
    pub(crate) fn new(lake: Lake, log: Arc<ReadLog>, schema: TableSchema) -> Self {
        Self {
            lake,
            log,
            projection: SplitProjection::unprojected(&schema),
            schema,
            batch_rows: 8192,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl FileSource for LinesSource {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        _: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let file_schema = self.schema.file_schema();
        let opener = Arc::new(LinesOpener {
            lake: self.lake.clone(),
            log: Arc::clone(&self.log),
            schema: Arc::new(file_schema.project(&self.projection.file_indices)?),
            batch_rows: self.batch_rows,
        });
        ProjectionOpener::try_new(self.projection.clone(), opener, file_schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self {
            batch_rows: batch_size,
            ..self.clone()
        })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "jsonl"
    }

    /// A range of a zstd frame has no lines of its own.
    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(Some(Arc::new(Self {
            projection: SplitProjection::new(self.schema.file_schema(), &merged),
            ..self.clone()
        })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut next = TreeNodeRecursion::Continue;
        for projected in self.projection.source.iter() {
            next = f(&projected.expr)?;
            if next == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(next)
    }
}

struct LinesOpener {
    lake: Lake,
    log: Arc<ReadLog>,
    /// The column of lines, or no column where only their number is wanted.
    schema: SchemaRef,
    batch_rows: usize,
}

impl FileOpener for LinesOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let Some(origin) = file.extension::<FileOrigin>() else {
            return Err(external(Error::internal(
                "a planned file does not say where it lies",
            )));
        };
        let size = file.object_meta.size;
        let bytes = LakeBytes::new(&self.lake, &self.log, origin, size);
        let lines = Lines::open(bytes, size).map_err(external)?;
        let (schema, rows) = (Arc::clone(&self.schema), self.batch_rows);
        let stream = try_unfold(lines, move |mut lines| {
            let schema = Arc::clone(&schema);
            async move {
                let batch = lines.next_batch(&schema, rows).await.map_err(external)?;
                Ok(batch.map(|batch| (batch, lines)))
            }
        });
        Ok(Box::pin(async move { Ok(stream.boxed()) }))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The lines of one file, from its beginning to its end.
struct Lines {
    bytes: LakeBytes,
    size: u64,
    /// Bytes of the file that were read.
    read: u64,
    piece: Bytes,
    decoder: Decoder<'static>,
    /// The frame was read to its end.
    whole: bool,
    /// Unpacked text from the first line on that is not in a batch.
    text: Vec<u8>,
    /// Where in it the next line begins.
    begin: usize,
    /// Lines so far.
    line: u64,
}

impl Lines {
    fn open(bytes: LakeBytes, size: u64) -> lakebed::Result<Self> {
        let decoder = Decoder::new().map_err(|e| Error::internal("prepare zstd").caused_by(e))?;
        Ok(Self {
            bytes,
            size,
            read: 0,
            piece: Bytes::new(),
            decoder,
            whole: false,
            text: Vec::new(),
            begin: 0,
            line: 0,
        })
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corrupt(format!("read a data file: {what}"))
            .with("file", self.bytes.path())
            .with("line", self.line + 1)
            .hint("`lakebed audit --deep` tells which files differ from the log")
    }

    /// The next lines; `None` at the end.
    async fn next_batch(
        &mut self,
        schema: &SchemaRef,
        rows: usize,
    ) -> lakebed::Result<Option<RecordBatch>> {
        let wants_text = !schema.fields().is_empty();
        let (mut texts, mut count, mut length) = (StringBuilder::new(), 0, 0);
        while count < rows && length < BATCH_BYTES {
            let Some(end) = self.find_end().await? else {
                break;
            };
            if wants_text {
                let line = self.text.get(self.begin..end).unwrap_or_default();
                let line = std::str::from_utf8(line)
                    .map_err(|e| self.damaged("a line is not UTF-8").caused_by(e))?;
                texts.append_value(line);
            }
            length += end - self.begin;
            count += 1;
            self.line += 1;
            self.begin = end + 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = match wants_text {
            true => vec![Arc::new(texts.finish())],
            false => Vec::new(),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
            .map(Some)
            .map_err(|e| Error::internal("make a batch of lines").caused_by(e))
    }

    /// Where the line that begins at `begin` ends; `None` where there is none any more.
    async fn find_end(&mut self) -> lakebed::Result<Option<usize>> {
        let mut seen = self.begin;
        loop {
            let fresh = self.text.get(seen..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                return Ok(Some(seen + at));
            }
            // What is in batches goes before the rest grows.
            self.text.drain(..self.begin);
            self.begin = 0;
            seen = self.text.len();
            if !self.unpack().await? {
                return match self.text.is_empty() {
                    true => Ok(None),
                    false => Err(self.damaged("its last line has no end")),
                };
            }
        }
    }

    /// Unpacks some more text; `false` at the end of the file.
    async fn unpack(&mut self) -> lakebed::Result<bool> {
        if self.piece.is_empty() && self.read < self.size {
            let end = (self.read + PIECE_BYTES).min(self.size);
            self.piece = self.bytes.read(self.read..end).await?;
            self.read = end;
        }
        let before = self.text.len();
        self.text.resize(before + UNPACK_BYTES, 0);
        let Some(room) = self.text.get_mut(before..) else {
            return Ok(false);
        };
        let run = self.decoder.run_on_buffers(&self.piece, room);
        let status = run.map_err(|e| {
            self.damaged("it is no zstd frame, or a byte of it has changed")
                .caused_by(e)
        })?;
        self.text.truncate(before + status.bytes_written);
        drop(self.piece.split_to(status.bytes_read));
        let stuck = status.bytes_read == 0 && status.bytes_written == 0;
        if !stuck {
            self.whole = status.remaining == 0;
        } else if self.read == self.size {
            return match self.whole || self.size == 0 {
                true => Ok(false),
                false => Err(self.damaged("it ends within its zstd frame")),
            };
        }
        Ok(true)
    }
}
