//! The Arrow columns of a schema version: physical types, field ids, our own columns.
//!
//! | field type | Arrow | Parquet |
//! | --- | --- | --- |
//! | string, enum, json | Utf8 | BYTE_ARRAY, STRING |
//! | int / float / bool | Int64 / Float64 / Boolean | INT64 / DOUBLE / BOOLEAN |
//! | decimal(p,s) | Decimal128(p,s) | DECIMAL |
//! | date / timestamp | Date32 / Timestamp(us, UTC) | DATE / TIMESTAMP(MICROS, UTC) |
//! | bytes | Binary | BYTE_ARRAY |
//! | list / map / struct | List / Map / Struct | three-level LIST / MAP / group |
//!
//! Every column is nullable, our `source` aside. Ids of list elements and map entries are derived
//! from the field's id, so they are as stable as it is.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use crate::spec::{FieldSpec, FieldType};

/// Key of a column's field id in Arrow metadata.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";
/// Largest id a schema may use.
pub const MAX_FIELD_ID: u32 = 10_000_000;
/// The constant column that names the source.
pub const SOURCE_COLUMN: &str = "source";
/// Field id of [`SOURCE_COLUMN`].
pub const SOURCE_FIELD_ID: u32 = 1_000_000_001;
/// The JSON column of unknown fields.
pub const EXTRA_COLUMN: &str = "_extra";
/// Field id of [`EXTRA_COLUMN`].
pub const EXTRA_FIELD_ID: u32 = 1_000_000_002;

/// First id of list elements and map entries; each field owns [`IDS_PER_FIELD`] of them.
const NESTED_BASE: u32 = 1_100_000_000;
const IDS_PER_FIELD: u32 = 32;

fn with_id(field: Field, id: u32) -> Field {
    field.with_metadata(HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]))
}

/// The column of `field`; nested levels take derived ids.
fn column(field: &FieldSpec) -> Field {
    with_id(
        Field::new(
            field.column_name(),
            arrow_type(field, &field.field_type),
            true,
        ),
        field.id,
    )
}

/// The Arrow type of `field_type`, which is the field's own type or one nested in it.
#[must_use]
pub fn arrow_type(field: &FieldSpec, field_type: &FieldType) -> DataType {
    nested_type(field, field_type, 0)
}

fn nested_type(field: &FieldSpec, field_type: &FieldType, depth: u32) -> DataType {
    let id = |slot: u32| NESTED_BASE + field.id * IDS_PER_FIELD + depth * 2 + slot;
    match field_type {
        FieldType::String | FieldType::Enum | FieldType::Json => DataType::Utf8,
        FieldType::Int => DataType::Int64,
        FieldType::Float => DataType::Float64,
        FieldType::Bool => DataType::Boolean,
        FieldType::Decimal { precision, scale } => {
            DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(0))
        }
        FieldType::Date => DataType::Date32,
        FieldType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        FieldType::Bytes => DataType::Binary,
        FieldType::List(t) => DataType::List(Arc::new(with_id(
            Field::new("element", nested_type(field, t, depth + 1), true),
            id(0),
        ))),
        FieldType::Map(t) => {
            let key = with_id(Field::new("key", DataType::Utf8, false), id(0));
            let value = with_id(
                Field::new("value", nested_type(field, t, depth + 1), true),
                id(1),
            );
            let entries = DataType::Struct(Fields::from(vec![key, value]));
            DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
        }
        FieldType::Struct => DataType::Struct(field.fields.iter().map(column).collect()),
    }
}

/// The columns of a data file: the fields in order, then `source`, then `_extra`.
#[must_use]
pub fn arrow_schema(fields: &[FieldSpec]) -> Schema {
    let mut columns: Vec<Field> = fields.iter().map(column).collect();
    columns.push(with_id(
        Field::new(SOURCE_COLUMN, DataType::Utf8, false),
        SOURCE_FIELD_ID,
    ));
    columns.push(with_id(
        Field::new(EXTRA_COLUMN, DataType::Utf8, true),
        EXTRA_FIELD_ID,
    ));
    Schema::new(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(fields: &Fields, into: &mut Vec<u32>) {
        for f in fields {
            into.extend(
                f.metadata()
                    .get(FIELD_ID_KEY)
                    .and_then(|t| t.parse::<u32>().ok()),
            );
            match f.data_type() {
                DataType::Struct(inner) => ids(inner, into),
                DataType::List(inner) | DataType::Map(inner, _) => {
                    ids(&Fields::from(vec![inner.clone()]), into)
                }
                _ => {}
            }
        }
    }

    #[test]
    fn ids_are_unique_at_every_depth_and_fit_an_i32() {
        let mut author = FieldSpec::new(
            MAX_FIELD_ID,
            "a",
            "list<map<list<struct>>>".parse().unwrap(),
        );
        author.fields = vec![
            FieldSpec::new(7, "n", FieldType::Int),
            FieldSpec::new(8, "l", "list<int>".parse().unwrap()),
        ];
        let schema = arrow_schema(&[
            author,
            FieldSpec::new(1, "b", "map<string>".parse().unwrap()),
        ]);
        let mut all = Vec::new();
        ids(&schema.fields, &mut all);
        let count = all.len();
        assert_eq!(count, 5 + 3 + 3 + 2);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|id| i32::try_from(*id).is_ok()));
    }
}
