//! Time travel: a dataset as it was after a commit, or at an instant.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::log::state::DatasetState;
use crate::log::walk::read_after;
use crate::name::DatasetRef;
use crate::spec::LogPosition;
use crate::store::Lake;
use crate::time::Instant;

/// A point in the past of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AsOf {
    /// After the record of this number; 0 = before the first.
    Record(u64),
    /// After the last record that is not later than this.
    Instant(Instant),
}

impl FromStr for AsOf {
    type Err = Error;

    /// A record's number, or an RFC 3339 instant.
    fn from_str(text: &str) -> Result<Self> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map(Self::Record)
                .map_err(|e| Error::invalid(format!("`{text}` is no record number")).caused_by(e));
        }
        text.parse().map(Self::Instant).map_err(|_| {
            Error::invalid(format!("`{text}` is neither a record number nor an instant")).hint(
                "write the number that `lakebed log` shows, or an instant with its offset: 2026-11-30T08:00:00+08:00",
            )
        })
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(number) => write!(f, "record {number}"),
            Self::Instant(instant) => instant.fmt(f),
        }
    }
}

impl DatasetState {
    /// Folds the log up to a point in its past.
    ///
    /// # Errors
    /// `NotFound` for a record that the log does not have yet. An instant in the future is the present,
    /// one before the first record is a dataset without data.
    pub async fn load_as_of(lake: &Lake, dataset: &DatasetRef, as_of: AsOf) -> Result<Self> {
        let mut state = Self::empty(dataset.clone());
        for logged in read_after(lake, dataset, &LogPosition::START).await? {
            let is_later = match as_of {
                AsOf::Record(number) => logged.record.number > number,
                AsOf::Instant(instant) => logged.record.at > instant,
            };
            if is_later {
                return Ok(state);
            }
            state.apply(&logged)?;
        }
        match as_of {
            AsOf::Record(number) if number > state.position().number => Err(Error::not_found(
                format!("`{dataset}` has no record {number}"),
            )
            .with("last record", state.position().number)
            .hint(format!("`lakebed log {dataset}` shows every record"))),
            AsOf::Record(_) | AsOf::Instant(_) => Ok(state),
        }
    }
}
