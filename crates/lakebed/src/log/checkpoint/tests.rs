//! Checkpoints attacked: any fold survives one, at every position; a wrong one is never believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::log::load::load;
use crate::log::read::LoggedRecord;
use crate::log::{CommitOutcome, Draft, commit};
use crate::spec::{
    Action, By, DataFileSpec, FileFormat, InputSpec, JoinedAppend, LoadKind, LogPosition,
    Operation, ParentSpec, PartitionKey, PartitionState, Provenance, RECORD_MIN_READER, Record,
    RejectsFileSpec,
};
use crate::store::{LocalStore, log_record_path};
use crate::time::{BusinessDate, Clock, Instant};

fn by() -> By {
    By::this_program()
}

fn dataset() -> DatasetRef {
    "clean/weibo".parse().unwrap()
}

fn day(n: u8) -> BusinessDate {
    let first: BusinessDate = "2026-11-28".parse().unwrap();
    first.plus_days(i64::from(n))
}

/// What a random record does; small numbers meet one another often.
#[derive(Debug, Clone)]
enum Step {
    Append {
        day: u8,
        version: u32,
        content: u8,
        batch: Option<u8>,
        extras: bool,
        attempt: Option<u8>,
    },
    Reject(u8),
    Seal(u8),
    Reopen(u8),
    Correct {
        day: u8,
        version: u32,
        keep: bool,
    },
    Finish(u8),
    Show {
        day: u8,
        revision: u32,
    },
    Gone {
        day: u8,
        purge: bool,
    },
    Remove(u8),
    Abandon(u8),
    Erase(u8),
    /// A commit id that the log had before: no program of ours puts it, a fold takes it.
    SameCommit(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let days = 0..3_u8;
    let append = (
        days.clone(),
        1..3_u32,
        0..6_u8,
        proptest::option::of(0..3_u8),
        any::<bool>(),
        proptest::option::of(0..9_u8),
    )
        .prop_map(
            |(day, version, content, batch, extras, attempt)| Step::Append {
                day,
                version,
                content,
                batch,
                extras,
                attempt,
            },
        );
    let step = prop_oneof![
        6 => append,
        1 => days.clone().prop_map(Step::Reject),
        1 => days.clone().prop_map(Step::Seal),
        1 => days.clone().prop_map(Step::Reopen),
        2 => (days.clone(), 1..3_u32, any::<bool>())
            .prop_map(|(day, version, keep)| Step::Correct { day, version, keep }),
        2 => days.clone().prop_map(Step::Finish),
        2 => (days.clone(), 0..3_u32).prop_map(|(day, revision)| Step::Show { day, revision }),
        1 => (days.clone(), any::<bool>()).prop_map(|(day, purge)| Step::Gone { day, purge }),
        1 => days.prop_map(Step::Remove),
        1 => (0..9_u8).prop_map(Step::Abandon),
        1 => (0..6_u8).prop_map(Step::Erase),
        1 => (0..3_u8).prop_map(Step::SameCommit),
    ];
    proptest::collection::vec(step, 1..40)
}

fn file(name: String, extras: bool) -> DataFileSpec {
    let bounds = [(
        "价格".to_owned(),
        ["-1".to_owned(), "12,5\u{1f600}".to_owned()],
    )];
    DataFileSpec {
        blake3: ContentHash::of(name.as_bytes()),
        name,
        format: if extras {
            FileFormat::Jsonl
        } else {
            FileFormat::Parquet
        },
        rows: 7,
        bytes: 70,
        provenance: if extras {
            Provenance::Replay
        } else {
            Provenance::Backfill
        },
        bounds: if extras {
            BTreeMap::from(bounds)
        } else {
            BTreeMap::new()
        },
        parents: if extras {
            vec!["raw/weibo/dt=2026-11-28".to_owned()]
        } else {
            Vec::new()
        },
    }
}

fn input(content: u8, batch: Option<u8>) -> InputSpec {
    InputSpec {
        content: ContentHash::of(&[content]),
        name: format!("第 {content} 批.jsonl"),
        bytes: 9,
        rows: 7,
        rejected: 2,
        rules: format!("r{}", content % 2),
        batch: batch.map(|b| format!("b{b}").parse().unwrap()),
        load: if content == 0 {
            LoadKind::Full
        } else {
            LoadKind::Incremental
        },
        parents: match content % 3 {
            1 => vec![ParentSpec {
                dataset: "clean/weibo.c".parse().unwrap(),
                dt: day(content),
                from: (content % 2 == 1).then(|| day(0)),
                revision: u32::from(content % 2),
                position: u64::from(content) + 1,
            }],
            _ => Vec::new(),
        },
    }
}

/// Moves every partition of a date that is in `from`, where `of` says so.
fn moved(
    state: &DatasetState,
    dt: BusinessDate,
    (from, to): (PartitionState, PartitionState),
    of: impl Fn(u32) -> bool,
) -> Vec<Action> {
    state
        .partitions_of(dt)
        .filter(|(k, p)| p.state == from && of(k.revision))
        .map(|(key, _)| Action::SetState {
            partition: *key,
            from,
            to,
        })
        .collect()
}

fn actions(state: &DatasetState, step: &Step) -> Vec<Action> {
    use PartitionState::{Active, Purged, Retired, Superseded, Switching};
    let number = state.position().number + 1;
    match step {
        Step::Append {
            day: d,
            version,
            content,
            batch,
            extras,
            ..
        } => {
            let partition = PartitionKey {
                dt: day(*d),
                schema_version: *version,
                revision: state.active_revision(day(*d)),
            };
            let file = file(format!("part-{number}.parquet"), *extras);
            let input = input(*content, *batch);
            vec![
                Action::AddFile { partition, file },
                Action::AddInput { partition, input },
            ]
        }
        Step::Reject(d) => vec![Action::AddRejects {
            dt: day(*d),
            file: RejectsFileSpec {
                name: format!("rejects-{number}.jsonl.zst"),
                records: 3,
                bytes: 30,
                blake3: ContentHash::of(b"rejects"),
            },
        }],
        Step::Seal(d) => vec![Action::Complete { dt: day(*d) }],
        Step::Reopen(d) => vec![Action::Open { dt: day(*d) }],
        Step::Correct {
            day: d,
            version,
            keep,
        } => correct(state, day(*d), *version, *keep),
        Step::Finish(d) => moved(state, day(*d), (Switching, Active), |_| true),
        Step::Show { day: d, revision } => {
            let mut all = moved(state, day(*d), (Active, Superseded), |_| true);
            all.extend(moved(state, day(*d), (Superseded, Switching), |r| {
                r == *revision
            }));
            all
        }
        Step::Gone { day: d, purge } if *purge => {
            moved(state, day(*d), (Retired, Purged), |_| true)
        }
        Step::Gone { day: d, .. } => moved(state, day(*d), (Superseded, Retired), |_| true),
        Step::Remove(d) => state
            .visible_of(day(*d))
            .filter_map(|(key, p)| Some((key, p.files.first_key_value()?.0)))
            .map(|(partition, name)| Action::RemoveFile {
                partition: *partition,
                name: name.clone(),
            })
            .collect(),
        Step::Abandon(a) => vec![Action::Abandon {
            attempt: format!("attempt-{a}").parse().unwrap(),
        }],
        Step::Erase(c) => vec![Action::EraseInput {
            content: ContentHash::of(&[*c]),
        }],
        Step::SameCommit(_) => Vec::new(),
    }
}

fn correct(state: &DatasetState, dt: BusinessDate, version: u32, keep: bool) -> Vec<Action> {
    let partition = PartitionKey {
        dt,
        schema_version: version,
        revision: state.next_revision(dt),
    };
    let (mut all, shown) = if keep {
        (Vec::new(), PartitionState::Superseded)
    } else {
        let move_out = (PartitionState::Active, PartitionState::Superseded);
        (
            moved(state, dt, move_out, |_| true),
            PartitionState::Switching,
        )
    };
    let number = state.position().number + 1;
    all.push(Action::AddPartition {
        partition,
        state: shown,
    });
    all.push(Action::AddFile {
        partition,
        file: file(format!("part-{number}.parquet"), keep),
    });
    all.push(Action::AddInput {
        partition,
        input: input(version.try_into().unwrap(), None),
    });
    all
}

/// The record of a step after `state`, with the bytes of its file.
fn record(lake: &LakeId, state: &DatasetState, step: &Step) -> (LoggedRecord, Vec<u8>) {
    let number = state.position().number + 1;
    let commit = match step {
        Step::SameCommit(n) => format!("commit-{n}"),
        _ => format!("commit-{number}"),
    };
    let attempt = match step {
        Step::Append { attempt, .. } => attempt.map(|a| format!("attempt-{a}").parse().unwrap()),
        _ => None,
    };
    let actions = actions(state, step);
    // Every third record carries the last of its actions for another call.
    let carries = number.is_multiple_of(3) && attempt.is_some() && !actions.is_empty();
    let joined = carries.then(|| JoinedAppend {
        attempt: format!("joined-{number}").parse().unwrap(),
        actions: 1,
    });
    let record = Record {
        format: RECORD_FORMAT,
        min_reader: RECORD_MIN_READER,
        lake: lake.clone(),
        dataset: state.dataset().clone(),
        number,
        previous: state.position().hash.clone(),
        commit: commit.parse().unwrap(),
        at: Instant::from_micros(1_700_000_000_000_000 + i64::try_from(number).unwrap()),
        operation: Operation::Append,
        by: by(),
        attempt,
        requires: Vec::new(),
        actions,
        joined: joined.into_iter().collect(),
    };
    let bytes = serde_json::to_vec_pretty(&record).unwrap();
    let hash = ContentHash::of(&bytes);
    (LoggedRecord { record, hash }, bytes)
}

/// A log of those steps that a fold takes.
fn log_of(lake: &LakeId, steps: &[Step]) -> Vec<(LoggedRecord, Vec<u8>)> {
    let mut state = DatasetState::empty(dataset());
    let mut log = Vec::new();
    for step in steps {
        let mut next = state.clone();
        let (logged, bytes) = record(lake, &state, step);
        if next.apply(&logged).is_ok() {
            state = next;
            log.push((logged, bytes));
        }
    }
    log
}

fn reread(bytes: Vec<u8>) -> DatasetState {
    let reader = TableReader::open(Bytes::from(bytes)).unwrap();
    match read_head(&reader.head().unwrap()).unwrap() {
        Head::Known(head) => decode(reader, head).unwrap(),
        Head::Newer(format) => panic!("format {format}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// LOG-10, for random logs, at every position.
    #[test]
    fn a_checkpoint_and_its_tail_are_the_fold_of_all(steps in steps()) {
        let lake: LakeId = "lake-1".parse().unwrap();
        let log = log_of(&lake, &steps);
        let mut folds = vec![DatasetState::empty(dataset())];
        for (logged, _) in &log {
            let mut next = folds.last().unwrap().clone();
            next.apply(logged).unwrap();
            folds.push(next);
        }
        for (at, fold) in folds.iter().enumerate() {
            let bytes = encode(&lake, fold).unwrap();
            prop_assert_eq!(&bytes, &encode(&lake, fold).unwrap());
            let mut read = reread(bytes);
            prop_assert_eq!(&read, fold, "at {}", at);
            for (logged, _) in &log[at..] {
                read.apply(logged).unwrap();
            }
            prop_assert_eq!(&read, folds.last().unwrap(), "from {}", at);
        }
    }

    /// The indexes answer as a walk over all inputs of a date does.
    #[test]
    fn inputs_are_found_as_by_a_walk(steps in steps()) {
        let lake: LakeId = "lake-1".parse().unwrap();
        let mut state = DatasetState::empty(dataset());
        for (logged, _) in log_of(&lake, &steps) {
            state.apply(&logged).unwrap();
        }
        for content in (0..6_u8).map(|c| ContentHash::of(&[c])) {
            for dt in (0..3).map(day) {
                let walked: Vec<_> = state
                    .visible_inputs(dt)
                    .filter(|(_, i)| i.spec.content == content)
                    .collect();
                let found: Vec<_> = state.visible_with(dt, &content).collect();
                prop_assert_eq!(&found, &walked);
                prop_assert_eq!(state.dates_with(&content).contains(&dt), !walked.is_empty());
            }
        }
        for batch in (0..3).map(|b| format!("b{b}").parse().unwrap()) {
            for dt in (0..3).map(day) {
                let walked: Vec<_> = state
                    .visible_inputs(dt)
                    .filter(|(_, i)| i.spec.batch.as_ref() == Some(&batch))
                    .collect();
                prop_assert_eq!(state.visible_labelled(dt, &batch).collect::<Vec<_>>(), walked);
            }
        }
    }
}

struct Fixture {
    dir: tempfile::TempDir,
    lake: Lake,
}

async fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(dir.path().join("lake")));
    let clock = Arc::new(Clock::manual(Instant::from_micros(1_700_000_000_000_000)));
    let lake = Lake::open_or_create(store, clock, "Asia/Shanghai")
        .await
        .unwrap();
    Fixture { dir, lake }
}

impl Fixture {
    fn local(&self, path: &StorePath) -> std::path::PathBuf {
        self.lake.store().local_path(path).unwrap()
    }

    async fn checkpoints(&self) -> Vec<u64> {
        let found = list_checkpoints(&self.lake, &dataset()).await.unwrap();
        found.iter().map(|c| c.number).collect()
    }

    async fn append(&self, state: &mut DatasetState, count: u64) {
        for _ in 0..count {
            let number = state.position().number + 1;
            let mut draft = Draft::new(&self.lake, Operation::Append, by()).unwrap();
            draft.actions = vec![Action::AddFile {
                partition: PartitionKey {
                    dt: day((number % 7).try_into().unwrap()),
                    schema_version: 1,
                    revision: 0,
                },
                file: file(format!("part-{}.parquet", draft.commit), false),
            }];
            let outcome = commit(&self.lake, state, &draft).await.unwrap();
            assert!(matches!(outcome, CommitOutcome::Committed(_)));
        }
    }

    /// What a load passed over, and that it was right all the same.
    async fn loads(&self) -> Vec<PassedOver> {
        let all = DatasetState::fold_records(&self.lake, &dataset())
            .await
            .unwrap();
        let loaded = load(&self.lake, &dataset()).await.unwrap();
        assert_eq!(loaded.state, all);
        loaded.passed_over
    }

    async fn put_named(&self, number: u64, bytes: &[u8]) {
        let hash = ContentHash::of(bytes);
        let path = checkpoint_path(&dataset(), number, hash.short());
        let put = self.lake.store().put_once(&path, bytes).await.unwrap();
        assert_eq!(put, PutOutcome::Created);
    }
}

#[tokio::test]
async fn commits_write_checkpoints_as_the_log_grows() {
    let f = fixture().await;
    let mut state = DatasetState::empty(dataset());
    f.append(&mut state, 63).await;
    assert!(f.checkpoints().await.is_empty());
    f.append(&mut state, 200).await;
    // The newest two, and the first of each doubling.
    assert_eq!(f.checkpoints().await, [256, 192, 128, 64]);
    assert_eq!(f.loads().await, [] as [PassedOver; 0]);
    for number in [0, 1, 63, 64, 65, 191, 192, 255, 256, 260, 263, 999] {
        let at = DatasetState::load_at(&f.lake, &dataset(), number)
            .await
            .unwrap();
        assert_eq!(at.position().number, number.min(263));
        assert_eq!(at.commits.len() as u64, number.min(263));
    }
    // Nothing of it is a record or a dataset.
    let datasets = crate::log::list_datasets(&f.lake).await.unwrap();
    assert_eq!(datasets, [dataset()]);
}

#[tokio::test]
async fn a_load_reads_the_checkpoint_and_the_tail_alone() {
    let f = fixture().await;
    let mut state = DatasetState::empty(dataset());
    f.append(&mut state, 70).await;
    // An older record that cannot be read does not matter to a load; the records alone need it.
    let old = f.local(&log_record_path(&dataset(), 5));
    let good = std::fs::read(&old).unwrap();
    std::fs::write(&old, b"{").unwrap();
    assert_eq!(load(&f.lake, &dataset()).await.unwrap().state, state);
    let error = DatasetState::fold_records(&f.lake, &dataset())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("0005.json"), "{error}");
    std::fs::write(&old, good).unwrap();
    // A hole is found by a load all the same, before the checkpoint and after it.
    for missing in [5, 66, 69] {
        let path = f.local(&log_record_path(&dataset(), missing));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let error = load(&f.lake, &dataset()).await.unwrap_err();
        assert!(error.to_string().contains("LOG-1"), "{error}");
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(f.loads().await, [] as [PassedOver; 0]);
}

#[tokio::test]
async fn wrong_checkpoints_are_passed_over() {
    let f = fixture().await;
    let mut state = DatasetState::empty(dataset());
    f.append(&mut state, 130).await;
    assert_eq!(f.checkpoints().await, [128, 64]);
    let newest = list_checkpoints(&f.lake, &dataset())
        .await
        .unwrap()
        .remove(0);
    let place = f.local(&newest.path);
    let good = std::fs::read(&place).unwrap();
    let passed = async |what: &str| {
        let over = f.loads().await;
        assert_eq!(over.len(), 1, "{what}: {over:?}");
        over[0].to_string()
    };
    // Any byte of it changed, and any part of it lost.
    for at in (0..good.len()).step_by(good.len() / 40) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(&place, bad).unwrap();
        passed("a changed byte").await;
        std::fs::write(&place, &good[..at]).unwrap();
        passed("a part").await;
    }
    std::fs::remove_file(&place).unwrap();
    assert_eq!(f.loads().await, [] as [PassedOver; 0]);
    // Heads that say something else, under a name that is right.
    let fold = DatasetState::load_at(&f.lake, &dataset(), 128)
        .await
        .unwrap();
    let head = CheckpointHead {
        format: CHECKPOINT_FORMAT,
        record_format: RECORD_FORMAT,
        lake: f.lake.id().clone(),
        dataset: dataset(),
        position: fold.position().clone(),
        last_at: fold.last_at(),
    };
    let elsewhere = LogPosition {
        number: 128,
        hash: Some(ContentHash::of(b"another past")),
    };
    let wrong = [
        (
            "another lake",
            CheckpointHead {
                lake: "other".parse().unwrap(),
                ..head.clone()
            },
        ),
        (
            "another dataset",
            CheckpointHead {
                dataset: "clean/x".parse().unwrap(),
                ..head.clone()
            },
        ),
        (
            "CAT-3",
            CheckpointHead {
                position: elsewhere,
                ..head.clone()
            },
        ),
        (
            "newer program",
            CheckpointHead {
                format: 2,
                ..head.clone()
            },
        ),
        (
            "newer program",
            CheckpointHead {
                record_format: RECORD_FORMAT + 1,
                ..head.clone()
            },
        ),
        (
            "nobody wrote",
            CheckpointHead {
                format: 0,
                ..head.clone()
            },
        ),
    ];
    for (what, head) in wrong {
        f.put_named(128, &encode_under(&head, &fold).unwrap()).await;
        let said = passed(what).await;
        assert!(said.contains(what), "{said}");
        std::fs::remove_dir_all(f.local(&checkpoint_dir(&dataset()))).unwrap();
    }
    // One that lies under the number of another record, and one beyond the log.
    f.put_named(127, &good).await;
    assert!(passed("number").await.contains("ends at record 128"));
    std::fs::remove_dir_all(f.local(&checkpoint_dir(&dataset()))).unwrap();
    f.put_named(128, &good).await;
    for number in [129, 130] {
        std::fs::remove_file(f.local(&log_record_path(&dataset(), number))).unwrap();
    }
    assert_eq!(f.loads().await, [] as [PassedOver; 0]);
    std::fs::remove_file(f.local(&log_record_path(&dataset(), 128))).unwrap();
    assert!(
        passed("beyond the log")
            .await
            .contains("ends at record 127")
    );
    // Not Parquet at all.
    std::fs::remove_dir_all(f.local(&checkpoint_dir(&dataset()))).unwrap();
    f.put_named(100, b"PAR1 or not").await;
    assert!(passed("no table").await.contains("no Parquet"));
}

#[tokio::test]
async fn a_commit_stands_without_its_checkpoint() {
    let f = fixture().await;
    let mut state = DatasetState::empty(dataset());
    // A file where the folder should be: no checkpoint can be written.
    std::fs::write(f.dir.path().join("lake/_lake/checkpoint"), b"in the way").unwrap();
    f.append(&mut state, 66).await;
    assert_eq!(
        DatasetState::fold_records(&f.lake, &dataset())
            .await
            .unwrap(),
        state
    );
}

#[tokio::test]
async fn writers_at_once_leave_right_checkpoints() {
    let f = fixture().await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (dir, lake) = (f.dir.path().to_owned(), f.lake.clone());
        tasks.push(tokio::spawn(async move {
            assert!(dir.exists());
            let mut state = DatasetState::empty(dataset());
            for _ in 0..50 {
                let mut draft = Draft::new(&lake, Operation::Append, by()).unwrap();
                draft.actions = vec![Action::Abandon {
                    attempt: draft.commit.as_str().parse().unwrap(),
                }];
                let outcome = commit(&lake, &mut state, &draft).await.unwrap();
                assert!(matches!(outcome, CommitOutcome::Committed(_)));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(f.checkpoints().await, [192, 128, 64]);
    assert_eq!(f.loads().await, [] as [PassedOver; 0]);
    assert_eq!(
        load(&f.lake, &dataset()).await.unwrap().state.commits.len(),
        200
    );
}

#[test]
fn a_checkpoint_is_due_when_the_tail_is_long() {
    for (number, newest, due) in [
        (63, 0, false),
        (64, 0, true),
        (127, 64, false),
        (128, 64, true),
        (640, 512, true),
        (1087, 1024, false),
        (9215, 8192, false),
        (9216, 8192, true),
    ] {
        assert_eq!(is_due(number, newest), due, "{number} after {newest}");
    }
}

#[test]
fn few_checkpoints_serve_every_position() {
    let path_of = |number| checkpoint_path(&dataset(), number, "0123456789abcdef");
    let mut kept: Vec<Checkpoint> = Vec::new();
    for number in (TURN..200_000).step_by(64) {
        let newest = kept.first().map_or(0, |c| c.number);
        if !is_due(number, newest) {
            continue;
        }
        let written = path_of(number);
        let gone = outlived(kept.clone(), &written, number);
        kept.retain(|c| !gone.contains(&c.path));
        kept.insert(
            0,
            Checkpoint {
                path: written,
                number,
                short_hash: String::new(),
            },
        );
        let numbers: Vec<u64> = kept.iter().map(|c| c.number).collect();
        let total: u64 = numbers.iter().sum();
        assert!(total <= 5 * number, "{numbers:?}");
        for at in (TURN..number).step_by(777) {
            let serving = numbers.iter().find(|n| **n <= at).unwrap();
            assert!(serving * 5 >= at * 2, "{at} from {numbers:?}");
        }
    }
}
