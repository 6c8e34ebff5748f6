//! Values through SQL: casts, time zones, exact numbers, CJK.

use serde_json::json;

use crate::support::{START, TestLake, field};

async fn one_of_each() -> TestLake {
    let mut t = TestLake::new().await;
    t.publish(
        "clean/v",
        1,
        vec![
            field(1, "at", "timestamp"),
            field(2, "day", "date"),
            field(3, "price", "decimal(38,10)"),
            field(4, "big", "int"),
            field(5, "文本", "string"),
            field(6, "flag", "bool"),
        ],
    )
    .await;
    let rows = [
        json!({"at": "0001-01-01T00:00:00Z", "day": "0001-01-01", "price": "0.1", "big": i64::MIN, "文本": "甲", "flag": true}),
        json!({"at": "1969-12-31T23:59:59.999999Z", "day": "1969-12-31", "price": "0.2", "big": 0, "文本": "", "flag": false}),
        json!({"at": "2024-05-20T08:00:00.000001+08:00", "day": "2024-05-20", "price": "0.3", "big": 9_007_199_254_740_993_i64, "文本": "👩‍👩‍👧𠮷"}),
        json!({"at": "9999-12-31T23:59:59.999999Z", "day": "9999-12-31", "price": "1234567890123456789012345678.0123456789", "big": i64::MAX}),
    ];
    t.add("clean/v", "2024-05-20", 1, &rows).await;
    t
}

#[tokio::test]
async fn casts_to_text_are_exact_for_all_years() {
    let t = one_of_each().await;
    let rows = t
        .rows("SELECT CAST(at AS VARCHAR) AS a, CAST(\"day\" AS VARCHAR) AS d, CAST(price AS VARCHAR) AS p, CAST(big AS VARCHAR) AS b FROM clean.v ORDER BY at")
        .await;
    let stamps: Vec<&str> = (0..4).map(|i| rows[i]["a"].as_str().unwrap()).collect();
    assert_eq!(
        stamps,
        [
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999999Z",
            "2024-05-20T00:00:00.000001Z",
            "9999-12-31T23:59:59.999999Z"
        ]
    );
    assert_eq!(rows[0]["d"], json!("0001-01-01"));
    assert_eq!(rows[3]["d"], json!("9999-12-31"));
    assert_eq!(
        rows[3]["p"],
        json!("1234567890123456789012345678.0123456789")
    );
    assert_eq!(rows[0]["b"], json!("-9223372036854775808"));
}

#[tokio::test]
async fn literals_compare_exactly() {
    let t = one_of_each().await;
    for (filter, want) in [
        ("price = 0.1", 1),
        ("price = 0.1 + 0.2", 1),
        ("price IN (0.1, 0.2)", 2),
        ("big = 9007199254740993", 1),
        ("big = 9007199254740992", 0),
        ("at = '2024-05-20T00:00:00.000001Z'", 1),
        ("at >= TIMESTAMP '2024-05-20 00:00:00'", 2),
        ("at < '1970-01-01T00:00:00Z'", 2),
        ("\"day\" = '0001-01-01'", 1),
        ("\"day\" = DATE '9999-12-31'", 1),
        ("\"文本\" = '👩‍👩‍👧𠮷'", 1),
        ("文本 = ''", 1),
        ("文本 IS NULL", 1),
        ("character_length(文本) = 6", 1),
        ("flag", 1),
        ("flag IS NULL", 2),
    ] {
        let text = format!("SELECT COUNT(*) FROM clean.v WHERE {filter}");
        assert_eq!(t.value(&text).await, json!(want), "{filter}");
    }
    assert_eq!(
        t.value("SELECT MAX(big) FROM clean.v WHERE big + 0 < 9007199254740999")
            .await,
        json!(9_007_199_254_740_993_i64)
    );
}

#[tokio::test]
async fn today_is_a_day_of_the_lake_and_not_of_utc() {
    // 2024-05-19 20:00 UTC is four in the morning of the next day in Taipei.
    let t = TestLake::at(START - 4 * 3_600_000_000).await;
    assert_eq!(
        t.rows("SELECT current_date AS d, today() AS t, now() AS n")
            .await,
        json!([{"d": "2024-05-20", "t": "2024-05-20", "n": "2024-05-19T20:00:00.000000Z"}])
    );
}

#[tokio::test]
async fn float_columns_compare_with_decimal_and_exponent_literals() {
    let mut t = TestLake::new().await;
    t.publish("clean/f", 1, vec![field(1, "x", "float")]).await;
    let rows = [
        json!({"x": 0.1}),
        json!({"x": 1e-7}),
        json!({"x": 1e20}),
        json!({"x": null}),
    ];
    t.add("clean/f", "2024-01-01", 1, &rows).await;
    for (filter, want) in [
        ("x = 0.1", 1),
        ("x < 1e-3", 1),
        ("x > 1e19", 1),
        ("x > 0.0000001 AND x < 1.5", 1),
        ("x >= 1e-7", 3),
        ("x < CAST('1e300' AS DOUBLE)", 3),
        ("x IN (0.1, 1e20)", 2),
        ("x BETWEEN 1e-8 AND 0.5", 2),
        ("COALESCE(x, 0.0) = 0.0", 1),
        ("CASE WHEN x IS NULL THEN -1.5 ELSE x END < 0.0000002", 2),
        ("power(2, 0.5) < 1.42", 4),
        ("(SELECT MAX(x) FROM clean.f) > 99999.5", 4),
    ] {
        let text = format!("SELECT COUNT(*) FROM clean.f WHERE {filter}");
        assert_eq!(t.value(&text).await, json!(want), "{filter}");
    }
    assert_eq!(
        t.value("SELECT x * 1.5 FROM clean.f WHERE x > 1").await,
        json!(1.5e20)
    );
    let huge = t
        .try_rows("SELECT COUNT(*) FROM clean.f WHERE x < 1e300")
        .await
        .unwrap_err();
    assert!(huge.hints()[0].contains("CAST('1e300' AS DOUBLE)"));
    assert_eq!(t.value("SELECT 0.1 + 0.2").await, json!(0.3));
    assert_eq!(
        t.value(
            "SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM clean.f WHERE x < 1"
        )
        .await,
        json!(0.050_000_05)
    );
}
