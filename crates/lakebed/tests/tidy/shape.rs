//! Sizes of files and functions, and what every file begins with.

use crate::Finding;
use crate::scan::{Token, closing, production, test_modules, tokens};

/// Most lines of production code in a file.
const MAX_FILE_LINES: usize = 800;
/// Most lines of a function.
const MAX_FUNCTION_LINES: usize = 70;
/// Most lines of test modules that stand in the file they test.
const MAX_INLINE_TEST_LINES: usize = 200;

/// Every file says first what it is for.
pub(crate) fn check_module_doc(file: &str, source: &str) -> Option<Finding> {
    let first = source.lines().find(|line| !line.trim().is_empty());
    if first.is_some_and(|line| line.strip_prefix("//!").is_some_and(|t| t.trim().len() > 1)) {
        return None;
    }
    Some(Finding::new(
        file,
        1,
        "the file does not begin with a `//!` module doc".to_owned(),
    ))
}

/// Files, functions and inline tests that are too long.
pub(crate) fn check_sizes(file: &str, source: &str) -> Vec<Finding> {
    let code = tokens(source);
    let mut found = Vec::new();
    let mut test_lines = 0;
    for module in test_modules(&code).iter().filter(|m| m.inline) {
        test_lines += code[module.last].line + 1 - code[module.first].line;
    }
    if test_lines > MAX_INLINE_TEST_LINES {
        let what = format!(
            "{test_lines} lines of inline tests, {MAX_INLINE_TEST_LINES} at most: move them to `tests.rs` beside it"
        );
        found.push(Finding::new(file, 1, what));
    }
    let lines = source.lines().count() - test_lines;
    if lines > MAX_FILE_LINES {
        let what = format!("{lines} lines of production code, {MAX_FILE_LINES} at most");
        found.push(Finding::new(file, 1, what));
    }
    for (name, first, last) in functions(&production(&code)) {
        let lines = last + 1 - first;
        if lines > MAX_FUNCTION_LINES {
            let what = format!("function `{name}` has {lines} lines, {MAX_FUNCTION_LINES} at most");
            found.push(Finding::new(file, first, what));
        }
    }
    found
}

/// Name, first and last line of every function that has a body.
fn functions(code: &[Token]) -> Vec<(&str, usize, usize)> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let Some(name) = code.get(at + 1).filter(|t| token.is("fn") && t.is_name()) else {
            continue;
        };
        let mut end = at + 2;
        while let Some(next) = code.get(end) {
            match next.text.as_str() {
                "(" | "[" => end = closing(code, end) + 1,
                "{" => {
                    found.push((
                        name.text.as_str(),
                        token.line,
                        code[closing(code, end)].line,
                    ));
                    break;
                }
                ";" => break,
                _ => end += 1,
            }
        }
    }
    found
}

#[test]
fn a_missing_module_doc_is_found() {
    assert!(check_module_doc("a.rs", "// a comment\n//! late\n").is_some());
    assert!(check_module_doc("a.rs", "use std::fmt;\n").is_some());
    assert!(
        check_module_doc("a.rs", "//! x\n").is_some(),
        "a doc of one letter says nothing"
    );
    assert!(check_module_doc("a.rs", "").is_some());
    assert!(check_module_doc("a.rs", "\n//! What it is for.\n").is_none());
}

#[test]
fn long_files_are_found_without_their_tests() {
    let long = "// line\n".repeat(MAX_FILE_LINES + 1);
    assert_eq!(check_sizes("a.rs", &long).len(), 1);
    let tests = format!(
        "#[cfg(test)]\nmod tests {{\n{}}}\n",
        "// line\n".repeat(100)
    );
    let fine = format!("{}{tests}", "// line\n".repeat(MAX_FILE_LINES));
    assert_eq!(check_sizes("a.rs", &fine).len(), 0);
}

#[test]
fn long_inline_tests_are_found() {
    let body = "// line\n".repeat(MAX_INLINE_TEST_LINES);
    let long = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{body}}}\n");
    assert_eq!(check_sizes("a.rs", &long).len(), 1);
    assert_eq!(
        check_sizes("a.rs", "fn a() {}\n#[cfg(test)]\nmod tests;\n").len(),
        0
    );
}

#[test]
fn long_functions_are_found_by_their_braces() {
    let body = "let x = \"}\"; // }\n".repeat(MAX_FUNCTION_LINES);
    let long = format!(
        "impl A {{\nfn first(a: [u8; 2]) -> u8 {{ 1 }}\nfn second()\nwhere A: B {{\n{body}}}\n}}\n"
    );
    let found = check_sizes("a.rs", &long);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].line, 3);
    assert!(found[0].what.contains("`second`"));
    let fine = format!(
        "fn a() {{\n{}}}\n",
        "// line\n".repeat(MAX_FUNCTION_LINES - 2)
    );
    assert_eq!(check_sizes("a.rs", &fine).len(), 0);
    let declared = "trait A { fn a(&self) -> [u8; 3]; fn b(); }\nfn c(f: impl Fn() -> u8) {}";
    assert_eq!(functions(&tokens(declared)).len(), 1);
}
