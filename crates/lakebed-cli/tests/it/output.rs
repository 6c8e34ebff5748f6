//! Output discipline: stdout is data, exit codes are as documented, errors have two forms.

use std::io::Read;

use serde_json::{Value, json};

use crate::lake::TestLake;

const FIELDS: &str = "[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n\n[[field]]\nid = 2\nname = \"词\"\ntype = \"string\"\n";

fn filled() -> TestLake {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file(
        "a.jsonl",
        "{\"k\": 1, \"词\": \"颱風\"}\n{\"k\": 2, \"词\": \"rain\"}\n",
    );
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"])
        .ok();
    lake
}

#[test]
fn usage_errors_exit_2_and_leave_stdout_empty() {
    let lake = TestLake::without_project();
    for args in [
        vec!["ingest"],
        vec!["nonsense"],
        vec!["sql", "--format", "xml", "SELECT 1"],
        vec!["seal", "clean/a"],
        vec![],
    ] {
        let run = lake.call(&args).bare().run().code(2);
        assert!(run.stdout.is_empty(), "{run}");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn help_and_version_are_data() {
    let lake = TestLake::without_project();
    let help = lake.run(&["--help"]).ok();
    assert!(help.stdout.contains("Exit codes:"), "{help}");
    assert!(help.stderr.is_empty());
    let version = lake.run(&["--version"]).ok();
    assert!(version.stdout.starts_with("lakebed "), "{version}");
    lake.run(&["schema", "publish", "--help"]).ok();
}

#[test]
fn errors_are_text_and_with_json_an_object_besides() {
    let lake = TestLake::new();
    let text = lake
        .run(&["seal", "clean/nothing", "--date", "2026-11-30"])
        .code(2);
    insta::assert_snapshot!("error_text", text.snapshot());
    let json = lake
        .run(&[
            "seal",
            "clean/nothing",
            "--date",
            "2026-11-30",
            "--format",
            "json",
        ])
        .code(2);
    assert!(json.stderr.starts_with("error: "), "{json}");
    assert_eq!(json.error()["kind"], "not_found");
    assert_eq!(json.error()["exit_code"], 2);
    let usage = lake.call(&["seal", "--format", "json"]).run().code(2);
    assert_eq!(usage.error()["kind"], "invalid_input");
}

/// Attacks OUT-2.
#[test]
fn every_log_line_has_its_time_and_quiet_silences_all_but_errors() {
    let lake = TestLake::without_project();
    let run = lake
        .run(&["init", lake.path_text("project").as_str(), "-v"])
        .ok();
    let logs: Vec<&str> = run
        .stderr
        .lines()
        .filter(|l| !l.starts_with("hint: "))
        .collect();
    assert!(!logs.is_empty());
    for line in logs {
        let time = line.split(' ').next().unwrap();
        assert_eq!(time.len(), "2026-11-30T00:00:00.000000Z".len(), "{line}");
        assert!(time.ends_with('Z'), "{line}");
    }
    let quiet = lake
        .run(&["init", lake.path_text("project").as_str(), "--quiet"])
        .ok();
    assert!(quiet.stderr.is_empty(), "{quiet}");
    let error = lake.run(&["log", "clean/none", "--quiet"]).code(2);
    assert!(error.stderr.starts_with("error: "), "{error}");
}

#[test]
fn what_a_query_cost_goes_to_stderr_line_by_line() {
    let lake = filled();
    let names_and_values = |args: &[&str]| -> Vec<(String, f64)> {
        let run = lake.run(args).ok();
        let pairs = run.stderr.lines().map(|line| {
            let (name, value) = line.split_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        });
        pairs.collect()
    };
    let query = "SELECT k, 词 FROM clean.a WHERE k = 2";
    let json = lake
        .run(&["sql", query, "--format", "json", "--stats", "--quiet"])
        .ok();
    assert_eq!(json.json(), serde_json::json!([{"k": 2, "词": "rain"}]));
    let cost = names_and_values(&["sql", query, "--format", "csv", "--stats", "--quiet"]);
    let names: Vec<&str> = cost.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "planning_ms",
            "execution_ms",
            "files_considered",
            "files_read",
            "rows",
            "bytes_read"
        ]
    );
    let value = |name: &str| cost.iter().find(|(n, _)| n == name).unwrap().1;
    assert!(value("planning_ms") > 0.0 && value("execution_ms") > 0.0);
    assert_eq!((value("files_considered"), value("files_read")), (1.0, 1.0));
    assert_eq!(value("rows"), 1.0);
    assert!(value("bytes_read") > 0.0);
    // What the catalog answers reads no file.
    let counted = names_and_values(&["sql", "SELECT COUNT(*) FROM clean.a", "--stats", "--quiet"]);
    let values: Vec<f64> = counted[2..].iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [1.0, 0.0, 1.0, 0.0]);
    let without = lake.run(&["sql", query, "--quiet"]).ok();
    assert!(without.stderr.is_empty(), "{without}");
}

#[test]
fn the_project_may_be_named_before_or_after_the_command_or_found_upward() {
    let lake = filled();
    let project = lake.project().to_str().unwrap().to_owned();
    let one = |args: &[&str]| lake.call(args).bare().run().ok().stdout;
    let before = one(&["--project", &project, "log", "clean/a"]);
    assert_eq!(before, one(&["log", "clean/a", "--project", &project]));
    let by_env = lake
        .call(&["log", "clean/a"])
        .bare()
        .env("LAKEBED_PROJECT", &project)
        .run();
    assert_eq!(before, by_env.ok().stdout);
    let mut inside = lake.call(&["log", "clean/a"]).bare().command();
    let output = inside
        .current_dir(lake.project().join("sources"))
        .output()
        .unwrap();
    assert_eq!(before, String::from_utf8(output.stdout).unwrap());
    lake.call(&["log", "clean/a"])
        .bare()
        .run()
        .code(2)
        .says(&["there is no project in"]);
}

/// Attacks OUT-1: the pipe is closed while most rows are still to come.
#[test]
fn a_reader_that_goes_away_is_success() {
    let lake = filled();
    let many: String = (0..200_000).map(|k| format!("{{\"k\": {k}}}\n")).collect();
    lake.file("many.jsonl", many);
    lake.ingest("clean/a", &["many.jsonl", "--date", "2026-11-30"])
        .ok();
    let query = "SELECT * FROM clean.a";
    for args in [
        ["sql", query, "--format", "csv"],
        ["sql", query, "--format", "json"],
        ["sql", query, "--format", "table"],
    ] {
        let mut child = lake.call(&args).command().spawn().unwrap();
        let mut first = [0_u8; 1];
        let mut pipe = child.stdout.take().unwrap();
        pipe.read_exact(&mut first).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
    }
}

#[test]
fn tables_align_wide_characters() {
    let run = filled()
        .run(&["sql", "SELECT k, \"词\" FROM clean.a ORDER BY k"])
        .ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines.iter().any(|l| l.contains("颱風")), "{run}");
    assert!(run.stderr.is_empty(), "{run}");
}

#[test]
fn every_listing_is_a_versioned_json_object() {
    let lake = filled();
    for args in [
        vec!["config", "show"],
        vec!["source", "list"],
        vec!["source", "show", "a"],
        vec!["schema", "list"],
        vec!["schema", "show", "clean/a"],
        vec!["schema", "history", "clean/a", "k"],
        vec!["schema", "check"],
        vec!["log", "clean/a"],
        vec!["rejects", "clean/a", "--date", "2026-11-30"],
        vec!["partitions"],
        vec!["catalog", "status"],
        vec!["catalog", "sync"],
        vec!["catalog", "rebuild"],
        vec!["audit"],
        vec!["seal", "clean/a", "--date", "2026-11-30"],
        vec!["reopen", "clean/a", "--date", "2026-11-30"],
    ] {
        let mut all = args.clone();
        all.extend(["--format", "json"]);
        let value = lake.run(&all).ok().json();
        assert_eq!(value["format"], Value::from(1), "{args:?}: {value}");
    }
}

#[test]
fn a_query_goes_to_a_file_whole_or_not_at_all() {
    let lake = filled();
    let out = lake.path_text("out.csv");
    let run = lake
        .run(&[
            "sql",
            "SELECT k FROM clean.a ORDER BY k",
            "--format",
            "csv",
            "--output",
            &out,
        ])
        .ok();
    assert!(run.stdout.is_empty(), "{run}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "k\r\n1\r\n2\r\n");
    lake.run(&["sql", "SELECT nonsense FROM clean.a", "--output", &out])
        .code(2);
    let failing = "SELECT 1 / (k - 2) FROM clean.a";
    let failed = lake.run(&["sql", failing, "--format", "csv", "--output", &out]);
    assert_ne!(failed.status.code(), Some(0), "{failed}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "k\r\n1\r\n2\r\n");
    let parquet = lake.path_text("out.parquet");
    lake.run(&[
        "sql",
        "SELECT k FROM clean.a",
        "--format",
        "parquet",
        "--output",
        &parquet,
    ])
    .ok();
    assert_eq!(&std::fs::read(&parquet).unwrap()[..4], b"PAR1");
    let left: Vec<_> = std::fs::read_dir(lake.root()).unwrap().collect();
    assert!(left.iter().all(|e| {
        !e.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .ends_with(".tmp")
    }));
}

#[test]
fn a_query_may_come_from_standard_input() {
    let run = filled()
        .call(&["sql", "-", "--format", "csv"])
        .stdin("SELECT 40 + 2 AS n")
        .run()
        .ok();
    assert_eq!(run.stdout, "n\r\n42\r\n");
}

#[test]
fn several_statements_may_come_from_standard_input() {
    let lake = filled();
    let script = "SELECT ';' AS a; -- one;\n;\nSELECT k FROM clean.a ORDER BY k;\nSELECT 3 AS c";
    let run = lake.call(&["sql"]).stdin(script).run().ok();
    assert_eq!(run.stdout, "a\n-\n;\n\nk\n-\n1\n2\n\nc\n-\n3\n");
    let json = lake
        .call(&["sql", "-", "--format", "json"])
        .stdin("SELECT 1 AS a; SELECT 2 AS a;")
        .run()
        .ok();
    let arrays: Vec<Value> = serde_json::Deserializer::from_str(&json.stdout)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(arrays, [json!([{"a": 1}]), json!([{"a": 2}])]);
    let failed = lake
        .call(&["sql", "--format", "csv"])
        .stdin("SELECT 1 AS a; SELECT nonsense; SELECT 2 AS b;")
        .run()
        .code(2);
    assert_eq!(failed.stdout, "a\r\n1\r\n");
}

#[test]
fn one_file_takes_one_statement() {
    let lake = filled();
    let out = lake.path_text("out.csv");
    for args in [
        vec!["sql", "--format", "csv", "--output", &out],
        vec!["sql", "--format", "parquet"],
    ] {
        let run = lake
            .call(&args)
            .stdin("SELECT 1; SELECT 2;")
            .run()
            .code(2)
            .says(&["2 statements do not go into one file"]);
        assert!(run.stdout.is_empty(), "{run}");
    }
    assert!(!std::path::Path::new(&out).exists());
    lake.call(&["sql"]).stdin(" -- nothing\n").run().code(2);
    lake.run(&["sql", "SELECT 1; SELECT 2"])
        .code(2)
        .says(&["more than one statement", "lakebed sql < FILE"]);
}
