//! What every engine must be able to say, and the expressions that are made of it.

use arrow_schema::{DataType, FieldRef, Fields};
use serde::Serialize;

use crate::error::Result;
use crate::registry::view::clickhouse::ClickHouse;
use crate::registry::view::duckdb::DuckDb;
use crate::registry::view::shape::{MemberShape, Shape, map_value};
use crate::registry::view::spark::Spark;
use crate::registry::view::trino::Trino;
use crate::spec::{FieldSpec, FieldType, arrow_type};

/// Microseconds of a day.
pub(super) const MICROS_PER_DAY: u64 = 86_400_000_000;

/// An engine that a view can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// DuckDB.
    DuckDb,
    /// Trino.
    Trino,
    /// Apache Spark.
    Spark,
    /// ClickHouse.
    ClickHouse,
}

impl Engine {
    /// How the engine says things.
    pub(super) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::DuckDb => &DuckDb,
            Self::Trino => &Trino,
            Self::Spark => &Spark,
            Self::ClickHouse => &ClickHouse,
        }
    }
}

/// What one SELECT reads.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    /// The dataset's folder as the engine sees it.
    pub(super) folder: &'a str,
    /// The schema version.
    pub(super) version: u32,
    /// The columns of its files, `source` and `_extra` included.
    pub(super) columns: &'a Fields,
    /// The registered table, for an engine that needs one.
    pub(super) table: Option<&'a str>,
}

/// An engine's SQL. Values and types come in as text and go out as text.
pub(super) trait Dialect {
    /// The engine's name, for people.
    fn title(&self) -> &'static str;

    /// Whether it refuses a SELECT over a folder that has no file.
    fn needs_files(&self) -> bool;

    /// A quoted identifier.
    fn name(&self, name: &str) -> String;

    /// A type.
    fn type_text(&self, data_type: &DataType) -> String;

    /// A NULL of a type, or what stands for it where the type has none.
    fn null(&self, to: &DataType) -> String {
        format!("CAST(NULL AS {})", self.type_text(to))
    }

    /// `value` as another type.
    fn cast(&self, value: &str, to: &DataType) -> String {
        format!("CAST({value} AS {})", self.type_text(to))
    }

    /// A column of what is read.
    fn column(&self, name: &str) -> String {
        self.name(name)
    }

    /// The columns `dt` and `schema_version`.
    fn partition_columns(&self, version: u32) -> [String; 2];

    /// Their types.
    fn partition_types(&self) -> [String; 2] {
        [DataType::Date32, DataType::Int64].map(|t| self.type_text(&t))
    }

    /// A member of a struct.
    fn member(&self, value: &str, name: &str) -> String {
        format!("{value}.{}", self.name(name))
    }

    /// A struct of the named members where `value` is not NULL.
    fn structure(&self, value: &str, members: &[(&str, String)], to: &DataType) -> String;

    /// The value of a map's entry within [`Self::map`].
    fn map_value(&self, depth: usize) -> String {
        format!("_v{depth}")
    }

    /// A list of `body` for each element, which is called `_e<depth>`.
    fn list(&self, value: &str, depth: usize, body: &str) -> String;

    /// A map with the same keys and `body` for each value.
    fn map(&self, value: &str, depth: usize, body: &str) -> String;

    /// A literal of a text.
    fn text(&self, text: &str) -> String {
        doubled(text, '\'')
    }

    /// `value`, which has the type already, where the engine must be told so.
    fn typed(&self, value: &str, _to: &DataType) -> String {
        value.to_owned()
    }

    /// `value` as another type, NULL where that is an error.
    fn try_cast(&self, value: &str, to: &DataType) -> String {
        format!("TRY_CAST({value} AS {})", self.type_text(to))
    }

    /// Whether a text matches a pattern.
    fn matches(&self, value: &str, pattern: &str) -> String;

    /// An integer or decimal as another of such types: when it is kept whole, and the value.
    fn exact_number(&self, value: &str, from: &FieldType, to: &FieldType) -> [String; 2] {
        let arrow = |of: &FieldType| arrow_type(&FieldSpec::new(0, "", of.clone()), of);
        let there = self.try_cast(value, &arrow(to));
        let back = self.try_cast(&there, &arrow(from));
        [format!("{back} = {value}"), there]
    }

    /// A decimal as a text with all digits of its scale.
    fn decimal_text(&self, value: &str, _scale: u8) -> String {
        self.cast(value, &DataType::Utf8)
    }

    /// The decimal of so many units, a whole double below 10 to the power of 15.
    fn decimal_of_units(&self, units: &str, precision: u8, scale: u8) -> String {
        let int = self.try_cast(units, &DataType::Int64);
        let whole = self.cast(&int, &DataType::Decimal128(19, 0));
        let (digits, places) = (scale.saturating_add(1), i8::try_from(scale).unwrap_or(0));
        let last = match scale {
            0 => "'1'".to_owned(),
            scale => format!("'0.{:0>width$}'", 1, width = usize::from(scale)),
        };
        let unit = self.cast(&last, &DataType::Decimal128(digits, places));
        let to = DataType::Decimal128(precision, places);
        self.try_cast(&format!("({whole} * {unit})"), &to)
    }

    /// The double of a plain number of at most 15 digits.
    fn float_of_text(&self, value: &str) -> String {
        self.try_cast(value, &DataType::Float64)
    }

    /// The instant of a text in UTC.
    fn instant_of_text(&self, value: &str) -> String;

    /// Midnight of a day in UTC.
    fn instant_of_day(&self, value: &str) -> String;

    /// Whether an instant is a midnight in UTC.
    fn is_midnight(&self, value: &str) -> String;

    /// The day of an instant in UTC.
    fn day_of_instant(&self, value: &str) -> String;

    /// What stands after FROM, with a WHERE where one is needed.
    fn source(&self, scan: &Scan<'_>) -> Result<String>;
}

/// The SQL of `value` in the form `shape` gives it. Each depth has lambda names of its own, and no
/// column is called like them: names that begin with `_` are ours.
pub(super) fn expression(
    dialect: &dyn Dialect,
    value: &str,
    shape: &Shape,
    to: &DataType,
    depth: usize,
) -> String {
    let depth = depth + 1;
    match (shape, to) {
        (Shape::Same, _) => value.to_owned(),
        (Shape::Struct(members), DataType::Struct(wanted)) => {
            let members: Vec<(&str, String)> = wanted
                .iter()
                .zip(members)
                .map(|(to, from)| {
                    (
                        to.name().as_str(),
                        member(dialect, value, from.as_ref(), to, depth),
                    )
                })
                .collect();
            dialect.structure(value, &members, to)
        }
        (Shape::List(shape), DataType::List(item)) => {
            let element = format!("_e{depth}");
            let body = expression(dialect, &element, shape, item.data_type(), depth);
            dialect.list(value, depth, &body)
        }
        (Shape::Map(shape), DataType::Map(entries, _)) => match map_value(entries) {
            Some(to) => {
                let held = dialect.map_value(depth);
                let body = expression(dialect, &held, shape, to.data_type(), depth);
                dialect.map(value, depth, &body)
            }
            None => dialect.cast(value, to),
        },
        (Shape::Cast | Shape::Struct(_) | Shape::List(_) | Shape::Map(_), to) => {
            dialect.cast(value, to)
        }
    }
}

fn member(
    dialect: &dyn Dialect,
    value: &str,
    from: Option<&MemberShape>,
    to: &FieldRef,
    depth: usize,
) -> String {
    match from {
        Some(from) => {
            let inner = dialect.member(value, &from.name);
            expression(dialect, &inner, &from.shape, to.data_type(), depth)
        }
        None => dialect.null(to.data_type()),
    }
}

/// `text` between `quote`s, which are doubled within it.
pub(super) fn doubled(text: &str, quote: char) -> String {
    let twice = format!("{quote}{quote}");
    format!("{quote}{}{quote}", text.replace(quote, &twice))
}

/// `text` between `quote`s, with backslashes before quotes and backslashes.
pub(super) fn escaped(text: &str, quote: char) -> String {
    let text = text.replace('\\', "\\\\");
    format!(
        "{quote}{}{quote}",
        text.replace(quote, &format!("\\{quote}"))
    )
}

/// The members of a struct type as the engine lists them: name, `between`, type.
pub(super) fn member_types(dialect: &dyn Dialect, members: &Fields, between: &str) -> String {
    let all: Vec<String> = members
        .iter()
        .map(|m| {
            let (name, of) = (dialect.name(m.name()), dialect.type_text(m.data_type()));
            format!("{name}{between}{of}")
        })
        .collect();
    all.join(", ")
}

/// The type of a map's values.
pub(super) fn value_type(dialect: &dyn Dialect, entries: &FieldRef) -> String {
    map_value(entries).map_or_else(String::new, |v| dialect.type_text(v.data_type()))
}
