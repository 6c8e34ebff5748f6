//! One stage as a process: its output in its log, its end told in words.
//!
//! It is a group of its own, so that it gets a signal when the flow says so and not with every key of a terminal. A flow
//! that is told to end tells its stage, waits, and kills what does not listen.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::flow::place::log_line;

/// How long a stage may take to end when it is told to.
const GRACE: Duration = Duration::from_secs(30);
/// Pauses between two looks at a process: short at first, since many stages are short.
const FIRST_LOOK: Duration = Duration::from_micros(500);
const LAST_LOOK: Duration = Duration::from_millis(20);
/// What is told of a log that failed.
const LAST_LINES: usize = 12;
const LAST_BYTES: u64 = 16 << 10;
/// Characters that are told of a line.
const LAST_LINE_CHARS: usize = 300;
/// Different warnings that are told of a stage, and bytes of its log that are looked at for them.
const MAX_WARNINGS: usize = 20;
const MAX_WARNING_BYTES: u64 = 8 << 20;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Well.
    Good,
    /// With this code or signal, in words.
    Bad { reason: String, code: Option<i32> },
    /// It took longer than it may.
    TimedOut,
    /// It was told to end.
    Told,
}

/// What is started.
pub(super) struct Call<'a> {
    /// Program and arguments.
    pub(super) argv: &'a [String],
    /// The folder that it runs in.
    pub(super) folder: &'a Path,
    /// Variables that it gets beside those of the flow.
    pub(super) variables: &'a [(&'static str, String)],
    /// Its standard input: the lock of the date.
    pub(super) lock: File,
    /// Its log.
    pub(super) log: &'a Path,
}

/// Starts it; the log has the command line in front of what it says, which begins at the byte that is answered.
pub(super) fn start(call: Call<'_>, head: &str) -> Result<(Child, u64)> {
    let (program, args) = call
        .argv
        .split_first()
        .ok_or_else(|| Error::internal("a stage without a command"))?;
    if let Some(folder) = call.log.parent() {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io("create the folder", folder.display(), e))?;
    }
    let failed = |e| Error::io("write the log", call.log.display(), e);
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(call.log)
        .map_err(failed)?;
    log.write_all(format!("== {head}\n").as_bytes())
        .map_err(failed)?;
    let errors = log.try_clone().map_err(failed)?;
    let begin = log.metadata().map_err(failed)?.len();
    let child = Command::new(program)
        .args(args)
        .current_dir(call.folder)
        .envs(call.variables.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::from(call.lock))
        .stdout(Stdio::from(log))
        .stderr(Stdio::from(errors))
        .process_group(0)
        .spawn()
        .map_err(|e| Error::io("start the program", program, e))?;
    Ok((child, begin))
}

/// Ends it at once, with all that it started.
pub(super) fn kill(mut child: Child) {
    signal(&child, "-KILL");
    // It is gone already, or it goes now: there is nobody left to tell.
    drop(child.kill());
    drop(child.wait());
}

/// Waits for its end; `is_told` says whether it must end now.
pub(super) fn wait(
    mut child: Child,
    timeout: Option<Duration>,
    is_told: impl Fn() -> bool,
) -> Result<End> {
    let began = Instant::now();
    let mut look = FIRST_LOOK;
    let mut asked: Option<(Instant, End)> = None;
    loop {
        let status = child
            .try_wait()
            .map_err(|e| Error::io("wait for", format!("process {}", child.id()), e))?;
        if let Some(status) = status {
            return Ok(match asked {
                // It may have ended well meanwhile.
                Some((_, end)) if !status.success() => end,
                _ => end_of(status),
            });
        }
        match &asked {
            Some((at, _)) if at.elapsed() > GRACE => signal(&child, "-KILL"),
            Some(_) => {}
            None if is_told() => {
                signal(&child, "-TERM");
                asked = Some((Instant::now(), End::Told));
            }
            None if timeout.is_some_and(|limit| began.elapsed() > limit) => {
                signal(&child, "-TERM");
                asked = Some((Instant::now(), End::TimedOut));
            }
            None => {}
        }
        std::thread::sleep(look);
        look = (look * 2).min(LAST_LOOK);
    }
}

/// Tells the group of the process; one that is gone needs none.
fn signal(child: &Child, which: &str) {
    let group = format!("-{}", child.id());
    let told = Command::new("kill").args([which, "--", &group]).output();
    // Where there is no such program, its end is waited for.
    drop(told);
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(0), _) => End::Good,
        (Some(code), _) => End::Bad {
            reason: format!("it ended with code {code}"),
            code: Some(code),
        },
        (None, Some(signal)) => End::Bad {
            reason: format!("it was ended by signal {signal}"),
            code: None,
        },
        (None, None) => End::Bad {
            reason: "it did not end by itself".to_owned(),
            code: None,
        },
    }
}

/// The last lines of a log from a byte on; long ones are cut.
pub(super) fn last_lines(log: &Path, begin: u64) -> Vec<String> {
    let read = || -> std::io::Result<(bool, Vec<u8>)> {
        let mut file = File::open(log)?;
        let size = file.metadata()?.len();
        let from = size.saturating_sub(LAST_BYTES).max(begin);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((from > begin, bytes))
    };
    let (is_cut, bytes) = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    let shown = lines[from..].iter().enumerate();
    shown
        .map(|(n, line)| short_line(line, is_cut && from + n == 0))
        .collect()
}

/// What a program of ours warned of at the beginning of its log, from a byte on: each text once, the first ones; the rest is
/// counted. What it said after so many bytes is in the log alone.
pub(super) fn warnings(log: &Path, begin: u64) -> Vec<String> {
    let read = || -> std::io::Result<(Vec<String>, u64)> {
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(begin))?;
        let (mut told, mut more) = (Vec::new(), 0);
        for line in BufReader::new(file.take(MAX_WARNING_BYTES)).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let text = match log_line(line.trim_end()) {
                Some(("warn", text)) => short_line(text, false),
                _ => continue,
            };
            match told.len() {
                _ if told.contains(&text) => {}
                n if n < MAX_WARNINGS => told.push(text),
                _ => more += 1,
            }
        }
        Ok((told, more))
    };
    let (mut told, more) = read().unwrap_or_default();
    if more > 0 {
        told.push(format!("and {more} more warnings"));
    }
    told
}

/// A line of at most so many characters; of one whose beginning is not there the end counts.
fn short_line(line: &str, is_end: bool) -> String {
    let most = LAST_LINE_CHARS;
    let chars = line.chars().count();
    match (chars > most, is_end) {
        (false, false) => line.to_owned(),
        (false, true) => format!("...{line}"),
        (true, false) => line.chars().take(most).chain("...".chars()).collect(),
        (true, true) => "..."
            .chars()
            .chain(line.chars().skip(chars - most))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_those_of_the_try_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("x.log");
        let at = "2026-12-01T09:00:00.123456+08:00";
        let head = format!("== before\n{at} warn  old\n== this try\n");
        let said = format!(
            "{at} info  begins\n{at} warn  壞了\nwarn  no log line\n{at} warn  壞了\n{at} warn  x\n"
        );
        fs::write(&log, format!("{head}{said}")).unwrap();
        let begin = head.len() as u64;
        assert_eq!(warnings(&log, begin), ["壞了", "x"]);
        let many: String = (0..30).map(|n| format!("{at} warn  w{n}\n")).collect();
        fs::write(&log, format!("{head}{many}")).unwrap();
        let told = warnings(&log, begin);
        assert_eq!(
            (told.len(), told[20].as_str()),
            (21, "and 10 more warnings")
        );
        assert!(warnings(&dir.path().join("none"), 0).is_empty());
    }

    #[test]
    fn lines_are_those_of_the_try_and_no_longer_than_one_reads() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("x.log");
        let head = "== a try before\nold\n== this try\n";
        let said = format!("== Summary ==\n\n{}\n== the end ==\n", "價".repeat(400));
        fs::write(&log, format!("{head}{said}")).unwrap();
        let begin = head.len() as u64;
        let long = format!("{}...", "價".repeat(300));
        assert_eq!(
            last_lines(&log, begin),
            ["== Summary ==", &long, "== the end =="]
        );
        // One line that has no end.
        fs::write(&log, format!("{head}{}Ω", "x".repeat(100_000))).unwrap();
        assert_eq!(
            last_lines(&log, begin),
            [format!("...{}Ω", "x".repeat(299))]
        );
        // Nothing was said.
        fs::write(&log, head).unwrap();
        assert!(last_lines(&log, begin).is_empty());
    }
}
