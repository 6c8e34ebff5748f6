//! The log attacked: chains, holes, foreign records, the replay table line by line, races.

use std::sync::Arc;

use super::*;
use crate::error::ErrorKind;
use crate::name::{AttemptId, BatchLabel, ContentHash, DatasetRef};
use crate::spec::{
    Action, By, DataFileSpec, FileFormat, InputSpec, LoadKind, LogPosition, Operation,
    PartitionKey, PartitionState, Provenance, RECORD_FORMAT, RejectsFileSpec, Requirement,
};
use crate::store::{Lake, LocalStore, log_record_path, success_path};
use crate::time::{BusinessDate, Clock, Instant};

struct Fixture {
    _dir: tempfile::TempDir,
    lake: Lake,
    dataset: DatasetRef,
}

async fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(dir.path().join("lake")));
    let clock = Arc::new(Clock::manual(Instant::from_micros(1_700_000_000_000_000)));
    let lake = Lake::open_or_create(store, clock, "Asia/Shanghai")
        .await
        .unwrap();
    Fixture {
        _dir: dir,
        lake,
        dataset: "clean/weibo".parse().unwrap(),
    }
}

fn by() -> By {
    By {
        program: "test".into(),
        user: None,
        run: None,
        note: None,
    }
}

fn dt(text: &str) -> BusinessDate {
    text.parse().unwrap()
}

fn key(date: &str, version: u32, revision: u32) -> PartitionKey {
    PartitionKey {
        dt: dt(date),
        schema_version: version,
        revision,
    }
}

fn input(content: &str, batch: Option<&str>) -> InputSpec {
    InputSpec {
        content: ContentHash::of(content.as_bytes()),
        name: format!("{content}.jsonl"),
        bytes: 1,
        rows: 1,
        rejected: 0,
        rules: "r1".into(),
        batch: batch.map(|b| b.parse().unwrap()),
        load: LoadKind::Incremental,
        parents: Vec::new(),
    }
}

fn file(name: &str) -> DataFileSpec {
    DataFileSpec {
        name: name.into(),
        format: FileFormat::Parquet,
        rows: 1,
        bytes: 1,
        blake3: ContentHash::of(name.as_bytes()),
        provenance: Provenance::Live,
        bounds: std::collections::BTreeMap::default(),
        parents: Vec::new(),
    }
}

async fn append(
    f: &Fixture,
    state: &mut DatasetState,
    key: PartitionKey,
    spec: InputSpec,
) -> CommitOutcome {
    let mut draft = Draft::new(&f.lake, Operation::Append, by()).unwrap();
    draft.requires = vec![Requirement::InputAbsent {
        dt: key.dt,
        content: spec.content.clone(),
        batch: spec.batch.clone(),
    }];
    let name = format!(
        "part-{}-{}.parquet",
        spec.content.short(),
        state.position().number
    );
    draft.actions = vec![
        Action::AddFile {
            partition: key,
            file: file(&name),
        },
        Action::AddInput {
            partition: key,
            input: spec,
        },
    ];
    commit(&f.lake, state, &draft).await.unwrap()
}

async fn put_states(
    f: &Fixture,
    state: &mut DatasetState,
    moves: &[(PartitionKey, PartitionState, PartitionState)],
) {
    let mut draft = Draft::new(&f.lake, Operation::Switch, by()).unwrap();
    draft.actions = moves
        .iter()
        .map(|(partition, from, to)| Action::SetState {
            partition: *partition,
            from: *from,
            to: *to,
        })
        .collect();
    assert!(matches!(
        commit(&f.lake, state, &draft).await.unwrap(),
        CommitOutcome::Committed(_)
    ));
}

#[allow(clippy::too_many_arguments, reason = "the columns of the replay table")]
fn ask(
    state: &DatasetState,
    date: &str,
    content: &str,
    batch: Option<&str>,
    version: u32,
    rules: &str,
    restore: bool,
) -> InputAnswer {
    let batch: Option<BatchLabel> = batch.map(|b| b.parse().unwrap());
    answer(
        state,
        &InputQuery {
            dt: dt(date),
            content: &ContentHash::of(content.as_bytes()),
            batch: batch.as_ref(),
            rules,
            schema_version: version,
            restore,
            replaces: false,
            is_retry: false,
        },
    )
}

#[tokio::test]
async fn every_line_of_the_replay_table() {
    let f = fixture().await;
    let mut s = DatasetState::empty(f.dataset.clone());
    let day = key("2024-05-20", 1, 0);
    assert_eq!(
        ask(&s, "2024-05-20", "a", None, 1, "r1", false),
        InputAnswer::New {
            other_dates: vec![]
        }
    );
    assert!(matches!(
        append(&f, &mut s, day, input("a", None)).await,
        CommitOutcome::Committed(_)
    ));
    assert!(matches!(
        append(&f, &mut s, day, input("b", Some("0800"))).await,
        CommitOutcome::Committed(_)
    ));
    // already there
    assert_eq!(
        ask(&s, "2024-05-20", "a", None, 1, "r1", false),
        InputAnswer::AlreadyThere { number: 1 }
    );
    assert_eq!(
        ask(&s, "2024-05-20", "b", None, 1, "r1", false),
        InputAnswer::AlreadyThere { number: 2 }
    );
    assert_eq!(
        ask(&s, "2024-05-20", "b", Some("0800"), 1, "r1", false),
        InputAnswer::AlreadyThere { number: 2 }
    );
    // a new label is another observation, also of what had no label
    assert_eq!(
        ask(&s, "2024-05-20", "b", Some("0900"), 1, "r1", false),
        InputAnswer::Repeat { number: 2 }
    );
    assert_eq!(
        ask(&s, "2024-05-20", "a", Some("0900"), 1, "r1", false),
        InputAnswer::Repeat { number: 1 }
    );
    // other version, other rules
    let refused = |a: &InputAnswer| matches!(a, InputAnswer::Refused(_));
    let other = ask(&s, "2024-05-20", "a", None, 2, "r1", false);
    assert_eq!(
        other,
        InputAnswer::Refused(Refusal::OtherVersion {
            version: 1,
            number: 1
        })
    );
    let other = ask(&s, "2024-05-20", "a", None, 1, "r2", false);
    assert_eq!(
        other,
        InputAnswer::Refused(Refusal::OtherRules { number: 1 })
    );
    // a label again with other content
    let taken = ask(&s, "2024-05-20", "c", Some("0800"), 1, "r1", false);
    assert_eq!(
        taken,
        InputAnswer::Refused(Refusal::BatchTaken {
            number: 2,
            batch: "0800".parse().unwrap()
        })
    );
    // known on another date
    assert_eq!(
        ask(&s, "2024-05-21", "a", None, 1, "r1", false),
        InputAnswer::New {
            other_dates: vec![dt("2024-05-20")]
        }
    );
    // superseded only
    put_states(
        &f,
        &mut s,
        &[(day, PartitionState::Active, PartitionState::Superseded)],
    )
    .await;
    assert_eq!(
        ask(&s, "2024-05-20", "a", None, 1, "r1", false),
        InputAnswer::New {
            other_dates: vec![]
        }
    );
    // retired, purged
    put_states(
        &f,
        &mut s,
        &[(day, PartitionState::Superseded, PartitionState::Retired)],
    )
    .await;
    assert_eq!(
        ask(&s, "2024-05-20", "a", None, 1, "r1", false),
        InputAnswer::Refused(Refusal::Retired { number: 1 })
    );
    assert_eq!(
        ask(&s, "2024-05-20", "a", None, 1, "r1", true),
        InputAnswer::New {
            other_dates: vec![]
        }
    );
    put_states(
        &f,
        &mut s,
        &[(day, PartitionState::Retired, PartitionState::Purged)],
    )
    .await;
    assert!(refused(&ask(&s, "2024-05-20", "a", None, 1, "r1", false)));
    // erased, whatever is said
    let mut draft = Draft::new(&f.lake, Operation::Erase, by()).unwrap();
    draft.actions = vec![Action::EraseInput {
        content: ContentHash::of(b"a"),
    }];
    assert!(matches!(
        commit(&f.lake, &mut s, &draft).await.unwrap(),
        CommitOutcome::Committed(_)
    ));
    assert_eq!(
        ask(&s, "2024-05-20", "a", None, 1, "r1", true),
        InputAnswer::Refused(Refusal::Erased)
    );
    assert_eq!(
        ask(&s, "2024-05-21", "a", Some("x"), 9, "r9", true),
        InputAnswer::Refused(Refusal::Erased)
    );
}

/// The same bytes under two versions: a call repeated is already there under either of them.
#[tokio::test]
async fn a_repeat_under_another_version_is_known_by_its_label() {
    let f = fixture().await;
    let mut s = DatasetState::empty(f.dataset.clone());
    let _plain = append(&f, &mut s, key("2024-05-20", 1, 0), input("a", None)).await;
    let labelled = input("a", Some("0900"));
    let _labelled = append(&f, &mut s, key("2024-05-20", 2, 0), labelled).await;
    let mut answers = Vec::new();
    for batch in [None, Some("0900")] {
        for version in [1, 2, 3] {
            answers.push(ask(&s, "2024-05-20", "a", batch, version, "r1", false));
        }
    }
    let there = |number| InputAnswer::AlreadyThere { number };
    let other = |version, number| InputAnswer::Refused(Refusal::OtherVersion { version, number });
    assert_eq!(
        answers,
        [
            there(1),
            there(2),
            other(1, 1),
            other(2, 2),
            there(2),
            other(2, 2)
        ]
    );
    let rules = ask(&s, "2024-05-20", "a", None, 2, "r2", false);
    assert_eq!(
        rules,
        InputAnswer::Refused(Refusal::OtherRules { number: 2 })
    );
}

#[tokio::test]
async fn a_commit_repeated_is_one_commit() {
    let f = fixture().await;
    let mut s = DatasetState::empty(f.dataset.clone());
    let mut draft = Draft::new(&f.lake, Operation::Append, by()).unwrap();
    draft.actions = vec![Action::AddFile {
        partition: key("2024-05-20", 1, 0),
        file: file("part-0.parquet"),
    }];
    assert!(matches!(
        commit(&f.lake, &mut s, &draft).await.unwrap(),
        CommitOutcome::Committed(_)
    ));
    let mut fresh = DatasetState::empty(f.dataset.clone());
    match commit(&f.lake, &mut fresh, &draft).await.unwrap() {
        CommitOutcome::AlreadyThere(logged) => assert_eq!(logged.record.number, 1),
        other => panic!("{other:?}"),
    }
    assert_eq!(fresh, s);
    assert_eq!(fresh.position().number, 1);
}

#[tokio::test]
async fn a_stale_state_rebases_and_checks_again() {
    let f = fixture().await;
    let day = key("2024-05-20", 1, 0);
    let mut one = DatasetState::empty(f.dataset.clone());
    let mut two = DatasetState::empty(f.dataset.clone());
    assert!(matches!(
        append(&f, &mut one, day, input("a", None)).await,
        CommitOutcome::Committed(_)
    ));
    // disjoint inputs commute
    assert!(matches!(
        append(&f, &mut two, day, input("b", None)).await,
        CommitOutcome::Committed(_)
    ));
    assert_eq!(two.position().number, 2);
    // the same input does not
    let mut three = one.clone();
    match append(&f, &mut three, day, input("b", None)).await {
        CommitOutcome::Conflict(unmet) => assert!(unmet.reason.contains("record 2"), "{unmet}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn sealed_dates_refuse_and_abandoned_attempts_fail() {
    let f = fixture().await;
    let mut s = DatasetState::empty(f.dataset.clone());
    let day = key("2024-05-20", 1, 0);
    assert_eq!(
        seal(&f.lake, &mut s, day.dt, by())
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::PreconditionFailed
    );
    assert!(matches!(
        append(&f, &mut s, day, input("a", None)).await,
        CommitOutcome::Committed(_)
    ));
    assert_eq!(
        seal(&f.lake, &mut s, day.dt, by()).await.unwrap(),
        SealOutcome::Done { number: 2 }
    );
    assert_eq!(
        seal(&f.lake, &mut s, day.dt, by()).await.unwrap(),
        SealOutcome::AlreadySo { number: 2 }
    );
    assert!(
        f.lake
            .store()
            .find(&success_path(&f.dataset, &day))
            .await
            .unwrap()
            .is_some()
    );
    assert!(s.check(&Requirement::DateOpen { dt: day.dt }).is_err());
    assert_eq!(
        reopen(&f.lake, &mut s, day.dt, by()).await.unwrap(),
        SealOutcome::Done { number: 3 }
    );
    assert!(
        f.lake
            .store()
            .find(&success_path(&f.dataset, &day))
            .await
            .unwrap()
            .is_none()
    );
    assert!(s.check(&Requirement::DateOpen { dt: day.dt }).is_ok());

    let attempt: AttemptId = "sleeper".parse().unwrap();
    assert_eq!(
        abandon(&f.lake, &mut s, &attempt, by()).await.unwrap(),
        SealOutcome::Done { number: 4 }
    );
    let mut draft = Draft::new(&f.lake, Operation::Append, by()).unwrap();
    draft.attempt = Some(attempt.clone());
    draft.requires = vec![Requirement::AttemptOpen { attempt }];
    assert!(matches!(
        commit(&f.lake, &mut s, &draft).await.unwrap(),
        CommitOutcome::Conflict(_)
    ));
}

#[tokio::test]
async fn broken_logs_are_refused_by_name() {
    let f = fixture().await;
    let mut s = DatasetState::empty(f.dataset.clone());
    let day = key("2024-05-20", 1, 0);
    for content in ["a", "b", "c"] {
        assert!(matches!(
            append(&f, &mut s, day, input(content, None)).await,
            CommitOutcome::Committed(_)
        ));
    }
    let root = f
        .lake
        .store()
        .local_path(&log_record_path(&f.dataset, 2))
        .unwrap();
    let good = std::fs::read(&root).unwrap();
    let load = async || DatasetState::load(&f.lake, &f.dataset).await;
    let has = |e: &crate::Error, id: &str| e.to_string().contains(id);

    std::fs::write(&root, b"").unwrap();
    assert!(
        load()
            .await
            .unwrap_err()
            .to_string()
            .contains("00000000000000000002.json")
    );
    std::fs::write(
        &root,
        String::from_utf8(good.clone())
            .unwrap()
            .replace("\"rows\": 1", "\"rows\": 2"),
    )
    .unwrap();
    assert!(has(&load().await.unwrap_err(), "LOG-2"));
    std::fs::write(
        &root,
        String::from_utf8(good.clone())
            .unwrap()
            .replace("\"append\"", "\"explode\""),
    )
    .unwrap();
    assert!(load().await.unwrap_err().to_string().contains("explode"));
    std::fs::write(
        &root,
        String::from_utf8(good.clone())
            .unwrap()
            .replace("\"min_reader\": 1", "\"min_reader\": 9"),
    )
    .unwrap();
    assert_eq!(load().await.unwrap_err().kind(), ErrorKind::Unavailable);
    std::fs::write(
        &root,
        String::from_utf8(good.clone())
            .unwrap()
            .replace("clean/weibo", "clean/other"),
    )
    .unwrap();
    assert!(has(&load().await.unwrap_err(), "LOG-3"));
    std::fs::remove_file(&root).unwrap();
    assert!(has(&load().await.unwrap_err(), "LOG-1"));
    std::fs::write(&root, &good).unwrap();
    assert_eq!(load().await.unwrap(), s);
    let ahead = LogPosition {
        number: 9,
        hash: Some(ContentHash::of(b"x")),
    };
    assert!(has(
        &read_after(&f.lake, &f.dataset, &ahead).await.unwrap_err(),
        "CAT-3"
    ));
    let elsewhere = LogPosition {
        number: 2,
        hash: Some(ContentHash::of(b"x")),
    };
    assert!(has(
        &read_after(&f.lake, &f.dataset, &elsewhere)
            .await
            .unwrap_err(),
        "CAT-3"
    ));
}

#[tokio::test]
async fn a_hole_right_behind_a_position_is_found_without_listing() {
    let f = fixture().await;
    let mut state = DatasetState::empty(f.dataset.clone());
    let day = key("2024-05-20", 1, 0);
    let mut held = state.clone();
    for content in ["a", "b", "c", "d"] {
        assert!(matches!(
            append(&f, &mut state, day, input(content, None)).await,
            CommitOutcome::Committed(_)
        ));
        if state.position().number == 2 {
            held = state.clone();
        }
    }
    let path = log_record_path(&f.dataset, 3);
    let third = f.lake.store().local_path(&path).unwrap();
    let bytes = std::fs::read(&third).unwrap();
    std::fs::remove_file(&third).unwrap();
    let error = held.clone().catch_up(&f.lake).await.unwrap_err();
    assert!(error.to_string().contains("LOG-1"), "{error}");
    std::fs::write(&third, bytes).unwrap();
    assert_eq!(held.catch_up(&f.lake).await.unwrap(), 2);
    assert_eq!(held, state);
}

#[tokio::test]
async fn a_long_log_is_read_in_order_whatever_reads_first() {
    let f = fixture().await;
    let mut state = DatasetState::empty(f.dataset.clone());
    for n in 0..300 {
        let day = key("2024-05-20", 1, 0);
        assert!(matches!(
            append(&f, &mut state, day, input(&n.to_string(), None)).await,
            CommitOutcome::Committed(_)
        ));
    }
    let numbers: Vec<u64> = read_after(&f.lake, &f.dataset, &LogPosition::START)
        .await
        .unwrap()
        .iter()
        .map(|r| r.record.number)
        .collect();
    assert_eq!(numbers, (1..=300).collect::<Vec<u64>>());
    // From any position, without a listing: one, then eight, then many at once.
    for from in [1, 100, 290, 298, 299, 300] {
        let at = read_record(&f.lake, &f.dataset, from)
            .await
            .unwrap()
            .unwrap();
        let after = read_after(&f.lake, &f.dataset, &at.position())
            .await
            .unwrap();
        let numbers: Vec<u64> = after.iter().map(|r| r.record.number).collect();
        assert_eq!(numbers, (from + 1..=300).collect::<Vec<u64>>());
    }
    assert_eq!(
        DatasetState::load(&f.lake, &f.dataset).await.unwrap(),
        state
    );
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let f = fixture().await;
    let day = key("2024-05-20", 1, 0);
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let (lake, dataset) = (f.lake.clone(), f.dataset.clone());
        tasks.push(tokio::spawn(async move {
            let mut s = DatasetState::empty(dataset);
            for n in 0..10 {
                let mut draft = Draft::new(&lake, Operation::Append, by()).unwrap();
                let spec = input(&format!("{writer}-{n}"), None);
                draft.actions = vec![Action::AddInput {
                    partition: day,
                    input: spec,
                }];
                assert!(matches!(
                    commit(&lake, &mut s, &draft).await.unwrap(),
                    CommitOutcome::Committed(_)
                ));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let s = DatasetState::load(&f.lake, &f.dataset).await.unwrap();
    assert_eq!(s.position().number, 40);
    assert_eq!(s.visible_inputs(day.dt).count(), 40);
}

#[tokio::test]
async fn two_visible_revisions_stop_the_fold() {
    let f = fixture().await;
    let mut state = DatasetState::empty(f.dataset.clone());
    let _first = append(&f, &mut state, key("2024-05-20", 1, 0), input("a", None)).await;
    let mut draft = Draft::new(&f.lake, Operation::Correct, by()).unwrap();
    let begin = |state| Action::AddPartition {
        partition: key("2024-05-20", 1, 1),
        state,
    };
    draft.actions = vec![begin(PartitionState::Switching)];
    let error = commit(&f.lake, &mut state.clone(), &draft)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(error.context().iter().any(|(_, v)| v == "LOG-8"), "{error}");
    // That record is in the log now, as if a foreign program had put it: every reader stops there.
    assert!(DatasetState::load(&f.lake, &f.dataset).await.is_err());
    let mut other = state.clone();
    assert!(other.catch_up(&f.lake).await.is_err());
    for wrong in [
        PartitionState::Active,
        PartitionState::Retired,
        PartitionState::Purged,
    ] {
        let f = fixture().await;
        let mut state = DatasetState::empty(f.dataset.clone());
        let mut draft = Draft::new(&f.lake, Operation::Correct, by()).unwrap();
        draft.actions = vec![begin(wrong)];
        let error = commit(&f.lake, &mut state, &draft).await.unwrap_err();
        assert!(error.context().iter().any(|(_, v)| v == "LOG-4"), "{error}");
    }
}

/// Attacks REJ-2 and LOG-4.
#[tokio::test]
async fn rejects_are_tried_again_once() {
    let f = fixture().await;
    let mut state = DatasetState::empty(f.dataset.clone());
    let day = dt("2024-05-20");
    let draft = |actions: Vec<Action>, requires: Vec<Requirement>| {
        let mut draft = Draft::new(&f.lake, Operation::Append, by()).unwrap();
        (draft.actions, draft.requires) = (actions, requires);
        draft
    };
    let file = RejectsFileSpec {
        name: "rejects-1.jsonl.zst".into(),
        records: 2,
        bytes: 1,
        blake3: ContentHash::of(b"r"),
    };
    let first = draft(vec![Action::AddRejects { dt: day, file }], Vec::new());
    let kept = first.commit.clone();
    let CommitOutcome::Committed(logged) = commit(&f.lake, &mut state, &first).await.unwrap()
    else {
        panic!("the first commit met a conflict");
    };
    assert_eq!(
        (logged.record.format, logged.record.min_reader),
        (RECORD_FORMAT, 1)
    );

    let retry = |dt: BusinessDate| {
        let commit = kept.clone();
        let action = Action::RetryRejects {
            dt,
            commit: commit.clone(),
        };
        draft(
            vec![action],
            vec![Requirement::RejectsWaiting { dt, commit }],
        )
    };
    let other_day = commit(&f.lake, &mut state, &retry(dt("2024-05-21")))
        .await
        .unwrap();
    assert!(matches!(other_day, CommitOutcome::Conflict(_)));
    // Two calls plan the same retry; the second is told so and puts nothing.
    let (one, two) = (retry(day), retry(day));
    let CommitOutcome::Committed(logged) = commit(&f.lake, &mut state, &one).await.unwrap() else {
        panic!("the retry met a conflict");
    };
    assert_eq!(
        logged.record.min_reader, 2,
        "an older program must not fold it"
    );
    let CommitOutcome::Conflict(unmet) = commit(&f.lake, &mut state, &two).await.unwrap() else {
        panic!("the rejects were tried again twice");
    };
    assert!(unmet.reason.contains("record 2"), "{unmet}");

    // A log that says so nevertheless was not written by commits.
    let mut forged = logged;
    forged.record.number = 3;
    let error = state.apply(&forged).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(error.to_string().contains("LOG-4"), "{error}");
}
