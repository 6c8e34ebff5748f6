//! A transaction on one of the three databases, and how often one is tried.

use std::time::Duration;

use sqlx::{MySql, Postgres, Sqlite};

use crate::error::Result;
use crate::queue::db::shelf::Held;
use crate::queue::db::value::bind_all;
use crate::queue::db::{Db, DbRow, Dialect, Fault, Value};

/// How often a transaction is begun again when another one is in its way.
const MAX_TRIES: u32 = 12;

/// A transaction. Dropped without a commit, it is taken back.
pub(crate) enum Tx {
    /// Of SQLite: holds the write lock from its beginning.
    Sqlite(Held<Sqlite>),
    /// Of PostgreSQL, read committed.
    Postgres(Held<Postgres>),
    /// Of MySQL or MariaDB, read committed.
    Mysql(Held<MySql>),
}

impl Tx {
    /// Which database.
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
            Self::Mysql(_) => Dialect::Mysql,
        }
    }

    /// Runs a statement; the number of rows it changed.
    pub(crate) async fn execute(
        &mut self,
        template: &str,
        args: &[Value],
    ) -> Result<u64, sqlx::Error> {
        let sql = self.dialect().sql(template);
        match self {
            Self::Sqlite(tx) => {
                let query = bind_all!(sql, args, no_columns);
                Ok(query.execute(tx.connection()?).await?.rows_affected())
            }
            Self::Postgres(tx) => {
                let query = bind_all!(sql, args, columns);
                Ok(query.execute(tx.connection()?).await?.rows_affected())
            }
            Self::Mysql(tx) => {
                let query = bind_all!(sql, args, no_columns);
                Ok(query.execute(tx.connection()?).await?.rows_affected())
            }
        }
    }

    /// Runs a statement; all its rows.
    pub(crate) async fn rows(
        &mut self,
        template: &str,
        args: &[Value],
    ) -> Result<Vec<DbRow>, sqlx::Error> {
        let sql = self.dialect().sql(template);
        match self {
            Self::Sqlite(tx) => {
                let rows = bind_all!(sql, args, no_columns)
                    .fetch_all(tx.connection()?)
                    .await?;
                Ok(rows.into_iter().map(DbRow::Sqlite).collect())
            }
            Self::Postgres(tx) => {
                let rows = bind_all!(sql, args, columns)
                    .fetch_all(tx.connection()?)
                    .await?;
                Ok(rows.into_iter().map(DbRow::Postgres).collect())
            }
            Self::Mysql(tx) => {
                let rows = bind_all!(sql, args, no_columns)
                    .fetch_all(tx.connection()?)
                    .await?;
                Ok(rows.into_iter().map(DbRow::Mysql).collect())
            }
        }
    }

    /// The first row, if there is one.
    pub(crate) async fn row(
        &mut self,
        template: &str,
        args: &[Value],
    ) -> Result<Option<DbRow>, sqlx::Error> {
        Ok(self.rows(template, args).await?.into_iter().next())
    }

    /// The one integer that a statement answers with.
    pub(crate) async fn int(&mut self, template: &str, args: &[Value]) -> Result<i64, sqlx::Error> {
        let row = self.row(template, args).await?;
        row.ok_or(sqlx::Error::RowNotFound)?.int(0)
    }

    /// The number of the row that this transaction inserted last into a table with counted rows.
    /// `inserted` is the answer of the insert where the database gives one.
    pub(crate) async fn insert_id(
        &mut self,
        template: &str,
        args: &[Value],
    ) -> Result<i64, sqlx::Error> {
        match self.dialect() {
            Dialect::Sqlite | Dialect::Postgres => {
                self.int(&format!("{template} RETURNING id"), args).await
            }
            Dialect::Mysql => {
                self.execute(template, args).await?;
                self.int("SELECT CAST(last_insert_id() AS SIGNED)", &[])
                    .await
            }
        }
    }

    /// Commits.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    /// Runs a last statement without parameters and commits; of MySQL by one way to the server and back.
    pub(crate) async fn commit_with(mut self, statement: &str) -> Result<(), sqlx::Error> {
        if let Self::Mysql(mut held) = self {
            let sql = format!("{}; COMMIT", Dialect::Mysql.sql(statement));
            let script = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
            script.execute(held.connection()?).await?;
            held.give_back();
            return Ok(());
        }
        self.execute(statement, &[]).await?;
        self.commit().await
    }

    /// Takes everything back. An error is none: the database has ended the transaction by itself, and
    /// the fault that led here says more.
    pub(crate) async fn rollback(self) {
        drop(self.end("ROLLBACK").await);
    }

    async fn end(self, word: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(mut held) => {
                held.tell(word).await?;
                held.give_back();
            }
            Self::Postgres(mut held) => {
                held.tell(word).await?;
                held.give_back();
            }
            Self::Mysql(mut held) => {
                held.tell(word).await?;
                held.give_back();
            }
        }
        Ok(())
    }
}

/// How often a transaction was tried.
pub(crate) struct Tries<'a> {
    db: &'a Db,
    action: &'a str,
    count: u32,
}

impl<'a> Tries<'a> {
    /// None yet.
    pub(crate) fn new(db: &'a Db, action: &'a str) -> Self {
        Self {
            db,
            action,
            count: 0,
        }
    }

    /// Waits for another try, or says why there is none.
    pub(crate) async fn again(&mut self, fault: Fault) -> Result<()> {
        self.count += 1;
        let again = fault.is_transient(self.db.dialect()) && self.count < MAX_TRIES;
        if !again {
            return Err(fault.into_error(self.action, self.db.place()));
        }
        // Two that met once must not meet again: the process id and the count tell them apart.
        let spread = u64::from(std::process::id() % 17) + u64::from(self.count) * 7;
        tokio::time::sleep(Duration::from_millis(spread)).await;
        Ok(())
    }
}

impl std::fmt::Debug for Tx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "transaction on {}", self.dialect().name())
    }
}
