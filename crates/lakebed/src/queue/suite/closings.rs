//! Closings that are judged again, and runs that somebody waits for.

use super::backend::*;
use crate::error::{Error, ErrorKind};
use crate::queue::{
    Breach, BreachKind, ClaimOptions, ClosingRules, DoneSpec, Queue, RESPONSE_LOST, RunOptions,
    RunState,
};
use crate::spec::{BodyMark, RunKey, TerminalState};

fn refused() -> ClosingRules {
    let error = Error::precondition("2 requests do not agree").detail("request `x`");
    ClosingRules {
        refused: Some(Breach::refused_pack(&error)),
        ..ClosingRules::default()
    }
}

pub(super) async fn a_refused_pack_is_judged_again(backend: impl Backend) {
    let queue = backend.open().await;
    let worker = queue.join("test").await.unwrap();
    let plain = ClosingRules::default();
    let run = open_run(&queue, "day", &pages(0..3)).await;
    assert_eq!(drain(&queue, &worker, &run).await, 3);
    let (_, red) = queue.close_run(run.id, &refused()).await.unwrap();
    let breach = &red.breaches[0];
    assert_eq!(
        (red.breaches.len(), breach.kind, breach.samples.len()),
        (1, BreachKind::MissingCapture, 1)
    );
    // A closing stands, but for that reason.
    assert_eq!(queue.close_run(run.id, &plain).await.unwrap().1, red);
    let (_, still) = queue.close_run_again(run.id, &refused()).await.unwrap();
    assert_eq!(still, red);
    let (closed, green) = queue.close_run_again(run.id, &plain).await.unwrap();
    assert_eq!((closed.state, green.pass), (RunState::Closed, true));
    // What is green, or red for something else, stays so.
    let (_, again) = queue.close_run_again(run.id, &refused()).await.unwrap();
    assert_eq!(again, green);
    // An older program kept the reason as that of a stop.
    let old = open_run(&queue, "old", &pages(3..4)).await;
    assert_eq!(drain(&queue, &worker, &old).await, 1);
    let reason = "its pack was refused: 1 requests of the run do not agree with its captures";
    queue.stop_run(old.id, reason).await.unwrap();
    let (_, red) = queue.close_run(old.id, &plain).await.unwrap();
    assert_eq!(red.breaches[0].kind, BreachKind::Stopped);
    assert!(red.may_be_sealed_again(false));
    let (closed, green) = queue.close_run_again(old.id, &plain).await.unwrap();
    assert_eq!((closed.stopped, green.pass), (None, true));
    // What a person took as it is stays so.
    let taken = open_run(&queue, "taken", &pages(4..5)).await;
    assert_eq!(drain(&queue, &worker, &taken).await, 1);
    let _red = queue.close_run(taken.id, &refused()).await.unwrap();
    let (_, accepted) = queue.accept_run(taken.id, None, "lost").await.unwrap();
    let (_, after) = queue.close_run_again(taken.id, &plain).await.unwrap();
    assert_eq!(after, accepted);
}

pub(super) async fn lost_responses_are_dead(backend: impl Backend) {
    let queue = backend.open().await;
    let worker = queue.join("test").await.unwrap();
    let run = open_run(&queue, "day", &pages(0..4)).await;
    assert_eq!(drain(&queue, &worker, &run).await, 4);
    let all = queue.list_terminals(run.id, 0, 10).await.unwrap();
    let ids: Vec<i64> = all.iter().map(|(id, _)| *id).collect();
    let open = queue.lose_responses(run.id, &ids).await.unwrap_err();
    assert_eq!(open.kind(), ErrorKind::PreconditionFailed);
    let plain = ClosingRules::default();
    let _red = queue.close_run(run.id, &refused()).await.unwrap();
    assert_eq!(queue.lose_responses(run.id, &ids[1..2]).await.unwrap(), 1);
    // Again, and with one more: who is dead is not lost twice.
    assert_eq!(queue.lose_responses(run.id, &ids[..2]).await.unwrap(), 1);
    let (_, red) = queue.close_run_again(run.id, &plain).await.unwrap();
    let kinds: Vec<BreachKind> = red.breaches.iter().map(|b| b.kind).collect();
    assert_eq!(kinds, [BreachKind::TooManyDead], "{red:?}");
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!((books.states["done"], books.states["dead"]), (2, 2));
    assert_eq!(books.dead_classes[RESPONSE_LOST], 2);
    let all = queue.list_terminals(run.id, 0, 10).await.unwrap();
    let dead: Vec<_> = all.iter().filter(|(_, t)| t.capture.is_none()).collect();
    assert_eq!(dead.len(), 2);
    assert!(dead.iter().all(|(_, t)| t.state == TerminalState::Dead));
    // The others are done, and none of them is lost any more.
    let other = queue.lose_responses(run.id, &ids[2..]).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::PreconditionFailed);
    let name = RunKey {
        run: "day-2".parse().unwrap(),
        ..run.key
    };
    let retry = queue.retry_run(run.id, &name, None).await.unwrap();
    assert_eq!(drain(&queue, &worker, &retry).await, 2);
    let (_, green) = queue.close_run(retry.id, &plain).await.unwrap();
    assert!(green.pass, "{green:?}");
}

pub(super) async fn who_holds_what_is_known(backend: impl Backend) {
    let queue = backend.open().await;
    let worker = queue.join("a machine").await.unwrap();
    let run = open_run(&queue, "day", &pages(0..3)).await;
    assert_eq!(queue.list_holders(run.id).await.unwrap(), []);
    let taken = claim(&queue, &worker, &any(&run, 2)).await;
    // Seen from another run that waits for the same hosts.
    let other = open_run(&queue, "other", &pages(3..4)).await;
    let holders = queue.list_holders(other.id).await.unwrap();
    assert_eq!(holders.iter().map(|h| h.requests).sum::<u64>(), 2);
    let holder = &holders[0];
    assert_eq!(
        (&holder.run, holder.label.as_str(), holder.worker_id),
        (&run.key, "a machine", worker.id)
    );
    let lease = queue.options().lease_us;
    assert!(holder.silent_us >= 0 && (1..=lease).contains(&holder.lease_left_us));
    let ends: Vec<_> = taken.iter().map(done).collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 2);
    assert_eq!(queue.list_holders(other.id).await.unwrap(), []);
}

/// However a success is told, the books know its status and its body.
pub(super) async fn terminals_know_their_answers(backend: impl Backend) {
    let queue = backend.open().await;
    let worker = queue.join("test").await.unwrap();
    let mut seeds = pages(0..4);
    seeds.extend((0..2).map(|n| get("detail", n)));
    let run = open_run(&queue, "day", &seeds).await;
    let mark = |n: u8| {
        let hash = format!("{n:02x}{}", "f".repeat(62));
        BodyMark::of(&hash.parse().unwrap()).unwrap()
    };
    let spec = |n: u8| DoneSpec {
        body: Some(mark(n)),
        ..DoneSpec::default()
    };
    let of = |stage: &str, limit| ClaimOptions {
        stages: vec![stage.parse().unwrap()],
        ..any(&run, limit)
    };
    // A whole batch of the lane that was claimed from, a batch of two lanes, and one that brings something along.
    let list = claim(&queue, &worker, &of("list", 2)).await;
    let whole = [done_with(&list[0], spec(1)), done_with(&list[1], spec(2))];
    assert_eq!(finish(&queue, &worker, &run, &whole).await, 2);
    let detail = claim(&queue, &worker, &of("detail", 1)).await;
    let list = claim(&queue, &worker, &of("list", 2)).await;
    let mixed = [done_with(&detail[0], spec(3)), done_with(&list[0], spec(4))];
    assert_eq!(finish(&queue, &worker, &run, &mixed).await, 2);
    let brings = DoneSpec {
        children: vec![get("detail", 1)],
        ..spec(5)
    };
    let long = [done_with(&list[1], brings)];
    assert_eq!(finish(&queue, &worker, &run, &long).await, 1);
    // One that told nothing: unknown, as in the rows of an older program.
    let last = claim(&queue, &worker, &any(&run, 1)).await;
    assert_eq!(finish(&queue, &worker, &run, &[done(&last[0])]).await, 1);
    let told = queue.list_terminals(run.id, 0, 100).await.unwrap();
    assert_eq!(told.len(), 6);
    let mut ids: Vec<(i64, Option<BodyMark>)> = Vec::new();
    for (claims, n) in [(&whole[..], 1), (&mixed[..], 3), (&long[..], 5)] {
        let marks = claims.iter().zip(n..).map(|(f, n)| (f.id, Some(mark(n))));
        ids.extend(marks);
    }
    ids.push((last[0].id, None));
    ids.sort_by_key(|(id, _)| *id);
    let answers: Vec<_> = told.iter().map(|(id, t)| (*id, t.answer.body)).collect();
    assert_eq!(answers, ids);
    assert!(told.iter().all(|(_, t)| t.answer.status == Some(200)));
}

async fn seeding(queue: &Queue, key: &RunKey) -> i64 {
    let run = queue.create_run(key, &RunOptions::default()).await.unwrap();
    assert!(queue.begin_seeding(run.id).await.unwrap());
    let _added = queue.add_seeds(run.id, &pages(0..3), 1).await.unwrap();
    run.id
}

pub(super) async fn a_run_that_is_seeding_is_given_up(backend: impl Backend) {
    let queue = backend.open().await;
    let key = run_key("half");
    let id = seeding(&queue, &key).await;
    // Not while another process is at it.
    let other = backend.open().await;
    let busy = other.give_up_run(id).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Conflict);
    assert!(busy.hints()[0].contains("the same command then goes on"));
    let refused = other.seal_run(id).await.unwrap_err();
    assert!(refused.hints()[0].contains("--run half --give-up"));
    queue.leave_seeding(id).await.unwrap();
    assert_eq!(other.give_up_run(id).await.unwrap(), 0);
    let _sealed = other.seal_run(id).await.unwrap();
    let (run, closing) = other.close_run(id, &ClosingRules::default()).await.unwrap();
    let kinds: Vec<BreachKind> = closing.breaches.iter().map(|b| b.kind).collect();
    assert_eq!(
        (run.state, kinds),
        (RunState::Closed, vec![BreachKind::ZeroSeeds])
    );
    assert_eq!(other.prune_family(&[id]).await.unwrap(), 0);
}
