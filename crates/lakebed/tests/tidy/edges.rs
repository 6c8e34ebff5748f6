//! Who may name whom: the layers of `lakebed`, and what each crate may not see.

use std::collections::BTreeMap;

use crate::Finding;
use crate::scan::{Token, closing, production, reads, tokens};

/// The layers from the lowest up. A module names modules of lower layers only.
///
/// Where `ordered` is set, it may also name those to its left. Stages of the others meet through
/// `spec` and do not import each other.
pub(crate) const LAYERS: [Layer; 6] = [
    Layer {
        ordered: true,
        modules: &["error", "fault", "name", "time"],
    },
    Layer {
        ordered: true,
        modules: &["spec"],
    },
    Layer {
        ordered: true,
        modules: &["store", "config"],
    },
    Layer {
        ordered: true,
        modules: &["log", "catalog", "registry"],
    },
    Layer {
        ordered: false,
        modules: &[
            "queue", "fetch", "pack", "parse", "ingest", "fold", "profile", "assess", "publish",
            "govern",
        ],
    },
    Layer {
        ordered: true,
        modules: &["crawl", "flow"],
    },
];

/// Modules of one height.
pub(crate) struct Layer {
    ordered: bool,
    modules: &'static [&'static str],
}

/// Crates that a crate of this workspace may not see.
pub(crate) const FORBIDDEN_CRATES: [(&str, &[&str]); 2] = [
    ("lakebed", &["datafusion", "clap", "axum"]),
    ("lakebed-query", &["clap", "axum"]),
];

/// Layer and place in it; `None` for a module that the table does not name.
fn place(module: &str) -> Option<(usize, usize)> {
    LAYERS.iter().enumerate().find_map(|(height, layer)| {
        let index = layer.modules.iter().position(|m| *m == module)?;
        Some((height, index))
    })
}

fn may_name(from: &str, to: &str) -> Result<(), String> {
    if from == to {
        return Ok(());
    }
    let unknown = |m: &str| format!("module `{m}` has no layer: give it a place in LAYERS");
    let (from_layer, from_index) = place(from).ok_or_else(|| unknown(from))?;
    let (to_layer, to_index) = place(to).ok_or_else(|| unknown(to))?;
    if to_layer < from_layer {
        return Ok(());
    }
    if to_layer > from_layer {
        return Err(format!(
            "`{from}` (layer {from_layer}) names `{to}` (layer {to_layer}): an upward edge"
        ));
    }
    if LAYERS[from_layer].ordered && to_index < from_index {
        return Ok(());
    }
    Err(format!(
        "`{from}` names `{to}` of its own layer {from_layer}: they meet through a lower layer"
    ))
}

/// Names that `lib.rs` or `mod.rs` re-exports, each with the module it comes from.
pub(crate) fn re_exports(lib: &str) -> BTreeMap<String, String> {
    let code = tokens(lib);
    let mut found = BTreeMap::new();
    for at in 0..code.len() {
        if !reads(&code, at, &["pub"]) {
            continue;
        }
        let mut at = at + 1;
        if reads(&code, at, &["("]) {
            at = closing(&code, at) + 1;
        }
        let Some(module) = code.get(at + 1).filter(|_| reads(&code, at, &["use"])) else {
            continue;
        };
        for token in code[at + 2..].iter().take_while(|t| !t.is(";")) {
            if token.is_name() && !token.is("as") {
                found.insert(token.text.clone(), module.text.clone());
            }
        }
    }
    found
}

/// The module path of a file below `src`: `log/read.rs` is `log, read`; `lib.rs` is empty.
pub(crate) fn module_path(relative: &str) -> Vec<String> {
    let mut parts: Vec<String> = relative
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if parts.last().is_some_and(|p| p == "mod" || p == "lib") {
        parts.pop();
    }
    parts
}

/// What follows a path prefix at `at`: one name, or the first names of a `{...}` group.
pub(crate) fn heads(code: &[Token], at: usize) -> Vec<&Token> {
    if !reads(code, at, &["{"]) {
        return code.get(at).filter(|t| t.is_name()).into_iter().collect();
    }
    let end = closing(code, at);
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut fresh = true;
    for token in &code[at..end] {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "," if depth == 1 => fresh = true,
            _ if depth == 1 && fresh && token.is_name() => {
                found.push(token);
                fresh = false;
            }
            _ => {}
        }
    }
    found
}

/// The top-level names that production code of a file reaches by `crate::` or by `super::`.
fn root_names(relative: &str, code: &[Token]) -> Vec<Token> {
    let base = module_path(relative).len();
    let mut inline_modules: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        inline_modules.retain(|end| *end >= at);
        if reads(code, at, &["mod"]) && reads(code, at + 2, &["{"]) {
            inline_modules.push(closing(code, at + 2));
        }
        if reads(code, at, &["crate", ":", ":"]) {
            found.extend(heads(code, at + 3).into_iter().cloned());
        }
        let mut levels = 0;
        while reads(code, at, &["super", ":", ":"]) {
            levels += 1;
            at += 3;
        }
        if levels == 0 {
            at += 1;
        } else if levels >= base + inline_modules.len() {
            found.extend(heads(code, at).into_iter().cloned());
        }
    }
    found
}

/// Upward and sideways edges of one file of the crate `lakebed`.
pub(crate) fn check_layers(
    file: &str,
    relative: &str,
    source: &str,
    exports: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let path = module_path(relative);
    let Some(from) = path.first() else {
        return Vec::new();
    };
    let code = production(&tokens(source));
    root_names(relative, &code)
        .into_iter()
        .filter_map(|name| {
            let to = exports.get(&name.text).unwrap_or(&name.text);
            let what = may_name(from, to).err()?;
            Some(Finding::new(file, name.line, what))
        })
        .collect()
}

/// Crates that may not be seen, in the code of one file.
pub(crate) fn check_crates(krate: &str, file: &str, source: &str) -> Vec<Finding> {
    let forbidden = forbidden(krate);
    tokens(source)
        .into_iter()
        .filter(|t| forbidden.iter().any(|f| root_of(&t.text) == *f))
        .map(|t| Finding::new(file, t.line, format!("`{krate}` may not see `{}`", t.text)))
        .collect()
}

/// Crates that may not be seen, in a manifest.
pub(crate) fn check_manifest(krate: &str, file: &str, text: &str) -> Vec<Finding> {
    let forbidden = forbidden(krate);
    text.lines()
        .enumerate()
        .filter_map(|(i, line)| {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            let seen = forbidden.iter().any(|f| root_of(name) == *f);
            let what = format!("`{krate}` may not depend on `{name}`");
            seen.then(|| Finding::new(file, i + 1, what))
        })
        .collect()
}

fn forbidden(krate: &str) -> &'static [&'static str] {
    FORBIDDEN_CRATES
        .iter()
        .find(|(name, _)| *name == krate)
        .map_or(&[], |(_, list)| list)
}

/// `datafusion` of `datafusion_expr` and `datafusion-expr`.
fn root_of(name: &str) -> &str {
    name.split(['_', '-']).next().unwrap_or_default()
}

#[cfg(test)]
fn layers_of(relative: &str, source: &str) -> Vec<String> {
    let exports = re_exports("pub use error::{Error, ErrorKind};\npub use log::Fold;");
    check_layers(relative, relative, source, &exports)
        .into_iter()
        .map(|f| f.to_string())
        .collect()
}

#[test]
fn an_upward_edge_is_found() {
    let bad = layers_of(
        "spec/a.rs",
        "//! x\nuse std::fmt;\nuse crate::store::Store;\n",
    );
    assert_eq!(
        bad,
        ["spec/a.rs:3: `spec` (layer 1) names `store` (layer 2): an upward edge"]
    );
    let inside = layers_of("error.rs", "fn a() { let x = crate::name::Name::new(); }");
    assert_eq!(inside.len(), 1, "{inside:?}");
    let grouped = layers_of(
        "store/a.rs",
        "use crate::{error::{Error, A}, log::{read, B}, time};",
    );
    assert_eq!(grouped.len(), 1, "{grouped:?}");
    let exported = layers_of("name.rs", "use crate::Error; use crate::Fold;");
    assert_eq!(exported.len(), 1, "{exported:?}");
    let above = layers_of("log/read.rs", "use super::super::govern::audit;");
    assert_eq!(above.len(), 1, "{above:?}");
    let inner = layers_of(
        "name.rs",
        "mod a { use super::Name; use super::super::log; }",
    );
    assert_eq!(inner.len(), 1, "{inner:?}");
}

#[test]
fn stages_do_not_import_each_other() {
    assert_eq!(layers_of("govern/a.rs", "use crate::ingest::x;").len(), 1);
    assert_eq!(layers_of("ingest/a.rs", "use crate::govern::x;").len(), 1);
    assert_eq!(
        layers_of("catalog/a.rs", "use crate::registry::x;").len(),
        1
    );
    assert_eq!(
        layers_of("registry/a.rs", "use crate::catalog::x;").len(),
        0
    );
    assert_eq!(
        layers_of("ingest/a.rs", "use crate::elsewhere::x;").len(),
        1
    );
}

#[test]
fn lower_layers_texts_and_tests_are_no_edges() {
    let fine = "//! crate::govern\nuse crate::{Error, log::{self, Fold}, spec};\nuse super::read;\n\
        const A: &str = \"crate::govern\";\n#[cfg(test)]\nmod tests { use crate::govern; use super::*; }";
    assert_eq!(layers_of("catalog/a.rs", fine), Vec::<String>::new());
    assert_eq!(
        layers_of("name.rs", "#[cfg(test)] mod tests { use super::Name; }").len(),
        0
    );
    assert_eq!(
        layers_of("log/a.rs", "mod b { use super::super::read; }").len(),
        0
    );
}

#[test]
fn forbidden_crates_are_found() {
    let source = "use datafusion_expr::Expr;\nuse clap::Parser;\n// axum\nlet a = \"axum\";";
    assert_eq!(check_crates("lakebed", "a.rs", source).len(), 2);
    assert_eq!(check_crates("lakebed-query", "a.rs", source).len(), 1);
    assert_eq!(check_crates("lakebed-cli", "a.rs", source).len(), 0);
    let manifest =
        "[dependencies]\narrow = \"59\"\ndatafusion-expr.workspace = true\naxum = \"1\"\n";
    let found = check_manifest("lakebed", "Cargo.toml", manifest);
    assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [3, 4]);
}
