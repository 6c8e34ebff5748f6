//! The demo: runs whole, tells the truth, leaves foreign folders alone.

use std::fs;
use std::io::{BufRead, BufReader};

use crate::lake::TestLake;

#[test]
fn sixty_days_end_clean_and_may_be_made_anew() {
    let lake = TestLake::without_project();
    let dir = lake.path_text("demo");
    // A demo that was stopped half way leaves a folder that the next one makes anew.
    let mut stopped = lake
        .call(&["demo", "--files", &dir])
        .command()
        .spawn()
        .unwrap();
    let mut told = BufReader::new(stopped.stdout.take().unwrap()).lines();
    let started = told.find(|l| l.as_ref().unwrap().contains("Day 12"));
    assert!(started.is_some(), "the demo ended before day 12");
    stopped.kill().unwrap();
    stopped.wait().unwrap();

    let run = lake.run(&["demo", "--files", &dir]).ok();
    let is_story = |line: &&str| !line.starts_with("Done in");
    let story: Vec<&str> = run.stdout.lines().filter(is_story).collect();
    let story = story
        .join("\n")
        .replace(lake.root().to_str().unwrap(), "[ROOT]");
    insta::assert_snapshot!("demo", story);
    assert!(run.stderr.is_empty(), "{run}");
    let on_demo = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--project", &dir]);
        lake.call(&all).bare().run().ok()
    };
    on_demo(&["audit", "--deep"]);
    on_demo(&["schema", "check"]);
    on_demo(&["schema", "diff", "clean/hot_topics", "3", "3"]);
}

#[test]
fn five_days_are_lived_through_and_leave_a_page() {
    let lake = TestLake::without_project();
    let dir = lake.path_text("live");
    let run = lake.run(&["demo", &dir]).ok();
    // The day of 403, the retry, the redesign, the new rules over the old days, the replay.
    let run = run.prints(&[
        "detail: failed",
        "9 requests to try again",
        "parse: failed",
        "pages were rejected",
        "3 days compared; the newest 3 in a row agree: the switch is safe",
        "parse: done",
        "GET http://127.0.0.1",
    ]);
    assert!(run.stderr.is_empty(), "{run}");
    let page = fs::read_to_string(lake.root().join("live/summary.html")).unwrap();
    for wanted in [
        "澄湖市",
        "<polyline",
        "class=\"stale\"",
        "Another markup: red",
        "<td class=\"n\">130</td>",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    let on_demo = |args: &[&str]| {
        lake.call(&[args, &["--project", &dir]].concat())
            .bare()
            .run()
    };
    on_demo(&["audit", "--deep"]).ok();
    // Every day is whole: only the old rules of the first days are told.
    let status = on_demo(&[
        "status",
        "rentals",
        "--from",
        "2026-11-26",
        "--to",
        "2026-11-30",
        "--format",
        "json",
    ])
    .code(1)
    .json();
    let dates = status["dates"].as_array().unwrap();
    assert_eq!(dates.len(), 5);
    let stages = dates.iter().flat_map(|d| d["stages"].as_array().unwrap());
    for stage in stages {
        let standing = stage["standing"].as_str().unwrap();
        let is_parse = stage["stage"].as_str().unwrap().starts_with("parse");
        let good = ["done", "not_due"].contains(&standing) || (is_parse && standing == "stale");
        assert!(good, "{stage}");
    }
    // A folder that a demo made may be made anew by the other one.
    lake.run(&["demo", "--files", &dir]).ok();
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let lake = TestLake::without_project();
    let dir = lake.root().join("mine");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("lake"), "precious").unwrap();
    lake.run(&["demo", "--files", dir.to_str().unwrap()])
        .code(1)
        .says(&["no demo made"]);
    assert_eq!(fs::read_to_string(dir.join("lake")).unwrap(), "precious");
    let elsewhere = lake.path_text("elsewhere");
    let other = lake
        .call(&["demo", "--files", &lake.path_text("demo")])
        .env("LAKEBED_LAKE", &elsewhere);
    other.run().code(2).says(&["LAKEBED_LAKE"]);
    assert!(!lake.root().join("elsewhere").exists());
}
