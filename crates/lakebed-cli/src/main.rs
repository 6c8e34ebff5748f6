//! The command `lakebed`: parses the command line, runs one command, tells its result.
//!
//! The way through this crate: `args` (texts) -> `commands` (checked options, calls of the library)
//! -> `printer` (stdout is data, stderr is for people) -> `exit` (the code).

mod api;
mod args;
mod commands;
mod context;
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

use mimalloc::MiMalloc;

/// An audit or a rebuild makes and frees some hundred small values for each file of the lake, on several
/// threads at once: a fifth of its CPU went into the system's allocator (docs/benchmarks.md, Scale).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    start::run(std::env::args_os().collect()).into()
}
