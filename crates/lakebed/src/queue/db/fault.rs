//! What can go wrong in a transaction: the database says no, or we do.

use crate::error::Error;
use crate::queue::db::Dialect;

/// A failed step within a transaction.
pub(crate) enum Fault {
    /// The database's own error.
    Database(sqlx::Error),
    /// Our refusal; the transaction is taken back.
    Refused(Error),
}

impl From<sqlx::Error> for Fault {
    fn from(e: sqlx::Error) -> Self {
        Self::Database(e)
    }
}

impl From<Error> for Fault {
    fn from(e: Error) -> Self {
        Self::Refused(e)
    }
}

impl Fault {
    /// Whether the same transaction may succeed when it is begun again: another one was in its way.
    pub(crate) fn is_transient(&self, dialect: Dialect) -> bool {
        let Self::Database(sqlx::Error::Database(e)) = self else {
            return false;
        };
        // Two inserted the same thing: begun again, the later one finds it.
        if e.is_unique_violation() {
            return true;
        }
        let code = e.code().unwrap_or_default();
        match dialect {
            // Busy (5, 261 recovery, 517 snapshot), locked (6).
            Dialect::Sqlite => matches!(code.as_ref(), "5" | "6" | "261" | "517"),
            // Serialization failure, deadlock, lock not available.
            Dialect::Postgres => matches!(code.as_ref(), "40001" | "40P01" | "55P03"),
            Dialect::Mysql => e
                .try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()
                // Lock wait timeout, deadlock, a record that changed since it was read (MariaDB).
                .is_some_and(|e| matches!(e.number(), 1205 | 1213 | 1020)),
        }
    }

    /// The error of the crate: what was done, on which database.
    pub(crate) fn into_error(self, action: &str, place: &str) -> Error {
        match self {
            Self::Refused(e) => e,
            Self::Database(e) => database_error(action, place, e),
        }
    }
}

/// `e` as an error of the crate.
pub(crate) fn database_error(action: &str, place: &str, e: sqlx::Error) -> Error {
    let broken = matches!(
        &e,
        sqlx::Error::Database(d) if d.code().is_some_and(|c| c == "11" || c == "26")
    );
    if broken {
        return Error::corrupt(format!("{action}: `{place}` is no queue database, or a damaged one"))
            .caused_by(e)
            .hint("the queue holds the state of running crawls: restore it from a backup, or move the file away and seed again");
    }
    let ours = matches!(
        &e,
        sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::Encode(_)
    );
    if ours {
        return Error::internal(format!("{action}: the queue database `{place}`")).caused_by(e);
    }
    let full = e.to_string().contains("disk is full");
    let error = Error::unavailable(format!("{action}: the queue database `{place}`"));
    let error = error.caused_by(e);
    if full {
        return error.hint("free some space and call again: what was acknowledged is kept");
    }
    error.retryable()
}
