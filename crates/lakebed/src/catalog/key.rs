//! Stable ids and digests of catalog rows, the same on every backend: pure functions of the key, so
//! that a rebuild gives the same ids.
//!
//! A partition's key text is `clean/weibo/dt=2024-05-20/schema_version=2/revision=0`; its id is the
//! first 32 hex digits of the BLAKE3 of that text. A file's key text is `<partition id>/<name>`.

use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{PartitionKey, PartitionState};
use crate::store::{StorePath, partition_of};

/// The first 32 hex digits of what was hashed.
fn id_of(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Id of a partition: `dataset_partition_info.id`.
#[must_use]
pub fn partition_id(dataset: &DatasetRef, key: &PartitionKey) -> String {
    let text = format!(
        "{dataset}/dt={}/schema_version={}/revision={}",
        key.dt, key.schema_version, key.revision
    );
    id_of(blake3::Hasher::new().update(text.as_bytes()))
}

/// Id of a data file: `data_file.id`.
#[must_use]
pub fn file_id(partition_id: &str, name: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(partition_id.as_bytes());
    id_of(hasher.update(b"/").update(name.as_bytes()))
}

/// Checksum of a partition: BLAKE3 over the hex digits of its file hashes, in order of file names.
#[must_use]
pub fn partition_checksum<'a>(hashes_by_name: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for hash in hashes_by_name {
        hasher.update(hash.as_bytes());
    }
    ContentHash::finish(&hasher).into()
}

/// Whether readers of the catalog see a partition in this state.
#[must_use]
pub fn is_visible(state: PartitionState) -> bool {
    match state {
        PartitionState::Active | PartitionState::Switching => true,
        PartitionState::Superseded | PartitionState::Retired | PartitionState::Purged => false,
    }
}

/// Id of a parent named in a record: `layer/dataset/dt=.../schema_version=n`, and
/// `/revision=n` where it is not revision 0.
pub(super) fn parent_id(text: &str) -> Result<String> {
    let (folder, revision) = match text.split_once("/revision=") {
        Some((folder, n)) => (folder, n.parse().ok()),
        None => (text, Some(0)),
    };
    let place = StorePath::new(folder)
        .ok()
        .filter(|p| p.as_str().split('/').count() == 4)
        .and_then(|p| partition_of(&p));
    match (place, revision) {
        (Some((dataset, dt, schema_version)), Some(revision)) => Ok(partition_id(
            &dataset,
            &PartitionKey {
                dt,
                schema_version,
                revision,
            },
        )),
        _ => Err(
            Error::corrupt(format!("`{text}` names no parent partition"))
                .hint("a parent is written `layer/dataset/dt=YYYY-MM-DD/schema_version=N`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(revision: u32) -> PartitionKey {
        PartitionKey {
            dt: "2024-05-20".parse().unwrap(),
            schema_version: 2,
            revision,
        }
    }

    #[test]
    fn ids_never_change() {
        // Written down once: another value would break every lineage that was stored before.
        let d: DatasetRef = "clean/weibo".parse().unwrap();
        let id = partition_id(&d, &key(0));
        assert_eq!(
            id,
            blake3::hash(b"clean/weibo/dt=2024-05-20/schema_version=2/revision=0").to_hex()[..32]
        );
        assert_ne!(id, partition_id(&d, &key(1)));
        assert_ne!(id, partition_id(&"raw/weibo".parse().unwrap(), &key(0)));
    }

    #[test]
    fn parents_are_parsed_strictly() {
        let d: DatasetRef = "clean/weibo".parse().unwrap();
        let at = "clean/weibo/dt=2024-05-20/schema_version=2";
        assert_eq!(parent_id(at).unwrap(), partition_id(&d, &key(0)));
        assert_eq!(
            parent_id(&format!("{at}/revision=3")).unwrap(),
            partition_id(&d, &key(3))
        );
        for bad in [
            "",
            "clean/weibo",
            "clean/weibo/dt=2024-05-20",
            "clean/weibo/dt=2024-05-20/schema_version=2/part.parquet",
            "clean/weibo/dt=2024-05-20/schema_version=2/revision=x",
            "clean/weibo/dt=2024-13-20/schema_version=2",
        ] {
            assert!(parent_id(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_checksum_depends_on_the_order() {
        let (a, b) = (ContentHash::of(b"a"), ContentHash::of(b"b"));
        assert_ne!(
            partition_checksum([a.as_str(), b.as_str()]),
            partition_checksum([b.as_str(), a.as_str()])
        );
    }
}
