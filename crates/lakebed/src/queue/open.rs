//! The queue as a handle: one database, its limits, and the ids it remembers.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::queue::db::Db;
use crate::queue::mark::Memory;

/// Limits of a queue; the same for every worker of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueOptions {
    /// A worker that was silent for so long has lost its claims, microseconds.
    pub lease_us: i64,
    /// Workers say that they live in this interval, microseconds; at most a third of the lease.
    pub heartbeat_us: i64,
    /// A claim ends after so long even where its worker lives, microseconds.
    pub max_hold_us: i64,
    /// Failed attempts after which a request is dead.
    pub max_failures: u32,
    /// Pause before the second attempt, microseconds; doubled with each failure, with jitter.
    pub backoff_us: i64,
    /// The longest such pause, microseconds.
    pub max_backoff_us: i64,
}

impl Default for QueueOptions {
    fn default() -> Self {
        const SECOND: i64 = 1_000_000;
        Self {
            lease_us: 60 * SECOND,
            heartbeat_us: 15 * SECOND,
            max_hold_us: 900 * SECOND,
            max_failures: 5,
            backoff_us: 2 * SECOND,
            max_backoff_us: 600 * SECOND,
        }
    }
}

impl QueueOptions {
    fn check(&self) -> Result<()> {
        if self.heartbeat_us <= 0 || self.lease_us < 3 * self.heartbeat_us {
            return Err(Error::invalid(format!(
                "a lease of {} ms with a heartbeat every {} ms",
                self.lease_us / 1000,
                self.heartbeat_us / 1000
            ))
            .hint("the lease must be at least three heartbeats long, or a slow moment costs a live worker its claims"));
        }
        if self.max_failures == 0 {
            return Err(Error::invalid("a request must have at least one attempt")
                .hint("set the limit of failures to 1 or more"));
        }
        if self.max_hold_us < self.lease_us {
            return Err(Error::invalid(
                "a claim must last at least as long as a lease",
            ));
        }
        Ok(())
    }

    /// The pause after `failures` failures of a request, microseconds: between half and the whole of
    /// the doubled pause, spread by the request so that what failed together does not come back together.
    #[must_use]
    pub fn pause_us(&self, failures: u32, id: i64) -> i64 {
        let times = 1_i64 << failures.saturating_sub(1).min(40);
        let doubled = self
            .backoff_us
            .saturating_mul(times)
            .clamp(0, self.max_backoff_us.max(0));
        let mut seed = id.to_le_bytes().to_vec();
        seed.extend_from_slice(&failures.to_le_bytes());
        let hash = blake3::hash(&seed);
        let share = i64::from(u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]));
        doubled / 2 + (doubled / 2).saturating_mul(share) / i64::from(u16::MAX)
    }
}

/// The request queue. Cheap to clone; clones share connections and remembered ids.
#[derive(Debug, Clone)]
pub struct Queue {
    pub(super) db: Db,
    pub(super) options: Arc<QueueOptions>,
    pub(super) memory: Arc<Memory>,
}

impl Queue {
    /// Opens the queue at `place`: the path of a SQLite file, or the URL of a PostgreSQL or MySQL/MariaDB
    /// database. Missing tables are made.
    ///
    /// # Errors
    /// `InvalidInput` for a URL or limits that cannot be, `Unavailable` where the database cannot be
    /// reached or is of a newer program, `CorruptData` for a file of something else.
    pub async fn open(place: &str, options: QueueOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            db: Db::open(place).await?,
            options: Arc::new(options),
            memory: Arc::default(),
        })
    }

    /// Opens the queue at `place` to look into it: `None` where there is none yet, and none is made.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn find(place: &str, options: QueueOptions) -> Result<Option<Self>> {
        options.check()?;
        let db = Db::find(place).await?;
        Ok(db.map(|db| Self {
            db,
            options: Arc::new(options),
            memory: Arc::default(),
        }))
    }

    /// The limits.
    #[must_use]
    pub fn options(&self) -> &QueueOptions {
        &self.options
    }

    /// Path or URL of the database, without the password.
    #[must_use]
    pub fn place(&self) -> &str {
        self.db.place()
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.db.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_within_bounds_and_are_spread() {
        let options = QueueOptions::default();
        for failures in 1..80 {
            let pauses: Vec<i64> = (0..50).map(|id| options.pause_us(failures, id)).collect();
            let doubled =
                (options.backoff_us << (failures - 1).min(20)).min(options.max_backoff_us);
            assert!(
                pauses.iter().all(|p| *p >= doubled / 2 && *p <= doubled),
                "{failures}"
            );
            assert!(pauses.iter().any(|p| *p != pauses[0]));
        }
    }

    #[test]
    fn a_lease_of_less_than_three_heartbeats_is_refused() {
        let short = QueueOptions {
            lease_us: 2_999,
            heartbeat_us: 1_000,
            ..QueueOptions::default()
        };
        assert!(short.check().is_err());
        let none = QueueOptions {
            max_failures: 0,
            ..QueueOptions::default()
        };
        assert!(none.check().is_err());
        assert!(QueueOptions::default().check().is_ok());
    }
}
