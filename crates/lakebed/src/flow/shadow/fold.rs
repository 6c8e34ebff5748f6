//! The stage `fold`: a day's fold under the rules of both, of what its final snapshot was made of.

use std::path::Path;

use crate::config::SourceConfig;
use crate::error::{Error, Result};
use crate::flow::declared::hash_of;
use crate::flow::fold::{FoldSource, MadeOf, RowBudget, load_settled};
use crate::flow::shadow::record::{ShadowBegun, ShadowDate, ShadowOptions, ShadowPair, Shadowed};
use crate::flow::shadow::tables::{RowsOf, ShadowTable, compare_tables};
use crate::ingest::Progress;
use crate::log::DatasetState;
use crate::name::{ContentHash, FoldName};
use crate::spec::FieldSpec;
use crate::store::Lake;
use crate::time::BusinessDate;

/// The column of events that names the field that changed.
const FIELD: &str = "field";

/// Two sets of rules of a fold.
pub struct ShadowFold {
    lake: Lake,
    old: FoldSource,
    new: FoldSource,
    pair: ShadowPair,
    snapshot: DatasetState,
    /// The inputs of both.
    inputs: Vec<DatasetState>,
}

impl ShadowFold {
    /// Reads the rules of both: those of the source, and those of a file like its own.
    ///
    /// # Errors
    /// `NotFound` where one of them has no such fold; `PreconditionFailed` where both are the same, or have other keys.
    pub async fn open(
        lake: &Lake,
        (old, new): (&SourceConfig, (&SourceConfig, &str)),
        name: &FoldName,
    ) -> Result<Self> {
        let (new, file) = new;
        let source = &old.name;
        let present = open_rules(lake, old, name).await?;
        let tried = open_rules(lake, new, name).await;
        let tried = tried.map_err(|e| e.with("file", file))?;
        let ((old, new), hashes) = ((present.0, tried.0), (present.1, tried.1));
        let pair = ShadowPair::new(source, &format!("fold.{name}"), (&hashes.0, &hashes.1))?;
        let key = |fold: &FoldSource| names_of(fold.bound.rules.key());
        if key(&old) != key(&new) {
            return Err(Error::precondition(format!(
                "the keys of both folds are others: {} and {}",
                key(&old).join(", "),
                key(&new).join(", ")
            ))
            .with("file", file)
            .with("key", format!("fold.{name}.key"))
            .hint(
                "rows of both meet by their key: a fold with another key makes another dataset",
            ));
        }
        let mut inputs: Vec<DatasetState> = Vec::new();
        for input in old.bound.rules.inputs.iter().chain(&new.bound.rules.inputs) {
            if inputs.iter().all(|s| *s.dataset() != input.dataset) {
                inputs.push(load_settled(lake, &input.dataset).await?);
            }
        }
        Ok(Self {
            lake: lake.clone(),
            snapshot: load_settled(lake, &old.snapshot.0).await?,
            old,
            new,
            pair,
            inputs,
        })
    }

    /// What the records are kept by.
    #[must_use]
    pub fn pair(&self) -> &ShadowPair {
        &self.pair
    }

    /// Compares what both make of a date.
    ///
    /// # Errors
    /// What reading the rows of the day answers.
    pub fn compare(
        &self,
        date: BusinessDate,
        options: &ShadowOptions,
        progress: &dyn Progress,
    ) -> Result<Shadowed> {
        let inputs: Vec<&DatasetState> = self.inputs.iter().collect();
        let presence = self.old.bound.rules.presence();
        let presence = presence.map(|n| &self.old.bound.rules.inputs[n].dataset);
        let list = presence.and_then(|list| self.inputs.iter().find(|s| s.dataset() == list));
        let made = match MadeOf::find(&self.lake, &self.snapshot, &inputs, (date, list))? {
            Ok(made) => made,
            Err(why) => return Ok(Shadowed::Missing(why)),
        };
        let content = made.content(&self.lake, &inputs)?;
        let mut open = match ShadowDate::begin(&self.pair, (date, content), options)? {
            ShadowBegun::Kept(day) => return Ok(Shadowed::Compared(day)),
            ShadowBegun::Open(open) => open,
        };
        let work = open.work()?.to_owned();
        progress.begin(None);
        let mut folded = Ok(());
        for (fold, side) in [(&self.old, "old"), (&self.new, "new")] {
            let files = (file(&work, side, "row"), file(&work, side, "event"));
            let budget = RowBudget {
                bytes: options.memory_bytes,
                folder: work.join(format!("{side}.sorting")),
                threads: options
                    .threads
                    .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)),
            };
            folded = folded.and_then(|()| {
                let of = (&self.lake, inputs.as_slice());
                made.fold(of, fold, (&files.0, &files.1), budget, progress)
            });
        }
        progress.end();
        folded?;
        self.compare_both(&work, &mut open, options)?;
        open.finish().map(Shadowed::Compared)
    }

    fn compare_both(
        &self,
        work: &Path,
        open: &mut ShadowDate,
        options: &ShadowOptions,
    ) -> Result<()> {
        let key = names_of(self.old.bound.rules.key());
        let mut of_event = key.clone();
        of_event.push(FIELD.to_owned());
        for (kind, key, optional) in [("row", &key, 0), ("event", &of_event, 1)] {
            let dataset = match kind {
                "row" => &self.old.snapshot.0,
                _ => &self.old.events.0,
            };
            let table = |fold: &FoldSource, side: &str| ShadowTable {
                path: file(work, side, kind),
                fields: match kind {
                    "row" => fold.bound.snapshot.clone(),
                    _ => fold.bound.events.clone(),
                },
            };
            let name = dataset.dataset.as_str();
            let of = RowsOf {
                kind,
                dataset: name,
                key,
                optional,
                nulls_first: true,
                is_ignored: &|field| options.is_ignored(name, field),
            };
            let tables = (table(&self.old, "old"), table(&self.new, "new"));
            compare_tables(&of, (&tables.0, &tables.1), &mut |item| {
                open.take(None, item)
            })?;
        }
        Ok(())
    }
}

/// A fold with what names it: as it is written, over the types of its inputs.
async fn open_rules(
    lake: &Lake,
    source: &SourceConfig,
    name: &FoldName,
) -> Result<(FoldSource, ContentHash)> {
    let fold = FoldSource::unpublished(lake, source, name).await?;
    let written = hash_of("fold/1", &source.folds.get(name))?;
    let named = format!("{written} {}", fold.bound.rules.hash());
    Ok((fold, ContentHash::of(named.as_bytes())))
}

fn file(work: &Path, side: &str, kind: &str) -> std::path::PathBuf {
    work.join(format!("{side}.{kind}.parquet"))
}

fn names_of(fields: &[FieldSpec]) -> Vec<String> {
    fields.iter().map(|f| f.name.clone()).collect()
}
