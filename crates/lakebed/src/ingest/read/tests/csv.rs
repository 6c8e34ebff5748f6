//! CSV: headers and the ends of records.

use proptest::prelude::*;

use super::*;
use crate::ingest::read::Form;
use crate::ingest::read::csv::split_cells;

fn header_of(chunks: &[Chunk]) -> &crate::ingest::chunk::CsvHeader {
    match &chunks[0].body {
        ChunkBody::Csv { header, .. } => header,
        ChunkBody::Lines(_) | ChunkBody::Values(_) | ChunkBody::Batch(_) => panic!("CSV expected"),
    }
}

#[test]
fn the_header_is_the_first_record() {
    let text = "\n\r\n\"a\"\"x\",\"b\nc\", d ,\r\n1,2,3,4\r\n\n5,6,7,8";
    for size in SIZES {
        let (chunks, facts) = input("a.csv", text.as_bytes())
            .read(&options(size))
            .unwrap();
        let header = header_of(&chunks);
        assert_eq!(header.names, ["a\"x", "b\nc", " d ", ""]);
        assert!(header.from_file);
        assert_eq!(text_of(&chunks), "1,2,3,4\r\n\n5,6,7,8");
        assert_eq!(chunks[0].first_line, 5);
        assert_eq!(chunks[0].offset, text.find("1,2").unwrap() as u64);
        assert_eq!(facts.form, Form::Csv);
    }
}

#[test]
fn a_file_without_line_feeds_is_not_a_header_alone() {
    let error = failed(&input("a.csv", b"a,b\r1,2\r3,4\r"), &options(100));
    assert!(
        error.hints()[0].contains("tr '\\r' '\\n'"),
        "{:?}",
        error.hints()
    );
    input("a.csv", b"a,\"b\rc\"\r\n1,2\r\n")
        .read(&options(100))
        .unwrap();
    let (_, facts) = input("a.csv", b"a\0,\0b\0\n\0")
        .read(&options(100))
        .unwrap();
    assert!(facts.warnings[0].contains("utf-16le"));
}

#[test]
fn a_declared_header_leaves_the_first_line_a_record() {
    let options = with(3, |s| s.header = Some(vec!["x".into(), "y".into()]));
    let (chunks, _) = input("a.csv", b"1,2\n3,4\n").read(&options).unwrap();
    assert!(!header_of(&chunks).from_file);
    assert_eq!(text_of(&chunks), "1,2\n3,4\n");
}

#[test]
fn a_header_alone_is_no_empty_input() {
    for text in ["a,b", "a,b\n", "a,b\r\n"] {
        for size in SIZES {
            let (chunks, facts) = input("a.csv", text.as_bytes())
                .read(&options(size))
                .unwrap();
            assert!(chunks.is_empty() && !facts.is_empty, "{text:?}");
        }
    }
}

#[test]
fn one_name_twice_fails_and_names_the_columns() {
    let error = failed(&input("a.csv", b"\nid,b,id\n1,2,3\n"), &options(100));
    assert!(error.message().contains("`id` twice, in columns 1 and 3"));
    assert_eq!(context(&error, "line"), Some("2"));
    failed(&input("a.csv", b"a,,\n"), &options(100));
    input("a.csv", b"a,\n1,2\n").read(&options(100)).unwrap();
}

#[test]
fn a_header_of_one_cell_hints_at_the_delimiter() {
    let (_, facts) = input("a.csv", b"a;b\n1;2\n").read(&options(100)).unwrap();
    assert!(facts.warnings[0].contains("--delimiter ';'"));
    let (_, facts) = input("a.csv", b"a\tb\n1\t2\n").read(&options(100)).unwrap();
    assert!(facts.warnings[0].contains("--delimiter '\\t'"));
    let options = with(100, |s| s.delimiter = Some(";".into()));
    let (chunks, facts) = input("a.csv", b"a;b\n1;2\n").read(&options).unwrap();
    assert!(facts.warnings.is_empty());
    assert_eq!(header_of(&chunks).names, ["a", "b"]);
    let (chunks, facts) = input("a.tsv", b"a\tb,c\n1\t2\n")
        .read(&super::options(100))
        .unwrap();
    assert_eq!(header_of(&chunks).names, ["a", "b,c"]);
    assert!(facts.warnings.is_empty());
}

#[test]
fn an_unclosed_quote_fails_with_the_line_it_opened_on() {
    for size in SIZES {
        for text in [
            "a,b\n1,\"x\ny\"\n2,\"z\n3,4\n5,6",
            "a\n\"x\n\"\n\"z",
            "a\n\"x\n\"\n\"\"\"\n",
        ] {
            let error = failed(&input("a.csv", text.as_bytes()), &options(size));
            assert_eq!(context(&error, "line"), Some("4"), "{text:?} {error}");
        }
        let error = failed(&input("a.csv", b"a,\"b\nc\n"), &options(size));
        assert_eq!(context(&error, "line"), Some("1"));
    }
}

#[test]
fn the_first_byte_tells_nothing_about_csv() {
    let error = input("a.txt", b"a,b\n1,2\n").read(&options(9)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let options = with(9, |s| s.delimiter = Some(",".into()));
    let (_, facts) = input("a.txt", b"a,b\n1,2\n").read(&options).unwrap();
    assert_eq!(facts.form, Form::Csv);
}

#[test]
fn header_bytes_that_are_no_text_fail_with_their_offset() {
    let error = failed(
        &input("a.csv", b"\xef\xbb\xbf\na,\xb1\xea\n1,2\n"),
        &options(100),
    );
    assert_eq!(context(&error, "offset"), Some("6"));
    assert_eq!(context(&error, "line"), Some("2"));
}

/// Ends of records, by the plainest reading: a quote opens at the start of a cell only.
fn reference_ends(text: &[u8]) -> Option<Vec<usize>> {
    let (mut ends, mut quoted, mut start, mut i) = (vec![0], false, true, 0);
    while i < text.len() {
        let byte = text[i];
        i += 1;
        if quoted {
            if byte == b'"' && text.get(i) == Some(&b'"') {
                i += 1;
            } else if byte == b'"' {
                quoted = false;
            }
            continue;
        }
        quoted = start && byte == b'"';
        start = byte == b',' || byte == b'\n';
        if byte == b'\n' {
            ends.push(i);
        }
    }
    (!quoted).then_some(ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every cut lies at the end of a record, and nothing is lost.
    #[test]
    fn records_are_never_cut(body in "[a,\"\n\r中]{0,60}", size in 1_usize..64) {
        let text = format!("h,i\n{body}");
        let ends = reference_ends(body.as_bytes());
        for size in [size, 1, 1 << 20] {
            match (input("a.csv", text.as_bytes()).read(&options(size)), &ends) {
                (Ok((chunks, _)), Some(ends)) => {
                    prop_assert_eq!(text_of(&chunks), body.clone());
                    for chunk in &chunks {
                        prop_assert!(ends.contains(&(usize::try_from(chunk.offset).unwrap() - 4)));
                    }
                    if size == 1 {
                        // as many chunks as records, but for the last without a line break
                        let whole = ends.len() - 1;
                        prop_assert!(chunks.len() == whole || chunks.len() == whole + 1);
                    }
                }
                (Err(e), None) => prop_assert!(e.message().contains("not closed"), "{}", e),
                (Ok(_), None) => prop_assert!(false, "an open quote was not seen"),
                (Err(e), Some(_)) => prop_assert!(false, "{}", e),
            }
        }
    }

    /// Cells written with quotes come back.
    #[test]
    fn cells_round_trip(cells in prop::collection::vec("[a,\"\n\r中 ]{0,6}", 1..5)) {
        let quoted: Vec<String> = cells.iter().map(|c| format!("\"{}\"", c.replace('"', "\"\""))).collect();
        let back = split_cells(quoted.join(",").as_bytes(), b',', b'"');
        let back: Vec<Vec<u8>> = back.into_iter().map(|c| c.text).collect();
        prop_assert_eq!(back, cells.iter().map(|c| c.as_bytes().to_vec()).collect::<Vec<_>>());
    }
}
