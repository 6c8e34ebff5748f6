//! Whether a version is sound by itself: numbers, ids, names, inputs, `[input]`.
//!
//! What its fields declare is checked in `validate_field`; what came before in `evolution`.

use std::collections::BTreeMap;

use encoding_rs::Encoding;

use crate::registry::validate_change::check_change;
use crate::registry::validate_field::check_field;
use crate::registry::{FieldAt, Problem, ProblemCode, is_reserved_name, list_fields, origin_type};
use crate::spec::{ChangeKind, FieldSpec, InputFormat, MAX_FIELD_ID, ReadSpec, SchemaSpec};

/// Longest column name, in bytes of UTF-8.
const MAX_NAME_BYTES: usize = 255;
/// Deepest nesting of structs in structs.
const MAX_STRUCT_DEPTH: usize = 16;

/// Everything that is wrong with the version by itself, in the order of the file.
#[must_use]
pub fn validate(spec: &SchemaSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_numbers(spec, &mut problems);
    check_read_spec(&spec.input, &mut problems);
    let fields = list_fields(&spec.fields);
    if fields.is_empty() {
        problems.push(
            Problem::new(ProblemCode::BadShape, "the version has no field")
                .hint("add a table `[[field]]` with `id`, `name` and `type`"),
        );
    }
    check_ids(&fields, &mut problems);
    for at in &fields {
        check_name(at, &mut problems);
        if at.depth > MAX_STRUCT_DEPTH {
            let message = format!("structs are nested deeper than {MAX_STRUCT_DEPTH}");
            problems.push(
                Problem::at(ProblemCode::BadShape, &at.path, message)
                    .hint("give the upper field the type `json`"),
            );
        }
        check_field(at, &mut problems);
        check_change(at, &mut problems);
    }
    check_level(&spec.fields, "", &mut problems);
    for at in &fields {
        check_level(&at.field.fields, &format!("{}.", at.path), &mut problems);
    }
    problems
}

fn check_numbers(spec: &SchemaSpec, problems: &mut Vec<Problem>) {
    let mut add = |message: String, hint: &str| {
        problems.push(Problem::new(ProblemCode::BadNumber, message).hint(hint));
    };
    match (spec.version, spec.base) {
        (0, _) => add(
            "version 0 means schemaless bytes".to_owned(),
            "versions of a schema count from 1",
        ),
        (1, Some(base)) => add(
            format!("version 1 has no base, `base` says {base}"),
            "remove `base`",
        ),
        (1, None) => {}
        (version, None) => add(
            format!("version {version} does not say which version it was made from"),
            "add `base`, the newest published version",
        ),
        (version, Some(base)) if base >= version || base == 0 => add(
            format!("version {version} cannot be made from version {base}"),
            "`base` is the newest published version",
        ),
        (_, Some(_)) => {}
    }
    if spec.version == 1 && !spec.removed.is_empty() {
        add(
            "version 1 has nothing to remove".to_owned(),
            "remove the key `removed`",
        );
    }
}

fn check_ids(fields: &[FieldAt<'_>], problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
    for at in fields {
        let id = at.field.id;
        if id == 0 || id > MAX_FIELD_ID {
            let message = format!("id `{id}` is not one of 1 to {MAX_FIELD_ID}");
            problems.push(Problem::at(ProblemCode::BadNumber, &at.path, message));
        }
        if let Some(other) = seen.insert(id, &at.path) {
            let message = format!("id `{id}` is also the id of `{other}`");
            problems.push(
                Problem::at(ProblemCode::DuplicateId, &at.path, message)
                    .hint("ids are unique over all fields and their members"),
            );
        }
    }
}

fn check_name(at: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let name = &at.field.name;
    let wrong = if name.is_empty() {
        Some("the name is empty".to_owned())
    } else if name.len() > MAX_NAME_BYTES {
        Some(format!("the name is longer than {MAX_NAME_BYTES} bytes"))
    } else if name.chars().any(char::is_control) {
        Some(format!(
            "the name `{}` has a control character",
            name.escape_debug()
        ))
    } else if name.chars().all(char::is_whitespace) {
        Some("the name is blank".to_owned())
    } else if name.starts_with('/') && at.field.from.is_none() {
        Some(format!("the name `{name}` would be read as a JSON pointer"))
    } else {
        None
    };
    if let Some(message) = wrong {
        problems.push(
            Problem::at(ProblemCode::BadName, &at.path, message)
                .hint("give the column another name, and `from` = the name in the input"),
        );
    }
    // Members cannot clash with our columns, and `_type` is common within JSON objects.
    let origin = origin_type(name).filter(|_| at.depth == 0);
    if origin.as_ref() == Some(&at.field.field_type) {
        return;
    }
    if let Some(wanted) = origin {
        let message = format!("`{name}` must be of type `{wanted}`");
        problems.push(
            Problem::at(ProblemCode::ReservedName, &at.path, message)
                .hint("it is filled by `lakebed parse`: where a row comes from"),
        );
        return;
    }
    if at.depth == 0 && is_reserved_name(name) {
        problems.push(
            Problem::at(
                ProblemCode::ReservedName,
                &at.path,
                format!("the name `{name}` is reserved"),
            )
            .hint(
                "`dt`, `schema_version`, `source` and names beginning with `_` are Lakebed's own, \
                 in any case; give the column another name, and `from` = the name in the input",
            ),
        );
    }
}

/// The way from the parent to the value that a field reads, by member names.
///
/// A plain name is one step; a JSON pointer has as many as it has parts; `None` = no pointer.
#[must_use]
pub fn input_path(field: &FieldSpec) -> Option<Vec<String>> {
    let name = field.input_name();
    match name.strip_prefix('/') {
        Some(rest) => rest.split('/').map(unescape).collect(),
        None => Some(vec![name.to_owned()]),
    }
}

/// A part of a JSON pointer (RFC 6901): `~1` is `/`, `~0` is `~`.
fn unescape(part: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '~' => match chars.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

/// Fields side by side: names apart without case, inputs apart but for `dual`.
fn check_level(fields: &[FieldSpec], prefix: &str, problems: &mut Vec<Problem>) {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    let mut inputs: BTreeMap<Vec<String>, Vec<&FieldSpec>> = BTreeMap::new();
    let mut columns: BTreeMap<String, &str> = BTreeMap::new();
    for field in fields {
        let path = format!("{prefix}{}", field.name);
        let other = columns.insert(field.column_name().to_lowercase(), &field.name);
        if let Some(other) = other.filter(|o| o.to_lowercase() != field.name.to_lowercase()) {
            let message = format!(
                "`{other}` and `{}` are one column in the files, `{}`",
                field.name,
                field.column_name()
            );
            problems.push(Problem::at(ProblemCode::NameCollision, &path, message));
        }
        if let Some(other) = names.insert(field.name.to_lowercase(), &field.name) {
            let message = if *other == field.name {
                format!("the name `{other}` stands twice")
            } else {
                format!(
                    "the names `{other}` and `{}` differ only by case",
                    field.name
                )
            };
            problems.push(
                Problem::at(ProblemCode::NameCollision, &path, message)
                    .hint("many readers fold case; give one another name, and `from` = the name in the input"),
            );
        }
        match input_path(field) {
            Some(steps) => inputs.entry(steps).or_default().push(field),
            None => problems.push(
                Problem::at(
                    ProblemCode::BadPointer,
                    &path,
                    format!("`from` = `{}` is not a JSON pointer", field.input_name()),
                )
                .hint("within a pointer `~` is written `~0` and `/` is written `~1`"),
            ),
        }
    }
    for group in inputs.into_values().filter(|g| g.len() > 1) {
        check_shared_input(&group, prefix, problems);
    }
}

/// Fields that read one input value: at most one without `change = "dual"`, and that one optional.
fn check_shared_input(group: &[&FieldSpec], prefix: &str, problems: &mut Vec<Problem>) {
    let plain: Vec<_> = group
        .iter()
        .filter(|f| f.change != Some(ChangeKind::Dual))
        .collect();
    let Some(old) = plain.first() else {
        return;
    };
    for field in plain.iter().skip(1) {
        let message = format!(
            "`{}` and `{}` read one input, `{}`",
            old.name,
            field.name,
            field.input_name()
        );
        let path = format!("{prefix}{}", field.name);
        problems.push(
            Problem::at(ProblemCode::InputCollision, &path, message)
                .hint("where a type changed, the new field says `change = \"dual\"`"),
        );
    }
    if plain.len() == 1 && old.required {
        problems.push(
            Problem::at(
                ProblemCode::KeyMisfit,
                &format!("{prefix}{}", old.name),
                "`required` cannot hold where a `dual` field reads the same input",
            )
            .hint("drop `required`: its column is NULL where only the new type takes the value; the new field may be required"),
        );
    }
}

fn check_read_spec(input: &ReadSpec, problems: &mut Vec<Problem>) {
    let mut add = |message: String, hint: &str| {
        let problem = Problem::new(ProblemCode::BadInput, format!("`[input]`: {message}"));
        problems.push(if hint.is_empty() {
            problem
        } else {
            problem.hint(hint)
        });
    };
    if let Some(label) = &input.encoding
        && !is_known_encoding(label)
    {
        add(
            format!("`encoding` = `{label}` is not known"),
            "use a WHATWG label, for example `gbk`, `gb18030`, `big5`, `shift_jis`, `windows-1252`",
        );
    }
    for (key, mark) in [("delimiter", &input.delimiter), ("quote", &input.quote)] {
        if let Some(mark) = mark
            && !is_mark(mark)
        {
            add(
                format!(
                    "`{key}` = `{}` is not one ASCII character",
                    mark.escape_debug()
                ),
                "tab is written \"\\t\"",
            );
        }
    }
    let tsv = input.format == Some(InputFormat::Tsv);
    let delimiter = input
        .delimiter
        .as_deref()
        .unwrap_or(if tsv { "\t" } else { "," });
    if delimiter == input.quote.as_deref().unwrap_or("\"") {
        add("`delimiter` and `quote` are the same".to_owned(), "");
    }
    if let Some(header) = &input.header {
        let mut seen = std::collections::BTreeSet::new();
        if header.is_empty() {
            add(
                "`header` names no column".to_owned(),
                "remove the key where files have a header line",
            );
        }
        for name in header {
            if !seen.insert(name) {
                add(format!("`header` names `{name}` twice"), "");
            }
        }
    }
    if let Some(records) = &input.records
        && !is_pointer(records)
    {
        add(
            format!("`records` = `{records}` is not a JSON pointer"),
            "for example `/data/items`; within it `~` is written `~0` and `/` is written `~1`",
        );
    }
    check_read_keys_fit(input, &mut add);
}

fn check_read_keys_fit(input: &ReadSpec, add: &mut dyn FnMut(String, &str)) {
    let Some(format) = input.format else { return };
    let cells = [
        ("delimiter", input.delimiter.is_some()),
        ("quote", input.quote.is_some()),
        ("header", input.header.is_some()),
    ];
    let records = ("records", input.records.is_some());
    let encoding = ("encoding", input.encoding.is_some());
    let (name, misfits): (_, Vec<_>) = match format {
        InputFormat::Json | InputFormat::Jsonl => ("JSON", cells.to_vec()),
        InputFormat::Csv | InputFormat::Tsv => ("CSV", vec![records]),
        InputFormat::Parquet => ("Parquet", [&cells[..], &[records, encoding]].concat()),
    };
    for (key, there) in misfits {
        if there {
            add(
                format!("`{key}` does not fit {name} files"),
                "remove the key",
            );
        }
    }
}

fn is_known_encoding(label: &str) -> bool {
    // Some labels stand for encodings that no one may read any more; they map to "replacement".
    Encoding::for_label(label.as_bytes()).is_some_and(|e| e != encoding_rs::REPLACEMENT)
}

fn is_mark(text: &str) -> bool {
    let mut chars = text.chars();
    let one = matches!((chars.next(), chars.next()), (Some(c), None) if c.is_ascii());
    one && !matches!(text, "\n" | "\r" | "\0")
}

pub(crate) fn is_pointer(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|p| unescape(p).is_some()))
}

#[cfg(test)]
mod tests;
