//! Raw day packs from the command line: a WARC in, a pack in the lake, documents out.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::lake::TestLake;

const DAY: &str = "2026-11-29";

/// A WARC as another program writes it, of `n` pages.
fn warc(n: u32) -> String {
    let mut text = String::new();
    for page in 0..n {
        let body = format!("<html>book {page}</html>");
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
        write!(
            text,
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{page}>\r\n\
             WARC-Date: 2026-11-29T01:02:{page:02}Z\r\nWARC-Target-URI: https://books.example/{page}\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
        .unwrap();
    }
    text
}

fn import(lake: &TestLake, pages: u32, parts: &str, terminals: &str) {
    let name = format!("{terminals}.warc");
    lake.file(&name, warc(pages));
    let run = ["--source", "books", "--date", DAY];
    let files = ["--parts", parts, "--terminals", terminals];
    let args = [&["pack", "import", &name][..], &run, &files].concat();
    lake.run(&args).ok().prints(&["capture"]);
}

fn seal(lake: &TestLake, parts: &str, terminals: &str, more: &[&str]) -> crate::lake::Run {
    let run = ["--source", "books", "--date", DAY];
    let files = ["--parts", parts, "--terminals", terminals];
    let args = [
        &["pack", "seal", "--format", "json"][..],
        &run,
        &files,
        more,
    ]
    .concat();
    lake.run(&args)
}

/// A lake with a pack of 20 pages, and the pack's path.
fn sealed() -> (TestLake, PathBuf) {
    let lake = TestLake::new();
    import(&lake, 20, "parts", "terminals.jsonl");
    let answer = seal(&lake, "parts", "terminals.jsonl", &["--complete"])
        .ok()
        .json();
    assert_eq!(answer["captures"], 20);
    assert_eq!(answer["complete"], true);
    let pack = lake.lake().join(answer["pack"].as_str().unwrap());
    (lake, pack)
}

#[test]
fn a_warc_becomes_a_pack_of_the_lake() {
    let (lake, pack) = sealed();
    lake.assert_clean();
    lake.run(&["audit", "--deep"]).ok();
    let pack = pack.to_str().unwrap();
    lake.run(&["pack", "verify", pack])
        .ok()
        .prints(&["whole: 20 captures"]);
    let listed = lake
        .run(&["pack", "list", pack, "--format", "json"])
        .ok()
        .json();
    let captures = listed["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 20);
    for capture in captures {
        let page = capture["url"].as_str().unwrap().rsplit('/').next().unwrap();
        for key in ["capture_id", "request_key"] {
            let body = lake
                .run(&["pack", "cat", pack, capture[key].as_str().unwrap()])
                .ok();
            assert_eq!(body.stdout, format!("<html>book {page}</html>"));
        }
    }
    lake.run(&["pack", "cat", pack, &"0".repeat(32)]).code(2);
    let partitions = lake.run(&["partitions", "--format", "json"]).ok();
    assert!(
        partitions.stdout.contains("rawpack"),
        "{}",
        partitions.stdout
    );
}

#[test]
fn a_second_seal_is_nothing_or_a_refusal() {
    let (lake, _) = sealed();
    let again = seal(&lake, "parts", "terminals.jsonl", &[]).ok().json();
    assert_eq!(again["already_there"], true);
    import(&lake, 21, "more", "more.jsonl");
    seal(&lake, "more", "more.jsonl", &["--late"]).code(1);
    lake.file(
        "wrong.jsonl",
        std::fs::read_to_string(lake.path_text("inbox/more.jsonl")).unwrap(),
    );
    let missing = seal(&lake, "parts", "wrong.jsonl", &[]).code(1);
    assert!(
        missing.stderr.contains("books.example/20"),
        "{}",
        missing.stderr
    );
    lake.assert_clean();
}

#[test]
fn a_pack_goes_out_as_a_web_archive_and_comes_back() {
    let (lake, pack) = sealed();
    let pack = pack.to_str().unwrap();
    lake.run(&[
        "pack",
        "export",
        pack,
        "--warc",
        "a.warc.gz",
        "--cdxj",
        "a.cdxj",
    ])
    .ok();
    lake.run(&["pack", "export", pack, "--wacz", "a.wacz"]).ok();
    lake.run(&["pack", "export", pack, "--wacz", "a.wacz"])
        .code(1);
    lake.run(&["pack", "export", pack]).code(2);
    let cdxj = std::fs::read_to_string(lake.path_text("inbox/a.cdxj")).unwrap();
    assert_eq!(cdxj.lines().count(), 20);
    let args = [
        "pack",
        "import",
        "a.warc.gz",
        "--source",
        "books",
        "--date",
        DAY,
        "--parts",
        "back",
        "--terminals",
        "back.jsonl",
    ];
    lake.run(&args).ok();
    let again = seal(&lake, "back", "back.jsonl", &[]).ok().json();
    assert_eq!(
        again["already_there"], true,
        "the same captures are the same content"
    );
}

#[test]
fn damage_is_told_and_what_is_whole_is_saved() {
    let (lake, pack) = sealed();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    let pack = pack.to_str().unwrap();
    lake.run(&["pack", "verify", pack])
        .code(1)
        .prints(&["not whole"]);
    let audit = lake.run(&["audit", "--deep"]).code(1);
    assert!(audit.stdout.contains("FIL-3"), "{}", audit.stdout);
    lake.run(&["pack", "repair", pack, "--output-file", "saved.tar.zst"])
        .code(1);
    let saved = lake.run(&["pack", "verify", "saved.tar.zst"]).code(1);
    assert!(
        saved.stdout.contains("0 damaged places"),
        "{}",
        saved.stdout
    );
}

#[test]
fn an_erased_document_is_gone() {
    let (lake, pack) = sealed();
    let pack = pack.to_str().unwrap();
    let listed = lake
        .run(&["pack", "list", pack, "--format", "json"])
        .ok()
        .json();
    let id = listed["captures"][3]["capture_id"].as_str().unwrap();
    lake.run(&["pack", "erase", pack, id, "--output-file", "less.tar.zst"])
        .ok();
    lake.run(&["pack", "verify", "less.tar.zst"]).ok();
    lake.run(&["pack", "cat", "less.tar.zst", id]).code(2);
    let left = lake.run(&["pack", "list", "less.tar.zst"]).ok();
    assert!(left.stdout.contains("(erased)"), "{}", left.stdout);
}
