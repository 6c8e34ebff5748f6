//! Fields whose type changed: one column over all versions, and no file skipped by bounds of another type.

use lakebed::spec::{ChangeKind, FieldSpec};
use serde_json::{Value, json};

use crate::support::{TestLake, field};

fn retyped(id: u32, name: &str, kind: &str, column: &str) -> FieldSpec {
    let mut field = field(id, name, kind);
    field.change = Some(ChangeKind::Retype);
    field.column = Some(column.to_owned());
    field
}

/// Three versions of `clean.goods`: version 2 has `price` as a decimal (a string before), `stock` as an int (a
/// float), `at` as a timestamp (a date), `flag` as an enum (a bool), `code` as a string (an int);
/// version 3 has `code` as a decimal and calls it `number`.
pub(crate) async fn goods(t: &mut TestLake) {
    let first = vec![
        field(1, "sku", "string"),
        field(2, "price", "string"),
        field(3, "stock", "float"),
        field(4, "at", "date"),
        field(5, "flag", "bool"),
        field(6, "code", "int"),
    ];
    let mut flag = retyped(15, "flag", "enum", "flag_enum");
    flag.values = ["maybe", "true"].map(str::to_owned).to_vec();
    let second = vec![
        field(1, "sku", "string"),
        retyped(12, "price", "decimal(10,2)", "price_amount"),
        retyped(13, "stock", "int", "stock_int"),
        retyped(14, "at", "timestamp", "at_time"),
        flag,
        retyped(16, "code", "string", "code_text"),
    ];
    let mut third = second.clone();
    third[5] = retyped(26, "code", "decimal(6,2)", "code_number");
    let mut fourth = third.clone();
    fourth[5].name = "number".to_owned();
    fourth[5].renamed_from = Some("code".to_owned());
    (fourth[5].change, fourth[5].column) = (None, None);
    for (version, fields) in (1..).zip([first, second, third, fourth]) {
        t.publish("clean/goods", version, fields).await;
    }
    let old = [
        json!({"sku": "a", "price": "9", "stock": 9.0, "at": "2024-03-01", "flag": true, "code": 7}),
        json!({"sku": "b", "price": "10.50", "stock": 10.5, "at": "2024-02-29", "flag": false, "code": 123_456}),
        json!({"sku": "c", "price": "100", "stock": -0.0, "code": -5}),
        json!({"sku": "d", "price": "sold out", "stock": 1e300}),
        json!({"sku": "e", "price": "007"}),
        json!({"sku": "f"}),
    ];
    t.add("clean/goods", "2024-03-01", 1, &old).await;
    let new = [
        json!({"sku": "g", "price_amount": "9.99", "stock_int": 100, "at_time": "2024-03-01T08:00:00Z",
               "flag_enum": "maybe", "code_text": "1.5"}),
        json!({"sku": "h", "code_text": "9"}),
        json!({"sku": "i", "code_text": "x-9"}),
    ];
    t.add("clean/goods", "2024-03-02", 2, &new).await;
    let newest = [json!({"sku": "j", "price_amount": "200.00", "code_number": "9.25"})];
    t.add("clean/goods", "2024-03-03", 3, &newest).await;
    t.add(
        "clean/goods",
        "2024-03-04",
        4,
        &[json!({"sku": "k", "number": "0.5"})],
    )
    .await;
}

/// Many rows of the old type, in an order that is not that of the new one: `9` after `10`, `100`
/// before `99`. Files, row groups and pages have narrow bounds as texts and floats.
async fn crowd() -> TestLake {
    let mut t = TestLake::new().await;
    goods(&mut t).await;
    let mut texts: Vec<String> = (0..700).map(|n| n.to_string()).collect();
    texts.extend((0..100).map(|n| format!("{n}.50")));
    texts.extend(["sold out", "007", "", "-3", "-0.25"].map(str::to_owned));
    texts.sort();
    for (day, part) in (1..).zip(texts.chunks(300)) {
        let row = |(n, text): (i64, &String)| {
            let stock = 0.5 * f64::from(i32::try_from(n).unwrap());
            json!({"sku": format!("s{n}"), "price": text, "stock": stock, "code": n - 20, "flag": n % 2 == 0,
                   "at": format!("2024-01-{:02}", 1 + n % 28)})
        };
        let rows: Vec<Value> = (0..).zip(part).map(row).collect();
        t.add("clean/goods", &format!("2024-02-{day:02}"), 1, &rows)
            .await;
    }
    t
}

const FILTERS: &[&str] = &[
    "price = 9",
    "price = 9.5",
    "price > 99.5",
    "price < 0",
    "price BETWEEN 98 AND 101",
    "price IN (7, 100, 200)",
    "price <> 9",
    "price IS NULL",
    "price IS NOT NULL",
    "price__v1 = 'sold out'",
    "price__v1 = '9'",
    "price__v1 IS NOT NULL",
    "price__v1 > '1'",
    "price__v1 LIKE '0%'",
    "stock = 9",
    "stock > 100",
    "stock IS NULL",
    "stock__v1 = 10.5",
    "stock__v1 = 9",
    "stock__v1 > 1e100",
    "stock__v1 IS NULL",
    "at = '2024-01-09'",
    "at > '2024-02-28T12:00:00Z'",
    "at < '2024-01-02T00:00:00Z'",
    "flag = 'true'",
    "flag IS NULL",
    "flag__v1",
    "NOT flag__v1",
    "flag__v1 IS NULL",
    "number = 9",
    "number < 0",
    "number__v1 = 123456",
    "number__v2 = 'x-9'",
    "number__v2 IS NOT NULL",
    "price > number",
    "coalesce(CAST(price AS VARCHAR), price__v1) = '007'",
    "schema_version = 1 AND price = 9",
];

/// Attacks QRY-1, QRY-3 and QRY-4.
#[tokio::test]
async fn bounds_of_an_old_type_skip_no_row_of_the_new_one() {
    let t = crowd().await;
    let mut met = 0;
    for filter in FILTERS {
        for filter in [(*filter).to_owned(), format!("NOT ({filter})")] {
            let ask = |below: &str, inside: &str| {
                format!(
                    "SELECT count(sku || '') FILTER (WHERE {inside}) AS n, min(sku || '') FILTER (WHERE {inside}) AS a, \
                     max(sku || '') FILTER (WHERE {inside}) AS b FROM clean.goods WHERE {below}"
                )
            };
            let pruned = t.rows(&ask(&filter, "TRUE")).await;
            assert_eq!(pruned, t.rows(&ask("TRUE", &filter)).await, "{filter}");
            let counted = t
                .value(&format!("SELECT count(*) FROM clean.goods WHERE {filter}"))
                .await;
            assert_eq!(counted, pruned[0]["n"], "{filter}");
            met += pruned[0]["n"].as_u64().unwrap();
        }
    }
    assert!(met > 5_000, "{met}");
}

/// Attacks QRY-3.
#[tokio::test]
async fn what_the_catalog_knows_of_an_old_type_answers_nothing() {
    let t = crowd().await;
    for column in [
        "price",
        "price__v1",
        "stock",
        "stock__v1",
        "at",
        "flag",
        "flag__v1",
        "number",
        "number__v1",
        "number__v2",
    ] {
        let read = format!("CASE WHEN sku IS NULL THEN NULL ELSE {column} END");
        for of in ["min", "max", "count"] {
            let Ok(known) = t
                .try_rows(&format!("SELECT {of}({column}) AS x FROM clean.goods"))
                .await
            else {
                assert_eq!(column, "flag__v1");
                continue;
            };
            let seen = t
                .rows(&format!("SELECT {of}({read}) AS x FROM clean.goods"))
                .await;
            assert_eq!(known, seen, "{of}({column})");
        }
        let distinct = t
            .value(&format!(
                "SELECT count(*) FROM (SELECT DISTINCT {column} FROM clean.goods)"
            ))
            .await;
        let seen = t
            .value(&format!(
                "SELECT count(*) FROM (SELECT DISTINCT {read} AS x FROM clean.goods)"
            ))
            .await;
        assert_eq!(distinct, seen, "{column}");
    }
}

/// Files of the new type are skipped by their own bounds; those of an old type are all read.
#[tokio::test]
async fn files_of_the_new_type_are_still_skipped() {
    let t = crowd().await;
    for (filter, read) in [
        // Four old files, and the one of version 3 with 200.00.
        ("price = 200", 5),
        ("schema_version > 1 AND price = 200", 1),
        ("schema_version > 1 AND price__v1 IS NOT NULL", 0),
        ("schema_version = 1 AND price__v1 IS NOT NULL", 4),
    ] {
        let result = t
            .query(&format!("SELECT sku FROM clean.goods WHERE {filter}"))
            .await
            .unwrap();
        assert_eq!(result.stats().files_read(), read, "{filter}");
    }
}

/// The filters that `ORDER BY ... LIMIT` makes itself are of the new type as well.
#[tokio::test]
async fn the_first_rows_by_a_retyped_column_are_the_first() {
    let t = crowd().await;
    let top = t
        .rows("SELECT CAST(price AS VARCHAR) AS p FROM clean.goods ORDER BY price DESC NULLS LAST LIMIT 2")
        .await;
    assert_eq!(top, json!([{"p": "699.00"}, {"p": "698.00"}]));
    let low = t
        .rows("SELECT CAST(price AS VARCHAR) AS p FROM clean.goods ORDER BY price ASC NULLS LAST LIMIT 2")
        .await;
    assert_eq!(low, json!([{"p": "-3.00"}, {"p": "-0.25"}]));
}
