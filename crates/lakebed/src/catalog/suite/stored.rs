//! The other half of the suite: what is stored beside partitions and files, and by whom at once.

use super::*;

pub(super) async fn stats_lose_nothing<B: Backend>() {
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

pub(super) async fn stats_are_those_of_visible_files<B: Backend>() {
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

pub(super) async fn stats_of_wide_tables<B: Backend>() {
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

pub(super) async fn schemas_never_change<B: Backend>() {
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

pub(super) async fn sources_are_replaced<B: Backend>() {
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

pub(super) async fn two_programs_apply_at_once<B: Backend>() {
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

pub(super) async fn opening_at_once_makes_one_catalog<B: Backend>() {
    let backend = B::new().await;
    let (a, b, c) = tokio::join!(backend.open(), backend.open(), backend.open());
    a.bind(&lake_spec("lake-1")).await.unwrap();
    b.bind(&lake_spec("lake-1")).await.unwrap();
    assert!(c.bind(&lake_spec("lake-2")).await.is_err());
}

pub(super) async fn clear_keeps_the_lake_and_the_reads<B: Backend>() {
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

pub(super) async fn commits_are_counted<B: Backend>() {
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

pub(super) async fn a_dump_tells_catalogs_apart<B: Backend>() {
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

pub(super) async fn empty_days_are_days<B: Backend>() {
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
