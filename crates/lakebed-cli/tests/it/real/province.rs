//! italy-covid19/province: 23 files in Latin-1 among files in UTF-8, renames for a day, `NA`.

use std::collections::BTreeMap;

use lakebed::spec::{Provenance, ReadSpec};

use crate::lake::TestLake;
use crate::real::bulk::{Bulk, Options};
use crate::real::data::{Cells, DayFile, assert_same, by_key, file, files, set};
use crate::real::draft::Draft;
use crate::real::story::{Story, publish};

const DATASET: &str = "clean/province";
/// The first day, which was published in July under the header of July.
const LATE_DAY: &str = "2020-02-23";
/// First days of the versions from 2 on.
const FIRST_DAYS: [(&str, u32); 7] = [
    ("2020-03-08", 2),
    ("2020-03-09", 3),
    ("2020-03-25", 4),
    ("2020-06-25", 5),
    ("2020-06-27", 6),
    ("2020-06-29", 7),
    ("2021-01-18", 8),
];

fn versions() -> [Draft; 8] {
    let names = [
        "stato",
        "codice_regione",
        "denominazione_regione",
        "codice_provincia",
        "denominazione_provincia",
    ];
    // `sigla_provincia` has no null tokens: `NA` is Naples.
    let v1 = Draft::new("as first published")
        .field(1, "data", "timestamp")
        .set("data", "formats", "[\"%Y-%m-%d %H:%M:%S\"]")
        .set("data", "time_zone", "\"Europe/Rome\"")
        .fields(2, "string", &names)
        .field(7, "sigla_provincia", "string")
        .fields(8, "float", &["lat", "long"])
        .field(10, "totale_casi", "int")
        .required(&["data"])
        .required(&names);
    let v2 = v1
        .next("casi_totali for this day")
        .from("totale_casi", "casi_totali");
    let v3 = v2.next("totale_casi is back").unset("totale_casi", "from");
    let v4 = v3
        .next("notes in two languages; T between date and time")
        .set(
            "data",
            "formats",
            "[\"%Y-%m-%d %H:%M:%S\", \"%Y-%m-%dT%H:%M:%S\"]",
        )
        .fields(11, "string", &["note_it", "note_en"]);
    let v5 = v4
        .next("latitudine and longitudine")
        .from("lat", "latitudine")
        .from("long", "longitudine");
    let v6 = v5
        .next("lat and long are back")
        .unset("lat", "from")
        .unset("long", "from");
    let v7 = v6
        .next("one note")
        .without("note_it")
        .without("note_en")
        .field(13, "note", "string");
    let v8 = v7.next("statistical codes").fields(
        14,
        "string",
        &["codice_nuts_1", "codice_nuts_2", "codice_nuts_3"],
    );
    [v1, v2, v3, v4, v5, v6, v7, v8]
}

fn day(name: &str) -> DayFile {
    file(&set("italy-covid19/province"), name, "csv")
}

/// Offset of the first byte that is no UTF-8; `None` where all are.
fn latin_1_from(file: &DayFile) -> Option<usize> {
    let bytes = std::fs::read(&file.path).unwrap();
    std::str::from_utf8(&bytes).err().map(|e| e.valid_up_to())
}

#[test]
fn latin_1_days_are_refused_with_the_offset_and_stored_with_the_encoding() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, ..] = versions();
    story.publish(1, &v1);
    let odd = day("2020-02-24");
    let offset = latin_1_from(&odd).unwrap();
    assert_eq!(offset, 2_085);
    story
        .refuse_with(4, &odd, &[])
        .says(&["2085", "UTF-8", "encoding"]);
    // A bad byte fails the file under every policy: no row before it is stored.
    story.refuse_with(4, &odd, &["--on-mismatch", "quarantine"]);
    story.store(&odd, 128, &["--encoding", "iso-8859-1"]);
    let forli =
        "SELECT count(*) AS n FROM clean.province WHERE denominazione_provincia = 'Forlì-Cesena'";
    assert_eq!(lake.sql_one(forli), "1");
    let accents =
        "SELECT count(*) AS n FROM clean.province WHERE denominazione_provincia LIKE '%\u{fffd}%'";
    assert_eq!(lake.sql_one(accents), "0");
}

#[test]
fn renames_for_a_day_are_refused_twice_and_become_versions() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, v2, v3, v4, v5, v6, v7, v8] = versions();
    let latin = ["--encoding", "iso-8859-1"];
    let rows = |name: &str| Cells::read(&day(name).path, ',').rows.len();
    let store = |name: &str| story.store(&day(name), rows(name), &[]);

    story.publish(1, &v1);
    story.store(&day("2020-03-07"), 128, &latin);
    story
        .refuse(&day("2020-03-08"), &[])
        .names(&["casi_totali"])
        .counts("casi_totali", 128);
    story.publish(2, &v2);
    store("2020-03-08");
    story
        .refuse(&day("2020-03-09"), &latin)
        .names(&["totale_casi"]);
    story.publish(3, &v3);
    story.store(&day("2020-03-09"), 128, &latin);
    store("2020-03-24");

    story
        .refuse(&day("2020-03-25"), &[])
        .names(&["data", "note_it", "note_en"])
        .counts("data", 128);
    story.publish(4, &v4);
    store("2020-03-25");
    store("2020-06-24");

    story
        .refuse(&day("2020-06-25"), &[])
        .names(&["latitudine", "longitudine"]);
    story.publish(5, &v5);
    store("2020-06-25");
    store("2020-06-26");
    story
        .refuse(&day("2020-06-27"), &[])
        .names(&["lat", "long"]);
    story.publish(6, &v6);
    store("2020-06-27");

    story.refuse(&day("2020-06-29"), &[]).names(&["note"]);
    story.publish(7, &v7);
    store("2020-06-29");
    store("2021-01-17");
    story.refuse(&day("2021-01-18"), &[]).names(&[
        "codice_nuts_1",
        "codice_nuts_2",
        "codice_nuts_3",
    ]);
    story.publish(8, &v8);
    store("2021-01-18");
    let late = ["--schema-version", "7", "--provenance", "backfill"];
    story.store(&day(LATE_DAY), 128, &late);

    // Both names of the count are one column.
    for (name, column) in [("2020-03-07", "totale_casi"), ("2020-03-08", "casi_totali")] {
        let query = format!("SELECT sum(totale_casi) AS n FROM clean.province WHERE dt = '{name}'");
        let expected = Cells::read(&day(name).path, ',').sum(column);
        assert_eq!(lake.sql_one(&query), expected.to_string(), "{name}");
    }
    let places = "SELECT count(lat) AS n FROM clean.province WHERE dt = '2020-06-26'";
    let expected = Cells::read(&day("2020-06-26").path, ',').count("latitudine", |c| !c.is_empty());
    assert_eq!(lake.sql_one(places), expected.to_string());
    lake.assert_clean();
}

fn options_of(day: &DayFile) -> Options {
    let reached = FIRST_DAYS
        .iter()
        .rfind(|(first, _)| day.day.as_str() >= *first);
    let mut options = Options::version(reached.map_or(1, |(_, version)| *version));
    if latin_1_from(day).is_some() {
        options.read = ReadSpec {
            encoding: Some("iso-8859-1".to_owned()),
            ..ReadSpec::default()
        };
    }
    if day.day == LATE_DAY {
        options.version = Some(7);
        options.provenance = Some(Provenance::Backfill);
    }
    options
}

#[test]
fn whole_set_of_provinces_keeps_naples_and_leading_zeros() {
    let lake = TestLake::new();
    for (number, draft) in (1..).zip(&versions()) {
        publish(&lake, DATASET, number, draft);
    }
    let all = files(&set("italy-covid19/province"), "csv");
    assert_eq!(all.len(), 166);
    let mut bulk = Bulk::open(&lake);
    let mut days = BTreeMap::new();
    let mut latin = 0;
    let mut expected = Vec::new();
    for day in &all {
        let cells = Cells::read(&day.path, ',');
        // A file in Latin-1 fails as UTF-8, every one of them.
        if let Some(offset) = latin_1_from(day) {
            latin += 1;
            let mut options = options_of(day);
            options.read = ReadSpec::default();
            let refused = bulk.try_store(DATASET, day, options).unwrap_err();
            let told = format!("{refused:?}");
            assert!(told.contains(&offset.to_string()), "{}: {told}", day.day);
        }
        let report = bulk.store(DATASET, day, options_of(day), cells.rows.len());
        assert!(report.drift.is_empty(), "{}: {:?}", day.day, report.drift);
        days.insert(day.day.clone(), cells.rows.len() as u64);
        let count = if day.day == "2020-03-08" {
            "casi_totali"
        } else {
            "totale_casi"
        };
        let columns = [
            "codice_regione",
            "codice_provincia",
            "denominazione_provincia",
            "sigla_provincia",
            count,
        ]
        .map(|c| cells.column(c));
        for row in 0..cells.rows.len() {
            expected.push(columns.iter().fold(day.day.clone(), |line, column| {
                format!("{line}|{}", column[row])
            }));
        }
    }
    assert_eq!(latin, 23);
    assert_eq!(bulk.close(), 22_151);

    let counted =
        lake.sql("SELECT CAST(dt AS VARCHAR) AS d, count(*) AS n FROM clean.province GROUP BY 1");
    assert_eq!(by_key(&counted, "d", "n"), days);
    let naples = "SELECT count(*) AS n FROM clean.province WHERE sigla_provincia = 'NA'";
    assert_eq!(lake.sql_one(naples), "165");
    let elsewhere = "SELECT count(*) AS n FROM clean.province WHERE sigla_provincia = 'NA' AND codice_provincia <> '063'";
    assert_eq!(lake.sql_one(elsewhere), "0");

    // Codes with their zeros, names with their accents, counts: every row of every day. An empty
    // cell of CSV is a null, so both are an empty text here.
    let rows = lake.sql(
        "SELECT concat_ws('|', CAST(dt AS VARCHAR), codice_regione, codice_provincia, denominazione_provincia,
                coalesce(sigla_provincia, ''), coalesce(CAST(totale_casi AS VARCHAR), '')) AS line
         FROM clean.province",
    );
    let stored = rows
        .iter()
        .map(|r| r["line"].as_str().unwrap().to_owned())
        .collect();
    assert_same(stored, expected);
    lake.assert_clean();
}
