//! A red closing that a person takes as it is: who, when and why stand in the closing itself, beside what was wrong.

use crate::error::{Error, Result};
use crate::queue::db::{in_tx, values};
use crate::queue::event::put_event;
use crate::queue::run_row::{expect_one, get_run, require_state};
use crate::queue::verdict::{Acceptance, ClosingRecord, closing_of};
use crate::queue::{Queue, RunRecord, RunState};
use crate::time::Instant;

impl Queue {
    /// Takes a run that closed red as it is: from now on it counts as closed well, with partial coverage, for something
    /// that it should have seen is not there. Its reasons stay. The same note again changes nothing.
    ///
    /// # Errors
    /// `InvalidInput` without a note; `PreconditionFailed` where the run is not closed, is green, was accepted with
    /// another note, or has not a single success, counted over the runs that it goes back to.
    pub async fn accept_run(
        &self,
        run_id: i64,
        by: Option<&str>,
        note: &str,
    ) -> Result<(RunRecord, ClosingRecord)> {
        let note = note.trim();
        if note.is_empty() {
            return Err(Error::invalid("a closing is accepted with a reason")
                .hint("`--note TEXT` says why the day is good as it is"));
        }
        let run = self.get_run(run_id).await?;
        if run.state != RunState::Closed {
            let state = run.state.as_str();
            return Err(Error::precondition(format!(
                "the run `{}` is {state}: only what closed red is accepted",
                run.key
            ))
            .hint("`lakebed crawl close` closes it; with `--give-up` after `lakebed crawl stop`, whatever is left"));
        }
        let books = self.read_books(run_id).await?;
        let done = match &books.family {
            Some(family) => family.done,
            None => books.states.get("done").copied().unwrap_or(0),
        };
        let accepted = in_tx!(&self.db, "accept the closing", |tx| {
            let run = require_state(&mut tx, run_id, &[RunState::Closed]).await?;
            let mut record = closing_of(&run)?;
            if let Some(before) = &record.accepted
                && before.note == note
            {
                return Ok((run, record));
            }
            refuse(&run, &record, done)?;
            let now = tx.int("SELECT {now}", &[]).await?;
            let acceptance = Acceptance {
                by: by.map(str::to_owned),
                at: Instant::from_micros(now),
                note: note.to_owned(),
            };
            let detail = serde_json::json!({ "run": run.key.to_string(), "accepted": &acceptance });
            record.accepted = Some(acceptance);
            let text = serde_json::to_string(&record).unwrap_or_default();
            let sql = "UPDATE queue_run SET closing = ?, coverage = 1 WHERE id = ? AND state = 3";
            let changed = tx.execute(sql, values![text, run_id]).await?;
            expect_one(changed, &run)?;
            put_event(&mut tx, Some(run_id), "run_accepted", &detail).await?;
            Ok((get_run(&mut tx, run_id).await?, record))
        })?;
        self.db.make_durable().await?;
        Ok(accepted)
    }
}

fn refuse(run: &RunRecord, record: &ClosingRecord, done: u64) -> Result<()> {
    if let Some(before) = &record.accepted {
        let by = before.by.as_deref().unwrap_or("somebody");
        return Err(Error::precondition(format!(
            "the run `{}` was accepted by {by} already: {}",
            run.key, before.note
        )));
    }
    if record.pass {
        return Err(Error::precondition(format!(
            "the run `{}` closed green: there is nothing to accept",
            run.key
        )));
    }
    if done == 0 {
        return Err(Error::precondition(format!(
            "no request of the run `{}` is done: an empty day is not accepted",
            run.key
        ))
        .hint("`lakebed queue retry` tries what died again"));
    }
    Ok(())
}
