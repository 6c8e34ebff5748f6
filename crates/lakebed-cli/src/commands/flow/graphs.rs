//! The graphs that a call is about, and what runs their stages.

use std::path::PathBuf;

use lakebed::config::{Project, Settings};
use lakebed::flow::{Declared, Graph};
use lakebed::name::{RunName, SourceName};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::args::DatesArgs;

/// The dates of the call, ascending; `None` = none were given.
pub(super) fn dates_of(args: &DatesArgs) -> Result<Option<Vec<BusinessDate>>> {
    const MOST: i64 = 3_660;
    let (from, to) = match (&args.date, &args.from, &args.to) {
        (Some(date), _, _) => (date.parse::<BusinessDate>()?, date.parse()?),
        (None, Some(from), Some(to)) => (from.parse()?, to.parse()?),
        _ => return Ok(None),
    };
    if from > to {
        return Err(
            Error::invalid(format!("`{from}` is after `{to}`")).hint("--from is the earlier one")
        );
    }
    let days = i64::from(to.days()) - i64::from(from.days());
    if days >= MOST {
        return Err(Error::limit(format!("{} days in one call", days + 1))
            .hint("take at most ten years at once"));
    }
    Ok(Some((0..=days).map(|n| from.plus_days(n)).collect()))
}

/// What the sources of the call declare: those that are named, else every one that has a flow.
pub(super) fn declared_of(project: &Project, names: &[String]) -> Result<Vec<Declared>> {
    let read = |name: &SourceName| Declared::read(project, &project.load_source(name)?);
    if names.is_empty() {
        let all = project.list_source_names()?;
        let all = all.iter().map(read).collect::<Result<Vec<_>>>()?;
        let all: Vec<Declared> = all.into_iter().filter(Declared::has_flow).collect();
        if all.is_empty() {
            return Err(Error::not_found("no source of this project has a flow")
                .hint("[crawl], [parse] or [derive.<name>] in a source.toml make one, or [[flow.stage]]: docs/flow.md"));
        }
        return Ok(all);
    }
    let mut found: Vec<Declared> = Vec::new();
    for name in names {
        let name: SourceName = name.parse()?;
        if found.iter().any(|d| d.source == name) {
            continue;
        }
        let declared = read(&name)?;
        if !declared.has_flow() {
            return Err(Error::not_found(format!("source `{name}` has no flow"))
                .with("file", &declared.file)
                .hint(
                    "[crawl], [parse] or [derive.<name>] make one, or [[flow.stage]]: docs/flow.md",
                ));
        }
        found.push(declared);
    }
    Ok(found)
}

/// The graph of each date.
pub(super) fn graphs_of(
    declared: &Declared,
    dates: &[BusinessDate],
    run: &RunName,
) -> Result<Vec<Graph>> {
    dates
        .iter()
        .map(|date| Graph::of(declared, *date, run))
        .collect()
}

/// The project folder, absolute.
pub(super) fn root_of(project: &Project) -> Result<PathBuf> {
    std::path::absolute(project.root())
        .map_err(|e| Error::io("find the folder", project.root().display(), e))
}

/// This program and the options before each of its commands.
pub(super) fn program(project: &Project, settings: &Settings) -> Result<Vec<String>> {
    let own = std::env::current_exe().map_err(|e| Error::io("find the program", "lakebed", e))?;
    let mut words = vec![
        own.display().to_string(),
        "--project".to_owned(),
        root_of(project)?.display().to_string(),
    ];
    if let Some(user) = &settings.user.value {
        words.extend(["--user".to_owned(), user.clone()]);
    }
    Ok(words)
}
