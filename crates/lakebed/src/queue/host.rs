//! Hosts: what all workers together know of one. Rates and limits are not here: they are local
//! configuration; only the moments that follow from them are kept.

use crate::error::Result;
use crate::queue::Queue;
use crate::queue::db::{DbRow, Fault, in_tx, values};

/// What the queue knows of a host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HostRecord {
    /// Name, with the port where it is not the usual one.
    pub name: String,
    /// Its next free moment; database clock, microseconds.
    pub next_at: i64,
    /// Requests under way.
    pub in_flight: i64,
    /// It asked to be left alone until then; 0 for never.
    pub blocked_until: i64,
    /// What is known of its `robots.txt`, in the form of the fetcher; absent where it was never read.
    #[serde(skip)]
    pub robots: Option<String>,
    /// Until when that holds.
    pub robots_until: i64,
    /// The database's clock when this was read.
    pub now: i64,
}

const HOST_COLUMNS: &str =
    "SELECT name, next_at, in_flight, blocked_until, robots, robots_until, {now} FROM queue_host";

fn host_of(row: &DbRow) -> Result<HostRecord, sqlx::Error> {
    Ok(HostRecord {
        name: row.text(0)?,
        next_at: row.int(1)?,
        in_flight: row.int(2)?,
        blocked_until: row.int(3)?,
        robots: row.maybe_text(4)?,
        robots_until: row.int(5)?,
        now: row.int(6)?,
    })
}

impl Queue {
    /// What is known of the host, if it was ever met.
    pub async fn find_host(&self, name: &str) -> Result<Option<HostRecord>> {
        let mut tx = self.reading("read the host").await?;
        let found = async {
            let row = tx
                .row(&format!("{HOST_COLUMNS} WHERE name = ?"), values![name])
                .await?;
            Ok::<_, Fault>(row.as_ref().map(host_of).transpose()?)
        };
        found
            .await
            .map_err(|e| e.into_error("read the host", self.place()))
    }

    /// Hosts by name, behind `after`, at most `limit`.
    pub async fn list_hosts(&self, after: &str, limit: u32) -> Result<Vec<HostRecord>> {
        let mut tx = self.reading("list the hosts").await?;
        let listed = async {
            let sql = format!("{HOST_COLUMNS} WHERE name > ? ORDER BY name LIMIT ?");
            let rows = tx.rows(&sql, values![after, limit]).await?;
            Ok::<_, Fault>(rows.iter().map(host_of).collect::<Result<Vec<_>, _>>()?)
        };
        listed
            .await
            .map_err(|e| e.into_error("list the hosts", self.place()))
    }

    /// Keeps what a worker read of the host's `robots.txt`, for all workers, for so long.
    pub async fn keep_robots(&self, name: &str, robots: &str, for_us: i64) -> Result<()> {
        let id = self.host_id(name).await?;
        in_tx!(&self.db, "keep robots.txt", |tx| {
            let sql = "UPDATE queue_host SET robots = ?, robots_until = {now} + ? WHERE id = ?";
            tx.execute(sql, values![robots, for_us, id]).await?;
            Ok(())
        })
    }

    /// Takes one of the host's free moments for a request that is no claim (`robots.txt`, a redirect to
    /// another host): how long to wait for it, microseconds.
    pub async fn take_moment(&self, name: &str, pause_us: i64) -> Result<i64> {
        let id = self.host_id(name).await?;
        in_tx!(&self.db, "take a moment of the host", |tx| {
            let sql = "SELECT next_at, blocked_until, {now} FROM queue_host WHERE id = ? {lock}";
            let Some(row) = tx.row(sql, values![id]).await? else {
                return Ok(0);
            };
            let now = row.int(2)?;
            let at = row.int(0)?.max(row.int(1)?).max(now);
            let sql = "UPDATE queue_host SET next_at = ? WHERE id = ?";
            tx.execute(sql, values![at.saturating_add(pause_us.max(0)), id])
                .await?;
            Ok(at - now)
        })
    }

    /// Blocks the host for everybody, for so long, as it asked for.
    pub async fn block_host(&self, name: &str, for_us: i64) -> Result<()> {
        self.put_off_host(name, for_us, "it asked to wait").await
    }

    /// Leaves the host alone for so long, for a reason that the event tells. Its requests wait, which costs no attempt.
    pub async fn put_off_host(&self, name: &str, for_us: i64, why: &str) -> Result<()> {
        let id = self.host_id(name).await?;
        in_tx!(&self.db, "block the host", |tx| {
            let until = tx
                .int("SELECT {now}", &[])
                .await?
                .saturating_add(for_us.max(0));
            let sql = "UPDATE queue_host SET blocked_until = ? WHERE id = ? AND blocked_until < ?";
            if tx.execute(sql, values![until, id, until]).await? == 1 {
                let detail = serde_json::json!({ "host": name, "until": until, "why": why });
                crate::queue::event::put_event(&mut tx, None, "host_blocked", &detail).await?;
            }
            Ok(())
        })
    }
}
