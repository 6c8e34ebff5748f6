//! Data that is no table: whole JSON values, one a line, without a schema; and the bytes as they were fetched.
//!
//! Such a dataset has schema version 0 alone. In the raw layer its files are packs and their indexes; in
//! others they are JSON lines in zstd, and SQL shows it as one column. A dataset is wholly of one kind
//! (LOG-12).

use crate::name::{DatasetRef, Layer};
use crate::spec::{
    FieldSpec, FieldType, FileFormat, PACK_INDEX_SUFFIX, PACK_SUFFIX, ReadSpec, SchemaSpec,
};

/// The schema version of what has no schema.
pub const SCHEMALESS_VERSION: u32 = 0;
/// The column that holds a line.
pub const JSON_COLUMN: &str = "json";
/// Its field id.
const JSON_FIELD_ID: u32 = 1;

impl FileFormat {
    /// The format of the files of a schema version in a layer; of packs and their indexes, the packs.
    #[must_use]
    pub fn of_version(layer: Layer, schema_version: u32) -> Self {
        match (layer, schema_version) {
            (Layer::Raw, SCHEMALESS_VERSION) => Self::Rawpack,
            (Layer::Clean | Layer::Feature, SCHEMALESS_VERSION) => Self::Jsonl,
            _ => Self::Parquet,
        }
    }

    /// Whether a file of this format lies among files of `main`.
    #[must_use]
    pub fn belongs_to(self, main: Self) -> bool {
        self == main || (self, main) == (Self::RawpackIndex, Self::Rawpack)
    }

    /// The end of a data file's name.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Jsonl => "jsonl.zst",
            Self::Rawpack => &PACK_SUFFIX[1..],
            Self::RawpackIndex => &PACK_INDEX_SUFFIX[1..],
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
