//! What a process remembers between calls: ids that never change, and where it claimed last.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::name::StageName;
use crate::time::{Clock, unique_id};

/// Claims of a lane after which its mark is forgotten: what was given back lies before it.
const MARK_USES: u32 = 64;

/// Behind which row of a lane this process claimed last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watermark {
    pub(super) priority: i64,
    pub(super) not_before: i64,
    pub(super) id: i64,
    /// Claims since it was set first.
    pub(super) uses: u32,
}

impl Default for Watermark {
    fn default() -> Self {
        Self {
            priority: i64::MIN,
            not_before: i64::MIN,
            id: i64::MIN,
            uses: 0,
        }
    }
}

impl Watermark {
    /// The mark behind a claim that ended with the row `last` (priority, not before, number); none where
    /// the claim came back short, or the mark was used often enough.
    pub(super) fn next(&self, last: Option<(i64, i64, i64)>) -> Self {
        match last {
            Some((priority, not_before, id)) if self.uses < MARK_USES => Self {
                priority,
                not_before,
                id,
                uses: self.uses + 1,
            },
            _ => Self::default(),
        }
    }

    /// Whether it is behind any row.
    pub(super) fn is_set(&self) -> bool {
        self.priority != i64::MIN
    }
}

/// The lane that gave a whole batch to the claim before.
#[derive(Debug, Clone)]
pub(super) struct KnownLane {
    pub(super) id: i64,
    pub(super) stage: StageName,
    pub(super) host: String,
}

/// Ids that never change once they are there, and where this process claimed last.
#[derive(Debug, Default)]
pub(super) struct Memory {
    hosts: Mutex<HashMap<String, i64>>,
    lanes: Mutex<HashMap<(i64, String, i64), i64>>,
    /// Under which name this process seeds, by run.
    seeders: Mutex<HashMap<i64, String>>,
    /// By lane.
    watermarks: Mutex<HashMap<i64, Watermark>>,
    /// By run.
    known_lanes: Mutex<HashMap<i64, KnownLane>>,
}

impl Memory {
    pub(super) fn host(&self, name: &str) -> Option<i64> {
        lock(&self.hosts).get(name).copied()
    }

    pub(super) fn keep_host(&self, name: &str, id: i64) {
        lock(&self.hosts).insert(name.to_owned(), id);
    }

    pub(super) fn lane(&self, key: &(i64, String, i64)) -> Option<i64> {
        lock(&self.lanes).get(key).copied()
    }

    pub(super) fn keep_lane(&self, key: (i64, String, i64), id: i64) {
        lock(&self.lanes).insert(key, id);
    }

    /// The name under which this process seeds the run.
    pub(super) fn seeder(&self, run_id: i64) -> String {
        let mut seeders = lock(&self.seeders);
        let name = seeders
            .entry(run_id)
            .or_insert_with(|| unique_id(&Clock::System));
        name.clone()
    }

    pub(super) fn watermark(&self, lane: i64) -> Watermark {
        lock(&self.watermarks)
            .get(&lane)
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn keep_watermark(&self, lane: i64, watermark: Watermark) {
        lock(&self.watermarks).insert(lane, watermark);
    }

    /// The lane that gave the run's last claim all it asked for.
    pub(super) fn known_lane(&self, run_id: i64) -> Option<KnownLane> {
        lock(&self.known_lanes).get(&run_id).cloned()
    }

    pub(super) fn keep_known_lane(&self, run_id: i64, lane: KnownLane) {
        lock(&self.known_lanes).insert(run_id, lane);
    }

    pub(super) fn forget_known_lane(&self, run_id: i64) {
        lock(&self.known_lanes).remove(&run_id);
    }

    /// After anything may have become ready behind the watermarks.
    pub(super) fn forget_watermarks(&self) {
        lock(&self.watermarks).clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The maps are whole after every statement: a panic elsewhere does not spoil them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
