//! Where everything lies within a lake (docs/formats/lake.md draws the whole tree).
//!
//! ```text
//! lake.json
//! clean/<dataset>/dt=2026-11-30/schema_version=2/part-00000-<hash>.parquet, _SUCCESS
//! flow/<source>/<date>/<run>/<stage>.done
//! _lake/log/<layer>/<dataset>/00000000000000000001.json
//! _lake/checkpoint/<layer>/<dataset>/00000000000000000128-<hash>.parquet
//! _lake/schema/<layer>/<dataset>/v2.json
//! _lake/stage/<attempt>/<final path of the file, `/` as `!`>
//! _lake/rejects/<layer>/<dataset>/dt=2026-11-30/rejects-<hash>.jsonl.zst
//! _lake/superseded/<layer>/<dataset>/00000000000000000007/dt=2026-11-30/schema_version=2/part-...
//! ```

use crate::name::{AttemptId, DatasetRef, FlowStageName, RunName, SourceName};
use crate::spec::PartitionKey;
use crate::store::StorePath;
use crate::time::BusinessDate;

/// Name of the file that marks a sealed partition.
pub const SUCCESS_NAME: &str = "_SUCCESS";

/// The fixed top folders of a lake.
#[derive(Debug, Clone, Copy)]
pub struct Layout;

impl Layout {
    /// Everything that is no data.
    pub const INTERNAL: &'static str = "_lake";
    /// Files of commits that have not happened yet.
    pub const STAGE: &'static str = "_lake/stage";
    /// Temporary files of puts; on the same file system as all else.
    pub const PUTS: &'static str = "_lake/stage/.puts";
    /// All rejects.
    pub const REJECTS: &'static str = "_lake/rejects";
    /// All files of superseded partitions.
    pub const SUPERSEDED: &'static str = "_lake/superseded";
    /// All checkpoints.
    pub const CHECKPOINTS: &'static str = "_lake/checkpoint";
    /// Stamps of flows.
    pub const FLOW: &str = "flow";
    /// All commit logs.
    pub const LOGS: &'static str = "_lake/log";
    /// All published schemas.
    pub const SCHEMAS: &'static str = "_lake/schema";
}

/// `lake.json`.
#[must_use]
pub fn lake_json_path() -> StorePath {
    StorePath::from_checked("lake.json".to_owned())
}

/// The folder of a dataset's log.
#[must_use]
pub fn log_dir(dataset: &DatasetRef) -> StorePath {
    StorePath::from_checked(format!("{}/{dataset}", Layout::LOGS))
}

/// The file of a log record; numbers have twenty digits, so that names sort.
#[must_use]
pub fn log_record_path(dataset: &DatasetRef, number: u64) -> StorePath {
    StorePath::from_checked(format!("{}/{dataset}/{number:020}.json", Layout::LOGS))
}

/// The number in a record's file name; `None` for any other file.
#[must_use]
pub fn log_number(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(".json")?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

/// Whether the path is that of a record in a log.
#[must_use]
pub fn is_log_record(path: &StorePath) -> bool {
    let place = below_dataset(path, Layout::LOGS);
    place.is_some_and(|(dataset, name)| {
        log_number(&name).is_some_and(|n| log_record_path(&dataset, n) == *path)
    })
}

/// Whether the path is that of a published schema version.
#[must_use]
pub fn is_published_schema(path: &StorePath) -> bool {
    let place = below_dataset(path, Layout::SCHEMAS);
    place.is_some_and(|(dataset, name)| {
        let digits = name.strip_prefix('v').and_then(|n| n.strip_suffix(".json"));
        let number = digits.and_then(|d| d.parse().ok());
        number.is_some_and(|n| schema_path(&dataset, n) == *path)
    })
}

/// Dataset and file name of `<root>/<layer>/<dataset>/<name>`.
fn below_dataset(path: &StorePath, root: &str) -> Option<(DatasetRef, String)> {
    let rest = path.as_str().strip_prefix(root)?.strip_prefix('/')?;
    let (dataset, name) = rest.rsplit_once('/')?;
    Some((dataset.parse().ok()?, name.to_owned()))
}

/// The folder of a dataset's checkpoints.
#[must_use]
pub fn checkpoint_dir(dataset: &DatasetRef) -> StorePath {
    StorePath::from_checked(format!("{}/{dataset}", Layout::CHECKPOINTS))
}

/// The checkpoint that ends at record `number`; `short_hash` is the beginning of its bytes' hash.
#[must_use]
pub fn checkpoint_path(dataset: &DatasetRef, number: u64, short_hash: &str) -> StorePath {
    checkpoint_dir(dataset).child(&format!("{number:020}-{short_hash}.parquet"))
}

/// Number and hash in a checkpoint's file name; `None` for any other file.
#[must_use]
pub fn checkpoint_name(file_name: &str) -> Option<(u64, &str)> {
    let (digits, hash) = file_name.strip_suffix(".parquet")?.split_once('-')?;
    let named = digits.len() == 20
        && digits.bytes().all(|b| b.is_ascii_digit())
        && hash.len() == 16
        && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let number = named.then(|| digits.parse().ok()).flatten()?;
    Some((number, hash))
}

/// The folder of a dataset's published schemas.
#[must_use]
pub fn schema_dir(dataset: &DatasetRef) -> StorePath {
    StorePath::from_checked(format!("{}/{dataset}", Layout::SCHEMAS))
}

/// The file of a published schema version.
#[must_use]
pub fn schema_path(dataset: &DatasetRef, version: u32) -> StorePath {
    schema_dir(dataset).child(&format!("v{version}.json"))
}

/// The folder of all attempts.
#[must_use]
pub fn stage_root() -> StorePath {
    StorePath::from_checked(Layout::STAGE.to_owned())
}

/// The folder of an attempt.
#[must_use]
pub fn stage_dir(attempt: &AttemptId) -> StorePath {
    stage_root().child(attempt.as_str())
}

/// Where an attempt's file lies until it moves to `last`. No folder stands between the attempt and its
/// files: each new one would have to be made durable before the commit.
#[must_use]
pub fn staged_path(attempt: &AttemptId, last: &StorePath) -> StorePath {
    let name = last.as_str().replace('/', "!");
    StorePath::from_checked(format!("{}/{name}", stage_dir(attempt)))
}

/// Where the file of an attempt's folder moves to; `None` for a path that is not below that folder.
#[must_use]
pub fn final_path(stage: &StorePath, staged: &StorePath) -> Option<StorePath> {
    let name = staged.below(stage)?;
    StorePath::new(name.replace('!', "/")).ok()
}

/// The root of all stamps of flows.
#[must_use]
pub fn flow_root() -> StorePath {
    StorePath::from_checked(Layout::FLOW.to_owned())
}

/// The stamp of a stage of a flow.
#[must_use]
pub fn flow_stamp_path(
    source: &SourceName,
    date: BusinessDate,
    run: &RunName,
    stage: &FlowStageName,
) -> StorePath {
    StorePath::from_checked(format!("flow/{source}/{date}/{run}/{stage}.done"))
}

/// Whether the path is that of a stamp.
#[must_use]
pub fn is_flow_stamp(path: &StorePath) -> bool {
    let parts: Vec<&str> = path.as_str().split('/').collect();
    let ["flow", source, date, run, file] = parts.as_slice() else {
        return false;
    };
    let stage = file.strip_suffix(".done");
    source.parse::<SourceName>().is_ok()
        && date
            .parse::<BusinessDate>()
            .is_ok_and(|d| d.to_string() == *date)
        && run.parse::<RunName>().is_ok()
        && stage.is_some_and(|stage| stage.parse::<FlowStageName>().is_ok())
}

/// The folder of a partition; revisions share it, since only the active one lies there.
#[must_use]
pub fn partition_dir(dataset: &DatasetRef, key: &PartitionKey) -> StorePath {
    StorePath::from_checked(format!(
        "{dataset}/dt={}/schema_version={}",
        key.dt, key.schema_version
    ))
}

/// The dataset, date and schema version of a path in a data folder; `None` for any other path.
#[must_use]
pub fn partition_of(path: &StorePath) -> Option<(DatasetRef, BusinessDate, u32)> {
    let mut parts = path.as_str().split('/');
    let (layer, dataset, dt, version) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let dataset = format!("{layer}/{dataset}").parse().ok()?;
    let dt = dt.strip_prefix("dt=")?.parse().ok()?;
    let version = version.strip_prefix("schema_version=")?.parse().ok()?;
    Some((dataset, dt, version))
}

/// A data file at its final place.
#[must_use]
pub fn data_file_path(dataset: &DatasetRef, key: &PartitionKey, name: &str) -> StorePath {
    partition_dir(dataset, key).child(name)
}

/// The `_SUCCESS` of a partition.
#[must_use]
pub fn success_path(dataset: &DatasetRef, key: &PartitionKey) -> StorePath {
    partition_dir(dataset, key).child(SUCCESS_NAME)
}

/// The folder of all files of superseded partitions.
#[must_use]
pub fn superseded_root() -> StorePath {
    StorePath::from_checked(Layout::SUPERSEDED.to_owned())
}

/// The folder of a partition that record `number` superseded. The number is part of the path, so
/// that a slow mover of an earlier switch finds nothing at the place it looks at.
#[must_use]
pub fn superseded_dir(dataset: &DatasetRef, number: u64, key: &PartitionKey) -> StorePath {
    StorePath::from_checked(format!(
        "{}/{dataset}/{number:020}/dt={}/schema_version={}",
        Layout::SUPERSEDED,
        key.dt,
        key.schema_version
    ))
}

/// The folder of a date's rejects.
#[must_use]
pub fn rejects_dir(dataset: &DatasetRef, dt: BusinessDate) -> StorePath {
    StorePath::from_checked(format!("{}/{dataset}/dt={dt}", Layout::REJECTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staged_file_knows_where_it_goes() {
        let attempt: AttemptId = "000661820000000000000000deadbeef".parse().unwrap();
        for last in [
            "clean/weibo.c/dt=2026-11-30/schema_version=2/part-00000-0123456789abcdef.parquet",
            "_lake/rejects/clean/weibo/dt=2026-11-30/rejects-0123456789abcdef.jsonl.zst",
        ] {
            let last = StorePath::new(last).unwrap();
            let staged = staged_path(&attempt, &last);
            assert_eq!(staged.parent(), stage_dir(&attempt));
            assert_eq!(
                final_path(&stage_dir(&attempt), &staged),
                Some(last.clone())
            );
            assert_eq!(final_path(&stage_dir(&attempt), &last), None);
        }
    }

    #[test]
    fn record_names_are_parsed_strictly() {
        let d: DatasetRef = "clean/a.b".parse().unwrap();
        assert_eq!(
            log_record_path(&d, 7).as_str(),
            "_lake/log/clean/a.b/00000000000000000007.json"
        );
        assert_eq!(log_number("00000000000000000007.json"), Some(7));
        for bad in [
            "7.json",
            "0000000000000000000x.json",
            "00000000000000000007.json.tmp",
            "+0000000000000000007.json",
        ] {
            assert_eq!(log_number(bad), None, "{bad}");
        }
    }

    #[test]
    fn records_and_schemas_are_told_from_strangers() {
        let path = |text: &str| StorePath::new(text).unwrap();
        let d: DatasetRef = "clean/a.b".parse().unwrap();
        assert!(is_log_record(&log_record_path(&d, 7)));
        assert!(is_published_schema(&schema_path(&d, 12)));
        for bad in [
            "_lake/log/clean/a/7.json",
            "_lake/log/clean/a/00000000000000000007.json.bak",
            "_lake/log/clean/a/old/00000000000000000007.json",
            "_lake/log/cleen/a/00000000000000000007.json",
            "_lake/log/00000000000000000007.json",
            "_lake/schema/clean/a/v01.json",
            "_lake/schema/clean/a/v+1.json",
            "_lake/schema/clean/a/v1.toml",
            "_lake/schema/v1.json",
            "lake.json",
        ] {
            assert!(
                !is_log_record(&path(bad)) && !is_published_schema(&path(bad)),
                "{bad}"
            );
        }
    }

    #[test]
    fn checkpoint_names_are_no_record_names() {
        let d: DatasetRef = "clean/a.b".parse().unwrap();
        let path = checkpoint_path(&d, 128, "0123456789abcdef");
        assert_eq!(
            path.as_str(),
            "_lake/checkpoint/clean/a.b/00000000000000000128-0123456789abcdef.parquet"
        );
        let name = path.file_name();
        assert_eq!(checkpoint_name(&name), Some((128, "0123456789abcdef")));
        assert_eq!(log_number(&name), None);
        for bad in [
            "128-0123456789abcdef.parquet",
            "00000000000000000128.parquet",
            "00000000000000000128-0123456789ABCDEF.parquet",
            "00000000000000000128-0123456789abcdef.json",
            "99999999999999999999-0123456789abcdef.parquet",
        ] {
            assert_eq!(checkpoint_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn stamps_are_told_from_strangers() {
        let path = |text: &str| StorePath::new(text).unwrap();
        let (source, run) = ("rent".parse().unwrap(), "_day".parse().unwrap());
        let stage = "fold.rents".parse().unwrap();
        let stamp = flow_stamp_path(&source, "2026-11-30".parse().unwrap(), &run, &stage);
        assert_eq!(stamp.as_str(), "flow/rent/2026-11-30/_day/fold.rents.done");
        assert!(is_flow_stamp(&stamp));
        for bad in [
            "flow/rent/2026-11-30/_day/fold.rents",
            "flow/rent/2026-11-30/_day/Fold.done",
            "flow/rent/2026-11-31/_day/fold.done",
            "flow/Rent/2026-11-30/_day/fold.done",
            "flow/rent/2026-11-30/fold.done",
        ] {
            assert!(!is_flow_stamp(&path(bad)), "{bad}");
        }
    }

    #[test]
    fn data_paths_are_hive_style() {
        let d: DatasetRef = "clean/weibo".parse().unwrap();
        let key = PartitionKey {
            dt: "2024-05-20".parse().unwrap(),
            schema_version: 2,
            revision: 0,
        };
        let path = data_file_path(&d, &key, "part-00000-ab.parquet");
        assert_eq!(
            path.as_str(),
            "clean/weibo/dt=2024-05-20/schema_version=2/part-00000-ab.parquet"
        );
        assert_eq!(partition_of(&path), Some((d, key.dt, 2)));
    }
}
