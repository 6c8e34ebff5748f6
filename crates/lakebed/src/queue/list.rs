//! What is in the queue: requests by state, how they ended, counts, workers.

use crate::error::{Error, Result};
use crate::name::{CaptureId, ErrorClass, RequestKey, StageName};
use crate::queue::cell::hex;
use crate::queue::db::{DbRow, Fault, values};
use crate::queue::{Queue, RequestState};
use crate::spec::{Answer, BodyMark, TerminalRecord, TerminalState};

/// What [`request_of`] reads: of the facts `q`, the state `s` and the lane `l`.
pub(super) const REQUEST_COLUMNS: &str = "q.id, q.request_key, l.stage, q.method, q.url, s.state, s.attempt, s.failures, \
    s.class, s.status, s.capture, s.not_before, s.ended_at, q.parent_id, s.body_mark";

/// Which requests to list.
#[derive(Debug, Clone, Default)]
pub struct RequestFilter {
    /// The run.
    pub run_id: i64,
    /// In this state alone.
    pub state: Option<RequestState>,
    /// Of this stage alone.
    pub stage: Option<StageName>,
    /// Of this class alone.
    pub class: Option<ErrorClass>,
    /// Behind this request number.
    pub after: i64,
    /// At most so many.
    pub limit: u32,
}

/// A request with where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its number.
    pub id: i64,
    /// Its key.
    pub request_key: RequestKey,
    /// Its stage.
    pub stage: StageName,
    /// In capitals.
    pub method: String,
    /// The address.
    pub url: String,
    /// Where it is.
    pub state: RequestState,
    /// Claims so far.
    pub attempts: u32,
    /// Those that failed.
    pub failures: u32,
    /// Class of the last failure; absent for none.
    pub class: Option<String>,
    /// HTTP status of its end or last failure.
    pub status: Option<i64>,
    /// The capture that made it done.
    pub capture: Option<CaptureId>,
    /// Not claimed before this instant; 0 for at once.
    pub not_before: i64,
    /// When it ended; absent before.
    pub ended_at: Option<i64>,
    /// The request whose page led to it.
    pub parent_id: Option<i64>,
    /// What the body of its response is known by; absent where there is none, or nobody knows.
    pub body: Option<BodyMark>,
}

/// Counts of a lane: a stage of a run on a host, over all workers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LaneProgress {
    /// The stage.
    pub stage: String,
    /// The host.
    pub host: String,
    /// Requests that entered.
    pub enqueued: i64,
    /// Done.
    pub done: i64,
    /// Dead.
    pub dead: i64,
    /// Attempts that failed.
    pub failed: i64,
}

/// A worker as the queue knows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WorkerRecord {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub label: String,
    /// `live`, `lost` or `left`.
    pub state: &'static str,
    /// When it joined; database clock, microseconds.
    pub started_at: i64,
    /// When it last said that it lives.
    pub heartbeat_at: i64,
}

impl Queue {
    /// Requests in the order of their numbers.
    pub async fn list_requests(&self, filter: &RequestFilter) -> Result<Vec<RequestRecord>> {
        let mut tx = self.reading("list requests").await?;
        let listed = async {
            let mut sql = format!(
                "SELECT {REQUEST_COLUMNS} FROM queue_request_state s JOIN queue_request q ON q.id = s.id \
                 JOIN queue_lane l ON l.id = s.lane_id WHERE s.run_id = ? AND s.id > ?"
            );
            let mut args = values![filter.run_id, filter.after].to_vec();
            if let Some(state) = filter.state {
                sql.push_str(" AND s.state = ?");
                args.push(state.code().into());
            }
            if let Some(stage) = &filter.stage {
                sql.push_str(" AND l.stage = ?");
                args.push(stage.as_str().into());
            }
            if let Some(class) = &filter.class {
                sql.push_str(" AND s.class = ?");
                args.push(class.as_str().into());
            }
            sql.push_str(" ORDER BY s.id LIMIT ?");
            args.push(filter.limit.into());
            let rows = tx.rows(&sql, &args).await?;
            rows.iter()
                .map(request_of)
                .collect::<Result<Vec<_>, Fault>>()
        };
        listed
            .await
            .map_err(|e| e.into_error("list requests", self.place()))
    }

    /// How the requests of a run ended, in the order of their numbers, behind `after`; with each its number.
    pub async fn list_terminals(
        &self,
        run_id: i64,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, TerminalRecord)>> {
        let filter = RequestFilter {
            run_id,
            after,
            limit,
            ..RequestFilter::default()
        };
        let records = self.list_requests(&filter).await?;
        records
            .into_iter()
            .map(|record| {
                let state = match record.state {
                    RequestState::Done => TerminalState::Done,
                    RequestState::Dead => TerminalState::Dead,
                    other => {
                        return Err(Error::precondition(format!(
                            "`{} {}` is {}",
                            record.method,
                            record.url,
                            other.as_str()
                        ))
                        .hint("close the run first: until then requests are under way"));
                    }
                };
                let class = record.class.filter(|_| state == TerminalState::Dead);
                let terminal = TerminalRecord {
                    request_key: record.request_key,
                    stage: record.stage,
                    method: record.method,
                    url: record.url,
                    state,
                    class: class.map(|c| c.parse()).transpose()?,
                    attempts: record.attempts,
                    capture: record.capture,
                    answer: Answer {
                        status: record.status.and_then(|s| u16::try_from(s).ok()),
                        body: record.body,
                    },
                };
                Ok((record.id, terminal))
            })
            .collect()
    }

    /// The counts of a run by stage and host; cheap, however many rows there are.
    pub async fn list_progress(&self, run_id: i64) -> Result<Vec<LaneProgress>> {
        let mut tx = self.reading("read the progress").await?;
        let listed = async {
            let sql = "SELECT l.stage, h.name, CAST(sum(p.enqueued) AS {int}), CAST(sum(p.done) AS {int}), \
                CAST(sum(p.dead) AS {int}), CAST(sum(p.failed) AS {int}) FROM queue_lane l \
                JOIN queue_host h ON h.id = l.host_id JOIN queue_progress p ON p.lane_id = l.id \
                WHERE l.run_id = ? GROUP BY l.stage, h.name ORDER BY l.stage, h.name";
            let rows = tx.rows(sql, values![run_id]).await?;
            let of = |row: &DbRow| {
                Ok(LaneProgress {
                    stage: row.text(0)?,
                    host: row.text(1)?,
                    enqueued: row.int(2)?,
                    done: row.int(3)?,
                    dead: row.int(4)?,
                    failed: row.int(5)?,
                })
            };
            rows.iter()
                .map(of)
                .collect::<Result<Vec<_>, sqlx::Error>>()
                .map_err(Fault::from)
        };
        listed
            .await
            .map_err(|e| e.into_error("read the progress", self.place()))
    }

    /// Workers, newest first.
    pub async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>> {
        let mut tx = self.reading("list the workers").await?;
        let listed = async {
            let sql = "SELECT name, label, state, started_at, heartbeat_at FROM queue_worker ORDER BY id DESC LIMIT ?";
            let rows = tx.rows(sql, values![limit]).await?;
            let of = |row: &DbRow| {
                Ok(WorkerRecord {
                    name: row.text(0)?,
                    label: row.text(1)?,
                    state: match row.int(2)? {
                        0 => "live",
                        1 => "lost",
                        _ => "left",
                    },
                    started_at: row.int(3)?,
                    heartbeat_at: row.int(4)?,
                })
            };
            rows.iter()
                .map(of)
                .collect::<Result<Vec<_>, sqlx::Error>>()
                .map_err(Fault::from)
        };
        listed
            .await
            .map_err(|e| e.into_error("list the workers", self.place()))
    }
}

pub(super) fn request_of(row: &DbRow) -> Result<RequestRecord, Fault> {
    Ok(RequestRecord {
        id: row.int(0)?,
        request_key: hex(&row.bytes(1)?).parse()?,
        stage: row.text(2)?.parse()?,
        method: row.text(3)?,
        url: row.text(4)?,
        state: RequestState::of_code(row.int(5)?)?,
        attempts: u32::try_from(row.int(6)?).unwrap_or(u32::MAX),
        failures: u32::try_from(row.int(7)?).unwrap_or(u32::MAX),
        class: row.maybe_text(8)?,
        status: row.maybe_int(9)?,
        capture: row.maybe_bytes(10)?.map(|b| hex(&b).parse()).transpose()?,
        not_before: row.int(11)?,
        ended_at: row.maybe_int(12)?,
        parent_id: row.maybe_int(13)?,
        body: BodyMark::from_int(row.int(14)?),
    })
}
