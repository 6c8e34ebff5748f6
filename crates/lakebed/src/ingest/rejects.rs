//! Kept rejects: reading them, and trying them again under the present schema version.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::ingest::read::InputSource;
use crate::log::{DatasetState, RejectsState};
use crate::name::{CommitId, ContentHash};
use crate::spec::{InputFormat, ReadSpec, RejectRecord};
use crate::store::{Lake, StorePath, rejects_dir, stage_dir};
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

/// Hands every kept reject of a date to `each`, in commit order; `each` answers whether to go on.
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
        found = lake.store().find(&stage_dir(attempt).join(&path)).await?;
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

/// Quarantined records of one form, written out as inputs of a new call.
#[derive(Debug)]
pub struct RetryGroup {
    /// The inputs, in the scratch folder.
    pub inputs: Vec<InputSource>,
    /// How they are read.
    pub read: ReadSpec,
    /// Records in them.
    pub records: u64,
}

/// What `--rejects-of` tries again.
#[derive(Debug)]
pub struct Retry {
    /// The business date of the commit.
    pub dt: BusinessDate,
    /// One call each.
    pub groups: Vec<RetryGroup>,
    /// Rejects that were no records at all (bad syntax, ragged rows, repeated headers): not tried.
    pub left: u64,
}

/// Faults of what was never a record: trying them again is pointless.
const NOT_RECORDS: [&str; 4] = ["syntax", "not_a_record", "cells", "header_row"];

/// Writes the quarantined records of a commit into `scratch`, so that they can be ingested again.
pub async fn retry_inputs(
    lake: &Lake,
    state: &DatasetState,
    commit: &CommitId,
    scratch: &Path,
) -> Result<Retry> {
    let (dt, rejects) = state
        .dates()
        .iter()
        .find_map(|(dt, date)| {
            date.rejects
                .iter()
                .find(|r| r.commit == *commit)
                .map(|r| (*dt, r))
        })
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
        texts.add(record?);
    }
    let left = texts.left;
    Ok(Retry {
        dt,
        groups: texts.write(commit, scratch)?,
        left,
    })
}

/// Quarantined records gathered by the form of their input; CSV by header, too.
#[derive(Default)]
struct RetryTexts {
    json: (Vec<u8>, u64),
    csv: BTreeMap<Vec<String>, (Vec<u8>, u64)>,
    left: u64,
}

impl RetryTexts {
    fn add(&mut self, record: RejectRecord) {
        if record
            .reasons
            .iter()
            .any(|r| NOT_RECORDS.contains(&r.code.as_str()))
        {
            self.left += 1;
        } else if record.form == "csv" {
            let (text, records) = self.csv.entry(record.header).or_default();
            text.extend_from_slice(record.raw.trim_end_matches(['\r', '\n']).as_bytes());
            text.push(b'\n');
            *records += 1;
        } else {
            // A line break outside of strings is white space, and strings hold none: one line each.
            let (text, records) = &mut self.json;
            text.extend(
                record
                    .raw
                    .bytes()
                    .map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }),
            );
            text.push(b'\n');
            *records += 1;
        }
    }

    fn write(self, commit: &CommitId, scratch: &Path) -> Result<Vec<RetryGroup>> {
        let mut groups = Vec::new();
        let mut group = |name: String, text: &[u8], records: u64, read: ReadSpec| -> Result<()> {
            let file = write_scratch(scratch, &name, text)?;
            groups.push(RetryGroup {
                inputs: vec![InputSource::file(&file)],
                read,
                records,
            });
            Ok(())
        };
        let (text, records) = self.json;
        if records > 0 {
            let read = ReadSpec {
                format: Some(InputFormat::Jsonl),
                encoding: utf8(),
                ..ReadSpec::default()
            };
            group(format!("rejects-of-{commit}.jsonl"), &text, records, read)?;
        }
        for (n, (header, (text, records))) in self.csv.into_iter().enumerate() {
            let read = ReadSpec {
                format: Some(InputFormat::Csv),
                encoding: utf8(),
                header: Some(header),
                ..ReadSpec::default()
            };
            group(format!("rejects-of-{commit}-{n}.csv"), &text, records, read)?;
        }
        Ok(groups)
    }
}

fn utf8() -> Option<String> {
    Some("utf-8".to_owned())
}

fn write_scratch(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::File::create(&path)
        .and_then(|mut f| f.write_all(bytes))
        .map_err(|e| Error::io("write the file", path.display(), e))?;
    Ok(path)
}
