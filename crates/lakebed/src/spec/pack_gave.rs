//! What the pages of a pack gave for a dataset, as the name of an input in its log: the label beside it names rules
//! and pack, this says in words what came of them. So the counts of a date are asked of the log, wherever its packs are.
//!
//! ```text
//! day pages=35 parsed=34 rejected=0 unmatched=1 barren=0 links=34 totals=0 rejects=1 of=34 records=33 faulty=1
//! ```

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::name::RunName;

/// What all pages of a pack gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PackCounts {
    /// Captures that made a request done: `parsed + rejected + unmatched`.
    pub pages: u64,
    /// Pages that a rule took.
    pub parsed: u64,
    /// Pages that were rejected as a whole.
    pub rejected: u64,
    /// Pages that no rule fits.
    pub unmatched: u64,
    /// Of the parsed: those that gave neither record nor link.
    pub barren: u64,
    /// Links that the rules found.
    pub follow_ups: u64,
    /// Announced totals.
    pub expectations: u64,
    /// Rejects of links, records and pages.
    pub rejects: u64,
}

/// What they gave for one dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DatasetCounts {
    /// Pages of a kind that gives its records.
    pub pages: u64,
    /// Records.
    pub records: u64,
    /// Records that were rejected.
    pub rejects: u64,
}

/// What a pack gave for a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackGave {
    /// Its run.
    pub run: RunName,
    /// All pages.
    pub pack: PackCounts,
    /// Of the dataset.
    pub dataset: DatasetCounts,
}

impl PackCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            pages: self.pages + other.pages,
            parsed: self.parsed + other.parsed,
            rejected: self.rejected + other.rejected,
            unmatched: self.unmatched + other.unmatched,
            barren: self.barren + other.barren,
            follow_ups: self.follow_ups + other.follow_ups,
            expectations: self.expectations + other.expectations,
            rejects: self.rejects + other.rejects,
        }
    }
}

impl DatasetCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            pages: self.pages + other.pages,
            records: self.records + other.records,
            rejects: self.rejects + other.rejects,
        }
    }
}

impl fmt::Display for PackGave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pack, of) = (&self.pack, &self.dataset);
        write!(
            f,
            "{} pages={} parsed={} rejected={} unmatched={} barren={} links={} totals={} rejects={} of={} records={} faulty={}",
            self.run,
            pack.pages,
            pack.parsed,
            pack.rejected,
            pack.unmatched,
            pack.barren,
            pack.follow_ups,
            pack.expectations,
            pack.rejects,
            of.pages,
            of.records,
            of.rejects,
        )
    }
}

impl FromStr for PackGave {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::corrupt(format!("`{text}` does not say what a pack gave"));
        let mut words = text.split(' ');
        let run = words.next().unwrap_or_default().parse()?;
        let mut count = |name: &str| {
            let word = words.next().and_then(|w| w.strip_prefix(name));
            let number = word.and_then(|w| w.strip_prefix('='));
            number.and_then(|n| n.parse().ok()).ok_or_else(wrong)
        };
        Ok(Self {
            run,
            pack: PackCounts {
                pages: count("pages")?,
                parsed: count("parsed")?,
                rejected: count("rejected")?,
                unmatched: count("unmatched")?,
                barren: count("barren")?,
                follow_ups: count("links")?,
                expectations: count("totals")?,
                rejects: count("rejects")?,
            },
            dataset: DatasetCounts {
                pages: count("of")?,
                records: count("records")?,
                rejects: count("faulty")?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_every_count_and_nothing_else_is_one() {
        let text = "day-detail pages=1 parsed=2 rejected=3 unmatched=4 barren=5 links=6 totals=7 rejects=8 of=9 records=10 faulty=11";
        let gave: PackGave = text.parse().unwrap();
        assert_eq!(gave.to_string(), text);
        assert_eq!((gave.pack.rejects, gave.dataset.rejects), (8, 11));
        for wrong in ["", "day", "books.jsonl", &text.replace("links", "link")] {
            assert!(wrong.parse::<PackGave>().is_err(), "{wrong}");
        }
    }
}
