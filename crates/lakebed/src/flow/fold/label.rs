//! The label of a folded date: it names rules, inputs and terms, so that what a date was told when it was folded can be
//! read back from the log.
//!
//! A list that a person declared incomplete is so in every later fold of its date, until a person says otherwise (FLD-2).

use crate::error::Result;
use crate::flow::fold::inputs::recorded;
use crate::log::DatasetState;
use crate::name::{BatchLabel, ContentHash};
use crate::time::BusinessDate;

/// What the list of a date is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListState {
    /// What is missing from it is absent.
    Complete,
    /// It was not sealed, or nobody looked at it: that may change.
    Open,
    /// A person declared it incomplete although it is sealed.
    Declared,
}

impl ListState {
    const ALL: [Self; 3] = [Self::Complete, Self::Open, Self::Declared];

    /// The word in the text that the label is the hash of.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "true",
            Self::Open => "false",
            Self::Declared => "declared",
        }
    }
}

/// On which terms a date is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) list: ListState,
    pub(super) cold_start: bool,
}

/// The label of a fold: `reads` in their order, each as dataset, date and what its files hold.
pub(super) fn label_of(
    (rules, date): (&str, BusinessDate),
    terms: Terms,
    reads: &[(String, BusinessDate, ContentHash)],
) -> Result<BatchLabel> {
    let mut hasher = blake3::Hasher::new();
    let (list, cold_start) = (terms.list.as_str(), terms.cold_start);
    hasher.update(format!("{rules} {date} {list} {cold_start}\n").as_bytes());
    for (dataset, dt, content) in reads {
        hasher.update(format!("{dataset} {dt} {content}\n").as_bytes());
    }
    format!("fold:{}", &hasher.finalize().to_hex()[..16]).parse()
}

/// What the list of a date was good for when its snapshot was made; `None` where that is not known.
pub(super) fn list_then(snapshot: &DatasetState, date: BusinessDate) -> Result<Option<ListState>> {
    let read = recorded(snapshot, date).unwrap_or_default();
    let Some((_, first)) = read.first() else {
        return Ok(None);
    };
    let (rules, label) = (first.rules.clone(), first.batch.clone());
    let read = read.into_iter();
    let reads: Vec<_> = read
        .map(|(range, spec)| (range.dataset, range.dt, spec.content))
        .collect();
    for list in ListState::ALL {
        for cold_start in [false, true] {
            let terms = Terms { list, cold_start };
            if Some(label_of((&rules, date), terms, &reads)?) == label {
                return Ok(Some(list));
            }
        }
    }
    Ok(None)
}
