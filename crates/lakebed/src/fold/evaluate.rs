//! The fields of a window, column by column: for each key the place of its value is found, then the column is
//! gathered from yesterday's batches and those of today.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Int64Array, PrimitiveArray, RecordBatch,
    StringArray, new_null_array,
};
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;

use crate::error::Result;
use crate::fold::cells::{arrow_failed, conform, day_at, fingerprint, hash_value, int_at};
use crate::fold::event;
use crate::fold::rules::{BoundRules, Place, Rule};
use crate::fold::status;
use crate::fold::window::{At, Window, WindowInput};
use crate::spec::arrow_schema;
use crate::time::BusinessDate;

/// The day that is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldDay {
    /// The business date.
    pub date: BusinessDate,
    /// Whether the input of presence is the complete list of the day (FLD-2).
    pub complete: bool,
    /// Whether events are told.
    pub events: bool,
}

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

/// A folded window.
pub struct FoldedWindow {
    /// Rows of the snapshot, with all columns of its files.
    pub snapshot: RecordBatch,
    /// Events, with all columns of their files.
    pub events: RecordBatch,
    /// What was counted.
    pub counts: WindowCounts,
}

/// Folds windows of one day.
pub struct Evaluator {
    pub(super) bound: BoundRules,
    pub(super) day: FoldDay,
    snapshot: SchemaRef,
    events: SchemaRef,
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

/// Typed columns of the batches of an input.
struct InputArrays<'a> {
    instants: Vec<&'a PrimitiveArray<TimestampMicrosecondType>>,
    gone: Vec<&'a BooleanArray>,
}

/// Which row of today gives a field its value.
#[derive(Clone, Copy)]
struct Choice {
    newest: bool,
    null_too: bool,
}

impl Evaluator {
    /// For the windows of a day.
    #[must_use]
    pub fn new(bound: BoundRules, day: FoldDay) -> Self {
        Self {
            snapshot: Arc::new(arrow_schema(&bound.snapshot)),
            events: Arc::new(arrow_schema(&bound.events)),
            bound,
            day,
        }
    }

    /// Folds a window.
    pub fn evaluate(&self, window: &Window) -> Result<FoldedWindow> {
        let rules = &*self.bound.rules;
        let sights = window
            .inputs
            .iter()
            .map(|i| look(i, rules.key_len, self.day.date.days()));
        let mut scene = Scene {
            window,
            sights: sights.collect(),
            columns: Vec::with_capacity(rules.specs.len()),
            key_len: rules.key_len,
        };
        for at in 0..rules.key_len {
            let column = self.key_column(&scene, at)?;
            scene.columns.push(column);
        }
        for at in 0..rules.fields.len() {
            let column = self.field(&scene, at)?;
            scene.columns.push(column);
        }
        let mut counts = self.count(&scene);
        let events = match self.day.events {
            true => event::events(self, &scene, &mut counts)?,
            false => event::none(self),
        };
        let kept = self.kept(&scene);
        let order = self
            .bound
            .order
            .iter()
            .map(|at| Arc::clone(&scene.columns[*at]));
        let snapshot = self.batch(&self.snapshot, order.collect())?;
        let snapshot = match &kept {
            None => snapshot,
            Some(kept) => filter_record_batch(&snapshot, kept)
                .map_err(|e| arrow_failed("leave dropped rows out", e))?,
        };
        counts.keys = snapshot.num_rows() as u64;
        counts.dropped = (window.len() - snapshot.num_rows()) as u64;
        Ok(FoldedWindow {
            events: self.batch(&self.events, events)?,
            snapshot,
            counts,
        })
    }

    /// The columns with `source` and `_extra`.
    fn batch(&self, schema: &SchemaRef, mut columns: Vec<ArrayRef>) -> Result<RecordBatch> {
        let rows = columns.first().map_or(0, |c| c.len());
        let source = self.bound.rules.source.as_str();
        columns.push(Arc::new(StringArray::from_iter_values(
            (0..rows).map(|_| source),
        )));
        columns.push(new_null_array(&DataType::Utf8, rows));
        RecordBatch::try_new(Arc::clone(schema), columns)
            .map_err(|e| arrow_failed("put columns together", e))
    }

    fn key_column(&self, scene: &Scene<'_>, at: usize) -> Result<ArrayRef> {
        let window = scene.window;
        let mut sources = Sources::of(&self.bound.types[at], window, at)?;
        for input in &window.inputs {
            sources.add(&input.batches, at)?;
        }
        let pick = |key: usize| {
            if let Some(old) = window.previous[key] {
                return sources.old(old);
            }
            let mut inputs = window.inputs.iter().enumerate();
            let found = inputs.find_map(|(n, input)| input.of(key).first().map(|row| (n, *row)));
            found.map_or(NULL, |(n, row)| sources.input(n, row))
        };
        sources.gather((0..window.len()).map(pick))
    }

    /// Place of the field's column among those of yesterday.
    fn field(&self, scene: &Scene<'_>, field: usize) -> Result<ArrayRef> {
        let rules = &*self.bound.rules;
        let at = rules.key_len + field;
        let window = scene.window;
        let keys = 0..window.len();
        let newest = |null_too| Choice {
            newest: true,
            null_too,
        };
        let oldest = |null_too| Choice {
            newest: false,
            null_too,
        };
        match &rules.fields[field].rule {
            Rule::Newest(places) => self.choose(scene, (at, places), newest(false), false),
            Rule::Last(places) => self.choose(scene, (at, places), newest(true), false),
            Rule::Sticky(places) => self.choose(scene, (at, places), oldest(false), true),
            Rule::First(places) => self.choose(scene, (at, places), oldest(true), true),
            Rule::Count(inputs) => {
                let count = |key: usize| {
                    let before = scene
                        .old(at, key)
                        .and_then(|(c, row)| int_at(c, row))
                        .unwrap_or(0);
                    let rows = inputs.iter().map(|n| i64::from(scene.sights[*n].rows[key]));
                    Some(before + rows.sum::<i64>())
                };
                Ok(Arc::new(keys.map(count).collect::<Int64Array>()))
            }
            Rule::DaysAbsent => {
                let absent = keys.map(|key| self.days_absent(scene, at, key));
                Ok(Arc::new(absent.collect::<Int64Array>()))
            }
            Rule::FirstSeen(inputs) => {
                let first = |key: usize| {
                    let days = inputs.iter().filter_map(|n| scene.sights[*n].days[key]);
                    let before = scene.old(at, key).and_then(|(c, row)| day_at(c, row));
                    before.or_else(|| days.map(|(first, _)| first).min())
                };
                Ok(Arc::new(keys.map(first).collect::<Date32Array>()))
            }
            Rule::LastSeen(inputs) => {
                let last = |key: usize| {
                    let days = inputs.iter().filter_map(|n| scene.sights[*n].days[key]);
                    let before = scene.old(at, key).and_then(|(c, row)| day_at(c, row));
                    before.max(days.map(|(_, last)| last).max())
                };
                Ok(Arc::new(keys.map(last).collect::<Date32Array>()))
            }
            Rule::LastTouched => {
                let last = |key: usize| {
                    let days = scene.sights.iter().filter_map(|s| s.touched[key]);
                    scene
                        .old(at, key)
                        .and_then(|(c, row)| day_at(c, row))
                        .max(days.max())
                };
                Ok(Arc::new(keys.map(last).collect::<Date32Array>()))
            }
            Rule::Fingerprint(input, columns) => {
                Ok(self.fingerprints(scene, at, (*input, columns)))
            }
            Rule::Copy { field, input } => self.copies(scene, at, (*field, *input)),
            Rule::Status { states, moves } => Ok(status::states(self, scene, at, (states, moves))),
        }
    }

    /// The value of a row of today, or that of yesterday. `keep`: yesterday's goes first; a null one only where no
    /// null is taken.
    fn choose(
        &self,
        scene: &Scene<'_>,
        (at, places): (usize, &[Place]),
        choice: Choice,
        keep: bool,
    ) -> Result<ArrayRef> {
        let (rules, window) = (&*self.bound.rules, scene.window);
        let mut sources = Sources::of(&self.bound.types[at], window, at)?;
        let mut inputs = Vec::new();
        for place in places {
            let input = &window.inputs[place.input];
            let column = rules.inputs[place.input].offset() + place.column;
            sources.add(&input.batches, column)?;
            inputs.push((input, InputArrays::of(input, rules.key_len)));
        }
        let pick = |key: usize| {
            let old = window.previous[key];
            if let (true, Some(old)) = (keep, old)
                && (choice.null_too || sources.is_valid(sources.old(old)))
            {
                return sources.old(old);
            }
            let mut best: Option<(Option<i64>, (usize, usize))> = None;
            for (n, (input, arrays)) in inputs.iter().enumerate() {
                let is_better = |instant: Option<i64>| match &best {
                    None => true,
                    Some((known, _)) if choice.newest => instant > *known,
                    Some((known, _)) => instant < *known,
                };
                let found = arrays.find(input.of(key), choice, |row| {
                    sources.is_valid(sources.input(n, row))
                });
                if let Some((row, instant)) = found
                    && is_better(instant)
                {
                    best = Some((instant, sources.input(n, row)));
                }
            }
            match (best, old) {
                (Some((_, source)), _) => source,
                (None, Some(old)) => sources.old(old),
                (None, None) => NULL,
            }
        };
        sources.gather((0..window.len()).map(pick))
    }

    /// Days since the list had the key last: 0 = today; null = it never had it.
    fn days_absent(&self, scene: &Scene<'_>, at: usize, key: usize) -> Option<i64> {
        let before = scene
            .old(at, key)
            .and_then(|(column, row)| int_at(column, row));
        let sight = &scene.sights[self.bound.rules.presence()?];
        if sight.today[key] {
            return Some(0);
        }
        let counted = match self.day.complete {
            true => before.map(|days| days + 1),
            false => before,
        };
        // A row that came late says that it was there on its day.
        let late = sight.days[key].map(|(_, last)| i64::from(self.day.date.days() - last));
        match (counted, late) {
            (Some(counted), Some(late)) => Some(counted.min(late)),
            (counted, late) => counted.or(late),
        }
    }

    fn fingerprints(
        &self,
        scene: &Scene<'_>,
        at: usize,
        (input, columns): (usize, &[usize]),
    ) -> ArrayRef {
        let of = &scene.window.inputs[input];
        let offset = self.bound.rules.inputs[input].offset();
        let mut texts = StringBuilder::with_capacity(scene.window.len(), scene.window.len() * 16);
        let mut bytes = Vec::new();
        for key in 0..scene.window.len() {
            match scene.sights[input].newest[key] {
                Some((batch, row)) => {
                    bytes.clear();
                    let batch = &of.batches[batch as usize];
                    for column in columns {
                        hash_value(batch.column(offset + column), row as usize, &mut bytes);
                    }
                    texts.append_value(fingerprint(&bytes));
                }
                None => match scene.old(at, key) {
                    Some((old, row)) if old.is_valid(row) => {
                        texts.append_value(old.as_string::<i32>().value(row))
                    }
                    _ => texts.append_null(),
                },
            }
        }
        Arc::new(texts.finish())
    }

    fn copies(
        &self,
        scene: &Scene<'_>,
        at: usize,
        (field, input): (usize, usize),
    ) -> Result<ArrayRef> {
        let mut sources = Sources::of(&self.bound.types[at], scene.window, at)?;
        let copied = sources.add_array(&scene.columns[scene.key_len + field])?;
        let pick = |key: usize| match (scene.sights[input].newest[key], scene.window.previous[key])
        {
            (Some(_), _) => (copied, key),
            (None, Some(old)) => sources.old(old),
            (None, None) => NULL,
        };
        sources.gather((0..scene.window.len()).map(pick))
    }

    /// The keys that stay; `None` = all.
    fn kept(&self, scene: &Scene<'_>) -> Option<BooleanArray> {
        let drop = self.bound.rules.drop.as_ref()?;
        let Rule::Status { states, .. } = &self.bound.rules.fields[drop.status].rule else {
            return None;
        };
        let status = scene.columns[scene.key_len + drop.status].as_string::<i32>();
        let touched = &scene.columns[scene.key_len + drop.touched];
        let is_dropped = |key: usize| {
            let state = status.value(key);
            let named = drop.states.iter().any(|n| states[*n] == state);
            let untouched = day_at(touched, key).map(|day| self.day.date.days() - day);
            named && untouched.is_some_and(|days| days >= drop.untouched_days)
        };
        let mut kept = BooleanBuilder::with_capacity(scene.window.len());
        let mut all = true;
        for key in 0..scene.window.len() {
            let stays = !is_dropped(key);
            all &= stays;
            kept.append_value(stays);
        }
        (!all).then(|| kept.finish())
    }

    /// What is told of a fold whose events are not.
    fn count(&self, scene: &Scene<'_>) -> WindowCounts {
        let mut counts = WindowCounts::default();
        let today = self.day.date.days();
        let late = |input: &WindowInput| {
            let day = |at: &At| {
                day_at(
                    input.batches[at.0 as usize].column(scene.key_len + 1),
                    at.1 as usize,
                )
            };
            input
                .rows
                .iter()
                .filter(|at| day(at).is_some_and(|day| day < today))
                .count() as u64
        };
        counts.late_rows = scene.window.inputs.iter().map(late).sum();
        for key in 0..scene.window.len() {
            match self.presence_of(scene, key) {
                Presence::New => counts.appeared += 1,
                Presence::Vanished => counts.vanished += 1,
                Presence::Returned => counts.returned += 1,
                Presence::Same => {}
            }
            counts.present_before += u64::from(self.days_before(scene, key) == Some(0));
        }
        counts
    }

    fn days_before(&self, scene: &Scene<'_>, key: usize) -> Option<i64> {
        let at = scene.key_len + self.bound.rules.absent_field()?;
        scene
            .old(at, key)
            .and_then(|(column, row)| int_at(column, row))
    }

    /// What happened to a key as a whole.
    pub(super) fn presence_of(&self, scene: &Scene<'_>, key: usize) -> Presence {
        if scene.window.previous[key].is_none() {
            return Presence::New;
        }
        let now = self.bound.rules.absent_field();
        let now = now.and_then(|field| int_at(&scene.columns[scene.key_len + field], key));
        match (self.days_before(scene, key), now) {
            (Some(0), Some(1..)) => Presence::Vanished,
            (Some(1..), Some(0)) => Presence::Returned,
            _ => Presence::Same,
        }
    }
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
}

fn look(input: &WindowInput, key_len: usize, today: i32) -> Sight {
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

impl<'a> InputArrays<'a> {
    fn of(input: &'a WindowInput, key_len: usize) -> Self {
        let column = |n: usize| input.batches.iter().map(move |b| b.column(key_len + n));
        Self {
            instants: column(0).map(|c| c.as_primitive()).collect(),
            gone: column(2).map(|c| c.as_boolean()).collect(),
        }
    }

    /// The row that is chosen of those of a key, with its instant.
    fn find(
        &self,
        rows: &[At],
        choice: Choice,
        is_valid: impl Fn(At) -> bool,
    ) -> Option<(At, Option<i64>)> {
        let fits = |at: &&At| {
            let (batch, row) = (at.0 as usize, at.1 as usize);
            !self.gone[batch].value(row) && (choice.null_too || is_valid(**at))
        };
        let found = match choice.newest {
            true => rows.iter().rev().find(fits),
            false => rows.iter().find(fits),
        };
        let at = *found?;
        let instants = self.instants[at.0 as usize];
        let row = at.1 as usize;
        Some((at, instants.is_valid(row).then(|| instants.value(row))))
    }
}

/// No value.
const NULL: (usize, usize) = (0, 0);

/// Arrays that a column is gathered from: a null, yesterday's batches, then those of inputs.
struct Sources {
    of: DataType,
    arrays: Vec<ArrayRef>,
    inputs: Vec<usize>,
}

impl Sources {
    fn of(of: &DataType, window: &Window, old: usize) -> Result<Self> {
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

    fn add(&mut self, batches: &[RecordBatch], column: usize) -> Result<()> {
        self.inputs.push(self.arrays.len());
        for batch in batches {
            self.add_array(batch.column(column))?;
        }
        Ok(())
    }

    fn add_array(&mut self, array: &ArrayRef) -> Result<usize> {
        self.arrays.push(conform(array, &self.of, false)?);
        Ok(self.arrays.len() - 1)
    }

    fn old(&self, at: At) -> (usize, usize) {
        (1 + at.0 as usize, at.1 as usize)
    }

    fn input(&self, n: usize, at: At) -> (usize, usize) {
        (self.inputs[n] + at.0 as usize, at.1 as usize)
    }

    fn is_valid(&self, at: (usize, usize)) -> bool {
        self.arrays[at.0].is_valid(at.1)
    }

    fn gather(&self, places: impl Iterator<Item = (usize, usize)>) -> Result<ArrayRef> {
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

impl BoundRules {
    /// Columns of yesterday's snapshot as windows take them.
    #[must_use]
    pub fn previous_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.previous_columns()))
    }
}
