//! `docs/invariants.md` and the code say the same: every id is declared once, documented, and attacked.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::SourceFile;
use crate::scan::tokens;

/// The page of all invariants.
const PAGE: &str = "docs/invariants.md";
/// Where the kill points are listed.
const KILL_POINTS_FILE: &str = "crates/lakebed/src/fault.rs";

/// An id such as `LOG-2` in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    id: String,
    file: String,
    line: usize,
}

/// The invariant id that `text` begins with: two to five capitals, a hyphen, digits.
fn leading_id(text: &str) -> Option<&str> {
    let (letters, rest) = text.split_once('-')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let good = !["UTF", "ISO", "SHA"].contains(&letters)
        && (2..=5).contains(&letters.len())
        && letters.bytes().all(|b| b.is_ascii_uppercase())
        && digits > 0;
    good.then(|| &text[..letters.len() + 1 + digits])
}

/// Ids that a file's docs declare: `LOG-2: ...`, or a table row `| LOG-2 | ... |`.
fn declared(file: &SourceFile) -> Vec<Mention> {
    let mut found = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let Some(doc) = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"))
        else {
            continue;
        };
        let words = doc.split_whitespace().filter_map(|w| w.strip_suffix(':'));
        let row = doc
            .trim()
            .strip_prefix('|')
            .and_then(|r| r.split('|').next());
        for word in words.chain(row.map(str::trim)) {
            if leading_id(word) == Some(word) {
                found.push(Mention {
                    id: word.to_owned(),
                    file: file.path.clone(),
                    line: i + 1,
                });
            }
        }
    }
    found
}

/// A row of the page: id, line, and the names in its last cell.
fn documented(page: &str) -> Vec<(String, usize, Vec<String>)> {
    let mut found = Vec::new();
    for (i, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let first = cells[0].trim();
        if line.starts_with('|') && leading_id(first) == Some(first) {
            let last = cells.last().copied().unwrap_or_default();
            let names = last
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            found.push((first.to_owned(), i + 1, names));
        }
    }
    found
}

/// Quoted names of the array `KILL_POINTS`.
fn kill_points(source: &str) -> Vec<String> {
    let Some((_, rest)) = source.split_once("KILL_POINTS: [&str;") else {
        return Vec::new();
    };
    let list = rest.split_once("];").map_or(rest, |(list, _)| list);
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Names of functions, and paths of files: what a row may name as its test.
fn attackers(files: &[SourceFile]) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = files.iter().map(|f| f.path.clone()).collect();
    for file in files.iter().filter(|f| f.is_rust()) {
        let code = tokens(&file.text);
        for pair in code.windows(2).filter(|pair| pair[0].is("fn")) {
            found.insert(pair[1].text.clone());
        }
    }
    found
}

/// What page and code say differently.
pub(crate) fn check(files: &[SourceFile], tests: &BTreeSet<String>) -> Vec<Finding> {
    let text = |path: &str| {
        let file = files.iter().find(|f| f.path == path);
        file.map_or("", |f| f.text.as_str())
    };
    let page = text(PAGE);
    let rows = documented(page);
    let attackers = attackers(files);
    let mut first: BTreeMap<String, Mention> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|f| f.is_rust() && f.in_src().is_some() && !tests.contains(&f.path))
    {
        for mention in declared(file) {
            if let Some(other) = first.get(&mention.id) {
                let what = format!("`{}` is declared in {}, too", mention.id, other.file);
                found.push(Finding::new(&mention.file, mention.line, what));
            } else if !rows.iter().any(|(id, _, _)| *id == mention.id) {
                let what = format!("`{}` is not in {PAGE}", mention.id);
                found.push(Finding::new(&mention.file, mention.line, what));
            }
            first.insert(mention.id.clone(), mention);
        }
    }
    for (id, line, tests) in &rows {
        if !first.contains_key(id) {
            found.push(Finding::new(
                PAGE,
                *line,
                format!("no code declares `{id}`"),
            ));
        }
        if tests.is_empty() {
            found.push(Finding::new(PAGE, *line, format!("no test attacks `{id}`")));
        }
        for test in tests.iter().filter(|t| !attackers.contains(*t)) {
            found.push(Finding::new(
                PAGE,
                *line,
                format!("there is no test `{test}`"),
            ));
        }
    }
    for point in kill_points(text(KILL_POINTS_FILE)) {
        if !page.contains(&format!("`{point}`")) {
            found.push(Finding::new(
                PAGE,
                1,
                format!("kill point `{point}` is not listed"),
            ));
        }
    }
    found
}

#[cfg(test)]
fn file(path: &str, text: &str) -> SourceFile {
    SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn page_and_code_that_agree_give_nothing() {
    let files = [
        file(
            "crates/a/src/a.rs",
            "//! LOG-1: x. UTF-8: no id, nor `LOG-9`.\n//! | FIL-1 | y |\n//! | FIL-1, LOG-1 | both |\nfn attack() {}\n",
        ),
        file(
            PAGE,
            "| id | what | test |\n| LOG-1 | x | `attack`, `.ci/b.py` |\n| FIL-1 | y | `attack` |\n`a.b`\n",
        ),
        file("crates/a/src/tests.rs", "/// LOG-1: an attack.\n"),
        file(".ci/b.py", ""),
        file(
            KILL_POINTS_FILE,
            "pub const KILL_POINTS: [&str; 1] = [\n    \"a.b\",\n];\n",
        ),
    ];
    let tests = BTreeSet::from(["crates/a/src/tests.rs".to_owned()]);
    assert_eq!(check(&files, &tests), Vec::<Finding>::new());
}

#[test]
fn each_difference_is_found() {
    let files = [
        file(
            "crates/a/src/a.rs",
            "//! LOG-1: x.\n//! LOG-2: y.\n//! LOG-3: z.\n",
        ),
        file("crates/a/src/b.rs", "/// LOG-1: again.\n"),
        file(
            PAGE,
            "| LOG-1 | x | |\n| LOG-2 | y | `gone` |\n| CAT-1 | z | `docs/invariants.md` |\n",
        ),
        file(
            KILL_POINTS_FILE,
            "pub const KILL_POINTS: [&str; 1] = [\"a.b\"];\n",
        ),
    ];
    let tests = BTreeSet::new();
    let mut found: Vec<String> = check(&files, &tests)
        .iter()
        .map(Finding::to_string)
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "crates/a/src/a.rs:3: `LOG-3` is not in docs/invariants.md",
            "crates/a/src/b.rs:1: `LOG-1` is declared in crates/a/src/a.rs, too",
            "docs/invariants.md:1: kill point `a.b` is not listed",
            "docs/invariants.md:1: no test attacks `LOG-1`",
            "docs/invariants.md:2: there is no test `gone`",
            "docs/invariants.md:3: no code declares `CAT-1`",
        ]
    );
}
