//! The files that two programs left, file by file; of texts the first lines that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::flow::judge::{files_of, hash_file};
use crate::flow::shadow::item::{Compared, ItemVerdict};
use crate::parse::{Difference, differences};

/// What items are called.
const KIND: &str = "file";
/// Differing lines of a file that are shown.
const MAX_SHOWN: usize = 5;
/// A line that is longer is no line of a text.
const MAX_LINE: u64 = 1 << 20;

/// The files below a folder that the patterns name, by their paths in it.
pub(super) fn left_in(folder: &Path, patterns: &[String]) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for pattern in patterns {
        for path in files_of(folder, pattern)? {
            let below = path.strip_prefix(folder).unwrap_or(&path);
            found.insert(below.to_string_lossy().into_owned(), path.clone());
        }
    }
    Ok(found)
}

/// Compares both, file by file.
pub(super) fn compare_files(
    (old, new): (&BTreeMap<String, PathBuf>, &BTreeMap<String, PathBuf>),
    take: &mut dyn FnMut(Compared) -> Result<()>,
) -> Result<()> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let told = |path: &Path| -> Result<Value> {
            let (bytes, blake3) = hashed(path)?;
            Ok(json!({ "bytes": bytes, "blake3": blake3 }))
        };
        let key = || (KIND.to_owned(), name.clone());
        take(match (old.get(name), new.get(name)) {
            (Some(a), Some(b)) => compare_file(key(), (a, b))?,
            (Some(a), None) => Compared::one_sided(key(), ItemVerdict::OnlyOld, told(a)?),
            (None, Some(b)) => Compared::one_sided(key(), ItemVerdict::OnlyNew, told(b)?),
            (None, None) => continue,
        })?;
    }
    Ok(())
}

fn hashed(path: &Path) -> Result<(u64, String)> {
    let found = hash_file(path)?;
    let (bytes, blake3) = found.ok_or_else(|| {
        Error::not_found("a file that was just written is gone").with("file", path.display())
    })?;
    Ok((bytes, blake3.to_string()))
}

fn compare_file((kind, key): (String, String), (old, new): (&Path, &Path)) -> Result<Compared> {
    let (a, b) = (hashed(old)?, hashed(new)?);
    let mut differing = Vec::new();
    if a != b {
        differing = differing_lines(old, new)?.unwrap_or_default();
        if differing.is_empty() {
            differing.push(Difference {
                path: "$".to_owned(),
                expected: Some(json!({ "bytes": a.0, "blake3": a.1 })),
                found: Some(json!({ "bytes": b.0, "blake3": b.1 })),
            });
        }
    }
    Ok(Compared {
        kind,
        key,
        verdict: match differing.is_empty() {
            true => ItemVerdict::Agree,
            false => ItemVerdict::Changed,
        },
        differences: differing,
    })
}

/// The first lines that differ; `None` where one of both is no text.
fn differing_lines(old: &Path, new: &Path) -> Result<Option<Vec<Difference>>> {
    let open = |path: &Path| {
        File::open(path)
            .map(BufReader::new)
            .map_err(|e| Error::io("read the file", path.display(), e))
    };
    let (mut a, mut b) = (open(old)?, open(new)?);
    let mut shown = Vec::new();
    for line in 0.. {
        let (Some(left), Some(right)) = (next_line(&mut a, old)?, next_line(&mut b, new)?) else {
            return Ok(None);
        };
        match (left, right) {
            (None, None) => break,
            (left, right) if left == right => {}
            (left, right) => shown.extend(of_line(line, left, right)),
        }
        if shown.len() >= MAX_SHOWN {
            shown.truncate(MAX_SHOWN);
            break;
        }
    }
    Ok(Some(shown))
}

/// The next line, inner `None` at the end; outer `None` for what is no text.
fn next_line(reader: &mut BufReader<File>, path: &Path) -> Result<Option<Option<String>>> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_LINE).read_until(b'\n', &mut bytes);
    let read = read.map_err(|e| Error::io("read the file", path.display(), e))?;
    if read as u64 == MAX_LINE && bytes.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(match (read, String::from_utf8(bytes)) {
        (0, _) => Some(None),
        (_, Ok(text)) if !text.contains('\0') => Some(Some(text)),
        _ => None,
    })
}

/// Two lines: of JSON, where their values differ.
fn of_line(line: usize, old: Option<String>, new: Option<String>) -> Vec<Difference> {
    let place = format!("$[{line}]");
    let parsed = |text: &Option<String>| {
        let value = serde_json::from_str::<Value>(text.as_deref()?).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    };
    if let (Some(a), Some(b)) = (parsed(&old), parsed(&new)) {
        let within = differences(&a, &b);
        if !within.is_empty() {
            let moved = |mut d: Difference| {
                d.path = d.path.replacen('$', &place, 1);
                d
            };
            return within.into_iter().map(moved).collect();
        }
    }
    vec![Difference {
        path: place,
        expected: old.map(Value::String),
        found: new.map(Value::String),
    }]
}
