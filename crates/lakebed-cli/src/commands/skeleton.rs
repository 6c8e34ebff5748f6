//! The skeleton of a source that is crawled: what `source new` writes, and how it is known again where it was left as it
//! is. Its pages were made up; they stand in for pages of the site.

use std::fs;
use std::path::{Path, PathBuf};

use lakebed::name::{SourceName, StageName};
use lakebed::parse::page_block;

/// `source.toml`, with places for what the call says.
pub(super) const SOURCE: &str = include_str!("source/skeleton/source.toml");
/// The first schema version.
pub(super) const SCHEMA: &str = include_str!("source/skeleton/v1.toml");
/// `seeds.txt`.
pub(super) const SEEDS: &str = include_str!("source/skeleton/seeds.txt");
/// Its pages: name, stage, path of the URL, text.
pub(super) const PAGES: [(&str, &str, &str, &str); 2] = [
    (
        "list.html",
        "list",
        "/list",
        include_str!("source/skeleton/list.html"),
    ),
    (
        "detail.html",
        "detail",
        "/item/1001",
        include_str!("source/skeleton/detail.html"),
    ),
];

/// The schema of the skeleton of this source.
pub(super) fn skeleton_schema(name: &SourceName) -> String {
    SCHEMA.replace("@NAME@", name.as_str())
}

/// What the skeleton says above its rules, and what stands there once they are drafted from pages of the site.
const ABOUT_RULES: [&str; 2] = [
    "# These rules fit the test site (`lakebed demo-site`): put the selectors of yours in their place. Then\n",
    "# Drafted from pages of the site, with what each rule gave there: look at them, and take away what nobody needs. Then\n",
];

/// Whether the rules of a stage are still those of the skeleton.
pub(super) fn is_skeleton_rules(text: &str, stage: &StageName) -> bool {
    let own = page_block(SOURCE, stage);
    own.is_some_and(|own| page_block(text, stage).is_some_and(|block| block.trim() == own.trim()))
}

/// The text without what the skeleton says of its rules.
pub(super) fn told_as_drafted(text: &str) -> String {
    let [skeleton, drafted] = ABOUT_RULES;
    text.replace(skeleton, drafted)
}

/// Whether a page of a fixture is one of the skeleton's, byte by byte.
pub(super) fn is_skeleton_page(path: &Path) -> bool {
    let mut pages = PAGES.iter();
    let name = path.file_name().unwrap_or_default();
    let page = pages.find(|(own, ..)| name == *own);
    page.is_some_and(|page| fs::read(path).is_ok_and(|bytes| bytes == page.3.as_bytes()))
}

/// The pages of a stage in a folder of fixtures that are still those of the skeleton.
pub(super) fn skeleton_pages(folder: &Path, stage: &str) -> Vec<PathBuf> {
    let pages = PAGES.iter().filter(|(_, own, ..)| *own == stage);
    let pages = pages.map(|(name, ..)| folder.join(name));
    pages.filter(|path| is_skeleton_page(path)).collect()
}
