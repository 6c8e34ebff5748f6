//! Judges a dataset: each record of its log must be what the model would have done at that place, each
//! answer must be true at some moment of its call, and readers must see what the model holds. Attacked are
//! LOG-5 to LOG-9, CMP-1, CMP-2, FIL-1, FIL-2, FIL-4, ING-5, ING-6, ING-8, CAT-1 and CAT-6.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::{Content, Ingest, Model, Target, Verdict, is_flawed, rows_of};
use crate::operation::{Answer, Operation};
use crate::witness::{Entry, Rows, Seen, list_folder, number, published, read_log, text};
use lakebed::ErrorKind;

/// A command that was called.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) operation: Operation,
    /// Where the log ended when it began.
    pub(crate) from: u64,
    /// Versions published when it began.
    pub(crate) published: u32,
    /// Whether its store failed on order.
    pub(crate) faulted: bool,
}

/// What is wrong.
pub(crate) type Verified = Result<(), String>;

/// One dataset with its past.
#[derive(Debug, Clone)]
pub(crate) struct Judge {
    pub(crate) dataset: &'static str,
    root: PathBuf,
    /// The model after each record, from none on.
    pub(crate) models: Vec<Model>,
    entries: Vec<Entry>,
    /// Revision of every file that a record names.
    files: BTreeMap<Seen, u64>,
    calls: BTreeMap<String, Called>,
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Verified {
    if holds { Ok(()) } else { Err(what()) }
}

impl Judge {
    pub(crate) fn new(dataset: &'static str, root: &Path) -> Self {
        Self {
            dataset,
            root: root.to_owned(),
            models: vec![Model::default()],
            entries: Vec::new(),
            files: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    /// The same of a copy of the lake.
    pub(crate) fn of_copy(&self, root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn model(&self) -> &Model {
        self.models.last().unwrap()
    }

    /// Every record in a line: its operation, number and command.
    pub(crate) fn story(&self) -> impl Iterator<Item = String> {
        self.entries.iter().map(|e| {
            let user = e.user.as_deref().unwrap_or("the program");
            format!("{} {} by {user}", e.operation, e.number)
        })
    }

    pub(crate) fn begin(&mut self, user: &str, operation: Operation) {
        let called = Called {
            operation,
            from: self.model().number,
            published: published(&self.root, self.dataset),
            faulted: false,
        };
        self.calls.insert(user.to_owned(), called);
    }

    /// Reads what was committed since.
    pub(crate) fn follow(&mut self) -> Verified {
        for entry in read_log(&self.root, self.dataset, self.model().number) {
            let mut next = self.model().clone();
            self.take(&entry, &mut next)
                .map_err(|e| format!("{} record {entry:?}: {e}", self.dataset))?;
            next.number = entry.number;
            self.models.push(next);
            self.entries.push(entry);
        }
        Ok(())
    }

    fn take(&mut self, entry: &Entry, next: &mut Model) -> Verified {
        let Some(user) = &entry.user else {
            let ends = |a: &Value| a["from"] == "switching" && a["to"] == "active";
            let sound = entry.operation == "switch" && entry.actions.iter().all(ends);
            return check(sound, || "nobody asked for it".into());
        };
        let called = self.calls.get(user).ok_or("nobody of that name")?.clone();
        let again = |e: &&Entry| e.user == entry.user && e.operation == entry.operation;
        if !matches!(called.operation, Operation::Repair) {
            let before = self.entries.iter().find(again);
            check(before.is_none(), || {
                format!("{user} did it before: {before:?}")
            })?;
        }
        let same = |verdict: Verdict, wanted: Verdict| {
            check(verdict == wanted, || {
                format!("the model says {verdict:?} to {called:?}")
            })
        };
        let commits = || Verdict::Commits(Vec::new());
        match (entry.operation.as_str(), &called.operation) {
            ("append" | "correct", Operation::Ingest(call)) => {
                self.take_data(entry, next, call, &called)
            }
            ("seal", Operation::Ingest(Ingest { dt, complete, .. })) if *complete => {
                same(next.seal(dt), commits())?;
                next.apply_sealed(dt, true);
                Ok(())
            }
            ("seal", Operation::Seal(dt)) => {
                same(next.seal(dt), commits())?;
                next.apply_sealed(dt, true);
                Ok(())
            }
            ("reopen", Operation::Reopen(dt)) => {
                same(next.reopen(dt), commits())?;
                next.apply_sealed(dt, false);
                Ok(())
            }
            ("switch", Operation::Switch(call)) => {
                let (verdict, to) = next.switch(call);
                same(verdict, commits())?;
                let shown = entry.of("set_state").filter(|a| a["to"] == "switching");
                let shown: BTreeSet<u64> =
                    shown.map(|a| number(&a["partition"]["revision"])).collect();
                let to = to.unwrap();
                check(shown == BTreeSet::from([u64::from(to)]), || {
                    format!("shows {shown:?}, not {to}")
                })?;
                next.apply_switch(&call.dt, to);
                Ok(())
            }
            ("abandon", Operation::Abandon(_) | Operation::Repair) => {
                let attempt = text(&entry.of("abandon").next().unwrap()["attempt"]);
                let fresh = next.abandoned.insert(attempt);
                check(fresh, || "it was abandoned before".into())
            }
            (other, operation) => Err(format!("{other} by {operation:?}")),
        }
    }

    fn take_data(
        &mut self,
        entry: &Entry,
        next: &mut Model,
        call: &Ingest,
        called: &Called,
    ) -> Verified {
        let attempt = entry.attempt.clone().ok_or("has no attempt")?;
        check(!next.abandoned.contains(&attempt), || {
            format!("attempt {attempt} was abandoned")
        })?;
        next.committed.insert(attempt);
        let inputs: Vec<&Value> = entry.of("add_input").collect();
        let partition = &inputs.first().ok_or("has no input")?["partition"];
        let version = u32::try_from(number(&partition["schema_version"])).unwrap();
        let newest = published(&self.root, self.dataset);
        let asked = match call.version {
            Some(asked) => asked == version,
            None => (called.published..=newest).contains(&version),
        };
        check(asked, || format!("has version {version}"))?;
        let verdict = next.ingest(call, version);
        let Verdict::Commits(stored) = verdict else {
            return Err(format!("the model says {verdict:?} to {call:?}"));
        };
        check_inputs(&inputs, &stored, call)?;
        let revision = number(&partition["revision"]);
        let mut rows = 0;
        for action in entry.of("add_file") {
            check(action["partition"] == *partition, || {
                format!("{action} lies elsewhere than {partition}")
            })?;
            rows += number(&action["file"]["rows"]);
            let file = Seen {
                dt: call.dt.clone(),
                version,
                name: text(&action["file"]["name"]),
            };
            let other = self.files.insert(file, revision);
            check(other.is_none(), || format!("the name of {action} is taken"))?;
        }
        let wanted: usize = stored.iter().map(|c| rows_of(*c).len()).sum();
        check(rows == wanted as u64, || {
            format!("{rows} rows, not {wanted}")
        })?;
        let before = next.days.get(&call.dt).cloned().unwrap_or_default();
        next.apply_ingest(call, version, &stored);
        let expected = match call.target {
            Target::Join => before.active,
            Target::Replace | Target::Keep => before.revisions.keys().max().unwrap() + 1,
        };
        check(revision == u64::from(expected), || {
            format!("revision {revision}, not {expected}")
        })
    }

    /// The command `user` has answered: is that true?
    pub(crate) fn end(&mut self, user: &str, answer: &Answer, faulted: bool) -> Verified {
        self.follow()?;
        let called = self.calls.get_mut(user).unwrap();
        called.faulted |= faulted;
        let called = called.clone();
        self.justify(user, &called, answer)
            .map_err(|e| format!("{user} {called:?} answered {answer:?}: {e}"))
    }

    fn justify(&self, user: &str, called: &Called, answer: &Answer) -> Verified {
        let mine = |e: &&Entry| e.user.as_deref() == Some(user);
        let records: Vec<u64> = self.entries.iter().filter(mine).map(|e| e.number).collect();
        match answer {
            Answer::Done(Some(number)) => {
                return check(records.contains(number), || {
                    format!("it put {records:?} only")
                });
            }
            Answer::Done(None) => return Ok(()),
            _ if called.faulted => return Ok(()),
            Answer::AlreadySo | Answer::Refused(..) => {}
            Answer::Failed(ErrorKind::InvalidInput, _)
                if matches!(called.operation, Operation::Publish(..)) =>
            {
                return Ok(());
            }
            Answer::Failed(..) => return Err("nothing failed here".into()),
        }
        let is_abandon = matches!(called.operation, Operation::Abandon(_));
        check(records.is_empty() || is_abandon, || {
            format!("but it put {records:?}")
        })?;
        let wanted = match answer {
            Answer::AlreadySo => Verdict::AlreadySo,
            _ => Verdict::Refused,
        };
        let newest = published(&self.root, self.dataset);
        let from = usize::try_from(called.from).unwrap();
        let ever = self.models[from..].iter().any(|model| {
            let verdicts = verdicts(model, &called.operation, called.published..=newest);
            verdicts.is_none_or(|v| v.contains(&wanted))
        });
        check(ever, || {
            let days = &self.models[from..];
            format!("that was never so in {days:?}")
        })
    }

    /// The folder as it is at this moment: files of one revision of a date, each named by a record.
    pub(crate) fn check_folder(&self) -> Verified {
        let mut shown: BTreeMap<String, (u64, Seen)> = BTreeMap::new();
        for seen in list_folder(&self.root, self.dataset) {
            if seen.name == "_SUCCESS" {
                continue;
            }
            let Some(revision) = self.files.get(&seen) else {
                return Err(format!("{seen:?} was never committed"));
            };
            if let Some((other, file)) = shown.get(&seen.dt)
                && other != revision
            {
                return Err(format!(
                    "the folder holds {file:?} of revision {other} and {seen:?} of revision {revision}"
                ));
            }
            shown.insert(seen.dt.clone(), (*revision, seen));
        }
        Ok(())
    }

    /// The folder where nobody writes: exactly the rows of the model, `_SUCCESS` where dates are sealed.
    pub(crate) fn check_folder_at_rest(&self, rows: &mut Rows) -> Verified {
        self.check_folder()?;
        let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut sealed: BTreeMap<String, BTreeMap<u32, u64>> = BTreeMap::new();
        for seen in list_folder(&self.root, self.dataset) {
            let path = seen.path(&self.root, self.dataset);
            if seen.name == "_SUCCESS" {
                let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
                let day = sealed.entry(seen.dt).or_default();
                day.insert(seen.version, number(&json["log_position"]));
            } else {
                found.entry(seen.dt).or_default().extend(rows.of(&path));
            }
        }
        for (dt, day) in &self.model().days {
            let mut rows = found.remove(dt).unwrap_or_default();
            rows.sort_unstable();
            check(rows == day.rows(), || {
                format!("the folder of {dt} holds {rows:?}, not {:?}", day.rows())
            })?;
            let versions = day.versions().into_iter();
            let wanted: BTreeMap<u32, u64> = day
                .sealed
                .map(|number| versions.map(|v| (v, number)).collect())
                .unwrap_or_default();
            let seals = sealed.remove(dt).unwrap_or_default();
            check(seals == wanted, || {
                format!("{dt} has _SUCCESS {seals:?}, not {wanted:?}")
            })?;
        }
        check(found.is_empty() && sealed.is_empty(), || {
            format!("the folder holds {found:?} and _SUCCESS {sealed:?}")
        })
    }
}

fn check_inputs(inputs: &[&Value], stored: &[Content], call: &Ingest) -> Verified {
    let found: Vec<(String, u64, u64, Option<String>)> = inputs
        .iter()
        .map(|a| {
            let input = &a["input"];
            let batch = input["batch"].as_str().map(str::to_owned);
            let rejected = number(&input["rejected"]);
            (
                text(&input["name"]),
                number(&input["rows"]),
                rejected,
                batch,
            )
        })
        .collect();
    let wanted: Vec<_> = stored
        .iter()
        .map(|c| {
            let rows = rows_of(*c).len() as u64;
            let rejected = u64::from(is_flawed(*c));
            (format!("{c}.jsonl"), rows, rejected, call.batch.clone())
        })
        .collect();
    check(found == wanted, || {
        format!("stores {found:?}, not {wanted:?}")
    })
}

/// What may become of the command in this state; `None` = anything.
fn verdicts(
    model: &Model,
    operation: &Operation,
    published: std::ops::RangeInclusive<u32>,
) -> Option<Vec<Verdict>> {
    Some(match operation {
        Operation::Ingest(call) => match call.version {
            Some(version) if version > *published.start() => {
                vec![Verdict::Refused, model.ingest(call, version)]
            }
            Some(version) => vec![model.ingest(call, version)],
            None => published.map(|v| model.ingest(call, v)).collect(),
        },
        Operation::Switch(call) => vec![model.switch(call).0],
        Operation::Seal(dt) => vec![model.seal(dt)],
        Operation::Reopen(dt) => vec![model.reopen(dt)],
        Operation::Abandon(attempt) => vec![model.abandon(attempt)],
        Operation::Publish(..)
        | Operation::Open
        | Operation::Sync
        | Operation::Rebuild
        | Operation::Repair => return None,
    })
}
