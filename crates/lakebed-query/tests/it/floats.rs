//! QRY-4: NaN in files of several row groups and pages, whose bounds do not tell of it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use lakebed::spec::arrow_schema;
use serde_json::json;

use crate::support::{Place, TestLake, field};

/// What row `k` holds: four row groups of 100.
fn value(k: i32) -> f64 {
    match k {
        // Bounds 1 to 1.99.
        7 => f64::NAN,
        42 => -f64::NAN,
        0..100 => 1.0 + f64::from(k) / 100.0,
        // Bounds 10 to 10.
        150 => f64::NAN,
        100..200 => 10.0,
        // No bounds.
        200..300 => f64::NAN,
        // Bounds 7 to 7.
        350 => f64::NAN,
        _ => 7.0,
    }
}

async fn lake() -> TestLake {
    let mut t = TestLake::new().await;
    let fields = vec![field(1, "k", "int"), field(2, "x", "float")];
    t.publish("clean/f", 1, fields.clone()).await;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..400)),
        Arc::new(Float64Array::from_iter_values((0..400).map(value))),
        Arc::new(StringArray::from(vec!["f"; 400])),
        Arc::new(StringArray::from(vec![None::<&str>; 400])),
    ];
    let schema = Arc::new(arrow_schema(&fields));
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    t.add_batch("clean/f", ("2024-01-01", 1), &batch, Place::Final)
        .await;
    t
}

#[tokio::test]
async fn a_row_with_nan_matches_whatever_its_row_group_holds() {
    let t = lake().await;
    let nan = "CAST('NaN' AS DOUBLE)";
    for (filter, want) in [
        ("x > 5".to_owned(), 301),
        ("5 < x".to_owned(), 301),
        ("x >= 1e6".to_owned(), 103),
        ("x > 5 AND k < 100".to_owned(), 1),
        ("x > 5 OR k = 0".to_owned(), 302),
        ("x < 0.5".to_owned(), 1),
        ("x < 5".to_owned(), 99),
        ("x <> 7".to_owned(), 301),
        ("x = 7".to_owned(), 99),
        ("NOT (x <= 5)".to_owned(), 301),
        ("x BETWEEN 6 AND 8".to_owned(), 99),
        ("x NOT BETWEEN 6 AND 8".to_owned(), 301),
        ("x IN (7, 10)".to_owned(), 198),
        ("x NOT IN (7)".to_owned(), 301),
        ("x IS NULL".to_owned(), 0),
        ("isnan(x)".to_owned(), 104),
        (format!("x = {nan}"), 103),
        (format!("x < {nan}"), 297),
        ("CAST(x AS FLOAT) > 5".to_owned(), 301),
    ] {
        let count = format!("SELECT COUNT(*) FROM clean.f WHERE {filter}");
        assert_eq!(t.value(&count).await, json!(want), "{filter}");
        // A limit skips the filter in row groups whose bounds say that all rows match.
        let limited =
            format!("SELECT COUNT(*) FROM (SELECT k, x FROM clean.f WHERE {filter} LIMIT 1000)");
        assert_eq!(t.value(&limited).await, json!(want), "{limited}");
    }
}

#[tokio::test]
async fn nan_comes_first_where_the_largest_are_wanted() {
    let t = lake().await;
    for (text, want) in [
        (
            "SELECT COUNT(*) FROM (SELECT x FROM clean.f ORDER BY x DESC LIMIT 103) WHERE isnan(x)",
            json!(103),
        ),
        ("SELECT k FROM clean.f ORDER BY x ASC, k LIMIT 1", json!(42)),
        ("SELECT MAX(x) FROM clean.f", json!("NaN")),
        ("SELECT MAX(x) FROM clean.f WHERE k <> 1", json!("NaN")),
        (
            "SELECT COUNT(*) FROM clean.f a JOIN (SELECT x FROM clean.f WHERE k = 150) b ON a.x = b.x",
            json!(103),
        ),
    ] {
        assert_eq!(t.value(text).await, want, "{text}");
    }
}

#[tokio::test]
async fn other_columns_still_skip_row_groups() {
    let t = lake().await;
    let plan = t
        .rows("EXPLAIN ANALYZE SELECT x FROM clean.f WHERE k = 5 AND x < 5")
        .await
        .to_string();
    let skipped = "row_groups_pruned_statistics=4 total → 1 matched";
    assert!(plan.contains(skipped), "{plan}");
}
