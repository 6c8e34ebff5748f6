//! No knot within a module either: the parts of one module do not name each other in a circle.
//!
//! `log/commit.rs` may name `log/state.rs`, or the other way round, not both. What `mod.rs` re-exports
//! counts as a name of the part it comes from; what it defines itself is everybody's.

use std::collections::{BTreeMap, BTreeSet};

use crate::edges::{heads, module_path, re_exports};
use crate::scan::{Token, closing, production, reads, tokens};
use crate::{Finding, SourceFile};

/// Where one part names another.
#[derive(Debug, Clone)]
struct Edge {
    to: String,
    file: String,
    line: usize,
}

type Graph = BTreeMap<String, Vec<Edge>>;

/// A file of a module and the path of its part within it.
type Part<'a> = (&'a SourceFile, Vec<String>);

/// Circles among the parts of each module of a crate.
pub(crate) fn check(files: &[SourceFile], tests: &BTreeSet<String>) -> Vec<Finding> {
    let mut modules: BTreeMap<(String, String), Vec<Part<'_>>> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|f| f.is_rust() && !tests.contains(&f.path))
    {
        let Some((krate, relative)) = file.in_src() else {
            continue;
        };
        let path = module_path(relative);
        if let Some(top) = path.first() {
            let key = (krate.to_owned(), top.clone());
            modules.entry(key).or_default().push((file, path));
        }
    }
    let mut found = Vec::new();
    for ((_, top), parts) in &modules {
        let graph = graph_of(top, parts);
        found.extend(
            circles(&graph)
                .into_iter()
                .map(|circle| report(top, &circle)),
        );
    }
    found
}

/// Who names whom among the parts of the module `top`.
fn graph_of(top: &str, parts: &[(&SourceFile, Vec<String>)]) -> Graph {
    let names: BTreeSet<&str> = parts
        .iter()
        .filter_map(|(_, path)| path.get(1).map(String::as_str))
        .collect();
    let exports = parts
        .iter()
        .find(|(_, path)| path.len() == 1)
        .map(|(file, _)| re_exports(&file.text))
        .unwrap_or_default();
    let mut graph = Graph::new();
    for (file, path) in parts {
        let Some(from) = path.get(1) else {
            continue;
        };
        for token in names_below(top, path, &production(&tokens(&file.text))) {
            let to = exports.get(&token.text).unwrap_or(&token.text);
            if names.contains(to.as_str()) && to != from {
                let edge = Edge {
                    to: to.clone(),
                    file: file.path.clone(),
                    line: token.line,
                };
                graph.entry(from.clone()).or_default().push(edge);
            }
        }
    }
    graph
}

/// The names right below the module `top` that code at `path` reaches by `crate::` or `super::`.
fn names_below(top: &str, path: &[String], code: &[Token]) -> Vec<Token> {
    let mut inline_modules: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        inline_modules.retain(|end| *end >= at);
        if reads(code, at, &["mod"]) && reads(code, at + 2, &["{"]) {
            inline_modules.push(closing(code, at + 2));
        }
        if reads(code, at, &["crate", ":", ":", top, ":", ":"]) {
            found.extend(heads(code, at + 6).into_iter().cloned());
        }
        let mut levels = 0;
        while reads(code, at, &["super", ":", ":"]) {
            levels += 1;
            at += 3;
        }
        if levels == 0 {
            at += 1;
        } else if levels + 1 == path.len() + inline_modules.len() {
            found.extend(heads(code, at).into_iter().cloned());
        }
    }
    found
}

/// For each part that reaches itself, the edges of a shortest way round; each circle once.
fn circles(graph: &Graph) -> Vec<Vec<Edge>> {
    let mut found: Vec<Vec<Edge>> = Vec::new();
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for start in graph.keys() {
        if reported.contains(start.as_str()) {
            continue;
        }
        if let Some(circle) = way_round(graph, start) {
            reported.extend(
                graph
                    .keys()
                    .filter(|k| circle.iter().any(|e| e.to == **k))
                    .map(String::as_str),
            );
            found.push(circle);
        }
    }
    found
}

fn way_round(graph: &Graph, start: &str) -> Option<Vec<Edge>> {
    let mut ways: Vec<Vec<Edge>> = vec![Vec::new()];
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut next = 0;
    while next < ways.len() {
        let way = ways[next].clone();
        next += 1;
        let here = way.last().map_or(start, |e| e.to.as_str()).to_owned();
        for edge in graph.get(&here).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(edge.clone());
            if edge.to == start {
                return Some(longer);
            }
            if seen.insert(edge.to.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

fn report(top: &str, circle: &[Edge]) -> Finding {
    let way: Vec<String> = circle
        .iter()
        .map(|e| format!("{}:{} names `{}`", e.file, e.line, e.to))
        .collect();
    let what = format!("a circle within `{top}`: {}", way.join(", "));
    Finding::new(&circle[0].file, circle[0].line, what)
}

#[cfg(test)]
fn circles_in(texts: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<SourceFile> = texts
        .iter()
        .map(|(path, text)| SourceFile {
            path: format!("crates/a/src/log/{path}"),
            text: (*text).to_owned(),
        })
        .collect();
    check(&files, &BTreeSet::new())
        .iter()
        .map(Finding::to_string)
        .collect()
}

#[test]
fn a_circle_is_found_by_every_way_of_naming() {
    let root = (
        "mod.rs",
        "mod a; mod b; mod c; pub use b::{B, other}; pub struct Own;",
    );
    let direct = circles_in(&[
        root,
        ("a.rs", "use super::b;"),
        ("b.rs", "use crate::log::a::A;"),
    ]);
    assert_eq!(
        direct,
        [
            "crates/a/src/log/a.rs:1: a circle within `log`: crates/a/src/log/a.rs:1 names `b`, \
          crates/a/src/log/b.rs:1 names `a`"
        ]
    );
    let exported = circles_in(&[
        root,
        ("a.rs", "use crate::log::{B, Own};"),
        ("b.rs", "fn f() { super::a::f() }"),
    ]);
    assert_eq!(exported.len(), 1, "{exported:?}");
    let long = circles_in(&[
        root,
        ("a.rs", "use super::b;"),
        ("b.rs", "use super::c;"),
        ("c/d.rs", "use super::super::a;"),
    ]);
    assert_eq!(long.len(), 1, "{long:?}");
}

#[test]
fn one_direction_is_no_circle() {
    let root = ("mod.rs", "mod a; mod b; pub use a::A; pub use b::B;");
    let fine = circles_in(&[
        root,
        (
            "a.rs",
            "use super::b; use crate::log::{B, Own}; use super::A;",
        ),
        (
            "b.rs",
            "use super::Own; use crate::error::a; #[cfg(test)] mod tests { use super::super::a; }",
        ),
    ]);
    assert_eq!(fine, Vec::<String>::new());
}
