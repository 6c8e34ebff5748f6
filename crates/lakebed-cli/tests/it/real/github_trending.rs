//! github-trending-zh: one document a day, records under `/repos`, a struct that appears and grows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lake::TestLake;
use crate::real::bulk::{Bulk, Options};
use crate::real::data::{assert_same, by_key, file, files, records, set};
use crate::real::draft::Draft;
use crate::real::story::{Story, publish};

const DATASET: &str = "clean/trending";
/// First days of versions 2 and 3.
const FIRST_DAYS: [(&str, u32); 2] = [("2025-12-19", 2), ("2026-04-16", 3)];

fn versions() -> [Draft; 3] {
    let v1 = Draft::new("as first crawled")
        .input("records", "/repos")
        .field_from(1, "place", "int", "index")
        .field_from(2, "full_name", "string", "fullName")
        .fields(3, "string", &["description", "language"])
        .fields(5, "int", &["stars", "forks"])
        .field_from(7, "today_stars", "int", "todayStars")
        .field(8, "url", "string")
        .field_from(9, "error_message", "string", "errorMessage")
        .required(&["place", "full_name", "stars", "forks", "today_stars", "url"]);
    let v2 = v1
        .next("summaries by a model")
        .field_from(10, "ai_summary", "struct", "aiSummary")
        .member("ai_summary", 11, "summary", "string", "summary")
        .member("ai_summary", 12, "tech_stack", "list<string>", "techStack")
        .member("ai_summary", 13, "use_case", "string", "useCase");
    let v3 = v2
        .next("summaries in English, too")
        .member("ai_summary", 14, "summary_en", "string", "summary_en")
        .member("ai_summary", 15, "use_case_en", "string", "useCase_en");
    [v1, v2, v3]
}

fn version_of(day: &str) -> u32 {
    let reached = FIRST_DAYS.iter().rfind(|(first, _)| day >= *first);
    reached.map_or(1, |(_, version)| *version)
}

#[test]
fn a_struct_that_appears_and_members_that_appear_in_it_are_refused_then_versioned() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, v2, v3] = versions();
    let folder = set("github-trending-zh");
    let day = |name: &str| file(&folder, name, "json");
    let store = |name: &str| {
        let file = day(name);
        story.store(&file, records(&file.path, "/repos").len(), &[])
    };
    story.publish(1, &v1);
    store("2025-12-17");
    store("2025-12-18");
    let with_summary = records(&day("2025-12-19").path, "/repos")
        .iter()
        .filter(|r| r.get("aiSummary").is_some())
        .count();
    story
        .refuse(&day("2025-12-19"), &[])
        .names(&["aiSummary"])
        .counts("aiSummary", with_summary)
        .says(&["aiSummary", "2025-12-19.json"]);
    story.publish(2, &v2);
    store("2025-12-19");
    store("2026-04-15");
    story
        .refuse(&day("2026-04-16"), &[])
        .names(&["/aiSummary/summary_en", "/aiSummary/useCase_en"]);
    story.publish(3, &v3);
    store("2026-04-16");
    let old = lake.sql(
        "SELECT ai_summary FROM clean.trending WHERE schema_version = 2 AND ai_summary IS NOT NULL LIMIT 1",
    );
    let members = old[0]["ai_summary"].as_object().unwrap();
    assert!(members["summary"].is_string(), "{old:?}");
    assert!(
        members.get("summary_en").is_none_or(Value::is_null),
        "{old:?}"
    );
    let without =
        "SELECT count(*) AS n FROM clean.trending WHERE schema_version = 1 AND ai_summary IS NULL";
    let all = "SELECT count(*) AS n FROM clean.trending WHERE dt <= '2025-12-18'";
    assert_eq!(lake.sql_one(without), lake.sql_one(all));
    lake.assert_clean();
}

/// A repository as one line: from the input under its own names, from SQL under the schema's.
fn line(day: &str, row: &Value, name: impl Fn(&'static str) -> &'static str) -> String {
    let columns = [
        "place",
        "full_name",
        "description",
        "language",
        "stars",
        "forks",
        "today_stars",
        "url",
        "error_message",
    ];
    let cells = columns.map(|c| row.get(name(c)).unwrap_or(&Value::Null).to_string());
    let summary = match row.get(name("ai_summary")) {
        None | Some(Value::Null) => Value::Null,
        Some(of) => {
            let members = [
                "summary",
                "tech_stack",
                "use_case",
                "summary_en",
                "use_case_en",
            ];
            members
                .iter()
                .map(|m| of.get(name(m)).cloned().unwrap_or_default())
                .collect()
        }
    };
    format!("{day}|{}|{summary}", cells.join("|"))
}

fn input_name(column: &'static str) -> &'static str {
    match column {
        "place" => "index",
        "full_name" => "fullName",
        "today_stars" => "todayStars",
        "error_message" => "errorMessage",
        "ai_summary" => "aiSummary",
        "tech_stack" => "techStack",
        "use_case" => "useCase",
        "use_case_en" => "useCase_en",
        other => other,
    }
}

#[test]
fn whole_set_of_nested_documents_arrives_element_by_element() {
    let lake = TestLake::new();
    for (number, draft) in (1..).zip(&versions()) {
        publish(&lake, DATASET, number, draft);
    }
    let mut bulk = Bulk::open(&lake);
    let mut expected = Vec::new();
    let mut days = BTreeMap::new();
    let all = files(&set("github-trending-zh"), "json");
    assert_eq!(all.len(), 234);
    let mut failed = 0;
    for day in &all {
        let repositories = records(&day.path, "/repos");
        let options = Options::version(version_of(&day.day));
        let report = bulk.store(DATASET, day, options, repositories.len());
        assert!(report.drift.is_empty(), "{}: {:?}", day.day, report.drift);
        let presence = serde_json::to_value(&report.presence).unwrap();
        failed += presence["error_message"]["present"].as_u64().unwrap();
        days.insert(day.day.clone(), repositories.len() as u64);
        expected.extend(repositories.iter().map(|r| line(&day.day, r, input_name)));
    }
    assert_eq!(bulk.close(), 3_021);
    assert_eq!(failed, 65);

    let counted =
        lake.sql("SELECT CAST(dt AS VARCHAR) AS d, count(*) AS n FROM clean.trending GROUP BY 1");
    assert_eq!(by_key(&counted, "d", "n"), days);
    let rows = lake.sql("SELECT *, CAST(dt AS VARCHAR) AS d FROM clean.trending");
    let stored = rows
        .iter()
        .map(|r| line(r["d"].as_str().unwrap(), r, |c| c))
        .collect();
    assert_same(stored, expected);

    // Null, empty and filled lists are three states; elements are counted over all versions.
    let states = lake.sql(
        "SELECT count(*) FILTER (WHERE ai_summary IS NULL) AS nulls,
                count(*) FILTER (WHERE cardinality(ai_summary['tech_stack']) = 0) AS empty,
                sum(cardinality(ai_summary['tech_stack'])) AS elements
         FROM clean.trending",
    );
    assert_eq!(
        states[0],
        json!({"nulls": 65, "empty": 3, "elements": 9_129})
    );
    lake.assert_clean();
}
