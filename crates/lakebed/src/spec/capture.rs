//! A capture: one response (or the lack of one) to one attempt at one request, without its body.
//!
//! Written as one JSON line of `m/<frame>.jsonl` in a pack (docs/formats/rawpack.md); the stages that
//! fetch, pack and parse meet here.

use std::borrow::Cow;

use base64::Engine;
use serde::{Deserialize, Serialize};

use crate::name::{BodyHash, CaptureId, RequestKey, RunName, SourceName, StageName};
use crate::time::{BusinessDate, Instant};

/// The run of a source for a business date: what a queue run, a pack and a manifest belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// The crawled site.
    pub source: SourceName,
    /// Its business date.
    pub date: BusinessDate,
    /// Which sweep of that date.
    pub run: RunName,
}

impl std::fmt::Display for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.source, self.date, self.run)
    }
}

/// One response as it came, or how an attempt ended without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureRecord {
    /// Unique within a source: made of run, request key, attempt and hop ([`capture_id`]).
    pub capture_id: CaptureId,
    /// The request it answers.
    pub request_key: RequestKey,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// 0, or n for the n-th redirect that was followed.
    pub hop: u32,
    /// The stage of the request: the kind of page.
    pub kind: StageName,
    /// In capitals.
    pub method: String,
    /// What was asked for at this hop, in canonical form.
    pub url: String,
    /// When the head of the response (or the failure) came; UTC microseconds.
    pub fetched_at: Instant,
    /// HTTP status; absent where no response came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<u16>,
    /// Such as `HTTP/1.1`; absent where no response came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub http_version: Option<String>,
    /// Address of the peer; absent behind a proxy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remote_ip: Option<String>,
    /// Request line and headers as they were sent, secrets taken out: the bytes of the wire for HTTP/1, one
    /// line a header for HTTP/2. Empty where nothing went out.
    #[serde(default)]
    pub request_head: RawText,
    /// The body of the request; absent for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_body: Option<RawText>,
    /// Status line and headers: the bytes of the wire for HTTP/1, one line a header for HTTP/2.
    #[serde(default)]
    pub response_head: RawText,
    /// The media type without parameters, in small letters; absent where the server named none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_type: Option<String>,
    /// Encoding of a text body and how it is known; absent for bodies that are no text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub charset: Option<CharsetSpec>,
    /// Content encodings that were removed from the body, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub removed_encodings: Vec<String>,
    /// Bytes of the body on the wire, content encodings included, transfer coding not.
    pub wire_len: u64,
    /// Bytes of the body as it is kept, encodings removed.
    pub body_len: u64,
    /// SHA-256 of the body as it is kept; absent where no response came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body_sha256: Option<BodyHash>,
    /// Whether the body is whole.
    #[serde(skip_serializing_if = "Truncated::is_none", default)]
    pub truncated: Truncated,
    /// Why there is no response, in one line; absent where one came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// The id of the response at `hop` of the `attempt`-th try: whoever computes it again gets the same.
#[must_use]
pub fn capture_id(run: &RunKey, key: &RequestKey, attempt: u32, hop: u32) -> CaptureId {
    let (source, date, run) = (&run.source, run.date, &run.run);
    let text = format!("capture/1\n{source}\n{date}\n{run}\n{key}\n{attempt}\n{hop}");
    CaptureId::of(text.as_bytes())
}

/// The id under which a pack holds a response whose own id is that of another response of the same attempt: `line` is the
/// BLAKE3 hash of its line as the part has it.
#[must_use]
pub fn twin_id(id: &CaptureId, line: &[u8; 32]) -> CaptureId {
    let head = format!("twin/1\n{id}\n").into_bytes();
    CaptureId::of(&[&head[..], &line[..]].concat())
}

/// The key of a request: what is asked for. Each part is led by its length, so that no two requests meet
/// (`POST /fo` with `o` is not `POST /foo`); an absent body is not an empty one.
#[must_use]
pub fn request_key(stage: &StageName, method: &str, url: &str, body: Option<&[u8]>) -> RequestKey {
    let mut bytes = b"request/1".to_vec();
    let parts = [stage.as_str().as_bytes(), method.as_bytes(), url.as_bytes()];
    for part in parts.into_iter().chain(body) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    RequestKey::of(&bytes)
}

/// The encoding of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharsetSpec {
    /// WHATWG name in small letters, such as `utf-8`, `gbk` or `big5`.
    pub name: String,
    /// What told it.
    pub from: CharsetOrigin,
}

impl CharsetSpec {
    /// The text of a body in this encoding, without its byte order mark. Bytes that are not valid in it
    /// become U+FFFD, and so does everything under a name that no standard knows.
    #[must_use]
    pub fn text<'a>(&self, body: &'a [u8]) -> Cow<'a, str> {
        let encoding = encoding_rs::Encoding::for_label(self.name.as_bytes());
        let encoding = encoding.unwrap_or(encoding_rs::REPLACEMENT);
        encoding.decode_with_bom_removal(body).0
    }
}

/// What told the encoding of a body, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CharsetOrigin {
    /// A byte order mark.
    Bom,
    /// The header `Content-Type`.
    Http,
    /// A `meta` element or an XML declaration.
    Meta,
    /// Guessed from the bytes.
    Detected,
}

/// Whether a body is whole, by the words of WARC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncated {
    /// It is.
    #[default]
    None,
    /// Cut at the size limit.
    Length,
    /// Cut at the time limit.
    Time,
    /// The peer went away.
    Disconnect,
}

impl Truncated {
    /// Whether the body is whole.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Bytes that are text as a rule: a JSON string, or `{"base64": "..."}` where they are not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "RawTextForm", into = "RawTextForm")]
pub struct RawText(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RawTextForm {
    Text(String),
    Bytes {
        #[serde(with = "base64_bytes")]
        base64: Vec<u8>,
    },
}

impl From<RawTextForm> for RawText {
    fn from(form: RawTextForm) -> Self {
        match form {
            RawTextForm::Text(text) => Self(text.into_bytes()),
            RawTextForm::Bytes { base64 } => Self(base64),
        }
    }
}

impl From<RawText> for RawTextForm {
    fn from(raw: RawText) -> Self {
        match String::from_utf8(raw.0) {
            Ok(text) => Self::Text(text),
            Err(e) => Self::Bytes {
                base64: e.into_bytes(),
            },
        }
    }
}

mod base64_bytes {
    use super::Engine;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64::engine::general_purpose::STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_come_back() {
        for bytes in [&b"HTTP/1.1 200 OK\r\n"[..], &[0xff, 0, 0xc3], b""] {
            let text = serde_json::to_string(&RawText(bytes.to_vec())).unwrap();
            let back: RawText = serde_json::from_str(&text).unwrap();
            assert_eq!(back.0, bytes, "{text}");
        }
    }

    #[test]
    fn a_capture_id_depends_on_every_part() {
        let run = RunKey {
            source: "wechat".parse().unwrap(),
            date: "2026-11-30".parse().unwrap(),
            run: "day".parse().unwrap(),
        };
        let other = RunKey {
            run: "0900".parse().unwrap(),
            ..run.clone()
        };
        let key: RequestKey = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let ids = [
            capture_id(&run, &key, 1, 0),
            capture_id(&run, &key, 2, 0),
            capture_id(&run, &key, 1, 1),
            capture_id(&other, &key, 1, 0),
        ];
        for (i, id) in ids.iter().enumerate() {
            assert!(!ids[..i].contains(id));
        }
        assert_eq!(ids[0], capture_id(&run, &key, 1, 0));
    }
}
