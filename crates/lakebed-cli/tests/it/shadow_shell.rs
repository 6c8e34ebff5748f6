//! Other commands of shell stages beside those there are, over the same inputs.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use serde_json::{Value, json};

use crate::lake::{Run, TestLake};

const DAY: &str = "2026-11-30";

/// Reads what came in and writes a report of it below `{out}`.
const SOURCE: &str = r#"class = "log"
[[flow.stage]]
kind = "shell"
name = "report"
command = ["sh", "report.sh", "{date}", "{out}/reports"]
inputs = ["inbox/{date}/*.jsonl"]
outputs = ["reports/{date}/*.jsonl"]
"#;

/// A project whose stage `report` has run once.
fn lake() -> TestLake {
    let lake = TestLake::new();
    lake.run(&["source", "add", "zoo"]).ok();
    let project = lake.project();
    fs::write(project.join("sources/zoo/source.toml"), SOURCE).unwrap();
    for (script, made) in [
        ("report.sh", "cat"),
        ("same.sh", "grep ''"),
        ("other.sh", "sed 's/\"n\":2/\"n\":3/'"),
        ("fails.sh", "echo went wrong >&2; exit 3; cat"),
    ] {
        let text = format!(
            "set -e\nmkdir -p \"$2/$1\"\ncat inbox/$1/*.jsonl | ({made}) > \"$2/$1/all.jsonl\"\necho 熊 > \"$2/$1/names.jsonl\"\n"
        );
        fs::write(project.join(script), text).unwrap();
    }
    for day in ["2026-11-29", DAY] {
        let inbox = project.join("inbox").join(day);
        fs::create_dir_all(&inbox).unwrap();
        fs::write(inbox.join("a.jsonl"), "{\"n\":1}\n{\"n\":2}\n").unwrap();
        lake.run(&["run", "zoo", "--date", day]).ok();
        assert!(project.join("reports").join(day).join("all.jsonl").exists());
    }
    lake
}

fn shadow(lake: &TestLake, (from, to): (&str, &str), dates: &str, more: &[&str]) -> Run {
    assert!(SOURCE.contains(from));
    lake.file("next.toml", SOURCE.replace(from, to));
    let args = [
        "shadow",
        "zoo",
        "shell",
        "--with",
        "next.toml",
        "--date",
        dates,
    ];
    lake.run(&[&args[..], more].concat())
}

fn as_json(lake: &TestLake, script: &str, dates: &str, code: i32) -> Value {
    let run = shadow(lake, ("report.sh", script), dates, &["--format", "json"]);
    run.code(code).json()
}

#[test]
fn commands_are_compared_by_what_they_leave() {
    let lake = lake();
    let project = lake.project();
    let made = fs::read(project.join("reports").join(DAY).join("all.jsonl")).unwrap();
    let answer = as_json(&lake, "same.sh", "2026-11-29..2026-11-30", 0);
    let day = &answer["dates"][1];
    assert_eq!(
        json!([day["stage"], day["verdict"], day["items"]["file"]["agree"]]),
        json!(["shell.report", "AGREE", 2])
    );
    assert_eq!(answer["summary"]["equal_in_a_row"], 2);
    let answer = as_json(&lake, "other.sh", DAY, 1);
    let day = &answer["dates"][0];
    assert_eq!(
        json!([day["verdict"], day["items"]["file"], day["fields"]]),
        json!([
            "DIFF",
            { "agree": 1, "changed": 1, "only_old": 0, "only_new": 0 },
            { "file $[].n": 1 }
        ])
    );
    let kept = project.join("shadow/zoo/shell.report");
    let lines: Vec<String> = fs::read_dir(&kept)
        .unwrap()
        .filter_map(|pair| {
            let file = pair.unwrap().path().join(format!("{DAY}.diff.jsonl"));
            fs::read_to_string(file).ok()
        })
        .collect();
    let told: Value = serde_json::from_str(&lines.concat()).unwrap();
    assert_eq!(
        told,
        json!({
            "kind": "file", "key": "reports/2026-11-30/all.jsonl", "verdict": "changed",
            "differences": [{ "path": "$[1].n", "expected": 2, "found": 3 }]
        })
    );
    // What the flow made is as it was, and nothing is left of the outputs of both.
    let now = fs::read(project.join("reports").join(DAY).join("all.jsonl")).unwrap();
    assert_eq!(made, now);
    assert!(!project.join("shadow/zoo/work").exists());
    lake.run(&["status", "zoo", "--date", DAY]).ok();
    // Nothing is run again until an input is another one.
    fs::remove_file(project.join("same.sh")).unwrap();
    as_json(&lake, "same.sh", DAY, 0);
    fs::write(project.join("inbox").join(DAY).join("b.jsonl"), "{}\n").unwrap();
    let answer = as_json(&lake, "same.sh", DAY, 1);
    let why = answer["missing"][0]["reason"].as_str().unwrap();
    assert!(why.contains("the command of next.toml"), "{why}");
    assert_eq!(answer["summary"]["days"], json!([["2026-11-29", "AGREE"]]));
}

#[test]
fn commands_that_cannot_be_compared_are_refused() {
    let lake = lake();
    for (change, code, said) in [
        (("\"report.sh\"", "\"fails.sh\""), 1, "went wrong"),
        (
            ("report.sh", "report.sh"),
            1,
            "both sets of rules are the same",
        ),
        (
            ("{out}/reports", "reports"),
            2,
            "the command does not say `{out}`",
        ),
        (
            ("reports/{date}/*.jsonl", "clean/zoo"),
            2,
            "not files of the project",
        ),
        (
            ("reports/{date}/*.jsonl", "../x.jsonl"),
            2,
            "names no files of the project",
        ),
        (("\"report\"", "\"other\""), 2, "has no stage `report`"),
        (
            ("\"{out}/reports\"", "\"reports\", \"{out}\""),
            1,
            "wrote files of the project",
        ),
    ] {
        // Other bytes than the flow left.
        fs::write(
            lake.project().join("reports").join(DAY).join("all.jsonl"),
            "as the flow left it",
        )
        .unwrap();
        shadow(&lake, change, DAY, &[]).code(code).says(&[said]);
    }
    shadow(&lake, ("report.sh", "same.sh"), "2026-11-01", &[])
        .code(1)
        .says(&["there is no file `inbox/2026-11-01/*.jsonl`"]);
}
