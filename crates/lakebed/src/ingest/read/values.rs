//! Streams of JSON values: the elements of top-level arrays, and values that follow each other.
//!
//! A structural state machine that can stop at any byte: it finds where values begin and end (depth,
//! text, escape), not whether they are well formed inside, which the decoder checks. Brackets and
//! commas between values are overwritten with blanks in place, so that offsets and lines stay true
//! and nothing is copied. What it refuses is a failed file: a missing comma between elements, a comma
//! outside an array, rubbish between values, an array or value that does not end. A comma before the
//! closing bracket is accepted and counted.

use crate::error::{Error, Result};
use crate::ingest::read::window::{Window, count_lines};

/// Where we are between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside arrays.
    Top,
    /// After `[`.
    First,
    /// After a comma.
    AfterComma,
    /// After an element.
    AfterElement,
}

/// The value that is not ended yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    /// An object or array with `depth` levels open.
    Container {
        depth: u64,
    },
    /// A text, inside a container of that depth or alone (0).
    Text {
        depth: u64,
    },
    /// After a backslash.
    Escape {
        depth: u64,
    },
    /// A number or literal.
    Bare,
}

/// What a byte inside a container does.
#[derive(Debug, Clone, Copy)]
enum Structure {
    None,
    Quote,
    Opens,
    Closes,
}

const STRUCTURE: [Structure; 256] = {
    let mut table = [Structure::None; 256];
    table[b'"' as usize] = Structure::Quote;
    table[b'{' as usize] = Structure::Opens;
    table[b'[' as usize] = Structure::Opens;
    table[b'}' as usize] = Structure::Closes;
    table[b']' as usize] = Structure::Closes;
    table
};

/// How far a text goes.
enum TextEnd {
    /// It ends before this position.
    After(usize),
    /// Past the bytes at hand.
    Open,
    /// Past the bytes at hand, whose last is a backslash.
    OpenEscape,
}

/// Bytes that are looked at one by one before a vector search is worth its start.
const SHORT_TEXT_BYTES: usize = 16;

/// Looks for the closing quote of a text.
fn text_end(buf: &[u8], from: usize) -> TextEnd {
    let is_mark = |b: &u8| *b == b'"' || *b == b'\\';
    let mut at = from;
    loop {
        let rest = buf.get(at..).unwrap_or(&[]);
        let short = &rest[..rest.len().min(SHORT_TEXT_BYTES)];
        let found = match short.iter().position(is_mark) {
            Some(i) => Some(i),
            None => memchr::memchr2(b'"', b'\\', &rest[short.len()..]).map(|i| i + short.len()),
        };
        match found {
            None => return TextEnd::Open,
            Some(i) if rest[i] == b'"' => return TextEnd::After(at + i + 1),
            Some(i) if i + 1 == rest.len() => return TextEnd::OpenEscape,
            Some(i) => at += i + 2,
        }
    }
}

/// Splits a stream of values.
#[derive(Debug)]
pub(super) struct ValueSplitter {
    place: Place,
    open: Open,
    /// Where the open value begins in the window.
    start: usize,
    /// Whole values since the last cut.
    values: u64,
    trailing_commas: u64,
    /// Line of the last opening bracket.
    array_line: u64,
    /// Position in the window, and its line: lines are counted from here.
    mark: (usize, u64),
}

impl ValueSplitter {
    pub(super) fn new(line: u64) -> Self {
        Self {
            place: Place::Top,
            open: Open::Nothing,
            start: 0,
            values: 0,
            trailing_commas: 0,
            array_line: line,
            mark: (0, line),
        }
    }

    /// Arrays that ended with a comma.
    pub(super) fn trailing_commas(&self) -> u64 {
        self.trailing_commas
    }

    /// Looks at the bytes from `from` on; the position up to which whole values lie.
    pub(super) fn scan(&mut self, window: &mut Window, from: usize) -> Result<usize> {
        let buf = window.buf.as_mut_slice();
        let mut at = from;
        while at < buf.len() {
            at = match self.open {
                Open::Nothing => self.between(buf, at)?,
                Open::Container { depth } => self.in_container(buf, at, depth),
                Open::Text { depth } => self.in_text(buf, at, depth),
                Open::Escape { depth } => {
                    self.open = Open::Text { depth };
                    at + 1
                }
                Open::Bare => self.in_bare(buf, at),
            };
        }
        Ok(self.cut(buf.len()))
    }

    fn cut(&self, end: usize) -> usize {
        match self.open {
            Open::Nothing => end,
            Open::Container { .. } | Open::Text { .. } | Open::Escape { .. } | Open::Bare => {
                self.start
            }
        }
    }

    /// The first `at` bytes were handed on; whether they held a value.
    pub(super) fn forget(&mut self, at: usize, line: u64) -> bool {
        self.start = self.start.saturating_sub(at);
        self.mark = if self.mark.0 >= at {
            (self.mark.0 - at, self.mark.1)
        } else {
            (0, line)
        };
        std::mem::take(&mut self.values) > 0
    }

    fn line_at(&mut self, buf: &[u8], at: usize) -> u64 {
        let line = self.mark.1 + count_lines(&buf[self.mark.0..at]);
        self.mark = (at, line);
        line
    }

    fn broken(&mut self, buf: &[u8], at: usize, message: impl Into<String>) -> Error {
        Error::corrupt(message).with("line", self.line_at(buf, at))
    }

    fn between(&mut self, buf: &mut [u8], at: usize) -> Result<usize> {
        let byte = buf[at];
        match (self.place, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            (Place::Top, b'[') => {
                self.array_line = self.line_at(buf, at);
                self.place = Place::First;
                buf[at] = b' ';
            }
            (Place::First | Place::AfterElement, b']') => {
                self.place = Place::Top;
                buf[at] = b' ';
            }
            (Place::AfterComma, b']') => {
                self.trailing_commas += 1;
                self.place = Place::Top;
                buf[at] = b' ';
            }
            (Place::AfterElement, b',') => {
                self.place = Place::AfterComma;
                buf[at] = b' ';
            }
            (Place::AfterElement, _) => {
                return Err(self.broken(
                    buf,
                    at,
                    "comma is missing between two elements of the array",
                ));
            }
            (Place::Top, b',') => {
                return Err(self
                    .broken(buf, at, "comma stands between two values outside an array")
                    .hint(
                        "an array needs its brackets; values that follow each other need no comma",
                    ));
            }
            (Place::First | Place::AfterComma, b',') => {
                return Err(self.broken(buf, at, "array has a comma without an element before it"));
            }
            (Place::Top | Place::First | Place::AfterComma, _) => {
                self.begin(buf, at)?;
            }
        }
        Ok(at + 1)
    }

    fn begin(&mut self, buf: &[u8], at: usize) -> Result<()> {
        self.start = at;
        self.open = match buf[at] {
            b'{' | b'[' => Open::Container { depth: 1 },
            b'"' => Open::Text { depth: 0 },
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Open::Bare,
            other => {
                let shown = char::from(other).escape_default();
                let message = format!("`{shown}` stands where a JSON value must begin");
                return Err(self.broken(buf, at, message));
            }
        };
        Ok(())
    }

    fn end(&mut self) {
        self.open = Open::Nothing;
        self.values += 1;
        if self.place != Place::Top {
            self.place = Place::AfterElement;
        }
    }

    /// The hot loop: texts inside the container are skipped without a change of state.
    fn in_container(&mut self, buf: &[u8], from: usize, depth: u64) -> usize {
        let mut depth = depth;
        let mut at = from;
        while let Some(&byte) = buf.get(at) {
            at += 1;
            match STRUCTURE[usize::from(byte)] {
                Structure::None => {}
                Structure::Opens => depth += 1,
                Structure::Closes => {
                    depth -= 1;
                    if depth == 0 {
                        self.end();
                        return at;
                    }
                }
                Structure::Quote => match text_end(buf, at) {
                    TextEnd::After(end) => at = end,
                    TextEnd::Open => {
                        self.open = Open::Text { depth };
                        return buf.len();
                    }
                    TextEnd::OpenEscape => {
                        self.open = Open::Escape { depth };
                        return buf.len();
                    }
                },
            }
        }
        self.open = Open::Container { depth };
        buf.len()
    }

    fn in_text(&mut self, buf: &[u8], from: usize, depth: u64) -> usize {
        match text_end(buf, from) {
            TextEnd::After(end) => {
                if depth == 0 {
                    self.end();
                } else {
                    self.open = Open::Container { depth };
                }
                end
            }
            TextEnd::Open => buf.len(),
            TextEnd::OpenEscape => {
                self.open = Open::Escape { depth };
                buf.len()
            }
        }
    }

    /// A bare value ends before the byte that cannot be part of it.
    fn in_bare(&mut self, buf: &[u8], from: usize) -> usize {
        let ends = |b: &u8| {
            matches!(
                b,
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b']' | b'{' | b'}' | b'"'
            )
        };
        match buf[from..].iter().position(ends) {
            Some(i) => {
                self.end();
                from + i
            }
            None => buf.len(),
        }
    }

    /// The input has ended.
    pub(super) fn finish(&mut self, window: &Window) -> Result<()> {
        match self.open {
            Open::Bare => self.end(),
            Open::Nothing => {}
            Open::Container { .. } | Open::Text { .. } | Open::Escape { .. } => {
                return Err(Error::corrupt("input ends inside a JSON value")
                    .with("line", window.line_at(self.start))
                    .hint("the value that begins on that line is not closed: the file may be truncated"));
            }
        }
        match self.place {
            Place::Top => Ok(()),
            Place::First | Place::AfterComma | Place::AfterElement => Err(Error::corrupt(
                "input ends inside an array",
            )
            .with("line", self.array_line)
            .hint("the array that opens on that line is not closed: the file may be truncated")),
        }
    }
}
