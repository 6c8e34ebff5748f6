//! `correct`, `switch`, `rollback`: another revision of a date in the place of the active one.

use lakebed::Result;
use lakebed::ingest::IngestOutcome;
use lakebed::ingest::read::resolve_inputs;
use lakebed::log::{self, SwitchOutcome, SwitchRequest, SwitchTarget};
use lakebed::name::DatasetRef;
use lakebed::time::BusinessDate;
use serde::Serialize;

use crate::args::{CorrectArgs, RollbackArgs, SwitchArgs, SwitchHowArgs, TextFormat};
use crate::commands::ingest::{IngestOptions, finish, run};
use crate::context::{Context, Globals};
use crate::exit::Exit;

/// Version of the JSON answer of `switch` and `rollback`.
const ANSWER_FORMAT: u32 = 1;

/// `lakebed correct`
pub(crate) async fn correct(args: CorrectArgs, globals: &Globals<'_>) -> Result<Exit> {
    let keep = args.keep;
    let options = IngestOptions::correcting(args)?;
    let context = Context::open(globals).await?;
    let inputs = resolve_inputs(&options.files)?;
    let request = options.request(&context, inputs, options.read.clone())?;
    let report = run(&context, &request).await?;
    let exit = finish(&context, &request, &report).await?;
    if keep && report.outcome == IngestOutcome::Committed {
        globals.printer.hint(format!(
            "readers do not see it yet: `lakebed switch {} --date {} --revision {}` shows it",
            report.dataset, report.date, report.revision
        ));
    }
    Ok(exit)
}

/// `lakebed switch`
pub(crate) async fn switch(args: SwitchArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (dataset, dt) = (args.dataset.parse()?, args.date.parse()?);
    let target = SwitchTarget::Revision(args.revision);
    show(globals, &dataset, (dt, target), args.how).await
}

/// `lakebed rollback`
pub(crate) async fn rollback(args: RollbackArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (dataset, dt) = (args.dataset.parse()?, args.date.parse()?);
    show(globals, &dataset, (dt, SwitchTarget::Previous), args.how).await
}

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    date: BusinessDate,
    /// `done` or `already_so`.
    outcome: &'a str,
    /// The revision that readers see now.
    revision: u32,
    /// The revision that they saw before; absent where nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_position: Option<u64>,
}

async fn show(
    globals: &Globals<'_>,
    dataset: &DatasetRef,
    (dt, target): (BusinessDate, SwitchTarget),
    how: SwitchHowArgs,
) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let mut state = context.load_known(dataset).await?;
    let request = SwitchRequest {
        dt,
        target,
        drop_late: how.drop_late,
        by: context.by(None, how.note),
    };
    let outcome = log::switch(context.lake(), &mut state, &request).await?;
    context.follow_log(dataset).await;
    let printer = globals.printer;
    let (answer, text) = match outcome {
        SwitchOutcome::Done {
            number,
            from,
            to,
            moved,
        } => {
            if !moved {
                printer.warn("switched, but not every file is at its place yet: the next command on this dataset finishes it, or `lakebed audit --repair`");
            }
            let answer = Answer {
                format: ANSWER_FORMAT,
                dataset,
                date: dt,
                outcome: "done",
                revision: to,
                from: Some(from),
                log_position: Some(number),
            };
            let text = format!("{dataset} {dt}: revision {to} instead of {from}, record {number}");
            (answer, text)
        }
        SwitchOutcome::AlreadySo { revision } => {
            let answer = Answer {
                format: ANSWER_FORMAT,
                dataset,
                date: dt,
                outcome: "already_so",
                revision,
                from: None,
                log_position: None,
            };
            (
                answer,
                format!("{dataset} {dt}: revision {revision} already"),
            )
        }
    };
    match printer.format() {
        TextFormat::Json => printer.json(&answer)?,
        TextFormat::Text => printer.line(text)?,
    }
    Ok(Exit::Done)
}
