//! One statement that is a transaction by itself: it costs one way to the server and back. For SQLite, which has no way
//! to go but a thread, it may be several with `BEGIN` and `COMMIT` among them.

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
