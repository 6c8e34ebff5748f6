//! Reading a log: every record is checked against its file name, its lake and its predecessor.
//!
//! LOG-1: numbers run from 1 without a hole. LOG-2: each record names the BLAKE3 of the one before.
//! LOG-3: a record of another lake, dataset or number than its place says is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{LogPosition, RECORD_FORMAT, Record};
use crate::store::{Lake, Layout, StorePath, log_dir, log_number, log_record_path};

/// A record with the hash of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRecord {
    /// The record.
    pub record: Record,
    /// BLAKE3 of its file.
    pub hash: ContentHash,
}

impl LoggedRecord {
    /// The position after this record.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        LogPosition {
            number: self.record.number,
            hash: Some(self.hash.clone()),
        }
    }
}

/// Every dataset that has a log or a published schema, by name.
pub async fn list_datasets(lake: &Lake) -> Result<Vec<DatasetRef>> {
    let mut found = BTreeSet::new();
    for root in [Layout::LOGS, Layout::SCHEMAS] {
        let root = StorePath::new(root)?;
        for file in lake.store().list(&root).await? {
            let rest = file.path.below(&root).unwrap_or_default();
            let mut parts = rest.split('/');
            if let (Some(layer), Some(dataset), Some(_), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
                && let Ok(dataset) = format!("{layer}/{dataset}").parse()
            {
                found.insert(dataset);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Record `number`; `None` when the log ends before it.
pub async fn read_record(
    lake: &Lake,
    dataset: &DatasetRef,
    number: u64,
) -> Result<Option<LoggedRecord>> {
    let path = log_record_path(dataset, number);
    let Some(bytes) = lake.store().find(&path).await? else {
        return Ok(None);
    };
    let record = parse_record(&path, &bytes)?;
    check_place(lake, dataset, number, &record, &path)?;
    Ok(Some(LoggedRecord {
        record,
        hash: ContentHash::of(&bytes),
    }))
}

/// Every record after `position`, in order, the chain checked from there on.
///
/// A log that ends before `position`, or whose record there has another hash, is refused: whoever
/// holds the position knows another past.
pub async fn read_after(
    lake: &Lake,
    dataset: &DatasetRef,
    position: &LogPosition,
) -> Result<Vec<LoggedRecord>> {
    let dir = log_dir(dataset);
    let mut numbers: Vec<u64> = lake
        .store()
        .list(&dir)
        .await?
        .iter()
        .filter_map(|f| log_number(&f.path.file_name()))
        .collect();
    numbers.sort_unstable();
    let mut next = 1;
    for number in &numbers {
        if *number != next {
            return Err(Error::corrupt(format!(
                "the log of `{dataset}` has a hole: record {next} is missing"
            ))
            .with("file", log_record_path(dataset, next))
            .with("invariant", "LOG-1")
            .hint("restore the record from a backup of the lake; nothing was changed"));
        }
        next = number + 1;
    }
    let last = next - 1;
    if last < position.number {
        return Err(Error::corrupt(format!("the log of `{dataset}` ends at record {last}"))
            .with("expected at least", position.number)
            .with("invariant", "CAT-3")
            .hint("the lake is older than the catalog: restore the lake, or delete the catalog and run `lakebed catalog rebuild`"));
    }
    let mut previous = position.clone();
    if position.number > 0 {
        let at = read_record(lake, dataset, position.number).await?;
        if at.as_ref().map(|r| &r.hash) != position.hash.as_ref() {
            return Err(Error::corrupt(format!(
                "record {} of `{dataset}` is not the one that was applied",
                position.number
            ))
            .with("file", log_record_path(dataset, position.number))
            .with("invariant", "CAT-3")
            .hint("the lake and the catalog have different pasts: check which lake this is, then `lakebed catalog rebuild`"));
        }
    }
    let mut records = Vec::new();
    for number in position.number + 1..=last {
        let Some(logged) = read_record(lake, dataset, number).await? else {
            break;
        };
        if logged.record.previous != previous.hash {
            return Err(Error::corrupt(format!("record {number} of `{dataset}` does not follow record {}", number - 1))
                .with("file", log_record_path(dataset, number))
                .with("invariant", "LOG-2")
                .hint("one of the two records was changed or comes from elsewhere; restore it from a backup"));
        }
        previous = logged.position();
        records.push(logged);
    }
    Ok(records)
}

fn parse_record(path: &StorePath, bytes: &[u8]) -> Result<Record> {
    let corrupt = |what: String| {
        Error::corrupt(what)
            .with("file", path)
            .hint("restore the record from a backup of the lake; nothing was changed")
    };
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|e| corrupt(format!("read the log record: it is not JSON: {e}")))?;
    let needs = value.get("min_reader").and_then(Value::as_u64);
    if needs.is_some_and(|n| n > u64::from(RECORD_FORMAT)) {
        return Err(
            Error::unavailable("this log record was written by a newer Lakebed")
                .with("file", path)
                .with("min_reader", needs.unwrap_or(0))
                .hint(format!(
                    "this program reads records up to format {RECORD_FORMAT}; install a newer one"
                )),
        );
    }
    serde_json::from_value(value).map_err(|e| corrupt(format!("read the log record: {e}")))
}

fn check_place(
    lake: &Lake,
    dataset: &DatasetRef,
    number: u64,
    record: &Record,
    path: &StorePath,
) -> Result<()> {
    let wrong = if record.lake != *lake.id() {
        Some(("lake", record.lake.to_string(), lake.id().to_string()))
    } else if record.dataset != *dataset {
        Some(("dataset", record.dataset.to_string(), dataset.to_string()))
    } else if record.number != number {
        Some(("number", record.number.to_string(), number.to_string()))
    } else {
        None
    };
    match wrong {
        None => Ok(()),
        Some((what, found, expected)) => Err(Error::corrupt(format!(
            "a log record of another {what} lies here"
        ))
        .with("file", path)
        .with("found", found)
        .with("expected", expected)
        .with("invariant", "LOG-3")),
    }
}
