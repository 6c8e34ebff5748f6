//! Runs that go: as a whole family, and for nobody in part.

use super::backend::*;
use crate::error::ErrorKind;
use crate::queue::db::values;
use crate::queue::{
    ClosingRules, KeyScope, NewRequest, Queue, RequestFilter, RequestState, RunRecord,
};

/// A closed run of so many requests that died.
async fn dead_run(queue: &Queue, name: &str, requests: u32) -> RunRecord {
    let run = open_run(queue, name, &pages(0..requests)).await;
    bury(queue, &run).await
}

/// Its requests die, and it closes.
async fn bury(queue: &Queue, run: &RunRecord) -> RunRecord {
    let worker = queue.join("test").await.unwrap();
    loop {
        let claims = claim(queue, &worker, &any(run, 500)).await;
        if claims.is_empty() {
            break;
        }
        let ends: Vec<_> = claims
            .iter()
            .map(|c| failed(c, "http_403", false))
            .collect();
        assert_eq!(finish(queue, &worker, run, &ends).await, ends.len());
    }
    let closed = queue.close_run(run.id, &ClosingRules::default()).await;
    closed.unwrap().0
}

pub(super) async fn a_closed_run_goes_and_the_others_stay(backend: impl Backend) {
    let queue = backend.open().await;
    let keep = open_run(&queue, "keep", &pages(0..3)).await;
    let gone = open_run(&queue, "gone", &pages(0..200)).await;
    let worker = queue.join("test").await.unwrap();
    let error = queue.prune_family(&[gone.id]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    assert_eq!(drain(&queue, &worker, &gone).await, 200);
    let rules = ClosingRules::default();
    let (_, closing) = queue.close_run(gone.id, &rules).await.unwrap();
    assert!(closing.pass);
    assert_eq!(queue.prune_family(&[gone.id]).await.unwrap(), 200);
    // Where another call was faster there is nothing left to do.
    let error = queue.prune_family(&[gone.id]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(queue.end_prunes().await.unwrap(), 0);
    assert!(queue.find_run(&run_key("gone")).await.unwrap().is_none());
    let left = RequestFilter {
        run_id: keep.id,
        state: Some(RequestState::Pending),
        limit: 9,
        ..RequestFilter::default()
    };
    assert_eq!(queue.list_requests(&left).await.unwrap().len(), 3);
    let rows = "SELECT count(*) FROM queue_request WHERE run_id <> ?";
    assert_eq!(number(&queue, rows, values![keep.id]).await, 0);
    let events = queue.list_events(0, 100).await.unwrap();
    let told = events.iter().filter(|e| e.kind == "run_pruned");
    let told: Vec<_> = told.map(|e| (e.run_id, e.detail.to_string())).collect();
    let key = serde_json::to_value(run_key("gone")).unwrap();
    assert_eq!(told, [(None, key.to_string())]);
}

/// As a call leaves it that dies between two of its transactions.
async fn die_while_pruning(queue: &Queue, run: &RunRecord, rows: i64) {
    let sql = "UPDATE queue_run SET state = 4 WHERE id = ?";
    assert_eq!(tamper(queue, sql, values![run.id]).await, 1);
    let sql = "SELECT min(id) FROM queue_request WHERE run_id = ?";
    let first = number(queue, sql, values![run.id]).await;
    for table in ["queue_request", "queue_request_state"] {
        let sql = format!("DELETE FROM {table} WHERE run_id = ? AND id < ?");
        tamper(queue, &sql, values![run.id, first + rows]).await;
    }
}

pub(super) async fn of_a_prune_that_died_nobody_sees_a_part(backend: impl Backend) {
    let queue = backend.open().await;
    let run = dead_run(&queue, "day", 5).await;
    die_while_pruning(&queue, &run, 2).await;
    assert!(queue.find_run(&run.key).await.unwrap().is_none());
    assert!(queue.list_runs(None, 9).await.unwrap().is_empty());
    let of_date = queue.list_runs_of(&run.key.source, run.key.date);
    assert!(of_date.await.unwrap().is_empty());
    let first = queue.first_date(&run.key.source).await.unwrap();
    assert_eq!(first, None);
    // Neither tried again, nor judged, nor accepted, nor worked on.
    let key = run_key("day-2");
    let rules = ClosingRules::default();
    let worker = queue.join("test").await.unwrap();
    let errors = [
        queue.retry_run(run.id, &key, None).await.unwrap_err(),
        queue.close_run(run.id, &rules).await.unwrap_err(),
        queue.accept_run(run.id, None, "well").await.unwrap_err(),
        queue.lose_responses(run.id, &[]).await.unwrap_err(),
        queue.list_family(run.id).await.unwrap_err(),
        queue.prune_family(&[run.id]).await.unwrap_err(),
        queue.claim(&worker, &any(&run, 9)).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("no run of number"), "{error}");
    }
    // The next call ends it.
    assert_eq!(queue.end_prunes().await.unwrap(), 3);
    let left = "SELECT count(*) FROM queue_run";
    assert_eq!(number(&queue, left, &[]).await, 0);
}

pub(super) async fn a_run_is_made_anew_where_one_was_half_pruned(backend: impl Backend) {
    let queue = backend.open().await;
    let daily = |n: u32| NewRequest {
        scope: KeyScope::Date,
        ..get("detail", n)
    };
    let seeds: Vec<_> = (0..5).map(daily).collect();
    let gone = open_run(&queue, "day", &seeds).await;
    bury(&queue, &gone).await;
    die_while_pruning(&queue, &gone, 2).await;
    // The same name and the same pages: none of those that are left counts as known.
    let run = open_run(&queue, "day", &seeds).await;
    assert!(run.id > gone.id);
    assert_eq!((run.seeds.inserted, run.seeds.duplicate), (5, 0));
    let rows = "SELECT count(*) FROM queue_request WHERE run_id <> ?";
    assert_eq!(number(&queue, rows, values![run.id]).await, 0);
}

pub(super) async fn a_family_goes_as_a_whole(backend: impl Backend) {
    let queue = backend.open().await;
    let run = dead_run(&queue, "day", 4).await;
    let key = run_key("day-2");
    let retry = queue.retry_run(run.id, &key, None).await.unwrap();
    for (runs, kind) in [
        (vec![run.id], ErrorKind::Conflict),
        (vec![run.id, retry.id], ErrorKind::PreconditionFailed),
    ] {
        let refused = queue.prune_family(&runs).await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
    }
    let retry = bury(&queue, &retry).await;
    let refused = queue.prune_family(&[retry.id]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let family = queue.list_family(retry.id).await.unwrap();
    let ids: Vec<i64> = family.iter().map(|run| run.id).collect();
    assert_eq!(ids, [run.id, retry.id]);
    assert_eq!(queue.prune_family(&ids).await.unwrap(), 8);
    assert_eq!(
        number(&queue, "SELECT count(*) FROM queue_run", &[]).await,
        0
    );
}

pub(super) async fn a_prune_and_a_retry_at_once_leave_no_orphan(backend: impl Backend) {
    let queue = backend.open().await;
    let mut outcomes = [0, 0];
    for n in 0..24 {
        let name = format!("day{n}");
        let run = dead_run(&queue, &name, 2).await;
        let retry_key = run_key(&format!("{name}-2"));
        let (wait, ids) = (n % 6, [run.id]);
        let prune = async {
            tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
            queue.prune_family(&ids).await
        };
        match tokio::join!(prune, queue.retry_run(run.id, &retry_key, None)) {
            (Ok(2), Err(e)) => {
                assert!(
                    [ErrorKind::Conflict, ErrorKind::NotFound].contains(&e.kind()),
                    "{e}"
                );
                assert!(queue.find_run(&retry_key).await.unwrap().is_none());
                outcomes[0] += 1;
            }
            (Err(e), Ok(retry)) => {
                assert!(
                    [ErrorKind::Conflict, ErrorKind::PreconditionFailed].contains(&e.kind()),
                    "{e}"
                );
                assert_eq!(retry.seeds.inserted, 2);
                assert_eq!(queue.first_of(retry.id).await.unwrap().id, run.id);
                outcomes[1] += 1;
            }
            (pruned, retried) => panic!("{pruned:?} and {retried:?}"),
        }
    }
    assert_eq!(outcomes.iter().sum::<u32>(), 24, "{outcomes:?}");
}
