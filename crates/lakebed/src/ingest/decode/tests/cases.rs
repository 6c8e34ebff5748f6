//! The case corpus beside the repository, as far as decoding alone decides it: one plain input, no
//! refusal. (The command line runs the whole corpus; this finds a broken rule sooner.)

use std::path::{Path, PathBuf};

use super::*;

fn corpus() -> PathBuf {
    let root = std::env::var_os("LAKEBED_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let cases = root.join("cases/handed");
    assert!(
        cases.is_dir(),
        "the shared cases are missing: LAKEBED_SHARED names their folder"
    );
    cases
}

fn text_of(value: &toml::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The stored value as the case writes it, by the declared type.
fn same(kind: &str, got: &serde_json::Value, wanted: &str) -> bool {
    let text = match got {
        serde_json::Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    match kind {
        _ if kind == "float" || kind.starts_with("decimal") => {
            text == wanted || text.parse::<f64>().ok() == wanted.parse::<f64>().ok()
        }
        "timestamp" => {
            text.parse::<crate::time::Instant>().ok() == wanted.parse().ok() || text == wanted
        }
        _ => text == wanted,
    }
}

fn check_case(folder: &Path) -> bool {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let toml: toml::Table = std::fs::read_to_string(folder.join("case.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let expect = toml["expect"].as_table().unwrap();
    let inputs = toml.get("inputs").and_then(|i| i.as_array());
    let plain = inputs.is_some_and(|i| i.len() == 1) && !toml.contains_key("encoding");
    if !plain || expect["exit"].as_integer() != Some(0) || toml.contains_key("repeat") {
        return false;
    }
    let input = inputs.unwrap()[0].as_str().unwrap();
    let bytes = std::fs::read(folder.join(input)).unwrap();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let mut fields = toml::Table::new();
    fields.insert("field".into(), toml["field"].clone());
    let policy = toml["on_mismatch"].as_str().unwrap().parse().unwrap();
    let mut f = Fixture::of_toml(&toml::to_string(&fields).unwrap(), policy);
    f.decoder.options.kept_rejects = 1000;
    let decoded = match input.rsplit('.').next() {
        Some("jsonl") => f.lines(text),
        Some("csv") => f.csv(text),
        _ => return false,
    };
    let rows: Vec<serde_json::Value> = f
        .rows(&decoded)
        .iter()
        .map(|r| serde_json::from_str(r).unwrap())
        .collect();
    assert_eq!(
        rows.len().to_string(),
        expect["rows"].to_string(),
        "{name}: rows"
    );
    assert_eq!(
        decoded.rejects.len().to_string(),
        expect["rejected"].to_string(),
        "{name}: {:?}",
        decoded.rejects
    );
    check_rejects(&name, expect, &decoded);
    check_stored(&name, &toml, expect, &rows);
    check_presence(&name, expect, &decoded);
    true
}

fn list_of<'t>(table: &'t toml::Table, key: &str) -> &'t [toml::Value] {
    let list = table.get(key).and_then(|v| v.as_array());
    list.map(Vec::as_slice).unwrap_or_default()
}

fn check_rejects(name: &str, expect: &toml::Table, decoded: &Decoded) {
    for wanted in list_of(expect, "rejects") {
        let line = wanted["line"].as_integer().unwrap();
        let found = decoded
            .rejects
            .iter()
            .find(|r| i64::try_from(r.line) == Ok(line));
        let first = &found
            .unwrap_or_else(|| panic!("{name}: no reject of line {line}"))
            .reasons[0];
        if let Some(field) = wanted.get("field") {
            assert_eq!(first.field, text_of(field), "{name}: line {line}");
        }
        if let Some(has) = wanted.get("reason_has") {
            assert!(first.reason.contains(&text_of(has)), "{name}: {first:?}");
        }
    }
}

fn check_stored(name: &str, toml: &toml::Table, expect: &toml::Table, rows: &[serde_json::Value]) {
    let kinds: std::collections::BTreeMap<String, String> = list_of(toml, "field")
        .iter()
        .map(|f| (text_of(&f["name"]), text_of(&f["type"])))
        .collect();
    for wanted in list_of(expect, "values") {
        let place = text_of(&wanted["where"]);
        let (key, value) = place.split_once(" = ").unwrap();
        let row = rows
            .iter()
            .find(|r| r[key].as_i64() == value.parse().ok())
            .unwrap_or_else(|| panic!("{name}: {place}"));
        let field = text_of(&wanted["field"]);
        let Some(got) = row.get(&field) else { continue };
        if wanted.get("null").is_some() {
            assert!(got.is_null(), "{name}: {place}: {got}");
        } else if let Some(text) = wanted.get("text") {
            assert!(
                same(&kinds[&field], got, &text_of(text)),
                "{name}: {place}: {got}"
            );
        } else if let Some(json) = wanted.get("json") {
            let json: serde_json::Value = serde_json::from_str(&text_of(json)).unwrap();
            let same = *got == json
                || json == serde_json::json!({})
                    && got
                        .as_object()
                        .is_some_and(|o| o.values().all(serde_json::Value::is_null));
            assert!(same, "{name}: {place}: {got}");
        }
    }
}

fn check_presence(name: &str, expect: &toml::Table, decoded: &Decoded) {
    if let Some(presence) = expect.get("presence").and_then(|p| p.as_table()) {
        for (field, counts) in presence {
            let counts = counts.as_table().unwrap();
            for kind in Presence::ALL {
                let wanted = counts
                    .get(kind.as_str())
                    .map_or("0".to_owned(), toml::Value::to_string);
                assert_eq!(
                    count(decoded, field, kind).to_string(),
                    wanted,
                    "{name}: {field}: {kind:?}"
                );
            }
        }
    }
}

#[test]
fn the_corpus_is_right() {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(corpus())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folders.sort();
    let checked = folders.iter().filter(|f| check_case(f)).count();
    assert!(checked >= 45, "only {checked} cases were checked");
}
