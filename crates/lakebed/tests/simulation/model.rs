//! What a dataset must hold, as plainly as it can be said: dates with revisions with inputs. It knows
//! nothing of files, logs or folders, and shares no code with what it judges.

use std::collections::{BTreeMap, BTreeSet};

/// A thing that crawlers wrote; its number tells its rows.
pub(crate) type Content = u64;

/// The rows of a content, by the value of their column `k`.
pub(crate) fn rows_of(content: Content) -> Vec<i64> {
    let count = 1 + content % 3;
    (0..count)
        .map(|row| i64::try_from(content * 10 + row).unwrap())
        .collect()
}

/// Whether one of its records does not fit the schema.
pub(crate) fn is_flawed(content: Content) -> bool {
    content % 4 == 3
}

/// The file of a content.
pub(crate) fn text_of(content: Content) -> String {
    let mut text: String = rows_of(content)
        .iter()
        .map(|k| format!("{{\"k\":{k},\"t\":\"\u{6807}\u{9898} {k}\"}}\n"))
        .collect();
    if is_flawed(content) {
        text.push_str("{\"k\":\"no number\"}\n");
    }
    text
}

/// What a call of ingest writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Join,
    Replace,
    Keep,
}

/// A call of ingest.
#[derive(Debug, Clone)]
pub(crate) struct Ingest {
    pub(crate) dt: String,
    pub(crate) contents: Vec<Content>,
    pub(crate) batch: Option<String>,
    /// `None` = the newest.
    pub(crate) version: Option<u32>,
    pub(crate) target: Target,
    pub(crate) quarantine: bool,
    pub(crate) late: bool,
    pub(crate) complete: bool,
}

/// Which revision a switch asks for; `None` = the one before.
#[derive(Debug, Clone)]
pub(crate) struct Switch {
    pub(crate) dt: String,
    pub(crate) revision: Option<u32>,
    pub(crate) drop_late: bool,
}

/// An input that a revision holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) content: Content,
    pub(crate) batch: Option<String>,
    pub(crate) version: u32,
    /// The record that brought it.
    pub(crate) number: u64,
}

/// A revision of a date.
#[derive(Debug, Clone, Default)]
pub(crate) struct Revision {
    /// The record that began it; 0 for revision 0.
    pub(crate) began: u64,
    pub(crate) base: u32,
    pub(crate) inputs: Vec<Stored>,
}

/// A date.
#[derive(Debug, Clone, Default)]
pub(crate) struct Day {
    pub(crate) active: u32,
    /// The record of the seal in force.
    pub(crate) sealed: Option<u64>,
    pub(crate) revisions: BTreeMap<u32, Revision>,
}

impl Day {
    fn shown(&self) -> &Revision {
        &self.revisions[&self.active]
    }

    /// Every row that readers see, sorted.
    pub(crate) fn rows(&self) -> Vec<i64> {
        let inputs = self.shown().inputs.iter();
        let mut rows: Vec<i64> = inputs.flat_map(|i| rows_of(i.content)).collect();
        rows.sort_unstable();
        rows
    }

    /// Schema versions that readers see.
    pub(crate) fn versions(&self) -> BTreeSet<u32> {
        self.shown().inputs.iter().map(|i| i.version).collect()
    }
}

/// A dataset after `number` records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) number: u64,
    pub(crate) days: BTreeMap<String, Day>,
    pub(crate) abandoned: BTreeSet<String>,
    pub(crate) committed: BTreeSet<String>,
}

/// What must become of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stores these contents (none where it stores no data).
    Commits(Vec<Content>),
    AlreadySo,
    Refused,
}

impl Model {
    pub(crate) fn ingest(&self, call: &Ingest, version: u32) -> Verdict {
        let mut contents = Vec::new();
        for content in &call.contents {
            if !contents.contains(content) {
                contents.push(*content);
            }
        }
        let day = self.days.get(&call.dt);
        let wanted = match (call.target, day) {
            (Target::Join, None) => contents,
            (Target::Join, Some(day)) => match join(day, call, version, &contents) {
                Some(wanted) => wanted,
                None => return Verdict::Refused,
            },
            (Target::Replace | Target::Keep, None) => return Verdict::Refused,
            (Target::Replace, Some(day)) if holds(day.shown(), call, version, &contents) => {
                return Verdict::AlreadySo;
            }
            (Target::Keep, Some(day)) if holds(newest(day), call, version, &contents) => {
                return Verdict::AlreadySo;
            }
            (Target::Replace | Target::Keep, Some(_)) => contents,
        };
        let sealed = day.is_some_and(|d| d.sealed.is_some());
        let flawed = wanted.iter().any(|c| is_flawed(*c));
        if wanted.is_empty() {
            Verdict::AlreadySo
        } else if (call.target == Target::Join && sealed && !call.late)
            || (flawed && !call.quarantine)
        {
            Verdict::Refused
        } else {
            Verdict::Commits(wanted)
        }
    }

    pub(crate) fn apply_ingest(&mut self, call: &Ingest, version: u32, stored: &[Content]) {
        let number = self.number + 1;
        let day = self.days.entry(call.dt.clone()).or_default();
        let base = day.active;
        let began = |began| Revision {
            began,
            base,
            inputs: Vec::new(),
        };
        let (revision, into) = match call.target {
            Target::Join => (base, day.revisions.entry(base).or_insert_with(|| began(0))),
            Target::Replace | Target::Keep => {
                let next = day.revisions.keys().max().unwrap() + 1;
                (
                    next,
                    day.revisions.entry(next).or_insert_with(|| began(number)),
                )
            }
        };
        into.inputs.extend(stored.iter().map(|content| Stored {
            content: *content,
            batch: call.batch.clone(),
            version,
            number,
        }));
        match call.target {
            Target::Join => day.sealed = None,
            Target::Replace => {
                day.active = revision;
                day.sealed = day.sealed.map(|_| number);
            }
            Target::Keep => {}
        }
        if call.complete {
            day.sealed = Some(number);
        }
    }

    /// The revision that the switch leads to, where it commits.
    pub(crate) fn switch(&self, call: &Switch) -> (Verdict, Option<u32>) {
        let Some(day) = self.days.get(&call.dt) else {
            return (Verdict::Refused, None);
        };
        let to = match call.revision {
            Some(revision) => revision,
            None if day.active == 0 => return (Verdict::Refused, None),
            None => day.shown().base,
        };
        if to == day.active {
            return (Verdict::AlreadySo, None);
        }
        let Some(target) = day.revisions.get(&to) else {
            return (Verdict::Refused, None);
        };
        let since = day.shown().began.max(target.began);
        let hides = day.shown().inputs.iter().any(|i| i.number > since);
        if hides && !call.drop_late {
            return (Verdict::Refused, None);
        }
        (Verdict::Commits(Vec::new()), Some(to))
    }

    pub(crate) fn apply_switch(&mut self, dt: &str, to: u32) {
        let number = self.number + 1;
        let day = self.days.get_mut(dt).unwrap();
        day.active = to;
        day.sealed = day.sealed.map(|_| number);
    }

    pub(crate) fn seal(&self, dt: &str) -> Verdict {
        match self.days.get(dt) {
            None => Verdict::Refused,
            Some(day) if day.sealed.is_some() => Verdict::AlreadySo,
            Some(_) => Verdict::Commits(Vec::new()),
        }
    }

    pub(crate) fn reopen(&self, dt: &str) -> Verdict {
        match self.days.get(dt) {
            None => Verdict::Refused,
            Some(day) if day.sealed.is_none() => Verdict::AlreadySo,
            Some(_) => Verdict::Commits(Vec::new()),
        }
    }

    pub(crate) fn apply_sealed(&mut self, dt: &str, sealed: bool) {
        let number = self.number + 1;
        self.days.get_mut(dt).unwrap().sealed = sealed.then_some(number);
    }

    pub(crate) fn abandon(&self, attempt: &str) -> Verdict {
        if self.abandoned.contains(attempt) {
            Verdict::AlreadySo
        } else if self.committed.contains(attempt) {
            Verdict::Refused
        } else {
            Verdict::Commits(Vec::new())
        }
    }
}

/// What of the contents is stored beside what the day shows; `None` = the call is refused.
fn join(day: &Day, call: &Ingest, version: u32, contents: &[Content]) -> Option<Vec<Content>> {
    let shown = &day.shown().inputs;
    let mut labelled = shown.iter().filter(|i| i.batch == call.batch);
    let label_is_known = call.batch.is_some() && labelled.next().is_some();
    let mut wanted = Vec::new();
    for content in contents {
        let same: Vec<_> = shown.iter().filter(|i| i.content == *content).collect();
        let of_label = |i: &&&Stored| !label_is_known || i.batch == call.batch;
        let mut counted = same.iter().filter(of_label).peekable();
        if counted.peek().is_none() && label_is_known {
            return None;
        }
        if same.is_empty() || (call.batch.is_some() && !label_is_known) {
            wanted.push(*content);
        } else if counted.all(|i| i.version != version) {
            return None;
        }
    }
    Some(wanted)
}

fn newest(day: &Day) -> &Revision {
    day.revisions.last_key_value().unwrap().1
}

/// Whether the revision holds exactly what the call would give.
fn holds(revision: &Revision, call: &Ingest, version: u32, contents: &[Content]) -> bool {
    let asked: BTreeSet<_> = contents
        .iter()
        .map(|c| (*c, call.batch.clone(), version))
        .collect();
    let held: BTreeSet<_> = revision
        .inputs
        .iter()
        .map(|i| (i.content, i.batch.clone(), i.version))
        .collect();
    asked == held
}
