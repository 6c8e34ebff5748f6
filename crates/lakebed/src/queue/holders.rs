//! Who holds the claims that others wait for: of a run that is to end, and of the hosts that a worker waits for.

use serde::Serialize;

use crate::error::Result;
use crate::queue::Queue;
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, values};
use crate::spec::RunKey;

/// A worker that holds requests of a run at a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HolderRecord {
    /// The run.
    #[serde(flatten)]
    pub run: RunKey,
    /// The host.
    pub host: String,
    /// Number of the worker.
    pub worker_id: i64,
    /// What it calls itself.
    pub label: String,
    /// Requests that it holds.
    pub requests: u64,
    /// Since it was heard of, microseconds of the database's clock; below 0 where that was set back.
    pub silent_us: i64,
    /// Until its lease ends unless it is heard of again; 0 or less = it is over.
    pub lease_left_us: i64,
}

impl HolderRecord {
    /// When it was heard of, in words.
    #[must_use]
    pub fn heard(&self) -> String {
        let seconds = self.silent_us.unsigned_abs().div_ceil(1_000_000);
        match self.silent_us < 0 {
            true => format!(
                "whose last word is {seconds} s ahead of the database's clock, which was set back"
            ),
            false => format!("last heard of {seconds} s ago"),
        }
    }
}

impl Queue {
    /// Who holds requests, of whichever run, at the hosts of this run.
    pub async fn list_holders(&self, run_id: i64) -> Result<Vec<HolderRecord>> {
        let mut tx = self.reading("look who holds requests").await?;
        let listed = async {
            let sql = "SELECT r.source, r.dt, r.run, h.name, w.id, w.label, count(*), {now} - w.heartbeat_at, \
                CASE WHEN w.state = 0 THEN w.heartbeat_at + w.lease_us - {now} ELSE 0 END \
                FROM queue_run r JOIN queue_request_state s ON s.run_id = r.id AND s.state = 1 \
                JOIN queue_lane l ON l.id = s.lane_id JOIN queue_host h ON h.id = l.host_id \
                JOIN queue_worker w ON w.id = s.worker_id \
                WHERE r.state IN (1, 2) AND l.host_id IN (SELECT host_id FROM queue_lane WHERE run_id = ?) \
                GROUP BY r.id, r.source, r.dt, r.run, h.name, w.id, w.label, w.heartbeat_at, w.lease_us, w.state \
                ORDER BY r.id, w.id, h.name";
            let mut holders = Vec::new();
            for row in tx.rows(sql, values![run_id]).await? {
                holders.push(HolderRecord {
                    run: RunKey {
                        source: row.text(0)?.parse()?,
                        date: row.text(1)?.parse()?,
                        run: row.text(2)?.parse()?,
                    },
                    host: row.text(3)?,
                    worker_id: row.int(4)?,
                    label: row.text(5)?,
                    requests: unsigned(row.int(6)?),
                    silent_us: row.int(7)?,
                    lease_left_us: row.int(8)?,
                });
            }
            Ok::<_, Fault>(holders)
        };
        listed
            .await
            .map_err(|e| e.into_error("look who holds requests", self.place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_told() {
        let holder = |silent_us| HolderRecord {
            run: RunKey {
                source: "a".parse().unwrap(),
                date: "2026-11-30".parse().unwrap(),
                run: "day".parse().unwrap(),
            },
            host: "a".to_owned(),
            worker_id: 1,
            label: "w".to_owned(),
            requests: 1,
            silent_us,
            lease_left_us: 0,
        };
        assert_eq!(holder(1_500_000).heard(), "last heard of 2 s ago");
        assert!(holder(-60_000_000).heard().contains("is 60 s ahead"));
    }
}
