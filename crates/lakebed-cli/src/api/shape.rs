//! Calls and answers as JSON. The document of the interface is made of these types and their comments.
//!
//! Names end in their unit (`_ms`, `_bytes`). Where a key is absent, its comment says what that means; `null` counts as absent.
//! Unknown keys are refused. In calls, what is absent has a default; in answers, keys are only ever added within version 1.

use std::collections::BTreeMap;

use lakebed::crawl::{FinishReport, PackStatistics, SeedSpec};
use lakebed::queue::{Breach, Claim, EnqueueStats, Expectation, LaneProgress, RunBooks};
use lakebed::spec::{RawText, RunKey};
use lakebed::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the answers.
pub(super) const FORMAT: u32 = 1;

/// A call without any content: `{}`, or no body at all.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NothingCall")]
pub(super) struct NothingCall {}

/// A request to fetch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Request")]
pub(super) struct RequestShape {
    /// `http` or `https`. As a follow-up it may be relative to the last response.
    url: String,
    /// Absent: `seed_stage` of the source, or its only stage.
    stage: Option<String>,
    /// Absent: `GET`.
    method: Option<String>,
    /// The body; absent for none. With method, URL and stage it is what makes a request another one.
    body: Option<String>,
    /// Headers of this request alone.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Any JSON, given back with the claim; it makes no other request.
    carry: Option<serde_json::Value>,
    /// Smaller is sooner, within a host. Absent: that of the stage.
    priority: Option<i64>,
    /// Counted under this name at the closing, `expects` says how many there must be.
    group: Option<String>,
}

impl RequestShape {
    pub(super) fn into_spec(self) -> Result<SeedSpec> {
        let stage = self.stage.map(|s| s.parse()).transpose();
        Ok(SeedSpec {
            url: self.url,
            stage: stage?,
            method: self.method,
            body: self.body,
            headers: self.headers,
            carry: self.carry,
            priority: self.priority,
            group: self.group,
            reason: None,
            key: None,
        })
    }
}

/// A batch of seeds of a run that is seeding.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SeedsCall")]
pub(super) struct SeedsCall {
    /// A name of this start of the planner that no other has, such as a UUID.
    pub(super) seeding: String,
    /// 0, 1, 2 and so on. Batch 0 of a new name begins from nothing. A batch that is sent again is answered as before and counted once.
    pub(super) batch: u32,
    /// At most 5,000. Each is checked before any is added.
    pub(super) seeds: Vec<RequestShape>,
}

/// The end of a seeding.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OpenCall")]
pub(super) struct OpenCall {
    /// The name of the seeding.
    pub(super) seeding: String,
    /// Seeds of the plan, as the planner counted them by itself: it must be what came.
    pub(super) announced: u64,
    /// Names the plan. Absent: made of the batches.
    pub(super) plan_hash: Option<String>,
}

/// Requests that no page led to, for a run that is open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RequestsCall")]
pub(super) struct RequestsCall {
    /// At most 5,000. What is there already is counted as a duplicate, so the call may be repeated.
    pub(super) requests: Vec<RequestShape>,
}

/// Why a run is stopped.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StopCall")]
pub(super) struct StopCall {
    /// In words; stands in the closing.
    pub(super) reason: String,
}

/// A worker that joins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkerCall")]
pub(super) struct WorkerCall {
    /// Where it runs, for people.
    #[serde(default)]
    pub(super) label: String,
}

/// A call for requests to fetch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClaimsCall")]
pub(super) struct ClaimsCall {
    /// The worker.
    pub(super) worker: String,
    /// At most so many; 1 to 1,000.
    pub(super) limit: u32,
    /// Of these stages alone; absent or empty for all.
    #[serde(default)]
    pub(super) stages: Vec<String>,
    /// A name of this call. The same name again is answered with the same claims: for who did not get the answer.
    pub(super) call: Option<String>,
}

/// A URL that no claim brought a moment for: where a redirect leads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TurnCall")]
pub(super) struct TurnCall {
    /// Absolute.
    pub(super) url: String,
}

/// How a claim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "End")]
pub(super) enum EndShape {
    /// Answered: the last response is kept and parsed.
    Done,
    /// The attempt failed and counts.
    Failed,
    /// The host asked to wait: nobody asks it meanwhile, and the attempt does not count.
    Blocked,
    /// Not tried: the attempt does not count.
    GivenBack,
}

/// The end of a claim, with everything that came. The bytes of the bodies follow the JSON (docs/api.md).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FinishCall")]
pub(super) struct FinishCall {
    /// The worker.
    pub(super) worker: String,
    /// The attempt of the claim.
    pub(super) attempt: u32,
    /// How it ended.
    pub(super) end: EndShape,
    /// What came, in order: one for each redirect, the last one is the answer. Kept whatever the end is.
    #[serde(default)]
    pub(super) responses: Vec<ResponseShape>,
    /// The program followed redirects that it cannot tell: the first response may have another URL than the claim.
    #[serde(default)]
    pub(super) hidden_redirects: bool,
    /// With `done`: follow-ups. Those out of the source's hosts, and what is no URL, are counted and not followed. Absent: the
    /// rules `follow` of source.toml find them in the page.
    pub(super) follow: Option<Vec<RequestShape>>,
    /// With `follow`: links that the page named, those not in the list included. Absent: as many as the list has.
    pub(super) announced: Option<u64>,
    /// With `follow`: what the page says there must be.
    #[serde(default)]
    pub(super) expects: Vec<ExpectShape>,
    /// With `failed`: why, such as `timeout_total`, or a word of your own. Absent: `http_<status>` of the last response.
    pub(super) class: Option<String>,
    /// With `failed`: whether another attempt may help. Absent: as the built-in fetcher does, and yes for a word of your own.
    pub(super) retry: Option<bool>,
    /// With `blocked`: for so long; kept within a second and an hour. Absent: as `Retry-After` of the last response says, else a minute.
    pub(super) wait_ms: Option<u64>,
}

/// What a page said there must be by the closing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expectation")]
pub(super) struct ExpectShape {
    /// The group.
    group: String,
    /// At least so many different requests.
    expected: u64,
}

impl From<ExpectShape> for Expectation {
    fn from(shape: ExpectShape) -> Self {
        Self {
            group: shape.group,
            expected: shape.expected,
        }
    }
}

/// Bytes that are text as a rule: a string, or `{"base64": "..."}`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Text")]
#[allow(dead_code, reason = "the schema of RawText, which has none of its own")]
enum TextForm {
    /// UTF-8.
    Text(String),
    /// Other bytes.
    Bytes {
        /// RFC 4648 with padding.
        base64: String,
    },
}

/// A header: its name and its value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Header")]
pub(super) struct HeaderShape(
    pub(super) String,
    #[schemars(with = "TextForm")] pub(super) RawText,
);

/// One response, or how a hop ended without one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Response")]
pub(super) struct ResponseShape {
    /// What was asked for: of the first response the URL of the claim, of the others where the redirect led.
    pub(super) url: String,
    /// Absent: that of the claim.
    pub(super) method: Option<String>,
    /// HTTP status, 200 to 599. Absent: no response came, and `error` says why.
    pub(super) status: Option<u16>,
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2` or `HTTP/3`. Absent: not known.
    pub(super) http_version: Option<String>,
    /// Words of the status line. Absent: the usual ones.
    pub(super) reason: Option<String>,
    /// Headers in their order, a pair each, repeated ones kept.
    #[serde(default)]
    pub(super) headers: Vec<HeaderShape>,
    /// Headers that were sent; values of `Authorization`, `Cookie` and `Proxy-Authorization` are replaced. Absent: not told.
    pub(super) request_headers: Option<Vec<HeaderShape>>,
    /// Bytes of its body in what follows the JSON.
    #[serde(default)]
    pub(super) body_bytes: u64,
    /// The server sent a body of no bytes. An answer without bytes is refused unless this is said.
    #[serde(default)]
    pub(super) empty: bool,
    /// Content encodings that your program removed, outermost first. Must be there where the head names an encoding.
    pub(super) removed_encodings: Option<Vec<String>>,
    /// Bytes of the body on the wire. Absent: `body_bytes`.
    pub(super) wire_bytes: Option<u64>,
    /// Whether the body is whole.
    #[serde(default)]
    pub(super) truncated: TruncatedShape,
    /// Why there is no response, in one line.
    pub(super) error: Option<String>,
    /// How long before this call the head (or the failure) came. No clock is compared.
    #[serde(default)]
    pub(super) age_ms: u64,
    /// Address of the server. Absent: not known.
    pub(super) remote_ip: Option<String>,
}

/// Whether a body is whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Truncated")]
pub(super) enum TruncatedShape {
    /// It is.
    #[default]
    None,
    /// Cut at a limit of size.
    Length,
    /// Cut at a limit of time.
    Time,
    /// The server went away.
    Disconnect,
}

/// Source, date and name of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "RunKey")]
pub(super) struct RunKeyShape {
    /// The source.
    source: String,
    /// Business date, `YYYY-MM-DD`.
    date: String,
    /// The run's name.
    run: String,
}

impl From<&RunKey> for RunKeyShape {
    fn from(key: &RunKey) -> Self {
        Self {
            source: key.source.to_string(),
            date: key.date.to_string(),
            run: key.run.to_string(),
        }
    }
}

/// How many requests went where; `announced` is the sum of the others.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
#[schemars(rename = "Counts")]
pub(super) struct CountsShape {
    /// What was meant to be added.
    announced: u64,
    /// New.
    inserted: u64,
    /// There already.
    duplicate: u64,
    /// Out of the source's hosts, or no URL.
    out_of_scope: u64,
}

impl From<EnqueueStats> for CountsShape {
    fn from(stats: EnqueueStats) -> Self {
        let EnqueueStats {
            announced,
            inserted,
            duplicate,
            out_of_scope,
        } = stats;
        Self {
            announced,
            inserted,
            duplicate,
            out_of_scope,
        }
    }
}

/// A run: where it is, what it has, and what crawlers must know.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunAnswer")]
pub(super) struct RunAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Which run.
    pub(super) run: RunKeyShape,
    /// `seeding`, `open`, `sealed` or `closed`.
    pub(super) state: String,
    /// Why it was stopped; absent as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    /// Its seeds and added requests.
    pub(super) seeds: CountsShape,
    /// Names the plan; absent while seeding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan_hash: Option<String>,
    /// Requests that have not ended, as the workers counted.
    pub(super) left: u64,
    /// Counts by stage and host.
    pub(super) progress: Vec<ProgressShape>,
    /// The verdict; absent before the closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closing: Option<ClosingShape>,
    /// What crawlers must send as `User-Agent`.
    pub(super) user_agent: String,
    /// Stages there are.
    pub(super) stages: Vec<String>,
    /// Largest body of a response.
    pub(super) max_body_bytes: u64,
    /// Statuses beside 2xx that are an answer.
    pub(super) accept_statuses: Vec<u16>,
}

/// Counts of a stage on a host, over all workers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Progress")]
pub(super) struct ProgressShape {
    /// The stage.
    stage: String,
    /// The host, with its port where it is not the usual one.
    host: String,
    /// Requests that entered.
    enqueued: i64,
    /// Done.
    done: i64,
    /// Dead.
    dead: i64,
    /// Attempts that failed.
    failed: i64,
}

impl From<LaneProgress> for ProgressShape {
    fn from(lane: LaneProgress) -> Self {
        let LaneProgress {
            stage,
            host,
            enqueued,
            done,
            dead,
            failed,
        } = lane;
        Self {
            stage,
            host,
            enqueued,
            done,
            dead,
            failed,
        }
    }
}

/// What became of a batch of seeds, or of added requests.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "CountsAnswer")]
pub(super) struct CountsAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Of this call.
    pub(super) counts: CountsShape,
}

/// A worker.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WorkerAnswer")]
pub(super) struct WorkerAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Its name, unique for ever.
    pub(super) worker: String,
    /// A worker that is silent for so long has lost its claims. Every call of it is a sign of life.
    pub(super) lease_ms: u64,
    /// Give a sign of life so often.
    pub(super) heartbeat_ms: u64,
    /// A claim ends after so long even where its worker lives.
    pub(super) hold_ms: u64,
}

/// A sign of life that was heard.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HeartbeatAnswer")]
pub(super) struct HeartbeatAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Always true: of a lost worker the call is refused with `worker_lost`.
    pub(super) alive: bool,
}

/// A worker that has left.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LeaveAnswer")]
pub(super) struct LeaveAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Claims that went back.
    pub(super) given_back: u64,
}

/// What a claim found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ClaimsOutcome")]
pub(super) enum ClaimsOutcome {
    /// These requests.
    Claimed,
    /// Nothing is ready; ask again after `wait_ms`.
    Wait,
    /// Every request of the run has ended.
    Drained,
    /// The run was stopped, `reason` says why.
    Stopped,
}

/// Requests to fetch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClaimsAnswer")]
pub(super) struct ClaimsAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// What was found.
    pub(super) outcome: ClaimsOutcome,
    /// In the order to work on them; empty unless `claimed`.
    pub(super) claims: Vec<ClaimShape>,
    /// With `wait`: ask again after so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait_ms: Option<u64>,
    /// With `stopped`: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// A claimed request.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Claim")]
pub(super) struct ClaimShape {
    /// Its number, for the finish.
    request: i64,
    /// Which claim of it this is; with the worker, what a finish must name.
    attempt: u32,
    /// Attempts that failed before.
    failures: u32,
    /// What is asked for, as 32 hex digits.
    request_key: String,
    /// The stage.
    stage: String,
    /// The host.
    host: String,
    /// In capitals.
    method: String,
    /// The address.
    url: String,
    /// Headers of its own.
    headers: BTreeMap<String, String>,
    /// The body to send; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TextForm>")]
    body: Option<RawText>,
    /// What came with the request; absent for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    carry: Option<serde_json::Value>,
    /// Begin no sooner than so long after this answer: the host's next free moment.
    wait_ms: u64,
}

/// Microseconds of the queue as milliseconds, rounded up: nobody comes too early.
pub(super) fn millis(us: i64) -> u64 {
    u64::try_from(us).unwrap_or(0).div_ceil(1000)
}

impl From<Claim> for ClaimShape {
    fn from(claim: Claim) -> Self {
        let carry = claim.carry.map(|text| {
            // What was enqueued by other ways need not be JSON.
            serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
        });
        Self {
            request: claim.id,
            attempt: claim.attempt,
            failures: claim.failures,
            request_key: claim.request_key.to_string(),
            stage: claim.stage.to_string(),
            host: claim.host,
            method: claim.method,
            url: claim.url,
            headers: claim.headers.into_iter().collect(),
            body: claim.body.map(RawText),
            carry,
            wait_ms: millis(claim.wait_us),
        }
    }
}

/// Whether and when a URL may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TurnVerdict")]
pub(super) enum TurnVerdict {
    /// After `wait_ms`; the moment is yours.
    Go,
    /// Not soon: give the claim back.
    Later,
    /// Not at all: finish the claim as `failed` with `class`.
    Never,
}

/// Whether and when a URL may be asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TurnAnswer")]
pub(super) struct TurnAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Whether.
    pub(super) verdict: TurnVerdict,
    /// With `go`: begin no sooner than after so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wait_ms: Option<u64>,
    /// With `never`: `robots` or `robots_unreachable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) class: Option<String>,
}

/// A finish that counted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FinishAnswer")]
pub(super) struct FinishAnswer {
    /// Version of this shape: 1.
    format: u32,
    /// The request.
    request: i64,
    /// `done`, `failed` (it waits for another attempt), `dead`, or `pending` (it waits, and no attempt was counted).
    state: String,
    /// Class of the failure; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// With `done`: the id of the response, by which it is found in the pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<String>,
    /// With `done`: its follow-ups.
    follow_ups: CountsShape,
}

impl FinishAnswer {
    pub(super) fn of(request: i64, report: &FinishReport) -> Self {
        Self {
            format: FORMAT,
            request,
            state: report.state.as_str().to_owned(),
            class: report.class.clone(),
            capture: report.capture.as_ref().map(ToString::to_string),
            follow_ups: report.children.into(),
        }
    }
}

/// Why a run is not green.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Breach")]
pub(super) struct BreachShape {
    /// `stopped`, `unfinished`, `unbalanced`, `zero_seeds`, `all_dead`, `too_few`, `too_many_dead`, `missing_capture`, `short_group` or `no_links`.
    kind: String,
    /// In words, with the numbers.
    message: String,
    /// Examples.
    samples: Vec<String>,
}

impl From<&Breach> for BreachShape {
    fn from(breach: &Breach) -> Self {
        let kind = serde_json::to_value(breach.kind).unwrap_or_default();
        Self {
            kind: kind.as_str().unwrap_or_default().to_owned(),
            message: breach.message.clone(),
            samples: breach.samples.clone(),
        }
    }
}

/// A verdict that stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Closing")]
pub(super) struct ClosingShape {
    /// Whether the run is green.
    pub(super) pass: bool,
    /// Why it is not.
    pub(super) breaches: Vec<BreachShape>,
}

/// The counted books of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Books")]
pub(super) struct BooksShape {
    /// Seeds and added requests, as their calls counted them.
    seeds: CountsShape,
    /// Follow-ups, as the pages counted them.
    children: CountsShape,
    /// Requests of seeds and calls that are there.
    seed_rows: u64,
    /// Requests of pages that are there.
    child_rows: u64,
    /// Requests by state.
    states: BTreeMap<String, u64>,
    /// Dead requests by class.
    dead_classes: BTreeMap<String, u64>,
    /// Done requests by status; 0 where there was none.
    done_statuses: BTreeMap<String, u64>,
    /// Done requests without a response.
    without_capture: u64,
    /// Claims that were made.
    attempts: u64,
    /// Attempts that failed.
    failures: u64,
}

impl From<&RunBooks> for BooksShape {
    fn from(books: &RunBooks) -> Self {
        let text = |(key, n): (&i64, &u64)| (key.to_string(), *n);
        let states = books.states.iter().map(|(k, n)| ((*k).to_owned(), *n));
        Self {
            seeds: books.seeds.into(),
            children: books.children.into(),
            seed_rows: books.seed_rows,
            child_rows: books.child_rows,
            states: states.collect(),
            dead_classes: books.dead_classes.clone(),
            done_statuses: books.done_statuses.iter().map(text).collect(),
            without_capture: books.without_capture,
            attempts: books.attempts,
            failures: books.failures,
        }
    }
}

/// The pack of a run in the lake.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pack")]
pub(super) struct PackShape {
    /// `raw/<source>`.
    dataset: String,
    /// The pack within the lake.
    pack: String,
    /// Its index within the lake.
    index: String,
    /// The identity of what it holds.
    content: String,
    /// Responses in it.
    captures: u64,
    /// Responses that lay there twice and are kept once.
    repeats: u64,
    /// Responses of attempts that did not count.
    unnamed: u64,
    /// Requests whose end it tells.
    requests: u64,
    /// Bytes of all bodies.
    body_bytes: u64,
    /// The record of the lake's log that holds it.
    log_position: u64,
}

impl From<&PackStatistics> for PackShape {
    fn from(pack: &PackStatistics) -> Self {
        let PackStatistics {
            dataset,
            pack,
            index,
            content,
            captures,
            repeats,
            unnamed,
            requests,
            body_bytes,
            log_position,
        } = pack.clone();
        Self {
            dataset,
            pack,
            index,
            content,
            captures,
            repeats,
            unnamed,
            requests,
            body_bytes,
            log_position,
        }
    }
}

/// A run after the call that was to close it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CloseAnswer")]
pub(super) struct CloseAnswer {
    /// Version of this shape: 1.
    pub(super) format: u32,
    /// Which run.
    pub(super) run: RunKeyShape,
    /// `closed`; `sealed` while requests have not ended.
    pub(super) state: String,
    /// Whether it is green.
    pub(super) pass: bool,
    /// What `lakebed crawl close` ends with: 0 for green, else 10 to 19.
    pub(super) exit_code: u8,
    /// Why it is not green, the first reason first.
    pub(super) breaches: Vec<BreachShape>,
    /// What was counted.
    pub(super) books: BooksShape,
    /// Its pack in the lake; absent where there is none: nothing to pack, or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pack: Option<PackShape>,
    /// What to do where its pack was refused by this call; empty else.
    pub(super) hints: Vec<String>,
}

/// The name of a stage in a call.
pub(super) fn stage(text: &str) -> Result<lakebed::name::StageName, Error> {
    text.parse()
}
