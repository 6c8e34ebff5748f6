//! CSS selectors as the users of Scrapy know them: `::text` and `::attr(name)` at their end.
//!
//! | written | gives |
//! | --- | --- |
//! | `h1` | elements |
//! | `h1::text` | each text right inside an `h1` |
//! | `h1 ::text` | each text at any depth inside an `h1` |
//! | `a::attr(href)` | the attribute of each `a` that has it |
//! | `dt:contains("ISBN") + dd::text` | the texts right inside of what follows such a `dt` |
//! | `::text`, `::attr(x)` | of the element that is looked into, and of all below it |
//!
//! In document order, each once. Within an element, a selector matches inside of it and itself, as in Scrapy;
//! no part of it matches outside.

use std::collections::HashSet;

use ego_tree::NodeId;
use scraper::{CaseSensitivity, ElementRef, Node};

use crate::error::{Error, Result};
use crate::parse::budget::{Budget, PageError};
use crate::parse::html::Dom;
use crate::parse::select::Selector;

/// A selector with what is taken of its matches.
#[derive(Debug, Clone)]
pub(super) struct CssPath {
    /// For the page as a whole.
    whole: Selector,
    /// For what lies within an element.
    within: Selector,
    pub(super) take: Take,
    cost: Cost,
    /// What an element must be before the selector is tried; `None` = nothing is known.
    hint: Option<Hint>,
}

/// What is taken of a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Take {
    Element,
    Text,
    DeepText,
    Attr(String),
}

/// What a match may cost beside a look at the element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cost {
    /// Looks through everything above or below.
    depth: u64,
    /// Looks through everything beside.
    breadth: u64,
}

/// An element that is looked into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) dom: &'a Dom,
    pub(super) element: ElementRef<'a>,
    /// Nodes in it.
    pub(super) nodes: u64,
    pub(super) is_page: bool,
}

impl<'a> Within<'a> {
    pub(super) fn page(dom: &'a Dom) -> Self {
        let (element, nodes) = (dom.root(), dom.nodes);
        Self {
            dom,
            element,
            nodes,
            is_page: true,
        }
    }

    pub(super) fn part(self, element: ElementRef<'a>, budget: &Budget) -> Result<Self, PageError> {
        let nodes = element.descendants().count() as u64;
        budget.spend(nodes)?;
        Ok(Self {
            element,
            nodes,
            is_page: false,
            ..self
        })
    }
}

impl CssPath {
    /// Reads a selector.
    ///
    /// # Errors
    /// `InvalidInput` that names it.
    pub(super) fn parse(css: &str) -> Result<Self> {
        let parts = split_top(css, ',');
        let mut take: Option<Take> = None;
        let (mut whole, mut within) = (Vec::new(), Vec::new());
        for part in &parts {
            let (selector, taken) = split_pseudo(part).map_err(|e| refuse(css, &e))?;
            if take.as_ref().is_some_and(|t| *t != taken) {
                return Err(refuse(css, "its parts take different things")
                    .hint("write the same `::text` or `::attr(...)` behind each of them: \"h1::text, h2::text\""));
            }
            take = Some(taken);
            within.push(inside(&selector));
            whole.push(selector);
        }
        let read = |texts: &[String]| {
            Selector::parse(&texts.join(", ")).map_err(|e| {
                let told = e.to_string();
                // What stands before it asks to report a fault of the library.
                let why = told.lines().rfind(|line| !line.trim().is_empty());
                let why = match why.unwrap_or_default() {
                    "UnsupportedPseudoClassOrElement" => "a pseudo-class of it is not known",
                    why => why,
                };
                let error = refuse(css, why);
                match single_colon(css) {
                    Some(meant) => error.hint(format!("did you mean `:{meant}`?")),
                    None if css.contains(":contains") => {
                        error.hint("a text in quotes: dt:contains(\"ISBN\") + dd::text")
                    }
                    None => error,
                }
            })
        };
        Ok(Self {
            whole: read(&whole)?,
            within: read(&within)?,
            cost: Cost::of(&whole),
            hint: Hint::of(&whole),
            take: take.unwrap_or(Take::Element),
        })
    }

    /// The matching elements, in document order.
    pub(super) fn elements<'a, 's>(
        &'s self,
        within: Within<'a>,
        budget: &Budget,
    ) -> Result<impl Iterator<Item = ElementRef<'a>> + use<'a, 's>, PageError> {
        let each = 1 + self.cost.depth * within.dom.depth + self.cost.breadth * within.dom.breadth;
        budget.spend(within.nodes.saturating_mul(each))?;
        let selector = match within.is_page {
            true => &self.whole,
            false => &self.within,
        };
        let own = within.element;
        let mut is_match = selector.matcher(own, budget)?;
        let hint = self.hint.as_ref();
        let fits = move |e: &ElementRef<'a>| hint.is_none_or(|hint| hint.fits(e));
        let all = own.descendent_elements();
        Ok(all.filter(move |e| fits(e) && is_match(e)))
    }

    /// The texts that are taken, `limit` at most.
    pub(super) fn texts<'a>(
        &self,
        within: Within<'a>,
        limit: usize,
        budget: &Budget,
    ) -> Result<Vec<String>, PageError> {
        let elements = self.elements(within, budget)?;
        match &self.take {
            // What an element without pseudo-element means was decided before.
            Take::Element => Ok(Vec::new()),
            Take::Attr(name) => {
                let values = elements.filter_map(|e| e.value().attr(name));
                values.take(limit).map(|v| kept(v, budget)).collect()
            }
            Take::DeepText => {
                let mut texts = Vec::new();
                let mut last: Option<ElementRef<'a>> = None;
                for element in elements {
                    if last.is_some_and(|l| is_below(element, l)) {
                        continue;
                    }
                    last = Some(element);
                    for text in element.text() {
                        if texts.len() == limit {
                            return Ok(texts);
                        }
                        texts.push(kept(text, budget)?);
                    }
                }
                Ok(texts)
            }
            Take::Text => direct_texts(elements, limit, budget),
        }
    }
}

/// The texts right inside of each element. Matches within matches are taken together, since their texts
/// stand between those of the outer one.
fn direct_texts<'a>(
    elements: impl Iterator<Item = ElementRef<'a>>,
    limit: usize,
    budget: &Budget,
) -> Result<Vec<String>, PageError> {
    let mut texts = Vec::new();
    let mut elements = elements.peekable();
    while let Some(outer) = elements.next() {
        let mut group: HashSet<NodeId> = HashSet::new();
        while let Some(inner) = elements.next_if(|e| is_below(*e, outer)) {
            group.insert(inner.id());
        }
        let is_nested = !group.is_empty();
        group.insert(outer.id());
        let nodes: Box<dyn Iterator<Item = _>> = match is_nested {
            true => Box::new(outer.descendants()),
            false => Box::new(outer.children()),
        };
        for node in nodes {
            let Node::Text(text) = node.value() else {
                continue;
            };
            if is_nested && !node.parent().is_some_and(|p| group.contains(&p.id())) {
                continue;
            }
            if texts.len() == limit {
                return Ok(texts);
            }
            texts.push(kept(text, budget)?);
        }
        if texts.len() == limit {
            break;
        }
    }
    Ok(texts)
}

fn kept(text: &str, budget: &Budget) -> Result<String, PageError> {
    budget.keep(text.len())?;
    Ok(text.to_owned())
}

fn is_below(element: ElementRef<'_>, outer: ElementRef<'_>) -> bool {
    element.ancestors().any(|a| a.id() == outer.id())
}

fn refuse(css: &str, why: &str) -> Error {
    let error = Error::invalid(format!("`{css}` is no CSS selector: {why}"));
    match css.trim_start().starts_with(['>', '+', '~']) {
        true => error.hint(format!(
            "begin with `:scope`: \":scope {}\"",
            css.trim_start()
        )),
        false if css.starts_with('/') => error.hint("XPath is not known; write it as CSS"),
        false => error.hint("as in Scrapy: \"div.price > b::text\", \"a::attr(href)\""),
    }
}

/// The selector before `::text` or `::attr(name)`, and what is taken.
fn split_pseudo(part: &str) -> std::result::Result<(String, Take), String> {
    let part = part.trim();
    let Some((selector, pseudo)) = rsplit_pseudo(part) else {
        if part.is_empty() {
            return Err("a part of it is empty".to_owned());
        }
        return Ok((part.to_owned(), Take::Element));
    };
    let is_deep = selector.is_empty() || selector.ends_with(char::is_whitespace);
    let selector = selector.trim();
    let take = match pseudo {
        "text" if is_deep => Take::DeepText,
        "text" => Take::Text,
        _ => {
            let name = pseudo
                .strip_prefix("attr(")
                .and_then(|p| p.strip_suffix(')'));
            let name = name.map(|n| n.trim().trim_matches(['"', '\'']));
            match name.filter(|n| !n.is_empty()) {
                Some(name) => Take::Attr(name.to_ascii_lowercase()),
                None => {
                    return Err(format!(
                        "`::{pseudo}` is neither `::text` nor `::attr(name)`"
                    ));
                }
            }
        }
    };
    let selector = match (&take, is_deep, selector) {
        (Take::Attr(_), _, "") => "*".to_owned(),
        (_, _, "") => ":scope".to_owned(),
        (Take::Attr(_), true, selector) => format!("{selector}, {selector} *"),
        (_, _, selector) => selector.to_owned(),
    };
    Ok((selector, take))
}

/// What stands behind one colon and is known behind two.
fn single_colon(css: &str) -> Option<&'static str> {
    [":text", ":attr"].into_iter().find(|word| {
        let mut places = css.match_indices(word);
        places.any(|(at, _)| !css[..at].ends_with(':'))
    })
}

/// The last `::` that stands outside of brackets and quotes.
fn rsplit_pseudo(part: &str) -> Option<(&str, &str)> {
    let at = tops(part).filter(|(_, c)| *c == ':').map(|(i, _)| i);
    let mut found = None;
    for i in at {
        if part[i..].starts_with("::") {
            found = Some(i);
            break;
        }
    }
    found.map(|i| (&part[..i], part[i + 2..].trim_end()))
}

/// The characters outside of brackets and quotes.
fn tops(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut depth, mut quote, mut escaped) = (0_u32, None, false);
    text.char_indices().filter(move |(_, c)| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        if *c == '\\' {
            escaped = true;
            return false;
        }
        if let Some(open) = quote {
            if *c == open {
                quote = None;
            }
            return false;
        }
        match c {
            '"' | '\'' => quote = Some(*c),
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0 && quote.is_none()
    })
}

/// The parts between separators that stand outside of brackets and quotes.
fn split_top(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, c) in tops(text) {
        if c == separator {
            parts.push(&text[begin..at]);
            begin = at + c.len_utf8();
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// The selector whose first part must lie within the element that is looked into, or be it.
fn inside(selector: &str) -> String {
    let parts: Vec<String> = split_top(selector, ',')
        .into_iter()
        .map(|part| {
            let part = part.trim();
            let first = tops(part).find(|(_, c)| c.is_whitespace() || matches!(c, '>' | '+' | '~'));
            match first {
                Some((at, _)) if at > 0 && !part[..at].contains(":scope") => {
                    format!("{}:is(:scope, :scope *){}", &part[..at], &part[at..])
                }
                _ => part.to_owned(),
            }
        })
        .collect();
    parts.join(", ")
}

/// What the last part of a selector says of an element by itself: a look at that is a fraction of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hint {
    tag: Option<String>,
    id: Option<String>,
    class: Option<String>,
}

impl Hint {
    /// Of one selector whose last part is a name, an id and classes alone. Where elements are counted, the counts of one
    /// try serve the next: these are left as they are.
    fn of(selectors: &[String]) -> Option<Self> {
        let [selector] = selectors else {
            return None;
        };
        let counts = ["nth-", "-of-type", "-child", ":has("];
        if counts.iter().any(|c| selector.contains(c)) {
            return None;
        }
        let is_between = |c: char| c.is_whitespace() || matches!(c, '>' | '+' | '~');
        let last = selector.trim_end().rsplit(is_between).next()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '#');
        if last.is_empty() || !last.chars().all(is_plain) {
            return None;
        }
        let mut hint = Self {
            tag: None,
            id: None,
            class: None,
        };
        let mut rest = last;
        while !rest.is_empty() {
            let kind = rest.chars().next().filter(|c| matches!(c, '.' | '#'));
            let begin = usize::from(kind.is_some());
            let end = rest[begin..]
                .find(['.', '#'])
                .map_or(rest.len(), |n| n + begin);
            let name = Some(rest[begin..end].to_owned());
            match kind {
                Some('#') => hint.id = name,
                Some(_) => hint.class = name,
                None => hint.tag = name,
            }
            rest = &rest[end..];
        }
        Some(hint)
    }

    fn fits(&self, element: &ElementRef<'_>) -> bool {
        let element = element.value();
        let is_tag = |t: &String| element.name().eq_ignore_ascii_case(t);
        let is_class = |c: &String| element.has_class(c, CaseSensitivity::CaseSensitive);
        self.tag.as_ref().is_none_or(is_tag)
            && self.id.as_deref().is_none_or(|id| element.id() == Some(id))
            && self.class.as_ref().is_none_or(is_class)
    }
}

impl Cost {
    fn of(selectors: &[String]) -> Self {
        let text = selectors.join(", ");
        let count = |what: &str| text.matches(what).count() as u64;
        // An attribute's `~=` looks at no sibling; counting it as one only costs.
        Self {
            depth: count(" ") + count(":has("),
            breadth: count("~") + count(" of "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(html: &str, css: &str) -> Vec<String> {
        let dom = Dom::parse(html).unwrap();
        let path = CssPath::parse(css).unwrap();
        path.texts(Within::page(&dom), usize::MAX, &Budget::new())
            .unwrap()
    }

    #[test]
    fn texts_and_attributes_are_those_of_scrapy() {
        let html = "<div>a<b>b<i>c</i></b>d<div>e</div>f</div><p x=1 y='2'>g</p><p>h</p>";
        for (css, expected) in [
            ("div::text", vec!["a", "d", "e", "f"]),
            ("div ::text", vec!["a", "b", "c", "d", "e", "f"]),
            ("div > b::text", vec!["b"]),
            ("p::text, i::text", vec!["c", "g", "h"]),
            ("p::attr(x)", vec!["1"]),
            ("body ::attr(Y)", vec!["2"]),
            ("::text", vec!["a", "b", "c", "d", "e", "f", "g", "h"]),
            ("p:nth-of-type(2)::text", vec!["h"]),
            ("p[x]::attr('y')", vec!["2"]),
            ("nav::text", vec![]),
            ("p:contains('g') + p::text", vec!["h"]),
            ("b:contains('bc') ::text", vec!["b", "c"]),
            ("p:contains('::text, (')::text", vec![]),
        ] {
            assert_eq!(texts(html, css), expected, "{css}");
        }
    }

    #[test]
    fn a_hint_leaves_no_match_out() {
        let html = "<DIV ID=A class='x y'><p class=x>1</p><p class='y  x'>2</p><svg><clipPath class=x>3</clipPath></svg></div>";
        let dom = Dom::parse(html).unwrap();
        let page = Within::page(&dom);
        for css in [
            "p", ".x", "p.x", "P.x", ".x.y", ".y.x", "div#A", "#A p.y", "div > .x", "p ~ p",
            "clipPath", "clippath", "div", ".X", "#a", "p.", "nav .x",
        ] {
            let Ok(path) = CssPath::parse(css) else {
                continue;
            };
            assert!(path.hint.is_some(), "{css}");
            let plain = CssPath {
                hint: None,
                ..path.clone()
            };
            let ids = |path: &CssPath| -> Vec<NodeId> {
                let found = path.elements(page, &Budget::new()).unwrap();
                found.map(|e| e.id()).collect()
            };
            assert_eq!(ids(&path), ids(&plain), "{css}");
        }
        for css in [
            "p:nth-of-type(1) b",
            "a[href]",
            "p, b",
            "*",
            "a:not(.x)",
            "tr:first-child td",
        ] {
            assert_eq!(CssPath::parse(css).unwrap().hint, None, "{css}");
        }
    }

    #[test]
    fn nothing_matches_outside_of_the_element() {
        let dom = Dom::parse("<ul><li class=a><p>x</p></li></ul>").unwrap();
        let budget = Budget::new();
        let li = CssPath::parse("li").unwrap();
        let li = li.elements(Within::page(&dom), &budget).unwrap().next();
        let within = Within::page(&dom).part(li.unwrap(), &budget).unwrap();
        for (css, expected) in [
            ("ul p::text", 0),
            ("li p::text", 1),
            (":scope > p::text", 1),
            ("li::attr(class)", 1),
            ("::attr(class)", 1),
            ("::text", 1),
            ("ul:contains('x') p::text", 0),
            ("li:contains('x') p::text", 1),
            ("p:contains('x')::text", 1),
            ("p:contains('y')::text", 0),
        ] {
            let path = CssPath::parse(css).unwrap();
            let found = path.texts(within, 9, &budget).unwrap();
            assert_eq!(found.len(), expected, "{css}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_with_advice() {
        for (css, told) in [
            ("a..b", "a..b"),
            ("a::txt", "`::txt` is neither"),
            ("h1, h2::text", "different things"),
            ("> a::text", ":scope > a::text"),
            ("//a/text()", "XPath"),
            ("a::attr()", "neither"),
            ("a,,b", "empty"),
            ("dt:contains(a b)", ":contains(\\\"ISBN\\\")"),
            ("dt:eq(1)", "a pseudo-class of it is not known"),
        ] {
            let e = CssPath::parse(css).unwrap_err();
            let all = format!("{e} {:?}", e.hints());
            assert!(all.contains(told), "{css}: {all}");
        }
    }
}
