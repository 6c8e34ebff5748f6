//! What a person is told who runs a day: fields that are never there, what the day has, how far it is, what comes next.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use serde_json::Value;

use crate::flow;
use crate::lake::TestLake;
use crate::parse::{SCHEMA, SOURCE, book, seal, seal_run};

const DAY: &str = "2026-11-28";

/// Books whose titles no rule finds any more, of two days.
fn new_lake() -> TestLake {
    let lake = TestLake::new();
    lake.run(&["source", "add", "books"]).ok();
    rules(&lake, "h1::text", "h7::text");
    lake.schema("clean/books", 1, SCHEMA);
    lake.run(&["schema", "publish", "clean/books", "1"]).ok();
    seal(
        &lake,
        DAY,
        &[book(1, "A", "1.50"), book(2, "B", "2"), book(3, "C", "?")],
    );
    lake
}

/// The rules with something in the place of something else.
fn rules(lake: &TestLake, from: &str, to: &str) {
    assert!(SOURCE.contains(from));
    let file = lake.project().join("sources/books/source.toml");
    fs::write(file, SOURCE.replace(from, to)).unwrap();
}

/// The same rules, where one of three pages may be rejected.
fn wide() -> String {
    let wide = "\n[parse]\nmax_reject_share = 0.5\n[[parse.page]]";
    let rules = SOURCE.replace("h1::text", "h7::text");
    rules.replacen("\n[[parse.page]]", wide, 1)
}

const DOUBT: &str = "title of clean/books: null in all 2 records that came of its pages: does its selector fit? \
                     css = \"h7::text\", line 12 of source.toml";

#[test]
fn a_field_that_is_never_there_is_told_and_makes_nothing_red() {
    let lake = new_lake();
    let file = lake.project().join("sources/books/source.toml");
    fs::write(&file, wide()).unwrap();
    let doubt = DOUBT.replace("line 12", "line 14");
    let parse = ["parse", "books", "--date", DAY];
    let told = lake.run(&[&parse[..], &["--format", "json"]].concat());
    let told = told.ok().says(&[&doubt]).json();
    let expected = serde_json::json!([{
        "dataset": "books", "field": "title", "places": 2, "is_list": false,
        "rule": "css = \"h7::text\"", "line": 14,
    }]);
    assert_eq!(told["dates"][0]["empty_fields"], expected);
    // Nothing is read anew, so nothing is known anew.
    let again = lake.run(&parse).ok();
    assert!(!again.stderr.contains("title of"), "{}", again.stderr);
    // Whoever says that it need not be there is not warned, and no day is parsed anew because of it.
    let text = fs::read_to_string(&file).unwrap();
    let said = text.replace(
        "\"h7::text\"",
        "{ css = \"h7::text\", may_be_empty = true }",
    );
    fs::write(&file, said).unwrap();
    lake.run(&parse).ok().prints(&["up to date"]);
    let day = "2026-11-29";
    seal(&lake, day, &[book(1, "A", "1.50")]);
    let quiet = lake.run(&["parse", "books", "--date", day]).ok();
    assert!(!quiet.stderr.contains("title of"), "{}", quiet.stderr);
    // One value is enough, and so is no record at all.
    fs::write(&file, text.replace("h7::text", "h1::text")).unwrap();
    let good = lake.run(&parse).ok();
    assert!(!good.stderr.contains("title of"), "{}", good.stderr);
}

#[test]
fn rules_do_not_say_that_what_is_required_may_be_empty() {
    let lake = new_lake();
    let at = |lake: &TestLake| lake.run(&["parse", "books", "--date", DAY]).code(2);
    rules(
        &lake,
        "\"decimal\"], required = true",
        "\"decimal\"], required = true, may_be_empty = true",
    );
    at(&lake).says(&["a `required` field is never empty"]);
    rules(
        &lake,
        "\"a::attr(href)\"",
        "{ css = \"a::attr(href)\", may_be_empty = true }",
    );
    at(&lake).says(&["write it beside `url`"]);
}

#[test]
fn a_flow_passes_on_the_warnings_of_its_stages_and_tells_what_the_day_has() {
    let lake = new_lake();
    let file = lake.project().join("sources/books/source.toml");
    fs::write(file, wide()).unwrap();
    let first = lake.run(&["run", "books", "--date", DAY]).ok();
    let first = first
        .says(&[
            "warn  books 2026-11-28 parse: title of clean/books: null in all 2 records",
            "1 reject of the rules on 2026-11-28",
            "`lakebed status books` shows",
            "SELECT * FROM clean.books WHERE dt = '2026-11-28'",
        ])
        .prints(&["books 2026-11-28 has:\n  clean/books: 2 rows of 3 pages, 1 reject\n"]);
    assert!(!first.stdout.contains("never done"), "{}", first.stdout);
    assert!(!first.stdout.contains("there already"), "{}", first.stdout);
    let again = lake.run(&["run", "books", "--date", DAY]).ok();
    let again = again.prints(&["2 rows of 3 pages, 1 reject (there already)"]);
    assert!(!again.stderr.contains("null in"), "{}", again.stderr);
    // A dry run counts nothing, and says that nothing was done.
    let dry = ["run", "books", "--date", "2026-11-27", "--dry-run"];
    let dry = lake.run(&dry).ok().prints(&["it was never done"]);
    assert!(!dry.stdout.contains("has:"), "{}", dry.stdout);
    let asked = ["--from-stage", "parse", "--format", "json"];
    let asked = lake.run(&[&["run", "books", "--date", DAY][..], &asked].concat());
    let answer = asked.ok().json();
    let counts = &answer["counts"][0];
    assert_eq!(counts["date"], DAY, "{answer}");
    let rows = &counts["datasets"][0];
    assert_eq!(
        (
            &rows["rows"],
            &rows["pages"],
            &rows["rejects"],
            &rows["there_already"]
        ),
        (&2.into(), &3.into(), &1.into(), &false.into()),
        "{answer}"
    );
    // What the stage warned of is in the report as well; up to date, it has only the rejects to tell.
    let stages = answer["dates"][0]["stages"].as_array().unwrap();
    let parse = stages.iter().find(|s| s["stage"] == "parse").unwrap();
    assert_eq!(
        parse["warnings"],
        serde_json::json!(["1 reject of the rules on 2026-11-28"])
    );
}

#[test]
fn a_stage_that_ran_again_says_why() {
    let lake = new_lake();
    rules(&lake, "h1::text", "h1::text");
    seal(&lake, "2026-11-29", &[book(1, "A", "1.50")]);
    let run = [
        "run",
        "books",
        "--date",
        "2026-11-29",
        "--to-stage",
        "parse",
    ];
    lake.run(&run).ok();
    seal_run(&lake, ("2026-11-29", "late"), &[book(2, "B", "2.50")]);
    lake.run(&run).ok().prints(&[
        "parse: done (",
        "), since it was outdated: raw/books of 2026-11-29 has changed",
    ]);
    lake.run(&[&run[..], &["--from-stage", "parse"]].concat())
        .ok()
        .prints(&["), as it was asked for"]);
}

#[test]
fn a_stage_says_how_far_it_is() {
    let slow = r#"
[[flow.stage]]
kind = "shell"
name = "slow"
command = ["sh", "-c", "printf '3 of 7 pages\\nmore' > $LAKEBED_PROGRESS; sleep 4"]
"#;
    let lake = flow::lake_of(&format!("class = \"log\"\n{slow}"));
    let run = ["run", "rent", "--date", DAY];
    let told = lake.run(&run).ok();
    let told = told.says(&["rent 2026-11-28 slow 0:0", ": 3 of 7 pages\n"]);
    assert_eq!(told.stderr.matches("3 of 7").count(), 1, "{}", told.stderr);
    // The file of a stage that ended is gone.
    let folder = lake.project().join("flow/rent/2026-11-28/day");
    let names = fs::read_dir(folder).unwrap();
    let names: Vec<_> = names.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["slow.log"]);
    for silent in [&["--format", "json"][..], &["--quiet"]] {
        let more = ["--from-stage", "slow"];
        let told = lake.run(&[&run[..], &more, silent].concat()).ok();
        assert!(!told.stderr.contains("3 of 7"), "{}", told.stderr);
        assert!(!told.stdout.contains("3 of 7"), "{}", told.stdout);
    }
}

#[test]
fn a_parse_tells_a_flow_which_pack_is_at_hand() {
    let lake = new_lake();
    seal_run(&lake, (DAY, "late"), &[book(4, "D", "1")]);
    let file = lake.path_text("far");
    let call = lake.call(&["parse", "books", "--date", DAY]);
    // More rejects than may be: that is another matter.
    call.env("LAKEBED_PROGRESS", &file).run().code(1);
    let said = fs::read_to_string(&file).unwrap();
    assert!(
        said.contains(" of ") && said.contains("pack 2 of 2, "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Hints of `status` without the times that stand in front of other lines.
fn advice(lake: &TestLake, args: &[&str], code: i32) -> Vec<String> {
    let told = lake.run(&[&["status"][..], args].concat()).code(code);
    let hints = told.stderr.lines();
    let hints = hints.filter_map(|line| line.strip_prefix("hint: "));
    hints.map(str::to_owned).collect()
}

#[test]
fn status_says_what_ends_what_is_stale_red_or_outdated() {
    let lake = flow::lake_of(flow::SOURCE);
    let days = ["--from", "2026-11-28", "--to", "2026-11-30"];
    lake.run(&[&["run"][..], &days].concat()).ok();
    assert_eq!(advice(&lake, &days, 0), Vec::<String>::new());
    let more = flow::SOURCE.replace("count(*) AS n", "count(*) + 100 AS n");
    flow::write(&lake, "sources/rent/source.toml", &more);
    assert_eq!(
        advice(&lake, &days, 1),
        [
            "STALE: `lakebed run rent --from 2026-11-28 --to 2026-11-30 --from-stage derive.cities` does it again by the rules of now, and what follows from it"
        ]
    );
    // The command is right: it ends what it was told for.
    let again = [
        &["run", "rent"][..],
        &days,
        &["--from-stage", "derive.cities"],
    ]
    .concat();
    lake.run(&again).ok();
    assert_eq!(advice(&lake, &days, 0), Vec::<String>::new());
    fs::remove_file(lake.project().join("report-2026-11-29.txt")).unwrap();
    assert_eq!(
        advice(&lake, &days, 0),
        ["red, outdated or gone: `lakebed run rent --date 2026-11-29` does what is left"]
    );
    lake.run(&["run", "rent", "--date", "2026-11-29"]).ok();
    assert_eq!(advice(&lake, &days, 0), Vec::<String>::new());
}

#[test]
fn status_shows_days_to_come_that_have_something() {
    let lake = flow::lake_of(flow::SOURCE);
    let shown = |lake: &TestLake| -> Vec<String> {
        let answer = lake.run(&["status", "--format", "json"]).ok().json();
        let dates = answer["dates"].as_array().unwrap().iter();
        dates.map(|date| date["date"].to_string()).collect()
    };
    assert_eq!(shown(&lake).len(), 1);
    lake.run(&["run", "--date", "2999-05-01"]).ok();
    let dates = shown(&lake);
    assert_eq!(dates.len(), 2, "{dates:?}");
    assert_eq!(dates[1], "\"2999-05-01\"");
    lake.run(&[
        "run",
        "--from",
        "2999-05-02",
        "--to",
        "2999-05-09",
        "--to-stage",
        "fetch",
    ])
    .ok();
    assert_eq!(shown(&lake).len(), 8);
    assert!(
        advice(&lake, &[], 0)[0]
            .starts_with("of 2 more days to come, until 2999-05-09, there is something"),
    );
}

/// Counts of the requests of a crawl in the JSON of a run.
pub(crate) fn requests(answer: &Value) -> (u64, u64, bool) {
    let requests = &answer["counts"][0]["requests"][0];
    (
        requests["done"].as_u64().unwrap(),
        requests["dead"].as_u64().unwrap(),
        requests["there_already"].as_bool().unwrap(),
    )
}
