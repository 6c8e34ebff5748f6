//! JSON texts and JSONPath (RFC 9535).
//!
//! The paths are evaluated over `serde_json` values, which hold fractions as floats; the digits as they stand
//! on the page are kept beside them, by the address of the value, and go into records.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_json_path::JsonPath;

use crate::error::{Error, Result};
use crate::parse::budget::{Budget, MAX_JSON_DEPTH, MAX_VALUES, PageError};
use crate::spec::Datum;

/// A JSON text that was read.
#[derive(Debug)]
pub(super) struct JsonDoc {
    // Boxed, so that the addresses of its values stay.
    value: Box<Value>,
    /// Texts of numbers that the value does not give back as they were, by address.
    texts: HashMap<usize, String>,
    /// Values in it.
    nodes: u64,
    /// The sum of the levels of all values.
    levels: u64,
}

impl JsonDoc {
    /// Reads a text.
    pub(super) fn parse(text: &str) -> Result<Self, PageError> {
        let unreadable =
            |e: &serde_json::Error| PageError::new("no_json", format!("the text is no JSON: {e}"));
        let text = text.trim_start_matches('\u{feff}');
        let (nodes, levels) = extent(text)?;
        let value: Box<Value> = Box::new(serde_json::from_str(text).map_err(|e| unreadable(&e))?);
        let texts = RefCell::new(HashMap::new());
        let mut reader = serde_json::Deserializer::from_str(text);
        let walk = Walk {
            value: &value,
            texts: &texts,
        };
        walk.deserialize(&mut reader).map_err(|e| unreadable(&e))?;
        Ok(Self {
            value,
            texts: texts.into_inner(),
            nodes,
            levels,
        })
    }

    /// Of values that were made here.
    pub(super) fn of(value: Value) -> Self {
        let (nodes, levels) = (count(&value), 64);
        Self {
            value: Box::new(value),
            texts: HashMap::new(),
            nodes,
            levels: levels * nodes,
        }
    }

    /// The whole of it.
    pub(super) fn root(&self) -> &Value {
        &self.value
    }

    /// A value as it goes into a record.
    pub(super) fn datum(&self, value: &Value, budget: &Budget) -> Result<Datum, PageError> {
        budget.keep(match value {
            Value::String(text) => text.len(),
            _ => 8,
        })?;
        Ok(match value {
            Value::Null => Datum::Null,
            Value::Bool(b) => Datum::Bool(*b),
            Value::Number(number) => {
                let text = self.texts.get(&std::ptr::from_ref(value).addr());
                Datum::Number(text.cloned().unwrap_or_else(|| number.to_string()))
            }
            Value::String(text) => Datum::Text(text.clone()),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.datum(item, budget));
                Datum::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members = members.iter();
                let members = members.map(|(n, v)| Ok((n.clone(), self.datum(v, budget)?)));
                Datum::Object(members.collect::<Result<_, PageError>>()?)
            }
        })
    }
}

fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// How many values a text has at most, and the sum of their levels: known before anything is made of it.
fn extent(text: &str) -> Result<(u64, u64), PageError> {
    let (mut nodes, mut levels, mut depth) = (1_u64, 1_u64, 1_u64);
    let (mut is_text, mut is_escaped) = (false, false);
    let is_json = text.trim_start().starts_with(['[', '{']);
    for byte in text.bytes() {
        if is_text {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'[' | b'{' => {
                depth += 1;
                nodes += 1;
                levels += depth;
                if is_json && depth > MAX_JSON_DEPTH + 1 {
                    let reason =
                        format!("the JSON text is nested deeper than {MAX_JSON_DEPTH} levels");
                    return Err(PageError::new("too_deep", reason));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => {
                nodes += 1;
                levels += depth;
            }
            _ => {}
        }
    }
    if nodes > MAX_VALUES {
        let reason = format!("the JSON text has more than {MAX_VALUES} values");
        return Err(PageError::new("too_large", reason));
    }
    Ok((nodes, levels))
}

/// Reads a text a second time, beside the value that was made of it.
#[derive(Clone, Copy)]
struct Walk<'v> {
    value: &'v Value,
    texts: &'v RefCell<HashMap<usize, String>>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.value {
            Value::Array(_) => from.deserialize_seq(self),
            Value::Object(_) => from.deserialize_map(self),
            Value::Number(number) => {
                let text = <&RawValue>::deserialize(from)?.get();
                if number.to_string() != text {
                    let address = std::ptr::from_ref(self.value).addr();
                    self.texts.borrow_mut().insert(address, text.to_owned());
                }
                Ok(())
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {
                IgnoredAny::deserialize(from).map(|_| ())
            }
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value that was read before")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for value in self.value.as_array().into_iter().flatten() {
            items.next_element_seed(Walk { value, ..self })?;
        }
        items.next_element::<IgnoredAny>().map(|_| ())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some(object) = self.value.as_object() else {
            return Ok(());
        };
        let mut met = 0;
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            met += 1;
            let Some(value) = object.get(name.as_ref()) else {
                return Err(serde::de::Error::custom("another object"));
            };
            members.next_value_seed(Walk { value, ..self })?;
        }
        match met == object.len() {
            true => Ok(()),
            false => Err(serde::de::Error::custom("an object has a member twice")),
        }
    }
}

/// A JSONPath.
#[derive(Debug, Clone)]
pub(super) struct JsonQuery {
    path: JsonPath,
    cost: Cost,
}

/// What looking for a path may cost, for a text of n values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// Next to nothing: straight down by names and places.
    Straight,
    /// n.
    Once,
    /// The sum of the levels: `..` after `..`.
    Levels,
    /// n times n: a filter that looks through everything below, or from the root.
    Square,
}

impl JsonQuery {
    /// Reads a path.
    ///
    /// # Errors
    /// `InvalidInput` that names it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let path = JsonPath::parse(text).map_err(|e| {
            let error = Error::invalid(format!("`{text}` is no JSONPath: {e}"));
            match text.starts_with('$') {
                true => error.hint("RFC 9535 has the rules; names with other characters stand in brackets: $['a-b']"),
                false => error.hint(format!("a path begins with `$`: \"$.{}\"", text.trim_start_matches('.'))),
            }
        })?;
        let (descents, filters) = (text.matches("..").count(), text.matches('?').count());
        let from_root = text.matches('$').count() > 1;
        let cost = match (descents, filters) {
            (3.., _) => {
                return Err(
                    Error::invalid(format!("`{text}` descends with `..` more than twice"))
                        .hint("name the members on the way"),
                );
            }
            (1.., 1..) => Cost::Square,
            (_, 1..) if from_root => Cost::Square,
            (2, _) => Cost::Levels,
            (0, 0) if !text.contains(['*', ':']) => Cost::Straight,
            _ => Cost::Once,
        };
        Ok(Self { path, cost })
    }

    /// What it finds from a value of the document, in order.
    pub(super) fn find<'a>(
        &self,
        doc: &'a JsonDoc,
        value: &'a Value,
        budget: &Budget,
    ) -> Result<Vec<&'a Value>, PageError> {
        let steps = match self.cost {
            Cost::Straight => 8,
            Cost::Once => doc.nodes,
            Cost::Levels => doc.levels,
            Cost::Square => doc.nodes.saturating_mul(doc.nodes),
        };
        budget.spend(steps)?;
        Ok(self.path.query(value).all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, path: &str) -> Vec<String> {
        let budget = Budget::new();
        let doc = JsonDoc::parse(text).unwrap();
        let path = JsonQuery::parse(path).unwrap();
        let found = path.find(&doc, doc.root(), &budget).unwrap();
        let data = found.into_iter().map(|v| doc.datum(v, &budget).unwrap());
        data.map(|d| d.to_json()).collect()
    }

    #[test]
    fn digits_stay_as_they_are() {
        let text = r#"{"a":[1.00,1e3,12345678901234567890123,-0,7],"b":{"c":"x","d":0.1}}"#;
        assert_eq!(
            find(text, "$.a[*]"),
            ["1.00", "1e3", "12345678901234567890123", "-0", "7"]
        );
        assert_eq!(find(text, "$.b"), [r#"{"c":"x","d":0.1}"#]);
        assert_eq!(
            find(text, "$.a[?@ > 5]"),
            ["1e3", "12345678901234567890123", "7"]
        );
        assert_eq!(find(text, "$..c"), [r#""x""#]);
        assert_eq!(find(text, "$.nothing"), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_json_or_too_much_is_refused() {
        for (text, code) in [
            ("<html>".to_owned(), "no_json"),
            (r#"{"a":1,"b":{"c":1,"c":[2]}}"#.to_owned(), "no_json"),
            ("[".repeat(1_000_000), "too_deep"),
            (format!("[{}1]", "1,".repeat(5_000_000)), "too_large"),
        ] {
            assert_eq!(JsonDoc::parse(&text).unwrap_err().code, code, "{text:.20}");
        }
        let wide = format!("[{}1]", "[1],".repeat(200_000));
        let doc = JsonDoc::parse(&wide).unwrap();
        let path = JsonQuery::parse("$[?count($..*) > 1]").unwrap();
        let e = path.find(&doc, doc.root(), &Budget::new()).unwrap_err();
        assert_eq!(e.code, "too_costly");
    }

    #[test]
    fn what_is_no_path_is_refused_with_advice() {
        for (path, told) in [("$.a[", "$.a["), ("a.b", "$.a.b"), ("$..a..b..c", "twice")] {
            let e = JsonQuery::parse(path).unwrap_err();
            assert!(format!("{e} {:?}", e.hints()).contains(told), "{e:?}");
        }
    }
}
