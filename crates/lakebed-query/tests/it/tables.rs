//! Tables over several schema versions: columns by id, constant columns, system tables.

use serde_json::json;

use crate::support::{Place, TestLake, field, with_members};

async fn three_versions() -> TestLake {
    let mut t = TestLake::new().await;
    t.publish(
        "clean/weibo",
        1,
        vec![
            field(1, "標題", "string"),
            field(2, "heat", "int"),
            field(3, "price", "decimal(6,2)"),
            field(4, "gone", "string"),
        ],
    )
    .await;
    // heat is renamed, a new field takes its old name, price widens, `gone` is removed.
    t.publish(
        "clean/weibo",
        2,
        vec![
            field(1, "標題", "string"),
            field(5, "heat", "string"),
            field(2, "read_count", "int"),
            field(3, "price", "decimal(10,4)"),
        ],
    )
    .await;
    let rows = [
        json!({"標題": "甲", "heat": 10, "price": "12.50", "gone": "老", "_extra": "{\"a\":1}"}),
        json!({"標題": "乙", "heat": null, "price": null, "gone": null}),
    ];
    t.add("clean/weibo", "2024-05-20", 1, &rows).await;
    let rows = [json!({"標題": "丙", "heat": "熱", "read_count": 30, "price": "0.1234"})];
    t.add("clean/weibo", "2024-05-21", 2, &rows).await;
    t
}

#[tokio::test]
async fn all_versions_are_one_table_by_field_id() {
    let t = three_versions().await;
    let rows = t.rows("SELECT * FROM clean.weibo ORDER BY 標題").await;
    assert_eq!(
        rows,
        json!([
            {"source": "weibo", "dt": "2024-05-21", "schema_version": 2, "標題": "丙", "heat": "熱", "read_count": 30,
             "price": 0.1234, "gone": null, "_extra": null},
            {"source": "weibo", "dt": "2024-05-20", "schema_version": 1, "標題": "乙", "heat": null, "read_count": null,
             "price": null, "gone": null, "_extra": null},
            {"source": "weibo", "dt": "2024-05-20", "schema_version": 1, "標題": "甲", "heat": null, "read_count": 10,
             "price": 12.5, "gone": "老", "_extra": "{\"a\":1}"},
        ])
    );
    // Filters on a renamed, a widened and a removed column reach the old file.
    for (filter, want) in [
        ("read_count = 10", json!(["甲"])),
        ("price = 12.5", json!(["甲"])),
        ("gone = '老'", json!(["甲"])),
        ("heat = '熱'", json!(["丙"])),
        ("heat IS NULL", json!(["乙", "甲"])),
        ("gone IS NULL AND price IS NOT NULL", json!(["丙"])),
        (
            "read_count >= 10 OR \"標題\" = '乙'",
            json!(["丙", "乙", "甲"]),
        ),
    ] {
        let rows = t
            .rows(&format!(
                "SELECT 標題 AS t FROM clean.weibo WHERE {filter} ORDER BY 1"
            ))
            .await;
        let got: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["t"].clone())
            .collect();
        assert_eq!(json!(got), want, "{filter}");
    }
    assert_eq!(
        t.value("SELECT SUM(read_count) FROM clean.weibo").await,
        json!(40)
    );
}

#[tokio::test]
async fn two_ids_that_swap_names_do_not_swap_values() {
    let mut t = TestLake::new().await;
    t.publish(
        "clean/s",
        1,
        vec![field(1, "a", "int"), field(2, "b", "int")],
    )
    .await;
    t.publish(
        "clean/s",
        2,
        vec![field(2, "a", "int"), field(1, "b", "int")],
    )
    .await;
    t.add("clean/s", "2024-01-01", 1, &[json!({"a": 1, "b": 2})])
        .await;
    t.add("clean/s", "2024-01-02", 2, &[json!({"a": 2, "b": 1})])
        .await;
    assert_eq!(
        t.rows("SELECT a, b, a - b AS d FROM clean.s ORDER BY dt")
            .await,
        json!([{"a": 2, "b": 1, "d": 1}, {"a": 2, "b": 1, "d": 1}])
    );
    assert_eq!(
        t.value("SELECT COUNT(*) FROM clean.s WHERE a = 2 AND b = 1")
            .await,
        json!(2)
    );
    assert_eq!(
        t.value("SELECT COUNT(*) FROM clean.s WHERE a = 1").await,
        json!(0)
    );
}

#[tokio::test]
async fn bytes_stay_bytes_where_a_text_took_their_name() {
    use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
    let mut t = TestLake::new().await;
    let old = vec![field(1, "a", "bytes")];
    t.publish("clean/b", 1, old.clone()).await;
    t.publish("clean/b", 2, vec![field(2, "a", "string")]).await;
    let columns: Vec<ArrayRef> = vec![
        std::sync::Arc::new(BinaryArray::from(vec![b"\xff\x00".as_slice()])),
        std::sync::Arc::new(StringArray::from(vec!["b"])),
        std::sync::Arc::new(StringArray::from(vec![None::<&str>])),
    ];
    let schema = std::sync::Arc::new(lakebed::spec::arrow_schema(&old));
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    t.add_batch("clean/b", ("2024-01-01", 1), &batch, Place::Final)
        .await;
    t.add("clean/b", "2024-01-02", 2, &[json!({"a": "文"})])
        .await;
    assert_eq!(
        t.rows("SELECT a, a__v1 FROM clean.b ORDER BY dt").await,
        json!([{"a": null, "a__v1": "/wA="}, {"a": "文", "a__v1": null}])
    );
    let count = "SELECT COUNT(*) FROM clean.b WHERE a = '文' OR a__v1 IS NOT NULL";
    assert_eq!(t.value(count).await, json!(2));
    assert_eq!(t.value("SELECT MAX(a) FROM clean.b").await, json!("文"));
}

#[tokio::test]
async fn nested_members_follow_their_ids() {
    let mut t = TestLake::new().await;
    let who = |members| with_members(field(1, "who", "struct"), members);
    let tags = || field(5, "tags", "list<string>");
    let prices = || field(6, "prices", "map<decimal(8,2)>");
    t.publish(
        "clean/n",
        1,
        vec![
            who(vec![field(2, "name", "string"), field(3, "age", "int")]),
            tags(),
            prices(),
        ],
    )
    .await;
    t.publish(
        "clean/n",
        2,
        vec![
            who(vec![
                field(3, "years", "int"),
                field(4, "name", "string"),
                field(2, "nick", "string"),
            ]),
            tags(),
            prices(),
        ],
    )
    .await;
    let v1 = [
        json!({"who": {"name": "小明", "age": 7}, "tags": ["a", null], "prices": {"x": "1.50"}}),
        json!({"who": null, "tags": [], "prices": {}}),
    ];
    t.add("clean/n", "2024-01-01", 1, &v1).await;
    let v2 = [json!({"who": {"years": 8, "name": "本名", "nick": "暱稱"}, "tags": null})];
    t.add("clean/n", "2024-01-02", 2, &v2).await;
    let rows = t
        .rows("SELECT who, tags, prices FROM clean.n ORDER BY dt, tags NULLS FIRST")
        .await;
    assert_eq!(
        rows[2]["who"],
        json!({"years": 8, "name": "本名", "nick": "暱稱"})
    );
    let old: Vec<_> = rows.as_array().unwrap()[..2].to_vec();
    assert!(old.contains(
        &json!({"who": {"years": 7, "name": null, "nick": "小明"}, "tags": ["a", null], "prices": {"x": 1.5}})
    ));
    assert!(old.contains(&json!({"who": null, "tags": [], "prices": {}})));
    // A filter on a member must not be lost where the file's struct has another shape.
    for (filter, want) in [
        ("who['nick'] = '小明'", 1),
        ("who['nick'] = '暱稱'", 1),
        ("who['years'] > 7", 1),
        ("who['name'] IS NULL", 2),
        ("who['name'] = '小明'", 0),
        ("array_length(tags) = 2", 1),
        ("prices['x'] IS NOT NULL", 1),
        ("who['years'] = 7 AND schema_version = 1", 1),
    ] {
        let count = t
            .value(&format!("SELECT COUNT(*) FROM clean.n WHERE {filter}"))
            .await;
        assert_eq!(count, json!(want), "{filter}");
    }
    assert_eq!(
        t.rows("SELECT who['nick'] AS n FROM clean.n WHERE who IS NOT NULL ORDER BY n")
            .await,
        json!([{"n": "小明"}, {"n": "暱稱"}])
    );
}

#[tokio::test]
async fn dotted_datasets_have_two_spellings_and_bare_names_are_clean() {
    let mut t = TestLake::new().await;
    t.publish("clean/weibo.comments", 1, vec![field(1, "a", "int")])
        .await;
    t.publish("feature/f", 1, vec![field(1, "a", "int")]).await;
    t.add("clean/weibo.comments", "2024-01-01", 1, &[json!({"a": 5})])
        .await;
    t.add("feature/f", "2024-01-01", 1, &[json!({"a": 6})])
        .await;
    for name in [
        "clean.\"weibo.comments\"",
        "clean.weibo.comments",
        "\"weibo.comments\"",
        "lakebed.clean.\"weibo.comments\"",
    ] {
        assert_eq!(
            t.value(&format!("SELECT a + 0 FROM {name}")).await,
            json!(5),
            "{name}"
        );
    }
    let joined =
        "SELECT c.source AS s, f.a AS a FROM clean.weibo.comments c JOIN feature.f f USING (dt)";
    assert_eq!(t.rows(joined).await, json!([{"s": "weibo", "a": 6}]));
}

#[tokio::test]
async fn commit_and_file_are_columns_on_demand() {
    let t = three_versions().await;
    let rows = t
        .rows("SELECT 標題 AS t, _commit AS c, _file AS f FROM clean.weibo WHERE dt = '2024-05-21'")
        .await;
    assert_eq!(rows[0]["c"], json!("commit-2"));
    let file = rows[0]["f"].as_str().unwrap();
    assert!(
        file.starts_with("clean/weibo/dt=2024-05-21/schema_version=2/part-"),
        "{file}"
    );
    let star = t.rows("SELECT * FROM clean.weibo LIMIT 1").await;
    assert!(star[0].get("_file").is_none());
    assert_eq!(
        t.value(&format!(
            "SELECT COUNT(*) FROM clean.weibo WHERE _file = '{file}'"
        ))
        .await,
        json!(1)
    );
}

#[tokio::test]
async fn system_tables_show_the_catalog() {
    let t = three_versions().await;
    assert_eq!(
        t.rows("SELECT layer, source, dataset, dt, schema_version, revision, file_count, row_count, is_active, state, file_format FROM lake.partitions ORDER BY dt")
            .await,
        json!([
            {"layer": "clean", "source": "weibo", "dataset": "weibo", "dt": "2024-05-20", "schema_version": 1, "revision": 0,
             "file_count": 1, "row_count": 2, "is_active": true, "state": "active", "file_format": "parquet"},
            {"layer": "clean", "source": "weibo", "dataset": "weibo", "dt": "2024-05-21", "schema_version": 2, "revision": 0,
             "file_count": 1, "row_count": 1, "is_active": true, "state": "active", "file_format": "parquet"},
        ])
    );
    assert_eq!(
        t.rows("SELECT \"commit\" AS c, row_count AS n FROM lake.files ORDER BY log_position")
            .await,
        json!([{"c": "commit-1", "n": 2}, {"c": "commit-2", "n": 1}])
    );
    assert_eq!(
        t.rows("SELECT number AS n, at, operation AS o, rows_added AS r, dt_max FROM lake.commits ORDER BY 1 DESC LIMIT 1")
            .await,
        json!([{"n": 2, "at": "2024-05-20T00:00:00.000002Z", "o": "append", "r": 1, "dt_max": "2024-05-21"}])
    );
    assert_eq!(
        t.rows("SELECT version AS v, base FROM lake.schemas ORDER BY v")
            .await,
        json!([{"v": 1, "base": null}, {"v": 2, "base": 1}])
    );
    assert_eq!(
        t.rows("SELECT dt, row_count AS n, is_complete AS c FROM lake.source_day ORDER BY dt DESC LIMIT 1")
            .await,
        json!([{"dt": "2024-05-21", "n": 1, "c": false}])
    );
    let shown = t.rows("SHOW TABLES").await.to_string();
    for name in ["weibo", "partitions", "source_day"] {
        assert!(shown.contains(name), "{shown}");
    }
    let described = t.rows("DESCRIBE clean.weibo").await;
    assert_eq!(described[0]["column_name"], json!("source"));
    assert_eq!(described[3]["column_name"], json!("標題"));
}

#[tokio::test]
async fn a_file_not_yet_moved_is_read_from_its_stage_folder() {
    let mut t = TestLake::new().await;
    t.publish("clean/s", 1, vec![field(1, "a", "int")]).await;
    let path = t
        .add_staged("clean/s", "2024-01-01", 1, &[json!({"a": 41})])
        .await;
    assert!(!t.path(&path).exists());
    assert_eq!(t.value("SELECT a + 1 FROM clean.s").await, json!(42));
    let staged = t.data_files().await;
    std::fs::create_dir_all(t.path(&path).parent().unwrap()).unwrap();
    std::fs::rename(&staged[0], t.path(&path)).unwrap();
    assert_eq!(t.value("SELECT a + 1 FROM clean.s").await, json!(42));
}

#[tokio::test]
async fn a_dataset_without_files_is_an_empty_table() {
    let mut t = TestLake::new().await;
    t.publish("clean/e", 1, vec![field(1, "a", "int")]).await;
    lakebed::catalog::sync_all(&t.lake, &*t.catalog).await.ok();
    t.publish("clean/other", 1, vec![field(1, "a", "int")])
        .await;
    t.add("clean/other", "2024-01-01", 1, &[]).await;
    assert_eq!(t.value("SELECT COUNT(*) FROM clean.other").await, json!(0));
    assert_eq!(t.value("SELECT MAX(a) FROM clean.other").await, json!(null));
    assert_eq!(t.rows("SELECT * FROM clean.other").await, json!([]));
}
