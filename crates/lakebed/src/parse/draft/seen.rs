//! A page that is looked at, and selectors that find an element in it again.

use std::collections::HashSet;

use ego_tree::NodeId;
use scraper::ElementRef;
use url::Url;

use crate::parse::budget::Budget;
use crate::parse::css::{CssPath, Within};
use crate::parse::draft::MAX_PAGES;
use crate::parse::draft::links::without_fragment;
use crate::parse::draft::others;
use crate::parse::html::Dom;
use crate::parse::json::JsonDoc;
use crate::parse::page::{PageInput, text_of};

/// Elements whose inside is no content, wherever they stand.
const NO_CONTENT: [&str; 13] = [
    "head", "nav", "footer", "aside", "form", "script", "style", "noscript", "template", "svg",
    "button", "select", "iframe",
];
/// Words in a class or an id that say the same.
const NO_CONTENT_WORDS: [&str; 19] = [
    "nav",
    "navbar",
    "menu",
    "footer",
    "foot",
    "breadcrumb",
    "breadcrumbs",
    "crumbs",
    "crumb",
    "mbx",
    "sidebar",
    "related",
    "recommend",
    "recommended",
    "cookie",
    "pager",
    "pagination",
    "share",
    "login",
];

/// A page that is looked at.
pub(super) struct Seen<'a> {
    pub(super) input: PageInput<'a>,
    pub(super) url: Url,
    base: Url,
    pub(super) body: Body,
    budget: Budget,
    /// Cards of other items.
    others: HashSet<NodeId>,
}

/// What a body is.
pub(super) enum Body {
    Html(Box<Dom>),
    Json(Box<JsonDoc>),
}

impl<'a> Seen<'a> {
    /// The pages that can be read.
    pub(super) fn of_all(pages: &[PageInput<'a>]) -> Vec<Self> {
        let good = |page: &&PageInput<'a>| {
            let status = page.capture.status.unwrap_or(0);
            (200..300).contains(&status) && page.capture.truncated.is_none()
        };
        let pages = pages.iter().filter(good);
        let mut pages: Vec<Self> = pages.filter_map(Self::of).take(MAX_PAGES).collect();
        let all: HashSet<String> = pages.iter().map(|p| without_fragment(&p.url)).collect();
        for page in &mut pages {
            page.others = others::cards(page, &all);
        }
        pages
    }

    fn of(input: &PageInput<'a>) -> Option<Self> {
        let text = text_of(input);
        let body = match text.trim_start().starts_with(['{', '[']) {
            true => Body::Json(Box::new(JsonDoc::parse(&text).ok()?)),
            false => Body::Html(Box::new(Dom::parse(&text).ok()?)),
        };
        let url = Url::parse(&input.capture.url).ok()?;
        let mut seen = Self {
            input: *input,
            base: url.clone(),
            url,
            body,
            budget: Budget::new(),
            others: HashSet::new(),
        };
        let base = seen.texts("base[href]::attr(href)").into_iter().next();
        if let Some(base) = base.and_then(|base| seen.url.join(base.trim()).ok()) {
            seen.base = base;
        }
        Some(seen)
    }

    /// What its links are relative to.
    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    pub(super) fn dom(&self) -> Option<&Dom> {
        match &self.body {
            Body::Html(dom) => Some(dom),
            Body::Json(_) => None,
        }
    }

    pub(super) fn within(&self) -> Option<Within<'_>> {
        self.dom().map(Within::page)
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What a selector finds.
    pub(super) fn select(&self, css: &str) -> Vec<ElementRef<'_>> {
        let (Some(within), Ok(path)) = (self.within(), CssPath::parse(css)) else {
            return Vec::new();
        };
        let found = path.elements(within, &self.budget);
        found.map(Iterator::collect).unwrap_or_default()
    }

    /// The texts that a selector takes.
    pub(super) fn texts(&self, css: &str) -> Vec<String> {
        let (Some(within), Ok(path)) = (self.within(), CssPath::parse(css)) else {
            return Vec::new();
        };
        let found = path.texts(within, usize::MAX, &self.budget);
        found.unwrap_or_default()
    }

    /// Every element of the content, in document order.
    pub(super) fn content(&self) -> Vec<ElementRef<'_>> {
        self.content_without(&HashSet::new())
    }

    /// Every element of the content that tells of the page's own item, in document order.
    pub(super) fn own_content(&self) -> Vec<ElementRef<'_>> {
        self.content_without(&self.others)
    }

    fn content_without(&self, left_out: &HashSet<NodeId>) -> Vec<ElementRef<'_>> {
        let mut found = Vec::new();
        if let Some(dom) = self.dom() {
            gather(dom.root(), (false, left_out), &mut found);
        }
        found
    }

    /// The shortest selector that was thought of and finds these elements of the page, and no other.
    pub(super) fn selector(&self, wanted: &[ElementRef<'_>]) -> Option<String> {
        let ids: HashSet<NodeId> = wanted.iter().map(|e| e.id()).collect();
        let is_right = |css: &String| {
            let found = self.select(css);
            found.len() == ids.len() && found.iter().all(|e| ids.contains(&e.id()))
        };
        candidates(*wanted.first()?).into_iter().find(is_right)
    }
}

fn gather<'a>(
    element: ElementRef<'a>,
    (in_main, left_out): (bool, &HashSet<NodeId>),
    found: &mut Vec<ElementRef<'a>>,
) {
    for child in element.child_elements() {
        let name = child.value().name();
        let in_main = in_main || matches!(name, "main" | "article");
        let is_page_head = name == "header" && !in_main;
        let is_none = NO_CONTENT.contains(&name) && !is_form_of_content(child);
        if is_none || is_page_head || is_named_no_content(child) || left_out.contains(&child.id()) {
            continue;
        }
        found.push(child);
        gather(child, (in_main, left_out), found);
    }
}

/// A form around the whole page, or around what is for sale.
fn is_form_of_content(element: ElementRef<'_>) -> bool {
    let is_content = |e: ElementRef<'_>| matches!(e.value().name(), "h1" | "h2" | "table" | "dl");
    element.value().name() == "form" && element.descendent_elements().any(is_content)
}

/// Whether a class or the id says that it is no content; words of a compound class (`product-nav__item`) do not.
fn is_named_no_content(element: ElementRef<'_>) -> bool {
    let value = element.value();
    let mut names = value.classes().chain(value.id());
    names.any(|name| {
        let name = name.to_ascii_lowercase();
        NO_CONTENT_WORDS.contains(&name.as_str())
    })
}

/// Classes that people gave: no numbers of a grid, no hashes of a build.
pub(super) fn classes<'a>(element: ElementRef<'a>) -> impl Iterator<Item = &'a str> {
    let is_good = |name: &&str| {
        let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_word = |c: char| c.is_alphabetic() || c == '-' || c == '_';
        starts && name.len() > 1 && name.chars().all(is_word)
    };
    element.value().classes().filter(is_good)
}

/// Ways to say which element, the plainest first.
fn own_names(element: ElementRef<'_>) -> Vec<String> {
    let tag = element.value().name();
    let mut names = Vec::new();
    if let Some(property) = element.value().attr("itemprop")
        && is_plain(property)
    {
        names.push(format!("[itemprop={property}]"));
    }
    names.extend(classes(element).map(|class| format!("{tag}.{class}")));
    if let Some(id) = element.value().id()
        && is_plain(id)
    {
        names.push(format!("#{id}"));
    }
    // Better than the place alone: `c9`, `k3j`.
    let odd = element.value().classes().filter(|c| is_odd_class(c));
    names.extend(odd.map(|class| format!("{tag}.{class}")));
    names.push(tag.to_owned());
    names
}

/// A class that says nothing, and which a selector can name as it is.
fn is_odd_class(class: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_good = class.chars().all(|c| c.is_ascii_alphabetic());
    (2..=6).contains(&class.len())
        && !is_good
        && class.starts_with(|c: char| c.is_ascii_alphabetic())
        && class.chars().all(is_word)
}

fn is_plain(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_word)
}

/// Selectors that may find the element: by itself, else below something that has a name.
pub(super) fn candidates(element: ElementRef<'_>) -> Vec<String> {
    let own = own_names(element);
    let mut all = own.clone();
    let above = element.ancestors().filter_map(ElementRef::wrap);
    for (level, ancestor) in above.enumerate() {
        let tag = ancestor.value().name();
        if matches!(tag, "body" | "html") {
            break;
        }
        let is_parent = level == 0;
        for name in own_names(ancestor) {
            // A bare `div` above says little.
            if name == tag
                && !matches!(
                    tag,
                    "main" | "article" | "h2" | "h3" | "h4" | "table" | "ul" | "ol" | "dl" | "li"
                )
            {
                continue;
            }
            let between = if is_parent { " > " } else { " " };
            all.extend(own.iter().map(|own| format!("{name}{between}{own}")));
        }
    }
    all
}

/// All text in an element, white space as one blank.
pub(super) fn text_in(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    collapsed(&text)
}

pub(super) fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text in quotes, as selectors write it.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
