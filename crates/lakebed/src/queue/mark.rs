//! What a process remembers between calls: ids that never change, and where it claimed last.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::time::{Clock, unique_id};

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
    /// Whether it is behind any row.
    pub(super) fn is_set(&self) -> bool {
        self.priority != i64::MIN
    }
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

    /// After anything may have become ready behind the watermarks.
    pub(super) fn forget_watermarks(&self) {
        lock(&self.watermarks).clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The maps are whole after every statement: a panic elsewhere does not spoil them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
