//! A finish with its bytes: the JSON of the call in one line, a line feed, then the bodies, one behind the other.
//!
//! ```text
//! {"worker": "...", "attempt": 1, "end": "done", "responses": [{"body_bytes": 5120, ...}]} LF <5120 bytes>
//! ```
//! JSON never has a bare line feed within its strings, so the first one ends it: nothing is encoded, nothing is
//! looked for in the bytes, and every body is as long as its response says.

use bytes::Bytes;
use lakebed::crawl::{ToldEnd, ToldFinish, ToldLinks, ToldResponse};
use lakebed::spec::Truncated;
use serde::de::DeserializeOwned;

use crate::api::fail::{Code, Fail};
use crate::api::shape::{EndShape, FinishCall, HeaderShape, ResponseShape, TruncatedShape};

/// The media type of a finish with bytes.
pub(super) const FRAMED: &str = "application/vnd.lakebed.finish";
/// Longest JSON of a call, bytes.
pub(super) const MAX_CALL_BYTES: u64 = 16 << 20;
/// Responses of one claim.
const MAX_RESPONSES: usize = 64;

/// Reads JSON; what does not fit is named by its place.
pub(super) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fail> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let bad = |path: String, e: serde_json::Error| {
        let fail = Fail::new(Code::BadJson, format!("the call cannot be read: {e}"));
        match path.as_str() {
            "." | "?" => fail,
            _ => fail.with("path", path),
        }
    };
    let read = serde_path_to_error::deserialize(&mut reader)
        .map_err(|e| bad(e.path().to_string(), e.into_inner()))?;
    reader.end().map_err(|e| bad(".".to_owned(), e))?;
    Ok(read)
}

/// A finish and the bodies of its responses.
pub(super) struct Framed {
    pub(super) call: FinishCall,
    bodies: Vec<Bytes>,
}

/// Splits a body of [`FRAMED`]; `max_body` is the most that one response may have.
pub(super) fn split(bytes: &Bytes, max_body: u64) -> Result<Framed, Fail> {
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
        return Err(Fail::new(
            Code::BadFrame,
            "the JSON of the call does not end with a line feed",
        )
        .hint("one line of JSON, a line feed, then the bytes of the bodies"));
    };
    if end as u64 > MAX_CALL_BYTES {
        let message = format!("the JSON of the call is longer than {MAX_CALL_BYTES} bytes");
        return Err(Fail::new(Code::TooLarge, message));
    }
    let call: FinishCall = read_json(&bytes[..end])?;
    cut(call, bytes.slice(end + 1..), max_body)
}

/// A finish in plain JSON has no bytes.
pub(super) fn plain(bytes: &[u8]) -> Result<Framed, Fail> {
    cut(read_json(bytes)?, Bytes::new(), 0)
}

fn cut(call: FinishCall, mut rest: Bytes, max_body: u64) -> Result<Framed, Fail> {
    if call.responses.len() > MAX_RESPONSES {
        let message = format!("{} responses of one claim", call.responses.len());
        return Err(Fail::invalid("responses", message).hint("at most 64"));
    }
    let announced = call
        .responses
        .iter()
        .try_fold(0_u64, |sum, r| sum.checked_add(r.body_bytes));
    if announced != Some(rest.len() as u64) {
        let message = format!(
            "the responses announce {} bytes of bodies, {} came",
            announced.map_or_else(|| "too many".to_owned(), |n| n.to_string()),
            rest.len()
        );
        let hint = format!("bodies follow the JSON and a line feed, as `{FRAMED}`");
        return Err(Fail::new(Code::BadFrame, message).hint(hint));
    }
    let mut bodies = Vec::with_capacity(call.responses.len());
    for (i, response) in call.responses.iter().enumerate() {
        if response.body_bytes > max_body {
            let message = format!(
                "a body of {} bytes, the source takes {max_body}",
                response.body_bytes
            );
            return Err(Fail::new(Code::TooLarge, message)
                .with("path", format!("responses[{i}].body_bytes"))
                .hint("finish it as `failed` with the class `body_too_large`, or raise `max_body_mib` of the source"));
        }
        bodies.push(rest.split_to(usize::try_from(response.body_bytes).unwrap_or(rest.len())));
    }
    Ok(Framed { call, bodies })
}

impl Framed {
    /// As the desk takes it; `id` is the request's number.
    pub(super) fn told(self, id: i64) -> Result<ToldFinish, Fail> {
        let Self { call, bodies } = self;
        check_combination(&call)?;
        let end = match call.end {
            EndShape::Done => ToldEnd::Done(match call.follow {
                None => None,
                Some(follow) => {
                    let specs = follow.into_iter().enumerate().map(|(i, link)| {
                        let path = format!("follow[{i}].stage");
                        link.into_spec()
                            .map_err(|e| Fail::from(e.with("path", path)))
                    });
                    Some(ToldLinks {
                        requests: specs.collect::<Result<_, _>>()?,
                        announced: call.announced,
                        expects: call.expects.into_iter().map(Into::into).collect(),
                    })
                }
            }),
            EndShape::Failed => ToldEnd::Failed {
                class: call
                    .class
                    .map(|c| c.parse())
                    .transpose()
                    .map_err(|e: lakebed::Error| Fail::from(e.with("path", "class")))?,
                retry: call.retry,
            },
            EndShape::Blocked => ToldEnd::Blocked(
                call.wait_ms
                    .map(|ms| i64::try_from(ms.saturating_mul(1000)).unwrap_or(i64::MAX)),
            ),
            EndShape::GivenBack => ToldEnd::GivenBack,
        };
        let responses = call.responses.into_iter().zip(bodies);
        Ok(ToldFinish {
            id,
            attempt: call.attempt,
            responses: responses.map(|(r, body)| response(r, body)).collect(),
            hidden_redirects: call.hidden_redirects,
            end,
        })
    }
}

/// Keys that belong to another end: a `class` with `done` is a mistake somewhere.
fn check_combination(call: &FinishCall) -> Result<(), Fail> {
    let (done, failed, blocked) = (
        call.end == EndShape::Done,
        call.end == EndShape::Failed,
        call.end == EndShape::Blocked,
    );
    let keys = [
        ("follow", call.follow.is_some(), done, "done"),
        ("announced", call.announced.is_some(), done, "done"),
        ("expects", !call.expects.is_empty(), done, "done"),
        ("class", call.class.is_some(), failed, "failed"),
        ("retry", call.retry.is_some(), failed, "failed"),
        ("wait_ms", call.wait_ms.is_some(), blocked, "blocked"),
    ];
    for (key, is_there, fits, end) in keys {
        if is_there && !fits {
            return Err(Fail::invalid(
                key,
                format!("`{key}` belongs to the end `{end}`"),
            ));
        }
    }
    let needs_follow = call.announced.is_some() || !call.expects.is_empty();
    if needs_follow && call.follow.is_none() {
        return Err(Fail::invalid(
            "follow",
            "`announced` and `expects` come with `follow`",
        ));
    }
    Ok(())
}

fn response(shape: ResponseShape, body: Bytes) -> ToldResponse {
    let pairs = |headers: Vec<HeaderShape>| headers.into_iter().map(|h| (h.0, h.1.0)).collect();
    ToldResponse {
        url: shape.url,
        method: shape.method,
        status: shape.status,
        http_version: shape.http_version,
        reason: shape.reason,
        headers: pairs(shape.headers),
        request_headers: shape.request_headers.map(pairs),
        body,
        is_empty: shape.empty,
        removed_encodings: shape.removed_encodings,
        wire_len: shape.wire_bytes,
        truncated: match shape.truncated {
            TruncatedShape::None => Truncated::None,
            TruncatedShape::Length => Truncated::Length,
            TruncatedShape::Time => Truncated::Time,
            TruncatedShape::Disconnect => Truncated::Disconnect,
        },
        error: shape.error,
        age_us: i64::try_from(shape.age_ms.saturating_mul(1000)).unwrap_or(i64::MAX),
        remote_ip: shape.remote_ip,
    }
}
