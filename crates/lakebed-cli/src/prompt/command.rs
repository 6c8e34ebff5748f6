//! Commands of the prompt: one line each, with a dot before it and no semicolon behind it.

use lakebed::config::nearest;
use lakebed::{Error, Result};

use crate::args::SqlFormat;

/// What `.help` says, and docs/sql.md repeats.
pub(super) const HELP: &str = "\
A statement ends with `;` and may take several lines. Tab completes, Ctrl-C gives up the line or
stops the query, Ctrl-D ends.

.tables [PART]            tables, all or those whose name holds PART
.schema TABLE             columns of a table
.format table|json|csv    form of the rows
.timing on|off            say what each statement cost
.help                     this text
.exit                     end
";
/// Every command, for the nearest to a wrong one and for completion.
pub(super) const NAMES: [&str; 7] = [
    ".tables", ".schema", ".format", ".timing", ".help", ".exit", ".quit",
];

/// Whether something must follow the command.
pub(super) fn takes_a_word(name: &str) -> bool {
    matches!(name, ".schema" | ".format" | ".timing")
}

/// A line that is no SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PromptCommand {
    /// Tables whose name holds this part.
    Tables(String),
    /// Columns of a table.
    Schema(String),
    /// Form of the rows.
    Format(SqlFormat),
    /// Whether the cost is said.
    Timing(bool),
    /// The commands.
    Help,
    /// The end.
    Exit,
}

/// Whether the input is a command, complete with its line; the rest is SQL.
pub(super) fn is_command(input: &str) -> bool {
    let text = input.trim();
    text.starts_with('.') || matches!(bare(text), "exit" | "quit" | "help")
}

fn bare(text: &str) -> &str {
    text.trim_end_matches(';').trim_end()
}

fn wrong(command: &str, hint: &str) -> Error {
    Error::invalid(format!("`{command}` does not say what")).hint(hint)
}

/// Reads a command.
pub(super) fn parse_command(input: &str) -> Result<PromptCommand> {
    let text = bare(input.trim());
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match (name, rest) {
        (".tables", part) => Ok(PromptCommand::Tables(part.to_owned())),
        (".schema", "") => Err(wrong(name, "for example `.schema lake.files`")),
        (".schema", table) => Ok(PromptCommand::Schema(table.to_owned())),
        (".format", "table") => Ok(PromptCommand::Format(SqlFormat::Table)),
        (".format", "json") => Ok(PromptCommand::Format(SqlFormat::Json)),
        (".format", "csv") => Ok(PromptCommand::Format(SqlFormat::Csv)),
        (".format", _) => Err(wrong(
            text,
            "write `.format table`, `.format json` or `.format csv`",
        )),
        (".timing", "on") => Ok(PromptCommand::Timing(true)),
        (".timing", "off") => Ok(PromptCommand::Timing(false)),
        (".timing", _) => Err(wrong(text, "write `.timing on` or `.timing off`")),
        (".help" | "help", "") => Ok(PromptCommand::Help),
        (".exit" | ".quit" | "exit" | "quit", "") => Ok(PromptCommand::Exit),
        _ => {
            let error = Error::not_found(format!("there is no command `{text}`"));
            Err(match nearest(name, NAMES) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("`.help` lists them; SQL does not begin with a dot"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        for (text, expected) in [
            (".tables", PromptCommand::Tables(String::new())),
            (" .tables rent ", PromptCommand::Tables("rent".to_owned())),
            (
                ".schema clean.w;",
                PromptCommand::Schema("clean.w".to_owned()),
            ),
            (".format csv", PromptCommand::Format(SqlFormat::Csv)),
            (".timing  off", PromptCommand::Timing(false)),
            ("quit;", PromptCommand::Exit),
            ("help", PromptCommand::Help),
        ] {
            assert!(is_command(text), "{text}");
            assert_eq!(parse_command(text).unwrap(), expected, "{text}");
        }
        assert!(!is_command("SELECT 1;"));
    }

    #[test]
    fn wrong_ones_say_what_is_right() {
        for (text, hint) in [
            (".table", "did you mean `.tables`?"),
            (
                ".format parquet",
                "write `.format table`, `.format json` or `.format csv`",
            ),
            (".schema", "for example `.schema lake.files`"),
            (
                ".xyzzy",
                "`.help` lists them; SQL does not begin with a dot",
            ),
        ] {
            assert_eq!(parse_command(text).unwrap_err().hints(), [hint], "{text}");
        }
    }

    #[test]
    fn the_help_and_the_page_tell_every_command() {
        let page = include_str!("../../../../docs/sql.md");
        for line in HELP.lines().filter(|l| l.starts_with('.')) {
            let command = line.split("  ").next().unwrap();
            let cell = command.replace('|', "\\|");
            assert!(page.contains(&format!("| `{cell}` |")), "{command}");
            assert!(NAMES.iter().any(|n| command.starts_with(n)), "{command}");
        }
    }
}
