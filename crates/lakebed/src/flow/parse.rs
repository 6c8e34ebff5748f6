//! Parse as a stage: the packs of a date through the rules, and the records into their datasets, one commit a pack
//! and dataset.
//!
//! ```text
//! packs ──> which of them are stored? (labels in the log) ──> pages ──> records and rejects, on disk
//!                                                                            |
//!      ingest: appended pack by pack, or as one revision of all packs where rules or packs have changed
//! ```
//! FLW-1: the same packs and rules give the same rows, once, at any number of threads and in whatever portions the
//! packs come: rules and pack are the label of an input, and the label is asked of the log. FLW-2: every capture
//! that made its request done is counted once: parsed, rejected, or fitting no rule. PRS-4: what readers see of a
//! date came by one set of rules.
//!
//! | part | what it does |
//! | --- | --- |
//! | `pages` | pages through the rules |
//! | `gather` | what comes of them, on disk |
//! | `store` | what is to be stored, and how |
//! | `report` | what became of the date |
//! | `schemas` | the schema files that follow from the rules |

mod gather;
pub(super) mod pages;
mod report;
mod schemas;
mod store;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::catalog::Catalog;
use crate::config::SourceConfig;
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::flow::guard::{check_schemas, lock_folder};
use crate::flow::packs::{SourcePack, list_packs};
use crate::ingest::Progress;
use crate::ingest::decode::Mismatch;
use crate::name::{BatchLabel, DatasetName, DatasetRef, Layer};
use crate::parse::{EmptyField, Rules};
use crate::spec::By;
use crate::store::Lake;
use crate::time::BusinessDate;

use gather::{Gathered, Gatherer};
use pages::{Parsing, bytes_of, parse_packs};
pub use report::{ParseReport, ParsedDataset, ParsedPack, StoredAs};
pub use schemas::{RuleSchema, RuleSchemaOptions, SchemaFileState, write_rule_schemas};
use store::plan_dataset;

/// The folder of what is not stored yet, within that of the date.
const WORK: &str = "work";

/// How a date is parsed.
#[derive(Debug, Clone)]
pub struct ParseOptions {
    /// The source's folder: commands run there.
    pub folder: PathBuf,
    /// A folder for the call: files of records lie there until they are stored.
    pub kept: PathBuf,
    /// What happens to records that do not fit their schema.
    pub mismatch: Mismatch,
    /// Who asks.
    pub by: By,
    /// Whether the records may take the place of rows that no replay made, or of more than twice as many.
    pub replace: bool,
    /// Whether packs that came after a date was sealed are added to it; it stays sealed.
    pub late: bool,
    /// Workers; `None` = the machine's cores.
    pub threads: Option<usize>,
}

/// One call over one date.
struct Call<'a> {
    lake: &'a Lake,
    catalog: &'a dyn Catalog,
    source: &'a SourceConfig,
    date: BusinessDate,
    options: &'a ParseOptions,
    progress: &'a dyn Progress,
    /// The packs of the date with the label that rules and pack give their input.
    packs: Vec<(SourcePack, BatchLabel)>,
}

/// Parses the packs of a date and stores what they give and is not there yet; `None` where the date has no pack.
///
/// # Errors
/// Whatever reading a pack, a program that parses, or an ingest answers.
pub async fn parse_date(
    lake: &Lake,
    catalog: &dyn Catalog,
    rules: &Rules,
    (source, date): (&SourceConfig, BusinessDate),
    options: &ParseOptions,
    progress: &dyn Progress,
) -> Result<Option<ParseReport>> {
    let packs = list_packs(lake, &source.name, date, date).await?;
    if packs.is_empty() {
        return Ok(None);
    }
    let labels = packs.iter().map(|pack| store::label_of(rules, pack));
    let labels = labels.collect::<Result<Vec<_>>>()?;
    let call = Call {
        lake,
        catalog,
        source,
        date,
        options,
        progress,
        packs: packs.into_iter().zip(labels).collect(),
    };
    check_schemas(lake, rules.datasets().into_iter().map(clean)).await?;
    let _turn = lock_folder(&options.kept, "parse the date")?;
    let mut plans = Vec::new();
    for dataset in rules.datasets() {
        plans.push(plan_dataset(&call, clean(dataset)).await?);
    }
    let mut wanted: Vec<usize> = plans.iter().flat_map(|p| p.wanted.clone()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let (gathered, empty_fields) = call.gather(rules, &wanted)?;
    // Nothing is stored before all of it may be.
    for plan in &plans {
        call.check(plan, &gathered)?;
    }
    kill_point("parse.gathered");
    let mut datasets = Vec::new();
    for plan in plans {
        datasets.push(call.store(plan, &gathered).await?);
    }
    call.clean_up(&datasets)?;
    let packs = call.tell_packs(&datasets, &gathered);
    let datasets = datasets.into_iter().map(|(dataset, _)| dataset).collect();
    let mut report = ParseReport::new(source, date, packs, datasets);
    report.empty_fields = empty_fields;
    Ok(Some(report))
}

fn clean(dataset: DatasetName) -> DatasetRef {
    DatasetRef {
        layer: Layer::Clean,
        dataset,
    }
}

/// What the packs gave that were read, by their place in the list.
type Read = BTreeMap<usize, Gathered>;

impl Call<'_> {
    /// Reads the wanted packs, and tells which fields had no value in any record.
    fn gather(&self, rules: &Rules, wanted: &[usize]) -> Result<(Read, Vec<EmptyField>)> {
        if wanted.is_empty() {
            return Ok((Read::new(), Vec::new()));
        }
        let packs: Vec<&SourcePack> = wanted.iter().map(|n| &self.packs[*n].0).collect();
        let parsing = Parsing {
            rules,
            beside: None,
            folder: &self.options.folder,
            threads: self.options.threads,
        };
        let folder = self.options.kept.join(WORK);
        let mut gatherer = Gatherer::new(&folder, (rules, packs.len()), self.progress)?;
        self.progress.begin(Some(bytes_of(&packs)?));
        let read = parse_packs(&packs, &parsing, |came| gatherer.take(came));
        self.progress.end();
        read?;
        let places = wanted.iter().copied();
        let (gathered, filled) = gatherer.finish();
        Ok((places.zip(gathered).collect(), filled.empty(self.source)))
    }

    /// What was refused is looked into; the rest is in the lake.
    fn clean_up(&self, datasets: &[store::Stored]) -> Result<()> {
        let is_refused = |(dataset, _): &store::Stored| dataset.stored == StoredAs::Refused;
        if datasets.iter().any(is_refused) {
            return Ok(());
        }
        let folder = self.options.kept.join(WORK);
        match fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("delete the folder", folder.display(), e))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// What each pack of the date gave, now or when it was stored.
    fn tell_packs(&self, datasets: &[store::Stored], gathered: &Read) -> Vec<ParsedPack> {
        let packs = self.packs.iter().enumerate();
        packs
            .map(|(n, (pack, label))| {
                let told = datasets.iter().find_map(|(_, told)| told.get(&n));
                let read = gathered.get(&n).map(|read| read.counts);
                ParsedPack {
                    run: pack.run.run.clone(),
                    label: label.clone(),
                    is_read: read.is_some(),
                    counts: read.or(told.map(|t| t.pack)).unwrap_or_default(),
                }
            })
            .collect()
    }
}
