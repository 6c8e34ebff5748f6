//! `seal`, `reopen`, `abandon`: records put into one dataset's log by hand.

use lakebed::log::{self, AttemptTrace, SealOutcome};
use lakebed::name::{AttemptId, DatasetRef};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{AbandonArgs, ReopenArgs, SealArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::count;

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

/// `lakebed seal`
pub(crate) async fn seal(args: SealArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let date: BusinessDate = args.date.parse()?;
    let context = Context::open(globals).await?;
    let mut state = context.load_known(&dataset).await?;
    let by = context.by(None, args.note);
    let outcome = log::seal(context.lake(), &mut state, date, by).await?;
    context.follow_log(&dataset).await;
    tell(globals, &dataset, Some(date), "sealed", outcome)
}

/// `lakebed reopen`
pub(crate) async fn reopen(args: ReopenArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let date: BusinessDate = args.date.parse()?;
    let context = Context::open(globals).await?;
    let mut state = context.load_known(&dataset).await?;
    let by = context.by(None, args.note);
    let outcome = log::reopen(context.lake(), &mut state, date, by).await?;
    context.follow_log(&dataset).await;
    tell(globals, &dataset, Some(date), "open", outcome)
}

/// `lakebed abandon`
pub(crate) async fn abandon(args: AbandonArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let attempt = AttemptId::parse_whole(&args.attempt)?;
    let context = Context::open(globals).await?;
    let mut state = context.load_known(&dataset).await?;
    let trace = log::trace_attempt(context.lake(), &state, &attempt).await?;
    check_trace(&trace, &dataset, &attempt, args.unseen)?;
    let by = context.by(None, args.note);
    let outcome = log::give_up(context.lake(), &mut state, &attempt, by).await?;
    context.follow_log(&dataset).await;
    match trace {
        AttemptTrace::Staged { files, .. } | AttemptTrace::Abandoned { files, .. } if files > 0 => {
            globals
                .printer
                .info(format!("deleted {}", count(files as u64, "staged file")));
        }
        AttemptTrace::Staged { .. }
        | AttemptTrace::Abandoned { .. }
        | AttemptTrace::Committed { .. }
        | AttemptTrace::Unseen => {}
    }
    tell(globals, &dataset, None, "abandoned", outcome)
}

/// A slip of the hand must not look like success: the attempt that was meant could still commit.
fn check_trace(
    trace: &AttemptTrace,
    dataset: &DatasetRef,
    attempt: &AttemptId,
    unseen: bool,
) -> Result<()> {
    match trace {
        AttemptTrace::Staged {
            dataset: Some(other),
            ..
        } if other != dataset => Err(Error::invalid(format!(
            "attempt `{attempt}` is staged for `{other}`, not for `{dataset}`"
        ))
        .hint(format!("`lakebed abandon {other} {attempt}`"))),
        AttemptTrace::Unseen if !unseen => Err(Error::not_found(format!(
            "attempt `{attempt}` was never seen: neither the log of `{dataset}` nor the stage knows it"
        ))
        .hint("`lakebed audit` names the attempts that are staged, each with its dataset")
        .hint("where a call that sleeps still holds it, `--unseen` bars it all the same")),
        AttemptTrace::Staged { .. }
        | AttemptTrace::Abandoned { .. }
        | AttemptTrace::Committed { .. }
        | AttemptTrace::Unseen => Ok(()),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<BusinessDate>,
    state: &'a str,
    outcome: &'a str,
    log_position: u64,
}

fn tell(
    globals: &Globals<'_>,
    dataset: &DatasetRef,
    date: Option<BusinessDate>,
    state: &str,
    outcome: SealOutcome,
) -> Result<Exit> {
    let (word, number) = match outcome {
        SealOutcome::Done { number } => ("done", number),
        SealOutcome::AlreadySo { number } => ("already_so", number),
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&Answer {
            format: ANSWER_FORMAT,
            dataset,
            date,
            state,
            outcome: word,
            log_position: number,
        })?,
        TextFormat::Text => {
            let what = date.map_or_else(|| dataset.to_string(), |d| format!("{dataset} {d}"));
            let text = match outcome {
                SealOutcome::Done { number } => format!("{what}: {state}, record {number}"),
                SealOutcome::AlreadySo { number: 0 } => format!("{what}: {state} already"),
                SealOutcome::AlreadySo { number } => {
                    format!("{what}: {state} already, record {number}")
                }
            };
            globals.printer.line(text)?;
        }
    }
    Ok(Exit::Done)
}
