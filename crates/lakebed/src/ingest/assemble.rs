//! From staged files to a draft of the commit: final names, actions, requirements, and the report.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{LastSchema, read_footer_stats};
use crate::error::{Error, Result};
use crate::ingest::bounds::{Bounds, bounds_of};
use crate::ingest::call::{Attempt, Call, Planned};
use crate::ingest::convert::PresenceCounts;
use crate::ingest::decode::DecodeStats;
use crate::ingest::pipeline::InputResult;
use crate::ingest::request::{
    IngestOutcome, IngestReport, REPORT_FORMAT, ReplacedRevision, RevisionTarget, SkippedInput,
    StoredInput, WrittenFile,
};
use crate::ingest::write::StagedFile;
use crate::log::{DatasetState, Draft, LoggedRecord};
use crate::name::{BatchLabel, ContentHash};
use crate::spec::{
    Action, DataFileSpec, FieldSpec, InputSpec, Operation, Provenance, RejectsFileSpec, Requirement,
};
use crate::store::{
    MoveOutcome, StorePath, data_file_path, partition_dir, rejects_dir, staged_path, superseded_dir,
};
use crate::time::{BusinessDate, time_zone};

/// Staged files with their final names.
#[derive(Debug, Default)]
pub(super) struct NamedFiles {
    files: Vec<DataFileSpec>,
    rejects: Option<RejectsFileSpec>,
}

/// What a call has made.
pub(super) struct Produced {
    pub(super) provenance: Provenance,
    is_refused: bool,
    hints: Vec<String>,
    logged: Option<LoggedRecord>,
    replaced: Option<ReplacedRevision>,
    files: Vec<WrittenFile>,
    rejects_file: Option<String>,
    inputs: Vec<StoredInput>,
    stats: DecodeStats,
}

impl Produced {
    /// Nothing was written, because records do not fit.
    pub(super) fn refused(stats: DecodeStats, hints: Vec<String>, provenance: Provenance) -> Self {
        Self {
            is_refused: true,
            hints,
            provenance,
            stats,
            ..Self::nothing(&[])
        }
    }

    pub(super) fn outcome(&self) -> IngestOutcome {
        match (&self.logged, self.is_refused) {
            (Some(_), _) => IngestOutcome::Committed,
            (None, true) => IngestOutcome::Refused,
            (None, false) => IngestOutcome::AlreadyThere,
        }
    }

    pub(super) fn nothing(fields: &[FieldSpec]) -> Self {
        Self {
            provenance: Provenance::Live,
            is_refused: false,
            hints: Vec::new(),
            logged: None,
            replaced: None,
            files: Vec::new(),
            rejects_file: None,
            inputs: Vec::new(),
            stats: DecodeStats {
                presence: PresenceCounts::new(fields),
                ..DecodeStats::default()
            },
        }
    }
}

impl Call<'_> {
    /// Gives staged files their final names: number, then the hash of identities, rules and bytes.
    pub(super) async fn name_files(&self, attempt: &Attempt) -> Result<NamedFiles> {
        let staged = &attempt.staged;
        let mut identity = blake3::Hasher::new();
        for (input, result) in attempt.planned.iter().zip(&staged.inputs) {
            identity.update(result.facts.content.as_str().as_bytes());
            let rules = self.rules_of(&input.source, result.facts.form)?;
            identity.update(rules.as_bytes());
            if let Some(batch) = input.source.own_batch() {
                identity.update(batch.as_str().as_bytes());
            }
        }
        if let Some(commit) = &self.request.rejects_of {
            // All records of an input refused, and refused again: the same bytes, another observation.
            identity.update(commit.as_str().as_bytes());
        }
        if let Some(batch) = &self.request.batch {
            identity.update(batch.as_str().as_bytes());
        }
        // Files of two revisions never share a name, so that no mover takes one for the other.
        if attempt.key.revision > 0 {
            identity.update(&attempt.key.revision.to_le_bytes());
        }
        let hash_of = |file: &StagedFile| {
            let mut hasher = identity.clone();
            hasher.update(file.blake3.as_str().as_bytes());
            ContentHash::finish(&hasher).short().to_owned()
        };
        let mut named = NamedFiles::default();
        for (n, file) in staged.files.iter().enumerate() {
            let format = self.format();
            let name = format!("part-{n:05}-{}.{}", hash_of(file), format.extension());
            let last = data_file_path(&self.request.dataset, &attempt.key, &name);
            self.rename(attempt, &file.path, &last).await?;
            let mut spec = DataFileSpec {
                name,
                format,
                rows: file.rows,
                bytes: file.bytes,
                blake3: file.blake3.clone(),
                provenance: Provenance::Live,
                bounds: BTreeMap::new(),
                parents: Vec::new(),
            };
            spec.bounds = self.bounds_of(attempt, &spec).await?;
            named.files.push(spec);
        }
        if let Some(file) = &staged.rejects {
            let name = format!("rejects-{}.jsonl.zst", hash_of(file));
            let last = rejects_dir(&self.request.dataset, self.request.dt).child(&name);
            self.rename(attempt, &file.path, &last).await?;
            named.rejects = Some(RejectsFileSpec {
                name,
                records: file.rows,
                bytes: file.bytes,
                blake3: file.blake3.clone(),
            });
        }
        Ok(named)
    }

    /// Bounds of the declared columns, from the footer of the staged file.
    async fn bounds_of(&self, attempt: &Attempt, file: &DataFileSpec) -> Result<Bounds> {
        let names = &self.request.bounds;
        if names.is_empty() {
            return Ok(Bounds::new());
        }
        let dataset = &self.request.dataset;
        let (id, mut schema) = (Some(&attempt.id), LastSchema::default());
        let read = read_footer_stats(self.lake, dataset, &attempt.key, file, id, &mut schema);
        match read.await? {
            Some(stats) => bounds_of(&self.fields, names, &stats),
            None => Ok(Bounds::new()),
        }
    }

    async fn rename(&self, attempt: &Attempt, path: &StorePath, last: &StorePath) -> Result<()> {
        let staged = staged_path(&attempt.id, last);
        match self.lake.store().move_file(path, &staged).await? {
            MoveOutcome::Moved | MoveOutcome::AlreadyMoved => Ok(()),
            MoveOutcome::Missing => Err(Error::conflict(format!(
                "staged file of attempt `{}` is gone",
                attempt.id
            ))
            .hint("a repair gave the attempt up; call again, nothing was written")
            .retryable()),
        }
    }

    pub(super) fn draft(
        &self,
        state: &DatasetState,
        attempt: &Attempt,
        files: &NamedFiles,
        provenance: Provenance,
    ) -> Result<Draft> {
        let request = self.request;
        let (dt, partition) = (request.dt, attempt.key);
        let mut draft = if self.corrects() {
            self.correction(state, attempt)?
        } else {
            self.append(state, attempt)?
        };
        draft.attempt = Some(attempt.id.clone());
        if let Some(commit) = request.rejects_of.clone() {
            draft.actions.push(Action::RetryRejects { dt, commit });
        }
        for file in &files.files {
            let file = DataFileSpec {
                provenance,
                ..file.clone()
            };
            draft.actions.push(Action::AddFile { partition, file });
        }
        for (input, result) in attempt.planned.iter().zip(&attempt.staged.inputs) {
            let spec = self.input_spec(input, result)?;
            let met = state
                .visible_inputs(dt)
                .any(|(_, i)| i.spec.content == spec.content);
            if !self.corrects() && (request.rejects_of.is_none() || !met) {
                draft.requires.push(Requirement::InputAbsent {
                    dt,
                    content: spec.content.clone(),
                    batch: spec.batch.clone(),
                });
            }
            draft.actions.push(Action::AddInput {
                partition,
                input: spec,
            });
        }
        if let Some(file) = &files.rejects {
            draft.actions.push(Action::AddRejects {
                dt,
                file: file.clone(),
            });
        }
        if request.complete {
            draft.actions.push(Action::Complete { dt });
        }
        Ok(draft)
    }

    /// The draft of an append, before its files and inputs.
    fn append(&self, state: &DatasetState, attempt: &Attempt) -> Result<Draft> {
        let dt = self.request.dt;
        let mut draft = Draft::new(self.lake, Operation::Append, self.request.by.clone())?;
        draft.requires = self.requirements(state, attempt);
        if attempt.sealed {
            draft.actions.push(Action::Open { dt });
        }
        Ok(draft)
    }

    /// What must hold beside what the inputs ask for.
    fn requirements(&self, state: &DatasetState, attempt: &Attempt) -> Vec<Requirement> {
        let request = self.request;
        let dt = request.dt;
        let mut requires = vec![
            Requirement::AttemptOpen {
                attempt: attempt.id.clone(),
            },
            Requirement::PartitionActive {
                partition: attempt.key,
            },
            if attempt.sealed {
                Requirement::DateSealed { dt }
            } else {
                Requirement::DateOpen { dt }
            },
        ];
        requires.extend(self.schema_requirement());
        if let Some(commit) = request.rejects_of.clone() {
            requires.push(Requirement::RejectsWaiting { dt, commit });
        }
        if let RevisionTarget::JoinUnchanged(number) = request.revision {
            requires.push(Requirement::DateUnchanged { dt, number });
        }
        let own = attempt.planned.iter().map(|p| p.source.own_batch());
        let batches: BTreeSet<&BatchLabel> =
            own.chain([request.batch.as_ref()]).flatten().collect();
        for batch in batches {
            if state.visible_labelled(dt, batch).next().is_none() {
                requires.push(Requirement::BatchAbsent {
                    dt,
                    batch: batch.clone(),
                });
            }
        }
        requires
    }

    fn input_spec(&self, input: &Planned, result: &InputResult) -> Result<InputSpec> {
        Ok(InputSpec {
            content: result.facts.content.clone(),
            name: input.source.base_name().to_owned(),
            bytes: result.facts.bytes,
            rows: result.rows,
            rejected: result.rejected,
            rules: self.rules_of(&input.source, result.facts.form)?,
            batch: self.batch_of(&input.source).cloned(),
            load: self.request.load,
            parents: self.request.parents.clone(),
        })
    }

    /// Today in the lake's zone; `None` when the zone is unknown to this machine.
    fn today(&self) -> Option<BusinessDate> {
        let zone = time_zone(&self.lake.spec().time_zone).ok()?;
        Some(BusinessDate::of(self.lake.clock().now(), &zone))
    }

    /// A date that has not come yet may be meant, but mostly is a slip.
    pub(super) fn future_warning(&self) -> Option<String> {
        let (dt, today) = (self.request.dt, self.today()?);
        (dt > today)
            .then(|| format!("{dt} lies in the future: it is {today} in the lake's time zone"))
    }

    /// A past date that was never opened is a backfill, unless the caller says otherwise.
    pub(super) fn provenance(&self, state: &DatasetState) -> Provenance {
        let past = self.today().is_some_and(|today| self.request.dt < today);
        // What is corrected later than on its day is filled in later.
        let unopened = self.corrects() || !state.dates().contains_key(&self.request.dt);
        self.request.provenance.unwrap_or(if past && unopened {
            Provenance::Backfill
        } else {
            Provenance::Live
        })
    }

    pub(super) fn produced(
        &self,
        logged: LoggedRecord,
        attempt: Attempt,
        files: NamedFiles,
        provenance: Provenance,
    ) -> Produced {
        let replaced = attempt.replaced;
        let folder = match self.request.revision {
            RevisionTarget::Join | RevisionTarget::JoinUnchanged(_) | RevisionTarget::Replace => {
                partition_dir(&self.request.dataset, &attempt.key)
            }
            RevisionTarget::Keep => {
                superseded_dir(&self.request.dataset, logged.record.number, &attempt.key)
            }
        };
        let rejects = rejects_dir(&self.request.dataset, self.request.dt);
        let inputs = attempt.planned.iter().zip(&attempt.staged.inputs);
        Produced {
            provenance,
            is_refused: false,
            hints: Vec::new(),
            logged: Some(logged),
            replaced,
            files: files
                .files
                .into_iter()
                .map(|f| WrittenFile {
                    path: folder.child(&f.name).to_string(),
                    rows: f.rows,
                    bytes: f.bytes,
                    blake3: f.blake3,
                })
                .collect(),
            rejects_file: files.rejects.map(|f| rejects.child(&f.name).to_string()),
            inputs: inputs
                .map(|(input, result)| StoredInput {
                    name: input.source.display_name().to_owned(),
                    content: result.facts.content.clone(),
                    bytes: result.facts.bytes,
                    form: result.facts.form.as_str().to_owned(),
                    rows: result.rows,
                    rejected: result.rejected,
                    repeat_of: input.repeat_of,
                })
                .collect(),
            stats: attempt.staged.stats,
        }
    }

    pub(super) fn report(
        &self,
        produced: Produced,
        revision: u32,
        skipped: Vec<SkippedInput>,
        mut warnings: Vec<String>,
        provenance: Provenance,
    ) -> IngestReport {
        warnings.sort();
        warnings.dedup();
        let outcome = produced.outcome();
        let stats = produced.stats;
        IngestReport {
            format: REPORT_FORMAT,
            dataset: self.request.dataset.clone(),
            date: self.request.dt,
            schema_version: self.version,
            revision,
            replaced: produced.replaced,
            outcome,
            commit: produced.logged.as_ref().map(|l| l.record.commit.clone()),
            log_position: produced.logged.as_ref().map(|l| l.record.number),
            records: stats.records,
            rows: stats.rows,
            rejected: stats.rejected,
            not_records: stats.not_records,
            extra_rows: stats.extra_rows,
            lone_surrogates: stats.lone_surrogates,
            nul_characters: stats.nul_characters,
            files: produced.files,
            rejects_file: produced.rejects_file,
            inputs: produced.inputs,
            skipped,
            provenance,
            complete: false,
            warnings,
            hints: produced.hints,
            drift: stats.drift,
            presence: stats.presence,
        }
    }
}
