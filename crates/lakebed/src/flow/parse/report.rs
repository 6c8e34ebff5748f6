//! What became of a date: counts by pack and by dataset, and whether they are as they should be.

use serde::Serialize;

use crate::config::SourceConfig;
use crate::ingest::IngestReport;
use crate::name::{BatchLabel, DatasetRef, RunName, SourceName};
use crate::parse::EmptyField;
use crate::spec::{DatasetCounts, PackCounts};
use crate::time::BusinessDate;

/// Version of the report.
const PARSE_REPORT_FORMAT: u32 = 2;
/// Share of rejects where the source declares no rules of its own.
const USUAL_REJECT_SHARE: f64 = 0.05;

/// What became of the records of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredAs {
    /// The first rows of the date.
    New,
    /// They were added to the rows of other packs.
    Appended,
    /// A new revision; the old rows are kept for a rollback.
    Revision,
    /// The same rows are there already.
    AlreadyThere,
    /// Of one pack at least they do not fit the schema: of that one, and those after it, nothing was stored.
    Refused,
}

/// The records of one dataset.
#[derive(Debug, Clone, Serialize)]
pub struct ParsedDataset {
    /// The dataset.
    pub dataset: DatasetRef,
    /// What all packs of the date gave for it.
    #[serde(flatten)]
    pub counts: DatasetCounts,
    /// What became of what was not there yet.
    pub stored: StoredAs,
    /// The reports of the ingests, one a commit; empty where there was nothing to store.
    pub commits: Vec<IngestReport>,
}

/// What a pack gave.
#[derive(Debug, Clone, Serialize)]
pub struct ParsedPack {
    /// Its run.
    pub run: RunName,
    /// Names rules and pack: equal labels have equal rows.
    pub label: BatchLabel,
    /// Whether it was read by this call; else the log tells what it gave.
    pub is_read: bool,
    /// What its pages gave.
    #[serde(flatten)]
    pub counts: PackCounts,
}

/// What became of a date.
#[derive(Debug, Clone, Serialize)]
#[must_use]
pub struct ParseReport {
    /// Version of this shape.
    pub format: u32,
    /// The source.
    pub source: SourceName,
    /// The business date.
    pub date: BusinessDate,
    /// Whether the date is as it should be.
    pub pass: bool,
    /// Why it is not, in words.
    pub breaches: Vec<String>,
    /// Whether all of it was stored before: then no page was read.
    pub up_to_date: bool,
    /// What all packs gave.
    #[serde(flatten)]
    pub counts: PackCounts,
    /// The packs of the date, in the order in which they came.
    pub packs: Vec<ParsedPack>,
    /// By dataset.
    pub datasets: Vec<ParsedDataset>,
    /// Fields that had no value in any record that this call read; they make nothing red.
    pub empty_fields: Vec<EmptyField>,
}

impl ParseReport {
    /// The report over these packs and datasets, judged.
    pub(super) fn new(
        source: &SourceConfig,
        date: BusinessDate,
        packs: Vec<ParsedPack>,
        datasets: Vec<ParsedDataset>,
    ) -> Self {
        let all = packs.iter().map(|p| p.counts);
        let counts = all.fold(PackCounts::default(), PackCounts::plus);
        let mut report = Self {
            format: PARSE_REPORT_FORMAT,
            source: source.name.clone(),
            date,
            pass: true,
            breaches: Vec::new(),
            up_to_date: !packs.iter().any(|p| p.is_read),
            counts,
            packs,
            datasets,
            empty_fields: Vec::new(),
        };
        report.breaches = report.judge(source);
        report.pass = report.breaches.is_empty();
        report
    }

    fn judge(&self, source: &SourceConfig) -> Vec<String> {
        let declared = source.parse.as_ref().map(|p| p.max_reject_share);
        let limit = declared.unwrap_or(USUAL_REJECT_SHARE);
        let mut breaches = Vec::new();
        let counts = &self.counts;
        let taken = counts.parsed + counts.rejected;
        if counts.pages > 0 && taken == 0 && !self.datasets.is_empty() {
            breaches.push(format!("none of {} pages fits a rule", counts.pages));
        }
        breaches.extend(too_many("pages", counts.rejected, taken, limit));
        for one in &self.datasets {
            let (dataset, of) = (&one.dataset, &one.counts);
            let all = of.records + of.rejects;
            if one.stored == StoredAs::Refused {
                breaches.push(format!("records of `{dataset}` do not fit its schema"));
            }
            let what = format!("records of `{dataset}`");
            breaches.extend(too_many(&what, of.rejects, all, limit));
            // Pages of its kind that a later run brings are no matter of this one.
            let is_empty = of.pages > 0 && all == 0;
            if is_empty && !source.dataset(dataset).may_be_empty {
                breaches.push(format!(
                    "{} pages gave no record of `{dataset}`; where that may be, say `may_be_empty = true` in [dataset.{}]",
                    of.pages, dataset.dataset
                ));
            }
        }
        breaches
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a share of counts far below 2^52"
)]
fn too_many(what: &str, rejected: u64, all: u64, limit: f64) -> Option<String> {
    let share = rejected as f64 / all.max(1) as f64;
    (share > limit).then(|| {
        format!(
            "{rejected} of {all} {what} were rejected, {:.2} % of at most {:.2} %",
            share * 100.0,
            limit * 100.0
        )
    })
}
