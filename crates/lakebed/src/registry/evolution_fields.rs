//! What may become of one field: its place, name, type, enum values, and what a new one may take.
//!
//! REG-3 and REG-4 are kept here.

use crate::registry::evolution_types::{Widening, check_change, check_type, widening};
use crate::registry::past::{Past, value_entry};
use crate::registry::{FieldAt, Problem, ProblemCode, input_path};
use crate::spec::{ChangeKind, FieldType, RemovedField, SchemaSpec};

/// Adds what keeps the fields of `new` from following the past; dropped ones aside.
pub(crate) fn check_fields(
    past: &Past<'_>,
    fields: &[FieldAt<'_>],
    new: &SchemaSpec,
    problems: &mut Vec<Problem>,
) {
    for now in fields {
        let id = now.field.id;
        check_change(past, fields, now, problems);
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
        check_column(past, then, now, problems);
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
                past.next_id_hint()
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

/// A field whose name stayed may have another column in the files.
fn check_column(
    past: &Past<'_>,
    then: &FieldAt<'_>,
    now: &FieldAt<'_>,
    problems: &mut Vec<Problem>,
) {
    let (old, new) = (then.field.column_name(), now.field.column_name());
    if old == new {
        return;
    }
    check_name_free(past, now, problems);
    let message = format!("new files call the column `{new}`, old ones `{old}`");
    problems.push(Problem::at(ProblemCode::Note, &now.path, message));
}

/// By-name readers of the folders would mix two fields of one name.
fn check_name_free(past: &Past<'_>, now: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let name = now.field.column_name();
    let level = (now.parent, name.to_lowercase());
    let others = past.names.get(&level).into_iter().flatten();
    let Some(other) = others.copied().find(|id| *id != now.field.id) else {
        return;
    };
    let problem = Problem::at(
        ProblemCode::NameReused,
        &now.path,
        format!("the name `{name}` is that of id `{other}`"),
    );
    let (id, retyped) = (now.field.id, past.retyped.contains_key(&now.field.id));
    problems.push(match past.base.get(&other) {
        _ if retyped || now.field.column.is_some() => problem.hint(format!(
            "files hold id `{other}` under that name: `column` of id `{id}` is a name of its own, \
             and stays"
        )),
        Some(old) if old.field.field_type != now.field.field_type => problem.hint(format!(
            "for a changed type keep id `{other}` as it is, and give this field another name, `from = \"{}\"` and `change = \"dual\"`; or `change = \"retype\"`, with a name of its own in `column`",
            old.field.input_name()
        )),
        Some(_) => problem.hint(format!("keep id `{other}`, or take another name")),
        None => problem.hint(format!(
            "old partitions hold id `{other}` under that name: bring that id back, or take another name"
        )),
    });
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
    if let Some(new) = past.find_successor(now.field.id) {
        let message = format!(
            "id `{}` was retyped: id `{new}` took its place",
            now.field.id
        );
        problems.push(
            Problem::at(ProblemCode::IdReused, &now.path, message).hint(format!(
                "to go back to `{}` retype once more ({})",
                now.field.field_type,
                past.next_id_hint()
            )),
        );
        return;
    }
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
        .hint(format!("ids are never reused; {}", past.next_id_hint())),
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
