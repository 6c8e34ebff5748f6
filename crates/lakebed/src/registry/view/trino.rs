//! Trino: a registered table over the dataset's folder, one SELECT a version by `schema_version`.
//!
//! Columns are qualified, since `a.b` could name a column of the table `a`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};

use crate::error::{Error, Result};
use crate::registry::field_id;
use crate::registry::view::dialect::{Dialect, Scan, doubled, member_types, value_type};
use crate::registry::view::location::quote_path;

/// Trino's SQL.
pub(super) struct Trino;

impl Dialect for Trino {
    fn title(&self) -> &'static str {
        "Trino"
    }

    fn needs_files(&self) -> bool {
        false
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
            DataType::Timestamp(..) => "TIMESTAMP(6)".to_owned(),
            DataType::Binary => "VARBINARY".to_owned(),
            DataType::List(item) => format!("ARRAY({})", self.type_text(item.data_type())),
            DataType::Map(entries, _) => format!("MAP(VARCHAR, {})", value_type(self, entries)),
            DataType::Struct(members) => {
                let members = member_types(self, members, " ");
                format!("ROW({members})")
            }
            _ => "VARCHAR".to_owned(),
        }
    }

    fn column(&self, name: &str) -> String {
        format!("_t.{}", self.name(name))
    }

    fn partition_columns(&self, _version: u32) -> [String; 2] {
        [self.column("dt"), self.column("schema_version")]
    }

    fn structure(&self, value: &str, members: &[(&str, String)], to: &DataType) -> String {
        let all: Vec<&str> = members.iter().map(|(_, of)| of.as_str()).collect();
        let row = self.cast(&format!("ROW({})", all.join(", ")), to);
        format!("CASE WHEN {value} IS NOT NULL THEN {row} END")
    }

    fn list(&self, value: &str, depth: usize, body: &str) -> String {
        format!("transform({value}, _e{depth} -> {body})")
    }

    fn map(&self, value: &str, depth: usize, body: &str) -> String {
        format!("transform_values({value}, (_k{depth}, _v{depth}) -> {body})")
    }

    fn matches(&self, value: &str, pattern: &str) -> String {
        format!("regexp_like({value}, {})", self.text(pattern))
    }

    fn instant_of_text(&self, value: &str) -> String {
        let instant = format!("from_iso8601_timestamp_nanos({value}) AT TIME ZONE 'UTC'");
        format!("TRY(CAST({instant} AS TIMESTAMP(6)))")
    }

    fn instant_of_day(&self, value: &str) -> String {
        format!("CAST({value} AS TIMESTAMP(6))")
    }

    fn is_midnight(&self, value: &str) -> String {
        format!("date_trunc('day', {value}) = {value}")
    }

    fn day_of_instant(&self, value: &str) -> String {
        format!("CAST({value} AS DATE)")
    }

    fn source(&self, scan: &Scan<'_>) -> Result<String> {
        let Some(table) = scan.table else {
            return Err(
                Error::invalid("Trino reads a folder through a registered table").hint(
                    "`--table catalog.schema.table` names it; the answer says how to register it",
                ),
            );
        };
        let table = quote_path(self, table)?;
        let version = scan.version;
        Ok(format!(
            "{table} AS _t\nWHERE _t.\"schema_version\" = {version}"
        ))
    }
}

/// The columns of the registered table: every name that a version has, with its widest type. Newest
/// versions come first in `versions`. Two fields of one name cannot be told apart by name.
pub(super) fn table_columns(versions: &[&Fields]) -> Result<Fields> {
    let mut all: Vec<FieldRef> = Vec::new();
    for columns in versions {
        add_by_name(&mut all, columns)?;
    }
    Ok(Fields::from(all))
}

fn add_by_name(into: &mut Vec<FieldRef>, older: &Fields) -> Result<()> {
    for field in older {
        let folded = field.name().to_lowercase();
        match into.iter_mut().find(|f| f.name().to_lowercase() == folded) {
            None => into.push(Arc::clone(field)),
            Some(known) if field_id(known) != field_id(field) => {
                let said = format!("the name `{}` belongs to two fields", field.name());
                return Err(Error::precondition(said)
                    .hint("Trino reads columns by name; the other engines can read this dataset"));
            }
            Some(known) => {
                let merged = with_members_of(known.data_type(), field.data_type())?;
                *known = Arc::new(Field::clone(known).with_data_type(merged));
            }
        }
    }
    Ok(())
}

fn with_members_of(newer: &DataType, older: &DataType) -> Result<DataType> {
    let inner = |a: &FieldRef, b: &FieldRef| -> Result<FieldRef> {
        let merged = with_members_of(a.data_type(), b.data_type())?;
        Ok(Arc::new(Field::clone(a).with_data_type(merged)))
    };
    Ok(match (newer, older) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            let mut members: Vec<FieldRef> = a.iter().cloned().collect();
            add_by_name(&mut members, b)?;
            DataType::Struct(Fields::from(members))
        }
        (DataType::List(a), DataType::List(b)) => DataType::List(inner(a, b)?),
        (DataType::Map(a, sorted), DataType::Map(b, _)) => DataType::Map(inner(a, b)?, *sorted),
        (newer, _) => newer.clone(),
    })
}

/// How the table over the folder is registered, line by line.
pub(super) fn registration(table: &str, folder: &str, columns: &Fields) -> Result<Vec<String>> {
    let quoted = quote_path(&Trino, table)?;
    let mut parts = table.rsplit('.');
    let (name, schema, catalog) = (parts.next(), parts.next(), parts.next());
    let location = doubled(folder, '\'');
    let mut lines = vec![
        "Register the table once in a Hive catalog, with hive.timestamp-precision=MICROSECONDS:"
            .to_owned(),
        format!("CREATE TABLE {quoted} ("),
    ];
    for field in columns {
        lines.push(format!(
            "  {} {},",
            Trino.name(field.name()),
            Trino.type_text(field.data_type())
        ));
    }
    lines.push("  \"dt\" DATE, \"schema_version\" BIGINT".to_owned());
    lines.push(format!(
        ") WITH (format = 'PARQUET', partitioned_by = ARRAY['dt', 'schema_version'], external_location = {location});"
    ));
    lines.push("After every ingest or correction:".to_owned());
    lines.push(format!(
        "CALL {}.system.sync_partition_metadata({}, {}, 'FULL');",
        Trino.name(catalog.unwrap_or("hive")),
        doubled(schema.unwrap_or("default"), '\''),
        doubled(name.unwrap_or(table), '\'')
    ));
    lines.push(
        "A new schema version needs the table to be registered anew. Timestamps are in UTC."
            .to_owned(),
    );
    Ok(lines)
}
