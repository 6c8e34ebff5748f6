//! An HTML page as a tree, built by the rules of browsers, with an end to what it may grow to.
//!
//! A few bytes can ask a tree builder for much: a thousand open `<b>` are made anew for every `<p>`, and each
//! start tag looks through all open elements. So depth and nodes are counted while the tree is built, and looked at
//! after each tag: past a limit, nothing more is read.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use ego_tree::NodeId;
use ego_tree::iter::Edge;
use html5ever::tendril::StrTendril;
use html5ever::tree_builder::{
    ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, QualName, local_name};
use scraper::{ElementRef, Html, HtmlTreeSink};

use crate::parse::budget::{MAX_DEPTH, MAX_NODES, PageError};
use crate::parse::tokens::feed;

/// A page's tree and what selecting in it may cost.
#[derive(Debug)]
pub(super) struct Dom {
    html: Html,
    /// Whether there is an element `base`.
    pub(super) has_base: bool,
    /// Nodes of the whole page.
    pub(super) nodes: u64,
    /// Levels of the deepest element.
    pub(super) depth: u64,
    /// Most children of one element.
    pub(super) breadth: u64,
}

impl Dom {
    /// The tree of the text.
    pub(super) fn parse(text: &str) -> Result<Self, PageError> {
        let builder = TreeBuilder::new(BoundedSink::new(), TreeBuilderOpts::default());
        feed(text, &builder, || builder.sink.check())?;
        let has_base = builder.sink.has_base.get();
        let (html, is_moved) = builder.sink.finish();
        let mut dom = Self {
            has_base,
            nodes: html.tree.values().len() as u64,
            html,
            depth: 0,
            breadth: 0,
        };
        dom.measure();
        // Elements that were moved under others were counted where they were first.
        if is_moved && dom.depth > u64::from(MAX_DEPTH) {
            return Err(too_deep());
        }
        Ok(dom)
    }

    /// The element `html`.
    pub(super) fn root(&self) -> ElementRef<'_> {
        self.html.root_element()
    }

    fn measure(&mut self) {
        let (mut depth, mut deepest, mut breadth) = (0_u64, 0, 0);
        let mut children: Vec<u64> = vec![0];
        for edge in self.html.tree.root().traverse() {
            match edge {
                Edge::Open(_) => {
                    depth += 1;
                    deepest = deepest.max(depth);
                    if let Some(count) = children.last_mut() {
                        *count += 1;
                    }
                    children.push(0);
                }
                Edge::Close(_) => {
                    depth = depth.saturating_sub(1);
                    breadth = breadth.max(children.pop().unwrap_or(0));
                }
            }
        }
        (self.depth, self.breadth) = (deepest, breadth);
    }
}

/// The tree of the text, within the same limits; otherwise why there is none.
pub(crate) fn read_html(text: &str) -> Result<Html, String> {
    Dom::parse(text).map(|dom| dom.html).map_err(|e| e.reason)
}

fn too_deep() -> PageError {
    PageError::new(
        "too_deep",
        format!("elements are nested deeper than {MAX_DEPTH}"),
    )
}

/// A node, and the number under which its depth is kept.
#[derive(Debug, Clone, Copy)]
struct Handle {
    id: NodeId,
    number: usize,
}

/// The sink of `scraper`, with counts.
struct BoundedSink {
    inner: HtmlTreeSink,
    depths: RefCell<Vec<u32>>,
    deepest: Cell<u32>,
    is_moved: Cell<bool>,
    has_base: Cell<bool>,
}

impl BoundedSink {
    fn new() -> Self {
        Self {
            inner: HtmlTreeSink::new(Html::new_document()),
            depths: RefCell::new(vec![0]),
            deepest: Cell::new(0),
            is_moved: Cell::new(false),
            has_base: Cell::new(false),
        }
    }

    /// Whether the tree is within the limits.
    fn check(&self) -> Result<(), PageError> {
        if self.deepest.get() > MAX_DEPTH {
            return Err(too_deep());
        }
        if self.inner.0.borrow().tree.values().len() > MAX_NODES {
            return Err(PageError::new(
                "too_large",
                format!("the page has more than {MAX_NODES} elements and texts"),
            ));
        }
        Ok(())
    }

    fn with_number(&self, id: NodeId) -> Handle {
        let mut depths = self.depths.borrow_mut();
        depths.push(0);
        let number = depths.len() - 1;
        Handle { id, number }
    }

    fn place(&self, below: Handle, child: NodeOrText<Handle>, more: u32) -> NodeOrText<NodeId> {
        match child {
            NodeOrText::AppendText(text) => NodeOrText::AppendText(text),
            NodeOrText::AppendNode(node) => {
                let mut depths = self.depths.borrow_mut();
                let depth = depths.get(below.number).map_or(0, |d| d + more);
                if let Some(place) = depths.get_mut(node.number) {
                    *place = depth;
                }
                self.deepest.set(self.deepest.get().max(depth));
                NodeOrText::AppendNode(node.id)
            }
        }
    }
}

impl TreeSink for BoundedSink {
    type Output = (Html, bool);
    type Handle = Handle;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> (Html, bool) {
        (self.inner.finish(), self.is_moved.get())
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.inner.set_quirks_mode(mode);
    }

    fn get_document(&self) -> Handle {
        let id = self.inner.get_document();
        Handle { id, number: 0 }
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        x.id == y.id
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> Ref<'a, QualName> {
        self.inner.elem_name(&target.id)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        if name.local == local_name!("base") {
            self.has_base.set(true);
        }
        self.with_number(self.inner.create_element(name, attrs, flags))
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.with_number(self.inner.create_comment(text))
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.with_number(self.inner.create_pi(target, data))
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.inner.append_doctype_to_document(name, public, system);
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let child = self.place(*parent, child, 1);
        self.inner.append(&parent.id, child);
    }

    fn append_before_sibling(&self, sibling: &Handle, node: NodeOrText<Handle>) {
        let node = self.place(*sibling, node, 0);
        self.inner.append_before_sibling(&sibling.id, node);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        prev_element: &Handle,
        child: NodeOrText<Handle>,
    ) {
        let child = self.place(*prev_element, child, 1);
        self.inner
            .append_based_on_parent_node(&element.id, &prev_element.id, child);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.inner.add_attrs_if_missing(&target.id, attrs);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        let id = self.inner.get_template_contents(&target.id);
        let number = target.number;
        Handle { id, number }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.inner.remove_from_parent(&target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        self.is_moved.set(true);
        self.inner.reparent_children(&node.id, &new_parent.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_ask_for_much_are_refused() {
        let deep = "<div>".repeat(200_000);
        assert_eq!(Dom::parse(&deep).unwrap_err().code, "too_deep");
        // Nine hundred open elements are made anew for each of these.
        let mut many: String = (0..900).map(|n| format!("<b id={n}>")).collect();
        many.push_str(&"<p>x".repeat(2_000_000));
        let code = Dom::parse(&many).unwrap_err().code;
        assert!(["too_large", "too_deep"].contains(&code), "{code}");
    }

    #[test]
    fn moved_elements_and_templates_are_kept() {
        let dom = Dom::parse("<b><p>a</b>b<table><td>x<div>y</table><template><i>z</i></template>");
        let dom = dom.unwrap();
        let text: String = dom.root().text().collect();
        assert_eq!(text, "abxyz");
        assert!(
            dom.depth > 4 && dom.nodes > 10,
            "{} {}",
            dom.depth,
            dom.nodes
        );
    }
}
