//! Words that stand for dates: `today` and `yesterday`, wherever an option takes dates.
//!
//! They are put into dates before the arguments are read, so every such option takes them, and every stage that a flow
//! starts gets a date. A word is a day in the zone of the source that is meant.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::CommandFactory;
use lakebed::config::{Layers, Project, Settings};
use lakebed::name::SourceName;
use lakebed::time::{BusinessDate, Clock, time_zone};
use lakebed::{Error, Result};

use crate::args::Cli;

/// The options that take dates.
const OPTIONS: [&str; 3] = ["--date", "--from", "--to"];

/// The arguments with dates in the place of the words.
///
/// # Errors
/// `InvalidInput` where the sources that are meant have different days now; the arguments beside it.
pub(crate) fn with_dates(
    mut args: Vec<OsString>,
) -> std::result::Result<Vec<OsString>, (Vec<OsString>, Error)> {
    let places: Vec<usize> = (1..args.len()).filter(|n| is_word(&args, *n)).collect();
    if places.is_empty() {
        return Ok(args);
    }
    let today = match today(&args) {
        Ok(today) => today,
        Err(error) => return Err((args, error)),
    };
    for n in places {
        if let Some(text) = args.get(n).and_then(|a| a.to_str()) {
            args[n] = put(text, today).into();
        }
    }
    Ok(args)
}

/// Whether an argument is dates with a word among them, behind an option that takes them.
fn is_word(args: &[OsString], n: usize) -> bool {
    let Some(text) = args[n].to_str() else {
        return false;
    };
    let dates = match text.split_once('=') {
        Some((option, dates)) if OPTIONS.contains(&option) => dates,
        Some(_) => return false,
        None if OPTIONS.iter().any(|o| args[n - 1] == OsStr::new(o)) => text,
        None => return false,
    };
    let mut days = dates.split("..");
    days.any(|day| matches!(day, "today" | "yesterday"))
}

fn put(text: &str, today: BusinessDate) -> String {
    let (option, dates) = match text.split_once('=') {
        Some((option, dates)) => (format!("{option}="), dates),
        None => (String::new(), text),
    };
    let days = dates.split("..").map(|day| match day {
        "today" => today.to_string(),
        "yesterday" => today.plus_days(-1).to_string(),
        other => other.to_owned(),
    });
    option + &days.collect::<Vec<_>>().join("..")
}

/// Arguments whose values name a source, or a dataset of one.
const NAMING: [&str; 3] = ["source", "sources", "dataset"];

/// The values that name sources or datasets; none where the command line cannot be read, which is told later.
fn named_values(args: &[OsString]) -> Vec<String> {
    let Ok(any_day) = "2000-01-01".parse::<BusinessDate>() else {
        return Vec::new();
    };
    let filled = (0..args.len()).map(|n| match (n > 0 && is_word(args, n), args[n].to_str()) {
        (true, Some(text)) => put(text, any_day).into(),
        _ => args[n].clone(),
    });
    let Ok(mut matches) = Cli::command().try_get_matches_from(filled) else {
        return Vec::new();
    };
    while let Some((_, below)) = matches.remove_subcommand() {
        matches = below;
    }
    let mut values = Vec::new();
    for id in NAMING {
        if let Ok(Some(found)) = matches.try_get_raw(id) {
            values.extend(found.filter_map(|v| v.to_str().map(str::to_owned)));
        }
    }
    values
}

/// Today, where the sources are that the arguments name; where they name none, where all of the project are.
fn today(args: &[OsString]) -> Result<BusinessDate> {
    let project = find_project(args)?;
    let settings = Settings::load(&project, &Layers::from_env()?)?;
    let all = project.list_source_names()?;
    let values = named_values(args);
    let is_meant = |name: &&SourceName| values.iter().any(|value| names(value, name.as_str()));
    let named: Vec<&SourceName> = all.iter().filter(is_meant).collect();
    let meant = match named.is_empty() {
        true => all.iter().collect(),
        false => named,
    };
    let now = Clock::System.now();
    let usual = settings.time_zone.value.as_str();
    let mut found: Option<(BusinessDate, String)> = None;
    for name in meant {
        let source = project.load_source(name)?;
        let zone = source.time_zone.as_deref().unwrap_or(usual);
        let day = BusinessDate::of(now, &time_zone(zone)?);
        match &found {
            Some((other, known)) if *other != day => {
                return Err(Error::invalid(format!(
                    "today is {other} for `{known}` and {day} for `{name}`"
                ))
                .hint("call it for each of them, or give the date"));
            }
            Some(_) => {}
            None => found = Some((day, name.to_string())),
        }
    }
    Ok(match found {
        Some((day, _)) => day,
        None => BusinessDate::of(now, &time_zone(usual)?),
    })
}

/// Whether an argument names a source, or a dataset of it.
fn names(text: &str, source: &str) -> bool {
    let dataset = text.split_once('/').map_or(text, |(_, dataset)| dataset);
    dataset.split('.').next() == Some(source)
}

/// The project of the call, as every command finds it.
fn find_project(args: &[OsString]) -> Result<Project> {
    let mut given = args.iter().zip(args.iter().skip(1));
    let apart = given.find(|(option, _)| option.as_os_str() == OsStr::new("--project"));
    let joined = args
        .iter()
        .find_map(|a| a.to_str()?.strip_prefix("--project="));
    let folder: Option<PathBuf> = apart
        .map(|(_, dir)| dir.into())
        .or(joined.map(PathBuf::from));
    let variable = std::env::var_os(crate::context::PROJECT_VARIABLE).filter(|v| !v.is_empty());
    match folder.or(variable.map(PathBuf::from)) {
        Some(dir) => Project::open(dir),
        None => {
            let here =
                std::env::current_dir().map_err(|e| Error::io("find the current folder", "", e))?;
            Project::find(&here)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(text: &str) -> Vec<usize> {
        let args: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        (1..args.len()).filter(|n| is_word(&args, *n)).collect()
    }

    #[test]
    fn words_are_dates_behind_options_of_dates_alone() {
        assert_eq!(is("run shop --date today"), [3]);
        assert_eq!(is("parse shop --date=2026-11-01..yesterday"), [2]);
        assert_eq!(is("run --from yesterday --to today"), [2, 4]);
        let none: [usize; 0] = [];
        assert_eq!(is("crawl today --note yesterday --date 2026-11-01"), none);
        let day: BusinessDate = "2026-12-01".parse().unwrap();
        assert_eq!(
            put("--date=2026-11-01..yesterday", day),
            "--date=2026-11-01..2026-11-30"
        );
        assert_eq!(put("today", day), "2026-12-01");
        let values = |text: &str| {
            let args: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            named_values(&args)
        };
        // A folder, a run or a command may be called like a source.
        let none: [&str; 0] = [];
        let nobody = "lakebed --project shop run --run shop --date today";
        assert_eq!(values(nobody), none);
        assert_eq!(
            values("lakebed run far --date yesterday..today --run shop"),
            ["far"]
        );
        let dataset = "lakebed ingest clean/shop.items run --date=today";
        assert_eq!(values(dataset), ["clean/shop.items"]);
        assert!(names("clean/shop.items", "shop") && names("shop", "shop"));
        assert!(!names("shops", "shop"));
    }
}
