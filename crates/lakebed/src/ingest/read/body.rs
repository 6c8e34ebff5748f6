//! The records of a text: fill, search, cut.
//!
//! Only new bytes are searched for the place to cut; what follows the cut moves to the next chunk's
//! buffer. Invariant: every byte after the header is in exactly one chunk (brackets and commas
//! between JSON values as blanks), and a chunk ends where a record does.

use std::sync::Arc;

use crate::error::Result;
use crate::ingest::chunk::{Chunk, ChunkBody, CsvHeader};
use crate::ingest::read::csv::CsvSplitter;
use crate::ingest::read::lines::LineSplitter;
use crate::ingest::read::text::TextStream;
use crate::ingest::read::values::ValueSplitter;
use crate::ingest::read::window::Window;

/// Bytes read at a time: small enough to stay in the cache while they are hashed and searched.
pub(super) const FILL_BYTES: usize = 1 << 20;

/// The text of an input from the first record on.
pub(super) struct TextBody {
    pub(super) stream: TextStream,
    /// A document's records, read whole; they are fed from here instead of the stream.
    pub(super) held: Option<Held>,
    pub(super) window: Window,
    /// Up to here the window was searched.
    pub(super) scanned: usize,
    pub(super) splitter: Splitter,
}

/// A document's records.
pub(super) struct Held {
    pub(super) text: Vec<u8>,
    pub(super) at: usize,
    /// Arrays of the document that end with a comma.
    pub(super) trailing_commas: u64,
}

/// Where records end, by form.
pub(super) enum Splitter {
    Lines(LineSplitter),
    Values(ValueSplitter),
    Csv(CsvSplitter, Arc<CsvHeader>),
}

impl TextBody {
    /// The next whole records; `None` at the end.
    pub(super) fn next_chunk(&mut self, input: usize, target: usize) -> Result<Option<Chunk>> {
        loop {
            let cut = self.scan(false)?;
            if cut > 0 && self.window.buf.len() >= target {
                if let Some(chunk) = self.emit(cut, input, target) {
                    return Ok(Some(chunk));
                }
                continue;
            }
            self.check_size()?;
            if !self.fill(target.min(FILL_BYTES))? {
                break;
            }
        }
        self.scan(true)?;
        match &mut self.splitter {
            Splitter::Lines(_) => {}
            Splitter::Values(values) => values.finish(&self.window)?,
            Splitter::Csv(csv, _) => csv.finish(&self.window)?,
        }
        Ok(self.emit(self.window.buf.len(), input, target))
    }

    fn fill(&mut self, want: usize) -> Result<bool> {
        let buf = &mut self.window.buf;
        match &mut self.held {
            None => self.stream.fill(buf, want),
            Some(held) => {
                let end = held.text.len().min(held.at + want);
                buf.extend_from_slice(&held.text[held.at..end]);
                let more = end > held.at;
                held.at = end;
                Ok(more)
            }
        }
    }

    /// Searches what was not searched yet; the position up to which whole records lie.
    fn scan(&mut self, at_end: bool) -> Result<usize> {
        let from = self.scanned;
        self.scanned = self.window.buf.len();
        match &mut self.splitter {
            Splitter::Lines(lines) => Ok(lines.scan(&self.window.buf, from)),
            Splitter::Values(values) => values.scan(&mut self.window, from),
            Splitter::Csv(csv, _) => Ok(csv.scan(&self.window.buf, at_end)),
        }
    }

    /// Cuts a chunk off; `None` where it would hold no record.
    fn emit(&mut self, cut: usize, input: usize, target: usize) -> Option<Chunk> {
        let piece = self
            .window
            .cut(cut, target.saturating_add(FILL_BYTES.min(target)));
        self.scanned = self.scanned.saturating_sub(cut);
        let line = self.window.line;
        let (body, has_records) = match &mut self.splitter {
            Splitter::Lines(lines) => {
                lines.forget(cut);
                let has = !piece.bytes.is_empty();
                (ChunkBody::Lines(piece.bytes), has)
            }
            Splitter::Values(values) => {
                let has = values.forget(cut, line);
                (ChunkBody::Values(piece.bytes), has)
            }
            Splitter::Csv(csv, header) => {
                csv.forget(cut);
                let has = !piece.bytes.is_empty();
                let header = Arc::clone(header);
                (
                    ChunkBody::Csv {
                        bytes: piece.bytes,
                        header,
                    },
                    has,
                )
            }
        };
        has_records.then_some(Chunk {
            input,
            first_line: piece.line,
            offset: piece.offset,
            body,
        })
    }

    fn check_size(&self) -> Result<()> {
        self.window.check_size("record").map_err(|e| {
            let open = match &self.splitter {
                Splitter::Csv(csv, _) => csv.open_line(&self.window),
                Splitter::Lines(_) | Splitter::Values(_) => None,
            };
            match open {
                Some(line) => e.hint(format!(
                    "the quote that opens on line {line} has no partner so far"
                )),
                None => e,
            }
        })
    }
}
