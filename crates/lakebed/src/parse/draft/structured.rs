//! What pages tell without a selector: their address, JSON-LD, a body that is JSON. And their title.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::config::{FieldTable, PageValue, StepConfig};
use crate::parse::draft::build::Builder;
use crate::parse::draft::forms;
use crate::parse::draft::names;
use crate::parse::draft::seen::{Body, Seen, collapsed, text_in};
use crate::parse::structured::json_ld;

/// Types of JSON-LD that tell of the site, not of the page's object.
const SITE_TYPES: [&str; 12] = [
    "BreadcrumbList",
    "WebSite",
    "Organization",
    "ItemList",
    "WebPage",
    "SearchAction",
    "ListItem",
    "ImageObject",
    "SiteNavigationElement",
    "CollectionPage",
    "LocalBusiness",
    "Person",
];
/// The last word of an address, where it is a number: `/book/17.html`, `item.php?id=17`; not the digits of `0b9ffd`.
const LAST_NUMBER: &str = r"//[^/]+/.*?\b(\d+)(?:\.\w+)?/?$";
/// The last word, whatever it is.
const LAST_WORD: &str = r"//[^/]+/.*?([\w-]+?)(?:\.\w+)?/?$";
/// The title of a page.
const PAGE_TITLE: &str = "title::text";
/// What stands between the name of a thing and that of the site.
const TITLE_SIGNS: [&str; 9] = [" - ", " | ", " _ ", "_", "|", "｜", " – ", " — ", "－"];
/// Any of those.
const TITLE_SIGN: &str = r"(?:\s[-–—]\s|\s*[_|｜－]\s*)";
/// Levels of members that are looked at.
const MAX_LEVELS: usize = 3;

/// The key out of the address, the title, and the address.
pub(super) fn key_and_title(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    key(pages, builder);
    if let Some((css, join)) = title(pages) {
        let texts: Vec<String> = pages.iter().map(|page| page.texts(&css).concat()).collect();
        let mut clean = vec![StepConfig::Collapse];
        if css == PAGE_TITLE {
            clean.extend(without_site(&texts).map(StepConfig::Regex));
        }
        builder.take_alone(css.trim_end_matches("::text").trim_end());
        let is_everywhere = texts.iter().all(|t| !collapsed(t).is_empty());
        let table = FieldTable {
            css: Some(css),
            join: join.then(String::new),
            clean,
            required: is_everywhere,
            ..FieldTable::default()
        };
        builder.put("title", table, &texts);
    }
    let (table, texts) = whole_address(pages);
    builder.put("url", table, &texts);
}

fn whole_address(pages: &[Seen<'_>]) -> (FieldTable, Vec<String>) {
    let table = FieldTable {
        page: Some(PageValue::Url),
        ..FieldTable::default()
    };
    let texts = pages.iter().map(|page| page.url.to_string());
    (table, texts.collect())
}

/// A part of the address that names the object: another one on each page.
fn key(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let Some(first) = pages.first() else {
        return;
    };
    let has_digit = |text: &String| text.contains(|c: char| c.is_ascii_digit());
    let differ = |texts: &[String]| {
        let once: BTreeSet<&String> = texts.iter().collect();
        once.len() == texts.len() && texts.iter().all(|t| !t.is_empty())
    };
    let part = |page: &Seen<'_>, from_end: usize| {
        let parts = page.url.path_segments()?;
        let parts: Vec<&str> = parts.filter(|p| !p.is_empty()).collect();
        parts.iter().rev().nth(from_end).map(|p| (*p).to_owned())
    };
    let mut ways: Vec<(FieldTable, Vec<String>)> = Vec::new();
    for (path, from_end) in [(-1, 0), (-2, 1)] {
        let texts = pages
            .iter()
            .map(|page| part(page, from_end).unwrap_or_default());
        let table = FieldTable {
            path: Some(path),
            ..FieldTable::default()
        };
        ways.push((table, texts.collect()));
    }
    for (name, _) in first.url.query_pairs() {
        let value = |page: &Seen<'_>| {
            let mut pairs = page.url.query_pairs();
            pairs
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.into_owned())
                .unwrap_or_default()
        };
        let table = FieldTable {
            query: Some(name.to_string()),
            ..FieldTable::default()
        };
        ways.push((table, pages.iter().map(value).collect()));
    }
    let good = |strict: bool| {
        let mut ways = ways.iter();
        ways.find(|(_, texts)| differ(texts) && (!strict || texts.iter().all(has_digit)))
            .cloned()
    };
    let by_address = |regex: &str| by_address(pages, regex).filter(|(_, texts)| differ(texts));
    let found = good(true)
        .or_else(|| by_address(LAST_NUMBER))
        .or_else(|| good(false))
        .or_else(|| by_address(LAST_WORD));
    let (mut table, texts): (FieldTable, Vec<String>) =
        found.unwrap_or_else(|| whole_address(pages));
    table.required = true;
    let numbers: Vec<String> = texts.iter().map(|t| digits(t)).collect();
    if texts.iter().all(|t| is_numbered(t)) && differ(&numbers) {
        let is_bare = texts == numbers;
        if !is_bare {
            table.clean.push(StepConfig::Regex(r"\d+".to_owned()));
        }
        table
            .clean
            .push(StepConfig::Int(crate::config::NumberMarks::default()));
    }
    builder.put("id", table, &texts);
}

/// Pages with addresses of two kinds: the last number, or word, of each.
fn by_address(pages: &[Seen<'_>], regex: &str) -> Option<(FieldTable, Vec<String>)> {
    let last = regex::Regex::new(regex).ok()?;
    let number = |page: &Seen<'_>| {
        let found = last.captures(&page.input.capture.url)?;
        Some(found.get(1)?.as_str().to_owned())
    };
    let texts = pages.iter().map(|page| number(page).unwrap_or_default());
    let table = FieldTable {
        page: Some(PageValue::Url),
        clean: vec![StepConfig::Regex(regex.to_owned())],
        ..FieldTable::default()
    };
    Some((table, texts.collect()))
}

/// `17.html` and `item-17` are 17; a slug with a year in it is itself, and 007 is no number.
fn is_numbered(text: &str) -> bool {
    let number = digits(text);
    let stem = text.split('.').next().unwrap_or(text);
    let rest = stem.trim_matches(|c: char| c.is_ascii_digit());
    let is_word = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    let is_count = !number.is_empty() && !number.starts_with('0') && number.len() <= 18;
    is_count && rest.chars().all(is_word) && rest.len() <= 12
}

/// The first run of digits.
fn digits(text: &str) -> String {
    let from = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    from.chars().take_while(char::is_ascii_digit).collect()
}

/// The selector of the title, and whether its texts are put together.
fn title(pages: &[Seen<'_>]) -> Option<(String, bool)> {
    let has_all = |css: &str| {
        let mut html = pages.iter().filter(|p| p.dom().is_some()).peekable();
        html.peek().is_some()
            && html.all(|page| {
                page.select(css)
                    .first()
                    .is_some_and(|e| !text_in(*e).is_empty())
            })
    };
    for css in ["main h1", "article h1", "h1"] {
        if !has_all(css) {
            continue;
        }
        let css = if pages.iter().all(|page| page.select("h1").len() <= 1) {
            "h1"
        } else {
            css
        };
        let direct = format!("{css}::text");
        let is_direct = |page: &Seen<'_>| {
            let one = page.texts(&direct);
            let all = page.select(css).first().map(|e| text_in(*e));
            one.len() == 1 && all.is_some_and(|all| one.iter().all(|t| collapsed(t) == all))
        };
        return Some(match pages.iter().all(is_direct) {
            true => (direct, false),
            false => (format!("{css} ::text"), true),
        });
    }
    if pages.iter().all(|page| {
        !page
            .texts("meta[property='og:title']::attr(content)")
            .is_empty()
    }) && !pages.is_empty()
    {
        return Some(("meta[property='og:title']::attr(content)".to_owned(), false));
    }
    has_all("title").then(|| (PAGE_TITLE.to_owned(), false))
}

/// A regular expression of what is the page's own in its title: the name of the site, in front or behind a sign that
/// parts them, is alike on every page; some sites have it in front on pages of one kind and behind on those of another.
fn without_site(titles: &[String]) -> Option<String> {
    let titles: Vec<String> = titles.iter().map(|t| collapsed(t)).collect();
    let first = titles.first().filter(|_| titles.len() > 1)?;
    let mut signs: Vec<(usize, &str)> = TITLE_SIGNS
        .iter()
        .flat_map(|sign| first.match_indices(sign))
        .collect();
    signs.sort_unstable();
    let is_all = |regex: &str| {
        let strict = regex::Regex::new(regex);
        strict.is_ok_and(|strict| titles.iter().all(|title| strict.is_match(title)))
    };
    let last = signs.iter().map(|(at, sign)| at + sign.len()).max();
    let behind = last.and_then(|at| first.get(at..));
    let in_front = signs.iter().map(|(at, _)| *at).min();
    let in_front = in_front.and_then(|at| first.get(..at));
    let sites = [behind, in_front].into_iter().flatten().map(str::trim);
    for site in sites.filter(|site| !site.is_empty()) {
        let (bare, site) = (site, regex::escape(site));
        // Between the two there may be a kind: `湖_風景_某店`.
        let behind = format!("(?:[_|｜].*)?{TITLE_SIGN}{site}");
        if is_all(&format!("^.+?{behind}$")) {
            return Some(format!("^(.+?)(?:{behind})?$"));
        }
        let before = format!("{site}{TITLE_SIGN}");
        let has_both =
            titles.iter().any(|t| t.ends_with(bare)) && titles.iter().any(|t| t.starts_with(bare));
        if has_both && is_all(&format!("^(?:{before}.+|.+?{behind})$")) {
            return Some(format!("^(?:{before})?(.+?)(?:{behind})?$"));
        }
    }
    let mut ends: Vec<usize> = signs.iter().map(|(at, sign)| at + sign.len()).collect();
    ends.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
    let mut before = ends.iter().filter_map(|end| first.get(..*end));
    let is_before = |site: &&str| {
        titles
            .iter()
            .all(|t| t.len() > site.len() && t.starts_with(site))
    };
    let site = before.find(is_before)?;
    Some(format!("^(?:{})?(.+)$", regex::escape(site)))
}

/// Members of the JSON-LD object that tells of the page.
pub(super) fn linked_data(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut types: Vec<String> = Vec::new();
    let mut objects: Vec<Vec<Value>> = Vec::new();
    for page in pages {
        let docs = page
            .within()
            .and_then(|within| json_ld(within, page.budget()).ok());
        let mut found = Vec::new();
        for doc in docs.unwrap_or_default() {
            gather(doc.root(), &mut found);
        }
        types.extend(
            found
                .iter()
                .filter_map(|o| Some(o.get("@type")?.as_str()?.to_owned())),
        );
        objects.push(found);
    }
    let is_site = |kind: &String| SITE_TYPES.contains(&kind.as_str());
    let Some(kind) = types.into_iter().find(|kind| !is_site(kind)) else {
        return;
    };
    let of_kind = |found: &Vec<Value>| {
        let mut found = found.iter();
        found
            .find(|o| o.get("@type").and_then(Value::as_str) == Some(&kind))
            .cloned()
    };
    let objects: Vec<Option<Value>> = objects.iter().map(of_kind).collect();
    members(&objects, builder, |path| FieldTable {
        json_ld: Some(kind.clone()),
        clean: vec![StepConfig::Json(path)],
        ..FieldTable::default()
    });
}

/// The outermost objects with a type, in a graph, too.
fn gather(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|v| gather(v, found)),
        Value::Object(members) if members.contains_key("@type") => found.push(value.clone()),
        Value::Object(members) => {
            if let Some(graph) = members.get("@graph") {
                gather(graph, found);
            }
        }
        _ => {}
    }
}

/// Members of a body that is one JSON object.
pub(super) fn body(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let root = |page: &Seen<'_>| match &page.body {
        Body::Json(doc) if doc.root().is_object() => Some(doc.root().clone()),
        Body::Json(_) | Body::Html(_) => None,
    };
    let objects: Vec<Option<Value>> = pages.iter().map(root).collect();
    members(&objects, builder, |path| FieldTable {
        json: Some(path),
        ..FieldTable::default()
    });
}

/// Members that search engines ask for, and that say nothing of one item.
const OF_THE_SHOP: [&str; 12] = [
    "priceValidUntil",
    "valueAddedTaxIncluded",
    "seller",
    "hasMerchantReturnPolicy",
    "shippingDetails",
    "review",
    "isRelatedTo",
    "isSimilarTo",
    "mainEntityOfPage",
    "potentialAction",
    "bestRating",
    "worstRating",
];

fn says_little(path: &str) -> bool {
    let mut parts = path.split(['.', '[', ']']);
    parts.any(|part| OF_THE_SHOP.contains(&part))
}

/// Every scalar of the objects as a field.
fn members(
    objects: &[Option<Value>],
    builder: &mut Builder<'_>,
    table: impl Fn(String) -> FieldTable,
) {
    let mut paths: Vec<(String, String)> = Vec::new();
    for object in objects.iter().flatten() {
        walk(object, ("$", ""), 0, &mut paths);
    }
    let mut once = BTreeSet::new();
    paths.retain(|(path, _)| !says_little(path) && once.insert(path.clone()));
    for (path, name) in paths {
        let text = |object: &Option<Value>| object.as_ref().and_then(|o| at(o, &path)).map(text_of);
        let texts: Vec<String> = objects
            .iter()
            .map(|o| text(o).unwrap_or_default())
            .collect();
        let values: Vec<&Value> = objects
            .iter()
            .flatten()
            .filter_map(|o| at(o, &path))
            .collect();
        let mut table = table(path);
        if values.iter().any(|v| v.is_boolean()) {
            builder.put(&name, table, &texts);
        } else if values.iter().all(|v| v.is_number()) {
            table.clean.push(forms::of_numbers(&name, &texts));
            builder.put(&name, table, &texts);
        } else {
            builder.add(&name, table, &texts);
        }
    }
}

fn walk(
    value: &Value,
    (path, above): (&str, &str),
    level: usize,
    paths: &mut Vec<(String, String)>,
) {
    let Value::Object(members) = value else {
        return;
    };
    for (member, inner) in members {
        let is_plain = member
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_');
        if member.starts_with('@') || !is_plain || member.starts_with(|c: char| c.is_ascii_digit())
        {
            continue;
        }
        let Some(own) = names::of_words(member) else {
            continue;
        };
        let path = format!("{path}.{member}");
        // `brand.name` is the brand; `offers.price` is the price.
        let name = match own.as_str() {
            "name" | "value" if !above.is_empty() => above.to_owned(),
            _ => own.clone(),
        };
        match inner {
            Value::Object(_) if level < MAX_LEVELS => walk(inner, (&path, &own), level + 1, paths),
            Value::Array(values) => match values.first() {
                Some(first @ Value::Object(_)) if level < MAX_LEVELS && values.len() == 1 => {
                    walk(first, (&format!("{path}[0]"), &own), level + 1, paths);
                }
                Some(Value::String(_)) => paths.push((format!("{path}[0]"), name)),
                _ => {}
            },
            Value::String(_) | Value::Number(_) | Value::Bool(_) => paths.push((path, name)),
            Value::Null | Value::Object(_) => {}
        }
    }
}

/// The value at a path that `walk` made.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = value;
    for part in path.split('.').skip(1) {
        let (name, first) = match part.strip_suffix("[0]") {
            Some(name) => (name, true),
            None => (part, false),
        };
        value = value.get(name)?;
        if first {
            value = value.get(0)?;
        }
    }
    Some(value)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
