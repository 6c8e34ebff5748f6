//! The scanner: a cursor over JSON text that hands out values by their own text.
//!
//! Nested values are checked with a bit stack instead of recursion, so depth costs a bit a level and
//! can never overflow the program's stack.

mod take;

use std::fmt;

pub(crate) use take::{ShortKey, ShortNumber};

use crate::ingest::raw::{NonFinite, Raw};

/// Where and why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset in the scanned text.
    pub at: usize,
    /// In words.
    pub what: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at + 1)
    }
}

/// A member's key between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    /// Between the quotes.
    pub body: &'a str,
    /// Whether it holds a backslash.
    pub escaped: bool,
}

/// A cursor over JSON text.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the high bit of bytes of `word` that are `"`, `\` or below 0x20. Marks above the lowest one
/// may be false; the lowest one never is.
#[inline]
fn string_stops(word: u64) -> u64 {
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * 0x22));
    let backslash = zero(word ^ (ONES * 0x5c));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGHS
}

/// Whether two names are equal; names are short, so this is quicker than a call of `memcmp`.
#[inline(always)]
pub(crate) fn is_same(a: &[u8], b: &str) -> bool {
    let b = b.as_bytes();
    if a.len() != b.len() {
        return false;
    }
    if let (Some(x), Some(y)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        // The last eight may overlap the first.
        return x == y && a.last_chunk::<8>() == b.last_chunk::<8>() && (a.len() <= 16 || a == b);
    }
    if let (Some(x), Some(y)) = (a.first_chunk::<4>(), b.first_chunk::<4>()) {
        return x == y && a.last_chunk::<4>() == b.last_chunk::<4>();
    }
    a.iter().zip(b).all(|(x, y)| x == y)
}

/// Whether a number or literal cannot end before this byte.
#[inline(always)]
fn is_word_byte(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-' | b'_' | b'"')
}

/// A stack of booleans that takes any depth.
#[derive(Debug, Default)]
struct BitStack {
    words: Vec<u64>,
    top: u64,
    depth: usize,
}

impl BitStack {
    #[inline]
    fn push(&mut self, bit: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.words.push(self.top);
        }
        self.top = (self.top << 1) | u64::from(bit);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        self.top >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.top = self.words.pop().unwrap_or(0);
        }
    }

    #[inline]
    fn last(&self) -> bool {
        self.top & 1 == 1
    }
}

impl<'a> Scanner<'a> {
    /// A cursor at the beginning of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The byte offset of the cursor.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Moves the cursor; `at` must be a character boundary that was reached before.
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The byte under the cursor.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips JSON white space and returns the byte after it.
    #[inline(always)]
    pub fn skip_space(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&b) = bytes.get(self.at) {
            if b > b' ' || !matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(b);
            }
            self.at += 1;
        }
        None
    }

    #[inline]
    fn error<T>(&self, what: &'static str) -> Result<T, SyntaxError> {
        Err(SyntaxError { at: self.at, what })
    }

    /// Steps over `byte`, which must be under the cursor after white space.
    #[inline(always)]
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), SyntaxError> {
        if self.skip_space() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        self.error(what)
    }

    /// Steps over the `{` under the cursor.
    pub fn open_object(&mut self) -> Result<(), SyntaxError> {
        self.expect(b'{', "expected `{`")
    }

    /// Steps over the `[` under the cursor.
    pub fn open_array(&mut self) -> Result<(), SyntaxError> {
        self.expect(b'[', "expected `[`")
    }

    /// The next key of the open object, its colon passed, or `None` past the closing brace.
    #[inline(always)]
    pub fn next_key(&mut self, first: bool) -> Result<Option<Key<'a>>, SyntaxError> {
        match self.skip_space() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
            }
            Some(b'"') if first => {}
            Some(_) if first => return self.error("expected a key or `}`"),
            Some(_) => return self.error("expected `,` or `}`"),
            None => return self.error("the object is not closed"),
        }
        if self.peek() != Some(b'"') {
            return self.error("expected a key in quotes");
        }
        let (body, escaped) = self.string()?;
        self.expect(b':', "expected `:` after the key")?;
        Ok(Some(Key { body, escaped }))
    }

    /// Steps over the next key and its colon if that key is `quoted` (a name between its quotes, without
    /// escapes) and nothing but a blank stands before it; else the cursor stays for [`Self::next_key`].
    #[inline(always)]
    pub fn take_key(&mut self, first: bool, quoted: &str) -> bool {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        if !first {
            if bytes.get(at) != Some(&b',') {
                return false;
            }
            at += 1;
        }
        at += usize::from(bytes.get(at) == Some(&b' '));
        let end = at + quoted.len();
        let is_next = !quoted.is_empty()
            && bytes.get(at..end).is_some_and(|key| is_same(key, quoted))
            && bytes.get(end) == Some(&b':');
        if is_next {
            self.at = end + 1;
        }
        is_next
    }

    /// Whether another element follows in the open array; `false` past the closing bracket.
    #[inline]
    pub fn next_element(&mut self, first: bool) -> Result<bool, SyntaxError> {
        match self.skip_space() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                match self.skip_space() {
                    Some(b']') => self.error("a comma before `]`"),
                    _ => Ok(true),
                }
            }
            Some(_) if first => Ok(true),
            Some(_) => self.error("expected `,` or `]`"),
            None => self.error("the array is not closed"),
        }
    }

    /// The value under the cursor (after white space), checked whole.
    pub fn value(&mut self) -> Result<Raw<'a>, SyntaxError> {
        let mut raw = Raw::Null;
        self.value_into(&mut raw)?;
        Ok(raw)
    }

    /// As [`Self::value`], written to where the caller wants it: a value that is handed through several
    /// returns is copied at every one, which costs more than to scan it.
    #[inline(always)]
    pub fn value_into(&mut self, raw: &mut Raw<'a>) -> Result<(), SyntaxError> {
        let Some(first) = self.skip_space() else {
            return self.error("expected a value");
        };
        match first {
            b'"' => {
                let (body, escaped) = self.string()?;
                *raw = Raw::String { body, escaped };
            }
            b'0'..=b'9' => *raw = Raw::Number(self.number()?),
            b'{' | b'[' => {
                let start = self.at;
                self.nested()?;
                let text = &self.text[start..self.at];
                *raw = if first == b'{' {
                    Raw::Object(text)
                } else {
                    Raw::Array(text)
                };
            }
            _ => self.word(first, raw)?,
        }
        Ok(())
    }

    /// What begins with another character than a digit: a literal or a negative number.
    fn word(&mut self, first: u8, raw: &mut Raw<'a>) -> Result<(), SyntaxError> {
        let (word, value) = match first {
            b'-' if self.text.as_bytes().get(self.at + 1) == Some(&b'I') => {
                ("-Infinity", Raw::NonFinite(NonFinite::NegInfinity))
            }
            b'-' => {
                *raw = Raw::Number(self.number()?);
                return Ok(());
            }
            b't' => ("true", Raw::Bool(true)),
            b'f' => ("false", Raw::Bool(false)),
            b'n' => ("null", Raw::Null),
            b'N' => ("NaN", Raw::NonFinite(NonFinite::NaN)),
            b'I' => ("Infinity", Raw::NonFinite(NonFinite::Infinity)),
            _ => return self.error("expected a value"),
        };
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return self.error("expected a value");
        }
        self.at += word.len();
        self.end_of_word()?;
        *raw = value;
        Ok(())
    }

    /// A number or literal must not run into a letter or digit.
    #[inline(always)]
    fn end_of_word(&self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b) if is_word_byte(&b) => self.error("expected the end of the value"),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn digits(&mut self) -> usize {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    #[inline(always)]
    fn number(&mut self) -> Result<&'a str, SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading = self.peek();
        match self.digits() {
            0 => return self.error("expected a digit"),
            1 => {}
            _ if leading == Some(b'0') => return self.error("a number begins with `0`"),
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return self.error("expected a digit after `.`");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.error("expected a digit in the exponent");
            }
        }
        self.end_of_word()?;
        Ok(&self.text[start..self.at])
    }

    /// The string under the cursor: the text between its quotes and whether it holds a backslash.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<(&'a str, bool), SyntaxError> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            while let Some(chunk) = bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
                let stops = string_stops(u64::from_le_bytes(*chunk));
                if stops != 0 {
                    at += (stops.trailing_zeros() / 8) as usize;
                    break;
                }
                at += 8;
            }
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok((&self.text[start..at], escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at = at;
                    self.escape()?;
                    at = self.at;
                }
                Some(0..=0x1f) => {
                    self.at = at;
                    return self.error("a control character in a string");
                }
                Some(_) => at += 1,
                None => {
                    self.at = at;
                    return self.error("the string is not closed");
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let hex = bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
                if hex.len() == 4 && hex.iter().all(u8::is_ascii_hexdigit) {
                    self.at += 6;
                    return Ok(());
                }
                self.error("an escape `\\u` without four hex digits")
            }
            _ => self.error("an unknown escape in a string"),
        }
    }

    /// Checks the object or array under the cursor and steps over it.
    fn nested(&mut self) -> Result<(), SyntaxError> {
        // true = object, false = array
        let mut stack = BitStack::default();
        'value: loop {
            // The cursor stands before a value.
            let Some(first) = self.skip_space() else {
                return self.error("expected a value");
            };
            match first {
                b'{' => {
                    self.at += 1;
                    stack.push(true);
                    if self.next_key(true)?.is_some() {
                        continue 'value;
                    }
                    stack.pop();
                }
                b'[' => {
                    self.at += 1;
                    stack.push(false);
                    if self.next_element(true)? {
                        continue 'value;
                    }
                    stack.pop();
                }
                b'"' => {
                    self.string()?;
                }
                b'0'..=b'9' => {
                    self.number()?;
                }
                _ => self.word(first, &mut Raw::Null)?,
            }
            // A value ended: close what closes, until another value begins.
            while stack.depth > 0 {
                let more = if stack.last() {
                    self.next_key(false)?.is_some()
                } else {
                    self.next_element(false)?
                };
                if more {
                    continue 'value;
                }
                stack.pop();
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
