//! Tables with a head: each further row is an object.

use scraper::ElementRef;

use crate::config::{FieldConfig, FieldMap, FieldTable};
use crate::parse::draft::build::Builder;
use crate::parse::draft::forms;
use crate::parse::draft::names;
use crate::parse::draft::seen::{Seen, classes, text_in};

/// Columns of a table of which each row is an object.
const MAX_COLUMNS: usize = 12;

pub(super) fn find(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let tables = pages
        .iter()
        .flat_map(|page| page.own_content().into_iter().map(move |e| (page, e)));
    let tables: Vec<(&Seen<'_>, ElementRef<'_>)> = tables
        .filter(|(_, e)| e.value().name() == "table")
        .collect();
    let mut done: Vec<String> = Vec::new();
    for (page, table) in tables {
        if let Some(css) = page.selector(&[table])
            && !done.contains(&css)
            && rows(pages, builder, table, &css)
        {
            done.push(css);
        }
    }
}

/// A table whose first row is its head: each further row is an object.
fn rows(pages: &[Seen<'_>], builder: &mut Builder<'_>, table: ElementRef<'_>, css: &str) -> bool {
    let all = table
        .descendent_elements()
        .filter(|e| e.value().name() == "tr");
    let all: Vec<ElementRef<'_>> = all.collect();
    let Some((head, body)) = all.split_first() else {
        return false;
    };
    let heads: Vec<ElementRef<'_>> = head.child_elements().collect();
    let is_head = heads.len() >= 2
        && heads.len() <= MAX_COLUMNS
        && heads.iter().all(|h| h.value().name() == "th");
    let fits = |row: &ElementRef<'_>| row.child_elements().count() == heads.len();
    if !is_head || body.is_empty() || !body.iter().all(fits) {
        return false;
    }
    let in_head = head
        .parent()
        .and_then(ElementRef::wrap)
        .is_some_and(|p| p.value().name() == "thead");
    let each = match in_head {
        true => format!("{css} > tbody > tr"),
        false => format!("{css} > tbody > tr:nth-of-type(n+2)"),
    };
    let field = columns(pages, builder, &heads, &each);
    let name = classes(table)
        .next()
        .and_then(names::of_class)
        .unwrap_or_else(|| "rows".to_owned());
    let texts: Vec<String> = pages
        .iter()
        .map(|page| {
            page.select(&each)
                .into_iter()
                .map(text_in)
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect();
    builder.take(css);
    let each = FieldConfig {
        is_short: true,
        table: FieldTable {
            css: Some(each),
            ..FieldTable::default()
        },
    };
    let table = FieldTable {
        each: Some(Box::new(each)),
        field: FieldMap(field),
        ..FieldTable::default()
    };
    builder.put(&name, table, &texts);
    true
}

/// The members of such an object, one for each column.
fn columns(
    pages: &[Seen<'_>],
    builder: &Builder<'_>,
    heads: &[ElementRef<'_>],
    each: &str,
) -> Vec<(String, FieldConfig)> {
    let column = |(n, head): (usize, &ElementRef<'_>)| {
        let name = names::of_label(&text_in(*head)).unwrap_or_else(|| format!("column_{n}"));
        let cell = format!("td:nth-of-type({n})");
        let cells = format!("{each} > {cell}");
        let texts = pages.iter().flat_map(|page| page.select(&cells));
        let texts: Vec<String> = texts.map(text_in).collect();
        let table = FieldTable {
            css: Some(format!("{cell} ::text")),
            join: Some(String::new()),
            clean: forms::of(&name, &texts, builder.zone()),
            ..FieldTable::default()
        };
        let config = FieldConfig {
            is_short: false,
            table,
        };
        (name, config)
    };
    (1..).zip(heads).map(column).collect()
}
