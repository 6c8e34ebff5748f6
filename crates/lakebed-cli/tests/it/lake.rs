//! `TestLake`: a throw-away project and the real binary run in it.
//!
//! ```ignore
//! let lake = TestLake::new().dataset("clean/a", "[[field]] ...");
//! lake.file("a.jsonl", r#"{"k": 1}"#);
//! let answer = lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"]).json();
//! assert_eq!(lake.sql("SELECT count(*) AS n FROM clean.a")[0]["n"], 1);
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails the test that called it"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A project in a temporary folder; the working folder of its commands is an inbox beside it.
pub(crate) struct TestLake {
    root: TempDir,
    env: BTreeMap<String, String>,
}

/// What a run of the binary gave.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    root: PathBuf,
}

impl TestLake {
    /// A fresh project in the zone Asia/Taipei.
    pub(crate) fn new() -> Self {
        let lake = Self::without_project();
        lake.run(&[
            "init",
            lake.path_text("project").as_str(),
            "--time-zone",
            "Asia/Taipei",
        ])
        .ok();
        lake
    }

    /// Folders only; `init` was not called.
    pub(crate) fn without_project() -> Self {
        let root = tempfile::Builder::new()
            .prefix("lakebed-it-")
            .tempdir()
            .unwrap();
        std::fs::create_dir(root.path().join("inbox")).unwrap();
        Self {
            root,
            env: BTreeMap::new(),
        }
    }

    /// An environment variable of every command that follows.
    #[allow(dead_code, reason = "for tests that need one over several commands")]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Writes `source.toml` and version 1 of a schema by hand and publishes it.
    pub(crate) fn dataset(self, dataset: &str, fields: &str) -> Self {
        self.schema(dataset, 1, fields);
        self.run(&["schema", "publish", dataset, "1"]).ok();
        self
    }

    /// Writes a version file; `text` holds everything after `dataset` and `version`.
    pub(crate) fn schema(&self, dataset: &str, version: u32, text: &str) -> PathBuf {
        let name = dataset.split_once('/').unwrap().1;
        let source = name.split('.').next().unwrap();
        let folder = self.project().join("sources").join(source);
        std::fs::create_dir_all(folder.join("schemas").join(name)).unwrap();
        if !folder.join("source.toml").exists() {
            std::fs::write(folder.join("source.toml"), "class = \"log\"\n").unwrap();
        }
        let file = folder
            .join("schemas")
            .join(name)
            .join(format!("v{version}.toml"));
        std::fs::write(
            &file,
            format!("dataset = \"{dataset}\"\nversion = {version}\n{text}"),
        )
        .unwrap();
        file
    }

    /// The folder that holds project and inbox.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The project folder.
    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// The lake's folder.
    pub(crate) fn lake(&self) -> PathBuf {
        self.project().join("lake")
    }

    /// A path below the root as text.
    pub(crate) fn path_text(&self, below: &str) -> String {
        self.root().join(below).to_str().unwrap().to_owned()
    }

    /// Writes a file into the inbox.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join("inbox").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Runs a command on the project.
    pub(crate) fn run<S: AsRef<str>>(&self, args: &[S]) -> Run {
        self.call(args).run()
    }

    /// A command on the project, to be given input or environment first.
    pub(crate) fn call<S: AsRef<str>>(&self, args: &[S]) -> Call<'_> {
        Call {
            lake: self,
            args: args.iter().map(|a| a.as_ref().to_owned()).collect(),
            env: self.env.clone(),
            stdin: None,
            project: self.project().exists(),
        }
    }

    /// `ingest DATASET ARGS... --format json`
    pub(crate) fn ingest(&self, dataset: &str, args: &[&str]) -> Run {
        let mut all = vec!["ingest", dataset];
        all.extend(args);
        all.extend(["--format", "json"]);
        self.run(&all)
    }

    /// The rows of a query.
    pub(crate) fn sql(&self, query: &str) -> Vec<Value> {
        match self.run(&["sql", "--format", "json", query]).ok().json() {
            Value::Array(rows) => rows,
            other => panic!("rows are not an array: {other}"),
        }
    }

    /// The first column of the first row of a query, as text.
    pub(crate) fn sql_one(&self, query: &str) -> String {
        let rows = self.sql(query);
        let row = rows.first().and_then(Value::as_object);
        let value = row.and_then(|r| r.values().next()).cloned();
        match value.unwrap_or_else(|| panic!("`{query}` gave no row")) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// The rejected records of a date.
    pub(crate) fn rejects(&self, dataset: &str, date: &str) -> Vec<Value> {
        let answer = self
            .run(&["rejects", dataset, "--date", date, "--format", "json"])
            .ok()
            .json();
        answer["rejects"].as_array().unwrap().clone()
    }

    /// Asserts that `audit --deep` finds nothing.
    pub(crate) fn assert_clean(&self) {
        self.run(&["audit", "--deep"]).ok();
    }

    /// Every file of the lake with its size, sorted; `_lake/put` aside.
    pub(crate) fn files(&self) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        walk(&self.lake(), &mut |path| {
            let name = path.strip_prefix(self.lake()).unwrap();
            let size = path.metadata().unwrap().len();
            found.insert(name.to_str().unwrap().to_owned(), size);
        });
        found
    }

    /// Data files that a folder reader sees.
    pub(crate) fn data_files(&self) -> Vec<String> {
        self.files()
            .into_keys()
            .filter(|f| f.starts_with("clean/") && f.ends_with(".parquet"))
            .collect()
    }
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, visit);
        } else {
            visit(&path);
        }
    }
}

/// A command before it runs.
pub(crate) struct Call<'a> {
    lake: &'a TestLake,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    stdin: Option<Vec<u8>>,
    project: bool,
}

impl Call<'_> {
    /// An environment variable of this call alone.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// What stands on standard input.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// No `--project` is added.
    pub(crate) fn bare(mut self) -> Self {
        self.project = false;
        self
    }

    /// The process, not yet started: for tests that kill it or close its pipes.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lakebed"));
        command
            .args(&self.args)
            .current_dir(self.lake.root().join("inbox"))
            .env_remove("LAKEBED_PROJECT")
            .env_remove("LAKEBED_USER")
            .env_remove("LAKEBED_KILL_POINT")
            .env("NO_COLOR", "1")
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let makes_project = matches!(self.args.first().map(String::as_str), Some("init" | "demo"));
        if self.project && !makes_project {
            command.arg("--project").arg(self.lake.project());
        }
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Run {
        let mut command = self.command();
        if self.stdin.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        let feeder = self.stdin.clone().map(|bytes| {
            let mut pipe = child.stdin.take().unwrap();
            // The child may end before it has read everything.
            std::thread::spawn(move || pipe.write_all(&bytes).is_ok())
        });
        let output = child.wait_with_output().unwrap();
        if let Some(feeder) = feeder {
            feeder.join().unwrap();
        }
        Run {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            root: self.lake.root().to_owned(),
        }
    }
}

impl Run {
    /// Asserts exit code 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.code(0)
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// Asserts that the process died of a signal, as `kill -9` or an abort does.
    #[track_caller]
    #[allow(dead_code, reason = "for tests that kill the process")]
    pub(crate) fn killed(self) -> Self {
        use std::os::unix::process::ExitStatusExt;
        assert!(self.status.signal().is_some(), "{self}");
        self
    }

    /// Asserts that stderr holds every text.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` is not told: {self}");
        }
        self
    }

    /// Fails unless standard output holds each text.
    #[track_caller]
    pub(crate) fn prints(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(
                self.stdout.contains(text),
                "`{text}` is not printed: {self}"
            );
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self}"))
    }

    /// The JSON error object on the last line of stderr.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {self}"));
        value["error"].clone()
    }

    /// Exit code, stdout and stderr with paths, times, ids and hashes made equal.
    pub(crate) fn snapshot(&self) -> String {
        let text = format!(
            "exit: {}\n--- stdout\n{}--- stderr\n{}",
            self.status.code().unwrap_or(-1),
            self.stdout,
            self.stderr
        );
        mask(&text.replace(self.root.to_str().unwrap(), "[ROOT]"))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.status, self.stdout, self.stderr
        )
    }
}

/// Times become `[TIME]`, runs of 16 and more hex digits `[ID]`.
fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let time = time_length(rest);
        let hex = rest
            .bytes()
            .take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            .count();
        if time > 0 {
            out.push_str("[TIME]");
            rest = &rest[time..];
        } else if hex >= 16 {
            out.push_str("[ID]");
            rest = &rest[hex..];
        } else {
            let step = if hex > 0 { hex } else { c.len_utf8() };
            // A date may begin inside a run of digits only at its start.
            let step = if time_length(&rest[c.len_utf8()..]) > 0 {
                c.len_utf8()
            } else {
                step
            };
            out.push_str(&rest[..step]);
            rest = &rest[step..];
        }
    }
    out
}

/// Length of an RFC 3339 time in UTC with microseconds at the beginning of the text.
fn time_length(text: &str) -> usize {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00.000000Z";
    let fits = text.len() >= SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(b, s)| {
            if *s == b'0' {
                b.is_ascii_digit()
            } else {
                b == *s
            }
        });
    if fits { SHAPE.len() } else { 0 }
}

#[test]
fn the_mask_hides_what_changes_from_run_to_run() {
    let text = "2026-11-30T16:28:46.123456Z info  part-00000-0123456789abcdef.parquet 12 abc";
    assert_eq!(mask(text), "[TIME] info  part-00000-[ID].parquet 12 abc");
}
