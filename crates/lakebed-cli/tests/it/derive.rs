//! Derived datasets: rows that follow from declared parents alone, with their lineage down to the page.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use crate::flow::{CITIES, SCHEMA};
use crate::lake::TestLake;

const DAY: &str = "2026-11-30";
const EVE: &str = "2026-11-29";

pub(crate) fn source(query: &str) -> String {
    format!(
        "class = \"log\"\n[dataset.rent]\nkey = [\"id\"]\n[dataset.\"rent.cities\"]\nkey = [\"city\"]\n[derive.cities]\n{query}\n"
    )
}

pub(crate) const GROUPED: &str = "sql = \"SELECT city, count(*) AS n, sum(price) AS total FROM clean.rent GROUP BY city\"\nparents = [\"clean/rent\"]";

pub(crate) fn lake_of(query: &str) -> TestLake {
    let lake = TestLake::new();
    lake.run(&["source", "add", "rent"]).ok();
    declare(&lake, query);
    lake.schema("clean/rent", 1, SCHEMA);
    lake.schema("feature/rent.cities", 1, CITIES);
    for dataset in ["clean/rent", "feature/rent.cities"] {
        lake.run(&["schema", "publish", dataset, "1"]).ok();
    }
    for (day, rows) in [
        (EVE, "{\"id\": 1, \"city\": \"臺北\", \"price\": \"1\"}\n"),
        (
            DAY,
            "{\"id\": 2, \"city\": \"高雄\", \"price\": \"2\"}\n{\"id\": 3, \"city\": \"臺北\", \"price\": \"3\"}\n{\"id\": 4, \"city\": \"高雄\", \"price\": \"4\"}\n",
        ),
    ] {
        let file = lake.file(&format!("{day}.jsonl"), rows);
        lake.ingest(
            "clean/rent",
            &[file.to_str().unwrap(), "--date", day, "--complete"],
        )
        .ok();
    }
    lake
}

fn declare(lake: &TestLake, query: &str) {
    fs::write(
        lake.project().join("sources/rent/source.toml"),
        source(query),
    )
    .unwrap();
}

fn derive(lake: &TestLake, rest: &[&str]) -> crate::lake::Run {
    lake.run(&[&["derive", "rent", "cities", "--date", DAY][..], rest].concat())
}

/// Attacks DRV-2 and DRV-3.
#[test]
fn rows_follow_from_their_parents_once_and_in_one_order() {
    let lake = lake_of(GROUPED);
    let first = derive(&lake, &["--format", "json"]).ok().json();
    let made = &first["derived"][0];
    assert_eq!(
        (&made["stored"], &made["rows"], &made["sealed"]),
        (&"new".into(), &2.into(), &true.into())
    );
    assert_eq!(made["parents"][0]["dataset"], "clean/rent");
    assert_eq!(made["parents"][0]["dt"], DAY);
    derive(&lake, &[]).ok().prints(&["up to date"]);
    let log = lake
        .lake()
        .join("_lake/log/feature/rent.cities/00000000000000000001.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(log).unwrap()).unwrap();
    assert_eq!(
        (&record["format"], &record["min_reader"]),
        (&5.into(), &5.into())
    );
    let inputs: Vec<_> = record["actions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|a| a["action"] == "add_input")
        .collect();
    assert_eq!(inputs[0]["input"]["parents"], made["parents"]);
    // Another lake with the same rows has the same bytes.
    let other = lake_of(GROUPED);
    derive(&other, &[]).ok();
    let bytes = |lake: &TestLake| -> Vec<Vec<u8>> {
        let files = lake
            .files()
            .into_keys()
            .filter(|f| f.starts_with("feature/") && f.ends_with(".parquet"));
        files
            .map(|f| fs::read(lake.lake().join(f)).unwrap())
            .collect()
    };
    assert_eq!(bytes(&lake), bytes(&other));
    // Only the date is seen, in the order of the columns.
    let rows = lake.sql("SELECT city, n FROM feature.rent.cities");
    assert_eq!(rows[0]["city"], "臺北");
    assert_eq!((&rows[0]["n"], &rows[1]["n"]), (&1.into(), &2.into()));
    // Other parents make a revision.
    let late = lake.file(
        "late.jsonl",
        "{\"id\": 5, \"city\": \"臺北\", \"price\": \"5\"}\n",
    );
    lake.ingest(
        "clean/rent",
        &[late.to_str().unwrap(), "--date", DAY, "--late"],
    )
    .ok();
    derive(&lake, &[]).code(1).says(&[
        "is not complete: 2026-11-30 is open",
        "lakebed seal clean/rent",
    ]);
    lake.run(&["seal", "clean/rent", "--date", DAY]).ok();
    derive(&lake, &[])
        .ok()
        .prints(&["stored as a new revision"]);
    assert_eq!(
        lake.sql_one("SELECT n FROM feature.rent.cities WHERE city = '臺北'"),
        "2"
    );
    lake.run(&["audit", "--deep"]).ok();
    lake.run(&["catalog", "rebuild", "--full"]).ok();
    assert_eq!(
        lake.sql_one("SELECT n FROM feature.rent.cities WHERE city = '臺北'"),
        "2"
    );
}

/// Attacks DRV-1.
#[test]
fn a_query_sees_its_parents_and_nothing_else() {
    let lake = lake_of(GROUPED);
    for (query, said) in [
        (
            "sql = \"SELECT city FROM clean.rent r JOIN feature.rent.cities c USING (city)\"\nparents = [\"clean/rent\"]",
            "reads `feature.rent.cities`, which is no declared parent",
        ),
        (
            "sql = \"SELECT 'x' AS city\"\nparents = [\"clean/rent\"]",
            "does not read it",
        ),
        (
            "sql = \"SELECT city FROM clean.rent__latest\"\nparents = [\"clean/rent\"]",
            "looks at all dates",
        ),
        (
            "sql = \"SELECT city FROM as_of('clean.rent', 1)\"\nparents = [\"clean/rent\"]",
            "as_of",
        ),
        (
            "sql = \"SELECT dataset AS city FROM lake.partitions, clean.rent\"\nparents = [\"clean/rent\"]",
            "not of system tables",
        ),
        (
            "sql = \"SELECT city, now() AS n FROM clean.rent\"\nparents = [\"clean/rent\"]",
            "asks `now()`",
        ),
        (
            "sql = \"SELECT city, random() AS n FROM clean.rent\"\nparents = [\"clean/rent\"]",
            "asks `random()`",
        ),
        (
            "sql = \"SELECT city FROM clean.rent WHERE dt = $day\"\nparents = [\"clean/rent\"]",
            "no parameter `$day`",
        ),
        (
            "sql = \"SELECT city, dt FROM clean.rent\"\nparents = [\"clean/rent\"]",
            "a column `dt`",
        ),
        (
            "sql = \"SELECT city FROM clean.rent\"\nparents = [\"clean/rent\"]\norder = [\"ciyt\"]",
            "did you mean `city`?",
        ),
        (
            "sql = \"SELECT city FROM clean.rent WHERE id > 100\"\nparents = [\"clean/rent\"]",
            "gives no row",
        ),
        ("sql = \"SELEC city\"\nparents = [\"clean/rent\"]", "SELEC"),
        (
            "file = \"none.sql\"\nparents = [\"clean/rent\"]",
            "none.sql",
        ),
    ] {
        declare(&lake, query);
        let run = derive(&lake, &[]);
        assert!(matches!(run.status.code(), Some(1 | 2)), "{query}: {run}");
        run.says(&[said]);
    }
    assert!(!lake.files().keys().any(|f| f.starts_with("feature/")));
    // Rows of other dates are not there, whatever the query asks.
    declare(
        &lake,
        "sql = \"SELECT city, count(*) AS n FROM clean.rent WHERE dt <= $date GROUP BY city\"\nparents = [\"clean/rent\"]",
    );
    derive(&lake, &[]).ok();
    assert_eq!(
        lake.sql_one("SELECT sum(n) AS n FROM feature.rent.cities"),
        "3"
    );
    fs::write(lake.project().join("sources/rent/q.sql"), "SELECT city, count(*) AS n FROM clean.rent WHERE dt IN ($previous, $date) GROUP BY city;\n").unwrap();
    declare(
        &lake,
        "file = \"q.sql\"\nparents = [{ dataset = \"clean/rent\", dates = \"until\" }]",
    );
    derive(&lake, &["--replace"]).ok();
    assert_eq!(
        lake.sql_one("SELECT sum(n) AS n FROM feature.rent.cities"),
        "4"
    );
    let up = lake.run(&["lineage", "feature/rent.cities"]).ok();
    up.prints(&[
        "feature/rent.cities 2026-11-30: 2 rows, revision 1",
        "clean/rent 2026-11-29..2026-11-30: 4 rows",
    ]);
}

#[test]
fn rows_may_follow_from_those_of_the_day_before() {
    let running = "sql = \"SELECT city, sum(n) AS n FROM (SELECT city, 1 AS n FROM clean.rent UNION ALL SELECT city, n FROM feature.rent.cities) GROUP BY city\"\nparents = [\"clean/rent\", { dataset = \"feature/rent.cities\", dates = \"previous\" }]";
    let lake = lake_of(running);
    for day in [EVE, DAY] {
        lake.run(&["derive", "rent", "--date", day]).ok();
    }
    let total = "SELECT n FROM feature.rent.cities WHERE dt = '2026-11-30' AND city = '臺北'";
    assert_eq!(lake.sql_one(total), "2");
    // The day before is missing: it does not begin from nothing without a word.
    lake.run(&["derive", "rent", "--date", "2026-12-02"])
        .code(1)
        .says(&["its parent clean/rent has nothing of 2026-12-02"]);
    let tree = lake
        .run(&["lineage", "feature/rent.cities", "--format", "json"])
        .ok()
        .json();
    let parents = tree["root"]["next"].as_array().unwrap();
    assert_eq!(parents.len(), 2);
    assert_eq!(parents[1]["next"][0]["dataset"], "clean/rent");
    let down = lake
        .run(&["lineage", "clean/rent", "--date", EVE, "--down"])
        .ok();
    down.prints(&[
        "└─ feature/rent.cities 2026-11-29",
        "   └─ feature/rent.cities 2026-11-30",
    ]);
    // Touching the parent shows in the tree.
    let late = lake.file(
        "late.jsonl",
        "{\"id\": 6, \"city\": \"臺東\", \"price\": \"5\"}\n",
    );
    lake.ingest(
        "clean/rent",
        &[
            late.to_str().unwrap(),
            "--date",
            EVE,
            "--late",
            "--complete",
        ],
    )
    .ok();
    lake.run(&["lineage", "feature/rent.cities", "--date", EVE])
        .ok()
        .prints(&["has changed since, by record"]);
}

/// A key is followed by its digits: no float is in between.
#[test]
fn lineage_follows_decimal_keys() {
    let lake = TestLake::new();
    lake.run(&["source", "add", "rent"]).ok();
    let source = "class = \"log\"\n[dataset.rent]\nkey = [\"price\"]\n[dataset.\"rent.prices\"]\nkey = [\"price\"]\n[derive.prices]\n\
        sql = \"SELECT price, count(*) AS n FROM clean.rent GROUP BY price\"\nparents = [\"clean/rent\"]\n";
    fs::write(lake.project().join("sources/rent/source.toml"), source).unwrap();
    let price = "{ id = 1, name = \"price\", type = \"decimal(30,2)\" }";
    lake.schema("clean/rent", 1, &format!("field = [{price}]\n"));
    let with_n = format!("field = [{price}, {{ id = 2, name = \"n\", type = \"int\" }}]\n");
    lake.schema("feature/rent.prices", 1, &with_n);
    for dataset in ["clean/rent", "feature/rent.prices"] {
        lake.run(&["schema", "publish", dataset, "1"]).ok();
    }
    let keys = ["7.10", "22.00", "12345678901234567890.12"];
    let rows: String = keys
        .iter()
        .map(|k| format!("{{\"price\": \"{k}\"}}\n"))
        .collect();
    let file = lake.file("a.jsonl", &rows);
    let args = [file.to_str().unwrap(), "--date", DAY, "--complete"];
    lake.ingest("clean/rent", &args).ok();
    lake.run(&["derive", "rent", "prices", "--date", DAY]).ok();
    for key in keys {
        let found = lake
            .run(&["lineage", "feature/rent.prices", "--row", key])
            .ok();
        let row = |dataset: &str, rest: &str| format!("{dataset} {DAY}: {{\"price\":{key}{rest}}}");
        found.prints(&[
            &row("feature/rent.prices", ",\"n\":1"),
            &row("  clean/rent", ""),
        ]);
    }
}

/// A key that the query wrote in another way is the same value: a decimal of another scale, an instant, an integer of a
/// decimal; and rows beyond those that are followed are told.
#[test]
fn lineage_follows_values_and_not_their_texts() {
    let lake = TestLake::new();
    lake.run(&["source", "add", "rent"]).ok();
    let source = "class = \"log\"\n[dataset.rent]\nkey = [\"price\", \"at\", \"n\"]\n[dataset.\"rent.wide\"]\nkey = [\"price\", \"at\", \"n\"]\n[derive.wide]\n\
        sql = \"SELECT CAST(price AS DECIMAL(32,5)) AS price, at, CAST(n AS DECIMAL(20,2)) AS n, count(*) AS rows FROM clean.rent GROUP BY price, at, n\"\nparents = [\"clean/rent\"]\n";
    fs::write(lake.project().join("sources/rent/source.toml"), source).unwrap();
    let field = |id: u32, name: &str, kind: &str| {
        format!("{{ id = {id}, name = \"{name}\", type = \"{kind}\" }}")
    };
    let schema = |fields: &[String]| format!("field = [{}]\n", fields.join(", "));
    let narrow = [
        field(1, "price", "decimal(30,2)"),
        field(2, "at", "timestamp"),
        field(3, "n", "int"),
    ];
    lake.schema("clean/rent", 1, &schema(&narrow));
    let wide = [
        field(1, "price", "decimal(32,5)"),
        field(2, "at", "timestamp"),
        field(3, "n", "decimal(20,2)"),
        field(4, "rows", "int"),
    ];
    lake.schema("feature/rent.wide", 1, &schema(&wide));
    for dataset in ["clean/rent", "feature/rent.wide"] {
        lake.run(&["schema", "publish", dataset, "1"]).ok();
    }
    let row = "{\"price\": \"7.10\", \"at\": \"2026-11-30T08:00:00+08:00\", \"n\": 12}\n";
    let file = lake.file("a.jsonl", row.repeat(25));
    let args = [file.to_str().unwrap(), "--date", DAY, "--complete"];
    lake.ingest("clean/rent", &args).ok();
    lake.run(&["derive", "rent", "wide", "--date", DAY]).ok();
    let key = "7.1,2026-11-30T00:00:00Z,12";
    let found = lake.run(&["lineage", "feature/rent.wide", "--row", key]);
    let found = found.ok();
    assert_eq!(found.stdout.matches("  clean/rent 2").count(), 20);
    found.prints(&["and more: 20 rows of a dataset are followed"]);
    let nothing = ["lineage", "feature/rent.wide", "--row", "x,y,z"];
    lake.run(&nothing).code(1);
}

#[test]
fn a_schema_follows_from_the_types_of_the_query() {
    let lake = TestLake::new();
    lake.run(&["source", "add", "rent"]).ok();
    declare(
        &lake,
        "sql = \"SELECT city, id, price, price > 3 AS dear, dt AS day, make_array(id) AS ids, arrow_cast('2026-01-01T00:00:00', 'Timestamp(Microsecond, Some(\\\"UTC\\\"))') AS at FROM clean.rent\"\nparents = [\"clean/rent\"]",
    );
    lake.schema("clean/rent", 1, SCHEMA);
    lake.run(&["schema", "publish", "clean/rent", "1"]).ok();
    let file = lake.file(
        "a.jsonl",
        "{\"id\": 1, \"city\": \"臺北\", \"price\": \"5\"}\n",
    );
    lake.ingest(
        "clean/rent",
        &[file.to_str().unwrap(), "--date", DAY, "--complete"],
    )
    .ok();
    derive(&lake, &[])
        .code(1)
        .says(&["no published schema", "--schema"]);
    lake.run(&["derive", "rent", "cities", "--schema"]).ok();
    let path = lake
        .project()
        .join("sources/rent/schemas/rent.cities/v1.toml");
    let text = fs::read_to_string(&path).unwrap();
    for expected in [
        "\"decimal(12,2)\"",
        "\"bool\"",
        "\"date\"",
        "\"list<int>\"",
        "\"timestamp\"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    lake.run(&["schema", "publish", "feature/rent.cities", "1"])
        .ok();
    derive(&lake, &[]).ok();
    assert_eq!(lake.sql_one("SELECT CAST(ids[1] AS VARCHAR) || ' ' || CAST(day AS VARCHAR) AS x FROM feature.rent.cities"), format!("1 {DAY}"));
    lake.run(&["derive", "rent", "cities", "--schema"])
        .ok()
        .says(&["has every column"]);
}

#[test]
fn a_day_without_rows_is_good_where_it_is_declared() {
    let empty = "sql = \"SELECT city, count(*) AS n FROM clean.rent WHERE price > 100 GROUP BY city\"\nparents = [\"clean/rent\"]\nallow_empty = true";
    let lake = lake_of(empty);
    derive(&lake, &[]).ok();
    derive(&lake, &[]).ok().prints(&["up to date"]);
    lake.run(&["run", "rent", "--date", DAY]).ok();
    let again = lake
        .run(&["run", "rent", "--date", DAY, "--format", "json"])
        .ok()
        .json();
    assert_eq!(again["dates"][0]["stages"][0]["outcome"], "already_done");
    lake.assert_clean();
}

#[test]
fn numbers_that_are_none_are_refused() {
    let query = |n: &str| {
        format!("sql = \"SELECT city, {n} AS n FROM clean.rent\"\nparents = [\"clean/rent\"]")
    };
    let lake = lake_of(GROUPED);
    for wrong in [
        "9223372036854775807 + id",
        "id * 9223372036854775807",
        "(0 - 9223372036854775807) - id",
        "9223372036854775807 + 1",
        "-(id - 9223372036854775807 - id - 1)",
    ] {
        declare(&lake, &query(wrong));
        derive(&lake, &[])
            .code(2)
            .says(&["has no place in Int64", "DECIMAL(38, 0)"]);
    }
    let sql = [
        "sql",
        "SELECT 9223372036854775807 + id AS n FROM clean.rent",
    ];
    lake.run(&sql).code(2).says(&["has no place in Int64"]);
    assert_eq!(
        lake.sql_one("SELECT id * 2 - 1 + CAST(id AS INT) AS n FROM clean.rent WHERE id + 1 = 3"),
        "5"
    );
    // Decimals have 38 digits.
    let nines = "9".repeat(38);
    for wrong in [
        format!("CAST('{nines}' AS DECIMAL(38,0)) + 1"),
        format!("CAST('-{nines}' AS DECIMAL(38,0)) - CAST(id AS DECIMAL(38,0))"),
    ] {
        declare(&lake, &query(&wrong));
        derive(&lake, &[]).code(2).says(&[
            "has no place in Decimal128(38, 0)",
            "there is no longer decimal",
        ]);
    }
    assert_eq!(
        lake.sql_one(&format!(
            "SELECT CAST(CAST('{nines}' AS DECIMAL(38,0)) - 1 AS VARCHAR) AS n FROM clean.rent WHERE id = 2"
        ))
        .len(),
        38
    );
    // A float of the schema that says nothing of NaN.
    let floats = "base = BASE\nfield = [\n    { id = 1, name = \"city\", type = \"string\" },\n    { id = 2, name = \"n\", type = \"int\" },\n    { id = 3, name = \"total\", type = \"decimal(22,2)\" },\n    { id = 4, name = \"f\", type = \"float\"NAN },\n]\n";
    lake.schema(
        "feature/rent.cities",
        2,
        &floats.replace("NAN", "").replace("BASE", "1"),
    );
    lake.run(&["schema", "publish", "feature/rent.cities", "2"])
        .ok();
    declare(
        &lake,
        "sql = \"SELECT city, CAST('NaN' AS DOUBLE) AS f FROM clean.rent\"\nparents = [\"clean/rent\"]",
    );
    derive(&lake, &[])
        .code(1)
        .says(&["NaN", "nan_as_null = true"]);
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM feature.rent.cities"),
        "0"
    );
    lake.schema(
        "feature/rent.cities",
        3,
        &floats
            .replace("NAN", ", nan_as_null = true")
            .replace("BASE", "2"),
    );
    lake.run(&["schema", "publish", "feature/rent.cities", "3"])
        .ok();
    derive(&lake, &[]).ok();
    assert_eq!(
        lake.sql_one("SELECT count(*) - count(f) AS n FROM feature.rent.cities"),
        "3"
    );
}

#[test]
fn a_derived_text_is_a_query_and_its_types_are_known() {
    let lake = lake_of(GROUPED);
    for text in ["EXPLAIN SELECT city FROM clean.rent", "DESCRIBE clean.rent"] {
        declare(
            &lake,
            &format!("sql = \"{text}\"\nparents = [\"clean/rent\"]"),
        );
        lake.run(&["derive", "rent", "cities", "--schema"])
            .code(2)
            .says(&["a query that gives rows"]);
        derive(&lake, &[])
            .code(2)
            .says(&["a query that gives rows"]);
    }
    // One that reads its own rows of the day before, before there are any.
    let own = "sql = \"SELECT city, n FROM feature.rent.towns UNION ALL SELECT city, 1 AS n FROM clean.rent\"\nparents = [\"clean/rent\", { dataset = \"feature/rent.towns\", dates = \"previous\" }]";
    fs::write(
        lake.project().join("sources/rent/source.toml"),
        source(own).replace("[derive.cities]", "[derive.towns]"),
    )
    .unwrap();
    lake.run(&["derive", "rent", "towns", "--schema"])
        .code(1)
        .says(&["reads its own rows", "by hand", "rent.towns/v1.toml"]);
}

#[test]
fn rows_that_are_the_same_every_day_are_no_wrong_date() {
    let constant = "sql = \"SELECT 'x' AS city, count(*) AS n FROM clean.rent WHERE id < 0\"\nparents = [\"clean/rent\"]";
    let lake = lake_of(constant);
    for day in [EVE, DAY] {
        let run = lake.run(&["derive", "rent", "cities", "--date", day]).ok();
        assert!(!run.stderr.contains("was the date meant"), "{run}");
    }
}
