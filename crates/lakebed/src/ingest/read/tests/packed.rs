//! gzip, zstd and zip, whole, damaged and mislabelled.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use zip::write::SimpleFileOptions;

use super::*;
use crate::ingest::read::hash_input;

const TEXT: &[u8] = b"{\"k\":1}\n{\"k\":2}\n{\"k\":\"\xe4\xb8\xad\"}\n";

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        if name.ends_with('/') {
            writer
                .add_directory(*name, SimpleFileOptions::default())
                .unwrap();
            continue;
        }
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn all_members_and_frames_are_read_and_the_identity_is_that_of_the_plain_bytes() {
    let split = TEXT.len() / 2;
    let (left, right) = (&TEXT[..split], &TEXT[split..]);
    let skippable = [
        &[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..],
        &zst(TEXT),
    ]
    .concat();
    for (name, bytes) in [
        ("a.jsonl", TEXT.to_vec()),
        ("a.jsonl.gz", gz(TEXT)),
        ("a.jsonl.gz", [gz(left), gz(b""), gz(right)].concat()),
        ("a.jsonl.zst", zst(TEXT)),
        ("a.jsonl.zst", [zst(left), zst(right)].concat()),
        ("a.jsonl.zst", skippable),
    ] {
        let input = input(name, &bytes);
        for size in [1, 16, 1000] {
            let (chunks, facts) = input.read(&options(size)).unwrap();
            assert_eq!(text_of(&chunks).as_bytes(), TEXT, "{name}");
            assert_eq!(facts.content, crate::name::ContentHash::of(TEXT));
            assert_eq!(facts.bytes, TEXT.len() as u64);
            assert!(facts.warnings.is_empty(), "{facts:?}");
        }
        let hash = hash_input(&input.source()).unwrap();
        assert_eq!(
            hash,
            (crate::name::ContentHash::of(TEXT), TEXT.len() as u64)
        );
    }
}

#[test]
fn progress_ends_at_the_total() {
    for (name, bytes) in [
        ("a.jsonl", TEXT.to_vec()),
        ("a.jsonl.gz", gz(TEXT)),
        ("a.jsonl.zst", zst(TEXT)),
        ("a.zip", zip_of(&[("a.jsonl", TEXT)])),
    ] {
        let source = input(name, &bytes);
        let mut reader = ChunkReader::open(&source.source(), 0, &options(4)).unwrap();
        while reader.next_chunk().unwrap().is_some() {}
        assert_eq!(
            Some(reader.bytes_done()),
            source.source().bytes_total(),
            "{name}"
        );
        assert!(reader.finish().is_ok());
    }
}

#[test]
fn facts_are_known_at_the_end_only() {
    let source = input("a.jsonl", TEXT);
    let reader = ChunkReader::open(&source.source(), 0, &options(4)).unwrap();
    assert_eq!(reader.finish().unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_cut_at_any_byte_is_a_failed_file() {
    for (name, bytes) in [("a.jsonl.gz", gz(TEXT)), ("a.jsonl.zst", zst(TEXT))] {
        for end in 0..bytes.len() {
            let input = input(name, &bytes[..end]);
            failed(&input, &options(1000));
            if end > 0 {
                hash_input(&input.source()).unwrap_err();
            }
        }
    }
    // an end between two members cannot be told from a file of one member: all else can
    let (first, both) = (gz(TEXT).len(), [gz(TEXT), gz(TEXT)].concat());
    for end in 0..both.len() {
        let result = input("a.jsonl.gz", &both[..end]).read(&options(1000));
        assert_eq!(result.is_ok(), end == first, "{end}");
    }
}

#[test]
fn a_flipped_byte_is_never_read_as_other_rows() {
    for (name, bytes) in [
        ("a.jsonl.gz", gz(TEXT)),
        ("a.jsonl.zst", zst(TEXT)),
        ("a.zip", zip_of(&[("a.jsonl", TEXT)])),
    ] {
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let input = input(name, &bytes);
            let Ok(sources) = resolve_inputs(&[input.path.display().to_string()]) else {
                continue;
            };
            if let Ok((chunks, facts)) = read(&sources[0], &options(1000)) {
                let is_text = facts.content == crate::name::ContentHash::of(TEXT);
                let is_packed = facts.content == crate::name::ContentHash::of(&bytes);
                assert!(
                    is_text || (is_packed && at < 4),
                    "{name} at {at}: {chunks:?}"
                );
            }
        }
    }
}

#[test]
fn what_follows_the_last_member_is_refused() {
    for (name, bytes) in [("a.jsonl.gz", gz(TEXT)), ("a.jsonl.zst", zst(TEXT))] {
        for tail in [&b"x"[..], b"\0\0\0\0", b"{\"k\":4}\n"] {
            failed(&input(name, &[&bytes, tail].concat()), &options(1000));
        }
    }
}

#[test]
fn the_content_decides_and_the_difference_is_reported() {
    for (name, bytes) in [
        ("a.jsonl.gz", TEXT.to_vec()),
        ("a.jsonl", gz(TEXT)),
        ("a.jsonl.gz", zst(TEXT)),
        ("a.jsonl", zip_of(&[("m.jsonl", TEXT)])),
    ] {
        let (chunks, facts) = input(name, &bytes).read(&options(1000)).unwrap();
        assert_eq!(text_of(&chunks).as_bytes(), TEXT);
        assert_eq!(facts.warnings.len(), 1, "{name} {facts:?}");
    }
}

#[test]
fn packed_twice_or_otherwise_is_refused_by_name() {
    for (bytes, word) in [
        (gz(&gz(TEXT)), "gzip"),
        (zst(&gz(TEXT)), "gzip"),
        (gz(&zip_of(&[("a", TEXT)])), "zip"),
        (b"BZh91AY&SY\x00\x00".to_vec(), "bzip2"),
        (b"\xfd7zXZ\x00\x00\x00".to_vec(), "xz"),
    ] {
        let error = failed(&input("a.jsonl", &bytes), &options(1000));
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn zip_members_are_inputs_in_name_order() {
    let packed = gz(b"{\"k\":9}\n");
    let bytes = zip_of(&[
        ("z.csv", b"k\n1\n"),
        ("d/", b""),
        ("d/b.jsonl", TEXT),
        ("a.jsonl.gz", &packed),
        ("__MACOSX/._z.csv", b"\x00\x05"),
    ]);
    let input = input("all.zip", &bytes);
    let sources = input.sources();
    let names: Vec<&str> = sources.iter().map(|s| s.base_name()).collect();
    assert_eq!(
        names,
        ["all.zip!a.jsonl.gz", "all.zip!d/b.jsonl", "all.zip!z.csv"]
    );
    let display = format!("{}!z.csv", input.path.display());
    assert_eq!(sources[2].display_name(), display);
    let text = |i: usize| text_of(&read(&sources[i], &options(5)).unwrap().0);
    assert_eq!(text(0), "{\"k\":9}\n");
    assert_eq!(text(1).as_bytes(), TEXT);
    assert_eq!(text(2), "1\n");
    let (_, facts) = read(&sources[0], &options(5)).unwrap();
    assert!(facts.warnings[0].contains("__MACOSX"));
    assert_eq!(
        hash_input(&sources[1]).unwrap().0,
        crate::name::ContentHash::of(TEXT)
    );
}

#[test]
fn a_zip_cut_at_any_byte_fails() {
    let bytes = zip_of(&[("a.jsonl", TEXT)]);
    for end in 1..bytes.len() {
        let input = input("a.zip", &bytes[..end]);
        let args = [input.path.display().to_string()];
        let result = resolve_inputs(&args).and_then(|s| read(&s[0], &options(100)));
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{end}: {error}");
        assert_eq!(context(&error, "file"), Some(args[0].as_str()));
    }
    let none = input("a.zip", &zip_of(&[("d/", b"")]));
    let error = resolve_inputs(&[none.path.display().to_string()]).unwrap_err();
    assert!(error.message().contains("no file"));
}

#[test]
fn two_members_of_one_name_are_not_one() {
    let mut bytes = zip_of(&[("a.csv", b"k\n1\n"), ("b.csv", b"k\n2\n")]);
    for at in 0..bytes.len() - 5 {
        if &bytes[at..at + 5] == b"b.csv" {
            bytes[at] = b'a';
        }
    }
    let input = input("a.zip", &bytes);
    let args = [input.path.display().to_string()];
    let error = resolve_inputs(&args).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever the bytes and the name: an answer, never a crash.
    #[test]
    fn any_bytes_get_an_answer(
        magic in prop::sample::select(vec![&b""[..], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06", b"PAR1", b"\xff\xfe", b"\xef\xbb\xbf", b"[", b"{"]),
        tail in prop::collection::vec(any::<u8>(), 0..80),
        name in prop::sample::select(vec!["a", "a.csv", "a.jsonl", "a.gz", "a.zst", "a.zip", "a.parquet"]),
        size in prop::sample::select(vec![1_usize, 7, 1 << 20]),
        records in prop::option::of(Just("/a".to_owned())),
    ) {
        let input = input(name, &[magic, tail.as_slice()].concat());
        let options = with(size, |s| s.records = records);
        if let Ok(sources) = resolve_inputs(&[input.path.display().to_string()]) {
            for source in sources {
                if let Err(e) = read(&source, &options) {
                    prop_assert!(matches!(e.kind(), ErrorKind::CorruptData | ErrorKind::InvalidInput), "{}", e);
                }
            }
        }
    }
}
