//! The books: what was announced is what came, and every request ended.

use super::backend::*;
use crate::queue::db::values;
use crate::queue::{
    BreachKind, ClosingRules, DoneSpec, Expectation, Finish, LinkSeen, NewRequest, Queue,
    RunOptions, RunRecord, RunState, StageLink,
};
use crate::spec::RunKey;

fn kinds(closing: &crate::queue::ClosingRecord) -> Vec<BreachKind> {
    closing.breaches.iter().map(|b| b.kind).collect()
}

async fn closing(
    queue: &Queue,
    run: &RunRecord,
    rules: &ClosingRules,
) -> (RunState, Vec<BreachKind>) {
    let (run, closing) = queue.close_run(run.id, rules).await.unwrap();
    assert_eq!(closing.pass, closing.breaches.is_empty());
    (run.state, kinds(&closing))
}

/// Closes the run, which ends for these reasons alone.
async fn closes(queue: &Queue, run: &RunRecord, rules: &ClosingRules, why: &[BreachKind]) {
    let closed = closing(queue, run, rules).await;
    assert_eq!(closed, (RunState::Closed, why.to_vec()));
}

pub(super) async fn follow_ups_enter_with_their_page(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..2)).await;
    let worker = queue.join("test").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 2)).await;
    let children =
        |range: std::ops::Range<u32>| range.map(|n| get("detail", n)).collect::<Vec<_>>();
    // The two pages share links; the second has one outside of the source as well.
    let first = DoneSpec {
        children: children(0..6),
        ..DoneSpec::default()
    };
    let second = DoneSpec {
        children: children(4..10),
        announced: 7,
        ..DoneSpec::default()
    };
    let less = DoneSpec {
        announced: 1,
        ..DoneSpec {
            children: children(0..3),
            ..DoneSpec::default()
        }
    };
    let mut wrong = done_with(&taken[0], less.clone());
    wrong.end = crate::queue::FinishKind::Done(less);
    assert!(queue.finish(&worker, run.id, &[wrong]).await.is_err());
    queue.seal_run(run.id).await.unwrap();
    let ends = [done_with(&taken[0], first), done_with(&taken[1], second)];
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 2);
    let details = claim(&queue, &worker, &any(&run, 50)).await;
    assert_eq!(details.len(), 10);
    assert!(details.iter().all(|c| c.stage.as_str() == "detail"));
    // A finish that is lost brings no follow-ups.
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 0);
    let ends: Vec<Finish> = details.iter().map(done).collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 10);
    let books = queue.read_books(run.id).await.unwrap();
    let all = books.children;
    assert_eq!(
        (all.announced, all.inserted, all.duplicate, all.out_of_scope),
        (13, 10, 2, 1)
    );
    assert_eq!((books.seed_rows, books.child_rows), (2, 10));
    let progress = queue.list_progress(run.id).await.unwrap();
    let of = |stage: &str| {
        progress
            .iter()
            .find(|p| p.stage == stage)
            .map(|p| (p.enqueued, p.done))
            .unwrap()
    };
    assert_eq!((of("list"), of("detail")), ((2, 2), (10, 10)));
    assert_eq!(
        closing(&queue, &run, &ClosingRules::default()).await,
        (RunState::Closed, vec![])
    );
}

pub(super) async fn a_closing_waits_for_every_request(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..4)).await;
    let worker = queue.join("test").await.unwrap();
    let rules = ClosingRules::default();
    let taken = claim(&queue, &worker, &any(&run, 3)).await;
    assert_eq!(
        finish(
            &queue,
            &worker,
            &run,
            &[failed(&taken[0], "timeout", true), done(&taken[1])]
        )
        .await,
        2
    );
    let (left, record) = queue.close_run(run.id, &rules).await.unwrap();
    assert_eq!(
        (left.state, kinds(&record)),
        (RunState::Open, vec![BreachKind::Unfinished])
    );
    let message = &record.breaches[0];
    assert!(
        message
            .message
            .contains("3 requests have not ended: 1 pending, 1 in_flight, 1 failed"),
        "{message:?}"
    );
    assert!(
        message.samples.iter().any(|s| s.contains("(timeout)")),
        "{message:?}"
    );
    // Nothing was changed: the crawl goes on and closes green.
    tamper(
        &queue,
        "UPDATE queue_request_state SET not_before = 0 WHERE state = 3",
        &[],
    )
    .await;
    assert_eq!(finish(&queue, &worker, &run, &[done(&taken[2])]).await, 1);
    assert_eq!(drain(&queue, &worker, &run).await, 2);
    assert_eq!(
        closing(&queue, &run, &rules).await,
        (RunState::Closed, vec![])
    );
}

pub(super) async fn a_lost_row_is_noticed(backend: impl Backend) {
    let queue = backend.open().await;
    for (name, sql) in [
        (
            "row",
            "DELETE FROM queue_request_state WHERE run_id = ? AND id = ?",
        ),
        (
            "state",
            "UPDATE queue_request_state SET state = 2 WHERE run_id = ? AND id = ?",
        ),
    ] {
        let run = open_run(&queue, name, &pages(0..5)).await;
        let worker = queue.join("test").await.unwrap();
        let victim = claim(&queue, &worker, &any(&run, 1)).await.remove(0);
        assert_eq!(tamper(&queue, sql, values![run.id, victim.id]).await, 1);
        assert_eq!(finish(&queue, &worker, &run, &[done(&victim)]).await, 0);
        assert_eq!(drain(&queue, &worker, &run).await, 4);
        let rules = ClosingRules {
            need_captures: false,
            ..ClosingRules::default()
        };
        let (state, found) = closing(&queue, &run, &rules).await;
        assert_eq!(state, RunState::Closed);
        assert!(
            !found.is_empty() && found.iter().all(|k| *k == BreachKind::Unbalanced),
            "{found:?}"
        );
    }
}

pub(super) async fn silent_endings_are_red(backend: impl Backend) {
    let queue = backend.open().await;
    let rules = ClosingRules::default();
    let worker = queue.join("test").await.unwrap();
    // No seed at all.
    let run = open_run(&queue, "zero", &[]).await;
    assert_eq!(
        closing(&queue, &run, &rules).await,
        (RunState::Closed, vec![BreachKind::ZeroSeeds])
    );
    // The planner raised: the run never opened, and it cannot be closed as if it had.
    let half = queue
        .create_run(&run_key("half"), &RunOptions::default())
        .await
        .unwrap();
    let _stats = queue.add_seeds(half.id, &pages(0..3), 0).await.unwrap();
    assert!(queue.close_run(half.id, &rules).await.is_err());
    // Everything is forbidden.
    let run = open_run(&queue, "forbidden", &pages(0..30)).await;
    let taken = claim(&queue, &worker, &any(&run, 30)).await;
    let ends: Vec<Finish> = taken.iter().map(|c| failed(c, "http_403", false)).collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 30);
    let (state, found) = closing(&queue, &run, &rules).await;
    assert_eq!(
        (state, &found[..1]),
        (RunState::Closed, &[BreachKind::AllDead][..])
    );
}

pub(super) async fn too_few_and_too_many_dead_are_red(backend: impl Backend) {
    let queue = backend.open().await;
    let rules = ClosingRules::default();
    let worker = queue.join("test").await.unwrap();
    // A few are dead.
    let run = open_run(&queue, "some", &pages(0..20)).await;
    let taken = claim(&queue, &worker, &any(&run, 20)).await;
    let end = |(i, c)| {
        if i < 2 {
            failed(c, "http_500", false)
        } else {
            done(c)
        }
    };
    let ends: Vec<Finish> = taken.iter().enumerate().map(end).collect();
    assert_eq!(finish(&queue, &worker, &run, &ends).await, 20);
    let books = queue.read_books(run.id).await.unwrap();
    let lenient = ClosingRules {
        max_dead_share: 0.1,
        ..rules.clone()
    };
    assert_eq!(lenient.judge(&books), vec![]);
    assert_eq!(
        closing(&queue, &run, &rules).await,
        (RunState::Closed, vec![BreachKind::TooManyDead])
    );
    // Fewer than the source must have; a success without bytes; a stop.
    let run = open_run(&queue, "few", &pages(0..2)).await;
    let taken = claim(&queue, &worker, &any(&run, 2)).await;
    let bare = Finish {
        id: taken[0].id,
        attempt: 1,
        end: crate::queue::FinishKind::Done(DoneSpec::default()),
    };
    assert_eq!(
        finish(&queue, &worker, &run, &[bare, done(&taken[1])]).await,
        2
    );
    queue
        .stop_run(run.id, "half of the last 100 failed")
        .await
        .unwrap();
    let strict = ClosingRules {
        min_requests: 3,
        ..rules
    };
    let wanted = vec![
        BreachKind::Stopped,
        BreachKind::TooFew,
        BreachKind::MissingCapture,
    ];
    assert_eq!(
        closing(&queue, &run, &strict).await,
        (RunState::Closed, wanted)
    );
}

pub(super) async fn a_late_finish_is_refused_and_counted(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..1)).await;
    let late = queue.join("late").await.unwrap();
    let taken = claim(&queue, &late, &any(&run, 1)).await;
    tamper(&queue, "UPDATE queue_worker SET heartbeat_at = 0", &[]).await;
    assert_eq!(queue.reap().await.unwrap().failed, 1);
    tamper(&queue, "UPDATE queue_request_state SET not_before = 0", &[]).await;
    let worker = queue.join("test").await.unwrap();
    assert_eq!(drain(&queue, &worker, &run).await, 1);
    assert_eq!(
        closing(&queue, &run, &ClosingRules::default()).await,
        (RunState::Closed, vec![])
    );
    let with_child = DoneSpec {
        children: pages(5..6),
        ..DoneSpec::default()
    };
    let outcome = queue
        .finish(&late, run.id, &[done_with(&taken[0], with_child)])
        .await;
    // The lane of the follow-up is known already; whether or not, nothing enters a closed run.
    assert!(outcome.is_err() || outcome.unwrap() == [crate::queue::FinishOutcome::Lost]);
    assert_eq!(finish(&queue, &late, &run, &[done(&taken[0])]).await, 0);
    let closed = queue.get_run(run.id).await.unwrap();
    assert!(closed.late_finishes >= 1);
    assert_eq!(
        number(&queue, "SELECT count(*) FROM queue_request", &[]).await,
        1
    );
}

pub(super) async fn groups_that_are_short_are_red(backend: impl Backend) {
    let queue = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..1)).await;
    let worker = queue.join("test").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 1)).await;
    // Page 1 of a list says that there are 4 items, in Chinese; three come, one of them twice.
    let item = |n: u32| NewRequest {
        group: Some("台北 整層".into()),
        ..get("detail", n)
    };
    let expects = vec![Expectation {
        group: "台北 整層".into(),
        expected: 4,
    }];
    let spec = DoneSpec {
        children: vec![item(1), item(2), item(3), item(1)],
        expects,
        ..DoneSpec::default()
    };
    assert_eq!(
        finish(&queue, &worker, &run, &[done_with(&taken[0], spec)]).await,
        1
    );
    assert_eq!(drain(&queue, &worker, &run).await, 3);
    let books = queue.read_books(run.id).await.unwrap();
    assert_eq!(books.short_groups, [("台北 整層".to_owned(), 4, 3)]);
    assert_eq!(
        closing(&queue, &run, &ClosingRules::default()).await,
        (RunState::Closed, vec![BreachKind::ShortGroup])
    );
}

/// What pages say of their rules counts over the rows of the date; a pager is judged by the last good run of the name.
pub(super) async fn rules_that_nothing_comes_of_are_red(backend: impl Backend) {
    let queue = backend.open().await;
    let worker = queue.join("test").await.unwrap();
    let link = |rule: &str, to: &str| StageLink {
        rule: rule.to_owned(),
        from: Some("list".to_owned()),
        to: to.to_owned(),
    };
    let rules = ClosingRules {
        links: vec![link("to detail", "detail"), link("to next", "list")],
        ..ClosingRules::default()
    };
    let seen = |rule: &str, is_hit| LinkSeen {
        rule: rule.to_owned(),
        is_hit,
    };
    // A page for each pair: whether it has details, whether it has a next one.
    let crawl = async |date: &str, name: &str, pages_of: &[(bool, bool)]| {
        let key = RunKey {
            date: date.parse().unwrap(),
            ..run_key(name)
        };
        let run = queue
            .create_run(&key, &RunOptions::default())
            .await
            .unwrap();
        queue.begin_seeding(run.id).await.unwrap();
        // The detail page is known from the seeds: no page brings a new row.
        let mut seeds = pages(0..u32::try_from(pages_of.len()).unwrap());
        seeds.push(get("detail", 1));
        let _stats = queue.add_seeds(run.id, &seeds, 0).await.unwrap();
        let count = seeds.len() as u64;
        let run = queue.open_run(run.id, count, "plan").await.unwrap();
        let mut taken = claim(&queue, &worker, &any(&run, 50)).await;
        taken.sort_by_key(|claim| claim.stage.to_string());
        let details = taken.iter().filter(|c| c.stage.as_str() == "detail");
        let mut ends: Vec<Finish> = details.map(done).collect();
        let lists = taken.iter().filter(|c| c.stage.as_str() == "list");
        for (claim, (detail, next)) in lists.zip(pages_of) {
            let spec = DoneSpec {
                children: detail.then(|| get("detail", 1)).into_iter().collect(),
                links: vec![seen("to detail", *detail), seen("to next", *next)],
                ..DoneSpec::default()
            };
            ends.push(done_with(claim, spec));
        }
        assert_eq!(finish(&queue, &worker, &run, &ends).await, ends.len());
        let (_, closed) = queue.close_run(run.id, &rules).await.unwrap();
        closed
    };
    let both = [(true, true), (false, false)];
    assert!(crawl("2026-11-20", "day", &[(true, false)]).await.pass);
    assert!(crawl("2026-11-21", "day", &both).await.pass);
    let none = crawl("2026-11-22", "day", &[(false, true), (false, true)]).await;
    assert_eq!(kinds(&none), [BreachKind::NoLinks]);
    assert!(none.breaches[0].message.starts_with("2 pages"), "{none:?}");
    let lost = crawl("2026-11-23", "day", &[(true, false)]).await;
    assert_eq!(kinds(&lost), [BreachKind::NoLinks]);
    assert!(lost.breaches[0].message.contains("2026-11-21"), "{lost:?}");
    assert!(crawl("2026-11-23", "other", &[(true, false)]).await.pass);
    // Nothing of it stays when the run goes.
    for run in queue.list_runs(None, 100).await.unwrap() {
        queue.prune_family(&[run.id]).await.unwrap();
    }
    let left = number(&queue, "SELECT count(*) FROM queue_link", &[]).await;
    assert_eq!(left, 0);
}

pub(super) async fn stages_that_nothing_leads_to_are_red(backend: impl Backend) {
    let queue = backend.open().await;
    let link = |from: Option<&str>, to: &str| StageLink {
        rule: format!("{from:?} > {to}"),
        from: from.map(str::to_owned),
        to: to.to_owned(),
    };
    let rules = |links: Vec<StageLink>| ClosingRules {
        links,
        ..ClosingRules::default()
    };
    let run = open_run(&queue, "day", &pages(0..3)).await;
    let worker = queue.join("test").await.unwrap();
    assert_eq!(drain(&queue, &worker, &run).await, 3);
    let books = queue.read_books(run.id).await.unwrap();
    let stage = books.stages.keys().next().unwrap().clone();
    assert_eq!(
        (books.stages[&stage].of_date, books.stages[&stage].done),
        (3, 3)
    );
    let judge = |links| rules(links).judge(&books);
    // A list that leads to its own next page has one page at least; of a stage without pages nothing is asked.
    assert_eq!(
        judge(vec![link(Some(&stage), &stage), link(None, &stage)]),
        []
    );
    assert_eq!(judge(vec![link(Some("other"), "detail")]), []);
    // Two rules that lead to one stage, and one of any stage, count a page once.
    let twice = link(Some(&stage), "detail");
    let found = judge(vec![link(None, "detail"), twice.clone(), twice]);
    assert_eq!((found.len(), found[0].kind), (1, BreachKind::NoLinks));
    assert!(found[0].message.starts_with("3 pages"), "{found:?}");
    let needs_detail = rules(vec![link(Some(&stage), "detail")]);
    closes(&queue, &run, &needs_detail, &[BreachKind::NoLinks]).await;
    // What one sweep of the date found, the next need not find again; another date is another matter.
    let run = open_run(&queue, "second", &pages(3..4)).await;
    let taken = claim(&queue, &worker, &any(&run, 1)).await;
    let spec = DoneSpec {
        children: vec![get("detail", 1)],
        ..DoneSpec::default()
    };
    finish(&queue, &worker, &run, &[done_with(&taken[0], spec)]).await;
    assert_eq!(drain(&queue, &worker, &run).await, 1);
    closes(&queue, &run, &needs_detail, &[]).await;
    let run = open_run(&queue, "third", &pages(4..5)).await;
    assert_eq!(drain(&queue, &worker, &run).await, 1);
    closes(&queue, &run, &needs_detail, &[]).await;
    let other = RunKey {
        date: "2026-12-01".parse().unwrap(),
        ..run.key
    };
    let run = queue
        .create_run(&other, &RunOptions::default())
        .await
        .unwrap();
    queue.begin_seeding(run.id).await.unwrap();
    let _stats = queue.add_seeds(run.id, &pages(5..6), 0).await.unwrap();
    let run = queue.open_run(run.id, 1, "plan").await.unwrap();
    assert_eq!(drain(&queue, &worker, &run).await, 1);
    closes(&queue, &run, &needs_detail, &[BreachKind::NoLinks]).await;
}
