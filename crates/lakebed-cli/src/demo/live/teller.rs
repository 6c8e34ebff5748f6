//! Runs commands and shows them as they were typed, with what they print.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use lakebed::{Error, Result};
use serde_json::Value;

use crate::printer::Printer;

/// Lines that are shown of what a command prints.
const SHOWN_LINES: usize = 24;

/// Tells the story on standard output.
pub(super) struct Teller<'a> {
    pub(super) printer: &'a Printer,
    project: &'a Path,
}

/// Which lines of a command's output are shown.
pub(super) enum Show {
    /// All, data and messages.
    All,
    /// Those that hold one of these words.
    Only(&'static [&'static str]),
    /// None.
    Nothing,
}

impl<'a> Teller<'a> {
    pub(super) fn new(printer: &'a Printer, project: &'a Path) -> Self {
        Self { printer, project }
    }

    /// A line of the story.
    pub(super) fn say(&self, text: &str) -> Result<()> {
        self.printer.line(text)
    }

    /// A heading.
    pub(super) fn title(&self, text: &str) -> Result<()> {
        self.printer.line(format!("\n== {text}\n"))
    }

    /// Shows a command, runs it, and shows what it prints; it must end with the code.
    pub(super) fn run(&self, args: &[&str], code: i32, show: &Show) -> Result<String> {
        self.printer.line(format!("   $ lakebed {}", shown(args)))?;
        let output = self.call(args)?;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = out.lines().map(str::to_owned);
        let lines: Vec<String> = lines.chain(err.lines().map(plain)).collect();
        let wanted = lines.iter().filter(|line| match show {
            Show::All => true,
            Show::Only(words) => words.iter().any(|word| line.contains(word)),
            Show::Nothing => false,
        });
        for line in wanted.take(SHOWN_LINES) {
            self.printer.line(format!("     {line}"))?;
        }
        if output.status.code() != Some(code) {
            let said = format!("{out}{err}");
            return Err(
                missed(&format!("`lakebed {}` ends with {code}", shown(args)))
                    .with("ended", output.status)
                    .with("said", said.trim()),
            );
        }
        if code != 0 {
            self.printer.line(format!("     (exit code {code})"))?;
        }
        Ok(out)
    }

    /// What a command prints as JSON; it is not shown.
    pub(super) fn json(&self, args: &[&str]) -> Result<Value> {
        let output = self.call(&[args, &["--format", "json"]].concat())?;
        serde_json::from_slice(&output.stdout).map_err(|e| {
            missed(&format!("`lakebed {}` prints JSON", shown(args)))
                .with("said", String::from_utf8_lossy(&output.stderr))
                .caused_by(e)
        })
    }

    fn call(&self, args: &[&str]) -> Result<Output> {
        let program =
            std::env::current_exe().map_err(|e| Error::io("find this program", "the demo", e))?;
        Command::new(program)
            .args(args)
            .current_dir(self.project)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| Error::io("run the command", shown(args), e))
    }
}

/// The demo tells nothing that is not so.
pub(super) fn expect(holds: bool, what: &str) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(missed(what)),
    }
}

fn missed(what: &str) -> Error {
    Error::internal(format!("the demo expected that {what}"))
        .hint("this is a fault of the program; please report it")
}

/// Arguments as they are typed.
fn shown(args: &[&str]) -> String {
    let quoted = args.iter().map(|arg| {
        let is_plain = !arg.is_empty()
            && arg
                .chars()
                .all(|c| c.is_alphanumeric() || "-_./:=,{}".contains(c));
        match is_plain {
            true => (*arg).to_owned(),
            false => format!("\"{}\"", arg.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A message without its time, which differs from run to run.
fn plain(line: &str) -> String {
    if let Some(quoted) = line.strip_prefix("  | ") {
        return format!("  | {}", plain(quoted));
    }
    let is_time = |word: &str| word.len() > 20 && word.ends_with('Z') && word.contains('T');
    match line.split_once("  ").or_else(|| line.split_once(' ')) {
        Some((time, rest)) if is_time(time) => rest.trim_start().to_owned(),
        _ => line.to_owned(),
    }
}
