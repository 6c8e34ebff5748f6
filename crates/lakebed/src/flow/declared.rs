//! What a source declares that a flow is made of, read once: its rules, its queries, its folds, and its stages as they
//! are written or as they follow from the rest.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{
    DeriveConfig, FlowConfig, FlowStageConfig, Project, SourceConfig, StageDay, StageKind,
    StagePeriod, derived_dataset,
};
use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef, FlowStageName, Layer, RunName, SourceName};
use crate::parse::Rules;

/// The run of a whole day; every other one is a sweep.
pub const WHOLE_DAY: &str = "day";

/// What a source declares.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The source.
    pub source: SourceName,
    /// Its datasets `raw/<source>` and what its pages give.
    pub raw: DatasetRef,
    /// Whether it is crawled here.
    pub is_crawled: bool,
    /// Names its parse rules; absent = none.
    pub parse: Option<ContentHash>,
    /// What its pages give, sorted.
    pub parsed: Vec<DatasetRef>,
    /// Its folds, by name.
    pub folds: BTreeMap<String, Folded>,
    /// How its details are seeded.
    pub seed: Option<Seeded>,
    /// Its queries, by name.
    pub derives: BTreeMap<String, Derived>,
    /// Its stages as written; absent = as they follow from the rest.
    pub flow: Option<FlowConfig>,
    /// Its file, for messages.
    pub file: String,
}

/// A fold that is declared.
#[derive(Debug, Clone)]
pub struct Folded {
    /// What it reads of the day.
    pub inputs: Vec<DatasetRef>,
    /// Names its rules.
    pub rules: ContentHash,
}

/// List-driven seeding that is declared.
#[derive(Debug, Clone)]
pub struct Seeded {
    /// The rows of the list of today.
    pub list: DatasetRef,
    /// The fold whose snapshot of yesterday it reads.
    pub fold: String,
    /// Names its rules.
    pub rules: ContentHash,
}

/// A query that is declared.
#[derive(Debug, Clone)]
pub struct Derived {
    /// What is written of it.
    pub config: DeriveConfig,
    /// Its text.
    pub sql: String,
    /// What it makes.
    pub dataset: DatasetRef,
    /// Names text and parents.
    pub rules: ContentHash,
}

impl Derived {
    /// Reads a query of the source, from its file where it has one.
    ///
    /// # Errors
    /// `NotFound` for a file that is not there; `InvalidInput` for an empty query.
    pub fn read(project: &Project, source: &SourceConfig, name: &str) -> Result<Self> {
        let file = project.source_file(&source.name);
        Self::read_of(source, name, (&file, &file))
    }

    /// Reads a query that a file like source.toml declares; files that it names lie beside source.toml.
    ///
    /// # Errors
    /// As [`Self::read`], with that file.
    pub fn read_of(
        source: &SourceConfig,
        name: &str,
        (file, source_file): (&Path, &Path),
    ) -> Result<Self> {
        let Some(config) = source.derive.get(name) else {
            let names: Vec<&str> = source.derive.keys().map(String::as_str).collect();
            let error = Error::not_found(format!(
                "source `{}` declares no [derive.{name}]",
                source.name
            ))
            .with("file", file.display());
            return Err(match names.is_empty() {
                true => error
                    .hint("[derive.<name>] with `sql` and `parents` declares one: docs/flow.md"),
                false => error.hint(format!("it declares {}", names.join(", "))),
            });
        };
        let sql = match (&config.sql, &config.file) {
            (Some(text), _) => text.clone(),
            (None, Some(name)) => {
                let path = source_file.with_file_name(name);
                std::fs::read_to_string(&path)
                    .map_err(|e| Error::io("read the query", path.display(), e))?
            }
            (None, None) => String::new(),
        };
        let sql = sql.trim().trim_end_matches(';').trim_end().to_owned();
        if sql.is_empty() {
            return Err(
                Error::invalid(format!("the query of [derive.{name}] is empty"))
                    .with("file", file.display()),
            );
        }
        // Where the text comes from makes no row another one.
        let named = DeriveConfig {
            sql: Some(sql.clone()),
            file: None,
            ..config.clone()
        };
        Ok(Self {
            dataset: derived_dataset(&source.name, name)?,
            rules: hash_of("derive/1", &named)?,
            config: config.clone(),
            sql,
        })
    }
}

/// The folds of a source.
fn folds_of(source: &SourceConfig) -> Result<BTreeMap<String, Folded>> {
    let mut folds = BTreeMap::new();
    for (name, config) in &source.folds {
        let inputs = config.from.iter().map(|input| DatasetRef {
            layer: Layer::Clean,
            dataset: input.dataset.clone(),
        });
        let fold = Folded {
            inputs: inputs.collect(),
            rules: hash_of("fold/1", config)?,
        };
        folds.insert(name.to_string(), fold);
    }
    Ok(folds)
}

/// The seeding of a source: its list is an input of the fold that it looks at.
fn seed_of(source: &SourceConfig) -> Result<Option<Seeded>> {
    let Some(seed) = &source.seed else {
        return Ok(None);
    };
    let inputs = source.folds.get(&seed.fold).map(|fold| &fold.from);
    let mut inputs = inputs.into_iter().flatten();
    let list = match &seed.list {
        Some(name) => inputs.find(|input| input.name() == name),
        None => inputs.find(|input| input.presence),
    };
    let list = list.ok_or_else(|| {
        Error::invalid(format!(
            "the fold `{}` has no input that is the list",
            seed.fold
        ))
        .with("key", "seed.list")
        .hint("name one of its inputs: list = \"...\"")
    })?;
    Ok(Some(Seeded {
        list: DatasetRef {
            layer: Layer::Clean,
            dataset: list.dataset.clone(),
        },
        fold: seed.fold.to_string(),
        rules: hash_of("seed/1", seed)?,
    }))
}

/// Names a part of the configuration.
pub(super) fn hash_of(kind: &str, what: &impl serde::Serialize) -> Result<ContentHash> {
    let text = serde_json::to_vec(what)
        .map_err(|e| Error::internal("write the configuration as JSON").caused_by(e))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind.as_bytes());
    hasher.update(b"\n");
    hasher.update(&text);
    Ok(ContentHash::finish(&hasher))
}

impl Declared {
    /// Reads what the source declares.
    ///
    /// # Errors
    /// Those of the rules and of the files of queries.
    pub fn read(project: &Project, source: &SourceConfig) -> Result<Self> {
        Self::read_of(project, source, &project.source_file(&source.name))
    }

    /// Reads what a file like source.toml declares; files that it names lie beside source.toml.
    ///
    /// # Errors
    /// As [`Self::read`], with that file.
    pub fn read_of(project: &Project, source: &SourceConfig, path: &Path) -> Result<Self> {
        let source_file = project.source_file(&source.name);
        let file = path.display().to_string();
        let rules = match source.parse {
            Some(_) => Some(Rules::read(source, &file)?),
            None => None,
        };
        let of_layer = |layer, dataset| DatasetRef { layer, dataset };
        let parsed = rules.iter().flat_map(Rules::datasets);
        let mut derives = BTreeMap::new();
        for name in source.derive.keys() {
            let derived = Derived::read_of(source, name, (path, &source_file))?;
            derives.insert(name.clone(), derived);
        }
        Ok(Self {
            source: source.name.clone(),
            raw: of_layer(Layer::Raw, source.name.as_str().parse()?),
            is_crawled: source.crawl.is_some(),
            parsed: parsed.map(|name| of_layer(Layer::Clean, name)).collect(),
            parse: rules.map(|rules| rules.hash().clone()),
            folds: folds_of(source)?,
            seed: seed_of(source)?,
            derives,
            flow: source.flow.clone(),
            file,
        })
    }

    /// Whether there is anything to run.
    #[must_use]
    pub fn has_flow(&self) -> bool {
        let is_written = self
            .flow
            .as_ref()
            .is_some_and(|flow| !flow.stage.is_empty());
        let declares = self.is_crawled || self.parse.is_some() || !self.derives.is_empty();
        is_written || (self.flow.is_none() && (declares || !self.folds.is_empty()))
    }

    /// The stages of a run in their declared order: as written, or as they follow from what is declared.
    ///
    /// # Errors
    /// `Internal`, which cannot happen.
    pub fn stages(&self, run: &RunName) -> Result<Vec<FlowStageConfig>> {
        match &self.flow {
            Some(flow) => Ok(flow.stage.clone()),
            None => self.usual_stages(run),
        }
    }

    /// List, parse, seal, yesterday's fold, seed, detail, parse, seal, fold, derive: what of these the source declares.
    ///
    /// A sweep (any run but `day`) crawls and parses alone: the day is sealed, folded and derived by its whole run.
    fn usual_stages(&self, run: &RunName) -> Result<Vec<FlowStageConfig>> {
        let is_whole = run.as_str() == WHOLE_DAY;
        let seed = self.seed.as_ref().filter(|_| is_whole && self.is_crawled);
        let mut stages = Usual::default();
        if self.is_crawled {
            let name = if seed.is_some() { "list" } else { "crawl" };
            stages.add(StageKind::Crawl, name)?;
        }
        if self.parse.is_some() {
            let name = if seed.is_some() {
                "parse-list"
            } else {
                "parse"
            };
            stages.add(StageKind::Parse, name)?;
        }
        let mut open = self.parsed.clone();
        if let Some(seed) = seed {
            stages.add(StageKind::Seal, "seal-list")?.datasets = vec![seed.list.clone()];
            open.retain(|dataset| *dataset != seed.list);
            // Before the seed: of a house that vanished yesterday it must know so (docs/flow.md).
            stages.add(StageKind::Fold, "fold-previous")?.day = StageDay::Previous;
            stages.add(StageKind::Seed, "seed")?;
            let detail = stages.add(StageKind::Crawl, "detail")?;
            detail.plan = true;
            detail.run = Some("{run}-detail".to_owned());
            stages.add(StageKind::Parse, "parse")?;
        }
        if is_whole {
            if !open.is_empty() {
                stages.add(StageKind::Seal, "seal")?.datasets = open;
            }
            if !self.folds.is_empty() {
                stages.add(StageKind::Fold, "fold")?;
            }
            if !self.derives.is_empty() {
                stages.add(StageKind::Derive, "derive")?;
            }
        }
        Ok(stages.0)
    }
}

#[derive(Default)]
struct Usual(Vec<FlowStageConfig>);

impl Usual {
    fn add(&mut self, kind: StageKind, name: &str) -> Result<&mut FlowStageConfig> {
        let mut stage = FlowStageConfig::of_kind(kind);
        stage.name = Some(name.parse::<FlowStageName>()?);
        self.0.push(stage);
        let last = self.0.last_mut();
        last.ok_or_else(|| Error::internal("a stage that was just added"))
    }
}

/// For what a stage of the kind is done once, where nothing else is said.
pub(super) fn usual_period(kind: StageKind) -> StagePeriod {
    match kind {
        StageKind::Crawl
        | StageKind::Close
        | StageKind::Pack
        | StageKind::Seed
        | StageKind::Parse
        | StageKind::Shell => StagePeriod::Run,
        StageKind::Ingest
        | StageKind::Fold
        | StageKind::Derive
        | StageKind::Seal
        | StageKind::Manifest
        | StageKind::Check
        | StageKind::Compact
        | StageKind::Retain
        | StageKind::Reconcile
        | StageKind::Publish => StagePeriod::Day,
    }
}
