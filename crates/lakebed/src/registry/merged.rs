//! The columns of a dataset over all its schema versions, merged by field id.
//!
//! Order: the newest version's fields in their order, then fields that only older versions have
//! (newer of them first), then `_extra`. Where two ids share a name, the newer field keeps it and the
//! older one is called `<name>__v<N>`, N being the last version that had it; the same holds for
//! members of structs. `source`, `dt` and `schema_version` come before these, wherever rows are shown.
//!
//! This is the one rule by which SQL and the views for other engines show a dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};

use crate::spec::{
    EXTRA_COLUMN, EXTRA_FIELD_ID, FIELD_ID_KEY, SOURCE_COLUMN, SOURCE_FIELD_ID, SchemaSpec,
    arrow_schema,
};

/// The column of business dates.
pub const DT_COLUMN: &str = "dt";
/// The column of schema version numbers.
pub const VERSION_COLUMN: &str = "schema_version";
/// The column of commit ids, in queries that name it.
pub const COMMIT_COLUMN: &str = "_commit";
/// The column of file paths, in queries that name it.
pub const FILE_COLUMN: &str = "_file";
/// The column of a row's place in its file, from 0, in queries that name it.
pub const ROW_COLUMN: &str = "_row";

/// Names that no merged column takes.
const RESERVED: [&str; 7] = [
    SOURCE_COLUMN,
    DT_COLUMN,
    VERSION_COLUMN,
    EXTRA_COLUMN,
    COMMIT_COLUMN,
    FILE_COLUMN,
    ROW_COLUMN,
];

/// The field id in a column's metadata; `None` where there is none.
#[must_use]
pub fn field_id(field: &Field) -> Option<u32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

/// The columns over `versions` that files hold, `source` aside, with field ids at every depth.
#[must_use]
pub fn merge_columns(versions: &BTreeMap<u32, SchemaSpec>) -> Vec<FieldRef> {
    let mut merged: Vec<FieldRef> = Vec::new();
    let mut extra = None;
    for (version, spec) in versions.iter().rev() {
        let columns = arrow_schema(&spec.fields);
        let (ours, declared): (Vec<FieldRef>, Vec<FieldRef>) = columns
            .fields()
            .iter()
            .cloned()
            .partition(|f| matches!(field_id(f), Some(SOURCE_FIELD_ID | EXTRA_FIELD_ID)));
        extra = extra.or_else(|| {
            ours.into_iter()
                .find(|f| field_id(f) == Some(EXTRA_FIELD_ID))
        });
        merge_fields(&mut merged, &Fields::from(declared), *version, &RESERVED);
    }
    merged.extend(extra);
    merged
}

fn free_name(taken: &BTreeSet<String>, name: &str, version: u32) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    let mut candidate = format!("{name}__v{version}");
    while taken.contains(&candidate) {
        candidate.push('_');
    }
    candidate
}

/// `newer` with every struct member that only `older` (of version `version`) has.
fn merge_types(newer: &DataType, older: &DataType, version: u32) -> DataType {
    match (newer, older) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            let mut members: Vec<FieldRef> = a.iter().cloned().collect();
            merge_fields(&mut members, b, version, &[]);
            DataType::Struct(Fields::from(members))
        }
        (DataType::List(a), DataType::List(b)) => DataType::List(merge_field(a, b, version)),
        (DataType::Map(a, sorted), DataType::Map(b, _)) => {
            DataType::Map(merge_field(a, b, version), *sorted)
        }
        (newer, _) => newer.clone(),
    }
}

fn merge_field(newer: &Field, older: &Field, version: u32) -> FieldRef {
    let merged = merge_types(newer.data_type(), older.data_type(), version);
    Arc::new(newer.clone().with_data_type(merged))
}

fn merge_fields(into: &mut Vec<FieldRef>, older: &Fields, version: u32, reserved: &[&str]) {
    let mut taken: BTreeSet<String> = into.iter().map(|f| f.name().clone()).collect();
    taken.extend(reserved.iter().map(|&n| n.to_owned()));
    for field in older {
        let id = field_id(field);
        match into.iter_mut().find(|f| id.is_some() && field_id(f) == id) {
            Some(known) => *known = merge_field(known, field, version),
            None => {
                let name = free_name(&taken, field.name(), version);
                taken.insert(name.clone());
                into.push(Arc::new(field.as_ref().clone().with_name(name)));
            }
        }
    }
}
