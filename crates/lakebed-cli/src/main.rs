//! The command `lakebed`: parses the command line, runs one command, tells its result.
//!
//! The way through this crate: `args` (texts) -> `commands` (checked options, calls of the library)
//! -> `printer` (stdout is data, stderr is for people) -> `exit` (the code).

mod api;
mod args;
mod commands;
mod context;
mod day_words;
mod demo;
mod demo_site;
mod exit;
mod failure;
mod printer;
mod progress;
mod prompt;
#[cfg(test)]
mod reference;
mod start;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    start::run(std::env::args_os().collect()).into()
}
