//! From the process's arguments to its exit code.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::Parser;
use clap::error::ErrorKind as ClapKind;
use lakebed::{Error, Result};

use crate::args::{Cli, TextFormat, asks_for_json};
use crate::commands;
use crate::day_words::with_dates;
use crate::exit::Exit;
use crate::failure;
use crate::printer::{PrintOptions, Printer};

/// Runs the command line.
pub(crate) fn run(args: Vec<OsString>) -> Exit {
    let args = match with_dates(args) {
        Ok(args) => args,
        Err((args, error)) => return failure::report(&printer_of(&args), &error),
    };
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&args, &error),
    };
    let printer = Printer::new(PrintOptions {
        format: commands::format_of(&cli.command),
        quiet: cli.global.quiet,
        verbose: cli.global.verbose,
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| block_on(cli, &printer)));
    printer.attach_bar(None);
    match outcome {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => failure::report(&printer, &error),
        Err(_) => {
            let error = Error::internal("a fault of this program; its text stands above")
                .hint("nothing half written is visible; `lakebed audit` tells what a stopped call left behind")
                .hint("please report it with the text above");
            failure::report(&printer, &error)
        }
    }
}

fn block_on(cli: Cli, printer: &Printer) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Parsing of deeply nested queries and plans needs more than the default 2 MiB in debug builds.
        .thread_stack_size(16 << 20)
        .build()
        .map_err(|e| Error::io("start the threads of", "lakebed", e))?;
    runtime.block_on(commands::run(cli, printer))
}

/// Output of a command line that could not be read.
fn printer_of(args: &[OsString]) -> Printer {
    let texts: Vec<String> = args
        .iter()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    Printer::new(PrintOptions {
        format: if asks_for_json(&texts) {
            TextFormat::Json
        } else {
            TextFormat::Text
        },
        quiet: false,
        verbose: 0,
    })
}

/// Help and version go to stdout with 0; everything else is a usage error.
fn unparsed(args: &[OsString], error: &clap::Error) -> Exit {
    let printer = printer_of(args);
    let json = printer.format() == TextFormat::Json;
    let rendered = error.render().to_string();
    match error.kind() {
        ClapKind::DisplayHelp | ClapKind::DisplayVersion => {
            match printer.bytes(rendered.as_bytes()) {
                Ok(()) => Exit::Done,
                Err(e) => failure::report(&printer, &e),
            }
        }
        ClapKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            printer.stderr(&rendered);
            Exit::Usage
        }
        _ if json => {
            let message = rendered
                .strip_prefix("error: ")
                .unwrap_or(&rendered)
                .trim()
                .to_owned();
            failure::report(&printer, &Error::invalid(message))
        }
        _ => {
            printer.stderr(&rendered);
            Exit::Usage
        }
    }
}
