//! What two versions differ in, by id, as a value with a text and a JSON form.
//!
//! Two versions of one number are equal exactly when their difference is empty. Whether a
//! difference is allowed is `evolution`'s business.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::registry::render::{field_keys, input_keys, version_keys};
use crate::registry::{FieldAt, list_fields};
use crate::spec::{ChangeKind, SchemaSpec};

/// A field in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldLine {
    /// Id.
    pub id: u32,
    /// Dotted path.
    pub path: String,
    /// Type.
    #[serde(rename = "type")]
    pub field_type: String,
}

/// A field whose name changed under its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rename {
    /// Id.
    pub id: u32,
    /// Dotted path before.
    pub from: String,
    /// Dotted path now.
    pub to: String,
}

/// A new field in the place of an old one of another type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retype {
    /// Dotted path of both.
    pub path: String,
    /// The field that is gone.
    pub old: FieldLine,
    /// The field that is new.
    pub new: FieldLine,
}

/// A key of a field, or of the version, whose value changed; values in TOML, absent = not declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// Id of the field; absent where a key of the version changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Dotted path of the field now; `input` or empty for keys of the version.
    pub path: String,
    /// The key; `parent` where the field moved.
    pub key: String,
    /// Value before.
    pub old: Option<String>,
    /// Value now.
    pub new: Option<String>,
}

/// The difference of two versions of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemaDiff {
    /// Version before.
    pub old: u32,
    /// Version now.
    pub new: u32,
    /// Fields that are new, retyped ones aside.
    pub added: Vec<FieldLine>,
    /// Fields that are gone, retyped ones aside.
    pub removed: Vec<FieldLine>,
    /// Fields in the place of others of another type.
    pub retyped: Vec<Retype>,
    /// Fields with another name.
    pub renamed: Vec<Rename>,
    /// Enums that only got further values: those values, as `values` of the new side.
    pub enum_grown: Vec<FieldChange>,
    /// All else that changed in a field that stayed.
    pub changed: Vec<FieldChange>,
    /// Changed keys of `[input]`; of the version too, where both have one number.
    pub version_changed: Vec<FieldChange>,
    /// Whether fields that stayed stand in another order.
    pub reordered: bool,
}

/// Compares two versions.
#[must_use]
pub fn diff(old: &SchemaSpec, new: &SchemaSpec) -> SchemaDiff {
    let old_fields = list_fields(&old.fields);
    let new_fields = list_fields(&new.fields);
    let before = by_id(&old_fields);
    let after = by_id(&new_fields);
    let retyped = retyped(&old_fields, &new_fields);
    let is_retyped = |id: u32| retyped.iter().any(|r| r.old.id == id || r.new.id == id);
    let mut result = SchemaDiff {
        old: old.version,
        new: new.version,
        added: lines(&new_fields, |id| {
            !before.contains_key(&id) && !is_retyped(id)
        }),
        removed: lines(&old_fields, |id| {
            !after.contains_key(&id) && !is_retyped(id)
        }),
        retyped,
        renamed: Vec::new(),
        enum_grown: Vec::new(),
        changed: Vec::new(),
        version_changed: version_changes(old, new),
        reordered: stayed(&old_fields, &after) != stayed(&new_fields, &before),
    };
    for now in &new_fields {
        if let Some(then) = before.get(&now.field.id) {
            compare_field(then, now, &mut result);
        }
    }
    result
}

fn by_id<'a, 'b>(fields: &'b [FieldAt<'a>]) -> BTreeMap<u32, &'b FieldAt<'a>> {
    fields.iter().map(|f| (f.field.id, f)).collect()
}

fn lines(fields: &[FieldAt<'_>], wanted: impl Fn(u32) -> bool) -> Vec<FieldLine> {
    let wanted = fields.iter().filter(|f| wanted(f.field.id));
    wanted.map(line).collect()
}

fn line(at: &FieldAt<'_>) -> FieldLine {
    FieldLine {
        id: at.field.id,
        path: at.path.clone(),
        field_type: at.field.field_type.to_string(),
    }
}

/// New fields that take the place of old ones of their name.
fn retyped(old: &[FieldAt<'_>], new: &[FieldAt<'_>]) -> Vec<Retype> {
    let has = |fields: &[FieldAt<'_>], id: u32| fields.iter().any(|f| f.field.id == id);
    let candidates = new.iter().filter(|f| {
        f.field.change == Some(ChangeKind::Retype) && f.depth == 0 && !has(old, f.field.id)
    });
    candidates
        .filter_map(|now| {
            let name = now.field.name.to_lowercase();
            let mut top = old.iter().filter(|f| f.depth == 0);
            let then = top.find(|f| f.field.name.to_lowercase() == name)?;
            (!has(new, then.field.id)).then(|| Retype {
                path: now.path.clone(),
                old: line(then),
                new: line(now),
            })
        })
        .collect()
}

fn stayed(fields: &[FieldAt<'_>], other: &BTreeMap<u32, &FieldAt<'_>>) -> Vec<u32> {
    let ids = fields.iter().map(|f| f.field.id);
    ids.filter(|id| other.contains_key(id)).collect()
}

fn compare_field(then: &FieldAt<'_>, now: &FieldAt<'_>, result: &mut SchemaDiff) {
    let id = Some(now.field.id);
    if then.field.name != now.field.name {
        result.renamed.push(Rename {
            id: now.field.id,
            from: then.path.clone(),
            to: now.path.clone(),
        });
    }
    if then.parent != now.parent {
        let place = |p: Option<u32>| p.map(|p| p.to_string());
        result.changed.push(FieldChange {
            id,
            path: now.path.clone(),
            key: "parent".to_owned(),
            old: place(then.parent),
            new: place(now.parent),
        });
    }
    let (old_keys, new_keys) = (field_keys(then.field), field_keys(now.field));
    for change in key_changes(&old_keys, &new_keys, id, &now.path) {
        if change.key == "name" {
            continue;
        }
        let grown = now.field.values.strip_prefix(&then.field.values[..]);
        match grown {
            Some(more) if change.key == "values" => result.enum_grown.push(FieldChange {
                new: Some(
                    more.iter()
                        .map(|v| format!("`{v}`"))
                        .collect::<Vec<_>>()
                        .join(", "),
                ),
                ..change
            }),
            _ => result.changed.push(change),
        }
    }
}

fn key_changes(
    old: &[(&'static str, String)],
    new: &[(&'static str, String)],
    id: Option<u32>,
    path: &str,
) -> Vec<FieldChange> {
    let find = |keys: &[(&str, String)], key: &str| {
        keys.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone())
    };
    let mut names: Vec<&str> = new.iter().map(|(k, _)| *k).collect();
    names.extend(
        old.iter()
            .map(|(k, _)| *k)
            .filter(|k| find(new, k).is_none()),
    );
    names
        .into_iter()
        .filter_map(|key| {
            let (before, after) = (find(old, key), find(new, key));
            (before != after).then(|| FieldChange {
                id,
                path: path.to_owned(),
                key: key.to_owned(),
                old: before,
                new: after,
            })
        })
        .collect()
}

fn version_changes(old: &SchemaSpec, new: &SchemaSpec) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    // Between two numbers these keys always differ and say nothing about the data.
    if old.version == new.version {
        changes = key_changes(&version_keys(old), &version_keys(new), None, "");
    }
    let (before, after) = (input_keys(&old.input), input_keys(&new.input));
    changes.extend(key_changes(&before, &after, None, "input"));
    changes
}

impl SchemaDiff {
    /// Whether the two versions declare the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.retyped.is_empty()
            && self.renamed.is_empty()
            && self.enum_grown.is_empty()
            && self.changed.is_empty()
            && self.version_changed.is_empty()
            && !self.reordered
    }

    /// One line a difference: `+` added, `-` removed, `~` changed.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for SchemaDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sign, list) in [('+', &self.added), ('-', &self.removed)] {
            for line in list {
                writeln!(
                    f,
                    "{sign} {} ({}, id {})",
                    line.path, line.field_type, line.id
                )?;
            }
        }
        for Retype { path, old, new } in &self.retyped {
            let (before, after) = (&old.field_type, &new.field_type);
            writeln!(
                f,
                "~ {path}: retyped from {before} (id {}) to {after} (id {})",
                old.id, new.id
            )?;
        }
        for r in &self.renamed {
            writeln!(f, "~ {} (id {}): renamed from `{}`", r.to, r.id, r.from)?;
        }
        for c in &self.enum_grown {
            writeln!(
                f,
                "~ {}: new values {}",
                c.path,
                c.new.as_deref().unwrap_or("")
            )?;
        }
        for c in self.changed.iter().chain(&self.version_changed) {
            let place = match (c.path.as_str(), c.id) {
                ("", _) => c.key.clone(),
                (path, None) => format!("[{path}] {}", c.key),
                (path, Some(_)) => format!("{path}: {}", c.key),
            };
            let side = |v: &Option<String>| v.clone().unwrap_or_else(|| "(none)".to_owned());
            writeln!(f, "~ {place} {} -> {}", side(&c.old), side(&c.new))?;
        }
        if self.reordered {
            writeln!(f, "~ the fields stand in another order")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::parse;

    fn version(n: u32, body: &str) -> SchemaSpec {
        parse(
            &format!("dataset = \"clean/a\"\nversion = {n}\n{body}"),
            "v.toml",
        )
        .unwrap()
    }

    fn field(id: u32, name: &str, rest: &str) -> String {
        format!("[[field]]\nid = {id}\nname = \"{name}\"\n{rest}\n")
    }

    #[test]
    fn every_kind_of_difference_is_told_once() {
        let old = version(
            1,
            &[
                field(1, "标题", "type = \"string\""),
                field(2, "kind", "type = \"enum\"\nvalues = [\"flat\"]"),
                field(3, "gone", "type = \"int\""),
                field(4, "a", "type = \"int\"\nrequired = true"),
            ]
            .concat(),
        );
        let new = version(
            2,
            &format!(
                "[input]\nformat = \"csv\"\n{}",
                [
                    field(1, "题目", "type = \"string\"\nrenamed_from = \"标题\""),
                    field(4, "a", "type = \"float\""),
                    field(2, "kind", "type = \"enum\"\nvalues = [\"flat\", \"house\"]"),
                    field(5, "new", "type = \"date\""),
                ]
                .concat()
            ),
        );
        let d = diff(&old, &new);
        assert_eq!(
            d.to_text(),
            "+ new (date, id 5)\n\
             - gone (int, id 3)\n\
             ~ 题目 (id 1): renamed from `标题`\n\
             ~ kind: new values `house`\n\
             ~ 题目: renamed_from (none) -> \"标题\"\n\
             ~ a: type \"int\" -> \"float\"\n\
             ~ a: required true -> (none)\n\
             ~ [input] format (none) -> \"csv\"\n\
             ~ the fields stand in another order\n"
        );
        assert!(diff(&new, &new).is_empty());
    }

    #[test]
    fn a_retyped_field_is_neither_added_nor_removed() {
        let old = version(1, &field(2, "reads", "type = \"int\""));
        let keys = "type = \"string\"\nchange = \"retype\"\ncolumn = \"reads_text\"";
        let new = version(2, &field(9, "reads", keys));
        let told = "~ reads: retyped from int (id 2) to string (id 9)\n";
        assert_eq!(diff(&old, &new).to_text(), told);
        assert!(diff(&new, &version(3, &field(9, "reads", keys))).is_empty());
        // Where the old one was gone before, it is a new field.
        let later = diff(&version(2, &field(3, "a", "type = \"int\"")), &new);
        assert_eq!((later.added.len(), later.retyped.len()), (1, 0));
    }

    #[test]
    fn two_of_one_number_differ_in_their_note_too() {
        let a = version(1, "note = \"x\"\n");
        let b = version(1, "");
        assert_eq!(diff(&a, &b).to_text(), "~ note \"x\" -> (none)\n");
        assert!(diff(&a, &version(2, "")).is_empty());
    }

    #[test]
    fn a_shrunk_or_moved_enum_is_a_change_not_growth() {
        let v = |values: &str| {
            version(
                1,
                &field(1, "k", &format!("type = \"enum\"\nvalues = {values}")),
            )
        };
        for bad in ["[\"b\", \"a\"]", "[\"a\"]", "[\"a\", \"x\", \"b\"]"] {
            let d = diff(&v("[\"a\", \"b\"]"), &v(bad));
            assert_eq!((d.enum_grown.len(), d.changed.len()), (0, 1), "{bad}");
        }
    }
}
