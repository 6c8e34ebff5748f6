//! The bytes of data files, read through the lake's store.
//!
//! A file that is committed but not yet moved to its place, or that a correction moved away after the
//! query was planned, is found through the log: only when the place is empty is it looked for there.
//! Every failure names its file, and [`ReadLog`] knows which files were opened, so that a damaged page
//! found later can be traced to one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::footers::Footers;
use super::views::footer_with_views;
use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::error::DataFusionError;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use lakebed::log::{DatasetState, find_file};
use lakebed::name::{ContentHash, DatasetRef};
use lakebed::spec::PartitionKey;
use lakebed::store::{Lake, StorePath};
use lakebed::{Error, ErrorKind};
use object_store::{OBJECT_STORE_COALESCE_DEFAULT, coalesce_ranges};

/// Bytes between two ranges of a file on this machine that are not worth another read: they are copied meanwhile.
const LOCAL_GAP_BYTES: u64 = 64 * 1024;

/// What the reader must know of a file beyond path and size.
#[derive(Debug, Clone)]
pub(crate) struct FileOrigin {
    /// Its place when the query was planned.
    pub(crate) path: StorePath,
    /// The dataset whose log names it.
    pub(crate) dataset: DatasetRef,
    /// Its partition.
    pub(crate) key: PartitionKey,
    /// BLAKE3 of its bytes.
    pub(crate) blake3: ContentHash,
}

impl FileOrigin {
    /// Where the file lies now, by its log; `None` = nowhere.
    async fn find(&self, lake: &Lake) -> lakebed::Result<Option<StorePath>> {
        let state = DatasetState::load(lake, &self.dataset).await?;
        find_file(lake, &state, &self.key, &self.path.file_name()).await
    }
}

/// The data files that a query opened, and how much of them it read.
#[derive(Debug, Default)]
pub(crate) struct ReadLog {
    opened: Mutex<Vec<FileOrigin>>,
    bytes: AtomicU64,
}

impl ReadLog {
    fn add(&self, file: &FileOrigin) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if !opened.iter().any(|f| f.path == file.path) {
            opened.push(file.clone());
        }
    }

    /// Bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The opened files whose bytes are not those the catalog knows; reads them whole.
    pub(crate) async fn find_damaged(&self, lake: &Lake) -> Vec<StorePath> {
        let store = lake.store();
        let opened = self
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut damaged = Vec::new();
        for file in opened {
            let mut bytes = store.find(&file.path).await.ok().flatten();
            if bytes.is_none()
                && let Ok(Some(place)) = file.find(lake).await
            {
                bytes = store.find(&place).await.ok().flatten();
            }
            if bytes.is_none_or(|b| ContentHash::of(&b) != file.blake3) {
                damaged.push(file.path);
            }
        }
        damaged
    }
}

/// Makes a reader for each planned file.
#[derive(Debug)]
pub(crate) struct LakeReaderFactory {
    lake: Lake,
    log: Arc<ReadLog>,
    footers: Arc<Footers>,
    is_filtered: bool,
}

impl LakeReaderFactory {
    /// Reads from `lake` what `footers` does not know, and writes down in `log` what is opened. Whether
    /// rows are filtered decides how much of a footer is kept.
    pub(crate) fn new(
        lake: Lake,
        log: Arc<ReadLog>,
        footers: Arc<Footers>,
        is_filtered: bool,
    ) -> Self {
        Self {
            lake,
            log,
            footers,
            is_filtered,
        }
    }
}

impl ParquetFileReaderFactory for LakeReaderFactory {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> datafusion::error::Result<Box<dyn AsyncFileReader + Send>> {
        let Some(origin) = file.extension::<FileOrigin>() else {
            return Err(DataFusionError::External(Box::new(Error::internal(
                "a planned file does not say where it lies",
            ))));
        };
        let size_bytes = file.object_meta.size;
        Ok(Box::new(LakeReader {
            bytes: LakeBytes::new(&self.lake, &self.log, origin, size_bytes),
            footers: Arc::clone(&self.footers),
            is_filtered: self.is_filtered,
            hint_bytes: metadata_size_hint,
            metrics: ParquetFileMetrics::new(partition_index, origin.path.as_str(), metrics),
        }))
    }
}

/// The bytes of one data file, wherever it lies now.
pub(crate) struct LakeBytes {
    lake: Lake,
    /// Where the file was found when it was not at its place.
    found: Mutex<Option<StorePath>>,
    log: Arc<ReadLog>,
    origin: FileOrigin,
    size_bytes: u64,
}

struct LakeReader {
    bytes: LakeBytes,
    footers: Arc<Footers>,
    is_filtered: bool,
    hint_bytes: Option<usize>,
    metrics: ParquetFileMetrics,
}

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl LakeReader {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = self.bytes.read(range).await.map_err(external)?;
        self.metrics.bytes_scanned.add(bytes.len());
        Ok(bytes)
    }
}

impl LakeBytes {
    /// A file of `size_bytes` bytes; what is read of it stands in `log`.
    pub(crate) fn new(
        lake: &Lake,
        log: &Arc<ReadLog>,
        origin: &FileOrigin,
        size_bytes: u64,
    ) -> Self {
        Self {
            lake: lake.clone(),
            found: Mutex::new(None),
            log: Arc::clone(log),
            origin: origin.clone(),
            size_bytes,
        }
    }

    /// Its place when the query was planned.
    pub(crate) fn path(&self) -> &StorePath {
        &self.origin.path
    }

    /// Two ranges that are no further apart are read at once.
    fn gap_bytes(&self) -> u64 {
        match self.lake.store().local_path(&self.origin.path) {
            Some(_) => LOCAL_GAP_BYTES,
            None => OBJECT_STORE_COALESCE_DEFAULT,
        }
    }

    /// The bytes of a range, all of them.
    pub(crate) async fn read(&self, range: Range<u64>) -> lakebed::Result<Bytes> {
        self.log.add(&self.origin);
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|e| Error::limit("read a range of a data file").caused_by(e))?;
        let path = &self.origin.path;
        let read = self.read_anywhere(range.start, length).await;
        let bytes = read.map_err(|e| self.name(e))?;
        if bytes.len() < length {
            return Err(
                Error::corrupt("read a data file: it is shorter than the catalog says")
                    .with("file", path)
                    .with("expected_bytes", self.size_bytes)
                    .hint("`lakebed audit --deep` tells which files differ from the log"),
            );
        }
        let read = u64::try_from(length).unwrap_or(u64::MAX);
        self.log.bytes.fetch_add(read, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Reads from its place, or from where its log says that it lies now.
    async fn read_anywhere(&self, offset: u64, length: usize) -> lakebed::Result<Bytes> {
        let store = self.lake.store();
        let known = self
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let first = known.as_ref().unwrap_or(&self.origin.path);
        let mut read = store.read_range(first, offset, length).await;
        // It may move once more between a look and the read.
        for _ in 0..3 {
            if !read
                .as_ref()
                .is_err_and(|e| e.kind() == ErrorKind::NotFound)
            {
                break;
            }
            let Some(place) = self.origin.find(&self.lake).await? else {
                break;
            };
            read = store.read_range(&place, offset, length).await;
            *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        }
        read
    }

    fn name(&self, e: Error) -> Error {
        if e.kind() != ErrorKind::NotFound {
            return e;
        }
        Error::corrupt("read a data file: the catalog knows it, but it is not in the lake")
            .with("file", &self.origin.path)
            .hint("`lakebed audit` tells what is missing and what repair would do")
            .caused_by(e)
    }
}

impl AsyncFileReader for LakeReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move { self.read(range).await }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move {
            let this = &*self;
            let gap_bytes = this.bytes.gap_bytes();
            coalesce_ranges(&ranges, |range| this.read(range), gap_bytes).await
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        self.footer(options).boxed()
    }
}

/// How much of the page index is read with a footer.
#[derive(Debug, Clone, Copy)]
struct IndexPolicy {
    columns: PageIndexPolicy,
    offsets: PageIndexPolicy,
}

impl IndexPolicy {
    /// What the engine asks for.
    fn asked(options: Option<&ArrowReaderOptions>) -> Self {
        Self {
            columns: options.map_or(PageIndexPolicy::Skip, |o| o.column_index_policy()),
            offsets: options.map_or(PageIndexPolicy::Skip, |o| o.offset_index_policy()),
        }
    }

    /// All there is.
    const WHOLE: Self = Self {
        columns: PageIndexPolicy::Optional,
        offsets: PageIndexPolicy::Optional,
    };

    /// Whether the reader can do without the page index, or has it.
    fn is_met(self, footer: &ParquetMetaData) -> bool {
        let asked = self.columns != PageIndexPolicy::Skip || self.offsets != PageIndexPolicy::Skip;
        !asked || (footer.column_index().is_some() && footer.offset_index().is_some())
    }
}

/// Whether the file of the footer has a page index that a reader takes.
fn has_index(footer: &ParquetMetaData) -> bool {
    let groups = footer.row_groups().iter();
    footer.offset_index().is_some()
        || groups
            .flat_map(|group| group.columns())
            .all(|column| column.offset_index_offset().is_some())
}

impl LakeReader {
    /// The file's footer, read where it is not known yet.
    ///
    /// The engine reads the page index itself, where it needs one, and forgets it. Where rows of a file are
    /// filtered not for the first time, it is kept with the footer.
    async fn footer(
        &mut self,
        options: Option<&ArrowReaderOptions>,
    ) -> Result<Arc<ParquetMetaData>> {
        let content = self.bytes.origin.blake3.clone();
        let known = self.footers.find(&content);
        let wanted = match &known {
            Some(known) if self.is_filtered && has_index(known) => IndexPolicy::WHOLE,
            _ => IndexPolicy::asked(options),
        };
        if let Some(known) = known.as_ref().filter(|known| wanted.is_met(known)) {
            // The file was opened: damage found later is looked for in it too.
            self.bytes.log.add(&self.bytes.origin);
            return Ok(Arc::clone(known));
        }
        let footer = Arc::new(self.read_footer(known, wanted).await?);
        self.footers.keep(&content, &footer);
        Ok(footer)
    }

    /// Reads the footer, or what `known` lacks of it.
    async fn read_footer(
        &mut self,
        known: Option<Arc<ParquetMetaData>>,
        wanted: IndexPolicy,
    ) -> Result<ParquetMetaData> {
        let (size, path) = (self.bytes.size_bytes, self.bytes.path().clone());
        let mut reader = match known {
            Some(known) => ParquetMetaDataReader::new_with_metadata(Arc::unwrap_or_clone(known)),
            None => ParquetMetaDataReader::new(),
        }
        .with_prefetch_hint(self.hint_bytes)
        .with_column_index_policy(wanted.columns)
        .with_offset_index_policy(wanted.offsets);
        let read = match reader.has_metadata() {
            true => match reader.load_page_index(self).await {
                Ok(()) => reader.finish(),
                Err(e) => Err(e),
            },
            false => reader
                .load_and_finish(self, size)
                .await
                .and_then(footer_with_views),
        };
        read.map_err(|e| match e {
            ParquetError::External(_) => e,
            other => external(
                Error::corrupt(format!("read the footer of a data file: {other}"))
                    .with("file", path)
                    .hint("`lakebed audit --deep` tells which files differ from the log")
                    .caused_by(other),
            ),
        })
    }
}
