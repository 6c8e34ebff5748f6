//! `schema infer`: evidence per field, and the type it speaks for, with the reason; decides nothing.

use lakebed::ingest::infer::{
    Evidence, FieldEvidence, InferredFields, Members, gather, propose_fields,
};
use lakebed::ingest::read::{ReadOptions, resolve_inputs};
use lakebed::name::DatasetRef;
use lakebed::{Result, registry};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{InferArgs, TextFormat};
use crate::commands::read::read_spec;
use crate::commands::schema::ANSWER_FORMAT;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::table::{Table, count, grouped};

/// Deepest nesting that is listed.
const MAX_DEPTH: usize = 16;
/// Characters of a sample in a table.
const SAMPLE_CHARS: usize = 40;

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    files: &'a [String],
    records: u64,
    unreadable: u64,
    fields: Vec<FieldLine>,
}

/// What was seen under one path.
#[derive(Serialize)]
struct FieldLine {
    path: String,
    /// The type that the evidence speaks for; absent for fields that the schema has already.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    field_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    kinds: Map<String, Value>,
    absent: u64,
    null: u64,
    empty: u64,
    first_file: Option<String>,
    samples: Vec<String>,
}

/// `lakebed schema infer`
pub(crate) async fn infer(args: &InferArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let mut read = read_spec(&args.read)?;
    let inputs = resolve_inputs(&args.files)?;
    let mut existing = Vec::new();
    // Evidence needs no project; where there is one, its schema says what is known already.
    if globals.find_project().is_ok() {
        let context = Context::open(globals).await?;
        if let Some((newest, _)) = registry::latest(context.lake(), &dataset).await? {
            read = newest.schema.input.overridden_by(&read);
            existing = newest.schema.fields;
        }
    }
    let evidence = gather(&inputs, &ReadOptions::new(&read)?, None)?;
    let inferred = propose_fields(&evidence, &existing, 1);
    let fields = field_lines(&evidence, &inferred);
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&Answer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            files: &evidence.files,
            records: evidence.records,
            unreadable: evidence.unreadable,
            fields,
        })?,
        TextFormat::Text => print_table(printer, &fields)?,
    }
    tell_evidence(printer, &evidence);
    printer.hint(format!(
        "`lakebed schema propose {dataset} FILES...` writes the next version as a file to review"
    ));
    Ok(Exit::Done)
}

/// What a person should know of the evidence, on stderr.
pub(super) fn tell_evidence(printer: &Printer, evidence: &Evidence) {
    for warning in &evidence.warnings {
        printer.warn(warning);
    }
    printer.info(format!(
        "{} in {}",
        count(evidence.records, "record"),
        count(evidence.files.len() as u64, "file")
    ));
    if evidence.unreadable > 0 {
        let first = evidence.first_unreadable.as_deref().unwrap_or("");
        printer.warn(format!(
            "{} could not be read as a record; the first: {first}",
            count(evidence.unreadable, "line")
        ));
    }
}

fn print_table(printer: &Printer, fields: &[FieldLine]) -> Result<()> {
    let mut table = Table::new([
        "field", "type", "#absent", "#null", "#empty", "seen", "samples", "why",
    ]);
    for field in fields {
        let seen: Vec<String> = field
            .kinds
            .iter()
            .map(|(kind, n)| format!("{kind} {n}"))
            .collect();
        table.row([
            field.path.clone(),
            type_text(field),
            grouped(field.absent),
            grouped(field.null),
            grouped(field.empty),
            seen.join(", "),
            field
                .samples
                .iter()
                .take(3)
                .map(|sample| short(sample))
                .collect::<Vec<_>>()
                .join(" | "),
            field.reason.clone().unwrap_or_default(),
        ]);
    }
    printer.table(&table)
}

/// A sample in one line, its beginning alone: a nested value is as long as its file.
fn short(sample: &str) -> String {
    let line = sample.replace("\\n", " ").replace("\\t", " ");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut begin: String = line.chars().take(SAMPLE_CHARS).collect();
    if begin.len() < line.len() {
        begin.push('…');
    }
    begin
}

/// Elements have no type of their own; a field without a proposed one is declared already.
fn type_text(field: &FieldLine) -> String {
    match &field.field_type {
        Some(field_type) => field_type.clone(),
        None if field.path.ends_with("[]") => String::new(),
        None => "(as declared)".to_owned(),
    }
}

fn field_lines(evidence: &Evidence, inferred: &InferredFields) -> Vec<FieldLine> {
    let mut walk = Walk {
        evidence,
        inferred,
        lines: Vec::new(),
    };
    walk.members(&evidence.root, "", 0);
    walk.lines
}

struct Walk<'a> {
    evidence: &'a Evidence,
    inferred: &'a InferredFields,
    lines: Vec<FieldLine>,
}

impl Walk<'_> {
    fn members(&mut self, members: &Members, prefix: &str, depth: usize) {
        for (name, field) in members.iter() {
            let path = if prefix.is_empty() {
                name.to_owned()
            } else {
                format!("{prefix}.{name}")
            };
            self.field(&path, field, members.absent(field), depth);
        }
    }

    fn field(&mut self, path: &str, field: &FieldEvidence, absent: u64, depth: usize) {
        let choice = self.inferred.choices.iter().find(|c| c.path == path);
        let kinds = field.kinds.seen().into_iter();
        self.lines.push(FieldLine {
            path: path.to_owned(),
            field_type: choice.map(|c| c.field_type.to_string()),
            reason: choice.map(|c| c.reason.clone()),
            kinds: kinds.map(|(k, n)| (k.to_owned(), Value::from(n))).collect(),
            absent,
            null: field.kinds.null,
            empty: field.texts.empty,
            first_file: self.evidence.files.get(field.first_file).cloned(),
            samples: field.samples.clone(),
        });
        if depth >= MAX_DEPTH {
            return;
        }
        if let Some(members) = &field.members {
            self.members(members, path, depth + 1);
        }
        if let Some(elements) = &field.elements {
            match &elements.members {
                Some(members) if elements.kinds.values() == elements.kinds.object => {
                    self.members(members, &format!("{path}[]"), depth + 1);
                }
                Some(_) | None => self.field(&format!("{path}[]"), elements, 0, depth + 1),
            }
        }
    }
}
