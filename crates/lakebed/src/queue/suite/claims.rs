//! Who gets which request.

use std::collections::BTreeSet;

use super::backend::*;
use crate::error::ErrorKind;
use crate::queue::db::values;
use crate::queue::{ClaimOptions, ClaimOutcome, Finish, FinishKind, NewRequest};

pub(super) async fn each_request_is_claimed_once(backend: impl Backend) {
    let queue = backend.open().await;
    let mut seeds = pages(0..300);
    seeds.extend(
        (0..300).map(|n| NewRequest::get("list".parse().unwrap(), format!("http://b.test/{n}"))),
    );
    let run = open_run(&queue, "day", &seeds).await;
    let mut tasks = Vec::new();
    for n in 0..6 {
        let run = run.clone();
        // Three processes of two workers each.
        let queue = if n % 2 == 0 {
            backend.open().await
        } else {
            queue.clone()
        };
        tasks.push(tokio::spawn(async move {
            let worker = queue.join("test").await.unwrap();
            let mut mine = Vec::new();
            let mut empty = 0;
            while empty < 3 {
                let claims = claim(&queue, &worker, &any(&run, 7)).await;
                if claims.is_empty() {
                    // Rows that another transaction holds are passed over: "nothing" must be said again.
                    empty += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    continue;
                }
                let ends: Vec<Finish> = claims.iter().map(done).collect();
                assert_eq!(finish(&queue, &worker, &run, &ends).await, claims.len());
                mine.extend(claims.into_iter().map(|c| c.id));
            }
            mine
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    assert_eq!(all.len(), 600);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 600);
    let worker = queue.join("test").await.unwrap();
    assert_eq!(
        queue.claim(&worker, &any(&run, 1)).await.unwrap(),
        ClaimOutcome::Drained
    );
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(
        (books.progress_done, books.attempts, books.failures),
        (600, 600, 0)
    );
}

pub(super) async fn priorities_come_first_within_a_host(backend: impl Backend) {
    let queue = backend.open().await;
    let ranked = |n: u32, priority| NewRequest {
        priority,
        ..get("list", n)
    };
    let run = open_run(
        &queue,
        "day",
        &[ranked(1, 5), ranked(2, -3), ranked(3, 0), ranked(4, -3)],
    )
    .await;
    let worker = queue.join("test").await.unwrap();
    let mut order = Vec::new();
    for _ in 0..2 {
        for one in claim(&queue, &worker, &any(&run, 2)).await {
            order.push(one.url.trim_start_matches("http://a.test/").to_owned());
        }
    }
    let first: BTreeSet<&str> = order[..2].iter().map(String::as_str).collect();
    assert_eq!(first, BTreeSet::from(["2", "4"]));
    assert_eq!(order[2..], ["3", "1"]);
}

pub(super) async fn what_was_given_back_behind_the_mark_is_found(backend: impl Backend) {
    let queue = backend.open().await;
    let other = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..60)).await;
    let (mine, theirs) = (
        queue.join("a").await.unwrap(),
        other.join("b").await.unwrap(),
    );
    let taken = claim(&other, &theirs, &any(&run, 10)).await;
    let first = claim(&queue, &mine, &any(&run, 10)).await;
    assert_eq!((taken.len(), first.len()), (10, 10));
    // The other process gives its rows back: they lie before this one's mark.
    let back: Vec<Finish> = taken
        .iter()
        .map(|c| Finish {
            id: c.id,
            attempt: c.attempt,
            end: FinishKind::GivenBack,
        })
        .collect();
    assert_eq!(finish(&other, &theirs, &run, &back).await, 10);
    let mut rest = Vec::new();
    loop {
        let claims = claim(&queue, &mine, &any(&run, 10)).await;
        if claims.is_empty() {
            break;
        }
        rest.extend(claims);
    }
    assert_eq!(rest.len(), 50);
    let again = rest.iter().filter(|c| taken.iter().any(|t| t.id == c.id));
    assert!(
        again.clone().count() == 10 && again.clone().all(|c| c.attempt == 2 && c.failures == 0)
    );
}

pub(super) async fn a_stage_is_claimed_alone(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(
        &queue,
        "day",
        &[get("list", 1), get("detail", 1), get("detail", 2)],
    )
    .await;
    let worker = queue.join("test").await.unwrap();
    let details = ClaimOptions {
        stages: vec!["detail".parse().unwrap()],
        ..any(&run, 9)
    };
    let claims = claim(&queue, &worker, &details).await;
    assert_eq!(claims.len(), 2);
    assert!(claims.iter().all(|c| c.stage.as_str() == "detail"));
    assert!(matches!(
        queue.claim(&worker, &details).await.unwrap(),
        ClaimOutcome::Wait(_)
    ));
    assert_eq!(claim(&queue, &worker, &any(&run, 9)).await.len(), 1);
}

pub(super) async fn a_resting_lane_wakes(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..1)).await;
    let worker = queue.join("test").await.unwrap();
    let first = claim(&queue, &worker, &any(&run, 5)).await;
    // Nothing is unfinished in the lane but what is in flight: it rests.
    assert!(claim(&queue, &worker, &any(&run, 5)).await.is_empty());
    assert_eq!(
        number(&queue, "SELECT min(ready) FROM queue_lane", &[]).await,
        0
    );
    let _added = queue.add_requests(run.id, &pages(1..2), 0).await.unwrap();
    assert_eq!(claim(&queue, &worker, &any(&run, 5)).await.len(), 1);
    // A rest that is wrong is found out before "nothing" is said.
    let back = Finish {
        id: first[0].id,
        attempt: 1,
        end: FinishKind::GivenBack,
    };
    assert_eq!(finish(&queue, &worker, &run, &[back]).await, 1);
    tamper(&queue, "UPDATE queue_lane SET ready = 0", &[]).await;
    assert!(matches!(
        queue.claim(&worker, &any(&run, 5)).await.unwrap(),
        ClaimOutcome::Wait(_)
    ));
    assert_eq!(claim(&queue, &worker, &any(&run, 5)).await.len(), 1);
}

/// Requests that carry all that a request can.
fn laden() -> Vec<NewRequest> {
    (0..90)
        .map(|n| NewRequest {
            headers: std::iter::once(("x-n".to_owned(), n.to_string())).collect(),
            body: Some(vec![0, 255, u8::try_from(n).unwrap()]),
            carry: Some(format!("頁 {n}")),
            ..get("list", n)
        })
        .collect()
}

pub(super) async fn the_short_way_keeps_every_guard(backend: impl Backend) {
    let queue = backend.open().await;
    let seeds = laden();
    let run = open_run(&queue, "day", &seeds).await;
    let worker = queue.join("test").await.unwrap();
    let options = any(&run, 5);
    // The first claim goes the long way, those that follow go the short one.
    let mut seen = BTreeSet::new();
    for short in [false, true, true] {
        assert_eq!(queue.memory.known_lane(run.id).is_some(), short);
        let claims = claim(&queue, &worker, &options).await;
        assert!(claims.windows(2).all(|w| w[0].id < w[1].id), "{claims:?}");
        for one in &claims {
            let n = one.url.rsplit('/').next().unwrap();
            let seed = &seeds[n.parse::<usize>().unwrap()];
            assert_eq!(
                (&one.headers, &one.body, &one.carry),
                (&seed.headers, &seed.body, &seed.carry)
            );
            assert_eq!(one.request_key, seed.key());
            assert_eq!((one.attempt, one.failures, one.holds_slot), (1, 0, false));
            assert!(seen.insert(one.id));
        }
        assert_eq!(claims.len(), 5);
    }
    let again = |expected: usize| {
        let (queue, worker, options) = (queue.clone(), worker.clone(), options.clone());
        async move {
            // Twice: the second claim goes the short way again.
            for _ in 0..2 {
                assert_eq!(claim(&queue, &worker, &options).await.len(), expected);
            }
            assert_eq!(
                queue.memory.known_lane(options.run_id).is_some(),
                expected > 0
            );
        }
    };
    queue.stop_run(run.id, "enough").await.unwrap();
    let stopped = queue.claim(&worker, &options).await.unwrap();
    assert_eq!(stopped, ClaimOutcome::Stopped("enough".to_owned()));
    queue.resume_run(run.id).await.unwrap();
    again(5).await;
    queue.block_host("a.test", 60_000_000).await.unwrap();
    again(0).await;
    let free = "UPDATE queue_host SET blocked_until = 0";
    tamper(&queue, free, &[]).await;
    again(5).await;
    // Of another stage, nothing is taken from the lane.
    let elsewhere = ClaimOptions {
        stages: vec!["detail".parse().unwrap()],
        ..options.clone()
    };
    assert!(claim(&queue, &worker, &elsewhere).await.is_empty());
    again(5).await;
    // Rows that wait for their time are left alone.
    let later = "UPDATE queue_request_state SET not_before = ? WHERE state = 0";
    tamper(&queue, later, values![i64::MAX / 2]).await;
    again(0).await;
    tamper(&queue, later, values![0_i64]).await;
    again(5).await;
    // A worker whose lease has ended claims nothing.
    tamper(&queue, "UPDATE queue_worker SET state = 1", &[]).await;
    let lost = queue.claim(&worker, &options).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Conflict);
}
