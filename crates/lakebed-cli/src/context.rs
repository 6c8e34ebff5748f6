//! What a command works with: the project, its settings, the lake, the catalog, opened in one place.

use std::path::PathBuf;
use std::sync::Arc;

use lakebed::catalog::{self, Catalog, SourceRow, SqliteCatalog};
use lakebed::config::{Layers, Project, SettingKey, Settings, SourceConfig, nearest};
use lakebed::log::{self, DatasetState, list_datasets};
use lakebed::name::{DatasetRef, RunName};
use lakebed::spec::By;
use lakebed::store::{Lake, LocalStore};
use lakebed::time::Clock;
use lakebed::{Error, Result};

use crate::args::GlobalArgs;
use crate::printer::Printer;

/// Program and version as commits name it.
pub(crate) const PROGRAM: &str = concat!("lakebed ", env!("CARGO_PKG_VERSION"));
/// Environment variable of the project folder.
pub(crate) const PROJECT_VARIABLE: &str = "LAKEBED_PROJECT";

/// Options of every command, resolved where no project is needed for it.
#[derive(Debug)]
pub(crate) struct Globals<'a> {
    /// Output.
    pub(crate) printer: &'a Printer,
    /// The project folder as given; `None` = search upward.
    pub(crate) project: Option<PathBuf>,
    /// Options of the call and the environment, as settings take them.
    layers: Layers,
}

impl<'a> Globals<'a> {
    /// Resolves the raw options; a variable of the environment that nobody reads is refused.
    pub(crate) fn resolve(args: GlobalArgs, printer: &'a Printer) -> Result<Self> {
        let variable = std::env::var_os(PROJECT_VARIABLE).filter(|v| !v.is_empty());
        Ok(Self {
            printer,
            project: args.project.or(variable.map(PathBuf::from)),
            layers: Layers::from_env()?.flag(SettingKey::User, args.user),
        })
    }

    /// The project: as given, else the nearest one upward from the current folder.
    pub(crate) fn find_project(&self) -> Result<Project> {
        if let Some(dir) = &self.project {
            return Project::open(dir);
        }
        let here =
            std::env::current_dir().map_err(|e| Error::io("find the current folder", "", e))?;
        Project::find(&here)
    }

    /// Options of the call and the environment, as settings take them.
    pub(crate) fn layers(&self) -> Layers {
        self.layers.clone()
    }
}

/// An opened project with its lake.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    printer: &'a Printer,
    project: Project,
    settings: Settings,
    lake: Lake,
    catalog: Arc<SqliteCatalog>,
}

impl<'a> Context<'a> {
    /// Opens project, settings, lake and catalog.
    pub(crate) async fn open(globals: &Globals<'a>) -> Result<Self> {
        let project = globals.find_project()?;
        let settings = Settings::load(&project, &globals.layers())?;
        Self::open_project(globals.printer, project, settings).await
    }

    /// Opens the lake and the catalog of a project.
    pub(crate) async fn open_project(
        printer: &'a Printer,
        project: Project,
        settings: Settings,
    ) -> Result<Self> {
        let lake = open_lake(&settings).await?;
        printer.debug(format!(
            "project {}, lake {} ({})",
            project.root().display(),
            lake.store().location(),
            lake.id()
        ));
        let catalog = Arc::new(SqliteCatalog::open(&settings.catalog.value).await?);
        Ok(Self {
            printer,
            project,
            settings,
            lake,
            catalog,
        })
    }

    /// As [`Context::open`], for whoever makes the catalog anew: a damaged file is set aside first,
    /// and its new path is the second part of the answer.
    pub(crate) async fn open_for_rebuild(globals: &Globals<'a>) -> Result<(Self, Option<PathBuf>)> {
        let project = globals.find_project()?;
        let settings = Settings::load(&project, &globals.layers())?;
        let lake = open_lake(&settings).await?;
        let (catalog, kept) = SqliteCatalog::open_for_rebuild(&settings.catalog.value).await?;
        let context = Self {
            printer: globals.printer,
            project,
            settings,
            lake,
            catalog: Arc::new(catalog),
        };
        Ok((context, kept))
    }

    /// Output.
    pub(crate) fn printer(&self) -> &'a Printer {
        self.printer
    }

    /// The project.
    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The lake.
    pub(crate) fn lake(&self) -> &Lake {
        &self.lake
    }

    /// The catalog.
    pub(crate) fn catalog(&self) -> Arc<dyn Catalog> {
        Arc::clone(&self.catalog) as Arc<dyn Catalog>
    }

    /// Who does this.
    pub(crate) fn by(&self, run: Option<RunName>, note: Option<String>) -> By {
        By {
            program: PROGRAM.to_owned(),
            user: self.settings.user.value.clone(),
            run,
            note,
        }
    }

    /// The fold of a dataset's log; a dataset of which the lake knows nothing is an error.
    pub(crate) async fn load_known(&self, dataset: &DatasetRef) -> Result<DatasetState> {
        catalog::check_past(&self.lake, &*self.catalog, dataset).await?;
        let loaded = log::load(&self.lake, dataset).await?;
        for checkpoint in &loaded.passed_over {
            self.printer.warn(checkpoint);
        }
        let state = loaded.state;
        if state.position().number == 0 {
            self.check_known(dataset).await?;
        }
        Ok(state)
    }

    /// Refuses a dataset that has neither log nor schema, naming the nearest that has.
    pub(crate) async fn check_known(&self, dataset: &DatasetRef) -> Result<()> {
        let known = list_datasets(&self.lake).await?;
        if known.contains(dataset) {
            return Ok(());
        }
        let names: Vec<String> = known.iter().map(ToString::to_string).collect();
        let error = Error::not_found(format!("there is no dataset `{dataset}` in this lake"));
        Err(
            match nearest(&dataset.to_string(), names.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None if names.is_empty() => error.hint(
                    "the lake is empty: `lakebed schema propose` and `lakebed schema publish` come first",
                ),
                None => error.hint(format!("datasets here: {}", names.join(", "))),
            },
        )
    }

    /// Lets the catalog follow the dataset's log. The commit stands whatever becomes of this, and the
    /// next call catches up: a failure is told, not returned.
    pub(crate) async fn follow_log(&self, dataset: &DatasetRef) {
        if let Err(error) = catalog::sync(&self.lake, &*self.catalog, dataset).await {
            self.printer
                .warn(format!("the catalog could not follow the log: {error}"));
            self.printer
                .hint("nothing is lost: `lakebed catalog sync` catches up");
        }
    }

    /// Lets the catalog know every log, schema version and source.
    pub(crate) async fn follow_all(&self) -> Result<Vec<catalog::SyncReport>> {
        let reports = catalog::sync_all(&self.lake, &*self.catalog).await?;
        self.put_sources().await?;
        Ok(reports)
    }

    /// Tells the catalog what the project says of its sources.
    pub(crate) async fn put_sources(&self) -> Result<()> {
        put_sources(&*self.catalog, &self.project.list_sources()?).await
    }
}

/// Puts the rows of the sources into the catalog.
pub(crate) async fn put_sources(catalog: &dyn Catalog, sources: &[SourceConfig]) -> Result<()> {
    for source in sources {
        let row = SourceRow {
            source: source.name.clone(),
            title: source.title.clone(),
            class: source.class.as_str().to_owned(),
            old_names: source.old_names.iter().map(ToString::to_string).collect(),
        };
        catalog.put_source(&row).await?;
    }
    Ok(())
}

/// Opens the lake that the settings name; its zone must be the project's.
pub(crate) async fn open_lake(settings: &Settings) -> Result<Lake> {
    let folder = &settings.lake.value;
    let lake = Lake::open(Arc::new(LocalStore::new(folder)), Arc::new(Clock::System)).await?;
    check_zone(settings, &lake)?;
    Ok(lake)
}

/// Opens the lake that the settings name, making it first where there is none.
pub(crate) async fn make_lake(settings: &Settings) -> Result<Lake> {
    let store = Arc::new(LocalStore::new(&settings.lake.value));
    let zone = &settings.time_zone.value;
    let lake = Lake::open_or_create(store, Arc::new(Clock::System), zone).await?;
    check_zone(settings, &lake)?;
    Ok(lake)
}

/// A lake has one zone for ever: business dates of two zones must not meet in it.
fn check_zone(settings: &Settings, lake: &Lake) -> Result<()> {
    let (project, made) = (&settings.time_zone, &lake.spec().time_zone);
    if project.value == *made {
        return Ok(());
    }
    Err(Error::precondition(format!(
        "the settings say `time_zone` = `{}`, the lake was made for `{made}`",
        project.value
    ))
    .with("origin", &project.origin)
    .with("lake", lake.store().location())
    .hint(format!(
        "write time_zone = \"{made}\", or name another lake"
    )))
}
