//! Hosts: their limits hold over all workers, and waiting costs no attempt.

use super::backend::*;
use crate::error::ErrorKind;
use crate::queue::db::values;
use crate::queue::{
    BreachKind, ClaimOptions, ClaimOutcome, ClosingRules, Finish, FinishKind, HostLimit,
    HostLimits, NewRequest, RunOptions, RunState,
};

fn limited(options: ClaimOptions, pause_us: i64, max_in_flight: u32) -> ClaimOptions {
    let usual = HostLimit {
        pause_us,
        max_in_flight,
    };
    ClaimOptions {
        hosts: Some(HostLimits {
            usual,
            ..HostLimits::default()
        }),
        ..options
    }
}

pub(super) async fn a_host_that_asks_to_wait_is_left_alone(backend: impl Backend) {
    let queue = backend.open().await;
    let other = backend.open().await;
    let elsewhere = NewRequest::get("list".parse().unwrap(), "http://b.test/1");
    let run = open_run(&queue, "day", &[pages(0..3), vec![elsewhere]].concat()).await;
    let worker = queue.join("a").await.unwrap();
    let colleague = other.join("b").await.unwrap();
    let options = limited(any(&run, 1), 0, 5);
    let taken = loop {
        let one = claim(&queue, &worker, &options).await.remove(0);
        if one.host == "a.test" {
            break one;
        }
        assert_eq!(finish(&queue, &worker, &run, &[done(&one)]).await, 1);
    };
    let blocked = Finish {
        id: taken.id,
        attempt: taken.attempt,
        end: FinishKind::Blocked {
            wait_us: 60_000_000,
        },
    };
    assert_eq!(finish(&queue, &worker, &run, &[blocked]).await, 1);
    // Nobody gets a request of that host, with limits or without; the others go on.
    let others = claim(&other, &colleague, &any(&run, 9)).await;
    assert!(others.iter().all(|c| c.host == "b.test"));
    let ClaimOutcome::Wait(wait) = queue.claim(&worker, &options).await.unwrap() else {
        panic!("no wait")
    };
    assert!(wait >= 1_000_000, "{wait}");
    let host = queue.find_host("a.test").await.unwrap().unwrap();
    assert_eq!(host.in_flight, 0);
    assert!((host.blocked_until - host.now - 60_000_000).abs() < 5_000_000);
    // A shorter wait that comes later shortens nothing.
    queue.block_host("a.test", 1_000).await.unwrap();
    assert_eq!(
        queue
            .find_host("a.test")
            .await
            .unwrap()
            .unwrap()
            .blocked_until,
        host.blocked_until
    );
    tamper(&queue, "UPDATE queue_host SET blocked_until = 0", &[]).await;
    let again = claim(&queue, &worker, &any(&run, 9)).await;
    let same = again.iter().find(|c| c.id == taken.id).unwrap();
    assert_eq!((again.len(), same.failures, same.attempt), (3, 0, 2));
    let events = queue.list_events(0, 99).await.unwrap();
    assert_eq!(
        events.iter().filter(|e| e.kind == "host_blocked").count(),
        1
    );
}

pub(super) async fn places_and_moments_hold_over_all_workers(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..40)).await;
    // Places: two at a time, however many ask.
    let options = limited(any(&run, 10), 0, 2);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let (queue, options) = (backend.open().await, options.clone());
        tasks.push(tokio::spawn(async move {
            let worker = queue.join("w").await.unwrap();
            (claim(&queue, &worker, &options).await, worker)
        }));
    }
    let mut taken = Vec::new();
    for task in tasks {
        let (claims, worker) = task.await.unwrap();
        taken.extend(claims.into_iter().map(|c| (c, worker.clone())));
    }
    assert_eq!(taken.len(), 2);
    assert_eq!(
        queue.find_host("a.test").await.unwrap().unwrap().in_flight,
        2
    );
    for (one, worker) in &taken {
        assert!(one.holds_slot);
        assert_eq!(finish(&queue, worker, &run, &[done(one)]).await, 1);
    }
    assert_eq!(
        queue.find_host("a.test").await.unwrap().unwrap().in_flight,
        0
    );
    // Moments: 200 ms apart, given out to whoever comes, never twice.
    let options = limited(any(&run, 4), 200_000, 30);
    let start = queue.find_host("a.test").await.unwrap().unwrap().now;
    let mut moments = Vec::new();
    for n in 0..5 {
        let other = backend.open().await;
        let worker = other.join(&n.to_string()).await.unwrap();
        let claims = claim(&other, &worker, &options).await;
        let now = queue.find_host("a.test").await.unwrap().unwrap().now;
        moments.extend(claims.iter().map(|c| now + c.wait_us));
        assert!(
            claims
                .windows(2)
                .all(|w| w[1].wait_us - w[0].wait_us == 200_000)
        );
    }
    let next_at = queue.find_host("a.test").await.unwrap().unwrap().next_at;
    assert_eq!(moments.len(), 20);
    assert!(next_at - start >= 20 * 200_000, "{}", next_at - start);
    // No moments are given out far ahead: a worker that dies would waste them.
    let options = limited(any(&run, 10), 3_000_000, 30);
    let worker = queue.join("far").await.unwrap();
    let far = claim(&queue, &worker, &options).await;
    assert!(far.len() <= 2 && far.iter().all(|c| c.wait_us <= 5_000_000));
}

pub(super) async fn places_come_back_whatever_happens(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..9)).await;
    let options = limited(any(&run, 9), 0, 9);
    let worker = queue.join("a").await.unwrap();
    let taken = claim(&queue, &worker, &options).await;
    let ends = [
        done(&taken[0]),
        failed(&taken[1], "timeout", true),
        failed(&taken[2], "http_404", false),
        Finish {
            id: taken[3].id,
            attempt: 1,
            end: FinishKind::GivenBack,
        },
        Finish {
            id: taken[4].id,
            attempt: 1,
            end: FinishKind::Blocked { wait_us: 1 },
        },
    ];
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 5);
    assert_eq!(
        queue.find_host("a.test").await.unwrap().unwrap().in_flight,
        4
    );
    // Answers that do not count free nothing twice.
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 0);
    let sql = "UPDATE queue_request_state SET held_until = 0 WHERE id = ?";
    tamper(&queue, sql, values![taken[5].id]).await;
    assert_eq!(queue.reap().await.unwrap().failed, 1);
    assert_eq!(
        queue.find_host("a.test").await.unwrap().unwrap().in_flight,
        3
    );
    assert_eq!(queue.leave(&worker).await.unwrap(), 3);
    assert_eq!(
        queue.find_host("a.test").await.unwrap().unwrap().in_flight,
        0
    );
}

pub(super) async fn the_deadline_ends_what_is_left(backend: impl Backend) {
    let queue = backend.open().await;
    let options = RunOptions {
        deadline_us: Some(3_600_000_000),
        ..RunOptions::default()
    };
    let run = queue.create_run(&run_key("day"), &options).await.unwrap();
    let elsewhere = NewRequest::get("list".parse().unwrap(), "http://b.test/1");
    let seeds = [pages(0..4), vec![elsewhere]].concat();
    let _stats = queue.add_seeds(run.id, &seeds, 0).await.unwrap();
    let run = queue.open_run(run.id, 5, "plan").await.unwrap();
    let worker = queue.join("a").await.unwrap();
    let taken = loop {
        let one = claim(&queue, &worker, &any(&run, 1)).await.remove(0);
        if one.host == "a.test" {
            break one;
        }
        assert_eq!(
            finish(
                &queue,
                &worker,
                &run,
                &[Finish {
                    id: one.id,
                    attempt: one.attempt,
                    end: FinishKind::GivenBack
                }]
            )
            .await,
            1
        );
        queue.block_host("b.test", 50_000).await.unwrap();
    };
    queue.block_host("a.test", 600_000_000).await.unwrap();
    tamper(
        &queue,
        "UPDATE queue_host SET blocked_until = 0 WHERE name = 'b.test'",
        &[],
    )
    .await;
    assert_eq!(queue.expire_run(run.id).await.unwrap(), 0);
    tamper(&queue, "UPDATE queue_run SET deadline_at = 1", &[]).await;
    assert_eq!(queue.expire_run(run.id).await.unwrap(), 4);
    assert_eq!(queue.expire_run(run.id).await.unwrap(), 0);
    // What is in flight is its worker's to end.
    assert_eq!(finish(&queue, &worker, &run, &[done(&taken)]).await, 1);
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(
        (
            books.dead_classes["rate_limited"],
            books.dead_classes["deadline"]
        ),
        (3, 1)
    );
    assert_eq!((books.failures, books.progress_dead), (0, 4));
}

pub(super) async fn a_stopped_run_is_given_up(backend: impl Backend) {
    let queue = backend.open().await;
    let run = queue
        .create_run(&run_key("day"), &RunOptions::default())
        .await
        .unwrap();
    let _stats = queue.add_seeds(run.id, &pages(0..5), 0).await.unwrap();
    let run = queue.open_run(run.id, 5, "plan").await.unwrap();
    let worker = queue.join("a").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 2)).await;
    // While its workers may go on, nobody gives it up.
    let error = queue.give_up_run(run.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    queue.stop_run(run.id, "enough").await.unwrap();
    assert_eq!(queue.give_up_run(run.id).await.unwrap(), 3);
    assert_eq!(queue.give_up_run(run.id).await.unwrap(), 0);
    // What is in flight is its worker's to end; what comes back is left again.
    assert_eq!(finish(&queue, &worker, &run, &[done(&taken[0])]).await, 1);
    assert_eq!(queue.leave(&worker).await.unwrap(), 1);
    assert_eq!(queue.give_up_run(run.id).await.unwrap(), 1);
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(books.dead_classes["given_up"], 4);
    assert_eq!((books.unfinished(), books.progress_dead), (0, 4));
    let _sealed = queue.seal_run(run.id).await.unwrap();
    let rules = ClosingRules::default();
    let (closed, verdict) = queue.close_run(run.id, &rules).await.unwrap();
    assert_eq!((closed.state, verdict.pass), (RunState::Closed, false));
    assert_eq!(verdict.breaches[0].kind, BreachKind::Stopped);
}

pub(super) async fn robots_and_moments_are_shared(backend: impl Backend) {
    let queue = backend.open().await;
    let other = backend.open().await;
    assert!(queue.find_host("a.test").await.unwrap().is_none());
    queue
        .keep_robots("a.test", "{\"政策\": \"allow\"}", 3_600_000_000)
        .await
        .unwrap();
    let host = other.find_host("a.test").await.unwrap().unwrap();
    assert_eq!(host.robots.as_deref(), Some("{\"政策\": \"allow\"}"));
    assert!(host.robots_until - host.now > 3_500_000_000);
    let mut waits = Vec::new();
    for queue in [&queue, &other, &queue] {
        waits.push(queue.take_moment("a.test", 10_000_000).await.unwrap());
    }
    assert!(
        waits[0] < 1_000_000 && waits[1] > 8_000_000 && waits[2] > 18_000_000,
        "{waits:?}"
    );
    queue.take_moment("b.test", 0).await.unwrap();
    let names: Vec<String> = queue
        .list_hosts("", 9)
        .await
        .unwrap()
        .into_iter()
        .map(|h| h.name)
        .collect();
    assert_eq!(names, ["a.test", "b.test"]);
    assert_eq!(queue.list_hosts("a.test", 9).await.unwrap().len(), 1);
}
