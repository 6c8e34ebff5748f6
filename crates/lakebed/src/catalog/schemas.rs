//! Published schema versions on their way from the lake into the catalog. The files are read as they
//! lie; whether a version is sound was decided when it was published.

use std::collections::BTreeMap;

use crate::catalog::{Catalog, SchemaRow};
use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{PUBLISHED_FORMAT, PublishedSchema};
use crate::store::{Lake, StorePath, schema_dir};

/// Puts every published schema version of the dataset into the catalog. Where it has them all, nothing
/// is written and no writer is waited for.
pub async fn sync_schemas(lake: &Lake, catalog: &dyn Catalog, dataset: &DatasetRef) -> Result<()> {
    let known = catalog.list_schemas(Some(dataset)).await?;
    drop(put_missing(lake, catalog, dataset, known).await?);
    Ok(())
}

/// As [`sync_schemas`] for a catalog that has the versions `known`; answers those that it has now.
pub(super) async fn put_missing(
    lake: &Lake,
    catalog: &dyn Catalog,
    dataset: &DatasetRef,
    known: Vec<SchemaRow>,
) -> Result<Vec<SchemaRow>> {
    let hashes: BTreeMap<u32, ContentHash> =
        known.iter().map(|r| (r.version, r.hash.clone())).collect();
    let mut files = Vec::new();
    for file in lake.store().list(&schema_dir(dataset)).await? {
        if let Some(version) = version_of(&file.path.file_name()) {
            files.push((version, file.path));
        }
    }
    files.sort();
    let is_lost = |row: &&SchemaRow| files.iter().all(|(version, _)| *version != row.version);
    if let Some(row) = known.iter().find(is_lost) {
        return Err(Error::corrupt(format!(
            "the catalog knows version {} of `{dataset}`, the lake does not",
            row.version
        ))
        .with("folder", schema_dir(dataset))
        .with("invariant", "CAT-3")
        .hint("the lake is older than the catalog: restore the lake, or delete the catalog and run `lakebed catalog rebuild`"));
    }
    let mut is_new = false;
    for (version, path) in files {
        let bytes = lake.store().get(&path).await?;
        let hash = ContentHash::of(&bytes);
        if hashes.get(&version) == Some(&hash) {
            continue;
        }
        let published = parse(lake, dataset, version, &path, &bytes)?;
        catalog
            .put_schema(&published, &hash)
            .await
            .map_err(|e| e.with("file", &path))?;
        is_new = true;
    }
    match is_new {
        true => catalog.list_schemas(Some(dataset)).await,
        false => Ok(known),
    }
}

/// The number in `v<N>.json`; `None` for any other name.
fn version_of(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_prefix('v')?.strip_suffix(".json")?;
    let number: u32 = digits.parse().ok()?;
    (number > 0 && number.to_string() == digits).then_some(number)
}

fn parse(
    lake: &Lake,
    dataset: &DatasetRef,
    version: u32,
    path: &StorePath,
    bytes: &[u8],
) -> Result<PublishedSchema> {
    let corrupt = |what: String| {
        Error::corrupt(format!("read the published schema: {what}"))
            .with("file", path)
            .hint("restore the file from a backup of the lake; nothing was changed")
    };
    let value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|e| corrupt(format!("it is not JSON: {e}")))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    if format.is_some_and(|f| f > u64::from(PUBLISHED_FORMAT)) {
        return Err(
            Error::unavailable("this schema was published by a newer Lakebed")
                .with("file", path)
                .with("format", format.unwrap_or(0))
                .hint(format!(
                    "this program reads published schemas up to format {PUBLISHED_FORMAT}; install a newer one"
                )),
        );
    }
    let published: PublishedSchema =
        serde_json::from_value(value).map_err(|e| corrupt(e.to_string()))?;
    if published.lake != *lake.id() {
        return Err(corrupt("it belongs to another lake".to_owned())
            .with("found", &published.lake)
            .with("expected", lake.id()));
    }
    if published.schema.dataset != *dataset || published.schema.version != version {
        return Err(corrupt("it belongs to another place".to_owned()).with(
            "found",
            format!(
                "{} version {}",
                published.schema.dataset, published.schema.version
            ),
        ));
    }
    Ok(published)
}
