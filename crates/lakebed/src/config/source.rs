//! `sources/<source>/source.toml`: what the team says of a source and its datasets.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::config::makers::Makers;
use crate::config::{
    CrawlConfig, DeriveConfig, FlowConfig, FoldConfig, ParseConfig, Project, SeedConfig,
    nearest_hint, parse_toml,
};
use crate::error::{Error, Result};
use crate::name::{DatasetName, DatasetRef, FoldName, Layer, SourceName};
use crate::spec::DatasetClass;
use crate::time::time_zone;

/// What may change from one schema version to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evolution {
    /// Whatever the rules of evolution allow.
    #[default]
    Free,
    /// Additions alone: new fields, further enum values, notes.
    AddOnly,
}

/// Which rows of a dataset without a key are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedup {
    /// Those that are equal in every field.
    Rows,
}

/// The table `[dataset.<name>]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetConfig {
    /// What its versions may change.
    #[serde(default)]
    pub evolution: Evolution,
    /// Columns that name one object; empty = none declared.
    #[serde(default)]
    pub key: Vec<String>,
    /// A column that tells which of two rows of one key is newer; absent = `_fetched_at`, where there
    /// is one.
    pub newest_by: Option<String>,
    /// Which rows are one where there is no key; absent = none.
    pub dedup: Option<Dedup>,
    /// Columns whose bounds stand in the log, for pruning.
    #[serde(default)]
    pub prune: Vec<String>,
    /// Whether a date whose pages give no record of it is as it should be.
    #[serde(default)]
    pub may_be_empty: bool,
}

impl DatasetConfig {
    /// Whether `<dataset>__latest` can be asked for.
    #[must_use]
    pub fn has_latest(&self) -> bool {
        !self.key.is_empty() || self.dedup.is_some()
    }

    fn check(&self, name: &DatasetName, file: &str) -> Result<()> {
        let refuse = |key: &str, what: &str, hint: &str| {
            Err(Error::invalid(format!("dataset `{name}`: {what}"))
                .with("file", file)
                .with("key", format!("dataset.\"{name}\".{key}"))
                .hint(hint))
        };
        if self.dedup.is_some() && !self.key.is_empty() {
            return refuse(
                "dedup",
                "`dedup` is for a dataset without a `key`",
                "with a key, the newest row of each key is what counts: leave `dedup` out",
            );
        }
        if self.newest_by.is_some() && self.key.is_empty() {
            return refuse(
                "newest_by",
                "`newest_by` says which row of a key is newest, but there is no `key`",
                "add `key = [\"...\"]`, the columns that name one object",
            );
        }
        let mut seen = std::collections::BTreeSet::new();
        match self.key.iter().find(|column| !seen.insert(column.as_str())) {
            Some(twice) => refuse(
                "key",
                &format!("`{twice}` stands twice in `key`"),
                "name it once",
            ),
            None => Ok(()),
        }
    }
}

/// A source as its `source.toml` says.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SourceConfig {
    /// Code name: the folder's.
    pub name: SourceName,
    /// What kind of data it delivers.
    pub class: DatasetClass,
    /// Title, in any script.
    pub title: Option<String>,
    /// Where it is crawled.
    pub url: Option<String>,
    /// Names it had before.
    pub old_names: Vec<SourceName>,
    /// IANA zone of its business dates; absent = the lake's.
    pub time_zone: Option<String>,
    /// How it is crawled; absent where its data comes from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawl: Option<CrawlConfig>,
    /// What its pages give; absent where they are not parsed here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse: Option<ParseConfig>,
    /// What is known of each of its objects, from day to day; by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub folds: BTreeMap<FoldName, FoldConfig>,
    /// Which objects are fetched in detail; absent where a list of seeds says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<SeedConfig>,
    /// Datasets that queries make, by the part of the name after the dot.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub derive: BTreeMap<String, DeriveConfig>,
    /// How its stages follow each other; absent = as follows from what the source declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowConfig>,
    /// Declared datasets; one that is not declared has the defaults.
    pub datasets: BTreeMap<DatasetName, DatasetConfig>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceFile {
    class: DatasetClass,
    title: Option<String>,
    url: Option<String>,
    #[serde(default)]
    old_names: Vec<SourceName>,
    time_zone: Option<String>,
    crawl: Option<CrawlConfig>,
    parse: Option<ParseConfig>,
    #[serde(default)]
    fold: BTreeMap<FoldName, FoldConfig>,
    seed: Option<SeedConfig>,
    #[serde(default)]
    derive: BTreeMap<String, DeriveConfig>,
    flow: Option<FlowConfig>,
    #[serde(default)]
    dataset: BTreeMap<DatasetName, DatasetConfig>,
}

impl SourceConfig {
    /// What is declared of a dataset, or the defaults.
    #[must_use]
    pub fn dataset(&self, dataset: &DatasetRef) -> DatasetConfig {
        let declared = self.datasets.get(&dataset.dataset).cloned();
        let mut declared = declared.unwrap_or_default();
        // The key of a snapshot is that of its fold, unless somebody says otherwise.
        if declared.key.is_empty()
            && declared.dedup.is_none()
            && let Some(fold) = self.fold_of(dataset)
        {
            declared.key.clone_from(&fold.key);
        }
        declared
    }

    /// The fold whose snapshots the dataset holds.
    fn fold_of(&self, dataset: &DatasetRef) -> Option<&FoldConfig> {
        let name = dataset.dataset.as_str().strip_prefix(self.name.as_str())?;
        let name = name.strip_prefix('.')?.parse::<FoldName>().ok()?;
        let is_feature = dataset.layer == Layer::Feature;
        self.folds.get(&name).filter(|_| is_feature)
    }

    /// Reads the text of a `source.toml`; `file` names it in errors.
    pub fn parse(name: &SourceName, text: &str, file: &str) -> Result<Self> {
        let raw: SourceFile = parse_toml(text, file)?;
        if let Some(zone) = &raw.time_zone {
            time_zone(zone).map_err(|e| e.with("key", "time_zone").with("file", file))?;
        }
        if let Some(crawl) = &raw.crawl {
            crawl.check(file)?;
        }
        for (derived, declared) in &raw.derive {
            declared.check(name, derived, file)?;
        }
        if let Some(flow) = &raw.flow {
            flow.check(file)?;
        }
        if let Some(parse) = &raw.parse {
            parse.check(raw.crawl.as_ref(), file)?;
        }
        for (fold, declared) in &raw.fold {
            declared.check(fold, name.as_str(), file)?;
        }
        if let Some(seed) = &raw.seed {
            seed.check(file)?;
            if !raw.fold.contains_key(&seed.fold) {
                let names: Vec<&str> = raw.fold.keys().map(FoldName::as_str).collect();
                return Err(Error::invalid(format!("there is no fold `{}`", seed.fold))
                    .with("file", file)
                    .with("key", "seed.fold")
                    .hint(nearest_hint(seed.fold.as_str(), &names)));
            }
            seed.check_stage(raw.crawl.as_ref(), file)?;
        }
        let makers = Makers {
            source: name,
            folds: &raw.fold,
            derives: &raw.derive,
            flow: raw.flow.as_ref(),
        };
        makers.check(file)?;
        for (dataset, declared) in &raw.dataset {
            declared.check(dataset, file)?;
            let of = dataset
                .as_str()
                .split_once('.')
                .map_or(dataset.as_str(), |(s, _)| s);
            if of != name.as_str() {
                return Err(
                    Error::invalid(format!("dataset `{dataset}` does not belong to `{name}`"))
                        .with("file", file)
                        .hint(format!(
                            "a dataset of this source is `{name}`, or `{name}.<part>`, written [dataset.\"{name}.<part>\"]"
                        )),
                );
            }
        }
        Ok(Self {
            name: name.clone(),
            class: raw.class,
            title: raw.title,
            url: raw.url,
            old_names: raw.old_names,
            time_zone: raw.time_zone,
            crawl: raw.crawl,
            parse: raw.parse,
            folds: raw.fold,
            seed: raw.seed,
            derive: raw.derive,
            flow: raw.flow,
            datasets: raw.dataset,
        })
    }
}

/// A new `source.toml`, with what may be added as comments.
fn source_text(name: &SourceName, class: DatasetClass, title: Option<&str>) -> String {
    let title = title.map_or_else(
        || "# title = \"...\"            # in any script\n".to_owned(),
        |t| format!("title = {}\n", toml::Value::String(t.to_owned())),
    );
    format!(
        "# log: each day adds observations; snapshot: each day holds the whole; reference: look-up data\n\
         class = \"{}\"\n\
         {title}\
         # url = \"https://...\"\n\
         # time_zone = \"Asia/Taipei\"  # of its business dates, where not the lake's\n\
         \n\
         # [dataset.{name}]\n\
         # evolution = \"add_only\"     # new versions may only add\n\
         # key = [\"id\"]               # columns that name one object: SQL has {name}__latest\n\
         # newest_by = \"crawled_at\"   # which row of a key is newest [default: _fetched_at, then dt]\n\
         # dedup = \"rows\"             # without a key: {name}__latest has equal rows once\n\
         # prune = [\"published_at\"]   # their bounds go into the log with each file\n\
         # may_be_empty = true        # a date whose pages give no record of it is no failure\n",
        class.as_str()
    )
}

impl Project {
    /// A source; one without a `source.toml` is a `NotFound` error that names those there are.
    pub fn load_source(&self, name: &SourceName) -> Result<SourceConfig> {
        let path = self.source_file(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.unknown_source(name));
            }
            Err(e) => return Err(Error::io("read the file", path.display(), e)),
        };
        SourceConfig::parse(name, &text, &path.display().to_string())
    }

    fn unknown_source(&self, name: &SourceName) -> Error {
        let names = self.list_source_names().unwrap_or_default();
        let error = Error::not_found(format!("there is no source `{name}`"))
            .with("file", self.source_file(name).display());
        let near = super::nearest(name.as_str(), names.iter().map(SourceName::as_str));
        match near {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!(
                "`lakebed source new {name} --url URL --contact MAIL` begins one that is crawled, `lakebed source add {name}` one of files"
            )),
        }
    }

    /// Names of all folders below `sources/` that hold a `source.toml`, sorted.
    pub fn list_source_names(&self) -> Result<Vec<SourceName>> {
        let folder = self.sources_dir();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("list the folder", folder.display(), e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("list the folder", folder.display(), e))?;
            let file = entry.path().join("source.toml");
            if !file.is_file() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            names.push(name.parse::<SourceName>().map_err(|e| {
                e.with("file", file.display())
                    .hint("rename the folder; the title may be in any script")
            })?);
        }
        names.sort();
        Ok(names)
    }

    /// Every source, by name.
    pub fn list_sources(&self) -> Result<Vec<SourceConfig>> {
        let names = self.list_source_names()?;
        names.iter().map(|name| self.load_source(name)).collect()
    }

    /// Makes `sources/<name>/source.toml` and the schema folder of the dataset of that name.
    pub fn add_source(
        &self,
        name: &SourceName,
        class: DatasetClass,
        title: Option<&str>,
    ) -> Result<SourceConfig> {
        let text = source_text(name, class, title);
        let path = self.source_file(name);
        let source = SourceConfig::parse(name, &text, &path.display().to_string())?;
        if path.exists() {
            return Err(
                Error::already_exists(format!("source `{name}` is there already"))
                    .with("file", path.display())
                    .hint("edit that file; nothing was changed"),
            );
        }
        let dataset = name.as_str().parse::<DatasetName>()?;
        let schemas = self.schemas_dir(&dataset);
        fs::create_dir_all(&schemas)
            .map_err(|e| Error::io("create the folder", schemas.display(), e))?;
        super::project::write_new(&path, &text)?;
        Ok(source)
    }
}
