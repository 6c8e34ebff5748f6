//! Runs: created, seeded, opened, sealed. Closing has its own file.
//!
//! Seeds come in batches while the run is `seeding`; the move to `open` states how many the plan
//! announced and is refused unless every one of them was inserted, a duplicate, or out of scope (QUE-3).
//! A seeding that died is begun again from nothing: what it inserted was never claimable. One process seeds
//! at a time: its name stands in the run's row, and who comes meanwhile waits or takes over when it was silent.

use crate::error::{Error, Result};
use crate::name::SourceName;
use crate::queue::cell::signed;
use crate::queue::db::{Fault, Tx, in_tx, values};
use crate::queue::enqueue::{Origin, tx_enqueue};
use crate::queue::event::put_event;
use crate::queue::run_row::{
    RUNS, expect_one, find_run, find_successor, get_run, require_state, run_of,
};
use crate::queue::{Coverage, EnqueueStats, NewRequest, Queue, RunRecord, RunState};
use crate::spec::RunKey;
use crate::time::BusinessDate;

/// Rows that one transaction deletes at most.
const DELETE_BATCH: i64 = 5_000;

/// What a run is made with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunOptions {
    /// Whether it claims to see everything.
    pub coverage: Coverage,
    /// What is left after so long dies, microseconds from now.
    pub deadline_us: Option<i64>,
    /// The closed run whose dead requests it tries again.
    pub successor_of: Option<i64>,
}

/// What came of making a run.
enum Made {
    /// It is there.
    Run(Box<RunRecord>),
    /// These runs of its date were pruned, and rows of them are left.
    Waits(Vec<i64>),
}

async fn create_run(tx: &mut Tx, key: &RunKey, options: &RunOptions) -> Result<Made, Fault> {
    if let Some(run) = find_run(tx, key).await? {
        return Ok(Made::Run(Box::new(run)));
    }
    let day_key = values![key.source.as_str(), key.date.to_string()];
    let sql = "SELECT id FROM queue_run WHERE source = ? AND dt = ? AND state = 4 ORDER BY id";
    let going = tx.rows(sql, day_key).await?;
    if !going.is_empty() {
        let going = going.iter().map(|row| row.int(0));
        return Ok(Made::Waits(going.collect::<Result<_, _>>()?));
    }
    if let Some(before) = options.successor_of {
        // Nobody prunes it until this one is there.
        require_state(tx, before, &[RunState::Closed]).await?;
    }
    let day = "SELECT min(day_id) FROM queue_run WHERE source = ? AND dt = ?";
    let day_id = tx
        .row(day, day_key)
        .await?
        .map(|r| r.maybe_int(0))
        .transpose()?
        .flatten();
    let id = tx
        .insert_id(
            "INSERT INTO queue_run (source, dt, run, day_id, state, coverage, successor_of, deadline_at, created_at) \
             VALUES (?, ?, ?, ?, 0, ?, ?, {now} + ?, {now})",
            values![
                key.source.as_str(),
                key.date.to_string(),
                key.run.as_str(),
                day_id.unwrap_or(0),
                options.coverage.code(),
                options.successor_of,
                options.deadline_us,
            ],
        )
        .await?;
    if day_id.is_none() {
        tx.execute(
            "UPDATE queue_run SET day_id = ? WHERE id = ?",
            values![id, id],
        )
        .await?;
    }
    put_event(tx, Some(id), "run_created", key).await?;
    Ok(Made::Run(Box::new(get_run(tx, id).await?)))
}

impl Queue {
    /// Makes the run, or finds it as it is. What is left of runs of its date that were pruned goes first.
    ///
    /// # Errors
    /// `NotFound` or `PreconditionFailed` where the run that it goes back to was pruned meanwhile or is not closed.
    pub async fn create_run(&self, key: &RunKey, options: &RunOptions) -> Result<RunRecord> {
        loop {
            // Of two that make it at once, one meets the other's row, begins again and finds it.
            let made = in_tx!(&self.db, "create the run", |tx| {
                create_run(&mut tx, key, options).await
            })?;
            match made {
                Made::Run(run) => return Ok(*run),
                Made::Waits(going) => self.delete_rows(&going).await.map(drop)?,
            };
        }
    }

    /// The run of this source, date and name, if there is one.
    pub async fn find_run(&self, key: &RunKey) -> Result<Option<RunRecord>> {
        let mut tx = self.reading("look for the run").await?;
        let found = find_run(&mut tx, key).await;
        found.map_err(|e| e.into_error("look for the run", self.place()))
    }

    /// The newest run that tries what died in this one again.
    pub async fn find_successor(&self, run_id: i64) -> Result<Option<RunRecord>> {
        let mut tx = self.reading("look for the successor of the run").await?;
        let found = find_successor(&mut tx, run_id).await;
        found.map_err(|e| e.into_error("look for the successor of the run", self.place()))
    }

    /// The run of this number.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get_run(&self, id: i64) -> Result<RunRecord> {
        let mut tx = self.reading("read the run").await?;
        let found = get_run(&mut tx, id).await;
        found.map_err(|e| e.into_error("read the run", self.place()))
    }

    /// Runs, newest first: of one source or of all.
    pub async fn list_runs(
        &self,
        source: Option<&SourceName>,
        limit: u32,
    ) -> Result<Vec<RunRecord>> {
        let mut tx = self.reading("list the runs").await?;
        let listed = async {
            let rows = match source {
                Some(source) => {
                    let sql = format!("{RUNS} AND source = ? ORDER BY id DESC LIMIT ?");
                    tx.rows(&sql, values![source.as_str(), limit]).await?
                }
                None => {
                    tx.rows(&format!("{RUNS} ORDER BY id DESC LIMIT ?"), values![limit])
                        .await?
                }
            };
            rows.iter().map(run_of).collect::<Result<Vec<_>, Fault>>()
        };
        listed
            .await
            .map_err(|e| e.into_error("list the runs", self.place()))
    }

    /// Runs of a source on a date, oldest first.
    pub async fn list_runs_of(
        &self,
        source: &SourceName,
        date: BusinessDate,
    ) -> Result<Vec<RunRecord>> {
        let mut tx = self.reading("list the runs of the date").await?;
        let listed = async {
            let sql = format!("{RUNS} AND source = ? AND dt = ? ORDER BY id");
            let args = values![source.as_str(), date.to_string()];
            let rows = tx.rows(&sql, args).await?;
            rows.iter().map(run_of).collect::<Result<Vec<_>, Fault>>()
        };
        listed
            .await
            .map_err(|e| e.into_error("list the runs of the date", self.place()))
    }

    /// The first date of which there is a run of the source.
    pub async fn first_date(&self, source: &SourceName) -> Result<Option<BusinessDate>> {
        let mut tx = self.reading("look for the first date").await?;
        let found = async {
            let sql = "SELECT min(dt) FROM queue_run WHERE source = ? AND state < 4";
            let row = tx.row(sql, values![source.as_str()]).await?;
            let first = row.map(|r| r.maybe_text(0)).transpose()?.flatten();
            Ok::<_, Fault>(first.map(|dt| dt.parse()).transpose()?)
        };
        found
            .await
            .map_err(|e| e.into_error("look for the first date", self.place()))
    }

    /// Begins the seeding (again): what an earlier, unfinished seeding inserted is taken out. `false`
    /// where another process seeds and was heard of within the lease.
    ///
    /// # Errors
    /// `PreconditionFailed` once the run is open.
    pub async fn begin_seeding(&self, run_id: i64) -> Result<bool> {
        let name = self.memory.seeder(run_id);
        let lease = self.options.lease_us;
        let mine = in_tx!(&self.db, "begin the seeding", |tx| {
            require_state(&mut tx, run_id, &[RunState::Seeding]).await?;
            let sql = "UPDATE queue_run SET seeder = ?, seed_at = {now} WHERE id = ? AND \
                (seeder IS NULL OR seeder = ? OR seed_at + ? < {now})";
            let args = values![name.as_str(), run_id, name.as_str(), lease];
            Ok(tx.execute(sql, args).await? == 1)
        })?;
        if !mine {
            return Ok(false);
        }
        loop {
            let left: u64 = in_tx!(&self.db, "begin the seeding", |tx| {
                require_seeder(&mut tx, run_id, &name).await?;
                delete_seeds(&mut tx, run_id).await
            })?;
            if left == 0 {
                return Ok(true);
            }
        }
    }

    /// Says that this process still seeds, for a plan that takes its time.
    ///
    /// # Errors
    /// `Conflict` where another process has taken over.
    pub async fn renew_seeding(&self, run_id: i64) -> Result<()> {
        let name = self.memory.seeder(run_id);
        in_tx!(&self.db, "renew the seeding", |tx| {
            require_seeder(&mut tx, run_id, &name).await.map(drop)
        })
    }

    /// Leaves the seeding to whoever comes next.
    pub async fn leave_seeding(&self, run_id: i64) -> Result<()> {
        let name = self.memory.seeder(run_id);
        in_tx!(&self.db, "leave the seeding", |tx| {
            let sql = "UPDATE queue_run SET seeder = NULL WHERE id = ? AND seeder = ?";
            tx.execute(sql, values![run_id, name.as_str()]).await?;
            Ok(())
        })
    }

    /// Adds seeds to a run that is seeding. `out_of_scope` is what the rules of the source refused of the
    /// plan beside them.
    pub async fn add_seeds(
        &self,
        run_id: i64,
        seeds: &[NewRequest],
        out_of_scope: u64,
    ) -> Result<EnqueueStats> {
        let placed = self.place_requests(run_id, seeds).await?;
        let name = self.memory.seeder(run_id);
        in_tx!(&self.db, "add seeds", |tx| {
            let run = require_seeder(&mut tx, run_id, &name).await?;
            let inserted = tx_enqueue(&mut tx, &run, Origin::Seed, &placed).await?;
            let stats = stats_of(seeds, inserted, out_of_scope);
            count_seeds(&mut tx, run_id, stats, false).await?;
            Ok(stats)
        })
    }

    /// Ends the seeding: workers may claim. `announced` is the plan's own count, `plan_hash` names it.
    ///
    /// # Errors
    /// `PreconditionFailed` where the counts do not balance: something of the plan was lost on its way.
    pub async fn open_run(
        &self,
        run_id: i64,
        announced: u64,
        plan_hash: &str,
    ) -> Result<RunRecord> {
        let name = self.memory.seeder(run_id);
        in_tx!(&self.db, "open the run", |tx| {
            let run = require_seeder(&mut tx, run_id, &name).await?;
            let seeds = EnqueueStats {
                announced,
                ..run.seeds
            };
            if !seeds.balances() {
                return Err(unbalanced(&run, seeds));
            }
            let changed = tx
                .execute(
                    "UPDATE queue_run SET state = 1, opened_at = {now}, announced = ?, plan_hash = ? WHERE id = ? AND state = 0",
                    values![signed(announced), plan_hash, run_id],
                )
                .await?;
            expect_one(changed, &run)?;
            put_event(&mut tx, Some(run_id), "run_opened", &run.key).await?;
            get_run(&mut tx, run_id).await
        })
    }

    /// Adds requests to an open run that no claim led to: a crawler's own discoveries.
    pub async fn add_requests(
        &self,
        run_id: i64,
        requests: &[NewRequest],
        out_of_scope: u64,
    ) -> Result<EnqueueStats> {
        let placed = self.place_requests(run_id, requests).await?;
        let added = in_tx!(&self.db, "add requests", |tx| {
            let run = require_state(&mut tx, run_id, &[RunState::Open]).await?;
            let inserted = tx_enqueue(&mut tx, &run, Origin::Added, &placed).await?;
            let stats = stats_of(requests, inserted, out_of_scope);
            count_seeds(&mut tx, run_id, stats, true).await?;
            Ok(stats)
        })?;
        self.memory.forget_watermarks();
        Ok(added)
    }

    /// Seals the run: from now on only the finish of a claim adds requests. Sealing again is nothing.
    pub async fn seal_run(&self, run_id: i64) -> Result<RunRecord> {
        in_tx!(&self.db, "seal the run", |tx| {
            let run = require_state(
                &mut tx,
                run_id,
                &[RunState::Open, RunState::Sealed, RunState::Closed],
            )
            .await?;
            if run.state != RunState::Open {
                return Ok(run);
            }
            let sql =
                "UPDATE queue_run SET state = 2, sealed_at = {now} WHERE id = ? AND state = 1";
            let changed = tx.execute(sql, values![run_id]).await?;
            expect_one(changed, &run)?;
            put_event(&mut tx, Some(run_id), "run_sealed", &run.key).await?;
            get_run(&mut tx, run_id).await
        })
    }

    /// Stops the run: nothing is claimed any more, and it closes red with this reason. The first reason stays.
    pub async fn stop_run(&self, run_id: i64, reason: &str) -> Result<()> {
        in_tx!(&self.db, "stop the run", |tx| {
            let run = require_state(
                &mut tx,
                run_id,
                &[RunState::Seeding, RunState::Open, RunState::Sealed],
            )
            .await?;
            let sql = "UPDATE queue_run SET stopped = ? WHERE id = ? AND stopped IS NULL";
            if tx.execute(sql, values![reason, run_id]).await? == 1 {
                put_event(&mut tx, Some(run_id), "run_stopped", &run.key).await?;
            }
            Ok(())
        })
    }

    /// Takes the stop back, so that workers may go on.
    pub async fn resume_run(&self, run_id: i64) -> Result<()> {
        in_tx!(&self.db, "resume the run", |tx| {
            let run = require_state(
                &mut tx,
                run_id,
                &[RunState::Seeding, RunState::Open, RunState::Sealed],
            )
            .await?;
            let sql = "UPDATE queue_run SET stopped = NULL WHERE id = ? AND stopped IS NOT NULL";
            if tx.execute(sql, values![run_id]).await? == 1 {
                put_event(&mut tx, Some(run_id), "run_resumed", &run.key).await?;
            }
            Ok(())
        })
    }

    /// A transaction that only reads.
    pub(super) async fn reading(&self, action: &str) -> Result<Tx> {
        let begun = self.db.begin_reading().await;
        begun.map_err(|e| Fault::Database(e).into_error(action, self.place()))
    }
}

/// The run, seeding, its row locked, with this process as its one seeder.
async fn require_seeder(tx: &mut Tx, run_id: i64, name: &str) -> Result<RunRecord, Fault> {
    let run = require_state(tx, run_id, &[RunState::Seeding]).await?;
    let sql = "UPDATE queue_run SET seeder = ?, seed_at = {now} + 1 WHERE id = ? AND (seeder IS NULL OR seeder = ?)";
    if tx.execute(sql, values![name, run_id, name]).await? == 1 {
        return Ok(run);
    }
    Err(Error::conflict(format!("another process seeds the run `{}`", run.key))
        .hint("wait until it is open; it can be taken over when that process was silent for a lease")
        .retryable()
        .into())
}

fn stats_of(requests: &[NewRequest], inserted: u64, out_of_scope: u64) -> EnqueueStats {
    let offered = requests.len() as u64;
    EnqueueStats {
        announced: offered + out_of_scope,
        inserted,
        duplicate: offered - inserted,
        out_of_scope,
    }
}

async fn count_seeds(
    tx: &mut Tx,
    run_id: i64,
    stats: EnqueueStats,
    announce: bool,
) -> Result<(), Fault> {
    let announced = if announce { stats.announced } else { 0 };
    tx.execute(
        "UPDATE queue_run SET announced = announced + ?, inserted = inserted + ?, duplicate = duplicate + ?, \
         out_of_scope = out_of_scope + ? WHERE id = ?",
        values![
            signed(announced),
            signed(stats.inserted),
            signed(stats.duplicate),
            signed(stats.out_of_scope),
            run_id
        ],
    )
    .await?;
    Ok(())
}

fn unbalanced(run: &RunRecord, seeds: EnqueueStats) -> Fault {
    let e = Error::precondition(format!(
        "the plan of `{}` announced {} seeds, but {} came: {} new, {} duplicate, {} out of scope",
        run.key,
        seeds.announced,
        seeds.inserted + seeds.duplicate + seeds.out_of_scope,
        seeds.inserted,
        seeds.duplicate,
        seeds.out_of_scope
    ));
    e.hint("seeds were lost between plan and queue, or the plan counted wrongly: seed again")
        .into()
}

/// Deletes a bounded number of rows of an unfinished seeding; how many there were.
async fn delete_seeds(tx: &mut Tx, run_id: i64) -> Result<u64, Fault> {
    let ids = "SELECT id FROM queue_request_state WHERE run_id = ? ORDER BY id LIMIT ?";
    let rows = tx.rows(ids, values![run_id, DELETE_BATCH]).await?;
    let last = match rows.last() {
        Some(row) => row.int(0)?,
        None => {
            for sql in [
                "DELETE FROM queue_group WHERE run_id = ?",
                "DELETE FROM queue_progress WHERE lane_id IN (SELECT id FROM queue_lane WHERE run_id = ?)",
                "UPDATE queue_run SET announced = 0, inserted = 0, duplicate = 0, out_of_scope = 0 WHERE id = ?",
            ] {
                tx.execute(sql, values![run_id]).await?;
            }
            return Ok(0);
        }
    };
    tx.execute(
        "DELETE FROM queue_request_state WHERE run_id = ? AND id <= ?",
        values![run_id, last],
    )
    .await?;
    for row in &rows {
        tx.execute(
            "DELETE FROM queue_request WHERE id = ?",
            values![row.int(0)?],
        )
        .await?;
    }
    Ok(rows.len() as u64)
}
