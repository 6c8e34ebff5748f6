//! The polite fetcher: one request in, one outcome and the captures of its hops out.
//!
//! ```text
//! FetchRequest -> Fetcher --(each hop: check, cookies, transport, body, decode, charset)--> Fetched
//!                                ^                                                            |
//!                                +---------------- redirect ---------------------- captures + FetchOutcome
//! ```
//!
//! | part | what it knows |
//! | --- | --- |
//! | `options` | everything a source says about its fetching |
//! | `outcome`, `class` | what comes out, and the closed set of failures |
//! | `exchange`, `transport`, `dial`, `tap` | connections, TLS, proxies, the bytes of heads |
//! | `address` | which addresses may be reached |
//! | `redirect`, `cookies`, `retry_after` | rules of HTTP, pure |
//! | `body`, `decode`, `capture` | from bytes of the wire to a body and what is recorded of it |
//! | `robots`, `robots_reader` | `robots.txt` (RFC 9309), and how it is read from an origin |
//! | `breaker` | when a run has to stop |
//!
//! What does not belong here: when a host has its turn (the queue's host table), what is kept (`pack`).

mod address;
mod body;
mod breaker;
mod capture;
mod class;
mod cookies;
mod decode;
mod dial;
mod exchange;
mod fetcher;
mod head;
mod options;
mod outcome;
mod redirect;
mod retry_after;
mod robots;
mod robots_reader;
mod tap;
#[cfg(test)]
mod tests;
mod transport;

pub use address::{AddressPolicy, Network};
pub use breaker::{BreakerSample, CircuitBreaker};
pub use class::FailureClass;
pub use cookies::CookieJar;
pub use fetcher::Fetcher;
pub use head::{REMOVED, header_values, mask_cookies, mask_secrets};
pub use options::{FetchLimits, FetchOptions, ProxySpec};
pub use outcome::{
    Capture, Continuation, Failure, FetchOutcome, FetchRequest, Fetched, HopCheck, HopDecision,
    NoHopCheck, Validators,
};
pub use redirect::RedirectOptions;
pub use retry_after::RetryAfterLimits;
pub use robots::{RobotsRules, RobotsVerdict};
