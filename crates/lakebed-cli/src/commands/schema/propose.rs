//! `schema propose`: the next version as a file for people to review. Nothing is published here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lakebed::ingest::infer::{Evidence, FieldEvidence, Members, gather, propose_fields};
use lakebed::ingest::read::{InputSource, ReadOptions, resolve_inputs};
use lakebed::name::DatasetRef;
use lakebed::registry::{self, AddedField, Proposal};
use lakebed::spec::{FieldSpec, FieldType, PublishedSchema, ReadSpec, SchemaSpec};
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{ProposeArgs, TextFormat};
use crate::commands::read::read_spec;
use crate::commands::schema::ANSWER_FORMAT;
use crate::commands::schema::infer::tell_evidence;
use crate::context::{Context, Globals};
use crate::exit::Exit;

/// Where the version goes.
enum Target {
    /// The project's place for it.
    Project,
    /// A file that must not exist.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

impl Target {
    fn resolve(output: Option<&Path>) -> Self {
        match output {
            None => Self::Project,
            Some(path) if path.as_os_str() == "-" => Self::Stdout,
            Some(path) => Self::File(path.to_owned()),
        }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    version: u32,
    /// Absent where the version went to standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The version's TOML.
    text: &'a str,
}

/// `lakebed schema propose`
pub(crate) async fn propose(args: &ProposeArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let read = read_spec(&args.read)?;
    let target = Target::resolve(args.output_file.as_deref());
    let context = Context::open(globals).await?;
    context.project().load_source(&dataset.source())?;
    let printer = globals.printer;
    let draft = if args.files.is_empty() {
        draft_copy(&context, &dataset).await?
    } else {
        let inputs = resolve_inputs(&args.files)?;
        draft_next(&context, &dataset, &inputs, &read).await?
    };
    if let Some(evidence) = &draft.evidence {
        tell_evidence(printer, evidence);
    }
    for reason in &draft.reasons {
        printer.info(reason);
    }
    if draft.adds_nothing {
        printer.warn("the files hold nothing that the newest version does not have: the file differs in its number alone");
    }
    let text = registry::render_toml(&draft.spec);
    let version = draft.spec.version;
    let file = match target {
        Target::Project => Some(
            context
                .project()
                .write_schema_file(&dataset, version, &text)?,
        ),
        Target::File(path) => {
            write_new(&path, &text)?;
            Some(path)
        }
        Target::Stdout => None,
    };
    let file = file.map(|f| f.display().to_string());
    match printer.format() {
        TextFormat::Json => printer.json(&Answer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            version,
            file: file.clone(),
            text: &text,
        })?,
        TextFormat::Text => match &file {
            Some(file) => printer.line(format!("wrote {file}"))?,
            None => printer.bytes(text.as_bytes())?,
        },
    }
    if file.is_some() {
        printer.hint(format!("review it, then `lakebed schema check {dataset}` and `lakebed schema publish {dataset} {version}`"));
    }
    Ok(Exit::Done)
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::already_exists(format!("the file `{}` is there already", path.display()))
                    .hint("nothing was changed; move it away or take another name")
            }
            _ => Error::io("write the file", path.display(), e),
        })?;
    file.write_all(text.as_bytes())
        .map_err(|e| Error::io("write the file", path.display(), e))
}

/// A version that was not written yet.
#[derive(Debug)]
pub(super) struct Draft {
    /// The version.
    pub(super) spec: SchemaSpec,
    /// What files said; `None` where none were read.
    evidence: Option<Evidence>,
    /// Why new fields have their types.
    reasons: Vec<String>,
    /// Whether it differs from the newest version in its number alone.
    pub(super) adds_nothing: bool,
}

/// A copy of the newest version under the next number, for people to edit.
async fn draft_copy(context: &Context<'_>, dataset: &DatasetRef) -> Result<Draft> {
    let history = published(context, dataset).await?;
    if history.is_empty() {
        return Err(Error::invalid(format!(
            "no version of `{dataset}` is published yet, and no files were given"
        ))
        .hint(format!(
            "`lakebed schema propose {dataset} FILES...` makes the first version from files"
        )));
    }
    Ok(Draft {
        spec: registry::propose_next(&history, Proposal::default())?,
        evidence: None,
        reasons: Vec::new(),
        adds_nothing: false,
    })
}

/// The next version as files speak for it: further fields and enum values, or the first version.
pub(super) async fn draft_next(
    context: &Context<'_>,
    dataset: &DatasetRef,
    inputs: &[InputSource],
    read: &ReadSpec,
) -> Result<Draft> {
    let history = published(context, dataset).await?;
    let newest = history.last().map(|p| &p.schema);
    let effective = newest.map_or_else(|| read.clone(), |s| s.input.overridden_by(read));
    let evidence = gather(inputs, &ReadOptions::new(&effective)?, None)?;
    let existing: &[FieldSpec] = newest.map_or(&[], |s| &s.fields);
    let next_id = registry::next_free_id(&history);
    let inferred = propose_fields(&evidence, existing, next_id);
    let reasons = inferred
        .choices
        .iter()
        .map(|c| format!("{}: {} ({})", c.path, c.field_type, c.reason))
        .collect();
    let (spec, adds_nothing) = if newest.is_none() {
        let mut spec = registry::propose_first(dataset, inferred.fields, None);
        spec.input = read.clone();
        (spec, false)
    } else {
        let added = inferred.added.into_iter();
        let proposal = Proposal {
            fields: added
                .map(|a| AddedField {
                    parent: a.parent,
                    field: a.field,
                })
                .collect(),
            enum_values: new_enum_values(&evidence, existing),
            note: None,
        };
        let adds_nothing = proposal.fields.is_empty() && proposal.enum_values.is_empty();
        (registry::propose_next(&history, proposal)?, adds_nothing)
    };
    Ok(Draft {
        spec,
        evidence: Some(evidence),
        reasons,
        adds_nothing,
    })
}

async fn published(context: &Context<'_>, dataset: &DatasetRef) -> Result<Vec<PublishedSchema>> {
    let listed = registry::list_published(context.lake(), dataset).await?;
    Ok(listed.into_iter().map(|(p, _)| p).collect())
}

/// Texts that files carry in enum fields and the schema does not list, by field id.
fn new_enum_values(evidence: &Evidence, fields: &[FieldSpec]) -> BTreeMap<u32, Vec<String>> {
    let mut found = BTreeMap::new();
    collect_enum_values(&evidence.root, fields, &mut found);
    found
}

fn collect_enum_values(
    members: &Members,
    fields: &[FieldSpec],
    found: &mut BTreeMap<u32, Vec<String>>,
) {
    for field in fields {
        let Some(seen) = find_evidence(members, field) else {
            continue;
        };
        if *field.field_type.leaf() == FieldType::Enum {
            let known = |v: &str| {
                field.values.iter().any(|k| k == v)
                    || field.null_values.iter().any(|t| t.text() == v)
            };
            let new = seen.distinct.iter().filter(|v| !v.is_empty() && !known(v));
            let new: Vec<String> = new.cloned().collect();
            if !new.is_empty() {
                found.insert(field.id, new);
            }
        }
        if let Some(inner) = &seen.members {
            collect_enum_values(inner, &field.fields, found);
        }
    }
}

/// The evidence under the field's input path, within lists that of their elements.
fn find_evidence<'a>(members: &'a Members, field: &FieldSpec) -> Option<&'a FieldEvidence> {
    let path = registry::input_path(field)?;
    let (last, steps) = path.split_last()?;
    let mut level = members;
    for step in steps {
        level = level.find(step)?.members.as_deref()?;
    }
    let mut seen = level.find(last)?;
    while let Some(elements) = &seen.elements {
        seen = elements;
    }
    Some(seen)
}
