//! A text column that grows value by value and can be cut back to an earlier row.
//!
//! Texts go straight to the buffers of the finished array: a copy of all texts, and a check that texts
//! are texts, would cost more than to read them. Such buffers cannot be cut, so rows that are cut off
//! stay where they are, marked, and are left out when the column is handed on; few columns have any.

use std::ops::Range;

use arrow_array::StringArray;
use arrow_array::builder::StringBuilder;

use crate::ingest::convert::column::{TooLarge, with_slack};

/// Most bytes of a column, by the 32-bit offsets of Arrow.
const MAX_BYTES: usize = (1 << 31) - 1;

/// Texts.
#[derive(Debug)]
pub(crate) struct Texts {
    built: StringBuilder,
    /// Rows of `built` that were cut off, in order; no two ranges touch.
    cut: Vec<Range<usize>>,
    /// How many they are.
    cut_rows: usize,
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self {
            built: StringBuilder::new(),
            cut: Vec::new(),
            cut_rows: 0,
        }
    }

    /// Rows, without those that were cut off.
    pub(crate) fn len(&self) -> usize {
        self.built.offsets_slice().len() - 1 - self.cut_rows
    }

    /// Bytes of all texts, those that were cut off as well.
    pub(crate) fn bytes(&self) -> usize {
        self.built.values_slice().len()
    }

    #[inline]
    pub(crate) fn push(&mut self, text: &str) -> Result<(), TooLarge> {
        if text.len() > MAX_BYTES - self.bytes() {
            return Err(TooLarge);
        }
        self.built.append_value(text);
        Ok(())
    }

    #[inline]
    pub(crate) fn push_null(&mut self) {
        self.built.append_null();
    }

    /// The text that was pushed last, unless it was cut off.
    pub(crate) fn last(&self) -> Option<&str> {
        let (end, before) = self.built.offsets_slice().split_last()?;
        let (end, begin) = (
            usize::try_from(*end).ok()?,
            usize::try_from(*before.last()?).ok()?,
        );
        if self.cut.last().is_some_and(|c| c.end == before.len()) {
            return None;
        }
        std::str::from_utf8(self.built.values_slice().get(begin..end)?).ok()
    }

    /// Cuts the column back to `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        let mut excess = self.len().saturating_sub(rows);
        if excess == 0 {
            return;
        }
        self.cut_rows += excess;
        let end = self.built.offsets_slice().len() - 1;
        let mut start = end;
        while excess > 0 {
            if let Some(before) = self.cut.pop_if(|c| c.end == start) {
                start = before.start;
                continue;
            }
            let floor = self.cut.last().map_or(0, |c| c.end);
            let step = excess.min(start - floor);
            start -= step;
            excess -= step;
        }
        if let Some(before) = self.cut.pop_if(|c| c.end == start) {
            start = before.start;
        }
        self.cut.push(start..end);
    }

    /// Hands the rows out and leaves the column empty.
    pub(crate) fn finish(&mut self) -> StringArray {
        let rows = self.built.offsets_slice().len();
        let next = StringBuilder::with_capacity(with_slack(rows), with_slack(self.bytes()));
        let array = std::mem::replace(&mut self.built, next).finish();
        let cut = std::mem::take(&mut self.cut);
        let kept = rows - 1 - std::mem::take(&mut self.cut_rows);
        if cut.is_empty() {
            return array;
        }
        let mut rest = StringBuilder::with_capacity(kept, array.value_data().len());
        let mut cut = cut.into_iter().peekable();
        for (row, text) in array.iter().enumerate() {
            while cut.next_if(|c| c.end <= row).is_some() {}
            if !cut.peek().is_some_and(|c| c.contains(&row)) {
                rest.append_option(text);
            }
        }
        rest.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(Option<String>),
        /// Of so many hundredths of the rows.
        Truncate(usize),
        Finish,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => proptest::option::of("[a-z年]{0,4}").prop_map(Step::Push),
            3 => (0_usize..=100).prop_map(Step::Truncate),
            1 => Just(Step::Finish),
        ]
    }

    proptest! {
        #[test]
        fn a_cut_column_is_that_of_the_rows_that_are_left(steps in proptest::collection::vec(step(), 0..60)) {
            let mut texts = Texts::new();
            let mut rows: Vec<Option<String>> = Vec::new();
            for step in steps.into_iter().chain([Step::Finish]) {
                match step {
                    Step::Push(Some(text)) => {
                        prop_assert_eq!(texts.push(&text), Ok(()));
                        rows.push(Some(text));
                    }
                    Step::Push(None) => {
                        texts.push_null();
                        rows.push(None);
                    }
                    Step::Truncate(percent) => {
                        rows.truncate(rows.len() * percent / 100);
                        texts.truncate(rows.len());
                    }
                    Step::Finish => {
                        let wanted: StringArray = rows.drain(..).collect();
                        prop_assert_eq!(texts.finish(), wanted);
                    }
                }
                prop_assert_eq!(texts.len(), rows.len());
            }
        }
    }
}
