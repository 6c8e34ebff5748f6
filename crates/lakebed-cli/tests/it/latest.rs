//! The newest row of each key, and one object's history, through the command line.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use crate::lake::TestLake;

const FIELDS: &str = "\n[[field]]\nid = 1\nname = \"id\"\ntype = \"string\"\n\n[[field]]\nid = 2\nname = \"价格\"\ntype = \"decimal(12,2)\"\n";

fn declare(lake: &TestLake, dataset: &str) {
    let file = lake.project().join("sources/a/source.toml");
    let text = format!("class = \"snapshot\"\n[dataset.a]\n{dataset}\n");
    std::fs::write(file, text).unwrap();
}

fn lake() -> TestLake {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    declare(&lake, "key = [\"id\"]");
    let row = |id: &str, price: &str| format!("{{\"id\": \"{id}\", \"价格\": \"{price}\"}}\n");
    lake.file("1.jsonl", &(row("甲", "10") + &row("乙", "20")));
    lake.file("2.jsonl", &(row("甲", "10") + &row("丙", "30")));
    lake.file("3.jsonl", &(row("甲", "12.50") + &row("丁", "40")));
    for (file, date) in [
        ("1", "2026-11-01"),
        ("2", "2026-11-02"),
        ("3", "2026-11-03"),
    ] {
        let file = format!("{file}.jsonl");
        lake.ingest("clean/a", &[&file, "--date", date]).ok();
    }
    lake
}

fn newest(lake: &TestLake) -> Vec<String> {
    let rows = lake
        .sql("SELECT id, CAST(\"价格\" AS VARCHAR) AS p FROM clean.a__latest ORDER BY \"价格\"");
    rows.iter()
        .map(|r| format!("{} {}", r["id"].as_str().unwrap(), r["p"]).replace('"', ""))
        .collect()
}

#[test]
fn corrections_and_full_loads_change_what_is_newest() {
    let lake = lake();
    assert_eq!(
        newest(&lake),
        ["甲 12.50", "乙 20.00", "丙 30.00", "丁 40.00"]
    );
    lake.file("right.jsonl", "{\"id\": \"丁\", \"价格\": \"41\"}\n");
    lake.run(&["correct", "clean/a", "right.jsonl", "--date", "2026-11-03"])
        .ok();
    assert_eq!(
        newest(&lake),
        ["甲 10.00", "乙 20.00", "丙 30.00", "丁 41.00"]
    );
    lake.run(&["rollback", "clean/a", "--date", "2026-11-03"])
        .ok();
    assert_eq!(
        newest(&lake),
        ["甲 12.50", "乙 20.00", "丙 30.00", "丁 40.00"]
    );
    lake.ingest(
        "clean/a",
        &["right.jsonl", "--date", "2026-11-04", "--load", "full"],
    )
    .ok();
    assert_eq!(newest(&lake), ["丁 41.00"]);
    // A correction that is no full load takes the full load out of sight.
    lake.file("again.jsonl", "{\"id\": \"丙\", \"价格\": \"29\"}\n");
    lake.run(&["correct", "clean/a", "again.jsonl", "--date", "2026-11-04"])
        .ok();
    assert_eq!(
        newest(&lake),
        ["甲 12.50", "乙 20.00", "丙 29.00", "丁 40.00"]
    );
}

#[test]
fn an_object_is_followed_over_all_dates() {
    let lake = lake();
    let csv = |args: &[&str]| {
        let mut all = vec!["history", "clean/a", "甲", "--format", "csv"];
        all.extend(args);
        let lines = lake.run(&all).ok().stdout;
        let cells = |line: &str| line.split(',').take(5).collect::<Vec<_>>().join(",");
        lines.lines().map(cells).collect::<Vec<_>>()
    };
    let head = "source,dt,schema_version,id,价格";
    let (first, second, third) = (
        "a,2026-11-01,1,甲,10.00",
        "a,2026-11-02,1,甲,10.00",
        "a,2026-11-03,1,甲,12.50",
    );
    assert_eq!(csv(&[]), [head, first, second, third]);
    assert_eq!(csv(&["--changes"]), [head, first, third]);
    assert_eq!(
        csv(&["--from", "2026-11-02", "--to", "2026-11-02"]),
        [head, second]
    );
    let none = lake.run(&["history", "clean/a", "戊"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        none.stderr.contains("no row of clean/a has the key 戊"),
        "{}",
        none.stderr
    );
    let two = lake.run(&["history", "clean/a", "甲", "乙"]);
    assert_eq!(two.status.code(), Some(2));
}

#[test]
fn a_declaration_that_contradicts_itself_is_refused() {
    let lake = lake();
    for (dataset, says) in [
        (
            "key = [\"id\"]\ndedup = \"rows\"",
            "`dedup` is for a dataset without a `key`",
        ),
        ("newest_by = \"价格\"", "there is no `key`"),
        ("key = [\"id\", \"id\"]", "`id` stands twice in `key`"),
        ("dedup = \"keys\"", "unknown variant `keys`"),
    ] {
        declare(&lake, dataset);
        let run = lake.run(&["sql", "SELECT * FROM a__latest"]);
        assert_eq!(run.status.code(), Some(2), "{dataset}");
        assert!(run.stderr.contains(says), "{dataset}: {}", run.stderr);
        assert!(
            run.stderr.contains("source.toml"),
            "{dataset}: {}",
            run.stderr
        );
    }
}
