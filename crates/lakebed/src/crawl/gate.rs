//! The gate before every hop: `robots.txt` and the host's turn, shared by all workers through the queue.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::crawl::patience;
use crate::error::Result;
use crate::fetch::{
    Continuation, FailureClass, Fetcher, HopCheck, HopDecision, RobotsRules, RobotsVerdict,
};
use crate::queue::{HostLimit, HostLimits, Queue};
use crate::spec::{CanonicalUrl, RobotsState};
use crate::time::Instant;

/// The longest `Crawl-delay` that is kept to.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(60);
/// A hop waits for its turn within its fetch for so long at most; beyond, the fetch is put off.
const MAX_WAIT_US: i64 = 10_000_000;

/// What all fetches of a process share about hosts.
#[derive(Debug)]
pub struct Hosts {
    queue: Queue,
    fetcher: Fetcher,
    limits: Mutex<HostLimits>,
    robots: Mutex<HashMap<String, Arc<KnownRobots>>>,
    /// What is to be told of hosts.
    notes: Mutex<Vec<String>>,
    /// Held while one is read: who waits for it reads none.
    reading: tokio::sync::Mutex<()>,
}

/// What a hop is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Turn {
    /// It may go at the moment that came with its claim.
    Claimed,
    /// It may go after so many microseconds; 0 = at once.
    In(i64),
    /// Its host has no moment that is near: not before so long, absent where that is not known.
    Later(Option<Duration>),
    /// It may not go at all.
    Never(FailureClass),
}

#[derive(Debug)]
struct KnownRobots {
    rules: RobotsRules,
    /// What requests die of, where it could not be read too often.
    dies_of: Option<FailureClass>,
    /// Asked for anew from then on.
    until: tokio::time::Instant,
}

impl Hosts {
    /// Nothing known yet beside the configured limits.
    #[must_use]
    pub fn new(queue: Queue, fetcher: Fetcher, limits: HostLimits) -> Self {
        Self {
            queue,
            fetcher,
            limits: Mutex::new(limits),
            robots: Mutex::default(),
            notes: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// What has happened to hosts since this was asked last, in words.
    #[must_use]
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notes))
    }

    /// The limits for claims: as configured, and slower where `Crawl-delay` asks for it.
    #[must_use]
    pub fn limits(&self) -> HostLimits {
        lock(&self.limits).clone()
    }

    fn limit(&self, host: &str) -> HostLimit {
        let limits = lock(&self.limits);
        limits.named.get(host).copied().unwrap_or(limits.usual)
    }

    /// The rules of the URL's origin: remembered, as another worker read them, or read now in a moment of
    /// the host's own; and whether that took time.
    async fn robots(&self, url: &CanonicalUrl) -> Result<(Arc<KnownRobots>, bool)> {
        let origin = url.origin();
        if let Some(known) = self.remembered(&origin) {
            return Ok((known, false));
        }
        let _alone = self.reading.lock().await;
        if let Some(known) = self.remembered(&origin) {
            return Ok((known, true));
        }
        let host = url.host_key();
        let (now, mut texts) = self.stored(&host).await?;
        let (state, now, read_now) = match texts.remove(&origin) {
            Some(state) if state.is_fresh(now) => (state, now, false),
            previous => {
                let pause = self.limit(&host).pause_us;
                let wait = self.queue.take_moment(&host, pause).await?;
                sleep_us(wait.min(MAX_WAIT_US)).await;
                let read = self.fetcher.read_robots(url, previous.as_ref()).await;
                let (now, state) = self.keep(&host, &origin, read).await?;
                if let Some(note) = patience::told(&origin, &state) {
                    self.put_off(&host, note, &state, now).await?;
                }
                (state, now, true)
            }
        };
        let left = state.expires_at.micros() - now.micros();
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
        let rules = RobotsRules::of(&state, &self.fetcher.options().robots_token);
        if let Some(delay) = rules.crawl_delay(MAX_CRAWL_DELAY) {
            self.slow_down(&host, i64::try_from(delay.as_micros()).unwrap_or(0));
        }
        let until = tokio::time::Instant::now() + left;
        let known = Arc::new(KnownRobots {
            dies_of: patience::verdict(&state),
            rules,
            until,
        });
        lock(&self.robots).insert(origin, Arc::clone(&known));
        Ok((known, read_now))
    }

    /// Whether and when this URL may be asked for: by `robots.txt`, and by the host's next free moment, which
    /// is taken. `has_moment`: one came with the claim, and is used unless reading `robots.txt` let it pass.
    pub async fn turn(&self, url: &CanonicalUrl, has_moment: bool) -> Turn {
        let (known, took_time) = match self.robots(url).await {
            Ok(read) => read,
            // The queue could not be asked: nothing is fetched on a guess, and nothing dies of it.
            Err(_) => return Turn::Later(None),
        };
        match (known.rules.verdict(url), known.dies_of) {
            (RobotsVerdict::Allowed, _) => {}
            (RobotsVerdict::Disallowed, _) => return Turn::Never(FailureClass::Robots),
            (RobotsVerdict::Unreachable, Some(class)) => return Turn::Never(class),
            (RobotsVerdict::Unreachable, None) => {
                let left = known.until - tokio::time::Instant::now();
                return Turn::Later(Some(left));
            }
        }
        // The moment of the claim has passed where `robots.txt` was read in between.
        if has_moment && !took_time {
            return Turn::Claimed;
        }
        let host = url.host_key();
        let pause = self.limit(&host).pause_us;
        match self.queue.take_moment(&host, pause).await {
            Ok(wait) if wait <= MAX_WAIT_US => Turn::In(wait),
            Ok(wait) => Turn::Later(u64::try_from(wait).ok().map(Duration::from_micros)),
            Err(_) => Turn::Later(None),
        }
    }

    /// The database's clock, and what any worker knows of the host's origins, in times of that clock.
    async fn stored(&self, host: &str) -> Result<(Instant, BTreeMap<String, RobotsState>)> {
        let Some(record) = self.queue.find_host(host).await? else {
            return Ok((Instant::from_micros(0), BTreeMap::new()));
        };
        let texts = record.robots.and_then(|t| serde_json::from_str(&t).ok());
        Ok((Instant::from_micros(record.now), texts.unwrap_or_default()))
    }

    /// Keeps what was read now for all workers: for as long as it holds, from the database's now on. The clock
    /// of this machine may be wrong; only what passed on it counts.
    async fn keep(
        &self,
        host: &str,
        origin: &str,
        read: RobotsState,
    ) -> Result<(Instant, RobotsState)> {
        let holds_us = read.expires_at.micros() - read.fetched_at.micros();
        let (now, mut texts) = self.stored(host).await?;
        let state = patience::counted(read, now, holds_us, texts.get(origin));
        let holds_us = state.expires_at.micros() - now.micros();
        texts.insert(origin.to_owned(), state.clone());
        let text = serde_json::to_string(&texts).unwrap_or_default();
        self.queue.keep_robots(host, &text, holds_us.max(0)).await?;
        Ok((now, state))
    }

    /// Tells that a `robots.txt` could not be read, and has the host left alone until it is asked for again, unless its
    /// requests die of that.
    async fn put_off(
        &self,
        host: &str,
        note: String,
        state: &RobotsState,
        now: Instant,
    ) -> Result<()> {
        let left_us = state.expires_at.micros() - now.micros();
        if patience::verdict(state).is_none() {
            self.queue.put_off_host(host, left_us, &note).await?;
        }
        lock(&self.notes).push(note);
        Ok(())
    }

    fn remembered(&self, origin: &str) -> Option<Arc<KnownRobots>> {
        let known = lock(&self.robots).get(origin).cloned();
        known.filter(|k| tokio::time::Instant::now() < k.until)
    }

    /// Keeps at least this pause to the host from now on.
    fn slow_down(&self, host: &str, pause_us: i64) {
        let mut limits = lock(&self.limits);
        let usual = limits.usual;
        let limit = limits.named.entry(host.to_owned()).or_insert(usual);
        limit.pause_us = limit.pause_us.max(pause_us);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is inside is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps for so many microseconds; not at all for none.
pub(super) async fn sleep_us(us: i64) {
    if let Ok(us @ 1..) = u64::try_from(us) {
        tokio::time::sleep(Duration::from_micros(us)).await;
    }
}

/// The gate of one fetch.
#[derive(Debug)]
pub(super) struct CrawlGate<'a> {
    pub(super) hosts: &'a Hosts,
    /// The host whose moment came with the claim.
    pub(super) claimed: &'a str,
}

#[async_trait]
impl HopCheck for CrawlGate<'_> {
    async fn admit(&self, hop: &Continuation) -> HopDecision {
        let host = hop.url.host_key();
        let has_moment = hop.hop == 0 && host == self.claimed;
        match self.hosts.turn(&hop.url, has_moment).await {
            Turn::Claimed => HopDecision::Go,
            Turn::In(wait) => {
                sleep_us(wait).await;
                HopDecision::Go
            }
            Turn::Later(wait) => HopDecision::NotNow { wait },
            Turn::Never(class) => HopDecision::Refuse(class),
        }
    }
}
