//! What a call of ingest knows before it looks at its inputs, and what one try of it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::convert::Plan;
use crate::ingest::pipeline::Staged;
use crate::ingest::read::{Form, InputSource, ReadOptions, rules_hash};
use crate::ingest::request::{IngestRequest, ReplacedRevision, RevisionTarget};
use crate::log::DatasetState;
use crate::name::{AttemptId, ContentHash};
use crate::registry;
use crate::spec::{FieldSpec, PartitionKey, ReadSpec};
use crate::store::Lake;

/// Bytes of text in a row group, unless asked otherwise.
pub(super) const GROUP_BYTES: usize = 8 << 20;

/// What does not change over the rounds of a call.
pub(super) struct Call<'a> {
    pub(super) lake: &'a Lake,
    pub(super) request: &'a IngestRequest,
    pub(super) version: u32,
    pub(super) schema_hash: ContentHash,
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
    /// Loads the schema version and checks the reading rules.
    pub(super) async fn prepare(lake: &'a Lake, request: &'a IngestRequest) -> Result<Self> {
        let published = match request.schema_version {
            Some(version) => registry::get(lake, &request.dataset, version).await?,
            None => registry::latest(lake, &request.dataset).await?.ok_or_else(|| {
                let dataset = &request.dataset;
                Error::not_found(format!("dataset `{dataset}` has no published schema"))
                    .hint(format!("publish one first: `lakebed schema infer {dataset} FILES...`, `lakebed schema propose`, `lakebed schema publish {dataset} 1`"))
                    .hint("or check the name: `lakebed schema list` shows every dataset")
            })?,
        };
        let (published, schema_hash) = published;
        let schema = &published.schema;
        let read_spec = schema.input.overridden_by(&request.read);
        // Rules that contradict each other are refused before anything is read.
        ReadOptions::new(&read_spec)?;
        Ok(Self {
            lake,
            request,
            version: schema.version,
            schema_hash,
            fields: schema.fields.clone(),
            plan: Arc::new(Plan::compile(schema, &read_spec)?),
            read_spec,
        })
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
            .with_chunk_bytes(group_bytes))
    }

    /// The hash of these rules for an input that has the form.
    pub(super) fn rules_of(&self, source: &InputSource, form: Form) -> Result<String> {
        rules_hash(&self.rules(source), form)
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
                RevisionTarget::Join => state.active_revision(dt),
                RevisionTarget::Replace | RevisionTarget::Keep => state.next_revision(dt),
            },
        }
    }

    /// Whether the call writes a revision of its own.
    pub(super) fn corrects(&self) -> bool {
        match self.request.revision {
            RevisionTarget::Join => false,
            RevisionTarget::Replace | RevisionTarget::Keep => true,
        }
    }
}
