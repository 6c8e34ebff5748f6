//! What makes one doubt rules that give what is expected: that a page gives rejects alone, or that a field has no value
//! in any record. Neither is a difference; both are what an invented page, or a selector that does not fit, looks like.

use std::fs;

use lakebed::parse::{EmptyField, Filled};

use crate::commands::parse::{Ruled, TestedPage};
use crate::table::count;

/// What to do where a field may be without a value.
pub(crate) const MAY_BE_EMPTY: &str = "where a field need not be there, say so in its rule: `may_be_empty = true` (a program leaves it out); else keep a page that has it (`--save`), or mend its selector";

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

/// A line for each field of the rules that has no value in any record of any page, and may not be so.
pub(crate) fn never_there(ruled: &Ruled, pages: &[TestedPage]) -> Vec<String> {
    let parsed = pages.iter().filter_map(|p| p.parsed.as_ref());
    let mut filled = Filled::default();
    for record in parsed.flat_map(|p| &p.records) {
        filled.add(&record.dataset, &record.record);
    }
    let mut empty = filled.empty(&ruled.source);
    find_lines(ruled, &mut empty);
    let datasets = empty.iter().map(|f| &f.dataset);
    let is_one = datasets.clone().all(|d| Some(d) == datasets.clone().next());
    let told = empty.iter().map(|field| {
        let name = match is_one {
            true => field.field.clone(),
            false => format!("{} of {}", field.field, field.dataset),
        };
        told(&name, field, "of the fixtures", ruled)
    });
    told.collect()
}

/// A line for each field without a value in any record that a date gave.
pub(super) fn never_parsed(ruled: &Ruled, empty: &[EmptyField]) -> Vec<String> {
    let told = empty.iter().map(|field| {
        let name = format!("{} of clean/{}", field.field, field.dataset);
        let told = told(&name, field, "that came of its pages", ruled);
        let way = match field.has_rule {
            true => "its rule says so: `may_be_empty = true`",
            false => "it is left out of the record",
        };
        format!("{told}; where it need not be there, {way}")
    });
    told.collect()
}

/// Looks up where the rules of the fields stand.
pub(super) fn find_lines(ruled: &Ruled, empty: &mut [EmptyField]) {
    if empty.is_empty() {
        return;
    }
    // Where it cannot be read, no line is told.
    let text = fs::read_to_string(&ruled.file).unwrap_or_default();
    empty.iter_mut().for_each(|field| field.find_line(&text));
}

fn told(name: &str, field: &EmptyField, of: &str, ruled: &Ruled) -> String {
    let what = if field.is_list { "empty" } else { "null" };
    let noun = match field.field.contains('.') {
        true => "place",
        false => "record",
    };
    let places = match field.places {
        1 => format!("the one {noun}"),
        _ => format!("all {}", count(field.places, noun)),
    };
    let rule = match (&field.rule, field.line) {
        (Some(rule), Some(line)) => {
            let file = ruled.file.file_name().unwrap_or_default();
            format!(" {rule}, line {line} of {}", file.to_string_lossy())
        }
        (Some(rule), None) => format!(" {rule}"),
        (None, _) => String::new(),
    };
    let rows_of_tables = field.rule.as_ref().is_some_and(|r| r.contains("> tr"));
    let table = match rows_of_tables {
        true => " (`table > tr` needs `tbody`: \"table > tbody > tr\")",
        false => "",
    };
    let doubt = match field.has_rule {
        true => "does its selector fit?",
        false => "does its program find it?",
    };
    format!("{name}: {what} in {places} {of}: {doubt}{rule}{table}")
}
