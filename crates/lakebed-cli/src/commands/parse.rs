//! `parse`: what the rules of a source give for a page, and whether they give what is expected.

mod cover;
mod doubt;
mod draft;
mod fixtures;
mod page;
mod replay;
mod schemas;

pub(super) use cover::{cover, free_name};
pub(super) use doubt::{MAY_BE_EMPTY, never_there, only_rejects};
pub(super) use draft::{Drafter, KeptPage, tell_written};
pub(super) use fixtures::{TestedPage, test_pages};
pub(super) use page::save;
pub(super) use replay::dates_of;

use std::fs;
use std::path::{Path, PathBuf};

use lakebed::config::{Project, SourceConfig};
use lakebed::name::SourceName;
use lakebed::parse::{FixturePage, Rules};
use lakebed::spec::ParsedPage;
use lakebed::{Error, Result};

use crate::args::ParseArgs;
use crate::context::Globals;
use crate::exit::Exit;

/// Version of the JSON answers.
const PARSE_ANSWER_FORMAT: u32 = 1;

/// A source with its rules.
pub(super) struct Ruled {
    project: Project,
    /// The file that they stand in.
    file: PathBuf,
    /// The source.
    pub(super) source: SourceConfig,
    /// Its rules.
    pub(super) rules: Rules,
}

impl Ruled {
    /// Reads the rules of a source.
    pub(super) fn open(name: &SourceName, globals: &Globals<'_>) -> Result<Self> {
        let project = globals.find_project()?;
        let source = project.load_source(name)?;
        let file = project.source_file(name);
        let rules = Rules::read(&source, &file.display().to_string())?;
        Ok(Self {
            project,
            file,
            source,
            rules,
        })
    }

    /// The rules of a file like source.toml in the place of those of the source.
    pub(super) fn beside(mut self, file: &Path) -> Result<Self> {
        let shown = file.display().to_string();
        self.source = source_beside(&self.source.name, file)?;
        self.rules = Rules::read(&self.source, &shown)?;
        self.file = file.to_owned();
        Ok(self)
    }

    /// Refuses rules whose records go where those of the source go: two sets of rules over one dataset would take each
    /// other's rows away.
    fn check_own_datasets(&self, others: &Self) -> Result<()> {
        let theirs = others.rules.datasets();
        match self.rules.datasets().into_iter().find(|d| theirs.contains(d)) {
            Some(shared) => Err(Error::precondition(format!(
                "the rules of both files give records of `{shared}`"
            ))
            .hint(format!(
                "give them datasets of their own, such as `dataset = \"{}.next\"`; `lakebed shadow` compares both without storing anything",
                self.source.name
            ))),
            None => Ok(()),
        }
    }

    /// The source's folder: programs run there.
    pub(super) fn folder(&self) -> PathBuf {
        let file = self.project.source_file(&self.source.name);
        file.with_file_name("")
    }

    fn fixtures(&self) -> PathBuf {
        self.folder().join("fixtures")
    }

    fn parse(&self, page: &FixturePage, name: &str, body: &[u8]) -> Result<ParsedPage> {
        page.parse(&self.rules, &self.folder(), (&self.source.name, name), body)
    }
}

/// A file like source.toml: what it declares in the place of that one.
pub(super) fn source_beside(name: &SourceName, file: &Path) -> Result<SourceConfig> {
    let shown = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|e| {
        Error::io("read the file", &shown, e).hint("a copy of source.toml with what is to be tried")
    })?;
    SourceConfig::parse(name, &text, &shown)
}

/// `lakebed parse`
pub(crate) async fn run(args: ParseArgs, globals: &Globals<'_>) -> Result<Exit> {
    if let Some(stage) = &args.draft {
        return draft::draft(stage, &args, globals);
    }
    let mut ruled = Ruled::open(&args.source.parse()?, globals)?;
    if let Some(file) = &args.rules {
        let present = ruled;
        ruled = Ruled::open(&args.source.parse()?, globals)?.beside(file)?;
        if args.date.is_some() {
            ruled.check_own_datasets(&present)?;
        }
    }
    match (&args.page, &args.date) {
        (Some(wanted), _) => page::try_page(wanted, &args, &ruled, globals).await,
        (None, Some(dates)) => replay::replay(dates, &args, &ruled, globals).await,
        (None, None) if args.schema => schemas::schemas(&args, &ruled, globals).await,
        (None, None) => fixtures::test(&args, &ruled, globals),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|e| Error::io("write the file", path.display(), e))
}
