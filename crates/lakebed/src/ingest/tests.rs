//! Whole calls of ingest on a lake in a folder: bytes, replay, refusal, lateness.

use std::path::PathBuf;
use std::sync::Arc;

use super::decode::Mismatch;
use super::read::{InputSource, resolve_inputs};
use super::*;
use crate::catalog::SqliteCatalog;
use crate::error::ErrorKind;
use crate::log::{DatasetState, seal, write_checkpoint};
use crate::registry::{self, Evolution, PublishOptions};
use crate::spec::{By, LoadKind, ReadSpec};
use crate::store::{Lake, LocalStore, partition_dir, success_path};
use crate::time::{Clock, Instant};

pub(super) struct Fixture {
    dir: tempfile::TempDir,
    pub(super) lake: Lake,
    pub(super) catalog: SqliteCatalog,
}

const SCHEMA: &str = r#"
dataset = "clean/site"
version = 1
[[field]]
id = 1
name = "k"
type = "int"
[[field]]
id = 2
name = "标题"
type = "string"
"#;

pub(super) fn by() -> By {
    By {
        program: "test".into(),
        user: None,
        run: None,
        note: None,
    }
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::new(dir.path().join("lake")));
        let clock = Arc::new(Clock::manual(Instant::from_micros(1_780_000_000_000_000)));
        let lake = Lake::open_or_create(store, clock, "Asia/Taipei")
            .await
            .unwrap();
        let catalog = SqliteCatalog::open(dir.path().join("catalog.db"))
            .await
            .unwrap();
        let spec = registry::parse(SCHEMA, "v1.toml").unwrap();
        let options = PublishOptions {
            by: by(),
            git_commit: None,
            evolution: Evolution::Free,
        };
        let outcome = registry::publish(&lake, &spec, &options).await.unwrap();
        assert!(matches!(
            outcome,
            registry::PublishOutcome::Published { .. }
        ));
        Self { dir, lake, catalog }
    }

    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(super) fn request(&self, files: &[String]) -> IngestRequest {
        IngestRequest {
            dataset: "clean/site".parse().unwrap(),
            dt: "2026-05-20".parse().unwrap(),
            inputs: resolve_inputs(files).unwrap(),
            format: None,
            schema_version: None,
            read: ReadSpec::default(),
            mismatch: Mismatch::Fail,
            batch: None,
            run: None,
            revision: RevisionTarget::Join,
            complete: false,
            late: false,
            allow_empty: false,
            rejects_of: None,
            restore: false,
            bounds: Vec::new(),
            load: LoadKind::Incremental,
            parents: Vec::new(),
            provenance: None,
            by: by(),
            threads: Some(2),
            group_bytes: None,
        }
    }

    pub(super) async fn ingest(&self, request: &IngestRequest) -> crate::Result<IngestReport> {
        ingest(&self.lake, &self.catalog, request, &Silent).await
    }

    pub(super) async fn state(&self) -> DatasetState {
        DatasetState::load(&self.lake, &"clean/site".parse().unwrap())
            .await
            .unwrap()
    }

    /// Files below the stage, an attempt's or a put's.
    pub(super) async fn staged(&self) -> usize {
        self.lake
            .store()
            .list(&crate::store::stage_root())
            .await
            .unwrap()
            .len()
    }
}

fn lines(from: u64, to: u64) -> String {
    (from..to)
        .map(|k| format!("{{\"k\":{k},\"标题\":\"第 {k} 条，{}\"}}\n", k % 7))
        .collect()
}

#[tokio::test]
async fn threads_do_not_change_a_byte() {
    let mut seen = std::collections::BTreeSet::new();
    for threads in [1, 2, 5] {
        let f = Fixture::new().await;
        let mut request = f.request(&[
            f.file("a.jsonl", &lines(0, 3000)),
            f.file("b.jsonl", "{\"k\":\"x\"}\n{\"k\":7}\n"),
            f.file("c.jsonl", &lines(3000, 9000)),
        ]);
        request.mismatch = Mismatch::Quarantine;
        request.threads = Some(threads);
        request.group_bytes = Some(20_000);
        let report = f.ingest(&request).await.unwrap();
        assert_eq!((report.rows, report.rejected), (9001, 1));
        let rejects = f.state().await.dates().values().next().unwrap().rejects[0]
            .spec
            .clone();
        assert_eq!(report.files.len(), 1);
        seen.insert(format!("{:?} {:?}", report.files[0], rejects));
    }
    assert_eq!(seen.len(), 1, "{seen:#?}");
}

/// Calls of one process that append at once: each is told of its own files and rows (LOG-11).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_one_process_share_records_and_lose_nothing() {
    let f = Arc::new(Fixture::new().await);
    let mut calls = Vec::new();
    for writer in 0..6_u64 {
        let f = Arc::clone(&f);
        calls.push(tokio::spawn(async move {
            let mut files = Vec::new();
            for n in 0..8 {
                let from = 1000 * writer + 10 * n;
                let path = f.file(&format!("{writer}-{n}.jsonl"), &lines(from, from + 10));
                let mut request = f.request(&[path]);
                request.threads = Some(1);
                let report = f.ingest(&request).await.unwrap();
                assert_eq!(
                    (report.outcome, report.rows),
                    (IngestOutcome::Committed, 10)
                );
                assert_eq!(report.files.len(), 1, "{:?}", report.files);
                assert_eq!(report.warnings, Vec::<String>::new());
                files.push((report.files[0].path.clone(), report.log_position.unwrap()));
            }
            files
        }));
    }
    let mut told = std::collections::BTreeMap::new();
    for call in calls {
        told.extend(call.await.unwrap());
    }
    let state = f.state().await;
    let known: std::collections::BTreeMap<String, u64> = state
        .partitions()
        .iter()
        .flat_map(|(key, p)| p.files.values().map(move |file| (key, file)))
        .map(|(key, file)| {
            let path = crate::store::data_file_path(state.dataset(), key, &file.spec.name);
            (path.to_string(), file.number)
        })
        .collect();
    assert_eq!(told, known);
    assert_eq!(known.len(), 48);
    assert_eq!(f.staged().await, 0);
    use crate::catalog::{Catalog, PartitionFilter};
    let rows = f.catalog.list_files(&PartitionFilter::default()).await;
    let attempts: std::collections::BTreeSet<_> =
        rows.unwrap().into_iter().map(|r| r.attempt).collect();
    assert_eq!(attempts.len(), 48);
}

#[tokio::test]
async fn a_copy_and_a_replay_are_skipped_and_named() {
    let f = Fixture::new().await;
    let one = f.file("one.jsonl", &lines(0, 5));
    let copy = f.file("copy.jsonl", &lines(0, 5));
    let report = f
        .ingest(&f.request(&[one.clone(), copy.clone()]))
        .await
        .unwrap();
    assert_eq!((report.rows, report.skipped.len()), (5, 1));
    assert!(report.skipped[0].name.ends_with("copy.jsonl"));
    let again = f.ingest(&f.request(&[copy])).await.unwrap();
    assert_eq!(again.outcome, IngestOutcome::AlreadyThere);
    assert_eq!(again.skipped[0].stored_by, Some(1));
    assert_eq!(f.state().await.position().number, 1);
    assert_eq!(f.staged().await, 0);
}

#[tokio::test]
async fn a_refused_call_writes_nothing_and_tells_every_drift() {
    let f = Fixture::new().await;
    let bad = f.file(
        "bad.jsonl",
        "{\"k\":1}\n{\"k\":\"n/k\"}\n{\"k\":2,\"热度\":7}\n",
    );
    let report = f.ingest(&f.request(&[bad])).await.unwrap();
    assert_eq!(report.outcome, IngestOutcome::Refused);
    let error = report.refusal().unwrap();
    let text = error.details().join("\n");
    for word in ["$.k", "n/k", "热度", "bad.jsonl line 2"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(f.state().await.position().number, 0);
    assert_eq!(f.staged().await, 0);
}

#[tokio::test]
async fn late_records_open_a_sealed_date() {
    let f = Fixture::new().await;
    let mut first = f.request(&[f.file("a.jsonl", &lines(0, 2))]);
    first.complete = true;
    assert!(f.ingest(&first).await.unwrap().complete);
    let key = crate::spec::PartitionKey {
        dt: first.dt,
        schema_version: 1,
        revision: 0,
    };
    let success = success_path(&first.dataset, &key);
    assert!(f.lake.store().find(&success).await.unwrap().is_some());
    let mut late = f.request(&[f.file("b.jsonl", &lines(2, 4))]);
    assert_eq!(
        f.ingest(&late).await.unwrap_err().kind(),
        ErrorKind::PreconditionFailed
    );
    assert!(f.lake.store().find(&success).await.unwrap().is_some());
    late.late = true;
    assert!(!f.ingest(&late).await.unwrap().complete);
    assert!(f.lake.store().find(&success).await.unwrap().is_none());
    let mut state = f.state().await;
    match seal(&f.lake, &mut state, late.dt, by()).await.unwrap() {
        crate::log::SealOutcome::Done { number } => assert_eq!(number, 3),
        other @ crate::log::SealOutcome::AlreadySo { .. } => panic!("{other:?}"),
    }
    let folder = partition_dir(&late.dataset, &key);
    assert_eq!(f.lake.store().list(&folder).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_failed_file_fails_the_whole_call() {
    let f = Fixture::new().await;
    let good = f.file("good.jsonl", &lines(0, 5));
    let bad = f.file("bad.csv", "k,标题\n1,\"never closed\n");
    let mut request = f.request(&[good, bad]);
    request.mismatch = Mismatch::Quarantine;
    let error = f.ingest(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(error.to_string().contains("bad.csv"), "{error}");
    assert_eq!(f.state().await.position().number, 0);
    assert_eq!(f.staged().await, 0);
}

#[tokio::test]
async fn quarantined_records_are_tried_again() {
    let f = Fixture::new().await;
    let mut request = f.request(&[f.file("a.csv", "k,标题\n1,甲\n二,\"乙,\n丙\"\n3\n")]);
    request.mismatch = Mismatch::Quarantine;
    let report = f.ingest(&request).await.unwrap();
    assert_eq!((report.rows, report.rejected), (1, 2));
    let state = f.state().await;
    let commit = report.commit.unwrap();
    let retry = retry_inputs(&f.lake, &state, &commit, f.dir.path())
        .await
        .unwrap();
    assert_eq!((retry.left, retry.inputs.len()), (1, 1));
    let mut again = request.clone();
    again.inputs = retry.inputs;
    again.rejects_of = Some(commit.clone());
    let second = f.ingest(&again).await.unwrap();
    assert_eq!((second.rows, second.rejected), (0, 1), "still no int");
    let first = second.drift.items().next().unwrap();
    assert_eq!((first.file.as_str(), first.line), ("a.csv", 3));
    assert_eq!(listed(&f).await, ["a.csv:5", "a.csv:3"]);

    // A second call, and one that began before the first ended, find that it was done.
    let third = f.ingest(&again).await.unwrap();
    assert_eq!(third.outcome, IngestOutcome::AlreadyThere);
    assert_eq!(third.skipped[0].stored_by, Some(2));
    assert_eq!(
        f.state()
            .await
            .find_rejects(again.dt, &commit)
            .unwrap()
            .retried_by,
        Some(2)
    );
}

/// `file:line` of every listed reject.
async fn listed(f: &Fixture) -> Vec<String> {
    let state = f.state().await;
    let mut found = Vec::new();
    for_each_reject(&f.lake, &state, "2026-05-20".parse().unwrap(), |kept| {
        found.push(format!("{}:{}", kept.record.file, kept.record.line));
        Ok(true)
    })
    .await
    .unwrap();
    found
}

#[tokio::test]
async fn bounds_of_declared_columns_stand_in_the_log() {
    let f = Fixture::new().await;
    let a = f.file(
        "a.jsonl",
        "{\"k\": 7, \"标题\": \"乙\"}\n{\"k\": -3}\n{\"k\": 5, \"标题\": \"丙\"}\n",
    );
    let request = IngestRequest {
        bounds: vec!["k".into(), "标题".into(), "absent".into()],
        ..f.request(&[a])
    };
    let _stored = f.ingest(&request).await.unwrap();
    let state = f.state().await;
    let file = state.partitions().values().next().unwrap();
    let bounds = &file.files.values().next().unwrap().spec.bounds;
    assert_eq!(bounds["k"], ["-3", "7"]);
    assert_eq!(bounds["标题"], ["丙", "乙"]);
    assert_eq!(bounds.len(), 2);
}

#[tokio::test]
async fn an_ingest_goes_on_from_a_checkpoint_and_names_one_it_cannot_use() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0, 10));
    let b = f.file("b.jsonl", &lines(10, 20));
    let c = f.file("c.jsonl", &lines(20, 30));
    let first = f
        .ingest(&f.request(std::slice::from_ref(&a)))
        .await
        .unwrap();
    assert!(first.warnings.is_empty());
    let path = write_checkpoint(&f.lake, &f.state().await).await.unwrap();
    let second = f.ingest(&f.request(&[a.clone(), b])).await.unwrap();
    assert!(second.warnings.is_empty(), "{:?}", second.warnings);
    assert_eq!((second.skipped.len(), second.rows), (1, 10));
    let place = f.lake.store().local_path(&path).unwrap();
    std::fs::write(&place, b"not what was written").unwrap();
    let third = f.ingest(&f.request(&[a, c])).await.unwrap();
    assert_eq!((third.skipped.len(), third.rows), (1, 10));
    let warning = third.warnings.join(" ");
    assert!(warning.contains("passed over"), "{warning}");
    assert!(warning.contains(path.as_str()), "{warning}");
}

#[tokio::test]
async fn a_call_that_joins_an_unchanged_date_meets_no_change() {
    let f = Fixture::new().await;
    let a = f.file("a.jsonl", &lines(0, 10));
    let made = |name: &str, from: u64, seen: u64| IngestRequest {
        inputs: vec![InputSource::made(
            std::path::Path::new(&f.file(&format!("{name}.jsonl"), &lines(from, from + 10))),
            name.to_owned(),
            format!("parse:{name}").parse().unwrap(),
            None,
        )],
        revision: RevisionTarget::JoinUnchanged(seen),
        ..f.request(&[])
    };
    let first = f.ingest(&made("first", 20, 0)).await.unwrap();
    let number = first.log_position.unwrap();
    let input = &first.inputs[0];
    assert_eq!(input.name, "first");
    let _by_hand = f.ingest(&f.request(&[a])).await.unwrap();
    let late = f.ingest(&made("second", 40, number)).await.unwrap_err();
    assert!(late.is_retryable(), "{late:?}");
    assert!(late.message().contains("has changed"), "{late}");
    let changed = f.state().await.changed("2026-05-20".parse().unwrap());
    let again = f.ingest(&made("second", 40, changed)).await.unwrap();
    assert_eq!(again.rows, 10);
    assert_eq!(f.staged().await, 0);
}
