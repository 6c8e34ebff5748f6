//! What the pages of a source give: the table `[parse]` of its `source.toml`, as it is written.
//!
//! Only the shape is known here; what selectors, paths and steps mean, and whether they can be read, is
//! `parse`'s. The language is described in docs/parse.md.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::config::CrawlConfig;
use crate::error::{Error, Result};
use crate::name::{DatasetName, StageName};

/// The table `[parse]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParseConfig {
    /// Share of a date's pages, and of the records of each dataset, that may be rejected, 0 to 1; more is told with
    /// an exit code, and stored all the same.
    #[serde(default = "max_reject_share")]
    pub max_reject_share: f64,
    /// The kinds of pages; the first one that fits a page decides.
    #[serde(default)]
    pub page: Vec<PageConfig>,
}

fn max_reject_share() -> f64 {
    0.05
}

impl ParseConfig {
    /// Checks what the types cannot say; `crawl` must not say of a stage what stands here.
    pub(super) fn check(&self, crawl: Option<&CrawlConfig>, file: &str) -> Result<()> {
        let own = ("max_reject_share".to_owned(), self.max_reject_share);
        let pages = (1..).zip(&self.page);
        let shares = pages.flat_map(|(n, page)| {
            (1..).zip(&page.follow).filter_map(move |(m, follow)| {
                let key = format!("page[{n}].follow[{m}].min_share");
                Some((key, follow.min_share?))
            })
        });
        let mut shares = std::iter::once(own).chain(shares);
        if let Some((key, share)) = shares.find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(Error::invalid(format!("`{share}` is no share"))
                .with("file", file)
                .with("key", format!("parse.{key}"))
                .hint("a number from 0 to 1, such as 0.05"));
        }
        let followed = crawl.iter().flat_map(|crawl| &crawl.stage);
        for (stage, _) in followed.filter(|(_, declared)| !declared.follow.is_empty()) {
            let mut pages = (1..).zip(&self.page);
            if let Some((n, _)) = pages.find(|(_, page)| page.follows(stage)) {
                return Err(Error::invalid(format!(
                    "`parse.page[{n}]` and `crawl.stage.{stage}.follow` both say which links of stage `{stage}` are followed"
                ))
                .with("file", file)
                .with("key", format!("crawl.stage.{stage}.follow"))
                .hint(format!("the crawl follows [[parse.page.follow]]: leave `follow` out of [crawl.stage.{stage}]"))
                .hint("a page of another stage says so: stage = \"...\""));
            }
        }
        Ok(())
    }
}

impl PageConfig {
    /// Whether it may say which links of the stage's pages are followed.
    fn follows(&self, stage: &StageName) -> bool {
        let is_told = !self.follow.is_empty() || self.command.as_ref().is_some_and(|c| c.follow);
        is_told && self.stage.as_ref().is_none_or(|own| own == stage)
    }
}

/// A table `[[parse.page]]`: which pages, and what they give.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PageConfig {
    /// What people call it; default: the stage, else its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Pages of this stage of the crawl alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageName>,
    /// Pages whose URL this regular expression finds something in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_regex: Option<String>,
    /// Pages with one of these statuses; empty = 200 to 299.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<u16>,
    /// The records it gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub item: Vec<ItemConfig>,
    /// The links it leads to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follow: Vec<ParseFollowConfig>,
    /// A program that parses it instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandConfig>,
}

/// The table `[parse.page.command]`: a program of the user's that parses pages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The program and its arguments; it runs in the source's folder.
    pub run: Vec<String>,
    /// The datasets it gives records of; empty = that of the source's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<DatasetName>,
    /// Seconds that it may take for a page.
    #[serde(default = "page_seconds")]
    pub page_timeout_s: u32,
    /// MiB of memory that it may have.
    #[serde(default = "memory_mib")]
    pub memory_mib: u32,
    /// Whether the crawl asks it, too, and follows the links that it gives.
    #[serde(default, skip_serializing_if = "is_false")]
    pub follow: bool,
    /// Counts as a change of the rules, like every other key: raise it when the program changes.
    #[serde(default)]
    pub version: u32,
}

fn page_seconds() -> u32 {
    30
}

fn memory_mib() -> u32 {
    1024
}

/// A table `[[parse.page.item]]`: records of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ItemConfig {
    /// The dataset; default: that of the source's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetName>,
    /// A record for each of these; absent = one for the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<FieldConfig>,
    /// Fewer records on a page are a fault of the page.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min: u64,
    /// Fields that name the object a record tells of: `_key`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// The fields, in the order of the record.
    pub field: FieldMap,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A table `[[parse.page.follow]]`: links that become requests.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParseFollowConfig {
    /// The stage of what they lead to.
    pub stage: StageName,
    /// Look within each of these; absent = in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<FieldConfig>,
    /// The links; all matches count.
    pub url: FieldConfig,
    /// Smaller is sooner; absent = as the stage says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// What comes back with the response.
    #[serde(default, skip_serializing_if = "FieldMap::is_empty")]
    pub payload: FieldMap,
    /// Whether all pages of a run may be without such a link; else the closing is red.
    #[serde(default, skip_serializing_if = "is_false")]
    pub may_be_empty: bool,
    /// A whole number: how many such links there are over all pages of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<FieldConfig>,
    /// Share of `total` that must come, 0 to 1; absent = all. What sites announce is not always true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_share: Option<f64>,
    /// Name of the group that `total` counts; `{url}` is the page's URL without its query. Default: the
    /// stage and that URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Fields by name, in the order they are written in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldMap(pub Vec<(String, FieldConfig)>);

impl FieldMap {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where a value comes from and what becomes of it. A text alone is a CSS selector, or a JSONPath where it
/// begins with `$`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FieldConfig {
    /// Whether it was written as a text alone.
    #[serde(skip)]
    pub is_short: bool,
    /// What it is made of.
    #[serde(flatten)]
    pub table: FieldTable,
}

/// The keys of a field that is written as a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FieldTable {
    /// A CSS selector, with `::text` or `::attr(name)` where a text is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub css: Option<String>,
    /// A JSONPath (RFC 9535).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// JSON-LD objects of this `@type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_ld: Option<String>,
    /// Microdata items of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microdata: Option<String>,
    /// Something of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<PageValue>,
    /// A parameter of the page's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// A part of the path of the page's URL, from 1; from the end, where negative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<i32>,
    /// A header of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// This very value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ScalarConfig>,
    /// A list of objects, one for each of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Box<FieldConfig>>,
    /// The members of an object.
    #[serde(default, skip_serializing_if = "FieldMap::is_empty")]
    pub field: FieldMap,
    /// All matches, as a list; else the first alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all: bool,
    /// All matches, as one text with this between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<String>,
    /// Whether there is a match: true or false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exists: bool,
    /// What is done to each match, in this order.
    #[serde(
        default,
        deserialize_with = "written_steps",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub clean: Vec<StepConfig>,
    /// The value where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<ScalarConfig>,
    /// Whether a record without it is rejected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether it may be without a value in every record: then nobody is warned. It changes no row, so it is no part of
    /// what names the rules.
    #[serde(default, skip_serializing)]
    pub may_be_empty: bool,
}

fn is_false(b: &bool) -> bool {
    !*b
}

/// What a capture says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageValue {
    /// Its URL.
    Url,
    /// Its HTTP status.
    Status,
    /// When it was fetched, RFC 3339 in UTC.
    FetchedAt,
    /// The stage of its request.
    Stage,
    /// The text of its body.
    Body,
}

/// A text, a whole number, true or false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ScalarConfig {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
}

/// What is done to a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepConfig {
    /// White space at both ends goes.
    Trim,
    /// Each run of white space becomes one blank; at the ends it goes.
    Collapse,
    /// The address in full, relative to the page.
    Url,
    /// A whole number.
    Int(NumberMarks),
    /// A decimal number, as text with a point.
    Decimal(NumberMarks),
    /// Every occurrence of the first text becomes the second.
    Replace([String; 2]),
    /// The first match: its group `value`, else its first group, else all of it.
    Regex(String),
    /// This text with the value in the place of each `{}`.
    Format(String),
    /// A list of the parts between.
    Split(String),
    /// The value that stands for the word.
    Map(ScalarMap),
    /// What a JSONPath finds in a JSON text.
    Json(String),
    /// A day: strptime formats, tried in order.
    Date(Texts),
    /// An instant.
    Timestamp(TimestampConfig),
}

/// How numbers are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NumberMarks {
    /// Between groups of three digits; absent = there are no groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// Before the fraction; absent = a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
}

/// How instants are written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TimestampConfig {
    /// strptime formats, tried in order.
    pub format: Texts,
    /// IANA zone of what has no offset of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// One text or several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Texts(pub Vec<String>);

/// Values by word, in the order they are written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalarMap(pub Vec<(String, ScalarConfig)>);

/// The steps; the first five may stand as a word alone.
const STEPS: [&str; 13] = [
    "trim",
    "collapse",
    "url",
    "int",
    "decimal",
    "replace",
    "regex",
    "format",
    "split",
    "map",
    "json",
    "date",
    "timestamp",
];

impl<'de> Deserialize<'de> for FieldConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Field;
        impl<'de> Visitor<'de> for Field {
            type Value = FieldConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a selector as text, or a table")
            }
            fn visit_str<E>(self, text: &str) -> Result<FieldConfig, E> {
                let mut table = FieldTable::default();
                match text.starts_with('$') {
                    true => table.json = Some(text.to_owned()),
                    false => table.css = Some(text.to_owned()),
                }
                let is_short = true;
                Ok(FieldConfig { is_short, table })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FieldConfig, A::Error> {
                let table = FieldTable::deserialize(MapAccessDeserializer::new(map))?;
                let is_short = false;
                Ok(FieldConfig { is_short, table })
            }
        }
        from.deserialize_any(Field)
    }
}

impl<'de> Deserialize<'de> for FieldMap {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ordered(from, "a table of fields").map(Self)
    }
}

impl Serialize for FieldMap {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize_ordered(&self.0, to)
    }
}

impl<'de> Deserialize<'de> for ScalarMap {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ordered(from, "a table of words and values").map(Self)
    }
}

impl Serialize for ScalarMap {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize_ordered(&self.0, to)
    }
}

/// The members of a table in their order.
pub(super) fn ordered<'de, T, D>(from: D, what: &'static str) -> Result<Vec<(String, T)>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Members<T>(&'static str, std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = Vec<(String, T)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    from.deserialize_map(Members(what, std::marker::PhantomData))
}

pub(super) fn serialize_ordered<T: Serialize, S: Serializer>(
    members: &[(String, T)],
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(members.len()))?;
    for (name, value) in members {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

impl<'de> Deserialize<'de> for ScalarConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            type Value = ScalarConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a whole number, true or false")
            }
            fn visit_bool<E>(self, value: bool) -> Result<ScalarConfig, E> {
                Ok(ScalarConfig::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<ScalarConfig, E> {
                Ok(ScalarConfig::Int(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<ScalarConfig, E> {
                Ok(ScalarConfig::Text(value.to_owned()))
            }
        }
        from.deserialize_any(Scalar)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Some;
        impl<'de> Visitor<'de> for Some {
            type Value = Texts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Option::Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        from.deserialize_any(Some)
    }
}

/// A step of `clean` as it is written: a word, or a table with one key.
struct WrittenStep(StepConfig);

fn written_steps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<StepConfig>, D::Error> {
    let steps = Vec::<WrittenStep>::deserialize(from)?;
    Ok(steps.into_iter().map(|step| step.0).collect())
}

impl<'de> Deserialize<'de> for WrittenStep {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Step;
        impl<'de> Visitor<'de> for Step {
            type Value = WrittenStep;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step such as \"trim\" or { regex = \"...\" }")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<WrittenStep, E> {
                let marks = NumberMarks::default();
                Ok(WrittenStep(match word {
                    "trim" => StepConfig::Trim,
                    "collapse" => StepConfig::Collapse,
                    "url" => StepConfig::Url,
                    "int" => StepConfig::Int(marks),
                    "decimal" => StepConfig::Decimal(marks),
                    _ if STEPS.contains(&word) => {
                        let what =
                            format!("the step `{word}` needs to be told more: {{ {word} = ... }}");
                        return Err(E::custom(what));
                    }
                    _ => return Err(E::unknown_variant(word, &STEPS)),
                }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenStep, A::Error> {
                StepConfig::deserialize(MapAccessDeserializer::new(map)).map(WrittenStep)
            }
        }
        from.deserialize_any(Step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_steps_are_read_in_order_and_both_ways() {
        let text = r#"
            [[page]]
            stage = "detail"
            [[page.item]]
            key = ["id"]
            [page.item.field]
            zulu = "h1::text"
            id = "$.id"
            price = { css = "p::text", clean = ["trim", { decimal = { thousands = "," } }, "int"] }
            when = { page = "fetched_at", clean = [{ date = ["%d.%m.%Y", "%Y-%m-%d"] }] }
            kind = { css = "b::text", clean = [{ map = { two = 2, one = "1", no = false } }] }
        "#;
        let config: ParseConfig = crate::config::parse_toml(text, "source.toml").unwrap();
        let fields = &config.page[0].item[0].field.0;
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["zulu", "id", "price", "when", "kind"]);
        assert_eq!(fields[0].1.table.css.as_deref(), Some("h1::text"));
        assert_eq!(fields[1].1.table.json.as_deref(), Some("$.id"));
        let marks = NumberMarks {
            thousands: Some(','),
            decimal: None,
        };
        assert_eq!(
            fields[2].1.table.clean,
            [
                StepConfig::Trim,
                StepConfig::Decimal(marks),
                StepConfig::Int(NumberMarks::default())
            ]
        );
        let StepConfig::Map(words) = &fields[4].1.table.clean[0] else {
            panic!("not a map");
        };
        assert_eq!(words.0[0], ("two".to_owned(), ScalarConfig::Int(2)));
        let json = serde_json::to_string(&config).unwrap();
        assert!(json.find("zulu") < json.find("price"), "{json}");
    }

    #[test]
    fn what_is_unknown_is_named_with_what_is_meant() {
        for (field, key, hint) in [
            (
                "{ ccs = \"a::text\" }",
                "page[1].item[1].field.a.ccs",
                "did you mean `css`?",
            ),
            (
                "{ css = \"a\", clean = [\"trimm\"] }",
                "page[1].item[1].field.a.clean",
                "did you mean `trim`?",
            ),
            (
                "{ css = \"a\", clean = [{ regexp = \"a\" }] }",
                "page[1].item[1].field.a.clean",
                "did you mean `regex`?",
            ),
            (
                "{ page = \"uri\" }",
                "page[1].item[1].field.a.page",
                "did you mean `url`?",
            ),
        ] {
            let text = format!("[[page]]\n[[page.item]]\n[page.item.field]\na = {field}\n");
            let e = crate::config::parse_toml::<ParseConfig>(&text, "source.toml").unwrap_err();
            assert!(e.message().contains(key), "{e}");
            assert!(e.to_string().contains("line `4`"), "{e}");
            assert_eq!(e.hints(), [hint], "{e}");
        }
    }
}
