//! Variables of the environment: each one that the repository names is a setting or is known, and
//! the page of the configuration lists them all.

use lakebed::config::{OTHER_VARIABLES, SettingKey};

use crate::{Finding, SourceFile};

const PAGE: &str = "docs/configuration.md";

/// Names with our prefix, with their lines.
fn variables(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for (at, prefix) in line.match_indices("LAKEBED_") {
            let end = line[at + prefix.len()..]
                .find(|c: char| !c.is_ascii_uppercase() && c != '_')
                .map_or(line.len(), |n| at + prefix.len() + n);
            let name = &line[at..end];
            if name != prefix {
                found.push((i + 1, name));
            }
        }
    }
    found
}

/// Names that nobody would accept, and known ones that the page does not tell.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let known: Vec<&str> = SettingKey::ALL
        .iter()
        .map(|k| k.env())
        .chain(OTHER_VARIABLES.iter().map(|(name, _)| *name))
        .collect();
    let mut found = Vec::new();
    for file in files {
        for (line, name) in variables(&file.text) {
            if !known.contains(&name) {
                let what = format!("`{name}` is neither a setting nor in `OTHER_VARIABLES`");
                found.push(Finding::new(&file.path, line, what));
            }
        }
    }
    if let Some(page) = files.iter().find(|f| f.path == PAGE) {
        for (name, meaning) in OTHER_VARIABLES {
            if !page.text.contains(&format!("| `{name}` | {meaning} |")) {
                let what = format!("`{name}` ({meaning}) has no row");
                found.push(Finding::new(PAGE, 1, what));
            }
        }
        for key in SettingKey::ALL {
            if !page
                .text
                .contains(&format!("| `{}` | `{}` |", key.name(), key.env()))
            {
                let what = format!("`{}` ({}) has no row", key.name(), key.env());
                found.push(Finding::new(PAGE, 1, what));
            }
        }
    }
    found
}

#[test]
fn names_are_taken_whole() {
    let text = "\nexport LAKEBED_LAKE=x LAKEBED_* LAKEBED_PROJECT, LAKEBED_\n";
    assert_eq!(
        variables(text),
        [(2, "LAKEBED_LAKE"), (2, "LAKEBED_PROJECT")]
    );
    let file = SourceFile {
        path: "a.sh".to_owned(),
        text: concat!("LAKEBED_", "LAEK=1").to_owned(),
    };
    assert_eq!(check(&[file]).len(), 1);
}
