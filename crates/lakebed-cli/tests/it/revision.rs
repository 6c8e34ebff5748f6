//! Corrections, switches and rollbacks through the command line.

use crate::lake::TestLake;

const V1: &str = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n\n[[field]]\nid = 2\nname = \"价格\"\ntype = \"decimal(12,2)\"\n";
const V2: &str = "base = 1\n\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n\n[[field]]\nid = 2\nname = \"价格\"\ntype = \"decimal(12,2)\"\n\n[[field]]\nid = 3\nname = \"city\"\ntype = \"string\"\n";
const DAY: &str = "2026-11-29";

fn lake() -> TestLake {
    let lake = TestLake::new().dataset("clean/a", V1);
    lake.file(
        "a.jsonl",
        "{\"k\": 1, \"价格\": \"10.50\"}\n{\"k\": 2, \"价格\": \"20\"}\n",
    );
    lake.file("right.jsonl", "{\"k\": 1, \"价格\": \"11.50\"}\n");
    lake.file("late.jsonl", "{\"k\": 3}\n");
    lake.file(
        "city.jsonl",
        "{\"k\": 1, \"价格\": \"11.50\", \"city\": \"臺北\"}\n{\"k\": 7}\n",
    );
    lake.ingest("clean/a", &["a.jsonl", "--date", DAY]).ok();
    lake
}

fn correct(lake: &TestLake, args: &[&str]) -> crate::lake::Run {
    let mut all = vec!["correct", "clean/a"];
    all.extend(args);
    all.extend(["--date", DAY, "--format", "json"]);
    lake.run(&all)
}

fn switch(lake: &TestLake, args: &[&str]) -> crate::lake::Run {
    let mut all = vec![args[0], "clean/a", "--date", DAY, "--format", "json"];
    all.extend(&args[1..]);
    lake.run(&all)
}

fn sum(lake: &TestLake) -> String {
    lake.sql_one("SELECT sum(\"价格\") AS total FROM clean.a")
}

#[test]
fn a_correction_is_told_and_taken_back() {
    let lake = lake();
    let report = correct(&lake, &["right.jsonl", "--note", "price of 1 was wrong"])
        .ok()
        .json();
    assert_eq!(report["outcome"], "committed");
    assert_eq!(report["revision"], 1);
    assert_eq!(report["replaced"]["revision"], 0);
    assert_eq!(report["replaced"]["rows"], 2);
    assert_eq!(report["replaced"]["inputs"][0], "a.jsonl");
    assert_eq!(sum(&lake), "11.5");
    let back = switch(&lake, &["rollback"]).ok().json();
    assert_eq!(
        (&back["outcome"], &back["revision"], &back["from"]),
        (&"done".into(), &0.into(), &1.into())
    );
    assert_eq!(sum(&lake), "30.5");
    switch(&lake, &["rollback"])
        .code(1)
        .says(&["replaced nothing"]);
    let again = switch(&lake, &["switch", "--revision", "0"]).ok().json();
    assert_eq!(again["outcome"], "already_so");
    let text = lake
        .run(&["correct", "clean/a", "late.jsonl", "--date", DAY])
        .ok();
    insta::assert_snapshot!("correct_text", text.snapshot());
    let text = lake.run(&["partitions", "clean/a", "--all"]).ok();
    insta::assert_snapshot!("partitions_all", text.snapshot());
    let log = lake
        .run(&["log", "clean/a", "--format", "json"])
        .ok()
        .json();
    assert_eq!(log["commits"][1]["operation"], "correct");
    assert_eq!(log["commits"][1]["by"]["note"], "price of 1 was wrong");
    lake.assert_clean();
}

/// A newer schema version and new data alone are one thing: the whole date is replaced.
#[test]
fn a_correction_may_bring_a_newer_schema_version() {
    let lake = lake();
    lake.schema("clean/a", 2, V2);
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    lake.ingest("clean/a", &["late.jsonl", "--date", DAY]).ok();
    let report = correct(&lake, &["city.jsonl"]).ok().json();
    assert_eq!(report["schema_version"], 2);
    assert_eq!(
        report["replaced"]["schema_versions"],
        serde_json::json!([1, 2])
    );
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM clean.a WHERE schema_version = 1"),
        "0"
    );
    assert_eq!(lake.data_files().len(), 1, "{:?}", lake.data_files());
    // The same bytes under another version were refused before; a correction takes them.
    let old = correct(&lake, &["a.jsonl", "--schema-version", "1"])
        .ok()
        .json();
    assert_eq!(
        (&old["revision"], &old["schema_version"]),
        (&2.into(), &1.into())
    );
    assert_eq!(sum(&lake), "30.5");
    switch(&lake, &["rollback"]).ok();
    assert_eq!(lake.sql_one("SELECT max(city) AS c FROM clean.a"), "臺北");
    switch(&lake, &["switch", "--revision", "0"]).ok();
    assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.a"), "3");
    lake.assert_clean();
}

#[test]
fn a_correction_that_does_not_fit_changes_nothing() {
    let lake = lake();
    lake.file("bad.jsonl", "{\"k\": \"one\"}\n");
    let before = lake.files();
    correct(&lake, &["bad.jsonl"]).code(1);
    correct(&lake, &["absent.jsonl"]).code(2);
    assert_eq!(before, lake.files());
    lake.run(&["correct", "clean/a", "right.jsonl", "--date", "2026-11-01"])
        .code(1)
        .says(&["nothing of 2026-11-01", "lakebed ingest"]);
    lake.run(&[
        "correct",
        "clean/a",
        "right.jsonl",
        "--date",
        DAY,
        "--keep",
        "--complete",
    ])
    .code(2);
    // An empty date is an answer, where it is meant.
    lake.file("empty.jsonl", "");
    correct(&lake, &["empty.jsonl"]).code(4);
    let report = correct(&lake, &["empty.jsonl", "--allow-empty"])
        .ok()
        .json();
    assert_eq!(
        (&report["rows"], &report["revision"]),
        (&0.into(), &1.into())
    );
    assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.a"), "0");
    lake.assert_clean();
}

#[test]
fn rows_added_since_are_named_before_they_are_hidden() {
    let lake = lake();
    correct(&lake, &["right.jsonl"]).ok();
    lake.ingest("clean/a", &["late.jsonl", "--date", DAY]).ok();
    switch(&lake, &["rollback"])
        .code(1)
        .says(&["late.jsonl", "--drop-late"]);
    assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.a"), "2");
    switch(&lake, &["rollback", "--drop-late"]).ok();
    assert_eq!(sum(&lake), "30.5");
    lake.assert_clean();
}

/// Rejects of a replaced revision are no longer a matter of the date.
#[test]
fn rejects_follow_the_revision_that_readers_see() {
    let lake = lake();
    lake.file("half.jsonl", "{\"k\": 4}\n{\"k\": \"four\"}\n");
    correct(&lake, &["half.jsonl", "--on-mismatch", "quarantine"]).ok();
    assert_eq!(lake.rejects("clean/a", DAY).len(), 1);
    correct(&lake, &["right.jsonl"]).ok();
    assert_eq!(lake.rejects("clean/a", DAY).len(), 0);
    switch(&lake, &["rollback"]).ok();
    assert_eq!(lake.rejects("clean/a", DAY).len(), 1);
    lake.assert_clean();
}

#[test]
fn two_points_of_the_past_are_compared() {
    let lake = lake();
    correct(&lake, &["right.jsonl"]).ok();
    let diff = lake
        .run(&["log", "clean/a", "--diff", "1..", "--format", "json"])
        .ok()
        .json();
    assert_eq!((&diff["from"], &diff["to"]), (&1.into(), &3.into()));
    let date = &diff["dates"][0];
    assert_eq!(date["dt"], DAY);
    assert_eq!(
        (&date["before"]["rows"], &date["after"]["rows"]),
        (&2.into(), &1.into())
    );
    assert_eq!(
        (&date["before"]["revision"], &date["after"]["revision"]),
        (&0.into(), &1.into())
    );
    assert_eq!(
        (&date["files_gone"], &date["files_new"]),
        (&1.into(), &1.into())
    );
    let nothing = lake
        .run(&["log", "clean/a", "--diff", "2..3", "--format", "json"])
        .ok()
        .json();
    assert_eq!(nothing["dates"], serde_json::json!([]));
    let first = lake
        .run(&[
            "log",
            "clean/a",
            "--diff",
            "0..1999-01-01T00:00:00Z",
            "--format",
            "json",
        ])
        .ok()
        .json();
    assert_eq!(
        (&first["to"], &first["dates"]),
        (&0.into(), &serde_json::json!([]))
    );
    lake.run(&["log", "clean/a", "--diff", "1..99"])
        .code(2)
        .says(&["no record 99", "lakebed log"]);
    for wrong in ["1", "x..2", "1..yesterday"] {
        lake.run(&["log", "clean/a", "--diff", wrong]).code(2);
    }
    let text = lake.run(&["log", "clean/a", "--diff", "0.."]).ok();
    insta::assert_snapshot!("log_diff", text.snapshot());
}

/// Readers of the past see what readers saw then, whatever was corrected since.
#[test]
fn a_query_asks_the_past() {
    let lake = lake();
    correct(&lake, &["right.jsonl"]).ok();
    lake.schema("clean/a", 2, V2);
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    correct(&lake, &["city.jsonl"]).ok();
    let count = |point: &str| {
        lake.sql_one(&format!(
            "SELECT count(k) AS n FROM as_of('clean.a', {point})"
        ))
    };
    // 1 the first rows, 2 and 3 the first correction, 4 and 5 the second.
    let found: Vec<String> = ["0", "1", "2", "3", "5"].map(count).to_vec();
    assert_eq!(found, ["0", "2", "1", "1", "2"]);
    assert_eq!(count("'1999-12-31T00:00:00Z'"), "0");
    assert_eq!(count("'2999-12-31T00:00:00Z'"), "2");
    let then_and_now = "SELECT count(*) AS n FROM as_of('clean.a', 1) old JOIN clean.a new \
                        ON old.k = new.k WHERE old.\"价格\" <> new.\"价格\"";
    assert_eq!(lake.sql_one(then_and_now), "1");
    // The columns are those of then, and the alias is the dataset's name.
    assert_eq!(
        lake.sql("SELECT a.* FROM as_of('clean.a', 1) WHERE a.k = 1")
            .len(),
        1
    );
    lake.run(&["sql", "SELECT city FROM as_of('clean.a', 1)"])
        .code(2);
    lake.run(&["sql", "SELECT city FROM as_of('clean.a', 5)"])
        .ok();
    for (query, says) in [
        ("SELECT * FROM as_of('clean.a', 99)", "no record 99"),
        (
            "SELECT * FROM as_of('clean.a', 'soon')",
            "neither a record number nor an instant",
        ),
        (
            "SELECT * FROM as_of('clean.a')",
            "takes a dataset and a point in time",
        ),
        ("SELECT * FROM as_of('clean.b', 1)", "clean.b"),
    ] {
        lake.run(&["sql", query]).code(2).says(&[says]);
    }
    // Where the catalog is lost, the past is still there.
    std::fs::remove_file(lake.project().join("catalog.db")).unwrap();
    assert_eq!(count("1"), "2");
    lake.assert_clean();
}
