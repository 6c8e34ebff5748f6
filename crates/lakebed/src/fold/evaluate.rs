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
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::filter_record_batch;

use crate::error::Result;
use crate::fold::bound::BoundRules;
use crate::fold::cells::{arrow_failed, day_at, fingerprint, hash_value, int_at};
use crate::fold::event;
use crate::fold::rules::{Place, Rule};
use crate::fold::scene::{NULL, Presence, Scene, Sources, WindowCounts, look};
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
    bound: BoundRules,
    day: FoldDay,
    snapshot: SchemaRef,
    events: SchemaRef,
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
            true => event::events(&self.bound, &scene, self.day.date.days())?,
            false => event::none(&self.bound),
        };
        counts.changed = event::count_changed(&self.bound, &events);
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
                    // A row that came late may be of an earlier day.
                    days.map(|(first, _)| first).chain(before).min()
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
            Rule::Status { states, moves } => Ok(status::states(rules, scene, at, (states, moves))),
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
        let rules = &*self.bound.rules;
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
            match scene.presence_of(rules, key) {
                Presence::New => counts.appeared += 1,
                Presence::Vanished => counts.vanished += 1,
                Presence::Returned => counts.returned += 1,
                Presence::Same => {}
            }
            counts.present_before += u64::from(scene.days_before(rules, key) == Some(0));
        }
        counts
    }
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
