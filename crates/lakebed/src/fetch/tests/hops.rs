//! Redirects, the check of hops, and what the source may say about statuses.

use std::sync::Mutex;
use std::time::Duration;

use http::Method;

use super::server::{Act, Server, fetch, fetcher, get, options, page, redirect, response};
use crate::fetch::{
    Continuation, CookieJar, FailureClass, FetchOutcome, Fetched, HopCheck, HopDecision,
    NoHopCheck, Validators,
};
use crate::spec::Truncated;

fn class(fetched: &Fetched) -> Option<FailureClass> {
    match &fetched.outcome {
        FetchOutcome::Failed(failure) => Some(failure.class),
        _ => None,
    }
}

#[tokio::test]
async fn every_hop_has_its_capture() {
    let server = Server::pages(&[
        ("/a", &redirect(301, "/b#x")),
        ("/b", &redirect(302, "c?q")),
        ("/c?q", &page("end")),
    ])
    .await;
    let fetched = fetch(options(), &server.url("/a")).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let hops: Vec<_> = (fetched.captures.iter())
        .map(|c| {
            (
                c.record.hop,
                c.record.url.clone(),
                c.record.status,
                c.body.clone(),
            )
        })
        .collect();
    assert_eq!(
        hops,
        [
            (0, server.url("/a"), Some(301), "moved".into()),
            (1, server.url("/b"), Some(302), "moved".into()),
            (2, server.url("/c?q"), Some(200), "end".into()),
        ]
    );
    let mut ids: Vec<_> = fetched
        .captures
        .iter()
        .map(|c| c.record.capture_id.clone())
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn bodies_go_along_as_the_status_says() {
    let server = Server::pages(&[
        ("/303", &redirect(303, "/end")),
        ("/302", &redirect(302, "/end")),
        ("/307", &redirect(307, "/end")),
        ("/end", &page("end")),
    ])
    .await;
    for (path, method, body) in [
        ("/303", "GET", ""),
        ("/302", "GET", ""),
        ("/307", "POST", "a=1"),
    ] {
        let mut request = get(&server.url(path));
        request.method = Method::POST;
        request.body = Some("a=1".into());
        request.headers = vec![(
            "Content-Type".to_owned(),
            "application/x-www-form-urlencoded".to_owned(),
        )];
        let fetched = fetcher(options()).fetch(&request, &NoHopCheck).await;
        assert_eq!(fetched.outcome, FetchOutcome::Answered);
        let last = server.received().pop().unwrap();
        assert!(
            last.head.starts_with(&format!("{method} /end")),
            "{}",
            last.head
        );
        assert_eq!(last.body, body.as_bytes());
        assert_eq!(last.header("content-type").is_empty(), body.is_empty());
        let first = &fetched.captures[0].record;
        assert_eq!(first.request_body.as_ref().unwrap().0, b"a=1");
        assert_eq!(
            fetched.captures[1].record.request_body.is_some(),
            !body.is_empty()
        );
    }
}

#[tokio::test]
async fn loops_and_endless_chains_end() {
    let server = Server::start(|request| {
        let target = request.target();
        let to = match target.strip_prefix("/chain/") {
            Some(n) => format!("/chain/{}", n.parse::<u32>().unwrap() + 1),
            None if target == "/a" => "/b".to_owned(),
            None => "/a".to_owned(),
        };
        vec![Act::Send(redirect(302, &to))]
    })
    .await;
    let looping = fetch(options(), &server.url("/a")).await;
    assert_eq!(class(&looping), Some(FailureClass::RedirectLoop));
    assert_eq!(looping.captures.len(), 2);
    let endless = fetch(options(), &server.url("/chain/0")).await;
    assert_eq!(class(&endless), Some(FailureClass::TooManyRedirects));
    assert_eq!(endless.captures.len(), 11);
    let mut none = options();
    none.redirects.max = 0;
    assert_eq!(
        class(&fetch(none.clone(), &server.url("/a")).await),
        Some(FailureClass::TooManyRedirects)
    );
    none.accepted_statuses.insert(302);
    assert_eq!(
        fetch(none, &server.url("/a")).await.outcome,
        FetchOutcome::Answered
    );
}

#[tokio::test]
async fn a_page_may_set_a_cookie_and_lead_to_itself() {
    let server = Server::start(|request| {
        let bytes = if request.header("cookie").contains("seen=1") {
            page("welcome")
        } else {
            response(302, "Location: /\r\nSet-Cookie: seen=1; Path=/\r\n", b"")
        };
        vec![Act::Send(bytes)]
    })
    .await;
    let mut with_jar = options();
    with_jar.cookies = Some(CookieJar::default());
    let fetched = fetch(with_jar.clone(), &server.url("/")).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let sent = String::from_utf8(fetched.captures[1].record.request_head.0.clone()).unwrap();
    assert!(
        sent.contains("Cookie: [removed]\r\n") && !sent.contains("seen"),
        "{sent}"
    );
    assert_eq!(
        with_jar.cookies.unwrap().count(),
        1,
        "the jar is the source's"
    );
    let without = fetch(options(), &server.url("/")).await;
    assert_eq!(class(&without), Some(FailureClass::RedirectLoop));
}

#[tokio::test]
async fn locations_that_lead_nowhere_fail() {
    let server = Server::pages(&[
        ("/js", &redirect(302, "javascript:alert(1)")),
        ("/user", &redirect(302, "http://u:p@example.com/")),
        ("/none", &response(302, "", b"")),
        ("/300", &redirect(300, "/js")),
        ("/304", b"HTTP/1.1 304 X\r\n\r\n"),
        (
            "/206",
            &response(206, "Content-Range: bytes 0-1/9\r\n", b"ab"),
        ),
    ])
    .await;
    for (path, expected) in [
        ("/js", FailureClass::BadUrl),
        ("/user", FailureClass::BadUrl),
        ("/none", FailureClass::Http(302)),
        ("/300", FailureClass::Http(300)),
        ("/304", FailureClass::Http(304)),
        ("/206", FailureClass::Http(206)),
    ] {
        let fetched = fetch(options(), &server.url(path)).await;
        assert_eq!(class(&fetched), Some(expected), "{path}");
        assert_eq!(fetched.captures.len(), 1, "{path}");
    }
}

/// Says "not now" to a path, once.
struct Turn(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl HopCheck for Turn {
    async fn admit(&self, hop: &Continuation) -> HopDecision {
        let mut asked = self.0.lock().unwrap();
        let path = hop.url.path_and_query().to_owned();
        let is_first = !asked.contains(&path);
        asked.push(path.clone());
        match path.as_str() {
            "/later" if is_first => HopDecision::NotNow {
                wait: Some(Duration::from_secs(3600)),
            },
            "/never" => HopDecision::Refuse(FailureClass::Robots),
            _ => HopDecision::Go,
        }
    }
}

#[tokio::test]
async fn every_hop_is_asked_for_first() {
    let server = Server::pages(&[
        ("/a", &redirect(302, "/later")),
        ("/later", &redirect(302, "/end")),
        ("/end", &page("end")),
        ("/b", &redirect(302, "/never")),
        ("/never", &page("secret")),
    ])
    .await;
    let fetcher = fetcher(options());
    let check = Turn(Mutex::default());
    let mut request = get(&server.url("/a"));
    let first = fetcher.fetch(&request, &check).await;
    assert_eq!(first.captures.len(), 1);
    let FetchOutcome::Deferred { next, wait } = first.outcome else {
        panic!("{:?}", first.outcome);
    };
    assert_eq!(
        (next.hop, next.url.as_str()),
        (1, server.url("/later").as_str())
    );
    assert_eq!(wait, Some(Duration::from_secs(3600)));
    let stored = serde_json::to_string(&next).unwrap();
    request.resume = Some(serde_json::from_str(&stored).unwrap());
    let second = fetcher.fetch(&request, &check).await;
    assert_eq!(second.outcome, FetchOutcome::Answered);
    let hops: Vec<u32> = second.captures.iter().map(|c| c.record.hop).collect();
    assert_eq!(hops, [1, 2]);
    assert_eq!(
        server.targets(),
        ["/a", "/later", "/end"],
        "no hop is made twice"
    );
    let refused = fetcher.fetch(&get(&server.url("/b")), &check).await;
    assert_eq!(class(&refused), Some(FailureClass::Robots));
    assert!(!server.targets().contains(&"/never".to_owned()));
    assert_eq!(
        *check.0.lock().unwrap(),
        ["/a", "/later", "/later", "/end", "/b", "/never"]
    );
}

#[tokio::test]
async fn an_unchanged_page_is_an_outcome_of_its_own() {
    let server = Server::start(|request| {
        let is_known = request.header("if-none-match") == "\"v1\""
            || !request.header("if-modified-since").is_empty();
        let bytes = match (request.target(), is_known) {
            ("/moved", _) => redirect(302, "/page"),
            (_, true) => b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n".to_vec(),
            (_, false) => response(
                200,
                "ETag: \"v1\"\r\nLast-Modified: Mon, 30 Nov 2026 12:00:00 GMT\r\n",
                b"page",
            ),
        };
        vec![Act::Send(bytes)]
    })
    .await;
    let fetcher = fetcher(options());
    let first = fetcher
        .fetch(&get(&server.url("/moved")), &NoHopCheck)
        .await;
    let validators = Validators::of(&first.captures[1].record).unwrap();
    assert_eq!(validators.etag.as_deref(), Some("\"v1\""));
    assert_eq!(
        validators.last_modified.as_deref(),
        Some("Mon, 30 Nov 2026 12:00:00 GMT")
    );
    assert_eq!(Validators::of(&first.captures[0].record), None);
    let mut again = get(&server.url("/moved"));
    again.validators = Some(validators.clone());
    let second = fetcher.fetch(&again, &NoHopCheck).await;
    assert_eq!(second.outcome, FetchOutcome::NotModified);
    let sent: Vec<String> = server.received()[2..]
        .iter()
        .map(|r| r.header("if-none-match"))
        .collect();
    assert_eq!(
        sent,
        ["", "\"v1\""],
        "they are said to the URL they came from"
    );
    let mut elsewhere = get(&server.url("/other"));
    elsewhere.validators = Some(validators);
    assert_eq!(
        fetcher.fetch(&elsewhere, &NoHopCheck).await.outcome,
        FetchOutcome::Answered
    );
}

#[tokio::test]
async fn of_a_redirects_body_the_beginning_is_kept() {
    let long = response(302, "Location: /end\r\n", &vec![b'x'; 1 << 20]);
    let server = Server::pages(&[("/a", &long), ("/end", &page("end"))]).await;
    let fetched = fetch(options(), &server.url("/a")).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let first = &fetched.captures[0];
    assert_eq!(
        (first.body.len(), first.record.truncated),
        (64 << 10, Truncated::Length)
    );
    let mut is_data = options();
    is_data.accepted_statuses.insert(302);
    let fetched = fetch(is_data, &server.url("/a")).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    assert_eq!(fetched.captures[0].body.len(), 1 << 20);
}
