//! How far a long call is: a bar on terminals, on stderr; for a flow that runs the command as a stage a line in the file
//! that it names (`LAKEBED_PROGRESS`). Whoever reads neither costs nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lakebed::ingest::Progress;

use crate::printer::Printer;
use crate::table::{count, size};

/// Variable that names the file for a flow.
const FILE_VARIABLE: &str = "LAKEBED_PROGRESS";
/// How often that file is written at most.
const FILE_PAUSE: Duration = Duration::from_millis(500);

/// The file in which a flow looks how far its stage is.
#[derive(Debug)]
struct ProgressFile {
    path: PathBuf,
    written: Mutex<Option<Instant>>,
}

impl ProgressFile {
    /// The one that the environment names.
    fn find() -> Option<Self> {
        let path = std::env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty())?;
        Some(Self {
            path: path.into(),
            written: Mutex::new(None),
        })
    }

    /// Puts a line in the place of the one before, unless that was right now.
    fn tell(&self, line: impl FnOnce() -> String) {
        let Ok(mut written) = self.written.try_lock() else {
            return;
        };
        if written.is_some_and(|at| at.elapsed() < FILE_PAUSE) {
            return;
        }
        *written = Some(Instant::now());
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        // Who runs the stage waits for its end, not for this.
        drop(fs::write(&new, line() + "\n").and_then(|()| fs::rename(&new, &self.path)));
    }
}

/// What a bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Steps,
    Requests,
}

impl Unit {
    fn template(self, total: Option<u64>) -> &'static str {
        match (self, total) {
            (Self::Bytes, Some(_)) => "{prefix} {bar:24} {bytes}/{total_bytes} {msg} {elapsed}",
            (Self::Bytes, None) => "{prefix} {bytes} {msg} {elapsed}",
            (Self::Steps, _) => "{prefix} {bar:24} {pos}/{len} {msg} {elapsed}",
            (Self::Requests, _) => "{prefix} {pos} done {per_sec} {msg} {elapsed}",
        }
    }
}

/// What a long call tells of itself while it runs; several threads may tell at once.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    unit: Unit,
    file: Option<ProgressFile>,
    rows: AtomicU64,
    rejects: AtomicU64,
    /// Which of several packs is at hand.
    step: Mutex<String>,
}

impl Bar {
    /// A bar over `total_bytes`, hidden where nothing may be drawn; log lines appear above it.
    pub(crate) fn bytes(printer: &Printer, title: &str, total_bytes: Option<u64>) -> Self {
        Self::new(printer, title, total_bytes, Unit::Bytes)
    }

    /// A bar over `total` steps.
    pub(crate) fn steps(printer: &Printer, title: &str, total: u64) -> Self {
        Self::new(printer, title, Some(total), Unit::Steps)
    }

    fn new(printer: &Printer, title: &str, total: Option<u64>, unit: Unit) -> Self {
        let bar = if printer.draws_progress() {
            ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10))
        } else {
            ProgressBar::hidden()
        };
        if let Some(total) = total {
            bar.set_length(total);
        }
        if let Ok(style) = ProgressStyle::with_template(unit.template(total)) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(title.to_owned());
        printer.attach_bar(Some(bar.clone()));
        Self {
            bar,
            unit,
            file: ProgressFile::find(),
            rows: AtomicU64::new(0),
            rejects: AtomicU64::new(0),
            step: Mutex::new(String::new()),
        }
    }

    /// More of the input was read.
    pub(crate) fn advance(&self, amount: u64, rows: u64, rejects: u64) {
        let rows = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        let rejects = self.rejects.fetch_add(rejects, Ordering::Relaxed) + rejects;
        self.bar.inc(amount);
        let rows = if rejects == 0 {
            count(rows, "row")
        } else {
            format!("{}, {}", count(rows, "row"), count(rejects, "reject"))
        };
        let step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let message = match step.as_str() {
            "" => rows,
            step => format!("{step}, {rows}"),
        };
        drop(step);
        self.say(message);
    }

    /// Which of several packs is at hand.
    fn set_step(&self, step: &str) {
        step.clone_into(&mut self.step.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Shows what was counted.
    fn say(&self, message: String) {
        if let Some(file) = &self.file {
            file.tell(|| self.line(&message));
        }
        self.bar.set_message(message);
    }

    /// What the bar shows, as a line.
    fn line(&self, message: &str) -> String {
        let (at, of) = (self.bar.position(), self.bar.length());
        let far = match (self.unit, of) {
            (Unit::Bytes, Some(of)) => format!("{} of {}", size(at), size(of)),
            (Unit::Bytes, None) => size(at),
            (Unit::Steps, of) => format!("{at} of {}", of.unwrap_or_default()),
            (Unit::Requests, _) => format!("{at} done, {:.1}/s", self.bar.per_sec()),
        };
        format!("{far}, {message}")
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of one ingest call, told by its threads.
#[derive(Debug)]
pub(crate) struct IngestProgress<'a> {
    printer: &'a Printer,
    title: String,
    bar: Mutex<Option<Arc<Bar>>>,
    /// Which of several packs is at hand.
    step: Mutex<String>,
}

impl<'a> IngestProgress<'a> {
    /// Progress of a call under this title.
    pub(crate) fn new(printer: &'a Printer, title: &str) -> Self {
        Self {
            printer,
            title: title.to_owned(),
            bar: Mutex::new(None),
            step: Mutex::new(String::new()),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Bar>>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for IngestProgress<'_> {
    fn begin(&self, total_bytes: Option<u64>) {
        let bar = Bar::bytes(self.printer, &self.title, total_bytes);
        bar.set_step(&self.step.lock().unwrap_or_else(PoisonError::into_inner));
        *self.slot() = Some(Arc::new(bar));
    }

    fn step(&self, what: &'static str, pack: usize, of: usize) {
        let step = format!("{what} pack {pack} of {of}");
        let bar = self.slot().clone();
        if let Some(bar) = bar {
            bar.set_step(&step);
        }
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    fn advance(&self, bytes: u64, rows: u64, rejected: u64) {
        let bar = self.slot().clone();
        if let Some(bar) = bar {
            bar.advance(bytes, rows, rejected);
        }
    }

    fn end(&self) {
        *self.slot() = None;
    }
}

/// Progress of one process's part of a crawl.
pub(crate) struct CrawlProgress<'a> {
    bar: Bar,
    printer: &'a Printer,
}

impl<'a> CrawlProgress<'a> {
    /// Progress of a crawl under this title.
    pub(crate) fn new(printer: &'a Printer, title: &str) -> Self {
        let bar = Bar::new(printer, title, None, Unit::Requests);
        Self { bar, printer }
    }

    /// What the process has done so far.
    pub(crate) fn update(&self, done: u64, failed: u64, bytes: u64) {
        self.bar.bar.set_position(done);
        let failed = count(failed, "failed attempt");
        self.bar.say(format!("{}, {failed}", size(bytes)));
    }

    /// Something that a person should know.
    pub(crate) fn warn(&self, text: &str) {
        self.printer.warn(text);
    }
}

impl Drop for CrawlProgress<'_> {
    fn drop(&mut self) {
        self.printer.attach_bar(None);
    }
}
