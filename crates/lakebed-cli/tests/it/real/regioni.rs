//! italy-covid19/regioni: 21 rows a day over five years, under eight schema versions.

use lakebed::ingest::decode::Mismatch;
use lakebed::spec::{Provenance, ReadSpec};
use serde_json::Value;

use crate::lake::TestLake;
use crate::real::bulk::{Bulk, Options};
use crate::real::data::{Cells, DayFile, assert_same, file, files, set};
use crate::real::draft::Draft;
use crate::real::story::{Story, publish};

const DATASET: &str = "clean/regioni";
/// The file that came with semicolons.
const SEMICOLON_DAY: &str = "2020-05-11";
/// The file with a column that has no name.
const UNNAMED_DAY: &str = "2020-03-05";
/// The first day, which was published in July under the header of July.
const LATE_DAY: &str = "2020-02-23";
/// First days of the versions from 2 on.
const FIRST_DAYS: [(&str, u32); 7] = [
    ("2020-03-25", 2),
    ("2020-03-31", 3),
    ("2020-04-01", 4),
    ("2020-04-21", 5),
    ("2020-06-29", 6),
    ("2020-12-09", 7),
    ("2021-01-18", 8),
];

/// Texts and whole numbers of every row, under the names of version 8.
const COLUMNS: [&str; 25] = [
    "codice_regione",
    "note",
    "ricoverati_con_sintomi",
    "terapia_intensiva",
    "totale_ospedalizzati",
    "isolamento_domiciliare",
    "totale_positivi",
    "variazione_totale_positivi",
    "nuovi_positivi",
    "dimessi_guariti",
    "deceduti",
    "casi_da_sospetto_diagnostico",
    "casi_da_screening",
    "totale_casi",
    "tamponi",
    "casi_testati",
    "ingressi_terapia_intensiva",
    "note_test",
    "note_casi",
    "totale_positivi_test_molecolare",
    "totale_positivi_test_antigenico_rapido",
    "tamponi_test_molecolare",
    "tamponi_test_antigenico_rapido",
    "codice_nuts_1",
    "codice_nuts_2",
];

fn versions() -> [Draft; 8] {
    let names = ["stato", "codice_regione", "denominazione_regione"];
    let counts = [
        "ricoverati_con_sintomi",
        "terapia_intensiva",
        "totale_ospedalizzati",
        "isolamento_domiciliare",
        "totale_attualmente_positivi",
        "nuovi_attualmente_positivi",
        "dimessi_guariti",
        "deceduti",
        "totale_casi",
        "tamponi",
    ];
    // `codice_regione` is a text: `08` is Liguria, `8` is nothing.
    let v1 = Draft::new("as first published")
        .field(1, "data", "timestamp")
        .set("data", "formats", "[\"%Y-%m-%d %H:%M:%S\"]")
        .set("data", "time_zone", "\"Europe/Rome\"")
        .fields(2, "string", &names)
        .fields(5, "float", &["lat", "long"])
        .fields(7, "int", &counts)
        .required(&["data", "lat", "long"])
        .required(&names)
        .required(&counts);
    let v2 = v1
        .next("notes in two languages; T between date and time")
        .set(
            "data",
            "formats",
            "[\"%Y-%m-%d %H:%M:%S\", \"%Y-%m-%dT%H:%M:%S\"]",
        )
        .fields(17, "string", &["note_it", "note_en"]);
    let v3 = v2
        .next("two renames, one new count; latitudine and longitudine for this day")
        .rename("totale_attualmente_positivi", "totale_positivi")
        .rename("nuovi_attualmente_positivi", "variazione_totale_positivi")
        .field(19, "nuovi_positivi", "int")
        .required(&["nuovi_positivi"])
        .from("lat", "latitudine")
        .from("long", "longitudine");
    let v4 = v3
        .next("lat and long are back")
        .unset("lat", "from")
        .unset("long", "from");
    let v5 = v4.next("people tested").field(20, "casi_testati", "int");
    let v6 = v5
        .next("one note; cases by their cause")
        .without("note_it")
        .without("note_en")
        .field(21, "note", "string")
        .fields(
            22,
            "int",
            &["casi_da_sospetto_diagnostico", "casi_da_screening"],
        );
    let v7 = v6
        .next("admissions to intensive care")
        .field(24, "ingressi_terapia_intensiva", "int")
        .fields(25, "string", &["note_test", "note_casi"]);
    let v8 = v7
        .next("kinds of tests, statistical codes")
        .fields(
            27,
            "int",
            &[
                "totale_positivi_test_molecolare",
                "totale_positivi_test_antigenico_rapido",
                "tamponi_test_molecolare",
                "tamponi_test_antigenico_rapido",
            ],
        )
        .fields(31, "string", &["codice_nuts_1", "codice_nuts_2"]);
    [v1, v2, v3, v4, v5, v6, v7, v8]
}

fn day(name: &str) -> DayFile {
    file(&set("italy-covid19/regioni"), name, "csv")
}

#[test]
fn headers_change_seven_times_and_each_time_the_day_waits_for_its_version() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, v2, v3, v4, v5, v6, v7, v8] = versions();
    let store = |name: &str| story.store(&day(name), 21, &[]);

    story.publish(1, &v1);
    store("2020-02-24");
    store("2020-03-24");

    story
        .refuse(&day("2020-03-25"), &[])
        .names(&["data", "note_it", "note_en"])
        .counts("data", 21)
        .says(&["2020-03-25T17:00:00"]);
    story.publish(2, &v2);
    store("2020-03-25");
    store("2020-03-30");

    story.refuse(&day("2020-03-31"), &[]).names(&[
        "latitudine",
        "longitudine",
        "totale_positivi",
        "variazione_totale_positivi",
        "nuovi_positivi",
        "lat",
        "long",
        "totale_attualmente_positivi",
        "nuovi_attualmente_positivi",
    ]);
    story.publish(3, &v3);
    store("2020-03-31");

    // The rename of two columns held for one day.
    story
        .refuse(&day("2020-04-01"), &[])
        .names(&["lat", "long"]);
    story.publish(4, &v4);
    store("2020-04-01");
    store("2020-04-20");

    story
        .refuse(&day("2020-04-21"), &[])
        .names(&["casi_testati"])
        .counts("casi_testati", 21);
    story.publish(5, &v5);
    store("2020-04-21");
    store("2020-06-28");

    story.refuse(&day("2020-06-29"), &[]).names(&[
        "note",
        "casi_da_sospetto_diagnostico",
        "casi_da_screening",
    ]);
    story.publish(6, &v6);
    store("2020-06-29");
    store("2020-12-08");

    story.refuse(&day("2020-12-09"), &[]).names(&[
        "ingressi_terapia_intensiva",
        "note_test",
        "note_casi",
    ]);
    story.publish(7, &v7);
    store("2020-12-09");
    store("2021-01-17");

    story.refuse(&day("2021-01-18"), &[]).names(&[
        "totale_positivi_test_molecolare",
        "totale_positivi_test_antigenico_rapido",
        "tamponi_test_molecolare",
        "tamponi_test_antigenico_rapido",
        "codice_nuts_1",
        "codice_nuts_2",
    ]);
    story.publish(8, &v8);
    store("2021-01-18");
    store("2024-11-06");
    store("2025-01-08");

    // The first day was published in July, under the header of July.
    let late = ["--schema-version", "6", "--provenance", "backfill"];
    let report = story.store(&day(LATE_DAY), 21, &late);
    assert_eq!(report["provenance"], "backfill");

    assert_renames(&lake);
    lake.assert_clean();
}

/// One query over all versions reads the renamed columns under their present names.
fn assert_renames(lake: &TestLake) {
    for (name, old, new) in [
        (
            "2020-03-30",
            "totale_attualmente_positivi",
            "totale_positivi",
        ),
        (
            "2020-03-30",
            "nuovi_attualmente_positivi",
            "variazione_totale_positivi",
        ),
        ("2020-03-31", "totale_positivi", "totale_positivi"),
        (
            "2020-04-01",
            "variazione_totale_positivi",
            "variazione_totale_positivi",
        ),
    ] {
        let expected = Cells::read(&day(name).path, ',').sum(old);
        let query = format!("SELECT sum({new}) AS n FROM clean.regioni WHERE dt = '{name}'");
        assert_eq!(lake.sql_one(&query), expected.to_string(), "{name} {old}");
    }
    let nulls = lake.sql_one(
        "SELECT count(*) AS n FROM clean.regioni
         WHERE totale_positivi IS NULL OR variazione_totale_positivi IS NULL OR lat IS NULL",
    );
    assert_eq!(nulls, "0");
    let new = "SELECT count(nuovi_positivi) AS n FROM clean.regioni WHERE dt BETWEEN '2020-02-24' AND '2020-03-30'";
    assert_eq!(lake.sql_one(new), "0");
    // Six in the evening in Rome, in winter.
    let epoch = "SELECT DISTINCT CAST(date_part('epoch', data) AS BIGINT) AS n FROM clean.regioni WHERE dt = '2020-02-24'";
    assert_eq!(lake.sql_one(epoch), "1582563600");
}

#[test]
fn a_column_without_a_name_is_refused_or_keeps_its_cells() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    let [v1, ..] = versions();
    story.publish(1, &v1);
    let odd = day(UNNAMED_DAY);
    story.refuse(&odd, &[]).names(&[""]).counts("", 21);

    let report = story.store(&odd, 21, &["--on-mismatch", "extra"]);
    assert_eq!(report["extra_rows"], 21);
    assert_eq!(report["drift"][0]["field"], "", "{report}");
    story.store(&day("2020-03-06"), 21, &[]);
    let rows = lake.sql(
        "SELECT codice_regione, denominazione_regione, _extra FROM clean.regioni WHERE dt = '2020-03-05'",
    );
    let stored = rows
        .iter()
        .map(|r| {
            let extra: Value = serde_json::from_str(r["_extra"].as_str().unwrap()).unwrap();
            let members = extra.as_object().unwrap();
            assert_eq!(members.len(), 1, "{extra}");
            let cell = members[""].as_str().map(str::to_owned);
            let cell = cell.unwrap_or_else(|| members[""].to_string());
            format!("{} {cell}", text_of(&r["denominazione_regione"]))
        })
        .collect();
    let cells = Cells::read(&odd.path, ',');
    let regions = cells.column("denominazione_regione");
    let expected = regions
        .iter()
        .zip(cells.column(""))
        .map(|(region, cell)| format!("{region} {cell}"))
        .collect();
    assert_same(stored, expected);
    let next_day = "SELECT count(_extra) AS n FROM clean.regioni WHERE dt = '2020-03-06'";
    assert_eq!(lake.sql_one(next_day), "0");
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn a_day_with_semicolons_is_refused_with_advice_and_stored_with_the_delimiter() {
    let lake = TestLake::new();
    let story = Story::of(&lake, DATASET);
    for (number, draft) in (1..=5).zip(&versions()) {
        story.publish(number, draft);
    }
    story.store(&day("2020-05-10"), 21, &[]);
    let odd = day(SEMICOLON_DAY);
    story.refuse(&odd, &[]).says(&["hint", "delimiter", ";"]);
    story.store(&odd, 21, &["--delimiter", ";"]);
    story.store(&day("2020-05-12"), 21, &[]);
    let cells = Cells::read(&odd.path, ';');
    for name in ["totale_casi", "tamponi", "casi_testati"] {
        let query =
            format!("SELECT sum({name}) AS n FROM clean.regioni WHERE dt = '{SEMICOLON_DAY}'");
        assert_eq!(lake.sql_one(&query), cells.sum(name).to_string(), "{name}");
    }
}

fn options_of(day: &str) -> Options {
    let reached = FIRST_DAYS.iter().rfind(|(first, _)| day >= *first);
    let mut options = Options::version(reached.map_or(1, |(_, version)| *version));
    match day {
        SEMICOLON_DAY => {
            options.read = ReadSpec {
                delimiter: Some(";".to_owned()),
                ..ReadSpec::default()
            }
        }
        UNNAMED_DAY => options.mismatch = Mismatch::Extra,
        LATE_DAY => {
            options.version = Some(6);
            options.provenance = Some(Provenance::Backfill);
        }
        _ => {}
    }
    options
}

/// What a year holds, by a reader of our own: every row as a line.
#[derive(Default)]
struct Expected {
    days: usize,
    lines: Vec<String>,
}

impl Expected {
    fn add(&mut self, day: &DayFile, cells: &Cells) {
        self.days += 1;
        let columns = COLUMNS.map(|name| {
            let old = match name {
                "totale_positivi" => "totale_attualmente_positivi",
                "variazione_totale_positivi" => "nuovi_attualmente_positivi",
                same => same,
            };
            let found = [name, old]
                .into_iter()
                .find(|n| cells.header.iter().any(|h| h == n));
            found.map(|found| cells.column(found))
        });
        for row in 0..cells.rows.len() {
            let line = columns.iter().fold(day.day.clone(), |line, column| {
                format!("{line}|{}", column.as_ref().map_or("", |c| c[row]))
            });
            self.lines.push(line);
        }
    }
}

/// Years of the set. Each is a dataset of its own in the tests of the whole set: until logs have
/// checkpoints, every call folds its dataset's log from the first record on, and 1,782 commits on
/// one log would cost minutes that a day's work never pays.
const YEARS: [&str; 6] = ["2020", "2021", "2022", "2023", "2024", "2025"];

/// Stores the years on one thread and returns what they must hold.
fn store_years(lake: &TestLake, years: &[&'static str]) -> Vec<(&'static str, Expected)> {
    let all = files(&set("italy-covid19/regioni"), "csv");
    let mut bulk = Bulk::open(lake);
    let mut done = Vec::new();
    for year in years {
        let dataset = format!("{DATASET}_{year}");
        let mut expected = Expected::default();
        for day in all.iter().filter(|d| d.day.starts_with(year)) {
            let delimiter = if day.day == SEMICOLON_DAY { ';' } else { ',' };
            let cells = Cells::read(&day.path, delimiter);
            let report = bulk.store(&dataset, day, options_of(&day.day), cells.rows.len());
            assert_eq!(
                report.drift.is_empty(),
                day.day != UNNAMED_DAY,
                "{}: {:?}",
                day.day,
                report.drift
            );
            expected.add(day, &cells);
        }
        done.push((*year, expected));
    }
    bulk.close();
    done
}

#[test]
fn whole_set_of_regions_keeps_every_cell() {
    let lake = TestLake::new();
    for year in YEARS {
        for (number, draft) in (1..).zip(&versions()) {
            publish(&lake, &format!("{DATASET}_{year}"), number, draft);
        }
    }
    // Two writers on one lake and catalog, as on a busy morning.
    let (even, odd) = (["2020", "2022", "2024"], ["2021", "2023", "2025"]);
    let done = std::thread::scope(|scope| {
        let other = scope.spawn(|| store_years(&lake, &odd));
        let mut done = store_years(&lake, &even);
        done.extend(other.join().unwrap());
        done
    });
    let days: usize = done.iter().map(|(_, e)| e.days).sum();
    let rows: usize = done.iter().map(|(_, e)| e.lines.len()).sum();
    assert_eq!((days, rows), (1_782, 37_422));

    let tables: Vec<String> = YEARS
        .iter()
        .map(|year| format!("SELECT dt FROM clean.regioni_{year}"))
        .collect();
    let whole = format!(
        "SELECT concat(CAST(count(DISTINCT dt) AS VARCHAR), ' ', CAST(count(*) AS VARCHAR)) AS s FROM ({})",
        tables.join(" UNION ALL ")
    );
    assert_eq!(lake.sql_one(&whole), "1782 37422");
    for (year, expected) in done {
        assert_eq!(expected.lines.len(), 21 * expected.days, "{year}");
        assert_year(&lake, year, expected);
    }
    lake.assert_clean();
}

/// Every row of the year, under the names of version 8; an empty cell is a null.
fn assert_year(lake: &TestLake, year: &str, expected: Expected) {
    let table = format!("clean.regioni_{year}");
    let rows = lake.sql(&format!(
        "SELECT CAST(dt AS VARCHAR) AS d, {} FROM {table}",
        COLUMNS.join(", ")
    ));
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    let stored = rows
        .iter()
        .map(|row| {
            COLUMNS.iter().fold(text(&row["d"]), |line, column| {
                format!("{line}|{}", text(&row[*column]))
            })
        })
        .collect();
    assert_same(stored, expected.lines);
    // The one note of the set that came as `""` is a text without a character, not a null; the one
    // that is a bare number is the text it is.
    let notes = |is: &str| rows.iter().filter(|r| r["note"] == is).count();
    assert_eq!(notes(""), usize::from(year == "2020"), "{year}");
    assert_eq!(notes("1693"), usize::from(year == "2024"), "{year}");
}
