//! One statement that is a transaction by itself: it costs one way to the server and back. For SQLite, which has no way
//! to go but a thread, it may be several with `BEGIN` and `COMMIT` among them.

use sqlx::error::ErrorKind;

use crate::error::Result;
use crate::queue::db::open::Pool;
use crate::queue::db::value::bind_all;
use crate::queue::db::{Db, DbRow, Tries, Value};

impl Db {
    /// Runs one statement in a transaction of its own; all its rows. It is said again when another
    /// transaction was in its way.
    pub(crate) async fn rows_alone(
        &self,
        action: &str,
        template: &str,
        args: &[Value],
    ) -> Result<Vec<DbRow>> {
        let mut tries = Tries::new(self, action);
        loop {
            match self.say_alone(template, args).await {
                Ok(rows) => return Ok(rows),
                Err(e) => tries.again(e.into()).await?,
            }
        }
    }

    /// Runs statements that change all they name or nothing: their last step puts a null where none may stand unless
    /// everything is as it expects. Whether it was. Of MySQL a script without parameters, which ends in `COMMIT`.
    pub(crate) async fn all_or_nothing(
        &self,
        action: &str,
        template: &str,
        args: &[Value],
    ) -> Result<bool> {
        let mut tries = Tries::new(self, action);
        loop {
            let e = match self.say_all(template, args).await {
                Ok(()) => return Ok(true),
                Err(e) => e,
            };
            // What was begun is taken back with the connection's use.
            if matches!(&e, sqlx::Error::Database(d) if d.kind() == ErrorKind::NotNullViolation) {
                return Ok(false);
            }
            tries.again(e.into()).await?;
        }
    }

    async fn say_all(&self, template: &str, args: &[Value]) -> Result<(), sqlx::Error> {
        let sql = self.dialect().sql(template);
        match &self.pool {
            Pool::Sqlite { writer, .. } => {
                let mut held = writer.take().await?;
                let query = bind_all!(sql, args, no_columns);
                query.execute(held.connection()?).await?;
                held.give_back();
            }
            Pool::Postgres(shelf) => {
                let mut held = shelf.take().await?;
                let query = bind_all!(sql, args, columns);
                query.execute(held.connection()?).await?;
                held.give_back();
            }
            Pool::Mysql(shelf) => {
                let mut held = shelf.take().await?;
                let script = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
                script.execute(held.connection()?).await?;
                held.give_back();
            }
        }
        Ok(())
    }

    async fn say_alone(&self, template: &str, args: &[Value]) -> Result<Vec<DbRow>, sqlx::Error> {
        let sql = self.dialect().sql(template);
        match &self.pool {
            Pool::Sqlite { writer, .. } => {
                let mut held = writer.take().await?;
                let rows = bind_all!(sql, args, no_columns)
                    .fetch_all(held.connection()?)
                    .await?;
                held.give_back();
                Ok(rows.into_iter().map(DbRow::Sqlite).collect())
            }
            Pool::Postgres(shelf) => {
                let mut held = shelf.take().await?;
                let rows = bind_all!(sql, args, columns)
                    .fetch_all(held.connection()?)
                    .await?;
                held.give_back();
                Ok(rows.into_iter().map(DbRow::Postgres).collect())
            }
            Pool::Mysql(shelf) => {
                let mut held = shelf.take().await?;
                let rows = bind_all!(sql, args, no_columns)
                    .fetch_all(held.connection()?)
                    .await?;
                held.tell("COMMIT").await?;
                held.give_back();
                Ok(rows.into_iter().map(DbRow::Mysql).collect())
            }
        }
    }
}
