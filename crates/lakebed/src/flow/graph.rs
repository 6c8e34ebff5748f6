//! The graph of a run: its stages with what they read, what they write, and the command line of each. A pure function
//! of what the source declares.
//!
//! FLW-3: a stage comes after those it names and after every one, declared before it, that writes what it reads; a circle
//! and a reader without a writer before it are refused by name.

mod maker;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::config::{ParentDates, StageKind, StagePeriod};
use crate::error::{Error, Result};
use crate::flow::declared::Declared;
use crate::flow::scope::Scope;
use crate::name::{ContentHash, FlowStageName, RunName, SourceName};
use crate::time::BusinessDate;

use maker::Maker;

/// Below what a shell stage writes: commands run in the project folder.
pub(super) const PROJECT_OUT: &str = ".";
/// Names beside those of runs in the folder of a date: stages of a day and of a month, and the lock.
const OWN_NAMES: [&str; 3] = [DAY, MONTH, "lock"];
const DAY: &str = "_day";
const MONTH: &str = "_month";

/// What runs a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// This program, with these arguments.
    Lakebed(Vec<String>),
    /// A program of the user's.
    Shell(Vec<String>),
}

/// A stage of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: FlowStageName,
    /// What it does.
    pub kind: StageKind,
    /// For what it is done once.
    pub period: StagePeriod,
    /// The date that it works on.
    pub date: BusinessDate,
    /// The date of its stamp: that of the call; of a month its first.
    pub stamp_date: BusinessDate,
    /// The run of its stamp: that of the call, `_day` or `_month`.
    pub stamp_run: RunName,
    /// The stages right before it, in the order of the graph.
    pub after: Vec<FlowStageName>,
    /// What runs it.
    pub program: Program,
    /// What it reads.
    pub reads: Vec<Scope>,
    /// What it writes.
    pub writes: Vec<Scope>,
    /// Files that it reads: globs from the project folder on.
    pub input_files: Vec<String>,
    /// Files that it writes.
    pub output_files: Vec<String>,
    /// Names the part of the configuration that decides what it makes.
    pub rules: ContentHash,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Whether the date of the call is one on which it is done: of a month the last.
    pub is_due: bool,
}

/// The stages of a run, each behind those that it comes after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The source.
    pub source: SourceName,
    /// The business date.
    pub date: BusinessDate,
    /// The run.
    pub run: RunName,
    /// The stages.
    pub stages: Vec<Stage>,
}

impl Graph {
    /// The graph of a run.
    ///
    /// # Errors
    /// `InvalidInput` with the file and the stage: a name that stands twice or is not there, a circle, a reader before
    /// its writer, something that is not declared.
    pub fn of(declared: &Declared, date: BusinessDate, run: &RunName) -> Result<Self> {
        Self::with_out(declared, (date, run), PROJECT_OUT)
    }

    /// The same, with another folder for `{out}`.
    pub(super) fn with_out(
        declared: &Declared,
        (date, run): (BusinessDate, &RunName),
        out: &str,
    ) -> Result<Self> {
        if OWN_NAMES.contains(&run.as_str()) {
            return Err(Error::invalid(format!(
                "no run of a flow is called `{run}`: the flow keeps its own files there"
            ))
            .hint("give the run another name, such as an hour: 0900"));
        }
        let stages = Maker::new(declared, (date, run), out).stages()?;
        Ok(Self {
            source: declared.source.clone(),
            date,
            run: run.clone(),
            stages,
        })
    }

    /// The stage of that name.
    ///
    /// # Errors
    /// `InvalidInput` that lists the names there are.
    pub fn stage(&self, name: &str) -> Result<&Stage> {
        let found = self.stages.iter().find(|s| s.name.as_str() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.stages.iter().map(|s| s.name.as_str()).collect();
            Error::invalid(format!(
                "the flow of `{}` has no stage `{name}`",
                self.source
            ))
            .hint(format!("its stages are {}", names.join(", ")))
        })
    }

    /// The stage and all that come before it.
    #[must_use]
    pub fn up_to(&self, name: &FlowStageName) -> BTreeSet<FlowStageName> {
        let mut found = BTreeSet::from([name.clone()]);
        for stage in self.stages.iter().rev() {
            if found.contains(&stage.name) {
                found.extend(stage.after.iter().cloned());
            }
        }
        found
    }

    /// The stage and all that come after it.
    #[must_use]
    pub fn from(&self, name: &FlowStageName) -> BTreeSet<FlowStageName> {
        let mut found = BTreeSet::from([name.clone()]);
        for stage in &self.stages {
            if stage.after.iter().any(|a| found.contains(a)) {
                found.insert(stage.name.clone());
            }
        }
        found
    }
}

/// The first day of the month of the date.
fn month_begin(date: BusinessDate) -> BusinessDate {
    date.plus_days(1 - i64::from(date.date().day()))
}

/// The dates of a parent that a query of the date sees, both included.
#[must_use]
pub fn parent_dates(dates: ParentDates, date: BusinessDate) -> (BusinessDate, BusinessDate) {
    match dates {
        ParentDates::Day => (date, date),
        ParentDates::Previous => (date.plus_days(-1), date.plus_days(-1)),
        ParentDates::Month => (month_begin(date), date),
        ParentDates::Until => (BusinessDate::MIN, date),
    }
}

#[cfg(test)]
mod tests;
