//! One claim from its moment to its end: fetch, make durable, find the follow-ups.

use std::time::Duration;

use bytes::Bytes;
use http::Method;

use crate::crawl::follow::Follower;
use crate::crawl::gate::{CrawlGate, Hosts, sleep_us};
use crate::error::Result;
use crate::fetch::{
    BreakerSample, Capture, FailureClass, FetchOutcome, FetchRequest, Fetched, Fetcher,
};
use crate::name::ErrorClass;
use crate::pack::SharedPart;
use crate::queue::{Claim, Finish, FinishKind};
use crate::spec::{CanonicalUrl, QueryOrder, RunKey};

/// A fetch that was put off goes on within its claim when its turn is so near, microseconds.
const MAX_DEFER_US: i64 = 60_000_000;
/// How often one fetch is put off.
const MAX_DEFERS: u32 = 5;

/// What all tasks of a process share.
pub(super) struct TaskContext {
    pub(super) run: RunKey,
    pub(super) fetcher: Fetcher,
    pub(super) part: SharedPart,
    pub(super) hosts: Hosts,
    pub(super) follower: Follower,
}

/// How a claim ended, for the queue and for the breaker.
pub(super) struct TaskEnd {
    pub(super) finish: Finish,
    pub(super) sample: BreakerSample,
    /// Bytes of bodies that came.
    pub(super) bytes: u64,
}

/// Works on one claim. Every response is durable before its end is told (PAK-1).
///
/// # Errors
/// Where a response could not be made durable: nothing is finished then, and the worker must stop.
pub(super) async fn work(context: &TaskContext, claim: Claim) -> Result<TaskEnd> {
    sleep_us(claim.wait_us).await;
    let mut request = match fetch_request(context, &claim) {
        Ok(request) => request,
        Err(_) => return Ok(TaskEnd::failed(&claim, "bad_url", false, None)),
    };
    let mut bytes = 0;
    let mut defers = 0;
    loop {
        let gate = CrawlGate {
            hosts: &context.hosts,
            claimed: &claim.host,
        };
        let Fetched { outcome, captures } = context.fetcher.fetch(&request, &gate).await;
        let last = captures.last().cloned();
        for Capture { record, body } in captures {
            bytes += record.body_len;
            let _durable = context.part.append(record, body).await?;
        }
        if let FetchOutcome::Deferred { next, wait } = &outcome {
            let mut wait = wait.map_or(1_000_000, micros);
            defers += 1;
            // Where a redirect leads, no claim waits for the host: given back, it would come again at once.
            if next.url.host_key() != claim.host {
                wait = wait.min(MAX_DEFER_US);
            }
            if wait <= MAX_DEFER_US && defers <= MAX_DEFERS {
                sleep_us(wait).await;
                request.resume = Some(next.clone());
                continue;
            }
        }
        let sample = BreakerSample::of(&outcome);
        let (end, told) = end_of(context, &claim, outcome, last).await?;
        let sample = told.unwrap_or(sample);
        return Ok(TaskEnd {
            finish: finish(&claim, end),
            sample,
            bytes,
        });
    }
}

/// As the queue counts time.
fn micros(wait: Duration) -> i64 {
    i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)
}

fn finish(claim: &Claim, end: FinishKind) -> Finish {
    Finish {
        id: claim.id,
        attempt: claim.attempt,
        end,
    }
}

impl TaskEnd {
    fn failed(claim: &Claim, class: &str, retry: bool, status: Option<u16>) -> Self {
        let end = match class.parse::<ErrorClass>() {
            Ok(class) => FinishKind::Failed {
                class,
                retry,
                status,
            },
            Err(_) => FinishKind::GivenBack,
        };
        Self {
            finish: finish(claim, end),
            sample: BreakerSample::Silent,
            bytes: 0,
        }
    }
}

fn fetch_request(context: &TaskContext, claim: &Claim) -> Result<FetchRequest> {
    let method = Method::from_bytes(claim.method.as_bytes()).map_err(|e| {
        crate::Error::invalid(format!("`{}` is not a method", claim.method)).caused_by(e)
    })?;
    Ok(FetchRequest {
        run: context.run.clone(),
        key: claim.request_key.clone(),
        attempt: claim.attempt,
        kind: claim.stage.clone(),
        method,
        url: CanonicalUrl::parse(&claim.url, QueryOrder::Kept)?,
        headers: claim.headers.clone(),
        body: claim.body.clone().map(Bytes::from),
        validators: None,
        resume: None,
    })
}

/// The end, and what the page itself says to the breaker.
async fn end_of(
    context: &TaskContext,
    claim: &Claim,
    outcome: FetchOutcome,
    last: Option<Capture>,
) -> Result<(FinishKind, Option<BreakerSample>)> {
    let end = match outcome {
        FetchOutcome::Answered | FetchOutcome::NotModified => match last {
            Some(capture) => {
                let followed = context.follower.follow(&claim.stage, &capture).await?;
                return Ok((FinishKind::Done(followed.done), followed.sample));
            }
            None => FinishKind::GivenBack,
        },
        FetchOutcome::RateLimited { wait, .. } => FinishKind::Blocked {
            wait_us: micros(wait),
        },
        FetchOutcome::Deferred { .. } => FinishKind::GivenBack,
        FetchOutcome::Failed(failure) => {
            let status = match failure.class {
                FailureClass::Http(status) => Some(status),
                _ => None,
            };
            match failure.class.error_class() {
                Ok(class) => FinishKind::Failed {
                    class,
                    retry: failure.is_retryable,
                    status,
                },
                Err(_) => FinishKind::GivenBack,
            }
        }
    };
    Ok((end, None))
}
