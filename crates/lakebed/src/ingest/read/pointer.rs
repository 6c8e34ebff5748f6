//! JSON pointers (RFC 6901) into a document's text: where its records stand.
//!
//! The text is walked as it is; nothing is parsed into a tree or written again, so digits, escapes
//! and line numbers of the records stay those of the file.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::ingest::read::syntax::{Checker, Step};
use crate::ingest::read::window::count_lines;

/// A checked pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// Parses a pointer; the empty one is the whole document.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            Error::invalid(format!("`{text}` is not a JSON pointer: {why}"))
                .hint("a pointer reads like `/data/items`; `~1` stands for a slash in a name, `~0` for a tilde")
        };
        if text.is_empty() {
            return Ok(Self {
                text: String::new(),
                tokens: Vec::new(),
            });
        }
        let rest = text
            .strip_prefix('/')
            .ok_or_else(|| bad("it does not begin with a slash"))?;
        let tokens = rest
            .split('/')
            .map(|token| {
                let plain = token.replace("~0", "").replace("~1", "");
                if plain.contains('~') {
                    return Err(bad("a tilde must be followed by 0 or 1"));
                }
                Ok(token.replace("~1", "/").replace("~0", "~"))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            text: text.to_owned(),
            tokens,
        })
    }

    /// The place of the records in a whole document, and how many arrays of it end with a comma.
    ///
    /// `first_line` is the physical line of the text's first byte.
    pub(super) fn find(&self, text: &[u8], first_line: u64) -> Result<(Range<usize>, u64)> {
        let trailing_commas = check_document(text, first_line)?;
        let mut at = skip_blank(text, 0);
        for token in &self.tokens {
            let found = match text.get(at) {
                Some(b'{') => self.member(text, at, token, first_line)?,
                Some(b'[') => element(text, at, token),
                _ => None,
            };
            at = found.ok_or_else(|| self.nothing("nothing"))?;
        }
        match text.get(at) {
            Some(b'{' | b'[') => Ok((at..value_end(text, at), trailing_commas)),
            Some(b'n') => Err(self.nothing("null")),
            _ => Err(self.nothing("a scalar")),
        }
    }

    fn nothing(&self, what: &str) -> Error {
        Error::corrupt(format!(
            "{what} stands at the pointer `{}` where the records must be",
            self.text
        ))
        .with("pointer", &self.text)
        .hint("an array of records, or one object, must stand there: look at the file, and correct --records or `records` of [input]")
    }

    /// Where the value of the object's member begins.
    fn member(
        &self,
        text: &[u8],
        open: usize,
        name: &str,
        first_line: u64,
    ) -> Result<Option<usize>> {
        let mut found = None;
        let mut at = skip_blank(text, open + 1);
        while text.get(at) == Some(&b'"') {
            let key_end = value_end(text, at);
            let key = unescaped(&text[at..key_end]);
            let colon = skip_blank(text, key_end);
            let value = skip_blank(text, colon + 1);
            if key.as_ref() == name {
                if found.is_some() {
                    return Err(Error::corrupt(format!(
                        "document has the key `{name}` of the pointer `{}` twice",
                        self.text
                    ))
                    .with("line", first_line + count_lines(&text[..at])));
                }
                found = Some(value);
            }
            at = after_comma(text, value_end(text, value));
        }
        Ok(found)
    }
}

/// Where the array's element begins.
fn element(text: &[u8], open: usize, index: &str) -> Option<usize> {
    let canonical = index == "0" || !index.starts_with('0');
    let wanted: u64 = if canonical && index.bytes().all(|b| b.is_ascii_digit()) {
        index.parse().ok()?
    } else {
        return None;
    };
    let mut at = skip_blank(text, open + 1);
    let mut i = 0;
    while text.get(at).is_some_and(|b| *b != b']') {
        if i == wanted {
            return Some(at);
        }
        at = after_comma(text, value_end(text, at));
        i += 1;
    }
    None
}

fn skip_blank(text: &[u8], from: usize) -> usize {
    text[from.min(text.len())..]
        .iter()
        .position(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
        .map_or(text.len(), |i| from + i)
}

fn after_comma(text: &[u8], end: usize) -> usize {
    let at = skip_blank(text, end);
    if text.get(at) == Some(&b',') {
        skip_blank(text, at + 1)
    } else {
        at
    }
}

/// The end of the value that begins at `from`, in a text that was checked.
fn value_end(text: &[u8], from: usize) -> usize {
    let mut checker = Checker::tolerant();
    for (i, byte) in text[from..].iter().enumerate() {
        match checker.feed(*byte) {
            Step::More => {}
            Step::Done => return from + i + 1,
            Step::DoneBefore | Step::Bad => return from + i,
        }
    }
    text.len()
}

/// The text of a key with its quotes. An escape that is no character (a lone surrogate) matches none.
fn unescaped(quoted: &[u8]) -> Cow<'_, str> {
    let body = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or(&[]);
    if !body.contains(&b'\\') {
        return String::from_utf8_lossy(body);
    }
    Cow::Owned(serde_json::from_slice::<String>(quoted).unwrap_or_default())
}

/// Checks that the text is one value and nothing else.
fn check_document(text: &[u8], first_line: u64) -> Result<u64> {
    let broken = |at: usize, message: &str| {
        Error::corrupt(message).with("line", first_line + count_lines(&text[..at]))
    };
    let mut checker = Checker::tolerant();
    let mut end = None;
    for (at, byte) in text.iter().enumerate() {
        match checker.feed(*byte) {
            Step::More => {}
            Step::Done => {
                end = Some(at + 1);
                break;
            }
            Step::DoneBefore => {
                end = Some(at);
                break;
            }
            Step::Bad => return Err(broken(at, "document is not well-formed JSON")),
        }
    }
    match end {
        Some(end) => {
            let rest = skip_blank(text, end);
            if rest < text.len() {
                return Err(broken(rest, "something follows the JSON document")
                    .hint("`records` reads one document a file"));
            }
        }
        None if checker.ends_with_input() => {}
        None => {
            return Err(broken(text.len(), "input ends inside the JSON document")
                .hint("the file may be truncated"));
        }
    }
    Ok(checker.trailing_commas())
}
