//! What a shadow run says of itself.

use lakebed::Result;
use lakebed::flow::ShadowSummary;
use lakebed::spec::{ShadowDay, ShadowVerdict};
use lakebed::time::BusinessDate;
use serde::Serialize;

use crate::args::ShadowStage;
use crate::context::Globals;
use crate::table::{count, message_text};

/// Differing fields that are shown of a date.
const SHOWN_FIELDS: usize = 20;

/// A date that could not be compared.
#[derive(Serialize)]
pub(super) struct MissingDate {
    pub(super) date: BusinessDate,
    pub(super) reason: String,
}

#[derive(Serialize)]
pub(super) struct ShadowAnswer<'a> {
    pub(super) format: u32,
    /// Whether every asked date agrees.
    pub(super) pass: bool,
    /// Whether so many days in a row agreed as were asked for.
    pub(super) safe: bool,
    pub(super) safe_after: u32,
    /// Dates that could not be compared.
    pub(super) missing: &'a [MissingDate],
    pub(super) dates: &'a [ShadowDay],
    pub(super) summary: &'a ShadowSummary,
}

fn verdict(verdict: ShadowVerdict) -> &'static str {
    match verdict {
        ShadowVerdict::Agree => "AGREE",
        ShadowVerdict::Diff => "DIFF",
    }
}

pub(super) fn tell_day(day: &ShadowDay, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let agree: u64 = day.items.values().map(|c| c.agree).sum();
    let differ: u64 = day.items.values().map(|c| c.differ()).sum();
    let pages = day
        .pages
        .map_or(String::new(), |n| format!(" of {}", count(n, "page")));
    printer.line(format!(
        "{}: {}: {}{pages}, {agree} equal, {differ} different",
        day.date,
        verdict(day.verdict),
        count(agree + differ, "item"),
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

pub(super) fn tell_summary(
    answer: &ShadowAnswer<'_>,
    (stage, source): (ShadowStage, &str),
    globals: &Globals<'_>,
) -> Result<()> {
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
        printer.hint(match stage {
            ShadowStage::Parse => "put the new rules into source.toml; `lakebed parse --date` then makes revisions of the days you ask for".to_owned(),
            ShadowStage::Fold => format!("put the new rules into source.toml; they hold from the next day on, `lakebed fold {source} --date NEWEST --from FIRST` works earlier days out anew"),
            ShadowStage::Derive => format!("put the new query into source.toml; `lakebed derive {source} --date D --replace` makes revisions of the days you ask for"),
            ShadowStage::Shell => format!("put the new command into source.toml; `lakebed run {source} --date D --from-stage STAGE` runs it for the days you ask for"),
        });
    }
    Ok(())
}
