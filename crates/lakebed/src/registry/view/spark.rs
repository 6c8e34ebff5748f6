//! Apache Spark: the folder of a version, read as ``parquet.`path` ``.
//!
//! One SELECT a version, since merging the schemas of all files refuses decimals that were widened.
//! Partition columns of a path with wildcards are not discovered: `dt` comes from the file's path.

use arrow_schema::DataType;

use crate::error::Result;
use crate::registry::view::dialect::{
    Dialect, MICROS_PER_DAY, Scan, doubled, escaped, member_types, value_type,
};
use crate::registry::view::location::version_glob;

/// Spark's SQL.
pub(super) struct Spark;

/// The place of the date in the path of a data file.
const DT_PATTERN: &str = "/dt=([0-9-]+)/schema_version=[0-9]+/[^/]+$";

impl Dialect for Spark {
    fn title(&self) -> &'static str {
        "Spark"
    }

    fn needs_files(&self) -> bool {
        true
    }

    fn name(&self, name: &str) -> String {
        doubled(name, '`')
    }

    fn type_text(&self, data_type: &DataType) -> String {
        match data_type {
            DataType::Int64 => "BIGINT".to_owned(),
            DataType::Float64 => "DOUBLE".to_owned(),
            DataType::Boolean => "BOOLEAN".to_owned(),
            DataType::Decimal128(p, s) => format!("DECIMAL({p},{s})"),
            DataType::Date32 => "DATE".to_owned(),
            DataType::Timestamp(..) => "TIMESTAMP".to_owned(),
            DataType::Binary => "BINARY".to_owned(),
            DataType::List(item) => format!("ARRAY<{}>", self.type_text(item.data_type())),
            DataType::Map(entries, _) => format!("MAP<STRING, {}>", value_type(self, entries)),
            DataType::Struct(members) => {
                let members = member_types(self, members, ": ");
                format!("STRUCT<{members}>")
            }
            _ => "STRING".to_owned(),
        }
    }

    fn partition_columns(&self, version: u32) -> [String; 2] {
        let pattern = escaped(DT_PATTERN, '\'');
        [
            format!("CAST(regexp_extract(_metadata.file_path, {pattern}, 1) AS DATE)"),
            format!("CAST({version} AS BIGINT)"),
        ]
    }

    fn structure(&self, value: &str, members: &[(&str, String)], _to: &DataType) -> String {
        let all: Vec<String> = members
            .iter()
            .map(|(name, of)| format!("{}, {of}", escaped(name, '\'')))
            .collect();
        let all = all.join(", ");
        format!("CASE WHEN {value} IS NOT NULL THEN named_struct({all}) END")
    }

    fn list(&self, value: &str, depth: usize, body: &str) -> String {
        format!("transform({value}, _e{depth} -> {body})")
    }

    fn map(&self, value: &str, depth: usize, body: &str) -> String {
        format!("transform_values({value}, (_k{depth}, _v{depth}) -> {body})")
    }

    fn text(&self, text: &str) -> String {
        escaped(text, '\'')
    }

    fn matches(&self, value: &str, pattern: &str) -> String {
        format!("{value} RLIKE {}", self.text(pattern))
    }

    fn decimal_text(&self, value: &str, scale: u8) -> String {
        match scale {
            // A smaller last digit may be written with an exponent.
            0..=6 => self.cast(value, &DataType::Utf8),
            _ => format!("replace(format_number({value}, {scale}), ',', '')"),
        }
    }

    fn instant_of_text(&self, value: &str) -> String {
        format!("TRY_CAST({value} AS TIMESTAMP)")
    }

    fn instant_of_day(&self, value: &str) -> String {
        format!("timestamp_micros(CAST(unix_date({value}) AS BIGINT) * {MICROS_PER_DAY})")
    }

    fn is_midnight(&self, value: &str) -> String {
        format!("unix_micros({value}) % {MICROS_PER_DAY} = 0")
    }

    fn day_of_instant(&self, value: &str) -> String {
        format!("date_from_unix_date(CAST(unix_micros({value}) DIV {MICROS_PER_DAY} AS INT))")
    }

    fn source(&self, scan: &Scan<'_>) -> Result<String> {
        Ok(format!("parquet.{}", self.name(&version_glob(scan))))
    }
}
