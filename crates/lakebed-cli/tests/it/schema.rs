//! Schema versions from files to published numbers.

use crate::lake::TestLake;

const FIELDS: &str = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n\n[[field]]\nid = 2\nname = \"kind\"\ntype = \"enum\"\nvalues = [\"flat\", \"house\"]\n";

#[test]
fn from_files_to_a_published_version() {
    let lake = TestLake::new();
    lake.run(&["source", "add", "shop"]).ok();
    let file = lake.file(
        "a.jsonl",
        "{\"id\": 1, \"名\": \"杯\", \"price\": 1.50, \"at\": \"2026-11-30T08:00:00+08:00\"}\n{\"id\": 2, \"tags\": [\"x\"]}\n",
    );
    let before = lake.files();
    let infer = lake
        .run(&["schema", "infer", "clean/shop", file.to_str().unwrap()])
        .ok();
    insta::assert_snapshot!("infer", infer.snapshot());
    let proposed = lake
        .run(&["schema", "propose", "clean/shop", file.to_str().unwrap()])
        .ok();
    assert!(proposed.stdout.contains("v1.toml"), "{proposed}");
    assert_eq!(before, lake.files(), "nothing was published");
    lake.run(&["schema", "check"]).ok();
    lake.run(&["schema", "propose", "clean/shop", "a.jsonl"])
        .code(1)
        .says(&["there already"]);
    lake.run(&["schema", "publish", "clean/shop", "1"]).ok();
    lake.run(&["schema", "publish", "clean/shop", "1"]).ok();
    lake.ingest("clean/shop", &["a.jsonl", "--date", "2026-11-30"])
        .ok();
    assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.shop"), "2");
}

#[test]
fn a_number_belongs_to_one_content_for_ever() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.schema("clean/a", 1, &FIELDS.replace("\"k\"", "\"key\""));
    let run = lake
        .run(&["schema", "publish", "clean/a", "1", "--format", "json"])
        .code(1);
    assert_eq!(run.error()["kind"], "already_exists");
    assert!(
        run.error()["details"][0].as_str().unwrap().contains("key"),
        "{run}"
    );
    lake.run(&["schema", "check", "clean/a"]).code(1);
}

#[test]
fn unsound_versions_are_refused_with_file_and_every_problem() {
    let lake = TestLake::new();
    let file = lake.schema(
        "clean/a",
        1,
        "\n[[field]]\nid = 1\nname = \"DT\"\ntype = \"int\"\n\n[[field]]\nid = 1\nname = \"b\"\ntype = \"int\"\n",
    );
    let run = lake.run(&["schema", "publish", "clean/a", "1"]).code(2);
    let run = run.says(&[file.to_str().unwrap(), "DT", "also:"]);
    assert!(run.stdout.is_empty());
    lake.schema(
        "clean/a",
        1,
        "\n[[field]]\nid = 1\nname = \"b\"\ntype = \"varchar\"\n",
    );
    lake.run(&["schema", "publish", "clean/a", "1"])
        .code(2)
        .says(&["varchar", "string", "line:"]);
    lake.run(&["schema", "publish", "clean/a", "2"])
        .code(2)
        .says(&["no file for version 2"]);
    lake.run(&["schema", "publish", "clean/b", "1"]).code(2);
}

#[test]
fn the_next_version_is_proposed_compared_and_published() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file(
        "b.jsonl",
        "{\"k\": 1, \"kind\": \"boat\", \"new\": {\"deep\": true}}\n",
    );
    lake.run(&["schema", "propose", "clean/a", "b.jsonl"]).ok();
    let diff = lake.run(&["schema", "diff", "clean/a", "1", "2"]).code(1);
    insta::assert_snapshot!("schema_diff", diff.snapshot());
    lake.run(&["schema", "diff", "clean/a", "1", "1"]).ok();
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();
    let history = lake
        .run(&[
            "schema", "history", "clean/a", "new.deep", "--format", "json",
        ])
        .ok()
        .json();
    assert_eq!(history["fields"][0]["since"], 2);
    lake.run(&["schema", "history", "clean/a", "nwe"])
        .code(2)
        .says(&["did you mean `new`"]);
    let list = lake
        .run(&["schema", "list", "clean/a", "--format", "json"])
        .ok()
        .json();
    assert_eq!(list["schemas"].as_array().unwrap().len(), 2);
    let shown = lake.run(&["schema", "show", "clean/a"]).ok();
    assert!(shown.stdout.contains("version = 2"), "{shown}");
    lake.run(&["schema", "show", "clean/a", "9"])
        .code(2)
        .says(&["versions 1 to 2"]);
}

#[test]
fn a_copy_to_edit_may_go_to_standard_output() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    let run = lake
        .run(&["schema", "propose", "clean/a", "--output", "-"])
        .ok();
    assert!(run.stdout.contains("version = 2"), "{run}");
    assert!(run.stdout.contains("base = 1"), "{run}");
    assert!(!lake.project().join("sources/a/schemas/a/v2.toml").exists());
}

#[test]
fn check_needs_no_lake() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.schema(
        "clean/a",
        2,
        "base = 1\n\n[[field]]\nid = 2\nname = \"other\"\ntype = \"int\"\n",
    );
    std::fs::remove_dir_all(lake.lake()).unwrap();
    let run = lake.run(&["schema", "check", "--format", "json"]).code(1);
    let value = run.json();
    assert_eq!(
        value["versions"][0]["problems"].as_array().unwrap().len(),
        0,
        "{run}"
    );
    assert!(
        !value["versions"][1]["problems"]
            .as_array()
            .unwrap()
            .is_empty(),
        "{run}"
    );
}

#[test]
fn two_that_publish_one_number_get_one_winner() {
    let lake = TestLake::new();
    lake.schema("clean/a", 1, FIELDS);
    let children: Vec<_> = (0..4)
        .map(|_| {
            let args = ["schema", "publish", "clean/a", "1", "--format", "json"];
            lake.call(&args).command().spawn().unwrap()
        })
        .collect();
    let outcomes: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(0),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            value["outcome"].as_str().unwrap().to_owned()
        })
        .collect();
    let winners = outcomes.iter().filter(|o| *o == "published").count();
    assert_eq!(winners, 1, "{outcomes:?}");
}

#[test]
fn a_check_names_the_nearest_key_of_an_unknown_one() {
    let lake = TestLake::new();
    lake.schema("clean/a", 1, &FIELDS.replace("required", "requierd"));
    let text = lake.run(&["schema", "check"]).code(1);
    assert!(text.stdout.contains("unknown key"), "{text}");
    assert!(
        text.stdout.contains("hint: did you mean `required`?"),
        "{text}"
    );
    let json = lake
        .run(&["schema", "check", "--format", "json"])
        .code(1)
        .json();
    assert_eq!(
        json["versions"][0]["hints"][0], "did you mean `required`?",
        "{json}"
    );
}

#[test]
fn a_view_reads_the_lake_where_it_lies() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    let view = |more: &[&str]| lake.run(&[&["schema", "view", "clean/a"], more].concat());
    let empty = view(&["--engine", "duckdb"]).code(1);
    assert!(
        empty.stderr.contains("`clean/a` has no rows yet"),
        "{empty}"
    );
    lake.file("a.jsonl", "{\"k\": 1}\n");
    lake.run(&["ingest", "clean/a", "a.jsonl", "--date", "2026-11-30"])
        .ok();
    let more = "\n[[field]]\nid = 3\nname = \"more\"\ntype = \"int\"\n";
    lake.schema("clean/a", 2, &format!("base = 1\n{FIELDS}{more}"));
    lake.run(&["schema", "publish", "clean/a", "2"]).ok();

    let answer = view(&["--engine", "duckdb", "--format", "json"])
        .ok()
        .json();
    assert_eq!(answer["format"], 1);
    assert_eq!(answer["engine"], "duckdb");
    assert_eq!(answer["versions"], serde_json::json!([1]));
    assert_eq!(answer["left_out"], serde_json::json!([2]));
    let folder = lake.lake().canonicalize().unwrap();
    let glob = format!(
        "{}/clean/a/dt=*/schema_version=1/*.parquet",
        folder.display()
    );
    let statement = answer["statement"].as_str().unwrap();
    assert!(statement.contains(&glob), "{statement}");
    let text = view(&["--engine", "duckdb", "--name", "a.b"]).ok().stdout;
    let whole = format!("CREATE OR REPLACE VIEW \"a\".\"b\" AS\n{statement};\n");
    assert!(text.starts_with("-- clean/a for DuckDB: "), "{text}");
    assert!(text.ends_with(&whole), "{text}");

    let missing = view(&["--engine", "trino"]).code(2);
    assert!(missing.stderr.contains("--table"), "{missing}");
    let idle = view(&["--engine", "spark", "--table", "t"]).code(2);
    assert!(idle.stderr.contains("--table"), "{idle}");
    let odd = view(&["--engine", "clickhouse", "--location", "/{a,b}"]).code(2);
    assert!(odd.stderr.contains("--location"), "{odd}");
    let unknown = lake.run(&["schema", "view", "clean/b", "--engine", "duckdb"]);
    assert!(
        unknown.stderr.contains("did you mean `clean/a`?"),
        "{unknown}"
    );
}
