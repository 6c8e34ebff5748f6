//! csse-covid19: twelve headers, five renames at once, the wrong file published on two days,
//! whole numbers with a fraction of zero on two others.

use std::collections::BTreeMap;

use crate::lake::TestLake;
use crate::real::bulk::{Bulk, Options};
use crate::real::data::{Cells, DayFile, by_key, file, files, set};
use crate::real::draft::Draft;
use crate::real::story::{Story, publish};

const DATASET: &str = "clean/csse";
/// Where the two wrong files belong: the daily report of the states of the US.
const WRONG_DATASET: &str = "clean/csse_us";
/// The last versions of early days, which the publisher wrote over the first ones.
const REVISED_DATASET: &str = "clean/csse_revised";
/// Days on which the daily report of another dataset was published.
const WRONG_DAYS: [&str; 2] = ["2020-04-12", "2020-04-18"];
/// Columns of the wrong file that the right one does not have.
const WRONG_COLUMNS: [&str; 5] = [
    "Incident_Rate",
    "People_Tested",
    "People_Hospitalized",
    "UID",
    "ISO3",
];
/// First days of the versions from 2 on.
const FIRST_DAYS: [(&str, u32); 7] = [
    ("2020-02-02", 2),
    ("2020-03-01", 3),
    ("2020-03-24", 4),
    ("2020-05-29", 5),
    ("2020-06-29", 6),
    ("2020-10-28", 7),
    ("2020-11-09", 8),
];

const WITH_T: &str = "[\"%m/%d/%Y %H:%M\", \"%Y-%m-%dT%H:%M:%S\"]";
const WITH_BLANK: &str = "[\"%m/%d/%Y %H:%M\", \"%Y-%m-%dT%H:%M:%S\", \"%Y-%m-%d %H:%M:%S\"]";

/// The first header; `formats` of the only time, which names no zone: the publisher means UTC.
fn first_header(note: &str, formats: &str) -> Draft {
    Draft::new(note)
        .field_from(1, "province_state", "string", "Province/State")
        .field_from(2, "country_region", "string", "Country/Region")
        .field_from(3, "last_update", "timestamp", "Last Update")
        .set("last_update", "formats", formats)
        .set("last_update", "time_zone", "\"UTC\"")
        .field_from(4, "confirmed", "int", "Confirmed")
        .field_from(5, "deaths", "int", "Deaths")
        .field_from(6, "recovered", "int", "Recovered")
        .required(&["last_update"])
}

fn with_places(before: &Draft) -> Draft {
    before
        .next("places on the map")
        .field_from(7, "latitude", "float", "Latitude")
        .field_from(8, "longitude", "float", "Longitude")
}

/// Five columns get other names at once, four are new.
fn with_counties(before: &Draft, formats: &str) -> Draft {
    before
        .next("counties of the US; underscores in place of slashes and blanks")
        .from("province_state", "Province_State")
        .from("country_region", "Country_Region")
        .from("last_update", "Last_Update")
        .set("last_update", "formats", formats)
        .from("latitude", "Lat")
        .from("longitude", "Long_")
        // `08001` is a county, `8001` is another text: a code is no number.
        .field_from(9, "fips", "string", "FIPS")
        .field_from(10, "admin2", "string", "Admin2")
        .field_from(11, "active", "int", "Active")
        .field_from(12, "combined_key", "string", "Combined_Key")
}

fn versions() -> [Draft; 8] {
    let v1 = first_header("as first published", "[\"%m/%d/%Y %H:%M\"]");
    let v2 = v1
        .next("another form of the time")
        .set("last_update", "formats", WITH_T);
    let v3 = with_places(&v2);
    let v4 = with_counties(&v3, WITH_BLANK);
    let v5 = v4
        .next("rates")
        .field_from(13, "incidence_rate", "float", "Incidence_Rate")
        .field_from(14, "case_fatality_ratio", "float", "Case-Fatality_Ratio");
    let dual = |before: &Draft, id: u32, name: &str, from: &str| {
        before
            .next("whole numbers with a fraction of zero")
            .field_from(id, name, "decimal(12,0)", from)
            .set(name, "change", "\"dual\"")
    };
    let v6 = dual(&v5, 15, "active_exact", "Active");
    let v7 = dual(&v6, 16, "deaths_exact", "Deaths");
    let v8 = v7
        .next("two columns have other names")
        .rename("incidence_rate", "incident_rate")
        .from("incident_rate", "Incident_Rate")
        .from("case_fatality_ratio", "Case_Fatality_Ratio");
    [v1, v2, v3, v4, v5, v6, v7, v8]
}

/// The table that the two wrong files are of.
fn states_of_the_us() -> Draft {
    let texts = [
        "Province_State",
        "Country_Region",
        "Admin2",
        "FIPS",
        "Combined_Key",
        "UID",
        "ISO3",
    ];
    Draft::new("daily report of the states of the US")
        .fields(1, "string", &texts)
        .field(8, "Last_Update", "timestamp")
        .set("Last_Update", "formats", "[\"%Y-%m-%d %H:%M:%S\"]")
        .set("Last_Update", "time_zone", "\"UTC\"")
        .fields(9, "float", &["Lat", "Long_", "Incident_Rate"])
        .fields(
            12,
            "int",
            &[
                "Confirmed",
                "Deaths",
                "Recovered",
                "Active",
                "People_Tested",
                "People_Hospitalized",
            ],
        )
}

fn first(name: &str) -> DayFile {
    file(&set("csse-covid19/first"), name, "csv")
}

fn rows_of(file: &DayFile) -> usize {
    Cells::read(&file.path, ',').rows.len()
}

#[test]
fn twelve_headers_are_refused_until_their_version_is_there() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, v2, v3, v4, v5, ..] = versions();
    let store = |name: &str| story.store(&first(name), rows_of(&first(name)), &[]);

    story.publish(1, &v1);
    store("2020-01-22");
    store("2020-02-01");
    story
        .refuse(&first("2020-02-02"), &[])
        .names(&["last_update"])
        .counts("last_update", rows_of(&first("2020-02-02")))
        .says(&["2020-02-02T23:43:02"]);
    story.publish(2, &v2);
    store("2020-02-02");
    store("2020-02-14");
    store("2020-02-29");

    story
        .refuse(&first("2020-03-01"), &[])
        .names(&["Latitude", "Longitude"]);
    story.publish(3, &v3);
    store("2020-03-01");
    store("2020-03-23");

    story.refuse(&first("2020-03-24"), &[]).names(&[
        "FIPS",
        "Admin2",
        "Province_State",
        "Country_Region",
        "Last_Update",
        "last_update",
        "Lat",
        "Long_",
        "Active",
        "Combined_Key",
    ]);
    story.publish(4, &v4);
    store("2020-03-24");
    store("2020-04-11");
    for (wrong, next) in WRONG_DAYS.iter().zip(["2020-04-13", "2020-04-19"]) {
        story
            .refuse(&first(wrong), &[])
            .names(&WRONG_COLUMNS)
            .counts("People_Tested", 0);
        store(next);
    }
    store("2020-04-20");

    story
        .refuse(&first("2020-05-29"), &[])
        .names(&["Incidence_Rate", "Case-Fatality_Ratio"]);
    story.publish(5, &v5);
    store("2020-05-29");

    let mixed = lake
        .sql_one("SELECT count(*) AS n FROM clean.csse WHERE dt IN ('2020-04-12', '2020-04-18')");
    assert_eq!(mixed, "0");
    // Renamed inputs are one column each over all versions.
    for (name, column) in [
        ("2020-03-23", "Country/Region"),
        ("2020-03-24", "Country_Region"),
    ] {
        let expected = Cells::read(&first(name).path, ',').count(column, |c| !c.is_empty());
        let query =
            format!("SELECT count(country_region) AS n FROM clean.csse WHERE dt = '{name}'");
        assert_eq!(lake.sql_one(&query), expected.to_string(), "{name}");
    }
    lake.assert_clean();
}

#[test]
fn whole_numbers_with_a_fraction_get_a_field_beside_the_old_one() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let all = versions();
    for (number, draft) in (1..=5).zip(&all) {
        story.publish(number, draft);
    }
    let active_day = first("2020-06-29");
    let cells = Cells::read(&active_day.path, ',');
    let faults = cells.count("Active", |c| c.ends_with(".0"));
    assert_eq!(faults, 3_781);
    story
        .refuse(&active_day, &[])
        .names(&["active"])
        .counts("active", faults)
        .says(&["106.0"]);
    story.publish(6, &all[5]);
    story.store(&active_day, cells.rows.len(), &[]);

    let deaths_day = first("2020-10-28");
    let deaths = Cells::read(&deaths_day.path, ',');
    let faults = deaths.count("Deaths", |c| c.ends_with(".0"));
    assert_eq!(faults, 3_958);
    story
        .refuse(&deaths_day, &[])
        .names(&["deaths"])
        .counts("deaths", faults)
        .says(&["1529.0"]);
    story.publish(7, &all[6]);
    story.store(&deaths_day, deaths.rows.len(), &[]);
    let before = first("2020-11-08");
    story.store(&before, rows_of(&before), &[]);

    let renamed = first("2020-11-09");
    story
        .refuse(&renamed, &[])
        .names(&["Incident_Rate", "Case_Fatality_Ratio"]);
    story.publish(8, &all[7]);
    story.store(&renamed, rows_of(&renamed), &[]);

    for (day, exact, old, sum) in [
        ("2020-06-29", "active_exact", "active", cells.sum("Active")),
        ("2020-10-28", "deaths_exact", "deaths", deaths.sum("Deaths")),
    ] {
        let query = format!(
            "SELECT concat(CAST(sum({exact}) AS VARCHAR), ' ', CAST(count({old}) AS VARCHAR)) AS s FROM clean.csse WHERE dt = '{day}'"
        );
        assert_eq!(lake.sql_one(&query), format!("{sum} 0"), "{day}");
    }
    // A rename under one id: the old day answers under the new name.
    for (day, column) in [
        ("2020-11-08", "Incidence_Rate"),
        ("2020-11-09", "Incident_Rate"),
    ] {
        let expected = Cells::read(&first(day).path, ',').count(column, |c| !c.is_empty());
        let query = format!("SELECT count(incident_rate) AS n FROM clean.csse WHERE dt = '{day}'");
        assert_eq!(lake.sql_one(&query), expected.to_string(), "{day}");
    }
    lake.assert_clean();
}

#[test]
fn a_year_of_two_digits_is_not_taken_for_the_year_20() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, ..] = versions();
    story.publish(1, &v1);
    let revised = file(&set("csse-covid19/revised"), "2020-01-23", "csv");
    story
        .refuse(&revised, &[])
        .names(&["last_update"])
        .counts("last_update", 46)
        .says(&["1/23/20 17:00"]);
}

/// What the whole set holds, by a reader of our own.
#[derive(Default)]
struct Expected {
    days: BTreeMap<String, u64>,
    sums: BTreeMap<&'static str, i64>,
    padded_codes: usize,
    none_texts: usize,
    leading_blanks: usize,
    trailing_blanks: usize,
    with_place: usize,
}

impl Expected {
    fn add(&mut self, day: &DayFile, cells: &Cells) {
        self.days.insert(day.day.clone(), cells.rows.len() as u64);
        let has = |name: &str| cells.header.iter().any(|h| h == name);
        for name in ["Confirmed", "Deaths", "Recovered", "Active"] {
            if has(name) {
                *self.sums.entry(name).or_default() += cells.sum(name);
            }
        }
        if has("FIPS") {
            self.padded_codes += cells.count("FIPS", |c| c.starts_with('0'));
        }
        let province = if has("Province_State") {
            "Province_State"
        } else {
            "Province/State"
        };
        self.none_texts += cells.count(province, |c| c == "None");
        self.leading_blanks += cells.count(province, |c| c.starts_with(' '));
        let country = if has("Country_Region") {
            "Country_Region"
        } else {
            "Country/Region"
        };
        self.trailing_blanks += cells.count(country, |c| c.ends_with(' '));
        if let Some(latitude) = ["Lat", "Latitude"].into_iter().find(|c| has(c)) {
            self.with_place += cells.count(latitude, |c| !c.is_empty());
        }
    }
}

fn version_of(day: &str) -> u32 {
    let reached = FIRST_DAYS.iter().rfind(|(first, _)| day >= *first);
    reached.map_or(1, |(_, version)| *version)
}

/// Rows of all files: the README's total, or that of the part of the set that is often handed on
/// (January to May 2020 and the days of drift after it).
fn total_of(files: usize) -> u64 {
    match files {
        328 => 994_285,
        135 => 240_268,
        other => panic!("first/ has {other} files: neither the whole set (328) nor its part (135)"),
    }
}

#[test]
fn whole_set_of_daily_reports_without_the_two_wrong_files() {
    let lake = TestLake::new();
    for (number, draft) in (1..).zip(&versions()) {
        publish(&lake, DATASET, number, draft);
    }
    publish(&lake, WRONG_DATASET, 1, &states_of_the_us());
    let all = files(&set("csse-covid19/first"), "csv");
    let mut bulk = Bulk::open(&lake);
    let mut expected = Expected::default();
    let mut wrong_rows = 0;
    for day in &all {
        let cells = Cells::read(&day.path, ',');
        let rows = cells.rows.len();
        let options = Options::version(version_of(&day.day));
        if WRONG_DAYS.contains(&day.day.as_str()) {
            let refused = bulk.try_store(DATASET, day, options);
            let told = format!("{refused:?}");
            for column in WRONG_COLUMNS {
                assert!(told.contains(column), "`{column}` is not told: {told}");
            }
            let stored = bulk.store(WRONG_DATASET, day, Options::version(1), rows);
            assert!(stored.drift.is_empty(), "{:?}", stored.drift);
            wrong_rows += rows;
            continue;
        }
        let report = bulk.store(DATASET, day, options, rows);
        assert_drift_is_dual(&report);
        expected.add(day, &cells);
    }
    assert_eq!(wrong_rows, 2_989 + 3_053);
    assert_eq!(bulk.close(), total_of(all.len()));

    let counted =
        lake.sql("SELECT CAST(dt AS VARCHAR) AS d, count(*) AS n FROM clean.csse GROUP BY 1");
    assert_eq!(by_key(&counted, "d", "n"), expected.days);
    let wrong = lake.sql_one("SELECT count(*) AS n FROM clean.csse_us");
    assert_eq!(wrong, wrong_rows.to_string());
    assert_sums(&lake, &expected);
    lake.assert_clean();
}

/// Only the days whose numbers have a fraction of zero differ from their version, in the old field.
#[track_caller]
fn assert_drift_is_dual(report: &lakebed::ingest::IngestReport) {
    let fields: Vec<&str> = report.drift.items().map(|i| i.field.as_str()).collect();
    let day = report.date.to_string();
    let known = match day.as_str() {
        "2020-06-29" => fields.iter().all(|f| *f == "active"),
        "2020-10-28" => fields.iter().all(|f| *f == "deaths"),
        _ => fields.is_empty(),
    };
    assert!(known, "{day}: {fields:?}");
}

fn assert_sums(lake: &TestLake, expected: &Expected) {
    let sums = lake.sql(
        "SELECT sum(confirmed) AS \"Confirmed\", sum(recovered) AS \"Recovered\",
                CAST(sum(coalesce(CAST(deaths AS DECIMAL(18,0)), deaths_exact)) AS BIGINT) AS \"Deaths\",
                CAST(sum(coalesce(CAST(active AS DECIMAL(18,0)), active_exact)) AS BIGINT) AS \"Active\",
                count(latitude) AS places
         FROM clean.csse",
    );
    for (name, sum) in &expected.sums {
        assert_eq!(sums[0][*name], *sum, "{name}");
    }
    assert_eq!(sums[0]["places"], expected.with_place);
    for (count, expected) in [
        ("fips LIKE '0%'", expected.padded_codes),
        ("province_state = 'None'", expected.none_texts),
        ("province_state LIKE ' %'", expected.leading_blanks),
        ("country_region LIKE '% '", expected.trailing_blanks),
    ] {
        let query = format!("SELECT count(*) AS n FROM clean.csse WHERE {count}");
        let counted = lake.sql_one(&query).parse::<usize>().unwrap();
        assert_eq!(counted, expected, "{count}");
    }
    assert_eq!(expected.padded_codes, 5_162);
    assert_eq!(expected.none_texts, 4);
    assert!(expected.leading_blanks > 0 && expected.trailing_blanks > 0);
    // Seventeen digits come back as the nearest double.
    let rate = lake.sql_one(
        "SELECT CAST(\"Incident_Rate\" AS VARCHAR) AS x FROM clean.csse_us WHERE dt = '2020-04-12' AND \"UID\" = '84045001'",
    );
    assert_eq!(rate.parse::<f64>().unwrap(), 36.694_255_310_474_17);
}

#[test]
fn whole_set_of_revised_days_lies_in_a_dataset_of_its_own() {
    let short_years = "[\"%m/%d/%y %H:%M\", \"%Y-%m-%dT%H:%M:%S\"]";
    let all_forms = "[\"%m/%d/%y %H:%M\", \"%Y-%m-%dT%H:%M:%S\", \"%Y-%m-%d %H:%M:%S\"]";
    let v1 = first_header("years of two digits", short_years);
    let v2 = with_places(&v1);
    let v3 = with_counties(&v2, all_forms);
    let lake = TestLake::new();
    for (number, draft) in (1..).zip([&v1, &v2, &v3]) {
        publish(&lake, REVISED_DATASET, number, draft);
    }
    let all = files(&set("csse-covid19/revised"), "csv");
    assert_eq!(all.len(), 36);
    let mut bulk = Bulk::open(&lake);
    let mut days = BTreeMap::new();
    for day in &all {
        let version = match day.day.as_str() {
            early if early < "2020-03-01" => 1,
            spring if spring < "2020-03-22" => 2,
            _ => 3,
        };
        let rows = rows_of(day);
        let report = bulk.store(REVISED_DATASET, day, Options::version(version), rows);
        assert!(report.drift.is_empty(), "{}: {:?}", day.day, report.drift);
        days.insert(day.day.clone(), rows as u64);
    }
    assert_eq!(bulk.close(), 12_514);
    let counted = lake
        .sql("SELECT CAST(dt AS VARCHAR) AS d, count(*) AS n FROM clean.csse_revised GROUP BY 1");
    assert_eq!(by_key(&counted, "d", "n"), days);
    let years = "SELECT DISTINCT CAST(date_part('year', last_update) AS BIGINT) AS y FROM clean.csse_revised";
    assert_eq!(lake.sql_one(years), "2020");
    assert_eq!(lake.sql(years).len(), 1);
    lake.assert_clean();
}
