//! Names of top-level columns that are Lakebed's own.

use crate::spec::FieldType;

/// The columns of rows that were parsed from pages: where a row comes from, what it tells of, when its page
/// was fetched. A schema may declare them, by these very names and types (docs/parse.md).
const ORIGIN: [(&str, FieldType); 3] = [
    ("_raw", FieldType::String),
    ("_key", FieldType::String),
    ("_fetched_at", FieldType::Timestamp),
];

/// Whether a top-level column of that name would clash with Lakebed's own, in any case.
#[must_use]
pub fn is_reserved_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.starts_with('_') || ["dt", "schema_version", "source"].contains(&lower.as_str())
}

/// The type that a column of rows from pages must have; `None` for any other name.
#[must_use]
pub fn origin_type(name: &str) -> Option<FieldType> {
    let found = ORIGIN.iter().find(|(n, _)| *n == name);
    found.map(|(_, t)| t.clone())
}
