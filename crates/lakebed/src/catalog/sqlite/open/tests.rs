//! Opening attacked: foreign files, newer lines, several programs at once.

use super::*;
use crate::catalog::Catalog;
use crate::catalog::testlog::lake_spec;
use crate::error::ErrorKind;

async fn refused(path: &Path) -> Error {
    let before = std::fs::read(path).unwrap();
    let error = SqliteCatalog::open(path).await.unwrap_err();
    assert_eq!(std::fs::read(path).unwrap(), before, "{error}");
    assert!(
        error
            .to_string()
            .contains(path.file_name().unwrap().to_str().unwrap())
    );
    assert!(!error.hints().is_empty());
    error
}

async fn execute(path: &Path, sql: &'static str) {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .foreign_keys(false)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn files_of_others_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("notes.txt", "購物清單\n".as_bytes().to_vec()),
        ("zero.bin", vec![0; 4096]),
        ("table.csv", b"a,b\n1,2\n".repeat(1000)),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(
            refused(&path).await.kind(),
            ErrorKind::CorruptData,
            "{name}"
        );
    }
    let path = dir.path().join("other.db");
    execute(&path, "CREATE TABLE moz_places (id INTEGER)").await;
    assert_eq!(refused(&path).await.kind(), ErrorKind::PreconditionFailed);
    let path = dir.path().join("marked.db");
    execute(
        &path,
        "PRAGMA application_id = 7; CREATE TABLE t (id INTEGER)",
    )
    .await;
    assert_eq!(refused(&path).await.kind(), ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn an_empty_file_becomes_a_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("目錄.db");
    std::fs::write(&path, b"").unwrap();
    let catalog = SqliteCatalog::open(&path).await.unwrap();
    catalog.bind(&lake_spec("lake-1")).await.unwrap();
    catalog.close().await;
    let catalog = SqliteCatalog::open(&path).await.unwrap();
    assert_eq!(
        catalog.find_lake().await.unwrap().unwrap().as_str(),
        "lake-1"
    );
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&catalog.pool)
        .await
        .unwrap();
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous")
        .fetch_one(&catalog.pool)
        .await
        .unwrap();
    assert_eq!((mode.as_str(), synchronous), ("wal", 1));
}

#[tokio::test]
async fn a_newer_line_is_refused_a_newer_number_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    SqliteCatalog::open(&path).await.unwrap().close().await;
    execute(
        &path,
        "INSERT INTO schema_migration VALUES (99, 3, 'later'); \
         ALTER TABLE commit_info ADD COLUMN later TEXT;",
    )
    .await;
    let catalog = SqliteCatalog::open(&path).await.unwrap();
    catalog.bind(&lake_spec("lake-1")).await.unwrap();
    catalog.close().await;
    execute(
        &path,
        "INSERT INTO schema_migration VALUES (100, 4, 'future')",
    )
    .await;
    let error = refused(&path).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("newer"), "{error}");
}

/// A file of line 2 keeps its statistics to the last character.
#[tokio::test]
async fn statistics_of_line_2_become_shapes_and_values() {
    use crate::catalog::{ColumnStats, PartitionFilter, StatValue};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    for migration in &MIGRATIONS[..2] {
        execute(&path, migration.sql).await;
    }
    execute(
        &path,
        r#"CREATE TABLE schema_migration (number INTEGER NOT NULL PRIMARY KEY, line INTEGER NOT NULL,
                                          name TEXT NOT NULL) STRICT;
         INSERT INTO schema_migration VALUES (1, 1, 'init'), (2, 2, 'rows of files');
         INSERT INTO dataset_partition_info
         VALUES (1, 'p', 'clean', 'weibo', 'weibo', '2024-05-20', 1, 0, 'folder', 3, 3, 3, 'parquet',
                 '2024-05-20T00:00:00.000001Z', '2024-05-20T00:00:00.000001Z', 1, 'active', 1, 'c', 'live', NULL, 1);
         INSERT INTO partition_file
         SELECT i, 'f' || i, 1, 'n' || i, 'parquet', 1, 1, printf('%064d', i), 'live', '{}', NULL, 'c', 1
         FROM (SELECT 1 AS i UNION SELECT 2 UNION SELECT 3);
         INSERT INTO file_stats
         SELECT 1, '[' || char(10) || '[1,"標\"題\n]",null,"text","a\u0000\n[7,\"","微博\r",1,0],' || char(10)
                   || '[2,"p",3,"decimal","-5","170141183460469231731687303715884105727",1,1],' || char(10)
                   || '[3,"空",0,null,null,null,0,0]' || char(10) || ']';
         INSERT INTO file_stats
         SELECT 2, '[' || char(10) || '[1,"標\"題\n]",4,"text",null,"",0,1],' || char(10)
                   || '[2,"p",0,"decimal",null,"7",0,0],' || char(10)
                   || '[3,"空",9,null,null,null,0,0]' || char(10) || ']';
         INSERT INTO file_stats
         SELECT 3, '[' || char(10) || '[4,"x",0,"float","-0.0","5e-324",0,0]' || char(10) || ']';"#,
    )
    .await;
    let catalog = SqliteCatalog::open(&path).await.unwrap();
    let column = |field_id, name: &str, null_count, bounds: [Option<StatValue>; 2], exact| {
        let [min, max] = bounds;
        let (min_exact, max_exact) = exact;
        ColumnStats {
            field_id,
            name: name.to_owned(),
            null_count,
            min,
            max,
            min_exact,
            max_exact,
        }
    };
    let text = |t: &str| Some(StatValue::Text(t.to_owned()));
    let decimal = |n| Some(StatValue::Decimal(n));
    let expected = [
        column(
            1,
            "標\"題\n]",
            None,
            [text("a\0\n[7,\""), text("微博\r")],
            (true, false),
        ),
        column(
            2,
            "p",
            Some(3),
            [decimal(-5), decimal(i128::MAX)],
            (true, true),
        ),
        column(3, "空", Some(0), [None, None], (false, false)),
        column(1, "標\"題\n]", Some(4), [None, text("")], (false, true)),
        column(2, "p", Some(0), [None, decimal(7)], (false, false)),
        column(3, "空", Some(9), [None, None], (false, false)),
        column(
            4,
            "x",
            Some(0),
            [Some(StatValue::Float(-0.0)), Some(StatValue::Float(5e-324))],
            (false, false),
        ),
    ];
    let everything = PartitionFilter::default();
    let stats = catalog.list_column_stats(&everything, &[]).await.unwrap();
    let found: Vec<_> = stats.into_iter().map(|s| s.stats).collect();
    assert_eq!(found, expected);
    let shapes: i64 = sqlx::query_scalar("SELECT count(*) FROM stats_shape")
        .fetch_one(&catalog.pool)
        .await
        .unwrap();
    assert_eq!(shapes, 2);
    type Shown = (i64, Option<i64>, Option<String>, Option<String>, i64, i64);
    let shown: Vec<Shown> = sqlx::query_as(
        "SELECT field_id, null_count, value_kind, max_value, min_exact, max_exact FROM column_stats \
         WHERE file_id = 'f2' ORDER BY field_id",
    )
    .fetch_all(&catalog.pool)
    .await
    .unwrap();
    let shown_text = |t: &str| Some(t.to_owned());
    assert_eq!(
        shown,
        [
            (1, Some(4), shown_text("text"), shown_text(""), 0, 1),
            (2, Some(0), shown_text("decimal"), shown_text("7"), 0, 0),
            (3, Some(9), None, None, 0, 0),
        ]
    );
}

/// A file of line 1 keeps all it holds, and what it cannot be rebuilt from.
#[tokio::test]
async fn an_older_line_is_brought_up_with_all_it_holds() {
    use crate::catalog::{ColumnStats, PartitionFilter, StatValue};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    execute(&path, include_str!("../migrations/0001_init.sql")).await;
    execute(
        &path,
        "CREATE TABLE schema_migration (number INTEGER NOT NULL PRIMARY KEY, line INTEGER NOT NULL, \
                                        name TEXT NOT NULL) STRICT;
         INSERT INTO schema_migration VALUES (1, 1, 'init');
         INSERT INTO dataset_position VALUES ('clean', 'weibo', 1, printf('%064d', 7));
         INSERT INTO partition_access VALUES ('p2', '2024-05-20', 9);
         INSERT INTO date_completeness VALUES ('clean', 'weibo', '2024-05-20', 'weibo', 1, 1);
         INSERT INTO dataset_partition_info
         SELECT 'p' || i, 'clean', 'weibo', 'weibo', '2024-05-20', 1, i, 'folder' || i, 2, 2, 2, 'parquet',
                '2024-05-20T00:00:00.000001Z', '2024-05-20T00:00:00.000001Z', i = 2,
                iif(i = 2, 'active', 'superseded'), 1, 'c', 'live', NULL, 1
         FROM (SELECT 1 AS i UNION SELECT 2);
         INSERT INTO data_file
         SELECT 9 - i, 'f' || i, 'p' || (1 + i / 2), 'n' || i, 'folder' || (1 + i / 2) || '/n' || i, 'parquet', 1, 1,
                printf('%064d', i), 'live', '{}', NULL, 'c', 1
         FROM (SELECT 0 AS i UNION SELECT 1 UNION SELECT 2 UNION SELECT 3);
         INSERT INTO column_stats VALUES
             (7, 2, '價格', 3, 'decimal', '-5', '170141183460469231731687303715884105727', 1, 1),
             (7, 1, 'title', NULL, 'text', 'a\"b' || char(10) || ']', '微博', 1, 0),
             (6, 1, 'title', 0, NULL, NULL, NULL, 0, 0);",
    )
    .await;
    let catalog = SqliteCatalog::open(&path).await.unwrap();
    let everything = PartitionFilter::default();
    let files = catalog.list_files(&everything).await.unwrap();
    let paths: Vec<&str> = files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["folder2/n2", "folder2/n3"]);
    let stats = catalog.list_column_stats(&everything, &[]).await.unwrap();
    let title = ColumnStats {
        field_id: 1,
        name: "title".to_owned(),
        null_count: None,
        min: Some(StatValue::Text("a\"b\n]".to_owned())),
        max: Some(StatValue::Text("微博".to_owned())),
        min_exact: true,
        max_exact: false,
    };
    let price = ColumnStats {
        field_id: 2,
        name: "價格".to_owned(),
        null_count: Some(3),
        min: Some(StatValue::Decimal(-5)),
        max: Some(StatValue::Decimal(i128::MAX)),
        min_exact: true,
        max_exact: true,
    };
    let found: Vec<_> = stats
        .iter()
        .map(|s| (s.file_id.as_str(), &s.stats))
        .collect();
    assert_eq!(found[..2], [("f2", &title), ("f2", &price)]);
    assert_eq!((found[2].0, found[2].1.null_count), ("f3", Some(0)));
    let of_price = catalog.list_column_stats(&everything, &[2]).await.unwrap();
    assert_eq!(of_price, stats[1..2]);
    // For people, the names of line 1 show what they did.
    let shown: Vec<(String, i64, Option<String>)> =
        sqlx::query_as("SELECT file_id, field_id, max_value FROM column_stats ORDER BY 1, 2")
            .fetch_all(&catalog.pool)
            .await
            .unwrap();
    assert_eq!(shown[0], ("f2".to_owned(), 1, Some("微博".to_owned())));
    assert_eq!(shown.len(), 3);
    let of_partition: Vec<(String, String)> =
        sqlx::query_as("SELECT id, path FROM data_file WHERE partition_id = 'p1' ORDER BY id")
            .fetch_all(&catalog.pool)
            .await
            .unwrap();
    assert_eq!(of_partition[1], ("f1".to_owned(), "folder1/n1".to_owned()));
    assert_eq!(catalog.list_access().await.unwrap()[0].2, 9);
    assert_eq!(
        catalog.list_source_days(&everything).await.unwrap().len(),
        1
    );
    let dump = catalog.dump().await.unwrap();
    catalog.close().await;
    let again = SqliteCatalog::open(&path).await.unwrap();
    assert_eq!(again.dump().await.unwrap(), dump);
}

#[tokio::test]
async fn places_that_cannot_be_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = SqliteCatalog::open(dir.path()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = SqliteCatalog::open(dir.path().join("no/c.db"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn migrations_are_numbered_from_one() {
    let numbers: Vec<i64> = MIGRATIONS.iter().map(|m| m.number).collect();
    let expected: Vec<i64> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn the_view_and_the_listing_agree() {
    use crate::catalog::testlog::{TestLog, add, dataset, file, key};
    use crate::catalog::{ApplyOutcome, PartitionFilter};
    use crate::spec::{Action, Operation};
    let dir = tempfile::tempdir().unwrap();
    let catalog = SqliteCatalog::open(dir.path().join("c.db")).await.unwrap();
    catalog.bind(&lake_spec("lake-1")).await.unwrap();
    let mut log = TestLog::new(&lake_spec("lake-1"), &dataset());
    let (a, b) = (key("2024-05-20", 1, 0), key("2024-05-20", 2, 0));
    let actions = vec![
        add(a, file("a", 2)),
        add(b, file("b", 3)),
        Action::Complete { dt: a.dt },
        Action::Open {
            dt: "2024-05-21".parse().unwrap(),
        },
    ];
    let (record, _, hash) = log.next(Operation::Append, actions);
    assert_eq!(
        catalog.apply(&record, &hash, &[]).await.unwrap(),
        ApplyOutcome::Applied
    );
    let rows: Vec<(String, String, i64, i64)> =
        sqlx::query_as("SELECT source, dt, row_count, is_complete FROM source_day ORDER BY dt")
            .fetch_all(&catalog.pool)
            .await
            .unwrap();
    let days = catalog
        .list_source_days(&PartitionFilter::default())
        .await
        .unwrap();
    let listed: Vec<_> = days
        .iter()
        .map(|d| {
            let rows = i64::try_from(d.row_count).unwrap();
            (
                d.source.to_string(),
                d.dt.to_string(),
                rows,
                i64::from(d.is_complete),
            )
        })
        .collect();
    assert_eq!(rows, listed);
    let id = "a".to_owned();
    let day = a.dt;
    catalog
        .record_access(&[id.clone(), id.clone()], day)
        .await
        .unwrap();
    catalog
        .record_access(std::slice::from_ref(&id), day)
        .await
        .unwrap();
    catalog.clear().await.unwrap();
    assert_eq!(catalog.list_access().await.unwrap(), [(id, day, 3)]);
}

/// Measured by hand: `cargo nextest run --release -p lakebed --run-ignored all catalog_at_size`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn catalog_at_size() {
    use crate::catalog::PartitionFilter;
    let dir = tempfile::tempdir().unwrap();
    let catalog = SqliteCatalog::open(dir.path().join("c.db")).await.unwrap();
    // 100,000 partitions with 10 files each, one of them with 5,000; statistics of 12 columns there.
    sqlx::raw_sql(
        "PRAGMA foreign_keys = OFF; BEGIN;
         INSERT INTO dataset_partition_info
         SELECT NULL, hex(randomblob(16)), 'clean', 's' || (i % 100), 's' || (i % 100),
                date('2000-01-01', '+' || (i / 100) || ' days'), 1, 0, 'p', 10, 10, 10, 'parquet',
                '2024-05-20T00:00:00.000001Z', '2024-05-20T00:00:00.000001Z', 1, 'active', 0, 'c',
                'live', NULL, 1
         FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
               SELECT i FROM n);
         INSERT INTO partition_file (id, partition_seq, name, format, row_count, byte_size, blake3,
                                     provenance, bounds, attempt, \"commit\", log_position)
         SELECT hex(randomblob(16)), p.seq, 'part-0000' || i || '-' || hex(randomblob(8)) || '.parquet',
                'parquet', 10, 10, lower(hex(randomblob(32))), 'live', '{}', 'attempt', 'commit', 1
         FROM dataset_partition_info p,
              (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
               SELECT i FROM n);
         INSERT INTO partition_file (id, partition_seq, name, format, row_count, byte_size, blake3,
                                     provenance, bounds, attempt, \"commit\", log_position)
         SELECT hex(randomblob(16)), p.seq, 'part-0000' || i || '-' || hex(randomblob(8)) || '.parquet',
                'parquet', 10, 10, lower(hex(randomblob(32))), 'live', '{}', 'attempt', 'commit', 1
         FROM dataset_partition_info p,
              (WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
               SELECT i FROM n)
         WHERE p.dataset = 's7' AND p.dt = '2001-02-03';
         INSERT INTO stats_shape (columns)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
         SELECT '[' || char(10) || group_concat(json_array(i, 'column_' || i, 'int'), ',' || char(10))
                || char(10) || ']' FROM n;
         INSERT INTO file_stats
         SELECT f.seq, 1, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
                        SELECT '[' || char(10) || group_concat(json_array(0, '1', '2', 3), ',' || char(10))
                               || char(10) || ']' FROM n)
         FROM partition_file f
         WHERE f.partition_seq IN
              (SELECT seq FROM dataset_partition_info WHERE dt = '2001-02-03');
         COMMIT;",
    )
    .execute(&catalog.pool)
    .await
    .unwrap();
    for (name, files) in [("clean/s7", 5000), ("clean/s8", 10)] {
        let day = "2001-02-03".parse().unwrap();
        let filter = PartitionFilter {
            dataset: Some(name.parse().unwrap()),
            dt_from: Some(day),
            dt_to: Some(day),
            ..PartitionFilter::default()
        };
        for _ in 0..3 {
            let start = std::time::Instant::now();
            assert_eq!(catalog.list_files(&filter).await.unwrap().len(), files);
            let listed = start.elapsed();
            let stats = catalog.list_column_stats(&filter, &[3, 5]).await.unwrap();
            assert_eq!(stats.len(), files * 2);
            println!(
                "{name}: files {listed:?}, with statistics {:?}",
                start.elapsed()
            );
        }
    }
}
