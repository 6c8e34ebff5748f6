//! JSON chunks: one unit a line, or whole values one after the other.

use crate::error::{Error, Result};
use crate::ingest::convert::FaultCode;
use crate::ingest::decode::position::LineCounter;
use crate::ingest::decode::sink::{MAX_BATCH_TEXT, Sink, Unread};
use crate::ingest::json::{Scanner, SyntaxError};
use crate::ingest::raw::Raw;

/// JSON white space.
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// What a value that is no record is called.
fn kind_of(raw: &Raw<'_>) -> &'static str {
    match raw {
        Raw::Absent | Raw::Null => "null",
        Raw::Bool(_) => "a bool",
        Raw::Number(_) | Raw::NonFinite(_) => "a number",
        Raw::String { .. } | Raw::Cell { .. } => "a text",
        Raw::Object(_) => "an object",
        Raw::Array(_) => "an array",
        Raw::Native(_) => "a typed value",
    }
}

/// JSON lines: a line that is not wholly JSON values is one reject, and nothing of it is stored.
pub(super) fn decode_lines(sink: &mut Sink<'_>, text: &str, first_line: u64) -> Result<()> {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut line = first_line;
    while start < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n);
        let unit = &text[start..end];
        let mut scanner = Scanner::new(unit);
        match scanner.skip_space() {
            None => {}
            Some(b'{') => {
                sink.room_for(unit.len())?;
                match sink.row.json_record(&mut scanner) {
                    Ok(()) if scanner.skip_space().is_none() => {
                        sink.settle(|| line, || unit.trim_matches(SPACE).to_owned());
                    }
                    Ok(()) => {
                        sink.undo();
                        decode_unit(sink, unit, line)?;
                    }
                    Err(e) => reject_line(sink, unit, line, e),
                }
            }
            Some(_) => decode_unit(sink, unit, line)?,
        }
        start = end + 1;
        line += 1;
    }
    Ok(())
}

#[cold]
fn reject_line(sink: &mut Sink<'_>, unit: &str, line: u64, e: SyntaxError) {
    sink.reject_unread(Unread {
        code: FaultCode::Syntax,
        reason: format!("the line is not JSON: {e}"),
        line,
        raw: unit.trim_matches(SPACE),
    });
}

/// A line of several values, or of an array: checked whole before anything of it is stored.
fn decode_unit(sink: &mut Sink<'_>, unit: &str, line: u64) -> Result<()> {
    let mut values = Vec::new();
    let mut scanner = Scanner::new(unit);
    while scanner.skip_space().is_some() {
        match scanner.value() {
            Ok(value) => values.push((value, scanner.offset())),
            Err(e) => {
                reject_line(sink, unit, line, e);
                return Ok(());
            }
        }
    }
    let mut start = 0;
    for (value, end) in values {
        let text = unit[start..end].trim_matches(SPACE);
        start = end;
        match value {
            Raw::Array(array) => decode_elements(sink, array, line)?,
            other => decode_value(sink, &other, text, line)?,
        }
    }
    Ok(())
}

fn decode_elements(sink: &mut Sink<'_>, array: &str, line: u64) -> Result<()> {
    let unchecked = |e: SyntaxError| Error::internal(format!("read a checked array: {e}"));
    let mut scanner = Scanner::new(array);
    scanner.open_array().map_err(unchecked)?;
    let mut first = true;
    while scanner.next_element(first).map_err(unchecked)? {
        first = false;
        scanner.skip_space();
        let start = scanner.offset();
        let value = scanner.value().map_err(unchecked)?;
        let text = &array[start..scanner.offset()];
        decode_value(sink, &value, text, line)?;
    }
    Ok(())
}

/// One checked value: a record, or a reject.
fn decode_value(sink: &mut Sink<'_>, value: &Raw<'_>, text: &str, line: u64) -> Result<()> {
    let Raw::Object(object) = value else {
        sink.reject_unread(Unread {
            code: FaultCode::NotARecord,
            reason: format!("{} stands where a record is expected", kind_of(value)),
            line,
            raw: text,
        });
        return Ok(());
    };
    sink.room_for(object.len())?;
    match sink.row.json_record(&mut Scanner::new(object)) {
        Ok(()) => sink.settle(|| line, || text.to_owned()),
        Err(e) => return Err(Error::internal(format!("read a checked object: {e}"))),
    }
    Ok(())
}

/// Values of an array, a document or a concatenation; what is not JSON fails the file.
pub(super) fn decode_values(
    sink: &mut Sink<'_>,
    text: &str,
    first_line: u64,
    file: &str,
) -> Result<()> {
    let mut lines = LineCounter::new(text.as_bytes(), first_line);
    let mut scanner = Scanner::new(text);
    // Where all of the chunk has room in one batch, a record's length need not be known beforehand.
    let fits_one_batch = text.len() <= MAX_BATCH_TEXT;
    while let Some(byte) = scanner.skip_space() {
        let start = scanner.offset();
        if byte == b',' {
            scanner.seek(start + 1);
            continue;
        }
        let failed = |lines: &mut LineCounter<'_>, e: SyntaxError| {
            Error::corrupt(format!("the file is not well-formed JSON: {}", e.what))
                .with("file", file)
                .with("line", lines.line_at(e.at))
                .hint("nothing of this file was stored: fetch it again, or deliver JSON lines, where one bad line costs one record")
        };
        if byte == b'{' && fits_one_batch {
            sink.room_for(0)?;
            if let Err(e) = sink.row.json_record(&mut scanner) {
                return Err(failed(&mut lines, e));
            }
            let raw = &text[start..scanner.offset()];
            sink.settle(|| lines.line_at(start), || raw.to_owned());
            continue;
        }
        let value = scanner.value().map_err(|e| failed(&mut lines, e))?;
        let raw = &text[start..scanner.offset()];
        decode_value(sink, &value, raw, lines.line_at(start))?;
    }
    Ok(())
}
