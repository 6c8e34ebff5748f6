//! The environment: variables that are settings, variables that are known for something else, and an
//! error for every other name with our prefix.
//!
//! A misspelt variable that is ignored in silence stores data under settings that nobody meant, so it
//! is treated as an unknown key of `lakebed.toml` is.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::config::nearest;
use crate::error::{Error, Result};

/// What all our variables begin with.
const PREFIX: &str = "LAKEBED_";

/// Variables that are known although they are no settings, and what they are for. The page
/// docs/configuration.md lists them; a test compares, and finds every one that the repository uses.
pub const OTHER_VARIABLES: [(&str, &str); 19] = [
    (
        "LAKEBED_PROJECT",
        "the project folder, where `--project` is not given",
    ),
    (
        "LAKEBED_SOURCE",
        "set for a `seed_command` and for the stages of a flow: the source",
    ),
    (
        "LAKEBED_DATE",
        "set for a `seed_command` and for the stages of a flow: the business date",
    ),
    (
        "LAKEBED_RUN",
        "set for a `seed_command` and for the stages of a flow: the run",
    ),
    (
        "LAKEBED_PROGRESS",
        "set for the stages of a flow: the file in which a stage says in one line how far it is",
    ),
    (
        "LAKEBED_API_TOKEN",
        "`serve --api`: the bearer token, instead of the file that is made",
    ),
    (
        "LAKEBED_KILL_POINT",
        "tests: the step of a write at which a debug build dies",
    ),
    (
        "LAKEBED_TEST_FOLDER",
        "tests: the folder that a child process works in",
    ),
    (
        "LAKEBED_CHECKPOINT_EVERY",
        "tests: after how many records a debug build writes a checkpoint",
    ),
    (
        "LAKEBED_SYNC_BATCH",
        "tests: how many records a debug build applies to the catalog in one transaction",
    ),
    (
        "LAKEBED_SIMULATION_SEED",
        "tests: the one history of the simulation to run",
    ),
    (
        "LAKEBED_SIMULATION_HISTORIES",
        "tests: how many histories the simulation runs",
    ),
    (
        "LAKEBED_UPDATE_DOCS",
        "tests: write the generated pages anew",
    ),
    (
        "LAKEBED_SHARED",
        "tests: the folder of shared cases and data",
    ),
    (
        "LAKEBED_TEST_POSTGRES",
        "tests: the URL of a PostgreSQL server without a database (`.ci/servers` starts one)",
    ),
    (
        "LAKEBED_TEST_MYSQL",
        "tests: the URL of a MySQL or MariaDB server without a database (`.ci/servers` starts one)",
    ),
    ("LAKEBED_VENV", "CI: the folder of its Python environment"),
    ("LAKEBED_PYTHON", "CI: the Python that other readers run in"),
    (
        "LAKEBED_BENCH_VENV",
        "benchmarks: the folder of their Python environment",
    ),
];

/// The variables whose names are among `settings`; empty ones count as not set.
///
/// # Errors
/// `InvalidInput` for a name with our prefix that nobody reads, with the nearest known one, and for
/// a setting that is no Unicode text.
pub(super) fn read_settings(
    settings: &[&str],
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut unknown = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|n| n.starts_with(PREFIX)) else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        if settings.contains(&name) {
            let value = value.into_string().map_err(|_| {
                Error::invalid(format!("the variable `{name}` is no Unicode text")).hint(
                    "write the setting into lakebed.local.toml, or rename the folder it names",
                )
            })?;
            found.insert(name.to_owned(), value);
        } else if OTHER_VARIABLES.iter().all(|(known, _)| *known != name) {
            unknown.push(name.to_owned());
        }
    }
    unknown.sort();
    if unknown.is_empty() {
        Ok(found)
    } else {
        Err(refuse(settings, &unknown))
    }
}

fn refuse(settings: &[&str], unknown: &[String]) -> Error {
    let named: Vec<String> = unknown.iter().map(|n| format!("`{n}`")).collect();
    let what = if unknown.len() == 1 {
        "is no variable"
    } else {
        "are no variables"
    };
    let mut error = Error::invalid(format!("{} {what} of Lakebed", named.join(", ")));
    let others = OTHER_VARIABLES.iter().map(|(name, _)| name);
    let known = settings.iter().chain(others);
    let ends: Vec<&str> = known.filter_map(|n| n.strip_prefix(PREFIX)).collect();
    let mut all_near = true;
    for name in unknown {
        let end = name.strip_prefix(PREFIX).unwrap_or_default();
        match nearest(end, ends.iter().copied()) {
            Some(near) if unknown.len() == 1 => {
                error = error.hint(format!("did you mean `{PREFIX}{near}`?"));
            }
            Some(near) => error = error.hint(format!("`{name}`: did you mean `{PREFIX}{near}`?")),
            None => all_near = false,
        }
    }
    if !all_near {
        error = error.hint(format!("settings are {}", settings.join(", ")));
    }
    error.hint("it would be ignored: correct its name, or `unset` it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingKey;
    use crate::error::ErrorKind;

    fn read(variables: &[(&str, &str)]) -> Result<BTreeMap<String, String>> {
        let pairs = variables
            .iter()
            .map(|(n, v)| (OsString::from(n), OsString::from(v)));
        read_settings(&SettingKey::ALL.map(SettingKey::env), pairs)
    }

    #[test]
    fn a_misspelt_variable_is_an_error_that_names_the_nearest() {
        let known: Vec<(&str, &str)> = OTHER_VARIABLES
            .iter()
            .map(|(name, _)| (*name, "x"))
            .chain([("LAKEBED_LAKE", "l"), ("PATH", "/bin"), ("LAKE_BED", "x")])
            .collect();
        assert_eq!(read(&known).unwrap().len(), 1);

        for (wrong, right) in [
            (concat!("LAKEBED_", "LAEK"), "LAKEBED_LAKE"),
            (concat!("LAKEBED_", "TIMEZONE"), "LAKEBED_TIME_ZONE"),
            (
                concat!("LAKEBED_", "INGEST_ON_MISSMATCH"),
                "LAKEBED_INGEST_ON_MISMATCH",
            ),
            (concat!("LAKEBED_", "lake"), "LAKEBED_LAKE"),
        ] {
            let error = read(&[(wrong, "x")]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.message().contains(wrong), "{error}");
            assert_eq!(error.hints()[0], format!("did you mean `{right}`?"));
            assert!(read(&[(wrong, "")]).unwrap().is_empty(), "empty is not set");
        }
        let error = read(&[(concat!("LAKEBED_", "QQQQQQQQQQ"), "x")]).unwrap_err();
        assert!(
            error.hints()[0].contains("LAKEBED_INGEST_THREADS"),
            "{error:?}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_setting_that_is_no_text_is_not_ignored() {
        use std::os::unix::ffi::OsStringExt;
        let value = OsString::from_vec(vec![b'x', 0xff]);
        let error = read_settings(&["LAKEBED_LAKE"], [(OsString::from("LAKEBED_LAKE"), value)])
            .unwrap_err();
        assert!(error.message().contains("LAKEBED_LAKE"), "{error}");
    }
}
