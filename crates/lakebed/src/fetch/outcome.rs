//! What goes into a fetch and what comes out: a request, the captures of its hops, and one outcome.
//!
//! FET-2: a fetch always ends in a value of [`FetchOutcome`]; whatever a server or a network does, it is
//! never an error of the program, and every response that came is among the captures.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};

use super::class::FailureClass;
use super::head::header_values;
use crate::name::{RequestKey, StageName};
use crate::spec::{CanonicalUrl, CaptureRecord, RunKey};

/// One request to fetch, as the queue hands it out.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// The run it belongs to.
    pub run: RunKey,
    /// Its key in the queue.
    pub key: RequestKey,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The stage it belongs to.
    pub kind: StageName,
    /// `GET`, `POST` and so on; not `CONNECT`.
    pub method: Method,
    /// What to ask for.
    pub url: CanonicalUrl,
    /// Headers of this request, over those of the source. Not those that frame a message or name its host.
    pub headers: Vec<(String, String)>,
    /// Its body; absent for none. Its media type is one of the headers.
    pub body: Option<Bytes>,
    /// What an earlier response said to recognize the page by; absent to take it whatever it is.
    pub validators: Option<Validators>,
    /// Where a deferred fetch goes on; absent to begin at `url`.
    pub resume: Option<Continuation>,
}

/// What a response said to recognize an unchanged page by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// The URL they were said of: they are sent to it alone.
    pub url: CanonicalUrl,
    /// The text of `ETag`, quotes included.
    pub etag: Option<String>,
    /// The text of `Last-Modified`.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Those of a capture; `None` if its response had neither.
    #[must_use]
    pub fn of(record: &CaptureRecord) -> Option<Self> {
        let first = |name| {
            header_values(&record.response_head.0, name)
                .into_iter()
                .next()
        };
        let (etag, last_modified) = (first("etag"), first("last-modified"));
        if etag.is_none() && last_modified.is_none() {
            return None;
        }
        Some(Self {
            url: record.url.parse().ok()?,
            etag,
            last_modified,
        })
    }
}

/// Everything a fetch gave.
#[derive(Debug, Clone)]
#[must_use = "the outcome says whether there is an answer"]
pub struct Fetched {
    /// How it ended.
    pub outcome: FetchOutcome,
    /// One for each hop that was tried, in order; those of failed hops have no response. Empty where
    /// nothing went out. After [`FetchOutcome::Answered`] the last one is the answer.
    pub captures: Vec<Capture>,
}

/// A capture and its body.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Everything but the body.
    pub record: CaptureRecord,
    /// The body without its content encodings.
    pub body: Bytes,
}

/// How a fetch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchOutcome {
    /// A whole response with a status that counts as an answer: 2xx, and what the source accepts.
    Answered,
    /// 304 to a conditional request: what the validators came from still holds.
    NotModified,
    /// The host asked for patience (429, or 503 with `Retry-After`): it wants no request for so long.
    RateLimited {
        /// `http_429` or `http_503`.
        class: FailureClass,
        /// From its answer on, within the configured bounds.
        wait: Duration,
    },
    /// The check said "not now" to a hop: nothing went to it.
    Deferred {
        /// Where to go on, with [`FetchRequest::resume`].
        next: Continuation,
        /// Not before so long has passed; absent where the check named no time.
        wait: Option<Duration>,
    },
    /// No answer.
    Failed(Failure),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the queue counts it as.
    pub class: FailureClass,
    /// Whether another attempt is worth it.
    pub is_retryable: bool,
    /// One line for a person.
    pub message: String,
}

impl Failure {
    /// A failure that is retried as its class says.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            is_retryable: class.is_retryable(),
            message: message.into(),
        }
    }
}

/// Where a fetch stands between two hops. Plain data, so that another process may go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// The hop to make next: 0 for the request itself.
    pub hop: u32,
    /// Its method, after the rules of redirects.
    #[serde(with = "method_text")]
    pub method: Method,
    /// Its URL.
    pub url: CanonicalUrl,
    /// Whether the body of the request is still sent.
    pub with_body: bool,
    /// Whether a hop left the origin of the request: its credentials are not sent any more.
    pub left_origin: bool,
    /// Hashes of what was asked before, to tell a loop.
    pub(super) seen: Vec<String>,
}

impl Continuation {
    /// The beginning of a fetch.
    #[must_use]
    pub fn start(request: &FetchRequest) -> Self {
        Self {
            hop: 0,
            method: request.method.clone(),
            url: request.url.clone(),
            with_body: request.body.is_some(),
            left_origin: false,
            seen: Vec::new(),
        }
    }
}

mod method_text {
    use http::Method;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(method: &Method, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(method.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Method, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a check says to a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HopDecision {
    /// Send it.
    Go,
    /// The host has its turn later; the fetch ends as [`FetchOutcome::Deferred`].
    NotNow {
        /// Not before so long has passed; absent if it is not known.
        wait: Option<Duration>,
    },
    /// Never: the fetch ends as [`FetchOutcome::Failed`] with this class, such as
    /// [`FailureClass::Robots`].
    Refuse(FailureClass),
}

/// Asked before every hop, the first included: `robots.txt` and the limits of a host apply to where a
/// redirect leads, too. Its time counts into the time of the fetch.
#[async_trait::async_trait]
pub trait HopCheck: Send + Sync {
    /// Whether this hop may be sent now.
    async fn admit(&self, hop: &Continuation) -> HopDecision;
}

/// Lets every hop go, for what is known to be allowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHopCheck;

#[async_trait::async_trait]
impl HopCheck for NoHopCheck {
    async fn admit(&self, _hop: &Continuation) -> HopDecision {
        HopDecision::Go
    }
}
