//! Where the files of a flow lie.
//!
//! ```text
//! in the lake      flow/<source>/<date>/<run>/<stage>.done     the stamp
//! in the project   flow/<source>/<date>/<run>/<stage>.log      what the stage said, every try behind the last one
//!                  flow/<source>/<date>/<run>/<stage>.try      the try under way, or the last one where it failed
//!                  flow/<source>/<date>/<run>/<stage>.now      how far it is, while it runs: one line
//!                  flow/<source>/<date>/lock                   held while a flow of the date runs
//! ```

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::flow::graph::Stage;
use crate::name::SourceName;
use crate::store::{StorePath, flow_stamp_path};
use crate::time::{BusinessDate, Instant};

/// Version of the files of tries.
const TRY_FORMAT: u32 = 1;
/// Bytes of a line of progress that are looked at.
const MAX_PROGRESS_BYTES: u64 = 400;

/// The stamp of a stage in the lake.
#[must_use]
pub(super) fn stamp_path(source: &SourceName, stage: &Stage) -> StorePath {
    flow_stamp_path(source, stage.stamp_date, &stage.stamp_run, &stage.name)
}

/// The folder of what is kept of flows in the project.
#[must_use]
pub fn flow_folder(project: &Path) -> PathBuf {
    project.join("flow")
}

fn stage_file(project: &Path, source: &SourceName, stage: &Stage, end: &str) -> PathBuf {
    flow_folder(project)
        .join(source.as_str())
        .join(stage.stamp_date.to_string())
        .join(stage.stamp_run.as_str())
        .join(format!("{}.{end}", stage.name))
}

/// The log of a stage.
#[must_use]
pub fn log_path(project: &Path, source: &SourceName, stage: &Stage) -> PathBuf {
    stage_file(project, source, stage, "log")
}

/// The file in which a stage says how far it is: one line, written anew as often as it likes.
pub(super) fn progress_path(project: &Path, source: &SourceName, stage: &Stage) -> PathBuf {
    stage_file(project, source, stage, "now")
}

/// The line in a file of progress; none where there is none yet.
pub(super) fn read_progress(path: &Path) -> Option<String> {
    // Whatever a program writes there, one line of it is told.
    let mut text = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(MAX_PROGRESS_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default().trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The lock of a date.
pub(super) fn lock_path(project: &Path, source: &SourceName, date: BusinessDate) -> PathBuf {
    flow_folder(project)
        .join(source.as_str())
        .join(date.to_string())
        .join("lock")
}

/// A try of a stage that did not end well, or has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTry {
    /// Version of this file.
    pub format: u32,
    /// The process.
    pub pid: u32,
    /// When it began.
    pub began_at: Instant,
    /// How it failed; absent = it runs, or whoever ran it died.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<StageFailure>,
}

/// How a stage failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageFailure {
    /// In words.
    pub reason: String,
    /// Its exit code; absent where it was ended by a signal or never began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// Its last lines.
    pub last_lines: Vec<String>,
    /// The file of all it said.
    pub log: String,
}

impl StageFailure {
    /// The line of its last ones that says most: its error, else the last one that is neither advice nor a log line of
    /// what went well. Without the time at its head.
    #[must_use]
    pub fn told(&self) -> Option<&str> {
        let lines = || self.last_lines.iter().rev().map(|line| line.trim());
        let error = lines().find_map(|line| line.strip_prefix("error: "));
        let said = || lines().filter(|line| !line.starts_with("hint: "));
        let warned =
            || said().find_map(|line| log_line(line).filter(|(level, _)| *level == "warn"));
        error
            .or_else(|| said().find(|line| log_line(line).is_none()))
            .or_else(|| warned().map(|(_, text)| text))
            .or_else(|| lines().next())
    }
}

/// Level and text of a log line, which begins with its time.
pub(super) fn log_line(line: &str) -> Option<(&str, &str)> {
    let (at, rest) = line.split_once(' ')?;
    at.parse::<Instant>().ok()?;
    let (level, text) = rest.split_once(' ')?;
    Some((level, text.trim_start()))
}

impl StageTry {
    /// One that begins.
    pub(super) fn begun(pid: u32, at: Instant) -> Self {
        Self {
            format: TRY_FORMAT,
            pid,
            began_at: at,
            failed: None,
        }
    }

    /// The try that is kept of the stage; one that cannot be read is none.
    #[must_use]
    pub fn find(project: &Path, source: &SourceName, stage: &Stage) -> Option<Self> {
        let text = fs::read(stage_file(project, source, stage, "try")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(super) fn keep(&self, project: &Path, source: &SourceName, stage: &Stage) -> Result<()> {
        let path = stage_file(project, source, stage, "try");
        let text = serde_json::to_vec(self)
            .map_err(|e| Error::internal("write a try as JSON").caused_by(e))?;
        let new = path.with_extension("try.new");
        // A stage that never began has no log yet, and no folder.
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&new, text))
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|e| Error::io("write the file", path.display(), e))
    }

    pub(super) fn forget(project: &Path, source: &SourceName, stage: &Stage) -> Result<()> {
        let path = stage_file(project, source, stage, "try");
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("delete the file", path.display(), e))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_by_the_line_that_says_most() {
        let told = |lines: &[&str]| {
            let failure = StageFailure {
                reason: String::new(),
                exit_code: None,
                last_lines: lines.iter().map(|l| (*l).to_owned()).collect(),
                log: String::new(),
            };
            failure.told().map(str::to_owned)
        };
        let at = "2026-12-01T09:00:00.123456+08:00";
        let (info, warn) = (
            format!("{at} info  nothing is left"),
            format!("{at} warn  壞了"),
        );
        for (lines, expected) in [
            (
                &["error: no host", "  host: a.test", "hint: look", &info][..],
                Some("no host"),
            ),
            (&["first", "last", "hint: look", &info], Some("last")),
            (&[&info, &warn, &info, "hint: look"], Some("壞了")),
            (&["hint: look"], Some("hint: look")),
            (&[], None),
        ] {
            assert_eq!(told(lines).as_deref(), expected, "{lines:?}");
        }
    }
}
