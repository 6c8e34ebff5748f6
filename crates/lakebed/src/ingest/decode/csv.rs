//! CSV chunks: records into cells, cells into fields by the header's names.
//!
//! A quote opens only as the first byte of a cell and a doubled quote inside is one quote; after the
//! closing quote only a delimiter or a line break may follow. A carriage return before a line feed
//! belongs to the line break. Records without any byte are blank lines and ignored.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::ingest::chunk::CsvHeader;
use crate::ingest::convert::{FaultCode, Place, Row, Slot, push_member};
use crate::ingest::decode::position::LineCounter;
use crate::ingest::decode::sink::{Sink, Unread};
use crate::ingest::raw::Raw;

/// Where a cell's text stands in the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    start: usize,
    end: usize,
    quoted: bool,
    /// Whether it holds doubled quotes.
    doubled: bool,
}

/// What a record looked like as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Whole,
    /// Text between a closing quote and the next delimiter.
    TextAfterQuote,
    /// A quote that does not close.
    Unclosed,
}

/// Splits a chunk into records and cells.
struct Splitter<'t> {
    text: &'t str,
    at: usize,
    delimiter: u8,
    quote: u8,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

impl<'t> Splitter<'t> {
    /// The next delimiter or line feed from `at` on, or the end.
    #[inline]
    fn find_end(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let delimiters = ONES * u64::from(self.delimiter);
        let feeds = ONES * u64::from(b'\n');
        while let Some(chunk) = bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
            let word = u64::from_le_bytes(*chunk);
            let zero = |x: u64| x.wrapping_sub(ONES) & !x;
            let stops = (zero(word ^ delimiters) | zero(word ^ feeds)) & HIGHS;
            if stops != 0 {
                return at + (stops.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        while let Some(byte) = bytes.get(at) {
            if *byte == self.delimiter || *byte == b'\n' {
                return at;
            }
            at += 1;
        }
        bytes.len()
    }

    /// Reads one record into `cells`; `None` at the end of the chunk. The range excludes the break.
    #[inline]
    fn next(&mut self, cells: &mut Vec<Cell>) -> Option<(std::ops::Range<usize>, Shape)> {
        let bytes = self.text.as_bytes();
        if self.at >= bytes.len() {
            return None;
        }
        cells.clear();
        let start = self.at;
        let mut shape = Shape::Whole;
        loop {
            let (cell, after) = if bytes.get(self.at) == Some(&self.quote) {
                self.quoted_cell(&mut shape)
            } else {
                let end = self.find_end(self.at);
                let cell = Cell {
                    start: self.at,
                    end,
                    quoted: false,
                    doubled: false,
                };
                (cell, end)
            };
            cells.push(cell);
            self.at = after + 1;
            if bytes.get(after) != Some(&self.delimiter) {
                return Some((start..self.drop_return(after, cells), shape));
            }
        }
    }

    /// The end of the record without a carriage return before its line feed at `end`.
    #[inline]
    fn drop_return(&self, end: usize, cells: &mut [Cell]) -> usize {
        let bytes = self.text.as_bytes();
        let returns = end > 0 && bytes.get(end) == Some(&b'\n') && bytes[end - 1] == b'\r';
        if !returns {
            return end;
        }
        if let Some(cell) = cells.last_mut()
            && !cell.quoted
            && cell.end == end
            && cell.start < end
        {
            cell.end -= 1;
        }
        end - 1
    }

    /// The cell that begins with a quote, and where its delimiter or line feed stands.
    fn quoted_cell(&self, shape: &mut Shape) -> (Cell, usize) {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        let mut doubled = false;
        loop {
            let rest = bytes.get(end..).unwrap_or_default();
            let Some(n) = memchr::memchr(self.quote, rest) else {
                *shape = Shape::Unclosed;
                end = bytes.len();
                break;
            };
            end += n;
            if bytes.get(end + 1) != Some(&self.quote) {
                break;
            }
            doubled = true;
            end += 2;
        }
        let cell = Cell {
            start,
            end,
            quoted: true,
            doubled,
        };
        let after = self.find_end((end + 1).min(bytes.len()));
        let between = bytes.get(end + 1..after).unwrap_or_default();
        let ends_line = bytes.get(after) == Some(&b'\n');
        let is_break = ends_line && between == b"\r";
        if *shape == Shape::Whole && !(between.is_empty() || is_break) {
            *shape = Shape::TextAfterQuote;
        }
        (cell, after)
    }

    /// The cell's text, its quotes resolved.
    #[inline]
    fn cell_text(&self, cell: Cell) -> Cow<'t, str> {
        let text = &self.text[cell.start..cell.end];
        if !cell.doubled {
            return Cow::Borrowed(text);
        }
        let quote = char::from(self.quote);
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            out.push(c);
            if c == quote {
                chars.next();
            }
        }
        Cow::Owned(out)
    }
}

/// The header of a chunk against the plan.
struct Columns<'c> {
    names: &'c [String],
    slots: Vec<Option<&'c Slot>>,
    /// Empty cells so far of each column that is unknown.
    empty: Vec<u64>,
}

/// CSV records of one chunk.
pub(super) fn decode_csv<'c>(
    sink: &mut Sink<'c>,
    text: &str,
    header: &'c CsvHeader,
    first_line: u64,
    file: &str,
) -> Result<()> {
    let input = &sink.row.plan.root.input;
    let find = |name: &String| input.slots.get(input.find(name, usize::MAX)?);
    let mut columns = Columns {
        names: &header.names,
        slots: header.names.iter().map(find).collect(),
        empty: vec![0; header.names.len()],
    };
    let has_nul = memchr::memchr(0, text.as_bytes()).is_some();
    let mut lines = LineCounter::new(text.as_bytes(), first_line);
    let mut cells = Vec::with_capacity(header.names.len());
    let mut splitter = Splitter {
        text,
        at: 0,
        delimiter: header.delimiter,
        quote: header.quote,
    };
    while let Some((range, shape)) = splitter.next(&mut cells) {
        if range.is_empty() {
            continue;
        }
        let raw = &text[range.clone()];
        if let Some((code, reason)) = trouble(&splitter, &cells, shape, header) {
            let line = lines.line_at(range.start);
            if shape == Shape::Unclosed {
                return Err(Error::corrupt("a quote opens and does not close")
                    .with("file", file)
                    .with("line", line));
            }
            sink.reject_unread(Unread {
                code,
                reason,
                line,
                raw,
            });
            continue;
        }
        sink.room_for(raw.len())?;
        decode_record(&mut sink.row, &splitter, &cells, &mut columns);
        if has_nul {
            let nuls = memchr::memchr_iter(0, raw.as_bytes()).count();
            sink.row.met.nuls += u64::try_from(nuls).unwrap_or(0);
        }
        sink.settle(|| lines.line_at(range.start), || raw.to_owned());
    }
    note_unknown_columns(sink, &columns, first_line);
    Ok(())
}

/// The cells of one record into the fields that read them.
#[inline]
fn decode_record<'c>(
    row: &mut Row<'c>,
    splitter: &Splitter<'_>,
    cells: &[Cell],
    header: &mut Columns<'c>,
) {
    row.begin();
    let level = &row.plan.root;
    let at = Place {
        level,
        stamp: row.memory.next_stamp(),
        is_top: true,
        strict: true,
    };
    let mut columns = std::mem::take(&mut row.memory.columns);
    let known = header.slots.iter().zip(header.names).zip(&mut header.empty);
    for (cell, ((slot, name), empty)) in cells.iter().zip(known) {
        let text = splitter.cell_text(*cell);
        let raw = Raw::Cell {
            text: &text,
            quoted: cell.quoted,
        };
        match slot {
            Some(slot) => row.slot(slot, &raw, &at, &mut columns),
            None if text.is_empty() => *empty += 1,
            None => row.unknown(name, &raw, true),
        }
    }
    row.fill_absent(level, at.stamp, &mut columns, true);
    row.memory.columns = columns;
}

/// An unknown column is reported even where all of its cells are empty.
fn note_unknown_columns(sink: &mut Sink<'_>, columns: &Columns<'_>, first_line: u64) {
    let all = columns.names.iter().zip(&columns.slots).zip(&columns.empty);
    for ((name, slot), empty) in all {
        if slot.is_none() {
            let mut place = "$".to_owned();
            push_member(&mut place, name);
            sink.note_unknown_column(name, &place, first_line, *empty);
        }
    }
}

/// Why a record is none.
#[inline]
fn trouble(
    splitter: &Splitter<'_>,
    cells: &[Cell],
    shape: Shape,
    header: &CsvHeader,
) -> Option<(FaultCode, String)> {
    if shape != Shape::Whole {
        let reason = "text follows the closing quote of a cell".to_owned();
        return Some((FaultCode::Syntax, reason));
    }
    let wanted = header.names.len();
    if cells.len() != wanted {
        let reason = format!("the row has {} cells, the header {wanted}", cells.len());
        return Some((FaultCode::Cells, reason));
    }
    let mut pairs = cells.iter().zip(&header.names);
    if header.from_file && pairs.all(|(cell, name)| splitter.cell_text(*cell) == name.as_str()) {
        let reason = "the row repeats the header".to_owned();
        return Some((FaultCode::HeaderRow, reason));
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records by the plainest reading, character by character; `None` = not whole.
    fn plain(text: &str) -> Vec<Option<Vec<(String, bool)>>> {
        let mut records = Vec::new();
        let mut chars = text.chars().peekable();
        while chars.peek().is_some() {
            let (mut cells, mut whole) = (Vec::new(), true);
            loop {
                let (mut cell, mut after) = (String::new(), String::new());
                let quoted = chars.next_if_eq(&'"').is_some();
                let mut open = quoted;
                while open {
                    match chars.next() {
                        Some('"') if chars.next_if_eq(&'"').is_some() => cell.push('"'),
                        Some('"') => open = false,
                        Some(c) => cell.push(c),
                        None => break,
                    }
                }
                whole &= !open;
                while let Some(c) = chars.next_if(|c| *c != ',' && *c != '\n') {
                    after.push(c);
                }
                let end = chars.next();
                if end == Some('\n') && after.ends_with('\r') {
                    after.pop();
                }
                if quoted {
                    whole &= after.is_empty();
                } else {
                    cell = after;
                }
                cells.push((cell, quoted));
                if end != Some(',') {
                    break;
                }
            }
            records.push(whole.then_some(cells));
        }
        records
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn cells_are_those_of_the_plainest_reading(text in "[ab微,\"\n\r]{0,40}") {
            let mut splitter = Splitter { text: &text, at: 0, delimiter: b',', quote: b'"' };
            let mut cells = Vec::new();
            let mut got = Vec::new();
            while let Some((_, shape)) = splitter.next(&mut cells) {
                let texts = cells.iter().map(|c| (splitter.cell_text(*c).into_owned(), c.quoted));
                got.push((shape == Shape::Whole).then(|| texts.collect::<Vec<_>>()));
            }
            prop_assert_eq!(got, plain(&text));
        }
    }
}
