//! Packs in the lake: one commit a run, a clean audit, a no-op or a refusal the second time.

use std::sync::Arc;

use super::*;
use crate::catalog::{PartitionFilter, SqliteCatalog, sync_all};
use crate::error::ErrorKind;
use crate::govern::audit::{AuditOptions, audit, repair};
use crate::pack::parts::open_parts;
use crate::pack::reader::PackReader;
use crate::pack::samples::{body, capture, id, pages, plan, run, terminal, write_part};
use crate::pack::seal::plan_pack;
use crate::spec::PackProfile;
use crate::store::LocalStore;
use crate::time::Clock;

struct Scene {
    folder: tempfile::TempDir,
    lake: Lake,
    catalog: Arc<SqliteCatalog>,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::new(folder.path().join("lake")));
        let clock = Arc::new(Clock::System);
        let lake = Lake::open_or_create(store, clock, "Asia/Taipei")
            .await
            .unwrap();
        let catalog = SqliteCatalog::open(folder.path().join("catalog.db"))
            .await
            .unwrap();
        let catalog = Arc::new(catalog);
        sync_all(&lake, &*catalog).await.unwrap();
        Self {
            folder,
            lake,
            catalog,
        }
    }

    fn parts(&self) -> PathBuf {
        self.folder.path().join("parts")
    }

    async fn commit(&self, plan: PackPlan, complete: bool, late: bool) -> Result<PackReport> {
        let options = CommitOptions {
            by: By::this_program(),
            complete,
            late,
            provenance: Provenance::Live,
        };
        commit_pack(&self.lake, &*self.catalog, plan, &options).await
    }

    /// Findings that are no advice.
    async fn findings(&self) -> Vec<String> {
        let catalog = Arc::clone(&self.catalog) as Arc<dyn Catalog>;
        let report = audit(&self.lake, catalog, AuditOptions { deep: true })
            .await
            .unwrap();
        report
            .findings
            .iter()
            .map(|f| format!("{} {} {}", f.invariant, f.subject, f.message))
            .collect()
    }

    fn path(&self, within: &str) -> PathBuf {
        self.folder.path().join("lake").join(within)
    }
}

#[tokio::test]
async fn a_pack_is_one_commit_and_the_audit_is_clean() {
    let scene = Scene::new().await;
    write_part(&scene.parts(), &pages(0..40), 9);
    let report = scene
        .commit(plan(&scene.parts(), 0..40), false, false)
        .await
        .unwrap();
    assert_eq!(
        (report.log_position, report.already_there, report.complete),
        (1, false, false)
    );
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert_eq!(scene.findings().await, Vec::<String>::new());
    let reader = PackReader::open(&scene.path(&report.pack)).unwrap();
    assert_eq!(&reader.get(&id(7)).unwrap().body[..], &body(7)[..]);
    let rows = scene
        .catalog
        .list_partitions(&PartitionFilter::default())
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].file_format, rows[0].row_count),
        (FileFormat::Rawpack, 40)
    );
    assert_eq!(rows[0].file_count, 2);
    let folder = scene.path("raw/books/dt=2026-11-30/schema_version=0");
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|n| !n.ends_with(".parquet")));
}

#[tokio::test]
async fn a_second_seal_is_nothing_or_a_refusal() {
    let scene = Scene::new().await;
    write_part(&scene.parts(), &pages(0..10), 3);
    let first = scene
        .commit(plan(&scene.parts(), 0..10), true, false)
        .await
        .unwrap();
    assert!(first.complete);
    let success = scene.path("raw/books/dt=2026-11-30/schema_version=0/_SUCCESS");
    assert!(success.exists());
    let again = scene
        .commit(plan(&scene.parts(), 0..10), true, false)
        .await
        .unwrap();
    assert!(again.already_there);
    assert_eq!(
        (again.log_position, &again.pack, again.complete),
        (1, &first.pack, true)
    );
    write_part(&scene.parts(), &pages(10..11), 3);
    let other = scene
        .commit(plan(&scene.parts(), 0..11), true, true)
        .await
        .unwrap_err();
    assert_eq!(other.kind(), ErrorKind::PreconditionFailed);
    assert!(other.to_string().contains("PAK-8"), "{other}");
    assert_eq!(scene.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_late_run_joins_a_sealed_date_when_asked() {
    let scene = Scene::new().await;
    write_part(&scene.parts(), &pages(0..10), 3);
    scene
        .commit(plan(&scene.parts(), 0..10), true, false)
        .await
        .unwrap();
    let late = RunKey {
        run: "late".parse().unwrap(),
        ..run()
    };
    let folder = scene.folder.path().join("late");
    let options = crate::pack::part::PartOptions::default();
    let mut writer =
        crate::pack::part::PartWriter::new(&folder, &late, options, &Clock::System).unwrap();
    let now = crate::time::Instant::from_micros(0);
    drop(writer.append(&capture(50, b"late"), b"late", now).unwrap());
    drop(writer.finish().unwrap());
    let plan = || {
        let parts = open_parts(&folder, &late).unwrap();
        let terminals = std::iter::once(Ok(terminal(50)));
        plan_pack(&late, &parts, terminals, PackProfile::Std, &folder).unwrap()
    };
    let refused = scene.commit(plan(), false, false).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
    let report = scene.commit(plan(), false, true).await.unwrap();
    assert_eq!((report.log_position, report.complete), (2, false));
    assert!(
        !scene
            .path("raw/books/dt=2026-11-30/schema_version=0/_SUCCESS")
            .exists()
    );
    assert_eq!(scene.findings().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_changed_byte_in_the_lake_is_found_by_the_audit() {
    let scene = Scene::new().await;
    write_part(&scene.parts(), &pages(0..10), 3);
    let report = scene
        .commit(plan(&scene.parts(), 0..10), false, false)
        .await
        .unwrap();
    for file in [&report.pack, &report.index] {
        let path = scene.path(file);
        let whole = std::fs::read(&path).unwrap();
        let mut bad = whole.clone();
        bad[whole.len() / 2] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        let findings = scene.findings().await;
        assert!(
            findings.iter().any(|f| f.starts_with("FIL-3")),
            "{findings:?}"
        );
        std::fs::write(&path, &whole).unwrap();
    }
}

#[tokio::test]
async fn what_an_interrupted_move_left_is_repaired() {
    let scene = Scene::new().await;
    write_part(&scene.parts(), &pages(0..10), 3);
    let report = scene
        .commit(plan(&scene.parts(), 0..10), true, false)
        .await
        .unwrap();
    let record = crate::log::read_record(&scene.lake, &report.dataset, 1)
        .await
        .unwrap()
        .unwrap();
    let attempt = record.record.attempt.unwrap();
    for file in [&report.pack, &report.index] {
        let path = StorePath::new(file.clone()).unwrap();
        let staged = scene.path(staged_path(&attempt, &path).as_str());
        std::fs::create_dir_all(staged.parent().unwrap()).unwrap();
        std::fs::rename(scene.path(file), staged).unwrap();
    }
    let catalog = || Arc::clone(&scene.catalog) as Arc<dyn Catalog>;
    let found = audit(&scene.lake, catalog(), AuditOptions::default())
        .await
        .unwrap();
    assert!(!found.is_clean());
    repair(&scene.lake, catalog(), &found, By::this_program())
        .await
        .unwrap();
    assert_eq!(scene.findings().await, Vec::<String>::new());
    assert!(PackReader::open(&scene.path(&report.pack)).is_ok());
}

#[tokio::test]
async fn the_raw_layer_takes_no_other_files() {
    let scene = Scene::new().await;
    write_part(&scene.parts(), &pages(0..3), 3);
    scene
        .commit(plan(&scene.parts(), 0..3), false, false)
        .await
        .unwrap();
    let dataset = raw_dataset(&run()).unwrap();
    let mut state = load(&scene.lake, &dataset).await.unwrap().state;
    let partition = PartitionKey {
        dt: run().date,
        schema_version: 0,
        revision: 0,
    };
    let mut draft = Draft::new(&scene.lake, Operation::Append, By::this_program()).unwrap();
    let file = DataFileSpec {
        name: "part-00000-0123456789abcdef.jsonl.zst".to_owned(),
        format: FileFormat::Jsonl,
        rows: 1,
        bytes: 1,
        blake3: ContentHash::of(b"x"),
        provenance: Provenance::Live,
        bounds: std::collections::BTreeMap::new(),
        parents: Vec::new(),
    };
    draft.actions.push(Action::AddFile { partition, file });
    assert!(
        commit(&scene.lake, &mut state, &draft).await.is_err(),
        "LOG-12"
    );
}
