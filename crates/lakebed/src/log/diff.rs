//! What differs between two states of one dataset, date by date.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::log::state::DatasetState;
use crate::time::BusinessDate;

/// What readers see of a date.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DateSight {
    /// The revision; absent in a state that does not know the date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Schema versions of its partitions.
    pub schema_versions: Vec<u32>,
    /// Data files.
    pub files: u64,
    /// Rows.
    pub rows: u64,
    /// Whether the date is sealed.
    pub sealed: bool,
}

/// A date that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DateDiff {
    /// The date.
    pub dt: BusinessDate,
    /// In the first state.
    pub before: DateSight,
    /// In the second state.
    pub after: DateSight,
    /// Files that only the first state shows.
    pub files_gone: u64,
    /// Files that only the second state shows.
    pub files_new: u64,
}

/// Every date of which readers see something else in `after` than in `before`, in order.
#[must_use]
pub fn diff_states(before: &DatasetState, after: &DatasetState) -> Vec<DateDiff> {
    let dates: BTreeSet<BusinessDate> = before
        .dates()
        .keys()
        .chain(after.dates().keys())
        .copied()
        .collect();
    let mut diffs = Vec::new();
    for dt in dates {
        let (old, new) = (files_of(before, dt), files_of(after, dt));
        let diff = DateDiff {
            dt,
            files_gone: count_beyond(&old, &new),
            files_new: count_beyond(&new, &old),
            before: sight(before, dt, &old),
            after: sight(after, dt, &new),
        };
        if diff.before != diff.after || diff.files_gone + diff.files_new > 0 {
            diffs.push(diff);
        }
    }
    diffs
}

/// A visible file by schema version and name, with its rows.
type Files = BTreeMap<(u32, String), u64>;

fn files_of(state: &DatasetState, dt: BusinessDate) -> Files {
    state
        .visible_of(dt)
        .flat_map(|(key, partition)| {
            let files = partition.files.iter();
            files.map(|(name, f)| ((key.schema_version, name.clone()), f.spec.rows))
        })
        .collect()
}

fn count_beyond(these: &Files, those: &Files) -> u64 {
    these.keys().filter(|k| !those.contains_key(*k)).count() as u64
}

fn sight(state: &DatasetState, dt: BusinessDate, files: &Files) -> DateSight {
    let Some(date) = state.dates().get(&dt) else {
        return DateSight::default();
    };
    let versions: BTreeSet<u32> = state
        .visible_of(dt)
        .map(|(k, _)| k.schema_version)
        .collect();
    DateSight {
        revision: Some(date.active),
        schema_versions: versions.into_iter().collect(),
        files: files.len() as u64,
        rows: files.values().sum(),
        sealed: state.is_sealed(dt),
    }
}
