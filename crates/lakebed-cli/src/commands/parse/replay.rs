//! `parse --date`: the packs of dates through the rules, into the lake.

use lakebed::flow::{ParseOptions, ParseReport, StoredAs, parse_date};
use lakebed::ingest::IngestReport;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{ParseArgs, TextFormat};
use crate::commands::ingest;
use crate::commands::parse::doubt::{find_lines, never_parsed};
use crate::commands::parse::{PARSE_ANSWER_FORMAT, Ruled};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::progress::IngestProgress;
use crate::table::count;

/// Days of one call at most.
const MAX_DAYS: i64 = 3_660;

/// The dates of `D` or `A..B`.
pub(crate) fn dates_of(text: &str) -> Result<Vec<BusinessDate>> {
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (from.parse::<BusinessDate>()?, to.parse()?),
        None => (text.parse()?, text.parse()?),
    };
    if from > to {
        return Err(Error::invalid(format!("`{from}` is after `{to}`"))
            .hint("the earlier date comes first: --date 2026-11-01..2026-11-30"));
    }
    let days = i64::from(to.days() - from.days());
    if days >= MAX_DAYS {
        return Err(Error::invalid(format!(
            "`{text}` are {} days, at most {MAX_DAYS} in one call",
            days + 1
        ))
        .hint("`lakebed partitions` shows which dates there are"));
    }
    Ok((0..=days).map(|n| from.plus_days(n)).collect())
}

#[derive(Serialize)]
struct ReplayAnswer {
    format: u32,
    pass: bool,
    /// Dates without a pack.
    missing: Vec<BusinessDate>,
    dates: Vec<ParseReport>,
}

/// `--date`
pub(super) async fn replay(
    dates: &str,
    args: &ParseArgs,
    ruled: &Ruled,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let dates = dates_of(dates)?;
    let context = Context::open(globals).await?;
    let (source, printer) = (&ruled.source, globals.printer);
    let catalog = context.catalog();
    let (mut missing, mut reports) = (Vec::new(), Vec::new());
    for date in dates {
        let options = options_of(args, ruled, &context, date);
        let progress = IngestProgress::new(printer, &format!("{} {date}", source.name));
        let (lake, catalog) = (context.lake(), &*catalog);
        let done = parse_date(
            lake,
            catalog,
            &ruled.rules,
            (source, date),
            &options,
            &progress,
        );
        match done.await {
            Ok(Some(mut report)) => {
                find_lines(ruled, &mut report.empty_fields);
                if printer.format() == TextFormat::Text {
                    tell_date(&report, globals)?;
                }
                tell_empty(&report, ruled, globals);
                reports.push(report);
            }
            Ok(None) => {
                printer.warn(format!("`{}` has no pack of {date}", source.name));
                missing.push(date);
            }
            Err(e) => return Err(e.with("date", date)),
        }
    }
    let pass = missing.is_empty() && reports.iter().all(|r| r.pass);
    if printer.format() == TextFormat::Json {
        printer.json(&ReplayAnswer {
            format: PARSE_ANSWER_FORMAT,
            pass,
            missing,
            dates: reports,
        })?;
    }
    Ok(if pass { Exit::Done } else { Exit::No })
}

fn options_of(
    args: &ParseArgs,
    ruled: &Ruled,
    context: &Context<'_>,
    date: BusinessDate,
) -> ParseOptions {
    let (project, source) = (&ruled.project, &ruled.source.name);
    let policy = context.settings().on_mismatch.value;
    let kept = project.root().join("parse").join(source.as_str());
    ParseOptions {
        folder: ruled.folder(),
        kept: kept.join(date.to_string()),
        mismatch: args
            .on_mismatch
            .map_or(ingest::policy(policy), ingest::mismatch),
        by: context.by(None, args.note.clone()),
        replace: args.replace,
        late: args.late,
        threads: None,
    }
}

/// Tells which fields had no value in any record: nothing is red because of it, and somebody should look.
fn tell_empty(report: &ParseReport, ruled: &Ruled, globals: &Globals<'_>) {
    let printer = globals.printer;
    for line in never_parsed(ruled, &report.empty_fields) {
        printer.warn(line);
    }
    if !report.empty_fields.is_empty() {
        printer.hint(format!(
            "`lakebed parse {} --try URL` shows what the rules give for a page",
            ruled.source.name
        ));
    }
}

fn tell_date(report: &ParseReport, globals: &Globals<'_>) -> Result<()> {
    let (printer, counts) = (globals.printer, &report.counts);
    let is_new = if report.up_to_date {
        "up to date: "
    } else {
        ""
    };
    printer.line(format!(
        "{}: {is_new}{} in {}: {} parsed, {} rejected, {} fit no rule, {} gave nothing; {}",
        report.date,
        count(counts.pages, "page"),
        count(report.packs.len() as u64, "pack"),
        counts.parsed,
        counts.rejected,
        counts.unmatched,
        counts.barren,
        count(counts.follow_ups, "link"),
    ))?;
    for dataset in &report.datasets {
        let what = match dataset.stored {
            StoredAs::New => "stored",
            StoredAs::Appended => "added",
            StoredAs::Revision => "stored as a new revision",
            StoredAs::AlreadyThere => "there already",
            StoredAs::Refused => "refused: they do not fit the schema",
        };
        let places = dataset.commits.iter().filter_map(|c| c.log_position);
        let places: Vec<String> = places.map(|n| n.to_string()).collect();
        let place = match places.len() {
            0 => String::new(),
            1 => format!(", record {}", places[0]),
            _ => format!(", records {}", places.join(", ")),
        };
        printer.line(format!(
            "  {}: {}, {}: {what}{place}",
            dataset.dataset,
            count(dataset.counts.records, "record"),
            count(dataset.counts.rejects, "reject"),
        ))?;
        for refusal in dataset.commits.iter().filter_map(IngestReport::refusal) {
            printer.warn(&refusal);
            refusal.details().iter().for_each(|d| printer.warn(d));
            refusal.hints().iter().for_each(|h| printer.hint(h));
        }
    }
    report.breaches.iter().for_each(|b| printer.warn(b));
    if counts.rejects > 0 {
        printer.warn(format!(
            "{} of the rules on {}",
            count(counts.rejects, "reject"),
            report.date
        ));
        for dataset in &report.datasets {
            printer.hint(format!(
                "`lakebed rejects {} --date {}` shows those of the dataset and of its pages",
                dataset.dataset, report.date
            ));
        }
    }
    Ok(())
}
