//! Every fault, as it shows on the wire.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use lakebed::time::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Reply, ask, get, ids, raw, site};
use crate::demo_site::http_date::HttpTime;

#[tokio::test]
async fn forbid_is_for_all_but_robots() {
    let server = site(&["forbid"]).await;
    for path in [
        "/",
        "/zh/list",
        "/zh/rent/5",
        "/api/list",
        "/sitemap.xml",
        "/img/1/1.svg",
    ] {
        assert_eq!(get(&server, path).await.status, 403, "{path}");
    }
    assert_eq!(get(&server, "/robots.txt").await.status, 200);
    let all = site(&["forbid@all"]).await;
    assert_eq!(get(&all, "/robots.txt").await.status, 403);
}

#[tokio::test]
async fn faults_in_the_address_hit_that_request_alone() {
    let server = site(&[]).await;
    assert_eq!(get(&server, "/fault/forbid:451/zh/list").await.status, 451);
    assert_eq!(get(&server, "/zh/list").await.status, 200);
    assert_eq!(get(&server, "/fault/nonsense/zh/list").await.status, 400);
    assert_eq!(get(&server, "/on/2026-02-30/zh/list").await.status, 400);
}

#[tokio::test]
async fn rate_limits_tell_when_to_come_back() {
    let server = site(&[]).await;
    for form in [
        "",
        ":seconds",
        ":date",
        ":negative",
        ":absurd",
        ":garbage",
        ":none",
    ] {
        let path = format!("/fault/rate_limit:1:30{form}/zh/");
        assert_eq!(get(&server, &path).await.status, 200, "{form}");
        let refused = get(&server, &path).await;
        assert_eq!(refused.status, 429, "{form}");
        let told = refused.header("retry-after");
        match form {
            "" | ":seconds" => {
                let seconds: u64 = told.unwrap().parse().unwrap();
                assert!((25..=30).contains(&seconds), "{seconds}");
            }
            ":date" => {
                let at = HttpTime::parse(told.unwrap()).unwrap();
                let now = HttpTime::of(Clock::System.now()).unwrap();
                assert!(at > now, "{at}");
            }
            ":negative" => assert_eq!(told, Some("-5")),
            ":absurd" => assert!(told.unwrap().parse::<u64>().is_err()),
            ":garbage" => assert_eq!(told, Some("soon")),
            _ => assert_eq!(told, None),
        }
    }
    let short = "/fault/rate_limit:1:2/zh/";
    assert_eq!(get(&server, short).await.status, 200);
    let wait: u64 = get(&server, short)
        .await
        .header("retry-after")
        .unwrap()
        .parse()
        .unwrap();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(
        get(&server, short).await.status,
        200,
        "who waits is welcome"
    );
}

#[tokio::test]
async fn rate_limits_are_per_host() {
    let server = site(&["rate_limit:1:60"]).await;
    for host in ["a", "b"] {
        for status in [200, 429] {
            let request = format!("GET /en/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let reply = Reply::parse(&raw(server.address(), &request).await).unwrap();
            assert_eq!(reply.status, status, "{host}");
        }
    }
}

#[tokio::test]
async fn bursts_shares_and_flaky_requests_fail_as_ordered() {
    let server = site(&[]).await;
    let mut burst = Vec::new();
    for _ in 0..8 {
        burst.push(get(&server, "/fault/burst:4:2:502/zh/").await.status);
    }
    assert_eq!(burst, [200, 200, 502, 502, 200, 200, 502, 502]);
    let mut failed = BTreeSet::new();
    for page in 1..=13 {
        let path = format!("/fault/flaky:40:2/zh/list?page={page}");
        let statuses = [
            get(&server, &path).await.status,
            get(&server, &path).await.status,
            get(&server, &path).await.status,
        ];
        failed.insert(statuses);
    }
    assert_eq!(Vec::from_iter(failed), [[200, 200, 200], [503, 503, 200]]);
    let mut share = BTreeSet::new();
    for page in 1..=13 {
        let path = format!("/fault/share:50:500/zh/list?page={page}");
        share.insert((
            get(&server, &path).await.status,
            get(&server, &path).await.status,
        ));
    }
    assert_eq!(share.len(), 4, "a retry may succeed or fail: {share:?}");
}

#[tokio::test]
async fn slow_and_dripping_answers_take_their_time() {
    let server = site(&[]).await;
    let began = Instant::now();
    let plain = get(&server, "/robots.txt").await.body;
    let slow = get(&server, "/fault/slow:250@robots/robots.txt").await;
    assert!(began.elapsed() >= Duration::from_millis(250));
    assert_eq!(slow.status, 200);

    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request = "GET /fault/drip:20:30@robots/robots.txt HTTP/1.1\r\nHost: demo.localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut bytes, mut pieces) = (Vec::new(), 0);
    let began = Instant::now();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).await.unwrap();
        if n == 0 {
            break;
        }
        pieces += 1;
        bytes.extend(&buffer[..n]);
    }
    let reply = Reply::parse(&bytes).unwrap();
    let prefix = "/fault/drip:20:30@robots";
    let expected = String::from_utf8(plain)
        .unwrap()
        .replace("/sitemap.xml", &format!("{prefix}/sitemap.xml"));
    assert_eq!(reply.text(), expected);
    let waits = u32::try_from(reply.body.len().div_ceil(20) - 1).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(30) * waits);
    assert!(pieces > 3, "{pieces} pieces");
}

#[tokio::test]
async fn truncated_bodies_are_shorter_than_announced() {
    let server = site(&[]).await;
    let whole = get(&server, "/zh/list").await;
    let cut = get(&server, "/fault/truncate:100/zh/list").await;
    assert_eq!(cut.status, 200);
    assert_eq!(cut.body.len(), cut.length() / 2);
    assert!(cut.length() > whole.length(), "the prefix makes it longer");
    let most = get(&server, "/fault/truncate:100:99/zh/list").await;
    assert!(most.body.len() < most.length() && most.body.len() * 100 > most.length() * 98);
    let none = get(&server, "/fault/truncate:100:0/zh/list").await;
    assert_eq!((none.status, none.body.len()), (200, 0));
    let mut kinds = BTreeSet::new();
    for page in 1..=13 {
        let reply = get(&server, &format!("/fault/truncate:50/zh/list?page={page}")).await;
        kinds.insert(reply.body.len() == reply.length());
    }
    assert_eq!(kinds.len(), 2, "half of them");
    let packed = ask(
        &server,
        "GET",
        "/fault/truncate:100/zh/list",
        "Accept-Encoding: gzip\r\n",
    )
    .await
    .unwrap();
    assert_eq!(packed.body.len(), packed.length() / 2);
}

#[tokio::test]
async fn hang_and_close_give_no_answer() {
    let server = site(&[]).await;
    let request = |fault: &str| format!("GET /fault/{fault}/zh/ HTTP/1.1\r\nHost: a\r\n\r\n");
    let to = server.address();
    assert!(raw(to, &request("close")).await.is_empty());
    let hang = tokio::time::timeout(Duration::from_millis(300), raw(to, &request("hang"))).await;
    assert!(hang.is_err());
}

#[tokio::test]
async fn redirects_end_or_go_round() {
    let server = site(&[]).await;
    let mut path = "/fault/redirect:3/zh/list?city=jinhe&page=1".to_owned();
    for _ in 0..3 {
        let reply = get(&server, &path).await;
        assert_eq!(reply.status, 302);
        path = reply.header("location").unwrap().to_owned();
    }
    let page = get(&server, &path).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("data-page=\"1\""));
    assert_eq!(get(&server, "/fault/redirect:1:308/zh/").await.status, 308);

    let mut seen = Vec::new();
    let mut path = "/fault/redirect_loop/zh/list".to_owned();
    for _ in 0..6 {
        let reply = get(&server, &path).await;
        assert_eq!(reply.status, 302);
        path = reply.header("location").unwrap().to_owned();
        seen.push(path.clone());
    }
    assert_eq!(BTreeSet::from_iter(&seen).len(), 2, "{seen:?}");
}

#[tokio::test]
async fn lists_deviate_as_ordered() {
    let server = site(&[]).await;
    let endless = get(&server, "/fault/endless/zh/list?page=99999").await;
    assert_eq!(endless.status, 200);
    assert!(endless.text().contains("rel=\"next\"") && endless.text().contains("card__title"));
    let beyond = get(&server, "/fault/beyond/zh/list?page=999").await;
    assert_eq!(beyond.status, 200);
    assert!(!beyond.text().contains("rel=\"next\"") && beyond.text().contains("class=\"none\""));
    let empty = get(&server, "/fault/empty/zh/list").await.text();
    assert!(empty.contains("data-total=\"0\"") && empty.contains("class=\"none\""));
    let truth = get(&server, "/api/list").await.json()["total"]
        .as_u64()
        .unwrap();
    let told = get(&server, "/fault/totals:150/api/list").await.json()["total"]
        .as_u64()
        .unwrap();
    assert_eq!(told, truth * 150 / 100);
    let beyond = get(&server, "/fault/beyond/api/list?page=999").await.json();
    assert_eq!(
        (
            beyond["items"].as_array().unwrap().len(),
            beyond["total"].as_u64()
        ),
        (0, Some(truth))
    );
}

#[tokio::test]
async fn pages_lose_their_content_with_status_200() {
    let server = site(&[]).await;
    let id = ids(&server).await[0];
    for path in [
        "/zh/list".to_owned(),
        format!("/zh/rent/{id}"),
        "/api/list".to_owned(),
    ] {
        let login = get(&server, &format!("/fault/login{path}")).await;
        assert_eq!(login.status, 200);
        assert!(login.text().contains("type=\"password\""), "{path}");
    }
    let shell = get(&server, &format!("/fault/empty/zh/rent/{id}")).await;
    assert_eq!(shell.status, 200);
    assert!(!shell.text().contains("listing__price\" "));
    let first = get(&server, &format!("/zh/rent/{id}")).await.text();
    let second = get(&server, &format!("/fault/markup:2/zh/rent/{id}"))
        .await
        .text();
    for class in ["listing__title", "listing__facts", "listing__price"] {
        assert!(first.contains(&format!("class=\"{class}\"")), "{class}");
        assert!(!second.contains(&format!("class=\"{class}\"")), "{class}");
    }
    assert!(second.contains("class=\"facts2\"") && !second.contains("ld+json"));
    let list = get(&server, "/fault/markup:2/zh/list").await.text();
    assert!(list.contains("class=\"tile\"") && !list.contains("class=\"card\""));
}

#[tokio::test]
async fn huge_bodies_and_bombs_are_as_large_as_ordered() {
    let server = site(&[]).await;
    let huge = get(&server, "/fault/huge:3m/zh/").await;
    assert_eq!((huge.length(), huge.body.len()), (3 << 20, 3 << 20));
    assert!(huge.body.starts_with(b"<!DOCTYPE html>"));
    let bomb = get(&server, "/fault/bomb:20m/zh/").await;
    assert_eq!(bomb.header("content-encoding"), Some("gzip"));
    assert!(bomb.body.len() < 100_000 && bomb.body.len() == bomb.length());
    let mut unpacked = Vec::new();
    GzDecoder::new(&bomb.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked.len(), 20 << 20);
    // A body of a terabyte costs nothing until it is read.
    let head = ask(&server, "HEAD", "/fault/huge:1024g/zh/", "")
        .await
        .unwrap();
    assert_eq!(head.header("content-length"), Some("1099511627776"));
}

#[tokio::test]
async fn robots_come_in_all_forms() {
    let server = site(&[]).await;
    let robots = |form: &str| {
        let path = format!("/fault/robots:{form}/robots.txt");
        let server = &server;
        async move { get(server, &path).await }
    };
    assert!(robots("allow").await.text().contains("Disallow:\n"));
    assert!(robots("deny").await.text().contains("Disallow: /\n"));
    assert!(robots("delay:7").await.text().contains("Crawl-delay: 7\n"));
    for (form, status) in [("5xx", 503), ("4xx", 404), ("429", 429)] {
        assert_eq!(robots(form).await.status, status);
    }
    let huge = robots("huge").await;
    assert!(huge.body.len() > 1 << 20 && huge.text().ends_with("Disallow: /\n"));
    let garbage = robots("garbage").await;
    assert!(garbage.status == 200 && String::from_utf8(garbage.body).is_err());
    let moved = robots("redirect:2").await;
    assert_eq!(moved.status, 301);
    let next = get(&server, moved.header("location").unwrap()).await;
    let last = get(&server, next.header("location").unwrap()).await;
    assert!(last.status == 200 && last.text().contains("Disallow: /private/"));
    let request = "GET /fault/robots:hang/robots.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let hang = raw(server.address(), request);
    assert!(
        tokio::time::timeout(Duration::from_millis(200), hang)
            .await
            .is_err()
    );
    let whole = site(&["robots:deny"]).await;
    assert!(
        get(&whole, "/robots.txt")
            .await
            .text()
            .contains("Disallow: /\n")
    );
    assert_eq!(get(&whole, "/zh/").await.status, 200, "pages are as before");
}

#[tokio::test]
async fn malformed_requests_do_not_end_the_site() {
    let server = site(&[]).await;
    let to = server.address();
    for request in [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET /\u{0}zh HTTP/1.1\r\nHost: a\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /%ff%fe/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /zh/list?page=%ff&&=&city HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "POST /api/search HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9000000\r\n\r\nx",
    ] {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = [0; 64];
        let first = tokio::time::timeout(Duration::from_millis(300), stream.read(&mut bytes)).await;
        if let Ok(Ok(n)) = first {
            assert!(!bytes[..n].starts_with(b"HTTP/1.1 200"), "{request:?}");
        }
    }
    assert_eq!(get(&server, "/zh/").await.status, 200);
}
