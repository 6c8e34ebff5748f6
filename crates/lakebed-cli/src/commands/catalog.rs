//! `catalog status | sync | rebuild` and `partitions`.

use lakebed::Result;
use lakebed::catalog::{self, DatasetStatus, PartitionFilter, PartitionRow, SyncReport, SyncState};
use lakebed::name::DatasetRef;
use serde::Serialize;

use crate::args::{CatalogRebuildArgs, PartitionsArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::{Table, grouped, size};

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;

#[derive(Serialize)]
struct StatusAnswer {
    format: u32,
    catalog: String,
    in_sync: bool,
    datasets: Vec<DatasetStatus>,
}

/// `lakebed catalog status`
pub(crate) async fn status(globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let index = context.catalog();
    let datasets = catalog::status(context.lake(), &*index).await?;
    let in_sync = datasets.iter().all(|d| d.state == SyncState::InSync);
    let broken = datasets.iter().any(|d| match d.state {
        SyncState::InSync | SyncState::Behind { .. } => false,
        SyncState::Ahead | SyncState::Diverged | SyncState::Broken { .. } => true,
    });
    let unreadable = datasets
        .iter()
        .any(|d| matches!(d.state, SyncState::Broken { .. }));
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&StatusAnswer {
            format: ANSWER_FORMAT,
            catalog: index.location(),
            in_sync,
            datasets,
        })?,
        TextFormat::Text => {
            let mut table = Table::new(["dataset", "#catalog", "#log", "state"]);
            for line in &datasets {
                table.row([
                    line.dataset.to_string(),
                    line.catalog_position.to_string(),
                    line.log_position.to_string(),
                    state_text(&line.state),
                ]);
            }
            printer.table(&table)?;
        }
    }
    if broken {
        printer.hint("the log wins: `lakebed audit` reads every record and says what is wrong, `--deep` every file, too");
        printer.hint("`lakebed catalog rebuild` makes the catalog anew once the lake is sound");
    } else if !in_sync {
        printer.hint("`lakebed catalog sync` applies what waits; every query does so by itself");
    }
    if !broken {
        printer.info("records that are applied were not read again: `lakebed audit` does that");
    }
    Ok(if unreadable {
        Exit::NotEvaluated
    } else if in_sync {
        Exit::Done
    } else {
        Exit::No
    })
}

fn state_text(state: &SyncState) -> String {
    match state {
        SyncState::InSync => "in sync".to_owned(),
        SyncState::Behind { records } => format!("behind by {records}"),
        SyncState::Ahead => "ahead of its log: the lake is older than the catalog".to_owned(),
        SyncState::Diverged => "of another past than its log".to_owned(),
        SyncState::Broken { reason } => format!("the log cannot be read: {reason}"),
    }
}

#[derive(Serialize)]
struct SyncAnswer<'a> {
    format: u32,
    /// Of a rebuild: where a damaged catalog file was set aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged_file: Option<&'a str>,
    datasets: Vec<SyncReport>,
}

/// `lakebed catalog sync`
pub(crate) async fn sync(globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    tell(globals, context.follow_all().await?, None)
}

/// `lakebed catalog rebuild`
pub(crate) async fn rebuild(args: &CatalogRebuildArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (context, kept) = Context::open_for_rebuild(globals).await?;
    let kept = kept.map(|path| path.display().to_string());
    if let Some(path) = &kept {
        globals.printer.warn(format!(
            "the file was no sound catalog (damaged, or never one); it is kept as {path}"
        ));
    }
    let reports = catalog::rebuild(context.lake(), &*context.catalog(), args.full).await?;
    context.put_sources().await?;
    let exit = tell(globals, reports, kept.as_deref())?;
    if kept.is_some() {
        globals
            .printer
            .hint("the lake needs nothing of it; look at it before you delete it");
    }
    Ok(exit)
}

fn tell(
    globals: &Globals<'_>,
    reports: Vec<SyncReport>,
    damaged_file: Option<&str>,
) -> Result<Exit> {
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&SyncAnswer {
            format: ANSWER_FORMAT,
            damaged_file,
            datasets: reports,
        })?,
        TextFormat::Text => {
            let mut table = Table::new(["dataset", "#from", "#to", "#applied"]);
            for report in &reports {
                table.row([
                    report.dataset.to_string(),
                    report.from.to_string(),
                    report.to.to_string(),
                    report.applied.to_string(),
                ]);
            }
            globals.printer.table(&table)?;
        }
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct PartitionsAnswer {
    format: u32,
    partitions: Vec<PartitionRow>,
}

/// `lakebed partitions`
pub(crate) async fn partitions(args: &PartitionsArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset = args.dataset.as_deref().map(str::parse).transpose()?;
    let context = Context::open(globals).await?;
    let rows = fresh_partitions(&context, dataset, args.all).await?;
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&PartitionsAnswer {
            format: ANSWER_FORMAT,
            partitions: rows,
        })?,
        TextFormat::Text => globals.printer.table(&partition_table(&rows, args.all))?,
    }
    Ok(Exit::Done)
}

/// The partitions that readers see, or all of them, after the catalog has followed the logs.
async fn fresh_partitions(
    context: &Context<'_>,
    dataset: Option<DatasetRef>,
    all_states: bool,
) -> Result<Vec<PartitionRow>> {
    let catalog = context.catalog();
    match &dataset {
        Some(dataset) => {
            context.check_known(dataset).await?;
            catalog::sync(context.lake(), &*catalog, dataset).await?;
        }
        None => {
            context.follow_all().await?;
        }
    }
    let filter = PartitionFilter {
        dataset,
        all_states,
        ..PartitionFilter::default()
    };
    catalog.list_partitions(&filter).await
}

fn partition_table(rows: &[PartitionRow], all: bool) -> Table {
    let mut head = vec!["dataset", "dt", "#version"];
    if all {
        head.extend(["#revision", "state"]);
    }
    head.extend([
        "#rows",
        "#files",
        "#bytes",
        "complete",
        "provenance",
        "updated",
    ]);
    let mut table = Table::new(head);
    for row in rows {
        let mut cells = vec![
            row.dataset.to_string(),
            row.key.dt.to_string(),
            row.key.schema_version.to_string(),
        ];
        if all {
            cells.extend([row.key.revision.to_string(), row.state.to_string()]);
        }
        cells.extend([
            grouped(row.row_count),
            row.file_count.to_string(),
            size(row.byte_size),
            if row.is_complete { "yes" } else { "no" }.to_owned(),
            row.provenance.clone(),
            row.updated_at.to_string(),
        ]);
        table.row(cells);
    }
    table
}
