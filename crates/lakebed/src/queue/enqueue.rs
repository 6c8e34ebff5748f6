//! Requests go in: idempotent by (scope, key), counted, in batches.
//!
//! The facts of a request and its key are written once, in `queue_request`; what changes lies in the
//! narrow `queue_request_state`. Hosts and lanes (stage and host of a run) are made first, in
//! transactions of their own: their ids never change and are remembered.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::queue::cell::key_bytes;
use crate::queue::db::{Dialect, Fault, Tx, Value, groups, in_tx, pieces, values};
use crate::queue::family::first_of;
use crate::queue::run_row::require_state;
use crate::queue::tally::{Progress, add_progress};
use crate::queue::{KeyScope, NewRequest, Queue, RunRecord, RunState};

/// Longest URL the queue takes, bytes.
const MAX_URL: usize = 16 * 1024;
/// Largest body of a request, bytes.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The plan of the run.
    Seed,
    /// A page that was fetched.
    Child {
        /// Number of its request.
        parent: i64,
        /// The worker that fetched it.
        worker: i64,
    },
    /// A call while the run was open.
    Added,
}

impl Origin {
    fn code(self) -> i64 {
        match self {
            Self::Seed => 0,
            Self::Child { .. } => 1,
            Self::Added => 2,
        }
    }

    fn parent(self) -> Option<i64> {
        match self {
            Self::Child { parent, .. } => Some(parent),
            Self::Seed | Self::Added => None,
        }
    }

    /// In whose row the progress is counted; 0 for no worker.
    fn worker(self) -> i64 {
        match self {
            Self::Child { worker, .. } => worker,
            Self::Seed | Self::Added => 0,
        }
    }
}

/// A request with its lane and key.
pub(super) struct Placed<'r> {
    request: &'r NewRequest,
    lane_id: i64,
    key: Vec<u8>,
}

impl Queue {
    /// Checks the requests and gives each its lane.
    pub(super) async fn place_requests<'r>(
        &self,
        run_id: i64,
        requests: &'r [NewRequest],
    ) -> Result<Vec<Placed<'r>>> {
        let mut placed = Vec::with_capacity(requests.len());
        for request in requests {
            check(request)?;
            let host = request.host()?;
            let host_id = self.host_id(&host).await?;
            let lane_key = (run_id, request.stage.as_str().to_owned(), host_id);
            let lane_id = match self.memory.lane(&lane_key) {
                Some(id) => id,
                None => self.make_lane(lane_key).await?,
            };
            let key = key_bytes(&request.key());
            placed.push(Placed {
                request,
                lane_id,
                key,
            });
        }
        // One order for everybody: two that insert the same keys wait for each other, and never in a ring.
        placed.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(placed)
    }

    /// The number of a host, made where it is new.
    pub(super) async fn host_id(&self, name: &str) -> Result<i64> {
        if let Some(id) = self.memory.host(name) {
            return Ok(id);
        }
        let id = in_tx!(&self.db, "add the host", |tx| {
            let sql = "SELECT id FROM queue_host WHERE name = ?";
            match tx.row(sql, values![name]).await? {
                Some(row) => Ok(row.int(0)?),
                None => Ok(tx
                    .insert_id("INSERT INTO queue_host (name) VALUES (?)", values![name])
                    .await?),
            }
        })?;
        self.memory.keep_host(name, id);
        Ok(id)
    }

    async fn make_lane(&self, key: (i64, String, i64)) -> Result<i64> {
        let id = in_tx!(&self.db, "add the lane", |tx| {
            let states = [RunState::Seeding, RunState::Open, RunState::Sealed];
            require_state(&mut tx, key.0, &states).await?;
            let args = values![key.0, key.1.as_str(), key.2];
            let sql = "SELECT id FROM queue_lane WHERE run_id = ? AND stage = ? AND host_id = ?";
            match tx.row(sql, args).await? {
                Some(row) => Ok(row.int(0)?),
                None => {
                    let sql = "INSERT INTO queue_lane (run_id, stage, host_id, ready) VALUES (?, ?, ?, 1)";
                    Ok(tx.insert_id(sql, args).await?)
                }
            }
        })?;
        self.memory.keep_lane(key, id);
        Ok(id)
    }
}

fn check(request: &NewRequest) -> Result<()> {
    if request.url.len() > MAX_URL {
        let start: String = request.url.chars().take(80).collect();
        return Err(Error::limit(format!(
            "the URL `{start}...` has {} bytes",
            request.url.len()
        ))
        .hint("at most 16384 bytes"));
    }
    let is_token = |b: u8| b.is_ascii_uppercase() || b == b'-';
    if request.method.is_empty()
        || request.method.len() > 32
        || !request.method.bytes().all(is_token)
    {
        return Err(
            Error::invalid(format!("`{}` is not a method", request.method))
                .hint("capital letters, such as GET or POST"),
        );
    }
    if request.body.as_ref().is_some_and(|b| b.len() > MAX_BODY) {
        return Err(Error::limit(format!(
            "the body of `{} {}` is too large",
            request.method, request.url
        ))
        .hint("at most 4 MiB"));
    }
    if request
        .group
        .as_ref()
        .is_some_and(|g| g.is_empty() || g.len() > 255)
    {
        return Err(Error::invalid(
            "the name of a group is empty or longer than 255 bytes",
        ));
    }
    Ok(())
}

/// Inserts what is not there yet, with its state, its group and the counts of its lane; how many were new.
pub(super) async fn tx_enqueue(
    tx: &mut Tx,
    run: &RunRecord,
    origin: Origin,
    placed: &[Placed<'_>],
) -> Result<u64, Fault> {
    let mut by_lane: BTreeMap<i64, i64> = BTreeMap::new();
    let mut inserted = 0;
    // What a page leads to that is tried again is new where the run that it goes back to did not have it: its keys count.
    let keys_of = match (origin, run.successor_of) {
        (Origin::Child { .. }, Some(_)) => first_of(tx, run.clone()).await?.id,
        _ => run.id,
    };
    for piece in pieces(placed) {
        let new = insert_new(tx, (run, keys_of), origin, piece).await?;
        let mut args = Vec::with_capacity(new.len() * 4);
        for (id, key) in &new {
            // The answer holds keys of this piece alone.
            let Some(place) = piece.iter().find(|p| p.key == *key) else {
                continue;
            };
            *by_lane.entry(place.lane_id).or_default() += 1;
            args.extend([
                Value::from(run.id),
                Value::from(*id),
                Value::from(place.lane_id),
                Value::from(place.request.priority),
            ]);
        }
        let rows: Vec<&[Value]> = args.chunks_exact(4).collect();
        for part in pieces(&rows) {
            let rows = vec!["(?, ?, ?, 0, ?, 0, 0, 0, 0, 0, 0)"; part.len()].join(", ");
            let sql = format!(
                "INSERT INTO queue_request_state (run_id, id, lane_id, state, priority, not_before, attempt, \
                 failures, worker_id, slot, held_until) VALUES {rows}"
            );
            tx.execute(&sql, &part.concat()).await?;
        }
        inserted += new.len() as u64;
        keep_groups(tx, run.id, piece).await?;
    }
    for (lane, count) in by_lane {
        add_progress(
            tx,
            lane,
            origin.worker(),
            Progress {
                enqueued: count,
                ..Progress::default()
            },
        )
        .await?;
        tx.execute(
            "UPDATE queue_lane SET ready = 1 WHERE id = ? AND ready = 0",
            values![lane],
        )
        .await?;
    }
    Ok(inserted)
}

const REQUEST_COLUMNS: &str = "run_id, scope, request_key, lane_id, origin, parent_id, method, url, headers, body, carry, enqueued_at";

fn request_values(run: (&RunRecord, i64), origin: Origin, place: &Placed<'_>) -> Vec<Value> {
    let request = place.request;
    let headers = (!request.headers.is_empty())
        .then(|| serde_json::to_string(&request.headers).unwrap_or_default());
    vec![
        run.0.id.into(),
        scope_of(run, request.scope).into(),
        place.key.clone().into(),
        place.lane_id.into(),
        origin.code().into(),
        origin.parent().into(),
        request.method.as_str().into(),
        request.url.as_str().into(),
        headers.into(),
        request.body.clone().into(),
        request.carry.clone().into(),
    ]
}

/// What the key is unique within: a run by the number of the run whose keys count, a date by the number of its first run,
/// negative.
fn scope_of((run, keys_of): (&RunRecord, i64), scope: KeyScope) -> i64 {
    match scope {
        KeyScope::Run => keys_of,
        KeyScope::Date => -run.day_id,
    }
}

/// Inserts the requests whose key is new; their numbers and keys.
async fn insert_new(
    tx: &mut Tx,
    run: (&RunRecord, i64),
    origin: Origin,
    piece: &[Placed<'_>],
) -> Result<Vec<(i64, Vec<u8>)>, Fault> {
    match tx.dialect() {
        Dialect::Sqlite | Dialect::Postgres => {
            let sql = insert_sql(piece.len());
            let sql = format!(
                "{sql} ON CONFLICT (scope, request_key) DO NOTHING RETURNING id, request_key"
            );
            let args: Vec<Value> = piece
                .iter()
                .flat_map(|p| request_values(run, origin, p))
                .collect();
            let rows = tx.rows(&sql, &args).await?;
            rows.iter().map(|r| Ok((r.int(0)?, r.bytes(1)?))).collect()
        }
        Dialect::Mysql => insert_new_mysql(tx, run, origin, piece).await,
    }
}

fn insert_sql(rows: usize) -> String {
    let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now})";
    format!(
        "INSERT INTO queue_request ({REQUEST_COLUMNS}) VALUES {}",
        vec![row; rows].join(", ")
    )
}

/// MySQL has no `RETURNING`: look, insert what is missing, look again. Who inserts the same key at the
/// same time meets the unique index, and the transaction is begun again.
async fn insert_new_mysql(
    tx: &mut Tx,
    run: (&RunRecord, i64),
    origin: Origin,
    piece: &[Placed<'_>],
) -> Result<Vec<(i64, Vec<u8>)>, Fault> {
    let there = mysql_ids(tx, run, piece).await?;
    let mut new: Vec<&Placed<'_>> = Vec::new();
    for place in piece {
        let same = |p: &&Placed<'_>| p.key == place.key && p.request.scope == place.request.scope;
        if !there.iter().any(|(_, key)| *key == place.key) && !new.iter().any(same) {
            new.push(place);
        }
    }
    for part in pieces(&new) {
        let args: Vec<Value> = part
            .iter()
            .flat_map(|p| request_values(run, origin, p))
            .collect();
        tx.execute(&insert_sql(part.len()), &args).await?;
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids = mysql_ids(tx, run, piece).await?;
    ids.retain(|(_, key)| new.iter().any(|p| p.key == *key));
    Ok(ids)
}

async fn mysql_ids(
    tx: &mut Tx,
    run: (&RunRecord, i64),
    piece: &[Placed<'_>],
) -> Result<Vec<(i64, Vec<u8>)>, Fault> {
    let sql = format!(
        "SELECT id, request_key FROM queue_request WHERE (scope, request_key) IN ({})",
        groups(piece.len(), 2)
    );
    let of = |p: &Placed<'_>| {
        [
            Value::from(scope_of(run, p.request.scope)),
            p.key.clone().into(),
        ]
    };
    let args: Vec<Value> = piece.iter().flat_map(of).collect();
    let rows = tx.rows(&sql, &args).await?;
    rows.iter().map(|r| Ok((r.int(0)?, r.bytes(1)?))).collect()
}

/// Remembers which keys belong to which group, new or not.
async fn keep_groups(tx: &mut Tx, run_id: i64, piece: &[Placed<'_>]) -> Result<(), Fault> {
    let sql = match tx.dialect() {
        Dialect::Mysql => {
            "INSERT INTO queue_group (run_id, name, request_key) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE name = name"
        }
        Dialect::Sqlite | Dialect::Postgres => {
            "INSERT INTO queue_group (run_id, name, request_key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        }
    };
    for place in piece {
        if let Some(group) = &place.request.group {
            tx.execute(sql, values![run_id, group.as_str(), place.key.clone()])
                .await?;
        }
    }
    Ok(())
}
