//! Drift: how the records of a call differ from the schema, summed up per place and kind of fault.
//!
//! Parts merge in the order of the input, so `first` and the samples do not depend on how many
//! workers decoded it. Fields with `privacy = "personal"` leave no samples.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ingest::convert::fault::FaultCode;

/// Most distinct samples kept per item.
pub const MAX_SAMPLES: usize = 5;
/// Most places kept; further ones are only counted.
pub const MAX_PLACES: usize = 10_000;

/// What the values of an unknown field were; enough to propose a type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// JSON nulls and empty cells.
    pub nulls: u64,
    /// true and false.
    pub bools: u64,
    /// Integers within 64 bits.
    pub ints: u64,
    /// Integers outside of it.
    pub big_ints: u64,
    /// Numbers with a fraction or an exponent.
    pub floats: u64,
    /// NaN and infinities.
    pub non_finite: u64,
    /// Texts.
    pub texts: u64,
    /// Of the texts: those of digits with an optional minus, no leading zeros, within 64 bits.
    pub int_texts: u64,
    /// Of the texts: empty ones.
    pub empty_texts: u64,
    /// Objects.
    pub objects: u64,
    /// Arrays.
    pub arrays: u64,
    /// Dates, instants and bytes of typed inputs, by type name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub native: BTreeMap<String, u64>,
    /// Members of the objects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, Evidence>,
    /// Elements of the arrays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<Box<Evidence>>,
}

impl Evidence {
    /// Adds what another part saw.
    pub fn merge(&mut self, other: &Self) {
        self.nulls += other.nulls;
        self.bools += other.bools;
        self.ints += other.ints;
        self.big_ints += other.big_ints;
        self.floats += other.floats;
        self.non_finite += other.non_finite;
        self.texts += other.texts;
        self.int_texts += other.int_texts;
        self.empty_texts += other.empty_texts;
        self.objects += other.objects;
        self.arrays += other.arrays;
        for (name, n) in &other.native {
            *self.native.entry(name.clone()).or_default() += n;
        }
        for (name, evidence) in &other.members {
            self.members
                .entry(name.clone())
                .or_default()
                .merge(evidence);
        }
        if let Some(elements) = &other.elements {
            self.elements.get_or_insert_default().merge(elements);
        }
    }
}

/// One kind of difference at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriftItem {
    /// Top-level field; for unknown fields the input's own name, or the JSON pointer of a deeper one.
    pub field: String,
    /// JSON path of the place; list elements and map values are `[*]`.
    pub path: String,
    /// What is wrong.
    pub code: FaultCode,
    /// How many values were at fault. 0 = an unknown column whose cells were all empty.
    pub count: u64,
    /// Input of the first one.
    pub file: String,
    /// Line (or row) of the first one.
    pub line: u64,
    /// The reason of the first one, in words.
    pub reason: String,
    /// Distinct values, at most [`MAX_SAMPLES`]; none where the field is personal.
    pub samples: Vec<String>,
    /// Advice for the schema's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Of rows that were parsed from pages: URL and `_raw` of the first one's page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// For unknown fields: what their values were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl DriftItem {
    pub(crate) fn add_sample(&mut self, sample: &str) {
        if self.samples.len() < MAX_SAMPLES && !self.samples.iter().any(|s| s == sample) {
            self.samples.push(sample.to_owned());
        }
    }

    fn merge(&mut self, later: Self) {
        self.count += later.count;
        for sample in &later.samples {
            self.add_sample(sample);
        }
        if self.hint.is_none() {
            self.hint = later.hint;
        }
        match (&mut self.evidence, later.evidence) {
            (Some(mine), Some(more)) => mine.merge(&more),
            (mine @ None, more) => *mine = more,
            (Some(_), None) => {}
        }
    }
}

/// All differences of a call, or of a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    places: BTreeMap<String, Vec<DriftItem>>,
    beyond: u64,
}

impl Drift {
    /// Whether everything was as the schema says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The items, ordered by path, then by the order in which they were met.
    pub fn items(&self) -> impl Iterator<Item = &DriftItem> {
        self.places.values().flatten()
    }

    /// The items, to say where they were first met.
    pub(crate) fn items_mut(&mut self) -> impl Iterator<Item = &mut DriftItem> {
        self.places.values_mut().flatten()
    }

    /// Faults at places beyond the first [`MAX_PLACES`], which are not listed.
    #[must_use]
    pub fn unlisted(&self) -> u64 {
        self.beyond
    }

    /// The item of that place and code; a new one is made by `make`. `None` when the list is full.
    pub(crate) fn item(
        &mut self,
        path: &str,
        code: FaultCode,
        make: impl FnOnce() -> DriftItem,
    ) -> Option<&mut DriftItem> {
        if !self.places.contains_key(path) {
            if self.places.len() >= MAX_PLACES {
                self.beyond += 1;
                return None;
            }
            self.places.insert(path.to_owned(), Vec::new());
        }
        let items = self.places.get_mut(path)?;
        if let Some(i) = items.iter().position(|item| item.code == code) {
            return items.get_mut(i);
        }
        items.push(make());
        items.last_mut()
    }

    /// Adds the drift of the part that follows this one.
    pub fn merge(&mut self, later: Self) {
        self.beyond += later.beyond;
        for (path, items) in later.places {
            for item in items {
                let count = item.count;
                let fresh = item.clone();
                let mut is_new = false;
                let make = || {
                    is_new = true;
                    fresh
                };
                let found = self.item(&path, item.code, make);
                match found {
                    Some(mine) if !is_new => mine.merge(item),
                    Some(_) => {}
                    None => self.beyond += count.saturating_sub(1),
                }
            }
        }
    }
}

impl Serialize for Drift {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items())
    }
}
