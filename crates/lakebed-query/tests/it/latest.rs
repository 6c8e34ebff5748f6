//! The newest row of each key, and the history of one.

use std::collections::BTreeMap;

use lakebed_query::{ObjectKey, write_json};
use serde_json::{Value, json};

use crate::support::{TestLake, field};

const SHOP: &str = "class = \"log\"\n[dataset.shop]\nkey = [\"id\", \"市\"]\n";
const BY_TIME: &str = "class = \"log\"\n[dataset.feed]\nkey = [\"id\"]\nnewest_by = \"seen\"\n[dataset.\"feed.x\"]\nkey = [\"nothing\"]\n";
const ROWS: &str = "class = \"log\"\n[dataset.copies]\ndedup = \"rows\"\n";

/// 600 rows a file, so that files have several row groups and pages; what each of them says follows
/// from its number alone.
fn rows(file: i64) -> Vec<Value> {
    (0..600)
        .map(|i| {
            let n = file * 600 + i;
            let id = (n * 7919) % 211;
            match n % 53 {
                0 => json!({"price": n}),
                _ => json!({"id": id, "市": if n % 2 == 0 { "台北" } else { "新竹" }, "price": n}),
            }
        })
        .collect()
}

/// The newest rows by going through all in order: (id, 市) -> (dt, price).
type Model = BTreeMap<(i64, String), (String, i64)>;

fn learn(model: &mut Model, dt: &str, rows: &[Value]) {
    for row in rows {
        if let (Some(id), Some(city)) = (row["id"].as_i64(), row["市"].as_str()) {
            let newest = (dt.to_owned(), row["price"].as_i64().unwrap());
            model.insert((id, city.to_owned()), newest);
        }
    }
}

fn expected(model: &Model, keep: impl Fn(&Value) -> bool) -> Value {
    let rows = model
        .iter()
        .map(|((id, city), (dt, price))| json!({"id": id, "市": city, "dt": dt, "price": price}));
    Value::Array(rows.filter(keep).collect())
}

async fn shop() -> (TestLake, Model) {
    let mut t = TestLake::new().await;
    t.declared.insert("shop", SHOP);
    let fields = vec![
        field(1, "id", "int"),
        field(2, "市", "string"),
        field(3, "price", "int"),
    ];
    t.publish("clean/shop", 1, fields).await;
    let mut model = Model::new();
    // The second date comes in before the first one: dates decide before commits do.
    t.add("clean/shop", "2024-03-02", 1, &rows(2)).await;
    t.add("clean/shop", "2024-03-01", 1, &rows(0)).await;
    t.add("clean/shop", "2024-03-01", 1, &rows(1)[..300]).await;
    t.add("clean/shop", "2024-03-02", 1, &rows(3)[..50]).await;
    learn(&mut model, "2024-03-01", &rows(0));
    learn(&mut model, "2024-03-01", &rows(1)[..300]);
    learn(&mut model, "2024-03-02", &rows(2));
    learn(&mut model, "2024-03-02", &rows(3)[..50]);
    (t, model)
}

#[tokio::test]
async fn the_newest_row_of_each_key_is_shown() {
    let (t, model) = shop().await;
    let select = "SELECT id, \"市\", dt, price FROM clean.shop__latest";
    let order = "ORDER BY id, \"市\" COLLATE \"C\"";
    let order = order.replace(" COLLATE \"C\"", "");
    let all = t.rows(&format!("{select} {order}")).await;
    assert_eq!(all, expected(&model, |_| true));
    // Filters are of the newest rows; those of a key skip what cannot match in both scans.
    for (filter, keep) in [
        ("id = 7", (|r: &Value| r["id"] == 7) as fn(&Value) -> bool),
        ("id IN (1, 2, 210) AND \"市\" = '台北'", |r| {
            [1, 2, 210].contains(&r["id"].as_i64().unwrap()) && r["市"] == "台北"
        }),
        ("price < 700", |r| r["price"].as_i64().unwrap() < 700),
        ("dt = '2024-03-01'", |r| r["dt"] == "2024-03-01"),
        ("dt = '2024-03-01' AND id > 100", |r| {
            r["dt"] == "2024-03-01" && r["id"].as_i64().unwrap() > 100
        }),
    ] {
        let got = t.rows(&format!("{select} WHERE {filter} {order}")).await;
        assert_eq!(got, expected(&model, keep), "{filter}");
    }
    let count = t.value("SELECT count(*) AS n FROM shop__latest").await;
    assert_eq!(count, json!(model.len()));
    // Its origin is that of the row which is shown.
    let origin = "SELECT count(*) AS n FROM shop__latest l JOIN clean.shop s \
                  ON l._file = s._file AND l._row = s._row AND l._commit = s._commit AND l.price = s.price";
    assert_eq!(t.value(origin).await, json!(model.len()));
}

#[tokio::test]
async fn a_row_knows_its_place_whatever_is_skipped() {
    let (t, _) = shop().await;
    for filter in [
        "price = 350",
        "price > 1100 AND price % 7 = 0",
        "_row = 599",
        "_row < 3 OR price = 77",
    ] {
        let query = format!(
            "SELECT count(*) AS n FROM clean.shop WHERE ({filter}) AND _row <> price % 600"
        );
        assert_eq!(t.value(&query).await, json!(0), "{filter}");
        let some =
            format!("SELECT count(*) > 0 AS n FROM clean.shop WHERE ({filter}) AND _row >= 0");
        assert_eq!(t.value(&some).await, json!(true), "{filter}");
    }
}

#[tokio::test]
async fn nothing_before_the_last_full_load_counts() {
    let (mut t, _) = shop().await;
    let mut model = Model::new();
    let record = 5;
    t.add_full("clean/shop", "2024-03-03", 1, &rows(4)[..100])
        .await;
    t.add("clean/shop", "2024-03-03", 1, &rows(5)[..20]).await;
    // A full load of an earlier date is not the last one, though its record is.
    t.add_full("clean/shop", "2024-03-01", 1, &rows(6)[..10])
        .await;
    learn(&mut model, "2024-03-03", &rows(4)[..100]);
    learn(&mut model, "2024-03-03", &rows(5)[..20]);
    let select =
        |from: &str| format!("SELECT id, \"市\", dt, price FROM {from} ORDER BY id, \"市\"");
    assert_eq!(
        t.rows(&select("clean.shop__latest")).await,
        expected(&model, |_| true)
    );
    // As it was after the full load alone.
    let mut then = Model::new();
    learn(&mut then, "2024-03-03", &rows(4)[..100]);
    let past = format!("as_of('clean.shop__latest', {record})");
    assert_eq!(t.rows(&select(&past)).await, expected(&then, |_| true));
    // One that holds nothing leaves nothing.
    t.add_full("clean/shop", "2024-03-04", 1, &[]).await;
    assert_eq!(t.rows(&select("clean.shop__latest")).await, json!([]));
}

#[tokio::test]
async fn a_column_may_say_which_row_is_newer() {
    let mut t = TestLake::new().await;
    t.declared.insert("feed", BY_TIME);
    let fields = vec![
        field(1, "id", "string"),
        field(2, "seen", "timestamp"),
        field(3, "v", "int"),
    ];
    t.publish("clean/feed", 1, fields.clone()).await;
    t.publish("clean/feed.x", 1, fields).await;
    let at = |id: &str, hour: &str, v: i64| json!({"id": id, "seen": format!("2024-03-01T{hour}:00:00Z"), "v": v});
    let first = [
        at("a", "09", 1),
        at("b", "09", 2),
        at("b", "09", 3),
        json!({"id": "c", "v": 4}),
    ];
    let second = [
        at("a", "08", 5),
        json!({"id": "b", "v": 6}),
        json!({"id": "c", "v": 7}),
    ];
    t.add("clean/feed", "2024-03-01", 1, &first).await;
    t.add("clean/feed", "2024-03-02", 1, &second).await;
    let got = t.rows("SELECT id, v FROM feed__latest ORDER BY id").await;
    let want = json!([{"id": "a", "v": 1}, {"id": "b", "v": 3}, {"id": "c", "v": 7}]);
    assert_eq!(got, want);
    let e = t
        .try_rows("SELECT * FROM clean.\"feed.x__latest\"")
        .await
        .unwrap_err();
    assert!(
        e.message().contains("names `nothing`, which is no column"),
        "{e}"
    );
}

#[tokio::test]
async fn equal_rows_are_one_where_there_is_no_key() {
    let mut t = TestLake::new().await;
    t.declared.insert("copies", ROWS);
    let fields = vec![
        field(1, "a", "int"),
        field(2, "f", "float"),
        field(3, "tags", "list<string>"),
        field(4, "m", "map<int>"),
        crate::support::with_members(field(5, "who", "struct"), vec![field(6, "name", "string")]),
    ];
    t.publish("clean/copies", 1, fields).await;
    let first = [
        json!({"a": 1, "f": 0.5, "tags": ["x", null], "m": {"k": 1}, "who": {"name": "甲"}}),
        json!({"a": 1, "f": 0.5, "tags": ["x"], "m": {"k": 1}, "who": {"name": "甲"}}),
        json!({}),
        json!({"a": 2}),
    ];
    t.add("clean/copies", "2024-03-01", 1, &first).await;
    t.add("clean/copies", "2024-03-02", 1, &first[..3]).await;
    let got = t
        .rows("SELECT dt, count(*) AS n FROM copies__latest GROUP BY dt ORDER BY dt")
        .await;
    assert_eq!(
        got,
        json!([{"dt": "2024-03-01", "n": 1}, {"dt": "2024-03-02", "n": 3}])
    );
}

#[tokio::test]
async fn names_of_views_are_told_apart_from_datasets() {
    let (mut t, _) = shop().await;
    let shown = t
        .rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'clean' ORDER BY 1")
        .await;
    assert_eq!(
        shown,
        json!([{"table_name": "shop"}, {"table_name": "shop__latest"}])
    );
    let columns = t.rows("DESCRIBE clean.shop__latest").await;
    let of_rows = t.rows("DESCRIBE clean.shop").await;
    assert_eq!(columns, of_rows);
    t.publish("clean/other", 1, vec![field(1, "a", "int")])
        .await;
    t.add("clean/other", "2024-03-01", 1, &[json!({"a": 1})])
        .await;
    let e = t.try_rows("SELECT * FROM other__latest").await.unwrap_err();
    assert!(e.message().contains("`clean/other` declares no key"), "{e}");
    assert!(
        e.hints()
            .iter()
            .any(|h| h.contains("sources/other/source.toml")),
        "{e}"
    );
    let e = t
        .try_rows("SELECT * FROM nowhere__latest")
        .await
        .unwrap_err();
    assert_eq!(e.kind(), lakebed::ErrorKind::NotFound, "{e}");
    // A dataset of that name is itself.
    t.publish("clean/shop__latest", 1, vec![field(1, "mine", "int")])
        .await;
    t.add("clean/shop__latest", "2024-03-01", 1, &[json!({"mine": 3})])
        .await;
    assert_eq!(
        t.rows("SELECT mine FROM shop__latest").await,
        json!([{"mine": 3}])
    );
}

async fn history(t: &TestLake, key: &[&str], changes_only: bool) -> lakebed::Result<Value> {
    let object = ObjectKey {
        dataset: "clean/shop".parse()?,
        key: key.iter().map(|k| (*k).to_owned()).collect(),
        dt_from: None,
        dt_to: None,
        changes_only,
    };
    let mut out = Vec::new();
    write_json(t.engine().history(&object).await?, &mut out).await?;
    Ok(serde_json::from_slice(&out).unwrap())
}

#[tokio::test]
async fn an_object_has_a_history() {
    let (mut t, _) = shop().await;
    let same = json!({"id": 7, "市": "台北", "price": 1_000_000});
    for dt in ["2024-03-05", "2024-03-06"] {
        t.add("clean/shop", dt, 1, &[same.clone(), same.clone()])
            .await;
    }
    let mut want = Vec::new();
    let files = [
        ("2024-03-01", rows(0)),
        ("2024-03-01", rows(1)[..300].to_vec()),
        ("2024-03-02", rows(2)),
        ("2024-03-02", rows(3)[..50].to_vec()),
    ];
    for (dt, rows) in files {
        let of_object = rows.iter().filter(|r| r["id"] == 7 && r["市"] == "台北");
        want.extend(of_object.map(|r| (dt.to_owned(), r["price"].as_i64().unwrap())));
    }
    let read = |rows: &Value| -> Vec<(String, i64)> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|r| {
            (
                r["dt"].as_str().unwrap().to_owned(),
                r["price"].as_i64().unwrap(),
            )
        })
        .collect()
    };
    let all = read(&history(&t, &["7", "台北"], false).await.unwrap());
    assert_eq!(all[..want.len()], want[..]);
    assert_eq!(all.len(), want.len() + 4);
    let changed = read(&history(&t, &["7", "台北"], true).await.unwrap());
    want.push(("2024-03-05".to_owned(), 1_000_000));
    assert_eq!(changed, want);
    assert_eq!(history(&t, &["7", "高雄"], false).await.unwrap(), json!([]));
    for (key, says) in [
        (vec!["7"], "has 2 columns, 1 value given"),
        (
            vec!["seven", "台北"],
            "`seven` is no value of the key column `id`",
        ),
        (vec!["", "台北"], "`` is no value"),
    ] {
        let e = history(&t, &key, false).await.unwrap_err();
        assert!(e.message().contains(says), "{e}");
    }
}
