//! A run's row: read, found, locked in an expected state.

use crate::error::{Error, Result};
use crate::name::RunName;
use crate::queue::cell::unsigned;
use crate::queue::db::{DbRow, Fault, Tx, values};
use crate::queue::{Coverage, EnqueueStats, RunRecord, RunState};
use crate::spec::RunKey;
use crate::time::BusinessDate;

/// The runs that there are; a condition follows with `AND`. One that goes ([`GOING`]) is not among them.
pub(super) const RUNS: &str = "SELECT id, source, dt, run, state, coverage, day_id, successor_of, plan_hash, \
    announced, inserted, duplicate, out_of_scope, late_finishes, stopped, deadline_at, created_at, closing \
    FROM queue_run WHERE state < 4";

/// What stands in the place of the state of a run that is being pruned: it is in none, and nobody reads it any more.
pub(super) const GOING: i64 = 4;

pub(super) async fn find_run(tx: &mut Tx, key: &RunKey) -> Result<Option<RunRecord>, Fault> {
    let sql = format!("{RUNS} AND source = ? AND dt = ? AND run = ?");
    let args = values![key.source.as_str(), key.date.to_string(), key.run.as_str()];
    tx.row(&sql, args).await?.as_ref().map(run_of).transpose()
}

pub(super) async fn find_successor(tx: &mut Tx, run_id: i64) -> Result<Option<RunRecord>, Fault> {
    let sql = format!("{RUNS} AND successor_of = ? ORDER BY id DESC LIMIT 1");
    let found = tx.row(&sql, values![run_id]).await?;
    found.as_ref().map(run_of).transpose()
}

pub(super) async fn get_run(tx: &mut Tx, id: i64) -> Result<RunRecord, Fault> {
    let row = tx.row(&format!("{RUNS} AND id = ?"), values![id]).await?;
    let row = row.ok_or_else(|| no_run(id))?;
    run_of(&row)
}

pub(super) fn no_run(id: i64) -> Error {
    Error::not_found(format!("the queue has no run of number `{id}` (any more)"))
        .hint("`lakebed queue prune` takes closed runs out of the queue")
}

/// The run, its row locked, in one of these states.
pub(super) async fn require_state(
    tx: &mut Tx,
    id: i64,
    states: &[RunState],
) -> Result<RunRecord, Fault> {
    let row = tx
        .row(&format!("{RUNS} AND id = ? {{lock}}"), values![id])
        .await?;
    let row = row.ok_or_else(|| no_run(id))?;
    let run = run_of(&row)?;
    if states.contains(&run.state) {
        return Ok(run);
    }
    let wanted: Vec<&str> = states.iter().map(|s| s.as_str()).collect();
    let error = Error::precondition(format!(
        "the run `{}` is {}, not {}",
        run.key,
        run.state.as_str(),
        wanted.join(" or ")
    ));
    let RunKey {
        source,
        date,
        run: name,
    } = &run.key;
    Err(match run.state {
        RunState::Seeding => error.hint(format!(
            "`lakebed crawl {source} --date {date} --run {name}` seeds it; `lakebed crawl close {source} --date {date} --run {name} --give-up` ends a run that cannot be seeded"
        )),
        RunState::Open | RunState::Sealed | RunState::Closed => error,
    }
    .into())
}

pub(super) fn expect_one(changed: u64, run: &RunRecord) -> Result<(), Fault> {
    if changed == 1 {
        return Ok(());
    }
    Err(
        Error::conflict(format!("the run `{}` changed meanwhile", run.key))
            .retryable()
            .into(),
    )
}

pub(super) fn run_of(row: &DbRow) -> Result<RunRecord, Fault> {
    let date: BusinessDate = row.text(2)?.parse()?;
    let key = RunKey {
        source: row.text(1)?.parse()?,
        date,
        run: row.text(3)?.parse::<RunName>()?,
    };
    Ok(RunRecord {
        id: row.int(0)?,
        key,
        state: RunState::of_code(row.int(4)?)?,
        coverage: Coverage::of_code(row.int(5)?),
        day_id: row.int(6)?,
        successor_of: row.maybe_int(7)?,
        plan_hash: row.maybe_text(8)?,
        seeds: EnqueueStats {
            announced: unsigned(row.int(9)?),
            inserted: unsigned(row.int(10)?),
            duplicate: unsigned(row.int(11)?),
            out_of_scope: unsigned(row.int(12)?),
        },
        late_finishes: unsigned(row.int(13)?),
        stopped: row.maybe_text(14)?,
        deadline_at: row.maybe_int(15)?,
        created_at: row.int(16)?,
        closing: row.maybe_text(17)?,
    })
}
