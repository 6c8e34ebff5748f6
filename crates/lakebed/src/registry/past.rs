//! The published versions of a dataset, indexed by id, name and path for the rules of evolution.

use std::collections::{BTreeMap, BTreeSet};

use crate::registry::{FieldAt, list_fields, next_free_id, retyped_ids};
use crate::spec::{PublishedSchema, SchemaSpec};

/// The published past, indexed.
pub(crate) struct Past<'a> {
    /// Fields of the newest version by id.
    pub(crate) base: BTreeMap<u32, FieldAt<'a>>,
    /// Every id ever used, with its last version and place there.
    pub(crate) ids: BTreeMap<u32, (u32, FieldAt<'a>)>,
    /// Every name that a column of the files ever had at a level, without case, with its ids.
    pub(crate) names: BTreeMap<(Option<u32>, String), BTreeSet<u32>>,
    /// Every name an id ever had.
    pub(crate) names_of: BTreeMap<u32, BTreeSet<&'a str>>,
    /// Every path and enum value that once could be removed.
    pub(crate) removable: BTreeSet<String>,
    /// Fields that took the place of others: new id, old id.
    pub(crate) retyped: BTreeMap<u32, u32>,
    next_id: u32,
}

impl<'a> Past<'a> {
    /// Indexes the sorted history, whose newest version is `base`.
    pub(crate) fn new(history: &'a [PublishedSchema], base: &'a SchemaSpec) -> Self {
        let mut past = Self {
            base: list_fields(&base.fields)
                .into_iter()
                .map(|f| (f.field.id, f))
                .collect(),
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
            names_of: BTreeMap::new(),
            removable: BTreeSet::new(),
            retyped: retyped_ids(history.iter().map(|p| &p.schema)),
            next_id: next_free_id(history),
        };
        for published in history {
            for at in list_fields(&published.schema.fields) {
                let id = at.field.id;
                let level = (at.parent, at.field.column_name().to_lowercase());
                past.names.entry(level).or_default().insert(id);
                past.names_of.entry(id).or_default().insert(&at.field.name);
                past.removable.insert(at.path.clone());
                for value in &at.field.values {
                    past.removable.insert(value_entry(&at.path, value));
                }
                past.ids.insert(id, (published.schema.version, at));
            }
        }
        past
    }

    /// The field at the top level that is called so, or was when it was there last; of several the
    /// one that was there latest. With the last version that has it.
    pub(crate) fn find_holder(&self, name: &str) -> Option<&(u32, FieldAt<'a>)> {
        let name = name.to_lowercase();
        let top = self.ids.values().filter(|(_, at)| at.parent.is_none());
        top.filter(|(_, at)| at.field.name.to_lowercase() == name)
            .max_by_key(|(version, _)| *version)
    }

    /// The field that took the place of that id.
    pub(crate) fn find_successor(&self, id: u32) -> Option<u32> {
        let mut links = self.retyped.iter();
        links.find(|(_, old)| **old == id).map(|(new, _)| *new)
    }

    /// Which id a new field takes, as half a sentence.
    pub(crate) fn next_id_hint(&self) -> String {
        format!("the next free id is `{}`", self.next_id)
    }
}

/// How `removed` names an enum value.
pub(crate) fn value_entry(path: &str, value: &str) -> String {
    format!("{path}={value}")
}
