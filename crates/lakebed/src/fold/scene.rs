//! A window while it is folded: what each input says of its keys, the columns that are worked out, and the arrays
//! that a column is gathered from.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;

use crate::error::Result;
use crate::fold::cells::{arrow_failed, conform, day_at, int_at};
use crate::fold::rules::FoldRules;
use crate::fold::window::{At, Window, WindowInput};

/// What happened to the keys of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Keys of the snapshot.
    pub keys: u64,
    /// Keys that were not known.
    pub appeared: u64,
    /// Values of watched fields that changed.
    pub changed: u64,
    /// Keys that were in the list of yesterday and are in that of today no more.
    pub vanished: u64,
    /// Keys that are in the list again.
    pub returned: u64,
    /// Keys that left the snapshot.
    pub dropped: u64,
    /// Keys that were in the list when it was looked at last.
    pub present_before: u64,
    /// Rows of earlier days.
    pub late_rows: u64,
}

impl WindowCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            appeared: self.appeared + other.appeared,
            changed: self.changed + other.changed,
            vanished: self.vanished + other.vanished,
            returned: self.returned + other.returned,
            dropped: self.dropped + other.dropped,
            present_before: self.present_before + other.present_before,
            late_rows: self.late_rows + other.late_rows,
        }
    }
}

/// What an input says of the keys of a window.
pub(super) struct Sight {
    /// The newest row that does not say gone.
    pub(super) newest: Vec<Option<At>>,
    /// How many such rows there are.
    pub(super) rows: Vec<u32>,
    /// Whether one of them is of this day.
    pub(super) today: Vec<bool>,
    /// First and last day of them.
    pub(super) days: Vec<Option<(i32, i32)>>,
    /// Whether a row says gone.
    pub(super) gone: Vec<bool>,
    /// The last day with any row.
    pub(super) touched: Vec<Option<i32>>,
}

/// A window while it is folded.
pub(super) struct Scene<'a> {
    pub(super) window: &'a Window,
    pub(super) sights: Vec<Sight>,
    /// Columns that are worked out, by rules' order: the key, then fields.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) key_len: usize,
}

/// What happened to a key as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    New,
    Same,
    Vanished,
    Returned,
}

impl<'a> Scene<'a> {
    /// Column and row of yesterday's value; `None` where the key was not known.
    pub(super) fn old(&self, at: usize, key: usize) -> Option<(&'a ArrayRef, usize)> {
        let (batch, row) = self.window.previous[key]?;
        Some((self.window.old[batch as usize].column(at), row as usize))
    }

    pub(super) fn days_before(&self, rules: &FoldRules, key: usize) -> Option<i64> {
        let at = self.key_len + rules.absent_field()?;
        self.old(at, key)
            .and_then(|(column, row)| int_at(column, row))
    }

    /// What happened to a key as a whole.
    pub(super) fn presence_of(&self, rules: &FoldRules, key: usize) -> Presence {
        if self.window.previous[key].is_none() {
            return Presence::New;
        }
        let now = rules.absent_field();
        let now = now.and_then(|field| int_at(&self.columns[self.key_len + field], key));
        match (self.days_before(rules, key), now) {
            (Some(0), Some(1..)) => Presence::Vanished,
            (Some(1..), Some(0)) => Presence::Returned,
            _ => Presence::Same,
        }
    }
}

/// Looks at the rows of an input.
pub(super) fn look(input: &WindowInput, key_len: usize, today: i32) -> Sight {
    let keys = input.ends.len();
    let mut sight = Sight {
        newest: vec![None; keys],
        rows: vec![0; keys],
        today: vec![false; keys],
        days: vec![None; keys],
        gone: vec![false; keys],
        touched: vec![None; keys],
    };
    let gone: Vec<&BooleanArray> = input
        .batches
        .iter()
        .map(|b| b.column(key_len + 2).as_boolean())
        .collect();
    for key in 0..keys {
        for at in input.of(key) {
            let (batch, row) = (at.0 as usize, at.1 as usize);
            let day = day_at(input.batches[batch].column(key_len + 1), row).unwrap_or(today);
            sight.touched[key] = sight.touched[key].max(Some(day));
            if gone[batch].value(row) {
                sight.gone[key] = true;
                continue;
            }
            sight.newest[key] = Some(*at);
            sight.rows[key] += 1;
            sight.today[key] |= day == today;
            let (first, last) = sight.days[key].unwrap_or((day, day));
            sight.days[key] = Some((first.min(day), last.max(day)));
        }
    }
    sight
}

/// No value.
pub(super) const NULL: (usize, usize) = (0, 0);

/// Arrays that a column is gathered from: a null, yesterday's batches, then those of inputs.
pub(super) struct Sources {
    of: DataType,
    arrays: Vec<ArrayRef>,
    inputs: Vec<usize>,
}

impl Sources {
    pub(super) fn of(of: &DataType, window: &Window, old: usize) -> Result<Self> {
        let mut sources = Self {
            of: of.clone(),
            arrays: vec![new_null_array(of, 1)],
            inputs: Vec::new(),
        };
        for batch in &window.old {
            sources.add_array(batch.column(old))?;
        }
        Ok(sources)
    }

    pub(super) fn add(&mut self, batches: &[RecordBatch], column: usize) -> Result<()> {
        self.inputs.push(self.arrays.len());
        for batch in batches {
            self.add_array(batch.column(column))?;
        }
        Ok(())
    }

    pub(super) fn add_array(&mut self, array: &ArrayRef) -> Result<usize> {
        self.arrays.push(conform(array, &self.of, false)?);
        Ok(self.arrays.len() - 1)
    }

    pub(super) fn old(&self, at: At) -> (usize, usize) {
        (1 + at.0 as usize, at.1 as usize)
    }

    pub(super) fn input(&self, n: usize, at: At) -> (usize, usize) {
        (self.inputs[n] + at.0 as usize, at.1 as usize)
    }

    pub(super) fn is_valid(&self, at: (usize, usize)) -> bool {
        self.arrays[at.0].is_valid(at.1)
    }

    pub(super) fn gather(&self, places: impl Iterator<Item = (usize, usize)>) -> Result<ArrayRef> {
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(|a| &**a).collect();
        let places: Vec<(usize, usize)> = places.collect();
        interleave(&arrays, &places).map_err(|e| arrow_failed("gather a column", e))
    }
}

/// Yesterday's values of a column, null where the key was not known.
pub(super) fn old_column(of: &DataType, window: &Window, at: usize) -> Result<ArrayRef> {
    let sources = Sources::of(of, window, at)?;
    let places = window.previous.iter();
    sources.gather(places.map(|old| old.map_or(NULL, |old| sources.old(old))))
}
