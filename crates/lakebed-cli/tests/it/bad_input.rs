//! Bad input: a clear error, its exit code, nothing half visible.

use std::fs;

use crate::lake::TestLake;

const FIELDS: &str = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n";

fn lake() -> TestLake {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file("a.jsonl", "{\"k\": 1}\n");
    lake.file("b.jsonl", "{\"k\": 2}\n");
    lake
}

#[test]
fn wrong_words_are_usage_errors_with_advice() {
    let lake = lake();
    let ingest = |dataset: &str, more: &[&str]| {
        let mut args = vec!["a.jsonl"];
        args.extend(more);
        lake.ingest(dataset, &args).code(2)
    };
    let day = ["--date", "2026-11-30"];
    ingest("clean/a", &["--date", "2026-02-30"]).says(&["2026-02-30", "YYYY-MM-DD"]);
    ingest("clean/a", &["--date", "30.11.2026"]).says(&["YYYY-MM-DD"]);
    ingest("a", &day).says(&["layer/name"]);
    ingest("cleen/a", &day).says(&["layers are"]);
    ingest("clean/b", &day).says(&["clean/b", "no published schema"]);
    ingest(
        "clean/a",
        &["--date", "2026-11-30", "--schema-version", "7"],
    )
    .says(&["versions 1 to 1"]);
    ingest(
        "clean/a",
        &["--date", "2026-11-30", "--encoding", "klingon"],
    )
    .says(&["klingon"]);
    ingest("clean/a", &["--date", "2026-11-30", "--delimiter", "ab"]).says(&["delimiter"]);
    ingest("clean/a", &["--date", "2026-11-30", "--run", "../x"]).says(&["run label"]);
    assert!(lake.data_files().is_empty());
    lake.assert_clean();
}

#[test]
fn failed_files_commit_nothing() {
    let lake = lake();
    lake.file("empty.jsonl", "");
    lake.file("half.jsonl.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    lake.file("half.parquet", b"PAR1 and then nothing");
    for name in ["empty.jsonl", "half.jsonl.gz", "half.parquet"] {
        let run = lake.ingest("clean/a", &["a.jsonl", name, "--date", "2026-11-30"]);
        let run = run.says(&[name]);
        assert_eq!(run.status.code(), Some(4), "{run}");
        assert!(lake.data_files().is_empty());
    }
    lake.ingest(
        "clean/a",
        &["empty.jsonl", "--allow-empty", "--date", "2026-11-30"],
    )
    .ok();
    lake.assert_clean();
}

#[test]
fn a_damaged_log_record_is_named_and_nothing_is_written() {
    let lake = lake();
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"])
        .ok();
    let record = lake
        .lake()
        .join("_lake/log/clean/a/00000000000000000001.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, &text[..text.len() / 2]).unwrap();
    let before = lake.files();
    let run = lake
        .ingest("clean/a", &["b.jsonl", "--date", "2026-11-30"])
        .code(4);
    run.says(&["00000000000000000001.json"]);
    assert_eq!(before, lake.files());
    lake.run(&["catalog", "status"]).code(3);
    lake.run(&["audit"]).code(1);
    fs::write(
        &record,
        text.replace("\"rows\": 1", "\"rows\": 2")
            .replace("\"rows\":1", "\"rows\":2"),
    )
    .unwrap();
    lake.run(&["sql", "SELECT count(*) AS n FROM clean.a"])
        .code(4)
        .says(&["CAT-3"]);
}

#[test]
fn a_schema_file_from_the_future_is_refused() {
    let lake = lake();
    let file = lake.lake().join("_lake/schema/clean/a/v1.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"format\": 1", "\"format\": 99", 1)).unwrap();
    let run = lake
        .ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"])
        .code(4);
    run.says(&["newer Lakebed", "v1.json", "99"]);
    lake.run(&["audit"]).code(4).says(&["newer Lakebed"]);
    assert!(lake.data_files().is_empty());
}

#[test]
fn a_lake_from_the_future_is_refused() {
    let lake = lake();
    let file = lake.lake().join("lake.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"format\": 1", "\"format\": 99", 1)).unwrap();
    lake.run(&["audit"]).code(4).says(&["newer Lakebed"]);
}

/// A program that is too old cannot judge: it neither calls the lake damaged nor gives a verdict.
#[test]
fn a_log_record_from_the_future_is_refused() {
    let lake = lake();
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"])
        .ok();
    let record = lake
        .lake()
        .join("_lake/log/clean/a/00000000000000000001.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(
        &record,
        text.replacen("\"min_reader\": 1", "\"min_reader\": 99", 1),
    )
    .unwrap();
    for args in [
        &["ingest", "clean/a", "b.jsonl", "--date", "2026-11-30"][..],
        &["log", "clean/a"],
        &["audit"],
        &["catalog", "rebuild"],
    ] {
        lake.run(args)
            .code(4)
            .says(&["newer Lakebed", "00001.json"]);
    }
    lake.run(&["catalog", "status"]).code(3);
}

#[test]
fn a_damaged_data_file_is_found_by_the_deep_audit_and_named_by_sql() {
    let lake = lake();
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"])
        .ok();
    let path = lake.lake().join(&lake.data_files()[0]);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    lake.run(&["audit", "--deep"]).code(1);
    fs::write(&path, &bytes[..middle]).unwrap();
    lake.run(&["audit"]).code(1);
    let run = lake.run(&["sql", "SELECT k FROM clean.a WHERE k > 0"]);
    assert_eq!(run.status.code(), Some(4), "{run}");
}

#[test]
fn queries_that_cannot_be_answered_are_usage_errors() {
    let lake = lake();
    for (query, says) in [
        ("SELECT nonsense FROM clean.a", "nonsense"),
        ("SELECT * FROM clean.nothing", "clean.nothing"),
        ("SELEC 1", "SELEC"),
        ("DROP TABLE clean.a", "DROP"),
    ] {
        let run = lake.run(&["sql", query]).code(2);
        assert!(
            run.stderr.to_lowercase().contains(&says.to_lowercase()),
            "{query}: {run}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_lake_that_cannot_be_written_is_unavailable() {
    use std::os::unix::fs::PermissionsExt;
    let lake = lake();
    let folder = lake.lake();
    let modes = |mode| {
        for below in ["", "_lake"] {
            fs::set_permissions(folder.join(below), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    modes(0o555);
    // The superuser writes everywhere: then there is nothing to see.
    let is_enforced = fs::write(folder.join("probe"), "").is_err();
    let run = lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"]);
    modes(0o755);
    if is_enforced {
        run.code(4);
        assert!(lake.data_files().is_empty());
    }
}

#[test]
fn a_damaged_catalog_is_set_aside_by_a_rebuild() {
    let lake = lake();
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-30"])
        .ok();
    let catalog = lake.project().join("catalog.db");
    let sound = fs::read(&catalog).unwrap();
    let cases = [
        b"not a database, whatever its name says".to_vec(),
        sound[..sound.len() / 2].to_vec(),
    ];
    for (n, bytes) in cases.into_iter().enumerate() {
        for end in ["-wal", "-shm"] {
            drop(fs::remove_file(
                lake.project().join(format!("catalog.db{end}")),
            ));
        }
        fs::write(&catalog, &bytes).unwrap();
        for args in [
            &["ingest", "clean/a", "b.jsonl", "--date", "2026-11-30"][..],
            &["sql", "SELECT k FROM clean.a"],
            &["audit"],
            &["catalog", "status"],
            &["catalog", "sync"],
        ] {
            lake.run(args).code(4).says(&["lakebed catalog rebuild"]);
        }
        let kept = format!("catalog.db.damaged-{}", n + 1);
        let rebuilt = lake.run(&["catalog", "rebuild", "--format", "json"]).ok();
        let told = rebuilt.json()["damaged_file"].as_str().unwrap().to_owned();
        assert!(told.ends_with(&kept), "{rebuilt}");
        rebuilt.says(&["damaged", &kept]);
        assert_eq!(
            fs::read(lake.project().join(&kept)).unwrap().len(),
            bytes.len()
        );
        assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.a"), "1");
        lake.assert_clean();
    }
    let again = lake
        .run(&["catalog", "rebuild", "--format", "json"])
        .ok()
        .json();
    assert!(again["damaged_file"].is_null(), "{again}");
}
