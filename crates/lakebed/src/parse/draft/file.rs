//! A table `[[parse.page]]` in the text of a `source.toml`: found, and put in the place of another.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::name::StageName;

/// The tables of a stage, with what belongs to them; comments before a table are not part of it.
fn blocks(text: &str, stage: &StageName) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut begin: Option<usize> = None;
    // Where the last line ends that is neither blank nor a comment.
    let (mut at, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let is_page = bare
            .strip_prefix("[[parse.page]]")
            .is_some_and(|rest| rest.trim().is_empty() || rest.trim().starts_with('#'));
        let is_inner = bare.starts_with("[[parse.page.") || bare.starts_with("[parse.page.");
        if is_page || (bare.starts_with('[') && !is_inner) {
            blocks.extend(begin.take().map(|begin| begin..end));
        }
        if is_page {
            begin = Some(at);
        }
        at += line.len();
        if !bare.is_empty() && !bare.starts_with('#') {
            end = at;
        }
    }
    blocks.extend(begin.map(|begin| begin..end));
    blocks.retain(|block| {
        stage_of(text.get(block.clone()).unwrap_or_default()).as_deref() == Some(stage.as_str())
    });
    blocks
}

/// The stage that a table is for.
fn stage_of(block: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(block).ok()?;
    let page = table.get("parse")?.get("page")?.get(0)?;
    Some(page.get("stage")?.as_str()?.to_owned())
}

/// The text of the table of a stage; `None` where there is none, or more than one.
#[must_use]
pub fn page_block<'t>(text: &'t str, stage: &StageName) -> Option<&'t str> {
    match blocks(text, stage).as_slice() {
        [one] => text.get(one.clone()),
        _ => None,
    }
}

/// The text with another table in the place of that of the stage, at its end where there is none.
///
/// # Errors
/// `FailedPrecondition` where the stage has several tables.
pub fn put_page(text: &str, stage: &StageName, block: &str) -> Result<String> {
    let block = block.trim_end();
    let mut found = blocks(text, stage).into_iter();
    match (found.next(), found.next()) {
        (None, _) => Ok(format!("{}\n\n{block}\n", text.trim_end())),
        (Some(place), None) => {
            let (before, after) = (text.get(..place.start), text.get(place.end..));
            Ok(format!(
                "{}{block}\n{}",
                before.unwrap_or_default(),
                after.unwrap_or_default()
            ))
        }
        (Some(_), Some(_)) => Err(Error::precondition(format!(
            "stage `{stage}` has several tables [[parse.page]], and a draft takes the place of one"
        ))
        .hint("without `--write` the draft is shown: take from it what is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "class = \"log\"\n\n# about lists\n[[parse.page]]\nstage = \"list\"\n\n[[parse.page.follow]]\nstage = \"detail\"\nurl = \"a\"\n\n\
         # about details\n[[parse.page]]   # one each\nstage = \"detail\"\n[[parse.page.item]]\n[parse.page.item.field]\nid = { path = -1 }\n\n# the end\n[dataset.x]\nkey = [\"id\"]\n";

    #[test]
    fn a_table_takes_the_place_of_another_and_comments_stay() {
        let (list, detail, other) = (
            "list".parse().unwrap(),
            "detail".parse().unwrap(),
            "other".parse().unwrap(),
        );
        let block = page_block(FILE, &list).unwrap();
        assert!(
            block.starts_with("[[parse.page]]\n") && block.ends_with("url = \"a\"\n"),
            "{block}"
        );
        let put = put_page(
            FILE,
            &detail,
            "[[parse.page]]\nstage = \"detail\"\nnew = 1\n",
        )
        .unwrap();
        assert!(put.contains("# about details\n[[parse.page]]\nstage = \"detail\"\nnew = 1\n\n# the end\n[dataset.x]"), "{put}");
        assert_eq!(page_block(&put, &list), Some(block));
        let put = put_page(FILE, &other, "[[parse.page]]\nstage = \"other\"").unwrap();
        assert!(
            put.starts_with(FILE.trim_end())
                && put.ends_with("\n\n[[parse.page]]\nstage = \"other\"\n"),
            "{put}"
        );
        let twice = format!("{FILE}\n[[parse.page]]\nstage = \"list\"\nname = \"b\"\n");
        assert!(page_block(&twice, &list).is_none());
        assert!(put_page(&twice, &list, "").is_err());
    }
}
