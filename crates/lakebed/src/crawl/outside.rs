//! What a run fetched and the lake does not hold: nobody accepts a run over it unseen, and a person may give it up.

use std::path::Path;

use crate::crawl::close::{
    Closed, Packed, close_run, list_terminals, pack_ended, tell_statistics, with_parts,
};
use crate::crawl::drive::CrawlPlan;
use crate::crawl::statistics;
use crate::error::{Error, Result};
use crate::pack::{PackReport, done_in_lake, find_lost};
use crate::queue::{Breach, ClosingRecord, Queue, RunRecord, RunState, closing_of};
use crate::spec::{RunKey, TerminalRecord, TerminalState};
use crate::store::Lake;

/// Requests that are named as examples.
const SHOWN: usize = 5;

/// Takes a run that closed red as it is, and tells so beside its parts; `pack` as of [`close_run`].
///
/// # Errors
/// Those of [`Queue::accept_run`]; `PreconditionFailed` where responses of the run lie outside the lake: its pack is refused
/// still, or the lake has a pack of it that lacks what the books call done.
pub async fn accept_run(
    queue: &Queue,
    (plan, lake): (&CrawlPlan, &Lake),
    run_id: i64,
    said: (Option<&str>, &str),
    pack: impl AsyncFnOnce(Vec<TerminalRecord>) -> Result<PackReport>,
) -> Result<Closed> {
    let before = queue.get_run(run_id).await?;
    if before.state == RunState::Closed && closing_of(&before)?.lacks_pack().is_some() {
        let mut closed = close_run(queue, plan, run_id, pack).await?;
        if let Some(breach) = closed.closing.lacks_pack() {
            return Err(say_what_is_outside(breach, &closed));
        }
        // With its pack it may be green, and there is nothing to accept.
        if !closed.closing.is_good() {
            (closed.run, closed.closing) = accept(queue, lake, run_id, said).await?;
            tell_statistics(queue, plan, &closed).await?;
        }
        return Ok(closed);
    }
    // A file that cannot be read is told before anything is changed.
    let kept = statistics::find(&plan.parts)?.filter(|kept| kept.names(&plan.run));
    let (run, closing) = accept(queue, lake, run_id, said).await?;
    let (packed, pack) = match kept {
        Some(kept) => (Packed::None, kept.pack),
        None => {
            let packed = pack_ended(queue, run_id, pack).await?;
            let told = packed.told();
            (packed, told)
        }
    };
    let closed = Closed {
        pack,
        books: queue.read_books(run_id).await?,
        packed,
        run,
        closing,
    };
    tell_statistics(queue, plan, &closed).await?;
    Ok(closed)
}

/// Accepts the run, unless a pack that stands for it, or for a run that it goes back to, lacks what the books call done.
async fn accept(
    queue: &Queue,
    lake: &Lake,
    run_id: i64,
    (by, note): (Option<&str>, &str),
) -> Result<(RunRecord, ClosingRecord)> {
    for run in queue.list_family(run_id).await? {
        // What lacks where the pack is refused for good; any other run was sealed with all that it has.
        if run.state != RunState::Closed || !closing_of(&run)?.may_be_sealed_again(false) {
            continue;
        }
        let Some(outside) = list_outside(queue, lake, &run).await? else {
            continue;
        };
        if !outside.is_empty() {
            return Err(say_what_lacks(&run.key, &outside));
        }
    }
    queue.accept_run(run_id, by, note).await
}

/// What the books of the run call done and its pack in the lake does not hold, by the number of the request; `None` where
/// readers see no pack of it.
async fn list_outside(
    queue: &Queue,
    lake: &Lake,
    run: &RunRecord,
) -> Result<Option<Vec<(i64, TerminalRecord)>>> {
    let Some(held) = done_in_lake(lake, &run.key).await? else {
        return Ok(None);
    };
    let mut ends = list_terminals(queue, run.id).await?;
    ends.retain(|(_, end)| end.state == TerminalState::Done && !held.contains(&end.request_key));
    Ok(Some(ends))
}

fn say_what_lacks(key: &RunKey, outside: &[(i64, TerminalRecord)]) -> Error {
    let RunKey { source, date, run } = key;
    let error = Error::precondition(format!(
        "the pack that the lake has of `{key}` lacks what its books call done, {} in all: they would stay out of the lake",
        outside.len()
    ));
    let shown = outside.iter().take(SHOWN);
    let error = shown.fold(error, |error, (_, end)| {
        error.detail(format!("{} {}", end.method, end.url))
    });
    error.hint(format!(
        "`lakebed crawl close {source} --date {date} --run {run} --lost` ends these as dead; then the run is accepted, or `lakebed queue retry {source} --date {date} --run {run} --as NAME` fetches them anew"
    ))
}

/// Why a run is not accepted whose pack is refused, and what comes first.
fn say_what_is_outside(breach: &Breach, closed: &Closed) -> Error {
    let RunKey { source, date, run } = &closed.run.key;
    let run = breach.of_run().unwrap_or(run.as_str());
    let of = format!("{source} --date {date} --run {run}");
    let error = Error::precondition(format!(
        "the run `{}` is not accepted: what it fetched would stay out of the lake, for {}",
        closed.run.key, breach.message
    ));
    let error = breach
        .samples
        .iter()
        .fold(error, |error, sample| error.detail(sample.clone()));
    let refusal = match &closed.packed {
        Packed::Refused(refusal) => refusal.hints(),
        Packed::Done(_) | Packed::None => &[],
    };
    let error = refusal
        .iter()
        .fold(error, |error, hint| error.hint(hint.clone()));
    error.hint(format!(
        "where responses are gone for good, `lakebed crawl close {of} --lost` ends their requests as dead and seals the rest; then the run is accepted, or `lakebed queue retry` fetches them anew"
    ))
}

/// What is gone for good.
#[derive(Debug, Clone, Copy, Default)]
pub struct LostOptions {
    /// The folder without a single part is the right one.
    pub no_parts: bool,
}

/// Ends as dead what is done and whose response is gone, and closes the run again, with the pack of the rest: what the run's
/// pack in the lake does not hold, or, where there is none, what is in no part. How many requests died, and the run; none died
/// where every response is there, whatever else the pack was refused for.
///
/// # Errors
/// `PreconditionFailed` where the run is not closed, or not for a refused pack, and where the folder has no part at all,
/// unless that is said to be right; those of [`close_run`].
pub async fn lose_responses(
    queue: &Queue,
    (plan, lake): (&CrawlPlan, &Lake),
    run: &RunRecord,
    options: LostOptions,
    pack: impl AsyncFnOnce(Vec<TerminalRecord>) -> Result<PackReport>,
) -> Result<(u64, Closed)> {
    // An open run has parts that are being written: it is refused before they are waited for.
    queue.lose_responses(run.id, &[]).await?;
    let lost = match list_outside(queue, lake, run).await? {
        Some(outside) => outside.into_iter().map(|(id, _)| id).collect(),
        None => find_lost_of(queue, plan, run, options).await?,
    };
    let died = queue.lose_responses(run.id, &lost).await?;
    Ok((died, close_run(queue, plan, run.id, pack).await?))
}

/// The requests that are done and whose response is in no part of the folder.
async fn find_lost_of(
    queue: &Queue,
    plan: &CrawlPlan,
    run: &RunRecord,
    options: LostOptions,
) -> Result<Vec<i64>> {
    let all = list_terminals(queue, run.id).await?;
    let (key, folder) = (run.key.clone(), plan.parts.clone());
    let ends: Vec<TerminalRecord> = all.iter().map(|(_, terminal)| terminal.clone()).collect();
    let lost = with_parts(plan, move |open| {
        if open.parts.is_empty() && !options.no_parts {
            return Err(say_no_parts(&key, &folder));
        }
        let ends = ends.iter().cloned().map(Ok);
        find_lost(&key, open, ends, &folder)
    });
    let lost = lost.await?;
    let is_lost = |(_, terminal): &&(i64, TerminalRecord)| lost.contains(&terminal.request_key);
    Ok(all.iter().filter(is_lost).map(|(id, _)| *id).collect())
}

fn say_no_parts(key: &RunKey, folder: &Path) -> Error {
    let RunKey { source, date, run } = key;
    Error::precondition(format!(
        "`{}` has not a single part of `{key}`: is it the right folder, and is its disk there?",
        folder.display()
    ))
    .hint("every process that works on a run puts its parts into the folder `crawl/` of its own project")
    .hint(format!(
        "where all of them are gone for good, `lakebed crawl close {source} --date {date} --run {run} --lost --no-parts` says so"
    ))
}
