//! Corrections attacked: what readers of the log, of the catalog and of the folder see at each step.

use std::sync::Arc;

use crate::catalog::{Catalog, PartitionFilter, SqliteCatalog, rebuild, sync_all};
use crate::error::ErrorKind;
use crate::govern::audit::{AuditOptions, audit};
use crate::ingest::tests::{Fixture, by};
use crate::ingest::{IngestOutcome, IngestRequest, RevisionTarget};
use crate::log::{
    SwitchOutcome, SwitchRequest, SwitchTarget, find_file, finish_moves, reopen, seal, switch,
};
use crate::spec::PartitionState;
use crate::store::{SUCCESS_NAME, StorePath};

const DT: &str = "2026-05-20";

/// File names below a folder of the lake.
async fn names(f: &Fixture, folder: &str) -> Vec<String> {
    let folder = StorePath::new(folder).unwrap();
    let files = f.lake.store().list(&folder).await.unwrap();
    files.iter().map(|f| f.path.file_name()).collect()
}

/// Rows that a reader of the data folder counts, by the log's own word for each file.
async fn folder_rows(f: &Fixture) -> u64 {
    let state = f.state().await;
    let mut rows = 0;
    for name in names(f, "clean").await {
        if name != SUCCESS_NAME {
            let all = state.partitions().values();
            rows += all
                .filter_map(|p| p.files.get(&name))
                .map(|f| f.spec.rows)
                .sum::<u64>();
        }
    }
    rows
}

/// Rows that a reader of the catalog counts.
async fn catalog_rows(f: &Fixture) -> u64 {
    sync_all(&f.lake, &f.catalog).await.unwrap();
    let all = f
        .catalog
        .list_partitions(&PartitionFilter::default())
        .await
        .unwrap();
    all.iter().map(|p| p.row_count).sum()
}

fn lines(range: std::ops::Range<u32>) -> String {
    range
        .map(|k| format!("{{\"k\": {k}, \"标题\": \"热搜 {k}\"}}\n"))
        .collect()
}

fn correcting(f: &Fixture, files: &[String]) -> IngestRequest {
    IngestRequest {
        revision: RevisionTarget::Replace,
        ..f.request(files)
    }
}

/// A call that must store something.
async fn put(f: &Fixture, request: &IngestRequest) {
    let report = f.ingest(request).await.unwrap();
    assert_eq!(report.outcome, IngestOutcome::Committed);
}

async fn show(f: &Fixture, target: SwitchTarget, drop_late: bool) -> crate::Result<SwitchOutcome> {
    let request = SwitchRequest {
        dt: DT.parse().unwrap(),
        target,
        drop_late,
        by: by(),
    };
    let mut state = f.state().await;
    switch(&f.lake, &mut state, &request).await
}

/// Nothing is wrong, and a catalog that is made anew says the same as the one that followed.
async fn assert_sound(f: &Fixture) {
    catalog_rows(f).await;
    let other = tempfile::tempdir().unwrap();
    let anew = SqliteCatalog::open(other.path().join("c.db"))
        .await
        .unwrap();
    rebuild(&f.lake, &anew, true).await.unwrap();
    let (followed, rebuilt) = (f.catalog.dump().await.unwrap(), anew.dump().await.unwrap());
    for (one, other) in followed.lines().zip(rebuilt.lines()) {
        assert_eq!(one, other, "a rebuilt catalog differs");
    }
    assert_eq!(followed.len(), rebuilt.len());
    let report = audit(&f.lake, Arc::new(anew), AuditOptions { deep: true })
        .await
        .unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[tokio::test]
async fn a_correction_takes_the_place_of_a_date_and_is_taken_back() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let b = f.file("b.jsonl", &lines(10..15));
    let c = f.file("c.jsonl", &lines(100..103));
    put(&f, &f.request(&[a])).await;
    put(&f, &f.request(&[b])).await;
    let done = f
        .ingest(&correcting(&f, std::slice::from_ref(&c)))
        .await
        .unwrap();
    let replaced = done.replaced.unwrap();
    assert_eq!((done.revision, done.rows), (1, 3));
    assert_eq!(
        (replaced.revision, replaced.rows, replaced.files),
        (0, 15, 2)
    );
    assert_eq!(replaced.inputs, ["a.jsonl", "b.jsonl"]);
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (3, 3));
    assert_eq!(names(&f, "_lake/superseded").await.len(), 2);
    assert_eq!(f.staged().await, 0);
    assert_sound(&f).await;

    let back = show(&f, SwitchTarget::Previous, false).await.unwrap();
    assert!(matches!(
        back,
        SwitchOutcome::Done {
            from: 1,
            to: 0,
            moved: true,
            ..
        }
    ));
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (15, 15));
    assert_eq!(names(&f, "_lake/superseded").await.len(), 1);
    assert_sound(&f).await;

    let forth = show(&f, SwitchTarget::Revision(1), false).await.unwrap();
    assert!(matches!(forth, SwitchOutcome::Done { from: 0, to: 1, .. }));
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (3, 3));
    let again = show(&f, SwitchTarget::Revision(1), false).await.unwrap();
    assert_eq!(again, SwitchOutcome::AlreadySo { revision: 1 });
    assert_sound(&f).await;
}

#[tokio::test]
async fn the_same_correction_twice_is_one() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let nothing = f
        .ingest(&correcting(&f, std::slice::from_ref(&a)))
        .await
        .unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::PreconditionFailed);
    put(&f, &f.request(std::slice::from_ref(&a))).await;
    // What stands there already needs no correction.
    let same = f
        .ingest(&correcting(&f, std::slice::from_ref(&a)))
        .await
        .unwrap();
    assert_eq!(same.outcome, IngestOutcome::AlreadyThere);
    let b = f.file("b.jsonl", &lines(0..9));
    put(&f, &correcting(&f, std::slice::from_ref(&b))).await;
    let number = f.state().await.position().number;
    let same = f
        .ingest(&correcting(&f, std::slice::from_ref(&b)))
        .await
        .unwrap();
    assert_eq!(same.outcome, IngestOutcome::AlreadyThere);
    assert_eq!(f.state().await.position().number, number);
    // A part of what stands there is another content of the date.
    put(&f, &f.request(std::slice::from_ref(&a))).await;
    let part = f.ingest(&correcting(&f, &[b])).await.unwrap();
    assert_eq!((part.outcome, part.revision), (IngestOutcome::Committed, 2));
    // Known to a superseded revision alone: new.
    let add = f.ingest(&f.request(&[a])).await.unwrap();
    assert_eq!((add.outcome, add.revision), (IngestOutcome::Committed, 2));
    assert_sound(&f).await;
}

#[tokio::test]
async fn what_was_added_since_is_not_hidden_unasked() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let b = f.file("b.jsonl", &lines(0..8));
    let late = f.file("late.jsonl", &lines(50..52));
    put(&f, &f.request(&[a])).await;
    put(&f, &correcting(&f, &[b])).await;
    put(&f, &f.request(&[late])).await;
    let refused = show(&f, SwitchTarget::Previous, false).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
    assert!(refused.to_string().contains("late.jsonl"), "{refused}");
    assert_eq!(catalog_rows(&f).await, 10);
    assert!(matches!(
        show(&f, SwitchTarget::Previous, true).await.unwrap(),
        SwitchOutcome::Done { to: 0, .. }
    ));
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (10, 10));
    // Forward again brings the late rows back as well.
    assert!(matches!(
        show(&f, SwitchTarget::Revision(1), false).await.unwrap(),
        SwitchOutcome::Done { to: 1, .. }
    ));
    assert_eq!(catalog_rows(&f).await, 10);
    assert_sound(&f).await;
}

#[tokio::test]
async fn a_kept_revision_waits_for_its_switch() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let b = f.file("b.jsonl", &lines(0..4));
    let since = f.file("since.jsonl", &lines(90..91));
    put(&f, &f.request(&[a])).await;
    let keep = IngestRequest {
        revision: RevisionTarget::Keep,
        ..f.request(&[b])
    };
    let kept = f.ingest(&keep).await.unwrap();
    assert_eq!((kept.revision, kept.replaced), (1, None));
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (10, 10));
    let again = f.ingest(&keep).await.unwrap();
    assert_eq!(again.outcome, IngestOutcome::AlreadyThere);
    assert_sound(&f).await;
    put(&f, &f.request(&[since])).await;
    let refused = show(&f, SwitchTarget::Revision(1), false)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("since.jsonl"), "{refused}");
    assert!(matches!(
        show(&f, SwitchTarget::Revision(1), true).await.unwrap(),
        SwitchOutcome::Done { from: 0, to: 1, .. }
    ));
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (4, 4));
    let absent = show(&f, SwitchTarget::Revision(7), false)
        .await
        .unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    assert_sound(&f).await;
}

#[tokio::test]
async fn a_sealed_date_stays_sealed_by_its_correction() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let b = f.file("b.jsonl", &lines(0..8));
    put(&f, &f.request(&[a])).await;
    let mut state = f.state().await;
    let dt = DT.parse().unwrap();
    let _done = seal(&f.lake, &mut state, dt, by()).await.unwrap();
    let success = StorePath::new(format!("clean/site/dt={DT}/schema_version=1/_SUCCESS")).unwrap();
    let before = f.lake.store().get(&success).await.unwrap();
    let done = f.ingest(&correcting(&f, &[b])).await.unwrap();
    assert!(done.complete);
    let after = f.lake.store().get(&success).await.unwrap();
    let text = String::from_utf8(after.to_vec()).unwrap();
    assert!(text.contains(done.files[0].path.rsplit('/').next().unwrap()));
    assert!(text.contains("\"log_position\": 3"), "{text}");
    assert!(matches!(
        show(&f, SwitchTarget::Previous, false).await.unwrap(),
        SwitchOutcome::Done { .. }
    ));
    let back = f.lake.store().get(&success).await.unwrap();
    assert_ne!(back, before, "the seal in force is another one");
    assert_sound(&f).await;
    let mut state = f.state().await;
    let _open = reopen(&f.lake, &mut state, dt, by()).await.unwrap();
    assert_sound(&f).await;
}

/// A switch whose files did not move yet: exact for readers of the log and the catalog, finished by
/// the next opener.
#[tokio::test]
async fn an_unfinished_switch_is_exact_and_is_finished_by_any_opener() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let b = f.file("b.jsonl", &lines(0..8));
    let c = f.file("c.jsonl", &lines(20..21));
    put(&f, &f.request(&[a])).await;
    put(&f, &correcting(&f, &[b])).await;
    let old = f.state().await;
    // The record alone, as a program leaves it that dies before it moves a file.
    let mut state = f.state().await;
    let mut draft = crate::log::Draft::new(&f.lake, crate::spec::Operation::Switch, by()).unwrap();
    draft.actions = crate::log::superseding(&state, DT.parse().unwrap());
    let key = |revision| crate::spec::PartitionKey {
        dt: DT.parse().unwrap(),
        schema_version: 1,
        revision,
    };
    draft.actions.push(crate::spec::Action::SetState {
        partition: key(0),
        from: PartitionState::Superseded,
        to: PartitionState::Switching,
    });
    assert!(matches!(
        crate::log::commit(&f.lake, &mut state, &draft)
            .await
            .unwrap(),
        crate::log::CommitOutcome::Committed(_)
    ));
    assert!(state.is_switching(DT.parse().unwrap()));
    assert_eq!(catalog_rows(&f).await, 10);
    for (name, file) in &state.partitions()[&key(0)].files {
        let place = find_file(&f.lake, &state, &key(0), name).await.unwrap();
        let size = f.lake.store().find_size(&place.unwrap()).await.unwrap();
        assert_eq!(size, Some(file.spec.bytes));
    }
    // An append finishes it first and joins what is active now.
    let joined = f.ingest(&f.request(&[c])).await.unwrap();
    assert_eq!(joined.revision, 0);
    assert_eq!((folder_rows(&f).await, catalog_rows(&f).await), (11, 11));
    // A plan that is older than the switch finds its files through the log.
    let state = f.state().await;
    for name in old.partitions()[&key(1)].files.keys() {
        let place = find_file(&f.lake, &state, &key(1), name).await.unwrap();
        assert!(place.unwrap().as_str().starts_with("_lake/superseded/"));
    }
    assert_sound(&f).await;
}

/// A mover that slept over a whole switch and a rollback does harm to nobody when it wakes.
#[tokio::test]
async fn a_mover_of_an_earlier_switch_moves_nothing_in() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0..10));
    let b = f.file("b.jsonl", &lines(0..8));
    put(&f, &f.request(&[a])).await;
    put(&f, &correcting(&f, &[b])).await;
    let mut sleeper = f.state().await;
    for target in [0, 1, 0] {
        assert!(matches!(
            show(&f, SwitchTarget::Revision(target), false)
                .await
                .unwrap(),
            SwitchOutcome::Done { .. }
        ));
        // Its fold is old: it believes that revision 1 is active and in its place.
        finish_moves(&f.lake, &mut sleeper).await.unwrap();
        assert_eq!(folder_rows(&f).await, if target == 0 { 10 } else { 8 });
    }
    assert_sound(&f).await;
}
