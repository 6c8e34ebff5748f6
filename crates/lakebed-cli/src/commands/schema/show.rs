//! `schema list | show | history`: what is published.

use lakebed::log::list_datasets;
use lakebed::name::{ContentHash, DatasetRef};
use lakebed::registry::{self, FieldEventKind, FieldHistory};
use lakebed::spec::PublishedSchema;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{HistoryArgs, ListArgs, ShowArgs, TextFormat};
use crate::commands::schema::ANSWER_FORMAT;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::Table;

#[derive(Serialize)]
struct ListAnswer {
    format: u32,
    schemas: Vec<ListLine>,
}

#[derive(Serialize)]
struct ListLine {
    dataset: DatasetRef,
    version: u32,
    base: Option<u32>,
    fields: usize,
    published_at: String,
    user: Option<String>,
    git_commit: Option<String>,
    hash: ContentHash,
    note: Option<String>,
}

impl ListLine {
    fn of(published: PublishedSchema, hash: ContentHash) -> Self {
        Self {
            version: published.schema.version,
            base: published.schema.base,
            fields: registry::list_fields(&published.schema.fields).len(),
            published_at: published.published_at.to_string(),
            user: published.by.user,
            git_commit: published.git_commit,
            hash,
            note: published.schema.note,
            dataset: published.schema.dataset,
        }
    }
}

/// `lakebed schema list`
pub(crate) async fn list(args: &ListArgs, globals: &Globals<'_>) -> Result<Exit> {
    let only: Option<DatasetRef> = args.dataset.as_deref().map(str::parse).transpose()?;
    let context = Context::open(globals).await?;
    let datasets = match only {
        Some(dataset) => {
            context.check_known(&dataset).await?;
            vec![dataset]
        }
        None => list_datasets(context.lake()).await?,
    };
    let mut schemas = Vec::new();
    for dataset in &datasets {
        let listed = registry::list_published(context.lake(), dataset).await?;
        schemas.extend(listed.into_iter().map(|(p, hash)| ListLine::of(p, hash)));
    }
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&ListAnswer {
            format: ANSWER_FORMAT,
            schemas,
        })?,
        TextFormat::Text => {
            let mut table = Table::new([
                "dataset",
                "#version",
                "#fields",
                "published",
                "user",
                "note",
            ]);
            for line in &schemas {
                table.row([
                    line.dataset.to_string(),
                    line.version.to_string(),
                    line.fields.to_string(),
                    line.published_at.clone(),
                    line.user.clone().unwrap_or_default(),
                    line.note.clone().unwrap_or_default(),
                ]);
            }
            globals.printer.table(&table)?;
        }
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct ShowAnswer<'a> {
    hash: &'a ContentHash,
    #[serde(flatten)]
    published: &'a PublishedSchema,
}

/// `lakebed schema show`
pub(crate) async fn show(args: &ShowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    let (published, hash) = match args.version {
        Some(version) => registry::get(context.lake(), &dataset, version).await?,
        None => {
            context.check_known(&dataset).await?;
            registry::latest(context.lake(), &dataset)
                .await?
                .ok_or_else(|| {
                    Error::not_found(format!("no version of `{dataset}` is published")).hint(
                        format!("`lakebed schema publish {dataset} 1` publishes one"),
                    )
                })?
        }
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&ShowAnswer {
            hash: &hash,
            published: &published,
        })?,
        TextFormat::Text => globals
            .printer
            .bytes(registry::render_toml(&published.schema).as_bytes())?,
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct HistoryAnswer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    fields: &'a [FieldHistory],
}

/// `lakebed schema history`
pub(crate) async fn history(args: &HistoryArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    context.check_known(&dataset).await?;
    let listed = registry::list_published(context.lake(), &dataset).await?;
    let versions: Vec<PublishedSchema> = listed.into_iter().map(|(p, _)| p).collect();
    let lives = registry::history(&versions, &args.field)?;
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&HistoryAnswer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            fields: &lives,
        })?,
        TextFormat::Text => {
            let mut table = Table::new(["#id", "field", "#version", "published", "what"]);
            for life in &lives {
                for event in &life.events {
                    table.row([
                        life.id.to_string(),
                        life.path.clone(),
                        event.version.to_string(),
                        event.published_at.to_string(),
                        event_text(&event.what),
                    ]);
                }
            }
            globals.printer.table(&table)?;
        }
    }
    Ok(Exit::Done)
}

fn event_text(what: &FieldEventKind) -> String {
    let side = |v: &Option<String>| v.clone().unwrap_or_else(|| "(none)".to_owned());
    match what {
        FieldEventKind::Added {
            field_type,
            instead_of,
        } => match instead_of {
            None => format!("added as {field_type}"),
            Some(old) => format!("added as {field_type} in the place of id {old}"),
        },
        FieldEventKind::Retyped { to, field_type } => {
            format!("retyped: id {to} took its place, as {field_type}")
        }
        FieldEventKind::Renamed { from, to } => format!("renamed from `{from}` to `{to}`"),
        FieldEventKind::Changed { key, old, new } => {
            format!("{key}: {} -> {}", side(old), side(new))
        }
        FieldEventKind::Removed => "removed".to_owned(),
        FieldEventKind::Returned => "back".to_owned(),
    }
}
