//! What pages say of themselves for machines: JSON-LD and microdata. Both become JSON objects of one shape:
//! `@type`, then the properties, each a value or, where it stands several times, a list.

use std::collections::HashMap;

use ego_tree::NodeId;
use scraper::{ElementRef, Selector};
use serde_json::{Map, Value};

use crate::parse::budget::{Budget, MAX_ITEM_DEPTH, PageError};
use crate::parse::css::Within;
use crate::parse::json::JsonDoc;

/// The last word of a type: `https://schema.org/Product` is `Product`.
fn type_name(full: &str) -> &str {
    full.trim_end_matches(['/', '#'])
        .rsplit(['/', '#', ':'])
        .next()
        .unwrap_or(full)
}

fn is_type(declared: &Value, wanted: &str) -> bool {
    match declared {
        Value::String(text) => text == wanted || type_name(text) == wanted,
        Value::Array(types) => types.iter().any(|t| is_type(t, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Every JSON-LD text of the page.
pub(super) fn json_ld(page: Within<'_>, budget: &Budget) -> Result<Vec<JsonDoc>, PageError> {
    let Ok(selector) = Selector::parse("script[type='application/ld+json' i]") else {
        return Ok(Vec::new());
    };
    budget.spend(page.nodes)?;
    let mut docs = Vec::new();
    for script in page.element.select(&selector) {
        let text: String = script.text().collect();
        docs.push(JsonDoc::parse(text.trim()).map_err(|e| {
            PageError::new(
                e.code,
                format!("a JSON-LD block cannot be read: {}", e.reason),
            )
        })?);
    }
    Ok(docs)
}

/// Every object of that type in a JSON-LD text, outer ones first.
pub(super) fn of_type<'a>(doc: &'a JsonDoc, wanted: &str) -> Vec<&'a Value> {
    let mut found = Vec::new();
    gather(doc.root(), wanted, &mut found);
    found
}

fn gather<'a>(value: &'a Value, wanted: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|v| gather(v, wanted, found)),
        Value::Object(members) => {
            if members.get("@type").is_some_and(|t| is_type(t, wanted)) {
                found.push(value);
            }
            members.values().for_each(|v| gather(v, wanted, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every microdata item of that type, in document order.
pub(super) fn microdata(
    page: Within<'_>,
    wanted: &str,
    budget: &Budget,
) -> Result<Vec<JsonDoc>, PageError> {
    let reader = Microdata {
        ids: ids(page, budget)?,
        budget,
    };
    let mut docs = Vec::new();
    for element in page.element.descendent_elements() {
        let types = element.value().attr("itemtype").unwrap_or_default();
        let is_wanted = types
            .split_ascii_whitespace()
            .any(|t| t == wanted || type_name(t) == wanted);
        if is_wanted && element.value().attr("itemscope").is_some() {
            docs.push(JsonDoc::of(reader.item(element, 0)?));
        }
    }
    Ok(docs)
}

/// Elements by id: what `itemref` names.
fn ids<'a>(
    page: Within<'a>,
    budget: &Budget,
) -> Result<HashMap<&'a str, ElementRef<'a>>, PageError> {
    budget.spend(page.nodes)?;
    let mut ids = HashMap::new();
    for element in page.dom.root().descendent_elements() {
        if let Some(id) = element.value().attr("id") {
            ids.entry(id).or_insert(element);
        }
    }
    Ok(ids)
}

/// Bytes that a value takes, more or less.
fn bytes_of(value: &Value) -> usize {
    8 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(members) => members.iter().map(|(n, v)| n.len() + bytes_of(v)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

struct Microdata<'a, 'b> {
    ids: HashMap<&'a str, ElementRef<'a>>,
    budget: &'b Budget,
}

impl<'a> Microdata<'a, '_> {
    fn item(&self, item: ElementRef<'a>, depth: u32) -> Result<Value, PageError> {
        if depth > MAX_ITEM_DEPTH {
            let reason = format!("microdata items are nested deeper than {MAX_ITEM_DEPTH}");
            return Err(PageError::new("too_deep", reason));
        }
        let mut object = Map::new();
        let types = item.value().attr("itemtype").unwrap_or_default();
        if let Some(first) = types.split_ascii_whitespace().next() {
            object.insert("@type".to_owned(), type_name(first).into());
        }
        let named = item.value().attr("itemref").unwrap_or_default();
        let others = named
            .split_ascii_whitespace()
            .filter_map(|id| self.ids.get(id));
        for property in self.properties(item, others.copied().collect())? {
            let value = self.value(property, depth)?;
            let names = property.value().attr("itemprop").unwrap_or_default();
            for name in names.split_ascii_whitespace() {
                let name = type_name(name);
                self.budget.keep(bytes_of(&value))?;
                match object.get_mut(name) {
                    None => {
                        object.insert(name.to_owned(), value.clone());
                    }
                    Some(Value::Array(values)) => values.push(value.clone()),
                    Some(first) => *first = Value::Array(vec![first.take(), value.clone()]),
                }
            }
        }
        Ok(Value::Object(object))
    }

    /// The elements with properties of an item, not those of items within it.
    fn properties(
        &self,
        item: ElementRef<'a>,
        others: Vec<ElementRef<'a>>,
    ) -> Result<Vec<ElementRef<'a>>, PageError> {
        let mut found = Vec::new();
        let mut seen: std::collections::HashSet<NodeId> = [item.id()].into();
        let mut stack: Vec<ElementRef<'a>> = others;
        stack.reverse();
        let children: Vec<_> = item.child_elements().collect();
        stack.extend(children.into_iter().rev());
        while let Some(element) = stack.pop() {
            self.budget.spend(1)?;
            if !seen.insert(element.id()) {
                continue;
            }
            if element
                .value()
                .attr("itemprop")
                .is_some_and(|p| !p.trim().is_empty())
            {
                found.push(element);
            }
            if element.value().attr("itemscope").is_none() {
                let children: Vec<_> = element.child_elements().collect();
                stack.extend(children.into_iter().rev());
            }
        }
        Ok(found)
    }

    fn value(&self, element: ElementRef<'a>, depth: u32) -> Result<Value, PageError> {
        if element.value().attr("itemscope").is_some() {
            return self.item(element, depth + 1);
        }
        let attribute = match element.value().name() {
            "meta" => Some("content"),
            "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => Some("src"),
            "a" | "area" | "link" => Some("href"),
            "object" => Some("data"),
            "data" | "meter" => Some("value"),
            "time" => Some("datetime"),
            _ => None,
        };
        let value = attribute.and_then(|a| element.value().attr(a));
        let is_text = attribute.is_none() || element.value().name() == "time";
        let text = match value {
            Some(value) => value.to_owned(),
            None if is_text => element.text().collect(),
            None => String::new(),
        };
        self.budget.keep(text.len())?;
        Ok(Value::String(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::html::Dom;

    const PAGE: &str = r##"<div itemscope itemtype="https://schema.org/Product" itemref="more">
        <h1 itemprop="name">名 A</h1><img itemprop="image" src="/1.jpg"><img itemprop="image" src="/2.jpg">
        <div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><meta itemprop="price" content="1.00"></div>
        <p itemprop="brand" itemscope><b itemprop="name">B</b></p></div>
        <time id="more" itemprop="released">2024</time>
        <script type="application/ld+json">{"@graph":[{"@type":["Thing","https://schema.org/Product"],"sku":1.50,
          "isRelatedTo":{"@type":"Product","sku":2}}]}</script>"##;

    #[test]
    fn both_give_objects_of_one_shape() {
        let dom = Dom::parse(PAGE).unwrap();
        let (page, budget) = (Within::page(&dom), Budget::new());
        let items = microdata(page, "Product", &budget).unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!(
            items[0].root().to_string(),
            r#"{"@type":"Product","name":"名 A","image":["/1.jpg","/2.jpg"],"offers":{"@type":"Offer","price":"1.00"},"brand":{"name":"B"},"released":"2024"}"#
        );
        let docs = json_ld(page, &budget).unwrap();
        let found = of_type(&docs[0], "Product");
        assert_eq!(found.len(), 2);
        let sku = docs[0].datum(&found[0]["sku"], &budget).unwrap();
        assert_eq!(sku.to_json(), "1.50");
    }

    #[test]
    fn items_within_items_end() {
        let dom = Dom::parse(&"<p><div itemprop=a itemscope itemtype=T>".repeat(100)).unwrap();
        let e = microdata(Within::page(&dom), "T", &Budget::new()).unwrap_err();
        assert_eq!(e.code, "too_deep");
        let own = "<div itemscope itemtype=T itemref=x id=x itemprop=a><b itemprop=c>d</b></div>";
        let dom = Dom::parse(own).unwrap();
        let items = microdata(Within::page(&dom), "T", &Budget::new()).unwrap();
        assert_eq!(items[0].root()["c"], "d");
    }
}
