//! Rules for pages of which nothing is known yet, as far as the pages themselves tell: a first draft, for people to go on
//! with.
//!
//! ```text
//! pages of a list   -> links    the next page; cards    the links that most look like items; totals    how many there are
//! pages of items    -> labels, tables, crumbs, leaves, structured    where values stand; places    one field of several
//!                      others   what stands there of other items, which is left alone
//!                      forms    what is done to them: numbers, days, texts
//! both              -> the rules are run over the pages; what does not give what it was drafted for is left out
//!                      written  the lines of `source.toml`, each with what it gave
//!                      file     their place in a file that has other rules
//! ```
//! Nothing here is remembered: what stands in `source.toml` counts, whoever wrote it.

mod build;
mod cards;
mod crumbs;
mod file;
mod forms;
mod labels;
mod leaves;
mod links;
mod names;
mod others;
mod places;
mod seen;
#[cfg(test)]
mod shop_tests;
mod structured;
mod tables;
#[cfg(test)]
mod tests;
mod totals;
mod written;

use serde::Serialize;

use crate::name::{SourceName, StageName};
use crate::parse::draft::build::Builder;
use crate::parse::draft::seen::Seen;
use crate::parse::page::PageInput;

pub use file::{page_block, put_page};

/// Pages that are looked at; more tell little more.
const MAX_PAGES: usize = 50;

/// Rules for the pages of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The table `[[parse.page]]`, as it may stand in `source.toml`.
    pub text: String,
    /// Pages that it was drafted from.
    pub pages: usize,
    /// What it finds.
    pub lines: Vec<DraftLine>,
}

/// A field or a group of links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftLine {
    /// The field; the stage that links lead to.
    pub name: String,
    /// Its rule, as it stands in the file.
    pub rule: String,
    /// What it gave on the first page that has it.
    pub sample: String,
    /// Pages on which it gave something.
    pub on_pages: usize,
}

/// Rules for the links of a list: to its items, which are of stage `to`, and to its next page. `None` where no group of
/// links stands out.
#[must_use]
pub fn draft_links(stage: &StageName, to: &StageName, pages: &[PageInput<'_>]) -> Option<Draft> {
    let seen = Seen::of_all(pages);
    let drafted = links::find(&seen, stage, to);
    (!drafted.is_empty()).then(|| written::list(stage, drafted, seen.len()))
}

/// Rules for one record a page. `zone` is that of times without an offset. `None` where the pages show nothing.
#[must_use]
pub fn draft_fields(
    source: &SourceName,
    stage: &StageName,
    pages: &[PageInput<'_>],
    zone: &str,
) -> Option<Draft> {
    let seen = Seen::of_all(pages);
    let mut builder = Builder::new(&seen, zone);
    structured::key_and_title(&seen, &mut builder);
    builder.begin_way();
    structured::linked_data(&seen, &mut builder);
    builder.begin_way();
    structured::body(&seen, &mut builder);
    builder.begin_way();
    labels::find(&seen, &mut builder);
    tables::find(&seen, &mut builder);
    crumbs::find(&seen, &mut builder);
    builder.begin_way();
    leaves::find(&seen, &mut builder);
    let fields = builder.finish(source);
    // Every page has an address.
    let is_told = fields.iter().any(|field| field.config.table.page.is_none());
    is_told.then(|| written::detail(stage, fields, seen.len()))
}
