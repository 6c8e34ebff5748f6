//! How far the stages of a flow are: a live line on a terminal, else a log line now and then. Nothing of it where the
//! call is quiet or answers with JSON.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::TextFormat;
use crate::printer::Printer;
use crate::table::message_text;

/// How long a stage runs before its first log line.
const FIRST_LINE: Duration = Duration::from_secs(2);
/// The time between two log lines of a stage.
const NEXT_LINE: Duration = Duration::from_secs(10);

/// What is told of stages under way.
#[derive(Debug)]
pub(super) struct Live {
    how: How,
    shown: Mutex<Shown>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Silent,
    Drawn,
    Logged,
}

#[derive(Debug, Default)]
struct Shown {
    stages: Vec<Under>,
    bar: Option<ProgressBar>,
}

/// A stage under way.
#[derive(Debug)]
struct Under {
    head: String,
    began: Instant,
    told: Option<Instant>,
    said: Option<String>,
}

impl Under {
    /// Whether a log line is due.
    fn is_due(&self, now: Instant) -> bool {
        match self.told {
            None => now.duration_since(self.began) >= FIRST_LINE,
            Some(told) => now.duration_since(told) >= NEXT_LINE,
        }
    }

    fn line(&self, now: Instant) -> String {
        let seconds = now.duration_since(self.began).as_secs();
        let said = self.said.as_deref().map(|said| format!(": {said}"));
        let took = format!("{}:{:02}", seconds / 60, seconds % 60);
        format!("{} {took}{}", self.head, said.unwrap_or_default())
    }
}

impl Live {
    pub(super) fn new(printer: &Printer) -> Self {
        let how = match (printer.format(), printer.is_quiet()) {
            (TextFormat::Json, _) | (_, true) => How::Silent,
            (TextFormat::Text, false) if printer.draws_progress() => How::Drawn,
            (TextFormat::Text, false) => How::Logged,
        };
        Self {
            how,
            shown: Mutex::default(),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stage begins.
    pub(super) fn begins(&self, head: String) {
        self.shown().stages.push(Under {
            head,
            began: Instant::now(),
            told: None,
            said: None,
        });
    }

    /// A stage is under way.
    pub(super) fn goes_on(&self, head: &str, said: Option<&str>, printer: &Printer) {
        let now = Instant::now();
        let mut shown = self.shown();
        let Some(stage) = shown.stages.iter_mut().find(|stage| stage.head == head) else {
            return;
        };
        if let Some(said) = said {
            stage.said = Some(message_text(said));
        }
        match self.how {
            How::Silent => {}
            How::Drawn => shown.draw(now, printer),
            How::Logged if stage.said.is_some() && stage.is_due(now) => {
                stage.told = Some(now);
                let line = stage.line(now);
                drop(shown);
                printer.info(line);
            }
            How::Logged => {}
        }
    }

    /// A stage ended: what is told of it comes without a line of how far it is.
    pub(super) fn ended(&self, head: &str, printer: &Printer) {
        let mut shown = self.shown();
        shown.stages.retain(|stage| stage.head != head);
        if shown.stages.is_empty()
            && let Some(bar) = shown.bar.take()
        {
            bar.finish_and_clear();
            printer.attach_bar(None);
        }
    }
}

impl Shown {
    /// One line for all stages under way.
    fn draw(&mut self, now: Instant, printer: &Printer) {
        let lines: Vec<String> = self.stages.iter().map(|stage| stage.line(now)).collect();
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(4);
            let bar = ProgressBar::with_draw_target(None, target);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            printer.attach_bar(Some(bar.clone()));
            bar
        });
        bar.set_message(lines.join(" | "));
        bar.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_told_soon_and_then_now_and_then() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut stage = Under {
            head: "shop 2026-12-01 list".to_owned(),
            began,
            told: None,
            said: None,
        };
        assert!(!stage.is_due(after(1)));
        assert!(stage.is_due(after(3)));
        stage.told = Some(after(3));
        assert!(!stage.is_due(after(12)));
        assert!(stage.is_due(after(13)));
        assert_eq!(stage.line(after(75)), "shop 2026-12-01 list 1:15");
        stage.said = Some("3 of 7".to_owned());
        assert_eq!(stage.line(after(5)), "shop 2026-12-01 list 0:05: 3 of 7");
    }
}
