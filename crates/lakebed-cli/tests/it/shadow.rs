//! Other rules beside those there are, until a switch is safe.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use serde_json::{Value, json};

use crate::lake::{Run, TestLake};
use crate::parse::{SCHEMA, SOURCE, book, lake, seal};

/// Compares the rules, changed as said, over these dates.
fn shadow(lake: &TestLake, (from, to): (&str, &str), dates: &str, more: &[&str]) -> Run {
    assert!(SOURCE.contains(from));
    lake.file("next.toml", SOURCE.replace(from, to));
    let args = ["shadow", "books", "--with", "next.toml", "--date", dates];
    lake.run(&[&args[..], more].concat())
}

fn as_json(lake: &TestLake, change: (&str, &str), dates: &str, more: &[&str], code: i32) -> Value {
    let all = [more, &["--format", "json"]].concat();
    shadow(lake, change, dates, &all).code(code).json()
}

/// Rules that are written otherwise and mean the same.
const SAME: (&str, &str) = (
    "title = \"h1::text\"",
    "title = { css = \"h1::text\", clean = [\"trim\"] }",
);

#[test]
fn rules_that_mean_the_same_agree_until_a_switch_is_safe() {
    let lake = lake();
    let files = lake.files();
    let answer = as_json(&lake, SAME, "2026-11-28..2026-11-29", &[], 0);
    assert_eq!(
        json!([answer["pass"], answer["safe"], answer["safe_after"]]),
        json!([true, false, 3])
    );
    let day = &answer["dates"][0];
    // 33 books of 35 pages; every book leads to the next; one is rejected, one fits no rule.
    assert_eq!(json!([day["verdict"], day["pages"]]), json!(["AGREE", 35]));
    let record = json!({ "agree": 33, "changed": 0, "only_old": 0, "only_new": 0 });
    assert_eq!(day["items"]["record books"], record);
    assert_eq!(day["items"]["page"]["agree"], 35);
    // A third equal day makes it safe; what was compared is not compared again.
    seal(&lake, "2026-11-30", &[book(1, "T", "1.70")]);
    let run = shadow(&lake, SAME, "2026-11-28..2026-11-30", &[]).ok();
    run.prints(&["3 days compared; the newest 3 in a row agree: the switch is safe"]);
    let kept = lake.project().join("shadow/books/parse");
    let pair = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    let names: Vec<_> = fs::read_dir(&pair)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    // Nothing of the lake was touched.
    let pack = |f: &&String| !f.contains("2026-11-30") && !f.starts_with("_lake/log");
    assert_eq!(
        files.keys().filter(pack).collect::<Vec<_>>(),
        lake.files().keys().filter(pack).collect::<Vec<_>>()
    );
}

#[test]
fn what_differs_is_named_by_item_and_field() {
    let lake = lake();
    let cents = (
        "clean = [{ replace = [\"£\", \"\"] }, \"decimal\"]",
        "clean = [{ replace = [\"£\", \"\"] }, { regex = '\\d+' }]",
    );
    let answer = as_json(&lake, cents, "2026-11-28..2026-11-29", &[], 1);
    let day = &answer["dates"][0];
    assert_eq!(
        json!([answer["pass"], day["verdict"]]),
        json!([false, "DIFF"])
    );
    let books = &day["items"]["record books"];
    // `１` of full width is a digit for `decimal`, and for `\d`, too: kept as it stands.
    assert_eq!(json!([books["agree"], books["changed"]]), json!([0, 33]));
    assert_eq!(day["fields"], json!({ "record books $.price": 33 }));
    let pair = fs::read_dir(lake.project().join("shadow/books/parse"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let lines = fs::read_to_string(pair.join("2026-11-28.diff.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 33);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        json!([
            first["kind"],
            first["key"],
            first["verdict"],
            first["differences"][0]["path"]
        ]),
        json!(["record books", "1", "changed", "$.price"])
    );
    assert_eq!(
        json!([
            first["differences"][0]["expected"],
            first["differences"][0]["found"]
        ]),
        json!(["1.50", "1"])
    );
    // A field may be left out, of a dataset or of all; then the days agree.
    for ignored in ["price", "books.price"] {
        as_json(
            &lake,
            cents,
            "2026-11-28..2026-11-29",
            &["--ignore", ignored],
            0,
        );
    }
    as_json(&lake, cents, "2026-11-29", &["--ignore", "other.price"], 1);
    // Fewer records and other links differ, too.
    let fewer = (
        "required = true }\n[[parse.page.follow]]",
        "required = true }\nnone = { css = \"i::text\", required = true }\n[[parse.page.follow]]",
    );
    let answer = as_json(&lake, fewer, "2026-11-29", &[], 1);
    assert_eq!(answer["dates"][0]["items"]["record books"]["only_old"], 1);
    let links = ("stage = \"page\"", "stage = \"other\"");
    let answer = as_json(&lake, links, "2026-11-29", &[], 1);
    assert_eq!(answer["dates"][0]["items"]["link page"]["only_old"], 1);
    assert_eq!(answer["dates"][0]["items"]["link other"]["only_new"], 1);
}

#[test]
fn days_are_written_by_both_until_one_goes() {
    let lake = lake();
    lake.run(&[
        "parse",
        "books",
        "--date",
        "2026-11-28",
        "--on-mismatch",
        "fail",
    ]);
    lake.file("next.toml", SOURCE.replace(SAME.0, SAME.1));
    let by_next = ["parse", "books", "--rules", "next.toml"];
    // Both would write into one dataset.
    let day = ["--date", "2026-11-28"];
    lake.run(&[&by_next[..], &day].concat())
        .code(1)
        .says(&["give records of `books`", "books.next"]);
    let page = ["--try", "http://books.example/book/2", "--format", "json"];
    lake.run(&[&by_next[..], &page].concat()).ok();
    let own = SOURCE.replace(SAME.0, SAME.1).replace(
        "[[parse.page.item]]\n",
        "[[parse.page.item]]\ndataset = \"books.next\"\n",
    );
    lake.file("next.toml", own);
    lake.schema("clean/books.next", 1, SCHEMA);
    lake.run(&["schema", "publish", "clean/books.next", "1"])
        .ok();
    lake.run(&[&by_next[..], &day].concat());
    let rows = |dataset: &str| {
        lake.sql(&format!(
            "SELECT id, title, price FROM clean.\"{dataset}\" ORDER BY id"
        ))
    };
    assert_eq!(rows("books").len(), 33);
    assert_eq!(rows("books"), rows("books.next"));
    lake.assert_clean();
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let lake = lake();
    lake.file("same.toml", SOURCE);
    let args = ["shadow", "books", "--date", "2026-11-29", "--with"];
    lake.run(&[&args[..], &["same.toml"]].concat())
        .code(1)
        .says(&["both sets of rules are the same"]);
    lake.run(&[&args[..], &["none.toml"]].concat())
        .code(2)
        .says(&["none.toml"]);
    shadow(&lake, ("h1::text", "h1..::text"), "2026-11-29", &[])
        .code(2)
        .says(&["next.toml"]);
    shadow(&lake, SAME, "2026-11-01", &[])
        .code(1)
        .says(&["no pack of 2026-11-01"]);
    assert!(!lake.project().join("shadow").exists());
}
