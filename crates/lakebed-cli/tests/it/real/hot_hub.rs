//! website-hot-hub-zh: eight hot lists of eight sites, one array a day and site.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::lake::TestLake;
use crate::real::bulk::{Bulk, Options};
use crate::real::data::{DayFile, assert_same, by_key, file, files, records, set};
use crate::real::draft::Draft;
use crate::real::story::{Story, publish};

/// Folder of a site, name of its source (which cannot begin with a digit), records of all days.
const SITES: [(&str, &str, u64); 8] = [
    ("36kr", "kr36", 11_862),
    ("bilibili", "bilibili", 17_552),
    ("douyin", "douyin", 667),
    ("github", "github", 2_096),
    ("juejin", "juejin", 9_710),
    ("kuaishou", "kuaishou", 43_944),
    ("sspai", "sspai", 4_991),
    ("weread", "weread", 3_176),
];

fn folder(site: &str) -> PathBuf {
    set(&format!("website-hot-hub-zh/{site}"))
}

fn link_list() -> Draft {
    Draft::new("a list of links")
        .fields(1, "string", &["url", "title"])
        .required(&["url", "title"])
}

/// `stars` and `forks` are texts with thousands commas.
fn repositories() -> Draft {
    let names = ["owner", "repo", "title", "url", "description", "language"];
    let commas = "{ symbols = [], thousands = \",\" }";
    Draft::new("trending repositories")
        .fields(1, "string", &names)
        .fields(7, "decimal(10,0)", &["stars", "forks"])
        .set("stars", "money", commas)
        .set("forks", "money", commas)
        .required(&["owner", "repo", "title", "url", "stars", "forks"])
}

fn schema(site: &str) -> Draft {
    if site == "github" {
        repositories()
    } else {
        link_list()
    }
}

#[test]
fn whole_set_of_eight_sources_arrives_character_by_character() {
    let lake = TestLake::new();
    for (site, source, _) in SITES {
        publish(&lake, &format!("clean/{source}"), 1, &schema(site));
    }
    let mut bulk = Bulk::open(&lake);
    let mut files_read = 0;
    let mut expected: BTreeMap<&str, (Vec<String>, BTreeMap<String, u64>)> = BTreeMap::new();
    for (site, source, total) in SITES {
        let before = bulk.rows;
        let (lines, days) = expected.entry(source).or_default();
        for day in files(&folder(site), "json") {
            let all = records(&day.path, "");
            let report = bulk.store(
                &format!("clean/{source}"),
                &day,
                Options::version(1),
                all.len(),
            );
            assert!(
                report.drift.is_empty(),
                "{source} {}: {:?}",
                day.day,
                report.drift
            );
            lines.extend(all.iter().map(|r| line(&day.day, r)));
            days.insert(day.day.clone(), all.len() as u64);
            files_read += 1;
        }
        assert_eq!(bulk.rows - before, total, "{site}");
    }
    assert_eq!(files_read, 866);
    assert_eq!(bulk.close(), 93_998);

    for (source, (lines, days)) in expected {
        let counted = lake.sql(&format!(
            "SELECT CAST(dt AS VARCHAR) AS d, count(*) AS n FROM clean.{source} WHERE source = '{source}' GROUP BY 1"
        ));
        assert_eq!(by_key(&counted, "d", "n"), days, "{source}");
        let rows = lake.sql(&format!(
            "SELECT CAST(dt AS VARCHAR) AS d, title, url FROM clean.{source}"
        ));
        let stored = rows
            .iter()
            .map(|r| line(r["d"].as_str().unwrap(), r))
            .collect();
        assert_same(stored, lines);
    }
    assert_commas(&lake);
    lake.assert_clean();
}

fn line(day: &str, row: &Value) -> String {
    format!("{day}|{}|{}", row["url"], row["title"])
}

/// `"1,886"` is 1886, to the last star.
fn assert_commas(lake: &TestLake) {
    let mut stars = 0_u64;
    let mut forks = 0_u64;
    let mut with_comma = 0;
    let mut no_language = 0;
    for day in files(&folder("github"), "json") {
        for record in records(&day.path, "") {
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            let number = |name: &str| text(name).replace(',', "").parse::<u64>().unwrap();
            stars += number("stars");
            forks += number("forks");
            with_comma += ["stars", "forks"]
                .iter()
                .filter(|n| text(n).contains(','))
                .count();
            no_language += u64::from(text("language").is_empty());
        }
    }
    assert_eq!(with_comma, 3_332);
    let sums = "SELECT concat(CAST(sum(stars) AS VARCHAR), ' ', CAST(sum(forks) AS VARCHAR)) AS s FROM clean.github";
    assert_eq!(lake.sql_one(sums), format!("{stars} {forks}"));
    // A missing language is an empty text, not a null.
    let empty = "SELECT count(*) AS n FROM clean.github WHERE language = ''";
    assert_eq!(lake.sql_one(empty), no_language.to_string());
    let nulls = "SELECT count(*) AS n FROM clean.github WHERE language IS NULL";
    assert_eq!(lake.sql_one(nulls), "0");
}

#[test]
fn invisible_characters_stay_in_titles() {
    let marks = [
        ('\u{200d}', "zero width joiner"),
        ('\u{200b}', "zero width space"),
        ('\u{a0}', "no-break space"),
        ('\u{1f525}', "emoji"),
    ];
    let day_with = |mark: char| -> (&str, DayFile, Value) {
        let found = SITES.iter().find_map(|(site, source, _)| {
            let days = files(&folder(site), "json");
            days.into_iter().find_map(|day| {
                let all = records(&day.path, "");
                let one = all
                    .into_iter()
                    .find(|r| r["title"].as_str().unwrap().contains(mark))?;
                Some((*source, day, one))
            })
        });
        found.unwrap_or_else(|| panic!("no title has {mark:?}"))
    };
    let lake = TestLake::new();
    for (site, source, _) in SITES {
        publish(&lake, &format!("clean/{source}"), 1, &schema(site));
    }
    for (mark, name) in marks {
        let (source, day, record) = day_with(mark);
        let dataset = format!("clean/{source}");
        lake.ingest(&dataset, &[day.arg(), "--date", day.date()])
            .ok();
        let url = record["url"].as_str().unwrap().replace('\'', "''");
        let query = format!(
            "SELECT title FROM clean.{source} WHERE url = '{url}' AND dt = '{}'",
            day.date()
        );
        let titles: Vec<Value> = lake
            .sql(&query)
            .into_iter()
            .map(|r| r["title"].clone())
            .collect();
        assert!(
            titles.contains(&record["title"]),
            "{name}: {titles:?} without {}",
            record["title"]
        );
    }
}

#[test]
fn a_new_source_needs_a_schema_and_a_file_of_another_source_is_refused() {
    let lake = TestLake::new();
    let first_day = file(&folder("douyin"), "2026-04-29", "json");
    let unknown = lake.ingest("clean/douyin", &[first_day.arg(), "--date", "2026-04-29"]);
    assert_ne!(unknown.status.code(), Some(0), "{unknown}");
    unknown.says(&["clean/douyin", "schema"]);

    let rows = records(&first_day.path, "").len();
    let douyin = Story::of(&lake, "clean/douyin");
    douyin.publish(1, &link_list());
    douyin.store(&first_day, rows, &[]);
    let days = lake.sql(
        "SELECT CAST(min(dt) AS VARCHAR) AS d, count(*) AS n FROM clean.douyin WHERE source = 'douyin'",
    );
    assert_eq!(days[0]["d"], "2026-04-29");
    assert_eq!(days[0]["n"], rows);

    let repositories = file(&folder("github"), "2026-01-01", "json");
    let kr36 = Story::of(&lake, "clean/kr36");
    kr36.publish(1, &link_list());
    kr36.refuse(&repositories, &[]).names(&[
        "owner",
        "repo",
        "description",
        "language",
        "stars",
        "forks",
    ]);
}
