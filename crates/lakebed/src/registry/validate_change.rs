//! Whether a declared strategy of a type change fits the field that declares it.
//!
//! What came before is `evolution`'s business.

use crate::registry::validate_field::{Out, check_read_keys};
use crate::registry::{FieldAt, Problem, ProblemCode, cast_class, is_reserved_name};
use crate::spec::{CastSpec, ChangeKind, FieldSpec, FieldType, Lossy};

/// Longest column name, in bytes of UTF-8.
const MAX_COLUMN_BYTES: usize = 255;

/// Adds what is wrong with `change`, `column` and `cast`.
pub(crate) fn check_change(at: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let field = at.field;
    let out = &mut Out {
        path: &at.path,
        problems,
    };
    let retype = field.change == Some(ChangeKind::Retype);
    if retype {
        check_retype(at, out);
    } else if field.column.is_some() {
        out.add_with(
            ProblemCode::KeyMisfit,
            "`column` goes with `change = \"retype\"` alone",
            "remove `column`; the column in the files bears the name of the field",
        );
    }
    match (field.change == Some(ChangeKind::CastOld), &field.cast) {
        (true, Some(cast)) => check_cast(at, cast, out),
        (true, None) => out.add_with(
            ProblemCode::KeyMisfit,
            "`change = \"cast_old\"` needs `cast`",
            "say which form values have now, for example `cast = { from = \"float\", lossy = \"truncate\" }`",
        ),
        (false, Some(_)) => out.add_with(
            ProblemCode::KeyMisfit,
            "`cast` goes with `change = \"cast_old\"` alone",
            "add `change = \"cast_old\"`, or remove `cast`",
        ),
        (false, None) => {}
    }
}

fn is_scalar(of: &FieldType) -> bool {
    !matches!(
        of,
        FieldType::List(_) | FieldType::Map(_) | FieldType::Struct
    )
}

fn check_retype(at: &FieldAt<'_>, out: &mut Out<'_>) {
    let field = at.field;
    let dual =
        "use `dual`: the old field stays, the new one has another name, `from` = the input name";
    if at.depth > 0 {
        out.add_with(
            ProblemCode::KeyMisfit,
            "`change = \"retype\"` fits fields at the top level, not members of a struct",
            dual,
        );
    }
    if !is_scalar(&field.field_type) {
        let message = format!(
            "`change = \"retype\"` fits scalar types, not `{}`",
            field.field_type
        );
        out.add_with(ProblemCode::KeyMisfit, message, dual);
    }
    let own = field.column.as_deref().filter(|c| *c != field.name);
    let Some(column) = own else {
        let message = "`change = \"retype\"` needs `column`, another name in the files";
        let hint = format!(
            "for example `column = \"{}_{}\"`: readers that go by names would mix two types under `{}`",
            field.name,
            field
                .field_type
                .to_string()
                .split('(')
                .next()
                .unwrap_or("new"),
            field.name
        );
        return out.add_with(ProblemCode::KeyMisfit, message, &hint);
    };
    let wrong = column.trim().is_empty()
        || column.len() > MAX_COLUMN_BYTES
        || column.chars().any(char::is_control);
    if wrong {
        let message = format!("`column` = `{}` is no name", column.escape_debug());
        out.add(ProblemCode::BadName, message);
    } else if is_reserved_name(column) {
        out.add_with(
            ProblemCode::ReservedName,
            format!("the name `{column}` is reserved"),
            "`dt`, `schema_version`, `source` and names beginning with `_` are Lakebed's own, in any case",
        );
    }
}

fn check_cast(at: &FieldAt<'_>, cast: &CastSpec, out: &mut Out<'_>) {
    let field = at.field;
    let (from, to) = (&cast.from, &field.field_type);
    if !is_scalar(to) {
        let message = format!("`change = \"cast_old\"` fits scalar types, not `{to}`");
        let hint = "use `dual`: a second field takes the values of the new form";
        return out.add_with(ProblemCode::KeyMisfit, message, hint);
    }
    let known = cast_class(from, to).is_some() && *from != FieldType::Enum;
    if !known || (from, to) == (&FieldType::Date, &FieldType::Timestamp) {
        let message = format!("no value of `{from}` can be cast to `{to}`");
        return out.add_with(ProblemCode::KeyMisfit, message, way_out(from, to));
    }
    check_lossy(cast, to, out);
    if matches!(from, FieldType::Timestamp) && cast.time_zone.is_none() {
        out.add_with(
            ProblemCode::BadTimeZone,
            "`cast` from timestamp to date needs `time_zone`",
            "say in which zone a day is counted, for example `time_zone = \"Asia/Taipei\"`",
        );
    }
    let path = format!("{}.cast", at.path);
    let read: FieldSpec = cast.as_field(field);
    check_read_keys(
        &read,
        &mut Out {
            path: &path,
            problems: out.problems,
        },
    );
}

/// What to do where there is no such cast.
fn way_out(from: &FieldType, to: &FieldType) -> &'static str {
    match (from, to) {
        (a, b) if a == b => {
            "the type is the same: `formats`, `money`, `null_values` of the field say how it is read"
        }
        (FieldType::Date, FieldType::Timestamp) => {
            "`formats` of the field may hold one without a time of day, which means midnight"
        }
        (FieldType::Float, FieldType::String) => "`lenient = true` takes numbers by their own text",
        (FieldType::Enum, _) => "values of an enum are texts: `from = \"string\"`",
        (_, _) => "use `dual`: a second field takes the values of the new form",
    }
}

fn check_lossy(cast: &CastSpec, to: &FieldType, out: &mut Out<'_>) {
    use FieldType as T;
    let Some(lossy) = cast.lossy else {
        return;
    };
    let allowed: &[Lossy] = match (&cast.from, to) {
        (T::Float | T::Decimal { .. }, T::Int) | (T::Decimal { .. }, T::Decimal { .. }) => {
            &[Lossy::Truncate, Lossy::Round]
        }
        (T::Int | T::Decimal { .. }, T::Float) => &[Lossy::Round],
        (T::Timestamp, T::Date) => &[Lossy::Truncate],
        _ => &[],
    };
    if allowed.contains(&lossy) {
        return;
    }
    let message = format!("`lossy` does not fit a cast from `{}` to `{to}`", cast.from);
    let hint = match allowed {
        [] => "remove it: what does not fit is a mismatch",
        [Lossy::Round] => "such a cast can `round` alone",
        _ => "such a cast can `truncate` alone",
    };
    out.add_with(ProblemCode::KeyMisfit, message, hint);
}
