//! DuckDB: `read_parquet` over the folder of a version.
//!
//! List comprehensions are used in the place of lambdas, whose notation changed between releases.
//! A member is taken by `struct_extract`, since `a.b` could name a column of a table `a`, too.

use arrow_schema::DataType;

use crate::error::Result;
use crate::registry::view::dialect::{
    Dialect, MICROS_PER_DAY, Scan, doubled, member_types, value_type,
};
use crate::registry::view::location::version_glob;

/// DuckDB's SQL.
pub(super) struct DuckDb;

fn text(text: &str) -> String {
    doubled(text, '\'')
}

impl Dialect for DuckDb {
    fn title(&self) -> &'static str {
        "DuckDB"
    }

    fn needs_files(&self) -> bool {
        true
    }

    fn name(&self, name: &str) -> String {
        doubled(name, '"')
    }

    fn type_text(&self, data_type: &DataType) -> String {
        match data_type {
            DataType::Int64 => "BIGINT".to_owned(),
            DataType::Float64 => "DOUBLE".to_owned(),
            DataType::Boolean => "BOOLEAN".to_owned(),
            DataType::Decimal128(p, s) => format!("DECIMAL({p},{s})"),
            DataType::Date32 => "DATE".to_owned(),
            DataType::Timestamp(..) => "TIMESTAMP WITH TIME ZONE".to_owned(),
            DataType::Binary => "BLOB".to_owned(),
            DataType::List(item) => format!("{}[]", self.type_text(item.data_type())),
            DataType::Map(entries, _) => format!("MAP(VARCHAR, {})", value_type(self, entries)),
            DataType::Struct(members) => format!("STRUCT({})", member_types(self, members, " ")),
            _ => "VARCHAR".to_owned(),
        }
    }

    fn partition_columns(&self, _version: u32) -> [String; 2] {
        [self.name("dt"), self.name("schema_version")]
    }

    fn member(&self, value: &str, name: &str) -> String {
        format!("struct_extract({value}, {})", text(name))
    }

    fn structure(&self, value: &str, members: &[(&str, String)], _to: &DataType) -> String {
        let all: Vec<String> = members
            .iter()
            .map(|(name, of)| format!("{} := {of}", self.name(name)))
            .collect();
        let all = all.join(", ");
        format!("CASE WHEN {value} IS NOT NULL THEN struct_pack({all}) END")
    }

    fn map_value(&self, depth: usize) -> String {
        format!("struct_extract(_e{depth}, 'value')")
    }

    fn list(&self, value: &str, depth: usize, body: &str) -> String {
        format!("[{body} FOR _e{depth} IN {value}]")
    }

    fn map(&self, value: &str, depth: usize, body: &str) -> String {
        let entry = format!("struct_pack(k := struct_extract(_e{depth}, 'key'), v := {body})");
        format!("map_from_entries([{entry} FOR _e{depth} IN map_entries({value})])")
    }

    fn matches(&self, value: &str, pattern: &str) -> String {
        format!("regexp_matches({value}, {})", text(pattern))
    }

    fn instant_of_text(&self, value: &str) -> String {
        format!("TRY_CAST({value} AS TIMESTAMP WITH TIME ZONE)")
    }

    fn instant_of_day(&self, value: &str) -> String {
        format!("(CAST({value} AS TIMESTAMP) AT TIME ZONE 'UTC')")
    }

    fn is_midnight(&self, value: &str) -> String {
        format!("epoch_us({value}) % {MICROS_PER_DAY} = 0")
    }

    fn day_of_instant(&self, value: &str) -> String {
        format!("CAST({value} AT TIME ZONE 'UTC' AS DATE)")
    }

    fn source(&self, scan: &Scan<'_>) -> Result<String> {
        Ok(format!(
            "read_parquet({}, hive_partitioning = true, \
             hive_types = {{'dt': DATE, 'schema_version': BIGINT}})",
            text(&version_glob(scan))
        ))
    }
}
