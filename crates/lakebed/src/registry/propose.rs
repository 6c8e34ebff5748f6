//! The next version, made ready for people to review: fresh ids, sound names, a note.
//!
//! The evidence (which fields files carry, of which type) comes from elsewhere as `FieldSpec`s.
//! Nothing is published here, and an existing field never changes but where a `dual` field needs it.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::nearest;
use crate::error::{Error, Result};
use crate::name::DatasetRef;
use crate::registry::{input_path, is_reserved_name, list_fields, origin_type};
use crate::spec::{ChangeKind, FieldSpec, PublishedSchema, SchemaSpec};

/// A field to add; its ids are replaced by fresh ones.
#[derive(Debug, Clone, PartialEq)]
pub struct AddedField {
    /// Id of the struct it becomes a member of; `None` = the top level.
    pub parent: Option<u32>,
    /// The field, named as inputs carry it (or with `from`).
    pub field: FieldSpec,
}

/// What the next version shall have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposal {
    /// Fields to add, in order.
    pub fields: Vec<AddedField>,
    /// Enum values to append, by id of the enum field.
    pub enum_values: BTreeMap<u32, Vec<String>>,
    /// The note; absent = one that lists what is new.
    pub note: Option<String>,
}

/// One more than the largest id that any version used, at any depth.
#[must_use]
pub fn next_free_id(history: &[PublishedSchema]) -> u32 {
    let all = history.iter().flat_map(|p| list_fields(&p.schema.fields));
    all.map(|f| f.field.id).max().unwrap_or(0).saturating_add(1)
}

/// Version 1 with these fields; ids count from 1, names are made sound.
#[must_use]
pub fn propose_first(
    dataset: &DatasetRef,
    fields: Vec<FieldSpec>,
    note: Option<String>,
) -> SchemaSpec {
    let mut spec = SchemaSpec {
        dataset: dataset.clone(),
        version: 1,
        note,
        base: None,
        removed: Vec::new(),
        input: crate::spec::ReadSpec::default(),
        fields: Vec::new(),
    };
    let mut next_id = 1;
    let mut taken = BTreeSet::new();
    for field in fields {
        let field = settle(field, &mut next_id, &mut taken, true);
        spec.fields.push(field);
    }
    spec
}

/// The version after the newest of `history`, which must have one.
///
/// An unknown parent or enum id is a `NotFound` error.
pub fn propose_next(history: &[PublishedSchema], proposal: Proposal) -> Result<SchemaSpec> {
    let Some(base) = history.last().map(|p| &p.schema) else {
        return Err(Error::not_found("no version is published yet")
            .hint("`lakebed schema infer` makes the first one"));
    };
    let mut spec = base.clone();
    spec.version = base.version.saturating_add(1);
    spec.base = Some(base.version);
    spec.removed.clear();
    clear_renames(&mut spec.fields);
    let mut told = Vec::new();
    let mut next_id = next_free_id(history);
    for added in proposal.fields {
        let mut taken = names_of_level(history, added.parent);
        let Some(level) = find_level(&mut spec.fields, added.parent) else {
            return Err(unknown_id(added.parent.unwrap_or(0), "struct"));
        };
        let field = settle(
            added.field,
            &mut next_id,
            &mut taken,
            added.parent.is_none(),
        );
        if field.change == Some(ChangeKind::Dual) {
            relax_old(level, &field);
        }
        told.push(format!("adds {} ({})", field.name, field.field_type));
        level.push(field);
    }
    for (id, values) in proposal.enum_values {
        let Some(field) = find_field(&mut spec.fields, id) else {
            return Err(unknown_id(id, "enum"));
        };
        if field.is_personal() {
            // Its values may stand nowhere outside the data; a person adds them by hand.
            told.push(format!(
                "{} needs further values, which are personal",
                field.name
            ));
            continue;
        }
        for value in values {
            if !value.is_empty() && !field.values.contains(&value) {
                told.push(format!("{} takes `{value}`", field.name));
                field.values.push(value);
            }
        }
    }
    spec.note = proposal
        .note
        .or_else(|| (!told.is_empty()).then(|| told.join("; ")));
    Ok(spec)
}

fn unknown_id(id: u32, kind: &str) -> Error {
    Error::not_found(format!(
        "the newest version has no {kind} field of id `{id}`"
    ))
}

fn clear_renames(fields: &mut [FieldSpec]) {
    for field in fields {
        field.renamed_from = None;
        clear_renames(&mut field.fields);
    }
}

fn find_field(fields: &mut [FieldSpec], id: u32) -> Option<&mut FieldSpec> {
    fields.iter_mut().find_map(|f| {
        if f.id == id {
            Some(f)
        } else {
            find_field(&mut f.fields, id)
        }
    })
}

fn find_level(fields: &mut Vec<FieldSpec>, parent: Option<u32>) -> Option<&mut Vec<FieldSpec>> {
    match parent {
        None => Some(fields),
        Some(id) => find_field(fields, id).map(|f| &mut f.fields),
    }
}

/// Names that any version ever used at the level, in small letters.
fn names_of_level(history: &[PublishedSchema], parent: Option<u32>) -> BTreeSet<String> {
    let all = history.iter().flat_map(|p| list_fields(&p.schema.fields));
    all.filter(|f| f.parent == parent)
        .flat_map(|f| [f.field.name.as_str(), f.field.column_name()])
        .map(str::to_lowercase)
        .collect()
}

/// The old field of a `dual` pair cannot stay required: it is NULL where only the new type fits.
fn relax_old(level: &mut [FieldSpec], dual: &FieldSpec) {
    let input = input_path(dual);
    for old in level.iter_mut().filter(|f| input_path(f) == input) {
        old.required = false;
    }
}

/// Gives fresh ids and sound names, to members too; keeps what inputs call it in `from`.
fn settle(
    mut field: FieldSpec,
    next_id: &mut u32,
    taken: &mut BTreeSet<String>,
    is_top: bool,
) -> FieldSpec {
    let name = column_name(&field.name, taken, is_top);
    if name != field.name && field.from.is_none() {
        field.from = Some(input_pointer(&field.name));
    }
    taken.insert(name.to_lowercase());
    field.name = name;
    field.id = *next_id;
    *next_id = next_id.saturating_add(1);
    field.renamed_from = None;
    let mut inner = BTreeSet::new();
    field.fields = std::mem::take(&mut field.fields)
        .into_iter()
        .map(|member| settle(member, next_id, &mut inner, false))
        .collect();
    field
}

/// `from` for an input name: the name, or a pointer where it would be read as one.
fn input_pointer(name: &str) -> String {
    if name.starts_with('/') {
        format!("/{}", name.replace('~', "~0").replace('/', "~1"))
    } else {
        name.to_owned()
    }
}

/// A sound column name for an input name, near to it and not in `taken` (small letters).
///
/// Reserved names get the ending `_value`, names without a visible character become `unnamed`,
/// control characters become `_`, and names that are taken are numbered from 2.
#[must_use]
pub fn column_name(input: &str, taken: &BTreeSet<String>, is_top: bool) -> String {
    let clean: String = input
        .chars()
        .map(|c| if c.is_control() { '_' } else { c })
        .collect();
    let mut name = clean.trim_start_matches('/').to_owned();
    let is_origin = is_top && origin_type(&name).is_some();
    if is_top && !is_origin {
        name = name.trim_start_matches('_').to_owned();
    }
    if name.trim().is_empty() {
        "unnamed".clone_into(&mut name);
    }
    // Room for a number within the 255 bytes of a name.
    while name.len() > 240 {
        name.pop();
    }
    if is_top && !is_origin && is_reserved_name(&name) {
        name.push_str("_value");
    }
    let free = |name: &str| !taken.contains(&name.to_lowercase());
    if free(&name) {
        return name;
    }
    let mut number = 2_u32;
    loop {
        let numbered = format!("{name}_{number}");
        if free(&numbered) {
            return numbered;
        }
        number = number.saturating_add(1);
    }
}

/// Unused evidence has a nearest known field: the usual cause is a renamed or misspelt one.
#[must_use]
pub fn nearest_field<'a>(name: &str, spec: &'a SchemaSpec) -> Option<&'a str> {
    nearest(name, spec.fields.iter().map(FieldSpec::input_name))
}

#[cfg(test)]
mod tests;
