//! The life of a field over the published versions.

use serde::Serialize;

use crate::config::nearest;
use crate::error::{Error, Result};
use crate::registry::{FieldAt, diff, list_fields, retyped_ids};
use crate::spec::PublishedSchema;
use crate::time::Instant;

/// What happened to a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FieldEventKind {
    /// It is new.
    Added {
        /// Its type.
        #[serde(rename = "type")]
        field_type: String,
        /// The id whose place it took, where it was retyped.
        #[serde(skip_serializing_if = "Option::is_none")]
        instead_of: Option<u32>,
    },
    /// Another id took its place, with another type.
    Retyped {
        /// That id.
        to: u32,
        /// Its type.
        #[serde(rename = "type")]
        field_type: String,
    },
    /// It got another name.
    Renamed {
        /// Path before.
        from: String,
        /// Path now.
        to: String,
    },
    /// A key changed; values in TOML, absent = not declared.
    Changed {
        /// The key.
        key: String,
        /// Before.
        old: Option<String>,
        /// Now.
        new: Option<String>,
    },
    /// It is gone.
    Removed,
    /// It is back under its id.
    Returned,
}

/// An event in the life of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldEvent {
    /// The version that brought it.
    pub version: u32,
    /// When that version was published.
    pub published_at: Instant,
    /// What happened.
    #[serde(flatten)]
    pub what: FieldEventKind,
}

/// The life of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldHistory {
    /// Id.
    pub id: u32,
    /// Newest path.
    pub path: String,
    /// Newest type.
    #[serde(rename = "type")]
    pub field_type: String,
    /// First version that has it.
    pub since: u32,
    /// First version without it; absent while the newest has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_in: Option<u32>,
    /// All events by version.
    pub events: Vec<FieldEvent>,
}

/// The life of every field that is or was called `name` (a path, a name or an id), by id.
pub fn history(versions: &[PublishedSchema], name: &str) -> Result<Vec<FieldHistory>> {
    let mut ids = Vec::new();
    let mut known = Vec::new();
    for published in versions {
        for at in list_fields(&published.schema.fields) {
            let id = at.field.id;
            if at.path == name || at.field.name == name || id.to_string() == name {
                ids.push(id);
            }
            known.push(at.path);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        let error = Error::not_found(format!("no version has a field `{name}`"));
        return Err(match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`lakebed schema show` lists the fields"),
        });
    }
    Ok(ids
        .into_iter()
        .filter_map(|id| life(versions, id))
        .collect())
}

fn life(versions: &[PublishedSchema], id: u32) -> Option<FieldHistory> {
    let mut events = Vec::new();
    let mut newest: Option<FieldAt<'_>> = None;
    let mut before: Option<&PublishedSchema> = None;
    let mut there = false;
    let links = retyped_ids(versions.iter().map(|p| &p.schema));
    let successor = links.iter().find(|(_, old)| **old == id);
    for published in versions {
        let now = list_fields(&published.schema.fields)
            .into_iter()
            .find(|f| f.field.id == id);
        let mut add = |what| {
            events.push(FieldEvent {
                version: published.schema.version,
                published_at: published.published_at,
                what,
            });
        };
        match (&now, there) {
            (Some(at), false) if newest.is_none() => add(FieldEventKind::Added {
                field_type: at.field.field_type.to_string(),
                instead_of: links.get(&id).copied(),
            }),
            (Some(_), false) => add(FieldEventKind::Returned),
            (None, true) => {
                let fields = &published.schema.fields;
                let new = successor.and_then(|(new, _)| fields.iter().find(|f| f.id == *new));
                add(match new {
                    None => FieldEventKind::Removed,
                    Some(new) => FieldEventKind::Retyped {
                        to: new.id,
                        field_type: new.field_type.to_string(),
                    },
                });
            }
            (Some(_), true) => {
                if let Some(before) = before {
                    for what in changes(before, published, id) {
                        add(what);
                    }
                }
            }
            (None, false) => {}
        }
        there = now.is_some();
        newest = now.or(newest);
        before = Some(published);
    }
    let newest = newest?;
    let gone = events.iter().rev().find(|e| {
        matches!(
            e.what,
            FieldEventKind::Removed | FieldEventKind::Retyped { .. }
        )
    });
    Some(FieldHistory {
        id,
        path: newest.path.clone(),
        field_type: newest.field.field_type.to_string(),
        since: events.first()?.version,
        removed_in: gone.filter(|_| !there).map(|e| e.version),
        events,
    })
}

fn changes(before: &PublishedSchema, now: &PublishedSchema, id: u32) -> Vec<FieldEventKind> {
    let difference = diff(&before.schema, &now.schema);
    let renames = difference.renamed.into_iter().filter(|r| r.id == id);
    let mut all: Vec<_> = renames
        .map(|r| FieldEventKind::Renamed {
            from: r.from,
            to: r.to,
        })
        .collect();
    let changed = difference.enum_grown.into_iter().chain(difference.changed);
    all.extend(
        changed
            .filter(|c| c.id == Some(id) && c.key != "renamed_from")
            .map(|c| FieldEventKind::Changed {
                key: c.key,
                old: c.old,
                new: c.new,
            }),
    );
    all
}
