//! Presence: of which of nine exclusive kinds a field was, record by record.
//!
//! Every record that was read as a record counts once per top-level field, rejected ones included,
//! so the nine counts of a field sum to the number of records. Counts merge by addition.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::spec::FieldSpec;

/// What a record held for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Presence {
    /// No such member or column.
    Absent,
    /// JSON null, an unquoted empty cell, a NULL of a typed column.
    Null,
    /// NaN or an infinity that the field accepts.
    Nan,
    /// An empty text.
    Empty,
    /// A text of White_Space characters only.
    Blank,
    /// A declared null token.
    Sentinel,
    /// `[]` or `{}`.
    EmptyContainer,
    /// The field's own fault: a value that does not convert, or none where one is required. In a
    /// `dual` group the row may be stored all the same, as another field took the value.
    Invalid,
    /// Any other value.
    Present,
}

impl Presence {
    /// Every kind, in the order of the counts.
    pub const ALL: [Self; 9] = [
        Self::Absent,
        Self::Null,
        Self::Nan,
        Self::Empty,
        Self::Blank,
        Self::Sentinel,
        Self::EmptyContainer,
        Self::Invalid,
        Self::Present,
    ];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Null => "null",
            Self::Nan => "nan",
            Self::Empty => "empty",
            Self::Blank => "blank",
            Self::Sentinel => "sentinel",
            Self::EmptyContainer => "empty_container",
            Self::Invalid => "invalid",
            Self::Present => "present",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Null => 1,
            Self::Nan => 2,
            Self::Empty => 3,
            Self::Blank => 4,
            Self::Sentinel => 5,
            Self::EmptyContainer => 6,
            Self::Invalid => 7,
            Self::Present => 8,
        }
    }
}

/// The nine counts of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPresence {
    /// Top-level field.
    pub name: String,
    counts: [u64; 9],
}

impl FieldPresence {
    /// How many records were of that kind.
    #[must_use]
    pub fn count(&self, kind: Presence) -> u64 {
        self.counts[kind.index()]
    }

    /// The sum of all kinds: the number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Serialize for FieldPresence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Presence::ALL.len()))?;
        for kind in Presence::ALL {
            map.serialize_entry(kind.as_str(), &self.count(kind))?;
        }
        map.end()
    }
}

/// Presence of all top-level fields, in the order of the schema. JSON: `{field: {kind: count}}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PresenceCounts {
    fields: Vec<FieldPresence>,
}

impl PresenceCounts {
    /// Zero counts of every field.
    #[must_use]
    pub fn new(fields: &[FieldSpec]) -> Self {
        let zero = |f: &FieldSpec| FieldPresence {
            name: f.name.clone(),
            counts: [0; 9],
        };
        Self {
            fields: fields.iter().map(zero).collect(),
        }
    }

    /// The fields in the order of the schema.
    pub fn iter(&self) -> impl Iterator<Item = &FieldPresence> {
        self.fields.iter()
    }

    /// The counts of one field.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&FieldPresence> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// Counts one record, whose kinds stand in the order of the fields.
    pub(crate) fn add_record(&mut self, kinds: &[Presence]) {
        for (field, kind) in self.fields.iter_mut().zip(kinds) {
            field.counts[kind.index()] += 1;
        }
    }

    /// Adds the counts of another part of the same call.
    pub fn merge(&mut self, other: &Self) {
        if self.fields.is_empty() {
            self.fields.clone_from(&other.fields);
            return;
        }
        for (field, more) in self.fields.iter_mut().zip(&other.fields) {
            for (n, m) in field.counts.iter_mut().zip(more.counts) {
                *n += m;
            }
        }
    }
}

impl Serialize for PresenceCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for field in &self.fields {
            map.serialize_entry(&field.name, field)?;
        }
        map.end()
    }
}
