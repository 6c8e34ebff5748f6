//! One request: from its head to the answer, with everything that faults make of it.

use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use lakebed::time::{BusinessDate, Clock, Instant};
use lakebed::{Error, Result};

use crate::demo_site::address::{Address, Page, attribute};
use crate::demo_site::answer::{Answer, answer};
use crate::demo_site::body::SiteBody;
use crate::demo_site::control;
use crate::demo_site::fault::{self, Block, PageKind, Refusal, RetryForm, Verdict, judge};
use crate::demo_site::http_date::HttpTime;
use crate::demo_site::journal::{Asked, Exchange};
use crate::demo_site::page::{Rendered, Scene, refused, render};
use crate::demo_site::site::{Orders, Site};

/// Largest body of a request.
const MAX_REQUEST: usize = 1 << 20;
/// The header that names the day, where the address does not.
const DATE_HEADER: &str = "x-site-date";

/// A request with its body.
struct Call {
    head: hyper::http::request::Parts,
    host: String,
    body: Bytes,
}

/// Answers a request; an error ends the connection without an answer.
pub(crate) async fn serve(
    site: Arc<Site>,
    connection: u64,
    peer: IpAddr,
    request: Request<Incoming>,
) -> io::Result<Response<SiteBody>> {
    let (head, body) = request.into_parts();
    let target = head.uri.path().to_owned();
    let address = Address::parse(&target, head.uri.query());
    let kind = address.as_ref().map_or(PageKind::Other, |a| a.page.kind());
    let host = host(&head);
    let mut exchange = site.journal.begin(Asked {
        connection,
        host: host.clone(),
        method: head.method.to_string(),
        path: head.uri.to_string(),
        kind,
    });
    let body = match Limited::new(body, MAX_REQUEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return response(Answer::plain(refused(kind, 413)), exchange, None),
    };
    let call = Call { head, host, body };
    let address = match address {
        Ok(address) => address,
        Err(error) => return response(unread(&error), exchange, None),
    };
    if let Page::Control(path) = &address.page {
        let answer = match control::may_steer(peer) {
            true => control::control(&site, &call.head.method, path, &call.body),
            false => control::forbidden(),
        };
        return response(answer, exchange, None);
    }
    let orders = site.orders();
    let verdict = call.judge(&site, &orders, &address);
    if !verdict.pacing.delay.is_zero() {
        tokio::time::sleep(verdict.pacing.delay).await;
    }
    match verdict.block {
        Some(Block::Hang) => pending().await,
        Some(Block::Close) => return Err(io::Error::other("the fault `close` ends here")),
        None => {}
    }
    let drip = verdict.pacing.drip;
    let answer = match verdict.refusal.clone() {
        Some(refusal) => refuse(&refusal, &address, &mut exchange),
        None => call.page(&site, &orders, &address, &verdict),
    };
    response(answer, exchange, drip)
}

/// The authority of the target counts before the header (RFC 9112, 3.2.2).
fn host(head: &hyper::http::request::Parts) -> String {
    let header = head.headers.get(HOST).and_then(|h| h.to_str().ok());
    let authority = head.uri.authority().map(|a| a.as_str());
    authority
        .or(header)
        .unwrap_or_default()
        .to_ascii_lowercase()
}

impl Call {
    fn judge(&self, site: &Site, orders: &Orders, address: &Address) -> Verdict {
        let request = fault::Request {
            seed: site.market.seed(),
            kind: address.page.kind(),
            host: &self.host,
            key: self.key(),
            hop: address.hop(),
        };
        let faults = orders.faults.iter().chain(&address.faults);
        judge(faults, &request, &site.memory)
    }

    /// The same for every try of a request.
    fn key(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        let host = self.host.split(':').next().unwrap_or_default();
        let uri = self.head.uri.to_string();
        for part in [host, self.head.method.as_str(), &uri] {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        hasher.update(&self.body);
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    }

    fn page(&self, site: &Site, orders: &Orders, address: &Address, verdict: &Verdict) -> Answer {
        let searches = address.page == Page::ApiSearch;
        let allowed = match self.head.method {
            Method::GET | Method::HEAD => !searches,
            Method::POST => searches,
            _ => false,
        };
        let kind = address.page.kind();
        if !allowed {
            return Answer::plain(refused(kind, 405));
        }
        let date = match self.date(address) {
            Ok(date) => date.unwrap_or(orders.date),
            Err(error) => return unread(&error),
        };
        let host = attribute(&self.host);
        let scene = Scene {
            market: &site.market,
            date,
            prefix: &address.prefix,
            host: &host,
            per_page: site.per_page,
            look: verdict.look,
        };
        let page = render(&scene, address, &self.body);
        answer(
            page,
            &self.head.headers,
            verdict.look.charset,
            &verdict.pacing,
        )
        .unwrap_or_else(|_| Answer::plain(refused(kind, 500)))
    }

    fn date(&self, address: &Address) -> Result<Option<BusinessDate>> {
        let header = self.head.headers.get(DATE_HEADER);
        match (address.date, header) {
            (Some(date), _) => Ok(Some(date)),
            (None, Some(text)) => {
                let text = text.to_str().map_err(|e| {
                    Error::invalid(format!("the header `{DATE_HEADER}` is no text")).caused_by(e)
                })?;
                text.parse().map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

/// What cannot be understood is told in words: whoever reads it is writing a test.
fn unread(error: &Error) -> Answer {
    let value = serde_json::json!({"error": error.message(), "hints": error.hints()});
    Answer::plain(Rendered::json(400, &value))
}

fn refuse(refusal: &Refusal, address: &Address, exchange: &mut Exchange) -> Answer {
    let kind = address.page.kind();
    match refusal {
        Refusal::Status(status) => Answer::plain(refused(kind, *status)),
        Refusal::Redirect { status, hop } => {
            let mut answer = Answer::plain(refused(kind, *status));
            answer.header(LOCATION, address.with_hop(*hop));
            answer
        }
        Refusal::TooMany(wait, form) => {
            let mut answer = Answer::plain(refused(kind, 429));
            if let Some(value) = retry_after(*wait, *form) {
                answer.header(RETRY_AFTER, value);
            }
            if matches!(form, RetryForm::Seconds | RetryForm::Date) {
                exchange.ask_to_wait(*wait);
            }
            answer
        }
    }
}

/// The value of `Retry-After`: whole seconds, rounded up.
fn retry_after(wait: Duration, form: RetryForm) -> Option<String> {
    let seconds = u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
    match form {
        RetryForm::Seconds => Some(seconds.to_string()),
        RetryForm::Date => {
            let now = Clock::System.now().micros();
            let wait = i64::try_from(wait.as_micros()).unwrap_or(0);
            // A date has no fractions: the next whole second is the first that is late enough.
            let until = Instant::from_micros(now.saturating_add(wait).saturating_add(999_999));
            HttpTime::of(until).map(|at| at.to_string())
        }
        RetryForm::Negative => Some("-5".to_owned()),
        RetryForm::Absurd => Some("99999999999999999999".to_owned()),
        RetryForm::Garbage => Some("soon".to_owned()),
        RetryForm::None => None,
    }
}

fn response(
    answer: Answer,
    mut exchange: Exchange,
    drip: Option<(u32, Duration)>,
) -> io::Result<Response<SiteBody>> {
    exchange.set_status(answer.status);
    let status = StatusCode::from_u16(answer.status).map_err(io::Error::other)?;
    let mut builder = Response::builder().status(status);
    for (name, value) in answer.headers {
        let value = HeaderValue::from_str(&value).map_err(io::Error::other)?;
        builder = builder.header(name, value);
    }
    let body = SiteBody::new(answer.segments, answer.cut, drip, exchange);
    builder.body(body).map_err(io::Error::other)
}
