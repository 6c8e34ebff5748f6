//! What the calls on a run do: make, seed, open, add, seal, stop, close.

use std::sync::Arc;

use lakebed::crawl::{self, Packed, SeedSpec, seed_request};
use lakebed::name::ContentHash;
use lakebed::queue::{ClosingRecord, EnqueueStats, NewRequest, RunRecord, RunState};
use lakebed::{Error, ErrorKind};
use tokio::time::Instant;

use crate::api::fail::{Code, Fail};
use crate::api::framed::read_json;
use crate::api::office::{Office, RunDesk, Seeding};
use crate::api::shape::{
    BreachShape, CloseAnswer, ClosingShape, CountsAnswer, FORMAT, OpenCall, RequestShape,
    RequestsCall, RunAnswer, SeedsCall, StopCall,
};
use crate::commands::exit_of;

/// Requests of one call.
const MAX_BATCH: usize = 5_000;

/// The run as it is.
pub(super) async fn status(desk: &RunDesk) -> Result<RunAnswer, Fail> {
    let run = desk.run().await?;
    tell(desk, &run).await
}

async fn tell(desk: &RunDesk, run: &RunRecord) -> Result<RunAnswer, Fail> {
    let plan = desk.desk.plan();
    let lanes = desk.desk.queue().list_progress(run.id).await?;
    let left: i64 = lanes.iter().map(|l| l.enqueued - l.done - l.dead).sum();
    let closing = match &run.closing {
        None => None,
        Some(text) => {
            let record: ClosingRecord = serde_json::from_str(text)
                .map_err(|e| Error::corrupt("read the closing of the run").caused_by(e))?;
            Some(ClosingShape {
                pass: record.pass,
                breaches: record.breaches.iter().map(BreachShape::from).collect(),
            })
        }
    };
    Ok(RunAnswer {
        format: FORMAT,
        run: (&run.key).into(),
        state: run.state.as_str().to_owned(),
        stopped: run.stopped.clone(),
        seeds: run.seeds.into(),
        plan_hash: run.plan_hash.clone(),
        left: u64::try_from(left).unwrap_or(0),
        progress: lanes.into_iter().map(Into::into).collect(),
        closing,
        user_agent: plan.config.user_agent.clone(),
        stages: plan.config.stage.keys().map(ToString::to_string).collect(),
        max_body_bytes: max_body_bytes(desk),
        accept_statuses: plan.config.accept_statuses.clone(),
    })
}

/// Largest body of a response of the run's source.
pub(super) fn max_body_bytes(desk: &RunDesk) -> u64 {
    u64::from(desk.desk.plan().config.max_body_mib) << 20
}

/// Checks requests and places them: those of the source, and how many are not.
fn place(
    desk: &RunDesk,
    list: &str,
    shapes: Vec<RequestShape>,
) -> Result<(Vec<NewRequest>, u64), Fail> {
    if shapes.len() > MAX_BATCH {
        let message = format!("{} requests in one call", shapes.len());
        return Err(Fail::new(Code::TooLarge, message)
            .with("path", list)
            .hint("at most 5000; send several batches"));
    }
    let config = &desk.desk.plan().config;
    let mut requests = Vec::with_capacity(shapes.len());
    let mut out_of_scope = 0;
    for (i, shape) in shapes.into_iter().enumerate() {
        let placed = shape
            .into_spec()
            .and_then(|spec: SeedSpec| seed_request(config, spec))
            .map_err(|e| e.with("path", format!("{list}[{i}]")))?;
        match placed {
            Some(request) => requests.push(request),
            None => out_of_scope += 1,
        }
    }
    Ok((requests, out_of_scope))
}

/// A batch of seeds.
pub(super) async fn seeds(desk: &RunDesk, body: &[u8]) -> Result<CountsAnswer, Fail> {
    let call: SeedsCall = read_json(body)?;
    check_name(&call.seeding)?;
    let hash = ContentHash::of(body);
    let number = usize::try_from(call.batch).unwrap_or(usize::MAX);
    let mut slot = desk.seeding.lock().await;
    let is_new = slot.as_ref().is_none_or(|s| s.name != call.seeding);
    if is_new && number > 0 {
        return Err(unknown(&call.seeding));
    }
    if let (false, Some(seeding)) = (is_new, slot.as_mut()) {
        seeding.heard_at = Instant::now();
        if let Some((before, stats)) = seeding.batches.get(number) {
            return match *before == hash {
                true => Ok(counts(*stats)),
                false => {
                    let message = format!("batch {number} came before with other seeds");
                    Err(Fail::new(Code::BatchDiffers, message)
                        .hint("begin again with batch 0 under a new name"))
                }
            };
        }
        if number > seeding.batches.len() {
            let next = seeding.batches.len();
            let message = format!("batch {number} came before batch {next}");
            return Err(Fail::new(Code::BatchMissing, message).with("next_batch", next));
        }
    }
    let (requests, out_of_scope) = place(desk, "seeds", call.seeds)?;
    if is_new {
        begin(desk, &mut slot, &call.seeding).await?;
    }
    let (queue, run_id) = (desk.desk.queue(), desk.desk.run_id());
    let added = queue.add_seeds(run_id, &requests, out_of_scope).await;
    let stats = match added {
        Ok(stats) => stats,
        Err(error) => {
            // Whether it came in is not known, or another process took over: from nothing, then.
            *slot = None;
            return Err(match error.kind() {
                ErrorKind::Conflict => Fail::of(&error, Code::SeedingUnknown),
                _ => Fail::from(error),
            });
        }
    };
    if let Some(seeding) = slot.as_mut() {
        seeding.batches.push((hash, stats));
    }
    Ok(counts(stats))
}

fn counts(stats: EnqueueStats) -> CountsAnswer {
    CountsAnswer {
        format: FORMAT,
        counts: stats.into(),
    }
}

fn check_name(name: &str) -> Result<(), Fail> {
    if (1..=100).contains(&name.len()) {
        return Ok(());
    }
    Err(Fail::invalid(
        "seeding",
        "the name of a seeding has 1 to 100 bytes",
    ))
}

fn unknown(name: &str) -> Fail {
    let message = format!(
        "the seeding `{}` is not the one that goes on",
        name.escape_debug()
    );
    Fail::new(Code::SeedingUnknown, message).hint("begin again with batch 0 under a new name")
}

/// Begins the seeding from nothing, unless another planner was heard of within the lease.
async fn begin(desk: &RunDesk, slot: &mut Option<Seeding>, name: &str) -> Result<(), Fail> {
    let busy = || {
        Fail::new(Code::SeedingBusy, "another planner seeds this run")
            .hint("it can be taken over when that planner was silent for a lease")
    };
    let other = slot.as_ref().filter(|s| s.opened.is_none());
    if other.is_some_and(|s| s.heard_at.elapsed() < desk.lease()) {
        return Err(busy());
    }
    let begun = desk.desk.queue().begin_seeding(desk.desk.run_id()).await;
    let is_mine = begun.map_err(|e| {
        Fail::of(&e, Code::WrongState)
            .hint("requests of an open run are added by POST on `requests`")
    })?;
    if !is_mine {
        return Err(busy());
    }
    *slot = Some(Seeding {
        name: name.to_owned(),
        batches: Vec::new(),
        heard_at: Instant::now(),
        opened: None,
    });
    Ok(())
}

/// The end of the seeding.
pub(super) async fn open(desk: &RunDesk, body: &[u8]) -> Result<RunAnswer, Fail> {
    let call: OpenCall = read_json(body)?;
    check_name(&call.seeding)?;
    let mut slot = desk.seeding.lock().await;
    let run = desk.run().await?;
    let is_known = slot.as_ref().is_some_and(|s| s.name == call.seeding);
    if run.state != RunState::Seeding {
        let opened = slot.as_ref().filter(|_| is_known).and_then(|s| s.opened);
        let same_plan = call.plan_hash.is_some() && run.plan_hash == call.plan_hash;
        let is_same = match opened {
            Some(announced) => announced == call.announced,
            None => same_plan && run.seeds.announced == call.announced,
        };
        if is_same {
            return tell(desk, &run).await;
        }
        let fail = Fail::new(
            Code::AlreadyOpen,
            format!("the run `{}` is {}", run.key, run.state.as_str()),
        );
        return Err(fail.hint("it was opened with another plan, or by another program: crawl it as it is, or take another run"));
    }
    if !is_known {
        begin(desk, &mut slot, &call.seeding).await?;
    }
    let Some(seeding) = slot.as_mut() else {
        return Err(unknown(&call.seeding));
    };
    seeding.heard_at = Instant::now();
    let hash = call.plan_hash.unwrap_or_else(|| {
        let all = seeding.batches.iter().map(|(hash, _)| hash.as_str());
        ContentHash::of(all.collect::<Vec<_>>().join("\n").as_bytes()).to_string()
    });
    let queue = desk.desk.queue();
    let opened = queue.open_run(run.id, call.announced, &hash).await;
    let run = opened.map_err(|e| match e.kind() {
        ErrorKind::PreconditionFailed => Fail::of(&e, Code::SeedsLost),
        _ => Fail::from(e),
    })?;
    seeding.opened = Some(call.announced);
    tell(desk, &run).await
}

/// Requests for an open run.
pub(super) async fn requests(desk: &RunDesk, body: &[u8]) -> Result<CountsAnswer, Fail> {
    let call: RequestsCall = read_json(body)?;
    let (requests, out_of_scope) = place(desk, "requests", call.requests)?;
    let (queue, run_id) = (desk.desk.queue(), desk.desk.run_id());
    let stats = queue.add_requests(run_id, &requests, out_of_scope).await?;
    Ok(counts(stats))
}

/// Seals the run.
pub(super) async fn seal(desk: &RunDesk) -> Result<RunAnswer, Fail> {
    let run = desk.desk.queue().seal_run(desk.desk.run_id()).await?;
    tell(desk, &run).await
}

/// Stops the run.
pub(super) async fn stop(desk: &RunDesk, body: &[u8]) -> Result<RunAnswer, Fail> {
    let call: StopCall = read_json(body)?;
    let (queue, run_id) = (desk.desk.queue(), desk.desk.run_id());
    queue.stop_run(run_id, &call.reason).await?;
    status(desk).await
}

/// Takes a stop back.
pub(super) async fn resume(desk: &RunDesk) -> Result<RunAnswer, Fail> {
    desk.desk.resume().await?;
    status(desk).await
}

/// Closes the run. While it is packed, no finish comes in.
pub(super) async fn close(office: &Office, desk: Arc<RunDesk>) -> Result<CloseAnswer, Fail> {
    let _one = desk.closing.lock().await;
    let (queue, plan) = (desk.desk.queue(), desk.desk.plan());
    let run_id = desk.desk.run_id();
    let _expired = queue.expire_run(run_id).await?;
    let lanes = queue.list_progress(run_id).await?;
    let is_over = lanes.iter().all(|l| l.enqueued == l.done + l.dead);
    // The part of this process is given up only for a run that can be packed.
    let hold = match is_over {
        true => Some(desk.desk.hold().await),
        false => None,
    };
    let pack = async |terminals| office.pack(plan, terminals).await;
    let closed = crawl::close_run(queue, plan, run_id, pack).await?;
    drop(hold);
    if closed.run.state == RunState::Closed {
        office.forget(&closed.run.key).await;
    }
    Ok(CloseAnswer {
        format: FORMAT,
        run: (&closed.run.key).into(),
        state: closed.run.state.as_str().to_owned(),
        pass: closed.closing.pass,
        exit_code: exit_of(&closed).code(),
        breaches: closed
            .closing
            .breaches
            .iter()
            .map(BreachShape::from)
            .collect(),
        books: (&closed.books).into(),
        pack: closed.pack.as_ref().map(Into::into),
        hints: match &closed.packed {
            Packed::Refused(error) => error.hints().to_vec(),
            Packed::Done(_) | Packed::None => Vec::new(),
        },
    })
}
