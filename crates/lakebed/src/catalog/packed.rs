//! The statistics of a file's columns as the catalog holds them: two texts.
//!
//! ```text
//! shape    [                                values   [
//!          [FIELD_ID,NAME,KIND],                     [NULL_COUNT,MIN,MAX,EXACT],
//!          ...                                       ...
//!          ]                                         ]
//! ```
//!
//! Both are JSON lists, a column a line, by field id. The shape is the same text for all files of a schema, so
//! it is stored once; of the values, whoever wants few of many columns reads few lines. A bound is a text by the
//! kind of its column: `int`, `float` (shortest text that reads back as the same bits), `decimal` (the unscaled
//! value), `text`; `null` is a column that has no bounds. `EXACT` is 1 where the smallest value is one of the column,
//! plus 2 where the largest is.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

use crate::catalog::{ColumnStats, StatValue};
use crate::error::{Error, Result};

/// The statistics of all columns of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedStats {
    shape: Arc<str>,
    values: Arc<str>,
}

impl PackedStats {
    /// Packs them, by field id.
    ///
    /// # Errors
    /// Where the two bounds of a column are of two kinds.
    pub fn pack(columns: &[ColumnStats]) -> Result<Self> {
        let mut columns: Vec<&ColumnStats> = columns.iter().collect();
        columns.sort_by_key(|column| column.field_id);
        let mut shape = ShapeWriter::default();
        let mut values = ValuesWriter::default();
        for column in columns {
            let kind_of = |bound: &Option<StatValue>| bound.as_ref().map(|b| Value::of(b).kind());
            let kind = kind_of(&column.min).or(kind_of(&column.max));
            if column.max.is_some() && kind_of(&column.max) != kind {
                return Err(Error::internal(format!(
                    "store the bounds of `{}`: they are of two kinds",
                    column.name
                )));
            }
            shape.add(column.field_id, &column.name, kind);
            let exact = (column.min_exact, column.max_exact);
            let min = column.min.as_ref().map(Value::of);
            let max = column.max.as_ref().map(Value::of);
            values.add(column.null_count, (min, max), exact);
        }
        Ok(values.finish(&shape.finish()))
    }

    /// All columns, by field id.
    ///
    /// # Errors
    /// Where the texts are none that [`PackedStats::pack`] can have made.
    pub fn unpack(&self) -> Result<Vec<ColumnStats>> {
        let shape = Shape::read(&self.shape).ok_or_else(|| damaged(&self.shape))?;
        shape.unpack(&self.values, &[]).map_err(damaged)
    }

    /// Whether the file has no columns that have statistics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn shape(&self) -> &Arc<str> {
        &self.shape
    }

    pub(super) fn values(&self) -> &Arc<str> {
        &self.values
    }
}

fn damaged(text: &str) -> Error {
    Error::internal(format!("read the column statistics `{text}`"))
}

/// A bound that may be borrowed from a footer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Int(i64),
    Float(f64),
    Decimal(i128),
    Text(&'a str),
}

impl<'a> Value<'a> {
    fn of(value: &'a StatValue) -> Self {
        match value {
            StatValue::Int(n) => Self::Int(*n),
            StatValue::Float(x) => Self::Float(*x),
            StatValue::Decimal(n) => Self::Decimal(*n),
            StatValue::Text(text) => Self::Text(text),
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Decimal(_) => "decimal",
            Self::Text(_) => "text",
        }
    }

    /// As a JSON text.
    fn write(self, to: &mut String) {
        match self {
            Self::Text(text) => push_text(to, text),
            Self::Int(n) => push_int(to, n),
            Self::Decimal(n) => match i64::try_from(n) {
                Ok(n) => push_int(to, n),
                Err(_) => push_shown(to, n),
            },
            Self::Float(x) => push_shown(to, format_args!("{x:?}")),
        }
    }

    fn read(kind: &str, text: &str) -> Option<StatValue> {
        match kind {
            "int" => text.parse().ok().map(StatValue::Int),
            "float" => text.parse().ok().map(StatValue::Float),
            "decimal" => text.parse().ok().map(StatValue::Decimal),
            "text" => Some(StatValue::Text(text.to_owned())),
            _ => None,
        }
    }
}

/// Adds a JSON text.
fn push_text(to: &mut String, text: &str) {
    // All of these are characters of their own.
    let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    to.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at(at);
        to.push_str(plain);
        let mut special = special.chars();
        match special.next() {
            Some('"') => to.push_str("\\\""),
            Some('\\') => to.push_str("\\\\"),
            Some('\n') => to.push_str("\\n"),
            Some(other) => push_fmt(to, format_args!("\\u{:04x}", u32::from(other))),
            None => {}
        }
        rest = special.as_str();
    }
    to.push_str(rest);
    to.push('"');
}

/// Adds a whole number as a JSON text, digit by digit: there are some twenty in each file.
fn push_int(to: &mut String, n: i64) {
    let mut digits = [b'0'; 20];
    let (mut used, mut rest) = (0, n.unsigned_abs());
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        (used, rest) = (used + 1, rest / 10);
        if rest == 0 {
            break;
        }
    }
    let shown = digits.get(digits.len() - used..).unwrap_or_default();
    to.push_str(if n < 0 { "\"-" } else { "\"" });
    to.push_str(std::str::from_utf8(shown).unwrap_or_default());
    to.push('"');
}

/// Adds a number as a JSON text.
fn push_shown(to: &mut String, number: impl fmt::Display) {
    push_fmt(to, format_args!("\"{number}\""));
}

fn push_fmt(to: &mut String, shown: fmt::Arguments<'_>) {
    // A text takes whatever is written.
    to.write_fmt(shown).unwrap_or_default();
}

/// A JSON list, an element a line.
#[derive(Debug, Default)]
struct Lines(String);

impl Lines {
    /// Where the next element is to be written.
    fn next(&mut self) -> &mut String {
        self.0
            .push_str(if self.0.is_empty() { "[\n" } else { ",\n" });
        &mut self.0
    }

    fn finish(mut self) -> String {
        if !self.0.is_empty() {
            self.0.push_str("\n]");
        }
        self.0
    }

    fn of(text: &str) -> Option<impl Iterator<Item = &str>> {
        let lines = text.strip_prefix("[\n")?.strip_suffix("\n]")?.split('\n');
        Some(lines.map(|line| line.strip_suffix(',').unwrap_or(line)))
    }
}

/// A shape on its way; columns come by field id.
#[derive(Debug, Default)]
pub(super) struct ShapeWriter(Lines);

impl ShapeWriter {
    pub(super) fn add(&mut self, id: u32, name: &str, kind: Option<&'static str>) {
        let to = self.0.next();
        push_fmt(to, format_args!("[{id},"));
        push_text(to, name);
        to.push(',');
        match kind {
            Some(kind) => push_text(to, kind),
            None => to.push_str("null"),
        }
        to.push(']');
    }

    pub(super) fn finish(self) -> Arc<str> {
        self.0.finish().into()
    }
}

/// Values on their way, in the order of their shape.
#[derive(Debug, Default)]
pub(super) struct ValuesWriter(Lines);

impl ValuesWriter {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Lines(String::with_capacity(bytes)))
    }

    pub(super) fn add(
        &mut self,
        null_count: Option<u64>,
        (min, max): (Option<Value<'_>>, Option<Value<'_>>),
        (min_exact, max_exact): (bool, bool),
    ) {
        let to = self.0.next();
        match null_count {
            Some(0) => to.push_str("[0"),
            Some(count) => push_fmt(to, format_args!("[{count}")),
            None => to.push_str("[null"),
        }
        for bound in [min, max] {
            to.push(',');
            match bound {
                Some(value) => value.write(to),
                None => to.push_str("null"),
            }
        }
        to.push_str(match (min_exact, max_exact) {
            (false, false) => ",0]",
            (true, false) => ",1]",
            (false, true) => ",2]",
            (true, true) => ",3]",
        });
    }

    pub(super) fn finish(self, shape: &Arc<str>) -> PackedStats {
        PackedStats {
            shape: Arc::clone(shape),
            values: self.0.finish().into(),
        }
    }
}

/// A shape that was read.
#[derive(Debug)]
pub(super) struct Shape(Vec<Column>);

#[derive(Debug)]
struct Column {
    field_id: u32,
    name: String,
    kind: Option<String>,
}

/// A column in the values of a file.
type Line<'a> = (Option<u64>, Option<Cow<'a, str>>, Option<Cow<'a, str>>, u8);

impl Shape {
    /// Reads its text; `None` where it is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let columns = Lines::of(text)?.map(|line| {
            let (field_id, name, kind) = serde_json::from_str(line).ok()?;
            Some(Column {
                field_id,
                name,
                kind,
            })
        });
        columns.collect::<Option<_>>().map(Self)
    }

    /// The columns of these fields (none named = all); where a line cannot be read, that line.
    pub(super) fn unpack<'v>(
        &self,
        values: &'v str,
        field_ids: &[u32],
    ) -> std::result::Result<Vec<ColumnStats>, &'v str> {
        if values.is_empty() && self.0.is_empty() {
            return Ok(Vec::new());
        }
        let mut lines = Lines::of(values).ok_or(values)?;
        let mut columns = Vec::new();
        for column in &self.0 {
            let line = lines.next().ok_or(values)?;
            if field_ids.is_empty() || field_ids.contains(&column.field_id) {
                columns.push(column.unpack(line).ok_or(line)?);
            }
        }
        match lines.next() {
            None => Ok(columns),
            Some(more) => Err(more),
        }
    }
}

impl Column {
    fn unpack(&self, line: &str) -> Option<ColumnStats> {
        let (null_count, min, max, exact): Line<'_> = serde_json::from_str(line).ok()?;
        // The outer option is whether it can be read, the inner one whether there is one.
        let value = |text: Option<Cow<'_, str>>| match text {
            None => Some(None),
            Some(text) => Value::read(self.kind.as_deref()?, &text).map(Some),
        };
        (exact < 4).then_some(())?;
        Some(ColumnStats {
            field_id: self.field_id,
            name: self.name.clone(),
            null_count,
            min: value(min)?,
            max: value(max)?,
            min_exact: exact & 1 != 0,
            max_exact: exact & 2 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let packed = PackedStats::pack(&[column(1, "x", [None, Some(value.clone())])]);
            let back = packed.unwrap().unpack().unwrap().remove(0).max;
            match (&back, &value) {
                (Some(StatValue::Float(a)), StatValue::Float(b)) => {
                    assert_eq!(a.to_bits(), b.to_bits());
                }
                _ => assert_eq!(back.as_ref(), Some(&value)),
            }
        }
        assert_eq!(Value::read("int", "1.5"), None);
        assert_eq!(Value::read("blob", "1"), None);
    }

    #[test]
    fn statistics_lose_nothing() {
        let text = |t: &str| Some(StatValue::Text(t.to_owned()));
        let columns = [
            column(7, "標\"題,\n]", [text("a\u{0}\n[7,\""), text("微博\r")]),
            column(3, "x", [Some(StatValue::Float(-0.0)), None]),
            column(70, "空", [None, None]),
        ];
        let packed = PackedStats::pack(&columns).unwrap();
        let by_id = [columns[1].clone(), columns[0].clone(), columns[2].clone()];
        assert_eq!(packed.unpack().unwrap(), by_id);
        let shape = Shape::read(packed.shape()).unwrap();
        assert_eq!(shape.unpack(packed.values(), &[7, 9]).unwrap(), by_id[1..2]);
        // For people who ask SQL, both are JSON lists.
        let json: serde_json::Value = serde_json::from_str(packed.shape()).unwrap();
        assert_eq!(json[1][1], "標\"題,\n]");
        let json: serde_json::Value = serde_json::from_str(packed.values()).unwrap();
        assert_eq!(json[1][2], "微博\r");
        let mixed = column(1, "m", [text("1"), Some(StatValue::Int(1))]);
        assert!(PackedStats::pack(&[mixed]).is_err());
    }

    #[test]
    fn files_of_one_schema_have_one_shape() {
        let one = PackedStats::pack(&[column(1, "a", [Some(StatValue::Int(1)), None])]).unwrap();
        let two = PackedStats::pack(&[column(1, "a", [Some(StatValue::Int(7)), None])]).unwrap();
        assert_eq!(one.shape(), two.shape());
        assert_ne!(one, two);
        assert!(PackedStats::pack(&[]).unwrap().is_empty());
        assert_eq!(PackedStats::default().unpack().unwrap(), []);
    }

    #[test]
    fn statistics_that_cannot_be_are_named() {
        let shape = Shape::read("[\n[1,\"a\",\"int\"],\n[2,\"b\",null]\n]").unwrap();
        let right = "[\n[0,\"1\",null,1],\n[null,null,null,0]\n]";
        assert_eq!(shape.unpack(right, &[]).unwrap().len(), 2);
        for wrong in [
            "",
            "[]",
            "[\n[0,\"1\",null,1]\n]",
            "[\n[0,\"1\",null,1],\n[0,null,null,0],\n[0,null,null,0]\n]",
            "[\n[0,\"1.5\",null,1],\n[0,null,null,0]\n]",
            "[\n[0,\"1\",null,4],\n[0,null,null,0]\n]",
            "[\n[0,\"1\",null],\n[0,null,null,0]\n]",
            "[\n[0,\"1\",null,1],\n[0,\"1\",null,0]\n]",
        ] {
            assert!(shape.unpack(wrong, &[]).is_err(), "{wrong}");
        }
        for wrong in ["[]", "[\n[1,\"a\"]\n]", "[\n[x,\"a\",null]\n]"] {
            assert!(Shape::read(wrong).is_none(), "{wrong}");
        }
    }
}
