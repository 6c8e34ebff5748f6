//! The end of a run: what was fetched goes into the lake as one pack, then the books are judged.
//!
//! The pack comes before the closing: a green run has its bytes in the lake, whenever somebody dies.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::crawl::drive::CrawlPlan;
use crate::crawl::statistics::{self, PackStatistics, RunStatistics};
use crate::error::{Error, ErrorKind, Result};
use crate::pack::{
    CommitOptions, OpenParts, PackReport, commit_pack, has_pack, open_parts, plan_pack,
};
use crate::queue::{Breach, ClosingRecord, Queue, RunBooks, RunRecord, RunState, closing_of};
use crate::spec::{By, PackProfile, Provenance, RunKey, TerminalRecord};
use crate::store::Lake;

/// Ends of requests that are read at once.
const TERMINALS_PAGE: u32 = 5_000;
/// How often and how long parts of other processes are waited for.
const PACK_TRIES: u32 = 120;
const PACK_PAUSE: Duration = Duration::from_millis(500);

/// What became of the pack.
#[derive(Debug)]
pub enum Packed {
    /// There is nothing to pack, or nothing yet.
    None,
    /// It is in the lake.
    Done(Box<PackReport>),
    /// It was refused: a request is done and its response is in no part, the date is sealed, or the lake has another
    /// pack of the run. The next call tries again.
    Refused(Error),
}

impl Packed {
    pub(super) fn told(&self) -> Option<PackStatistics> {
        match self {
            Self::Done(report) => Some((&**report).into()),
            Self::None | Self::Refused(_) => None,
        }
    }
}

/// A run after the call that was to close it.
#[derive(Debug)]
pub struct Closed {
    /// The run; not closed while requests have not ended.
    pub run: RunRecord,
    /// The verdict.
    pub closing: ClosingRecord,
    /// What was counted.
    pub books: RunBooks,
    /// What became of the pack.
    pub packed: Packed,
    /// The run's pack in the lake, of this call or an earlier one; absent where there is none, or where this machine
    /// does not know.
    pub pack: Option<PackStatistics>,
}

/// Seals the run, has its pack made where every request has ended, and closes it.
///
/// `pack` is given how every request ended; it is asked only where there is something to pack. Where it fails with
/// `PreconditionFailed`, the run closes red, and every further call asks again: once it is given, the run ends as it
/// would have without the refusal.
///
/// # Errors
/// `PreconditionFailed` while the run is seeding; what `pack` fails with else.
pub async fn close_run(
    queue: &Queue,
    plan: &CrawlPlan,
    run_id: i64,
    pack: impl AsyncFnOnce(Vec<TerminalRecord>) -> Result<PackReport>,
) -> Result<Closed> {
    let run = queue.seal_run(run_id).await?;
    let books = queue.read_books(run_id).await?;
    let before = match run.state {
        RunState::Closed => Some(closing_of(&run)?),
        RunState::Seeding | RunState::Open | RunState::Sealed => None,
    };
    let packed = match &before {
        None if books.unfinished() > 0 => Packed::None,
        None => pack_ended(queue, run_id, pack).await?,
        // An older program let a run be accepted whose responses lie outside the lake.
        Some(closing) if closing.may_be_sealed_again(false) || closing.lacks_pack().is_some() => {
            pack_ended(queue, run_id, pack).await?
        }
        Some(_) if statistics::find(&plan.parts)?.is_none() => {
            // Another machine's parts are not here, and the verdict stands: no pack is told then.
            match pack_ended(queue, run_id, pack).await? {
                Packed::Refused(_) => Packed::None,
                packed => packed,
            }
        }
        Some(_) => Packed::None,
    };
    let mut rules = plan.closing_rules(&queue.first_of(run_id).await?);
    if let Packed::Refused(error) = &packed {
        rules.refused = Some(Breach::refused_pack(error));
    }
    let (run, closing) = match before {
        Some(closing) if closing.may_be_sealed_again(true) => {
            queue.close_run_again(run_id, &rules).await?
        }
        _ => queue.close_run(run_id, &rules).await?,
    };
    let mut closed = Closed {
        pack: packed.told(),
        run,
        closing,
        books,
        packed,
    };
    if closed.run.state == RunState::Closed {
        keep_statistics(queue, plan, &mut closed).await?;
    }
    Ok(closed)
}

/// The pack of a run whose requests have ended; of one that was closed before, the same pack again changes nothing.
pub(super) async fn pack_ended(
    queue: &Queue,
    run_id: i64,
    pack: impl AsyncFnOnce(Vec<TerminalRecord>) -> Result<PackReport>,
) -> Result<Packed> {
    let terminals = read_terminals(queue, run_id).await?;
    if terminals.is_empty() {
        return Ok(Packed::None);
    }
    match pack(terminals).await {
        Ok(report) => Ok(Packed::Done(Box::new(report))),
        Err(e) if e.kind() == ErrorKind::PreconditionFailed => Ok(Packed::Refused(e)),
        Err(e) => Err(e),
    }
}

/// Writes `run.json` beside the parts, unless what is there tells of this closing: the first one stands.
async fn keep_statistics(queue: &Queue, plan: &CrawlPlan, closed: &mut Closed) -> Result<()> {
    let kept = statistics::find(&plan.parts)?.filter(|kept| kept.names(&plan.run));
    if let Some(kept) = kept {
        let is_told = kept.is_of(&closed.run, &closed.closing);
        let is_new = closed.pack.is_some() && kept.pack.is_none();
        closed.pack = closed.pack.take().or(kept.pack);
        if is_told && !is_new {
            return Ok(());
        }
    }
    tell_statistics(queue, plan, closed).await
}

pub(super) async fn tell_statistics(
    queue: &Queue,
    plan: &CrawlPlan,
    closed: &Closed,
) -> Result<()> {
    let stages = queue.list_progress(closed.run.id).await?;
    let told = RunStatistics::new(
        &closed.run,
        &closed.closing,
        &closed.books,
        &stages,
        closed.pack.as_ref(),
    );
    statistics::write(&plan.parts, &told)
}

pub(super) async fn read_terminals(queue: &Queue, run_id: i64) -> Result<Vec<TerminalRecord>> {
    let all = list_terminals(queue, run_id).await?;
    Ok(all.into_iter().map(|(_, terminal)| terminal).collect())
}

/// How every request ended, with its number.
pub(super) async fn list_terminals(
    queue: &Queue,
    run_id: i64,
) -> Result<Vec<(i64, TerminalRecord)>> {
    let mut terminals = Vec::new();
    let mut after = 0;
    loop {
        let page = queue.list_terminals(run_id, after, TERMINALS_PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(terminals);
        };
        after = *last;
        terminals.extend(page);
    }
}

/// Seals what was fetched into the run's pack and commits it. Parts that other processes still close are waited for.
///
/// # Errors
/// `PreconditionFailed` where a request is done and its response is in no part, naming the folder that was looked into;
/// what committing the pack answers.
pub async fn pack_run(
    lake: &Lake,
    catalog: &dyn Catalog,
    by: By,
    plan: &CrawlPlan,
    terminals: Vec<TerminalRecord>,
) -> Result<PackReport> {
    let (key, folder) = (plan.run.clone(), plan.parts.clone());
    let planned = with_parts(plan, move |open| {
        let ends = terminals.iter().cloned().map(Ok);
        plan_pack(&key, open, ends, PackProfile::Std, &folder)
    });
    let pack = match planned.await {
        Ok(pack) => pack,
        // Of a call that died behind the commit: what lacks here may be there.
        Err(e)
            if e.kind() == ErrorKind::PreconditionFailed && has_pack(lake, &plan.run).await? =>
        {
            return Err(say_where(e, plan).with("invariant", "PAK-8"));
        }
        Err(e) => return Err(say_where(e, plan)),
    };
    let options = CommitOptions {
        by,
        complete: false,
        late: false,
        provenance: Provenance::Live,
    };
    commit_pack(lake, catalog, pack, &options).await
}

/// Reads the parts of the run, beside the work of others; those that are still being closed are waited for.
pub(super) async fn with_parts<T: Send + 'static>(
    plan: &CrawlPlan,
    read: impl Fn(&OpenParts) -> Result<T> + Send + Sync + 'static,
) -> Result<T> {
    let read = Arc::new(read);
    let mut tries = 0;
    loop {
        let (folder, key, read) = (plan.parts.clone(), plan.run.clone(), Arc::clone(&read));
        let found = tokio::task::spawn_blocking(move || read(&open_parts(&folder, &key)?));
        let found = found.await;
        match found.map_err(|e| Error::internal("read the parts").caused_by(e))? {
            Err(e) if e.kind() == ErrorKind::Conflict && tries < PACK_TRIES => {
                tries += 1;
                tokio::time::sleep(PACK_PAUSE).await;
            }
            found => return found,
        }
    }
}

/// Which folder lacks the parts, and how they come there.
fn say_where(error: Error, plan: &CrawlPlan) -> Error {
    if error.kind() != ErrorKind::PreconditionFailed {
        return error;
    }
    let folder = plan.parts.display();
    let RunKey { source, date, run } = &plan.run;
    error.with("folder", &folder).hint(format!(
        "every process that works on a run puts its parts into the folder `crawl/` of its own project: where several project folders or machines share a queue, \
         they must share `crawl/`, too. Copy the parts (`*.tar.zst`) that are elsewhere into `{folder}`; \
         `lakebed crawl close {source} --date {date} --run {run}` then tries again"
    ))
}
