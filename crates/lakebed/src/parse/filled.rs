//! Which fields of records have a value at all: one that never has is what a selector that does not fit looks like.
//!
//! Records alone are counted, so of what no rule sets and of datasets without a record nothing is said. A field whose
//! rule says `may_be_empty = true` may be without a value for ever.

use serde::Serialize;

use crate::config::{FieldConfig, FieldMap, FieldTable, SourceConfig};
use crate::name::DatasetName;
use crate::spec::Datum;

/// The members that say where a record comes from.
const ORIGIN: [&str; 3] = ["_raw", "_key", "_fetched_at"];

/// Counts values of records, field by field.
#[derive(Debug, Default)]
pub struct Filled {
    datasets: Vec<(DatasetName, Vec<Node>)>,
}

/// A field, and how often it had a value.
#[derive(Debug)]
struct Node {
    name: String,
    places: u64,
    values: u64,
    is_list: bool,
    /// The fields of its object, or of the objects of its list.
    inner: Vec<Node>,
}

/// A field that had no value in any record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmptyField {
    /// The dataset of the records.
    pub dataset: DatasetName,
    /// Its path, such as `reviews.stars`.
    pub field: String,
    /// How often it should have had one: records, or objects within them.
    pub places: u64,
    /// Whether it is a list: then it was empty, not null.
    pub is_list: bool,
    /// What its rule looks for, as it is written; absent where a program gives the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether a rule gives it, not a program.
    #[serde(skip)]
    pub has_rule: bool,
    /// The line of that rule in its file, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl Filled {
    /// Counts a record.
    pub fn add(&mut self, dataset: &DatasetName, record: &Datum) {
        let Datum::Object(members) = record else {
            return;
        };
        let at = match self.datasets.iter().position(|(name, _)| name == dataset) {
            Some(at) => at,
            None => {
                self.datasets.push((dataset.clone(), Vec::new()));
                self.datasets.len() - 1
            }
        };
        let own = members.iter().filter(|(name, _)| !is_origin(name));
        look_at(own, &mut self.datasets[at].1);
    }

    /// The fields that never had a value, with what their rules say of them; those that may be empty are left out.
    #[must_use]
    pub fn empty(&self, source: &SourceConfig) -> Vec<EmptyField> {
        let mut found = Vec::new();
        for (dataset, nodes) in &self.datasets {
            collect(nodes, "", &mut |path, node| {
                let rules = rules_of(source, dataset, path);
                if rules.iter().any(|rule| rule.may_be_empty) {
                    return;
                }
                found.push(EmptyField {
                    dataset: dataset.clone(),
                    field: path.to_owned(),
                    places: node.places,
                    is_list: node.is_list,
                    has_rule: !rules.is_empty(),
                    rule: rules.iter().find_map(|rule| told(rule)),
                    line: None,
                });
            });
        }
        found
    }
}

fn is_origin(name: &str) -> bool {
    ORIGIN.contains(&name)
}

/// Counts the members; those of one kind of records come in one order, so each is looked for behind the one before.
fn look_at<'a>(members: impl Iterator<Item = &'a (String, Datum)>, nodes: &mut Vec<Node>) {
    let mut next = 0;
    for (name, value) in members {
        let is_next = nodes.get(next).is_some_and(|node| node.name == *name);
        let at = match is_next {
            true => next,
            false => place_of(name, nodes),
        };
        next = at + 1;
        look(value, &mut nodes[at]);
    }
}

fn place_of(name: &str, nodes: &mut Vec<Node>) -> usize {
    if let Some(at) = nodes.iter().position(|node| node.name == name) {
        return at;
    }
    nodes.push(Node {
        name: name.to_owned(),
        places: 0,
        values: 0,
        is_list: false,
        inner: Vec::new(),
    });
    nodes.len() - 1
}

fn look(value: &Datum, node: &mut Node) {
    node.places += 1;
    let items = match value {
        Datum::Null => return,
        Datum::List(items) => {
            node.is_list = true;
            node.values += u64::from(!items.is_empty());
            items.as_slice()
        }
        other => {
            node.values += 1;
            std::slice::from_ref(other)
        }
    };
    for item in items {
        if let Datum::Object(members) = item {
            look_at(members.iter(), &mut node.inner);
        }
    }
}

/// Calls for each field without a value, with its path.
fn collect(nodes: &[Node], above: &str, found: &mut impl FnMut(&str, &Node)) {
    for node in nodes {
        let path = match above {
            "" => node.name.clone(),
            above => format!("{above}.{}", node.name),
        };
        if node.values == 0 {
            found(&path, node);
        }
        collect(&node.inner, &path, found);
    }
}

/// What the rules of a dataset say of a field: of every kind of pages that gives it.
fn rules_of<'a>(
    source: &'a SourceConfig,
    dataset: &DatasetName,
    path: &str,
) -> Vec<&'a FieldTable> {
    let pages = source.parse.iter().flat_map(|parse| &parse.page);
    let items = pages
        .flat_map(|page| &page.item)
        .filter(|item| match &item.dataset {
            Some(own) => own == dataset,
            None => dataset.as_str() == source.name.as_str(),
        });
    let rules = items.filter_map(|item| rule_in(&item.field, path));
    rules.map(|rule| &rule.table).collect()
}

fn rule_in<'a>(fields: &'a FieldMap, path: &str) -> Option<&'a FieldConfig> {
    let (name, below) = match path.split_once('.') {
        Some((name, below)) => (name, Some(below)),
        None => (path, None),
    };
    let (_, rule) = fields.0.iter().find(|(own, _)| own == name)?;
    match below {
        Some(below) => rule_in(&rule.table.field, below),
        None => Some(rule),
    }
}

/// What a rule looks for, as it stands in its file.
fn told(rule: &FieldTable) -> Option<String> {
    let texts = [
        ("css", &rule.css),
        ("json", &rule.json),
        ("json_ld", &rule.json_ld),
        ("microdata", &rule.microdata),
        ("query", &rule.query),
        ("header", &rule.header),
    ];
    let found = texts
        .into_iter()
        .find_map(|(key, text)| Some((key, text.as_ref()?)));
    match (found, rule.path, &rule.each) {
        (Some((key, text)), ..) => Some(format!("{key} = \"{text}\"")),
        (None, Some(path), _) => Some(format!("path = {path}")),
        (None, None, Some(each)) => told(&each.table),
        (None, None, None) => None,
    }
}

impl EmptyField {
    /// Finds the line of its rule in the text of its file: the one that has what the rule looks for, and, where several
    /// have it, the one that names the field, too. Where none or several are left, it stays unknown.
    pub fn find_line(&mut self, text: &str) {
        let Some(rule) = &self.rule else {
            return;
        };
        let sought = match rule.split_once(" = ") {
            Some(("path", _)) | None => rule.as_str(),
            Some((_, quoted)) => quoted.trim_matches('"'),
        };
        let name = self.field.rsplit('.').next().unwrap_or_default();
        let lines = || {
            let numbered = (1u64..).zip(text.lines());
            numbered
                .filter(|(_, line)| !line.trim_start().starts_with('#') && line.contains(sought))
        };
        let names_it = |line: &str| line.trim_start().trim_start_matches('"').starts_with(name);
        let one = |mut found: Vec<u64>| match found.len() {
            1 => found.pop(),
            _ => None,
        };
        let all = lines().map(|(n, _)| n).collect();
        let named = lines()
            .filter(|(_, line)| names_it(line))
            .map(|(n, _)| n)
            .collect();
        self.line = one(all).or_else(|| one(named));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"class = "log"
[[parse.page]]
[[parse.page.item]]
[parse.page.item.field]
id    = { path = -1 }
price = { css = ".prize::text" }
cost  = ".prize::text"
old   = { css = ".was::text", may_be_empty = true }
tags  = { css = ".tag::text", all = true }
shops = { each = "tr", field = { name = "td.n::text", city = { json = "$.city", may_be_empty = true } } }
"#;

    fn datum(value: serde_json::Value) -> Datum {
        match value {
            serde_json::Value::Null => Datum::Null,
            serde_json::Value::Array(items) => Datum::List(items.into_iter().map(datum).collect()),
            serde_json::Value::Object(members) => {
                let members = members
                    .into_iter()
                    .map(|(name, value)| (name, datum(value)));
                Datum::Object(members.collect())
            }
            other => Datum::Text(other.to_string()),
        }
    }

    fn object(text: &str) -> Datum {
        datum(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn fields_without_a_value_are_named_with_their_rules() {
        let name = "shop".parse().unwrap();
        let source = SourceConfig::parse(&name, SOURCE, "source.toml").unwrap();
        let dataset: DatasetName = "shop".parse().unwrap();
        let mut filled = Filled::default();
        assert!(filled.empty(&source).is_empty());
        for text in [
            r#"{"id": "1", "price": null, "cost": 0, "old": null, "tags": [], "shops": [{"name": null, "city": null}], "_key": null}"#,
            r#"{"id": "2", "price": null, "cost": null, "old": null, "tags": [], "shops": [], "_key": null}"#,
        ] {
            filled.add(&dataset, &object(text));
        }
        let mut empty = filled.empty(&source);
        empty.sort_by(|a, b| a.field.cmp(&b.field));
        empty.iter_mut().for_each(|field| field.find_line(SOURCE));
        let told: Vec<_> = empty
            .iter()
            .map(|f| {
                (
                    f.field.as_str(),
                    f.places,
                    f.is_list,
                    f.rule.as_deref(),
                    f.line,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("price", 2, false, Some("css = \".prize::text\""), Some(6)),
                (
                    "shops.name",
                    1,
                    false,
                    Some("css = \"td.n::text\""),
                    Some(10)
                ),
                ("tags", 2, true, Some("css = \".tag::text\""), Some(9)),
            ]
        );
        // One value is enough, and what no rule knows has none to name.
        filled.add(
            &dataset,
            &object(r#"{"id": "3", "price": "1", "more": null, "tags": ["a"]}"#),
        );
        let mut empty = filled.empty(&source);
        empty.sort_by(|a, b| a.field.cmp(&b.field));
        let told: Vec<_> = empty
            .iter()
            .map(|f| (f.field.as_str(), f.rule.is_some()))
            .collect();
        assert_eq!(told, [("more", false), ("shops.name", true)]);
    }
}
