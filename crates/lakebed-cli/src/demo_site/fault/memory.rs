//! What faults remember from one request to the next: tries, counters and the time of requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most entries of one kind; beyond it, all are forgotten, so that a long test cannot fill the memory.
const MAX_ENTRIES: usize = 4_000_000;

/// The memory of a server's faults.
#[derive(Debug, Default)]
pub(crate) struct FaultMemory {
    tries: Mutex<HashMap<u64, u32>>,
    counters: Mutex<HashMap<String, u64>>,
    windows: Mutex<HashMap<String, VecDeque<Instant>>>,
}

impl FaultMemory {
    /// Counts a try of a request; answers how often it was tried before.
    pub(crate) fn count_try(&self, key: u64) -> u32 {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        if tries.len() >= MAX_ENTRIES {
            tries.clear();
        }
        let n = tries.entry(key).or_default();
        let before = *n;
        *n = n.saturating_add(1);
        before
    }

    /// Counts a request that a fault applies to; answers how many there were before.
    pub(crate) fn count(&self, fault: &str) -> u64 {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() >= MAX_ENTRIES {
            counters.clear();
        }
        let n = counters.entry(fault.to_owned()).or_default();
        *n += 1;
        *n - 1
    }

    /// Takes a place among the `most` requests of `span`; `Err` = how long to wait for one.
    pub(crate) fn take_place(
        &self,
        key: String,
        most: u32,
        span: Duration,
    ) -> Result<(), Duration> {
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MAX_ENTRIES {
            windows.clear();
        }
        let window = windows.entry(key).or_default();
        while window
            .front()
            .is_some_and(|at| now.duration_since(*at) >= span)
        {
            window.pop_front();
        }
        match window.front() {
            Some(oldest) if window.len() >= usize::try_from(most).unwrap_or(usize::MAX) => {
                Err(span.saturating_sub(now.duration_since(*oldest)))
            }
            Some(_) | None => {
                window.push_back(now);
                Ok(())
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let forget = PoisonError::into_inner;
        self.tries.lock().unwrap_or_else(forget).clear();
        self.counters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.windows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_frees_its_places() {
        let memory = FaultMemory::default();
        let span = Duration::from_millis(60);
        let take = || memory.take_place("a".to_owned(), 2, span);
        assert!(take().is_ok() && take().is_ok());
        let wait = take().unwrap_err();
        assert!(wait <= span && !wait.is_zero(), "{wait:?}");
        assert!(memory.take_place("b".to_owned(), 2, span).is_ok());
        std::thread::sleep(span);
        assert!(take().is_ok());
    }

    #[test]
    fn counters_are_kept_apart_and_forgotten() {
        let memory = FaultMemory::default();
        assert_eq!(
            (memory.count("a"), memory.count("a"), memory.count("b")),
            (0, 1, 0)
        );
        assert_eq!(
            (
                memory.count_try(7),
                memory.count_try(7),
                memory.count_try(8)
            ),
            (0, 1, 0)
        );
        memory.clear();
        assert_eq!((memory.count("a"), memory.count_try(7)), (0, 0));
    }
}
