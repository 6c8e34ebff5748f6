//! TOML text of a project, with errors that name file, line, key and the nearest known key.
//!
//! Every TOML file of a project passes through [`parse_toml`]: settings, sources, schema versions.
//! What a key means is the business of whoever owns the type.

use std::fmt::Display;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};

/// The value of `text`; `file` names it in errors.
///
/// Unknown keys, wrong value types, missing and double keys are `InvalidInput` errors whose context
/// holds `file` and `line` and whose hints name the nearest known key.
pub fn parse_toml<T: DeserializeOwned>(text: &str, file: impl Display) -> Result<T> {
    toml::from_str(text).map_err(|e| explain(text, &file, &e))
}

/// The known word that `word` is most likely meant to be; `None` when none is near.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= 1 + k.chars().count().max(lower.chars().count()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// The hint for an unknown word: the nearest known one, else all of them.
#[must_use]
pub fn nearest_hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(k) => format!("did you mean `{k}`?"),
        None if known.is_empty() => "no key is known here".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// The line, from 1, that holds the byte at `offset`.
#[must_use]
pub fn line_at(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset.min(text.len()))
        .filter(|b| *b == b'\n')
        .count()
}

/// A key of a TOML text: dotted path, elements of arrays counted from 1 (`field[2].name`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyAt {
    /// The path.
    pub(crate) path: String,
    /// The last key of the path.
    pub(crate) key: String,
    /// The line it stands in, from 1.
    pub(crate) line: usize,
    /// The text of its value where that is one string.
    pub(crate) text: Option<String>,
    /// Bytes of key and value.
    spans: [Range<usize>; 2],
}

/// Every key of a well-formed text that holds a value or an array, in the order they are met.
pub(crate) fn list_keys(text: &str) -> Vec<KeyAt> {
    let mut keys = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        walk_table(text, table.get_ref(), "", &mut keys);
    }
    keys
}

fn walk_table(text: &str, table: &DeTable<'_>, prefix: &str, into: &mut Vec<KeyAt>) {
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        };
        into.push(KeyAt {
            path: path.clone(),
            key: name.to_owned(),
            line: line_at(text, key.span().start),
            text: value.get_ref().as_str().map(str::to_owned),
            spans: [key.span(), value.span()],
        });
        walk_value(text, value.get_ref(), &path, into);
    }
}

fn walk_value(text: &str, value: &DeValue<'_>, path: &str, into: &mut Vec<KeyAt>) {
    match value {
        DeValue::Table(table) => walk_table(text, table, path, into),
        DeValue::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                walk_value(text, item.get_ref(), &format!("{path}[{}]", i + 1), into);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

/// The innermost key whose own bytes or value hold the byte at `offset`.
fn key_at(keys: &[KeyAt], offset: usize) -> Option<&KeyAt> {
    keys.iter()
        .filter(|k| k.spans.iter().any(|s| s.contains(&offset)))
        .min_by_key(|k| {
            let holding = k.spans.iter().filter(|s| s.contains(&offset));
            (
                holding.map(ExactSizeIterator::len).min(),
                usize::MAX - k.path.len(),
            )
        })
}

fn explain(text: &str, file: &dyn Display, e: &toml::de::Error) -> Error {
    let keys = list_keys(text);
    let span = e.span();
    let at = span.as_ref().and_then(|s| key_at(&keys, s.start));
    let message = e.message();
    let error = match unknown_key(message) {
        Some((key, known)) => {
            let path = at.filter(|k| k.key == key).map_or(key, |k| &k.path);
            let hint = own_hint(key).map_or_else(|| nearest_hint(key, &known), str::to_owned);
            Error::invalid(format!("unknown key `{path}`")).hint(hint)
        }
        None => match at {
            Some(k) => {
                let error = Error::invalid(format!("key `{}`: {}", k.path, plain(message)));
                match quoted(message, "unknown variant `") {
                    Some((word, known)) => error.hint(nearest_hint(word, &known)),
                    None => error,
                }
            }
            None => Error::invalid(plain(message)),
        },
    };
    let error = error.with("file", file);
    match span {
        Some(s) => error.with("line", line_at(text, s.start)),
        None => error,
    }
}

/// What is said of keys that people know from elsewhere: the nearest one would lead astray.
fn own_hint(key: &str) -> Option<&'static str> {
    (key == "xpath").then_some("there is no XPath; use `css`, such as css = \"h1::text\"")
}

/// The key and the known keys of serde's message on an unknown one.
fn unknown_key(message: &str) -> Option<(&str, Vec<&str>)> {
    let alone = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.strip_suffix("`, there are no fields"));
    match alone {
        Some(key) => Some((key, Vec::new())),
        None => quoted(message, "unknown field `"),
    }
}

/// The word after `prefix`, and the words that serde expected in its place.
fn quoted<'a>(message: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (word, expected) = message.strip_prefix(prefix)?.rsplit_once("`, expected ")?;
    Some((word, expected.split('`').skip(1).step_by(2).collect()))
}

/// The parser's message in the words of someone who writes TOML.
fn plain(message: &str) -> String {
    if message.contains("untagged enum Token") {
        return "expected a text or a number".to_owned();
    }
    if message.contains("untagged enum RemovedField") {
        return "expected a field name or a field id".to_owned();
    }
    message.trim_end().replace('\n', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors are looked at")]
    struct Probe {
        #[serde(default)]
        lake: Option<String>,
        #[serde(default)]
        part: Vec<Part>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors are looked at")]
    struct Part {
        threads: u32,
    }

    fn error(text: &str) -> Error {
        parse_toml::<Probe>(text, "x.toml").unwrap_err()
    }

    #[test]
    fn an_unknown_key_names_file_line_path_and_the_nearest() {
        let e = error("lake = \"a\"\n\n[[part]]\nthreads = 1\n[[part]]\nthreds = 2\n");
        assert_eq!(
            e.to_string(),
            "unknown key `part[2].threds` (file `x.toml`, line `6`)"
        );
        assert_eq!(e.hints(), ["did you mean `threads`?"]);
        let e = error("\"雲\" = 1\n");
        assert_eq!(e.message(), "unknown key `雲`");
        assert_eq!(e.hints(), ["known here: lake, part"]);
    }

    #[test]
    fn a_wrong_type_names_the_key_and_line() {
        let e = error("\n\nlake = 3\n");
        assert!(e.message().starts_with("key `lake`: "), "{e}");
        assert!(e.to_string().contains("line `3`"), "{e}");
        let e = error("[[part]]\nthreads = 1\n[[part]]\nthreads = \"two\"\n");
        assert!(e.message().starts_with("key `part[2].threads`: "), "{e}");
        assert!(e.to_string().contains("line `4`"), "{e}");
    }

    #[test]
    fn text_that_is_no_toml_names_the_line() {
        let e = error("lake = \"a\"\nlake =\n");
        assert!(e.to_string().contains("line `2`"), "{e}");
        let e = error("lake = \"a\"\nlake = \"b\"\n");
        assert!(e.to_string().contains("duplicate key"), "{e}");
    }

    #[test]
    fn nearest_needs_to_be_near() {
        let known = ["time_zone", "lake", "formats"];
        assert_eq!(nearest("timezone", known), Some("time_zone"));
        assert_eq!(nearest("Lake", known), Some("lake"));
        assert_eq!(nearest("format", known), Some("formats"));
        assert_eq!(nearest("delimiter", known), None);
    }
}
