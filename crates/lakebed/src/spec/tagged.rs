//! Enums that are JSON objects with a member that says which variant they are, read without a copy.
//!
//! What serde derives for such an enum holds every member in memory before it knows the variant, whatever their
//! order: half of what a log costs to read. Writers put the tag first; where it is, the members that follow go
//! straight into the variant. Where it is not, all of them are held as before.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Defines an enum of struct variants that is told apart by the member `by`, and reads it as this file says.
macro_rules! tagged_enum {
    ($(#[$meta:meta])* pub enum $name:ident, $text:literal by $tag:literal { $($body:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        #[serde(tag = $tag, rename_all = "snake_case")]
        pub enum $name { $($body)* }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                /// The variants, their name outside of their members.
                #[derive(serde::Deserialize)]
                #[serde(remote = $text, rename_all = "snake_case", deny_unknown_fields)]
                #[allow(dead_code, reason = "it stands for the enum while that is read")]
                enum Outside { $($body)* }

                struct Whole($name);
                impl<'de> serde::Deserialize<'de> for Whole {
                    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                        Outside::deserialize(d).map(Whole)
                    }
                }
                let tagged = $crate::spec::tagged::Tagged::<Whole>::new($tag);
                deserializer.deserialize_map(tagged).map(|whole| whole.0)
            }
        }
    };
}
pub(super) use tagged_enum;

/// Reads a `T` whose variant the member `tag` names.
pub(super) struct Tagged<T> {
    tag: &'static str,
    read: PhantomData<T>,
}

impl<T> Tagged<T> {
    pub(super) fn new(tag: &'static str) -> Self {
        let read = PhantomData;
        Self { tag, read }
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Tagged<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.tag)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let Some(first) = map.next_key::<String>()? else {
            return Err(A::Error::missing_field(self.tag));
        };
        if first == self.tag {
            return T::deserialize(Members(map));
        }
        let mut members = Map::new();
        members.insert(first, map.next_value()?);
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        let variant = match members.remove(self.tag) {
            Some(Value::String(variant)) => variant,
            Some(other) => return Err(A::Error::custom(format!("`{other}` is no variant"))),
            None => return Err(A::Error::missing_field(self.tag)),
        };
        let outside = Map::from_iter([(variant, Value::Object(members))]);
        T::deserialize(Value::Object(outside)).map_err(A::Error::custom)
    }
}

/// The members of an object whose next value is the variant's name.
struct Members<A>(A);

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Members<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Members<A> {
    type Error = A::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        mut self,
        seed: S,
    ) -> Result<(S::Value, Self), A::Error> {
        Ok((self.0.next_value_seed(seed)?, self))
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Members<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &"a variant alone"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &"one value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &"a list"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::{Action, Requirement};

    const FIRST: &str = r#"{"action":"complete","dt":"2024-05-20"}"#;

    #[test]
    fn the_tag_may_stand_anywhere() {
        let first: Action = serde_json::from_str(FIRST).unwrap();
        let last = r#"{"dt":"2024-05-20","action":"complete"}"#;
        assert_eq!(serde_json::from_str::<Action>(last).unwrap(), first);
        let value: serde_json::Value = serde_json::from_str(FIRST).unwrap();
        assert_eq!(serde_json::from_value::<Action>(value).unwrap(), first);
        assert_eq!(serde_json::to_string(&first).unwrap(), FIRST);
        let batch =
            r#"{"kind":"input_absent","dt":"2024-05-20","content":"CONTENT","batch":"morning"}"#;
        let batch = batch.replace("CONTENT", &"0".repeat(64));
        let required: Requirement = serde_json::from_str(&batch).unwrap();
        assert_eq!(serde_json::to_string(&required).unwrap(), batch);
    }

    #[test]
    fn what_is_no_action_is_refused() {
        for (wrong, why) in [
            ("{}", "missing field `action`"),
            (r#"{"dt":"2024-05-20"}"#, "missing field `action`"),
            (
                r#"{"action":"fly","dt":"2024-05-20"}"#,
                "unknown variant `fly`",
            ),
            (
                r#"{"dt":"2024-05-20","action":"fly"}"#,
                "unknown variant `fly`",
            ),
            (r#"{"dt":"2024-05-20","action":7}"#, "`7` is no variant"),
            (r#"{"action":"complete"}"#, "missing field `dt`"),
            (
                r#"{"action":"complete","dt":"2024-05-20","x":1}"#,
                "unknown field `x`",
            ),
            (
                r#"{"x":1,"action":"complete","dt":"2024-05-20"}"#,
                "unknown field `x`",
            ),
            (
                r#"{"action":"complete","dt":"2024-05-20","dt":"2024-05-20"}"#,
                "duplicate field `dt`",
            ),
            (
                r#"{"action":"complete","dt":"2024-05-20","action":"open"}"#,
                "unknown field `action`",
            ),
            (
                r#"{"dt":"2024-05-20","dt":"2024-05-20","action":"open"}"#,
                "stands twice",
            ),
            (r#""complete""#, "an object with `action`"),
        ] {
            let error = serde_json::from_str::<Action>(wrong)
                .unwrap_err()
                .to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
