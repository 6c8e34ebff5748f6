//! Ingest, replay, completeness, rejects, through the command line.

use crate::lake::TestLake;

const FIELDS: &str = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n\n[[field]]\nid = 2\nname = \"t\"\ntype = \"string\"\n";
const DAY: [&str; 2] = ["--date", "2026-11-30"];

fn lake() -> TestLake {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file("a.jsonl", "{\"k\": 1, \"t\": \"x\"}\n{\"k\": 2}\n");
    lake.file("b.jsonl", "{\"k\": 3}\n");
    lake.file(
        "bad.jsonl",
        "{\"k\": 4}\n{\"k\": \"four\"}\n{\"k\": 5, \"new\": 1}\n",
    );
    lake
}

fn ingest(lake: &TestLake, args: &[&str]) -> crate::lake::Run {
    let mut all = args.to_vec();
    all.extend(DAY);
    lake.ingest("clean/a", &all)
}

fn count(lake: &TestLake) -> String {
    lake.sql_one("SELECT count(*) AS n FROM clean.a")
}

#[test]
fn the_report_tells_what_became_of_the_call() {
    let lake = lake();
    let report = ingest(&lake, &["a.jsonl", "--run", "0900"]).ok().json();
    assert_eq!(report["format"], 1);
    assert_eq!(report["dataset"], "clean/a");
    assert_eq!(report["date"], "2026-11-30");
    assert_eq!(report["outcome"], "committed");
    assert_eq!(report["rows"], 2);
    assert_eq!(report["rejected"], 0);
    assert_eq!(report["schema_version"], 1);
    assert_eq!(report["presence"]["t"]["absent"], 1, "{report}");
    assert_eq!(report["presence"]["t"]["present"], 1, "{report}");
    let path = report["files"][0]["path"].as_str().unwrap();
    assert!(lake.lake().join(path).is_file(), "{path}");
    let text = lake
        .run(&["ingest", "clean/a", "b.jsonl", "--date", "2026-11-30"])
        .ok();
    insta::assert_snapshot!("ingest_text", text.snapshot());
}

#[test]
fn the_same_input_twice_writes_nothing() {
    let lake = lake();
    ingest(&lake, &["a.jsonl"]).ok();
    let before = lake.files();
    let again = ingest(&lake, &["a.jsonl"]).ok().json();
    assert_eq!(again["outcome"], "already_there");
    assert_eq!(again["skipped"][0]["stored_by"], 1);
    assert_eq!(before, lake.files());
    let mixed = ingest(&lake, &["a.jsonl", "b.jsonl"]).ok().json();
    assert_eq!(
        (&mixed["rows"], &mixed["skipped"][0]["name"]),
        (&1.into(), &"a.jsonl".into())
    );
    assert_eq!(count(&lake), "3");
    let labelled = ingest(&lake, &["a.jsonl", "--batch", "0900"]).ok().json();
    assert_eq!(labelled["inputs"][0]["repeat_of"], 1);
    ingest(&lake, &["b.jsonl", "--batch", "0900"]).code(1);
    assert_eq!(count(&lake), "5");
    lake.assert_clean();
}

#[test]
fn a_sealed_date_takes_nothing_without_late() {
    let lake = lake();
    ingest(&lake, &["a.jsonl", "--complete"]).ok();
    let success = "clean/a/dt=2026-11-30/schema_version=1/_SUCCESS";
    assert!(lake.files().contains_key(success));
    let before = lake.files();
    let refused = lake
        .run(&["ingest", "clean/a", "b.jsonl", "--date", "2026-11-30"])
        .code(1);
    insta::assert_snapshot!("sealed", refused.snapshot());
    assert_eq!(before, lake.files());
    let late = ingest(&lake, &["b.jsonl", "--late"]).ok().json();
    assert_eq!(late["complete"], false);
    assert!(!lake.files().contains_key(success));
    lake.run(&["seal", "clean/a", "--date", "2026-11-30"]).ok();
    let again = lake
        .run(&[
            "seal",
            "clean/a",
            "--date",
            "2026-11-30",
            "--format",
            "json",
        ])
        .ok()
        .json();
    assert_eq!(again["outcome"], "already_so");
    assert!(lake.files().contains_key(success));
    lake.run(&["reopen", "clean/a", "--date", "2026-11-30"])
        .ok();
    assert!(!lake.files().contains_key(success));
    lake.run(&["seal", "clean/a", "--date", "2026-11-29"])
        .code(1)
        .says(&["nothing of 2026-11-29"]);
    lake.assert_clean();
}

#[test]
fn drift_is_refused_whole_and_the_next_version_is_offered() {
    let lake = lake();
    let before = lake.files();
    let refused = lake
        .run(&["ingest", "clean/a", "bad.jsonl", "--date", "2026-11-30"])
        .code(1);
    insta::assert_snapshot!("drift", refused.snapshot());
    assert_eq!(before, lake.files(), "nothing was written");
    let offered = lake.project().join("sources/a/schemas/a/v2.proposed.toml");
    let text = std::fs::read_to_string(&offered).unwrap();
    assert!(text.contains("name = \"new\""), "{text}");
    lake.run(&["schema", "check"]).ok();
    let json = ingest(&lake, &["bad.jsonl"]).code(1);
    assert_eq!(json.json()["outcome"], "refused");
    assert_eq!(
        json.error()["details"].as_array().unwrap().len(),
        2,
        "{json}"
    );
    std::fs::rename(&offered, offered.with_file_name("v2.toml")).unwrap();
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    ingest(&lake, &["bad.jsonl"]).code(1);
}

/// A file that is read by the wrong rules is no evidence of how the site has changed.
#[test]
fn a_wrong_delimiter_is_told_alone() {
    let lake = lake();
    lake.file("semicolons.csv", "k;t\n1;x\n2;y\n");
    let refused = ingest(&lake, &["semicolons.csv"]).code(1);
    let error = refused.error();
    let hints = error["hints"].as_array().unwrap();
    assert_eq!(hints.len(), 1, "{refused}");
    assert!(
        hints[0].as_str().unwrap().contains("--delimiter ';'"),
        "{refused}"
    );
    assert!(error["context"]["proposed"].is_null(), "{refused}");
    let schemas = lake.project().join("sources/a/schemas/a");
    assert!(!schemas.join("v2.proposed.toml").exists());
    ingest(&lake, &["semicolons.csv", "--delimiter", ";"]).ok();
    assert_eq!(count(&lake), "2");
}

#[test]
fn rejects_are_kept_shown_and_tried_again() {
    let lake = lake();
    let run = ingest(&lake, &["bad.jsonl", "--on-mismatch", "quarantine"]).ok();
    let report = run.json();
    assert_eq!(
        (&report["rows"], &report["rejected"]),
        (&1.into(), &2.into()),
        "{report}"
    );
    run.says(&["2 of 3 records", "lakebed rejects"]);
    let rejects = lake.rejects("clean/a", "2026-11-30");
    assert_eq!(rejects.len(), 2);
    assert_eq!(
        (&rejects[0]["line"], &rejects[0]["field"]),
        (&2.into(), &"k".into())
    );
    assert_eq!(rejects[1]["path"], "$.new");
    let text = lake
        .run(&["rejects", "clean/a", "--date", "2026-11-30"])
        .ok();
    insta::assert_snapshot!("rejects", text.snapshot());

    let commit = report["commit"].as_str().unwrap();
    let wrong = lake.ingest("clean/a", &["--rejects-of", commit, "--date", "2026-11-29"]);
    wrong.code(2).says(&["2026-11-30"]);
    lake.schema(
        "clean/a",
        2,
        &format!("base = 1\n{FIELDS}\n[[field]]\nid = 3\nname = \"new\"\ntype = \"int\"\n"),
    );
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    let strict = ingest(&lake, &["--rejects-of", commit]).code(1);
    let details = strict.error()["details"][0].to_string();
    assert!(details.contains("first at bad.jsonl line 2"), "{strict}");
    let args = ["--rejects-of", commit, "--on-mismatch", "quarantine"];
    let again = ingest(&lake, &args)
        .ok()
        .says(&["first at bad.jsonl line 2"]);
    assert_eq!(again.json()["calls"][0]["rows"], 1, "{again}");
    assert!(!again.stderr.contains("rejects-of-"), "{again}");
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM clean.a WHERE new = 1"),
        "1"
    );

    // What was stored is no reject any more; what was refused again is one of the new commit.
    let left = lake.rejects("clean/a", "2026-11-30");
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(
        (&left[0]["file"], &left[0]["line"]),
        (&"bad.jsonl".into(), &2.into())
    );
    let second = &again.json()["calls"][0]["commit"];
    assert_eq!(&left[0]["commit"], second);

    let before = lake.files();
    let third = ingest(&lake, &args).ok();
    assert_eq!(
        third.json()["calls"][0]["outcome"],
        "already_there",
        "{third}"
    );
    assert_eq!(third.json()["calls"][0]["skipped"][0]["stored_by"], 2);
    third.says(&["--rejects-of", second.as_str().unwrap()]);
    assert_eq!(before, lake.files());
    lake.assert_clean();
}

/// Attacks REJ-2: when all records of an input are refused, its rejects are the input's own bytes.
#[test]
fn rejects_of_a_wholly_refused_input_are_tried_again_and_again() {
    let lake = lake();
    lake.file(
        "all.jsonl",
        "{\"k\": 1, \"new\": 1}\n{\"k\": 2, \"new\": 2}\n",
    );
    let quarantine = ["--on-mismatch", "quarantine"];
    let first = ingest(&lake, &["all.jsonl", quarantine[0], quarantine[1]]).ok();
    let commit = first.json()["commit"].as_str().unwrap().to_owned();
    let retry = |commit: &str| {
        ingest(
            &lake,
            &["--rejects-of", commit, quarantine[0], quarantine[1]],
        )
        .ok()
        .json()
    };
    let second = retry(&commit);
    assert_eq!(second["calls"][0]["rejected"], 2, "{second}");
    lake.schema(
        "clean/a",
        2,
        &format!("base = 1\n{FIELDS}\n[[field]]\nid = 3\nname = \"new\"\ntype = \"int\"\n"),
    );
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    let third = retry(second["calls"][0]["commit"].as_str().unwrap());
    assert_eq!(third["calls"][0]["rows"], 2, "{third}");
    assert_eq!(count(&lake), "2");
    assert!(lake.rejects("clean/a", "2026-11-30").is_empty());
    assert_eq!(retry(&commit)["calls"][0]["outcome"], "already_there");
    lake.assert_clean();
}

#[test]
fn rejects_of_every_form_are_tried_again_in_one_commit() {
    let lake = TestLake::new().dataset(
        "clean/a",
        &format!("\n[input]\nrecords = \"/data\"\n{FIELDS}"),
    );
    lake.file("a.json", "{\"data\": [\n{\"k\": 1},\n{\"k\": \"x\"}]}");
    lake.file("b.tsv", "k\tt\nx\t1,2\n2\ta\nragged\n");
    lake.file("c.csv", "t;k\n\"a\nb\";y\n\"c\";z\n");
    let quarantine = ["--on-mismatch", "quarantine"];
    let all = |files: &[&str]| -> Vec<String> {
        let run = ingest(&lake, &[files, &quarantine].concat()).ok();
        let rejects = lake.rejects("clean/a", "2026-11-30");
        assert!(run.stderr.contains("into quarantine"), "{run}");
        rejects
            .iter()
            .map(|r| format!("{} {} {}", r["file"], r["line"], r["reason"]))
            .collect()
    };
    all(&["a.json", "b.tsv"]);
    let first = lake.rejects("clean/a", "2026-11-30");
    let commit = first[0]["commit"].as_str().unwrap().to_owned();
    let told = all(&["c.csv", "--delimiter", ";"]);
    let other = lake.rejects("clean/a", "2026-11-30")[3]["commit"].clone();
    let expected = [
        "\"a.json\" 3 \"`x` is not an int\"",
        "\"b.tsv\" 2 \"`x` is not an int\"",
        "\"b.tsv\" 4 ",
        "\"c.csv\" 2 \"`y` is not an int\"",
        "\"c.csv\" 4 \"`z` is not an int\"",
    ];
    for (line, start) in told.iter().zip(expected) {
        assert!(line.starts_with(start), "{told:#?}");
    }
    assert_eq!(told.len(), expected.len());

    // The same faults at the same places, whatever form, delimiter and line breaks there were.
    all(&["--rejects-of", &commit]);
    let mut again = all(&["--rejects-of", other.as_str().unwrap()]);
    let mut told = told;
    told.sort();
    again.sort();
    assert_eq!(again, told);
    let log = lake
        .run(&["log", "clean/a", "--format", "json"])
        .ok()
        .json();
    assert_eq!(
        log["commits"].as_array().unwrap().len(),
        4,
        "one commit a retry"
    );
    assert_eq!(log["commits"][2]["min_reader"], 2);
    assert_eq!(log["commits"][1]["min_reader"], 1);
    lake.assert_clean();
}

#[test]
fn inputs_come_from_globs_and_standard_input() {
    let lake = lake();
    let report = ingest(&lake, &["[ab].jsonl"]).ok().json();
    assert_eq!(report["rows"], 3);
    assert_eq!(report["inputs"].as_array().unwrap().len(), 2);
    let args = [
        "ingest",
        "clean/a",
        "-",
        "--date",
        "2026-11-30",
        "--format",
        "json",
    ];
    let piped = lake.call(&args).stdin("{\"k\": 9}\n").run().ok().json();
    assert_eq!(piped["rows"], 1);
    let again = lake.call(&args).stdin("{\"k\": 9}\n").run().ok().json();
    assert_eq!(again["outcome"], "already_there", "{again}");
    ingest(&lake, &["none-*.jsonl"])
        .code(2)
        .says(&["none-*.jsonl"]);
    ingest(&lake, &["nofile.jsonl"])
        .code(2)
        .says(&["nofile.jsonl"]);
    assert_eq!(count(&lake), "4");
}

#[test]
fn the_log_tells_who_did_what() {
    let lake = lake();
    let args = [
        "ingest",
        "clean/a",
        "a.jsonl",
        "--date",
        "2026-11-30",
        "--user",
        "lin",
        "--run",
        "0900",
    ];
    lake.run(&args).ok();
    lake.run(&[
        "seal",
        "clean/a",
        "--date",
        "2026-11-30",
        "--note",
        "checked by hand",
    ])
    .ok();
    let log = lake
        .run(&["log", "clean/a", "--format", "json"])
        .ok()
        .json();
    let commits = log["commits"].as_array().unwrap();
    assert_eq!(commits[0]["by"]["user"], "lin");
    assert_eq!(commits[0]["by"]["run"], "0900");
    assert_eq!(commits[1]["by"]["note"], "checked by hand");
    assert_eq!(commits[1]["previous"], commits[0]["hash"]);
    let text = lake.run(&["log", "clean/a"]).ok();
    insta::assert_snapshot!("log", text.snapshot());
}

#[test]
fn an_attempt_is_abandoned_once_and_a_committed_one_never() {
    let lake = lake();
    ingest(&lake, &["a.jsonl"]).ok();
    let log = lake
        .run(&["log", "clean/a", "--format", "json"])
        .ok()
        .json();
    let attempt = log["commits"][0]["attempt"].as_str().unwrap();
    lake.run(&["abandon", "clean/a", attempt])
        .code(1)
        .says(&["has committed"]);
    for text in [
        "never-seen",
        "",
        "0006",
        "../../../etc",
        "0006618222E13F0C8C7BBCE0DB055409",
    ] {
        lake.run(&["abandon", "clean/a", text])
            .code(2)
            .says(&["is not an attempt id", "lakebed audit"]);
    }
    let unseen = "000661820000000000000000deadbeef";
    lake.run(&["abandon", "clean/a", unseen])
        .code(2)
        .says(&["was never seen", "--unseen"]);
    let log = || {
        lake.run(&["log", "clean/a", "--format", "json"])
            .ok()
            .json()
    };
    assert_eq!(
        log()["commits"].as_array().unwrap().len(),
        1,
        "nothing was put"
    );
    lake.run(&["abandon", "clean/a", unseen, "--unseen"]).ok();
    ingest(&lake, &["b.jsonl"]).ok();
    let again = lake
        .run(&["abandon", "clean/a", unseen, "--format", "json"])
        .ok()
        .json();
    assert_eq!(again["outcome"], "already_so");
    assert_eq!(
        again["log_position"], 2,
        "the record that abandoned it, not the last one"
    );
    lake.assert_clean();
}

#[test]
fn a_staged_attempt_is_abandoned_under_its_own_dataset() {
    let lake = lake().dataset("clean/b", &FIELDS.replace("\"k\"", "\"kk\""));
    let args = ["ingest", "clean/a", "a.jsonl", "--date", "2026-11-30"];
    let dead = lake
        .call(&args)
        .env("LAKEBED_KILL_POINT", "ingest.before_commit");
    dead.run().killed();
    let found = lake.run(&["audit", "--format", "json"]).code(1).json();
    let subject = found["findings"][0]["subject"].as_str().unwrap();
    let attempt = subject.strip_prefix("attempt ").unwrap();
    lake.run(&["abandon", "clean/b", attempt, "--unseen"])
        .code(2)
        .says(&[
            "is staged for `clean/a`",
            &format!("lakebed abandon clean/a {attempt}"),
        ]);
    lake.run(&["abandon", "clean/a", attempt])
        .ok()
        .says(&["deleted 1 staged file"]);
    lake.assert_clean();
    ingest(&lake, &["a.jsonl"]).ok();
    assert_eq!(count(&lake), "2");
}

#[test]
fn a_deleted_catalog_comes_back_the_same() {
    let lake = lake();
    ingest(&lake, &["a.jsonl"]).ok();
    ingest(&lake, &["b.jsonl", "--complete"]).ok();
    let partitions = lake.run(&["partitions", "--format", "json"]).ok().stdout;
    for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm"] {
        drop(std::fs::remove_file(lake.project().join(name)));
    }
    assert_eq!(
        count(&lake),
        "3",
        "a query lets a new catalog follow by itself"
    );
    assert_eq!(
        partitions,
        lake.run(&["partitions", "--format", "json"]).ok().stdout
    );
    lake.run(&["catalog", "rebuild", "--full"]).ok();
    assert_eq!(
        partitions,
        lake.run(&["partitions", "--format", "json"]).ok().stdout
    );
    lake.run(&["catalog", "status"]).ok();
}

#[test]
fn two_schema_versions_read_as_one_table() {
    let lake = lake();
    ingest(&lake, &["a.jsonl"]).ok();
    lake.schema(
        "clean/a",
        2,
        &format!("base = 1\n{FIELDS}\n[[field]]\nid = 3\nname = \"new\"\ntype = \"int\"\n"),
    );
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    lake.file("c.jsonl", "{\"k\": 7, \"new\": 8}\n");
    ingest(&lake, &["c.jsonl"]).ok();
    let rows = lake.sql("SELECT schema_version AS v, count(*) AS n, count(new) AS new FROM clean.a GROUP BY schema_version ORDER BY v");
    assert_eq!((&rows[0]["n"], &rows[0]["new"]), (&2.into(), &0.into()));
    assert_eq!((&rows[1]["n"], &rows[1]["new"]), (&1.into(), &1.into()));
    // An input keeps the version it was stored under.
    ingest(&lake, &["a.jsonl"]).code(1).says(&["version"]);
}

#[test]
fn nested_values_read_as_json_and_as_text() {
    let fields = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n\n[[field]]\nid = 2\nname = \"s\"\ntype = \"struct\"\n\n  [[field.field]]\n  id = 3\n  name = \"d\"\n  type = \"decimal(5,2)\"\n\n[[field]]\nid = 4\nname = \"m\"\ntype = \"map<string>\"\n";
    let lake = TestLake::new().dataset("clean/n", fields);
    lake.file(
        "n.jsonl",
        "{\"k\": 1, \"s\": {\"d\": 1.50}, \"m\": {\"材\": \"棉\"}}\n{\"k\": 2}\n{\"k\": 3, \"s\": {}}\n",
    );
    lake.ingest("clean/n", &["n.jsonl", "--date", "2026-11-30"])
        .ok();
    let texts =
        lake.sql("SELECT CAST(s AS VARCHAR) AS s, CAST(m AS VARCHAR) AS m FROM clean.n ORDER BY k");
    assert_eq!(texts[0]["s"], "{\"d\":1.50}");
    assert_eq!(texts[0]["m"], "{\"材\":\"棉\"}");
    assert!(texts[1]["s"].is_null());
    assert_eq!(texts[2]["s"], "{\"d\":null}");
    let found = "SELECT k FROM clean.n WHERE CAST(s AS VARCHAR) LIKE '%1.50%'";
    assert_eq!(lake.sql_one(found), "1");
    assert_eq!(
        lake.sql("SELECT m FROM clean.n WHERE k = 1")[0]["m"]["材"],
        "棉"
    );
}
