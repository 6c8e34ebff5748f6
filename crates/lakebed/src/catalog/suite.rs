//! What every catalog does, each behaviour once, stamped per backend; each test has its own
//! database. A backend that is not there fails its tests, it never passes them silently.

use async_trait::async_trait;

use crate::catalog::testlog::{TestLog, add, dataset, file, key, lake_spec};
use crate::catalog::{
    ApplyOutcome, Catalog, ColumnStats, FileStats, PartitionFilter, SourceRow, SqliteCatalog,
    StatValue, file_id, partition_checksum, partition_id,
};
use crate::error::ErrorKind;
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{
    Action, By, FieldSpec, FieldType, LogPosition, Operation, PartitionKey, PartitionState,
    Provenance, PublishedSchema, ReadSpec, Record, RejectsFileSpec, SchemaSpec,
};

/// A database of one test, which may be opened more than once.
#[async_trait]
trait Backend: Sized + Send + Sync {
    async fn new() -> Self;
    async fn open(&self) -> Box<dyn Catalog>;
}

struct Sqlite(tempfile::TempDir);

#[async_trait]
impl Backend for Sqlite {
    async fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    async fn open(&self) -> Box<dyn Catalog> {
        let path = self.0.path().join("catalog.db");
        Box::new(SqliteCatalog::open(path).await.unwrap())
    }
}

macro_rules! stamp {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<super::Sqlite>().await;
            })*
        }
    };
}

stamp!(
    records_apply_in_order_alone,
    a_record_of_another_past_is_not_next,
    a_replayed_record_changes_nothing,
    a_foreign_lake_is_refused,
    filters_choose_partitions_and_files,
    completeness_belongs_to_the_date,
    states_over_revisions,
    illegal_moves_change_nothing,
    files_leave_partitions,
    provenance_merges,
    parents_become_lineage,
    stats_lose_nothing,
    stats_are_those_of_visible_files,
    stats_of_wide_tables,
    schemas_never_change,
    sources_are_replaced,
    two_programs_apply_at_once,
    opening_at_once_makes_one_catalog,
    clear_keeps_the_lake_and_the_reads,
    commits_are_counted,
    a_dump_tells_catalogs_apart,
    empty_days_are_days,
);

const DAY: &str = "2024-05-20";
const NEXT_DAY: &str = "2024-05-21";

struct Fixture<B> {
    backend: B,
    catalog: Box<dyn Catalog>,
    log: TestLog,
}

impl<B: Backend> Fixture<B> {
    async fn new() -> Self {
        let backend = B::new().await;
        let catalog = backend.open().await;
        let lake = lake_spec("lake-1");
        catalog.bind(&lake).await.unwrap();
        let log = TestLog::new(&lake, &dataset());
        Self {
            backend,
            catalog,
            log,
        }
    }

    async fn apply(&mut self, operation: Operation, actions: Vec<Action>) {
        self.apply_with(operation, actions, &[]).await;
    }

    async fn apply_with(
        &mut self,
        operation: Operation,
        actions: Vec<Action>,
        stats: &[FileStats],
    ) {
        let (record, _, hash) = self.log.next(operation, actions);
        let outcome = self.catalog.apply(&record, &hash, stats).await.unwrap();
        assert_eq!(outcome, ApplyOutcome::Applied);
    }

    async fn refused(&mut self, actions: Vec<Action>) -> ErrorKind {
        let before = self.catalog.dump().await.unwrap();
        let (record, _, hash) = self.log.next(Operation::Append, actions);
        let error = self.catalog.apply(&record, &hash, &[]).await.unwrap_err();
        assert_eq!(self.catalog.dump().await.unwrap(), before, "{error}");
        error.kind()
    }

    async fn partitions(&self, filter: &PartitionFilter) -> Vec<(PartitionKey, u64)> {
        let rows = self.catalog.list_partitions(filter).await.unwrap();
        rows.iter().map(|p| (p.key, p.row_count)).collect()
    }
}

fn everything() -> PartitionFilter {
    PartitionFilter {
        all_states: true,
        ..PartitionFilter::default()
    }
}

fn set(partition: PartitionKey, from: PartitionState, to: PartitionState) -> Action {
    Action::SetState {
        partition,
        from,
        to,
    }
}

fn column(field_id: u32, min: StatValue, max: StatValue) -> ColumnStats {
    ColumnStats {
        field_id,
        name: format!("欄位{field_id}"),
        null_count: Some(3),
        min: Some(min),
        max: Some(max),
        min_exact: true,
        max_exact: false,
    }
}

fn file_stats(partition: PartitionKey, name: &str, columns: Vec<ColumnStats>) -> FileStats {
    FileStats {
        partition,
        name: name.to_owned(),
        columns,
    }
}

async fn records_apply_in_order_alone<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let (first, _, first_hash) = f
        .log
        .next(Operation::Append, vec![add(key(DAY, 1, 0), file("a", 2))]);
    let (second, _, second_hash) = f
        .log
        .next(Operation::Append, vec![add(key(DAY, 1, 0), file("b", 3))]);
    let early = f.catalog.apply(&second, &second_hash, &[]).await.unwrap();
    assert_eq!(early, ApplyOutcome::NotNext(LogPosition::START));
    for (record, hash) in [(&first, &first_hash), (&second, &second_hash)] {
        let outcome = f.catalog.apply(record, hash, &[]).await.unwrap();
        assert_eq!(outcome, ApplyOutcome::Applied);
    }
    let position = f.catalog.position(&dataset()).await.unwrap();
    assert_eq!(position.number, 2);
    assert_eq!(position.hash, Some(second_hash));
    let all = f.catalog.list_positions().await.unwrap();
    assert_eq!(all, [(dataset(), position)]);

    let partitions = f.catalog.list_partitions(&everything()).await.unwrap();
    let p = &partitions[0];
    assert_eq!(partitions.len(), 1);
    assert_eq!((p.file_count, p.row_count, p.byte_size), (2, 5, 50));
    assert_eq!(p.id, partition_id(&dataset(), &key(DAY, 1, 0)));
    assert_eq!(
        p.base_path,
        "clean/weibo.comments/dt=2024-05-20/schema_version=1"
    );
    assert_eq!(p.source.as_str(), "weibo");
    assert_eq!((p.created_at, p.updated_at), (first.at, second.at));
    assert_eq!(p.log_position, 2);
    assert!(p.is_active && !p.is_complete);
    let (a, b) = (ContentHash::of(b"a"), ContentHash::of(b"b"));
    assert_eq!(p.checksum, partition_checksum([a.as_str(), b.as_str()]));
    let files = f.catalog.list_files(&everything()).await.unwrap();
    assert_eq!(files[1].id, file_id(&p.id, "b"));
    assert_eq!(files[1].path, format!("{}/b", p.base_path));
    assert_eq!(files[1].attempt.as_deref(), Some("attempt-1"));
    assert_eq!(files[1].commit.as_str(), "commit-2");
}

async fn a_record_of_another_past_is_not_next<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    f.apply(Operation::Append, vec![add(key(DAY, 1, 0), file("a", 2))])
        .await;
    let at = f.catalog.position(&dataset()).await.unwrap();
    let mut other = TestLog::new(&lake_spec("lake-1"), &dataset());
    other.next(Operation::Append, vec![add(key(DAY, 1, 0), file("x", 2))]);
    let (second, _, hash) = other.next(Operation::Append, vec![add(key(DAY, 1, 0), file("y", 2))]);
    let outcome = f.catalog.apply(&second, &hash, &[]).await.unwrap();
    assert_eq!(outcome, ApplyOutcome::NotNext(at));
    assert_eq!(f.catalog.list_files(&everything()).await.unwrap().len(), 1);
}

async fn a_replayed_record_changes_nothing<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let (record, _, hash) = f
        .log
        .next(Operation::Append, vec![add(key(DAY, 1, 0), file("a", 2))]);
    assert_eq!(
        f.catalog.apply(&record, &hash, &[]).await.unwrap(),
        ApplyOutcome::Applied
    );
    let before = f.catalog.dump().await.unwrap();
    let at = f.catalog.position(&dataset()).await.unwrap();
    assert_eq!(
        f.catalog.apply(&record, &hash, &[]).await.unwrap(),
        ApplyOutcome::NotNext(at)
    );
    assert_eq!(f.catalog.dump().await.unwrap(), before);
}

async fn a_foreign_lake_is_refused<B: Backend>() {
    let f = Fixture::<B>::new().await;
    f.catalog.bind(&lake_spec("lake-1")).await.unwrap();
    let error = f.catalog.bind(&lake_spec("lake-2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    assert_eq!(
        f.catalog.find_lake().await.unwrap().unwrap().as_str(),
        "lake-1"
    );
    let mut other = TestLog::new(&lake_spec("lake-2"), &dataset());
    let (record, _, hash) = other.next(Operation::Append, vec![]);
    let error = f.catalog.apply(&record, &hash, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    // A catalog that is bound to nothing takes nothing.
    let empty = B::new().await;
    let empty = empty.open().await;
    assert_eq!(empty.find_lake().await.unwrap(), None);
    assert!(empty.apply(&record, &hash, &[]).await.is_err());
}

async fn filters_choose_partitions_and_files<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let raw: DatasetRef = "raw/weibo".parse().unwrap();
    let days = ["2024-05-19", DAY, NEXT_DAY, "2024-06-01"];
    let mut actions = Vec::new();
    for (i, day) in days.iter().enumerate() {
        actions.push(add(key(day, 2, 0), file(&format!("z{i}"), 1)));
        actions.push(add(key(day, 1, 0), file(&format!("a{i}"), 1)));
    }
    f.apply(Operation::Append, actions).await;
    let mut other = TestLog::new(&lake_spec("lake-1"), &raw);
    let (record, _, hash) = other.next(Operation::Append, vec![add(key(DAY, 0, 0), file("r", 1))]);
    assert_eq!(
        f.catalog.apply(&record, &hash, &[]).await.unwrap(),
        ApplyOutcome::Applied
    );
    let names = async |filter: PartitionFilter| -> Vec<String> {
        let files = f.catalog.list_files(&filter).await.unwrap();
        let partitions = f.catalog.list_partitions(&filter).await.unwrap();
        assert_eq!(files.len(), partitions.len());
        files.into_iter().map(|f| f.name).collect()
    };
    let all = PartitionFilter::default;
    assert_eq!(
        names(all()).await,
        ["a0", "z0", "a1", "z1", "a2", "z2", "a3", "z3", "r"]
    );
    let range = PartitionFilter {
        dataset: Some(dataset()),
        dt_from: Some(DAY.parse().unwrap()),
        dt_to: Some(NEXT_DAY.parse().unwrap()),
        ..all()
    };
    assert_eq!(names(range.clone()).await, ["a1", "z1", "a2", "z2"]);
    let version = PartitionFilter {
        schema_versions: vec![2, 7],
        ..range
    };
    assert_eq!(names(version).await, ["z1", "z2"]);
    let only_raw = PartitionFilter {
        dataset: Some(raw),
        ..all()
    };
    assert_eq!(names(only_raw).await, ["r"]);
    let none = PartitionFilter {
        dt_from: Some("2024-06-02".parse().unwrap()),
        ..all()
    };
    assert_eq!(names(none).await, Vec::<String>::new());
}

async fn completeness_belongs_to_the_date<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let (one, two) = (key(DAY, 1, 0), key(DAY, 2, 0));
    let next = key(NEXT_DAY, 1, 0);
    f.apply(
        Operation::Append,
        vec![add(one, file("a", 1)), add(next, file("n", 1))],
    )
    .await;
    let dt = one.dt;
    f.apply(Operation::Seal, vec![Action::Complete { dt }])
        .await;
    let complete = async |f: &Fixture<B>| -> Vec<(PartitionKey, bool)> {
        let rows = f.catalog.list_partitions(&everything()).await.unwrap();
        rows.iter().map(|p| (p.key, p.is_complete)).collect()
    };
    assert_eq!(complete(&f).await, [(one, true), (next, false)]);
    // A version that comes later belongs to the same date.
    f.apply(Operation::Append, vec![add(two, file("b", 1))])
        .await;
    assert_eq!(
        complete(&f).await,
        [(one, true), (two, true), (next, false)]
    );
    f.apply(Operation::Reopen, vec![Action::Open { dt }]).await;
    assert_eq!(
        complete(&f).await,
        [(one, false), (two, false), (next, false)]
    );
    let partitions = f.catalog.list_partitions(&everything()).await.unwrap();
    assert_eq!(partitions[0].log_position, 4);
    assert_eq!(partitions[2].log_position, 1);
    f.apply(
        Operation::Append,
        vec![add(two, file("c", 1)), Action::Complete { dt }],
    )
    .await;
    assert_eq!(
        complete(&f).await,
        [(one, true), (two, true), (next, false)]
    );
    let days = f.catalog.list_source_days(&everything()).await.unwrap();
    let days: Vec<_> = days
        .iter()
        .map(|d| (d.dt.to_string(), d.row_count, d.is_complete))
        .collect();
    assert_eq!(
        days,
        [(DAY.to_owned(), 3, true), (NEXT_DAY.to_owned(), 1, false)]
    );
}

async fn states_over_revisions<B: Backend>() {
    use PartitionState::{Active, Purged, Retired, Superseded, Switching};
    let mut f = Fixture::<B>::new().await;
    let (old, new) = (key(DAY, 1, 0), key(DAY, 1, 1));
    f.apply(Operation::Append, vec![add(old, file("a", 5))])
        .await;
    f.apply(
        Operation::Switch,
        vec![set(old, Active, Superseded), add(new, file("b", 7))],
    )
    .await;
    let visible = PartitionFilter::default();
    assert_eq!(f.partitions(&visible).await, [(new, 7)]);
    assert_eq!(f.partitions(&everything()).await, [(old, 5), (new, 7)]);
    assert_eq!(f.catalog.list_files(&visible).await.unwrap()[0].name, "b");
    // Rollback.
    f.apply(
        Operation::Switch,
        vec![set(new, Active, Superseded), set(old, Superseded, Active)],
    )
    .await;
    assert_eq!(f.partitions(&visible).await, [(old, 5)]);
    f.apply(Operation::Switch, vec![set(old, Active, Switching)])
        .await;
    assert_eq!(f.partitions(&visible).await, [(old, 5)]);
    f.apply(Operation::Retire, vec![set(new, Superseded, Retired)])
        .await;
    f.apply(Operation::Purge, vec![set(new, Retired, Purged)])
        .await;
    let rows = f.catalog.list_partitions(&everything()).await.unwrap();
    let states: Vec<_> = rows.iter().map(|p| (p.state, p.is_active)).collect();
    assert_eq!(states, [(Switching, true), (Purged, false)]);
    let days = f.catalog.list_source_days(&visible).await.unwrap();
    assert_eq!((days.len(), days[0].row_count), (1, 5));
}

async fn illegal_moves_change_nothing<B: Backend>() {
    use PartitionState::{Active, Purged, Superseded};
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let gone = key(NEXT_DAY, 1, 0);
    f.apply(Operation::Append, vec![add(p, file("a", 5))]).await;
    let corrupt = ErrorKind::CorruptData;
    // Each attack begins with a legal action, which must not stay.
    let legal = add(p, file("legal", 1));
    let remove = |partition, name: &str| Action::RemoveFile {
        partition,
        name: name.to_owned(),
    };
    let mut orphan = file("o", 1);
    orphan.parents = vec!["nowhere".to_owned()];
    for attack in [
        set(p, Active, Purged),
        set(p, Superseded, Active),
        set(gone, Active, Superseded),
        add(p, file("a", 5)),
        remove(p, "b"),
        remove(gone, "a"),
        add(p, orphan),
    ] {
        let mut g = Fixture::<B>::new().await;
        g.apply(Operation::Append, vec![add(p, file("a", 5))]).await;
        let kind = g.refused(vec![legal.clone(), attack.clone()]).await;
        assert_eq!(kind, corrupt, "{attack:?}");
    }
    assert_eq!(f.partitions(&everything()).await, [(p, 5)]);
}

async fn files_leave_partitions<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    f.apply(
        Operation::Append,
        vec![add(p, file("a", 5)), add(p, file("b", 6))],
    )
    .await;
    let remove = |name: &str| Action::RemoveFile {
        partition: p,
        name: name.to_owned(),
    };
    f.apply(
        Operation::Compact,
        vec![add(p, file("c", 11)), remove("a"), remove("b")],
    )
    .await;
    let rows = f.catalog.list_partitions(&everything()).await.unwrap();
    assert_eq!((rows[0].file_count, rows[0].row_count), (1, 11));
    // The same name may come back, as a restore does.
    f.apply(
        Operation::Restore,
        vec![remove("c"), add(p, file("b", 6)), add(p, file("a", 5))],
    )
    .await;
    let names: Vec<_> = f.catalog.list_files(&everything()).await.unwrap();
    let names: Vec<_> = names.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    f.apply(Operation::Compact, vec![remove("a"), remove("b")])
        .await;
    let rows = f.catalog.list_partitions(&everything()).await.unwrap();
    assert_eq!((rows[0].file_count, rows[0].row_count), (0, 0));
    assert_eq!(rows[0].checksum, partition_checksum([]));
}

async fn provenance_merges<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let mut late = file("b", 1);
    late.provenance = Provenance::Backfill;
    let provenance = async |f: &Fixture<B>| -> String {
        f.catalog.list_partitions(&everything()).await.unwrap()[0]
            .provenance
            .clone()
    };
    f.apply(Operation::Append, vec![add(p, late)]).await;
    assert_eq!(provenance(&f).await, "backfill");
    f.apply(Operation::Append, vec![add(p, file("a", 1))]).await;
    assert_eq!(provenance(&f).await, "merged");
    let remove = Action::RemoveFile {
        partition: p,
        name: "b".to_owned(),
    };
    f.apply(Operation::Compact, vec![remove]).await;
    assert_eq!(provenance(&f).await, "live");
}

async fn parents_become_lineage<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let parent = |day: &str| format!("raw/weibo/dt={day}/schema_version=0");
    let mut a = file("a", 1);
    a.parents = vec![parent(NEXT_DAY), parent(DAY)];
    let mut b = file("b", 1);
    b.parents = vec![parent("2024-05-01"), parent(DAY)];
    f.apply(Operation::Append, vec![add(p, a), add(p, b)]).await;
    let rows = f.catalog.list_partitions(&everything()).await.unwrap();
    let first = partition_id(&"raw/weibo".parse().unwrap(), &key(NEXT_DAY, 0, 0));
    assert_eq!(rows[0].parent_partition_id, Some(first));
    let dump = f.catalog.dump().await.unwrap();
    assert_eq!(dump.matches(r#""table":"partition_parent""#).count(), 3);
}

async fn stats_lose_nothing<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let decimal = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
    let mut columns = vec![
        column(1, StatValue::Int(i64::MIN), StatValue::Int(i64::MAX)),
        column(2, StatValue::Decimal(-decimal), StatValue::Decimal(decimal)),
        column(
            3,
            StatValue::Float(-0.0),
            StatValue::Float(1_910_000_000.000_000_2),
        ),
        column(
            4,
            StatValue::Float(f64::NEG_INFINITY),
            StatValue::Float(5e-324),
        ),
        column(
            5,
            StatValue::Text(String::new()),
            StatValue::Text("微博熱搜\u{0}\"🈶".to_owned()),
        ),
        column(u32::MAX, StatValue::Int(0), StatValue::Int(1)),
    ];
    columns.push(ColumnStats {
        null_count: None,
        min: None,
        max_exact: false,
        ..column(7, StatValue::Int(1), StatValue::Int(9))
    });
    columns.push(ColumnStats {
        min: None,
        max: None,
        ..column(8, StatValue::Int(1), StatValue::Int(9))
    });
    columns.sort_by_key(|c| c.field_id);
    let stats = [
        file_stats(p, "b", columns[..2].to_vec()),
        file_stats(p, "a", columns.clone()),
    ];
    f.apply_with(
        Operation::Append,
        vec![add(p, file("a", 5)), add(p, file("b", 5))],
        &stats,
    )
    .await;
    let rows = f
        .catalog
        .list_column_stats(&everything(), &[])
        .await
        .unwrap();
    let a = file_id(&partition_id(&dataset(), &p), "a");
    let back: Vec<_> = rows
        .iter()
        .filter(|r| r.file_id == a)
        .map(|r| r.stats.clone())
        .collect();
    assert_eq!(back, columns);
    let Some(StatValue::Float(zero)) = back[2].min else {
        panic!("{back:?}");
    };
    assert!(zero.is_sign_negative());
    assert_eq!(rows.len(), columns.len() + 2);
    // In the order of files and field ids, whatever order is asked for.
    let some = f
        .catalog
        .list_column_stats(&everything(), &[5, 2, 99, 2])
        .await
        .unwrap();
    let ids: Vec<_> = some
        .iter()
        .map(|r| (r.file_id == a, r.stats.field_id))
        .collect();
    assert_eq!(ids, [(true, 2), (true, 5), (false, 2)]);
    let other_day = PartitionFilter {
        dt_from: Some(NEXT_DAY.parse().unwrap()),
        ..everything()
    };
    assert!(
        f.catalog
            .list_column_stats(&other_day, &[2])
            .await
            .unwrap()
            .is_empty()
    );
}

async fn stats_are_those_of_visible_files<B: Backend>() {
    use PartitionState::{Active, Superseded};
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let one = |name| {
        file_stats(
            p,
            name,
            vec![column(1, StatValue::Int(1), StatValue::Int(2))],
        )
    };
    let count = async |f: &Fixture<B>| -> usize {
        let dump = f.catalog.dump().await.unwrap();
        dump.matches(r#""table":"column_stats""#).count()
    };
    f.apply_with(
        Operation::Append,
        vec![add(p, file("a", 1)), add(p, file("b", 1))],
        &[one("a"), one("b")],
    )
    .await;
    assert_eq!(count(&f).await, 2);
    let remove = Action::RemoveFile {
        partition: p,
        name: "a".to_owned(),
    };
    f.apply(Operation::Compact, vec![remove]).await;
    assert_eq!(count(&f).await, 1);
    f.apply_with(
        Operation::Switch,
        vec![set(p, Active, Superseded)],
        &[one("b")],
    )
    .await;
    assert_eq!(count(&f).await, 0);
    f.apply_with(
        Operation::Switch,
        vec![set(p, Superseded, Active)],
        &[one("b")],
    )
    .await;
    assert_eq!(count(&f).await, 1);
}

async fn stats_of_wide_tables<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let (mut actions, mut stats) = (Vec::new(), Vec::new());
    for i in 0..20 {
        let name = format!("f{i:02}");
        actions.push(add(p, file(&name, 1)));
        let columns =
            (1..=500).map(|id| column(id, StatValue::Int(i), StatValue::Int(i64::from(id))));
        stats.push(file_stats(p, &name, columns.collect()));
    }
    f.apply_with(Operation::Append, actions, &stats).await;
    let rows = f
        .catalog
        .list_column_stats(&everything(), &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 20 * 500);
    let (last, first) = (&rows[rows.len() - 1].stats, &rows[0].stats);
    assert_eq!(
        (first.min.clone(), first.max.clone()),
        (Some(StatValue::Int(0)), Some(StatValue::Int(1)))
    );
    assert_eq!(
        (last.min.clone(), last.max.clone()),
        (Some(StatValue::Int(19)), Some(StatValue::Int(500)))
    );
}

fn published(version: u32, note: &str) -> (PublishedSchema, ContentHash) {
    let published = PublishedSchema {
        format: 1,
        lake: "lake-1".parse().unwrap(),
        published_at: crate::time::Instant::from_micros(7),
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
            note: Some(note.to_owned()),
            base: (version > 1).then(|| version - 1),
            removed: Vec::new(),
            input: ReadSpec::default(),
            fields: vec![FieldSpec::new(1, "標題", FieldType::String)],
        },
    };
    let hash = ContentHash::of(&serde_json::to_vec(&published).unwrap());
    (published, hash)
}

async fn schemas_never_change<B: Backend>() {
    let f = Fixture::<B>::new().await;
    let (two, two_hash) = published(2, "多了一欄");
    let (one, one_hash) = published(1, "first");
    f.catalog.put_schema(&two, &two_hash).await.unwrap();
    f.catalog.put_schema(&one, &one_hash).await.unwrap();
    f.catalog.put_schema(&one, &one_hash).await.unwrap();
    let (other, other_hash) = published(1, "another");
    let error = f.catalog.put_schema(&other, &other_hash).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    let rows = f.catalog.list_schemas(Some(&dataset())).await.unwrap();
    let found: Vec<_> = rows
        .iter()
        .map(|r| (r.version, r.base, r.hash.clone()))
        .collect();
    assert_eq!(found, [(1, None, one_hash), (2, Some(1), two_hash)]);
    assert_eq!(
        serde_json::from_str::<PublishedSchema>(&rows[1].schema).unwrap(),
        two
    );
    let none = f
        .catalog
        .list_schemas(Some(&"clean/a".parse().unwrap()))
        .await
        .unwrap();
    assert!(none.is_empty());
    let mut foreign = one;
    foreign.lake = "lake-2".parse().unwrap();
    assert!(f.catalog.put_schema(&foreign, &other_hash).await.is_err());
}

async fn sources_are_replaced<B: Backend>() {
    let f = Fixture::<B>::new().await;
    let mut row = SourceRow {
        source: "weibo".parse().unwrap(),
        title: Some("微博".to_owned()),
        class: "log".to_owned(),
        old_names: vec!["老名字".to_owned(), "sina".to_owned()],
    };
    f.catalog.put_source(&row).await.unwrap();
    row.title = None;
    f.catalog.put_source(&row).await.unwrap();
    assert_eq!(f.catalog.list_sources().await.unwrap(), [row]);
}

async fn two_programs_apply_at_once<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let other = f.backend.open().await;
    for i in 0..20 {
        let file = file(&format!("f{i}"), 1);
        let (record, _, hash) = f
            .log
            .next(Operation::Append, vec![add(key(DAY, 1, 0), file)]);
        let (a, b) = tokio::join!(
            f.catalog.apply(&record, &hash, &[]),
            other.apply(&record, &hash, &[])
        );
        let (a, b) = (a.unwrap(), b.unwrap());
        let at = ApplyOutcome::NotNext(LogPosition {
            number: record.number,
            hash: Some(hash),
        });
        assert!(
            (a == ApplyOutcome::Applied && b == at) || (b == ApplyOutcome::Applied && a == at),
            "{a:?} {b:?}"
        );
    }
    assert_eq!(f.partitions(&everything()).await, [(key(DAY, 1, 0), 20)]);
    assert_eq!(other.dump().await.unwrap(), f.catalog.dump().await.unwrap());
}

async fn opening_at_once_makes_one_catalog<B: Backend>() {
    let backend = B::new().await;
    let (a, b, c) = tokio::join!(backend.open(), backend.open(), backend.open());
    a.bind(&lake_spec("lake-1")).await.unwrap();
    b.bind(&lake_spec("lake-1")).await.unwrap();
    assert!(c.bind(&lake_spec("lake-2")).await.is_err());
}

async fn clear_keeps_the_lake_and_the_reads<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let empty = f.catalog.dump().await.unwrap();
    let p = key(DAY, 1, 0);
    let stats = file_stats(
        p,
        "a",
        vec![column(1, StatValue::Int(1), StatValue::Int(2))],
    );
    let mut a = file("a", 1);
    a.parents = vec![format!("raw/weibo/dt={DAY}/schema_version=0")];
    f.apply_with(
        Operation::Append,
        vec![add(p, a), Action::Complete { dt: p.dt }],
        &[stats],
    )
    .await;
    let (schema, hash) = published(1, "first");
    f.catalog.put_schema(&schema, &hash).await.unwrap();
    let id = partition_id(&dataset(), &p);
    let day = DAY.parse().unwrap();
    f.catalog
        .record_access(&[id.clone(), id], day)
        .await
        .unwrap();
    f.catalog.record_access(&[], day).await.unwrap();
    assert_ne!(f.catalog.dump().await.unwrap(), empty);
    f.catalog.clear().await.unwrap();
    assert_eq!(f.catalog.dump().await.unwrap(), empty);
    assert_eq!(
        f.catalog.position(&dataset()).await.unwrap(),
        LogPosition::START
    );
    assert_eq!(
        f.catalog.find_lake().await.unwrap().unwrap().as_str(),
        "lake-1"
    );
}

async fn commits_are_counted<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let rejects = RejectsFileSpec {
        name: "rejects-1.jsonl.zst".to_owned(),
        records: 4,
        bytes: 10,
        blake3: ContentHash::of(b"r"),
    };
    f.apply(
        Operation::Append,
        vec![
            add(key(NEXT_DAY, 1, 0), file("a", 2)),
            add(key(DAY, 1, 0), file("b", 3)),
            Action::AddRejects {
                dt: "2024-05-01".parse().unwrap(),
                file: rejects,
            },
        ],
    )
    .await;
    let attempt = "attempt-9".parse().unwrap();
    f.apply(Operation::Abandon, vec![Action::Abandon { attempt }])
        .await;
    let commits = f.catalog.list_commits(Some(&dataset())).await.unwrap();
    let c = &commits[0];
    assert_eq!((c.files_added, c.rows_added, c.rejected), (2, 5, 4));
    assert_eq!(c.dt_min.unwrap().to_string(), "2024-05-01");
    assert_eq!(c.dt_max.unwrap().to_string(), NEXT_DAY);
    assert_eq!(
        (c.operation.as_str(), c.user.as_deref(), c.run.as_deref()),
        ("append", Some("小明"), Some("day"))
    );
    assert_eq!((commits[1].number, commits[1].dt_min), (2, None));
    assert_eq!(f.catalog.list_commits(None).await.unwrap(), commits);
    let other = "clean/other".parse().unwrap();
    assert!(
        f.catalog
            .list_commits(Some(&other))
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_dump_tells_catalogs_apart<B: Backend>() {
    let records = |rows: u64| -> Vec<(Record, ContentHash)> {
        let mut log = TestLog::new(&lake_spec("lake-1"), &dataset());
        let p = key(DAY, 1, 0);
        let mut out = Vec::new();
        for i in 0..5 {
            let (r, _, h) = log.next(
                Operation::Append,
                vec![add(p, file(&format!("f{i}"), rows))],
            );
            out.push((r, h));
        }
        out
    };
    let dump = async |rows: u64| -> String {
        let f = Fixture::<B>::new().await;
        for (record, hash) in records(rows) {
            let outcome = f.catalog.apply(&record, &hash, &[]).await.unwrap();
            assert_eq!(outcome, ApplyOutcome::Applied);
        }
        f.catalog.dump().await.unwrap()
    };
    assert_eq!(dump(1).await, dump(1).await);
    assert_ne!(dump(1).await, dump(2).await);
    let dump = dump(1).await;
    let mut lines: Vec<_> = dump.lines().collect();
    assert_eq!(lines.len(), 1 + 1 + 1 + 1 + 5 + 5);
    let sorted = lines.clone();
    lines.sort_unstable();
    assert_eq!(lines, sorted);
}

async fn empty_days_are_days<B: Backend>() {
    let mut f = Fixture::<B>::new().await;
    let dt = DAY.parse().unwrap();
    f.apply(Operation::Seal, vec![Action::Complete { dt }])
        .await;
    let days = f
        .catalog
        .list_source_days(&PartitionFilter::default())
        .await
        .unwrap();
    assert_eq!(days.len(), 1);
    assert_eq!((days[0].row_count, days[0].is_complete), (0, true));
    assert_eq!(days[0].source.as_str(), "weibo");
    let version = PartitionFilter {
        schema_versions: vec![1],
        ..PartitionFilter::default()
    };
    assert!(
        f.catalog
            .list_source_days(&version)
            .await
            .unwrap()
            .is_empty()
    );
}
