//! A day that is folded, once more: of the rows that its snapshot was made of, into files outside of the lake.
//!
//! SHD-2: a day is folded of what its snapshot names and nothing else, as complete as it was; what is not there any more, as
//! it was, makes the day none that can be compared.

use std::path::Path;

use crate::error::Result;
use crate::flow::fold::day::{DayJob, RowBudget, run_day};
use crate::flow::fold::inputs::{InputFiles, recorded};
use crate::flow::fold::label::{ListState, list_then};
use crate::flow::fold::refusal::Stop;
use crate::flow::fold::schemas::FoldSource;
use crate::flow::fold::stage::is_final;
use crate::flow::fold::store::LooseSink;
use crate::fold::FoldDay;
use crate::ingest::Progress;
use crate::log::DatasetState;
use crate::name::ContentHash;
use crate::store::Lake;
use crate::time::BusinessDate;

/// What the snapshot of a day was made of.
pub(in crate::flow) struct MadeOf {
    date: BusinessDate,
    /// Yesterday's snapshot; absent where the day began from nothing.
    previous: Option<InputFiles>,
    /// What was read of its inputs.
    read: Vec<InputFiles>,
    /// Whether the list of the day was complete.
    complete: bool,
}

impl MadeOf {
    /// What the log says; `Err` of the answer = why the day cannot be folded once more.
    pub(in crate::flow) fn find(
        lake: &Lake,
        snapshot: &DatasetState,
        inputs: &[&DatasetState],
        (date, presence): (BusinessDate, Option<&DatasetState>),
    ) -> Result<Result<Self, String>> {
        if !is_final(snapshot, date) {
            let what = format!("`{}` has no final snapshot of {date}", snapshot.dataset());
            return Ok(Err(what));
        }
        let own = snapshot.dataset().to_string();
        let (mut previous, mut read) = (None, Vec::new());
        let listed = match recorded(snapshot, date) {
            Ok(listed) => listed,
            Err(Stop::Refused(refusal)) => return Ok(Err(refusal.error.message().to_owned())),
            Err(Stop::Failed(error)) => return Err(error),
        };
        for (range, spec) in &listed {
            let states = inputs.iter().copied().chain(std::iter::once(snapshot));
            let of = |state: &&DatasetState| state.dataset().to_string() == range.dataset;
            // An input that neither fold has any more is read by none of them.
            let Some(state) = states.into_iter().find(of) else {
                continue;
            };
            let now = InputFiles::between(lake, state, range.dt, (range.after, range.upto))?;
            if now.range.revision != range.revision || now.content() != spec.content {
                return Ok(Err(format!(
                    "{} of `{}` is not what {date} was folded of any more",
                    range.dt, range.dataset
                )));
            }
            match range.dataset == own {
                true => previous = Some(now),
                false if read.contains(&now) => {}
                false => read.push(now),
            }
        }
        let complete = match list_then(snapshot, date)? {
            Some(ListState::Complete) => true,
            Some(ListState::Open | ListState::Declared) => false,
            None => presence.is_some_and(|state| state.is_sealed(date)),
        };
        Ok(Ok(Self {
            date,
            previous,
            read,
            complete,
        }))
    }

    /// Names all of it, and what an input holds that the day was folded without.
    pub(in crate::flow) fn content(
        &self,
        lake: &Lake,
        inputs: &[&DatasetState],
    ) -> Result<ContentHash> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{} {}\n", self.date, self.complete).as_bytes());
        for files in self.read.iter().chain(&self.previous) {
            let range = &files.range;
            hasher
                .update(format!("{} {} {}\n", range.dataset, range.dt, files.content()).as_bytes());
        }
        for state in inputs {
            for files in self.files_of(lake, state)? {
                hasher.update(format!("{} {}\n", state.dataset(), files.content()).as_bytes());
            }
        }
        Ok(ContentHash::finish(&hasher))
    }

    /// What was read of an input; of one that the day was folded without, its rows of the day.
    fn files_of(&self, lake: &Lake, state: &DatasetState) -> Result<Vec<InputFiles>> {
        let dataset = state.dataset().to_string();
        let known = self.read.iter().filter(|f| f.range.dataset == dataset);
        let known: Vec<InputFiles> = known.cloned().collect();
        match known.is_empty() {
            false => Ok(known),
            true => Ok(vec![InputFiles::between(
                lake,
                state,
                self.date,
                (0, u64::MAX),
            )?]),
        }
    }

    /// Folds it by these rules into both files: snapshot and events.
    pub(in crate::flow) fn fold(
        &self,
        (lake, inputs): (&Lake, &[&DatasetState]),
        fold: &FoldSource,
        (snapshot, events): (&Path, &Path),
        budget: RowBudget,
        progress: &dyn Progress,
    ) -> Result<()> {
        let mut read = Vec::new();
        for input in &fold.bound.rules.inputs {
            let state = inputs.iter().find(|s| *s.dataset() == input.dataset);
            read.push(match state {
                Some(state) => self.files_of(lake, state)?,
                None => Vec::new(),
            });
        }
        let job = DayJob {
            fold,
            day: FoldDay {
                date: self.date,
                complete: self.complete,
                events: true,
            },
            previous: self.previous.iter().flat_map(|p| p.files.clone()).collect(),
            inputs: read,
            budget,
            progress,
        };
        let mut sink = LooseSink::new(snapshot).with_events(events);
        run_day(&job, &mut sink)?;
        sink.finish()
    }
}
