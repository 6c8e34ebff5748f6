//! The desk: where crawlers of somebody else take requests of a run and bring back what came.
//!
//! ```text
//! claim   queue -> robots.txt and the host's moment, as before every fetch of ours -> the crawler
//! finish  fence -> checks -> parts, durable -> queue, with follow-ups, in one transaction
//! ```
//! Everything that the built-in worker keeps to is kept to here: a response is durable before its end is told
//! (PAK-1), a finish counts once and only for who holds the claim (QUE-2), hosts are asked as their limits allow (QUE-6),
//! trouble opens the circuit breaker.
//!
//! | id | what holds |
//! | --- | --- |
//! | API-1 | a success needs a whole response that counts as an answer of the source, with its bytes |
//! | API-2 | a finish told again is answered as the first time and stores nothing twice |
//! | API-3 | no claim leaves whose `robots.txt` forbids it, and none before its host has a moment for it |

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockWriteGuard};

use crate::crawl::drive::CrawlPlan;
use crate::crawl::follow::{Followed, Follower};
use crate::crawl::gate::{Hosts, Turn};
use crate::crawl::seeds::{SeedSpec, link_request};
use crate::crawl::told::{Asked, ToldResponse};
use crate::error::{Error, Result};
use crate::fetch::{
    BreakerSample, Capture, CircuitBreaker, FailureClass, Fetcher, RetryAfterLimits, header_values,
};
use crate::name::{CaptureId, ErrorClass, StageName};
use crate::pack::{SharedPart, SharedPartOptions};
use crate::queue::{
    Claim, ClaimOptions, ClaimOutcome, DoneSpec, EnqueueStats, Expectation, Finish, FinishKind,
    FinishOutcome, HeldRequest, Queue, RequestState, RunRecord, Worker,
};
use crate::spec::{BodyMark, CanonicalUrl, QueryOrder};
use crate::time::Clock;

/// How often a claim looks again when everything it found was refused by `robots.txt`.
const MAX_LOOKS: u32 = 5;
/// Then it advises this wait, microseconds.
const LOOK_AGAIN_US: i64 = 100_000;
/// Finishes of different requests go side by side; those of one request meet at one of so many locks.
const LOCKS: usize = 64;
/// Bodies longer than this are looked through on a thread of their own.
const INLINE_BYTES: usize = 256 * 1024;

/// How a claim ended, as another crawler tells it.
#[derive(Debug)]
pub struct ToldFinish {
    /// The request's number.
    pub id: i64,
    /// The attempt of the claim.
    pub attempt: u32,
    /// What came, in order: one for each redirect, the last one is the answer.
    pub responses: Vec<ToldResponse>,
    /// The crawler followed redirects that it cannot tell: the first response may have another URL.
    pub hidden_redirects: bool,
    /// The end.
    pub end: ToldEnd,
}

/// The ends that another crawler tells.
#[derive(Debug)]
pub enum ToldEnd {
    /// Answered. Follow-ups are those it found; absent: those that the rules of the source find.
    Done(Option<ToldLinks>),
    /// The attempt failed and counts.
    Failed {
        /// Why; absent: by the status of the last response.
        class: Option<ErrorClass>,
        /// Whether another attempt may help; absent: as for our own fetches, and yes for classes they do not have.
        retry: Option<bool>,
    },
    /// The host asked to wait: microseconds; absent: as `Retry-After` of the last response says. Within a second and
    /// an hour.
    Blocked(Option<i64>),
    /// Not tried.
    GivenBack,
}

/// Follow-ups as the crawler found them.
#[derive(Debug, Default)]
pub struct ToldLinks {
    /// Each relative to the last response.
    pub requests: Vec<SeedSpec>,
    /// Links that the page named, these included; absent for their number.
    pub announced: Option<u64>,
    /// What the page says there must be.
    pub expects: Vec<Expectation>,
}

/// What became of a finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum ToldOutcome {
    /// It counted, now or when it was told first.
    Accepted(FinishReport),
    /// The claim is not this worker's any more: nothing was recorded.
    Lost,
    /// This claim was finished before, and otherwise: that stands.
    Otherwise(FinishReport),
}

/// Where a request is after its finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishReport {
    /// Where it is.
    pub state: RequestState,
    /// Class of the failure; absent for none.
    pub class: Option<String>,
    /// The capture that made it done.
    pub capture: Option<CaptureId>,
    /// Its follow-ups.
    pub children: EnqueueStats,
}

impl FinishReport {
    fn of(held: &HeldRequest) -> Self {
        Self {
            state: held.record.state,
            class: held.record.class.clone(),
            capture: held.record.capture.clone(),
            children: held.children,
        }
    }
}

/// What all crawlers of a run share in this process.
pub struct Desk {
    queue: Queue,
    plan: CrawlPlan,
    run_id: i64,
    hosts: Hosts,
    follower: Follower,
    clock: Arc<Clock>,
    /// Read by finishes, written by who opens a part or takes it away to close the run.
    part: RwLock<Option<Arc<SharedPart>>>,
    breaker: Mutex<CircuitBreaker>,
    locks: Vec<tokio::sync::Mutex<()>>,
}

impl Desk {
    /// A desk for the run.
    ///
    /// # Errors
    /// `InvalidInput` for a configuration that cannot be.
    pub fn new(queue: &Queue, plan: CrawlPlan, run: &RunRecord) -> Result<Self> {
        let clock = Arc::new(Clock::System);
        let fetcher = Fetcher::new(plan.fetch_options()?, Arc::clone(&clock))?;
        let limits = plan.local.limits(plan.run.source.as_str());
        let size = |given: Option<u32>, usual: u32| {
            usize::try_from(given.unwrap_or(usual)).unwrap_or(usize::MAX)
        };
        Ok(Self {
            hosts: Hosts::new(queue.clone(), fetcher, plan.host_limits()),
            follower: plan.follower()?,
            breaker: Mutex::new(CircuitBreaker::new(
                size(limits.breaker_window, 100),
                size(limits.breaker_percent, 50),
            )),
            part: RwLock::default(),
            locks: std::iter::repeat_with(Default::default)
                .take(LOCKS)
                .collect(),
            queue: queue.clone(),
            run_id: run.id,
            plan,
            clock,
        })
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What is configured for the run.
    #[must_use]
    pub fn plan(&self) -> &CrawlPlan {
        &self.plan
    }

    /// The run's number.
    #[must_use]
    pub fn run_id(&self) -> i64 {
        self.run_id
    }

    /// Claims for a crawler: as for our own worker, and each looked up in `robots.txt` before it leaves (API-3). What that
    /// forbids is dead with its class and not handed out.
    ///
    /// # Errors
    /// As [`Queue::claim`].
    pub async fn claim(
        &self,
        worker: &Worker,
        stages: &[StageName],
        limit: u32,
    ) -> Result<ClaimOutcome> {
        for _ in 0..MAX_LOOKS {
            let options = ClaimOptions {
                run_id: self.run_id,
                stages: stages.to_vec(),
                limit,
                hosts: Some(self.hosts.limits()),
            };
            let claims = match self.queue.claim(worker, &options).await? {
                ClaimOutcome::Claimed(claims) => claims,
                other => return Ok(other),
            };
            let admitted = self.while_alive(worker, self.admit(worker, claims)).await?;
            if !admitted.is_empty() {
                return Ok(ClaimOutcome::Claimed(admitted));
            }
        }
        Ok(ClaimOutcome::Wait(LOOK_AGAIN_US))
    }

    /// Reading `robots.txt` may take its time; the worker, who waits for the answer, lives meanwhile.
    async fn while_alive<T>(
        &self,
        worker: &Worker,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let heartbeat = Duration::from_micros(self.queue.options().heartbeat_us.unsigned_abs());
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(heartbeat) => { let _alive = self.queue.heartbeat(worker).await?; }
            }
        }
    }

    async fn admit(&self, worker: &Worker, claims: Vec<Claim>) -> Result<Vec<Claim>> {
        let mut admitted = Vec::with_capacity(claims.len());
        let mut ends = Vec::new();
        for mut claim in claims {
            let turn = match CanonicalUrl::parse(&claim.url, QueryOrder::Kept) {
                Ok(url) => self.hosts.turn(&url, true).await,
                Err(_) => Turn::Never(FailureClass::BadUrl),
            };
            let end = match turn {
                Turn::Claimed => {
                    admitted.push(claim);
                    continue;
                }
                Turn::In(wait_us) => {
                    claim.wait_us = wait_us;
                    admitted.push(claim);
                    continue;
                }
                Turn::Later(_) => FinishKind::GivenBack,
                Turn::Never(class) => FinishKind::Failed {
                    class: class.error_class()?,
                    retry: class.is_retryable(),
                    status: None,
                },
            };
            ends.push(Finish {
                id: claim.id,
                attempt: claim.attempt,
                end,
            });
        }
        if !ends.is_empty() {
            // One that is lost meanwhile went back by itself.
            let _outcomes = self.queue.finish(worker, self.run_id, &ends).await?;
        }
        Ok(admitted)
    }

    /// Whether and when a URL may be asked for that no claim brought a moment for: where a redirect leads.
    ///
    /// # Errors
    /// `InvalidInput` for what is no URL.
    pub async fn turn(&self, url: &str) -> Result<Turn> {
        let url = CanonicalUrl::parse(url, QueryOrder::Kept)?;
        Ok(self.hosts.turn(&url, false).await)
    }

    /// Takes the end of a claim: its responses become durable, then it counts, with its follow-ups (API-1, API-2).
    ///
    /// # Errors
    /// `NotFound` for a request the run does not have. `InvalidInput` for what cannot be, with its `path`;
    /// `PreconditionFailed` for a success that is none, with the `code` of the reason: in both cases nothing is recorded, and the claim goes on.
    pub async fn finish(&self, worker: &Worker, told: ToldFinish) -> Result<ToldOutcome> {
        let lock = usize::try_from(told.id.unsigned_abs()).unwrap_or(0) % LOCKS;
        let _one = self.locks[lock].lock().await;
        // Held to the end: nobody closes the run between the bytes and the queue.
        let open = self.open_part().await?;
        let (id, attempt) = (told.id, told.attempt);
        let held = self.look(id).await?;
        let is_mine = held.worker_id == worker.id && held.record.attempts == attempt;
        if !is_mine || was_taken_back(&held) {
            return self.lost(worker, id, attempt).await;
        }
        let (captures, end, sample) = self.prepare(&held, told).await?;
        if held.record.state != RequestState::InFlight {
            return self.again(worker, &held, &end).await;
        }
        for Capture { record, body } in captures {
            let part = open.as_ref();
            let part = part.ok_or_else(|| Error::internal("the part was taken away"))?;
            let _durable = part.append(record, body).await?;
        }
        let finish = Finish {
            id,
            attempt,
            end: end.clone(),
        };
        let outcomes = self.queue.finish(worker, self.run_id, &[finish]).await?;
        let now = self.look(id).await?;
        if outcomes.first() == Some(&FinishOutcome::Accepted) {
            self.feel(&end, sample).await?;
            return Ok(ToldOutcome::Accepted(FinishReport::of(&now)));
        }
        let is_mine = now.worker_id == worker.id && now.record.attempts == attempt;
        if is_mine && now.record.state != RequestState::InFlight && !was_taken_back(&now) {
            return self.again(worker, &now, &end).await;
        }
        Ok(ToldOutcome::Lost)
    }

    async fn look(&self, id: i64) -> Result<HeldRequest> {
        let found = self.queue.find_request(self.run_id, id).await?;
        found.ok_or_else(|| {
            Error::not_found(format!(
                "the run `{}` has no request number `{id}`",
                self.plan.run
            ))
        })
    }

    /// A finish of a claim that is over: the queue counts those that come after the closing.
    async fn lost(&self, worker: &Worker, id: i64, attempt: u32) -> Result<ToldOutcome> {
        let nothing = Finish {
            id,
            attempt,
            end: FinishKind::GivenBack,
        };
        let _lost = self.queue.finish(worker, self.run_id, &[nothing]).await?;
        Ok(ToldOutcome::Lost)
    }

    /// A finish of a claim that this worker finished before.
    async fn again(
        &self,
        worker: &Worker,
        held: &HeldRequest,
        end: &FinishKind,
    ) -> Result<ToldOutcome> {
        let record = &held.record;
        let same = match (end, record.state) {
            (FinishKind::Done(done), RequestState::Done) => {
                record.capture == done.capture
                    && record.status == done.status.map(i64::from)
                    && held.children.announced == done.announced
            }
            (FinishKind::Failed { class, .. }, RequestState::Failed | RequestState::Dead) => {
                record.class.as_deref() == Some(class.as_str())
            }
            (FinishKind::Blocked { .. } | FinishKind::GivenBack, RequestState::Pending) => true,
            (_, RequestState::Done | RequestState::Dead | RequestState::Failed) => {
                return Ok(ToldOutcome::Otherwise(FinishReport::of(held)));
            }
            (_, RequestState::Pending | RequestState::InFlight) => {
                return self.lost(worker, record.id, record.attempts).await;
            }
        };
        let report = FinishReport::of(held);
        Ok(match same {
            true => ToldOutcome::Accepted(report),
            false => ToldOutcome::Otherwise(report),
        })
    }

    /// Checks everything that was told and makes captures and an end of it.
    async fn prepare(
        &self,
        held: &HeldRequest,
        told: ToldFinish,
    ) -> Result<(Vec<Capture>, FinishKind, Option<BreakerSample>)> {
        if let (Some(first), false) = (told.responses.first(), told.hidden_redirects) {
            check_claimed(held, first)?;
        }
        let answer = told.responses.last().cloned();
        let bytes: usize = told.responses.iter().map(|r| r.body.len()).sum();
        let (run, one, now) = (self.plan.run.clone(), held.clone(), self.clock.now());
        let (responses, record_set_cookie) = (told.responses, self.plan.config.record_set_cookie);
        let look = move || {
            let asked = Asked {
                run: &run,
                held: &one,
                now,
                record_set_cookie,
            };
            asked.captures(responses)
        };
        let captures = match bytes <= INLINE_BYTES {
            true => look()?,
            false => tokio::task::spawn_blocking(look)
                .await
                .map_err(|e| Error::internal("look through a response").caused_by(e))??,
        };
        let last = captures.last();
        let mut sample = None;
        let end = match told.end {
            ToldEnd::Done(links) => {
                let capture = self.check_answer(last, answer.as_ref())?;
                let followed = self.done(held, capture, links).await?;
                sample = followed.sample;
                FinishKind::Done(followed.done)
            }
            ToldEnd::Failed { class, retry } => self.failed(last, class, retry)?,
            ToldEnd::Blocked(wait_us) => FinishKind::Blocked {
                wait_us: self.patience(last, wait_us),
            },
            ToldEnd::GivenBack if captures.is_empty() => FinishKind::GivenBack,
            ToldEnd::GivenBack => {
                let e = Error::invalid("a request that was not tried has responses");
                return Err(e
                    .with("path", "responses")
                    .hint("finish it as `done`, `failed` or `blocked`"));
            }
        };
        Ok((captures, end, sample))
    }

    /// Whether the last response is an answer (API-1).
    fn check_answer<'c>(
        &self,
        last: Option<&'c Capture>,
        told: Option<&ToldResponse>,
    ) -> Result<&'c Capture> {
        let no = |code: &str, message: String, hint: &str| {
            Err(Error::precondition(message).with("code", code).hint(hint))
        };
        let (Some(capture), Some(told)) = (last, told) else {
            return no(
                "no_response",
                "a success without a response".to_owned(),
                "send the response with its bytes: what is not kept was not crawled",
            );
        };
        let Some(status) = told.status else {
            return no(
                "no_response",
                "a success whose last response has no status".to_owned(),
                "finish it as `failed`",
            );
        };
        if !(200..300).contains(&status) && !self.plan.config.accept_statuses.contains(&status) {
            return no(
                "not_an_answer",
                format!("a success with status {status}, which is no answer of this source"),
                "finish it as `failed` or `blocked`; where such a page is data, list its status in `accept_statuses` of source.toml",
            );
        }
        if !told.truncated.is_none() {
            return no(
                "truncated",
                "a success whose body is not whole".to_owned(),
                "finish it as `failed`",
            );
        }
        if told.body.is_empty() && !told.is_empty {
            return no(
                "no_bytes",
                "a success without bytes".to_owned(),
                "where the server sent none, say `\"empty\": true`",
            );
        }
        Ok(capture)
    }

    async fn done(
        &self,
        held: &HeldRequest,
        capture: &Capture,
        links: Option<ToldLinks>,
    ) -> Result<Followed> {
        let Some(links) = links else {
            return self.follower.follow(&held.record.stage, capture).await;
        };
        let page = CanonicalUrl::parse(&capture.record.url, QueryOrder::Kept)?;
        let offered = links.requests.len() as u64;
        let mut children = Vec::with_capacity(links.requests.len());
        for (i, link) in links.requests.into_iter().enumerate() {
            let found = link_request(&self.plan.config, link, &page)
                .map_err(|e| e.with("path", format!("follow[{i}]")))?;
            children.extend(found);
        }
        let announced = links.announced.unwrap_or(offered);
        if announced < offered {
            return Err(Error::invalid(format!(
                "{announced} links were announced and {offered} came"
            ))
            .with("path", "announced")
            .hint("announce every link of the page, those that are not followed included"));
        }
        let done = DoneSpec {
            capture: Some(capture.record.capture_id.clone()),
            status: capture.record.status,
            body: capture.record.body_sha256.as_ref().and_then(BodyMark::of),
            links: self
                .follower
                .links_seen(&held.record.stage, &capture.record, &children),
            children,
            announced,
            expects: links.expects,
        };
        Ok(Followed { done, sample: None })
    }

    fn failed(
        &self,
        last: Option<&Capture>,
        class: Option<ErrorClass>,
        retry: Option<bool>,
    ) -> Result<FinishKind> {
        let status = last.and_then(|c| c.record.status);
        let class = match (class, status) {
            (Some(class), _) => class,
            (None, Some(status)) => FailureClass::Http(status).error_class()?,
            (None, None) => {
                let e = Error::invalid("a failure without a class and without a status");
                return Err(e.with("path", "class").hint(
                    "such as `timeout_total`, `disconnect` or a word of your own (docs/crawl.md)",
                ));
            }
        };
        let known = FailureClass::find(class.as_str());
        Ok(FinishKind::Failed {
            retry: retry.unwrap_or_else(|| known.is_none_or(FailureClass::is_retryable)),
            class,
            status,
        })
    }

    /// How long a host is left alone: as told, else as its `Retry-After` says, within the usual bounds.
    fn patience(&self, last: Option<&Capture>, told: Option<i64>) -> i64 {
        let limits = RetryAfterLimits::default();
        let micros = |d: Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        if let Some(told) = told {
            return told.clamp(micros(limits.min), micros(limits.max));
        }
        let header = |name| {
            let head = &last?.record.response_head.0;
            header_values(head, name).into_iter().next()
        };
        let (asked, date) = (header("retry-after"), header("date"));
        let asked = asked.and_then(|v| limits.read_beside(&v, date.as_deref(), self.clock.now()));
        micros(asked.unwrap_or_else(|| limits.unnamed()))
    }

    /// Lets the circuit breaker feel an end; one that opens stops the run.
    async fn feel(&self, end: &FinishKind, told: Option<BreakerSample>) -> Result<()> {
        let sample = told.unwrap_or_else(|| match end {
            FinishKind::Done(_) => BreakerSample::Sound,
            FinishKind::Failed { class, .. } => FailureClass::find(class.as_str())
                .map_or(BreakerSample::Silent, BreakerSample::of_class),
            FinishKind::Blocked { .. } | FinishKind::GivenBack => BreakerSample::Silent,
        });
        let opened = {
            // What is inside is whole after every statement.
            let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
            (breaker.record(sample) && sample != BreakerSample::Silent).then(|| breaker.counts())
        };
        if let Some((trouble, looked)) = opened {
            let reason = format!(
                "the circuit breaker opened: {trouble} of the last {looked} requests met trouble"
            );
            self.queue.stop_run(self.run_id, &reason).await?;
        }
        Ok(())
    }

    /// Takes a stop back, and lets the breaker begin anew.
    pub async fn resume(&self) -> Result<()> {
        let limits = self.plan.local.limits(self.plan.run.source.as_str());
        let size = |given: Option<u32>, usual: u32| {
            usize::try_from(given.unwrap_or(usual)).unwrap_or(usize::MAX)
        };
        self.queue.resume_run(self.run_id).await?;
        let fresh = CircuitBreaker::new(
            size(limits.breaker_window, 100),
            size(limits.breaker_percent, 50),
        );
        *self.breaker.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Looks after what silent crawlers left and what is past the deadline; to be called in the interval of heartbeats.
    pub async fn tend(&self) -> Result<()> {
        let _reaped = self.queue.reap().await?;
        let _expired = self.queue.expire_run(self.run_id).await?;
        Ok(())
    }

    /// The part, opened where there is none. Until the guard goes, nobody takes it away.
    async fn open_part(&self) -> Result<tokio::sync::RwLockReadGuard<'_, Option<Arc<SharedPart>>>> {
        loop {
            let open = self.part.read().await;
            if open.is_some() {
                return Ok(open);
            }
            drop(open);
            let mut slot = self.part.write().await;
            if slot.is_none() {
                let (plan, clock) = (&self.plan, &self.clock);
                let options = SharedPartOptions::default();
                let part = SharedPart::open(&plan.parts, &plan.run, options, clock)?;
                *slot = Some(Arc::new(part));
            }
        }
    }

    /// Ends the part of this process, so that the run can be packed. Until the guard goes, no finish comes in.
    pub async fn hold(&self) -> DeskHold<'_> {
        let mut slot = self.part.write().await;
        if let Some(part) = slot.take() {
            // Waits for its thread; one that fell has been told of by its captures.
            drop(tokio::task::spawn_blocking(move || drop(part)).await);
        }
        DeskHold { _slot: slot }
    }
}

/// While it lives, no finish comes in at its desk.
pub struct DeskHold<'a> {
    _slot: RwLockWriteGuard<'a, Option<Arc<SharedPart>>>,
}

/// Whether the claim ended because its lease did.
fn was_taken_back(held: &HeldRequest) -> bool {
    matches!(held.record.state, RequestState::Failed | RequestState::Dead)
        && held.record.class.as_deref() == Some("lease_exhausted")
}

/// The first response must be of what was claimed: pages of two claims that were mixed up would never be noticed.
fn check_claimed(held: &HeldRequest, first: &ToldResponse) -> Result<()> {
    let url = CanonicalUrl::parse(&first.url, QueryOrder::Kept)
        .map_err(|e| e.with("path", "responses[0].url"))?;
    let claimed = &held.record.url;
    if url.as_str() == claimed {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the first response is of `{url}`, the claim of `{claimed}`"
    ))
    .with("path", "responses[0].url")
    .hint("send a response for each redirect, the first one first; `\"hidden_redirects\": true` where your program cannot tell them"))
}
