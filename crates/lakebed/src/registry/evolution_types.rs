//! What may become of a type: under its id, in its place (`retype`), beside it (`cast_old`).
//!
//! REG-3 is kept here, too: a retyped field is a new id, and the old one does not come back.

use crate::registry::past::Past;
use crate::registry::{CastClass, FieldAt, Problem, ProblemCode, cast_class, widens};
use crate::spec::{ChangeKind, FieldType};

/// Adds what is wrong with the type of a field that the base has.
pub(crate) fn check_type(
    past: &Past<'_>,
    then: &FieldAt<'_>,
    now: &FieldAt<'_>,
    problems: &mut Vec<Problem>,
) {
    let (old, new) = (&then.field.field_type, &now.field.field_type);
    match widening(old, new) {
        Widening::Same => {}
        Widening::Precision => {}
        Widening::Scale => problems.push(Problem::at(
            ProblemCode::Note,
            &now.path,
            format!("the scale grows from `{old}` to `{new}`; Iceberg readers know growing precision alone"),
        )),
        Widening::No => problems.push(
            Problem::at(
                ProblemCode::TypeChanged,
                &now.path,
                format!("id `{}` has the type `{old}`, here `{new}`", now.field.id),
            )
            .hint(format!(
                "keep it as `{old}` and add a field with a new id ({}), another name, `type = \"{new}\"`, `from = \"{}\"` and `change = \"dual\"`; `retype` takes the column over, `cast_old` keeps the old type",
                past.next_id_hint(),
                then.field.input_name()
            )),
        ),
    }
}

/// How a type may follow another one under one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widening {
    /// It is the same.
    Same,
    /// A decimal with more digits before the point.
    Precision,
    /// A decimal with more digits after it, too.
    Scale,
    /// It may not.
    No,
}

/// How `new` follows `old`.
pub(crate) fn widening(old: &FieldType, new: &FieldType) -> Widening {
    match (old, new) {
        (FieldType::List(a), FieldType::List(b)) | (FieldType::Map(a), FieldType::Map(b)) => {
            widening(a, b)
        }
        (a, b) if a == b => Widening::Same,
        (FieldType::Decimal { scale: s, .. }, FieldType::Decimal { scale: t, .. })
            if widens(old, new) =>
        {
            if t == s {
                Widening::Precision
            } else {
                Widening::Scale
            }
        }
        (_, _) => Widening::No,
    }
}

/// Whether a version brings a field that takes the place of another one.
pub(crate) fn is_new_retype(past: &Past<'_>, at: &FieldAt<'_>) -> bool {
    at.field.change == Some(ChangeKind::Retype)
        && at.parent.is_none()
        && !past.ids.contains_key(&at.field.id)
}

/// Adds what is wrong with a strategy in the first version, in which nothing changed yet.
pub(crate) fn check_first_change(at: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let word = match at.field.change {
        Some(ChangeKind::Retype) => "retype",
        Some(ChangeKind::CastOld) => "cast_old",
        Some(ChangeKind::Dual) | None => return,
    };
    let message = format!("`change = \"{word}\"` in the first version: there is no old type");
    problems.push(
        Problem::at(ProblemCode::KeyMisfit, &at.path, message)
            .hint("remove `change`; it belongs to the version in which a type changes"),
    );
}

/// Adds what is wrong with a declared strategy after the past, `dual` aside.
pub(crate) fn check_change(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    now: &FieldAt<'_>,
    problems: &mut Vec<Problem>,
) {
    let known = past.ids.contains_key(&now.field.id);
    match now.field.change {
        Some(ChangeKind::Retype) if is_new_retype(past, now) => {
            check_retype(past, fields, now, problems);
        }
        Some(ChangeKind::Retype) if !past.retyped.contains_key(&now.field.id) && known => {
            let message = format!(
                "id `{}` was there before, and `retype` belongs to a new id",
                now.field.id
            );
            problems.push(
                Problem::at(ProblemCode::KeyMisfit, &now.path, message)
                    .hint(format!("take a new id ({})", past.next_id_hint())),
            );
        }
        Some(ChangeKind::CastOld) if !known => problems.push(
            Problem::at(
                ProblemCode::KeyMisfit,
                &now.path,
                "`change = \"cast_old\"` on a new id: there is no old type",
            )
            .hint("it belongs to the field whose values changed their form; that one keeps id and type"),
        ),
        Some(ChangeKind::CastOld) => note_cast(past, now, problems),
        Some(ChangeKind::Retype | ChangeKind::Dual) | None => {}
    }
}

/// A new field in the place of an old one.
fn check_retype(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    now: &FieldAt<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut refuse = |code, message: String, hint: String| {
        problems.push(Problem::at(code, &now.path, message).hint(hint));
    };
    let name = &now.field.name;
    let Some((version, old)) = past.find_holder(name) else {
        return refuse(
            ProblemCode::KeyMisfit,
            format!("`change = \"retype\"`, but no field is called `{name}`"),
            "the new field bears the last name of the old one; rename it in a later version"
                .to_owned(),
        );
    };
    let (id, before, after) = (old.field.id, &old.field.field_type, &now.field.field_type);
    if let Some(still) = fields.iter().find(|f| f.field.id == id) {
        return refuse(
            ProblemCode::KeyMisfit,
            format!(
                "`change = \"retype\"` takes the place of id `{id}`, which stays as `{}`",
                still.path
            ),
            "drop the old field; where both are wanted, that is `change = \"dual\"`".to_owned(),
        );
    }
    if let Some(new) = past.find_successor(id) {
        return refuse(
            ProblemCode::KeyMisfit,
            format!("`change = \"retype\"` takes the place of id `{id}`, which id `{new}` has"),
            format!("retype id `{new}` under its own name, or take another name"),
        );
    }
    if before == after || widens(before, after) {
        return refuse(
            ProblemCode::KeyMisfit,
            format!("id `{id}` of type `{before}` needs no `retype` to be `{after}`"),
            format!("keep the field with id `{id}`, under that id it may have the type"),
        );
    }
    let Some(class) = cast_class(before, after) else {
        return refuse(
            ProblemCode::TypeChanged,
            format!("no value of `{before}` (id `{id}`) can be cast to `{after}`"),
            format!(
                "keep id `{id}`, and give the new field another name, `from = \"{}\"` and `change = \"dual\"`",
                old.field.input_name()
            ),
        );
    };
    note_retype(*version, old, now, class, problems);
}

/// What a retyped field does to old values.
fn note_retype(
    version: u32,
    old: &FieldAt<'_>,
    now: &FieldAt<'_>,
    class: CastClass,
    problems: &mut Vec<Problem>,
) {
    let (id, before, name) = (old.field.id, &old.field.field_type, &now.field.name);
    let kept = match class {
        CastClass::Always => "all values can be cast".to_owned(),
        CastClass::PerValue => {
            format!("a value that cannot be cast without loss is in `{name}__v{version}`")
        }
    };
    let message = format!("takes the place of id `{id}` of type `{before}`: {kept}");
    problems.push(Problem::at(ProblemCode::Note, &now.path, message));
    let zone = now.field.time_zone.as_deref().filter(|zone| *zone != "UTC");
    if let (FieldType::Date, Some(zone)) = (before, zone) {
        let message = format!("old days become midnight in UTC, not in `{zone}`");
        problems.push(Problem::at(ProblemCode::Note, &now.path, message));
    }
    if old.field.is_personal() && !now.field.is_personal() {
        let message = "old values are personal, new ones are not".to_owned();
        problems.push(Problem::at(ProblemCode::Note, &now.path, message));
    }
}

/// What the version begins to read.
fn note_cast(past: &Past<'_>, now: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let before = past
        .base
        .get(&now.field.id)
        .and_then(|f| f.field.cast.as_ref());
    let Some(cast) = now.field.cast.as_ref().filter(|c| Some(*c) != before) else {
        return;
    };
    let message = format!(
        "values of the form `{}` are cast to `{}` from now on",
        cast.from, now.field.field_type
    );
    problems.push(Problem::at(ProblemCode::Note, &now.path, message));
}
