//! `[seed]` of a `source.toml`: which objects of today's list are fetched in detail.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::config::{CrawlConfig, Texts, nearest_hint};
use crate::error::{Error, Result};
use crate::name::{FoldName, StageName};

/// The table `[seed]`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeedConfig {
    /// Whose final snapshot of yesterday it looks at.
    pub fold: FoldName,
    /// The input of that fold that is today's list; absent = the one of presence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Stage of the requests; absent = that of the crawl's seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageName>,
    /// The address of an object.
    pub url: SeedUrl,
    /// Field of the rule `last_seen` that says when its details came last.
    pub detailed: String,
    /// Field of the rule `copy` that holds the fingerprint of the list when its details came last; absent = nothing
    /// counts as changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// States in which an object is looked after although the list has it not; empty = any.
    #[serde(default, skip_serializing_if = "is_none")]
    pub open: Texts,
    /// Details that are older are fetched again; absent = never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_days: Option<u32>,
    /// So many days sooner or later, by the hash of the key.
    #[serde(default)]
    pub jitter_days: u32,
    /// Days without a place in the list after which an object is looked at; absent = never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent_days: Option<u32>,
    /// What is asked for.
    #[serde(default)]
    pub mode: SeedMode,
}

fn is_none(texts: &Texts) -> bool {
    texts.0.is_empty()
}

/// What is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedMode {
    /// Everything that is in the list or open.
    Full,
    /// What is new, changed, stale, absent or back.
    #[default]
    Diff,
    /// What is new alone; the list need not be complete.
    New,
}

/// Where the address of an object comes from. A text alone is a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SeedUrl {
    /// A text with `{field}` in it.
    Template(String),
    /// The value of a field.
    Field(SeedUrlField),
}

/// `url = { field = "..." }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SeedUrlField {
    /// A column of the list, or a field of the snapshot.
    pub field: String,
}

impl<'de> Deserialize<'de> for SeedUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Url;
        impl<'de> Visitor<'de> for Url {
            type Value = SeedUrl;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a template such as \"https://rent.example/{id}\", or { field = \"url\" }",
                )
            }
            fn visit_str<E>(self, text: &str) -> Result<SeedUrl, E> {
                Ok(SeedUrl::Template(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SeedUrl, A::Error> {
                SeedUrlField::deserialize(MapAccessDeserializer::new(map)).map(SeedUrl::Field)
            }
        }
        from.deserialize_any(Url)
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlPart {
    /// As it stands.
    Text(String),
    /// The value of a field.
    Field(String),
}

impl SeedUrl {
    /// Its pieces.
    ///
    /// # Errors
    /// `InvalidInput` where a brace is left open or nothing stands between two.
    pub fn parts(&self) -> Result<Vec<UrlPart>> {
        let template = match self {
            Self::Field(of) => return Ok(vec![UrlPart::Field(of.field.clone())]),
            Self::Template(template) => template,
        };
        let bad = || {
            Error::invalid(format!("`{template}` is no template of a URL"))
                .hint("\"https://rent.example/{id}\": the name of a column between braces")
        };
        let mut parts = Vec::new();
        let mut rest = template.as_str();
        while let Some((text, after)) = rest.split_once('{') {
            let (field, after) = after.split_once('}').ok_or_else(bad)?;
            if field.is_empty() || field.contains('{') || text.contains('}') {
                return Err(bad());
            }
            if !text.is_empty() {
                parts.push(UrlPart::Text(text.to_owned()));
            }
            parts.push(UrlPart::Field(field.to_owned()));
            rest = after;
        }
        if rest.contains('}') || parts.is_empty() {
            return Err(bad());
        }
        if !rest.is_empty() {
            parts.push(UrlPart::Text(rest.to_owned()));
        }
        Ok(parts)
    }
}

impl SeedConfig {
    /// Checks what can be said without the fold.
    pub(super) fn check(&self, file: &str) -> Result<()> {
        let at = |e: Error, key: &str| e.with("file", file).with("key", format!("seed.{key}"));
        self.url.parts().map_err(|e| at(e, "url"))?;
        let stale = self.stale_days.unwrap_or(u32::MAX);
        if self.jitter_days > 0 && self.jitter_days >= stale {
            let what = format!(
                "`jitter_days` is {}, `stale_days` {stale}",
                self.jitter_days
            );
            return Err(at(Error::invalid(what), "jitter_days")
                .hint("fewer days of jitter than of staleness: what is fresh is not fetched"));
        }
        Ok(())
    }

    /// A stage that the crawl has not would make every request of a plan one that nobody takes.
    pub(super) fn check_stage(&self, crawl: Option<&CrawlConfig>, file: &str) -> Result<()> {
        let (Some(crawl), Some(stage)) = (crawl, &self.stage) else {
            return Ok(());
        };
        if crawl.stage.contains_key(stage) {
            return Ok(());
        }
        let names: Vec<&str> = crawl.stage.keys().map(StageName::as_str).collect();
        Err(Error::invalid(format!("the crawl has no stage `{stage}`"))
            .with("file", file)
            .with("key", "seed.stage")
            .hint(nearest_hint(stage.as_str(), &names)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_texts_and_fields() {
        let parts = |text: &str| SeedUrl::Template(text.to_owned()).parts();
        let field = |name: &str| UrlPart::Field(name.to_owned());
        let text = |text: &str| UrlPart::Text(text.to_owned());
        assert_eq!(
            parts("https://a.example/{city}/{id}?x=1").unwrap(),
            [
                text("https://a.example/"),
                field("city"),
                text("/"),
                field("id"),
                text("?x=1")
            ]
        );
        for bad in [
            "https://a.example/",
            "https://a.example/{id",
            "x}{id}",
            "{}",
            "{a{b}",
        ] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }
}
