//! `source ...`: the sources of a project, from a skeleton to one that is ready for its days.
//!
//! | file | commands |
//! | --- | --- |
//! | this | `add`, `list`, `show` |
//! | `new` | `new`: a working skeleton |
//! | `check`, `conform`, `fit`, `follow`, `private` | `test`: whether it is ready |
//! | `sample` | `sample`: a few pages to write rules by |

mod check;
mod conform;
mod fit;
mod follow;
mod new;
mod private;
mod sample;

pub(crate) use conform::test;
pub(crate) use new::new;
pub(crate) use sample::sample;

use lakebed::Result;
use lakebed::config::SourceConfig;
use lakebed::log::list_datasets;
use lakebed::name::{DatasetRef, SourceName};
use lakebed::registry;
use lakebed::spec::DatasetClass;
use serde::Serialize;

use crate::args::{ClassArg, SourceAddArgs, SourceShowArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

fn class_of(arg: ClassArg) -> DatasetClass {
    match arg {
        ClassArg::Log => DatasetClass::Log,
        ClassArg::Snapshot => DatasetClass::Snapshot,
        ClassArg::Reference => DatasetClass::Reference,
    }
}

#[derive(Serialize)]
struct AddAnswer<'a> {
    format: u32,
    file: String,
    #[serde(flatten)]
    source: &'a SourceConfig,
}

/// `lakebed source add`
pub(crate) async fn add(args: SourceAddArgs, globals: &Globals<'_>) -> Result<Exit> {
    let name: SourceName = args.name.parse()?;
    let context = Context::open(globals).await?;
    let project = context.project();
    let source = project.add_source(&name, class_of(args.class), args.title.as_deref())?;
    context.put_sources().await?;
    let file = project.source_file(&name).display().to_string();
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&AddAnswer {
            format: ANSWER_FORMAT,
            file,
            source: &source,
        })?,
        TextFormat::Text => globals.printer.line(format!("wrote {file}"))?,
    }
    globals.printer.hint(format!(
        "next: `lakebed schema propose clean/{name} FILES...` writes its first schema version"
    ));
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct ListAnswer {
    format: u32,
    sources: Vec<SourceConfig>,
}

/// `lakebed source list`
pub(crate) fn list(globals: &Globals<'_>) -> Result<Exit> {
    let sources = globals.find_project()?.list_sources()?;
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&ListAnswer {
            format: ANSWER_FORMAT,
            sources,
        })?,
        TextFormat::Text => {
            let mut table = Table::new(["source", "class", "title", "url"]);
            for source in &sources {
                table.row([
                    source.name.as_str(),
                    source.class.as_str(),
                    source.title.as_deref().unwrap_or(""),
                    source.url.as_deref().unwrap_or(""),
                ]);
            }
            globals.printer.table(&table)?;
            if table.is_empty() {
                globals.printer.hint("`lakebed source add NAME` adds one");
            }
        }
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct ShowAnswer<'a> {
    format: u32,
    #[serde(flatten)]
    source: &'a SourceConfig,
    published: Vec<DatasetLine>,
}

/// A dataset of the source with its published versions.
#[derive(Serialize)]
struct DatasetLine {
    dataset: DatasetRef,
    versions: Vec<u32>,
}

/// `lakebed source show`
pub(crate) async fn show(args: &SourceShowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let name: SourceName = args.name.parse()?;
    let context = Context::open(globals).await?;
    let source = context.project().load_source(&name)?;
    let mut published = Vec::new();
    for dataset in list_datasets(context.lake()).await? {
        if dataset.source() == name {
            let listed = registry::list_published(context.lake(), &dataset).await?;
            let versions = listed.iter().map(|(p, _)| p.schema.version).collect();
            published.push(DatasetLine { dataset, versions });
        }
    }
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&ShowAnswer {
            format: ANSWER_FORMAT,
            source: &source,
            published,
        })?,
        TextFormat::Text => {
            let text = |value: Option<&str>| value.unwrap_or("-").to_owned();
            printer.line(format!("source     {name}"))?;
            printer.line(format!("title      {}", text(source.title.as_deref())))?;
            printer.line(format!("class      {}", source.class.as_str()))?;
            printer.line(format!("url        {}", text(source.url.as_deref())))?;
            printer.line(format!("time zone  {}", text(source.time_zone.as_deref())))?;
            for line in &published {
                let versions: Vec<String> = line.versions.iter().map(u32::to_string).collect();
                printer.line(format!(
                    "dataset    {} (schema versions {})",
                    line.dataset,
                    versions.join(", ")
                ))?;
            }
        }
    }
    Ok(Exit::Done)
}
