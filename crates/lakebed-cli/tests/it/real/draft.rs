//! Schema versions as an owner would write them: each one is the one before with what changed.

use std::fmt::Write as _;

/// A version file in the making.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    note: String,
    removed: Vec<String>,
    input: Vec<(String, String)>,
    fields: Vec<FieldDraft>,
}

#[derive(Debug, Clone)]
struct FieldDraft {
    id: u32,
    name: String,
    kind: String,
    keys: Vec<(String, String)>,
    members: Vec<FieldDraft>,
}

impl Draft {
    /// Version 1.
    pub(super) fn new(note: &str) -> Self {
        Self {
            note: note.to_owned(),
            removed: Vec::new(),
            input: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// The version after this one, still equal to it.
    pub(super) fn next(&self, note: &str) -> Self {
        let mut next = self.clone();
        note.clone_into(&mut next.note);
        next.removed.clear();
        for field in &mut next.fields {
            field.keys.retain(|(key, _)| key != "renamed_from");
        }
        next
    }

    /// A key of `[input]`.
    pub(super) fn input(mut self, key: &str, text: &str) -> Self {
        self.input.push((key.to_owned(), quote(text)));
        self
    }

    /// A field more.
    pub(super) fn field(mut self, id: u32, name: &str, kind: &str) -> Self {
        self.fields.push(FieldDraft {
            id,
            name: name.to_owned(),
            kind: kind.to_owned(),
            keys: Vec::new(),
            members: Vec::new(),
        });
        self
    }

    /// Several fields of one type more, with ids in a row.
    pub(super) fn fields(mut self, first_id: u32, kind: &str, names: &[&str]) -> Self {
        for (id, name) in (first_id..).zip(names) {
            self = self.field(id, name, kind);
        }
        self
    }

    /// A field more whose input has another name.
    pub(super) fn field_from(self, id: u32, name: &str, kind: &str, from: &str) -> Self {
        self.field(id, name, kind).from(name, from)
    }

    /// A member more of a struct.
    pub(super) fn member(mut self, of: &str, id: u32, name: &str, kind: &str, from: &str) -> Self {
        let keys = if from == name {
            Vec::new()
        } else {
            vec![("from".to_owned(), quote(from))]
        };
        self.find(of).members.push(FieldDraft {
            id,
            name: name.to_owned(),
            kind: kind.to_owned(),
            keys,
            members: Vec::new(),
        });
        self
    }

    /// Sets a key of a field to a TOML value.
    pub(super) fn set(mut self, name: &str, key: &str, toml: &str) -> Self {
        let keys = &mut self.find(name).keys;
        keys.retain(|(k, _)| k != key);
        keys.push((key.to_owned(), toml.to_owned()));
        self
    }

    /// Takes a key from a field.
    pub(super) fn unset(mut self, name: &str, key: &str) -> Self {
        self.find(name).keys.retain(|(k, _)| k != key);
        self
    }

    /// The field is read under that name.
    pub(super) fn from(self, name: &str, from: &str) -> Self {
        self.set(name, "from", &quote(from))
    }

    /// The fields may not be missing.
    pub(super) fn required(mut self, names: &[&str]) -> Self {
        for name in names {
            self = self.set(name, "required", "true");
        }
        self
    }

    /// The field gets another name under its id, and is read under the new one.
    pub(super) fn rename(mut self, old: &str, new: &str) -> Self {
        new.clone_into(&mut self.find(old).name);
        self.set(new, "renamed_from", &quote(old))
    }

    /// The field is dropped on purpose.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.find(name);
        self.fields.retain(|f| f.name != name);
        self.removed.push(quote(name));
        self
    }

    fn find(&mut self, name: &str) -> &mut FieldDraft {
        let found = self.fields.iter_mut().find(|f| f.name == name);
        found.unwrap_or_else(|| panic!("the draft has no field `{name}`"))
    }

    /// Everything of the file after `dataset` and `version`.
    pub(super) fn text(&self, version: u32) -> String {
        let mut text = format!("note = {}\n", quote(&self.note));
        if version > 1 {
            writeln!(text, "base = {}", version - 1).unwrap();
        }
        if !self.removed.is_empty() {
            writeln!(text, "removed = [{}]", self.removed.join(", ")).unwrap();
        }
        if !self.input.is_empty() {
            text.push_str("\n[input]\n");
            write_keys(&mut text, &self.input);
        }
        for field in &self.fields {
            text.push_str("\n[[field]]\n");
            write_field(&mut text, field);
            for member in &field.members {
                text.push_str("\n[[field.field]]\n");
                write_field(&mut text, member);
            }
        }
        text
    }
}

fn write_field(text: &mut String, field: &FieldDraft) {
    writeln!(text, "id = {}", field.id).unwrap();
    writeln!(text, "name = {}", quote(&field.name)).unwrap();
    writeln!(text, "type = {}", quote(&field.kind)).unwrap();
    write_keys(text, &field.keys);
}

fn write_keys(text: &mut String, keys: &[(String, String)]) {
    for (key, value) in keys {
        writeln!(text, "{key} = {value}").unwrap();
    }
}

/// A basic string of TOML; these texts hold no control characters.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn a_version_is_the_one_before_with_what_changed() {
    let first = Draft::new("one")
        .field(1, "a", "int")
        .field(2, "b", "struct")
        .member("b", 3, "c_d", "string", "cD")
        .required(&["a"]);
    let second = first
        .next("two")
        .rename("a", "z")
        .without("b")
        .input("delimiter", ";");
    assert_eq!(
        second.text(2),
        "note = \"two\"\nbase = 1\nremoved = [\"b\"]\n\n[input]\ndelimiter = \";\"\n\n[[field]]\nid = 1\nname = \"z\"\ntype = \"int\"\nrequired = true\nrenamed_from = \"a\"\n"
    );
    let text = first.text(1);
    assert!(
        text.ends_with(
            "[[field.field]]\nid = 3\nname = \"c_d\"\ntype = \"string\"\nfrom = \"cD\"\n"
        ),
        "{text}"
    );
    assert!(!second.next("three").text(3).contains("renamed_from"));
}
