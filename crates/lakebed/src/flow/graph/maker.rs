//! Makes the stages of a graph: what each kind reads, writes and runs, and the edges that follow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{DAY, MONTH, Program, Stage, month_begin, parent_dates};
use crate::config::{FlowStageConfig, StageDay, StageKind, StagePeriod};
use crate::error::{Error, Result};
use crate::flow::declared::{Declared, WHOLE_DAY, hash_of, usual_period};
use crate::flow::scope::{FlowRuns, Scope};
use crate::name::{ContentHash, DatasetRef, FlowStageName, RunName};
use crate::time::BusinessDate;

/// What a kind makes of a stage.
#[derive(Default)]
struct Part {
    args: Vec<String>,
    reads: Vec<Scope>,
    writes: Vec<Scope>,
    input_files: Vec<String>,
    output_files: Vec<String>,
    rules: Option<ContentHash>,
}

pub(super) struct Maker<'a> {
    declared: &'a Declared,
    date: BusinessDate,
    run: &'a RunName,
    /// What `{out}` stands for in the commands of shell stages.
    out: &'a str,
    /// In declared order, each with what it names under `after`.
    stages: Vec<Stage>,
    /// Written names that became several stages.
    groups: BTreeMap<FlowStageName, Vec<FlowStageName>>,
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        declared: &'a Declared,
        (date, run): (BusinessDate, &'a RunName),
        out: &'a str,
    ) -> Self {
        Self {
            declared,
            date,
            run,
            out,
            stages: Vec::new(),
            groups: BTreeMap::new(),
        }
    }

    /// The stages that are declared, each behind those that it comes after.
    pub(super) fn stages(mut self) -> Result<Vec<Stage>> {
        for written in self.declared.stages(self.run)? {
            self.add(&written)?;
        }
        self.name_crawled();
        self.ordered()
    }

    /// Adds what a written stage is: one stage, or one for each dataset, fold or query.
    fn add(&mut self, written: &FlowStageConfig) -> Result<()> {
        let parts: Vec<Option<String>> = match written.kind {
            StageKind::Seal => written
                .datasets
                .iter()
                .map(|d| Some(d.to_string()))
                .collect(),
            StageKind::Fold => self.named(written, self.declared.folds.keys().collect())?,
            StageKind::Derive => self.named(written, self.declared.derives.keys().collect())?,
            _ => vec![None],
        };
        let is_one = parts.len() == 1 && written.name.is_some();
        let group: FlowStageName = match &written.name {
            Some(name) => name.clone(),
            None => written.kind.as_str().parse()?,
        };
        let mut members = Vec::new();
        for part in parts {
            let name = match &part {
                Some(part) if !is_one => {
                    format!("{group}.{}", part.rsplit('/').next().unwrap_or(part)).parse()?
                }
                _ => group.clone(),
            };
            if self.stages.iter().any(|s| s.name == name) || self.groups.contains_key(&name) {
                return Err(self
                    .refuse(&name, format!("two stages are called `{name}`"))
                    .hint("give one of them another `name`"));
            }
            let stage = self.stage(written, &name, part.as_deref());
            let stage = stage.map_err(|e| e.with("stage", &name))?;
            self.stages.push(stage);
            members.push(name);
        }
        if members != [group.clone()] {
            self.groups.insert(group, members);
        }
        Ok(())
    }

    /// The fold or query that the stage names, or all there are.
    fn named(&self, written: &FlowStageConfig, known: Vec<&String>) -> Result<Vec<Option<String>>> {
        let kind = written.kind.as_str();
        if known.is_empty() {
            return Err(Error::invalid(format!(
                "a stage of kind `{kind}`, but `{}` declares no [{kind}.<name>]",
                self.declared.source
            ))
            .with("file", &self.declared.file));
        }
        match &written.of {
            None => Ok(known.into_iter().cloned().map(Some).collect()),
            Some(name) if known.contains(&name) => Ok(vec![Some(name.clone())]),
            Some(name) => {
                let names: Vec<&str> = known.into_iter().map(String::as_str).collect();
                Err(Error::invalid(format!("there is no [{kind}.{name}]"))
                    .with("file", &self.declared.file)
                    .hint(format!("there are {}", names.join(", "))))
            }
        }
    }

    fn refuse(&self, name: &FlowStageName, what: String) -> Error {
        Error::invalid(what)
            .with("file", &self.declared.file)
            .with("stage", name)
    }

    fn stage(
        &self,
        written: &FlowStageConfig,
        name: &FlowStageName,
        part: Option<&str>,
    ) -> Result<Stage> {
        let period = written.period.unwrap_or(usual_period(written.kind));
        let date = match written.day {
            StageDay::Same => self.date,
            StageDay::Previous => self.date.plus_days(-1),
        };
        let (stamp_date, stamp_run) = match period {
            StagePeriod::Run => (self.date, self.run.clone()),
            StagePeriod::Day => (self.date, DAY.parse()?),
            StagePeriod::Month => (month_begin(self.date), MONTH.parse()?),
        };
        let made = self.part(written, date, part)?;
        let rules = made.rules.unwrap_or_else(|| ContentHash::of(b"none"));
        let rules = hash_of("flow/1", &(written.kind.as_str(), rules, written.version))?;
        let after = written
            .after
            .iter()
            .flat_map(|named| match self.groups.get(named) {
                Some(members) => members.clone(),
                None => vec![named.clone()],
            });
        Ok(Stage {
            name: name.clone(),
            kind: written.kind,
            period,
            date,
            stamp_date,
            stamp_run,
            after: after.collect(),
            program: match written.kind {
                StageKind::Shell => Program::Shell(made.args),
                _ => Program::Lakebed(made.args),
            },
            reads: made.reads,
            writes: made.writes,
            input_files: made.input_files,
            output_files: made.output_files,
            rules,
            timeout: written
                .timeout_minutes
                .map(|m| Duration::from_secs(60 * u64::from(m))),
            is_due: period != StagePeriod::Month || self.date.plus_days(1).date().day() == 1,
        })
    }

    fn part(
        &self,
        written: &FlowStageConfig,
        date: BusinessDate,
        part: Option<&str>,
    ) -> Result<Part> {
        match written.kind {
            StageKind::Crawl | StageKind::Close | StageKind::Pack => self.crawl(written, date),
            StageKind::Seed => self.seed(written, date),
            StageKind::Parse => self.parse(date),
            StageKind::Ingest => self.ingest(written, date),
            StageKind::Fold => self.fold(part.unwrap_or_default(), date),
            StageKind::Derive => self.derive(part.unwrap_or_default(), date),
            StageKind::Seal => Self::seal(part.unwrap_or_default(), date),
            StageKind::Shell => self.shell(written, date),
            StageKind::Manifest
            | StageKind::Check
            | StageKind::Compact
            | StageKind::Retain
            | StageKind::Reconcile
            | StageKind::Publish => Err(Error::internal("a kind that is not yet there")),
        }
    }

    /// `{date}`, `{run}`, `{source}` and `{month}` in a text.
    fn filled(&self, text: &str, date: BusinessDate) -> String {
        let day = date.to_string();
        text.replace("{date}", &day)
            .replace("{month}", &day[..7.min(day.len())])
            .replace("{run}", self.run.as_str())
            .replace("{source}", self.declared.source.as_str())
    }

    fn run_of(&self, written: &FlowStageConfig, date: BusinessDate) -> Result<RunName> {
        match &written.run {
            None => Ok(self.run.clone()),
            Some(text) => self.filled(text, date).parse(),
        }
    }

    /// What was fetched is a fact: no changed setting makes it another one.
    fn crawl(&self, written: &FlowStageConfig, date: BusinessDate) -> Result<Part> {
        let (source, day) = (&self.declared.source, date.to_string());
        let run = self.run_of(written, date)?;
        if !self.declared.is_crawled && written.kind != StageKind::Pack {
            return Err(Error::invalid(format!("`{source}` declares no [crawl]"))
                .with("file", &self.declared.file)
                .hint("docs/crawl.md tells what it needs; responses of another crawler come by a stage `pack`"));
        }
        let which = [source.as_str(), "--date", &day, "--run", run.as_str()].map(str::to_owned);
        let mut made = Part::default();
        match written.kind {
            StageKind::Pack => {
                made.args = texts(["pack", "seal", "--source"]);
                made.args.extend(which);
                for (option, value) in [
                    ("--parts", &written.parts),
                    ("--terminals", &written.terminals),
                ] {
                    let value = self.filled(value.as_deref().unwrap_or_default(), date);
                    made.args.extend([option.to_owned(), value]);
                }
            }
            StageKind::Close => {
                made.args = texts(["crawl", "close"]);
                made.args.extend(which);
            }
            _ => {
                made.args = texts(["crawl"]);
                made.args.extend(which);
            }
        }
        if written.plan {
            let seed = self.stages.iter().rev().find(|s| s.kind == StageKind::Seed);
            let plan = seed.and_then(|s| s.output_files.first()).ok_or_else(|| {
                Error::invalid(
                    "it fetches what a stage `seed` planned, and there is none before it",
                )
                .with("file", &self.declared.file)
                .hint("declare a stage of kind `seed` before it")
            })?;
            made.args.extend(["--plan".to_owned(), plan.clone()]);
            made.input_files.push(plan.clone());
        }
        if written.no_close {
            made.args.push("--no-close".to_owned());
        } else {
            made.writes
                .push(Scope::packs(self.declared.raw.clone(), date, vec![run]));
        }
        Ok(made)
    }

    fn seed(&self, written: &FlowStageConfig, date: BusinessDate) -> Result<Part> {
        let source = &self.declared.source;
        let seed = self.declared.seed.as_ref().ok_or_else(|| {
            Error::invalid(format!(
                "a stage of kind `seed`, but `{source}` declares no [seed]"
            ))
            .with("file", &self.declared.file)
        })?;
        let run = self.run_of(written, date)?;
        let day = date.to_string();
        let folder = format!("seed/{source}/{day}.{run}");
        Ok(Part {
            args: texts([
                "seed",
                source.as_str(),
                "--date",
                &day,
                "--run",
                run.as_str(),
            ]),
            reads: vec![
                Scope::day(seed.list.clone(), date),
                Scope::day(self.feature(&seed.fold)?, date.plus_days(-1)),
            ],
            output_files: vec![
                format!("{folder}/plan.jsonl"),
                format!("{folder}/plan.json"),
            ],
            rules: Some(seed.rules.clone()),
            ..Part::default()
        })
    }

    /// Tells the readers of packs which runs the whole flow crawls: what came late goes back to one of these.
    fn name_crawled(&mut self) {
        let raw = &self.declared.raw;
        let writes = self.stages.iter().flat_map(|s| &s.writes);
        let flow = FlowRuns {
            source: self.declared.source.clone(),
            crawled: writes
                .filter(|scope| scope.dataset == *raw)
                .flat_map(|scope| scope.runs.clone())
                .collect(),
            is_whole: self.run.as_str() == WHOLE_DAY,
        };
        let reads = self.stages.iter_mut().flat_map(|s| &mut s.reads);
        for scope in reads.filter(|scope| !scope.runs.is_empty()) {
            scope.flow = Some(flow.clone());
        }
    }

    /// It reads the runs that stages before it crawl, or every pack where none does.
    fn parse(&self, date: BusinessDate) -> Result<Part> {
        let source = &self.declared.source;
        let rules = self.declared.parse.clone().ok_or_else(|| {
            Error::invalid(format!(
                "a stage of kind `parse`, but `{source}` has no parse rules"
            ))
            .with("file", &self.declared.file)
        })?;
        let raw = &self.declared.raw;
        let before = self.stages.iter().flat_map(|s| &s.writes);
        let mut runs: Vec<RunName> = before
            .filter(|scope| scope.dataset == *raw && scope.to == date)
            .flat_map(|scope| scope.runs.clone())
            .collect();
        runs.dedup();
        let parsed = self.declared.parsed.iter();
        Ok(Part {
            args: texts(["parse", source.as_str(), "--date", &date.to_string()]),
            reads: vec![Scope::packs(raw.clone(), date, runs)],
            writes: parsed.map(|d| Scope::day(d.clone(), date)).collect(),
            rules: Some(rules),
            ..Part::default()
        })
    }

    fn ingest(&self, written: &FlowStageConfig, date: BusinessDate) -> Result<Part> {
        let dataset = &written.datasets[0];
        let files: Vec<String> = written
            .inputs
            .iter()
            .map(|i| self.filled(i, date))
            .collect();
        let mut args = texts(["ingest", &dataset.to_string()]);
        args.extend(files.clone());
        args.extend(texts(["--date", &date.to_string()]));
        args.extend(written.command.iter().map(|word| self.filled(word, date)));
        Ok(Part {
            args,
            writes: vec![Scope::day(dataset.clone(), date)],
            input_files: files,
            rules: Some(hash_of("ingest", &(dataset, &written.command))?),
            ..Part::default()
        })
    }

    fn feature(&self, part: &str) -> Result<DatasetRef> {
        crate::config::derived_dataset(&self.declared.source, part)
    }

    fn fold(&self, name: &str, date: BusinessDate) -> Result<Part> {
        let source = &self.declared.source;
        let declared = self.declared.folds.get(name);
        let fold = declared.ok_or_else(|| Error::internal("a fold that is not declared"))?;
        let snapshot = self.feature(name)?;
        let mut reads: Vec<Scope> = fold
            .inputs
            .iter()
            .map(|d| Scope::day(d.clone(), date))
            .collect();
        reads.push(Scope::day(snapshot.clone(), date.plus_days(-1)));
        Ok(Part {
            args: texts([
                "fold",
                source.as_str(),
                "--name",
                name,
                "--date",
                &date.to_string(),
            ]),
            reads,
            writes: vec![
                Scope::day(snapshot, date),
                Scope::day(self.feature(&format!("{name}_events"))?, date),
            ],
            rules: Some(fold.rules.clone()),
            ..Part::default()
        })
    }

    fn derive(&self, name: &str, date: BusinessDate) -> Result<Part> {
        let source = &self.declared.source;
        let declared = self.declared.derives.get(name);
        let derived = declared.ok_or_else(|| Error::internal("a query that is not declared"))?;
        let parents = derived.config.parents.iter();
        let reads = parents.map(|parent| {
            let (from, to) = parent_dates(parent.dates(), date);
            Scope {
                from,
                ..Scope::day(parent.dataset().clone(), to)
            }
        });
        Ok(Part {
            args: texts(["derive", source.as_str(), name, "--date", &date.to_string()]),
            reads: reads.collect(),
            writes: vec![Scope::day(derived.dataset.clone(), date)],
            rules: Some(derived.rules.clone()),
            ..Part::default()
        })
    }

    fn seal(dataset: &str, date: BusinessDate) -> Result<Part> {
        let scope = Scope::day(dataset.parse()?, date);
        Ok(Part {
            args: texts(["seal", dataset, "--date", &date.to_string()]),
            reads: vec![scope.clone()],
            writes: vec![scope],
            ..Part::default()
        })
    }

    fn shell(&self, written: &FlowStageConfig, date: BusinessDate) -> Result<Part> {
        let month = written.period == Some(StagePeriod::Month);
        let scope = |dataset: DatasetRef| Scope {
            from: if month { month_begin(date) } else { date },
            ..Scope::day(dataset, date)
        };
        let sort = |entries: &[String]| {
            let (mut scopes, mut files) = (Vec::new(), Vec::new());
            for entry in entries {
                match entry.parse::<DatasetRef>() {
                    Ok(dataset) => scopes.push(scope(dataset)),
                    Err(_) => files.push(self.filled(entry, date)),
                }
            }
            (scopes, files)
        };
        let (reads, input_files) = sort(&written.inputs);
        let (writes, output_files) = sort(&written.outputs);
        Ok(Part {
            args: written
                .command
                .iter()
                .map(|word| self.filled(word, date).replace("{out}", self.out))
                .collect(),
            reads,
            writes,
            input_files,
            output_files,
            rules: Some(hash_of(
                "shell",
                &(&written.command, &written.inputs, &written.outputs),
            )?),
        })
    }

    /// The stages with all edges, each behind those before it.
    fn ordered(mut self) -> Result<Vec<Stage>> {
        for reader in 0..self.stages.len() {
            let edges = self.edges_to(reader)?;
            self.stages[reader].after = edges;
        }
        let mut left = self.stages.clone();
        let mut ordered: Vec<Stage> = Vec::new();
        while !left.is_empty() {
            let is_ready = |stage: &Stage| {
                let mut after = stage.after.iter();
                after.all(|name| ordered.iter().any(|s| s.name == *name))
            };
            let Some(at) = left.iter().position(is_ready) else {
                return Err(self.circle(&left));
            };
            ordered.push(left.remove(at));
        }
        Ok(ordered)
    }

    /// Everything right before a stage: what it names, and what is declared before it and writes what it reads.
    fn edges_to(&self, reader: usize) -> Result<Vec<FlowStageName>> {
        let stage = &self.stages[reader];
        let mut before = BTreeSet::new();
        for named in &stage.after {
            let members = match self.groups.get(named) {
                Some(members) => members.clone(),
                None => vec![named.clone()],
            };
            for name in members {
                let Some(at) = self.stages.iter().position(|s| s.name == name) else {
                    let names: Vec<&str> = self.stages.iter().map(|s| s.name.as_str()).collect();
                    return Err(self
                        .refuse(
                            &stage.name,
                            format!("it comes after `{name}`, which is no stage"),
                        )
                        .hint(format!("stages are {}", names.join(", "))));
                };
                before.insert(at);
            }
        }
        let writes =
            |at: usize, scope: &Scope| self.stages[at].writes.iter().any(|w| w.meets(scope));
        for scope in &stage.reads {
            let writers = (0..self.stages.len()).filter(|at| *at != reader && writes(*at, scope));
            let (earlier, later): (Vec<usize>, Vec<usize>) = writers.partition(|at| *at < reader);
            if let (true, Some(late)) = (earlier.is_empty(), later.first()) {
                if before.contains(late) {
                    continue;
                }
                let writer = &self.stages[*late].name;
                return Err(self
                    .refuse(
                        &stage.name,
                        format!(
                            "it reads {}, which `{writer}` writes only later",
                            scope.dataset
                        ),
                    )
                    .hint(format!(
                        "declare `{writer}` before it, or say after = [\"{writer}\"]"
                    )));
            }
            before.extend(earlier);
        }
        for file in &stage.input_files {
            let writes = |s: &Stage| s.output_files.iter().any(|o| files_meet(o, file));
            before.extend((0..reader).filter(|at| writes(&self.stages[*at])));
        }
        Ok(before
            .into_iter()
            .map(|at| self.stages[at].name.clone())
            .collect())
    }

    fn circle(&self, left: &[Stage]) -> Error {
        let mut way: Vec<&FlowStageName> = vec![&left[0].name];
        while let Some(stage) = left.iter().find(|s| Some(&&s.name) == way.last()) {
            let Some(next) = stage
                .after
                .iter()
                .find(|a| left.iter().any(|s| s.name == **a))
            else {
                break;
            };
            let met = way.iter().position(|name| *name == next);
            way.push(next);
            if let Some(met) = met {
                way.drain(..met);
                break;
            }
        }
        let way: Vec<&str> = way.into_iter().map(FlowStageName::as_str).collect();
        Error::invalid(format!(
            "stages wait for each other: {}",
            way.join(" after ")
        ))
        .with("file", &self.declared.file)
        .hint("take one of these edges away")
    }
}

/// Whether two entries may name one file: equal, or one of them is a glob that fits the other.
fn files_meet(one: &str, other: &str) -> bool {
    let fits =
        |pattern: &str, text: &str| glob::Pattern::new(pattern).is_ok_and(|p| p.matches(text));
    one == other || fits(one, other) || fits(other, one)
}
