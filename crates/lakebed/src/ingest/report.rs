//! The refusal of a call whose records do not fit: every drifted field, with counts and samples.

use crate::error::Error;
use crate::ingest::convert::DriftItem;
use crate::ingest::request::{IngestOutcome, IngestReport};
use crate::spec::SCHEMALESS_VERSION;

/// Most drifted places named in one error; the JSON has them all.
const MAX_PLACES: usize = 50;

impl IngestReport {
    /// The error of a call that was refused: every drifted field, with counts and samples.
    #[must_use]
    pub fn refusal(&self) -> Option<Error> {
        (self.outcome == IngestOutcome::Refused).then(|| mismatch_error(self))
    }
}

fn mismatch_error(report: &IngestReport) -> Error {
    let IngestReport {
        dataset,
        schema_version: version,
        drift,
        rows,
        rejected,
        hints: reading,
        ..
    } = report;
    let total = rows + rejected;
    let is_table = *version != SCHEMALESS_VERSION;
    let what = match is_table {
        true => format!("do not fit schema version {version} of `{dataset}`"),
        false => format!("are no JSON objects that `{dataset}` can keep"),
    };
    let mut error = Error::precondition(format!(
        "{rejected} of {total} records {what}; nothing was written"
    ));
    let mut beyond = drift.unlisted();
    for (i, item) in drift.items().enumerate() {
        if i < MAX_PLACES {
            error = error.detail(drift_line(item));
        } else {
            beyond += 1;
        }
    }
    if beyond > 0 {
        error = error.detail(format!(
            "... and {beyond} more; `--format json` names them all"
        ));
    }
    if !reading.is_empty() {
        // Read by other rules, the records are others: what these ones suggest leads astray.
        return reading.iter().fold(error, |e, hint| e.hint(hint.as_str()));
    }
    let mut hints: Vec<&str> = drift.items().filter_map(|i| i.hint.as_deref()).collect();
    hints.dedup();
    for hint in hints.into_iter().take(5) {
        error = error.hint(hint);
    }
    let error = error.hint("`--on-mismatch quarantine` stores the good records and keeps the others with their reasons");
    if !is_table {
        return error;
    }
    error.hint(format!("if the site has changed: `lakebed schema propose {dataset} FILES...` writes the next version"))
}

/// One drifted place in one line.
fn drift_line(item: &DriftItem) -> String {
    let samples: Vec<String> = item.samples.iter().map(|s| format!("`{s}`")).collect();
    let such_as = if samples.is_empty() {
        String::new()
    } else {
        format!(", such as {}", samples.join(", "))
    };
    let DriftItem {
        path,
        code,
        count,
        file,
        line,
        reason,
        page,
        ..
    } = item;
    let place = match page {
        Some(page) => format!("first on {page}"),
        None => format!("first at {file} line {line}"),
    };
    format!("{path} ({code}): {count} x{such_as}; {place}: {reason}")
}
