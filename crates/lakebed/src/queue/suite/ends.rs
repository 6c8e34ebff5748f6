//! Successes that bring nothing along: ended as a whole by one call, or row by row.

use super::backend::*;
use crate::queue::plain_finish::Plain;
use crate::queue::{
    Claim, ClaimOptions, DoneSpec, Finish, FinishKind, HostLimit, HostLimits, Queue, RunRecord,
    Worker,
};

/// Ends the batch as a whole; whether that could be.
async fn whole(queue: &Queue, worker: &Worker, run: &RunRecord, ends: &[Finish]) -> bool {
    let plain: Vec<Plain<'_>> = ends.iter().map(|f| Plain::of(f).unwrap()).collect();
    queue.finish_whole(worker, run.id, &plain).await.unwrap()
}

/// How many rows are done; the counts of the lanes must say the same.
async fn ended(queue: &Queue) -> i64 {
    let rows = "SELECT count(*) FROM queue_request_state WHERE state = 2 AND ended_at > 0";
    let counts = "SELECT CAST(sum(done) AS {int}) FROM queue_progress";
    let rows = number(queue, rows, &[]).await;
    assert_eq!(number(queue, counts, &[]).await, rows);
    // Each lane by itself too.
    let wrong = "SELECT count(*) FROM queue_lane l WHERE \
        (SELECT coalesce(sum(p.done), 0) FROM queue_progress p WHERE p.lane_id = l.id) <> \
        (SELECT count(*) FROM queue_request_state s WHERE s.lane_id = l.id AND s.state = 2)";
    assert_eq!(number(queue, wrong, &[]).await, 0);
    rows
}

fn ends_of(claims: &[Claim]) -> Vec<Finish> {
    claims.iter().map(done).collect()
}

pub(super) async fn a_batch_ends_as_a_whole_or_row_by_row(backend: impl Backend) {
    let queue = backend.open().await;
    let mut seeds = pages(0..80);
    seeds.extend((0..20).map(|n| get("detail", n)));
    let run = open_run(&queue, "day", &seeds).await;
    let (worker, other) = (
        queue.join("test").await.unwrap(),
        queue.join("test").await.unwrap(),
    );
    let of = |stage: &str| ClaimOptions {
        stages: vec![stage.parse().unwrap()],
        ..any(&run, 5)
    };
    let details = ends_of(&claim(&queue, &worker, &of("detail")).await);
    let list = of("list");
    let first = ends_of(&claim(&queue, &worker, &list).await);
    assert!(queue.memory.known_lane(run.id).is_some());

    // Nothing of it happens where one row is another worker's, of another attempt, of another lane, or unknown.
    assert!(!whole(&queue, &other, &run, &first).await);
    for spoil in [(|f: &mut Finish| f.attempt += 1) as fn(&mut Finish), |f| {
        f.id = 99_999_999
    }] {
        let mut spoilt = first.clone();
        spoil(&mut spoilt[3]);
        assert!(!whole(&queue, &worker, &run, &spoilt).await);
    }
    let mixed = [&first[..2], &details[..2]].concat();
    assert!(!whole(&queue, &worker, &run, &mixed).await);
    assert_eq!(ended(&queue).await, 0);
    assert!(whole(&queue, &worker, &run, &first).await);
    assert_eq!(ended(&queue).await, 5);
    assert!(!whole(&queue, &worker, &run, &first).await);
    assert_eq!(finish(&queue, &worker, &run, &first).await, 0);

    // Row by row, the others count.
    let second = ends_of(&claim(&queue, &worker, &list).await);
    let mut spoilt = second.clone();
    spoilt[1].attempt += 1;
    assert_eq!(finish(&queue, &worker, &run, &spoilt).await, 4);
    let rest = [&second[1..2], &details[..]].concat();
    assert_eq!(finish(&queue, &worker, &run, &rest).await, 6);
    assert_eq!(ended(&queue).await, 15);
    all_fields_are_kept(&queue, &worker, &run, &list).await;
    places_are_given_back(&queue, &worker, &run, &list).await;
}

/// What a success says of itself, and what it does not.
async fn all_fields_are_kept(queue: &Queue, worker: &Worker, run: &RunRecord, list: &ClaimOptions) {
    let claims = claim(queue, worker, list).await;
    let mut ends = ends_of(&claims);
    let end = |spec| FinishKind::Done(spec);
    ends[0].end = end(DoneSpec {
        announced: 7,
        ..DoneSpec::default()
    });
    ends[1].end = end(DoneSpec {
        capture: "ffeeddccbbaa99887766554433221100".parse().ok(),
        status: Some(65_535),
        announced: 12_345_678_901,
        ..DoneSpec::default()
    });
    assert!(whole(queue, worker, run, &ends).await);
    let silent = "SELECT count(*) FROM queue_request_state WHERE id = ? AND capture IS NULL AND status IS NULL \
        AND announced = 7 AND out_of_scope = 7 AND inserted = 0 AND duplicate = 0 AND class IS NULL";
    assert_eq!(number(queue, silent, &[claims[0].id.into()]).await, 1);
    let loud = "SELECT count(*) FROM queue_request_state WHERE id = ? AND capture = ? AND status = 65535 \
        AND announced = 12345678901 AND out_of_scope = 12345678901";
    let capture: Vec<u8> = (0..=15).rev().map(|n| n * 17).collect();
    let args = [claims[1].id.into(), capture.into()];
    assert_eq!(number(queue, loud, &args).await, 1);
    assert_eq!(ended(queue).await, 20);
}

/// Places that are held go back with every end, though the lane is known.
async fn places_are_given_back(
    queue: &Queue,
    worker: &Worker,
    run: &RunRecord,
    list: &ClaimOptions,
) {
    let usual = HostLimit {
        pause_us: 0,
        max_in_flight: 5,
    };
    let polite = ClaimOptions {
        hosts: Some(HostLimits {
            usual,
            ..HostLimits::default()
        }),
        ..list.clone()
    };
    let held = ends_of(&claim(queue, worker, &polite).await);
    assert_eq!(held.len(), 5);
    assert!(queue.memory.known_lane(run.id).is_some());
    let places = || async { queue.find_host("a.test").await.unwrap().unwrap().in_flight };
    assert_eq!(places().await, 5);
    assert!(!whole(queue, worker, run, &held).await);
    assert_eq!(places().await, 5);
    assert_eq!(finish(queue, worker, run, &held).await, 5);
    assert_eq!(places().await, 0);
    assert_eq!(ended(queue).await, 25);
}
