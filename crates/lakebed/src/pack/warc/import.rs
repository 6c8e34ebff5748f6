//! A WARC, packed or plain, into parts: responses and revisits become captures.
//!
//! A record that an export wrote gives back the capture it was made of. Of others the request key is made
//! of the URL, each response to the same URL counts as one more attempt, and encodings are removed from the
//! body as far as they are known.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::{DeflateDecoder, GzDecoder, MultiGzDecoder, ZlibDecoder};

use crate::error::{Error, Result};
use crate::name::{BodyHash, RequestKey, StageName};
use crate::pack::content::body_hash;
use crate::pack::part::PartWriter;
use crate::pack::spool::Spool;
use crate::pack::warc::export::CAPTURE_FIELD;
use crate::pack::warc::http::{head_len, header, restore_head};
use crate::pack::warc::record::{WarcRecord, read_record};
use crate::spec::{
    CaptureRecord, RawText, RunKey, TerminalRecord, TerminalState, Truncated, capture_id,
};
use crate::time::Instant;

/// How a WARC is taken in.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The run that its captures belong to.
    pub run: RunKey,
    /// The kind of page of captures that do not say theirs.
    pub kind: StageName,
    /// Bytes of a body at most once its encodings are removed.
    pub max_body_bytes: u64,
}

/// What was taken in.
#[derive(Debug, Default)]
pub struct WarcImport {
    /// Captures.
    pub captures: u64,
    /// Revisits among them.
    pub revisits: u64,
    /// Records that are no response and no request, and revisits whose original was not met.
    pub skipped: u64,
    /// The end of each request, by its last capture: what a seal of these parts asks for.
    pub terminals: Vec<TerminalRecord>,
}

/// Appends every response of the WARC to `writer`; the caller finishes it. `spool_folder` takes a file of
/// all bodies for revisits, which goes when this returns.
///
/// # Errors
/// `CorruptData` where it is no WARC or is cut; `LimitExceeded` for a body that unpacks beyond the limit.
pub fn import_warc(
    warc: impl Read,
    writer: &mut PartWriter,
    options: &ImportOptions,
    spool_folder: &Path,
) -> Result<WarcImport> {
    let mut warc = BufReader::with_capacity(1 << 18, warc);
    let start = warc
        .fill_buf()
        .map_err(|e| Error::corrupt("read the WARC").caused_by(e))?;
    let mut import = Import {
        writer,
        options,
        spool: Spool::create(spool_folder)?,
        attempts: HashMap::new(),
        payloads: HashMap::new(),
        ends: HashMap::new(),
        waiting: None,
        done: WarcImport::default(),
    };
    match start.starts_with(&[0x1F, 0x8B]) {
        true => import.all(&mut BufReader::new(MultiGzDecoder::new(warc)))?,
        false => import.all(&mut warc)?,
    }
    import.finish()
}

struct Import<'a> {
    writer: &'a mut PartWriter,
    options: &'a ImportOptions,
    spool: Spool,
    /// Attempts so far by request.
    attempts: HashMap<RequestKey, u32>,
    /// Kept bodies by payload digest, and by URL and date.
    payloads: HashMap<String, BodyHash>,
    ends: HashMap<RequestKey, TerminalRecord>,
    /// A response that waits for its request record, and the id of its own.
    waiting: Option<(String, CaptureRecord, Vec<u8>)>,
    done: WarcImport,
}

impl Import<'_> {
    fn all(&mut self, from: &mut impl BufRead) -> Result<()> {
        while let Some(record) = read_record(from)? {
            match record.field("WARC-Type").unwrap_or_default() {
                "response" | "revisit" => {
                    self.keep_waiting()?;
                    self.response(&record)?;
                }
                "request" => self.request(&record),
                _ => self.done.skipped += 1,
            }
        }
        self.keep_waiting()
    }

    fn response(&mut self, record: &WarcRecord) -> Result<()> {
        let is_revisit = record.field("WARC-Type") == Some("revisit");
        let content = record.field("Content-Type").unwrap_or_default();
        if !content.starts_with("application/http") {
            self.done.skipped += 1;
            return Ok(());
        }
        let head_end = head_len(&record.block);
        let (head, wire) = record.block.split_at(head_end);
        let own = record.field(CAPTURE_FIELD);
        let own: Option<CaptureRecord> = own.and_then(|json| serde_json::from_str(json).ok());
        let (body, removed) = match (is_revisit, &own) {
            (true, _) => match self.original(record)? {
                Some(body) => (body, Vec::new()),
                None => {
                    self.done.skipped += 1;
                    return Ok(());
                }
            },
            (false, Some(_)) => (wire.to_vec(), Vec::new()),
            (false, None) => decode_body(head, wire, self.options.max_body_bytes)?,
        };
        let hash = body_hash(&body)?;
        self.spool.put_body(&hash, &body)?;
        for name in names_of(record) {
            self.payloads.insert(name, hash.clone());
        }
        let capture = match own {
            Some(capture) => CaptureRecord {
                response_head: RawText(restore_head(head, capture.http_version.as_deref())),
                ..self.in_run(capture)
            },
            None => {
                let mut capture = self.foreign(record, head)?;
                capture.removed_encodings = removed;
                capture.wire_len = wire.len() as u64;
                capture.body_len = body.len() as u64;
                capture.body_sha256 = Some(hash);
                capture
            }
        };
        self.done.revisits += u64::from(is_revisit);
        let id = record
            .field("WARC-Record-ID")
            .unwrap_or_default()
            .to_owned();
        self.waiting = Some((id, capture, body));
        Ok(())
    }

    /// A capture belongs to the run that it is imported into: its id is made anew where that is another.
    fn in_run(&self, capture: CaptureRecord) -> CaptureRecord {
        let run = &self.options.run;
        let (key, attempt, hop) = (&capture.request_key, capture.attempt, capture.hop);
        CaptureRecord {
            capture_id: capture_id(run, key, attempt, hop),
            ..capture
        }
    }

    fn original(&mut self, record: &WarcRecord) -> Result<Option<Vec<u8>>> {
        let digest = record.field("WARC-Payload-Digest").map(str::to_owned);
        let url = record
            .field("WARC-Refers-To-Target-URI")
            .unwrap_or_default();
        let date = record.field("WARC-Refers-To-Date").unwrap_or_default();
        let names = digest.into_iter().chain([format!("{date} {url}")]);
        let mut found = names.filter_map(|name| self.payloads.get(&name).cloned());
        found.next().map(|hash| self.spool.body(&hash)).transpose()
    }

    fn foreign(&mut self, record: &WarcRecord, head: &[u8]) -> Result<CaptureRecord> {
        let url = record.field("WARC-Target-URI").unwrap_or_default();
        let url = url.trim_start_matches('<').trim_end_matches('>').to_owned();
        let key = RequestKey::of(format!("warc\nGET\n{url}").as_bytes());
        let attempt = self.attempts.entry(key.clone()).or_default();
        *attempt += 1;
        let date = record.field("WARC-Date").unwrap_or_default();
        let fetched_at: Instant = date.parse().map_err(|e: Error| {
            Error::corrupt(format!("read the WARC: `{date}` is no date")).caused_by(e)
        })?;
        let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
        let first = String::from_utf8_lossy(first);
        let mut words = first.split_whitespace();
        let http_version = words.next().map(str::to_owned);
        let content_type = header(head, "Content-Type").map(|value| {
            let media = value.split(';').next().unwrap_or_default();
            media.trim().to_lowercase()
        });
        Ok(CaptureRecord {
            capture_id: capture_id(&self.options.run, &key, *attempt, 0),
            request_key: key,
            attempt: *attempt,
            hop: 0,
            kind: self.options.kind.clone(),
            method: "GET".to_owned(),
            url,
            fetched_at,
            status: words.next().and_then(|code| code.parse().ok()),
            http_version,
            remote_ip: record.field("WARC-IP-Address").map(str::to_owned),
            request_head: RawText::default(),
            request_body: None,
            response_head: RawText(head.to_vec()),
            content_type: content_type.filter(|t| !t.is_empty()),
            charset: None,
            removed_encodings: Vec::new(),
            wire_len: 0,
            body_len: 0,
            body_sha256: None,
            truncated: match record.field("WARC-Truncated") {
                None => Truncated::None,
                Some("time") => Truncated::Time,
                Some("disconnect") => Truncated::Disconnect,
                Some(_) => Truncated::Length,
            },
            error: None,
        })
    }

    /// A request belongs to the response before it where it says so.
    fn request(&mut self, record: &WarcRecord) {
        let of = record.field("WARC-Concurrent-To").unwrap_or_default();
        let Some((_, capture, _)) = self.waiting.as_mut().filter(|(id, _, _)| id == of) else {
            return;
        };
        let (head, body) = record.block.split_at(head_len(&record.block));
        capture.request_head = RawText(head.to_vec());
        let first = head.split(|b| *b == b' ').next().unwrap_or_default();
        if let Ok(method) = std::str::from_utf8(first) {
            method.clone_into(&mut capture.method);
        }
        if !body.is_empty() || capture.request_body.is_some() {
            capture.request_body = Some(RawText(body.to_vec()));
        }
    }

    fn keep_waiting(&mut self) -> Result<()> {
        let Some((_, capture, body)) = self.waiting.take() else {
            return Ok(());
        };
        drop(self.writer.append(&capture, &body, capture.fetched_at)?);
        self.done.captures += 1;
        let terminal = TerminalRecord {
            request_key: capture.request_key.clone(),
            stage: capture.kind,
            method: capture.method,
            url: capture.url,
            state: TerminalState::Done,
            class: None,
            attempts: capture.attempt,
            capture: Some(capture.capture_id),
            answer: Default::default(),
        };
        self.ends.insert(capture.request_key, terminal);
        Ok(())
    }

    fn finish(mut self) -> Result<WarcImport> {
        self.done.terminals = self.ends.into_values().collect();
        self.done
            .terminals
            .sort_by(|a, b| a.request_key.cmp(&b.request_key));
        Ok(self.done)
    }
}

/// By what a revisit may name the record.
fn names_of(record: &WarcRecord) -> Vec<String> {
    let mut names = Vec::new();
    if let (Some(date), Some(url)) = (record.field("WARC-Date"), record.field("WARC-Target-URI")) {
        names.push(format!("{date} {url}"));
    }
    names.extend(record.field("WARC-Payload-Digest").map(str::to_owned));
    names
}

/// The body without transfer coding and known content encodings, and those, outermost first. What cannot be
/// decoded stays as it is.
fn decode_body(head: &[u8], wire: &[u8], most: u64) -> Result<(Vec<u8>, Vec<String>)> {
    let chunked =
        header(head, "Transfer-Encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
    let mut body = match chunked {
        true => unchunk(wire).unwrap_or_else(|| wire.to_vec()),
        false => wire.to_vec(),
    };
    let mut removed = Vec::new();
    let encodings = header(head, "Content-Encoding")
        .unwrap_or_default()
        .to_lowercase();
    for encoding in encodings
        .split(',')
        .map(str::trim)
        .rev()
        .filter(|e| !e.is_empty())
    {
        match unpack(encoding, &body, most)? {
            Some(unpacked) => {
                body = unpacked;
                removed.push(encoding.to_owned());
            }
            None => break,
        }
    }
    Ok((body, removed))
}

fn unchunk(wire: &[u8]) -> Option<Vec<u8>> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let end = at + memchr::memchr(b'\n', wire.get(at..)?)?;
        let size = std::str::from_utf8(&wire[at..end]).ok()?;
        let size = size.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        at = end + 1;
        if size == 0 {
            return Some(body);
        }
        body.extend(wire.get(at..at.checked_add(size)?)?);
        at += size;
        let line_end = wire.get(at..)?;
        at += if line_end.starts_with(b"\r\n") { 2 } else { 1 };
    }
}

fn unpack(encoding: &str, body: &[u8], most: u64) -> Result<Option<Vec<u8>>> {
    let read = |reader: &mut dyn Read| -> Result<Option<Vec<u8>>> {
        let mut unpacked = Vec::new();
        let mut limited = reader.take(most.saturating_add(1));
        if limited.read_to_end(&mut unpacked).is_err() {
            return Ok(None);
        }
        if unpacked.len() as u64 > most {
            return Err(Error::limit(format!(
                "a body of a WARC unpacks to more than {most} bytes"
            )));
        }
        Ok(Some(unpacked))
    };
    match encoding {
        "gzip" | "x-gzip" => read(&mut GzDecoder::new(body)),
        "br" => read(&mut brotli::Decompressor::new(body, 4096)),
        "deflate" => match read(&mut ZlibDecoder::new(body))? {
            Some(unpacked) => Ok(Some(unpacked)),
            None => read(&mut DeflateDecoder::new(body)),
        },
        _ => Ok(None),
    }
}
