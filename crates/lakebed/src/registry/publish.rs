//! Published versions: `_lake/schema/<layer>/<dataset>/vN.json`, each put once.
//!
//! REG-1 rests on put-if-absent alone: of two that publish one number exactly one wins, and the
//! other is told what differs. REG-2 is checked by whoever lists.

use serde_json::Value;

use crate::config::Evolution;
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::log::DatasetState;
use crate::name::{ContentHash, DatasetRef};
use crate::registry::{SchemaDiff, check_evolution, diff, refuse, validate};
use crate::spec::{By, FileFormat, PUBLISHED_FORMAT, PublishedSchema, SchemaSpec};
use crate::store::{Lake, PutOutcome, StorePath, schema_dir, schema_path};

/// What a publication is made with, beside the version.
#[derive(Debug, Clone)]
pub struct PublishOptions {
    /// Who publishes.
    pub by: By,
    /// Commit of the project's git repository.
    pub git_commit: Option<String>,
    /// What the dataset allows.
    pub evolution: Evolution,
}

/// Answer of [`publish`].
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum PublishOutcome {
    /// The number is this version's now.
    Published {
        /// The published file.
        published: Box<PublishedSchema>,
        /// BLAKE3 of its bytes.
        hash: ContentHash,
    },
    /// The same content was published before.
    AlreadyPublished {
        /// The published file.
        published: Box<PublishedSchema>,
        /// BLAKE3 of its bytes.
        hash: ContentHash,
    },
    /// Other content has the number.
    Taken {
        /// What has it: by whom and when stands there.
        other: Box<PublishedSchema>,
        /// From what has it to what was offered.
        diff: Box<SchemaDiff>,
    },
}

/// Publishes a version, after checking it by itself and against the published ones.
///
/// An unsound version is an `InvalidInput` error that tells every problem; a number that is taken
/// is an outcome.
pub async fn publish(
    lake: &Lake,
    spec: &SchemaSpec,
    options: &PublishOptions,
) -> Result<PublishOutcome> {
    let listed = list_published(lake, &spec.dataset).await?;
    if let Some((published, hash)) = listed
        .iter()
        .find(|(p, _)| p.schema.version == spec.version)
    {
        return Ok(met(published.clone(), hash.clone(), spec));
    }
    if listed.is_empty() {
        check_no_lines(lake, spec).await?;
    }
    let base_hash = listed.last().map(|(_, hash)| hash.clone());
    let history: Vec<PublishedSchema> = listed.into_iter().map(|(p, _)| p).collect();
    let mut problems = validate(spec);
    problems.extend(check_evolution(&history, spec, options.evolution));
    refuse(spec, &problems, None)?;

    let published = PublishedSchema {
        format: spec.published_format(),
        lake: lake.id().clone(),
        published_at: lake.clock().now(),
        by: options.by.clone(),
        base_hash,
        git_commit: options.git_commit.clone(),
        schema: spec.clone(),
    };
    let mut bytes = serde_json::to_vec_pretty(&published)
        .map_err(|e| Error::internal("write the version as JSON").caused_by(e))?;
    bytes.push(b'\n');
    let path = schema_path(&spec.dataset, spec.version);
    kill_point("publish.before_put");
    let put = lake.store().put_once(&path, &bytes).await?;
    kill_point("publish.put");
    match put {
        PutOutcome::Created => Ok(PublishOutcome::Published {
            hash: ContentHash::of(&bytes),
            published: Box::new(published),
        }),
        PutOutcome::Exists => {
            let (other, hash) = read(lake, &spec.dataset, spec.version).await?;
            // The same bytes are this very call's, retried after a lost answer.
            if other == published {
                let published = Box::new(published);
                return Ok(PublishOutcome::Published { published, hash });
            }
            Ok(met(other, hash, spec))
        }
    }
}

/// A dataset of JSON lines gets no schema.
async fn check_no_lines(lake: &Lake, spec: &SchemaSpec) -> Result<()> {
    let state = DatasetState::load(lake, &spec.dataset).await?;
    match state.file_format() {
        Some(FileFormat::Jsonl) => Err(Error::precondition(format!(
            "`{}` holds JSON lines, which have no schema",
            spec.dataset
        ))
        .with("invariant", "LOG-12")
        .hint("publish the schema of a dataset of another name, and ingest the files there")),
        Some(FileFormat::Rawpack | FileFormat::RawpackIndex) => Err(Error::precondition(format!(
            "`{}` holds packs, which have no schema",
            spec.dataset
        ))
        .with("invariant", "LOG-12")),
        Some(FileFormat::Parquet) | None => Ok(()),
    }
}

fn met(published: PublishedSchema, hash: ContentHash, spec: &SchemaSpec) -> PublishOutcome {
    if published.schema == *spec {
        let published = Box::new(published);
        return PublishOutcome::AlreadyPublished { published, hash };
    }
    PublishOutcome::Taken {
        diff: Box::new(diff(&published.schema, spec)),
        other: Box::new(published),
    }
}

/// Every published version of the dataset with the hash of its file, by number.
///
/// A hole, a file of another lake, dataset or number, a changed base, a newer format and text that
/// is no published version are errors that name the file. Other files in the folder are left alone.
pub async fn list_published(
    lake: &Lake,
    dataset: &DatasetRef,
) -> Result<Vec<(PublishedSchema, ContentHash)>> {
    let folder = schema_dir(dataset);
    let files = lake.store().list(&folder).await?;
    let mut numbers: Vec<u32> = files
        .iter()
        .filter_map(|f| version_of(f.path.below(&folder)?))
        .collect();
    numbers.sort_unstable();
    let mut listed: Vec<(PublishedSchema, ContentHash)> = Vec::new();
    for (expected, number) in (1..).zip(numbers) {
        if number != expected {
            return Err(Error::corrupt(format!(
                "version {expected} of `{dataset}` is missing, version {number} is there"
            ))
            .with("file", schema_path(dataset, expected))
            .with("invariant", "REG-2")
            .hint("restore the file from a backup of the lake; nothing was changed"));
        }
        let (published, hash) = read(lake, dataset, number).await?;
        if published.base_hash.as_ref() != listed.last().map(|(_, hash)| hash) {
            return Err(Error::corrupt(format!(
                "version {number} of `{dataset}` was not made from version {} as it is here",
                number - 1
            ))
            .with("file", schema_path(dataset, number))
            .with("invariant", "REG-1")
            .hint("one of the two files was changed or comes from elsewhere; restore it from a backup"));
        }
        listed.push((published, hash));
    }
    Ok(listed)
}

/// The newest published version; `None` where none is published.
pub async fn latest(
    lake: &Lake,
    dataset: &DatasetRef,
) -> Result<Option<(PublishedSchema, ContentHash)>> {
    Ok(list_published(lake, dataset).await?.pop())
}

/// A published version; one that is not there is a `NotFound` error.
pub async fn get(
    lake: &Lake,
    dataset: &DatasetRef,
    version: u32,
) -> Result<(PublishedSchema, ContentHash)> {
    let path = schema_path(dataset, version);
    if lake.store().find_size(&path).await?.is_none() {
        let newest = latest(lake, dataset).await?.map(|(p, _)| p.schema.version);
        return Err(
            Error::not_found(format!("version {version} of `{dataset}` is not published")).hint(
                match newest {
                    Some(newest) => format!("versions 1 to {newest} are"),
                    None => format!("none is; `lakebed schema publish {dataset} 1` publishes one"),
                },
            ),
        );
    }
    read(lake, dataset, version).await
}

/// The number in a file name `vN.json`.
fn version_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('v')?.strip_suffix(".json")?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok()).flatten()
}

async fn read(
    lake: &Lake,
    dataset: &DatasetRef,
    version: u32,
) -> Result<(PublishedSchema, ContentHash)> {
    let path = schema_path(dataset, version);
    let bytes = lake.store().get(&path).await?;
    let published = parse_published(&path, &bytes)?;
    let schema = &published.schema;
    let wrong = if published.lake != *lake.id() {
        Some(("lake", published.lake.to_string(), lake.id().to_string()))
    } else if schema.dataset != *dataset {
        Some(("dataset", schema.dataset.to_string(), dataset.to_string()))
    } else if schema.version != version {
        Some(("version", schema.version.to_string(), version.to_string()))
    } else {
        None
    };
    match wrong {
        None => Ok((published, ContentHash::of(&bytes))),
        Some((what, found, expected)) => Err(Error::corrupt(format!(
            "a published schema of another {what} lies here"
        ))
        .with("file", path)
        .with("found", found)
        .with("expected", expected)
        .with("invariant", "REG-1")),
    }
}

fn parse_published(path: &StorePath, bytes: &[u8]) -> Result<PublishedSchema> {
    let corrupt = |what: String| {
        Error::corrupt(format!("read the published schema: {what}"))
            .with("file", path)
            .hint("restore the file from a backup of the lake; nothing was changed")
    };
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| corrupt(format!("it is not JSON: {e}")))?;
    let format = value.get("format").and_then(Value::as_u64);
    if format.is_some_and(|f| f > u64::from(PUBLISHED_FORMAT)) {
        return Err(
            Error::unavailable("this schema was published by a newer Lakebed")
                .with("file", path)
                .with("format", format.unwrap_or(0))
                .hint(format!(
                    "this program knows format {PUBLISHED_FORMAT}; install a newer one"
                )),
        );
    }
    serde_json::from_value(value).map_err(|e| corrupt(e.to_string()))
}

#[cfg(test)]
mod tests;
