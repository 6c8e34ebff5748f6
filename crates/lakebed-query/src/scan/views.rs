//! Texts as views of the pages they lie in, which takes no copy of any text.
//!
//! Columns and members of structs are views, at every depth; texts within lists and maps are as they
//! are in the file, since functions over lists know those best. A reader takes its types from the
//! schema in the footer, so that is where they are asked for.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion::parquet::arrow::{
    ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema,
};
use datafusion::parquet::errors::Result;
use datafusion::parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder,
};

/// The field with views in the place of texts.
pub(crate) fn with_views(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Struct(members) => DataType::Struct(members.iter().map(with_views).collect()),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// The field with texts in the place of views: how rows leave the engine.
pub(crate) fn without_views(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::Struct(members) => DataType::Struct(members.iter().map(without_views).collect()),
        DataType::List(item) => DataType::List(without_views(item)),
        DataType::Map(entries, sorted) => DataType::Map(without_views(entries), *sorted),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// The footer by which a reader yields texts as views.
pub(super) fn footer_with_views(footer: ParquetMetaData) -> Result<ParquetMetaData> {
    let file = footer.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
    let fields: Fields = schema.fields().iter().map(with_views).collect();
    let schema = Schema::new_with_metadata(fields, schema.metadata);
    let mut keys = file.key_value_metadata().cloned().unwrap_or_default();
    keys.retain(|pair| pair.key != ARROW_SCHEMA_META_KEY);
    keys.push(KeyValue::new(
        ARROW_SCHEMA_META_KEY.to_owned(),
        encode_arrow_schema(&schema),
    ));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        Some(keys),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let mut parts = footer.into_builder();
    Ok(ParquetMetaDataBuilder::new(file)
        .set_row_groups(parts.take_row_groups())
        .set_column_index(parts.take_column_index())
        .set_offset_index(parts.take_offset_index())
        .build())
}
