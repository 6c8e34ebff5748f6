//! Evidence: counts and samples of what files carry under each name. Data only; it merges nothing
//! and decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::ingest::infer::classify::{TextClass, classify, float_keeps, looks_like_epoch};
use crate::ingest::infer::typed::TypedColumn;

/// Distinct values that are kept of a field.
const MAX_DISTINCT: usize = 32;
/// Samples that are kept of a field.
const MAX_SAMPLES: usize = 5;
/// Bytes of a sample; longer values are cut.
const MAX_SAMPLE_BYTES: usize = 200;

/// What files say about their records.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Inputs in order, by their display names.
    pub files: Vec<String>,
    /// Records that were read as records.
    pub records: u64,
    /// Lines, values or rows that are no record.
    pub unreadable: u64,
    /// Where the first of them stands and why.
    pub first_unreadable: Option<String>,
    /// What the readers of the files reported.
    pub warnings: Vec<String>,
    /// Top-level fields.
    pub root: Members,
}

/// The members of objects that stand at one place.
#[derive(Debug, Clone, Default)]
pub struct Members {
    /// Objects seen there.
    pub objects: u64,
    order: Vec<String>,
    fields: BTreeMap<String, FieldEvidence>,
}

impl Members {
    /// Members in the order of their first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldEvidence)> {
        self.order
            .iter()
            .filter_map(|name| self.fields.get(name).map(|field| (name.as_str(), field)))
    }

    /// One member.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&FieldEvidence> {
        self.fields.get(name)
    }

    /// Whether no member was ever seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Objects that have no such member.
    #[must_use]
    pub fn absent(&self, field: &FieldEvidence) -> u64 {
        self.objects.saturating_sub(field.kinds.total())
    }

    pub(super) fn entry(&mut self, name: &str, file: usize) -> &mut FieldEvidence {
        if !self.fields.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.fields
            .entry(name.to_owned())
            .or_insert_with(|| FieldEvidence::new(file))
    }
}

/// How often each kind of value was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// JSON null, an unquoted empty cell, or a NULL of a typed column.
    pub null: u64,
    /// true and false.
    pub bool: u64,
    /// Numbers without fraction and exponent.
    pub int: u64,
    /// Other numbers.
    pub float: u64,
    /// JSON strings.
    pub text: u64,
    /// Objects.
    pub object: u64,
    /// Arrays.
    pub array: u64,
    /// CSV cells that are not null.
    pub cell: u64,
    /// Values of a typed column that are not null.
    pub typed: u64,
}

impl KindCounts {
    /// All values, nulls included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.null + self.values()
    }

    /// All values but nulls.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.bool
            + self.int
            + self.float
            + self.text
            + self.object
            + self.array
            + self.cell
            + self.typed
    }

    /// The kinds that were seen, nulls aside, with their counts; int and float are one kind.
    #[must_use]
    pub fn seen(&self) -> Vec<(&'static str, u64)> {
        [
            ("bool", self.bool),
            ("number", self.int + self.float),
            ("text", self.text),
            ("object", self.object),
            ("array", self.array),
            ("cell", self.cell),
            ("typed", self.typed),
        ]
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .collect()
    }
}

/// What numbers look like; in CSV, cells that are written like numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NumberEvidence {
    /// Integers outside i64.
    pub beyond_i64: u64,
    /// Integers outside i64 and u64.
    pub beyond_u64: u64,
    /// Most digits of an integer.
    pub max_int_digits: usize,
    /// Integers that a float64 cannot hold exactly.
    pub inexact_ints: u64,
    /// Integers that look like a time since 1970.
    pub epoch_like: u64,
    /// Most digits after the point.
    pub max_fraction_digits: usize,
    /// Numbers with a fraction whose digits a float64 does not give back.
    pub long_fractions: u64,
    /// Numbers too large for a float64.
    pub too_large: u64,
}

/// What texts look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextEvidence {
    /// Empty.
    pub empty: u64,
    /// White space only.
    pub blank: u64,
    /// Whole numbers as one writes them.
    pub int: u64,
    /// Digits with a leading zero.
    pub leading_zero: u64,
    /// Numbers with a point.
    pub decimal: u64,
    /// `true` and `false`.
    pub bool: u64,
    /// `YYYY-MM-DD`.
    pub date: u64,
    /// RFC 3339.
    pub rfc3339: u64,
    /// Anything else.
    pub other: u64,
}

impl TextEvidence {
    /// Texts that hold something.
    #[must_use]
    pub fn filled(&self) -> u64 {
        self.int
            + self.leading_zero
            + self.decimal
            + self.bool
            + self.date
            + self.rfc3339
            + self.other
    }
}

/// What was seen under one name at one place.
#[derive(Debug, Clone)]
pub struct FieldEvidence {
    /// Kinds of values.
    pub kinds: KindCounts,
    /// Numbers.
    pub numbers: NumberEvidence,
    /// Texts and cells.
    pub texts: TextEvidence,
    /// The first distinct scalar values, at most 32.
    pub distinct: BTreeSet<String>,
    /// Whether there were more.
    pub has_more_distinct: bool,
    /// The first distinct values, cut where they are long.
    pub samples: Vec<String>,
    /// Index of the file in which it appears first.
    pub first_file: usize,
    /// Index of the file in which it appears last.
    pub last_file: usize,
    /// Members of its objects.
    pub members: Option<Box<Members>>,
    /// Elements of its arrays.
    pub elements: Option<Box<FieldEvidence>>,
    /// Whether it is nested deeper than evidence is gathered.
    pub is_too_deep: bool,
    /// Whether it came as CSV cells.
    pub has_cells: bool,
    pub(super) typed: Vec<TypedColumn>,
}

impl FieldEvidence {
    pub(super) fn new(file: usize) -> Self {
        Self {
            kinds: KindCounts::default(),
            numbers: NumberEvidence::default(),
            texts: TextEvidence::default(),
            distinct: BTreeSet::new(),
            has_more_distinct: false,
            samples: Vec::new(),
            first_file: file,
            last_file: file,
            members: None,
            elements: None,
            is_too_deep: false,
            has_cells: false,
            typed: Vec::new(),
        }
    }

    /// Keeps a scalar among the distinct values, and any value among the samples.
    pub(super) fn sample(&mut self, text: &str, is_scalar: bool) {
        let mut end = text.len().min(MAX_SAMPLE_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let shown = &text[..end];
        if self.samples.len() < MAX_SAMPLES && !self.samples.iter().any(|s| s == shown) {
            self.samples.push(shown.to_owned());
        }
        if is_scalar && !self.has_more_distinct && !self.distinct.contains(text) {
            if self.distinct.len() < MAX_DISTINCT && text.len() <= MAX_SAMPLE_BYTES {
                self.distinct.insert(text.to_owned());
            } else {
                self.has_more_distinct = true;
            }
        }
    }

    /// A number by its text, grammar checked.
    pub(super) fn add_number(&mut self, text: &str) {
        if text.contains(['.', 'e', 'E']) {
            self.kinds.float += 1;
        } else {
            self.kinds.int += 1;
        }
        self.look_at_number(text);
    }

    fn look_at_number(&mut self, text: &str) {
        let numbers = &mut self.numbers;
        let is_finite = text.parse::<f64>().is_ok_and(f64::is_finite);
        numbers.too_large += u64::from(!is_finite);
        if text.contains(['.', 'e', 'E']) {
            let fraction = text.split_once('.').map_or("", |(_, f)| f);
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            numbers.max_fraction_digits = numbers.max_fraction_digits.max(digits);
            numbers.long_fractions += u64::from(!float_keeps(text));
            return;
        }
        let digits = text.trim_start_matches('-');
        numbers.max_int_digits = numbers.max_int_digits.max(digits.len());
        numbers.inexact_ints += u64::from(!float_keeps(text));
        numbers.epoch_like += u64::from(looks_like_epoch(text));
        if text.parse::<i64>().is_err() {
            numbers.beyond_i64 += 1;
            numbers.beyond_u64 += u64::from(text.parse::<u64>().is_err());
        }
    }

    /// A JSON string.
    pub(super) fn add_text(&mut self, text: &str) {
        self.kinds.text += 1;
        self.look_at_text(text);
    }

    /// A CSV cell.
    pub(super) fn add_cell(&mut self, text: &str, is_quoted: bool) {
        self.has_cells = true;
        if text.is_empty() && !is_quoted {
            self.kinds.null += 1;
            return;
        }
        self.kinds.cell += 1;
        match self.look_at_text(text) {
            TextClass::Int | TextClass::Decimal => self.look_at_number(text),
            TextClass::Empty
            | TextClass::Blank
            | TextClass::LeadingZero
            | TextClass::Bool
            | TextClass::Date
            | TextClass::Rfc3339
            | TextClass::Other => {}
        }
    }

    fn look_at_text(&mut self, text: &str) -> TextClass {
        let class = classify(text);
        let counter = match class {
            TextClass::Empty => &mut self.texts.empty,
            TextClass::Blank => &mut self.texts.blank,
            TextClass::Int => &mut self.texts.int,
            TextClass::LeadingZero => &mut self.texts.leading_zero,
            TextClass::Decimal => &mut self.texts.decimal,
            TextClass::Bool => &mut self.texts.bool,
            TextClass::Date => &mut self.texts.date,
            TextClass::Rfc3339 => &mut self.texts.rfc3339,
            TextClass::Other => &mut self.texts.other,
        };
        *counter += 1;
        self.sample(text, true);
        class
    }
}
