//! Checked names and ids. A value of these types has passed its check, once, at the edge; copies share
//! one text, since a fold holds each of them many times.
//!
//! What does not belong here: where a name lies on disk (that is `store::layout`).

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Result};

/// `[a-z][a-z0-9_]{0,63}`: the code name of a source, or the part of a dataset after the dot.
fn check_code(kind: &str, text: &str) -> Result<()> {
    let mut chars = text.chars();
    let good = chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && text.len() <= 64;
    if good {
        return Ok(());
    }
    Err(Error::invalid(format!("`{text}` is not a {kind} name"))
        .hint("a small letter, then small letters, digits and `_`, at most 64; a title in any script goes into source.toml"))
}

/// `digits` small hex digits.
fn check_hex(kind: &str, text: &str, digits: usize) -> Result<()> {
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if text.len() == digits && text.bytes().all(is_hex) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`{text}` is not a {kind} of {digits} hex digits"
    )))
}

/// Reads a value of what is written as a text.
struct CheckedText<T>(PhantomData<T>);

impl<T: FromStr<Err = Error>> Visitor<'_> for CheckedText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Reads a checked value where its text stands, without a copy.
pub(crate) fn read_text<'de, D: Deserializer<'de>, T: FromStr<Err = Error>>(
    deserializer: D,
) -> std::result::Result<T, D::Error> {
    deserializer.deserialize_str(CheckedText(PhantomData))
}

/// Reads the type as its text says.
macro_rules! read_as_text {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> std::result::Result<Self, D::Error> {
                $crate::name::read_text(deserializer)
            }
        }
    };
}
pub(crate) use read_as_text;

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(into = "String")]
        pub struct $name(Arc<str>);

        read_as_text!($name);

        impl $name {
            /// The checked text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                let check: fn(&str) -> Result<()> = $check;
                check(text)?;
                Ok(Self(text.into()))
            }
        }
        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_type!(
    /// The code name of a crawled site or interface.
    SourceName,
    |t| check_code("source", t)
);

text_type!(
    /// A dataset within a layer: `wechat`, or `wechat.comments` where a source has several.
    DatasetName,
    |t| match t.split_once('.') {
        None => check_code("dataset", t),
        Some((source, part)) => check_code("dataset", source).and_then(|()| check_code("dataset", part)),
    }
);

text_type!(
    /// A run of a source for one business date: `day`, or `0900` where a day has several sweeps.
    RunName,
    |t| check_label("run", t)
);

text_type!(
    /// A stage of a crawl, such as `list` or `detail`: the kind of its requests and pages.
    StageName,
    |t| check_code("stage", t)
);

text_type!(
    /// A stage of a flow, such as `parse` or `fold.rents`: names its stamp, its log and its target of make.
    FlowStageName,
    |t| check_flow_stage(t)
);

text_type!(
    /// A fold of a source, such as `house`: the last part of its dataset's name.
    FoldName,
    |t| check_code("fold", t)
);

text_type!(
    /// The class of an error in which a request ended, such as `http_403`, `timeout` or `robots`.
    ErrorClass,
    |t| check_code("error class", t)
);

text_type!(
    /// Which request: 128 bits of BLAKE3 over its separated parts, 32 small hex digits.
    RequestKey,
    |t| check_hex("request key", t, 32)
);

text_type!(
    /// Which response of which attempt at which request, 32 small hex digits.
    CaptureId,
    |t| check_hex("capture id", t, 32)
);

text_type!(
    /// SHA-256 of a body, 64 small hex digits.
    BodyHash,
    |t| check_hex("SHA-256", t, 64)
);

text_type!(
    /// A caller's own label for a batch of inputs.
    BatchLabel,
    |t| check_label("batch", t)
);

text_type!(
    /// The unique id of one attempt to commit; names its stage folder.
    AttemptId,
    |t| check_label("attempt", t)
);

text_type!(
    /// The unique id of a commit.
    CommitId,
    |t| check_label("commit", t)
);

text_type!(
    /// The unique id of a lake.
    LakeId,
    |t| check_label("lake", t)
);

text_type!(
    /// BLAKE3 of some bytes, 64 small hex digits.
    ContentHash,
    |t| check_hex("BLAKE3 hash", t, 64)
);

impl AttemptId {
    /// The id as a person names it: whole, as this program makes them. A log may hold others.
    ///
    /// # Errors
    /// `InvalidInput` for any other text.
    pub fn parse_whole(text: &str) -> Result<Self> {
        if check_hex("attempt id", text, 32).is_ok() {
            return text.parse();
        }
        Err(Error::invalid(format!("`{text}` is not an attempt id"))
            .hint("an attempt id has 32 hex digits; `lakebed audit` names those that are staged"))
    }
}

/// The first half of a BLAKE3 hash, in hex.
fn half_hash(bytes: &[u8]) -> Arc<str> {
    blake3::hash(bytes).to_hex()[..32].into()
}

impl RequestKey {
    /// The key made of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(half_hash(bytes))
    }
}

impl CaptureId {
    /// The id made of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(half_hash(bytes))
    }
}

impl ContentHash {
    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().as_str().into())
    }

    /// The hash that a finished hasher holds.
    #[must_use]
    pub fn finish(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize().to_hex().as_str().into())
    }

    /// The hash of these bytes as a hash.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes).to_hex().as_str().into())
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        // The text was checked: it has 64 hex digits.
        blake3::Hash::from_hex(self.as_str()).map_or([0; 32], Into::into)
    }

    /// The first 16 hex digits, as used in file names.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..16]
    }
}

fn check_label(kind: &str, text: &str) -> Result<()> {
    let good = !text.is_empty()
        && text.len() <= 128
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':'))
        && !text.starts_with('.');
    if good {
        return Ok(());
    }
    Err(Error::invalid(format!("`{text}` is not a {kind} label"))
        .hint("letters, digits, `.`, `_`, `-` and `:`, at most 128, not beginning with a dot"))
}

fn check_flow_stage(text: &str) -> Result<()> {
    let good = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 128
        && text.bytes().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
        });
    if good {
        return Ok(());
    }
    Err(
        Error::invalid(format!("`{text}` is not the name of a stage"))
            .hint("a small letter, then small letters, digits, `.`, `_` and `-`, at most 128"),
    )
}

impl From<SourceName> for DatasetName {
    /// The dataset of the source's own name.
    fn from(source: SourceName) -> Self {
        Self(source.0)
    }
}

/// A layer of the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Bytes as fetched.
    Raw,
    /// Typed rows.
    Clean,
    /// Derived rows.
    Feature,
}

impl Layer {
    /// Every layer, in the order data flows.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Clean, Self::Feature];

    /// The name in paths and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Clean => "clean",
            Self::Feature => "feature",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Layer {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|l| l.as_str() == text)
            .ok_or_else(|| {
                Error::invalid(format!("`{text}` is not a layer"))
                    .hint("layers are `raw`, `clean` and `feature`")
            })
    }
}

/// A table of a layer, written `clean/wechat`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct DatasetRef {
    /// The layer.
    pub layer: Layer,
    /// The name within the layer.
    pub dataset: DatasetName,
}

read_as_text!(DatasetRef);

impl DatasetRef {
    /// The source that the dataset belongs to: the name up to the dot.
    #[must_use]
    pub fn source(&self) -> SourceName {
        let name = self.dataset.as_str();
        SourceName(
            name.split_once('.')
                .map_or(name, |(source, _)| source)
                .into(),
        )
    }
}

impl fmt::Display for DatasetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.layer, self.dataset)
    }
}

impl FromStr for DatasetRef {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let (layer, dataset) = text.split_once('/').ok_or_else(|| {
            Error::invalid(format!("`{text}` is not a dataset"))
                .hint("a dataset is written `layer/name`, for example `clean/wechat`")
        })?;
        Ok(Self {
            layer: layer.parse()?,
            dataset: dataset.parse()?,
        })
    }
}

impl From<DatasetRef> for String {
    fn from(value: DatasetRef) -> Self {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_checked() {
        for good in ["a", "weibo_2", "wechat"] {
            assert!(good.parse::<SourceName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "2a",
            "Weibo",
            "we-chat",
            "微博",
            "a.b",
            "a/b",
            "..",
            &"a".repeat(65),
        ] {
            assert!(bad.parse::<SourceName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn datasets_have_a_source() {
        let d: DatasetRef = "clean/wechat.comments".parse().unwrap();
        assert_eq!(d.source().as_str(), "wechat");
        assert_eq!(d.to_string(), "clean/wechat.comments");
        for bad in [
            "wechat",
            "cleen/wechat",
            "clean/",
            "clean/a.b.c",
            "clean/../x",
        ] {
            assert!(bad.parse::<DatasetRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_never_climb_out_of_a_folder() {
        for bad in ["", ".", "..", "a/b", "a b", "ü"] {
            assert!(bad.parse::<RunName>().is_err(), "{bad}");
        }
    }
}
