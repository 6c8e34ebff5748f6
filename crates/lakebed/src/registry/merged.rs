//! The columns of a dataset over all its schema versions, merged by field id.
//!
//! Order: the newest version's fields in their order, then fields that only older versions have
//! (newer of them first), then `_extra`. Where two ids share a name, the newer field keeps it and the
//! older one is called `<name>__v<N>`, N being the last version that had it; the same holds for
//! members of structs. `source`, `dt` and `schema_version` come before these, wherever rows are shown.
//!
//! A retyped field is one column with the fields that it took the place of: their values are cast to
//! the newest type, one by one. What a cast would lose stands untouched in the rest, a column
//! `<name>__v<N>`, N being the last version that had the old type; where nothing can be lost there is
//! none.
//!
//! This is the one rule by which SQL and the views for other engines show a dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};

use crate::registry::cast::{Cast, CastClass};
use crate::spec::{
    ChangeKind, EXTRA_COLUMN, EXTRA_FIELD_ID, FIELD_ID_KEY, FieldSpec, SOURCE_COLUMN, SchemaSpec,
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

/// A column over all versions.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedColumn {
    /// Name and type as readers see them, with field ids at every depth.
    pub field: FieldRef,
    /// Where its values come from.
    pub source: ColumnSource,
}

/// Where the values of a column come from, file by file.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnSource {
    /// From the field of its id.
    Own,
    /// From the field of its id, and, cast, from those that it took the place of (newest first).
    Retyped(Vec<OldField>),
    /// From the field of its id: the values that this cast would not keep whole.
    Rest(Cast),
}

/// A field in whose place a retyped one came.
#[derive(Debug, Clone, PartialEq)]
pub struct OldField {
    /// Its last name and type, with field ids.
    pub field: FieldRef,
    /// How its values become those of the newest type.
    pub cast: Cast,
}

/// The columns over `versions` that files hold, `source` aside.
#[must_use]
pub fn merge_columns(versions: &BTreeMap<u32, SchemaSpec>) -> Vec<MergedColumn> {
    let retyped = Retyped::find(versions);
    let mut merged: Vec<FieldRef> = Vec::new();
    let mut extra = None;
    for (version, spec) in versions.iter().rev() {
        let columns = arrow_schema(&spec.fields);
        let (declared, ours) = columns.fields().split_at(spec.fields.len());
        extra = extra.or_else(|| {
            ours.iter()
                .find(|f| field_id(f) == Some(EXTRA_FIELD_ID))
                .cloned()
        });
        let shown = declared.iter().zip(&spec.fields).map(|(column, field)| {
            let name = retyped.shown_name(field);
            Arc::new(Field::clone(column).with_name(name))
        });
        merge_fields(&mut merged, &shown.collect(), *version, &RESERVED);
    }
    let mut columns = retyped.columns(merged);
    columns.extend(extra.map(own));
    columns
}

fn own(field: FieldRef) -> MergedColumn {
    MergedColumn {
        field,
        source: ColumnSource::Own,
    }
}

/// For each field that took the place of another one: which. New id -> old id.
///
/// A retyped field takes the place of the one that was called like it before the version that
/// brought it, and was there last. No place is taken twice.
#[must_use]
pub fn retyped_ids<'a>(versions: impl IntoIterator<Item = &'a SchemaSpec>) -> BTreeMap<u32, u32> {
    let mut links: BTreeMap<u32, u32> = BTreeMap::new();
    // Id -> its last version and name.
    let mut known: BTreeMap<u32, (u32, String)> = BTreeMap::new();
    for spec in versions {
        for field in &spec.fields {
            if field.change != Some(ChangeKind::Retype) || known.contains_key(&field.id) {
                continue;
            }
            let name = field.name.to_lowercase();
            let named = known.iter().filter(|(_, (_, n))| *n == name);
            let holder = named.max_by_key(|(_, (version, _))| *version);
            if let Some((old, _)) = holder
                && !links.values().any(|taken| taken == old)
            {
                links.insert(field.id, *old);
            }
        }
        let fields = spec.fields.iter();
        known.extend(fields.map(|f| (f.id, (spec.version, f.name.to_lowercase()))));
    }
    links
}

/// Which fields stand in the place of which.
struct Retyped<'a> {
    /// Old id -> the newest field in its place.
    heads: BTreeMap<u32, &'a FieldSpec>,
    /// The last form of every field by id.
    fields: BTreeMap<u32, &'a FieldSpec>,
}

impl<'a> Retyped<'a> {
    fn find(versions: &'a BTreeMap<u32, SchemaSpec>) -> Self {
        let all = versions.values().flat_map(|spec| &spec.fields);
        let fields: BTreeMap<u32, &FieldSpec> = all.map(|f| (f.id, f)).collect();
        let links = retyped_ids(versions.values());
        let next: BTreeMap<u32, u32> = links.into_iter().map(|(new, old)| (old, new)).collect();
        let mut heads = BTreeMap::new();
        for old in next.keys() {
            // A field is newer than the one whose place it took, so there is an end.
            let mut newest = old;
            while let Some(new) = next.get(newest) {
                newest = new;
            }
            heads.extend(fields.get(newest).map(|field| (*old, *field)));
        }
        Self { heads, fields }
    }

    /// What its column is called where no other one has the name.
    fn shown_name(&self, field: &'a FieldSpec) -> &'a str {
        let head = self.heads.get(&field.id);
        head.map_or(field.name.as_str(), |head| head.name.as_str())
    }

    fn cast_of(&self, id: u32) -> Option<Cast> {
        let (old, head) = (self.fields.get(&id)?, self.heads.get(&id)?);
        let cast = Cast::to_field(&old.field_type, head);
        cast.class().is_some().then_some(cast)
    }

    /// The merged fields with their sources; what every cast keeps whole has no column.
    fn columns(&self, merged: Vec<FieldRef>) -> Vec<MergedColumn> {
        let mut old: BTreeMap<u32, Vec<OldField>> = BTreeMap::new();
        for field in &merged {
            let id = field_id(field).unwrap_or_default();
            if let (Some(cast), Some(head)) = (self.cast_of(id), self.heads.get(&id)) {
                let field = Arc::clone(field);
                old.entry(head.id)
                    .or_default()
                    .push(OldField { field, cast });
            }
        }
        let source_of = |id: u32| match (self.cast_of(id), old.get(&id)) {
            (Some(cast), _) if cast.class() == Some(CastClass::Always) => None,
            (Some(cast), _) => Some(ColumnSource::Rest(cast)),
            (None, Some(old)) => Some(ColumnSource::Retyped(old.clone())),
            (None, None) => Some(ColumnSource::Own),
        };
        merged
            .into_iter()
            .filter_map(|field| {
                let source = source_of(field_id(&field).unwrap_or_default())?;
                Some(MergedColumn { field, source })
            })
            .collect()
    }
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

#[cfg(test)]
mod tests;
