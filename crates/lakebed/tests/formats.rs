//! Old formats stay readable for ever: every version under `testdata/` is read and must say what it
//! said when it was written. A fixture is never changed; a new format number gets a new folder.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of tests ends the test where it cannot go on"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakebed::log::{
    CheckpointContent, DatasetState, list_checkpoints, load, read_after, read_checkpoint,
};
use lakebed::name::DatasetRef;
use lakebed::registry;
use lakebed::spec::{LogPosition, Operation, PartitionKey};
use lakebed::store::{Lake, LocalStore};
use lakebed::time::Clock;

fn testdata(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(below)
}

async fn fixture(version: &str) -> (Lake, DatasetRef) {
    fixture_of("log", version).await
}

async fn fixture_of(format: &str, version: &str) -> (Lake, DatasetRef) {
    let store = Arc::new(LocalStore::new(testdata(format).join(version)));
    let lake = Lake::open(store, Arc::new(Clock::System)).await.unwrap();
    (lake, "clean/weibo".parse().unwrap())
}

#[tokio::test]
async fn log_v1_folds_to_what_it_said() {
    let (lake, dataset) = fixture("v1").await;
    assert_eq!(lake.spec().time_zone, "Asia/Taipei");
    let records = read_after(&lake, &dataset, &LogPosition::START)
        .await
        .unwrap();
    let operations: Vec<_> = records.iter().map(|r| r.record.operation).collect();
    use Operation::{Abandon, Append, Reopen, Seal};
    assert_eq!(
        operations,
        [Append, Append, Seal, Reopen, Abandon, Append, Seal, Append]
    );
    assert_eq!(records[3].record.by.note.as_deref(), Some("one more sweep"));
    assert_eq!(
        records[0].record.by.run.as_ref().map(|r| r.as_str()),
        Some("0900")
    );

    let state = DatasetState::load(&lake, &dataset).await.unwrap();
    let day = "2026-11-28".parse().unwrap();
    let rows = |schema_version| -> u64 {
        let key = PartitionKey {
            dt: day,
            schema_version,
            revision: 0,
        };
        state.partitions()[&key]
            .files
            .values()
            .map(|f| f.spec.rows)
            .sum()
    };
    assert_eq!((rows(1), rows(2)), (2, 1));
    assert!(state.is_sealed(day));
    assert!(!state.is_sealed("2026-11-29".parse().unwrap()));
    assert_eq!(state.dates()[&day].rejects[0].spec.records, 1);
    let labels: Vec<_> = state
        .visible_inputs(day)
        .filter_map(|(_, i)| i.spec.batch.clone())
        .collect();
    assert_eq!(
        labels.iter().map(|l| l.as_str()).collect::<Vec<_>>(),
        ["s1"]
    );
    assert!(state.is_abandoned(&"000661820000000000000000deadbeef".parse().unwrap()));
}

/// No record of format 1 says what became of rejects: they wait.
#[tokio::test]
async fn rejects_wait_where_no_record_tried_them_again() {
    let day = "2026-11-28".parse().unwrap();
    let (lake, dataset) = fixture("v1").await;
    let state = DatasetState::load(&lake, &dataset).await.unwrap();
    assert!(
        state.dates()[&day]
            .rejects
            .iter()
            .all(|r| r.retried_by.is_none())
    );

    let (lake, dataset) = fixture("v2").await;
    let records = read_after(&lake, &dataset, &LogPosition::START)
        .await
        .unwrap();
    let readers: Vec<_> = records
        .iter()
        .map(|r| (r.record.format, r.record.min_reader))
        .collect();
    assert_eq!(readers, [(2, 1), (2, 2), (2, 1)]);
    let state = DatasetState::load(&lake, &dataset).await.unwrap();
    let kept: Vec<_> = state.dates()[&day]
        .rejects
        .iter()
        .map(|r| (r.number, r.spec.records, r.retried_by))
        .collect();
    assert_eq!(kept, [(1, 3, Some(2)), (2, 1, None)]);
    assert!(state.is_sealed(day));
}

/// A record of format 3 may carry appends of other calls, each with an attempt of its own.
#[tokio::test]
async fn a_record_of_v3_carries_other_appends() {
    let (lake, dataset) = fixture("v3").await;
    let records = read_after(&lake, &dataset, &LogPosition::START)
        .await
        .unwrap();
    let [only] = records.as_slice() else {
        panic!("{} records", records.len())
    };
    let record = &only.record;
    assert_eq!((record.format, record.min_reader), (3, 3));
    assert_eq!((record.joined.len(), record.actions.len()), (4, 10));
    let state = DatasetState::load(&lake, &dataset).await.unwrap();
    let partition = state.partitions().values().next().unwrap();
    let attempts: Vec<&str> = partition
        .files
        .values()
        .map(|f| f.attempt.as_ref().unwrap().as_str())
        .collect();
    let want = [
        "attempt-a",
        "attempt-b",
        "attempt-c",
        "attempt-d",
        "attempt-e",
    ];
    assert_eq!(attempts, want);
    for attempt in want {
        assert_eq!(state.committed_attempt(&attempt.parse().unwrap()), Some(1));
    }
}

#[tokio::test]
async fn published_schemas_v1_are_read() {
    let (lake, dataset) = fixture("v1").await;
    let versions = registry::list_published(&lake, &dataset).await.unwrap();
    let fields: Vec<Vec<&str>> = versions
        .iter()
        .map(|(v, _)| v.schema.fields.iter().map(|f| f.name.as_str()).collect())
        .collect();
    assert_eq!(fields, [vec!["标题", "hot"], vec!["标题", "hot", "tags"]]);
    assert_eq!(versions[1].0.base_hash.as_ref(), Some(&versions[0].1));
}

/// A log with everything that a fold knows, and its checkpoint at record 15 of 16.
#[tokio::test]
async fn checkpoint_v1_holds_what_its_records_say() {
    let (lake, dataset) = fixture_of("checkpoint", "v1").await;
    let checkpoints = list_checkpoints(&lake, &dataset).await.unwrap();
    let numbers: Vec<u64> = checkpoints.iter().map(|c| c.number).collect();
    assert_eq!(numbers, [15]);
    let content = read_checkpoint(&lake, &dataset, &checkpoints[0])
        .await
        .unwrap();
    let CheckpointContent::Fold(fold) = content else {
        panic!("{content:?}");
    };
    assert_eq!(fold.position().number, 15);
    assert!(fold.is_sealed("2026-11-28".parse().unwrap()));
    assert_eq!(fold.next_revision("2026-11-29".parse().unwrap()), 2);
    assert!(fold.is_abandoned(&"attempt-7".parse().unwrap()));
    assert_eq!(
        fold.committed_attempt(&"attempt-4".parse().unwrap()),
        Some(14)
    );

    let loaded = load(&lake, &dataset).await.unwrap();
    assert!(loaded.passed_over.is_empty(), "{:?}", loaded.passed_over);
    assert_eq!(
        loaded.state,
        DatasetState::fold_records(&lake, &dataset).await.unwrap()
    );
}

/// Packs that earlier programs wrote are read whole, by their index and without it.
#[test]
fn rawpacks_of_every_version_are_read() {
    for version in ["v1", "v2"] {
        read_rawpack(&testdata("rawpack").join(version).join(RAWPACK));
    }
}

const RAWPACK: &str = "2026-11-30.day-00000000.tar.zst";

fn read_rawpack(path: &Path) {
    use lakebed::pack::{PackReader, scan_pack};
    use lakebed::spec::PackHead;

    let reader = PackReader::open(path).unwrap();
    let scan = scan_pack(reader.source()).unwrap();
    assert!(scan.is_whole(), "{:?}", scan.damage);
    let head: &PackHead = scan.head.as_ref().unwrap();
    assert_eq!(head.run.to_string(), "books 2026-11-30 day");
    assert_eq!((scan.trailer.captures, scan.trailer.requests), (6, 6));
    assert_eq!(scan.terminals.as_ref().map(Vec::len), Some(6));
    let rows: Vec<_> = reader
        .index()
        .unwrap()
        .rows()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows, scan.rows);
    let mut titles = Vec::new();
    for row in &rows {
        let capture = reader.get(&row.capture_id).unwrap();
        titles.push(String::from_utf8(capture.body.to_vec()).unwrap());
    }
    titles.sort();
    assert!(
        titles[0].starts_with("<html><title>Book 1</title>"),
        "{}",
        titles[0]
    );
    assert_eq!(titles.len(), 6);
}

/// A run that was sealed in one version is known again in the next: the same captures have the same identity.
#[test]
fn a_rawpack_keeps_its_identity_over_versions() {
    use lakebed::pack::{PackReader, PartOptions, PartWriter, open_parts, plan_pack};
    use lakebed::spec::PackProfile;
    use lakebed::time::{Clock, Instant};

    for version in ["v1", "v2"] {
        let reader = PackReader::open(&testdata("rawpack").join(version).join(RAWPACK)).unwrap();
        let scan = reader.scan().unwrap();
        let run = scan.head.as_ref().unwrap().run.clone();
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            PartWriter::new(folder.path(), &run, PartOptions::default(), &Clock::System).unwrap();
        for capture in reader.replay() {
            let capture = capture.unwrap();
            let now = Instant::from_micros(0);
            drop(writer.append(&capture.capture, &capture.body, now).unwrap());
        }
        drop(writer.finish().unwrap());
        let parts = open_parts(folder.path(), &run).unwrap();
        let terminals = scan.terminals.unwrap().into_iter().map(Ok);
        let plan = plan_pack(&run, &parts, terminals, PackProfile::Std, folder.path()).unwrap();
        assert_eq!(*plan.content(), scan.trailer.content, "{version}");
    }
}

/// An input of format 5 names what it was derived from.
#[tokio::test]
async fn an_input_of_v5_names_its_parents() {
    let (lake, _) = fixture("v5").await;
    let dataset: DatasetRef = "feature/rent.cities".parse().unwrap();
    let records = read_after(&lake, &dataset, &LogPosition::START)
        .await
        .unwrap();
    let record = &records[0].record;
    assert_eq!((record.format, record.min_reader), (5, 5));
    let state = DatasetState::load(&lake, &dataset).await.unwrap();
    let day = "2026-11-30".parse().unwrap();
    let parents: Vec<_> = state
        .visible_inputs(day)
        .flat_map(|(_, input)| input.spec.parents.clone())
        .map(|p| (p.dataset.to_string(), p.dt, p.revision, p.position))
        .collect();
    assert_eq!(parents, [("clean/rent".to_owned(), day, 0, 1)]);
}

/// A stamp says what it said, and is written as it was.
#[test]
fn stamps_v1_are_read() {
    use lakebed::spec::StampSpec;

    let path = testdata("stamp/v1/flow/rent/2026-11-30/_day/derive.cities.done");
    let bytes = std::fs::read(&path).unwrap();
    let stamp = StampSpec::read(&bytes, "derive.cities.done").unwrap();
    assert_eq!(
        (stamp.stage.as_str(), stamp.kind.as_str()),
        ("derive.cities", "derive")
    );
    assert_eq!(stamp.inputs[0].dataset.to_string(), "clean/rent");
    assert!(stamp.outputs[0].sealed && stamp.outputs[0].content.is_some());
    assert_eq!(stamp.to_bytes().unwrap(), bytes);
}
