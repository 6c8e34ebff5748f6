//! What another crawler tells of a response, checked, as the capture that the built-in fetcher would have made.
//!
//! A program of somebody else fetched; its word is all there is. So whatever can be checked is: the URL that was claimed, names and values of
//! headers, encodings that were or were not removed, an answer that is whole. What is kept is laid out as of
//! our own fetches, without secrets (FET-3).

use bytes::Bytes;
use http::{HeaderName, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::fetch::{Capture, charset_of, header_values, mask_secrets};
use crate::name::BodyHash;
use crate::queue::HeldRequest;
use crate::spec::{
    CanonicalUrl, CaptureRecord, QueryOrder, RawText, RunKey, Truncated, capture_id,
};
use crate::time::Instant;

/// Longest head that is kept, bytes.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// One response as another crawler tells it, or how a hop ended without one.
#[derive(Debug, Clone, Default)]
pub struct ToldResponse {
    /// What was asked for at this hop.
    pub url: String,
    /// Absent for the method of the request.
    pub method: Option<String>,
    /// HTTP status; absent where no response came.
    pub status: Option<u16>,
    /// Such as `HTTP/1.1`; absent where the crawler does not know.
    pub http_version: Option<String>,
    /// The words of the status line; absent for the usual ones.
    pub reason: Option<String>,
    /// Headers of the response, in order, repeated ones kept.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Headers of the request; absent where they are not told.
    pub request_headers: Option<Vec<(String, Vec<u8>)>>,
    /// The body.
    pub body: Bytes,
    /// Whether the server sent a body of no bytes: an answer without bytes must say so.
    pub is_empty: bool,
    /// Content encodings that the crawler removed, outermost first. Must be told where the head names an encoding.
    pub removed_encodings: Option<Vec<String>>,
    /// Bytes of the body on the wire; absent for those of the body.
    pub wire_len: Option<u64>,
    /// Whether the body is whole.
    pub truncated: Truncated,
    /// Why there is no response; needed where there is none.
    pub error: Option<String>,
    /// How long ago the head (or the failure) came, microseconds: no clock of the crawler is asked.
    pub age_us: i64,
    /// Address of the peer, where it is known.
    pub remote_ip: Option<String>,
}

/// For whom a response was fetched.
pub(super) struct Asked<'a> {
    pub(super) run: &'a RunKey,
    pub(super) held: &'a HeldRequest,
    pub(super) now: Instant,
}

impl Asked<'_> {
    /// The captures of all hops; an error names the place in the list.
    pub(super) fn captures(&self, told: Vec<ToldResponse>) -> Result<Vec<Capture>> {
        let all = told.into_iter().enumerate();
        all.map(|(i, response)| {
            let hop = u32::try_from(i).unwrap_or(u32::MAX);
            self.capture(hop, response)
                .map_err(|(key, e)| e.with("path", format!("responses[{i}].{key}")))
        })
        .collect()
    }

    fn capture(
        &self,
        hop: u32,
        told: ToldResponse,
    ) -> std::result::Result<Capture, (&'static str, Error)> {
        let record = &self.held.record;
        let url = CanonicalUrl::parse(&told.url, QueryOrder::Kept).map_err(|e| ("url", e))?;
        let method = match &told.method {
            Some(method) => method.to_ascii_uppercase(),
            None => record.method.clone(),
        };
        let sends_body = method == record.method;
        let mut capture = CaptureRecord {
            capture_id: capture_id(self.run, &record.request_key, record.attempts, hop),
            request_key: record.request_key.clone(),
            attempt: record.attempts,
            hop,
            kind: record.stage.clone(),
            method,
            url: url.to_string(),
            fetched_at: Instant::from_micros(self.now.micros().saturating_sub(told.age_us.max(0))),
            status: told.status,
            http_version: told.http_version.clone(),
            remote_ip: told.remote_ip.clone(),
            request_head: RawText::default(),
            request_body: self.held.body.clone().filter(|_| sends_body).map(RawText),
            response_head: RawText::default(),
            content_type: None,
            charset: None,
            removed_encodings: Vec::new(),
            wire_len: 0,
            body_len: 0,
            body_sha256: None,
            truncated: told.truncated,
            error: told.error.clone(),
        };
        check_words(&told)?;
        if let Some(headers) = &told.request_headers {
            let version = told.http_version.as_deref().unwrap_or("HTTP/1.1");
            let line = format!("{} {} {version}", capture.method, url.path_and_query());
            let head = head_of(&line, headers).map_err(|e| ("request_headers", e))?;
            capture.request_head = RawText(mask_secrets(&head, &[]));
        }
        match told.status {
            Some(status) => describe(status, &told, &url, &mut capture)?,
            None => check_nothing(&told)?,
        }
        Ok(Capture {
            record: capture,
            body: told.body,
        })
    }
}

type Wrong = (&'static str, Error);

/// What goes into lines of a head, and texts that go into the record.
fn check_words(told: &ToldResponse) -> std::result::Result<(), Wrong> {
    let version = told.http_version.as_deref().unwrap_or("HTTP/1.1");
    if !["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"].contains(&version) {
        let e = Error::invalid(format!("`{version}` is no version of HTTP"));
        return Err((
            "http_version",
            e.hint("HTTP/1.0, HTTP/1.1, HTTP/2 or HTTP/3"),
        ));
    }
    let method = told.method.as_deref().unwrap_or("GET");
    if http::Method::from_bytes(method.as_bytes()).is_err() {
        return Err((
            "method",
            Error::invalid(format!("`{method}` is not a method")),
        ));
    }
    let is_line = |text: &str| !text.bytes().any(|b| b.is_ascii_control());
    if !told.reason.as_deref().is_none_or(is_line) {
        let e = Error::invalid("the words of a status line have control characters in them");
        return Err(("reason", e));
    }
    if !told.error.as_deref().is_none_or(is_line) {
        return Err(("error", Error::invalid("an error is told in one line")));
    }
    match told
        .remote_ip
        .as_deref()
        .map(str::parse::<std::net::IpAddr>)
    {
        Some(Err(e)) => {
            let ip = told.remote_ip.as_deref().unwrap_or_default();
            let wrong = Error::invalid(format!("`{ip}` is no address")).caused_by(e);
            Err(("remote_ip", wrong))
        }
        Some(Ok(_)) | None => Ok(()),
    }
}

/// A hop without a response says why, and brings nothing.
fn check_nothing(told: &ToldResponse) -> std::result::Result<(), Wrong> {
    if told.error.is_none() {
        let e = Error::invalid("neither a status nor an error: what happened?");
        return Err((
            "status",
            e.hint("give the status of the response, or say in `error` why there is none"),
        ));
    }
    if !told.headers.is_empty() {
        return Err(("headers", Error::invalid("headers of no response")));
    }
    if !told.body.is_empty() {
        return Err(("body_bytes", Error::invalid("a body of no response")));
    }
    Ok(())
}

fn describe(
    status: u16,
    told: &ToldResponse,
    url: &CanonicalUrl,
    record: &mut CaptureRecord,
) -> std::result::Result<(), Wrong> {
    let code = StatusCode::from_u16(status)
        .ok()
        .filter(|c| (200..600).contains(&c.as_u16()));
    let code = code.ok_or_else(|| {
        let e = Error::invalid(format!("`{status}` is no status of a response"));
        ("status", e)
    })?;
    let version = told.http_version.as_deref().unwrap_or("HTTP/1.1");
    let reason = told.reason.as_deref().or(code.canonical_reason());
    let line = match reason {
        Some(reason) if !reason.is_empty() => format!("{version} {status} {reason}"),
        _ => format!("{version} {status}"),
    };
    let head = head_of(&line, &told.headers).map_err(|e| ("headers", e))?;
    let encodings: Vec<String> = header_values(&head, "content-encoding")
        .iter()
        .flat_map(|v| v.split(','))
        .map(|v| v.trim().to_ascii_lowercase())
        .filter(|v| !v.is_empty() && v != "identity")
        .collect();
    let removed = match &told.removed_encodings {
        Some(removed) => removed.clone(),
        None if encodings.is_empty() => Vec::new(),
        None => {
            let named = encodings.join(", ");
            let e = Error::invalid(format!(
                "the head says `Content-Encoding: {named}`, and nothing says whether the body still has it"
            ));
            return Err((
                "removed_encodings",
                e.hint("list what your program unpacked, outermost first; an empty list where it unpacked nothing"),
            ));
        }
    };
    let content_type = header_values(&head, header::CONTENT_TYPE.as_str())
        .into_iter()
        .next();
    let is_packed = !encodings.is_empty() && removed.is_empty();
    let charset = charset_of(&told.body, content_type.as_deref(), url.host());
    record.charset = charset.filter(|_| !is_packed && !told.body.is_empty());
    record.content_type = content_type
        .map(|t| {
            t.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        })
        .filter(|t| !t.is_empty());
    record.response_head = RawText(head);
    record.removed_encodings = removed;
    record.body_len = told.body.len() as u64;
    record.wire_len = told.wire_len.unwrap_or(record.body_len);
    record.body_sha256 = Some(hash_of(&told.body).map_err(|e| ("body_bytes", e))?);
    Ok(())
}

fn hash_of(body: &[u8]) -> Result<BodyHash> {
    format!("{:x}", Sha256::digest(body)).parse()
}

/// A head in the form of HTTP/1: a line, a line a header, an empty line.
fn head_of(line: &str, headers: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut head = format!("{line}\r\n").into_bytes();
    for (name, value) in headers {
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(Error::invalid(format!(
                "`{}` is no name of a header",
                name.escape_debug()
            )));
        }
        if value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(
                Error::invalid(format!("the value of `{name}` has a line break in it"))
                    .hint("give a repeated header as several pairs"),
            );
        }
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    if head.len() > MAX_HEAD_BYTES {
        return Err(
            Error::limit(format!("the head has {} bytes", head.len())).hint("at most 262144 bytes")
        );
    }
    Ok(head)
}
