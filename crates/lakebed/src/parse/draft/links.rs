//! The links of a list: which of them lead to its items, and which to its next page.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ego_tree::NodeId;
use scraper::ElementRef;
use url::Url;

use crate::name::StageName;
use crate::parse::draft::cards;
use crate::parse::draft::seen::{Seen, candidates, classes, quoted, text_in};
use crate::parse::draft::totals::announced;
use crate::parse::draft::written::DraftedLinks;

/// What a link to the next page says, in small letters.
const NEXT: [&str; 10] = [
    "下一頁",
    "下一页",
    "下頁",
    "下页",
    "後一頁",
    "次へ",
    "次のページ",
    "next",
    "next page",
    "older",
];
/// Links to items, at least.
const MIN_ITEMS: usize = 2;

/// A link of a page.
pub(super) struct Link<'a> {
    pub(super) element: ElementRef<'a>,
    pub(super) url: Url,
    /// What it has in common with addresses of its kind.
    pub(super) shape: String,
    /// It stands in the content, not in a menu.
    pub(super) is_content: bool,
}

pub(super) fn find(pages: &[Seen<'_>], stage: &StageName, to: &StageName) -> Vec<DraftedLinks> {
    let links: Vec<Vec<Link<'_>>> = pages.iter().map(links_of).collect();
    let mut drafted = Vec::new();
    // A next page of nothing is no list.
    drafted.extend(cards::items(pages, &links).map(|css| told(pages, &css, to)));
    if drafted.is_empty() {
        return drafted;
    }
    let next = next_page(pages, &links).map(|css| told(pages, &[css], stage));
    if let Some(items) = drafted.first_mut() {
        items.total = announced(pages, items.most, next.is_some());
        // Pages that have an address each, not a query, are told to speak of one list.
        let paths: BTreeSet<&str> = pages.iter().map(|page| page.url.path()).collect();
        let next = next.as_ref().and_then(|next| Url::parse(&next.sample).ok());
        let is_one = paths.len() == 1 && next.is_none_or(|url| paths.contains(url.path()));
        items.is_one_path = is_one;
    }
    drafted.extend(next);
    drafted
}

/// Every link to another page of the same site.
fn links_of<'s>(page: &'s Seen<'_>) -> Vec<Link<'s>> {
    let content: HashSet<NodeId> = page.content().iter().map(|e| e.id()).collect();
    let anchors = page.select("a[href]").into_iter();
    let link = |element: ElementRef<'s>| {
        let href = element.value().attr("href")?.trim();
        let url = page.base().join(href).ok()?;
        let is_here = url.path() == page.url.path() && url.query() == page.url.query();
        let is_site = url.host_str() == page.url.host_str() && url.scheme().starts_with("http");
        (is_site && !is_here && !href.is_empty()).then(|| Link {
            shape: shape_of(&url),
            is_content: content.contains(&element.id()),
            element,
            url,
        })
    };
    let mut links: Vec<Link<'s>> = anchors.filter_map(link).collect();
    // Where the path tells the items apart, a query says where the link stands: `?from=list`.
    let mut queries: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for link in &links {
        let of_shape = queries.entry(path_shape(link).to_owned()).or_default();
        let of_path = of_shape.entry(link.url.path().to_owned()).or_default();
        of_path.extend(link.url.query().map(str::to_owned));
    }
    for link in &mut links {
        let paths = queries.get(path_shape(link));
        if paths.is_some_and(|p| p.len() >= MIN_ITEMS && p.values().all(|q| q.len() <= 1)) {
            link.shape = format!("{}?", path_shape(link));
        }
    }
    links
}

fn path_shape<'l>(link: &'l Link<'_>) -> &'l str {
    link.shape.split('?').next().unwrap_or_default()
}

/// What addresses of one kind have in common: all parts of the path but the last, numbers aside, and the names of the
/// query.
pub(super) fn shape_of(url: &Url) -> String {
    let mut parts: Vec<String> = url
        .path()
        .split('/')
        .filter(|p| !p.is_empty())
        .map(without_numbers)
        .collect();
    let last = parts.pop().unwrap_or_default();
    // `index.html` below a folder an item is named after the folder.
    if last.starts_with("index.") {
        parts.pop();
        parts.push("*".to_owned());
    }
    let end = match last.rsplit_once('.') {
        Some((_, end)) => format!("*.{end}"),
        None => "*".to_owned(),
    };
    let names: BTreeSet<String> = url
        .query_pairs()
        .map(|(name, _)| name.into_owned())
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    format!("/{}/{end}?{}", parts.join("/"), names.join("&"))
}

fn without_numbers(part: &str) -> String {
    part.replace(|c: char| c.is_ascii_digit(), "#")
}

/// Whether the address is another page of the list.
pub(super) fn is_pager(url: &Url, page: &Url) -> bool {
    let last = |url: &Url| {
        url.path()
            .rsplit('/')
            .find(|p| !p.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let own = url.path() == page.path() && url.query() != page.query();
    let stem = last(url).split('.').next().unwrap_or_default().to_owned();
    let number = stem
        .trim_start_matches("page")
        .trim_start_matches('p')
        .trim_start_matches(['-', '_']);
    let is_page =
        stem.starts_with('p') && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let same_folder =
        url.path().rsplit_once('/').map(|(f, _)| f) == page.path().rsplit_once('/').map(|(f, _)| f);
    let is_numbered = same_folder
        && without_numbers(&last(url)) == without_numbers(&last(page))
        && last(page).contains(|c: char| c.is_ascii_digit());
    own || is_page || is_numbered
}

pub(super) fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// The selector of the link to the next page, else of those to all pages.
fn next_page(pages: &[Seen<'_>], links: &[Vec<Link<'_>>]) -> Option<String> {
    let has = |css: &str| pages.iter().any(|page| !page.select(css).is_empty());
    for css in ["a[rel=next]", "link[rel=next]"] {
        if has(css) {
            return Some(css.to_owned());
        }
    }
    let all = || {
        pages
            .iter()
            .zip(links)
            .flat_map(|(page, links)| links.iter().map(move |l| (page, l)))
    };
    let is_next_class = |e: ElementRef<'_>| {
        let class = classes(e).find(|c| {
            c.to_ascii_lowercase()
                .split(['-', '_'])
                .any(|w| w.starts_with("next") || w == "older")
        });
        class.map(str::to_owned)
    };
    for (page, link) in all() {
        let parent = link.element.parent().and_then(ElementRef::wrap);
        let own = is_next_class(link.element).map(|class| format!("a.{class}"));
        let css = own.or_else(|| Some(format!(".{} > a", is_next_class(parent?)?)));
        if let Some(css) = css.filter(|css| page.select(css).len() <= 2) {
            return Some(css);
        }
    }
    let is_sign = |c: char| !c.is_alphanumeric();
    for (page, link) in all() {
        let shown = text_in(link.element);
        let word = shown.trim_matches(is_sign);
        let is_arrow = ["›", "»", "→", ">", ">>"].contains(&shown.as_str());
        let css = format!(
            "a:contains({})",
            quoted(if is_arrow { &shown } else { word })
        );
        let is_next = is_arrow || NEXT.contains(&word.to_lowercase().as_str());
        if is_next && page.select(&css).len() == 1 {
            return Some(css);
        }
    }
    all()
        .filter(|(page, link)| is_pager(&link.url, &page.url))
        .find_map(|(page, link)| {
            let is_right = |css: &String| {
                let chosen = page.select(css);
                let pager = |e: &ElementRef<'_>| {
                    let href = e
                        .value()
                        .attr("href")
                        .and_then(|h| page.base().join(h).ok());
                    href.is_some_and(|url| is_pager(&url, &page.url) || url == page.url)
                };
                chosen.len() >= 2 && chosen.iter().all(pager)
            };
            let has_number = text_in(link.element).bytes().all(|b| b.is_ascii_digit());
            let named = candidates(link.element)
                .into_iter()
                .filter(|css| css.contains(['.', '#']));
            named.filter(|_| has_number).find(is_right)
        })
}

/// A group with what it finds.
fn told(pages: &[Seen<'_>], css: &[String], stage: &StageName) -> DraftedLinks {
    let each: Vec<String> = css.iter().map(|css| format!("{css}::attr(href)")).collect();
    let url = each.join(", ");
    let found = pages.iter().map(|page| {
        let joined = page
            .texts(&url)
            .into_iter()
            .filter_map(|h| page.base().join(h.trim()).ok());
        joined.map(|url| without_fragment(&url)).collect::<Vec<_>>()
    });
    let found: Vec<Vec<String>> = found.collect();
    let once: BTreeSet<&String> = found.iter().flatten().collect();
    DraftedLinks {
        stage: stage.clone(),
        found: once.len(),
        sample: found.iter().flatten().next().cloned().unwrap_or_default(),
        on_pages: found.iter().filter(|f| !f.is_empty()).count(),
        most: found.iter().map(Vec::len).max().unwrap_or(0),
        total: None,
        is_one_path: true,
        url,
    }
}
