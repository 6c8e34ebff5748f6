//! The event stream: what happens rarely and matters, in order, for `queue watch`.
//!
//! Ends of single requests are not events (a day has a hundred thousand); their counts are progress.

use serde::Serialize;

use crate::error::Result;
use crate::queue::Queue;
use crate::queue::db::{Fault, Tx, values};

/// Something that happened to a run, a host or a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventRecord {
    /// Grows by at least one.
    pub id: i64,
    /// Database clock, microseconds.
    pub at: i64,
    /// The run's number; absent for hosts and workers.
    pub run_id: Option<i64>,
    /// `run_created run_opened run_sealed run_closed run_accepted run_stopped run_resumed worker_joined
    /// worker_left worker_lost host_blocked deadline_passed`.
    pub kind: String,
    /// What it is about, JSON.
    pub detail: serde_json::Value,
}

/// Writes an event within a transaction.
pub(super) async fn put_event(
    tx: &mut Tx,
    run_id: Option<i64>,
    kind: &str,
    detail: &impl Serialize,
) -> Result<(), Fault> {
    let detail = serde_json::to_string(detail).unwrap_or_else(|_| "null".to_owned());
    let sql = "INSERT INTO queue_event (at, run_id, kind, detail) VALUES ({now}, ?, ?, ?)";
    tx.execute(sql, values![run_id, kind, detail]).await?;
    Ok(())
}

impl Queue {
    /// Events behind number `after`, oldest first, at most `limit`.
    ///
    /// A transaction that began earlier may commit an event of a smaller number later: a watcher that
    /// must miss none asks again from a little behind.
    pub async fn list_events(&self, after: i64, limit: u32) -> Result<Vec<EventRecord>> {
        let mut tx = self.reading("list the events").await?;
        let listed = async {
            let sql = "SELECT id, at, run_id, kind, detail FROM queue_event WHERE id > ? ORDER BY id LIMIT ?";
            let rows = tx.rows(sql, values![after, limit]).await?;
            rows.iter()
                .map(|row| {
                    Ok(EventRecord {
                        id: row.int(0)?,
                        at: row.int(1)?,
                        run_id: row.maybe_int(2)?,
                        kind: row.text(3)?,
                        detail: serde_json::from_str(&row.text(4)?).unwrap_or_default(),
                    })
                })
                .collect::<Result<Vec<_>, Fault>>()
        };
        listed
            .await
            .map_err(|e| e.into_error("list the events", self.place()))
    }

    /// The number of the newest event; 0 for none.
    pub async fn newest_event(&self) -> Result<i64> {
        let mut tx = self.reading("read the events").await?;
        let newest = tx
            .int("SELECT coalesce(max(id), 0) FROM queue_event", &[])
            .await;
        newest.map_err(|e| Fault::from(e).into_error("read the events", self.place()))
    }
}
