//! The stage `derive`: the rows that two queries gave for the same parents.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::flow::shadow::record::{ShadowDate, ShadowOptions};
use crate::flow::shadow::tables::{RowsOf, ShadowTable, compare_tables};
use crate::name::DatasetRef;
use crate::spec::{FieldSpec, FieldType, ShadowDay, arrow_type};

/// The columns by which the rows of both meet, and by which both are to be sorted, nulls last: the declared key of the
/// dataset, or all columns that both have in one simple type.
///
/// # Errors
/// `PreconditionFailed` where no column is left.
pub fn shadow_key(
    dataset: &DatasetRef,
    declared: &[String],
    (old, new): (&[FieldSpec], &[FieldSpec]),
    options: &ShadowOptions,
) -> Result<Vec<String>> {
    if !declared.is_empty() {
        return Ok(declared.to_vec());
    }
    let name = dataset.dataset.as_str();
    let type_of = |field: &FieldSpec| arrow_type(field, &field.field_type);
    let is_simple = |field: &&FieldSpec| {
        !matches!(
            field.field_type,
            FieldType::List(_) | FieldType::Map(_) | FieldType::Struct
        )
    };
    let is_shared = |field: &&FieldSpec| {
        let same = new.iter().find(|f| f.name == field.name);
        same.is_some_and(|other| type_of(other) == type_of(field))
    };
    let shared = old.iter().filter(is_simple).filter(is_shared);
    let shared = shared.filter(|f| !options.is_ignored(name, &f.name));
    let key: Vec<String> = shared.map(|f| f.name.clone()).collect();
    match key.is_empty() {
        false => Ok(key),
        true => Err(Error::precondition(format!(
            "both queries of `{dataset}` have no column in common by which their rows could meet"
        ))
        .hint(format!(
            "declare its key: key = [\"...\"] in [dataset.\"{name}\"] of source.toml"
        ))),
    }
}

/// Compares the rows of both, sorted as [`shadow_key`] says, and ends the date.
///
/// # Errors
/// `PreconditionFailed` for a column of the key that only one has, or that has two types.
pub fn shadow_derived(
    mut open: ShadowDate,
    (dataset, key): (&DatasetRef, &[String]),
    (old, new): (&ShadowTable, &ShadowTable),
    options: &ShadowOptions,
) -> Result<ShadowDay> {
    let name = dataset.dataset.as_str();
    let of = RowsOf {
        kind: "row",
        dataset: name,
        key,
        optional: 0,
        nulls_first: false,
        is_ignored: &|field| options.is_ignored(name, field),
    };
    compare_tables(&of, (old, new), &mut |item| open.take(None, item))?;
    open.finish()
}

/// Refuses a declared key that a query does not give.
///
/// # Errors
/// `PreconditionFailed` that names file and column.
pub fn check_shadow_key(key: &[String], fields: &[FieldSpec], file: &str) -> Result<()> {
    let there: BTreeSet<&str> = fields.iter().map(|f| f.name.as_str()).collect();
    match key.iter().find(|name| !there.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Error::precondition(format!(
            "the query does not give `{name}`, a column of the declared key"
        ))
        .with("file", file)
        .hint("rows of both meet by the key: give it, or take it out of [dataset.<name>]")),
    }
}
