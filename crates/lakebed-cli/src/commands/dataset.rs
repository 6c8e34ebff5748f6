//! `seal`, `reopen`, `abandon`, `log`: one dataset's log, looked at or added to.

use lakebed::log::{self, AttemptTrace, LoggedRecord, SealOutcome};
use lakebed::name::{AttemptId, DatasetRef};
use lakebed::spec::{Action, LogPosition};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{AbandonArgs, LogArgs, ReopenArgs, SealArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::{Table, count, grouped};

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

/// `lakebed log`
pub(crate) async fn log(args: &LogArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    context.load_known(&dataset).await?;
    let records = log::read_after(context.lake(), &dataset, &LogPosition::START).await?;
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&LogAnswer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            commits: records.iter().map(LogEntry::of).collect(),
        })?,
        TextFormat::Text => {
            let mut table = Table::new([
                "#record",
                "at",
                "operation",
                "dates",
                "#files",
                "#rows",
                "#rejected",
                "user",
                "commit",
            ]);
            for record in &records {
                let sums = Sums::of(record);
                table.row([
                    record.record.number.to_string(),
                    record.record.at.to_string(),
                    record.record.operation.as_str().to_owned(),
                    sums.dates(),
                    sums.files.to_string(),
                    grouped(sums.rows),
                    grouped(sums.rejected),
                    record.record.by.user.clone().unwrap_or_default(),
                    record.record.commit.to_string(),
                ]);
            }
            globals.printer.table(&table)?;
            globals.printer.debug(count(records.len() as u64, "record"));
        }
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct LogAnswer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    commits: Vec<LogEntry<'a>>,
}

/// A record as it stands in the log, with its hash.
#[derive(Serialize)]
struct LogEntry<'a> {
    hash: &'a str,
    #[serde(flatten)]
    record: &'a lakebed::spec::Record,
}

impl<'a> LogEntry<'a> {
    fn of(logged: &'a LoggedRecord) -> Self {
        Self {
            hash: logged.hash.as_str(),
            record: &logged.record,
        }
    }
}

/// What a record adds, for the table.
#[derive(Default)]
struct Sums {
    files: u64,
    rows: u64,
    rejected: u64,
    first: Option<BusinessDate>,
    last: Option<BusinessDate>,
}

impl Sums {
    fn of(logged: &LoggedRecord) -> Self {
        let mut sums = Self::default();
        for action in &logged.record.actions {
            match action {
                Action::AddFile { partition, file } => {
                    sums.files += 1;
                    sums.rows += file.rows;
                    sums.see(partition.dt);
                }
                Action::AddRejects { dt, file } => {
                    sums.rejected += file.records;
                    sums.see(*dt);
                }
                Action::AddInput { partition, .. }
                | Action::AddPartition { partition, .. }
                | Action::RemoveFile { partition, .. }
                | Action::SetState { partition, .. } => sums.see(partition.dt),
                Action::RetryRejects { dt, .. } | Action::Complete { dt } | Action::Open { dt } => {
                    sums.see(*dt)
                }
                Action::Abandon { .. } | Action::EraseInput { .. } => {}
            }
        }
        sums
    }

    fn see(&mut self, dt: BusinessDate) {
        self.first = Some(self.first.map_or(dt, |d| d.min(dt)));
        self.last = Some(self.last.map_or(dt, |d| d.max(dt)));
    }

    fn dates(&self) -> String {
        match (self.first, self.last) {
            (Some(a), Some(b)) if a == b => a.to_string(),
            (Some(a), Some(b)) => format!("{a}..{b}"),
            (None, _) | (_, None) => String::new(),
        }
    }
}
