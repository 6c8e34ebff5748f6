//! Whether a stage is done: its stamp held against the logs, the files and the rules of now.
//!
//! FLW-5: a stamp holds only while what it names is there. Missing outputs and new inputs run the stage again; changed rules
//! and rows that a person took back make it STALE, which a person alone ends.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::StageKind;
use crate::error::{Error, ErrorKind, Result};
use crate::flow::graph::Stage;
use crate::flow::place::{StageTry, stamp_path};
use crate::flow::scope::Sights;
use crate::name::{ContentHash, SourceName};
use crate::spec::{StampFile, StampScope, StampSpec};
use crate::store::Lake;

/// How a stage stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its stamp holds.
    Done,
    /// There is no stamp, or what it made is gone.
    Missing,
    /// Its inputs are others than those of its stamp.
    Outdated,
    /// Its rules are others than those of its stamp, or its rows were taken back.
    Stale,
    /// Its last try failed.
    Red,
    /// It is under way.
    Running,
    /// It is not done on this date.
    NotDue,
}

impl Standing {
    /// The word that people see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Missing => "missing",
            Self::Outdated => "outdated",
            Self::Stale => "STALE",
            Self::Red => "red",
            Self::Running => "running",
            Self::NotDue => "-",
        }
    }
}

/// A standing with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// How it stands.
    pub standing: Standing,
    /// Why; empty where it is done.
    pub why: String,
}

impl Judged {
    fn new(standing: Standing, why: impl Into<String>) -> Self {
        Self {
            standing,
            why: why.into(),
        }
    }
}

/// What decides over stamps.
#[derive(Debug)]
pub struct Judge {
    lake: Lake,
    project: PathBuf,
    /// The folds that were read.
    pub sights: Sights,
}

impl Judge {
    /// A judge over a lake and a project folder.
    #[must_use]
    pub fn new(lake: &Lake, project: &Path) -> Self {
        Self {
            lake: lake.clone(),
            project: project.to_owned(),
            sights: Sights::new(lake.clone()),
        }
    }

    /// The stage by its stamp alone.
    ///
    /// # Errors
    /// Those of reading stamps, logs and files.
    pub async fn judge(&mut self, source: &SourceName, stage: &Stage) -> Result<Judged> {
        if !stage.is_due {
            return Ok(Judged::new(
                Standing::NotDue,
                "done with the last day of the month",
            ));
        }
        if self.is_before_the_first_day(stage).await? {
            let why = format!("there is nothing of {} or before", stage.date);
            return Ok(Judged::new(Standing::NotDue, why));
        }
        let path = stamp_path(source, stage);
        let Some(bytes) = self.lake.store().find(&path).await? else {
            return Ok(Judged::new(Standing::Missing, "never done"));
        };
        let stamp = match read_stamp((&bytes, path.as_str()), source, stage) {
            Ok(stamp) => stamp,
            Err(judged) => return Ok(judged),
        };
        if stamp.rules != stage.rules {
            let why = format!(
                "its rules have changed since: {} then, {} now",
                &stamp.rules.short()[..8],
                &stage.rules.short()[..8]
            );
            return Ok(Judged::new(Standing::Stale, why));
        }
        if let Some(found) = self.judge_outputs(stage, &stamp).await? {
            return Ok(found);
        }
        if !stage.kind.is_fact()
            && let Some(found) = self.judge_inputs(stage, &stamp).await?
        {
            return Ok(found);
        }
        Ok(Judged::new(Standing::Done, ""))
    }

    /// The same, with what its last try left: `is_running` tells whether a flow of the date runs now.
    ///
    /// # Errors
    /// As [`Self::judge`].
    pub async fn judge_with_try(
        &mut self,
        source: &SourceName,
        stage: &Stage,
        is_running: bool,
    ) -> Result<Judged> {
        let judged = match self.judge(source, stage).await {
            // Damage of one dataset or file is told of the stages that need it, and hides no other one.
            Err(e) if e.kind() == ErrorKind::CorruptData => {
                Judged::new(Standing::Red, e.to_string())
            }
            judged => judged?,
        };
        if matches!(judged.standing, Standing::Done | Standing::NotDue) {
            return Ok(judged);
        }
        Ok(match StageTry::find(&self.project, source, stage) {
            None => judged,
            Some(StageTry {
                failed: Some(failed),
                ..
            }) => {
                let told = failed.told().map(|line| format!(": {line}"));
                let why = failed.reason.clone() + &told.unwrap_or_default();
                match judged.standing {
                    // Only a person ends that, whatever became of the last try.
                    Standing::Stale => {
                        let why = format!("{}; its last try failed: {why}", judged.why);
                        Judged::new(Standing::Stale, why)
                    }
                    _ => Judged::new(Standing::Red, why),
                }
            }
            Some(begun) if is_running => {
                let why = format!("since {}, process {}", begun.began_at, begun.pid);
                Judged::new(Standing::Running, why)
            }
            Some(begun) => Judged::new(
                judged.standing,
                format!(
                    "its try of {} was interrupted; {}",
                    begun.began_at, judged.why
                ),
            ),
        })
    }

    /// Whether a fold of the day before has no day before: nothing that it reads has rows by then.
    async fn is_before_the_first_day(&mut self, stage: &Stage) -> Result<bool> {
        if stage.kind != StageKind::Fold || stage.date >= stage.stamp_date {
            return Ok(false);
        }
        for scope in &stage.reads {
            let state = self.sights.state(&scope.dataset).await?;
            let mut dates = state.dates().range(..=stage.date);
            if dates.any(|(dt, _)| state.visible_of(*dt).next().is_some()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn judge_outputs(&mut self, stage: &Stage, stamp: &StampSpec) -> Result<Option<Judged>> {
        if stamp.outputs.len() != stage.writes.len() {
            return Ok(Some(Judged::new(
                Standing::Stale,
                "it writes other datasets than then",
            )));
        }
        for (then, scope) in stamp.outputs.iter().zip(&stage.writes) {
            let now = self.sights.see(scope).await?;
            let what = named(&now);
            if then.dataset != now.dataset {
                return Ok(Some(Judged::new(
                    Standing::Stale,
                    "it writes other datasets than then",
                )));
            }
            if then.content.is_some() && now.content.is_none() {
                return Ok(Some(Judged::new(
                    Standing::Missing,
                    format!("{what} is gone"),
                )));
            }
            if now.revision < then.revision {
                let why = format!(
                    "{what} shows revision {} again, it made revision {}",
                    now.revision, then.revision
                );
                return Ok(Some(Judged::new(Standing::Stale, why)));
            }
            if stage.kind == StageKind::Seal && !now.sealed {
                return Ok(Some(Judged::new(
                    Standing::Missing,
                    format!("{what} was opened again"),
                )));
            }
        }
        for file in &stamp.output_files {
            let path = self.project.join(&file.path);
            let what = format!("`{}`", file.path);
            match hash_file(&path)? {
                None => {
                    return Ok(Some(Judged::new(
                        Standing::Missing,
                        format!("{what} is gone"),
                    )));
                }
                Some((_, hash)) if hash != file.blake3 => {
                    let why = format!("{what} is not what it wrote");
                    return Ok(Some(Judged::new(Standing::Missing, why)));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    async fn judge_inputs(&mut self, stage: &Stage, stamp: &StampSpec) -> Result<Option<Judged>> {
        let inputs = self.see_all(&stage.reads).await?;
        for now in &inputs {
            let is_same = |then: &&StampScope| then.dataset == now.dataset && then.dt == now.dt;
            let then = stamp.inputs.iter().find(is_same);
            if then.is_none_or(|then| then.content != now.content) {
                let before = then.map_or(0, |then| then.position);
                let why = format!(
                    "{} has changed: record {} then, {} now",
                    named(now),
                    before,
                    now.position
                );
                return Ok(Some(Judged::new(Standing::Outdated, why)));
            }
        }
        let files = self.see_files(&stage.input_files)?;
        if files != stamp.input_files {
            let of = |file: &&StampFile| !stamp.input_files.contains(file);
            let why = match files.iter().find(of) {
                Some(file) => format!("`{}` is new or has changed", file.path),
                None => "a file that it read is gone".to_owned(),
            };
            return Ok(Some(Judged::new(Standing::Outdated, why)));
        }
        Ok(None)
    }

    /// What readers see of the scopes now.
    ///
    /// # Errors
    /// Those of reading logs.
    pub async fn see_all(&mut self, scopes: &[crate::flow::Scope]) -> Result<Vec<StampScope>> {
        let mut seen = Vec::with_capacity(scopes.len());
        for scope in scopes {
            seen.push(self.sights.see(scope).await?);
        }
        Ok(seen)
    }

    /// The files that the globs name now, sorted.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn see_files(&self, globs: &[String]) -> Result<Vec<StampFile>> {
        let mut files = Vec::new();
        for pattern in globs {
            for path in files_of(&self.project, pattern)? {
                let Some((bytes, blake3)) = hash_file(&path)? else {
                    continue;
                };
                let below = path.strip_prefix(&self.project).unwrap_or(&path);
                files.push(StampFile {
                    path: below.to_string_lossy().into_owned(),
                    bytes,
                    blake3,
                });
            }
        }
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// The stamp at the place of the stage, or how the stage stands without one: a stamp that is none is made anew.
fn read_stamp(
    (bytes, name): (&[u8], &str),
    source: &SourceName,
    stage: &Stage,
) -> std::result::Result<StampSpec, Judged> {
    let stamp = StampSpec::read(bytes, name).map_err(|e| match e.kind() {
        ErrorKind::CorruptData => Judged::new(
            Standing::Missing,
            format!("its stamp cannot be read: it runs again, or delete `{name}` of the lake"),
        ),
        // What a newer program wrote is not written over unasked.
        _ => Judged::new(Standing::Stale, format!("{} (`{name}`)", e.message())),
    })?;
    let of = (&stamp.source, stamp.date, &stamp.run, &stamp.stage);
    if of == (source, stage.stamp_date, &stage.stamp_run, &stage.name) {
        return Ok(stamp);
    }
    let why = format!(
        "the stamp at its place is that of `{}` of {} {}, run {}: it runs again, or delete `{name}` of the lake",
        stamp.stage, stamp.source, stamp.date, stamp.run
    );
    Err(Judged::new(Standing::Missing, why))
}

/// Dataset and date, for people.
fn named(scope: &StampScope) -> String {
    let runs: Vec<&str> = scope.runs.iter().map(|r| r.as_str()).collect();
    let runs = match runs.is_empty() {
        true => String::new(),
        false => format!(" (run {})", runs.join(", ")),
    };
    match scope.from {
        Some(_) => format!("{} until {}{runs}", scope.dataset, scope.dt),
        None => format!("{} of {}{runs}", scope.dataset, scope.dt),
    }
}

/// The files that a glob from the project folder on names, sorted.
pub(super) fn files_of(project: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let root = glob::Pattern::escape(&project.to_string_lossy());
    let whole = format!("{root}/{pattern}");
    let found = glob::glob(&whole)
        .map_err(|e| Error::invalid(format!("`{pattern}` is no pattern of file names: {e}")))?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|e| {
            let at = e.path().display().to_string();
            Error::io("look for files in", at, e.into())
        })?;
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Size and BLAKE3 of a file; `None` where it is not there.
pub(super) fn hash_file(path: &Path) -> Result<Option<(u64, ContentHash)>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read the file", path.display(), e)),
    };
    let mut hasher = blake3::Hasher::new();
    hasher
        .update_reader(file)
        .map_err(|e| Error::io("read the file", path.display(), e))?;
    Ok(Some((hasher.count(), ContentHash::finish(&hasher))))
}
