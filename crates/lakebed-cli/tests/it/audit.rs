//! Damage done by hand: found, named, and never built upon.

use crate::lake::TestLake;

const FIELDS: &str = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n";

/// What is committed on a log that lost its tail would take the number of the lost record for ever.
#[test]
fn nobody_writes_to_a_log_that_lost_its_tail() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file("a.jsonl", "{\"k\":1}\n");
    lake.file("b.jsonl", "{\"k\":2}\n");
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-29"])
        .ok();
    lake.ingest(
        "clean/a",
        &["b.jsonl", "--date", "2026-11-29", "--complete"],
    )
    .ok();
    let records: Vec<_> = lake
        .files()
        .into_keys()
        .filter(|f| f.starts_with("_lake/log/"))
        .collect();
    let last = lake.lake().join(records.last().unwrap());
    let kept = std::fs::read(&last).unwrap();
    std::fs::remove_file(&last).unwrap();
    let before = lake.files();
    lake.file("c.jsonl", "{\"k\":3}\n");
    for args in [
        vec!["ingest", "clean/a", "c.jsonl", "--date", "2026-11-29"],
        vec!["seal", "clean/a", "--date", "2026-11-29"],
        vec!["reopen", "clean/a", "--date", "2026-11-29"],
    ] {
        lake.run(&args).code(4).says(&["CAT-3"]);
    }
    lake.run(&["audit", "--repair"]);
    assert_eq!(
        lake.files(),
        before,
        "nothing is written, repaired or removed"
    );
    std::fs::write(&last, kept).unwrap();
    lake.assert_clean();
}

/// A damaged schema, rejects file or catalog row is found; the log and the lake win.
#[test]
fn the_deep_audit_reads_everything() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file("a.jsonl", "{\"k\":1}\n{\"k\":\"x\"}\n");
    lake.ingest(
        "clean/a",
        &[
            "a.jsonl",
            "--date",
            "2026-11-29",
            "--on-mismatch",
            "quarantine",
        ],
    )
    .ok();
    lake.assert_clean();
    for wanted in ["_lake/schema/", "_lake/rejects/"] {
        let name = lake
            .files()
            .into_keys()
            .find(|f| f.starts_with(wanted))
            .unwrap();
        let file = lake.lake().join(&name);
        let kept = std::fs::read(&file).unwrap();
        let mut bytes = kept.clone();
        let middle = bytes.len() / 2;
        bytes[middle] = bytes[middle].wrapping_add(1);
        std::fs::write(&file, &bytes).unwrap();
        let found = lake.run(&["audit", "--deep"]).code(1);
        assert!(
            found.stdout.contains("SCH-1")
                || found.stdout.contains("REJ-1")
                || found.stdout.contains("CAT-"),
            "{name}: {found}"
        );
        std::fs::write(&file, kept).unwrap();
        lake.assert_clean();
    }
}

/// A publish that died before it told the catalog waits for the next sync; it is no damage.
#[test]
fn a_version_the_catalog_does_not_know_yet_is_a_warning_that_repair_mends() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.schema(
        "clean/a",
        2,
        &format!("base = 1\nnote = \"same\"\n{FIELDS}"),
    );
    lake.call(&["schema", "publish", "clean/a", "2"])
        .env("LAKEBED_KILL_POINT", "publish.put")
        .run()
        .killed();
    let found = lake.run(&["audit", "--deep"]).code(1);
    assert!(
        found.stdout.contains("does not know schema version 2 yet"),
        "{found}"
    );
    lake.run(&["audit", "--repair"]);
    lake.assert_clean();
}

/// Attacks FIL-2 and FIL-4: each stranger is a finding of its own, and stays where it is.
#[test]
fn strangers_are_told_wherever_they_lie() {
    let lake = TestLake::new().dataset("clean/a", FIELDS);
    lake.file("a.jsonl", "{\"k\":1}\n{\"k\":\"x\"}\n");
    lake.ingest(
        "clean/a",
        &[
            "a.jsonl",
            "--date",
            "2026-11-29",
            "--on-mismatch",
            "quarantine",
        ],
    )
    .ok();
    std::fs::create_dir(lake.lake().join("lost+found")).unwrap();
    lake.assert_clean();
    let rejects = lake
        .files()
        .into_keys()
        .find(|f| f.starts_with("_lake/rejects/"))
        .unwrap();
    let log = lake
        .run(&["log", "clean/a", "--format", "json"])
        .ok()
        .json();
    let attempt = log["commits"][0]["attempt"].as_str().unwrap();
    let beside = rejects.replace("rejects-", "rejects-0");
    let staged = format!("_lake/stage/{attempt}/clean/a/dt=2026-11-29/schema_version=1/notes.txt");
    let strangers = [
        ("notes.txt", "FIL-4"),
        ("backup/lake.json", "FIL-4"),
        ("_lake/notes.txt", "FIL-4"),
        ("_lake/logs/clean/a/00000000000000000001.json", "FIL-4"),
        ("_lake/log/clean/a/00000000000000000001.json.bak", "FIL-4"),
        ("_lake/log/clean/notes.txt", "FIL-4"),
        ("_lake/schema/clean/a/v1.toml", "FIL-4"),
        (beside.as_str(), "FIL-4"),
        ("_lake/rejects/notes.txt", "FIL-4"),
        ("_lake/stage/.DS_Store", "FIL-4"),
        (staged.as_str(), "FIL-4"),
        ("clean/notes.txt", "FIL-2"),
        ("clean/a/notes.txt", "FIL-2"),
        ("clean/a/dt=2026-11-29/notes.txt", "FIL-2"),
        ("clean/a/dt=2026-11-29/schema_version=1/notes.txt", "FIL-2"),
        (
            "clean/b/dt=2026-11-29/schema_version=1/part.parquet",
            "FIL-2",
        ),
        ("raw/a/page.html", "FIL-2"),
    ];
    for (path, _) in strangers {
        let file = lake.lake().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "whose is this?").unwrap();
    }
    let before = lake.files();
    let found = lake.run(&["audit", "--format", "json"]).code(1).json();
    let findings = found["findings"].as_array().unwrap();
    for (path, invariant) in strangers {
        // A folder that nothing explains is one finding.
        let subject = path.strip_suffix("/lake.json").unwrap_or(path);
        let subject = if subject.starts_with("_lake/logs/") {
            "_lake/logs"
        } else {
            subject
        };
        let mine: Vec<_> = findings
            .iter()
            .filter(|f| f["subject"] == subject)
            .collect();
        assert_eq!(mine.len(), 1, "{path}: {found:#}");
        assert_eq!(mine[0]["invariant"], invariant, "{path}");
        assert_eq!(mine[0]["repair"], "manual", "{path}");
    }
    assert_eq!(findings.len(), strangers.len(), "{found:#}");
    let repaired = lake.run(&["audit", "--repair"]).code(1);
    assert!(
        repaired.stdout.contains("repair deletes no stranger"),
        "{repaired}"
    );
    assert_eq!(lake.files(), before, "nothing was moved or deleted");
    lake.ingest("clean/a", &["a.jsonl", "--date", "2026-11-29"])
        .ok();
}
