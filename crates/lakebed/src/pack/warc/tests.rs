//! Round trips: what an export wrote comes back as it was; foreign and hostile files give an answer.

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::record::{WarcRecord, read_record};
use super::*;
use crate::error::{ErrorKind, Result};
use crate::pack::content::body_hash;
use crate::pack::part::{PartOptions, PartWriter};
use crate::pack::parts::open_parts;
use crate::pack::reader::{Capture, PackReader};
use crate::pack::samples::{capture, pages, run, terminal, write_part};
use crate::pack::seal::plan_pack;
use crate::pack::source::MemorySource;
use crate::spec::{CaptureRecord, PackProfile, RawText};
use crate::time::Clock;

/// 300 pages with real bodies: those handed, some of them twice, with what a crawl knows of them.
fn real_pages() -> Vec<(CaptureRecord, Vec<u8>)> {
    let shared = std::env::var_os("LAKEBED_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("data/html-books-toscrape");
    assert!(
        folder.is_dir(),
        "the shared data is missing: LAKEBED_SHARED names its folder"
    );
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "html"))
        .collect();
    files.sort();
    (0..300_u32)
        .map(|n| {
            let body = std::fs::read(&files[n as usize % files.len()]).unwrap();
            let mut capture = capture(n, &body);
            if n % 3 == 0 {
                let head = format!("HTTP/2 200\r\ncontent-encoding: gzip\r\ncontent-length: {n}\r\nset-cookie: a=1\r\n\r\n");
                capture.response_head = RawText(head.into_bytes());
                capture.http_version = Some("HTTP/2".to_owned());
                capture.removed_encodings = vec!["gzip".to_owned()];
                capture.wire_len = 9;
            }
            if n % 50 == 0 {
                capture.method = "POST".to_owned();
                capture.request_head = RawText(b"POST /x HTTP/1.1\r\nHost: a\r\n\r\n".to_vec());
                capture.request_body = Some(RawText(vec![0xff, 0, 10]));
            }
            (capture, body)
        })
        .collect()
}

fn pack(all: &[(CaptureRecord, Vec<u8>)]) -> PackReader {
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), all, 20);
    let parts = open_parts(folder.path(), &run()).unwrap();
    let terminals = std::iter::empty();
    let mut plan = plan_pack(&run(), &parts, terminals, PackProfile::Std, folder.path()).unwrap();
    let bytes = plan.write(Vec::new()).unwrap().0;
    PackReader::new(Arc::new(MemorySource::new(bytes)), None).unwrap()
}

fn options(gzip: bool, revisits: bool) -> WarcOptions {
    WarcOptions {
        gzip,
        revisits,
        filename: "a.warc.gz".to_owned(),
    }
}

fn export(reader: &PackReader, options: &WarcOptions) -> (Vec<u8>, WarcExport) {
    let mut out = Vec::new();
    let export = export_warc(reader, &mut out, options).unwrap();
    assert_eq!(export.bytes, out.len() as u64);
    (out, export)
}

/// Imports, seals by the terminals of the import, and replays.
fn imported(warc: &[u8]) -> Result<(Vec<Capture>, WarcImport)> {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = PartWriter::new(
        folder.path(),
        &run(),
        PartOptions::default(),
        &Clock::System,
    )?;
    let options = ImportOptions {
        run: run(),
        kind: "page".parse()?,
        max_body_bytes: 1 << 20,
    };
    let import = import_warc(warc, &mut writer, &options, folder.path())?;
    drop(writer.finish()?);
    let parts = open_parts(folder.path(), &run())?;
    let terminals = import.terminals.clone().into_iter().map(Ok);
    let mut plan = plan_pack(&run(), &parts, terminals, PackProfile::Std, folder.path())?;
    let bytes = plan.write(Vec::new())?.0;
    let reader = PackReader::new(Arc::new(MemorySource::new(bytes)), None)?;
    let captures = reader.replay().collect::<Result<Vec<Capture>>>()?;
    Ok((captures, import))
}

#[test]
fn three_hundred_pages_come_back_as_they_were() {
    let reader = pack(&real_pages());
    let expected: Vec<Capture> = reader.replay().map(|c| c.unwrap()).collect();
    for (gzip, revisits) in [(true, true), (true, false), (false, true)] {
        let (warc, export) = export(&reader, &options(gzip, revisits));
        assert_eq!(export.responses, 300);
        assert_eq!(export.revisits > 50, revisits, "{}", export.revisits);
        let (captures, import) = imported(&warc).unwrap();
        assert_eq!((import.captures, import.revisits), (300, export.revisits));
        for (got, want) in captures.iter().zip(&expected) {
            assert_eq!(got, want);
        }
        assert_eq!(captures.len(), 300);
    }
}

#[test]
fn two_exports_are_equal_and_every_entry_names_its_record() {
    let all = pages(0..40);
    let (reader, other) = (pack(&all), pack(&all));
    let (warc, mut done) = export(&reader, &options(true, true));
    assert_eq!(export(&other, &options(true, true)).0, warc);
    let mut cdxj = Vec::new();
    write_cdxj(&mut done.entries, &mut cdxj).unwrap();
    let text = String::from_utf8(cdxj).unwrap();
    assert_eq!(text.lines().count(), 40);
    assert!(text.lines().is_sorted());
    for line in text.lines() {
        let (key, json) = line.split_once(" {").unwrap();
        let json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
        assert!(key.starts_with("example,books)/catalogue/"));
        let number = |name: &str| json[name].as_str().unwrap().parse::<usize>().unwrap();
        let (offset, length) = (number("offset"), number("length"));
        let member = flate2::read::GzDecoder::new(&warc[offset..offset + length]);
        let record = read_record(&mut std::io::BufReader::new(member))
            .unwrap()
            .unwrap();
        assert_eq!(record.field("WARC-Target-URI"), json["url"].as_str());
        assert_eq!(record.field("WARC-Payload-Digest"), json["digest"].as_str());
    }
}

#[test]
fn a_wacz_has_what_its_package_says() {
    let reader = pack(&pages(0..20));
    let mut out = Cursor::new(Vec::new());
    export_wacz(&reader, &mut out, true).unwrap();
    let mut again = Cursor::new(Vec::new());
    export_wacz(&reader, &mut again, true).unwrap();
    assert_eq!(out.get_ref(), again.get_ref());
    let mut zip = zip::ZipArchive::new(out).unwrap();
    let mut read = |name: &str| {
        let mut bytes = Vec::new();
        std::io::copy(&mut zip.by_name(name).unwrap(), &mut bytes).unwrap();
        bytes
    };
    let package: serde_json::Value = serde_json::from_slice(&read("datapackage.json")).unwrap();
    assert_eq!(package["wacz_version"], "1.1.1");
    let resources = package["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 3);
    for resource in resources {
        let bytes = read(resource["path"].as_str().unwrap());
        let hash = format!("sha256:{}", body_hash(&bytes).unwrap());
        assert_eq!(resource["hash"], hash);
        assert_eq!(resource["bytes"], bytes.len());
    }
    assert_eq!(imported(&read("archive/data.warc.gz")).unwrap().0.len(), 20);
}

/// A response as another program would write it.
fn foreign(url: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let field = |n: &str, v: &str| (n.to_owned(), v.to_owned());
    let record = WarcRecord {
        fields: vec![
            field("WARC-Type", "response"),
            field("WARC-Record-ID", "<urn:uuid:0>"),
            field("WARC-Date", "2026-11-30T01:02:03Z"),
            field("WARC-Target-URI", url),
            field("Content-Type", "application/http; msgtype=response"),
        ],
        block: [head.as_bytes(), body].concat(),
    };
    record.to_bytes(false).unwrap()
}

#[test]
fn foreign_responses_lose_their_encodings() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"packed").unwrap();
    let gzip = gzip.finish().unwrap();
    let chunked = b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n";
    let mut warc = foreign(
        "http://a.example/",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        &gzip,
    );
    warc.extend(foreign("http://a.example/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: Text/HTML; charset=x\r\n\r\n", chunked));
    warc.extend(foreign(
        "http://a.example/b",
        "HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\n\r\n",
        b"no gzip",
    ));
    let (mut captures, import) = imported(&warc).unwrap();
    assert_eq!(import.terminals.len(), 2);
    captures.sort_by_key(|c| (c.capture.url.clone(), c.capture.attempt));
    let seen: Vec<(&[u8], u32, Option<u16>)> = captures
        .iter()
        .map(|c| (&c.body[..], c.capture.attempt, c.capture.status))
        .collect();
    assert_eq!(
        seen,
        [
            (&b"packed"[..], 1, Some(200)),
            (b"abcde", 2, Some(200)),
            (b"no gzip", 1, Some(404)),
        ]
    );
    assert_eq!(captures[0].capture.removed_encodings, ["gzip"]);
    assert_eq!(
        captures[1].capture.content_type.as_deref(),
        Some("text/html")
    );
    assert!(captures[2].capture.removed_encodings.is_empty());
}

#[test]
fn cut_and_hostile_files_are_refused() {
    let warc = foreign("http://a.example/", "HTTP/1.1 200 OK\r\n\r\n", b"body");
    for cut in (1..warc.len() - 4).step_by(3) {
        assert_eq!(
            imported(&warc[..cut]).unwrap_err().kind(),
            ErrorKind::CorruptData,
            "{cut}"
        );
    }
    for bad in [
        &b"hello\r\n"[..],
        b"WARC/1.1\r\nContent-Length: -1\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 2147483000\r\n\r\nx",
        b"WARC/1.1\r\n\r\n",
    ] {
        assert_eq!(imported(bad).unwrap_err().kind(), ErrorKind::CorruptData);
    }
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; (1 << 20) + 1]).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    let bomb = foreign("http://a.example/", head, &bomb.finish().unwrap());
    assert_eq!(
        imported(&bomb).unwrap_err().kind(),
        ErrorKind::LimitExceeded
    );
}

#[test]
fn terminals_name_the_last_attempt() {
    assert_eq!(terminal(1).attempts, 1);
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let warc = [
        foreign("http://a.example/", head, b"1"),
        foreign("http://a.example/", head, b"2"),
    ]
    .concat();
    let (captures, import) = imported(&warc).unwrap();
    assert_eq!(captures.len(), 2);
    let last = captures.iter().find(|c| c.capture.attempt == 2).unwrap();
    assert_eq!(
        import.terminals[0].capture.as_ref(),
        Some(&last.capture.capture_id)
    );
}
