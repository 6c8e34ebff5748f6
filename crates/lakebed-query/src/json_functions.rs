//! `json_get`, `json_get_text`, `json_items`: a look into texts of JSON.
//!
//! | call | answer |
//! | --- | --- |
//! | `json_get(json, '/a/0')` | the value at a JSON pointer (RFC 6901), as JSON with its digits and escapes as written |
//! | `json_get_text(json, '/a/0')` | the same, a text without its quotes; JSON null is NULL |
//! | `json_items(json, '/a')` | the elements of an array, each as JSON; for `unnest` |
//!
//! NULL where the text is no JSON, or nothing is there. Values are found by walking the text: no number
//! passes through a float, and nothing is parsed that is not on the way.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use lakebed::ingest::json::{Scanner, unescaped};
use lakebed::ingest::raw::Raw;

/// The functions of this module.
pub(crate) fn json_functions() -> Vec<ScalarUDF> {
    [Wanted::Json, Wanted::Text, Wanted::Items]
        .map(|wanted| ScalarUDF::new_from_impl(JsonFunction::new(wanted)))
        .into()
}

/// What a function answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wanted {
    Json,
    Text,
    Items,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonFunction {
    signature: Signature,
    wanted: Wanted,
}

impl JsonFunction {
    fn new(wanted: Wanted) -> Self {
        Self {
            signature: Signature::string(2, Volatility::Immutable),
            wanted,
        }
    }
}

impl ScalarUDFImpl for JsonFunction {
    fn name(&self) -> &'static str {
        match self.wanted {
            Wanted::Json => "json_get",
            Wanted::Text => "json_get_text",
            Wanted::Items => "json_items",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.wanted {
            Wanted::Json | Wanted::Text => DataType::Utf8,
            Wanted::Items => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let Ok([json, pointer]) = <[ColumnarValue; 2]>::try_from(args.args) else {
            return exec_err!("`{}` takes a JSON text and a pointer", self.name());
        };
        let all_scalar = matches!(
            (&json, &pointer),
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_))
        );
        let rows = if all_scalar { 1 } else { rows };
        let texts = |value: ColumnarValue| -> Result<ArrayRef> {
            Ok(cast(&value.into_array(rows)?, &DataType::Utf8)?)
        };
        let (json, pointer) = (texts(json)?, texts(pointer)?);
        let answer = self.answer(json.as_string::<i32>(), pointer.as_string::<i32>())?;
        if all_scalar {
            let first = datafusion::common::ScalarValue::try_from_array(&answer, 0)?;
            return Ok(ColumnarValue::Scalar(first));
        }
        Ok(ColumnarValue::Array(answer))
    }
}

impl JsonFunction {
    fn answer(&self, json: &StringArray, pointer: &StringArray) -> Result<ArrayRef> {
        let mut path = Path::default();
        match self.wanted {
            Wanted::Json | Wanted::Text => {
                let mut out = StringBuilder::with_capacity(json.len(), 0);
                for (text, pointer) in json.iter().zip(pointer) {
                    let found = path.find(text, pointer)?;
                    match (found, self.wanted) {
                        (None, _) => out.append_null(),
                        (Some((_, text)), Wanted::Json) => out.append_value(text),
                        (Some((Raw::Null, _)), _) => out.append_null(),
                        (Some((Raw::String { body, escaped }, _)), _) => {
                            out.append_value(unescaped(body, escaped));
                        }
                        (Some((_, text)), _) => out.append_value(text),
                    }
                }
                Ok(Arc::new(out.finish()))
            }
            Wanted::Items => {
                let mut out = ListBuilder::new(StringBuilder::new());
                for (text, pointer) in json.iter().zip(pointer) {
                    let is_list = match path.find(text, pointer)? {
                        Some((Raw::Array(array), _)) => push_items(array, &mut out).is_some(),
                        Some(_) | None => false,
                    };
                    out.append(is_list);
                }
                Ok(Arc::new(out.finish()))
            }
        }
    }
}

/// The elements of a checked array.
fn push_items(array: &str, out: &mut ListBuilder<StringBuilder>) -> Option<()> {
    let mut scanner = Scanner::new(array);
    scanner.open_array().ok()?;
    let mut first = true;
    while scanner.next_element(first).ok()? {
        first = false;
        let (_, text) = value_here(&mut scanner, array)?;
        out.values().append_value(text);
    }
    Some(())
}

/// The value under the cursor and its text.
fn value_here<'t>(scanner: &mut Scanner<'t>, text: &'t str) -> Option<(Raw<'t>, &'t str)> {
    scanner.skip_space()?;
    let start = scanner.offset();
    let value = scanner.value().ok()?;
    Some((value, text.get(start..scanner.offset())?))
}

/// The last pointer and its tokens: mostly it is the same in every row.
#[derive(Default)]
struct Path {
    pointer: String,
    tokens: Vec<String>,
}

impl Path {
    fn read(&mut self, pointer: &str) -> Result<()> {
        if self.pointer == pointer {
            return Ok(());
        }
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return exec_err!(
                "`{pointer}` is no JSON pointer: it begins with `/`, for example `/comments/0/text`"
            );
        }
        let tokens = pointer.split('/').skip(1);
        self.tokens = tokens
            .map(|t| t.replace("~1", "/").replace("~0", "~"))
            .collect();
        pointer.clone_into(&mut self.pointer);
        Ok(())
    }

    /// The value at the pointer; `None` where the text is NULL, no JSON, or has nothing there.
    fn find<'t>(
        &mut self,
        text: Option<&'t str>,
        pointer: Option<&str>,
    ) -> Result<Option<(Raw<'t>, &'t str)>> {
        let (Some(text), Some(pointer)) = (text, pointer) else {
            return Ok(None);
        };
        self.read(pointer)?;
        let mut scanner = Scanner::new(text);
        let found = value_here(&mut scanner, text);
        if scanner.skip_space().is_some() {
            return Ok(None);
        }
        Ok(self
            .tokens
            .iter()
            .try_fold(found, |at, token| {
                let inside = match at?.0 {
                    Raw::Object(object) => member(object, token),
                    Raw::Array(array) => element(array, token),
                    _ => None,
                };
                Some(inside)
            })
            .flatten())
    }
}

fn member<'t>(object: &'t str, name: &str) -> Option<(Raw<'t>, &'t str)> {
    let mut scanner = Scanner::new(object);
    scanner.open_object().ok()?;
    let mut first = true;
    while let Some(key) = scanner.next_key(first).ok()? {
        first = false;
        let found = value_here(&mut scanner, object)?;
        if unescaped(key.body, key.escaped) == name {
            return Some(found);
        }
    }
    None
}

fn element<'t>(array: &'t str, index: &str) -> Option<(Raw<'t>, &'t str)> {
    let plain = index == "0" || !index.starts_with(['0', '+']);
    let mut left: usize = index.parse().ok().filter(|_| plain)?;
    let mut scanner = Scanner::new(array);
    scanner.open_array().ok()?;
    let mut first = true;
    while scanner.next_element(first).ok()? {
        first = false;
        let found = value_here(&mut scanner, array)?;
        if left == 0 {
            return Some(found);
        }
        left -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, pointer: &str) -> Option<String> {
        let mut path = Path::default();
        let found = path.find(Some(text), Some(pointer)).unwrap();
        found.map(|(_, t)| t.to_owned())
    }

    #[test]
    fn pointers_find_values_as_they_are_written() {
        let text =
            r#"{"a":[{"n":12345678901234567890.10},"湖\u0041"],"x/y":{"~":1e400},"":0,"d":null}"#;
        let some = |t: &str| Some(t.to_owned());
        assert_eq!(get(text, "/a/0/n"), some("12345678901234567890.10"));
        assert_eq!(get(text, "/a/1"), some(r#""湖\u0041""#));
        assert_eq!(get(text, "/x~1y/~0"), some("1e400"));
        assert_eq!(get(text, "/"), some("0"));
        assert_eq!(get(text, "/d"), some("null"));
        assert_eq!(get(text, ""), some(text));
        for nothing in ["/b", "/a/2", "/a/00", "/a/-1", "/a/x", "/d/x"] {
            assert_eq!(get(text, nothing), None, "{nothing}");
        }
        assert_eq!(get("no json", "/a"), None);
        assert_eq!(get("{} {}", ""), None);
        assert!(Path::default().find(Some("{}"), Some("a")).is_err());
    }
}
