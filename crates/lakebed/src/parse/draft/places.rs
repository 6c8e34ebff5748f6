//! Where a value stands, and the field that takes it from there: on pages that are made in different ways, from several
//! places.

use regex::Regex;
use scraper::ElementRef;

use crate::config::{FieldTable, StepConfig};
use crate::parse::draft::build::Builder;
use crate::parse::draft::seen::{Seen, collapsed, text_in};

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// A selector that finds the element.
    pub(super) css: String,
    /// What takes the value out of its text; `None` = all of it is the value.
    pub(super) cut: Option<Cut>,
}

/// Takes a value out of a text that has its label, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// A regular expression of what stands before it.
    pub(super) lead: String,
    pub(super) end: End,
    /// The texts within are lines of their own, with a blank between them.
    pub(super) has_lines: bool,
}

/// Where a value ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// With the text.
    Text,
    /// With its first word; what follows is another pair.
    Word,
    /// Before the next label with a colon, else with the text.
    Label,
    /// With its first number: money, behind which more may be said.
    Number,
    /// Before one of these labels, which have no colon, else with the text.
    Before(String),
}

impl End {
    /// The regular expression of the value and what ends it.
    fn regex(&self) -> String {
        match self {
            Self::Text => "(.+)".to_owned(),
            Self::Word => r"(\S+)".to_owned(),
            Self::Number => FIRST_NUMBER.to_owned(),
            Self::Label => format!(r"(.+?)(?:{NEXT_LABEL}|$)"),
            Self::Before(labels) => format!(r"(.+?)(?:\s+(?:{labels})|$)"),
        }
    }
}

/// Up to the first number, which is not the beginning of a range.
const FIRST_NUMBER: &str = r"(\D*\d[\d.,]*)(?:[^-~～至\d]|$)";
/// A label with a colon behind another pair.
pub(super) const NEXT_LABEL: &str = r"\s(?:\p{L}{2,12}|\p{Han}\s\p{Han})\s?[:：]";

impl Place {
    /// An element that is the value.
    pub(super) fn whole(css: &str) -> Self {
        Self {
            css: css.to_owned(),
            cut: None,
        }
    }
}

/// Whether no page has both, or both are one element there, and one expression takes the value out of either.
fn is_joinable(pages: &[Seen<'_>], one: &[Place], other: &Place) -> bool {
    let all = [one, std::slice::from_ref(other)].concat();
    let css = listed(&all, "");
    cut_of(&all).is_some() && pages.iter().all(|page| page.select(&css).len() <= 1)
}

/// The regular expression for the texts of all these places, `None` within where the texts are the values; `None` where
/// no one expression fits all.
fn cut_of(places: &[Place]) -> Option<Option<String>> {
    let first = &places.first()?.cut;
    let is_one = places.iter().all(|place| place.cut == *first);
    let mut cuts = places.iter().filter_map(|place| place.cut.as_ref());
    let ends_with_text = cuts.all(|cut| cut.end == End::Text);
    let mut leads: Vec<&str> = Vec::new();
    for cut in places.iter().filter_map(|place| place.cut.as_ref()) {
        if matches!(cut.end, End::Before(_)) && !is_one {
            return None;
        }
        if !leads.contains(&cut.lead.as_str()) {
            leads.push(&cut.lead);
        }
    }
    let is_number = |place: &Place| place.cut.as_ref().is_some_and(|c| c.end == End::Number);
    let end = match places.iter().any(is_number) {
        true => End::Number,
        false if ends_with_text => End::Text,
        false => End::Label,
    };
    let (all, end) = (leads.join("|"), end.regex());
    Some(match first {
        Some(Cut { lead, end, .. }) if is_one => Some(format!("{lead}{}", end.regex())),
        _ if leads.is_empty() => None,
        // Where one is the value alone, there is no label in front of it.
        _ if places.iter().any(|place| place.cut.is_none()) => {
            Some(format!("^(?:.*?(?:{all}))?{end}"))
        }
        _ => Some(format!("(?:{all}){end}")),
    })
}

/// The selectors as one, each with what it takes.
fn listed(places: &[Place], take: &str) -> String {
    let each: Vec<String> = places
        .iter()
        .map(|place| format!("{}{take}", place.css))
        .collect();
    each.join(", ")
}

/// A field of what stands in a place: a text, or a list where there are several within. Where a field that is called alike
/// is on none of the pages that have this one, or is the same element there, both are one field.
pub(super) fn value(pages: &[Seen<'_>], builder: &mut Builder<'_>, name: &str, place: Place) {
    let places = &builder.joined(name, place, |one, other| is_joinable(pages, one, other));
    let css = &listed(places, "");
    builder.take(css);
    if let Some(regex) = cut_of(places).flatten() {
        let found = Regex::new(&regex);
        let has_lines = |place: &Place| place.cut.as_ref().is_some_and(|cut| cut.has_lines);
        let join = if places.iter().any(has_lines) {
            " "
        } else {
            ""
        };
        let whole = listed(places, " ::text");
        let cut = |page: &Seen<'_>| {
            let text = collapsed(&page.texts(&whole).join(join));
            let found = found.as_ref().ok()?.captures(&text)?;
            Some(found.get(1)?.as_str().to_owned())
        };
        let texts: Vec<String> = pages.iter().map(|p| cut(p).unwrap_or_default()).collect();
        let table = FieldTable {
            css: Some(whole),
            join: Some(join.to_owned()),
            clean: vec![StepConfig::Collapse, StepConfig::Regex(regex)],
            ..FieldTable::default()
        };
        return builder.add_from(name, table, &texts, places);
    }
    if let Some(inner) = parts(pages, css).filter(|inner| is_list_everywhere(pages, places, inner))
    {
        let css = listed(places, &format!(" {inner}::text"));
        let texts: Vec<String> = pages
            .iter()
            .map(|page| page.texts(&css).join("\n"))
            .collect();
        let table = FieldTable {
            css: Some(css),
            all: true,
            ..FieldTable::default()
        };
        return builder.put_from(name, table, &texts, places);
    }
    let table = text_table(pages, places);
    // As it is written: white space around it is to go.
    let raw = |page: &Seen<'_>| {
        let texts = page.texts(table.css.as_deref().unwrap_or_default());
        match table.join {
            Some(_) => texts.join(table.join.as_deref().unwrap_or_default()),
            None => texts.into_iter().next().unwrap_or_default(),
        }
    };
    let texts: Vec<String> = pages.iter().map(raw).collect();
    builder.add_from(name, table, &texts, places);
}

/// The text of the first match: right inside, where it all stands there.
pub(super) fn text_table(pages: &[Seen<'_>], places: &[Place]) -> FieldTable {
    let css = &listed(places, "");
    let direct = listed(places, "::text");
    let is_direct = |page: &Seen<'_>| {
        let Some(first) = page.select(css).first().copied() else {
            return true;
        };
        let mut texts = first.children().filter_map(|node| node.value().as_text());
        texts
            .next()
            .is_some_and(|text| collapsed(text) == text_in(first))
            || text_in(first).is_empty()
    };
    // Words of two paragraphs are not one.
    let is_block = |e: ElementRef<'_>| matches!(e.value().name(), "p" | "div" | "li" | "br" | "tr");
    let has_blocks = |page: &Seen<'_>| {
        let first = page.select(css).first().copied();
        first.is_some_and(|first| first.descendent_elements().skip(1).any(is_block))
    };
    let join = if pages.iter().any(has_blocks) {
        " "
    } else {
        ""
    };
    match pages.iter().all(is_direct) {
        true => FieldTable {
            css: Some(direct),
            ..FieldTable::default()
        },
        false => FieldTable {
            css: Some(listed(places, " ::text")),
            join: Some(join.to_owned()),
            ..FieldTable::default()
        },
    }
}

/// The tag of the parts of a value that is a list: several elements of one kind, and no words between them.
fn parts(pages: &[Seen<'_>], css: &str) -> Option<&'static str> {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let mut values = pages
        .iter()
        .filter_map(|page| page.select(css).first().copied());
    values.find_map(|value| {
        ["a", "span", "li", "i"].into_iter().find(|tag| {
            let inner: Vec<String> = value
                .descendent_elements()
                .filter(|e| e.value().name() == *tag)
                .map(text_in)
                .collect();
            let told: usize = inner.iter().map(|text| letters(text)).sum();
            inner.len() >= 2 && told > 0 && told == letters(&text_in(value))
        })
    })
}

/// Of several places each must have parts: what stands bare in one would be lost.
fn is_list_everywhere(pages: &[Seen<'_>], places: &[Place], inner: &str) -> bool {
    let (css, parts) = (
        listed(places, ""),
        listed(places, &format!(" {inner}::text")),
    );
    let has_parts =
        |page: &Seen<'_>| page.select(&css).is_empty() || !page.texts(&parts).is_empty();
    places.len() == 1 || pages.iter().all(has_parts)
}

/// A field of an attribute of the first match; addresses in full.
pub(super) fn attribute_of(
    pages: &[Seen<'_>],
    builder: &mut Builder<'_>,
    (name, css): (&str, &str),
    attribute: &str,
) {
    builder.take(css);
    let css = format!("{css}::attr({attribute})");
    let first = |page: &Seen<'_>| page.texts(&css).into_iter().next().unwrap_or_default();
    let texts: Vec<String> = pages.iter().map(first).collect();
    let table = FieldTable {
        css: Some(css),
        ..FieldTable::default()
    };
    match matches!(attribute, "src" | "href" | "data-src") {
        true => {
            let table = FieldTable {
                clean: vec![StepConfig::Url],
                ..table
            };
            builder.put(name, table, &texts);
        }
        false => builder.add(name, table, &texts),
    }
}
