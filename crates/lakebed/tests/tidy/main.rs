//! The house rules as a test: layers, sizes, names, module docs, foreign texts.
//!
//! It reads the sources of every crate and the other files of the repository, and fails with file
//! and line. Each rule is a function over one file's text, tested in its own module with a snippet
//! that breaks it.

mod cycles;
mod edges;
mod environment;
mod invariants;
mod scan;
mod shape;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: String) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A text file of the repository, its path relative to the root.
#[derive(Debug)]
struct SourceFile {
    path: String,
    text: String,
}

impl SourceFile {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate's name and the path below its `src`; `None` for a file elsewhere.
    fn in_src(&self) -> Option<(&str, &str)> {
        let (krate, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        Some((krate, rest.strip_prefix("src/")?))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is built, fetched or written by programs.
const SKIPPED_FOLDERS: [&str; 7] = [
    ".git",
    "target",
    ".venv",
    "venv",
    "out",
    "__pycache__",
    "node_modules",
];

fn collect(folder: &Path, prefix: &str, into: &mut Vec<SourceFile>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                collect(&entry.path(), &format!("{path}/"), into)?;
            }
        } else if kind.is_file()
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            into.push(SourceFile { path, text });
        }
    }
    Ok(())
}

fn repository() -> std::io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    collect(&root(), "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Paths of files that are modules of tests: `tests.rs`, and what `#[cfg(test)] mod x;` declares.
fn test_files(files: &[SourceFile]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        if name == "tests.rs" || !file.path.contains("/src/") {
            found.insert(file.path.clone());
        }
        let base = match name {
            "lib.rs" | "mod.rs" | "main.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        for module in scan::test_modules(&scan::tokens(&file.text)) {
            if !module.inline {
                found.insert(format!("{base}/{}.rs", module.name));
                found.insert(format!("{base}/{}/mod.rs", module.name));
            }
        }
    }
    found
}

fn check_all(files: &[SourceFile]) -> Vec<Finding> {
    let tests = test_files(files);
    let exports = files
        .iter()
        .find(|f| f.path == "crates/lakebed/src/lib.rs")
        .map(|f| edges::re_exports(&f.text))
        .unwrap_or_default();
    let mut found = Vec::new();
    for file in files {
        let (path, text) = (file.path.as_str(), file.text.as_str());
        found.extend(words::check_texts(path, text));
        if let Some(krate) = manifest_of(path) {
            found.extend(edges::check_manifest(krate, path, text));
        }
        if !file.is_rust() {
            continue;
        }
        found.extend(words::check_names(path, text));
        found.extend(words::check_path(path));
        found.extend(shape::check_module_doc(path, text));
        if tests.contains(path) {
            continue;
        }
        found.extend(shape::check_sizes(path, text));
        if let Some((krate, relative)) = file.in_src() {
            found.extend(edges::check_crates(krate, path, text));
            if krate == "lakebed" {
                found.extend(edges::check_layers(path, relative, text, &exports));
            }
        }
    }
    found.extend(cycles::check(files, &tests));
    found.extend(invariants::check(files, &tests));
    found.extend(environment::check(files));
    found.sort();
    found
}

/// The crate whose manifest lies at `path`.
fn manifest_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}

#[test]
fn the_house_is_tidy() {
    let files = repository().unwrap();
    let rust = files.iter().filter(|f| f.in_src().is_some()).count();
    assert!(
        rust > 20,
        "only {rust} sources were found: the walk is wrong"
    );
    let found = check_all(&files);
    let text: Vec<String> = found.iter().map(Finding::to_string).collect();
    assert!(
        found.is_empty(),
        "{} findings:\n{}",
        found.len(),
        text.join("\n")
    );
}

#[test]
fn each_rule_is_applied_to_the_files_it_is_for() {
    let file = |path: &str, text: &str| SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let long = format!("//! A doc.\nfn a() {{\n{}}}\n", "// line\n".repeat(80));
    let files = [
        file(
            "crates/lakebed/src/lib.rs",
            "//! A doc.\npub use log::Fold;\n",
        ),
        file(
            "crates/lakebed/src/spec/a.rs",
            "//! A doc.\nuse crate::Fold;\n",
        ),
        file("crates/lakebed/src/store/long.rs", &long),
        file("crates/lakebed/src/store/tests.rs", &long),
        file(
            "crates/lakebed/src/log/mod.rs",
            "//! A doc.\n#[cfg(test)]\nmod suite;\n",
        ),
        file("crates/lakebed/src/log/suite.rs", &long),
        file(
            "crates/lakebed/tests/it.rs",
            "//! A doc.\nstruct FileManager;\n",
        ),
        file(
            "crates/lakebed-query/src/lib.rs",
            "//! A doc.\nuse clap::Parser;\n",
        ),
        file(
            "crates/lakebed-query/Cargo.toml",
            "[dependencies]\nclap = \"4\"\n",
        ),
        file("crates/lakebed-cli/src/misc.rs", "fn main() {}\n"),
        file("docs/a.md", &format!("at {}{}x\n", "/wo", "rk/")),
    ];
    let found = check_all(&files);
    let places: Vec<(&str, usize)> = found.iter().map(|f| (f.file.as_str(), f.line)).collect();
    assert_eq!(
        places,
        [
            ("crates/lakebed-cli/src/misc.rs", 1),
            ("crates/lakebed-cli/src/misc.rs", 1),
            ("crates/lakebed-query/Cargo.toml", 2),
            ("crates/lakebed-query/src/lib.rs", 2),
            ("crates/lakebed/src/spec/a.rs", 2),
            ("crates/lakebed/src/store/long.rs", 2),
            ("crates/lakebed/tests/it.rs", 2),
            ("docs/a.md", 1),
        ],
        "{found:#?}"
    );
}
