//! `init` and `config show`.

use std::path::PathBuf;
use std::sync::Arc;

use lakebed::Result;
use lakebed::catalog::{SqliteCatalog, sync_all};
use lakebed::config::{InitStep, Project, Settings, ShownSetting};
use serde::Serialize;

use crate::args::{ConfigShowArgs, InitArgs, TextFormat};
use crate::context::{Globals, make_lake};
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

/// `init`, resolved.
struct InitOptions {
    root: PathBuf,
    zone: Option<String>,
}

impl InitOptions {
    fn resolve(args: InitArgs, globals: &Globals<'_>) -> Self {
        let root = args
            .dir
            .or_else(|| globals.project.clone())
            .unwrap_or_else(|| PathBuf::from("."));
        Self {
            root,
            zone: args.time_zone,
        }
    }
}

#[derive(Serialize)]
struct InitAnswer<'a> {
    format: u32,
    project: String,
    lake: String,
    lake_id: &'a str,
    catalog: String,
    time_zone: &'a str,
    written: Vec<String>,
    kept: Vec<String>,
}

/// `lakebed init`
pub(crate) async fn init(args: InitArgs, globals: &Globals<'_>) -> Result<Exit> {
    let options = InitOptions::resolve(args, globals);
    let made = Project::init(&options.root, options.zone.as_deref())?;
    let settings = Settings::load(&made.project, &globals.layers())?;
    let lake = make_lake(&settings).await?;
    let catalog = Arc::new(SqliteCatalog::open(&settings.catalog.value).await?);
    sync_all(&lake, &*catalog).await?;

    let steps = |wanted: InitStep| -> Vec<String> {
        made.steps
            .iter()
            .filter(|(_, step)| *step == wanted)
            .map(|(path, _)| path.display().to_string())
            .collect()
    };
    let answer = InitAnswer {
        format: ANSWER_FORMAT,
        project: made.project.root().display().to_string(),
        lake: lake.store().location(),
        lake_id: lake.id().as_str(),
        catalog: settings.catalog.value.display().to_string(),
        time_zone: &made.time_zone,
        written: steps(InitStep::Written),
        kept: steps(InitStep::Kept),
    };
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&answer)?,
        TextFormat::Text => {
            printer.line(format!("project    {}", answer.project))?;
            printer.line(format!("lake       {} ({})", answer.lake, answer.lake_id))?;
            printer.line(format!("catalog    {}", answer.catalog))?;
            printer.line(format!("time zone  {}", answer.time_zone))?;
        }
    }
    for file in &answer.written {
        printer.info(format!("wrote {file}"));
    }
    if made.is_default_zone {
        printer.warn("no time zone was given: business dates are days in UTC");
        printer.hint("a lake keeps its zone for ever; for another one, remove the new folder and call `lakebed init DIR --time-zone Asia/Taipei`");
    }
    if !answer.written.is_empty() {
        printer.hint("next, for a site that is crawled here: `lakebed source new NAME --url URL --contact MAIL`");
        printer.hint("next, for files: `lakebed source add NAME`, then `lakebed schema propose clean/NAME FILES...`");
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct ConfigAnswer {
    format: u32,
    project: String,
    settings: Vec<ShownSetting>,
}

/// `lakebed config show`
pub(crate) fn show(args: &ConfigShowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?.show();
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&ConfigAnswer {
            format: ANSWER_FORMAT,
            project: project.root().display().to_string(),
            settings,
        })?,
        TextFormat::Text => {
            let mut table = if args.origin {
                Table::new(["key", "value", "origin"])
            } else {
                Table::new(["key", "value"])
            };
            for setting in &settings {
                let value = setting.value.clone().unwrap_or_else(|| "-".to_owned());
                let mut row = vec![setting.key.clone(), value];
                if args.origin {
                    row.push(setting.origin.to_string());
                }
                table.row(row);
            }
            printer.table(&table)?;
        }
    }
    Ok(Exit::Done)
}
