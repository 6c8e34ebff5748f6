//! What a command works with: the project, its settings, the lake, the catalog, opened in one place.

use std::path::PathBuf;
use std::sync::Arc;

use lakebed::log::{DatasetState, list_datasets};
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
const PROJECT_VARIABLE: &str = "LAKEBED_PROJECT";
/// Environment variable of the user.
const USER_VARIABLE: &str = "LAKEBED_USER";

/// Options of every command, resolved: flag, then environment, then default.
#[derive(Debug)]
pub(crate) struct Globals<'a> {
    /// Output.
    pub(crate) printer: &'a Printer,
    /// The project folder as given; `None` = search upward.
    pub(crate) project: Option<PathBuf>,
    /// The user, where given.
    pub(crate) user: Option<String>,
}

impl<'a> Globals<'a> {
    /// Resolves the raw options.
    pub(crate) fn resolve(args: GlobalArgs, printer: &'a Printer) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
        Self {
            printer,
            project: args
                .project
                .or_else(|| variable(PROJECT_VARIABLE).map(PathBuf::from)),
            user: args.user.or_else(|| variable(USER_VARIABLE)),
        }
    }
}

/// An opened project.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    globals: &'a Globals<'a>,
    lake: Lake,
}

impl<'a> Context<'a> {
    /// Opens project and lake.
    pub(crate) async fn open(globals: &'a Globals<'a>) -> Result<Self> {
        let root = globals.project.clone().unwrap_or_default().join("lake");
        let lake = Lake::open(Arc::new(LocalStore::new(root)), Arc::new(Clock::System)).await?;
        Ok(Self { globals, lake })
    }

    /// The lake.
    pub(crate) fn lake(&self) -> &Lake {
        &self.lake
    }

    /// Who does this.
    pub(crate) fn by(&self, run: Option<RunName>, note: Option<String>) -> By {
        By {
            program: PROGRAM.to_owned(),
            user: self.globals.user.clone(),
            run,
            note,
        }
    }

    /// The fold of a dataset's log; a dataset of which the lake knows nothing is an error.
    pub(crate) async fn load_known(&self, dataset: &DatasetRef) -> Result<DatasetState> {
        let state = DatasetState::load(&self.lake, dataset).await?;
        if state.position().number > 0 {
            return Ok(state);
        }
        let known = list_datasets(&self.lake).await?;
        if known.contains(dataset) {
            return Ok(state);
        }
        Err(unknown_dataset(dataset, &known))
    }

    pub(crate) async fn follow_log(&self, _dataset: &DatasetRef) {}
}

/// The error for a dataset that is not there, with the nearest one that is.
fn unknown_dataset(dataset: &DatasetRef, known: &[DatasetRef]) -> Error {
    let names: Vec<String> = known.iter().map(ToString::to_string).collect();
    let error = Error::not_found(format!("there is no dataset `{dataset}` in this lake"));
    if names.is_empty() {
        return error
            .hint("the lake is empty: publish a schema first with `lakebed schema publish`");
    }
    error.hint(format!("datasets here: {}", names.join(", ")))
}
