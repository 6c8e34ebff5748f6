//! The fold of a source with the published schemas of its inputs; the schema files that follow from both.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{FoldConfig, Project, SourceConfig, nearest_hint};
use crate::error::{Error, Result};
use crate::flow::fold::refusal::{FoldRefusalKind, Stop, Tried};
use crate::fold::{BoundRules, FoldRules, FoldSchemas, next_schema};
use crate::name::{ContentHash, DatasetRef, FoldName, Layer, SourceName};
use crate::registry::{self, render_toml};
use crate::spec::SchemaSpec;
use crate::store::Lake;

/// A fold that can run.
#[derive(Debug, Clone)]
pub struct FoldSource {
    /// The rules with their columns.
    pub bound: BoundRules,
    /// The dataset of snapshots, its version, and the hash of that.
    pub snapshot: (DatasetRef, u32, ContentHash),
    /// That of the events likewise.
    pub events: (DatasetRef, u32, ContentHash),
    /// Columns of both whose bounds go into the log.
    pub bounds: [Vec<String>; 2],
    /// The newest versions of the inputs, in their order.
    pub(in crate::flow) inputs: Vec<SchemaSpec>,
}

/// The names of the folds that are meant: the one that was named, or all.
pub(in crate::flow) fn get_fold<'a>(
    source: &'a SourceConfig,
    name: &FoldName,
) -> Result<&'a FoldConfig> {
    source.folds.get(name).ok_or_else(|| {
        let names: Vec<&str> = source.folds.keys().map(FoldName::as_str).collect();
        let error = Error::not_found(format!("`{}` has no fold `{name}`", source.name));
        match names.is_empty() {
            true => {
                error.hint("a table [fold.NAME] in its source.toml declares one (docs/fold.md)")
            }
            false => error.hint(nearest_hint(name.as_str(), &names)),
        }
    })
}

/// The rules over the published schemas of the inputs, and these.
async fn compile(
    lake: &Lake,
    (source, name): (&SourceName, &FoldName),
    config: &FoldConfig,
) -> Result<(FoldRules, Vec<SchemaSpec>)> {
    let mut inputs = Vec::new();
    for input in &config.from {
        let dataset = DatasetRef {
            layer: Layer::Clean,
            dataset: input.dataset.clone(),
        };
        let latest = registry::latest(lake, &dataset).await?.ok_or_else(|| {
            Error::precondition(format!("dataset `{dataset}` has no published schema"))
                .hint("a fold takes its types from its inputs: publish theirs first")
        })?;
        inputs.push(latest.0.schema);
    }
    Ok((FoldRules::compile(source, name, config, &inputs)?, inputs))
}

impl FoldSource {
    /// Compiles the rules and binds them to what is published.
    pub(crate) async fn open(lake: &Lake, source: &SourceConfig, name: &FoldName) -> Tried<Self> {
        let config = get_fold(source, name)?;
        let (rules, inputs) = compile(lake, (&source.name, name), config).await?;
        let rules = Arc::new(rules);
        let schemas = FoldSchemas::of(&rules)?;
        let no_schema = |error: Error| Stop::refuse(FoldRefusalKind::NoSchema, error);
        let mut bound = Vec::new();
        let mut published = Vec::new();
        for (dataset, _) in [&schemas.snapshot, &schemas.events] {
            let latest = registry::latest(lake, dataset).await?;
            let (latest, hash) = latest.ok_or_else(|| {
                no_schema(Error::precondition(format!("dataset `{dataset}` has no published schema")).hint(format!(
                    "`lakebed fold {} --schema` writes the one that follows from the rules; `lakebed schema publish {dataset} 1` publishes it",
                    source.name
                )))
            })?;
            let declared = source.dataset(dataset);
            let columns = [declared.key, declared.prune].concat();
            let key = || rules.key().iter().map(|k| k.name.clone()).collect();
            bound.push(if columns.is_empty() { key() } else { columns });
            published.push((dataset.clone(), latest.schema, hash));
        }
        let [snapshot, events] = published.as_slice() else {
            return Err(Error::internal("two datasets became another number").into());
        };
        let bound_rules = BoundRules::new(rules, &snapshot.1, &events.1).map_err(no_schema)?;
        let place =
            |of: &(DatasetRef, SchemaSpec, ContentHash)| (of.0.clone(), of.1.version, of.2.clone());
        let [first, second] = <[Vec<String>; 2]>::try_from(bound).unwrap_or_default();
        Ok(Self {
            snapshot: place(snapshot),
            events: place(events),
            bound: bound_rules,
            bounds: [first, second],
            inputs,
        })
    }
}

/// Whether a fold could run: its inputs and what it writes are published, and its rules fit them.
///
/// # Errors
/// What is missing.
pub async fn check_fold(lake: &Lake, source: &SourceConfig, name: &FoldName) -> Result<()> {
    match FoldSource::open(lake, source, name).await {
        Ok(_) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Refused(refusal)) => Err(refusal.error),
    }
}

impl FoldSource {
    /// Compiles the rules and binds them to the schemas that follow from them, published or not; the events of a key are
    /// in the order of its fields' names.
    ///
    /// # Errors
    /// `PreconditionFailed` where a field has another type than it is published with.
    pub(in crate::flow) async fn unpublished(
        lake: &Lake,
        source: &SourceConfig,
        name: &FoldName,
    ) -> Result<Self> {
        let mut config = get_fold(source, name)?.clone();
        config.watch.sort();
        let (rules, inputs) = compile(lake, (&source.name, name), &config).await?;
        let rules = Arc::new(rules);
        let schemas = FoldSchemas::of(&rules)?;
        let mut made = Vec::new();
        for (dataset, columns) in [&schemas.snapshot, &schemas.events] {
            let published = registry::list_published(lake, dataset).await?;
            let history: Vec<_> = published.into_iter().map(|(p, _)| p).collect();
            let next = next_schema(dataset, columns, &history)?;
            let schema = match (next, history.last()) {
                (Some(next), _) => next,
                (None, Some(newest)) => newest.schema.clone(),
                (None, None) => return Err(Error::internal("a dataset without any schema")),
            };
            let hash = ContentHash::of(render_toml(&schema).as_bytes());
            made.push((dataset.clone(), schema, hash));
        }
        let [snapshot, events] = made.as_slice() else {
            return Err(Error::internal("two datasets became another number"));
        };
        let place =
            |of: &(DatasetRef, SchemaSpec, ContentHash)| (of.0.clone(), of.1.version, of.2.clone());
        Ok(Self {
            snapshot: place(snapshot),
            events: place(events),
            bound: BoundRules::new(rules, &snapshot.1, &events.1)?,
            bounds: [Vec::new(), Vec::new()],
            inputs,
        })
    }
}

/// A schema file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WrittenSchema {
    /// Of which dataset.
    pub dataset: DatasetRef,
    /// Which version.
    pub version: u32,
    /// Where it is; absent where the published version is the one.
    pub file: Option<PathBuf>,
    /// Whether this call wrote it.
    pub written: bool,
}

/// Writes the schema files of a fold into the project, where the published versions are others.
///
/// # Errors
/// `AlreadyExists` where the file of the next version holds something else.
pub async fn write_schemas(
    lake: &Lake,
    project: &Project,
    source: &SourceConfig,
    name: &FoldName,
) -> Result<Vec<WrittenSchema>> {
    let (rules, _) = compile(lake, (&source.name, name), get_fold(source, name)?).await?;
    let schemas = FoldSchemas::of(&rules)?;
    let mut answers = Vec::new();
    for (dataset, columns) in [&schemas.snapshot, &schemas.events] {
        let published = registry::list_published(lake, dataset).await?;
        let history: Vec<_> = published.into_iter().map(|(p, _)| p).collect();
        let Some(spec) = next_schema(dataset, columns, &history)? else {
            answers.push(WrittenSchema {
                dataset: dataset.clone(),
                version: history.last().map_or(0, |p| p.schema.version),
                file: None,
                written: false,
            });
            continue;
        };
        let path = project.schema_file(dataset, spec.version);
        let text = render_toml(&spec);
        let written = match std::fs::read_to_string(&path) {
            Ok(there) if there == text => false,
            Ok(_) => {
                return Err(Error::already_exists(format!(
                    "version {} of `{dataset}` is written already, and differs from the rules",
                    spec.version
                ))
                .with("file", path.display())
                .hint("it is not published: delete the file and call again"));
            }
            Err(_) => {
                project.write_schema_file(dataset, spec.version, &text)?;
                true
            }
        };
        answers.push(WrittenSchema {
            dataset: dataset.clone(),
            version: spec.version,
            file: Some(path),
            written,
        });
    }
    Ok(answers)
}
