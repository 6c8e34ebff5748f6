//! ClickHouse: a table function over the folder of a version, with the columns spelled out.
//!
//! The columns are spelled out because the structure of a folder without files cannot be looked up;
//! so a version that has no file yet reads as no rows. The engine's Parquet reader has no NULL of
//! lists, maps and structs: they are empty, or have NULL members alone. What is built here agrees
//! with that. Columns are qualified, since a bare name could mean an alias of the same SELECT.

use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::registry::view::cast::decimal_pattern;
use crate::registry::view::dialect::{
    Dialect, MICROS_PER_DAY, Scan, escaped, member_types, value_type,
};
use crate::registry::view::location::version_glob;
use crate::spec::FieldType;

/// ClickHouse's SQL.
pub(super) struct ClickHouse;

fn text(text: &str) -> String {
    escaped(text, '\'')
}

/// The table functions by the beginning of a location.
const FUNCTIONS: [(&str, &str); 6] = [
    ("s3://", "s3"),
    ("https://", "s3"),
    ("http://", "s3"),
    ("gs://", "gcs"),
    ("hdfs://", "hdfs"),
    ("file://", "file"),
];

/// The types of the columns that come from the path, which are never NULL.
const DT_AND_VERSION_TYPES: [&str; 2] = ["Date32", "Int64"];

impl Dialect for ClickHouse {
    fn title(&self) -> &'static str {
        "ClickHouse"
    }

    fn needs_files(&self) -> bool {
        false
    }

    fn name(&self, name: &str) -> String {
        escaped(name, '`')
    }

    fn type_text(&self, data_type: &DataType) -> String {
        let scalar = match data_type {
            DataType::Int64 => "Int64".to_owned(),
            DataType::Float64 => "Float64".to_owned(),
            DataType::Boolean => "Bool".to_owned(),
            DataType::Decimal128(p, s) => format!("Decimal({p}, {s})"),
            DataType::Date32 => "Date32".to_owned(),
            DataType::Timestamp(..) => "DateTime64(6, 'UTC')".to_owned(),
            DataType::List(item) => return format!("Array({})", self.type_text(item.data_type())),
            DataType::Map(entries, _) => {
                return format!("Map(String, {})", value_type(self, entries));
            }
            DataType::Struct(members) => {
                return format!("Tuple({})", member_types(self, members, " "));
            }
            _ => "String".to_owned(),
        };
        format!("Nullable({scalar})")
    }

    fn null(&self, to: &DataType) -> String {
        // NULL where the type has one, else empty, at every depth.
        format!("defaultValueOfTypeName({})", text(&self.type_text(to)))
    }

    fn cast(&self, value: &str, to: &DataType) -> String {
        format!("CAST({value}, {})", text(&self.type_text(to)))
    }

    fn column(&self, name: &str) -> String {
        format!("_t.{}", self.name(name))
    }

    fn partition_columns(&self, _version: u32) -> [String; 2] {
        [self.column("dt"), self.column("schema_version")]
    }

    fn partition_types(&self) -> [String; 2] {
        DT_AND_VERSION_TYPES.map(str::to_owned)
    }

    fn member(&self, value: &str, name: &str) -> String {
        format!("tupleElement({value}, {})", text(name))
    }

    fn structure(&self, _value: &str, members: &[(&str, String)], to: &DataType) -> String {
        let all: Vec<&str> = members.iter().map(|(_, of)| of.as_str()).collect();
        self.cast(&format!("tuple({})", all.join(", ")), to)
    }

    fn list(&self, value: &str, depth: usize, body: &str) -> String {
        format!("arrayMap(_e{depth} -> {body}, {value})")
    }

    fn map(&self, value: &str, depth: usize, body: &str) -> String {
        format!("mapApply((_k{depth}, _v{depth}) -> (_k{depth}, {body}), {value})")
    }

    fn text(&self, value: &str) -> String {
        text(value)
    }

    fn typed(&self, value: &str, to: &DataType) -> String {
        self.cast(value, to)
    }

    fn try_cast(&self, value: &str, to: &DataType) -> String {
        match to {
            DataType::Int64 => format!("accurateCastOrNull({value}, 'Int64')"),
            DataType::Date32 => format!("toDate32OrNull({value})"),
            DataType::Decimal128(p, s) => {
                // By the width of its storage: a cast to a narrower one ends the query.
                let bits = match p {
                    0..=9 => 32,
                    10..=18 => 64,
                    _ => 128,
                };
                self.cast(&format!("toDecimal{bits}OrNull({value}, {s})"), to)
            }
            to => self.cast(value, to),
        }
    }

    fn matches(&self, value: &str, pattern: &str) -> String {
        format!("match({value}, {})", text(pattern))
    }

    fn exact_number(&self, value: &str, _from: &FieldType, to: &FieldType) -> [String; 2] {
        // Its casts between numbers cut digits off, or end the query: they go by way of a text.
        let digits = format!("toString({value})");
        match to {
            FieldType::Decimal { precision, scale } => {
                let to = DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(0));
                let kept = self.matches(&digits, &decimal_pattern(*precision, *scale));
                [kept, self.try_cast(&digits, &to)]
            }
            _ => {
                let whole = format!("replaceRegexpOne({digits}, '[.]0+$', '')");
                let int = format!("toInt64OrNull({whole})");
                [format!("toString({int}) = {whole}"), int]
            }
        }
    }

    fn decimal_text(&self, value: &str, scale: u8) -> String {
        format!("toDecimalString({value}, {scale})")
    }

    fn decimal_of_units(&self, units: &str, precision: u8, scale: u8) -> String {
        let places = i8::try_from(scale).unwrap_or(0);
        let last = match scale {
            0 => "1".to_owned(),
            scale => format!("0.{:0>width$}", 1, width = usize::from(scale)),
        };
        let int = self.try_cast(units, &DataType::Int64);
        let whole = format!("toDecimal128({int}, 0) * toDecimal128('{last}', {scale})");
        let to = DataType::Decimal128(precision, places);
        self.try_cast(&format!("toString({whole})"), &to)
    }

    fn float_of_text(&self, value: &str) -> String {
        // The engine's own reading of floats may miss the last bit.
        let point = format!("position({value}, '.')");
        let places = format!("if({point} = 0, 0, length({value}) - {point})");
        format!("toInt64OrNull(replaceAll({value}, '.', '')) / intExp10({places})")
    }

    fn instant_of_text(&self, value: &str) -> String {
        format!("parseDateTime64BestEffortOrNull({value}, 6, 'UTC')")
    }

    fn instant_of_day(&self, value: &str) -> String {
        format!("toDateTime64({value}, 6, 'UTC')")
    }

    fn is_midnight(&self, value: &str) -> String {
        format!("toUnixTimestamp64Micro({value}) % {MICROS_PER_DAY} = 0")
    }

    fn day_of_instant(&self, value: &str) -> String {
        format!("toDate32({value}, 'UTC')")
    }

    fn source(&self, scan: &Scan<'_>) -> Result<String> {
        let glob = version_glob(scan);
        let function = match FUNCTIONS
            .iter()
            .find(|(scheme, _)| glob.starts_with(scheme))
        {
            Some((_, function)) => *function,
            None if glob.contains("://") => {
                let said = format!("no view of `{}` can be written for ClickHouse", scan.folder);
                return Err(Error::invalid(said)
                    .hint("`--location` takes a folder, or an s3, http, gs or hdfs URL"));
            }
            None => "file",
        };
        let glob = glob.strip_prefix("file://").unwrap_or(&glob);
        let columns = member_types(self, scan.columns, " ");
        let [dt, version] = DT_AND_VERSION_TYPES;
        let columns = format!("{columns}, `dt` {dt}, `schema_version` {version}");
        Ok(format!(
            "{function}({}, 'Parquet', {}) AS _t",
            text(glob),
            text(&columns)
        ))
    }
}
