//! Rows that are made here, as typed batches: into the stage, then one commit. No text is read and nothing is
//! converted, so nothing is rejected.
//!
//! ```text
//! batches -> TableEncoder (any thread) -> TableGroup -> TableStage (in order) -> StagedTable -> commit_table
//! ```
//! ING-4 holds as for files: the bytes follow from the rows, their groups and this program.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::catalog::{Catalog, LastSchema, read_footer_stats, sync};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::ingest::bounds::bounds_of;
use crate::ingest::request::RevisionTarget;
use crate::ingest::write::{DataFileWriter, EncodedGroup, GroupEncoder, StagedFile};
use crate::log::{
    CommitOutcome, DatasetState, Draft, commit, finish_moves, refusal, superseding,
    withdraw_success, write_success,
};
use crate::name::{AttemptId, BatchLabel, ContentHash, DatasetRef};
use crate::spec::{
    Action, By, DataFileSpec, FieldSpec, FileFormat, InputSpec, Operation, PartitionKey,
    PartitionState, Provenance, Requirement, arrow_schema,
};
use crate::store::{
    Lake, MoveOutcome, StageFile, StorePath, data_file_path, partition_dir, stage_dir, staged_path,
};
use crate::time::{BusinessDate, unique_id};

/// Bytes after which the next data file begins.
const FILE_BYTES: usize = 1 << 30;

/// What rows are to become.
#[derive(Debug, Clone)]
pub struct TableRequest {
    /// Of which dataset.
    pub dataset: DatasetRef,
    /// Of which date.
    pub dt: BusinessDate,
    /// The published version, and the hash of its file.
    pub schema: (u32, ContentHash),
    /// Its fields.
    pub fields: Vec<FieldSpec>,
    /// Names rules and inputs: equal labels have equal rows.
    pub label: BatchLabel,
    /// What was read; the batch label is the request's.
    pub inputs: Vec<InputSpec>,
    /// The partitions that were read.
    pub parents: Vec<String>,
    /// The rows of the date, or the next revision of them.
    pub revision: RevisionTarget,
    /// Whether the date is sealed by the commit.
    pub complete: bool,
    /// Columns whose bounds go into the log.
    pub bounds: Vec<String>,
    /// How the rows came to be.
    pub provenance: Provenance,
    /// Who asks.
    pub by: By,
}

/// Encodes row groups; shared by all threads.
#[derive(Clone)]
pub struct TableEncoder(GroupEncoder);

/// A row group.
pub struct TableGroup(EncodedGroup);

impl TableEncoder {
    /// Chooses encodings by the first rows in order.
    pub fn new(fields: &[FieldSpec], sample: &[RecordBatch]) -> Result<Self> {
        GroupEncoder::new(Arc::new(arrow_schema(fields)), fields, sample).map(Self)
    }

    /// A row group of these rows.
    pub fn encode(&self, batches: &[RecordBatch]) -> Result<TableGroup> {
        let mut group = self.0.open()?;
        for batch in batches {
            group.write(batch)?;
        }
        Ok(TableGroup(group.close()?))
    }
}

/// Rows on their way into the stage.
pub struct TableStage {
    lake: Lake,
    request: TableRequest,
    attempt: AttemptId,
    key: PartitionKey,
    sealed: bool,
    encoder: TableEncoder,
    writer: DataFileWriter,
    files: Vec<StagedFile>,
}

/// Durable files that no record names yet.
#[must_use]
pub struct StagedTable {
    request: TableRequest,
    attempt: AttemptId,
    key: PartitionKey,
    sealed: bool,
    files: Vec<StagedFile>,
}

/// What a commit of rows has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedTable {
    /// Its record.
    pub log_position: u64,
    /// The revision it wrote.
    pub revision: u32,
    /// Rows.
    pub rows: u64,
    /// What did not work after the commit; any later call, or `audit --repair`, finishes it.
    pub warnings: Vec<String>,
}

impl TableStage {
    /// Begins an attempt; `state` is that of the dataset.
    pub fn begin(
        lake: &Lake,
        state: &DatasetState,
        request: TableRequest,
        encoder: TableEncoder,
    ) -> Result<Self> {
        let attempt: AttemptId = unique_id(lake.clock()).parse()?;
        let key = PartitionKey {
            dt: request.dt,
            schema_version: request.schema.0,
            revision: match request.revision {
                RevisionTarget::Join | RevisionTarget::JoinUnchanged(_) => {
                    state.active_revision(request.dt)
                }
                RevisionTarget::Replace | RevisionTarget::Keep => state.next_revision(request.dt),
            },
        };
        let writer = Self::next_file(lake, (&request, &attempt, &key), &encoder, 0)?;
        kill_point("ingest.stage_created");
        Ok(Self {
            lake: lake.clone(),
            sealed: state.is_sealed(request.dt),
            request,
            attempt,
            key,
            encoder,
            writer,
            files: Vec::new(),
        })
    }

    fn next_file(
        lake: &Lake,
        (request, attempt, key): (&TableRequest, &AttemptId, &PartitionKey),
        encoder: &TableEncoder,
        n: usize,
    ) -> Result<DataFileWriter> {
        let last = partition_dir(&request.dataset, key).child(&format!("part-{n:05}"));
        DataFileWriter::create(&**lake.store(), staged_path(attempt, &last), &encoder.0)
    }

    /// Appends a row group.
    pub fn append(&mut self, group: TableGroup) -> Result<()> {
        if self.writer.bytes() >= FILE_BYTES {
            let names = (&self.request, &self.attempt, &self.key);
            let next = Self::next_file(&self.lake, names, &self.encoder, self.files.len() + 1)?;
            let whole = std::mem::replace(&mut self.writer, next);
            self.files.push(whole.finish()?);
        }
        self.writer.append(group.0)
    }

    /// Ends the files and makes them durable.
    pub fn finish(mut self) -> Result<StagedTable> {
        kill_point("ingest.rows_written");
        self.files.push(self.writer.finish()?);
        kill_point("ingest.file_durable");
        Ok(StagedTable {
            request: self.request,
            attempt: self.attempt,
            key: self.key,
            sealed: self.sealed,
            files: self.files,
        })
    }
}

/// Puts the record, then does what follows a commit.
///
/// # Errors
/// `Conflict` where the date changed meanwhile; nothing was committed then.
pub async fn commit_table(
    lake: &Lake,
    catalog: &dyn Catalog,
    state: &mut DatasetState,
    staged: StagedTable,
) -> Result<CommittedTable> {
    let attempt = staged.attempt.clone();
    let log_position = match put(lake, state, &staged).await {
        Ok(number) => number,
        Err(error) => {
            drop_stage(lake, state, &attempt, staged.request.dt).await;
            return Err(error);
        }
    };
    let mut warnings = Vec::new();
    if let Err(error) = finish_moves(lake, state).await {
        warnings.push(format!(
            "committed, but not every file is at its place yet: {error}"
        ));
    }
    if let Err(error) = write_success(lake, state, staged.request.dt).await {
        warnings.push(format!(
            "committed, but `_SUCCESS` could not be written: {error}"
        ));
    }
    if let Err(error) = sync(lake, catalog, &staged.request.dataset).await {
        warnings.push(format!(
            "committed, but the catalog could not follow: {error}"
        ));
    }
    Ok(CommittedTable {
        log_position,
        revision: staged.key.revision,
        rows: staged.files.iter().map(|f| f.rows).sum(),
        warnings,
    })
}

/// Gives up what was staged.
pub async fn discard_table(lake: &Lake, state: &mut DatasetState, staged: StagedTable) {
    drop_stage(lake, state, &staged.attempt, staged.request.dt).await;
}

/// Deletes what an attempt staged, unless its record was put after all.
async fn drop_stage(lake: &Lake, state: &mut DatasetState, attempt: &AttemptId, dt: BusinessDate) {
    if state.catch_up(lake).await.is_err() || state.committed_attempt(attempt).is_some() {
        return;
    }
    drop(lake.store().delete_folder(&stage_dir(attempt)).await);
    drop(write_success(lake, state, dt).await);
}

async fn put(lake: &Lake, state: &mut DatasetState, staged: &StagedTable) -> Result<u64> {
    let files = name_files(lake, staged).await?;
    let draft = draft(lake, state, staged, files)?;
    if staged.sealed && staged.request.revision != RevisionTarget::Keep {
        withdraw_success(lake, state, staged.request.dt).await?;
    }
    kill_point("ingest.before_commit");
    match commit(lake, state, &draft).await? {
        CommitOutcome::Committed(logged) | CommitOutcome::AlreadyThere(logged) => {
            Ok(logged.record.number)
        }
        CommitOutcome::Conflict(unmet) => match &unmet.requirement {
            Requirement::SchemaPublished { .. } => Err(refusal(&unmet)),
            _ => Err(Error::conflict(format!(
                "{} of `{}` changed meanwhile: {}",
                staged.request.dt, staged.request.dataset, unmet.reason
            ))
            .hint("call again: nothing was written")
            .retryable()),
        },
    }
}

/// Gives staged files their final names: number, then the hash of label, inputs and bytes.
async fn name_files(lake: &Lake, staged: &StagedTable) -> Result<Vec<DataFileSpec>> {
    let request = &staged.request;
    let mut identity = blake3::Hasher::new();
    identity.update(request.label.as_str().as_bytes());
    for input in &request.inputs {
        identity.update(input.content.as_str().as_bytes());
    }
    if staged.key.revision > 0 {
        identity.update(&staged.key.revision.to_le_bytes());
    }
    let mut schema = LastSchema::default();
    let mut named = Vec::new();
    for (n, file) in staged.files.iter().enumerate() {
        let mut hasher = identity.clone();
        hasher.update(file.blake3.as_str().as_bytes());
        let name = format!(
            "part-{n:05}-{}.parquet",
            ContentHash::finish(&hasher).short()
        );
        let last = data_file_path(&request.dataset, &staged.key, &name);
        rename(lake, &staged.attempt, &file.path, &last).await?;
        let mut spec = DataFileSpec {
            name,
            format: FileFormat::Parquet,
            rows: file.rows,
            bytes: file.bytes,
            blake3: file.blake3.clone(),
            provenance: request.provenance,
            bounds: std::collections::BTreeMap::new(),
            parents: request.parents.clone(),
        };
        let of = (&request.dataset, &staged.key);
        let read = read_footer_stats(lake, of.0, of.1, &spec, Some(&staged.attempt), &mut schema);
        if let Some(stats) = read.await? {
            spec.bounds = bounds_of(&request.fields, &request.bounds, &stats)?;
        }
        named.push(spec);
    }
    Ok(named)
}

async fn rename(
    lake: &Lake,
    attempt: &AttemptId,
    path: &StorePath,
    last: &StorePath,
) -> Result<()> {
    match lake
        .store()
        .move_file(path, &staged_path(attempt, last))
        .await?
    {
        MoveOutcome::Moved | MoveOutcome::AlreadyMoved => Ok(()),
        MoveOutcome::Missing => Err(Error::conflict(format!(
            "staged file of attempt `{attempt}` is gone"
        ))
        .hint("a repair gave the attempt up; call again, nothing was written")
        .retryable()),
    }
}

fn draft(
    lake: &Lake,
    state: &DatasetState,
    staged: &StagedTable,
    files: Vec<DataFileSpec>,
) -> Result<Draft> {
    let request = &staged.request;
    let (dt, partition) = (request.dt, staged.key);
    let (version, hash) = request.schema.clone();
    let replaces = request.revision != RevisionTarget::Join;
    let operation = match replaces {
        true => Operation::Correct,
        false => Operation::Append,
    };
    let mut draft = Draft::new(lake, operation, request.by.clone())?;
    draft.attempt = Some(staged.attempt.clone());
    draft.requires = vec![
        Requirement::AttemptOpen {
            attempt: staged.attempt.clone(),
        },
        Requirement::SchemaPublished { version, hash },
        Requirement::DateUnchanged {
            dt,
            number: state.changed(dt),
        },
    ];
    if replaces {
        draft.actions = superseding(state, dt);
        draft.actions.push(Action::AddPartition {
            partition,
            state: PartitionState::Switching,
        });
        if !lake.store().capabilities().rename {
            // Its files lie at their final keys already: there is nothing to move.
            draft.actions.push(Action::SetState {
                partition,
                from: PartitionState::Switching,
                to: PartitionState::Active,
            });
        }
    } else {
        draft
            .requires
            .push(Requirement::PartitionActive { partition });
        draft.requires.push(Requirement::DateOpen { dt });
    }
    let files = files.into_iter();
    draft
        .actions
        .extend(files.map(|file| Action::AddFile { partition, file }));
    let inputs = request.inputs.iter().map(|input| InputSpec {
        batch: Some(request.label.clone()),
        ..input.clone()
    });
    draft
        .actions
        .extend(inputs.map(|input| Action::AddInput { partition, input }));
    if request.complete {
        draft.actions.push(Action::Complete { dt });
    }
    Ok(draft)
}

/// Rows into one file outside of the lake, which no record names.
pub struct LooseTable {
    writer: DataFileWriter,
}

impl LooseTable {
    /// Begins the file.
    pub fn begin(file: Box<dyn StageFile>, encoder: &TableEncoder) -> Result<Self> {
        Ok(Self {
            writer: DataFileWriter::begin(file, &encoder.0)?,
        })
    }

    /// Appends a row group.
    pub fn append(&mut self, group: TableGroup) -> Result<()> {
        self.writer.append(group.0)
    }

    /// Ends the file and makes it durable; answers its rows.
    pub fn finish(self) -> Result<u64> {
        self.writer.finish().map(|file| file.rows)
    }
}
