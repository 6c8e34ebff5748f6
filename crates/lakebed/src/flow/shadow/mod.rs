//! Two sets of rules over the same pages, day by day, before one takes the place of the other.
//!
//! | part | what it does |
//! | --- | --- |
//! | `compare` | what both gave for a page, item by item |
//! | `record` | what was found, kept by date |
//!
//! SHD-1: a shadow run reads packs and writes beside them: no dataset, no stamp and no queue knows of it. Equal rules and
//! packs give equal records, and a date whose record is of them is not read again.

mod compare;
mod record;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::flow::packs::{SourcePack, list_packs};
use crate::flow::parse::pages::{Came, Parsing, bytes_of, parse_packs};
use crate::ingest::Progress;
use crate::name::{ContentHash, SourceName};
use crate::parse::Rules;
use crate::spec::{SHADOW_FORMAT, ShadowDay, ShadowVerdict};
use crate::store::Lake;
use crate::time::BusinessDate;

use compare::compare_pages;
use record::{Diffs, find_day, put_day};
pub use record::{ShadowSummary, summarize_shadow};

/// What the records say of the stage.
const STAGE: &str = "parse";

/// How a shadow run compares.
#[derive(Debug, Clone)]
pub struct ShadowOptions {
    /// The source's folder: commands run there.
    pub folder: PathBuf,
    /// Where records are kept: `shadow` of the project.
    pub kept: PathBuf,
    /// Fields that are not compared: `field`, or `dataset.field`.
    pub ignored: Vec<String>,
    /// Workers; `None` = the machine's cores.
    pub threads: Option<usize>,
}

impl ShadowOptions {
    fn is_ignored(&self, dataset: &str, field: &str) -> bool {
        let names = |text: &String| {
            let of = text.strip_suffix(field).and_then(|t| t.strip_suffix('.'));
            text == field || of == Some(dataset)
        };
        self.ignored.iter().any(names)
    }
}

/// Compares what two sets of rules give for the packs of a date; `None` where the date has no pack.
///
/// # Errors
/// `PreconditionFailed` where the rules are the same; what reading a pack or a program that parses answers.
pub async fn shadow_date(
    lake: &Lake,
    (old, new): (&Rules, &Rules),
    (source, date): (&SourceName, BusinessDate),
    options: &ShadowOptions,
    progress: &dyn Progress,
) -> Result<Option<ShadowDay>> {
    if old.hash() == new.hash() {
        return Err(Error::precondition(
            "both sets of rules are the same: there is nothing to compare",
        )
        .hint("write the new rules into a file beside source.toml, and name it with `--with`"));
    }
    let packs = list_packs(lake, source, date, date).await?;
    if packs.is_empty() {
        return Ok(None);
    }
    let mut day = begin_day((old, new), (source, date), &packs, options);
    let folder = record::folder_of(&options.kept, source, old, new);
    if let Some(kept) = find_day(&folder, &day)? {
        return Ok(Some(kept));
    }
    let packs: Vec<&SourcePack> = packs.iter().collect();
    let parsing = Parsing {
        rules: old,
        beside: Some(new),
        folder: &options.folder,
        threads: options.threads,
    };
    let mut diffs = Diffs::create(&folder, date)?;
    progress.begin(Some(bytes_of(&packs)?));
    let read = parse_packs(&packs, &parsing, |came| {
        let Came::Page(page) = came else {
            return Ok(());
        };
        let Some(beside) = &page.beside else {
            return Ok(());
        };
        day.pages += 1;
        let is_ignored = |dataset: &str, field: &str| options.is_ignored(dataset, field);
        for item in compare_pages(&page.parsed, beside, &is_ignored)? {
            diffs.take(&mut day, (&page.run, &page.parsed), item)?;
        }
        progress.advance(page.bytes, page.parsed.records.len() as u64, 0);
        Ok(())
    });
    progress.end();
    read?;
    if day.items.values().any(|counts| counts.differ() > 0) {
        day.verdict = ShadowVerdict::Diff;
    }
    diffs.close()?;
    put_day(&folder, &day)?;
    Ok(Some(day))
}

/// A date of which nothing was compared yet.
fn begin_day(
    (old, new): (&Rules, &Rules),
    (source, date): (&SourceName, BusinessDate),
    packs: &[SourcePack],
    options: &ShadowOptions,
) -> ShadowDay {
    let mut ignored = options.ignored.clone();
    ignored.sort();
    ignored.dedup();
    ShadowDay {
        format: SHADOW_FORMAT,
        source: source.clone(),
        stage: STAGE.to_owned(),
        date,
        old: old.hash().clone(),
        new: new.hash().clone(),
        inputs: name_inputs(packs),
        verdict: ShadowVerdict::Agree,
        pages: 0,
        items: BTreeMap::new(),
        fields: BTreeMap::new(),
        ignored,
    }
}

fn name_inputs(packs: &[SourcePack]) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    for pack in packs {
        hasher.update(format!("{} {}\n", pack.run, pack.blake3).as_bytes());
    }
    ContentHash::finish(&hasher)
}
