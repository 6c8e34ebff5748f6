//! The stage `parse`: two sets of rules over the same pages.

use std::path::Path;

use crate::error::Result;
use crate::flow::packs::{SourcePack, list_packs};
use crate::flow::parse::pages::{Came, Parsing, bytes_of, parse_packs};
use crate::flow::shadow::page::compare_pages;
use crate::flow::shadow::record::{
    PagePlace, ShadowBegun, ShadowDate, ShadowOptions, ShadowPair, Shadowed,
};
use crate::ingest::Progress;
use crate::name::{ContentHash, SourceName};
use crate::parse::Rules;
use crate::store::Lake;
use crate::time::BusinessDate;

/// What the records say of the stage.
const STAGE: &str = "parse";

/// Two sets of parse rules of a source.
#[derive(Debug, Clone, Copy)]
pub struct ShadowRules<'a> {
    /// The source.
    pub source: &'a SourceName,
    /// The rules as they are.
    pub old: &'a Rules,
    /// The rules that are tried.
    pub new: &'a Rules,
    /// The source's folder: commands run there.
    pub folder: &'a Path,
}

impl ShadowRules<'_> {
    /// What the records are kept by.
    ///
    /// # Errors
    /// `PreconditionFailed` where the rules are the same.
    pub fn pair(&self) -> Result<ShadowPair> {
        ShadowPair::new(self.source, STAGE, (self.old.hash(), self.new.hash()))
    }

    /// Compares what both give for the packs of a date.
    ///
    /// # Errors
    /// `PreconditionFailed` where the rules are the same; what reading a pack or a program that parses answers.
    pub async fn compare(
        &self,
        lake: &Lake,
        date: BusinessDate,
        options: &ShadowOptions,
        progress: &dyn Progress,
    ) -> Result<Shadowed> {
        let pair = self.pair()?;
        let packs = list_packs(lake, self.source, date, date).await?;
        if packs.is_empty() {
            return Ok(Shadowed::Missing(format!(
                "`{}` has no pack of {date}",
                self.source
            )));
        }
        let mut open = match ShadowDate::begin(&pair, (date, name_inputs(&packs)), options)? {
            ShadowBegun::Kept(day) => return Ok(Shadowed::Compared(day)),
            ShadowBegun::Open(open) => open,
        };
        let packs: Vec<&SourcePack> = packs.iter().collect();
        let parsing = Parsing {
            rules: self.old,
            beside: Some(self.new),
            folder: self.folder,
            threads: options.threads,
        };
        progress.begin(Some(bytes_of(&packs)?));
        let read = parse_packs(&packs, &parsing, |came| {
            let Came::Page(page) = came else {
                return Ok(());
            };
            let Some(beside) = &page.beside else {
                return Ok(());
            };
            open.count_page();
            let is_ignored = |dataset: &str, field: &str| options.is_ignored(dataset, field);
            let place = PagePlace {
                run: &page.run,
                capture_id: &page.parsed.capture_id,
                url: &page.parsed.url,
            };
            for item in compare_pages(&page.parsed, beside, &is_ignored)? {
                open.take(Some(place), item)?;
            }
            progress.advance(page.bytes, page.parsed.records.len() as u64, 0);
            Ok(())
        });
        progress.end();
        read?;
        open.finish().map(Shadowed::Compared)
    }
}

fn name_inputs(packs: &[SourcePack]) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    for pack in packs {
        hasher.update(format!("{} {}\n", pack.run, pack.blake3).as_bytes());
    }
    ContentHash::finish(&hasher)
}
