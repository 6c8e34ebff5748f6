//! Pages parsed by a program of the user's, in any language: one JSON line a page goes in, one comes out.
//!
//! ```text
//! in   {"url", "stage", "status", "fetched_at", "capture": {...}, "text": "..." | "body_base64": "..."}
//! out  {"records": [{"record": {...}, "dataset": "...", "key": "..."}], "follow_ups": [...],
//!       "expectations": [...], "rejects": [{"reason": "...", "path": "$.x"}]}
//! ```
//! The program lives for many pages. One that ends, is silent for too long, or answers with something else is
//! ended and named; the page it had is rejected, and the next page starts it again. So what is in memory is
//! one page and one answer.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use base64::Engine;
use serde_json::{Value, json};

use crate::config::CommandConfig;
use crate::error::{Error, Result};
use crate::name::DatasetName;
use crate::parse::budget::{Budget, MAX_OUTPUT_BYTES, PageError};
use crate::parse::json::JsonDoc;
use crate::parse::page::{PageInput, parse_page, text_of, whole_page, with_origin};
use crate::parse::rules::Rules;
use crate::spec::{
    CanonicalUrl, Datum, FollowUp, PageExpectation, PageFault, PageRecord, PageReject, ParsedPage,
    QueryOrder,
};

/// A program that ends so often before its first answer ends the call.
const MAX_STILLBORN: u32 = 5;
/// Bytes of what a program last said on stderr that an error shows.
const TOLD_BYTES: usize = 400;

/// What the rules give for one page, by a program where they say so; it runs in `folder` and ends with the page.
///
/// # Errors
/// Where the program cannot be started.
pub fn parse_with(rules: &Rules, folder: &Path, input: &PageInput<'_>) -> Result<ParsedPage> {
    match rules.command_of(input.capture) {
        None => Ok(parse_page(rules, input)),
        Some((name, config)) => CommandParser::new(config, folder).parse(name, input),
    }
}

/// A program that parses pages.
#[derive(Debug)]
pub struct CommandParser {
    config: CommandConfig,
    folder: PathBuf,
    running: Option<Running>,
    /// Pages that it was asked for.
    asked: u64,
    /// How often it ended before it answered anything.
    stillborn: u32,
}

/// A program that runs, with the threads that talk to it.
#[derive(Debug)]
struct Running {
    child: Child,
    lines: SyncSender<Vec<u8>>,
    answers: Receiver<std::io::Result<Vec<u8>>>,
    told: Arc<Mutex<VecDeque<u8>>>,
    /// Ends when everything it said was heard.
    heard: Receiver<()>,
}

impl CommandParser {
    /// A parser that starts the program, in `folder`, when the first page comes.
    #[must_use]
    pub fn new(config: &CommandConfig, folder: &Path) -> Self {
        Self {
            config: config.clone(),
            folder: folder.to_owned(),
            running: None,
            asked: 0,
            stillborn: 0,
        }
    }

    /// What the program gives for the page, by the rule of that name.
    ///
    /// # Errors
    /// `NotFound` where the program cannot be started; what it does wrong is a reject.
    pub fn parse(&mut self, rule: &str, input: &PageInput<'_>) -> Result<ParsedPage> {
        let mut parsed = ParsedPage {
            page: Some(rule.to_owned()),
            ..ParsedPage::of(input.capture)
        };
        let answer = match self.ask(input)? {
            Ok(line) => read_answer(&line, input, &self.config, &mut parsed),
            Err(error) => Err(error),
        };
        if let Err(PageError { code, reason }) = answer {
            let program = self.config.run.join(" ");
            parsed.records.clear();
            parsed.follow_ups.clear();
            parsed.expectations.clear();
            parsed.rejects = vec![whole_page(code, format!("`{program}`: {reason}"))];
        }
        Ok(parsed)
    }

    fn ask(&mut self, input: &PageInput<'_>) -> Result<std::result::Result<Vec<u8>, PageError>> {
        let (running, is_new) = match self.running.take() {
            Some(running) => (running, false),
            None => (Running::start(&self.config, &self.folder)?, true),
        };
        self.asked += 1;
        // A line that nothing asked for would be taken for the answer to this page.
        if running.answers.try_recv().is_ok() {
            let told = "it said more than one line for a page";
            return Ok(Err(running.end("command_answer", told)));
        }
        let timeout = Duration::from_secs(u64::from(self.config.page_timeout_s));
        let answer = match running.lines.send(line_of(input, self.asked)) {
            Ok(()) => answer_to(self.asked, &running.answers, timeout),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        Ok(match answer {
            Ok(Ok(line)) => {
                self.running = Some(running);
                self.stillborn = 0;
                Ok(line)
            }
            Ok(Err(e)) => Err(running.end("command_answer", &e.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                let told = format!("no answer within {} s", timeout.as_secs());
                Err(running.end("command_silent", &told))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let told = running.end("command_ended", "it ended");
                self.stillborn += u32::from(is_new);
                if self.stillborn >= MAX_STILLBORN {
                    return Err(self.never_answers(&told));
                }
                Err(told)
            }
        })
    }

    fn never_answers(&self, told: &PageError) -> Error {
        let program = self.config.run.join(" ");
        Error::precondition(format!(
            "`{program}` ended {MAX_STILLBORN} times before it answered a page: {}",
            told.reason
        ))
        .with("folder", self.folder.display())
        .hint("`lakebed parse SOURCE --try PAGE` runs it for one page")
    }
}

/// The line that answers this page. One that names another page came too late for that one.
fn answer_to(
    page: u64,
    answers: &Receiver<std::io::Result<Vec<u8>>>,
    timeout: Duration,
) -> std::result::Result<std::io::Result<Vec<u8>>, RecvTimeoutError> {
    loop {
        let answer = answers.recv_timeout(timeout)?;
        let named = answer.as_ref().ok().and_then(|line| named_page(line));
        if named.is_none_or(|n| n == page) {
            return Ok(answer);
        }
    }
}

/// The number of the page that an answer names.
fn named_page(line: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Named {
        page: Option<u64>,
    }
    let is_likely = memchr::memmem::find(line, b"\"page\"").is_some();
    let named = is_likely.then(|| serde_json::from_slice::<Named>(line));
    named?.ok()?.page
}

impl Drop for CommandParser {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // Its last page was answered: what it does then is no matter of a page.
            drop(running.end("command_ended", ""));
        }
    }
}

impl Running {
    fn start(config: &CommandConfig, folder: &Path) -> Result<Self> {
        // The shell sets the limit of memory and becomes the program.
        let limit = format!(
            "ulimit -v {} && exec \"$@\"",
            u64::from(config.memory_mib) * 1024
        );
        let mut child = Command::new("/bin/sh")
            .args(["-c", &limit, "sh"])
            .args(&config.run)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| Error::io("start the parser", config.run.join(" "), e))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
            return Err(Error::internal("a program without its three streams"));
        };
        let (lines, pages) = sync_channel::<Vec<u8>>(1);
        thread::spawn(move || {
            while let Ok(line) = pages.recv() {
                if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        let (answered, answers) = sync_channel(1);
        thread::spawn(move || {
            let mut from = BufReader::new(stdout);
            while let Some(line) = next_line(&mut from) {
                if answered.send(line).is_err() {
                    return;
                }
            }
        });
        let told = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&told);
        let (hearing, heard) = sync_channel(0);
        thread::spawn(move || {
            let _hearing: SyncSender<()> = hearing;
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut piece) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&piece[..n]);
                let beyond = kept.len().saturating_sub(TOLD_BYTES);
                kept.drain(..beyond);
            }
        });
        Ok(Self {
            child,
            lines,
            answers,
            told,
            heard,
        })
    }

    /// Ends the program and all it started; the reason is what is told, with its last words.
    fn end(mut self, code: &'static str, what: &str) -> PageError {
        let before = self.child.try_wait().ok().flatten();
        if before.is_none() {
            let group = format!("-{}", self.child.id());
            // Whether it is gone already shows in the wait.
            drop(
                Command::new("kill")
                    .args(["-KILL", "--", &group])
                    .stderr(Stdio::null())
                    .status(),
            );
            drop(self.child.kill());
        }
        let status = self.child.wait();
        // A stranger may hold the stream open: it is not waited for.
        let _is_late = self.heard.recv_timeout(Duration::from_secs(1)).is_err();
        let status = match (before, status) {
            (Some(status), _) => format!(" ({status})"),
            (None, Ok(status)) if code == "command_ended" => format!(" ({status})"),
            (None, _) => String::new(),
        };
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = told.iter().copied().collect();
        let words = String::from_utf8_lossy(&bytes).trim().replace('\n', " / ");
        let words = if words.is_empty() {
            words
        } else {
            format!(": {words}")
        };
        PageError::new(code, format!("{what}{status}{words}"))
    }
}

/// The next line of a program; `None` at its end.
fn next_line(from: &mut impl BufRead) -> Option<std::io::Result<Vec<u8>>> {
    let mut line = Vec::new();
    match from.take(MAX_OUTPUT_BYTES).read_until(b'\n', &mut line) {
        Err(e) => Some(Err(e)),
        Ok(0) => None,
        Ok(_) if line.ends_with(b"\n") => Some(Ok(line)),
        Ok(n) if n as u64 == MAX_OUTPUT_BYTES => Some(Err(std::io::Error::other(format!(
            "its answer is longer than {MAX_OUTPUT_BYTES} bytes"
        )))),
        // What it wrote before it died is no answer.
        Ok(_) => None,
    }
}

fn line_of(input: &PageInput<'_>, number: u64) -> Vec<u8> {
    let capture = input.capture;
    let is_text = capture.charset.is_some();
    let mut page = json!({
        "page": number,
        "url": capture.url,
        "stage": capture.kind,
        "status": capture.status,
        "fetched_at": capture.fetched_at,
        "capture": capture,
    });
    let engine = base64::engine::general_purpose::STANDARD;
    match is_text {
        true => page["text"] = text_of(input).into(),
        false => page["body_base64"] = engine.encode(input.body).into(),
    }
    let mut line = page.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn wrong(what: impl Into<String>) -> PageError {
    PageError::new("command_answer", what)
}

fn read_answer(
    line: &[u8],
    input: &PageInput<'_>,
    config: &CommandConfig,
    parsed: &mut ParsedPage,
) -> std::result::Result<(), PageError> {
    let text = std::str::from_utf8(line).map_err(|_| wrong("its answer is no UTF-8"))?;
    let doc = JsonDoc::parse(text.trim()).map_err(|e| wrong(e.reason))?;
    let budget = Budget::new();
    let members = doc
        .root()
        .as_object()
        .ok_or_else(|| wrong("its answer is no JSON object"))?;
    for (name, value) in members {
        let known = ["records", "follow_ups", "expectations", "rejects", "page"];
        if !known.contains(&name.as_str()) {
            let hint = crate::config::nearest_hint(name, &known);
            let what = format!("its answer has an unknown member `{name}`: {hint}");
            return Err(wrong(what));
        }
        if name == "page" {
            continue;
        }
        let items = value
            .as_array()
            .ok_or_else(|| wrong(format!("`{name}` is no list")))?;
        for (n, item) in items.iter().enumerate() {
            let at = format!("`{name}[{n}]`");
            match name.as_str() {
                "records" => read_record(item, (&doc, &budget), (input, config, n), parsed)?,
                "follow_ups" => {
                    parsed
                        .follow_ups
                        .push(read_follow(item, (&doc, &budget), input, &at)?)
                }
                "expectations" => parsed.expectations.push(PageExpectation {
                    group: text_at(item, "group", &at)?.to_owned(),
                    stage: name_at(item, "stage", &at)?,
                    expected: item["expected"]
                        .as_u64()
                        .ok_or_else(|| wrong(format!("{at} has no number `expected`")))?,
                    at_least: item["at_least"].as_u64(),
                    found: item["found"].as_u64().unwrap_or(0),
                }),
                "rejects" => parsed.rejects.push(PageReject {
                    dataset: None,
                    item: None,
                    faults: vec![PageFault {
                        code: item["code"].as_str().unwrap_or("command_reject").to_owned(),
                        path: item["path"].as_str().unwrap_or("$").to_owned(),
                        reason: text_at(item, "reason", &at)?.to_owned(),
                    }],
                    record: doc.datum(&item["record"], &budget)?,
                }),
                _ => {}
            }
        }
    }
    Ok(())
}

fn text_at<'v>(item: &'v Value, name: &str, at: &str) -> std::result::Result<&'v str, PageError> {
    item[name]
        .as_str()
        .ok_or_else(|| wrong(format!("{at} has no text `{name}`")))
}

fn name_at<T: std::str::FromStr<Err = Error>>(
    item: &Value,
    name: &str,
    at: &str,
) -> std::result::Result<T, PageError> {
    let text = text_at(item, name, at)?;
    text.parse()
        .map_err(|e: Error| wrong(format!("{at}: {}", e.message())))
}

/// Refuses a member that nobody reads: it may be a misspelt one.
fn check_members(item: &Value, known: &[&str], at: &str) -> std::result::Result<(), PageError> {
    let names = item
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys());
    match names
        .into_iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        Some(name) => {
            let hint = crate::config::nearest_hint(name, known);
            Err(wrong(format!(
                "{at} has an unknown member `{name}`: {hint}"
            )))
        }
        None => Ok(()),
    }
}

fn read_record(
    item: &Value,
    (doc, budget): (&JsonDoc, &Budget),
    (input, config, n): (&PageInput<'_>, &CommandConfig, usize),
    parsed: &mut ParsedPage,
) -> std::result::Result<(), PageError> {
    let at = format!("`records[{n}]`");
    check_members(item, &["record", "dataset", "key"], &at)?;
    let dataset: DatasetName = match (&item["dataset"], config.datasets.first()) {
        (Value::Null, Some(first)) => first.clone(),
        _ => name_at(item, "dataset", &at)?,
    };
    if !config.datasets.contains(&dataset) {
        return Err(wrong(format!(
            "{at}: dataset `{dataset}` is not among the command's `datasets`"
        )));
    }
    let record = doc.datum(&item["record"], budget)?;
    let Datum::Object(members) = &record else {
        return Err(wrong(format!("{at} has no object `record`")));
    };
    if let Some((own, _)) = members.iter().find(|(name, _)| name.starts_with('_')) {
        return Err(wrong(format!(
            "{at}: names such as `{own}` are Lakebed's own"
        )));
    }
    let key = match &item["key"] {
        Value::Null => Datum::Null,
        _ => Datum::Text(text_at(item, "key", &at)?.to_owned()),
    };
    let record = with_origin(record, key, input);
    parsed.records.push(PageRecord { dataset, record });
    Ok(())
}

fn read_follow(
    item: &Value,
    (doc, budget): (&JsonDoc, &Budget),
    input: &PageInput<'_>,
    at: &str,
) -> std::result::Result<FollowUp, PageError> {
    check_members(item, &["stage", "url", "priority", "payload", "group"], at)?;
    let told = text_at(item, "url", at)?;
    let base = CanonicalUrl::parse(&input.capture.url, QueryOrder::Kept);
    let url = base.and_then(|base| base.join(told, QueryOrder::Kept));
    let url = url.map_err(|e| wrong(format!("{at}: {}", e.message())))?;
    Ok(FollowUp {
        stage: name_at(item, "stage", at)?,
        url: url.as_str().to_owned(),
        priority: item["priority"].as_i64(),
        payload: match &item["payload"] {
            Value::Null => None,
            payload => Some(doc.datum(payload, budget)?),
        },
        group: item["group"].as_str().map(str::to_owned),
    })
}
