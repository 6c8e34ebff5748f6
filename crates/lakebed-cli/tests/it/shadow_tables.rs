//! Other folds and other queries beside those there are, over the same rows.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::derive::{GROUPED, lake_of, source as deriving};
use crate::fold::{SOURCE, day, detail, fold, house, list, rent, rent_with};
use crate::lake::{Run, TestLake};

/// Compares the fold, changed as said, over these days.
fn shadow_fold(lake: &TestLake, (from, to): (&str, &str), days: (u32, u32), more: &[&str]) -> Run {
    assert!(SOURCE.contains(from), "{from}");
    lake.file("next.toml", SOURCE.replace(from, to));
    let dates = format!("{}..{}", day(days.0), day(days.1));
    let args = [
        "shadow",
        "rent",
        "fold",
        "--with",
        "next.toml",
        "--date",
        &dates,
    ];
    lake.run(&[&args[..], more].concat())
}

fn fold_json(
    lake: &TestLake,
    change: (&str, &str),
    days: (u32, u32),
    more: &[&str],
    code: i32,
) -> Value {
    let all = [more, &["--format", "json"]].concat();
    shadow_fold(lake, change, days, &all).code(code).json()
}

/// The differing items of a date of the only pair of the stage.
fn lines(lake: &TestLake, stage: &str, date: &str) -> Vec<Value> {
    let kept = lake.project().join("shadow/rent").join(stage);
    let files: Vec<PathBuf> = fs::read_dir(kept)
        .unwrap()
        .map(|pair| pair.unwrap().path().join(format!("{date}.diff.jsonl")))
        .filter(|file| file.exists())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(&files[0]).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What readers see and every record of every log.
fn lake_files(lake: &TestLake) -> Vec<String> {
    let catalog = |f: &String| !f.contains("catalog");
    lake.files().into_keys().filter(catalog).collect()
}

/// Three days: a price that changes, a house that vanishes, a page that is gone, a list that is not whole.
fn folded() -> TestLake {
    let lake = rent();
    fill(&lake);
    lake
}

fn fill(lake: &TestLake) {
    list(
        lake,
        1,
        &[
            house("a", "屋 A", 100),
            house("b", "屋 B", 200),
            house("c", "屋 C", 300),
        ],
    );
    detail(
        lake,
        1,
        &[
            json!({"id": "a", "title": "A in detail", "price": 111, "address": "台北市", "owner": "王",
            "http_status": 200, "_fetched_at": "2026-10-01T00:00:00Z"}),
        ],
    );
    fold(lake, 1, &[]).ok();
    list(lake, 2, &[house("a", "屋 A", 150), house("b", "屋 B", 200)]);
    detail(lake, 2, &[]);
    fold(lake, 2, &[]).ok();
    list(lake, 3, &[house("a", "屋 A", 150)]);
    detail(lake, 3, &[]);
    fold(lake, 3, &["--partial"]).ok();
}

/// A fold that is written otherwise and means the same: events come in another order of fields.
const SAME: (&str, &str) = (
    "watch = [\"price\", \"title\", \"status\", \"tags\"]",
    "watch = [\"tags\", \"status\", \"title\", \"price\"]",
);

#[test]
fn folds_that_mean_the_same_agree_and_leave_the_lake_alone() {
    let lake = folded();
    let before = lake_files(&lake);
    let answer = fold_json(&lake, SAME, (1, 3), &[], 0);
    assert_eq!(json!([answer["pass"], answer["safe"]]), json!([true, true]));
    let items = |n: usize| {
        let of = |kind: &str| answer["dates"][n]["items"][kind]["agree"].clone();
        (of("row rent.house"), of("event rent.house_events"))
    };
    // Three appear; a price and a title change and one house vanishes; nothing vanishes of a list that is not whole.
    assert_eq!(items(0), (json!(3), json!(3)));
    assert_eq!(items(1), (json!(3), json!(3)));
    assert_eq!(items(2), (json!(3), Value::Null));
    assert_eq!(answer["dates"][0]["stage"], "fold.house");
    assert_eq!(lake_files(&lake), before);
    assert!(!lake.project().join("shadow/rent/work").exists());
    // What was compared is not compared again: a record that was touched by hand is told as it stands.
    let kept = lake.project().join("shadow/rent/fold.house");
    let pair = fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let record = pair.join(format!("{}.json", day(2)));
    let text = fs::read_to_string(&record).unwrap();
    let touched = text.replace("\"agree\": 3", "\"agree\": 33");
    assert_ne!(text, touched);
    fs::write(&record, touched).unwrap();
    let answer = fold_json(&lake, SAME, (1, 3), &[], 0);
    assert_eq!(
        answer["dates"][1]["items"]["row rent.house"]["agree"],
        json!(33)
    );
    // Compared in another way it is another question.
    let answer = fold_json(&lake, SAME, (2, 2), &["--ignore", "title"], 0);
    assert_eq!(
        answer["dates"][0]["items"]["row rent.house"]["agree"],
        json!(3)
    );
    lake.assert_clean();
}

#[test]
fn a_changed_rule_changes_one_field_of_known_keys() {
    let lake = folded();
    // The details go first for a price now: of `a` on the first day alone both have one.
    let change = (
        "price = { from = [\"list\", \"detail\"] }",
        "price = { from = [\"detail\", \"list\"] }",
    );
    let answer = fold_json(&lake, change, (1, 2), &[], 1);
    let first = &answer["dates"][0];
    assert_eq!(
        json!([first["verdict"], first["items"]["row rent.house"]]),
        json!(["DIFF", { "agree": 2, "changed": 1, "only_old": 0, "only_new": 0 }])
    );
    assert_eq!(first["fields"], json!({ "row rent.house $.price": 1 }));
    let told = lines(&lake, "fold.house", &day(1));
    assert_eq!(
        told,
        [json!({
            "kind": "row rent.house", "key": "a", "verdict": "changed",
            "differences": [{ "path": "$.price", "expected": "100.00", "found": "111.00" }]
        })]
    );
    // The second day begins with what is stored of the first, in both.
    assert_eq!(answer["dates"][1]["verdict"], "AGREE");
    fold_json(&lake, change, (1, 1), &["--ignore", "price"], 0);
    fold_json(&lake, change, (1, 1), &["--ignore", "rent.house.price"], 0);
    fold_json(&lake, change, (1, 1), &["--ignore", "rent.other.price"], 1);
    // A field that only one has differs once in every row, in the events of it, too, until it is left out.
    let less = ("watch = [\"price\", ", "watch = [");
    let answer = fold_json(&lake, less, (1, 2), &[], 1);
    assert_eq!(answer["dates"][0]["verdict"], "AGREE");
    let events = &answer["dates"][1]["items"]["event rent.house_events"];
    assert_eq!(
        *events,
        json!({ "agree": 2, "changed": 0, "only_old": 1, "only_new": 0 })
    );
    assert!(
        lines_of_all(&lake, &day(2))
            .iter()
            .any(|line| line["key"] == "[\"a\",\"price\"]" && line["verdict"] == "only_old")
    );
    let more = (
        "last_seen = \"last_seen\"\n",
        "last_seen = \"last_seen\"\nsame_title = { from = \"list\", column = \"title\" }\n",
    );
    let answer = fold_json(&lake, more, (1, 1), &[], 1);
    assert_eq!(
        answer["dates"][0]["fields"],
        json!({ "row rent.house $.same_title": 3 })
    );
    fold_json(&lake, more, (1, 1), &["--ignore", "same_title"], 0);
    // Nothing of it was published.
    lake.run(&["schema", "show", "feature/rent.house", "2"])
        .code(2)
        .says(&["versions 1 to 1 are"]);
}

fn lines_of_all(lake: &TestLake, date: &str) -> Vec<Value> {
    let kept = lake.project().join("shadow/rent/fold.house");
    let pairs = fs::read_dir(kept).unwrap().map(|pair| pair.unwrap().path());
    let files = pairs.map(|pair| pair.join(format!("{date}.diff.jsonl")));
    files
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<Value>>()
        })
        .collect()
}

#[test]
fn days_that_cannot_be_folded_once_more_are_named() {
    let lake = folded();
    let answer = fold_json(&lake, SAME, (3, 4), &[], 1);
    assert_eq!(
        json!([answer["missing"], answer["dates"][0]["verdict"]]),
        json!([[{ "date": day(4), "reason": "`feature/rent.house` has no final snapshot of 2026-10-04" }], "AGREE"])
    );
    // Rows that came after the day was folded are none of it.
    lake.run(&["reopen", "clean/rent.list", "--date", &day(2)])
        .ok();
    lake.file("late.jsonl", format!("{}\n", house("late", "遲", 1)));
    lake.ingest(
        "clean/rent.list",
        &["late.jsonl", "--date", &day(2), "--complete"],
    )
    .ok();
    let ignoring = ["--ignore", "nothing"];
    let answer = fold_json(&lake, SAME, (2, 2), &ignoring, 0);
    assert_eq!(
        answer["dates"][0]["items"]["row rent.house"]["agree"],
        json!(3)
    );
    // Another revision of its rows is not what it was folded of.
    lake.file("other.jsonl", format!("{}\n", house("a", "屋 A", 1)));
    lake.run(&[
        "correct",
        "clean/rent.list",
        "other.jsonl",
        "--date",
        &day(2),
    ])
    .ok();
    shadow_fold(&lake, SAME, (2, 2), &["--ignore", "none"])
        .code(1)
        .says(&["2026-10-02 of `clean/rent.list` is not what 2026-10-02 was folded of any more"]);
}

#[test]
fn folds_that_cannot_be_compared_are_refused() {
    let lake = rent_with(SOURCE);
    shadow_fold(&lake, ("class", "class"), (1, 1), &[])
        .code(1)
        .says(&["both sets of rules are the same"]);
    shadow_fold(&lake, SAME, (1, 1), &["--name", "none"])
        .code(2)
        .says(&["has no fold `none`"]);
    shadow_fold(&lake, ("[fold.house", "[fold.flat"), (1, 1), &[])
        .code(2)
        .says(&["there is no fold `house`", "next.toml"]);
    let other = "class = \"log\"\n[fold.house]\nkey = [\"title\"]\n[[fold.house.from]]\ndataset = \"rent.list\"\npresence = true\n[fold.house.field]\nprice = { from = \"list\" }\ngone = \"days_absent\"\n";
    lake.file("next.toml", other);
    let args = ["shadow", "rent", "fold", "--date", "2026-10-01", "--with"];
    lake.run(&[&args[..], &["next.toml"]].concat())
        .code(1)
        .says(&[
            "the keys of both folds are others: id and title",
            "next.toml",
        ]);
    assert!(!lake.project().join("shadow").exists());
}

const DAY: &str = "2026-11-30";

/// Compares the query with another one.
fn shadow_query(lake: &TestLake, query: &str, dates: &str, more: &[&str]) -> Run {
    lake.file("next.toml", deriving(query));
    let args = [
        "shadow",
        "rent",
        "derive",
        "--with",
        "next.toml",
        "--date",
        dates,
    ];
    lake.run(&[&args[..], more].concat())
}

fn query_json(lake: &TestLake, query: &str, dates: &str, more: &[&str], code: i32) -> Value {
    let all = [more, &["--format", "json"]].concat();
    shadow_query(lake, query, dates, &all).code(code).json()
}

#[test]
fn queries_are_compared_by_the_declared_key() {
    let lake = lake_of(GROUPED);
    let before = lake_files(&lake);
    let same = "sql = \"SELECT sum(price) AS total, count(id) AS n, city FROM clean.rent GROUP BY city\"\nparents = [\"clean/rent\"]";
    let answer = query_json(&lake, same, "2026-11-28..2026-11-30", &[], 1);
    let why = answer["missing"][0]["reason"].as_str().unwrap();
    assert!(
        why.contains("clean/rent has nothing of 2026-11-28"),
        "{why}"
    );
    let counts = |answer: &Value, n: usize| answer["dates"][n]["items"]["row rent.cities"].clone();
    let agree = |n: u64| json!({ "agree": n, "changed": 0, "only_old": 0, "only_new": 0 });
    assert_eq!(
        (counts(&answer, 0), counts(&answer, 1)),
        (agree(1), agree(2))
    );
    assert_eq!(answer["summary"]["equal_in_a_row"], 2);
    // One city has another total.
    let other = "sql = \"SELECT city, count(*) AS n, sum(price) + CASE city WHEN '高雄' THEN 1 ELSE 0 END AS total FROM clean.rent GROUP BY city\"\nparents = [\"clean/rent\"]";
    let answer = query_json(&lake, other, DAY, &[], 1);
    assert_eq!(
        counts(&answer, 0),
        json!({ "agree": 1, "changed": 1, "only_old": 0, "only_new": 0 })
    );
    assert_eq!(
        answer["dates"][0]["fields"],
        json!({ "row rent.cities $.total": 1 })
    );
    let told = &lines(&lake, "derive.cities", DAY)[0];
    assert_eq!(
        json!([told["key"], told["verdict"], told["differences"][0]["path"]]),
        json!(["高雄", "changed", "$.total"])
    );
    query_json(&lake, other, DAY, &["--ignore", "total"], 0);
    // A row less, and a column that only one has.
    let less = "sql = \"SELECT city, count(*) AS n, 1 AS extra FROM clean.rent WHERE city <> '高雄' GROUP BY city\"\nparents = [\"clean/rent\"]";
    let answer = query_json(&lake, less, DAY, &[], 1);
    assert_eq!(
        counts(&answer, 0),
        json!({ "agree": 0, "changed": 1, "only_old": 1, "only_new": 0 })
    );
    assert_eq!(
        answer["dates"][0]["fields"],
        json!({ "row rent.cities $.extra": 1, "row rent.cities $.total": 1 })
    );
    assert_eq!(lake_files(&lake), before);
    shadow_query(
        &lake,
        "sql = \"SELECT count(*) AS n FROM clean.rent\"\nparents = [\"clean/rent\"]",
        DAY,
        &[],
    )
    .code(1)
    .says(&["the query does not give `city`", "next.toml"]);
    shadow_query(
        &lake,
        "sql = \"SELECT city, nothing FROM clean.rent\"\nparents = [\"clean/rent\"]",
        DAY,
        &[],
    )
    .code(2)
    .says(&["nothing", "next.toml"]);
    shadow_query(&lake, GROUPED, DAY, &[])
        .code(1)
        .says(&["both sets of rules are the same"]);
}

#[test]
fn rows_without_a_key_are_a_multiset() {
    // The query of the source gives no declared key's dataset: whole rows meet.
    let keyless =
        |query: &str| deriving(query).replace("[dataset.\"rent.cities\"]\nkey = [\"city\"]\n", "");
    let all = "sql = \"SELECT city FROM clean.rent\"\nparents = [\"clean/rent\"]";
    let lake = lake_of(all);
    let file = lake.project().join("sources/rent/source.toml");
    fs::write(&file, keyless(all)).unwrap();
    let compare = |query: &str, code: i32| {
        lake.file("next.toml", keyless(query));
        let args = [
            "shadow",
            "rent",
            "derive",
            "--name",
            "cities",
            "--with",
            "next.toml",
            "--date",
            DAY,
            "--format",
            "json",
        ];
        lake.run(&args).code(code).json()["dates"][0]["items"]["row rent.cities"].clone()
    };
    let same =
        "sql = \"SELECT concat(city, '') AS city FROM clean.rent\"\nparents = [\"clean/rent\"]";
    assert_eq!(
        compare(same, 0),
        json!({ "agree": 3, "changed": 0, "only_old": 0, "only_new": 0 })
    );
    // 高雄 stands twice in one and once in the other.
    let once = "sql = \"SELECT DISTINCT city FROM clean.rent\"\nparents = [\"clean/rent\"]";
    assert_eq!(
        compare(once, 1),
        json!({ "agree": 2, "changed": 0, "only_old": 1, "only_new": 0 })
    );
    let told = &lines(&lake, "derive.cities", DAY)[0];
    assert_eq!(
        json!([told["key"], told["verdict"]]),
        json!(["高雄 #2", "only_old"])
    );
}
