//! What is fetched for a date whose tables are made already: retries and crawls by hand reach the tables with the next
//! `lakebed run`, and until then `status` says that they are there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails the test that called it"
)]

use serde_json::Value;

use crate::flow_red::{DAY, SOURCE, Site, new_lake, write};
use crate::lake::TestLake;

const RULES: &str = "stage.detail = {}\n[[parse.page]]\nstage = \"page\"\n[[parse.page.item]]\n[parse.page.item.field]\nword = \"p::text\"\n";
const SCHEMA: &str = r#"field = [
    { id = 1, name = "word", type = "string" },
    { id = 2, name = "_raw", type = "string" },
    { id = 3, name = "_key", type = "string" },
    { id = 4, name = "_fetched_at", type = "timestamp" },
]
"#;
const STATUS: [&str; 6] = ["status", "books", "--date", DAY, "--format", "json"];

/// A lake whose pages give one row each.
fn parsed_lake() -> TestLake {
    let lake = new_lake();
    write(&lake, "source.toml", &format!("{SOURCE}{RULES}"));
    lake.schema("clean/books", 1, SCHEMA);
    lake.run(&["schema", "publish", "clean/books", "1"]).ok();
    lake
}

fn rows(lake: &TestLake) -> u64 {
    let sql = "SELECT count(*) AS n FROM clean.books";
    let answer = lake.run(&["sql", sql, "--format", "json"]).ok().json();
    let row = answer.as_array().map_or(&answer, |rows| &rows[0]);
    row["n"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

/// Standing and reason of a stage of the run `day`.
fn stage(answer: &Value, name: &str) -> (String, String) {
    let day = &answer["dates"].as_array().unwrap()[0];
    assert_eq!(day["run"], "day", "{answer}");
    let mut stages = day["stages"].as_array().unwrap().iter();
    let found = stages.find(|stage| stage["stage"] == name);
    let found = found.unwrap_or_else(|| panic!("no stage {name}: {answer}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("standing"), text("why"))
}

fn is(standing: &str, why: &str) -> (String, String) {
    (standing.to_owned(), why.to_owned())
}

/// Attacks FLW-7.
#[test]
fn what_a_retry_brings_after_the_tables_were_made_reaches_them() {
    let lake = parsed_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &format!("{0}/a\n{0}/late\n", site.url));
    let run = ["run", "books", "--date", DAY];
    lake.run(&run).code(30);
    let accept = ["--accept", "--note", "先用"];
    let close = ["crawl", "close", "books", "--date", DAY];
    lake.run(&[&close[..], &accept].concat()).ok();
    lake.run(&run).ok();
    assert_eq!(rows(&lake), 1);
    let status = |code: i32| lake.run(&STATUS).code(code).json();
    assert_eq!(stage(&status(0), "crawl"), is("done", "accepted: 先用"));

    // The retry is open, then closed, and each is told beside the acceptance.
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-2"];
    lake.run(&retry).ok();
    let open = "accepted: 先用; `day-2`, which tries again what died, has not ended: `lakebed crawl books --date 2026-11-30 --run day-2`";
    assert_eq!(stage(&status(0), "crawl"), is("done", open));
    lake.run(&["crawl", "books", "--date", DAY, "--run", "day-2"])
        .ok();
    let answer = status(0);
    let closed = "accepted: 先用; what died was tried again as `day-2`";
    assert_eq!(stage(&answer, "crawl"), is("done", closed));
    let (standing, why) = stage(&answer, "parse");
    assert_eq!(standing, "outdated", "{why}");
    assert!(why.contains("(run day, day-2) has changed"), "{why}");

    // The date is sealed: a person says that what came late is added.
    let late = "`lakebed parse books --date 2026-11-30 --late` adds them";
    lake.run(&run).code(30).says(&[
        "is sealed, and records of the run day-2 came after that",
        late,
    ]);
    assert_eq!(rows(&lake), 1);
    lake.run(&["parse", "books", "--date", DAY, "--late"]).ok();
    lake.run(&run).ok();
    assert_eq!(rows(&lake), 2);
    let answer = status(0);
    for name in ["parse", "seal"] {
        assert_eq!(stage(&answer, name), is("done", ""), "{name}");
    }
    lake.run(&run).ok();
    assert_eq!(rows(&lake), 2);
    lake.assert_clean();
}

/// Attacks FLW-7: a crawl by hand is read with the whole day, a sweep by itself.
#[test]
fn a_crawl_by_hand_reaches_the_tables_and_a_sweep_wakes_no_other_run() {
    let lake = parsed_lake();
    let site = Site::start(0);
    let run = ["run", "books", "--date", DAY];
    let sweep = |name: &'static str| [&run[..], &["--run", name]].concat();
    write(&lake, "seeds.txt", &format!("{}/b\n", site.url));
    lake.run(&sweep("0900")).ok();
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    lake.run(&run).ok();
    assert_eq!(rows(&lake), 2);
    lake.run(&sweep("1000")).code(30).says(&["of the run 1000"]);
    let answer = lake.run(&STATUS).code(1).json();
    let dates = answer["dates"].as_array().unwrap();
    let standings: Vec<Vec<&str>> = dates
        .iter()
        .map(|date| {
            let stages = date["stages"].as_array().unwrap().iter();
            stages.map(|s| s["standing"].as_str().unwrap()).collect()
        })
        .collect();
    assert_eq!(
        standings,
        [
            vec!["done", "done"],
            vec!["done", "red"],
            vec!["done", "done", "done"]
        ]
    );
    lake.run(&["parse", "books", "--date", DAY, "--late"]).ok();
    lake.run(&sweep("1000")).ok();
    assert_eq!(rows(&lake), 3);
    write(&lake, "seeds.txt", &format!("{}/c\n", site.url));
    lake.run(&["crawl", "books", "--date", DAY, "--run", "byhand"])
        .ok();
    let asked = lake.run(&[&run[..], &["--dry-run", "--format", "json"]].concat());
    let answer = asked.ok().json();
    let stages = answer["dates"][0]["stages"].as_array().unwrap().iter();
    let planned: Vec<(&str, &str)> = stages
        .map(|s| (s["stage"].as_str().unwrap(), s["outcome"].as_str().unwrap()))
        .collect();
    let expected = [
        ("crawl", "already_done"),
        ("parse", "would_run"),
        ("seal", "would_run"),
    ];
    assert_eq!(planned, expected);
    lake.run(&run).code(30).says(&["of the run byhand"]);
    lake.run(&["parse", "books", "--date", DAY, "--late"]).ok();
    lake.run(&run).ok();
    assert_eq!(rows(&lake), 4);
    lake.assert_clean();
}
