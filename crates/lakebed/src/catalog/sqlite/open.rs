//! Opening the file: foreign files are refused before anything is changed, then the migrations run.
//!
//! Migrations are numbered, append-only and additive within a line (CAT-4); a file of a newer line is
//! refused, a newer number of the same line is worked with, an older line is brought up with all it holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Row, Sqlite, SqliteConnection, Transaction};

use crate::catalog::sqlite::row::{Database, is_busy};
use crate::error::{Error, Result};

/// `LKBC` in the file's header: this is a catalog of Lakebed.
const APPLICATION_ID: i64 = 0x4C4B_4243;
/// The line of migrations this program knows; it grows when an old program could no longer work.
const LINE: i64 = 3;
/// Bytes of a page of a new file: rows of statistics are some hundred bytes, and each page is a call.
const PAGE_SIZE: u32 = 8192;
/// Pages in the write-ahead log before they are carried into the file: a page that many transactions
/// change is carried once.
const CHECKPOINT_PAGES: &str = "4096";
/// How long a writer waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Tries of a step that SQLite answers with "busy" at once, and the pause between them.
const OPEN_TRIES: u32 = 600;
const OPEN_PAUSE: Duration = Duration::from_millis(50);

struct Migration {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 3] = [
    Migration {
        number: 1,
        name: "init",
        sql: include_str!("migrations/0001_init.sql"),
    },
    Migration {
        number: 2,
        name: "rows of files",
        sql: include_str!("migrations/0002_rows_of_files.sql"),
    },
    Migration {
        number: 3,
        name: "shapes of statistics",
        sql: include_str!("migrations/0003_shapes_of_statistics.sql"),
    },
];

/// A catalog in a SQLite file. Cheap to clone; all clones share one pool.
#[derive(Debug, Clone)]
pub struct SqliteCatalog {
    pub(super) pool: SqlitePool,
    pub(super) database: Database,
    /// Whether the write-ahead log is being carried into the file beside the writers.
    pub(super) carrying: Arc<AtomicBool>,
}

impl SqliteCatalog {
    /// Opens the catalog in the file at `path`, making it where there is none.
    ///
    /// A file that is no SQLite database, that belongs to another program, or that a newer line of
    /// Lakebed made, is refused and left as it is.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let database = Database::new(path.display().to_string());
        check_folder(&path)?;
        let mut tries = 0;
        loop {
            let opened = Self::try_open(&path, &database).await;
            match opened {
                // Two programs that make the same file at once meet here: SQLite does not wait when
                // the journal mode changes, it answers "busy".
                Err(Failure::Database(e)) if is_busy(&e) && tries < OPEN_TRIES => {
                    tries += 1;
                    let pause = tokio::task::spawn_blocking(|| std::thread::sleep(OPEN_PAUSE));
                    pause
                        .await
                        .map_err(|e| Error::internal("wait for another program").caused_by(e))?;
                }
                Err(Failure::Database(e)) => return Err(database.error("open the catalog", e)),
                Err(Failure::Refused(e)) => return Err(e),
                Ok(catalog) => return Ok(catalog),
            }
        }
    }

    async fn try_open(path: &Path, database: &Database) -> Result<Self, Failure> {
        if path.exists() {
            refuse_foreign(path, database).await?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .page_size(PAGE_SIZE)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            // The fold keeps the references; SQLite would look each of them up once more.
            .foreign_keys(false)
            // What a statement of many rows would need to take itself back.
            .pragma("temp_store", "MEMORY")
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .row_buffer_size(1024)
            .disable_statement_logging();
        let pool = SqlitePoolOptions::new()
            .max_connections(8)
            .acquire_timeout(Duration::from_secs(60))
            // A file does not hang up: asking before each use is a way to another thread for nothing.
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
        let catalog = Self {
            pool,
            database: database.clone(),
            carrying: Arc::default(),
        };
        catalog.migrate().await?;
        Ok(catalog)
    }

    /// Closes every connection; the last process that does so folds the write-ahead log in.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A transaction that holds the write lock from its beginning.
    pub(super) async fn begin(&self, action: &str) -> Result<Transaction<'static, Sqlite>> {
        self.pool
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|e| self.database.error(action, e))
    }

    async fn migrate(&self) -> Result<(), Failure> {
        // A reader's look first: most openings need no write lock.
        let mut connection = self.pool.acquire().await?;
        if let Some(newest) = newest_migration(&mut connection, &self.database).await?
            && MIGRATIONS.iter().all(|m| m.number <= newest)
        {
            return Ok(());
        }
        drop(connection);
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let newest = newest_migration(&mut tx, &self.database).await?;
        if newest.is_none() {
            sqlx::query(
                "CREATE TABLE schema_migration (number INTEGER NOT NULL PRIMARY KEY, \
                 line INTEGER NOT NULL, name TEXT NOT NULL) STRICT",
            )
            .execute(&mut *tx)
            .await?;
        }
        for migration in MIGRATIONS.iter().filter(|m| Some(m.number) > newest) {
            sqlx::raw_sql(migration.sql).execute(&mut *tx).await?;
            sqlx::query("INSERT INTO schema_migration (number, line, name) VALUES (?, ?, ?)")
                .bind(migration.number)
                .bind(LINE)
                .bind(migration.name)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// Why an opening did not succeed: worth another try, or not.
enum Failure {
    Database(sqlx::Error),
    Refused(Error),
}

impl From<sqlx::Error> for Failure {
    fn from(e: sqlx::Error) -> Self {
        Self::Database(e)
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Refused(e)
    }
}

fn check_folder(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(Error::invalid("the catalog is a folder, not a file")
            .with("catalog", path.display())
            .hint("name a file, for example `catalog.db`"));
    }
    if folder.is_dir() {
        return Ok(());
    }
    Err(Error::not_found("the catalog's folder does not exist")
        .with("folder", folder.display())
        .hint("make the folder, or correct `catalog` in lakebed.toml"))
}

/// Looks at an existing file without changing it.
async fn refuse_foreign(path: &Path, database: &Database) -> Result<(), Failure> {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
        .connect()
        .await?;
    // One statement, so one moment: another program may make its tables between two of them.
    let row = sqlx::query(
        "SELECT (SELECT application_id FROM pragma_application_id), \
         (SELECT count(*) FROM sqlite_master)",
    )
    .fetch_one(&mut connection)
    .await?;
    let (id, tables): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let newest = match (id, tables) {
        (APPLICATION_ID, _) => newest_migration(&mut connection, database).await.map(drop),
        (0, 0) => Ok(()),
        _ => Err(Failure::Refused(
            Error::precondition("this database belongs to another program")
                .with("catalog", database.location())
                .with("application id", id)
                .with("tables", tables)
                .hint("name another file as `catalog` in lakebed.toml; nothing was changed"),
        )),
    };
    connection.close().await?;
    newest
}

/// The newest migration that was run; `None` in an empty file. A newer line is refused.
async fn newest_migration(
    connection: &mut SqliteConnection,
    database: &Database,
) -> Result<Option<i64>, Failure> {
    let table: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = 'schema_migration'")
            .fetch_one(&mut *connection)
            .await?;
    if table == 0 {
        return Ok(None);
    }
    let row = sqlx::query("SELECT max(number), max(line) FROM schema_migration")
        .fetch_one(connection)
        .await?;
    let line: Option<i64> = row.try_get(1)?;
    if line.is_some_and(|l| l > LINE) {
        return Err(Failure::Refused(
            Error::unavailable("this catalog was made by a newer Lakebed")
                .with("catalog", database.location())
                .with("migration line", line.unwrap_or(0))
                .hint(format!(
                    "this program knows line {LINE}: install a newer one, or name another catalog \
                     file and run `lakebed catalog rebuild`"
                )),
        ));
    }
    Ok(row.try_get(0)?)
}

#[cfg(test)]
mod tests;
