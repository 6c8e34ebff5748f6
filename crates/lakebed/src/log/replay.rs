//! The replay table: what happens to an input that may have been seen before.
//!
//! Within (dataset, dt), an input's identity is the BLAKE3 of its unpacked bytes:
//!
//! | met before | answer |
//! | --- | --- |
//! | never | new |
//! | in a visible partition, same version and rules, no new label (of its own label, where one is given) | already there: skipped and named |
//! | in a visible partition, under a new batch label | stored as a repeat |
//! | in visible partitions, each under another schema version or other reading rules | refused, hint `correct` |
//! | only in superseded partitions | new |
//! | only in retired or purged partitions | refused without `--restore` |
//! | erased | refused always |
//! | on another date | new, with a warning |
//! | its batch label with other content | refused |
//! | only as an input without rows, and it is a retry of rejects | new |

use std::fmt;

use crate::error::Error;
use crate::log::state::{DatasetState, InputState};
use crate::name::{BatchLabel, ContentHash};
use crate::spec::{PartitionKey, PartitionState};
use crate::time::BusinessDate;

/// An input about to be ingested.
#[derive(Debug, Clone)]
pub struct InputQuery<'a> {
    /// Its business date.
    pub dt: BusinessDate,
    /// Its identity.
    pub content: &'a ContentHash,
    /// The caller's label.
    pub batch: Option<&'a BatchLabel>,
    /// Hash of the reading rules.
    pub rules: &'a str,
    /// The schema version it would be stored under.
    pub schema_version: u32,
    /// Whether the caller insists on data that was retired.
    pub restore: bool,
    /// Whether the call replaces what is visible of the date: then that does not count as met before.
    pub replaces: bool,
    /// Whether it holds rejects that are tried again. When all records of an input were refused, its
    /// rejects are the same bytes; an input that gave no row is then no reason to skip them.
    pub is_retry: bool,
}

/// Why an input is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Erased on legal demand.
    Erased,
    /// The batch label stands for other content.
    BatchTaken {
        /// The record that used the label.
        number: u64,
        /// The label.
        batch: BatchLabel,
    },
    /// Stored under another schema version.
    OtherVersion {
        /// The version.
        version: u32,
        /// The record.
        number: u64,
    },
    /// Stored by other reading rules.
    OtherRules {
        /// The record.
        number: u64,
    },
    /// Stored once, then retired or purged.
    Retired {
        /// The record that had stored it.
        number: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Erased => f.write_str("it was erased on legal demand"),
            Self::BatchTaken { number, batch } => {
                write!(
                    f,
                    "batch label `{batch}` stands for other content since record {number}"
                )
            }
            Self::OtherVersion { version, number } => {
                write!(
                    f,
                    "record {number} stored it under schema version {version}"
                )
            }
            Self::OtherRules { number } => {
                write!(f, "record {number} stored it by other reading rules")
            }
            Self::Retired { number } => {
                write!(f, "record {number} stored it and it was retired since")
            }
        }
    }
}

impl Refusal {
    /// The error for a person.
    #[must_use]
    pub fn into_error(self, input: &str, dt: BusinessDate) -> Error {
        let error = Error::precondition(format!("input `{input}` is refused for {dt}: {self}"));
        match self {
            Self::Erased => error.hint("erased data may never come back"),
            Self::BatchTaken { .. } => error.hint("choose another label; one label stands for one set of inputs"),
            Self::OtherVersion { .. } | Self::OtherRules { .. } => {
                error.hint(format!("the same bytes under other rules would double the rows; replace the date: `lakebed correct DATASET --date {dt} FILES...`"))
            }
            Self::Retired { .. } => error.hint("`--restore` stores it again"),
        }
    }
}

/// Answer of the replay table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum InputAnswer {
    /// To be stored; `other_dates` already hold the same bytes.
    New {
        /// Dates whose visible partitions hold it.
        other_dates: Vec<BusinessDate>,
    },
    /// To be stored once more under its new label.
    Repeat {
        /// The record that stored it first.
        number: u64,
    },
    /// Skipped and named.
    AlreadyThere {
        /// The record that stored it.
        number: u64,
    },
    /// Refused.
    Refused(Refusal),
}

/// Looks an input up in the replay table.
pub fn answer(state: &DatasetState, query: &InputQuery<'_>) -> InputAnswer {
    if state.is_erased(query.content) {
        return InputAnswer::Refused(Refusal::Erased);
    }
    if query.replaces {
        return match retired_record(state, query).filter(|_| !query.restore) {
            Some(number) => InputAnswer::Refused(Refusal::Retired { number }),
            None => InputAnswer::New {
                other_dates: Vec::new(),
            },
        };
    }
    let mut label_known = None;
    if let Some(batch) = query.batch {
        let labelled: Vec<_> = state.visible_labelled(query.dt, batch).collect();
        label_known = labelled.first().map(|(_, i)| i.number);
        let same_content = labelled
            .iter()
            .any(|(_, i)| i.spec.content == *query.content);
        if let (Some(number), false) = (label_known, same_content) {
            return InputAnswer::Refused(Refusal::BatchTaken {
                number,
                batch: batch.clone(),
            });
        }
    }
    let here: Vec<_> = state
        .visible_with(query.dt, query.content)
        .filter(|(_, i)| !query.is_retry || i.spec.rows > 0)
        .collect();
    if let Some((_, input)) = here.first() {
        if query.batch.is_some() && label_known.is_none() {
            return InputAnswer::Repeat {
                number: input.number,
            };
        }
        // Under a known label its own observation counts, not what others made of the same bytes.
        let counts = |i: &InputState| label_known.is_none() || i.spec.batch.as_ref() == query.batch;
        return stored_before(query, here.into_iter().filter(|(_, i)| counts(i)));
    }
    if let Some(number) = retired_record(state, query).filter(|_| !query.restore) {
        return InputAnswer::Refused(Refusal::Retired { number });
    }
    let mut dates = state.dates_with(query.content);
    dates.remove(&query.dt);
    InputAnswer::New {
        other_dates: dates.into_iter().collect(),
    }
}

/// The answer to bytes that were stored before, perhaps several times: one of them read in the same way
/// is enough.
fn stored_before<'a>(
    query: &InputQuery<'_>,
    before: impl Iterator<Item = (&'a PartitionKey, &'a InputState)>,
) -> InputAnswer {
    let mut refusal = None;
    for (key, input) in before {
        let number = input.number;
        let (version, same_rules) = (key.schema_version, input.spec.rules == query.rules);
        if version != query.schema_version {
            refusal.get_or_insert(Refusal::OtherVersion { version, number });
        } else if same_rules {
            return InputAnswer::AlreadyThere { number };
        } else {
            refusal = Some(Refusal::OtherRules { number });
        }
    }
    match refusal {
        Some(refusal) => InputAnswer::Refused(refusal),
        None => InputAnswer::New {
            other_dates: Vec::new(),
        },
    }
}

fn retired_record(state: &DatasetState, query: &InputQuery<'_>) -> Option<u64> {
    state
        .inputs_with(query.dt, query.content)
        .find(|(_, p, _)| matches!(p.state, PartitionState::Retired | PartitionState::Purged))
        .map(|(_, _, i)| i.number)
}
