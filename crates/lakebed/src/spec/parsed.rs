//! What the parse rules give for one page: records, follow-ups, expectations, rejects (docs/parse.md).
//!
//! The stages that parse, ingest and crawl meet here. Every type has a JSON form; a row's is one JSON object
//! with its fields in the order of the rules.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::name::{CaptureId, DatasetName, RequestKey, StageName};
use crate::spec::CaptureRecord;

/// A value of a record. Numbers keep the digits that stood on the page: nothing passes through a float.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Datum {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A JSON number, by its text.
    Number(String),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Self>),
    /// Named values in order.
    Object(Vec<(String, Self)>),
}

impl Datum {
    /// Whether there is no value.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The member of that name of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The text as it stands for the value: of a text itself, of a number its digits; none of what is no
    /// scalar.
    #[must_use]
    pub fn scalar_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Bool(true) => Some("true"),
            Self::Bool(false) => Some("false"),
            Self::Null | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Its JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(b) => to.serialize_bool(*b),
            Self::Number(text) => RawValue::from_string(text.clone())
                .map_err(serde::ser::Error::custom)?
                .serialize(to),
            Self::Text(text) => to.serialize_str(text),
            Self::List(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object(members) => {
                let mut map = to.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// A row that a page gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageRecord {
    /// The dataset of the layer `clean` it belongs to.
    pub dataset: DatasetName,
    /// The row: the fields in the order of the rules, then `_raw`, `_key`, `_fetched_at`.
    pub record: Datum,
}

/// A request that a page leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FollowUp {
    /// Its stage.
    pub stage: StageName,
    /// In canonical form.
    pub url: String,
    /// Smaller is sooner; absent = as the stage says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// What comes back with its response; absent for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Datum>,
    /// What it is counted under at the closing; absent where nothing was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// How many requests a page says there must be in a group, over all of its pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageExpectation {
    /// The group.
    pub group: String,
    /// The stage of its requests.
    pub stage: StageName,
    /// As many as the page announces.
    pub expected: u64,
    /// As many must come, where that is fewer: what sites announce is not always true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u64>,
    /// As many as this page links to.
    pub found: u64,
}

/// Why something of a page is no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageFault {
    /// What kind of fault, such as `required` or `no_number` (docs/parse.md has them all).
    pub code: String,
    /// JSON path of the field, such as `$.reviews[2].stars`; `$` = the record or page itself.
    pub path: String,
    /// Why, in one line.
    pub reason: String,
}

/// A record, a link or a whole page that did not pass, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageReject {
    /// The dataset of the record; absent for a link or a whole page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetName>,
    /// Which match of the item's `each` it was, from 0; absent for a whole page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    /// Every fault, in the order of the fields.
    pub faults: Vec<PageFault>,
    /// What could be read of it; null where nothing could.
    pub record: Datum,
}

/// Everything that one page gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParsedPage {
    /// The response.
    pub capture_id: CaptureId,
    /// The request it answers.
    pub request_key: RequestKey,
    /// Where it was found.
    pub url: String,
    /// The rule that took it; null where none did.
    pub page: Option<String>,
    /// The rows; `records + rejects with a dataset == matches of the items`.
    pub records: Vec<PageRecord>,
    /// The requests it leads to, each once.
    pub follow_ups: Vec<FollowUp>,
    /// Links of the rules that are no HTTP address: counted, not followed.
    pub other_links: u64,
    /// What it announces.
    pub expectations: Vec<PageExpectation>,
    /// What did not pass.
    pub rejects: Vec<PageReject>,
}

impl ParsedPage {
    /// A page of which nothing was read yet.
    #[must_use]
    pub fn of(capture: &CaptureRecord) -> Self {
        Self {
            capture_id: capture.capture_id.clone(),
            request_key: capture.request_key.clone(),
            url: capture.url.clone(),
            page: None,
            records: Vec::new(),
            follow_ups: Vec::new(),
            other_links: 0,
            expectations: Vec::new(),
            rejects: Vec::new(),
        }
    }

    /// A page that is rejected as a whole, by no rule in particular.
    #[must_use]
    pub fn rejected(capture: &CaptureRecord, reject: PageReject) -> Self {
        Self {
            page: Some(String::new()),
            rejects: vec![reject],
            ..Self::of(capture)
        }
    }

    /// Rejects that may have cost a link: of links, of totals, and of the page as a whole.
    #[must_use]
    pub fn lost_links(&self) -> u64 {
        let lost = self.rejects.iter().filter(|r| r.dataset.is_none());
        lost.count() as u64
    }

    /// Whether the page as a whole was rejected: nothing came of it.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        let is_whole = |r: &PageReject| r.dataset.is_none() && r.item.is_none();
        let is_empty = self.records.is_empty() && self.follow_ups.is_empty();
        is_empty && self.rejects.iter().any(is_whole)
    }
}
