//! The exact text for each engine (files in `tests/`), and what is refused.
//!
//! `.ci/peers/check_views.py` runs such statements in DuckDB and ClickHouse and compares the rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ErrorKind;
use crate::name::DatasetRef;
use crate::registry::view::{Engine, ViewRequest, ViewStatement, write_view};
use crate::spec::{FieldSpec, SchemaSpec};

const V1: &str = r#"
1 標題 string
2 price decimal(10,2)
3 gone int
4 who struct
  5 name string
  6 age int
7 tags list<struct>
  8 a string
9 props map<struct>
  10 a string
11 same list<struct>
  12 x int
"#;
const V2: &str = r#"
1 題名 string
2 price decimal(12,4)
4 who struct
  5 nick string
  6 age int
  13 mail string
7 tags list<struct>
  8 b string
9 props map<struct>
  10 b string
  14 n int
11 same list<struct>
  12 x int
15 or"der`'s string
16 at timestamp
17 day date
18 ok bool
19 select float
20 raw bytes
"#;

/// Fields from lines of id, name, type, and for a retyped field the column in the files; members are indented below their field.
fn fields(text: &str) -> Vec<FieldSpec> {
    let mut all: Vec<FieldSpec> = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let cells: Vec<&str> = line.split_whitespace().collect();
        let field = FieldSpec::new(
            cells[0].parse().unwrap(),
            cells[1],
            cells[2].parse().unwrap(),
        );
        let mut field = field;
        if let Some(column) = cells.get(3) {
            field.change = Some(crate::spec::ChangeKind::Retype);
            field.column = Some((*column).to_owned());
        }
        if *cells.get(2).unwrap() == "enum" {
            field.values = vec!["flat".to_owned(), "it's".to_owned()];
        }
        let mut level = &mut all;
        for _ in 0..depth {
            level = &mut level.last_mut().unwrap().fields;
        }
        level.push(field);
    }
    all
}

fn versions(texts: &[&str]) -> BTreeMap<u32, SchemaSpec> {
    let spec = |version: u32, text| SchemaSpec {
        dataset: "clean/shop".parse().unwrap(),
        version,
        note: None,
        base: None,
        removed: Vec::new(),
        input: crate::spec::ReadSpec::default(),
        fields: fields(text),
    };
    (1..)
        .zip(texts)
        .map(|(v, text)| (v, spec(v, text)))
        .collect()
}

/// A view of `texts`, of which the versions `filled` have rows.
fn view(
    engine: Engine,
    texts: &[&str],
    filled: &[u32],
    location: &str,
    name: Option<&str>,
) -> crate::error::Result<ViewStatement> {
    let dataset: DatasetRef = "clean/shop".parse().unwrap();
    write_view(&ViewRequest {
        engine,
        dataset: &dataset,
        versions: &versions(texts),
        filled: &BTreeSet::from_iter(filled.iter().copied()),
        location,
        name,
        table: (engine == Engine::Trino).then_some("hive.crawl.shop_files"),
    })
}

fn three_versions(engine: Engine, location: &str, name: Option<&str>) -> ViewStatement {
    let v3 = format!("{V2}21 later map<list<decimal(8,1)>>\n");
    view(engine, &[V1, V2, &v3], &[1, 2], location, name).unwrap()
}

const OLD_TYPES: &str = "
1 a string
2 b string
3 c string
4 d string
5 e string
6 f string
7 g string
11 h int
12 i int
13 j int
14 k decimal(20,8)
15 l decimal(20,8)
16 m float
17 n float
18 o date
19 p timestamp
20 q decimal(12,2)
21 r bool
22 s decimal(20,8)
";
const NEW_TYPES: &str = "
101 a int a_
102 b float b_
103 c bool c_
104 d decimal(12,2) d_
105 e date e_
106 f timestamp f_
107 g enum g_
111 h float h_
112 i bool i_
113 j decimal(12,2) j_
114 k int k_
115 l string l_
116 m int m_
117 n decimal(12,2) n_
118 o timestamp o_
119 p date p_
120 q decimal(4,2) q_
121 r int r_
122 s float s_
";

#[test]
fn old_types_are_cast_as_each_engine_says_it() {
    for (engine, wanted) in [
        (Engine::DuckDb, include_str!("tests/retyped_duckdb.sql")),
        (
            Engine::ClickHouse,
            include_str!("tests/retyped_clickhouse.sql"),
        ),
        (Engine::Spark, include_str!("tests/retyped_spark.sql")),
        (Engine::Trino, include_str!("tests/retyped_trino.sql")),
    ] {
        let text = view(engine, &[OLD_TYPES, NEW_TYPES], &[1, 2], "/lake", None);
        let text = text.unwrap().text();
        assert_eq!(text, wanted);
    }
}

#[test]
fn duckdb_reads_the_versions_that_have_rows() {
    let view = three_versions(Engine::DuckDb, "/data/it's lake/", None);
    assert_eq!(view.text(), include_str!("tests/duckdb.sql"));
    assert_eq!((view.versions, view.left_out), (vec![1, 2], vec![3]));
}

#[test]
fn clickhouse_reads_every_version_with_its_columns_spelled_out() {
    let view = three_versions(Engine::ClickHouse, "/data/it's lake", None);
    assert_eq!(view.text(), include_str!("tests/clickhouse.sql"));
    assert_eq!((view.versions, view.left_out), (vec![1, 2, 3], vec![]));
    let types: Vec<_> = view.columns[..4]
        .iter()
        .map(|c| (c.id, c.engine_type.as_str()))
        .collect();
    let source = Some(crate::spec::SOURCE_FIELD_ID);
    assert_eq!(
        types,
        [
            (source, "Nullable(String)"),
            (None, "Date32"),
            (None, "Int64"),
            (Some(1), "Nullable(String)")
        ]
    );
}

#[test]
fn spark_takes_the_date_from_the_path_of_the_file() {
    let view = three_versions(Engine::Spark, "s3a://bucket/lake", Some("crawl.shop`s"));
    assert_eq!(view.text(), include_str!("tests/spark.sql"));
}

#[test]
fn trino_reads_a_registered_table_of_all_names() {
    let name = Some("hive.crawl.all \"shop\"");
    let view = three_versions(Engine::Trino, "s3://bucket/lake", name);
    assert_eq!(view.text(), include_str!("tests/trino.sql"));
}

#[test]
fn lambdas_within_lambdas_have_names_of_their_own() {
    let v1 = "1 a list<map<list<struct>>>\n  2 b decimal(4,1)\n";
    let v2 = "1 a list<map<list<struct>>>\n  2 c decimal(6,2)\n";
    let first = |engine| {
        let text = view(engine, &[v1, v2], &[1, 2], "/l", None)
            .unwrap()
            .statement;
        text.lines()
            .nth(4)
            .unwrap()
            .trim()
            .trim_end_matches(',')
            .to_owned()
    };
    assert_eq!(
        first(Engine::Spark),
        "transform(`a`, _e1 -> transform_values(_e1, (_k2, _v2) -> transform(_v2, _e3 -> \
         CASE WHEN _e3 IS NOT NULL THEN named_struct('c', CAST(_e3.`b` AS DECIMAL(6,2))) END))) AS `a`"
    );
    assert_eq!(
        first(Engine::DuckDb),
        "[map_from_entries([struct_pack(k := struct_extract(_e2, 'key'), v := \
         [CASE WHEN _e3 IS NOT NULL THEN struct_pack(\"c\" := CAST(struct_extract(_e3, 'b') AS DECIMAL(6,2))) END \
         FOR _e3 IN struct_extract(_e2, 'value')]) FOR _e2 IN map_entries(_e1)]) FOR _e1 IN \"a\"] AS \"a\""
    );
}

#[test]
fn trino_does_not_lose_a_member_that_changed_its_case() {
    let v1 = "1 Who struct\n  2 Name string\n  3 a int\n";
    let v2 = "1 who struct\n  2 name string\n";
    let text = view(Engine::Trino, &[v1, v2], &[1, 2], "/l", None)
        .unwrap()
        .text();
    assert!(
        text.contains("--   \"who\" ROW(\"name\" VARCHAR, \"a\" BIGINT),"),
        "{text}"
    );
    // The table's order is the newest one's, then the members of older versions: nothing to rebuild.
    assert!(text.contains("_t.\"Who\" AS \"who\""), "{text}");
}

#[test]
fn trino_refuses_two_fields_of_one_name_and_others_tell_them_apart() {
    let texts = ["1 a bytes\n", "2 a int\n"];
    let error = view(Engine::Trino, &texts, &[1, 2], "/l", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    let text = view(Engine::DuckDb, &texts, &[1, 2], "/l", None)
        .unwrap()
        .statement;
    assert!(text.contains("\"a\" AS \"a__v1\""), "{text}");
    assert!(text.contains("CAST(NULL AS BLOB) AS \"a__v1\""), "{text}");
}

#[test]
fn a_dataset_without_rows_is_refused_where_the_engine_needs_files() {
    for engine in [Engine::DuckDb, Engine::Spark] {
        let error = view(engine, &[V1], &[], "/l", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    }
    for engine in [Engine::ClickHouse, Engine::Trino] {
        assert_eq!(view(engine, &[V1], &[], "/l", None).unwrap().versions, [1]);
    }
    for engine in [Engine::DuckDb, Engine::ClickHouse, Engine::Trino] {
        let error = view(engine, &[], &[], "/l", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "nothing is published");
    }
}

#[test]
fn clickhouse_takes_the_function_of_the_location() {
    let source = |location: &str| {
        let text = view(Engine::ClickHouse, &["1 a int\n"], &[], location, None)?.statement;
        let line = text
            .lines()
            .find(|l| l.starts_with("FROM "))
            .unwrap_or_default();
        Ok::<String, crate::error::Error>(line.split(", ").next().unwrap_or_default().to_owned())
    };
    let glob = "clean/shop/dt=*/schema_version=1/*.parquet";
    for (location, expected) in [
        ("s3://b/l", format!("FROM s3('s3://b/l/{glob}'")),
        (
            "http://minio:9000/b/l",
            format!("FROM s3('http://minio:9000/b/l/{glob}'"),
        ),
        ("gs://b/l", format!("FROM gcs('gs://b/l/{glob}'")),
        ("hdfs://n:1/l", format!("FROM hdfs('hdfs://n:1/l/{glob}'")),
        ("file:///l", format!("FROM file('/l/{glob}'")),
        ("rel/l\\", format!("FROM file('rel/l\\\\/{glob}'")),
    ] {
        assert_eq!(source(location).unwrap(), expected);
    }
    assert_eq!(
        source("abfss://x/l").unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn a_location_that_is_not_taken_literally_is_refused() {
    let refused = |engine, location| match view(engine, &["1 標題 int\n"], &[1], location, None) {
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::InvalidInput,
    };
    let all = [
        Engine::DuckDb,
        Engine::ClickHouse,
        Engine::Spark,
        Engine::Trino,
    ];
    for (location, expected) in [
        ("/l", [false, false, false, false]),
        ("", [true, true, true, true]),
        ("/l\n", [true, true, true, true]),
        ("/l*", [true, true, true, false]),
        ("/[l]", [true, false, true, false]),
        ("/{l}", [false, true, true, false]),
        ("/a::b", [false, true, false, false]),
        ("/a\\b", [true, false, true, false]),
        ("/a\"b", [false, true, false, false]),
        ("/env=prod/l", [false, false, false, false]),
        ("/DT=1/l", [true, true, true, true]),
        ("/標題=1/l", [true, true, true, true]),
        ("/source=1/l", [true, true, true, true]),
    ] {
        assert_eq!(
            all.map(|engine| refused(engine, location)),
            expected,
            "{location:?}"
        );
    }
}

#[test]
fn a_name_is_quoted_part_by_part() {
    let of = |name| view(Engine::DuckDb, &["1 a int\n"], &[1], "/l", Some(name));
    let text = of("my db.v\"w").unwrap().statement;
    assert!(
        text.starts_with("CREATE OR REPLACE VIEW \"my db\".\"v\"\"w\" AS\nSELECT\n"),
        "{text}"
    );
    for bad in ["", ".", "a..b", "a\nb"] {
        assert_eq!(
            of(bad).unwrap_err().kind(),
            ErrorKind::InvalidInput,
            "{bad:?}"
        );
    }
}
