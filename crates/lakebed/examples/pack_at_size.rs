//! Writes, seals and reads a pack of real pages, and says what each step costs.
//!
//! ```text
//! cargo run --release -p lakebed --example pack_at_size -- FOLDER_OF_PAGES OUT [COPIES]
//! ```
//!
//! Every file of the folder is a page; with COPIES each is there that many times, with another title. OUT
//! gets the parts, the pack and its index.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use lakebed::name::RequestKey;
use lakebed::pack::{
    PackReader, PartOptions, PartWriter, SharedPart, SharedPartOptions, WarcOptions, body_hash,
    export_warc, open_parts, plan_pack, scan_pack, write_index,
};
use lakebed::spec::{
    CaptureRecord, PackProfile, RawText, RunKey, TerminalRecord, TerminalState, Truncated,
    capture_id,
};
use lakebed::time::{Clock, Instant};
use lakebed::{Error, Result};

type Page = (CaptureRecord, bytes::Bytes);

fn run() -> Result<RunKey> {
    Ok(RunKey {
        source: "books".parse()?,
        date: "2026-11-30".parse()?,
        run: "day".parse()?,
    })
}

fn capture(n: u32, body: &[u8]) -> Result<CaptureRecord> {
    let key = RequestKey::of(&n.to_le_bytes());
    let length = body.len();
    Ok(CaptureRecord {
        capture_id: capture_id(&run()?, &key, 1, 0),
        request_key: key,
        attempt: 1,
        hop: 0,
        kind: "detail".parse()?,
        method: "GET".to_owned(),
        url: format!("https://books.example/catalogue/book_{n}/index.html"),
        fetched_at: Instant::from_micros(1_764_500_000_000_000 + i64::from(n) * 250_003),
        status: Some(200),
        http_version: Some("HTTP/1.1".to_owned()),
        remote_ip: Some("192.0.2.7".to_owned()),
        request_head: RawText(
            format!("GET /catalogue/book_{n}/index.html HTTP/1.1\r\nHost: books.example\r\nUser-Agent: lakebed\r\n\r\n").into_bytes(),
        ),
        request_body: None,
        response_head: RawText(
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nETag: \"{n:08x}\"\r\n\r\n").into_bytes(),
        ),
        content_type: Some("text/html".to_owned()),
        charset: None,
        removed_encodings: Vec::new(),
        wire_len: length as u64,
        body_len: length as u64,
        body_sha256: Some(body_hash(body)?),
        truncated: Truncated::None,
        error: None,
    })
}

fn pages(folder: &Path, copies: u32) -> Result<Vec<Page>> {
    let failed = |e| Error::io("read the folder", folder.display(), e);
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    let mut pages = Vec::new();
    let mut n = 0;
    for copy in 0..copies {
        for file in files.iter().filter(|f| f.is_file()) {
            let mut body = std::fs::read(file).map_err(failed)?;
            body.extend(format!("<!-- copy {copy} -->").into_bytes());
            pages.push((capture(n, &body)?, body.into()));
            n += 1;
        }
    }
    Ok(pages)
}

fn say(what: &str, took: Duration, bytes: u64) {
    let seconds = took.as_secs_f64();
    #[allow(clippy::print_stdout, reason = "an example speaks to its caller")]
    {
        println!(
            "{what}: {seconds:.3} s, {:.1} MB/s",
            bytes as f64 / 1e6 / seconds
        );
    }
}

/// How long `tasks` tasks take for all pages when each waits for its receipt.
fn write_shared(folder: &Path, pages: &[Page], tasks: usize, linger: Duration) -> Result<()> {
    let options = SharedPartOptions {
        linger,
        ..SharedPartOptions::default()
    };
    let part = Arc::new(SharedPart::open(folder, &run()?, options, &Clock::System)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::internal("start tasks").caused_by(e))?;
    let begin = Stopwatch::now();
    let frames: BTreeSet<(String, u32)> = runtime.block_on(async {
        let mut all = Vec::new();
        for task in 0..tasks {
            let part = Arc::clone(&part);
            let mine: Vec<Page> = pages.iter().skip(task).step_by(tasks).cloned().collect();
            all.push(tokio::spawn(async move {
                let mut frames = Vec::new();
                for (capture, body) in mine {
                    let receipt = part.append(capture, body).await?;
                    frames.push((receipt.part, receipt.frame));
                }
                Ok::<_, Error>(frames)
            }));
        }
        let mut frames = BTreeSet::new();
        for task in all {
            frames.extend(
                task.await
                    .map_err(|e| Error::internal("a task").caused_by(e))??,
            );
        }
        Ok::<_, Error>(frames)
    })?;
    let took = begin.elapsed();
    let bytes = pages.iter().map(|(_, body)| body.len() as u64).sum();
    let (count, ms) = (frames.len(), linger.as_millis());
    say(
        &format!(
            "{tasks} tasks, {ms} ms linger, {count} fsyncs for {} pages",
            pages.len()
        ),
        took,
        bytes,
    );
    Ok(())
}

fn write_alone(folder: &Path, pages: &[Page]) -> Result<()> {
    let mut writer = PartWriter::new(folder, &run()?, PartOptions::default(), &Clock::System)?;
    for (capture, body) in pages {
        drop(writer.append(capture, body, Instant::from_micros(0))?);
    }
    drop(writer.finish()?);
    Ok(())
}

fn seal(out: &Path, pages: &[Page], profile: PackProfile, name: &str) -> Result<(PathBuf, u64)> {
    let parts = open_parts(&out.join("parts"), &run()?)?;
    let terminals = pages.iter().map(|(capture, _)| {
        Ok(TerminalRecord {
            request_key: capture.request_key.clone(),
            stage: capture.kind.clone(),
            method: capture.method.clone(),
            url: capture.url.clone(),
            state: TerminalState::Done,
            class: None,
            attempts: 1,
            capture: Some(capture.capture_id.clone()),
            answer: Default::default(),
        })
    });
    let mut plan = plan_pack(&run()?, &parts, terminals, profile, &out.join("parts"))?;
    let path = out.join(name);
    let failed = |e| Error::io("write the pack", path.display(), e);
    let file = std::fs::File::create(&path).map_err(failed)?;
    let (file, _) = plan.write(std::io::BufWriter::new(file))?;
    let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok((path, size))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, out, rest @ ..] = &arguments[..] else {
        return Err(Error::invalid("FOLDER_OF_PAGES OUT [COPIES]"));
    };
    let out = Path::new(out);
    let copies = rest.first().and_then(|text| text.parse().ok()).unwrap_or(1);
    let pages = pages(Path::new(folder), copies)?;
    let bytes: u64 = pages.iter().map(|(_, body)| body.len() as u64).sum();
    for (tasks, linger) in [(1, 0), (16, 0), (16, 5), (64, 0), (64, 5)] {
        let scratch = out.join(format!("shared-{tasks}-{linger}"));
        write_shared(&scratch, &pages, tasks, Duration::from_millis(linger))?;
    }
    let begin = Stopwatch::now();
    write_alone(&out.join("parts"), &pages)?;
    say("one writer, frames of 1 MiB", begin.elapsed(), bytes);
    let begin = Stopwatch::now();
    let (_, size) = seal(out, &pages, PackProfile::Deep, "deep.tar.zst")?;
    say(&format!("seal deep, {size} bytes"), begin.elapsed(), bytes);
    let begin = Stopwatch::now();
    let (path, size) = seal(
        out,
        &pages,
        PackProfile::Std,
        "2026-11-30.day-00000000.tar.zst",
    )?;
    say(
        &format!("seal std, {size} bytes of {bytes}"),
        begin.elapsed(),
        bytes,
    );
    let begin = Stopwatch::now();
    let scan = scan_pack(PackReader::open(&path)?.source())?;
    scan.check(&path.display().to_string())?;
    say("verify", begin.elapsed(), bytes);
    let index = write_index(&scan.rows, &scan.trailer.content)?;
    let beside = out.join("2026-11-30.day-00000000.idx");
    std::fs::write(&beside, &index)
        .map_err(|e| Error::io("write the index", beside.display(), e))?;
    let reader = PackReader::open(&path)?;
    let begin = Stopwatch::now();
    let replayed = reader
        .replay()
        .try_fold(0, |n, c| c.map(|c| n + c.body.len() as u64))?;
    say("replay", begin.elapsed(), replayed);
    let begin = Stopwatch::now();
    let warc = out.join("pack.warc.gz");
    let failed = |e| Error::io("write the WARC", warc.display(), e);
    let options = WarcOptions {
        gzip: true,
        revisits: true,
        filename: "pack.warc.gz".to_owned(),
    };
    let mut file = std::io::BufWriter::new(std::fs::File::create(&warc).map_err(failed)?);
    let export = export_warc(&reader, &mut file, &options)?;
    file.into_inner().map_err(|e| failed(e.into_error()))?;
    say(
        &format!("export, {} bytes of WARC", export.bytes),
        begin.elapsed(),
        bytes,
    );
    let begin = Stopwatch::now();
    for (capture, _) in pages.iter().step_by(7) {
        drop(reader.get(&capture.capture_id)?);
    }
    let each = begin.elapsed() / u32::try_from(pages.len().div_ceil(7)).unwrap_or(1);
    let frames: BTreeSet<(u64, u64)> = scan
        .rows
        .iter()
        .map(|r| (r.frame_offset, r.frame_len))
        .collect();
    let mean = frames.iter().map(|(_, len)| len).sum::<u64>() / (frames.len() as u64).max(1);
    say(
        &format!(
            "get: {each:?} each, {} frames of {mean} bytes, index {} bytes a row",
            frames.len(),
            index.len() / pages.len().max(1)
        ),
        each,
        0,
    );
    Ok(())
}
