//! Fixtures for rules that were drafted: enough pages that each field has a value on one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lakebed::Result;
use lakebed::spec::{Datum, ParsedPage};

use crate::commands::parse::draft::KeptPage;
use crate::commands::parse::page::known_page;
use crate::commands::parse::{Ruled, save, test_pages};
use crate::commands::skeleton::is_skeleton_page;
use crate::context::Globals;

/// Fixtures of a kind of pages.
const MAX_OF_KIND: usize = 5;

/// What the fixtures of a kind have.
#[derive(Default)]
struct Covered {
    pages: usize,
    fields: BTreeSet<String>,
}

/// Keeps of each kind the first page, then each time the one that has most fields which no fixture has.
pub(crate) fn cover(pages: &[KeptPage], ruled: &Ruled, globals: &Globals<'_>) -> Result<()> {
    let mut kinds: BTreeMap<String, Covered> = BTreeMap::new();
    let mut urls = BTreeSet::new();
    for tested in test_pages(ruled, false).unwrap_or_default() {
        let path = ruled.fixtures().join(&tested.name);
        let (Some(parsed), false) = (tested.parsed, is_skeleton_page(&path)) else {
            continue;
        };
        urls.extend(known_page(&path)?.map(|page| page.url));
        if let Some(kind) = &parsed.page {
            let covered = kinds.entry(kind.clone()).or_default();
            covered.pages += 1;
            covered.fields.extend(filled_of(&parsed));
        }
    }
    let mut left = Vec::new();
    for kept in pages.iter().filter(|(page, _)| !urls.contains(&page.url)) {
        let parsed = ruled.parse(&kept.0, "page", &kept.1)?;
        let fields = filled_of(&parsed);
        left.extend(parsed.page.map(|kind| (kind, fields, kept)));
    }
    let names: BTreeSet<String> = left.iter().map(|(kind, ..)| kind.clone()).collect();
    for kind in names {
        let covered = kinds.entry(kind.clone()).or_default();
        while covered.pages < MAX_OF_KIND {
            let adds = |fields: &BTreeSet<String>| fields.difference(&covered.fields).count();
            let of_kind = left.iter().filter(|(own, ..)| *own == kind);
            // Of equally good ones the first.
            let best = of_kind.rev().max_by_key(|(_, fields, _)| adds(fields));
            let is_wanted = |fields: &BTreeSet<String>| covered.pages == 0 || adds(fields) > 0;
            let Some((_, fields, (page, body))) = best.filter(|(_, f, _)| is_wanted(f)) else {
                break;
            };
            save(&free_name(&kind, ruled), (page, body), ruled, globals)?;
            covered.pages += 1;
            covered.fields.extend(fields.iter().cloned());
        }
    }
    Ok(())
}

/// The fields that have a value in a record of the page.
fn filled_of(parsed: &ParsedPage) -> BTreeSet<String> {
    let is_filled = |value: &Datum| match value {
        Datum::Null => false,
        Datum::List(values) => !values.is_empty(),
        Datum::Text(_) | Datum::Number(_) | Datum::Bool(_) | Datum::Object(_) => true,
    };
    let mut fields = BTreeSet::new();
    for record in &parsed.records {
        if let Datum::Object(members) = &record.record {
            let filled = members.iter().filter(|(_, value)| is_filled(value));
            fields.extend(filled.map(|(name, _)| name.clone()));
        }
    }
    fields
}

/// The kind's own name, else with a number.
pub(crate) fn free_name(kind: &str, ruled: &Ruled) -> String {
    let folder: PathBuf = ruled.folder().join("fixtures");
    let kind = kind.replace(['/', '\\'], "-");
    let is_taken = |name: &str| {
        let mut paths = ["html", "json"]
            .map(|end| folder.join(format!("{name}.{end}")))
            .into_iter();
        paths.any(|path| path.exists() && !is_skeleton_page(&path))
    };
    let numbered = (2..).map(|n| format!("{kind}-{n}"));
    std::iter::once(kind.clone())
        .chain(numbered)
        .find(|name| !is_taken(name))
        .unwrap_or(kind)
}
