//! The states of the keys of a window: of the moves of a state, the first that fits is made, once a day.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, StringArray};

use crate::fold::cells::{holds_any, int_at};
use crate::fold::rules::{Condition, FoldRules, Move};
use crate::fold::scene::Scene;

/// A condition over all keys of a window.
enum Known<'a> {
    Seen(&'a [bool]),
    Gone(&'a [bool]),
    Absent(&'a ArrayRef, i64),
    Holds(BooleanArray),
    Never,
}

impl Known<'_> {
    fn is_met(&self, key: usize) -> bool {
        match self {
            Self::Seen(seen) | Self::Gone(seen) => seen[key],
            Self::Absent(days, least) => int_at(days, key).is_some_and(|days| days >= *least),
            Self::Holds(holds) => holds.value(key),
            Self::Never => false,
        }
    }
}

pub(super) fn states(
    rules: &FoldRules,
    scene: &Scene<'_>,
    at: usize,
    (states, moves): (&[String], &[Move]),
) -> ArrayRef {
    let know = |condition: &Condition| match condition {
        Condition::Seen(input) => Known::Seen(&scene.sights[*input].today),
        Condition::Gone(input) => Known::Gone(&scene.sights[*input].gone),
        Condition::Absent(least) => match rules.absent_field() {
            Some(field) if scene.key_len + field < scene.columns.len() => {
                Known::Absent(&scene.columns[scene.key_len + field], *least)
            }
            _ => Known::Never,
        },
        Condition::Field(field, values) => {
            Known::Holds(holds_any(&scene.columns[scene.key_len + field], values))
        }
    };
    let moves: Vec<(&Move, Vec<Known<'_>>)> = moves
        .iter()
        .map(|one| (one, one.when.iter().map(know).collect()))
        .collect();
    let before = |key: usize| {
        let (column, row) = scene.old(at, key)?;
        let texts = column.as_string::<i32>();
        let text = texts.is_valid(row).then(|| texts.value(row))?;
        states.iter().position(|state| state == text)
    };
    let state = |key: usize| {
        // A state that is declared no more begins anew.
        let before = before(key).unwrap_or(0);
        let fits = |(one, when): &&(&Move, Vec<Known<'_>>)| {
            (one.from.is_empty() || one.from.contains(&before))
                && when.iter().all(|k| k.is_met(key))
        };
        let after = moves.iter().find(fits).map_or(before, |(one, _)| one.to);
        states[after].as_str()
    };
    Arc::new(StringArray::from_iter_values(
        (0..scene.window.len()).map(state),
    ))
}
