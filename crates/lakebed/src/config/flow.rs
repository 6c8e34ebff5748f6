//! How the stages of a source follow each other: the tables `[[flow.stage]]` of its `source.toml`, as they are written.
//!
//! Only the shape is known here, and what a kind needs; edges, command lines and stamps are `flow`'s. The page
//! docs/flow.md describes the language.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::{DatasetRef, FlowStageName};

/// The table `[flow]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// The stages; each comes after those it names or reads from.
    #[serde(default)]
    pub stage: Vec<FlowStageConfig>,
}

/// A table `[[flow.stage]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlowStageConfig {
    /// Names its stamp and its log; absent = the kind, with the name of what it makes.
    pub name: Option<FlowStageName>,
    /// What it does.
    pub kind: StageKind,
    /// Stages that come before it, beside those it reads from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<FlowStageName>,
    /// Whether it is done once for each run, each day or each month; absent = as its kind is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<StagePeriod>,
    /// The day it works on.
    #[serde(default)]
    pub day: StageDay,
    /// Of crawl, close, seed and pack: the run; `{run}` stands for that of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Of crawl: the requests that the stage `seed` planned.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plan: bool,
    /// Of crawl: leave the closing to a stage `close`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_close: bool,
    /// Of pack: the folder of parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<String>,
    /// Of pack: the file of terminals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminals: Option<String>,
    /// Of fold and derive: which one; of derive and fold absent = all of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Of seal and ingest: the datasets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<DatasetRef>,
    /// Of shell: the program and its arguments. Of ingest: further options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Files (globs from the project folder on) and datasets that it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Files (globs from the project folder on) and datasets that it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Counts as a change of the rules: raise it when a program that it runs has changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub version: u32,
    /// Minutes after which it is ended as failed; absent = never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_minutes: Option<u32>,
}

fn is_false(b: &bool) -> bool {
    !*b
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What a stage does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words of docs/flow.md")]
pub enum StageKind {
    Crawl,
    Close,
    Pack,
    Seed,
    Parse,
    Ingest,
    Fold,
    Derive,
    Seal,
    Shell,
    Manifest,
    Check,
    Compact,
    Retain,
    Reconcile,
    Publish,
}

impl StageKind {
    /// The word in configuration and stamps.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crawl => "crawl",
            Self::Close => "close",
            Self::Pack => "pack",
            Self::Seed => "seed",
            Self::Parse => "parse",
            Self::Ingest => "ingest",
            Self::Fold => "fold",
            Self::Derive => "derive",
            Self::Seal => "seal",
            Self::Shell => "shell",
            Self::Manifest => "manifest",
            Self::Check => "check",
            Self::Compact => "compact",
            Self::Retain => "retain",
            Self::Reconcile => "reconcile",
            Self::Publish => "publish",
        }
    }

    /// Whether what it did stays as it is, whatever becomes of its inputs: what was planned for a run, fetched and packed.
    #[must_use]
    pub const fn is_fact(self) -> bool {
        matches!(self, Self::Crawl | Self::Close | Self::Pack | Self::Seed)
    }

    /// Whether this program can do it; the others are names that are kept for it.
    #[must_use]
    pub const fn is_known(self) -> bool {
        match self {
            Self::Crawl
            | Self::Close
            | Self::Pack
            | Self::Seed
            | Self::Parse
            | Self::Ingest
            | Self::Fold
            | Self::Derive
            | Self::Seal
            | Self::Shell => true,
            Self::Manifest
            | Self::Check
            | Self::Compact
            | Self::Retain
            | Self::Reconcile
            | Self::Publish => false,
        }
    }
}

/// For what a stage is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words of docs/flow.md")]
pub enum StagePeriod {
    Run,
    Day,
    Month,
}

/// The day that a stage works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StageDay {
    /// The date of the call.
    #[default]
    Same,
    /// The day before it.
    Previous,
}

impl FlowConfig {
    /// Checks what the types cannot say.
    pub(super) fn check(&self, file: &str) -> Result<()> {
        for (n, stage) in self.stage.iter().enumerate() {
            stage.check(file, n)?;
        }
        Ok(())
    }
}

impl FlowStageConfig {
    /// A stage of the kind that says nothing else.
    #[must_use]
    pub fn of_kind(kind: StageKind) -> Self {
        Self {
            name: None,
            kind,
            after: Vec::new(),
            period: None,
            day: StageDay::Same,
            run: None,
            plan: false,
            no_close: false,
            parts: None,
            terminals: None,
            of: None,
            datasets: Vec::new(),
            command: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            version: 0,
            timeout_minutes: None,
        }
    }

    fn check(&self, file: &str, n: usize) -> Result<()> {
        match self.fault() {
            None => Ok(()),
            Some((key, what, hint)) => Err(Error::invalid(what)
                .with("file", file)
                .with("key", format!("flow.stage[{}].{key}", n + 1))
                .hint(hint)),
        }
    }

    /// The key that is wrong, what is wrong with it, and advice.
    fn fault(&self) -> Option<(&'static str, String, String)> {
        let kind = self.kind;
        if !kind.is_known() {
            let what = format!("the kind `{}` is not yet there", kind.as_str());
            let hint = "this program knows crawl, close, pack, seed, parse, ingest, fold, derive, seal and shell; a `shell` stage runs any program";
            return Some(("kind", what, hint.to_owned()));
        }
        if let Some((key, of)) = self.stranger() {
            let what = format!("a stage of kind `{}` has no `{key}`", kind.as_str());
            let of: Vec<&str> = of.iter().map(|k| k.as_str()).collect();
            return Some((key, what, format!("it belongs to {}", of.join(", "))));
        }
        if self.timeout_minutes == Some(0) {
            let hint = "leave it out, or give minutes".to_owned();
            return Some((
                "timeout_minutes",
                "a stage that may take no time".to_owned(),
                hint,
            ));
        }
        if let Some(fault) = self.bad_files() {
            return Some(fault);
        }
        let (key, what, hint) = self.lacking()?;
        let what = format!("a stage of kind `{}` {what}", kind.as_str());
        Some((key, what, hint.to_owned()))
    }

    /// A key that is given and is not of the kind, with the kinds that have it.
    fn stranger(&self) -> Option<(&'static str, &'static [StageKind])> {
        use StageKind::{Close, Crawl, Derive, Fold, Ingest, Pack, Seal, Seed, Shell};
        let given: [(&'static str, bool, &'static [StageKind]); 10] = [
            ("run", self.run.is_some(), &[Crawl, Close, Seed, Pack]),
            ("plan", self.plan, &[Crawl]),
            ("no_close", self.no_close, &[Crawl]),
            ("parts", self.parts.is_some(), &[Pack]),
            ("terminals", self.terminals.is_some(), &[Pack]),
            ("of", self.of.is_some(), &[Fold, Derive]),
            ("datasets", !self.datasets.is_empty(), &[Seal, Ingest]),
            ("command", !self.command.is_empty(), &[Shell, Ingest]),
            ("inputs", !self.inputs.is_empty(), &[Shell, Ingest]),
            ("outputs", !self.outputs.is_empty(), &[Shell]),
        ];
        let strange = |(_, is_given, kinds): &&(_, bool, &[StageKind])| {
            *is_given && !kinds.contains(&self.kind)
        };
        given
            .iter()
            .find(strange)
            .map(|(key, _, kinds)| (*key, *kinds))
    }

    /// The datasets that it writes by its own words, each with the key.
    pub(super) fn written(&self) -> Vec<(DatasetRef, &'static str)> {
        let ingested = self.datasets.iter().cloned();
        let ingested = ingested.filter(|_| self.kind == StageKind::Ingest);
        let outputs = self.outputs.iter().filter_map(|o| o.parse().ok());
        ingested
            .map(|dataset| (dataset, "datasets"))
            .chain(outputs.map(|dataset| (dataset, "outputs")))
            .collect()
    }

    /// An entry that names no files below the project folder, with what is wrong with it.
    fn bad_files(&self) -> Option<(&'static str, String, String)> {
        let inputs = self.inputs.iter().map(|entry| ("inputs", entry));
        let outputs = self.outputs.iter().map(|entry| ("outputs", entry));
        for (key, entry) in inputs.chain(outputs) {
            if entry.parse::<DatasetRef>().is_ok() {
                continue;
            }
            let hint = match glob::Pattern::new(entry) {
                Err(e) => format!(
                    "{e}: `*`, `?`, `[abc]` and `**` between slashes are known (docs/flow.md)"
                ),
                Ok(_) if entry.trim().is_empty() => "name a file".to_owned(),
                Ok(_) if entry.starts_with('/') || entry.split('/').any(|part| part == "..") => {
                    "files of a flow lie below the project folder: only there a stamp holds them; a link may lead there".to_owned()
                }
                Ok(_) => continue,
            };
            let what = format!("`{entry}` names no files of the project");
            return Some((key, what, hint));
        }
        None
    }

    /// What the kind needs and is not given.
    fn lacking(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self.kind {
            StageKind::Pack if self.parts.is_none() || self.terminals.is_none() => Some((
                "parts",
                "names the folder of parts and the file of terminals",
                "parts = \"...\", terminals = \"...\"; a crawl of Lakebed packs by itself when it closes",
            )),
            StageKind::Shell if self.command.is_empty() => Some((
                "command",
                "runs a command",
                "command = [\"python3\", \"export.py\", \"{date}\"]",
            )),
            StageKind::Ingest if self.inputs.is_empty() || self.datasets.len() != 1 => Some((
                "datasets",
                "reads files into one dataset",
                "datasets = [\"clean/...\"], inputs = [\"inbox/{date}/*.jsonl\"]",
            )),
            StageKind::Seal if self.datasets.is_empty() => {
                Some(("datasets", "names datasets", "datasets = [\"clean/...\"]"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<FlowConfig> {
        let config: FlowConfig = crate::config::parse_toml(text, "source.toml")?;
        config.check("source.toml").map(|()| config)
    }

    #[test]
    fn what_a_kind_does_not_have_is_refused_by_key() {
        for (text, key, said) in [
            ("kind = \"check\"", "kind", "not yet"),
            ("kind = \"publish\"", "kind", "not yet"),
            (
                "kind = \"parse\"\ncommand = [\"x\"]",
                "command",
                "no `command`",
            ),
            ("kind = \"fold\"\nplan = true", "plan", "no `plan`"),
            ("kind = \"shell\"", "command", "runs a command"),
            ("kind = \"pack\"\nparts = \"x\"", "parts", "terminals"),
            ("kind = \"seal\"", "datasets", "names datasets"),
            (
                "kind = \"ingest\"\ndatasets = [\"clean/a\"]",
                "datasets",
                "reads files",
            ),
            (
                "kind = \"parse\"\ntimeout_minutes = 0",
                "timeout_minutes",
                "no time",
            ),
            (
                "kind = \"shell\"\ncommand = [\"x\"]\ninputs = [\"feature/a\", \"[[\"]",
                "inputs",
                "`[[` names no files",
            ),
            (
                "kind = \"shell\"\ncommand = [\"x\"]\noutputs = [\"out/{date}.csv\", \"a/***\"]",
                "outputs",
                "`a/***` names no files",
            ),
            (
                "kind = \"shell\"\ncommand = [\"x\"]\noutputs = [\"/tmp/x\"]",
                "outputs",
                "`/tmp/x` names no files",
            ),
            (
                "kind = \"ingest\"\ndatasets = [\"clean/a\"]\ninputs = [\"in/../../x\"]",
                "inputs",
                "names no files",
            ),
        ] {
            let error =
                config(&format!("[[stage]]\nkind = \"parse\"\n[[stage]]\n{text}")).unwrap_err();
            let key = format!("flow.stage[2].{key}");
            assert!(
                error.context().iter().any(|(_, v)| *v == key),
                "{text}: {error:?}"
            );
            assert!(error.message().contains(said), "{text}: {error}");
        }
        assert!(config("[[stage]]\nkind = \"shell\"\ncommand = [\"x\"]\ninputs = [\"in/{date}/**/*.[ch]\", \"a..b/x\"]").is_ok());
        assert!(config("[[stage]]\nkind = \"cook\"").is_err());
        assert!(config("[[stage]]\nkind = \"parse\"\nname = \"Übung\"").is_err());
        assert!(config("[[stage]]\nkind = \"parse\"\nafer = []").is_err());
    }
}
