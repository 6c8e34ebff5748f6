//! Pruning changes no answer: each filter is asked once as `WHERE`, which skips files, row groups
//! and pages, and once as the `FILTER` of an aggregate over all rows, which skips nothing.

use serde_json::Value;

use crate::slt::lake;
use crate::support::TestLake;

/// Filters over `clean.weibo`; each alone, negated, and in pairs.
const FILTERS: &[&str] = &[
    "dt = '2024-03-02'",
    "dt <> DATE '2024-03-02'",
    "dt < TIMESTAMP '2024-03-02 12:00:00'",
    "dt >= '2024-03-02T00:00:01'",
    "dt BETWEEN '2024-03-01T12:00:00Z' AND '2024-03-03'",
    "dt < now() - INTERVAL '78 days'",
    "dt >= '2024-03-02' AND dt < '2024-03-04'",
    "dt IN ('2024-03-01', '2024-03-05', '0001-01-01', '9999-12-31')",
    "dt NOT IN ('2024-03-01', '2024-03-05')",
    "dt NOT BETWEEN '2024-03-02' AND '2024-03-03'",
    "dt BETWEEN '2024-03-03' AND '2024-03-01'",
    "dt = NULL",
    "dt IN ('2024-03-01', NULL)",
    "dt NOT IN ('2024-03-01', NULL)",
    "dt IS DISTINCT FROM DATE '2024-03-01'",
    "dt + INTERVAL '1 day' = '2024-03-03'",
    "date_part('day', dt) % 2 = 1",
    "CAST(dt AS VARCHAR) LIKE '%-05'",
    "CAST(dt AS VARCHAR) > '2024-03-02'",
    "'2024-03-03' > dt",
    "schema_version = 1",
    "schema_version <> 2",
    "schema_version IN (1, 3, 99999999999)",
    "schema_version > 1.5",
    "schema_version = '2'",
    "schema_version = -1 OR schema_version = 3",
    "schema_version % 2 = 1",
    "source = 'weibo'",
    "source LIKE '_eib%'",
    "source > 'weibo'",
    "source || 'x' IN ('weibox', 'y')",
    "reads = 7",
    "reads <> 7",
    "reads > 49.5",
    "reads IS NULL",
    "reads NOT IN (7, 10)",
    "reads NOT IN (7, NULL)",
    "reads BETWEEN -5 AND 10",
    "reads % 10 = 0",
    "-reads > 0",
    "price = 12.5",
    "price > 99.99",
    "price < 0.1",
    "price >= '99.99000001'",
    "price IN (5, 100, 0.1234)",
    "price >= 1000.00005",
    "price * 2 > 200",
    "title LIKE '10%'",
    "title LIKE '%e%'",
    "title NOT LIKE '1%'",
    "title ILIKE 'o%'",
    "title > '庚'",
    "title = '癸'",
    "title <> '癸'",
    "starts_with(title, '1')",
    "heat IS NULL",
    "heat = ''",
    "heat > '冷'",
    "gone = '老'",
    "gone IS NOT NULL",
    "gone <> ''",
    "kind = 'live'",
    "kind IS DISTINCT FROM 'news'",
    "kind NOT IN ('news', 'live')",
    "author IS NULL",
    "author['age'] > 18",
    "array_length(標籤) >= 1",
    "prices['twd'] = 1.5",
    "_extra IS NOT NULL",
    "TRUE",
    "FALSE",
    "CAST(NULL AS BOOLEAN)",
    "reads > schema_version * 10",
    "dt > CAST('2024-03-0' || CAST(schema_version AS VARCHAR) AS DATE)",
    "title < kind",
    "coalesce(reads, 0) < 10",
    "CASE WHEN dt = '2024-03-01' THEN reads > 5 ELSE price > 5 END",
    "(dt = '2024-03-01') = (schema_version = 1)",
    "(dt = '2024-03-02') IS NOT TRUE",
];

/// What the filtered rows are; no aggregate here is answered by the catalog.
const SEEN: [&str; 4] = [
    "count(title || '') FILTER (WHERE w)",
    "sum(reads + 0) FILTER (WHERE w)",
    "min(title || '') FILTER (WHERE w)",
    "sum(date_part('day', dt)) FILTER (WHERE w)",
];

async fn ask(t: &TestLake, filter: &str, pruned: bool) -> Value {
    let (inside, below) = match pruned {
        true => ("TRUE", filter),
        false => (filter, "TRUE"),
    };
    let seen: Vec<String> = SEEN
        .iter()
        .enumerate()
        .map(|(i, s)| {
            format!(
                "{} AS s{i}",
                s.replace("WHERE w", &format!("WHERE {inside}"))
            )
        })
        .collect();
    let text = format!("SELECT {} FROM clean.weibo WHERE {below}", seen.join(", "));
    t.rows(&text).await
}

/// The filter has the same rows however it is asked.
async fn compare(t: &TestLake, filter: &str) -> Value {
    let (pruned, whole) = (ask(t, filter, true).await, ask(t, filter, false).await);
    assert_eq!(pruned, whole, "{filter}");
    pruned[0]["s0"].clone()
}

/// The catalog counts them, too, in all and by partition.
async fn compare_counts(t: &TestLake, filter: &str, want: &Value) {
    let counted = t
        .value(&format!("SELECT count(*) FROM clean.weibo WHERE {filter}"))
        .await;
    assert_eq!(counted, *want, "{filter}");
    let by_day = |below: &str, inside: &str| {
        format!(
            "SELECT dt, schema_version, count(*) FILTER (WHERE {inside}) AS n FROM clean.weibo \
             WHERE {below} GROUP BY dt, schema_version HAVING count(*) FILTER (WHERE {inside}) > 0 ORDER BY 1, 2"
        )
    };
    let days = t.rows(&by_day(filter, "TRUE")).await;
    assert_eq!(days, t.rows(&by_day("TRUE", filter)).await, "{filter}");
}

/// Attacks QRY-1 and QRY-3.
#[tokio::test]
async fn a_filter_finds_the_same_rows_with_and_without_pruning() {
    let t = lake().await;
    for filter in FILTERS {
        let rows = compare(&t, filter).await;
        compare_counts(&t, filter, &rows).await;
        compare(&t, &format!("NOT ({filter})")).await;
    }
}

/// Attacks QRY-1.
#[tokio::test]
async fn two_filters_find_the_same_rows_with_and_without_pruning() {
    let t = lake().await;
    // Each with another, far enough away that the kinds of filters are mixed.
    for (i, a) in FILTERS.iter().enumerate() {
        let b = FILTERS[(i * 7 + 19) % FILTERS.len()];
        let pair = match i % 2 {
            0 => format!("({a}) OR ({b})"),
            _ => format!("({a}) AND NOT ({b})"),
        };
        compare(&t, &pair).await;
    }
}

#[tokio::test]
async fn a_list_of_thousands_of_values_is_a_filter_as_any_other() {
    let t = lake().await;
    let days: Vec<String> = (1..9_999)
        .map(|year| format!("'{year:04}-03-02'"))
        .collect();
    let reads: Vec<String> = (0..10_000).map(|n| (n * 10).to_string()).collect();
    for (filter, want) in [
        (format!("dt IN ({})", days.join(", ")), 4),
        (format!("dt NOT IN ({})", days.join(", ")), 8),
        (format!("reads IN ({})", reads.join(", ")), 7),
        (format!("reads NOT IN ({})", reads.join(", ")), 3),
    ] {
        for column in ["count(*)", "count(title || '')"] {
            let text = format!("SELECT {column} FROM clean.weibo WHERE {filter}");
            assert_eq!(t.value(&text).await, Value::from(want), "{}", &filter[..20]);
        }
    }
}
