//! What the server tells about its visitors, and how it is steered.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Reply, ask, get, ids, post, raw, site, site_with};

#[tokio::test]
async fn the_log_and_the_numbers_count_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let log = path.clone();
    let server = site_with(|o| o.log = Some(log)).await;
    let page = get(&server, "/zh/list").await;
    get(&server, "/zh/rent/5").await;
    ask(&server, "HEAD", "/zh/list", "").await.unwrap();
    let other = "GET /en/ HTTP/1.1\r\nHost: b.localhost:99\r\nConnection: close\r\n\r\n";
    raw(server.address(), other).await;
    get(&server, "/_control/faults").await;
    let stats = get(&server, "/_control/stats").await.json();
    server.stop().await.unwrap();
    let lines: Vec<Value> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 4, "who steers is no visitor");
    let column = |name: &str| lines.iter().map(|l| l[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("status"), [200, 404, 200, 200]);
    assert_eq!(column("method"), ["GET", "GET", "HEAD", "GET"]);
    assert_eq!(column("kind"), ["list", "detail", "list", "other"]);
    assert_eq!(column("conn"), [1, 2, 3, 4]);
    assert_eq!(lines[0]["bytes"], page.body.len());
    assert_eq!(lines[2]["bytes"], 0);
    assert_eq!(lines[3]["host"], "b.localhost:99");
    for line in &lines {
        assert!(line["end_us"].as_u64() >= line["start_us"].as_u64());
        assert_eq!(
            (&line["in_flight"], &line["host_in_flight"]),
            (&json!(1), &json!(1))
        );
        let at = line["at"].as_str().unwrap();
        assert!(at.parse::<lakebed::time::Instant>().is_ok(), "{at}");
    }
    assert_eq!(stats["total"]["requests"], 4);
    assert_eq!(stats["hosts"]["demo.localhost"]["requests"], 3);
    assert_eq!(stats["hosts"]["demo.localhost"]["by_status"]["404"], 1);
    assert_eq!(stats["hosts"]["b.localhost"]["by_kind"]["other"], 1);
    assert!(
        stats["hosts"]["demo.localhost"]["min_gap_us"]
            .as_u64()
            .unwrap()
            > 0
    );
}

#[tokio::test]
async fn concurrency_is_seen_per_host() {
    let server = site(&["slow:800"]).await;
    let to = server.address();
    let ask = |host: &str| {
        let request = format!("GET /zh/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        async move { raw(to, &request).await }
    };
    tokio::join!(ask("a"), ask("a"), ask("a"), ask("b"));
    let stats = get(&server, "/_control/stats").await.json();
    assert_eq!(stats["total"]["max_in_flight"], 4);
    assert_eq!(stats["hosts"]["a"]["max_in_flight"], 3);
    assert_eq!(stats["hosts"]["b"]["max_in_flight"], 1);
    assert_eq!(stats["total"]["in_flight"], 0);
}

#[tokio::test]
async fn a_client_that_leaves_is_logged_without_a_status() {
    let server = site(&["hang"]).await;
    let to = server.address();
    let request = "GET /zh/ HTTP/1.1\r\nHost: a\r\n\r\n";
    let left = tokio::time::timeout(Duration::from_millis(200), raw(to, request)).await;
    assert!(left.is_err(), "the server hangs");
    for _ in 0..100 {
        let stats = get(&server, "/_control/stats").await.json();
        if stats["hosts"]["a"]["by_status"]["0"] == 1 {
            assert_eq!(stats["total"]["in_flight"], 0);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the end of the exchange was not noticed");
}

#[tokio::test]
async fn visitors_that_do_not_wait_are_counted() {
    let server = site(&["rate_limit:2/60"]).await;
    for status in [200, 200, 429, 429, 429] {
        assert_eq!(get(&server, "/zh/").await.status, status);
    }
    let stats = get(&server, "/_control/stats").await.json();
    assert_eq!(stats["hosts"]["demo.localhost"]["too_early"], 2);
}

#[tokio::test]
async fn a_running_site_takes_orders() {
    let server = site(&["forbid"]).await;
    assert_eq!(get(&server, "/zh/").await.status, 403);
    assert_eq!(
        get(&server, "/_control/faults").await.json(),
        json!({"faults": ["forbid"]})
    );
    let reply = post(
        &server,
        "/_control/faults",
        "{\"faults\": [\"forbid:410@detail\", \"slow:1\"]}",
    )
    .await;
    assert_eq!(reply.json()["faults"][0], "forbid:410@detail");
    let id = ids(&server).await[0];
    assert_eq!(get(&server, &format!("/zh/rent/{id}")).await.status, 410);
    let bad = post(
        &server,
        "/_control/faults",
        "{\"faults\": [\"slow:1\", \"nonsense\"]}",
    )
    .await;
    assert_eq!(bad.status, 400);
    assert!(bad.text().contains("nonsense"), "{}", bad.text());
    assert_eq!(
        get(&server, "/_control/faults").await.json()["faults"][1],
        "slow:1"
    );
    post(&server, "/_control/faults", "{\"faults\": []}").await;

    let before = get(&server, "/api/list").await.json();
    assert_eq!(
        post(&server, "/_control/date", "{\"date\": \"2026-12-09\"}")
            .await
            .status,
        200
    );
    let after = get(&server, "/api/list").await.json();
    assert_eq!(
        (&before["date"], &after["date"]),
        (&json!("2026-11-30"), &json!("2026-12-09"))
    );
    assert_ne!(before["items"], after["items"]);
    for bad in [
        "{\"date\": \"tomorrow\"}",
        "{}",
        "x",
        "{\"date\": \"2026-12-09\", \"x\": 1}",
    ] {
        assert_eq!(
            post(&server, "/_control/date", bad).await.status,
            400,
            "{bad}"
        );
    }
    assert_eq!(post(&server, "/_control/reset", "").await.status, 200);
    let stats = get(&server, "/_control/stats").await.json();
    assert_eq!(stats["total"]["requests"], 0);
    assert_eq!(get(&server, "/_control/reset").await.status, 404);
    assert_eq!(get(&server, "/_control/nothing").await.status, 404);
}

#[tokio::test]
async fn connections_are_kept_alive() {
    let server = site(&[]).await;
    let two = "GET /api/list HTTP/1.1\r\nHost: a\r\n\r\nGET /robots.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let bytes = raw(server.address(), two).await;
    let first = Reply::parse(&bytes).unwrap();
    let second = Reply::parse(&first.body[first.length()..]).unwrap();
    assert_eq!((first.status, second.status), (200, 200));
    let stats = get(&server, "/_control/stats").await.json();
    assert_eq!(stats["connections"], 2, "one for both, one for the numbers");
}

#[tokio::test]
async fn a_stopped_site_frees_its_port() {
    let server = site(&["hang"]).await;
    let to = server.address();
    let hanging = tokio::spawn(async move { raw(to, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await });
    while get(&server, "/_control/stats").await.json()["total"]["in_flight"] != 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop().await.unwrap();
    assert!(hanging.await.unwrap().is_empty(), "what hangs is cut");
    let again = site_with(|o| o.bind = to).await;
    assert_eq!(get(&again, "/en/").await.status, 200);
    drop(again);
    for _ in 0..100 {
        if tokio::net::TcpStream::connect(to).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a dropped site still listens");
}
