//! Data that is no table: whole JSON values, one a line, without a schema.
//!
//! Such a dataset has schema version 0 alone, its files are JSON lines in zstd, and SQL shows it as one
//! column. A dataset is wholly of this kind or wholly tables (LOG-12).

use crate::name::DatasetRef;
use crate::spec::{FieldSpec, FieldType, FileFormat, ReadSpec, SchemaSpec};

/// The schema version of what has no schema.
pub const SCHEMALESS_VERSION: u32 = 0;
/// The column that holds a line.
pub const JSON_COLUMN: &str = "json";
/// Its field id.
const JSON_FIELD_ID: u32 = 1;

impl FileFormat {
    /// The format of the files of a schema version.
    #[must_use]
    pub fn of_version(schema_version: u32) -> Self {
        match schema_version {
            SCHEMALESS_VERSION => Self::Jsonl,
            _ => Self::Parquet,
        }
    }

    /// The end of a data file's name.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Jsonl => "jsonl.zst",
        }
    }
}

impl SchemaSpec {
    /// What stands in the place of a schema where there is none: one column of whole JSON values.
    #[must_use]
    pub fn schemaless(dataset: DatasetRef) -> Self {
        Self {
            dataset,
            version: SCHEMALESS_VERSION,
            note: None,
            base: None,
            removed: Vec::new(),
            input: ReadSpec::default(),
            fields: vec![FieldSpec::new(JSON_FIELD_ID, JSON_COLUMN, FieldType::Json)],
        }
    }
}
