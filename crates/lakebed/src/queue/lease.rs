//! Leases by name: what one process at a time may do over all machines that share the queue.
//!
//! The clock is the database's. A lease ends when it is given back, when its time has passed, or when whoever holds the
//! lock of the same place (a file of one machine) takes it: the holder before it cannot live any more.

use serde::Serialize;

use crate::error::Result;
use crate::queue::Queue;
use crate::queue::db::{DbRow, Dialect, Fault, in_tx, values};

/// Who wants a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Of this one holder alone.
    pub token: String,
    /// A place of which a file lock is held; equal places are one file.
    pub place: String,
    /// Who that is, for people.
    pub name: String,
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaseRecord {
    /// What it is for.
    pub name: String,
    /// Who holds it, for people.
    pub holder: String,
    /// When it was taken; database clock, microseconds.
    pub taken_at: i64,
    /// When it ends unless it is held on.
    pub until_at: i64,
    /// The database's clock when this was read.
    pub now: i64,
}

/// What became of a wish for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum LeaseOutcome {
    /// It is this holder's.
    Taken,
    /// It is somebody else's.
    Held(LeaseRecord),
}

const LEASE_COLUMNS: &str =
    "SELECT name, holder, taken_at, until_at, {now} FROM queue_lease WHERE name = ?";

fn lease_of(row: &DbRow) -> Result<LeaseRecord, sqlx::Error> {
    Ok(LeaseRecord {
        name: row.text(0)?,
        holder: row.text(1)?,
        taken_at: row.int(2)?,
        until_at: row.int(3)?,
        now: row.int(4)?,
    })
}

impl Queue {
    /// Takes the lease for so long, microseconds, unless somebody else holds it.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &LeaseHolder,
        for_us: i64,
    ) -> Result<LeaseOutcome> {
        in_tx!(&self.db, "take the lease", |tx| {
            let columns =
                "(name, token, place, holder, taken_at, until_at) VALUES (?, '', '', '', 0, 0)";
            let sql = match tx.dialect() {
                Dialect::Mysql => format!("INSERT IGNORE INTO queue_lease {columns}"),
                Dialect::Sqlite | Dialect::Postgres => {
                    format!("INSERT INTO queue_lease {columns} ON CONFLICT DO NOTHING")
                }
            };
            tx.execute(&sql, values![name]).await?;
            // `taken_at` makes the row another one, so that MySQL counts it as changed.
            let sql = "UPDATE queue_lease SET token = ?, place = ?, holder = ?, taken_at = {now}, until_at = {now} + ? \
                       WHERE name = ? AND (until_at <= {now} OR token = ? OR place = ?)";
            let (token, place) = (holder.token.as_str(), holder.place.as_str());
            let args = values![
                token,
                place,
                holder.name.as_str(),
                for_us,
                name,
                token,
                place
            ];
            if tx.execute(sql, args).await? == 1 {
                return Ok(LeaseOutcome::Taken);
            }
            let row = tx.row(LEASE_COLUMNS, values![name]).await?;
            let row = row.ok_or(sqlx::Error::RowNotFound)?;
            Ok(LeaseOutcome::Held(lease_of(&row)?))
        })
    }

    /// Holds the lease on for so long from now; false = it is no longer this holder's.
    pub async fn hold_lease(&self, name: &str, token: &str, for_us: i64) -> Result<bool> {
        in_tx!(&self.db, "hold the lease", |tx| {
            let sql = "UPDATE queue_lease SET until_at = {now} + ? WHERE name = ? AND token = ?";
            Ok(tx.execute(sql, values![for_us, name, token]).await? == 1)
        })
    }

    /// Gives the lease back; one that is no longer this holder's stays as it is.
    pub async fn give_lease_back(&self, name: &str, token: &str) -> Result<()> {
        in_tx!(&self.db, "give the lease back", |tx| {
            let sql = "DELETE FROM queue_lease WHERE name = ? AND token = ?";
            tx.execute(sql, values![name, token]).await?;
            Ok(())
        })
    }

    /// The leases that are held now and whose names begin so, by name.
    pub async fn list_leases(&self, prefix: &str) -> Result<Vec<LeaseRecord>> {
        let mut tx = self.reading("list the leases").await?;
        let listed = async {
            let sql = "SELECT name, holder, taken_at, until_at, {now} FROM queue_lease WHERE until_at > {now} ORDER BY name";
            let rows = tx.rows(sql, &[]).await?;
            let all = rows.iter().map(lease_of).collect::<Result<Vec<_>, _>>()?;
            Ok::<_, Fault>(all)
        };
        let all = listed
            .await
            .map_err(|e| e.into_error("list the leases", self.place()))?;
        Ok(all
            .into_iter()
            .filter(|lease| lease.name.starts_with(prefix))
            .collect())
    }
}
