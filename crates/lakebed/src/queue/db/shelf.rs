//! Connections between their uses. The pool of the driver asks the server whether a connection still stands each
//! time one comes back, which costs as much as a claim; here one lies ready for the next use, and is asked
//! only after a while without any. The pool makes them and counts them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection, Database, Executor, MySql, Postgres, Sqlite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A connection that was used so shortly before is not asked whether it stands.
const IDLE_UNTESTED: Duration = Duration::from_secs(1);
/// How long a use waits for another one to end.
const WAIT: Duration = Duration::from_secs(120);

/// A database whose connections take a statement without parameters.
pub(crate) trait Spoken: Database {
    /// Says it and forgets the answer.
    fn tell<'c>(
        connection: &'c mut Self::Connection,
        sql: &'static str,
    ) -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + 'c>>;
}

macro_rules! spoken {
    ($($database:ty),*) => { $(
        impl Spoken for $database {
            fn tell<'c>(
                connection: &'c mut Self::Connection,
                sql: &'static str,
            ) -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + 'c>> {
                Box::pin(async move { connection.execute(sql).await.map(drop) })
            }
        }
    )* };
}
spoken!(Sqlite, Postgres, MySql);

/// Connections that lie ready, at most as many as the pool has.
#[derive(Debug)]
pub(super) struct Shelf<D: Spoken> {
    pool: sqlx::Pool<D>,
    ready: Mutex<Vec<(PoolConnection<D>, Instant)>>,
    uses: Arc<Semaphore>,
}

impl<D: Spoken> Shelf<D> {
    /// An empty one over the pool.
    pub(super) fn over(pool: sqlx::Pool<D>) -> Arc<Self> {
        let most = pool.options().get_max_connections();
        Arc::new(Self {
            pool,
            ready: Mutex::default(),
            uses: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
        })
    }

    /// A connection for one use; waits until one is free.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Held<D>, sqlx::Error> {
        let free = tokio::time::timeout(WAIT, Arc::clone(&self.uses).acquire_owned());
        let using = match free.await {
            Ok(Ok(using)) => using,
            Ok(Err(_)) => return Err(sqlx::Error::PoolClosed),
            Err(_) => return Err(sqlx::Error::PoolTimedOut),
        };
        while let Some((mut connection, since)) = self.pop() {
            if since.elapsed() > IDLE_UNTESTED && connection.ping().await.is_err() {
                connection.close_on_drop();
                continue;
            }
            return Ok(self.held(connection, using));
        }
        let connection = self.pool.acquire().await?;
        Ok(self.held(connection, using))
    }

    fn held(
        self: &Arc<Self>,
        connection: PoolConnection<D>,
        using: OwnedSemaphorePermit,
    ) -> Held<D> {
        Held {
            connection: Some(connection),
            shelf: Arc::clone(self),
            using: Some(using),
        }
    }

    fn pop(&self) -> Option<(PoolConnection<D>, Instant)> {
        self.ready().pop()
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, Vec<(PoolConnection<D>, Instant)>> {
        // What is inside is whole after every statement.
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes every connection, after their uses.
    pub(super) async fn close(&self) {
        self.uses.close();
        while let Some((connection, _)) = self.pop() {
            drop(connection.close().await);
        }
        self.pool.close().await;
    }
}

/// A connection in use. One that is dropped takes back what it began.
#[derive(Debug)]
pub(crate) struct Held<D: Spoken> {
    connection: Option<PoolConnection<D>>,
    shelf: Arc<Shelf<D>>,
    using: Option<OwnedSemaphorePermit>,
}

impl<D: Spoken> Held<D> {
    /// What statements are said on.
    pub(super) fn connection(&mut self) -> Result<&mut D::Connection, sqlx::Error> {
        // It goes with the last use of this value alone.
        self.connection
            .as_deref_mut()
            .ok_or(sqlx::Error::PoolClosed)
    }

    /// Says a statement without parameters.
    pub(super) async fn tell(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        D::tell(self.connection()?, sql).await
    }

    /// Ends the use. Nothing may be begun on it.
    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            let mut ready = self.shelf.ready();
            ready.push((connection, Instant::now()));
        }
    }
}

impl<D: Spoken> Drop for Held<D> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            connection.close_on_drop();
            return;
        };
        let (shelf, using) = (Arc::clone(&self.shelf), self.using.take());
        runtime.spawn(async move {
            if D::tell(&mut connection, "ROLLBACK").await.is_err() || shelf.uses.is_closed() {
                connection.close_on_drop();
            } else {
                shelf.ready().push((connection, Instant::now()));
            }
            drop(using);
        });
    }
}
