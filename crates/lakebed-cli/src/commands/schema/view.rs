//! `schema view`: all versions of a dataset as one table for an engine that knows nothing of Lakebed.

use std::collections::{BTreeMap, BTreeSet};

use lakebed::name::DatasetRef;
use lakebed::registry::{self, Engine, ViewRequest, ViewStatement};
use lakebed::spec::{FileFormat, SchemaSpec};
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{TextFormat, ViewArgs};
use crate::commands::schema::ANSWER_FORMAT;
use crate::context::{Context, Globals};
use crate::exit::Exit;

#[derive(Serialize)]
struct ViewAnswer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    engine: Engine,
    #[serde(flatten)]
    view: &'a ViewStatement,
}

/// `lakebed schema view`
pub(crate) async fn view(args: &ViewArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let engine = args.engine.engine();
    if args.table.is_some() && engine != Engine::Trino {
        return Err(Error::invalid("`--table` is for `--engine trino` alone")
            .hint("the other engines read the folder; `--name` names the view"));
    }
    let context = Context::open(globals).await?;
    let state = context.load_known(&dataset).await?;
    let filled: BTreeSet<u32> = state
        .partitions()
        .iter()
        .filter(|(_, p)| p.is_visible() && !p.files.is_empty())
        .map(|(key, _)| key.schema_version)
        .collect();
    let listed = registry::list_published(context.lake(), &dataset).await?;
    let versions: BTreeMap<u32, SchemaSpec> = listed
        .into_iter()
        .map(|(p, _)| (p.schema.version, p.schema))
        .collect();
    let location = match &args.location {
        Some(location) => location.clone(),
        None => lake_folder(&context)?,
    };
    let request = ViewRequest {
        engine,
        dataset: &dataset,
        versions: &versions,
        filled: &filled,
        location: &location,
        name: args.name.as_deref(),
        table: args.table.as_deref(),
    };
    let view = match state.file_format() {
        Some(FileFormat::Jsonl) => registry::write_lines_view(&request)?,
        Some(FileFormat::Rawpack | FileFormat::RawpackIndex) => {
            return Err(Error::invalid(format!(
                "`{dataset}` holds packs, which are no table"
            )));
        }
        Some(FileFormat::Parquet) | None => registry::write_view(&request)?,
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&ViewAnswer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            engine,
            view: &view,
        })?,
        TextFormat::Text => globals.printer.bytes(view.text().as_bytes())?,
    }
    Ok(Exit::Done)
}

/// The lake's folder from the root of the file system.
fn lake_folder(context: &Context<'_>) -> Result<String> {
    let folder = &context.settings().lake.value;
    let whole = std::fs::canonicalize(folder)
        .map_err(|e| Error::io("find the lake's folder", folder.display(), e))?;
    whole.to_str().map(str::to_owned).ok_or_else(|| {
        Error::invalid("the lake's path is not UTF-8, which no SQL statement can name")
            .with("path", whole.display())
            .hint("`--location` takes another way to it, such as a symbolic link")
    })
}
