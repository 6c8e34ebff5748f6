//! JSON forms, streams of values and documents.

use proptest::prelude::*;

use super::*;
use crate::ingest::read::Form;

fn form_of(text: &str) -> Form {
    let mut forms: Vec<Form> = [1, 3, 1 << 20]
        .iter()
        .map(|size| {
            let input = input("a.json", text.as_bytes());
            ChunkReader::open(&input.source(), 0, &options(*size))
                .unwrap()
                .form()
        })
        .collect();
    forms.dedup();
    assert_eq!(forms.len(), 1, "the form depends on the chunk size");
    forms[0]
}

#[test]
fn forms_are_told_apart_by_reading() {
    let cases = [
        ("{\"k\":1}\n{\"k\":2}\n", Form::JsonLines),
        ("{\"k\":1}{\"k\":2}\n{\"k\":3} {\"k\":4}", Form::JsonLines),
        ("{\"k\":1}", Form::JsonLines),
        ("\n \n{\"k\":1} \r\n", Form::JsonLines),
        ("1", Form::JsonLines),
        ("1 2\n3", Form::JsonLines),
        ("nul", Form::JsonLines),
        (" \n [1]", Form::JsonValues),
        ("{\n\"k\":1}", Form::JsonValues),
        ("{\"k\":\n1}\n", Form::JsonValues),
        ("{\"k\":1} {\n\"k\":2}", Form::JsonValues),
        ("{\"k\":[NaN,\n-Infinity]}", Form::JsonValues),
        // broken first lines of JSON lines
        ("<html>502</html>\n{\"k\":1}\n", Form::JsonLines),
        ("{\"k\":1,}\n{\"k\":1}\n", Form::JsonLines),
        ("{\"k\":2},\n{\"k\":1}\n", Form::JsonLines),
        ("{\"k\":\"cut\n{\"k\":1}\n", Form::JsonLines),
        ("{\"k\":\n{\"k\":1}\n{\"k\":2}\n", Form::JsonLines),
        ("{\"k\":[\n{\"k\":1}\n{\"k\":2}\n", Form::JsonLines),
        ("{\"k\":1,\n{\"k\":1}\n{\"k\":2}\n", Form::JsonLines),
        ("{\n{\"k\":1}\n{\"k\":2}\n", Form::JsonLines),
        ("{\"k\":", Form::JsonLines),
        // broken documents
        ("{\n  \"k\": 1,\n  \"l\": oops\n}\n", Form::JsonValues),
        ("{\n  \"k\": oops\n}\n", Form::JsonValues),
        ("{\n  \"k\": 1,\n", Form::JsonValues),
    ];
    for (text, form) in cases {
        assert_eq!(form_of(text), form, "{text}");
    }
}

#[test]
fn declared_lines_are_lines_whatever_they_look_like() {
    let input = input("a.json", b"[1,\n2]\n");
    let options = with(4, |s| s.format = Some(crate::spec::InputFormat::Jsonl));
    let (chunks, facts) = input.read(&options).unwrap();
    assert_eq!(facts.form, Form::JsonLines);
    assert_eq!(text_of(&chunks), "[1,\n2]\n");
}

#[test]
fn lines_arrive_whole_and_unchanged() {
    let text = "\n  \n{\"k\":1}\r\n\n <html>\n{\"k\":\"中文\"}\n{\"k\":3}";
    for size in SIZES {
        let (chunks, facts) = input("a.jsonl", text.as_bytes())
            .read(&options(size))
            .unwrap();
        assert_eq!(text_of(&chunks), text["\n  \n".len()..]);
        assert_eq!((chunks[0].first_line, chunks[0].offset), (3, 4));
        for chunk in &chunks[..chunks.len() - 1] {
            assert!(bytes_of(chunk).ends_with(b"\n"));
        }
        assert_eq!(facts.bytes, text.len() as u64);
        assert_eq!(facts.content, crate::name::ContentHash::of(text.as_bytes()));
    }
}

#[test]
fn arrays_give_their_elements() {
    let text = "[{\"k\":1},\n{\"k\":2}][{\"k\":3}] {\"k\":4}{\"k\":5}\n[ ] [[1,2],\"],[\\\"\",null,-1.5e3]";
    for size in SIZES {
        let (chunks, facts) = input("a", text.as_bytes()).read(&options(size)).unwrap();
        let values = values_of(&chunks);
        assert_eq!(
            texts(&values),
            [
                "{\"k\":1}",
                "{\"k\":2}",
                "{\"k\":3}",
                "{\"k\":4}",
                "{\"k\":5}",
                "[1,2]",
                "\"],[\\\"\"",
                "null",
                "-1.5e3"
            ]
        );
        assert_eq!(
            values.iter().map(|v| v.1).collect::<Vec<_>>(),
            [1, 2, 2, 2, 2, 3, 3, 3, 3]
        );
        assert!(facts.warnings.is_empty());
    }
}

#[test]
fn a_comma_before_the_bracket_is_accepted_and_reported() {
    for size in SIZES {
        let (chunks, facts) = input("a.json", b"[1,\n2,\n]\n[3 , ]")
            .read(&options(size))
            .unwrap();
        assert_eq!(texts(&values_of(&chunks)), ["1", "2", "3"]);
        assert!(facts.warnings[0].contains("2 array(s)"), "{facts:?}");
    }
}

#[test]
fn an_empty_array_is_no_empty_input() {
    for text in ["[]", " [ ] \n"] {
        for size in SIZES {
            let (chunks, facts) = input("a.json", text.as_bytes())
                .read(&options(size))
                .unwrap();
            assert!(chunks.is_empty());
            assert!(!facts.is_empty);
        }
    }
}

#[test]
fn broken_streams_fail_with_their_line() {
    let cases = [
        ("[\n1,\n2\n3]", 4, "comma is missing"),
        ("[\n{}\n{}]", 3, "comma is missing"),
        ("[1]\n,[2]", 2, "outside an array"),
        ("[1,\n,2]", 2, "without an element"),
        ("[\n,]", 2, "without an element"),
        ("[1]\n<html>", 2, "must begin"),
        ("[1]\n]", 2, "must begin"),
        ("[1,\n{\"k\":[1,2}", 2, "inside a JSON value"),
        ("\n[1,\n2", 2, "inside an array"),
        ("[1,\n\"abc", 2, "inside a JSON value"),
        ("[1]\n[2,", 2, "inside an array"),
        ("[", 1, "inside an array"),
        ("{\n\"k\":1", 1, "inside a JSON value"),
    ];
    for (text, line, message) in cases {
        for size in SIZES {
            let error = failed(&input("a.json", text.as_bytes()), &options(size));
            assert_eq!(
                context(&error, "line"),
                Some(line.to_string().as_str()),
                "{text}: {error}"
            );
            assert!(error.message().contains(message), "{text}: {error}");
        }
    }
}

#[test]
fn any_depth_is_a_value() {
    let deep = format!("{}{}", "[".repeat(300_000), "]".repeat(300_000));
    for text in [format!("[{deep}]"), format!("{{\"k\":\n{deep}}}")] {
        let (chunks, _) = input("a.json", text.as_bytes())
            .read(&options(1000))
            .unwrap();
        assert_eq!(chunks.len(), 1);
    }
    let text = format!("{{\"k\":{deep}}}\n");
    assert_eq!(form_of(&text), Form::JsonLines);
    let open = "[".repeat(300_000);
    failed(&input("a.json", open.as_bytes()), &options(1000));
}

#[test]
fn a_record_larger_than_the_chunk_makes_it_grow() {
    let big = format!("{{\"k\":\"{}\"}}", "x".repeat(5000));
    let text = format!("[{{}},{big},{{}}]");
    let (chunks, _) = input("a.json", text.as_bytes()).read(&options(64)).unwrap();
    assert_eq!(texts(&values_of(&chunks)), ["{}", &big, "{}"]);
}

fn document(text: &str, pointer: &str, size: usize) -> Result<(Vec<Chunk>, InputFacts)> {
    let options = with(size, |s| s.records = Some(pointer.to_owned()));
    input("a.json", text.as_bytes()).read(&options)
}

#[test]
fn documents_give_what_stands_at_the_pointer() {
    let text = "{\n \"run\": {\"items\": [7]},\n \"d/~\": [ {\"items\": [\n  {\"id\": 1583139530139668501.00},\n  {\"k\": \"\\u4e2d\"},\n  null\n ]}, {\"one\": 1} ] }\n";
    for size in SIZES {
        let (chunks, facts) = document(text, "/d~1~0/0/items", size).unwrap();
        let values = values_of(&chunks);
        assert_eq!(
            texts(&values),
            [
                "{\"id\": 1583139530139668501.00}",
                "{\"k\": \"\\u4e2d\"}",
                "null"
            ]
        );
        assert_eq!(values.iter().map(|v| v.1).collect::<Vec<_>>(), [4, 5, 6]);
        for (value, _, offset) in &values {
            let offset = usize::try_from(*offset).unwrap();
            assert!(text[offset..].starts_with(value.as_str()));
        }
        assert_eq!(facts.form, Form::JsonDocument);
        assert_eq!(facts.bytes, text.len() as u64);
        let (chunks, _) = document(text, "/d~1~0/1", size).unwrap();
        assert_eq!(texts(&values_of(&chunks)), ["{\"one\": 1}"]);
    }
    let (chunks, _) = document("[1, 2]", "", 3).unwrap();
    assert_eq!(texts(&values_of(&chunks)), ["1", "2"]);
    let (chunks, facts) = document("{\"a\":[]}", "/a", 3).unwrap();
    assert!(chunks.is_empty() && !facts.is_empty);
    let (_, facts) = document("{\"a\":[1,],\"b\":[2,]}", "/a", 3).unwrap();
    assert!(facts.warnings[0].contains("2 array(s)"));
    let (chunks, _) = document("{\"\\u0061\":{\"\":[5]}}", "/a/", 3).unwrap();
    assert_eq!(texts(&values_of(&chunks)), ["5"]);
}

#[test]
fn documents_without_records_fail_and_name_the_pointer() {
    let text = "{\"a\": {\"b\": null, \"c\": 3, \"l\": [1]}}";
    for pointer in [
        "/x", "/a/b", "/a/c", "/a/l/1", "/a/l/00", "/a/l/-", "/a/b/c", "/a/l/0",
    ] {
        let error = document(text, pointer, 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData);
        assert_eq!(context(&error, "pointer"), Some(pointer));
        assert!(context(&error, "file").is_some());
    }
    for (text, line) in [
        ("{\"a\": [1]}\n{\"a\": [2]}", "2"),
        ("{\"a\":\n[1}", "2"),
        ("{\"a\":\n[1]", "2"),
        ("{\"a\":[1],\n\"a\":[2]}", "2"),
    ] {
        let error = document(text, "/a", 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData);
        assert_eq!(context(&error, "line"), Some(line), "{error}");
    }
}

#[test]
fn empty_inputs_fail_unless_allowed() {
    for text in ["", "\n \r\n\t\n", "\u{feff}"] {
        for name in ["a.jsonl", "a.csv", "a"] {
            for size in [1, 100] {
                let input = input(name, text.as_bytes());
                assert!(failed(&input, &options(size)).message().contains("empty"));
                let (chunks, facts) = input.read(&options(size).with_allow_empty(true)).unwrap();
                assert!(chunks.is_empty() && facts.is_empty);
                assert_eq!(facts.bytes, text.len() as u64);
            }
        }
    }
}

fn json_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.50e3".to_owned()),
        any::<i32>().prop_map(|n| n.to_string()),
        r#"[\]\[{},:"\\a中\n ]{0,6}"#.prop_map(|s| serde_json::to_string(&s).unwrap()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|v| format!("[{}]", v.join(" ,\n"))),
            prop::collection::vec(("[a\"\\\\{]{0,3}", inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(k, v)| format!("{} :{v}", serde_json::to_string(k).unwrap()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Arrays of any values, one after the other, give the same values at every chunk size, and
    /// each value stands where line and offset say.
    #[test]
    fn streams_do_not_depend_on_the_chunk_size(
        arrays in prop::collection::vec(prop::collection::vec(json_value(), 0..5), 1..4),
        blank in "[ \n\t]{0,3}",
        size in 1_usize..64,
    ) {
        let mut text = String::new();
        for array in &arrays {
            let inner = array.join(&format!("{blank},{blank}"));
            text.push_str(&format!("{blank}[{blank}{inner}{blank}]"));
        }
        let expected: Vec<&str> = arrays.iter().flatten().map(String::as_str).collect();
        for size in [size, 1 << 20] {
            let (chunks, facts) = input("a.json", text.as_bytes()).read(&options(size)).unwrap();
            let values = values_of(&chunks);
            prop_assert_eq!(texts(&values), expected.clone());
            for (value, line, offset) in &values {
                let offset = usize::try_from(*offset).unwrap();
                prop_assert!(text[offset..].starts_with(value.as_str()));
                prop_assert_eq!(*line, 1 + text[..offset].matches('\n').count() as u64);
            }
            prop_assert_eq!(facts.content, crate::name::ContentHash::of(text.as_bytes()));
        }
    }

    /// Whatever the bytes: no crash, and the same answer at every chunk size.
    #[test]
    fn rubbish_gets_one_answer(text in r#"[\[\]{},:"\\1a \n]{0,40}"#, size in 1_usize..16) {
        let answer = |size| match input("a.json", text.as_bytes()).read(&options(size)) {
            Ok((chunks, facts)) => {
                // Blanks between two values belong to no chunk.
                let all = chunks.iter().flat_map(bytes_of).copied().filter(|b| !b.is_ascii_whitespace());
                Ok((String::from_utf8(all.collect()).unwrap(), facts))
            }
            Err(e) => Err((e.message().to_owned(), context(&e, "line").map(str::to_owned))),
        };
        prop_assert_eq!(answer(size), answer(1 << 20));
    }
}
