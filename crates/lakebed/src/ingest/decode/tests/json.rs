//! JSON records: units, unknown fields, duplicates, policies, drift.

use super::*;
use crate::error::ErrorKind;
use crate::ingest::convert::FaultCode;

#[test]
fn a_line_is_wholly_values_or_one_reject() {
    let mut f = Fixture::new(&["k: int"], Mismatch::Quarantine);
    let decoded = f.lines(concat!(
        "{\"k\":1}{\"k\":2}\n",
        "\n \t\r\n",
        "{\"k\":3} {\"k\":4}\r\n",
        "{\"k\":5},\n",
        "{\"k\":6,}\n",
        "<html>502</html>\n",
        "[{\"k\":7},{\"k\":8}]\n",
        "[{\"k\":9},]\n",
        "{\"k\":10}{\"k\":\n",
        "5\n",
        "null {\"k\":11}\n",
        "[[{\"k\":12}],{\"k\":13},\"x\"]\n",
        "{\"k\":14}",
    ));
    let rows: Vec<String> = [1, 2, 3, 4, 7, 8, 11, 13, 14]
        .iter()
        .map(|k| format!("{{\"k\":{k}}}"))
        .collect();
    assert_eq!(f.rows(&decoded), rows);
    let wanted = [
        (5, "syntax"),
        (6, "syntax"),
        (7, "syntax"),
        (9, "syntax"),
        (10, "syntax"),
        (11, "not_a_record"),
        (12, "not_a_record"),
        (13, "not_a_record"),
        (13, "not_a_record"),
    ];
    assert_eq!(
        reasons(&decoded),
        wanted.map(|(line, code)| reason(line, "", "$", code))
    );
    assert_eq!(decoded.rejects[4].raw, "{\"k\":10}{\"k\":");
    assert_eq!(decoded.rejects[7].raw, "[{\"k\":12}]");
    assert_eq!(
        (
            decoded.stats.records,
            decoded.stats.rows,
            decoded.stats.not_records
        ),
        (9, 9, 9)
    );
}

#[test]
fn values_that_are_not_json_fail_the_file() {
    let mut f = Fixture::new(&["k: int"], Mismatch::Quarantine);
    let decoded = f
        .values("{\"k\":1},\n{\"k\":2} {\"k\":3}\n 5, [1],\n{\"k\":NaN},{\"k\":\"x\"},\n")
        .unwrap();
    assert_eq!(f.rows(&decoded).len(), 3);
    assert_eq!(
        reasons(&decoded),
        [
            reason(3, "", "$", "not_a_record"),
            reason(3, "", "$", "not_a_record"),
            reason(4, "k", "$.k", "nan"),
            reason(4, "k", "$.k", "format"),
        ]
    );
    let e = f.values("{\"k\":1},\n{\"k\":2,}").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptData);
    assert!(
        e.to_string().contains("input.x") && e.to_string().contains("line `2`"),
        "{e}"
    );
    // The worker goes on with the next file as if nothing had been.
    assert_eq!(
        f.values("{\"k\":9}").map(|d| f.rows(&d)).unwrap(),
        ["{\"k\":9}"]
    );
}

#[test]
fn a_chunk_is_one_batch_however_many_records_it_has() {
    let mut f = Fixture::new(&["k: int"], Mismatch::Fail);
    let text = "{\"k\":1}\n".repeat(5000);
    assert_eq!(f.lines(&text).batches.len(), 1);
    assert_eq!(f.values(&text).unwrap().batches.len(), 1);
    assert_eq!(
        f.csv(&"k\n1\n".replace("1\n", &"1\n".repeat(5000)))
            .batches
            .len(),
        1
    );
}

#[test]
fn bytes_that_are_not_utf8_fail_the_file_with_the_offset() {
    let mut f = Fixture::new(&["k: int"], Mismatch::Quarantine);
    let chunk = Chunk {
        input: 0,
        first_line: 1,
        offset: 100,
        body: ChunkBody::Lines(b"{\"k\":1}\n{\"t\":\"\xce\xa2\xb2\xa9\"}\n".to_vec()),
    };
    let e = f.decoder.decode(&chunk, "input.jsonl").unwrap_err();
    assert!(e.to_string().contains("offset `116`"), "{e}");
    assert!(!e.hints().is_empty());
}

#[test]
fn duplicate_keys_are_rejects_at_any_depth() {
    let mut f = Fixture::new(
        &["k: int", "a: int", "j: json", "m: map<int>"],
        Mismatch::Extra,
    );
    let decoded = f.lines(concat!(
        "{\"k\":1,\"a\":1,\"a\":2}\n",
        "{\"k\":2,\"a\":1,\"\\u0061\":1}\n",
        "{\"k\":3,\"j\":{\"x\":[{\"y\":1,\"y\":1}]}}\n",
        "{\"k\":4,\"m\":{\"x\":1,\"x\":1}}\n",
        "{\"k\":5,\"u\":{\"x\":1,\"x\":1}}\n",
        "{\"k\":6,\"u\":1,\"u\":1}\n",
        "{\"k\":7,\"A\":1,\"a\":1,\"a \":3}\n",
    ));
    assert_eq!(rejected(&decoded), [1, 2, 3, 4, 5, 6]);
    for reject in &decoded.rejects {
        assert_eq!(reject.reasons[0].code, "duplicate_key");
    }
    assert_eq!(
        reasons(&decoded)[3],
        reason(4, "m", "$.m.x", "duplicate_key")
    );
    assert_eq!(f.rows(&decoded), [r#"{"k":7,"a":1,"j":null,"m":null}"#]);
    assert_eq!(count(&decoded, "a", Presence::Invalid), 2);
}

#[test]
fn extra_keeps_unknown_fields_as_written() {
    let mut f = Fixture::of_toml(
        "[[field]]\nid=1\nname=\"k\"\ntype=\"int\"\n[[field]]\nid=2\nname=\"s\"\ntype=\"struct\"\n[[field.field]]\nid=3\nname=\"a\"\ntype=\"int\"\n",
        Mismatch::Extra,
    );
    let decoded = f.lines(concat!(
        "{\"k\":1}\n",
        "{\"b\": 1.10,\"k\":2,\"s\":{\"a\":1,\"x/y\":[ 1 ]},\"/c\":null,\"名\":\"\\u00e9\"}\n",
        "{\"k\":\"x\",\"b\":2}\n",
        "{\"k\":4,\"b\":NaN}\n",
    ));
    assert_eq!(
        f.rows(&decoded),
        [r#"{"k":1,"s":null}"#, r#"{"k":2,"s":{"a":1}}"#]
    );
    let extra = decoded.batches[0].column_by_name("_extra").unwrap();
    let extra = arrow_array::cast::AsArray::as_string::<i32>(extra.as_ref());
    assert!(arrow_array::Array::is_null(extra, 0));
    assert_eq!(
        extra.value(1),
        r#"{"b":1.10,"/s/x~1y":[1],"/c":null,"名":"\u00e9"}"#
    );
    assert_eq!(rejected(&decoded), [3, 4]);
    assert_eq!(decoded.stats.extra_rows, 1);
    let source = decoded.batches[0].column_by_name("source").unwrap();
    assert_eq!(
        arrow_array::cast::AsArray::as_string::<i32>(source.as_ref()).value(1),
        "src"
    );
    let b = decoded
        .stats
        .drift
        .items()
        .find(|i| i.field == "b")
        .unwrap();
    assert_eq!((b.count, b.line, b.code), (3, 2, FaultCode::UnknownField));
    let evidence = b.evidence.as_ref().unwrap();
    assert_eq!(
        (evidence.floats, evidence.ints, evidence.non_finite),
        (1, 1, 1)
    );
}

#[test]
fn unknown_fields_are_faults_otherwise() {
    for policy in [Mismatch::Fail, Mismatch::Quarantine] {
        let mut f = Fixture::new(&["k: int"], policy);
        let decoded =
            f.lines("{\"k\":1}\n{\"read_count\":null,\"k\":\"x\"}\n{\"odd key\":[{\"z\":1}]}\n");
        assert_eq!(
            reasons(&decoded),
            [
                reason(2, "read_count", "$.read_count", "unknown_field"),
                reason(2, "k", "$.k", "format"),
                reason(3, "odd key", "$[\"odd key\"]", "unknown_field"),
            ]
        );
        let odd = decoded
            .stats
            .drift
            .items()
            .find(|i| i.field == "odd key")
            .unwrap();
        let elements = odd.evidence.as_ref().unwrap().elements.as_ref().unwrap();
        assert_eq!(elements.members["z"].ints, 1);
    }
}

#[test]
fn drift_sums_up_per_place_and_keeps_few_samples() {
    let mut f = Fixture::new(
        &["n: int", "secret: int | privacy = \"personal\""],
        Mismatch::Fail,
    );
    let text: String = (0..20)
        .map(|i| format!("{{\"n\":\"a{}\",\"secret\":\"x{i}\"}}\n", i % 8))
        .collect();
    let decoded = f.lines(&text);
    assert_eq!((decoded.stats.rejected, decoded.rejects.len()), (20, 3));
    let items: Vec<_> = decoded.stats.drift.items().collect();
    assert_eq!(items.len(), 2);
    assert_eq!(
        (items[0].path.as_str(), items[0].count, items[0].line),
        ("$.n", 20, 1)
    );
    assert_eq!(items[0].samples, ["a0", "a1", "a2", "a3", "a4"]);
    assert_eq!(items[0].file, "input.x");
    assert!(items[1].samples.is_empty());
    assert!(!items[1].reason.contains("x0"));
    let later = f.lines("{\"n\":\"a9\"}\n{\"n\":1.5}\n");
    let mut stats = decoded.stats.clone();
    stats.merge(later.stats);
    let merged: Vec<_> = stats
        .drift
        .items()
        .map(|i| (i.path.as_str(), i.code, i.count, i.line))
        .collect();
    assert_eq!(
        merged,
        [
            ("$.n", FaultCode::Format, 21, 1),
            ("$.n", FaultCode::Precision, 1, 2),
            ("$.secret", FaultCode::Format, 20, 1),
        ]
    );
    assert_eq!(stats.presence.find("n").unwrap().records(), 22);
}

#[test]
fn surrogates_and_nul_are_counted() {
    let mut f = Fixture::new(&["t: string", "n: int"], Mismatch::Quarantine);
    let decoded =
        f.lines("{\"t\":\"a\\ud83d\"}\n{\"t\":\"a\\u0000b\"}\n{\"t\":\"\\ud83d\",\"n\":\"x\"}\n");
    assert_eq!(f.rows(&decoded)[0], "{\"t\":\"a\u{fffd}\",\"n\":null}");
    assert_eq!(
        (decoded.stats.lone_surrogates, decoded.stats.nul_characters),
        (1, 1)
    );
}

#[test]
fn names_like_pointers_are_kept_apart_where_they_meet() {
    let mut f = Fixture::new(&["s: struct"], Mismatch::Extra);
    let decoded =
        f.lines("{\"/s/x\":1}\n{\"s\":{\"x\":2},\"/s/x\":3}\n{\"/s/x\":4,\"s\":{\"x\":5}}\n");
    let extra = decoded.batches[0].column_by_name("_extra").unwrap();
    let extra = arrow_array::cast::AsArray::as_string::<i32>(extra.as_ref());
    let got: Vec<&str> = extra.iter().flatten().collect();
    assert_eq!(
        got,
        [
            r#"{"/s/x":1}"#,
            r#"{"/s/x":2,"/~1s~1x":3}"#,
            r##"{"/s/x":4,"#/s/x":5}"##
        ]
    );
}

#[test]
fn surrogates_and_nul_in_stored_keys_are_counted() {
    let mut f = Fixture::new(&["m: map<int>"], Mismatch::Extra);
    let decoded = f.lines("{\"m\":{\"\\ud800\":1}}\n{\"a\\u0000\":1}\n");
    assert_eq!(decoded.stats.rows, 2);
    assert_eq!(
        (decoded.stats.lone_surrogates, decoded.stats.nul_characters),
        (1, 1)
    );
}

#[test]
fn hostile_records_are_rejects_not_crashes() {
    let mut f = Fixture::new(
        &["k: int", "j: json", "l: list<list<int>>"],
        Mismatch::Quarantine,
    );
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let half = "{\"a\":".repeat(200_000);
    let text = format!(
        "{{\"k\":1,\"j\":{deep}}}\n{{\"k\":2,\"l\":{deep}}}\n{{\"k\":3,\"u\":{deep}}}\n{{\"k\":4,\"j\":{half}\n{{\"k\":5,\"j\":\"\\\n{{\"k\":6}}\n"
    );
    let decoded = f.lines(&text);
    assert_eq!(decoded.stats.rows, 2);
    assert_eq!(rejected(&decoded), [2, 3, 4, 5]);
    let many: String = (0..20_000).map(|i| format!("\"u{i}\":{i},")).collect();
    let decoded = f.lines(&format!("{{{many}\"k\":1}}\n{{{many}\"u7\":1}}\n"));
    assert_eq!(decoded.stats.rejected, 2);
    // One place more than the limit is not listed; `u7` has two kinds of fault.
    let listed = decoded.stats.drift.items().count();
    assert_eq!(listed, crate::ingest::convert::MAX_PLACES + 1);
    assert_eq!(decoded.stats.drift.unlisted(), 20_000);
    assert_eq!(
        reasons(&decoded)
            .iter()
            .filter(|r| r.3 == "duplicate_key")
            .count(),
        1
    );
}

#[test]
fn members_come_in_any_order_and_nested_values_may_break_off() {
    let fields = r#"
field = [
  { id = 1, name = "k", type = "int" },
  { id = 2, name = "tags", type = "list<string>" },
  { id = 3, name = "s", type = "struct", field = [
    { id = 4, name = "a", type = "int" },
    { id = 5, name = "b", type = "string" },
  ] },
  { id = 6, name = "odd", type = "int", from = "o\"dd" },
]
"#;
    let mut f = Fixture::of_toml(fields, Mismatch::Quarantine);
    let decoded = f.lines(concat!(
        r#"{"k":1,"tags":["x"],"s":{"a":1,"b":"y"},"o\"dd":5}"#,
        "\n",
        r#"{ "k" : 2, "s": {"b": "z", "a": 2}, "tags": [ ] }"#,
        "\n",
        r#"{"k":3,"tags":["x","#,
        "\n",
        r#"{"k":4,"tags":["x"],"s":{"a":4,"b":"y"}"#,
        "\n",
        r#"{"k":5,"tags":["x",7],"s":{"a":"no","b":"y"},"o\"dd":5}"#,
        "\n",
        r#"{"k":6,"k":7}"#,
        "\n",
        r#"{"k":8,"s":{"a":1,"a":2}}"#,
        "\n",
        r#"{"k":9,"s":{"a":9},"o\"dd":"7"}"#,
        "\n",
        r#"{"o\"dd":10,"s":{},"tags":["p","q"],"k":10}"#,
    ));
    let rows = [
        r#"{"k":1,"tags":["x"],"s":{"a":1,"b":"y"},"odd":5}"#,
        r#"{"k":2,"tags":[],"s":{"a":2,"b":"z"},"odd":null}"#,
        r#"{"k":9,"tags":null,"s":{"a":9,"b":null},"odd":7}"#,
        r#"{"k":10,"tags":["p","q"],"s":{"a":null,"b":null},"odd":10}"#,
    ];
    assert_eq!(f.rows(&decoded), rows);
    let wanted = [
        reason(3, "", "$", "syntax"),
        reason(4, "", "$", "syntax"),
        reason(5, "tags", "$.tags[1]", "type"),
        reason(5, "s", "$.s.a", "format"),
        reason(6, "k", "$.k", "duplicate_key"),
        reason(7, "s", "$.s.a", "duplicate_key"),
    ];
    assert_eq!(reasons(&decoded), wanted);
}
