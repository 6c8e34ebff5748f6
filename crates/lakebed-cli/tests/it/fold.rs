//! Folds and plans: what is known of each object from day to day, and which objects are fetched in detail.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;

use serde_json::{Value, json};

use crate::lake::{Run, TestLake};

pub(crate) const SOURCE: &str = r#"class = "log"

[fold.house]
key = ["id"]
watch = ["price", "title", "status", "tags"]

[[fold.house.from]]
dataset = "rent.list"
presence = true

[[fold.house.from]]
dataset = "rent.detail"
optional = true
gone = { field = "http_status", is = [404, 410] }

[fold.house.field]
title = { from = ["detail", "list"] }
price = { from = ["list", "detail"] }
address = { from = "detail" }
tags = { from = "detail" }
owner = { rule = "sticky", from = "detail" }
first_price = { rule = "first", from = "list", column = "price" }
last_title = { rule = "last", from = "list", column = "title" }
sightings = { rule = "count", from = "list" }
days_absent = "days_absent"
first_seen = "first_seen"
last_seen = "last_seen"
detailed = { rule = "last_seen", from = "detail" }
touched = "last_touched"
print = { rule = "fingerprint", from = "list", of = ["price", "title"] }
print_at_detail = { rule = "copy", of = "print", at = "detail" }

[fold.house.field.status]
rule = "status"
start = "open"
[[fold.house.field.status.move]]
to = "open"
when = { seen = "list" }
[[fold.house.field.status.move]]
to = "closed"
when = { gone = "detail" }
[[fold.house.field.status.move]]
from = "open"
to = "missing"
when = { absent_days = 3 }

[fold.house.drop]
status = ["closed", "missing"]
untouched_days = 5

[seed]
fold = "house"
stage = "detail"
url = "https://rent.example/{id}"
detailed = "detailed"
fingerprint = "print_at_detail"
open = "open"
stale_days = 7
jitter_days = 2
absent_days = 2
"#;

const LIST: &str = r#"field = [
    { id = 1, name = "id", type = "string" },
    { id = 2, name = "title", type = "string" },
    { id = 3, name = "price", type = "decimal(12,2)" },
    { id = 4, name = "tags", type = "list<string>" },
    { id = 5, name = "_fetched_at", type = "timestamp" },
]
"#;

const DETAIL: &str = r#"field = [
    { id = 1, name = "id", type = "string" },
    { id = 2, name = "title", type = "string" },
    { id = 3, name = "price", type = "decimal(12,2)" },
    { id = 4, name = "tags", type = "list<string>" },
    { id = 5, name = "address", type = "string" },
    { id = 6, name = "owner", type = "string" },
    { id = 7, name = "http_status", type = "int" },
    { id = 8, name = "_fetched_at", type = "timestamp" },
]
"#;

pub(crate) fn rent() -> TestLake {
    rent_with(SOURCE)
}

pub(crate) fn rent_with(source: &str) -> TestLake {
    rent_in(TestLake::new(), source)
}

fn rent_in(lake: TestLake, source: &str) -> TestLake {
    lake.run(&["source", "add", "rent"]).ok();
    fs::write(lake.project().join("sources/rent/source.toml"), source).unwrap();
    let lake = lake
        .dataset("clean/rent.list", LIST)
        .dataset("clean/rent.detail", DETAIL);
    lake.run(&["fold", "rent", "--schema"]).ok();
    for dataset in ["feature/rent.house", "feature/rent.house_events"] {
        lake.run(&["schema", "publish", dataset, "1"]).ok();
    }
    lake
}

pub(crate) fn day(n: u32) -> String {
    format!("2026-10-{n:02}")
}

/// Rows of a date into a dataset; sealed where it says so.
fn put(lake: &TestLake, dataset: &str, n: u32, rows: &[Value], more: &[&str]) -> Run {
    let name = format!("{}-{n}-{}.jsonl", dataset.replace('/', "-"), rows.len());
    let mut text: String = rows.iter().map(|r| format!("{r}\n")).collect();
    if rows.is_empty() {
        text.push('\n');
    }
    lake.file(&name, text);
    let date = day(n);
    let mut args = vec!["ingest", dataset, &name, "--date", &date, "--allow-empty"];
    args.extend(more);
    lake.run(&args)
}

pub(crate) fn list(lake: &TestLake, n: u32, rows: &[Value]) {
    put(lake, "clean/rent.list", n, rows, &["--complete"]).ok();
}

pub(crate) fn detail(lake: &TestLake, n: u32, rows: &[Value]) {
    put(lake, "clean/rent.detail", n, rows, &["--complete"]).ok();
}

pub(crate) fn house(id: &str, title: &str, price: u32) -> Value {
    json!({"id": id, "title": title, "price": price, "tags": ["from the list"], "_fetched_at": "2026-10-01T00:00:00Z"})
}

pub(crate) fn fold(lake: &TestLake, n: u32, more: &[&str]) -> Run {
    let date = day(n);
    let mut args = vec!["fold", "rent", "--date", &date, "--format", "json"];
    args.extend(more);
    lake.run(&args)
}

/// The snapshot of a date by key.
pub(crate) fn snapshot(lake: &TestLake, n: u32) -> BTreeMap<String, Value> {
    let rows = lake.sql(&format!(
        "SELECT * FROM feature.\"rent.house\" WHERE dt = '{}'",
        day(n)
    ));
    rows.into_iter()
        .map(|r| (r["id"].as_str().unwrap().to_owned(), r))
        .collect()
}

/// The events of a date: key, event, field, old, new.
fn events(lake: &TestLake, n: u32) -> Vec<String> {
    let sql = format!(
        "SELECT id, event, field, old, new FROM feature.\"rent.house_events\" WHERE dt = '{}' ORDER BY id, event, field",
        day(n)
    );
    let text = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    let line = |r: &Value| {
        ["id", "event", "field", "old", "new"]
            .map(|c| text(&r[c]))
            .join(" ")
    };
    lake.sql(&sql).iter().map(line).collect()
}

#[test]
fn values_come_from_whom_they_belong_to_and_nulls_erase_nothing() {
    let lake = rent();
    list(
        &lake,
        1,
        &[house("a", "屋 A", 100), house("b", "屋 B", 200)],
    );
    detail(
        &lake,
        1,
        &[
            json!({"id": "a", "title": "A in detail", "price": 111, "tags": ["冷氣"], "address": "台北市", "owner": "王",
            "http_status": 200, "_fetched_at": "2026-10-01T00:00:00Z"}),
        ],
    );
    fold(&lake, 1, &[]).ok();
    let first = snapshot(&lake, 1);
    // At equal instants the one that is named first in `from` goes first.
    assert_eq!(
        (&first["a"]["title"], &first["a"]["price"]),
        (&json!("A in detail"), &json!(100.0))
    );
    // The list has tags, too; the field is the details'.
    assert_eq!(first["a"]["tags"], json!(["冷氣"]));
    assert_eq!(first["b"]["tags"], Value::Null);
    assert_eq!(events(&lake, 1), ["a appeared - - -", "b appeared - - -"]);

    list(
        &lake,
        2,
        &[house("a", "屋 A", 150), house("b", "屋 B", 200)],
    );
    detail(
        &lake,
        2,
        &[
            json!({"id": "a", "title": "A in detail", "owner": "李", "http_status": 200, "_fetched_at": "2026-10-02T00:00:00Z"}),
            json!({"id": "b", "http_status": 404, "_fetched_at": "2026-10-02T01:00:00Z"}),
        ],
    );
    fold(&lake, 2, &[]).ok();
    let second = snapshot(&lake, 2);
    let a = &second["a"];
    assert_eq!(
        (&a["address"], &a["tags"], &a["owner"]),
        (&json!("台北市"), &json!(["冷氣"]), &json!("王"))
    );
    assert_eq!(
        (&a["price"], &a["first_price"], &a["sightings"]),
        (&json!(150.0), &json!(100.0), &json!(2))
    );
    assert_eq!(a["print_at_detail"], a["print"]);
    // A page that is gone moves the state and nothing else: not even when its details came last. It is in the list,
    // and the move of what is seen comes first.
    let b = &second["b"];
    assert_eq!(
        (&b["status"], &b["detailed"], &b["touched"]),
        (&json!("open"), &Value::Null, &json!("2026-10-02"))
    );
    assert_eq!(events(&lake, 2), ["a changed price 100.00 150.00"]);

    list(&lake, 3, &[house("a", "屋 A", 150)]);
    detail(
        &lake,
        3,
        &[json!({"id": "b", "http_status": 404, "_fetched_at": "2026-10-03T01:00:00Z"})],
    );
    fold(&lake, 3, &[]).ok();
    let third = snapshot(&lake, 3);
    assert_eq!(
        (&third["b"]["status"], &third["b"]["price"]),
        (&json!("closed"), &json!(200.0))
    );
    // Both may say the title: the newest does, and today that is the list alone.
    assert_eq!(
        events(&lake, 3),
        [
            "a changed title \"A in detail\" \"屋 A\"",
            "b changed status \"open\" \"closed\"",
            "b vanished - - -"
        ]
    );

    // What comes back is open again.
    list(
        &lake,
        4,
        &[house("a", "屋 A", 150), house("b", "屋 B", 180)],
    );
    fold(&lake, 4, &[]).ok();
    assert_eq!(snapshot(&lake, 4)["b"]["status"], "open");
    assert_eq!(
        events(&lake, 4),
        [
            "b changed price 200.00 180.00",
            "b changed status \"closed\" \"open\"",
            "b returned - - -"
        ]
    );
    lake.assert_clean();
}

#[test]
fn an_incomplete_list_makes_nothing_vanish_and_objects_leave_when_nobody_touches_them() {
    let lake = rent();
    list(&lake, 1, &[house("a", "A", 1), house("b", "B", 2)]);
    fold(&lake, 1, &[]).ok();
    // Not sealed: refused; declared partial: nothing vanishes.
    put(&lake, "clean/rent.list", 2, &[house("a", "A", 1)], &[]).ok();
    fold(&lake, 2, &[])
        .code(20)
        .says(&["is not sealed", "--partial"]);
    fold(&lake, 2, &["--partial"]).ok();
    assert_eq!(snapshot(&lake, 2)["b"]["days_absent"], 0);
    assert!(events(&lake, 2).is_empty());
    fold(&lake, 2, &[]).ok();
    // Three complete days without it: its state moves; days of absence go on from there.
    for n in 3..=5 {
        list(&lake, n, &[house("a", "A", 1)]);
        fold(&lake, n, &[]).ok();
    }
    let fifth = snapshot(&lake, 5);
    assert_eq!(
        (&fifth["b"]["days_absent"], &fifth["b"]["status"]),
        (&json!(3), &json!("missing"))
    );
    list(&lake, 6, &[house("a", "A", 1)]);
    let report = fold(&lake, 6, &[]).ok().json();
    assert_eq!(
        (&report["days"][0]["dropped"], &report["days"][0]["keys"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(snapshot(&lake, 6).len(), 1);
    // A list that lost most of its objects is looked at by a person first.
    let many: Vec<Value> = (0..40)
        .map(|n| house(&format!("n{n:02}"), "N", n))
        .collect();
    list(&lake, 7, &many);
    fold(&lake, 7, &[]).ok();
    list(&lake, 8, &many[..10]);
    fold(&lake, 8, &[])
        .code(23)
        .says(&["would vanish", "--allow-vanished"]);
    fold(&lake, 8, &["--allow-vanished"]).ok();
    assert_eq!(snapshot(&lake, 8)["n39"]["days_absent"], 1);
    lake.assert_clean();
}

/// Attacks FLD-2.
#[test]
fn a_day_declared_incomplete_stays_so_when_the_chain_is_worked_out_anew() {
    let lake = rent();
    let all: Vec<Value> = (0..10).map(|n| house(&format!("h{n}"), "H", n)).collect();
    list(&lake, 1, &all);
    fold(&lake, 1, &[]).ok();
    // Sealed, and yet not whole, as a person knows.
    list(&lake, 2, &all[..6]);
    let declared = fold(&lake, 2, &["--partial"]).ok().json();
    assert_eq!(declared["days"][0]["complete"], false);
    let there = fold(&lake, 2, &[]).ok().json();
    assert_eq!(there["days"][0]["complete"], false);
    list(&lake, 3, &all);
    fold(&lake, 3, &[]).ok();
    let none = |report: &Value| {
        let days = report["days"].as_array().unwrap();
        days.iter()
            .all(|d| d["vanished"] == 0 && d["returned"] == 0)
    };
    let mut corrected = all.clone();
    corrected[0] = house("h0", "H", 100);
    let lines: String = corrected.iter().map(|r| format!("{r}\n")).collect();
    lake.file("new.jsonl", lines);
    lake.run(&["correct", "clean/rent.list", "new.jsonl", "--date", &day(1)])
        .ok();
    for (n, more) in [
        (1, &["--from", "2026-10-01"][..]),
        (2, &["--from", "2026-10-02"]),
        (3, &["--from", "2026-10-02", "--cold-start"]),
    ] {
        let report = fold(&lake, 3, more)
            .ok()
            .says(&["2026-10-02 stays without a complete list", "--complete"])
            .json();
        assert!(none(&report), "{report}");
        if n < 3 {
            assert_eq!(snapshot(&lake, 3)["h9"]["sightings"], 2);
        }
    }
    // Until a person says otherwise.
    fold(&lake, 3, &["--from", &day(1)]).ok();
    let report = fold(&lake, 2, &["--from", &day(2), "--complete"])
        .ok()
        .json();
    assert_eq!(report["days"][0]["vanished"], 4);
    let report = fold(&lake, 3, &["--from", &day(3)]).ok().json();
    assert_eq!(report["days"][0]["returned"], 4);
    let report = fold(&lake, 3, &["--from", &day(1)]).ok().json();
    let days = report["days"].as_array().unwrap();
    assert!(
        days.iter().all(|d| d["outcome"] == "already_there"),
        "{report}"
    );
    assert!(!report.to_string().contains("stays without"), "{report}");
    lake.assert_clean();
}

#[test]
fn names_that_every_dataset_has_are_no_fields() {
    let lake = TestLake::new();
    lake.run(&["source", "add", "rent"]).ok();
    let lake = lake
        .dataset("clean/rent.list", LIST)
        .dataset("clean/rent.detail", DETAIL);
    for name in ["source", "dt", "_x"] {
        let source = SOURCE.replace("sightings = ", &format!("{name} = "));
        fs::write(lake.project().join("sources/rent/source.toml"), source).unwrap();
        lake.run(&["fold", "rent", "--schema"]).code(2).says(&[
            &format!("the name `{name}` is reserved"),
            &format!("fold.house.field.{name}"),
        ]);
    }
}

#[test]
fn a_list_that_was_open_and_is_sealed_now_is_told() {
    let lake = rent();
    list(&lake, 1, &[house("a", "A", 1), house("b", "B", 2)]);
    fold(&lake, 1, &[]).ok();
    put(&lake, "clean/rent.list", 2, &[house("a", "A", 1)], &[]).ok();
    fold(&lake, 2, &["--partial"]).ok();
    let again = fold(&lake, 2, &["--from", &day(1)]).ok().json();
    assert_eq!(again["days"][1]["outcome"], "already_there");
    lake.run(&["seal", "clean/rent.list", "--date", &day(2)])
        .ok();
    let report = fold(&lake, 2, &["--from", &day(1)])
        .ok()
        .says(&["2026-10-02 was folded without a complete list, which is sealed now"])
        .json();
    assert_eq!(report["days"][1]["vanished"], 1);
}

#[test]
fn a_chain_begins_on_no_day_before_the_first_one() {
    let lake = rent();
    fold(&lake, 3, &["--from", "0001-01-01"])
        .code(2)
        .says(&["no input has anything of 2026-10-03 or before"]);
    list(&lake, 2, &[house("a", "A", 1)]);
    list(&lake, 3, &[house("a", "A", 1)]);
    for more in [&[][..], &["--cold-start"]] {
        let args = [&["--from", "0001-01-01"][..], more].concat();
        fold(&lake, 3, &args).code(2).says(&[
            "before the first day of any input, 2026-10-02",
            "--from 2026-10-02",
        ]);
    }
    assert!(snapshot(&lake, 1).is_empty());
    fold(&lake, 3, &["--from", &day(2)]).ok();
}

#[test]
fn rows_that_no_fold_made_are_named_with_the_way_out() {
    let lake = rent();
    for n in 1..=2 {
        list(&lake, n, &[house("a", "A", 1)]);
        fold(&lake, n, &[]).ok();
    }
    list(&lake, 3, &[house("a", "A", 1)]);
    list(&lake, 4, &[house("a", "A", 1)]);
    let row = json!({"id": "a", "title": "by hand"});
    put(&lake, "feature/rent.house", 3, &[row], &["--complete"]).ok();
    for n in [3, 4] {
        fold(&lake, n, &[]).code(22).says(&[
            "`feature/rent.house` has rows of 2026-10-03 that no fold made",
            "--from 2026-10-03",
            "--cold-start",
        ]);
    }
    fold(&lake, 4, &["--from", &day(3)]).ok();
    assert_eq!(snapshot(&lake, 4)["a"]["sightings"], 4);
    lake.assert_clean();
}

#[test]
fn a_fold_is_made_once_and_changed_inputs_are_told() {
    let lake = rent();
    for n in 1..=3 {
        list(&lake, n, &[house("a", "A", n), house("b", "B", 7)]);
        fold(&lake, n, &[]).ok();
    }
    let before = lake.files();
    let again = fold(&lake, 3, &[]).ok().json();
    assert_eq!(again["days"][0]["outcome"], "already_there");
    assert_eq!(lake.files(), before);

    // Late rows wait for the next fold, and come marked.
    put(
        &lake,
        "clean/rent.list",
        3,
        &[house("c", "late", 9)],
        &["--late", "--complete"],
    )
    .ok();
    let waiting = fold(&lake, 3, &[]).ok().json();
    assert_eq!(waiting["days"][0]["waiting_rows"], 1);
    list(&lake, 4, &[house("a", "A", 3), house("b", "B", 7)]);
    let report = fold(&lake, 4, &[]).ok().json();
    assert_eq!(report["days"][0]["inputs"][0]["late"], 1);
    let c = &snapshot(&lake, 4)["c"];
    // It was there yesterday, and is not there today.
    assert_eq!(
        (&c["days_absent"], &c["first_seen"]),
        (&json!(1), &json!("2026-10-03"))
    );
    let late = lake.sql("SELECT id, event FROM feature.\"rent.house_events\" WHERE late");
    assert_eq!(late, [json!({"id": "c", "event": "appeared"})]);
    // Once is enough.
    list(&lake, 5, &[house("a", "A", 3), house("b", "B", 7)]);
    let report = fold(&lake, 5, &[]).ok().json();
    assert_eq!(report["days"][0]["inputs"][0]["late"], 0);

    // A corrected day makes the chain stale, and says where to begin.
    lake.file("new.jsonl", format!("{}\n", house("a", "A", 77)));
    lake.run(&["correct", "clean/rent.list", "new.jsonl", "--date", &day(2)])
        .ok();
    fold(&lake, 2, &[]).code(22).says(&["--from 2026-10-02"]);
    list(&lake, 6, &[house("a", "A", 3)]);
    fold(&lake, 6, &[]).code(22).says(&["--from 2026-10-02"]);
    let report = fold(&lake, 5, &["--from", &day(2)]).ok().json();
    let outcomes: Vec<&Value> = report["days"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| &d["outcome"])
        .collect();
    assert_eq!(outcomes, ["revised"; 4]);
    assert_eq!(snapshot(&lake, 3)["c"]["days_absent"], 0);
    let again = fold(&lake, 5, &["--from", &day(2)]).ok().json();
    assert!(
        again["days"]
            .as_array()
            .unwrap()
            .iter()
            .all(|d| d["outcome"] == "already_there")
    );
    fold(&lake, 6, &[]).ok();
    lake.assert_clean();
}

/// File contents of the snapshots and events by dataset and date.
fn contents(lake: &TestLake) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for file in lake
        .files()
        .into_keys()
        .filter(|f| f.starts_with("feature/") && f.ends_with(".parquet"))
    {
        let folder = file.rsplit_once('/').unwrap().0.to_owned();
        found.insert(folder, fs::read(lake.lake().join(file)).unwrap());
    }
    found
}

/// A market of so many days: houses come, change, vanish and come back by a fixed rule.
fn market(lake: &TestLake, days: u32) {
    for n in 1..=days {
        let rows: Vec<Value> = (0..60_u32)
            .filter(|h| h % 7 < n && (h + n) % 11 != 0)
            .map(|h| {
                let mut row = house(
                    &format!("h{h:02}"),
                    &format!("房 {h}"),
                    100 + h + (n + h) / 9,
                );
                row["_fetched_at"] = json!(format!("2026-10-{:02}T00:00:00Z", n % 28 + 1));
                row
            })
            .collect();
        let details: Vec<Value> = (0..60_u32)
            .filter(|h| (h + 3 * n) % 13 == 0)
            .map(|h| match h % 4 {
                0 => json!({"id": format!("h{h:02}"), "http_status": 404}),
                _ => json!({"id": format!("h{h:02}"), "address": format!("街 {n}"), "http_status": 200}),
            })
            .collect();
        list(lake, n, &rows);
        if !details.is_empty() {
            detail(lake, n, &details);
        }
    }
}

#[test]
fn a_chain_in_one_go_is_what_the_days_were() {
    let (daily, chain, revised) = (rent(), rent(), rent());
    for lake in [&daily, &chain, &revised] {
        market(lake, 12);
    }
    for n in 1..=12 {
        fold(&daily, n, &["--threads", "1"]).ok();
    }
    fold(&chain, 12, &["--from", &day(1), "--threads", "3"]).ok();
    assert_eq!(contents(&daily).len(), 24);
    assert_eq!(contents(&daily), contents(&chain));
    // By other rules, then by these again: revisions hold the same bytes.
    let source = revised.project().join("sources/rent/source.toml");
    fs::write(
        &source,
        SOURCE.replace("\"title\", \"status\", \"tags\"]", "\"title\"]"),
    )
    .unwrap();
    fold(&revised, 12, &["--from", &day(1)]).ok();
    fs::write(&source, SOURCE).unwrap();
    fold(&revised, 12, &[]).code(22).says(&["by other rules"]);
    fold(&revised, 12, &["--from", &day(1), "--memory", "0"]).ok();
    assert_eq!(contents(&daily), contents(&revised));
    revised.assert_clean();
}

#[test]
fn a_gap_is_folded_first_and_a_cold_start_is_asked_for() {
    let lake = rent_with(&SOURCE.replace("[fold.house]\n", "[fold.house]\nreplay_days = 4\n"));
    list(&lake, 1, &[house("a", "A", 1)]);
    list(&lake, 2, &[house("a", "A", 1)]);
    fold(&lake, 2, &[])
        .code(21)
        .says(&["--from 2026-10-01", "--cold-start"]);
    fold(&lake, 2, &["--cold-start"])
        .ok()
        .says(&["begins from nothing"]);
    // A day that nobody looked at lies within the gap.
    list(&lake, 4, &[house("b", "B", 1)]);
    list(&lake, 5, &[house("a", "A", 1)]);
    let report = fold(&lake, 5, &[])
        .ok()
        .says(&["nobody looked at the list of 2026-10-03"])
        .json();
    let days: Vec<(&Value, &Value)> = report["days"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| (&d["date"], &d["complete"]))
        .collect();
    assert_eq!(
        days,
        [
            (&json!("2026-10-03"), &json!(false)),
            (&json!("2026-10-04"), &json!(true)),
            (&json!("2026-10-05"), &json!(true)),
        ]
    );
    assert_eq!(snapshot(&lake, 3)["a"]["days_absent"], 0);
    assert_eq!(snapshot(&lake, 4)["a"]["days_absent"], 1);
    list(&lake, 11, &[house("a", "A", 1)]);
    fold(&lake, 11, &[])
        .code(21)
        .says(&["6 days before", "--from 2026-10-06"]);
    // A file of what is there so far; nobody's parent, and without events.
    put(&lake, "clean/rent.list", 6, &[house("z", "Z", 1)], &[]).ok();
    let report = fold(&lake, 6, &["--provisional"]).ok().json();
    let file = report["days"][0]["file"].as_str().unwrap();
    assert!(
        file.ends_with("fold/rent/2026-10-06/house.provisional.parquet"),
        "{file}"
    );
    assert!(fs::metadata(file).is_ok());
    assert_eq!(report["days"][0]["vanished"], 0);
    assert!(snapshot(&lake, 6).is_empty());
    lake.assert_clean();
}

#[test]
fn a_fold_that_dies_anywhere_ends_as_if_it_had_not() {
    let whole = rent();
    market(&whole, 3);
    fold(&whole, 3, &["--from", &day(1)]).ok();
    for point in [
        "ingest.stage_created",
        "ingest.file_durable:2",
        "fold.staged:2",
        "ingest.before_commit:2",
        "log.committed:3",
        "fold.events_committed:2",
        "fold.snapshot_committed:2",
        "success.one_written",
    ] {
        let lake = rent();
        market(&lake, 3);
        let args = [
            "fold",
            "rent",
            "--date",
            "2026-10-03",
            "--from",
            "2026-10-01",
        ];
        lake.call(&args)
            .env("LAKEBED_KILL_POINT", point)
            .run()
            .killed();
        lake.run(&args).ok();
        assert_eq!(contents(&lake), contents(&whole), "{point}");
        lake.run(&["audit", "--repair"]);
        lake.assert_clean();
        assert_eq!(contents(&lake), contents(&whole), "{point}");
    }
}

fn seed(lake: &TestLake, n: u32, more: &[&str]) -> Run {
    let date = day(n);
    let mut args = vec!["seed", "rent", "--date", &date, "--format", "json"];
    args.extend(more);
    lake.run(&args)
}

#[test]
fn a_plan_says_why_and_refuses_to_guess() {
    let lake = rent();
    list(
        &lake,
        1,
        &[
            house("甲/1", "A", 1),
            house("b", "B", 2),
            house("c", "C", 3),
            house("d", "D", 4),
        ],
    );
    let plan = seed(&lake, 1, &[]).ok().json();
    assert_eq!(plan["reasons"], json!({"new": 4}));
    let lines = fs::read_to_string(plan["file"].as_str().unwrap()).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        json!({"url": "https://rent.example/b", "stage": "detail", "reason": "new", "key": "b"})
    );
    assert!(
        lines.contains("https://rent.example/%E7%94%B2%2F1"),
        "{lines}"
    );
    let all: Vec<Value> = ["甲/1", "b", "c", "d"]
        .iter()
        .map(|id| json!({"id": id, "address": "x", "http_status": 200}))
        .collect();
    detail(&lake, 1, &all);
    // Yesterday is not folded, then today's list is not complete.
    put(
        &lake,
        "clean/rent.list",
        2,
        &[
            house("甲/1", "A", 1),
            house("b", "B", 99),
            house("e", "E", 5),
        ],
        &[],
    )
    .ok();
    seed(&lake, 2, &[]).code(26).says(&["not sealed"]);
    lake.run(&["seal", "clean/rent.list", "--date", &day(2)])
        .ok();
    seed(&lake, 2, &[])
        .code(25)
        .says(&["lakebed fold rent --name house --date 2026-10-01"]);
    fold(&lake, 1, &[]).ok();
    let plan = seed(&lake, 2, &[]).ok().json();
    assert_eq!(plan["reasons"], json!({"changed": 1, "new": 1}));
    assert_eq!(plan["skipped"], json!({"fresh": 1, "waiting": 2}));
    // Twice: the same bytes, untouched.
    let file = plan["file"].as_str().unwrap().to_owned();
    let before = (
        fs::read(&file).unwrap(),
        fs::metadata(&file).unwrap().modified().unwrap(),
    );
    assert_eq!(
        seed(&lake, 2, &["--threads", "1"]).ok().json()["up_to_date"],
        true
    );
    assert_eq!(
        (
            fs::read(&file).unwrap(),
            fs::metadata(&file).unwrap().modified().unwrap()
        ),
        before
    );
    let why = |n: u32, key: &str| {
        let told = seed(&lake, n, &["--explain", key]).ok().json();
        format!(
            "{} {}",
            told["verdict"].as_str().unwrap(),
            told["reason"].as_str().unwrap()
        )
    };
    assert_eq!(
        (why(2, "b"), why(2, "甲/1")),
        ("request changed".to_owned(), "skip fresh".to_owned())
    );
    seed(&lake, 2, &["--explain", "nobody"]).code(2);
    // Another plan of the run is not overwritten in silence.
    put(
        &lake,
        "clean/rent.list",
        2,
        &[house("f", "F", 5)],
        &["--late", "--complete"],
    )
    .ok();
    seed(&lake, 2, &[]).code(27).says(&["--replace"]);
    assert_eq!(
        seed(&lake, 2, &["--replace"]).ok().json()["reasons"]["new"],
        2
    );

    // Absent for two days, back again, and too old.
    detail(
        &lake,
        2,
        &[
            json!({"id": "b", "address": "y", "http_status": 200}),
            json!({"id": "e", "http_status": 200}),
            json!({"id": "f", "http_status": 200}),
        ],
    );
    fold(&lake, 2, &[]).ok();
    let rest = [
        house("甲/1", "A", 1),
        house("b", "B", 99),
        house("e", "E", 5),
        house("f", "F", 5),
    ];
    list(&lake, 3, &[&rest[..], &[house("d", "D", 4)]].concat());
    assert_eq!(
        (why(3, "c"), why(3, "d")),
        ("request absent".to_owned(), "request returned".to_owned())
    );
    for n in 3..=10 {
        if n > 3 {
            list(&lake, n, &rest);
        }
        fold(&lake, n, &[]).ok();
    }
    list(&lake, 11, &rest);
    assert_eq!(why(11, "甲/1"), "request stale");
    // "c" is missing by its state: nobody asks for it any more.
    assert_eq!(why(6, "c"), "skip closed");
}

#[test]
fn a_plan_that_dies_between_its_files_is_made_again() {
    let lake = rent();
    list(&lake, 1, &[house("a", "A", 1)]);
    let args = ["seed", "rent", "--date", "2026-10-01"];
    lake.call(&args)
        .env("LAKEBED_KILL_POINT", "seed.plan_written")
        .run()
        .killed();
    let folder = lake.project().join("seed/rent/2026-10-01.day");
    assert!(folder.join("plan.jsonl").exists() && !folder.join("plan.json").exists());
    let lines = fs::read(folder.join("plan.jsonl")).unwrap();
    lake.run(&args).ok();
    assert!(folder.join("plan.json").exists());
    assert_eq!(fs::read(folder.join("plan.jsonl")).unwrap(), lines);
}

#[test]
fn the_schema_grows_with_the_rules_and_old_snapshots_keep_their_values() {
    let lake = rent();
    list(&lake, 1, &[house("a", "A", 1)]);
    fold(&lake, 1, &[]).ok();
    let source = lake.project().join("sources/rent/source.toml");
    fs::write(&source, SOURCE.replace("title = { from", "seen_at = { rule = \"last\", from = \"list\", column = \"_fetched_at\" }\ntitle = { from")).unwrap();
    list(&lake, 2, &[house("a", "A", 2)]);
    fold(&lake, 2, &[]).code(24).says(&["--schema"]);
    // Whoever asks whether the source is ready is told, too.
    lake.run(&["source", "test", "rent"]).code(1).prints(&[
        "FAILED  folds",
        "fold.house: ",
        "seen_at",
    ]);
    lake.run(&["fold", "rent", "--schema"]).ok();
    lake.run(&["schema", "publish", "feature/rent.house", "2"])
        .ok();
    lake.run(&["source", "test", "rent"])
        .ok()
        .prints(&["1 fold can be made"]);
    fold(&lake, 2, &[]).ok();
    let a = &snapshot(&lake, 2)["a"];
    assert_eq!(
        (&a["sightings"], &a["first_price"]),
        (&json!(2), &json!(1.0))
    );
    assert!(a["seen_at"].as_str().unwrap().starts_with("2026-10-01"));
    lake.assert_clean();
}

/// The test site as a process.
struct Site(Child);

impl Site {
    /// The site, and its address.
    fn start(lake: &TestLake) -> (Self, String) {
        let args = ["demo-site", "--port", "0", "--listings", "100"];
        let mut child = lake.call(&args).command().spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        (Self(child), line.trim().trim_end_matches('/').to_owned())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_plan_is_crawled_as_it_is_and_an_empty_one_is_green() {
    let lake = TestLake::new();
    let (_site, url) = Site::start(&lake);
    let crawl = "[crawl]\nuser_agent = \"lakebed-test/1 (+https://lakebed.example/bot)\"\nhosts = [\"127.0.0.1\"]\n\
        allow_private = [\"127.0.0.0/8\"]\nmin_requests = 50\nmin_done = 50\nseed_stage = \"list\"\n\
        [crawl.stage.list]\n[crawl.stage.detail]\n";
    let source = SOURCE.replace(
        "https://rent.example/{id}",
        &format!("{url}/zh/list?page={{id}}"),
    );
    let rent = rent_in(lake, &format!("{source}{crawl}"));
    fs::write(
        rent.project().join("lakebed.local.toml"),
        "[crawl.usual]\npause_ms = 0\n",
    )
    .unwrap();
    let rows = [house("1", "A", 1), house("2", "B", 2)];
    list(&rent, 1, &rows);
    let plan = seed(&rent, 1, &[]).ok().json();
    let file = plan["file"].as_str().unwrap().to_owned();
    let crawl = |n: u32, file: &str| {
        let date = day(n);
        rent.run(&[
            "crawl",
            "rent",
            "--date",
            &date,
            "--run",
            "day-detail",
            "--plan",
            file,
            "--format",
            "json",
        ])
    };
    // Fewer than the source must have, and as many as the plan says.
    let closed = crawl(1, &file).ok().json();
    assert_eq!(
        (&closed["books"]["states"]["done"], &closed["pass"]),
        (&json!(2), &json!(true))
    );
    // Once more: what it said, and nothing is fetched.
    let again = crawl(1, &file).ok().json();
    assert_eq!(again["books"], closed["books"]);
    let told = rent
        .project()
        .join("crawl/rent/2026-10-01.day-detail/run.json");
    let told: Value = serde_json::from_slice(&fs::read(told).unwrap()).unwrap();
    let hash = format!("plan:{}", &plan["plan"].as_str().unwrap()[..59]);
    assert_eq!(told["plan_hash"], hash);
    // What no crawl takes is refused before it is a plan.
    let declared = fs::read_to_string(rent.project().join("sources/rent/source.toml")).unwrap();
    for (from, to, said) in [
        (&*url, "/relative", "seed.url"),
        (&*url, "ftp://127.0.0.1", "neither http nor https"),
        (&*url, "http://elsewhere.example", "leads to no host"),
        ("stage = \"detail\"", "stage = \"detial\"", "seed.stage"),
    ] {
        let changed = declared.replacen(from, to, 1);
        assert_ne!(changed, declared, "{from}");
        fs::write(rent.project().join("sources/rent/source.toml"), changed).unwrap();
        let refused = seed(&rent, 1, &["--run", "third"]).code(2).says(&[said]);
        let names = said == "seed.stage" || refused.stderr.contains("object");
        assert!(names, "{refused}");
    }
    fs::write(rent.project().join("sources/rent/source.toml"), declared).unwrap();
    assert!(
        !rent
            .project()
            .join("seed/rent/2026-10-01.third/plan.json")
            .exists()
    );
    // A plan whose lines are not those that its head names.
    let lines = fs::read_to_string(&file).unwrap();
    fs::write(&file, lines.replace("page=2", "page=3")).unwrap();
    crawl(1, &file).code(4).says(&["its lines are not those"]);
    fs::write(&file, &lines).unwrap();
    // Of another date.
    crawl(2, &file).code(2).says(&["2026-10-01"]);
    // Without its head it is no plan, whatever is in it, whatever it is called, whatever the run has.
    let head = file.replace(".jsonl", ".json");
    let moved = rent.project().join("head.away");
    fs::rename(&head, &moved).unwrap();
    for (text, date) in [("", 2), (lines.lines().next().unwrap(), 2), (&lines, 1)] {
        fs::write(&file, text).unwrap();
        crawl(date, &file)
            .code(2)
            .says(&["no head beside it", "--seeds"]);
    }
    rent.file("by-hand.jsonl", &lines);
    crawl(2, "by-hand.jsonl")
        .code(2)
        .says(&["no head beside it", "--seeds"]);
    fs::copy(&moved, rent.root().join("inbox/by-hand.json")).unwrap();
    crawl(2, "by-hand.jsonl").code(2).says(&["2026-10-01"]);
    crawl(1, "by-hand.jsonl").ok();
    fs::rename(&moved, &head).unwrap();

    detail(
        &rent,
        1,
        &[
            json!({"id": "1", "http_status": 200}),
            json!({"id": "2", "http_status": 200}),
        ],
    );
    fold(&rent, 1, &[]).ok();
    list(&rent, 2, &rows);
    let plan = seed(&rent, 2, &[]).ok().json();
    assert_eq!(
        (&plan["requests"], &plan["skipped"]),
        (&json!(0), &json!({"fresh": 2}))
    );
    let empty = plan["file"].as_str().unwrap().to_owned();
    let closed = crawl(2, &empty).ok().json();
    assert_eq!(
        (&closed["pass"], &closed["pack"]),
        (&json!(true), &Value::Null)
    );
    let date = day(2);
    let again = rent
        .run(&[
            "crawl",
            "close",
            "rent",
            "--date",
            &date,
            "--run",
            "day-detail",
        ])
        .ok();
    assert!(again.stdout.contains("the plan is empty"), "{again}");
    // Without a plan nothing to do is red, as ever.
    rent.file("none.txt", "");
    rent.run(&[
        "crawl", "rent", "--date", &date, "--run", "other", "--seeds", "none.txt",
    ])
    .code(13);
    // The fold of a day without details goes on.
    fold(&rent, 2, &[]).ok();
}
