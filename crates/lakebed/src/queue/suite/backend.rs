//! The databases of the suite and the small steps that its tests share.

use async_trait::async_trait;

use crate::queue::db::{Value, in_tx};
use crate::queue::{
    Claim, ClaimOptions, ClaimOutcome, DoneSpec, EnqueueStats, Finish, FinishKind, FinishOutcome,
    NewRequest, Queue, QueueOptions, RunOptions, RunRecord, Worker,
};
use crate::spec::RunKey;
use crate::time::{Clock, unique_id};

/// A database of one test, which may be opened more than once.
#[async_trait]
pub(super) trait Backend: Sized + Send + Sync {
    async fn new() -> Self;
    fn place(&self) -> String;

    async fn open(&self) -> Queue {
        self.open_with(QueueOptions::default()).await
    }

    async fn open_with(&self, options: QueueOptions) -> Queue {
        Queue::open(&self.place(), options).await.unwrap()
    }
}

pub(super) struct Sqlite(tempfile::TempDir);

#[async_trait]
impl Backend for Sqlite {
    async fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn place(&self) -> String {
        self.0.path().join("queue.db").display().to_string()
    }
}

/// A URL that ends in the name of a database of this test alone.
pub(super) struct Postgres(String);

#[async_trait]
impl Backend for Postgres {
    async fn new() -> Self {
        use sqlx::{Connection, Executor, PgConnection};
        let server = server("LAKEBED_TEST_POSTGRES");
        let name = format!("lakebed_{}", unique_id(&Clock::System));
        let mut connection = PgConnection::connect(&format!("{server}/postgres"))
            .await
            .unwrap();
        let sql = format!("CREATE DATABASE {name}");
        connection.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
        Self(format!("{server}/{name}"))
    }
    fn place(&self) -> String {
        self.0.clone()
    }
}

/// A URL that ends in the name of a database of this test alone.
pub(super) struct Mysql(String);

#[async_trait]
impl Backend for Mysql {
    async fn new() -> Self {
        use sqlx::{Connection, Executor, MySqlConnection};
        let server = server("LAKEBED_TEST_MYSQL");
        let name = format!("lakebed_{}", unique_id(&Clock::System));
        let mut connection = MySqlConnection::connect(&format!("{server}/mysql"))
            .await
            .unwrap();
        let sql = format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
        connection.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
        Self(format!("{server}/{name}"))
    }
    fn place(&self) -> String {
        self.0.clone()
    }
}

/// The URL of a test server without a database.
fn server(variable: &str) -> String {
    let url = std::env::var(variable);
    url.unwrap_or_else(|_| panic!("{variable} names no server: `. .ci/servers` starts them"))
}

pub(super) fn run_key(run: &str) -> RunKey {
    RunKey {
        source: "rentals".parse().unwrap(),
        date: "2026-11-30".parse().unwrap(),
        run: run.parse().unwrap(),
    }
}

pub(super) fn get(stage: &str, path: impl std::fmt::Display) -> NewRequest {
    NewRequest::get(stage.parse().unwrap(), format!("http://a.test/{path}"))
}

pub(super) fn pages(range: std::ops::Range<u32>) -> Vec<NewRequest> {
    range.map(|n| get("list", n)).collect()
}

/// A run that is open with these seeds.
pub(super) async fn open_run(queue: &Queue, name: &str, seeds: &[NewRequest]) -> RunRecord {
    let run = queue
        .create_run(&run_key(name), &RunOptions::default())
        .await
        .unwrap();
    queue.begin_seeding(run.id).await.unwrap();
    for part in seeds.chunks(300) {
        let _stats: EnqueueStats = queue.add_seeds(run.id, part, 0).await.unwrap();
    }
    queue
        .open_run(run.id, seeds.len() as u64, "plan")
        .await
        .unwrap()
}

pub(super) fn any(run: &RunRecord, limit: u32) -> ClaimOptions {
    ClaimOptions {
        run_id: run.id,
        stages: Vec::new(),
        limit,
        hosts: None,
    }
}

/// What a claim finds now; nothing where it is told to wait.
pub(super) async fn claim(queue: &Queue, worker: &Worker, options: &ClaimOptions) -> Vec<Claim> {
    match queue.claim(worker, options).await.unwrap() {
        ClaimOutcome::Claimed(claims) => claims,
        ClaimOutcome::Wait(_) | ClaimOutcome::Drained => Vec::new(),
        ClaimOutcome::Stopped(reason) => panic!("stopped: {reason}"),
    }
}

pub(super) fn done(claim: &Claim) -> Finish {
    done_with(claim, DoneSpec::default())
}

pub(super) fn done_with(claim: &Claim, spec: DoneSpec) -> Finish {
    let capture = "00112233445566778899aabbccddeeff".parse().unwrap();
    let spec = DoneSpec {
        capture: Some(capture),
        status: Some(200),
        announced: spec.announced.max(spec.children.len() as u64),
        ..spec
    };
    Finish {
        id: claim.id,
        attempt: claim.attempt,
        end: FinishKind::Done(spec),
    }
}

pub(super) fn failed(claim: &Claim, class: &str, retry: bool) -> Finish {
    let end = FinishKind::Failed {
        class: class.parse().unwrap(),
        retry,
        status: None,
    };
    Finish {
        id: claim.id,
        attempt: claim.attempt,
        end,
    }
}

/// Finishes and counts those that were accepted.
pub(super) async fn finish(
    queue: &Queue,
    worker: &Worker,
    run: &RunRecord,
    finishes: &[Finish],
) -> usize {
    let outcomes = queue.finish(worker, run.id, finishes).await.unwrap();
    outcomes
        .iter()
        .filter(|o| **o == FinishOutcome::Accepted)
        .count()
}

/// Claims and finishes until nothing is left; how many were done.
pub(super) async fn drain(queue: &Queue, worker: &Worker, run: &RunRecord) -> usize {
    let mut count = 0;
    loop {
        let claims = claim(queue, worker, &any(run, 50)).await;
        if claims.is_empty() {
            return count;
        }
        let finishes: Vec<Finish> = claims.iter().map(done).collect();
        count += finish(queue, worker, run, &finishes).await;
    }
}

/// A statement behind the queue's back.
pub(super) async fn tamper(queue: &Queue, sql: &str, args: &[Value]) -> u64 {
    in_tx!(&queue.db, "tamper", |tx| {
        Ok(tx.execute(sql, args).await?)
    })
    .unwrap()
}

/// The one number of a question.
pub(super) async fn number(queue: &Queue, sql: &str, args: &[Value]) -> i64 {
    in_tx!(&queue.db, "ask", |tx| { Ok(tx.int(sql, args).await?) }).unwrap()
}
