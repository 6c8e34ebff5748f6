//! Names of top-level columns that are Lakebed's own.

/// Whether a top-level column of that name would clash with Lakebed's own, in any case.
#[must_use]
pub fn is_reserved_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.starts_with('_') || ["dt", "schema_version", "source"].contains(&lower.as_str())
}
