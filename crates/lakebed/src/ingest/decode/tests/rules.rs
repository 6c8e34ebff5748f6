//! The rules of values (13 to 20), one test each.

use super::*;

#[test]
fn int() {
    check_values(
        "int",
        &[
            ("9007199254740993", Some("9007199254740993")),
            ("-9223372036854775808", Some("-9223372036854775808")),
            ("9223372036854775808", None),
            ("7.0", Some("7")),
            ("1e3", Some("1000")),
            ("1.5", None),
            ("\"007\"", Some("7")),
            ("\"-1\"", Some("-1")),
            ("\"\\u0031\"", Some("1")),
            ("\"4.0\"", None),
            ("\"+1\"", None),
            ("\" 1\"", None),
            ("\"\"", None),
            ("true", None),
            ("[1]", None),
            ("{}", None),
            ("null", Some("null")),
        ],
    );
    let mut f = Fixture::new(&["v: int"], Mismatch::Fail);
    let decoded = f.lines("{\"v\":18446744073709551615}\n");
    let item = decoded.stats.drift.items().next().unwrap();
    assert!(item.hint.as_ref().unwrap().contains("decimal(20,0)"));
}

#[test]
fn float() {
    check_values(
        "float",
        &[
            ("2", Some("2.0")),
            ("0.1", Some("0.1")),
            ("\"1E-7\"", Some("1e-7")),
            ("9007199254740993", None),
            ("9007199254740992", Some("9007199254740992.0")),
            ("1e400", None),
            ("NaN", None),
            ("-Infinity", None),
            ("\"NaN\"", None),
            ("\"inf\"", None),
            ("\".5\"", None),
            ("\"5.\"", None),
            ("\"1 \"", None),
        ],
    );
    check_values(
        "float | allow_nan = true",
        &[
            ("Infinity", Some("\"Infinity\"")),
            ("\"-Infinity\"", Some("\"-Infinity\"")),
            ("NaN", Some("\"NaN\"")),
            ("nan", None),
        ],
    );
    check_values(
        "float | nan_as_null = true",
        &[
            ("NaN", Some("null")),
            ("\"NaN\"", Some("null")),
            ("Infinity", None),
        ],
    );
    check_values("int", &[("NaN", None)]);
    check_values("string", &[("NaN", None), ("\"NaN\"", Some("\"NaN\""))]);
}

#[test]
fn decimal_and_money() {
    check_values(
        "decimal(10,2)",
        &[
            ("1.00", Some("1.00")),
            ("\"1.200\"", Some("1.20")),
            ("-0.05", Some("-0.05")),
            ("1.005", None),
            ("100000000.00", None),
            ("99999999.99", Some("99999999.99")),
            ("\"1,299.00\"", None),
            ("\"1e2\"", Some("100.00")),
            ("false", None),
        ],
    );
    check_values(
        "decimal(20,0)",
        &[("18446744073709551615", Some("18446744073709551615"))],
    );
    check_values(
        "decimal(12,2) | money = { symbols = [\"$\", \"NT$\"], thousands = \",\" }",
        &[
            ("\"NT$ 1,234.50\"", Some("1234.50")),
            ("\"-$5\"", Some("-5.00")),
            ("1e1", Some("10.00")),
            ("\"1.299,00\"", None),
            ("\"(5.00)\"", None),
            ("\"5-\"", None),
            ("\"$1.005\"", None),
        ],
    );
}

#[test]
fn bool_and_enum() {
    check_values(
        "bool",
        &[
            ("true", Some("true")),
            ("\"false\"", Some("false")),
            ("\"yes\"", None),
            ("\"True\"", None),
            ("1", None),
            ("\"0\"", None),
        ],
    );
    check_values(
        "bool | true_values = [\"yes\", 1] | false_values = [\"0\"]",
        &[
            ("\"yes\"", Some("true")),
            ("1", Some("true")),
            ("\"1\"", None),
            ("0", Some("false")),
            ("\"0\"", Some("false")),
            ("1.0", None),
            ("\"true\"", Some("true")),
        ],
    );
    check_values(
        "enum | values = [\"flat\", \"房\"]",
        &[
            ("\"flat\"", Some("\"flat\"")),
            ("\"\\u623f\"", Some("\"房\"")),
            ("\"Flat\"", None),
            ("\"\"", None),
            ("1", None),
            ("null", Some("null")),
        ],
    );
}

#[test]
fn string_json_and_bytes() {
    check_values(
        "string",
        &[
            ("\"00501\"", Some("\"00501\"")),
            ("\"\"", Some("\"\"")),
            ("5", None),
            ("true", None),
            ("[\"a\"]", None),
            ("{\"x\":1}", None),
            ("\"\\ud83d\\ude00\"", Some("\"😀\"")),
            ("\"  x\\t\"", Some("\"  x\\t\"")),
        ],
    );
    check_values(
        "string | lenient = true",
        &[
            ("1.50", Some("\"1.50\"")),
            ("1e5", Some("\"1e5\"")),
            ("true", None),
        ],
    );
    check_values(
        "json",
        &[
            (
                "{ \"b\":1.10, \"a\":12345678901234567890 }",
                Some(r#""{\"b\":1.10,\"a\":12345678901234567890}""#),
            ),
            (
                "[1, 2.50,\"x\\u00e9\" ,null]",
                Some(r#""[1,2.50,\"x\\u00e9\",null]""#),
            ),
            ("1e5", Some("\"1e5\"")),
            ("\"x\\n\"", Some(r#""\"x\\n\"""#)),
            ("false", Some("\"false\"")),
            ("null", Some("null")),
            ("{\"a\":{\"b\":1,\"b\":1}}", None),
            ("[NaN]", None),
            ("NaN", None),
        ],
    );
    check_values(
        "bytes",
        &[
            ("\"aGk=\"", Some("\"aGk=\"")),
            ("\"aGk\"", None),
            ("\"_-==\"", None),
            ("\"\"", Some("\"\"")),
            ("1", None),
        ],
    );
}

#[test]
fn null_tokens_are_exact_and_per_field() {
    check_values(
        "int | null_values = [\"-\", -1]",
        &[
            ("\"-\"", Some("null")),
            ("-1", Some("null")),
            ("\"-1\"", Some("-1")),
            ("-1.0", Some("-1")),
            ("\" -\"", None),
        ],
    );
    check_values(
        "string | null_values = [\"\", \"N/A\"] | required = true",
        &[
            ("\"\"", None),
            ("\"N/A\"", None),
            ("\"n/a\"", Some("\"n/a\"")),
        ],
    );
    check_values(
        "string | required = true",
        &[("\"\"", Some("\"\"")), ("null", None)],
    );
    check_values(
        "list<int> | null_values = [0]",
        &[("[1,0]", Some("[1,null]"))],
    );
}

#[test]
fn date() {
    check_values(
        "date",
        &[
            ("\"2024-02-29\"", Some("\"2024-02-29\"")),
            ("\"0001-01-01\"", Some("\"0001-01-01\"")),
            ("\"9999-12-31\"", Some("\"9999-12-31\"")),
            ("\"0000-00-00\"", None),
            ("\"2024-02-30\"", None),
            ("\"2024-05-20T00:00:00Z\"", None),
            ("20240520", None),
        ],
    );
    check_values(
        "date | formats = [\"%Y年%m月%d日\", \"%d/%m/%Y\", \"%Y-%j\"]",
        &[
            ("\"2024年5月20日\"", Some("\"2024-05-20\"")),
            ("\"20/05/2024\"", Some("\"2024-05-20\"")),
            ("\"20/05/2024 00:00\"", None),
            ("\"2024-366\"", Some("\"2024-12-31\"")),
            ("\"2023-366\"", None),
            ("\"2024-05-20\"", None),
        ],
    );
}

#[test]
fn timestamp() {
    check_values(
        "timestamp",
        &[
            (
                "\"2024-05-20T08:00:00+02:00\"",
                Some("\"2024-05-20T06:00:00.000000Z\""),
            ),
            (
                "\"9999-12-31T23:59:59.999999Z\"",
                Some("\"9999-12-31T23:59:59.999999Z\""),
            ),
            (
                "\"0001-01-01T00:00:00Z\"",
                Some("\"0001-01-01T00:00:00.000000Z\""),
            ),
            ("\"2024-05-20T08:00:00\"", None),
            ("\"2024-05-20\"", None),
            ("1716163200", None),
        ],
    );
    check_values(
        "timestamp | formats = [\"rfc3339\", \"%F %T\", \"epoch_ms\"] | time_zone = \"Asia/Shanghai\"",
        &[
            (
                "\"2024-05-20 08:00:00\"",
                Some("\"2024-05-20T00:00:00.000000Z\""),
            ),
            (
                "\"2024-05-20T08:00:00.25Z\"",
                Some("\"2024-05-20T08:00:00.250000Z\""),
            ),
            ("1716163200123", Some("\"2024-05-20T00:00:00.123000Z\"")),
            ("\"-1\"", Some("\"1969-12-31T23:59:59.999000Z\"")),
            ("1.5", None),
            ("\"soon\"", None),
        ],
    );
    let ny = |ambiguous: &str| {
        format!("timestamp | formats = [\"%F %T\"] | time_zone = \"America/New_York\"{ambiguous}")
    };
    check_values(
        &ny(""),
        &[
            ("\"2024-11-03 01:30:00\"", None),
            ("\"2024-03-10 02:30:00\"", None),
            (
                "\"2024-11-03 02:00:00\"",
                Some("\"2024-11-03T07:00:00.000000Z\""),
            ),
        ],
    );
    check_values(
        &ny(" | ambiguous = \"earlier\""),
        &[
            (
                "\"2024-11-03 01:30:00\"",
                Some("\"2024-11-03T05:30:00.000000Z\""),
            ),
            ("\"2024-03-10 02:30:00\"", None),
        ],
    );
    check_values(
        &ny(" | ambiguous = \"later\""),
        &[(
            "\"2024-11-03 01:30:00\"",
            Some("\"2024-11-03T06:30:00.000000Z\""),
        )],
    );
}

#[test]
fn lists_and_maps() {
    check_values(
        "list<string>",
        &[
            ("[\"a\",null,\"\"]", Some("[\"a\",null,\"\"]")),
            ("[]", Some("[]")),
            ("null", Some("null")),
            ("\"a\"", None),
            ("{\"0\":\"a\"}", None),
            ("[\"a\",1]", None),
            ("\"[]\"", None),
        ],
    );
    check_values(
        "list<list<date>>",
        &[
            (
                "[[\"2024-05-20\"],[],null]",
                Some("[[\"2024-05-20\"],[],null]"),
            ),
            ("[[\"2024-05-20\",\"x\"]]", None),
        ],
    );
    check_values(
        "map<int>",
        &[
            ("{\"b\":1,\"a\":null}", Some("{\"b\":1,\"a\":null}")),
            ("{}", Some("{}")),
            ("{\"a\":1,\"\\u0061\":2}", None),
            ("{\"a\":\"x\"}", None),
            ("[]", None),
        ],
    );
}

const STRUCTS: &str = r#"
[[field]]
id = 1
name = "l"
type = "list<struct>"
  [[field.field]]
  id = 2
  name = "a"
  type = "int"
  required = true
  [[field.field]]
  id = 3
  name = "b"
  type = "string"
  from = "/deep/b"
"#;

#[test]
fn structs_keep_all_states_apart() {
    let mut f = Fixture::of_toml(STRUCTS, Mismatch::Quarantine);
    let decoded = f.lines(concat!(
        "{\"l\":[{\"a\":1,\"deep\":{\"b\":\"x\"}}]}\n",
        "{\"l\":[]}\n",
        "{\"l\":null}\n",
        "{\"l\":[null]}\n",
        "{\"l\":[{\"deep\":{\"b\":\"x\"},\"a\":2},null,{\"a\":3,\"deep\":null}]}\n",
        "{}\n",
        "{\"l\":[{\"a\":1},{}]}\n",
        "{\"l\":[{\"a\":1},{\"a\":2,\"c\":3}]}\n",
        "{\"l\":[{\"a\":1,\"deep\":{\"b\":\"x\",\"d\":1}}]}\n",
        "{\"l\":[{\"a\":1,\"deep\":\"x\"}]}\n",
        "{\"l\":[{\"a\":1,\"a\":1}]}\n",
    ));
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"l":[{"a":1,"b":"x"}]}"#,
            r#"{"l":[]}"#,
            r#"{"l":null}"#,
            r#"{"l":[null]}"#,
            r#"{"l":[{"a":2,"b":"x"},null,{"a":3,"b":null}]}"#,
            r#"{"l":null}"#,
        ]
    );
    assert_eq!(
        reasons(&decoded),
        [
            reason(7, "l", "$.l[1].a", "missing"),
            reason(8, "/l/1/c", "$.l[1].c", "unknown_field"),
            reason(9, "/l/0/deep/d", "$.l[0].deep.d", "unknown_field"),
            reason(10, "/l/0/deep", "$.l[0].deep", "unknown_field"),
            reason(11, "l", "$.l[0].a", "duplicate_key"),
        ]
    );
    assert_eq!(count(&decoded, "l", Presence::EmptyContainer), 1);
    assert_eq!(count(&decoded, "l", Presence::Null), 1);
    assert_eq!(count(&decoded, "l", Presence::Absent), 1);
    assert_eq!(count(&decoded, "l", Presence::Invalid), 5);
    assert_eq!(count(&decoded, "l", Presence::Present), 3);
}

#[test]
fn an_empty_struct_is_there() {
    let toml = STRUCTS
        .replace("list<struct>", "struct")
        .replace("required = true", "");
    let mut f = Fixture::of_toml(&toml, Mismatch::Fail);
    let decoded = f.lines("{\"l\":{}}\n{\"l\":null}\n{}\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"l":{"a":null,"b":null}}"#,
            r#"{"l":null}"#,
            r#"{"l":null}"#
        ]
    );
}

#[test]
fn presence_has_nine_exclusive_kinds() {
    let mut f = Fixture::new(
        &[
            "t: string | null_values = [\"-\"]",
            "x: float | allow_nan = true",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines(concat!(
        "{}\n{\"t\":null}\n{\"t\":\"\"}\n{\"t\":\" \"}\n{\"t\":\"\\u00a0\\u3000\"}\n{\"t\":\"\u{3000}\"}\n",
        "{\"t\":\"\\u200b\"}\n{\"t\":\"-\"}\n{\"t\":\"x\",\"x\":NaN}\n{\"t\":5,\"x\":1}\n{\"t\":\" x\",\"x\":\"a\"}\n",
    ));
    let kinds: Vec<u64> = Presence::ALL
        .iter()
        .map(|k| count(&decoded, "t", *k))
        .collect();
    assert_eq!(kinds, [1, 1, 0, 1, 3, 1, 0, 1, 3]);
    assert_eq!(count(&decoded, "x", Presence::Nan), 1);
    assert_eq!(count(&decoded, "x", Presence::Present), 1);
    assert_eq!(count(&decoded, "x", Presence::Invalid), 1);
    assert!(
        decoded
            .stats
            .presence
            .iter()
            .all(|p| p.records() == decoded.stats.records)
    );
}

#[test]
fn several_fields_may_read_one_member() {
    let mut f = Fixture::new(
        &[
            "old: string | from = \"p\"",
            "new: decimal(8,2) | from = \"p\"",
            "first: string | from = \"/tags/0\"",
            "tags: list<string>",
            "lat: float | from = \"/geo/lat\"",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines(concat!(
        "{\"geo\":{\"lat\":1.5},\"p\":\"1.50\",\"tags\":[\"a\",\"b\"]}\n",
        "{\"geo\":null,\"tags\":[]}\n",
        "{\"geo\":{\"lat\":1,\"lon\":2}}\n",
    ));
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"old":"1.50","new":1.50,"first":"a","tags":["a","b"],"lat":1.5}"#,
            r#"{"old":null,"new":null,"first":null,"tags":[],"lat":null}"#,
        ]
    );
    assert_eq!(
        reasons(&decoded),
        [reason(3, "/geo/lon", "$.geo.lon", "unknown_field")]
    );
}
