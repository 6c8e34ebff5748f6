//! CSV records.

use super::*;

#[test]
fn empty_cells_are_null_or_empty() {
    let mut f = Fixture::new(
        &["k: int", "t: string", "n: int | null_values = [\"NA\", 9]"],
        Mismatch::Quarantine,
    );
    let decoded =
        f.csv("k,t,n\n1,,\n2,\"\",\"\"\n3,NA,NA\n4,null,9\n5,\"a \"\"b\"\",\n c\",08\n6, x ,4.0\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"k":1,"t":null,"n":null}"#,
            r#"{"k":2,"t":"","n":null}"#,
            r#"{"k":3,"t":"NA","n":null}"#,
            r#"{"k":4,"t":"null","n":null}"#,
            r#"{"k":5,"t":"a \"b\",\n c","n":8}"#,
        ]
    );
    assert_eq!(reasons(&decoded), [reason(8, "n", "$.n", "format")]);
    assert_eq!(decoded.rejects[0].raw, "6, x ,4.0");
    assert_eq!(
        decoded.rejects[0].header.as_ref().unwrap().names,
        ["k", "t", "n"]
    );
    let record = decoded.rejects[0].clone().into_record(0);
    assert_eq!((record.field.as_str(), record.form.as_str()), ("n", "csv"));
    assert_eq!(
        (record.header, record.reasons.len()),
        (vec!["k".into(), "t".into(), "n".into()], 1)
    );
    assert_eq!(count(&decoded, "n", Presence::Null), 1);
    assert_eq!(count(&decoded, "n", Presence::Empty), 1);
    assert_eq!(count(&decoded, "n", Presence::Sentinel), 2);
    assert_eq!(count(&decoded, "t", Presence::Empty), 1);
}

#[test]
fn rows_that_are_no_records() {
    let mut f = Fixture::new(&["a: int", "b: int"], Mismatch::Quarantine);
    let decoded = f.csv(
        "a,b\r\n1,2\r\n3,4,5\r\n6\r\n\r\n\na,b\r\n\"7\"x,8\r\n9,\"1\n0\"\n7,8"
            .replace("a,b\r\n1", "a,b\n1")
            .as_str(),
    );
    assert_eq!(f.rows(&decoded), [r#"{"a":1,"b":2}"#, r#"{"a":7,"b":8}"#]);
    assert_eq!(
        reasons(&decoded),
        [
            reason(3, "", "$", "cells"),
            reason(4, "", "$", "cells"),
            reason(7, "", "$", "header_row"),
            reason(8, "", "$", "syntax"),
            reason(9, "b", "$.b", "format"),
        ]
    );
    assert_eq!(decoded.rejects[4].raw, "9,\"1\n0\"");
    assert_eq!((decoded.stats.records, decoded.stats.not_records), (3, 4));
}

#[test]
fn unknown_columns_matter_where_they_hold_something() {
    let mut f = Fixture::new(&["k: int", "s: list<int>", "j: json"], Mismatch::Extra);
    let decoded = f.csv("k,,x,j\n1,7,,\"{\"\"a\"\": 1.0}\"\n2,,,nope\n3,,\"\",null\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"k":1,"s":null,"j":"{\"a\":1.0}"}"#,
            r#"{"k":3,"s":null,"j":null}"#
        ]
    );
    let extra = decoded.batches[0].column_by_name("_extra").unwrap();
    let extra = arrow_array::cast::AsArray::as_string::<i32>(extra.as_ref());
    assert_eq!(extra.value(0), r#"{"":"7"}"#);
    assert!(arrow_array::Array::is_null(extra, 1));
    assert_eq!(count(&decoded, "s", Presence::Absent), 3);
    let drift: Vec<_> = decoded
        .stats
        .drift
        .items()
        .map(|i| (i.field.as_str(), i.count))
        .collect();
    assert_eq!(drift, [("j", 1), ("x", 0), ("", 1)]);
    let mut f = Fixture::new(&["k: int"], Mismatch::Quarantine);
    let decoded = f.csv("k,x\n1,\n2,a\n");
    assert_eq!(reasons(&decoded), [reason(3, "x", "$.x", "unknown_field")]);
    assert_eq!(decoded.stats.rows, 1);
}

#[test]
fn nested_types_take_no_cells_and_quotes_inside_are_text() {
    let mut f = Fixture::new(&["k: list<int>", "t: string"], Mismatch::Quarantine);
    let decoded = f.csv("k,t\n[1],a\n,5\" screen\n,\"\"\"\"\n,\"微\"\"博\"\n\"\",x\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"k":null,"t":"5\" screen"}"#,
            r#"{"k":null,"t":"\""}"#,
            r#"{"k":null,"t":"微\"博"}"#,
            r#"{"k":null,"t":"x"}"#,
        ]
    );
    assert_eq!(rejected(&decoded), [2]);
}

#[test]
fn an_unclosed_quote_fails_the_file() {
    let mut f = Fixture::new(&["k: int"], Mismatch::Quarantine);
    let header = CsvHeader {
        names: vec!["k".into()],
        delimiter: b';',
        quote: b'\'',
        from_file: false,
    };
    let chunk = |text: &str| Chunk {
        input: 0,
        first_line: 2,
        offset: 0,
        body: ChunkBody::Csv {
            bytes: text.as_bytes().to_vec(),
            header: Arc::new(header.clone()),
        },
    };
    let e = f.decoder.decode(&chunk("1\n'2\n"), "a.csv").unwrap_err();
    assert!(e.to_string().contains("line `3`"), "{e}");
    let decoded = f.decoder.decode(&chunk("'1'\nk\n2"), "a.csv").unwrap();
    assert_eq!(f.rows(&decoded), ["{\"k\":1}", "{\"k\":2}"]);
    assert_eq!(reasons(&decoded), [reason(3, "k", "$.k", "format")]);
}
