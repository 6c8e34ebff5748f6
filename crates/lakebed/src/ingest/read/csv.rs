//! CSV: where records end, and what the header says.
//!
//! A quote opens only as the first byte of a cell; elsewhere it is data. Inside quotes a doubled quote
//! is one quote, and line breaks belong to the cell. A record ends at a line feed outside quotes; a
//! carriage return before it belongs to the line break, any other is data.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::chunk::CsvHeader;
use crate::ingest::read::window::{Window, length};

/// Finds the last line break outside quotes.
#[derive(Debug)]
pub(super) struct CsvSplitter {
    delimiter: u8,
    quote: u8,
    /// Up to here the window was looked at.
    at: usize,
    /// Where the open quote stands, if one is open.
    open: Option<usize>,
    /// Whether `at` is the start of a cell.
    cell_start: bool,
    /// After the last line break outside quotes.
    cut: usize,
}

impl CsvSplitter {
    pub(super) fn new(delimiter: u8, quote: u8) -> Self {
        Self {
            delimiter,
            quote,
            at: 0,
            open: None,
            cell_start: true,
            cut: 0,
        }
    }

    /// Looks at what was read; the position up to which whole records lie.
    ///
    /// A quote that is the last byte of the window is looked at again when more has come, because
    /// the next byte decides whether it closes.
    pub(super) fn scan(&mut self, buf: &[u8], at_end: bool) -> usize {
        while self.at < buf.len() {
            if self.open.is_some() {
                if !self.inside(buf, at_end) {
                    break;
                }
            } else {
                self.outside(buf);
            }
        }
        self.cut
    }

    /// Whether it got on.
    fn inside(&mut self, buf: &[u8], at_end: bool) -> bool {
        let Some(i) = memchr::memchr(self.quote, &buf[self.at..]) else {
            self.at = buf.len();
            return false;
        };
        let quote = self.at + i;
        self.at = quote;
        match buf.get(quote + 1) {
            Some(&next) if next == self.quote => self.at = quote + 2,
            None if !at_end => return false,
            Some(_) | None => {
                self.open = None;
                self.cell_start = false;
                self.at = quote + 1;
            }
        }
        true
    }

    fn outside(&mut self, buf: &[u8]) {
        let from = self.at;
        let mut search = from;
        let end = loop {
            let Some(i) = memchr::memchr(self.quote, &buf[search..]) else {
                break buf.len();
            };
            let quote = search + i;
            let opens = if quote == from {
                self.cell_start
            } else {
                self.starts_cell(buf[quote - 1])
            };
            if opens {
                self.open = Some(quote);
                break quote;
            }
            search = quote + 1;
        };
        if let Some(i) = memchr::memrchr(b'\n', &buf[from..end]) {
            self.cut = from + i + 1;
        }
        if self.open.is_some() {
            self.at = end + 1;
        } else {
            self.at = end;
            self.cell_start = end > from && self.starts_cell(buf[end - 1]);
        }
    }

    fn starts_cell(&self, before: u8) -> bool {
        before == self.delimiter || before == b'\n'
    }

    /// The first `at` bytes were handed on.
    pub(super) fn forget(&mut self, at: usize) {
        self.at = self.at.saturating_sub(at);
        self.cut = self.cut.saturating_sub(at);
        self.open = self.open.map(|open| open.saturating_sub(at));
    }

    /// The input has ended.
    pub(super) fn finish(&self, window: &Window) -> Result<()> {
        match self.open {
            None => Ok(()),
            Some(open) => Err(unclosed(window.line_at(open))),
        }
    }

    /// The line on which the open quote stands, for the error of a record that grows too large.
    pub(super) fn open_line(&self, window: &Window) -> Option<u64> {
        self.open.map(|open| window.line_at(open))
    }
}

fn unclosed(line: u64) -> Error {
    Error::corrupt("quoted cell is not closed before the input ends")
        .with("line", line)
        .hint("the quote that opens on that line has no partner: the file may be truncated, or quotes are not doubled; if quotes mean nothing in this file, declare another `quote`")
}

/// A cell with its quotes resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::ingest) struct CsvCell {
    pub(in crate::ingest) text: Vec<u8>,
    pub(in crate::ingest) is_quoted: bool,
}

/// The cells of a record; its line break, if it has one, is no part of the last.
pub(in crate::ingest) fn split_cells(record: &[u8], delimiter: u8, quote: u8) -> Vec<CsvCell> {
    let record = record
        .strip_suffix(b"\n")
        .map_or(record, |r| r.strip_suffix(b"\r").unwrap_or(r));
    let mut cells = Vec::new();
    let mut cell = CsvCell::default();
    let mut fresh = true;
    let mut quoted = false;
    let mut bytes = record.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if quoted {
            if byte != quote {
                cell.text.push(byte);
            } else if bytes.next_if_eq(&quote).is_some() {
                cell.text.push(quote);
            } else {
                quoted = false;
            }
        } else if byte == delimiter {
            cells.push(std::mem::take(&mut cell));
            fresh = true;
            continue;
        } else if fresh && byte == quote {
            quoted = true;
            cell.is_quoted = true;
        } else {
            cell.text.push(byte);
        }
        fresh = false;
    }
    cells.push(cell);
    cells
}

/// The records of a chunk, line breaks included, blank ones too.
pub(in crate::ingest) fn csv_records(
    bytes: &[u8],
    delimiter: u8,
    quote: u8,
) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = first_record_end(rest, delimiter, quote).unwrap_or(rest.len());
        let (record, after) = rest.split_at(end);
        rest = after;
        Some(record)
    })
}

/// A header with what is worth saying about it.
#[derive(Debug)]
pub(super) struct HeaderFound {
    pub(super) header: Arc<CsvHeader>,
    pub(super) hints: Vec<String>,
}

/// A header that was declared.
pub(super) fn declared_header(names: &[String], delimiter: u8, quote: u8) -> HeaderFound {
    HeaderFound {
        header: Arc::new(CsvHeader {
            names: names.to_vec(),
            delimiter,
            quote,
            from_file: false,
        }),
        hints: Vec::new(),
    }
}

/// Reads the header from its record, which begins at the window's line and offset.
pub(super) fn header_of(
    record: &[u8],
    window: &Window,
    delimiter: u8,
    quote: u8,
) -> Result<HeaderFound> {
    if let Err(e) = std::str::from_utf8(record) {
        let offset = window.offset + length(e.valid_up_to());
        return Err(Error::corrupt(format!(
            "bytes at offset `{offset}`, in the header, are no text in `UTF-8`"
        ))
        .with("line", window.line_at(e.valid_up_to()))
        .with("offset", offset)
        .hint("if the file is in another encoding, declare it with --encoding or `encoding` of [input]"));
    }
    let cells = split_cells(record, delimiter, quote);
    if cells
        .iter()
        .any(|c| !c.is_quoted && c.text.contains(&b'\r'))
    {
        return Err(Error::corrupt("header has a carriage return that is no line break")
            .with("line", window.line)
            .hint("lines must end in a line feed: convert the file, for example with `tr '\\r' '\\n'`"));
    }
    let names: Vec<String> = cells
        .into_iter()
        .map(|cell| String::from_utf8_lossy(&cell.text).into_owned())
        .collect();
    for (i, name) in names.iter().enumerate() {
        if let Some(first) = names[..i].iter().position(|n| n == name) {
            return Err(Error::corrupt(format!(
                "header names the column `{name}` twice, in columns {} and {}",
                first + 1,
                i + 1
            ))
            .with("line", window.line)
            .hint("give the columns different names, or declare `header` in [input] after taking the header line off"));
        }
    }
    let hints = header_hints(&names, delimiter);
    Ok(HeaderFound {
        header: Arc::new(CsvHeader {
            names,
            delimiter,
            quote,
            from_file: true,
        }),
        hints,
    })
}

fn header_hints(names: &[String], delimiter: u8) -> Vec<String> {
    let mut hints = Vec::new();
    if let [only] = names {
        for (mark, shown) in [(';', ";"), ('\t', "\\t"), (',', ","), ('|', "|")] {
            if only.contains(mark) && char::from(delimiter) != mark {
                hints.push(format!(
                    "the header is one cell that contains `{shown}`: if that is the delimiter, declare it with --delimiter '{shown}' or `delimiter` of [input]"
                ));
                break;
            }
        }
    }
    if names.first().is_some_and(|n| n.starts_with(['{', '['])) {
        hints.push("the header begins like JSON: if it is, declare format = \"json\" in [input] or rename the file".into());
    }
    if names.iter().any(|n| n.contains('\0')) {
        hints.push("the header holds NUL characters: if the file is in UTF-16, declare encoding = \"utf-16le\" (or utf-16be) in [input]".into());
    }
    hints
}

/// Where the first record ends, its line break included.
pub(super) fn first_record_end(buf: &[u8], delimiter: u8, quote: u8) -> Option<usize> {
    let mut quoted = false;
    let mut fresh = true;
    let mut at = 0;
    while let Some(&byte) = buf.get(at) {
        if quoted {
            if byte == quote {
                match buf.get(at + 1) {
                    Some(&next) if next == quote => at += 1,
                    Some(_) => quoted = false,
                    None => return None,
                }
            }
        } else if byte == b'\n' {
            return Some(at + 1);
        } else if fresh && byte == quote {
            quoted = true;
        }
        fresh = !quoted && byte == delimiter;
        at += 1;
    }
    None
}
