//! Evidence from typed inputs: the type that the file declares for a column.

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};

use crate::ingest::infer::evidence::Members;
use crate::spec::{FieldSpec, FieldType};

/// A column's declared type, as ours.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TypedColumn {
    pub(super) field_type: FieldType,
    /// Members of a struct under it; their ids are 0.
    pub(super) fields: Vec<FieldSpec>,
    pub(super) reason: String,
}

pub(super) fn add_batch(root: &mut Members, batch: &RecordBatch, file: usize) {
    for (column, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
        let evidence = root.entry(field.name(), file);
        evidence.last_file = file;
        let nulls = u64::try_from(column.logical_null_count()).unwrap_or(0);
        let rows = u64::try_from(column.len()).unwrap_or(0);
        evidence.kinds.null += nulls;
        evidence.kinds.typed += rows.saturating_sub(nulls);
        let typed = column_type(field);
        if !evidence.typed.contains(&typed) {
            evidence.typed.push(typed);
        }
    }
}

fn column_type(field: &Field) -> TypedColumn {
    let (field_type, fields, note) = convert(field.data_type());
    TypedColumn {
        field_type,
        fields,
        reason: format!("the file declares `{}`{note}", field.data_type()),
    }
}

fn convert(data_type: &DataType) -> (FieldType, Vec<FieldSpec>, &'static str) {
    let plain = |t| (t, Vec::new(), "");
    match data_type {
        DataType::Boolean => plain(FieldType::Bool),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => plain(FieldType::Int),
        DataType::UInt64 => plain(FieldType::Decimal {
            precision: 20,
            scale: 0,
        }),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => plain(FieldType::Float),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => plain(FieldType::String),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => plain(FieldType::Bytes),
        DataType::Date32 | DataType::Date64 => plain(FieldType::Date),
        DataType::Timestamp(_, Some(_)) => plain(FieldType::Timestamp),
        DataType::Timestamp(_, None) => (
            FieldType::Timestamp,
            Vec::new(),
            ", a wall time: declare `time_zone`, without it the values are a mismatch",
        ),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => match u8::try_from(*s) {
            Ok(scale) if *p <= 38 && scale <= *p => plain(FieldType::Decimal {
                precision: *p,
                scale,
            }),
            Ok(_) | Err(_) => (FieldType::Json, Vec::new(), ", wider than decimal(38,s)"),
        },
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => {
            let (inner, fields, note) = convert(inner.data_type());
            (FieldType::List(Box::new(inner)), fields, note)
        }
        DataType::Struct(members) if !members.is_empty() => {
            let fields = members.iter().map(|m| member(m)).collect();
            (FieldType::Struct, fields, "")
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 && pair[0].data_type() == &DataType::Utf8 => {
                let (inner, fields, note) = convert(pair[1].data_type());
                (FieldType::Map(Box::new(inner)), fields, note)
            }
            _ => (FieldType::Json, Vec::new(), ", whose keys are no texts"),
        },
        DataType::Dictionary(_, values) => convert(values),
        DataType::Null
        | DataType::Struct(_)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(_, _)
        | DataType::RunEndEncoded(_, _) => {
            (FieldType::Json, Vec::new(), ", for which there is no type")
        }
    }
}

fn member(field: &Field) -> FieldSpec {
    let (field_type, fields, _) = convert(field.data_type());
    let mut spec = FieldSpec::new(0, field.name(), field_type);
    spec.fields = fields;
    spec
}
