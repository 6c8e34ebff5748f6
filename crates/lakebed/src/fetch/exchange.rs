//! One hop: a request goes out, and its response is read, unpacked and described.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::Instant as Deadline;

use super::body::{BodyLimit, read_body};
use super::class::FailureClass;
use super::decode::{DecodeEnd, Decoded, decode};
use super::dial::{Peer, proxy_authorization};
use super::head::{mask_cookies, mask_secrets, request_head, response_head};
use super::options::{FetchOptions, ProxyKind};
use super::redirect::is_redirect;
use super::tap::Tap;
use super::transport::{Sent, Transport};
use crate::error::Result;
use crate::spec::{CanonicalUrl, Truncated};
use crate::time::{Clock, Instant};

/// Bodies longer than this are unpacked on a thread of their own.
const INLINE_DECODE_BYTES: usize = 64 * 1024;

/// What goes out.
#[derive(Debug)]
pub(super) struct HopRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) url: &'a CanonicalUrl,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) limit: BodyLimit,
    /// What is taken of the body of a redirect that will be followed.
    pub(super) redirect_limit: BodyLimit,
    pub(super) deadline: Deadline,
}

/// What came back, or that nothing did.
#[derive(Debug)]
pub(super) struct HopEnd {
    /// The head that went out, without secrets; empty where nothing went out.
    pub(super) request_head: Vec<u8>,
    /// When the head of the response came, or the failure.
    pub(super) at: Instant,
    pub(super) answer: std::result::Result<HopResponse, (FailureClass, String)>,
}

/// A response.
#[derive(Debug)]
pub(super) struct HopResponse {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    /// As it is recorded.
    pub(super) head: Vec<u8>,
    pub(super) peer: Option<IpAddr>,
    pub(super) wire_len: u64,
    pub(super) body: Bytes,
    pub(super) removed: Vec<String>,
    pub(super) truncated: Truncated,
    /// Why the body is not what was meant; absent for a good one.
    pub(super) trouble: Option<(FailureClass, String)>,
}

/// Makes hops for one source; clones share connections.
#[derive(Debug, Clone)]
pub(super) struct Exchanger {
    options: Arc<FetchOptions>,
    transport: Transport,
    clock: Arc<Clock>,
}

impl Exchanger {
    pub(super) fn new(options: Arc<FetchOptions>, clock: Arc<Clock>) -> Result<Self> {
        Ok(Self {
            transport: Transport::new(&options)?,
            options,
            clock,
        })
    }

    /// Makes one hop. It does not follow redirects and does not touch cookies.
    pub(super) async fn make(&self, hop: HopRequest<'_>) -> HopEnd {
        let secret = &self.options.secret_headers;
        let over_http2 = || {
            let mut headers = hop.headers.clone();
            if let Ok(value) = hop.url.host_key().parse() {
                headers.insert(header::HOST, value);
            }
            request_head(hop.method, hop.url.path_and_query(), &headers)
        };
        let failed = |class, message, sent: Sent| HopEnd {
            request_head: match sent {
                Sent::Nothing => Vec::new(),
                Sent::Head(head) => mask_secrets(&head, secret),
                Sent::Http2 => mask_secrets(&over_http2(), secret),
            },
            at: self.clock.now(),
            answer: Err((class, message)),
        };
        let request = match self.request(&hop) {
            Ok(request) => request,
            Err(message) => return failed(FailureClass::BadRequest, message, Sent::Nothing),
        };
        let response = match self.transport.send(request, hop.deadline).await {
            Ok(response) => response,
            Err(e) => return failed(e.class, e.message, e.sent),
        };
        let at = self.clock.now();
        let tap = response.extensions().get::<Tap>().cloned();
        let head = tap.as_ref().map_or_else(over_http2, Tap::request_head);
        let mut received = receive(response, tap.as_ref(), &hop).await;
        if !self.options.record_set_cookie {
            received.head = mask_cookies(&received.head);
        }
        HopEnd {
            request_head: mask_secrets(&head, secret),
            at,
            answer: Ok(received),
        }
    }

    fn request(&self, hop: &HopRequest<'_>) -> std::result::Result<Request<Full<Bytes>>, String> {
        let uri: Uri = (hop.url.as_str().parse()).map_err(|e| format!("`{}`: {e}", hop.url))?;
        let body = Full::new(hop.body.clone().unwrap_or_default());
        let mut request = Request::new(body);
        *request.method_mut() = hop.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = hop.headers.clone();
        let forwarding = (self.options.proxy.as_ref())
            .filter(|p| p.kind == ProxyKind::Http && !hop.url.is_https());
        if let Some(value) = forwarding.and_then(proxy_authorization) {
            request
                .headers_mut()
                .insert(header::PROXY_AUTHORIZATION, value);
        }
        Ok(request)
    }
}

async fn receive(
    response: http::Response<Incoming>,
    tap: Option<&Tap>,
    hop: &HopRequest<'_>,
) -> HopResponse {
    let (parts, incoming) = response.into_parts();
    let is_followed =
        is_redirect(parts.status.as_u16()) && parts.headers.contains_key(header::LOCATION);
    let limit = if is_followed {
        hop.redirect_limit
    } else {
        hop.limit
    };
    let head = tap
        .and_then(Tap::response_head)
        .unwrap_or_else(|| response_head(parts.status, &parts.headers));
    let wire = read_body(incoming, limit, hop.deadline).await;
    let wire_len = u64::try_from(wire.bytes.len()).unwrap_or(u64::MAX);
    let encodings: Vec<String> = (parts.headers.get_all(header::CONTENT_ENCODING).iter())
        .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
        .collect();
    let decoded = unpack(wire.bytes, encodings, limit.max_body).await;
    let (truncated, trouble) = match (wire.truncated, decoded.end) {
        (Truncated::None, DecodeEnd::Whole) => (Truncated::None, None),
        (Truncated::None, DecodeEnd::TooLarge) => {
            let text = format!(
                "the body is longer than {} bytes without its encodings",
                limit.max_body
            );
            (Truncated::Length, Some((FailureClass::BodyTooLarge, text)))
        }
        (Truncated::None, DecodeEnd::Broken(why)) => {
            let text = format!("the content encoding cannot be undone: {why}");
            (Truncated::None, Some((FailureClass::Decode, text)))
        }
        (cut, _) => {
            let class = match cut {
                Truncated::None | Truncated::Length => FailureClass::BodyTooLarge,
                Truncated::Time => FailureClass::TimeoutTotal,
                Truncated::Disconnect => FailureClass::Disconnect,
            };
            (cut, Some((class, wire.message)))
        }
    };
    HopResponse {
        peer: parts.extensions.get::<Peer>().map(|p| p.0),
        status: parts.status,
        version: parts.version,
        headers: parts.headers,
        head,
        wire_len,
        body: decoded.body,
        removed: decoded.removed,
        truncated,
        trouble,
    }
}

async fn unpack(wire: Bytes, encodings: Vec<String>, max: u64) -> Decoded {
    if wire.len() <= INLINE_DECODE_BYTES {
        return decode(wire, &encodings, max);
    }
    let kept = wire.clone();
    let unpacked = tokio::task::spawn_blocking(move || decode(wire, &encodings, max)).await;
    unpacked.unwrap_or_else(|e| Decoded {
        body: kept,
        removed: Vec::new(),
        end: DecodeEnd::Broken(e.to_string()),
    })
}
