//! The deep comparison of the catalog: every row against those of a catalog built anew from the lake.
//!
//! A catalog is a fold of the lake (CAT-1), so one that was not tampered with or damaged has exactly
//! the rows that a rebuild gives. What the project says of its sources is not in the lake and left out.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::catalog::{Catalog, SqliteCatalog, sync_all};
use crate::error::{Error, Result};
use crate::govern::audit::{AuditReport, Finding, Repair, Severity};
use crate::store::Lake;
use crate::time::unique_id;

/// Rows named in findings; the others are counted.
const MAX_ROWS: usize = 20;
/// Characters of a row that a finding shows.
const MAX_SHOWN: usize = 200;

/// Compares all rows; to be asked where catalog and logs stand at the same records.
pub(super) async fn check(
    lake: &Lake,
    catalog: &dyn Catalog,
    report: &mut AuditReport,
) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("lakebed-audit-{}", unique_id(lake.clock())));
    std::fs::create_dir_all(&folder)
        .map_err(|e| Error::io("create the folder", folder.display(), e))?;
    let rebuilt = rebuild_in(lake, &folder).await;
    drop(std::fs::remove_dir_all(&folder));
    let wanted = rows(&rebuilt?);
    let found = match catalog.dump().await {
        Ok(dump) => rows(&dump),
        Err(error) => {
            note(
                report,
                catalog.location(),
                format!("a row cannot be read: {error}"),
            );
            return Ok(());
        }
    };
    let odd = found
        .difference(&wanted)
        .map(|row| (row, "holds a row that the lake does not give"));
    let lacking = wanted
        .difference(&found)
        .map(|row| (row, "lacks a row that the lake gives"));
    let differences: Vec<_> = odd.chain(lacking).collect();
    for (row, what) in differences.iter().take(MAX_ROWS) {
        let shown: String = row.1.chars().take(MAX_SHOWN).collect();
        note(
            report,
            format!("table {}", row.0),
            format!("{what}: {shown}"),
        );
    }
    if differences.len() > MAX_ROWS {
        let more = differences.len() - MAX_ROWS;
        note(
            report,
            catalog.location(),
            format!("{more} more rows differ"),
        );
    }
    Ok(())
}

async fn rebuild_in(lake: &Lake, folder: &std::path::Path) -> Result<String> {
    let rebuilt = SqliteCatalog::open(folder.join("catalog.db")).await?;
    sync_all(lake, &rebuilt).await?;
    let dump = rebuilt.dump().await;
    rebuilt.close().await;
    dump
}

/// Rows as (table, JSON).
fn rows(dump: &str) -> BTreeSet<(String, String)> {
    dump.lines()
        .filter_map(|line| {
            let value: Value = serde_json::from_str(line).ok()?;
            let table = value.get("table")?.as_str()?.to_owned();
            (table != "source_info").then(|| (table, line.to_owned()))
        })
        .collect()
}

fn note(report: &mut AuditReport, subject: String, message: String) {
    report.findings.push(Finding {
        invariant: "CAT-6",
        severity: Severity::Error,
        dataset: None,
        subject,
        message,
        repair: Repair::Manual {
            advice: "the lake wins: run `lakebed catalog rebuild`".into(),
        },
    });
}
