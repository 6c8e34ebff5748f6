//! Options that every command takes, and the output format of those that print data.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of every command, before or after its name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The project folder [default: $LAKEBED_PROJECT, else the nearest folder upward with lakebed.toml]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Who does this, for the commit log [default: $LAKEBED_USER]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// No notes, no warnings, no progress: data and errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Say more; twice: everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `--format` of commands that print data.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FormatArgs {
    /// How data is printed; `json` prints errors as JSON, too
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub(crate) format: TextFormat,
}

/// Text for people or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Aligned text.
    Text,
    /// One JSON document.
    Json,
}

/// Whether a command line that could not be parsed asked for JSON: its error is JSON, too.
pub(crate) fn asks_for_json(args: &[String]) -> bool {
    args.iter().any(|a| a == "--format=json")
        || args
            .windows(2)
            .any(|pair| pair[0] == "--format" && pair[1] == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_seen_in_both_spellings() {
        let args = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(asks_for_json(&args("ingest --format json x")));
        assert!(asks_for_json(&args("ingest --format=json")));
        assert!(!asks_for_json(&args("ingest --format text json")));
        assert!(!asks_for_json(&args("--format")));
    }
}
