//! `source test`: whether the records of the fixtures fit the schemas of their datasets, published or about to be.
//!
//! It is really tried: the versions are published in a lake that is thrown away, and the records stored there.

use std::fs;
use std::sync::Arc;

use lakebed::catalog::SqliteCatalog;
use lakebed::config::Evolution;
use lakebed::ingest::convert::DriftItem;
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::InputSource;
use lakebed::ingest::{IngestOutcome, IngestReport, IngestRequest, RevisionTarget, Silent, ingest};
use lakebed::name::{DatasetName, DatasetRef, Layer};
use lakebed::registry::{self, PublishOptions};
use lakebed::spec::{InputFormat, LoadKind, ReadSpec, SchemaSpec};
use lakebed::store::{Lake, LocalStore};
use lakebed::time::Clock;
use lakebed::{Error, Result};

use super::check::Check;
use crate::commands::parse::{Ruled, TestedPage};
use crate::context::{Context, Globals};
use crate::table::count;

/// The day on which records of fixtures are stored in the lake that is thrown away.
const TRIAL_DATE: &str = "2000-01-01";
/// Places that are shown of a dataset.
const MAX_PLACES: usize = 20;

/// The records that a fixture gave of a dataset, as JSON lines.
struct Lines {
    fixture: String,
    text: String,
}

/// What is to be said of the datasets.
#[derive(Default)]
struct Told {
    found: Vec<String>,
    hints: Vec<String>,
    published: u64,
    records: u64,
}

impl Told {
    fn hint(&mut self, hint: String) {
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }
}

/// Whether every dataset has a published schema that the records of the fixtures fit; where nothing is published,
/// whether they fit the file that would be.
pub(super) async fn check_schemas(
    ruled: &Ruled,
    pages: &[TestedPage],
    globals: &Globals<'_>,
) -> Result<Check> {
    let context = Context::open(globals).await?;
    let mut told = Told::default();
    for name in ruled.rules.datasets() {
        let lines = lines_of(&name, pages);
        let dataset = DatasetRef {
            layer: Layer::Clean,
            dataset: name,
        };
        let listed = registry::list_published(context.lake(), &dataset).await?;
        let versions: Vec<SchemaSpec> = listed.into_iter().map(|(p, _)| p.schema).collect();
        match versions.is_empty() {
            true => check_unpublished(&dataset, &lines, &context, &mut told).await?,
            false => {
                told.published += 1;
                told.records += lines.iter().map(records_in).sum::<u64>();
                let misfits = try_records(&dataset, &versions, &lines, &context).await?;
                if !misfits.is_empty() {
                    told.hint(format!(
                        "mend the rules, or let `lakebed parse {} --schema` write the next version",
                        dataset.source()
                    ));
                    let version = versions.len();
                    told.found.push(format!(
                        "{dataset}: version {version} does not fit the records of the fixtures"
                    ));
                    told.found.extend(misfits);
                }
            }
        }
    }
    Ok(match told.found.is_empty() {
        true => Check::pass(
            "schema",
            format!(
                "{} published, which {} of the fixtures fit",
                count(told.published, "dataset"),
                count(told.records, "record")
            ),
        ),
        false => Check::fail("schema", told.found, told.hints),
    })
}

/// Nothing is published: the file is tried.
async fn check_unpublished(
    dataset: &DatasetRef,
    lines: &[Lines],
    context: &Context<'_>,
    told: &mut Told,
) -> Result<()> {
    let project = context.project();
    let path = project.schema_file(dataset, 1);
    let file = path.strip_prefix(project.root()).unwrap_or(&path).display();
    let source = dataset.source();
    if !path.exists() {
        told.found
            .push(format!("{dataset} has no published schema, and no {file}"));
        told.hint(format!(
            "`lakebed parse {source} --schema` writes it from the rules"
        ));
        return Ok(());
    }
    let (text, _) = project.read_schema_file(dataset, 1)?;
    let tried = match registry::parse(&text, &file) {
        Ok(spec) => try_records(dataset, &[spec], lines, context).await,
        Err(e) => Err(e),
    };
    let misfits = match tried {
        Ok(misfits) => misfits,
        Err(e) => {
            told.found.push(format!("{file}: {e}"));
            told.found.extend(e.details().iter().cloned());
            e.hints().iter().for_each(|h| told.hint(h.clone()));
            return Ok(());
        }
    };
    if misfits.is_empty() {
        let records: u64 = lines.iter().map(records_in).sum();
        let records = count(records, "record");
        told.found.push(format!(
            "{dataset} has no published schema; {file} fits {records} of the fixtures"
        ));
        told.hint(format!(
            "look at it, then `lakebed schema publish {dataset} 1`: once published it stays"
        ));
    } else {
        told.found.push(format!(
            "{file} does not fit the records of the fixtures, and is not published"
        ));
        told.found.extend(misfits);
        told.hint(format!(
            "`lakebed parse {source} --schema` writes it anew from the rules"
        ));
    }
    Ok(())
}

fn records_in(lines: &Lines) -> u64 {
    lines.text.lines().count() as u64
}

/// The records of a dataset, fixture by fixture.
fn lines_of(dataset: &DatasetName, pages: &[TestedPage]) -> Vec<Lines> {
    let mut all = Vec::new();
    for page in pages {
        let mut text = String::new();
        let records = page.parsed.iter().flat_map(|p| &p.records);
        for record in records.filter(|r| r.dataset == *dataset) {
            text.push_str(&record.record.to_json());
            text.push('\n');
        }
        if !text.is_empty() {
            let fixture = page.name.clone();
            all.push(Lines { fixture, text });
        }
    }
    all
}

/// Ingests the records into a lake that is thrown away; where they do not fit, a line each.
async fn try_records(
    dataset: &DatasetRef,
    versions: &[SchemaSpec],
    lines: &[Lines],
    context: &Context<'_>,
) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().map_err(|e| Error::io("make a folder for a trial", "", e))?;
    let store = Arc::new(LocalStore::new(folder.path().join("lake")));
    let lake = Lake::open_or_create(
        store,
        Arc::new(Clock::System),
        &context.lake().spec().time_zone,
    )
    .await?;
    let catalog = SqliteCatalog::open(folder.path().join("catalog.db")).await?;
    let by = context.by(None, None);
    for spec in versions {
        let options = PublishOptions {
            by: by.clone(),
            git_commit: None,
            evolution: Evolution::Free,
        };
        let _published = registry::publish(&lake, spec, &options).await?;
    }
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let mut inputs = Vec::new();
    for (n, lines) in (1..).zip(lines) {
        let file = folder.path().join(format!("{n}.jsonl"));
        fs::write(&file, &lines.text)
            .map_err(|e| Error::io("write the file", file.display(), e))?;
        let label = format!("fixture-{n}").parse()?;
        inputs.push(InputSource::made(&file, lines.fixture.clone(), label, None));
    }
    let request = IngestRequest {
        dataset: dataset.clone(),
        dt: TRIAL_DATE.parse()?,
        inputs,
        format: None,
        schema_version: None,
        read: ReadSpec {
            format: Some(InputFormat::Jsonl),
            ..ReadSpec::default()
        },
        mismatch: Mismatch::Fail,
        batch: None,
        run: None,
        revision: RevisionTarget::Join,
        complete: false,
        late: false,
        allow_empty: false,
        restore: false,
        rejects_of: None,
        load: LoadKind::Incremental,
        parents: Vec::new(),
        bounds: Vec::new(),
        provenance: None,
        by,
        threads: None,
        group_bytes: None,
    };
    let report = ingest(&lake, &catalog, &request, &Silent).await?;
    Ok(match report.outcome {
        IngestOutcome::Refused => misfits(&report),
        IngestOutcome::Committed | IngestOutcome::AlreadyThere => Vec::new(),
    })
}

/// What does not fit, with the fixture of the first one.
fn misfits(report: &IngestReport) -> Vec<String> {
    let mut lines: Vec<String> = report.drift.items().map(misfit).collect();
    let beyond = (lines.len().saturating_sub(MAX_PLACES) as u64) + report.drift.unlisted();
    lines.truncate(MAX_PLACES);
    if beyond > 0 {
        lines.push(format!("... and {beyond} more"));
    }
    lines
}

fn misfit(item: &DriftItem) -> String {
    let samples: Vec<String> = item.samples.iter().map(|s| format!("`{s}`")).collect();
    let such_as = match samples.is_empty() {
        true => String::new(),
        false => format!(", such as {}", samples.join(", ")),
    };
    format!(
        "{}: {} x{such_as}; first in {}, record {}: {}",
        item.path, item.count, item.file, item.line, item.reason
    )
}
