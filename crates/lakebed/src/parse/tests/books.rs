//! Two hundred pages of books: the records of the rules are those that a plain search through the text finds.

use std::path::PathBuf;

use super::*;

pub(super) const RULES: &str = r##"
[[parse.page]]
stage = "detail"

[[parse.page.item]]
each = "article.product_page"
key = ["upc"]

[parse.page.item.field]
title        = { css = "h1::text", required = true }
price        = { css = ".product_main .price_color::text", clean = [{ regex = '^£(.+)$' }, "decimal"], required = true }
availability = { css = ".product_main .availability::text", join = "", clean = [{ regex = '\((\d+) available\)' }, "int"], required = true }
rating       = { css = ".product_main .star-rating::attr(class)", clean = [{ regex = 'star-rating (\w+)' }, { map = { One = 1, Two = 2, Three = 3, Four = 4, Five = 5 } }], required = true }
upc          = { css = "table tr:nth-of-type(1) td::text", required = true }
tax          = { css = "table tr:nth-of-type(5) td::text", clean = [{ replace = ["£", ""] }, "decimal"] }
reviews      = { css = "table tr:nth-of-type(7) td::text", clean = ["int"] }
description  = "#product_description + p::text"
image        = { css = "#product_gallery img::attr(src)", clean = ["url"] }
"##;

fn folder() -> PathBuf {
    let shared = std::env::var_os("LAKEBED_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data/html-books-toscrape");
    assert!(
        folder.is_dir(),
        "the shared data is missing: LAKEBED_SHARED names its folder"
    );
    folder
}

/// What stands between two texts, the first one from `from` on.
fn between<'a>(text: &'a str, from: &str, begin: &str, end: &str) -> Option<&'a str> {
    let text = &text[text.find(from)? + from.len()..];
    let text = &text[text.find(begin)? + begin.len()..];
    Some(&text[..text.find(end)?])
}

fn unescaped(text: &str) -> String {
    text.replace("&#39;", "'")
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The record as text search finds it.
fn searched(text: &str) -> serde_json::Value {
    let cell = |name: &str| between(text, &format!("<th>{name}</th>"), "<td>", "</td>").unwrap();
    let word = between(text, "product_main", "star-rating ", "\"").unwrap();
    let words = ["One", "Two", "Three", "Four", "Five"];
    let stock = between(cell("Availability"), "", "(", " available)").unwrap();
    let image = between(text, "id=\"product_gallery\"", "src=\"../../", "\"").unwrap();
    let about = between(text, "id=\"product_description\"", "<p>", "</p>");
    serde_json::json!({
        "title": unescaped(between(text, "product_main", "<h1>", "</h1>").unwrap()),
        "price": cell("Price \\(excl. tax\\)".replace('\\', "").as_str()).trim_start_matches('£'),
        "availability": stock.parse::<u64>().unwrap(),
        "rating": 1 + words.iter().position(|w| *w == word).unwrap(),
        "upc": cell("UPC"),
        "tax": cell("Tax").trim_start_matches('£'),
        "reviews": cell("Number of reviews").parse::<u64>().unwrap(),
        "description": about.map(unescaped),
        "image": format!("http://books.test/{image}"),
    })
}

#[test]
fn two_hundred_books_are_what_a_search_through_the_text_finds() {
    let rules = rules_of("books", RULES).unwrap();
    let mut ratings = BTreeMap::new();
    let mut count = 0;
    for n in 1..=200 {
        let bytes = std::fs::read(folder().join(format!("{n}.html"))).unwrap();
        let url = format!("http://books.test/catalogue/book_{n}/index.html");
        let capture = capture(&url, "detail", "HTTP/1.1 200 OK\r\n\r\n");
        let run = run("books");
        let page = parse_page(
            &rules,
            &PageInput {
                run: &run,
                capture: &capture,
                body: &bytes,
            },
        );
        assert_eq!((page.records.len(), &page.rejects), (1, &vec![]), "{n}");
        let text = String::from_utf8(bytes).unwrap();
        let mut found: serde_json::Value = serde_json::from_str(&record(&page, 0)).unwrap();
        let members = found.as_object_mut().unwrap();
        let key = members.remove("_key").unwrap();
        assert_eq!(key, members["upc"]);
        members.retain(|name, _| !name.starts_with('_'));
        assert_eq!(found, searched(&text), "{n}");
        *ratings.entry(found["rating"].to_string()).or_insert(0) += 1;
        count += 1;
    }
    assert_eq!(count, 200);
    assert_eq!(ratings.len(), 5, "{ratings:?}");
}
