//! `source test`: what one check found.

use lakebed::Error;
use serde::Serialize;

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It is as it should be.
    Pass,
    /// It is not.
    Fail,
    /// The source declares nothing that could be checked.
    NotDeclared,
}

/// A check and what it found.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    /// Of what.
    pub(super) check: &'static str,
    /// What it says.
    pub(super) verdict: Verdict,
    /// What was found, in words.
    pub(super) found: Vec<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hints: Vec<String>,
}

impl Check {
    pub(super) fn pass(check: &'static str, found: String) -> Self {
        Self {
            check,
            verdict: Verdict::Pass,
            found: vec![found],
            hints: Vec::new(),
        }
    }

    pub(super) fn not_declared(check: &'static str, found: &str) -> Self {
        Self {
            check,
            verdict: Verdict::NotDeclared,
            found: vec![found.to_owned()],
            hints: Vec::new(),
        }
    }

    pub(super) fn fail(check: &'static str, found: Vec<String>, hints: Vec<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Fail,
            found,
            hints,
        }
    }

    pub(super) fn failed(check: &'static str, error: &Error) -> Self {
        let mut found = vec![error.to_string()];
        found.extend(error.details().iter().cloned());
        Self {
            check,
            verdict: Verdict::Fail,
            found,
            hints: error.hints().to_vec(),
        }
    }
}
