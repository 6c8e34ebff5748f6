//! Reading one record: it is checked against its file name and its lake; `walk` checks how records follow.
//!
//! LOG-3: a record of another lake, dataset or number than its place says is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef, Layer};
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
        for layer in Layer::ALL {
            let layer_dir = root.child(layer.as_str());
            for name in lake.store().list_names(&layer_dir).await? {
                let Ok(dataset) = name.parse() else {
                    continue;
                };
                let dir = layer_dir.child(&name);
                // A put that died before its link may have left the folder alone.
                if !lake.store().list_names(&dir).await?.is_empty() {
                    found.insert(DatasetRef { layer, dataset });
                }
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The numbers of all records that lie in the dataset's log, in order.
pub async fn list_numbers(lake: &Lake, dataset: &DatasetRef) -> Result<Vec<u64>> {
    let names = lake.store().list_names(&log_dir(dataset)).await?;
    // Names have twenty digits, so their order is that of the numbers.
    Ok(names.iter().filter_map(|n| log_number(n)).collect())
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

pub(super) fn parse_record(path: &StorePath, bytes: &[u8]) -> Result<Record> {
    if let Ok(record) = serde_json::from_slice::<Record>(bytes)
        && record.min_reader <= RECORD_FORMAT
    {
        return Ok(record);
    }
    // Something is wrong with it; why, the slow way tells.
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
