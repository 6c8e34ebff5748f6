//! Values that go into a statement, and the cells that come back. The queue uses three types: 64-bit
//! integers, texts and bytes; the three databases agree on them.

use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

/// A bound parameter. The nulls are typed: PostgreSQL asks for the type of a null too.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A 64-bit integer or its null.
    Int(Option<i64>),
    /// A text or its null.
    Text(Option<String>),
    /// Bytes or their null.
    Bytes(Option<Vec<u8>>),
    /// A column of integers; PostgreSQL alone.
    Ints(Vec<Option<i64>>),
    /// A column of texts; PostgreSQL alone.
    Texts(Vec<Option<String>>),
    /// A column of byte strings; PostgreSQL alone.
    Blobs(Vec<Option<Vec<u8>>>),
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(Some(n))
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Self {
        Self::Int(Some(i64::from(n)))
    }
}

impl From<Option<i64>> for Value {
    fn from(n: Option<i64>) -> Self {
        Self::Int(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl From<Option<Vec<u8>>> for Value {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Self::Bytes(bytes)
    }
}

/// A statement with its values bound; `columns` where the database takes arrays.
macro_rules! bind_all {
    ($sql:expr, $args:expr, no_columns) => {{
        let mut query = sqlx::query(sqlx::AssertSqlSafe($sql));
        for value in $args {
            query = match value {
                $crate::queue::db::Value::Int(v) => query.bind(*v),
                $crate::queue::db::Value::Text(v) => query.bind(v.clone()),
                $crate::queue::db::Value::Bytes(v) => query.bind(v.clone()),
                $crate::queue::db::Value::Ints(_)
                | $crate::queue::db::Value::Texts(_)
                | $crate::queue::db::Value::Blobs(_) => {
                    return Err(sqlx::Error::Configuration(
                        "columns are for PostgreSQL alone".into(),
                    ));
                }
            };
        }
        query
    }};
    ($sql:expr, $args:expr, columns) => {{
        let mut query = sqlx::query(sqlx::AssertSqlSafe($sql));
        for value in $args {
            query = match value {
                $crate::queue::db::Value::Int(v) => query.bind(*v),
                $crate::queue::db::Value::Text(v) => query.bind(v.clone()),
                $crate::queue::db::Value::Bytes(v) => query.bind(v.clone()),
                $crate::queue::db::Value::Ints(v) => query.bind(v.clone()),
                $crate::queue::db::Value::Texts(v) => query.bind(v.clone()),
                $crate::queue::db::Value::Blobs(v) => query.bind(v.clone()),
            };
        }
        query
    }};
}
pub(super) use bind_all;

/// A row of an answer; cells are asked for by their place.
pub(crate) enum DbRow {
    /// Of SQLite.
    Sqlite(SqliteRow),
    /// Of PostgreSQL.
    Postgres(PgRow),
    /// Of MySQL or MariaDB.
    Mysql(MySqlRow),
}

macro_rules! cell {
    ($row:expr, $i:expr, $type:ty) => {{
        use sqlx::Row;
        match $row {
            DbRow::Sqlite(row) => row.try_get::<$type, _>($i),
            DbRow::Postgres(row) => row.try_get::<$type, _>($i),
            DbRow::Mysql(row) => row.try_get::<$type, _>($i),
        }
    }};
}

impl DbRow {
    /// An integer that is there.
    pub(crate) fn int(&self, i: usize) -> Result<i64, sqlx::Error> {
        cell!(self, i, i64)
    }

    /// An integer or null.
    pub(crate) fn maybe_int(&self, i: usize) -> Result<Option<i64>, sqlx::Error> {
        cell!(self, i, Option<i64>)
    }

    /// A text that is there.
    pub(crate) fn text(&self, i: usize) -> Result<String, sqlx::Error> {
        cell!(self, i, String)
    }

    /// A text or null.
    pub(crate) fn maybe_text(&self, i: usize) -> Result<Option<String>, sqlx::Error> {
        cell!(self, i, Option<String>)
    }

    /// Bytes that are there.
    pub(crate) fn bytes(&self, i: usize) -> Result<Vec<u8>, sqlx::Error> {
        cell!(self, i, Vec<u8>)
    }

    /// Bytes or null.
    pub(crate) fn maybe_bytes(&self, i: usize) -> Result<Option<Vec<u8>>, sqlx::Error> {
        cell!(self, i, Option<Vec<u8>>)
    }
}
