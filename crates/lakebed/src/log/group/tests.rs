//! Appends that meet, and what keeps them apart.

use super::*;
use crate::log::{CommitOutcome, DatasetState, commit, seal};
use crate::spec::{
    By, DataFileSpec, FileFormat, InputSpec, LoadKind, Provenance, RECORD_FORMAT, Requirement,
};
use crate::store::LocalStore;
use crate::time::{Clock, Instant};

struct Fixture {
    _dir: tempfile::TempDir,
    lake: Lake,
}

async fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(dir.path().join("lake")));
    let clock = Arc::new(Clock::manual(Instant::from_micros(1_700_000_000_000_000)));
    let lake = Lake::open_or_create(store, clock, "Asia/Shanghai").await;
    Fixture {
        _dir: dir,
        lake: lake.unwrap(),
    }
}

fn dataset() -> DatasetRef {
    "clean/weibo".parse().unwrap()
}

fn dt() -> BusinessDate {
    "2026-11-30".parse().unwrap()
}

fn by(run: Option<&str>) -> By {
    By {
        program: "test".into(),
        user: None,
        run: run.map(|r| r.parse().unwrap()),
        note: None,
    }
}

/// An append of one file from one input, as `ingest` drafts it.
fn draft(lake: &Lake, name: &str, content: &str, batch: Option<&str>) -> Draft {
    let mut draft = Draft::new(lake, Operation::Append, by(None)).unwrap();
    let attempt: AttemptId = format!("attempt-{name}").parse().unwrap();
    let partition = PartitionKey {
        dt: dt(),
        schema_version: 1,
        revision: 0,
    };
    let content = ContentHash::of(content.as_bytes());
    let batch: Option<BatchLabel> = batch.map(|b| b.parse().unwrap());
    draft.attempt = Some(attempt.clone());
    draft.requires = vec![
        Requirement::AttemptOpen { attempt },
        Requirement::PartitionActive { partition },
        Requirement::DateOpen { dt: dt() },
        Requirement::InputAbsent {
            dt: dt(),
            content: content.clone(),
            batch: batch.clone(),
        },
    ];
    draft.requires.extend(
        batch
            .clone()
            .map(|batch| Requirement::BatchAbsent { dt: dt(), batch }),
    );
    let file = DataFileSpec {
        name: format!("part-00000-{name}.parquet"),
        format: FileFormat::Parquet,
        rows: 1,
        bytes: 1,
        blake3: ContentHash::of(name.as_bytes()),
        provenance: Provenance::Live,
        bounds: Default::default(),
        parents: Vec::new(),
    };
    let input = InputSpec {
        content,
        name: format!("{name}.jsonl"),
        bytes: 1,
        rows: 1,
        rejected: 0,
        rules: "r1".into(),
        batch,
        load: LoadKind::Incremental,
        parents: Vec::new(),
    };
    draft.actions = vec![
        Action::AddFile { partition, file },
        Action::AddInput { partition, input },
    ];
    draft
}

type Answer = (CommitOutcome, DatasetState);

/// Lets the drafts meet: all of them wait before the first one has its turn, in this order.
async fn meet(lake: &Lake, drafts: Vec<Draft>) -> Vec<Answer> {
    let turns = Turns::of(lake, &dataset());
    let held = turns.turn.lock().await;
    let mut tasks = Vec::new();
    for (n, draft) in drafts.into_iter().enumerate() {
        let lake = lake.clone();
        let joins = may_join(&draft);
        tasks.push(tokio::spawn(async move {
            let mut state = DatasetState::load(&lake, &dataset()).await.unwrap();
            let outcome = commit(&lake, &mut state, &draft).await.unwrap();
            (outcome, state)
        }));
        while joins && turns.waiting().len() <= n {
            tokio::task::yield_now().await;
        }
    }
    drop(held);
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

fn committed(answer: &Answer) -> &LoggedRecord {
    match &answer.0 {
        CommitOutcome::Committed(logged) => logged,
        other => panic!("{other:?}"),
    }
}

fn refused(answer: &Answer) -> &Requirement {
    match &answer.0 {
        CommitOutcome::Conflict(unmet) => &unmet.requirement,
        other => panic!("{other:?}"),
    }
}

fn numbers(answers: &[Answer]) -> Vec<u64> {
    answers.iter().map(|a| committed(a).record.number).collect()
}

#[tokio::test]
async fn appends_that_wait_share_one_record() {
    let f = fixture().await;
    let names = ["a", "b", "c", "d", "e"];
    let drafts: Vec<Draft> = names.iter().map(|n| draft(&f.lake, n, n, None)).collect();
    let answers = meet(&f.lake, drafts.clone()).await;
    assert_eq!(numbers(&answers), [1; 5]);
    let record = &committed(&answers[0]).record;
    assert_eq!((record.joined.len(), record.actions.len()), (4, 10));
    assert_eq!((record.format, record.min_reader), (RECORD_FORMAT, 3));
    // Each caller has the fold up to there, and each file its own attempt.
    let state = DatasetState::load(&f.lake, &dataset()).await.unwrap();
    for (_, own) in &answers {
        assert_eq!(*own, state);
    }
    let files: Vec<_> = state
        .visible_of(dt())
        .flat_map(|(_, p)| p.files.values())
        .collect();
    for (name, file) in names.iter().zip(&files) {
        assert_eq!(
            file.attempt.as_ref().unwrap().as_str(),
            format!("attempt-{name}")
        );
    }
    for draft in &drafts {
        assert_eq!(
            state.committed_attempt(draft.attempt.as_ref().unwrap()),
            Some(1)
        );
        // A call that lost its answer is told once more (LOG-6).
        let mut state = DatasetState::empty(dataset());
        let again = commit(&f.lake, &mut state, draft).await.unwrap();
        let CommitOutcome::AlreadyThere(logged) = again else {
            panic!("{again:?}")
        };
        assert_eq!(logged.record.number, 1);
    }
}

#[tokio::test]
async fn what_meets_in_a_record_does_not_touch() {
    let f = fixture().await;
    let lake = &f.lake;
    let mut other_run = draft(lake, "run", "run", None);
    other_run.by = by(Some("0900"));
    let mut sealing = draft(lake, "seal", "seal", None);
    sealing.actions.push(Action::Complete { dt: dt() });
    let answers = meet(
        lake,
        vec![
            draft(lake, "a", "a", None),
            // The same content at once: the second is told that it is there.
            draft(lake, "b", "a", None),
            // The same content under a label of its own is another observation.
            draft(lake, "c", "a", Some("s1")),
            // A label stands for one set of inputs.
            draft(lake, "d", "d", Some("s2")),
            draft(lake, "f", "f", Some("s2")),
            draft(lake, "e", "e", None),
            other_run,
            sealing,
        ],
    )
    .await;
    assert!(matches!(
        refused(&answers[1]),
        Requirement::InputAbsent { .. }
    ));
    assert!(matches!(
        refused(&answers[4]),
        Requirement::BatchAbsent { .. }
    ));
    let together = committed(&answers[0]).record.number;
    for along in [3, 5] {
        assert_eq!(committed(&answers[along]).record.number, together);
    }
    for alone in [2, 6, 7] {
        let record = &committed(&answers[alone]).record;
        assert_ne!(record.number, together);
        assert!(record.joined.is_empty());
    }
    let state = DatasetState::load(lake, &dataset()).await.unwrap();
    let files = state
        .visible_of(dt())
        .map(|(_, p)| p.files.len())
        .sum::<usize>();
    assert_eq!(files, 6);
    assert!(state.is_sealed(dt()));
}

/// Two full loads in one record would both be the last one.
#[tokio::test]
async fn full_loads_have_an_order() {
    let f = fixture().await;
    let full = |name: &str| {
        let mut draft = draft(&f.lake, name, name, None);
        for action in &mut draft.actions {
            if let Action::AddInput { input, .. } = action {
                input.load = LoadKind::Full;
            }
        }
        draft
    };
    let answers = meet(&f.lake, vec![full("a"), full("b")]).await;
    assert_ne!(
        committed(&answers[0]).record.number,
        committed(&answers[1]).record.number
    );
}

#[tokio::test]
async fn a_requirement_that_fails_is_its_own_callers() {
    let f = fixture().await;
    let mut state = DatasetState::empty(dataset());
    let given_up: AttemptId = "attempt-b".parse().unwrap();
    let done = crate::log::complete::abandon(&f.lake, &mut state, &given_up, by(None)).await;
    assert!(matches!(
        done.unwrap(),
        crate::log::SealOutcome::Done { .. }
    ));
    let drafts = ["a", "b", "c"].map(|n| draft(&f.lake, n, n, None));
    let answers = meet(&f.lake, drafts.to_vec()).await;
    assert_eq!(committed(&answers[0]), committed(&answers[2]));
    assert!(matches!(
        refused(&answers[1]),
        Requirement::AttemptOpen { .. }
    ));
    // All of a date that was sealed are told so.
    let sealed = seal(&f.lake, &mut state, dt(), by(None)).await.unwrap();
    assert!(matches!(sealed, crate::log::SealOutcome::Done { .. }));
    let drafts = ["d", "e"].map(|n| draft(&f.lake, n, n, None));
    for answer in meet(&f.lake, drafts.to_vec()).await {
        assert!(matches!(refused(&answer), Requirement::DateOpen { .. }));
    }
}

#[tokio::test]
async fn who_went_away_is_not_carried() {
    let f = fixture().await;
    let turns = Turns::of(&f.lake, &dataset());
    let held = turns.turn.lock().await;
    let waiting = |name: &str| {
        let (lake, draft) = (f.lake.clone(), draft(&f.lake, name, name, None));
        tokio::spawn(async move {
            let mut state = DatasetState::empty(dataset());
            commit(&lake, &mut state, &draft).await.unwrap()
        })
    };
    let (first, gone) = (waiting("a"), waiting("gone"));
    while turns.waiting().len() < 2 {
        tokio::task::yield_now().await;
    }
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    drop(held);
    let CommitOutcome::Committed(logged) = first.await.unwrap() else {
        panic!()
    };
    assert!(logged.record.joined.is_empty());
    let state = DatasetState::load(&f.lake, &dataset()).await.unwrap();
    assert_eq!(
        state.committed_attempt(&"attempt-gone".parse().unwrap()),
        None
    );
}

#[tokio::test]
async fn a_record_is_not_carried_without_end() {
    let f = fixture().await;
    let names: Vec<String> = (0..MAX_JOINED + 3).map(|n| format!("n{n}")).collect();
    let drafts = names.iter().map(|n| draft(&f.lake, n, n, None)).collect();
    let answers = meet(&f.lake, drafts).await;
    let first = numbers(&answers).iter().filter(|n| **n == 1).count();
    assert_eq!(first, MAX_JOINED + 1);
    assert!(numbers(&answers).iter().all(|n| *n <= 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_calls_of_one_process_lose_nothing() {
    let f = fixture().await;
    let mut tasks = Vec::new();
    for writer in 0..8 {
        let lake = f.lake.clone();
        tasks.push(tokio::spawn(async move {
            let mut state = DatasetState::empty(dataset());
            for n in 0..25 {
                let name = format!("w{writer}-{n}");
                let outcome = commit(&lake, &mut state, &draft(&lake, &name, &name, None)).await;
                assert!(matches!(outcome.unwrap(), CommitOutcome::Committed(_)));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let state = DatasetState::load(&f.lake, &dataset()).await.unwrap();
    let files = state
        .visible_of(dt())
        .map(|(_, p)| p.files.len())
        .sum::<usize>();
    assert_eq!(files, 200);
    assert!(state.position().number < 200, "no two appends met");
}

#[tokio::test]
async fn a_record_that_counts_wrongly_stops_the_fold() {
    let f = fixture().await;
    let answers = meet(
        &f.lake,
        ["a", "b"].map(|n| draft(&f.lake, n, n, None)).to_vec(),
    )
    .await;
    let mut logged = committed(&answers[0]).clone();
    logged.record.joined[0].actions = 5;
    let e = DatasetState::empty(dataset()).apply(&logged).unwrap_err();
    assert!(e.message().contains("5 of its 4 actions joined it"), "{e}");
}
