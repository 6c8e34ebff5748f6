//! The scanner against serde_json as oracle, and against hostile text.

use proptest::prelude::*;

use super::*;

fn whole(text: &str) -> Result<(), SyntaxError> {
    let mut scanner = Scanner::new(text);
    scanner.value()?;
    match scanner.skip_space() {
        None => Ok(()),
        Some(_) => scanner.error("more follows"),
    }
}

fn oracle(text: &str) -> bool {
    serde_json::from_str::<Box<serde_json::value::RawValue>>(text).is_ok()
}

/// Whether serde_json refuses it only because it cannot hold a lone surrogate or a large number.
fn agrees(text: &str) -> bool {
    whole(text).is_ok() == oracle(text)
}

#[test]
fn the_grammar_is_strict() {
    for good in [
        "0",
        "-0",
        "-0.0e-0",
        "10",
        "1E+400",
        "1.5",
        "null",
        "true",
        "false",
        "\"\"",
        "\"\\u0000\\ud83d\"",
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "{\"\":{}}",
        "\"\u{7f}微博\"",
        "NaN",
        "-Infinity",
        "Infinity",
        "[NaN]",
        "\"1234567\\n\"",
    ] {
        assert_eq!(whole(good), Ok(()), "{good}");
    }
    for bad in [
        "",
        " ",
        "01",
        "-",
        "-a",
        "+1",
        ".5",
        "5.",
        "1e",
        "1e+",
        "0x1F",
        "1_000",
        "nul",
        "nulll",
        "True",
        "'a'",
        "\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\t\"",
        "\"12345678\n\"",
        "\"\u{0}\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\" 1}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "--1",
        "1.2.3",
        "-NaN",
        "nan",
        "-Inf",
        "NaNa",
        "Infinityx",
        "\u{a0}1",
        "\u{feff}1",
        "// c\n1",
        "1\"a\"",
        "[1\"a\"]",
    ] {
        assert!(whole(bad).is_err(), "{bad}");
    }
}

#[test]
fn errors_name_the_place() {
    let e = whole("{\"a\":1,}").unwrap_err();
    assert_eq!((e.at, e.what), (7, "expected a key in quotes"));
    assert_eq!(whole("{\"a\":\"x\u{1}\"}").unwrap_err().at, 7);
}

#[test]
fn values_keep_their_text() {
    let mut s = Scanner::new(r#" {"a" : 1.10 , "b\"" : [ 1 ] }"#);
    s.open_object().unwrap();
    let key = s.next_key(true).unwrap().unwrap();
    assert_eq!((key.body, key.escaped), ("a", false));
    assert_eq!(s.value().unwrap(), Raw::Number("1.10"));
    let key = s.next_key(false).unwrap().unwrap();
    assert_eq!((key.body, key.escaped), ("b\\\"", true));
    assert_eq!(s.value().unwrap(), Raw::Array("[ 1 ]"));
    assert_eq!(s.next_key(false).unwrap(), None);
}

#[test]
fn depth_is_no_trouble() {
    let n = 1_000_000;
    assert_eq!(
        whole(&format!("{}{}", "[".repeat(n), "]".repeat(n))),
        Ok(())
    );
    assert!(whole(&"[".repeat(n)).is_err());
    assert!(whole(&"{\"a\":[".repeat(n)).is_err());
    assert!(whole(&format!("{}{}", "[".repeat(n), "]".repeat(n - 1))).is_err());
    let mixed = format!("{}{}", "[{\"a\":".repeat(n), "}]".repeat(n));
    assert!(whole(&mixed).is_err(), "a value is missing in the middle");
    let mixed = format!("{}1{}", "[{\"a\":".repeat(n), "}]".repeat(n));
    assert_eq!(whole(&mixed), Ok(()));
    let crossed = format!("{}1{}", "[{\"a\":".repeat(65), "]}".repeat(65));
    assert!(whole(&crossed).is_err());
}

fn json_like() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        "\"[ -!#-\\[\\]-~微博é]{0,12}\"",
        Just("\"\\n\\u5fae\\\"\"".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    atom.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|v| format!("[{}]", v.join(" , "))),
            prop::collection::vec(("[a-z]{0,9}", inner), 0..4).prop_map(|v| {
                let members: Vec<String> = v.iter().map(|(k, x)| format!("\"{k}\" :{x}")).collect();
                format!("{{{}}}", members.join(",\n"))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn valid_text_is_accepted(text in json_like()) {
        prop_assert!(whole(&text).is_ok());
        prop_assert!(oracle(&text));
    }

    #[test]
    fn broken_text_is_judged_as_the_oracle_judges(
        text in json_like(),
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(vec!["", ",", "\"", "}", "]", "{", "[", ":", "0", "-", ".", "e", "\\", " ", "\n", "x"]),
    ) {
        let places: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
        let i = places[at.index(places.len())];
        let end = text[i..].chars().next().map_or(i, |c| i + c.len_utf8());
        let broken = format!("{}{with}{}", &text[..i], &text[end..]);
        prop_assert!(agrees(&broken), "{broken:?}");
        let inserted = format!("{}{with}{}", &text[..i], &text[i..]);
        prop_assert!(agrees(&inserted), "{inserted:?}");
    }

    #[test]
    fn any_text_is_no_crash(text in ".{0,60}") {
        prop_assert!(agrees(&text), "{text:?}");
    }

    #[test]
    fn strings_resolve_as_the_oracle_resolves(text in "[\\PC\\n\\t\"\\\\]{0,40}") {
        let json = serde_json::to_string(&text).unwrap();
        let mut scanner = Scanner::new(&json);
        let Ok(Raw::String { body, escaped }) = scanner.value() else {
            return Err(TestCaseError::fail("not a string"));
        };
        prop_assert_eq!(crate::ingest::json::unescaped(body, escaped), text);
    }
}

#[test]
fn an_expected_key_is_taken_and_nothing_else() {
    let take = |text: &str, first: bool, quoted: &str| {
        let mut scanner = Scanner::new(text);
        let taken = scanner.take_key(first, quoted);
        (taken, scanner.offset())
    };
    let id = "\"id\"";
    assert_eq!(take("\"id\":1", true, id), (true, 5));
    assert_eq!(take(",\"id\":1", false, id), (true, 6));
    assert_eq!(take(", \"id\": 1", false, id), (true, 7));
    let long = "\"a_rather_long_name\"";
    assert_eq!(
        take(&format!(",{long}:1"), false, long),
        (true, long.len() + 2)
    );
    // Whatever is not quite so is left to the full grammar, with the cursor where it was.
    for (text, first) in [
        ("\"ie\":1", true),
        ("\"id2\":1", true),
        ("\"i\":1", true),
        ("\"id\" :1", true),
        ("\"id\"", true),
        (",\"id\":1", true),
        ("\"id\":1", false),
        (",  \"id\":1", false),
        (",,\"id\":1", false),
        ("}", false),
        ("", true),
    ] {
        assert_eq!(take(text, first, id), (false, 0), "{text}");
    }
    assert_eq!(take(",a_rather_long_nam_\":1", false, long), (false, 0));
    // A name that JSON would have to escape has no quoted form: nothing is taken for it.
    assert_eq!(take(":1", true, ""), (false, 0));
    assert_eq!(take(",:1", false, ""), (false, 0));
}
