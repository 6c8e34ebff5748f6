//! Dates of datasets as stages read and write them, and what readers see of them: a fold of logs, never of files'
//! times.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::log::{DatasetState, load};
use crate::name::{ContentHash, DatasetRef, Layer, RunName, SourceName};
use crate::spec::{PackFileName, StampScope};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Dates of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The dataset.
    pub dataset: DatasetRef,
    /// The first date.
    pub from: BusinessDate,
    /// The last date.
    pub to: BusinessDate,
    /// Of packs: these runs alone; empty = all.
    pub runs: Vec<RunName>,
    /// Of packs that a stage reads by their runs: what tells it those that came late.
    pub flow: Option<FlowRuns>,
}

/// The flow that reads packs by their runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRuns {
    /// Its source.
    pub source: SourceName,
    /// All runs that it crawls.
    pub crawled: Vec<RunName>,
    /// Whether it is that of the whole day.
    pub is_whole: bool,
}

impl Scope {
    /// One date.
    #[must_use]
    pub fn day(dataset: DatasetRef, date: BusinessDate) -> Self {
        Self {
            dataset,
            from: date,
            to: date,
            runs: Vec::new(),
            flow: None,
        }
    }

    /// The packs of runs of a date.
    #[must_use]
    pub fn packs(dataset: DatasetRef, date: BusinessDate, runs: Vec<RunName>) -> Self {
        Self {
            runs,
            ..Self::day(dataset, date)
        }
    }

    /// Whether something may lie in both.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let all = self.runs.is_empty() || other.runs.is_empty();
        self.dataset == other.dataset
            && self.from <= other.to
            && other.from <= self.to
            && (all || self.runs.iter().any(|run| other.runs.contains(run)))
    }
}

/// The folds of the datasets that a call looks at, each read once and then caught up with its log.
#[derive(Debug)]
pub struct Sights {
    lake: Lake,
    states: BTreeMap<DatasetRef, DatasetState>,
}

impl Sights {
    /// Nothing was looked at yet.
    #[must_use]
    pub fn new(lake: Lake) -> Self {
        Self {
            lake,
            states: BTreeMap::new(),
        }
    }

    /// The fold of the dataset's log as it is now.
    ///
    /// # Errors
    /// Those of reading a log.
    pub async fn state(&mut self, dataset: &DatasetRef) -> Result<&DatasetState> {
        let state = match self.states.remove(dataset) {
            Some(mut known) => {
                known.catch_up(&self.lake).await?;
                known
            }
            None => load(&self.lake, dataset).await?.state,
        };
        Ok(self.states.entry(dataset.clone()).or_insert(state))
    }

    /// What readers see of the scope.
    ///
    /// # Errors
    /// Those of reading a log.
    pub async fn see(&mut self, scope: &Scope) -> Result<StampScope> {
        let mut scope = scope.clone();
        if let Some(flow) = scope.flow.take() {
            let late = self.late_runs(&flow, &scope).await?;
            scope.runs.extend(late);
        }
        Ok(seen(self.state(&scope.dataset).await?, &scope))
    }

    /// The lake.
    pub(super) fn lake(&self) -> &Lake {
        &self.lake
    }
}

/// What readers see of the scope in the fold.
fn seen(state: &DatasetState, scope: &Scope) -> StampScope {
    let mut stamp = StampScope {
        dataset: scope.dataset.clone(),
        from: None,
        dt: scope.to,
        runs: scope.runs.clone(),
        position: 0,
        revision: state.active_revision(scope.to),
        sealed: true,
        content: None,
    };
    let mut hasher = blake3::Hasher::new();
    let mut is_empty = true;
    for dt in state
        .dates()
        .range(scope.from..=scope.to)
        .map(|(dt, _)| *dt)
    {
        let mut has_rows = false;
        for (key, partition) in state.visible_of(dt) {
            let named = format!("{dt} {}\n", key.schema_version);
            if scope.dataset.layer == Layer::Raw {
                for (name, file) in &partition.files {
                    let of_run = PackFileName::parse(name);
                    let is_meant = scope.runs.is_empty()
                        || of_run.is_none_or(|pack| scope.runs.contains(&pack.run));
                    if is_meant && PackFileName::parse(name).is_some() {
                        has_rows = true;
                        stamp.position = stamp.position.max(file.number);
                        hasher.update(format!("{named}{name} {}\n", file.spec.blake3).as_bytes());
                    }
                }
                continue;
            }
            for input in &partition.inputs {
                has_rows = true;
                let spec = &input.spec;
                // That an input gave no row is no other content.
                if spec.rows == 0 {
                    continue;
                }
                stamp.position = stamp.position.max(input.number);
                let batch = spec.batch.as_ref().map_or("", |b| b.as_str());
                let line = format!(
                    "{named}{} {} {} {batch}\n",
                    spec.content, spec.rules, spec.rows
                );
                hasher.update(line.as_bytes());
            }
        }
        if has_rows {
            if is_empty && scope.from != scope.to {
                stamp.from = Some(dt);
            }
            is_empty = false;
            stamp.sealed &= state.is_sealed(dt);
        }
    }
    if is_empty {
        stamp.sealed = false;
    } else {
        stamp.content = Some(ContentHash::finish(&hasher));
    }
    stamp
}
