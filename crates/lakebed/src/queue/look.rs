//! One request and one worker, looked up by those who work from outside and may ask again.
//!
//! A claim and its finish are messages that can be lost on their way to another program. What the queue
//! knows of a request tells whether a repeated finish is the one that counted.

use crate::error::Result;
use crate::queue::cell::unsigned;
use crate::queue::db::{Fault, values};
use crate::queue::list::{REQUEST_COLUMNS, request_of};
use crate::queue::{EnqueueStats, Queue, RequestRecord, Worker};

/// A request with who claimed it last and what followed from its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRequest {
    /// The request and where it is; `attempts` is the number of its last claim.
    pub record: RequestRecord,
    /// Number of the worker of that claim; 0 before the first.
    pub worker_id: i64,
    /// Its host.
    pub host: String,
    /// Its body.
    pub body: Option<Vec<u8>>,
    /// Counts of its follow-ups; all 0 unless it is done.
    pub children: EnqueueStats,
}

impl Queue {
    /// The worker of this name, whether it lives, is lost or has left.
    pub async fn find_worker(&self, name: &str) -> Result<Option<Worker>> {
        let mut tx = self.reading("look for the worker").await?;
        let found = async {
            let sql = "SELECT id, name FROM queue_worker WHERE name = ?";
            let Some(row) = tx.row(sql, values![name]).await? else {
                return Ok(None);
            };
            let (id, name) = (row.int(0)?, row.text(1)?);
            Ok::<_, Fault>(Some(Worker { id, name }))
        };
        found
            .await
            .map_err(|e| e.into_error("look for the worker", self.place()))
    }

    /// The request of this number within the run.
    pub async fn find_request(&self, run_id: i64, id: i64) -> Result<Option<HeldRequest>> {
        let mut tx = self.reading("look for the request").await?;
        let found = async {
            let sql = format!(
                "SELECT {REQUEST_COLUMNS}, s.worker_id, h.name, q.body, s.announced, s.inserted, s.duplicate, \
                 s.out_of_scope FROM queue_request_state s JOIN queue_request q ON q.id = s.id \
                 JOIN queue_lane l ON l.id = s.lane_id JOIN queue_host h ON h.id = l.host_id \
                 WHERE s.run_id = ? AND s.id = ?"
            );
            let Some(row) = tx.row(&sql, values![run_id, id]).await? else {
                return Ok(None);
            };
            Ok::<_, Fault>(Some(HeldRequest {
                record: request_of(&row)?,
                worker_id: row.int(15)?,
                host: row.text(16)?,
                body: row.maybe_bytes(17)?,
                children: EnqueueStats {
                    announced: unsigned(row.int(18)?),
                    inserted: unsigned(row.int(19)?),
                    duplicate: unsigned(row.int(20)?),
                    out_of_scope: unsigned(row.int(21)?),
                },
            }))
        };
        found
            .await
            .map_err(|e| e.into_error("look for the request", self.place()))
    }
}
