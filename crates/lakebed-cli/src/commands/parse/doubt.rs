//! What makes one doubt a fixture that gives what is expected: that it gives rejects alone, or that a field has no value
//! in any record. Neither is a difference; both are what an invented page, or a selector that does not fit, looks like.

use lakebed::spec::Datum;

use crate::commands::parse::{Ruled, TestedPage};
use crate::table::count;

/// The members that say where a record comes from.
const ORIGIN: [&str; 3] = ["_raw", "_key", "_fetched_at"];

/// A line for each page of a kind with records that gives rejects and no record.
pub(crate) fn only_rejects(ruled: &Ruled, pages: &[TestedPage]) -> Vec<String> {
    let parsed = |page: &TestedPage| {
        let parsed = page.parsed.as_ref()?;
        let kind = parsed.page.as_deref().unwrap_or_default();
        let is_barren = parsed.records.is_empty() && !parsed.rejects.is_empty();
        let is_doubtful = is_barren && !ruled.rules.datasets_of(kind).is_empty();
        is_doubtful.then(|| {
            let rejects = count(parsed.rejects.len() as u64, "reject");
            format!(
                "{}: {rejects} and no record: is it a page of this site?",
                page.name
            )
        })
    };
    pages.iter().filter_map(parsed).collect()
}

/// A line for each field of the rules that has no value in any record of any page.
pub(crate) fn never_there(pages: &[TestedPage]) -> Vec<String> {
    let parsed = pages.iter().filter_map(|p| p.parsed.as_ref());
    let mut fields: Vec<Seen> = Vec::new();
    for record in parsed.flat_map(|p| &p.records) {
        if let Datum::Object(members) = &record.record {
            for (name, value) in members {
                if !ORIGIN.contains(&name.as_str()) {
                    look(record.dataset.as_str(), name, value, &mut fields);
                }
            }
        }
    }
    let empty = fields.iter().filter(|f| f.values == 0);
    let datasets = fields.iter().map(|f| &f.dataset);
    let is_one = datasets.clone().all(|d| Some(d) == datasets.clone().next());
    empty.map(|f| f.told(is_one)).collect()
}

/// A field, and how often it was there.
struct Seen {
    dataset: String,
    path: String,
    places: u64,
    /// Places with a value.
    values: u64,
    is_list: bool,
}

impl Seen {
    fn told(&self, is_one: bool) -> String {
        let name = match is_one {
            true => self.path.clone(),
            false => format!("{} of {}", self.path, self.dataset),
        };
        let what = if self.is_list { "empty" } else { "null" };
        let noun = if self.path.contains('.') {
            "place"
        } else {
            "record"
        };
        let places = match self.places {
            1 => format!("the one {noun}"),
            _ => format!("all {}", count(self.places, noun)),
        };
        format!(
            "{name}: {what} in {places} of the fixtures: does its selector fit? (`table > tr` needs `tbody`: \"table > tbody > tr\")"
        )
    }
}

fn look(dataset: &str, path: &str, value: &Datum, fields: &mut Vec<Seen>) {
    let known = fields.iter_mut();
    let mut known = known.filter(|f| f.dataset == dataset && f.path == path);
    let is_value = !matches!(value, Datum::Null) && *value != Datum::List(Vec::new());
    let is_list = matches!(value, Datum::List(_));
    match known.next() {
        Some(field) => {
            field.places += 1;
            field.values += u64::from(is_value);
            field.is_list |= is_list;
        }
        None => fields.push(Seen {
            dataset: dataset.to_owned(),
            path: path.to_owned(),
            places: 1,
            values: u64::from(is_value),
            is_list,
        }),
    }
    let objects = match value {
        Datum::List(items) => items.as_slice(),
        Datum::Object(_) => std::slice::from_ref(value),
        _ => &[],
    };
    for object in objects {
        if let Datum::Object(members) = object {
            for (name, value) in members {
                look(dataset, &format!("{path}.{name}"), value, fields);
            }
        }
    }
}
