//! `parse --date` over several packs of a date: added one by one, whole where rules or packs changed, the same after
//! every kill; its verdict and its rejects.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::lake::TestLake;
use crate::parse::{SCHEMA, SOURCE, book, seal_run};

const DAY: &str = "2026-11-28";
const PARSE: [&str; 6] = ["parse", "books", "--date", DAY, "--format", "json"];

/// Two datasets, the links of a book in one of their own.
fn source() -> String {
    let item = "\n[[parse.page.item]]\ndataset = \"books.links\"\n[parse.page.item.field]\n\
                url = \"a::attr(href)\"\n[[parse.page.follow]]";
    SOURCE.replace("[[parse.page.follow]]", item)
}

fn new_lake() -> TestLake {
    let lake = TestLake::new();
    lake.run(&["source", "add", "books"]).ok();
    fs::write(lake.project().join("sources/books/source.toml"), source()).unwrap();
    lake.schema("clean/books", 1, SCHEMA);
    let links = SCHEMA.replace(
        "{ id = 1, name = \"id\", type = \"int\", required = true },",
        "{ id = 1, name = \"url\", type = \"string\" },",
    );
    lake.schema("clean/books.links", 1, &links);
    for dataset in ["clean/books", "clean/books.links"] {
        lake.run(&["schema", "publish", dataset, "1"]).ok();
    }
    lake
}

/// Books `from..to`, of which `broken` has no price.
fn books(from: u32, to: u32, broken: u32) -> Vec<(String, &'static str, Vec<u8>)> {
    let price = |n| if n == broken { "?" } else { "1.50" };
    (from..to).map(|n| book(n, "T", price(n))).collect()
}

fn first(lake: &TestLake) {
    seal_run(lake, (DAY, "day"), &books(1, 31, 30));
}

fn second(lake: &TestLake) {
    seal_run(lake, (DAY, "day-detail"), &books(31, 41, 0));
}

/// Data files of all datasets by name, with their bytes.
fn data(lake: &TestLake) -> BTreeMap<String, Vec<u8>> {
    let files = lake.data_files().into_iter();
    files
        .map(|f| (f.clone(), fs::read(lake.lake().join(f)).unwrap()))
        .collect()
}

fn count(lake: &TestLake) -> String {
    lake.sql_one("SELECT count(*) || ' ' || count(DISTINCT id) AS c FROM clean.books")
}

fn day(answer: &Value) -> &Value {
    &answer["dates"][0]
}

#[test]
fn packs_of_later_runs_are_added_with_the_same_bytes_in_any_portions() {
    let (apart, at_once) = (new_lake(), new_lake());
    first(&apart);
    let answer = apart.run(&PARSE).ok().json();
    assert_eq!(day(&answer)["datasets"][0]["stored"], "new", "{answer}");
    second(&apart);
    let answer = apart.run(&PARSE).ok().json();
    let told = day(&answer);
    assert_eq!(told["datasets"][0]["stored"], "appended", "{answer}");
    assert_eq!(told["datasets"][0]["commits"][0]["revision"], 0);
    // The counts are those of the date, wherever they come from.
    let read: Vec<&Value> = told["packs"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&read[0]["is_read"], &read[1]["is_read"]),
        (&false.into(), &true.into())
    );
    for (name, expected) in [
        ("pages", 40),
        ("parsed", 40),
        ("rejects", 1),
        ("follow_ups", 40),
    ] {
        assert_eq!(told[name], expected, "{name}: {answer}");
    }
    assert_eq!(told["datasets"][0]["records"], 39);
    first(&at_once);
    second(&at_once);
    let whole = at_once.run(&PARSE).ok().json();
    assert_eq!(whole["dates"][0]["datasets"][0]["stored"], "new");
    for name in ["pages", "parsed", "rejects", "follow_ups"] {
        assert_eq!(day(&whole)[name], told[name], "{name}");
    }
    assert_eq!(data(&apart), data(&at_once));
    assert_eq!(count(&apart), "39 39");
    // Again: nothing is read, nothing is written, and the counts are told.
    let files = apart.files();
    let again = apart.run(&PARSE).ok().json();
    assert_eq!(day(&again)["up_to_date"], true);
    assert_eq!(day(&again)["rejects"], 1);
    assert_eq!(day(&again)["datasets"][0]["records"], 39);
    assert_eq!(apart.files(), files);
    // Other rules: one revision of all packs; then a third pack joins it.
    let file = apart.project().join("sources/books/source.toml");
    let fixed = source().replace("\"h1::text\"", "{ css = \"h1::text\", clean = [\"trim\"] }");
    fs::write(file, fixed).unwrap();
    let answer = apart.run(&PARSE).ok().json();
    let dataset = &day(&answer)["datasets"][0];
    assert_eq!(
        (
            &dataset["stored"],
            &dataset["commits"].as_array().unwrap().len()
        ),
        (&"revision".into(), &1)
    );
    assert_eq!(dataset["commits"][0]["revision"], 1);
    assert_eq!(count(&apart), "39 39");
    seal_run(&apart, (DAY, "late"), &books(50, 52, 0));
    let answer = apart.run(&PARSE).ok().json();
    assert_eq!(
        day(&answer)["datasets"][0]["stored"],
        "appended",
        "{answer}"
    );
    assert_eq!(count(&apart), "41 41");
    assert_eq!(apart.rejects("clean/books", DAY).len(), 1);
    apart.assert_clean();
    at_once.assert_clean();
}

#[test]
fn a_replay_that_dies_anywhere_goes_on_and_doubles_nothing() {
    let whole = new_lake();
    first(&whole);
    second(&whole);
    whole.run(&PARSE).ok();
    let expected = data(&whole);
    for point in [
        "parse.gathered",
        "ingest.before_commit",
        "log.linked",
        "parse.one_stored",
        "parse.one_stored:2",
        "parse.one_stored:3",
        "parse.one_stored:4",
        "ingest.rejects_durable",
    ] {
        let lake = new_lake();
        first(&lake);
        second(&lake);
        let dead = lake.call(&PARSE).env("LAKEBED_KILL_POINT", point);
        dead.run().killed();
        let answer = lake.run(&PARSE).ok().json();
        assert_eq!(day(&answer)["parsed"], 40, "{point}: {answer}");
        assert_eq!(day(&answer)["datasets"][0]["records"], 39, "{point}");
        lake.run(&["audit", "--deep", "--repair"]);
        lake.assert_clean();
        assert_eq!(data(&lake), expected, "{point}");
        assert_eq!(lake.rejects("clean/books", DAY).len(), 1, "{point}");
    }
}

#[test]
fn more_rejects_than_declared_are_told_each_time_and_stored_all_the_same() {
    let lake = new_lake();
    let mut pages = books(1, 19, 0);
    for n in [19, 20] {
        pages.push(book(n, "T", "?"));
    }
    seal_run(&lake, (DAY, "day"), &pages);
    let told = "2 of 20 records of `clean/books` were rejected, 10.00 % of at most 5.00 %";
    for _ in 0..2 {
        let answer = lake.run(&PARSE).code(1).json();
        assert_eq!(day(&answer)["pass"], false);
        assert_eq!(day(&answer)["breaches"], serde_json::json!([told]));
    }
    let text = lake.run(&PARSE[..4]).code(1);
    text.says(&[told, "lakebed rejects clean/books --date 2026-11-28"]);
    assert_eq!(count(&lake), "18 18");
    assert_eq!(lake.rejects("clean/books", DAY).len(), 2);
    // What rules rejected is no record: there is nothing to try again.
    let commit = lake.rejects("clean/books", DAY)[0]["commit"].clone();
    let commit = commit.as_str().unwrap();
    let retry = [
        "ingest",
        "clean/books",
        "--date",
        DAY,
        "--rejects-of",
        commit,
    ];
    lake.run(&retry);
    assert_eq!(count(&lake), "18 18");
    assert_eq!(lake.rejects("clean/books", DAY).len(), 2);
    // The share is no part of the rules.
    let wider = source().replacen(
        "class = \"log\"\n",
        "class = \"log\"\nparse.max_reject_share = 0.1\n",
        1,
    );
    fs::write(lake.project().join("sources/books/source.toml"), wider).unwrap();
    let answer = lake.run(&PARSE).ok().json();
    assert_eq!(day(&answer)["up_to_date"], true, "{answer}");
    lake.assert_clean();
}

#[test]
fn a_dataset_without_a_record_is_judged_by_the_date() {
    let lake = new_lake();
    // Pages of another kind alone: its records may come with a later run, but something must be parsed.
    let about = vec![(
        "http://books.example/about".into(),
        "",
        b"<h1>about".to_vec(),
    )];
    seal_run(&lake, (DAY, "day"), &about);
    let answer = lake.run(&PARSE).code(1).json();
    assert_eq!(
        day(&answer)["breaches"],
        serde_json::json!(["none of 1 pages fits a rule"])
    );
    second(&lake);
    lake.run(&PARSE).ok();
    // A kind of pages whose records are no longer found.
    let file = lake.project().join("sources/books/source.toml");
    let lost = source().replace(
        "[[parse.page.item]]\ndataset = \"books.links\"",
        "[[parse.page.item]]\neach = \"p.link\"\ndataset = \"books.links\"",
    );
    fs::write(&file, &lost).unwrap();
    lake.run(&PARSE).code(1).says(&["less than half"]);
    let next = ["parse", "books", "--date", "2026-11-29", "--format", "json"];
    seal_run(&lake, ("2026-11-29", "day"), &books(1, 5, 0));
    for _ in 0..2 {
        let answer = lake.run(&next).code(1).json();
        let breach = day(&answer)["breaches"][0].as_str().unwrap().to_owned();
        assert!(
            breach.starts_with("4 pages gave no record of `clean/books.links`"),
            "{breach}"
        );
        assert!(breach.contains("may_be_empty"), "{breach}");
    }
    // It was parsed, and is not parsed again.
    let files = lake.files();
    let declared = lost.replacen(
        "[dataset.books]",
        "[dataset.\"books.links\"]\nmay_be_empty = true\n[dataset.books]",
        1,
    );
    fs::write(&file, declared).unwrap();
    let answer = lake.run(&next).ok().json();
    assert_eq!(day(&answer)["up_to_date"], true);
    assert_eq!(lake.files(), files);
    lake.assert_clean();
}
