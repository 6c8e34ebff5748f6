//! What a derived commit read: the names of its inputs, and of the parents of its files (docs/formats/log.md).
//!
//! ```text
//! input    clean/rent.list/dt=2026-11-30/revision=0@0..17    files of the date that records 1 to 17 added
//!          clean/rent.list/dt=2026-11-29/revision=0@14..17   those that came after record 14: late rows
//! parent   clean/rent.list/dt=2026-11-30/schema_version=2    and `/revision=n` where it is not 0
//! ```

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::name::DatasetRef;
use crate::spec::{ParentSpec, PartitionKey};
use crate::time::BusinessDate;

/// Files of a date of a dataset, by the records that added them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadRange {
    /// The dataset, as its text, so that ranges sort.
    pub dataset: String,
    /// The date.
    pub dt: BusinessDate,
    /// Revision that readers saw.
    pub revision: u32,
    /// Records up to this one were read before.
    pub after: u64,
    /// The last record of which a file was read; `after` where there was none.
    pub upto: u64,
}

impl ReadRange {
    /// As the parent that an input names; `None` where the text of the dataset is none.
    #[must_use]
    pub fn parent(&self) -> Option<ParentSpec> {
        Some(ParentSpec {
            dataset: self.dataset.parse().ok()?,
            dt: self.dt,
            from: None,
            revision: self.revision,
            position: self.upto,
        })
    }
}

impl fmt::Display for ReadRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/dt={}/revision={}@{}..{}",
            self.dataset, self.dt, self.revision, self.after, self.upto
        )
    }
}

impl FromStr for ReadRange {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| {
            Error::corrupt(format!("`{text}` names nothing that was read")).hint(
                "what was read is written `layer/dataset/dt=YYYY-MM-DD/revision=N@AFTER..UPTO`",
            )
        })
    }
}

fn parse(text: &str) -> Option<ReadRange> {
    let (dataset, rest) = text.split_once("/dt=")?;
    let (dt, rest) = rest.split_once("/revision=")?;
    let (revision, range) = rest.split_once('@')?;
    let (after, upto) = range.split_once("..")?;
    dataset.parse::<DatasetRef>().ok()?;
    let read = ReadRange {
        dataset: dataset.to_owned(),
        dt: dt.parse().ok()?,
        revision: revision.parse().ok()?,
        after: after.parse().ok()?,
        upto: upto.parse().ok()?,
    };
    // One text for one thing.
    (read.to_string() == text && read.after <= read.upto).then_some(read)
}

/// A partition as the parent of a file.
#[must_use]
pub fn parent_text(dataset: &DatasetRef, key: &PartitionKey) -> String {
    let folder = format!(
        "{dataset}/dt={}/schema_version={}",
        key.dt, key.schema_version
    );
    match key.revision {
        0 => folder,
        revision => format!("{folder}/revision={revision}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_has_one_text() {
        let text = "clean/rent.list/dt=2026-11-30/revision=2@14..17";
        let read: ReadRange = text.parse().unwrap();
        assert_eq!((read.revision, read.after, read.upto), (2, 14, 17));
        assert_eq!(read.to_string(), text);
        for bad in [
            "clean/rent.list/dt=2026-11-30/revision=2@17..14",
            "clean/rent.list/dt=2026-11-30/revision=02@1..2",
            "clean/rent.list/dt=2026-11-30/revision=2",
            "09.json",
        ] {
            assert!(bad.parse::<ReadRange>().is_err(), "{bad}");
        }
    }
}
