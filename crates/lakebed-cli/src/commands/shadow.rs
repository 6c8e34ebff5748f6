//! `shadow`: whether other rules, or other programs, give the same for the same pages, and since how many days.

use lakebed::Result;
use lakebed::flow::{ShadowOptions, ShadowSummary, shadow_date, summarize_shadow};
use lakebed::spec::{ShadowDay, ShadowVerdict};
use lakebed::time::BusinessDate;
use serde::Serialize;

use crate::args::{ShadowArgs, ShadowStage, TextFormat};
use crate::commands::parse::{Ruled, dates_of};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::progress::IngestProgress;
use crate::table::{count, message_text};

/// Version of the JSON answer.
const ANSWER_FORMAT: u32 = 1;
/// Folder of records in the project.
const FOLDER: &str = "shadow";
/// Differing fields that are shown of a date.
const SHOWN_FIELDS: usize = 20;

#[derive(Serialize)]
struct ShadowAnswer<'a> {
    format: u32,
    /// Whether every asked date agrees.
    pass: bool,
    /// Whether so many days in a row agreed as were asked for.
    safe: bool,
    safe_after: u32,
    /// Dates without a pack.
    missing: &'a [BusinessDate],
    dates: &'a [ShadowDay],
    summary: &'a ShadowSummary,
}

/// `lakebed shadow`
pub(crate) async fn run(args: ShadowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let ShadowStage::Parse = args.stage;
    let ruled = Ruled::open(&args.source.parse()?, globals)?;
    let new = Ruled::open(&args.source.parse()?, globals)?.beside(&args.with)?;
    let dates = dates_of(&args.date)?;
    let context = Context::open(globals).await?;
    let (source, printer) = (&ruled.source.name, globals.printer);
    let options = ShadowOptions {
        folder: ruled.folder(),
        kept: context.project().root().join(FOLDER),
        ignored: args.ignore.clone(),
        threads: None,
    };
    let rules = (&ruled.rules, &new.rules);
    let (mut days, mut missing) = (Vec::new(), Vec::new());
    for date in dates {
        let progress = IngestProgress::new(printer, &format!("{source} {date}"));
        let done = shadow_date(context.lake(), rules, (source, date), &options, &progress).await;
        match done.map_err(|e| e.with("date", date))? {
            Some(day) => {
                if printer.format() == TextFormat::Text {
                    tell_day(&day, globals)?;
                }
                days.push(day);
            }
            None => {
                printer.warn(format!("`{source}` has no pack of {date}"));
                missing.push(date);
            }
        }
    }
    let summary = summarize_shadow(&options.kept, source, rules)?;
    let agree = days.iter().all(|d| d.verdict == ShadowVerdict::Agree);
    let answer = ShadowAnswer {
        format: ANSWER_FORMAT,
        pass: agree && missing.is_empty(),
        safe: summary.equal_in_a_row >= args.safe_after,
        safe_after: args.safe_after,
        missing: &missing,
        dates: &days,
        summary: &summary,
    };
    match printer.format() {
        TextFormat::Json => printer.json(&answer)?,
        TextFormat::Text => tell_summary(&answer, globals)?,
    }
    Ok(if answer.pass { Exit::Done } else { Exit::No })
}

fn verdict(verdict: ShadowVerdict) -> &'static str {
    match verdict {
        ShadowVerdict::Agree => "AGREE",
        ShadowVerdict::Diff => "DIFF",
    }
}

fn tell_day(day: &ShadowDay, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let agree: u64 = day.items.values().map(|c| c.agree).sum();
    let differ: u64 = day.items.values().map(|c| c.differ()).sum();
    printer.line(format!(
        "{}: {}: {} of {}, {agree} equal, {differ} different",
        day.date,
        verdict(day.verdict),
        count(agree + differ, "item"),
        count(day.pages, "page"),
    ))?;
    for (kind, counts) in day.items.iter().filter(|(_, c)| c.differ() > 0) {
        printer.line(format!(
            "  {}: {} equal, {} changed, {} of the present alone, {} of the new alone",
            message_text(kind),
            counts.agree,
            counts.changed,
            counts.only_old,
            counts.only_new
        ))?;
    }
    for (field, items) in day.fields.iter().take(SHOWN_FIELDS) {
        printer.line(format!("    {} differs in {items}", message_text(field)))?;
    }
    Ok(())
}

fn tell_summary(answer: &ShadowAnswer<'_>, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let compared = answer.summary.days.len() as u64;
    let equal = u64::from(answer.summary.equal_in_a_row);
    printer.line(format!(
        "{} compared; the newest {equal} in a row agree: {}",
        count(compared, "day"),
        match answer.safe {
            true => "the switch is safe".to_owned(),
            false => format!("a switch is safe after {}", answer.safe_after),
        }
    ))?;
    if answer.safe {
        printer.hint("put the new rules into source.toml; `lakebed parse --date` then makes revisions of the days you ask for");
    }
    Ok(())
}
