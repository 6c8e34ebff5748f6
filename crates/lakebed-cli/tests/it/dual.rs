//! A value that changed its type: version 2 reads it beside the old field, and SQL spans both.

use crate::lake::TestLake;

const V1: &str = r#"
[[field]]
id = 1
name = "sku"
type = "string"
required = true

[[field]]
id = 2
name = "price"
type = "string"
"#;

const V2: &str = r#"
base = 1

[[field]]
id = 1
name = "sku"
type = "string"
required = true

[[field]]
id = 2
name = "price"
type = "string"

[[field]]
id = 3
name = "price_amount"
type = "decimal(10,2)"
from = "price"
change = "dual"
"#;

fn lake() -> TestLake {
    let lake = TestLake::new().dataset("clean/shop", V1);
    lake.file(
        "old.jsonl",
        "{\"sku\": \"a\", \"price\": \"1.50\"}\n{\"sku\": \"b\", \"price\": \"sold out\"}\n",
    );
    lake.ingest("clean/shop", &["old.jsonl", "--date", "2026-11-28"])
        .ok();
    lake.schema("clean/shop", 2, V2);
    lake.run(&["schema", "publish", "clean/shop", "2"]).ok();
    lake
}

#[test]
fn both_types_are_stored_and_one_query_reads_both_versions() {
    let lake = lake();
    lake.file(
        "new.jsonl",
        concat!(
            "{\"sku\": \"c\", \"price\": 2.25}\n",
            "{\"sku\": \"d\", \"price\": \"3.10\"}\n",
            "{\"sku\": \"e\", \"price\": \"sold out\"}\n",
            "{\"sku\": \"f\", \"price\": null}\n",
        ),
    );
    let report = lake
        .ingest("clean/shop", &["new.jsonl", "--date", "2026-11-29"])
        .ok()
        .json();
    assert_eq!(report["schema_version"], 2, "{report}");
    assert_eq!(report["rows"], 4);
    assert_eq!(report["rejected"], 0);
    assert_eq!(report["presence"]["price"]["invalid"], 1, "{report}");
    assert_eq!(report["presence"]["price_amount"]["invalid"], 1);
    assert_eq!(report["presence"]["price_amount"]["null"], 1);
    assert_eq!(
        report["drift"].as_array().map_or(0, Vec::len),
        0,
        "{report}"
    );

    let rows = lake
        .sql("SELECT sku, price, CAST(price_amount AS VARCHAR) AS price_amount, schema_version AS v FROM clean.shop ORDER BY sku");
    let told: Vec<String> = rows
        .iter()
        .map(|r| {
            let text = |name: &str| match &r[name] {
                serde_json::Value::String(s) => s.clone(),
                other => other.to_string(),
            };
            ["sku", "price", "price_amount", "v"].map(text).join("|")
        })
        .collect();
    assert_eq!(
        told,
        [
            "a|1.50|null|1",
            "b|sold out|null|1",
            "c|null|2.25|2",
            "d|3.10|3.10|2",
            "e|sold out|null|2",
            "f|null|null|2",
        ]
    );
    let total = "SELECT sum(coalesce(price_amount, TRY_CAST(price AS DECIMAL(10,2)))) AS s \
                 FROM clean.shop";
    assert_eq!(lake.sql_one(total), "6.85");
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM clean.shop WHERE price_amount IS NULL"),
        "4"
    );
    lake.assert_clean();
}

#[test]
fn what_fits_neither_type_stops_the_call_and_is_told_once() {
    let lake = lake();
    lake.file(
        "bad.jsonl",
        "{\"sku\": \"g\", \"price\": 1}\n{\"sku\": \"h\", \"price\": [1]}\n",
    );
    let day = ["--date", "2026-11-29"];
    let before = lake.files();
    let refused = lake
        .run(&["ingest", "clean/shop", "bad.jsonl", day[0], day[1]])
        .code(1);
    refused.says(&["price", "price_amount", "bad.jsonl"]);
    assert_eq!(before, lake.files(), "nothing was written");

    let args = ["bad.jsonl", day[0], day[1], "--on-mismatch", "quarantine"];
    let report = lake.ingest("clean/shop", &args).ok().json();
    assert_eq!(
        (&report["rows"], &report["rejected"]),
        (&1.into(), &1.into())
    );
    let rejects = lake.rejects("clean/shop", "2026-11-29");
    assert_eq!(rejects.len(), 1);
    assert_eq!(rejects[0]["field"], "price");
    assert_eq!(rejects[0]["reasons"].as_array().unwrap().len(), 1);
    lake.assert_clean();
}
