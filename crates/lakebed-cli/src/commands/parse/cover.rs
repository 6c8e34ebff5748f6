//! Fixtures for rules that were drafted: enough pages that each field has a value on one of them, none on another, and
//! where it has words on some pages and numbers on others, both.

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
/// Characters of a text whose words and numbers are told apart; a longer one has both.
const MAX_SHORT_CHARS: usize = 30;

/// What the fixtures of a kind have.
#[derive(Default)]
struct Covered {
    pages: usize,
    features: BTreeSet<Feature>,
}

/// What a page shows of a field.
type Feature = (String, Shown);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Nothing,
    Something,
    /// `sold out`
    Words,
    /// `3 left`
    Numbers,
}

/// Keeps of each kind the first page, then each time the one that shows most of what no fixture shows.
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
            covered.features.extend(features_of(&parsed));
        }
    }
    let mut left = Vec::new();
    for kept in pages.iter().filter(|(page, _)| !urls.contains(&page.url)) {
        let parsed = ruled.parse(&kept.0, "page", &kept.1)?;
        let features = features_of(&parsed);
        left.extend(parsed.page.map(|kind| (kind, features, kept)));
    }
    let names: BTreeSet<String> = left.iter().map(|(kind, ..)| kind.clone()).collect();
    for kind in names {
        let covered = kinds.entry(kind.clone()).or_default();
        while covered.pages < MAX_OF_KIND {
            let adds = |shown: &BTreeSet<Feature>| shown.difference(&covered.features).count();
            let of_kind = left.iter().filter(|(own, ..)| *own == kind);
            // Of equally good ones the first.
            let best = of_kind.rev().max_by_key(|(_, shown, _)| adds(shown));
            let is_wanted = |shown: &BTreeSet<Feature>| covered.pages == 0 || adds(shown) > 0;
            let Some((_, shown, (page, body))) = best.filter(|(_, f, _)| is_wanted(f)) else {
                break;
            };
            save(&free_name(&kind, ruled), (page, body), ruled, globals)?;
            covered.pages += 1;
            covered.features.extend(shown.iter().cloned());
        }
    }
    Ok(())
}

/// What the records of the page show of each field.
fn features_of(parsed: &ParsedPage) -> BTreeSet<Feature> {
    let mut features = BTreeSet::new();
    for record in &parsed.records {
        if let Datum::Object(members) = &record.record {
            let shown = members
                .iter()
                .flat_map(|(name, value)| shown_of(value).map(|shown| (name.clone(), shown)));
            features.extend(shown);
        }
    }
    features
}

fn shown_of(value: &Datum) -> impl Iterator<Item = Shown> {
    let is_filled = match value {
        Datum::Null => false,
        Datum::List(values) => !values.is_empty(),
        Datum::Text(_) | Datum::Number(_) | Datum::Bool(_) | Datum::Object(_) => true,
    };
    let kind = match value {
        Datum::Text(text) if text.chars().count() <= MAX_SHORT_CHARS => {
            let has_digit = text.chars().any(|c| c.is_ascii_digit());
            Some(if has_digit {
                Shown::Numbers
            } else {
                Shown::Words
            })
        }
        _ => None,
    };
    let some = if is_filled {
        Shown::Something
    } else {
        Shown::Nothing
    };
    std::iter::once(some).chain(kind)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_nothing_are_told_apart() {
        let text = |text: &str| Datum::Text(text.to_owned());
        for (value, shown) in [
            (Datum::Null, &[Shown::Nothing][..]),
            (Datum::List(Vec::new()), &[Shown::Nothing]),
            (Datum::List(vec![Datum::Null]), &[Shown::Something]),
            (Datum::Bool(false), &[Shown::Something]),
            (text("已售完"), &[Shown::Something, Shown::Words]),
            (text("庫存 3 件"), &[Shown::Something, Shown::Numbers]),
            (text(&"字".repeat(31)), &[Shown::Something]),
        ] {
            assert_eq!(shown_of(&value).collect::<Vec<_>>(), shown, "{value:?}");
        }
    }
}
