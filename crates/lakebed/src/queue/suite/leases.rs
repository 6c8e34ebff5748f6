//! Leases: who was silent, who died, who woke up too late.

use super::backend::*;
use crate::error::ErrorKind;
use crate::queue::db::values;
use crate::queue::{
    ClaimOutcome, DoneSpec, Finish, FinishKind, Heartbeat, NewRequest, QueueOptions, RequestFilter,
    RequestState, Worker,
};

/// The worker was silent for two hours.
async fn silence(queue: &crate::queue::Queue, worker: &Worker) {
    let sql = "UPDATE queue_worker SET heartbeat_at = heartbeat_at - 7200000000 WHERE id = ?";
    assert_eq!(tamper(queue, sql, values![worker.id]).await, 1);
}

/// Everything that waits for its next attempt may be claimed now.
async fn end_pauses(queue: &crate::queue::Queue) {
    tamper(
        queue,
        "UPDATE queue_request_state SET not_before = 0 WHERE state = 3",
        &[],
    )
    .await;
}

pub(super) async fn a_zombie_finishes_nothing(backend: impl Backend) {
    let queue = backend.open().await;
    let other = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..4)).await;
    let zombie = queue.join("zombie").await.unwrap();
    let live = other.join("live").await.unwrap();
    let taken = claim(&queue, &zombie, &any(&run, 4)).await;
    assert_eq!(queue.heartbeat(&zombie).await.unwrap(), Heartbeat::Alive);
    assert_eq!(other.reap().await.unwrap(), Default::default());
    silence(&queue, &zombie).await;
    let reaped = other.reap().await.unwrap();
    assert_eq!((reaped.workers, reaped.failed, reaped.dead), (1, 4, 0));
    assert_eq!(other.reap().await.unwrap(), Default::default());
    // Awake again: it has nothing any more, whether the request waits or is somebody else's.
    assert_eq!(queue.heartbeat(&zombie).await.unwrap(), Heartbeat::Lost);
    assert_eq!(
        queue
            .claim(&zombie, &any(&run, 1))
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Conflict
    );
    assert_eq!(finish(&queue, &zombie, &run, &[done(&taken[0])]).await, 0);
    end_pauses(&queue).await;
    let again = claim(&other, &live, &any(&run, 4)).await;
    assert_eq!(again.len(), 4);
    assert!(again.iter().all(|c| c.attempt == 2 && c.failures == 1));
    assert_eq!(
        finish(
            &queue,
            &zombie,
            &run,
            &[done(&taken[1]), failed(&taken[2], "timeout", true)]
        )
        .await,
        0
    );
    // Its own attempt number at the other worker's name is no key either.
    let forged = Finish {
        attempt: 1,
        ..done(&again[0])
    };
    assert_eq!(finish(&other, &live, &run, &[forged]).await, 0);
    let ends: Vec<Finish> = again.iter().map(done).collect();
    assert_eq!(finish(&other, &live, &run, &ends).await, 4);
    assert_eq!(finish(&other, &live, &run, &ends).await, 0);
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(
        (books.attempts, books.failures, books.states["done"]),
        (8, 4, 4)
    );
}

pub(super) async fn a_request_that_kills_its_workers_dies(backend: impl Backend) {
    let options = QueueOptions {
        max_failures: 3,
        ..QueueOptions::default()
    };
    let queue = backend.open_with(options).await;
    let run = open_run(&queue, "day", &pages(0..1)).await;
    for attempt in 1..=3 {
        let worker = queue.join("victim").await.unwrap();
        let taken = claim(&queue, &worker, &any(&run, 1)).await;
        assert_eq!(taken[0].attempt, attempt);
        silence(&queue, &worker).await;
        let reaped = queue.reap().await.unwrap();
        assert_eq!(
            (reaped.failed, reaped.dead),
            if attempt == 3 { (0, 1) } else { (1, 0) }
        );
        end_pauses(&queue).await;
    }
    let worker = queue.join("survivor").await.unwrap();
    assert_eq!(
        queue.claim(&worker, &any(&run, 1)).await.unwrap(),
        ClaimOutcome::Drained
    );
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(books.dead_classes["lease_exhausted"], 1);
    assert_eq!(books.progress_dead, 1);
}

pub(super) async fn a_claim_that_is_held_too_long_ends(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..2)).await;
    let worker = queue.join("hangs").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 2)).await;
    let sql = "UPDATE queue_request_state SET held_until = held_until - 7200000000 WHERE id = ?";
    tamper(&queue, sql, values![taken[0].id]).await;
    assert_eq!(queue.heartbeat(&worker).await.unwrap(), Heartbeat::Alive);
    let reaped = queue.reap().await.unwrap();
    assert_eq!((reaped.workers, reaped.failed), (0, 1));
    let ends: Vec<Finish> = taken.iter().map(done).collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 1);
}

pub(super) async fn who_leaves_gives_back_without_a_count(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..6)).await;
    let worker = queue.join("goes").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 6)).await;
    assert_eq!(finish(&queue, &worker, &run, &[done(&taken[0])]).await, 1);
    assert_eq!(queue.leave(&worker).await.unwrap(), 5);
    assert_eq!(queue.leave(&worker).await.unwrap(), 0);
    assert_eq!(queue.heartbeat(&worker).await.unwrap(), Heartbeat::Lost);
    assert_eq!(finish(&queue, &worker, &run, &[done(&taken[1])]).await, 0);
    let next = queue.join("comes").await.unwrap();
    let again = claim(&queue, &next, &any(&run, 9)).await;
    assert_eq!(again.len(), 5);
    assert!(again.iter().all(|c| c.failures == 0 && c.attempt == 2));
}

pub(super) async fn a_worker_without_a_row_has_no_claims(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..2)).await;
    let worker = queue.join("ghost").await.unwrap();
    assert_eq!(claim(&queue, &worker, &any(&run, 2)).await.len(), 2);
    tamper(&queue, "DELETE FROM queue_worker", &[]).await;
    assert_eq!(queue.reap().await.unwrap().failed, 2);
}

pub(super) async fn a_reaper_and_a_finish_meet_once(backend: impl Backend) {
    let queue = backend.open().await;
    let other = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..120)).await;
    let worker = queue.join("slow").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 120)).await;
    silence(&queue, &worker).await;
    let (queue2, run2, worker2, taken2) =
        (queue.clone(), run.clone(), worker.clone(), taken.clone());
    let finishing = tokio::spawn(async move {
        let mut accepted = 0;
        for part in taken2.chunks(10) {
            let ends: Vec<Finish> = part.iter().map(done).collect();
            accepted += finish(&queue2, &worker2, &run2, &ends).await;
        }
        accepted
    });
    let reaped = other.reap().await.unwrap();
    let accepted = finishing.await.unwrap() as u64;
    assert_eq!(accepted + reaped.failed, 120);
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(
        (books.states["done"], books.states["failed"]),
        (accepted, reaped.failed)
    );
    assert_eq!(
        (books.progress_done, books.failures),
        (accepted, reaped.failed)
    );
}

pub(super) async fn failures_wait_and_then_die(backend: impl Backend) {
    let options = QueueOptions {
        max_failures: 2,
        ..QueueOptions::default()
    };
    let queue = backend.open_with(options).await;
    let run = open_run(&queue, "day", &pages(0..3)).await;
    let worker = queue.join("test").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 3)).await;
    let ends = [
        failed(&taken[0], "timeout", true),
        failed(&taken[1], "http_404", false),
        done(&taken[2]),
    ];
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 3);
    // The failed one waits for its pause; the claim says how long.
    let ClaimOutcome::Wait(wait) = queue.claim(&worker, &any(&run, 3)).await.unwrap() else {
        panic!("no wait")
    };
    assert!((500_000..=2_000_000).contains(&wait), "{wait}");
    end_pauses(&queue).await;
    let again = claim(&queue, &worker, &any(&run, 3)).await;
    assert_eq!(
        (again.len(), again[0].failures, again[0].attempt),
        (1, 1, 2)
    );
    assert_eq!(
        finish(&queue, &worker, &run, &[failed(&again[0], "dns", true)]).await,
        1
    );
    let dead = RequestFilter {
        run_id: run.id,
        state: Some(RequestState::Dead),
        limit: 9,
        ..RequestFilter::default()
    };
    let mut classes: Vec<_> = queue
        .list_requests(&dead)
        .await
        .unwrap()
        .into_iter()
        .map(|r| r.class.unwrap())
        .collect();
    classes.sort();
    assert_eq!(classes, ["dns", "http_404"]);
    let one = RequestFilter {
        class: Some("dns".parse().unwrap()),
        ..dead
    };
    assert_eq!(queue.list_requests(&one).await.unwrap()[0].failures, 2);
    // A call with one request twice is refused whole.
    let twice = [
        done(&again[0]),
        Finish {
            id: again[0].id,
            attempt: 2,
            end: FinishKind::GivenBack,
        },
    ];
    assert_eq!(
        queue
            .finish(&worker, run.id, &twice)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::InvalidInput
    );
}

pub(super) async fn a_claim_is_looked_up_by_those_who_ask_again(backend: impl Backend) {
    let queue = backend.open().await;
    let request = NewRequest {
        method: "POST".to_owned(),
        body: Some("{\"頁\": 1}".into()),
        ..get("list", 1)
    };
    let run = open_run(&queue, "day", std::slice::from_ref(&request)).await;
    let worker = queue.join("outside").await.unwrap();
    let other = backend.open().await;
    assert_eq!(
        other.find_worker(&worker.name).await.unwrap(),
        Some(worker.clone())
    );
    assert_eq!(other.find_worker("nobody").await.unwrap(), None);
    let claimed = claim(&queue, &worker, &any(&run, 1)).await;
    let id = claimed[0].id;
    let held = other.find_request(run.id, id).await.unwrap().unwrap();
    assert_eq!((held.worker_id, held.record.attempts), (worker.id, 1));
    assert_eq!(held.record.state, RequestState::InFlight);
    assert_eq!((held.host.as_str(), &held.body), ("a.test", &request.body));
    let spec = DoneSpec {
        children: vec![get("list", 2), get("list", 2)],
        announced: 5,
        ..DoneSpec::default()
    };
    assert_eq!(
        finish(&queue, &worker, &run, &[done_with(&claimed[0], spec)]).await,
        1
    );
    let held = other.find_request(run.id, id).await.unwrap().unwrap();
    assert_eq!((held.worker_id, held.record.attempts), (worker.id, 1));
    assert_eq!(
        (held.record.state, held.record.status),
        (RequestState::Done, Some(200))
    );
    let told = (
        held.children.announced,
        held.children.inserted,
        held.children.duplicate,
        held.children.out_of_scope,
    );
    assert_eq!(told, (5, 1, 1, 3));
    assert!(held.record.capture.is_some());
    assert_eq!(other.find_request(run.id, id + 99).await.unwrap(), None);
    assert_eq!(other.find_request(run.id + 1, id).await.unwrap(), None);
}
