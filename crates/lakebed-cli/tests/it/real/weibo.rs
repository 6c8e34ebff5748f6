//! weibo-hot-zh: an array of about 52 topics an hour; fields appear between two hours of one day.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lake::TestLake;
use crate::real::bulk::{Bulk, Options};
use crate::real::data::{DayFile, assert_same, by_key, file, files, records, set};
use crate::real::draft::Draft;
use crate::real::story::{Story, publish};

const DATASET: &str = "clean/weibo";

/// The versions of the list: as first crawled, with counts, with counts that are no integers.
fn versions() -> [Draft; 3] {
    let v1 = Draft::new("as first crawled")
        .fields(1, "string", &["title", "category", "description", "url"])
        .field(5, "hot", "int")
        .field(6, "ads", "bool")
        .required(&["title", "url", "hot", "ads"]);
    let v2 = v1
        .next("the site added counts at 15:00 of 2024-05-21")
        .field_from(7, "read_count", "int", "readCount")
        .field_from(8, "discuss_count", "int", "discussCount")
        .field(9, "origin", "int");
    let v3 = v2
        .next("some read counts have a fraction: 1910000000.0000002")
        .field_from(10, "read_count_exact", "float", "readCount")
        .set("read_count_exact", "change", "\"dual\"");
    [v1, v2, v3]
}

fn hourly() -> Vec<DayFile> {
    files(&set("weibo-hot-zh/hourly"), "json")
}

/// Stores an hour under its run and batch label.
#[track_caller]
fn store_hour(story: &Story<'_>, hour: &DayFile, version: u32) -> Value {
    let run = format!("{}00", &hour.day[11..13]);
    let rows = records(&hour.path, "").len();
    let labels = ["--run", run.as_str(), "--batch", hour.day.as_str()];
    let report = story.store(hour, rows, &labels);
    assert_eq!(report["schema_version"], version, "{report}");
    report
}

#[test]
fn fields_that_appear_within_a_day_are_refused_and_the_day_goes_on_under_the_next_version() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, v2, v3] = versions();
    let hours = hourly();
    assert_eq!(hours.len(), 27);
    let mut stored = 0;
    let mut version = 1;
    let mut by_version: BTreeMap<String, u64> = BTreeMap::new();
    story.publish(1, &v1);
    for hour in &hours {
        if hour.day == "2024-05-21T15" {
            story
                .refuse(hour, &["--run", "1500"])
                .names(&["readCount", "discussCount", "origin"])
                .counts("readCount", 53);
            story.publish(2, &v2);
            version = 2;
        }
        if hour.day == "2024-05-21T18" {
            story
                .refuse(hour, &["--run", "1800"])
                .names(&["read_count"])
                .counts("read_count", 3)
                .says(&["1910000000.0000002"]);
            story.publish(3, &v3);
            version = 3;
        }
        let rows = store_hour(&story, hour, version)["rows"].as_u64().unwrap();
        stored += rows;
        let key = format!("{} v{version}", hour.date());
        *by_version.entry(key).or_default() += rows;
    }
    assert_eq!(stored, 1_420);
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM clean.weibo"),
        "1420"
    );
    let groups = lake.sql(
        "SELECT concat(CAST(dt AS VARCHAR), ' v', CAST(schema_version AS VARCHAR)) AS k, count(*) AS n
         FROM clean.weibo GROUP BY 1",
    );
    assert_eq!(by_key(&groups, "k", "n"), by_version);

    // The three counts with a fraction are whole in the new field, and nothing else is different.
    let rows = lake.sql(
        "SELECT CAST(read_count_exact AS VARCHAR) AS x FROM clean.weibo
         WHERE read_count IS NULL AND read_count_exact IS NOT NULL ORDER BY read_count_exact",
    );
    // As text: the JSON reader of this test does not round as IEEE does.
    let exact: Vec<f64> = rows
        .iter()
        .map(|r| r["x"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(
        exact,
        [
            220_000_000.000_000_03,
            1_910_000_000.000_000_2,
            3_420_000_000.000_000_5
        ]
    );
    assert_eq!(
        lake.sql_one("SELECT count(read_count) AS n FROM clean.weibo"),
        "470"
    );
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM clean.weibo WHERE read_count <> read_count_exact"),
        "0"
    );

    // An hour that is delivered twice is stored once; under another version it would be doubled.
    let deliver = |hour: &DayFile| {
        let args = [hour.arg(), "--date", hour.date(), "--batch", &hour.day];
        lake.ingest(DATASET, &args)
    };
    let replay = deliver(hours.last().unwrap()).ok().json();
    assert_eq!(replay["outcome"], "already_there");
    deliver(&hours[20])
        .code(1)
        .says(&["2024-05-21T17.json", "schema version 2"]);
    assert_eq!(
        lake.sql_one("SELECT count(*) AS n FROM clean.weibo"),
        "1420"
    );
    lake.assert_clean();
}

#[test]
fn an_hour_with_three_odd_counts_goes_into_quarantine_but_for_them() {
    let lake = TestLake::new();
    let [v1, v2, _] = versions();
    publish(&lake, DATASET, 1, &v1);
    publish(&lake, DATASET, 2, &v2);
    let hour = file(&set("weibo-hot-zh/hourly"), "2024-05-21T18", "json");
    let all = records(&hour.path, "");
    let args = [
        hour.arg(),
        "--date",
        hour.date(),
        "--on-mismatch",
        "quarantine",
    ];
    let report = lake.ingest(DATASET, &args).ok().json();
    assert_eq!(report["rejected"], 3);
    assert_eq!(report["rows"], all.len() - 3);
    let rejects = lake.rejects(DATASET, hour.date());
    let raw: String = rejects
        .iter()
        .map(|r| format!("{} {}\n", r["field"].as_str().unwrap(), r["raw"]))
        .collect();
    for text in [
        "1910000000.0000002",
        "220000000.00000003",
        "3420000000.0000005",
    ] {
        assert!(raw.contains(text), "{raw}");
    }
    assert_eq!(raw.matches("read_count ").count(), 3, "{raw}");
    // Every topic of the hour is in the lake or in quarantine.
    let titles = lake.sql("SELECT title FROM clean.weibo");
    assert_eq!(titles.len() + rejects.len(), all.len());
}

/// A topic as one line, from the input and from SQL alike.
fn line(row: &Value, name: impl Fn(&'static str) -> &'static str) -> String {
    let columns = [
        "title",
        "category",
        "description",
        "url",
        "hot",
        "ads",
        "read_count",
        "discuss_count",
        "origin",
    ];
    let cells = columns.map(|c| row.get(name(c)).unwrap_or(&Value::Null).to_string());
    cells.join("|")
}

fn input_name(column: &'static str) -> &'static str {
    match column {
        "read_count" => "readCount",
        "discuss_count" => "discussCount",
        other => other,
    }
}

#[test]
fn whole_set_of_daily_lists_arrives_character_by_character() {
    let lake = TestLake::new();
    let [v1, v2, _] = versions();
    publish(&lake, DATASET, 1, &v1);
    publish(&lake, DATASET, 2, &v2);
    let mut bulk = Bulk::open(&lake);
    let mut expected = Vec::new();
    let mut days: BTreeMap<String, u64> = BTreeMap::new();
    let mut no_category = BTreeMap::new();
    let mut no_description = 0;
    let all = files(&set("weibo-hot-zh"), "json");
    assert_eq!(all.len(), 217);
    for day in &all {
        let topics = records(&day.path, "");
        let version = if day.day == "2024-05-20" { 1 } else { 2 };
        let report = bulk.store(DATASET, day, Options::version(version), topics.len());
        assert!(report.drift.is_empty(), "{}: {:?}", day.day, report.drift);
        let presence = serde_json::to_value(&report.presence).unwrap();
        let absent = |field: &str| presence[field]["absent"].as_u64().unwrap();
        if absent("category") > 0 {
            no_category.insert(day.day.clone(), absent("category"));
        }
        no_description += absent("description");
        days.insert(day.day.clone(), topics.len() as u64);
        expected.extend(topics.iter().map(|t| line(t, input_name)));
    }
    assert_eq!(bulk.close(), 11_310);

    // The drift of 2024-05-26 is a field that is missing now and then: presence tells it by the day.
    assert_eq!(
        no_category.keys().next().map(String::as_str),
        Some("2024-05-26")
    );
    assert_eq!(no_category.values().sum::<u64>(), 51);
    assert_eq!(no_description, 11_310 - 4_807);

    let counted =
        lake.sql("SELECT CAST(dt AS VARCHAR) AS d, count(*) AS n FROM clean.weibo GROUP BY 1");
    assert_eq!(by_key(&counted, "d", "n"), days);
    let rows = lake.sql("SELECT * FROM clean.weibo");
    let stored = rows.iter().map(|r| line(r, |c| c)).collect();
    assert_same(stored, expected);

    // One category in three spellings stays three: no-break spaces are text.
    let spellings = lake.sql_one(
        "SELECT count(DISTINCT category) AS n FROM clean.weibo WHERE trim(replace(category, '\u{a0}', '')) = '社会'",
    );
    assert!(spellings.parse::<u64>().unwrap() >= 2, "{spellings}");
    lake.assert_clean();
}
