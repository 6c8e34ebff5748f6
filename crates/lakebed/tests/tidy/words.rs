//! Words that no name of ours contains, and texts that do not belong into the repository.

use crate::Finding;
use crate::scan::{reads, tokens};

/// Words that say nothing, in any declared name.
const EMPTY_WORDS: [&str; 8] = [
    "manager",
    "managers",
    "helper",
    "helpers",
    "util",
    "utils",
    "misc",
    "miscellaneous",
];
/// Beginnings of function names that say nothing.
const EMPTY_PREFIXES: [&str; 2] = ["process_", "do_"];
/// Names of modules and folders that collect what nobody placed.
const EMPTY_MODULES: [&str; 8] = [
    "util", "utils", "common", "misc", "helper", "helpers", "types", "macros",
];
/// What declares a name.
const DECLARING: [&str; 9] = [
    "fn", "struct", "enum", "trait", "type", "mod", "const", "static", "union",
];

/// The texts are written in two parts, so that this file does not hold them.
const FOREIGN_TEXTS: [(&str, &str, &str); 8] = [
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("/ho", "me/", "a path of one machine"),
    ("/Us", "ers/", "a path of one machine"),
    ("as an", " AI", "speaks of its making"),
    ("Co-Auth", "ored-By", "speaks of its making"),
    ("issue", " A1", "speaks of its making"),
    ("issue", " A2", "speaks of its making"),
];

/// The words of a name in small letters: `FileManager` and `file_manager` have two.
fn words(name: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut last_small = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && last_small) {
            found.push(String::new());
        }
        if c != '_'
            && let Some(word) = found.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        last_small = c.is_lowercase() || c.is_numeric();
    }
    found.retain(|w| !w.is_empty());
    found
}

/// Methods of traits that are not ours.
const FOREIGN_NAMES: [&str; 1] = ["process_token"];

/// Declared names that say nothing.
pub(crate) fn check_names(file: &str, source: &str) -> Vec<Finding> {
    let code = tokens(source);
    let mut found = Vec::new();
    for at in 0..code.len().saturating_sub(1) {
        let (declares, name) = (&code[at], &code[at + 1]);
        if !DECLARING.contains(&declares.text.as_str()) || !name.is_name() {
            continue;
        }
        let parts = words(&name.text);
        let empty = parts.iter().any(|w| EMPTY_WORDS.contains(&w.as_str()))
            || (declares.is("fn") && EMPTY_PREFIXES.iter().any(|p| name.text.starts_with(p)))
            || (name.text.starts_with(char::is_uppercase)
                && !declares.is("const")
                && !declares.is("static")
                && parts.iter().any(|w| w == "common"))
            || (declares.is("mod") && EMPTY_MODULES.contains(&name.text.as_str()));
        let is_foreign = FOREIGN_NAMES.contains(&name.text.as_str());
        if empty && !is_foreign && !reads(&code, at, &["const", "fn"]) {
            let what = format!("the name `{}` says nothing: name the thing", name.text);
            found.push(Finding::new(file, name.line, what));
        }
    }
    found
}

/// A path with a folder or file that collects what nobody placed.
pub(crate) fn check_path(file: &str) -> Option<Finding> {
    let segment = file
        .split('/')
        .map(|s| s.trim_end_matches(".rs"))
        .find(|s| EMPTY_MODULES.contains(s))?;
    Some(Finding::new(
        file,
        1,
        format!("`{segment}` is no place: split by concept"),
    ))
}

/// Texts that do not belong into the repository, in any file of it.
pub(crate) fn check_texts(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for (head, tail, why) in FOREIGN_TEXTS {
            let foreign = format!("{head}{tail}");
            let hit = line.match_indices(&foreign).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let path = foreign.starts_with('/');
                !path || !before.is_some_and(|c| c.is_alphanumeric() || "_-./}*".contains(c))
            });
            if hit {
                found.push(Finding::new(file, i + 1, format!("`{foreign}` {why}")));
            }
        }
    }
    found
}

#[test]
fn empty_names_are_found() {
    for bad in [
        "struct FileManager;",
        "enum ParseHelper {}",
        "fn process_rows() {}",
        "pub(crate) async fn do_it() {}",
        "mod utils;",
        "mod common { }",
        "trait StoreUtil {}",
        "const MISC_LIMIT: u8 = 1;",
        "struct CommonOptions;",
        "fn path_helper() {}",
    ] {
        assert_eq!(check_names("a.rs", bad).len(), 1, "{bad}");
    }
    for fine in [
        "use std::process::Command;",
        "fn done() {}",
        "fn common_prefix() {}",
        "fn reprocess() {}",
        "// struct Manager",
        "let s = \"struct Manager\";",
        "struct Utility;",
        "fn domain() {}",
    ] {
        assert_eq!(check_names("a.rs", fine).len(), 0, "{fine}");
    }
}

#[test]
fn empty_places_are_found() {
    assert!(check_path("crates/lakebed/src/utils.rs").is_some());
    assert!(check_path("crates/lakebed/src/common/mod.rs").is_some());
    assert!(check_path("crates/lakebed/src/log/helpers.rs").is_some());
    assert!(check_path("crates/lakebed/src/log/read.rs").is_none());
}

#[test]
fn foreign_texts_are_found() {
    for (head, tail, _) in FOREIGN_TEXTS {
        let text = format!("fine\nsee {head}{tail}x\n");
        let found = check_texts("a.md", &text);
        assert_eq!(
            found.iter().map(|f| f.line).collect::<Vec<_>>(),
            [2],
            "{text}"
        );
    }
    let inside = format!("a/b{}{}c", FOREIGN_TEXTS[0].0, FOREIGN_TEXTS[0].1);
    assert_eq!(check_texts("a.md", &inside).len(), 0);
}
