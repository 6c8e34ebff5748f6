//! A stage `shell`: the commands of both over the same inputs, each into a folder of its own.
//!
//! A command that says `{out}` writes below that folder: the project in a flow, another one here. Without it nothing is
//! run, since it would write where the flow writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::config::StageKind;
use crate::error::{Error, Result};
use crate::flow::declared::Declared;
use crate::flow::graph::{Graph, PROJECT_OUT, Program, Stage};
use crate::flow::judge::{Judge, files_of};
use crate::flow::make::shell_line;
use crate::flow::process::{Call, End, last_lines, start, wait};
use crate::flow::shadow::files::{compare_files, left_in};
use crate::flow::shadow::record::{ShadowBegun, ShadowDate, ShadowOptions, ShadowPair, Shadowed};
use crate::name::{ContentHash, RunName};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Two commands of a stage.
pub struct ShadowShell {
    lake: Lake,
    project: PathBuf,
    old: Declared,
    new: Declared,
    name: String,
    run: RunName,
    pair: ShadowPair,
    stop: watch::Receiver<bool>,
}

/// One of both on a date.
struct Side<'a> {
    declared: &'a Declared,
    stage: Stage,
    folder: PathBuf,
    log: PathBuf,
}

impl ShadowShell {
    /// The stage of that name in what both files declare; `project` is absolute, `stop` is set when the call must end.
    ///
    /// # Errors
    /// `InvalidInput` where there is none, or where it does not say what it writes and that it writes below `{out}`.
    pub fn open(
        (lake, project): (&Lake, &Path),
        (old, new): (Declared, Declared),
        (name, date, run): (&str, BusinessDate, &RunName),
        stop: watch::Receiver<bool>,
    ) -> Result<Self> {
        let stage = |declared: &Declared| {
            let graph = Graph::of(declared, date, run)?;
            let stage = graph.stage(name).cloned();
            let stage = stage.map_err(|e| e.with("file", &declared.file))?;
            check(declared, &stage).map_err(|(key, error)| {
                error
                    .with("file", &declared.file)
                    .with("stage", name)
                    .with("key", format!("flow.stage.{key}"))
            })?;
            Ok::<_, Error>(stage)
        };
        let rules = (stage(&old)?.rules, stage(&new)?.rules);
        let pair = ShadowPair::new(&old.source, &format!("shell.{name}"), (&rules.0, &rules.1))?;
        Ok(Self {
            lake: lake.clone(),
            project: project.to_owned(),
            old,
            new,
            name: name.to_owned(),
            run: run.clone(),
            pair,
            stop,
        })
    }

    /// What the records are kept by.
    #[must_use]
    pub fn pair(&self) -> &ShadowPair {
        &self.pair
    }

    fn stage(&self, declared: &Declared, date: BusinessDate, out: &str) -> Result<Stage> {
        let graph = Graph::with_out(declared, (date, &self.run), out)?;
        graph.stage(&self.name).cloned()
    }

    /// Runs both commands for a date, and compares what they left.
    ///
    /// # Errors
    /// What reading files and logs answers; `Conflict` where a command wrote what the flow writes.
    pub async fn compare(&self, date: BusinessDate, options: &ShadowOptions) -> Result<Shadowed> {
        let mut judge = Judge::new(&self.lake, &self.project);
        let mut inputs = blake3::Hasher::new();
        for declared in [&self.old, &self.new] {
            let stage = self.stage(declared, date, PROJECT_OUT)?;
            if let Some(why) = self.see(&mut judge, &stage, &mut inputs).await? {
                return Ok(Shadowed::Missing(why));
            }
        }
        let inputs = ContentHash::finish(&inputs);
        let open = match ShadowDate::begin(&self.pair, (date, inputs), options)? {
            ShadowBegun::Kept(day) => return Ok(Shadowed::Compared(day)),
            ShadowBegun::Open(open) => open,
        };
        let work = fs::canonicalize(open.work()?)
            .map_err(|e| Error::io("find the folder", open.folder().display(), e))?;
        let mut sides = Vec::new();
        for (name, declared) in [("old", &self.old), ("new", &self.new)] {
            let folder = work.join(name);
            sides.push(Side {
                declared,
                stage: self.stage(declared, date, &folder.to_string_lossy())?,
                log: open.folder().join(format!("{date}.{name}.log")),
                folder,
            });
        }
        for side in &sides {
            let before = judge.see_files(&side.stage.output_files)?;
            let ended = self.run(side).await?;
            if judge.see_files(&side.stage.output_files)? != before {
                return Err(self.wrote_elsewhere(side));
            }
            if let Some(why) = ended {
                open.give_up()?;
                return Ok(Shadowed::Missing(why));
            }
        }
        self.compare_sides(*open, &sides)
    }

    /// What the stage reads, into the name of the inputs; or why it cannot run.
    async fn see(
        &self,
        judge: &mut Judge,
        stage: &Stage,
        inputs: &mut blake3::Hasher,
    ) -> Result<Option<String>> {
        if !stage.is_due {
            let why = "a stage of a month is done with the month's last day alone";
            return Ok(Some(why.to_owned()));
        }
        for seen in judge.see_all(&stage.reads).await? {
            let Some(content) = seen.content else {
                let why = format!("`{}` has nothing of {}", seen.dataset, seen.dt);
                return Ok(Some(why));
            };
            inputs.update(format!("{} {} {content}\n", seen.dataset, seen.dt).as_bytes());
        }
        for pattern in &stage.input_files {
            if files_of(&self.project, pattern)?.is_empty() {
                let why = format!("there is no file `{pattern}` that it should read");
                return Ok(Some(why));
            }
        }
        for file in judge.see_files(&stage.input_files)? {
            inputs.update(format!("{} {}\n", file.path, file.blake3).as_bytes());
        }
        inputs.update(b"\n");
        Ok(None)
    }

    /// Runs one of both; answers why there is nothing to compare.
    async fn run(&self, side: &Side<'_>) -> Result<Option<String>> {
        for pattern in &side.stage.output_files {
            let folder = side.folder.join(literal_folder(pattern));
            fs::create_dir_all(&folder)
                .map_err(|e| Error::io("create the folder", folder.display(), e))?;
        }
        let Program::Shell(argv) = &side.stage.program else {
            return Err(Error::internal("a stage of another kind"));
        };
        let failed = |e| Error::io("write the log", side.log.display(), e);
        File::create(&side.log).map_err(failed)?;
        let variables = [
            ("LAKEBED_PROJECT", self.project.display().to_string()),
            ("LAKEBED_SOURCE", side.declared.source.to_string()),
            ("LAKEBED_DATE", side.stage.date.to_string()),
            ("LAKEBED_RUN", self.run.to_string()),
        ];
        let nothing =
            File::open("/dev/null").map_err(|e| Error::io("open the file", "/dev/null", e))?;
        let (child, begin) = start(
            Call {
                argv,
                folder: &self.project,
                variables: &variables,
                lock: nothing,
                log: &side.log,
            },
            &shell_line(argv),
        )
        .map_err(|e| e.with("file", &side.declared.file))?;
        let (stop, timeout) = (self.stop.clone(), side.stage.timeout);
        let waited = tokio::task::spawn_blocking(move || wait(child, timeout, || *stop.borrow()));
        let end = waited
            .await
            .map_err(|e| Error::internal("wait for a command").caused_by(e))??;
        let why = match end {
            End::Good => return Ok(None),
            End::Told => return Err(Error::unavailable("the shadow run was told to end")),
            End::TimedOut => "it took longer than it may".to_owned(),
            End::Bad { reason, .. } => reason,
        };
        let last = last_lines(&side.log, begin);
        let last = last
            .last()
            .map_or(String::new(), |line| format!(": {line}"));
        Ok(Some(format!(
            "the command of {}: {why}{last} (all of it in {})",
            side.declared.file,
            side.log.display()
        )))
    }

    fn wrote_elsewhere(&self, side: &Side<'_>) -> Error {
        Error::conflict(
            "the command wrote files of the project, although its outputs belong below `{out}`",
        )
        .with("file", &side.declared.file)
        .with("stage", &self.name)
        .hint(format!(
            "look at {} and run the stage again: `lakebed run {} --date {} --from-stage {}`",
            side.stage.output_files.join(", "),
            side.declared.source,
            side.stage.date,
            self.name
        ))
    }

    fn compare_sides(&self, mut open: ShadowDate, sides: &[Side<'_>]) -> Result<Shadowed> {
        let mut found = Vec::new();
        for side in sides {
            let left = left_in(&side.folder, &side.stage.output_files)?;
            for pattern in &side.stage.output_files {
                if files_of(&side.folder, pattern)?.is_empty() {
                    let why = format!(
                        "the command of {} ended well, and left no `{pattern}` below `{{out}}`",
                        side.declared.file
                    );
                    open.give_up()?;
                    return Ok(Shadowed::Missing(why));
                }
            }
            found.push(left);
        }
        let [old, new] = found.as_slice() else {
            return Err(Error::internal("two commands became another number"));
        };
        compare_files((old, new), &mut |item| open.take(None, item))?;
        open.finish().map(Shadowed::Compared)
    }
}

/// Refuses what cannot be run beside the flow: the key that is wrong, and why.
fn check(declared: &Declared, stage: &Stage) -> Result<(), (&'static str, Error)> {
    let written = declared.flow.iter().flat_map(|flow| &flow.stage);
    let is_it = |s: &&crate::config::FlowStageConfig| {
        s.name.as_ref().map_or(s.kind.as_str(), |n| n.as_str()) == stage.name.as_str()
    };
    let command = written
        .into_iter()
        .find(is_it)
        .map(|s| s.command.as_slice());
    if stage.kind != StageKind::Shell {
        let error = Error::invalid(format!("`{}` is no stage of kind `shell`", stage.name));
        let hint = "parse, fold and derive are stages of their own: `lakebed shadow SOURCE fold`";
        return Err(("kind", error.hint(hint)));
    }
    if !command
        .into_iter()
        .flatten()
        .any(|word| word.contains("{out}"))
    {
        let error = Error::invalid("the command does not say `{out}`: it would write where the flow writes")
            .hint("`{out}` is the project in a flow, and a folder of its own in a shadow run: command = [\"python3\", \"report.py\", \"{date}\", \"--out\", \"{out}/reports\"]");
        return Err(("command", error));
    }
    let is_outside = |path: &String| Path::new(path).is_absolute() || path.contains("..");
    if !stage.writes.is_empty()
        || stage.output_files.is_empty()
        || stage.output_files.iter().any(is_outside)
    {
        let error = Error::invalid("the outputs are not files of the project alone")
            .hint("what is compared are files that the stage declares: outputs = [\"reports/{date}.csv\"]; rows are compared by the stages that make them, or by SQL over two datasets");
        return Err(("outputs", error));
    }
    Ok(())
}

/// The folders of a pattern before its first sign that stands for several names.
fn literal_folder(pattern: &str) -> &str {
    let end = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    pattern[..end]
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
}
