//! The kind of an item out of the way that leads to it: `Home > Tea > Oolong > this one`.

use std::collections::BTreeSet;

use scraper::ElementRef;

use crate::config::{FieldTable, StepConfig};
use crate::parse::draft::build::Builder;
use crate::parse::draft::seen::{Seen, text_in};

/// The field.
const NAME: &str = "category";
/// Classes and ids of such a way.
const WORDS: [&str; 14] = [
    "breadcrumb",
    "breadcrumbs",
    "bread-crumb",
    "crumb",
    "crumbs",
    "crumb-nav",
    "mbx",
    "ur_here",
    "position",
    "path",
    "place",
    "weizhi",
    "dqwz",
    "location",
];
/// What it begins with.
const BEGINS: [&str; 10] = [
    "当前位置",
    "當前位置",
    "您的位置",
    "你的位置",
    "目前位置",
    "现在位置",
    "現在位置",
    "您现在的位置",
    "所在位置",
    "You are here",
];
/// Characters of a kind, at most.
const MAX_CHARS: usize = 30;

pub(super) fn find(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    if builder.has(NAME) {
        return;
    }
    let ways = pages.iter().flat_map(ways_of);
    let mut known = BTreeSet::new();
    let fresh = ways.filter(|css| known.insert(css.clone()));
    let good = |css: &String| {
        let texts = texts_of(pages, css);
        is_kind(&texts).then(|| (css.clone(), texts))
    };
    let Some((css, texts)) = fresh.take(MAX_CHARS).find_map(|css| good(&css)) else {
        return;
    };
    let is_clean = texts.iter().all(|t| t.trim() == t);
    let table = FieldTable {
        css: Some(css),
        clean: match is_clean {
            true => Vec::new(),
            false => vec![StepConfig::Collapse],
        },
        ..FieldTable::default()
    };
    builder.put(NAME, table, &texts);
}

/// What a selector gives, page by page; nothing where it does not give one text.
fn texts_of(pages: &[Seen<'_>], css: &str) -> Vec<String> {
    let one = |page: &Seen<'_>| match &page.texts(css)[..] {
        [one] => one.clone(),
        _ => String::new(),
    };
    pages.iter().map(one).collect()
}

/// Whether these are kinds of items: short, on most pages, and neither the same nor another one everywhere.
fn is_kind(texts: &[String]) -> bool {
    let there: Vec<&str> = texts
        .iter()
        .map(|t| t.trim())
        .filter(|t| !t.is_empty())
        .collect();
    let once: BTreeSet<&str> = there.iter().copied().collect();
    // Most of them in one kind: that is the shop, or the list.
    let is_spread = once.iter().all(|kind| {
        let of_kind = there.iter().filter(|text| *text == kind).count();
        of_kind * 2 <= there.len() || texts.len() < 6
    });
    is_spread
        && there.len() * 5 >= texts.len() * 4
        && there.iter().all(|t| t.chars().count() <= MAX_CHARS)
        && (once.len() > 1 || texts.len() < 3)
        && (once.len() < there.len() || texts.len() < 6)
}

/// Selectors of the last link of each such way that is not the item itself.
fn ways_of(page: &Seen<'_>) -> Vec<String> {
    let titles: Vec<String> = page.select("h1").into_iter().map(text_in).collect();
    let way = |element: &ElementRef<'_>| {
        let links = element.descendent_elements();
        let links = links.filter(|e| e.value().name() == "a");
        let links: Vec<ElementRef<'_>> = links.collect();
        let other =
            |e: &&ElementRef<'_>| !titles.contains(&text_in(**e)) && !text_in(**e).is_empty();
        let last = *links.iter().rev().find(other).filter(|_| links.len() > 1)?;
        last_link(page, *element, last)
    };
    let all = page.select("body *").into_iter();
    all.filter(|e| is_way(*e)).filter_map(|e| way(&e)).collect()
}

/// Whether a text begins such a way: it is no label.
pub(super) fn is_begin(text: &str) -> bool {
    BEGINS.iter().any(|begin| text.starts_with(begin))
}

fn is_way(element: ElementRef<'_>) -> bool {
    let value = element.value();
    let is_word = |name: &str| WORDS.contains(&name.to_ascii_lowercase().as_str());
    let is_named = value.classes().chain(value.id()).any(is_word)
        || value
            .attr("aria-label")
            .is_some_and(|label| label.to_lowercase().starts_with("breadcrumb"));
    let says_so = || {
        let mut texts = element.children().filter_map(|node| node.value().as_text());
        texts.any(|text| is_begin(text.trim()))
    };
    is_named || says_so()
}

/// The link, by its place from the end: among links, or in the last but one part of a list.
fn last_link(page: &Seen<'_>, way: ElementRef<'_>, link: ElementRef<'_>) -> Option<String> {
    let mut step = link;
    loop {
        let parent = step.parent().and_then(ElementRef::wrap)?;
        let tag = step.value().name();
        let twins = parent.child_elements().filter(|e| e.value().name() == tag);
        let twins: Vec<ElementRef<'_>> = twins.collect();
        if twins.len() > 1 {
            let from_end = twins.iter().rev().position(|e| e.id() == step.id())? + 1;
            let base = page.selector(&[parent])?;
            let place = format!("{base} > {tag}:nth-last-of-type({from_end})");
            return Some(match step.id() == link.id() {
                true => format!("{place}::text"),
                false => format!("{place} a ::text"),
            });
        }
        if parent.id() == way.id() {
            return None;
        }
        step = parent;
    }
}
