//! The `cast_old` strategy, sentence by sentence of docs/formats/schema.md.

use super::*;

fn cast(kind: &str, cast: &str) -> String {
    format!("{kind} | change = \"cast_old\" | cast = {{ {cast} }}")
}

#[test]
fn the_own_rule_comes_first_and_the_cast_takes_what_it_keeps_whole() {
    check_values(
        &format!(
            "{} | null_values = [\"-\", -1]",
            cast("int", "from = \"float\"")
        ),
        &[
            ("5", Some("5")),
            // Above 2^53 the field's own rule reads every digit.
            ("9007199254740993", Some("9007199254740993")),
            ("\"007\"", Some("7")),
            ("\"4.0\"", Some("4")),
            ("\"-\"", Some("null")),
            ("-1", Some("null")),
            ("null", Some("null")),
            ("4.5", None),
            ("\"4.5\"", None),
            ("1e300", None),
            ("\"NaN\"", None),
            ("true", None),
            ("[4]", None),
        ],
    );
    check_values(
        &cast("bool", "from = \"int\""),
        &[
            ("true", Some("true")),
            ("1", Some("true")),
            ("0", Some("false")),
            ("2", None),
            ("\"1\"", Some("true")),
        ],
    );
    check_values(
        &format!(
            "{} | values = [\"1\", \"a\"]",
            cast("enum", "from = \"int\"")
        ),
        &[("\"a\"", Some("\"a\"")), ("1", Some("\"1\"")), ("2", None)],
    );
    check_values(
        &cast("string", "from = \"json\""),
        &[
            ("\"a\"", Some("\"a\"")),
            ("1.50", Some("\"1.50\"")),
            ("true", Some("\"true\"")),
            ("{\"a\": [1]}", Some("\"{\\\"a\\\":[1]}\"")),
            ("{\"a\": 1, \"a\": 2}", None),
        ],
    );
}

#[test]
fn money_and_formats_belong_to_the_new_form() {
    let money = "from = \"decimal(12,2)\", money = { symbols = [\"NT$\"], thousands = \",\" }";
    check_values(
        &cast("int", money),
        &[
            ("\"NT$1,200\"", Some("1200")),
            ("\"1,200.00\"", Some("1200")),
            ("\"1,200.50\"", None),
            ("\"12,00\"", None),
            ("\"NT$99,999,999,999\"", None),
        ],
    );
    check_values(
        &cast(
            "date",
            "from = \"timestamp\", time_zone = \"Asia/Taipei\", formats = [\"rfc3339\", \"%F %T\"]",
        ),
        &[
            ("\"2026-11-30\"", Some("\"2026-11-30\"")),
            ("\"2026-11-30T00:00:00+08:00\"", Some("\"2026-11-30\"")),
            ("\"2026-11-29T16:00:00Z\"", Some("\"2026-11-30\"")),
            ("\"2026-11-30 00:00:00\"", Some("\"2026-11-30\"")),
            ("\"2026-11-30 00:00:01\"", None),
        ],
    );
}

#[test]
fn a_declared_loss_is_cut_and_nothing_else() {
    let floats = |lossy: &str| cast("int", &format!("from = \"float\", lossy = \"{lossy}\""));
    let cases = [
        ("-1200.5", "-1200", "-1201"),
        ("0.49", "0", "0"),
        ("\"2.9\"", "2", "3"),
        ("7", "7", "7"),
    ];
    for (value, cut, rounded) in cases {
        check_values(&floats("truncate"), &[(value, Some(cut))]);
        check_values(&floats("round"), &[(value, Some(rounded))]);
    }
    check_values(
        &floats("round"),
        &[
            ("9007199254740993.5", None),
            ("1e17", Some("100000000000000000")),
            ("1.5e17", Some("150000000000000000")),
        ],
    );
    check_values(
        &cast(
            "date",
            "from = \"timestamp\", time_zone = \"Asia/Taipei\", lossy = \"truncate\"",
        ),
        &[
            ("\"2026-11-29T15:59:59Z\"", Some("\"2026-11-29\"")),
            ("\"2026-11-29T16:30:00Z\"", Some("\"2026-11-30\"")),
            ("\"1969-12-31T12:00:00Z\"", Some("\"1969-12-31\"")),
        ],
    );
    check_values(
        &cast("float", "from = \"int\", lossy = \"round\""),
        &[
            ("9007199254740993", Some("9007199254740992.0")),
            ("18446744073709551615", None),
        ],
    );
    check_values(
        &cast(
            "decimal(4,1)",
            "from = \"decimal(12,4)\", lossy = \"round\"",
        ),
        &[
            ("1.25", Some("1.3")),
            ("-1.25", Some("-1.3")),
            ("999.94", Some("999.9")),
            ("999.95", None),
        ],
    );
}

#[test]
fn a_value_that_neither_rule_takes_is_told_once_and_leaves_no_trace() {
    let field = format!("price: {}", cast("int", "from = \"float\""));
    let mut f = Fixture::new(&[&field, "k: int"], Mismatch::Quarantine);
    let decoded =
        f.lines("{\"k\":1,\"price\":1.5}\n{\"k\":2,\"price\":\"x\"}\n{\"k\":3,\"price\":3.0}\n");
    assert_eq!(f.rows(&decoded), [r#"{"price":3,"k":3}"#]);
    assert_eq!(
        reasons(&decoded),
        [
            reason(1, "price", "$.price", "precision"),
            reason(2, "price", "$.price", "format")
        ]
    );
    let why: Vec<&str> = decoded
        .rejects
        .iter()
        .map(|r| r.reasons[0].reason.as_str())
        .collect();
    assert_eq!(
        why,
        [
            "`1.5` has a fraction, so it is not an int; it is a 64-bit float that cannot be cast without loss",
            "`x` is not an int; nor is it a 64-bit float",
        ]
    );
    assert_eq!(count(&decoded, "price", Presence::Invalid), 2);
    assert_eq!(count(&decoded, "price", Presence::Present), 1);
}

#[test]
fn it_works_beside_dual_within_structs_and_with_required() {
    let old = format!(
        "price: {}",
        cast("int", "from = \"float\", lossy = \"truncate\"")
    );
    let dual = "amount: decimal(8,2) | from = \"price\" | change = \"dual\"";
    let mut f = Fixture::new(&[&old, dual], Mismatch::Quarantine);
    let decoded = f.lines("{\"price\":1.5}\n{\"price\":\"x\"}\n");
    assert_eq!(f.rows(&decoded), [r#"{"price":1,"amount":1.50}"#]);
    assert_eq!(decoded.rejects.len(), 1);

    let text = "[[field]]\nid = 1\nname = \"l\"\ntype = \"list<struct>\"\n[[field.field]]\nid = 2\nname = \"v\"\n\
                type = \"int\"\nrequired = true\nchange = \"cast_old\"\ncast = { from = \"bool\" }\n";
    let mut f = Fixture::of_toml(text, Mismatch::Quarantine);
    let decoded =
        f.lines("{\"l\":[{\"v\":true},{\"v\":2}]}\n{\"l\":[{\"v\":\"x\"}]}\n{\"l\":[{}]}\n");
    assert_eq!(f.rows(&decoded), [r#"{"l":[{"v":1},{"v":2}]}"#]);
    assert_eq!(
        reasons(&decoded),
        [
            reason(2, "l", "$.l[0].v", "format"),
            reason(3, "l", "$.l[0].v", "missing")
        ]
    );
}

#[test]
fn a_personal_value_stays_out_of_the_reason() {
    let field = format!(
        "v: {} | privacy = \"personal\"",
        cast("int", "from = \"float\"")
    );
    let mut f = Fixture::new(&[&field], Mismatch::Quarantine);
    let decoded = f.lines("{\"v\":123.5}\n");
    let why = &decoded.rejects[0].reasons[0].reason;
    assert!(!why.contains("123"), "{why}");
}

#[test]
fn cells_are_cast_as_texts_are() {
    let field = format!(
        "v: {}",
        cast("int", "from = \"float\", lossy = \"truncate\"")
    );
    let mut f = Fixture::new(&[&field], Mismatch::Quarantine);
    let decoded = f.csv("v\n1.9\n\n\"\"\nx\n5\n");
    assert_eq!(
        f.rows(&decoded),
        [r#"{"v":1}"#, r#"{"v":null}"#, r#"{"v":5}"#]
    );
}
