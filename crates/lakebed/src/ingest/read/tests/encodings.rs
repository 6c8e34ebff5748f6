//! Byte order marks, declared encodings, and the offsets of what does not decode.

use encoding_rs::Encoding;

use super::*;

const LABELS: [&str; 9] = [
    "gbk",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-jp",
    "euc-kr",
    "windows-1252",
    "utf-16le",
    "utf-16be",
];

fn encode(label: &str, text: &str) -> Vec<u8> {
    match label {
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => {
            let (bytes, _, lossy) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
            assert!(!lossy, "{label} cannot hold the text");
            bytes.into_owned()
        }
    }
}

fn sample(label: &str) -> &'static str {
    match label {
        "windows-1252" => "{\"k\":\"na\u{ef}ve \u{20ac}\"}\n{\"k\":\"\u{e9}\"}\n",
        "shift_jis" | "euc-jp" => "{\"k\":\"漢字ひらがな\"}\n{\"k\":\"表\"}\n",
        "euc-kr" => "{\"k\":\"한국어\"}\n{\"k\":\"똠\"}\n",
        "big5" => "{\"k\":\"繁體中文許功蓋\"}\n{\"k\":\"一\"}\n",
        "gbk" => "{\"k\":\"标题中文\"}\n{\"k\":\"镕\"}\n",
        _ => "{\"k\":\"标题😀𠮷镕\"}\n{\"k\":\"ع\"}\n",
    }
}

#[test]
fn every_encoding_decodes_with_borders_anywhere() {
    for label in LABELS {
        let bytes = encode(label, sample(label));
        for size in [1, 2, 3, 4, 5, 1 << 20] {
            let input = input("a.jsonl", &bytes);
            let options = with(size, |s| s.encoding = Some(label.to_owned()));
            let (chunks, facts) = input.read(&options).unwrap();
            assert_eq!(text_of(&chunks), sample(label), "{label} {size}");
            assert_eq!(facts.bytes, bytes.len() as u64);
            assert_eq!(facts.content, crate::name::ContentHash::of(&bytes));
        }
    }
}

#[test]
fn a_mark_beats_the_declaration() {
    let text = "a,b\n标,题\n";
    for (mark, label) in [
        (&[0xff_u8, 0xfe][..], "utf-16le"),
        (&[0xfe, 0xff], "utf-16be"),
        (&[0xef, 0xbb, 0xbf], "utf-8"),
    ] {
        let mut bytes = mark.to_vec();
        bytes.extend(encode(label, text));
        for size in [1, 3, 1000] {
            let options = with(size, |s| s.encoding = Some("gbk".into()));
            let (chunks, facts) = input("a.csv", &bytes).read(&options).unwrap();
            assert_eq!(text_of(&chunks), "标,题\n");
            assert_eq!(facts.bytes, bytes.len() as u64);
            let offset = if label == "utf-8" { 7 } else { 4 };
            assert_eq!(chunks[0].offset, offset, "{label}");
        }
    }
    for bytes in [
        &[0xff, 0xfe, 0, 0, b'a', 0, 0, 0][..],
        &[0, 0, 0xfe, 0xff, 0, 0, 0, b'a'],
    ] {
        assert!(
            failed(&input("a.csv", bytes), &options(9))
                .message()
                .contains("UTF-32")
        );
    }
}

#[test]
fn what_does_not_decode_fails_with_its_offset() {
    let cases: [(&str, &[u8]); 7] = [
        ("gbk", &[0xff]),
        ("gbk", &[0x81, 0xff]),
        ("gb18030", &[0x81, 0x30, 0xff]),
        ("big5", &[0xff]),
        ("shift_jis", &[0xa0]),
        ("euc-kr", &[0xff]),
        ("utf-16le", &[0x00, 0xd8, b'a', 0]),
    ];
    for (label, bad) in cases {
        let prefix = encode(label, sample(label));
        let mut bytes = prefix.clone();
        bytes.extend_from_slice(bad);
        bytes.extend(encode(label, "{\"k\":1}\n"));
        for size in [1, 2, 3, 4, 5, 1 << 20] {
            let options = with(size, |s| s.encoding = Some(label.to_owned()));
            let error = failed(&input("a.jsonl", &bytes), &options);
            assert_eq!(
                context(&error, "offset"),
                Some(prefix.len().to_string().as_str()),
                "{label} {bad:x?} {size}: {error}"
            );
        }
    }
}

#[test]
fn an_end_inside_a_character_fails() {
    for label in ["gbk", "big5", "shift_jis", "euc-kr", "utf-16le", "gb18030"] {
        let mut bytes = encode(label, "{\"k\":\"一\"}\n");
        let end = bytes.len().to_string();
        bytes.push(if label == "utf-16le" { b'a' } else { 0x88 });
        for size in [1, 2, 1 << 20] {
            let options = with(size, |s| s.encoding = Some(label.to_owned()));
            let error = failed(&input("a.jsonl", &bytes), &options);
            assert_eq!(context(&error, "offset"), Some(end.as_str()), "{label}");
        }
    }
}

#[test]
fn labels_are_those_of_the_web() {
    let spec = |label: &str| ReadSpec {
        encoding: Some(label.into()),
        ..ReadSpec::default()
    };
    for label in ["GB2312", "latin1", "iso-8859-1", "utf8", "x-sjis"] {
        ReadOptions::new(&spec(label)).unwrap();
    }
    for label in ["utf-7", "hz-gb-2312", "", "klingon"] {
        let error = ReadOptions::new(&spec(label)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!error.hints().is_empty());
    }
    let options = with(9, |s| s.encoding = Some("iso-8859-1".into()));
    let (chunks, _) = input("a.csv", b"a\n\x80\n").read(&options).unwrap();
    assert_eq!(text_of(&chunks), "€\n");
}
