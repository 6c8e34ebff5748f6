//! What goes into the queue and what comes out of it: requests to add, claims, and how they ended.

use crate::error::{Error, Result};
use crate::name::{CaptureId, ContentHash, ErrorClass, RequestKey, StageName};
use crate::spec::{BodyMark, RunKey, request_key};

/// A request to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// Its stage: the kind of page.
    pub stage: StageName,
    /// In capitals.
    pub method: String,
    /// In canonical form: two texts of one address would be two requests.
    pub url: String,
    /// Headers of its own; what every request of the source sends is configuration.
    pub headers: Vec<(String, String)>,
    /// The body; part of the key.
    pub body: Option<Vec<u8>>,
    /// What the caller wants back with the response (JSON, a parent's id, a page number); not part of the key.
    pub carry: Option<String>,
    /// Smaller is sooner, within a host; 0 is usual.
    pub priority: i64,
    /// Counted under this name at the closing ([`Expectation`]), even where the request is a duplicate.
    pub group: Option<String>,
    /// Whether its key is unique within the run or within the source's date.
    pub scope: KeyScope,
}

impl NewRequest {
    /// A `GET` of a canonical URL, unique within its run.
    #[must_use]
    pub fn get(stage: StageName, url: impl Into<String>) -> Self {
        Self {
            stage,
            method: "GET".to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            carry: None,
            priority: 0,
            group: None,
            scope: KeyScope::Run,
        }
    }

    /// Its key: what is asked for ([`request_key`]).
    #[must_use]
    pub fn key(&self) -> RequestKey {
        request_key(&self.stage, &self.method, &self.url, self.body.as_deref())
    }

    /// The name of its host, with the port where it is not the usual one.
    ///
    /// # Errors
    /// `InvalidInput` where the URL has none.
    pub fn host(&self) -> Result<String> {
        let url = url::Url::parse(&self.url)
            .map_err(|e| Error::invalid(format!("`{}` is not a URL", self.url)).caused_by(e))?;
        let host = url.host_str().filter(|h| !h.is_empty() && h.len() <= 253);
        let host = host.ok_or_else(|| Error::invalid(format!("`{}` has no host", self.url)))?;
        Ok(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
    }
}

/// Within what a request's key is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyScope {
    /// Its run: the next sweep of the day asks again.
    #[default]
    Run,
    /// The source and business date: what an earlier run of the date has enqueued is a duplicate.
    Date,
}

/// How many requests of a call went where; `announced == inserted + duplicate + out_of_scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct EnqueueStats {
    /// What the caller meant to add.
    pub announced: u64,
    /// New in the queue.
    pub inserted: u64,
    /// There already.
    pub duplicate: u64,
    /// Refused by the rules of the source before they came here; the caller counts them.
    pub out_of_scope: u64,
}

impl EnqueueStats {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            announced: self.announced + other.announced,
            inserted: self.inserted + other.inserted,
            duplicate: self.duplicate + other.duplicate,
            out_of_scope: self.out_of_scope + other.out_of_scope,
        }
    }

    /// Whether what was announced is what came.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.announced == self.inserted + self.duplicate + self.out_of_scope
    }
}

/// What a page said there must be: so many requests in a group by the closing, such as the pages or the
/// items that a first list page counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The group ([`NewRequest::group`]).
    pub group: String,
    /// At least so many different requests.
    pub expected: u64,
}

/// A claimed request. It is the worker's until it finishes it, gives it back, or the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The run's number in the queue database.
    pub run_id: i64,
    /// The request's number.
    pub id: i64,
    /// Its lane: stage and host of the run.
    pub lane_id: i64,
    /// Which claim of this request it is, from 1: with the worker, the fence of the finish.
    pub attempt: u32,
    /// Attempts that failed before.
    pub failures: u32,
    /// What is asked for.
    pub request_key: RequestKey,
    /// The stage.
    pub stage: StageName,
    /// The host, as [`NewRequest::host`] gives it.
    pub host: String,
    /// In capitals.
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers of its own.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// What the caller of the enqueue wanted back.
    pub carry: Option<String>,
    /// Start no sooner than so many microseconds after the claim: the slot of the host.
    pub wait_us: i64,
    /// Whether it holds one of the host's places.
    pub holds_slot: bool,
}

/// How a claim ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The request's number.
    pub id: i64,
    /// The attempt of the claim.
    pub attempt: u32,
    /// The end.
    pub end: FinishKind,
}

/// The ends of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishKind {
    /// Answered; the bytes are durable. Its follow-ups enter in the same transaction.
    Done(DoneSpec),
    /// The attempt failed and counts. It is tried again until the failures reach their limit, or at
    /// once no more where `retry` is unset.
    Failed {
        /// Why.
        class: ErrorClass,
        /// Whether another attempt may help.
        retry: bool,
        /// HTTP status, where there was one.
        status: Option<u16>,
    },
    /// The host asked to wait: it is blocked for everybody, and the attempt does not count.
    Blocked {
        /// For so long, microseconds; clamped by the caller.
        wait_us: i64,
    },
    /// Not tried (the worker goes, or the circuit opened): the attempt does not count.
    GivenBack,
}

/// The success of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DoneSpec {
    /// The durable response; absent only where the caller keeps its bytes elsewhere.
    pub capture: Option<CaptureId>,
    /// HTTP status.
    pub status: Option<u16>,
    /// What its body is known by; absent where there is no capture, or nobody knows.
    pub body: Option<BodyMark>,
    /// Follow-up requests.
    pub children: Vec<NewRequest>,
    /// Follow-ups that the page named; the difference to `children` is out of scope. Never less than
    /// their number.
    pub announced: u64,
    /// What the page said there must be.
    pub expects: Vec<Expectation>,
    /// Each rule that looked for links on the page.
    pub links: Vec<LinkSeen>,
}

/// A rule that looked for links on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSeen {
    /// Its name, of at most 255 bytes, the same in every run.
    pub rule: String,
    /// Whether it found one within the source, new or not.
    pub is_hit: bool,
}

/// Whether a finish counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum FinishOutcome {
    /// It is recorded.
    Accepted,
    /// The lease had ended and the request is no longer this worker's: nothing was recorded.
    Lost,
}

/// A run as the queue knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its number in this database.
    pub id: i64,
    /// Source, date and name.
    pub key: RunKey,
    /// Where it is.
    pub state: super::RunState,
    /// Whether it claims to have seen everything.
    pub coverage: Coverage,
    /// Number of the first run of its source and date.
    pub day_id: i64,
    /// The run whose dead requests it tries again.
    pub successor_of: Option<i64>,
    /// Hash of the plan of its seeds; absent while seeding.
    pub plan_hash: Option<String>,
    /// The seeds.
    pub seeds: EnqueueStats,
    /// Finishes that came after the closing and were refused.
    pub late_finishes: u64,
    /// Why it was stopped before its end (the circuit breaker, a person); absent as a rule.
    pub stopped: Option<String>,
    /// What is left at this instant dies; database clock, microseconds.
    pub deadline_at: Option<i64>,
    /// Database clock, microseconds.
    pub created_at: i64,
    /// The result of the closing, JSON; absent before.
    pub closing: Option<String>,
}

/// What the hash of a plan begins with that a planner made.
const PLANNED: &str = "plan:";

/// The name of a planner's plan in the queue: a mark, and as much of the hash as its column holds.
#[must_use]
pub fn planned_hash(hash: &ContentHash) -> String {
    let digits = hash.as_str().get(..64 - PLANNED.len()).unwrap_or_default();
    format!("{PLANNED}{digits}")
}

impl RunRecord {
    /// Whether its seeds are those of a planner's plan.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.plan_hash
            .as_ref()
            .is_some_and(|hash| hash.starts_with(PLANNED))
    }
}

/// Whether a run claims to have seen everything of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// It does: what it did not see has vanished.
    #[default]
    Full,
    /// A sweep over a part: nothing follows from what it did not see.
    Partial,
}

impl Coverage {
    /// Its number in SQL.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Full => 0,
            Self::Partial => 1,
        }
    }

    /// The coverage of this number.
    #[must_use]
    pub fn of_code(code: i64) -> Self {
        if code == 1 { Self::Partial } else { Self::Full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, url: &str, body: Option<&str>) -> NewRequest {
        NewRequest {
            method: method.to_owned(),
            body: body.map(|b| b.as_bytes().to_vec()),
            ..NewRequest::get("list".parse().unwrap(), url)
        }
    }

    #[test]
    fn keys_of_different_requests_differ() {
        let all = [
            request("POST", "http://a/fo", Some("o")),
            request("POST", "http://a/foo", Some("")),
            request("POST", "http://a/foo", None),
            request("GET", "http://a/foo", None),
            request("GET", "http://a/foo?x=1", None),
            NewRequest::get("detail".parse().unwrap(), "http://a/foo"),
        ];
        for (i, a) in all.iter().enumerate() {
            for b in &all[..i] {
                assert_ne!(a.key(), b.key());
            }
            assert_eq!(
                a.key(),
                NewRequest {
                    carry: Some("x".into()),
                    priority: 9,
                    ..a.clone()
                }
                .key()
            );
        }
    }

    #[test]
    fn hosts_keep_an_unusual_port() {
        let host = |url: &str| request("GET", url, None).host().map_err(|e| e.kind());
        assert_eq!(host("http://a.test/x").unwrap(), "a.test");
        assert_eq!(host("http://a.test:8080/x").unwrap(), "a.test:8080");
        assert_eq!(host("https://a.test:443/x").unwrap(), "a.test");
        assert!(host("mailto:x@y").is_err());
        assert!(host("no url").is_err());
    }
}
