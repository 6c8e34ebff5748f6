//! The progress bar: bytes read of all, rows, rejects. Drawn on terminals only, on stderr.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printer::Printer;
use crate::table::count;

/// What a long call tells of itself while it runs; several threads may tell at once.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    rows: AtomicU64,
    rejects: AtomicU64,
}

impl Bar {
    /// A bar over `total_bytes`, hidden where nothing may be drawn; log lines appear above it.
    pub(crate) fn bytes(printer: &Printer, title: &str, total_bytes: u64) -> Self {
        Self::new(
            printer,
            title,
            total_bytes,
            "{prefix} {bar:24} {bytes}/{total_bytes} {msg} {elapsed}",
        )
    }

    /// A bar over `total` steps.
    pub(crate) fn steps(printer: &Printer, title: &str, total: u64) -> Self {
        Self::new(
            printer,
            title,
            total,
            "{prefix} {bar:24} {pos}/{len} {msg} {elapsed}",
        )
    }

    fn new(printer: &Printer, title: &str, total: u64, template: &str) -> Self {
        let bar = if printer.draws_progress() {
            ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10))
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

    /// What is being done now.
    pub(crate) fn set_title(&self, title: &str) {
        self.bar.set_prefix(title.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
