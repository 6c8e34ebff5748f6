//! The ceiling: one table, one statement a claim, one a finish, each its own transaction (on MySQL, which
//! cannot return what it updates, a claim is a look and an update in one transaction). A request is a row with
//! 200 bytes to carry, unique by 16 bytes of its key; nothing is counted, no run, worker or host is looked at.
//! Every worker begins behind the row that it claimed last. SQLite's limit is cast, as the queue's: as a parameter by itself
//! it has the statement planned anew at each call.

use std::time::Instant;

use lakebed::Result;
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, Row, SqlitePool};

use super::Job;
use super::place::{Place, Pool, parts, refuse};

const TABLE_SQLITE: &[&str] = &[
    "CREATE TABLE req (id INTEGER NOT NULL PRIMARY KEY, run INTEGER NOT NULL, fp BLOB NOT NULL UNIQUE, state INTEGER NOT NULL, \
     prio INTEGER NOT NULL, not_before INTEGER NOT NULL, attempt INTEGER NOT NULL, owner INTEGER NOT NULL, \
     lease_until INTEGER NOT NULL, payload TEXT NOT NULL) STRICT",
    "CREATE INDEX req_ready ON req (run, prio, not_before, id) WHERE state IN (0, 3)",
    "CREATE INDEX req_in_flight ON req (run) WHERE state = 1",
];
const CLAIM_SQLITE: &str = "UPDATE req SET state = 1, attempt = attempt + 1, owner = ?1, \
    lease_until = unixepoch('subsec') * 1000000 + 60000000 WHERE id IN (SELECT id FROM req INDEXED BY req_ready \
    WHERE run = 1 AND state IN (0, 3) AND not_before <= unixepoch('subsec') * 1000000 AND (prio, not_before, id) > (0, 0, ?2) \
    ORDER BY prio, not_before, id LIMIT CAST(?3 AS INTEGER)) RETURNING id, attempt, fp, payload";
const FINISH_SQLITE: &str = "UPDATE req SET state = 2 FROM json_each(?1) d WHERE req.id = d.value ->> 0 \
    AND req.attempt = d.value ->> 1 AND req.state = 1 AND req.owner = ?2";

const TABLE_POSTGRES: &[&str] = &[
    "CREATE TABLE req (id BIGINT NOT NULL PRIMARY KEY, run BIGINT NOT NULL, fp BYTEA NOT NULL UNIQUE, state SMALLINT NOT NULL, \
     prio BIGINT NOT NULL, not_before BIGINT NOT NULL, attempt BIGINT NOT NULL, owner BIGINT NOT NULL, \
     lease_until BIGINT NOT NULL, payload TEXT NOT NULL) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01)",
    "CREATE INDEX req_ready ON req (run, prio, not_before, id) WHERE state IN (0, 3)",
    "CREATE INDEX req_in_flight ON req (run) WHERE state = 1",
];
const CLAIM_POSTGRES: &str = "WITH c AS MATERIALIZED (SELECT id FROM req WHERE run = 1 AND state IN (0, 3) \
    AND not_before <= extract(epoch FROM clock_timestamp()) * 1000000 AND (prio, not_before, id) > (0, 0, $2) \
    ORDER BY prio, not_before, id LIMIT $3 FOR UPDATE SKIP LOCKED) \
    UPDATE req r SET state = 1, attempt = attempt + 1, owner = $1, \
    lease_until = extract(epoch FROM clock_timestamp()) * 1000000 + 60000000 FROM c WHERE r.id = c.id \
    RETURNING r.id, r.attempt, r.fp, r.payload";
const FINISH_POSTGRES: &str = "UPDATE req r SET state = 2 FROM unnest($1::bigint[], $2::bigint[]) AS d (id, attempt) \
    WHERE r.id = d.id AND r.attempt = d.attempt AND r.owner = $3 AND r.state = 1 RETURNING r.id";

const TABLE_MYSQL: &[&str] = &[
    "CREATE TABLE req (id BIGINT NOT NULL PRIMARY KEY, run BIGINT NOT NULL, fp BINARY(16) NOT NULL UNIQUE, state SMALLINT NOT NULL, \
     prio BIGINT NOT NULL, not_before BIGINT NOT NULL, attempt BIGINT NOT NULL, owner BIGINT NOT NULL, \
     lease_until BIGINT NOT NULL, payload VARCHAR(1000) NOT NULL, ready BIGINT AS (IF(state IN (0, 3), 1, NULL)) STORED, \
     KEY req_ready (run, ready, prio, not_before, id)) ENGINE = InnoDB",
];
const LOOK_MYSQL: &str = "SELECT id, attempt + 1, fp, payload FROM req FORCE INDEX (req_ready) \
    WHERE run = 1 AND ready = 1 AND not_before <= unix_timestamp(sysdate(6)) * 1000000 \
    ORDER BY prio, not_before, id LIMIT ? FOR UPDATE SKIP LOCKED";

/// A table with so many pending requests behind so many that are done.
pub async fn fill(place: &Place, workers: u32, rows: i64, done: i64) -> Result<Pool> {
    let pool = place.connect(workers).await?;
    let tables = match pool {
        Pool::Sqlite(_) => TABLE_SQLITE,
        Pool::Postgres(_) => TABLE_POSTGRES,
        Pool::Mysql(_) => TABLE_MYSQL,
    };
    let mut statements: Vec<String> = tables.iter().map(|s| (*s).to_owned()).collect();
    for (first, count) in parts(0, done) {
        statements.push(fill_sql(&pool, first, count, 2));
    }
    for (first, count) in parts(done, rows) {
        statements.push(fill_sql(&pool, first, count, 0));
    }
    pool.run(&statements).await?;
    pool.settle().await?;
    Ok(pool)
}

/// Starts workers that claim and finish until the time is over.
pub fn start(pool: &Pool, job: &Job, end: Instant) -> Vec<tokio::task::JoinHandle<Result<u64>>> {
    let one = |owner| {
        let (pool, batch) = (pool.clone(), job.batch);
        tokio::spawn(async move {
            let worked = match &pool {
                Pool::Sqlite(pool) => work_sqlite(pool, owner, batch, end).await,
                Pool::Postgres(pool) => work_postgres(pool, owner, batch, end).await,
                Pool::Mysql(pool) => work_mysql(pool, owner, batch, end).await,
            };
            worked.map_err(refuse)
        })
    };
    (1..=i64::from(job.workers)).map(one).collect()
}

fn fill_sql(pool: &Pool, first: i64, count: i64, state: i64) -> String {
    let fingerprint = match pool {
        Pool::Sqlite(_) => format!("CAST(printf('%016d', {first} + i) AS BLOB)"),
        Pool::Postgres(_) => format!("convert_to(lpad(({first} + i)::text, 16, '0'), 'UTF8')"),
        Pool::Mysql(_) => format!("lpad({first} + i, 16, '0')"),
    };
    let (columns, payload) = (
        "id, run, fp, state, prio, not_before, attempt, owner, lease_until, payload",
        "x".repeat(200),
    );
    format!(
        "INSERT INTO req ({columns}) SELECT {first} + i, 1, {fingerprint}, {state}, 0, 0, 0, 0, 0, '{payload}' FROM {}",
        pool.numbers(count)
    )
}

/// What a claim brought: numbers and attempts, and bytes of what it carries, which are read as a worker would.
struct Taken {
    ids: Vec<i64>,
    attempts: Vec<i64>,
}

macro_rules! taken {
    ($rows:expr) => {{
        let mut taken = Taken {
            ids: Vec::with_capacity($rows.len()),
            attempts: Vec::with_capacity($rows.len()),
        };
        for row in &$rows {
            taken.ids.push(row.try_get(0)?);
            taken.attempts.push(row.try_get(1)?);
            let _read: (Vec<u8>, String) = (row.try_get(2)?, row.try_get(3)?);
        }
        taken
    }};
}

async fn work_sqlite(
    pool: &SqlitePool,
    owner: i64,
    batch: u32,
    end: Instant,
) -> Result<u64, sqlx::Error> {
    let (mut count, mut mark) = (0, 0_i64);
    let mut connection = pool.acquire().await?;
    while Instant::now() < end {
        let claim = sqlx::query(CLAIM_SQLITE).bind(owner).bind(mark).bind(batch);
        let rows = claim.fetch_all(&mut *connection).await?;
        let taken = taken!(rows);
        mark = taken.ids.iter().copied().max().unwrap_or(0);
        let pairs: Vec<String> = (taken.ids.iter().zip(&taken.attempts))
            .map(|(id, attempt)| format!("[{id},{attempt}]"))
            .collect();
        let finish = sqlx::query(FINISH_SQLITE).bind(format!("[{}]", pairs.join(",")));
        let ended = finish.bind(owner).execute(&mut *connection).await?;
        expect(ended.rows_affected(), taken.ids.len())?;
        count += ended.rows_affected();
    }
    Ok(count)
}

/// A finish that ends nothing is no measurement.
fn expect(ended: u64, taken: usize) -> Result<(), sqlx::Error> {
    if ended == taken as u64 {
        return Ok(());
    }
    let message = format!("{ended} of {taken} requests were ended");
    Err(sqlx::Error::Configuration(message.into()))
}

async fn work_postgres(
    pool: &PgPool,
    owner: i64,
    batch: u32,
    end: Instant,
) -> Result<u64, sqlx::Error> {
    let (mut count, mut mark) = (0, 0_i64);
    let mut connection = pool.acquire().await?;
    while Instant::now() < end {
        let claim = sqlx::query(CLAIM_POSTGRES).bind(owner).bind(mark);
        let claim = claim.bind(i64::from(batch));
        let rows = claim.fetch_all(&mut *connection).await?;
        let taken = taken!(rows);
        mark = taken.ids.iter().copied().max().unwrap_or(0);
        let count_taken = taken.ids.len();
        let finish = sqlx::query(FINISH_POSTGRES)
            .bind(taken.ids)
            .bind(taken.attempts);
        let ended = finish.bind(owner).fetch_all(&mut *connection).await?;
        expect(ended.len() as u64, count_taken)?;
        count += ended.len() as u64;
    }
    Ok(count)
}

async fn work_mysql(
    pool: &MySqlPool,
    owner: i64,
    batch: u32,
    end: Instant,
) -> Result<u64, sqlx::Error> {
    let mut count = 0;
    let mut connection = pool.acquire().await?;
    while Instant::now() < end {
        let mut tx = sqlx::Connection::begin(&mut *connection).await?;
        let rows = sqlx::query(LOOK_MYSQL)
            .bind(batch)
            .fetch_all(&mut *tx)
            .await?;
        let taken = taken!(rows);
        if taken.ids.is_empty() {
            continue;
        }
        let marks = vec!["?"; taken.ids.len()].join(", ");
        let sql = format!(
            "UPDATE req SET state = 1, attempt = attempt + 1, owner = ?, \
             lease_until = unix_timestamp(sysdate(6)) * 1000000 + 60000000 WHERE id IN ({marks})"
        );
        let mut update = sqlx::query(AssertSqlSafe(sql)).bind(owner);
        for id in &taken.ids {
            update = update.bind(id);
        }
        update.execute(&mut *tx).await?;
        tx.commit().await?;
        let groups = vec!["(?, ?)"; taken.ids.len()].join(", ");
        let sql = format!(
            "UPDATE req SET state = 2 WHERE id IN ({marks}) AND (id, attempt) IN ({groups}) AND owner = ? AND state = 1"
        );
        let mut finish = sqlx::query(AssertSqlSafe(sql));
        for id in &taken.ids {
            finish = finish.bind(id);
        }
        for (id, attempt) in taken.ids.iter().zip(&taken.attempts) {
            finish = finish.bind(id).bind(attempt);
        }
        let ended = finish.bind(owner).execute(&mut *connection).await?;
        expect(ended.rows_affected(), taken.ids.len())?;
        count += ended.rows_affected();
    }
    Ok(count)
}
