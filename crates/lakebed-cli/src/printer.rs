//! Output discipline: stdout carries data and nothing else, stderr everything for people.
//!
//! OUT-1: a reader that closes its end of stdout ends the output, not the command: what was asked
//! is still done and counts as success. OUT-2: every log line carries its time with the zone.
//! OUT-3: text from outside never reaches a terminal with its control characters.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use lakebed::time::{Clock, Instant};
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::TextFormat;
use crate::table::{Table, message_text};

/// How important a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Something a person should look at.
    Warn,
    /// What happened.
    Info,
    /// With `-v`.
    Debug,
}

impl Level {
    const fn label(self) -> &'static str {
        match self {
            Self::Warn => "warn ",
            Self::Info => "info ",
            Self::Debug => "debug",
        }
    }
}

/// What the command line said about output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintOptions {
    /// Text or JSON.
    pub(crate) format: TextFormat,
    /// Data and errors only.
    pub(crate) quiet: bool,
    /// Number of `-v`.
    pub(crate) verbose: u8,
}

/// The one way to stdout and stderr.
#[derive(Debug)]
pub(crate) struct Printer {
    options: PrintOptions,
    clock: Clock,
    color: bool,
    stdout_closed: AtomicBool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Printer {
    /// A printer on this process's streams.
    pub(crate) fn new(options: PrintOptions) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            options,
            clock: Clock::System,
            color: io::stderr().is_terminal() && !no_color,
            stdout_closed: AtomicBool::new(false),
            bar: Mutex::new(None),
        }
    }

    /// Another one on the same streams, with the same options, for tasks that live on their own.
    pub(crate) fn twin(&self) -> Self {
        Self {
            color: self.color,
            ..Self::new(self.options)
        }
    }

    /// The format asked for.
    pub(crate) fn format(&self) -> TextFormat {
        self.options.format
    }

    /// Whether a progress bar may be drawn.
    pub(crate) fn draws_progress(&self) -> bool {
        !self.options.quiet && io::stderr().is_terminal()
    }

    /// Whether data and errors alone are told.
    pub(crate) fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// Whether stderr is coloured.
    pub(crate) fn color(&self) -> bool {
        self.color
    }

    /// The present time.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Whether the reader of stdout has gone: nothing more needs to be made for it.
    pub(crate) fn is_closed(&self) -> bool {
        self.stdout_closed.load(Ordering::SeqCst)
    }

    /// Bytes of data.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let write = || {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        };
        match self.beside_bar(write) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.stdout_closed.store(true, Ordering::SeqCst);
                Ok(())
            }
            Err(e) => Err(Error::io("write to", "standard output", e)),
        }
    }

    /// A line of data.
    pub(crate) fn line(&self, text: impl Display) -> Result<()> {
        self.bytes(format!("{}\n", message_text(&text.to_string())).as_bytes())
    }

    /// A table of data; an empty one prints its header.
    pub(crate) fn table(&self, table: &Table) -> Result<()> {
        self.bytes(table.render().as_bytes())
    }

    /// One JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec_pretty(value)
            .map_err(|e| Error::internal("write the answer as JSON").caused_by(e))?;
        bytes.push(b'\n');
        self.bytes(&bytes)
    }

    /// One JSON object on a line of its own.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(value)
            .map_err(|e| Error::internal("write the answer as JSON").caused_by(e))?;
        bytes.push(b'\n');
        self.bytes(&bytes)
    }

    /// A log line of something to look at.
    pub(crate) fn warn(&self, text: impl Display) {
        self.log(Level::Warn, &text.to_string());
    }

    /// A log line of what happened.
    pub(crate) fn info(&self, text: impl Display) {
        self.log(Level::Info, &text.to_string());
    }

    /// A log line that `-v` shows.
    pub(crate) fn debug(&self, text: impl Display) {
        self.log(Level::Debug, &text.to_string());
    }

    /// Advice.
    pub(crate) fn hint(&self, text: impl Display) {
        if !self.options.quiet {
            self.stderr(&format!("hint: {}\n", message_text(&text.to_string())));
        }
    }

    fn log(&self, level: Level, text: &str) {
        let wanted = match level {
            Level::Warn | Level::Info => !self.options.quiet,
            Level::Debug => self.options.verbose > 0,
        };
        if wanted {
            let at = self.now();
            let label = level.label();
            self.stderr(&format!("{at} {label} {}\n", message_text(text)));
        }
    }

    /// Text for people, above the progress bar where one is drawn.
    pub(crate) fn stderr(&self, text: &str) {
        let write = || {
            let mut stderr = io::stderr().lock();
            // Nobody is left to be told that telling failed.
            match stderr
                .write_all(text.as_bytes())
                .and_then(|()| stderr.flush())
            {
                Ok(()) | Err(_) => {}
            }
        };
        self.beside_bar(write);
    }

    /// Writes while the progress bar, where one is drawn, is not.
    fn beside_bar<T>(&self, write: impl FnOnce() -> T) -> T {
        let bar = match self.bar.lock() {
            Ok(bar) => bar.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        };
        match bar {
            Some(bar) if !bar.is_finished() => bar.suspend(write),
            Some(_) | None => write(),
        }
    }

    /// Lets log lines appear above this bar.
    pub(crate) fn attach_bar(&self, bar: Option<ProgressBar>) {
        match self.bar.lock() {
            Ok(mut slot) => *slot = bar,
            Err(poisoned) => *poisoned.into_inner() = bar,
        }
    }
}
