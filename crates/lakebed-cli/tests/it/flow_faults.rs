//! Flows where something is broken: that stage alone is red, and says what to do.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::flow::{DAY, SOURCE, lake_of, outcome, standings, wait_for, write};
use crate::fold;

const LONE: &str = "class = \"log\"\n[[flow.stage]]\nkind = \"shell\"\ncommand = [\"true\"]\n";

fn shell(rest: &str) -> String {
    format!("class = \"log\"\n[[flow.stage]]\nkind = \"shell\"\nname = \"s\"\n{rest}\n")
}

/// Attacks FLW-5.
#[test]
fn a_damaged_stamp_is_made_anew_and_blinds_nobody() {
    let lake = lake_of(SOURCE);
    fs::create_dir_all(lake.project().join("sources/zoo")).unwrap();
    write(&lake, "sources/zoo/source.toml", LONE);
    lake.run(&["run", "--date", DAY]).ok();
    let stamps = lake.lake().join("flow/rent").join(DAY);
    let seal = stamps.join("_day/seal.rent.done");
    let derive = stamps.join("_day/derive.cities.done");
    let (whole, other) = (fs::read(&seal).unwrap(), fs::read(&derive).unwrap());
    for broken in [&whole[..whole.len() / 2], &[], &other[..]] {
        fs::write(&seal, broken).unwrap();
        let (is, why) = standings(&lake)["seal.rent"].clone();
        assert_eq!(is, "missing");
        assert!(why.contains("delete `flow/rent/"), "{why}");
        lake.run(&["status", "--date", DAY]).ok().prints(&["zoo"]);
        let watched = ["watch", "rent", "--date", DAY, "--seconds", "0"];
        lake.run(&watched).ok().prints(&["seal.rent: missing"]);
        let answer = lake
            .run(&["run", "--date", DAY, "--format", "json"])
            .ok()
            .json();
        assert_eq!(outcome(&answer, "seal.rent"), "done");
        assert_eq!(outcome(&answer, "shell"), "already_done");
        assert_eq!(fs::read(&seal).unwrap(), whole);
    }
    // That of a newer program is not written over.
    let newer = String::from_utf8(whole).unwrap();
    fs::write(&seal, newer.replace("\"format\":1", "\"format\":9")).unwrap();
    assert_eq!(standings(&lake)["seal.rent"].0, "stale");
    let answer = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .code(32)
        .json();
    assert_eq!(outcome(&answer, "seal.rent"), "stale");
}

#[test]
fn what_breaks_in_one_source_leaves_the_report_of_the_other() {
    let lake = lake_of(&shell("command = [\"true\"]\ninputs = [\"clean/rent\"]"));
    fs::create_dir_all(lake.project().join("sources/zoo")).unwrap();
    write(&lake, "sources/zoo/source.toml", LONE);
    lake.file("a.jsonl", "{\"id\": 1}\n");
    lake.run(&["ingest", "clean/rent", "a.jsonl", "--date", DAY])
        .ok();
    let records = lake.lake().join("_lake/log/clean/rent");
    let mut names = Vec::new();
    for entry in walk(&records) {
        fs::write(&entry, "damaged").unwrap();
        names.push(entry);
    }
    assert!(!names.is_empty(), "where the log lies has changed");
    let answer = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .code(30)
        .json();
    assert_eq!(outcome(&answer, "s"), "failed");
    assert_eq!(outcome(&answer, "shell"), "done");
    assert_eq!(standings(&lake)["s"].0, "red");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(walk(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn a_program_whose_dataset_is_not_there_does_not_begin() {
    for dataset in ["feature/nope", "clean/rent"] {
        let lake = lake_of(&shell(&format!(
            "command = [\"touch\", \"began\"]\ninputs = [\"{dataset}\"]"
        )));
        lake.run(&["run", "rent", "--date", DAY])
            .code(30)
            .says(&[&format!(
                "there is nothing of {DAY} in `{dataset}` that it should read"
            )]);
        assert!(!lake.project().join("began").exists());
        assert_eq!(standings(&lake)["s"].0, "red");
    }
}

#[test]
fn what_names_no_files_or_no_run_is_refused_before_anything_runs() {
    let lake = lake_of(SOURCE);
    for entry in ["[[", "a/***", "/tmp/x", "../x"] {
        let last = format!(
            "[[flow.stage]]\nkind = \"shell\"\nname = \"last\"\ncommand = [\"true\"]\noutputs = [\"{entry}\"]\n"
        );
        write(
            &lake,
            "sources/rent/source.toml",
            &format!("{SOURCE}{last}"),
        );
        lake.run(&["run", "rent", "--date", DAY]).code(2).says(&[
            &format!("`{entry}` names no files of the project"),
            "flow.stage[6].outputs",
        ]);
    }
    write(&lake, "sources/rent/source.toml", SOURCE);
    for run in ["lock", "_day", "_month"] {
        lake.run(&["run", "rent", "--date", DAY, "--run", run])
            .code(2);
    }
    let between = ["--from-stage", "report", "--to-stage", "seal.rent"];
    let args = [&["run", "rent", "--date", DAY][..], &between].concat();
    lake.run(&args).code(2).says(&[
        "nothing lies between",
        "`seal.rent` does not come after `report`",
    ]);
    assert!(!lake.project().join("ran").exists());
    let between = ["--from-stage", "seal.rent", "--to-stage", "derive.cities"];
    let args = [&["run", "rent", "--date", DAY][..], &between].concat();
    lake.run(&args).ok();
}

#[test]
fn a_try_that_cannot_be_written_ends_its_process() {
    let lake = lake_of(&shell(
        "command = [\"sh\", \"-c\", \"echo $$ > pid; exec sleep 60\"]",
    ));
    // The disk is full, as far as this file goes.
    let folder = lake.project().join("flow/rent").join(DAY).join("day");
    fs::create_dir_all(folder.join("s.try.new")).unwrap();
    let answer = lake
        .run(&["run", "rent", "--date", DAY, "--format", "json"])
        .code(30)
        .says(&["s.try"])
        .json();
    assert_eq!(outcome(&answer, "s"), "failed");
    let Ok(pid) = fs::read_to_string(lake.project().join("pid")) else {
        return;
    };
    wait_for("its end", || {
        let alive = Command::new("kill").args(["-0", pid.trim()]).output();
        !alive.unwrap().status.success()
    });
}

#[test]
fn folds_that_are_asked_for_are_worked_out_anew() {
    let flow = "[[flow.stage]]\nkind = \"fold\"\nname = \"fold\"\n";
    let lake = fold::rent_with(&format!("{}{flow}", fold::SOURCE));
    for n in 1..=3 {
        fold::list(
            &lake,
            n,
            &[fold::house("a", "A", n), fold::house("b", "B", 7)],
        );
    }
    let run = |more: &[&str]| {
        let (from, to) = (fold::day(1), fold::day(3));
        let days = ["run", "rent", "--from", &from, "--to", &to];
        lake.run(&[&days[..], more].concat())
    };
    run(&[]).ok();
    lake.file("new.jsonl", format!("{}\n", fold::house("a", "A", 70)));
    lake.run(&[
        "correct",
        "clean/rent.list",
        "new.jsonl",
        "--date",
        &fold::day(2),
    ])
    .ok();
    // By itself a flow makes no revision of a fold: a person says so.
    run(&[]).code(30).says(&["--from 2026-10-02"]);
    run(&["--from-stage", "fold"]).ok();
    let third = fold::snapshot(&lake, 3);
    assert_eq!(third["a"]["sightings"], json!(3));
    assert_eq!(third["b"]["sightings"], json!(2));
    let first = lake.sql_one(&format!(
        "SELECT max(revision) AS n FROM lake.partitions WHERE dataset = 'rent.house' AND dt = '{}'",
        fold::day(1)
    ));
    assert_eq!(first, "0", "what rests on equal rows was not made anew");
    // Nothing is left to do, and nothing is done twice.
    run(&[]).ok();
    let before = lake.files();
    run(&["--from-stage", "fold"]).ok();
    assert_eq!(lake.files(), before);
    lake.assert_clean();
}

#[test]
fn what_a_stage_says_is_told_as_it_is() {
    let script = "echo == Summary ==; echo error: the table is gone >&2; echo '  file: x' >&2; echo hint: look there >&2; exit 4";
    let lake = lake_of(&shell(&format!("command = [\"sh\", \"-c\", \"{script}\"]")));
    lake.run(&["run", "rent", "--date", DAY])
        .code(30)
        .says(&["== Summary ==", "hint: look there"]);
    write(
        &lake,
        "sources/rent/source.toml",
        &shell("command = [\"sh\", \"-c\", \"head -c 100000 /dev/zero | tr '\\\\0' x; exit 4\"]"),
    );
    let failed = lake.run(&["run", "rent", "--date", DAY]).code(30);
    assert!(failed.stderr.len() < 2_000, "{failed}");
    assert!(standings(&lake)["s"].1.len() < 400);
}

#[test]
fn a_makefile_holds_what_make_can_hold() {
    let lake = lake_of(SOURCE);
    let answer = lake
        .run(&[
            "flow",
            "rent",
            "--date",
            DAY,
            "--print-make",
            "--format",
            "json",
        ])
        .ok()
        .json();
    assert!(answer["makefile"].as_str().unwrap().contains("\nall:"));
    assert_eq!(answer["format"], 1);
    // A folder whose name has much that make reads otherwise.
    let project = lake.root().join("my $own #1 project");
    fs::rename(lake.project(), &project).unwrap();
    let lakebed = |args: &[&str]| {
        let all = [&["--project", project.to_str().unwrap()][..], args].concat();
        lake.call(&all).bare().run()
    };
    let text = lakebed(&["flow", "rent", "--date", DAY, "--print-make"])
        .ok()
        .stdout;
    let file = lake.file("Makefile", &text);
    let make = |args: &[&str]| {
        let mut command = Command::new("make");
        command.arg("-f").arg(&file).args(args);
        command.env_remove("MAKEFLAGS").output().unwrap()
    };
    let done = make(&["-j2"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}\n{text}");
    assert!(project.join(format!("report-{DAY}.txt")).exists());
    assert!(make(&["-q"]).status.success(), "something is left to do");
    let strange = project.with_file_name("50%");
    fs::rename(&project, &strange).unwrap();
    let args = ["flow", "rent", "--date", DAY, "--print-make"];
    let all = [&["--project", strange.to_str().unwrap()][..], &args].concat();
    lake.call(&all).bare().run().code(2).says(&["'%'"]);
    fs::rename(&strange, lake.project()).unwrap();
    // A line feed ends a recipe.
    write(
        &lake,
        "sources/rent/source.toml",
        &shell("command = [\"sh\", \"-c\", \"echo a\\necho b\"]"),
    );
    lake.run(&["flow", "rent", "--date", DAY, "--print-make"])
        .code(2)
        .says(&["a line feed", "stage: s"]);
    write(
        &lake,
        "sources/rent/source.toml",
        &shell("command = [\"sh\", \"-c\", \"echo == begun; exit 0\"]"),
    );
    lake.run(&["run", "rent", "--date", DAY]).ok();
}

#[test]
fn a_red_stage_that_never_began_shows_no_older_lines() {
    let lake = lake_of(&shell("command = [\"sh\", \"-c\", \"echo once; exit 3\"]"));
    lake.run(&["run", "rent", "--date", DAY])
        .code(30)
        .says(&["once"]);
    write(
        &lake,
        "sources/rent/source.toml",
        &shell("command = [\"true\"]\ninputs = [\"none.txt\"]"),
    );
    let failed = lake.run(&["run", "rent", "--date", DAY]).code(30);
    assert!(!failed.stderr.contains("once"), "{failed}");
}
