//! The prompt from its first line to its last.

use std::sync::Arc;

use lakebed::Result;
use lakebed_query::{QueryEngine, Rest, split_script};

use super::command::{HELP, PromptCommand, is_command, parse_command};
use super::editor::{Input, LineEditor};
use super::history::HistoryFile;
use super::statement::{Answer, Interrupts, Written, run_statement};
use crate::args::SqlFormat;
use crate::commands::query_cost;
use crate::exit::Exit;
use crate::failure::error_text;
use crate::printer::Printer;
use crate::table::count;

/// How a prompt begins; its commands change both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptOptions {
    /// Form of the rows.
    pub(crate) format: SqlFormat,
    /// Whether each statement's cost is said.
    pub(crate) timing: bool,
}

/// Whether the prompt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// With the next statement of the input, where there is one.
    Statement,
    /// With the next input.
    Input,
    End,
}

struct Session<'a> {
    printer: &'a Printer,
    engine: Arc<QueryEngine>,
    interrupts: Interrupts,
    options: PromptOptions,
    history: Option<HistoryFile>,
}

/// Answers inputs until the end of them.
pub(crate) async fn run(
    engine: QueryEngine,
    options: PromptOptions,
    printer: &Printer,
) -> Result<Exit> {
    let engine = Arc::new(engine);
    let mut session = Session {
        printer,
        engine: Arc::clone(&engine),
        interrupts: Interrupts::listen()?,
        options,
        history: HistoryFile::of_user(),
    };
    let mut editor = LineEditor::new(engine, session.past_inputs())?;
    printer.info("statements end with `;`, `.help` lists commands, Ctrl-D ends");
    loop {
        // The editor blocks this thread and asks the catalog from it.
        match tokio::task::block_in_place(|| editor.read())? {
            Input::End => return Ok(Exit::Done),
            Input::GivenUp => {}
            Input::Text(text) => {
                if editor.remember(&text)? {
                    session.keep(&text);
                }
                if session.answer(&text).await? == Next::End {
                    return Ok(Exit::Done);
                }
            }
        }
        if printer.is_closed() {
            return Ok(Exit::Done);
        }
    }
}

impl Session<'_> {
    fn past_inputs(&mut self) -> Vec<String> {
        let Some(file) = &self.history else {
            return Vec::new();
        };
        file.load().unwrap_or_else(|e| {
            self.no_history(&e);
            Vec::new()
        })
    }

    fn keep(&mut self, input: &str) {
        if let Some(file) = &self.history
            && let Err(e) = file.add(input)
        {
            self.no_history(&e);
        }
    }

    /// Told once: the prompt works without.
    fn no_history(&mut self, error: &std::io::Error) {
        if let Some(file) = self.history.take() {
            let path = file.path().display();
            let text = format!("what is typed here is not kept: `{path}`: {error}");
            self.printer.warn(text);
        }
    }

    async fn answer(&mut self, input: &str) -> Result<Next> {
        if is_command(input) {
            return match parse_command(input) {
                Ok(command) => self.command(command).await,
                Err(error) => {
                    self.tell(&error);
                    Ok(Next::Input)
                }
            };
        }
        let script = split_script(input);
        let rest = (script.rest_is != Rest::Nothing).then_some(script.rest);
        for statement in script.statements.into_iter().chain(rest) {
            match self.statement(statement).await {
                Next::Statement => {}
                next @ (Next::Input | Next::End) => return Ok(next),
            }
        }
        Ok(Next::Input)
    }

    async fn command(&mut self, command: PromptCommand) -> Result<Next> {
        match command {
            PromptCommand::Exit => return Ok(Next::End),
            PromptCommand::Help => self.printer.bytes(HELP.as_bytes())?,
            PromptCommand::Format(format) => self.options.format = format,
            PromptCommand::Timing(timing) => self.options.timing = timing,
            PromptCommand::Tables(part) => match self.list_tables().await {
                Ok(names) => {
                    for name in names.iter().filter(|n| n.contains(&part)) {
                        self.printer.line(name)?;
                    }
                }
                Err(error) => self.tell(&error),
            },
            PromptCommand::Schema(table) => {
                return Ok(self.statement(&format!("DESCRIBE {table}")).await);
            }
        }
        Ok(Next::Input)
    }

    async fn list_tables(&self) -> Result<Vec<String>> {
        self.engine.freshen_all().await?;
        self.engine.list_tables().await
    }

    /// Answers one statement; after an error or a stop the next ones of its input do not run.
    async fn statement(&self, text: &str) -> Next {
        let ran = run_statement(&self.engine, text, self.options.format, &self.interrupts).await;
        match ran {
            Ok(Answer::Done(written)) => {
                self.close(&written);
                Next::Statement
            }
            Ok(Answer::Stopped) => {
                // The terminal has just written `^C`.
                self.printer.stderr("\nthe query was stopped\n");
                Next::Input
            }
            Ok(Answer::Gone) => Next::End,
            Err(error) => {
                self.tell(&error);
                Next::Input
            }
        }
    }

    fn close(&self, written: &Written) {
        for warning in &written.warnings {
            self.printer.warn(warning);
        }
        if self.options.format == SqlFormat::Table {
            self.printer
                .stderr(&format!("{}\n", count(written.rows, "row")));
        }
        if self.options.timing {
            let cost = query_cost(&written.meter, &written.stats, Some(written.rows));
            self.printer.stderr(&cost);
        }
    }

    fn tell(&self, error: &lakebed::Error) {
        let text = error_text(error, self.printer.color());
        self.printer.stderr(&text);
    }
}
