//! From evidence to fields, each type with its reason.
//!
//! Fields that a schema has already stay as they are, ids, types and all; only what is new under them
//! gets a type here. Ids of new fields count up from `next_id`, parents before their members.

use std::collections::BTreeSet;

use crate::ingest::infer::evidence::{Evidence, FieldEvidence, Members};
use crate::registry::origin_type;
use crate::spec::{FieldSpec, FieldType};

/// Lists within lists beyond which a type is `json`.
const MAX_LIST_DEPTH: usize = 6;

/// Why a field has its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Names from the top level down, joined by dots; `[]` for list elements.
    pub path: String,
    /// The type.
    pub field_type: FieldType,
    /// The reason, for people.
    pub reason: String,
}

/// A field that the schema does not have yet.
#[derive(Debug, Clone, PartialEq)]
pub struct AddedEvidence {
    /// Id of the field it becomes a member of; `None` = the top level.
    pub parent: Option<u32>,
    /// The field.
    pub field: FieldSpec,
}

/// What evidence proposes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InferredFields {
    /// All top-level fields: those of the schema with what is new in them, then the new ones.
    pub fields: Vec<FieldSpec>,
    /// The new ones alone, in order.
    pub added: Vec<AddedEvidence>,
    /// One reason for each new field, its members included.
    pub choices: Vec<Choice>,
    /// The next free id.
    pub next_id: u32,
}

/// Proposes fields for everything that the evidence has and `existing` has not.
#[must_use]
pub fn propose_fields(evidence: &Evidence, existing: &[FieldSpec], next_id: u32) -> InferredFields {
    let mut proposer = Proposer {
        out: InferredFields {
            next_id,
            ..InferredFields::default()
        },
    };
    let fields = proposer.level(&evidence.root, existing, None, "");
    proposer.out.fields = fields;
    proposer.out
}

struct Proposer {
    out: InferredFields,
}

/// A type with the members of the struct under it.
struct Chosen {
    field_type: FieldType,
    fields: Vec<FieldSpec>,
    reason: String,
}

fn chosen(field_type: FieldType, reason: impl Into<String>) -> Chosen {
    Chosen {
        field_type,
        fields: Vec::new(),
        reason: reason.into(),
    }
}

/// The first step of a field's way into the record.
fn first_step(field: &FieldSpec) -> String {
    let name = field.input_name();
    match name.strip_prefix('/') {
        Some(rest) => {
            let step = rest.split('/').next().unwrap_or("");
            step.replace("~1", "/").replace("~0", "~")
        }
        None => name.to_owned(),
    }
}

impl Proposer {
    /// The fields of one level: the existing ones, then the new ones.
    fn level(
        &mut self,
        members: &Members,
        existing: &[FieldSpec],
        parent: Option<u32>,
        path: &str,
    ) -> Vec<FieldSpec> {
        let mut fields = existing.to_vec();
        let known: BTreeSet<String> = existing.iter().map(first_step).collect();
        for field in &mut fields {
            if !field.input_name().starts_with('/')
                && let Some(evidence) = members.find(field.input_name())
            {
                let path = joined(path, field.input_name());
                self.grow(field, evidence, &path);
            }
        }
        let mut taken: BTreeSet<String> = fields.iter().map(|f| f.name.to_lowercase()).collect();
        for (name, evidence) in members.iter() {
            if known.contains(name) {
                continue;
            }
            let field = self.new_field(name, evidence, path, &mut taken);
            self.out.added.push(AddedEvidence {
                parent,
                field: field.clone(),
            });
            fields.push(field);
        }
        fields
    }

    /// New members of an existing struct, also under lists.
    fn grow(&mut self, field: &mut FieldSpec, evidence: &FieldEvidence, path: &str) {
        let mut evidence = evidence;
        let mut field_type = &field.field_type;
        let mut path = path.to_owned();
        while let FieldType::List(inner) = field_type {
            let Some(elements) = &evidence.elements else {
                return;
            };
            evidence = elements;
            field_type = inner;
            path.push_str("[]");
        }
        if *field_type == FieldType::Struct
            && let Some(members) = &evidence.members
        {
            field.fields = self.level(members, &field.fields, Some(field.id), &path);
        }
    }

    /// A new field with its members; not among `added` yet.
    fn new_field(
        &mut self,
        name: &str,
        evidence: &FieldEvidence,
        path: &str,
        taken: &mut BTreeSet<String>,
    ) -> FieldSpec {
        let id = self.next_id();
        let path_here = joined(path, name);
        let at = self.out.choices.len();
        let chosen_type = match origin_type(name).filter(|_| path.is_empty()) {
            Some(own) => chosen(own, "filled by `lakebed parse`"),
            None => self.choose(evidence, &path_here, 0),
        };
        let Chosen {
            field_type,
            fields,
            mut reason,
        } = chosen_type;
        let column = column_name(name, path.is_empty(), taken);
        let mut field = FieldSpec::new(id, &column, field_type.clone());
        if column != name {
            field.from = Some(input_name(name));
            reason.push_str("; the name is not free as a column name, so the column has another");
        }
        field.fields = fields;
        self.out.choices.insert(
            at,
            Choice {
                path: path_here,
                field_type,
                reason,
            },
        );
        field
    }

    fn next_id(&mut self) -> u32 {
        let id = self.out.next_id;
        self.out.next_id = id.saturating_add(1);
        id
    }

    fn choose(&mut self, evidence: &FieldEvidence, path: &str, depth: usize) -> Chosen {
        let kinds = evidence.kinds.seen();
        match kinds.as_slice() {
            [] if evidence.has_cells => chosen(FieldType::String, "every cell is empty"),
            [] if evidence.typed.is_empty() => chosen(
                FieldType::Json,
                "null wherever it stands: nothing is known of its values",
            ),
            [] | [("typed", _)] => self.declared(evidence),
            [("bool", _)] => chosen(FieldType::Bool, "true and false only"),
            [("number", _)] => number(evidence),
            [("text", _)] => text(evidence),
            [("cell", _)] => cell(evidence),
            [("object", _)] => self.object(evidence, path),
            [("array", _)] => self.array(evidence, path, depth),
            mixed => mixed_kinds(mixed, evidence),
        }
    }

    fn declared(&mut self, evidence: &FieldEvidence) -> Chosen {
        match evidence.typed.as_slice() {
            [one] => Chosen {
                field_type: one.field_type.clone(),
                fields: one.fields.iter().map(|f| self.numbered(f)).collect(),
                reason: one.reason.clone(),
            },
            more => {
                let types: Vec<String> = more.iter().map(|t| t.field_type.to_string()).collect();
                chosen(
                    FieldType::Json,
                    format!("files declare different types: {}", types.join(", ")),
                )
            }
        }
    }

    /// A member of a typed column with ids of its own.
    fn numbered(&mut self, field: &FieldSpec) -> FieldSpec {
        let mut numbered = field.clone();
        numbered.id = self.next_id();
        numbered.fields = field.fields.iter().map(|f| self.numbered(f)).collect();
        numbered
    }

    fn object(&mut self, evidence: &FieldEvidence, path: &str) -> Chosen {
        if evidence.is_too_deep {
            return chosen(FieldType::Json, "nested too deep to look into");
        }
        let Some(members) = evidence.members.as_deref().filter(|m| !m.is_empty()) else {
            return chosen(
                FieldType::Json,
                "empty objects only: nothing is known of members",
            );
        };
        let mut taken = BTreeSet::new();
        let mut fields = Vec::new();
        for (name, member) in members.iter() {
            fields.push(self.new_field(name, member, path, &mut taken));
        }
        Chosen {
            field_type: FieldType::Struct,
            reason: format!(
                "objects with {} members over all; if the names are data, declare map<T> instead",
                fields.len()
            ),
            fields,
        }
    }

    fn array(&mut self, evidence: &FieldEvidence, path: &str, depth: usize) -> Chosen {
        if evidence.is_too_deep || depth >= MAX_LIST_DEPTH {
            return chosen(FieldType::Json, "nested too deep to look into");
        }
        let Some(elements) = &evidence.elements else {
            return chosen(
                FieldType::Json,
                "empty arrays only: nothing is known of elements",
            );
        };
        if elements.kinds.values() == 0 {
            return chosen(
                FieldType::Json,
                "arrays of nulls only: nothing is known of elements",
            );
        }
        let inner = self.choose(elements, &format!("{path}[]"), depth + 1);
        Chosen {
            field_type: FieldType::List(Box::new(inner.field_type)),
            fields: inner.fields,
            reason: format!("arrays; elements: {}", inner.reason),
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn mixed_kinds(kinds: &[(&str, u64)], evidence: &FieldEvidence) -> Chosen {
    let counts: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    let mut reason = format!(
        "mixed kinds ({}): json keeps each as it is",
        counts.join(", ")
    );
    let only_empty = evidence.kinds.text > 0 && evidence.texts.filled() + evidence.texts.blank == 0;
    if only_empty && kinds.len() == 2 {
        reason.push_str("; all its texts are empty: if they mean nothing, declare the other type with null_values = [\"\"]");
    }
    chosen(FieldType::Json, reason)
}

fn number(evidence: &FieldEvidence) -> Chosen {
    let (kinds, numbers) = (&evidence.kinds, &evidence.numbers);
    if kinds.float == 0 {
        return integer(evidence, FieldType::Json, "json keeps their digits");
    }
    if numbers.too_large > 0 {
        return chosen(
            FieldType::Json,
            "numbers too large for a float64: json keeps their digits",
        );
    }
    if numbers.inexact_ints > 0 {
        return chosen(
            FieldType::Json,
            "fractions beside integers that a float64 cannot hold: json keeps their digits; declare decimal(p,s) if they are amounts",
        );
    }
    chosen(
        FieldType::Float,
        float_reason(evidence, "numbers with a fraction"),
    )
}

fn float_reason(evidence: &FieldEvidence, what: &str) -> String {
    let numbers = &evidence.numbers;
    let mut reason = format!(
        "{what}, at most {} digits after the point",
        numbers.max_fraction_digits
    );
    if numbers.long_fractions > 0 {
        reason.push_str(&format!(
            "; {} of them have more digits than a float64 keeps",
            numbers.long_fractions
        ));
    }
    reason.push_str("; declare decimal(p,s) if they are amounts");
    reason
}

fn integer(evidence: &FieldEvidence, wide: FieldType, wide_reason: &str) -> Chosen {
    let numbers = &evidence.numbers;
    if numbers.beyond_u64 > 0 {
        return chosen(
            wide,
            format!(
                "integers of up to {} digits: {wide_reason}",
                numbers.max_int_digits
            ),
        );
    }
    if numbers.beyond_i64 > 0 {
        return chosen(
            FieldType::Decimal {
                precision: 20,
                scale: 0,
            },
            "integers beyond 64 bits with sign: decimal(20,0) holds all of 64 bits without sign",
        );
    }
    let mut reason = "whole numbers only".to_owned();
    if numbers.epoch_like > 0
        && numbers.epoch_like == evidence.kinds.values() - evidence.texts.empty
    {
        reason.push_str("; they look like times since 1970: declare timestamp with formats = [\"epoch_s\"] or [\"epoch_ms\"] if they are");
    }
    chosen(FieldType::Int, reason)
}

fn text(evidence: &FieldEvidence) -> Chosen {
    let texts = &evidence.texts;
    let filled = texts.filled();
    if filled > 0 && texts.empty + texts.blank == 0 {
        if texts.date == filled {
            return chosen(FieldType::Date, "every text is a day, YYYY-MM-DD");
        }
        if texts.rfc3339 == filled {
            return chosen(
                FieldType::Timestamp,
                "every text is an instant of RFC 3339; its offset is not kept, only the instant",
            );
        }
    }
    let digits = texts.int + texts.leading_zero + texts.decimal;
    let reason = if filled > 0 && digits == filled {
        "texts of digits stay texts: they may be codes; declare int or decimal(p,s) if they are numbers"
    } else if filled > 0 && texts.bool == filled {
        "texts `true` and `false` stay texts; declare bool if they mean that"
    } else if filled > 0 && texts.date + texts.rfc3339 == filled {
        "dates or instants, beside empty texts or of both forms: declare date or timestamp with null_values or formats if all are meant so"
    } else {
        "texts"
    };
    chosen(FieldType::String, reason)
}

fn cell(evidence: &FieldEvidence) -> Chosen {
    let (texts, numbers) = (&evidence.texts, &evidence.numbers);
    let filled = texts.filled();
    if filled == 0 || texts.blank > 0 {
        return chosen(
            FieldType::String,
            "cells of text, some or all of them empty or blank",
        );
    }
    if texts.int == filled {
        return integer(evidence, FieldType::String, "a text keeps their digits");
    }
    if texts.int + texts.decimal == filled {
        let lost = numbers.long_fractions + numbers.inexact_ints + numbers.too_large;
        return if lost > 0 {
            chosen(
                FieldType::String,
                "cells with more digits than a float64 keeps: declare decimal(p,s) if they are amounts",
            )
        } else {
            chosen(
                FieldType::Float,
                float_reason(evidence, "cells that are numbers"),
            )
        };
    }
    text(evidence)
}

/// A column name that is free: not reserved, not empty, not equal to another without regard to case.
fn column_name(name: &str, is_top: bool, taken: &mut BTreeSet<String>) -> String {
    let visible: String = name.chars().filter(|c| !c.is_control()).collect();
    let mut base = visible.trim_start_matches('/').to_owned();
    if base.trim().is_empty() {
        "unnamed".clone_into(&mut base);
    }
    let is_reserved = |name: &str| {
        let lower = name.to_lowercase();
        is_top
            && origin_type(name).is_none()
            && (lower.starts_with('_')
                || ["dt", "schema_version", "source"].contains(&lower.as_str()))
    };
    if is_reserved(&base) {
        base = format!("input_{}", base.trim_start_matches('_'));
    }
    let mut column = base.clone();
    let mut n = 2;
    while !taken.insert(column.to_lowercase()) {
        column = format!("{base}_{n}");
        n += 1;
    }
    column
}

/// The `from` that finds a member of that name: a name that begins with a slash needs a pointer.
fn input_name(name: &str) -> String {
    if name.starts_with('/') {
        format!("/{}", name.replace('~', "~0").replace('/', "~1"))
    } else {
        name.to_owned()
    }
}
