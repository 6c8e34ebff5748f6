//! One call of ingest: replay table, pipeline, commit, moves, seal, catalog.
//!
//! ING-5: one call is one commit or none. ING-6: an input that is stored already is never stored
//! again; what is found out late (standard input, a race) discards the attempt and starts over.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Catalog, sync};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::ingest::convert::{Plan, PresenceCounts};
use crate::ingest::decode::{DecodeStats, Mismatch};
use crate::ingest::pipeline::{InputResult, Job, Staged, run as run_pipeline};
use crate::ingest::progress::Progress;
use crate::ingest::read::{InputSource, ReadOptions, hash_input, rules_hash};
use crate::ingest::report::mismatch_error;
use crate::ingest::request::{
    IngestOutcome, IngestReport, IngestRequest, REPORT_FORMAT, SkippedInput, StoredInput, WrittenFile,
};
use crate::ingest::write::StagedFile;
use crate::log::{
    CommitOutcome, DatasetState, Draft, InputAnswer, InputQuery, LoggedRecord, answer, commit, finish_moves, refusal,
    withdraw_success, write_success,
};
use crate::name::{AttemptId, ContentHash};
use crate::registry;
use crate::spec::{
    Action, DataFileSpec, FieldSpec, FileFormat, InputSpec, Operation, PartitionKey, Provenance, ReadSpec,
    RejectsFileSpec, Requirement,
};
use crate::store::{Lake, MoveOutcome, StorePath, partition_dir, rejects_dir, stage_dir};
use crate::time::{BusinessDate, time_zone, unique_id};

/// Bytes of text in a row group, unless asked otherwise.
const GROUP_BYTES: usize = 16 << 20;
/// Bytes after which a call begins its next data file.
const FILE_BYTES: usize = 1 << 30;
/// How often a call starts over before it gives up.
const MAX_ROUNDS: usize = 20;

/// Stores the inputs of one call in one commit.
///
/// # Errors
/// `PreconditionFailed` where records do not fit, the date is sealed or an input is refused;
/// `CorruptData` for a failed file. In every case nothing is committed and nothing becomes visible.
pub async fn ingest(
    lake: &Lake,
    catalog: &dyn Catalog,
    request: &IngestRequest,
    progress: &dyn Progress,
) -> Result<IngestReport> {
    let call = Call::prepare(lake, request).await?;
    let mut state = DatasetState::load(lake, &request.dataset).await?;
    finish_moves(lake, &state).await?;
    let mut known = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        match call.round(&mut state, &mut known, progress).await? {
            Round::Done(report) => {
                finish_moves(lake, &state).await?;
                let report = call.complete_date(&mut state, *report).await?;
                sync(lake, catalog, &request.dataset).await?;
                return Ok(report);
            }
            Round::Again => {
                state.catch_up(lake).await?;
            }
        }
    }
    Err(Error::conflict(format!("`{}` changed under this call {MAX_ROUNDS} times", request.dataset)).retryable())
}

/// How a round ended.
enum Round {
    Done(Box<IngestReport>),
    /// Something changed meanwhile; nothing was committed.
    Again,
}

/// What does not change over the rounds of a call.
struct Call<'a> {
    lake: &'a Lake,
    request: &'a IngestRequest,
    version: u32,
    schema_hash: ContentHash,
    fields: Vec<FieldSpec>,
    read_spec: ReadSpec,
    read: ReadOptions,
    plan: Arc<Plan>,
}

/// An input with its answer from the replay table.
struct Planned {
    source: InputSource,
    repeat_of: Option<u64>,
}

/// What is found out about inputs: hash by display name.
type Known = BTreeMap<String, ContentHash>;

impl<'a> Call<'a> {
    async fn prepare(lake: &'a Lake, request: &'a IngestRequest) -> Result<Self> {
        let published = match request.schema_version {
            Some(version) => registry::get(lake, &request.dataset, version).await?,
            None => registry::latest(lake, &request.dataset).await?,
        };
        let (published, schema_hash) = published;
        let schema = &published.schema;
        let read_spec = schema.input.overridden_by(&request.read);
        let group_bytes = request.group_bytes.unwrap_or(GROUP_BYTES);
        Ok(Self {
            lake,
            request,
            version: schema.version,
            schema_hash,
            fields: schema.fields.clone(),
            read: ReadOptions::new(&read_spec)?
                .with_allow_empty(request.allow_empty)
                .with_chunk_bytes(group_bytes),
            plan: Arc::new(Plan::compile(schema, &read_spec)?),
            read_spec,
        })
    }

    fn key(&self) -> PartitionKey {
        PartitionKey { dt: self.request.dt, schema_version: self.version, revision: 0 }
    }

    async fn round(&self, state: &mut DatasetState, known: &mut Known, progress: &dyn Progress) -> Result<Round> {
        let request = self.request;
        let sealed = state.is_sealed(request.dt);
        let (planned, mut skipped, mut warnings) = self.plan_inputs(state, known)?;
        if planned.is_empty() {
            let report = self.report(Produced::nothing(&self.fields), skipped, warnings, self.provenance(state));
            return Ok(Round::Done(Box::new(report)));
        }
        if sealed && !request.late {
            let dt = request.dt;
            return Err(Error::precondition(format!("{dt} of `{}` is sealed", request.dataset)).hint(format!(
                "add late records with `--late`, or open the date: `lakebed reopen {} --date {dt}`",
                request.dataset
            )));
        }
        let attempt: AttemptId = unique_id(self.lake.clock()).parse()?;
        kill_point("ingest.before_stage");
        let staged = match self.stage(&attempt, &planned, progress) {
            Ok(staged) => staged,
            Err(error) => {
                self.discard(&attempt).await;
                return Err(error);
            }
        };
        let outcome = self.finish_round(state, known, (&attempt, sealed), (&planned, staged), &mut warnings).await;
        match outcome {
            Ok(Some(produced)) => {
                let provenance = produced.provenance;
                skipped.sort_by(|a, b| a.name.cmp(&b.name));
                Ok(Round::Done(Box::new(self.report(produced, skipped, warnings, provenance))))
            }
            Ok(None) => {
                self.discard(&attempt).await;
                Ok(Round::Again)
            }
            Err(error) => {
                self.discard(&attempt).await;
                Err(error)
            }
        }
    }

    /// Checks what was staged, then commits it; `None` = start over.
    async fn finish_round(
        &self,
        state: &mut DatasetState,
        known: &mut Known,
        (attempt, sealed): (&AttemptId, bool),
        (planned, staged): (&[Planned], Staged),
        warnings: &mut Vec<String>,
    ) -> Result<Option<Produced>> {
        if self.request.mismatch == Mismatch::Fail && staged.stats.rejected > 0 {
            return Err(mismatch_error(&self.request.dataset, self.version, &staged.stats));
        }
        if self.learn(state, known, planned, &staged)? {
            return Ok(None);
        }
        for result in &staged.inputs {
            warnings.extend(result.facts.warnings.iter().cloned());
        }
        let provenance = self.provenance(state);
        let files = self.name_files(attempt, &staged).await?;
        let draft = self.draft(state, attempt, sealed, (planned, &staged, &files), provenance)?;
        if sealed {
            withdraw_success(self.lake, state, self.request.dt).await?;
        }
        kill_point("ingest.before_commit");
        let logged = match commit(self.lake, state, &draft).await? {
            CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => logged,
            CommitOutcome::Conflict(unmet) => {
                return match unmet.requirement {
                    Requirement::InputAbsent { .. }
                    | Requirement::BatchAbsent { .. }
                    | Requirement::AttemptOpen { .. }
                    | Requirement::DateSealed { .. } => Ok(None),
                    Requirement::DateOpen { .. } if self.request.late => Ok(None),
                    Requirement::DateOpen { .. }
                    | Requirement::PartitionActive { .. }
                    | Requirement::SchemaPublished { .. } => Err(refusal(&unmet)),
                };
            }
        };
        Ok(Some(self.produced(logged, planned, staged, files, provenance)?))
    }

    /// The replay table for every input; hashes are taken beforehand where an answer may depend on them.
    fn plan_inputs(
        &self,
        state: &DatasetState,
        known: &mut Known,
    ) -> Result<(Vec<Planned>, Vec<SkippedInput>, Vec<String>)> {
        let inputs = &self.request.inputs;
        let may_be_known = inputs.len() > 1 || state.position().number > 0;
        let (mut planned, mut skipped, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen: BTreeMap<ContentHash, String> = BTreeMap::new();
        for source in inputs {
            let name = source.display_name().to_owned();
            if may_be_known && source.is_rereadable() && !known.contains_key(&name) {
                known.insert(name.clone(), hash_input(source)?.0);
            }
            let Some(content) = known.get(&name) else {
                planned.push(Planned { source: source.clone(), repeat_of: None });
                continue;
            };
            if let Some(first) = seen.get(content) {
                let reason = format!("has the same bytes as `{first}` of this call");
                skipped.push(SkippedInput { name, content: content.clone(), reason, stored_by: None });
                continue;
            }
            seen.insert(content.clone(), name.clone());
            match self.ask(state, content, source)? {
                InputAnswer::New { other_dates } => {
                    warnings.extend(known_elsewhere(&name, &other_dates));
                    planned.push(Planned { source: source.clone(), repeat_of: None });
                }
                InputAnswer::Repeat { number } => {
                    planned.push(Planned { source: source.clone(), repeat_of: Some(number) });
                }
                InputAnswer::AlreadyThere { number } => {
                    let reason = format!("was stored for {} by record {number}", self.request.dt);
                    skipped.push(SkippedInput { name, content: content.clone(), reason, stored_by: Some(number) });
                }
                InputAnswer::Refused(refusal) => return Err(refusal.into_error(&name, self.request.dt)),
            }
        }
        Ok((planned, skipped, warnings))
    }

    fn ask(&self, state: &DatasetState, content: &ContentHash, source: &InputSource) -> Result<InputAnswer> {
        // The form is told by reading, so the rules of an input are asked only where they may matter.
        let met = state.visible_inputs(self.request.dt).any(|(_, i)| i.spec.content == *content);
        let rules = if met {
            rules_hash(&self.read_spec, crate::ingest::read::form_of(source, &self.read)?)?
        } else {
            String::new()
        };
        Ok(self.answer(state, content, &rules))
    }

    fn answer(&self, state: &DatasetState, content: &ContentHash, rules: &str) -> InputAnswer {
        answer(
            state,
            &InputQuery {
                dt: self.request.dt,
                content,
                batch: self.request.batch.as_ref(),
                rules,
                schema_version: self.version,
                restore: self.request.restore,
            },
        )
    }

    /// Learns the hashes of the read inputs; true = some of them must not be stored after all.
    fn learn(
        &self,
        state: &DatasetState,
        known: &mut Known,
        planned: &[Planned],
        staged: &Staged,
    ) -> Result<bool> {
        let mut again = false;
        let mut seen = std::collections::BTreeSet::new();
        for (input, result) in planned.iter().zip(&staged.inputs) {
            let name = input.source.display_name().to_owned();
            let content = result.facts.content.clone();
            let before = known.insert(name.clone(), content.clone());
            if before.is_some_and(|b| b != content) {
                return Err(Error::conflict(format!("input `{name}` changed while it was read"))
                    .hint("wait until whoever writes it has finished, then call again")
                    .retryable());
            }
            if !seen.insert(content.clone()) {
                again = true;
            }
            let rules = rules_hash(&self.read_spec, result.facts.form)?;
            match self.answer(state, &content, &rules) {
                InputAnswer::New { .. } | InputAnswer::Repeat { .. } => {}
                InputAnswer::AlreadyThere { .. } => again = true,
                InputAnswer::Refused(refusal) => return Err(refusal.into_error(&name, self.request.dt)),
            }
        }
        if again && planned.iter().any(|p| !p.source.is_rereadable()) && planned.len() > 1 {
            return Err(Error::conflict("standard input must be read again, which cannot be")
                .hint("one of the inputs is stored already; call again without it"));
        }
        Ok(again)
    }

    fn stage(&self, attempt: &AttemptId, planned: &[Planned], progress: &dyn Progress) -> Result<Staged> {
        let request = self.request;
        let inputs: Vec<InputSource> = planned.iter().map(|p| p.source.clone()).collect();
        let total = inputs.iter().map(InputSource::packed_bytes).sum::<Option<u64>>();
        let threads =
            request.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)).max(1);
        let stage = stage_dir(attempt);
        progress.begin(total);
        let staged = run_pipeline(&Job {
            store: &**self.lake.store(),
            inputs: &inputs,
            read: &self.read,
            plan: Arc::clone(&self.plan),
            source: &request.dataset.source(),
            mismatch: request.mismatch,
            threads,
            group_bytes: request.group_bytes.unwrap_or(GROUP_BYTES),
            file_bytes: FILE_BYTES,
            stage: stage.join(&partition_dir(&request.dataset, &self.key())),
            rejects_stage: stage.join(&rejects_dir(&request.dataset, request.dt)),
            progress,
        });
        progress.end();
        staged
    }

    /// Gives staged files their final names: number, then the hash of identities, rules and bytes.
    async fn name_files(&self, attempt: &AttemptId, staged: &Staged) -> Result<NamedFiles> {
        let mut identity = blake3::Hasher::new();
        for result in &staged.inputs {
            identity.update(result.facts.content.as_str().as_bytes());
            identity.update(rules_hash(&self.read_spec, result.facts.form)?.as_bytes());
        }
        if let Some(batch) = &self.request.batch {
            identity.update(batch.as_str().as_bytes());
        }
        let hash_of = |file: &StagedFile| {
            let mut hasher = identity.clone();
            hasher.update(file.blake3.as_str().as_bytes());
            ContentHash::finish(&hasher).short().to_owned()
        };
        let mut named = NamedFiles::default();
        for (n, file) in staged.files.iter().enumerate() {
            let name = format!("part-{n:05}-{}.parquet", hash_of(file));
            self.rename(attempt, &file.path, &name).await?;
            named.files.push(DataFileSpec {
                name,
                format: FileFormat::Parquet,
                rows: file.rows,
                bytes: file.bytes,
                blake3: file.blake3.clone(),
                provenance: Provenance::Live,
                bounds: BTreeMap::new(),
                parents: Vec::new(),
            });
        }
        if let Some(file) = &staged.rejects {
            let name = format!("rejects-{}.jsonl.zst", hash_of(file));
            self.rename(attempt, &file.path, &name).await?;
            named.rejects =
                Some(RejectsFileSpec { name, records: file.rows, bytes: file.bytes, blake3: file.blake3.clone() });
        }
        Ok(named)
    }

    async fn rename(&self, attempt: &AttemptId, path: &StorePath, name: &str) -> Result<()> {
        match self.lake.store().move_file(path, &path.parent().child(name)).await? {
            MoveOutcome::Moved | MoveOutcome::AlreadyMoved => Ok(()),
            MoveOutcome::Missing => Err(Error::conflict(format!("staged file of attempt `{attempt}` is gone"))
                .hint("a repair gave the attempt up; call again, nothing was written")
                .retryable()),
        }
    }

    fn draft(
        &self,
        state: &DatasetState,
        attempt: &AttemptId,
        sealed: bool,
        (planned, staged, files): (&[Planned], &Staged, &NamedFiles),
        provenance: Provenance,
    ) -> Result<Draft> {
        let request = self.request;
        let (dt, partition) = (request.dt, self.key());
        let mut draft = Draft::new(self.lake, Operation::Append, request.by.clone())?;
        draft.attempt = Some(attempt.clone());
        draft.requires = vec![
            Requirement::AttemptOpen { attempt: attempt.clone() },
            Requirement::SchemaPublished { version: self.version, hash: self.schema_hash.clone() },
            Requirement::PartitionActive { partition },
            if sealed { Requirement::DateSealed { dt } } else { Requirement::DateOpen { dt } },
        ];
        if let Some(batch) = &request.batch
            && !state.visible_inputs(dt).any(|(_, i)| i.spec.batch.as_ref() == Some(batch))
        {
            draft.requires.push(Requirement::BatchAbsent { dt, batch: batch.clone() });
        }
        if sealed {
            draft.actions.push(Action::Open { dt });
        }
        for file in &files.files {
            let file = DataFileSpec { provenance, ..file.clone() };
            draft.actions.push(Action::AddFile { partition, file });
        }
        for (input, result) in planned.iter().zip(&staged.inputs) {
            let spec = self.input_spec(input, result)?;
            draft.requires.push(Requirement::InputAbsent {
                dt,
                content: spec.content.clone(),
                batch: spec.batch.clone(),
            });
            draft.actions.push(Action::AddInput { partition, input: spec });
        }
        if let Some(file) = &files.rejects {
            draft.actions.push(Action::AddRejects { dt, file: file.clone() });
        }
        if request.complete {
            draft.actions.push(Action::Complete { dt });
        }
        Ok(draft)
    }

    fn input_spec(&self, input: &Planned, result: &InputResult) -> Result<InputSpec> {
        Ok(InputSpec {
            content: result.facts.content.clone(),
            name: input.source.base_name().to_owned(),
            bytes: result.facts.bytes,
            rows: result.rows,
            rejected: result.rejected,
            rules: rules_hash(&self.read_spec, result.facts.form)?,
            batch: self.request.batch.clone(),
            load: self.request.load,
        })
    }

    /// A past date that was never opened is a backfill, unless the caller says otherwise.
    fn provenance(&self, state: &DatasetState) -> Provenance {
        self.request.provenance.unwrap_or_else(|| {
            let today = time_zone(&self.lake.spec().time_zone)
                .map(|zone| BusinessDate::of(self.lake.clock().now(), &zone));
            let past = today.is_ok_and(|today| self.request.dt < today);
            if past && !state.dates().contains_key(&self.request.dt) { Provenance::Backfill } else { Provenance::Live }
        })
    }

    fn produced(
        &self,
        logged: LoggedRecord,
        planned: &[Planned],
        staged: Staged,
        files: NamedFiles,
        provenance: Provenance,
    ) -> Result<Produced> {
        let folder = partition_dir(&self.request.dataset, &self.key());
        let rejects = rejects_dir(&self.request.dataset, self.request.dt);
        let inputs = planned.iter().zip(&staged.inputs);
        Ok(Produced {
            provenance,
            logged: Some(logged),
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
            stats: staged.stats,
        })
    }

    fn report(
        &self,
        produced: Produced,
        skipped: Vec<SkippedInput>,
        mut warnings: Vec<String>,
        provenance: Provenance,
    ) -> IngestReport {
        warnings.sort();
        warnings.dedup();
        let stats = produced.stats;
        IngestReport {
            format: REPORT_FORMAT,
            dataset: self.request.dataset.clone(),
            date: self.request.dt,
            schema_version: self.version,
            outcome: if produced.logged.is_some() { IngestOutcome::Committed } else { IngestOutcome::AlreadyThere },
            commit: produced.logged.as_ref().map(|l| l.record.commit.clone()),
            log_position: produced.logged.as_ref().map(|l| l.record.number),
            records: stats.records,
            rows: stats.rows,
            rejected: stats.rejected,
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
            drift: stats.drift,
            presence: stats.presence,
        }
    }

    /// `_SUCCESS` where the date is sealed now; seals it where only the seal was missing.
    async fn complete_date(&self, state: &mut DatasetState, mut report: IngestReport) -> Result<IngestReport> {
        let dt = self.request.dt;
        if self.request.complete && !state.is_sealed(dt) {
            // Nothing new was stored, but the caller declares the date complete.
            let _outcome = crate::log::seal(self.lake, state, dt, self.request.by.clone()).await?;
        }
        report.complete = state.is_sealed(dt);
        if report.complete {
            write_success(self.lake, state, dt).await?;
        }
        Ok(report)
    }

    /// Deletes what an attempt staged; what cannot be deleted is found by `audit`.
    async fn discard(&self, attempt: &AttemptId) {
        drop(self.lake.store().delete_folder(&stage_dir(attempt)).await);
    }
}

/// Staged files with their final names.
#[derive(Debug, Default)]
struct NamedFiles {
    files: Vec<DataFileSpec>,
    rejects: Option<RejectsFileSpec>,
}

/// What a call has made.
struct Produced {
    provenance: Provenance,
    logged: Option<LoggedRecord>,
    files: Vec<WrittenFile>,
    rejects_file: Option<String>,
    inputs: Vec<StoredInput>,
    stats: DecodeStats,
}

impl Produced {
    fn nothing(fields: &[FieldSpec]) -> Self {
        Self {
            provenance: Provenance::Live,
            logged: None,
            files: Vec::new(),
            rejects_file: None,
            inputs: Vec::new(),
            stats: DecodeStats { presence: PresenceCounts::new(fields), ..DecodeStats::default() },
        }
    }
}

fn known_elsewhere(name: &str, dates: &[BusinessDate]) -> Option<String> {
    let first = dates.first()?;
    let more = if dates.len() > 1 { format!(" and {} more dates", dates.len() - 1) } else { String::new() };
    Some(format!("input `{name}` has the same bytes as one that was stored for {first}{more}: was the date meant?"))
}
