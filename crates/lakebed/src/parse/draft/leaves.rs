//! Values that nothing but a class names, lists of them, a picture, and the long text.

use std::collections::BTreeSet;

use scraper::ElementRef;

use crate::config::{FieldTable, StepConfig};
use crate::parse::draft::build::Builder;
use crate::parse::draft::forms;
use crate::parse::draft::names;
use crate::parse::draft::places::{Place, attribute_of, text_table, value};
use crate::parse::draft::seen::{Seen, candidates, classes, text_in};

/// Characters of a value that is no description.
const MAX_LEAF_CHARS: usize = 200;
/// Characters of a part of a list.
const MAX_PART_CHARS: usize = 30;
/// Characters of a description, at least.
const MIN_TEXT_CHARS: usize = 40;
/// Words in a class that say what a long text is.
const TEXT_WORDS: [&str; 9] = [
    "desc", "content", "intro", "detail", "story", "text", "summary", "body", "about",
];

/// Classes that say what part of a pair it is, not what is in it.
const NO_NAMES: [&str; 8] = [
    "label", "value", "key", "val", "text", "item", "caption", "tip",
];

pub(super) fn find(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    lists(pages, builder);
    times(pages, builder);
    named(pages, builder);
    picture(pages, builder);
    long_text(pages, builder);
}

/// `ul` and `ol` of short texts. Where its parts have different classes, each class is a list.
fn lists(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut known = BTreeSet::new();
    for (n, page) in pages.iter().enumerate() {
        for list in page.own_content() {
            let parts: Vec<ElementRef<'_>> = list.child_elements().collect();
            let is_list = matches!(list.value().name(), "ul" | "ol") && parts.len() >= 2;
            let is_short =
                |e: &ElementRef<'_>| (1..=MAX_PART_CHARS).contains(&text_in(*e).chars().count());
            // A list of labels with their values is told.
            let is_told = |e: &ElementRef<'_>| {
                let mut inner = e.descendants();
                inner.any(|node| builder.is_taken(n, node.id()))
            };
            let told = parts.iter().filter(|part| is_told(part)).count();
            if !is_list
                || builder.is_taken(n, list.id())
                || told * 2 >= parts.len()
                || !parts.iter().all(is_short)
            {
                continue;
            }
            let Some(css) = page.selector(&[list]) else {
                continue;
            };
            if !known.insert(css.clone()) {
                continue;
            }
            let class = classes(list).next();
            let name = class
                .and_then(names::of_class)
                .unwrap_or_else(|| "list".to_owned());
            let kinds: BTreeSet<Option<&str>> = parts.iter().map(|p| classes(*p).next()).collect();
            builder.take(&css);
            for kind in kinds.iter().filter(|_| kinds.len() <= 3) {
                let (part, name) = match kind {
                    Some(kind) if kinds.len() > 1 => (
                        format!("li.{kind}"),
                        format!("{name}_{}", names::of_class(kind).unwrap_or_default()),
                    ),
                    _ => ("li".to_owned(), name.clone()),
                };
                let is_direct = |p: &ElementRef<'_>| p.child_elements().next().is_none();
                let blank = if parts.iter().all(is_direct) { "" } else { " " };
                list_of(
                    pages,
                    builder,
                    &name,
                    format!("{css} > {part}{blank}::text"),
                );
            }
        }
    }
}

fn list_of(pages: &[Seen<'_>], builder: &mut Builder<'_>, name: &str, css: String) {
    let all: Vec<Vec<String>> = pages.iter().map(|page| page.texts(&css)).collect();
    // What the site shows beside every item: the newest, the dearest.
    if all.len() > 2 && all.iter().all(|texts| Some(texts) == all.first()) {
        return;
    }
    let is_clean = all.iter().flatten().all(|t| t.trim() == t);
    let texts: Vec<String> = all.iter().map(|texts| texts.join("\n")).collect();
    let clean = if is_clean {
        Vec::new()
    } else {
        vec![StepConfig::Collapse]
    };
    let table = FieldTable {
        css: Some(css),
        all: true,
        clean,
        ..FieldTable::default()
    };
    builder.put(name, table, &texts);
}

/// `time` says when for machines.
fn times(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut known = BTreeSet::new();
    for (n, page) in pages.iter().enumerate() {
        for time in page.own_content() {
            let is_time = time.value().name() == "time" && time.value().attr("datetime").is_some();
            if !is_time || builder.is_taken(n, time.id()) {
                continue;
            }
            let Some(css) = page
                .selector(&[time])
                .filter(|css| known.insert(css.clone()))
            else {
                continue;
            };
            let class = classes(time).next().and_then(names::of_class);
            let name = class.unwrap_or_else(|| "time".to_owned());
            attribute_of(pages, builder, (&name, &css), "datetime");
        }
    }
}

/// Elements with a class and nothing but text in them. One that says the same on every page belongs to the site.
fn named(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut known = BTreeSet::new();
    for (n, page) in pages.iter().enumerate() {
        for leaf in page.own_content() {
            let length = text_in(leaf).chars().count();
            let has_inner = leaf
                .descendent_elements()
                .skip(1)
                .any(|e| classes(e).next().is_some() || !is_inline(e));
            let is_leaf = (1..=MAX_LEAF_CHARS).contains(&length) && !has_inner;
            let heading = matches!(
                leaf.value().name(),
                "h1" | "h2" | "h3" | "h4" | "label" | "option" | "figcaption"
            );
            let Some(class) = common_class(pages, leaf).filter(|_| is_leaf && !heading) else {
                continue;
            };
            if builder.is_taken(n, leaf.id()) {
                continue;
            }
            let name = names::of_class(class);
            let Some(name) = name.filter(|name| !NO_NAMES.contains(&name.as_str())) else {
                continue;
            };
            let is_of_class = |css: &String| css.ends_with(&format!(".{class}"));
            let by_class = candidates(leaf).into_iter().filter(is_of_class);
            let mut by_class = by_class.filter(|css| page.select(css).len() == 1);
            let css = by_class.next().or_else(|| page.selector(&[leaf]));
            let Some(css) = css.filter(|css| known.insert(css.clone())) else {
                continue;
            };
            let texts: Vec<String> = pages
                .iter()
                .map(|p| {
                    p.select(&css)
                        .first()
                        .map(|e| text_in(*e))
                        .unwrap_or_default()
                })
                .collect();
            let is_fixed = pages.len() > 1 && texts.iter().all(|t| Some(t) == texts.first());
            // A word that most pages do not have is a remark; a number may be the price before the sale.
            let seen: Vec<&String> = texts.iter().filter(|t| !t.is_empty()).collect();
            let has_digit = |t: &&String| t.chars().any(|c| c.is_ascii_digit());
            let is_short = |t: &&String| t.chars().count() <= MAX_PART_CHARS / 2;
            let is_number = seen.iter().all(|t| has_digit(t) && is_short(t));
            let is_remark = seen.len() * 2 < texts.len() && !is_number;
            if !is_fixed && !is_remark && !is_link_away(leaf) {
                let name = forms::money_name(&name, &seen).unwrap_or(&name);
                value(pages, builder, name, Place::whole(&css));
            }
        }
    }
}

/// Of several classes the one that most pages have: `stock`, not `in-stock`.
fn common_class<'a>(pages: &[Seen<'_>], leaf: ElementRef<'a>) -> Option<&'a str> {
    let all: Vec<&str> = classes(leaf).collect();
    if all.len() < 2 {
        return all.first().copied();
    }
    let tag = leaf.value().name();
    let on_pages = |class: &str| {
        let css = format!("{tag}.{class}");
        pages
            .iter()
            .filter(|page| !page.select(&css).is_empty())
            .count()
    };
    // The first one of those that are on as many.
    let best = all.iter().map(|class| on_pages(class)).max()?;
    all.into_iter().find(|class| on_pages(class) == best)
}

fn is_inline(element: ElementRef<'_>) -> bool {
    matches!(
        element.value().name(),
        "b" | "strong"
            | "i"
            | "em"
            | "small"
            | "sup"
            | "sub"
            | "br"
            | "span"
            | "font"
            | "u"
            | "bdi"
    )
}

/// Whether it is a link to another page: `add to cart`, `next`.
fn is_link_away(element: ElementRef<'_>) -> bool {
    let is_link = |e: ElementRef<'_>| e.value().name() == "a";
    is_link(element) || element.descendent_elements().any(is_link)
}

/// The first picture that is another one on another page.
fn picture(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut tried = BTreeSet::new();
    for page in pages {
        for image in page.own_content() {
            if image.value().name() != "img" {
                continue;
            }
            let lazy = image.value().attr("data-src").is_some();
            let attribute = if lazy { "data-src" } else { "src" };
            let Some(css) = page
                .selector(&[image])
                .filter(|css| tried.insert(css.clone()))
            else {
                continue;
            };
            let found = |page: &Seen<'_>| {
                page.texts(&format!("{css}::attr({attribute})"))
                    .into_iter()
                    .next()
            };
            let found: Vec<String> = pages.iter().filter_map(found).collect();
            let differ: BTreeSet<&String> = found.iter().collect();
            if found.len() == pages.len() && differ.len() == found.len() {
                return attribute_of(pages, builder, ("image", &css), attribute);
            }
        }
    }
}

/// The longest text under a class that is in no field yet.
fn long_text(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut best: Option<(bool, usize, String)> = None;
    for (n, page) in pages.iter().enumerate() {
        for element in page.own_content() {
            let length = text_in(element).chars().count();
            let is_free = |e: ElementRef<'_>| !builder.is_taken(n, e.id());
            let is_plain = |e: ElementRef<'_>| {
                is_inline(e) || matches!(e.value().name(), "p" | "a" | "ul" | "ol" | "li")
            };
            let inner = || element.descendent_elements().skip(1);
            let is_text = matches!(
                element.value().name(),
                "div" | "section" | "article" | "p" | "blockquote"
            );
            if length < MIN_TEXT_CHARS
                || !is_text
                || !is_free(element)
                || !inner().all(|e| is_plain(e) && is_free(e))
            {
                continue;
            }
            let named = element.value().classes().chain(element.value().id());
            let is_named = named
                .map(str::to_ascii_lowercase)
                .any(|c| TEXT_WORDS.iter().any(|w| c.contains(w)));
            let is_better = best
                .as_ref()
                .is_none_or(|(named, long, _)| (is_named, length) > (*named, *long));
            if is_better && let Some(css) = page.selector(&[element]) {
                best = Some((is_named, length, css));
            }
        }
    }
    let Some((_, _, css)) = best else {
        return;
    };
    let texts: Vec<String> = pages
        .iter()
        .map(|p| {
            p.select(&css)
                .first()
                .map(|e| text_in(*e))
                .unwrap_or_default()
        })
        .collect();
    // Pages that are made in another way do not have it.
    let there: Vec<&String> = texts.iter().filter(|text| !text.is_empty()).collect();
    if there.len() > 1 && there.iter().all(|text| Some(text) == there.first()) {
        return;
    }
    let mut table = text_table(pages, &[Place::whole(&css)]);
    table.join = table.join.map(|_| " ".to_owned());
    table.clean = vec![StepConfig::Collapse];
    builder.put("description", table, &texts);
}
