//! Properties: rejects leave no trace, key order is nothing, presence sums, chunking is nothing.

use proptest::prelude::*;

use super::*;

const SCHEMA: &str = r#"
[[field]]
id = 1
name = "k"
type = "int"
required = true
[[field]]
id = 2
name = "t"
type = "string"
[[field]]
id = 3
name = "l"
type = "list<struct>"
  [[field.field]]
  id = 4
  name = "a"
  type = "decimal(6,2)"
  [[field.field]]
  id = 5
  name = "m"
  type = "map<string>"
[[field]]
id = 6
name = "b"
type = "bool"
[[field]]
id = 7
name = "j"
type = "json"
"#;

/// Members of a record; the flag says whether the member is good.
fn member() -> impl Strategy<Value = Vec<(String, bool)>> {
    let pick = |name: &'static str, good: &'static [&'static str], bad: &'static [&'static str]| {
        prop_oneof![
            6 => prop::sample::select(good).prop_map(move |v| (format!("\"{name}\":{v}"), true)),
            2 => Just((String::new(), name != "k")),
            1 => prop::sample::select(bad).prop_map(move |v| (format!("\"{name}\":{v}"), false)),
        ]
    };
    (
        pick("k", &["1", "\"22\"", "-3"], &["null", "1.5", "[]"]),
        pick(
            "t",
            &["\"\"", "\"微博\"", "\"\\n\\u0041x\"", "null"],
            &["1", "{}"],
        ),
        pick(
            "l",
            &[
                "[]",
                "[null]",
                "[{\"a\":1.5,\"m\":{\"x\":\"y\"}},{}]",
                "[{\"m\":{}},{\"m\":null}]",
            ],
            &[
                "[{\"a\":1.5,\"m\":{\"x\":\"y\"}},{\"a\":1.555}]",
                "[{\"m\":{\"x\":\"y\",\"z\":1}}]",
                "[{\"a\":1},2]",
                "[{\"z\":1}]",
            ],
        ),
        pick("b", &["true", "\"false\"", "null"], &["0", "\"no\""]),
        pick(
            "j",
            &["{\"x\":[1, 2]}", "7", "\"s\""],
            &["[NaN]", "{\"x\":1,\"x\":2}"],
        ),
    )
        .prop_map(|(k, t, l, b, j)| vec![k, t, l, b, j])
}

fn record(members: &[(String, bool)]) -> (String, bool) {
    let texts: Vec<&str> = members
        .iter()
        .map(|m| m.0.as_str())
        .filter(|t| !t.is_empty())
        .collect();
    (
        format!("{{{}}}", texts.join(",")),
        members.iter().all(|m| m.1),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rejects_leave_no_trace(records in prop::collection::vec((member(), any::<prop::sample::Index>(), 0..8_u8), 1..25)) {
        let mut all = String::new();
        let mut good = String::new();
        let mut good_count = 0_u64;
        for (members, shift, rubbish) in &records {
            let mut members = members.clone();
            let n = members.len();
            members.rotate_left(shift.index(n));
            let (text, is_good) = record(&members);
            if *rubbish == 0 {
                all.push_str(&text[..text.len() - 1]);
                all.push('\n');
                continue;
            }
            if *rubbish == 1 && is_good {
                // Good values on a line that is not wholly JSON.
                all.push_str(&format!("{text} {text} x\n"));
                continue;
            }
            all.push_str(&text);
            all.push('\n');
            if is_good {
                good_count += 1;
                members.rotate_right(shift.index(n));
                good.push_str(&record(&members).0);
                good.push('\n');
            }
        }
        let mut one = Fixture::of_toml(SCHEMA, Mismatch::Quarantine);
        let mut two = Fixture::of_toml(SCHEMA, Mismatch::Quarantine);
        let mixed = one.lines(&all);
        let alone = two.lines(&good);
        prop_assert_eq!(mixed.stats.rows, good_count);
        prop_assert_eq!(&mixed.batches, &alone.batches);
        prop_assert_eq!(alone.stats.rejected, 0);
        prop_assert_eq!(mixed.stats.rejected, u64::try_from(records.len()).unwrap() - good_count);
        for presence in mixed.stats.presence.iter() {
            prop_assert_eq!(presence.records(), mixed.stats.records);
        }
        prop_assert_eq!(mixed.stats.records + mixed.stats.not_records, mixed.stats.rows + mixed.stats.rejected);
        // A worker that has decoded before gives the same again.
        let again = one.lines(&all);
        prop_assert_eq!(&again.batches, &mixed.batches);
        prop_assert_eq!(&again.rejects, &mixed.rejects);
        prop_assert_eq!(&again.stats, &mixed.stats);
    }

    #[test]
    fn values_and_lines_agree(records in prop::collection::vec(member(), 1..12)) {
        let texts: Vec<String> = records.iter().map(|m| record(m).0).collect();
        let mut f = Fixture::of_toml(SCHEMA, Mismatch::Extra);
        let lines = f.lines(&texts.join("\n"));
        let values = f.values(&texts.join(",\n")).unwrap();
        prop_assert_eq!(lines.batches, values.batches);
        prop_assert_eq!(lines.rejects, values.rejects);
        prop_assert_eq!(lines.stats, values.stats);
    }

    #[test]
    fn any_bytes_are_no_crash(text in "[{}\\[\\]\":,k1a\\\\\n e.-]{0,80}") {
        let mut f = Fixture::of_toml(SCHEMA, Mismatch::Extra);
        let decoded = f.lines(&text);
        prop_assert_eq!(decoded.stats.rows + decoded.stats.rejected, decoded.stats.records + decoded.stats.not_records);
        let _may_fail = f.values(&text);
        let again = f.lines(&text);
        prop_assert_eq!(again.stats, decoded.stats);
    }

    #[test]
    fn csv_cells_come_back(rows in prop::collection::vec(("[ -~微\n\r]{0,20}", "[a-c,\"\n]{0,9}"), 1..12)) {
        let quote = |t: &str| format!("\"{}\"", t.replace('"', "\"\""));
        let text: String = rows.iter().map(|(a, b)| format!("{},{}\r\n", quote(a), quote(b))).collect();
        // No row can repeat this header: the second column's cells have no `d`.
        let mut f = Fixture::new(&["a: string", "d: string"], Mismatch::Fail);
        let decoded = f.csv(&format!("a,d\n{text}"));
        let column = |i: usize| -> Vec<String> {
            let array = decoded.batches[0].column(i);
            let array = arrow_array::cast::AsArray::as_string::<i32>(array.as_ref());
            (0..rows.len()).map(|r| array.value(r).to_owned()).collect()
        };
        prop_assert_eq!(column(0), rows.iter().map(|r| r.0.clone()).collect::<Vec<_>>());
        prop_assert_eq!(column(1), rows.iter().map(|r| r.1.clone()).collect::<Vec<_>>());
    }
}
