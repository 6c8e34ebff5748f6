//! What is stored of a date: nothing, the packs that are missing, or all of them as a new revision.
//!
//! | what readers see of the date | what is done |
//! | --- | --- |
//! | every pack of the date, by these rules | nothing |
//! | some of the packs by these rules, or nothing at all | the others are added, a commit each |
//! | what other rules gave, or a pack that is not of the date any more | one revision of all packs |
//! | rows that no replay made | refused, unless they may be replaced |

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::flow::guard::{LABEL_PREFIX, check_replaced};
use crate::flow::packs::SourcePack;
use crate::flow::parse::gather::Records;
use crate::flow::parse::{Call, ParsedDataset, Read, StoredAs};
use crate::ingest::read::InputSource;
use crate::ingest::{IngestOutcome, IngestReport, IngestRequest, RevisionTarget, ingest};
use crate::log::{DatasetState, finish_moves, load};
use crate::name::{BatchLabel, CaptureId, DatasetRef, Layer};
use crate::parse::Rules;
use crate::spec::{
    DatasetCounts, InputFormat, LoadKind, PackGave, ParentSpec, Provenance, ReadSpec,
};

/// What is to be done for a dataset.
pub(super) struct DatasetPlan {
    dataset: DatasetRef,
    /// The packs that are stored now, by their place in the list.
    pub(super) wanted: Vec<usize>,
    /// Whether they take the place of what readers see.
    is_whole: bool,
    /// Whether readers see something of the date.
    has_rows: bool,
    /// What the log says of packs that are stored.
    told: Told,
    state: DatasetState,
}

/// What packs gave for a dataset, by their place in the list.
pub(super) type Told = BTreeMap<usize, PackGave>;
/// A dataset after the call, with what every pack gave for it.
pub(super) type Stored = (ParsedDataset, Told);

/// Names rules and pack.
pub(super) fn label_of(rules: &Rules, pack: &SourcePack) -> Result<BatchLabel> {
    format!(
        "{LABEL_PREFIX}{}:{}",
        rules.hash().short(),
        pack.blake3.short()
    )
    .parse()
}

/// Asks the log.
pub(super) async fn plan_dataset(call: &Call<'_>, dataset: DatasetRef) -> Result<DatasetPlan> {
    let mut state = load(call.lake, &dataset).await?.state;
    // What a call left that died is brought to its end first: that is a change of the date, too.
    finish_moves(call.lake, &mut state).await?;
    let mut seen: BTreeMap<&BatchLabel, &str> = BTreeMap::new();
    for (_, input) in state.visible_inputs(call.date) {
        let batch = input.spec.batch.as_ref();
        if let Some(batch) = batch.filter(|b| b.as_str().starts_with(LABEL_PREFIX)) {
            seen.insert(batch, &input.spec.name);
        }
    }
    let labels: BTreeSet<&BatchLabel> = call.packs.iter().map(|(_, label)| label).collect();
    let has_rows = state.visible_of(call.date).next().is_some();
    let is_whole =
        seen.keys().any(|label| !labels.contains(label)) || (has_rows && seen.is_empty());
    let mut told = Told::new();
    let mut wanted = Vec::new();
    for (n, (_, label)) in call.packs.iter().enumerate() {
        match seen.get(label).filter(|_| !is_whole) {
            Some(name) => {
                told.insert(n, name.parse()?);
            }
            None => wanted.push(n),
        }
    }
    Ok(DatasetPlan {
        dataset,
        wanted,
        is_whole,
        has_rows,
        told,
        state,
    })
}

impl Call<'_> {
    /// Whether the records may take the place of what is there.
    pub(super) fn check(&self, plan: &DatasetPlan, gathered: &Read) -> Result<()> {
        if !plan.is_whole && plan.state.is_sealed(self.date) && !self.options.late {
            let given = records_of(plan, gathered).filter(|(_, records)| gave_something(records));
            let runs: Vec<&str> = given
                .map(|(n, _)| self.packs[n].0.run.run.as_str())
                .collect();
            if !runs.is_empty() {
                return Err(self.sealed(&plan.dataset, &runs));
            }
        }
        if !plan.is_whole || self.options.replace {
            return Ok(());
        }
        let records = records_of(plan, gathered).map(|(_, r)| r.counts.records);
        check_replaced(&plan.state, &plan.dataset, self.date, records.sum())
    }

    /// That packs came after the date was sealed, which a person must know of.
    fn sealed(&self, dataset: &DatasetRef, runs: &[&str]) -> Error {
        let (date, source) = (self.date, &self.source.name);
        Error::precondition(format!(
            "{date} of `{dataset}` is sealed, and records of the run {} came after that",
            runs.join(", ")
        ))
        .hint(format!(
            "`lakebed parse {source} --date {date} --late` adds them, and the date stays sealed; then the same `lakebed run` goes on"
        ))
    }

    /// Stores what is wanted of a dataset.
    pub(super) async fn store(&self, plan: DatasetPlan, gathered: &Read) -> Result<Stored> {
        let mut told = plan.told.clone();
        let (mut inputs, mut commits) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        for (n, records) in records_of(&plan, gathered) {
            let (pack, label) = &self.packs[n];
            let gave = PackGave {
                run: pack.run.run.clone(),
                pack: gathered.get(&n).map(|g| g.counts).unwrap_or_default(),
                dataset: records.counts,
            };
            let (name, rejects) = (gave.to_string(), records.rejects.clone());
            places.push((name.clone(), records.path.as_path(), pack));
            // A date that is sealed stays so where a pack gave nothing, or where a person takes what came late.
            let keeps_seal = self.options.late || !gave_something(records);
            let input = InputSource::made(&records.path, name, label.clone(), rejects);
            inputs.push((input, keeps_seal));
            told.insert(n, gave);
        }
        let mut changed = plan.state.changed(self.date);
        let is_sealed = plan.state.is_sealed(self.date);
        let portions: Vec<(Vec<InputSource>, bool)> = match plan.is_whole {
            true if inputs.is_empty() => Vec::new(),
            true => vec![(inputs.into_iter().map(|(input, _)| input).collect(), false)],
            false => inputs
                .into_iter()
                .map(|(input, keeps_seal)| (vec![input], is_sealed && keeps_seal))
                .collect(),
        };
        let of = portions.len();
        for (n, (portion, keeps_seal)) in (1..).zip(portions) {
            self.progress.step("stores", n, of);
            let revision = match plan.is_whole {
                true => RevisionTarget::Replace,
                false => RevisionTarget::JoinUnchanged(changed),
            };
            let mut request = self.request(&plan.dataset, portion, revision);
            (request.late, request.complete) = (keeps_seal, keeps_seal);
            let mut done = ingest(self.lake, self.catalog, &request, self.progress).await?;
            name_pages(&mut done, &places);
            changed = done.log_position.unwrap_or(changed);
            let is_refused = done.outcome == IngestOutcome::Refused;
            commits.push(done);
            if is_refused {
                break;
            }
            kill_point("parse.one_stored");
        }
        let counts = told.values().map(|gave| gave.dataset);
        let dataset = ParsedDataset {
            dataset: plan.dataset.clone(),
            counts: counts.fold(DatasetCounts::default(), DatasetCounts::plus),
            stored: stored_as(&plan, &commits),
            commits,
        };
        Ok((dataset, told))
    }

    fn request(
        &self,
        dataset: &DatasetRef,
        inputs: Vec<InputSource>,
        revision: RevisionTarget,
    ) -> IngestRequest {
        let declared = self.source.dataset(dataset);
        let options = self.options;
        IngestRequest {
            dataset: dataset.clone(),
            dt: self.date,
            inputs,
            format: None,
            schema_version: None,
            read: ReadSpec {
                format: Some(InputFormat::Jsonl),
                ..ReadSpec::default()
            },
            mismatch: options.mismatch,
            batch: None,
            run: options.by.run.clone(),
            revision,
            complete: false,
            late: false,
            // That a pack gave nothing is known from then on.
            allow_empty: true,
            restore: false,
            rejects_of: None,
            load: LoadKind::Incremental,
            parents: self.parents(),
            bounds: [declared.key, declared.prune].concat(),
            provenance: Some(Provenance::Replay),
            by: options.by.clone(),
            threads: options.threads,
            group_bytes: None,
        }
    }
}

impl Call<'_> {
    /// The packs as what the records are derived from.
    fn parents(&self) -> Vec<ParentSpec> {
        let newest = self.packs.iter().map(|(pack, _)| pack.log_position).max();
        let newest = newest.map(|position| ParentSpec {
            dataset: DatasetRef {
                layer: Layer::Raw,
                dataset: self.source.name.clone().into(),
            },
            dt: self.date,
            from: None,
            revision: 0,
            position,
        });
        newest.into_iter().collect()
    }
}

/// Names the page of each row that drifted first: of the file of records nothing stays.
fn name_pages(report: &mut IngestReport, places: &[(String, &Path, &SourcePack)]) {
    for item in report.drift.items_mut() {
        let place = places.iter().find(|(name, ..)| *name == item.file);
        item.page = place.and_then(|(_, records, pack)| page_of(records, item.line, pack));
    }
}

/// URL and `_raw` of the page that a row came from, by its line.
fn page_of(records: &Path, line: u64, pack: &SourcePack) -> Option<String> {
    let before = usize::try_from(line.checked_sub(1)?).ok()?;
    let mut lines = BufReader::new(File::open(records).ok()?).lines();
    let record: serde_json::Value = serde_json::from_str(&lines.nth(before)?.ok()?).ok()?;
    let raw = record.get("_raw")?.as_str()?;
    let capture: CaptureId = raw.rsplit('/').next()?.parse().ok()?;
    let found = pack.open().and_then(|p| p.index()?.find_capture(&capture));
    Some(match found.ok().flatten() {
        Some(row) => format!("{} (`_raw` {raw})", row.url),
        None => format!("`_raw` {raw}"),
    })
}

fn gave_something(records: &Records) -> bool {
    records.counts.records > 0 || records.counts.rejects > 0
}

/// The records that are wanted, in the order of the packs.
fn records_of<'a>(
    plan: &'a DatasetPlan,
    gathered: &'a Read,
) -> impl Iterator<Item = (usize, &'a Records)> {
    let wanted = plan.wanted.iter();
    wanted.filter_map(|n| Some((*n, gathered.get(n)?.datasets.get(&plan.dataset.dataset)?)))
}

fn stored_as(plan: &DatasetPlan, commits: &[IngestReport]) -> StoredAs {
    let any = |outcome| commits.iter().any(|c| c.outcome == outcome);
    match (any(IngestOutcome::Refused), any(IngestOutcome::Committed)) {
        (true, _) => StoredAs::Refused,
        (false, false) => StoredAs::AlreadyThere,
        (false, true) if plan.is_whole => StoredAs::Revision,
        (false, true) if plan.has_rows => StoredAs::Appended,
        (false, true) => StoredAs::New,
    }
}
