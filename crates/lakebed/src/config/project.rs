//! The project folder, which a team keeps in git.
//!
//! ```text
//! lakebed.toml                                settings of the team; marks the folder
//! lakebed.local.toml                          settings of this machine, git-ignored
//! sources/<source>/source.toml
//! sources/<source>/schemas/<dataset>/v1.toml
//! catalog.db, queue.db, lake/                 git-ignored; elsewhere where lakebed.toml says so
//! ```

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::settings::{LOCAL_FILE, Layers, PROJECT_FILE, Settings};
use crate::error::{Error, Result};
use crate::name::{DatasetName, DatasetRef, SourceName};
use crate::time::time_zone;

/// What `.gitignore` must hold; `lake/` is the default place of the lake.
const IGNORED: [&str; 12] = [
    "/lakebed.local.toml",
    "/catalog.db*",
    "/queue.db*",
    "/crawl/",
    "/parse/",
    "/derive/",
    "/flow/",
    "/fold/",
    "/sample/",
    "/seed/",
    "/shadow/",
    "/lake/",
];

const LOCAL_TEXT: &str = "\
# Settings of this machine alone; git-ignored, never copied into the lake. Same keys as lakebed.toml.
# user = \"me\"
# [ingest]
# threads = 2
# [crawl.usual]             # rates and limits: they reach no log, manifest, pack or report
# workers = 8               # fetches of one process at once
# pause_ms = 1000           # between two requests to a host, over all workers
# places = 1                # requests under way to a host, over all workers
# [secrets]                 # masked wherever settings are shown
# proxy = \"http://...\"
";

/// An opened project folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

/// What [`Project::init`] did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitStep {
    /// Written by this call.
    Written,
    /// There already, as it must be or as the user made it.
    Kept,
}

/// What [`Project::init`] made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitOutcome {
    /// The project.
    pub project: Project,
    /// Its zone.
    pub time_zone: String,
    /// Whether nobody chose that zone.
    pub is_default_zone: bool,
    /// Its files, and what was done to them.
    pub steps: Vec<(PathBuf, InitStep)>,
}

impl Settings {
    /// Reads and resolves the settings of a project.
    pub fn load(project: &Project, layers: &Layers) -> Result<Self> {
        Self::load_in(project.root(), layers)
    }
}

impl Project {
    /// The project at `root`; a folder without `lakebed.toml` is refused.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        if root.join(PROJECT_FILE).is_file() {
            return Ok(Self { root });
        }
        Err(Error::not_found(format!(
            "there is no project in `{}`: `{PROJECT_FILE}` is missing",
            root.display()
        ))
        .hint("`lakebed init DIR` makes one"))
    }

    /// The project that `start` lies in: the nearest folder upwards with a `lakebed.toml`.
    pub fn find(start: &Path) -> Result<Self> {
        let absolute = std::path::absolute(start)
            .map_err(|e| Error::io("find the folder", start.display(), e))?;
        let found = absolute
            .ancestors()
            .find(|d| d.join(PROJECT_FILE).is_file());
        found
            .map(|root| Self {
                root: root.to_owned(),
            })
            .ok_or_else(|| {
                Error::not_found(format!(
                    "there is no project in `{}` or any folder above it",
                    absolute.display()
                ))
                .hint("`lakebed init` makes one here; `--project DIR` names one elsewhere")
            })
    }

    /// Makes a project in `root`, or completes one; what is there is never overwritten.
    ///
    /// Without a zone an existing project keeps its own, and a new one gets UTC. A project that
    /// says another zone is a `PreconditionFailed` error.
    pub fn init(root: impl Into<PathBuf>, zone: Option<&str>) -> Result<InitOutcome> {
        if let Some(zone) = zone {
            time_zone(zone)?;
        }
        let project = Self { root: root.into() };
        let main = project.root.join(PROJECT_FILE);
        let existing = project.existing_zone(&main, zone)?;
        let is_default_zone = existing.is_none() && zone.is_none();
        let asked = zone;
        let zone = existing
            .or(zone.map(str::to_owned))
            .unwrap_or_else(|| "UTC".to_owned());
        let sources = project.sources_dir();
        fs::create_dir_all(&sources)
            .map_err(|e| Error::io("create the folder", sources.display(), e))?;
        let local = project.root.join(LOCAL_FILE);
        let ignore = project.root.join(".gitignore");
        // The marker comes last: a folder that is a project is a whole one.
        let steps = vec![
            (local.clone(), keep_or_write(&local, LOCAL_TEXT)?),
            (ignore.clone(), add_ignored(&ignore)?),
            (main.clone(), keep_or_write(&main, &project_text(&zone))?),
        ];
        // Another call may have put the marker meanwhile: then its project is the one that is there.
        let is_ours = steps
            .iter()
            .any(|(p, s)| *p == main && *s == InitStep::Written);
        let found = project.existing_zone(&main, asked)?;
        Ok(InitOutcome {
            project,
            time_zone: found.unwrap_or(zone),
            is_default_zone: is_default_zone && is_ours,
            steps,
        })
    }

    /// The zone of a project that is there already; it must read, and not say another one.
    fn existing_zone(&self, main: &Path, zone: Option<&str>) -> Result<Option<String>> {
        if !main.exists() {
            return Ok(None);
        }
        let found = Settings::load(self, &Layers::default())?.time_zone.value;
        match zone {
            Some(zone) if zone != found => Err(Error::precondition(format!(
                "the project says `time_zone` = `{found}`, not `{zone}`"
            ))
            .with("file", main.display())
            .hint("a lake has one zone for ever; leave out `--time-zone`, or take another folder")),
            Some(_) | None => Ok(Some(found)),
        }
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit of the git repository that the project lies in, read from its files.
    ///
    /// `None` outside a repository, before its first commit, or where its files cannot be read.
    #[must_use]
    pub fn find_git_commit(&self) -> Option<String> {
        let absolute = std::path::absolute(&self.root).ok()?;
        let mut git = absolute
            .ancestors()
            .map(|d| d.join(".git"))
            .find(|g| g.exists())?;
        if git.is_file() {
            // A worktree or submodule: the file names the real folder.
            let text = fs::read_to_string(&git).ok()?;
            git = git.parent()?.join(text.strip_prefix("gitdir:")?.trim());
        }
        let head = fs::read_to_string(git.join("HEAD")).ok()?;
        let Some(name) = head.trim().strip_prefix("ref: ") else {
            return git_hash(&head);
        };
        // A worktree keeps its branches in the folder of the repository.
        let common = fs::read_to_string(git.join("commondir")).ok();
        let shared = common.map(|c| git.join(c.trim()));
        [Some(git), shared]
            .into_iter()
            .flatten()
            .find_map(|folder| {
                let loose = fs::read_to_string(folder.join(name)).ok();
                loose.as_deref().and_then(git_hash).or_else(|| {
                    let packed = fs::read_to_string(folder.join("packed-refs")).ok()?;
                    let line = packed
                        .lines()
                        .find(|l| l.strip_suffix(name).is_some_and(|l| l.ends_with(' ')))?;
                    git_hash(line.split(' ').next()?)
                })
            })
    }

    /// `sources/`.
    #[must_use]
    pub fn sources_dir(&self) -> PathBuf {
        self.root.join("sources")
    }

    /// `sources/<source>/source.toml`.
    #[must_use]
    pub fn source_file(&self, source: &SourceName) -> PathBuf {
        self.sources_dir().join(source.as_str()).join("source.toml")
    }

    /// `sources/<source>/schemas/<dataset>/`.
    #[must_use]
    pub fn schemas_dir(&self, dataset: &DatasetName) -> PathBuf {
        let name = dataset.as_str();
        let source = name.split_once('.').map_or(name, |(source, _)| source);
        self.sources_dir().join(source).join("schemas").join(name)
    }

    /// `sources/<source>/schemas/<dataset>/v<N>.toml`.
    #[must_use]
    pub fn schema_file(&self, dataset: &DatasetRef, version: u32) -> PathBuf {
        self.schemas_dir(&dataset.dataset)
            .join(format!("v{version}.toml"))
    }

    /// Numbers of the version files of a dataset, sorted; published or not.
    pub fn list_schema_files(&self, dataset: &DatasetRef) -> Result<Vec<u32>> {
        let folder = self.schemas_dir(&dataset.dataset);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("list the folder", folder.display(), e)),
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("list the folder", folder.display(), e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let digits = name.strip_prefix('v').and_then(|n| n.strip_suffix(".toml"));
            let number = digits.filter(|d| !d.starts_with(['0', '+']));
            numbers.extend(number.and_then(|d| d.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The text of a version file and its path for errors.
    pub fn read_schema_file(
        &self,
        dataset: &DatasetRef,
        version: u32,
    ) -> Result<(String, PathBuf)> {
        let path = self.schema_file(dataset, version);
        match fs::read_to_string(&path) {
            Ok(text) => Ok((text, path)),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::not_found(format!(
                "there is no file for version {version} of `{dataset}`"
            ))
            .with("file", path.display())
            .hint(self.schema_hint(dataset))),
            Err(e) => Err(Error::io("read the file", path.display(), e)),
        }
    }

    /// What writes a version: where a source has rules, it follows from them.
    fn schema_hint(&self, dataset: &DatasetRef) -> String {
        let source = dataset.source();
        let is_ruled = self.load_source(&source).is_ok_and(|s| s.parse.is_some());
        match is_ruled {
            true => {
                format!("`lakebed parse {source} --schema` writes one from the rules of the source")
            }
            false => "`lakebed schema infer` or `lakebed schema propose` writes one".to_owned(),
        }
    }

    /// Writes a version file that must not exist yet.
    pub fn write_schema_file(
        &self,
        dataset: &DatasetRef,
        version: u32,
        text: &str,
    ) -> Result<PathBuf> {
        let folder = self.schemas_dir(&dataset.dataset);
        fs::create_dir_all(&folder)
            .map_err(|e| Error::io("create the folder", folder.display(), e))?;
        let path = self.schema_file(dataset, version);
        write_new(&path, text)?;
        Ok(path)
    }

    /// Writes a version file in the place of the one that is there.
    pub fn replace_schema_file(
        &self,
        dataset: &DatasetRef,
        version: u32,
        text: &str,
    ) -> Result<PathBuf> {
        let path = self.schema_file(dataset, version);
        let temp = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::write(&temp, text).and_then(|()| fs::rename(&temp, &path));
        written.map_err(|e| Error::io("write the file", path.display(), e))?;
        Ok(path)
    }
}

fn git_hash(text: &str) -> Option<String> {
    let text = text.trim();
    let good = text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    good.then(|| text.to_owned())
}

fn project_text(zone: &str) -> String {
    format!(
        "# Settings of the project; this folder belongs into git. `lakebed config show --origin` tells\n\
         # what holds and why: option > environment (LAKEBED_LAKE, ...) > lakebed.local.toml > this file.\n\
         time_zone = \"{zone}\"     # of business dates; fixed once the lake exists\n\
         # lake = \"lake\"           # folder, relative to this file\n\
         # catalog = \"catalog.db\"  # SQLite file, relative to this file; never on a network disk\n\
         # queue = \"queue.db\"      # SQLite file, or postgres://... or mysql://...\n\
         \n\
         # [ingest]\n\
         # on_mismatch = \"fail\"    # fail | quarantine | extra\n"
    )
}

/// Tells the temporary files of one process apart.
static TEMP_COUNT: AtomicU32 = AtomicU32::new(0);

/// Writes a file that must not exist, whole or not at all.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<()> {
    let taken = || {
        Error::already_exists(format!("the file `{}` is there already", path.display()))
            .hint("nothing was changed; move it away, or edit it")
    };
    if path.exists() {
        return Err(taken());
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    let n = TEMP_COUNT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{n}.tmp", std::process::id()));
    let temp = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&temp)
        .and_then(|mut f| f.write_all(text.as_bytes()).and_then(|()| f.sync_all()))
        .and_then(|()| fs::hard_link(&temp, path));
    drop(fs::remove_file(&temp));
    match written {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(taken()),
        Err(e) => Err(Error::io("write the file", path.display(), e)),
    }
}

/// Of two that write the same file at once one wins, and the other keeps what is there.
fn keep_or_write(path: &Path, text: &str) -> Result<InitStep> {
    match write_new(path, text) {
        Ok(()) => Ok(InitStep::Written),
        Err(e) if e.kind() == crate::error::ErrorKind::AlreadyExists => Ok(InitStep::Kept),
        Err(e) => Err(e),
    }
}

/// Adds the lines that are missing; whatever else the file says stays.
fn add_ignored(path: &Path) -> Result<InitStep> {
    let whole = format!("{}\n", IGNORED.join("\n"));
    if keep_or_write(path, &whole)? == InitStep::Written {
        return Ok(InitStep::Written);
    }
    let old =
        fs::read_to_string(path).map_err(|e| Error::io("read the file", path.display(), e))?;
    let has = |line: &str| {
        let bare = line.trim_matches('/');
        old.lines().any(|l| l.trim().trim_matches('/') == bare)
    };
    let missing: Vec<&str> = IGNORED.into_iter().filter(|l| !has(l)).collect();
    if missing.is_empty() {
        return Ok(InitStep::Kept);
    }
    let gap = if old.is_empty() || old.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let added = format!("{gap}{}\n", missing.join("\n"));
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut f| f.write_all(added.as_bytes()).and_then(|()| f.sync_all()))
        .map_err(|e| Error::io("write the file", path.display(), e))?;
    Ok(InitStep::Written)
}

#[cfg(test)]
mod tests;
