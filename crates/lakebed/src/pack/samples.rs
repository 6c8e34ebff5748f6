//! Captures, parts and packs for tests.

use std::path::Path;

use crate::name::{CaptureId, RequestKey};
use crate::pack::content::body_hash;
use crate::pack::digest::ContentDigest;
use crate::pack::encode::PackEncoder;
use crate::pack::part::{PartOptions, PartWriter, Receipt};
use crate::pack::parts::open_parts;
use crate::pack::seal::{PackPlan, plan_pack};
use crate::spec::{
    CaptureRecord, PackLine, PackProfile, RawText, RunKey, ShortTerminal, TerminalLine,
    TerminalRecord, TerminalState, Truncated, capture_id,
};
use crate::time::{Clock, Instant};

pub(super) fn run() -> RunKey {
    RunKey {
        source: "books".parse().unwrap(),
        date: "2026-11-30".parse().unwrap(),
        run: "day".parse().unwrap(),
    }
}

pub(super) fn key(n: u32) -> RequestKey {
    RequestKey::of(&n.to_le_bytes())
}

pub(super) fn id(n: u32) -> CaptureId {
    capture_id(&run(), &key(n), 1, 0)
}

/// The `n`-th page with this body.
pub(super) fn capture(n: u32, body: &[u8]) -> CaptureRecord {
    CaptureRecord {
        capture_id: id(n),
        request_key: key(n),
        attempt: 1,
        hop: 0,
        kind: if n.is_multiple_of(10) { "list" } else { "detail" }.parse().unwrap(),
        method: "GET".to_owned(),
        url: format!("https://www.books.example/catalogue/{}?page={n}", n % 7),
        fetched_at: Instant::from_micros(1_764_500_000_000_000 + i64::from(n) * 1_000_003),
        status: Some(200),
        http_version: Some("HTTP/1.1".to_owned()),
        remote_ip: Some("192.0.2.7".to_owned()),
        request_head: RawText(format!("GET /catalogue/{n} HTTP/1.1\r\nHost: books.example\r\n\r\n").into_bytes()),
        request_body: None,
        response_head: RawText(
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nX-Request: {n}\r\n\r\n", body.len())
                .into_bytes(),
        ),
        content_type: Some("text/html".to_owned()),
        charset: None,
        removed_encodings: Vec::new(),
        wire_len: body.len() as u64,
        body_len: body.len() as u64,
        body_sha256: Some(body_hash(body).unwrap()),
        truncated: Truncated::None,
        error: None,
    }
}

/// The `n`-th attempt that got no response.
pub(super) fn failure(n: u32) -> CaptureRecord {
    CaptureRecord {
        status: None,
        http_version: None,
        response_head: RawText::default(),
        content_type: None,
        body_sha256: None,
        error: Some("connection reset".to_owned()),
        ..capture(n, b"")
    }
}

/// A body of some hundred bytes to some kilobytes; every eleventh is that of page 0, every thirteenth empty.
pub(super) fn body(n: u32) -> Vec<u8> {
    if n.is_multiple_of(13) {
        return Vec::new();
    }
    let n = if n.is_multiple_of(11) { 0 } else { n };
    let mut text = format!("<html><title>Book {n}</title>").into_bytes();
    let mut state = n;
    for _ in 0..(n % 50) * 20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend(format!("<p>{}</p>", state >> 20).into_bytes());
    }
    text
}

pub(super) fn terminal(n: u32) -> TerminalRecord {
    TerminalRecord {
        request_key: key(n),
        stage: "detail".parse().unwrap(),
        method: "GET".to_owned(),
        url: capture(n, b"").url,
        state: TerminalState::Done,
        class: None,
        attempts: 1,
        capture: Some(id(n)),
        answer: Default::default(),
    }
}

/// Writes these captures with one writer, a flush after every `flush_every`.
pub(super) fn write_part(
    folder: &Path,
    captures: &[(CaptureRecord, Vec<u8>)],
    flush_every: usize,
) -> Vec<Receipt> {
    let options = PartOptions::default();
    let mut writer = PartWriter::new(folder, &run(), options, &Clock::System).unwrap();
    let mut receipts = Vec::new();
    for (n, (capture, body)) in captures.iter().enumerate() {
        receipts.extend(
            writer
                .append(capture, body, Instant::from_micros(0))
                .unwrap(),
        );
        if (n + 1) % flush_every == 0 {
            receipts.extend(writer.flush().unwrap());
        }
    }
    receipts.extend(writer.finish().unwrap());
    receipts
}

pub(super) fn pages(range: std::ops::Range<u32>) -> Vec<(CaptureRecord, Vec<u8>)> {
    range.map(|n| (capture(n, &body(n)), body(n))).collect()
}

/// The plan over all parts of a folder, each page of the range being done.
pub(super) fn plan(folder: &Path, range: std::ops::Range<u32>) -> PackPlan {
    let parts = open_parts(folder, &run()).unwrap();
    let terminals = range.map(|n| Ok(terminal(n)));
    plan_pack(&run(), &parts, terminals, PackProfile::Std, folder).unwrap()
}

/// The bytes of a pack of these pages in frames of about 2 KiB.
pub(super) fn small_frames(range: std::ops::Range<u32>) -> Vec<u8> {
    let mut pack = PackEncoder::begin(Vec::new(), &run(), PackProfile::Std)
        .unwrap()
        .close_at(2048);
    let mut digest = ContentDigest::default();
    let mut terminals: Vec<TerminalRecord> = range.clone().map(terminal).collect();
    terminals.sort_by(|a, b| a.request_key.cmp(&b.request_key));
    let mut lines = Vec::new();
    for terminal in &terminals {
        let line = TerminalLine::Full(terminal.clone()).to_bytes().unwrap();
        digest.add_terminal(&terminal.request_key, &line);
        // As a seal writes them: short where the capture says the same.
        let named = pages(range.clone()).into_iter().map(|(capture, _)| capture);
        let says_all = named
            .filter(|c| c.request_key == terminal.request_key)
            .all(|c| c.kind == terminal.stage);
        let short = ShortTerminal {
            request_key: terminal.request_key.clone(),
            attempts: 1,
            hop: 0,
        };
        lines.push(match says_all {
            true => TerminalLine::Short(short).to_bytes().unwrap(),
            false => line,
        });
    }
    let (count, len) = (lines.len() as u64, lines.concat().len() as u64);
    pack.terminals(lines.into_iter().map(Ok), count, len)
        .unwrap();
    for (capture, body) in pages(range) {
        let line = PackLine::Capture(Box::new(capture));
        let bytes = line.to_bytes().unwrap();
        digest.add_capture(line.capture_id(), &bytes);
        pack.capture(&line, &bytes, || Ok(body)).unwrap();
    }
    pack.finish(digest.finish(&run())).unwrap().0
}

/// The bytes of a pack of these pages.
pub(super) fn pack_of(range: std::ops::Range<u32>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), &pages(range.clone()), 25);
    plan(folder.path(), range).write(Vec::new()).unwrap().0
}
