//! Opening a queue database by its place: a SQLite file, or the URL of a server.
//!
//! Migrations are numbered, append-only and additive within a line; a database of a newer line is
//! refused. On servers every table begins with `queue_`, so that a database may hold other things too.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Executor, MySql, Postgres, Sqlite};

use crate::config::mask_credentials;
use crate::error::{Error, Result};
use crate::queue::db::shelf::{Held, Shelf, Spoken};
use crate::queue::db::{Dialect, Fault, Tx, database_error};

/// `LKBQ` in the file's header: this is a queue of Lakebed.
const APPLICATION_ID: i64 = 0x4C4B_4251;
/// The line of migrations this program knows; it grows when an old program could no longer work.
const LINE: i64 = 2;
/// How long a writer waits for another one, seconds.
const WAIT_SECONDS: u32 = 30;
/// Pages that a connection to SQLite keeps in memory: those of a run of a million requests that are asked for.
const CACHE_KIB: u32 = 64 * 1024;
/// Connections of one process to a server.
const MAX_CONNECTIONS: u32 = 16;

struct Migration {
    number: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
    mysql: &'static str,
}

const MIGRATIONS: [Migration; 5] = [
    Migration {
        number: 1,
        name: "init",
        sqlite: include_str!("../schema/0001_sqlite.sql"),
        postgres: include_str!("../schema/0001_postgres.sql"),
        mysql: include_str!("../schema/0001_mysql.sql"),
    },
    Migration {
        number: 2,
        name: "leases",
        sqlite: include_str!("../schema/0002_sqlite.sql"),
        postgres: include_str!("../schema/0002_postgres.sql"),
        mysql: include_str!("../schema/0002_mysql.sql"),
    },
    // A row of InnoDB that grows is deleted and written anew, and its page splits: on MySQL what a finish writes has its
    // place from the beginning, and columns of the old names show what is zero there as null.
    Migration {
        number: 3,
        name: "rows_that_do_not_grow",
        sqlite: "",
        postgres: "",
        mysql: include_str!("../schema/0003_mysql.sql"),
    },
    Migration {
        number: 4,
        name: "body_mark",
        sqlite: include_str!("../schema/0004_sqlite.sql"),
        postgres: include_str!("../schema/0004_postgres.sql"),
        mysql: include_str!("../schema/0004_mysql.sql"),
    },
    Migration {
        number: 5,
        name: "links",
        sqlite: include_str!("../schema/0005_sqlite.sql"),
        postgres: include_str!("../schema/0005_postgres.sql"),
        mysql: include_str!("../schema/0005_mysql.sql"),
    },
];

/// An open queue database. Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct Db {
    pub(super) pool: Pool,
    /// Path or URL without its password.
    place: Arc<str>,
}

#[derive(Debug, Clone)]
pub(super) enum Pool {
    /// One connection: SQLite has one writer, and calls of a process wait in line rather than in turns
    /// of sleep. Long readers use connections of their own.
    Sqlite {
        writer: Arc<Shelf<Sqlite>>,
        readers: Arc<Shelf<Sqlite>>,
    },
    Postgres(Arc<Shelf<Postgres>>),
    Mysql(Arc<Shelf<MySql>>),
}

impl Db {
    /// Opens the database at `place`, making a SQLite file and missing tables.
    pub(crate) async fn open(place: &str) -> Result<Self> {
        let db = Self::connect(place).await?;
        db.migrate().await?;
        Ok(db)
    }

    /// Opens the database at `place` where one is that has a queue; makes no file and no table.
    pub(crate) async fn find(place: &str) -> Result<Option<Self>> {
        let path = match place.split_once("://") {
            Some(("sqlite", path)) => Some(path),
            Some(_) => None,
            None => Some(place),
        };
        if path.is_some_and(|path| !PathBuf::from(path).exists()) {
            return Ok(None);
        }
        let db = Self::connect(place).await?;
        if db.newest().await?.is_none() {
            db.close().await;
            return Ok(None);
        }
        db.migrate().await?;
        Ok(Some(db))
    }

    async fn connect(place: &str) -> Result<Self> {
        let scheme = place.split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            Some("postgres" | "postgresql") => open_postgres(place).await,
            Some("mysql" | "mariadb") => open_mysql(place).await,
            Some("sqlite") => open_sqlite(place.trim_start_matches("sqlite://")).await,
            Some(other) => Err(
                Error::invalid(format!("`{other}` is no kind of queue database"))
                    .hint("a path for SQLite, or a URL that begins with postgres:// or mysql://"),
            ),
            None => open_sqlite(place).await,
        }
    }

    /// Which database.
    pub(crate) fn dialect(&self) -> Dialect {
        match self.pool {
            Pool::Sqlite { .. } => Dialect::Sqlite,
            Pool::Postgres(_) => Dialect::Postgres,
            Pool::Mysql(_) => Dialect::Mysql,
        }
    }

    /// Path or URL, without the password.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// A transaction that may write.
    pub(crate) async fn begin(&self) -> Result<Tx, sqlx::Error> {
        Ok(match &self.pool {
            Pool::Sqlite { writer, .. } => Tx::Sqlite(begun(writer, "BEGIN IMMEDIATE").await?),
            Pool::Postgres(shelf) => Tx::Postgres(begun(shelf, "BEGIN").await?),
            // Without autocommit the first statement begins it.
            Pool::Mysql(shelf) => Tx::Mysql(shelf.take().await?),
        })
    }

    /// A transaction that only reads and is in no writer's way.
    pub(crate) async fn begin_reading(&self) -> Result<Tx, sqlx::Error> {
        Ok(match &self.pool {
            Pool::Sqlite { readers, .. } => Tx::Sqlite(begun(readers, "BEGIN").await?),
            Pool::Postgres(_) | Pool::Mysql(_) => self.begin().await?,
        })
    }

    /// Makes everything that was committed survive a power failure. The servers do so at each commit.
    pub(crate) async fn make_durable(&self) -> Result<()> {
        let Pool::Sqlite { writer, .. } = &self.pool else {
            return Ok(());
        };
        let done = async {
            let mut connection = writer.take().await?;
            connection.tell("PRAGMA wal_checkpoint(FULL)").await?;
            connection.give_back();
            Ok(())
        };
        done.await
            .map_err(|e| database_error("make the queue durable", &self.place, e))
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        match &self.pool {
            Pool::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Pool::Postgres(shelf) => shelf.close().await,
            Pool::Mysql(shelf) => shelf.close().await,
        }
    }

    async fn migrate(&self) -> Result<()> {
        if self
            .newest()
            .await?
            .is_some_and(|n| MIGRATIONS.iter().all(|m| m.number <= n))
        {
            return Ok(());
        }
        let result = self.migrate_alone().await;
        result.map_err(|fault| fault.into_error("make the tables of the queue", &self.place))
    }

    /// The newest migration of the database; `None` for a database without our tables.
    async fn newest(&self) -> Result<Option<i64>> {
        let refuse = |e| database_error("open the queue", &self.place, e);
        let mut tx = self.begin_reading().await.map_err(refuse)?;
        let there = match tx.dialect() {
            Dialect::Sqlite => "SELECT count(*) FROM sqlite_master WHERE name = 'queue_migration'",
            Dialect::Postgres => {
                "SELECT count(*) FROM pg_tables WHERE tablename = 'queue_migration' AND schemaname = ANY (current_schemas(false))"
            }
            Dialect::Mysql => {
                "SELECT count(*) FROM information_schema.tables WHERE table_name = 'queue_migration' AND table_schema = database()"
            }
        };
        if tx.int(there, &[]).await.map_err(refuse)? == 0 {
            return Ok(None);
        }
        let row = tx
            .row("SELECT max(number), max(line) FROM queue_migration", &[])
            .await
            .map_err(refuse)?;
        let Some(row) = row else { return Ok(None) };
        let line = row.maybe_int(1).map_err(refuse)?.unwrap_or(LINE);
        if line > LINE {
            return Err(Error::unavailable(format!(
                "the queue `{}` was made by a newer program (line {line}, this one knows {LINE})",
                self.place
            ))
            .hint("install the newer program on this machine"));
        }
        row.maybe_int(0).map_err(refuse)
    }

    /// Applies what is missing, one program at a time.
    async fn migrate_alone(&self) -> Result<(), Fault> {
        let mut tx = self.begin().await?;
        match tx.dialect() {
            Dialect::Sqlite => {}
            Dialect::Postgres => drop(
                tx.rows("SELECT pg_advisory_xact_lock(5497428)::text", &[])
                    .await?,
            ),
            Dialect::Mysql => {
                let held = tx.int("SELECT CAST(coalesce(get_lock(concat(database(), '.lakebed_queue'), 60), 0) AS SIGNED)", &[]).await?;
                if held != 1 {
                    return Err(Error::unavailable("another program makes the tables")
                        .retryable()
                        .into());
                }
            }
        }
        let table = "CREATE TABLE IF NOT EXISTS queue_migration \
                     (number BIGINT NOT NULL PRIMARY KEY, line BIGINT NOT NULL, name VARCHAR(64) NOT NULL)";
        tx.execute(table, &[]).await?;
        let newest = tx
            .int("SELECT coalesce(max(number), 0) FROM queue_migration", &[])
            .await?;
        for migration in MIGRATIONS.iter().filter(|m| m.number > newest) {
            let script = match tx.dialect() {
                Dialect::Sqlite => migration.sqlite,
                Dialect::Postgres => migration.postgres,
                Dialect::Mysql => migration.mysql,
            };
            for statement in script.split(";\n").map(str::trim).filter(|s| !s.is_empty()) {
                tx.execute(statement, &[]).await?;
            }
            tx.execute(
                "INSERT INTO queue_migration (number, line, name) VALUES (?, ?, ?)",
                super::values![migration.number, LINE, migration.name],
            )
            .await?;
        }
        if tx.dialect() == Dialect::Mysql {
            // Who gets the lock next must see what was written under it.
            tx.execute("COMMIT", &[]).await?;
            tx.rows(
                "SELECT CAST(release_lock(concat(database(), '.lakebed_queue')) AS SIGNED)",
                &[],
            )
            .await?;
        }
        Ok(tx.commit().await?)
    }
}

async fn open_sqlite(path: &str) -> Result<Db> {
    let file = PathBuf::from(path);
    if let Some(folder) = file
        .parent()
        .filter(|p| !p.as_os_str().is_empty() && !p.is_dir())
    {
        return Err(
            Error::not_found(format!("the folder `{}` of the queue", folder.display()))
                .hint("make the folder, or name another path"),
        );
    }
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        // The driver's thread waits for nobody until an answer has more rows.
        .row_buffer_size(512)
        .busy_timeout(Duration::from_secs(u64::from(WAIT_SECONDS)))
        .foreign_keys(false)
        .pragma("cache_size", format!("-{CACHE_KIB}"))
        .disable_statement_logging();
    let writing = options
        .clone()
        .pragma("application_id", APPLICATION_ID.to_string());
    let refuse = |e| database_error("open the queue", path, e);
    if file.exists() {
        refuse_foreign(&file, path).await?;
    }
    // Changing the journal mode of one new file from two programs is answered "busy" at once.
    let mut tries = 0;
    let writer = loop {
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_secs(120));
        match pool.connect_with(writing.clone()).await {
            Ok(writer) => break writer,
            Err(e) => {
                tries += 1;
                if !Fault::Database(e).is_transient(Dialect::Sqlite) || tries > 200 {
                    let again = SqlitePoolOptions::new().max_connections(1);
                    break again.connect_with(writing.clone()).await.map_err(refuse)?;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    let readers = SqlitePoolOptions::new()
        .max_connections(4)
        .min_connections(0)
        .connect_lazy_with(options.read_only(true));
    Ok(Db {
        pool: Pool::Sqlite {
            writer: Shelf::over(writer),
            readers: Shelf::over(readers),
        },
        place: path.into(),
    })
}

async fn begun<D: Spoken>(
    shelf: &Arc<Shelf<D>>,
    sql: &'static str,
) -> Result<Held<D>, sqlx::Error> {
    let mut held = shelf.take().await?;
    held.tell(sql).await?;
    Ok(held)
}

/// Refuses a file of another program before anything in it is changed.
async fn refuse_foreign(file: &std::path::Path, path: &str) -> Result<()> {
    use sqlx::{Connection, Row, SqliteConnection};
    if std::fs::metadata(file).is_ok_and(|m| m.len() == 0) {
        return Ok(());
    }
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .busy_timeout(Duration::from_secs(u64::from(WAIT_SECONDS)))
        .disable_statement_logging();
    let refuse = |e| database_error("open the queue", path, e);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .map_err(refuse)?;
    let row = sqlx::query("SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)")
        .fetch_one(&mut connection)
        .await
        .map_err(refuse)?;
    let (id, tables): (i64, i64) = (
        row.try_get(0).map_err(refuse)?,
        row.try_get(1).map_err(refuse)?,
    );
    connection.close().await.map_err(refuse)?;
    if id == APPLICATION_ID || (id == 0 && tables == 0) {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "`{path}` is a database of something else, not a queue"
    ))
    .hint("name another file for the queue; it never shares one with the catalog"))
}

async fn open_postgres(url: &str) -> Result<Db> {
    let options = PgConnectOptions::from_str(url).map_err(|e| bad_url(url, e))?;
    let options = options
        .application_name("lakebed queue")
        .options([
            ("lock_timeout", "30s"),
            ("timezone", "UTC"),
            // Planning costs more than a claim; every plan here reads by a key or the ready index, whatever it is asked.
            ("plan_cache_mode", "force_generic_plan"),
        ])
        .disable_statement_logging();
    let place = mask_credentials(url);
    let pool = PgPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(Duration::from_secs(60))
        .connect_with(options)
        .await
        .map_err(|e| unreachable_server(&place, e))?;
    Ok(Db {
        pool: Pool::Postgres(Shelf::over(pool)),
        place: place.into(),
    })
}

async fn open_mysql(url: &str) -> Result<Db> {
    let url_text = url.replacen("mariadb://", "mysql://", 1);
    let options = MySqlConnectOptions::from_str(&url_text).map_err(|e| bad_url(url, e))?;
    let options = options
        .charset("utf8mb4")
        .collation("utf8mb4_bin")
        .disable_statement_logging();
    let place = mask_credentials(url);
    let pool = MySqlPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(Duration::from_secs(60))
        .after_connect(|connection, _| {
            Box::pin(async move {
                // Repeatable read would lock gaps: two that insert would wait for each other.
                connection
                    .execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                    .await?;
                connection
                    .execute("SET SESSION innodb_lock_wait_timeout = 30")
                    .await?;
                // A transaction begins with its first statement: one way to the server less.
                connection.execute("SET SESSION autocommit = 0").await?;
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(|e| unreachable_server(&place, e))?;
    Ok(Db {
        pool: Pool::Mysql(Shelf::over(pool)),
        place: place.into(),
    })
}

fn bad_url(url: &str, e: sqlx::Error) -> Error {
    Error::invalid(format!(
        "`{}` is not the URL of a database",
        mask_credentials(url)
    ))
    .caused_by(e)
    .hint("for example postgres://user:password@host:5432/database")
}

fn unreachable_server(place: &str, e: sqlx::Error) -> Error {
    Error::unavailable(format!(
        "open the queue: the database `{place}` could not be reached"
    ))
    .caused_by(e)
    .hint("check that the server runs, that the database exists and that the user may use it")
    .retryable()
}
