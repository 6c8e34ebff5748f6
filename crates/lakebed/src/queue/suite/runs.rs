//! Runs from their making to their end.

use super::backend::*;
use crate::error::ErrorKind;
use crate::queue::{
    Claim, ClaimOutcome, ClosingRules, Coverage, EnqueueStats, KeyScope, LeaseHolder, LeaseOutcome,
    NewRequest, Queue, QueueOptions, RunOptions, RunRecord, RunState, Worker,
};

pub(super) async fn a_run_goes_its_whole_way(backend: impl Backend) {
    let queue = backend.open().await;
    let options = RunOptions {
        coverage: Coverage::Partial,
        ..RunOptions::default()
    };
    let run = queue.create_run(&run_key("day"), &options).await.unwrap();
    assert_eq!(
        (run.state, run.coverage),
        (RunState::Seeding, Coverage::Partial)
    );
    assert_eq!(
        queue.create_run(&run_key("day"), &options).await.unwrap(),
        run
    );

    let worker = queue.join("test").await.unwrap();
    let early = queue.claim(&worker, &any(&run, 5)).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::PreconditionFailed);

    queue.begin_seeding(run.id).await.unwrap();
    let mut seeds = pages(0..5);
    seeds.push(get("list", 3));
    let stats = queue.add_seeds(run.id, &seeds, 2).await.unwrap();
    assert_eq!(
        stats,
        EnqueueStats {
            announced: 8,
            inserted: 5,
            duplicate: 1,
            out_of_scope: 2
        }
    );
    let run = queue.open_run(run.id, 8, "hash of the plan").await.unwrap();
    assert_eq!(run.state, RunState::Open);
    assert_eq!(run.seeds, stats);
    assert_eq!(run.plan_hash.as_deref(), Some("hash of the plan"));
    let late = queue.add_seeds(run.id, &pages(9..10), 0).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::PreconditionFailed);

    let added = queue.add_requests(run.id, &pages(4..7), 1).await.unwrap();
    assert_eq!(
        (added.inserted, added.duplicate, added.out_of_scope),
        (2, 1, 1)
    );
    let sealed = queue.seal_run(run.id).await.unwrap();
    assert_eq!(sealed.state, RunState::Sealed);
    assert_eq!(
        queue.seal_run(run.id).await.unwrap().state,
        RunState::Sealed
    );
    let late = queue
        .add_requests(run.id, &pages(7..8), 0)
        .await
        .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::PreconditionFailed);

    end_and_close(&queue, &worker, &run).await;
    queue.close().await;
}

/// Seven requests end, and the run closes green for good.
async fn end_and_close(queue: &Queue, worker: &Worker, run: &RunRecord) {
    assert_eq!(drain(queue, worker, run).await, 7);
    assert_eq!(
        queue.claim(worker, &any(run, 5)).await.unwrap(),
        ClaimOutcome::Drained
    );
    let (closed, closing) = queue
        .close_run(run.id, &ClosingRules::default())
        .await
        .unwrap();
    assert_eq!(closed.state, RunState::Closed);
    assert!(closing.pass, "{:?}", closing.breaches);
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(
        (books.seed_rows, books.progress_done, books.attempts),
        (7, 7, 7)
    );
    assert_eq!(books.done_statuses[&200], 7);
    // Closing again answers the same, whatever the rules are now.
    let strict = ClosingRules {
        min_requests: 99,
        ..ClosingRules::default()
    };
    assert_eq!(
        queue.close_run(run.id, &strict).await.unwrap(),
        (closed, closing)
    );
    let terminals = queue.list_terminals(run.id, 0, 100).await.unwrap();
    assert_eq!(terminals.len(), 7);
    assert!(
        terminals
            .iter()
            .all(|(_, t)| t.capture.is_some() && t.class.is_none())
    );
}

pub(super) async fn a_plan_that_lost_seeds_does_not_open(backend: impl Backend) {
    let queue = backend.open().await;
    let run = queue
        .create_run(&run_key("day"), &RunOptions::default())
        .await
        .unwrap();
    let stats = queue.add_seeds(run.id, &pages(0..9), 0).await.unwrap();
    assert_eq!(stats.inserted, 9);
    let error = queue.open_run(run.id, 10, "plan").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    assert!(
        error.message().contains("announced 10 seeds, but 9 came"),
        "{error}"
    );
    assert_eq!(
        queue.get_run(run.id).await.unwrap().state,
        RunState::Seeding
    );
}

pub(super) async fn a_seeding_that_died_begins_from_nothing(backend: impl Backend) {
    let queue = backend.open().await;
    let run = queue
        .create_run(&run_key("day"), &RunOptions::default())
        .await
        .unwrap();
    let grouped = NewRequest {
        group: Some("all".into()),
        ..get("list", "grouped")
    };
    let _half = queue
        .add_seeds(run.id, &[pages(0..40), vec![grouped]].concat(), 3)
        .await
        .unwrap();
    queue.begin_seeding(run.id).await.unwrap();
    let again = queue.get_run(run.id).await.unwrap();
    assert_eq!(again.seeds, EnqueueStats::default());
    for table in [
        "queue_request",
        "queue_request_state",
        "queue_group",
        "queue_progress",
    ] {
        assert_eq!(
            number(&queue, &format!("SELECT count(*) FROM {table}"), &[]).await,
            0,
            "{table}"
        );
    }
    let stats = queue.add_seeds(run.id, &pages(0..50), 0).await.unwrap();
    assert_eq!(stats.inserted, 50);
    let run = queue.open_run(run.id, 50, "plan").await.unwrap();
    let error = queue.begin_seeding(run.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    let worker = queue.join("test").await.unwrap();
    assert_eq!(drain(&queue, &worker, &run).await, 50);
    assert!(
        queue
            .close_run(run.id, &ClosingRules::default())
            .await
            .unwrap()
            .1
            .pass
    );
}

pub(super) async fn keys_are_unique_within_their_scope(backend: impl Backend) {
    let queue = backend.open().await;
    let daily = |n: u32| NewRequest {
        scope: KeyScope::Date,
        ..get("detail", n)
    };
    let first = open_run(&queue, "0900", &[get("list", 1), daily(1)]).await;
    let second = queue
        .create_run(&run_key("1500"), &RunOptions::default())
        .await
        .unwrap();
    assert_eq!(second.day_id, first.id);
    let stats = queue
        .add_seeds(second.id, &[get("list", 1), daily(1), daily(2)], 0)
        .await
        .unwrap();
    assert_eq!((stats.inserted, stats.duplicate), (2, 1));
    let mut other = run_key("0900");
    other.date = "2026-12-01".parse().unwrap();
    let next_day = queue
        .create_run(&other, &RunOptions::default())
        .await
        .unwrap();
    let stats = queue
        .add_seeds(next_day.id, &[get("list", 1), daily(1)], 0)
        .await
        .unwrap();
    assert_eq!((stats.inserted, stats.duplicate), (2, 0));
}

pub(super) async fn everything_of_a_request_comes_back(backend: impl Backend) {
    let queue = backend.open().await;
    let request = NewRequest {
        method: "POST".to_owned(),
        headers: vec![("X-區域".to_owned(), "台北 \u{1f3e0} 'quoted' \\".to_owned())],
        body: Some(vec![0, 255, 10, 39]),
        carry: Some("{\"頁\": 1}".to_owned()),
        ..get("search", "find?q=%E5%8F%B0%E5%8C%97")
    };
    let empty = NewRequest {
        body: Some(Vec::new()),
        ..request.clone()
    };
    let run = open_run(&queue, "day", &[request.clone(), empty.clone()]).await;
    let worker = queue.join("工人").await.unwrap();
    let claims = claim(&queue, &worker, &any(&run, 5)).await;
    for wanted in [&request, &empty] {
        let got = claims
            .iter()
            .find(|c| c.request_key == wanted.key())
            .unwrap();
        assert_eq!(got.method, wanted.method);
        assert_eq!(got.url, wanted.url);
        assert_eq!(got.headers, wanted.headers);
        assert_eq!(got.body, wanted.body);
        assert_eq!(got.carry, wanted.carry);
        assert_eq!(
            (got.host.as_str(), got.stage.as_str(), got.attempt),
            ("a.test", "search", 1)
        );
    }
    assert_eq!(queue.list_workers(5).await.unwrap()[0].label, "工人");
}

pub(super) async fn of_many_that_create_a_run_one_does(backend: impl Backend) {
    let queue = backend.open().await;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let queue = queue.clone();
        tasks.push(tokio::spawn(async move {
            let run = queue
                .create_run(&run_key("day"), &RunOptions::default())
                .await
                .unwrap();
            let stats = queue.add_seeds(run.id, &pages(0..20), 0).await.unwrap();
            (run.id, stats.inserted)
        }));
    }
    let mut ids = Vec::new();
    let mut inserted = 0;
    for task in tasks {
        let (id, new) = task.await.unwrap();
        ids.push(id);
        inserted += new;
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(inserted, 20);
}

pub(super) async fn events_tell_the_story_in_order(backend: impl Backend) {
    let queue = backend.open().await;
    assert_eq!(queue.newest_event().await.unwrap(), 0);
    let run = open_run(&queue, "day", &pages(0..1)).await;
    let worker = queue.join("test").await.unwrap();
    queue.stop_run(run.id, "the circuit opened").await.unwrap();
    queue.stop_run(run.id, "a second reason").await.unwrap();
    let stopped = queue.claim(&worker, &any(&run, 1)).await.unwrap();
    assert_eq!(stopped, ClaimOutcome::Stopped("the circuit opened".into()));
    queue.resume_run(run.id).await.unwrap();
    drain(&queue, &worker, &run).await;
    queue.leave(&worker).await.unwrap();
    let _closed = queue
        .close_run(run.id, &ClosingRules::default())
        .await
        .unwrap();
    let events = queue.list_events(0, 100).await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|e| e.kind.as_str()).collect();
    let story = [
        "run_created",
        "run_opened",
        "worker_joined",
        "run_stopped",
        "run_resumed",
        "worker_left",
        "run_closed",
    ];
    assert_eq!(kinds, story);
    assert!(
        events
            .windows(2)
            .all(|w| w[0].id < w[1].id && w[0].at <= w[1].at)
    );
    assert_eq!(
        queue.list_events(events[5].id, 100).await.unwrap(),
        events[6..]
    );
    assert_eq!(queue.newest_event().await.unwrap(), events[6].id);
}

pub(super) async fn a_retry_is_a_successor(backend: impl Backend) {
    let queue = backend.open().await;
    let daily = |n: u32| NewRequest {
        scope: KeyScope::Date,
        carry: Some(n.to_string()),
        ..get("detail", n)
    };
    let run = open_run(&queue, "day", &(0..6).map(daily).collect::<Vec<_>>()).await;
    let worker = queue.join("test").await.unwrap();
    let claims = claim(&queue, &worker, &any(&run, 6)).await;
    let open = queue
        .retry_run(run.id, &run_key("day2"), None)
        .await
        .unwrap_err();
    assert_eq!(open.kind(), ErrorKind::PreconditionFailed);
    let ends: Vec<_> = claims
        .iter()
        .enumerate()
        .map(|(i, c)| match i {
            0 => done(c),
            1..=2 => failed(c, "http_403", false),
            _ => failed(c, "http_500", false),
        })
        .collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 6);
    let (_, closing) = queue
        .close_run(run.id, &ClosingRules::default())
        .await
        .unwrap();
    assert!(!closing.pass);
    a_class_that_nobody_has_makes_nothing(&queue, &run).await;
    let class = "http_500".parse().unwrap();
    let next = queue
        .retry_run(run.id, &run_key("day2"), Some(&class))
        .await
        .unwrap();
    assert_eq!(
        (next.state, next.successor_of, next.seeds.inserted),
        (RunState::Open, Some(run.id), 3)
    );
    let successor = |of| queue.find_successor(of);
    assert_eq!(successor(run.id).await.unwrap().unwrap().id, next.id);
    assert!(successor(next.id).await.unwrap().is_none());
    let again = claim(&queue, &worker, &any(&next, 9)).await;
    let mut carried: Vec<_> = again.iter().map(|c| c.carry.clone().unwrap()).collect();
    carried.sort();
    let mut wanted: Vec<_> = claims[3..]
        .iter()
        .map(|c| c.carry.clone().unwrap())
        .collect();
    wanted.sort();
    assert_eq!(carried, wanted);
    // The same request has the same key in every run.
    assert!(
        again
            .iter()
            .all(|a| claims.iter().any(|c| c.request_key == a.request_key))
    );
    assert_eq!(
        queue.get_run(run.id).await.unwrap().closing,
        Some(serde_json::to_string(&closing).unwrap())
    );
    let runs = [run, next];
    nothing_is_left_to_try(&queue, &worker, &runs, &again).await;
}

async fn a_class_that_nobody_has_makes_nothing(queue: &Queue, run: &RunRecord) {
    let nobody = "timeout_total".parse().unwrap();
    let refused = queue
        .retry_run(run.id, &run_key("day2"), Some(&nobody))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
    assert!(refused.message().contains("`timeout_total`"), "{refused}");
    assert_eq!(refused.hints(), ["dead are: 2 http_403, 3 http_500"]);
    // Nothing was made: no run is left that seeds for ever.
    assert!(queue.find_run(&run_key("day2")).await.unwrap().is_none());
}

async fn nothing_is_left_to_try(
    queue: &Queue,
    worker: &Worker,
    [run, next]: &[RunRecord; 2],
    claims: &[Claim],
) {
    let ends: Vec<_> = claims.iter().map(done).collect();
    assert_eq!(finish(queue, worker, next, &ends).await, 3);
    let (_, red) = queue
        .close_run(next.id, &ClosingRules::default())
        .await
        .unwrap();
    // What the family has dead is named, though nothing died in this run.
    let breach = &red.breaches[0];
    assert!(breach.message.ends_with(": 2 http_403"), "{breach:?}");
    assert_eq!(breach.samples.len(), 2, "{breach:?}");
    let class = "http_500".parse().unwrap();
    let refused = queue
        .retry_run(next.id, &run_key("day3"), Some(&class))
        .await
        .unwrap_err();
    assert_eq!(refused.hints(), ["dead are: 2 http_403"]);
    assert!(queue.find_run(&run_key("day3")).await.unwrap().is_none());
    let all = queue.list_runs_of(&run.key.source, run.key.date).await;
    let names: Vec<_> = all.unwrap().into_iter().map(|r| r.id).collect();
    assert_eq!(names, [run.id, next.id]);
    let first = queue.first_date(&run.key.source).await.unwrap();
    assert_eq!(first, Some(run.key.date));
    // What one retry has done, or is at, the next does not ask for once more.
    let [fourth, fifth] = ["day4", "day5"].map(run_key);
    let retry = |name| queue.retry_run(next.id, name, None);
    let third = retry(&fourth).await.unwrap();
    assert_eq!(third.seeds.inserted, 2);
    let refused = retry(&fifth).await.unwrap_err();
    assert!(
        refused.hints()[0]
            .starts_with("`lakebed crawl rentals --date 2026-11-30 --run day4` goes on"),
        "{refused}"
    );
}

pub(super) async fn one_process_seeds_at_a_time(backend: impl Backend) {
    let (first, second) = (backend.open().await, backend.open().await);
    let run = first
        .create_run(&run_key("day"), &RunOptions::default())
        .await
        .unwrap();
    assert!(first.begin_seeding(run.id).await.unwrap());
    let _half = first.add_seeds(run.id, &pages(0..30), 0).await.unwrap();
    assert!(!second.begin_seeding(run.id).await.unwrap());
    let kinds = |e: crate::Error| e.kind();
    assert_eq!(
        second
            .add_seeds(run.id, &pages(0..1), 0)
            .await
            .map_err(kinds),
        Err(ErrorKind::Conflict)
    );
    assert_eq!(
        second.open_run(run.id, 30, "plan").await.map_err(kinds),
        Err(ErrorKind::Conflict)
    );
    first.renew_seeding(run.id).await.unwrap();
    // The first was silent for longer than a lease: the second takes over, from nothing.
    tamper(&first, "UPDATE queue_run SET seed_at = 0", &[]).await;
    assert!(second.begin_seeding(run.id).await.unwrap());
    assert_eq!(
        first
            .add_seeds(run.id, &pages(30..40), 0)
            .await
            .map_err(kinds),
        Err(ErrorKind::Conflict)
    );
    assert_eq!(
        first.renew_seeding(run.id).await.map_err(kinds),
        Err(ErrorKind::Conflict)
    );
    let stats = second.add_seeds(run.id, &pages(0..40), 0).await.unwrap();
    assert_eq!((stats.inserted, stats.duplicate), (40, 0));
    // Who leaves makes room at once.
    second.leave_seeding(run.id).await.unwrap();
    assert!(first.begin_seeding(run.id).await.unwrap());
    let _all = first.add_seeds(run.id, &pages(0..40), 0).await.unwrap();
    assert_eq!(
        first
            .open_run(run.id, 40, "plan")
            .await
            .unwrap()
            .seeds
            .inserted,
        40
    );
    assert_eq!(
        second.begin_seeding(run.id).await.map_err(kinds),
        Err(ErrorKind::PreconditionFailed)
    );
}

/// The tables are made by one of them, and seen whole by the others.
pub(super) async fn many_open_a_new_place_at_once(backend: impl Backend) {
    let opened = (0..8).map(|_| {
        let place = backend.place();
        tokio::spawn(async move { Queue::open(&place, QueueOptions::default()).await.map(drop) })
    });
    for task in opened.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
}

pub(super) async fn one_retry_of_a_family_is_made_at_a_time(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..3)).await;
    let _sweep = open_run(&queue, "sweep", &pages(7..8)).await;
    let worker = queue.join("test").await.unwrap();
    let claims = claim(&queue, &worker, &any(&run, 3)).await;
    let ends: Vec<_> = claims
        .iter()
        .map(|c| failed(c, "http_500", false))
        .collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 3);
    let _red = queue
        .close_run(run.id, &ClosingRules::default())
        .await
        .unwrap();
    let retry = async |name: &str| queue.retry_run(run.id, &run_key(name), None).await;
    let name = "retry rentals 2026-11-30 day";
    let holder = LeaseHolder {
        token: "other".to_owned(),
        place: "other".to_owned(),
        name: "process 7".to_owned(),
    };
    let taken = queue.take_lease(name, &holder, 60_000_000).await.unwrap();
    assert_eq!(taken, LeaseOutcome::Taken);
    let busy = retry("day2").await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Conflict);
    assert!(busy.message().contains("process 7"), "{busy}");
    queue.give_lease_back(name, "other").await.unwrap();
    let foreign = retry("sweep").await.unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::PreconditionFailed, "{foreign}");
    // One that died while it put its requests in stands for nothing, and its own name goes on with it.
    let options = RunOptions {
        successor_of: Some(run.id),
        ..RunOptions::default()
    };
    let died = queue.create_run(&run_key("day2"), &options).await.unwrap();
    assert!(queue.begin_seeding(died.id).await.unwrap());
    let _some = queue.add_seeds(died.id, &pages(0..2), 0).await.unwrap();
    let other = retry("day3").await.unwrap_err();
    assert_eq!(
        other.hints(),
        ["the same command with `--as day2` goes on with it"]
    );
    let next = retry("day2").await.unwrap();
    assert_eq!((next.id, next.seeds.inserted), (died.id, 3));
}
