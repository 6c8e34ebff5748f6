//! What every catalog does, each behaviour once, stamped per backend; each test has its own
//! database. A backend that is not there fails its tests, it never passes them silently.

mod batches;
mod stored;

use async_trait::async_trait;

use crate::catalog::testlog::{TestLog, add, dataset, file, key, lake_spec};
use crate::catalog::{
    ApplyOutcome, Catalog, ColumnStats, FileStats, PackedStats, PartitionFilter, SourceRow,
    SqliteCatalog, StatValue, file_id, partition_checksum, partition_id,
};
use crate::error::ErrorKind;
use crate::name::{ContentHash, DatasetRef};
use crate::spec::{
    Action, By, FieldSpec, FieldType, LogPosition, Operation, PartitionKey, PartitionState,
    Provenance, PublishedSchema, ReadSpec, Record, RejectsFileSpec, SchemaSpec,
};

use batches::{
    a_batch_is_applied_whole_or_not, records_in_one_go_or_many, two_programs_apply_batches_at_once,
};
use stored::{
    a_dump_tells_catalogs_apart, clear_keeps_the_lake_and_the_reads, commits_are_counted,
    empty_days_are_days, opening_at_once_makes_one_catalog, schemas_never_change,
    sources_are_replaced, stats_are_those_of_visible_files, stats_lose_nothing,
    stats_of_wide_tables, two_programs_apply_at_once,
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
    records_in_one_go_or_many,
    a_batch_is_applied_whole_or_not,
    two_programs_apply_batches_at_once,
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
        columns: PackedStats::pack(&columns).unwrap(),
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
    assert_eq!(error.kind(), ErrorKind::CorruptData);
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
