//! The bytes between the last cut and what was read, with physical line and offset.

use crate::error::{Error, Result};

/// Largest record, document or run of blanks that is held in memory.
pub(super) const MAX_RECORD_BYTES: usize = 1 << 30;

/// Text that was read and not handed on yet.
#[derive(Debug)]
pub(super) struct Window {
    /// The text.
    pub(super) buf: Vec<u8>,
    /// Physical line (from 1) of its first byte.
    pub(super) line: u64,
    /// Offset of its first byte in the unpacked (or decoded) input.
    pub(super) offset: u64,
    /// A buffer that was handed on before and came back: its memory is warm.
    spare: Option<Vec<u8>>,
}

/// A piece cut off the front of a window.
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) line: u64,
    pub(super) offset: u64,
}

/// Line breaks in a text.
pub(super) fn count_lines(text: &[u8]) -> u64 {
    u64::try_from(memchr::memchr_iter(b'\n', text).count()).unwrap_or(u64::MAX)
}

/// A length as an offset.
pub(super) fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl Window {
    pub(super) fn new(offset: u64) -> Self {
        Self {
            buf: Vec::new(),
            line: 1,
            offset,
            spare: None,
        }
    }

    /// The physical line of the byte at `at`.
    pub(super) fn line_at(&self, at: usize) -> u64 {
        self.line + count_lines(&self.buf[..at.min(self.buf.len())])
    }

    /// Takes a buffer for the next cut.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare = Some(buffer);
    }

    /// Cuts the first `at` bytes off; the rest moves to another buffer of about `capacity` bytes.
    pub(super) fn cut(&mut self, at: usize, capacity: usize) -> Piece {
        let mut rest = self.spare.take().unwrap_or_default();
        if at < self.buf.len() {
            rest.reserve(capacity.max(self.buf.len() - at));
            rest.extend_from_slice(&self.buf[at..]);
        }
        self.buf.truncate(at);
        let bytes = std::mem::replace(&mut self.buf, rest);
        let piece = Piece {
            line: self.line,
            offset: self.offset,
            bytes,
        };
        self.line += count_lines(&piece.bytes);
        self.offset += length(at);
        piece
    }

    /// Drops the first `at` bytes.
    pub(super) fn skip(&mut self, at: usize) {
        self.line += count_lines(&self.buf[..at]);
        self.offset += length(at);
        self.buf.drain(..at);
    }

    /// Refuses to grow without end.
    pub(super) fn check_size(&self, what: &str) -> Result<()> {
        if self.buf.len() <= MAX_RECORD_BYTES {
            return Ok(());
        }
        Err(Error::limit(format!(
            "{what} is larger than the limit of {MAX_RECORD_BYTES} bytes"
        ))
        .with("line", self.line))
    }
}
