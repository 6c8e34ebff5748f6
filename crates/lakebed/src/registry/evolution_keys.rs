//! Changes of keys: notes on those that are allowed, and the refusals of `add_only`.

use std::collections::BTreeSet;

use crate::registry::{FieldAt, Problem, ProblemCode, diff, list_fields};
use crate::spec::{FieldSpec, SchemaSpec};

/// Keys with rules of their own, or of no consequence for values.
const QUIET_KEYS: [&str; 10] = [
    "type",
    "values",
    "parent",
    "renamed_from",
    "doc",
    "lifecycle",
    "privacy",
    "change",
    "column",
    "cast",
];

/// Adds a note for every change that is allowed but alters how values are read.
pub(crate) fn add_notes(base: &SchemaSpec, new: &SchemaSpec, problems: &mut Vec<Problem>) {
    let difference = diff(base, new);
    let renamed: BTreeSet<u32> = difference.renamed.iter().map(|r| r.id).collect();
    for change in difference.changed.iter().chain(&difference.version_changed) {
        let told = change.key == "from" && change.id.is_some_and(|id| renamed.contains(&id));
        if told || QUIET_KEYS.contains(&change.key.as_str()) {
            continue;
        }
        let side = |v: &Option<String>| v.clone().unwrap_or_else(|| "(none)".to_owned());
        let message = format!(
            "`{}` changes from {} to {}",
            change.key,
            side(&change.old),
            side(&change.new)
        );
        let note = Problem::at(ProblemCode::Note, &change.path, message);
        problems.push(if change.key == "required" && change.new.is_some() {
            note.hint("records without a value become rejects from this version on; old rows keep their NULLs")
        } else {
            note
        });
    }
}

/// Adds everything that is no addition.
pub(crate) fn check_additions(base: &SchemaSpec, new: &SchemaSpec, problems: &mut Vec<Problem>) {
    let difference = diff(base, new);
    let old_fields = list_fields(&base.fields);
    let new_fields = list_fields(&new.fields);
    let mut refuse = |path: &str, what: String| {
        problems.push(
            Problem::at(ProblemCode::NotAnAddition, path, what)
                .hint("the dataset says `evolution = \"add_only\"` in source.toml"),
        );
    };
    for gone in &difference.removed {
        refuse(&gone.path, "the field is gone".to_owned());
    }
    for retype in &difference.retyped {
        let was = &retype.old.field_type;
        refuse(&retype.path, format!("the type changed from `{was}`"));
    }
    for rename in &difference.renamed {
        refuse(
            &rename.to,
            format!("the name changed from `{}`", rename.from),
        );
    }
    for change in difference.changed.iter().chain(&difference.version_changed) {
        let quiet = ["doc", "lifecycle", "privacy", "renamed_from"];
        let field = |list: &[FieldAt<'_>]| {
            let found = list.iter().find(|f| Some(f.field.id) == change.id);
            found.map(|f| f.field.clone())
        };
        let appended = field(&old_fields)
            .zip(field(&new_fields))
            .is_some_and(|(then, now)| is_appended(&then, &now, &change.key));
        if !appended && !quiet.contains(&change.key.as_str()) {
            refuse(&change.path, format!("`{}` changed", change.key));
        }
    }
    if difference.reordered {
        refuse("(all)", "the fields stand in another order".to_owned());
    }
}

/// Whether a list that only lets more values in got further entries at its end.
fn is_appended(then: &FieldSpec, now: &FieldSpec, key: &str) -> bool {
    match key {
        // An empty list means the default formats, which a declared list replaces.
        "formats" => !then.formats.is_empty() && now.formats.starts_with(&then.formats),
        "true_values" => now.true_values.starts_with(&then.true_values),
        "false_values" => now.false_values.starts_with(&then.false_values),
        _ => false,
    }
}
