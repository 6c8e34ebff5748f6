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
