//! `parse --schema`: the schema files that follow from the rules and the fixtures.

use lakebed::flow::{RuleSchema, RuleSchemaOptions, SchemaFileState, write_rule_schemas};
use lakebed::name::DatasetName;
use lakebed::spec::Datum;
use lakebed::{ErrorKind, Result};
use serde::Serialize;

use crate::args::{ParseArgs, TextFormat};
use crate::commands::parse::{PARSE_ANSWER_FORMAT, Ruled, test_pages};
use crate::commands::skeleton::skeleton_schema;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::message_text;

#[derive(Serialize)]
struct SchemaAnswer<'a> {
    format: u32,
    pass: bool,
    schemas: &'a [RuleSchema],
}

/// `--schema`
pub(super) async fn schemas(
    args: &ParseArgs,
    ruled: &Ruled,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let pages = match test_pages(ruled, false) {
        Ok(pages) => pages,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            globals.printer.warn(format!(
                "source `{}` has no fixture: how many digits decimals need, and what JSON holds, is not known",
                ruled.source.name
            ));
            Vec::new()
        }
        Err(e) => return Err(e),
    };
    let parsed = pages.iter().filter_map(|p| p.parsed.as_ref());
    let records: Vec<(DatasetName, &Datum)> = parsed
        .flat_map(|p| &p.records)
        .map(|r| (r.dataset.clone(), &r.record))
        .collect();
    let options = RuleSchemaOptions {
        unwritten: vec![skeleton_schema(&ruled.source.name)],
        force: args.force,
    };
    let context = Context::open(globals).await?;
    let rules = (&ruled.rules, records.as_slice());
    let written = write_rule_schemas(context.lake(), &ruled.project, rules, &options).await?;
    let pass = written.iter().all(|s| s.state != SchemaFileState::Edited);
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&SchemaAnswer {
            format: PARSE_ANSWER_FORMAT,
            pass,
            schemas: &written,
        })?,
        TextFormat::Text => {
            for schema in &written {
                tell(schema, globals)?;
            }
        }
    }
    if written.iter().any(|s| s.state == SchemaFileState::Written) {
        globals.printer.hint(format!(
            "look at it; `lakebed source test {}` tries it on the fixtures, and once it is published it stays",
            ruled.source.name
        ));
    }
    Ok(if pass { Exit::Done } else { Exit::No })
}

fn tell(schema: &RuleSchema, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let RuleSchema {
        dataset, version, ..
    } = schema;
    let file = schema.file.as_ref().map(|f| f.display().to_string());
    let file = file.unwrap_or_default();
    let what = match schema.state {
        SchemaFileState::Published => {
            return printer.line(format!(
                "{dataset}: version {version} is published, and is what the rules give"
            ));
        }
        SchemaFileState::Same => "there already",
        SchemaFileState::Written if schema.difference.is_empty() => "wrote",
        SchemaFileState::Written => "wrote anew",
        SchemaFileState::Edited => "was edited, and is not what the rules give",
    };
    printer.line(format!("{dataset}: version {version}, {what}: {file}"))?;
    // What nobody published needs no comparison, unless people edited it.
    let lines = match schema.state {
        SchemaFileState::Written if !schema.fields.is_empty() => &schema.fields,
        _ => &schema.difference,
    };
    for line in lines {
        printer.line(format!("  {}", message_text(line)))?;
    }
    if schema.state == SchemaFileState::Edited {
        printer.hint("nothing was changed; `--force` writes it anew, and what was edited is lost");
    }
    Ok(())
}
