//! The capture of a hop: everything that is kept of it.

use bytes::Bytes;
use http::header;
use sha2::{Digest, Sha256};

use super::class::FailureClass;
use super::exchange::{HopEnd, HopResponse};
use super::head::{text_of, version_text};
use super::outcome::{Capture, Continuation, FetchRequest};
use crate::name::BodyHash;
use crate::spec::{
    CaptureRecord, CharsetSpec, RawText, Truncated, capture_id, charset_of, essence,
};

/// Longer bodies are looked through on a thread of their own.
const INLINE_BYTES: usize = 256 * 1024;

/// The capture of a hop that ended so; `sent` is the body that went out.
pub(super) async fn capture(
    request: &FetchRequest,
    hop: &Continuation,
    end: &HopEnd,
    sent: Option<Bytes>,
) -> Capture {
    let mut record = CaptureRecord {
        capture_id: capture_id(&request.run, &request.key, request.attempt, hop.hop),
        request_key: request.key.clone(),
        attempt: request.attempt,
        hop: hop.hop,
        kind: request.kind.clone(),
        method: hop.method.to_string(),
        url: hop.url.to_string(),
        fetched_at: end.at,
        status: None,
        http_version: None,
        remote_ip: None,
        request_head: RawText(end.request_head.clone()),
        request_body: sent.map(|body| RawText(body.to_vec())),
        response_head: RawText::default(),
        content_type: None,
        charset: None,
        removed_encodings: Vec::new(),
        wire_len: 0,
        body_len: 0,
        body_sha256: None,
        truncated: Truncated::None,
        error: None,
    };
    let body = match &end.answer {
        Ok(response) => {
            describe(response, hop.url.host(), &mut record).await;
            response.body.clone()
        }
        Err((class, message)) => {
            record.error = Some(format!("{class}: {message}"));
            Bytes::new()
        }
    };
    Capture { record, body }
}

async fn describe(response: &HopResponse, host: &str, record: &mut CaptureRecord) {
    let content_type = text_of(&response.headers, &header::CONTENT_TYPE);
    record.status = Some(response.status.as_u16());
    record.http_version = Some(version_text(response.version).to_owned());
    record.remote_ip = response.peer.map(|peer| peer.to_string());
    record.response_head = RawText(response.head.clone());
    record.removed_encodings.clone_from(&response.removed);
    record.wire_len = response.wire_len;
    record.body_len = u64::try_from(response.body.len()).unwrap_or(u64::MAX);
    record.truncated = response.truncated;
    let (charset, hash) =
        look_through(response.body.clone(), content_type.clone(), host.to_owned()).await;
    // A body that is still packed is no text, whatever its media type says.
    let is_packed =
        matches!(response.trouble, Some((FailureClass::Decode, _))) && response.removed.is_empty();
    record.charset = charset.filter(|_| !is_packed);
    record.body_sha256 = hash;
    record.content_type = content_type.map(|t| essence(&t)).filter(|t| !t.is_empty());
}

type Looks = (Option<CharsetSpec>, Option<BodyHash>);

/// What every byte of a body is needed for.
async fn look_through(body: Bytes, content_type: Option<String>, host: String) -> Looks {
    let is_short = body.len() <= INLINE_BYTES;
    let look = move || -> Looks {
        let hash = format!("{:x}", Sha256::digest(&body)).parse().ok();
        let charset = charset_of(&body, content_type.as_deref(), &host);
        (charset.filter(|_| !body.is_empty()), hash)
    };
    if is_short {
        return look();
    }
    // Only a runtime that shuts down does not finish it; nobody reads the capture then.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}
