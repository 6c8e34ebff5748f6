//! What another crawler tells of a response, checked, as the capture that the built-in fetcher would have made.
//!
//! A program of somebody else fetched; its word is all there is. So whatever can be checked is: the URL that was claimed, names and values of
//! headers, encodings that were or were not removed, an answer that is whole. What is kept is laid out as of
//! our own fetches, without secrets (FET-3).

use bytes::Bytes;
use http::{HeaderName, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::fetch::{Capture, header_values, mask_cookies, mask_secrets};
use crate::name::BodyHash;
use crate::queue::HeldRequest;
use crate::spec::{
    CanonicalUrl, CaptureRecord, QueryOrder, RawText, RunKey, Truncated, capture_id, charset_of,
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
    /// Whether recorded heads keep the cookies that responses set.
    pub(super) record_set_cookie: bool,
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
        if !self.record_set_cookie {
            capture.response_head = RawText(mask_cookies(&capture.response_head.0));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::REMOVED;
    use crate::queue::{EnqueueStats, NewRequest, RequestRecord, RequestState};
    use crate::spec::CharsetOrigin;

    fn captures(told: Vec<ToldResponse>) -> Result<Vec<Capture>> {
        let request = NewRequest {
            method: "POST".to_owned(),
            ..NewRequest::get("list".parse().unwrap(), "http://a.test/x")
        };
        let held = HeldRequest {
            record: RequestRecord {
                id: 1,
                request_key: request.key(),
                stage: request.stage,
                method: request.method,
                url: request.url,
                state: RequestState::InFlight,
                attempts: 2,
                failures: 1,
                class: None,
                status: None,
                capture: None,
                not_before: 0,
                ended_at: None,
                parent_id: None,
                body: None,
            },
            worker_id: 1,
            host: "a.test".to_owned(),
            body: Some(b"q=1".to_vec()),
            children: EnqueueStats::default(),
        };
        let run = RunKey {
            source: "rentals".parse().unwrap(),
            date: "2026-11-30".parse().unwrap(),
            run: "day".parse().unwrap(),
        };
        let asked = Asked {
            run: &run,
            held: &held,
            now: Instant::from_micros(10_000_000),
            record_set_cookie: false,
        };
        asked.captures(told)
    }

    fn pair(name: &str, value: impl AsRef<[u8]>) -> (String, Vec<u8>) {
        (name.to_owned(), value.as_ref().to_vec())
    }

    #[test]
    fn hops_are_kept_as_our_own_are() {
        let first = ToldResponse {
            url: "http://a.test/x".to_owned(),
            status: Some(303),
            headers: vec![
                pair("Location", "/列表"),
                pair("Set-Cookie", "a"),
                pair("set-cookie", [0xff]),
            ],
            request_headers: Some(vec![pair("Cookie", "secret=1"), pair("Accept", "*/*")]),
            age_us: 4_000_000,
            ..ToldResponse::default()
        };
        let second = ToldResponse {
            url: "http://a.test/列表".to_owned(),
            method: Some("get".to_owned()),
            status: Some(200),
            http_version: Some("HTTP/2".to_owned()),
            headers: vec![
                pair("Content-Type", "TEXT/HTML; charset=big5"),
                pair("Content-Encoding", "gzip"),
            ],
            removed_encodings: Some(vec!["gzip".to_owned()]),
            wire_len: Some(7),
            body: Bytes::from_static(b"<p>\xb4\xfa\xb8\xd5</p>"),
            ..ToldResponse::default()
        };
        let kept = captures(vec![first, second]).unwrap();
        let (a, b) = (&kept[0].record, &kept[1].record);
        assert_eq!((a.hop, b.hop, a.attempt, b.attempt), (0, 1, 2, 2));
        assert_ne!(a.capture_id, b.capture_id);
        assert_eq!(a.fetched_at.micros(), 6_000_000);
        assert_eq!(b.url, "http://a.test/%E5%88%97%E8%A1%A8");
        let head = b"HTTP/1.1 303 See Other\r\nLocation: /\xe5\x88\x97\xe8\xa1\xa8\r\nSet-Cookie: [removed]\r\nset-cookie: [removed]\r\n\r\n";
        assert_eq!(a.response_head.0, head);
        let asked = format!("POST /x HTTP/1.1\r\nCookie: {REMOVED}\r\nAccept: */*\r\n\r\n");
        assert_eq!(a.request_head.0, asked.as_bytes());
        let bodies = (
            a.request_body.as_ref().map(|b| b.0.as_slice()),
            &b.request_body,
        );
        assert_eq!(bodies, (Some(&b"q=1"[..]), &None));
        assert!(b.response_head.0.starts_with(b"HTTP/2 200 OK\r\n") && b.request_head.0.is_empty());
        assert_eq!(b.content_type.as_deref(), Some("text/html"));
        let charset = b.charset.as_ref().unwrap();
        assert_eq!(
            (charset.name.as_str(), charset.from),
            ("big5", CharsetOrigin::Http)
        );
        assert_eq!(
            (b.body_len, b.wire_len, b.removed_encodings.len()),
            (11, 7, 1)
        );
    }

    #[test]
    fn a_packed_body_is_no_text_and_nothing_is_guessed() {
        let gzip = |removed| ToldResponse {
            url: "http://a.test/x".to_owned(),
            status: Some(200),
            headers: vec![
                pair("Content-Type", "text/html"),
                pair("content-encoding", "GZIP"),
            ],
            removed_encodings: removed,
            body: Bytes::from_static(b"\x1f\x8b\x08"),
            ..ToldResponse::default()
        };
        let error = captures(vec![gzip(None)]).unwrap_err();
        assert!(error.message().contains("gzip"), "{error}");
        let kept = captures(vec![gzip(Some(Vec::new()))]).unwrap();
        assert_eq!(kept[0].record.charset, None);
        let failed = |error: Option<&str>, body: &'static [u8]| ToldResponse {
            url: "http://a.test/x".to_owned(),
            error: error.map(str::to_owned),
            body: Bytes::from_static(body),
            ..ToldResponse::default()
        };
        let kept = captures(vec![failed(Some("timeout"), b"")]).unwrap();
        assert_eq!(
            (kept[0].record.status, &kept[0].record.body_sha256),
            (None, &None)
        );
        for wrong in [
            failed(None, b""),
            failed(Some("x"), b"abc"),
            failed(Some("a\nb"), b""),
        ] {
            assert!(captures(vec![wrong]).is_err());
        }
    }
}
