//! What happened to the keys of a window: one row an event, by key, then the object as a whole, then its fields.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow_ord::cmp::distinct;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::take::take;

use crate::error::Result;
use crate::fold::bound::BoundRules;
use crate::fold::cells::{arrow_failed, conform, day_at, instant_at, push_json};
use crate::fold::scene::{Presence, Scene, old_column};
use crate::spec::{FieldType, arrow_schema};

/// A watched field with what it was and is, and which keys differ.
struct Watched {
    name: String,
    is_json: bool,
    old: ArrayRef,
    new: ArrayRef,
    differs: BooleanArray,
}

struct Rows {
    keys: Vec<u32>,
    event: StringBuilder,
    field: StringBuilder,
    old: StringBuilder,
    new: StringBuilder,
    late: BooleanBuilder,
    seen_at: TimestampMicrosecondBuilder,
}

impl Rows {
    fn add(
        &mut self,
        key: usize,
        event: &str,
        change: Option<&Watched>,
        seen: (bool, Option<i64>),
    ) {
        self.keys.push(u32::try_from(key).unwrap_or(u32::MAX));
        self.event.append_value(event);
        match change {
            None => {
                self.field.append_null();
                self.old.append_null();
                self.new.append_null();
            }
            Some(watched) => {
                self.field.append_value(&watched.name);
                for (array, into) in [(&watched.old, &mut self.old), (&watched.new, &mut self.new)]
                {
                    if array.is_null(key) {
                        into.append_null();
                        continue;
                    }
                    let mut text = String::new();
                    push_json(array, key, watched.is_json, &mut text);
                    into.append_value(&text);
                }
            }
        }
        self.late.append_value(seen.0);
        self.seen_at.append_option(seen.1);
    }
}

/// No event.
pub(super) fn none(bound: &BoundRules) -> Vec<ArrayRef> {
    let columns = arrow_schema(&bound.events);
    let fields = columns.fields().iter().take(bound.events.len());
    fields.map(|f| new_empty_array(f.data_type())).collect()
}

/// The columns of the events of a window, in the order of their files; `today` = the day.
pub(super) fn events(bound: &BoundRules, scene: &Scene<'_>, today: i32) -> Result<Vec<ArrayRef>> {
    let watched = watch(bound, scene)?;
    let mut rows = Rows {
        keys: Vec::new(),
        event: StringBuilder::new(),
        field: StringBuilder::new(),
        old: StringBuilder::new(),
        new: StringBuilder::new(),
        late: BooleanBuilder::new(),
        seen_at: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
    };
    for key in 0..scene.window.len() {
        let whole = match scene.presence_of(&bound.rules, key) {
            Presence::New => Some("appeared"),
            Presence::Vanished => Some("vanished"),
            Presence::Returned => Some("returned"),
            Presence::Same => None,
        };
        let is_known = scene.window.previous[key].is_some();
        if whole.is_none() && !(is_known && watched.iter().any(|w| w.differs.value(key))) {
            continue;
        }
        let seen = newest_row(scene, key, today);
        if let Some(event) = whole {
            rows.add(key, event, None, seen);
        }
        for one in watched.iter().filter(|w| is_known && w.differs.value(key)) {
            rows.add(key, "changed", Some(one), seen);
        }
    }
    finish(bound, scene, rows)
}

fn watch(bound: &BoundRules, scene: &Scene<'_>) -> Result<Vec<Watched>> {
    let rules = &*bound.rules;
    let one = |field: &usize| {
        let at = rules.key_len + field;
        let new = Arc::clone(&scene.columns[at]);
        let old = old_column(&bound.types[at], scene.window, at)?;
        let old = conform(&old, new.data_type(), false)?;
        Ok(Watched {
            name: rules.fields[*field].name.clone(),
            is_json: rules.specs[at].field_type == FieldType::Json,
            differs: differs(&old, &new)?,
            old,
            new,
        })
    };
    rules.watch.iter().map(one).collect()
}

fn differs(old: &ArrayRef, new: &ArrayRef) -> Result<BooleanArray> {
    let fail = |e| arrow_failed("compare a column", e);
    match old.data_type() {
        DataType::List(_) | DataType::Map(_, _) | DataType::Struct(_) => {
            let compare = make_comparator(old, new, SortOptions::default()).map_err(fail)?;
            Ok((0..old.len())
                .map(|i| Some(compare(i, i).is_ne()))
                .collect())
        }
        _ => distinct(old, new).map_err(fail),
    }
}

/// Whether the newest row of a key came late, and its instant.
fn newest_row(scene: &Scene<'_>, key: usize, today: i32) -> (bool, Option<i64>) {
    let mut newest: Option<(Option<i64>, bool)> = None;
    for input in &scene.window.inputs {
        let Some((batch, row)) = input.of(key).last() else {
            continue;
        };
        let batch = &input.batches[*batch as usize];
        let instant = instant_at(batch.column(scene.key_len), *row as usize);
        let late =
            day_at(batch.column(scene.key_len + 1), *row as usize).is_some_and(|d| d < today);
        if newest.is_none_or(|(known, _)| instant > known) {
            newest = Some((instant, late));
        }
    }
    newest.map_or((false, None), |(instant, late)| (late, instant))
}

fn finish(bound: &BoundRules, scene: &Scene<'_>, mut rows: Rows) -> Result<Vec<ArrayRef>> {
    let places = UInt32Array::from(rows.keys);
    let key = bound.rules.key();
    let types = arrow_schema(&bound.events);
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (spec, column) in bound.events.iter().zip(types.fields()) {
        let array: ArrayRef = match spec.name.as_str() {
            "event" => Arc::new(rows.event.finish()),
            "field" => Arc::new(rows.field.finish()),
            "old" => Arc::new(rows.old.finish()),
            "new" => Arc::new(rows.new.finish()),
            "late" => Arc::new(rows.late.finish()),
            "seen_at" => Arc::new(rows.seen_at.finish()),
            name => {
                let at = key.iter().position(|k| k.name == name).unwrap_or_default();
                take(&scene.columns[at], &places, None)
                    .map_err(|e| arrow_failed("gather keys", e))?
            }
        };
        columns.push(conform(&array, column.data_type(), false)?);
    }
    Ok(columns)
}

/// How many of the events are changes of fields.
pub(super) fn count_changed(bound: &BoundRules, columns: &[ArrayRef]) -> u64 {
    let at = bound.events.iter().position(|f| f.name == "field");
    let field = at.and_then(|at| columns.get(at));
    field.map_or(0, |field| (field.len() - field.null_count()) as u64)
}
