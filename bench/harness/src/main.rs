//! What the benchmarks measure within one process, and the synthetic lakes that they measure.
//!
//! ```text
//! lakebed-bench commits PROJECT DATASET DATE INPUTS THREADS    one commit for each file in the folder INPUTS
//! lakebed-bench lake PROJECT TEMPLATE ROWS DATASET... --days N --files N
//!                                                              a lake of many partitions, all of one Parquet file
//! lakebed-bench queue SERVER lakebed|raw[:full|:snapshot]... --batch N --workers N --seconds S --rows N --done N --rounds N
//!                                                              claims and finishes a second; SERVER is a folder
//!                                                              for SQLite, or the URL of a server
//! lakebed-bench packs fill PAGES PARTS | spread SOURCE PARTS OUT | seal SOURCE PARTS OUT | replay OUT | get OUT
//!                                                              what packs cost
//! lakebed-bench parse RULES PAGES REPEAT OUT                   pages through the rules of a source.toml
//! lakebed-bench load | audit | rebuild PROJECT                 what grows with a lake, for a profiler
//! ```
//!
//! PROJECT is a folder that `lakebed init` made and where the datasets' schemas are published. Answers are one
//! JSON object on standard output.

mod commits;
mod govern;
mod lake;
mod packs;
mod parse;
mod queue;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use lakebed::store::{Lake, LocalStore};
use lakebed::time::Clock;
use lakebed::{Error, Result};
use serde_json::Value;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args).and_then(|answer| say(&answer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever closed the pipe does not want to know.
            drop(writeln!(std::io::stderr(), "failed to {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<Value> {
    match args {
        ["packs", rest @ ..] => run_packs(rest),
        ["parse", rules, pages, repeat, out] => parse::measure(
            Path::new(rules),
            Path::new(pages),
            number(repeat)?,
            Path::new(out),
        ),
        _ => run_with_runtime(args),
    }
}

/// What needs no runtime, and is not to pay for one.
fn run_packs(args: &[&str]) -> Result<Value> {
    match args {
        ["fill", pages, parts] => packs::fill(Path::new(pages), Path::new(parts)),
        ["spread", source, parts, out] => packs::spread(source, Path::new(parts), Path::new(out)),
        ["seal", source, parts, out] => packs::seal(source, Path::new(parts), Path::new(out)),
        ["replay", out] => packs::replay(Path::new(out)),
        ["get", out] => packs::get(Path::new(out)),
        _ => Err(not_understood()),
    }
}

fn not_understood() -> Error {
    Error::invalid("understand the call").hint("src/main.rs says what there is")
}

fn run_with_runtime(args: &[&str]) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Connections wait with time limits, and some are to a server.
        .enable_all()
        .build()
        .map_err(|e| Error::io("start the runtime", "", e))?;
    match args {
        ["commits", project, dataset, date, inputs, threads] => {
            let job = commits::Job {
                dataset: dataset.parse()?,
                date: date.parse()?,
                threads: number(threads)?,
            };
            commits::measure(&runtime, Path::new(project), Path::new(inputs), &job)
        }
        ["lake", project, template, rows, rest @ ..] => {
            let (datasets, shape) = lake::Shape::parse(rest)?;
            let template = lake::Template::read(Path::new(template), number(rows)?)?;
            lake::write(&runtime, Path::new(project), &template, &datasets, shape)
        }
        ["queue", server, rest @ ..] => {
            let job = queue::Job::parse(rest)?;
            runtime.block_on(queue::measure(server, &job))
        }
        ["load", project] => govern::measure_load(&runtime, Path::new(project)),
        ["audit", project] => govern::measure_audit(&runtime, Path::new(project)),
        ["rebuild", project] => govern::measure_rebuild(&runtime, Path::new(project)),
        _ => Err(not_understood()),
    }
}

/// Opens the project's lake.
fn open_lake(runtime: &tokio::runtime::Runtime, project: &Path) -> Result<Lake> {
    let store = Arc::new(LocalStore::new(project.join("lake")));
    runtime.block_on(Lake::open(store, Arc::new(Clock::System)))
}

fn number(text: &str) -> Result<u64> {
    text.parse()
        .map_err(|e| Error::invalid(format!("read the number `{text}`")).caused_by(e))
}

fn say(answer: &Value) -> Result<()> {
    writeln!(std::io::stdout(), "{answer}").map_err(|e| Error::io("write", "standard output", e))
}
