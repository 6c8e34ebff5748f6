//! The line editor: keys and redrawing are rustyline's, what completes and when an input ends is ours.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lakebed::{Error, Result};
use lakebed_query::{QueryEngine, Rest, split_script};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History, MemHistory};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, CompletionType, Config, Context, Editor};
use tokio::runtime::Handle;

use super::command::{NAMES, is_command, takes_a_word};
use super::history::MAX_ENTRIES;

/// What stands before an input.
const PROMPT: &str = "lakebed> ";

/// What came from the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// An input, whole.
    Text(String),
    /// Ctrl-C: the line is given up.
    GivenUp,
    /// Ctrl-D.
    End,
}

/// Reads inputs from the terminal.
pub(super) struct LineEditor {
    editor: Editor<SqlSupport, MemHistory>,
}

impl LineEditor {
    /// An editor that completes by the engine's tables and begins with these inputs in its history.
    pub(super) fn new(engine: Arc<QueryEngine>, history: Vec<String>) -> Result<Self> {
        // Rows may go elsewhere by `>`: the line is drawn on the terminal all the same.
        let behavior = match io::stdout().is_terminal() {
            true => Behavior::Stdio,
            false => Behavior::PreferTerm,
        };
        let config = Config::builder()
            .max_history_size(MAX_ENTRIES)
            .and_then(|c| c.history_ignore_dups(true))
            .map_err(|e| failed(&e))?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .behavior(behavior)
            .build();
        let past = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, past).map_err(|e| failed(&e))?;
        for input in history {
            editor.add_history_entry(input).map_err(|e| failed(&e))?;
        }
        editor.set_helper(Some(SqlSupport {
            engine,
            runtime: Handle::current(),
            fresh_until: Cell::new(None),
            asked: Cell::new(false),
        }));
        Ok(Self { editor })
    }

    /// Waits for the next input.
    pub(super) fn read(&mut self) -> Result<Input> {
        if let Some(support) = self.editor.helper() {
            support.asked.set(false);
        }
        match self.editor.readline(PROMPT) {
            Ok(text) => Ok(Input::Text(text)),
            Err(ReadlineError::Interrupted) => Ok(Input::GivenUp),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(e) => Err(failed(&e)),
        }
    }

    /// Keeps an input for the arrow keys; `false` where it is the last one again, or begins with a blank.
    pub(super) fn remember(&mut self, input: &str) -> Result<bool> {
        self.editor.history_mut().add(input).map_err(|e| failed(&e))
    }
}

fn failed(error: &ReadlineError) -> Error {
    Error::internal(format!("read a line from the terminal: {error}"))
}

/// Whether Enter ends the input.
fn is_whole(input: &str) -> bool {
    if is_command(input) {
        return true;
    }
    let script = split_script(input);
    match script.rest_is {
        Rest::Nothing => true,
        Rest::Begun | Rest::Open => false,
        Rest::Unreadable => script.rest.ends_with(';'),
    }
}

/// What the editor asks about SQL.
struct SqlSupport {
    engine: Arc<QueryEngine>,
    runtime: Handle,
    /// Following the logs took so long that it is not done again before.
    fresh_until: Cell<Option<Instant>>,
    /// Whether the logs were followed for this input.
    asked: Cell<bool>,
}

impl SqlSupport {
    /// Lets the catalog follow the logs once an input, and less often where that takes time.
    fn freshen(&self) {
        let waits = self.fresh_until.get().is_some_and(|t| Instant::now() < t);
        if self.asked.replace(true) || waits {
            return;
        }
        let began = Instant::now();
        // Names of yesterday are better than none; the query itself tells what is wrong.
        drop(self.runtime.block_on(self.engine.freshen_all()));
        let took = began.elapsed();
        if took > Duration::from_millis(100) {
            self.fresh_until.set(Some(Instant::now() + took * 20));
        }
    }
}

fn commands_like(line: &str) -> Vec<Pair> {
    let like = NAMES.iter().filter(|n| n.starts_with(line));
    let with_blank = |name: &str| match takes_a_word(name) {
        true => format!("{name} "),
        false => name.to_owned(),
    };
    like.map(|n| pair(&with_blank(n))).collect()
}

fn pair(text: &str) -> Pair {
    Pair {
        display: text.to_owned(),
        replacement: text.to_owned(),
    }
}

impl Completer for SqlSupport {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let head = &line[..pos];
        if head.starts_with('.') && !head.contains(char::is_whitespace) {
            return Ok((0, commands_like(head)));
        }
        self.freshen();
        // `.schema` takes a table.
        let shown = match line.strip_prefix(".schema ") {
            Some(table) => format!("FROM    {table}"),
            None => line.to_owned(),
        };
        let found = self.runtime.block_on(self.engine.complete(&shown, pos));
        Ok(match found {
            Ok(found) => (
                found.start,
                found.candidates.iter().map(|c| pair(c)).collect(),
            ),
            Err(_) => (pos, Vec::new()),
        })
    }
}

impl Validator for SqlSupport {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for SqlSupport {
    type Hint = String;
}

impl Highlighter for SqlSupport {}

impl rustyline::Helper for SqlSupport {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_ends_with_its_semicolon() {
        for whole in [
            "",
            " \n",
            ".help",
            "quit",
            "SELECT 1;",
            "SELECT 1; -- x",
            "SELECT X'0G';",
            "-- x",
        ] {
            assert!(is_whole(whole), "{whole:?}");
        }
        for open in [
            "SELECT 1",
            "SELECT ';",
            "SELECT 1; SELECT 2",
            "SELECT 1 -- ;",
            "/* ;",
        ] {
            assert!(!is_whole(open), "{open:?}");
        }
    }
}
