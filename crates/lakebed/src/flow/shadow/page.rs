//! What two implementations gave for one page, item by item.
//!
//! Items are the page itself (which rule took it, and whether it was rejected), each record, each link, each announced
//! total. Records meet by dataset and key, those without a key by their place; the second of two with one key meets the
//! second.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::flow::shadow::item::{Compared, ItemVerdict, shown_key};
use crate::parse::differences;
use crate::spec::{PageRecord, PageReject, ParsedPage};

/// Kind and key of an item, and the how manieth of that kind and key it is.
type ItemKey = (String, String, usize);

/// The items of both pages, compared; `is_ignored` is asked for a dataset and a field of its records.
pub(super) fn compare_pages(
    old: &ParsedPage,
    new: &ParsedPage,
    is_ignored: &dyn Fn(&str, &str) -> bool,
) -> Result<Vec<Compared>> {
    let mut old = items_of(old, is_ignored)?;
    let mut compared = Vec::new();
    for (item, value) in items_of(new, is_ignored)? {
        compared.push(match old.remove(&item) {
            None => one_sided(item, ItemVerdict::OnlyNew, value),
            Some(before) => {
                let differences = differences(&before, &value);
                Compared {
                    verdict: match differences.is_empty() {
                        true => ItemVerdict::Agree,
                        false => ItemVerdict::Changed,
                    },
                    key: shown(&item),
                    kind: item.0,
                    differences,
                }
            }
        });
    }
    let left = old.into_iter();
    compared.extend(left.map(|(item, value)| one_sided(item, ItemVerdict::OnlyOld, value)));
    Ok(compared)
}

fn one_sided(item: ItemKey, verdict: ItemVerdict, value: Value) -> Compared {
    Compared::one_sided((item.0.clone(), shown(&item)), verdict, value)
}

fn items_of(
    page: &ParsedPage,
    is_ignored: &dyn Fn(&str, &str) -> bool,
) -> Result<BTreeMap<ItemKey, Value>> {
    let mut items = Items::default();
    let whole = |r: &&PageReject| r.dataset.is_none() && r.item.is_none();
    let faults: Vec<&str> = page
        .rejects
        .iter()
        .filter(whole)
        .flat_map(|r| &r.faults)
        .map(|f| f.code.as_str())
        .collect();
    // What the kind of a page is called does not matter: whether one took it does.
    items.add(
        "page".to_owned(),
        page.url.clone(),
        json!({ "taken": page.page.is_some(), "rejected": faults }),
    );
    for record in &page.records {
        let mut value = to_value(&record.record)?;
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !is_ignored(record.dataset.as_str(), name));
        }
        items.add(format!("record {}", record.dataset), key_of(record), value);
    }
    for link in &page.follow_ups {
        items.add(
            format!("link {}", link.stage),
            link.url.clone(),
            to_value(link)?,
        );
    }
    for total in &page.expectations {
        items.add(
            "total".to_owned(),
            format!("{} {}", total.stage, total.group),
            to_value(total)?,
        );
    }
    Ok(items.by_key)
}

#[derive(Default)]
struct Items {
    by_key: BTreeMap<ItemKey, Value>,
    seen: BTreeMap<(String, String), usize>,
}

impl Items {
    fn add(&mut self, kind: String, key: String, value: Value) {
        let seen = self.seen.entry((kind.clone(), key.clone())).or_default();
        self.by_key.insert((kind, key, *seen), value);
        *seen += 1;
    }
}

fn to_value<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| Error::internal("write an item as JSON").caused_by(e))
}

/// The key of a record; empty where its rule declares none.
fn key_of(record: &PageRecord) -> String {
    let key = record.record.get("_key").and_then(|key| key.scalar_text());
    key.unwrap_or_default().to_owned()
}

fn shown((_, key, number): &ItemKey) -> String {
    shown_key(key, *number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{CaptureId, RequestKey};
    use crate::spec::{Datum, FollowUp};

    fn record(dataset: &str, key: Option<&str>, price: &str) -> PageRecord {
        let key = key.map_or(Datum::Null, |k| Datum::Text(k.to_owned()));
        let members = [("price", Datum::Number(price.to_owned())), ("_key", key)];
        PageRecord {
            dataset: dataset.parse().unwrap(),
            record: Datum::Object(members.map(|(n, v)| (n.to_owned(), v)).to_vec()),
        }
    }

    fn page(records: Vec<PageRecord>, links: &[&str]) -> ParsedPage {
        ParsedPage {
            capture_id: CaptureId::of(b"a"),
            request_key: RequestKey::of(b"a"),
            url: "http://a.test/".to_owned(),
            page: Some("one".to_owned()),
            records,
            follow_ups: links
                .iter()
                .map(|url| FollowUp {
                    stage: "detail".parse().unwrap(),
                    url: (*url).to_owned(),
                    priority: None,
                    payload: None,
                    group: None,
                })
                .collect(),
            other_links: 0,
            expectations: Vec::new(),
            rejects: Vec::new(),
        }
    }

    fn told(
        old: &ParsedPage,
        new: &ParsedPage,
        ignored: &str,
    ) -> Vec<(String, String, ItemVerdict)> {
        let is_ignored = |dataset: &str, field: &str| format!("{dataset}.{field}") == ignored;
        let compared = compare_pages(old, new, &is_ignored).unwrap();
        let differing = compared
            .into_iter()
            .filter(|c| c.verdict != ItemVerdict::Agree);
        differing.map(|c| (c.kind, c.key, c.verdict)).collect()
    }

    #[test]
    fn items_meet_by_their_keys() {
        let old = page(
            vec![
                record("a", Some("1"), "5"),
                record("a", Some("2"), "6"),
                record("b", None, "7"),
            ],
            &["http://a.test/1"],
        );
        let mut new = page(
            vec![
                record("b", None, "7"),
                record("a", Some("2"), "6"),
                record("a", Some("1"), "5"),
            ],
            &["http://a.test/1"],
        );
        new.page = Some("another name".to_owned());
        assert_eq!(told(&old, &new, ""), []);
        // A value, a record less, a record more, another link.
        let new = page(
            vec![
                record("a", Some("1"), "5.0"),
                record("b", None, "7"),
                record("b", None, "7"),
            ],
            &["http://a.test/2"],
        );
        let named = |kind: &str, key: &str, verdict| (kind.to_owned(), key.to_owned(), verdict);
        assert_eq!(
            told(&old, &new, ""),
            [
                named("link detail", "http://a.test/2", ItemVerdict::OnlyNew),
                named("record a", "1", ItemVerdict::Changed),
                named("record b", "#2", ItemVerdict::OnlyNew),
                named("link detail", "http://a.test/1", ItemVerdict::OnlyOld),
                named("record a", "2", ItemVerdict::OnlyOld),
            ]
        );
        // What is ignored is not compared, and records that are missing are still told.
        assert!(
            !told(&old, &new, "a.price")
                .iter()
                .any(|(_, key, _)| key == "1")
        );
        assert_eq!(told(&old, &new, "a.price").len(), 4);
    }

    #[test]
    fn a_page_that_no_rule_takes_differs() {
        let old = page(Vec::new(), &[]);
        let mut new = old.clone();
        new.page = None;
        assert_eq!(told(&old, &new, "").len(), 1);
    }
}
