//! `rejects`: the records that did not pass, each with its place and every reason.

use lakebed::ingest::{KeptReject, for_each_reject};
use lakebed::log::DatasetState;
use lakebed::name::{CommitId, DatasetRef};
use lakebed::spec::FileFormat;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::args::{RejectsArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON answer: `{"format", "dataset", "date", "rejects": [...]}`, a record a line.
const REJECTS_FORMAT: u32 = 1;

/// `lakebed rejects`
pub(crate) async fn list(args: &RejectsArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let date: BusinessDate = args.date.parse()?;
    let context = Context::open(globals).await?;
    let state = context.load_known(&dataset).await?;
    match globals.printer.format() {
        TextFormat::Json => print_json(&context, &state, date).await?,
        TextFormat::Text => print_table(&context, &state, date).await?,
    }
    Ok(Exit::Done)
}

/// A day may hold millions of rejects: they are printed as they are read.
async fn print_json(context: &Context<'_>, state: &DatasetState, date: BusinessDate) -> Result<()> {
    let printer = context.printer();
    let head = format!(
        "{{\"format\": {REJECTS_FORMAT}, \"dataset\": \"{}\", \"date\": \"{date}\", \"rejects\": [",
        state.dataset()
    );
    printer.bytes(head.as_bytes())?;
    let mut first = true;
    for_each_reject(context.lake(), state, date, |kept| {
        let mut line = if first { "\n" } else { ",\n" }.as_bytes().to_vec();
        first = false;
        serde_json::to_writer(&mut line, &kept)
            .map_err(|e| Error::internal("write a reject as JSON").caused_by(e))?;
        printer.bytes(&line)?;
        Ok(!printer.is_closed())
    })
    .await?;
    printer.bytes(b"\n]}\n")
}

async fn print_table(
    context: &Context<'_>,
    state: &DatasetState,
    date: BusinessDate,
) -> Result<()> {
    let mut table = Table::new(["file", "#line", "path", "reason", "commit"]);
    let mut last: Option<CommitId> = None;
    for_each_reject(context.lake(), state, date, |kept: KeptReject| {
        table.row([
            kept.record.file.as_str(),
            &kept.record.line.to_string(),
            &kept.record.path,
            &kept.record.reason,
            kept.commit.as_str(),
        ]);
        if kept.record.was_read() {
            last = Some(kept.commit);
        }
        Ok(true)
    })
    .await?;
    let printer = context.printer();
    printer.table(&table)?;
    // What JSON lines do not take, no schema version will.
    if let Some(commit) = last.filter(|_| state.file_format() != Some(FileFormat::Jsonl)) {
        printer.hint(format!(
            "after publishing a schema version that takes them: `lakebed ingest {} --date {date} --rejects-of {commit}`",
            state.dataset()
        ));
    }
    Ok(())
}
