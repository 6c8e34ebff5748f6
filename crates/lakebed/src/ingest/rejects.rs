//! Kept rejects: reading them, and trying them again under the present schema version.
//!
//! That they are tried again once is kept by the fold, that a reject is listed until it was stored by
//! [`for_each_reject`] (REJ-2).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::ingest::read::{FirstPlaces, InputSource};
use crate::log::{DatasetState, RejectsState};
use crate::name::{CommitId, ContentHash};
use crate::spec::{InputFormat, ReadSpec, RejectRecord};
use crate::store::{Lake, StorePath, rejects_dir, staged_path};
use crate::time::BusinessDate;

/// A kept reject with the commit that kept it.
#[derive(Debug, Clone, Serialize)]
pub struct KeptReject {
    /// The commit.
    pub commit: CommitId,
    /// Its record's number.
    pub log_position: u64,
    /// The record.
    #[serde(flatten)]
    pub record: RejectRecord,
}

/// Hands every kept reject of a date that still is one to `each`, in commit order; `each` answers
/// whether to go on. A record that was tried again is not handed out where it was first kept: it was
/// stored, or it is among the rejects of the commit that tried it.
pub async fn for_each_reject(
    lake: &Lake,
    state: &DatasetState,
    dt: BusinessDate,
    mut each: impl FnMut(KeptReject) -> Result<bool> + Send,
) -> Result<()> {
    let Some(date) = state.dates().get(&dt) else {
        return Ok(());
    };
    // Of a revision that readers do not see, the rejects are no matter of the date.
    let seen: BTreeSet<u64> = state.visible_inputs(dt).map(|(_, i)| i.number).collect();
    for rejects in date.rejects.iter().filter(|r| seen.contains(&r.number)) {
        let (path, bytes) = rejects_bytes(lake, state, dt, rejects).await?;
        for (n, record) in parse_lines(&path, &bytes)?.into_iter().enumerate() {
            let record = record.map_err(|e| e.with("line", n + 1))?;
            if rejects.retried_by.is_some() && record.was_read() {
                continue;
            }
            let kept = KeptReject {
                commit: rejects.commit.clone(),
                log_position: rejects.number,
                record,
            };
            if !each(kept)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn rejects_bytes(
    lake: &Lake,
    state: &DatasetState,
    dt: BusinessDate,
    rejects: &RejectsState,
) -> Result<(StorePath, bytes::Bytes)> {
    let path = rejects_dir(state.dataset(), dt).child(&rejects.spec.name);
    let mut found = lake.store().find(&path).await?;
    // Committed, but not moved yet: it still lies in the stage.
    if let (None, Some(attempt)) = (&found, &rejects.attempt) {
        found = lake.store().find(&staged_path(attempt, &path)).await?;
    }
    match found {
        Some(bytes) if ContentHash::of(&bytes) == rejects.spec.blake3 => Ok((path, bytes)),
        Some(_) => Err(Error::corrupt(
            "the rejects file does not have the bytes that were committed",
        )
        .with("file", path)
        .with("invariant", "REJ-1")
        .hint("restore it from a backup of the lake")),
        None => Err(Error::corrupt("the rejects file is not there")
            .with("file", path)
            .hint("`lakebed audit` says more")),
    }
}

fn parse_lines(path: &StorePath, bytes: &[u8]) -> Result<Vec<Result<RejectRecord>>> {
    let damaged = |e: std::io::Error| {
        Error::corrupt("read the rejects file")
            .with("file", path)
            .caused_by(e)
    };
    let reader = BufReader::new(zstd::Decoder::new(bytes).map_err(damaged)?);
    let mut records = Vec::new();
    for line in reader.lines() {
        let line = line.map_err(damaged)?;
        let parsed = serde_json::from_str(&line).map_err(|e| {
            Error::corrupt("read a line of the rejects file")
                .with("file", path)
                .caused_by(e)
        });
        records.push(parsed);
    }
    Ok(records)
}

/// What `--rejects-of` tries again.
#[derive(Debug)]
pub struct Retry {
    /// The business date of the commit.
    pub dt: BusinessDate,
    /// Its rejected records in the scratch folder: inputs of one call.
    pub inputs: Vec<InputSource>,
    /// Rejects that were no records at all (bad syntax, ragged rows, repeated headers): not tried.
    pub left: u64,
}

/// Writes the quarantined records of a commit into `scratch`, so that they can be ingested again by
/// a call that names the commit as its `rejects_of`.
pub async fn retry_inputs(
    lake: &Lake,
    state: &DatasetState,
    commit: &CommitId,
    scratch: &Path,
) -> Result<Retry> {
    let (dt, rejects) = state
        .dates()
        .keys()
        .find_map(|dt| Some((*dt, state.find_rejects(*dt, commit)?)))
        .ok_or_else(|| {
            Error::not_found(format!(
                "commit `{commit}` of `{}` has kept no rejects",
                state.dataset()
            ))
            .hint(format!(
                "`lakebed log {}` lists the commits",
                state.dataset()
            ))
        })?;
    let (path, bytes) = rejects_bytes(lake, state, dt, rejects).await?;
    let mut texts = RetryTexts::default();
    for record in parse_lines(&path, &bytes)? {
        texts.add(&record?);
    }
    let left = texts.left;
    Ok(Retry {
        dt,
        inputs: texts.write(commit, scratch)?,
        left,
    })
}

/// Records of one form as the text of a scratch file.
#[derive(Default)]
struct RetryText {
    bytes: Vec<u8>,
    lines: u64,
    places: FirstPlaces,
}

impl RetryText {
    fn add(&mut self, record: &RejectRecord, text: impl Iterator<Item = u8>) {
        let form = match record.form.as_str() {
            "csv" => "csv",
            "parquet" => "parquet",
            _ => "json",
        };
        let place = (record.file.as_str(), record.line);
        self.places.push(self.lines + 1, place, form);
        for byte in text.chain([b'\n']) {
            self.lines += u64::from(byte == b'\n');
            self.bytes.push(byte);
        }
    }
}

/// What rows of one CSV form share: header, delimiter, quote.
type CsvRules = (Vec<String>, Option<char>, Option<char>);

/// Quarantined records gathered by how they are read.
#[derive(Default)]
struct RetryTexts {
    json: RetryText,
    csv: BTreeMap<CsvRules, RetryText>,
    left: u64,
}

impl RetryTexts {
    fn add(&mut self, record: &RejectRecord) {
        if !record.was_read() {
            self.left += 1;
        } else if record.form == "csv" {
            let rules = (record.header.clone(), record.delimiter, record.quote);
            let row = record.raw.trim_end_matches(['\r', '\n']);
            self.csv.entry(rules).or_default().add(record, row.bytes());
        } else {
            // A line break outside of strings is white space, and strings hold none: one line each.
            let is_break = |b| matches!(b, b'\n' | b'\r');
            let line = record
                .raw
                .bytes()
                .map(|b| if is_break(b) { b' ' } else { b });
            self.json.add(record, line);
        }
    }

    fn write(self, commit: &CommitId, scratch: &Path) -> Result<Vec<InputSource>> {
        let mut inputs = Vec::new();
        if self.json.lines > 0 {
            let read = ReadSpec {
                format: Some(InputFormat::Jsonl),
                encoding: utf8(),
                ..ReadSpec::default()
            };
            let file = scratch.join(format!("rejects-of-{commit}.jsonl"));
            inputs.push(write_scratch(&file, self.json, read)?);
        }
        for (n, ((header, delimiter, quote), text)) in self.csv.into_iter().enumerate() {
            let read = ReadSpec {
                format: Some(InputFormat::Csv),
                encoding: utf8(),
                header: Some(header),
                delimiter: delimiter.map(String::from),
                quote: quote.map(String::from),
                ..ReadSpec::default()
            };
            let file = scratch.join(format!("rejects-of-{commit}-{n}.csv"));
            inputs.push(write_scratch(&file, text, read)?);
        }
        Ok(inputs)
    }
}

fn utf8() -> Option<String> {
    Some("utf-8".to_owned())
}

fn write_scratch(path: &Path, text: RetryText, read: ReadSpec) -> Result<InputSource> {
    std::fs::write(path, &text.bytes)
        .map_err(|e| Error::io("write the file", path.display(), e))?;
    Ok(InputSource::of_rejects(path, read, text.places))
}
