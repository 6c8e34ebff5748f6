//! How an error is told: text for a person at night, and one JSON object for a program.
//!
//! ```text
//! error: `2026-13-01` is not a date
//!   file: a.jsonl
//!   caused by: ...
//! hint: a date is written YYYY-MM-DD, for example 2026-11-30
//! ```

use std::error::Error as _;

use lakebed::Error;
use serde_json::{Map, Value, json};

use crate::args::TextFormat;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::table::message_text;

/// Version of the JSON error object.
const ERROR_FORMAT: u32 = 1;

/// Tells the error and gives the exit code for it.
pub(crate) fn report(printer: &Printer, error: &Error) -> Exit {
    report_as(printer, error, Exit::of_error(error.kind()))
}

/// Tells an error that has a code of its own.
pub(crate) fn report_as(printer: &Printer, error: &Error, exit: Exit) -> Exit {
    printer.stderr(&error_text(error, printer.color()));
    match printer.format() {
        TextFormat::Text => {}
        TextFormat::Json => {
            let object = error_json(error, exit, &printer.now().to_string());
            printer.stderr(&format!("{object}\n"));
        }
    }
    exit
}

/// The text form; every line ends with a line break.
pub(crate) fn error_text(error: &Error, color: bool) -> String {
    let paint = |code: &str, text: &str| {
        if color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    };
    let mut text = format!(
        "{} {}\n",
        paint("1;31", "error:"),
        indented(error.message())
    );
    for detail in error.details() {
        text.push_str(&format!("  {}\n", indented(detail)));
    }
    for (key, value) in error.context() {
        text.push_str(&format!("  {key}: {}\n", indented(value)));
    }
    for cause in causes(error) {
        text.push_str(&format!("  caused by: {}\n", indented(&cause)));
    }
    for hint in error.hints() {
        text.push_str(&format!("{} {}\n", paint("1;36", "hint:"), indented(hint)));
    }
    text
}

/// Later lines of a text stand under its first.
fn indented(text: &str) -> String {
    message_text(text.trim_end()).replace('\n', "\n    ")
}

/// The chain of causes, without those whose text the message holds already.
fn causes(error: &Error) -> Vec<String> {
    let mut told = error.to_string();
    let mut found = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !told.contains(&text) {
            told.push_str(&text);
            found.push(text);
        }
        next = cause.source();
    }
    found
}

/// The JSON form: `{"format": 1, "error": {kind, message, details, context, hints, causes, exit_code, at}}`.
fn error_json(error: &Error, exit: Exit, at: &str) -> Value {
    let mut told = error_parts(error);
    told["causes"] = json!(causes(error));
    told["exit_code"] = json!(exit.code());
    told["retryable"] = json!(error.is_retryable());
    told["at"] = json!(at);
    json!({ "format": ERROR_FORMAT, "error": told })
}

/// What an error says, within an answer that is none itself: `{kind, message, details, context, hints}`.
pub(crate) fn error_parts(error: &Error) -> Value {
    let mut context = Map::new();
    for (key, value) in error.context() {
        let mut name = (*key).to_owned();
        let mut n = 2;
        while context.contains_key(&name) {
            name = format!("{key}_{n}");
            n += 1;
        }
        context.insert(name, Value::from(value.as_str()));
    }
    json!({
        "kind": error.kind().as_str(),
        "message": error.message(),
        "details": error.details(),
        "context": context,
        "hints": error.hints(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Error {
        Error::io(
            "read the file",
            "a.jsonl",
            std::io::Error::other("the disk is on fire"),
        )
        .with("line", 3)
        .with("line", 4)
        .hint("put it out")
    }

    #[test]
    fn a_cause_that_the_message_tells_is_not_told_again() {
        assert_eq!(
            error_text(&sample(), false),
            "error: read the file `a.jsonl`: the disk is on fire\n  line: 3\n  line: 4\nhint: put it out\n"
        );
        let other = Error::invalid("x").caused_by(std::io::Error::other("y\nz"));
        assert_eq!(
            error_text(&other, false),
            "error: x\n  caused by: y\n    z\n"
        );
    }

    /// Attacks OUT-3.
    #[test]
    fn data_in_a_message_cannot_paint_the_terminal() {
        let text = error_text(&Error::invalid("value `\u{1b}[31m`"), false);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(error_text(&Error::invalid("x"), true).contains("\u{1b}[1;31merror:"));
    }

    #[test]
    fn json_keeps_every_context_pair() {
        let value = error_json(&sample(), Exit::Failed, "2026-11-30T00:00:00Z");
        assert_eq!(value["error"]["context"]["line"], "3");
        assert_eq!(value["error"]["context"]["line_2"], "4");
        assert_eq!(value["error"]["kind"], "unavailable");
        assert_eq!(value["error"]["exit_code"], 4);
        assert_eq!(value["format"], 1);
    }
}
