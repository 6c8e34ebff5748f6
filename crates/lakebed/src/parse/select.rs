//! Selectors with `:contains("text")`, which the users of parsel know and browsers do not.
//!
//! ```text
//! dt:contains("ISBN") + dd    what the text of the `dt`, at any depth, contains, by case
//! ```
//! Which elements contain a text is found once for all elements that are looked into, in one pass over their text: a
//! selector then only looks it up. So a page costs its length, however deep it is nested (PRS-2).

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use cssparser::{CowRcStr, ParseError, Parser, ToCss, serialize_string};
use ego_tree::NodeId;
use ego_tree::iter::Edge;
use html5ever::Namespace;
use scraper::error::SelectorErrorKind;
use scraper::selector::{CssLocalName, CssString, PseudoElement};
use scraper::{CaseSensitivity, ElementRef, Html, Node};
use selectors::attr::{AttrSelectorOperation, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode,
    SelectorCaches,
};
use selectors::matching::{ElementSelectorFlags, matches_selector};
use selectors::parser::{
    NonTSPseudoClass, ParseRelative, SelectorImpl, SelectorList, SelectorParseErrorKind,
};
use selectors::{Element, OpaqueElement};

use crate::parse::budget::{Budget, PageError};

/// A list of selectors.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    list: SelectorList<Css>,
    /// The texts of its `:contains`.
    texts: Vec<String>,
}

/// Which elements contain the texts of a selector, in the order of the texts.
type Found = [HashSet<NodeId>];

impl Selector {
    /// Reads a list.
    pub(crate) fn parse(css: &str) -> Result<Self, SelectorErrorKind> {
        let reader = Reader::default();
        let list = SelectorList::parse(&reader, &mut Parser::new(css), ParseRelative::No)?;
        let texts = reader.texts.into_inner();
        Ok(Self { list, texts })
    }

    /// The elements of a page that match, in document order.
    pub(crate) fn select<'a, 's>(
        &'s self,
        html: &'a Html,
    ) -> impl Iterator<Item = ElementRef<'a>> + use<'a, 's> {
        let own = html.root_element();
        let found = self.texts.iter().map(|t| holders(own, t).0).collect();
        let is_match = self.matching(own, found);
        own.descendent_elements().filter(is_match)
    }

    /// Says of elements within `own`, and of itself, whether they match.
    pub(super) fn matcher<'a, 's>(
        &'s self,
        own: ElementRef<'a>,
        budget: &Budget,
    ) -> Result<impl FnMut(&ElementRef<'a>) -> bool + use<'a, 's>, PageError> {
        let mut found = Vec::new();
        for text in &self.texts {
            let (held, cost) = holders(own, text);
            budget.spend(cost)?;
            found.push(held);
        }
        Ok(self.matching(own, found))
    }

    fn matching<'a, 's>(
        &'s self,
        own: ElementRef<'a>,
        found: Vec<HashSet<NodeId>>,
    ) -> impl FnMut(&ElementRef<'a>) -> bool + use<'a, 's> {
        let scope = own.opaque();
        // They are known by where the selectors lie, which outlive them here.
        let mut caches = SelectorCaches::default();
        move |element: &ElementRef<'a>| {
            let mut context = MatchingContext::new(
                MatchingMode::Normal,
                None,
                &mut caches,
                QuirksMode::NoQuirks,
                NeedsSelectorFlags::No,
                MatchingForInvalidation::No,
            );
            context.scope_element = Some(scope);
            context.extra_data = Some(found.as_slice());
            let mut list = self.list.slice().iter();
            list.any(|s| matches_selector(s, 0, None, &Candidate(*element), &mut context))
        }
    }
}

/// The elements within `own`, and itself, whose text contains another; what it cost to find them.
fn holders(own: ElementRef<'_>, wanted: &str) -> (HashSet<NodeId>, u64) {
    let (mut text, mut open, mut spans) = (String::new(), Vec::new(), Vec::new());
    for edge in own.traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Text(part) => text.push_str(part),
                Node::Element(_) => open.push(text.len()),
                _ => {}
            },
            Edge::Close(node) if node.value().is_element() => {
                let begin = open.pop().unwrap_or_default();
                spans.push((node.id(), begin..text.len()));
            }
            Edge::Close(_) => {}
        }
    }
    let cost = (text.len() + spans.len()) as u64;
    let places = places_of(wanted, &text);
    let holds = |span: &std::ops::Range<usize>| {
        // All are equally long: if the first does not end in time, none does.
        let first = places.partition_point(|place| *place < span.start);
        let first = places.get(first);
        first.is_some_and(|place| place + wanted.len() <= span.end)
    };
    let held = spans.into_iter().filter(|(_, span)| holds(span));
    (held.map(|(id, _)| id).collect(), cost)
}

/// Where a text stands in another, also where it overlaps itself.
fn places_of(wanted: &str, text: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(wanted)) {
        places.push(from + at);
        let next = text[from + at..].chars().next();
        from += at + next.map_or(1, char::len_utf8);
    }
    places
}

/// The selectors of scraper, and `:contains`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Css;

impl SelectorImpl for Css {
    type AttrValue = CssString;
    type Identifier = CssLocalName;
    type LocalName = CssLocalName;
    type NamespacePrefix = CssLocalName;
    type NamespaceUrl = Namespace;
    type BorrowedNamespaceUrl = Namespace;
    type BorrowedLocalName = CssLocalName;
    type NonTSPseudoClass = Contains;
    type PseudoElement = PseudoElement;
    type ExtraMatchingData<'a> = Option<&'a Found>;
}

/// `:contains("text")`
#[derive(Debug, Clone, PartialEq, Eq)]
struct Contains {
    text: String,
    /// Its place among the texts of the selector.
    number: usize,
}

impl NonTSPseudoClass for Contains {
    fn is_active_or_hover(&self) -> bool {
        false
    }

    fn is_user_action_state(&self) -> bool {
        false
    }
}

impl ToCss for Contains {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        dest.write_str(":contains(")?;
        serialize_string(&self.text, dest)?;
        dest.write_char(')')
    }
}

/// Reads selectors, and notes the texts of `:contains`.
#[derive(Debug, Default)]
struct Reader {
    texts: RefCell<Vec<String>>,
}

impl<'i> selectors::Parser<'i> for Reader {
    type Impl = Css;
    type Error = SelectorParseErrorKind;

    fn parse_is_and_where(&self) -> bool {
        true
    }

    fn parse_has(&self) -> bool {
        true
    }

    fn parse_non_ts_functional_pseudo_class(
        &self,
        name: CowRcStr<'i>,
        parser: &mut Parser<'i>,
        _after_part: bool,
    ) -> Result<Contains, ParseError<SelectorParseErrorKind>> {
        if !name.eq_ignore_ascii_case("contains") {
            let unknown = SelectorParseErrorKind::UnsupportedPseudoClassOrElement;
            return Err(ParseError::custom(unknown));
        }
        let text = parser.expect_ident_or_string()?.as_ref().to_owned();
        let mut texts = self.texts.borrow_mut();
        texts.push(text.clone());
        let number = texts.len() - 1;
        Ok(Contains { text, number })
    }
}

/// An element that is tried: scraper's, which knows no `:contains`.
#[derive(Debug, Clone)]
struct Candidate<'a>(ElementRef<'a>);

impl Element for Candidate<'_> {
    type Impl = Css;

    fn opaque(&self) -> OpaqueElement {
        self.0.opaque()
    }

    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Self)
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        self.0.parent_node_is_shadow_root()
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        self.0.containing_shadow_host().map(Self)
    }

    fn is_pseudo_element(&self) -> bool {
        self.0.is_pseudo_element()
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Self)
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.0.next_sibling_element().map(Self)
    }

    fn first_element_child(&self) -> Option<Self> {
        self.0.first_element_child().map(Self)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.0.is_html_element_in_html_document()
    }

    fn has_local_name(&self, name: &CssLocalName) -> bool {
        self.0.has_local_name(name)
    }

    fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.0.has_namespace(namespace)
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.0.is_same_type(&other.0)
    }

    fn attr_matches(
        &self,
        namespace: &NamespaceConstraint<&Namespace>,
        name: &CssLocalName,
        operation: &AttrSelectorOperation<&CssString>,
    ) -> bool {
        self.0.attr_matches(namespace, name, operation)
    }

    fn match_non_ts_pseudo_class(
        &self,
        contains: &Contains,
        context: &mut MatchingContext<'_, Css>,
    ) -> bool {
        let found = context.extra_data.and_then(|all| all.get(contains.number));
        found.is_some_and(|found| found.contains(&self.0.id()))
    }

    fn match_pseudo_element(&self, _: &PseudoElement, _: &mut MatchingContext<'_, Css>) -> bool {
        false
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    fn is_link(&self) -> bool {
        self.0.is_link()
    }

    fn is_html_slot_element(&self) -> bool {
        self.0.is_html_slot_element()
    }

    fn has_id(&self, id: &CssLocalName, case: CaseSensitivity) -> bool {
        self.0.has_id(id, case)
    }

    fn has_class(&self, name: &CssLocalName, case: CaseSensitivity) -> bool {
        Element::has_class(&self.0, name, case)
    }

    fn has_custom_state(&self, name: &CssLocalName) -> bool {
        self.0.has_custom_state(name)
    }

    fn imported_part(&self, name: &CssLocalName) -> Option<CssLocalName> {
        self.0.imported_part(name)
    }

    fn is_part(&self, name: &CssLocalName) -> bool {
        self.0.is_part(name)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_root(&self) -> bool {
        self.0.is_root()
    }

    fn add_element_unique_hashes(&self, filter: &mut BloomFilter) -> bool {
        self.0.add_element_unique_hashes(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::html::Dom;

    fn ids(html: &str, css: &str) -> String {
        let dom = Dom::parse(html).unwrap();
        let selector = Selector::parse(css).unwrap();
        let mut is_match = selector.matcher(dom.root(), &Budget::new()).unwrap();
        let all = dom.root().descendent_elements();
        let ids = all.filter(|e| is_match(e)).filter_map(|e| e.value().id());
        ids.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn contains_is_that_of_cssselect() {
        let html = "<dl id=dl><dt id=a>IS<b id=b>BN</b>-13</dt><dd id=c>978</dd><dt id=d>isbn</dt><dd id=e>\
             <span id=f>书号 ISBN</span></dd><dt id=g>a &quot;(b)&quot;, c > d</dt><dd id=h></dd></dl>";
        for (css, expected) in [
            // The text at any depth, over the borders of elements, by case.
            (":contains(\"ISBN\"):not(html, body)", "dl a e f"),
            ("dt:contains(ISBN) + dd", "c"),
            ("dt:CONTAINS('isbn') + dd", "e"),
            ("dt:not(:contains('ISBN'))", "d g"),
            ("dd:has(span:contains('书号'))", "e"),
            ("dt:is(:contains('isbn'), :contains('BN-1'))", "a d"),
            ("dt:contains('\"(b)\", c > d') ~ dd", "h"),
            ("dt:contains('ISBN'):contains('13') b", "b"),
            ("b:contains('BN-')", ""),
            ("dd:contains('')", "c e h"),
            ("dt:contains('nowhere')", ""),
        ] {
            assert_eq!(ids(html, css), expected, "{css}");
        }
        assert_eq!(ids("<p id=a>xaa</p><p id=b>ab</p>", "p:contains(aa)"), "a");
        assert_eq!(ids("<p id=a>a<i id=b>aa</i></p>", "i:contains(aa)"), "b");
        for css in ["p:contains()", "p:contains(a b)", "p:contains", "p:eq(1)"] {
            assert!(Selector::parse(css).is_err(), "{css}");
        }
    }

    #[test]
    fn a_deep_page_costs_its_length() {
        let html = format!("{}{}", "<div>".repeat(900), "x".repeat(1 << 20));
        let dom = Dom::parse(&html).unwrap();
        let selector = Selector::parse("div:contains('y'), div:contains('xx')").unwrap();
        let budget = Budget::new();
        let mut is_match = selector.matcher(dom.root(), &budget).unwrap();
        let all = dom.root().descendent_elements();
        assert_eq!(all.filter(|e| is_match(e)).count(), 900);
        assert!(budget.spent() < 3 << 20, "{}", budget.spent());
    }
}
