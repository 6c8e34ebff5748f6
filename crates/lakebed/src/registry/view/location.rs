//! Where the lake lies for an engine, and what the engine would misread there.

use crate::error::{Error, Result};
use crate::registry::view::dialect::{Dialect, Engine, Scan};

/// The glob of all files of a version.
pub(super) fn version_glob(scan: &Scan<'_>) -> String {
    let (folder, version) = (scan.folder, scan.version);
    format!("{folder}/dt=*/schema_version={version}/*.parquet")
}

/// The parts of a dotted name, each quoted.
pub(super) fn quote_path(dialect: &dyn Dialect, name: &str) -> Result<String> {
    let parts: Vec<&str> = name.split('.').collect();
    if parts.iter().any(|p| p.trim().is_empty()) || name.chars().any(char::is_control) {
        return Err(
            Error::invalid(format!("`{}` is not a name", name.escape_debug()))
                .hint("a name is `view`, `schema.view` or `catalog.schema.view`"),
        );
    }
    let parts: Vec<String> = parts.into_iter().map(|p| dialect.name(p)).collect();
    Ok(parts.join("."))
}

/// What begins a pattern, or another meaning, in a path of the engine.
fn special(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::DuckDb => &["*", "?", "[", "\\"],
        // A double quote makes it lose the partition columns without a word.
        Engine::ClickHouse => &["*", "?", "{", "::", "\""],
        Engine::Spark => &["*", "?", "[", "]", "{", "}", "\\"],
        Engine::Trino => &[],
    }
}

/// Refuses a location that the engine would not take literally. `columns` are the names of all
/// columns: a folder `<column>=<value>` above the dataset would be read in the place of that column.
pub(super) fn check_location(location: &str, engine: Engine, columns: &[&str]) -> Result<()> {
    let hint = "`--location` takes another way to the lake, such as a symbolic link";
    let refuse = |what: String| {
        Err(Error::invalid(what)
            .with("location", location.escape_debug())
            .hint(hint))
    };
    if location.is_empty() || location.chars().any(char::is_control) {
        return refuse("the location is empty or holds control characters".to_owned());
    }
    if let Some(found) = special(engine).iter().find(|s| location.contains(**s)) {
        let title = engine.dialect().title();
        return refuse(format!(
            "{title} would not take the `{found}` in the location literally"
        ));
    }
    for segment in location.split('/') {
        let Some((key, _)) = segment.split_once('=') else {
            continue;
        };
        if let Some(column) = columns
            .iter()
            .find(|c| c.to_lowercase() == key.to_lowercase())
        {
            return refuse(format!(
                "the folder `{segment}` above the dataset would be taken for the column `{column}`"
            ));
        }
    }
    Ok(())
}
