//! Between SQL values and row types, and what an error of the database asks of its reader.

use std::str::FromStr;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::error::{Error, Result};
use crate::name::DatasetRef;
use crate::spec::{FileFormat, PartitionState, Provenance};

/// What to do about a damaged catalog.
const REBUILD: &str = "`lakebed catalog rebuild` sets the damaged file aside and makes the catalog anew: the lake holds everything";

/// Where the database lies, for messages.
#[derive(Debug, Clone)]
pub(super) struct Database {
    location: String,
}

/// The primary result code of SQLite in `e`.
fn code_of(e: &sqlx::Error) -> Option<i32> {
    let code = e.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|extended| extended & 0xff)
}

/// Whether another connection held a lock: the same call may succeed later.
pub(super) fn is_busy(e: &sqlx::Error) -> bool {
    matches!(code_of(e), Some(5 | 6))
}

impl Database {
    pub(super) fn new(location: String) -> Self {
        Self { location }
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    /// The error of a failed statement; `action` reads like "list the files".
    pub(super) fn error(&self, action: &str, e: sqlx::Error) -> Error {
        let busy = is_busy(&e);
        let error = match code_of(&e) {
            Some(5 | 6) => {
                Error::unavailable(format!("{action}: another program holds the catalog"))
                    .retryable()
                    .hint("wait for it to end, then call again")
            }
            Some(26) => Error::corrupt(format!("{action}: the file is not a SQLite database"))
                .hint("check `catalog` in lakebed.toml; nothing was changed")
                .hint(format!("if it is the catalog: {REBUILD}")),
            Some(11) => {
                Error::corrupt(format!("{action}: the catalog file is damaged")).hint(REBUILD)
            }
            // Every statement is ours, so a name that SQLite does not know is missing in the file.
            Some(1) => Error::corrupt(format!(
                "{action}: the catalog file lacks what it must have"
            ))
            .hint(REBUILD),
            Some(13) => Error::unavailable(format!("{action}: the disk is full"))
                .hint("free some space and call again: nothing half written is visible"),
            Some(8 | 14 | 23 | 3) => Error::unavailable(format!(
                "{action}: the catalog file cannot be opened for writing"
            ))
            .hint("check who owns the file and its folder, and whether they may be written"),
            Some(10) => Error::unavailable(format!("{action}: the disk failed"))
                .hint("the catalog must lie on a local disk; never on NFS or S3"),
            _ => match &e {
                sqlx::Error::PoolTimedOut => {
                    Error::unavailable(format!("{action}: every connection is in use")).retryable()
                }
                sqlx::Error::Io(_) => Error::unavailable(action),
                sqlx::Error::ColumnDecode { .. } => Error::corrupt(action).hint(REBUILD),
                _ => Error::internal(action),
            },
        };
        debug_assert!(!busy || error.is_retryable());
        error.with("catalog", &self.location).caused_by(e)
    }

    /// A value of the catalog that no program of ours can have written.
    pub(super) fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(what)
            .with("catalog", &self.location)
            .hint(REBUILD)
    }
}

/// Reads the columns of a row from left to right.
pub(super) struct Columns<'r> {
    row: &'r SqliteRow,
    next: usize,
    database: &'r Database,
}

impl<'r> Columns<'r> {
    pub(super) fn new(row: &'r SqliteRow, database: &'r Database) -> Self {
        Self {
            row,
            next: 0,
            database,
        }
    }

    fn take<T>(&mut self) -> Result<T>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        let at = self.next;
        self.next += 1;
        self.row
            .try_get(at)
            .map_err(|e| self.database.error("read a row of the catalog", e))
    }

    pub(super) fn str(&mut self) -> Result<&'r str> {
        self.take()
    }

    pub(super) fn text(&mut self) -> Result<String> {
        Ok(self.str()?.to_owned())
    }

    pub(super) fn text_opt(&mut self) -> Result<Option<String>> {
        self.take()
    }

    pub(super) fn int(&mut self) -> Result<i64> {
        self.take()
    }

    pub(super) fn bool(&mut self) -> Result<bool> {
        Ok(self.int()? != 0)
    }

    /// A count, a number or an id.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let value = self.int()?;
        T::try_from(value).map_err(|_| {
            self.database.corrupt(format!(
                "the catalog holds the number `{value}`, which cannot be"
            ))
        })
    }

    pub(super) fn number_opt<T: TryFrom<i64>>(&mut self) -> Result<Option<T>> {
        let Some(value): Option<i64> = self.take()? else {
            return Ok(None);
        };
        T::try_from(value).map(Some).map_err(|_| {
            self.database.corrupt(format!(
                "the catalog holds the number `{value}`, which cannot be"
            ))
        })
    }

    /// A checked type.
    pub(super) fn parsed<T: FromStr<Err = Error>>(&mut self) -> Result<T> {
        let text = self.str()?;
        text.parse().map_err(|e: Error| {
            self.database
                .corrupt(format!("the catalog holds `{text}`, which cannot be"))
                .caused_by(e)
        })
    }

    pub(super) fn parsed_opt<T: FromStr<Err = Error>>(&mut self) -> Result<Option<T>> {
        let at = self.next;
        let text: Option<&str> = self.take()?;
        if text.is_none() {
            return Ok(None);
        }
        self.next = at;
        self.parsed().map(Some)
    }

    /// Columns `layer` and `dataset`.
    pub(super) fn dataset(&mut self) -> Result<DatasetRef> {
        Ok(DatasetRef {
            layer: self.parsed()?,
            dataset: self.parsed()?,
        })
    }

    fn word<T: Copy>(&mut self, all: &[T], name: fn(T) -> &'static str) -> Result<T> {
        let text = self.str()?;
        all.iter()
            .copied()
            .find(|v| name(*v) == text)
            .ok_or_else(|| {
                self.database.corrupt(format!(
                    "the catalog holds `{text}`, which this program does not know"
                ))
            })
    }

    pub(super) fn format(&mut self) -> Result<FileFormat> {
        self.word(
            &[
                FileFormat::Parquet,
                FileFormat::Jsonl,
                FileFormat::Rawpack,
                FileFormat::RawpackIndex,
            ],
            FileFormat::as_str,
        )
    }

    pub(super) fn state(&mut self) -> Result<PartitionState> {
        self.word(&PartitionState::ALL, PartitionState::as_str)
    }

    pub(super) fn provenance(&mut self) -> Result<Provenance> {
        self.word(
            &[Provenance::Live, Provenance::Backfill, Provenance::Replay],
            Provenance::as_str,
        )
    }
}

/// A count as SQLite stores it.
pub(super) fn sql_int(value: u64) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| Error::limit(format!("`{value}` is more than the catalog can count")))
}
