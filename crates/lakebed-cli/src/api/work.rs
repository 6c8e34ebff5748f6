//! What the calls of workers do: join, claim, finish, heartbeat, leave, ask for a turn.

use lakebed::crawl::{ToldOutcome, Turn};
use lakebed::queue::ClaimOutcome;

use crate::api::fail::{Code, Fail};
use crate::api::framed::{Framed, read_json};
use crate::api::office::RunDesk;
use crate::api::shape::{
    ClaimsAnswer, ClaimsCall, ClaimsOutcome, FORMAT, FinishAnswer, HeartbeatAnswer, LeaveAnswer,
    TurnAnswer, TurnCall, TurnVerdict, WorkerAnswer, WorkerCall, millis,
};

/// Claims of one call.
const MAX_CLAIMS: u32 = 1_000;

/// A worker joins.
pub(super) async fn join(desk: &RunDesk, body: &[u8]) -> Result<WorkerAnswer, Fail> {
    let call: WorkerCall = read_json(body)?;
    let queue = desk.desk.queue();
    let worker = queue.join(&call.label).await?;
    let known = desk.keep_worker(worker);
    let options = queue.options();
    Ok(WorkerAnswer {
        format: FORMAT,
        worker: known.worker.name.clone(),
        lease_ms: millis(options.lease_us),
        heartbeat_ms: millis(options.heartbeat_us),
        hold_ms: millis(options.max_hold_us),
    })
}

/// A sign of life.
pub(super) async fn heartbeat(desk: &RunDesk, name: &str) -> Result<HeartbeatAnswer, Fail> {
    let known = desk.worker(name).await?;
    desk.beat(&known).await?;
    Ok(HeartbeatAnswer {
        format: FORMAT,
        alive: true,
    })
}

/// A worker leaves.
pub(super) async fn leave(desk: &RunDesk, name: &str) -> Result<LeaveAnswer, Fail> {
    let known = desk.worker(name).await?;
    let given_back = desk.desk.queue().leave(&known.worker).await?;
    desk.forget_worker(name);
    Ok(LeaveAnswer {
        format: FORMAT,
        given_back,
    })
}

/// Claims. Those of one worker come one after the other, so a call that is repeated meets its answer.
pub(super) async fn claims(desk: &RunDesk, body: &[u8]) -> Result<ClaimsAnswer, Fail> {
    let call: ClaimsCall = read_json(body)?;
    if !(1..=MAX_CLAIMS).contains(&call.limit) {
        let message = format!("`{}` requests cannot be claimed at once", call.limit);
        return Err(Fail::invalid("limit", message).hint("1 to 1000"));
    }
    let mut stages = Vec::with_capacity(call.stages.len());
    for (i, text) in call.stages.iter().enumerate() {
        let stage =
            crate::api::shape::stage(text).map_err(|e| e.with("path", format!("stages[{i}]")))?;
        if !desk.desk.plan().config.stage.contains_key(&stage) {
            let message = format!("the source has no stage `{stage}`");
            return Err(Fail::invalid(&format!("stages[{i}]"), message));
        }
        stages.push(stage);
    }
    let known = desk.worker(&call.worker).await?;
    let mut last = known.last_claims.lock().await;
    if let (Some(name), Some((before, answer))) = (&call.call, &*last)
        && name == before
    {
        desk.hear(&known).await?;
        return Ok(answer.clone());
    }
    desk.hear(&known).await?;
    let claimed = desk.desk.claim(&known.worker, &stages, call.limit).await;
    let outcome = claimed.map_err(|e| Fail::of(&e, conflict_of(&e)))?;
    let mut answer = ClaimsAnswer {
        format: FORMAT,
        outcome: ClaimsOutcome::Claimed,
        claims: Vec::new(),
        wait_ms: None,
        reason: None,
    };
    match outcome {
        ClaimOutcome::Claimed(claims) => {
            answer.claims = claims.into_iter().map(Into::into).collect();
        }
        ClaimOutcome::Wait(us) => {
            answer.outcome = ClaimsOutcome::Wait;
            answer.wait_ms = Some(millis(us));
        }
        ClaimOutcome::Drained => answer.outcome = ClaimsOutcome::Drained,
        ClaimOutcome::Stopped(reason) => {
            answer.outcome = ClaimsOutcome::Stopped;
            answer.reason = Some(reason);
        }
    }
    if let Some(name) = call.call {
        *last = Some((name, answer.clone()));
    }
    Ok(answer)
}

/// A claim is refused for a lost worker, or for a run that is not open.
fn conflict_of(error: &lakebed::Error) -> Code {
    match error.kind() {
        lakebed::ErrorKind::Conflict => Code::WorkerLost,
        _ => Code::WrongState,
    }
}

/// The end of a claim.
pub(super) async fn finish(
    desk: &RunDesk,
    request: &str,
    framed: Framed,
) -> Result<FinishAnswer, Fail> {
    let id: i64 = request.parse().map_err(|_| {
        Fail::new(
            Code::NotFound,
            format!("`{}` is no number of a request", request.escape_debug()),
        )
    })?;
    let known = desk.worker(&framed.call.worker).await?;
    let told = framed.told(id)?;
    // A worker that was lost holds nothing: the finish itself says so.
    if let Err(fail) = desk.hear(&known).await
        && fail.code != Code::WorkerLost
    {
        return Err(fail);
    }
    match desk.desk.finish(&known.worker, told).await? {
        ToldOutcome::Accepted(report) => Ok(FinishAnswer::of(id, &report)),
        ToldOutcome::Lost => Err(Fail::new(
            Code::FenceLost,
            format!("request {id} is not held by this worker under this attempt any more"),
        )
        .hint("nothing was recorded: its lease ended, and another worker has it or will")),
        ToldOutcome::Otherwise(report) => Err(Fail::new(
            Code::FinishedOtherwise,
            format!("this claim of request {id} ended before, and otherwise"),
        )
        .with("state", report.state.as_str())
        .hint("what was told first stands")),
    }
}

/// Where a redirect leads.
pub(super) async fn turn(desk: &RunDesk, body: &[u8]) -> Result<TurnAnswer, Fail> {
    let call: TurnCall = read_json(body)?;
    let turn = desk
        .desk
        .turn(&call.url)
        .await
        .map_err(|e| e.with("path", "url"))?;
    let answer = |verdict, wait_ms, class| TurnAnswer {
        format: FORMAT,
        verdict,
        wait_ms,
        class,
    };
    Ok(match turn {
        Turn::Claimed => answer(TurnVerdict::Go, Some(0), None),
        Turn::In(us) => answer(TurnVerdict::Go, Some(millis(us)), None),
        Turn::Later(_) => answer(TurnVerdict::Later, None, None),
        Turn::Never(class) => answer(TurnVerdict::Never, None, Some(class.to_string())),
    })
}
