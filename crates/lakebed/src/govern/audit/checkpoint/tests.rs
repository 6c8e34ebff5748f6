//! Wrong checkpoints before an audit: each is found and deleted, and what repair may not judge stays.

use std::sync::Arc;

use crate::catalog::{SqliteCatalog, sync_all};
use crate::govern::audit::{AuditOptions, AuditReport, Finding, Repair, Severity, audit, repair};
use crate::log::{
    CommitOutcome, DatasetState, Draft, commit, list_checkpoints, write_checkpoint, write_forged,
};
use crate::name::DatasetRef;
use crate::spec::{Action, By, Operation};
use crate::store::{Lake, LocalStore, log_record_path};
use crate::time::{Clock, Instant};

struct Fixture {
    _dir: tempfile::TempDir,
    lake: Lake,
    catalog: Arc<SqliteCatalog>,
    dataset: DatasetRef,
}

/// A log of 70 records without files, with a checkpoint at 64.
async fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(dir.path().join("lake")));
    let clock = Arc::new(Clock::manual(Instant::from_micros(1_700_000_000_000_000)));
    let lake = Lake::open_or_create(store, clock, "UTC").await.unwrap();
    let dataset: DatasetRef = "clean/weibo".parse().unwrap();
    let mut state = DatasetState::empty(dataset.clone());
    for _ in 0..70 {
        let mut draft = Draft::new(&lake, Operation::Abandon, By::this_program()).unwrap();
        draft.actions = vec![Action::Abandon {
            attempt: draft.commit.as_str().parse().unwrap(),
        }];
        let outcome = commit(&lake, &mut state, &draft).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)));
    }
    let catalog = SqliteCatalog::open(dir.path().join("catalog.db"))
        .await
        .unwrap();
    sync_all(&lake, &catalog).await.unwrap();
    Fixture {
        _dir: dir,
        lake,
        catalog: Arc::new(catalog),
        dataset,
    }
}

impl Fixture {
    async fn audit(&self) -> AuditReport {
        let options = AuditOptions { deep: true };
        audit(&self.lake, self.catalog.clone(), options)
            .await
            .unwrap()
    }

    async fn only_finding(&self) -> Finding {
        let mut found = self.audit().await.findings;
        found.retain(|f| f.invariant == "LOG-10");
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    async fn repaired(&self) -> Vec<u64> {
        let report = self.audit().await;
        let by = By::this_program();
        repair(&self.lake, self.catalog.clone(), &report, by)
            .await
            .unwrap();
        let left = list_checkpoints(&self.lake, &self.dataset).await.unwrap();
        left.iter().map(|c| c.number).collect()
    }
}

#[tokio::test]
async fn a_damaged_checkpoint_is_deleted() {
    let f = fixture().await;
    let report = f.audit().await;
    assert!(report.is_clean(), "{:?}", report.findings);
    let path = list_checkpoints(&f.lake, &f.dataset)
        .await
        .unwrap()
        .remove(0)
        .path;
    let local = f.lake.store().local_path(&path).unwrap();
    let mut bytes = std::fs::read(&local).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&local, bytes).unwrap();
    let finding = f.only_finding().await;
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.subject, path.as_str());
    assert!(f.repaired().await.is_empty());
    assert!(f.audit().await.is_clean());
}

#[tokio::test]
async fn a_checkpoint_with_another_fold_is_found_and_deleted() {
    let f = fixture().await;
    let [before, at] =
        [65, 66].map(async |n| DatasetState::load_at(&f.lake, &f.dataset, n).await.unwrap());
    let (before, at) = (before.await, at.await);
    let path = write_forged(&f.lake, before, at.position().clone())
        .await
        .unwrap();
    let finding = f.only_finding().await;
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.repair, Repair::DeleteCheckpoint { path });
    assert_eq!(f.repaired().await, [64]);
    assert!(f.audit().await.is_clean());
    // A right one at the same number is not mistaken for it.
    write_checkpoint(&f.lake, &at).await.unwrap();
    assert!(f.audit().await.is_clean());
    assert_eq!(f.repaired().await, [66, 64]);
}

#[tokio::test]
async fn a_checkpoint_beyond_the_log_is_left_for_a_person() {
    let f = fixture().await;
    for number in 64..=70 {
        let path = log_record_path(&f.dataset, number);
        std::fs::remove_file(f.lake.store().local_path(&path).unwrap()).unwrap();
    }
    let finding = f.only_finding().await;
    assert_eq!(finding.severity, Severity::Error);
    assert!(matches!(finding.repair, Repair::Manual { .. }));
    assert!(
        finding.message.contains("ends at record 64"),
        "{}",
        finding.message
    );
    assert_eq!(f.repaired().await, [64]);
    // Of a log that does not fold, nothing is said of its checkpoints.
    let path = f
        .lake
        .store()
        .local_path(&log_record_path(&f.dataset, 9))
        .unwrap();
    std::fs::remove_file(path).unwrap();
    let report = f.audit().await;
    assert!(report.findings.iter().any(|f| f.invariant == "LOG-1"));
    assert!(report.findings.iter().all(|f| f.invariant != "LOG-10"));
}
