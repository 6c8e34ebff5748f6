//! What is known of the `robots.txt` of an origin: plain data that a table of hosts stores, so that every
//! worker keeps to the same text.

use serde::{Deserialize, Serialize};

use crate::time::Instant;

/// What reading the `robots.txt` of one origin (scheme, host and port) gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsState {
    /// When it was read, or could not be. Where workers share it, both instants are of the queue database's clock.
    pub fetched_at: Instant,
    /// It says nothing from this instant on: read it again first. At most a day after `fetched_at`.
    pub expires_at: Instant,
    /// What it says.
    pub content: RobotsContent,
    /// `ETag` of the text, to ask whether it changed; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub etag: Option<String>,
    /// `Last-Modified` of the text, likewise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_modified: Option<String>,
    /// Reads in a row that failed, this one with them; 0 where it could be read.
    #[serde(skip_serializing_if = "is_none", default)]
    pub failed_reads: u32,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_none(reads: &u32) -> bool {
    *reads == 0
}

/// What a `robots.txt` says, before its rules are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RobotsContent {
    /// There is one: its text, at most 500 KiB.
    Text {
        /// Bytes that are no UTF-8 are replaced.
        text: String,
    },
    /// There is none (a status 4xx, or more than five redirects): everything is allowed.
    Absent,
    /// It cannot be read (5xx, 429, the network): nothing is allowed until it can be.
    Unreachable {
        /// What stands in the way: the class of the failure, such as `http_503` or `dns`.
        class: String,
    },
}

impl RobotsState {
    /// Whether it may still be relied on.
    #[must_use]
    pub fn is_fresh(&self, now: Instant) -> bool {
        now < self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_plain_data() {
        let state = RobotsState {
            fetched_at: "2026-11-30T00:00:00Z".parse().unwrap(),
            expires_at: "2026-12-01T00:00:00Z".parse().unwrap(),
            content: RobotsContent::Unreachable {
                class: "http_503".to_owned(),
            },
            etag: None,
            last_modified: None,
            failed_reads: 2,
        };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(
            text,
            r#"{"fetched_at":"2026-11-30T00:00:00.000000Z","expires_at":"2026-12-01T00:00:00.000000Z","content":{"kind":"unreachable","class":"http_503"},"failed_reads":2}"#
        );
        assert_eq!(serde_json::from_str::<RobotsState>(&text).unwrap(), state);
        assert!(state.is_fresh("2026-11-30T23:59:59Z".parse().unwrap()));
        assert!(!state.is_fresh(state.expires_at));
    }
}
