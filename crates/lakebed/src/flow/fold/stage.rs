//! One call of fold: which days, whether each is ready, and each into the lake.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::catalog::Catalog;
use crate::config::SourceConfig;
use crate::error::{Error, Result};
use crate::flow::fold::day::{DayDone, DayJob, RowBudget, clear_folder, run_day};
use crate::flow::fold::inputs::{InputFiles, ReadSoFar, load_settled, recorded};
use crate::flow::fold::label::{ListState, Terms, label_of, list_then};
use crate::flow::fold::refusal::{FoldRefusalKind, Stop, Tried};
use crate::flow::fold::report::{FoldAnswer, FoldOutcome, FoldReport, FoldedDay};
use crate::flow::fold::schemas::FoldSource;
use crate::flow::fold::store::{LooseSink, StageSink};
use crate::flow::guard::lock_folder;
use crate::fold::FoldDay;
use crate::ingest::{Progress, RevisionTarget, TableRequest};
use crate::log::DatasetState;
use crate::name::{BatchLabel, FoldName};
use crate::spec::{By, Provenance};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Version of the report.
const FOLD_REPORT_FORMAT: u32 = 1;
/// Fewer that vanish are never too many.
const MASS_LEAST: u64 = 20;

/// How a date is folded.
#[derive(Debug, Clone)]
pub struct FoldOptions {
    /// A folder of the project for what is kept of the source's folds.
    pub folder: PathBuf,
    /// The first date of a chain that is worked out anew, up to the date of the call.
    pub from: Option<BusinessDate>,
    /// A file outside of the lake, from what is there of the date.
    pub provisional: bool,
    /// Begin from nothing although there is earlier data.
    pub cold_start: bool,
    /// The list of the date is not complete: nothing vanishes.
    pub partial: bool,
    /// The list of the date is complete after all, whatever an earlier fold of it was told.
    pub complete: bool,
    /// Let as much vanish as it may be.
    pub allow_vanished: bool,
    /// Who asks.
    pub by: By,
    /// Threads; `None` = the machine's cores.
    pub threads: Option<usize>,
    /// Bytes of an input's rows that are held in memory.
    pub memory_bytes: usize,
}

/// A fold while it runs.
struct Run<'a> {
    lake: &'a Lake,
    catalog: &'a dyn Catalog,
    fold: FoldSource,
    options: &'a FoldOptions,
    progress: &'a dyn Progress,
    inputs: Vec<DatasetState>,
    snapshot: DatasetState,
    events: DatasetState,
    warnings: Vec<String>,
    days: Vec<FoldedDay>,
}

/// What a day is made of.
struct Material {
    date: BusinessDate,
    previous: Option<InputFiles>,
    inputs: Vec<Vec<InputFiles>>,
    terms: Terms,
    label: BatchLabel,
}

/// Folds a date, or a chain of dates up to it.
///
/// # Errors
/// Whatever the lake or the disk answers; why it is not done else stands in the answer.
pub async fn fold_date(
    (lake, catalog): (&Lake, &dyn Catalog),
    (source, name): (&SourceConfig, &FoldName),
    date: BusinessDate,
    options: &FoldOptions,
    progress: &dyn Progress,
) -> Result<FoldAnswer> {
    let mut report = FoldReport {
        format: FOLD_REPORT_FORMAT,
        source: source.name.clone(),
        fold: name.clone(),
        days: Vec::new(),
        warnings: Vec::new(),
    };
    let fold = match FoldSource::open(lake, source, name).await {
        Ok(fold) => fold,
        Err(Stop::Failed(error)) => return Err(error),
        Err(Stop::Refused(refusal)) => {
            let refusal = Some(refusal);
            return Ok(FoldAnswer { report, refusal });
        }
    };
    let _alone = lock_folder(&options.folder, "fold the source")?;
    let mut inputs = Vec::new();
    for input in &fold.bound.rules.inputs {
        inputs.push(load_settled(lake, &input.dataset).await?);
    }
    let mut run = Run {
        lake,
        catalog,
        snapshot: load_settled(lake, &fold.snapshot.0).await?,
        events: load_settled(lake, &fold.events.0).await?,
        fold,
        options,
        progress,
        inputs,
        warnings: Vec::new(),
        days: Vec::new(),
    };
    progress.begin(None);
    let done = run.run(date).await;
    progress.end();
    clear_folder(&run.sorting())?;
    (report.days, report.warnings) = (run.days, run.warnings);
    let refusal = match done {
        Ok(()) => None,
        Err(Stop::Refused(refusal)) => Some(refusal),
        Err(Stop::Failed(error)) => return Err(error),
    };
    Ok(FoldAnswer { report, refusal })
}

impl Run<'_> {
    fn sorting(&self) -> PathBuf {
        self.options.folder.join("sorting")
    }

    async fn run(&mut self, date: BusinessDate) -> Tried<()> {
        clear_folder(&self.sorting())?;
        if self.options.provisional {
            return self.fold_provisional(date);
        }
        let chain = self.options.from.is_some();
        if !chain && self.has_snapshot(date) {
            return self.tell_there(date);
        }
        let (first, mut cold) = self.first_day(date)?;
        let days = i64::from(date.days() - first.days());
        for day in (0..=days).map(|n| first.plus_days(n)) {
            self.fold_day(day, (date, cold)).await?;
            cold = false;
        }
        Ok(())
    }

    fn has_snapshot(&self, date: BusinessDate) -> bool {
        is_final(&self.snapshot, date)
    }

    fn refuse<T>(kind: FoldRefusalKind, error: Error) -> Tried<T> {
        Err(Stop::refuse(kind, error))
    }

    fn command(&self) -> String {
        let rules = &self.fold.bound.rules;
        format!("lakebed fold {} --name {}", rules.source, rules.name)
    }

    /// The first day to fold, and whether it begins from nothing although there is earlier data.
    fn first_day(&mut self, date: BusinessDate) -> Tried<(BusinessDate, bool)> {
        let first = self.options.from.unwrap_or(date);
        if first > date {
            return Err(
                Error::invalid(format!("`--from {first}` is after `--date {date}`")).into(),
            );
        }
        self.check_from(date)?;
        let finals = self.snapshot.dates().keys().copied();
        let finals: BTreeSet<BusinessDate> = finals.filter(|dt| self.has_snapshot(*dt)).collect();
        let before = finals.range(..first).next_back().copied();
        let yesterday = first.plus_days(-1);
        if self.options.cold_start {
            let earlier = before.is_some() || self.earliest_data(first).is_some();
            if earlier {
                self.warnings.push(format!(
                    "{first} begins from nothing: what was known of earlier days is not in it"
                ));
            }
            return Ok((first, earlier));
        }
        let command = self.command();
        match before {
            Some(before) if before == yesterday => Ok((first, false)),
            Some(before) => {
                let gap = i64::from(first.days() - before.days());
                if gap > i64::from(self.fold.bound.rules.replay_days) {
                    let error = Error::precondition(format!(
                        "the newest final snapshot before {first} is of {before}, {gap} days before"
                    ))
                    .hint(format!("fold the days between: `{command} --date {date} --from {}`", before.plus_days(1)))
                    .hint(format!("or begin from nothing, and lose what was known: `{command} --date {date} --cold-start`"));
                    return Self::refuse(FoldRefusalKind::NoSnapshot, error);
                }
                self.warnings.push(format!(
                    "the days after {before} were not folded: {} are folded first",
                    gap - 1
                ));
                Ok((before.plus_days(1), false))
            }
            None if finals.range(first..).next().is_some() && self.options.from.is_none() => {
                let error = Error::precondition(format!(
                    "later days than {date} are folded, and they do not rest on it"
                ))
                .hint(format!(
                    "work the chain out anew: `{command} --date NEWEST --from {date}`"
                ));
                Self::refuse(FoldRefusalKind::NoSnapshot, error)
            }
            None if let Some(earliest) = self.earliest_data(first) => {
                let error = Error::precondition(format!(
                    "there is no snapshot before {first}, and there is data of earlier days"
                ))
                .hint(format!(
                    "fold from the first day on: `{command} --date {date} --from {earliest}`"
                ))
                .hint(format!(
                    "or begin from nothing: `{command} --date {date} --cold-start`"
                ));
                Self::refuse(FoldRefusalKind::NoSnapshot, error)
            }
            None => Ok((first, false)),
        }
    }

    fn earliest_data(&self, date: BusinessDate) -> Option<BusinessDate> {
        let earliest = |state: &DatasetState| {
            let mut dates = state.dates().range(..date).map(|(dt, _)| *dt);
            dates.find(|dt| state.visible_of(*dt).next().is_some())
        };
        self.inputs.iter().filter_map(earliest).min()
    }

    /// Days on which no input has anything would be snapshots of nothing.
    fn check_from(&self, date: BusinessDate) -> Tried<()> {
        let Some(from) = self.options.from else {
            return Ok(());
        };
        let first_of = |state: &DatasetState| {
            let mut dates = state.dates().keys();
            let seen = |dt: &&BusinessDate| state.visible_of(**dt).next().is_some();
            dates.find(seen).copied()
        };
        let first = self.inputs.iter().filter_map(first_of).min();
        let error = match first {
            Some(first) if first <= from => return Ok(()),
            Some(first) if first <= date => Error::invalid(format!(
                "`--from {from}` is before the first day of any input, {first}"
            ))
            .hint(format!("`{} --date {date} --from {first}`", self.command())),
            _ => Error::invalid(format!("no input has anything of {date} or before")),
        };
        Err(error.into())
    }

    /// What of the list of the date is not complete by what was said: now, or when the date was folded.
    fn declared(&mut self, date: BusinessDate, last: BusinessDate, sealed: bool) -> Tried<bool> {
        let then = match self.has_snapshot(date) {
            true => list_then(&self.snapshot, date)?,
            false => None,
        };
        let is_last = date == last;
        if is_last && (self.options.partial || self.options.complete) {
            return Ok(self.options.partial);
        }
        let command = self.command();
        match then {
            Some(ListState::Declared) => {
                self.warnings.push(format!(
                    "{date} stays without a complete list, as it was declared: `{command} --date {date} --from {date} --complete` ends that"
                ));
                Ok(true)
            }
            Some(ListState::Open) if sealed => {
                self.warnings.push(format!(
                    "{date} was folded without a complete list, which is sealed now: what is missing from it counts as absent (`{command} --date {date} --from {date} --partial` where it is not complete)"
                ));
                Ok(false)
            }
            // What was folded without a complete list stays so, unless the list became complete.
            Some(ListState::Open | ListState::Complete) | None => {
                Ok(self.options.from.is_some() && self.has_snapshot(date) && !sealed)
            }
        }
    }

    /// What the list of the date is good for; refused where an input is not ready (FLD-2).
    fn readiness(&mut self, date: BusinessDate, last: BusinessDate) -> Tried<ListState> {
        let rules = std::sync::Arc::clone(&self.fold.bound.rules);
        let opened = |state: &DatasetState| state.visible_of(date).next().is_some();
        let presence = rules.presence();
        let sealed = presence.is_some_and(|n| self.inputs[n].is_sealed(date));
        let is_partial = presence.is_some() && self.declared(date, last, sealed)?;
        // A day of a gap on which the list was never looked at says nothing of anything.
        let is_blind = date < last && presence.is_some_and(|n| !opened(&self.inputs[n]));
        let mut complete = !is_partial && !is_blind;
        for (input, state) in rules.inputs.iter().zip(&self.inputs) {
            let ready = state.is_sealed(date) && opened(state);
            if ready || (input.presence && is_partial) {
                continue;
            }
            if !opened(state) && (input.optional || is_blind) {
                complete &= !input.presence;
                continue;
            }
            let dataset = &input.dataset;
            let error = match opened(state) {
                true => Error::precondition(format!(
                    "{date} of `{dataset}` is not sealed: rows may still come"
                ))
                .hint(format!(
                    "when it is complete: `lakebed seal {dataset} --date {date}`"
                )),
                false => Error::precondition(format!("there is nothing of {date} in `{dataset}`"))
                    .hint(
                        "an input that has nothing on some days is declared with `optional = true`",
                    ),
            };
            let error = match input.presence {
                true => error.hint(format!(
                    "where the list stays incomplete, nothing can vanish: `{} --date {date} --partial`",
                    self.command()
                )),
                false => error,
            };
            return Self::refuse(FoldRefusalKind::NotReady, error);
        }
        if is_blind {
            self.warnings.push(format!(
                "nobody looked at the list of {date}: the day is folded without evidence"
            ));
        }
        Ok(match complete {
            true => ListState::Complete,
            false if is_partial && sealed => ListState::Declared,
            false => ListState::Open,
        })
    }

    /// The files that a fold of the date reads of each input: late ones, then its own.
    fn files_of(&self, date: BusinessDate) -> Tried<Vec<Vec<InputFiles>>> {
        let reach = date.plus_days(-i64::from(self.fold.bound.rules.replay_days));
        let read = ReadSoFar::of(&self.snapshot, reach, date.plus_days(-1))?;
        let mut all = Vec::new();
        for state in &self.inputs {
            let mut files = Vec::new();
            let dataset = state.dataset().to_string();
            for (day, revision, upto) in read.dates_of(&dataset, reach) {
                if state.active_revision(day) != revision {
                    return Self::refuse(FoldRefusalKind::Changed, self.changed(day, &dataset));
                }
                let late = InputFiles::between(self.lake, state, day, (upto, u64::MAX))?;
                if !late.files.is_empty() {
                    files.push(late);
                }
            }
            files.push(InputFiles::between(self.lake, state, date, (0, u64::MAX))?);
            all.push(files);
        }
        Ok(all)
    }

    fn changed(&self, day: BusinessDate, what: &str) -> Error {
        let newest = self
            .snapshot
            .dates()
            .keys()
            .next_back()
            .copied()
            .unwrap_or(day);
        Error::precondition(format!(
            "{day} was folded of other rows: `{what}` has changed since"
        ))
        .hint(format!(
            "work the chain out anew, as revisions: `{} --date {newest} --from {day}`",
            self.command()
        ))
    }

    fn material(
        &mut self,
        date: BusinessDate,
        last: BusinessDate,
        cold_start: bool,
    ) -> Tried<Material> {
        let list = match self.options.provisional {
            true if self.is_complete(date) => ListState::Complete,
            true => ListState::Open,
            false => self.readiness(date, last)?,
        };
        let yesterday = date.plus_days(-1);
        let previous = match self.has_snapshot(yesterday) && !cold_start {
            true => Some(InputFiles::between(
                self.lake,
                &self.snapshot,
                yesterday,
                (0, u64::MAX),
            )?),
            false => None,
        };
        let inputs = match previous.is_some() {
            true => self.files_of(date)?,
            false => {
                let own = |state| InputFiles::between(self.lake, state, date, (0, u64::MAX));
                let own = self.inputs.iter().map(own).collect::<Result<Vec<_>>>()?;
                own.into_iter().map(|files| vec![files]).collect()
            }
        };
        let terms = Terms { list, cold_start };
        let read = inputs.iter().flatten().chain(&previous);
        let reads: Vec<_> = read
            .map(|files| (files.range.dataset.clone(), files.range.dt, files.content()))
            .collect();
        let label = label_of((self.fold.bound.rules.hash(), date), terms, &reads)?;
        Ok(Material {
            date,
            previous,
            inputs,
            terms,
            label,
        })
    }

    fn is_complete(&self, date: BusinessDate) -> bool {
        let presence = self.fold.bound.rules.presence();
        !self.options.partial && presence.is_some_and(|n| self.inputs[n].is_sealed(date))
    }

    fn job<'b>(&'b self, material: &Material) -> DayJob<'b> {
        let threads = self.options.threads;
        DayJob {
            fold: &self.fold,
            day: FoldDay {
                date: material.date,
                complete: material.terms.list == ListState::Complete,
                events: !self.options.provisional,
            },
            previous: material
                .previous
                .iter()
                .flat_map(|p| p.files.clone())
                .collect(),
            inputs: material.inputs.clone(),
            budget: RowBudget {
                bytes: self.options.memory_bytes,
                folder: self.sorting(),
                threads: threads
                    .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)),
            },
            progress: self.progress,
        }
    }

    async fn fold_day(
        &mut self,
        date: BusinessDate,
        (last, cold): (BusinessDate, bool),
    ) -> Tried<()> {
        let material = self.material(date, last, cold)?;
        let is_there = self
            .snapshot
            .visible_labelled(date, &material.label)
            .next()
            .is_some();
        if is_there && self.snapshot.is_sealed(date) {
            self.days.push(folded(&material, FoldOutcome::AlreadyThere));
            return Ok(());
        }
        let replaces = self.snapshot.visible_of(date).next().is_some();
        let events_there = self
            .events
            .visible_labelled(date, &material.label)
            .next()
            .is_some();
        let target = |visible: bool| match visible {
            true => RevisionTarget::Replace,
            false => RevisionTarget::Join,
        };
        let events_visible = self.events.visible_of(date).next().is_some();
        let mut sink = StageSink {
            lake: self.lake,
            states: (&self.snapshot, &self.events),
            requests: (
                self.request(&material, 0, target(replaces))?,
                self.request(&material, 1, target(events_visible))?,
            ),
            open: None,
        };
        let done = run_day(&self.job(&material), &mut sink)?;
        let staged = sink.finish()?;
        if let Err(stop) = self.check_vanished(date, &done) {
            staged
                .discard(self.lake, (&mut self.snapshot, &mut self.events))
                .await;
            return Err(stop);
        }
        let states = (&mut self.snapshot, &mut self.events);
        let (stored, told) = staged
            .commit((self.lake, self.catalog), states, events_there)
            .await?;
        let outcome = match replaces {
            true => FoldOutcome::Revised,
            false => FoldOutcome::Folded,
        };
        let mut day = counted(folded(&material, outcome), &done);
        day.snapshot_record = Some(stored.log_position);
        day.events_record = told.as_ref().map(|t| t.log_position);
        self.warnings.extend(stored.warnings);
        self.warnings
            .extend(told.into_iter().flat_map(|t| t.warnings));
        self.days.push(day);
        Ok(())
    }

    fn request(
        &self,
        material: &Material,
        table: usize,
        revision: RevisionTarget,
    ) -> Result<TableRequest> {
        let rules = &self.fold.bound.rules;
        let (of, fields) = match table {
            0 => (&self.fold.snapshot, &self.fold.bound.snapshot),
            _ => (&self.fold.events, &self.fold.bound.events),
        };
        let read = || material.inputs.iter().flatten().chain(&material.previous);
        let mut parents = Vec::new();
        for files in read() {
            parents.extend(files.parents()?);
        }
        parents.sort_unstable();
        parents.dedup();
        Ok(TableRequest {
            dataset: of.0.clone(),
            dt: material.date,
            schema: (of.1, of.2.clone()),
            fields: fields.clone(),
            label: material.label.clone(),
            inputs: read().map(|files| files.spec(rules.hash())).collect(),
            parents,
            revision,
            complete: true,
            bounds: self.fold.bounds[table].clone(),
            provenance: match self.options.from.is_some() {
                true => Provenance::Replay,
                false => Provenance::Live,
            },
            by: self.options.by.clone(),
        })
    }

    /// A list that lost most of what it had is a broken list until a person says otherwise.
    fn check_vanished(&self, date: BusinessDate, done: &DayDone) -> Tried<()> {
        let counts = &done.counts;
        let most = self.fold.bound.rules.max_vanished;
        if self.options.allow_vanished
            || counts.vanished < MASS_LEAST
            || share(counts.vanished, counts.present_before) <= most
        {
            return Ok(());
        }
        let error = Error::precondition(format!(
            "{} of the {} objects that were there would vanish on {date}: more than the share of {most}",
            counts.vanished, counts.present_before
        ))
        .hint("look at the list of the day: a page that changed, or a run that ended early, looks like this; nothing was stored")
        .hint(format!("when it is so: `{} --date {date} --allow-vanished`", self.command()))
        .hint(format!("when the list is not whole: `{} --date {date} --partial`", self.command()));
        Self::refuse(FoldRefusalKind::MassVanished, error)
    }

    /// Whether a date that is folded still rests on what is there.
    fn tell_there(&mut self, date: BusinessDate) -> Tried<()> {
        let rules = self.fold.bound.rules.hash().to_owned();
        let mut waiting = 0;
        let mut label = None;
        for (range, spec) in recorded(&self.snapshot, date)? {
            label = spec.batch.clone();
            if spec.rules != rules {
                let error = Error::precondition(format!("{date} was folded by other rules"))
                    .hint(format!("new rules hold from the next day on; for this one: `{} --date {date} --from {date}`", self.command()));
                return Self::refuse(FoldRefusalKind::Changed, error);
            }
            let states = self.inputs.iter().chain(std::iter::once(&self.snapshot));
            let state = states
                .into_iter()
                .find(|s| s.dataset().to_string() == range.dataset);
            let now = match state {
                Some(state) => {
                    InputFiles::between(self.lake, state, range.dt, (range.after, range.upto))?
                }
                None => {
                    return Self::refuse(
                        FoldRefusalKind::Changed,
                        self.changed(date, &range.dataset),
                    );
                }
            };
            if now.range.revision != range.revision || now.content() != spec.content {
                let error = self.changed(date, &format!("{} of {}", range.dataset, range.dt));
                return Self::refuse(FoldRefusalKind::Changed, error);
            }
            if let Some(state) = state.filter(|_| range.dt == date) {
                waiting +=
                    InputFiles::between(self.lake, state, date, (range.upto, u64::MAX))?.rows();
            }
        }
        let label = label.ok_or_else(|| {
            Error::corrupt(format!(
                "the snapshot of {date} does not name what it was made of"
            ))
        })?;
        let mut day = empty_day(date, label, FoldOutcome::AlreadyThere);
        day.waiting_rows = waiting;
        let list = list_then(&self.snapshot, date)?;
        day.complete = list.is_none_or(|list| list == ListState::Complete);
        if waiting > 0 {
            let hint = format!(
                "{waiting} rows of {date} came after it was folded: the next fold takes them as late, or `{} --date {date} --from {date}` works it out anew",
                self.command()
            );
            self.warnings.push(hint);
        }
        self.days.push(day);
        Ok(())
    }

    fn fold_provisional(&mut self, date: BusinessDate) -> Tried<()> {
        let (first, cold) = self.first_day(date)?;
        if first != date {
            let error = Error::precondition(format!("{} is not folded", date.plus_days(-1)))
                .hint(format!("a provisional snapshot rests on the final one of the day before: `{} --date {}`", self.command(), date.plus_days(-1)));
            return Self::refuse(FoldRefusalKind::NoSnapshot, error);
        }
        let material = self.material(date, date, cold)?;
        let folder = self.options.folder.join(date.to_string());
        std::fs::create_dir_all(&folder)
            .map_err(|e| Error::io("create the folder", folder.display(), e))?;
        let path = folder.join(format!(
            "{}.provisional.parquet",
            self.fold.bound.rules.name
        ));
        let mut sink = LooseSink::new(&path);
        let done = run_day(&self.job(&material), &mut sink)?;
        sink.finish()?;
        let mut day = counted(folded(&material, FoldOutcome::Provisional), &done);
        day.file = Some(path.display().to_string());
        self.days.push(day);
        Ok(())
    }
}

/// Whether the final snapshot of a date is there.
pub(crate) fn is_final(snapshot: &DatasetState, date: BusinessDate) -> bool {
    snapshot.is_sealed(date) && snapshot.visible_of(date).next().is_some()
}

/// Whether readers see rows of an earlier date.
pub(crate) fn has_data_before(state: &DatasetState, date: BusinessDate) -> bool {
    let mut dates = state.dates().range(..date);
    dates.any(|(dt, _)| state.visible_of(*dt).next().is_some())
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a share of counts far below 2^52"
)]
fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

fn empty_day(date: BusinessDate, label: BatchLabel, outcome: FoldOutcome) -> FoldedDay {
    FoldedDay {
        date,
        outcome,
        label,
        complete: false,
        cold_start: false,
        inputs: Vec::new(),
        keys: 0,
        appeared: 0,
        changed: 0,
        vanished: 0,
        returned: 0,
        dropped: 0,
        waiting_rows: 0,
        snapshot_record: None,
        events_record: None,
        file: None,
    }
}

fn folded(material: &Material, outcome: FoldOutcome) -> FoldedDay {
    FoldedDay {
        complete: material.terms.list == ListState::Complete,
        cold_start: material.terms.cold_start,
        ..empty_day(material.date, material.label.clone(), outcome)
    }
}

fn counted(day: FoldedDay, done: &DayDone) -> FoldedDay {
    let counts = &done.counts;
    FoldedDay {
        inputs: done.inputs.clone(),
        keys: counts.keys,
        appeared: counts.appeared,
        changed: counts.changed,
        vanished: counts.vanished,
        returned: counts.returned,
        dropped: counts.dropped,
        ..day
    }
}
