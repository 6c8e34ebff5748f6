//! The schema versions of snapshot and events: they follow from the rules and the types of the inputs.

use crate::error::{Error, Result};
use crate::fold::rules::FoldRules;
use crate::name::DatasetRef;
use crate::registry::{next_free_id, widens};
use crate::spec::{
    FieldSpec, FieldType, Privacy, PublishedSchema, ReadSpec, RemovedField, SchemaSpec,
};

/// What is written into the note of a version.
const NOTE: &str = "follows from the rules of the fold; `lakebed fold SOURCE --schema` writes it";

/// The kinds of events, in the order of the enum.
pub(super) const EVENTS: [&str; 4] = ["appeared", "changed", "vanished", "returned"];

/// The columns of both datasets, ids aside.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldSchemas {
    /// Of the snapshot.
    pub snapshot: (DatasetRef, Vec<FieldSpec>),
    /// Of the events.
    pub events: (DatasetRef, Vec<FieldSpec>),
}

impl FoldSchemas {
    /// Those of the rules.
    pub fn of(rules: &FoldRules) -> Result<Self> {
        Ok(Self {
            snapshot: (rules.snapshot()?, rules.specs.clone()),
            events: (rules.events()?, event_fields(rules)),
        })
    }
}

/// The columns of the events of a fold.
pub(super) fn event_fields(rules: &FoldRules) -> Vec<FieldSpec> {
    let mut fields = rules.key().to_vec();
    let mut event = FieldSpec::new(0, "event", FieldType::Enum);
    event.values = EVENTS.map(str::to_owned).to_vec();
    let watched = rules
        .watch
        .iter()
        .map(|at| &rules.specs[rules.key_len + at]);
    let personal = watched.filter(|spec| is_personal(spec)).count() > 0;
    let value = |name: &str| {
        let mut field = FieldSpec::new(0, name, FieldType::Json);
        // A change of a personal value tells the value.
        field.privacy = personal.then_some(Privacy::Personal);
        field
    };
    fields.extend([
        event,
        FieldSpec::new(0, "field", FieldType::String),
        value("old"),
        value("new"),
        FieldSpec::new(0, "late", FieldType::Bool),
        FieldSpec::new(0, "seen_at", FieldType::Timestamp),
    ]);
    fields
}

fn is_personal(field: &FieldSpec) -> bool {
    field.is_personal() || field.fields.iter().any(is_personal)
}

/// The version that the columns need; `None` where the newest published one is it.
///
/// # Errors
/// `PreconditionFailed` where a column has another type than it had: it needs another name.
pub fn next_schema(
    dataset: &DatasetRef,
    columns: &[FieldSpec],
    history: &[PublishedSchema],
) -> Result<Option<SchemaSpec>> {
    let newest = history.last().map(|p| &p.schema);
    let mut next_id = next_free_id(history);
    let mut fields = Vec::new();
    for column in columns {
        let versions = history.iter().rev();
        let known = versions
            .flat_map(|p| &p.schema.fields)
            .find(|f| f.name == column.name);
        fields.push(settle(dataset, column, known, &mut next_id)?);
    }
    let gone = newest.iter().flat_map(|schema| &schema.fields);
    let gone = gone.filter(|f| !fields.iter().any(|kept: &FieldSpec| kept.id == f.id));
    let spec = SchemaSpec {
        dataset: dataset.clone(),
        version: newest.map_or(1, |schema| schema.version + 1),
        note: Some(NOTE.to_owned()),
        base: newest.map(|schema| schema.version),
        removed: gone.map(|f| RemovedField::Name(f.name.clone())).collect(),
        input: ReadSpec::default(),
        fields,
    };
    match newest {
        Some(newest) if newest.fields == spec.fields => Ok(None),
        _ => Ok(Some(spec)),
    }
}

/// The column with the id that it has had, or a new one.
fn settle(
    dataset: &DatasetRef,
    column: &FieldSpec,
    known: Option<&FieldSpec>,
    next_id: &mut u32,
) -> Result<FieldSpec> {
    let mut field = column.clone();
    match known {
        Some(known) => {
            let same = known.field_type == column.field_type
                || widens(&known.field_type, &column.field_type);
            if !same {
                return Err(Error::precondition(format!(
                    "`{}` of `{dataset}` was {}, and is {} by the rules",
                    column.name, known.field_type, column.field_type
                ))
                .hint("a field of another type needs another name: what earlier snapshots hold keeps its meaning"));
            }
            field.id = known.id;
            let new = column.values.iter().filter(|v| !known.values.contains(v));
            field.values = known.values.iter().chain(new).cloned().collect();
        }
        None => {
            field.id = *next_id;
            *next_id += 1;
        }
    }
    field.fields = Vec::new();
    for member in &column.fields {
        let known = known.and_then(|k| k.fields.iter().find(|f| f.name == member.name));
        field.fields.push(settle(dataset, member, known, next_id)?);
    }
    Ok(field)
}
