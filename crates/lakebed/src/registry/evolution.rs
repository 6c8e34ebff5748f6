//! What may follow the published versions of a dataset.
//!
//! | change | answer |
//! | --- | --- |
//! | new field, new id | allowed; old partitions read NULL |
//! | field gone | allowed when listed in `removed`; its id and name stay taken |
//! | field back under its id, name and place | allowed, noted |
//! | other name under an id | allowed with `renamed_from`; `from` keeps the old input name |
//! | decimal with more digits, none lost | allowed under its id |
//! | any other type | refused; a new field with a new id and name, `change = "dual"` |
//! | enum values appended | allowed |
//! | enum value gone | allowed when `removed` lists `"<field>=<value>"`; moved values are refused |
//! | other keys (`required`, `formats`, `null_values`, ...) | allowed, noted |
//!
//! REG-3 and REG-4 are kept here: they hold over all versions, not only since the base.

use std::collections::{BTreeMap, BTreeSet};

pub use crate::config::Evolution;
use crate::config::nearest;
use crate::registry::{FieldAt, Problem, ProblemCode, diff, input_path, list_fields, next_free_id};
use crate::spec::{ChangeKind, FieldSpec, FieldType, PublishedSchema, RemovedField, SchemaSpec};

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

/// The published past, indexed.
struct Past<'a> {
    base: BTreeMap<u32, FieldAt<'a>>,
    /// Every id ever used, with its last version and place there.
    ids: BTreeMap<u32, (u32, FieldAt<'a>)>,
    /// Every name ever used at a level, without case, with its ids.
    names: BTreeMap<(Option<u32>, String), BTreeSet<u32>>,
    /// Every name an id ever had.
    names_of: BTreeMap<u32, BTreeSet<&'a str>>,
    /// Every path and enum value that once could be removed.
    removable: BTreeSet<String>,
    next_id: u32,
}

impl<'a> Past<'a> {
    fn new(history: &'a [PublishedSchema], base: &'a SchemaSpec) -> Self {
        let mut past = Self {
            base: list_fields(&base.fields)
                .into_iter()
                .map(|f| (f.field.id, f))
                .collect(),
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
            names_of: BTreeMap::new(),
            removable: BTreeSet::new(),
            next_id: next_free_id(history),
        };
        for published in history {
            for at in list_fields(&published.schema.fields) {
                let id = at.field.id;
                let level = (at.parent, at.field.name.to_lowercase());
                past.names.entry(level).or_default().insert(id);
                past.names_of.entry(id).or_default().insert(&at.field.name);
                past.removable.insert(at.path.clone());
                for value in &at.field.values {
                    past.removable.insert(value_entry(&at.path, value));
                }
                past.ids.insert(id, (published.schema.version, at));
            }
        }
        past
    }

    fn newest(&self) -> String {
        format!("the next free id is `{}`", self.next_id)
    }
}

/// How `removed` names an enum value.
fn value_entry(path: &str, value: &str) -> String {
    format!("{path}={value}")
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

fn check_fields(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    new: &SchemaSpec,
    problems: &mut Vec<Problem>,
) {
    for now in fields {
        let id = now.field.id;
        if let Some(then) = past.base.get(&id) {
            check_place(then, now, problems);
            check_name(past, then, now, problems);
            check_type(past, then, now, problems);
            check_values(then, now, &new.removed, problems);
        } else if let Some((version, then)) = past.ids.get(&id) {
            check_return(past, *version, then, now, problems);
        } else {
            check_new(past, fields, now, problems);
        }
    }
}

fn check_place(then: &FieldAt<'_>, now: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    if then.parent == now.parent {
        return;
    }
    let message = format!(
        "id `{}` was `{}`, at another level",
        now.field.id, then.path
    );
    problems.push(
        Problem::at(ProblemCode::FieldMoved, &now.path, message)
            .hint("a field that moves is a new field with a new id; `from` may be a pointer into a struct"),
    );
}

fn check_name(past: &Past<'_>, then: &FieldAt<'_>, now: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let (old, name) = (then.field.name.as_str(), now.field.name.as_str());
    let declared = now.field.renamed_from.as_deref();
    if old == name {
        let former = past.names_of.get(&now.field.id);
        if let Some(from) = declared
            && !former.is_some_and(|names| names.contains(from))
        {
            problems.push(
                Problem::at(
                    ProblemCode::NameChanged,
                    &now.path,
                    format!(
                        "`renamed_from` = `{from}`, but id `{}` was never called so",
                        now.field.id
                    ),
                )
                .hint("remove `renamed_from`"),
            );
        }
        return;
    }
    match declared {
        Some(from) if from == old => {}
        Some(from) => problems.push(
            Problem::at(
                ProblemCode::NameChanged,
                &now.path,
                format!("`renamed_from` = `{from}`, but id `{}` is called `{old}` in the base", now.field.id),
            )
            .hint(format!("write `renamed_from = \"{old}\"`")),
        ),
        None => problems.push(
            Problem::at(
                ProblemCode::NameChanged,
                &now.path,
                format!("id `{}` is called `{old}` in the base", now.field.id),
            )
            .hint(format!(
                "for a rename write `renamed_from = \"{old}\"`; for another field take a new id ({})",
                past.newest()
            )),
        ),
    }
    check_name_free(past, now, problems);
    if then.field.input_name() != now.field.input_name() {
        problems.push(
            Problem::at(
                ProblemCode::Note,
                &now.path,
                format!(
                    "inputs are read under `{}` from now on",
                    now.field.input_name()
                ),
            )
            .hint(format!(
                "where they still carry the old name, write `from = \"{}\"`",
                then.field.input_name()
            )),
        );
    }
}

/// REG-4: by-name readers of the folders would mix two fields of one name.
fn check_name_free(past: &Past<'_>, now: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let level = (now.parent, now.field.name.to_lowercase());
    let others = past.names.get(&level).into_iter().flatten();
    let Some(other) = others.copied().find(|id| *id != now.field.id) else {
        return;
    };
    if now.field.change == Some(ChangeKind::Retype) {
        return; // refused by `validate` until readers know it
    }
    let problem = Problem::at(
        ProblemCode::NameReused,
        &now.path,
        format!("the name `{}` is that of id `{other}`", now.field.name),
    );
    problems.push(match past.base.get(&other) {
        Some(old) if old.field.field_type != now.field.field_type => problem.hint(format!(
            "for a changed type keep id `{other}` as it is, and give this field another name, `from = \"{}\"` and `change = \"dual\"`",
            old.field.input_name()
        )),
        Some(_) => problem.hint(format!("keep id `{other}`, or take another name")),
        None => problem.hint(format!(
            "old partitions hold id `{other}` under that name: bring that id back, or take another name"
        )),
    });
}

fn check_type(past: &Past<'_>, then: &FieldAt<'_>, now: &FieldAt<'_>, problems: &mut Vec<Problem>) {
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
                "keep it as `{old}` and add a field with a new id ({}), another name, `type = \"{new}\"`, `from = \"{}\"` and `change = \"dual\"`",
                past.newest(),
                then.field.input_name()
            )),
        ),
    }
}

/// How a type may follow another one under one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Widening {
    Same,
    Precision,
    Scale,
    No,
}

fn widening(old: &FieldType, new: &FieldType) -> Widening {
    match (old, new) {
        (FieldType::List(a), FieldType::List(b)) | (FieldType::Map(a), FieldType::Map(b)) => {
            widening(a, b)
        }
        (
            FieldType::Decimal {
                precision: p,
                scale: s,
            },
            FieldType::Decimal {
                precision: q,
                scale: t,
            },
        ) => {
            if (p, s) == (q, t) {
                Widening::Same
            } else if t < s || q - t < p - s {
                Widening::No
            } else if t == s {
                Widening::Precision
            } else {
                Widening::Scale
            }
        }
        (a, b) if a == b => Widening::Same,
        (_, _) => Widening::No,
    }
}

fn check_values(
    then: &FieldAt<'_>,
    now: &FieldAt<'_>,
    removed: &[RemovedField],
    problems: &mut Vec<Problem>,
) {
    let enums = [then, now].map(|f| matches!(f.field.field_type.leaf(), FieldType::Enum));
    if enums != [true, true] {
        return;
    }
    let leave = |value: &String| {
        [&then.path, &now.path]
            .iter()
            .any(|path| removed.contains(&RemovedField::Name(value_entry(path, value))))
    };
    let gone: Vec<&String> = then
        .field
        .values
        .iter()
        .filter(|v| !now.field.values.contains(v))
        .collect();
    for value in gone.iter().filter(|v| !leave(v)) {
        problems.push(
            Problem::at(
                ProblemCode::EnumShrunk,
                &now.path,
                format!("the value `{value}` is gone"),
            )
            .hint(format!(
                "old rows may hold it; if it must go, list it: `removed = [\"{}\"]`",
                value_entry(&now.path, value)
            )),
        );
    }
    let kept = then.field.values.iter().filter(|v| !gone.contains(v));
    let count = then.field.values.len() - gone.len();
    if !kept.eq(now.field.values.iter().take(count)) {
        problems.push(
            Problem::at(
                ProblemCode::EnumShrunk,
                &now.path,
                "values changed their order",
            )
            .hint("`values` is append-only: keep the old ones first, in their order"),
        );
    }
}

fn check_return(
    past: &Past<'_>,
    version: u32,
    then: &FieldAt<'_>,
    now: &FieldAt<'_>,
    problems: &mut Vec<Problem>,
) {
    let same = then.parent == now.parent
        && then.field.name == now.field.name
        && widening(&then.field.field_type, &now.field.field_type) != Widening::No;
    if same {
        problems.push(Problem::at(
            ProblemCode::Note,
            &now.path,
            format!(
                "the field of id `{}` is back, last seen in version {version}",
                now.field.id
            ),
        ));
        return;
    }
    problems.push(
        Problem::at(
            ProblemCode::IdReused,
            &now.path,
            format!(
                "id `{}` belonged to `{}` of type `{}` up to version {version}",
                now.field.id, then.path, then.field.field_type
            ),
        )
        .hint(format!("ids are never reused; {}", past.newest())),
    );
    check_name_free(past, now, problems);
}

fn check_new(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    now: &FieldAt<'_>,
    problems: &mut Vec<Problem>,
) {
    check_name_free(past, now, problems);
    if let Some(from) = &now.field.renamed_from {
        problems.push(
            Problem::at(
                ProblemCode::NameChanged,
                &now.path,
                format!("`renamed_from` = `{from}` on a new id"),
            )
            .hint("a rename keeps its id; where inputs carry another name, that is `from`"),
        );
    }
    if now.field.change == Some(ChangeKind::Dual) {
        let input = input_path(now.field);
        let beside = fields.iter().any(|f| {
            f.parent == now.parent && f.field.id != now.field.id && input_path(f.field) == input
        });
        if !beside {
            problems.push(
                Problem::at(
                    ProblemCode::KeyMisfit,
                    &now.path,
                    format!(
                        "`change = \"dual\"`, but no other field reads `{}`",
                        now.field.input_name()
                    ),
                )
                .hint("`from` = the input name of the field whose type changed; that field stays"),
            );
        }
    }
}

fn check_removed(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    new: &SchemaSpec,
    problems: &mut Vec<Problem>,
) {
    let kept: BTreeSet<u32> = fields.iter().map(|f| f.field.id).collect();
    for (id, then) in past.base.iter().filter(|(id, _)| !kept.contains(id)) {
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
        problems.push(Problem::new(ProblemCode::BadRemoved, message));
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

/// Keys with rules of their own, or of no consequence for values.
const QUIET_KEYS: [&str; 8] = [
    "type",
    "values",
    "parent",
    "renamed_from",
    "doc",
    "lifecycle",
    "privacy",
    "change",
];

fn add_notes(base: &SchemaSpec, new: &SchemaSpec, problems: &mut Vec<Problem>) {
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

fn check_additions(base: &SchemaSpec, new: &SchemaSpec, problems: &mut Vec<Problem>) {
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

#[cfg(test)]
mod tests;
