//! Syncing attacked: other pasts, missing files, several programs at once.

use std::sync::Arc;

use super::*;
use crate::catalog::testlog::{
    TestLog, add, dataset, file, key, lake_spec, new_lake, put, small_parquet,
};
use crate::catalog::{
    DatasetStatus, PartitionFilter, SourceRow, SqliteCatalog, StatValue, SyncState, is_fresh,
    rebuild, status, sync_schemas,
};
use crate::error::ErrorKind;
use crate::name::ContentHash;
use crate::spec::{
    Action, By, Operation, PartitionKey, PartitionState, PublishedSchema, ReadSpec, SchemaSpec,
};
use crate::store::{data_file_path, log_record_path, schema_path, staged_path};
use crate::time::Instant;

/// Actions of a record, and the files that disappear after it.
type Step = (Vec<Action>, Vec<(PartitionKey, &'static str)>);

const DAY: &str = "2024-05-20";

struct Fixture {
    dir: tempfile::TempDir,
    lake: Lake,
    log: TestLog,
}

impl Fixture {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lake = new_lake(&dir).await;
        let log = TestLog::new(lake.spec(), &dataset());
        Self { dir, lake, log }
    }

    async fn catalog(&self, name: &str) -> SqliteCatalog {
        SqliteCatalog::open(self.dir.path().join(name))
            .await
            .unwrap()
    }

    /// Puts a data file at its final place and gives its action.
    async fn place(&self, partition: PartitionKey, name: &str, numbers: &[i64]) -> Action {
        let (bytes, spec) = small_parquet(name, numbers);
        put(
            &self.lake,
            &data_file_path(&dataset(), &partition, name),
            &bytes,
        )
        .await;
        add(partition, spec)
    }

    async fn delete(&self, partition: PartitionKey, name: &str) {
        let path = data_file_path(&dataset(), &partition, name);
        self.lake.store().delete(&path).await.unwrap();
    }

    async fn append(&mut self, actions: Vec<Action>) {
        self.log
            .commit(&self.lake, Operation::Append, actions)
            .await;
    }

    async fn sync(&self, catalog: &SqliteCatalog) -> Result<SyncReport> {
        sync(&self.lake, catalog, &dataset()).await
    }

    async fn state(&self, catalog: &SqliteCatalog) -> SyncState {
        let lines = status(&self.lake, catalog).await.unwrap();
        let line: Vec<&DatasetStatus> = lines.iter().filter(|l| l.dataset == dataset()).collect();
        line[0].state.clone()
    }
}

fn set(partition: PartitionKey, from: PartitionState, to: PartitionState) -> Action {
    Action::SetState {
        partition,
        from,
        to,
    }
}

fn everything() -> PartitionFilter {
    PartitionFilter {
        all_states: true,
        ..PartitionFilter::default()
    }
}

async fn put_schema(lake: &Lake, version: u32, file_version: u32) {
    let published = PublishedSchema {
        format: 1,
        lake: lake.id().clone(),
        published_at: Instant::from_micros(7),
        by: By {
            program: "lakebed 0.1.0".to_owned(),
            user: None,
            run: None,
            note: None,
        },
        base_hash: None,
        git_commit: None,
        schema: SchemaSpec {
            dataset: dataset(),
            version,
            note: None,
            base: None,
            removed: Vec::new(),
            input: ReadSpec::default(),
            fields: Vec::new(),
        },
    };
    let bytes = serde_json::to_vec_pretty(&published).unwrap();
    put(lake, &schema_path(&dataset(), file_version), &bytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_catalog_comes_back_identical() {
    use PartitionState::{Active, Purged, Retired, Superseded};
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let (one, two, three) = (key(DAY, 1, 0), key("2024-05-21", 1, 0), key(DAY, 2, 0));
    let source = SourceRow {
        source: "weibo".parse().unwrap(),
        title: Some("微博".to_owned()),
        class: "log".to_owned(),
        old_names: Vec::new(),
    };
    put_schema(&f.lake, 1, 1).await;
    // Each record is followed at once, as a running program does; meanwhile files disappear.
    let steps: Vec<Step> = vec![
        (
            vec![
                f.place(one, "a", &[1, 2]).await,
                f.place(one, "b", &[3]).await,
            ],
            vec![],
        ),
        (
            vec![
                f.place(two, "c", &[4]).await,
                Action::Complete { dt: one.dt },
            ],
            vec![],
        ),
        (vec![f.place(three, "d", &[5, 6, 7]).await], vec![]),
        (
            vec![
                f.place(one, "ab", &[1, 2, 3]).await,
                Action::RemoveFile {
                    partition: one,
                    name: "a".to_owned(),
                },
                Action::RemoveFile {
                    partition: one,
                    name: "b".to_owned(),
                },
            ],
            vec![(one, "a"), (one, "b")],
        ),
        (vec![set(two, Active, Retired)], vec![]),
        (vec![set(two, Retired, Purged)], vec![(two, "c")]),
        (vec![set(three, Active, Superseded)], vec![]),
        (vec![set(three, Superseded, Active)], vec![]),
        (vec![Action::Open { dt: one.dt }], vec![]),
    ];
    let count = steps.len() as u64;
    for (actions, gone) in steps {
        f.append(actions).await;
        assert_eq!(f.sync(&catalog).await.unwrap().applied, 1);
        for (partition, name) in gone {
            f.delete(partition, name).await;
        }
    }
    sync_all(&f.lake, &catalog).await.unwrap();
    catalog.put_source(&source).await.unwrap();
    let dump = catalog.dump().await.unwrap();
    assert_eq!(dump.matches(r#""table":"column_stats""#).count(), 2 * 4);
    assert!(dump.contains("第7条"), "{dump}");

    let again = f.catalog("b.db").await;
    let reports = rebuild(&f.lake, &again, true).await.unwrap();
    again.put_source(&source).await.unwrap();
    assert_eq!(again.dump().await.unwrap(), dump);
    assert_eq!(
        (reports[0].from, reports[0].to, reports[0].applied),
        (0, count, count)
    );
    // And over what is there already.
    rebuild(&f.lake, &catalog, false).await.unwrap();
    catalog.put_source(&source).await.unwrap();
    assert_eq!(catalog.dump().await.unwrap(), dump);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_may_still_lie_in_its_stage_folder() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let p = key(DAY, 1, 0);
    let (bytes, spec) = small_parquet("a", &[-5, 9]);
    let staged = staged_path(
        &"attempt-1".parse().unwrap(),
        &data_file_path(&dataset(), &p, "a"),
    );
    put(&f.lake, &staged, &bytes).await;
    f.append(vec![add(p, spec)]).await;
    f.sync(&catalog).await.unwrap();
    let rows = catalog
        .list_column_stats(&everything(), &[1])
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].stats.min, Some(StatValue::Int(-5)));
    assert_eq!(rows[0].stats.max, Some(StatValue::Int(9)));
    assert!(rows[0].stats.min_exact && rows[0].stats.max_exact);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_file_stops_the_sync_before_its_record() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let p = key(DAY, 1, 0);
    let a = f.place(p, "a", &[1]).await;
    f.append(vec![a]).await;
    f.append(vec![add(p, file("lost", 3))]).await;
    let error = f.sync(&catalog).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(
        error.to_string().contains("schema_version=1/lost"),
        "{error}"
    );
    assert_eq!(catalog.position(&dataset()).await.unwrap().number, 1);
    assert_eq!(f.state(&catalog).await, SyncState::Behind { records: 1 });
    // The log says later that it was removed: then its loss is no fault.
    let remove = Action::RemoveFile {
        partition: p,
        name: "lost".to_owned(),
    };
    f.append(vec![remove]).await;
    assert_eq!(f.sync(&catalog).await.unwrap().applied, 2);
    assert_eq!(f.state(&catalog).await, SyncState::InSync);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_before_the_loss_excuses_nothing() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let p = key(DAY, 1, 0);
    let a = f.place(p, "a", &[1]).await;
    let remove = Action::RemoveFile {
        partition: p,
        name: "a".to_owned(),
    };
    f.append(vec![a.clone()]).await;
    f.append(vec![remove]).await;
    f.append(vec![a]).await;
    f.delete(p, "a").await;
    let error = f.sync(&catalog).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert_eq!(catalog.position(&dataset()).await.unwrap().number, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_sync_at_once_apply_each_record_once() {
    let mut f = Fixture::new().await;
    let p = key(DAY, 1, 0);
    for i in 0..12_i64 {
        let action = f.place(p, &format!("f{i:02}"), &[i]).await;
        f.append(vec![action]).await;
    }
    let f = Arc::new(f);
    let mut syncs = JoinSet::new();
    for _ in 0..4 {
        let f = Arc::clone(&f);
        syncs.spawn(async move {
            let catalog = f.catalog("a.db").await;
            f.sync(&catalog).await.unwrap()
        });
    }
    let reports = syncs.join_all().await;
    assert_eq!(reports.iter().map(|r| r.applied).sum::<u64>(), 12);
    assert!(reports.iter().all(|r| r.to == 12), "{reports:?}");
    let catalog = f.catalog("a.db").await;
    let alone = f.catalog("b.db").await;
    f.sync(&alone).await.unwrap();
    assert_eq!(catalog.dump().await.unwrap(), alone.dump().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_and_freshness_follow_the_log() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    assert!(is_fresh(&f.lake, &catalog, &dataset()).await.unwrap());
    assert_eq!(status(&f.lake, &catalog).await.unwrap(), []);
    let dt = key(DAY, 1, 0).dt;
    f.append(vec![Action::Complete { dt }]).await;
    f.append(vec![Action::Open { dt }]).await;
    assert!(!is_fresh(&f.lake, &catalog, &dataset()).await.unwrap());
    assert_eq!(f.state(&catalog).await, SyncState::Behind { records: 2 });
    // A chain that is broken among the records that wait is found where a sync would find it.
    let second = log_record_path(&dataset(), 2);
    let kept = f.lake.store().get(&second).await.unwrap();
    let mut forged: serde_json::Value = serde_json::from_slice(&kept).unwrap();
    forged["previous"] = ContentHash::of(b"another past").as_str().into();
    let bytes = serde_json::to_vec(&forged).unwrap();
    f.lake.store().replace(&second, &bytes).await.unwrap();
    let SyncState::Broken { reason } = f.state(&catalog).await else {
        panic!("the broken chain was not seen");
    };
    assert!(reason.contains("LOG-2"), "{reason}");
    f.lake.store().replace(&second, &kept).await.unwrap();
    f.sync(&catalog).await.unwrap();
    assert!(is_fresh(&f.lake, &catalog, &dataset()).await.unwrap());
    assert_eq!(f.state(&catalog).await, SyncState::InSync);

    // The lake goes back to an older state.
    let last = log_record_path(&dataset(), 2);
    f.lake.store().delete(&last).await.unwrap();
    assert_eq!(f.state(&catalog).await, SyncState::Ahead);
    let error = f.sync(&catalog).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);

    // Another record takes the number.
    let mut other = TestLog::new(f.lake.spec(), &dataset());
    other.next(Operation::Seal, vec![Action::Complete { dt }]);
    other.commit(&f.lake, Operation::Seal, vec![]).await;
    assert_eq!(f.state(&catalog).await, SyncState::Diverged);
    let dump = catalog.dump().await.unwrap();
    let error = f.sync(&catalog).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert_eq!(catalog.dump().await.unwrap(), dump);

    // A hole.
    let first = log_record_path(&dataset(), 1);
    f.lake.store().delete(&first).await.unwrap();
    assert!(matches!(f.state(&catalog).await, SyncState::Broken { .. }));
    assert!(f.sync(&catalog).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_log_is_refused_not_passed_over() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let dt = key(DAY, 1, 0).dt;
    f.append(vec![Action::Complete { dt }]).await;
    f.sync(&catalog).await.unwrap();
    let first = log_record_path(&dataset(), 1);
    f.lake.store().delete(&first).await.unwrap();
    assert_eq!(f.state(&catalog).await, SyncState::Ahead);
    let error = sync_all(&f.lake, &catalog).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_lake_is_refused() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    catalog.bind(&lake_spec("another")).await.unwrap();
    f.append(vec![]).await;
    let dump = catalog.dump().await.unwrap();
    for error in [
        f.sync(&catalog).await.unwrap_err(),
        sync_all(&f.lake, &catalog).await.unwrap_err(),
        status(&f.lake, &catalog).await.unwrap_err(),
        rebuild(&f.lake, &catalog, true).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
    }
    assert_eq!(catalog.dump().await.unwrap(), dump);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_are_read_from_their_files() {
    let f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    for version in [2, 1, 10] {
        put_schema(&f.lake, version, version).await;
    }
    let stranger = schema_path(&dataset(), 1).parent().child("v01.json");
    put(&f.lake, &stranger, b"{}").await;
    sync_all(&f.lake, &catalog).await.unwrap();
    sync_schemas(&f.lake, &catalog, &dataset()).await.unwrap();
    let rows = catalog.list_schemas(Some(&dataset())).await.unwrap();
    let versions: Vec<_> = rows.iter().map(|r| r.version).collect();
    assert_eq!(versions, [1, 2, 10]);
    let path = schema_path(&dataset(), 2);
    let bytes = f.lake.store().get(&path).await.unwrap();
    assert_eq!(rows[1].hash, ContentHash::of(&bytes));

    // A version the lake lost, one at another's place, one from the future.
    f.lake.store().delete(&path).await.unwrap();
    assert!(sync_schemas(&f.lake, &catalog, &dataset()).await.is_err());
    put_schema(&f.lake, 3, 2).await;
    let error = sync_schemas(&f.lake, &catalog, &dataset())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("another place"), "{error}");
    f.lake
        .store()
        .replace(&path, br#"{"format": 3}"#)
        .await
        .unwrap();
    let error = sync_schemas(&f.lake, &catalog, &dataset())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    f.lake.store().replace(&path, b"{").await.unwrap();
    let error = sync_schemas(&f.lake, &catalog, &dataset())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_may_leave_and_come_back_in_one_record() {
    use PartitionState::{Active, Superseded};
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let (p, q) = (key(DAY, 1, 0), key(DAY, 2, 0));
    let remove = |partition, name: &str| Action::RemoveFile {
        partition,
        name: name.to_owned(),
    };
    let a = f.place(p, "a", &[1]).await;
    let (b, c) = (f.place(q, "b", &[2]).await, f.place(q, "c", &[3]).await);
    f.append(vec![a.clone(), b, c, set(q, Active, Superseded)])
        .await;
    f.sync(&catalog).await.unwrap();
    f.append(vec![
        remove(p, "a"),
        a,
        remove(q, "b"),
        set(q, Superseded, Active),
    ])
    .await;
    f.delete(q, "b").await;
    f.sync(&catalog).await.unwrap();
    let rows = catalog
        .list_column_stats(&everything(), &[1])
        .await
        .unwrap();
    let bounds: Vec<_> = rows.iter().map(|r| r.stats.min.clone()).collect();
    assert_eq!(bounds, [Some(StatValue::Int(1)), Some(StatValue::Int(3))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_record_stops_the_sync_before_itself() {
    let mut f = Fixture::new().await;
    let catalog = f.catalog("a.db").await;
    let p = key(DAY, 1, 0);
    let a = f.place(p, "a", &[1]).await;
    let b = f.place(p, "b", &[2]).await;
    f.append(vec![a.clone()]).await;
    f.append(vec![b]).await;
    f.append(vec![a]).await;
    f.append(vec![]).await;
    let error = f.sync(&catalog).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(
        error
            .context()
            .iter()
            .any(|(k, v)| *k == "record" && v == "3"),
        "{error:?}"
    );
    assert_eq!(catalog.position(&dataset()).await.unwrap().number, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_return_into_sight_is_read_in_the_midst_of_a_log() {
    use PartitionState::{Active, Superseded};
    let mut f = Fixture::new().await;
    let p = key(DAY, 1, 0);
    for i in 0..4 {
        let action = f.place(p, &format!("f{i}"), &[i]).await;
        f.append(vec![action]).await;
        f.append(vec![set(p, Active, Superseded)]).await;
        f.append(vec![set(p, Superseded, Active)]).await;
    }
    let whole = f.catalog("a.db").await;
    assert_eq!(f.sync(&whole).await.unwrap().applied, 12);
    let rows = whole.list_column_stats(&everything(), &[1]).await.unwrap();
    let bounds: Vec<_> = rows.iter().map(|r| r.stats.min.clone()).collect();
    assert_eq!(bounds, [0, 1, 2, 3].map(|i| Some(StatValue::Int(i))));
}

/// The half of the next test that dies; it does nothing when run by itself.
#[tokio::test]
#[ignore = "run by `a_sync_may_die_anywhere` in a process of its own"]
async fn dying_sync() {
    let Ok(folder) = std::env::var("LAKEBED_TEST_FOLDER") else {
        return;
    };
    let store = Arc::new(crate::store::LocalStore::new(format!("{folder}/lake")));
    let lake = Lake::open(store, Arc::default()).await.unwrap();
    let catalog = SqliteCatalog::open(format!("{folder}/a.db")).await.unwrap();
    sync(&lake, &catalog, &dataset()).await.unwrap();
}

#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_may_die_anywhere() {
    for (point, batch, applied) in [
        ("sync.before_apply", 1, 0),
        ("sync.before_apply:2", 1, 1),
        ("sync.in_transaction", 1, 0),
        ("sync.in_transaction:3", 1, 2),
        ("sync.applied", 1, 1),
        ("sync.applied:3", 1, 3),
        ("sync.in_transaction", 2, 0),
        ("sync.applied", 2, 2),
        ("sync.before_apply:2", 2, 2),
        ("sync.in_transaction:2", 2, 2),
        ("sync.in_transaction", 3, 0),
        ("sync.applied", 3, 3),
    ] {
        let mut f = Fixture::new().await;
        for i in 0..3 {
            let action = f.place(key(DAY, 1, 0), &format!("f{i}"), &[i]).await;
            f.append(vec![action]).await;
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "catalog::sync::tests::dying_sync"])
            .env("LAKEBED_TEST_FOLDER", f.dir.path())
            .env("LAKEBED_KILL_POINT", point)
            .env("LAKEBED_SYNC_BATCH", batch.to_string())
            .output()
            .unwrap();
        assert!(!child.status.success(), "{point} was not reached");
        let catalog = f.catalog("a.db").await;
        let position = catalog.position(&dataset()).await.unwrap();
        assert_eq!(
            position.number, applied,
            "{point}, {batch} records in one go"
        );
        assert_eq!(f.sync(&catalog).await.unwrap().applied, 3 - applied);
        let whole = f.catalog("b.db").await;
        f.sync(&whole).await.unwrap();
        assert_eq!(catalog.dump().await.unwrap(), whole.dump().await.unwrap());
    }
}
