//! What a call of ingest knows before it looks at its inputs, and what one try of it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::convert::Plan;
use crate::ingest::pipeline::Staged;
use crate::ingest::read::{DEFAULT_CHUNK_BYTES, Form, InputSource, ReadOptions, rules_hash};
use crate::ingest::request::{IngestRequest, ReplacedRevision, RevisionTarget};
use crate::log::{DatasetState, other_format};
use crate::name::{AttemptId, BatchLabel, ContentHash, Layer};
use crate::registry;
use crate::spec::{
    FieldSpec, FileFormat, PartitionKey, ReadSpec, Requirement, SCHEMALESS_VERSION, SchemaSpec,
};
use crate::store::Lake;

/// Bytes of text in a row group, unless asked otherwise.
pub(super) const GROUP_BYTES: usize = 16 << 20;

/// What does not change over the rounds of a call.
pub(super) struct Call<'a> {
    pub(super) lake: &'a Lake,
    pub(super) request: &'a IngestRequest,
    pub(super) version: u32,
    /// Of the published version; `None` = schema version 0, which nobody publishes.
    pub(super) schema_hash: Option<ContentHash>,
    pub(super) read_spec: ReadSpec,
    pub(super) fields: Vec<FieldSpec>,
    pub(super) plan: Arc<Plan>,
}

/// One try of a call: what was planned and what lies in the stage under its id.
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    /// The partition it writes.
    pub(super) key: PartitionKey,
    /// Of a correction: what it replaces.
    pub(super) replaced: Option<ReplacedRevision>,
    /// Whether the date was sealed when it began.
    pub(super) sealed: bool,
    pub(super) planned: Vec<Planned>,
    pub(super) staged: Staged,
}

/// An input with its answer from the replay table.
pub(super) struct Planned {
    pub(super) source: InputSource,
    /// The record that stored the same content under another label.
    pub(super) repeat_of: Option<u64>,
}

/// What is found out about inputs, by display name: identity, and the form once it was read.
pub(super) type Known = BTreeMap<String, (ContentHash, Option<Form>)>;

impl<'a> Call<'a> {
    /// Loads the schema version and checks the reading rules; `state` tells what the dataset holds.
    pub(super) async fn prepare(
        lake: &'a Lake,
        request: &'a IngestRequest,
        state: &DatasetState,
    ) -> Result<Self> {
        let (schema, schema_hash) = match format_of(request, state)? {
            FileFormat::Parquet => published_schema(lake, request).await?,
            FileFormat::Jsonl => (schemaless(lake, request, state).await?, None),
            FileFormat::Rawpack | FileFormat::RawpackIndex => {
                return Err(Error::internal("a pack as a format of ingest"));
            }
        };
        let read_spec = schema.input.overridden_by(&request.read);
        // Rules that contradict each other are refused before anything is read.
        ReadOptions::new(&read_spec)?;
        Ok(Self {
            lake,
            request,
            version: schema.version,
            schema_hash,
            fields: schema.fields.clone(),
            plan: Arc::new(Plan::compile(&schema, &read_spec)?),
            read_spec,
        })
    }

    /// Format of the files that the call writes.
    pub(super) fn format(&self) -> FileFormat {
        FileFormat::of_version(self.request.dataset.layer, self.version)
    }

    /// That the schema version is still what was read; nothing where there is none.
    pub(super) fn schema_requirement(&self) -> Option<Requirement> {
        let hash = self.schema_hash.clone()?;
        let version = self.version;
        Some(Requirement::SchemaPublished { version, hash })
    }

    /// The rules by which the input is read. Kept rejects bring their own; what counts as NaN is for
    /// the call and the schema to say, as is the delimiter of rejects that do not tell theirs.
    fn rules(&self, source: &InputSource) -> ReadSpec {
        let of_call = &self.read_spec;
        match source.own_rules() {
            None => of_call.clone(),
            Some(own) => ReadSpec {
                delimiter: own.delimiter.clone().or_else(|| of_call.delimiter.clone()),
                quote: own.quote.clone().or_else(|| of_call.quote.clone()),
                allow_nan: of_call.allow_nan,
                nan_as_null: of_call.nan_as_null,
                ..own.clone()
            },
        }
    }

    /// The same, checked.
    pub(super) fn read_options(&self, source: &InputSource) -> Result<ReadOptions> {
        let group_bytes = self.request.group_bytes.unwrap_or(GROUP_BYTES);
        Ok(ReadOptions::new(&self.rules(source))?
            .with_allow_empty(self.request.allow_empty)
            .with_chunk_bytes(group_bytes.min(DEFAULT_CHUNK_BYTES)))
    }

    /// The hash of these rules for an input that has the form.
    pub(super) fn rules_of(&self, source: &InputSource, form: Form) -> Result<String> {
        rules_hash(&self.rules(source), form)
    }

    /// The label of an input: its own, or that of the call.
    pub(super) fn batch_of<'s>(&'s self, source: &'s InputSource) -> Option<&'s BatchLabel> {
        source.own_batch().or(self.request.batch.as_ref())
    }

    /// That the date is as the caller saw it, where that matters.
    pub(super) fn check_unchanged(&self, state: &DatasetState) -> Result<()> {
        let RevisionTarget::JoinUnchanged(number) = self.request.revision else {
            return Ok(());
        };
        let (dt, dataset) = (self.request.dt, &self.request.dataset);
        if state.changed(dt) == number {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "record {} of `{dataset}` has changed {dt} since this call looked at it",
            state.changed(dt)
        ))
        .retryable()
        .hint("call again: what is stored is not stored twice"))
    }

    /// The record that tried the rejects of this call again already.
    pub(super) fn retried_by(&self, state: &DatasetState) -> Option<u64> {
        let commit = self.request.rejects_of.as_ref()?;
        state.find_rejects(self.request.dt, commit)?.retried_by
    }

    /// The partition that the call writes, as the date stands now.
    pub(super) fn key(&self, state: &DatasetState) -> PartitionKey {
        let dt = self.request.dt;
        PartitionKey {
            dt,
            schema_version: self.version,
            revision: match self.request.revision {
                RevisionTarget::Join | RevisionTarget::JoinUnchanged(_) => {
                    state.active_revision(dt)
                }
                RevisionTarget::Replace | RevisionTarget::Keep => state.next_revision(dt),
            },
        }
    }

    /// Whether the call writes a revision of its own.
    pub(super) fn corrects(&self) -> bool {
        match self.request.revision {
            RevisionTarget::Join | RevisionTarget::JoinUnchanged(_) => false,
            RevisionTarget::Replace | RevisionTarget::Keep => true,
        }
    }
}

/// What the call asks for, and what the dataset holds: one format alone (LOG-12).
fn format_of(request: &IngestRequest, state: &DatasetState) -> Result<FileFormat> {
    let dataset = &request.dataset;
    if dataset.layer == Layer::Raw {
        return Err(Error::invalid(format!("`{dataset}` takes packs alone"))
            .hint("the raw layer holds what was fetched: `lakebed pack seal`; rows go into `clean/...`"));
    }
    match (request.format, state.file_format()) {
        (Some(wanted), Some(held)) if wanted != held => Err(other_format(dataset, wanted, held)),
        (Some(format), _) | (None, Some(format)) => Ok(format),
        (None, None) => Ok(FileFormat::Parquet),
    }
}

async fn published_schema(
    lake: &Lake,
    request: &IngestRequest,
) -> Result<(SchemaSpec, Option<ContentHash>)> {
    let dataset = &request.dataset;
    let (published, hash) = match request.schema_version {
        Some(version) => registry::get(lake, dataset, version).await?,
        None => registry::latest(lake, dataset).await?.ok_or_else(|| {
            Error::not_found(format!("dataset `{dataset}` has no published schema"))
                .hint(format!("publish one first: `lakebed schema infer {dataset} FILES...`, `lakebed schema propose`, `lakebed schema publish {dataset} 1`"))
                .hint(format!("of a source with rules for its pages: `lakebed parse {} --schema` writes it, `lakebed schema publish {dataset} 1` publishes it", dataset.source()))
                .hint("or check the name: `lakebed schema list` shows every dataset")
                .hint("what is no table is kept as JSON lines: `--as jsonl`")
        })?,
    };
    Ok((published.schema, Some(hash)))
}

/// Version 0, for a dataset that is nothing else.
async fn schemaless(
    lake: &Lake,
    request: &IngestRequest,
    state: &DatasetState,
) -> Result<SchemaSpec> {
    let dataset = &request.dataset;
    if let Some(version) = request.schema_version.filter(|v| *v != SCHEMALESS_VERSION) {
        return Err(
            Error::invalid(format!("JSON lines have no schema version {version}"))
                .hint("leave `--schema-version` out"),
        );
    }
    // What the log holds decides; only before its first file does a published schema.
    if state.file_format().is_none() && registry::latest(lake, dataset).await?.is_some() {
        return Err(Error::precondition(format!(
            "`{dataset}` has a published schema: it is a dataset of tables"
        ))
        .hint(format!(
            "keep JSON lines in a dataset of their own, for example `{}/{}.raw`",
            dataset.layer,
            dataset.source()
        )));
    }
    Ok(SchemaSpec::schemaless(dataset.clone()))
}
