//! Which objects are fetched in detail today, and why: a pure function of yesterday's final snapshot, today's list
//! and the declared rules.
//!
//! ```text
//! in the list   never detailed            new
//!               absent before             returned
//!               another fingerprint       changed
//! open          absent for n days         absent
//! either        details too old           stale      (n days and a jitter by the hash of the key)
//! everything else is skipped, and counted by why
//! ```
//!
//! SED-1: every key of the snapshot and of the list gets one verdict. SED-2: the same snapshot, list, rules and
//! date give the same plan, byte by byte.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::DataType;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::config::{SeedConfig, SeedMode, SeedUrl, UrlPart, nearest_hint};
use crate::error::{Error, Result};
use crate::fold::bound::BoundRules;
use crate::fold::cells::{day_at, fingerprint, hash_value, int_at, push_json};
use crate::fold::rules::{FieldRules, FoldRules, InputColumn, InputRules, Rule};
use crate::fold::window::{At, Window};
use crate::spec::{FieldType, SchemaSpec, arrow_schema};
use crate::time::BusinessDate;

/// What a value in a template may hold as it is: the unreserved characters of RFC 3986.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why an object is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedReason {
    /// Its details never came.
    New,
    /// The list has it again.
    Returned,
    /// The list says something else than when its details came.
    Changed,
    /// The list has it no more.
    Absent,
    /// Its details are old.
    Stale,
    /// Everything is asked for.
    Full,
}

/// Why it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Nothing changed, and its details are not old.
    Fresh,
    /// It is absent, not for long enough.
    Waiting,
    /// It is absent, and in no open state.
    Closed,
    /// Only what is new is asked for.
    NotNew,
    /// A value that its address is made of is null.
    NoUrl,
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// It is fetched.
    Request(SeedReason),
    /// It is not.
    Skip(SkipReason),
}

/// An object with its verdict, and what the verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedKey {
    /// Its key: the value, or a list of values, as JSON.
    pub key: String,
    /// What becomes of it; what it rests on follows.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Its address; absent where a value is null.
    pub url: Option<String>,
    /// Whether today's list has it.
    pub listed: bool,
    /// Whether yesterday's snapshot has it.
    pub known: bool,
    /// Days of absence, today included; absent = the list never had it.
    pub days_absent: Option<i64>,
    /// Its state yesterday.
    pub state: Option<String>,
    /// When its details came last.
    pub detailed: Option<BusinessDate>,
    /// From when on they are old.
    pub stale_from: Option<BusinessDate>,
    /// The fingerprint when they came, and that of today's list.
    pub fingerprints: Option<(Option<String>, Option<String>)>,
}

/// Where a piece of an address comes from.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    /// A column of the list's batches, and of the snapshot's.
    Value(Option<usize>, Option<usize>),
}

/// `[seed]` over a fold and the type of the list.
#[derive(Debug, Clone)]
pub struct PlanRules {
    /// How the list is read.
    pub list: InputRules,
    config: SeedConfig,
    url: Vec<Piece>,
    is_template: bool,
    detailed: usize,
    /// Of the snapshot, and the columns of the list's batches.
    fingerprint: Option<(usize, Vec<usize>)>,
    absent: Option<usize>,
    status: Option<usize>,
    key_len: usize,
}

/// A value as it stands in an address.
fn text_of(array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    let mut text = String::new();
    push_json(array, row, false, &mut text);
    // A JSON text of a scalar, without its quotes.
    let plain = text
        .starts_with('"')
        .then(|| serde_json::from_str::<String>(&text).ok())
        .flatten();
    Some(plain.unwrap_or(text))
}

/// The value with everything but unreserved characters as `%XX` of its UTF-8.
#[must_use]
pub fn percent_encoded(value: &str) -> String {
    utf8_percent_encode(value, UNRESERVED).to_string()
}

impl PlanRules {
    /// Compiles the rules; `schema` = the newest published version of the list.
    ///
    /// # Errors
    /// `InvalidInput` where a field or column is not there, or of another rule.
    pub fn compile(config: &SeedConfig, bound: &BoundRules, schema: &SchemaSpec) -> Result<Self> {
        let fold = &*bound.rules;
        let input = list_of(config, bound)?;
        let of = &fold.inputs[input];
        let mut list = of.clone();
        list.columns.clear();
        list.gone = None;
        if let Some((column, values)) = &of.gone {
            list.columns.push(of.columns[*column].clone());
            list.gone = Some((0, values.clone()));
        }
        let is_last_seen = |rule: &Rule| matches!(rule, Rule::LastSeen(_));
        let detailed = get_field(
            fold,
            ("detailed", &config.detailed),
            is_last_seen,
            "last_seen",
        )?;
        let fingerprint = match &config.fingerprint {
            Some(name) => Some(prints_of(fold, name, (input, &mut list))?),
            None => None,
        };
        let url = pieces(config, bound, (schema, &mut list))?;
        let is_status = |f: &FieldRules| matches!(f.rule, Rule::Status { .. });
        let status = fold.fields.iter().position(is_status);
        check_open(config, bound, status)?;
        Ok(Self {
            list,
            config: config.clone(),
            url,
            is_template: matches!(config.url, SeedUrl::Template(_)),
            detailed: fold.key_len + detailed,
            fingerprint,
            absent: fold.absent_field().map(|f| fold.key_len + f),
            status: status.map(|f| fold.key_len + f),
            key_len: fold.key_len,
        })
    }

    /// Types of the batches of the list.
    #[must_use]
    pub fn list_types(&self, bound: &BoundRules) -> Vec<DataType> {
        let mut types = bound.input_types(0);
        types.truncate(self.list.offset());
        types.extend(
            self.list
                .columns
                .iter()
                .map(|c| c.stored.data_type().clone()),
        );
        types
    }

    /// What is asked for.
    #[must_use]
    pub fn mode(&self) -> SeedMode {
        self.config.mode
    }

    /// Judges every key of a window, whose only input is the list, in order. Of what is skipped neither key nor
    /// address are told, unless `all` is asked for.
    pub fn judge(
        &self,
        window: &Window,
        (date, all): (BusinessDate, bool),
        mut take: impl FnMut(PlannedKey),
    ) {
        let Some(list) = window.inputs.first() else {
            return;
        };
        let gone: Vec<&BooleanArray> = list
            .batches
            .iter()
            .map(|b| b.column(self.key_len + 2).as_boolean())
            .collect();
        for key in 0..window.len() {
            let says = |at: &&At| !gone[at.0 as usize].value(at.1 as usize);
            let row = list.of(key).iter().rev().find(says).copied();
            let row = row.map(|(batch, row)| (&list.batches[batch as usize], row as usize));
            let old = window.previous[key]
                .map(|(batch, row)| (&window.old[batch as usize], row as usize));
            // A key of which the list says no more than that it is gone, and that was not known: no object.
            if row.is_some() || old.is_some() {
                take(self.judge_key(Object { row, old }, (date, all)));
            }
        }
    }

    fn judge_key(&self, object: Object<'_>, (date, all): (BusinessDate, bool)) -> PlannedKey {
        let old = |at: usize| object.old.map(|(batch, row)| (batch.column(at), row));
        let listed = object.row.is_some();
        let before = self
            .absent
            .and_then(old)
            .and_then(|(c, row)| int_at(c, row));
        let detailed = old(self.detailed).and_then(|(c, row)| day_at(c, row));
        let detailed = detailed.and_then(BusinessDate::from_days);
        let mut planned = PlannedKey {
            key: String::new(),
            verdict: Verdict::Skip(SkipReason::Fresh),
            url: None,
            listed,
            known: object.old.is_some(),
            days_absent: match listed {
                true => Some(0),
                false => before.map(|days| days + 1),
            },
            state: self
                .status
                .and_then(old)
                .and_then(|(c, row)| text_of(c, row)),
            detailed,
            stale_from: detailed
                .zip(self.config.stale_days)
                .map(|(day, stale)| day.plus_days(i64::from(stale) + self.jitter_of(object))),
            fingerprints: self.fingerprint.as_ref().map(|(at, columns)| {
                let then = old(*at).and_then(|(c, row)| text_of(c, row));
                let now = object.row.map(|(batch, row)| {
                    let mut bytes = Vec::new();
                    for column in columns {
                        hash_value(batch.column(*column), row, &mut bytes);
                    }
                    fingerprint(&bytes)
                });
                (then, now)
            }),
        };
        planned.verdict = self.verdict(&planned, before, date);
        let is_asked = matches!(planned.verdict, Verdict::Request(_));
        if is_asked || all {
            planned.key = self.key_of(object);
            planned.url = self.url_of(object);
        }
        if is_asked && planned.url.is_none() {
            planned.verdict = Verdict::Skip(SkipReason::NoUrl);
        }
        planned
    }

    fn verdict(&self, of: &PlannedKey, before: Option<i64>, date: BusinessDate) -> Verdict {
        let open = &self.config.open.0;
        let is_open = open.is_empty() || of.state.as_ref().is_some_and(|s| open.contains(s));
        let is_stale = match (of.detailed, of.stale_from) {
            (_, Some(from)) => from <= date,
            (None, None) => self.config.stale_days.is_some(),
            (Some(_), None) => false,
        };
        let absent_for = |days: u32| of.days_absent.is_some_and(|n| n >= i64::from(days));
        let reason = if of.listed {
            let changed = of
                .fingerprints
                .as_ref()
                .is_some_and(|(then, now)| then != now);
            match () {
                () if of.detailed.is_none() => Some(SeedReason::New),
                () if before.is_some_and(|days| days > 0) => Some(SeedReason::Returned),
                () if changed => Some(SeedReason::Changed),
                () if is_stale => Some(SeedReason::Stale),
                () => None,
            }
        } else if !is_open {
            return Verdict::Skip(SkipReason::Closed);
        } else if self.config.absent_days.is_some_and(absent_for) {
            Some(SeedReason::Absent)
        } else {
            is_stale.then_some(SeedReason::Stale)
        };
        match (self.config.mode, reason) {
            (SeedMode::New, Some(SeedReason::New)) => Verdict::Request(SeedReason::New),
            (SeedMode::New, _) => Verdict::Skip(SkipReason::NotNew),
            (SeedMode::Diff | SeedMode::Full, Some(reason)) => Verdict::Request(reason),
            (SeedMode::Full, None) => Verdict::Request(SeedReason::Full),
            (SeedMode::Diff, None) if of.listed => Verdict::Skip(SkipReason::Fresh),
            (SeedMode::Diff, None) => Verdict::Skip(SkipReason::Waiting),
        }
    }

    /// The columns of the key, from whatever row there is.
    fn key_cells<'a>(&self, object: Object<'a>) -> impl Iterator<Item = (&'a ArrayRef, usize)> {
        let row = object.row.or(object.old);
        let columns =
            row.map(|(batch, row)| (0..self.key_len).map(move |at| (batch.column(at), row)));
        columns.into_iter().flatten()
    }

    /// The key as JSON.
    fn key_of(&self, object: Object<'_>) -> String {
        let mut text = String::new();
        for (n, (array, row)) in self.key_cells(object).enumerate() {
            match (self.key_len, n) {
                (1, _) => {}
                (_, 0) => text.push('['),
                (_, _) => text.push(','),
            }
            push_json(array, row, false, &mut text);
        }
        if self.key_len > 1 {
            text.push(']');
        }
        text
    }

    /// The days that the hash of the key adds to staleness.
    fn jitter_of(&self, object: Object<'_>) -> i64 {
        let mut bytes = Vec::new();
        for (array, row) in self.key_cells(object) {
            hash_value(array, row, &mut bytes);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..8]);
        let width = u64::from(self.config.jitter_days);
        let spread = u64::from_le_bytes(first) % (2 * width + 1);
        i64::try_from(spread).unwrap_or(0) - i64::from(self.config.jitter_days)
    }

    fn url_of(&self, object: Object<'_>) -> Option<String> {
        let mut url = String::new();
        for piece in &self.url {
            match piece {
                Piece::Text(text) => url.push_str(text),
                Piece::Value(list, old) => {
                    let cell = |from: Option<(&'_ RecordBatch, usize)>, at: Option<usize>| {
                        let ((batch, row), at) = from.zip(at)?;
                        text_of(batch.column(at), row)
                    };
                    let value = cell(object.row, *list).or_else(|| cell(object.old, *old))?;
                    match self.is_template {
                        true => url.push_str(&percent_encoded(&value)),
                        false => url.push_str(&value),
                    }
                }
            }
        }
        Some(url)
    }
}

/// A key's rows.
#[derive(Clone, Copy)]
struct Object<'a> {
    row: Option<(&'a RecordBatch, usize)>,
    old: Option<(&'a RecordBatch, usize)>,
}

/// The input that is the list.
fn list_of(config: &SeedConfig, bound: &BoundRules) -> Result<usize> {
    let fold = &bound.rules;
    let names: Vec<&str> = fold.inputs.iter().map(|i| i.name.as_str()).collect();
    let found = match &config.list {
        Some(name) => fold.inputs.iter().position(|i| i.name == *name),
        None => fold.presence(),
    };
    found.ok_or_else(|| {
        let what = match &config.list {
            Some(name) => format!("the fold `{}` has no input `{name}`", fold.name),
            None => format!("no input of the fold `{}` says what is there", fold.name),
        };
        Error::invalid(what)
            .with("key", "seed.list")
            .hint(format!("inputs are {}", names.join(", ")))
    })
}

fn wrong(key: &str, what: String) -> Error {
    Error::invalid(what).with("key", format!("seed.{key}"))
}

/// The place of a field of a rule.
fn get_field(
    fold: &FoldRules,
    (key, name): (&str, &str),
    fits: impl Fn(&Rule) -> bool,
    rule: &str,
) -> Result<usize> {
    let names: Vec<&str> = fold.fields.iter().map(|f| f.name.as_str()).collect();
    match fold.fields.iter().position(|f| f.name == name) {
        None => {
            let what = format!("the fold `{}` has no field `{name}`", fold.name);
            Err(wrong(key, what).hint(nearest_hint(name, &names)))
        }
        Some(at) if !fits(&fold.fields[at].rule) => {
            Err(wrong(key, format!("`{name}` is not of the rule `{rule}`")))
        }
        Some(at) => Ok(at),
    }
}

/// The column of the snapshot that holds a copied fingerprint, and the columns of the list's batches that it is of.
fn prints_of(
    fold: &FoldRules,
    name: &str,
    (input, list): (usize, &mut InputRules),
) -> Result<(usize, Vec<usize>)> {
    let is_copy = |rule: &Rule| matches!(rule, Rule::Copy { .. });
    let at = get_field(fold, ("fingerprint", name), is_copy, "copy")?;
    let copied = match fold.fields[at].rule {
        Rule::Copy { field, .. } => fold.fields.get(field),
        _ => None,
    };
    match copied.map(|field| &field.rule) {
        Some(Rule::Fingerprint(hashed, columns)) if *hashed == input => {
            let of = &fold.inputs[input];
            let columns = columns
                .iter()
                .map(|c| add_column(list, of.columns[*c].clone()));
            Ok((fold.key_len + at, columns.collect()))
        }
        _ => Err(wrong(
            "fingerprint",
            format!("`{name}` is no copy of a fingerprint of `{}`", list.name),
        )),
    }
}

/// The place of the column in the list's batches.
fn add_column(list: &mut InputRules, column: InputColumn) -> usize {
    if let Some(at) = list.key.iter().position(|k| k.field.id == column.field.id) {
        return at;
    }
    let known = list
        .columns
        .iter()
        .position(|c| c.field.id == column.field.id);
    let at = known.unwrap_or_else(|| {
        list.columns.push(column);
        list.columns.len() - 1
    });
    list.offset() + at
}

fn pieces(
    config: &SeedConfig,
    bound: &BoundRules,
    (schema, list): (&SchemaSpec, &mut InputRules),
) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for part in config.url.parts()? {
        let name = match part {
            UrlPart::Text(text) => {
                pieces.push(Piece::Text(text));
                continue;
            }
            UrlPart::Field(name) => name,
        };
        let field = schema.fields.iter().find(|f| f.name == name);
        let old = bound.rules.find_column(&name);
        let types = [
            field.map(|f| &f.field_type),
            old.map(|at| &bound.rules.specs[at].field_type),
        ];
        let nested = |of: &FieldType| {
            matches!(
                of,
                FieldType::List(_) | FieldType::Map(_) | FieldType::Struct
            )
        };
        if types.iter().all(Option::is_none) || types.into_iter().flatten().any(nested) {
            return Err(Error::invalid(format!(
                "`{name}` is no plain column of `{}`, nor a field of the fold",
                schema.dataset
            ))
            .with("key", "seed.url"));
        }
        let at = field.and_then(|field| {
            let columns = arrow_schema(std::slice::from_ref(field));
            let stored = Arc::clone(columns.fields().first()?);
            Some(add_column(
                list,
                InputColumn {
                    field: field.clone(),
                    stored,
                },
            ))
        });
        pieces.push(Piece::Value(at, old));
    }
    Ok(pieces)
}

fn check_open(config: &SeedConfig, bound: &BoundRules, status: Option<usize>) -> Result<()> {
    let fold = &bound.rules;
    let states = match status.map(|at| &fold.fields[at].rule) {
        Some(Rule::Status { states, .. }) => states.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    for state in &config.open.0 {
        if !states.contains(&state.as_str()) {
            return Err(
                Error::invalid(format!("the fold `{}` has no state `{state}`", fold.name))
                    .with("key", "seed.open")
                    .hint(nearest_hint(state, &states)),
            );
        }
    }
    if config.absent_days.is_some() && fold.absent_field().is_none() {
        return Err(Error::invalid(format!(
            "the fold `{}` counts no days of absence",
            fold.name
        ))
        .with("key", "seed.absent_days"));
    }
    Ok(())
}
