//! Where the records of an input were first met, for an input that was written from kept rejects.
//!
//! A person who looks for a record needs the file that was delivered and its line there; the scratch
//! file of a retry is gone when they look.

use std::sync::Arc;

/// The first place of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstPlace {
    /// Line, from 1, on which the record begins in the scratch file.
    scratch_line: u64,
    /// The input that was delivered, as its rejects name it.
    pub file: Arc<str>,
    /// The line, or row, on which it began there.
    pub line: u64,
    /// How it was first read, as in a rejects file.
    pub form: &'static str,
}

/// The first places of the records of one scratch file, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirstPlaces(Vec<FirstPlace>);

impl FirstPlaces {
    /// Adds the record that begins on the given line; lines only grow.
    pub(in crate::ingest) fn push(
        &mut self,
        scratch_line: u64,
        (file, line): (&str, u64),
        form: &'static str,
    ) {
        // Rejects lie in the order of their inputs: the name is mostly that of the record before.
        let file = match self.0.last() {
            Some(last) if &*last.file == file => Arc::clone(&last.file),
            Some(_) | None => Arc::from(file),
        };
        self.0.push(FirstPlace {
            scratch_line,
            file,
            line,
            form,
        });
    }

    /// The place of the record that holds the line of the scratch file.
    #[must_use]
    pub fn find(&self, scratch_line: u64) -> Option<&FirstPlace> {
        let after = self.0.partition_point(|p| p.scratch_line <= scratch_line);
        self.0.get(after.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_belongs_to_the_record_that_begins_on_or_before_it() {
        let mut places = FirstPlaces::default();
        assert_eq!(places.find(1), None);
        places.push(1, ("a.csv", 7), "csv");
        places.push(3, ("a.csv", 90), "csv");
        places.push(4, ("b.csv", 2), "csv");
        let at = |line| places.find(line).map(|p| (&*p.file, p.line));
        assert_eq!(at(1), Some(("a.csv", 7)));
        assert_eq!(at(2), Some(("a.csv", 7)), "inside of a quoted cell");
        assert_eq!(at(3), Some(("a.csv", 90)));
        assert_eq!(at(9), Some(("b.csv", 2)));
    }
}
