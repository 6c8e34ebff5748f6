//! Settings: flag > environment > `lakebed.local.toml` > `lakebed.toml` > default, each value with
//! its origin, so that nobody has to guess why something holds.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::config::environment::read_settings;
use crate::config::{CrawlLocal, list_keys, nearest_hint, parse_toml};
use crate::error::{Error, Result};
use crate::time::time_zone;

/// Name of the file that marks a project.
pub const PROJECT_FILE: &str = "lakebed.toml";
/// Name of the git-ignored settings of one machine.
pub const LOCAL_FILE: &str = "lakebed.local.toml";

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingKey {
    /// Folder of the lake.
    Lake,
    /// File of the catalog.
    Catalog,
    /// File or server of the queue.
    Queue,
    /// Zone of business dates.
    TimeZone,
    /// Who works here.
    User,
    /// What a drifted record does to a call.
    IngestOnMismatch,
    /// Input bytes a worker takes at once.
    IngestChunkMib,
    /// Workers of ingest.
    IngestThreads,
}

impl SettingKey {
    /// Every key, in the order they are shown.
    pub const ALL: [Self; 8] = [
        Self::Lake,
        Self::Catalog,
        Self::Queue,
        Self::TimeZone,
        Self::User,
        Self::IngestOnMismatch,
        Self::IngestChunkMib,
        Self::IngestThreads,
    ];

    /// The key in TOML, with its table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lake => "lake",
            Self::Catalog => "catalog",
            Self::Queue => "queue",
            Self::TimeZone => "time_zone",
            Self::User => "user",
            Self::IngestOnMismatch => "ingest.on_mismatch",
            Self::IngestChunkMib => "ingest.chunk_mib",
            Self::IngestThreads => "ingest.threads",
        }
    }

    /// The environment variable.
    #[must_use]
    pub fn env(self) -> &'static str {
        match self {
            Self::Lake => "LAKEBED_LAKE",
            Self::Catalog => "LAKEBED_CATALOG",
            Self::Queue => "LAKEBED_QUEUE",
            Self::TimeZone => "LAKEBED_TIME_ZONE",
            Self::User => "LAKEBED_USER",
            Self::IngestOnMismatch => "LAKEBED_INGEST_ON_MISMATCH",
            Self::IngestChunkMib => "LAKEBED_INGEST_CHUNK_MIB",
            Self::IngestThreads => "LAKEBED_INGEST_THREADS",
        }
    }

    /// The command-line option, where a command has it.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::Lake => "--lake",
            Self::Catalog => "--catalog",
            Self::Queue => "--queue",
            Self::TimeZone => "--time-zone",
            Self::User => "--user",
            Self::IngestOnMismatch => "--on-mismatch",
            Self::IngestChunkMib => "--chunk-mib",
            Self::IngestThreads => "--threads",
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A settings file.
    File {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
    /// An environment variable.
    Env(&'static str),
    /// A command-line option.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

/// What a record that does not fit the schema does to a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MismatchPolicy {
    /// Nothing is written.
    #[default]
    Fail,
    /// Good records are stored, the others go to the rejects.
    Quarantine,
    /// As `Quarantine`, but unknown fields alone are stored in `_extra`.
    Extra,
}

impl MismatchPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Fail, Self::Quarantine, Self::Extra];

    /// The name in options and files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Quarantine => "quarantine",
            Self::Extra => "extra",
        }
    }
}

impl FromStr for MismatchPolicy {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|p| p.as_str() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str);
            Error::invalid(format!("`{text}` is not a mismatch policy"))
                .hint(nearest_hint(text, &names))
                .hint("policies are `fail`, `quarantine` and `extra`")
        })
    }
}

/// What stands above the files: options of the call and the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Options that were given.
    pub flags: BTreeMap<SettingKey, String>,
    /// Variables of the environment; empty ones count as not set.
    pub env: BTreeMap<String, String>,
}

impl Layers {
    /// The environment of this process, and no flags.
    ///
    /// # Errors
    /// `InvalidInput` for a variable with our prefix that is not known.
    pub fn from_env() -> Result<Self> {
        Ok(Self {
            flags: BTreeMap::new(),
            env: read_settings(&SettingKey::ALL.map(SettingKey::env), std::env::vars_os())?,
        })
    }

    /// Adds an option that was given; `None` changes nothing.
    #[must_use]
    pub fn flag(mut self, key: SettingKey, value: Option<impl Into<String>>) -> Self {
        if let Some(value) = value {
            self.flags.insert(key, value.into());
        }
        self
    }
}

/// The resolved settings of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Folder of the lake, absolute or below the project's root.
    pub lake: Setting<PathBuf>,
    /// SQLite file of the catalog, likewise.
    pub catalog: Setting<PathBuf>,
    /// SQLite file of the queue, likewise, or the URL of a database server.
    pub queue: Setting<String>,
    /// IANA zone of business dates.
    pub time_zone: Setting<String>,
    /// Who works here; `None` = not said.
    pub user: Setting<Option<String>>,
    /// What a drifted record does to a call.
    pub on_mismatch: Setting<MismatchPolicy>,
    /// MiB of input a worker takes at once.
    pub chunk_mib: Setting<u32>,
    /// Workers; `None` = as many as the machine has cores.
    pub threads: Setting<Option<u32>>,
    /// Rates and limits of crawls, of this machine alone; never shown.
    pub crawl: CrawlLocal,
    /// Names and values of `[secrets]`; never shown.
    pub secrets: BTreeMap<String, Setting<String>>,
}

/// A setting as it is shown: secrets masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownSetting {
    /// The key.
    pub key: String,
    /// The value; `None` = not set.
    pub value: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    lake: Option<String>,
    catalog: Option<String>,
    queue: Option<String>,
    time_zone: Option<String>,
    user: Option<String>,
    #[serde(default)]
    ingest: IngestTable,
    crawl: Option<CrawlLocal>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct IngestTable {
    on_mismatch: Option<String>,
    chunk_mib: Option<u32>,
    threads: Option<u32>,
}

/// One settings file, read.
struct FileLayer {
    path: PathBuf,
    values: SettingsFile,
    lines: BTreeMap<String, usize>,
}

impl FileLayer {
    fn read(path: PathBuf, takes_secrets: bool) -> Result<Option<Self>> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read the file", path.display(), e)),
        };
        let values: SettingsFile = parse_toml(&text, path.display())?;
        let lines: BTreeMap<_, _> = list_keys(&text)
            .into_iter()
            .map(|k| (k.path, k.line))
            .collect();
        if !takes_secrets && values.crawl.is_some() {
            return Err(
                Error::invalid("`[crawl]` stands in a file that is kept in git")
                    .with("file", path.display())
                    .with("line", lines.get("crawl").copied().unwrap_or(1))
                    .hint(format!(
                        "move it to `{LOCAL_FILE}`: rates and limits against blocking are told to nobody"
                    )),
            );
        }
        if !takes_secrets && !values.secrets.is_empty() {
            return Err(
                Error::invalid("`[secrets]` stands in a file that is kept in git")
                    .with("file", path.display())
                    .with("line", lines.get("secrets").copied().unwrap_or(1))
                    .hint(format!(
                        "move it to `{LOCAL_FILE}`, and change what was committed"
                    )),
            );
        }
        Ok(Some(Self {
            path,
            values,
            lines,
        }))
    }

    fn find(&self, key: SettingKey) -> Option<String> {
        let v = &self.values;
        match key {
            SettingKey::Lake => v.lake.clone(),
            SettingKey::Catalog => v.catalog.clone(),
            SettingKey::Queue => v.queue.clone(),
            SettingKey::TimeZone => v.time_zone.clone(),
            SettingKey::User => v.user.clone(),
            SettingKey::IngestOnMismatch => v.ingest.on_mismatch.clone(),
            SettingKey::IngestChunkMib => v.ingest.chunk_mib.map(|n| n.to_string()),
            SettingKey::IngestThreads => v.ingest.threads.map(|n| n.to_string()),
        }
    }

    fn origin(&self, key: &str) -> Origin {
        Origin::File {
            path: self.path.clone(),
            line: self.lines.get(key).copied().unwrap_or(1),
        }
    }
}

struct Resolver<'a> {
    layers: &'a Layers,
    files: Vec<FileLayer>,
}

impl Resolver<'_> {
    fn find(&self, key: SettingKey) -> Option<(String, Origin)> {
        if let Some(value) = self.layers.flags.get(&key) {
            return Some((value.clone(), Origin::Flag(key.flag())));
        }
        let env = self.layers.env.get(key.env()).filter(|v| !v.is_empty());
        if let Some(value) = env {
            return Some((value.clone(), Origin::Env(key.env())));
        }
        self.files
            .iter()
            .find_map(|f| Some((f.find(key)?, f.origin(key.name()))))
    }

    fn get<T>(
        &self,
        key: SettingKey,
        default: T,
        read: impl Fn(&str) -> Result<T>,
    ) -> Result<Setting<T>> {
        let Some((text, origin)) = self.find(key) else {
            let origin = Origin::Default;
            return Ok(Setting {
                value: default,
                origin,
            });
        };
        match read(&text) {
            Ok(value) => Ok(Setting { value, origin }),
            Err(e) => Err(e.with("key", key.name()).with("origin", &origin)),
        }
    }
}

impl Settings {
    /// Reads and resolves the settings of the project in `root`.
    pub(super) fn load_in(root: &Path, layers: &Layers) -> Result<Self> {
        let local = FileLayer::read(root.join(LOCAL_FILE), true)?;
        let main = FileLayer::read(root.join(PROJECT_FILE), false)?;
        let resolver = Resolver {
            layers,
            files: local.into_iter().chain(main).collect(),
        };
        let crawl = resolver.files.iter().find_map(|f| f.values.crawl.clone());
        let mut secrets = BTreeMap::new();
        for file in &resolver.files {
            for (name, value) in &file.values.secrets {
                let setting = Setting {
                    value: value.clone(),
                    origin: file.origin(&format!("secrets.{name}")),
                };
                secrets.insert(name.clone(), setting);
            }
        }
        Ok(Self {
            lake: resolver.get(SettingKey::Lake, root.join("lake"), |t| {
                lake_folder(root, t)
            })?,
            catalog: resolver.get(SettingKey::Catalog, root.join("catalog.db"), |t| {
                catalog_file(root, t)
            })?,
            queue: resolver.get(
                SettingKey::Queue,
                root.join("queue.db").display().to_string(),
                |t| queue_place(root, t),
            )?,
            time_zone: resolver.get(SettingKey::TimeZone, "UTC".to_owned(), |t| {
                time_zone(t).map(|_| t.to_owned())
            })?,
            user: resolver.get(SettingKey::User, None, |t| Ok(Some(t.to_owned())))?,
            on_mismatch: resolver.get(
                SettingKey::IngestOnMismatch,
                MismatchPolicy::Fail,
                str::parse,
            )?,
            chunk_mib: resolver.get(SettingKey::IngestChunkMib, 8, |t| number(t, 1, 1024))?,
            threads: resolver.get(SettingKey::IngestThreads, None, |t| {
                number(t, 1, 1024).map(Some)
            })?,
            crawl: crawl.unwrap_or_default(),
            secrets,
        })
    }

    /// Every setting for people, secrets masked.
    #[must_use]
    pub fn show(&self) -> Vec<ShownSetting> {
        let mut shown: Vec<_> = SettingKey::ALL
            .into_iter()
            .map(|key| self.show_one(key))
            .collect();
        shown.extend(self.secrets.iter().map(|(name, setting)| ShownSetting {
            key: format!("secrets.{name}"),
            value: Some("***".to_owned()),
            origin: setting.origin.clone(),
        }));
        shown
    }

    fn show_one(&self, key: SettingKey) -> ShownSetting {
        let path = |p: &Path| Some(p.display().to_string());
        let (value, origin) = match key {
            SettingKey::Lake => (path(&self.lake.value), &self.lake.origin),
            SettingKey::Catalog => (path(&self.catalog.value), &self.catalog.origin),
            SettingKey::Queue => (Some(self.queue.value.clone()), &self.queue.origin),
            SettingKey::TimeZone => (Some(self.time_zone.value.clone()), &self.time_zone.origin),
            SettingKey::User => (self.user.value.clone(), &self.user.origin),
            SettingKey::IngestOnMismatch => (
                Some(self.on_mismatch.value.as_str().to_owned()),
                &self.on_mismatch.origin,
            ),
            SettingKey::IngestChunkMib => (
                Some(self.chunk_mib.value.to_string()),
                &self.chunk_mib.origin,
            ),
            SettingKey::IngestThreads => (
                self.threads.value.map(|n| n.to_string()),
                &self.threads.origin,
            ),
        };
        ShownSetting {
            key: key.name().to_owned(),
            value: value.map(|v| mask_credentials(&v)),
            origin: origin.clone(),
        }
    }
}

fn number(text: &str, min: u32, max: u32) -> Result<u32> {
    text.parse::<u32>()
        .ok()
        .filter(|n| (min..=max).contains(n))
        .ok_or_else(|| Error::invalid(format!("`{text}` is not a number from {min} to {max}")))
}

/// The scheme of a URL, and what follows `://`.
fn split_url(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let good = !scheme.is_empty()
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    good.then_some((scheme, rest))
}

/// The text with user, password and query of a URL masked; other texts as they are.
#[must_use]
pub fn mask_credentials(text: &str) -> String {
    let Some((scheme, rest)) = split_url(text) else {
        return text.to_owned();
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?***"),
        None => (rest, ""),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    // A password may itself hold `/` or `@` when it was not encoded: mask up to the last `@`.
    match rest.rfind('@') {
        Some(at) if at >= end => format!("{scheme}://***@{}{query}", &rest[at + 1..]),
        _ => match host.rfind('@') {
            Some(at) => format!("{scheme}://***@{}{path}{query}", &host[at + 1..]),
            None => format!("{scheme}://{host}{path}{query}"),
        },
    }
}

fn not_yet(what: &str, text: &str, instead: &str) -> Error {
    Error::invalid(format!(
        "{what} at `{}` comes with a later release of Lakebed",
        mask_credentials(text)
    ))
    .hint(instead)
}

fn lake_folder(root: &Path, text: &str) -> Result<PathBuf> {
    local_path(root, text, &["file"]).ok_or_else(|| match split_url(text).map(|(s, _)| s) {
        Some("s3" | "s3a" | "gs" | "az" | "abfs" | "http" | "https") => {
            not_yet("a lake", text, "for now `lake` is a folder")
        }
        Some(_) | None => Error::invalid(format!(
            "`{}` is not the place of a lake",
            mask_credentials(text)
        ))
        .hint("`lake` is a folder, relative to the project"),
    })
}

fn catalog_file(root: &Path, text: &str) -> Result<PathBuf> {
    local_path(root, text, &["file", "sqlite"]).ok_or_else(|| {
        match split_url(text).map(|(s, _)| s) {
            Some("postgres" | "postgresql" | "mysql" | "mariadb") => {
                not_yet("a catalog", text, "for now `catalog` is a SQLite file")
            }
            Some(_) | None => Error::invalid(format!(
                "`{}` is not the place of a catalog",
                mask_credentials(text)
            ))
            .hint("`catalog` is a SQLite file, relative to the project"),
        }
    })
}

/// A file below the root, or the URL of a server as it is.
fn queue_place(root: &Path, text: &str) -> Result<String> {
    match split_url(text).map(|(s, _)| s) {
        Some("postgres" | "postgresql" | "mysql" | "mariadb") => Ok(text.to_owned()),
        _ => match local_path(root, text, &["file", "sqlite"]) {
            Some(path) => Ok(path.display().to_string()),
            None => Err(Error::invalid(format!(
                "`{}` is not the place of a queue",
                mask_credentials(text)
            ))
            .hint("`queue` is a SQLite file, relative to the project, or a URL that begins with postgres:// or mysql://")),
        },
    }
}

/// A path, plain or as a URL of one of the schemes; relative ones lie below the root.
fn local_path(root: &Path, text: &str, schemes: &[&str]) -> Option<PathBuf> {
    let path = match split_url(text) {
        Some((scheme, rest)) if schemes.contains(&scheme) => rest,
        Some(_) => return None,
        None => text,
    };
    (!path.trim().is_empty()).then(|| root.join(path))
}

#[cfg(test)]
mod tests;
