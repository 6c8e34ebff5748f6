//! Between SQL values and row types, and what an error of the database asks of its reader.

use std::borrow::Cow;
use std::str::FromStr;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::catalog::{ColumnStats, StatValue};
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

    /// Column `columns` of `file_stats`; of these fields alone, where any are named.
    pub(super) fn stats(&mut self, field_ids: &[u32]) -> Result<Vec<ColumnStats>> {
        let text = self.str()?;
        decode_stats(text, field_ids).map_err(|line| {
            self.database.corrupt(format!(
                "the catalog holds the column statistics `{line}`, which cannot be"
            ))
        })
    }
}

/// A column in `file_stats`: field id, name, null count, kind of its bounds, both, whether each is exact.
type StatsLine<'a> = (
    u32,
    Cow<'a, str>,
    Option<u64>,
    Option<&'a str>,
    Option<Cow<'a, str>>,
    Option<Cow<'a, str>>,
    u8,
    u8,
);

/// The statistics of a file as the catalog holds them: a JSON list, a column a line, so that whoever wants
/// few of many columns reads few.
pub(super) fn encode_stats(columns: &[ColumnStats]) -> Result<String> {
    let mut columns: Vec<&ColumnStats> = columns.iter().collect();
    columns.sort_by_key(|column| column.field_id);
    let mut text = Vec::with_capacity(128 * columns.len());
    text.push(b'[');
    for (at, column) in columns.into_iter().enumerate() {
        let kind_of = |bound: &Option<StatValue>| bound.as_ref().map(bound_kind);
        let kind = kind_of(&column.min).or(kind_of(&column.max));
        if column.max.is_some() && kind_of(&column.max) != kind {
            return Err(Error::internal(format!(
                "store the bounds of `{}`: they are of two kinds",
                column.name
            )));
        }
        let line: StatsLine<'_> = (
            column.field_id,
            Cow::Borrowed(&column.name),
            column.null_count,
            kind,
            column.min.as_ref().map(encode_bound),
            column.max.as_ref().map(encode_bound),
            u8::from(column.min_exact),
            u8::from(column.max_exact),
        );
        text.extend_from_slice(if at == 0 { b"\n" } else { b",\n" });
        serde_json::to_writer(&mut text, &line)
            .map_err(|e| Error::internal("write column statistics as JSON").caused_by(e))?;
    }
    text.extend_from_slice(b"\n]");
    String::from_utf8(text)
        .map_err(|e| Error::internal("write column statistics as JSON").caused_by(e))
}

/// What [`encode_stats`] wrote, or the line that cannot be read.
fn decode_stats<'t>(
    text: &'t str,
    field_ids: &[u32],
) -> std::result::Result<Vec<ColumnStats>, &'t str> {
    let lines = text.strip_prefix("[\n").and_then(|t| t.strip_suffix("\n]"));
    let lines = lines
        .ok_or(text)?
        .split('\n')
        .filter(|line| !line.is_empty());
    let mut columns = Vec::new();
    for line in lines {
        let id = line.strip_prefix('[').and_then(|rest| rest.split_once(','));
        let id: u32 = id.and_then(|(id, _)| id.parse().ok()).ok_or(line)?;
        if field_ids.is_empty() || field_ids.contains(&id) {
            let column = line.strip_suffix(',').unwrap_or(line);
            columns.push(decode_column(column).ok_or(line)?);
        }
    }
    Ok(columns)
}

fn decode_column(line: &str) -> Option<ColumnStats> {
    let (field_id, name, null_count, kind, min, max, min_exact, max_exact): StatsLine<'_> =
        serde_json::from_str(line).ok()?;
    // The outer option is whether it can be read, the inner one whether there is one.
    let value = |text: Option<Cow<'_, str>>| match text {
        None => Some(None),
        Some(text) => decode_bound(kind?, &text).map(Some),
    };
    Some(ColumnStats {
        field_id,
        name: name.into_owned(),
        null_count,
        min: value(min)?,
        max: value(max)?,
        min_exact: min_exact != 0,
        max_exact: max_exact != 0,
    })
}

/// The kind of a bound: how its text is read.
fn bound_kind(value: &StatValue) -> &'static str {
    match value {
        StatValue::Int(_) => "int",
        StatValue::Float(_) => "float",
        StatValue::Decimal(_) => "decimal",
        StatValue::Text(_) => "text",
    }
}

/// A bound as text: with its kind nothing is lost.
fn encode_bound(value: &StatValue) -> Cow<'_, str> {
    match value {
        StatValue::Int(n) => n.to_string().into(),
        StatValue::Float(x) => format!("{x:?}").into(),
        StatValue::Decimal(n) => n.to_string().into(),
        StatValue::Text(t) => t.as_str().into(),
    }
}

fn decode_bound(kind: &str, text: &str) -> Option<StatValue> {
    match kind {
        "int" => text.parse().ok().map(StatValue::Int),
        "float" => text.parse().ok().map(StatValue::Float),
        "decimal" => text.parse().ok().map(StatValue::Decimal),
        "text" => Some(StatValue::Text(text.to_owned())),
        _ => None,
    }
}

/// A count as SQLite stores it.
pub(super) fn sql_int(value: u64) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| Error::limit(format!("`{value}` is more than the catalog can count")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_lose_nothing() {
        for value in [
            StatValue::Int(i64::MIN),
            StatValue::Int(i64::MAX),
            StatValue::Float(-0.0),
            StatValue::Float(f64::MIN_POSITIVE / 3.0),
            StatValue::Float(f64::MAX),
            StatValue::Float(f64::NEG_INFINITY),
            StatValue::Float(1_910_000_000.000_000_2),
            StatValue::Decimal(99_999_999_999_999_999_999_999_999_999_999_999_999),
            StatValue::Decimal(i128::MIN),
            StatValue::Text("微博 \u{0}\"'\n".to_owned()),
        ] {
            let (kind, text) = (bound_kind(&value), encode_bound(&value));
            let back = decode_bound(kind, &text);
            match (&back, &value) {
                (Some(StatValue::Float(a)), StatValue::Float(b)) => {
                    assert_eq!(a.to_bits(), b.to_bits());
                }
                _ => assert_eq!(back.as_ref(), Some(&value)),
            }
        }
        assert_eq!(decode_bound("int", "1.5"), None);
        assert_eq!(decode_bound("blob", "1"), None);
    }

    fn column(field_id: u32, name: &str, bounds: [Option<StatValue>; 2]) -> ColumnStats {
        let [min, max] = bounds;
        ColumnStats {
            field_id,
            name: name.to_owned(),
            null_count: (field_id != 3).then_some(u64::from(field_id)),
            min_exact: min.is_some(),
            max_exact: false,
            min,
            max,
        }
    }

    #[test]
    fn statistics_lose_nothing() {
        let text = |t: &str| Some(StatValue::Text(t.to_owned()));
        let columns = [
            column(7, "標\"題,\n]", [text("a\u{0}\n[7,\""), text("微博\r")]),
            column(3, "x", [Some(StatValue::Float(-0.0)), None]),
            column(70, "空", [None, None]),
        ];
        let stored = encode_stats(&columns).unwrap();
        let by_id = [columns[1].clone(), columns[0].clone(), columns[2].clone()];
        assert_eq!(decode_stats(&stored, &[]).unwrap(), by_id);
        assert_eq!(decode_stats(&stored, &[7, 9]).unwrap(), by_id[1..2]);
        // For people who ask SQL, it is a JSON list.
        let json: serde_json::Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(json[1][1], "標\"題,\n]");
        let mixed = column(1, "m", [text("1"), Some(StatValue::Int(1))]);
        assert!(encode_stats(&[mixed]).is_err());
    }

    #[test]
    fn statistics_that_cannot_be_are_named() {
        for wrong in [
            "",
            "[]",
            "[\n[1,\"a\",0,null,\"1\",null,1,1]\n]",
            "[\n[1,\"a\",0,\"int\",\"1.5\",null,1,1]\n]",
            "[\n[1,\"a\",0,\"int\",\"1\"]\n]",
            "[\n[x,\"a\",0,\"int\",\"1\",null,1,1]\n]",
        ] {
            assert!(decode_stats(wrong, &[]).is_err(), "{wrong}");
        }
    }
}
