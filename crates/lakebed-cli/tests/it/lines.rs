//! Datasets of JSON lines, from the command line to SQL and back.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::lake::TestLake;

const DATASET: &str = "clean/forum.threads";
const TABLE: &str = "clean.forum.threads";
const DAY: &str = "2026-11-29";

fn keep(lake: &TestLake, args: &[&str]) -> crate::lake::Run {
    let mut all = vec!["ingest", DATASET];
    all.extend(args);
    lake.run(&all)
}

/// Two files of one date: 20,000 short records, and ten of a megabyte.
fn filled() -> TestLake {
    let lake = TestLake::new();
    let mut short = String::new();
    for n in 0..20_000 {
        writeln!(
            short,
            "{{\"n\": {n}, \"who\": {{\"nick\": \"網友 {}\"}}}}",
            n % 100
        )
        .unwrap();
    }
    lake.file("short.jsonl", &short);
    let long: Vec<Value> = (0..10)
        .map(|n| json!({"n": 100_000 + n, "body": "長".repeat(350_000)}))
        .collect();
    lake.file("long.json", Value::Array(long).to_string());
    keep(&lake, &["short.jsonl", "--date", DAY, "--as", "jsonl"]).ok();
    keep(&lake, &["long.json", "--date", DAY, "--complete"]).ok();
    lake
}

fn data_files(lake: &TestLake) -> Vec<PathBuf> {
    let folder = lake.lake().join(DATASET).join(format!("dt={DAY}"));
    let folder = folder.join("schema_version=0");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "zst"))
        .collect();
    files.sort();
    files
}

#[test]
fn lines_are_one_column_of_texts() {
    let lake = filled();
    let one = |query: &str| lake.sql(query)[0]["x"].clone();
    assert_eq!(one(&format!("SELECT count(*) AS x FROM {TABLE}")), 20_010);
    let counted = lake.run(&[
        "sql",
        "--stats",
        "--quiet",
        &format!("SELECT count(*) FROM {TABLE}"),
    ]);
    assert!(counted.ok().stderr.contains("files_read 0\n"));
    let sum = "SELECT sum(CAST(json_get(json, '/n') AS BIGINT)) AS x FROM ";
    assert_eq!(one(&format!("{sum}{TABLE}")), 199_990_000 + 1_000_045);
    let nicks = "SELECT count(DISTINCT json_get_text(json, '/who/nick')) AS x FROM ";
    assert_eq!(one(&format!("{nicks}{TABLE}")), 100);
    let long = format!("SELECT max(length(json)) AS x FROM {TABLE} WHERE dt = '{DAY}'");
    assert_eq!(one(&long), 350_000 + "{\"n\":100000,\"body\":\"\"}".len());
    let rows = lake.sql(&format!("SELECT * FROM {TABLE} LIMIT 1"));
    let names: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["source", "dt", "schema_version", "json"]);
    let files = lake.sql(&format!(
        "SELECT DISTINCT _file FROM {TABLE} WHERE json LIKE '{{%'"
    ));
    assert_eq!(files.len(), 2);
    let none = lake.run(&[
        "sql",
        "--stats",
        "--quiet",
        &format!("SELECT json FROM {TABLE} WHERE dt > '2027-01-01'"),
    ]);
    assert!(none.ok().stderr.contains("files_read 0\n"));
    lake.run(&["sql", &format!("SELECT json_get(json, 'n') FROM {TABLE}")])
        .code(2)
        .says(&["is no JSON pointer"]);
    let formats = lake.sql("SELECT DISTINCT file_format AS x FROM lake.partitions");
    assert_eq!(formats, [json!({"x": "jsonl"})]);
    let tables = lake.run(&["sql", "SHOW TABLES"]).ok();
    assert!(tables.stdout.contains("forum.threads"));
    lake.run(&["sql", "SELECT * FROM clean.forum.thread"])
        .code(2)
        .says(&["did you mean `clean.forum.threads`?"]);
    lake.run(&["catalog", "rebuild"]).ok();
    assert_eq!(
        one(&format!(
            "SELECT count(*) AS x FROM {TABLE} WHERE json <> ''"
        )),
        20_010
    );
    lake.run(&["audit", "--deep"]).ok();
}

#[test]
fn the_past_and_corrections_are_read() {
    let lake = filled();
    lake.file(
        "right.jsonl",
        "{\"n\": 1, \"items\": [{\"a\": 1.50}, \"b\", null]}\n",
    );
    let said = lake
        .run(&["correct", DATASET, "right.jsonl", "--date", DAY])
        .ok();
    assert!(said.stdout.contains("revision 1 instead of 0"), "{said}");
    let items = format!("SELECT unnest(json_items(json, '/items')) AS x FROM {TABLE}");
    assert_eq!(
        lake.sql(&items),
        [
            json!({"x": "{\"a\":1.50}"}),
            json!({"x": "\"b\""}),
            json!({"x": "null"})
        ]
    );
    let past =
        format!("SELECT count(*) AS x FROM as_of('{TABLE}', 1) WHERE json LIKE '%網友 7\"%'");
    assert_eq!(lake.sql(&past), [json!({"x": 200})]);
    lake.run(&["rollback", DATASET, "--date", DAY]).ok();
    assert_eq!(
        lake.sql(&format!("SELECT count(json) AS x FROM {TABLE}")),
        [json!({"x": 20_010})]
    );
    lake.run(&["audit", "--deep"]).ok();
}

#[test]
fn one_format_a_dataset() {
    let lake = TestLake::new().dataset(
        "clean/a",
        "[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n",
    );
    lake.file("a.jsonl", "{\"k\": 1}\n");
    lake.run(&[
        "ingest", "clean/a", "a.jsonl", "--date", DAY, "--as", "jsonl",
    ])
    .code(1)
    .says(&["has a published schema", "a dataset of their own"]);
    keep(&lake, &["a.jsonl", "--date", DAY])
        .code(2)
        .says(&["no published schema", "`--as jsonl`"]);
    keep(&lake, &["a.jsonl", "--date", DAY, "--as", "jsonl"]).ok();
    keep(&lake, &["a.jsonl", "--date", DAY, "--as", "parquet"])
        .code(1)
        .says(&["holds `jsonl` files"]);
    lake.schema(
        DATASET,
        1,
        "[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n",
    );
    lake.run(&["schema", "publish", DATASET, "1"])
        .code(1)
        .says(&["holds JSON lines"]);
    let refused = lake
        .run(&["schema", "view", DATASET, "--engine", "spark"])
        .code(2);
    refused.says(&["no view of JSON lines for Spark"]);
    let view = lake
        .run(&[
            "schema", "view", DATASET, "--engine", "duckdb", "--name", "t",
        ])
        .ok();
    assert!(view.stdout.contains("read_ndjson_objects("), "{view}");
}

#[test]
fn a_damaged_file_is_named() {
    let lake = filled();
    let files = data_files(&lake);
    assert_eq!(files.len(), 2);
    let query = format!("SELECT max(json) FROM {TABLE}");
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let mut flipped = whole.clone();
        let middle = whole.len() / 2;
        flipped[middle] ^= 0x40;
        let mut zeros = whole.clone();
        zeros[middle..].fill(0);
        for damage in [&flipped, &zeros, &whole[..middle].to_vec(), &Vec::new()] {
            std::fs::write(&file, damage).unwrap();
            lake.run(&["sql", &query]).code(4).says(&[&name]);
        }
        lake.run(&["audit", "--deep"]).code(1).says(&[]);
        std::fs::write(&file, whole).unwrap();
    }
    lake.run(&["sql", &query]).ok();
    lake.run(&["audit", "--deep"]).ok();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

/// A lake of version 1 of the format: it is never written anew.
#[test]
fn version_1_is_read_as_it_was_written() {
    let lake = TestLake::new();
    std::fs::remove_dir_all(lake.lake()).unwrap();
    for entry in std::fs::read_dir(lake.project()).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains("catalog.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/jsonl/v1");
    copy(&fixture, &lake.lake());
    let rows = lake.sql(&format!("SELECT dt, json FROM {TABLE} ORDER BY dt, json"));
    let first = r#"{"id":12345678901234567890.50,"tree":[{"c":"湖\u0041\ufffd","k":[1.0,1e3]}]}"#;
    assert_eq!(
        rows,
        [
            json!({"dt": DAY, "json": first}),
            json!({"dt": DAY, "json": "{\"n\":2}"}),
            json!({"dt": "2026-11-30", "json": "{\"n\":5}"}),
        ]
    );
    let past = lake.sql(&format!("SELECT count(json) AS n FROM as_of('{TABLE}', 2)"));
    assert_eq!(past, [json!({"n": 4})]);
    lake.run(&["audit", "--deep"]).ok();
}
