//! Pruning, answers from the catalog, EXPLAIN, and the hooks around planning.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use lakebed::Result;
use lakebed::catalog::{Catalog, SchemaRow};
use lakebed::name::{ContentHash, DatasetRef};
use lakebed::spec::{Action, DataFileSpec, FileFormat, PartitionKey, Provenance};
use lakebed_query::{Freshen, QueryOptions};
use serde_json::{Value, json};

use crate::support::{Place, TestLake, field};

/// Ten days; day n holds ids 10 n to 10 n + 9, names `n<id>`, and a NULL price on even days.
async fn ten_days() -> TestLake {
    let mut t = TestLake::new().await;
    let fields = |id: &str| {
        vec![
            field(1, id, "int"),
            field(2, "name", "string"),
            field(3, "price", "decimal(8,2)"),
            field(4, "at", "timestamp"),
            field(5, "score", "float"),
        ]
    };
    t.publish("clean/d", 1, fields("id")).await;
    t.publish("clean/d", 2, fields("key")).await;
    for day in 0_i64..10 {
        let version = if day < 5 { 1 } else { 2 };
        let id = if day < 5 { "id" } else { "key" };
        let rows: Vec<Value> = (0..10)
            .map(|i| {
                let n = day * 10 + i;
                json!({id: n, "name": format!("n{n:03}"), "at": format!("2024-01-{:02}T00:00:{i:02}Z", day + 1),
                       "price": (day % 2 == 1).then(|| format!("{n}.25")), "score": n})
            })
            .collect();
        t.add(
            "clean/d",
            &format!("2024-01-{:02}", day + 1),
            version,
            &rows,
        )
        .await;
    }
    t
}

#[tokio::test]
async fn files_that_cannot_match_are_not_planned() {
    let t = ten_days().await;
    for (filter, rows, read) in [
        ("dt = '2024-01-03'", 10, 1),
        ("dt BETWEEN '2024-01-03' AND '2024-01-05'", 30, 3),
        ("dt > '2024-01-08' OR dt < DATE '2024-01-02'", 30, 3),
        ("dt IN ('2024-01-01', '2024-01-10')", 20, 2),
        ("CAST(dt AS VARCHAR) LIKE '%-04'", 10, 1),
        ("date_part('day', dt) = 7", 10, 1),
        ("dt <> '2024-01-01'", 90, 9),
        ("schema_version = 2", 50, 5),
        ("schema_version IN (2, 3)", 50, 5),
        ("schema_version < 2 AND dt >= '2024-01-05'", 10, 1),
        ("source = 'd'", 100, 10),
        ("source = 'other'", 0, 0),
        ("dt = '2030-01-01'", 0, 0),
        ("schema_version = 1 AND schema_version = 2", 0, 0),
        ("key = 33", 1, 1),
        ("key BETWEEN 38 AND 41", 4, 2),
        ("name = 'n077'", 1, 1),
        ("name LIKE 'n07%'", 10, 1),
        ("price > 95", 5, 1),
        ("price IS NULL", 50, 5),
        ("price IS NOT NULL AND key < 20", 10, 1),
        ("at >= '2024-01-09T00:00:05Z'", 15, 2),
        ("key = 5 OR dt = '2024-01-10'", 11, 2),
        ("key + 0 = 5", 1, 10),
        ("score = 55", 1, 10),
    ] {
        let text = format!("SELECT * FROM clean.d WHERE {filter}");
        let result = t.query(&text).await.unwrap();
        assert_eq!(result.stats().files_read(), read, "{filter}");
        let batches = result.collect().await.unwrap();
        let got: usize = batches.iter().map(|b| b.num_rows()).sum();
        assert_eq!(got, rows, "{filter}");
    }
}

#[tokio::test]
async fn counts_and_bounds_come_from_the_catalog() {
    let t = ten_days().await;
    for file in t.data_files().await {
        std::fs::write(file, b"not parquet").unwrap();
    }
    for (text, want) in [
        ("COUNT(*)", json!(100)),
        ("COUNT(key)", json!(100)),
        ("COUNT(price)", json!(50)),
        ("MIN(key)", json!(0)),
        ("MAX(key)", json!(99)),
        ("MIN(price)", json!(10.25)),
        ("MAX(name)", json!("n099")),
        ("MIN(dt)", json!("2024-01-01")),
        ("MAX(schema_version)", json!(2)),
        ("MAX(at)", json!("2024-01-10T00:00:09.000000Z")),
    ] {
        assert_eq!(
            t.value(&format!("SELECT {text} FROM clean.d")).await,
            want,
            "{text}"
        );
    }
    let text = "SELECT COUNT(*) AS n, MIN(key) AS a, MAX(key) AS b FROM clean.d WHERE dt > '2024-01-08' AND schema_version = 2";
    assert_eq!(t.files(text).await.1, 0);
    assert_eq!(t.rows(text).await, json!([{"n": 20, "a": 80, "b": 99}]));
    let days =
        "SELECT dt, COUNT(*) AS n FROM clean.d WHERE dt > '2024-01-08' GROUP BY dt ORDER BY dt";
    assert_eq!(
        t.rows(days).await,
        json!([{"dt": "2024-01-09", "n": 10}, {"dt": "2024-01-10", "n": 10}])
    );
    // What the catalog cannot know is read, and here that fails.
    for text in [
        "SELECT MAX(score) FROM clean.d",
        "SELECT COUNT(*) FROM clean.d WHERE key > 55",
        "SELECT dt, COUNT(*) FROM clean.d WHERE key > 55 GROUP BY dt",
        "SELECT name, COUNT(*) FROM clean.d GROUP BY name",
        "SELECT SUM(key) FROM clean.d",
    ] {
        assert!(t.try_rows(text).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn answers_from_the_catalog_equal_those_from_files() {
    let t = ten_days().await;
    for expression in [
        "COUNT(price)",
        "MIN(name)",
        "MAX(at)",
        "COUNT(*)",
        "MIN(score)",
    ] {
        let short = t
            .value(&format!(
                "SELECT {expression} FROM clean.d WHERE dt < '2024-01-08'"
            ))
            .await;
        let read = t
            .value(&format!(
                "SELECT {expression} FROM clean.d WHERE dt < '2024-01-08' AND key + 0 >= 0"
            ))
            .await;
        assert_eq!(short, read, "{expression}");
    }
    assert_eq!(
        t.value("SELECT COUNT(*) FROM (SELECT * FROM clean.d LIMIT 3)")
            .await,
        json!(3)
    );
    assert_eq!(
        t.value("SELECT COUNT(*) FROM (SELECT * FROM clean.d WHERE dt = '2024-01-02' LIMIT 7)")
            .await,
        json!(7)
    );
}

#[tokio::test]
async fn a_long_text_bound_is_not_taken_for_a_value() {
    let mut t = TestLake::new().await;
    t.publish("clean/x", 1, vec![field(1, "s", "string")]).await;
    let long = "微博".repeat(200);
    let rows = [json!({"s": long}), json!({"s": "a"})];
    t.add("clean/x", "2024-01-01", 1, &rows).await;
    assert_eq!(t.value("SELECT MAX(s) FROM clean.x").await, json!(long));
    assert_eq!(t.value("SELECT MIN(s) FROM clean.x").await, json!("a"));
    let found = format!("SELECT COUNT(*) FROM clean.x WHERE s = '{long}'");
    assert_eq!(t.value(&found).await, json!(1));
}

#[tokio::test]
async fn nan_is_neither_lost_nor_hidden_by_bounds() {
    use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    let mut t = TestLake::new().await;
    let fields = vec![field(1, "x", "float")];
    t.publish("clean/f", 1, fields.clone()).await;
    let schema = Arc::new(lakebed::spec::arrow_schema(&fields));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
        Arc::new(StringArray::from(vec!["f", "f"])),
        Arc::new(StringArray::from(vec![None::<&str>, None])),
    ];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    t.add_batch("clean/f", ("2024-01-01", 1), &batch, Place::Final)
        .await;
    assert_eq!(
        t.rows("SELECT x FROM clean.f ORDER BY x").await,
        json!([{"x": 1.0}, {"x": "NaN"}])
    );
    assert_eq!(t.files("SELECT MAX(x) FROM clean.f").await, (1, 1));
}

#[tokio::test]
async fn explain_shows_files_considered_and_read() {
    let t = ten_days().await;
    for text in [
        "EXPLAIN SELECT name FROM clean.d WHERE dt >= '2024-01-09'",
        "EXPLAIN ANALYZE SELECT name FROM clean.d WHERE dt >= '2024-01-09'",
    ] {
        let rows = t.rows(text).await;
        assert_eq!(rows[0]["plan_type"], json!("files"), "{rows}");
        let first = rows[0]["plan"].as_str().unwrap();
        assert!(
            first.starts_with("clean.d: files_considered=10 files_read=2 bytes="),
            "{first}"
        );
        assert!(
            rows.to_string()
                .contains(", files_considered=10 files_read=2 bytes="),
            "{rows}"
        );
    }
    let engine = t.engine();
    let result = engine
        .explain("SELECT COUNT(*) FROM clean.d")
        .await
        .unwrap();
    assert_eq!(
        (
            result.stats().files_considered(),
            result.stats().files_read()
        ),
        (10, 0)
    );
}

#[tokio::test]
async fn five_thousand_files_are_planned_without_touching_one() {
    let mut t = TestLake::new().await;
    t.publish("clean/big", 1, vec![field(1, "a", "int")]).await;
    t.add("clean/big", "2019-12-31", 1, &[json!({"a": 1})])
        .await;
    let dataset: DatasetRef = "clean/big".parse().unwrap();
    let first: lakebed::time::BusinessDate = "2020-01-01".parse().unwrap();
    let actions = (0..5000_u32)
        .map(|n| Action::AddFile {
            partition: PartitionKey {
                dt: first.plus_days(i64::from(n / 5)),
                schema_version: 1,
                revision: 0,
            },
            file: DataFileSpec {
                name: format!("part-{n:05}-0123456789abcdef.parquet"),
                format: FileFormat::Parquet,
                rows: 1000,
                bytes: 100_000,
                blake3: ContentHash::of(&n.to_le_bytes()),
                provenance: Provenance::Live,
                bounds: std::collections::BTreeMap::new(),
                parents: Vec::new(),
            },
        })
        .collect();
    let record = t.next_record(&dataset, actions);
    let hash = ContentHash::of(&serde_json::to_vec(&record).unwrap());
    let applied = t.catalog.apply(&record, &hash, &[]).await.unwrap();
    assert_eq!(applied, lakebed::catalog::ApplyOutcome::Applied);
    let engine = t.engine();
    let text = "SELECT a FROM clean.big WHERE dt = '2021-06-01'";
    let planned = engine.explain(text).await.unwrap();
    let stats = planned.stats();
    assert_eq!((stats.files_considered(), stats.files_read()), (5001, 5));
    assert_eq!(
        t.value("SELECT COUNT(*) FROM clean.big").await,
        json!(5_000_001)
    );
    let clock = std::time::Instant::now();
    engine.sql(text).await.unwrap();
    println!("planned in {:?}", clock.elapsed());
}

#[derive(Debug)]
struct Recorded {
    catalog: Arc<dyn Catalog>,
    named: Mutex<Vec<String>>,
}

#[async_trait]
impl Freshen for Recorded {
    async fn freshen(&self, dataset: &DatasetRef) -> Result<Vec<SchemaRow>> {
        self.named.lock().unwrap().push(dataset.to_string());
        self.catalog.list_schemas(Some(dataset)).await
    }

    async fn freshen_all(&self) -> Result<()> {
        self.named.lock().unwrap().push("*".to_owned());
        Ok(())
    }
}

#[tokio::test]
async fn named_datasets_are_freshened_and_their_reads_counted() {
    let t = ten_days().await;
    let hook = Arc::new(Recorded {
        catalog: t.catalog.clone(),
        named: Mutex::default(),
    });
    let engine = t.engine_with(QueryOptions {
        freshen: Some(hook.clone()),
        access_day: Some("2024-02-01".parse().unwrap()),
        ..QueryOptions::default()
    });
    let text = "WITH x AS (SELECT * FROM clean.d WHERE dt <= '2024-01-02') SELECT COUNT(*) FROM x, lake.files";
    let result = engine.sql(text).await.unwrap();
    let meter = result.meter();
    result.collect().await.unwrap();
    assert_eq!(meter.warnings(), Vec::<String>::new());
    engine.sql(text).await.unwrap().collect().await.unwrap();
    assert_eq!(
        *hook.named.lock().unwrap(),
        ["clean/d", "*", "clean/d", "*"]
    );
    engine.count_reads().await.unwrap();
    engine.count_reads().await.unwrap();
    let counted = t.catalog.list_access().await.unwrap();
    assert_eq!(counted.len(), 2);
    assert!(counted.iter().all(|(_, _, reads)| *reads == 2));
}

#[tokio::test]
async fn filters_made_while_running_reach_renamed_columns() {
    let t = ten_days().await;
    for (text, want) in [
        (
            "SELECT key AS v FROM clean.d ORDER BY key DESC LIMIT 3",
            json!([{"v": 99}, {"v": 98}, {"v": 97}]),
        ),
        (
            "SELECT key AS v FROM clean.d ORDER BY dt, name DESC LIMIT 2",
            json!([{"v": 9}, {"v": 8}]),
        ),
        (
            "SELECT a.key AS v FROM clean.d a JOIN (SELECT key + 90 AS k FROM clean.d WHERE key < 2) b ON a.key = b.k ORDER BY 1",
            json!([{"v": 90}, {"v": 91}]),
        ),
        (
            "SELECT key AS v FROM clean.d WHERE key IN (SELECT MAX(key) FROM clean.d GROUP BY dt) AND dt < '2024-01-03' ORDER BY 1",
            json!([{"v": 9}, {"v": 19}]),
        ),
        (
            "SELECT COUNT(DISTINCT name) AS v FROM clean.d WHERE price > 50 OR price IS NULL",
            json!([{"v": 80}]),
        ),
        (
            "SELECT schema_version AS v FROM clean.d GROUP BY schema_version HAVING MIN(key) > 20",
            json!([{"v": 2}]),
        ),
        (
            "SELECT (SELECT COUNT(*) FROM clean.d WHERE dt > '2024-01-05') AS v",
            json!([{"v": 50}]),
        ),
    ] {
        assert_eq!(t.rows(text).await, want, "{text}");
    }
}

#[tokio::test]
async fn row_groups_and_pages_are_skipped_by_the_right_column() {
    let mut t = TestLake::new().await;
    t.publish(
        "clean/g",
        1,
        vec![field(1, "a", "int"), field(2, "b", "int")],
    )
    .await;
    t.publish(
        "clean/g",
        2,
        vec![field(2, "a", "int"), field(1, "b", "int")],
    )
    .await;
    // In the file, `a` grows and `b` falls; in SQL the names are the other way round.
    let rows: Vec<Value> = (0..1000).map(|i| json!({"a": i, "b": 5000 - i})).collect();
    t.add("clean/g", "2024-01-01", 1, &rows).await;
    for (filter, want) in [
        ("b = 950", 1),
        ("a = 4050", 1),
        ("a = 950", 0),
        ("b > 4000", 0),
        ("a > 4990 AND b < 5", 5),
        ("a <= 4001 OR b = 0", 2),
    ] {
        let text = format!("SELECT COUNT(*) FROM clean.g WHERE {filter}");
        assert_eq!(t.value(&text).await, json!(want), "{filter}");
    }
    assert_eq!(
        t.rows("SELECT a, b FROM clean.g WHERE b BETWEEN 500 AND 501 ORDER BY a")
            .await,
        json!([{"a": 4499, "b": 501}, {"a": 4500, "b": 500}])
    );
}

#[tokio::test]
async fn a_page_index_is_kept_where_rows_are_filtered_again() {
    let mut t = TestLake::new().await;
    let fields = vec![field(1, "k", "int"), field(2, "t", "string")];
    t.publish("clean/g", 1, fields).await;
    let rows: Vec<Value> = (0..1000)
        .map(|k| json!({"k": k, "t": k.to_string()}))
        .collect();
    t.add("clean/g", "2024-01-01", 1, &rows).await;
    let engine = t.engine();
    let read = async |k: i64| {
        let text = format!("SELECT t FROM clean.g WHERE k = {k}");
        let mut result = engine.sql(&text).await.unwrap();
        let meter = result.meter();
        let mut rows = 0;
        while let Some(batch) = result.next_batch().await.unwrap() {
            rows += batch.num_rows();
        }
        assert_eq!(rows, 1, "{text}");
        meter.bytes_read()
    };
    let (_, second, third) = (read(500).await, read(500).await, read(500).await);
    assert!(third < second, "{second} {third}");
    assert_eq!(read(500).await, third);
    // Another page of the same file.
    read(7).await;
}
