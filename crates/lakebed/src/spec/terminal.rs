//! How each request of a run ended: a line of `TERMINALS.jsonl` in a pack.

use serde::{Deserialize, Serialize};

use crate::name::{BodyHash, CaptureId, ErrorClass, RequestKey, StageName};

/// The end of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalRecord {
    /// Which request.
    pub request_key: RequestKey,
    /// Its stage.
    pub stage: StageName,
    /// In capitals.
    pub method: String,
    /// In canonical form, as it was enqueued.
    pub url: String,
    /// How it ended.
    pub state: TerminalState,
    /// Why it is dead; absent for `done`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub class: Option<ErrorClass>,
    /// Attempts that were made.
    pub attempts: u32,
    /// The capture that made it `done`: the one that is parsed. Absent for `dead` (a request may have
    /// captures of failed attempts: they are kept and not parsed).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capture: Option<CaptureId>,
    /// What the books know of the response that made it `done`. It chooses among several with one id while a pack is
    /// sealed, and is not written.
    #[serde(skip)]
    pub answer: Answer,
}

/// What tells one response of an attempt from another; what is absent is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: Option<u16>,
    /// Its body.
    pub body: Option<BodyMark>,
}

/// The first 63 bits of a body's hash: enough to tell two answers to one question apart, and a number for every database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyMark(i64);

impl BodyMark {
    /// The mark of the body with this hash; `None` for the one that stands for an unknown body.
    #[must_use]
    pub fn of(hash: &BodyHash) -> Option<Self> {
        let digits = hash.as_str().get(..16)?;
        let bits = u64::from_str_radix(digits, 16).ok()?;
        Self::from_int(i64::try_from(bits >> 1).ok()?)
    }

    /// As a database keeps it; 0 = unknown.
    #[must_use]
    pub fn from_int(mark: i64) -> Option<Self> {
        (mark > 0).then_some(Self(mark))
    }

    /// As a database keeps it.
    #[must_use]
    pub fn to_int(self) -> i64 {
        self.0
    }
}

/// The two ends of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalState {
    /// Answered, and the bytes are durable.
    Done,
    /// Given up, with a class.
    Dead,
}
