//! A lake in a folder, its catalog, its inputs, and the ways to call the library as a command does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakebed::catalog::{Catalog, SqliteCatalog};
use lakebed::config::Evolution;
use lakebed::govern::audit;
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::{InputSource, resolve_inputs};
use lakebed::ingest::{IngestReport, IngestRequest, RevisionTarget, Silent, ingest};
use lakebed::name::DatasetRef;
use lakebed::registry::{self, PublishOptions, PublishOutcome};
use lakebed::spec::{By, LoadKind, ReadSpec};
use lakebed::store::{Lake, LocalStore};
use lakebed::time::{Clock, Instant};
use lakebed::{Error, Result};

use crate::faulty::{Control, FaultyStore};
use crate::model::{Content, Ingest, Target, text_of};

/// Contents that inputs may have.
pub(crate) const CONTENTS: u64 = 12;
/// Where nothing needs to reach a disk: the tests end no machine.
const IN_MEMORY: &str = "/dev/shm";

/// A lake and all that is around it.
#[derive(Debug)]
pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) clock: Arc<Clock>,
    pub(crate) catalog: SqliteCatalog,
    catalogs: u64,
}

pub(crate) fn by(user: &str) -> By {
    By {
        program: "simulation".into(),
        user: Some(user.into()),
        run: None,
        note: None,
    }
}

pub(crate) fn temporary_folder() -> tempfile::TempDir {
    if Path::new(IN_MEMORY).is_dir() {
        tempfile::tempdir_in(IN_MEMORY).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl World {
    /// A lake in which the first version of each dataset is published.
    pub(crate) async fn new(datasets: &[&str]) -> Self {
        let folder = temporary_folder();
        std::fs::create_dir(folder.path().join("inputs")).unwrap();
        for content in 0..CONTENTS {
            let name = format!("inputs/{content}.jsonl");
            std::fs::write(folder.path().join(name), text_of(content)).unwrap();
        }
        let clock = Arc::new(Clock::manual(Instant::from_micros(1_780_000_000_000_000)));
        let catalog = SqliteCatalog::open(folder.path().join("catalog-0.db"))
            .await
            .unwrap();
        let world = Self {
            folder,
            clock,
            catalog,
            catalogs: 0,
        };
        let lake = world.lake().await;
        for dataset in datasets {
            let outcome = publish(&lake, dataset, 1, "").await.unwrap();
            assert!(matches!(outcome, PublishOutcome::Published { .. }));
        }
        world
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    /// The lake over a sound store.
    pub(crate) async fn lake(&self) -> Lake {
        let store = Arc::new(LocalStore::new(self.root()));
        Lake::open_or_create(store, Arc::clone(&self.clock), "Asia/Taipei")
            .await
            .unwrap()
    }

    /// The lake over a store of its own that fails on order.
    pub(crate) async fn faulty_lake(&self) -> (Lake, Control) {
        let control = Control::default();
        let inner = Arc::new(LocalStore::new(self.root()));
        let store = Arc::new(FaultyStore::new(inner, control.clone()));
        let lake = Lake::open(store, Arc::clone(&self.clock)).await.unwrap();
        (lake, control)
    }

    pub(crate) fn tick(&self) {
        if let Clock::Manual(at) = &*self.clock {
            at.fetch_add(1_000, std::sync::atomic::Ordering::SeqCst);
        }
    }

    pub(crate) fn inputs(&self, contents: &[Content]) -> Vec<InputSource> {
        let path = |c: &Content| self.folder.path().join(format!("inputs/{c}.jsonl"));
        let paths = contents.iter().map(|c| path(c).display().to_string());
        resolve_inputs(&paths.collect::<Vec<_>>()).unwrap()
    }

    pub(crate) fn request(&self, dataset: &str, call: &Ingest, user: &str) -> IngestRequest {
        IngestRequest {
            dataset: dataset.parse().unwrap(),
            dt: call.dt.parse().unwrap(),
            inputs: self.inputs(&call.contents),
            format: None,
            schema_version: call.version,
            read: ReadSpec::default(),
            mismatch: if call.quarantine {
                Mismatch::Quarantine
            } else {
                Mismatch::Fail
            },
            batch: call.batch.as_ref().map(|b| b.parse().unwrap()),
            run: None,
            revision: match call.target {
                Target::Join => RevisionTarget::Join,
                Target::Replace => RevisionTarget::Replace,
                Target::Keep => RevisionTarget::Keep,
            },
            complete: call.complete,
            late: call.late,
            allow_empty: false,
            restore: false,
            rejects_of: None,
            load: LoadKind::Incremental,
            parents: Vec::new(),
            bounds: Vec::new(),
            provenance: None,
            by: by(user),
            threads: Some(1),
            group_bytes: None,
        }
    }

    /// A copy of everything, as it lies on the disk. Nobody may write meanwhile.
    pub(crate) async fn copy(&self) -> Self {
        let folder = temporary_folder();
        copy_folder(self.folder.path(), folder.path());
        let location = self.catalog.location();
        let name = Path::new(&location).file_name().unwrap();
        let catalog = SqliteCatalog::open(folder.path().join(name)).await.unwrap();
        Self {
            folder,
            clock: Arc::new(Clock::manual(self.clock.now())),
            catalog,
            catalogs: self.catalogs,
        }
    }

    /// The catalog is lost; a new one takes its place, empty.
    pub(crate) async fn lose_catalog(&mut self) {
        self.catalog.close().await;
        std::fs::remove_file(self.catalog.location()).unwrap();
        self.catalog = self.new_catalog().await;
    }

    /// A catalog apart from the lake's own.
    pub(crate) async fn new_catalog(&mut self) -> SqliteCatalog {
        self.catalogs += 1;
        let name = format!("catalog-{}.db", self.catalogs);
        SqliteCatalog::open(self.folder.path().join(name))
            .await
            .unwrap()
    }
}

/// Stores inputs as the command does.
pub(crate) async fn run_ingest(
    lake: &Lake,
    catalog: &SqliteCatalog,
    request: &IngestRequest,
) -> Result<IngestReport> {
    ingest(lake, catalog, request, &Silent).await
}

/// Publishes a version: version n has n fields; `note` tells two contents of one number apart.
pub(crate) async fn publish(
    lake: &Lake,
    dataset: &str,
    version: u32,
    note: &str,
) -> Result<PublishOutcome> {
    let mut text = format!("dataset = \"{dataset}\"\nversion = {version}\n");
    if !note.is_empty() {
        text += &format!("note = \"{note}\"\n");
    }
    if version > 1 {
        text += &format!("base = {}\n", version - 1);
    }
    text += "[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n";
    text += "[[field]]\nid = 2\nname = \"t\"\ntype = \"string\"\n";
    for id in 3..=version + 1 {
        text += &format!("[[field]]\nid = {id}\nname = \"f{id}\"\ntype = \"string\"\n");
    }
    let spec = registry::parse(&text, "v.toml").unwrap();
    let options = PublishOptions {
        by: by(note),
        git_commit: None,
        evolution: Evolution::Free,
    };
    registry::publish(lake, &spec, &options).await
}

/// What a repair did; the findings of the audit before it are what it works on. Nothing is ever lost
/// here, so a finding that a person must decide is a false alarm, whoever runs meanwhile.
pub(crate) async fn audit_and_repair(
    lake: &Lake,
    catalog: &SqliteCatalog,
    user: &str,
) -> Result<audit::RepairReport> {
    let catalog: Arc<dyn Catalog> = Arc::new(catalog.clone());
    let options = audit::AuditOptions::default();
    let report = audit::audit(lake, Arc::clone(&catalog), options).await?;
    let mut alarms = report.findings.iter();
    if let Some(alarm) = alarms.find(|f| {
        f.severity != audit::Severity::Advice && matches!(f.repair, audit::Repair::Manual { .. })
    }) {
        return Err(Error::internal(format!("a false alarm: {alarm:?}")));
    }
    audit::repair(lake, catalog, &report, by(user)).await
}

pub(crate) fn dataset_ref(dataset: &str) -> DatasetRef {
    dataset.parse().unwrap()
}
