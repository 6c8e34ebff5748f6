//! Reads the `robots.txt` of an origin, by the rules of RFC 9309, 2.3.1.
//!
//! | what came | what it means |
//! | --- | --- |
//! | 2xx | its text, the first 500 KiB of it |
//! | 304 to a condition | the text that is known |
//! | 4xx but 429, more than five redirects | there is none: everything is allowed |
//! | 429, 5xx, any failure of the network, a text that broke off | nothing is allowed until it can be read |

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use tokio::time::Instant as Deadline;

use super::body::BodyLimit;
use super::class::FailureClass;
use super::exchange::{Exchanger, HopRequest, HopResponse};
use super::head::text_of;
use super::options::{FetchOptions, MAX_ROBOTS_TTL, standard_headers};
use super::redirect::is_redirect;
use super::retry_after::{answered_at, later};
use super::robots::MAX_ROBOTS_BYTES;
use crate::spec::{CanonicalUrl, QueryOrder, RobotsContent, RobotsState, Truncated};
use crate::time::Clock;

/// Redirects that are followed.
const MAX_REDIRECTS: u32 = 5;

/// Reads for one fetcher.
pub(super) struct RobotsReader<'a> {
    options: &'a FetchOptions,
    exchanger: &'a Exchanger,
    clock: &'a Arc<Clock>,
}

/// What a state is made of.
struct Reading {
    content: RobotsContent,
    etag: Option<String>,
    last_modified: Option<String>,
    holds_for: Duration,
}

impl<'a> RobotsReader<'a> {
    pub(super) fn new(
        options: &'a FetchOptions,
        exchanger: &'a Exchanger,
        clock: &'a Arc<Clock>,
    ) -> Self {
        Self {
            options,
            exchanger,
            clock,
        }
    }

    pub(super) async fn read(
        &self,
        of: &CanonicalUrl,
        previous: Option<&RobotsState>,
    ) -> RobotsState {
        let deadline = Deadline::now() + self.options.limits.total;
        let start = of.join("/robots.txt", QueryOrder::Kept);
        let reading = match start {
            Ok(url) => self.follow(url, previous, deadline).await,
            Err(_) => self.unreachable(FailureClass::BadUrl, None),
        };
        let now = self.clock.now();
        RobotsState {
            fetched_at: now,
            expires_at: later(now, reading.holds_for),
            content: reading.content,
            etag: reading.etag,
            last_modified: reading.last_modified,
            // Counted by who knows what came before.
            failed_reads: 0,
        }
    }

    async fn follow(
        &self,
        start: CanonicalUrl,
        previous: Option<&RobotsState>,
        deadline: Deadline,
    ) -> Reading {
        let mut url = start;
        for _ in 0..=MAX_REDIRECTS {
            let response = match self.get(&url, previous, deadline).await {
                Ok(response) => response,
                Err(class) => return self.unreachable(class, None),
            };
            let location = text_of(&response.headers, &header::LOCATION);
            match location.filter(|_| is_redirect(response.status.as_u16())) {
                None => return self.judge(&response, previous),
                Some(location) => match url.join(&location, QueryOrder::Kept) {
                    Err(_) => return self.unreachable(FailureClass::BadUrl, None),
                    Ok(next)
                        if url.is_https()
                            && !next.is_https()
                            && !self.options.redirects.allow_downgrade =>
                    {
                        return self.unreachable(FailureClass::InsecureRedirect, None);
                    }
                    Ok(next) => url = next,
                },
            }
        }
        self.known(RobotsContent::Absent, &HeaderMap::new())
    }

    async fn get(
        &self,
        url: &CanonicalUrl,
        previous: Option<&RobotsState>,
        deadline: Deadline,
    ) -> std::result::Result<HopResponse, FailureClass> {
        let mut headers =
            standard_headers(&self.options.user_agent).ok_or(FailureClass::BadRequest)?;
        if let Some(previous) = previous.filter(|p| matches!(p.content, RobotsContent::Text { .. }))
        {
            let mut say = |name: HeaderName, text: &Option<String>| {
                if let Some(value) = text
                    .as_ref()
                    .and_then(|t| HeaderValue::from_bytes(t.as_bytes()).ok())
                {
                    headers.insert(name, value);
                }
            };
            say(header::IF_NONE_MATCH, &previous.etag);
            say(header::IF_MODIFIED_SINCE, &previous.last_modified);
        }
        let hop = HopRequest {
            method: &Method::GET,
            url,
            headers,
            body: None,
            limit: BodyLimit::beginning(MAX_ROBOTS_BYTES),
            redirect_limit: BodyLimit::beginning(MAX_ROBOTS_BYTES),
            deadline,
        };
        self.exchanger
            .make(hop)
            .await
            .answer
            .map_err(|(class, _)| class)
    }

    fn judge(&self, response: &HopResponse, previous: Option<&RobotsState>) -> Reading {
        let status = response.status;
        if status == StatusCode::NOT_MODIFIED
            && let Some(previous) = previous
            && matches!(previous.content, RobotsContent::Text { .. })
        {
            return Reading {
                etag: previous.etag.clone(),
                last_modified: previous.last_modified.clone(),
                ..self.known(previous.content.clone(), &HeaderMap::new())
            };
        }
        if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
            return self.known(RobotsContent::Absent, &HeaderMap::new());
        }
        if !status.is_success() {
            let now = answered_at(&response.headers).unwrap_or_else(|| self.clock.now());
            let wait = text_of(&response.headers, &header::RETRY_AFTER)
                .and_then(|value| self.options.retry_after.read(&value, now));
            return self.unreachable(FailureClass::Http(status.as_u16()), wait);
        }
        let is_beginning = response.truncated == Truncated::Length;
        if let Some((class, _)) = response.trouble.as_ref().filter(|_| !is_beginning) {
            return self.unreachable(*class, None);
        }
        let mut text = String::from_utf8_lossy(&response.body).into_owned();
        if is_beginning {
            // Half a rule could forbid more, or less, than the whole one.
            text.truncate(text.rfind(['\r', '\n']).map_or(0, |at| at + 1));
        }
        self.known(RobotsContent::Text { text }, &response.headers)
    }

    fn known(&self, content: RobotsContent, headers: &HeaderMap) -> Reading {
        Reading {
            content,
            etag: text_of(headers, &header::ETAG),
            last_modified: text_of(headers, &header::LAST_MODIFIED),
            holds_for: self.options.robots_ttl.min(MAX_ROBOTS_TTL),
        }
    }

    fn unreachable(&self, class: FailureClass, retry_after: Option<Duration>) -> Reading {
        let retry = self.options.robots_retry;
        let retry = retry.clamp(Duration::from_secs(1), MAX_ROBOTS_TTL);
        Reading {
            content: RobotsContent::Unreachable {
                class: class.to_string(),
            },
            etag: None,
            last_modified: None,
            holds_for: retry_after.map_or(retry, |n| n.max(retry)),
        }
    }
}
