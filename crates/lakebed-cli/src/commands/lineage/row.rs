//! A row as an answer of SQL has it: every value by its own text, so that no digit of a number is lost.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Names and values in the order of the columns.
#[derive(Debug, Default)]
pub(super) struct Row(Vec<(String, Box<RawValue>)>);

impl Row {
    /// The text by which the value is asked for: of a text its characters, of a number its digits. `None` for what
    /// is no such value, and where there is none.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let json = self.0.iter().find(|(n, _)| n == name)?.1.get();
        match json.as_bytes().first()? {
            b'"' => serde_json::from_str(json).ok(),
            b'{' | b'[' | b'n' => None,
            _ => Some(json.to_owned()),
        }
    }

    /// Keeps the values for which this is true; it is asked with the name, and whether the value is null.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&str, bool) -> bool) {
        self.0
            .retain(|(name, json)| keep(name, json.get() == "null"));
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, json)| (name, json)))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Row;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Row(members))
            }
        }
        from.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stay_as_they_are() {
        let json =
            r#"{"b":12345678901234567890.12,"a":"台\"北","n":null,"z":22.00,"t":true,"l":[1]}"#;
        let mut row: Row = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&row).unwrap(), json);
        let texts = ["b", "a", "n", "z", "t", "l", "x"].map(|name| row.text(name));
        let texts: Vec<&str> = texts.iter().map(|t| t.as_deref().unwrap_or("-")).collect();
        assert_eq!(
            texts,
            [
                "12345678901234567890.12",
                "台\"北",
                "-",
                "22.00",
                "true",
                "-",
                "-"
            ]
        );
        row.retain(|name, is_null| !is_null && name != "l");
        assert_eq!(row.0.len(), 4);
    }
}
