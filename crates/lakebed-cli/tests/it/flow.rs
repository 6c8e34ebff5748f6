//! Flows: done once, gone on with after any death, one at a time, and honest about what is not done.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails the test that called it"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lake::TestLake;

/// A source whose day is fetched by a program, stored, sealed, counted by a query and reported.
pub(crate) const SOURCE: &str = r#"class = "log"
[dataset.rent]
key = ["id"]
[dataset."rent.cities"]
key = ["city"]

[derive.cities]
sql = "SELECT city, count(*) AS n, sum(price) AS total FROM clean.rent GROUP BY city"
parents = ["clean/rent"]

[[flow.stage]]
kind = "shell"
name = "fetch"
command = ["sh", "fetch.sh", "{date}"]
outputs = ["inbox/{date}/*.jsonl"]
[[flow.stage]]
kind = "ingest"
datasets = ["clean/rent"]
inputs = ["inbox/{date}/*.jsonl"]
[[flow.stage]]
kind = "seal"
datasets = ["clean/rent"]
[[flow.stage]]
kind = "derive"
[[flow.stage]]
kind = "shell"
name = "report"
command = ["sh", "-c", "echo $LAKEBED_SOURCE $LAKEBED_RUN >> ran; cat report-of > report-{date}.txt"]
inputs = ["feature/rent.cities"]
outputs = ["report-{date}.txt"]
"#;

const FETCH: &str = r#"mkdir -p inbox/$1
echo fetched >> ran
cat > inbox/$1/a.jsonl <<END
{"id": 1, "city": "臺北", "price": "10.50"}
{"id": 2, "city": "高雄", "price": "20.25"}
{"id": 3, "city": "臺北", "price": "1.25"}
END
"#;

pub(crate) const SCHEMA: &str = r#"field = [
    { id = 1, name = "id", type = "int", required = true },
    { id = 2, name = "city", type = "string" },
    { id = 3, name = "price", type = "decimal(12,2)" },
]
"#;

pub(crate) const CITIES: &str = r#"field = [
    { id = 1, name = "city", type = "string" },
    { id = 2, name = "n", type = "int" },
    { id = 3, name = "total", type = "decimal(22,2)" },
]
"#;

pub(crate) const DAY: &str = "2026-11-30";

pub(crate) fn lake_of(source: &str) -> TestLake {
    let lake = TestLake::new();
    lake.run(&["source", "add", "rent"]).ok();
    write(&lake, "sources/rent/source.toml", source);
    lake.schema("clean/rent", 1, SCHEMA);
    lake.schema("feature/rent.cities", 1, CITIES);
    for dataset in ["clean/rent", "feature/rent.cities"] {
        lake.run(&["schema", "publish", dataset, "1"]).ok();
    }
    write(&lake, "fetch.sh", FETCH);
    write(&lake, "report-of", "報告\n");
    lake
}

pub(crate) fn write(lake: &TestLake, name: &str, text: &str) {
    fs::write(lake.project().join(name), text).unwrap();
}

/// What programs of the flow left in the file `ran`.
fn ran(lake: &TestLake) -> String {
    fs::read_to_string(lake.project().join("ran")).unwrap_or_default()
}

/// Outcomes by stage of `run ... --format json`.
fn outcomes(answer: &Value) -> Vec<(String, String)> {
    let stages = answer["dates"].as_array().unwrap().iter();
    stages
        .flat_map(|date| date["stages"].as_array().unwrap())
        .map(|s| (text(&s["stage"]), text(&s["outcome"])))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn outcome(answer: &Value, stage: &str) -> String {
    let all = outcomes(answer);
    let found = all.iter().find(|(name, _)| name == stage);
    found
        .unwrap_or_else(|| panic!("no stage {stage}: {answer}"))
        .1
        .clone()
}

/// Standings by stage of `status`.
pub(crate) fn standings(lake: &TestLake) -> BTreeMap<String, (String, String)> {
    let run = lake.run(&["status", "rent", "--date", DAY, "--format", "json"]);
    let stages = run.json()["dates"][0]["stages"].as_array().unwrap().clone();
    stages
        .iter()
        .map(|s| (text(&s["stage"]), (text(&s["standing"]), text(&s["why"]))))
        .collect()
}

/// Data files and stamps with their bytes.
fn content(lake: &TestLake) -> BTreeMap<String, Vec<u8>> {
    let kept = |name: &str| {
        ["clean/", "feature/", "flow/"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    let files = lake
        .files()
        .into_keys()
        .filter(|name| kept(name) && !name.ends_with("_SUCCESS"));
    files
        .map(|name| {
            let bytes = fs::read(lake.lake().join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

#[test]
fn a_day_is_done_once_and_its_stamps_say_so() {
    let lake = lake_of(SOURCE);
    let dry = lake
        .run(&["run", "--date", DAY, "--dry-run", "--format", "json"])
        .ok()
        .json();
    assert!(
        outcomes(&dry).iter().all(|(_, o)| o == "would_run"),
        "{dry}"
    );
    assert!(ran(&lake).is_empty());
    let first = lake.run(&["run", "--date", DAY]).ok();
    first.prints(&["rent 2026-11-30 fetch: done", "derive.cities: done"]);
    let rows = lake.sql("SELECT city, n, CAST(total AS VARCHAR) AS total FROM feature.rent.cities");
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows[0]["city"], &rows[0]["total"]),
        (&"臺北".into(), &"11.75".into())
    );
    let before = (content(&lake), ran(&lake));
    let second = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .ok()
        .json();
    assert!(
        outcomes(&second).iter().all(|(_, o)| o == "already_done"),
        "{second}"
    );
    assert_eq!(before, (content(&lake), ran(&lake)));
    assert_eq!(ran(&lake), "fetched\nrent day\n");
    assert!(standings(&lake).values().all(|(is, _)| is == "done"));
    lake.assert_clean();
    // Touching files changes nothing: only what is in them and in the logs counts.
    let report = lake.project().join("report-2026-11-30.txt");
    fs::write(&report, fs::read(&report).unwrap()).unwrap();
    assert!(standings(&lake).values().all(|(is, _)| is == "done"));
}

/// Attacks FLW-5.
#[test]
fn a_stamp_holds_only_while_what_it_names_is_there() {
    let lake = lake_of(SOURCE);
    lake.run(&["run", "--date", DAY]).ok();
    // A lost output comes back, and nothing else runs.
    fs::remove_file(lake.project().join("report-2026-11-30.txt")).unwrap();
    let (is, why) = standings(&lake)["report"].clone();
    assert_eq!(
        (is.as_str(), why.contains("is gone")),
        ("missing", true),
        "{why}"
    );
    let again = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .ok()
        .json();
    assert_eq!(
        (outcome(&again, "report"), outcome(&again, "fetch")),
        ("done".into(), "already_done".into())
    );
    // A date that was opened again is sealed again.
    lake.run(&["reopen", "clean/rent", "--date", DAY]).ok();
    assert_eq!(standings(&lake)["seal.rent"].0, "missing");
    // New rows run what reads them again, as a new revision.
    let late = lake.file(
        "late.jsonl",
        "{\"id\": 9, \"city\": \"臺南\", \"price\": \"5\"}\n",
    );
    lake.ingest("clean/rent", &[late.to_str().unwrap(), "--date", DAY])
        .ok();
    let (is, why) = standings(&lake)["derive.cities"].clone();
    assert_eq!(
        (
            is.as_str(),
            why.contains("clean/rent of 2026-11-30 has changed")
        ),
        ("outdated", true),
        "{why}"
    );
    let again = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .ok()
        .json();
    assert_eq!(outcome(&again, "derive.cities"), "done");
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM feature.rent.cities"),
        "3"
    );
    // Rows that a person took back are STALE and stay so.
    lake.run(&["rollback", "feature/rent.cities", "--date", DAY])
        .ok();
    let (is, why) = standings(&lake)["derive.cities"].clone();
    assert_eq!(
        (is.as_str(), why.contains("revision 0 again")),
        ("stale", true),
        "{why}"
    );
    lake.run(&["run", "--date", DAY])
        .code(32)
        .says(&["--from-stage derive.cities"]);
    lake.assert_clean();
}

#[test]
fn changed_rules_are_stale_until_a_person_says_so() {
    let lake = lake_of(SOURCE);
    lake.run(&["run", "--date", DAY]).ok();
    write(
        &lake,
        "sources/rent/source.toml",
        &SOURCE.replace("count(*) AS n", "count(*) + 100 AS n"),
    );
    let (is, _) = standings(&lake)["derive.cities"].clone();
    assert_eq!(is, "stale");
    lake.run(&["status", "rent", "--date", DAY])
        .code(1)
        .prints(&["STALE", "its rules have changed"]);
    // A try that failed since ends nothing of that: `run` alone would not try again.
    write(
        &lake,
        "flow/rent/2026-11-30/_day/derive.cities.try",
        r#"{"format":1,"pid":0,"began_at":"2026-11-30T00:00:00Z","failed":{"reason":"it ended with code 1","last_lines":["error: 壞了"],"log":""}}"#,
    );
    lake.run(&["status", "rent", "--date", DAY])
        .code(1)
        .prints(&["STALE", "its last try failed: it ended with code 1: 壞了"])
        .says(&["--from-stage derive.cities"]);
    let refused = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .code(32);
    let answer = refused.json();
    assert_eq!(answer["trouble"], "stale");
    assert_eq!(outcome(&answer, "report"), "already_done");
    assert_eq!(
        lake.sql_one("SELECT max(n) AS n FROM feature.rent.cities"),
        "2"
    );
    // By hand, too, another query needs a word.
    lake.run(&["derive", "rent", "cities", "--date", DAY])
        .code(1)
        .says(&["--replace"]);
    lake.run(&["run", "--date", DAY, "--from-stage", "nonsense"])
        .code(2)
        .says(&["its stages are fetch, ingest"]);
    let told = lake
        .run(&[
            "run",
            "--date",
            DAY,
            "--from-stage",
            "derive.cities",
            "--format",
            "json",
        ])
        .ok()
        .json();
    assert_eq!(
        (outcome(&told, "seal.rent"), outcome(&told, "report")),
        ("already_done".into(), "done".into())
    );
    assert_eq!(
        lake.sql_one("SELECT max(n) AS n FROM feature.rent.cities"),
        "102"
    );
    assert_eq!(
        lake.sql_one(
            "SELECT max(revision) AS r FROM lake.partitions WHERE dataset = 'rent.cities'"
        ),
        "1"
    );
    lake.run(&["run", "--date", DAY]).ok();
}

#[test]
fn a_failed_stage_stops_what_depends_on_it_and_leaves_its_log() {
    let failing = SOURCE.replace(
        "[[flow.stage]]\nkind = \"seal\"",
        "[[flow.stage]]\nkind = \"shell\"\nname = \"check\"\ncommand = [\"sh\", \"-c\", \"echo 檢查; test -e good || { echo 壞了 >&2; exit 7; }\"]\ninputs = [\"clean/rent\"]\n[[flow.stage]]\nkind = \"seal\"\nafter = [\"check\"]",
    );
    let lake = lake_of(&failing);
    let lone = "class = \"log\"\n[[flow.stage]]\nkind = \"shell\"\ncommand = [\"true\"]\n";
    fs::create_dir_all(lake.project().join("sources/zoo")).unwrap();
    write(&lake, "sources/zoo/source.toml", lone);
    let failed = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .code(30)
        .says(&["壞了", "check.log"]);
    let answer = failed.json();
    for (stage, expected) in [
        ("ingest", "done"),
        ("check", "failed"),
        ("seal.rent", "blocked"),
        ("derive.cities", "blocked"),
        ("shell", "done"),
    ] {
        assert_eq!(outcome(&answer, stage), expected, "{stage}");
    }
    let stages = answer["dates"][0]["stages"].as_array().unwrap();
    let failure = &stages.iter().find(|s| s["stage"] == "check").unwrap()["failure"];
    assert_eq!(
        (&failure["exit_code"], &failure["last_lines"][0]),
        (&7.into(), &"檢查".into())
    );
    let log = fs::read_to_string(text(&failure["log"])).unwrap();
    assert!(log.contains("== ") && log.contains("檢查\n壞了\n"), "{log}");
    let (is, why) = standings(&lake)["check"].clone();
    assert_eq!(
        (is.as_str(), why.as_str()),
        ("red", "it ended with code 7: 壞了")
    );
    // The grid keeps its columns under wide characters, and tells why.
    lake.run(&["status", "--date", DAY])
        .code(1)
        .prints(&["red", "壞了", "zoo     2026-11-30"]);
    // A later day of the source does not begin.
    let days = [
        "run",
        "rent",
        "--from",
        DAY,
        "--to",
        "2026-12-01",
        "--format",
        "json",
    ];
    let answer = lake.run(&days).code(30).json();
    assert!(
        answer["dates"][1]["stages"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["outcome"] == "blocked")
    );
    write(&lake, "good", "");
    lake.run(&["run", "--date", DAY]).ok();
    assert_eq!(standings(&lake)["check"].0, "done");
}

#[test]
fn a_stage_that_leaves_nothing_or_takes_too_long_is_no_success() {
    let stage = |rest: &str| {
        format!("class = \"log\"\n[[flow.stage]]\nkind = \"shell\"\nname = \"s\"\n{rest}\n")
    };
    let lake = lake_of(&stage(
        "command = [\"true\"]\noutputs = [\"none-{date}.csv\"]",
    ));
    lake.run(&["run", "rent", "--date", DAY])
        .code(30)
        .says(&["`none-2026-11-30.csv`, which it should write, is not there"]);
    write(
        &lake,
        "sources/rent/source.toml",
        &stage("command = [\"true\"]\noutputs = [\"clean/rent\"]"),
    );
    lake.run(&["run", "rent", "--date", DAY])
        .code(30)
        .says(&["clean/rent has nothing of 2026-11-30"]);
    write(
        &lake,
        "sources/rent/source.toml",
        &stage("command = [\"true\"]\ninputs = [\"inbox/*.csv\"]"),
    );
    lake.run(&["run", "rent", "--date", DAY])
        .code(30)
        .says(&["there is no file `inbox/*.csv`"]);
    write(
        &lake,
        "sources/rent/source.toml",
        &stage("command = [\"no-such-program\"]"),
    );
    lake.run(&["run", "rent", "--date", DAY])
        .code(30)
        .says(&["no-such-program"]);
    write(
        &lake,
        "sources/rent/source.toml",
        "class = \"log\"\n[[flow.stage]]\nkind = \"publish\"\n",
    );
    lake.run(&["run", "rent", "--date", DAY])
        .code(2)
        .says(&["not yet there"]);
}

fn spawn(lake: &TestLake, args: &[&str]) -> Child {
    lake.call(args).command().spawn().unwrap()
}

pub(crate) fn wait_for(what: &str, until: impl Fn() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{what} did not come"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

const SLOW: &str = "class = \"log\"\n[[flow.stage]]\nkind = \"shell\"\nname = \"slow\"\ncommand = [\"sh\", \"-c\", \"echo began >> ran; while test ! -e go; do sleep 0.05; done; echo ended >> ran\"]\n";

/// Attacks FLW-4.
#[test]
fn a_date_has_one_flow_at_a_time_over_processes_and_projects() {
    let lake = lake_of(SLOW);
    let args = ["run", "rent", "--date", DAY];
    let mut first = spawn(&lake, &args);
    wait_for("the first flow", || ran(&lake) == "began\n");
    lake.run(&args).code(33).says(&["busy"]);
    let status = lake
        .run(&["status", "rent", "--date", DAY, "--format", "json"])
        .ok()
        .json();
    assert_eq!(
        status["dates"][0]["stages"][0]["standing"], "running",
        "{status}"
    );
    // Another project on the same lake and queue, as on another machine: the lease stands in the database.
    let other = lake.root().join("other");
    fs::create_dir_all(other.join("sources/rent")).unwrap();
    for name in ["lakebed.toml", "sources/rent/source.toml"] {
        fs::copy(lake.project().join(name), other.join(name)).unwrap();
    }
    let elsewhere = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lakebed"));
        command.args(args).arg("--project").arg(&other);
        for (name, file) in [
            ("LAKEBED_LAKE", "lake"),
            ("LAKEBED_QUEUE", "queue.db"),
            ("LAKEBED_CATALOG", "catalog.db"),
        ] {
            command.env(name, lake.project().join(file));
        }
        command.output().unwrap()
    };
    let refused = elsewhere();
    assert_eq!(
        refused.status.code(),
        Some(33),
        "{}",
        String::from_utf8_lossy(&refused.stderr)
    );
    // Another date is another turn.
    write(&lake, "go", "");
    assert!(first.wait().unwrap().success());
    assert_eq!(ran(&lake), "began\nended\n");
    lake.run(&args).ok().prints(&["there already"]);
    // What is done is done for the other project, too.
    assert_eq!(elsewhere().status.code(), Some(0));
    assert_eq!(ran(&lake), "began\nended\n");
}

#[test]
fn a_stage_that_outlives_its_flow_is_waited_for() {
    let lake = lake_of(SLOW);
    let args = ["run", "rent", "--date", DAY];
    let mut first = spawn(&lake, &args);
    wait_for("the first flow", || ran(&lake) == "began\n");
    first.kill().unwrap();
    first.wait().unwrap();
    // Its stage still works: a second one at the same thing would be a disaster.
    lake.run(&args)
        .code(33)
        .says(&["a stage that outlived one"]);
    write(&lake, "go", "");
    wait_for("the end of the stage", || ran(&lake) == "began\nended\n");
    wait_for("the turn", || lake.run(&args).status.code() == Some(0));
    // Nobody stamped it, so it ran once more; its lease stood in nobody's way.
    assert_eq!(ran(&lake), "began\nended\nbegan\nended\n");
}

#[test]
fn a_flow_that_is_told_to_end_tells_its_stage() {
    let lake = lake_of(SLOW);
    let args = ["run", "rent", "--date", DAY];
    let mut flow = spawn(&lake, &args);
    wait_for("the flow", || ran(&lake) == "began\n");
    let pid = flow.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(flow.wait().unwrap().code(), Some(34));
    assert_eq!(standings(&lake)["slow"].0, "missing");
    write(&lake, "go", "");
    lake.run(&args).ok();
    assert_eq!(ran(&lake), "began\nbegan\nended\n");
}

/// Runs until nobody else is at it.
fn resume(lake: &TestLake) {
    let began = Instant::now();
    loop {
        let run = lake.run(&["run", "--date", DAY]);
        if run.status.code() != Some(33) || began.elapsed() > Duration::from_secs(60) {
            run.ok();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Attacks FLW-6 and DRV-3: wherever a flow or one of its stages dies, going on leaves the same bytes.
#[test]
fn a_flow_that_died_anywhere_goes_on_to_the_same_bytes() {
    let whole = lake_of(SOURCE);
    whole.run(&["run", "--date", DAY]).ok();
    let expected = content(&whole);
    assert_eq!(expected.len(), 2 + 5, "{:?}", expected.keys());
    let of_flow = [
        "flow.stage_begun",
        "flow.stage_ended",
        "flow.before_stamp",
        "flow.stamped",
    ];
    let mut points: Vec<String> = vec!["flow.turn_taken".to_owned()];
    for n in 1..=5 {
        points.extend(of_flow.iter().map(|point| format!("{point}:{n}")));
    }
    let of_stages = [
        "ingest.file_durable",
        "log.committed",
        "move.one_moved",
        "seal.committed",
        "success.one_written",
        "derive.rows_written",
        "derive.stored",
        "sync.in_transaction",
    ];
    points.extend(of_stages.map(str::to_owned));
    for point in points {
        let lake = lake_of(SOURCE);
        let died = lake
            .call(&["run", "--date", DAY])
            .env("LAKEBED_KILL_POINT", &point)
            .run();
        match point.starts_with("flow.") {
            true => drop(died.killed()),
            // A stage died, and the flow tells of it.
            false => drop(died.code(30).says(&["signal 6"])),
        }
        resume(&lake);
        let found = content(&lake);
        let names: Vec<_> = found.keys().collect();
        assert_eq!(names, expected.keys().collect::<Vec<_>>(), "{point}");
        for (name, bytes) in &expected {
            let same = found[name] == *bytes;
            assert!(
                same,
                "{point}: {name}: {}",
                String::from_utf8_lossy(&found[name])
            );
        }
        lake.run(&["run", "--date", DAY]).ok();
        assert_eq!(
            content(&lake),
            found,
            "{point}: a second call did something"
        );
        lake.run(&["audit", "--repair"]);
        lake.assert_clean();
    }
}

#[test]
fn two_calls_at_once_do_a_date_once() {
    for _ in 0..3 {
        let lake = lake_of(SOURCE);
        let calls: Vec<Child> = (0..3)
            .map(|_| spawn(&lake, &["run", "--date", DAY]))
            .collect();
        let codes: Vec<Option<i32>> = calls
            .into_iter()
            .map(|mut c| c.wait().unwrap().code())
            .collect();
        assert!(codes.contains(&Some(0)), "{codes:?}");
        assert!(codes.iter().all(|c| matches!(c, Some(0 | 33))), "{codes:?}");
        assert_eq!(ran(&lake), "fetched\nrent day\n");
        assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.rent"), "3");
    }
}

#[test]
fn make_runs_the_same_graph() {
    let lake = lake_of(SOURCE);
    let text = lake
        .run(&["flow", "rent", "--date", DAY, "--print-make"])
        .ok()
        .stdout;
    let file = lake.file("Makefile", &text);
    let make = |args: &[&str]| {
        let mut command = Command::new("make");
        command
            .arg("-f")
            .arg(&file)
            .args(args)
            .env_remove("MAKEFLAGS");
        command.output().unwrap()
    };
    let done = make(&["-j4"]);
    assert!(
        done.status.success(),
        "{}\n{text}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM feature.rent.cities"),
        "2"
    );
    assert_eq!(ran(&lake), "fetched\nrent day\n");
    let again = make(&["-q"]);
    assert!(again.status.success(), "make has something left to do");
    // The flow after it finds every row there: it has only to stamp.
    let flow = lake
        .run(&["run", "--date", DAY, "--format", "json"])
        .ok()
        .json();
    assert_eq!(outcome(&flow, "derive.cities"), "done");
    assert_eq!(
        lake.sql_one(
            "SELECT max(log_position) AS n FROM lake.partitions WHERE dataset = 'rent.cities'"
        ),
        "1"
    );
}

#[test]
fn a_graph_that_cannot_be_is_refused() {
    let lake = lake_of(SOURCE);
    for (stages, said) in [
        (
            "kind = \"shell\"\nname = \"a\"\ncommand = [\"true\"]\nafter = [\"b\"]\n[[flow.stage]]\nkind = \"shell\"\nname = \"b\"\ncommand = [\"true\"]\nafter = [\"a\"]",
            "stages wait for each other: a after b after a",
        ),
        (
            "kind = \"shell\"\ncommand = [\"true\"]\nafter = [\"none\"]",
            "comes after `none`",
        ),
        (
            "kind = \"shell\"\ncommand = [\"true\"]\n[[flow.stage]]\nkind = \"shell\"\ncommand = [\"true\"]",
            "two stages are called `shell`",
        ),
        (
            "kind = \"seal\"\ndatasets = [\"clean/rent\"]\n[[flow.stage]]\nkind = \"ingest\"\ndatasets = [\"clean/rent\"]\ninputs = [\"x\"]",
            "which `ingest` writes only later",
        ),
        ("kind = \"parse\"", "has no parse rules"),
        ("kind = \"crawl\"", "declares no [crawl]"),
        ("kind = \"fold\"", "declares no [fold.<name>]"),
        ("kind = \"seed\"", "declares no [seed]"),
        (
            "kind = \"derive\"\nof = \"x\"",
            "declares no [derive.<name>]",
        ),
    ] {
        write(
            &lake,
            "sources/rent/source.toml",
            &format!("class = \"log\"\n[[flow.stage]]\n{stages}\n"),
        );
        lake.run(&["flow", "rent", "--date", DAY])
            .code(2)
            .says(&[said]);
        lake.run(&["run", "rent", "--date", DAY])
            .code(2)
            .says(&[said]);
    }
    write(&lake, "sources/rent/source.toml", "class = \"log\"\n");
    lake.run(&["run", "rent", "--date", DAY])
        .code(2)
        .says(&["has no flow"]);
    lake.run(&["run", "--date", DAY])
        .code(2)
        .says(&["no source of this project has a flow"]);
    assert!(!Path::new(&lake.lake().join("flow")).exists());
}

#[test]
fn a_stage_of_a_month_comes_with_its_last_day() {
    let month = "class = \"log\"\n[[flow.stage]]\nkind = \"shell\"\nname = \"export\"\nperiod = \"month\"\ncommand = [\"sh\", \"-c\", \"echo {month} >> ran\"]\n";
    let lake = lake_of(month);
    lake.run(&["run", "rent", "--from", "2026-11-28", "--to", "2026-12-02"])
        .ok();
    assert_eq!(ran(&lake), "2026-11\n");
    let answer = lake
        .run(&[
            "run", "rent", "--date", DAY, "--run", "1500", "--format", "json",
        ])
        .ok()
        .json();
    assert_eq!(outcome(&answer, "export"), "already_done");
    assert!(
        lake.lake()
            .join("flow/rent/2026-11-01/_month/export.done")
            .exists()
    );
}

#[test]
fn a_flow_is_watched_as_it_goes() {
    let lake = lake_of(SLOW);
    let mut flow = spawn(&lake, &["run", "rent", "--date", DAY]);
    wait_for("the flow", || ran(&lake) == "began\n");
    let watcher = spawn(
        &lake,
        &[
            "watch",
            "rent",
            "--date",
            DAY,
            "--seconds",
            "3",
            "--format",
            "json",
        ],
    );
    std::thread::sleep(Duration::from_millis(700));
    write(&lake, "go", "");
    let seen = watcher.wait_with_output().unwrap();
    assert!(flow.wait().unwrap().success());
    let lines: Vec<Value> = String::from_utf8(seen.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let stages: Vec<String> = lines
        .iter()
        .map(|l| text(&l["stage"]["standing"]))
        .filter(|s| !s.is_empty())
        .collect();
    assert_eq!(stages, ["running", "done"], "{lines:?}");
    assert!(lines.iter().all(|l| l["format"] == 1), "{lines:?}");
}
