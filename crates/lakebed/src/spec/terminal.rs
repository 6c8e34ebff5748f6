//! How each request of a run ended: a line of `TERMINALS.jsonl` in a pack.

use serde::{Deserialize, Serialize};

use crate::name::{CaptureId, ErrorClass, RequestKey, StageName};

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
