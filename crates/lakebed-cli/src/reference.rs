//! Generates docs/cli.md from the argument types, and fails when the page is stale.
//!
//! `LAKEBED_UPDATE_DOCS=1 cargo test -p lakebed-cli reference` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use lakebed::ErrorKind;

use crate::args::Cli;
use crate::exit::Exit;

const INTRODUCTION: &str = "# The command line\n\n\
<!-- Generated from the argument types by a test; edit those, then run\n     \
`LAKEBED_UPDATE_DOCS=1 cargo test -p lakebed-cli reference`. -->\n\n\
`lakebed <noun> <verb>`. Global options may stand before or after the subcommand.\n\n\
## Output\n\n\
- stdout carries data and nothing else; notes, warnings, hints and progress go to stderr.\n\
- Every log line on stderr begins with its time in UTC, RFC 3339.\n\
- `--format json` prints one JSON document; each carries `\"format\"`, the version of its shape. Keys are only ever added within a version. `sql --format json` is one array of rows, a row a line.\n\
- Errors are text on stderr: `error:`, then `file:`, `line:` and other context, then causes, then `hint:` lines. With `--format json` the last line on stderr is one JSON object, besides:\n  \
`{\"format\": 1, \"error\": {\"kind\", \"message\", \"details\", \"context\", \"hints\", \"causes\", \"exit_code\", \"retryable\", \"at\"}}`.\n\
- A progress bar is drawn on a terminal only. `NO_COLOR` switches colours off. A reader that closes stdout early is no error.\n\
- Control characters in data are shown as escapes in text tables and messages; JSON, CSV and Parquet carry the data as it is.\n\n\
## Environment\n\n\
| variable | meaning |\n| --- | --- |\n\
| `LAKEBED_PROJECT` | the project folder, where `--project` is not given |\n\
| `NO_COLOR` | no colours |\n\n\
Settings may be given by environment, too: `lakebed config show --origin` names where each value comes from. A variable that \
begins with `LAKEBED_` and is not known (docs/configuration.md) is an error.\n\n";

fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    exit_codes(&mut text);
    text.push_str("## Commands\n\n");
    let mut root = Cli::command();
    root.build();
    let mut globals = String::new();
    options(
        &mut globals,
        root.get_arguments().filter(|a| a.is_global_set()),
    );
    commands(&mut text, &root, "lakebed");
    text.push_str("## Global options\n\n");
    text.push_str(&globals);
    text.trim_end().to_owned() + "\n"
}

fn exit_codes(text: &mut String) {
    text.push_str("## Exit codes\n\n| code | meaning | error kinds |\n| --- | --- | --- |\n");
    for exit in Exit::ALL {
        let kinds: Vec<String> = ErrorKind::ALL
            .into_iter()
            .filter(|k| Exit::of_error(*k) == exit)
            .map(|k| format!("`{}`", k.as_str()))
            .collect();
        writeln!(
            text,
            "| {} | {} | {} |",
            exit.code(),
            exit.meaning(),
            kinds.join(", ")
        )
        .unwrap();
    }
    text.push('\n');
}

fn commands(text: &mut String, command: &Command, path: &str) {
    for sub in command.get_subcommands() {
        let path = format!("{path} {}", sub.get_name());
        if sub.has_subcommands() {
            commands(text, sub, &path);
            continue;
        }
        let usage = sub
            .clone()
            .bin_name(&path)
            .render_usage()
            .to_string()
            .replace("Usage: ", "");
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        write!(text, "### `{path}`\n\n{about}.\n\n```\n{usage}\n```\n\n").unwrap();
        options(text, sub.get_arguments().filter(|a| !a.is_global_set()));
    }
}

fn options<'a>(text: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let mut any = false;
    for arg in args.filter(|a| !matches!(a.get_id().as_str(), "help" | "version")) {
        any = true;
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|_| arg.get_action().takes_values())
            .map(|v| format!("`{}`", v.get_name()))
            .collect();
        let default: Vec<String> = arg
            .get_default_values()
            .iter()
            .filter(|_| arg.get_action().takes_values())
            .map(|v| format!("`{}`", v.to_string_lossy()))
            .collect();
        write!(text, "- `{}`: {help}", arg_name(arg)).unwrap();
        if !values.is_empty() {
            write!(text, " ({})", values.join(", ")).unwrap();
        }
        if !default.is_empty() {
            write!(text, " [default: {}]", default.join(", ")).unwrap();
        }
        text.push('\n');
    }
    if any {
        text.push('\n');
    }
}

fn arg_name(arg: &Arg) -> String {
    let value = arg
        .get_value_names()
        .filter(|_| arg.get_action().takes_values())
        .map(|names| names.join(" "));
    let mut name = match (arg.get_short(), arg.get_long()) {
        (Some(s), Some(l)) => format!("-{s}, --{l}"),
        (None, Some(l)) => format!("--{l}"),
        (Some(s), None) => format!("-{s}"),
        (None, None) => return value.unwrap_or_default(),
    };
    if let Some(value) = value {
        name = format!("{name} {value}");
    }
    name
}

#[test]
fn the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = page();
    if std::env::var_os("LAKEBED_UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/cli.md is stale: run `LAKEBED_UPDATE_DOCS=1 cargo test -p lakebed-cli reference`"
    );
}

#[test]
fn every_command_and_option_is_described() {
    fn walk(command: &Command, path: &str) {
        assert!(command.get_about().is_some(), "{path} has no description");
        for arg in command.get_arguments() {
            assert!(
                arg.get_help().is_some(),
                "{path} {} has no help",
                arg.get_id()
            );
        }
        for sub in command.get_subcommands() {
            walk(sub, &format!("{path} {}", sub.get_name()));
        }
    }
    let mut root = Cli::command();
    root.build();
    root.debug_assert();
    walk(&Cli::command(), "lakebed");
}
