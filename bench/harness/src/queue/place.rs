//! A database of one measurement.

use lakebed::time::{Clock, unique_id};
use lakebed::{Error, Result};
use sqlx::mysql::MySqlPool;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection};

/// A new database: its URL, and the server that it is dropped from.
pub struct Place {
    pub url: String,
    server: String,
    name: String,
}

/// A pool of connections to one of the three.
#[derive(Clone)]
pub enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
    Mysql(MySqlPool),
}

/// Requests that are filled in by one statement: a server writes its log by and by, not all at once.
const PART: i64 = 100_000;

/// Numbers from `first` on, in parts: where each begins, and how many it has.
pub fn parts(first: i64, count: i64) -> impl Iterator<Item = (i64, i64)> {
    let whole = (0..count).step_by(PART.unsigned_abs() as usize);
    whole.map(move |at| (first + at, PART.min(count - at)))
}

pub fn refuse(e: sqlx::Error) -> Error {
    Error::unavailable("ask the database").caused_by(e)
}

impl Place {
    /// Makes a database on the server, or a file in the folder.
    pub async fn make(server: &str) -> Result<Self> {
        let name = format!("bench_{}", unique_id(&Clock::System));
        let place = Self {
            url: format!("{server}/{name}"),
            server: server.to_owned(),
            name,
        };
        let sql = format!("CREATE DATABASE {}", place.name);
        place.tell_server(&sql).await?;
        Ok(place)
    }

    async fn tell_server(&self, sql: &str) -> Result<()> {
        let sql = AssertSqlSafe(sql.to_owned());
        if self.server.starts_with("postgres") {
            let url = format!("{}/postgres", self.server);
            let mut connection = PgConnection::connect(&url).await.map_err(refuse)?;
            connection.execute(sql).await.map_err(refuse)?;
        } else if self.server.starts_with("mysql") {
            let url = format!("{}/mysql", self.server);
            let mut connection = MySqlConnection::connect(&url).await.map_err(refuse)?;
            connection.execute(sql).await.map_err(refuse)?;
        }
        Ok(())
    }

    /// Connections with the durability that the queue has: of SQLite WAL and `synchronous = normal`, of the
    /// servers as they are set up.
    pub async fn connect(&self, connections: u32) -> Result<Pool> {
        if self.server.starts_with("postgres") {
            let options = sqlx::postgres::PgPoolOptions::new().max_connections(connections);
            let pool = options.connect(&self.url).await.map_err(refuse)?;
            return Ok(Pool::Postgres(pool));
        }
        if self.server.starts_with("mysql") {
            let options = sqlx::mysql::MySqlPoolOptions::new().max_connections(connections);
            let options = options.after_connect(|connection, _| {
                Box::pin(async move {
                    let level = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
                    connection.execute(level).await.map(drop)
                })
            });
            let pool = options.connect(&self.url).await.map_err(refuse)?;
            return Ok(Pool::Mysql(pool));
        }
        let options = SqliteConnectOptions::new()
            .filename(&self.url)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .row_buffer_size(512)
            .pragma("cache_size", "-65536")
            .busy_timeout(std::time::Duration::from_secs(30));
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect_with(options).await.map_err(refuse)?;
        Ok(Pool::Sqlite(pool))
    }

    /// A transaction that keeps its view of the database, as a backup or an analysis does: PostgreSQL alone.
    pub async fn hold_snapshot(&self, wanted: bool) -> Result<Option<PgConnection>> {
        if !wanted {
            return Ok(None);
        }
        let mut held = PgConnection::connect(&self.url).await.map_err(refuse)?;
        for sql in [
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "SELECT count(*) FROM pg_class",
        ] {
            held.execute(sql).await.map_err(refuse)?;
        }
        Ok(Some(held))
    }

    /// Takes the database away.
    pub async fn drop(self) -> Result<()> {
        if self.server.starts_with("postgres") {
            let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
            return self.tell_server(&sql).await;
        }
        if self.server.starts_with("mysql") {
            return self
                .tell_server(&format!("DROP DATABASE {}", self.name))
                .await;
        }
        for end in ["", "-wal", "-shm"] {
            let path = format!("{}{end}", self.url);
            if std::path::Path::new(&path).exists() {
                std::fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
            }
        }
        Ok(())
    }
}

impl Pool {
    /// Closes every connection.
    pub async fn close(self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
            Self::Mysql(pool) => pool.close().await,
        }
    }

    /// Runs statements, one after the other.
    pub async fn run(&self, statements: &[String]) -> Result<()> {
        for sql in statements {
            let sql = AssertSqlSafe(sql.clone());
            match self {
                Self::Sqlite(pool) => pool.execute(sql).await.map(drop),
                Self::Postgres(pool) => pool.execute(sql).await.map(drop),
                Self::Mysql(pool) => pool.execute(sql).await.map(drop),
            }
            .map_err(refuse)?;
        }
        Ok(())
    }

    /// Numbers `i` from 1 to `n` as a relation to select from.
    pub fn numbers(&self, n: i64) -> String {
        match self {
            Self::Sqlite(_) => format!(
                "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) SELECT i FROM n) n"
            ),
            Self::Postgres(_) => format!("generate_series(1, {n}) AS n (i)"),
            Self::Mysql(_) => format!("(SELECT seq AS i FROM seq_1_to_{n}) n"),
        }
    }

    /// Puts the database in order after it was filled, so that this is not measured.
    pub async fn settle(&self) -> Result<()> {
        let statements: &[&str] = match self {
            Self::Sqlite(_) => &["PRAGMA wal_checkpoint(TRUNCATE)"],
            Self::Postgres(_) => &["VACUUM ANALYZE", "CHECKPOINT"],
            Self::Mysql(_) => &["SET GLOBAL innodb_max_dirty_pages_pct = 0"],
        };
        let statements: Vec<String> = statements.iter().map(|s| (*s).to_owned()).collect();
        self.run(&statements).await?;
        if let Self::Mysql(pool) = self {
            settle_mysql(pool).await?;
        }
        Ok(())
    }
}

/// Waits until the pages that were filled are on the disk.
async fn settle_mysql(pool: &MySqlPool) -> Result<()> {
    for _ in 0..600 {
        let sql = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'";
        let row = sqlx::query(sql).fetch_one(pool).await.map_err(refuse)?;
        let dirty: String = sqlx::Row::try_get(&row, 1).map_err(refuse)?;
        if dirty.parse::<u64>().unwrap_or(0) < 50 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let usual = "SET GLOBAL innodb_max_dirty_pages_pct = 90";
    pool.execute(usual).await.map(drop).map_err(refuse)
}
