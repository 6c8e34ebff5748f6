//! One small interface over the three databases: open, begin, execute, rows, commit.
//!
//! Statements of equal shape are written once ([`Dialect`]); a transaction that met another one
//! (deadlock, busy, serialization) is begun again as a whole by [`in_tx`]. What does not belong here:
//! what the tables mean.

mod alone;
mod dialect;
mod fault;
mod open;
mod shelf;
mod tx;
mod value;

pub(crate) use dialect::{Dialect, groups, pieces};
pub(crate) use fault::{Fault, database_error};
pub(crate) use open::Db;
pub(crate) use tx::{Tries, Tx};
pub(crate) use value::{DbRow, Value};

/// The values of a statement: `values![a, b]`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::queue::db::Value::from($value)),*][..] };
}
pub(crate) use values;

/// Runs a block in a transaction and commits it; begins again when another transaction was in the way.
/// The block ends in `Result<T, Fault>`; a fault takes the transaction back.
macro_rules! in_tx {
    ($db:expr, $action:expr, |$tx:ident| $body:block) => {{
        let db: &$crate::queue::db::Db = $db;
        let mut tries = $crate::queue::db::Tries::new(db, $action);
        loop {
            let ended = match db.begin().await {
                Err(e) => Err($crate::queue::db::Fault::from(e)),
                Ok(mut $tx) => {
                    let result: ::std::result::Result<_, $crate::queue::db::Fault> =
                        async { $body }.await;
                    match result {
                        Ok(value) => $tx.commit().await.map(|()| value).map_err(Into::into),
                        Err(fault) => {
                            $tx.rollback().await;
                            Err(fault)
                        }
                    }
                }
            };
            match ended {
                Ok(value) => break Ok(value),
                Err(fault) => {
                    if let Err(e) = tries.again(fault).await {
                        break Err(e);
                    }
                }
            }
        }
    }};
}
pub(crate) use in_tx;
