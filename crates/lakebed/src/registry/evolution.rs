//! What may follow the published versions of a dataset.
//!
//! | change | answer |
//! | --- | --- |
//! | new field, new id | allowed; old partitions read NULL |
//! | field gone | allowed when listed in `removed`; its id and name stay taken |
//! | field back under its id, name and place | allowed, noted |
//! | other name under an id | allowed with `renamed_from`; `from` keeps the old input name |
//! | decimal with more digits, none lost | allowed under its id |
//! | any other type | refused; `change` says how: `dual`, `retype` (a new id), `cast_old` (the old type) |
//! | enum values appended | allowed |
//! | enum value gone | allowed when `removed` lists `"<field>=<value>"`; moved values are refused |
//! | other keys (`required`, `formats`, `null_values`, ...) | allowed, noted |
//!
//! REG-3 and REG-4 (kept in `evolution_fields`) hold over all versions, not only since the base.

use std::collections::BTreeSet;

pub use crate::config::Evolution;
use crate::config::nearest;
use crate::registry::evolution_fields::check_fields;
use crate::registry::evolution_keys::{add_notes, check_additions};
use crate::registry::evolution_types::{check_first_change, is_new_retype};
use crate::registry::past::{Past, value_entry};
use crate::registry::{FieldAt, Problem, ProblemCode, diff, list_fields};
use crate::spec::{ChangeKind, PublishedSchema, RemovedField, SchemaSpec};

/// Everything that keeps `new` from following `history`, which is sorted and without holes, and
/// notes on what is allowed but worth a look.
///
/// A version that is published already with equal content has no problem.
#[must_use]
pub fn check_evolution(
    history: &[PublishedSchema],
    new: &SchemaSpec,
    evolution: Evolution,
) -> Vec<Problem> {
    if let Some(taken) = history.iter().find(|p| p.schema.version == new.version) {
        return check_taken(taken, history, new);
    }
    let mut problems = Vec::new();
    check_sequence(history, new, &mut problems);
    let fields = list_fields(&new.fields);
    match history.last() {
        None => check_first(&fields, &mut problems),
        Some(base) => {
            let past = Past::new(history, &base.schema);
            check_fields(&past, &fields, new, &mut problems);
            check_removed(&past, &fields, new, &mut problems);
            add_notes(&base.schema, new, &mut problems);
            if evolution == Evolution::AddOnly {
                check_additions(&base.schema, new, &mut problems);
            }
        }
    }
    problems
}

fn check_taken(
    taken: &PublishedSchema,
    history: &[PublishedSchema],
    new: &SchemaSpec,
) -> Vec<Problem> {
    if taken.schema == *new {
        return Vec::new();
    }
    let by = taken.by.user.as_deref().unwrap_or("somebody");
    let differs = diff(&taken.schema, new).to_text();
    let newest = history.last().map_or(0, |p| p.schema.version);
    let message = format!(
        "version {} was published by {by} at {} with other content: {}",
        new.version,
        taken.published_at,
        differs.trim_end().replace('\n', "; ")
    );
    let next = newest.saturating_add(1);
    vec![
        Problem::new(ProblemCode::NumberTaken, message).hint(format!(
            "a published version never changes; make this one version {next} with `base = {newest}`"
        )),
    ]
}

fn check_sequence(history: &[PublishedSchema], new: &SchemaSpec, problems: &mut Vec<Problem>) {
    let newest = history.last().map_or(0, |p| p.schema.version);
    let next = newest.saturating_add(1);
    if new.version != next {
        problems.push(
            Problem::new(
                ProblemCode::NumberGap,
                format!("version {} does not follow version {newest}", new.version),
            )
            .hint(format!("the next version is {next}")),
        );
    }
    let base = new.base.unwrap_or(0);
    // In version 1, and where it is missing, `base` is the business of `validate`.
    if base != newest && base != 0 && newest != 0 {
        problems.push(
            Problem::new(
                ProblemCode::StaleBase,
                format!("`base` is version {base}, the newest published is version {newest}"),
            )
            .hint(format!(
                "take over what version {newest} changed (`lakebed schema diff`), then set `base = {newest}` and `version = {next}`"
            )),
        );
    }
}

fn check_first(fields: &[FieldAt<'_>], problems: &mut Vec<Problem>) {
    for at in fields {
        check_first_change(at, problems);
    }
    for at in fields.iter().filter(|f| f.field.renamed_from.is_some()) {
        problems.push(
            Problem::at(
                ProblemCode::NameChanged,
                &at.path,
                "`renamed_from` in the first version renames nothing",
            )
            .hint("where inputs carry another name, that is `from`"),
        );
    }
}

fn check_removed(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    new: &SchemaSpec,
    problems: &mut Vec<Problem>,
) {
    // A field in whose place a retyped one comes is gone on purpose.
    let replaced = fields
        .iter()
        .filter(|f| is_new_retype(past, f))
        .filter_map(|f| past.find_holder(&f.field.name));
    let kept: BTreeSet<u32> = fields.iter().map(|f| f.field.id).collect();
    let replaced: BTreeSet<u32> = replaced.map(|(_, old)| old.field.id).collect();
    for (id, then) in past
        .base
        .iter()
        .filter(|(id, _)| !kept.contains(id) && !replaced.contains(id))
    {
        let with_parent = then.parent.is_some_and(|p| !kept.contains(&p));
        let listed = new.removed.iter().any(|r| match r {
            RemovedField::Id(listed) => listed == id,
            RemovedField::Name(name) => *name == then.path,
        });
        if !listed && !with_parent {
            problems.push(
                Problem::at(
                    ProblemCode::FieldDropped,
                    &then.path,
                    format!("the field of id `{id}` is gone and not listed in `removed`"),
                )
                .hint(format!(
                    "put it back, or write `removed = [\"{}\"]`; its old values stay readable",
                    then.path
                )),
            );
        }
    }
    for entry in &new.removed {
        check_removed_entry(past, fields, entry, problems);
    }
}

fn check_removed_entry(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    entry: &RemovedField,
    problems: &mut Vec<Problem>,
) {
    // A path that was removed before may stay in the list: people copy the last file.
    let (text, there, known) = match entry {
        RemovedField::Id(id) => (
            id.to_string(),
            fields.iter().any(|f| f.field.id == *id),
            past.ids.contains_key(id),
        ),
        RemovedField::Name(name) => {
            let still = |f: &FieldAt<'_>| {
                let values = || {
                    f.field
                        .values
                        .iter()
                        .any(|v| value_entry(&f.path, v) == *name)
                };
                f.path == *name || values()
            };
            let there = fields.iter().any(still);
            (name.clone(), there, past.removable.contains(name))
        }
    };
    if there {
        let message = format!("`removed` lists `{text}`, which is still there");
        let problem = Problem::new(ProblemCode::BadRemoved, message);
        let retyped = fields
            .iter()
            .any(|f| f.path == text && f.field.change == Some(ChangeKind::Retype));
        problems.push(match retyped {
            true => problem.hint("the field in whose place a retyped one comes is not listed"),
            false => problem,
        });
    } else if !known {
        let problem = Problem::new(
            ProblemCode::BadRemoved,
            format!("`removed` lists `{text}`, which no version had"),
        );
        problems.push(
            match nearest(&text, past.removable.iter().map(String::as_str)) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            },
        );
    }
}

#[cfg(test)]
mod tests;
