//! How often partitions are read: counted in memory, told to the catalog now and then, and at the end.
//!
//! A write for each query would cost more than many a query does, and empty what the catalog's other
//! connections keep of it in memory.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lakebed::catalog::partition_id;
use lakebed::time::BusinessDate;

use crate::scan::ScanNote;

/// Reads wait for so long at most while queries come.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many wait at most.
const MAX_WAITING: usize = 10_000;

/// The reads that the catalog does not know yet.
#[derive(Debug)]
pub(crate) struct ReadCounter {
    /// The day under which they are counted; absent = they are not.
    day: Option<BusinessDate>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// A partition stands once for each query that read it.
    ids: Vec<String>,
    since: Instant,
}

/// Reads to be told: the day, and a partition for each.
pub(crate) type Reads = (BusinessDate, Vec<String>);

impl ReadCounter {
    /// Counts under a day.
    pub(crate) fn new(day: Option<BusinessDate>) -> Self {
        let waiting = Mutex::new(Waiting {
            ids: Vec::new(),
            since: Instant::now(),
        });
        Self { day, waiting }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what one query reads; answers what is to be told now, if anything is.
    pub(crate) fn add(&self, notes: &[ScanNote]) -> Option<Reads> {
        self.day?;
        let ids: BTreeSet<String> = notes
            .iter()
            .flat_map(|n| n.partitions.iter().map(|key| partition_id(&n.dataset, key)))
            .collect();
        let mut waiting = self.waiting();
        waiting.ids.extend(ids);
        let is_due = waiting.since.elapsed() >= PATIENCE || waiting.ids.len() >= MAX_WAITING;
        drop(waiting);
        is_due.then(|| self.take()).flatten()
    }

    /// All that waits; `None` = nothing does.
    pub(crate) fn take(&self) -> Option<Reads> {
        let day = self.day?;
        let mut waiting = self.waiting();
        waiting.since = Instant::now();
        let ids = std::mem::take(&mut waiting.ids);
        (!ids.is_empty()).then_some((day, ids))
    }
}
