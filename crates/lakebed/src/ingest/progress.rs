//! What a long ingest tells about itself while it runs.

/// Receives progress; called from several threads.
pub trait Progress: Sync {
    /// The call has begun; `total_bytes` as stored on disk, `None` where nobody knows (standard input).
    fn begin(&self, _total_bytes: Option<u64>) {}
    /// Bytes that were read (as stored on disk), rows and rejects that were decoded since the last call.
    fn advance(&self, _bytes: u64, _rows: u64, _rejected: u64) {}
    /// The first, second, ... of several packs is at hand: `what` is done with it, such as "reads".
    fn step(&self, _what: &'static str, _pack: usize, _of: usize) {}
    /// The call has ended, well or not.
    fn end(&self) {}
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
