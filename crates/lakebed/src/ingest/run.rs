//! One call of ingest: replay table, pipeline, commit, moves, seal, catalog.
//!
//! ING-5: one call is one commit or none. ING-6: an input that is stored already is never stored
//! again; what is found out late (standard input, a race) discards the attempt and starts over.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Catalog, check_past, sync};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::ingest::assemble::Produced;
use crate::ingest::call::{Attempt, Call, GROUP_BYTES, Known, Planned};
use crate::ingest::decode::Mismatch;
use crate::ingest::pipeline::{Job, Staged, run as run_pipeline};
use crate::ingest::progress::Progress;
use crate::ingest::read::InputSource;
use crate::ingest::request::{IngestOutcome, IngestReport, IngestRequest, RevisionTarget};
use crate::log::{
    CommitOutcome, DatasetState, SealOutcome, commit, finish_moves, load, refusal, seal,
    withdraw_success, write_success,
};
use crate::name::AttemptId;
use crate::spec::{PartitionKey, Requirement};
use crate::store::{Lake, partition_dir, rejects_dir, stage_dir};
use crate::time::unique_id;

/// Bytes after which a call begins its next data file.
const FILE_BYTES: usize = 1 << 30;
/// How often a call starts over before it gives up.
const MAX_ROUNDS: usize = 20;

/// Stores the inputs of one call in one commit.
///
/// # Errors
/// `PreconditionFailed` where the date is sealed or an input is refused;
/// `CorruptData` for a failed file. In every case nothing is committed and nothing becomes visible.
pub async fn ingest(
    lake: &Lake,
    catalog: &dyn Catalog,
    request: &IngestRequest,
    progress: &dyn Progress,
) -> Result<IngestReport> {
    let loaded = load(lake, &request.dataset).await?;
    let mut state = loaded.state;
    let call = Call::prepare(lake, request, &state).await?;
    check_past(lake, catalog, &request.dataset).await?;
    finish_moves(lake, &mut state).await?;
    let mut known = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        match call.round(&mut state, &mut known, progress).await? {
            Round::Done(mut report) => {
                let passed_over = loaded.passed_over.iter().map(ToString::to_string);
                report.warnings.extend(passed_over);
                if report.outcome == IngestOutcome::Refused {
                    return Ok(*report);
                }
                return call.settle(&mut state, catalog, *report).await;
            }
            Round::Again => {
                state.catch_up(lake).await?;
                finish_moves(lake, &mut state).await?;
            }
        }
    }
    Err(Error::conflict(format!(
        "`{}` changed under this call {MAX_ROUNDS} times",
        request.dataset
    ))
    .retryable())
}

/// How a round ended.
enum Round {
    Done(Box<IngestReport>),
    /// Something changed meanwhile; nothing was committed.
    Again,
}

/// How a try ended.
enum Tried {
    Produced(Box<Produced>),
    /// Something changed meanwhile.
    StartOver,
}

impl Call<'_> {
    async fn round(
        &self,
        state: &mut DatasetState,
        known: &mut Known,
        progress: &dyn Progress,
    ) -> Result<Round> {
        let request = self.request;
        let sealed = state.is_sealed(request.dt);
        let key = self.key(state);
        if self.corrects() {
            self.check_correctable(state)?;
        }
        self.check_unchanged(state)?;
        let (planned, mut skipped, mut warnings) = self.plan_inputs(state, known)?;
        if planned.is_empty() {
            let nothing = Produced::nothing(&self.fields);
            let provenance = self.provenance(state);
            let report = self.report(nothing, key.revision, skipped, warnings, provenance);
            return Ok(Round::Done(Box::new(report)));
        }
        if sealed && !request.late && !self.corrects() {
            return Err(self.sealed());
        }
        kill_point("ingest.before_stage");
        let id: AttemptId = unique_id(self.lake.clock()).parse()?;
        let outcome = match self.stage(&id, &key, &planned, progress) {
            Ok(staged) => {
                let attempt = Attempt {
                    id: id.clone(),
                    key,
                    replaced: self.replaced(state),
                    sealed,
                    planned,
                    staged,
                };
                self.finish_round(state, known, attempt, &mut warnings)
                    .await
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(Tried::Produced(produced)) => {
                if produced.outcome() == IngestOutcome::Refused {
                    self.discard(state, &id).await;
                }
                let provenance = produced.provenance;
                skipped.sort_by(|a, b| a.name.cmp(&b.name));
                Ok(Round::Done(Box::new(self.report(
                    *produced,
                    key.revision,
                    skipped,
                    warnings,
                    provenance,
                ))))
            }
            Ok(Tried::StartOver) => {
                self.discard(state, &id).await;
                Ok(Round::Again)
            }
            Err(error) => {
                self.discard(state, &id).await;
                // A repair that takes the stage away first puts its record: this call starts over.
                if state.is_abandoned(&id) {
                    Ok(Round::Again)
                } else {
                    Err(error)
                }
            }
        }
    }

    fn sealed(&self) -> Error {
        let (dt, dataset) = (self.request.dt, &self.request.dataset);
        Error::precondition(format!("{dt} of `{dataset}` is sealed"))
            .hint(format!(
                "add late records with `--late`, or open the date: `lakebed reopen {dataset} --date {dt}`"
            ))
            .hint(format!("replace the date: `lakebed correct {dataset} --date {dt} FILES...`"))
    }

    /// Checks what was staged, then commits it.
    async fn finish_round(
        &self,
        state: &mut DatasetState,
        known: &mut Known,
        attempt: Attempt,
        warnings: &mut Vec<String>,
    ) -> Result<Tried> {
        let staged = &attempt.staged;
        if self.request.mismatch == Mismatch::Fail && staged.stats.rejected > 0 {
            let hints = staged.inputs.iter().flat_map(|r| r.facts.hints.clone());
            let hints = hints.collect();
            let provenance = self.provenance(state);
            let refused = Produced::refused(attempt.staged.stats, hints, provenance);
            return Ok(Tried::Produced(Box::new(refused)));
        }
        if self.learn(state, known, &attempt.planned, staged)? {
            return Ok(Tried::StartOver);
        }
        for result in &staged.inputs {
            warnings.extend(result.facts.warnings.iter().cloned());
        }
        let provenance = self.provenance(state);
        let files = self.name_files(&attempt).await?;
        let draft = self.draft(state, &attempt, &files, provenance)?;
        if attempt.sealed && self.request.revision != RevisionTarget::Keep {
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
                    | Requirement::DateUnchanged { .. }
                    | Requirement::PartitionActive { .. }
                    | Requirement::RejectsWaiting { .. }
                    | Requirement::DateSealed { .. }
                    | Requirement::DateOpen { .. } => Ok(Tried::StartOver),
                    Requirement::SchemaPublished { .. } => Err(refusal(&unmet)),
                };
            }
        };
        Ok(Tried::Produced(Box::new(
            self.produced(logged, attempt, files, provenance),
        )))
    }

    fn stage(
        &self,
        attempt: &AttemptId,
        key: &PartitionKey,
        planned: &[Planned],
        progress: &dyn Progress,
    ) -> Result<Staged> {
        let request = self.request;
        let inputs: Vec<InputSource> = planned.iter().map(|p| p.source.clone()).collect();
        let read = inputs
            .iter()
            .map(|i| self.read_options(i))
            .collect::<Result<Vec<_>>>()?;
        let total = inputs
            .iter()
            .map(InputSource::bytes_total)
            .sum::<Option<u64>>();
        let threads = request
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from))
            .max(1);
        progress.begin(total);
        let staged = run_pipeline(&Job {
            store: &**self.lake.store(),
            inputs: &inputs,
            read: &read,
            plan: Arc::clone(&self.plan),
            format: self.format(),
            source: &request.dataset.source(),
            mismatch: request.mismatch,
            threads,
            group_bytes: request.group_bytes.unwrap_or(GROUP_BYTES),
            file_bytes: FILE_BYTES,
            attempt,
            folder: partition_dir(&request.dataset, key),
            rejects_folder: rejects_dir(&request.dataset, request.dt),
            progress,
        });
        progress.end();
        staged
    }

    /// Everything after the commit. What fails here leaves the commit standing, so it is a warning:
    /// any later call, or `audit --repair`, finishes it.
    async fn settle(
        &self,
        state: &mut DatasetState,
        catalog: &dyn Catalog,
        mut report: IngestReport,
    ) -> Result<IngestReport> {
        if let Err(error) = finish_moves(self.lake, state).await {
            report.warnings.push(format!(
                "committed, but not every file is at its place yet: {error}"
            ));
        }
        match self.complete_date(state).await {
            Ok((complete, sealed_by)) => {
                report.complete = complete;
                if let Some(number) = sealed_by {
                    report.log_position = Some(number);
                    report.warnings.push(format!(
                        "nothing new was stored; record {number} seals the date"
                    ));
                }
            }
            Err(error) if report.outcome == IngestOutcome::AlreadyThere => return Err(error),
            Err(error) => report.warnings.push(format!(
                "committed, but the date could not be sealed: {error}"
            )),
        }
        if let Err(error) = sync(self.lake, catalog, &self.request.dataset).await {
            report.warnings.push(format!(
                "committed, but the catalog could not follow: {error}"
            ));
        }
        Ok(report)
    }

    /// `_SUCCESS` as the date stands now; seals it where only the seal was missing.
    async fn complete_date(&self, state: &mut DatasetState) -> Result<(bool, Option<u64>)> {
        let dt = self.request.dt;
        let mut sealed_by = None;
        if self.request.complete && !state.is_sealed(dt) {
            // Nothing new was stored, but the caller declares the date complete.
            match seal(self.lake, state, dt, self.request.by.clone()).await? {
                SealOutcome::Done { number } => sealed_by = Some(number),
                SealOutcome::AlreadySo { .. } => {}
            }
        }
        // Of an open date as well: it may have been sealed before this call.
        write_success(self.lake, state, dt).await?;
        Ok((state.is_sealed(dt), sealed_by))
    }

    /// Deletes what an attempt staged, unless its record was put after all: a put can succeed and
    /// its answer be lost. What cannot be deleted is found by `audit`.
    async fn discard(&self, state: &mut DatasetState, attempt: &AttemptId) {
        if state.catch_up(self.lake).await.is_err() || state.committed_attempt(attempt).is_some() {
            return;
        }
        drop(self.lake.store().delete_folder(&stage_dir(attempt)).await);
        // `_SUCCESS` of a sealed date is withdrawn before the commit that then did not happen.
        drop(write_success(self.lake, state, self.request.dt).await);
    }
}
