//! `log`: the commits of a dataset, or what readers see differently between two of them.

use lakebed::log::{self, DatasetState, DateDiff, LoggedRecord};
use lakebed::name::DatasetRef;
use lakebed::spec::{Action, LogPosition};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{LogArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::{Table, count, grouped};

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

/// `lakebed log`
pub(crate) async fn log(args: &LogArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    let state = context.load_known(&dataset).await?;
    if let Some(range) = &args.diff {
        return log_diff(&context, &state, range).await;
    }
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
struct DiffAnswer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    /// Number of the last record of the first state.
    from: u64,
    /// Number of the last record of the second state.
    to: u64,
    dates: Vec<DateDiff>,
}

/// `lakebed log --diff A..B`
async fn log_diff(context: &Context<'_>, present: &DatasetState, range: &str) -> Result<Exit> {
    let dataset = present.dataset();
    let Some((from, to)) = range.split_once("..") else {
        return Err(Error::invalid(format!("`{range}` is no range"))
            .hint("write two points with `..` between: `--diff 7..9`, or `--diff 7..` up to now"));
    };
    let before = DatasetState::load_as_of(context.lake(), dataset, from.parse()?).await?;
    let after = match to {
        "" => present.clone(),
        to => DatasetState::load_as_of(context.lake(), dataset, to.parse()?).await?,
    };
    let answer = DiffAnswer {
        format: ANSWER_FORMAT,
        dataset,
        from: before.position().number,
        to: after.position().number,
        dates: log::diff_states(&before, &after),
    };
    let printer = context.printer();
    match printer.format() {
        TextFormat::Json => printer.json(&answer)?,
        TextFormat::Text => printer.table(&diff_table(&answer.dates))?,
    }
    Ok(Exit::Done)
}

fn diff_table(dates: &[DateDiff]) -> Table {
    let mut table = Table::new([
        "dt",
        "revision",
        "versions",
        "#rows before",
        "#rows after",
        "#files gone",
        "#files new",
        "sealed",
    ]);
    for date in dates {
        let (before, after) = (&date.before, &date.after);
        table.row([
            date.dt.to_string(),
            change(&before.revision, &after.revision, |r| {
                r.map_or_else(|| "-".to_owned(), |r| r.to_string())
            }),
            change(&before.schema_versions, &after.schema_versions, |v| {
                let all: Vec<String> = v.iter().map(ToString::to_string).collect();
                if all.is_empty() {
                    "-".to_owned()
                } else {
                    all.join(", ")
                }
            }),
            grouped(before.rows),
            grouped(after.rows),
            date.files_gone.to_string(),
            date.files_new.to_string(),
            change(&before.sealed, &after.sealed, |s| {
                if *s { "yes" } else { "no" }.to_owned()
            }),
        ]);
    }
    table
}

/// `old -> new`, or one word where nothing changed.
fn change<T: PartialEq>(before: &T, after: &T, text: impl Fn(&T) -> String) -> String {
    if before == after {
        return text(after);
    }
    format!("{} -> {}", text(before), text(after))
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
