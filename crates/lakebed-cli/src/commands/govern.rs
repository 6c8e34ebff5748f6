//! `audit`.

use lakebed::Result;
use lakebed::govern::audit::{self, AuditOptions, AuditReport, Finding, RepairReport};
use serde::Serialize;

use crate::args::{AuditArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::{Table, count};

/// Version of the JSON answer.
const AUDIT_FORMAT: u32 = 1;

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    clean: bool,
    deep: bool,
    #[serde(flatten)]
    report: &'a AuditReport,
    /// Present with `--repair`: what was done; the findings are those that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<&'a RepairReport>,
}

/// `lakebed audit`
pub(crate) async fn audit(args: &AuditArgs, globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let options = AuditOptions { deep: args.deep };
    let mut report = audit::audit(context.lake(), context.catalog(), options).await?;
    let mut repaired = None;
    if args.repair && !report.findings.is_empty() {
        let by = context.by(None, None);
        repaired = Some(audit::repair(context.lake(), context.catalog(), &report, by).await?);
        // What counts is how things stand now, not what was meant to be done.
        report = audit::audit(context.lake(), context.catalog(), options).await?;
    }
    let clean = report.is_clean();
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&Answer {
            format: AUDIT_FORMAT,
            clean,
            deep: args.deep,
            report: &report,
            repair: repaired.as_ref(),
        })?,
        TextFormat::Text => {
            for done in repaired.iter().flat_map(|r| &r.done) {
                printer.line(format!("repaired: {done}"))?;
            }
            tell(globals, &report, args.deep)?;
        }
    }
    let mends = report.findings.iter().any(is_mended_by_repair);
    if mends && !args.repair {
        printer.hint("`lakebed audit --repair` does what the findings say it would");
    }
    Ok(if clean { Exit::Done } else { Exit::No })
}

fn is_mended_by_repair(finding: &Finding) -> bool {
    !matches!(finding.repair, audit::Repair::Manual { .. })
}

fn tell(globals: &Globals<'_>, report: &AuditReport, deep: bool) -> Result<()> {
    let printer = globals.printer;
    if !report.findings.is_empty() {
        let mut table = Table::new([
            "severity",
            "invariant",
            "dataset",
            "subject",
            "finding",
            "repair",
        ]);
        for finding in &report.findings {
            table.row([
                finding.severity.to_string(),
                finding.invariant.to_owned(),
                finding
                    .dataset
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                finding.subject.clone(),
                finding.message.clone(),
                finding.repair.to_string(),
            ]);
        }
        printer.table(&table)?;
    }
    printer.line(format!(
        "{}: {}, {}, {} {}",
        if report.is_clean() {
            "clean"
        } else {
            "not clean"
        },
        count(report.datasets as u64, "dataset"),
        count(report.records, "log record"),
        count(report.files, "data file"),
        if deep {
            "read and compared"
        } else {
            "compared by size (`--deep` reads them)"
        },
    ))
}
