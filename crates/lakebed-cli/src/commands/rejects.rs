//! `rejects`: the records that did not pass, each with its place and every reason.

use std::io::Read;

use lakebed::log::{DatasetState, RejectsState, finish_moves};
use lakebed::name::{CommitId, DatasetRef};
use lakebed::spec::RejectRecord;
use lakebed::store::rejects_dir;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{RejectsArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON answer.
const REJECTS_FORMAT: u32 = 1;

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    date: BusinessDate,
    rejects: Vec<Row>,
}

/// A rejected record and the commit that kept it, as `ingest --rejects-of` wants it.
#[derive(Serialize)]
struct Row {
    commit: CommitId,
    #[serde(flatten)]
    record: RejectRecord,
}

/// `lakebed rejects`
pub(crate) async fn list(args: &RejectsArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let date: BusinessDate = args.date.parse()?;
    let context = Context::open(globals).await?;
    let state = context.load_known(&dataset).await?;
    let rows = read_date(&context, &state, date).await?;
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&Answer {
            format: REJECTS_FORMAT,
            dataset: &dataset,
            date,
            rejects: rows,
        })?,
        TextFormat::Text => {
            let mut table = Table::new(["file", "#line", "path", "reason", "commit"]);
            for row in &rows {
                table.row([
                    row.record.file.as_str(),
                    &row.record.line.to_string(),
                    &row.record.path,
                    &row.record.reason,
                    row.commit.as_str(),
                ]);
            }
            globals.printer.table(&table)?;
            if let Some(row) = rows.last() {
                globals.printer.hint(format!(
                    "after publishing a schema version that takes them: `lakebed ingest {dataset} --date {date} --rejects-of {}`",
                    row.commit
                ));
            }
        }
    }
    Ok(Exit::Done)
}

async fn read_date(
    context: &Context<'_>,
    state: &DatasetState,
    date: BusinessDate,
) -> Result<Vec<Row>> {
    finish_moves(context.lake(), state).await?;
    let mut rows = Vec::new();
    let files = state.dates().get(&date).map(|d| d.rejects.as_slice());
    for file in files.unwrap_or_default() {
        read_file(context, state.dataset(), date, file, &mut rows).await?;
    }
    Ok(rows)
}

async fn read_file(
    context: &Context<'_>,
    dataset: &DatasetRef,
    date: BusinessDate,
    file: &RejectsState,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let path = rejects_dir(dataset, date).child(&file.spec.name);
    let damaged = |e: std::io::Error| {
        Error::corrupt("read a rejects file")
            .with("file", &path)
            .caused_by(e)
            .hint("`lakebed audit --deep` tells what else is damaged")
    };
    let packed = context.lake().store().get(&path).await?;
    let mut text = Vec::new();
    zstd::Decoder::new(&packed[..])
        .and_then(|mut d| d.read_to_end(&mut text))
        .map_err(damaged)?;
    for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let record = serde_json::from_slice(line).map_err(|e| damaged(e.into()))?;
        rows.push(Row {
            commit: file.commit.clone(),
            record,
        });
    }
    Ok(())
}
