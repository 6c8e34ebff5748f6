//! Values at the edges of rules 9 to 20: what must pass, beside its nearest neighbours that must not.

use super::*;

#[test]
fn numbers_into_int() {
    check_values(
        "int",
        &[
            ("-0", Some("0")),
            ("-0.0", Some("0")),
            ("1E+2", Some("100")),
            ("0.1e1", Some("1")),
            ("1e-1", None),
            ("10e-1", Some("1")),
            ("12.50e1", Some("125")),
            ("9223372036854775807.0", Some("9223372036854775807")),
            ("9223372036854775807.5", None),
            ("9223372036854775808.0", None),
            ("922337203685477580.8e1", None),
            ("-9223372036854775808", Some("-9223372036854775808")),
            ("-9223372036854775808.000", Some("-9223372036854775808")),
            ("-9223372036854775809", None),
            ("0e999999999999999999999", Some("0")),
            ("1e99999999999999999999", None),
            ("1e-99999999999999999999", None),
            ("00123", None),
            ("-01", None),
            ("+1", None),
            ("1.", None),
            (".5", None),
            ("0x1F", None),
            ("1_000", None),
            ("\"00123\"", Some("123")),
            ("\"-00\"", Some("0")),
            ("\"0000000000000000000000000000007\"", Some("7")),
            ("\"-9223372036854775808\"", Some("-9223372036854775808")),
            ("\"9223372036854775808\"", None),
            ("\"1e3\"", None),
            ("\"1_000\"", None),
            ("\"1,000\"", None),
            ("\"0x1F\"", None),
            ("\"-\"", None),
            ("\"--1\"", None),
            ("\"- 1\"", None),
            ("\"1 \"", None),
            ("\"1\\n\"", None),
            ("\"１２\"", None),
            ("\"١٢\"", None),
            ("\"−1\"", None),
            ("\"1\\u0000\"", None),
            ("false", None),
        ],
    );
}

#[test]
fn numbers_into_float() {
    check_values(
        "float",
        &[
            ("-0", Some("-0.0")),
            ("-0.0", Some("-0.0")),
            ("\"-0\"", Some("-0.0")),
            ("0", Some("0.0")),
            ("1E+2", Some("100.0")),
            ("1e-400", Some("0.0")),
            ("1e308", Some("1e308")),
            ("-1e309", None),
            ("0.30000000000000004", Some("0.30000000000000004")),
            ("9007199254740993.0", Some("9007199254740992.0")),
            ("-9007199254740993", None),
            ("\"9007199254740993\"", None),
            ("\"007.50\"", Some("7.5")),
            ("\"+1\"", None),
            ("\"1e\"", None),
            ("\"1,5\"", None),
            ("\"１.5\"", None),
            ("\"infinity\"", None),
            ("\"\"", None),
            ("true", None),
        ],
    );
    let ten = format!("1{}", "0".repeat(309));
    check_values("float", &[(&ten, None), ("1e22", Some("1e22"))]);
    let field = "float | allow_nan = true | nan_as_null = true";
    check_values(
        field,
        &[("NaN", Some("null")), ("Infinity", Some("\"Infinity\""))],
    );
    check_values("decimal(5,2) | nan_as_null = true", &[("Infinity", None)]);
}

#[test]
fn numbers_into_decimal() {
    check_values(
        "decimal(10,2)",
        &[
            ("1e2", Some("100.00")),
            ("1.50e-1", Some("0.15")),
            ("1.5e-2", None),
            ("1.0000000000000000000000000000000000000000", Some("1.00")),
            ("-0", Some("0.00")),
            ("1e8", None),
            ("1e7", Some("10000000.00")),
            ("1e-99999999999999999999", None),
            ("\".5\"", None),
            ("\"5.\"", None),
            ("\"+5\"", None),
            ("\" 5\"", None),
            ("\"5 \"", None),
            ("\"５\"", None),
            ("\"1,5\"", None),
            ("\"NaN\"", None),
            ("\"\"", None),
            ("\"00005.10\"", Some("5.10")),
            ("\"1.50e-1\"", Some("0.15")),
            ("\"1E+2\"", Some("100.00")),
            ("[1]", None),
        ],
    );
    let nines = "9".repeat(38);
    check_values(
        "decimal(38,0)",
        &[
            (&nines, Some(&nines)),
            (&format!("{nines}0"), None),
            (&format!("{nines}.0"), Some(&nines)),
        ],
    );
}

#[test]
fn money() {
    let field = "decimal(12,2) | money = { symbols = [\"$\", \"NT$\", \"元\"], thousands = \",\" }";
    check_values(
        field,
        &[
            ("\"\\u00a0NT$\\u00a01,234.50\\u3000\"", Some("1234.50")),
            ("\"NT$\\t5\"", Some("5.00")),
            ("\"NT$\\u200b5\"", None),
            ("\"元5\"", Some("5.00")),
            ("\"$-5\"", Some("-5.00")),
            ("\"-$5\"", Some("-5.00")),
            ("\"-$-5\"", None),
            ("\"--5\"", None),
            ("\"- 5\"", None),
            ("\"5-\"", None),
            ("\"(5.00)\"", None),
            ("\"+5\"", None),
            ("\"$$5\"", None),
            ("\"NT 5\"", None),
            ("\"$\"", None),
            ("\"\"", None),
            ("\"1,23\"", None),
            ("\",123\"", None),
            ("\"123,\"", None),
            ("\"1,,234\"", None),
            ("\"1234,567\"", None),
            ("\"1,234567\"", None),
            ("\"12,345\"", Some("12345.00")),
            ("\"1,234,567.8\"", Some("1234567.80")),
            ("\"1.234,5\"", None),
            ("\"1.5.0\"", None),
            ("\"5.\"", None),
            ("\".5\"", None),
            ("\"1 234\"", None),
            ("\"1e2\"", None),
            ("\"５\"", None),
            ("\"5.120\"", Some("5.12")),
            ("\"5.125\"", None),
            ("1.50e-1", Some("0.15")),
        ],
    );
    let field = "decimal(12,2) | money = { symbols = [\"€\"], thousands = \".\", decimal = \",\" }";
    check_values(
        field,
        &[
            ("\"€ 1.234,5\"", Some("1234.50")),
            ("\"1,5\"", Some("1.50")),
            ("\"1.5\"", None),
            ("1.5", Some("1.50")),
        ],
    );
}

#[test]
fn bools_and_tokens_match_exactly() {
    check_values(
        "bool | true_values = [\"Y\", 1, \"2\"] | false_values = [0, \"\"]",
        &[
            ("1", Some("true")),
            ("2", Some("true")),
            ("1.0", None),
            ("01", None),
            ("1e0", None),
            ("0", Some("false")),
            ("-0", None),
            ("\"\"", Some("false")),
            ("\"y\"", None),
            ("\" Y\"", None),
            ("true", Some("true")),
            ("\"false\"", Some("false")),
            ("\"FALSE\"", None),
            ("null", Some("null")),
        ],
    );
    check_values(
        "string | lenient = true",
        &[
            ("-0", Some("\"-0\"")),
            ("1E+2", Some("\"1E+2\"")),
            (
                "12345678901234567890.10",
                Some("\"12345678901234567890.10\""),
            ),
            ("false", None),
            ("NaN", None),
            ("{}", None),
        ],
    );
    check_values(
        "decimal(8,2) | null_values = [-999, \"-999.0\", \"\"]",
        &[
            ("-999", Some("null")),
            ("-999.0", Some("-999.00")),
            ("\"-999\"", Some("-999.00")),
            ("\"-999.0\"", Some("null")),
            ("\"\"", Some("null")),
        ],
    );
    // A bool is no number token, a text no bool.
    check_values(
        "json | null_values = [\"x\", 0]",
        &[
            ("\"x\"", Some("null")),
            ("0", Some("null")),
            ("\"\\u0078\"", Some("null")),
            ("0.0", Some("\"0.0\"")),
            ("[\"x\",0]", Some(r#""[\"x\",0]""#)),
        ],
    );
}

#[test]
fn dates_and_instants() {
    check_values(
        "date",
        &[
            ("\"2000-02-29\"", Some("\"2000-02-29\"")),
            ("\"1900-02-29\"", None),
            ("\"2023-02-29\"", None),
            ("\"2024-2-9\"", None),
            ("\"2024-00-10\"", None),
            ("\"10000-01-01\"", None),
            ("\"-001-01-01\"", None),
            ("\"2024-05-20 \"", None),
            ("\"20240520\"", None),
            ("\"２０２４-05-20\"", None),
        ],
    );
    let at = |text: &str| format!("\"{text}.000000Z\"");
    let (noon, leap) = (at("2024-05-20T12:00:00"), at("2024-02-29T23:59:59"));
    check_values(
        "timestamp",
        &[
            ("\"2024-05-20T12:00:00-00:00\"", Some(&noon)),
            ("\"2024-05-20T12:00:00.0000000000Z\"", Some(&noon)),
            ("\"2024-02-29T23:59:59Z\"", Some(&leap)),
            ("\"2024-05-20T20:00:00+0800\"", None),
            ("\"2024-05-20T20:00:00+08\"", None),
            ("\"2024-05-20T20:00:00+8:00\"", None),
            ("\"2024-05-20T20:00:00+24:00\"", None),
            ("\"2024-05-20T20:00:00+08:60\"", None),
            ("\"2024-05-20T12:00:00\u{2212}00:00\"", None),
            ("\"2024-05-20t12:00:00Z\"", None),
            ("\"2024-05-20T12:00:00z\"", None),
            ("\"2024-05-20 12:00:00Z\"", None),
            ("\"2024-05-20T24:00:00Z\"", None),
            ("\"2024-05-20T23:59:60Z\"", None),
            ("\"2016-12-31T23:59:60Z\"", None),
            ("\"2024-05-20T12:60:00Z\"", None),
            ("\"2024-05-20T12:00Z\"", None),
            ("\"2024-05-20T12:00:00.Z\"", None),
            ("\"2024-05-20T12:00:00,5Z\"", None),
            ("\"2024-05-20T12:00:00.1234567Z\"", None),
            ("\"2023-02-29T00:00:00Z\"", None),
            ("\"0001-01-01T00:00:00+00:01\"", None),
            ("\"9999-12-31T23:59:59-00:01\"", None),
            ("\"2024-05-20T12:00:00ZZ\"", None),
            ("\"2024-05-20T12:00:00Z \"", None),
            ("\"2024年5月20日\"", None),
        ],
    );
    let midnight = at("2024-05-19T16:00:00");
    check_values(
        "timestamp | formats = [\"%F\", \"%Y%j\"] | time_zone = \"Asia/Taipei\"",
        &[
            ("\"2024-05-20\"", Some(&midnight)),
            ("\"2024141\"", Some(&midnight)),
            ("\"2024-05-20T12:00:00Z\"", None),
        ],
    );
}

#[test]
fn epochs() {
    let half = "\"2024-05-20T00:00:00.500000Z\"";
    let whole = "\"2024-05-20T00:00:00.000000Z\"";
    check_values(
        "timestamp | formats = [\"epoch_s\"]",
        &[
            ("1716163200.5", Some(half)),
            ("\"1716163200.5\"", Some(half)),
            ("1716163200.5000000", Some(half)),
            ("1716163200.1234567", None),
            ("\"1716163200\"", Some(whole)),
            ("1.7161632e9", Some(whole)),
            ("-0.000001", Some("\"1969-12-31T23:59:59.999999Z\"")),
            ("253402300799", Some("\"9999-12-31T23:59:59.000000Z\"")),
            ("253402300800", None),
            ("1716163200000", None),
            ("9223372036854775807", None),
            ("1e400", None),
            ("-62135596800", Some("\"0001-01-01T00:00:00.000000Z\"")),
            ("-62135596801", None),
            ("\"1.7161632e9\"", None),
            ("\"+1716163200\"", None),
            ("\"1716163200.\"", None),
            ("\"2024-05-20T00:00:00Z\"", None),
            ("true", None),
        ],
    );
    check_values(
        "timestamp | formats = [\"epoch_ms\"]",
        &[
            ("1716163200000", Some(whole)),
            ("1716163200000.0", Some(whole)),
            ("1716163200000.5", None),
            ("\"1716163200000.0\"", None),
            ("\"1716163200500\"", Some(half)),
        ],
    );
    check_values(
        "timestamp | formats = [\"epoch_us\"]",
        &[
            ("1716163200500000", Some(half)),
            ("9223372036854775808", None),
        ],
    );
}

#[test]
fn json_and_bytes_as_given() {
    check_values(
        "json",
        &[
            ("{\"a\":1,\"\\u0061\":2}", None),
            ("[{\"b\":{\"a\":1,\"\\u0061\":2}}]", None),
            ("{\"a\":1,\"A\":2}", Some(r#""{\"a\":1,\"A\":2}""#)),
            ("{\"a\":null}", Some(r#""{\"a\":null}""#)),
            ("[-0 , 1E+2,1.0]", Some("\"[-0,1E+2,1.0]\"")),
            ("\"\\/\\u00E9\\ud800\"", Some(r#""\"\\/\\u00E9\\ud800\"""#)),
            ("[1,]", None),
            ("{\"a\":01}", None),
            ("[[Infinity]]", None),
            ("\"\\x41\"", None),
            ("'a'", None),
        ],
    );
    check_values(
        "bytes",
        &[
            ("\"aGk=\\n\"", None),
            ("\"aGk= \"", None),
            ("\"aGl=\"", None),
            ("\"-_8=\"", None),
            ("\"+/8=\"", Some("\"+/8=\"")),
            ("\"\\u0061Gk=\"", Some("\"aGk=\"")),
        ],
    );
    check_values(
        "list<int>",
        &[
            ("1", None),
            ("\"[1]\"", None),
            ("{\"0\":1}", None),
            ("[[1]]", None),
            ("[1,]", None),
        ],
    );
    check_values("map<int>", &[("[]", None), ("\"{}\"", None)]);
}

#[test]
fn keys_are_told_apart_after_unescaping() {
    for policy in [Mismatch::Quarantine, Mismatch::Extra] {
        let mut f = Fixture::new(&["k: int", "j: json", "m: map<json>"], policy);
        let decoded = f.lines(concat!(
            "{\"k\":1,\"u\":{\"a\":1,\"\\u0061\":2}}\n",
            "{\"k\":2,\"u\":[[{\"\\ud800\":1,\"\\udc00\":2}]]}\n",
            "{\"k\":3,\"u\":1,\"\\u0075\":1}\n",
            "{\"k\":4,\"m\":{\"a\":{\"b\":1,\"\\u0062\":1}}}\n",
            "{\"\\u006b\":5,\"j\":{\"a\":{\"a\":1}}}\n",
            "{\"k\":6,\"\\u006b\":6}\n",
        ));
        assert_eq!(rejected(&decoded), [1, 2, 3, 4, 6]);
        for reject in &decoded.rejects {
            let codes: Vec<_> = reject.reasons.iter().map(|r| r.code.as_str()).collect();
            assert!(codes.contains(&"duplicate_key"), "{codes:?}");
        }
        assert_eq!(
            f.rows(&decoded),
            [r#"{"k":5,"j":"{\"a\":{\"a\":1}}","m":null}"#]
        );
    }
}

#[test]
fn blank_is_white_space_alone_and_stays() {
    let mut f = Fixture::new(&["t: string"], Mismatch::Quarantine);
    let decoded = f.lines(concat!(
        "{\"t\":\" \\u00a0\u{3000}\\t\"}\n",
        "{\"t\":\"\u{200b}\"}\n",
        "{\"t\":\"\"}\n",
        "{\"t\":\" x\"}\n",
    ));
    assert_eq!(f.rows(&decoded)[0], "{\"t\":\" \u{a0}\u{3000}\\t\"}");
    let kinds = [Presence::Blank, Presence::Empty, Presence::Present];
    assert_eq!(kinds.map(|k| count(&decoded, "t", k)), [1, 1, 2]);
}

#[test]
fn a_rejected_records_other_fields_count_by_their_own_kind() {
    let mut f = Fixture::new(
        &["a: int", "b: string | required = true", "c: list<int>"],
        Mismatch::Quarantine,
    );
    let decoded = f.lines("{\"a\":\"x\",\"b\":\"\",\"c\":[]}\n{\"a\":1,\"b\":null}\n5\n");
    assert_eq!(rejected(&decoded), [1, 2, 3]);
    assert_eq!(count(&decoded, "a", Presence::Invalid), 1);
    assert_eq!(count(&decoded, "a", Presence::Present), 1);
    assert_eq!(count(&decoded, "b", Presence::Empty), 1);
    assert_eq!(count(&decoded, "b", Presence::Invalid), 1);
    assert_eq!(count(&decoded, "c", Presence::EmptyContainer), 1);
    assert_eq!(count(&decoded, "c", Presence::Absent), 1);
    assert_eq!((decoded.stats.records, decoded.stats.not_records), (2, 1));
}

#[test]
fn csv_cells_are_texts_of_their_own() {
    let mut f = Fixture::new(
        &[
            "b: bool | true_values = [1]",
            "f: float",
            "s: string | required = true",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.csv(concat!(
        "b,f,s\n",
        "1,-0,\"\"\n",
        "01,1,x\n",
        "true,1e400,x\n",
        "TRUE,1,x\n",
        ",,\n",
        "\"\",NaN,x\n",
        "true, 1,x\n",
        "\n",
        "b,f,s\n",
        "B,f,s\n",
    ));
    assert_eq!(f.rows(&decoded), [r#"{"b":true,"f":-0.0,"s":""}"#]);
    let codes: Vec<_> = reasons(&decoded).into_iter().map(|r| (r.0, r.3)).collect();
    let wanted = [
        (3, "format"),
        (4, "range"),
        (5, "format"),
        (6, "missing"),
        (7, "nan"),
        (8, "format"),
        (10, "header_row"),
        (11, "format"),
        (11, "format"),
    ];
    assert_eq!(codes, wanted.map(|(line, code)| (line, code.to_owned())));
}
