//! Personal fields: found by queries as any other, shown by no statistics.

use std::fs;

use crate::lake::TestLake;

const FIELDS: &str = r#"
[[field]]
id = 1
name = "k"
type = "int"

[[field]]
id = 2
name = "phone"
type = "string"
privacy = "personal"

[[field]]
id = 3
name = "who"
type = "struct"

[[field.field]]
id = 4
name = "mail"
type = "string"
privacy = "personal"
"#;

#[test]
fn queries_are_right_without_their_statistics() {
    let lake = TestLake::new().dataset("clean/p", FIELDS);
    lake.file(
        "a.jsonl",
        concat!(
            "{\"k\":1,\"phone\":\"0912-SECRET\",\"who\":{\"mail\":\"a@SECRET.org\",\"odd\":\"SECRET\"}}\n",
            "{\"k\":2}\n",
            "{\"k\":3,\"phone\":\"0911-SECRET\",\"who\":null}\n",
        ),
    );
    let args = ["a.jsonl", "--date", "2026-11-30", "--on-mismatch", "extra"];
    lake.ingest("clean/p", &args).ok();
    lake.file("b.jsonl", "{\"k\":4}\n");
    lake.ingest("clean/p", &["b.jsonl", "--date", "2026-12-01"])
        .ok();
    for (query, wanted) in [
        ("SELECT count(phone) AS n FROM clean.p", "2"),
        ("SELECT count(*) AS n FROM clean.p WHERE phone IS NULL", "2"),
        (
            "SELECT count(*) AS n FROM clean.p WHERE phone IS NOT NULL",
            "2",
        ),
        ("SELECT min(phone) AS n FROM clean.p", "0911-SECRET"),
        ("SELECT max(phone) AS n FROM clean.p", "0912-SECRET"),
        ("SELECT k FROM clean.p WHERE phone = '0911-SECRET'", "3"),
        ("SELECT k FROM clean.p WHERE phone > '0911-SECRET'", "1"),
        ("SELECT count(_extra) AS n FROM clean.p", "1"),
        (
            "SELECT count(k) AS n FROM clean.p WHERE who.mail IS NOT NULL",
            "1",
        ),
    ] {
        assert_eq!(lake.sql_one(query), wanted, "{query}");
    }
    lake.assert_clean();

    // What the lake writes about its files tells none of it, the catalog included.
    for path in lake.files().keys().filter(|p| p.starts_with("_lake/")) {
        let bytes = fs::read(lake.lake().join(path)).unwrap();
        assert!(!bytes.windows(6).any(|w| w == b"SECRET"), "{path}");
    }
    let catalog = fs::read(lake.project().join("catalog.db")).unwrap();
    assert!(!catalog.windows(6).any(|w| w == b"SECRET"));
}
