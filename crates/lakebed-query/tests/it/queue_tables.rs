//! `lake.requests`, `lake.runs` and `lake.hosts`.

use lakebed::queue::{
    ClaimOptions, ClaimOutcome, HostLimit, HostLimits, NewRequest, Queue, QueueOptions, RunOptions,
};
use lakebed::spec::RunKey;
use lakebed_query::{QueryEngine, QueryOptions, write_json};
use serde_json::{Value, json};

use crate::support::TestLake;

fn engine(t: &TestLake, place: &str) -> QueryEngine {
    t.engine_with(QueryOptions {
        queue: Some(place.to_owned()),
        ..QueryOptions::default()
    })
}

async fn rows(engine: &QueryEngine, text: &str) -> Value {
    let mut out = Vec::new();
    let result = engine.sql(text).await.unwrap();
    write_json(result, &mut out).await.unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Opens a run with so many seeds; returns its number.
async fn seed(queue: &Queue, date: &str, hosts: &[&str], count: usize) -> i64 {
    let key = RunKey {
        source: "rentals".parse().unwrap(),
        date: date.parse().unwrap(),
        run: "main".parse().unwrap(),
    };
    let run = queue
        .create_run(&key, &RunOptions::default())
        .await
        .unwrap();
    assert!(queue.begin_seeding(run.id).await.unwrap());
    let seeds: Vec<NewRequest> = (0..count)
        .map(|i| {
            let host = hosts[i % hosts.len()];
            NewRequest::get("list".parse().unwrap(), format!("https://{host}/租/{i}"))
        })
        .collect();
    for page in seeds.chunks(1000) {
        queue.add_seeds(run.id, page, 0).await.unwrap();
    }
    let announced = u64::try_from(count).unwrap();
    queue.open_run(run.id, announced, "plan").await.unwrap();
    run.id
}

#[tokio::test]
async fn without_a_queue_its_tables_are_empty_and_no_file_is_made() {
    let t = TestLake::new().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("queue.db");
    let engine = engine(&t, file.to_str().unwrap());
    for table in ["requests", "runs", "hosts"] {
        let text = format!("SELECT count(*) AS n FROM lake.{table}");
        assert_eq!(rows(&engine, &text).await, json!([{"n": 0}]));
    }
    assert!(!file.exists());
    let listed = rows(
        &engine,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'lake' \
         AND table_name IN ('requests', 'runs', 'hosts') ORDER BY 1",
    );
    let names = ["hosts", "requests", "runs"].map(|n| json!({"table_name": n}));
    assert_eq!(listed.await, json!(names));
    // It is found once there is one.
    let queue = Queue::open(file.to_str().unwrap(), QueueOptions::default())
        .await
        .unwrap();
    seed(&queue, "2026-11-30", &["a.example"], 3).await;
    let text = "SELECT count(*) AS n FROM lake.requests";
    assert_eq!(rows(&engine, text).await, json!([{"n": 3}]));
}

#[tokio::test]
async fn every_request_of_every_run_is_a_row() {
    let t = TestLake::new().await;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("佇列.db").to_str().unwrap().to_owned();
    let queue = Queue::open(&place, QueueOptions::default()).await.unwrap();
    // More than one page, and a page that is full to its last row.
    let first = seed(&queue, "2026-11-29", &["a.example", "b.example:8080"], 5001).await;
    seed(&queue, "2026-11-30", &["a.example"], 5000).await;
    let worker = queue.join("test").await.unwrap();
    let options = ClaimOptions {
        run_id: first,
        stages: Vec::new(),
        limit: 7,
        hosts: Some(HostLimits {
            usual: HostLimit {
                pause_us: 0,
                max_in_flight: 5,
            },
            ..HostLimits::default()
        }),
    };
    let claimed = queue.claim(&worker, &options).await.unwrap();
    let ClaimOutcome::Claimed(claims) = claimed else {
        panic!("{claimed:?}")
    };
    let engine = engine(&t, &place);
    let text = "SELECT dt, run, run_state, count(*) AS n, count(DISTINCT request_key) AS keys, \
                count(not_before) AS waiting FROM lake.requests WHERE source = 'rentals' \
                GROUP BY dt, run, run_state ORDER BY dt";
    assert_eq!(
        rows(&engine, text).await,
        json!([
            {"dt": "2026-11-29", "run": "main", "run_state": "open", "n": 5001, "keys": 5001, "waiting": 0},
            {"dt": "2026-11-30", "run": "main", "run_state": "open", "n": 5000, "keys": 5000, "waiting": 0},
        ])
    );
    assert_eq!(
        rows(&engine, "SELECT state, sum(attempts) AS a, count(*) AS n FROM lake.requests GROUP BY state ORDER BY n").await,
        json!([
            {"state": "in_flight", "a": claims.len(), "n": claims.len()},
            {"state": "pending", "a": 0, "n": 10_001 - claims.len()},
        ])
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT url, status, ended_at FROM lake.requests WHERE dt = '2026-11-30' AND url LIKE '%/4999'"
        )
        .await,
        json!([{"url": "https://a.example/租/4999", "status": null, "ended_at": null}])
    );
    assert_eq!(
        rows(&engine, "SELECT announced, inserted, closing, created_at > TIMESTAMP '2020-01-01' AS late FROM lake.runs ORDER BY dt").await,
        json!([
            {"announced": 5001, "inserted": 5001, "closing": null, "late": true},
            {"announced": 5000, "inserted": 5000, "closing": null, "late": true},
        ])
    );
    assert_eq!(
        rows(&engine, "SELECT host, sum(in_flight) AS n, max(blocked_until) AS b FROM lake.hosts GROUP BY host ORDER BY host").await,
        json!([
            {"host": "a.example", "n": claims.iter().filter(|c| c.url.contains("//a.")).count(), "b": null},
            {"host": "b.example:8080", "n": claims.iter().filter(|c| c.url.contains("//b.")).count(), "b": null},
        ])
    );
}
