//! What the owner has after sixty days: SQL over versions, missing days, quarantine, audit, files.

use std::sync::Arc;

use lakebed::govern::audit::{AuditOptions, audit};
use lakebed::ingest::for_each_reject;
use lakebed::log::DatasetState;
use lakebed::{Error, Result};
use lakebed_query::{QueryEngine, write_table};

use crate::commands::{count_reads, sql_engine};
use crate::demo::delivery::{DAYS, DemoSource, date_of};
use crate::demo::stage::{Stage, dataset};
use crate::demo::{rentals, shop};
use crate::table::{Table, cell_text, count, grouped};

/// Rejects shown.
const SHOWN_REJECTS: usize = 3;

const OVER_VERSIONS: &str = "SELECT schema_version, min(dt) AS first_day, max(dt) AS last_day, count(*) AS rows, count(read_count) AS with_read_count FROM clean.hot_topics GROUP BY schema_version ORDER BY schema_version";
const RENTS: &str = "SELECT district, count(DISTINCT listing_id) AS flats, CAST(avg(rent / area_ping) AS INT) AS rent_per_ping FROM clean.rentals WHERE rent IS NOT NULL GROUP BY district ORDER BY rent_per_ping DESC LIMIT 5";
const MISSING: &str = "SELECT dataset, count(*) AS days, sum(CASE WHEN is_complete THEN 1 ELSE 0 END) AS sealed, sum(row_count) AS rows FROM lake.source_day GROUP BY dataset ORDER BY dataset";

/// Shows everything and says what comes next.
pub(crate) async fn show(stage: &Stage<'_>) -> Result<()> {
    let printer = stage.printer();
    let engine = sql_engine(stage.context())?;
    printer.line("After sixty days.\n")?;
    printer.line("One table over all schema versions; days before a field existed read NULL:")?;
    query(stage, &engine, OVER_VERSIONS).await?;
    printer.line("Money was text in Big5; it is a decimal now:")?;
    query(stage, &engine, RENTS).await?;
    printer.line("Which days are whole; one of the shop is missing, and it shows:")?;
    query(stage, &engine, MISSING).await?;
    count_reads(&engine, printer).await;
    rejects(stage).await?;
    audited(stage).await?;
    files(stage)?;
    summary(stage)?;
    next_steps(stage)
}

async fn query(stage: &Stage<'_>, engine: &QueryEngine, sql: &str) -> Result<()> {
    let printer = stage.printer();
    printer.line(format!("   $ lakebed sql \"{sql}\""))?;
    let result = engine.sql(sql).await?;
    let mut text = Vec::new();
    write_table(result, &mut text).await?;
    let text = String::from_utf8(text)
        .map_err(|e| Error::internal("read a table as text").caused_by(e))?;
    for line in text.lines() {
        printer.line(format!("   {line}"))?;
    }
    printer.line("")
}

async fn rejects(stage: &Stage<'_>) -> Result<()> {
    let printer = stage.printer();
    let lake = stage.context().lake();
    let date = date_of(i64::from(rentals::ERROR_PAGE_ON))?;
    let rentals = dataset(DemoSource::Rentals)?;
    let state = DatasetState::load(lake, &rentals).await?;
    printer.line("What did not fit is kept, line by line, until somebody looks:")?;
    printer.line(format!("   $ lakebed rejects {rentals} --date {date}"))?;
    let mut shown = Vec::new();
    for_each_reject(lake, &state, date, |kept| {
        let r = &kept.record;
        shown.push(format!(
            "   {} line {}: {}",
            cell_text(&r.file),
            r.line,
            cell_text(&r.reason)
        ));
        Ok(shown.len() < SHOWN_REJECTS)
    })
    .await?;
    for line in shown {
        printer.line(line)?;
    }
    printer.line("")
}

async fn audited(stage: &Stage<'_>) -> Result<()> {
    let printer = stage.printer();
    let context = stage.context();
    let report = audit(
        context.lake(),
        Arc::clone(&context.catalog()),
        AuditOptions { deep: true },
    )
    .await?;
    if !report.is_clean() {
        return Err(Error::internal("the demo expected a clean audit")
            .hint("`lakebed audit --deep` tells the findings; please report them"));
    }
    printer.line("Log, catalog, folders and every byte compared:")?;
    printer.line("   $ lakebed audit --deep")?;
    printer.line(format!(
        "   clean: {}, {}, {} read and compared\n",
        count(report.datasets as u64, "dataset"),
        count(report.records, "log record"),
        count(report.files, "data file")
    ))
}

fn files(stage: &Stage<'_>) -> Result<()> {
    let printer = stage.printer();
    let lake = stage.context().settings().lake.value.display().to_string();
    printer.line("The files are plain Parquet in plain folders; any engine reads them:")?;
    printer.line(format!(
        "   {lake}/clean/hot_topics/dt={}/schema_version=1/",
        date_of(1)?
    ))?;
    printer.line(format!(
        "   {lake}/clean/hot_topics/dt={}/schema_version=3/",
        date_of(i64::from(DAYS))?
    ))?;
    printer.line(format!("   DuckDB: SELECT count(*) FROM read_parquet('{lake}/clean/hot_topics/dt=*/schema_version=*/*.parquet', union_by_name = true);\n"))
}

fn summary(stage: &Stage<'_>) -> Result<()> {
    let mut table = Table::new(["source", "title", "#deliveries", "#rows", "#in quarantine"]);
    for (source, tally) in stage.tallies() {
        table.row([
            source.name(),
            source.title(),
            &tally.deliveries.to_string(),
            &grouped(tally.rows),
            &tally.rejected.to_string(),
        ]);
    }
    stage.printer().line("Summary")?;
    for line in table.render().lines() {
        stage.printer().line(format!("   {line}"))?;
    }
    stage.printer().line(format!(
        "   refused and mended: 2 changes of a site, 1 broken transfer, 1 late sweep; missing: the shop on {}; retries: 1, nothing written twice\n",
        date_of(i64::from(shop::NO_DATA_ON))?
    ))
}

fn next_steps(stage: &Stage<'_>) -> Result<()> {
    let printer = stage.printer();
    let dir = stage.dir().display();
    printer.line("Look around:")?;
    for line in [
        format!("cd {dir}"),
        "lakebed log clean/hot_topics".to_owned(),
        "lakebed schema diff clean/hot_topics 1 3".to_owned(),
        "lakebed schema history clean/hot_topics read_count".to_owned(),
        "lakebed partitions clean/shop".to_owned(),
        "lakebed sql \"SELECT word, max(heat) AS heat FROM clean.hot_topics GROUP BY word ORDER BY heat DESC LIMIT 10\"".to_owned(),
    ] {
        printer.line(format!("   $ {line}"))?;
    }
    printer.line("Your own data: `lakebed init`, `lakebed source add`, `lakebed schema propose`; `lakebed --help` lists everything.")
}
