//! The footers of data files that an engine has read, so that they are read and decoded once.
//!
//! A data file never changes: its footer is known by the hash of its content, whichever query asks and
//! wherever the file lies by then. The least recently used go first when [`LIMIT_BYTES`] are held.

use std::fmt;
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::execution::cache::default_cache::DefaultCache;
use datafusion::execution::cache::{Cache, CacheKey, CacheValue};
use datafusion::parquet::file::metadata::ParquetMetaData;
use lakebed::name::ContentHash;

/// What the decoded footers may hold together.
const LIMIT_BYTES: usize = 64 << 20;

/// Decoded footers by content.
pub(crate) struct Footers {
    known: DefaultCache<Key, Footer>,
}

impl Default for Footers {
    fn default() -> Self {
        Self {
            known: DefaultCache::new(LIMIT_BYTES).with_name("footers of data files"),
        }
    }
}

impl fmt::Debug for Footers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Footers")
            .field("files", &self.known.len())
            .field("bytes", &self.known.memory_used())
            .finish()
    }
}

impl Footers {
    /// The footer of the file with this content, as far as it was read.
    pub(super) fn find(&self, content: &ContentHash) -> Option<Arc<ParquetMetaData>> {
        Some(self.known.get(&Key(content.clone()))?.0)
    }

    /// Keeps a footer.
    pub(super) fn keep(&self, content: &ContentHash, footer: &Arc<ParquetMetaData>) {
        let key = Key(content.clone());
        self.known.put(&key, Footer(Arc::clone(footer)));
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key(ContentHash);

impl CacheKey for Key {
    fn size(&self) -> usize {
        self.0.as_str().len()
    }

    fn table_ref(&self) -> Option<&TableReference> {
        None
    }
}

#[derive(Debug, Clone)]
struct Footer(Arc<ParquetMetaData>);

impl CacheValue for Footer {
    fn size(&self) -> usize {
        self.0.memory_size()
    }
}
