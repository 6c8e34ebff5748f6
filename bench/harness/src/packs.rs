//! Packs: what sealing, replaying and reading one document cost, each in a process of its own.
//!
//! | step | reads | writes |
//! | --- | --- | --- |
//! | `fill` | a folder of pages | the part of a run, a capture a page |
//! | `spread` | the parts of a run | its lines and bodies as files in the order of the crawl, and `captures.jsonl` |
//! | `seal` | the parts | the pack and its index |
//! | `replay` | the pack | nothing: every frame and body is compared with its digest |
//! | `get` | the pack | nothing: every 50th document by the index, in a scattered order |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant as Stopwatch;

use lakebed::name::{CaptureId, RequestKey};
use lakebed::pack::{
    OpenParts, PackReader, PartOptions, PartWriter, body_hash, open_parts, plan_pack, scan_pack,
    write_index,
};
use lakebed::spec::{
    CaptureRecord, PackProfile, RawText, RunKey, TerminalRecord, TerminalState, Truncated,
    capture_id, request_key,
};
use lakebed::time::{Clock, Instant};
use lakebed::{Error, Result};
use serde_json::{Value, json};

/// The pack of the folder `out`.
const PACK: &str = "2026-11-30.day-00000000.tar.zst";
const INDEX: &str = "2026-11-30.day-00000000.idx";

/// Seconds of CPU that this process has had.
fn cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::try_from(now).map_or(0.0, |had| had.as_secs_f64())
}

/// The run whose parts are looked at.
pub fn run_key(source: &str) -> Result<RunKey> {
    Ok(RunKey {
        source: source.parse()?,
        date: "2026-11-30".parse()?,
        run: "day".parse()?,
    })
}

fn io<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |e| Error::io(what, path.display(), e)
}

/// Writes the pages of a folder as the part of a run.
pub fn fill(pages: &Path, parts: &Path) -> Result<Value> {
    let run = run_key("books")?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(pages).map_err(io("list", pages))? {
        let path = entry.map_err(io("list", pages))?.path();
        if path.extension().is_some_and(|e| e == "html") {
            files.push(path);
        }
    }
    files.sort();
    let mut writer = PartWriter::new(parts, &run, PartOptions::default(), &Clock::System)?;
    let mut bytes = 0;
    for (n, file) in files.iter().enumerate() {
        let body = std::fs::read(file).map_err(io("read", file))?;
        bytes += body.len();
        let capture = page_capture(&run, n, file, &body)?;
        drop(writer.append(&capture, &body, Instant::from_micros(0))?);
    }
    drop(writer.finish()?);
    Ok(json!({ "captures": files.len(), "bytes": bytes }))
}

fn page_capture(run: &RunKey, n: usize, file: &Path, body: &[u8]) -> Result<CaptureRecord> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let (kind, url) = (
        "detail".parse()?,
        format!("https://books.example/catalogue/book_{name}/index.html"),
    );
    let key = request_key(&kind, "GET", &url, None);
    let length = body.len() as u64;
    let after = i64::try_from(n).unwrap_or(0) * 250_003;
    Ok(CaptureRecord {
        capture_id: capture_id(run, &key, 1, 0),
        request_key: key,
        attempt: 1,
        hop: 0,
        kind,
        method: "GET".to_owned(),
        url,
        fetched_at: Instant::from_micros(1_764_500_000_000_000 + after),
        status: Some(200),
        http_version: Some("HTTP/1.1".to_owned()),
        remote_ip: Some("192.0.2.7".to_owned()),
        request_head: RawText(
            format!("GET /catalogue/book_{name}/index.html HTTP/1.1\r\nHost: books.example\r\nUser-Agent: lakebed\r\n\r\n").into_bytes(),
        ),
        request_body: None,
        response_head: RawText(
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nETag: \"{n:08x}\"\r\n\r\n").into_bytes(),
        ),
        content_type: Some("text/html".to_owned()),
        charset: None,
        removed_encodings: Vec::new(),
        wire_len: length,
        body_len: length,
        body_sha256: Some(body_hash(body)?),
        truncated: Truncated::None,
        error: None,
    })
}

/// Writes the captures of the parts as files, in the order in which they came.
pub fn spread(source: &str, parts: &Path, out: &Path) -> Result<Value> {
    let parts = open_parts(parts, &run_key(source)?)?;
    let bodies = out.join("b");
    std::fs::create_dir_all(&bodies).map_err(io("make the folder", &bodies))?;
    let (mut lines, mut count, mut bytes) = (Vec::new(), 0_u64, 0);
    for found in parts.captures() {
        let found = found?;
        let path = bodies.join(format!("{count:07}.html"));
        std::fs::write(&path, &found.body).map_err(io("write", &path))?;
        let beside = bodies.join(format!("{count:07}.a.json"));
        std::fs::write(&beside, &found.line).map_err(io("write", &beside))?;
        lines.extend_from_slice(&found.line);
        count += 1;
        bytes += found.body.len();
    }
    let path = out.join("captures.jsonl");
    std::fs::write(&path, lines).map_err(io("write", &path))?;
    Ok(json!({ "captures": count, "bytes": bytes }))
}

/// Seals the parts: they are verified, compared with how the requests ended, sorted, encoded, and indexed.
pub fn seal(source: &str, parts: &Path, out: &Path) -> Result<Value> {
    let run = run_key(source)?;
    let terminals = terminals(&open_parts(parts, &run)?)?;
    let (started, cpu) = (Stopwatch::now(), cpu_s());
    let parts = open_parts(parts, &run)?;
    let terminals = terminals.into_iter().map(Ok);
    let mut plan = plan_pack(&run, &parts, terminals, PackProfile::Std, out)?;
    let bytes = plan.stats().body_bytes;
    let path = out.join(PACK);
    let file = std::fs::File::create(&path).map_err(io("write", &path))?;
    let (file, trailer) = plan.write(std::io::BufWriter::new(file))?;
    let file = file
        .into_inner()
        .map_err(|e| io("write", &path)(e.into_error()))?;
    file.sync_all().map_err(io("write", &path))?;
    let size = file.metadata().map_err(io("look at", &path))?.len();
    let sealed = started.elapsed();
    let scan = scan_pack(PackReader::open(&path)?.source())?;
    scan.check(PACK)?;
    let index = write_index(&scan.rows, &trailer.content)?;
    let beside = out.join(INDEX);
    std::fs::write(&beside, &index).map_err(io("write", &beside))?;
    Ok(json!({
        "seconds": sealed.as_secs_f64(), "with_index": started.elapsed().as_secs_f64(), "cpu_s": cpu_s() - cpu, "bytes": bytes, "size": size,
        "index": index.len(), "captures": scan.rows.len(),
    }))
}

/// Every request's newest capture with a body, as a queue would name it.
fn terminals(parts: &OpenParts) -> Result<Vec<TerminalRecord>> {
    let mut newest: BTreeMap<RequestKey, CaptureRecord> = BTreeMap::new();
    for found in parts.captures() {
        let capture = found?.capture;
        if capture.body_sha256.is_some() {
            newest.insert(capture.request_key.clone(), capture);
        }
    }
    let terminal = |(_, capture): (RequestKey, CaptureRecord)| TerminalRecord {
        request_key: capture.request_key,
        stage: capture.kind,
        method: capture.method,
        url: capture.url,
        state: TerminalState::Done,
        class: None,
        attempts: capture.attempt,
        capture: Some(capture.capture_id),
        answer: Default::default(),
    };
    Ok(newest.into_iter().map(terminal).collect())
}

fn open(out: &Path) -> Result<PackReader> {
    PackReader::open(&PathBuf::from(out).join(PACK))
}

/// Reads all captures in order, each verified.
pub fn replay(out: &Path) -> Result<Value> {
    let (started, cpu) = (Stopwatch::now(), cpu_s());
    let (mut count, mut bytes) = (0_u64, 0);
    for capture in open(out)?.replay() {
        bytes += capture?.body.len();
        count += 1;
    }
    Ok(
        json!({ "seconds": started.elapsed().as_secs_f64(), "cpu_s": cpu_s() - cpu, "bytes": bytes, "captures": count }),
    )
}

/// Reads documents by the index; what each reads is its frame.
pub fn get(out: &Path) -> Result<Value> {
    let reader = open(out)?;
    let scan = reader.scan()?;
    let frames: BTreeSet<(u64, u64)> = (scan.rows.iter())
        .map(|r| (r.frame_offset, r.frame_len))
        .collect();
    let mut lengths: Vec<u64> = scan.rows.iter().map(|r| r.frame_len).collect();
    lengths.sort_unstable();
    let ids: Vec<&CaptureId> = scan.rows.iter().map(|r| &r.capture_id).collect();
    // Steps of a prime number: no document lies in the frame that was read before it.
    let wanted = (ids.len() / 50).clamp(1, 2_000);
    let mut times = Vec::with_capacity(wanted);
    for n in 0..wanted {
        let id = ids[(n * 7_919) % ids.len()];
        let started = Stopwatch::now();
        drop(reader.get(id)?);
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_unstable_by(f64::total_cmp);
    let mean = lengths.iter().sum::<u64>() / (lengths.len() as u64).max(1);
    let at = |share: usize| lengths.get(lengths.len() * share / 100).copied();
    Ok(json!({
        "frames": frames.len(), "mean": mean, "p99": at(99), "median_ms": times[times.len() / 2], "documents": wanted,
    }))
}
