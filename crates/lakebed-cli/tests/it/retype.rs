//! A field of another type: `retype` shows one column over both, `cast_old` keeps the old one.

use serde_json::{Value, json};

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
id = 9
name = "price"
type = "decimal(10,2)"
change = "retype"
column = "price_amount"
required = true
"#;

/// One date of version 1 with three rows, then version 2.
fn lake() -> TestLake {
    let lake = TestLake::new().dataset("clean/shop", V1);
    lake.file(
        "old.jsonl",
        "{\"sku\": \"a\", \"price\": \"1.50\"}\n{\"sku\": \"b\", \"price\": \"sold out\"}\n{\"sku\": \"c\"}\n",
    );
    lake.ingest("clean/shop", &["old.jsonl", "--date", "2026-11-28"])
        .ok();
    lake.schema("clean/shop", 2, V2);
    lake
}

fn published() -> TestLake {
    let lake = lake();
    lake.run(&["schema", "publish", "clean/shop", "2"]).ok();
    lake
}

/// The values of each row, as JSON without its blanks.
fn rows(lake: &TestLake, query: &str) -> Vec<String> {
    let all = lake.sql(query);
    let values = |row: &Value| match row {
        Value::Object(members) => json!(members.values().collect::<Vec<_>>()).to_string(),
        other => other.to_string(),
    };
    all.iter().map(values).collect()
}

#[test]
fn every_command_tells_of_a_retyped_field() {
    let lake = lake();
    let check = lake.run(&["schema", "check", "clean/shop"]).ok().stdout;
    for said in [
        "takes the place of id `2` of type `string`",
        "is in `price__v1`",
    ] {
        assert!(check.contains(said), "{check}");
    }
    lake.run(&["schema", "publish", "clean/shop", "2"]).ok();
    let diff = lake
        .run(&["schema", "diff", "clean/shop", "1", "2"])
        .code(1)
        .stdout;
    assert!(
        diff.contains("~ price: retyped from string (id 2) to decimal(10,2) (id 9)"),
        "{diff}"
    );
    let history = lake
        .run(&["schema", "history", "clean/shop", "price"])
        .ok()
        .stdout;
    for said in [
        "retyped: id 9 took its place, as decimal(10,2)",
        "added as decimal(10,2) in the place of id 2",
    ] {
        assert!(history.contains(said), "{history}");
    }
    let published =
        std::fs::read_to_string(lake.lake().join("_lake/schema/clean/shop/v2.json")).unwrap();
    assert!(published.contains("\"format\": 2"), "{published}");
    let first =
        std::fs::read_to_string(lake.lake().join("_lake/schema/clean/shop/v1.json")).unwrap();
    assert!(first.contains("\"format\": 1"), "{first}");
}

#[test]
fn one_column_shows_both_types_and_the_past_shows_the_old_one() {
    let lake = published();
    lake.file("new.jsonl", "{\"sku\": \"d\", \"price\": 2.25}\n");
    lake.ingest("clean/shop", &["new.jsonl", "--date", "2026-11-29"])
        .ok();
    let all = "SELECT sku, CAST(price AS VARCHAR) AS price, price__v1, schema_version AS v FROM clean.shop ORDER BY sku";
    assert_eq!(
        rows(&lake, all),
        [
            r#"["a","1.50",null,1]"#,
            r#"["b",null,"sold out",1]"#,
            r#"["c",null,null,1]"#,
            r#"["d","2.25",null,2]"#,
        ]
    );
    assert_eq!(
        lake.sql_one("SELECT sum(price) AS s FROM clean.shop WHERE price > 1"),
        "3.75"
    );
    // The versions that were published by then are the columns of the past: one record, version 1.
    let then = lake.sql("SELECT * FROM as_of('clean.shop', 1) WHERE price = 'sold out'");
    assert_eq!(then.len(), 1);
    assert!(
        then[0].get("price__v1").is_none() || then[0]["price__v1"].is_null(),
        "{then:?}"
    );
    lake.assert_clean();
}

#[test]
fn a_required_retyped_field_rejects_what_does_not_fit_from_now_on() {
    let lake = published();
    lake.file(
        "bad.jsonl",
        "{\"sku\": \"e\", \"price\": \"sold out\"}\n{\"sku\": \"f\"}\n{\"sku\": \"g\", \"price\": 1}\n",
    );
    let args = [
        "bad.jsonl",
        "--date",
        "2026-11-29",
        "--on-mismatch",
        "quarantine",
    ];
    let report = lake.ingest("clean/shop", &args).ok().json();
    assert_eq!(
        (&report["rows"], &report["rejected"]),
        (&json!(1), &json!(2))
    );
    // Reports go by the name that people know, not by that of the files.
    assert_eq!(report["presence"]["price"]["invalid"], 2, "{report}");
    assert!(report["presence"].get("price_amount").is_none());
    // An old date can be corrected under the new version: then nothing of it is old.
    lake.file("again.jsonl", "{\"sku\": \"a\", \"price\": \"1.50\"}\n");
    let correct = [
        "correct",
        "clean/shop",
        "again.jsonl",
        "--date",
        "2026-11-28",
    ];
    lake.run(&correct).ok();
    assert_eq!(
        rows(
            &lake,
            "SELECT sku, CAST(price AS VARCHAR) AS p, price__v1 AS r FROM clean.shop ORDER BY sku"
        ),
        [r#"["a","1.50",null]"#, r#"["g","1.00",null]"#]
    );
    lake.assert_clean();
}

#[test]
fn a_retyped_personal_field_shows_no_value_in_reasons_or_footers() {
    let one = V1.replace(
        "name = \"price\"\ntype = \"string\"",
        "name = \"price\"\ntype = \"string\"\nprivacy = \"personal\"",
    );
    let lake = TestLake::new().dataset("clean/shop", &one);
    lake.file("old.jsonl", "{\"sku\": \"a\", \"price\": \"7041776\"}\n");
    lake.ingest("clean/shop", &["old.jsonl", "--date", "2026-11-28"])
        .ok();
    let two = V2.replace("decimal(10,2)", "int").replace(
        "column = \"price_amount\"\nrequired = true",
        "column = \"price_amount\"\nprivacy = \"personal\"",
    );
    lake.schema("clean/shop", 2, &two);
    lake.run(&["schema", "publish", "clean/shop", "2"]).ok();
    lake.file(
        "new.jsonl",
        "{\"sku\": \"b\", \"price\": 8093655}\n{\"sku\": \"c\", \"price\": \"s3cret\"}\n",
    );
    let args = [
        "new.jsonl",
        "--date",
        "2026-11-29",
        "--on-mismatch",
        "quarantine",
    ];
    let run = lake.ingest("clean/shop", &args).ok();
    assert!(
        !run.stdout.contains("s3cret") && !run.stderr.contains("s3cret"),
        "{run:?}"
    );
    assert_eq!(
        rows(
            &lake,
            "SELECT sku, price FROM clean.shop WHERE price IN (7041776, 8093655) ORDER BY sku"
        ),
        [r#"["a",7041776]"#, r#"["b",8093655]"#]
    );
    assert_eq!(
        lake.sql_one("SELECT max(price) AS m FROM clean.shop"),
        "8093655"
    );
    let stats = lake.lake().join("_lake/log/clean/shop");
    for entry in std::fs::read_dir(stats).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        assert!(!text.contains("8093655") && !text.contains("7041776"));
    }
}

#[test]
fn what_has_no_cast_is_refused_with_dual_as_the_way_out() {
    let lake = lake();
    lake.schema("clean/shop", 2, &V2.replace("decimal(10,2)", "bytes"));
    let run = lake.run(&["schema", "publish", "clean/shop", "2"]).code(2);
    run.says(&[
        "field `price`: no value of `string` (id `2`) can be cast to `bytes`",
        "\"dual\"",
    ]);
    lake.schema(
        "clean/shop",
        2,
        &V2.replace("column = \"price_amount\"\n", ""),
    );
    let run = lake.run(&["schema", "publish", "clean/shop", "2"]).code(2);
    run.says(&["needs `column`", "price_decimal"]);
}

const CAST1: &str = r#"
[[field]]
id = 1
name = "price"
type = "int"

[[field]]
id = 2
name = "day"
type = "date"

[[field]]
id = 3
name = "note"
type = "string"

[[field]]
id = 4
name = "seller"
type = "struct"
  [[field.field]]
  id = 5
  name = "stars"
  type = "int"
"#;

/// Version 2 of [`CAST1`]; `lossy` stands in each cast that can have it.
fn cast2(lossy: [&str; 2]) -> String {
    let [number, day] = lossy;
    let cast = |kind: &str, cast: &str| {
        format!("type = \"{kind}\"\nchange = \"cast_old\"\ncast = {{ {cast} }}")
    };
    let money = format!(
        "from = \"decimal(12,2)\", money = {{ symbols = [\"$\"], thousands = \",\" }}{number}"
    );
    let moment = format!("from = \"timestamp\", time_zone = \"Asia/Taipei\"{day}");
    let stars = format!("from = \"float\"{number}");
    let text = CAST1
        .replacen("type = \"int\"", &cast("int", &money), 1)
        .replacen("type = \"date\"", &cast("date", &moment), 1)
        .replacen("type = \"string\"", &cast("string", "from = \"json\""), 1)
        .replace("  type = \"int\"", &cast("int", &stars));
    format!("base = 1\n{text}")
}

const FORMS: [&str; 6] = [
    r#"{"price": 5, "day": "2026-11-30", "note": "as before", "seller": {"stars": 4}}"#,
    r#"{"price": "$1,200.00", "day": "2026-11-29T16:00:00Z", "note": {"b": [1, 2.50]}, "seller": {"stars": 4.0}}"#,
    r#"{"price": null, "note": 7, "seller": null}"#,
    r#"{"price": "1,200.50"}"#,
    r#"{"day": "2026-11-29T16:30:00Z"}"#,
    r#"{"seller": {"stars": 4.5}}"#,
];

#[test]
fn new_forms_are_cast_to_the_old_type_and_a_loss_is_a_mismatch() {
    let lake = TestLake::new().dataset("clean/shop", CAST1);
    lake.schema("clean/shop", 2, &cast2(["", ""]));
    lake.run(&["schema", "publish", "clean/shop", "2"]).ok();
    lake.file("new.jsonl", FORMS.join("\n"));
    let args = [
        "new.jsonl",
        "--date",
        "2026-11-30",
        "--on-mismatch",
        "quarantine",
    ];
    let report = lake.ingest("clean/shop", &args).ok().json();
    assert_eq!(
        (&report["rows"], &report["rejected"]),
        (&json!(3), &json!(3)),
        "{report}"
    );
    let all =
        "SELECT price, day, note, seller['stars'] AS stars FROM clean.shop ORDER BY note DESC";
    assert_eq!(
        rows(&lake, all),
        [
            r#"[1200,"2026-11-30","{\"b\":[1,2.50]}",4]"#,
            r#"[5,"2026-11-30","as before",4]"#,
            r#"[null,null,"7",null]"#,
        ]
    );
    let rejects = lake.rejects("clean/shop", "2026-11-30");
    let why: Vec<&str> = rejects
        .iter()
        .map(|r| r["reasons"][0]["reason"].as_str().unwrap())
        .collect();
    assert_eq!(
        why,
        [
            "`1,200.50` is not an int; it is decimal(12,2) that cannot be cast without loss",
            "`2026-11-29T16:30:00Z` is not a date as declared; it is a timestamp that cannot be cast without loss",
            "`4.5` has a fraction, so it is not an int; it is a 64-bit float that cannot be cast without loss",
        ]
    );
    lake.assert_clean();
}

#[test]
fn a_declared_loss_is_cut_and_what_is_too_large_is_not() {
    let lake = TestLake::new().dataset("clean/shop", CAST1);
    let lossy = [", lossy = \"round\"", ", lossy = \"truncate\""];
    lake.schema("clean/shop", 2, &cast2(lossy));
    lake.run(&["schema", "publish", "clean/shop", "2"]).ok();
    let more = [
        r#"{"price": "-0.50"}"#,
        r#"{"seller": {"stars": 9007199254740993.5}}"#,
        r#"{"price": "$1.005"}"#,
        r#"{"price": "twelve"}"#,
    ];
    lake.file("new.jsonl", [&FORMS[3..], &more].concat().join("\n"));
    let args = [
        "new.jsonl",
        "--date",
        "2026-11-30",
        "--on-mismatch",
        "quarantine",
    ];
    let report = lake.ingest("clean/shop", &args).ok().json();
    assert_eq!(
        (&report["rows"], &report["rejected"]),
        (&json!(4), &json!(3)),
        "{report}"
    );
    let all =
        "SELECT price, day, seller['stars'] AS stars FROM clean.shop ORDER BY price, day, stars";
    assert_eq!(
        rows(&lake, all),
        [
            "[-1,null,null]",
            "[1201,null,null]",
            r#"[null,"2026-11-30",null]"#,
            "[null,null,5]",
        ]
    );
    // What has two fraction digits at most is not silently cut to them first.
    let rejects = lake.rejects("clean/shop", "2026-11-30");
    let text = serde_json::to_string(&rejects).unwrap();
    for said in [
        "`$1.005` is not an int; nor is it decimal(12,2)",
        "`twelve` is not an int",
        "that the type cannot hold",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    lake.assert_clean();
}
