//! Walking a log from a position on: records in order, read ahead several at once, the chain checked.
//!
//! LOG-1: numbers run from 1 without a hole. LOG-2: each record names the BLAKE3 of the one before.
//!
//! Whoever holds a position asks for the next number by its name and lists nothing; the whole log is
//! listed only where it is read from its beginning or for the first time, and a hole anywhere in it is
//! found then.

use std::ops::RangeInclusive;

use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::log::read::{LoggedRecord, list_numbers, parse_record, read_record};
use crate::name::{ContentHash, DatasetRef};
use crate::spec::LogPosition;
use crate::store::{Lake, log_record_path};

/// Records of one batch at most: bounds what is in memory at once.
const BATCH: u64 = 1024;
/// Records that one task reads one after the other.
const PIECE: u64 = 32;
/// Records of the first batch where the end is not known: most often there is none or one.
const FIRST_PROBE: u64 = 1;
/// How much larger each further batch is.
const GROWTH: u64 = 8;

/// A walk over the records of a log.
#[derive(Debug)]
pub struct LogWalk {
    lake: Lake,
    dataset: DatasetRef,
    at: LogPosition,
    /// Where the log ends, if it was listed.
    last: Option<u64>,
    probe: u64,
}

impl LogWalk {
    /// Walks on from `from`; the names of the whole log are looked at first.
    pub async fn whole(lake: &Lake, dataset: &DatasetRef, from: LogPosition) -> Result<Self> {
        let last = check_numbers(dataset, &list_numbers(lake, dataset).await?)?;
        if last < from.number {
            return Err(ends_early(dataset, last, from.number));
        }
        let mut walk = Self::after(lake, dataset, from).await?;
        walk.last = Some(last);
        Ok(walk)
    }

    /// Walks on from `from` without listing the log.
    pub async fn after(lake: &Lake, dataset: &DatasetRef, from: LogPosition) -> Result<Self> {
        check_position(lake, dataset, &from).await?;
        Ok(Self {
            lake: lake.clone(),
            dataset: dataset.clone(),
            at: from,
            last: None,
            probe: FIRST_PROBE,
        })
    }

    /// Stops after record `number`, where the log does not end before it.
    #[must_use]
    pub fn until(mut self, number: u64) -> Self {
        self.last = Some(self.last.map_or(number, |last| last.min(number)));
        self
    }

    /// The next records, at least one; none at the end of the log.
    pub async fn next_batch(&mut self) -> Result<Vec<LoggedRecord>> {
        loop {
            let next = self.at.number + 1;
            let wanted = match self.last {
                Some(last) => BATCH.min(last.saturating_sub(self.at.number)),
                None => self.probe,
            };
            if wanted == 0 {
                return Ok(Vec::new());
            }
            let mut records =
                read_span(&self.lake, &self.dataset, next..=next + wanted - 1).await?;
            if records.is_empty() {
                if self.last.is_some() {
                    return Err(hole(&self.dataset, next));
                }
                if self.is_end(next).await? {
                    return Ok(Vec::new());
                }
                continue;
            }
            self.probe = if records.len() as u64 == wanted {
                BATCH.min(self.probe * GROWTH)
            } else {
                FIRST_PROBE
            };
            for logged in &mut records {
                self.follow(logged)?;
            }
            return Ok(records);
        }
    }

    /// Whether nothing follows the absent record `next`: a record behind it makes it a hole, unless
    /// both were put between the two looks.
    async fn is_end(&self, next: u64) -> Result<bool> {
        let store = self.lake.store();
        let at = |number| log_record_path(&self.dataset, number);
        if store.find_size(&at(next + 1)).await?.is_none() {
            return Ok(true);
        }
        if store.find_size(&at(next)).await?.is_none() {
            return Err(hole(&self.dataset, next));
        }
        Ok(false)
    }

    /// LOG-2.
    fn follow(&mut self, logged: &LoggedRecord) -> Result<()> {
        let number = logged.record.number;
        if logged.record.previous != self.at.hash {
            return Err(Error::corrupt(format!(
                "record {number} of `{}` does not follow record {}",
                self.dataset, self.at.number
            ))
            .with("file", log_record_path(&self.dataset, number))
            .with("invariant", "LOG-2")
            .hint("one of the two records was changed or comes from elsewhere; restore it from a backup"));
        }
        self.at = logged.position();
        Ok(())
    }
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
    let mut walk = if position.number == 0 {
        LogWalk::whole(lake, dataset, position.clone()).await?
    } else {
        LogWalk::after(lake, dataset, position.clone()).await?
    };
    let mut records = Vec::new();
    loop {
        let batch = walk.next_batch().await?;
        if batch.is_empty() {
            return Ok(records);
        }
        records.extend(batch);
    }
}

/// Refuses a log that ends before `position` or has another record there (CAT-3).
pub async fn check_position(
    lake: &Lake,
    dataset: &DatasetRef,
    position: &LogPosition,
) -> Result<()> {
    if position.number == 0 {
        return Ok(());
    }
    let path = log_record_path(dataset, position.number);
    let Some(bytes) = lake.store().find(&path).await? else {
        let last = check_numbers(dataset, &list_numbers(lake, dataset).await?)?;
        return Err(ends_early(dataset, last, position.number));
    };
    if Some(&ContentHash::of(&bytes)) == position.hash.as_ref() {
        return Ok(());
    }
    // A record that a newer program wrote, or that is none at all, says so itself.
    parse_record(&path, &bytes)?;
    Err(Error::corrupt(format!(
        "record {} of `{dataset}` is not the one that was applied",
        position.number
    ))
    .with("file", path)
    .with("invariant", "CAT-3")
    .hint("the lake and the catalog have different pasts: check which lake this is, then `lakebed catalog rebuild`"))
}

/// The last number; LOG-1.
fn check_numbers(dataset: &DatasetRef, numbers: &[u64]) -> Result<u64> {
    let mut next = 1;
    for number in numbers {
        if *number != next {
            return Err(hole(dataset, next));
        }
        next += 1;
    }
    Ok(next - 1)
}

fn hole(dataset: &DatasetRef, missing: u64) -> Error {
    Error::corrupt(format!(
        "the log of `{dataset}` has a hole: record {missing} is missing"
    ))
    .with("file", log_record_path(dataset, missing))
    .with("invariant", "LOG-1")
    .hint("restore the record from a backup of the lake; nothing was changed")
}

fn ends_early(dataset: &DatasetRef, last: u64, expected: u64) -> Error {
    Error::corrupt(format!("the log of `{dataset}` ends at record {last}"))
        .with("expected at least", expected)
        .with("invariant", "CAT-3")
        .hint("the lake is older than the catalog: restore the lake, or delete the catalog and run `lakebed catalog rebuild`")
}

/// The records of these numbers up to the first that is not there.
async fn read_span(
    lake: &Lake,
    dataset: &DatasetRef,
    numbers: RangeInclusive<u64>,
) -> Result<Vec<LoggedRecord>> {
    let (first, last) = numbers.into_inner();
    if last - first < PIECE {
        return read_piece(lake.clone(), dataset.clone(), first..=last).await;
    }
    let mut reads = JoinSet::new();
    let mut begin = first;
    while begin <= last {
        let end = last.min(begin + PIECE - 1);
        let (lake, dataset) = (lake.clone(), dataset.clone());
        reads.spawn(async move { (begin, read_piece(lake, dataset, begin..=end).await) });
        begin = end + 1;
    }
    let mut pieces = Vec::new();
    while let Some(read) = reads.join_next().await {
        pieces.push(read.map_err(|e| Error::internal("read the log").caused_by(e))?);
    }
    pieces.sort_by_key(|(begin, _)| *begin);
    let mut records = Vec::new();
    for (begin, piece) in pieces {
        if begin != first + records.len() as u64 {
            break;
        }
        records.extend(piece?);
    }
    Ok(records)
}

async fn read_piece(
    lake: Lake,
    dataset: DatasetRef,
    numbers: RangeInclusive<u64>,
) -> Result<Vec<LoggedRecord>> {
    let mut records = Vec::new();
    for number in numbers {
        match read_record(&lake, &dataset, number).await? {
            Some(logged) => records.push(logged),
            None => break,
        }
    }
    Ok(records)
}
