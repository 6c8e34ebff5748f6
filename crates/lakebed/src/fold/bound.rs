//! Rules with the columns of what is published: the types of every batch that is read and written.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Result};
use crate::fold::rules::{FoldRules, Place, Rule, is_same_type};
use crate::fold::schema::event_fields;
use crate::name::DatasetRef;
use crate::spec::{FieldSpec, SchemaSpec, arrow_schema, arrow_type};

/// Rules with the columns of the published versions of snapshot and events.
#[derive(Debug, Clone)]
pub struct BoundRules {
    /// The rules.
    pub rules: Arc<FoldRules>,
    /// The snapshot's columns in the order of its file, `source` and `_extra` aside.
    pub snapshot: Vec<FieldSpec>,
    /// The events' columns likewise.
    pub events: Vec<FieldSpec>,
    /// For each column of the rules (key, then fields): its type in the snapshot.
    pub(super) types: Vec<DataType>,
    /// For each column of the file: the column of the rules.
    pub(super) order: Vec<usize>,
}

impl BoundRules {
    /// Binds the rules to what is published.
    ///
    /// # Errors
    /// `PreconditionFailed` where the published version is not that of the rules.
    pub fn new(rules: Arc<FoldRules>, snapshot: &SchemaSpec, events: &SchemaSpec) -> Result<Self> {
        let behind = |dataset: &DatasetRef, what: String| {
            Error::precondition(format!("the schema of `{dataset}` is not that of the rules: {what}"))
                .hint(format!(
                    "`lakebed fold {} --schema` writes the version that follows from them; `lakebed schema publish` publishes it",
                    rules.source
                ))
        };
        let mut types = Vec::new();
        for spec in &rules.specs {
            let Some(field) = snapshot.fields.iter().find(|f| f.name == spec.name) else {
                return Err(behind(
                    &snapshot.dataset,
                    format!("it has no `{}`", spec.name),
                ));
            };
            if !is_same_type(field, spec) || spec.values.iter().any(|v| !field.values.contains(v)) {
                return Err(behind(
                    &snapshot.dataset,
                    format!("`{}` is another type", spec.name),
                ));
            }
            types.push(arrow_type(field, &field.field_type));
        }
        let mut order = Vec::new();
        for field in &snapshot.fields {
            let Some(at) = rules.find_column(&field.name) else {
                return Err(behind(
                    &snapshot.dataset,
                    format!("no rule gives `{}`", field.name),
                ));
            };
            order.push(at);
        }
        for spec in event_fields(&rules) {
            let found = events.fields.iter().find(|f| f.name == spec.name);
            if !found.is_some_and(|f| is_same_type(f, &spec)) {
                return Err(behind(
                    &events.dataset,
                    format!("it has no such `{}`", spec.name),
                ));
            }
        }
        Ok(Self {
            snapshot: snapshot.fields.clone(),
            events: events.fields.clone(),
            rules,
            types,
            order,
        })
    }

    /// The columns of a batch of an input: key and fields as the snapshot has them.
    ///
    /// A column that several fields take has the type of the first; nested types differ by field ids alone.
    #[must_use]
    pub fn input_types(&self, input: usize) -> Vec<DataType> {
        let rules = &self.rules;
        let of = &rules.inputs[input];
        let mut types: Vec<DataType> = self.types[..rules.key_len].to_vec();
        types.push(DataType::Timestamp(
            TimeUnit::Microsecond,
            Some("UTC".into()),
        ));
        types.push(DataType::Date32);
        types.push(DataType::Boolean);
        for (column, at) in of.columns.iter().zip(0..) {
            types.push(
                self.type_of(Place { input, column: at })
                    .unwrap_or_else(|| column.stored.data_type().clone()),
            );
        }
        types
    }

    fn type_of(&self, wanted: Place) -> Option<DataType> {
        let fields = self
            .rules
            .fields
            .iter()
            .zip(&self.types[self.rules.key_len..]);
        let mut takes = fields.filter(|(field, _)| match &field.rule {
            Rule::Newest(places)
            | Rule::Sticky(places)
            | Rule::First(places)
            | Rule::Last(places) => places.contains(&wanted),
            _ => false,
        });
        takes.next().map(|(_, of)| of.clone())
    }

    /// The columns that yesterday's snapshot is read as: by rules' order.
    #[must_use]
    pub fn previous_columns(&self) -> Vec<FieldRef> {
        let columns = arrow_schema(&self.snapshot);
        let mut by_rule: Vec<Option<FieldRef>> = vec![None; self.order.len()];
        for (at, column) in self.order.iter().zip(columns.fields()) {
            by_rule[*at] = Some(Arc::clone(column));
        }
        let none = || Arc::new(Field::new("", DataType::Null, true));
        by_rule
            .into_iter()
            .map(|c| c.unwrap_or_else(none))
            .collect()
    }

    /// Columns of yesterday's snapshot as windows take them.
    #[must_use]
    pub fn previous_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.previous_columns()))
    }
}
