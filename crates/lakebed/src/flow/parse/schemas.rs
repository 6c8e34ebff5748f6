//! The schema files that follow from the rules of a source and the records of its fixtures.
//!
//! A file that nobody published and nobody edited is written anew; one that was edited is kept unless the call is told
//! to replace it. Its first line says by its hash whether somebody has.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::Project;
use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetName, DatasetRef, Layer};
use crate::parse::Rules;
use crate::registry::{self, AddedField, Proposal, render_toml, widens};
use crate::spec::{Datum, FieldSpec, FieldType, PublishedSchema, RemovedField, SchemaSpec};
use crate::store::Lake;

/// What the first line of such a file begins with; the hash of the rest follows.
const HEAD: &str = "# as `lakebed parse SOURCE --schema` wrote it: ";
/// The note of a first version.
const NOTE: &str = "as the rules give it";

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaFileState {
    /// The published version is what the rules give.
    Published,
    /// The file says so already.
    Same,
    /// It was written, or written anew.
    Written,
    /// It was edited, says something else, and is as it was.
    Edited,
}

/// The version of a dataset that follows from rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleSchema {
    /// Of which dataset.
    pub dataset: DatasetRef,
    /// Which version.
    pub version: u32,
    /// Where it is; absent where the published version is the one.
    pub file: Option<PathBuf>,
    /// What became of it.
    pub state: SchemaFileState,
    /// From what the file said to what the rules give, a line each; none where there was no file.
    pub difference: Vec<String>,
    /// The fields of a first version with their types, a line each; none of a later one.
    pub fields: Vec<String>,
}

/// How schema files are written.
#[derive(Debug, Clone, Default)]
pub struct RuleSchemaOptions {
    /// Texts that nobody wrote by hand: a file that is one of them is replaced.
    pub unwritten: Vec<String>,
    /// Replace a file that was edited.
    pub force: bool,
}

/// Writes the schema file of each dataset of the rules, where the published version is another one.
///
/// # Errors
/// `PreconditionFailed` where a published field has a type that does not hold what the rules give, or where nothing
/// says which fields a dataset has.
pub async fn write_rule_schemas(
    lake: &Lake,
    project: &Project,
    (rules, records): (&Rules, &[(DatasetName, &Datum)]),
    options: &RuleSchemaOptions,
) -> Result<Vec<RuleSchema>> {
    let mut answers = Vec::new();
    for name in rules.datasets() {
        let seen = records.iter().filter(|(dataset, _)| *dataset == name);
        let seen: Vec<&Datum> = seen.map(|(_, record)| *record).collect();
        let columns = rules.columns(&name, &seen);
        let dataset = DatasetRef {
            layer: Layer::Clean,
            dataset: name,
        };
        if columns.is_empty() {
            return Err(Error::precondition(format!(
                "no fixture shows a record of `{dataset}`, which a program gives"
            ))
            .hint(format!(
                "`lakebed parse {} --try PAGE --save NAME` keeps a page that has one",
                dataset.source()
            )));
        }
        let listed = registry::list_published(lake, &dataset).await?;
        let history: Vec<_> = listed.into_iter().map(|(p, _)| p).collect();
        answers.push(match next_version(&dataset, columns, &history)? {
            Some(spec) => put_file(project, &spec, options)?,
            None => RuleSchema {
                version: history.last().map_or(0, |p| p.schema.version),
                dataset,
                file: None,
                state: SchemaFileState::Published,
                difference: Vec::new(),
                fields: Vec::new(),
            },
        });
    }
    Ok(answers)
}

fn put_file(
    project: &Project,
    spec: &SchemaSpec,
    options: &RuleSchemaOptions,
) -> Result<RuleSchema> {
    let path = project.schema_file(&spec.dataset, spec.version);
    let body = render_toml(spec);
    let text = format!("{HEAD}{}\n{body}", ContentHash::of(body.as_bytes()).short());
    let is_first = spec.base.is_none();
    let mut difference = Vec::new();
    let state = match std::fs::read_to_string(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            project.write_schema_file(&spec.dataset, spec.version, &text)?;
            SchemaFileState::Written
        }
        Err(e) => return Err(Error::io("read the file", path.display(), e)),
        Ok(there) => {
            let same = match registry::parse(&there, path.display()) {
                Ok(known) => {
                    let diff = registry::diff(&known, spec);
                    match is_first {
                        true => compare_names("", &known.fields, &spec.fields, &mut difference),
                        false => difference.extend(diff.to_text().lines().map(str::to_owned)),
                    }
                    if difference.is_empty() && !diff.is_empty() {
                        difference
                            .push("the order of the fields, or what is said of them".to_owned());
                    }
                    diff.is_empty()
                }
                Err(e) => {
                    difference.push(format!("what stands there cannot be read: {e}"));
                    false
                }
            };
            let is_ours = is_as_written(&there) || options.unwritten.contains(&there);
            match (same, is_ours || options.force) {
                (true, _) => SchemaFileState::Same,
                (false, false) => SchemaFileState::Edited,
                (false, true) => {
                    project.replace_schema_file(&spec.dataset, spec.version, &text)?;
                    SchemaFileState::Written
                }
            }
        }
    };
    Ok(RuleSchema {
        dataset: spec.dataset.clone(),
        version: spec.version,
        file: Some(path),
        state,
        difference,
        fields: match is_first {
            true => spec.fields.iter().map(typed).collect(),
            false => Vec::new(),
        },
    })
}

/// `price decimal(12,2)`
fn typed(field: &FieldSpec) -> String {
    let required = if field.required { ", required" } else { "" };
    format!("{} {}{required}", field.name, field.field_type)
}

/// Where the fields of two texts differ that nobody published: ids that nobody relies on say nothing.
fn compare_names(path: &str, known: &[FieldSpec], new: &[FieldSpec], told: &mut Vec<String>) {
    let of = |fields: &[FieldSpec], name: &str| fields.iter().find(|f| f.name == name).cloned();
    for field in new {
        let Some(there) = of(known, &field.name) else {
            told.push(format!("+ {path}{}", typed(field)));
            continue;
        };
        let (before, after) = (typed(&there), typed(field));
        if before != after {
            told.push(format!("~ {path}{before}: the rules give {after}"));
        }
        let below = format!("{path}{}.", field.name);
        compare_names(&below, &there.fields, &field.fields, told);
    }
    let gone = known.iter().filter(|f| of(new, &f.name).is_none());
    told.extend(gone.map(|f| format!("- {path}{}", typed(f))));
}

/// Whether a file is as such a call left it.
fn is_as_written(text: &str) -> bool {
    let parts = text.strip_prefix(HEAD).and_then(|t| t.split_once('\n'));
    parts.is_some_and(|(hash, body)| ContentHash::of(body.as_bytes()).short() == hash)
}

/// The version that the columns need; `None` where the newest published one holds them all, and nothing else.
fn next_version(
    dataset: &DatasetRef,
    columns: Vec<FieldSpec>,
    history: &[PublishedSchema],
) -> Result<Option<SchemaSpec>> {
    let Some(newest) = history.last().map(|p| &p.schema) else {
        let note = Some(NOTE.to_owned());
        return Ok(Some(registry::propose_first(dataset, columns, note)));
    };
    let mut found = Found::default();
    compare(dataset, None, &newest.fields, columns, &mut found)?;
    let is_gone = |f: &&FieldSpec| !found.kept.contains(&f.id);
    let gone: Vec<&FieldSpec> = newest.fields.iter().filter(is_gone).collect();
    if found.added.is_empty() && found.widened.is_empty() && gone.is_empty() {
        return Ok(None);
    }
    let mut told: Vec<String> = Vec::new();
    let paths = found.added.iter().map(|a| &a.field);
    told.extend(paths.map(|f| format!("adds {} ({})", f.name, f.field_type)));
    told.extend(gone.iter().map(|f| format!("drops {}", f.name)));
    let wider = found.widened.iter();
    told.extend(wider.map(|(name, _, wide)| format!("widens {name} to {wide}")));
    let proposal = Proposal {
        fields: found.added,
        note: Some(told.join("; ")),
        ..Proposal::default()
    };
    let mut spec = registry::propose_next(history, proposal)?;
    spec.fields.retain(|f| gone.iter().all(|g| g.id != f.id));
    let names = gone.iter().map(|f| RemovedField::Name(f.name.clone()));
    spec.removed = names.collect();
    widen(&mut spec.fields, &found.widened);
    Ok(Some(spec))
}

/// What a published version lacks.
#[derive(Default)]
struct Found {
    added: Vec<AddedField>,
    /// Name, id and new type.
    widened: Vec<(String, u32, FieldType)>,
    /// Ids of top-level fields that the rules give.
    kept: Vec<u32>,
}

fn compare(
    dataset: &DatasetRef,
    parent: Option<u32>,
    known: &[FieldSpec],
    columns: Vec<FieldSpec>,
    found: &mut Found,
) -> Result<()> {
    for column in columns {
        let Some(field) = known.iter().find(|f| f.input_name() == column.name) else {
            found.added.push(AddedField {
                parent,
                field: FieldSpec {
                    // Earlier rows have none.
                    required: false,
                    ..column
                },
            });
            continue;
        };
        if parent.is_none() {
            found.kept.push(field.id);
        }
        if widens(&field.field_type, &column.field_type) {
            let (name, wide) = (field.name.clone(), column.field_type.clone());
            if field.field_type != wide && !widens(&wide, &field.field_type) {
                found.widened.push((name, field.id, wide));
            }
        } else if !holds(&field.field_type, &column.field_type) {
            return Err(Error::precondition(format!(
                "`{}` of `{dataset}` is published as {}, and the rules give {}",
                column.name, field.field_type, column.field_type
            ))
            .hint("what is published stays: give the field another name in the rules, or clean it into the type that it had")
            .hint("docs/formats/schema.md tells how a field takes another type (`change`)"));
        }
        if *field.field_type.leaf() == FieldType::Struct {
            compare(dataset, Some(field.id), &field.fields, column.fields, found)?;
        }
    }
    Ok(())
}

/// Whether a published type takes what rules give; people may have chosen it for how a text is to be read.
fn holds(known: &FieldType, column: &FieldType) -> bool {
    match (known, column) {
        (a, b) if a == b => true,
        (FieldType::Json, _) | (_, FieldType::Json) => true,
        (FieldType::List(a), FieldType::List(b)) => holds(a, b),
        (FieldType::Map(_), FieldType::Struct) => true,
        (FieldType::List(_) | FieldType::Map(_) | FieldType::Struct, _) => false,
        (_, FieldType::String) => true,
        (FieldType::Decimal { .. }, FieldType::Decimal { .. }) => widens(column, known),
        (FieldType::Float | FieldType::Decimal { .. }, FieldType::Int) => true,
        // Their values are texts.
        (
            FieldType::String | FieldType::Float,
            FieldType::Decimal { .. } | FieldType::Date | FieldType::Timestamp,
        ) => *known == FieldType::String || matches!(column, FieldType::Decimal { .. }),
        _ => false,
    }
}

fn widen(fields: &mut [FieldSpec], widened: &[(String, u32, FieldType)]) {
    for field in fields {
        if let Some((_, _, wide)) = widened.iter().find(|(_, id, _)| *id == field.id) {
            field.field_type = wide.clone();
        }
        widen(&mut field.fields, widened);
    }
}
