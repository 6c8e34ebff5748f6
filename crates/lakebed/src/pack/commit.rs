//! A sealed pack goes into the lake: staged, read back, indexed, and committed by one record of `raw/<source>`.
//!
//! ```text
//! plan -> stage pack, durable -> read it back -> stage index, durable -> log record -> moves -> catalog
//! ```
//!
//! PAK-7: what is committed was read back from its file: every frame, body and line, and it holds what was
//! planned. PAK-8: a run has one pack; the run's name is the label of its input in the log. Sealing the same
//! content again changes nothing, other content is refused.

use std::io::Write;
use std::path::PathBuf;

use crate::catalog::{Catalog, check_past, sync};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::{
    CommitOutcome, DatasetState, Draft, InputAnswer, InputQuery, Refusal, SealOutcome, answer,
    commit, finish_moves, load, refusal, seal, withdraw_success, write_success,
};
use crate::name::{AttemptId, BatchLabel, CommitId, ContentHash, DatasetRef, Layer};
use crate::pack::index::write_index;
use crate::pack::scan::{PackScan, scan_pack};
use crate::pack::seal::{PackPlan, SealStats};
use crate::pack::source::FileSource;
use crate::spec::{
    Action, By, DataFileSpec, FileFormat, InputSpec, LoadKind, Operation, PACK_RULES, PartitionKey,
    Provenance, Requirement, RunKey, SCHEMALESS_VERSION,
};
use crate::store::{Lake, StageFile, StorePath, data_file_path, stage_dir, staged_path};
use crate::time::unique_id;

/// How often a call starts over before it gives up.
const MAX_ROUNDS: usize = 20;

/// How a pack is committed.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// Who does it.
    pub by: By,
    /// Whether the date is complete with this run: then it is sealed in the log.
    pub complete: bool,
    /// Whether the run may join a date that is sealed; the date is open then, until it is sealed again.
    pub late: bool,
    /// How its responses came to be.
    pub provenance: Provenance,
}

/// What a commit did.
#[derive(Debug, Clone, serde::Serialize)]
pub struct PackReport {
    /// `raw/<source>`.
    pub dataset: DatasetRef,
    /// Its run.
    #[serde(flatten)]
    pub run: RunKey,
    /// Whether the lake held this pack before; then nothing changed.
    pub already_there: bool,
    /// The pack within the lake.
    pub pack: String,
    /// The index within the lake.
    pub index: String,
    /// Bytes of the pack; absent where it was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes of the index; absent where it was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_bytes: Option<u64>,
    /// The identity of what it holds.
    pub content: ContentHash,
    /// What was counted.
    #[serde(flatten)]
    pub stats: SealStats,
    /// The commit; absent where it was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The record that holds it.
    pub log_position: u64,
    /// Whether the date is complete.
    pub complete: bool,
    /// What is committed but not finished; empty = nothing.
    pub warnings: Vec<String>,
}

/// The dataset of a source's packs.
pub fn raw_dataset(run: &RunKey) -> Result<DatasetRef> {
    Ok(DatasetRef {
        layer: Layer::Raw,
        dataset: run.source.as_str().parse()?,
    })
}

/// Writes the pack of the plan into the lake.
///
/// # Errors
/// `PreconditionFailed` where the run has another pack, its date is sealed, or its content was erased or
/// retired; `CorruptData` where what was written cannot be read back. In every case nothing is committed.
pub async fn commit_pack(
    lake: &Lake,
    catalog: &dyn Catalog,
    plan: PackPlan,
    options: &CommitOptions,
) -> Result<PackReport> {
    let dataset = raw_dataset(plan.run())?;
    let mut state = load(lake, &dataset).await?.state;
    check_past(lake, catalog, &dataset).await?;
    finish_moves(lake, &mut state).await?;
    let mut call = Call {
        lake,
        plan,
        options,
        dataset,
    };
    for _ in 0..MAX_ROUNDS {
        if let Some(report) = call.round(&mut state).await? {
            return Ok(call.settle(&mut state, catalog, report).await);
        }
        state.catch_up(lake).await?;
        finish_moves(lake, &mut state).await?;
    }
    let dataset = &call.dataset;
    Err(Error::conflict(format!(
        "`{dataset}` changed under this call {MAX_ROUNDS} times"
    ))
    .retryable())
}

/// Whether readers of the lake see a pack of the run.
///
/// # Errors
/// Where the log cannot be read.
pub async fn has_pack(lake: &Lake, run: &RunKey) -> Result<bool> {
    let state = load(lake, &raw_dataset(run)?).await?.state;
    let label: BatchLabel = run.run.as_str().parse()?;
    Ok(state.visible_labelled(run.date, &label).next().is_some())
}

struct Call<'a> {
    lake: &'a Lake,
    plan: PackPlan,
    options: &'a CommitOptions,
    dataset: DatasetRef,
}

/// The two files of a pack as they were staged.
struct Staged {
    pack: DataFileSpec,
    index: DataFileSpec,
}

impl Call<'_> {
    fn key(&self, state: &DatasetState) -> PartitionKey {
        let dt = self.plan.run().date;
        PartitionKey {
            dt,
            schema_version: SCHEMALESS_VERSION,
            revision: state.active_revision(dt),
        }
    }

    fn label(&self) -> Result<BatchLabel> {
        self.plan.run().run.as_str().parse()
    }

    /// One try; `None` where something changed meanwhile and nothing was committed.
    async fn round(&mut self, state: &mut DatasetState) -> Result<Option<PackReport>> {
        let key = self.key(state);
        let label = self.label()?;
        let query = InputQuery {
            dt: key.dt,
            content: self.plan.content(),
            batch: Some(&label),
            rules: PACK_RULES,
            schema_version: SCHEMALESS_VERSION,
            restore: false,
            replaces: false,
            is_retry: false,
        };
        match answer(state, &query) {
            InputAnswer::AlreadyThere { number } => {
                return Ok(Some(self.report(&key, None, None, number)));
            }
            InputAnswer::Refused(Refusal::BatchTaken { number, .. }) => {
                return Err(self.other_pack(number));
            }
            InputAnswer::Refused(why) => {
                let error = why.into_error(label.as_str(), key.dt);
                return Err(error.with("invariant", "PAK-8"));
            }
            InputAnswer::New { .. } | InputAnswer::Repeat { .. } => {}
        }
        let sealed = state.is_sealed(key.dt);
        if sealed && !self.options.late {
            return Err(self.sealed());
        }
        let attempt: AttemptId = unique_id(self.lake.clock()).parse()?;
        let outcome = match self.stage(&attempt, &key) {
            Ok(staged) => self.put(state, &key, &attempt, staged).await,
            Err(error) => Err(error),
        };
        if !matches!(outcome, Ok(Some(_))) {
            self.discard(state, &attempt, key).await;
        }
        match outcome {
            // A repair that takes the stage away first puts its record: this call starts over.
            Err(_) if state.is_abandoned(&attempt) => Ok(None),
            outcome => outcome,
        }
    }

    fn other_pack(&self, number: u64) -> Error {
        let run = self.plan.run();
        Error::precondition(format!(
            "record {number} holds a pack of `{run}` with other captures"
        ))
        .with("invariant", "PAK-8")
        .hint("a run has one pack; what came later belongs to a run of its own")
    }

    fn sealed(&self) -> Error {
        let (dt, dataset) = (self.plan.run().date, &self.dataset);
        Error::precondition(format!("{dt} of `{dataset}` is sealed")).hint(format!(
            "open the date: `lakebed reopen {dataset} --date {dt}`; `lakebed pack seal` takes `--late` instead"
        ))
    }

    /// Writes both files into the stage, the pack read back before its index is made.
    fn stage(&mut self, attempt: &AttemptId, key: &PartitionKey) -> Result<Staged> {
        let name = self.plan.file_name();
        let path = data_file_path(&self.dataset, key, &name.pack());
        let mut out = HashedFile::create(self.lake, &staged_path(attempt, &path))?;
        let (written, trailer) = self.plan.write(&mut out)?;
        let (bytes, blake3) = (written.bytes, ContentHash::finish(&written.hasher));
        out.finish()?;
        kill_point("pack.staged");
        let local = self.local(&staged_path(attempt, &path))?;
        let scan = scan_pack(&FileSource::open(&local)?)?;
        scan.check(&local.display().to_string())?;
        if scan.trailer != trailer || scan.trailer.content != *self.plan.content() {
            return Err(Error::internal(
                "a pack that was read back does not hold what was planned",
            )
            .with("invariant", "PAK-7"));
        }
        let pack = self.file(name.pack(), FileFormat::Rawpack, bytes, blake3);
        let index = self.stage_index(attempt, key, &name.index(), &scan)?;
        let pack = DataFileSpec {
            rows: scan.trailer.captures,
            ..pack
        };
        Ok(Staged { pack, index })
    }

    fn stage_index(
        &self,
        attempt: &AttemptId,
        key: &PartitionKey,
        name: &str,
        scan: &PackScan,
    ) -> Result<DataFileSpec> {
        let index = write_index(&scan.rows, &scan.trailer.content)?;
        let path = data_file_path(&self.dataset, key, name);
        let mut out = HashedFile::create(self.lake, &staged_path(attempt, &path))?;
        out.write_all(&index)
            .map_err(|e| Error::io("write the index", path, e))?;
        out.finish()?;
        let (bytes, blake3) = (index.len() as u64, ContentHash::of(&index));
        Ok(self.file(name.to_owned(), FileFormat::RawpackIndex, bytes, blake3))
    }

    fn local(&self, path: &StorePath) -> Result<PathBuf> {
        self.lake.store().local_path(path).ok_or_else(|| {
            Error::unavailable("read back a staged pack: the store keeps no local files")
        })
    }

    fn file(
        &self,
        name: String,
        format: FileFormat,
        bytes: u64,
        blake3: ContentHash,
    ) -> DataFileSpec {
        DataFileSpec {
            name,
            format,
            rows: 0,
            bytes,
            blake3,
            provenance: self.options.provenance,
            bounds: std::collections::BTreeMap::new(),
            parents: Vec::new(),
        }
    }

    /// Puts the record; `None` where something changed meanwhile.
    async fn put(
        &self,
        state: &mut DatasetState,
        key: &PartitionKey,
        attempt: &AttemptId,
        staged: Staged,
    ) -> Result<Option<PackReport>> {
        let sealed = state.is_sealed(key.dt);
        let draft = self.draft(key, attempt, &staged, sealed)?;
        if sealed {
            withdraw_success(self.lake, state, key.dt).await?;
        }
        kill_point("pack.before_commit");
        match commit(self.lake, state, &draft).await? {
            CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
                let number = logged.record.number;
                let commit = logged.record.commit;
                Ok(Some(self.report(key, Some(&staged), Some(commit), number)))
            }
            CommitOutcome::Conflict(unmet) => match unmet.requirement {
                Requirement::SchemaPublished { .. } => Err(refusal(&unmet)),
                _ => Ok(None),
            },
        }
    }

    fn draft(
        &self,
        key: &PartitionKey,
        attempt: &AttemptId,
        staged: &Staged,
        sealed: bool,
    ) -> Result<Draft> {
        let (dt, partition, label) = (key.dt, *key, self.label()?);
        let by = By {
            run: Some(self.plan.run().run.clone()),
            ..self.options.by.clone()
        };
        let mut draft = Draft::new(self.lake, Operation::Append, by)?;
        draft.attempt = Some(attempt.clone());
        let content = self.plan.content().clone();
        draft.requires = vec![
            Requirement::AttemptOpen {
                attempt: attempt.clone(),
            },
            Requirement::PartitionActive { partition },
            match sealed {
                true => Requirement::DateSealed { dt },
                false => Requirement::DateOpen { dt },
            },
            Requirement::BatchAbsent {
                dt,
                batch: label.clone(),
            },
            Requirement::InputAbsent {
                dt,
                content: content.clone(),
                batch: Some(label.clone()),
            },
        ];
        if sealed {
            draft.actions.push(Action::Open { dt });
        }
        for file in [&staged.pack, &staged.index] {
            let file = file.clone();
            draft.actions.push(Action::AddFile { partition, file });
        }
        let input = InputSpec {
            content,
            name: self.plan.run().run.to_string(),
            bytes: staged.pack.bytes,
            rows: staged.pack.rows,
            rejected: 0,
            rules: PACK_RULES.to_owned(),
            batch: Some(label),
            load: LoadKind::Incremental,
            parents: Vec::new(),
        };
        draft.actions.push(Action::AddInput { partition, input });
        if self.options.complete {
            draft.actions.push(Action::Complete { dt });
        }
        Ok(draft)
    }

    fn report(
        &self,
        key: &PartitionKey,
        staged: Option<&Staged>,
        commit: Option<CommitId>,
        log_position: u64,
    ) -> PackReport {
        let name = self.plan.file_name();
        let place = |name: &str| data_file_path(&self.dataset, key, name).to_string();
        PackReport {
            dataset: self.dataset.clone(),
            run: self.plan.run().clone(),
            already_there: staged.is_none(),
            pack: place(&name.pack()),
            index: place(&name.index()),
            bytes: staged.map(|s| s.pack.bytes),
            index_bytes: staged.map(|s| s.index.bytes),
            content: self.plan.content().clone(),
            stats: self.plan.stats(),
            commit,
            log_position,
            complete: false,
            warnings: Vec::new(),
        }
    }

    /// Everything after the commit. What fails here leaves the commit standing, so it is a warning: any
    /// later call, or `audit --repair`, finishes it.
    async fn settle(
        &self,
        state: &mut DatasetState,
        catalog: &dyn Catalog,
        mut report: PackReport,
    ) -> PackReport {
        let dt = self.plan.run().date;
        if let Err(error) = finish_moves(self.lake, state).await {
            report.warnings.push(format!(
                "committed, but not every file is at its place yet: {error}"
            ));
        }
        match self.complete_date(state).await {
            Ok(()) => report.complete = state.is_sealed(dt),
            Err(error) => report.warnings.push(format!(
                "committed, but the date could not be sealed: {error}"
            )),
        }
        if let Err(error) = sync(self.lake, catalog, &self.dataset).await {
            report.warnings.push(format!(
                "committed, but the catalog could not follow: {error}"
            ));
        }
        report
    }

    async fn complete_date(&self, state: &mut DatasetState) -> Result<()> {
        let dt = self.plan.run().date;
        if self.options.complete && !state.is_sealed(dt) {
            match seal(self.lake, state, dt, self.options.by.clone()).await? {
                SealOutcome::Done { .. } | SealOutcome::AlreadySo { .. } => {}
            }
        }
        write_success(self.lake, state, dt).await?;
        Ok(())
    }

    /// Deletes what an attempt staged, unless its record was put after all.
    async fn discard(&self, state: &mut DatasetState, attempt: &AttemptId, key: PartitionKey) {
        if state.catch_up(self.lake).await.is_err() || state.committed_attempt(attempt).is_some() {
            return;
        }
        drop(self.lake.store().delete_folder(&stage_dir(attempt)).await);
        drop(write_success(self.lake, state, key.dt).await);
    }
}

/// A staged file that is hashed as it is written.
struct HashedFile {
    file: Box<dyn StageFile>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl HashedFile {
    fn create(lake: &Lake, path: &StorePath) -> Result<Self> {
        Ok(Self {
            file: lake.store().create_stage_file(path)?,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        })
    }

    fn finish(self) -> Result<()> {
        self.file.finish()
    }
}

impl Write for HashedFile {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.file.write(buf)?;
        self.hasher.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests;
