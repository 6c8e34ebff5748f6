//! What the values of unknown fields are, so that the next version can be proposed.

use crate::ingest::convert::drift::Evidence;
use crate::ingest::convert::number::int_from_number;
use crate::ingest::convert::typed;
use crate::ingest::json::{Scanner, unescaped};
use crate::ingest::native::NativeValue;
use crate::ingest::raw::Raw;

/// How deep nested values are looked into.
const MAX_DEPTH: usize = 3;
/// How many elements or members of one value are looked at.
const MAX_INSIDE: usize = 64;
/// How many different members of an unknown object are told apart.
const MAX_MEMBERS: usize = 200;

/// Counts one value.
pub(crate) fn observe(evidence: &mut Evidence, raw: &Raw<'_>) {
    observe_at(evidence, raw, 0);
}

fn observe_at(evidence: &mut Evidence, raw: &Raw<'_>, depth: usize) {
    match raw {
        Raw::Absent => {}
        Raw::Null => evidence.nulls += 1,
        Raw::Bool(_) => evidence.bools += 1,
        Raw::Number(text) => observe_number(evidence, text),
        Raw::NonFinite(_) => evidence.non_finite += 1,
        Raw::String { body, .. } => observe_text(evidence, body),
        Raw::Cell { text, quoted } => {
            if text.is_empty() && !quoted {
                evidence.nulls += 1;
            } else {
                observe_text(evidence, text);
            }
        }
        Raw::Object(text) => {
            evidence.objects += 1;
            if depth < MAX_DEPTH {
                observe_members(evidence, text, depth);
            }
        }
        Raw::Array(text) => {
            evidence.arrays += 1;
            if depth < MAX_DEPTH {
                observe_elements(evidence, text, depth);
            }
        }
        Raw::Native(value) => observe_native(evidence, value, depth),
    }
}

fn observe_number(evidence: &mut Evidence, text: &str) {
    let plain = !text.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'));
    if !plain {
        evidence.floats += 1;
    } else if int_from_number(text).is_ok() {
        evidence.ints += 1;
    } else {
        evidence.big_ints += 1;
    }
}

fn observe_text(evidence: &mut Evidence, text: &str) {
    evidence.texts += 1;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if text.is_empty() {
        evidence.empty_texts += 1;
    } else if digits.bytes().all(|b| b.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'))
        && int_from_number(text).is_ok()
        && !digits.is_empty()
    {
        evidence.int_texts += 1;
    }
}

fn observe_members(evidence: &mut Evidence, text: &str, depth: usize) {
    let mut scanner = Scanner::new(text);
    if scanner.open_object().is_err() {
        return;
    }
    for i in 0..MAX_INSIDE {
        let Ok(Some(key)) = scanner.next_key(i == 0) else {
            return;
        };
        let Ok(value) = scanner.value() else {
            return;
        };
        let name = unescaped(key.body, key.escaped);
        if evidence.members.len() < MAX_MEMBERS || evidence.members.contains_key(name.as_ref()) {
            let member = evidence.members.entry(name.into_owned()).or_default();
            observe_at(member, &value, depth + 1);
        }
    }
}

fn observe_elements(evidence: &mut Evidence, text: &str, depth: usize) {
    let mut scanner = Scanner::new(text);
    if scanner.open_array().is_err() {
        return;
    }
    for i in 0..MAX_INSIDE {
        let Ok(true) = scanner.next_element(i == 0) else {
            return;
        };
        let Ok(value) = scanner.value() else {
            return;
        };
        let elements = evidence.elements.get_or_insert_default();
        observe_at(elements, &value, depth + 1);
    }
}

fn observe_native(evidence: &mut Evidence, value: &NativeValue<'_>, depth: usize) {
    let mut named = |name: &str| *evidence.native.entry(name.to_owned()).or_default() += 1;
    match value {
        NativeValue::Date(_) => named("date"),
        NativeValue::Instant(_) | NativeValue::WallTime(_) | NativeValue::Nanos(_) => {
            named("timestamp");
        }
        NativeValue::Bytes(_) => named("bytes"),
        NativeValue::Other(array) => named(&array.data_type().to_string()),
        NativeValue::Float(_) => evidence.floats += 1,
        NativeValue::Text(text) => observe_text(evidence, text),
        NativeValue::Nested { array, row } => {
            let mut text = String::new();
            typed::write_json(&mut text, array, *row);
            let mut scanner = Scanner::new(&text);
            if let Ok(value) = scanner.value() {
                observe_at(evidence, &value, depth);
            }
        }
    }
}
