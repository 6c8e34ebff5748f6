//! The fetch itself: hop after hop, until there is an answer or a reason for none.
//!
//! ```text
//!          check: go              response              2xx, accepted          -> Answered
//! start -> headers, cookies -> exchange -> capture ->  304 to a condition     -> NotModified
//!   ^                                      kept        429, 503 Retry-After   -> RateLimited
//!   |                                                  redirect, rules allow  -> next hop
//!   +------------------------------------------------  anything else          -> Failed(class)
//! ```

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use tokio::time::Instant as Deadline;

use super::body::BodyLimit;
use super::capture::capture;
use super::class::FailureClass;
use super::exchange::{Exchanger, HopRequest, HopResponse};
use super::head::{is_secret, text_of};
use super::options::{FetchOptions, is_own_header, standard_headers};
use super::outcome::{
    Capture, Continuation, Failure, FetchOutcome, FetchRequest, Fetched, HopCheck, HopDecision,
};
use super::redirect::{is_loop, is_redirect, next_hop};
use super::retry_after::answered_at;
use super::robots_reader::RobotsReader;
use crate::error::Result;
use crate::spec::{CanonicalUrl, RobotsState};
use crate::time::Clock;

/// What is kept of the body of a redirect that is followed.
const MAX_REDIRECT_BODY_BYTES: u64 = 64 * 1024;

/// Fetches for one source. Clones share connections and cookies.
#[derive(Debug, Clone)]
pub struct Fetcher {
    options: Arc<FetchOptions>,
    exchanger: Exchanger,
    clock: Arc<Clock>,
}

/// What follows a hop.
enum Step {
    Next(Continuation),
    End(FetchOutcome),
}

impl From<Failure> for Step {
    fn from(failure: Failure) -> Self {
        Self::End(FetchOutcome::Failed(failure))
    }
}

impl Fetcher {
    /// A fetcher that keeps to these options.
    ///
    /// # Errors
    /// `InvalidInput` if certificates or headers of the options cannot be used.
    pub fn new(options: FetchOptions, clock: Arc<Clock>) -> Result<Self> {
        options.check()?;
        let options = Arc::new(options);
        Ok(Self {
            exchanger: Exchanger::new(options.clone(), clock.clone())?,
            options,
            clock,
        })
    }

    /// What it keeps to.
    #[must_use]
    pub fn options(&self) -> &FetchOptions {
        &self.options
    }

    /// Fetches one request, its redirects included; `check` is asked before every hop.
    ///
    /// It always ends, within the total time of the options.
    pub async fn fetch(&self, request: &FetchRequest, check: &dyn HopCheck) -> Fetched {
        let deadline = Deadline::now() + self.options.limits.total;
        let mut captures = Vec::new();
        let mut hop = request
            .resume
            .clone()
            .unwrap_or_else(|| Continuation::start(request));
        loop {
            let step = self.make_hop(request, hop, check, deadline, &mut captures);
            match step.await {
                Step::Next(next) => hop = next,
                Step::End(outcome) => return Fetched { outcome, captures },
            }
        }
    }

    /// Reads the `robots.txt` of the origin of a URL, for [`RobotsRules`](super::RobotsRules); `previous` is
    /// what was known of it, so that an unchanged text is not sent again.
    ///
    /// The state says how long it holds; it is never an error that the file cannot be read.
    pub async fn read_robots(
        &self,
        of: &CanonicalUrl,
        previous: Option<&RobotsState>,
    ) -> RobotsState {
        RobotsReader::new(&self.options, &self.exchanger, &self.clock)
            .read(of, previous)
            .await
    }

    async fn make_hop(
        &self,
        request: &FetchRequest,
        hop: Continuation,
        check: &dyn HopCheck,
        deadline: Deadline,
        captures: &mut Vec<Capture>,
    ) -> Step {
        if let Some(end) = stopped(&hop, check, deadline).await {
            return Step::End(end);
        }
        let headers = match self.headers(request, &hop) {
            Ok(headers) => headers,
            Err(failure) => return failure.into(),
        };
        let state = text_of(&headers, &header::COOKIE).unwrap_or_default();
        if is_loop(&hop, &state) {
            let text = format!("a redirect leads back to `{}`", hop.url);
            return Failure::new(FailureClass::RedirectLoop, text).into();
        }
        let is_conditional = headers.contains_key(header::IF_NONE_MATCH)
            || headers.contains_key(header::IF_MODIFIED_SINCE);
        let has_range = headers.contains_key(header::RANGE);
        let body = request.body.clone().filter(|_| hop.with_body);
        let end = self
            .exchanger
            .make(HopRequest {
                method: &hop.method,
                url: &hop.url,
                headers,
                body: body.clone(),
                limit: self.body_limit(),
                redirect_limit: self.redirect_limit(),
                deadline,
            })
            .await;
        captures.push(capture(request, &hop, &end, body).await);
        let response = match end.answer {
            Ok(response) => response,
            Err((class, message)) => return Failure::new(class, message).into(),
        };
        if let Some(jar) = &self.options.cookies {
            let values = response.headers.get_all(header::SET_COOKIE);
            jar.take(values.iter().map(HeaderValue::as_bytes), hop.url.url());
        }
        self.judge(
            &hop,
            response,
            &Sent {
                state,
                is_conditional,
                has_range,
            },
        )
    }

    fn body_limit(&self) -> BodyLimit {
        BodyLimit {
            max_wire: self.options.limits.max_wire_bytes,
            max_body: self.options.limits.max_body_bytes,
            wants_beginning: false,
        }
    }

    /// Bodies of redirects are kept for evidence, and there may be many: their beginning will do.
    fn redirect_limit(&self) -> BodyLimit {
        let is_answer = self
            .options
            .accepted_statuses
            .iter()
            .any(|s| is_redirect(*s));
        if is_answer {
            return self.body_limit();
        }
        BodyLimit::beginning(MAX_REDIRECT_BODY_BYTES.min(self.options.limits.max_wire_bytes))
    }

    /// What a response means for the fetch.
    fn judge(&self, hop: &Continuation, response: HopResponse, sent: &Sent) -> Step {
        let status = response.status.as_u16();
        let is_partial = response.status == StatusCode::PARTIAL_CONTENT && !sent.has_range;
        let is_accepted = (response.status.is_success() && !is_partial)
            || self.options.accepted_statuses.contains(&status);
        if is_accepted {
            return match response.trouble {
                None => Step::End(FetchOutcome::Answered),
                Some((class, message)) => Failure::new(class, message).into(),
            };
        }
        if response.status == StatusCode::NOT_MODIFIED && sent.is_conditional {
            return Step::End(FetchOutcome::NotModified);
        }
        let location = response.headers.get(header::LOCATION);
        if is_redirect(status)
            && let Some(location) = location
        {
            let location = String::from_utf8_lossy(location.as_bytes());
            return match next_hop(hop, status, &location, &sent.state, self.options.redirects) {
                Ok(next) => Step::Next(next),
                Err(failure) => failure.into(),
            };
        }
        if let Some(limited) = self.rate_limit(response.status, &response.headers) {
            return Step::End(limited);
        }
        let class = FailureClass::Http(status);
        let mut failure =
            Failure::new(class, format!("`{}` answered {}", hop.url, response.status));
        failure.is_retryable |= self.options.retried_statuses.contains(&status);
        failure.into()
    }

    fn rate_limit(&self, status: StatusCode, headers: &HeaderMap) -> Option<FetchOutcome> {
        let now = answered_at(headers).unwrap_or_else(|| self.clock.now());
        let limits = self.options.retry_after;
        let named = text_of(headers, &header::RETRY_AFTER).and_then(|v| limits.read(&v, now));
        let wait = match status {
            StatusCode::TOO_MANY_REQUESTS => named.unwrap_or_else(|| limits.unnamed()),
            StatusCode::SERVICE_UNAVAILABLE => named?,
            _ => return None,
        };
        let class = FailureClass::Http(status.as_u16());
        Some(FetchOutcome::RateLimited { class, wait })
    }

    /// The headers of a hop: those of the source, of its origin and of the request, cookies, validators.
    fn headers(
        &self,
        request: &FetchRequest,
        hop: &Continuation,
    ) -> std::result::Result<HeaderMap, Failure> {
        let bad = |text: String| Failure::new(FailureClass::BadRequest, text);
        if request.method == Method::CONNECT {
            return Err(bad("CONNECT is for proxies".to_owned()));
        }
        let mut headers = standard_headers(&self.options.user_agent)
            .ok_or_else(|| bad("the user agent is no header value".to_owned()))?;
        let of_origin = self.options.origin_headers.get(&hop.url.origin());
        for (name, value) in self
            .options
            .headers
            .iter()
            .chain(of_origin.into_iter().flatten())
        {
            headers.insert(name.clone(), value.clone());
        }
        let mut own: HeaderMap = HeaderMap::new();
        for (name, value) in &request.headers {
            let parsed = name
                .parse::<HeaderName>()
                .ok()
                .zip(HeaderValue::from_bytes(value.as_bytes()).ok());
            let Some((name, value)) = parsed.filter(|(name, _)| !is_own_header(name)) else {
                return Err(bad(format!("the header `{name}` cannot be sent")));
            };
            let stays = !hop.left_origin || !is_secret(&name, &self.options.secret_headers);
            let describes_body = name.as_str().starts_with("content-");
            if stays && (hop.with_body || !describes_body) {
                own.append(name, value);
            }
        }
        for name in own.keys() {
            headers.remove(name);
        }
        headers.extend(own);
        if !headers.contains_key(header::COOKIE)
            && let Some(jar) = &self.options.cookies
            && let Some(cookies) = jar.header(hop.url.url())
            && let Ok(value) = HeaderValue::from_bytes(cookies.as_bytes())
        {
            headers.insert(header::COOKIE, value);
        }
        let validators = (request.validators.iter()).filter(|v| v.url == hop.url);
        for validators in validators.filter(|_| matches!(hop.method, Method::GET | Method::HEAD)) {
            let pairs = [
                (header::IF_NONE_MATCH, &validators.etag),
                (header::IF_MODIFIED_SINCE, &validators.last_modified),
            ];
            for (name, text) in pairs {
                if let Some(value) = text
                    .as_ref()
                    .and_then(|t| HeaderValue::from_bytes(t.as_bytes()).ok())
                {
                    headers.insert(name, value);
                }
            }
        }
        Ok(headers)
    }
}

/// What of the sent request its response is judged by.
struct Sent {
    state: String,
    is_conditional: bool,
    has_range: bool,
}

/// Asks whether a hop may go; how the fetch ends if it may not.
async fn stopped(
    hop: &Continuation,
    check: &dyn HopCheck,
    deadline: Deadline,
) -> Option<FetchOutcome> {
    let failed = |class, text: String| Some(FetchOutcome::Failed(Failure::new(class, text)));
    match tokio::time::timeout_at(deadline, check.admit(hop)).await {
        Ok(HopDecision::Go) => None,
        Ok(HopDecision::NotNow { wait }) => Some(FetchOutcome::Deferred {
            next: hop.clone(),
            wait,
        }),
        Ok(HopDecision::Refuse(class)) => {
            failed(class, format!("`{}` may not be fetched: {class}", hop.url))
        }
        Err(_) => {
            let text = "the check of a hop took the whole time".to_owned();
            failed(FailureClass::TimeoutTotal, text)
        }
    }
}
