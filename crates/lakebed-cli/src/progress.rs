//! The progress bar: bytes read of all, rows, rejects. Drawn on terminals only, on stderr.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lakebed::ingest::Progress;

use crate::printer::Printer;
use crate::table::{count, size};

/// What a long call tells of itself while it runs; several threads may tell at once.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    rows: AtomicU64,
    rejects: AtomicU64,
}

impl Bar {
    /// A bar over `total_bytes`, hidden where nothing may be drawn; log lines appear above it.
    pub(crate) fn bytes(printer: &Printer, title: &str, total_bytes: Option<u64>) -> Self {
        let template = match total_bytes {
            Some(_) => "{prefix} {bar:24} {bytes}/{total_bytes} {msg} {elapsed}",
            None => "{prefix} {bytes} {msg} {elapsed}",
        };
        Self::new(printer, title, total_bytes, template)
    }

    /// A bar over `total` steps.
    pub(crate) fn steps(printer: &Printer, title: &str, total: u64) -> Self {
        let template = "{prefix} {bar:24} {pos}/{len} {msg} {elapsed}";
        Self::new(printer, title, Some(total), template)
    }

    fn new(printer: &Printer, title: &str, total: Option<u64>, template: &str) -> Self {
        let bar = if printer.draws_progress() {
            ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10))
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(title.to_owned());
        printer.attach_bar(Some(bar.clone()));
        Self {
            bar,
            rows: AtomicU64::new(0),
            rejects: AtomicU64::new(0),
        }
    }

    /// More of the input was read.
    pub(crate) fn advance(&self, amount: u64, rows: u64, rejects: u64) {
        let rows = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        let rejects = self.rejects.fetch_add(rejects, Ordering::Relaxed) + rejects;
        self.bar.inc(amount);
        self.bar.set_message(if rejects == 0 {
            count(rows, "row")
        } else {
            format!("{}, {}", count(rows, "row"), count(rejects, "reject"))
        });
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
}

impl<'a> IngestProgress<'a> {
    /// Progress of a call under this title.
    pub(crate) fn new(printer: &'a Printer, title: &str) -> Self {
        Self {
            printer,
            title: title.to_owned(),
            bar: Mutex::new(None),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Bar>>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for IngestProgress<'_> {
    fn begin(&self, total_bytes: Option<u64>) {
        *self.slot() = Some(Arc::new(Bar::bytes(self.printer, &self.title, total_bytes)));
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
        let bar = Bar::new(
            printer,
            title,
            None,
            "{prefix} {pos} done {per_sec} {msg} {elapsed}",
        );
        Self { bar, printer }
    }

    /// What the process has done so far.
    pub(crate) fn update(&self, done: u64, failed: u64, bytes: u64) {
        self.bar.bar.set_position(done);
        let failed = count(failed, "failed attempt");
        self.bar
            .bar
            .set_message(format!("{}, {failed}", size(bytes)));
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
